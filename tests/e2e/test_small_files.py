# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""What small files take on the device: onodes with data and attributes, directory and index."""

import json
import os
import unittest

from harness import E2ETest

FILES = int(os.environ.get("MUNINN_FILES", "30000"))
FILE_BYTES = 310
FOLDER_FILES = 1000
TAKEN_MAX = 800
P = 0x10000


class SmallFiles(E2ETest):
    def make_files(self):
        """A folder with folders of files, each of other bytes."""
        source = os.path.join(self.folder("source"), "tree")
        for number in range(FILES):
            folder = os.path.join(source, f"folder-{number // FOLDER_FILES:03}")
            if number % FOLDER_FILES == 0:
                os.makedirs(folder)
            with open(os.path.join(folder, f"file-{number:06}"), "wb") as file:
                file.write((f"{number:08}" * FILE_BYTES)[:FILE_BYTES].encode())
        return source

    def test_a_small_file_takes_at_most_800_bytes_of_flash(self):
        source = self.make_files()
        daemon = self.daemon(size="2G").start()
        before = json.loads(self.ctl("--json", "statistics", daemon.url()))["used_bytes"]
        report = json.loads(self.ctl("--json", "import", daemon.url(), P, source))
        self.assertEqual(report["files"], FILES)
        self.ctl("flush", daemon.url())
        after = json.loads(self.ctl("--json", "statistics", daemon.url()))["used_bytes"]
        manifest = json.loads(self.ctl("--json", "stat", daemon.url(), f"{P}/{report['manifest']}"))["length"]
        taken = (after - before - manifest) / FILES
        each = f"{taken:.0f} bytes of flash each, and {manifest / FILES:.0f} of the manifest"
        print(f"{FILES} files of {FILE_BYTES} bytes take {each}", flush=True)
        self.assertLessEqual(taken, TAKEN_MAX)
        target = os.path.join(self.folder("target"), "tree")
        self.ctl("export", daemon.url(), P, target)
        self.tool("diff", "-r", source, target)


if __name__ == "__main__":
    unittest.main()
