# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A real kernel's initiator with a disk of ours in use: the service is killed and comes back, root of the initiator is
the attacker, one of two paths is cut."""

import os
import unittest

from guest import Cable, GuestCase
from harness import BUILD

TIME_LIMIT_SECONDS = 1800
PORTALS = "[target]\nportal = 127.0.0.1:1, 127.0.0.2:1\n"
POOL = """[device pool]
size = 1G
[lun 1]
type = disk
device = pool
partition = 0x10000
volume_size = 96M
snapshot_schedule = weekly:4
[lun 2]
type = osd
device = pool
"""
MUNINNCTL = os.path.join(BUILD, "bin", "muninnctl")

# A tree with a writer in it, who says what the disk has acknowledged.
WRITER = """
ip link set lo up
write() { # FOLDER: until there is /tmp/enough
	i=0
	while [ ! -e /tmp/enough ]; do
		i=$((i + 1))
		dd if=/dev/urandom of=/tmp/new bs=64k count=2 2>/dev/null
		dd if=/tmp/new of=$1/$((i % 100)) bs=128k conv=fsync 2>/dev/null || { echo the writer failed; return 1; }
		md5sum </tmp/new | cut -c -32 >/tmp/sum.$((i % 100))
		echo $i >/tmp/written
	done
}
has_written() { [ "$(cat /tmp/written)" -ge $1 ]; }
more() { until_it_works has_written $(($(cat /tmp/written) + 4)); }
compare() { # FOLDER
	for sum in /tmp/sum.*; do
		[ "$(md5sum <$1/${sum##*.} | cut -c -32)" = "$(cat $sum)" ] || { echo "${sum##*.} is another file"; return 1; }
	done
}
"""

MOUNTED = """
# The service tells a discovery its own address, at which the guest passes connections on to it.
nc -ll -p $PORT -e nc 10.0.2.2 $PORT &
iscsiadm -m discovery -t sendtargets -p 127.0.0.1:$PORT | tee /tmp/found
[ "$(wc -l </tmp/found)" = 1 ]
grep " $IQN\\$" /tmp/found
iscsiadm -m node -T $IQN -p 127.0.0.1:$PORT --login >/dev/null
until_it_works disk
disk=$(disk)
mkfs.ext4 -F -q $disk
mount -t ext4 $disk /mnt
write /mnt & writer=$!
until_it_works [ -e /tmp/written ]
more
host 'the service is to be killed'
more
grep 'operational after recovery' /run/iscsid.log
touch /tmp/enough
wait $writer
umount /mnt
e2fsck -fn $disk >/dev/null 2>&1
mount -t ext4 $disk /mnt
compare /mnt
umount /mnt
detach
echo every file is what the disk acknowledged
"""

REFUSED = """
code=0
attach $IQN $PORT || code=$?
[ $code = 19 ] # a login that is not to be repeated
[ -z "$(ls /dev/sd? 2>/dev/null)" ]
iscsiadm -m session && exit 1
echo refused
"""

ATTACK = """
refused() { # WORDS COMMAND...: it fails, and says these words
	words=$1
	shift
	"$@" >/tmp/said 2>&1 && { echo "nobody refused: $*"; return 1; }
	grep -qi "$words" /tmp/said || { echo "$*:"; cat /tmp/said; return 1; }
}
attach $IQN $PORT
until_it_works disk
until_it_works unit $OSD
export MUNINN_URL=sg:$(unit $OSD)
disk=$(disk)
mkfs.ext4 -F -q $disk
mount -t ext4 $disk /mnt
for i in 1 2 3 4 5; do dd if=/dev/urandom of=/mnt/$i bs=1M count=$i 2>/dev/null; done
cp -a /bin /mnt/bin
(cd /mnt && find . -type f -exec md5sum {} + >/tmp/sums)
umount /mnt
scheduled() { muninnctl versions 0x10000 | grep weekly-; }
until_it_works scheduled
scheduled
host 'history is to be locked'
# By what administers history.
refused locked muninnctl retention 0x10000 none
refused locked muninnctl retention 0x10000 lock-until=2098-01-01
refused locked muninnctl drop 0x10000 kept
refused locked muninnctl rmpart 0x10000 --contents
refused . muninnctl unlock /dev/sg0 0x10000
# By what changes disks: all of it is allowed, and none of it changes the past.
blkdiscard -f $disk
dd if=/dev/urandom of=$disk bs=1M count=24 2>/dev/null
mkfs.ext4 -F -q $disk
dd if=/dev/zero of=$disk bs=1M count=24 conv=fsync 2>/dev/null
refused 'not supported\\|invalid command' sg_raw $disk 04 0 0 0 0 0
refused . sg_raw -r 512 $disk c1 $(printf '00 %.0s' $(seq 11)) 02 00 00 00
refused . sg_raw $disk 3b 0 0 0 0 0 0 0 0 0
sg_persist --out --register --param-sark=abc $disk >/dev/null
sg_persist --out --reserve --param-rk=abc --prout-type=3 $disk >/dev/null
refused locked muninnctl drop 0x10000 kept
detach
host 'the disk is to be brought back'
iscsiadm -m node --login >/dev/null
until_it_works disk
disk=$(disk)
# What he has reserved is in the way of all others, until one of them takes it from him.
dd if=$disk of=/dev/null bs=512 count=1 2>/dev/null && exit 1
sg_persist --out --register --param-sark=def $disk >/dev/null
sg_persist --out --clear --param-rk=def $disk >/dev/null
mount -t ext4 $disk /mnt
(cd /mnt && md5sum -c /tmp/sums >/dev/null)
echo the tree survived root
"""

# What the attacker has left, as a disk that can be written.
CLONE = """
host 'a clone is to be attached'
before=$(ls /dev/sd? | wc -l)
has_come() { [ "$(ls /dev/sd? | wc -l)" -gt $before ]; }
iscsiadm -m node --rescan >/dev/null
until_it_works has_come
clone=$(ls /dev/sd? | sed -n '$p')
mkdir -p /media
mount -t ext4 $clone /media
(cd /media && md5sum -c /tmp/sums >/dev/null)
echo changed >/media/1
rm -r /media/bin
dd if=/dev/urandom of=/media/6 bs=1M count=6 2>/dev/null
md5sum </media/6 >/tmp/sum6
umount /media
e2fsck -fn $clone >/dev/null 2>&1
mount -t ext4 $clone /media
[ "$(cat /media/1)" = changed ]
[ "$(md5sum </media/6)" = "$(cat /tmp/sum6)" ]
umount /media
# The disk that it is a clone of has not noticed.
umount /mnt
mount -t ext4 $disk /mnt
(cd /mnt && md5sum -c /tmp/sums >/dev/null)
umount /mnt
detach
echo the clone is a disk of its own
"""

TWO_PATHS = """
load multipath
first_node="iscsiadm -m node -T $IQN -p 10.0.2.2:$FIRST" second_node="iscsiadm -m node -T $IQN -p 10.0.2.2:$SECOND"
for node in "$first_node" "$second_node"; do
	$node,1 -o new >/dev/null
	# The kernel holds commands back for so long before it tries the other path.
	$node -o update -n node.session.timeo.replacement_timeout -v 2
	# On a busy machine an answer may be late on a path that is whole.
	$node -o update -n 'node.conn[0].timeo.noop_out_interval' -v 0
	$node --login >/dev/null
	$node --rescan >/dev/null
	until_it_works disk
	sleep 0.2
