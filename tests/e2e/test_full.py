# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A full device: it says so, loses nothing, goes on serving, and has room again when something is removed.

Runs for each index.
"""

import json
import os
import unittest

import osd
import trees
from harness import E2ETest, noise
from osd import GOOD, Osd

SANITIZED = True

P = 0x10000
O = 0x10000
SIZE = "32M"
NO_SPACE = (osd.DATA_PROTECT, osd.QUOTA_ERROR)
EXIT_NO_SPACE = 5
LARGE = 2_000_001


class Full(E2ETest):
    def setUp(self):
        self.device = self.daemon(size=SIZE).start()

    def info(self):
        return json.loads(self.ctl("--json", "info", self.device.url()))

    def fill(self, target, first=O, size=LARGE):
        """Stores objects until there is no more room; returns {object: content}."""
        stored = {}
        while True:
            number = first + len(stored)
            data = noise(size, number)
            answer = target.run(osd.CREATE_AND_WRITE, P, number, data=data)
            if answer.status != GOOD:
                self.assertEqual((answer.sense.key, answer.sense.code), NO_SPACE, answer.sense)
                self.assertEqual(answer.sense.address, (P, number))
                return stored
            stored[number] = data

    def assert_holds(self, target, stored):
        """Exactly these objects, bit for bit: neither less nor half of the one that did not fit."""
        self.assertEqual(target.list(P), sorted(stored))
        for number, data in stored.items():
            self.assertEqual(target.length(P, number), len(data))
            self.assertTrue(target.read(P, number, 0, len(data)) == data, f"object {number:#x}")

    def test_writes_say_that_there_is_no_space_and_everything_acknowledged_is_kept(self):
        with self.device.session() as session:
            target = Osd(session)
            target.create_partition(P)
            stored = self.fill(target)
            self.assertGreater(len(stored) * LARGE, self.info()["capacity"] * 3 // 4)
            for action in (osd.WRITE, osd.APPEND):
                answer = target.run(action, P, O, address=1 << 20, data=noise(3 * LARGE, 1))
                self.assertEqual((answer.sense.key, answer.sense.code), NO_SPACE)
            self.assert_holds(target, stored)
        self.device.restart()
        with self.device.session() as session:
            self.assert_holds(Osd(session), stored)
        self.device.kill()
        self.device.start()
        with self.device.session() as session:
            self.assert_holds(Osd(session), stored)

    def test_removing_makes_room_again(self):
        with self.device.session() as session:
            target = Osd(session)
            target.create_partition(P)
            stored = self.fill(target)
            for number in sorted(stored)[::2]:
                target.must(osd.REMOVE, P, number)
                del stored[number]
            self.assert_holds(target, stored)
            for number in range(len(stored) // 2):
                stored[2 * O + number] = noise(LARGE, number)
                target.store(P, 2 * O + number, stored[2 * O + number])
            self.assert_holds(target, stored)
        self.device.restart()
        with self.device.session() as session:
            self.assert_holds(Osd(session), stored)

    def test_overwriting_goes_on_for_much_longer_than_the_device_is_large(self):
        rounds = 3 * 32 * (1 << 20) // LARGE
        with self.device.session() as session:
            target = Osd(session)
            target.create_partition(P)
            target.store(P, O, noise(LARGE, 0))
            for number in range(rounds):
                target.write(P, O, 0, noise(LARGE, number))
            self.assert_holds(target, {O: noise(LARGE, rounds - 1)})

    def test_format_gives_all_space_back(self):
        with self.device.session() as session:
            target = Osd(session)
            target.create_partition(P)
            capacity, stored = self.info()["capacity"], self.fill(target)
            target.must(osd.FORMAT_OSD)
            self.assertEqual(target.list(), [])
            self.assertLess(self.info()["used"], capacity // 100)
            self.assertEqual(self.info()["capacity"], capacity)
            target.create_partition(P)
            again = self.fill(target)
            self.assertGreaterEqual(len(again), len(stored) - 1)
            self.assert_holds(target, again)
        self.device.restart()
        with self.device.session() as session:
            self.assert_holds(Osd(session), again)

    def test_muninnctl_ends_with_its_exit_code_for_no_space(self):
        url, folder = self.device.url(), self.folder("files")
        path = os.path.join(folder, "file")
        trees.write_file(path, noise(3_000_000, 1))
        stored = []
        self.ctl("mkpart", url, P)
        while len(stored) < 100:
            done = self.try_ctl("put", url, P, path)
            if done.returncode != 0:
                break
            stored.append(done.stdout.decode().strip())
        self.assertEqual(done.returncode, EXIT_NO_SPACE, done.stderr)
        self.assertRegex(done.stderr.decode(), r"(?i)full|space")
        self.assertNotEqual(stored, [])
        for address in stored:
            self.assertTrue(self.ctl("get", url, address, binary=True) == noise(3_000_000, 1), address)
        self.ctl("rm", url, *stored)

    def test_an_import_that_does_not_fit_goes_on_when_there_is_space(self):
        url, source = self.device.url(), self.folder("source")
        for number in range(10):
            trees.write_file(os.path.join(source, f"{number}"), noise(LARGE - 90_000 * number, number))
        self.ctl("mkpart", url, P)
        self.ctl("put", url, f"{P:#x}/0x10000", stdin=noise(10_000_000, 1))
        done = self.try_ctl("import", url, P, source)
        self.assertEqual(done.returncode, EXIT_NO_SPACE, done.stderr)
        self.assertRegex(done.stderr.decode(), r"at least [1-9] files of it are there and stay\. The same command goes on")
        self.assertEqual(self.try_ctl("export", url, P, os.path.join(self.folder("target"), "tree")).returncode, 3)
        self.ctl("rm", url, f"{P:#x}/0x10000")
        told = json.loads(self.ctl("--json", "import", url, P, source))
        self.assertEqual(told["resumed"] + told["added"], 10)
        self.assertGreater(told["resumed"], 0)
        self.assertEqual(len(self.ctl("ls", url, P).split()), 11)
        target = os.path.join(self.folder("target"), "tree")
        self.ctl("export", url, P, target)
        self.assertEqual(trees.differences(trees.describe(source), trees.describe(target)), [])

    def test_what_an_import_that_does_not_fit_has_left_can_be_removed(self):
        url, source = self.device.url(), self.folder("source")
        for number in range(30):
            trees.write_file(os.path.join(source, f"{number}"), noise(LARGE - 90_000 * (number % 20), number))
        self.ctl("mkpart", url, P)
        self.ctl("put", url, f"{P:#x}/0x10000", stdin=b"somebody's")
        done = self.try_ctl("import", url, P, source)
        self.assertEqual(done.returncode, EXIT_NO_SPACE, done.stderr)
        self.assertRegex(done.stderr.decode(), r"the files have .* and there is room for ")
        self.assertRegex(self.ctl("import", url, P, "--clean"), r"^[1-9]\d* old objects removed\n$")
        self.assertEqual(self.ctl("ls", url, P).split(), [f"{P:#x}/0x10000"])
        few = self.folder("few")
        trees.write_file(os.path.join(few, "file"), noise(LARGE, 1))
        self.ctl("import", url, P, few)
        self.assertEqual(len(self.ctl("ls", url, P).split()), 3)

    def test_a_replacement_that_does_not_fit_leaves_the_old_content(self):
        url, address = self.device.url(), f"{P:#x}/0x10000"
        old = noise(6_000_000, 1)
        self.ctl("mkpart", url, P)
        self.ctl("put", url, address, stdin=old)
        for _ in range(2):
            done = self.try_ctl("put", url, address, "--replace", stdin=noise(40_000_000, 2))
            self.assertEqual(done.returncode, EXIT_NO_SPACE, done.stderr)
            self.assertIn(f"put: {address} has its old content again", done.stderr.decode())
            self.assertTrue(self.ctl("get", url, address, binary=True) == old)
        # A new object that does not fit is not there.
        done = self.try_ctl("put", url, f"{P:#x}/0x10001", stdin=noise(40_000_000, 2))
        self.assertEqual(done.returncode, EXIT_NO_SPACE, done.stderr)
        self.assertIn("is removed again", done.stderr.decode())
        self.assertEqual(self.ctl("ls", url, P).split(), [address])
        self.ctl("put", url, address, "--replace", stdin=noise(3_000_000, 3))
        self.assertTrue(self.ctl("get", url, address, binary=True) == noise(3_000_000, 3))


if __name__ == "__main__":
    unittest.main()
