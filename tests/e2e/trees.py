# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Directory trees for tests: a real one with everything odd that a file system can hold, and how to compare two."""

import hashlib
import os
import random
import shutil
import stat

# Taken in this order until there is enough; a small machine has few of them.
REAL_TREES = ("/usr/share/doc", "/usr/include", "/usr/lib/python3", "/usr/share/man", "/usr/share/perl", "/usr/share")
REAL_FILE_BYTES_MAX = 32 << 20
MIB = 1 << 20
# A user may read (a POSIX ACL: user 77); cap_net_raw is permitted.
ACL = bytes.fromhex("02000000" "01000600ffffffff" "020004004d000000" "04000400ffffffff" "10000600ffffffff" "20000000ffffffff")
ATTRIBUTES = (
    ("user.empty", b""),
    ("user.not text \xff", bytes(range(256)) * 3),
    ("system.posix_acl_access", ACL),
    ("system.posix_acl_default", ACL),
    ("security.capability", bytes.fromhex("0000000200200000000000000000000000000000")),
    ("trusted.known", b"of root"),
)


class Totals:
    """What a tree holds so far."""

    def __init__(self):
        self.files = 0
        self.bytes = 0

    def reached(self, files, size):
        return self.files >= files and self.bytes >= size


def copy_real(source, target, totals, files, size):
    """Copies a real tree, with modes, times and symbolic links, until the totals are reached."""
    for folder, folders, names in os.walk(source):
        folders.sort()
        place = os.path.join(target, os.path.relpath(folder, source))
        os.makedirs(place, exist_ok=True)
        for name in sorted(names + [name for name in folders if os.path.islink(os.path.join(folder, name))]):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                os.symlink(os.readlink(path), os.path.join(place, name))
            elif stat.S_ISREG(status.st_mode) and status.st_size <= REAL_FILE_BYTES_MAX and os.access(path, os.R_OK):
                shutil.copy2(path, os.path.join(place, name))
                totals.files += 1
                totals.bytes += status.st_size
        shutil.copystat(folder, place)
        if totals.reached(files, size):
            return


def write_file(path, data, mode=0o644, mtime_ns=None):
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, mode)
    if mtime_ns is not None:
        os.utime(path, ns=(mtime_ns, mtime_ns))


def make_small_files(target, totals, files, size, seed=1):
    """What is missing to the totals, as files of many sizes in nested folders; always the same."""
    numbers = random.Random(seed)
    number = 0
    while not totals.reached(files, size):
        missing = max(size - totals.bytes, 0) // max(files - totals.files, 1)
        length = int(numbers.expovariate(1 / max(missing, 200)))
        folder = os.path.join(target, f"{number % 97:02}", f"{number % 7}")
        os.makedirs(folder, exist_ok=True)
        write_file(os.path.join(folder, f"file-{number}"), numbers.randbytes(length))
        totals.files += 1
        totals.bytes += length
        number += 1


def make_odd_names(folder):
    """`folder`: bytes, as all names here."""
    names = (
        b"line\nbreak", b"\xff\xfe no UTF-8 \x80", b" blank at both ends ", b"-rf", b"back\\slash\\n", b"quotes'\"`$(x)",
        b"\x01\x1b\x7f", b"%s%n", b"caf\xc3\xa9", b"cafe\xcc\x81", b"#", b"~", b"tab\there", b"x" * 255, b"\xf0\x9f\x90\xa6",
    )  # fmt: skip
    for number, name in enumerate(names):
        write_file(os.path.join(folder, name), name * number)
        os.mkdir(os.path.join(folder, b"d" + name[:200]))
    deep = folder
    for number in range(12):
        deep = os.path.join(deep, b"deep-%02d-" % number + b"y" * 90)
        os.mkdir(deep)
    write_file(os.path.join(deep, b"at the bottom"), b"found")


def make_odd_files(folder):
    """Sizes around every limit, holes, modes, times."""
    for size in (0, 1, 4095, 4096, 4097, MIB - 1, MIB, MIB + 1, 5 * MIB + 3):
        write_file(os.path.join(folder, f"size-{size}"), random.Random(size).randbytes(size))
    with open(os.path.join(folder, "sparse"), "wb") as file:
        file.seek(3 * MIB + 5)
        file.write(b"an island")
        file.truncate(9 * MIB + 1)
    with open(os.path.join(folder, "nothing-but-a-hole"), "wb") as file:
        file.truncate(2 * MIB)
    for mode in (0o400, 0o444, 0o600, 0o755, 0o777, 0o4755, 0o2755, 0o1644):
        write_file(os.path.join(folder, f"mode-{mode:04o}"), b"m", mode)
        os.mkdir(os.path.join(folder, f"folder-{mode:04o}"))
        os.chmod(os.path.join(folder, f"folder-{mode:04o}"), mode | 0o700)
    for mtime_ns in (0, 1, -1, 1234567890123456789, -86400 * 10**9 - 123, 4102444800 * 10**9 + 999999999):
        write_file(os.path.join(folder, f"time{mtime_ns}"), b"t", mtime_ns=mtime_ns)


