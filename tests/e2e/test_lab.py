# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""The emulated flash of a running unit fails when told to, and no wrong byte gets out."""

import os
import time
import unittest

from harness import E2ETest, noise

ADDRESS = "0x10000/0x10004"
BYTES = 8 << 20
TRIES = 600  # the daemon looks twice a second; this many tenths of one only end a hang


class Laboratory(E2ETest):
    def setUp(self):
        self.device = self.daemon(size="64M").start()

    def get_until(self, code):
        """Reads until muninnctl ends with `code`; returns what it read."""
        for _ in range(TRIES):
            done = self.try_ctl("get", self.device.url(), ADDRESS)
            if done.returncode == code:
                return done.stdout
            time.sleep(0.1)
        self.fail(f"muninnctl get never ended with {code}")

    def test_faults_of_a_unit_are_switched_on_and_off_while_it_runs(self):
        data = noise(BYTES, 1)
        self.ctl("mkpart", self.device.url(), "0x10000")
        self.ctl("put", self.device.url(), ADDRESS, stdin=data)
        self.ctl("nand", "faults", self.device.image(), "seed=3,unreadable=0.5")
        self.get_until(8)
        checked = self.try_ctl("check", self.device.url())
        self.assertEqual(checked.returncode, 11, checked.stderr)
        self.assertRegex(checked.stdout.decode(), rf"^{ADDRESS} data( \d+\+\d+)+\n$")
        self.ctl("nand", "faults", self.device.image(), "off")
        self.assertTrue(self.get_until(0) == data)
        self.assertEqual(self.ctl("check", self.device.url()), "")

    def test_a_power_cut_that_is_left_meets_the_next_start(self):
        self.ctl("mkpart", self.device.url(), "0x10000")
        self.device.stop()
        self.ctl("nand", "cut", self.device.image(), "after=100")
        self.device.start()
        self.device.wait_for_line("a power cut is armed: after=100")
        self.assertFalse(os.path.exists(self.device.image() + ".cut"))
        done = self.try_ctl("put", self.device.url(), ADDRESS, stdin=noise(BYTES, 1))
        self.assertNotEqual(done.returncode, 0, "flash without power takes no data")
        self.device.kill()
        self.device.start()
        self.ctl("put", "--replace", self.device.url(), ADDRESS, stdin=noise(BYTES, 1))
        self.assertTrue(self.ctl("get", self.device.url(), ADDRESS, binary=True) == noise(BYTES, 1))

    def test_factory_bad_blocks_of_a_running_unit_cost_nothing_that_is_stored(self):
        self.ctl("mkpart", self.device.url(), "0x10000")
        self.ctl("nand", "faults", self.device.image(), "factory-bad=0.1,seed=5")
        self.device.wait_for_line("faults of the emulated flash: factory-bad=0.1")
        for number in range(3):
            self.ctl("put", self.device.url(), f"0x10000/{0x20000 + number}", stdin=noise(BYTES, number))
        self.device.wait_for_line("injected fault: ")
        self.device.restart()
        for number in range(3):
            stored = self.ctl("get", self.device.url(), f"0x10000/{0x20000 + number}", binary=True)
            self.assertTrue(stored == noise(BYTES, number))
        self.assertFalse([line for line in self.device.errors if "rule" in line])

    def test_a_wrong_setting_is_refused_and_changes_nothing(self):
        done = self.try_ctl("nand", "timing", self.device.image(), "fast")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"must begin with none, muninn, slc, mlc or tlc", done.stderr)


if __name__ == "__main__":
    unittest.main()
