# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A backup of a device that serves: all partitions at one moment, and the same on another, larger device."""

import json
import os
import signal
import subprocess
import unittest

from counting import Counting
from harness import LIMIT_SECONDS, MUNINNCTL, E2ETest, noise

P, Q = "0x10000", "0x20000"


class Backup(E2ETest):
    def setUp(self):
        super().setUp()
        self.url = self.daemon(size="128M").start().url()
        self.streams = self.folder()
        for partition in (P, Q):
            self.ctl("mkpart", self.url, partition)
            self.ctl("put", self.url, f"{partition}/0x10000", stdin=b"00000000")

    def path(self, name):
        return os.path.join(self.streams, name)

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
        self.assertEqual(sorted(os.listdir(self.streams)), ["0x10000.stream", "0x20000.stream"])
        there = self.daemon(size="256M").start().url()
        self.script(self.commands("back-up.md", "Restore all partitions"), URL=there)
        first, second = self.counts(there)
        self.assertIn(second - first, (0, 1))
        self.assertGreater(first, 0)
        self.assertGreater(self.counts(self.url)[0], first)

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


if __name__ == "__main__":
    unittest.main()
