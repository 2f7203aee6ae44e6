# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""muninnctl on a terminal: bars while the target works, ^C, and the picture of `watch`."""

import fcntl
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import threading
import time
import unittest

from harness import BUILD, LIMIT_SECONDS, MUNINNCTL, MUNINND, OneDaemonTest, noise

ROWS, COLUMNS = 24, 90


class Terminal:
    """muninnctl with a terminal of its own, for standard error and, if wanted, output."""

    def __init__(self, *words, output=True, columns=COLUMNS):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        self.process = subprocess.Popen(
            [MUNINNCTL, *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=slave if output else subprocess.PIPE,
            stderr=slave,
        )
        os.close(slave)
        self.text = ""

    def _read(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            chunk = os.read(self.master, 65536)
        except OSError:  # what a terminal says when nobody has its other end any more
            return False
        self.text += chunk.decode(errors="replace").replace("\r\n", "\n")
        return bool(chunk)

    def wait_for(self, expression):
        """Reads until the text has a match."""
        end = time.monotonic() + LIMIT_SECONDS
        while not re.search(expression, self.text):
            if not self._read(end - time.monotonic()):
                raise AssertionError(f"no {expression!r} in {self.text!r}")

    def interrupt(self):
        """^C; returns the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.end()

    def end(self):
        """The exit code, when it ends by itself; closes everything."""
        while self._read(LIMIT_SECONDS):
            pass
        code = self.process.wait(LIMIT_SECONDS)
        os.close(self.master)
        if self.process.stdout:
            self.process.stdout.close()
        return code


class OnATerminal(OneDaemonTest):
    def setUp(self):
        self.url = self.shared.url()
        self.partition = next(self.partitions)
        self.ctl("mkpart", self.url, self.partition)

    def put_hard_text(self):
        """An object in which HARD takes a search many commands."""
        text = bytes(random.Random(1).choices(b"ab", k=1 << 20)) * 24
        self.ctl("put", self.url, f"{self.partition}/0x10000", stdin=text)

    HARD = "(a|b)*a(a|b){60}c"

    def test_a_search_shows_a_bar_and_stops_at_once_when_interrupted(self):
        self.put_hard_text()
        terminal = Terminal("search", self.url, self.partition, self.HARD, "--regex")
        terminal.wait_for(r"search +[1-9][0-9]?% \[#* *\]  ETA")
        begun = time.monotonic()
        self.assertEqual(terminal.interrupt(), 130)
        self.assertLess(time.monotonic() - begun, 20)
        self.assertRegex(terminal.text, r"interrupted; what was printed is right, but not all\n$")
        percent = [int(found) for found in re.findall(r"search +(\d+)%", terminal.text)]
        self.assertEqual(percent, sorted(percent))
        # The unit does not work on for nobody: it answers.
        self.assertIn("capacity", self.ctl("info", self.url))

    def test_bars_of_trees_fit_into_the_terminal(self):
        tree, back = self.folder("tree"), os.path.join(self.folder("back"), "tree")
        with open(os.path.join(tree, "long"), "wb") as file:
            file.write(noise(8 << 20, 2))
        with open(os.path.join(tree, "short"), "wb") as file:
            file.write(noise(1000, 3))
        for words in (["import", self.url, self.partition, tree], ["import", "--update", "--checksum", self.url, self.partition, tree],
                      ["export", self.url, self.partition, back]):  # fmt: skip
            for columns in (80, 40, 12):
                with self.subTest(words=words, columns=columns):
                    terminal = Terminal(*words, output=False, columns=columns)
                    self.assertEqual(terminal.end(), 0, terminal.text)
                    lines = [line.replace("\033[K", "") for line in re.split(r"[\r\n]+", terminal.text)]
                    self.assertLess(max(map(len, lines)), columns)
                    percent = [int(found) for found in re.findall(rf"{words[0]} +(\d+)%", terminal.text)]
                    self.assertEqual(percent, sorted(percent))
                    self.assertEqual(percent[-1], 100)
                    if columns == 80:
                        self.assertRegex(lines[-2], r"100% \[#+\] 8.0 MiB of 8.0 MiB  .*/s  ETA 0:00:00  2/2 files$")
                    if words[0] == "import":
                        words = ["import", "--replace", *words[-3:]]
                    else:
                        shutil.rmtree(back)

    def test_names_that_others_have_chosen_reach_no_terminal_as_they_are(self):
        tree = self.folder("tree")
        for name in (b"\x1b[31mred", "w\u00f6rter \u4e16".encode(), b"line\nbreak", b"latin\xf6", "c1\u009b1m".encode()):
            with open(os.path.join(os.fsencode(tree), name), "wb"):
                pass
        self.ctl("import", self.url, self.partition, tree)
        listed = self.ctl("ls", "-l", self.url, self.partition)
        names = {line.split("  ")[-1] for line in listed.splitlines()}
        self.assertLessEqual({r"\x1b[31mred", "w\u00f6rter \u4e16", r"line\x0abreak", r"latin\xf6", r"c1\xc2\x9b1m"}, names)
        red = re.search(r"(0x\S+) .*31mred", listed).group(1)
        self.assertIn(r"\x1b[31mred", self.ctl("stat", self.url, red))

    def test_the_reason_is_there_behind_a_long_path(self):
        tree = self.folder("tree")
        deep = os.path.join(tree, *["d" * 200] * 12)
        os.makedirs(deep)
        os.symlink("x", os.path.join(deep, "file"))
        done = self.try_ctl("import", self.url, self.partition, os.path.join(deep, "missing"))
        self.assertEqual(done.returncode, 9)
        self.assertIn(b" ... ", done.stderr)
        self.assertTrue(done.stderr.endswith(b"/missing: No such file or directory\n"), done.stderr)

    def test_an_import_of_a_directory_that_changes_ends_with_1(self):
        tree = self.folder("tree")
        path = os.path.join(tree, "changing")
        with open(path, "wb") as file:
            file.write(noise(900000, 4))
        ended = threading.Event()

        def change():
            time_ns = 0
            while not ended.is_set():
                time_ns += 1
                os.utime(path, ns=(0, time_ns))

        changing = threading.Thread(target=change)
        changing.start()
        try:
            code = 0
            while code == 0:  # now and then it is read between two changes
                done = self.try_ctl("import", "--replace", self.url, self.partition, tree)
                code = done.returncode
        finally:
            ended.set()
            changing.join()
        self.assertEqual(code, 1, done.stderr)
        self.assertIn(b"changing: it changed while it was read, twice", done.stderr)
        self.assertIn(b"1 changed while they were read", done.stdout)

    def test_without_a_terminal_nothing_is_shown_unless_asked_for(self):
        self.ctl("put", self.url, f"{self.partition}/0x10000", stdin=noise(3 << 20, 1))
        self.ctl("snapshot", self.url, self.partition)
        for words in (
            ("search", self.url, self.partition, "[0-9]{9}", "--regex"),
            ("checksum", self.url, f"{self.partition}/0x10000"),
            ("diff", self.url, self.partition, "1"),
            ("versions", self.url, self.partition),
            ("log", self.url, f"{self.partition}/0x10000"),
            ("merge", self.url, "start"),
        ):
            with self.subTest(words=words):
                self.assertEqual(self.try_ctl(*words).stderr, b"")
                lines = self.try_ctl(*words, "--progress").stderr.decode().splitlines()
                self.assertEqual(lines[-1], f"{words[0]}: 100%")
                self.assertTrue(all(re.fullmatch(rf"{words[0]}: \d+%", line) for line in lines), lines)
                self.assertEqual(self.try_ctl(*words, "--progress", "--quiet").stderr, b"")

    def test_a_reader_that_goes_away_is_told_nothing(self):
        self.ctl("put", self.url, f"{self.partition}/0x10000", stdin=noise(3 << 20, 1))
        for words in (["stat"], ["get"], ["cat"], ["--json", "stat"], ["attr", "ls"], ["log"]):
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run(
                [MUNINNCTL, *words, self.url, f"{self.partition}/0x10000"], stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE
            )
            os.close(writer)
            self.assertEqual((done.returncode, done.stderr), (9, b""), words)
        # Where what was printed is lost otherwise, somebody is.
        asked = [[MUNINNCTL, *words, self.url] for words in (["stat"], ["--json", "stat"], ["--json", "space"])]
        shown = [[MUNINNCTL, *words] for words in (["--help"], ["--version"], ["help"], ["help", "key"], ["help", "get"], ["get", "--help"])]
        told = [[MUNINND, word] for word in ("--help", "--version")]
        told += [[os.path.join(BUILD, "bin", "muninn-bench"), *words] for words in (["--help"], ["nand", "--help"])]
        for code, command in [*((9, command) for command in asked + shown), *((1, command) for command in told)]:
            with self.subTest(command=command), open("/dev/full", "wb") as full:
                done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, code)
                self.assertEqual(done.stderr.count(b"the output can't be written: No space left on device"), 1, done.stderr)

    def test_an_interrupted_merge_is_cancelled_on_the_target(self):
        for number in range(3):
            self.ctl("put", self.url, f"{self.partition}/0x10000", "--replace", stdin=noise(8 << 20, number))
        terminal = Terminal("merge", self.url, "--progress")
        terminal.wait_for(r"merge +\d+%|segments freed")
        self.assertIn(terminal.interrupt(), (130, 0))  # it may just have ended
        self.assertRegex(terminal.text, r"idle: \d+ segments freed")
        self.assertIn("idle", self.ctl("merge", self.url, "progress"))

    def test_watch_fits_on_the_terminal_and_goes_on_until_interrupted(self):
        for number in range(30):
            self.ctl("put", self.url, f"{self.partition}/0x10000", "--replace", stdin=noise(1000 * number, number))
            self.ctl("snapshot", self.url, self.partition, "--name", f"with-a-rather-long-name-{number}")
        self.ctl("snapshot", self.url, 0, "--name", "of-the-device")
        version = json.loads(self.ctl("--json", "versions", self.url, 0))[-1]["version"]
        for what, columns, last in ((self.partition, COLUMNS, "now"), (self.partition, 30, "now"), (0, 30, version)):
            with self.subTest(what=what, columns=columns):
                terminal = Terminal("watch", self.url, what, columns=columns)
                terminal.wait_for(rf"\n +{last} (.|\n)*\n +{last} [^\n]*\n")  # two pictures
                self.assertEqual(terminal.interrupt(), 0)
                pictures = terminal.text.split("\033[H\033[2J")
                self.assertEqual(pictures[0], "")
                for picture in pictures[1:3]:
                    lines = re.sub(r"\033\[[0-9;]*m", "", picture).splitlines()
                    self.assertLess(len(lines), ROWS)
                    self.assertLessEqual(max(map(len, lines)), columns)
                    self.assertRegex(lines[-1], rf"^ +{last} ")
                    if what:
                        self.assertIn("more before these", picture)
        # A pipe gets everything, once.
        lines = self.ctl("watch", self.url, self.partition).splitlines()
        self.assertEqual(len([line for line in lines if "with-a-rather-long-name-" in line]), 30)
        device = self.ctl("watch", self.url, 0)
        for shown in (f"0x{self.partition:x} ", "Versions of the device", f" {version} ", "of-the-device"):
            self.assertIn(shown, device)
        self.ctl("drop", self.url, 0, "of-the-device")

    def test_watch_is_told_as_json(self):
        self.ctl("put", self.url, f"{self.partition}/0x10000", stdin=noise(5000, 1))
        self.ctl("snapshot", self.url, self.partition, "--name", "kept")
        told = json.loads(self.ctl("--json", "watch", self.url, self.partition))
        self.assertEqual([(line["version"], line["name"], line["used"]) for line in told["versions"]], [("1", "kept", 8192), ("now", "", 8192)])
        self.assertNotIn("partitions", told)
        self.ctl("snapshot", self.url, 0, "--name", "all-of-it")
        told = json.loads(self.ctl("--json", "watch", self.url, 0))
        self.assertIn({"partition": f"{self.partition:#x}", "used": 8192}, told["partitions"])
        self.assertGreater(told["device_capacity"], told["device_used"])
        self.assertIn(("all-of-it", None), [(line["name"], line["used"]) for line in told["versions"]])
        self.ctl("drop", self.url, 0, "all-of-it")

    def test_watch_of_the_device_asks_all_partitions(self):
        """Of more than are asked at a time none is left out."""
        made = [next(self.partitions) for _ in range(130)]
        for partition in made:
            self.ctl("mkpart", self.url, partition)
        shown = [line.split()[0] for line in self.ctl("watch", self.url, 0).splitlines() if line.startswith("0x")]
        self.assertEqual(shown, self.ctl("ls", self.url, 0).split())
        self.assertLessEqual({f"{partition:#x}" for partition in made}, set(shown))
        for partition in made:
            self.ctl("rmpart", self.url, partition)


if __name__ == "__main__":
    unittest.main()
