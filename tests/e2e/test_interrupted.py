# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""drop, put, import and export that are interrupted or lose their connection: what is left, and what they say of it."""

import contextlib
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

import iscsi
import tasks
import trees
from harness import LIMIT_SECONDS, MUNINNCTL, E2ETest, noise

CONNECTION = 6
P = 0x10000
ADDRESS = f"{P:#x}/0x10000"
FILES = 3000


class Between:
    """Between muninnctl and the target. The nth command arrives, then `happens` is called, and without one the
    connection breaks instead of the answer. Later connections are whole."""

    def __init__(self, device, nth, happens=None):
        self.device = device
        self.left = nth
        self.happens = happens
        self.tag = None  # of the command without an answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.threads = [threading.Thread(target=self.serve)]
        self.threads[0].start()

    def url(self):
        return self.device.url().replace(str(self.device.port), str(self.listener.getsockname()[1]), 1)

    def close(self):
        """Call it when muninnctl has ended."""
        self.listener.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(LIMIT_SECONDS)
        self.listener.close()

    def serve(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            try:
                target = socket.create_connection(("127.0.0.1", self.device.port))
            except ConnectionRefusedError:
                client.close()
                continue
            for ends in ((client, target), (target, client)):
                self.threads.append(threading.Thread(target=self.carry, args=ends))
                self.threads[-1].start()

    def carry(self, source, sink):
        with source.makefile("rb") as stream, contextlib.suppress(OSError):
            while (header := stream.read(iscsi.BHS_BYTES)) and not self.cuts_at(header[0] & 0x3F, header[16:20]):
                sink.sendall(header + stream.read(header[4] * 4 + (int.from_bytes(header[5:8], "big") + 3 & ~3)))
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cuts_at(self, opcode, tag):
        if opcode == iscsi.COMMAND:
            self.left -= 1
            if self.left == 0 and self.happens:
                self.happens()
            elif self.left == 0:
                self.tag = tag
        return opcode in (iscsi.RESPONSE, iscsi.DATA_IN) and tag == self.tag


class Late(Between):
    """The nth command stays on its way while the connection breaks for muninnctl. deliver() brings it to the target."""

    def __init__(self, device, nth):
        self.target = self.late = None
        self.first_commands = []  # of each session: its ISID, and the command's task attribute
        super().__init__(device, nth)

    def carry(self, source, sink):
        isid = None
        with source.makefile("rb") as stream, contextlib.suppress(OSError):
            while header := stream.read(iscsi.BHS_BYTES):
                pdu = header + stream.read(header[4] * 4 + (int.from_bytes(header[5:8], "big") + 3 & ~3))
                opcode = pdu[0] & 0x3F
                if opcode == iscsi.LOGIN:
                    isid = pdu[8:14]
                elif opcode == iscsi.COMMAND and isid:
                    self.first_commands.append((isid, pdu[1] & 7))
                    isid = None
                if self.cuts_at(opcode, pdu[16:20]):
                    self.target, self.late = sink, pdu
                    source.shutdown(socket.SHUT_RDWR)
                    return
                if source is not self.target:
                    sink.sendall(pdu)
                elif (opcode, pdu[16:20]) == (iscsi.RESPONSE, self.late[16:20]):
                    break
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cuts_at(self, opcode, tag):
        self.left -= opcode == iscsi.COMMAND
        return opcode == iscsi.COMMAND and self.left == 0

    def deliver(self):
        """Returns when the target has answered the command, or has closed its connection before."""
        with contextlib.suppress(OSError):
            self.target.sendall(self.late)
        self.close()


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
        """The exit code and what it said. Its standard input stays as it is, which communicate() would close."""
        process.stdin, kept = None, process.stdin
        said = process.communicate(timeout=LIMIT_SECONDS)[1].decode()
        process.stdin = kept
        return process.returncode, said

    def wait_for(self, condition):
        limit = time.monotonic() + LIMIT_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.001)

    @staticmethod
    def waits_for_pipe(process):
        """It waits in a system call whose first argument is a pipe: it reads its input, or writes its log."""
        with open(f"/proc/{process.pid}/syscall", encoding="ascii") as file:
            words = file.read().split()
        with contextlib.suppress(FileNotFoundError, ValueError):
            return len(words) > 1 and os.readlink(f"/proc/{process.pid}/fd/{int(words[1], 16)}").startswith("pipe:")
        return False

    def drop_connections(self):
        """As a network does it."""
        for session in self.device.sessions():
            self.device.tgtadm("--mode", "conn", "--op", "delete", "--tid", "1", "--sid", session, "--cid", "0")

    # ---- drop ----

    def test_drop_tells_what_ended_before_the_connection_did(self):
        self.ctl("mkpart", self.url, P)
        lengths = set()
        for nth in range(1, 100):
            for _ in range(4):
                self.ctl("snapshot", self.url, P)
            numbers = self.versions()
            between = Between(self.device, nth)
            done = self.try_ctl("--json", "drop", between.url(), P, "..", "--yes")
            between.close()
            told = [line["version"] for line in json.loads(done.stdout or "[]")]
            left = self.versions()
            gone = [number for number in numbers if number not in left]
            if done.returncode == 0:
                break
            self.assertEqual(done.returncode, CONNECTION, (nth, done.stderr))
            # The last one's answer may have been lost.
            self.assertIn(told, (gone, gone[:-1]), nth)
            lengths.add(len(told))
            self.ctl("drop", self.url, P, "..", "--yes")
        self.assertEqual((done.returncode, told, left), (0, numbers, []))
        self.assertEqual(lengths, {0, 1, 2, 3})

    def versions(self):
        return [version["version"] for version in json.loads(self.ctl("--json", "versions", self.url, P))]

    # ---- put ----

    def replace_until_it_waits(self):
        """A --replace that has given up the old content, and waits for more of the new one."""
        self.ctl("mkpart", self.url, P)
        self.ctl("put", self.url, ADDRESS, stdin=noise(5 << 20, 1))
        process = self.begin("put", self.url, ADDRESS, "--replace", stdin=subprocess.PIPE)
        process.stdin.write(noise(12 << 20, 2))
        process.stdin.flush()
        self.wait_for(lambda: self.waits_for_pipe(process))
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
        self.device.wait_for_sessions_to_end()
        name = re.search(r"before-put-of-0x10000-\S+", self.ctl("versions", self.url, P)).group()
        self.ctl("rollback", self.url, ADDRESS, name)
        self.ctl("drop", self.url, P, name)
        self.assert_old_content()

    def test_a_piece_that_arrives_late_does_not_change_the_old_content(self):
        old, new = noise(400 << 10, 1), noise(400 << 10, 2)
        self.ctl("mkpart", self.url, P)
        self.ctl("put", self.url, ADDRESS, stdin=old)
        late = Late(self.device, 60)
        process = self.begin("put", late.url(), ADDRESS, "--replace", "--chunk", "4K", stdin=subprocess.PIPE)
        said = process.communicate(new, timeout=LIMIT_SECONDS)[1].decode()
        late.deliver()
        self.assertEqual(process.returncode, CONNECTION, said)
        self.assertIn(f"put: {ADDRESS} has its old content again", said)
        self.assertTrue(self.content() == old)
        # The second session takes the place of the first one, and waits for what has come before.
        isid = late.first_commands[0][0]
        self.assertEqual(late.first_commands, [(isid, tasks.SIMPLE), (isid, tasks.ORDERED)])

    def replace_through(self, between, new):
        """The exit code and what it said."""
        process = self.begin("put", between.url(), ADDRESS, "--replace", "--chunk", "128K", stdin=subprocess.PIPE)
        self.replacing = process
        said = process.communicate(new, timeout=LIMIT_SECONDS)[1].decode()
        between.close()
        return process.returncode, said

    def drop_versions(self):
        """How many a put has left."""
        lines = self.ctl("versions", self.url, P).splitlines()
        for line in lines:
            self.ctl("drop", self.url, P, re.search(r"before-put-of-0x10000-\S+", line).group())
        return len(lines)

    def content(self):
        return self.ctl("get", self.url, ADDRESS, binary=True)

    def test_a_replacement_that_misses_any_answer_leaves_the_old_content(self):
        old, new = noise(700 << 10, 1), noise(900 << 10, 2)
        self.ctl("mkpart", self.url, P)
        self.ctl("put", self.url, ADDRESS, stdin=old)
        left = 0
        for nth in range(1, 100):
            code, said = self.replace_through(Between(self.device, nth), new)
            if code == 0:
                break
            self.assertEqual(code, 6, said)
            self.assertTrue(self.content() == old, (nth, said))
            left += self.drop_versions()
        # Of a version whose making nobody has told it, it does not know.
        self.assertLessEqual(left, 1)
        # Each of the eight pieces, and what comes before and behind them.
        self.assertGreater(nth, 10)
        self.assertTrue(self.content() == new)
        self.assertEqual(self.drop_versions(), 0)

    def test_a_replacement_that_is_interrupted_at_any_time_leaves_one_content_and_no_version(self):
        old, new = noise(700 << 10, 1), noise(900 << 10, 2)
        self.ctl("mkpart", self.url, P)
        self.ctl("put", self.url, ADDRESS, stdin=old)
        codes = []
        for nth in range(1, 100):
            between = Between(self.device, nth, lambda: self.replacing.send_signal(signal.SIGINT))
            code, said = self.replace_through(between, new)
            codes.append(code)
            if between.left > 0:
                break
            self.assertIn(code, (130, -signal.SIGINT, 0), said)
            self.assertTrue(self.content() == (new if code == 0 else old), (nth, said))
            self.assertEqual(self.drop_versions(), 0, (nth, said))
            if code == 0:
                self.ctl("put", self.url, ADDRESS, "--replace", stdin=old)
        # Most of the eight pieces: on a busy machine one may be answered before the signal comes.
        # The version goes behind them.
        self.assertGreater(codes.count(130), 4)
        self.assertEqual(codes[-2:], [0, 0])

    def test_a_put_whose_object_somebody_removes_says_that_it_is_gone(self):
        self.ctl("mkpart", self.url, P)
        process = self.begin("put", self.url, ADDRESS, stdin=subprocess.PIPE)
        process.stdin.write(noise(12 << 20, 2))
        process.stdin.flush()
        self.wait_for(lambda: self.waits_for_pipe(process))
        self.ctl("rm", self.url, ADDRESS)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(noise(12 << 20, 2))
            process.stdin.close()
        code, said = self.end(process)
        self.assertEqual(code, 3)
        self.assertTrue(said.endswith(f"muninnctl: put: {ADDRESS} is gone; somebody else has removed it\n"), said)

    def test_a_put_into_an_object_that_is_interrupted_says_that_parts_of_it_stay(self):
        self.ctl("mkpart", self.url, P)
        self.ctl("put", self.url, ADDRESS, stdin=noise(1 << 20, 1))
        process = self.begin("put", self.url, ADDRESS, "--offset", "1M", stdin=subprocess.PIPE)
        process.stdin.write(noise(12 << 20, 2))
        process.stdin.flush()
        self.wait_for(lambda: self.waits_for_pipe(process))
        process.send_signal(signal.SIGTERM)
        keeps = f"muninnctl: put: {ADDRESS} keeps what of it has arrived\n"
        self.assertEqual(self.end(process), (130, "muninnctl: put: interrupted\n" + keeps))
        process.stdin.close()
        self.assertTrue(self.content()[: 1 << 20] == noise(1 << 20, 1))

    def test_a_put_behind_the_beginning_keeps_what_somebody_else_stores_meanwhile(self):
        self.ctl("mkpart", self.url, P)
        theirs, made = noise(200, 1), 0

        def happens():
            results.append(self.try_ctl("put", self.url, ADDRESS, stdin=theirs).returncode)

        for ours in (b"", noise(5, 2), noise(3 << 20, 2)):
            results, nth = [None], 0
            # Between any two commands, until there are no more.
            while results:
                results, nth = [], nth + 1
                between = Between(self.device, nth, happens)
                done = self.try_ctl("put", between.url(), ADDRESS, "--offset", 100, stdin=ours)
                between.close()
                self.assertEqual((done.returncode, done.stderr), (0, b""), nth)
                wanted = theirs if results == [0] else bytes(100 if ours else 0)
                wanted = wanted[:100] + ours + wanted[100 + len(ours) :]
                self.assertTrue(self.ctl("get", self.url, ADDRESS, binary=True) == wanted, nth)
                self.ctl("rm", self.url, ADDRESS)
                made += results == [0]
        self.assertGreater(made, 6)

    def test_an_append_that_is_interrupted_says_how_much_stays(self):
        self.ctl("mkpart", self.url, P)
        self.ctl("put", self.url, ADDRESS, stdin=b"begin")
        process = self.begin("append", self.url, ADDRESS, stdin=subprocess.PIPE)
        process.stdin.write(noise(5 << 20, 2)[:-1])
        process.stdin.flush()
        self.wait_for(lambda: self.waits_for_pipe(process))
        process.send_signal(signal.SIGINT)
        stays = f"muninnctl: append: {ADDRESS} has {4 << 20} bytes of it or more, from offset 5 on\n"
        self.assertEqual(self.end(process), (130, "muninnctl: append: interrupted\n" + stays))
        process.stdin.close()
        self.assertTrue(self.content() == b"begin" + noise(5 << 20, 2)[: 4 << 20])

    def test_a_replacement_that_succeeds_leaves_no_version(self):
        process = self.replace_until_it_waits()
        process.stdin.close()
        self.assertEqual(self.end(process)[0], 0)
        self.assertTrue(self.ctl("get", self.url, ADDRESS, binary=True) == noise(12 << 20, 2))
        self.assertEqual(self.ctl("versions", self.url, P), "")

    # ---- get ----

    def test_a_get_that_is_interrupted_leaves_nothing_beside_the_old_file(self):
        self.ctl("mkpart", self.url, P)
        self.ctl("put", self.url, ADDRESS, stdin=noise(4 << 20, 1))
        target = os.path.join(self.folder("target"), "file")
        trees.write_file(target, b"old")
        for number in (signal.SIGINT, signal.SIGTERM):
            between = Between(self.device, 20, lambda: process.send_signal(number))
            process = self.begin("get", between.url(), ADDRESS, target, "--chunk", "64K", "--queue-depth", "1")
            self.assertEqual(self.end(process), (130, "muninnctl: get: interrupted\n"))
            between.close()
            self.assertEqual(os.listdir(os.path.dirname(target)), ["file"])
            with open(target, "rb") as file:
                self.assertEqual(file.read(), b"old")

    # ---- import ----

    def interrupted_import(self, happens):
        """The exit code of an import to which something happens while its command 500 is on the way, what it said,
        and the folder of its files, for each of which there is a command at least."""
        source = self.folder("source")
        for number in range(FILES):
            trees.write_file(os.path.join(source, f"{number:05}"), b"%d" % number)
        between = Between(self.device, 500, lambda: happens(process))
        process = self.begin("import", between.url(), P, source)
        code, said = self.end(process)
        between.close()
        return code, said, source

    def assert_goes_on(self, source, most):
        """The same command stores the rest alone, at most so many files, and nothing else is left."""
        told = json.loads(self.ctl("--json", "import", self.url, P, source))
        files = len(os.listdir(source))
        self.assertEqual(told["added"] + told["resumed"], files)
        self.assertLessEqual(told["added"], most)
        self.assertLessEqual(told["sent_bytes"], 4 * told["added"])
        self.assertEqual(len(self.ctl("ls", self.url, P).split()), files + 1)
        target = os.path.join(self.folder("target"), "tree")
        self.ctl("export", self.url, P, target)
        self.assertEqual(trees.differences(trees.describe(source), trees.describe(target)), [])

    def test_an_import_that_is_interrupted_goes_on(self):
        stays = r"muninnctl: import: at least (\d+) files of it are there and stay\. The same command goes on with them\.\n"
        for number in (signal.SIGINT, signal.SIGTERM):
            code, said, source = self.interrupted_import(lambda process: process.send_signal(number))
            self.assertEqual(code, 130, said)
            self.assertRegex(said, r"^muninnctl: import: interrupted\n" + stays)
            self.assertIn(f"`muninnctl import {P:#x} --clean`, without a directory, removes them.", said)
            stored = int(re.search(stays, said).group(1))
            self.assertGreater(stored, 300)
            self.assert_goes_on(source, FILES - stored)
            self.ctl("rmpart", self.url, P, "--contents")

    def test_an_import_that_is_killed_at_any_time_goes_on(self):
        source = self.folder("source")
        for number in range(500):
            trees.write_file(os.path.join(source, f"{number:05}"), b"%04d" % number)
        for nth in (1, 2, 3, 4, 5, 9, 20, 100, 300, 400, 500):
            between = Between(self.device, nth, lambda: process.kill())
            process = self.begin("import", between.url(), P, source)
            code, said = self.end(process)
            between.close()
            self.assertEqual(code, -signal.SIGKILL, said)
            self.device.wait_for_sessions_to_end()
            # Behind each answer that came there is a file; the target goes on with what it has got.
            self.assert_goes_on(source, 500 - max(nth - 200, 0))
            self.ctl("rmpart", self.url, P, "--contents")

    def test_what_an_interrupted_import_has_left_can_be_removed(self):
        self.ctl("mkpart", self.url, P)
        self.ctl("put", self.url, ADDRESS, stdin=b"somebody's")
        self.interrupted_import(lambda process: process.send_signal(signal.SIGINT))
        left = len(self.ctl("ls", self.url, P).split()) - 1
        self.assertGreater(left, 300)
        self.assertEqual(self.ctl("import", self.url, P, "--clean"), f"{left} old objects removed\n")
        self.assertEqual(self.ctl("ls", self.url, P).split(), [ADDRESS])
        self.assertEqual(self.try_ctl("import", self.url, P).returncode, 2)

    def test_an_import_that_has_stored_nothing_leaves_no_partition(self):
        source, told = self.folder("source"), 0
        trees.write_file(os.path.join(source, "file"), b"content")
        for nth in range(1, 9):
            between = Between(self.device, nth, lambda: process.send_signal(signal.SIGINT))
            process = self.begin("import", between.url(), P, source)
            code, said = self.end(process)
            between.close()
            if "import: nothing of it is there\n" in said:
                told += 1
                self.assertEqual((code, self.ctl("ls", self.url)), (130, ""))
            self.try_ctl("rmpart", self.url, P, "--contents")
        self.assertGreater(told, 0)

    def test_an_import_that_is_interrupted_while_nobody_reads_its_log_goes_on(self):
        source = self.folder("source")
        for number in range(200):
            trees.write_file(os.path.join(source, f"{number:05}"), b"%d" % number)
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        process = self.begin("import", self.url, P, source, "--log", f"/dev/fd/{writer}", pass_fds=[writer])
        os.close(writer)
        self.wait_for(lambda: self.waits_for_pipe(process))
        process.send_signal(signal.SIGINT)
        code, said = self.end(process)
        self.assertEqual(code, 130, said)
        self.assertRegex(said, r"^muninnctl: import: interrupted\nmuninnctl: import: at least \d+ files of it are there")
        self.assertIn("; resumed: ", self.ctl("import", self.url, P, source))

    def test_an_import_that_loses_its_connection_or_its_target_goes_on(self):
        for happens in (self.drop_connections, self.device.kill):
            code, said, source = self.interrupted_import(lambda _, happens=happens: happens())
            self.assertEqual(code, 6, said)
            self.assertIn(" files of it are there and stay. The same command goes on with them.", said)
            if happens == self.device.kill:
                self.device.start()
            self.assert_goes_on(source, FILES - 300)
            self.ctl("rmpart", self.url, P, "--contents")

    # ---- info ----

    def test_info_that_misses_any_answer_fails(self):
        for number in range(3):
            self.ctl("mkpart", self.url, P + number)
            self.ctl("put", self.url, f"{P + number}/0x10000", stdin=noise(4096, number))
        for nth in range(1, 100):
            between = Between(self.device, nth)
            done = self.try_ctl("info", between.url())
            between.close()
            if done.returncode == 0:
                break
            self.assertEqual(done.returncode, 6)
            self.assertIn(b"iSCSI session: ", done.stderr)
        self.assertGreater(nth, 4)
        self.assertIn(b"live                 12288 ", done.stdout)

    # ---- export ----

    def test_an_export_that_is_interrupted_leaves_whole_files_and_goes_on(self):
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
            self.assertIn(".muninn-export.partial", partial)
            if number == signal.SIGINT:
                self.assertEqual(code, 130, said)
                self.assertRegex(said, r"export: .* has \d+ files of it, each whole\. The same command goes on with the others\.\n$")
                self.assertEqual(len(partial), 1)
            for name in set(left) - set(partial):
                with open(os.path.join(target, name), "rb") as file:
                    self.assertTrue(file.read() == noise(sizes[int(name)], int(name)), name)
            self.assertNotIn("050", left)
            told = json.loads(self.ctl("--json", "export", self.url, P, target))
            self.assertEqual((told["files"], told["resumed"]), (51, 50))
            self.assertEqual(trees.differences(trees.describe(source), trees.describe(target)), [])

    def test_an_export_that_is_killed_at_any_time_goes_on(self):
        source = os.path.join(self.folder("source"), "tree")
        trees.make_odd(source)
        self.ctl("import", self.url, P, source)
        wanted = trees.without_set_id_bits(trees.describe(source))
        codes = []
        for nth in range(1, 200, 7):
            target = os.path.join(self.folder("target"), "tree")
            between = Between(self.device, nth, lambda: process.kill())
            process = self.begin("export", between.url(), P, target)
            codes.append(self.end(process)[0])
            between.close()
            if codes[-1] == 0:
                break
            self.assertEqual(codes[-1], -signal.SIGKILL)
            told = json.loads(self.ctl("--json", "export", self.url, P, target))
            self.assertGreaterEqual(told["resumed"], max(nth - 100, 0))
            self.assertEqual(trees.differences(wanted, trees.describe(target)), [])
        self.assertEqual(codes[-1], 0)
        self.assertGreater(len(codes), 5)


if __name__ == "__main__":
    unittest.main()
