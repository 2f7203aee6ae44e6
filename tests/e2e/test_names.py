# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Partitions by name, and files of stored trees by path, in the verbs of muninnctl."""

import json
import os
import unittest

import trees
from harness import OneDaemonTest

USAGE, NOT_FOUND, EXISTS, DENIED = 2, 3, 4, 7


class Names(OneDaemonTest):
    """Partitions by name."""

    def setUp(self):
        self.url = self.shared.url()
        for partition in self.ctl("ls", self.url).split():
            self.ctl("rmpart", self.url, partition, "--contents")

    def fails(self, code, word, *arguments):
        done = self.try_ctl(*arguments)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        self.assertIn(word, done.stderr.decode())

    def names(self):
        return {line["id"]: line["username"] for line in json.loads(self.ctl("--json", "ls", "-l", self.url))}

    def test_a_name_stands_for_the_id_in_every_address(self):
        partition = self.ctl("mkpart", self.url, "docs").strip()
        address = f"{partition}/0x10004"
        self.assertEqual(self.ctl("put", self.url, "docs/0x10004", stdin=b"first").strip(), address)
        self.ctl("snapshot", self.url, "docs", "--name", "before")
        self.ctl("put", self.url, "docs/0x10004", "--replace", stdin=b"second")
        self.assertEqual(self.ctl("cat", self.url, "docs/0x10004", "docs/0x10004@before", "docs/0x10004@~1"), "secondfirstfirst")
        self.assertEqual(self.ctl("cat", self.url, "docs/0x10004", "--at", "before"), "first")
        self.assertEqual(self.ctl("ls", self.url, "docs").split(), [address])
        self.assertIn("before", self.ctl("versions", self.url, "docs"))
        self.ctl("rollback", self.url, "docs", "before")
        self.assertEqual(self.ctl("cat", self.url, address), "first")
        self.ctl("rmpart", self.url, "docs", "--contents")
        self.assertEqual(self.ctl("ls", self.url), "")

    def test_names_are_given_changed_and_taken_away(self):
        first = self.ctl("mkpart", self.url, "0x10000", "--name", "docs").strip()
        second = self.ctl("mkpart", self.url).strip()
        self.ctl("name", self.url, second, "mail")
        self.assertEqual(self.names(), {first: "docs", second: "mail"})
        self.ctl("name", self.url, "docs", "papers")
        self.ctl("name", self.url, "mail", "--remove")
        self.assertEqual(self.names(), {first: "papers", second: ""})
        self.fails(NOT_FOUND, "'docs'", "stat", self.url, "docs")
        self.fails(EXISTS, "papers", "name", self.url, second, "papers")
        self.fails(EXISTS, "papers", "mkpart", self.url, "papers")
        self.fails(EXISTS, "papers", "mkpart", self.url, "0x10009", "--name", "papers")
        self.fails(EXISTS, "papers", "clone", self.url, second, "papers")
        for wrong in ("a/b", "a:b", "a@b", "root", "7up", ""):
            self.fails(USAGE, "can't be the name", "name", self.url, second, wrong)
        self.fails(USAGE, "--remove", "name", self.url, second)
        self.fails(USAGE, "--remove", "name", self.url, second, "x", "--remove")
        self.assertEqual(self.names(), {first: "papers", second: ""})

    def test_a_clone_does_not_take_the_name_of_its_source(self):
        source = self.ctl("mkpart", self.url, "docs").strip()
        made = [
            self.ctl("clone", self.url, "docs").strip(),
            self.ctl("clone", self.url, "docs", "copy").strip(),
            self.ctl("clone", self.url, "docs", "0x20000", "--name", "kept", "--read-only").strip(),
        ]
        self.assertEqual(self.names(), dict(zip([source, *made], ["docs", "", "copy", "kept"])))

    def test_a_name_that_two_partitions_have_is_refused(self):
        for partition in (0x10000, 0x10001):
            self.ctl("mkpart", self.url, partition)
            # As any initiator can do it.
            self.ctl("attr", "set", self.url, partition, "0x30000001", "9", "docs")
        self.fails(USAGE, "0x10000 and 0x10001", "ls", self.url, "docs")
        self.fails(EXISTS, "0x10000 and 0x10001", "mkpart", self.url, "docs")
        self.ctl("name", self.url, "0x10001", "other")
        self.assertEqual(self.ctl("ls", self.url, "docs"), "")

    def test_a_removed_partition_is_found_by_name_at_the_moments_of_the_device(self):
        self.ctl("mkpart", self.url, "docs")
        self.ctl("put", self.url, "docs/0x10000", stdin=b"kept")
        version = self.ctl("snapshot", self.url, 0).strip()
        self.ctl("rmpart", self.url, "docs", "--contents")
        self.fails(NOT_FOUND, "'docs'", "cat", self.url, "docs/0x10000")
        self.assertEqual(self.ctl("cat", self.url, f"docs/0x10000@{version}"), "kept")
        self.assertEqual(self.ctl("cat", self.url, "docs/0x10000", "--at", version), "kept")
        # The name is free again, and then means the new one.
        self.ctl("mkpart", self.url, "docs")
        self.assertEqual(self.ctl("ls", self.url, "docs"), "")
        self.ctl("drop", self.url, 0, version)

    def test_import_makes_a_partition_with_a_name(self):
        tree = self.folder("tree")
        trees.write_file(os.path.join(tree, "a"), b"content")
        self.ctl("import", self.url, "docs", tree)
        self.assertEqual(self.ctl("cat", self.url, "docs:a"), "content")
        self.ctl("import", self.url, "docs", tree, "--update")
        self.assertEqual(len(self.names()), 1)
        # Of a name that is new, too, no more may stand there than the partition.
        for behind in ("/b", "/0x10000", "/"):
            for verb, *rest in (["import", tree], ["mkpart"], ["receive"]):
                self.fails(USAGE, "is an object", verb, self.url, "none" + behind, *rest)
            self.fails(USAGE, "is an object", "clone", self.url, "docs", "none" + behind)
        # What fails leaves nothing, not even the name.
        self.fails(9, "No such file", "import", self.url, "none", tree + "-missing")
        self.assertEqual(list(self.names().values()), ["docs"])


