# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Pages that the image has lost: parity gives them back; of more, exactly those bytes are named.

Runs for each index.
"""

import json
import struct
import unittest

from harness import SMALL_ROWS, E2ETest, noise

PAGE = 4096
GROUP = 128  # pages that share parity
OBJECTS = [f"0x10000/{0x10000 + n:#x}" for n in range(3)]
BYTES = 6 << 20


class Image:
    """The pages of an image file that nobody has open."""

    def __init__(self, path):
        self.file = open(path, "r+b", buffering=0)
        superblock = self.file.read(4096)
        self.spare_bytes, self.pages_per_block, blocks = struct.unpack_from("<III", superblock, 36)
        self.data, self.page_stride, self.block_stride = struct.unpack_from("<QII", superblock, 80)
        self.pages = blocks * self.pages_per_block

    def close(self):
        self.file.close()

    def place(self, page):
        block, index = divmod(page, self.pages_per_block)
        return self.data + block * self.block_stride + index * self.page_stride

    def read(self, page):
        self.file.seek(self.place(page))
        content = self.file.read(PAGE + self.spare_bytes)
        return content[:PAGE], content[PAGE:]

    def holds_records(self, page):
        return self.read(page)[1][0] == 1

    def groups(self, pages=GROUP):
        """The first pages of groups of so many that have been programmed."""
        return [first for first in range(0, self.pages, pages) if self.holds_records(first)]

    def runs(self, kind):
        """Pages of images of the index (kind 2) or of roots (3), by serial."""
        runs = {}
        for page in range(self.pages):
            spare = self.read(page)[1]
            if spare[0] == kind:
                runs.setdefault(struct.unpack_from("<Q", spare, 8)[0], []).append(page)
        return runs

    def lose(self, page):
        self.file.seek(self.place(page))
        self.file.write(noise(PAGE + self.spare_bytes, page))


def joined(offsets):
    """Ranges of whole pages, as check prints them."""
    ranges = []
    for offset in sorted(offsets):
        if ranges and sum(ranges[-1]) == offset:
            ranges[-1] = (ranges[-1][0], ranges[-1][1] + PAGE)
        else:
            ranges.append((offset, PAGE))
    return ranges


class Repair(E2ETest):
    def setUp(self):
        self.device = self.daemon(size="128M").start()
        self.url = self.device.url()
        self.contents = {address: noise(BYTES, n) for n, address in enumerate(OBJECTS)}
        self.ctl("mkpart", self.url, "0x10000")
        for address, content in self.contents.items():
            self.ctl("put", self.url, address, stdin=content)
        self.device.stop()

    def image(self):
        image = Image(self.device.image())
        self.addCleanup(image.close)
        return image

    def check(self, *options):
        done = self.try_ctl("--json", "check", self.url, *options)
        return done.returncode, json.loads(done.stdout)

    def test_one_page_of_every_group_is_given_back_and_moved_away(self):
        image = self.image()
        groups = image.groups()
        self.assertGreater(len(groups), 20)
        for number, first in enumerate(groups):
            image.lose(first + number * 37 % GROUP)
        self.device.start()
        for address, content in self.contents.items():
            self.assertTrue(self.ctl("get", self.url, address, binary=True) == content)
        code, found = self.check("--repair")
        self.assertEqual((code, found["damaged"], found["repair"]["lost"]), (0, [], 0))
        code, found = self.check("--repair")
        self.assertEqual((code, found["damaged"]), (0, []))
        self.assertEqual((found["repair"]["repaired"], found["repair"]["lost"]), (0, 0))
        self.assertGreater(found["repair"]["read"], 0)
        for address, content in self.contents.items():
            self.assertTrue(self.ctl("get", self.url, address, binary=True) == content)

    def test_of_two_pages_of_a_group_exactly_those_bytes_are_named(self):
        image = self.image()
        where = {
            content[at : at + PAGE]: (address, at)
            for address, content in self.contents.items()
            for at in range(0, BYTES, PAGE)
        }
        lost = {}
        groups = [
            [page for page in range(first, first + GROUP) if image.read(page)[0] in where] for first in image.groups()
        ]
        groups = [full for full in groups if len(full) >= GROUP // 2]
        self.assertGreater(len(groups), 12)
        for full in groups[4:12:2]:
            for page in (full[3], full[len(full) // 2]):
                address, at = where[image.read(page)[0]]
                lost.setdefault(address, []).append(at)
                image.lose(page)
        self.device.start()
        code, found = self.check("--repair")
        self.assertEqual(code, 11)
        self.assertEqual(found["repair"]["lost"], sum(map(len, lost.values())))
        named = {
            entry["address"]: [(one["offset"], one["length"]) for one in entry["ranges"]]
            for entry in found["damaged"]
        }
        self.assertEqual(named, {address: joined(offsets) for address, offsets in lost.items()})
        text = self.try_ctl("check", self.url).stdout.decode()
        for address, offsets in lost.items():
            ranges = " ".join(f"{offset}+{length}" for offset, length in joined(offsets))
            self.assertIn(f"{address} data {ranges}\n", text)
        for address, content in self.contents.items():
            at = next(at for at in range(0, BYTES, PAGE) if at not in lost.get(address, []))
            read = self.ctl("get", self.url, address, "--offset", str(at), "--length", str(PAGE), binary=True)
            self.assertTrue(read == content[at : at + PAGE])
            if address not in lost:
                self.assertTrue(self.ctl("get", self.url, address, binary=True) == content)


class Index(E2ETest):
    """The index and roots: segments of 64 pages, so that a few megabytes make complete groups."""

    SEGMENT_PAGES = 64

    def setUp(self):
        self.device = self.daemon(config=SMALL_ROWS).start()
        self.url = self.device.url()
        self.contents = {address: noise(2 * BYTES, n) for n, address in enumerate(OBJECTS)}
        self.ctl("mkpart", self.url, "0x10000")
        for address, content in self.contents.items():
            self.ctl("put", self.url, address, stdin=content)
        self.device.stop()
        self.image = Image(self.device.image())
        self.addCleanup(self.image.close)
        self.images = self.image.runs(2)
        self.assertGreater(len(self.images), 1)

    def check_contents(self):
        for address, content in self.contents.items():
            self.assertTrue(self.ctl("get", self.url, address, binary=True) == content)

    def repair(self):
        """Has all repaired, and then finds nothing more, also when it is opened again."""
        found = json.loads(self.ctl("--json", "check", self.url, "--repair"))
        self.assertEqual((found["damaged"], found["repair"]["lost"]), ([], 0))
        self.check_contents()
        self.device.stop()
        self.device.start()
        found = json.loads(self.ctl("--json", "check", self.url, "--repair"))
        self.assertEqual((found["damaged"], found["repair"]["lost"]), ([], 0))
        self.assertEqual(found["repair"]["repaired"], 0)
        self.check_contents()

    def test_a_page_of_every_group_of_images_and_roots_is_lost_and_all_data_is_read(self):
        for number, first in enumerate(self.image.groups(self.SEGMENT_PAGES)):
            self.image.lose(first + number * 37 % self.SEGMENT_PAGES)
        for number, pages in enumerate(self.images.values()):
            self.image.lose(pages[number * 7 % len(pages)])
        roots = self.image.runs(3)
        self.image.lose(roots[max(roots)][0])
        self.device.start()
        self.check_contents()
        self.repair()

    def test_all_images_are_lost_and_made_again_when_the_device_is_opened(self):
        for pages in self.images.values():
            for page in pages:
                self.image.lose(page)
        self.device.start()
        self.check_contents()
        self.repair()


if __name__ == "__main__":
    unittest.main()
