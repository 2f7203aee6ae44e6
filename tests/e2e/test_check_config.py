# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""`muninnd --check-config` and a start agree, on configurations and hosts that are made up.

E2E_SEED=N repeats a run."""

import os
import random
import shutil
import subprocess
import unittest

from harness import LIMIT_SECONDS, MUNINND, E2ETest

TIME_LIMIT_SECONDS = 600

CONFIGURATIONS = 200
PORT_IS_TAKEN = ("is in use by another program", "somebody took the port")
GEOMETRY = ["size", "page_bytes", "spare_bytes", "pages_per_block", "segment_pages", "rows", "record_bytes", "parity"]

# Values that fit, values at the edges, and values that can't be, for each key.
VALUES = {
    "daemon": {
        "tgtd": ["/usr/sbin/tgtd", "/usr/sbin/tgtd", "/usr/sbin/no-tgtd", "/usr/sbin", "/etc/passwd", "tgtd"],
        "module": ["{module}", "{module}", "/nowhere/bs_muninn.so", "/etc", "/etc/passwd", "bs_muninn.so"],
        "allocator": ["jemalloc", "system", "/nowhere.so", "/etc/passwd", "fast"],
        "log_level": ["error", "debug", "loud"],
        "stop_timeout": ["1", "3600", "0", "3601"],
        # A second, which is good too, is little where others use the machine.
        "watchdog": ["60", "300", "301", "0", "never"],
        "admin_group": ["root", "no-such-group", "a b"],
    },
    "target": {
        "name": ["iqn.2014-06.x:osd", "iqn.2014-06.x:" + "y" * 209, "iqn.2014-06.x:" + "y" * 210, "osd", "eui.1"],
        "allow_address": ["ALL", "127.0.0.1", "10.0.0.0/8, ::1", "ALL, ALL", "::1 ::1", "10.0.0.0/33", "here"],
        "allow_name": ["iqn.2014-06.h:a", "iqn.2014-06.h:a, iqn.2014-06.h:b", "iqn.h:a iqn.h:a", "h"],
        "chap_user": ["erik", "e" * 63, "e" * 64, "e,k"],
        "chap_secret": ["twelve-or-more", "s" * 63, "s" * 64, "short"],
        "chap_secret_file": ["{folder}/secret", "{folder}/readable", "{folder}/key", "no-credential", "a/b"],
        "mutual_user": ["muninn", "e,k"],
        "mutual_secret": ["another-of-twelve", "twelve-or-more", "short"],
        "mutual_secret_file": ["{folder}/secret", "/nowhere/secret"],
        "discovery_user": ["scout", "erik"],
        "discovery_secret": ["third-of-twelve", "short"],
        "discovery_secret_file": ["{folder}/secret", "{folder}/taken"],
    },
    "limits": {
        "connections": ["1", "4096", "0", "4097"],
        "connections_per_address": ["1", "4096", "0"],
        "login_timeout": ["1", "0"],
        "stall_timeout": ["3600", "3601"],
        "commands": ["128", "4096", "127"],
        "transfer": ["1M", "1024M", "1025M", "512K"],
        "session_memory": ["1M", "256M", "1T", "2T"],
        "memory": ["1M", "1T"],
    },
    "nand": {
        "backend": ["mmap", "file", "zoned"],
        "page_bytes": ["4096", "2048", "1024", "512", "8192", "5000", "256"],
        "spare_bytes": ["256", "64", "63", "59", "4096", "4097", "128"],
        "pages_per_block": ["64", "8", "100", "256", "1024", "7", "33"],
        "channels": ["1", "64", "65"],
        "dies_per_channel": ["1", "64", "0"],
    },
    "engine": {
        "engine": ["muninn", "huginn"],
        "index": ["bloom", "ribbon", "trie"],
        "rows": ["0", "1", "2", "16", "1024", "4096", "3", "8192"],
        "segment_pages": ["0", "64", "256", "8", "4096", "100", "8192", "1"],
        "record_bytes": ["0", "64", "640", "1024", "4096", "63", "4097"],
        "fpr_millionths": ["0", "1", "500000", "500001"],
        "fpr_factor_permille": ["0", "1000", "4000", "999", "4001"],
        "over_provision_permille": ["0", "1", "100", "500", "900", "901"],
        "parity": ["auto", "0", "1", "5", "16", "17"],
        "hot_rows": ["spread", "finalise", "hot"],
        "onode_cache": ["0", "1", "16777216", "16777217"],
        "directory_cache": ["1", "x"],
        "version_cache": ["1", "-1"],
        "durability": ["process", "host", "both"],
        "merge": ["auto", "manual", "yes"],
        "tables": ["ram", "demand:1", "demand:0", "demand"],
        "history_interval": ["0", "86400000", "86400001"],
        "inline_bytes": ["0", "4096", "4097"],
        "scrub_days": ["0", "3650", "3651"],
        "scrub_rate": ["1", "1000000", "0"],
    },
    "lun 1": {
        "type": ["osd", "disk", "tape"],
        "partition": ["0x10000", "0xFFFFFFFFFFFF", "0xFFFF", "ten"],
        "volume_size": ["1M", "1024T", "1025T", "1000"],
        "block_size": ["512", "4096", "1024"],
        "snapshot_schedule": ["hourly:24 daily:30", "0x10000 weekly:8", "yearly:1", "daily"],
        "image": [
            "lun1.img", "{folder}/other.img", "sub/lun1.img", "a,b.img", "/proc/lun1.img", "i" * 240, "i" * 255, "dir"
        ],
        "nvram": ["{folder}/n", "/nowhere/n", "{folder}/taken", "n", "{folder}/" + "n" * 255],
        "size": ["16M", "32M", "64M", "11M", "1M", "2T", "1024T", "1025T", "1K"],
        "threads": ["1", "64", "65"],
        "recover_without_nvram": ["no", "yes", "maybe"],
        "layout": ["flat", "packed", "round"],
        "key_file": ["{folder}/key", "{folder}/readable", "missing.key", "dir"],
        "serial": ["shelf-7", "s" * 36, "s" * 37, "a;b"],
        "system_id": ["0" * 40, "0" * 39, "g" * 40],
    },
}


class Host:
    """A state folder with things in the way, and what a configuration's values refer to."""

    def __init__(self, test, rng):
        self.folder = test.folder("check")
        self.state = os.path.join(self.folder, "state")
        self.module = os.path.join(os.path.dirname(os.path.dirname(MUNINND)), "lib", "bs_muninn.so")
        os.mkdir(self.state)
        os.mkdir(os.path.join(self.state, "dir"))
        for name, mode in (("taken", 0o600), ("key", 0o600), ("readable", 0o644), ("secret", 0o600)):
            with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
                file.write("of-this-file\n" if name == "secret" else "0" * 64 + "\n")
            os.chmod(file.name, mode)
        # Of an earlier life, now and then: a device, half of one, or one that was not finished.
        lives = [[".nvram"], [""], ["", ".nvram"], [".new", ".nvram"]]
        for suffix in rng.choice([[]] * 12 + lives):
            made = test.made + suffix.replace(".new", "")
            shutil.copy(made, os.path.join(self.state, "lun1.img" + suffix))

    def fill(self, value):
        return value.format(folder=self.folder, module=self.module)


