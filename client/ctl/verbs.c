/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The verbs that go to a unit, and their help; finding a verb. verbs_of_host.c has the others. */
#include "client/ctl/verbs.h"

#include <ctype.h>
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
	{ "format", "URL [CAPACITY] [--yes]", "remove all partitions and objects",
	  "FORMAT OSD: removes everything on the unit, its history too. CAPACITY is in\n"
	  "bytes (K, M, G, T allowed); without it, all that the device has.\n"
	  "--yes  does not ask; it only asks on a terminal\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl format $URL\n",
	  0, 1, verb_format },
	{ "mkpart", "URL [PID|NAME] [--name NAME] [--layout flat|packed]", "create a partition",
	  "Prints the ID. Without PID the target chooses it. IDs begin at 0x10000.\n"
	  "--name NAME      a name, which may stand for the ID in every ADDRESS; no other\n"
	  "                 partition may have it\n"
	  "--layout flat    object IDs are numbers, as every initiator uses them\n"
	  "--layout packed  an object ID holds identifier, version and first page\n"
	  "Without --layout the unit's configuration decides.\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl mkpart $URL docs\n"
	  "  muninnctl mkpart $URL 0x10000 --name mail\n",
	  0, 1, verb_mkpart },
	{ "name", "URL PID NAME | URL PID --remove", "give a partition a name",
	  "NAME may then stand for the ID in every ADDRESS. `ls -l` shows names. NAME is up\n"
	  "to 63 bytes of UTF-8, begins with a letter, and has none of / : @ in it. It is\n"
	  "the partition's attribute USERNAME, so `rollback` brings an older name back.\n"
	  "--remove  the partition has a name no more\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl name $URL 0x10000 docs\n"
	  "  muninnctl name $URL docs papers\n",
	  1, 2, verb_name },
	{ "rmpart", "URL PID [--contents] [--yes]", "remove a partition",
	  "--contents  also removes a partition that has objects, with the objects\n"
	  "--yes       does not ask; it only asks on a terminal, and with --contents\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl rmpart $URL 0x10000 --contents\n",
	  1, 1, verb_rmpart },
	{ "ls", "URL [PID|0|PID:PATH[@MOMENT]] [-l] [-R]",
	  "list partitions, the objects of one, or names of a tree",
	  "Prints one ADDRESS a line, in ascending order. 0 is the device: ls lists its\n"
	  "partitions. With a moment it lists those of that time; you can read them at\n"
	  "that moment even if somebody has removed them. With a path it lists a directory\n"
	  "of the tree that `import` has stored; PID: is its top. The ADDRESSes are paths\n"
	  "then.\n"
	  "-l, --long  adds length, time of the last change and user name; of files that\n"
	  "            import has stored, their own time; of paths the mode, too\n"
	  "-R, --recursive  of a path: everything below it\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl ls $URL\n"
	  "  muninnctl ls -l $URL 0x10000\n"
	  "  muninnctl ls $URL docs:mail@yesterday\n"
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
	  "Writes beside FILE and renames when complete. A FILE that is a device, a pipe or\n"
	  "a symbolic link stays, and gets the bytes. To read the past, add @MOMENT to the\n"
	  "ADDRESS. PID:PATH is a file of a tree that `import` has stored.\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl get $URL 0x10000/0x10004 copy.jpg\n"
	  "  muninnctl get $URL docs:mail/letter.txt@yesterday letter.txt\n"
	  "  muninnctl get $URL 0x10000/0x10004 > copy.jpg\n"
	  "  muninnctl get $URL 0x10000/0x10004@3 --offset 1M --length 64K | xxd\n",
	  1, 2, verb_get },
	{ "cat", "URL ADDRESS...", "read objects to standard output, one behind the other",
	  "An object that can't be read holds up none of the others; the exit code is 1\n"
	  "then, or with one ADDRESS that of the failure.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl cat $URL 0x10000/0x10004 0x10000/0x10005\n",
	  1, INT_MAX, verb_cat },
	{ "rm", "URL ADDRESS...", "remove objects",
	  "An object that can't be removed holds up none of the others; the exit code is 1\n"
	  "then, or with one ADDRESS that of the failure.\n"
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
	  "An empty value is refused.\n"
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
	  "An object can be in many collections. One that can't be added holds up none of the\n"
	  "others; the exit code is 1 then, or with one ADDRESS that of the failure.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl coll add $URL 0x10000/0x10004 0x10000/0x10005\n",
	  2, INT_MAX, verb_coll_add },
	{ "coll drop", "URL COLLECTION ADDRESS...", "take objects out of a collection",
	  "The objects stay. One that is no member holds up none of the others, as above.\n"
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
	{ "import",
	  "URL PID|NAME [DIR] [--update [--checksum] | --replace] [--clean] [--log FILE] "
	  "[--exclude PATTERN]... [--one-file-system] [--dry-run]",
	  "store a directory tree in a partition",
	  "Stores files, directories, symbolic and hard links with names, modes, times,\n"
	  "owners, ACLs, capabilities and other extended attributes.\n"
	  "The tree is there as a whole, or not at all. An import that fails or is interrupted\n"
	  "leaves the files that it has stored: the same command again goes on with them.\n"
	  "Makes the partition if it does not exist; with NAME, it gets that name.\n"
	  "--update    makes the stored tree equal to DIR: leaves files with the same\n"
	  "            length and time alone, and writes the ranges of others that\n"
	  "            differ; also completes an interrupted update\n"
	  "--checksum  with --update: compares the content of all files\n"
	  "--replace   replaces the stored tree, and removes its objects afterwards\n"
	  "--clean     first removes what interrupted imports have left; without DIR, that only\n"
	  "--exclude PATTERN  leaves out what PATTERN (* ? [a-z]) matches, and all below:\n"
	  "            the path from DIR on if PATTERN has a /, otherwise the name\n"
	  "--one-file-system  does not go into what is mounted below DIR\n"
	  "--dry-run   stores nothing; with --update, prints which files are new, changed\n"
	  "            (length or time), touched (mode, owner, path) or removed\n"
	  "--log FILE  appends a line 'OID LENGTH SHA256 PATH' for each acknowledged\n"
	  "            object\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl import $URL docs /usr/share/doc\n"
	  "  muninnctl import $URL docs /usr/share/doc --update\n",
	  1, 2, verb_import },
	{ "export", "URL PID[:PATH][@MOMENT] DIR [--at MOMENT]", "bring a directory tree back",
	  "Makes DIR, or fills an empty one. Checks length and SHA-256 of every file, which\n"
	  "is FILE.partial until it is whole. With a PATH it brings that directory alone;\n"
	  "`get` brings files. After an interruption the same command again goes on.\n"
	  "Root gives everything its owner; others keep what they bring back, and then files\n"
	  "lose their set-user-ID and set-group-ID bits.\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl export $URL docs /tmp/doc\n"
	  "  muninnctl export $URL docs:mail@yesterday /tmp/mail\n",
	  2, 2, verb_export },
	{ "quota", "URL 0|PID|PID/OID [LIMIT...]", "how much may be stored",
	  "Without LIMIT it shows the quotas and what is used of them. LIMIT is one or more\n"
	  "of these, each with a number, or `none`:\n"
	  "capacity=SIZE  bytes that the partition's data may use, in whole pages\n"
	  "objects=N      objects and collections that it may have\n"
	  "length=SIZE    of an object; of a partition (0: the device): what new objects get\n"
	  "partitions=N   of the device only\n"
	  "At 0, capacity, objects and length are what new partitions get.\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl quota $URL docs capacity=10G objects=100000\n"
	  "  muninnctl quota $URL docs\n",
	  1, 5, verb_quota },
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
	{ "snapshot", "URL PID...|0 [--name NAME]", "keep this moment as a version",
	  "Takes the same short time, whatever the partition holds. Prints the version's\n"
	  "number. Several partitions (32 at most) are kept as they are at one instant, all or\n"
	  "none of them; then it prints PID@NUMBER of each. 0 is the whole device.\n"
	  "--name NAME  another way to name the version; no other version may have it\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl snapshot $URL 0x10000 --name before-upgrade\n"
	  "  muninnctl snapshot $URL 0x10000 0x10001 --name data-and-log\n"
	  "  muninnctl snapshot $URL 0\n",
	  1, OSD_GROUP_MAX, verb_snapshot },
	{ "versions", "URL PID|0 [-l]", "list versions with time, size and name",
	  "`written` is what was written since the version before that is still there. A\n"
	  "version holds alone at most the smaller of `written` and `used`.\n"
	  "-l, --long  adds in front what each version alone holds, about, as `space` does\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl versions $URL 0x10000\n",
	  1, 1, verb_versions },
	{ "drop", "URL PID|0 VERSION|FROM..TO... | --keep-daily N... [--dry-run] [--yes]",
	  "end versions",
	  "From then on `merge` can reclaim what only these versions need. VERSION is a\n"
	  "number, a name, or the time when it was made, as `versions` shows it. FROM and TO\n"
	  "belong to the range; each may be missing, or any time. A name with two dots in it\n"
	  "is that version. Versions of the device, 32768 and up, are dropped at 0, for all\n"
	  "partitions. Of several it prints which.\n"
	  "--keep-last N      drops all but the last N...\n"
	  "--keep-minutely N, --keep-hourly N, --keep-daily N, --keep-weekly N,\n"
	  "--keep-monthly N   ... and the newest of each of the last N minutes, hours, days,\n"
	  "                   weeks or months (by UTC) that have one; versions to which\n"
	  "                   somebody has given a name stay\n"
	  "--dry-run          prints what it would drop\n"
	  "--yes              does not ask; it only asks on a terminal, and for several\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl drop $URL docs before-upgrade\n"
	  "  muninnctl drop $URL docs 3..17\n"
	  "  muninnctl drop $URL docs ..2026-10-31\n"
	  "  muninnctl drop $URL docs --keep-daily 7 --keep-weekly 4 --dry-run\n",
	  1, INT_MAX, verb_drop },
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
	{ "log", "URL PID/OID|PID:PATH[@MOMENT]", "all modifications of an object, newest first",
	  "One modification a line: #SEQUENCE, time, change, length after it. With\n"
	  "MOMENT, the modifications up to then.\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl log $URL 0x10000/0x10004\n"
	  "  muninnctl log $URL docs:mail/letter.txt@-1d\n",
	  1, 1, verb_log },
	{ "diff", "URL PID[:PATH] MOMENT [MOMENT] [--raw]",
	  "what differs between two moments of a partition",
	  "One difference a line: the object, then added, removed, data OFFSET+LENGTH,\n"
	  "length N or attributes. Without the second MOMENT it compares with the\n"
	  "present. If the partition holds a directory tree at both moments, the file's\n"
	  "path ends the line, and further lines show: renamed OLD, mode OLD NEW, time\n"
	  "OLD NEW, owner OLD NEW, xattrs, linked, unlinked; of directories and links,\n"
	  "which are no objects (-): added, removed, mode, time, owner, xattrs, target.\n"
	  "Paths are escaped as in manifests. With a PATH: only what is there or below it.\n"
	  "--raw  objects only\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl diff $URL 0x10000 3 -1h\n"
	  "  muninnctl diff $URL docs:mail yesterday\n",
	  2, 3, verb_diff },
	{ "clone", "URL PID[@MOMENT] [PID|NAME] [--name NAME] [--read-only]",
	  "make a partition with the contents of another one",
	  "Copies nothing, and takes no time. From then on the two change independently.\n"
	  "Prints the new ID. Without the second PID the target chooses it.\n"
	  "--name NAME  the clone's name; without one it has none\n"
	  "--read-only  the clone can only be read, as the standard's snapshots\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl clone $URL docs@-1d docs-yesterday\n",
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
	{ "send", "URL PID VERSION [FROM]",
	  "write a version as a stream, or what changed since FROM",
	  "To standard output, for `receive` on this or another device: objects with data\n"
	  "and attributes, and the partition's own. VERSION and FROM are kept versions, by\n"
	  "number or name. Collections and packed IDs are refused.\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl send $URL 0x10000 monday > monday.stream\n"
	  "  muninnctl send $URL 0x10000 tuesday monday | ssh there muninnctl receive $THERE\n",
	  2, 3, verb_send },
	{ "receive", "URL [PID|NAME] [--force]", "store a stream of `send`",
	  "From standard input. A whole version makes the partition PID, by default that of\n"
	  "the source, or a new one with the name NAME; what changed goes into a partition\n"
	  "that was received before. Prints the partition. In the end it keeps a version,\n"
	  "received-N, by the sequence number at the source. If the stream is torn or\n"
	  "damaged, or anything else fails, all is as it was before.\n"
	  "--force  takes the partition back to what was received, if it was changed\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl receive $URL 0x20000 < monday.stream\n"
	  "  muninnctl receive $URL docs < monday.stream\n",
	  0, 1, verb_receive },
	{ "retention", "URL PID|0 [POLICY...]", "how much history a partition keeps",
	  "Without POLICY it shows the policy. 0 is the policy of partitions that have\n"
	  "none of their own. POLICY is one or more of these; what it leaves out stays:\n"
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
	{ "space", "URL [PID|0] [without=VERSION...] [since=MOMENT] [pages=N]",
	  "what takes the space, and what would free some",
	  "The target judges the records of 4096 pages that are spread over the device: so\n"
	  "sizes are about right, within some hundredths of the whole. pages=N looks at\n"
	  "others than 4096, pages=all at all of them. capacity, used, reserved are exact.\n"
	  "LIVE         what the present shows\n"
	  "KEPT         what only the past shows, and stays: versions, policies, locks\n"
	  "HISTORY      the rest of the past; it goes when writes need the space\n"
	  "RECLAIMABLE  what nothing shows; the next merge takes it\n"
	  "ALONE        of a version: what only this one keeps\n"
	  "growth       what the present holds more than a day ago, as far as history tells\n"
	  "without=VERSION  says what dropping it would free; several: all of them\n"
	  "since=MOMENT     says what would be free if no moment before were kept, but\n"
	  "                 versions\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl space $URL\n"
	  "  muninnctl space $URL 0x10000 without=before-upgrade without=3\n",
	  0, INT_MAX, verb_space },
	{ "watch", "URL PID|0", "space by version, as a picture",
	  "Of a partition: its versions and the present; = used, + written since the\n"
	  "version before. Of 0: the partitions and the versions of the device. On a\n"
	  "terminal it shows the largest and the newest that fit, every two seconds until\n"
	  "you press ^C.\n"
	  "\n"
	  "Example:\n"
	  "  muninnctl watch $URL 0x10000\n",
	  1, 1, verb_watch },
	{ "search", "URL PID[/OID|:PATH][@MOMENT] PATTERN [--regex]",
	  "find bytes in objects, on the target",
	  "Prints ADDRESS OFFSET+LENGTH of each match. Nothing else crosses the network.\n"
	  "The exit code is 3 if nothing matches. With a PATH (PID: is the whole tree) it\n"
	  "prints paths, of the files there or below.\n"
	  "--regex  PATTERN is a POSIX extended regular expression; ^ and $ match at lines\n"
	  "\n"
	  "Examples:\n"
	  "  muninnctl search $URL 0x10000 'error [0-9]+' --regex\n"
	  "  muninnctl search $URL docs: 'error [0-9]+' --regex\n",
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
	"  --yes              asks nothing\n"
	"  -h, --help         this text; behind a verb, its help\n"
	"  --version          which muninnctl this is\n"
	"\n"
	"URL      iscsi://[USER%SECRET@]HOST[:PORT]/TARGET/LUN. A secret is safer in the\n"
	"         environment: LIBISCSI_CHAP_USERNAME and LIBISCSI_CHAP_PASSWORD.\n"
	"         Or sg:/dev/sgN: the node of a unit at which this host's kernel has logged\n"
	"         in. Where it is left out: the environment's MUNINN_URL.\n"
	"ADDRESS  PID[/OID][@MOMENT], numbers decimal or 0x. PID alone is the partition,\n"
	"         0 the device. With a MOMENT, only verbs that read take it.\n"
	"         docs/0x10004: a partition's name (`name`) may stand for its PID\n"
	"         docs:a/path, 0x10000:a/path: a file or directory that `import` has\n"
	"         stored, for verbs that read; with @now behind it if the path has an @\n"
	"MOMENT   3 or daily: a version by number or name\n"
	"         2026-11-21T14:32:05, 2026-11-21: a time, local, or with Z or +hh:mm\n"
	"         yesterday 14:32, today, 14:32 (the last one): local times\n"
	"         -10min, -2days: so long ago (ms, s, min, h, d, w), by this host's clock\n"
	"         ~2: before the object's last two modifications\n"
	"         #4711: after the command with this sequence number; a partition, and\n"
	"         the device: as of their last moment up to then\n"
	"         now: the present\n"
	"\n"
	"Exit codes\n"
	"  0 done          1 other failure   2 wrong usage       3 not found\n"
	"  4 exists        5 no space        6 no connection     7 access denied\n"
	"  8 target failed or refused        9 local files or memory\n"
	"  10 not empty    11 data is not as stored          130 interrupted\n"
	"\n"
	"Example\n"
	"  URL=" URL_EXAMPLE "\n"
	"  muninnctl import $URL docs /usr/share/doc\n"
	"  muninnctl export $URL docs /tmp/doc\n";

/* In the order of the help. */
static const struct ctl_verb *verb_at(size_t index)
{
	const size_t count = sizeof(verbs) / sizeof(verbs[0]);

	if (index < count)
		return &verbs[index];
	index -= count;
	return index < ctl_verbs_of_host.count ? &ctl_verbs_of_host.verbs[index] : NULL;
}

const struct ctl_verb *ctl_find_verb(int count, char **words, int *used)
{
	const struct ctl_verb *verb;

	for (size_t i = 0; (verb = verb_at(i)); i++) {
		const char *blank = strchr(verb->name, ' ');
		size_t first = blank ? (size_t)(blank - verb->name) : strlen(verb->name);

		if (strlen(words[0]) != first || memcmp(words[0], verb->name, first) != 0)
			continue;
		*used = blank ? 2 : 1;
		if (!blank || (count >= 2 && strcmp(words[1], blank + 1) == 0))
			return verb;
	}
	return NULL;
}

/* The second word of a verb that begins with this one; NULL: it does not. */
static const char *second_word(const struct ctl_verb *verb, const char *first)
{
	size_t length = strlen(first);

	return strncmp(verb->name, first, length) == 0 && verb->name[length] == ' '
		       ? verb->name + length + 1
		       : NULL;
}

bool ctl_second_words(const char *first, char *text, size_t capacity)
{
	const struct ctl_verb *verb;
	size_t used = 0;

	for (size_t i = 0; (verb = verb_at(i)) && used < capacity; i++) {
		const char *second = second_word(verb, first);

		if (second)
			used += (size_t)snprintf(text + used, capacity - used, "%s%s",
						 used ? ", " : "", second);
	}
	return used > 0;
}

static void print_summary(const struct ctl_verb *verb)
{
	printf("  %-14s %s\n", verb->name, verb->summary);
}

bool ctl_print_group_help(const char *first)
{
	const struct ctl_verb *verb;
	bool found = false;

	for (size_t i = 0; (verb = verb_at(i)); i++) {
		if (!second_word(verb, first))
			continue;
		if (!found)
			printf("Verbs that begin with `%s`:\n\n", first);
		print_summary(verb);
		found = true;
	}
	if (found)
		printf("\n`muninnctl help VERB` tells more.\n");
	return found;
}

void ctl_print_help(void)
{
	const struct ctl_verb *verb;

	printf("muninnctl VERB URL [ADDRESS] [ARGUMENTS]: objects of a T10 OSD over iSCSI\n\n");
	for (size_t i = 0; (verb = verb_at(i)); i++)
		print_summary(verb);
	printf("\n`muninnctl help VERB` tells more.\n\n%s", general_help);
}

/* Has the text the word, which begins with dashes? */
static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += length)
		if ((at == text || strchr(" [(\n`", at[-1])) && at[length] != '-' &&
		    !isalnum((unsigned char)at[length]))
			return true;
	return false;
}

bool ctl_verb_has_option(const struct ctl_verb *verb, const char *name, char letter)
{
	const char short_word[] = { '-', letter, '\0' };
	char word[32];

	snprintf(word, sizeof(word), "--%s", name);
	return has_word(general_help, word) || has_word(verb->synopsis, word) ||
	       has_word(verb->help, word) || (letter && has_word(verb->synopsis, short_word));
}

void ctl_print_verb_help(const struct ctl_verb *verb)
{
	printf("muninnctl %s %s\n\n%s: %s.\n%s\n%s", verb->name, verb->synopsis, verb->name,
	       verb->summary, verb->help,
	       "Options of all verbs, forms of URL and ADDRESS, and exit codes: muninnctl "
	       "--help\n");
}
