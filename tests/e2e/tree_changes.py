# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Changes to directory trees, and what differs between two of them by reading both: the oracle of `muninnctl diff`."""

import os
import stat

from harness import noise
from trees import write_file


def patch(path, offset, data):
    """Overwrites bytes in the middle of a file."""
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def change(root, turn, dice):
    """One day of work on a tree that prepare() has made: something of everything, another one each turn. Returns what was renamed, (from, to)."""
    files = sorted(name for name in os.listdir(root) if name.startswith("file-"))
    edited, grown, cut, modes, renamed, gone, touched = dice.sample(files, 7)
    for _ in range(3):
        size = os.path.getsize(os.path.join(root, edited))
        patch(os.path.join(root, edited), dice.randrange(size), noise(dice.randrange(1, 5000), turn))
    with open(os.path.join(root, grown), "ab") as file:
        file.write(noise(dice.randrange(1, 70000), turn))
    os.truncate(os.path.join(root, cut), dice.randrange(os.path.getsize(os.path.join(root, cut))))
    os.chmod(os.path.join(root, modes), dice.choice([0o400, 0o611, 0o755]))
    os.rename(os.path.join(root, renamed), os.path.join(root, "sub", f"file-moved-{turn}"))
    os.remove(os.path.join(root, gone))
    os.utime(os.path.join(root, touched), ns=(0, 10**18 + turn))
    write_file(os.path.join(root, f"file-new-{turn}"), noise(dice.randrange(60000), 100 + turn))
    # Long files, in several places: far apart, near to each other, at both ends.
    size = os.path.getsize(os.path.join(root, "long"))
    for offset in (0, size // 3, size // 3 + 9000, size // 2, size - 1):
        patch(os.path.join(root, "long"), offset, noise(1 + turn, turn))
    if turn == 2:
        os.truncate(os.path.join(root, "long"), size - 1234567)
    os.mkdir(os.path.join(root, f"dir-{turn}"), 0o750)
    write_file(os.path.join(root, f"dir-{turn}", "inside"), b"i")
    if turn > 1:
        os.remove(os.path.join(root, f"dir-{turn - 1}", "inside"))
        os.rmdir(os.path.join(root, f"dir-{turn - 1}"))
    os.chmod(os.path.join(root, "sub"), 0o700 + turn)
    os.remove(os.path.join(root, "pointer"))
    os.symlink(f"target-{turn}", os.path.join(root, "pointer"))
    return renamed, f"sub/file-moved-{turn}"


def prepare(root, dice):
    """The tree to begin with."""
    os.makedirs(os.path.join(root, "sub"))
    for number in range(30):
        write_file(os.path.join(root, f"file-{number:02}"), noise(dice.randrange(20000, 90000), number))
    write_file(os.path.join(root, "long"), noise(5 << 20, 99))
    os.symlink("nowhere", os.path.join(root, "pointer"))


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def _entries(root):
    """{path relative to root: lstat}, the root as "."."""
    found = {".": os.lstat(root)}
    for folder, folders, names in os.walk(root):
        for name in folders + names:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, root)] = os.lstat(path)
    return found


def _kind(status):
    return stat.S_IFMT(status.st_mode)


def differences(before, after, renames):
    """
    What differs between two folders, of which files were renamed, {old path: new path}, as (differs, path) pairs in the words of `muninnctl diff`, and for each file with other bytes the positions
    where it has them, within its new length.
    """
    old, new = _entries(before), _entries(after)
    renames = {path: to for path, to in renames.items() if path in old and to in new}
    told, bytes_at = set(), {}
    for path in old.keys() - new.keys() - renames.keys():
        told.add(("removed", path))
    for path in new.keys() - old.keys() - set(renames.values()):
        told.add(("added", path))
    for path in old.keys() & (new.keys() | renames.keys()):
        to = renames.get(path, path)
        status, other = old[path], new[to]
        if _kind(status) != _kind(other):
            told |= {("removed", path), ("added", to)}
            continue
        if to != path:
            told.add(("renamed", to))
        if status.st_mtime_ns != other.st_mtime_ns:
            told.add(("time", to))
        if stat.S_ISLNK(status.st_mode):
            if os.readlink(os.path.join(before, path)) != os.readlink(os.path.join(after, to)):
                told.add(("target", to))
            continue
        if stat.S_IMODE(status.st_mode) != stat.S_IMODE(other.st_mode):
            told.add(("mode", to))
        if stat.S_ISREG(status.st_mode):
            first, second = _read(os.path.join(before, path)), _read(os.path.join(after, to))
            if len(first) != len(second):
                told.add(("length", to))
            first = first.ljust(len(second), b"\0")
            positions = [at for at, byte in enumerate(second) if byte != first[at]]
            if positions:
                told.add(("data", to))
                bytes_at[to] = positions
    return told, bytes_at
