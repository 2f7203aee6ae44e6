# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""`device backup`: a copy of the whole device, made while it serves, and what is left of one that is interrupted."""

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest

from counting import Counting
from harness import BUILD, LIMIT_SECONDS, MUNINNCTL, E2ETest, noise

FSCK = os.path.join(BUILD, "bin", "muninn-fsck")
P, Q = "0x10000", "0x20000"
# A backup of so much takes long enough to be interrupted.
MUCH = 48 << 20
INTERRUPTED, EXISTS, NOT_FOUND, NO_SPACE, CONNECTION, DENIED, TARGET = 130, 4, 3, 5, 6, 7, 8


class DeviceBackup(E2ETest):
    def serve(self, state_dir=None, **options):
        daemon = self.daemon(state_dir, size="256M", **options).start()
        self.admin = os.path.join(daemon.state_dir, "admin")
        return daemon

    def command(self, copy, device="1"):
        return [MUNINNCTL, "device", "backup", device, copy, "--socket", self.admin]

    def back_up(self, copy, device="1"):
        return json.loads(self.ctl("--json", *self.command(copy, device)[1:]))

    def refused(self, code, copy, device="1"):
        done = self.try_ctl(*self.command(copy, device)[1:])
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr.decode()

    def fill(self, daemon):
        self.ctl("mkpart", daemon.url(), P)
        self.ctl("put", daemon.url(), f"{P}/0x10000", stdin=noise(MUCH, 1))
        self.ctl("flush", daemon.url())

    def check_serves(self, daemon):
        self.assertEqual(self.ctl("get", daemon.url(), f"{P}/0x10000", binary=True), noise(MUCH, 1))

    def restore(self, copy):
        """A daemon on a copy."""
        state = self.folder()
        shutil.move(copy, os.path.join(state, "lun1.img"))
        shutil.move(copy + ".nvram", os.path.join(state, "lun1.img.nvram"))
        return self.daemon(state, size="256M").start()

    def until(self, happened):
        """Tries again and again until that has happened; a backup may be quicker than who interrupts it."""
        limit = time.monotonic() + LIMIT_SECONDS
        while not happened():
            self.assertLess(time.monotonic(), limit, "it never happened")

    def begin(self, copy):
        """A backup that has begun to copy, unless it is over already."""
        process = subprocess.Popen(self.command(copy), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        partial = copy + ".partial"
        while process.poll() is None and not (os.path.exists(partial) and os.stat(partial).st_blocks):
            time.sleep(0.001)
        return process

    def ended(self, process):
        """Exit code and message."""
        message = process.communicate(timeout=LIMIT_SECONDS)[1].decode()
        return process.returncode, message

    # ---- what is in it ----

    def write(self, number):
        """Into Q, then into P, so that at every moment Q is as far as P, or one further."""
        for partition in (Q, P):
            self.ctl("put", self.url, f"{partition}/0x10000", "--replace", stdin=b"%08d" % number)

    def counts(self, url):
        return [int(self.ctl("get", url, f"{partition}/0x10000", binary=True)) for partition in (P, Q)]

    def test_a_copy_is_the_device_at_one_instant_while_others_write(self):
        daemon = self.serve()
        self.url = daemon.url()
        for partition in (P, Q):
            self.ctl("mkpart", self.url, partition)
            self.ctl("put", self.url, f"{partition}/0x10000", stdin=b"00000000")
        self.ctl("put", self.url, f"{P}/0x10001", stdin=noise(MUCH, 1))
        self.ctl("snapshot", self.url, P, "--name", "before")
        copy = os.path.join(self.folder(), "copy.img")
        with Counting(self.write) as counting:
            counting.wait_for_more()
            acknowledged = self.counts(self.url)[0]
            told = self.back_up(copy)
            counting.wait_for_more()
        self.assertEqual((told["image"], told["nvram"]), (copy, copy + ".nvram"))
        self.assertGreater(told["bytes"], MUCH)
        self.assertEqual(sorted(os.listdir(os.path.dirname(copy))), ["copy.img", "copy.img.nvram"])
        self.assertIn("nothing is wrong", self.tool(FSCK, copy))
        there = self.restore(copy).url()
        first, second = self.counts(there)
        self.assertIn(second - first, (0, 1))
        self.assertGreaterEqual(first, acknowledged)
        self.assertGreater(self.counts(self.url)[0], first)
        self.assertEqual(self.ctl("get", there, f"{P}/0x10001", binary=True), noise(MUCH, 1))
        self.assertEqual(self.ctl("get", there, f"{P}/0x10000@before", binary=True), b"00000000")

    def test_a_copy_has_the_locks_of_the_device(self):
        daemon = self.serve()
        self.ctl("mkpart", daemon.url(), P)
        self.ctl("retention", daemon.url(), P, "keep-all=24h", "lock-until=2099-01-01T00:00")
        copy = os.path.join(self.folder(), "copy.img")
        self.back_up(copy, "lun1")
        there = self.restore(copy)
        locked = [json.loads(self.ctl("--json", "retention", url, P)) for url in (daemon.url(), there.url())]
        # Never earlier: a lock counts the time that the device is served.
        self.assertGreaterEqual(locked[1]["locked_until"], locked[0]["locked_until"])
        self.assertEqual(locked[1]["keep_all_ms"], locked[0]["keep_all_ms"])
        self.assertEqual(self.try_ctl("retention", there.url(), P, "none").returncode, DENIED)

    # ---- interrupted ----

    def interrupted(self, interrupt, code):
        """Interrupts backups until one was under way; returns its message. Nothing has the final name then."""
        copy = os.path.join(self.folder(), "copy.img")
        found = []

        def happened():
            process = self.begin(copy)
            if process.poll() is None:
                interrupt(process)
            found[:] = self.ended(process)
            if found[0] == 0:
                self.assertTrue(os.path.exists(copy) and os.path.exists(copy + ".nvram"))
                os.unlink(copy)
                os.unlink(copy + ".nvram")
            return found[0] == code

        self.until(happened)
        self.assertFalse(os.path.exists(copy) or os.path.exists(copy + ".nvram"))
        self.copy = copy
        return found[1]

    def test_one_that_is_interrupted_leaves_nothing(self):
        daemon = self.serve()
        self.fill(daemon)
        message = self.interrupted(lambda process: process.send_signal(signal.SIGINT), INTERRUPTED)
        self.assertIn("no backup is left", message)
        self.assertEqual(os.listdir(os.path.dirname(self.copy)), [])
        self.check_serves(daemon)

    def test_one_that_is_killed_leaves_what_the_next_one_takes_over(self):
        daemon = self.serve()
        self.fill(daemon)
        self.interrupted(lambda process: process.kill(), -signal.SIGKILL)
        self.assertEqual(sorted(os.listdir(os.path.dirname(self.copy))), ["copy.img.nvram.partial", "copy.img.partial"])
        daemon.wait_for_line("has ended without a copy", "who asked for the backup has gone")
        self.until(lambda: self.try_ctl(*self.command(self.copy)[1:]).returncode == 0)
        self.assertIn("nothing is wrong", self.tool(FSCK, self.copy))
        self.check_serves(self.restore(self.copy))

    def test_one_that_is_killed_between_its_names_is_kept_whole(self):
        daemon = self.serve()
        self.fill(daemon)
        copy = os.path.join(self.folder(), "copy.img")
        self.back_up(copy)
        os.rename(copy, copy + ".partial")
        for _ in range(2):
            message = self.refused(EXISTS, copy)
            self.assertIn(f"{copy}.nvram is there already, and {copy}.partial", message)
            self.assertIn(f"Rename it to {copy} to have that backup, or remove both", message)
        os.rename(copy + ".partial", copy)
        self.assertEqual(sorted(os.listdir(os.path.dirname(copy))), ["copy.img", "copy.img.nvram"])
        self.assertIn("nothing is wrong", self.tool(FSCK, copy))
        self.check_serves(self.restore(copy))

    def test_an_unfinished_file_is_taken_over_unless_it_is_in_use_or_has_another_name(self):
        self.serve()
        folder = self.folder()
        copy, other = os.path.join(folder, "copy.img"), os.path.join(folder, "other")
        partial = copy + ".partial"
        with open(partial, "wb") as file:
            file.write(b"unfinished")
        os.chmod(partial, 0o644)
        with open(partial, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.assertIn("another backup writes", self.refused(EXISTS, copy))
        os.link(partial, other)
        self.assertIn("no file of your own", self.refused(EXISTS, copy))
        with open(other, "rb") as file:
            self.assertEqual(file.read(), b"unfinished")
        os.unlink(other)
        self.back_up(copy)
        self.assertEqual(sorted(os.listdir(folder)), ["copy.img", "copy.img.nvram"])
        self.assertEqual(os.stat(copy).st_mode & 0o7777, 0o600)
        self.assertIn("nothing is wrong", self.tool(FSCK, copy))

    def test_one_ends_with_the_service(self):
        daemon = self.serve()
        self.fill(daemon)

        def stop_and_start(_):
            self.assertEqual(daemon.restart().running(), True)

        message = self.interrupted(stop_and_start, TARGET)
        self.assertIn("the service stops", message)
        self.assertEqual(os.listdir(os.path.dirname(self.copy)), [])
        self.check_serves(daemon)

    def test_one_ends_with_a_service_that_is_killed(self):
        daemon = self.serve()
        self.fill(daemon)

        def kill_and_start(_):
            daemon.kill()
            daemon.start()

        message = self.interrupted(kill_and_start, CONNECTION)
        # It may have begun to copy before it has answered that it does.
        self.assertRegex(message, "the service (has ended meanwhile|has closed the connection|does not answer)")
        self.assertEqual(os.listdir(os.path.dirname(self.copy)), [])
        self.check_serves(daemon)

    def test_one_ends_when_its_device_is_removed(self):
        daemon = self.serve()
        self.fill(daemon)

        def remove_and_add(_):
            self.ctl("lun", "rm", "1", "--force", "--socket", self.admin)
            self.ctl("reload", "--socket", self.admin)

        message = self.interrupted(remove_and_add, TARGET)
        self.assertIn("the device is closed", message)
        self.assertEqual(os.listdir(os.path.dirname(self.copy)), [])
        self.check_serves(daemon)

    def test_one_that_finds_no_space_says_so(self):
        daemon = self.serve()
        self.fill(daemon)
        place = os.path.join(self.folder(), "small")
        os.mkdir(place)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32M", "none", place], check=False).returncode:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", place], check=True)
        message = self.refused(NO_SPACE, os.path.join(place, "copy.img"))
        self.assertIn("No space left on device", message)
        self.assertEqual(os.listdir(place), [])
        self.check_serves(daemon)

    # ---- refused ----

    def ask_raw(self, files):
        """A request with these files, and its answer."""
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(LIMIT_SECONDS)
            asking.connect(self.admin)
            socket.send_fds(asking, [b'{"do":"device backup","device":"1"}\n'], files)
            answer = b""
            while got := asking.recv(65536):
                answer += got
        return json.loads(answer)

    def test_a_second_one_at_once_is_refused(self):
        daemon = self.serve()
        self.fill(daemon)
        folder = self.folder()

        def happened():
            first = self.begin(os.path.join(folder, "first"))
            second = self.try_ctl(*self.command(os.path.join(folder, "second"))[1:])
            self.assertEqual(self.ended(first)[0], 0)
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))
            return b"a backup of this device is under way" in second.stderr

        self.until(happened)
        self.check_serves(daemon)

    def test_wrong_files_and_devices_are_refused(self):
        daemon = self.serve()
        folder = self.folder()
        copy = os.path.join(folder, "copy.img")
        self.assertIn("there is no LUN 9", self.refused(NOT_FOUND, copy, "9"))
        self.assertIn("no unit is on a device pool", self.refused(NOT_FOUND, copy, "pool"))
        self.assertEqual(os.listdir(folder), [])
        for there in (copy, copy + ".nvram"):
            with open(there, "wb") as file:
                file.write(b"mine")
            self.assertIn("is there already", self.refused(EXISTS, copy))
            with open(there, "rb") as file:
                self.assertEqual(file.read(), b"mine")
            os.unlink(there)
        self.assertIn("No such file", self.refused(9, os.path.join(folder, "none", "copy.img")))
        # A link that somebody has made is not followed.
        victim = os.path.join(folder, "victim")
        with open(victim, "wb") as file:
            file.write(b"mine")
        os.symlink(victim, copy + ".partial")
        self.refused(9, copy)
        with open(victim, "rb") as file:
            self.assertEqual(file.read(), b"mine")
        # Not by muninnctl: no files, and the image itself.
        self.assertIn("lacks the files", self.ask_raw([])["error"]["message"])
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs, open(daemon.image(), "r+b") as image:
            self.assertIn("ok", self.ask_raw([image.fileno(), image.fileno(), theirs.fileno()]))
            ours.settimeout(LIMIT_SECONDS)
            self.assertIn(b"regular files that are empty", ours.recv(4096))
        self.ctl("mkpart", daemon.url(), P)


if __name__ == "__main__":
    unittest.main()
