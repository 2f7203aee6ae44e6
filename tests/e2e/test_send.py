# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""`send` and `receive`: what arrives is what was sent, or nothing is."""

import json
import os
import random
import subprocess
import time
import unittest

from harness import LIMIT_SECONDS, MUNINNCTL, E2ETest

P, Q = 0x10000, 0x20000
MIB = 1 << 20
SEED = int(os.environ.get("E2E_SEED", "18"))


class Send(E2ETest):
    def setUp(self):
        super().setUp()
        print(f"E2E_SEED={SEED}", flush=True)
        self.random = random.Random(SEED)
        self.device = self.daemon(size="256M").start()
        self.url = self.device.url()
        self.ctl("mkpart", self.url, P)

    def put(self, number, content, *options):
        self.ctl("put", self.url, f"{P}/{number:#x}", *options, stdin=content)

    def fill(self):
        """Small, large, empty and sparse objects, with attributes."""
        self.put(0x10000, b"thought and memory")
        self.put(0x10001, self.random.randbytes(3 * MIB + 77))
        self.ctl("create", self.url, f"{P}/0x10002")
        self.put(0x10003, b"behind a hole", "--offset", "5M")
        self.put(0x10004, self.random.randbytes(50_000))
        self.ctl("attr", "set", self.url, f"{P}/0x10000", "0x10000", "1", "--text", "a raven")
        self.ctl("attr", "set", self.url, f"{P}/0x10000", "0x20010000", "7", "--hex", "00ff")
        self.ctl("attr", "set", self.url, f"{P}/0x10004", "0x10000", "1", "--text", "goes")
        self.ctl("attr", "set", self.url, f"{P}", "0x30010000", "3", "--text", "of all")

    def change(self):
        self.put(0x10000, b"fly over the world", "--replace")
        self.put(0x10001, b"in the middle", "--offset", "1M")
        self.ctl("clear", self.url, f"{P}/0x10001", "2M", "64K")
        self.ctl("rm", self.url, f"{P}/0x10002")
        self.ctl("truncate", self.url, f"{P}/0x10004", 1000)
        self.ctl("attr", "set", self.url, f"{P}/0x10004", "0x10000", "1", "--remove")
        self.ctl("attr", "set", self.url, f"{P}/0x10004", "0x10000", "2", "--text", "comes")
        self.put(0x10005, self.random.randbytes(2 * MIB))

    def send(self, *versions):
        return self.ctl("send", self.url, P, *versions, binary=True)

    def receive(self, stream, *arguments):
        return self.ctl("receive", self.url, *arguments, stdin=stream)

    def state(self, partition, moment=""):
        """All that a partition shows, but for times and what it is a copy of."""
        addresses = self.ctl("ls", self.url, f"{partition}{moment}").split()
        state = {}
        for address in addresses:
            object_id = address.split("/")[1].split("@")[0]
            where = f"{partition}/{object_id}{moment}"
            attributes = [
                (item["page"], item["number"], item["hex"])
                for item in json.loads(self.ctl("--json", "attr", "ls", self.url, where))
                if int(item["page"], 16) >= 0x10000
            ]
            state[object_id] = (self.ctl("get", self.url, where, binary=True), attributes)
        return state

    def partitions(self):
        return self.ctl("ls", self.url).split()

    def snapshot(self, name):
        self.ctl("snapshot", self.url, P, "--name", name)

    def copy_and_change(self):
        """Q becomes a copy of P, then P changes: returns the stream of the differences."""
        self.fill()
        self.snapshot("one")
        self.receive(self.send("one"), Q)
        self.change()
        self.snapshot("two")
        return self.send("two", "one")

    def test_a_version_arrives_as_it_was_whatever_came_after_it(self):
        self.fill()
        self.snapshot("one")
        wanted = self.state(P)
        stream = self.send("one")
        self.change()
        self.assertIn("0x20000", self.receive(stream, Q))
        self.assertEqual(self.state(Q), wanted)
        self.assertIn("of all", self.ctl("attr", "get", self.url, f"{Q}", "0x30010000", "3"))
        # Holes stay holes.
        self.assertLess(len(stream), 4 * MIB)

    def test_differences_make_the_copy_the_next_version(self):
        stream = self.copy_and_change()
        self.assertLess(len(stream), 2 * MIB + 300_000)
        self.receive(stream, Q)
        self.assertEqual(self.state(Q), self.state(P))
        # Again, or before its turn, it is refused.
        done = self.try_ctl("receive", self.url, Q, stdin=stream)
        self.assertEqual(done.returncode, 8)
        self.assertIn(b"send from the version that it is a copy of", done.stderr)

    def test_a_name_makes_a_partition_and_finds_it_again(self):
        self.fill()
        self.snapshot("one")
        stream = self.send("one")
        copy = self.receive(stream, "copy").strip()
        self.assertIn([copy, "copy"], [[line.split()[0], line.split()[-1]] for line in self.ctl("ls", "-l", self.url).splitlines()])
        self.assertEqual(self.state(copy), self.state(P))
        done = self.try_ctl("receive", self.url, "copy", stdin=stream)
        self.assertEqual((done.returncode, b"a new name" in done.stderr), (4, True), done.stderr)
        self.change()
        self.snapshot("two")
        differences = self.send("two", "one")
        done = self.try_ctl("receive", self.url, "none", stdin=differences)
        self.assertEqual((done.returncode, b"no partition has the name 'none'" in done.stderr), (3, True), done.stderr)
        self.receive(differences, "copy")
        self.assertEqual(self.state("copy"), self.state(P))
        self.assertEqual(self.try_ctl("receive", self.url, 0, stdin=stream).returncode, 2)

    def received(self, partition):
        return [version["name"] for version in json.loads(self.ctl("--json", "versions", self.url, partition))]

    def test_a_copy_that_was_rolled_back_takes_the_same_differences_again(self):
        stream = self.copy_and_change()
        one = self.received(Q)
        self.receive(stream, Q)
        both = self.received(Q)
        self.ctl("rollback", self.url, Q, one[0], "--yes")
        self.receive(stream, Q)
        self.assertEqual(self.state(Q), self.state(P))
        self.assertEqual(self.received(Q), both)
        self.receive(self.send("two", "two"), Q)
        self.assertEqual(self.state(Q), self.state(P))

    def test_a_copy_without_its_version_names_the_way_out(self):
        stream, name = self.copy_and_change(), self.received(Q)[0]
        self.ctl("drop", self.url, Q, name)
        done = self.try_ctl("receive", self.url, Q, stdin=stream)
        self.assertEqual(done.returncode, 3)
        self.assertIn(f"snapshot URL {Q:#x} --name {name}".encode(), done.stderr)
        self.ctl("snapshot", self.url, Q, "--name", name)
        self.receive(stream, Q)
        self.assertEqual(self.state(Q), self.state(P))

    def test_a_copy_that_was_changed_is_refused_or_goes_back_first(self):
        stream = self.copy_and_change()
        self.ctl("put", self.url, f"{Q}/0x10077", stdin=b"not of the source")
        done = self.try_ctl("receive", self.url, Q, stdin=stream)
        self.assertEqual(done.returncode, 8)
        self.assertIn(b"has changed since it was received", done.stderr)
        self.assertIn("0x10077", " ".join(self.state(Q)))
        self.receive(stream, Q, "--force")
        self.assertEqual(self.state(Q), self.state(P))

    def test_of_a_torn_or_damaged_stream_nothing_stays(self):
        self.fill()
        self.snapshot("one")
        whole = self.send("one")
        self.receive(whole, Q)
        before = self.state(Q)
        self.change()
        self.snapshot("two")
        differences = self.send("two", "one")
        for stream, partition in ((whole, 0x30000), (differences, Q)):
            cuts = [0, 20, 56, 60, len(stream) - 1] + [self.random.randrange(100, len(stream)) for _ in range(3)]
            wrong = [(stream[:cut], f"cut at {cut}") for cut in cuts]
            for at in [30, 70] + [self.random.randrange(56, len(stream)) for _ in range(4)]:
                damaged = bytearray(stream)
                damaged[at] ^= 1 << self.random.randrange(8)
                wrong.append((bytes(damaged), f"damaged at {at}"))
            for bytes_, what in wrong:
                with self.subTest(what, whole=stream is whole):
                    done = self.try_ctl("receive", self.url, partition, stdin=bytes_)
                    self.assertEqual(done.returncode, 11, done.stderr)
                    self.assertNotIn("0x30000", self.partitions())
                    self.assertEqual(self.state(Q), before)
        self.receive(differences, Q)
        self.assertEqual(self.state(Q), self.state(P))

    def start_receive(self, partition, part, size):
        """One that has stored something of `part`, and waits for the rest, until it is killed."""
        process = subprocess.Popen(
            [MUNINNCTL, "receive", self.url, str(partition)], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.addCleanup(process.stderr.close)
        process.stdin.write(part)
        process.stdin.flush()
        limit = time.monotonic() + LIMIT_SECONDS
        while size not in self.try_ctl("stat", self.url, f"{partition}/0x10001").stdout.decode():
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), limit)
        return process

    def test_one_that_is_killed_is_begun_anew_and_one_that_is_interrupted_tidies_up(self):
        self.fill()
        self.snapshot("one")
        wanted, stream = self.state(P), self.send("one")
        # In the middle of the last object.
        part = stream[: 3 * MIB + 20_000]
        self.assertLess(len(part) + 20_000, len(stream))
        process = self.start_receive(Q, part, "length")
        process.kill()
        process.wait()
        process.stdin.close()
        self.device.wait_for_sessions_to_end()
        self.assertIn("0x20000", self.partitions())
        self.receive(stream, Q)
        self.assertEqual(self.state(Q), wanted)
        process = self.start_receive(0x30000, part, "length")
        process.terminate()
        _, errors = process.communicate()
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn(b"is removed again", errors)
        self.assertNotIn("0x30000", self.partitions())

    def test_differences_that_were_killed_are_begun_anew(self):
        stream = self.copy_and_change()
        process = subprocess.Popen([MUNINNCTL, "receive", self.url, str(Q)], stdin=subprocess.PIPE)
        process.stdin.write(stream[: MIB + 500_000])
        process.stdin.flush()
        limit = time.monotonic() + LIMIT_SECONDS
        while b"fly over" not in self.try_ctl("get", self.url, f"{Q}/0x10000").stdout:
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), limit)
        process.kill()
        process.wait()
        process.stdin.close()
        self.device.wait_for_sessions_to_end()
        self.receive(stream, Q)
        self.assertEqual(self.state(Q), self.state(P))

    def test_what_a_stream_can_t_carry_is_refused(self):
        self.fill()
        self.snapshot("one")
        for arguments, code, sentence in (
            ((P, "none"), 3, b"has no version 'none'"),
            ((P, "-1h"), 3, b"a stream is of kept versions"),
            ((f"{P}@one", "one"), 2, b"arguments of their own"),
        ):
            done = self.try_ctl("send", self.url, *arguments)
            self.assertEqual((done.returncode, sentence in done.stderr), (code, True), done.stderr)
        done = self.try_ctl("receive", self.url, P, stdin=self.send("one"))
        self.assertEqual(done.returncode, 4, done.stderr)
        self.ctl("coll", "create", self.url, P)
        self.snapshot("two")
        done = self.try_ctl("send", self.url, P, "two")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"has collections", done.stderr)


if __name__ == "__main__":
    unittest.main()
