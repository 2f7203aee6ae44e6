# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Every verb of muninnctl that reads takes every way to write a moment; wrong moments are refused and told apart."""

import datetime
import hashlib
import json
import os
import re
import time
import unittest

import trees
from harness import E2ETest

OID = 0x10000
FIRST, SECOND, THIRD = b"the first content", b"second", b"and the third, which is longer"


class Told(E2ETest):
    """Tells of moments as so long ago: `<N>` in an argument is `times[N]`, counted when the command starts."""

    def try_ctl(self, *words, **rest):
        return super().try_ctl(*(re.sub(r"<(\d)>", self.ago, str(word)) for word in words), **rest)

    def ago(self, match):
        return f"-{round((time.time() - self.times[int(match[1])]) * 1000)}ms"


class Moments(Told):
    """One object and one tree of three states each, with versions behind the first and the second."""

    @classmethod
    def setUpClass(cls):
        cls.holder = cls()
        cls.addClassCleanup(cls.holder.doCleanups)
        cls.holder.make()

    def make(self):
        cls = type(self)
        cls.server = self.daemon(size="256M").start()
        cls.url = self.server.url()
        cls.objects, cls.tree = 0x10000, 0x20000
        cls.address = f"0x{self.objects:x}/0x{OID:x}"
        cls.source = os.path.join(self.folder("source"), "tree")
        os.mkdir(self.source)
        self.ctl("mkpart", self.url, self.objects)
        cls.times, cls.sequences = [], []
        for number, content in enumerate((FIRST, SECOND, THIRD)):
            self.ctl("put", self.url, self.address, "--replace", stdin=content)
            trees.write_file(os.path.join(self.source, "file"), content)
            self.ctl("import", self.url, self.tree, self.source, "--update")
            cls.sequences.append(json.loads(self.ctl("--json", "log", self.url, self.address))[0]["sequence"])
            time.sleep(1.2)  # points in time are a second apart
            cls.times.append(time.time())
            if number < 2:
                for partition in (self.objects, self.tree):
                    self.ctl("snapshot", self.url, partition, "--name", f"state-{number + 1}")
            time.sleep(2)

    def moments(self):
        """(as written, number of the state) of a partition."""
        first, second = (datetime.datetime.fromtimestamp(moment, datetime.timezone.utc) for moment in self.times[:2])
        east = datetime.timezone(datetime.timedelta(hours=2))
        return (
            ("1", 0),
            ("2", 1),
            ("state-1", 0),
            ("state-2", 1),
            (first.strftime("%Y-%m-%dT%H:%M:%SZ"), 0),
            (second.strftime("%Y-%m-%dT%H:%M:%S.%fZ")[:-5] + "Z", 1),
            (second.strftime("%Y-%m-%d %H:%M:%SZ"), 1),
            (second.astimezone(east).strftime("%Y-%m-%dT%H:%M:%S+02:00"), 1),
            (time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(self.times[0])), 0),
            ("<1>", 1),
            ("-0s", 2),
            ("now", 2),
        )

    @staticmethod
    def content(state):
        return (FIRST, SECOND, THIRD)[state]

    def test_an_object_is_read_at_each_moment_by_each_verb(self):
        where = self.address
        forms = (*self.moments(), ("~1", 1), ("~2", 0), *((f"#{number}", state) for state, number in enumerate(self.sequences)))
        for moment, state in forms:
            content = self.content(state)
            with self.subTest(moment=moment):
                for words in ([f"{where}@{moment}"], [where, "--at", moment], [where, "--at", f"@{moment}"]):
                    self.assertEqual(self.ctl("get", self.url, *words, binary=True), content)
                    self.assertEqual(self.ctl("cat", self.url, *words, binary=True), content)
                at = f"{where}@{moment}"
                self.assertEqual(self.ctl("checksum", self.url, at).split()[0], hashlib.sha256(content).hexdigest())
                self.assertIn(f"length               {len(content)} ", self.ctl("stat", self.url, at))
                found = self.ctl("search", self.url, at, content.decode()).split()
                self.assertEqual(found[1], f"0+{len(content)}")
                length = json.loads(self.ctl("--json", "attr", "get", self.url, at, "0x1", "0x82"))
                self.assertEqual(int(length["hex"], 16), len(content))
                newest = json.loads(self.ctl("--json", "log", self.url, at))[0]
                self.assertEqual((newest["sequence"], newest["length"]), (self.sequences[state], len(content)))
                copy = self.ctl("cp", self.url, at, self.tree).strip()
                self.assertEqual(self.ctl("cat", self.url, copy, binary=True), content)
                self.ctl("rm", self.url, copy)

    def test_a_partition_is_read_at_each_moment_by_each_verb(self):
        for moment, state in self.moments():
            content = self.content(state)
            with self.subTest(moment=moment):
                at = f"0x{self.objects:x}@{moment}"
                (listed,) = self.ctl("ls", self.url, at).split()
                self.assertEqual(self.ctl("cat", self.url, listed, binary=True), content)
                self.assertEqual(len(self.ctl("search", self.url, at, content.decode()).splitlines()), 1)
                self.assertEqual(json.loads(self.ctl("--json", "check", self.url, at))["damaged"], [])
                clone = self.ctl("clone", self.url, at, 0x30000).strip()
                self.assertEqual(self.ctl("cat", self.url, f"{clone}/0x{OID:x}", binary=True), content)
                self.ctl("rmpart", self.url, clone, "--contents")
                target = os.path.join(self.folder("target"), "tree")
                self.ctl("export", self.url, self.tree, target, "--at", moment)
                with open(os.path.join(target, "file"), "rb") as file:
                    self.assertEqual(file.read(), content)

    def test_differences_between_any_two_moments(self):
        forms = self.moments()
        for first, before in forms:
            for second, after in forms[::3]:
                with self.subTest(first=first, second=second):
                    told = json.loads(self.ctl("--json", "diff", self.url, self.tree, first, second))
                    lengths = [entry["length"] for entry in told if entry["differs"] == "length"]
                    self.assertEqual(lengths, [] if before == after else [len(self.content(after))])
                    self.assertEqual({entry["path"] for entry in told} - {"."}, set() if before == after else {"file"})

    def test_rollback_takes_an_object_to_each_moment_and_undo_back(self):
        for moment, state in (*self.moments()[:-2], ("~1", 0)):
            partition = self.ctl("clone", self.url, f"{self.objects}@now").strip()
            address = f"{partition}/0x{OID:x}"
            with self.subTest(moment=moment):
                if moment == "~1":
                    self.ctl("put", self.url, address, "--replace", stdin=FIRST)
                    self.ctl("put", self.url, address, "--replace", stdin=SECOND)
                    self.ctl("rollback", self.url, address, moment)
                else:
                    # A clone has no past of its own: the original goes there and back.
                    self.ctl("rollback", self.url, self.address, moment)
                    self.assertEqual(self.ctl("cat", self.url, self.address, binary=True), self.content(state))
                    self.ctl("undo", self.url, self.address)
                    address = self.address
                self.assertEqual(self.ctl("cat", self.url, address, binary=True), self.content(0 if moment == "~1" else 2))
            self.ctl("rmpart", self.url, partition, "--contents")

    def test_wrong_moments_are_refused_with_what_is_wrong(self):
        wrong = (
            ("nosuch", 3, "no version with the name 'nosuch'"),
            ("77", 3, "no version|no such version"),
            ("-1w", 3, "reaches back to 20"),
            ("2020-02-02", 3, "reaches back to 20.* not to 2020-02-0"),
            ("#1", 3, "does not reach back to #1"),
            ("2099-01-01", 2, "lies in the future"),
            ("-5y", 2, "is no moment; for instance"),
            ("2026-13-01", 2, "is no moment; for instance"),
            ("~1", 2, "counts the modifications of one object"),
            ("?", 2, "is no moment; for instance"),
        )
        ways = (
            lambda moment: ("ls", self.url, f"{self.objects}@{moment}"),
            lambda moment: ("export", self.url, self.tree, os.path.join(self.folder("target"), "x"), "--at", moment),
            lambda moment: ("diff", self.url, self.objects, moment),
            lambda moment: ("diff", self.url, self.objects, "now", moment),
            lambda moment: ("clone", self.url, f"{self.objects}@{moment}"),
            lambda moment: ("rollback", self.url, self.objects, moment),
        )
        for moment, code, sentence in wrong:
            for way in ways:
                words = way(moment)
                with self.subTest(words=words):
                    done = self.try_ctl(*words)
                    self.assertEqual(done.returncode, code, done.stderr)
                    self.assertRegex(done.stderr.decode(), sentence)
                    self.assertEqual(done.stdout, b"")

    def test_where_no_moment_belongs_it_is_refused(self):
        at = f"{self.address}@1"
        for words, code in (
            (("put", self.url, at, "--replace"), 7),
            (("append", self.url, at), 7),
            (("rm", self.url, at), 7),
            (("truncate", self.url, at, 0), 7),
            (("undo", self.url, at), 7),
            (("create", self.url, f"{self.objects}@1"), 7),
            (("rmpart", self.url, f"{self.objects}@1", "--contents"), 7),
            (("rmpart", self.url, self.objects, "--contents", "--at", "1"), 7),
            (("mkpart", self.url, "0x50000@1"), 7),
            (("clone", self.url, self.objects, "0x50000@1"), 7),
            (("refresh", self.url, f"{self.objects}@1"), 7),
            (("detach", self.url, f"{self.objects}@1"), 7),
            (("cp", self.url, at, f"{self.objects}@1"), 7),
            (("coll", "create", self.url, f"{self.objects}@1"), 7),
            (("coll", "add", self.url, at, self.address), 7),
            (("coll", "add", self.url, self.address, at), 7),
            (("rollback", self.url, at, "1"), 2),
            (("get", self.url, f"{self.address}@-1s", "--at", "-2s"), 2),
            (("cat", self.url, self.address, at, "--at", "1"), 2),
            (("ls", self.url, f"{self.objects}@1", "--at", "1"), 2),
            (("diff", self.url, f"{self.objects}@1", "2"), 2),
            (("snapshot", self.url, f"{self.objects}@1"), 2),
            (("versions", self.url, f"{self.objects}@1"), 2),
            (("retention", self.url, f"{self.objects}@1"), 2),
            (("drop", self.url, self.objects, "#1"), 2),
            (("rollback", self.url, self.objects, "now"), 2),
            (("get", self.url, at, "--at", "2"), 2),
            (("put", self.url, self.address, "--replace", "--at", "1"), 7),
            (("import", self.url, self.tree, self.source, "--update", "--at", "1"), 7),
        ):
            with self.subTest(words=words):
                done = self.try_ctl(*words, stdin=b"x")
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertFalse(re.search(rb"Operation|errno|0x10000000", done.stderr), done.stderr)
        self.assertEqual(self.ctl("cat", self.url, self.address, binary=True), THIRD)

    def test_a_version_is_dropped_by_the_time_when_it_was_made_and_by_no_other(self):
        partition = self.ctl("mkpart", self.url).strip()
        self.ctl("snapshot", self.url, partition)
        time.sleep(1.2)
        self.ctl("snapshot", self.url, partition)
        first, second = json.loads(self.ctl("--json", "versions", self.url, partition))
        near = self.try_ctl("drop", self.url, partition, "-1h")
        self.assertEqual(near.returncode, 3)
        self.assertIn(b"no version was made at", near.stderr)
        self.ctl("drop", self.url, partition, first["time"])
        (left,) = json.loads(self.ctl("--json", "versions", self.url, partition))
        self.assertEqual(left["version"], second["version"])
        self.ctl("drop", self.url, partition, second["time"].split(".")[0] + "Z")
        self.assertEqual(self.ctl("versions", self.url, partition), "")
        self.ctl("rmpart", self.url, partition)


