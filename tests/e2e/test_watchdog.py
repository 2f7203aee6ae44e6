# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A tgtd that hangs is noticed, killed and started again; sessions log in again, and nothing acknowledged is lost."""

import os
import signal
import unittest

import osd
from harness import IQN, SMALL_ROWS, E2ETest, noise, wait_for_exit
from osd import Command, Osd
from tasks import Session

P = 0x10000
O = 0x10000
LARGE = O + 1  # nearly all of it is on the flash, as rows are small
CONFIG = """
[daemon]
watchdog = 3
""" + SMALL_ROWS


class Watchdog(E2ETest):
    def login(self, daemon):
        session = Session(daemon.port, IQN)
        self.addCleanup(session.close)
        return session

    def prepared(self):
        """A daemon with something acknowledged, and a session."""
        daemon = self.daemon(config=CONFIG).start()
        session = self.login(daemon)
        device = Osd(session)
        device.create_partition(P)
        device.store(P, LARGE, noise(1 << 21, 1))
        device.store(P, O, b"acknowledged")
        return daemon, session

    def assert_serves_again(self, daemon, session):
        daemon.wait_for_line("initiators can log in")
        wait_for_exit(daemon.tgtd_pid)
        with self.assertRaises(ConnectionError):
            session.until_answered()
        self.assertEqual(Osd(self.login(daemon)).read(P, O, 0, 12), b"acknowledged")
        self.assertEqual(daemon.stop(), 0, daemon.errors)

    def test_a_tgtd_that_is_stopped_is_replaced(self):
        daemon, session = self.prepared()
        os.kill(daemon.tgtd_pid, signal.SIGSTOP)
        daemon.wait_for_line("tgtd does not answer within 3 s")
        self.assert_serves_again(daemon, session)

    def test_a_unit_whose_threads_hang_is_noticed(self):
        daemon, session = self.prepared()
        # A segment of 64 pages is programmed in one call, and the command holds the engine.
        self.ctl("nand", "timing", daemon.image(), "none,mode=real,program=1s,channels=1,dies=1")
        daemon.wait_for_line("timing of the emulated flash")
        session.send_all(Command(osd.WRITE, P, LARGE, data=noise(1 << 21, 2)))
        daemon.wait_for_line("LUN 1 hangs: its commands have done nothing for 3 s (watchdog)")
        os.unlink(daemon.image() + ".timing")
        self.assert_serves_again(daemon, session)

    def test_commands_that_take_long_are_no_hang(self):
        daemon, session = self.prepared()
        # Up to 256 pages are one read of the flash, a second; both commands take four.
        self.ctl("nand", "timing", daemon.image(), "none,mode=real,read=4ms,channels=1,dies=1")
        daemon.wait_for_line("timing of the emulated flash")
        tasks = [Command(osd.READ, P, LARGE, length=1 << 21).submit(session) for _ in range(2)]
        session.wait(*tasks)
        self.assertEqual([task.status for task in tasks], [osd.GOOD] * 2)
        self.assertFalse([line for line in daemon.errors if "hangs" in line])
        self.assertEqual(daemon.stop(), 0, daemon.errors)

    def test_a_stop_ends_while_tgtd_hangs(self):
        daemon, _ = self.prepared()
        os.kill(daemon.tgtd_pid, signal.SIGSTOP)
        self.assertEqual(daemon.stop(), 1)
        self.assertTrue(any("what was acknowledged is stable now" in line for line in daemon.errors), daemon.errors)
        daemon.start()
        self.assertEqual(Osd(self.login(daemon)).read(P, O, 0, 12), b"acknowledged")


if __name__ == "__main__":
    unittest.main()
