# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Disks: what an initiator's commands do, libiscsi's test suite, devices that units share, crashes."""

import json
import os
import re
import shutil
import struct
import subprocess
import unittest

from counting import Counting
from disks import POOL, Disk, DiskCase
from harness import IQN, noise

# What libiscsi's suite finds, all of which it finds of tgtd's own disk too, or is its own mistake.
KNOWN_FAILURES = {
    # It asks for the status of block n + 1 and expects that of the next page's first block.
    "GetLBAStatus.UnmapSingle",
    # tgtd has no READ FULL STATUS, and tells of a reservation that is gone in another way.
    "PrinServiceactionRange.Range",
    "ProutReserve.OwnershipEA",
    "ProutReserve.OwnershipEARO",
    "ProutReserve.OwnershipWE",
    "ProutReserve.OwnershipWERO",
    # tgtd takes Data-Out PDUs with wrong numbers.
    "iSCSIdatasn.iSCSIDataSnInvalid",
}

# Of these, those that it does not find of tgtd's own.
ITS_MISTAKES = {"GetLBAStatus.UnmapSingle"}

HOST = "iqn.2026-11.host:disk"
STOCK_IQN = "iqn.2026-11.stock:disk"

UNITS = POOL + """[lun 3]
type = disk
device = pool
partition = 0x10003
volume_size = 32M
block_size = 4096
"""


def add_stock_disk(daemon):
    """tgtd's own disk (rdwr, thin) on a target of its own in the same tgtd."""
    path = os.path.join(daemon.state_dir, "stock")
    with open(path, "wb") as file:
        file.truncate(256 << 20)
    target, unit = ["--mode", "target", "--tid", "2"], ["--mode", "logicalunit", "--tid", "2", "--lun", "1"]
    daemon.tgtadm("--op", "new", *target, "-T", STOCK_IQN)
    daemon.tgtadm("--op", "new", *unit, "-b", path)
    daemon.tgtadm("--op", "update", *unit, "--params", "thin_provisioning=1")
    daemon.tgtadm("--op", "bind", *target, "-I", "ALL")


def failed_tests(output):
    """The tests of iscsi-test-cu -V that failed, as SUITE.TEST."""
    failed, suite, test = set(), "", ""
    for line in output.splitlines():
        if found := re.match(r"Suite: (\S+)", line):
            suite = found.group(1)
        elif found := re.match(r"  Test: (\S+)", line):
            test = found.group(1)
        elif line.startswith("FAILED"):
            failed.add(f"{suite}.{test}")
    return failed


