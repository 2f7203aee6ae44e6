# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""What import and export keep of files beside content and names: owners, ACLs, capabilities; and what import leaves out."""

import json
import os
import shutil
import stat
import subprocess
import unittest

import trees
from harness import LIMIT_SECONDS, MUNINNCTL, OneDaemonTest

FAILED, USAGE = 1, 2
NOBODY = 65534
ROOT = os.geteuid() == 0


def folder_of_nobody(test):
    """One that has muninnctl: programs and folders of the build need not be open to others."""
    folder = "/tmp/" + os.path.basename(test.folder("nobody"))
    os.mkdir(folder)
    test.addCleanup(shutil.rmtree, folder)
    shutil.copy(MUNINNCTL, folder)
    os.chown(folder, NOBODY, NOBODY)
    return folder


def as_nobody(folder, *arguments):
    return subprocess.run([os.path.join(folder, "muninnctl"), *arguments], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
                          capture_output=True, timeout=LIMIT_SECONDS, check=False)  # fmt: skip


class Attributes(OneDaemonTest):
    def setUp(self):
        self.url = self.shared.url()
        self.partition = f"{next(self.partitions):#x}"
        self.source = os.path.join(self.folder("source"), "tree")
        os.mkdir(self.source)
        for name in ("a", "b"):
            trees.write_file(os.path.join(self.source, name), name.encode(), mtime_ns=10**18)
        os.mkdir(os.path.join(self.source, "d"))

    def imported(self, *options):
        return json.loads(self.ctl("--json", "import", self.url, self.partition, self.source, *options))

    def exported(self, *words):
        out = os.path.join(self.folder("out"), "tree")
        self.ctl("export", self.url, *(words or [self.partition]), out)
        return out

    def differences(self):
        """Of the present from the version before, without times: [(what, path...)]."""
        lines = self.ctl("diff", self.url, self.partition, "before").splitlines()
        return [line.split()[1:] for line in lines if line.split()[1] not in ("time",)]

    def test_extended_attributes_are_kept_and_followed(self):
        path = os.path.join(self.source, "a")
        os.setxattr(path, "user.colour", b"red")
        os.setxattr(os.path.join(self.source, "d"), "user.of a folder", b"")
        self.imported()
        self.ctl("snapshot", self.url, self.partition, "--name", "before")
        out = self.exported()
        self.assertEqual(os.getxattr(os.path.join(out, "a"), "user.colour"), b"red")
        self.assertEqual(os.getxattr(os.path.join(out, "d"), "user.of a folder"), b"")
        # A change of nothing else is found, and stored.
        os.setxattr(path, "user.colour", b"blue")
        os.removexattr(os.path.join(self.source, "d"), "user.of a folder")
        told = self.imported("--update")
        self.assertEqual((told["added"], told["changed"], told["touched"], told["unchanged"], told["sent_bytes"]), (0, 0, 1, 1, 0))
        self.assertEqual(self.differences(), [["xattrs", "a"], ["xattrs", "d/"]])
        self.assertEqual(trees.differences(trees.describe(self.source), trees.describe(self.exported())), [])
        self.assertEqual(os.getxattr(os.path.join(self.exported(f"{self.partition}@before"), "a"), "user.colour"), b"red")
        self.assertRegex(self.ctl("ls", "-l", self.url, f"{self.partition}:a"), r"^-rw-r--r--\+ ")

    @unittest.skipUnless(ROOT, "only root gives files away")
    def test_owners_are_kept_and_followed(self):
        path = os.path.join(self.source, "a")
        os.chown(path, 1234, 5678)
        os.chmod(path, 0o6755)
        os.symlink("a", os.path.join(self.source, "link"))
        os.chown(os.path.join(self.source, "link"), 77, 78, follow_symlinks=False)
        self.imported()
        self.ctl("snapshot", self.url, self.partition, "--name", "before")
        self.assertEqual(trees.differences(trees.describe(self.source), trees.describe(self.exported())), [])
        os.chown(os.path.join(self.source, "b"), 1, 2)
        os.chown(os.path.join(self.source, "d"), 3, 4)
        self.assertEqual(self.imported("--update")["touched"], 1)
        self.assertEqual(self.differences(), [["owner", "0:0", "1:2", "b"], ["owner", "0:0", "3:4", "d/"]])
        told = {line["path"]: (line["user"], line["group"]) for line in json.loads(self.ctl("--json", "ls", "-l", self.url, f"{self.partition}:"))}
        self.assertEqual(told, {"a": (1234, 5678), "b": (1, 2), "d": (3, 4), "link": (77, 78)})

    @unittest.skipUnless(ROOT, "only root makes files of others")
    def test_who_can_not_give_files_away_gets_them_without_special_modes(self):
        for name in ("a", "b"):
            os.chown(os.path.join(self.source, name), 1234, 5678)
        os.chmod(os.path.join(self.source, "a"), 0o6755)
        os.setxattr(os.path.join(self.source, "b"), "user.kept", b"yes")
        self.imported()
        folder = folder_of_nobody(self)
        done = as_nobody(folder, "export", self.url, self.partition, folder + "/out")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        for name, mode in (("a", 0o755), ("b", 0o644)):
            status = os.stat(os.path.join(folder, "out", name))
            self.assertEqual((stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid), (mode, NOBODY, NOBODY))
        self.assertEqual(os.getxattr(os.path.join(folder, "out", "b"), "user.kept"), b"yes")

    @unittest.skipUnless(ROOT, "only root sees trusted.*")
    def test_what_can_not_be_given_is_named_and_the_rest_is_there(self):
        os.setxattr(os.path.join(self.source, "a"), "trusted.of-root", b"x")
        self.imported()
        folder = "/tmp/" + os.path.basename(self.folder("nobody"))
        os.mkdir(folder)
        self.addCleanup(shutil.rmtree, folder)
        os.chown(folder, NOBODY, NOBODY)
        own = shutil.copy(MUNINNCTL, os.path.join(folder, "muninnctl"))
        done = subprocess.run([own, "export", self.url, self.partition, folder + "/out"], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
                              capture_output=True, timeout=LIMIT_SECONDS, check=False)  # fmt: skip
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assertIn(b"a: trusted.of-root can't be given", done.stderr)
        self.assertIn(b"1 without all of their attributes", done.stdout)
        self.assertEqual(sorted(os.listdir(folder + "/out")), ["a", "b", "d"])


