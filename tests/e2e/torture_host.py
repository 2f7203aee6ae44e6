# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""The host that torture.py plays: a file system that can run full or fail at once, a drive that fails, a clock that
jumps, little memory."""

import contextlib
import ctypes
import errno
import fcntl
import functools
import glob
import mmap
import os
import struct
import subprocess
import tempfile
import time

from harness import BUILD, ROOT, sanitizer_environment

FULL_MAY_BE, ERRORS_MAY_BE = 1, 2  # flags: what initiators may be answered
FLAGS, HOST_FAILURES, CLOCK_OFFSET, DICE = 0, 1, 4, 5
READ_ERRORS, WRITE_ERRORS, SYNC_ERRORS, FULL_ERRORS, SHORT_TRANSFERS = range(6, 11)  # of a million calls
INJECTED = {"reads failed": 11, "writes failed": 12, "syncs failed": 13, "no space": 14, "short transfers": 15}
ANSWERS, REFUSALS = 128, 256  # and the ones behind them, of each initiator: answers; those that said: full
INITIATORS_MAX = 32
CONTROL_BYTES = 4096

SHUT_DOWN, AT_ONCE = 0x8004587D, 2  # FS_IOC_SHUTDOWN: nothing goes to the drive any more, not even the journal
FILE_SYSTEM_BYTES = 320 << 20
CLONE_NEWNS = 0x00020000
CGROUPS = "/sys/fs/cgroup"


class NotPossible(Exception):
    """This machine does not allow that."""


class Control:
    """Numbers that torment.c, the initiators and torture.py share. By index, see above."""

    def __init__(self, path, create=False):
        if create:
            with open(path, "wb") as file:
                file.truncate(CONTROL_BYTES)
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), CONTROL_BYTES)
        self.path = path

    def __getitem__(self, index):
        return struct.unpack_from("<q", self.memory, 8 * index)[0]

    def __setitem__(self, index, value):
        struct.pack_into("<q", self.memory, 8 * index, value)

    def answers(self):
        return sum(self[ANSWERS + number] for number in range(INITIATORS_MAX))

    def refusals(self):
        return sum(self[REFUSALS + number] for number in range(INITIATORS_MAX))

    def new_host(self, name):
        """What the service takes for the identity of the running host."""
        with open(self.path + ".boot", "w", encoding="ascii") as file:
            file.write(f"{name:08x}-0000-4000-8000-000000000000\n")

    def environment(self):
        """What puts torment.c below the service. `make` builds it from this folder."""
        library = os.path.join(ROOT, "build", "tests", "e2e", "torment.so")
        subprocess.run(["make", "-s", "-C", ROOT, os.path.relpath(library, ROOT)], check=True)
        preload = list(filter(None, [sanitizer_environment().get("LD_PRELOAD"), library]))
        return {"LD_PRELOAD": ":".join(preload), "MUNINN_TORMENT": self.path}


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotPossible(f"{' '.join(command)}: {done.stderr.strip()}")


@functools.cache
def have_own_mounts():
    """What this process mounts from here on, no other one gets a copy of. Whoever makes a mount namespace of his own,
    as containers do, keeps all that is mounted then in use for as long as he likes."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
        raise NotPossible(f"mounts of its own: {os.strerror(ctypes.get_errno())}")
    run("mount", "--make-rprivate", "/")


