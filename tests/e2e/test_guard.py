# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""What initiators may not send, and how much they may take: such a connection ends with a message, and the same tgtd goes
on for everybody else. Without the guard before tgtd, most of these PDUs kill it or write into its memory."""

import os
import socket
import struct
import time

import osd
from harness import IQN, LIMIT_SECONDS, SMALL_ROWS, E2ETest, OneDaemonTest, noise
from iscsi import BHS_BYTES, COMMAND, DATA_IN, DATA_OUT, FINAL, LOGIN, LOGOUT, NOP_OUT, R2T, READ, TAG_NONE, WRITE
from osd import Command, Osd

SANITIZED = True

IMMEDIATE, TEXT, TASK_MANAGEMENT, SNACK = 0x40, 0x04, 0x02, 0x10
O = 0x10000
MIB = 1 << 20


class Attacker:
    """A session, or half of one, that sends PDUs byte by byte as a test wants them."""

    def __init__(self, test, daemon, logged_in=True, **keys):
        self.daemon = daemon
        self.session = None
        self.waiting = b""
        if logged_in:
            self.session = daemon.session(name="iqn.2014-06.local.host:attacker", **keys)
            self.socket = self.session.socket
        else:
            self.socket = socket.create_connection(("127.0.0.1", daemon.port), timeout=LIMIT_SECONDS)
        test.addCleanup(self.close)

    def close(self):
        if self.session:
            self.session.close()
        self.socket.close()

    def pdu(self, opcode, flags=FINAL, tag=0x77, word=0, number=None, data=b"", segments=b"", length=None, more=False,
            **fields):  # fmt: skip
        """`word`: bytes 20..23; `number`: CmdSN, counted by itself for what is not immediate; `fields`: bytes by offset.
        `more`: goes with the next one."""
        header = bytearray(BHS_BYTES)
        header[0:2] = bytes([opcode, flags])
        header[4] = len(segments) // 4
        header[5:8] = (len(data) if length is None else length).to_bytes(3, "big")
        if number is None and self.session:
            number = self.session.cmd_sn
            if not opcode & IMMEDIATE and opcode != DATA_OUT:
                self.session.cmd_sn += 1
        struct.pack_into(">III", header, 16, tag, word, number or 0)
        for at, value in fields.items():
            at = int(at.lstrip("at"))
            header[at : at + len(value)] = value
        self.waiting += bytes(header) + segments + data + bytes(-len(data) % 4)
        if not more:
            self.socket.sendall(self.waiting)
            self.waiting = b""

    def text(self, text, flags=0x87, **rest):
        """A login request: by default from the operational stage to the full feature phase."""
        self.pdu(IMMEDIATE | LOGIN, flags, data=text, at8=b"\x80\0\0\0\0\7", **rest)

    def inquiry(self, **rest):
        """INQUIRY of 36 bytes to LUN 0."""
        self.pdu(COMMAND, **{"flags": FINAL | READ, "word": 36, "at32": b"\x12\0\0\0\x24", **rest})

    def write(self, length, **rest):
        """A command with Data-Out, for the OSD unit, which refuses its operation code."""
        self.pdu(COMMAND, **{"flags": FINAL | WRITE, "word": length, "at8": b"\0\1", "at32": b"\x0a", **rest})

    def expect_r2t(self):
        """Reads a request for data; returns its tag, offset and length."""
        header, _ = self.session._receive()
        assert header[0] == R2T, header
        return struct.unpack_from(">I", header, 20)[0], *struct.unpack_from(">II", header, 40)


def keys(**values):
    return b"".join(f"{key}={value}\0".encode() for key, value in values.items())


class GuardTest(E2ETest):
    def assert_ended(self, attacker, reason):
        """Its connection ends, with a message."""
        try:
            while attacker.socket.recv(1 << 16):
                pass
        except ConnectionResetError:
            pass
        attacker.daemon.wait_for_line(reason)

    def assert_serves(self, daemon, partition):
        """The same tgtd, with right data."""
        self.assertTrue(daemon.running(), daemon.errors)
        os.kill(daemon.tgtd_pid, 0)
        with daemon.session() as session:
            Osd(session).create_partition(partition)
            Osd(session).store(partition, O, noise(5000, partition))
            self.assertEqual(Osd(session).read(partition, O, 0, 5000), noise(5000, partition))


class MalformedTest(OneDaemonTest, GuardTest):
    """Base class: after each test the daemon still serves."""

    def setUp(self):
        self.attacker = Attacker(self, self.shared)

    def tearDown(self):
        self.assert_serves(self.shared, next(self.partitions))

    def assert_refused(self, reason):
        self.assert_ended(self.attacker, reason)

    def outside(self):
        """Drops the session; a connection that has not logged in."""
        self.attacker.close()
        self.attacker = Attacker(self, self.shared, logged_in=False)
        return self.attacker


class MalformedCommands(MalformedTest):
    def test_an_extended_cdb_of_length_0(self):
        self.attacker.inquiry(segments=struct.pack(">HBB", 0, 1, 0))
        self.assert_refused("an extended CDB of length 0")

    def test_an_extended_cdb_that_is_longer_than_its_segment(self):
        self.attacker.inquiry(segments=struct.pack(">HBBI", 200, 1, 0, 0))
        self.assert_refused("an extended CDB of 199 bytes in segments of 8")

    def test_more_segments_than_a_command_has(self):
        self.attacker.inquiry(segments=bytes(1020))
        self.assert_refused("additional header segments of 1020 bytes")

    def test_a_transfer_that_tgtd_takes_for_negative(self):
        for length in (0x7FFFFFFF, 0xFFFFFFFF):
            self.attacker.inquiry(word=length)
            self.assert_refused(f"a transfer of {length} bytes")
            self.attacker = Attacker(self, self.shared)

    def test_a_second_transfer_that_is_rounded_up_to_nothing(self):
        self.attacker.inquiry(flags=FINAL | READ | WRITE, word=0, segments=struct.pack(">HBBI", 5, 2, 0, 0xFFFFFFFD))
        self.assert_refused("a transfer of 4294967293 bytes")

    def test_immediate_data_beyond_the_transfer(self):
        self.attacker.write(64, data=bytes(128))
        self.assert_refused("immediate data of 128 bytes, and 64 may come")

    def test_immediate_data_beyond_the_first_burst(self):
        self.attacker.write(1 << 20, data=bytes(100000))
        self.assert_refused("immediate data of 100000 bytes, and 65536 may come")

    def test_data_with_a_command_that_reads(self):
        self.attacker.inquiry(data=bytes(8))
        self.assert_refused("PDU 01 with a data segment")

    def test_two_commands_with_one_tag(self):
        self.attacker.write(8192)
        self.attacker.write(8192)
        self.assert_refused("a second command with task tag 00000077")

    def test_a_command_number_ahead_of_its_turn(self):
        self.attacker.inquiry(number=7)
        self.assert_refused("CmdSN 7 in place of 1")

    def test_a_command_number_that_is_used(self):
        self.attacker.inquiry(number=0)
        self.assert_refused("CmdSN 0 in place of 1")

    def test_unsolicited_data_that_was_not_agreed_on(self):
        self.attacker.write(8192, flags=WRITE)
        self.assert_refused("unsolicited data, though InitialR2T is Yes")


class MalformedOthers(MalformedTest):
    def test_more_data_than_the_transfer_has(self):
        self.attacker.write(8192)
        tag, offset, length = self.attacker.expect_r2t()
        self.assertEqual((offset, length), (0, 8192))
        self.attacker.pdu(DATA_OUT, word=tag, data=bytes([0xEE]) * 200000)
        self.assert_refused("200000 bytes of data at offset 0, and 8192 may come")

    def test_data_behind_the_transfer(self):
        self.attacker.write(8192)
        tag, _, _ = self.attacker.expect_r2t()
        self.attacker.pdu(DATA_OUT, word=tag, data=bytes(8), at40=b"\x7f\xff\0\0")
        self.assert_refused("data at offset 2147418112 in place of 0")

    def test_data_that_nobody_has_asked_for(self):
        for transfer_tag, reason in ((5, "data that tgtd has not asked for"), (TAG_NONE, "unsolicited data that nobody")):
            self.attacker.write(8192)
            self.attacker.expect_r2t()
            self.attacker.pdu(DATA_OUT, word=transfer_tag, data=bytes(8))
            self.assert_refused(reason)
            self.attacker = Attacker(self, self.shared)

    def test_data_for_no_command(self):
        self.attacker.pdu(DATA_OUT, tag=5, word=TAG_NONE, data=bytes(8))
        self.assert_refused("data for no command")

    def test_a_data_segment_larger_than_the_target_takes(self):
        self.attacker.pdu(IMMEDIATE | NOP_OUT, word=TAG_NONE, length=1 << 20)
        self.assert_refused("a data segment of 1048576 bytes, and the target takes 262144")

    def test_data_and_segments_where_tgtd_has_no_room_for_them(self):
        for opcode, kind in ((TASK_MANAGEMENT, "02"), (LOGOUT, "06")):
            self.attacker.pdu(IMMEDIATE | opcode, FINAL | 1, data=bytes(4096))
            self.assert_refused(f"PDU {kind} with a data segment")
            self.attacker = Attacker(self, self.shared)
        self.attacker.pdu(IMMEDIATE | NOP_OUT, word=TAG_NONE, segments=bytes(512))
        self.assert_refused("PDU 00 with additional header segments")

    def test_kinds_of_pdus_that_no_session_has(self):
        for opcode in (TEXT, LOGIN, SNACK, 0x21, 0x3F):
            self.attacker.pdu(opcode)
            self.assert_refused(f"PDU {opcode:02x} in a session")
            self.attacker = Attacker(self, self.shared)
        self.attacker.pdu(IMMEDIATE | LOGOUT, more=True)
        self.attacker.pdu(IMMEDIATE | NOP_OUT, word=TAG_NONE)
        self.assert_refused("PDU 00 behind the logout")


class Controller(MalformedTest):
    def test_commands_of_lun_0_can_be_aborted_whatever_their_order(self):
        for turn in range(20):
            for tag in range(1, 9):
                ordered = 2 if tag % 2 else 3
                self.attacker.inquiry(flags=FINAL | READ | ordered, tag=turn << 8 | tag, more=True)
            for tag in range(1, 9):
                self.attacker.pdu(IMMEDIATE | TASK_MANAGEMENT, FINAL | 1, 0x1000 + tag, turn << 8 | tag, more=True)
            self.attacker.pdu(IMMEDIATE | NOP_OUT, word=TAG_NONE)
            while self.attacker.session._receive()[0][0] != 0x20:
                pass


class MalformedLogins(MalformedTest):
    NAMES = {"InitiatorName": "iqn.2014-06.local.host:a", "TargetName": IQN}

    def test_a_text_request_before_the_login(self):
        self.outside().pdu(TEXT, word=TAG_NONE, data=keys(SendTargets="All"))
        self.assert_refused("PDU 04 before a login")

    def test_a_login_into_somebody_elses_session(self):
        self.outside().text(keys(**self.NAMES), at14=b"\0\1")
        self.assert_refused("a login into another session")

    def test_a_segment_length_that_tgtd_pads_wrongly(self):
        self.outside().text(keys(**self.NAMES, MaxRecvDataSegmentLength="513"))
        self.assert_refused("a MaxRecvDataSegmentLength that is no multiple of 4")

    def test_names_that_would_write_lines_of_their_own_into_the_log(self):
        self.outside().text(keys(InitiatorName="iqn.2014-06.local.host:a\nmuninnd: all is well", TargetName=IQN))
        self.assert_refused("a control character in the value of a text key")

    def test_keys_that_are_too_long_or_too_many(self):
        for text, reason in (
            (b"a" * 64 + b"=b\0", "the name of a text key is too long"),
            (b"InitiatorAlias=" + b"b" * 256 + b"\0", "the value of a text key is too long"),
            (b"a=b\0" * 65, "a PDU has too many text keys"),
            (b"InitiatorName=iqn.2014-06.local.host:a", "a text ends inside of a key"),
            (b"InitiatorName\0=a\0", "a control character in the name of a text key"),
            (b"MaxQueueCmd=512\0", "a text key that is tgtd's own"),
            (b"CHAP_R=0b" + b"A" * 24 + b"\0", "a CHAP_R that is no digest"),
        ):
            self.outside().text(text)
            self.assert_refused(reason)

    def test_a_login_that_never_ends(self):
        attacker = self.outside()
        for _ in range(33):
            attacker.text(keys(**self.NAMES), flags=4)
        self.assert_refused("a login of too many requests")


class Limits(GuardTest):
    """Each with limits of its own."""

    def limited(self, **limits):
        lines = "".join(f"{key} = {value}\n" for key, value in limits.items())
        return self.daemon(config=f"[limits]\n{lines}{SMALL_ROWS}").start()

    def test_a_transfer_may_be_as_long_as_the_limit_says(self):
        daemon = self.limited(transfer="1M")
        with daemon.session() as session:
            device = Osd(session)
            device.create_partition(0x10000)
            device.store(0x10000, O, noise(MIB - 4096, 1))
            self.assertEqual(device.read(0x10000, O, 0, MIB - 4096), noise(MIB - 4096, 1))
        attacker = Attacker(self, daemon)
        attacker.inquiry(word=MIB + 1)
        self.assert_ended(attacker, f"a transfer of {MIB + 1} bytes, and the limit is {MIB}")
        self.assert_serves(daemon, 0x10001)

    def test_connections_without_a_login_end_and_let_others_in(self):
        daemon = self.limited(login_timeout=1, connections=200, connections_per_address=190)
        attackers = [Attacker(self, daemon, logged_in=False) for _ in range(300)]
        for attacker in attackers[:50]:
            try:
                attacker.socket.sendall(b"\x43\x87\0\0\0\0\1\0")
            except ConnectionError:
                pass
        self.assert_ended(attackers[-1], "too many connections from this address")
        self.assert_ended(attackers[0], "the login takes too long")
        for text in (" from this address", "the login takes too long"):
            self.assertEqual(len([line for line in daemon.errors if line.startswith("tgtd: muninn: ended") and line.endswith(text)]), 1)
        self.assert_serves(daemon, 0x10000)
        for attacker in attackers:
            self.assert_ended(attacker, "")
        limit = time.monotonic() + LIMIT_SECONDS
        while self.connections(daemon):
            self.assertLess(time.monotonic(), limit)

    @staticmethod
    def connections(daemon):
        """Sockets at its portal that belong to a process, and do not listen."""
        with open(f"/proc/{daemon.tgtd_pid}/net/tcp", encoding="ascii") as sockets:
            ends = [line.split() for line in sockets][1:]
        return [end for end in ends if end[1].endswith(f":{daemon.port:04X}") and end[3] != "0A" and end[9] != "0"]

    def test_an_initiator_that_stops_in_the_middle_is_cut_off(self):
        daemon = self.limited(stall_timeout=1)
        in_pdu, in_transfer, idle = (Attacker(self, daemon) for _ in range(3))
        in_pdu.socket.sendall(bytes(20))
        in_transfer.write(8192)
        for attacker in (in_pdu, in_transfer):
            self.assert_ended(attacker, "does not send the rest of a PDU or of a transfer")
        idle.inquiry()
        self.assertEqual(idle.session._receive()[0][0] & 0x3F, DATA_IN)  # still there, and answered
        self.assert_serves(daemon, 0x10000)

    def fill(self, daemon, size, count):
        """A session with `count` READs of an object of `size` that is not reading; its tasks."""
        session = daemon.session(MaxRecvDataSegmentLength="262144")
        self.addCleanup(session.close)
        Osd(session).create_partition(0x10000)
        Osd(session).store(0x10000, O, noise(size, 3))
        command = Command(osd.READ, 0x10000, O, length=size)
        return session, [session.submit(bytes(command.cdb), read_length=size + 4096) for _ in range(count)]

    def test_an_initiator_that_does_not_read_holds_up_nobody(self):
        daemon = self.limited(memory="64M", session_memory="32M", transfer="2M")
        reader, tasks = self.fill(daemon, MIB, 100)
        for turn in range(5):
            begun = time.monotonic()
            self.assert_serves(daemon, 0x20000 + turn)
            self.assertLess(time.monotonic() - begun, LIMIT_SECONDS / 2)
        reader.wait(*tasks)
        for task in tasks:
            self.assertEqual((task.status, task.data_in[:MIB]), (0, noise(MIB, 3)))

    def test_an_initiator_that_never_reads_is_cut_off(self):
        daemon = self.limited(stall_timeout=1)
        self.fill(daemon, MIB, 20)
        daemon.wait_for_line("does not read its answers")
        self.assert_serves(daemon, 0x20000)

    def test_a_session_waits_while_its_commands_have_all_memory_that_they_may_have(self):
        daemon = self.limited(commands=128, session_memory="1M", memory="1M", transfer="1M")
        piece, pieces = 100000, 12
        with daemon.session() as session:
            device = Osd(session)
            device.create_partition(0x10000)
            device.create(0x10000, O)
            writes = [
                Command(osd.WRITE, 0x10000, O, address=at * piece, data=noise(piece, at)).submit(session)
                for at in range(pieces)
            ]
            session.wait(*writes)
            self.assertEqual({task.status for task in writes}, {0})
            read = Command(osd.READ, 0x10000, O, length=300000)
            reads = [read.submit(session) for _ in range(200)]
            session.wait(*reads)
            expected = b"".join(noise(piece, at) for at in range(3))
            for task in reads:
                self.assertEqual((task.status, task.data_in), (0, expected))
        self.assertFalse([line for line in daemon.errors if "ended" in line])
