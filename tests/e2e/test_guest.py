# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A real kernel's initiator, open-iscsi with Linux, against muninnd: it finds the object unit, file systems on a disk go
back in time, and nothing that it sends meets the guard's refusal."""

import os
import re
import signal
import subprocess
import unittest

from guest import GuestCase
from harness import BUILD, ROOT, wait_for_exit

TIME_LIMIT_SECONDS = 1800
# The kernel takes the first disk that it finds.
POOL = """[device pool]
size = 1G
[lun 1]
type = disk
device = pool
volume_size = {}
[lun 2]
type = osd
device = pool
"""
XFS_SIZE_MIN = "300M"  # mkfs.xfs makes none that is smaller
DISK_IQN = "iqn.2014-06.local.muninn:disk"

OBJECT_UNIT = """
attach $IQN $PORT erik wrong-wrong-wrong && exit 1
[ -z "$(ls /dev/sg* 2>/dev/null)" ]
detach || true
iscsiadm -m node -o delete
attach $IQN $PORT erik twelve-or-more
until_it_works unit $OSD
unit=$(unit $OSD)
sg_inq $unit | grep 'PDT=17'
sg_inq -p 0x83 $unit
sg_luns $unit
until_it_works sg_turs $unit
# A CDB of 32 bytes, the longest that sg takes: an OSD command that the unit refuses in good order.
sg_raw -r 512 $unit 7f 0 0 0 0 0 0 18 88 05 $(printf '00 %.0s' $(seq 22)) 2>&1 | tee /tmp/raw || true
grep -i 'illegal request' /tmp/raw
sg_raw $unit c2 $(printf '00 %.0s' $(seq 15)) 2>&1 | grep -i 'invalid command operation code'
sg_raw -r 512 $unit c1 $(printf '00 %.0s' $(seq 11)) 02 00 00 00 2>&1 | grep -i 'invalid field in cdb'
detach
"""

FILE_SYSTEMS = """
load xfs
attach $DISK_IQN $PORT
until_it_works disk
disk=$(disk)
fill() { for i in 1 2 3 4 5; do dd if=/dev/urandom of=/mnt/$i bs=1M count=$i 2>/dev/null; done; cp -a /bin /mnt/bin; }
for type in ext4 xfs; do
	[ $type = xfs ] && force=-f || force=-F
	mkfs.$type $force -q $disk
	mount -t $type $disk /mnt
	fill
	(cd /mnt && find . -type f -exec md5sum {} + >/tmp/sums)
	sync
	umount /mnt
	mount -t $type $disk /mnt
	(cd /mnt && md5sum -c /tmp/sums >/dev/null)
	umount /mnt
	[ $type = xfs ] && xfs_repair -n $disk >/dev/null 2>&1 || e2fsck -fn $disk >/dev/null 2>&1
	echo "$type is whole"
done
detach
"""

TIME_MACHINE = """
load xfs
attach $IQN $PORT
until_it_works disk
disk=$(disk)
for type in ext4 xfs; do
	[ $type = xfs ] && force=-f || force=-F
	mkfs.$type $force -q $disk
	mount -t $type $disk /mnt
	# Little of it is free, because all that is free will be overwritten.
	fallocate -l $(($(df -k /mnt | awk 'END { print $4 }') - 40960))k /mnt/.taken
	for i in 1 2 3 4 5 6; do dd if=/dev/urandom of=/mnt/$i bs=1M count=$i 2>/dev/null; done
	cp -a /bin /mnt/bin
	rm /mnt/6
	fstrim /mnt
	(cd /mnt && find . -type f ! -name .taken -exec md5sum {} + >/tmp/sums)
	umount /mnt
	host "$type is to be kept"
	mount -t $type $disk /mnt
	for i in 1 2 3 4; do dd if=/dev/urandom of=/mnt/$i bs=1M count=$i conv=notrunc 2>/dev/null; done
	rm -r /mnt/5 /mnt/bin
	dd if=/dev/zero of=/mnt/full bs=1M 2>/dev/null || true
	umount /mnt
	detach
	host "$type is to be brought back"
	iscsiadm -m node --login >/dev/null
	until_it_works disk
	disk=$(disk)
	mount -t $type $disk /mnt
	(cd /mnt && md5sum -c /tmp/sums >/dev/null)
	[ ! -e /mnt/full ]
	echo new >/mnt/new
	umount /mnt
	[ $type = xfs ] && xfs_repair -n $disk >/dev/null 2>&1 || e2fsck -fn $disk >/dev/null 2>&1
	echo "$type is whole"
done
detach
"""

