# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A tree's past comes back: versions, points in time, rollback after a disaster, history that nobody can shorten."""

import collections
import hashlib
import json
import os
import random
import subprocess
import time
import unittest

import osd
import tree_changes
import trees
from harness import E2ETest, noise

P = 0x10000


class FullOfLockedHistory(E2ETest):
    def test_a_lock_without_more_keeps_every_moment(self):
        server = self.daemon(size="64M").start()
        url = server.url()
        self.ctl("mkpart", url, P)
        self.ctl("put", url, f"{P}/0x10000", stdin=b"precious")
        self.ctl("retention", url, P, "lock-until=2099-01-01")
        refused = self.try_ctl("format", url)
        self.assertEqual(refused.returncode, 7)
        self.assertIn(b"FORMAT OSD, the device: the history of the device, or of a partition of it, is locked", refused.stderr)
        time.sleep(1.1)
        good = time.strftime("%Y-%m-%dT%H:%M:%S")
        time.sleep(1.1)
        reached = json.loads(self.ctl("--json", "retention", url, P))["reaches_back_to"]
        refused = None
        for turn in range(25):
            refused = self.try_ctl("put", url, f"{P}/0x10001", *(["--replace"] if turn else []), stdin=noise(8 << 20, turn))
            if refused.returncode:
                break
        self.assertIn(b"full", refused.stderr)
        self.assertEqual(json.loads(self.ctl("--json", "retention", url, P))["reaches_back_to"], reached)
        self.assertEqual(self.ctl("cat", url, f"{P}/0x10000@{good}", binary=True), b"precious")
        self.ctl("rollback", url, P, good)
        self.assertEqual(self.ctl("ls", url, P).split(), [f"{P:#x}/0x10000"])