def make_odd_attributes(folder):
    """Owners, extended attributes, an ACL and a capability, as far as this user and file system have them."""
    for name in ("attributes", "attributed-folder"):
        path = os.path.join(folder, name)
        if name == "attributes":
            write_file(path, b"a")
        else:
            os.mkdir(path)
        for attribute, value in ATTRIBUTES:
            # A default ACL is one of folders.
            if attribute.endswith("_default") and name == "attributes" or attribute == "security.capability" and name != "attributes":
                continue
            try:
                os.setxattr(path, attribute, value)
            except OSError:
                pass
    if os.geteuid() == 0:
        for name, user, group in (("size-1", 1234, 5678), ("folder-0755", 65533, 0), ("mode-4755", 1234, 1234), ("link-0", 77, 78)):
            path, mode = os.path.join(folder, name), os.lstat(os.path.join(folder, name)).st_mode
            os.chown(path, user, group, follow_symlinks=False)
            if not stat.S_ISLNK(mode):
                os.chmod(path, stat.S_IMODE(mode))


def make_odd_links(folder):
    for number, target in enumerate(
        (b"size-1", b"/nonexistent/file", b".", b"../..", b"no UTF-8 \xff\n", b"l" * 4000, b"link-0")
    ):
        link = os.path.join(os.fsencode(folder), b"link-%d" % number)
        os.symlink(target, link)
        os.utime(link, ns=(number, 10**18 + number), follow_symlinks=False)
    first = os.path.join(folder, "one-of-three")
    write_file(first, b"the same file" * 1000)
    os.makedirs(os.path.join(folder, "elsewhere"))
    os.link(first, os.path.join(folder, "two-of-three"))
    os.link(first, os.path.join(folder, "elsewhere", "three-of-three"))


def make_odd(folder):
    """Everything odd, and times of folders at the very end, when nothing changes them any more."""
    os.makedirs(folder)
    os.makedirs(os.path.join(folder, "names"))
    make_odd_names(os.fsencode(os.path.join(folder, "names")))
    make_odd_files(folder)
    make_odd_links(folder)
    make_odd_attributes(folder)
    for number, (path, _, _) in enumerate(os.walk(os.fsencode(folder), topdown=False)):
        os.utime(path, ns=(number, 1_000_000_000_123_456_789 + number * 1_000_000_007))


def make_tree(folder, files, size):
    """A tree of at least so many files and bytes: real ones as far as there are any."""
    totals = Totals()
    for real in REAL_TREES:
        if os.path.isdir(real) and not totals.reached(files, size):
            copy_real(real, os.path.join(folder, "real", real.strip("/").replace("/", "-")), totals, files, size)
    make_small_files(os.path.join(folder, "made"), totals, files, size)
    make_odd(os.path.join(folder, "odd"))
    return totals


def sha256_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def attributes_of(path):
    """{name: value} of the extended attributes that are no policy of the host."""
    return {
        name: os.getxattr(path, name, follow_symlinks=False)
        for name in os.listxattr(path, follow_symlinks=False)
        if not name.startswith("security.") or name == "security.capability"
    }


def describe(root):
    """{path: what there is to compare} of everything below and with `root`, all names as bytes."""
    root = os.fsencode(root)
    found, inodes = {}, {}

    def note(path):
        name, status = os.path.relpath(path, root), os.lstat(path)
        kind, mode = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)
        content = None
        if stat.S_ISLNK(kind):
            content = os.readlink(path)
        elif stat.S_ISREG(kind):
            # Hard links: the name that comes first stands for all of them.
            content = (status.st_size, sha256_of(path), inodes.setdefault(status.st_ino, name))
        found[name] = (kind, mode, status.st_uid, status.st_gid, attributes_of(path), status.st_mtime_ns, content)

    note(root)
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(folders + names):
            note(os.path.join(folder, name))
    return found


def without_set_id_bits(description):
    """The same with the modes that an export gives: by who can't give files away, no file may run as its owner afterwards."""
    if os.geteuid() == 0:
        return description
    return {
        path: (kind, mode & ~(stat.S_ISUID | stat.S_ISGID) if stat.S_ISREG(kind) else mode, *rest)
        for path, (kind, mode, *rest) in description.items()
    }


def differences(expected, found, most=10):
    """Lines about the first differences between two descriptions; empty when they are alike."""
    lines = [f"missing: {path!r}" for path in expected if path not in found]
    lines += [f"too much: {path!r}" for path in found if path not in expected]
    lines += [
        f"{path!r}: {expected[path]} became {found[path]}"
        for path in expected
        if path in found and expected[path] != found[path]
    ]
    return lines[:most]
