# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Random commands to a served disk against a model, with `kill -9` of the daemon in the middle of some of them.

    E2E_OPERATIONS=100000 E2E_SEED=7 tests/e2e/test_disk_model.py      another run, and a longer one

The model is a list with a number for each block, which stands for a block that says it all over; 0 is a block of zeros.
"""

import os
import random
import struct
import unittest

from disks import Disk, DiskCase

OPERATIONS = int(os.environ.get("E2E_OPERATIONS", 1500))
SEED = int(os.environ.get("E2E_SEED", random.SystemRandom().randrange(1 << 24)))
TIME_LIMIT_SECONDS = 600 + OPERATIONS // 10

PARTITION, CLONE = "0x10002", "0x20002"
BLOCK_BYTES, BLOCKS = 512, 20480  # more than an object of the volume holds
BLOCKS_MAX = 1024
VERSIONS_MAX = 6
OPERATIONS_OF_A_LIFE = max(250, min(OPERATIONS // 50, 2000))
IN_FLIGHT = 6

CONFIG = f"""[device pool]
size = 384M
[lun 1]
type = osd
device = pool
[lun 2]
type = disk
device = pool
partition = {PARTITION}
volume_size = {BLOCKS * BLOCK_BYTES}
"""
CLONED = f"""[lun 3]
type = disk
device = pool
partition = {CLONE}
"""

MISCOMPARE, DATA_PROTECT = 0xE, 0x7
SPACE = 0x2707


def data_of(numbers):
    return b"".join(struct.pack(">I", number) * (BLOCK_BYTES // 4) for number in numbers)


class Change:
    """A command that changes blocks: how it is sent, and what it leaves of each."""

    def __init__(self, first, new, cdb, data_out=b"", refused_with=None):
        self.first, self.new, self.cdb, self.data_out = first, new, cdb, data_out
        self.refused_with = refused_with  # the sense key that it must end with


def range_cdb(operation, first, count, bits=0):
    return struct.pack(">BBQIBB", operation, bits, first, count, 0, 0)


class Model:
    """One disk and what its blocks must be."""

    def __init__(self, test, dice, numbers):
        self.test, self.dice, self.numbers = test, dice, numbers
        self.disk = None
        self.last = 0

    def next_number(self):
        self.last += 1
        return self.last

    def some_range(self):
        """Mostly few blocks, and often of the same places, so that they overlap."""
        count = self.dice.randint(1, self.dice.choice((8, 24, 24, BLOCKS_MAX)))
        first = self.dice.randrange(400 if self.dice.random() < 0.6 else BLOCKS)
        return first, min(count, BLOCKS - first)

    # ---- changes ----

    def write(self, first, count):
        new = [self.next_number() for _ in range(count)]
        operation = self.dice.choice((0x8A, 0x8A, 0x8A, 0x8E))  # WRITE, WRITE AND VERIFY
        fua = 8 * (operation == 0x8A and self.dice.random() < 0.2)
        return Change(first, new, range_cdb(operation, first, count, fua), data_of(new))

    def or_write(self, first, count):
        bits = 1 << self.dice.randrange(32)
        new = [number | bits for number in self.numbers[first : first + count]]
        return Change(first, new, range_cdb(0x8B, first, count), data_of([bits] * count))

    def write_same(self, first, count):
        number = self.dice.choice((0, self.next_number()))
        unmap, no_data = 8 * self.dice.randrange(2), int(number == 0 and self.dice.random() < 0.5)
        data = b"" if no_data else data_of([number])
        return Change(first, [number] * count, range_cdb(0x93, first, count, unmap | no_data), data)

    def unmap(self, first, count):
        listed = struct.pack(">HHIQII", 22, 16, 0, first, count, 0)
        return Change(first, [0] * count, bytes([0x42]) + bytes(6) + bytes([0, 24, 0]), listed)

    def compare_and_write(self, first, count):
        count = min(count, 100)
        old = self.numbers[first : first + count]
        new = [self.next_number() for _ in range(count)]
        compared = bytearray(data_of(old))
        fits = self.dice.random() < 0.5
        if not fits:
            compared[self.dice.randrange(len(compared))] ^= 0x40
        cdb = struct.pack(">BBQ3xBBB", 0x89, 0, first, count, 0, 0)
        return Change(first, new if fits else old, cdb, bytes(compared) + data_of(new), None if fits else MISCOMPARE)

    def some_change(self, first, count):
        kinds = (self.write, self.or_write, self.write_same, self.unmap, self.compare_and_write)
        return self.dice.choices(kinds, (60, 8, 8, 14, 10))[0](first, count)

    def take(self, change):
        self.numbers[change.first : change.first + len(change.new)] = change.new

    def change(self):
        """Runs one. What finds no space changes nothing; merging goes on behind it. Returns whether it did."""
        change = self.some_change(*self.some_range())
        task = self.disk.run(change.cdb, change.data_out)
        if change.refused_with is not None:
            self.test.sense(task, change.refused_with, 0x1D00)
        elif task.status:
            self.test.sense(task, DATA_PROTECT, SPACE)
            return False
        self.take(change)
        return True

    # ---- looking ----

    def read(self, first, count):
        found = self.test.good(self.disk.read(first, count)).data_in
        if found != data_of(self.numbers[first : first + count]):
            self.test.fail(f"blocks {first} to {first + count - 1} are not what they must be")

    def read_all(self):
        for first in range(0, BLOCKS, BLOCKS_MAX):
            self.read(first, BLOCKS_MAX)

    # ---- in flight ----

    def submit_some(self):
        """Commands side by side, of apart blocks, whose answers nobody waits for."""
        changes = []
        for place in self.dice.sample(range(BLOCKS // BLOCKS_MAX), IN_FLIGHT):
            count = self.dice.randint(1, BLOCKS_MAX)
            changes.append(self.some_change(place * BLOCKS_MAX + self.dice.randrange(BLOCKS_MAX - count + 1), count))
            self.disk.session.submit(changes[-1].cdb, changes[-1].data_out)
        return changes

    def find_out(self, changes):
        """Each has happened as a whole, or not at all."""
        for change in changes:
            count = len(change.new)
            found = self.test.good(self.disk.read(change.first, count)).data_in
            if found == data_of(change.new):
                self.take(change)
            else:
                self.read(change.first, count)


class DiskModelTest(DiskCase):
    def setUp(self):
        print(f"\nE2E_SEED={SEED}", flush=True)
        self.dice = random.Random(SEED)
        self.state = self.folder()
        self.present = Model(self, self.dice, [0] * BLOCKS)
        self.clone = None
        self.daemon_now = None
        self.versions = {}  # by name: what its blocks were
        self.counts = {"operations": 0, "refused": 0, "versions": 0, "rollbacks": 0, "clones": 0, "kills": 0}

    # ---- lives of the daemon ----

    def begin(self):
        self.daemon_now = self.daemon(self.state, config=CONFIG + (CLONED if self.clone else "")).start()
        self.present.disk = Disk(self.daemon_now.session(2))
        if self.clone:
            self.clone.disk = Disk(self.daemon_now.session(3))

    def end(self, kill):
        if kill:
            in_flight = self.present.submit_some()
            self.daemon_now.kill()
            self.counts["kills"] += 1
        for model in (self.present, self.clone):
            if model and model.disk:
                model.disk.session.close()
        if not kill:
            self.assertEqual(self.daemon_now.stop(), 0)
            in_flight = []
        self.begin()
        self.present.find_out(in_flight)
        self.present.read_all()
        if self.clone:
            self.clone.read_all()

    # ---- history ----

    def url(self):
        return self.daemon_now.url(1)

    def keep_version(self):
        while len(self.versions) >= VERSIONS_MAX:
            name = next(iter(self.versions))
            # A clone may have stood on it at a moment that can still be reached.
            self.try_ctl("drop", self.url(), PARTITION, name)
            del self.versions[name]
        self.counts["versions"] += 1
        name = f"v{self.counts['versions']}"
        self.ctl("snapshot", self.url(), PARTITION, "--name", name)
        self.versions[name] = list(self.present.numbers)

    def go_back(self):
        if not self.versions:
            return
        name = self.dice.choice(list(self.versions))
        by_force = self.dice.random() < 0.5
        if by_force:
            self.ctl("rollback", self.url(), PARTITION, name, "--force")
        else:
            self.present.disk.session.logout()
            self.present.disk.session.close()
            self.ctl("rollback", self.url(), PARTITION, name)
            self.present.disk = Disk(self.daemon_now.session(2))
        if by_force:
            self.sense(self.present.disk.read(0, 1), 6, 0x2800)
        self.present.numbers = list(self.versions[name])
        self.counts["rollbacks"] += 1
        self.present.read_all()

    def renew_clone(self):
        """Its disk is there from the next life of the daemon on. The one before goes."""
        if self.clone:
            self.clone.disk.session.close()
            self.ctl("rmpart", self.url(), CLONE, "--contents")
            self.clone = None
        elif self.versions:
            name = self.dice.choice(list(self.versions))
            self.ctl("clone", self.url(), f"{PARTITION}@{name}", CLONE)
            self.clone = Model(self, self.dice, list(self.versions[name]))
            self.clone.last = self.present.last
            self.end(kill=False)
            self.counts["clones"] += 1

    # ---- the run ----

    def operate(self):
        model = self.clone if self.clone and self.dice.random() < 0.3 else self.present
        self.counts["operations"] += 1
        what = self.dice.random()
        if what < 0.7:
            self.counts["refused"] += not model.change()
        elif what < 0.98:
            model.read(*model.some_range())
        elif what < 0.993:
            self.keep_version()
        else:
            self.go_back()

    def test_a_disk_is_what_its_model_says_whatever_happens_to_the_daemon(self):
        self.begin()
        while self.counts["operations"] < OPERATIONS:
            for _ in range(self.dice.randint(OPERATIONS_OF_A_LIFE // 2, OPERATIONS_OF_A_LIFE)):
                self.operate()
            if self.dice.random() < 0.3:
                self.renew_clone()
            self.end(kill=True)
        self.assertEqual(self.daemon_now.stop(), 0)
        print(", ".join(f"{count} {what}" for what, count in self.counts.items()), flush=True)
        self.assertLess(self.counts["refused"], self.counts["operations"] / 10)


if __name__ == "__main__":
    unittest.main()
