# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A tree of files in a temporary folder, and a script of scripts/ that is run on it."""

import os
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts")


class TreeCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muninn-tree-")
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def write(self, path, *lines):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def run_script(self, name, *options):
        """(exit code, lines of output) of a script on the tree."""
        command = [sys.executable, "-B", os.path.join(SCRIPTS, name), "--root", self.root, *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()