class Paths(OneDaemonTest):
    """Files and directories of a tree that changed once, behind the version `first`."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.url = cls.shared.url()
        cls.source = os.path.join(cls.holder.folder("source"), "tree")
        os.makedirs(os.path.join(cls.source, "mail", "old"))
        os.mkdir(os.path.join(cls.source, "mailbox"))
        for name, data in (("a.txt", b"one"), ("mail/x@y", b"a letter"), ("mail/old/o", b"old"), ("mailbox/b", b"b letter")):
            trees.write_file(os.path.join(cls.source, name), data, 0o640, 1_600_000_000_000_000_000)
        os.link(os.path.join(cls.source, "a.txt"), os.path.join(cls.source, "mail", "linked"))
        os.symlink("a.txt", os.path.join(cls.source, "sym"))
        cls.holder.ctl("import", cls.url, "docs", cls.source)
        cls.holder.ctl("snapshot", cls.url, "docs", "--name", "first")
        trees.write_file(os.path.join(cls.source, "a.txt"), b"one and two", 0o640)
        os.rename(os.path.join(cls.source, "mail", "x@y"), os.path.join(cls.source, "mail", "z"))
        os.remove(os.path.join(cls.source, "mailbox", "b"))
        cls.holder.ctl("import", cls.url, "docs", cls.source, "--update")
        cls.partition = cls.holder.ctl("ls", cls.url).strip()

    def fails(self, code, word, *arguments):
        done = self.try_ctl(*arguments)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        self.assertIn(word, done.stderr.decode())

    def ls(self, *arguments):
        return self.ctl("ls", self.url, *arguments).splitlines()

    def test_ls_lists_a_directory_and_what_it_prints_can_be_read(self):
        top = ["docs:a.txt", "docs:mail/", "docs:mailbox/", "docs:sym"]
        for form in ("docs:", "docs:/", "docs:."):
            self.assertEqual(self.ls(form), top)
        self.assertEqual(self.ls(f"{self.partition}:"), [line.replace("docs", self.partition) for line in top])
        self.assertEqual(self.ls("docs:mail/"), ["docs:mail/linked", "docs:mail/old/", "docs:mail/z"])
        self.assertEqual(self.ls("docs:a.txt"), ["docs:a.txt"])
        self.assertEqual(self.ls("docs:mailbox@first"), ["docs:mailbox/b@1"])
        every = self.ls("docs:@first", "-R")
        self.assertEqual([line.split("@1")[0] for line in every],
                         ["docs:a.txt", "docs:mail/", "docs:mail/linked", "docs:mail/old/", "docs:mail/old/o", "docs:mail/x@y",
                          "docs:mailbox/", "docs:mailbox/b", "docs:sym"])  # fmt: skip
        content = "".join(self.ctl("get", self.url, line) for line in every if not line.startswith("docs:sym") and "/@" not in line)
        self.assertEqual(content, "one" + "one" + "old" + "a letter" + "b letter")
        self.fails(NOT_FOUND, "'mai'", "ls", self.url, "docs:mai")
        self.fails(USAGE, "--recursive", "ls", self.url, "docs", "-R")

    def test_a_long_list_shows_mode_length_time_and_target(self):
        lines = self.ls("docs:", "-l")
        self.assertRegex(lines[0], r"^-rw-r----- +\d+:\d+ +11  20.*Z  docs:a\.txt$")
        self.assertRegex(lines[1], r"^drwx.* docs:mail/$")
        self.assertRegex(lines[3], r"^lrwxrwxrwx .* docs:sym -> a\.txt$")
        told = json.loads(self.ctl("--json", "ls", "-l", self.url, "docs:@first"))
        self.assertEqual([(line["path"], line["type"]) for line in told],
                         [("a.txt", "file"), ("mail", "directory"), ("mailbox", "directory"), ("sym", "link")])  # fmt: skip
        self.assertEqual((told[0]["length"], told[0]["mode"], told[0]["modified"]), (3, "0640", "2020-09-13T12:26:40.000Z"))
        self.assertEqual(told[3]["target"], "a.txt")

    def test_json_tells_which_names_are_escaped(self):
        source = os.fsencode(os.path.join(self.folder("odd"), "tree"))
        os.mkdir(source)
        for name in (b"%ff", b"%FF", b"\xff", b"100% \xfe"):
            trees.write_file(os.path.join(source, name), name)
        os.symlink(b"%FF", os.path.join(source, b"valid"))
        os.symlink(b"\xff", os.path.join(source, b"wrong"))
        self.ctl("import", self.url, "odd", os.fsdecode(source))
        told = json.loads(self.ctl("--json", "ls", "-l", self.url, "odd:"))
        self.assertEqual(
            [(line["path"], line.get("target"), line.get("escaped")) for line in told],
            [("%FF", None, None), ("%ff", None, None), ("100%25%20%FE", None, ["address", "path"]),
             ("valid", "%FF", None), ("wrong", "%FF", ["target"]), ("%FF", None, ["address", "path"])],
        )  # fmt: skip
        objects = {line["username"] for line in json.loads(self.ctl("--json", "ls", "-l", self.url, "odd")) if "escaped" in line}
        self.assertEqual(objects, {"%FF", "100%25%20%FE"})
        found = json.loads(self.ctl("--json", "search", self.url, "odd:", "%"))
        self.assertEqual([("%25%20" in line["address"], "escaped" in line) for line in found], [(False, False)] * 2 + [(True, True)])
        self.ctl("rmpart", self.url, "odd", "--contents")

    def test_an_at_sign_in_a_path_needs_a_moment_behind_it(self):
        self.assertEqual(self.ctl("cat", self.url, "docs:mail/x@y@first"), "a letter")
        self.assertEqual(self.ctl("cat", self.url, "docs:mail/x@y@1"), "a letter")
        self.fails(NOT_FOUND, "write @now", "cat", self.url, "docs:mail/x@y")

    def test_reading_verbs_take_paths(self):
        copy = os.path.join(self.folder("copy"), "file")
        self.ctl("get", self.url, "docs:mail/linked", copy)
        with open(copy, "rb") as file:
            self.assertEqual(file.read(), b"one and two")
        self.assertEqual(self.ctl("cat", self.url, "docs:a.txt@first", "docs:a.txt@~1", "docs:a.txt"), "oneoneone and two")
        self.assertEqual(len(self.ctl("log", self.url, "docs:a.txt").splitlines()), 2)
        self.assertEqual(self.ctl("checksum", self.url, "docs:a.txt").split()[0],
                         self.ctl("checksum", self.url, f"{self.partition}/0x10000").split()[0])  # fmt: skip
        self.assertIn("a.txt", self.ctl("stat", self.url, "docs:a.txt"))
        self.assertEqual(self.ctl("attr", "get", self.url, "docs:a.txt", "0x1", "0x9").strip(), "a.txt")
        self.assertEqual(self.ctl("check", self.url, "docs:a.txt"), self.ctl("check", self.url, f"{self.partition}/0x10000"))
        target = self.ctl("mkpart", self.url).strip()
        made = self.ctl("cp", self.url, "docs:a.txt@first", target).strip()
        self.assertEqual(self.ctl("cat", self.url, made), "one")
        self.ctl("rmpart", self.url, target, "--contents")

    def test_what_is_no_file_is_told_apart(self):
        self.fails(USAGE, "directory", "get", self.url, "docs:mail")
        self.fails(USAGE, "directory", "get", self.url, "docs:")
        self.fails(USAGE, "link to 'a.txt'", "get", self.url, "docs:sym")
        self.fails(NOT_FOUND, "'nothing'", "get", self.url, "docs:nothing")
        self.fails(USAGE, "missing before the colon", "get", self.url, ":a.txt")
        self.fails(USAGE, "device has no paths", "ls", self.url, "0:")
        empty = self.ctl("mkpart", self.url).strip()
        self.fails(NOT_FOUND, "no directory tree", "ls", self.url, f"{empty}:")
        self.ctl("rmpart", self.url, empty)

    def test_verbs_that_change_refuse_paths(self):
        before = self.ctl("checksum", self.url, "docs:a.txt")
        for words in (["rm"], ["truncate", "0"], ["clear", "0", "1"], ["punch", "0", "1"], ["undo"], ["rollback", "first"],
                      ["put"], ["append"], ["rmpart"], ["create"], ["attr set", "0x1", "0x9", "x"]):  # fmt: skip
            verb, *rest = words
            self.fails(USAGE, "can only be read", *verb.split(), self.url, "docs:a.txt", *rest)
        self.fails(USAGE, "can only be read", "cp", self.url, "docs:a.txt", "docs:b.txt")
        self.assertEqual(self.ctl("checksum", self.url, "docs:a.txt"), before)

    def test_diff_of_a_path_tells_of_what_is_below_it(self):
        lines = self.ctl("diff", self.url, "docs:mail", "first").splitlines()
        self.assertIn("renamed mail/x%40y mail/z".replace("%40", "@"), " ".join(lines))
        self.assertTrue(all(" mail" in line and "mailbox" not in line for line in lines), lines)
        self.assertTrue(self.ctl("diff", self.url, "docs:mailbox", "first").startswith("0x"))
        self.assertEqual(self.ctl("diff", self.url, "docs:mail/old", "first"), "")
        whole = self.ctl("diff", self.url, "docs", "first").splitlines()
        self.assertEqual(self.ctl("diff", self.url, "docs:", "first").splitlines(), whole)
        self.fails(USAGE, "--raw", "diff", self.url, "docs:mail", "first", "--raw")
        # A slip must not look as if nothing had changed.
        self.fails(NOT_FOUND, "has 'mial' at neither moment", "diff", self.url, "docs:mial", "first")

    def test_search_of_a_path_prints_paths(self):
        self.assertEqual(self.ctl("search", self.url, "docs:@first", "letter").splitlines(),
                         ["docs:mail/x@y@1 2+6", "docs:mailbox/b@1 2+6"])  # fmt: skip
        self.assertEqual(self.ctl("search", self.url, "docs:mail", "one").splitlines(), ["docs:mail/linked 0+3"])
        self.assertEqual(self.ctl("search", self.url, "docs:a.txt", "one").splitlines(), ["docs:a.txt 0+3", ])
        self.fails(NOT_FOUND, "", "search", self.url, "docs:mail/old", "one")
        told = json.loads(self.ctl("--json", "search", self.url, "docs:mail", "letter"))
        self.assertEqual(told, [{"address": "docs:mail/z", "offset": 2, "length": 6}])

    def test_export_of_a_directory_brings_that_alone(self):
        for words, expected in ((["docs:mail"], {"linked": b"one and two", "z": b"a letter", "old/o": b"old"}),
                                (["docs:mail@first"], {"linked": b"one", "x@y": b"a letter", "old/o": b"old"}),
                                (["docs:mailbox", "--at", "first"], {"b": b"b letter"})):  # fmt: skip
            with self.subTest(words):
                out = os.path.join(self.folder("out"), "tree")
                self.ctl("export", self.url, words[0], out, *words[1:])
                found = {}
                for folder, _, names in os.walk(out):
                    for name in names:
                        with open(os.path.join(folder, name), "rb") as file:
                            found[os.path.relpath(os.path.join(folder, name), out)] = file.read()
                self.assertEqual(found, expected)
        self.fails(USAGE, "muninnctl get", "export", self.url, "docs:a.txt", os.path.join(self.folder("out"), "tree"))
        self.fails(NOT_FOUND, "'mai'", "export", self.url, "docs:mai", os.path.join(self.folder("out"), "tree"))


if __name__ == "__main__":
    unittest.main()
