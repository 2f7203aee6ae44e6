# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""put, import and export that are interrupted or lose their connection: what is left, and what they say of it."""

import os
import re
import select
import signal
import subprocess
import time
import unittest

import trees
from harness import LIMIT_SECONDS, MUNINNCTL, E2ETest, noise

P = 0x10000
ADDRESS = f"{P:#x}/0x10000"
FILES = 3000


class Interrupted(E2ETest):
    def setUp(self):
        self.device = self.daemon(size="512M").start()
        self.url = self.device.url()

    def begin(self, *words, **pipes):
        """A muninnctl that runs."""
        process = subprocess.Popen([MUNINNCTL, *map(str, words)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, **pipes)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def end(self, process):
        """The exit code and what it said."""
        said = process.stderr.read().decode()
        return process.wait(LIMIT_SECONDS), said

    def wait_for(self, condition):
        limit = time.monotonic() + LIMIT_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.001)

    @staticmethod
    def reads_input(process):
        """It waits for standard input: read(2) is system call 0."""
        with open(f"/proc/{process.pid}/syscall", encoding="ascii") as file:
            return file.read().startswith("0 0x0 ")

    def drop_connections(self):
        """As a network does it."""
        shown = subprocess.run(
            ["tgtadm", "--lld", "iscsi", "--mode", "conn", "--op", "show", "--tid", "1"],
            env={**os.environ, "TGT_IPC_SOCKET": os.path.join(self.device.state_dir, "control")},
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        for session in re.findall(r"Session: (\d+)", shown):
            self.device.tgtadm("--mode", "conn", "--op", "delete", "--tid", "1", "--sid", session, "--cid", "0")

    # ---- put ----

    def replace_until_it_waits(self):
        """A --replace that has given up the old content, and waits for more of the new one."""
        self.ctl("mkpart", self.url, P)
        self.ctl("put", self.url, ADDRESS, stdin=noise(5 << 20, 1))
        process = self.begin("put", self.url, ADDRESS, "--replace", stdin=subprocess.PIPE)
        process.stdin.write(noise(12 << 20, 2))
        process.stdin.flush()
        self.wait_for(lambda: self.reads_input(process))
        self.assertEqual(len(self.ctl("versions", self.url, P).splitlines()), 1)
        return process

    def assert_old_content(self):
        self.assertTrue(self.ctl("get", self.url, ADDRESS, binary=True) == noise(5 << 20, 1))
        self.assertEqual(self.ctl("versions", self.url, P), "")

    def test_a_replacement_that_is_interrupted_leaves_the_old_content(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.replace_until_it_waits() if number == signal.SIGINT else self.again()
            process.send_signal(number)
            code, said = self.end(process)
            process.stdin.close()
            back = f"muninnctl: put: {ADDRESS} has its old content again\n"
            self.assertEqual((code, said), (130, "muninnctl: put: interrupted\n" + back))
            self.assert_old_content()

    def again(self):
        self.ctl("rmpart", self.url, P, "--contents")
        return self.replace_until_it_waits()

    def test_a_replacement_that_loses_its_connection_leaves_the_old_content(self):
        process = self.replace_until_it_waits()
        self.drop_connections()
        process.stdin.close()
        code, said = self.end(process)
        self.assertEqual(code, 6, said)
        self.assertIn(f"put: {ADDRESS} has its old content again", said)
        self.assert_old_content()

    def test_a_replacement_that_is_killed_leaves_a_version_with_the_old_content(self):
        process = self.replace_until_it_waits()
        process.kill()
        process.wait(LIMIT_SECONDS)
        process.stdin.close()
        name = re.search(r"before-put-of-0x10000-\S+", self.ctl("versions", self.url, P)).group()
        self.ctl("rollback", self.url, ADDRESS, name)
        self.ctl("drop", self.url, P, name)
        self.assert_old_content()

    def test_a_replacement_that_succeeds_leaves_no_version(self):
        process = self.replace_until_it_waits()
        process.stdin.close()
        self.assertEqual(self.end(process)[0], 0)
        self.assertTrue(self.ctl("get", self.url, ADDRESS, binary=True) == noise(12 << 20, 2))
        self.assertEqual(self.ctl("versions", self.url, P), "")

    # ---- import ----

    def import_until(self, stored):
        """An import that has stored so many files, and has many more."""
        source = self.folder("source")
        for number in range(FILES):
            trees.write_file(os.path.join(source, f"{number:05}"), b"%d" % number)
        reader, writer = os.pipe()
        process = self.begin("import", self.url, P, source, "--log", f"/dev/fd/{writer}", pass_fds=[writer])
        os.close(writer)
        self.addCleanup(os.close, reader)
        log = b""
        while log.count(b"\n") < stored:
            self.assertTrue(select.select([reader], [], [], LIMIT_SECONDS)[0])
            log += os.read(reader, 100)
        return process, source

    def test_an_import_that_is_interrupted_leaves_nothing(self):
        for made in (False, True):
            if made:
                self.ctl("mkpart", self.url, P)
            process, _ = self.import_until(50)
            process.send_signal(signal.SIGINT)
            code, said = self.end(process)
            self.assertEqual(code, 130, said)
            left = r"muninnctl: import: nothing of it is left; objects removed: \d+\n$"
            self.assertRegex(said, r"^muninnctl: import: interrupted\n" + left)
            self.assertEqual(self.ctl("ls", self.url).split(), [f"{P:#x}"] if made else [])
        self.assertEqual(self.ctl("ls", self.url, P), "")

    def test_an_import_that_loses_its_connection_leaves_nothing(self):
        process, source = self.import_until(50)
        self.drop_connections()
        code, said = self.end(process)
        self.assertEqual(code, 6, said)
        self.assertIn("import: nothing of it is left; objects removed: ", said)
        self.assertEqual(self.ctl("ls", self.url), "")
        self.ctl("import", self.url, P, source)

    def test_an_import_without_a_target_to_tidy_up_says_what_is_left_and_the_next_one_removes_it(self):
        process, source = self.import_until(50)
        self.device.kill()
        code, said = self.end(process)
        self.assertEqual(code, 6, said)
        self.assertIn("import: objects of it are left; `import --clean` into the same partition removes them", said)
        self.device.start()
        self.assertGreaterEqual(len(self.ctl("ls", self.url, P).split()), 50)
        self.ctl("import", self.url, P, source, "--clean")
        self.assertEqual(len(self.ctl("ls", self.url, P).split()), FILES + 1)

    # ---- export ----

    def test_an_export_that_is_interrupted_leaves_whole_files_under_their_names(self):
        source = self.folder("source")
        sizes = [1000] * 50 + [128 << 20]
        for number, size in enumerate(sizes):
            trees.write_file(os.path.join(source, f"{number:03}"), noise(size, number))
        self.ctl("import", self.url, P, source)
        for number in (signal.SIGINT, signal.SIGKILL):
            target = os.path.join(self.folder("target"), "tree")
            process = self.begin("export", self.url, P, target)
            self.wait_for(lambda: os.path.exists(os.path.join(target, "050.partial")))
            process.send_signal(number)
            code, said = self.end(process)
            left = os.listdir(target)
            partial = [name for name in left if name.endswith(".partial")]
            if number == signal.SIGINT:
                self.assertEqual(code, 130, said)
                self.assertRegex(said, r"export: .* has \d+ files of it, each whole; the others are missing\n$")
                self.assertEqual(partial, [])
            for name in set(left) - set(partial):
                with open(os.path.join(target, name), "rb") as file:
                    self.assertTrue(file.read() == noise(sizes[int(name)], int(name)), name)
            self.assertNotIn("050", left)


if __name__ == "__main__":
    unittest.main()