class DeviceMoments(Told):
    """Three states of a device: one partition; a second one; the first one removed, and made again otherwise."""

    KEPT, SECOND = 0x10000, 0x20000

    def setUp(self):
        self.server = self.daemon(size="256M").start()
        self.url = self.server.url()
        self.times = []
        self.address = f"0x{self.KEPT:x}/0x{OID:x}"
        self.ctl("mkpart", self.url, self.KEPT)
        self.ctl("put", self.url, self.address, stdin=FIRST)
        self.end_state("one")
        self.ctl("mkpart", self.url, self.SECOND)
        self.end_state("two")
        self.ctl("rmpart", self.url, self.KEPT, "--contents")

    def end_state(self, name):
        time.sleep(1.2)  # points in time are a second apart
        self.times.append(time.time())
        self.ctl("snapshot", self.url, 0, "--name", name)
        time.sleep(2)

    def moments(self):
        """(as written, partitions) of the device."""
        one, two = [self.KEPT], [self.KEPT, self.SECOND]
        clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(self.times[0]))
        return (("<0>", one), (clock, one), ("one", one), ("32768", one), ("<1>", two), ("two", two), ("32769", two), ("now", [self.SECOND]))

    def test_the_partitions_of_each_moment_are_listed_counted_and_checked(self):
        for moment, partitions in self.moments():
            with self.subTest(moment=moment):
                for words in ([f"0@{moment}"], [0, "--at", moment], ["--at", moment]):
                    listed = json.loads(self.ctl("--json", "ls", self.url, *words))
                    self.assertEqual([int(entry["id"], 16) for entry in listed], partitions)
                    self.assertEqual(json.loads(self.ctl("--json", "stat", self.url, *words))["partitions"], len(partitions))
                checked = json.loads(self.ctl("--json", "check", self.url, f"0@{moment}"))
                self.assertEqual((checked["objects"], checked["damaged"]), (1 + 2 * len(partitions) + (self.KEPT in partitions), []))
                # What is printed means the same when it is given back.
                for entry in listed:
                    self.assertEqual(self.ctl("stat", self.url, entry["address"]).split()[1], entry["address"])

    def test_a_partition_that_is_gone_is_read_at_the_moments_when_it_was_there(self):
        for again in (False, True):
            if again:
                self.ctl("mkpart", self.url, self.KEPT, "--layout", "packed")
            for moment, partitions in self.moments():
                if self.KEPT not in partitions:
                    continue
                with self.subTest(moment=moment, again=again):
                    (listed,) = self.ctl("ls", self.url, f"{self.KEPT}@{moment}").split()
                    self.assertEqual(self.ctl("cat", self.url, listed, binary=True), FIRST)
                    self.assertEqual(self.ctl("cat", self.url, f"{self.address}@{moment}", binary=True), FIRST)
                    self.assertEqual(self.ctl("search", self.url, listed, "first").split()[0], listed)
                    self.assertEqual(self.ctl("ls", self.url, "-l", f"0@{moment}").split()[1], str(4096))

    def test_a_partition_that_came_back_does_not_go_to_when_it_was_gone(self):
        time.sleep(1.2)
        self.end_state("three")
        self.ctl("rollback", self.url, 0, "two")
        for moment in ("<2>", "three"):
            for verb, words in (("rollback", [self.KEPT, moment]), ("clone", [f"{self.KEPT}@{moment}"]), ("diff", [self.KEPT, moment, "--raw"])):
                with self.subTest(verb=verb, moment=moment):
                    done = self.try_ctl(verb, self.url, *words)
                    self.assertEqual((done.returncode, done.stdout), (3, b""), done.stderr)
                    self.assertIn("it was not there then", done.stderr.decode())
                    self.assertEqual(self.ctl("cat", self.url, self.address, binary=True), FIRST)
        listed = json.loads(self.ctl("--json", "versions", self.url, self.KEPT))
        self.assertEqual([version["name"] for version in listed], ["one", "two"])

    def test_moments_that_are_none_of_the_device_are_refused_with_what_is_wrong(self):
        for moment, code, sentence in (
            ("1", 3, "the device has no such version"),
            ("nosuch", 3, "the device has no version with the name 'nosuch'"),
            ("-1w", 3, "history of the device reaches back to 20"),
            ("#5", 3, "history of the device does not reach back to #5"),
            ("~1", 2, "counts the modifications of one object"),
            ("2099-01-01", 2, "lies in the future"),
        ):
            for verb in ("ls", "stat", "check"):
                with self.subTest(moment=moment, verb=verb):
                    done = self.try_ctl(verb, self.url, f"0@{moment}")
                    self.assertEqual((done.returncode, done.stdout), (code, b""), done.stderr)
                    self.assertRegex(done.stderr.decode(), sentence)
        # A wrong year does not empty the device.
        self.assertEqual(self.try_ctl("rollback", self.url, 0, "2020-02-02").returncode, 3)
        self.assertEqual(self.ctl("ls", self.url).split(), [f"0x{self.SECOND:x}"])
        # A partition that was not there then is still told by its own history.
        early = self.try_ctl("ls", self.url, f"{self.SECOND}@<0>")
        self.assertEqual(early.returncode, 3)
        self.assertIn(b"the history of partition 0x20000 reaches back to 20", early.stderr)

    def test_a_number_within_the_first_moment_is_one_of_objects_only(self):
        for partition in range(0x30000, 0x30008):  # a moment may end in between
            address = f"{partition:#x}/{OID:#x}"
            self.ctl("mkpart", self.url, partition)
            for content in (FIRST, SECOND):
                self.ctl("put", self.url, address, "--replace", stdin=content)
            number = json.loads(self.ctl("--json", "log", self.url, address))[1]["sequence"]
            done = self.try_ctl("rollback", self.url, partition, f"#{number}")
            if done.returncode:
                break
        self.assertEqual(done.returncode, 3)
        self.assertIn("lies within the first moment of partition", done.stderr.decode())
        self.ctl("rollback", self.url, address, f"#{number}")
        self.assertEqual(self.ctl("cat", self.url, address, binary=True), FIRST)


if __name__ == "__main__":
    unittest.main()
