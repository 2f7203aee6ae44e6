# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""T10 OSD-1 and OSD-2 commands for tests, on the initiator in iscsi.py. Written from the standards' layouts, apart from
osd/wire*.c, which both the target and client/ use."""

import struct

FORMAT_OSD, CREATE, LIST, PUNCH, READ, WRITE, APPEND, FLUSH, CLEAR, REMOVE = range(0x8881, 0x888B)
CREATE_PARTITION, REMOVE_PARTITION = 0x888B, 0x888C
GET_ATTRIBUTES, SET_ATTRIBUTES = 0x888E, 0x888F
FETCH_AND_ADD, CREATE_AND_WRITE = 0x8890, 0x8892
FLUSH_PARTITION, FLUSH_OSD = 0x889B, 0x889C
PERFORM_TASK_MANAGEMENT = 0x8F7D
WRITE_BYTES_MAX = 8 << 20  # of one command

GOOD, CHECK_CONDITION = 0x00, 0x02
RECOVERED_ERROR, MEDIUM_ERROR, HARDWARE_ERROR, ILLEGAL_REQUEST, DATA_PROTECT = 0x1, 0x3, 0x4, 0x5, 0x7
UNIT_ATTENTION = 0x6
INVALID_OPERATION_CODE = 0x2000
INVALID_FIELD_IN_CDB = 0x2400
INVALID_FIELD_IN_PARAMETER_LIST = 0x2600
PARAMETER_LIST_LENGTH_ERROR = 0x1A00
MEDIUM_MAY_HAVE_CHANGED = 0x2800
NOT_EMPTY = 0x2C0A
READ_PAST_END = 0x3B17
SYSTEM_RESOURCE_FAILURE = 0x5500
QUOTA_ERROR = 0x5507

FUA = 0x08
LIST_FORMAT = 0x30
USER_INFORMATION, LOGICAL_LENGTH, USERNAME = 0x00000001, 0x82, 0x9
CURRENT_COMMAND = 0xFFFFFFFE

# Where OSD-1 and OSD-2 differ: bytes of a CDB; offsets of LENGTH, STARTING BYTE ADDRESS and NUMBER
# OF USER OBJECTS; unit of the offsets of segments; exponent nibble of that unit.
LAYOUT = {1: (200, 36, 44, 36, 256, 0x0), 2: (236, 32, 40, 32, 8, 0xB)}


class Sense:
    """Descriptor-format sense data, taken apart."""

    def __init__(self, data):
        if len(data) < 8 or data[0] != 0x72 or len(data) != 8 + data[7]:
            raise ValueError(f"no well-formed descriptor sense: {data.hex()}")
        self.key = data[1] & 0x0F
        self.code = int.from_bytes(data[2:4], "big")
        self.descriptors = {}
        at = 8
        while at < len(data):
            self.descriptors[data[at]] = data[at : at + 2 + data[at + 1]]
            at += 2 + data[at + 1]

    @property
    def field(self):
        """Field pointer into the CDB, or None."""
        found = self.descriptors.get(2)
        return int.from_bytes(found[5:7], "big") if found and found[4] & 0xC0 == 0xC0 else None

    @property
    def information(self):
        found = self.descriptors.get(0)
        return int.from_bytes(found[4:12], "big") if found and found[2] & 0x80 else None

    @property
    def command_information(self):
        found = self.descriptors.get(1)
        return int.from_bytes(found[4:12], "big") if found else None

    @property
    def address(self):
        """(partition, object) of the OSD object identification, or None."""
        found = self.descriptors.get(6)
        return struct.unpack(">QQ", found[16:32]) if found else None

    def __repr__(self):
        return f"sense {self.key:02x}/{self.code:04x}, field {self.field}"


def round_up(value, unit):
    return -(-value // unit) * unit


def offset_of(version, at):
    """The floating form of an offset that is a multiple of the version's unit."""
    unit, exponent = LAYOUT[version][4:]
    assert at % unit == 0
    return exponent << 28 | at // unit


def get_list(version, wanted):
    head = b"\x01" + bytes(7 if version == 2 else 3)
    return head + b"".join(struct.pack(">II", page, number) for page, number in wanted)


def set_list(version, values):
    if version == 1:
        return b"\x09\0\0\0" + b"".join(struct.pack(">IIH", p, n, len(v)) + v for p, n, v in values)
    entries = (struct.pack(">II6xH", p, n, len(v)) + v + bytes(-len(v) % 8) for p, n, v in values)
    return b"\x09" + bytes(7) + b"".join(entries)


def parse_list(version, data):
    """{(page, number): value} of a retrieved list."""
    head, entry = (8, 16) if version == 2 else (4, 10)
    length = int.from_bytes(data[4:8] if version == 2 else data[2:4], "big")
    if data[0] & 0x0F != 9 or head + length > len(data):
        raise ValueError(f"no list of retrieved attributes: {data[:16].hex()}")
    values, at = {}, head
    while at < head + length:
        page, number = struct.unpack_from(">II", data, at)
        size = int.from_bytes(data[at + entry - 2 : at + entry], "big")
        values[page, number] = bytes(data[at + entry : at + entry + size])
        at += entry + size if version == 1 else round_up(entry + size, 8)
    return values


