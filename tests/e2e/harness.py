# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""What end-to-end tests stand on: a muninnd of one's own, and muninnctl. See README.md."""

import functools
import itertools
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import osd
from iscsi import Session

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("MUNINN_BUILD", os.path.join(ROOT, "build")))
MUNINND = os.path.join(BUILD, "bin", "muninnd")
MUNINNCTL = os.path.join(BUILD, "bin", "muninnctl")

# Only a hang gets there.
LIMIT_SECONDS = 120
IQN = "iqn.2014-06.local.muninn:osd"

# A unit with so little before the flash that nearly all of a large object lies on it.
SMALL_ROWS = """[nand]
channels = 1
dies_per_channel = 1
[engine]
rows = 1
segment_pages = 64
[lun 1]
type = osd
size = 256M
"""


def sanitizer_environment():
    """What lets an uninstrumented tgtd load a module that is built with AddressSanitizer."""
    if os.path.basename(BUILD) != "asan":
        return {}
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    # tgtd itself leaks at its end.
    return {"LD_PRELOAD": found.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0"}


def with_index(config, size):
    """The configuration of a Daemon, of devices with the index that MUNINN_INDEX names."""
    index = os.environ.get("MUNINN_INDEX")
    if not index:
        return config
    config = f"[lun 1]\ntype = osd\nsize = {size}\n" if config is None else config
    if "[engine]\n" in config:
        return config.replace("[engine]\n", f"[engine]\nindex = {index}\n", 1)
    return f"[engine]\nindex = {index}\n{config}"


def free_port():
    """A loopback TCP port that nobody has at this moment, and that the kernel gives to nobody who asks for any."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first = int(file.read().split()[0])
    while True:
        port = random.SystemRandom().randrange(10000, first) if first > 10000 else 0
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]


def wait_for_exit(pid):
    """Waits until the process, which need not be a child, is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if not select.select([descriptor], [], [], LIMIT_SECONDS)[0]:
            raise AssertionError(f"process {pid} still runs after {LIMIT_SECONDS} s")
    finally:
        os.close(descriptor)


def noise(length, seed):
    """The same bytes for the same seed, and no page of them like another."""
    return random.Random(seed).randbytes(length)


def crc32c(data):
    """CRC-32C (Castagnoli) of bytes."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def change_superblocks(image, offset, value):
    """Puts bytes into both superblocks of an image (docs/format.md), with the checksum that fits."""
    with open(image, "r+b") as file:
        for at in (0, 32768):
            file.seek(at)
            header = bytearray(file.read(4096))
            header[offset : offset + len(value)] = value
            header[4092:] = crc32c(header[:4092]).to_bytes(4, "little")
            file.seek(at)
            file.write(header)


def children_of(pid):
    """Process IDs of the direct children."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as listing:
        return [int(child) for child in listing.read().split()]


class Daemon:
    """One muninnd. Not started by the constructor."""

    def __init__(self, state_dir, size="256M", config=None, port=None, arguments=(), environment=None):
        """`config`: text of a configuration file; None: the built-in configuration with one unit of `size`."""
        self.state_dir = state_dir
        self.port = port or free_port()
        self.environment = {**os.environ, **sanitizer_environment(), **(environment or {})}
        self.process = None
        self.tgtd_pid = None
        self.output = []
        self.errors = []
        self._ready = None
        self._readers = []
        self.command = [MUNINND, "--state-dir", state_dir, "--port", str(self.port)]
        config = with_index(config, size)
        if config is None:
            self.command += ["--defaults", "--size", size]
        else:
            self.config_path = os.path.join(state_dir, "muninn.conf")
            with open(self.config_path, "w", encoding="utf-8") as file:
                file.write(config)
            self.command += ["--config", self.config_path]
        self.command += list(arguments)

    def url(self, lun=1, account=""):
        return f"iscsi://{account}127.0.0.1:{self.port}/{IQN}/{lun}"

    def image(self, lun=1):
        return os.path.join(self.state_dir, f"lun{lun}.img")

    @staticmethod
    def _read(stream, lines, ready):
        """Collects lines; sets `ready` (may be None) at the line Ready, or at the end."""
        for line in stream:
            lines.append(line.rstrip("\n"))
            if ready and line.startswith("Ready."):
                ready.set()
        stream.close()
        if ready:
            ready.set()

    def launch(self):
        """Starts the process without waiting for anything."""
        self.output = []
        self.errors = []
        self._ready = threading.Event()
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",  # tgtd repeats what initiators call themselves
            env=self.environment,
        )
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self.output, self._ready)),
            threading.Thread(target=self._read, args=(self.process.stderr, self.errors, None)),
        ]
        for reader in self._readers:
            reader.start()
        return self

    def start(self):
        """Starts it and waits until it is ready for logins."""
        self.launch()
        if not self._ready.wait(LIMIT_SECONDS):
            self.kill()
            raise AssertionError("muninnd was not ready in time:\n" + "\n".join(self.errors))
        if not any(line.startswith("Ready.") for line in self.output):
            code = self.wait()
            raise AssertionError(f"muninnd ended with {code}:\n" + "\n".join(self.errors))
        self.tgtd_pid = children_of(self.process.pid)[0]
        return self

    def wait_for_line(self, *texts):
        """Waits until it has said this on stderr, where what tgtd says arrives late, and returns the line."""
        limit = time.monotonic() + LIMIT_SECONDS
        while True:
            for line in self.errors:
                if all(text in line for text in texts):
                    return line
            if time.monotonic() > limit:
                raise AssertionError(f"never said {texts}:\n" + "\n".join(self.errors))
            time.sleep(0.02)

    def wait(self):
        """Waits for the end of the process and of its output; returns the exit code."""
        code = self.process.wait(LIMIT_SECONDS)
        for reader in self._readers:
            reader.join()
        return code

    def run(self):
        """For starts that fail: returns exit code and stderr."""
        self.launch()
        self._ready.wait(LIMIT_SECONDS)
        if self.output:
            self.kill()
            raise AssertionError("muninnd started, which it should not:\n" + "\n".join(self.output))
        return self.wait(), "\n".join(self.errors)

    def session(self, lun=1, **keys):
        """An initiator of iscsi.py that is logged in; `keys` are what it offers."""
        return Session(self.port, IQN, lun, **keys)

    def tgtadm(self, *arguments):
        """Runs tgtadm on this daemon's tgtd, for settings that muninnd leaves alone; what it prints."""
        return subprocess.run(
            ["tgtadm", "--lld", "iscsi", *arguments],
            env={**os.environ, "TGT_IPC_SOCKET": os.path.join(self.state_dir, "control")},
            stdin=subprocess.DEVNULL,
            timeout=LIMIT_SECONDS,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    def sessions(self):
        """The numbers of those whose commands have not all ended."""
        return re.findall(r"Session: (\d+)", self.tgtadm("--mode", "conn", "--op", "show", "--tid", "1"))

    def wait_for_sessions_to_end(self):
        """What a client that was killed had sent still arrives."""
        limit = time.monotonic() + LIMIT_SECONDS
        while self.sessions():
            if time.monotonic() > limit:
                raise AssertionError(f"sessions are still there after {LIMIT_SECONDS} s")
            time.sleep(0.01)

    def running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, number=signal.SIGTERM):
        """Stops it as an administrator would; returns the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def kill(self):
        """kill -9 of muninnd; returns when its tgtd is gone too."""
        tgtd = children_of(self.process.pid) if self.running() else []
        self.process.kill()
        self.wait()
        for pid in tgtd:
            wait_for_exit(pid)

    def restart(self):
        """Stops it cleanly and starts it again."""
        code = self.stop()
        if code != 0:
            raise AssertionError(f"muninnd stopped with {code}:\n" + "\n".join(self.errors))
        return self.start()


class E2ETest(unittest.TestCase):
    """Base class: daemons and folders that go with the test."""

    maxDiff = None

    def folder(self, prefix="state"):
        """A folder of the test's own, removed after it."""
        parent = os.path.join(BUILD, "e2e")
        os.makedirs(parent, exist_ok=True)
        path = tempfile.mkdtemp(prefix=prefix + "-", dir=parent)
        self.addCleanup(shutil.rmtree, path, ignore_errors=True)
        return path

    def daemon(self, state_dir=None, **options):
        """A Daemon, not started yet, that does not outlive the test."""
        daemon = Daemon(state_dir or self.folder(), **options)
        self.addCleanup(lambda: daemon.kill() if daemon.running() else None)
        return daemon

    def try_ctl(self, *arguments, stdin=None):
        """Runs muninnctl; returns the CompletedProcess (bytes). `stdin`: bytes or None."""
        source = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
        return subprocess.run(
            [MUNINNCTL, *map(str, arguments)], capture_output=True, timeout=10 * LIMIT_SECONDS, check=False, **source
        )

    def ctl(self, *arguments, stdin=None, binary=False):
        """Runs muninnctl; returns stdout. Fails the test with its stderr when the exit code is not 0."""
        done = self.try_ctl(*arguments, stdin=stdin)
        self.assertEqual(done.returncode, 0, f"muninnctl {arguments}:\n{done.stderr.decode(errors='replace')}")
        return done.stdout if binary else done.stdout.decode()

    def tool(self, *command):
        """Runs another program; returns its stdout, fails the test when its exit code is not 0."""
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
        )
        self.assertEqual(done.returncode, 0, f"{command}:\n{done.stdout}{done.stderr}")
        return done.stdout


def in_each_version(test):
    """Runs test(self, device, partition) of a OneDaemonTest in OSD-1 and OSD-2, in a session and partition of its own."""

    @functools.wraps(test)
    def in_both(self):
        for version in (1, 2):
            with self.subTest(osd=version), self.shared.session() as session:
                device, partition = osd.Osd(session, version), next(self.partitions)
                device.create_partition(partition)
                test(self, device, partition)

    return in_both


class OneDaemonTest(E2ETest):
    """Base class: `self.shared`, one daemon for all tests of the class, and partitions that no other test uses."""

    DEVICE_SIZE = "256M"

    @classmethod
    def setUpClass(cls):
        cls.holder = cls()
        cls.addClassCleanup(cls.holder.doCleanups)
        cls.shared = cls.holder.daemon(size=cls.DEVICE_SIZE).start()
        cls.partitions = itertools.count(0x10000)
