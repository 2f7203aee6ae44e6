/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The verbs about the service on this host, images and keys, and their help. */
#include "client/ctl/verbs.h"

static const struct ctl_verb verbs[] = {
	{ "status", "[--socket FILE]", "the service on this host: units, space, troubles",
	  "Asks the service over its administration socket, without iSCSI and its secrets;\n"
	  "root may, the service's own user, and members of admin_group.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl status\n",
	  0, 0, verb_status },
	{ "top", "[--socket FILE]", "what the service on this host does just now",
	  "Commands of each unit, and pages of each device, a second, on 80 columns: every\n"
	  "two seconds until you press ^C; where the output is no terminal, once.\n"
	  "LATENCY     mean, from a command's arrival to its answer\n"
	  "PAGE/READ   pages read for each command that reads, whatever they are read for\n"
	  "PROG/WRITE  pages programmed for each command that writes, history and merging\n"
	  "            included; one that moves bytes both ways, as of an OSD, counts as both\n"
	  "WEAR        erases of a block, mean\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl top\n",
	  0, 0, verb_top },
	{ "reload", "[--socket FILE]", "let the service take up its configuration anew",
	  "Checks the file first; a wrong one changes nothing. Units come and go, disks\n"
	  "grow, access lists and the CHAP account change. Who may not log in any more is\n"
	  "logged out. Says what needs a restart. The exit code is 8 if something could not\n"
	  "be done, as a unit that a session uses stays. systemctl reload does the same.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl reload\n",
	  0, 0, verb_reload },
	{ "session ls", "[--socket FILE]", "who is logged in",
	  "Prints NUMBER INITIATOR ADDRESS, and the units that the session has used.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl session ls\n",
	  0, 0, verb_session_ls },
	{ "session kick", "[--socket FILE] NUMBER|INITIATOR",
	  "end a session, or all of an initiator",
	  "The initiator may log in again; access lists and `reload` keep it out.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl session kick iqn.2026-11.example:host\n",
	  1, 1, verb_session_kick },
	{ "lun add", "[--socket FILE] NUMBER KEY=VALUE...", "serve one more unit",
	  "The keys are those of [lun N] in the configuration (muninn.conf(5)), and are\n"
	  "checked as there. A device that is missing is made. The unit is gone after a\n"
	  "restart; the command prints what keeps it. Initiators see it when they look for\n"
	  "units again (iscsiadm -m node --rescan).\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl lun add 5 type=disk device=pool partition=0x10005 volume_size=10G\n",
	  2, 64, verb_lun_add },
	{ "lun rm", "[--socket FILE] NUMBER [--force]", "serve a unit no more",
	  "Its device and its volume stay. Refused while a session uses it: from its first\n"
	  "command to the unit until it logs out.\n"
	  "--force  although sessions use it\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl lun rm 5\n",
	  1, 1, verb_lun_rm },
	{ "lun resize", "[--socket FILE] NUMBER SIZE", "let a disk grow",
	  "Its volume gets SIZE bytes; it can't shrink. Initiators are told by a unit\n"
	  "attention (2A/09). Linux wants to be asked to look:\n"
	  "echo 1 > /sys/block/sdX/device/rescan\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl lun resize 5 20G\n",
	  2, 2, verb_lun_resize },
	{ "volume ls", "[--socket FILE] [--device NAME]", "volumes of the service's devices",
	  "Prints PID DEVICE SIZE, and which units are on it. A volume is a partition that\n"
	  "is a disk, or can be one.\n"
	  "--device NAME  of one device alone: [device NAME], or lunN of unit N's own\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl volume ls\n",
	  0, 0, verb_volume_ls },
	{ "volume create", "[--socket FILE] SIZE [PID] [--block-size 512|4096] [--device NAME]",
	  "make a volume",
	  "Prints its ID. `lun add N type=disk device=NAME partition=PID` makes it a disk.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl volume create 10G\n",
	  1, 2, verb_volume_create },
	{ "volume rm", "[--socket FILE] PID [--device NAME]", "remove a volume that no unit is on",
	  "Its history stays in that of the device, as after rmpart.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl volume rm 0x10005\n",
	  1, 1, verb_volume_rm },
	{ "volume resize", "[--socket FILE] PID SIZE [--device NAME]", "let a volume grow",
	  "As `lun resize`, by the volume; also of one that no unit is on.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl volume resize 0x10005 20G\n",
	  2, 2, verb_volume_resize },
	{ "volume expose",
	  "[--socket FILE] PID[@MOMENT] [--writable] [--lun NUMBER] [--device NAME]",
	  "a volume's past as a disk beside it",
	  "A version is a disk that can only be read. Any other moment becomes a clone,\n"
	  "which keeps it; that is a volume of its own, which stays until you remove it.\n"
	  "The unit is gone after a restart; the command prints what keeps it.\n"
	  "--writable    a clone that can be written; the volume itself stays as it is\n"
	  "--lun NUMBER  of the new unit; without, the first that is free\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl volume expose 0x10000@before-the-update\n"
	  "  muninnctl volume expose 0x10000@-2h --writable\n",
	  1, 1, verb_volume_expose },
	{ "device backup", "[--socket FILE] NAME|LUN FILE",
	  "copy a device, as it is at one instant, while it serves",
	  "Copies the image to FILE and its NVRAM to FILE.nvram: all partitions with their\n"
	  "history, keys, policies and locks. NAME is that of [device NAME], or lunN of unit\n"
	  "N's own device. Commands wait once, while the NVRAM is copied in memory; what is\n"
	  "acknowledged before is in the copy. Until all of it is stable the files are called\n"
	  "FILE.partial and FILE.nvram.partial; ^C, or the end of the service, leaves none.\n"
	  "Root may, and the service's own user. muninn-fsck checks the copy.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl device backup 1 /mnt/backup/lun1.img\n",
	  2, 2, verb_device_backup },
	{ "device grow", "[--socket FILE] NAME|LUN SIZE", "make a device larger",
	  "All that is on it stays; it can't shrink. Its units are away for some seconds, and\n"
	  "served again with the same numbers. Refused while a session uses one of them: from\n"
	  "its first command to the unit until it logs out. NAME is that of [device NAME], or\n"
	  "lunN of unit N's own device. OSDs have the space at once; `lun resize` gives it to\n"
	  "disks. If the configuration has a size of the device, raise that, too.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl device grow 1 16G\n",
	  2, 2, verb_device_grow },
	{ "unlock", "IMAGE PID|0", "end the lock of a partition's history",
	  "Works on the target's host only; initiators can't do it. Waits until the daemon\n"
	  "that has IMAGE open has done it. If none has, the lock ends when one opens it:\n"
	  "one lock at a time.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl unlock /var/lib/muninn/lun1.img 0x10000\n",
	  1, 1, verb_unlock },
	{ "time-epoch", "IMAGE TIME", "begin a time epoch, after the clock was far ahead",
	  "Works on the target's host only; initiators can't do it. Recorded times never\n"
	  "go down: after a clock that was far ahead, all commands are on record as of one\n"
	  "time until the clock has passed it. With a new time epoch, times follow the\n"
	  "clock again. You reach earlier moments by number (#N), version or name, no\n"
	  "longer by time. No lock ends earlier for it. TIME is the time of your watch.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl time-epoch /var/lib/muninn/lun1.img 2026-11-22T05:15\n",
	  1, 1, verb_time_epoch },
	{ "key create", "FILE", "make a device key",
	  "Writes a random key to a file that only its owner can read, for key_file in the\n"
	  "service's configuration.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl key create /var/lib/muninn/device.key\n",
	  0, 0, verb_key_create },
	{ "key init", "URL DEVICE_KEY --key KEYRING", "make a keyring for a unit",
	  "The keyring has the unit's initial master key, which follows from the device\n"
	  "key in the file DEVICE_KEY.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl key init $URL device.key --key unit.keys\n",
	  1, 1, verb_key_init },
	{ "key set", "URL master|root|PID --key KEYRING [--key-version N] [--name NAME]",
	  "give the unit a new key",
	  "Sets a random key: the master key, the root key, a partition's key, or with\n"
	  "--key-version 0..15 a working key of the partition. The keys below it become\n"
	  "invalid. The new key goes into the keyring; if the answer is lost, KEYRING.new\n"
	  "has it.\n"
	  "--name NAME  at most 7 bytes, which `key show` shows; without, the time\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl key set $URL root --key unit.keys\n"
	  "  muninnctl key set $URL 0x10000 --key unit.keys\n"
	  "  muninnctl key set $URL 0x10000 --key-version 0 --key unit.keys\n",
	  1, 1, verb_key_set },
	{ "key method", "URL 0|PID|new nosec|capkey|cmdrsp|alldata",
	  "say how commands have to be protected",
	  "Commands on the root (0), in a partition, or in partitions to come (new) need\n"
	  "this method or a stronger one.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl key method $URL 0x10000 alldata\n",
	  2, 2, verb_key_method },
	{ "key show", "URL [PID]", "method and names of keys of the root or a partition",
	  "Never shows the keys themselves.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl key show $URL 0x10000 --key unit.keys\n",
	  0, 1, verb_key_show },
	{ "key mint",
	  "KEYRING ADDRESS [--permissions LIST] [--expires SECONDS] [--security METHOD] "
	  "[--collection]",
	  "make a credential for one object, partition or the root",
	  "Prints the credential. Whoever has it can do with ADDRESS what LIST says,\n"
	  "without the keyring (--credential).\n"
	  "--permissions LIST  with commas, of: read, write, get, set (attributes),\n"
	  "                    create, remove, append, manage, query, members, contents,\n"
	  "                    global, policy, device, all; without, read,get\n"
	  "--expires SECONDS   from now on (3600)\n"
	  "--collection        ADDRESS is a collection, not a user object\n"
	  "\n"
	  "Example:\n"
	  "  (umask 077; muninnctl key mint unit.keys 0x10000/0x10004 \\\n"
	  "      --permissions read,write,get > photo.cred)\n",
	  1, 1, verb_key_mint },
	{ "nand create", "IMAGE SIZE [NVRAM]", "create a NAND image on this host",
	  "Makes IMAGE and IMAGE.nvram with the default geometry, SIZE bytes of page data\n"
	  "and NVRAM bytes of NVRAM (K, M, G, T allowed). For experiments; the service\n"
	  "makes its own images.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl nand create /tmp/flash.img 64M 1M\n",
	  1, 2, verb_nand_create },
	{ "nand grow", "IMAGE SIZE", "make a device on this host larger",
	  "SIZE bytes of page data (K, M, G, T allowed). What is on it stays, with its history.\n"
	  "Nobody may have the image open; a served one grows when its configuration gets a\n"
	  "larger size and the service is restarted. A device never shrinks, and grows to at\n"
	  "most 64 times the size that it was created with. If the command is interrupted,\n"
	  "the device has its old size or its new one.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl nand grow /var/lib/muninn/lun1.img 16G\n",
	  1, 1, verb_nand_grow },
	{ "nand info", "IMAGE", "what a NAND image is and what is on it",
	  "Only reads. If the service has the image open meanwhile, it says so.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl nand info /var/lib/muninn/lun1.img\n",
	  0, 0, verb_nand_info },
	{ "nand map", "IMAGE [--svg FILE]", "the blocks of a NAND image as a picture",
	  "A cell stands for a block, or for some neighbouring ones. In colours on a\n"
	  "terminal, unless NO_COLOR is set.\n"
	  "--svg FILE  writes an SVG picture\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl nand map /var/lib/muninn/lun1.img --svg map.svg\n",
	  0, 0, verb_nand_map },
	{ "nand wear", "IMAGE [--svg FILE]", "how often the blocks of a NAND image were erased",
	  "--svg FILE  writes an SVG picture\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl nand wear /var/lib/muninn/lun1.img\n",
	  0, 0, verb_nand_wear },
	{ "nand dump", "PAGE IMAGE [--long] [--raw]", "what pages of a NAND image hold, decoded",
	  "PAGE is a number, some pages as 64-127, a block as block:3, or block:3-5. Says\n"
	  "of each page what it is (records, part of the index or of a root, parity,\n"
	  "erased, torn), whether it is damaged, and what its bytes mean: the key, length\n"
	  "and checksum of each record, the fields of a root, the segments of an index\n"
	  "image. Several pages are a line each. Also shows pages that are damaged.\n"
	  "Flags of a record: A may be absorbed, M moved by a merge, T a tombstone.\n"
	  "--long  all of several pages\n"
	  "--raw   the bytes of data and spare area, too\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl nand dump 0x1234 /var/lib/muninn/lun1.img\n"
	  "  muninnctl nand dump block:3 /var/lib/muninn/lun1.img\n"
	  "  muninnctl nand dump 0x1234 /var/lib/muninn/lun1.img --raw\n",
	  1, 1, verb_nand_dump },
	{ "nand timing", "IMAGE TIMING|off", "let the emulated flash take its time",
	  "From now on, until `off`, also while a daemon has IMAGE open (it looks twice a\n"
	  "second). TIMING is none, muninn, slc, mlc or tlc, and behind commas as wanted:\n"
	  "mode=real|measured|virtual, read=TIME, program=TIME, erase=TIME,\n"
	  "transfer=PICOSECONDS_A_BYTE, channels=N, dies=N\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl nand timing /var/lib/muninn/lun1.img tlc,read=60us\n",
	  1, 1, verb_nand_timing },
	{ "nand faults", "IMAGE FAULTS|off", "let the emulated flash fail now and then",
	  "From now on, until `off`, also while a daemon has IMAGE open (it looks twice a\n"
	  "second). FAULTS are, with commas between them: seed=N, ecc=BITS/BYTES,\n"
	  "factory-bad=SHARE, program=P, program-at=N, erase=P, erase-at=N,\n"
	  "endurance=ERASES, spread=SHARE, rber=BASE, wear=PER_KILOCYCLE, exponent=E,\n"
	  "retention=PER_KILOHOUR, unreadable=SHARE\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl nand faults /var/lib/muninn/lun1.img seed=7,rber=1e-5,program=0.0001\n",
	  1, 1, verb_nand_faults },
	{ "nand cut", "IMAGE CUT|off", "let the emulated flash lose its power at its next use",
	  "The process that opens IMAGE next for writing loses the power of its flash\n"
	  "after some operations; then everything fails until the image is opened again.\n"
	  "`off` takes it back. CUT is after=N (programs, erases and syncs that still\n"
	  "succeed), and behind commas as wanted: reads (counts them, too),\n"
	  "page=absent|torn|garbage, torn=BYTES, erase=absent|half|done,\n"
	  "nvram=kept|lost|flushed|mixed, seed=N\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl nand cut /tmp/flash.img after=1000,page=torn,torn=100\n",
	  1, 1, verb_nand_cut },
};

const struct ctl_verb_table ctl_verbs_of_host = { verbs, sizeof(verbs) / sizeof(verbs[0]) };