class Answer:
    """Result of a command: `task` has the transport's side."""

    def __init__(self, task, data_length, retrieved, version):
        self.task = task
        self.status = task.status
        self.sense = Sense(task.sense) if task.sense else None
        self.data = bytes(task.room[: min(data_length, task.received)])
        self.attributes = {}
        if retrieved is not None and task.received > retrieved:
            self.attributes = parse_list(version, task.room[retrieved : task.received])

    @property
    def short(self):
        return self.sense is not None and (self.sense.key, self.sense.code) == (RECOVERED_ERROR, READ_PAST_END)


class Command:
    """One OSD command, ready to be sent; tests may change `cdb`, `data_out` and `read_length` before."""

    def __init__(self, action, partition=0, object=0, length=0, address=0, data=b"", count=0, gets=(), sets=(),
                 options=0, scope=0, version=2):  # fmt: skip
        size, length_at, address_at, count_at, unit, _ = LAYOUT[version]
        self.version = version
        self.cdb = bytearray(size)
        self.cdb[0] = 0x7F
        self.cdb[7] = size - 8
        struct.pack_into(">HBB", self.cdb, 8, action - (0x80 if version == 1 else 0), options, LIST_FORMAT | scope)
        struct.pack_into(">QQ", self.cdb, 16, partition, object)
        struct.pack_into(">Q", self.cdb, length_at, length or len(data))
        struct.pack_into(">Q", self.cdb, address_at, address)
        if count:
            struct.pack_into(">H", self.cdb, count_at, count)
        self.data_length = length if action in (READ, LIST) else 0
        self.read_length = self.data_length
        self.retrieved = None
        self.data_out = data
        if sets:
            self._add_segment(68, set_list(version, sets), unit)
        if gets:
            self._add_segment(52, get_list(version, gets), unit)
            self.retrieved = round_up(self.data_length, unit)
            room = 512 * len(gets)
            struct.pack_into(">II", self.cdb, 60, room, offset_of(version, self.retrieved))
            self.read_length = self.retrieved + room

    @classmethod
    def manage_tasks(cls, function, tag=0):
        """PERFORM TASK MANAGEMENT FUNCTION; byte 4 of its 8 bytes of data is the service response."""
        command = cls(PERFORM_TASK_MANAGEMENT, address=tag)
        struct.pack_into(">H5xB", command.cdb, 32, 8, function)
        command.data_length = command.read_length = 8
        return command

    def _add_segment(self, at, segment, unit):
        start = round_up(len(self.data_out), unit)
        self.data_out = b"".join((self.data_out, bytes(start - len(self.data_out)), segment))
        struct.pack_into(">II", self.cdb, at, len(segment), offset_of(self.version, start))

    def submit(self, session):
        return session.submit(self.cdb, self.data_out, self.read_length)

    def answer(self, task):
        return Answer(task, self.data_length, self.retrieved, self.version)

    def run(self, session):
        return self.answer(session.wait(self.submit(session)))


class Osd:
    """Commands in one version on one session. All return an Answer; `must` ones raise when the status is not GOOD."""

    def __init__(self, session, version=2):
        self.session = session
        self.version = version

    def run(self, action, partition=0, object=0, **rest):
        return Command(action, partition, object, version=self.version, **rest).run(self.session)

    def must(self, action, partition=0, object=0, **rest):
        answer = self.run(action, partition, object, **rest)
        if answer.status != GOOD:
            raise AssertionError(f"{action:#x} of {partition:#x}/{object:#x}: status {answer.status}, {answer.sense}")
        return answer

    def create_partition(self, partition):
        return self.must(CREATE_PARTITION, partition)

    def create(self, partition, object):
        return self.must(CREATE, partition, object)

    def store(self, partition, object, data):
        """A new object with content, as much at once as a command may write."""
        answer = self.must(CREATE_AND_WRITE, partition, object, data=data[:WRITE_BYTES_MAX])
        for at in range(WRITE_BYTES_MAX, len(data), WRITE_BYTES_MAX):
            answer = self.write(partition, object, at, data[at : at + WRITE_BYTES_MAX])
        return answer

    def write(self, partition, object, address, data, **rest):
        return self.must(WRITE, partition, object, address=address, data=data, **rest)

    def read(self, partition, object, address, length):
        """Exactly so many bytes, which are there."""
        return self.must(READ, partition, object, address=address, length=length).data

    def length(self, partition, object):
        wanted = (USER_INFORMATION, LOGICAL_LENGTH)
        return int.from_bytes(self.must(GET_ATTRIBUTES, partition, object, gets=[wanted]).attributes[wanted], "big")

    def set_length(self, partition, object, length):
        value = length.to_bytes(8, "big")
        return self.must(SET_ATTRIBUTES, partition, object, sets=[(USER_INFORMATION, LOGICAL_LENGTH, value)])

    def list(self, partition=0):
        """All IDs of user objects of a partition, or of partitions."""
        ids, first, identifier = [], 0, 0
        while True:
            command = Command(LIST, partition, length=24 + 8 * 1000, address=first, version=self.version)
            struct.pack_into(">I", command.cdb, 48 if self.version == 2 else 32, identifier)
            answer = command.run(self.session)
            if answer.status != GOOD:
                raise AssertionError(f"LIST of {partition:#x}: {answer.sense}")
            ids += [found for (found,) in struct.iter_unpack(">Q", answer.data[24:])]
            first, identifier = struct.unpack_from(">QI", answer.data, 8)
            if not first:
                return ids
