# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""The cable of tests with two paths: cut and mended it is again as it was, whatever its ends have done."""

import socket
import struct
import threading
import time
import unittest

from guest import Cable
from harness import LIMIT_SECONDS


class CableTest(unittest.TestCase):
    def setUp(self):
        self.target = self.listen(("127.0.0.1", 0))
        self.cable = Cable(self.target.getsockname())
        self.addCleanup(self.cable.close)

    def listen(self, address):
        listener = socket.create_server(address)
        listener.settimeout(LIMIT_SECONDS)
        self.addCleanup(listener.close)
        return listener

    def connect(self):
        near = socket.create_connection(("127.0.0.1", self.cable.port), LIMIT_SECONDS)
        self.addCleanup(near.close)
        return near

    def pair(self):
        """Both ends of a connection by the cable, which passes on what each says."""
        near = self.connect()
        far = self.target.accept()[0]
        far.settimeout(LIMIT_SECONDS)
        self.addCleanup(far.close)
        for source, to in ((near, far), (far, near)):
            source.sendall(b"raven")
            self.assertEqual(to.recv(5, socket.MSG_WAITALL), b"raven")
        return near, far

    def assert_ended(self, end):
        try:
            self.assertEqual(end.recv(1), b"")
        except ConnectionResetError:
            pass

    @staticmethod
    def reset(end):
        """Ends it by a reset, as a process does that has not read all."""
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.close()

    def test_both_ends_notice_a_cut_and_new_connections_are_refused(self):
        ends = [*self.pair(), *self.pair()]
        self.cable.cut()
        for end in ends:
            self.assert_ended(end)
        with self.assertRaises(ConnectionRefusedError):
            self.connect()

    def test_one_that_is_mended_passes_connections_on_however_often(self):
        for _ in range(20):
            self.cable.cut()
            self.cable.mend()
            self.pair()

    def test_an_end_that_is_reset_ends_the_other(self):
        near, far = self.pair()
        self.reset(near)
        self.assert_ended(far)
        near, far = self.pair()
        self.reset(far)
        self.assert_ended(near)
        self.pair()

    def test_a_target_that_was_away_is_reached_again(self):
        address = self.target.getsockname()
        self.target.close()
        self.assert_ended(self.connect())
        self.target = self.listen(address)
        self.pair()

    def test_nothing_of_it_is_left(self):
        before = threading.active_count()
        ends = [*self.pair(), *self.pair()]
        self.cable.close()
        for end in ends:
            self.assert_ended(end)
        limit = time.monotonic() + LIMIT_SECONDS
        # The thread that took connections is one of them. Some of an earlier test may have ended.
        while self.cable.ends or threading.active_count() >= before:
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.01)


if __name__ == "__main__":
    unittest.main()
