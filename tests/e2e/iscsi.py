# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A small iSCSI initiator (RFC 7143, error recovery level 0, no digests, no CHAP), made for tests: it offers whatever
keys a test wants, sends CDBs of any length and wrong ones too, and notes how data travelled. It shares no code with
client/, so that a mistake made on both sides there shows here."""

import itertools
import socket
import struct

BHS_BYTES = 48
TAG_NONE = 0xFFFFFFFF
NOP_OUT, COMMAND, LOGIN, DATA_OUT, LOGOUT = 0x00, 0x01, 0x03, 0x05, 0x06
NOP_IN, RESPONSE, LOGIN_RESPONSE, DATA_IN, LOGOUT_RESPONSE, R2T, REJECT = 0x20, 0x21, 0x23, 0x25, 0x26, 0x31, 0x3F
FINAL, READ, WRITE = 0x80, 0x40, 0x20

KEYS = {
    "HeaderDigest": "None",
    "DataDigest": "None",
    "InitialR2T": "Yes",
    "ImmediateData": "Yes",
    "MaxBurstLength": "262144",
    "FirstBurstLength": "65536",
    "MaxRecvDataSegmentLength": "65536",
    "MaxOutstandingR2T": "1",
    "MaxConnections": "1",
    "DataPDUInOrder": "Yes",
    "DataSequenceInOrder": "Yes",
    "ErrorRecoveryLevel": "0",
    "DefaultTime2Wait": "0",
    "DefaultTime2Retain": "0",
}


class ProtocolError(Exception):
    """The target did what RFC 7143 does not allow."""


class Task:
    """One command, and what became of it."""

    def __init__(self, data_out, read_length):
        self.data_out = memoryview(data_out)
        self.room = bytearray(read_length)
        self.done = False
        self.status = None
        self.sense = b""
        self.received = 0  # bytes of Data-In that came
        self.out_residual = 0  # > 0: bytes not used; < 0: bytes that the target missed
        self.in_residual = 0
        self.immediate = 0  # bytes sent with the command
        self.unsolicited = 0  # bytes sent behind it without an R2T
        self.r2ts = []  # (offset, length) of each
        self.data_ins = []  # lengths of the Data-In PDUs
        self.sequence = 0

    @property
    def data_in(self):
        return bytes(self.room[: self.received])


class Session:
    """A logged-in session with one connection. Not for several threads."""

    attribute = 1  # of the tasks to come: SIMPLE
    isids = itertools.count(1)

    def __init__(self, port, target, lun=1, name="iqn.2014-06.local.host:e2e", limit_seconds=120, isid=None, **keys):
        """`isid`: with `name`, which port of the initiator this is; None: one of its own. `keys`: what it offers."""
        self.isid = next(self.isids) if isid is None else isid
        self.lun = bytes([0, lun]) + bytes(6)
        self.cmd_sn = 1
        self.exp_stat_sn = 0
        self.max_cmd_sn = 1
        self.next_tag = 1
        self.tasks = {}
        self.agreed = {**KEYS, **keys}
        self.target_segment = 8192
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=limit_seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = self.socket.makefile("rb", buffering=1 << 18)
        try:
            self._login({"InitiatorName": name, "TargetName": target, "SessionType": "Normal", **self.agreed})
        except BaseException:
            self.close()
            raise
        self.immediate_data = self.agreed["ImmediateData"] == "Yes"
        self.initial_r2t = self.agreed["InitialR2T"] == "Yes"
        self.max_burst = int(self.agreed["MaxBurstLength"])
        self.first_burst = min(int(self.agreed["FirstBurstLength"]), self.max_burst)
        self.own_segment = int(self.agreed["MaxRecvDataSegmentLength"])

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.logout()
        finally:
            self.close()

    def close(self):
        """Drops the connection without a word."""
        self.stream.close()
        self.socket.close()

    # ---- PDUs ----

    def _send(self, header, data=b""):
        """`header`: BHS and additional segments; the data segment's length is filled in here."""
        header = bytearray(header)
        header[5:8] = len(data).to_bytes(3, "big")
        self.socket.sendall(b"".join((header, data, bytes(-len(data) % 4))))

    def _receive(self):
        """Basic header and data segment of the next PDU."""
        header = self.stream.read(BHS_BYTES)
        if len(header) < BHS_BYTES:
            raise ConnectionError("the target closed the connection")
        length = int.from_bytes(header[5:8], "big")
        skipped = self.stream.read(4 * header[4])
        data = self.stream.read(length + -length % 4)
        if len(skipped) + len(data) < 4 * header[4] + length:
            raise ConnectionError("the target closed the connection inside a PDU")
        return header, memoryview(data)[:length]

    def _login(self, keys):
        text = b"".join(f"{key}={value}\0".encode() for key, value in keys.items())
        header = bytearray(BHS_BYTES)
        header[0:2] = bytes([0x40 | LOGIN, 0x80 | 1 << 2 | 3])  # transit from operational to full feature phase
        header[8:14] = b"\x80" + self.isid.to_bytes(5, "big")
        header[24:28] = self.cmd_sn.to_bytes(4, "big")
        self._send(header, text)
        while True:
            answer, data = self._receive()
            if answer[0] != LOGIN_RESPONSE or answer[36] != 0:
                raise ConnectionRefusedError(f"login refused, status {answer[36]:02x}{answer[37]:02x}")
            for line in bytes(data).split(b"\0"):
                key, found, value = line.decode().partition("=")
                if key == "MaxRecvDataSegmentLength":
                    self.target_segment = int(value)  # declared by each side for itself
                elif found:
                    self.agreed[key] = value
            self.exp_stat_sn = (int.from_bytes(answer[24:28], "big") + 1) & 0xFFFFFFFF
            self.max_cmd_sn = int.from_bytes(answer[32:36], "big")
            if answer[1] & 0x80:
                return
            header[28:32] = self.exp_stat_sn.to_bytes(4, "big")
            self._send(header)

    def logout(self):
        header = bytearray(BHS_BYTES)
        header[0:2] = bytes([0x40 | LOGOUT, FINAL])
        struct.pack_into(">I4xII", header, 16, TAG_NONE - 1, self.cmd_sn, self.exp_stat_sn)
        self._send(header)
        while self._receive()[0][0] != LOGOUT_RESPONSE:
            pass

    # ---- commands ----

    def _command_header(self, task, tag, cdb, immediate, final):
        """BHS, extended-CDB segment when the CDB needs one, read-length segment of bidirectional commands."""
        both = len(task.data_out) > 0 and len(task.room) > 0
        segments = b""
        if len(cdb) > 16:
            rest = cdb[16:]
            segments += struct.pack(">HBB", len(rest) + 1, 1, 0) + rest + bytes(-len(rest) % 4)
        if both:
            segments += struct.pack(">HBBI", 5, 2, 0, len(task.room))
        header = bytearray(BHS_BYTES)
        flags = self.attribute | (FINAL if final else 0) | (READ if task.room else 0) | (WRITE if task.data_out else 0)
        header[0:2] = bytes([COMMAND, flags])
        header[4] = len(segments) // 4
        header[8:16] = self.lun
        length = len(task.data_out) or len(task.room)
        struct.pack_into(">IIII", header, 16, tag, length, self.cmd_sn, self.exp_stat_sn)
        header[32 : 32 + len(cdb[:16])] = cdb[:16]
        assert immediate <= self.target_segment
        return header + segments

    def submit(self, cdb, data_out=b"", read_length=0):
        """Sends a command with all data that may go without being asked for; returns its Task."""
        task = Task(data_out, read_length)
        while (self.max_cmd_sn - self.cmd_sn) & 0x80000000:
            self.step()
        tag, self.next_tag = self.next_tag, self.next_tag + 1
        self.tasks[tag] = task
        total = len(task.data_out)
        if self.immediate_data:
            task.immediate = min(total, self.first_burst, self.target_segment)
        free = min(total, self.first_burst) if not self.initial_r2t else task.immediate
        task.unsolicited = free - task.immediate
        header = self._command_header(task, tag, bytes(cdb), task.immediate, final=task.unsolicited == 0)
        self._send(header, task.data_out[: task.immediate])
        self.cmd_sn = (self.cmd_sn + 1) & 0xFFFFFFFF
        if task.unsolicited:
            self._send_data(task, tag, TAG_NONE, task.immediate, task.unsolicited)
        return task

    def _send_data(self, task, tag, transfer_tag, offset, length):
        """One burst of Data-Out."""
        end, number = offset + length, 0
        while offset < end:
            size = min(self.target_segment, end - offset)
            header = bytearray(BHS_BYTES)
            header[0:2] = bytes([DATA_OUT, FINAL if offset + size == end else 0])
            header[8:16] = self.lun
            struct.pack_into(">II", header, 16, tag, transfer_tag)
            struct.pack_into(">I4xII", header, 28, self.exp_stat_sn, number, offset)
            self._send(header, task.data_out[offset : offset + size])
            offset += size
            number += 1

    def step(self):
        """Receives one PDU and does what it asks for."""
        header, data = self._receive()
        opcode = header[0] & 0x3F
        if opcode == NOP_IN:
            return self._answer_nop(header)
        tag = int.from_bytes(header[16:20], "big")
        task = self.tasks.get(tag)
        if opcode not in (R2T, DATA_IN, RESPONSE) or task is None:
            raise ProtocolError(f"unexpected PDU {opcode:#04x} for tag {tag:#x}: {header.hex()}")
        self.max_cmd_sn = int.from_bytes(header[32:36], "big")
        if opcode == R2T:
            return self._take_r2t(task, tag, header)
        if opcode == DATA_IN:
            self._take_data(task, header, data)
            if not header[1] & 1:
                return None
        else:
            self._take_response(task, header, data)
        self.exp_stat_sn = (int.from_bytes(header[24:28], "big") + 1) & 0xFFFFFFFF
        self.tasks.pop(tag).done = True
        return None

    def _answer_nop(self, header):
        if header[20:24] != b"\xff\xff\xff\xff":
            answer = bytearray(BHS_BYTES)
            answer[0:2] = bytes([0x40 | NOP_OUT, FINAL])
            answer[8:16] = header[8:16]
            struct.pack_into(">I", answer, 16, TAG_NONE)
            answer[20:24] = header[20:24]
            struct.pack_into(">II", answer, 24, self.cmd_sn, self.exp_stat_sn)
            self._send(answer)

    def _in_sequence(self, task, number):
        if number != task.sequence:
            raise ProtocolError(f"DataSN or R2TSN {number} where {task.sequence} is due")
        task.sequence += 1

    def _take_r2t(self, task, tag, header):
        number, offset, length = struct.unpack_from(">III", header, 36)
        self._in_sequence(task, number)
        asked = task.immediate + task.unsolicited + sum(size for _, size in task.r2ts)
        if offset != asked or not 0 < length <= self.max_burst or offset + length > len(task.data_out):
            raise ProtocolError(f"R2T for {length} bytes at {offset}, {asked} of {len(task.data_out)} were asked for")
        task.r2ts.append((offset, length))
        self._send_data(task, tag, int.from_bytes(header[20:24], "big"), offset, length)

    def _take_data(self, task, header, data):
        number, offset = struct.unpack_from(">II", header, 36)
        self._in_sequence(task, number)
        if len(data) > self.own_segment or offset != task.received or offset + len(data) > len(task.room):
            raise ProtocolError(f"Data-In of {len(data)} bytes at {offset}, {task.received} of {len(task.room)} came")
        task.room[offset : offset + len(data)] = data
        task.received += len(data)
        task.data_ins.append(len(data))
        if header[1] & 1:
            task.status = header[3]
            self._take_residuals(task, header)

    def _take_response(self, task, header, data):
        if header[2] != 0:
            raise ProtocolError(f"SCSI Response with response code {header[2]:#04x}")
        task.status = header[3]
        if len(data) >= 2:
            task.sense = bytes(data[2 : 2 + int.from_bytes(data[:2], "big")])
        self._take_residuals(task, header)

    @staticmethod
    def _take_residuals(task, header):
        read_residual, residual = struct.unpack_from(">II", header, 40)
        if header[0] == DATA_IN:
            read_residual = 0  # DataSN and offset stand there
        main = residual if header[1] & 0x02 else -residual if header[1] & 0x04 else 0
        other = read_residual if header[1] & 0x08 else -read_residual if header[1] & 0x10 else 0
        if len(task.data_out) and len(task.room):
            task.out_residual, task.in_residual = main, other
        elif len(task.room):
            task.in_residual = main
        else:
            task.out_residual = main

    def wait(self, *tasks):
        """Until all of them are done; returns the last one."""
        while not all(task.done for task in tasks):
            self.step()
        return tasks[-1]

    def run(self, cdb, data_out=b"", read_length=0):
        return self.wait(self.submit(cdb, data_out, read_length))
