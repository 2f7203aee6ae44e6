# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A stop while commands are under way that take longer than it waits: nothing that was acknowledged is lost, also when
the host fails right behind it."""

import unittest

import osd
from harness import IQN, SMALL_ROWS, E2ETest, noise
from osd import Command, Osd
from tasks import Session

P = 0x10000
O = 0x10000
LARGE = O + 1  # nearly all of it is on the flash, as rows are small
LARGE_DATA = noise(1 << 21, 1)
CONFIG = """
[daemon]
stop_timeout = {seconds}
""" + SMALL_ROWS
# Where the NVRAM file has the host's boot ID, by which an outage shows (docs/format.md).
BOOT_ID_AT = 4096 + 96


def host_fails(daemon):
    """For the next start the host has failed since: what was not flushed is gone."""
    with open(daemon.image() + ".nvram", "r+b") as file:
        file.seek(BOOT_ID_AT)
        file.write(noise(16, 1))


class Stopping(E2ETest):
    def login(self, daemon):
        session = Session(daemon.port, IQN)
        self.addCleanup(session.close)
        return session

    def prepared(self, seconds, timing):
        """A daemon whose flash is slow, with something acknowledged that no flush knows of; and a session."""
        daemon = self.daemon(config=CONFIG.format(seconds=seconds)).start()
        session = self.login(daemon)
        device = Osd(session)
        device.create_partition(P)
        device.store(P, LARGE, LARGE_DATA)
        device.store(P, O, b"before")
        device.must(osd.FLUSH_OSD, scope=2)
        device.write(P, O, 0, b"acknowledged")
        self.ctl("nand", "timing", daemon.image(), f"none,mode=real,{timing},channels=1,dies=1")
        daemon.wait_for_line("timing of the emulated flash")
        return daemon, session

    def assert_acknowledged(self, daemon):
        host_fails(daemon)
        daemon.start()
        self.assertEqual(Osd(self.login(daemon)).read(P, O, 0, 12), b"acknowledged")

    def test_a_command_that_takes_too_long_is_ended_and_what_was_acknowledged_is_stable(self):
        daemon, session = self.prepared(5, "read=1s")
        Command(osd.READ, P, LARGE, length=len(LARGE_DATA)).submit(session)
        session.until_answered()
        self.assertEqual(daemon.stop(), 1)
        errors = "\n".join(daemon.errors)
        # The second where the flush had to wait for a page of the slow flash as well.
        waits = r"waiting for commands under way, at most 5 s \(stop_timeout\)"
        self.assertRegex(errors, rf"LUN 1: ({waits}|what was acknowledged could not be made stable yet)")
        self.assertIn("commands did not end within 5 s (stop_timeout)", errors)
        self.assertIn("what was acknowledged is stable now", errors)
        self.assert_acknowledged(daemon)

    def test_what_was_acknowledged_is_stable_before_a_long_writing_command_ends(self):
        daemon, session = self.prepared(1000, "program=100ms")
        session.send_all(Command(osd.WRITE, P, LARGE, data=noise(1 << 21, 2)))
        daemon.process.terminate()
        daemon.wait_for_line("waiting for commands under way")
        daemon.kill()
        self.assert_acknowledged(daemon)
        self.assertTrue(Osd(self.login(daemon)).read(P, LARGE, 0, len(LARGE_DATA)) == LARGE_DATA)


if __name__ == "__main__":
    unittest.main()
