# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Units on the back ends `file` and `mmap` side by side: kept, killed, exchanged, inspected; and what is refused."""

import json
import os
import shutil
import tempfile
import time
import unittest

from harness import MUNINND, E2ETest, change_superblocks, noise
from osd import Osd

SANITIZED = True

P = 0x10000
OBJECT = 0x10000
ADDRESS = "0x10000/0x10000"
MIB = 1 << 20

BOTH = """\
[nand]
backend = file
[lun 1]
type = osd
size = 64M
[lun 2]
type = osd
size = 64M
backend = {second}
"""


class Backends(E2ETest):
    def assert_backends(self, daemon, *names):
        """What tgtd said of each unit when it opened it."""
        for number, name in enumerate(names, 1):
            daemon.wait_for_line(f"LUN {number}: ", " open after ", f" back end {name}, ")

    def store(self, daemon, lun, seed):
        with daemon.session(lun) as session:
            unit = Osd(session)
            if P not in unit.list():
                unit.create_partition(P)
            unit.store(P, OBJECT + seed, noise(MIB + 77, seed))

    def assert_stored(self, daemon, lun, *seeds):
        with daemon.session(lun) as session:
            unit = Osd(session)
            for seed in seeds:
                self.assertEqual(unit.read(P, OBJECT + seed, 0, MIB + 77), noise(MIB + 77, seed))

    def test_both_keep_what_was_acknowledged_through_kill_restart_and_exchange(self):
        daemon = self.daemon(config=BOTH.format(second="mmap")).start()
        self.assert_backends(daemon, "file", "mmap")
        for lun in (1, 2):
            self.store(daemon, lun, lun)
        daemon.kill()

        daemon.start()
        for lun in (1, 2):
            self.assert_stored(daemon, lun, lun)
            self.ctl("flush", daemon.url(lun))
            self.store(daemon, lun, 10 + lun)
        daemon.restart()
        for lun in (1, 2):
            self.assert_stored(daemon, lun, lun, 10 + lun)

        # An image is the same for both.
        self.assertEqual(daemon.stop(), 0)
        with open(daemon.config_path, "w", encoding="utf-8") as file:
            file.write(BOTH.format(second="file").replace("type = osd\n", "type = osd\nbackend = mmap\n", 1))
        daemon.start()
        self.assert_backends(daemon, "mmap", "file")
        for lun in (1, 2):
            self.assert_stored(daemon, lun, lun, 10 + lun)
            self.store(daemon, lun, 20 + lun)
        daemon.kill()
        daemon.start()
        for lun in (1, 2):
            self.assert_stored(daemon, lun, lun, 10 + lun, 20 + lun)

    def test_the_laboratory_works_on_an_image_that_is_reached_by_file(self):
        daemon = self.daemon(config=BOTH.format(second="file")).start()
        data = noise(8 * MIB, 1)
        self.ctl("mkpart", daemon.url(), hex(P))
        self.ctl("put", daemon.url(), ADDRESS, stdin=data)
        self.assertIn("pages", self.ctl("nand", "info", daemon.image(1)))
        self.assertIn("erase", self.ctl("nand", "wear", daemon.image(1)))
        self.ctl("nand", "map", daemon.image(1))
        self.ctl("nand", "faults", daemon.image(1), "seed=3,unreadable=0.5")
        self.get_until(daemon, 8)
        self.ctl("nand", "faults", daemon.image(1), "off")
        self.assertTrue(self.get_until(daemon, 0) == data)

    def get_until(self, daemon, code):
        """Reads until muninnctl ends with `code`, for the daemon looks twice a second; returns what it read."""
        for _ in range(600):
            done = self.try_ctl("get", daemon.url(), ADDRESS)
            if done.returncode == code:
                return done.stdout
            time.sleep(0.1)
        self.fail(f"muninnctl get never ended with {code}")

    def test_a_back_end_or_engine_that_there_is_not_is_refused_with_those_there_are(self):
        for section in ("[nand]\nbackend = zoned\n[lun 1]\ntype = osd\n", "[lun 1]\nbackend = zoned\n"):
            code, said = self.daemon(config=section).run()
            self.assertEqual(code, 2)
            self.assertIn(":2: backend: 'zoned' is neither mmap nor file", said)
        for section in ("[engine]\nengine = pink\n[lun 1]\ntype = osd\n", "[lun 1]\nengine = pink\n"):
            code, said = self.daemon(config=section).run()
            self.assertEqual(code, 2)
            self.assertIn(":2: engine: 'pink' is no engine; there is: muninn", said)

    def test_check_config_and_help_say_what_a_unit_stands_on(self):
        path = os.path.join(self.folder(), "muninn.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(BOTH.format(second="mmap"))
        said = self.tool(MUNINND, "--check-config", "--config", path)
        self.assertIn("LUN 1 osd /var/lib/muninn/lun1.img: engine muninn, index ribbon, back end file", said)
        self.assertIn("LUN 2 osd /var/lib/muninn/lun2.img: engine muninn, index ribbon, back end mmap", said)
        self.assertIn("engine muninn, index ribbon, back end mmap", self.tool(MUNINND, "--help"))

    def test_a_device_keeps_the_index_that_it_was_made_with(self):
        # The first unit's tables are on flash, which a device with the other index could not have.
        config = "[lun 1]\ntype = osd\nsize = 64M\ntables = demand:1\n{index}[lun 2]\ntype = osd\nsize = 64M\n"
        folder = self.folder()
        for index in ("index = bloom\n", ""):
            daemon = self.daemon(state_dir=folder, config=config.format(index=index)).start()
            for lun, kept in ((1, "bloom"), (2, "ribbon")):
                daemon.wait_for_line(f"LUN {lun}: ", " open after ", f" index {kept}, ")
                if index:
                    self.store(daemon, lun, lun)
                self.assert_stored(daemon, lun, lun)
                told = json.loads(self.ctl("--json", "statistics", daemon.url(lun)))
                self.assertEqual(told["index"], {"bloom": 1, "ribbon": 2}[kept])
            daemon.kill()
            said = self.tool(MUNINND, "--check-config", "--config", daemon.config_path, "--state-dir", folder)
            self.assertIn(f"LUN 1 osd {daemon.image()}: engine muninn, index bloom, back end mmap", said)
            self.assertIn(f"LUN 2 osd {daemon.image(2)}: engine muninn, index ribbon, back end mmap", said)

    def test_a_ribbon_index_with_tables_on_flash_is_refused_before_there_is_a_device(self):
        config = "[lun 1]\ntype = osd\nsize = 64M\ntables = demand:1\n"
        daemon = self.daemon(config=config)
        code, said = daemon.run()
        self.assertEqual(code, 2)
        self.assertIn("LUN 1: a cache for tables of the index: the ribbon index is in memory as a whole", said)
        self.assertFalse(os.path.exists(daemon.image()))

    def test_a_unit_with_another_engine_than_its_image_is_refused(self):
        config = "[lun 1]\ntype = osd\nsize = 64M\n"
        folder = self.folder()
        daemon = self.daemon(folder, config=config + "engine = muninn\n").start()
        self.assertIn("engine       muninn", self.ctl("nand", "info", daemon.image(1)))
        self.assertEqual(daemon.stop(), 0)
        change_superblocks(daemon.image(1), 96, b"huginn")
        for configured, reason in (
            ("engine = muninn\n", 'formatted for engine "huginn", and is to be opened with "muninn"'),
            ("", 'formatted for engine "huginn", which this program does not have'),
        ):
            for arguments in ((), ("--check-config",)):
                code, said = self.daemon(folder, config=config + configured, arguments=arguments).run()
                self.assertEqual(code, 1)
                self.assertIn("LUN 1: the device was " + reason, said)

    def test_the_built_in_configuration_has_mmap(self):
        self.assert_backends(self.daemon(size="64M").start(), "mmap")

    @unittest.skipUnless(os.path.isdir("/dev/shm"), "no tmpfs at /dev/shm")
    def test_without_direct_io_file_serves_and_says_what_to_do(self):
        # Some kernels let tmpfs say that it has.
        folder = tempfile.mkdtemp(prefix="muninn-", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, folder)
        daemon = self.daemon(
            folder, config="[lun 1]\ntype = osd\nsize = 64M\nbackend = file\n"
        ).start()
        daemon.wait_for_line("no direct I/O: ", "the back end mmap does")
        self.store(daemon, 1, 1)
        daemon.kill()
        daemon.start()
        self.assert_stored(daemon, 1, 1)


if __name__ == "__main__":
    unittest.main()
