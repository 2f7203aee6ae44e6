# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""The short form of `make soak-torture`, with a new seed each time, and what its judge must notice."""

import os
import random
import subprocess
import tempfile
import unittest

import torture
from torture_host import FileSystem, NotPossible
from torture_judge import Judge, Wrong, content, state_of

TIME_LIMIT_SECONDS = 600
ROUNDS = 6
SEED = int(os.environ.get("E2E_SEED", random.SystemRandom().randrange(1 << 24)))
O = 0x10000


elsewhere = None  # a shell that was there before anything was mounted


def setUpModule():
    global elsewhere
    elsewhere = subprocess.Popen(["sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    unittest.addModuleCleanup(elsewhere.communicate)


class TheJudge(unittest.TestCase):
    def setUp(self):
        self.judge = Judge()
        self.judge.begin(O, (1, 1))
        self.judge.end(O, True)

    def test_what_was_acknowledged_must_be_there(self):
        self.judge.found(O, (1, 1))
        for state in (None, (), (1,), (1, 2), (1, 1, 1)):
            self.assertRaises(Wrong, self.judge.found, O, state)

    def test_a_command_without_an_answer_happens_as_a_whole_or_not_at_all(self):
        self.judge.begin(O, (2, 2))
        self.assertRaises(Wrong, self.judge.found, O, (1, 2))
        self.judge.found(O, (2, 2))
        # Then it has happened, and stays so.
        self.assertRaises(Wrong, self.judge.found, O, (1, 1))

    def test_a_refused_command_changes_nothing(self):
        self.judge.begin(O, (2, 2))
        self.judge.end(O, False)
        self.assertRaises(Wrong, self.judge.found, O, (2, 2))

    def test_after_the_host_s_failure_all_since_the_last_flush_may_be_gone(self):
        marks = self.judge.flush()
        self.judge.begin(O, (2, 2))
        self.judge.end(O, True)
        self.judge.flushed(marks)
        self.assertRaises(Wrong, self.judge.found_after_failure, O, None)
        self.judge.found_after_failure(O, (1, 1))
        # What is back stays.
        self.assertRaises(Wrong, self.judge.found_after_failure, O, (2, 2))

    def test_what_was_forced_out_is_there_after_the_host_s_failure(self):
        self.judge.begin(O, (2,))
        self.judge.end(O, True, stable=True)
        self.assertRaises(Wrong, self.judge.found_after_failure, O, (1, 1))
        self.judge.found_after_failure(O, (2,))

    def test_bytes_of_another_place_or_torn_ones_are_wrong(self):
        data = content(512, 3, O, (7, 0, 8))
        self.assertEqual(state_of(512, 3, O, data), (7, 0, 8))
        for wrong in (
            data[512:] + data[:512],  # units exchanged
            data[:256] + content(512, 3, O, (9,))[256:] + data[512:],  # two generations in one
            data[:-1] + b"\1",
            data[:-1],
            content(512, 4, O, (7, 0, 8)),  # another initiator's
            content(512, 3, O + 1, (7, 0, 8)),
        ):
            self.assertRaises(Wrong, state_of, 512, 3, O, wrong)

    def test_another_process_goes_on_with_the_journal(self):
        with tempfile.NamedTemporaryFile() as journal:
            first = Judge(journal.name)
            first.begin(O, (1, 1))
            first.end(O, True)
            first.begin(O, (2, 2))
            first.file.write(b"end 655")  # killed here
            second = Judge(journal.name)
            self.assertEqual(second.unanswered(), [O])
            self.assertEqual(second.new_generation(), 3)
            second.found(O, (1, 1))
            self.assertEqual(Judge(journal.name).unanswered(), [])


class TheHost(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        try:
            self.place = FileSystem("xfs", self.folder.name)
        except NotPossible as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.place.close)

    def write(self):
        with open(os.path.join(self.place.place, "file"), "wb") as file:
            file.write(b"data")

    def fail_and_mount(self):
        self.place.fail()
        self.assertRaises(OSError, self.write)
        self.place.unmount()
        self.place.mount()

    def test_what_failed_is_mounted_again(self):
        self.write()
        self.fail_and_mount()
        self.write()

    def test_even_if_somebody_else_keeps_what_is_mounted_elsewhere(self):
        # As a container does that is started meanwhile: it has a copy of each mount.
        elsewhere.stdin.write(b"unshare --mount --propagation private sh -c 'echo held; cat'\n")
        elsewhere.stdin.flush()
        self.assertEqual(elsewhere.stdout.readline(), b"held\n")
        self.fail_and_mount()
        self.write()

    def test_a_drive_that_is_still_in_use_is_told(self):
        self.assertTrue(self.place.is_in_use())
        self.assertIn(str(os.getpid()), self.place.users())
        self.place.unmount()
        self.assertFalse(self.place.is_in_use())
        self.assertEqual(self.place.users(), [])
        self.place.mount()


class Torture(unittest.TestCase):
    def in_a_world(self, world):
        print(f"E2E_SEED={SEED}", flush=True)
        try:
            torments, sums = torture.torture(SEED, world, ROUNDS)
        except NotPossible as reason:
            self.skipTest(f"{world}: {reason}")
        self.assertEqual(torments.total(), ROUNDS)
        # The counts of initiators go with those that are killed, this one does not.
        self.assertGreaterEqual(sums["answers"], ROUNDS * torture.ROUND_ANSWERS[0])
        self.assertGreaterEqual(sums["reads"], torture.INITIATORS * 16)

    def test_nothing_is_lost_on_a_mapped_file_of_ext4(self):
        self.in_a_world("ext4:mmap")

    def test_nothing_is_lost_by_direct_transfers_on_xfs(self):
        self.in_a_world("xfs:file")


if __name__ == "__main__":
    unittest.main()
