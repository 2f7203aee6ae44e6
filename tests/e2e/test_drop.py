# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""What ends for good: versions one by one, in ranges and by plan; and what is asked before. And quotas."""

import datetime
import json
import os
import pty
import select
import subprocess
import unittest

from harness import LIMIT_SECONDS, MUNINNCTL, OneDaemonTest, noise

FAILED, USAGE, NOT_FOUND, NO_SPACE = 1, 2, 3, 5


def answer(reply, *words):
    """Runs muninnctl on a terminal, and answers its question; returns (exit code, what it showed)."""
    master, slave = pty.openpty()
    process = subprocess.Popen([MUNINNCTL, *map(str, words)], stdin=slave, stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    shown = b""
    try:
        while select.select([master], [], [], LIMIT_SECONDS)[0]:
            shown += os.read(master, 4096)
            if shown.endswith(b"[y/N] "):
                os.write(master, reply)
                shown += b"\n"
    except OSError:  # nobody has the other end any more
        pass
    code = process.wait(LIMIT_SECONDS)
    os.close(master)
    return code, shown.decode(errors="replace")


class Dropping(OneDaemonTest):
    def setUp(self):
        self.url = self.shared.url()
        self.partition = f"{next(self.partitions):#x}"
        self.ctl("mkpart", self.url, self.partition)

    def make(self, *names):
        """A version by each of the names; "" has none."""
        for name in names:
            self.ctl("put", self.url, f"{self.partition}/0x10000", "--replace", stdin=name.encode() + b".")
            self.ctl("snapshot", self.url, self.partition, *(["--name", name] if name else []))

    def versions(self):
        return json.loads(self.ctl("--json", "versions", self.url, self.partition))

    def numbers(self):
        return [version["version"] for version in self.versions()]

    def drop(self, *words):
        return json.loads(self.ctl("--json", "drop", self.url, self.partition, *words))

    def fails(self, code, word, *arguments):
        done = self.try_ctl(*arguments)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        self.assertIn(word, done.stderr.decode())

    def test_ranges_by_number_name_and_time(self):
        self.make("", "b", "", "d", "", "f", "", "h")
        self.assertEqual([dropped["version"] for dropped in self.drop("2..3")], [2, 3])
        self.assertEqual([dropped["name"] for dropped in self.drop("d..f")], ["d", "", "f"])
        self.assertEqual(self.numbers(), [1, 7, 8])
        self.assertEqual([dropped["version"] for dropped in self.drop("h", "1")], [1, 8])
        self.make("i", "j")
        self.assertEqual(len(self.drop("..1999-12-31")), 0)
        before = self.versions()
        self.assertEqual(self.drop("..", "--dry-run")[0]["time"], before[0]["time"])
        self.assertEqual(self.versions(), before)
        self.assertEqual([dropped["version"] for dropped in self.drop(f"{before[1]['time']}..")], [before[1]["version"], before[2]["version"]])
        self.assertEqual(self.numbers(), [before[0]["version"]])

    def test_a_name_that_looks_like_a_range_is_that_version(self):
        self.make("a", "a..c", "b", "c", "d..")
        self.assertEqual([dropped["name"] for dropped in self.drop("a..c")], ["a..c"])
        self.assertEqual([dropped["name"] for dropped in self.drop("b", "d..")], ["b", "d.."])
        self.assertEqual([dropped["name"] for dropped in self.drop("a..c")], ["a", "c"])

    def test_wrong_ranges_drop_nothing(self):
        self.make("", "", "x")
        for code, word, words in ((NOT_FOUND, "no version 9", ["1..9"]), (NOT_FOUND, "no version 'y'", ["1", "y"]), (USAGE, "before it begins", ["3..1"]),
                                  (USAGE, "no end of a range", ["~1..2"]), (USAGE, "is a time", ["1", "2020-01-01"]), (USAGE, "missing", []),
                                  (USAGE, "either", ["1", "--keep-last", "1"]), (USAGE, "a number from 1", ["--keep-daily", "0"])):  # fmt: skip
            self.fails(code, word, "drop", self.url, self.partition, *words)
        self.assertEqual(self.numbers(), [1, 2, 3])

    def test_a_plan_keeps_the_newest_of_each_period_and_what_has_a_name(self):
        self.make("", "named", "", "", "")
        self.assertEqual([line["version"] for line in self.drop("--keep-last", "2", "--dry-run")], [1, 3])
        self.assertEqual([line["version"] for line in self.drop("--keep-last", "3")], [1])
        # By days, of versions as they are: two days, should it be midnight.
        listed = self.versions()
        days = {}
        for version in listed:
            days[datetime.datetime.fromisoformat(version["time"].replace("Z", "+00:00")).date()] = version["version"]
        kept = set(days.values()) | {2}
        dropped = self.drop("--keep-daily", "7", "--keep-weekly", "1")
        self.assertEqual([line["version"] for line in dropped], [version["version"] for version in listed if version["version"] not in kept])
        self.assertEqual(set(self.numbers()), kept)

    def test_versions_of_the_device_and_those_under_a_clone_stay(self):
        self.make("", "")
        self.ctl("snapshot", self.url, 0, "--name", "of-the-device")
        self.make("", "")
        clone = self.ctl("clone", self.url, f"{self.partition}@2").strip()
        done = self.try_ctl("drop", self.url, self.partition, "--keep-last", "1")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("muninnctl: version 2: ", done.stderr.decode())
        self.assertEqual([line.split()[0] for line in done.stdout.decode().splitlines()], ["1", "3"])
        self.assertEqual([version for version in self.numbers() if version < 32768], [2, 4])
        self.assertRegex(self.ctl("versions", self.url, 0), r" - objects +- used .* of-the-device\n")
        version = json.loads(self.ctl("--json", "versions", self.url, 0))[0]
        self.assertEqual((version["objects"], version["used"]), (None, None))
        self.ctl("rmpart", self.url, clone, "--contents")
        self.ctl("drop", self.url, 0, "of-the-device")

    def test_many_versions_end_only_if_a_terminal_agrees(self):
        self.make("", "", "")
        for reply in (b"n\n", b"\n", b"\x04", b"maybe\n"):
            code, shown = answer(reply, "drop", self.url, self.partition, "1..2")
            self.assertEqual(code, FAILED, shown)
            self.assertIn("2 of 3 versions", shown)
            self.assertIn("nothing was done", shown)
        self.assertEqual(self.numbers(), [1, 2, 3])
        code, shown = answer(b"y\n", "drop", self.url, self.partition, "1..2")
        self.assertEqual((code, self.numbers()), (0, [3]), shown)
        self.make("")
        code, shown = answer(b"n\n", "drop", self.url, self.partition, "..", "--yes")
        self.assertEqual((code, shown, self.numbers()), (0, "", []))

    def test_a_partition_goes_with_its_contents_only_if_a_terminal_agrees(self):
        self.make("a")
        code, shown = answer(b"n\n", "rmpart", self.url, self.partition, "--contents")
        self.assertEqual(code, FAILED, shown)
        self.assertIn(self.partition, self.ctl("ls", self.url).split())
        self.assertEqual(answer(b"yes\n", "rmpart", self.url, self.partition, "--contents")[0], 0)
        self.assertNotIn(self.partition, self.ctl("ls", self.url).split())


class Formatting(OneDaemonTest):
    def test_format_asks_on_a_terminal(self):
        url = self.shared.url()
        self.ctl("mkpart", url, "kept")
        code, shown = answer(b"n\n", "format", url)
        self.assertEqual(code, FAILED, shown)
        self.assertIn("goes for good", shown)
        self.assertIn("kept", self.ctl("ls", "-l", url))
        self.assertEqual(answer(b"", "format", url, "--yes")[0], 0)
        self.assertEqual(self.ctl("ls", url), "")
        self.ctl("mkpart", url)
        self.ctl("format", url)  # where nobody can be asked
        self.assertEqual(self.ctl("ls", url), "")


class Quotas(OneDaemonTest):
    def setUp(self):
        self.url = self.shared.url()
        self.partition = f"{next(self.partitions):#x}"
        self.ctl("mkpart", self.url, self.partition)

    def quota(self, *words):
        return json.loads(self.ctl("--json", "quota", self.url, *words))

    def put(self, oid, length):
        return self.try_ctl("put", self.url, f"{self.partition}/{oid}", stdin=noise(length, length)).returncode

    def test_capacity_and_number_of_objects_are_limited(self):
        self.assertEqual(self.quota(self.partition), {"length": None, "capacity": None, "objects": None, "used": 0, "members": 0})
        told = self.quota(self.partition, "capacity=64K", "objects=2")
        self.assertEqual((told["capacity"], told["objects"]), (65536, 2))
        self.assertEqual(self.put("0x10000", 40000), 0)
        self.assertEqual(self.put("0x10001", 40000), NO_SPACE)
        self.assertEqual(self.put("0x10001", 1000), 0)
        self.assertEqual(self.put("0x10002", 0), NO_SPACE)
        told = self.quota(self.partition)
        self.assertEqual((told["used"], told["members"]), (40960 + 4096, 2))
        shown = self.ctl("quota", self.url, self.partition)
        self.assertRegex(shown, r"(?m)^capacity +65536 \(64\.0 KiB\)$")
        self.assertRegex(shown, r"(?m)^length +none$")
        self.quota(self.partition, "capacity=none", "objects=none")
        self.assertEqual(self.put("0x10002", 100000), 0)

    def test_the_length_of_an_object_and_of_new_ones_is_limited(self):
        self.quota(self.partition, "length=1000")
        self.assertEqual(self.put("0x10000", 1001), NO_SPACE)
        self.assertEqual(self.put("0x10000", 1000), 0)
        self.assertEqual(self.quota(f"{self.partition}/0x10000"), {"length": 1000, "used": 4096})
        self.quota(f"{self.partition}/0x10000", "length=none")
        self.ctl("truncate", self.url, f"{self.partition}/0x10000", "5000")

    def test_the_device_says_what_new_partitions_get(self):
        self.assertEqual(self.quota(0, "objects=7")["objects"], 7)
        made = self.ctl("mkpart", self.url).strip()
        self.assertEqual(self.quota(made)["objects"], 7)
        self.assertEqual(self.quota(0, "objects=none")["objects"], None)
        self.ctl("rmpart", self.url, made)

    def test_wrong_limits_change_nothing(self):
        for words in ([self.partition, "size=1"], [self.partition, "capacity"], [self.partition, "capacity=0"], [self.partition, "objects=1", "length=x"],
                      [self.partition, "partitions=1"], [f"{self.partition}/0x10000", "capacity=1G"]):  # fmt: skip
            done = self.try_ctl("quota", self.url, *words)
            self.assertEqual(done.returncode, USAGE, (words, done.stderr))
        self.assertEqual(self.quota(self.partition)["objects"], None)


if __name__ == "__main__":
    unittest.main()