# An OSD through /dev/sg, and a disk on the same device, whose file system is mounted.
SHARED = """[device pool]
size = 1G
[lun 1]
type = osd
device = pool
[lun 2]
type = disk
device = pool
partition = 0x10000
volume_size = 64M
"""
THROUGH_SG = """
attach $IQN $PORT
until_it_works unit $OSD
until_it_works sg_turs $(unit $OSD)
"""
BEHIND_SG = """
# Files, longer than one piece, also with attributes and errors.
dd if=/dev/urandom of=/tmp/3M bs=1M count=3 2>/dev/null
muninnctl put 0x20000/0x10005 /tmp/3M
muninnctl get 0x20000/0x10005 | cmp - /tmp/3M
muninnctl import 0x30000 /etc
muninnctl export 0x30000 /tmp/etc
cmp /etc/passwd /tmp/etc/passwd
muninnctl attr set 0x20000/0x10005 0x10000 1 --text raven
muninnctl attr get 0x20000/0x10005 0x10000 1 | grep raven
muninnctl get 0x20000/0x10099 && exit 1 || [ $? = 3 ]
muninnctl --chunk 8M put 0x20000/0x10006 /tmp/3M 2>&1 | grep -e --chunk
# Two at once, which share the kernel's session.
muninnctl get 0x20000/0x10005 >/tmp/a & muninnctl get 0x20000/0x10005 >/tmp/b
wait
cmp /tmp/a /tmp/3M
cmp /tmp/b /tmp/3M
# The file system of this very session's disk is in use.
until_it_works disk
mkfs.ext4 -F -q $(disk)
mount -t ext4 $(disk) /mnt
muninnctl snapshot 0x10000 --name mounted
muninnctl rollback 0x10000 mounted 2>&1 | tee /tmp/refused || true
grep 'iqn.2014-06.local.muninn:guest' /tmp/refused
umount /mnt
detach
"""
# The disk of docs/how-to/disk.md, section for section: what happens behind the commands of each.
SECTIONS = {
    "Serve a disk": """
for i in 1 2 3 4 5; do dd if=/dev/urandom of=/mnt/$i bs=1M count=$i 2>/dev/null; done
cp -a /bin /mnt/bin
(cd /mnt && find . -type f -exec md5sum {} + >/tmp/sums)
""",
    "Keep a version": "dd if=/dev/urandom of=/mnt/1 bs=1M count=1 conv=notrunc 2>/dev/null; rm /mnt/2; sync",
    "Go back": "(cd /mnt && md5sum -c /tmp/sums >/dev/null) && echo the tree is back; echo more >/mnt/more",
    "Look at the past beside the present": """
[ "$(cat /mnt/more)" = more ]
for i in 1 2 3 4 5 more; do
	dd if=/dev/urandom of=/mnt/$i bs=4k count=100 conv=notrunc 2>/dev/null
	mv /mnt/$i /mnt/$i.locked
done
rm -r /mnt/3.locked /mnt/bin
dd if=/dev/zero of=/mnt/ransom bs=1M 2>/dev/null || true
sync
""",
    "After ransomware": """
(cd /mnt && md5sum -c /tmp/sums >/dev/null) && echo the tree is back from the attack
[ ! -e /mnt/ransom ]
[ -e /media/attacked/ransom ] && [ -e /media/attacked/1.locked ]
umount /media/attacked
umount /mnt
e2fsck -fn $(disk) >/dev/null 2>&1
detach
""",
}
DISK_STEPS = re.compile(r"^## ([^\n]*)$|^ *```sh (initiator|target)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
# What the page leaves to the reader: which disk it is, and that a kernel takes a moment to find it.
FIND_DISKS = """
newest() { ls /dev/sd? | sed -n '$p'; }
second() { [ "$(ls /dev/sd? | wc -l)" = 2 ]; }
gone() { [ "$(ls /dev/sd? | wc -l)" = 1 ]; }
"""
SG_HOW_TO = re.compile(r"^ *```sh sg\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)

RECOVERY = """
attach $IQN $PORT
until_it_works unit $OSD
unit=$(unit $OSD)
until_it_works sg_turs $unit
echo ready for a kill
# The kernel keeps commands while the connection is away.
until_it_works grep 'operational after recovery' /run/iscsid.log
until_it_works sg_turs $unit
sg_inq $unit | grep 'PDT=17'
iscsiadm -m session -P 3 | grep 'Session State'
detach
"""


def disk_steps():
    """[(whether on the target's host, commands)] of the page about disks, and what happens behind them."""
    with open(os.path.join(ROOT, "docs", "how-to", "disk.md"), encoding="utf-8") as page:
        found = DISK_STEPS.findall(page.read())
    steps, section, missing = [], None, dict(SECTIONS)
    for title, where, commands in found + [("", "", "")]:
        if not commands and section in missing:
            steps.append((False, missing.pop(section)))
        if not commands:
            section = title
        elif section in SECTIONS:
            steps.append((where == "target", commands))
    assert not missing, f"docs/how-to/disk.md has no commands under {list(missing)}"
    return steps


def for_guest(commands):
    """Commands of the page for the disks that there are."""
    lines = []
    for line in commands.splitlines():
        if "/dev/sdX" in line:
            lines.append("until_it_works disk")
        if "/dev/sdY" in line:
            lines.append("until_it_works second")
        line = line.replace("/dev/sdX", "$(disk)").replace("/dev/sdY", "$(newest)")
        line = line.replace("/sys/block/sdY", "/sys/block/$(basename $(newest))")
        lines.append(line)
        if line.endswith("$(newest) /media/then"):
            lines.append("(cd /media/then && md5sum -c /tmp/sums >/dev/null) && echo the past is the tree")
        if "device/delete" in line:
            lines.append("until_it_works gone")
    return "\n".join(lines) + "\n"


class GuestTest(GuestCase):
    """One guest a test."""

    def test_a_kernel_finds_the_object_unit(self):
        account = "[target]\nchap_user = erik\nchap_secret = twelve-or-more\n[lun 1]\ntype = osd\nsize = 256M\n"
        daemon = self.daemon(config=account).start()
        said = self.guest(OBJECT_UNIT, PORT=daemon.port).finish()
        self.assertIn("PDT=17", said)
        self.assert_nobody_was_refused(daemon)
        self.assertEqual(daemon.stop(), 0)

    def test_the_how_to_works_through_dev_sg(self):
        with open(os.path.join(ROOT, "docs", "how-to", "attach.md"), encoding="utf-8") as page:
            steps = SG_HOW_TO.findall(page.read())
        self.assertGreaterEqual(len(steps), 2)
        daemon = self.daemon(config=SHARED).start()
        scenario = THROUGH_SG + "\n".join(steps) + BEHIND_SG
        said = self.guest(scenario, [os.path.join(BUILD, "bin", "muninnctl")], PORT=daemon.port).finish()
        for words in ("thought and memory", "before", "raven"):
            self.assertIn(words, said)
        # What came through the kernel is what others see.
        self.assertEqual(self.ctl("cat", daemon.url(1), "0x20000/0x10004").strip(), "all is lost")
        self.assert_nobody_was_refused(daemon)
        self.assertEqual(daemon.stop(), 0)

    def test_file_systems_on_a_disk_of_the_same_tgtd(self):
        daemon = self.daemon().start()
        path = os.path.join(daemon.state_dir, "disk")
        with open(path, "wb") as file:
            file.truncate(512 << 20)
        target = ["--mode", "target", "--tid", "2"]
        daemon.tgtadm("--op", "new", *target, "-T", DISK_IQN)
        daemon.tgtadm("--op", "new", "--mode", "logicalunit", "--tid", "2", "--lun", "1", "-b", path)
        daemon.tgtadm("--op", "bind", *target, "-I", "ALL")
        said = self.guest(FILE_SYSTEMS, PORT=daemon.port, DISK_IQN=DISK_IQN).finish()
        self.assertIn("ext4 is whole", said)
        self.assertIn("xfs is whole", said)
        self.assert_nobody_was_refused(daemon)

    def test_a_disk_of_ours_goes_back_to_before_an_attack(self):
        daemon = self.daemon(config=POOL.format(XFS_SIZE_MIN)).start()
        listener, bell = self.bell()
        machine = self.guest(TIME_MACHINE, PORT=daemon.port, GO_PORT=bell)
        for kind in ("ext4", "xfs"):
            machine.wait_for(f"{kind} is to be kept")
            self.ctl("snapshot", daemon.url(2), "0x10000", "--name", kind)
            listener.accept()[0].close()
            machine.wait_for(f"{kind} is to be brought back")
            self.ctl("rollback", daemon.url(2), "0x10000", kind)
            listener.accept()[0].close()
        said = machine.finish()
        self.assertIn("ext4 is whole", said)
        self.assertIn("xfs is whole", said)
        self.assert_nobody_was_refused(daemon)
        self.assertEqual(daemon.stop(), 0)

    def run_on_target(self, daemon, commands):
        """Commands of a page that are typed on the target's host."""
        environment = {
            **os.environ,
            "PATH": os.path.join(BUILD, "bin") + ":" + os.environ["PATH"],
            "MUNINN_SOCKET": os.path.join(daemon.state_dir, "admin"),
        }
        script = "set -e\n" + commands.replace("URL", daemon.url(2))
        done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, f"{script}\n{done.stdout}{done.stderr}")

    def test_the_how_tos_of_disks_work_as_they_are_written(self):
        daemon = self.daemon(config=POOL.format("64M")).start()
        listener, bell = self.bell()
        scenario, on_target = FIND_DISKS + "attach $IQN $PORT\n", []
        for target, commands in disk_steps():
            if target:
                on_target.append(commands)
                scenario += f"host 'step {len(on_target)} of the target'\n"
            else:
                scenario += for_guest(commands)
        machine = self.guest(scenario, PORT=daemon.port, GO_PORT=bell)
        for number, commands in enumerate(on_target, 1):
            machine.wait_for(f"step {number} of the target")
            self.run_on_target(daemon, commands)
            listener.accept()[0].close()
        said = machine.finish()
        self.assertIn("the tree is back\n", said)
        self.assertIn("the past is the tree", said)
        self.assertIn("the tree is back from the attack", said)
        self.assert_nobody_was_refused(daemon)
        self.assertEqual(daemon.stop(), 0)

    def test_a_session_comes_back_when_tgtd_was_killed(self):
        daemon = self.daemon().start()
        machine = self.guest(RECOVERY, PORT=daemon.port)
        machine.wait_for("ready for a kill")
        os.kill(daemon.tgtd_pid, signal.SIGKILL)
        wait_for_exit(daemon.tgtd_pid)
        self.assertIn("LOGGED_IN", machine.finish())
        self.assert_nobody_was_refused(daemon)
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main()
