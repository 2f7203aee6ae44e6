/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The table of verbs, and their help. */
#include "client/ctl/verbs.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define URL_EXAMPLE "iscsi://127.0.0.1:3260/iqn.2026-01.example:store/1"

static const struct ctl_verb verbs[] = {
	{ "info", "URL", "what the device is and how full",
	  "Shows identity, capacity and number of partitions.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl info $URL\n",
	  0, 0, verb_info },
	{ "discover", "URL", "targets of a portal",
	  "Lists the targets that the portal announces, one a line: NAME PORTAL.\n"
	  "You may leave target and LUN out of the URL.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl discover iscsi://127.0.0.1:3260\n",
	  0, 0, verb_discover },
	{ "format", "URL [CAPACITY]", "remove all partitions and objects",
	  "FORMAT OSD: removes everything on the unit, its history too. CAPACITY is in\n"
	  "bytes (K, M, G, T allowed); without it, all that the device has.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl format $URL\n",
	  0, 1, verb_format },
	{ "mkpart", "URL [PID] [--layout flat|packed]", "create a partition",
	  "Prints the ID. Without PID the target chooses it. IDs begin at 0x10000.\n"
	  "--layout flat    object IDs are numbers, as every initiator uses them\n"
	  "--layout packed  an object ID holds identifier, version and first page\n"
	  "Without --layout the unit's configuration decides.\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl mkpart $URL\n"
	  "  muninnctl mkpart $URL 0x10000\n",
	  0, 1, verb_mkpart },
	{ "rmpart", "URL PID [--contents]", "remove a partition",
	  "--contents  also removes a partition that has objects, with the objects\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl rmpart $URL 0x10000 --contents\n",
	  1, 1, verb_rmpart },
	{ "ls", "URL [PID|0[@MOMENT]] [-l]", "list partitions, or the objects of one",
	  "Prints one ADDRESS a line, in ascending order. 0 is the device: ls lists its\n"
	  "partitions. With a moment it lists those of that time; you can read them at\n"
	  "that moment even if somebody has removed them.\n"
	  "-l, --long  adds length, time of the last change and user name; of files that\n"
	  "            import has stored, their own time\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl ls $URL\n"
	  "  muninnctl ls -l $URL 0x10000\n"
	  "  muninnctl ls $URL 0@-1d\n",
	  0, 1, verb_ls },
	{ "stat", "URL [ADDRESS]", "facts about the device, a partition, an object or a collection",
	  "Prints a name and a value a line.\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl stat $URL 0x10000/0x10004\n"
	  "  muninnctl stat $URL 0x10000@-1d\n",
	  0, 1, verb_stat },
	{ "create", "URL PID[/OID] [--count N]", "create empty objects",
	  "Prints their ADDRESSes. Without OID the target chooses the IDs.\n"
	  "--count N  so many objects with consecutive IDs; without OID only\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl create $URL 0x10000\n"
	  "  muninnctl create $URL 0x10000/0x10004\n",
	  1, 1, verb_create },
	{ "put", "URL PID[/OID] [FILE] [--replace | --offset N]", "store a file or standard input",
	  "Prints the object's ADDRESS. Without OID it makes a new object, and the target\n"
	  "chooses the ID. With OID the object must not exist, unless:\n"
	  "--replace   replaces the content of an object: up to one chunk in one step;\n"
	  "            of longer content a version keeps the old one until all is there\n"
	  "--offset N  writes the data into the object from byte N on, and leaves the\n"
	  "            rest; makes the object if it is missing\n"
	  "FILE '-', or none, is standard input. Longer data goes in chunks, several at\n"
	  "once (--chunk SIZE).\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl put $URL 0x10000 photo.jpg\n"
	  "  tar c . | muninnctl put $URL 0x10000/0x10004\n",
	  1, 2, verb_put },
	{ "append", "URL ADDRESS [FILE]", "add a file or standard input at an object's end",
	  "Each chunk is one APPEND and lands as a whole, also beside other writers.\n"
	  "\n"
	  "Example:\n"
	  "  date | muninnctl append $URL 0x10000/0x10004\n",
	  1, 2, verb_append },
	{ "get", "URL ADDRESS [FILE] [--offset N] [--length N]",
	  "read an object into a file or to standard output",
	  "Writes beside FILE and renames when complete. To read the past, add @MOMENT\n"
	  "to the ADDRESS.\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl get $URL 0x10000/0x10004 copy.jpg\n"
	  "  muninnctl get $URL 0x10000/0x10004 > copy.jpg\n"
	  "  muninnctl get $URL 0x10000/0x10004@3 --offset 1M --length 64K | xxd\n",
	  1, 2, verb_get },
	{ "cat", "URL ADDRESS...", "read objects to standard output, one behind the other",
	  "Example:\n"
	  "  muninnctl cat $URL 0x10000/0x10004 0x10000/0x10005\n",
	  1, INT_MAX, verb_cat },
	{ "rm", "URL ADDRESS...", "remove objects",
	  "Stops at the first object that can't be removed.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl rm $URL 0x10000/0x10004 0x10000/0x10005\n",
	  1, INT_MAX, verb_rm },
	{ "truncate", "URL ADDRESS LENGTH", "cut or extend an object",
	  "What is added reads as zeros.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl truncate $URL 0x10000/0x10004 10M\n",
	  2, 2, verb_truncate },
	{ "clear", "URL ADDRESS OFFSET LENGTH", "make a range of an object zeros",
	  "Example:\n"
	  "  muninnctl clear $URL 0x10000/0x10004 4K 64K\n",
	  3, 3, verb_clear },
	{ "punch", "URL ADDRESS OFFSET LENGTH", "take a range out of an object",
	  "What is behind the range moves down.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl punch $URL 0x10000/0x10004 4K 64K\n",
	  3, 3, verb_punch },
	{ "cp", "URL ADDRESS[@MOMENT] PID[/OID]", "copy an object inside the target",
	  "Copies data, user name, quotas and application attributes. Nothing crosses the\n"
	  "network. Prints the copy's ADDRESS.\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl cp $URL 0x10000/0x10004 0x10000\n"
	  "  muninnctl cp $URL 0x10000/0x10004@-10min 0x10000/0x10900\n",
	  2, 2, verb_cp },
	{ "attr get", "URL ADDRESS PAGE NUMBER [--raw]", "print an attribute",
	  "Text as text, other values in hexadecimal.\n"
	  "--raw  the bytes as they are\n"
	  "\n"
	  "Example, an object's logical length:\n"
	  "  muninnctl attr get $URL 0x10000/0x10004 0x1 0x82\n",
	  3, 3, verb_attr_get },
	{ "attr set",
	  "URL ADDRESS PAGE NUMBER [VALUE] [--text | --hex | --number | --file FILE | --remove]",
	  "set an attribute",
	  "VALUE is text (--text says so), unless:\n"
	  "--hex        it is bytes in hexadecimal\n"
	  "--number     it is a number, stored as 8 bytes, big-endian\n"
	  "--file FILE  the file's content is the value\n"
	  "--remove     the attribute becomes undefined\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl attr set $URL 0x10000/0x10004 0x1 0x9 'holiday photo'\n"
	  "  muninnctl attr set $URL 0x10000/0x10004 0x1 0x82 --number 4096\n",
	  3, 4, verb_attr_set },
	{ "attr ls", "URL ADDRESS [PAGE]", "list attributes",
	  "One a line: PAGE NUMBER LENGTH VALUE. Without PAGE, of all pages.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl attr ls $URL 0x10000/0x10004\n",
	  1, 2, verb_attr_ls },
	{ "coll create", "URL PID[/OID]", "create a collection of objects",
	  "Prints its ADDRESS. Without OID the target chooses.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl coll create $URL 0x10000\n",
	  1, 1, verb_coll_create },
	{ "coll track", "URL PID[/OID] [COLLECTION]", "create a tracking collection",
	  "The members are those of COLLECTION, the ADDRESS of one in the same partition.\n"
	  "The objects do not show that they are members. `coll purge` on it works in\n"
	  "steps, and goes on where it was interrupted.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl coll track $URL 0x10000 0x10000/0x10004\n",
	  1, 2, verb_coll_track },
	{ "coll rm", "URL COLLECTION [--force]", "remove a collection",
	  "--force  also removes a collection that has members; the objects stay\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl coll rm $URL 0x10000/0x10004\n",
	  1, 1, verb_coll_rm },
	{ "coll ls", "URL PID[/OID][@MOMENT]",
	  "list the collections of a partition, or the members of one",
	  "One ADDRESS a line, in ascending order.\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl coll ls $URL 0x10000\n"
	  "  muninnctl coll ls $URL 0x10000/0x10004\n",
	  1, 1, verb_coll_ls },
	{ "coll add", "URL COLLECTION ADDRESS...", "make objects members of a collection",
	  "An object can be in many collections. Stops at the first that can't be added.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl coll add $URL 0x10000/0x10004 0x10000/0x10005\n",
	  2, INT_MAX, verb_coll_add },
	{ "coll drop", "URL COLLECTION ADDRESS...", "take objects out of a collection",
	  "The objects stay.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl coll drop $URL 0x10000/0x10004 0x10000/0x10005\n",
	  2, INT_MAX, verb_coll_drop },
	{ "coll query", "URL COLLECTION CRITERION... [--any] [--hex | --number]",
	  "search members by their attributes",
	  "Prints the ADDRESSes of the members that match all criteria, one a line. A\n"
	  "CRITERION is PAGE:NUMBER (the member has the attribute), PAGE:NUMBER=VALUE or\n"
	  "PAGE:NUMBER=MIN..MAX. Bounds are inclusive and compared as bytes; MIN or MAX\n"
	  "may be missing.\n"
	  "--any     members that match any of them\n"
	  "--hex     values are bytes in hexadecimal\n"
	  "--number  values are numbers, stored as 8 bytes, big-endian\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl coll query $URL 0x10000/0x10004 0x1:0x9=a..c\n"
	  "  muninnctl coll query $URL 0x10000/0x10004 0x1:0x82=1M.. --number\n",
	  2, INT_MAX, verb_coll_query },
	{ "coll purge", "URL COLLECTION", "remove all objects that are members of a collection",
	  "Takes one step for a collection, many for a tracking collection.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl coll purge $URL 0x10000/0x10004\n",
	  1, 1, verb_coll_purge },
	{ "import", "URL PID DIR [--update [--checksum] | --replace] [--clean] [--log FILE]",
	  "store a directory tree in a partition",
	  "Stores files, directories, symbolic and hard links with names, modes and\n"
	  "times. When the command ends, the whole tree is there, or nothing of it: what\n"
	  "fails or is interrupted removes its objects again.\n"
	  "Makes the partition if it does not exist.\n"
	  "--update    makes the stored tree equal to DIR: leaves files with the same\n"
	  "            length and time alone, and writes the ranges of others that\n"
	  "            differ; also completes an interrupted update\n"
	  "--checksum  with --update: compares the content of all files\n"
	  "--replace   replaces the stored tree, and removes its objects afterwards\n"
	  "--clean     first removes objects that interrupted imports have left\n"
	  "--log FILE  appends a line 'OID LENGTH SHA256 PATH' for each acknowledged\n"
	  "            object\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl import $URL 0x10000 /usr/share/doc\n"
	  "  muninnctl import $URL 0x10000 /usr/share/doc --update\n",
	  2, 2, verb_import },
	{ "export", "URL PID[@MOMENT] DIR [--at MOMENT]", "bring a directory tree back",
	  "Makes DIR, or fills an empty one. Checks length and SHA-256 of every file, which\n"
	  "is FILE.partial until it is whole.\n"
	  "Owners are not kept, so files lose their set-user-ID and set-group-ID bits.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl export $URL 0x10000 /tmp/doc\n",
	  2, 2, verb_export },
	{ "flush", "URL [ADDRESS]", "make everything at or below the address stable",
	  "Ends when the data would survive a power loss of the target's host.\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl flush $URL\n"
	  "  muninnctl flush $URL 0x10000/0x10004\n",
	  0, 1, verb_flush },
	{ "check", "URL [ADDRESS] [--repair]", "look for damage in what is stored",
	  "Reads an object, a partition with everything in it, or the whole device.\n"
	  "Prints what is damaged, one a line: an ADDRESS, then `attributes`, `directory`,\n"
	  "or `data` with the damaged bytes: OFFSET+LENGTH. The exit code is 11 if\n"
	  "anything is damaged.\n"
	  "--repair  before that the target reads all that it stores, the past too; it makes\n"
	  "          lost pages of flash again from parity, and moves what is beside them\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl check $URL\n"
	  "  muninnctl check $URL --repair\n"
	  "  muninnctl check $URL 0x10000/0x10004\n",
	  0, 1, verb_check },
	{ "snapshot", "URL PID|0 [--name NAME]", "keep this moment as a version",
	  "Takes the same short time, whatever the partition holds. Prints the version's\n"
	  "number. 0 is the whole device.\n"
	  "--name NAME  another way to name the version; no other version may have it\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl snapshot $URL 0x10000 --name before-upgrade\n"
	  "  muninnctl snapshot $URL 0\n",
	  1, 1, verb_snapshot },
	{ "versions", "URL PID|0", "list versions with time, size and name",
	  "`written` is what was written since the version before that is still there. A\n"
	  "version holds alone at most the smaller of `written` and `used`.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl versions $URL 0x10000\n",
	  1, 1, verb_versions },
	{ "drop", "URL PID|0 VERSION|NAME|TIME", "end a version",
	  "From then on `merge` can reclaim what only this version needs. TIME is when it\n"
	  "was made, as `versions` shows it. Versions of the device, 32768 and up, are\n"
	  "dropped at 0, for all partitions.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl drop $URL 0x10000 before-upgrade\n",
	  2, 2, verb_drop },
	{ "rollback", "URL PID|0|PID/OID MOMENT [--force]",
	  "go back to a version or a point in time",
	  "Takes the same short time, whatever the size. It hides what came after MOMENT\n"
	  "and deletes nothing: to see it, roll back again, to a later moment.\n"
	  "A partition or the device goes back only while no other session uses it: unmount\n"
	  "and log out there first.\n"
	  "--force  goes back all the same; a host that has it mounted then mixes old and\n"
	  "         new state\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl rollback $URL 0x10000 -10min\n"
	  "  muninnctl rollback $URL 0x10000 3\n"
	  "  muninnctl rollback $URL 0x10000/0x10004 2026-11-21T14:32:05\n",
	  2, 2, verb_rollback },
	{ "undo", "URL PID/OID [N]", "take the last N modifications of an object back",
	  "Without N: the last one. An undo is a modification too, and can be undone.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl undo $URL 0x10000/0x10004 2\n",
	  1, 2, verb_undo },
	{ "log", "URL PID/OID[@MOMENT]", "all modifications of an object, newest first",
	  "One modification a line: #SEQUENCE, time, change, length after it. With\n"
	  "MOMENT, the modifications up to then.\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl log $URL 0x10000/0x10004\n"
	  "  muninnctl log $URL 0x10000/0x10004@-1d\n",
	  1, 1, verb_log },
	{ "diff", "URL PID MOMENT [MOMENT] [--raw]",
	  "what differs between two moments of a partition",
	  "One difference a line: the object, then added, removed, data OFFSET+LENGTH,\n"
	  "length N or attributes. Without the second MOMENT it compares with the\n"
	  "present. If the partition holds a directory tree at both moments, the file's\n"
	  "path ends the line, and further lines show: renamed OLD, mode OLD NEW, time\n"
	  "OLD NEW, linked, unlinked; of directories and links, which are no objects (-):\n"
	  "added, removed, mode, time, target. Paths are escaped as in manifests.\n"
	  "--raw  objects only\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl diff $URL 0x10000 3 -1h\n",
	  2, 3, verb_diff },
	{ "clone", "URL PID[@MOMENT] [PID] [--read-only]",
	  "make a partition with the contents of another one",
	  "Copies nothing, and takes no time. From then on the two change independently.\n"
	  "Prints the new ID. Without the second PID the target chooses it.\n"
	  "--read-only  the clone can only be read, as the standard's snapshots\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl clone $URL 0x10000@-1d 0x20000\n",
	  1, 2, verb_clone },
	{ "refresh", "URL PID [--force]", "bring a clone up to its source",
	  "The clone loses its own changes.\n"
	  "--force  although other sessions use the clone, as in rollback\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl refresh $URL 0x20000\n",
	  1, 1, verb_refresh },
	{ "detach", "URL PID", "make a clone a partition of its own",
	  "Example:\n"
	  "  muninnctl detach $URL 0x20000\n",
	  1, 1, verb_detach },
	{ "retention", "URL PID|0 [POLICY...]", "how much history a partition keeps",
	  "Without POLICY it shows the policy. 0 is the policy of partitions that have\n"
	  "none of their own. POLICY is one or more of:\n"
	  "snapshots             versions always, other history while there is space\n"
	  "                      (default)\n"
	  "all                   everything; a full device refuses writes\n"
	  "none                  versions only\n"
	  "keep-all=DURATION     every moment this far back, in any case (90min, 24h, 7d,\n"
	  "                      0)\n"
	  "interval=DURATION     before that, one moment each DURATION...\n"
	  "interval-for=DURATION ... this far back\n"
	  "lock-until=TIME       no initiator can shorten any of it until then\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl retention $URL 0x10000 keep-all=24h interval=1h interval-for=1w\n",
	  1, 8, verb_retention },
	{ "merge", "URL [start|progress|cancel] [--progress]", "reclaim space that nothing needs",
	  "The target does the work. --progress waits for the end and shows how far the\n"
	  "merge is; ^C then cancels it.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl merge $URL --progress\n",
	  0, 1, verb_merge },
	{ "watch", "URL PID|0", "space by version, as a picture",
	  "Of a partition: its versions and the present; = used, + written since the\n"
	  "version before. Of 0: the partitions and the versions of the device. On a\n"
	  "terminal it shows the largest and the newest that fit, every two seconds until\n"
	  "you press ^C.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl watch $URL 0x10000\n",
	  1, 1, verb_watch },
	{ "search", "URL PID[/OID][@MOMENT] PATTERN [--regex]",
	  "find bytes in objects, on the target",
	  "Prints ADDRESS OFFSET+LENGTH of each match. Nothing else crosses the network.\n"
	  "The exit code is 3 if nothing matches.\n"
	  "--regex  PATTERN is a POSIX extended regular expression; ^ and $ match at lines\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl search $URL 0x10000 'error [0-9]+' --regex\n",
	  2, 2, verb_search },
	{ "checksum", "URL PID/OID[@MOMENT] [--offset N] [--length N]",
	  "SHA-256 of an object, on the target",
	  "Printed as sha256sum prints it.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl checksum $URL 0x10000/0x10004@-1d\n",
	  1, 1, verb_checksum },
	{ "statistics", "URL", "the engine's counters",
	  "Example:\n"
	  "  muninnctl statistics $URL\n",
	  0, 0, verb_statistics },
	{ "status", "[--socket FILE]", "the service on this host: units, space, troubles",
	  "Asks the service over its administration socket, without iSCSI and its secrets;\n"
	  "root may, the service's own user, and members of admin_group.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl status\n",
	  0, 0, verb_status },
	{ "top", "[--socket FILE]", "what the service on this host does just now",
	  "Commands of each unit, and pages of each device, a second, on 80 columns: every\n"
	  "two seconds until you press ^C; where the output is no terminal, once. What\n"
	  "sessions did that have ended is not counted.\n"
	  "PROG/WRITE  pages programmed for each command that writes, history and merging\n"
	  "            included\n"
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
	{ "unlock", "IMAGE PID|0", "end the lock of a partition's history",
	  "Works on the target's host only; initiators can't do it. Waits until the daemon\n"
	  "that has IMAGE open has done it. If none has, the lock ends when one opens it.\n"
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
	{ "nand dump", "PAGE IMAGE", "a page of a NAND image as it is stored",
	  "Also shows pages that are damaged, or not programmed.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl nand dump 0x1234 /var/lib/muninn/lun1.img\n",
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

static const char general_help[] =
	"Options of all verbs\n"
	"  --json             results, and errors on standard error, as JSON\n"
	"  -q, --quiet        no progress bar\n"
	"  --at MOMENT        reads the ADDRESS as of then, as if @MOMENT stood behind it\n"
	"  --progress         shows how far diff, search, checksum, versions, log and\n"
	"                     merge are, also when standard error is no terminal\n"
	"  --timeout SECONDS  for the login, and for a target that does nothing (30)\n"
	"  --queue-depth N    commands in flight (32)\n"
	"  --chunk SIZE       bytes of each command of a long transfer (1M)\n"
	"  --initiator NAME   iSCSI initiator name, if the target's access list needs it\n"
	"  --no-immediate-data, --no-initial-r2t, --osd1\n"
	"                     how to speak the protocol; for tests\n"
	"  --key KEYRING      sign each command with a credential made from this keyring\n"
	"                     (`key init`), if it has the key\n"
	"  --socket FILE      the administration socket of the service, of verbs that ask it\n"
	"                     (the environment's MUNINN_SOCKET, or /run/muninn/admin)\n"
	"  --credential FILE  sign commands on the credential's object (`key mint`)\n"
	"  --security METHOD  how to sign: capkey, cmdrsp or alldata (the default)\n"
	"  --key-version N    which working key signs\n"
	"  --key-of PID       for partitions that the keyring has no keys of, snapshots\n"
	"                     of PID: sign with the keys of PID\n"
	"  -h, --help         this text; behind a verb, its help\n"
	"  --version          which muninnctl this is\n"
	"\n"
	"URL      iscsi://[USER%SECRET@]HOST[:PORT]/TARGET/LUN. A secret is safer in the\n"
	"         environment: LIBISCSI_CHAP_USERNAME and LIBISCSI_CHAP_PASSWORD.\n"
	"         Where it is left out: the environment's MUNINN_URL.\n"
	"ADDRESS  PID[/OID][@MOMENT], numbers decimal or 0x. PID alone is the partition,\n"
	"         0 the device. With a MOMENT, only verbs that read take it.\n"
	"MOMENT   3 or daily: a version by number or name\n"
	"         2026-11-21T14:32:05, 2026-11-21: a time, local, or with Z or +hh:mm\n"
	"         yesterday 14:32, today, 14:32 (the last one): local times\n"
	"         -10min, -2days: so long ago (ms, s, min, h, d, w), by this host's clock\n"
	"         ~2: before the object's last two modifications\n"
	"         #4711: after the command with this sequence number\n"
	"         now: the present\n"
	"\n"
	"Exit codes\n"
	"  0 done          1 other failure   2 wrong usage       3 not found\n"
	"  4 exists        5 no space        6 no connection     7 access denied\n"
	"  8 target failed or refused        9 local files or memory\n"
	"  10 not empty    11 data is not as stored\n"
	"\n"
	"Example\n"
	"  URL=" URL_EXAMPLE "\n"
	"  muninnctl import $URL 0x10000 /usr/share/doc\n"
	"  muninnctl export $URL 0x10000 /tmp/doc\n";

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
		printf("  %-14s %s\n", verbs[i].name, verbs[i].summary);
	printf("\n`muninnctl help VERB` tells more.\n\n%s", general_help);
}

void ctl_print_verb_help(const struct ctl_verb *verb)
{
	printf("muninnctl %s %s\n\n%s: %s.\n%s\n%s", verb->name, verb->synopsis, verb->name,
	       verb->summary, verb->help,
	       "Options of all verbs, forms of URL and ADDRESS, and exit codes: muninnctl "
	       "--help\n");
}
