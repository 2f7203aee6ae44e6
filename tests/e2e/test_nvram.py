# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""The NVRAM file on memory of its own: the key `nvram`, what it refuses, and moving there and back."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import E2ETest

CONFIG = "[lun 1]\ntype = osd\nsize = 64M\n"


class Elsewhere(E2ETest):
    def setUp(self):
        super().setUp()
        # Another file system than that of the image, in memory.
        self.fast = tempfile.mkdtemp(prefix="muninn-nvram-", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, self.fast)
        self.nvram = os.path.join(self.fast, "lun1.nvram")
        self.config = CONFIG + f"nvram = {self.nvram}\n"

    def serve(self, config=None, **options):
        return self.daemon(config=config or self.config, **options)

    def served(self):
        """A daemon that has served, with an object, and stopped."""
        daemon = self.serve().start()
        self.put(daemon)
        self.assertEqual(daemon.stop(), 0)
        return daemon

    def put(self, daemon):
        self.ctl("mkpart", daemon.url(), "0x10000")
        self.ctl("put", daemon.url(), "0x10000/0x10004", stdin=b"thought and memory\n")

    def assert_there(self, daemon):
        self.assertEqual(self.ctl("cat", daemon.url(), "0x10000/0x10004"), "thought and memory\n")

    def assert_refused(self, daemon, pattern, code=1):
        ended, errors = daemon.run()
        self.assertRegex(errors, "LUN 1: .*" + pattern)
        self.assertEqual(ended, code, errors)

    def link(self, daemon):
        return daemon.image() + ".nvram"

    def test_a_new_device_has_it_there_and_survives_a_kill(self):
        daemon = self.serve().start()
        self.assertEqual(os.readlink(self.link(daemon)), self.nvram)
        self.assertTrue(os.path.isfile(self.nvram))
        self.put(daemon)
        daemon.kill()
        daemon.start()
        self.assert_there(daemon)
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(os.listdir(self.fast), ["lun1.nvram"])
        self.assertIn("NVRAM", self.ctl("nand", "info", daemon.image()))

    def test_a_file_that_is_there_is_not_taken(self):
        with open(self.nvram, "w", encoding="ascii") as file:
            file.write("mine")
        daemon = self.serve()
        self.assert_refused(daemon, "lun1.nvram is there already, and not that of .*lun1.img", 1)
        with open(self.nvram, encoding="ascii") as file:
            self.assertEqual(file.read(), "mine")
        self.assertFalse(os.path.lexists(self.link(daemon)))
        self.assertFalse(os.path.lexists(daemon.image() + ".new.nvram"))

    def test_a_folder_that_is_not_there(self):
        daemon = self.serve(CONFIG + f"nvram = {self.fast}/none/nvram\n")
        self.assert_refused(daemon, "no file can be made beside .*/none/nvram: No such file", 1)
        self.assertFalse(os.path.lexists(daemon.image() + ".new.nvram"))

    def test_an_interrupted_creation_starts_over(self):
        daemon = self.serve()
        os.symlink(self.nvram, daemon.image() + ".new.nvram")
        for leftover in (daemon.image() + ".new", self.nvram):
            with open(leftover, "wb") as file:
                file.write(b"half a device")
        daemon.start()
        self.assertEqual(daemon.stop(), 0)
        self.assertFalse(os.path.lexists(daemon.image() + ".new.nvram"))

    @unittest.skipUnless(os.geteuid() == 0, "only root has to mistrust links")
    def test_as_root_it_removes_and_makes_nothing_where_the_link_of_a_user_leads(self):
        daemon = self.serve()
        theirs = os.path.join(self.fast, "theirs")
        with open(theirs, "w", encoding="ascii") as file:
            file.write("kept")
        os.symlink(theirs, daemon.image() + ".new.nvram")
        os.chown(daemon.image() + ".new.nvram", 65534, 65534, follow_symlinks=False)
        daemon.start()
        self.assertEqual(daemon.stop(), 0)
        with open(theirs, encoding="ascii") as file:
            self.assertEqual(file.read(), "kept")
        self.assertTrue(os.path.isfile(self.nvram))

    def test_a_creation_interrupted_between_its_two_renames_is_completed(self):
        daemon = self.served()
        os.rename(daemon.image(), daemon.image() + ".new")
        daemon.start()
        self.assert_there(daemon)
        self.assertEqual(daemon.stop(), 0)

    def test_lost_it_is_named_and_made_anew_only_when_that_is_wanted(self):
        daemon = self.served()
        os.unlink(self.nvram)
        self.assert_refused(daemon, re.escape(self.nvram) + " is missing, without which .*lun1.img does not open")
        again = self.serve(self.config + "recover_without_nvram = yes\n", state_dir=daemon.state_dir).start()
        self.assertEqual(again.stop(), 0)
        self.assertTrue(os.path.isfile(self.nvram))
        self.assertIn("recovered without NVRAM", "\n".join(again.errors))

    def test_an_existing_device_is_moved_there_and_back(self):
        daemon = self.serve(CONFIG).start()
        self.put(daemon)
        self.assertEqual(daemon.stop(), 0)
        moved = self.serve(state_dir=daemon.state_dir)
        self.assert_refused(moved, r"the NVRAM file of .*lun1\.img is .*lun1\.img\.nvram, and nvram = .*: while nobody")
        # As docs/how-to/nvram.md has it.
        self.tool("mv", self.link(daemon), self.nvram)
        self.tool("ln", "-s", self.nvram, self.link(daemon))
        moved.start()
        self.assert_there(moved)
        self.assertEqual(moved.stop(), 0)
        os.unlink(self.link(daemon))
        self.tool("mv", self.nvram, self.link(daemon))
        back = self.serve(CONFIG, state_dir=daemon.state_dir).start()
        self.assert_there(back)

    def test_that_of_another_device_is_refused(self):
        daemon = self.served()
        os.unlink(self.nvram)
        other = self.daemon(size="64M").start()
        self.assertEqual(other.stop(), 0)
        shutil.copy(self.link(other), self.nvram)
        self.assert_refused(daemon, "lun1.nvram belongs to another image than .*lun1.img")

    def test_a_file_system_that_can_only_be_read_is_refused(self):
        daemon = self.served()
        if subprocess.run(["mount", "--bind", self.fast, self.fast], check=False).returncode:
            self.skipTest("this host lets nobody mount")
        self.addCleanup(self.tool, "umount", self.fast)
        self.tool("mount", "-o", "remount,bind,ro", self.fast)
        self.assert_refused(daemon, "cannot open .*lun1.nvram: Read-only file system")


if __name__ == "__main__":
    unittest.main()