class Choosing(OneDaemonTest):
    def setUp(self):
        self.url = self.shared.url()
        self.partition = f"{next(self.partitions):#x}"
        self.source = os.path.join(self.folder("source"), "tree")
        for name in ("top.o", "keep.c", "sub/x.o", "sub/y", "sub/cache/z", "other/cache/w", "other/sub/y"):
            os.makedirs(os.path.dirname(os.path.join(self.source, name)), exist_ok=True)
            trees.write_file(os.path.join(self.source, name), name.encode(), mtime_ns=10**18)

    def stored(self):
        return [line.split(":", 1)[1] for line in self.ctl("ls", "-R", self.url, f"{self.partition}:").splitlines() if not line.endswith("/")]

    def test_patterns_leave_out_names_paths_and_folders(self):
        for patterns, left in (
            (["*.o"], ["keep.c", "other/cache/w", "other/sub/y", "sub/cache/z", "sub/y"]),
            (["cache"], ["keep.c", "other/sub/y", "sub/x.o", "sub/y", "top.o"]),
            (["sub/*"], ["keep.c", "other/cache/w", "other/sub/y", "top.o"]),
            (["/sub"], ["keep.c", "other/cache/w", "other/sub/y", "top.o"]),
            (["*/cache", "*.[oc]"], ["other/sub/y", "sub/y"]),
            (["nothing"], ["keep.c", "other/cache/w", "other/sub/y", "sub/cache/z", "sub/x.o", "sub/y", "top.o"]),
        ):
            with self.subTest(patterns):
                options = [word for pattern in patterns for word in ("--exclude", pattern)]
                self.ctl("import", self.url, self.partition, self.source, "--update", *options)
                self.assertEqual(self.stored(), left)
        told = json.loads(self.ctl("--json", "import", self.url, self.partition, self.source, "--update", "--exclude", "cache", "--exclude", "*.o"))
        self.assertEqual((told["excluded"], told["files"], told["left_out"]), (4, 3, 0))

    def test_what_is_excluded_need_not_be_readable(self):
        os.mkfifo(os.path.join(self.source, "sub", "pipe"))
        told = json.loads(self.ctl("--json", "import", self.url, self.partition, self.source, "--exclude", "pipe"))
        self.assertEqual((told["skipped"], told["excluded"]), (0, 1))

    @unittest.skipUnless(ROOT, "only root becomes somebody else")
    def test_what_can_not_be_read_is_named_and_left_out(self):
        folder = folder_of_nobody(self)
        source = os.path.join(folder, "source")
        shutil.copytree(self.source, source)
        os.chmod(os.path.join(source, "top.o"), 0)
        os.chmod(os.path.join(source, "sub"), 0)
        done = as_nobody(folder, "import", self.url, self.partition, source)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"source/top.o: Permission denied; it is left out", done.stderr)
        self.assertIn(b"source/sub: Permission denied", done.stderr)
        self.assertRegex(done.stdout, rb" left out")
        self.assertEqual(self.stored(), ["keep.c", "other/cache/w", "other/sub/y"])

    def test_a_rehearsal_tells_what_an_import_would_do_and_does_nothing(self):
        told = json.loads(self.ctl("--json", "import", self.url, self.partition, self.source, "--dry-run"))
        self.assertEqual((told["added"], told["files"]), (7, 7))
        self.assertNotIn(self.partition, self.ctl("ls", self.url).split())
        self.ctl("import", self.url, self.partition, self.source)
        done = self.try_ctl("import", self.url, self.partition, self.source, "--dry-run")
        self.assertEqual(done.returncode, 4, done.stderr)  # as without
        trees.write_file(os.path.join(self.source, "keep.c"), b"longer than before", mtime_ns=10**18)
        os.chmod(os.path.join(self.source, "sub", "y"), 0o600)
        os.rename(os.path.join(self.source, "top.o"), os.path.join(self.source, "moved.o"))
        os.remove(os.path.join(self.source, "other", "cache", "w"))
        trees.write_file(os.path.join(self.source, "fresh"), b"f")
        before = self.ctl("ls", "-l", self.url, self.partition), self.ctl("versions", self.url, self.partition)
        lines = self.ctl("import", self.url, self.partition, self.source, "--update", "--dry-run").splitlines()
        self.assertEqual(sorted(lines[:-1]), ["changed keep.c", "new fresh", "removed other/cache/w", "touched moved.o", "touched sub/y"])
        self.assertTrue(lines[-1].endswith("nothing was stored"), lines)
        self.assertEqual((self.ctl("ls", "-l", self.url, self.partition), self.ctl("versions", self.url, self.partition)), before)
        told = json.loads(self.ctl("--json", "import", self.url, self.partition, self.source, "--update"))
        self.assertEqual((told["added"], told["changed"], told["touched"], told["unchanged"]), (1, 1, 2, 3))

    @unittest.skipUnless(ROOT, "only root mounts")
    def test_one_file_system_stays_on_it(self):
        mounted = os.path.join(self.source, "mounted")
        os.mkdir(mounted)
        # In a namespace of its own, which ends with the command, and the mount with it.
        script = 'mount -t tmpfs none "$1" && touch "$1/inside" && shift && exec "$@"'
        for options, inside in (([], True), (["--one-file-system"], False)):
            done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", mounted, MUNINNCTL, "import", self.url, self.partition, self.source, "--update",
                                   *options], capture_output=True, timeout=LIMIT_SECONDS, check=False)  # fmt: skip
            if b"unshare failed" in done.stderr or b"permission denied" in done.stderr.lower():
                self.skipTest("no mount namespaces here")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("mounted/inside" in self.stored(), inside)
            self.assertIn(f"{self.partition}:mounted/", self.ctl("ls", self.url, f"{self.partition}:").split())


if __name__ == "__main__":
    unittest.main()
