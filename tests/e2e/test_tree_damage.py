# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Trees with objects that are not as the manifest says: export leaves those files out, and brings all others."""

import json
import os
import unittest

from harness import OneDaemonTest

NOT_FOUND, BAD_DATA = 3, 11
FILES = 300


class DamagedTree(OneDaemonTest):
    def setUp(self):
        self.url = self.shared.url()
        self.partition = f"{next(self.partitions):#x}"
        self.source = os.path.join(self.folder("source"), "tree")
        os.mkdir(self.source)
        for number in range(FILES):
            with open(os.path.join(self.source, f"file{number:03}"), "w", encoding="ascii") as file:
                file.write(f"content {number}\n" * 100)
        self.ctl("import", self.url, self.partition, self.source)
        self.out = os.path.join(self.folder("out"), "tree")

    def address(self, name):
        rows = json.loads(self.ctl("--json", "ls", "-l", self.url, self.partition))
        return f"{self.partition}/{next(row['id'] for row in rows if row.get('username') == name)}"

    def export(self, code, left_out, resumed=0):
        done = self.try_ctl("--json", "export", self.url, self.partition, self.out)
        self.assertEqual(done.returncode, code, done.stderr)
        report, said = json.loads(done.stdout), done.stderr.decode()
        self.assertEqual((report["files"], report["left_out"], report["resumed"]), (FILES - len(left_out), len(left_out), resumed))
        there = set(os.listdir(self.out)) - {".muninn-export.partial"}
        self.assertEqual(there, set(os.listdir(self.source)) - set(left_out))
        for name in left_out:
            self.assertEqual(said.count(f"/{name}: "), 1, said)
        return said

    def test_an_export_brings_all_files_but_a_changed_one_and_the_same_command_brings_that_later(self):
        address = self.address("file080")
        self.ctl("put", self.url, address, "--offset", "8", stdin=b"X")
        said = self.export(BAD_DATA, ["file080"])
        self.assertIn("its content (SHA-256) is not that of the file that was stored; it is left out\n", said)
        self.export(BAD_DATA, ["file080"], FILES - 1)
        self.ctl("put", self.url, address, "--offset", "8", stdin=b"8")
        self.export(0, [], FILES - 1)
        self.assertNotIn(".muninn-export.partial", os.listdir(self.out))

    def test_an_export_brings_all_files_but_one_whose_object_is_gone(self):
        self.ctl("rm", self.url, self.address("file007"))
        said = self.export(NOT_FOUND, ["file007"])
        self.assertIn("there is no such object", said)


if __name__ == "__main__":
    unittest.main()