class TimeTravel(E2ETest):
    def setUp(self):
        self.server = self.daemon(size="256M").start()
        self.url = self.server.url()

    def export(self, *arguments):
        target = os.path.join(self.folder("target"), "tree")
        self.ctl("export", self.url, *arguments[:1], target, *arguments[1:])
        return trees.describe(target)

    def test_every_version_of_a_tree_is_exported_as_it_was_imported(self):
        source = os.path.join(self.folder("source"), "tree")
        trees.make_odd(source)
        dice = random.Random(5)
        saved = []
        for turn in range(4):
            if turn:
                names = sorted(name for name in os.listdir(source) if os.path.isfile(os.path.join(source, name)))
                for name in names[:3]:
                    trees.write_file(os.path.join(source, name), noise(dice.randrange(1, 50000), turn))
                os.remove(os.path.join(source, names[-1]))
                trees.write_file(os.path.join(source, f"new-{turn}"), noise(9000, turn))
            self.ctl("import", self.url, P, source, *(["--replace"] if turn else []))
            saved.append(trees.without_set_id_bits(trees.describe(source)))
            self.assertEqual(self.ctl("snapshot", self.url, P, "--name", f"turn-{turn}"), f"{turn + 1}\n")
        versions = json.loads(self.ctl("--json", "versions", self.url, P))
        self.assertEqual([v["name"] for v in versions], [f"turn-{turn}" for turn in range(4)])
        taken = self.try_ctl("snapshot", self.url, P, "--name", "turn-2")
        self.assertEqual(taken.returncode, 4, taken.stderr)
        refused = self.try_ctl("put", self.url, f"{P}/0x10000@1", "--replace", stdin=b"x")
        self.assertEqual(refused.returncode, 7, refused.stderr)
        for restarted in (False, True):
            for turn in range(4):
                with self.subTest(turn=turn, restarted=restarted):
                    for words in ([f"{P}@{turn + 1}"], [P, "--at", f"turn-{turn}"]):
                        self.assertEqual(trees.differences(saved[turn], self.export(*words)), [])
            self.server.stop()
            self.server.start()
            self.url = self.server.url()

    def assert_diff_tells(self, entries, before, after, renames):
        """Checks what `diff` told against what reading both trees shows."""
        expected, bytes_at = tree_changes.differences(before, after, renames)
        told = [(entry["differs"], entry["path"]) for entry in entries if entry["differs"] != "data"]
        ranges = {}
        for entry in entries:
            if entry["differs"] == "data":
                ranges.setdefault(entry["path"], []).append((entry["offset"], entry["length"]))
            elif entry["differs"] == "length":
                self.assertEqual(entry["length"], os.path.getsize(os.path.join(after, entry["path"])))
        self.assertEqual(len(told), len(set(told)), "told twice")
        told += [("data", path) for path in ranges]
        self.assertEqual(sorted(told), sorted(expected))
        for path, parts in ranges.items():
            differing, covered = set(bytes_at[path]), set()
            for offset, length in parts:
                # As tight as can be: both ends differ, and nothing is told twice.
                self.assertIn(offset, differing)
                self.assertIn(offset + length - 1, differing)
                self.assertFalse(covered & set(range(offset, offset + length)))
                covered |= set(range(offset, offset + length))
            self.assertLessEqual(differing, covered)

    def test_diff_of_a_tree_that_was_updated_lists_exactly_what_changed(self):
        folder, dice = self.folder("source"), random.Random(17)
        source = os.path.join(folder, "tree")
        tree_changes.prepare(source, dice)
        trees.make_odd(os.path.join(source, "odd"))
        saved, sent, renames = [], [], {}
        for turn in range(4):
            if turn:
                before, after = tree_changes.change(source, turn, dice)
                renames[before] = after
            report = json.loads(self.ctl("--json", "import", self.url, P, source, "--update"))
            sent.append(report["sent_bytes"])
            self.ctl("snapshot", self.url, P, "--name", f"turn-{turn}")
            saved.append(os.path.join(folder, f"saved-{turn}"))
            subprocess.run(["cp", "-a", source, saved[turn]], check=True)
        # What was sent is about what was changed, not what is there.
        self.assertGreater(sent[0], 5 << 20)
        self.assertLess(max(sent[1:]), 400_000)
        for turn in range(4):
            expected = trees.without_set_id_bits(trees.describe(saved[turn]))
            self.assertEqual(trees.differences(expected, self.export(P, "--at", f"turn-{turn}")), [])
        for first, second in ((0, 1), (1, 2), (2, 3), (0, 3), (3, 1)):
            with self.subTest(first=first, second=second):
                entries = json.loads(self.ctl("--json", "diff", self.url, P, f"turn-{first}", f"turn-{second}"))
                back = {after: before for before, after in renames.items()}
                self.assert_diff_tells(entries, saved[first], saved[second], renames if first < second else back)
        self.assertEqual(self.ctl("diff", self.url, P, "turn-3"), "")
        self.assertEqual(json.loads(self.ctl("--json", "import", self.url, P, source, "--update"))["sent_bytes"], 0)
        self.assertEqual(self.ctl("diff", self.url, P, "turn-3", "--raw"), "")

    def contents(self, moment):
        """What the partition's objects hold at a moment, by address."""
        where = f"{P}@{moment}" if moment else P
        found = {}
        for address in self.ctl("ls", self.url, where).split():
            found[int(address.partition("@")[0].rpartition("/")[2], 16)] = self.ctl("cat", self.url, address, binary=True)
        return found

    def test_diff_lists_exactly_what_changed(self):
        self.ctl("mkpart", self.url, P)
        dice = random.Random(11)
        for number in range(12):
            self.ctl("put", self.url, f"{P}/{0x10000 + number}", stdin=noise(dice.randrange(1, 60000), number))
        self.ctl("snapshot", self.url, P)
        for turn in range(3):
            for number in dice.sample(range(12), 4):
                address = f"{P}/{0x10000 + number}"
                if self.try_ctl("stat", self.url, address).returncode:
                    self.ctl("put", self.url, address, stdin=noise(5000, turn))
                elif dice.randrange(3) == 0:
                    self.ctl("rm", self.url, address)
                else:
                    offset = dice.randrange(30000)
                    self.ctl("put", self.url, address, "--offset", offset, stdin=noise(dice.randrange(1, 9000), turn))
            self.ctl("snapshot", self.url, P)
        for first, second in ((1, 2), (2, 3), (1, 4), (3, None)):
            with self.subTest(first=first, second=second):
                before, after = self.contents(first), self.contents(second)
                words = [first] + ([second] if second else [])
                entries = json.loads(self.ctl("--json", "diff", self.url, P, *words))
                told = {kind: set() for kind in ("added", "removed", "length", "data")}
                ranges = {}
                for entry in entries:
                    told[entry["differs"]].add(int(entry["object"], 16))
                    if entry["differs"] == "data":
                        ranges.setdefault(int(entry["object"], 16), []).append((entry["offset"], entry["length"]))
                both = before.keys() & after.keys()
                self.assertEqual(told["added"], after.keys() - before.keys())
                self.assertEqual(told["removed"], before.keys() - after.keys())
                self.assertEqual(told["length"], {o for o in both if len(before[o]) != len(after[o])})
                # What a shorter object has lost is told by its length.
                sizes = {o: len(after[o]) for o in both}
                pairs = {o: (before[o].ljust(sizes[o], b"\0")[: sizes[o]], after[o]) for o in both}
                self.assertEqual(told["data"], {o for o in both if pairs[o][0] != pairs[o][1]})
                for number, parts in ranges.items():
                    size, pair = sizes[number], pairs[number]
                    told_at = bytearray(size)
                    for offset, length in parts:
                        self.assertLessEqual(offset + length, size)
                        told_at[offset : offset + length] = b"1" * length
                    missed = [at for at in range(size) if pair[0][at] != pair[1][at] and not told_at[at]]
                    self.assertEqual((hex(number), missed[:5], len(missed)), (hex(number), [], 0), parts)

    def test_clones_go_their_own_way(self):
        self.ctl("mkpart", self.url, P)
        self.ctl("put", self.url, f"{P}/0x10000", stdin=b"one")
        self.ctl("snapshot", self.url, P, "--name", "first")
        self.ctl("put", self.url, f"{P}/0x10000", "--replace", stdin=b"two")
        clone = self.ctl("clone", self.url, f"{P}@first").strip()
        still = self.ctl("clone", self.url, P, "0x20000", "--read-only").strip()
        self.ctl("put", self.url, f"{clone}/0x10000", "--replace", stdin=b"mine")
        self.assertEqual(self.ctl("cat", self.url, f"{P}/0x10000"), "two")
        self.assertEqual(self.ctl("cat", self.url, f"{clone}/0x10000"), "mine")
        self.assertEqual(self.try_ctl("put", self.url, f"{still}/0x10000", "--replace", stdin=b"x").returncode, 7)
        self.ctl("put", self.url, f"{P}/0x10000", "--replace", stdin=b"three")
        self.assertEqual(self.ctl("cat", self.url, f"{still}/0x10000"), "two")
        self.ctl("refresh", self.url, still)
        self.assertEqual(self.ctl("cat", self.url, f"{still}/0x10000"), "three")
        self.ctl("detach", self.url, clone)
        self.ctl("rmpart", self.url, P, "--contents")
        self.assertEqual(self.ctl("cat", self.url, f"{clone}/0x10000"), "mine")
        self.assertEqual(self.ctl("cat", self.url, f"{still}/0x10000"), "three")

    def test_after_a_disaster_one_rollback_brings_everything_back(self):
        source = os.path.join(self.folder("source"), "tree")
        os.mkdir(source)
        for number in range(40):
            trees.write_file(os.path.join(source, f"document-{number}"), noise(20000 + number, number))
        self.ctl("import", self.url, P, source)
        expected = trees.describe(source)
        time.sleep(1.5)  # moments are a second apart
        before = time.time()
        # A client of the store encrypts every object, shortens some and removes others.
        for number, address in enumerate(self.ctl("ls", self.url, P).split()):
            if number % 7 == 3:
                self.ctl("rm", self.url, address)
            else:
                self.ctl("put", self.url, address, "--replace", stdin=noise(15000, 1000 + number))
        broken = self.try_ctl("export", self.url, P, os.path.join(self.folder("target"), "tree"))
        self.assertNotEqual(broken.returncode, 0)
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(before))
        # Look first, then go back. That far back there was nothing to go to.
        refused = self.try_ctl("rollback", self.url, P, "-1w")
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn(b"reaches back to", refused.stderr)
        self.assertEqual(trees.differences(expected, self.export(P, "--at", moment)), [])
        told = json.loads(self.ctl("--json", "diff", self.url, P, moment))
        self.assertEqual({entry.get("path") for entry in told} - {None}, set(os.listdir(source)))
        time.sleep(1.5)
        damaged = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        overwritten = self.ctl("cat", self.url, f"{P}/0x10000", binary=True)
        time.sleep(1.5)
        self.ctl("rollback", self.url, P, moment)
        self.assertEqual(trees.differences(expected, self.export(P)), [])
        # What came after that moment is hidden, not gone; and the rollback can be rolled back.
        self.assertEqual(self.ctl("cat", self.url, f"{P}/0x10000@{damaged}", binary=True), overwritten)
        self.ctl("rollback", self.url, P, damaged)
        self.assertEqual(self.ctl("cat", self.url, f"{P}/0x10000", binary=True), overwritten)
        self.ctl("rollback", self.url, P, moment)
        self.assertEqual(trees.differences(expected, self.export(P)), [])
        self.server.kill()
        self.server.start()
        self.url = self.server.url()
        self.assertEqual(trees.differences(expected, self.export(P)), [])

    def test_a_locked_history_is_not_shortened_by_any_client(self):
        self.ctl("mkpart", self.url, P)
        self.ctl("put", self.url, f"{P}/0x10000", stdin=b"precious")
        self.ctl("snapshot", self.url, P, "--name", "kept")
        self.ctl("retention", self.url, P, "all", "lock-until=2099-06-01")
        for words in (["snapshots"], ["none"], ["lock-until=2027-01-01"]):
            refused = self.try_ctl("retention", self.url, P, *words)
            self.assertEqual(refused.returncode, 7, words)
            self.assertIn(b"locked", refused.stderr)
        for words in (("drop", self.url, P, "kept"), ("rmpart", self.url, P, "--contents"), ("format", self.url)):
            refused = self.try_ctl(*words)
            self.assertEqual(refused.returncode, 7, words)
            self.assertIn(b"locked", refused.stderr)
        shown = json.loads(self.ctl("--json", "retention", self.url, P))
        self.assertEqual((shown["retention"], shown["locked_until"][:4]), ("all", "2099"))
        # The administrator of the target's host can end the lock.
        self.ctl("unlock", self.server.image(), P)
        for _ in range(100):
            shown = json.loads(self.ctl("--json", "retention", self.url, P))
            if shown["locked_until"] is None:
                break
            time.sleep(0.1)
        self.assertIsNone(shown["locked_until"])
        self.ctl("drop", self.url, P, "kept")
        self.ctl("retention", self.url, P, "snapshots")

    def test_going_back_with_the_device_ends_no_lock(self):
        self.ctl("mkpart", self.url, P + 1)
        time.sleep(1.1)
        before = time.strftime("%Y-%m-%dT%H:%M:%S")
        time.sleep(1.1)
        self.ctl("mkpart", self.url, P)
        self.ctl("put", self.url, f"{P}/0x10000", stdin=b"precious")
        self.ctl("retention", self.url, P, "all", "lock-until=2099-01-01")
        refused = self.try_ctl("format", self.url, "--yes")
        self.assertIn(b"locked", refused.stderr)
        refused = self.try_ctl("rollback", self.url, 0, before)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(b"roll the partitions back one by one", refused.stderr)
        self.assertEqual(self.ctl("cat", self.url, f"{P}/0x10000", binary=True), b"precious")
        # The other partition goes back by itself, and nothing has become of the lock.
        self.ctl("rollback", self.url, P + 1, before)
        refused = self.try_ctl("retention", self.url, P, "none")
        self.assertIn(b"locked", refused.stderr)

    def test_who_keeps_nothing_is_left_out_of_the_device_s_moments(self):
        self.ctl("mkpart", self.url, P)
        self.ctl("put", self.url, f"{P}/0x10000", stdin=b"precious")
        self.ctl("mkpart", self.url, P + 1)
        self.ctl("put", self.url, f"{P + 1}/0x10000", stdin=b"scratch")
        time.sleep(1.1)
        before = time.strftime("%Y-%m-%dT%H:%M:%S")
        time.sleep(1.1)
        self.ctl("retention", self.url, P + 1, "none")
        time.sleep(1.1)
        meanwhile = time.strftime("%Y-%m-%dT%H:%M:%S")
        time.sleep(1.1)
        self.ctl("rmpart", self.url, P, "--contents")
        self.ctl("put", self.url, f"{P + 1}/0x10000", "--replace", stdin=b"later")
        self.ctl("rollback", self.url, 0, meanwhile)
        self.assertEqual(self.ctl("cat", self.url, f"{P}/0x10000", binary=True), b"precious")
        self.assertEqual(self.ctl("cat", self.url, f"{P + 1}/0x10000", binary=True), b"later")
        time.sleep(1.1)
        self.ctl("rollback", self.url, 0, before)
        self.assertEqual(self.ctl("cat", self.url, f"{P}/0x10000", binary=True), b"precious")
        self.assertEqual(self.ctl("cat", self.url, f"{P + 1}/0x10000", binary=True), b"scratch")

    def test_objects_are_read_undone_and_logged_through_moments(self):
        self.ctl("mkpart", self.url, P)
        address = f"{P}/0x10000"
        contents = [noise(3000, 1), noise(5000, 2), noise(4000, 3)]
        self.ctl("put", self.url, address, stdin=contents[0])
        for content in contents[1:]:
            self.ctl("put", self.url, address, "--replace", stdin=content)
        log = json.loads(self.ctl("--json", "log", self.url, address))
        self.assertEqual([entry["length"] for entry in log], [4000, 5000, 3000])
        self.assertEqual(log[-1]["change"], "created")
        for back, content in enumerate(reversed(contents)):
            moment = f"~{back}" if back else "now"
            self.assertEqual(self.ctl("get", self.url, f"{address}@{moment}", binary=True), content)
        self.assertEqual(self.ctl("cat", self.url, f"{address}@#{log[1]['sequence']}", binary=True), contents[1])
        self.ctl("undo", self.url, address, 2)
        self.assertEqual(self.ctl("get", self.url, address, binary=True), contents[0])
        self.ctl("undo", self.url, address)
        self.assertEqual(self.ctl("get", self.url, address, binary=True), contents[2])
        self.assertEqual(
            self.ctl("checksum", self.url, f"{address}@~1").split()[0], hashlib.sha256(contents[0]).hexdigest()
        )
        tooFar = self.try_ctl("get", self.url, f"{address}@~99")
        self.assertEqual(tooFar.returncode, 3, tooFar.stderr)

    def test_more_modifications_are_undone_than_one_command_counts(self):
        """65,536 by one UNDO; more are counted by LOG first."""
        added, address = 66000, f"{P}/0x10000"
        self.ctl("mkpart", self.url, P)
        with self.server.session() as session:
            osd.Osd(session).store(P, 0x10000, bytes(8))
            waiting = collections.deque()
            for _ in range(added):
                # Whichever comes first, each adds one.
                command = osd.Command(osd.FETCH_AND_ADD, P, 0x10000, length=8, data=(1).to_bytes(8, "big"))
                command.read_length = 8
                waiting.append((command, command.submit(session)))
                if len(waiting) == 24:
                    self.finish(session, waiting.popleft())
            for begun in waiting:
                self.finish(session, begun)
        done = 0
        for verb, argument, left in (
            ("undo", 65537, added - 65537),
            ("undo", 1, added),
            ("rollback", "~65999", added - 65997),
            ("undo", 65536, added - 65533),
        ):
            self.ctl(verb, self.url, address, argument)
            number = json.loads(self.ctl("--json", "attr", "get", self.url, address, 7, 2))["hex"]
            self.assertEqual(int(number, 16), left, (verb, argument))
            done += 1
        for verb, argument in (("undo", 99999), ("rollback", "~99999")):
            refused = self.try_ctl(verb, self.url, address, argument)
            self.assertEqual((refused.returncode, refused.stdout), (3, b""))
            self.assertIn(f"has only {added + done + 1} modifications", refused.stderr.decode())

    def finish(self, session, begun):
        command, task = begun
        self.assertEqual(command.answer(session.wait(task)).status, osd.GOOD)

    def test_a_merge_ends_under_a_policy_that_speaks_of_ages(self):
        self.ctl("mkpart", self.url, P)
        self.ctl("put", self.url, f"{P}/0x10000", stdin=b"precious")
        self.ctl("retention", self.url, P, "keep-all=24h")
        self.ctl("merge", self.url, "start")
        for _ in range(300):
            state = json.loads(self.ctl("--json", "merge", self.url, "progress"))
            if not state["running"]:
                break
            time.sleep(0.1)
        self.assertFalse(state["running"])
        self.assertLess(state["freed"], 64)

    def test_lists_of_the_past_name_the_moment_for_good(self):
        self.ctl("mkpart", self.url, P)
        self.ctl("put", self.url, f"{P}/0x10000", stdin=b"first")
        time.sleep(1.1)
        moment = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        time.sleep(1.1)
        self.ctl("put", self.url, f"{P}/0x10000", "--replace", stdin=b"second")
        listed = self.ctl("ls", self.url, f"{P}@{moment}").split()
        self.assertEqual(listed, [f"{P:#x}/0x10000@{moment}"])
        self.assertEqual(json.loads(self.ctl("--json", "stat", self.url, listed[0]))["address"], listed[0])
        sequence = json.loads(self.ctl("--json", "log", self.url, f"{P}/0x10000"))[0]["sequence"]
        listed += self.ctl("ls", self.url, f"{P}@#{sequence}").split()
        self.assertEqual(listed[1], f"{P:#x}/0x10000@#{sequence}")
        self.server.kill()
        self.server.start()
        self.url = self.server.url()
        self.ctl("ls", self.url, f"{P}@-1s")
        self.assertEqual(self.ctl("cat", self.url, listed[0], binary=True), b"first")
        self.assertEqual(self.ctl("cat", self.url, listed[1], binary=True), b"second")

    def test_names_that_no_address_reaches_are_not_given(self):
        self.ctl("mkpart", self.url, P)
        for name in ("now", "#3", "~2", "-10min", "1abc", "2026-11-21", "ä-ö", "a\nb", ""):
            refused = self.try_ctl("snapshot", self.url, P, "--name", name)
            self.assertEqual(refused.returncode, 2, (name, refused.stderr))
        refused = self.try_ctl("snapshot", self.url, P, "--name", "-10min")
        self.assertIn(b"'-10min'", refused.stderr)
        self.ctl("snapshot", self.url, P, "--name", "Vögel am 3.")
        self.assertEqual(self.ctl("ls", self.url, f"{P}@Vögel am 3."), "")

    def test_what_has_not_been_is_no_moment(self):
        self.ctl("mkpart", self.url, P)
        for words in (["ls", f"{P}@2099-01-01"], ["rollback", P, "2099-01-01"], ["clone", f"{P}@2099-01-01"]):
            refused = self.try_ctl(words[0], self.url, *words[1:])
            self.assertEqual(refused.returncode, 2, (words, refused.stderr))
            self.assertIn(b"future", refused.stderr)

    def test_the_target_searches_and_merges_by_itself(self):
        self.ctl("mkpart", self.url, P)
        self.ctl("put", self.url, f"{P}/0x10000", stdin=b"first\nneedle 42\n" + noise(100000, 1))
        self.ctl("put", self.url, f"{P}/0x10001", stdin=noise(70000, 2) + b"needle 7")
        found = self.ctl("search", self.url, P, "needle")
        self.assertEqual(found, f"0x{P:x}/0x10000 6+6\n0x{P:x}/0x10001 70000+6\n")
        found = self.ctl("search", self.url, P, "^needle [0-9]{2}$", "--regex")
        self.assertEqual(found, f"0x{P:x}/0x10000 6+9\n")
        self.assertEqual(self.try_ctl("search", self.url, P, "not there at all").returncode, 3)
        merged = json.loads(self.ctl("--json", "merge", self.url, "--progress"))
        self.assertFalse(merged["running"])
        self.assertGreater(merged["steps"], 0)
        self.assertIn("segments", json.loads(self.ctl("--json", "statistics", self.url)))
        self.assertIn("now", self.ctl("watch", self.url, P))


if __name__ == "__main__":
    unittest.main()
