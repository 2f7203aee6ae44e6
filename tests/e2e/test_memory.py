# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Lists of history take no more memory when history is long, neither on the target nor on the host that asks."""

import os
import resource
import struct
import subprocess
import unittest

import osd
from harness import IQN, LIMIT_SECONDS, MUNINNCTL, E2ETest, children_of

LONG = 100_000  # entries of a list
VERSIONS_OF_PARTITION, VERSIONS_OF_DEVICE = 32_767, 28_672  # all that there can be
PIECE = 512  # bytes of one modification
MIB = 1 << 20

TARGET_GROWTH_MAX = 2 * MIB  # less than 24 bytes for each entry
CLIENT_GROWTH_MAX = MIB
STEP = MIB // 4  # in which limits are tried

# Caches as small as they can be: what fills them is no growth.
CONFIG = """
[daemon]
state_dir = {folder}
run_dir = {folder}
[target]
portal = 127.0.0.1:{port}
[lun 1]
type = osd
size = 1G
onode_cache = 64
directory_cache = 64
version_cache = 64
"""

EXECUTE, SUBSCRIBE, SNAPSHOT = 0x8F80, 0x0002, 0x0010
FEATURES = struct.pack(">HHIQ", 3, 0, 8, 0x1F)


def functions(session, function, partition, parameters=b"", count=1):
    """Runs a function so often, many at a time."""
    tasks = []
    for _ in range(count):
        command = osd.Command(EXECUTE, partition, length=64, address=function << 48 | len(parameters), data=parameters)
        command.read_length = 64
        tasks.append(command.submit(session))
    for task in tasks:
        session.wait(task)
        if task.status != osd.GOOD:
            raise AssertionError(f"function {function:#x}: status {task.status}, {task.sense.hex()}")


class Memory(E2ETest):
    """Partitions of a long and of a short history: 0x20000 and 0x10000."""

    @classmethod
    def setUpClass(cls):
        cls.holder = cls()
        cls.addClassCleanup(cls.holder.doCleanups)
        cls.holder.make()

    def make(self):
        cls = type(self)
        folder = self.folder()
        cls.server = self.daemon(state_dir=folder)
        cls.server = self.daemon(folder, config=CONFIG.format(folder=folder, port=cls.server.port), port=cls.server.port).start()
        cls.url = cls.server.url()
        (cls.target,) = children_of(cls.server.process.pid)
        for partition, entries, versions in ((0x10000, 10, 10), (0x20000, LONG, VERSIONS_OF_PARTITION)):
            self.ctl("mkpart", self.url, partition)
            self.ctl("create", self.url, f"{partition}/0x10000")
            self.ctl("snapshot", self.url, partition, "--name", "first")
            self.ctl("append", self.url, f"{partition}/0x10000", "--chunk", PIECE, stdin=b"x" * (PIECE * entries))
            for created in range(0, entries, LONG // 2):
                self.ctl("create", self.url, partition, "--count", min(LONG // 2, entries - created))
            with cls.server.session() as session:
                functions(session, SUBSCRIBE, 0, FEATURES)
                functions(session, SNAPSHOT, partition, count=versions - 1)
        with cls.server.session() as session:
            functions(session, SUBSCRIBE, 0, FEATURES)
            functions(session, SNAPSHOT, 0, count=VERSIONS_OF_DEVICE)

    def peak_of_target(self, *words):
        """Bytes by which the target's resident memory grows at most while the verb runs."""

        def resident(name):
            with open(f"/proc/{self.target}/status", encoding="ascii") as status:
                (line,) = (line for line in status if line.startswith(name + ":"))
            return int(line.split()[1]) << 10

        with open(f"/proc/{self.target}/clear_refs", "w", encoding="ascii") as reset:
            reset.write("5")  # the peak begins anew
        before = resident("VmRSS")
        lines = self.ctl(*words).count("\n")
        return resident("VmHWM") - before, lines

    @staticmethod
    def runs_with(data_bytes, *words):
        """Whether muninnctl can do it with so much memory of its own."""
        done = subprocess.run(
            [MUNINNCTL, *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (data_bytes, data_bytes)),
            timeout=LIMIT_SECONDS,
            check=False,
        )
        return done.returncode == 0

    def check_verb(self, entries, verb, address, *words):
        """`address` with {} in the place of the partition. A long list must do with the memory of a short one."""
        short = (verb, self.url, address.format(0x10000), *words)
        long = (verb, self.url, address.format(0x20000), *words)
        self.ctl(*long)  # caches and the allocator's pools are filled
        grown, lines = self.peak_of_target(*long)
        self.assertGreaterEqual(lines, entries)
        self.assertLess(grown, TARGET_GROWTH_MAX)
        limit = next(limit for limit in range(STEP, 64 * MIB, STEP) if self.runs_with(limit, *short))
        for form in ((), ("--json",)):
            self.assertTrue(self.runs_with(limit + CLIENT_GROWTH_MAX, *form, *long), f"{limit} bytes were enough for a short list")

    def test_the_log_of_a_hundred_thousand_modifications(self):
        self.check_verb(LONG, "log", "{}/0x10000")

    def test_a_hundred_thousand_differences(self):
        self.check_verb(LONG, "diff", "{}", "first")

    def test_as_many_versions_as_there_can_be(self):
        self.check_verb(VERSIONS_OF_PARTITION + VERSIONS_OF_DEVICE, "versions", "{}")

    def test_a_hundred_thousand_matches(self):
        self.check_verb(LONG, "search", "{}/0x10000", "x" * PIECE)

    def test_the_checksum_of_a_long_object(self):
        self.check_verb(1, "checksum", "{}/0x10000")

    def test_the_objects_of_a_moment(self):
        self.check_verb(LONG, "ls", "{}@now")


if __name__ == "__main__":
    unittest.main()
