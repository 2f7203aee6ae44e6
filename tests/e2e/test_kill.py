# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""kill -9 at random moments of imports, again and again on one device. E2E_SEED in the environment repeats a run, as far
as the moment of a kill can be repeated.

Runs for each index.
"""

import hashlib
import itertools
import os
import random
import signal
import subprocess
import threading
import time
import unittest

import osd
import trees
from harness import LIMIT_SECONDS, MUNINNCTL, E2ETest, wait_for_exit
from osd import Osd

TIME_LIMIT_SECONDS = 1800

ROUNDS = 20
P = 0x10000
FILES = 250
CHUNK = 1 << 20
# What an import leaves on its objects (docs/muninnctl.md): length and SHA-256 of an object that is
# complete.
COMPLETE = (0x14D55, 1)
USERNAME = (osd.USER_INFORMATION, osd.USERNAME)
LENGTH = (osd.USER_INFORMATION, osd.LOGICAL_LENGTH)
MANIFEST = "muninn-tree"
IN_FLIGHT = 32


def make_source(folder):
    """Many small files, some of several commands, and sizes at the edges."""
    totals = trees.Totals()
    trees.make_small_files(os.path.join(folder, "small"), totals, FILES, 2 << 20, seed=7)
    for number in range(5):
        size = (number + 1) * CHUNK // 2 + number
        path = os.path.join(folder, "small", f"{number * 11:02}", f"large-{number}")
        trees.write_file(path, random.Random(number).randbytes(size))
    for size in (0, 1, 4095, 4096, 4097, CHUNK, CHUNK + 1):
        trees.write_file(os.path.join(folder, f"size-{size}"), random.Random(size).randbytes(size))


class Import:
    """A running `muninnctl import`; `lines` of its log come in while it runs."""

    def __init__(self, url, partition, folder):
        self.lines = []
        self.grown = threading.Condition()
        reader, writer = os.pipe()
        command = [MUNINNCTL, "import", url, str(partition), folder, "--log", f"/dev/fd/{writer}"]
        self.process = subprocess.Popen(
            command,
            pass_fds=[writer],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        os.close(writer)
        self.thread = threading.Thread(target=self._read, args=(os.fdopen(reader, "rb"),))
        self.thread.start()

    def _read(self, stream):
        for line in stream:
            with self.grown:
                self.lines.append(line)
                self.grown.notify()
        stream.close()
        with self.grown:
            self.lines.append(None)  # the end
            self.grown.notify()

    def wait_for(self, count):
        """Until so many objects are acknowledged, or the import has ended."""
        with self.grown:
            if not self.grown.wait_for(lambda: len(self.lines) >= count or self.lines[-1:] == [None], LIMIT_SECONDS):
                raise AssertionError(f"only {len(self.lines)} objects were acknowledged")

    def end(self):
        """Exit code, stderr, and {object: (length, SHA-256)} of what was acknowledged."""
        _, errors = self.process.communicate(timeout=LIMIT_SECONDS)
        self.thread.join()
        acknowledged = {}
        for line in self.lines[:-1]:
            object_id, length, sha256, _ = line.split(b" ", 3)
            acknowledged[int(object_id, 16)] = (int(length), sha256.decode())
        return self.process.returncode, errors.decode(), acknowledged


class Killing(E2ETest):
    def setUp(self):
        self.source = self.folder("source")
        make_source(self.source)
        self.files = {name: path for name, path in self.walk(self.source)}
        self.seed = int(os.environ.get("E2E_SEED", random.randrange(1 << 32)))
        self.numbers = random.Random(self.seed)
        print(f"E2E_SEED={self.seed}", flush=True)

    @staticmethod
    def walk(folder):
        for place, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(place, name)
                yield os.path.relpath(path, folder), path

    def kill(self, daemon):
        """kill -9 of muninnd, which takes its tgtd along, or of tgtd first."""
        if self.numbers.random() < 0.5:
            daemon.kill()
            return "muninnd"
        os.kill(daemon.tgtd_pid, signal.SIGKILL)
        wait_for_exit(daemon.tgtd_pid)
        daemon.kill()
        return "tgtd"

    def run_many(self, session, commands):
        """Yields the answers to commands, with several of them under way."""
        commands, waiting = iter(commands), []
        while True:
            for command in itertools.islice(commands, IN_FLIGHT - len(waiting)):
                waiting.append((command, command.submit(session)))
            if not waiting:
                return
            command, task = waiting.pop(0)
            session.wait(task)
            answer = command.answer(task)
            self.assertEqual(answer.status, osd.GOOD, answer.sense)
            yield answer

    def read_all(self, session, partition, ids):
        """Yields (object, {attribute: value}, content) of objects."""
        wanted = [COMPLETE, USERNAME, LENGTH]
        gets = (osd.Command(osd.GET_ATTRIBUTES, partition, number, gets=wanted) for number in ids)
        attributes = [answer.attributes for answer in self.run_many(session, gets)]
        lengths = [int.from_bytes(values[LENGTH], "big") for values in attributes]
        reads = (osd.Command(osd.READ, partition, number, length=size) for number, size in zip(ids, lengths))
        contents = (answer.data for answer in self.run_many(session, reads))
        yield from zip(ids, attributes, contents)

    def check_unfinished(self, number, name, content):
        """An object of several commands that was not completed: each command's bytes are there, or none of them."""
        if name == MANIFEST:
            # One write of whole lines.
            self.assertIn(content[-1:], (b"", b"\n"))
            return
        with open(self.files[name], "rb") as file:
            whole = file.read()
        self.assertGreater(len(whole), CHUNK, f"{number:#x} {name}: came in one command but is not complete")
        self.assertLessEqual(len(content), len(whole))
        for at in range(0, len(content), CHUNK):
            piece = content[at : at + CHUNK]
            if piece != whole[at : at + len(piece)]:
                self.assertEqual(piece.count(0), len(piece), f"{number:#x} {name}: torn at {at}")
            elif at + len(piece) < len(whole):
                self.assertEqual(len(piece), CHUNK, f"{number:#x} {name}: torn at {at}")

    def check(self, daemon, acknowledged):
        """Everything acknowledged is there bit for bit; everything else is whole."""
        unacknowledged = 0
        with daemon.session() as session:
            for partition, objects in acknowledged.items():
                ids = Osd(session).list(partition)
                self.assertEqual(set(objects) - set(ids), set(), f"lost from partition {partition:#x}")
                for number, attributes, content in self.read_all(session, partition, ids):
                    found = (len(content), hashlib.sha256(content).hexdigest())
                    complete = attributes[COMPLETE]
                    if number in objects:
                        self.assertEqual(found, objects[number], f"{partition:#x}/{number:#x}")
                    elif complete:
                        self.assertEqual(found, (int.from_bytes(complete[:8], "big"), complete[8:].hex()))
                        unacknowledged += 1
                    else:
                        self.check_unfinished(number, attributes[USERNAME].decode(), content)
                        unacknowledged += 1
        return unacknowledged

    def test_everything_acknowledged_survives_twenty_kills_in_a_row(self):
        daemon = self.daemon(size="512M").start()
        acknowledged, partition = {}, P
        for number in range(ROUNDS):
            running = Import(daemon.url(), partition, self.source)
            running.wait_for(self.numbers.randrange(len(self.files) * 3 // 4))
            time.sleep(self.numbers.random() * 0.01)  # so that kills fall between acknowledgements too
            victim = self.kill(daemon)
            code, errors, objects = running.end()
            self.assertIn(code, (0, 6), errors)
            # A kill may come before even the partition was made.
            if objects:
                acknowledged.setdefault(partition, {}).update(objects)
            # Mostly the next import goes on beside what this one has left; a finished one has its
            # partition for itself.
            if code == 0 or self.numbers.random() < 0.2:
                partition += 1
            daemon.start()
            self.assertFalse(any("repair" in line.lower() for line in daemon.errors), daemon.errors)
            others = self.check(daemon, acknowledged)
            total = sum(map(len, acknowledged.values()))
            print(f"kill {number + 1} of {victim}: {len(objects)} acknowledged, {total} in all, {others} others", flush=True)
        self.assertGreater(sum(map(len, acknowledged.values())), 0)
        self.assertEqual(daemon.stop(), 0, daemon.errors)
        daemon.start()
        self.check(daemon, acknowledged)


if __name__ == "__main__":
    unittest.main()
