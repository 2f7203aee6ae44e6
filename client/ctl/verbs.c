/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The table of verbs, and their help. */
#include "client/ctl/verbs.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define URL_EXAMPLE "iscsi://127.0.0.1:3260/iqn.2026-01.example:store/1"

static const struct ctl_verb verbs[] = {
	{ "info", "URL", "what the device is and how full",
	  "Shows identity, capacity and number of partitions.\n\n"
	  "Example:\n  muninnctl info $URL\n",
	  0, 0, verb_info },
	{ "discover", "URL", "targets of a portal",
	  "Lists the targets that the portal announces, one a line: NAME PORTAL. Target and LUN in "
	  "the URL may be\n"
	  "left out.\n\n"
	  "Example:\n  muninnctl discover iscsi://127.0.0.1:3260\n",
	  0, 0, verb_discover },
	{ "format", "URL [CAPACITY]", "remove all partitions and objects",
	  "FORMAT OSD: everything on the unit is gone. CAPACITY in bytes (K, M, G, T allowed); "
	  "without it, all there is.\n\n"
	  "Example:\n  muninnctl format $URL\n",
	  0, 1, verb_format },
	{ "mkpart", "URL [PID] [--layout flat|packed]", "create a partition",
	  "Prints the ID. Without PID the target chooses. IDs begin at 0x10000.\n"
	  "--layout  of its object IDs: flat, numbers as every initiator uses them; packed, "
	  "identifier, version and "
	  "first page\n"
	  "          in one ID; else as the unit is configured\n\n"
	  "Examples:\n  muninnctl mkpart $URL\n  muninnctl mkpart $URL 0x10000\n",
	  0, 1, verb_mkpart },
	{ "rmpart", "URL PID [--contents]", "remove a partition",
	  "--contents  also if it has objects, which go with it\n\n"
	  "Example:\n  muninnctl rmpart $URL 0x10000 --contents\n",
	  1, 1, verb_rmpart },
	{ "ls", "URL [PID|0[@MOMENT]] [-l]", "list partitions, or the objects of one",
	  "One ADDRESS a line, in ascending order. 0 is the device: its partitions, also those of "
	  "then, which can be read\n"
	  "at that moment even if they have been removed.\n"
	  "-l, --long  with length, time of the last change and user name\n\n"
	  "Examples:\n  muninnctl ls $URL\n  muninnctl ls -l $URL 0x10000\n  muninnctl ls $URL "
	  "0@-1d\n",
	  0, 1, verb_ls },
	{ "stat", "URL [ADDRESS]", "facts about the device, a partition, an object or a collection",
	  "Examples:\n  muninnctl stat $URL 0x10000/0x10004\n  muninnctl stat $URL 0x10000@-1d\n",
	  0, 1, verb_stat },
	{ "create", "URL PID[/OID] [--count N]", "create empty objects",
	  "Prints their ADDRESSes. Without OID the target chooses.\n"
	  "--count N  so many, with consecutive IDs; without OID only\n\n"
	  "Examples:\n  muninnctl create $URL 0x10000\n  muninnctl create $URL 0x10000/0x10004\n",
	  1, 1, verb_create },
	{ "put", "URL PID[/OID] [FILE] [--replace | --offset N]", "store a file or standard input",
	  "Prints the object's ADDRESS. Without OID a new object is made and the target chooses "
	  "its ID; with OID it must\n"
	  "not exist, unless:\n"
	  "--replace   the object's content is replaced (up to one chunk in one step; a longer one "
	  "is cut to nothing first)\n"
	  "--offset N  the data is written into the object from byte N on; the rest stays, and a "
	  "missing one is made\n"
	  "FILE '-' or none is standard input. What does not fit one chunk is sent several chunks "
	  "at once (--chunk SIZE).\n\n"
	  "Examples:\n  muninnctl put $URL 0x10000 photo.jpg\n  tar c . | muninnctl put $URL "
	  "0x10000/0x10004\n",
	  1, 2, verb_put },
	{ "append", "URL ADDRESS [FILE]", "add a file or standard input at an object's end",
	  "Each chunk is one APPEND and lands as a whole, also beside other writers.\n\n"
	  "Example:\n  date | muninnctl append $URL 0x10000/0x10004\n",
	  1, 2, verb_append },
	{ "get", "URL ADDRESS [FILE] [--offset N] [--length N]",
	  "read an object into a file or to standard output",
	  "FILE is written beside its place and renamed when complete. The past: ADDRESS with "
	  "@MOMENT.\n\n"
	  "Examples:\n  muninnctl get $URL 0x10000/0x10004 copy.jpg\n  muninnctl get $URL "
	  "0x10000/0x10004 > copy.jpg\n"
	  "  muninnctl get $URL 0x10000/0x10004@3 --offset 1M --length 64K | xxd\n",
	  1, 2, verb_get },
	{ "cat", "URL ADDRESS...", "read objects to standard output, one behind the other",
	  "Example:\n  muninnctl cat $URL 0x10000/0x10004 0x10000/0x10005\n", 1, INT_MAX,
	  verb_cat },
	{ "rm", "URL ADDRESS...", "remove objects",
	  "Stops at the first that can't be removed.\n\nExample:\n  muninnctl rm $URL "
	  "0x10000/0x10004 0x10000/0x10005\n",
	  1, INT_MAX, verb_rm },
	{ "truncate", "URL ADDRESS LENGTH", "cut or extend an object",
	  "What is added reads as zeros.\n\nExample:\n  muninnctl truncate $URL 0x10000/0x10004 "
	  "10M\n",
	  2, 2, verb_truncate },
	{ "clear", "URL ADDRESS OFFSET LENGTH", "make a range of an object zeros",
	  "Example:\n  muninnctl clear $URL 0x10000/0x10004 4K 64K\n", 3, 3, verb_clear },
	{ "punch", "URL ADDRESS OFFSET LENGTH", "take a range out of an object",
	  "What is behind the range moves down.\n\nExample:\n  muninnctl punch $URL "
	  "0x10000/0x10004 4K 64K\n",
	  3, 3, verb_punch },
	{ "cp", "URL ADDRESS[@MOMENT] PID[/OID]", "copy an object inside the target",
	  "With its data, user name, quotas and application attributes; nothing goes over the "
	  "network. Prints the copy's address.\n\n"
	  "Examples:\n  muninnctl cp $URL 0x10000/0x10004 0x10000\n"
	  "  muninnctl cp $URL 0x10000/0x10004@-10min 0x10000/0x10900\n",
	  2, 2, verb_cp },
	{ "attr get", "URL ADDRESS PAGE NUMBER [--raw]", "print an attribute",
	  "Text as text, other values in hexadecimal.\n"
	  "--raw  the bytes as they are\n\n"
	  "Example, an object's logical length:\n  muninnctl attr get $URL 0x10000/0x10004 0x1 "
	  "0x82\n",
	  3, 3, verb_attr_get },
	{ "attr set",
	  "URL ADDRESS PAGE NUMBER [VALUE] [--text | --hex | --number | --file FILE | --remove]",
	  "set an attribute",
	  "VALUE is text (--text says so), unless:\n"
	  "--hex        it is bytes in hexadecimal\n"
	  "--number     it is a number, stored as 8 bytes, big-endian\n"
	  "--file FILE  the file's content is the value\n"
	  "--remove     the attribute becomes undefined\n\n"
	  "Examples:\n  muninnctl attr set $URL 0x10000/0x10004 0x1 0x9 'holiday photo'\n"
	  "  muninnctl attr set $URL 0x10000/0x10004 0x1 0x82 --number 4096\n",
	  3, 4, verb_attr_set },
	{ "attr ls", "URL ADDRESS [PAGE]", "list attributes",
	  "One a line: PAGE NUMBER LENGTH VALUE. Without PAGE, of all pages.\n\n"
	  "Example:\n  muninnctl attr ls $URL 0x10000/0x10004\n",
	  1, 2, verb_attr_ls },
	{ "coll create", "URL PID[/OID]", "create a collection of objects",
	  "Prints its ADDRESS. Without OID the target chooses.\n\n"
	  "Example:\n  muninnctl coll create $URL 0x10000\n",
	  1, 1, verb_coll_create },
	{ "coll track", "URL PID[/OID] [COLLECTION]", "create a tracking collection",
	  "With the members of COLLECTION, ADDRESS of one in the same partition. The objects do "
	  "not "
	  "know of it.\n"
	  "`coll purge` on it works in steps, and goes on where it was interrupted.\n\n"
	  "Example:\n  muninnctl coll track $URL 0x10000 0x10000/0x10004\n",
	  1, 2, verb_coll_track },
	{ "coll rm", "URL COLLECTION [--force]", "remove a collection",
	  "--force  also if it has members; the objects stay\n\n"
	  "Example:\n  muninnctl coll rm $URL 0x10000/0x10004\n",
	  1, 1, verb_coll_rm },
	{ "coll ls", "URL PID[/OID][@MOMENT]",
	  "list the collections of a partition, or the members of one",
	  "One ADDRESS a line, in ascending order.\n\n"
	  "Examples:\n  muninnctl coll ls $URL 0x10000\n  muninnctl coll ls $URL "
	  "0x10000/0x10004\n",
	  1, 1, verb_coll_ls },
	{ "coll add", "URL COLLECTION ADDRESS...", "make objects members of a collection",
	  "An object can be in many. Stops at the first that can't be added.\n\n"
	  "Example:\n  muninnctl coll add $URL 0x10000/0x10004 0x10000/0x10005\n",
	  2, INT_MAX, verb_coll_add },
	{ "coll drop", "URL COLLECTION ADDRESS...", "take objects out of a collection",
	  "The objects stay.\n\n"
	  "Example:\n  muninnctl coll drop $URL 0x10000/0x10004 0x10000/0x10005\n",
	  2, INT_MAX, verb_coll_drop },
	{ "coll query", "URL COLLECTION CRITERION... [--any] [--hex | --number]",
	  "search members by their attributes",
	  "One ADDRESS a line of the members that match all criteria. A CRITERION is PAGE:NUMBER "
	  "(has the attribute),\n"
	  "PAGE:NUMBER=VALUE or PAGE:NUMBER=MIN..MAX, inclusive, compared as bytes; MIN or MAX may "
	  "be missing.\n"
	  "--any     members that match any of them\n"
	  "--hex     values are bytes in hexadecimal\n"
	  "--number  values are numbers, stored as 8 bytes, big-endian\n\n"
	  "Examples:\n  muninnctl coll query $URL 0x10000/0x10004 0x1:0x9=a..c\n"
	  "  muninnctl coll query $URL 0x10000/0x10004 0x1:0x82=1M.. --number\n",
	  2, INT_MAX, verb_coll_query },
	{ "coll purge", "URL COLLECTION", "remove all objects that are members of a collection",
	  "Of a collection in one step, of a tracking collection in many.\n\n"
	  "Example:\n  muninnctl coll purge $URL 0x10000/0x10004\n",
	  1, 1, verb_coll_purge },
	{ "import", "URL PID DIR [--update [--checksum] | --replace] [--clean] [--log FILE]",
	  "store a directory tree in a partition",
	  "Files, directories, symbolic and hard links with names, modes and times. The tree is "
	  "there when the command\n"
	  "ends, or not at all. The partition is created if it does not exist.\n"
	  "--update    makes the stored tree equal to DIR. Leaves files with the same length and "
	  "time alone,\n"
	  "            and writes the ranges of others that differ. Also completes an interrupted "
	  "update\n"
	  "--checksum  with --update: compares the content of all files\n"
	  "--replace   replaces the stored tree, and removes its objects afterwards\n"
	  "--clean     first removes objects that interrupted imports have left\n"
	  "--log FILE  appends a line 'OID LENGTH SHA256 PATH' when an object is acknowledged\n\n"
	  "Examples:\n  muninnctl import $URL 0x10000 /usr/share/doc\n"
	  "  muninnctl import $URL 0x10000 /usr/share/doc --update\n",
	  2, 2, verb_import },
	{ "export", "URL PID[@MOMENT] DIR [--at MOMENT]", "bring a directory tree back",
	  "Makes DIR, or fills an empty one. Checks length and SHA-256 of every file. Owners are "
	  "not kept, so files\nlose their set-user-ID and set-group-ID bits.\n\n"
	  "Example:\n  muninnctl export $URL 0x10000 /tmp/doc\n",
	  2, 2, verb_export },
	{ "flush", "URL [ADDRESS]", "make everything at or below the address stable",
	  "Returns when it survives power loss of the target's host.\n\n"
	  "Examples:\n  muninnctl flush $URL\n  muninnctl flush $URL 0x10000/0x10004\n",
	  0, 1, verb_flush },
	{ "check", "URL [ADDRESS]", "look for damage in what is stored",
	  "Reads an object, a partition with everything in it, or everything there is. Prints "
	  "what is damaged, an ADDRESS a\nline with `data`, `attributes` or `directory` behind it, "
	  "and ends with 11 if anything is.\n\n"
	  "Examples:\n  muninnctl check $URL\n  muninnctl check $URL 0x10000/0x10004\n",
	  0, 1, verb_check },
	{ "snapshot", "URL PID|0 [--name NAME]", "keep this moment as a version",
	  "Takes the same short time, whatever the partition holds. Prints the version's number. "
	  "0 is the whole device.\n"
	  "--name NAME  to find it by; unique among the versions\n\n"
	  "Examples:\n  muninnctl snapshot $URL 0x10000 --name before-upgrade\n  muninnctl "
	  "snapshot $URL 0\n",
	  1, 1, verb_snapshot },
	{ "versions", "URL PID|0", "list versions with time, size and name",
	  "`written` is what was written since the version before: the most that this version "
	  "holds alone.\n\n"
	  "Example:\n  muninnctl versions $URL 0x10000\n",
	  1, 1, verb_versions },
	{ "drop", "URL PID|0 VERSION|NAME|TIME", "end a version",
	  "From then on `merge` can reclaim what only this version needs. TIME is when it was "
	  "made, as `versions` shows it.\n"
	  "Versions of the device, 32768 and up, are dropped at 0, for all partitions.\n\n"
	  "Example:\n  muninnctl drop $URL 0x10000 before-upgrade\n",
	  2, 2, verb_drop },
	{ "rollback", "URL PID|0|PID/OID MOMENT", "go back to a version or a point in time",
	  "Takes no longer for a large one. What came after MOMENT is hidden, not deleted: roll "
	  "back again,\n"
	  "to a later moment, to see it.\n\n"
	  "Examples:\n  muninnctl rollback $URL 0x10000 -10min\n  muninnctl rollback $URL 0x10000 "
	  "3\n"
	  "  muninnctl rollback $URL 0x10000/0x10004 2026-11-21T14:32:05\n",
	  2, 2, verb_rollback },
	{ "undo", "URL PID/OID [N]", "take the last N modifications of an object back",
	  "Without N: the last one. An undo is a modification too, and can be undone.\n\n"
	  "Example:\n  muninnctl undo $URL 0x10000/0x10004 2\n",
	  1, 2, verb_undo },
	{ "log", "URL PID/OID[@MOMENT]", "all modifications of an object, newest first",
	  "One a line: #SEQUENCE, time, what, length after it. With MOMENT, those up to then.\n\n"
	  "Examples:\n  muninnctl log $URL 0x10000/0x10004\n  muninnctl log $URL "
	  "0x10000/0x10004@-1d\n",
	  1, 1, verb_log },
	{ "diff", "URL PID MOMENT [MOMENT] [--raw]",
	  "what differs between two moments of a partition",
	  "One difference a line: the object, then added, removed, data OFFSET+LENGTH, length N or "
	  "attributes.\n"
	  "Without the second MOMENT: compared with the present. If the partition holds a "
	  "directory tree\n"
	  "at both, the file's path ends the line, and further lines show: renamed OLD, mode OLD "
	  "NEW,\n"
	  "time OLD NEW, linked, unlinked; and of directories and links, which are no objects (-): "
	  "added,\n"
	  "removed, mode, time, target. Paths are escaped as in manifests.\n"
	  "--raw  objects only\n\n"
	  "Example:\n  muninnctl diff $URL 0x10000 3 -1h\n",
	  2, 3, verb_diff },
	{ "clone", "URL PID[@MOMENT] [PID] [--read-only]",
	  "make a partition with the contents of another one",
	  "Copies nothing, and takes no time. From then on the two change independently. Prints "
	  "the new ID.\n"
	  "Without the second PID the target chooses it.\n"
	  "--read-only  as the standard's snapshots are\n\n"
	  "Example:\n  muninnctl clone $URL 0x10000@-1d 0x20000\n",
	  1, 2, verb_clone },
	{ "refresh", "URL PID", "bring a clone up to its source",
	  "The clone loses its own changes.\n\n"
	  "Example:\n  muninnctl refresh $URL 0x20000\n",
	  1, 1, verb_refresh },
	{ "detach", "URL PID", "make a clone a partition of its own",
	  "Example:\n  muninnctl detach $URL 0x20000\n", 1, 1, verb_detach },
	{ "retention", "URL PID|0 [POLICY...]", "how much history a partition keeps",
	  "Without POLICY: shows it. 0: for partitions without a policy of their own. POLICY is "
	  "one or more of:\n"
	  "snapshots             versions always, other history while there is space (default)\n"
	  "all                   everything; a full device refuses writes\n"
	  "none                  versions only\n"
	  "keep-all=DURATION     every moment this far back, in any case (90min, 24h, 7d, 0)\n"
	  "interval=DURATION     before that, one moment each DURATION...\n"
	  "interval-for=DURATION ... this far back\n"
	  "lock-until=TIME       no initiator can shorten any of it until then\n\n"
	  "Example:\n  muninnctl retention $URL 0x10000 keep-all=24h interval=1h interval-for=1w\n",
	  1, 8, verb_retention },
	{ "merge", "URL [start|progress|cancel] [--progress]", "reclaim space that nothing needs",
	  "Runs on the target; --progress waits for its end and tells how far it is, and ^C then "
	  "cancels "
	  "the merge.\n\n"
	  "Example:\n  muninnctl merge $URL --progress\n",
	  0, 1, verb_merge },
	{ "watch", "URL PID|0", "space by version, as a picture",
	  "Of a partition: its versions and the present; = used, + written since the version "
	  "before.\n"
	  "0: the partitions and the versions of the device. On a terminal it shows the largest "
	  "and the\n"
	  "newest that fit, every two seconds until interrupted.\n\n"
	  "Example:\n  muninnctl watch $URL 0x10000\n",
	  1, 1, verb_watch },
	{ "search", "URL PID[/OID][@MOMENT] PATTERN [--regex]",
	  "find bytes in objects, on the target",
	  "Prints ADDRESS OFFSET+LENGTH of each match; nothing else crosses the wire. Exit code 3: "
	  "no match.\n"
	  "--regex  PATTERN is a POSIX extended regular expression; ^ and $ match at lines\n\n"
	  "Example:\n  muninnctl search $URL 0x10000 'error [0-9]+' --regex\n",
	  2, 2, verb_search },
	{ "checksum", "URL PID/OID[@MOMENT] [--offset N] [--length N]",
	  "SHA-256 of an object, on the target",
	  "Printed as sha256sum prints it.\n\n"
	  "Example:\n  muninnctl checksum $URL 0x10000/0x10004@-1d\n",
	  1, 1, verb_checksum },
	{ "statistics", "URL", "the engine's counters", "Example:\n  muninnctl statistics $URL\n",
	  0, 0, verb_statistics },
	{ "unlock", "IMAGE PID|0", "end the lock of a partition's history",
	  "On the target's host only: initiators cannot. Waits until the daemon that has IMAGE "
	  "open has done so; "
	  "if none has,\n"
	  "the lock ends when one opens it.\n\n"
	  "Example:\n  muninnctl unlock /var/lib/muninn/lun1.img 0x10000\n",
	  1, 1, verb_unlock },
	{ "time-epoch", "IMAGE TIME", "begin times anew, after the clock was far ahead",
	  "On the target's host only: initiators cannot. Recorded times never go down: after a "
	  "clock "
	  "that was far ahead, all\n"
	  "commands are on record as of one time until the clock has passed it. From this command "
	  "on "
	  "times count by the clock\n"
	  "again. Moments of before are reached by number (#N), version or name, no longer by "
	  "time. "
	  "No lock ends earlier for\n"
	  "it. TIME is what time it is, by your watch.\n\n"
	  "Example:\n  muninnctl time-epoch /var/lib/muninn/lun1.img 2026-11-22T05:15\n",
	  1, 1, verb_time_epoch },
	{ "key create", "FILE", "make a device key",
	  "A random one, in a file that only its owner can read, for key_file in the service's "
	  "configuration.\n\n"
	  "Example:\n  muninnctl key create /var/lib/muninn/device.key\n",
	  0, 0, verb_key_create },
	{ "key init", "URL DEVICE_KEY --key KEYRING", "make a keyring for a unit",
	  "With the unit's initial master key, which follows from the device key in the file "
	  "DEVICE_KEY.\n\n"
	  "Example:\n  muninnctl key init $URL device.key --key unit.keys\n",
	  1, 1, verb_key_init },
	{ "key set", "URL master|root|PID --key KEYRING [--key-version N] [--name NAME]",
	  "give the unit a new key",
	  "A random one, of the master, the root or a partition, or with --key-version 0..15 a "
	  "working key of the partition.\n"
	  "The keys below become invalid. The keyring takes the new key up; if the answer is lost, "
	  "KEYRING.new has it.\n"
	  "--name NAME  at most 7 bytes, which `key show` shows; without, the time\n\n"
	  "Examples:\n  muninnctl key set $URL root --key unit.keys\n"
	  "  muninnctl key set $URL 0x10000 --key unit.keys\n"
	  "  muninnctl key set $URL 0x10000 --key-version 0 --key unit.keys\n",
	  1, 1, verb_key_set },
	{ "key method", "URL 0|PID|new nosec|capkey|cmdrsp|alldata",
	  "say how commands have to be protected",
	  "At least so, on the root (0), in a partition, in partitions to come (new).\n\n"
	  "Example:\n  muninnctl key method $URL 0x10000 alldata\n",
	  2, 2, verb_key_method },
	{ "key show", "URL [PID]", "method and names of keys of the root or a partition",
	  "Never the keys.\n\nExample:\n  muninnctl key show $URL 0x10000 --key unit.keys\n", 0, 1,
	  verb_key_show },
	{ "key mint",
	  "KEYRING ADDRESS [--permissions LIST] [--expires SECONDS] [--security METHOD] "
	  "[--collection]",
	  "make a credential for one object, partition or the root",
	  "Prints it; whoever has it can do with ADDRESS what LIST says, without the keyring "
	  "(--credential).\n"
	  "--permissions LIST  with commas, of: read, write, get, set (attributes), create, "
	  "remove, "
	  "append, manage, query,\n"
	  "                    members, contents, global, policy, device, all; without, read,get\n"
	  "--expires SECONDS   from now on (3600)\n"
	  "--collection        ADDRESS is a collection, not a user object\n\n"
	  "Example:\n  (umask 077; muninnctl key mint unit.keys 0x10000/0x10004 --permissions "
	  "read,write,get > photo.cred)\n",
	  1, 1, verb_key_mint },
	{ "nand create", "IMAGE SIZE [NVRAM]", "create a NAND image on this host",
	  "IMAGE and IMAGE.nvram, of the default geometry, with SIZE bytes of page data and NVRAM "
	  "bytes of NVRAM (K, M, G, T\n"
	  "allowed). For experiments; the service makes its own.\n\n"
	  "Example:\n  muninnctl nand create /tmp/flash.img 64M 1M\n",
	  1, 2, verb_nand_create },
	{ "nand info", "IMAGE", "what a NAND image is and what is on it",
	  "Reads only, also while the service has the image open; it says so then.\n\n"
	  "Example:\n  muninnctl nand info /var/lib/muninn/lun1.img\n",
	  0, 0, verb_nand_info },
	{ "nand map", "IMAGE [--svg FILE]", "the blocks of a NAND image as a picture",
	  "A cell for each block, or for some neighbouring ones. In colours on a terminal, unless "
	  "NO_COLOR is set.\n"
	  "--svg FILE  as an SVG picture\n\n"
	  "Example:\n  muninnctl nand map /var/lib/muninn/lun1.img --svg map.svg\n",
	  0, 0, verb_nand_map },
	{ "nand wear", "IMAGE [--svg FILE]", "how often the blocks of a NAND image were erased",
	  "--svg FILE  as an SVG picture\n\n"
	  "Example:\n  muninnctl nand wear /var/lib/muninn/lun1.img\n",
	  0, 0, verb_nand_wear },
	{ "nand dump", "PAGE IMAGE", "a page of a NAND image as it is stored",
	  "Also of pages that are damaged, or not programmed.\n\n"
	  "Example:\n  muninnctl nand dump 0x1234 /var/lib/muninn/lun1.img\n",
	  1, 1, verb_nand_dump },
	{ "nand timing", "IMAGE TIMING|off", "let the emulated flash take its time",
	  "From now on, also while a daemon has IMAGE open (it looks twice a second), until "
	  "`off`.\n"
	  "TIMING: none, muninn, slc, mlc or tlc, and as wanted, with commas: "
	  "mode=real|measured|virtual, "
	  "read=, program=, erase=TIME,\n"
	  "transfer=PICOSECONDS_A_BYTE, channels=N, dies=N\n\n"
	  "Example:\n  muninnctl nand timing /var/lib/muninn/lun1.img tlc,read=60us\n",
	  1, 1, verb_nand_timing },
	{ "nand faults", "IMAGE FAULTS|off", "let the emulated flash fail now and then",
	  "From now on, also while a daemon has IMAGE open (it looks twice a second), until "
	  "`off`.\n"
	  "FAULTS, with commas: seed=N, ecc=BITS/BYTES, factory-bad=SHARE, program=P, "
	  "program-at=N, "
	  "erase=P, erase-at=N,\n"
	  "endurance=ERASES, spread=SHARE, rber=BASE, wear=PER_KILOCYCLE, exponent=E, "
	  "retention=PER_KILOHOUR, unreadable=SHARE\n\n"
	  "Example:\n  muninnctl nand faults /var/lib/muninn/lun1.img "
	  "seed=7,rber=1e-5,program=0.0001\n",
	  1, 1, verb_nand_faults },
	{ "nand cut", "IMAGE CUT|off", "let the emulated flash lose its power at its next use",
	  "The process that opens IMAGE next for writing loses the power of its flash after some "
	  "operations; everything\n"
	  "fails then until the image is opened again. `off` takes it back.\n"
	  "CUT: after=N (programs, erases and syncs that still succeed), and as wanted, with "
	  "commas: reads (count them, too),\n"
	  "page=absent|torn|garbage, torn=BYTES, erase=absent|half|done, "
	  "nvram=kept|lost|flushed|mixed, seed=N\n\n"
	  "Example:\n  muninnctl nand cut /tmp/flash.img after=1000,page=torn,torn=100\n",
	  1, 1, verb_nand_cut },
};

