# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Wrong commands over the wire, wrong images, wrong configurations: each gets its own answer, and the daemon lives.

Wrong PDUs are in test_guard.py."""

import os
import random
import struct
import unittest

import osd
from harness import E2ETest, OneDaemonTest, change_superblocks, in_each_version
from osd import GOOD, LAYOUT, Command, Osd

SANITIZED = True

O = 0x10000
NO_OPERATION = (osd.ILLEGAL_REQUEST, osd.INVALID_OPERATION_CODE)
NO_FIELD = (osd.ILLEGAL_REQUEST, osd.INVALID_FIELD_IN_CDB)
NO_PARAMETER = (osd.ILLEGAL_REQUEST, osd.INVALID_FIELD_IN_PARAMETER_LIST)
NO_LENGTH = (osd.ILLEGAL_REQUEST, osd.PARAMETER_LIST_LENGTH_ERROR)
VALUE = (0x10000, 1)


class LivingDaemonTest(OneDaemonTest):
    """Base class: after each test, the same daemon still serves."""

    def setUp(self):
        self.tgtd_pid = self.shared.tgtd_pid

    def tearDown(self):
        self.assertTrue(self.shared.running(), self.shared.errors)
        os.kill(self.tgtd_pid, 0)
        with self.shared.session() as session:
            partition = next(self.partitions)
            Osd(session).create_partition(partition)
            Osd(session).store(partition, O, b"alive")
            self.assertEqual(Osd(session).read(partition, O, 0, 5), b"alive")

    def assert_refused(self, answer, expected, field=None):
        self.assertEqual(answer.status, osd.CHECK_CONDITION)
        self.assertEqual((answer.sense.key, answer.sense.code), expected, answer.sense)
        if field is not None:
            self.assertEqual(answer.sense.field, field, answer.sense)
        self.assertEqual(answer.task.received, 0)

    def read_of(self, device, p, **rest):
        return Command(osd.READ, p, O, length=5, version=device.version, **rest)


class WrongCommands(LivingDaemonTest):
    @in_each_version
    def test_truncated_cdbs(self, device, p):
        device.store(p, O, b"hello")
        whole = LAYOUT[device.version][0]
        for length in (10, 12, 16, 20, 52, 80, 136, 196, 199, 200, 232, 235):
            if length < whole:
                command = self.read_of(device, p)
                command.cdb = command.cdb[:length]
                for additional in (whole - 8, max(length - 8, 0)):
                    command.cdb[7] = additional
                    self.assertEqual(command.run(device.session).sense.key, osd.ILLEGAL_REQUEST, length)

    @in_each_version
    def test_oversized_cdbs(self, device, p):
        device.store(p, O, b"hello")
        for length in (LAYOUT[device.version][0] + 4, 260):
            command = self.read_of(device, p)
            command.cdb += bytes(length - len(command.cdb))
            for additional in (LAYOUT[device.version][0] - 8, length - 8):
                command.cdb[7] = additional
                answer = command.run(device.session)
                if answer.status != GOOD:
                    self.assertEqual(answer.sense.key, osd.ILLEGAL_REQUEST)
                else:
                    self.assertEqual(answer.data, b"hello")

    def test_a_wrong_additional_length(self):
        with self.shared.session() as session:
            device, p = Osd(session), next(self.partitions)
            device.create_partition(p)
            device.store(p, O, b"hello")
            for additional in (0, 1, 8, 0xBF, 0xC0, 0xE3, 0xE5, 0xFF):
                command = self.read_of(device, p)
                command.cdb[7] = additional
                self.assert_refused(command.run(session), NO_FIELD, 7)

    def test_both_additional_lengths_that_initiators_send_with_osd_1(self):
        with self.shared.session() as session:
            device, p = Osd(session, 1), next(self.partitions)
            device.create_partition(p)
            device.store(p, O, b"hello")
            for additional in (0xC0, 0xE4):
                command = self.read_of(device, p)
                command.cdb[7] = additional
                self.assertEqual(command.run(session).data, b"hello")

    @in_each_version
    def test_unknown_operations(self, device, p):
        # The service action tells the version, and with it the length that a CDB must have.
        unknown = {1: (0x8800, 0x8804, 0x881F, 0x887F), 2: (0x0000, 0x88A4, 0x88B3, 0x88FF, 0x8FFF, 0xFFFF)}
        for action in unknown[device.version]:
            command = self.read_of(device, p)
            struct.pack_into(">H", command.cdb, 8, action)
            self.assert_refused(command.run(device.session), NO_OPERATION)
        # 0xC0 and 0xC1 are those of ENVELOPE.
        for operation in (0x28, 0x2A, 0x7E, 0xC2, 0xFF):
            task = device.session.run(bytes([operation]) + bytes(15), read_length=512)
            self.assertEqual(osd.Sense(task.sense).code, osd.INVALID_OPERATION_CODE)

    @in_each_version
    def test_lengths_beyond_the_buffers(self, device, p):
        device.store(p, O, b"hello")
        length_at = LAYOUT[device.version][1]
        for length in (6, 4096, 1 << 31, (1 << 32) + 5, (1 << 63) - 1, 1 << 63, (1 << 64) - 1):
            for action, data in ((osd.WRITE, b"12345"), (osd.APPEND, b"12345"), (osd.CREATE_AND_WRITE, b"12345")):
                command = Command(action, p, O + (action == osd.CREATE_AND_WRITE), data=data, version=device.version)
                struct.pack_into(">Q", command.cdb, length_at, length)
                answer = command.run(device.session)
                self.assertEqual((answer.status, answer.sense.key), (osd.CHECK_CONDITION, osd.ILLEGAL_REQUEST))
            command = self.read_of(device, p)
            struct.pack_into(">Q", command.cdb, length_at, length)
            answer = command.run(device.session)
            self.assertEqual((answer.status, answer.sense.key), (osd.CHECK_CONDITION, osd.ILLEGAL_REQUEST))
        self.assertEqual(device.read(p, O, 0, 5), b"hello")
        self.assertEqual(device.list(p), [O])

    @in_each_version
    def test_addresses_at_the_end_of_numbers(self, device, p):
        device.store(p, O, b"hello")
        for address in ((1 << 63) - 1, (1 << 63) - 5, 1 << 63, (1 << 64) - 5, (1 << 64) - 1):
            answer = device.run(osd.WRITE, p, O, address=address, data=b"12345")
            self.assert_refused(answer, NO_FIELD, LAYOUT[device.version][2])
            self.assert_refused(device.run(osd.READ, p, O, address=address, length=5), NO_FIELD)
        self.assertEqual(device.length(p, O), 5)

    @in_each_version
    def test_commands_without_the_buffers_that_they_need(self, device, p):
        device.store(p, O, b"hello")
        command = Command(osd.WRITE, p, O, data=b"12345", version=device.version)
        command.data_out = b""
        self.assertEqual(command.run(device.session).sense.key, osd.ILLEGAL_REQUEST)
        command = Command(osd.WRITE, p, O, data=b"12345", version=device.version)
        command.data_out, command.read_length = b"", 5
        self.assertEqual(command.run(device.session).sense.key, osd.ILLEGAL_REQUEST)
        command = self.read_of(device, p)
        command.read_length = 0
        self.assertEqual(command.run(device.session).sense.key, osd.ILLEGAL_REQUEST)
        command = self.read_of(device, p)
        command.data_out, command.read_length = b"12345", 0
        self.assertEqual(command.run(device.session).sense.key, osd.ILLEGAL_REQUEST)
        self.assertEqual(device.read(p, O, 0, 5), b"hello")

    @in_each_version
    def test_more_data_than_a_command_wants_counts_as_residual(self, device, p):
        device.create(p, O)
        command = Command(osd.WRITE, p, O, data=b"12345", version=device.version)
        command.data_out = b"1234567890"
        answer = command.run(device.session)
        self.assertEqual((answer.status, answer.task.out_residual), (GOOD, 5))
        self.assertEqual(device.length(p, O), 5)

    @in_each_version
    def test_unknown_partitions_and_objects(self, device, p):
        device.create(p, O)
        for action in (osd.READ, osd.WRITE, osd.APPEND, osd.REMOVE, osd.GET_ATTRIBUTES, osd.FLUSH):
            self.assert_refused(device.run(action, p + 0x100000, O), NO_FIELD, 16)
            self.assert_refused(device.run(action, p, O + 1), NO_FIELD, 24)
        for action in (osd.LIST, osd.REMOVE_PARTITION, osd.FLUSH_PARTITION, osd.CREATE):
            self.assert_refused(device.run(action, p + 0x100000), NO_FIELD, 16)

    @in_each_version
    def test_duplicates_and_reserved_ids(self, device, p):
        device.store(p, O, b"the first")
        self.assert_refused(device.run(osd.CREATE, p, O), NO_FIELD, 24)
        self.assert_refused(device.run(osd.CREATE_AND_WRITE, p, O, data=b"the second"), NO_FIELD, 24)
        self.assert_refused(device.run(osd.CREATE_PARTITION, p), NO_FIELD, 16)
        for number in (1, 0xFFFF):
            self.assert_refused(device.run(osd.CREATE, p, number), NO_FIELD, 24)
            self.assert_refused(device.run(osd.CREATE_PARTITION, number), NO_FIELD, 16)
        self.assert_refused(device.run(osd.CREATE, p, O + 1, count=2), NO_FIELD, LAYOUT[device.version][3])
        self.assertEqual(device.read(p, O, 0, 9), b"the first")
        self.assertEqual(device.list(p), [O])

    @in_each_version
    def test_a_partition_with_objects_is_not_removed(self, device, p):
        device.create(p, O)
        self.assert_refused(device.run(osd.REMOVE_PARTITION, p), (osd.ILLEGAL_REQUEST, osd.NOT_EMPTY))
        self.assertEqual(device.list(p), [O])

    @in_each_version
    def test_no_format_of_attributes(self, device, p):
        device.create(p, O)
        command = self.read_of(device, p)
        command.cdb[11] = 0
        self.assert_refused(command.run(device.session), NO_FIELD, 11)


class WrongLists(LivingDaemonTest):
    """Attribute lists. Set lists begin at byte 0 of Data-Out here."""

    def set_of(self, device, p, values=((*VALUE, b"a value!"),)):
        return Command(osd.SET_ATTRIBUTES, p, O, sets=values, version=device.version)

    def get_of(self, device, p):
        return Command(osd.GET_ATTRIBUTES, p, O, gets=[VALUE], version=device.version)

    def assert_nothing_set(self, device, p):
        answer = device.must(osd.GET_ATTRIBUTES, p, O, gets=[VALUE])
        self.assertEqual(answer.attributes, {VALUE: b""})

    @in_each_version
    def test_a_list_of_another_type(self, device, p):
        device.create(p, O)
        for kind in (0, 1, 2, 0xE, 0xF):
            command = self.set_of(device, p)
            command.data_out = bytes([kind]) + command.data_out[1:]
            self.assert_refused(command.run(device.session), NO_PARAMETER)
        for kind in (0, 9, 0xF):
            command = self.get_of(device, p)
            command.data_out = bytes([kind]) + command.data_out[1:]
            self.assert_refused(command.run(device.session), NO_PARAMETER)
        self.assert_nothing_set(device, p)

    @in_each_version
    def test_an_entry_beyond_its_list(self, device, p):
        device.create(p, O)
        at = 22 if device.version == 2 else 12  # the entry's length
        for length in (9 if device.version == 1 else 17, 100, 0xFFFE, 0xFFFF):
            command = self.set_of(device, p)
            damaged = bytearray(command.data_out)
            struct.pack_into(">H", damaged, at, length)
            command.data_out = bytes(damaged)
            self.assert_refused(command.run(device.session), NO_LENGTH)
        self.assert_nothing_set(device, p)

    @in_each_version
    def test_lists_shorter_than_their_parts(self, device, p):
        device.create(p, O)
        for make, at in ((self.set_of, 68), (self.get_of, 52)):
            whole = struct.unpack_from(">I", make(device, p).cdb, at)[0]
            for length in (1, 3, whole - 1):
                command = make(device, p)
                struct.pack_into(">I", command.cdb, at, length)
                answer = command.run(device.session)
                self.assertEqual((answer.status, answer.sense.key), (osd.CHECK_CONDITION, osd.ILLEGAL_REQUEST))
        self.assert_nothing_set(device, p)

    @in_each_version
    def test_segments_outside_of_the_buffers(self, device, p):
        device.create(p, O)
        unit, exponent = LAYOUT[device.version][4:]
        far = exponent << 28 | 4096 // unit
        for make, length_at, offset_at in ((self.set_of, 68, 72), (self.get_of, 52, 56), (self.get_of, 60, 64)):
            for length in (0x1000, 0x7FFFFFF8, 0xFFFFFFF8, 0xFFFFFFFF):
                command = make(device, p)
                struct.pack_into(">I", command.cdb, length_at, length)
                self.assert_refused_field(command.run(device.session), length)
            for offset in (far, 0x7FFFFFFF, 0xFFFFFFFF):
                command = make(device, p)
                struct.pack_into(">I", command.cdb, offset_at, offset)
                self.assert_refused_field(command.run(device.session), offset)
        self.assert_nothing_set(device, p)

    def assert_refused_field(self, answer, what):
        self.assertEqual(answer.status, osd.CHECK_CONDITION, hex(what))
        self.assertEqual(answer.sense.key, osd.ILLEGAL_REQUEST, hex(what))

    @in_each_version
    def test_attributes_that_nobody_may_set(self, device, p):
        device.store(p, O, b"hello")
        wrong = (
            (osd.USER_INFORMATION, 0x1, bytes(8)),  # the partition's ID
            (osd.USER_INFORMATION, osd.LOGICAL_LENGTH, bytes(7)),  # of 8 bytes
            (osd.CURRENT_COMMAND, 3, bytes(8)),
            (0x90000001, 0x9, b"name"),  # of the root
            (0xFFFFFFFF, 1, b"x"),
            (0x10000, 0xFFFFFFFF, b"x"),
        )
        for value in wrong:
            self.assert_refused(self.set_of(device, p, [value]).run(device.session), NO_PARAMETER)
        self.assertEqual(device.length(p, O), 5)

    def test_random_damage(self):
        """The same damage in every run; more of it is in tests/osd/test_hostile.c, without iSCSI."""
        numbers = random.Random(1)
        with self.shared.session() as session:
            for number in range(600):
                device = Osd(session, 1 + number % 2)
                make = numbers.choice((self.set_of, self.get_of, self.read_of))
                command = make(device, next(self.partitions) - 1)
                for _ in range(numbers.randint(1, 3)):
                    command.cdb[numbers.randrange(8, 80)] ^= 1 << numbers.randrange(8)
                if command.data_out and numbers.random() < 0.5:
                    damaged = bytearray(command.data_out)
                    damaged[numbers.randrange(len(damaged))] ^= 1 << numbers.randrange(8)
                    command.data_out = bytes(damaged)
                if command.cdb[8:10] not in (b"\x88\x01", b"\x88\x81"):  # FORMAT OSD would end the other tests
                    task = command.submit(session)
                    session.wait(task)
                    self.assertIn(task.status, (osd.GOOD, osd.CHECK_CONDITION))
                    if task.status:
                        self.assertNotEqual(osd.Sense(task.sense).key, osd.HARDWARE_ERROR)


class OtherWays(E2ETest):
    def test_muninnctl_tells_causes_apart(self):
        url = self.daemon(size="64M").start().url()
        self.ctl("mkpart", url, "0x10000")
        self.ctl("put", url, "0x10000/0x10000", stdin=b"hello")
        lost = url.replace(url.split("/")[2], "127.0.0.1:1")
        for code, arguments in (
            (2, ("nonsense", url)),
            (2, ("get", url)),
            (2, ("get", url, "0x10000/zzz")),
            (2, ("get", url, "0x10000/0x10000", "--colour")),
            (2, ("info", "http://localhost/")),
            (3, ("get", url, "0x10000/0x10001")),
            (3, ("ls", url, "0x10001")),
            (3, ("info", url[:-1] + "9")),
            (3, ("info", url.replace(":osd", ":other"))),
            (3, ("attr", "get", url, "0x10000/0x10000", "0x10000", "1")),
            (4, ("put", url, "0x10000/0x10000")),
            (4, ("mkpart", url, "0x10000")),
            (6, ("info", lost)),
            (9, ("put", url, "0x10000", "/nonexistent/file")),
            (9, ("import", url, "0x30000", "/nonexistent/folder")),
            (10, ("rmpart", url, "0x10000")),
        ):
            done = self.try_ctl(*arguments)
            self.assertEqual(done.returncode, code, (arguments, done.stderr))
            self.assertRegex(done.stderr.decode(), r"^muninnctl: .{8,}\n$", arguments)
            self.assertEqual(done.stdout, b"")

    def test_an_image_of_another_version_is_refused_by_name(self):
        daemon = self.daemon(size="64M").start()
        self.assertEqual(daemon.stop(), 0)
        change_superblocks(daemon.image(), 8, struct.pack("<I", 99))
        code, errors = daemon.run()
        self.assertEqual(code, 1, errors)
        self.assertRegex(errors, r"lun1\.img.*version 99")

    def test_configuration_errors_tell_file_line_and_reason(self):
        for line, text, reason in (
            (2, "[no such section]\ncolour = blue\n", "section"),
            (2, "[lun 1]\ncolour = blue\n", "no key colour"),
            (2, "[lun 1]\nsize = 8X\n", "8X"),
            (2, "[lun 1]\nsize = 12\n", "size"),
            (2, "[lun 1]\nthreads = 65\n", "threads"),
            (2, "[lun 0]\ntype = osd\n", "lun"),
            (2, "[target]\nportal = nowhere\n", "portal"),
            (2, "[target]\nname = blanks are wrong\n", "name"),
            (2, "[target]\nallow_address = 1.2.3.4/99\n", "allow_address"),
            (3, "[lun 1]\nsize = 64M\nsize = 32M\n", "size"),
            (2, "[lun 1]\nneither key nor value\n", ""),
        ):
            daemon = self.daemon(config=text)
            code, errors = daemon.run()
            self.assertEqual(code, 2, errors)
            self.assertRegex(errors, rf"muninn\.conf:{line}: .*{reason}", text)


if __name__ == "__main__":
    unittest.main()
