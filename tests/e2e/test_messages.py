# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""What muninnctl says of commands that are wrong: exit code, and a sentence that tells what is wrong and what to do."""

import os
import time
import unittest

from harness import OneDaemonTest

USAGE, NOT_FOUND, EXISTS, DENIED, TARGET = 2, 3, 4, 7, 8


class Messages(OneDaemonTest):
    def setUp(self):
        self.url = self.shared.url()
        self.partition = next(self.partitions)
        self.ctl("mkpart", self.url, self.partition)

    def put(self, number, content=b"content"):
        address = f"0x{self.partition:x}/0x{0x10000 + number:x}"
        self.ctl("put", self.url, address, "--replace", stdin=content)
        return address

    def assert_says(self, code, fragment, verb, *words):
        """The verb fails with this code, and says so, on standard error alone."""
        done = self.try_ctl(verb, self.url, *words)
        said = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (code, b""), (verb, words, said))
        self.assertIn(fragment, said, (verb, words))

    def test_of_several_objects_one_that_fails_holds_up_no_others(self):
        p = self.partition
        first, second, third = (self.put(number, b"%d" % number) for number in range(3))
        missing, nowhere = f"0x{p:x}/0x20000", "nobody/0x10000"
        collection = self.ctl("coll", "create", self.url, p).strip()
        for words, done in ((("cat",), "012"), (("coll", "add"), "3"), (("coll", "drop"), "3"), (("rm",), "3")):
            verb, of = words, (collection,) if "coll" in words else ()
            several = self.try_ctl("--json", *verb, self.url, *of, first, missing, second, nowhere, third)
            self.assertEqual(several.returncode, 1, several.stderr)
            self.assertIn(done, several.stdout.decode())
            for failed in (missing, "'nobody'"):
                self.assertEqual(several.stderr.decode().count(failed), 1, several.stderr)
            alone = self.try_ctl(*verb, self.url, *of, missing)
            self.assertEqual((alone.returncode, alone.stdout), (NOT_FOUND, b""))
        self.assertEqual(self.ctl("ls", self.url, p), "")

    def test_of_several_objects_a_wrong_address_is_found_before_anything_is_done(self):
        kept = self.put(0, b"kept")
        for wrong, code in ((f"{self.partition}", USAGE), (f"{kept}x", USAGE), (f"{kept}@1", DENIED)):
            self.assertEqual(self.try_ctl("rm", self.url, kept, wrong).returncode, code)
        self.assertEqual(self.ctl("cat", self.url, kept), "kept")

    def test_of_changes_of_the_past(self):
        past = f"{self.put(0)}@1"
        for verb, *words in (("rm",), ("append",), ("truncate", 1), ("clear", 0, 1), ("punch", 0, 1)):
            self.assert_says(DENIED, "the past can only be read", verb, past, *words)
        for words in (("attr", "set", past, 1, 9, "name"), ("coll", "rm", past), ("coll", "purge", past)):
            done = self.try_ctl(*words[:2], self.url, *words[2:])
            self.assertEqual(done.returncode, DENIED)
            self.assertIn(b"the past can only be read", done.stderr)

    def test_of_clones(self):
        p, other, missing = self.partition, next(self.partitions), next(self.partitions)
        self.ctl("mkpart", self.url, other)
        self.assert_says(EXISTS, "a partition with this ID exists already", "clone", p, other)
        self.assert_says(NOT_FOUND, f"there is no partition 0x{missing:x} now", "clone", missing)
        self.assert_says(NOT_FOUND, f"there is no partition 0x{missing:x} now", "clone", f"{missing}@3")
        self.assert_says(NOT_FOUND, f"partition 0x{p:x} has no version 77", "clone", f"{p}@77")
        for verb in ("refresh", "detach"):
            self.assert_says(USAGE, f"partition 0x{p:x} is no clone", verb, p)
            self.assert_says(NOT_FOUND, "there is no such partition", verb, missing)
        self.ctl("clone", self.url, other, missing)
        self.ctl("rmpart", self.url, other)
        self.assert_says(NOT_FOUND, f"the partition that 0x{missing:x} was cloned from has been removed", "refresh", missing)
        self.ctl("detach", self.url, missing)
        self.assert_says(USAGE, "was detached", "detach", missing)

    def test_of_clones_that_are_too_deep(self):
        content, last = self.put(0, b"kept"), self.partition
        for _ in range(16):
            clone = next(self.partitions)
            self.ctl("clone", self.url, last, clone)
            self.ctl("detach", self.url, clone)
            self.ctl("rmpart", self.url, last, "--contents")
            last = clone
        self.assertRegex(self.ctl("stat", self.url, last), r"\nclone_depth +16\n")
        self.assert_says(TARGET, "a clone of a clone, and so on, 16 deep", "clone", last)
        # The way out that it names.
        fresh, name = next(self.partitions), content.split("/")[1]
        self.ctl("mkpart", self.url, fresh)
        self.assertNotIn("clone_depth", self.ctl("stat", self.url, fresh))
        self.ctl("cp", self.url, f"0x{last:x}/{name}", f"0x{fresh:x}/{name}")
        clone = next(self.partitions)
        self.ctl("clone", self.url, fresh, clone)
        self.assertEqual(self.ctl("cat", self.url, f"0x{clone:x}/{name}"), "kept")

    def test_of_versions_that_are_the_device_s(self):
        p, name = self.partition, f"device-{self.partition}"
        self.put(0)
        version = self.ctl("snapshot", self.url, 0, "--name", name).strip()
        for written in (name, version):
            self.assert_says(USAGE, f"`muninnctl drop URL 0 {written}` drops it for all partitions", "drop", p, written)
        self.assert_says(NOT_FOUND, "the device has no version 3", "drop", 0, 3)
        self.assert_says(NOT_FOUND, "no version with the name 'nobody'", "drop", p, "nobody")
        self.ctl("drop", self.url, 0, version)

    def test_of_versions_of_several_partitions(self):
        p, other, missing = self.partition, next(self.partitions), next(self.partitions)
        self.ctl("mkpart", self.url, other)
        self.assert_says(USAGE, f"{p} and 0x{p:x} are one partition", "snapshot", p, other, f"0x{p:x}")
        self.assert_says(NOT_FOUND, f"there is no partition 0x{missing:x}", "snapshot", p, missing, other)
        self.assertEqual(self.ctl("versions", self.url, p), "")
        self.ctl("snapshot", self.url, p, other, "--name", "both")
        self.assert_says(EXISTS, "a version has this name already", "snapshot", p, other, "--name", "both")

    def test_of_copies_onto_themselves(self):
        missing = f"0x{self.partition:x}/0x20000"
        for address in (self.put(0, b"kept"), missing):
            self.assert_says(USAGE, f"{address} is the object to copy and the copy", "cp", address, address)
        self.assertEqual(self.ctl("ls", self.url, self.partition), f"0x{self.partition:x}/0x10000\n")

    def test_of_policies(self):
        p = self.partition
        self.assert_says(USAGE, "interval-for= is missing", "retention", p, "interval=1h")
        self.assert_says(USAGE, "interval= is missing", "retention", p, "all", "interval-for=1h")
        self.ctl("retention", self.url, p, "interval=1h", "interval-for=1w")
        said = self.ctl("retention", self.url, p, "keep-all=2s", "interval=1500ms")
        self.assertRegex(said, r"(?m)^keep all +2 s$")
        self.assertRegex(said, r"(?m)^interval +1500 ms$")
        self.assert_says(USAGE, "interval= is missing", "retention", p, "interval=0")
        self.ctl("retention", self.url, p, "interval-for=2w")
        self.assert_says(USAGE, "'none' contradicts", "retention", p, "all", "none")
        self.assert_says(USAGE, "'keep-all=2h' contradicts", "retention", p, "keep-all=1h", "keep-all=2h")
        self.assert_says(USAGE, "90min", "retention", p, "keep-all=5m")
        self.assert_says(USAGE, "longer than 8900 years", "retention", p, "keep-all=9999999w")
        self.assert_says(USAGE, "lies in the past", "retention", p, "lock-until=2020-01-01")

    def test_of_unlocking(self):
        image, p, missing = self.shared.image(), self.partition, next(self.partitions)
        self.ctl("retention", self.url, p, "all", "lock-until=2099-01-01")
        refused = self.try_ctl("unlock", image, missing)
        self.assertEqual(refused.returncode, NOT_FOUND)
        self.assertIn(f"partition 0x{missing:x}: there is no such partition", refused.stderr.decode())
        refused = self.try_ctl("unlock", image, 5)
        self.assertEqual(refused.returncode, USAGE)
        # It is done when the command ends, also where no initiator sends anything meanwhile.
        self.ctl("unlock", image, p)
        self.ctl("retention", self.url, p, "snapshots")
        self.assertEqual([name for name in os.listdir(os.path.dirname(image)) if "unlock" in name], [])

    def test_of_unlocking_twice_while_the_service_is_stopped(self):
        image = os.path.join(self.folder("stopped"), "lun1.img")
        self.ctl("nand", "create", image, "16M")
        self.ctl("unlock", image, 0x10000)
        self.ctl("unlock", image, 0x10000)
        # The first one would be lost.
        refused = self.try_ctl("unlock", image, 0x10001)
        self.assertEqual(refused.returncode, EXISTS)
        self.assertIn("partition 0x10001: " + image + ".unlock is there already", refused.stderr.decode())
        with open(image + ".unlock", encoding="ascii") as file:
            self.assertEqual(file.read(), "0x10000\n")

    def test_of_beginning_times_anew(self):
        image, now = self.shared.image(), time.strftime("%Y-%m-%dT%H:%M:%S")
        for fragment, code, words in (
            ("nothing on record is ahead of the clock", TARGET, [now]),
            ("by this host's clock it is", USAGE, ["2020-01-01T00:00"]),
            ("does not say what time it is; for instance", USAGE, ["-1s"]),
            ("does not say what time it is; for instance", USAGE, ["#5"]),
        ):
            refused = self.try_ctl("time-epoch", image, *words)
            self.assertEqual(refused.returncode, code, (words, refused.stderr))
            self.assertIn(fragment, refused.stderr.decode())
        self.assertEqual([name for name in os.listdir(os.path.dirname(image)) if "epoch" in name], [])

    def test_of_moments_at_which_a_partition_was_gone(self):
        p, other, kept = self.partition, next(self.partitions), f"kept-{self.partition}"
        self.ctl("mkpart", self.url, other)
        address = self.put(0)
        self.ctl("snapshot", self.url, 0, "--name", kept)
        self.ctl("rmpart", self.url, p, "--contents")
        time.sleep(1.1)
        self.ctl("snapshot", self.url, 0, "--name", f"gone-{p}")
        gone = time.strftime("%Y-%m-%dT%H:%M:%S")
        time.sleep(1.1)
        self.ctl("put", self.url, f"{other}/0x10000", stdin=b"later")
        number = self.ctl("log", self.url, f"{other}/0x10000").split()[0]
        time.sleep(1.1)
        self.ctl("rollback", self.url, 0, kept)
        for moment in (gone, number, f"gone-{p}"):
            there = f"is no moment of partition 0x{p:x}: it was not there then"
            self.assert_says(NOT_FOUND, there, "diff", p, moment)
            self.assert_says(NOT_FOUND, there, "diff", p, kept, moment)
            self.assert_says(NOT_FOUND, there, "rollback", p, moment)
            self.assert_says(NOT_FOUND, there, "clone", f"{p}@{moment}")
            self.assert_says(NOT_FOUND, there, "log", f"{address}@{moment}")
        self.assert_says(NOT_FOUND, "no command has had the number #99999999999 yet", "diff", p, "#99999999999")

    def test_of_things_of_another_kind(self):
        p, o = self.partition, self.put(0)
        collection = self.ctl("coll", "create", self.url, p).strip()
        missing, removed = f"{p}/0x20000", self.ctl("create", self.url, f"{p}/0x20001").strip()
        self.ctl("rm", self.url, removed)
        for code, fragment, words in (
            (USAGE, "is a collection, which has no content", ["get", collection]),
            (NOT_FOUND, "`coll rm` removes collections", ["rm", collection]),
            (NOT_FOUND, "or it is a collection", ["search", collection, "x"]),
            (TARGET, "only user objects can be undone", ["undo", collection]),
            (NOT_FOUND, "there was no such object then and there is none now", ["undo", missing]),
            (NOT_FOUND, "there was no such object then and there is none now", ["undo", removed, 2]),
            (NOT_FOUND, "a collection goes back with its partition", ["rollback", missing, "-1ms"]),
            (NOT_FOUND, "there is no such object", ["append", missing]),
            (USAGE, "is an object", ["mkpart", o]),
            (USAGE, "is the device", ["mkpart", 0]),
            (TARGET, "begins behind the object's end", ["punch", o, 99, 5]),
            (TARGET, "has not that much capacity", ["format", "99999T"]),
            (TARGET, "attribute 0x1/0x81", ["attr set", o, 1, 0x81, "--number", 5]),
            (NOT_FOUND, "there is no such version", ["log", f"{o}@7"]),
            (USAGE, "1 to 1024 bytes", ["search", p, "x" * 1025]),
            (NOT_FOUND, "there is no such collection", ["coll ls", o]),
            (NOT_FOUND, "there is no such collection", ["coll query", o, "1:9"]),
            (NOT_FOUND, "no such collection to take members from", ["coll track", p, o]),
            (USAGE, "is no collection", ["coll add", o, o]),
            (USAGE, "is no collection", ["coll purge", o]),
            (USAGE, "only one of --text, --hex", ["attr set", o, 0x10000, 1, "--hex", "--text", "aa"]),
        ):
            done = self.try_ctl(*words[0].split(), self.url, *words[1:])
            self.assertEqual((done.returncode, done.stdout), (code, b""), (words, done.stderr))
            self.assertIn(fragment, done.stderr.decode(), words)
        # What a function says begins with its name, not with that of what precedes all of them.
        self.assert_says(NOT_FOUND, "SNAPSHOT, address 0x77777", "snapshot", 0x77777)

    def test_of_words_that_are_no_verb_and_options_without_sense(self):
        for fragment, words in (
            ("behind 'attr' one of these is missing: get, set, ls", ["attr"]),
            ("'coll foo' is no verb; behind 'coll' stands one of: create", ["coll", "foo"]),
            ("the IMAGE is missing", ["nand", "info"]),
            ("the FILE is missing", ["key", "create"]),
            ("--at is for verbs that read an ADDRESS", ["format", self.url, "--at", "-1d"]),
            ("-5: no number is negative here", ["rollback", self.url, self.partition, "-5"]),
            ("--security 'frob'", ["ls", self.url, "--security", "frob"]),
            ("'frob' is none of master, root", ["key", "set", self.url, "frob", "--key", "nofile"]),
            ("the form is: muninnctl nand dump PAGE IMAGE", ["nand", "dump", self.shared.image(), 5]),
        ):
            done = self.try_ctl(*words)
            self.assertEqual((done.returncode, done.stdout), (USAGE, b""), (words, done.stderr))
            self.assertIn(fragment, done.stderr.decode(), words)

    def test_of_files_that_are_no_images(self):
        path = os.path.join(self.folder("images"), "notes")
        with open(path, "w", encoding="ascii") as file:
            file.write("no image\n")
        for words in (["nand", "timing", path, "tlc"], ["nand", "faults", path, "seed=7"], ["nand", "cut", path, "after=5"], ["unlock", path, 0]):
            done = self.try_ctl(*words)
            self.assertEqual((done.returncode, done.stdout), (11, b""), (words, done.stderr))
            self.assertIn(b"is not a Muninn image", done.stderr)
        self.assertEqual(os.listdir(os.path.dirname(path)), ["notes"])


if __name__ == "__main__":
    unittest.main()
