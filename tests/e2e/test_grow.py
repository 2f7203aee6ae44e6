# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A device grows where it is: by its configuration at the next start, and by `nand grow` with the service stopped.

Runs for each index.
"""

import json
import os
import subprocess
import unittest

import osd
from harness import MUNINND, noise
from osd import GOOD, Osd
from service import ServiceTest

SANITIZED = True

P = 0x10000
LARGE = 1_000_001


def config(size, backend="mmap", more=""):
    return f"[nand]\nbackend = {backend}\n[lun 1]\ntype = osd\nsize = {size}\n{more}"


class Grow(ServiceTest):
    def fill(self, daemon, first):
        """Objects until the device is full: {object: content}."""
        stored = {}
        with daemon.session() as session:
            target = Osd(session)
            if first == P:
                target.create_partition(P)
            while True:
                number = first + len(stored)
                data = noise(LARGE, number)
                answer = target.run(osd.CREATE_AND_WRITE, P, number, data=data)
                if answer.status != GOOD:
                    return stored
                stored[number] = data

    def assert_holds(self, daemon, stored, at=""):
        for number, data in stored.items():
            found = self.ctl("cat", daemon.url(), f"{P:#x}/{number:#x}{at}", binary=True)
            self.assertTrue(found == data, f"object {number:#x}{at}")

    def capacity(self, daemon):
        return json.loads(self.ctl("--json", "info", daemon.url()))["capacity"]

    def assert_clean(self, daemon):
        """What is stored of the stopped device fits."""
        fsck = os.path.join(os.path.dirname(MUNINND), "muninn-fsck")
        done = subprocess.run([fsck, "--quiet", daemon.image()], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def grown(self, daemon, text):
        """Started anew with this configuration."""
        self.assertEqual(daemon.stop(), 0)
        self.rewrite(daemon, text)
        return daemon.start()

    def test_a_full_device_takes_more_and_keeps_its_versions(self):
        for backend in "mmap", "file":
            daemon = self.serve(config("32M", backend))
            stored = self.fill(daemon, P)
            self.assertGreater(len(stored), 10)
            before = self.capacity(daemon)
            self.grown(daemon, config("64M", backend))
            daemon.wait_for_line("lun1.img has grown from 32 MiB to its configured size of 64 MiB")
            self.assertGreater(self.capacity(daemon), before * 3 // 2)
            self.ctl("snapshot", daemon.url(), f"{P:#x}", "--name", "full")
            more = self.fill(daemon, P + len(stored))
            self.assertGreater(len(more), len(stored) // 2)
            self.assert_holds(daemon, stored | more)
            last = max(more)
            self.ctl("rm", daemon.url(), f"{P:#x}/{last:#x}")
            daemon.kill()
            daemon.start()
            self.assert_holds(daemon, stored, "@full")
            self.assertEqual(daemon.stop(), 0)
            self.assert_clean(daemon)

    def test_a_reload_says_that_it_waits_for_a_restart_and_a_smaller_size_has_no_effect(self):
        daemon = self.serve(config("32M"))
        self.rewrite(daemon, config("64M"))
        answer = self.admin(daemon, "reload")
        self.assertIn("larger size when the service is restarted", " ".join(answer["restart"]))
        before = self.capacity(daemon)
        self.grown(daemon, config("16M"))
        daemon.wait_for_line("has 32 MiB and stays so")
        self.assertEqual(self.capacity(daemon), before)

    def test_without_a_restart_when_its_units_are_taken_away_and_served_again(self):
        daemon = self.serve(config("32M") + "[lun 2]\ntype = osd\nsize = 32M\n")
        stored = self.fill(daemon, P)
        before = self.capacity(daemon)
        self.rewrite(daemon, config("64M") + "[lun 2]\ntype = osd\nsize = 32M\n")
        self.admin(daemon, "lun", "rm", "1")
        self.admin(daemon, "reload")
        daemon.wait_for_line("lun1.img has grown from 32 MiB to its configured size of 64 MiB")
        self.assertGreater(self.capacity(daemon), before * 3 // 2)
        self.assert_holds(daemon, stored)
        self.assertEqual(daemon.stop(), 0)
        self.assert_clean(daemon)

    def test_a_size_that_cannot_be_is_refused_by_check_and_start_alike(self):
        daemon = self.serve(config("16M", more="rows = 1\n"))
        before = self.capacity(daemon)
        self.assertEqual(daemon.stop(), 0)
        self.rewrite(daemon, config("2G"))
        code, errors = daemon.run()
        self.assertEqual(code, 1, errors)
        self.assertIn("was created with 16 MiB and can grow to at most 1024 MiB", errors)
        checked = subprocess.run(
            daemon.command + ["--check-config"], capture_output=True, text=True, check=False, env=daemon.environment
        )
        self.assertEqual(checked.returncode, 1)
        self.assertIn("can grow to at most 1024 MiB", checked.stderr)
        self.rewrite(daemon, config("16M"))
        self.assertEqual(self.capacity(daemon.start()), before)

    def test_without_its_nvram_it_is_recovered_first_and_grows_at_the_next_start(self):
        daemon = self.serve(config("32M"))
        before = self.capacity(daemon)
        self.assertEqual(daemon.stop(), 0)
        os.unlink(daemon.image() + ".nvram")
        self.rewrite(daemon, config("64M", more="recover_without_nvram = yes\n"))
        daemon.start()
        daemon.wait_for_line("is recovered without its NVRAM first; the next start lets it grow")
        self.assertEqual(self.capacity(daemon), before)
        self.assertEqual(daemon.stop(), 0)
        daemon.start()
        daemon.wait_for_line("lun1.img has grown from 32 MiB to its configured size of 64 MiB")
        self.assertGreater(self.capacity(daemon), before * 3 // 2)

    def test_with_the_service_stopped_by_command(self):
        daemon = self.serve("[lun 1]\ntype = osd\nsize = 32M\n")
        stored = self.fill(daemon, P)
        before = self.capacity(daemon)
        busy = self.try_ctl("nand", "grow", daemon.image(), "64M")
        self.assertNotEqual(busy.returncode, 0)
        self.assertRegex(busy.stderr.decode(), "lun1.img is .*use")
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(
            json.loads(self.ctl("--json", "nand", "grow", daemon.image(), "64M")),
            {"image": daemon.image(), "bytes_before": 32 << 20, "bytes": 64 << 20},
        )
        for size in "64M", "1M":
            smaller = self.try_ctl("nand", "grow", daemon.image(), size)
            self.assertNotEqual(smaller.returncode, 0)
            self.assertIn("the device has 64 MiB: it can only become larger", smaller.stderr.decode())
        self.assert_clean(daemon)
        # Without a size in the configuration it stays as it is.
        self.rewrite(daemon, "[lun 1]\ntype = osd\n")
        daemon.start()
        self.assertGreater(self.capacity(daemon), before * 3 // 2)
        self.assert_holds(daemon, stored)
        self.assertGreater(len(self.fill(daemon, P + len(stored))), 5)


if __name__ == "__main__":
    unittest.main()