class DiskTest(DiskCase):
    @unittest.skipUnless(shutil.which("iscsi-test-cu"), "iscsi-test-cu (package libiscsi-bin) is not installed")
    def test_libiscsi_finds_nothing_that_it_does_not_find_of_tgtds_own_disk(self):
        daemon = self.daemon(config="[lun 1]\ntype = disk\nsize = 4G\nvolume_size = 256M\n").start()
        add_stock_disk(daemon)
        suites = [
            subprocess.Popen(
                ["iscsi-test-cu", "-d", "-V", "-t", "ALL", url],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
            for url in (daemon.url(), daemon.url().replace(IQN, STOCK_IQN))
        ]
        ours, stock = (suite.communicate(timeout=1200)[0] for suite in suites)
        for output, least in ((ours, 215), (stock, 190)):
            ran = re.search(r"tests +(\d+) +(\d+) +(\d+)", output)
            self.assertIsNotNone(ran, output[-2000:])
            self.assertGreater(int(ran.group(3)), least)
        self.assertLessEqual(failed_tests(ours), KNOWN_FAILURES)
        self.assertLessEqual(failed_tests(ours) - failed_tests(stock), ITS_MISTAKES)
        self.assertGreater(len(failed_tests(stock)), len(failed_tests(ours)))
        daemon.tgtadm("--op", "delete", "--mode", "target", "--tid", "2", "--force")
        self.assertEqual(daemon.stop(), 0)

    def test_disks_and_an_osd_share_a_device_and_its_history(self):
        daemon = self.daemon(config=UNITS).start()
        first, second = self.attach(daemon, 2), self.attach(daemon, 3, 4096)
        self.assertEqual(first.capacity(), (64 << 11, 512))
        self.assertEqual(second.capacity(), (32 << 8, 4096))
        old, new = noise(1 << 20, 1), noise(1 << 20, 2)
        self.good(first.write(2048, old))
        self.good(second.write(256, old))
        self.ctl("snapshot", daemon.url(1), "0x10002", "--name", "before")
        self.good(first.write(2048, new))
        self.good(second.write(256, new))
        first.session.logout()
        self.ctl("rollback", daemon.url(1), "0x10002", "before")
        first = self.attach(daemon, 2)
        self.assertEqual(first.read(2048, 2048).data_in, old)
        self.assertEqual(second.read(256, 256).data_in, new)
        daemon.kill()
        daemon.start()
        first, second = self.attach(daemon, 2), self.attach(daemon, 3, 4096)
        self.assertEqual(first.read(2048, 2048).data_in, old)
        self.assertEqual(second.read(256, 256).data_in, new)
        self.assertEqual(daemon.stop(), 0)

    def test_a_disk_goes_back_when_its_sessions_have_ended_or_by_force(self):
        daemon = self.daemon(config=UNITS).start()
        first, second = self.attach(daemon, 2, name=HOST), self.attach(daemon, 3, 4096)
        old, new = noise(1 << 16, 1), noise(1 << 16, 2)
        self.good(first.write(0, old))
        self.good(second.write(0, old))
        self.ctl("snapshot", daemon.url(1), "0x10002", "--name", "before")
        self.ctl("snapshot", daemon.url(1), "0", "--name", "all")
        self.good(first.write(0, new))
        refused = self.try_ctl("rollback", daemon.url(1), "0x10002", "before")
        self.assertEqual(refused.returncode, 8)
        self.assertIn(f"1 other session uses it ({HOST}): unmount and log out there first".encode(), refused.stderr)
        self.assertIn(b"--force", refused.stderr)
        self.assertEqual(first.read(0, 128).data_in, new)
        # The device has both disks.
        self.assertIn(b"2 other sessions use it", self.try_ctl("rollback", daemon.url(1), "0", "all").stderr)
        self.ctl("rollback", daemon.url(1), "0x10002", "before", "--force")
        # The disk's sessions are told once, by whatever they send; INQUIRY answers all the same.
        self.good(first.session.run(bytes([0x12, 0, 0, 0, 36, 0]), read_length=36))
        self.sense(first.read(0, 128), 6, 0x2800)
        self.assertEqual(first.read(0, 128).data_in, old)
        self.assertEqual(second.read(0, 16).data_in, old)
        self.good(first.write(0, new))
        first.session.close()
        self.ctl("rollback", daemon.url(1), "0x10002", "before")
        self.assertEqual(self.attach(daemon, 2).read(0, 128).data_in, old)
        self.assertEqual(daemon.stop(), 0)

    def test_a_version_and_a_clone_are_disks_beside_the_present(self):
        folder = self.folder()
        daemon = self.daemon(folder, config=UNITS).start()
        old, new, third = noise(1 << 16, 1), noise(1 << 16, 2), noise(1 << 16, 3)
        disk = self.attach(daemon, 2)
        self.good(disk.write(0, old))
        self.good(disk.write(8 << 11, old))
        self.ctl("snapshot", daemon.url(1), "0x10002", "--name", "before")
        self.good(disk.write(0, new))
        self.good(disk.write((8 << 11) + 8, new[:8192]))
        # Each object of the partition holds 8 MiB of the disk.
        self.assertIn("0x10001 data 4096+8192", self.ctl("diff", daemon.url(1), "0x10002", "before"))
        self.ctl("clone", daemon.url(1), "0x10002@before", "0x20002")
        self.assertEqual(daemon.stop(), 0)
        more = (
            "[lun 4]\ntype = disk\ndevice = pool\npartition = 0x10002\nversion = before\n"
            "[lun 5]\ntype = disk\ndevice = pool\npartition = 0x20002\n"
        )
        daemon = self.daemon(folder, config=UNITS + more).start()
        present, past, clone = (self.attach(daemon, lun) for lun in (2, 4, 5))
        self.assertEqual(present.read(0, 128).data_in, new)
        self.assertEqual(past.read(0, 128).data_in, old)
        self.assertEqual(past.capacity(), present.capacity())
        self.sense(past.write(0, third), 7, 0x2700)
        self.sense(past.unmap(0, 8), 7, 0x2700)
        names = []
        for each in present, past, clone:
            mode = self.good(each.session.run(bytes([0x1A, 0x08, 0x3F, 0, 255, 0]), read_length=255))
            self.assertEqual(mode.data_in[2] >> 7, each is past)  # WP
            names.append(self.good(each.session.run(bytes([0x12, 1, 0x83, 0, 255, 0]), read_length=255)).data_in)
        self.assertEqual(len(set(names)), 3)
        self.good(clone.write(0, third))
        self.good(present.write(64, third))
        self.assertEqual(past.read(0, 128).data_in, old)
        self.assertEqual(clone.read(0, 128).data_in, third)
        # Who reads the past does not keep the present from going back.
        present.session.close()
        self.ctl("rollback", daemon.url(1), "0x10002", "before")
        self.assertEqual(past.read(0, 128).data_in, old)
        self.assertEqual(self.attach(daemon, 2).read(0, 128).data_in, old)
        self.assertEqual(daemon.stop(), 0)
        # Who drops a version keeps nobody from the other units.
        daemon = self.daemon(folder, config=UNITS + more.replace("before", "never")).start()
        daemon.wait_for_line("partition 0x10002 has no version 'never'")
        missing = daemon.session(4)
        self.addCleanup(missing.close)
        while (read := Disk(missing).read(0, 1)).sense[2] == 6:
            pass
        self.sense(read, 2, 0x0403)
        self.assertEqual(self.attach(daemon, 2).read(0, 128).data_in, old)
        self.assertEqual(daemon.stop(), 0)

    def test_a_schedule_keeps_versions_of_a_disk_and_of_the_device(self):
        def scheduled(osd, disk):
            keyed = UNITS.replace("[lun 2]", f"snapshot_schedule = {osd}\n[lun 2]")
            return keyed.replace("[lun 3]", f"snapshot_schedule = {disk}\n[lun 3]") + "[daemon]\nlog_level = debug\n"

        def named(url, partition):
            """Without those of the device."""
            versions = json.loads(self.ctl("--json", "versions", url, partition))
            return [version["name"] for version in versions if partition == "0" or version["version"] < 32768]

        def kinds(url, partition):
            return sorted(name.split("-")[0] for name in named(url, partition))

        folder = self.folder()
        daemon = self.daemon(folder, config=scheduled("monthly:2 0x10003 weekly:1", "monthly:1000\tweekly:4")).start()
        for partition, kind in (("0x0", "monthly"), ("0x10002", "weekly"), ("0x10003", "weekly")):
            daemon.wait_for_line(f"of partition {partition}, '{kind}-")
        url = daemon.url(1)
        (monthly,) = named(url, "0")
        self.assertRegex(monthly, r"^monthly-20\d\d-\d\d-01T00:00Z$")
        self.assertEqual((kinds(url, "0x10002"), kinds(url, "0x10003")), (["monthly", "weekly"], ["weekly"]))
        # Nobody else gives such a name.
        self.assertEqual(self.try_ctl("snapshot", url, "0x10003", "--name", monthly).returncode, 2)
        self.assertEqual(daemon.stop(), 0)
        # A version that is there is not made again, and one that is in no schedule any more stays.
        daemon = self.daemon(folder, config=scheduled("daily:2", "monthly:2")).start()
        daemon.wait_for_line("of partition 0x0, 'daily-")
        url = daemon.url(1)
        self.assertEqual((named(url, "0")[0], kinds(url, "0x10002")), (monthly, ["monthly", "weekly"]))
        self.assertEqual(daemon.stop(), 0)

    def test_disks_have_one_version_of_one_instant(self):
        daemon = self.daemon(config=UNITS).start()
        first, second = self.attach(daemon, 2), self.attach(daemon, 3, 4096)
        for disk in (first, second):
            self.good(disk.write(0, noise(1 << 16, 1)))
        self.ctl("snapshot", daemon.url(1), "0", "--name", "both")
        for disk in (first, second):
            self.good(disk.write(0, noise(1 << 16, 2)))
            disk.session.close()
        self.ctl("rollback", daemon.url(1), "0x10002", "both")
        self.assertEqual(self.attach(daemon, 2).read(0, 128).data_in, noise(1 << 16, 1))
        self.assertEqual(self.attach(daemon, 3, 4096).read(0, 16).data_in, noise(1 << 16, 2))
        self.assertEqual(daemon.stop(), 0)

    def test_some_disks_have_a_version_of_one_instant(self):
        third_disk = "[lun 4]\ntype = disk\ndevice = pool\npartition = 0x10004\nvolume_size = 16M\n"
        daemon = self.daemon(config=UNITS + third_disk).start()
        url = daemon.url(1)
        disks = [self.attach(daemon, 2), self.attach(daemon, 3, 4096), self.attach(daemon, 4)]

        def numbers(disk):
            return struct.unpack(">Q", disk.read(0, 1).data_in[:8])[0]

        def write(number):
            """To the one disk, and behind that to the other."""
            for disk in disks[:2]:
                self.good(disk.write(0, struct.pack(">Q", number) * (disk.block_bytes // 8)))

        with Counting(write) as counting:
            for number in range(5):
                counting.wait_for_more()
                printed = self.ctl("snapshot", url, "0x10002", "0x10003", "--name", f"both{number}").split()
                self.assertEqual([line.split("@")[0] for line in printed], ["0x10002", "0x10003"])
        # The second disk is no more than one write behind, at each instant.
        counts = []
        for number in range(5):
            data = [self.ctl("get", url, f"{partition}/0x10000@both{number}", binary=True)[:8]
                    for partition in ("0x10002", "0x10003")]  # fmt: skip
            first, second = (struct.unpack(">Q", each)[0] for each in data)
            self.assertIn(first - second, (0, 1))
            counts.append(first)
        self.assertEqual(counts, sorted(set(counts)))
        self.assertEqual(json.loads(self.ctl("--json", "versions", url, "0x10004")), [])
        # All of them or none.
        listed = self.ctl("versions", url, "0x10002")
        for refused in (["0x10002", "0x10009"], ["0x10002", "0x10002"], ["0x10004", "0x10003", "--name", "both1"]):
            self.assertNotEqual(self.try_ctl("snapshot", url, *refused).returncode, 0)
        self.assertEqual(self.try_ctl("snapshot", url, "0", "0x10002").returncode, 2)
        self.assertEqual(self.ctl("versions", url, "0x10002"), listed)
        self.assertEqual(json.loads(self.ctl("--json", "versions", url, "0x10004")), [])
        answer = json.loads(self.ctl("--json", "snapshot", url, "0x10004", "0x10003"))
        self.assertEqual([each["partition"] for each in answer], ["0x10004", "0x10003"])
        for disk in disks[:2]:
            disk.session.close()
        for partition in ("0x10002", "0x10003"):
            self.ctl("rollback", url, partition, "both4")
        self.assertIn(numbers(self.attach(daemon, 2)) - numbers(self.attach(daemon, 3, 4096)), (0, 1))
        self.assertEqual(daemon.stop(), 0)

    def test_a_disk_whose_volume_is_gone_is_not_ready(self):
        daemon = self.daemon(config=UNITS).start()
        disk = self.attach(daemon, 2)
        self.good(disk.write(0, bytes(512)))
        self.ctl("rmpart", daemon.url(1), "0x10002", "--contents")
        self.sense(disk.read(0, 1), 2, 0x0403)
        self.sense(disk.write(0, bytes(512)), 2, 0x0403)
        self.ctl("mkpart", daemon.url(1), "0x10002")
        self.sense(disk.read(0, 1), 2, 0x0403)
        self.good(self.attach(daemon, 3, 4096).read(0, 1))

    def test_a_write_without_space_is_refused_and_unmapping_makes_space(self):
        daemon = self.daemon(config="[lun 1]\ntype = disk\nsize = 64M\nvolume_size = 1G\n").start()
        disk = self.attach(daemon, 1)
        data, written = noise(1 << 20, 3), 0
        while not (task := disk.write(written << 11, data)).status:
            written += 1
            self.assertLess(written, 64)
        self.sense(task, 7, 0x2707)
        self.assertGreater(written, 32)
        for number in range(written):
            self.assertEqual(disk.read(number << 11, 2048).data_in, data)
        self.assertEqual(disk.read(written << 11, 2048).data_in, bytes(1 << 20))
        self.good(disk.unmap(0, written << 11))
        self.good(disk.write(0, data))
        self.assertEqual(disk.read(0, 2048).data_in, data)
        self.assertEqual(daemon.stop(), 0)

    def test_initiators_are_warned_before_there_is_no_space(self):
        daemon = self.daemon(config="[lun 1]\ntype = disk\nsize = 512M\nvolume_size = 1G\n").start()
        disk, other = self.attach(daemon, 1), self.attach(daemon, 1)
        page = self.good(disk.session.run(bytes([0x1A, 8, 0x1C, 2, 255, 0]), read_length=255)).data_in[4:]
        self.assertEqual(page[:4], bytes([0x5C, 2, 0, 28]))
        low, very_low = (struct.unpack(">BBHI", page[at : at + 8])[3] for at in (16, 24))
        capacity = 5 * low
        self.assertAlmostEqual(20 * very_low, capacity, delta=20)

        def space():
            log = self.good(disk.run(bytes([0x4D, 0, 0x4C, 0, 0, 0, 0, 0, 255, 0]), read_length=255)).data_in
            return struct.unpack_from(">I", log, 8)[0], struct.unpack_from(">I", log, 20)[0]

        self.assertGreater(space()[0], low)
        written = 0
        for warnings, (percent, threshold) in enumerate(((80, low), (95, very_low)), 1):
            while written < capacity * (percent + 1) // 100:
                self.good(disk.write(written << 11, noise(1 << 20, written)))
                written += 1
            # The service looks every two seconds.
            daemon.wait_for_line(f"{percent} % of")
            for each in (disk, other):
                self.good(each.read(0, 1))
                self.good(each.read(0, 1))
            self.assertEqual((disk.warnings, other.warnings), (warnings, warnings))
            available, used = space()
            self.assertLessEqual(available, threshold)
            self.assertAlmostEqual(available + used, capacity, delta=6)
        # It is news once.
        self.good(self.attach(daemon, 1).read(0, 1))
        self.sense(disk.session.run(bytes([0x4D, 0, 0x4D, 0, 0, 0, 0, 0, 255, 0]), read_length=255), 5, 0x2400)
        self.assertEqual(daemon.stop(), 0)

    def test_a_volume_grows_and_stays_what_it_is(self):
        folder = self.folder()

        def serve(keys):
            return self.daemon(folder, config=f"[lun 1]\ntype = disk\nsize = 128M\n{keys}")

        daemon = serve("volume_size = 16M\n").start()
        disk = self.attach(daemon, 1)
        self.good(disk.write(32767, b"last" * 128))
        self.sense(disk.write(32768, bytes(512)), 5, 0x2100)
        self.assertEqual(daemon.stop(), 0)
        daemon = serve("volume_size = 20M\n").start()
        disk = self.attach(daemon, 1)
        self.assertEqual(disk.capacity(), (40960, 512))
        self.assertEqual(disk.read(32767, 2).data_in, b"last" * 128 + bytes(512))
        self.assertEqual(daemon.stop(), 0)
        daemon = serve("volume_size = 16M\n").start()
        daemon.wait_for_line("has 20971520 bytes, more than volume_size says: it stays so")
        self.assertEqual(self.attach(daemon, 1).capacity(), (40960, 512))
        self.assertEqual(daemon.stop(), 0)
        code, errors = serve("block_size = 4096\n").run()
        self.assertIn("has blocks of 512 bytes, which do not change", errors)

    def test_a_rollback_that_changes_the_size_is_told_of(self):
        folder = self.folder()
        daemon = self.daemon(folder, config=UNITS).start()
        self.good(self.attach(daemon, 2).write(0, noise(512, 1)))
        self.ctl("snapshot", daemon.url(1), "0x10002", "--name", "small")
        self.assertEqual(daemon.stop(), 0)
        daemon = self.daemon(folder, config=UNITS.replace("volume_size = 64M", "volume_size = 80M")).start()
        disk = self.attach(daemon, 2)
        self.good(disk.write((80 << 11) - 1, noise(512, 2)))
        self.ctl("rollback", daemon.url(1), "0x10002", "small", "--force")
        self.sense(disk.read(0, 1), 6, 0x2800)
        # The first command that finds another size ends by it, the second one tells everybody.
        self.sense(disk.read((80 << 11) - 1, 1), 5, 0x2100)
        self.assertEqual(self.good(disk.read(0, 1)).data_in, noise(512, 1))
        self.sense(disk.read(0, 1), 6, 0x2A09)
        self.assertEqual(disk.capacity(), (64 << 11, 512))
        self.assertEqual(self.good(disk.read(0, 1)).data_in, noise(512, 1))
        self.assertEqual(daemon.stop(), 0)

    def test_reservations_hold_what_writes_without_being_a_write(self):
        daemon = self.daemon(config="[lun 1]\ntype = disk\nsize = 64M\n").start()
        holder, other = self.attach(daemon, 1), self.attach(daemon, 1)
        self.good(holder.write(0, b"mine" * 128))
        register = bytes([0x5F, 0]) + bytes(6) + bytes([24, 0])
        self.good(holder.session.run(register, bytes(8) + b"12345678" + bytes(8)))
        reserve = bytes([0x5F, 1, 0x01]) + bytes(5) + bytes([24, 0])  # Write Exclusive
        self.good(holder.session.run(reserve, b"12345678" + bytes(16)))
        self.assertEqual(other.read(0, 1).data_in, b"mine" * 128)
        for refused in (
            other.write(0, bytes(512)),
            other.unmap(0, 8),
            other.range(0x93, 0, 1, 0x08, data_out=bytes(512)),
            other.range(0x8B, 0, 1, data_out=bytes(512)),
            other.range(0x8E, 0, 1, data_out=bytes(512)),
        ):
            self.assertEqual(refused.status, 0x18)
        self.assertEqual(holder.read(0, 1).data_in, b"mine" * 128)

    def test_reserve_6_keeps_nobody_out_who_is_registered(self):
        daemon = self.daemon(config="[lun 1]\ntype = disk\nsize = 64M\n").start()
        holder, other = self.attach(daemon, 1), self.attach(daemon, 1)
        register, reserve = bytes([0x5F, 0]) + bytes(6) + bytes([24, 0]), bytes([0x16]) + bytes(5)
        release = bytes([0x17]) + bytes(5)
        self.good(holder.session.run(register, bytes(8) + b"12345678" + bytes(8)))
        for cdb in (reserve, release):
            for disk in (other, holder):
                self.assertEqual(disk.run(cdb).status, 0x18)
        self.good(holder.write(0, b"mine" * 128))
        self.good(holder.session.run(register, b"12345678" + bytes(16)))
        # Where nobody is registered they do what they did of old.
        self.good(other.run(reserve))
        self.assertEqual(holder.write(0, bytes(512)).status, 0x18)
        self.good(other.run(release))
        self.good(holder.write(0, bytes(512)))

    def test_a_reservation_belongs_to_the_port_also_in_its_next_session(self):
        daemon = self.daemon(config="[lun 1]\ntype = disk\nsize = 64M\n").start()
        key, other_key = b"12345678", b"abcdefgh"

        def register(disk, old, new):
            return disk.session.run(bytes([0x5F, 0]) + bytes(6) + bytes([24, 0]), old + new + bytes(8))

        def reserve(disk):
            return disk.session.run(bytes([0x5F, 1, 0x01]) + bytes(5) + bytes([24, 0]), key + bytes(16))

        def keys():
            listed = self.good(disk.session.run(bytes([0x5E]) + bytes(7) + bytes([255, 0]), read_length=255)).data_in[8:]
            return [listed[at : at + 8] for at in range(0, len(listed), 8)]

        ports = [{"name": HOST, "isid": 1}, {"name": HOST, "isid": 2}, {"name": HOST + "2", "isid": 1}]
        disk, second, other = (self.attach(daemon, 1, **port) for port in ports)
        self.good(register(disk, bytes(8), key))
        self.good(register(other, bytes(8), other_key))
        self.good(reserve(disk))
        for _ in range(2):
            disk.session.close()
            disk = self.attach(daemon, 1, **ports[0])
            self.good(disk.write(0, b"mine" * 128))
            for stranger in (second, other):
                self.assertEqual(stranger.write(0, bytes(512)).status, 0x18)
            self.assertEqual(keys(), [key, other_key])
        # A port that comes anew has no registration, nor has one that has given its own up.
        self.good(register(other, other_key, bytes(8)))
        for stranger, port in ((second, ports[1]), (other, ports[2])):
            stranger.session.close()
            self.assertEqual(self.attach(daemon, 1, **port).write(0, bytes(512)).status, 0x18)
        self.assertEqual(keys(), [key])
        # The holder's own way out is open.
        self.good(register(disk, key, bytes(8)))
        self.assertEqual(keys(), [])
        self.good(self.attach(daemon, 1, **ports[1]).write(0, b"free" * 128))
        self.assertEqual(disk.read(0, 1).data_in, b"free" * 128)

    def test_what_tgtd_does_wrong_with_reservations_is_not_left_to_it(self):
        daemon = self.daemon(config="[lun 1]\ntype = disk\nsize = 64M\n").start()
        holder, other, third, fourth, stranger = (self.attach(daemon, 1) for _ in range(5))

        def reserve_out(disk, action, key=bytes(8), new=bytes(8), kind=0, rest=bytes(8)):
            data = key + new + rest
            return disk.session.run(bytes([0x5F, action, kind, 0, 0, 0, 0, 0, len(data), 0]), data)

        def reservation():
            return self.good(stranger.session.run(bytes([0x5E, 1]) + bytes(6) + bytes([24, 0]), read_length=24)).data_in[8:]

        for disk, key in ((holder, b"holder.."), (other, b"other..."), (third, b"third..."), (fourth, b"fourth..")):
            self.good(reserve_out(disk, 0, new=key))
        # REGISTER AND MOVE killed tgtd here.
        move = {"key": b"holder..", "new": b"other...", "rest": bytes(4) + (24).to_bytes(4, "big") + bytes(24)}
        self.sense(reserve_out(holder, 7, **move), 5, 0x2400)
        # Its PREEMPT looks at neither scope nor type. Where it takes no reservation, nobody has to.
        self.good(reserve_out(holder, 1, b"holder..", kind=5))
        for kind in (0x00, 0x02, 0x09, 0x0F, 0x15):
            self.sense(reserve_out(other, 4, b"other...", b"holder..", kind=kind), 5, 0x2400)
        self.assertEqual(reservation().hex(), b"holder..".hex() + bytes(5).hex() + "050000")
        self.good(reserve_out(holder, 2, b"holder..", kind=5))
        # Write Exclusive for all registrants stays without its holder.
        self.good(reserve_out(holder, 1, b"holder..", kind=7))
        self.good(reserve_out(other, 4, b"other...", b"holder..", kind=7))
        self.assertEqual(reservation().hex(), bytes(13).hex() + "070000")
        self.sense(reserve_out(other, 4, b"other...", kind=0), 5, 0x2400)
        self.good(reserve_out(other, 4, b"other...", b"fourth..", kind=0))
        while holder.run(bytes(6)).status:  # it is told
            pass
        for number in range(3):  # what tgtd has freed has something else in it behind these
            self.good(reserve_out(holder, 0, bytes(8) if number == 0 else b"again..%d" % (number - 1), b"again..%d" % number))
        self.assertEqual(reservation().hex(), bytes(13).hex() + "070000")
        for disk in (holder, other, third):
            self.good(disk.write(0, bytes(512)))
        self.good(stranger.read(0, 1))
        self.assertEqual(stranger.write(0, bytes(512)).status, 0x18)
        self.assertEqual(daemon.stop(), 0, daemon.errors)

    def test_a_reservation_outlives_the_image_that_is_taken_away_for_a_while(self):
        daemon = self.daemon(config="[lun 1]\ntype = disk\nsize = 64M\n").start()
        unit = ("--op", "update", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "--params")
        port, key = {"name": HOST, "isid": 1}, b"12345678"
        disk = self.attach(daemon, 1, **port)
        self.good(disk.session.run(bytes([0x5F, 0]) + bytes(6) + bytes([24, 0]), bytes(8) + key + bytes(8)))
        self.good(disk.session.run(bytes([0x5F, 1, 0x01]) + bytes(5) + bytes([24, 0]), key + bytes(16)))
        # The holder comes again behind that, or while there is no image.
        for comes_early in (False, True):
            disk.session.close()
            daemon.tgtadm(*unit, "online=0")
            with self.assertRaises(subprocess.CalledProcessError):
                daemon.tgtadm(*unit, "path=/nowhere")
            if comes_early:
                session = daemon.session(1, **port)
                self.addCleanup(session.close)
                self.assertEqual(session.run(bytes(6)).status, 0x02)
            daemon.tgtadm(*unit, "path=" + daemon.image())
            disk = Disk(session) if comes_early else self.attach(daemon, 1, **port)
            self.good(disk.write(0, b"mine" * 128))
            stranger = self.attach(daemon, 1, name=HOST, isid=2)
            self.assertEqual(stranger.write(0, bytes(512)).status, 0x18)
            stranger.session.close()
        self.assertEqual(daemon.stop(), 0, daemon.errors)

    def test_a_disk_that_is_set_offline_is_neither_read_nor_written(self):
        daemon = self.daemon(config="[lun 1]\ntype = disk\nsize = 64M\n").start()
        disk = self.attach(daemon, 1)
        self.good(disk.write(0, b"here" * 128))

        def set_online(value):
            unit = ["--mode", "logicalunit", "--tid", "1", "--lun", "1"]
            daemon.tgtadm("--op", "update", *unit, "--params", f"online={value}")

        set_online(0)
        for refused in (disk.run(bytes(6)), disk.read(0, 1), disk.write(0, bytes(512)), disk.unmap(0, 8)):
            self.sense(refused, 2, 0x0401)
        set_online(1)
        self.good(disk.run(bytes(6)))
        self.assertEqual(disk.read(0, 1).data_in, b"here" * 128)
        self.assertEqual(daemon.stop(), 0)

    def test_mode_pages_are_asked_for_without_room_and_the_size_of_blocks_stays(self):
        daemon = self.daemon(config="[lun 1]\ntype = disk\nsize = 64M\n").start()
        disk = self.attach(daemon, 1)
        for cdb in (bytes([0x1A, 0, 0x3F, 0, 0, 0]), bytes([0x5A, 0, 0x3F]) + bytes(7)):
            task = self.good(disk.run(cdb))
            self.assertEqual((task.data_in, task.in_residual), (b"", 0))
        sense, caching = bytes([0x1A, 0, 0x08, 0, 255, 0]), bytes([8, 0x12, 0x10]) + bytes(17)
        told = self.good(disk.run(sense, read_length=255)).data_in
        blocks = told[4:12]
        self.assertEqual(blocks[4:], (512).to_bytes(4, "big"))

        def select(head, descriptor=b"", pages=b""):
            data = head + descriptor + pages
            return disk.run(bytes([0x15, 0x10, 0, 0, len(data), 0]), data)

        # The last one has no descriptor, and says that it has.
        for wrong in (blocks[:4] + (4096).to_bytes(4, "big"), (7).to_bytes(4, "big") + blocks[4:], b""):
            self.sense(select(bytes([0, 0, 0, 8]), wrong), 5, 0x2600)
        long = bytes([0x55, 0x10]) + bytes(5) + bytes([0, 16, 0])
        self.sense(disk.run(long, bytes(7) + b"\x08" + blocks[:4] + (4096).to_bytes(4, "big")), 5, 0x2600)
        self.assertEqual(self.good(disk.run(sense, read_length=255)).data_in, told)
        # Without a write cache, and again with it.
        for number in (blocks[:4], bytes(4)):
            self.good(select(bytes([0, 0, 0, 8]), number + blocks[4:], caching[:2] + bytes([told[14] & ~4]) + told[15:32]))
            self.assertEqual(self.good(disk.run(sense, read_length=255)).data_in[4:15], blocks + told[12:14] + bytes([told[14] & ~4]))
            self.good(select(bytes(4), b"", told[12:32]))
            self.assertEqual(self.good(disk.run(sense, read_length=255)).data_in, told)
        self.assertEqual(daemon.stop(), 0, daemon.errors)

    def test_a_mode_select_that_is_refused_changes_nothing(self):
        daemon = self.daemon(config="[lun 1]\ntype = disk\nsize = 64M\n").start()
        disk = self.attach(daemon, 1)

        def pages():
            return [self.good(disk.run(bytes([0x1A, 8, page, 0, 255, 0]), read_length=255)).data_in[4:] for page in (0x08, 0x0A)]

        def select(listed):
            data = bytes(4) + listed
            return disk.run(bytes([0x15, 0x10, 0, 0, len(data), 0]), data)

        before = pages()
        without_cache = before[0][:2] + bytes([before[0][2] & ~4]) + before[0][3:]
        protected = before[1][:4] + bytes([before[1][4] | 8]) + before[1][5:]
        # A page that can't be so, and a byte too many, behind pages that can.
        wrong = protected[:3] + bytes([protected[3] ^ 0xFF]) + protected[4:]
        self.sense(select(without_cache + wrong), 5, 0x2600)
        self.sense(select(without_cache + protected + bytes(1)), 5, 0x1A00)
        self.assertEqual(pages(), before)
        self.good(disk.write(0, bytes(512)))
        self.good(select(protected))
        self.sense(disk.write(0, bytes(512)), 7, 0x2700)
        self.sense(select(before[1] + bytes(1)), 5, 0x1A00)
        self.sense(disk.write(0, bytes(512)), 7, 0x2700)
        self.good(select(before[1]))
        self.good(disk.write(0, bytes(512)))
        self.assertEqual(daemon.stop(), 0, daemon.errors)

    def test_registrations_are_bounded(self):
        daemon = self.daemon(config="[lun 1]\ntype = disk\nsize = 64M\n").start()
        register = bytes([0x5F, 0]) + bytes(6) + bytes([24, 0])
        for number in range(128):
            with daemon.session(name=f"{HOST}{number}") as session:
                disk = Disk(session)
                self.good(disk.session.run(register, bytes(8) + b"12345678" + bytes(8)))
        last = self.attach(daemon, 1)
        self.sense(last.session.run(register, bytes(8) + b"12345678" + bytes(8)), 5, 0x5504)
        self.good(last.write(0, bytes(512)))
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main()
