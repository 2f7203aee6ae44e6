# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Disks as an initiator sees them."""

import struct

from harness import E2ETest

POOL = """[device pool]
size = 512M
[lun 1]
type = osd
device = pool
[lun 2]
type = disk
device = pool
partition = 0x10002
volume_size = 64M
"""


class Disk:
    """A disk as an initiator sees it, through a session of one's own."""

    def __init__(self, session, block_bytes=512):
        self.session = session
        self.block_bytes = block_bytes
        self.warnings = 0  # that space gets scarce
        while session.run(bytes(6)).status:  # what has happened before it logged in
            pass

    def run(self, cdb, data_out=b"", read_length=0):
        """A command; again where the target has warned in its place that space gets scarce (38/07)."""
        while True:
            task = self.session.run(cdb, data_out, read_length)
            if task.status != 2 or (task.sense[2], task.sense[12], task.sense[13]) != (6, 0x38, 0x07):
                return task
            self.warnings += 1

    def range(self, operation, block, count, bits=0, data_out=b"", read_length=0):
        cdb = bytes([operation, bits]) + block.to_bytes(8, "big") + count.to_bytes(4, "big") + bytes(2)
        return self.run(cdb, data_out, read_length)

    def write(self, block, data, bits=0):
        return self.range(0x8A, block, len(data) // self.block_bytes, bits, data_out=data)

    def read(self, block, count):
        return self.range(0x88, block, count, read_length=count * self.block_bytes)

    def unmap(self, block, count):
        listed = struct.pack(">HHIQII", 22, 16, 0, block, count, 0)
        return self.run(bytes([0x42]) + bytes(6) + bytes([0, 24, 0]), listed)

    def capacity(self):
        """(blocks, bytes of one)"""
        task = self.run(bytes([0x9E, 0x10]) + bytes(8) + bytes([0, 0, 0, 32, 0, 0]), read_length=32)
        last, block_bytes = struct.unpack_from(">QI", task.data_in)
        return last + 1, block_bytes


class DiskCase(E2ETest):
    """Base class: disks that go with the test."""

    def good(self, task):
        self.assertEqual((task.status, task.sense.hex()), (0, ""))
        return task

    def sense(self, task, key, code):
        self.assertEqual(task.status, 2)
        self.assertEqual((task.sense[2], task.sense[12] << 8 | task.sense[13]), (key, code))

    def attach(self, daemon, lun, block_bytes=512, **options):
        session = daemon.session(lun, **options)
        self.addCleanup(session.close)
        return Disk(session, block_bytes)
