# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A backup of a device that serves: all partitions at one moment, and the same on another, larger device."""

import json
import os
import signal
import subprocess
import unittest

from counting import Counting
from disks import POOL
from harness import LIMIT_SECONDS, MUNINNCTL, E2ETest, noise
from service import ServiceTest

P, Q = "0x10000", "0x20000"


class Documented(E2ETest):
    """Base class: does what docs/how-to says, in the folder `streams`."""

    def setUp(self):
        super().setUp()
        self.streams = self.folder()

    def script(self, text, **variables):
        """Runs what the documentation says, with the shell."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            env={**os.environ, "PATH": os.path.dirname(MUNINNCTL) + ":" + os.environ["PATH"], **variables},
            cwd=self.streams, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_SECONDS,
        )
        self.assertEqual(done.returncode, 0, done.stdout.decode())
        return done.stdout.decode()

    def commands(self, page, heading):
        """The indented commands of a documented section."""
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "how-to", page), encoding="utf-8") as file:
            section = file.read().split(f"## {heading}\n")[1].split("\n## ")[0]
        return "\n".join(line[4:] for line in section.splitlines() if line.startswith("    "))


class Backup(Documented):
    def setUp(self):
        super().setUp()
        self.url = self.daemon(size="128M").start().url()
        for partition in (P, Q):
            self.ctl("mkpart", self.url, partition)
            self.ctl("put", self.url, f"{partition}/0x10000", stdin=b"00000000")

    def write(self, number):
        """Into Q, then into P, so that at every moment Q is as far as P, or one further."""
        for partition in (Q, P):
            self.ctl("put", self.url, f"{partition}/0x10000", "--replace", stdin=b"%08d" % number)

    def counts(self, url):
        return [int(self.ctl("get", url, f"{partition}/0x10000", binary=True)) for partition in (P, Q)]

    def test_all_partitions_are_of_one_moment_while_others_write(self):
        with Counting(self.write) as counting:
            counting.wait_for_more()
            self.script(self.commands("back-up.md", "Back up all partitions while the device serves"), URL=self.url)
            counting.wait_for_more()
        self.assertEqual(sorted(os.listdir(self.streams)), ["0x10000.stream", "0x20000.stream", "names"])
        there = self.daemon(size="256M").start().url()
        self.script(self.commands("back-up.md", "Restore all partitions"), URL=there)
        first, second = self.counts(there)
        self.assertIn(second - first, (0, 1))
        self.assertGreater(first, 0)
        self.assertGreater(self.counts(self.url)[0], first)

    def test_a_partition_that_has_no_stream_is_told_apart_and_the_version_stays(self):
        self.ctl("coll", "create", self.url, f"{P}/0x20000")
        said = self.script(self.commands("back-up.md", "Back up all partitions while the device serves"), URL=self.url)
        self.assertIn("has collections, which streams do not carry", said)
        self.assertEqual(sorted(os.listdir(self.streams)), ["0x10000.partial", "0x20000.stream", "names"])
        self.assertEqual(len(json.loads(self.ctl("--json", "versions", self.url, "0"))), 1)

    def test_one_that_is_interrupted_leaves_no_stream_that_counts_and_is_made_again(self):
        self.ctl("put", self.url, f"{P}/0x10001", stdin=noise(24 << 20, 1))
        self.ctl("snapshot", self.url, "0", "--name", "held")
        # Held in the middle: nobody reads on.
        sending = subprocess.Popen([MUNINNCTL, "send", self.url, P, "held"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with sending:
            torn = sending.stdout.read(1 << 20)
            sending.send_signal(signal.SIGKILL)
            torn += sending.stdout.read()
        there = self.daemon(size="256M").start().url()
        done = self.try_ctl("receive", there, stdin=torn)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.ctl("ls", there), "")
        self.ctl("drop", self.url, "0", "held")
        self.script(self.commands("back-up.md", "Back up all partitions while the device serves"), URL=self.url)
        self.script(self.commands("back-up.md", "Restore all partitions"), URL=there)
        self.assertEqual(self.counts(there), self.counts(self.url))
        self.assertEqual(self.ctl("get", there, f"{P}/0x10001", binary=True), noise(24 << 20, 1))

    def test_a_larger_device_takes_over_with_the_versions(self):
        for name in ("one", "two"):
            self.ctl("put", self.url, f"{P}/0x10000", "--replace", stdin=name.encode())
            self.ctl("snapshot", self.url, P, "--name", name)
        self.ctl("put", self.url, f"{P}/0x10000", "--replace", stdin=b"now")
        there = self.daemon(size="512M").start().url()
        self.script(self.commands("grow.md", "Move one partition"), FROM=self.url, TO=there, PID=P)
        versions = json.loads(self.ctl("--json", "versions", there, P))
        contents = [self.ctl("get", there, f"{P}/0x10000@{each['version']}", binary=True) for each in versions]
        self.assertEqual(contents, [b"one", b"two", b"now"])
        self.assertEqual(self.ctl("get", there, f"{P}/0x10000", binary=True), b"now")


class Disks(Documented, ServiceTest):
    def test_a_disk_comes_back_from_its_stream(self):
        first = self.serve()
        blocks = noise(1 << 20, 1)
        disk = self.attach(first, 2)
        self.good(disk.write(0, blocks))
        self.good(disk.write((48 << 20) // 512, blocks))
        self.script(self.commands("back-up.md", "Back up all partitions while the device serves"), URL=first.url())
        self.assertEqual(sorted(os.listdir(self.streams)), ["0x10002.stream", "names"])
        volume = self.admin(first, "volume", "ls")["volumes"][0]
        second = self.serve(POOL.split("[lun 2]")[0])
        self.script(
            self.commands("back-up.md", "Restore a disk from its stream"),
            URL=second.url(), PID="0x10002", HELPER="0x90000", MUNINN_SOCKET=self.socket_of(second),
            SIZE=str(volume["bytes"]),
        )
        self.assertEqual(self.ctl("ls", second.url()), "0x10002\n")
        self.admin(second, "lun", "add", "2", "type=disk", "device=pool", "partition=0x10002")
        disk = self.attach(second, 2)
        self.assertEqual(disk.capacity(), (volume["bytes"] // 512, 512))
        for offset, expected in ((0, blocks), (16 << 20, bytes(1 << 20)), (48 << 20, blocks)):
            self.assertTrue(self.good(disk.read(offset // 512, 2048)).data_in == expected, offset)
        # It is a disk as any: writing, and the rest of a range that the stream did not have.
        self.good(disk.write(2048, blocks))
        self.assertTrue(self.good(disk.read(2048, 2048)).data_in == blocks)


if __name__ == "__main__":
    unittest.main()
