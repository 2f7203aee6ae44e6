# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Partitions whose object IDs are packed, from the command line: what works in flat ones works there."""

import json
import os

import trees
from harness import E2ETest

P = 0x10000
STEP = 1 << 32
BYTES_MAX = 65536 * 4096


class Packed(E2ETest):
    def setUp(self):
        self.server = self.daemon(size="256M").start()
        self.url = self.server.url()
        self.ctl("mkpart", self.url, P, "--layout", "packed")

    def addresses(self, count, first=1):
        return [f"{P:#x}/{number * STEP:#x}" for number in range(first, first + count)]

    def test_objects_that_are_created_have_the_addresses_that_are_printed(self):
        self.assertEqual(self.ctl("create", self.url, P, "--count", 3).split(), self.addresses(3))
        self.assertEqual(self.ctl("create", self.url, P).split(), self.addresses(1, 4))
        self.assertEqual([entry["address"] for entry in json.loads(self.ctl("--json", "create", self.url, P, "--count", 2))], self.addresses(2, 5))
        self.assertEqual(self.ctl("ls", self.url, P).split(), self.addresses(6))

    def test_an_id_of_a_flat_partition_is_refused_with_what_to_do(self):
        for words, hint in ((["--replace"], b"where IDs are packed, take one from 0x100000000 on"), ([], b"--replace stores it")):
            done = self.try_ctl("put", self.url, f"{P}/0x20000", *words, stdin=b"x")
            self.assertEqual(done.returncode, 4)
            self.assertIn(hint, done.stderr)

    def export(self, *words):
        target = os.path.join(self.folder("target"), "tree")
        self.ctl("export", self.url, P, target, *words)
        return trees.describe(target)

    def test_a_tree_is_stored_updated_compared_and_brought_back(self):
        source = os.path.join(self.folder("source"), "tree")
        trees.make_odd(source)
        trees.write_file(os.path.join(source, "changes"), b"before")
        trees.write_file(os.path.join(source, "long"), bytes(range(256)) * 8192)
        self.ctl("create", self.url, P, "--count", 5)  # IDs of others are passed over
        self.ctl("import", self.url, P, source)
        first = trees.without_set_id_bits(trees.describe(source))
        self.ctl("snapshot", self.url, P, "--name", "first")
        trees.write_file(os.path.join(source, "changes"), b"behind it")
        trees.write_file(os.path.join(source, "new"), b"new")
        report = json.loads(self.ctl("--json", "import", self.url, P, source, "--update"))
        self.assertEqual((report["added"], report["changed"]), (1, 1))
        second = trees.without_set_id_bits(trees.describe(source))
        self.assertEqual(trees.differences(first, self.export("--at", "first")), [])
        self.assertEqual(trees.differences(second, self.export()), [])
        told = json.loads(self.ctl("--json", "diff", self.url, P, "first"))
        changed = [entry["object"] for entry in told if entry["path"] == "changes" and entry["differs"] == "data"]
        self.assertEqual([entry["path"] for entry in told if entry["differs"] == "added"], ["new"])
        self.assertEqual(len(changed), 1)
        log = json.loads(self.ctl("--json", "log", self.url, f"{P}/{changed[0]}"))
        self.assertEqual([entry["length"] for entry in log], [9, 6])
        self.assertEqual(self.ctl("cat", self.url, f"{P}/{changed[0]}@~1"), "before")
        self.assertEqual(self.ctl("cat", self.url, f"{P}/{int(changed[0], 16) | 1 << 16}"), "before")
        self.assertEqual(self.ctl("cat", self.url, f"{P}/{int(changed[0], 16) | 0xFFFF << 16}"), "before")
        self.ctl("import", self.url, P, source, "--replace")
        self.assertEqual(trees.differences(second, self.export()), [])
        self.assertEqual(self.ctl("ls", self.url, P).split()[:5], self.addresses(5))

    def test_what_is_found_in_a_version_of_an_object_is_read_at_the_address_that_is_printed(self):
        (address,) = self.addresses(1)
        partition, oid = address.split("/")
        self.ctl("put", self.url, address, stdin=b"one two three")
        self.ctl("snapshot", self.url, P)
        self.ctl("put", self.url, address, "--replace", stdin=b"nothing of it")
        for asked, moment in ((address, "@~1"), (f"{partition}/{int(oid, 16) | 1 << 16:#x}", ""), (address, "@1")):
            with self.subTest(asked=asked, moment=moment):
                found, span = self.ctl("search", self.url, asked + moment, "two").split()
                (told,) = json.loads(self.ctl("--json", "search", self.url, asked + moment, "two"))
                self.assertEqual((span, told["address"]), ("4+3", found))
                self.ctl("append", self.url, address, stdin=b", and more")
                self.assertEqual(self.ctl("cat", self.url, found), "one two three")
        self.assertEqual(self.ctl("search", self.url, f"{P}@1", "two").split(), [f"{address}@1", "4+3"])

    def test_a_unit_whose_partitions_are_packed_takes_trees(self):
        url = self.daemon(config="[lun 1]\ntype = osd\nsize = 256M\nlayout = packed\n").start().url()
        source = os.path.join(self.folder("source"), "tree")
        os.mkdir(source)
        trees.write_file(os.path.join(source, "file"), b"content")
        self.ctl("import", url, P, source)
        self.assertEqual(self.ctl("cat", url, f"{P}/{STEP}"), "content")

    def test_what_is_too_long_is_refused_before_anything_is_stored(self):
        source = os.path.join(self.folder("source"), "tree")
        os.mkdir(source)
        trees.write_file(os.path.join(source, "first"), b"content")
        with open(os.path.join(source, "long"), "wb") as file:
            file.truncate(BYTES_MAX + 1)
        for words in (["import", P, source], ["put", P, os.path.join(source, "long")]):
            with self.subTest(verb=words[0]):
                done = self.try_ctl(words[0], self.url, *words[1:])
                self.assertEqual(done.returncode, 8, done.stderr)
                self.assertIn(f"have at most {BYTES_MAX}".encode(), done.stderr)
                self.assertEqual(self.ctl("ls", self.url, P), "")
