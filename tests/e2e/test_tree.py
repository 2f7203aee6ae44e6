# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A real directory tree goes in and comes back bit for bit, and the device opens quickly with it."""

import json
import os
import random
import re
import shutil
import subprocess
import unittest

import trees
from harness import LIMIT_SECONDS, E2ETest

FILES = 10_000
BYTES = 150 << 20
P = 0x10000


class RealTree(E2ETest):
    def assert_same_trees(self, source, target, expected):
        self.assertEqual(trees.differences(expected, trees.describe(target)), [])
        done = subprocess.run(
            ["diff", "-r", "--no-dereference", source, target], capture_output=True, check=False, timeout=10 * LIMIT_SECONDS
        )
        self.assertEqual((done.returncode, done.stdout[:1000]), (0, b""))

    def opened(self, daemon):
        """Microseconds and bytes in use that the daemon tells when it has opened the device."""
        line = daemon.wait_for_line("open after ")
        found = re.search(r"open after (\d+) us, (\d+) of \d+ bytes used", line)
        return int(found.group(1)), int(found.group(2))

    def test_a_real_tree_comes_back_bit_for_bit_also_after_a_restart(self):
        source = os.path.join(self.folder("source"), "tree")
        os.mkdir(source)
        totals = trees.make_tree(source, FILES, BYTES)
        expected = trees.without_set_id_bits(trees.describe(source))
        print(f"{totals.files} real or made files of {totals.bytes >> 20} MiB, {len(expected)} names", flush=True)
        self.assertTrue(totals.reached(FILES, BYTES))

        daemon = self.daemon(size="1G").start()
        report = json.loads(self.ctl("--json", "import", daemon.url(), P, source))
        self.assertGreaterEqual(report["files"], FILES)
        self.assertGreaterEqual(report["bytes"], BYTES)
        self.assertEqual(report["skipped"], 0)
        target = os.path.join(self.folder("target"), "tree")
        self.ctl("export", daemon.url(), P, target)
        self.assert_same_trees(source, target, expected)
        shutil.rmtree(target)

        self.assertEqual(daemon.stop(), 0, daemon.errors)
        self.assertTrue(any("closed, everything is stable" in line for line in daemon.errors), daemon.errors)
        daemon.start()
        self.ctl("export", daemon.url(), P, target)
        self.assert_same_trees(source, target, expected)
        _, used = self.opened(daemon)
        self.assertGreaterEqual(used, BYTES)


class SmallTree(E2ETest):
    def setUp(self):
        self.source = os.path.join(self.folder("source"), "tree")
        trees.make_odd(self.source)
        self.expected = trees.without_set_id_bits(trees.describe(self.source))

    def test_a_tree_can_be_exported_into_an_empty_folder_only(self):
        daemon = self.daemon(size="64M").start()
        self.ctl("import", daemon.url(), P, self.source)
        target = self.folder("target")
        self.ctl("export", daemon.url(), P, target)
        self.assertEqual(trees.differences(self.expected, trees.describe(target)), [])
        again = self.try_ctl("export", daemon.url(), P, target)
        self.assertEqual(again.returncode, 10, again.stderr)

    def test_a_partition_without_a_tree_has_nothing_to_export(self):
        daemon = self.daemon(size="64M").start()
        self.ctl("mkpart", daemon.url(), P)
        for partition in (P, P + 1):
            done = self.try_ctl("export", daemon.url(), partition, os.path.join(self.folder("target"), "x"))
            self.assertEqual(done.returncode, 3, done.stderr)

    def test_a_tree_that_was_being_imported_is_none_yet(self):
        daemon = self.daemon(size="64M").start()
        url, source = daemon.url(), self.folder("begun")
        for name in ("first", "second"):
            trees.write_file(os.path.join(source, name), name.encode())
        self.ctl("import", url, "begun", source)
        self.ctl("snapshot", url, "begun")
        moment = f"#{json.loads(self.ctl('--json', 'log', url, 'begun:first'))[-1]['sequence']}"
        target = os.path.join(self.folder("target"), "tree")
        for verb, *words in (
            ("cat", f"begun:first@{moment}"),
            ("ls", f"begun:@{moment}"),
            ("export", f"begun@{moment}", target),
        ):
            refused = self.try_ctl(verb, url, *words)
            self.assertEqual(refused.returncode, 3, refused.stderr)
            self.assertIn(b"directory tree", refused.stderr)
        self.assertEqual(self.ctl("cat", url, "begun:first"), "first")

    def test_a_second_tree_takes_the_place_of_the_first_when_told_so(self):
        daemon = self.daemon(size="128M").start()
        self.ctl("import", daemon.url(), P, self.source)
        second = self.folder("second")
        trees.write_file(os.path.join(second, "only"), b"one")
        refused = self.try_ctl("import", daemon.url(), P, second)
        self.assertEqual(refused.returncode, 4, refused.stderr)
        self.ctl("import", daemon.url(), P, second, "--replace")
        target = os.path.join(self.folder("target"), "tree")
        self.ctl("export", daemon.url(), P, target)
        self.assertEqual(trees.differences(trees.describe(second), trees.describe(target)), [])
        self.assertEqual(len(self.ctl("ls", daemon.url(), P).split()), 2)

    def test_files_show_their_own_times_and_holes_are_not_sent(self):
        daemon = self.daemon(size="128M").start()
        source = self.folder("source")
        path = os.path.join(source, "sparse")
        with open(path, "wb") as file:
            file.truncate(8 << 20)
            file.seek(3 << 20)
            file.write(b"x" * 1000)
        trees.write_file(os.path.join(source, "small"), b"12345")
        os.utime(path, ns=(10**18, 981173106 * 10**9 + 789 * 10**6))  # 2001-02-03T04:05:06.789Z
        report = json.loads(self.ctl("--json", "import", daemon.url(), P, source))
        # A piece of --chunk bytes that holds data is sent.
        self.assertEqual((report["bytes"], report["sent_bytes"]), ((8 << 20) + 5, (1 << 20) + 5))
        self.assertRegex(self.ctl("ls", "-l", daemon.url(), P), r" 8388608  2001-02-03T04:05:06.789Z  sparse\n")
        listed = {row["username"]: row for row in json.loads(self.ctl("--json", "ls", "-l", daemon.url(), P))}
        self.assertEqual(listed["sparse"]["file_modified"], "2001-02-03T04:05:06.789Z")
        self.assertGreater(listed["sparse"]["modified"], "2020")

    def test_info_tells_what_is_live_of_what_is_used(self):
        daemon = self.daemon(size="128M").start()
        self.ctl("mkpart", daemon.url(), P)
        for number in range(5):
            self.ctl("put", daemon.url(), f"{P}/0x10000", "--replace", stdin=random.Random(number).randbytes(4 << 20))
        facts = json.loads(self.ctl("--json", "info", daemon.url()))
        self.assertEqual(facts["live"], 4 << 20)
        self.assertGreater(facts["used"], 4 * facts["live"])
        self.assertIn("live                 4194304 (4.0 MiB)", self.ctl("info", daemon.url()))

    def test_the_log_names_every_object(self):
        daemon = self.daemon(size="64M").start()
        log = os.path.join(self.folder("log"), "log")
        self.ctl("import", daemon.url(), P, self.source, "--log", log)
        with open(log, "rb") as file:
            lines = [line.split(b" ", 3) for line in file.read().splitlines()]
        files = {content[:2] for *_, content in self.expected.values() if isinstance(content, tuple)}
        self.assertEqual({(int(length), sha.decode()) for _, length, sha, _ in lines}, files)


if __name__ == "__main__":
    unittest.main()