class Refusals(E2ETest):
    """What only the host or the whole configuration shows: one sentence, whoever says it."""

    def assert_both_refuse(self, text, reason, code=2):
        """`text` without a unit gets one. Code 2: another configuration mends it; 1: perhaps the host does."""
        text += "" if "[lun" in text else "[lun 1]\nsize = 16M\n"
        folder = self.folder("check")
        for arguments in (["--check-config"], []):
            daemon = self.daemon(folder, config=text.format(folder=folder), arguments=arguments)
            ended, said = daemon.run()
            self.assertEqual(ended, code, said)
            self.assertRegex(said, reason)
            self.assertEqual(os.listdir(folder), ["muninn.conf"])

    def test_segments_that_do_not_fit_the_erase_blocks(self):
        reason = r"muninn.conf:4: LUN 1: segments of 32 pages: .*multiple of the erase block \(64"
        self.assert_both_refuse("[engine]\nsegment_pages = 32\n", reason)

    def test_pages_that_are_smaller_than_a_record_is_expected_to_be(self):
        # Nobody has set record_bytes, so its name is said.
        reason = r":4: LUN 1: record_bytes of 640: must be 64 to the page size \(512\)"
        self.assert_both_refuse("[nand]\npage_bytes = 512\n", reason)

    def test_a_device_that_is_too_small_for_the_engine(self):
        reason = r":2: LUN 1: 10 segments of 256 pages are too few .* at least 12 \(12288 KiB\)"
        self.assert_both_refuse("[lun 1]\nsize = 10M\n", reason)

    def test_a_device_that_can_not_be(self):
        self.assert_both_refuse("[lun 1]\nsize = 1024T\n", r":2: LUN 1: .* erase blocks .*; 1 to 2\^28 are possible")

    def test_a_device_in_a_folder_that_there_is_not(self):
        reason = r":2: LUN 1: no file can be made beside .*/a/b.img: No such"
        self.assert_both_refuse("[lun 1]\nimage = a/b.img\n", reason, 1)

    def test_an_image_that_two_units_call_by_different_names(self):
        units = "[lun 1]\nsize = 16M\nimage = {}\n[lun 2]\nsize = 16M\nimage = {}\n"
        for one, other in (("./a.img", "a.img"), ("a.img", "/proc/self/root{folder}/a.img"), ("{folder}//a.img", "a.img")):
            text = units.format(one, other)
            self.assert_both_refuse(text, r":2: LUN 1: .*a.img is the image of LUN 2 too, .*a.img; each unit needs its own", 1)
        # Links to what is there.
        folder = self.folder()
        daemon = self.daemon(folder, config="[lun 1]\nsize = 16M\n").start()
        self.assertEqual(daemon.stop(), 0)
        os.link(f"{folder}/lun1.img", f"{folder}/hard.img")
        os.symlink("lun1.img", f"{folder}/soft.img")
        for name in ("hard.img", "soft.img"):
            for arguments in (["--check-config"], []):
                ended, said = self.daemon(folder, config=units.format("lun1.img", name), arguments=arguments).run()
                self.assertEqual(ended, 1)
                self.assertRegex(said, rf"LUN 1: .*/lun1.img is the image of LUN 2 too, .*/{name};")

    def test_an_image_that_is_no_file(self):
        folder = self.folder()
        os.mkfifo(f"{folder}/pipe.img")
        os.mkdir(f"{folder}/folder.img")
        for name in ("pipe.img", "folder.img"):
            for keys in ("", "recover_without_nvram = yes\n"):
                for arguments in (["--check-config"], []):
                    config = f"[lun 1]\nsize = 16M\nimage = {name}\n{keys}"
                    ended, said = self.daemon(folder, config=config, arguments=arguments).run()
                    self.assertEqual(ended, 1)
                    self.assertIn(f"LUN 1: {folder}/{name} is not a regular file, so it cannot be a Muninn image", said)

    def test_a_key_file_that_is_missing(self):
        reason = r":2: LUN 1: .*/missing.key: No such"
        self.assert_both_refuse("[lun 1]\nsize = 16M\nkey_file = missing.key\n", reason, 1)

    def test_blocks_that_do_not_fit_the_pages_of_a_new_device(self):
        text = "[nand]\npage_bytes = 2048\n[lun 1]\ntype = disk\nsize = 16M\nblock_size = 4096\n"
        reason = r":4: LUN 1: blocks of 4096 bytes do not fit into the device's pages, which have 2048"
        self.assert_both_refuse(text, reason)

    def test_programs_that_are_missing_or_are_none(self):
        for key, path, reason in (
            ("module", "/nowhere/m.so", "module /nowhere/m.so: No such file or directory; run make install"),
            ("module", "/etc/passwd", "module /etc/passwd is not a shared library"),
            ("tgtd", "/nowhere/t", "tgtd /nowhere/t: No such file or directory; install the package tgt"),
            ("tgtd", "/usr", "tgtd /usr: Is a directory"),
            ("allocator", "/etc", "allocator /etc: Is a directory"),
        ):
            self.assert_both_refuse(f"[daemon]\n{key} = {path}\n", reason, 1)

    def test_folders_that_can_not_be_made(self):
        here = self.folder()
        for folder, reason in (
            ("/proc/x", "No such file"),
            ("/dev/null/x", "/dev/null: Not a directory"),
            (f"{here}/new/{'x' * 256}/state", "File name too long"),
        ):
            daemon = self.daemon(config="[lun 1]\nsize = 16M\n")
            at = daemon.command.index("--state-dir")
            daemon.command[at + 1] = folder
            for arguments in (["--check-config"], []):
                command = daemon.command + arguments
                done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn(reason, done.stderr)
        # What had been made of it is gone.
        self.assertEqual(os.listdir(here), [])

    def test_an_address_that_this_host_does_not_have(self):
        text = "[target]\nportal = 192.0.2.1:3260\n"
        self.assert_both_refuse(text, r"cannot listen on 192.0.2.1:\d+: Cannot assign", 1)

    def test_a_device_elsewhere_needs_nothing_to_be_made_in_the_state_folder(self):
        folder = self.folder()
        keys = f"[daemon]\nstate_dir = /proc\nrun_dir = {folder}\n[lun 1]\nsize = 16M\nimage = {folder}/lun1.img\n"
        daemon = self.daemon(folder, config=keys)
        at = daemon.command.index("--state-dir")
        del daemon.command[at : at + 2]
        for _ in ("new", "existing"):
            self.tool(*daemon.command, "--check-config")
            daemon.start()
            self.assertEqual(daemon.stop(), 0)

    def test_the_shortest_times_are_good(self):
        keys = "[daemon]\nwatchdog = 1\nstop_timeout = 1\n[limits]\nlogin_timeout = 1\n"
        self.tool(*self.daemon(config=keys + "[lun 1]\nsize = 16M\n").command, "--check-config")

    def test_the_check_works_beside_the_service(self):
        daemon = self.daemon(config="[lun 1]\nsize = 16M\n").start()
        said = self.tool(*daemon.command, "--check-config")
        self.assertIn(f"LUN 1 osd {daemon.image()}: engine muninn, index ribbon, back end mmap", said)
        with open("/dev/full", "wb") as full:
            cut = subprocess.run([*daemon.command, "--check-config"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(cut.returncode, 1)
        self.assertIn("the output can't be written: No space left on device", cut.stderr)
        self.assertEqual(daemon.stop(), 0)


class Agreement(E2ETest):
    @classmethod
    def setUpClass(cls):
        cls.holder = cls()
        cls.addClassCleanup(cls.holder.doCleanups)
        daemon = cls.holder.daemon(size="16M").start()
        assert daemon.stop() == 0
        cls.made = daemon.image()

    def one(self, host, rng):
        """A good configuration, and in it up to four values that are drawn."""
        sections = {
            "daemon": {"state_dir": host.state, "run_dir": host.state},
            "lun 1": {"type": "osd", "size": "16M"},
        }
        for _ in range(rng.randint(0, 4)):
            section = rng.choice(list(VALUES))
            key = rng.choice(GEOMETRY) if rng.random() < 0.3 else rng.choice(list(VALUES[section]))
            section = next(name for name, keys in VALUES.items() if key in keys)
            values = VALUES[section][key]
            # The first are the good ones.
            value = rng.choice(values if rng.random() < 0.5 else values[:2])
            sections.setdefault(section, {})[key] = host.fill(value)
        if rng.random() < 0.3:
            self.share(sections, rng)
        if rng.random() < 0.05:
            odd = ["/proc/muninn", "/dev/null/x", host.folder + "/new/state", host.folder + "/" + "x" * 256]
            sections["daemon"]["state_dir"] = rng.choice(odd)
        if rng.random() < 0.05:
            odd = ["/proc/muninn", host.folder + "/key", host.folder + "/new/run"]
            sections["daemon"]["run_dir"] = rng.choice(odd)
        lines = []
        for name, keys in sections.items():
            lines += [f"[{name}]"] + [f"{key} = {value}" for key, value in keys.items()]
        return "\n".join(lines) + "\n"

    @staticmethod
    def share(sections, rng):
        """Gives the unit's device a name, mostly in all sections alike, and perhaps another unit."""
        name, other = rng.choice(["pool"] * 6 + ["p" * 42, "p" * 43, "a/b"]), rng.random() < 0.05
        unit = sections["lun 1"]
        unit["device"] = "pond" if other else name
        device = sections.setdefault(f"device {name}", {})
        for key in ("image", "nvram", "size", "recover_without_nvram"):
            if key in unit:
                device[key] = unit.pop(key)
        if rng.random() < 0.7:
            block_size = rng.choice(["512", "4096"])
            partition = rng.choice(["0x10001"] * 4 + ["0x10000"])
            sections["lun 2"] = {"type": "disk", "device": name, "block_size": block_size, "partition": partition}
        if rng.random() < 0.2:
            sections.setdefault("nand", {})["page_bytes"] = "2048"

    @staticmethod
    def listing(folder):
        """What is there, for a comparison."""
        paths = [os.path.join(at, name) for at, folders, files in os.walk(folder) for name in folders + files]
        return sorted((path, os.path.getsize(path)) for path in paths)

    def check_and_start(self, rng):
        """Checks one configuration and starts it: whether it was served, and what was said."""
        host = Host(self, rng)
        text = self.one(host, rng)
        daemon, checked, served = self.ask_both(host, text)
        # Somebody has taken the port between its choice and the start.
        while not served and any(words in daemon.errors[-1] for words in PORT_IS_TAKEN):
            daemon, checked, served = self.ask_both(host, text)
        code = daemon.stop() if served else daemon.wait()
        said = f"{text}\ncheck ({checked.returncode}): {checked.stderr}\nstart ({code}): " + "\n".join(daemon.errors)
        self.assertEqual(checked.returncode == 0, served, said)
        if not served:
            # The same sentence, too. The start may have said more before.
            self.assertEqual(checked.returncode, code, said)
            self.assertEqual(checked.stderr.splitlines()[-1], daemon.errors[-1], said)
        else:
            self.assertEqual(code, 0, said)
        shutil.rmtree(host.folder, ignore_errors=True)
        return served

    def ask_both(self, host, text):
        """The daemon, which serves or has ended, what the check was, and whether it serves."""
        daemon = self.daemon(host.folder, config=text)
        at = daemon.command.index("--state-dir")
        del daemon.command[at : at + 2]
        before = self.listing(host.folder)
        checked = subprocess.run(
            daemon.command + ["--check-config"], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
        )
        self.assertEqual(self.listing(host.folder), before, f"the check has left something:\n{text}")
        daemon.launch()
        # To make a large device takes its time.
        limit = LIMIT_SECONDS * (3 if "size = 2T" in text else 1)
        self.assertTrue(daemon._ready.wait(limit), f"it neither serves nor ends:\n{text}\n" + "\n".join(daemon.errors))
        served = any(line.startswith("Ready.") for line in daemon.output)
        if not served:
            daemon.wait()
        return daemon, checked, served

    def test_a_sentence_too_long_loses_the_same_middle(self):
        daemon = self.daemon(size="16M").start()
        self.assertEqual(daemon.stop(), 0)
        elsewhere = os.path.join(daemon.state_dir, "n" * 255)
        daemon = self.daemon(daemon.state_dir, config=f"[lun 1]\ntype = osd\nsize = 16M\nnvram = {elsewhere}\n")
        command = daemon.command + ["--check-config"]
        checked = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
        self.assertEqual(checked.returncode, daemon.launch().wait())
        self.assertEqual(checked.stderr.splitlines()[-1], daemon.errors[-1])
        self.assertIn(" ... ", checked.stderr)

    def test_200_configurations_that_are_made_up(self):
        seed = int(os.environ.get("E2E_SEED", random.randrange(1 << 32)))
        print(f"E2E_SEED={seed}")
        served = 0
        for number in range(CONFIGURATIONS):
            with self.subTest(seed=seed, number=number):
                served += self.check_and_start(random.Random(f"{seed}.{number}"))
        # Neither answer is the only one.
        self.assertGreater(served, CONFIGURATIONS // 5)
        self.assertLess(served, CONFIGURATIONS * 4 // 5)


if __name__ == "__main__":
    unittest.main()
