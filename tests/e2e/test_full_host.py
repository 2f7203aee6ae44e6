# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A host whose file system is full: commands that need space are refused, everything else goes on, nothing dies.

Runs for each index.
"""

import itertools
import os
import subprocess
import unittest

import osd
from harness import E2ETest, noise
from osd import Osd

P = O = 0x10000
FULL = (7, 0x5507)  # DATA PROTECT, QUOTA ERROR: as of a device that is full
CONFIG = """
[lun 1]
type = osd
size = 256M
backend = {backend}
"""


class FullHost(E2ETest):
    def mounted(self, kind):
        """A folder on a small file system of its own."""
        folder = self.folder()
        place = os.path.join(folder, "mounted")
        os.mkdir(place)
        if kind == "tmpfs":
            commands = [["mount", "-t", "tmpfs", "-o", "size=64M", "none", place]]
        else:
            image = os.path.join(folder, "file-system")
            with open(image, "wb") as file:
                file.truncate(64 << 20)
            commands = [["mkfs.ext4", "-q", image], ["mount", "-o", "loop", image, place]]
        for command in commands:
            if subprocess.run(command, capture_output=True, check=False).returncode:
                self.skipTest(f"{command[0]} is not possible here")
        self.addCleanup(subprocess.run, ["umount", "-l", place], check=True)
        return place

    def fill(self, device, objects):
        """Stores objects until three in a row are refused; adds to `objects` those that were not."""
        refused = 0
        while refused < 3:
            number = next(self.numbers)
            data = noise(1 + number * 7919 % 200_000, number)
            answer = device.run(osd.CREATE_AND_WRITE, P, O + number, data=data)
            if answer.status == osd.GOOD:
                objects[number] = data
                refused = 0
            else:
                self.assertEqual((answer.sense.key, answer.sense.code), FULL)
                refused += 1

    def fill_up(self, filler):
        """Takes the last byte of the file system."""
        with open(filler, "ab", buffering=0) as file:
            for size in (4096, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    pass

    def assert_all_there(self, device, objects):
        for number, data in objects.items():
            self.assertTrue(device.read(P, O + number, 0, len(data)) == data, number)

    def check(self, kind, backend, filled_by_others):
        place = self.mounted(kind)
        daemon = self.daemon(state_dir=place, config=CONFIG.format(backend=backend)).start()
        filler = os.path.join(place, "filler")
        objects, self.numbers = {}, itertools.count()
        with daemon.session() as session:
            device = Osd(session)
            device.create_partition(P)
            if filled_by_others:
                self.fill_up(filler)
            self.fill(device, objects)
            self.assert_all_there(device, objects)
            for number in sorted(objects)[:: 2]:
                device.must(osd.REMOVE, P, O + number)
                del objects[number]
            daemon.wait_for_line("no space for block")
            self.assertFalse([line for line in daemon.errors if "retired" in line])
        # Also a first start in a folder needs nothing that a full file system lacks.
        self.assertEqual(daemon.stop(), 0, daemon.errors)
        os.truncate(os.path.join(place, "muninnd.lock"), 0)
        self.fill_up(filler)
        daemon.start()
        with daemon.session() as session:
            device = Osd(session)
            self.assert_all_there(device, objects)
            os.unlink(filler)
            if filled_by_others:
                before = len(objects)
                self.fill(device, objects)
                self.assertGreater(len(objects), before + 50)
                self.assert_all_there(device, objects)
        self.assertEqual(daemon.stop(), 0, daemon.errors)
        self.assertFalse([line for line in daemon.errors if "died" in line])

    def test_ext4_filled_by_the_image_itself(self):
        self.check("ext4", "mmap", False)

    def test_ext4_filled_by_others(self):
        self.check("ext4", "mmap", True)

    def test_ext4_with_direct_transfers(self):
        self.check("ext4", "file", False)

    def test_tmpfs(self):
        self.check("tmpfs", "mmap", True)


if __name__ == "__main__":
    unittest.main()
