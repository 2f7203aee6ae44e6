# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Data of objects, over iSCSI: sizes, holes, overwriting, appending, truncating, reading past the end; OSD-1 and OSD-2."""

import hashlib
import json
import os
import stat
import unittest

import osd
from harness import OneDaemonTest, in_each_version, noise
from osd import GOOD, Osd

SANITIZED = True

MIB = 1 << 20
SIZES = (0, 1, 4095, 4096, 4097, MIB, 100 * MIB)
P = 0x10000
O = 0x10000


class Sizes(OneDaemonTest):
    DEVICE_SIZE = "768M"

    @in_each_version
    def test_every_size_comes_back_from_one_read(self, device, p):
        for number, size in enumerate((*SIZES, 8 * MIB, 8 * MIB + 1)):
            data = noise(size, size)
            device.store(p, O + number, data)
            self.assertEqual(device.length(p, O + number), size)
            self.assertTrue(device.read(p, O + number, 0, size) == data, f"{size} bytes")
            self.assertEqual(device.must(osd.REMOVE, p, O + number).status, GOOD)

    def test_every_size_goes_through_muninnctl(self):
        url = self.shared.url()
        folder = self.folder("files")
        p = next(self.partitions)
        self.ctl("mkpart", url, p)
        for version, sizes in (((), SIZES), (("--osd1",), SIZES[:-1])):
            for size in sizes:
                data = noise(size, size + 1)
                source, target = os.path.join(folder, "source"), os.path.join(folder, "target")
                with open(source, "wb") as file:
                    file.write(data)
                address = self.ctl("put", url, p, source, *version).strip()
                self.ctl("get", url, address, target, *version)
                with open(target, "rb") as file:
                    same = hashlib.sha256(file.read()).digest() == hashlib.sha256(data).digest()
                self.assertTrue(same, f"{size} bytes {version}")
                piped = self.ctl("get", url, address, "--offset", size // 2, *version, binary=True)
                self.assertTrue(piped == data[size // 2 :], f"second half of {size} bytes {version}")
                self.ctl("rm", url, address)

    def test_get_writes_into_pipes_and_through_links_and_replaces_neither(self):
        url, folder, p = self.shared.url(), self.folder("special"), next(self.partitions)
        address, data = f"{p}/0x10000", bytes(20000) + b"wisdom" + bytes(20000)
        pipe, link, file = (os.path.join(folder, name) for name in ("pipe", "link", "file"))
        self.ctl("mkpart", url, p)
        self.ctl("put", url, address, stdin=data)
        os.mkfifo(pipe)
        # Open in both directions, so that neither end waits for the other.
        end = os.open(pipe, os.O_RDWR)
        self.ctl("get", url, address, pipe)
        self.assertTrue(stat.S_ISFIFO(os.lstat(pipe).st_mode))
        self.assertTrue(os.read(end, len(data) + 1) == data)
        os.close(end)
        with open(file, "wb") as to:
            to.write(noise(100000, 1))
        os.symlink("file", link)
        self.ctl("get", url, address, link)
        self.assertTrue(stat.S_ISLNK(os.lstat(link).st_mode))
        with open(file, "rb") as got:
            self.assertTrue(got.read() == data)
        done = self.try_ctl("get", url, address, folder)
        self.assertEqual(done.returncode, 9)
        self.assertIn(b"Is a directory", done.stderr)
        self.assertEqual(sorted(os.listdir(folder)), ["file", "link", "pipe"])

    def test_data_is_there_after_a_restart_of_the_daemon(self):
        daemon = self.daemon(size="64M").start()
        sizes = SIZES[:-1]
        with daemon.session() as session:
            Osd(session).create_partition(P)
            for number, size in enumerate(sizes):
                Osd(session).store(P, O + number, noise(size, size))
        daemon.restart()
        with daemon.session() as session:
            self.assertEqual(Osd(session).list(P), [O + number for number in range(len(sizes))])
            for number, size in enumerate(sizes):
                self.assertTrue(Osd(session).read(P, O + number, 0, size) == noise(size, size), f"{size} bytes")


class Changing(OneDaemonTest):
    @in_each_version
    def test_what_was_never_written_reads_as_zeros(self, device, p):
        device.create(p, O)
        model = bytearray(3 * MIB + 5)
        for at, size in ((3 * MIB, 5), (4096, 4096), (10000, 1), (MIB - 1, 2), (2 * MIB + 4095, 4098)):
            model[at : at + size] = noise(size, at)
            device.write(p, O, at, bytes(model[at : at + size]))
        self.assertTrue(device.read(p, O, 0, len(model)) == bytes(model))
        self.assertEqual(device.read(p, O, 4000, 5000), bytes(model[4000:9000]))

    @in_each_version
    def test_holes_far_apart_cost_nothing(self, device, p):
        device.create(p, O)
        device.write(p, O, 1 << 40, b"far away")
        self.assertEqual(device.length(p, O), (1 << 40) + 8)
        self.assertEqual(device.read(p, O, (1 << 40) - 4, 12), bytes(4) + b"far away")
        self.assertEqual(device.read(p, O, 1 << 39, MIB), bytes(MIB))

    def test_holes_of_files_stay_holes_and_come_back_as_such(self):
        url, p, folder = self.shared.url(), next(self.partitions), self.folder("files")
        self.ctl("mkpart", url, p)
        source, target = os.path.join(folder, "source"), os.path.join(folder, "target")
        with open(source, "wb") as file:
            for place in (0, 200 * MIB + 5, 500 * MIB - 1):
                file.seek(place)
                file.write(noise(100, place))
            file.truncate(700 * MIB)
        address = f"{p}/0x10000"
        self.ctl("put", url, address, stdin=noise(3 * MIB, 1))
        with open(source, "rb") as file:
            wanted = hashlib.file_digest(file, "sha256").hexdigest()
        for words in ((address, "--replace"), (f"{p}/0x10001",)):
            self.ctl("put", url, words[0], source, *words[1:])
            facts = json.loads(self.ctl("--json", "stat", url, words[0]))
            self.assertEqual(facts["length"], 700 * MIB)
            self.assertLessEqual(facts["used"], 4 * MIB)  # a chunk for each place, one of which lies in two
            self.ctl("get", url, words[0], target)
            with open(target, "rb") as file:
                self.assertEqual(hashlib.file_digest(file, "sha256").hexdigest(), wanted)
            self.assertLess(os.stat(target).st_blocks * 512, MIB)
        # What is written into content that is there is written, zeros too.
        self.ctl("put", url, address, "--replace", stdin=noise(3 * MIB, 2))
        self.ctl("put", url, address, "--offset", MIB, stdin=bytes(2 * MIB - 10))
        self.assertEqual(self.ctl("get", url, address, binary=True), noise(3 * MIB, 2)[:MIB] + bytes(2 * MIB - 10) + noise(3 * MIB, 2)[-10:])

    def test_a_put_behind_the_beginning_makes_the_object_or_leaves_none(self):
        url, p = self.shared.url(), next(self.partitions)
        self.ctl("mkpart", url, p)
        for size in (5, 3 * MIB):
            done = self.try_ctl("put", url, f"{p}/{O}", "--offset", (1 << 63) - 1, stdin=noise(size, 1))
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(b"longer than it can be", done.stderr)
            self.assertEqual(self.ctl("ls", url, p), "")
        for version in ((), ("--osd1",)):
            self.ctl("put", url, f"{p}/{O}", "--offset", 5000, *version, stdin=b"behind")
            self.assertEqual(self.ctl("get", url, f"{p}/{O}", binary=True), bytes(5000) + b"behind")
            self.ctl("rm", url, f"{p}/{O}")
        self.ctl("put", url, f"{p}/{O}", "--offset", 5000, stdin=b"")
        self.assertEqual(self.ctl("get", url, f"{p}/{O}", binary=True), b"")

    @in_each_version
    def test_overwriting_the_middle_leaves_the_rest(self, device, p):
        model = bytearray(noise(MIB, 1))
        device.store(p, O, bytes(model))
        for at, size in ((0, 1), (4095, 2), (4096, 4096), (100000, 54321), (MIB - 1, 1), (500, 20000)):
            model[at : at + size] = noise(size, at + 2)
            device.write(p, O, at, bytes(model[at : at + size]))
            self.assertTrue(device.read(p, O, 0, MIB) == bytes(model), f"{size} bytes at {at}")
        self.assertEqual(device.length(p, O), MIB)

    @in_each_version
    def test_appending_says_where_the_data_went(self, device, p):
        wanted = (osd.CURRENT_COMMAND, 5)
        device.create(p, O)
        model = b""
        for size in (1, 4094, 1, 4096, 1, 100000, 0, 7):
            answer = device.must(osd.APPEND, p, O, data=noise(size, size), gets=[wanted])
            self.assertEqual(int.from_bytes(answer.attributes[wanted], "big"), len(model))
            model += noise(size, size)
        self.assertTrue(device.read(p, O, 0, len(model)) == model)

    @in_each_version
    def test_the_logical_length_cuts_and_extends(self, device, p):
        data = noise(3 * 4096 + 10, 3)
        device.store(p, O, data)
        for length in (3 * 4096, 4097, 4096, 4095, 1, 0):
            device.set_length(p, O, length)
            self.assertEqual(device.length(p, O), length)
            if length:
                self.assertEqual(device.read(p, O, 0, length), data[:length])
        device.set_length(p, O, 2 * MIB)
        self.assertTrue(device.read(p, O, 0, 2 * MIB) == bytes(2 * MIB), "what was cut off came back")
        device.write(p, O, 5, b"again")
        device.set_length(p, O, 8)
        device.set_length(p, O, 12)
        self.assertEqual(device.read(p, O, 0, 12), bytes(5) + b"aga" + bytes(4))

    def test_muninnctl_copies_objects_of_now_and_of_a_version(self):
        url, partition = self.shared.url(), next(self.partitions)
        other = next(self.partitions)
        for pid in (partition, other):
            self.ctl("mkpart", url, pid)
        then, now = noise(300_000, 1), noise(300_000, 2)
        source = self.ctl("put", url, partition, stdin=then).strip()
        self.ctl("attr", "set", url, source, "0x10000", "1", "mine")
        version = self.ctl("snapshot", url, partition).strip()
        self.ctl("rm", url, source)
        self.ctl("put", url, source, stdin=now)
        self.assertTrue(self.ctl("get", url, self.ctl("cp", url, source, other).strip(), binary=True) == now)
        copy = self.ctl("cp", url, f"{source}@{version}", f"{other}/0x10900").strip()
        self.assertTrue(self.ctl("get", url, copy, binary=True) == then)
        self.assertEqual(self.ctl("attr", "get", url, copy, "0x10000", "1").strip(), "mine")
        # The ID is taken now.
        self.assertEqual(self.try_ctl("cp", url, source, copy).returncode, 4)
        self.assertEqual(self.try_ctl("cp", url, f"{partition}/0x77777", other).returncode, 3)

    def test_muninnctl_truncates_clears_and_punches(self):
        url, p = self.shared.url(), next(self.partitions)
        self.ctl("mkpart", url, p)
        address = f"{p:#x}/0x10000"
        self.ctl("put", url, address, stdin=b"0123456789")
        self.ctl("truncate", url, address, 8)
        self.ctl("clear", url, address, 2, 2)
        self.ctl("punch", url, address, 5, 2)
        self.assertEqual(self.ctl("cat", url, address, binary=True), b"01\0\x0047")
        self.ctl("truncate", url, address, 8)
        self.assertEqual(self.ctl("cat", url, address, binary=True), b"01\0\x0047\0\0")


class ReadingPastTheEnd(OneDaemonTest):
    def read(self, device, p, address, length, room=None):
        command = osd.Command(osd.READ, p, O, address=address, length=length, version=device.version)
        command.read_length = length if room is None else room
        return command.run(device.session)

    @in_each_version
    def test_across_the_end_says_how_much_there_is(self, device, p):
        """Linux's initiator takes the status for success: what is asked for behind the end comes as zeros."""
        data = noise(5000, 5)
        device.store(p, O, data)
        for address, length in ((0, 5001), (4999, 2), (4096, 100000)):
            there = len(data) - address
            answer = self.read(device, p, address, length)
            self.assertEqual(answer.status, osd.CHECK_CONDITION)
            self.assertTrue(answer.short, answer.sense)
            self.assertEqual(answer.sense.information, there)
            self.assertEqual(answer.sense.command_information, there)
            self.assertEqual(answer.sense.address, (p, O))
            self.assertEqual(answer.data[:there], data[address:])
            self.assertEqual(answer.data[there:], bytes(length - there))

    @in_each_version
    def test_residuals_count_what_was_not_sent(self, device, p):
        device.store(p, O, noise(5000, 6))
        for address, length, room in ((0, 5000, 5000), (0, 5000, 8192), (4000, 2000, 2000), (4000, 2000, 4096)):
            answer = self.read(device, p, address, length, room)
            self.assertEqual(answer.task.received, length)
            self.assertEqual(answer.task.in_residual, room - length, (address, length, room))

    @in_each_version
    def test_at_or_behind_the_end_is_an_error_of_the_address(self, device, p):
        device.store(p, O, noise(5000, 7))
        for address in (5000, 5001, 1 << 33):
            answer = self.read(device, p, address, 1000)
            self.assertEqual((answer.sense.key, answer.sense.code), (osd.ILLEGAL_REQUEST, osd.INVALID_FIELD_IN_CDB))
            self.assertEqual(answer.sense.field, osd.LAYOUT[device.version][2])
            self.assertEqual((answer.task.received, answer.task.in_residual), (0, 1000))

    @in_each_version
    def test_nothing_at_the_end_is_no_error(self, device, p):
        device.store(p, O, noise(5000, 8))
        self.assertEqual(device.run(osd.READ, p, O, address=5000).status, GOOD)

    @in_each_version
    def test_attributes_come_with_a_read_across_the_end(self, device, p):
        wanted = (osd.USER_INFORMATION, osd.LOGICAL_LENGTH)
        device.store(p, O, noise(5000, 9))
        answer = device.run(osd.READ, p, O, address=4990, length=20, gets=[wanted])
        self.assertTrue(answer.short)
        self.assertEqual(answer.attributes[wanted], (5000).to_bytes(8, "big"))

    def test_muninnctl_gives_what_is_there(self):
        url, p = self.shared.url(), next(self.partitions)
        self.ctl("mkpart", url, p)
        self.ctl("put", url, f"{p}/0x10000", stdin=b"0123456789")
        for version in ((), ("--osd1",)):
            for offset, expected in ((5, b"56789"), (9, b"9"), (10, b""), (1000, b"")):
                got = self.ctl("get", url, f"{p}/0x10000", "--offset", offset, "--length", 100, *version, binary=True)
                self.assertEqual(got, expected)


if __name__ == "__main__":
    unittest.main()
