# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""What FLUSH and FUA promise, and what opening a device costs; both told by the kernel's counts of memory pages."""

import os
import re
import subprocess
import unittest

import osd
from harness import E2ETest, noise
from osd import Osd

P = 0x10000
O = 0x10000
FLUSH_ALL = 2  # scope of FLUSH PARTITION and FLUSH OSD: everything below
OBJECTS = 10_000
# What may be looked at of an image when it is opened, whatever it holds.
OPEN_KIB_MAX = 3072  # each page that is looked at brings the 64 KiB around it; the newest root is searched by halves


def mapped_kib(pid, path):
    """(resident, dirty) KiB of a file that the process has mapped."""
    counts, inside = {"Rss": 0, "Shared_Dirty": 0, "Private_Dirty": 0}, False
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as listing:
        for line in listing:
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                inside = line.rstrip("\n").endswith(path)
            elif inside and line.split(":")[0] in counts:
                counts[line.split(":")[0]] += int(line.split()[1])
    return counts["Rss"], counts["Shared_Dirty"] + counts["Private_Dirty"]


class Flushing(E2ETest):
    def setUp(self):
        self.device = self.daemon(size="64M").start()
        kind = subprocess.run(
            ["stat", "-f", "-c", "%T", self.device.state_dir], capture_output=True, text=True, check=True
        ).stdout.strip()
        if kind in ("tmpfs", "ramfs"):
            self.skipTest("a file system in memory has nothing to write to")

    def unwritten_kib(self):
        """Of the NVRAM, which every command changes."""
        return mapped_kib(self.device.tgtd_pid, self.device.image() + ".nvram")[1]

    def flush_until_nothing_is_left(self, flush, number):
        """Full buffers may be on their way to flash; that goes on behind a flush and changes the NVRAM."""
        for _ in range(100):
            flush()
            if self.unwritten_kib() == 0:
                return
        self.fail(f"flush {number} leaves {self.unwritten_kib()} KiB unwritten")

    def test_after_a_flush_of_any_kind_nothing_is_left_to_write(self):
        with self.device.session() as session:
            device = Osd(session)
            device.create_partition(P)
            device.create(P, O)
            url = self.device.url()
            for number, flush in enumerate(
                (
                    lambda: device.must(osd.FLUSH, P, O),
                    lambda: device.must(osd.FLUSH_PARTITION, P, scope=FLUSH_ALL),
                    lambda: device.must(osd.FLUSH_OSD, scope=FLUSH_ALL),
                    lambda: Osd(session, 1).must(osd.FLUSH, P, O),
                    lambda: device.write(P, O, 0, b"forced", options=osd.FUA),
                    lambda: device.must(osd.APPEND, P, O, data=b"forced", options=osd.FUA),
                    lambda: Osd(session, 1).write(P, O, 0, b"forced", options=osd.FUA),
                    lambda: self.ctl("flush", url),
                    lambda: self.ctl("flush", url, P),
                    lambda: self.ctl("flush", url, f"{P}/{O}"),
                )
            ):
                device.write(P, O, 0, noise(100_000, number))
                self.assertGreater(self.unwritten_kib(), 0, number)
                self.flush_until_nothing_is_left(flush, number)

    def test_what_was_flushed_is_there_after_a_kill(self):
        with self.device.session() as session:
            device = Osd(session)
            device.create_partition(P)
            device.store(P, O, noise(300_000, 1))
        self.ctl("flush", self.device.url())
        self.device.kill()
        self.device.start()
        with self.device.session() as session:
            self.assertTrue(Osd(session).read(P, O, 0, 300_000) == noise(300_000, 1))


class Opening(E2ETest):
    def test_opening_looks_at_little_of_the_image_however_much_it_holds(self):
        daemon = self.daemon(size="256M").start()
        with daemon.session() as session:
            Osd(session).create_partition(P)
            tasks = [
                osd.Command(osd.CREATE_AND_WRITE, P, O + number, data=noise(number % 9000, number)).submit(session)
                for number in range(OBJECTS)
            ]
            session.wait(*tasks)
            self.assertEqual({task.status for task in tasks}, {osd.GOOD})
        for end in (daemon.stop, daemon.kill):
            end()
            daemon.start()
            resident, _ = mapped_kib(daemon.tgtd_pid, daemon.image())
            self.assertLess(resident, OPEN_KIB_MAX)
            self.assertGreater(os.stat(daemon.image()).st_blocks * 512 >> 10, 10 * OPEN_KIB_MAX)
            with daemon.session() as session:
                self.assertEqual(len(Osd(session).list(P)), OBJECTS)
                for number in range(0, OBJECTS, 97):
                    length = number % 9000
                    self.assertEqual(Osd(session).read(P, O + number, 0, length), noise(length, number))


if __name__ == "__main__":
    unittest.main()
