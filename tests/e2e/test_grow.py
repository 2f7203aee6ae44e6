# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""A device grows where it is: by its configuration at the next start, by `device grow` while the service runs, and by
`nand grow` with the service stopped.

Runs for each index.
"""

import json
import os
import signal
import subprocess
import unittest

import osd
from harness import MUNINND, noise
from osd import GOOD, Osd
from service import ServiceTest

SANITIZED = True

P = 0x10000
LARGE = 1_000_001


def config(size, backend="mmap", more=""):
    return f"[nand]\nbackend = {backend}\n[lun 1]\ntype = osd\nsize = {size}\n{more}"


class GrowTest(ServiceTest):
    """What the tests share."""

    def fill(self, daemon, first):
        """Objects until the device is full: {object: content}."""
        stored = {}
        with daemon.session() as session:
            target = Osd(session)
            if first == P:
                target.create_partition(P)
            while True:
                number = first + len(stored)
                data = noise(LARGE, number)
                answer = target.run(osd.CREATE_AND_WRITE, P, number, data=data)
                if answer.status != GOOD:
                    return stored
                stored[number] = data

    def assert_holds(self, daemon, stored, at=""):
        for number, data in stored.items():
            found = self.ctl("cat", daemon.url(), f"{P:#x}/{number:#x}{at}", binary=True)
            self.assertTrue(found == data, f"object {number:#x}{at}")

    def capacity(self, daemon):
        return json.loads(self.ctl("--json", "info", daemon.url()))["capacity"]

    def assert_clean(self, daemon):
        """What is stored of the stopped device fits."""
        fsck = os.path.join(os.path.dirname(MUNINND), "muninn-fsck")
        done = subprocess.run([fsck, "--quiet", daemon.image()], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def grown(self, daemon, text):
        """Started anew with this configuration."""
        self.assertEqual(daemon.stop(), 0)
        self.rewrite(daemon, text)
        return daemon.start()


class Grow(GrowTest):
    """By the configuration, and by `nand grow` with the service stopped."""

    def test_a_full_device_takes_more_and_keeps_its_versions(self):
        for backend in "mmap", "file":
            daemon = self.serve(config("32M", backend))
            stored = self.fill(daemon, P)
            self.assertGreater(len(stored), 10)
            before = self.capacity(daemon)
            self.grown(daemon, config("64M", backend))
            daemon.wait_for_line("lun1.img has grown from 32 MiB to 64 MiB")
            self.assertGreater(self.capacity(daemon), before * 3 // 2)
            self.ctl("snapshot", daemon.url(), f"{P:#x}", "--name", "full")
            more = self.fill(daemon, P + len(stored))
            self.assertGreater(len(more), len(stored) // 2)
            self.assert_holds(daemon, stored | more)
            last = max(more)
            self.ctl("rm", daemon.url(), f"{P:#x}/{last:#x}")
            daemon.kill()
            daemon.start()
            self.assert_holds(daemon, stored, "@full")
            self.assertEqual(daemon.stop(), 0)
            self.assert_clean(daemon)

    def test_a_reload_says_that_it_waits_for_a_restart_and_a_smaller_size_has_no_effect(self):
        daemon = self.serve(config("32M"))
        self.rewrite(daemon, config("64M"))
        answer = self.admin(daemon, "reload")
        self.assertIn("larger size when the service is restarted", " ".join(answer["restart"]))
        before = self.capacity(daemon)
        self.grown(daemon, config("16M"))
        daemon.wait_for_line("has 32 MiB and stays so")
        self.assertEqual(self.capacity(daemon), before)

    def test_without_a_restart_when_its_units_are_taken_away_and_served_again(self):
        daemon = self.serve(config("32M") + "[lun 2]\ntype = osd\nsize = 32M\n")
        stored = self.fill(daemon, P)
        before = self.capacity(daemon)
        self.rewrite(daemon, config("64M") + "[lun 2]\ntype = osd\nsize = 32M\n")
        self.admin(daemon, "lun", "rm", "1")
        self.admin(daemon, "reload")
        daemon.wait_for_line("lun1.img has grown from 32 MiB to 64 MiB")
        self.assertGreater(self.capacity(daemon), before * 3 // 2)
        self.assert_holds(daemon, stored)
        self.assertEqual(daemon.stop(), 0)
        self.assert_clean(daemon)

    def test_a_size_that_cannot_be_is_refused_by_check_and_start_alike(self):
        daemon = self.serve(config("16M", more="rows = 1\n"))
        before = self.capacity(daemon)
        self.assertEqual(daemon.stop(), 0)
        self.rewrite(daemon, config("2G"))
        code, errors = daemon.run()
        self.assertEqual(code, 1, errors)
        self.assertIn("was created with 16 MiB and can grow to at most 1024 MiB", errors)
        checked = subprocess.run(
            daemon.command + ["--check-config"], capture_output=True, text=True, check=False, env=daemon.environment
        )
        self.assertEqual(checked.returncode, 1)
        self.assertIn("can grow to at most 1024 MiB", checked.stderr)
        self.rewrite(daemon, config("16M"))
        self.assertEqual(self.capacity(daemon.start()), before)

    def test_without_its_nvram_it_is_recovered_first_and_grows_at_the_next_start(self):
        daemon = self.serve(config("32M"))
        before = self.capacity(daemon)
        self.assertEqual(daemon.stop(), 0)
        os.unlink(daemon.image() + ".nvram")
        self.rewrite(daemon, config("64M", more="recover_without_nvram = yes\n"))
        daemon.start()
        daemon.wait_for_line("is recovered without its NVRAM first; the next start lets it grow")
        self.assertEqual(self.capacity(daemon), before)
        self.assertEqual(daemon.stop(), 0)
        daemon.start()
        daemon.wait_for_line("lun1.img has grown from 32 MiB to 64 MiB")
        self.assertGreater(self.capacity(daemon), before * 3 // 2)

    def test_with_the_service_stopped_by_command(self):
        daemon = self.serve("[lun 1]\ntype = osd\nsize = 32M\n")
        stored = self.fill(daemon, P)
        before = self.capacity(daemon)
        busy = self.try_ctl("nand", "grow", daemon.image(), "64M")
        self.assertNotEqual(busy.returncode, 0)
        self.assertRegex(busy.stderr.decode(), "lun1.img is .*use")
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(
            json.loads(self.ctl("--json", "nand", "grow", daemon.image(), "64M")),
            {"image": daemon.image(), "bytes_before": 32 << 20, "bytes": 64 << 20},
        )
        for size in "64M", "1M":
            smaller = self.try_ctl("nand", "grow", daemon.image(), size)
            self.assertNotEqual(smaller.returncode, 0)
            self.assertIn("the device has 64 MiB: it can only become larger", smaller.stderr.decode())
        self.assert_clean(daemon)
        # Without a size in the configuration it stays as it is.
        self.rewrite(daemon, "[lun 1]\ntype = osd\n")
        daemon.start()
        self.assertGreater(self.capacity(daemon), before * 3 // 2)
        self.assert_holds(daemon, stored)
        self.assertGreater(len(self.fill(daemon, P + len(stored))), 5)



POOL = """[device pool]
size = 32M
[lun 1]
type = osd
device = pool
[lun 2]
type = disk
device = pool
partition = 0x10002
volume_size = 4M
"""


class GrowOnRequest(GrowTest):
    """`device grow`: while the service runs, and no session uses the device."""

    def request(self, daemon, *arguments):
        return self.admin(daemon, "device", "grow", *arguments)

    def size(self, daemon, bytes_now):
        """The image has so many bytes of data, and nothing of a growth is left."""
        image = json.loads(self.ctl("--json", "nand", "info", daemon.image()))
        self.assertEqual(image["blocks"] * image["pages_per_block"] * image["page_bytes"], bytes_now)
        self.assertFalse(os.path.exists(daemon.image() + ".nvram.grown"))

    def test_a_device_grows_between_sessions_and_keeps_its_history(self):
        daemon = self.serve(config("32M"))
        stored = self.fill(daemon, P)
        before = self.capacity(daemon)
        self.ctl("snapshot", daemon.url(), f"{P:#x}", "--name", "full")
        status = self.units(daemon)[1]
        self.assertEqual(
            self.request(daemon, "1", "64M"),
            {
                "device": "lun1",
                "image": daemon.image(),
                "bytes_before": 32 << 20,
                "bytes": 64 << 20,
                "smaller_in_file": True,
                "section": "[lun 1]",
                "file": daemon.config_path,
            },
        )
        self.size(daemon, 64 << 20)
        after = self.units(daemon)[1]
        self.assertEqual([after[key] for key in ("target", "image")], [status[key] for key in ("target", "image")])
        self.assertGreater(self.capacity(daemon), before * 3 // 2)
        more = self.fill(daemon, P + len(stored))
        self.assertGreater(len(more), len(stored) // 2)
        self.assert_holds(daemon, stored | more)
        self.assert_holds(daemon, stored, "@full")
        # A tgtd that is started again has it so, too, and says nothing of a smaller size.
        os.kill(daemon.tgtd_pid, signal.SIGKILL)
        daemon.wait_for_line("initiators can log in")
        self.assert_holds(daemon, stored, "@full")
        self.assertFalse([line for line in daemon.errors if "stays so" in line])
        # A start warns of the file.
        daemon.kill()
        daemon.start()
        daemon.wait_for_line("has 64 MiB and stays so")
        self.assert_holds(daemon, stored, "@full")
        self.assertEqual(daemon.stop(), 0)
        self.assert_clean(daemon)

    def test_people_are_told_to_raise_the_size_of_the_file_if_it_has_one(self):
        daemon = self.serve(config("32M"))
        told = self.lines(daemon, "device", "grow", "lun1", "64M")
        self.assertIn("lun1.img has grown from 32.0 MiB to 64.0 MiB", told)
        self.assertIn(f"[lun 1] of {daemon.config_path} has a smaller size", told)
        self.assertIn("write size = 64M there", told)
        self.rewrite(daemon, config("256M"))
        self.assertNotIn("smaller", self.lines(daemon, "device", "grow", "lun1", "128M"))

    def test_all_units_of_a_device_come_back_and_a_session_keeps_it_as_it_is(self):
        daemon = self.serve(POOL)
        image = daemon.image().replace("lun1", "pool")
        self.ctl("mkpart", daemon.url(), f"{P:#x}")
        before = self.capacity(daemon)
        disk = self.attach(daemon, 2)
        data = noise(65536, 1)
        self.good(disk.write(0, data))
        refused = self.refused(daemon, 8, "device", "grow", "pool", "64M")
        self.assertIn("LUN 2 has 1 session: log out there", refused)
        self.assertIn(f"write the size into [device pool] of {daemon.config_path} and restart", refused)
        with daemon.session(1) as session:
            Osd(session).run(osd.LIST, 0, 0)
            refused = self.refused(daemon, 8, "device", "grow", "2", "64M")
            self.assertIn("LUN 1 has 1 session, LUN 2 has 1 session", refused)
        self.assertEqual(self.good(disk.read(0, 128)).data_in, data)
        self.assertEqual(self.capacity(daemon), before)
        disk.session.close()
        grown = self.request(daemon, "2", "64M")
        self.assertEqual((grown["device"], grown["image"], grown["section"]), ("pool", image, "[device pool]"))
        self.assertEqual({lun: "trouble" in unit for lun, unit in self.units(daemon).items()}, {1: False, 2: False})
        self.assertGreater(self.capacity(daemon), before * 3 // 2)
        disk = self.attach(daemon, 2)
        self.assertEqual(self.good(disk.read(0, 128)).data_in, data)
        self.assertEqual(disk.capacity()[0], 8192)

    def test_what_cannot_be_is_refused_and_changes_nothing(self):
        daemon = self.serve(config("32M"))
        with daemon.session() as session:
            target = Osd(session)
            target.create_partition(P)
            for size in "32M", "16M":
                self.assertIn("can only become larger", self.refused(daemon, 2, "device", "grow", "1", size))
            self.assertIn("can grow to at most 2048 MiB", self.refused(daemon, 2, "device", "grow", "1", "4G"))
            self.assertIn("there is no LUN 9", self.refused(daemon, 3, "device", "grow", "9", "64M"))
            self.assertIn("no unit is on a device pool", self.refused(daemon, 3, "device", "grow", "pool", "64M"))
            self.refused(daemon, 2, "device", "grow", "1", "much")
            # The unit was never away: it reports nothing.
            self.assertEqual(target.run(osd.CREATE_AND_WRITE, P, P, data=b"data").status, GOOD)
        self.size(daemon, 32 << 20)

    def test_one_that_does_not_grow_is_served_as_before(self):
        daemon = self.serve(config("32M"))
        stored = self.fill(daemon, P)
        nvram = daemon.image() + ".nvram"
        os.rename(nvram, nvram + ".file")
        os.symlink(nvram + ".file", nvram + ".link")
        os.symlink(nvram + ".link", nvram)
        self.assertIn("is a link that a link leads to", self.refused(daemon, 2, "device", "grow", "1", "64M"))
        self.size(daemon, 32 << 20)
        self.assert_holds(daemon, stored)

    def test_a_unit_that_is_not_served_again_is_named_and_a_reload_serves_it(self):
        key = os.path.join(self.folder(), "device.key")
        self.ctl("key", "create", key)
        daemon = self.serve(config("32M", more=f"key_file = {key}\n"))
        os.rename(key, key + ".away")
        refused = self.refused(daemon, 8, "device", "grow", "1", "64M")
        self.assertIn("the device has grown; LUN 1 not served again: ", refused)
        self.assertIn("device.key", refused)
        self.assertIn("the device is whole, and `muninnctl reload` serves it when that is mended", refused)
        self.assertEqual(self.units(daemon), {})
        self.size(daemon, 64 << 20)
        os.rename(key + ".away", key)
        self.assertIn("LUN 1 is added", self.admin(daemon, "reload")["done"])
        self.assertNotIn("trouble", self.units(daemon)[1])
        self.assertEqual(daemon.stop(), 0)
        self.assert_clean(daemon)

    def test_an_osd_that_is_not_served_again_beside_a_disk_needs_a_restart(self):
        key = os.path.join(self.folder(), "device.key")
        self.ctl("key", "create", key)
        daemon = self.serve(POOL.replace("type = osd\n", f"type = osd\nkey_file = {key}\n"))
        os.rename(key, key + ".away")
        refused = self.refused(daemon, 8, "device", "grow", "pool", "64M")
        self.assertIn("the device has grown; LUN 1 not served again: ", refused)
        self.assertIn("a restart of the service serves it when that is mended", refused)
        daemon.wait_for_line("device pool: the device has grown; LUN 1 not served again")
        self.assertEqual(list(self.units(daemon)), [2])
        os.rename(key + ".away", key)
        self.assertEqual(daemon.stop(), 0)
        daemon.start()
        self.assertEqual({lun: "trouble" in unit for lun, unit in self.units(daemon).items()}, {1: False, 2: False})


if __name__ == "__main__":
    unittest.main()
