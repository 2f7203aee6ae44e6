# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""The distribution's libiscsi uses an OSD unit, by ENVELOPE."""

import unittest

import osd
from envelopes import EnvelopeSession, load
from harness import IQN, E2ETest, noise

P, O = 0x20000, 0x10004
LIBRARY = load()


@unittest.skipUnless(LIBRARY, "libiscsi.so.7 (package libiscsi7) is not installed")
class EnvelopesTest(E2ETest):
    def attach(self, daemon):
        session = EnvelopeSession(LIBRARY, daemon.port, IQN, 1)
        self.addCleanup(session.close)
        return session

    def test_libiscsi_does_with_objects_whatever_others_do(self):
        daemon = self.daemon().start()
        data = noise(1 << 20, 5)
        for version in (1, 2):
            with self.subTest(osd=version):
                partition = P + version
                device = osd.Osd(self.attach(daemon), version)
                device.create_partition(partition)
                device.create(partition, O)
                device.write(partition, O, 4096, data)
                self.assertEqual(device.read(partition, O, 4096, len(data)), data)
                # Data in both directions, and attributes with them.
                name = (osd.USER_INFORMATION, osd.USERNAME)
                answer = device.must(osd.SET_ATTRIBUTES, partition, O, sets=[(*name, b"raven")], gets=[name])
                self.assertEqual(answer.attributes[name], b"raven")
                self.assertEqual(device.length(partition, O), 4096 + len(data))
                # What the command inside says of its failure.
                self.assertTrue(device.run(osd.READ, partition, O, address=4096 + len(data) - 8, length=16).short)
                refused = device.run(osd.CREATE, partition, O)
                self.assertEqual((refused.status, refused.sense.key), (osd.CHECK_CONDITION, osd.ILLEGAL_REQUEST))
                # Others see the same.
                self.assertEqual(self.ctl("get", daemon.url(), f"{partition}/{O}", binary=True)[4096:], data)
        self.assertEqual(daemon.stop(), 0)

    def test_the_letters_of_another_session_are_not_fetched(self):
        daemon = self.daemon().start()
        mine, other = self.attach(daemon), EnvelopeSession(LIBRARY, daemon.port, IQN, 1, name="iqn.2026-11.host:other")
        self.addCleanup(other.close)
        osd.Osd(mine).create_partition(P)
        letter = bytes([1, 0, 0, 236]) + bytes(12) + bytes(osd.Command(osd.LIST, P, length=64).cdb) + bytes(20)
        tag = bytes(range(8))
        length = len(letter).to_bytes(4, "big")
        fetch = b"\xc1\0" + tag + (272 + 64).to_bytes(4, "big") + b"\0\0"
        self.assertEqual(mine.plain(b"\xc0\0" + tag + length + b"\0\0", letter)[0], 0)
        self.assertEqual(other.plain(fetch, room=272 + 64)[0], 2)
        status, answer = mine.plain(fetch, room=272 + 64)
        self.assertEqual((status, answer[:2]), (0, b"\x01\x00"))
        # It is gone when it has been executed.
        self.assertEqual(mine.plain(fetch, room=272 + 64)[0], 2)
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main()