static const char general_help[] =
	"Options of all verbs\n"
	"  --json             results, and errors on standard error, as JSON\n"
	"  -q, --quiet        no progress bar\n"
	"  --at MOMENT        reads the ADDRESS as of that moment, as if @MOMENT stood behind it\n"
	"  --progress         how far diff, search, checksum, versions, log and merge are, also "
	"when "
	"standard error is\n"
	"                     no terminal\n"
	"  --timeout SECONDS  for the login, and for a target that does nothing (30)\n"
	"  --queue-depth N    commands in flight (32)\n"
	"  --chunk SIZE       bytes of each command of a long transfer (1M)\n"
	"  --initiator NAME   iSCSI initiator name, where the target's access list asks for one\n"
	"  --no-immediate-data, --no-initial-r2t, --osd1\n"
	"                     how the protocol is spoken; for tests\n"
	"  --key KEYRING      sign each command with a credential made from this keyring (`key "
	"init`), if it has the key\n"
	"  --credential FILE  sign commands on the credential's object (`key mint`)\n"
	"  --security METHOD  how: capkey, cmdrsp or alldata (the default); --key-version N: which "
	"working key\n"
	"  --key-of PID       take the keys of this partition for those that the keyring has none "
	"of: its snapshots\n"
	"  -h, --help         this; with a verb, its help\n"
	"  --version          which muninnctl this is\n"
	"\n"
	"URL      iscsi://[USER%SECRET@]HOST[:PORT]/TARGET/LUN. A secret is better given in the "
	"environment:\n"
	"         LIBISCSI_CHAP_USERNAME and LIBISCSI_CHAP_PASSWORD.\n"
	"ADDRESS  PID[/OID][@MOMENT], numbers decimal or 0x. PID alone is the partition, 0 the "
	"device. At a moment of the past\n"
	"         it can only be read.\n"
	"MOMENT   3 or daily (a version, its name), 2026-11-21T14:32:05 (Z or +hh:mm behind it, "
	"else local time), "
	"2026-11-21,\n"
	"         -10min (ms, s, min, h, d, w; by this host's clock),\n"
	"         ~2 (before the object's last two modifications), "
	"#4711 (sequence "
	"number), now\n"
	"\n"
	"Exit codes\n"
	"  0 done   1 other failure   2 wrong usage   3 not found   4 exists already   5 no space  "
	" 6 no connection, or lost\n"
	"  7 access denied   8 target failed or refused   9 local files or memory   10 not empty   "
	"11 data is not as stored\n"
	"\n"
	"Example\n"
	"  URL=" URL_EXAMPLE "\n"
	"  muninnctl import $URL 0x10000 /usr/share/doc && muninnctl export $URL 0x10000 "
	"/tmp/doc\n";

