#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Sessions of mutated PDUs against a real tgtd behind the guard: logins, commands, data, answers to R2Ts, task management,
with digests and without, several connections at once. `make fuzz-pdu` runs it for SECONDS; test_pdu_sessions.py some
thousand sessions. Each session follows from the seed and its number alone.

    tests/e2e/pdu_sessions.py --seconds 60
    tests/e2e/pdu_sessions.py --seed 7 --first 1234 --sessions 1
    tests/e2e/pdu_sessions.py --tgtd PROGRAM      # another tgtd, see docs/testing.md
"""

import argparse
import os
import random
import socket
import struct
import sys
import tempfile
import time
from itertools import count

from harness import BUILD, IQN, SMALL_ROWS, Daemon, noise
from iscsi import COMMAND, DATA_OUT, FINAL, LOGIN, LOGOUT, NOP_IN, NOP_OUT, R2T, READ, TAG_NONE, WRITE
from osd import Osd

IMMEDIATE, TASK_MANAGEMENT, TEXT, SNACK = 0x40, 0x02, 0x04, 0x10
BARRIER = 0xBA221E2
NAME = "iqn.2014-06.local.host:fuzz"
CHECK_EVERY = 500  # sessions
TELL_EVERY = 20_000
ANSWER_SECONDS = 0.02  # a mutated length makes the target wait for the rest
LEFT_OPEN = 12  # connections
GROWTH_BYTES = 96 << 20  # of tgtd between the first check and any later one
INTERESTING = (0, 1, 3, 4, 5, 7, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF)

CRC_TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ (0x82F63B78 if _byte & 1 else 0)
    CRC_TABLE.append(_byte)


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = CRC_TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return (value ^ 0xFFFFFFFF).to_bytes(4, "little")


class FuzzSession:
    """One connection that sends what its dice say. `sent` and `mutated` count PDUs; `whole`: it came to commands."""

    def __init__(self, dice, port):
        self.dice = dice
        self.sent = self.mutated = 0
        self.whole = False
        self.number = 1
        self.digests = False
        self.tags = []
        self.asked = []  # (tag, transfer tag, offset, length)
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(ANSWER_SECONDS)
        self.received = b""
        # One in four sessions has no mistake before the data.
        self.wildness = dice.choice((0, 0.03, 0.1, 0.4))

    # ---- PDUs ----

    def pdu(self, opcode, flags, tag=0, word=0, data=b"", segments=b"", at8=b"", at32=b"", digested=True):
        dice = self.dice
        header = bytearray(48)
        header[0:2] = bytes((opcode, flags))
        header[4] = len(segments) // 4
        header[5:8] = len(data).to_bytes(3, "big")
        header[8 : 8 + len(at8)] = at8
        struct.pack_into(">III", header, 16, tag, word, self.number)
        header[32 : 32 + len(at32)] = at32
        if not opcode & IMMEDIATE and opcode != DATA_OUT:
            self.number += 1
        segments, data = bytearray(segments), bytearray(data)
        as_it_should_be = bytes(header), bytes(segments), bytes(data)
        while dice.random() < self.wildness:
            self.mutate(header, segments, data)
        self.sent += 1
        self.mutated += as_it_should_be != (header, segments, data)
        data += bytes(-len(data) % 4)
        if self.digests and digested and dice.random() > 0.02:
            head = bytes(header + segments)
            return head + crc32c(head) + (bytes(data) + crc32c(data) if data else b"")
        return bytes(header + segments + data)

    def mutate(self, header, segments, data):
        dice = self.dice
        kind = dice.randrange(8)
        if kind < 3:
            at = dice.choice((16, 20, 24, 28, 36, 40, 44))
            struct.pack_into(">I", header, at, dice.choice(INTERESTING))
        elif kind == 3:
            header[dice.randrange(48)] ^= 1 << dice.randrange(8)
        elif kind == 4:
            header[dice.choice((0, 1, 4, 5, 6, 7))] = dice.randrange(256)
        elif kind == 5 and segments:
            segments[dice.randrange(min(len(segments), 8))] = dice.choice((0, 1, 2, 5, 0xFF))
        elif kind == 6:
            data += dice.randbytes(dice.choice((1, 4, 64, 4096)))
            header[5:8] = len(data).to_bytes(3, "big")
        elif data:
            data[dice.randrange(len(data))] = dice.choice((0, 0x3D, 0x2C, 0x0A, 0xFF))

    def login(self, keys, flags=0x87):
        text = b"".join(f"{key}={value}\0".encode() for key, value in keys)
        return self.pdu(IMMEDIATE | LOGIN, flags, data=text, at8=b"\x80" + self.dice.randbytes(5) + b"\0\0", digested=False)

    def command(self):
        dice = self.dice
        self.tags.append(dice.randrange(1, 64) if dice.random() < 0.05 else dice.getrandbits(31))
        lun = b"\0" + bytes((dice.choice((0, 1, 1, 1, 7)),))
        length = dice.choice((0, 4, 36, 512, 4095, 8192, 70000, 300000))
        flags = dice.choice((0, READ, WRITE, READ | WRITE))
        cdb, segments, data = dice.choice((b"\x12\0\0\0\x24", b"\x12\1\x83\0\xff", b"\0", b"\xa0" + bytes(8) + b"\x24", b"\xa3\x0c", b"\x03\0\0\0\xfc")), b"", b""
        if dice.random() < 0.5:
            action = dice.choice((0x8885, 0x8886, 0x8883, 0x888E, 0x8892))
            cdb = b"\x7f" + bytes(6) + b"\xe4" + action.to_bytes(2, "big") + bytes(2) + bytes(4)
            rest = dice.choice((220, 184, 0, 7)) * b"\0"
            segments = struct.pack(">HBB", len(rest) + 1, 1, 0) + rest + bytes(-len(rest) % 4)
        if flags == READ | WRITE:
            segments += struct.pack(">HBBI", 5, 2, 0, dice.choice((0, 4096, 300000)))
        if flags & WRITE:
            data = bytes(min(length, dice.choice((0, length, 4096, 65536))))
        more = flags & WRITE and len(data) < length and dice.random() < 0.2
        opcode = COMMAND | (IMMEDIATE if dice.random() < 0.1 else 0)
        pdu = self.pdu(opcode, flags | 1 | (0 if more else FINAL), self.tags[-1], length, data, segments, lun, cdb)
        if more:
            rest = length - len(data)
            size = min(rest, 65536 - len(data))
            pdu += self.data(self.tags[-1], TAG_NONE, len(data), max(size, 0))
        return pdu

    def data(self, tag, transfer_tag, offset, length):
        at = bytes(8) + offset.to_bytes(4, "big")
        if length > 8192 and self.dice.random() < 0.3:
            half = length // 2 & ~3
            head = self.pdu(DATA_OUT, 0, tag, transfer_tag, bytes(half), at32=bytes(4) + at[4:])
            return head + self.data(tag, transfer_tag, offset + half, length - half)
        return self.pdu(DATA_OUT, FINAL, tag, transfer_tag, bytes(length), at32=at)

    def any(self):
        dice = self.dice
        kind = dice.randrange(16 if self.wildness else 13)
        if kind < 9:
            return self.command()
        if kind < 11:
            tag = dice.choice((TAG_NONE, dice.getrandbits(31)))
            return self.pdu(IMMEDIATE | NOP_OUT, FINAL, tag, TAG_NONE, bytes(dice.choice((0, 0, 5, 4000)) if tag != TAG_NONE else 0))
        if kind < 13:
            rtt = dice.choice(self.tags or [1])
            return self.pdu(IMMEDIATE | TASK_MANAGEMENT, FINAL | dice.choice((1, 1, 2, 5, 3, 8, 0x55)), dice.getrandbits(31), rtt, at8=b"\0\1")
        if kind == 13 and self.tags:
            return self.data(dice.choice(self.tags), dice.choice((TAG_NONE, 1)), dice.choice((0, 4096, 8192)), 512)
        if kind == 14 and dice.random() < 0.3:
            return self.pdu(dice.choice((TEXT, SNACK, LOGOUT, 0x1C, 0x3F)), FINAL, 5, TAG_NONE, b"SendTargets=All\0")
        if kind == 15 and dice.random() < 0.2:
            return dice.randbytes(48)
        return self.command()

    # ---- what comes back ----

    def receive_until(self, wanted):
        """Reads PDUs until this opcode; notes R2Ts. False: the connection is closed, or nothing more comes."""
        while True:
            while len(self.received) >= 48:
                header = self.received[:48]
                length = int.from_bytes(header[5:8], "big")
                whole = 48 + 4 * header[4] + length + -length % 4
                if self.digests and header[0] & 0x3F != 0x23:
                    whole += 4 + (4 if length else 0)
                if len(self.received) < whole:
                    break
                self.received = self.received[whole:]
                if header[0] == R2T:
                    self.asked.append(struct.unpack_from(">II16xII", header, 16))
                if header[0] == wanted:
                    self.last = header
                    return header[36] == 0 if wanted == 0x23 else True
            try:
                more = self.socket.recv(1 << 18)
            except OSError:
                return False
            if not more:
                return False
            self.received += more

    # ---- kinds of sessions ----

    def run(self):
        try:
            self.discover_or_fail() if self.dice.random() < 0.25 else self.work()
        except OSError:
            pass  # the target has ended it

    def keys(self):
        dice = self.dice
        keys = [("InitiatorName", NAME), ("TargetName", IQN), ("SessionType", "Normal")]
        offers = (
            ("MaxRecvDataSegmentLength", dice.choice(("65536", "262144", "512", "513", "99999999"))),
            ("InitialR2T", dice.choice(("Yes", "No"))),
            ("ImmediateData", dice.choice(("Yes", "No", "Maybe"))),
            ("FirstBurstLength", dice.choice(("512", "65536", "262144", "0", "-1"))),
            ("MaxBurstLength", dice.choice(("512", "262144", "16777215"))),
            ("InitiatorAlias", "x" * dice.choice((1, 255, 256, 4000))),
            ("MaxQueueCmd", "512"),
            ("RDMAExtensions", "Yes"),
            ("X-com.example", "?"),
        )
        return keys + [offer for offer in offers if dice.random() < 0.12]

    def discover_or_fail(self):
        dice = self.dice
        keys = self.keys()
        if dice.random() < 0.5:
            keys[2] = ("SessionType", "Discovery")
        if dice.random() < 0.3:
            keys.append(("AuthMethod", dice.choice(("None", "CHAP,None", "CHAP", ",,,"))))
        flags = dice.choice((0x87, 0x81, 0x83, 0x04, 0x00, 0xC7, dice.randrange(256)))
        self.socket.sendall(self.login(keys, flags))
        for _ in range(dice.randrange(4)):
            if not self.receive_until(0x23):
                break
            follow = dice.choice((self.login(keys, dice.choice((0x87, 0x04))), self.pdu(TEXT, FINAL, 1, TAG_NONE, b"SendTargets=All\0"),
                                  self.login([("CHAP_A", "5,7")], 0), self.login([("CHAP_N", "u"), ("CHAP_R", "0b" + "A" * dice.choice((22, 24, 28, 40)))], 0x81)))  # fmt: skip
            self.socket.sendall(follow)

    def work(self):
        dice = self.dice
        digest = "CRC32C" if dice.random() < 0.1 else "None"
        keys = self.keys() + [("HeaderDigest", digest), ("DataDigest", digest)]
        wildness, self.wildness = self.wildness, 0
        self.last = b"\0\0"
        while not self.last[1] & 0x80:  # tgtd wants to say more
            self.socket.sendall(self.login(keys))
            keys = []
            if not self.receive_until(0x23):
                return
        self.digests = digest == "CRC32C"
        self.wildness = wildness
        self.whole = True
        for _ in range(dice.randrange(1, 4)):
            batch = b"".join(self.any() for _ in range(dice.randrange(1, 10)))
            for asked in self.asked[:4]:
                batch += self.data(*asked)
            self.asked = []
            wildness, self.wildness = self.wildness, 0
            batch += self.pdu(IMMEDIATE | NOP_OUT, FINAL, BARRIER, TAG_NONE)
            self.wildness = wildness
            self.socket.sendall(batch)
            if not self.receive_until(NOP_IN):
                return
        if dice.random() < 0.3:
            self.socket.sendall(self.pdu(IMMEDIATE | LOGOUT, FINAL, 1))

    def close(self):
        self.socket.close()


class Fuzzer:
    """Runs sessions against one daemon, and looks after it."""

    def __init__(self, daemon, seed):
        self.daemon = daemon
        self.seed = seed
        self.sessions = self.whole = self.pdus = self.mutated = 0
        self.open = []
        self.partitions = count(0x20000)
        self.memory, self.descriptors = None, self.resources()[1]

    def run(self, number):
        dice = random.Random(self.seed << 32 | number)
        try:
            session = FuzzSession(dice, self.daemon.port)
        except OSError as error:
            self.fail(number, f"tgtd takes no connection: {error!r}")
        session.run()
        self.sessions += 1
        self.whole += session.whole
        self.pdus += session.sent
        self.mutated += session.mutated
        if dice.random() < 0.2:
            self.open.append(session)
            while len(self.open) > LEFT_OPEN:
                self.open.pop(dice.randrange(len(self.open))).close()
        else:
            session.close()
        if self.sessions % CHECK_EVERY == 0:
            self.check(number)

    def counts(self):
        return (f"seed {self.seed}: {self.sessions} sessions, {self.whole} of them up to commands; {self.pdus} PDUs, "
                f"{self.mutated} of them mutated")  # fmt: skip

    def resources(self):
        """Bytes of memory and open descriptors of tgtd."""
        with open(f"/proc/{self.daemon.tgtd_pid}/statm", encoding="ascii") as statm:
            pages = int(statm.read().split()[1])
        return pages * os.sysconf("SC_PAGESIZE"), len(os.listdir(f"/proc/{self.daemon.tgtd_pid}/fd"))

    def fail(self, number, what):
        first = max(0, number - CHECK_EVERY + 1)
        raise AssertionError(
            f"{what}\nin sessions {first} to {number}: tests/e2e/pdu_sessions.py --seed {self.seed} --first {first} "
            f"--sessions {CHECK_EVERY}\n" + "\n".join(self.daemon.errors[-20:])
        )

    def check(self, number):
        """The same tgtd serves right data, and has not grown."""
        for session in self.open:
            session.close()
        self.open = []
        partition = next(self.partitions)
        try:
            os.kill(self.daemon.tgtd_pid, 0)
            # A reset that it still reads would be told to the good session.
            self.wait_for_resources(number)
            with self.daemon.session(name=NAME) as session:
                device = Osd(session)
                device.create_partition(partition)
                device.store(partition, 0x10000, noise(100000, partition))
                if device.read(partition, 0x10000, 0, 100000) != noise(100000, partition):
                    self.fail(number, "wrong data")
                device.must(0x888A, partition, 0x10000)
                device.must(0x888C, partition)
        except (OSError, ConnectionError) as error:
            self.fail(number, f"a good session fails: {error!r}")
        self.memory = self.memory or self.resources()[0]

    def wait_for_resources(self, number):
        """Until it has no more descriptors than without a session, and little more memory than at the first check."""
        limit = time.monotonic() + 60
        while True:
            memory, descriptors = self.resources()
            if memory <= (self.memory or memory) + GROWTH_BYTES and descriptors <= self.descriptors:
                return
            if time.monotonic() > limit:
                before = self.memory, self.descriptors
                self.fail(number, f"tgtd has grown from {before} to {(memory, descriptors)} (bytes, descriptors)")
            time.sleep(0.01)


def prepare(daemon):
    """Starts it, and lets sessions agree on what muninnd does not offer: unsolicited data, digests."""
    daemon.start()
    for name, value in (("InitialR2T", "No"), ("HeaderDigest", "CRC32C,None"), ("DataDigest", "CRC32C,None")):
        daemon.tgtadm("--mode", "target", "--op", "update", "--tid", "1", "--name", name, "--value", value)


CONFIG = f"""[target]
allow_name = {NAME}
[limits]
stall_timeout = 2
login_timeout = 2
transfer = 4M
session_memory = 16M
memory = 64M
""" + SMALL_ROWS


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=int, help="how long; default: as many sessions as --sessions says")
    parser.add_argument("--sessions", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=int(time.time()) & 0xFFFFFF)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--tgtd", help="another tgtd than /usr/sbin/tgtd")
    options = parser.parse_args()
    os.makedirs(os.path.join(BUILD, "e2e"), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.join(BUILD, "e2e")) as folder:
        config = CONFIG.replace("[target]", f"[daemon]\ntgtd = {options.tgtd}\n[target]") if options.tgtd else CONFIG
        daemon = Daemon(folder, config=config)
        prepare(daemon)
        fuzzer = Fuzzer(daemon, options.seed)
        begun = time.monotonic()
        try:
            for number in count(options.first):
                over = time.monotonic() - begun
                if over >= options.seconds if options.seconds else fuzzer.sessions >= options.sessions:
                    break
                fuzzer.run(number)
                if fuzzer.sessions % TELL_EVERY == 0:
                    print(f"{fuzzer.counts()}; {over:.0f} s", flush=True)
            fuzzer.check(number)
        except BaseException:
            print("\n".join(daemon.errors[-30:]), file=sys.stderr)
            raise
        finally:
            if daemon.running():
                daemon.stop()
        ended = sum("ended a connection" in line for line in daemon.errors)
        print(f"{fuzzer.counts()}; {time.monotonic() - begun:.0f} s, {ended} messages of the guard")


if __name__ == "__main__":
    main()
