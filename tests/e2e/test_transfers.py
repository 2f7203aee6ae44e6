# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""How data travels: bursts that are asked for, immediate and unsolicited data, several commands in flight, bidirectional
ones, and eight sessions at once."""

import hashlib
import itertools
import os
import random
import subprocess
import sys
import unittest

import mixed_work
import osd
from harness import IQN, LIMIT_SECONDS, E2ETest, OneDaemonTest, in_each_version, noise
from osd import GOOD, Osd

SANITIZED = True

O = 0x10000
FIRST_BURST = 8192
MAX_BURST = 32768
SEGMENT = 4096
# Around the lengths at which a transfer takes another step.
LENGTHS = [base + more for base in (FIRST_BURST, MAX_BURST, FIRST_BURST + MAX_BURST) for more in (-1, 0, 1)]
LENGTHS += [1, SEGMENT, 300_001]
WORKERS = 8
OPERATIONS = 150


class Bursts(OneDaemonTest):
    """With small bursts, so that short transfers already consist of many."""

    def small_bursts(self, **keys):
        return self.shared.session(
            FirstBurstLength=str(FIRST_BURST),
            MaxBurstLength=str(MAX_BURST),
            MaxRecvDataSegmentLength=str(SEGMENT),
            **keys,
        )

    def write_and_read(self, session, version):
        """All lengths; yields (length, task of the write, task of the read)."""
        device, partition = Osd(session, version), next(self.partitions)
        device.create_partition(partition)
        for number, length in enumerate(LENGTHS):
            data = noise(length, number)
            device.create(partition, O + number)
            written = device.write(partition, O + number, 100, data)
            answer = device.must(osd.READ, partition, O + number, address=100, length=length)
            self.assertTrue(answer.data == data, f"{length} bytes")
            self.assertEqual((written.task.out_residual, answer.task.in_residual), (0, 0))
            yield length, written.task, answer.task

    def test_immediate_data_goes_first_and_the_rest_is_asked_for_in_bursts(self):
        for version in (1, 2):
            with self.small_bursts(ImmediateData="Yes") as session:
                self.assertEqual(session.agreed["ImmediateData"], "Yes")
                for length, written, read in self.write_and_read(session, version):
                    self.assertEqual(written.immediate, min(length, FIRST_BURST))
                    asked = length - written.immediate
                    self.assertEqual(len(written.r2ts), -(-asked // MAX_BURST))
                    self.assertEqual(len(read.data_ins), -(-length // SEGMENT))

    def test_without_immediate_data_everything_is_asked_for(self):
        for version in (1, 2):
            with self.small_bursts(ImmediateData="No") as session:
                self.assertEqual(session.agreed["ImmediateData"], "No")
                for length, written, _ in self.write_and_read(session, version):
                    self.assertEqual((written.immediate, written.unsolicited), (0, 0))
                    self.assertEqual(len(written.r2ts), -(-length // MAX_BURST))

    def test_initial_r2t_stays_on_where_the_target_wants_it(self):
        with self.small_bursts(InitialR2T="No") as session:
            self.assertEqual(session.agreed["InitialR2T"], "Yes")

    def test_unsolicited_data_where_the_target_allows_it(self):
        """muninnd leaves InitialR2T to tgtd, whose value is Yes; an administrator may change it."""
        daemon = self.daemon(size="64M").start()
        daemon.tgtadm("--mode", "target", "--op", "update", "--tid", "1", "--name", "InitialR2T", "--value", "No")
        self.shared, shared = daemon, self.shared
        try:
            for version, immediate in itertools.product((1, 2), ("Yes", "No")):
                with self.small_bursts(InitialR2T="No", ImmediateData=immediate) as session:
                    self.assertEqual(session.agreed["InitialR2T"], "No")
                    for length, written, _ in self.write_and_read(session, version):
                        self.assertEqual(written.immediate + written.unsolicited, min(length, FIRST_BURST))
                        self.assertEqual(written.immediate == 0, immediate == "No")
        finally:
            self.shared = shared

    def test_muninnctl_in_each_way_of_transfer(self):
        url, folder = self.shared.url(), self.folder("files")
        path, back = os.path.join(folder, "file"), os.path.join(folder, "back")
        with open(path, "wb") as file:
            file.write(noise(3_000_001, 1))
        partition = next(self.partitions)
        self.ctl("mkpart", url, partition)
        ways = ("--no-immediate-data", "--no-initial-r2t", "--osd1")
        for chosen in itertools.chain.from_iterable(itertools.combinations(ways, count) for count in range(4)):
            for options in (("--chunk", "8M", "--queue-depth", "1"), ("--chunk", "4K", "--queue-depth", "100")):
                address = self.ctl("put", url, partition, path, *chosen, *options).strip()
                self.ctl("get", url, address, back, *chosen, *options)
                with open(back, "rb") as file:
                    self.assertTrue(file.read() == noise(3_000_001, 1), f"{chosen} {options}")


class InFlight(OneDaemonTest):
    @in_each_version
    def test_many_writes_and_reads_are_under_way_at_once(self, device, p):
        session, count = device.session, 100
        device.create(p, O)
        pieces = [(number * 5000, noise(5000, number)) for number in range(count)]
        random.Random(1).shuffle(pieces)
        writes = [osd.Command(osd.WRITE, p, O, address=at, data=data, version=device.version) for at, data in pieces]
        tasks = [command.submit(session) for command in writes]
        session.wait(*tasks)
        self.assertEqual({task.status for task in tasks}, {GOOD})
        reads = [osd.Command(osd.READ, p, O, address=at, length=5000, version=device.version) for at, _ in pieces]
        tasks = [command.submit(session) for command in reads]
        session.wait(*tasks)
        for (at, data), task in zip(pieces, tasks):
            self.assertTrue(task.data_in == data, f"piece at {at}")

    @in_each_version
    def test_large_transfers_are_under_way_at_once(self, device, p):
        session = device.session
        stores = [
            osd.Command(osd.CREATE_AND_WRITE, p, O + number, data=noise(1_000_003, number), version=device.version)
            for number in range(12)
        ]
        session.wait(*[command.submit(session) for command in stores])
        reads = [osd.Command(osd.READ, p, O + number, length=1_000_003, version=device.version) for number in range(12)]
        tasks = [command.submit(session) for command in reads]
        session.wait(*tasks)
        for number, task in enumerate(tasks):
            self.assertTrue(task.data_in == noise(1_000_003, number), f"object {number}")

    @in_each_version
    def test_both_directions_are_large_in_one_command(self, device, p):
        """CREATE AND WRITE with attributes to set and to get: a megabyte out, kilobytes in."""
        value, page = noise(5000, 1), 0x10000  # as much as a list of OSD-1 can hold
        wanted = [(page, number) for number in range(1, 11)]
        data = noise(1_000_003, 2)
        sets = [(page, number, value + bytes([number])) for page, number in wanted]
        command = osd.Command(osd.CREATE_AND_WRITE, p, O, data=data, sets=sets, gets=wanted, version=device.version)
        room = 60_000
        command.cdb[60:64] = room.to_bytes(4, "big")
        command.read_length = room
        answer = command.run(device.session)
        self.assertEqual(answer.status, GOOD, answer.sense)
        self.assertTrue(answer.attributes == {key: value + bytes([key[1]]) for key in wanted})
        self.assertEqual(answer.task.in_residual, room - answer.task.received)
        self.assertTrue(device.read(p, O, 0, len(data)) == data)

    def test_a_dropped_session_harms_nobody(self):
        partition = next(self.partitions)
        with self.shared.session() as session:
            device = Osd(session)
            device.create_partition(partition)
            device.store(partition, O, noise(100_000, 1))
            for number in range(10):
                other = self.shared.session(ImmediateData="No" if number % 2 else "Yes")
                for at in range(20):
                    osd.Command(osd.WRITE, partition, O + 1 + number, data=noise(300_000, at)).submit(other)
                    osd.Command(osd.READ, partition, O, length=100_000).submit(other)
                other.close()
            self.assertTrue(device.read(partition, O, 0, 100_000) == noise(100_000, 1))


class Refusals(OneDaemonTest):
    """What no command has answered is not sent: it would be what other commands have left in tgtd's memory."""

    REFUSED = {
        "TEST UNIT READY": "000000000000",
        "REQUEST SENSE": "03000000fc00",
        "INQUIRY": "120000002400",
        "INQUIRY, no such page": "120100990000",
        "READ CAPACITY": "25000000000000000000",
        "REPORT LUNS": "a00000000000000001000000",
        "REPORT LUNS, too short": "a00000000000000000040000",
        "no such operation code": "c0000000000000000000000000000000",
        "a short CDB": "7f000000000000e888850030",
        "a linked command": "000000000001",
    }
    MARK, LENGTH = b"of another session ", 30_000

    def commands(self):
        yield from ((name, bytes.fromhex(cdb), b"") for name, cdb in self.REFUSED.items())
        for name, action in (("no such service action", 0x88FF), ("no such object", osd.READ), ("WRITE", osd.WRITE)):
            command = osd.Command(action, 0x7777, O, length=0)
            yield name, bytes(command.cdb), b""

    def test_no_refusal_sends_what_another_session_has_read(self):
        partition, secret = next(self.partitions), (self.MARK * self.LENGTH)[: self.LENGTH]
        with self.shared.session() as session:
            device = Osd(session)
            device.create_partition(partition)
            device.store(partition, O, secret)
            for lun in (0, 1, 7):
                with self.shared.session(lun, name="iqn.2014-06.local.host:another") as other:
                    for name, cdb, data in self.commands():
                        with self.subTest(lun=lun, command=name):
                            self.assertTrue(device.read(partition, O, 0, self.LENGTH) == secret)
                            task = other.run(cdb, data, self.LENGTH)
                            self.assertNotIn(self.MARK, task.data_in)
                            self.assertEqual(task.in_residual, self.LENGTH - task.received)
                            if task.status != GOOD:
                                self.assertEqual(task.received, 0)

    def test_gaps_between_what_a_command_answers_are_zeros(self):
        partition, secret = next(self.partitions), (self.MARK * self.LENGTH)[: self.LENGTH]
        with self.shared.session() as session:
            device = Osd(session)
            device.create_partition(partition)
            device.store(partition, O, secret)
            for room in (64, 4096, self.LENGTH - 20_480):
                self.assertTrue(device.read(partition, O, 0, self.LENGTH) == secret)
                command = osd.Command(osd.READ, partition, O, length=10, gets=[(1, 0x82)])
                command.cdb[60:64] = room.to_bytes(4, "big")
                command.cdb[64:68] = osd.offset_of(2, 20_480).to_bytes(4, "big")
                command.read_length = 20_480 + room
                task = command.submit(session)
                session.wait(task)
                self.assertEqual(task.status, GOOD)
                self.assertTrue(task.data_in[:10] == secret[:10])
                self.assertEqual(set(task.data_in[10:20_480]), {0})