class FileSystem:
    """Where images lie: `ext4` or `xfs` by a loop device, `tmpfs`, or a `folder` as it is."""

    def __init__(self, kind, folder):
        self.kind = kind
        # In memory, so that a sync costs no seconds; it is as good a drive.
        self.drives = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else folder)
        self.image = os.path.join(self.drives.name, "file-system")
        self.place = os.path.join(folder, "place")
        os.mkdir(self.place)
        if self.can_be_full:
            have_own_mounts()
        if self.can_fail:
            with open(self.image, "wb") as file:
                file.truncate(FILE_SYSTEM_BYTES)
            run(f"mkfs.{kind}", "-q", self.image)
        self.mount()

    @property
    def can_fail(self):
        return self.kind in ("ext4", "xfs")

    @property
    def can_be_full(self):
        return self.kind != "folder"

    def mount(self):
        if self.kind == "tmpfs":
            run("mount", "-t", "tmpfs", "-o", f"size={FILE_SYSTEM_BYTES}", "none", self.place)
        elif self.can_fail:
            run("mount", "-o", "loop", self.image, self.place)

    def is_mounted(self):
        """As the kernel says: nothing can be asked of a file system that has failed."""
        with open("/proc/self/mounts", encoding="utf-8") as mounts:
            return any(line.split(" ")[1] == self.place for line in mounts)

    def is_in_use(self):
        """Whether a loop device has the drive: then the file system is in use elsewhere, and to mount it again would show
        the same one, which refuses everything (EIO) if it has failed."""
        for name in glob.glob("/sys/block/loop*/loop/backing_file"):
            with contextlib.suppress(OSError), open(name, encoding="utf-8") as file:
                if file.read().rstrip("\n") == self.image:
                    return True
        return False

    def users(self):
        """Processes that see it mounted."""
        found = []
        for name in glob.glob("/proc/[0-9]*/mounts"):
            with contextlib.suppress(OSError), open(name, encoding="utf-8") as mounts:
                if self.place in mounts.read():
                    found.append(name.split("/")[2])
        return found

    def unmount(self):
        """Nothing may use it any more; what has just been killed may take a moment."""
        limit = time.monotonic() + 30
        while self.is_mounted() or self.is_in_use():
            try:
                if self.is_mounted():
                    run("umount", self.place)
            except NotPossible:
                if time.monotonic() > limit:
                    raise
            if time.monotonic() > limit:
                raise RuntimeError(f"{self.kind} is in use elsewhere, by processes {', '.join(self.users()) or 'unknown'}")
            time.sleep(0.01)

    def close(self):
        self.unmount()
        self.drives.cleanup()

    def sync(self):
        run("sync", "-f", self.place)

    def fail(self):
        """As if the host lost its power: what has not reached the drive is gone. Then it has to be mounted again."""
        place = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(place, SHUT_DOWN, struct.pack("=I", AT_ONCE))
        except OSError as error:
            raise NotPossible(f"shutting {self.kind} down: {error}") from error
        finally:
            os.close(place)

    def fill(self):
        """Takes its last byte."""
        with open(os.path.join(self.place, "filler"), "ab", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)) == size:
                        pass

    def empty(self):
        os.unlink(os.path.join(self.place, "filler"))


class MemoryLimit:
    """A control group for the service. Of version 2 or 1, where there is one and it may be made."""

    def __init__(self):
        name = f"muninn-torture-{os.getpid()}"
        second = os.path.exists(os.path.join(CGROUPS, "cgroup.controllers"))
        self.folder = os.path.join(CGROUPS, name) if second else os.path.join(CGROUPS, "memory", name)
        self.limit_file = "memory.max" if second else "memory.limit_in_bytes"
        self.anonymous = "anon" if second else "rss"
        self.none = "max" if second else "-1"
        try:
            os.mkdir(self.folder)
            self.relax()
        except OSError as error:
            self.close()
            raise NotPossible(f"{self.folder}: {error}") from error

    def _write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
            file.write(text)

    def take(self, *pids):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                self._write("cgroup.procs", str(pid))

    def squeeze(self, bytes_more):
        """To what its processes have by themselves and so much more, for the files that they map; or to twice, four times
        as much where the kernel can't get along with that."""
        with open(os.path.join(self.folder, "memory.stat"), encoding="ascii") as file:
            used = int(dict(line.split() for line in file)[self.anonymous])
        while True:
            try:
                self._write(self.limit_file, str(used + bytes_more))
                return
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
            bytes_more *= 2

    def relax(self):
        self._write(self.limit_file, self.none)

    def close(self):
        limit = time.monotonic() + 10
        while os.path.isdir(self.folder) and time.monotonic() < limit:
            with contextlib.suppress(OSError):
                os.rmdir(self.folder)
                return
            time.sleep(0.01)
