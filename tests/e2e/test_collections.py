# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Collections, over iSCSI by muninnctl: members, queries, tracking collections, and that all of it survives a kill."""

import json
import subprocess
import unittest

from harness import MUNINNCTL, E2ETest, OneDaemonTest

SANITIZED = True

NAME = ("0x1", "0x9")


class Collections(OneDaemonTest):
    DEVICE_SIZE = "128M"

    def lines(self, *arguments):
        return self.ctl(*arguments).split()

    def setUp(self):
        super().setUp()
        self.url = self.shared.url()
        self.p = next(self.partitions)
        self.ctl("mkpart", self.url, self.p)
        self.objects = self.lines("create", self.url, self.p, "--count", 5)
        self.collection = self.ctl("coll", "create", self.url, self.p).strip()

    def test_members_are_added_listed_and_dropped(self):
        self.ctl("coll", "add", self.url, self.collection, *self.objects[:3])
        self.assertEqual(self.lines("coll", "ls", self.url, self.collection), self.objects[:3])
        self.assertEqual(self.lines("coll", "ls", self.url, self.p), [self.collection])
        self.ctl("coll", "drop", self.url, self.collection, self.objects[1])
        self.ctl("rm", self.url, self.objects[0])
        self.assertEqual(self.lines("coll", "ls", self.url, self.collection), self.objects[2:3])
        self.ctl("attr", "set", self.url, self.collection, "0x60000001", "0x9", "films")
        self.assertIn("films", self.ctl("stat", self.url, self.collection))
        self.assertEqual(json.loads(self.ctl("stat", self.url, self.collection, "--json"))["collection_type"], 0)
        listed = json.loads(self.ctl("coll", "ls", self.url, self.collection, "--json"))
        self.assertEqual([entry["address"] for entry in listed], self.objects[2:3])

    def test_what_is_wrong_has_its_exit_code(self):
        self.ctl("coll", "add", self.url, self.collection, self.objects[0])
        for code, arguments in (
            (10, ("coll", "rm", self.url, self.collection)),
            (3, ("coll", "drop", self.url, self.collection, self.objects[1])),
            (3, ("coll", "ls", self.url, self.objects[0])),
            (4, ("coll", "create", self.url, self.objects[0])),
            (2, ("coll", "query", self.url, self.collection, "nonsense")),
            (2, ("coll", "query", self.url, self.collection, "1:2=abc", "--hex")),
            (2, ("coll", "add", self.url, self.collection, "0x99999/0x10000")),
        ):
            result = self.try_ctl(*arguments)
            self.assertEqual(result.returncode, code, f"{arguments}: {result.stderr}")
        self.ctl("coll", "rm", self.url, self.collection, "--force")
        self.ctl("stat", self.url, self.objects[0])

    def test_queries_find_members_by_names_numbers_and_bytes(self):
        for number, address in enumerate(self.objects):
            self.ctl("attr", "set", self.url, address, *NAME, "abcde"[number])
            self.ctl("truncate", self.url, address, number)
        self.ctl("coll", "add", self.url, self.collection, *self.objects)

        def query(*arguments):
            return [self.objects.index(line) for line in self.lines("coll", "query", self.url, self.collection, *arguments)]

        self.assertEqual(query("0x1:0x9=b..d"), [1, 2, 3])
        self.assertEqual(query("0x1:0x9=c"), [2])
        self.assertEqual(query("0x1:0x82=3..", "--number"), [3, 4])
        self.assertEqual(query("0x1:0x9=..62", "0x1:0x9=61..61", "--hex"), [0])
        self.assertEqual(query("0x1:0x9=62", "0x1:0x9=64..", "--hex", "--any"), [1, 3, 4])
        self.assertEqual(query("0x10001:0x5"), [])

    def test_a_tracking_collection_is_purged(self):
        self.ctl("coll", "add", self.url, self.collection, *self.objects)
        tracking = self.ctl("coll", "track", self.url, self.p, self.collection).strip()
        self.ctl("rm", self.url, self.objects[4])
        self.ctl("coll", "purge", self.url, tracking)
        self.assertEqual(self.lines("coll", "ls", self.url, tracking), [])
        self.assertEqual(self.lines("coll", "ls", self.url, self.collection), [])
        self.assertEqual(self.lines("ls", self.url, self.p), [])
        missing = self.ctl("attr", "get", self.url, tracking, "0x60000004", "0x13", "--raw", binary=True)
        self.assertEqual(int.from_bytes(missing, "big"), 1)


class Kill(E2ETest):
    def test_memberships_survive_a_kill(self):
        daemon = self.daemon(size="64M").start()
        url = daemon.url()
        self.ctl("mkpart", url, "0x10000")
        objects = self.ctl("create", url, "0x10000", "--count", 3).split()
        collection = self.ctl("coll", "create", url, "0x10000").strip()
        self.ctl("coll", "add", url, collection, *objects)
        self.ctl("coll", "drop", url, collection, objects[1])
        daemon.kill()
        daemon.start()
        url = daemon.url()
        self.assertEqual(self.ctl("coll", "ls", url, collection).split(), [objects[0], objects[2]])


    def test_a_purge_that_was_killed_goes_on(self):
        daemon = self.daemon(size="128M").start()
        url = daemon.url()
        self.ctl("mkpart", url, "0x10000")
        objects = self.ctl("create", url, "0x10000", "--count", 1500).split()
        collection = self.ctl("coll", "create", url, "0x10000").strip()
        self.ctl("coll", "add", url, collection, *objects)
        tracking = self.ctl("coll", "track", url, "0x10000", collection).strip()
        with subprocess.Popen([MUNINNCTL, "coll", "purge", url, tracking], stderr=subprocess.DEVNULL):
            for _ in range(1000):
                if len(self.ctl("coll", "ls", url, tracking).split()) < len(objects):
                    break
            daemon.kill()
        daemon.start()
        url = daemon.url()
        left = self.ctl("coll", "ls", url, tracking).split()
        self.assertEqual(self.ctl("ls", url, "0x10000").split(), left)
        self.assertEqual(self.ctl("coll", "ls", url, collection).split(), left)
        self.assertEqual(objects[len(objects) - len(left) :], left)
        self.ctl("coll", "purge", url, tracking)
        self.assertEqual(self.ctl("ls", url, "0x10000"), "")


if __name__ == "__main__":
    unittest.main()
