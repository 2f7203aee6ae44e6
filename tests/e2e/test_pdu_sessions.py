# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Some thousand sessions of mutated PDUs: the same tgtd serves right data behind them, and has not grown. The seed is new
in each run; a failure prints the command that repeats it."""

import random
import unittest

import pdu_sessions
from harness import E2ETest

SESSIONS = 4000


class MutatedSessions(E2ETest):
    def test_no_session_of_mutated_pdus_ends_tgtd_or_makes_it_grow(self):
        daemon = self.daemon(config=pdu_sessions.CONFIG)
        pdu_sessions.prepare(daemon)
        fuzzer = pdu_sessions.Fuzzer(daemon, seed=random.SystemRandom().getrandbits(24))
        print(f"seed {fuzzer.seed}")
        for number in range(SESSIONS):
            fuzzer.run(number)
        self.assertEqual(fuzzer.sessions, SESSIONS)
        self.assertGreater(fuzzer.pdus, 3 * SESSIONS)
        daemon.wait_for_line("ended a connection")
        self.assertEqual(daemon.stop(), 0, daemon.errors)


if __name__ == "__main__":
    unittest.main()