const struct ctl_verb *ctl_find_verb(int count, char **words, int *used)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		const char *blank = strchr(verbs[i].name, ' ');
		size_t first = blank ? (size_t)(blank - verbs[i].name) : strlen(verbs[i].name);

		if (strlen(words[0]) != first || memcmp(words[0], verbs[i].name, first) != 0)
			continue;
		*used = blank ? 2 : 1;
		if (!blank || (count >= 2 && strcmp(words[1], blank + 1) == 0))
			return &verbs[i];
	}
	return NULL;
}

bool ctl_second_words(const char *first, char *text, size_t capacity)
{
	size_t used = 0;

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]) && used < capacity; i++) {
		const char *blank = strchr(verbs[i].name, ' ');
		size_t length = blank ? (size_t)(blank - verbs[i].name) : 0;

		if (length > 0 && strlen(first) == length &&
		    memcmp(first, verbs[i].name, length) == 0)
			used += (size_t)snprintf(text + used, capacity - used, "%s%s",
						 used ? ", " : "", blank + 1);
	}
	return used > 0;
}

void ctl_print_help(void)
{
	printf("muninnctl VERB URL [ADDRESS] [ARGUMENTS]: objects of a T10 OSD over iSCSI\n\n");
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		printf("  %-11s %s\n", verbs[i].name, verbs[i].summary);
	printf("\n`muninnctl VERB --help` tells more.\n\n%s", general_help);
}

void ctl_print_verb_help(const struct ctl_verb *verb)
{
	printf("muninnctl %s %s\n\n%s: %s.\n%s\n%s", verb->name, verb->synopsis, verb->name,
	       verb->summary, verb->help,
	       "Options of all verbs, forms of URL and ADDRESS, and exit codes: muninnctl "
	       "--help\n");
}