class FirstCommands(OneDaemonTest):
    def test_the_first_command_of_a_session_is_carried_out(self):
        """exofs, after a reconnect, does not repeat what a unit attention refused."""
        partition = next(self.partitions)
        with self.shared.session() as session:
            Osd(session).create_partition(partition)
        for number in range(3):
            with self.shared.session() as session:
                Osd(session).create(partition, O + number)


class EightSessions(E2ETest):
    def test_eight_sessions_do_mixed_work_at_once(self):
        seed = int(os.environ.get("E2E_SEED", "20140610"))
        print(f"E2E_SEED={seed}", flush=True)
        shared, log = 0x20000, 0x10000
        daemon = self.daemon(size="512M").start()
        with daemon.session() as session:
            Osd(session).create_partition(shared)
            Osd(session).create(shared, log)
        command = [sys.executable, "-B", mixed_work.__file__, str(daemon.port), IQN]
        workers = [
            subprocess.Popen(
                command + [str(word) for word in (worker, OPERATIONS, seed, 0x30000 + worker, shared, log)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for worker in range(WORKERS)
        ]
        ends = [worker.communicate(timeout=5 * LIMIT_SECONDS) for worker in workers]
        for worker, (_, errors) in zip(workers, ends):
            self.assertEqual((worker.returncode, errors.decode()), (0, ""))
        self.assert_every_record_once(daemon, shared, log, [int(output) for output, _ in ends])
        before = self.digests(daemon)
        daemon.restart()
        self.assertEqual(self.digests(daemon), before)

    def assert_every_record_once(self, daemon, shared, log, counts):
        """Appends of all workers to one object: whole, each once, each worker's in its order."""
        size = mixed_work.RECORD_BYTES
        with daemon.session() as session:
            content = Osd(session).read(shared, log, 0, Osd(session).length(shared, log))
        records = [content[at : at + size] for at in range(0, len(content), size)]
        self.assertEqual(len(records), sum(counts))
        for worker, count in enumerate(counts):
            self.assertGreater(count, 0)
            own = [mixed_work.record(worker, number) for number in range(count)]
            self.assertEqual([record for record in records if record[:4] == own[0][:4]], own)

    def digests(self, daemon):
        """SHA-256 of every object on the device."""
        found = {}
        with daemon.session() as session:
            device = Osd(session)
            for partition in device.list():
                for number in device.list(partition):
                    content = device.read(partition, number, 0, device.length(partition, number))
                    found[partition, number] = hashlib.sha256(content).hexdigest()
        return found


if __name__ == "__main__":
    unittest.main()
