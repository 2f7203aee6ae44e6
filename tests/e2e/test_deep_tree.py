# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Trees with paths that are longer than a system call takes: what has a shorter one is stored and brought back."""

import json
import os
import subprocess
import unittest

from harness import MUNINNCTL, OneDaemonTest

OK, FAILED = 0, 1
PATH_BYTES = 4095
CONTENT = b"at this depth"


def make_deep_tree(root):
    """Returns the directories by depth, relative to `root`. Each has a file and a link."""
    made, folder = [], os.open(root, os.O_RDONLY)
    for number, name in enumerate(["d" * 200] * 15 + ["e" * 250] * 10):
        os.mkdir(name, dir_fd=folder)
        below = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
        made.append("/".join([*made[-1:], name]))
        file = os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=folder)
        os.write(file, CONTENT + b"%d" % number)
        os.close(file)
        os.symlink("nowhere", "link", dir_fd=folder)
    os.close(folder)
    return made


class DeepTree(OneDaemonTest):
    def setUp(self):
        self.url = self.shared.url()
        self.partition = f"{next(self.partitions):#x}"
        self.root = os.path.join(self.folder("source"), "tree")
        os.mkdir(self.root)
        self.made = make_deep_tree(self.root)

    def stored(self, *options):
        """What import can name, and the directory behind that: its name is known, and nothing else."""
        done = self.try_ctl("--json", "import", self.url, self.partition, self.root, *options)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        return [line["path"] for line in json.loads(self.ctl("--json", "ls", "-R", self.url, self.partition + ":"))]

    def export(self, out=None, what=None, code=FAILED):
        out = out or os.path.join(self.folder("out"), "tree")
        done = self.try_ctl("--json", "export", self.url, what or self.partition, out)
        self.assertEqual(done.returncode, code, done.stderr)
        return out, json.loads(done.stdout), done.stderr.decode()

    @staticmethod
    def names(root):
        """All names below, also of paths that only a walk by descriptors reaches."""
        found = []
        for path, folders, files, _ in os.fwalk(root):
            found += [os.path.relpath(os.path.join(path, name), root) for name in folders + files]
        return sorted(found)

    def test_what_is_too_long_to_be_made_is_left_out_with_a_warning(self):
        stored = self.stored()
        fits = sorted(path for path in stored if len(path) <= PATH_BYTES)
        self.assertLess(len(fits), len(stored))
        out, report, said = self.export()
        self.assertEqual((report["left_out"], report["resumed"]), (len(stored) - len(fits), 0))
        self.assertEqual(said.count("File name too long; it is left out, and what is in it"), 1)
        self.assertEqual(self.names(out), fits)
        with open(os.path.join(out, self.made[3], "file"), "rb") as file:
            self.assertEqual(file.read(), CONTENT + b"3")
        # As an interrupted export leaves it.
        with open(os.path.join(out, ".muninn-export.partial"), "w", encoding="ascii") as file:
            digest = self.ctl("checksum", self.url, f"{self.partition}/{report['manifest']}").split()[0]
            file.write(f"muninnctl export\nmanifest {digest}\nbelow .\n")
        again = self.export(out)[1]
        self.assertEqual((again["left_out"], again["resumed"]), (report["left_out"], report["files"]))
        self.assertEqual(self.names(out), fits)

    def test_a_deep_directory_comes_by_itself_and_an_update_stores_the_same(self):
        stored = self.stored()
        self.assertEqual(self.stored("--update"), stored)
        deep = self.made[14]
        out, report, _ = self.export(what=f"{self.partition}:{deep}", code=OK)
        self.assertEqual(report["left_out"], 0)
        self.assertEqual(self.names(out), sorted(path[len(deep) + 1 :] for path in stored if path.startswith(deep + "/")))

    def test_a_file_that_has_a_short_name_too_comes_under_that_one(self):
        root = os.open(self.root, os.O_RDONLY)
        folder = os.open(self.made[18], os.O_RDONLY, dir_fd=root)
        # Together with ./ before it 4095 bytes, so `import .` can read it.
        name = "f" * (PATH_BYTES - 2 - len(self.made[18]) - 1)
        file = os.open(name, os.O_WRONLY | os.O_CREAT, dir_fd=folder)
        os.write(file, b"of two names")
        os.close(file)
        for link in ("y", "z"):
            os.link(name, link, src_dir_fd=folder, dst_dir_fd=root)
        os.close(folder)
        os.close(root)
        done = subprocess.run([MUNINNCTL, "import", self.url, self.partition, "."], cwd=self.root, capture_output=True, check=False)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        out, report, said = self.export()
        self.assertEqual(report["hard_links"], 1)
        self.assertIn("ffff: File name too long; it is left out\n", said)
        for link in ("y", "z"):
            with open(os.path.join(out, link), "rb") as file:
                self.assertEqual(file.read(), b"of two names")
        self.assertEqual(os.stat(os.path.join(out, "y")).st_nlink, 2)


if __name__ == "__main__":
    unittest.main()