done
both() { [ "$(ls /dev/sd? | wc -l)" = 2 ]; }
until_it_works both
name() { cat /sys/block/$1/device/wwid; }
[ "$(name sda)" = "$(name sdb)" ]
number() { cat /sys/block/$1/dev; }
dmsetup create paths --noudevsync --table "0 $(cat /sys/block/sda/size) multipath 1 queue_if_no_path 0 1 1 \\
round-robin 0 2 1 $(number sda) 1 $(number sdb) 1"
state() { dmsetup status paths | grep -o "$(number $1) [AF]"; }
is_active() { state $1 | grep -q A; }
failed() { ! is_active $1; }
echo "$(state sda) $(state sdb)"
is_active sda
is_active sdb
paths=/dev/$(basename $(dirname $(dirname $(grep -l '^paths$' /sys/block/dm-*/dm/name))))
mkfs.ext4 -F -q $paths
mount -t ext4 $paths /mnt
write /mnt & writer=$!
until_it_works [ -e /tmp/written ]
more
# Which session has which disk is for the kernel to say.
path_of() { for each in /sys/class/iscsi_connection/*; do
	[ "$(cat $each/persistent_port)" = $1 ] && ls -d $(readlink -f $each/device/..)/target*/*/block/* | sed 's,.*/,,'
done; }
one=$(path_of $FIRST) other=$(path_of $SECOND)
host 'the first path is to be cut'
until_it_works failed $one
is_active $other
more
host 'the first path is to be mended'
running() { [ "$(cat /sys/block/$1/device/state)" = running ] && sg_turs /dev/$1; }
until_it_works running $one
dmsetup message paths 0 "reinstate_path $(number $one)"
is_active $one
more
host 'the second path is to be cut'
until_it_works failed $other
is_active $one
more
touch /tmp/enough
wait $writer
umount /mnt
dmsetup remove --noudevsync paths
e2fsck -fn /dev/$one >/dev/null 2>&1
mount -t ext4 /dev/$one /mnt
compare /mnt
umount /mnt
echo both paths have failed and nobody has noticed
"""


class GuestDiskTest(GuestCase):
    """One guest a test."""

    def run_scenario(self, scenario, steps, **options):
        """Boots a guest with it; `steps`: (what the guest asks for, what to call then)."""
        listener, bell = self.bell()
        machine = self.guest(scenario, GO_PORT=bell, **options)
        for words, step in steps:
            machine.wait_for(words)
            step()
            listener.accept()[0].close()
        return machine.finish()

    def test_a_mounted_file_system_outlives_kill_9_of_the_service(self):
        daemon = self.daemon(config=POOL).start()

        def kill():
            daemon.kill()
            daemon.start()

        said = self.run_scenario(WRITER + MOUNTED, [("the service is to be killed", kill)], PORT=daemon.port)
        self.assertIn("every file is what the disk acknowledged", said)
        self.assertNotIn("the writer failed", said)
        self.assert_nobody_was_refused(daemon)
        self.assertEqual(daemon.stop(), 0)

    def test_an_address_that_is_not_allowed_gets_nothing(self):
        daemon = self.daemon(config="[target]\nallow_address = 192.0.2.0/24\n" + POOL).start()
        self.assertIn("\nrefused\n", self.run_scenario(REFUSED, [], PORT=daemon.port))
        self.assertEqual(daemon.stop(), 0)

    def test_locked_history_outlives_root_of_the_initiator_and_a_clone_is_written(self):
        daemon = self.daemon(config=POOL).start()
        admin = ("--socket", os.path.join(daemon.state_dir, "admin"))

        def lock():
            self.ctl("snapshot", daemon.url(2), "0x10000", "--name", "kept")
            self.ctl("retention", daemon.url(2), "0x10000", "lock-until=2099-01-01")

        steps = [
            ("history is to be locked", lock),
            ("the disk is to be brought back", lambda: self.ctl("rollback", daemon.url(2), "0x10000", "kept")),
            ("a clone is to be attached", lambda: self.ctl("volume", "expose", "0x10000@kept", "--writable", *admin)),
        ]
        said = self.run_scenario(ATTACK + CLONE, steps, programs=[MUNINNCTL], PORT=daemon.port)
        self.assertIn("weekly-", said)
        self.assertIn("the tree survived root", said)
        self.assertIn("the clone is a disk of its own", said)
        self.assert_nobody_was_refused(daemon)
        self.assertEqual(daemon.stop(), 0)

    def test_two_portals_are_two_paths_of_which_either_may_fail(self):
        daemon = self.daemon(config=PORTALS + POOL).start()
        cables = [Cable((f"127.0.0.{number}", daemon.port)) for number in (1, 2)]
        for cable in cables:
            self.addCleanup(cable.close)
        steps = [
            ("the first path is to be cut", cables[0].cut),
            ("the first path is to be mended", cables[0].mend),
            ("the second path is to be cut", cables[1].cut),
        ]
        ports = {"FIRST": cables[0].port, "SECOND": cables[1].port}
        said = self.run_scenario(WRITER + TWO_PATHS, steps, **ports)
        self.assertIn("both paths have failed and nobody has noticed", said)
        self.assert_nobody_was_refused(daemon)
        self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    unittest.main()
