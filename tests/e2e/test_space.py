# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""What `muninnctl space` tells: sums that are right, and what dropping frees before it is done."""

import json
import os
import time
import unittest

from harness import LIMIT_SECONDS, E2ETest

P = 0x10000
MIB = 1 << 20


class Space(E2ETest):
    def setUp(self):
        super().setUp()
        self.daemon_ = self.daemon(size="256M").start()
        self.url = self.daemon_.url()
        self.ctl("mkpart", self.url, P)

    def write(self, byte, mebibytes, replace=True):
        path = os.path.join(self.folder("source"), "content")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(byte * (mebibytes * MIB))
        self.ctl("put", self.url, f"{P}/0x10000", path, *(["--replace"] if replace else []))

    def space(self, *arguments):
        """What it tells when nothing goes on: a buffer that is sealed meanwhile is counted twice, or not at all."""
        told, before = {}, None
        while told != before:
            before = told
            told = json.loads(self.ctl("--json", "space", self.url, *arguments, "pages=all"))
            growth = told.pop("growth")  # time goes on in any case
        return {**told, "growth": growth}

    def row(self, report, name=f"{P:#x}"):
        return next(row for row in report["partitions"] if row["partition"] == name)

    def assert_mebibytes(self, value, wanted):
        """Onodes and directories come on top; space that segments lose, too."""
        self.assertGreaterEqual(value, wanted * MIB)
        self.assertLess(value, (wanted + 3) * MIB)

    def test_versions_tell_what_they_keep_and_dropping_one_frees_what_was_told(self):
        self.write(b"a", 8, replace=False)
        self.ctl("snapshot", self.url, P, "--name", "one")
        self.write(b"b", 8)
        self.ctl("snapshot", self.url, P, "--name", "two")
        self.write(b"c", 8)
        before = self.space(P)
        self.assertEqual(before["looked_at"], before["pages"])
        self.assert_mebibytes(self.row(before)["live"], 8)
        self.assert_mebibytes(self.row(before)["kept"], 16)
        alone = {version["name"]: version["alone"] for version in before["versions"]}
        self.assert_mebibytes(alone["one"], 8)
        self.assert_mebibytes(alone["two"], 8)
        self.assertNotIn("frees", before)
        listed = json.loads(self.ctl("--json", "versions", "-l", self.url, P))
        for version in listed:
            self.assert_mebibytes(version["alone"], 8)
        self.assertRegex(self.ctl("versions", "-l", self.url, P), r"(?m)^ +(8|9|10)\.\d MiB alone +1  ")
        self.assertNotIn("alone", self.ctl("versions", self.url, P))
        frees = self.space(P, "without=one")["frees"]
        self.assert_mebibytes(frees, 8)
        self.assert_mebibytes(self.space(P, "without=one", "without=two")["frees"], 16)
        self.ctl("drop", self.url, P, "one")
        after = self.row(self.space(P))
        self.assertAlmostEqual(self.row(before)["kept"] - after["kept"], frees, delta=MIB)

    def test_the_device_adds_up_and_shows_what_is_removed(self):
        self.write(b"a", 8, replace=False)
        report = self.space()
        rows = sum(row["used"] for row in report["partitions"])
        self.assertLessEqual(abs(rows + report["index"] - report["used"]), 16)
        self.assertGreater(report["reserved"], 0)
        self.assertLess(report["available"], report["capacity"])
        self.assertIn("device", [row["partition"] for row in report["partitions"]])
        self.ctl("rmpart", self.url, P, "--contents")
        self.assert_mebibytes(self.row(self.space(), "removed")["history"], 8)

    def test_what_is_before_now_is_history(self):
        self.write(b"a", 8, replace=False)
        self.write(b"b", 8)
        time.sleep(1.2)
        self.assert_mebibytes(self.space(P, "since=now")["frees"], 8)

    def test_growth_is_the_present_beside_what_it_was(self):
        self.write(b"a", 8, replace=False)
        begin = self.space()["growth"]
        self.ctl("put", self.url, f"{P}/0x10001", stdin=b"c" * 3 * MIB)
        growth = self.space()["growth"]
        self.assertEqual(growth["bytes"] - begin["bytes"], 3 * MIB)
        self.assertGreater(growth["seconds"], 0)
        # From so short a time nobody tells of days.
        self.assertEqual((growth["a_day"], growth["full_in_days"]), (None, None))
        self.assertRegex(self.ctl("space", self.url), r"(?m)^growth +\d+\.\d MiB in the last \d+\.\d minutes$")
        self.assertIsNotNone(self.space(P)["growth"])
        # What is removed counts, as part of a partition, and with it.
        self.ctl("rm", self.url, f"{P}/0x10001")
        self.assertEqual(self.space()["growth"]["bytes"], begin["bytes"])
        self.ctl("rmpart", self.url, P, "--contents")
        self.assertLess(self.space()["growth"]["bytes"], begin["bytes"])

    def test_a_few_pages_tell_about_the_same_and_say_so(self):
        self.write(b"a", 24, replace=False)
        text = self.ctl("space", self.url, P, "pages=300")
        self.assertRegex(text, r"about, by 300 of \d+ pages")
        self.assertRegex(text, rf"{P:#x} +\S+ MiB +2[2-7]\.\d MiB")
        self.assertNotIn("about", self.ctl("space", self.url, P, "pages=all"))

    def test_the_log_says_that_a_device_fills_up(self):
        self.ctl("retention", self.url, 0, "all")
        self.write(b"a", 180, replace=False)
        self.daemon_.wait_for_line("lun1.img: 80 % of", "MiB are in use")

    def blocks(self):
        return os.stat(os.path.join(self.daemon_.state_dir, "lun1.img")).st_blocks * 512

    def remove_and_wait(self, most):
        self.ctl("rmpart", self.url, P, "--contents")
        self.ctl("merge", self.url, "--progress")
        self.ctl("flush", self.url)
        limit = time.monotonic() + LIMIT_SECONDS
        while self.blocks() > most:
            self.assertLess(time.monotonic(), limit, f"{self.blocks() / MIB} of {most / MIB} MiB")
            time.sleep(0.1)

    def test_the_image_gives_the_space_back_of_what_is_removed_and_merged(self):
        self.ctl("retention", self.url, 0, "none")
        self.write(b"a", 120, replace=False)
        self.ctl("flush", self.url)
        full = self.blocks()
        self.assertGreater(full, 120 * MIB)
        # An eighth of the device stays as it is, as it is written again soon.
        self.remove_and_wait(full - 60 * MIB)
        # And so it goes on: what is written again has its space, and gives it back again.
        self.ctl("mkpart", self.url, P)
        self.write(b"c", 120, replace=False)
        self.ctl("flush", self.url)
        self.remove_and_wait(full - 60 * MIB)
        self.ctl("mkpart", self.url, P)
        self.write(b"b", 120, replace=False)
        self.assertEqual(self.ctl("get", self.url, f"{P}/0x10000", binary=True), b"b" * (120 * MIB))
        self.daemon_.kill()
        self.daemon_.start()
        self.url = self.daemon_.url()
        self.assertEqual(self.ctl("get", self.url, f"{P}/0x10000", binary=True), b"b" * (120 * MIB))

    def test_a_name_may_have_an_equals_sign(self):
        self.ctl("mkpart", self.url, "a=b")
        self.assertIn("RECLAIMABLE", self.ctl("space", self.url, "a=b", "pages=all"))

    def test_wrong_words_are_refused(self):
        for words, code, sentence in (
            (("without=none",), 3, "no version 'none'"),
            (("pages=0",), 2, "a number, or all"),
            (("since=tomorrowish",), 3, "tomorrowish"),
            (("since=2020-01-01",), 3, "reaches back to"),
            (("since=#1",), 3, "does not reach back to #1"),
            (("since=77",), 3, "has no version 77"),
            (("since=2026-02-30",), 2, "'2026-02-30'"),
            (("since=2099-01-01",), 2, "'2099-01-01' lies in the future"),
            (("all",), 2, "is none of"),
        ):
            done = self.try_ctl("space", self.url, P, *words)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(sentence, done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
