# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Nobody takes a partition back under the feet of a host that uses it, unless he says so."""

import unittest

import osd
from harness import E2ETest

P, Q, OBJECT = 0x10000, 0x10001, 0x10005
HOST, OTHER = "iqn.2026-11.host:exofs", "iqn.2026-11.other:exofs"
SANITIZED = True


class UsedPartitions(E2ETest):
    def setUp(self):
        self.server = self.daemon(size="64M").start()
        self.url = self.server.url()
        for partition in (P, Q):
            self.ctl("mkpart", self.url, partition)
        self.ctl("put", self.url, f"{P}/{OBJECT}", stdin=b"before")
        self.ctl("snapshot", self.url, P, "--name", "good")
        self.ctl("snapshot", self.url, 0, "--name", "all-good")
        self.ctl("put", self.url, f"{P}/{OBJECT}", "--replace", stdin=b"after!")

    def mount(self, name=HOST, partition=P):
        """What a host does first when it mounts: some commands on the partition."""
        session = self.server.session(name=name)
        self.addCleanup(session.close)
        osd.Osd(session).must(osd.GET_ATTRIBUTES, partition)
        return session

    def content(self):
        return self.ctl("cat", self.url, f"{P}/{OBJECT}", binary=True)

    def refused(self, *arguments):
        done = self.try_ctl(*arguments)
        self.assertEqual(done.returncode, 8, done.stderr)
        self.assertIn(b"--force", done.stderr)
        return done.stderr.decode()

    def test_a_rollback_waits_until_the_host_has_logged_out(self):
        session = self.mount()
        message = self.refused("rollback", self.url, P, "good")
        self.assertIn(f"ROLLBACK, address 0x10000: 1 other session uses it ({HOST}): unmount and log out", message)
        self.assertEqual(self.content(), b"after!")
        session.logout()
        self.ctl("rollback", self.url, P, "good")
        self.assertEqual(self.content(), b"before")
        # Whoever logs in afterwards is told nothing, and mounts at once.
        self.mount()

    def test_a_connection_that_is_lost_ends_the_use(self):
        self.mount().close()
        self.mount(OTHER).close()
        self.ctl("rollback", self.url, P, "good")
        self.assertEqual(self.content(), b"before")

    def test_with_force_it_goes_back_and_the_host_is_told_once(self):
        session, other = self.mount(), self.mount(OTHER, Q)
        self.ctl("rollback", self.url, P, "good", "--force")
        self.assertEqual(self.content(), b"before")
        answer = osd.Osd(session).run(osd.READ, P, OBJECT, length=6)
        self.assertEqual((answer.sense.key, answer.sense.code), (osd.UNIT_ATTENTION, osd.MEDIUM_MAY_HAVE_CHANGED))
        self.assertEqual(osd.Osd(session).read(P, OBJECT, 0, 6), b"before")
        # A host that uses another partition goes on as if nothing had happened.
        osd.Osd(other).must(osd.GET_ATTRIBUTES, Q)

    def test_the_device_goes_back_when_nobody_uses_any_partition(self):
        sessions = self.mount(), self.mount(OTHER, Q)
        message = self.refused("rollback", self.url, 0, "all-good")
        self.assertIn("ROLLBACK, the device: 2 other sessions use it (", message)
        for name in HOST, OTHER:
            self.assertIn(name, message)
        for session in sessions:
            session.logout()
        self.ctl("rollback", self.url, 0, "all-good")
        self.assertEqual(self.content(), b"before")

    def test_the_session_that_goes_back_and_readers_of_old_versions_do_not_count(self):
        with self.server.session(name=OTHER) as reader:
            version = self.ctl("versions", self.url, P).split()[0]
            self.assertEqual(osd.Osd(reader).read(int(version) << 48 | P, OBJECT, 0, 6), b"before")
            self.ctl("rollback", self.url, P, "good")
            self.assertEqual(self.content(), b"before")

    def test_a_clone_in_use_is_not_refreshed(self):
        clone = int(self.ctl("clone", self.url, P), 0)
        session = self.mount(partition=clone)
        self.assertIn(HOST, self.refused("refresh", self.url, clone))
        session.logout()
        self.ctl("refresh", self.url, clone)
        self.mount(partition=clone)
        self.ctl("refresh", self.url, clone, "--force")


if __name__ == "__main__":
    unittest.main()
