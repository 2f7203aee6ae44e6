# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""What README.md and docs/ show works as it is shown: every command of the tour, and `make run` itself."""

import glob
import os
import re
import shlex
import signal
import subprocess
import threading
import unittest

from harness import LIMIT_SECONDS, MUNINNCTL, ROOT, E2ETest, children_of, free_port, wait_for_exit

TOUR = re.compile(r"^```sh tour\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUNS_OF_MAKE = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}


def tours():
    """{file: its tour's commands, in order} of README.md and docs/."""
    found = {}
    pages = glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True)
    for path in [os.path.join(ROOT, "README.md"), *sorted(pages)]:
        with open(path, encoding="utf-8") as file:
            commands = "".join(TOUR.findall(file.read()))
        if commands:
            found[os.path.relpath(path, ROOT)] = commands
    return found


class MakeRun:
    """`make run` as a user types it, but with state, port and size of its own. `lines`: what it prints."""

    def __init__(self, state_dir, port, size):
        self.lines = []
        self.ready = threading.Event()
        self.process = subprocess.Popen(
            ["make", "run", f"PORT={port}", f"SIZE={size}", f"RUN_DIR={state_dir}"],
            cwd=ROOT,
            env=RUNS_OF_MAKE,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        if not self.ready.wait(10 * LIMIT_SECONDS) or not self.has("Ready."):
            os.killpg(self.process.pid, signal.SIGKILL)
            self.wait()
            raise AssertionError("make run did not become ready:\n" + "\n".join(self.lines))

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("Ctrl-C"):
                self.ready.set()
        self.process.stdout.close()
        self.ready.set()

    def has(self, start):
        return any(line.startswith(start) for line in self.lines)

    def muninnd_pid(self):
        return children_of(self.process.pid)[0]

    def press_ctrl_c(self):
        """As a terminal does: to everything in the foreground. Returns make's exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.wait()

    def wait(self):
        code = self.process.wait(LIMIT_SECONDS)
        self.reader.join()
        return code


class Running(E2ETest):
    def make_run(self, state_dir, port, size="64M"):
        running = MakeRun(state_dir, port, size)
        self.addCleanup(lambda: running.press_ctrl_c() if running.process.poll() is None else None)
        return running

    def test_make_run_serves_until_ctrl_c_and_keeps_what_it_holds(self):
        state_dir, port = self.folder(), free_port()
        first = self.make_run(state_dir, port)
        url = next(line for line in first.lines if line.startswith("LUN 1 osd ")).split()[3]
        self.assertIn(f"127.0.0.1:{port}/", url)
        self.ctl("mkpart", url, "0x10000")
        self.ctl("put", url, "0x10000/0x10000", stdin=b"kept")
        muninnd = first.muninnd_pid()
        # make ends by the signal, too, but only after what it has started.
        self.assertIn(first.press_ctrl_c(), (0, 130, -signal.SIGINT), first.lines)
        self.assertTrue(any("closed, everything is stable" in line for line in first.lines), first.lines)
        wait_for_exit(muninnd)

        second = self.make_run(state_dir, port)
        self.assertEqual(self.ctl("cat", url, "0x10000/0x10000", binary=True), b"kept")
        os.kill(second.muninnd_pid(), signal.SIGINT)
        self.assertEqual(second.wait(), 0, second.lines)

    def test_the_commands_that_it_proposes_work(self):
        running = self.make_run(self.folder(), free_port(), size="4G")
        begin = next(number for number, line in enumerate(running.lines) if line.startswith("Ready."))
        end = next(number for number, line in enumerate(running.lines) if line.startswith("Ctrl-C"))
        proposed = [line for line in running.lines[begin + 1 : end] if line.strip()]
        self.assertGreaterEqual(len(proposed), 3)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join(proposed)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=10 * LIMIT_SECONDS,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("MUNINN", done.stdout)


class Tour(E2ETest):
    """Every command of the tours, in order, in one shell, against a fresh target; only the port and the scratch folder
    are others."""

    def run_tour(self, commands):
        """Output of a tour's commands in one shell that ends at the first failure."""
        daemon = self.daemon(size="8G").start()
        script = commands.replace(":3260/", f":{daemon.port}/")
        script = script.replace("/tmp/", self.folder("tour") + "/")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=10 * LIMIT_SECONDS,
            check=False,
        )
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
        return done.stdout, done.stderr

    def test_every_command_of_every_tour_works(self):
        self.assertIn("README.md", tours())
        for path, commands in tours().items():
            if path != "README.md":
                with self.subTest(path):
                    self.run_tour(commands)

    def test_the_tour_of_the_readme_shows_what_it_promises(self):
        output, errors = self.run_tour(tours()["README.md"])
        for expected in (
            r"(?m)^vendor +MUNINN$",
            r"(?m)^0x10000$",
            r"(?m)^thought and memory\nfly over the world$",
            r"(?m)^\s*a raven$",
            r"(?m)^identical$",
            r"(?m)^exit code 3$",
        ):
            self.assertRegex(output, expected)
        self.assertRegex(errors, r"(?m)^muninnctl: .*0x10000/0x10004")

    def test_no_command_of_the_readme_is_left_out_of_the_tour(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            text = file.read()
        outside = TOUR.sub("", text)
        self.assertNotRegex(outside, r"(?m)^muninnctl ")


class Pages(unittest.TestCase):
    """Commands whose places are for the reader to fill in: their verbs and options are those that there are."""

    def commands(self):
        for path in glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            blocks = re.findall(r"(?ms)^ *```.*?^ *```$", text) + re.findall(r"(?m)^    .*$", text)
            for part in re.findall(r"(?m)(?:^ *|[$|] )(muninnctl [a-z][^|;&\n]*)", "\n".join(blocks)):
                yield os.path.relpath(path, ROOT), part

    def test_every_command_of_the_pages_is_understood(self):
        count = 0
        for path, command in self.commands():
            words = shlex.split(re.sub(r"\s[<>].*", "", command), comments=True)[1:]
            if words[0] == "VERB":
                continue
            with self.subTest(path=path, command=command):
                done = subprocess.run([MUNINNCTL, *words, "--help"], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"muninnctl {words[0]} ", done.stdout)
                count += 1
        self.assertGreater(count, 50)


if __name__ == "__main__":
    unittest.main()
