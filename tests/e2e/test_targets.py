# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Several targets and portals, whom each lets in, and who proves what to whom by CHAP: at the start, in a reload, and
after a crash of tgtd."""

import os
import signal
import subprocess
import unittest

from disks import Disk
from harness import IQN, LIMIT_SECONDS
from iscsi import Session
from service import HOST, OTHER, ServiceTest

SANITIZED = True
BACKUP = "iqn.2014-06.local.muninn:backup"
DISKS = """[device pool]
size = 512M
[lun 1]
type = osd
device = pool
[lun 2]
type = disk
device = pool
partition = 0x10002
volume_size = 16M
"""
ON_BACKUP = "target = backup\n"
CHAP = "chap_user = erik\nchap_secret = twelve-or-more\n"
MUTUAL = "mutual_user = muninn\nmutual_secret = another-of-twelve\n"
DISCOVERY = "discovery_user = scout\ndiscovery_secret = third-of-twelve\n"
ACCOUNTS = "CHAP accounts have changed; sessions that are logged in go on until they end (muninnctl session kick)"
ERIK = "erik%twelve-or-more@"
SCOUT = "scout%third-of-twelve@"


class Targets(ServiceTest):
    def url(self, daemon, account="", name=IQN, lun=1, address="127.0.0.1"):
        return f"iscsi://{account}{address}:{daemon.port}/{name}/{lun}"

    def login(self, url, name=HOST, options=""):
        command = ["iscsi-inq", "-i", name, url + options]
        return subprocess.run(command, capture_output=True, timeout=LIMIT_SECONDS, check=False).returncode == 0

    def discover(self, daemon, account="", name=HOST, address="127.0.0.1"):
        """The names of the targets that are shown; None: it is refused."""
        command = ["iscsi-ls", "-i", name, f"iscsi://{account}{address}:{daemon.port}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
        if done.returncode:
            return None
        return sorted({word[7:] for word in done.stdout.split() if word.startswith("Target:")})

    def reload(self, daemon, config, code=0):
        self.rewrite(daemon, config)
        done = self.try_ctl("reload", "--socket", self.socket_of(daemon))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout.decode().splitlines()

    def crash(self, daemon):
        pid = self.admin(daemon, "status")["tgtd"]["process"]
        before = sum("initiators can log in" in line for line in daemon.errors)
        os.kill(pid, signal.SIGKILL)
        while sum("initiators can log in" in line for line in daemon.errors) == before:
            daemon.wait_for_line("initiators can log in")
            self.admin(daemon, "status")

    def test_each_target_has_its_units_and_its_initiators(self):
        daemon = self.serve(f"[target backup]\nallow_name = {OTHER}\n" + DISKS + ON_BACKUP)
        self.assertIn(f"LUN 2 disk {self.url(daemon, name=BACKUP, lun=2)}", daemon.output)

        def assert_apart():
            self.assertTrue(self.login(self.url(daemon)))
            self.assertFalse(self.login(self.url(daemon, lun=2)))
            self.assertFalse(self.login(self.url(daemon, name=BACKUP, lun=2)))
            self.assertTrue(self.login(self.url(daemon, name=BACKUP, lun=2), name=OTHER))
            self.assertFalse(self.login(self.url(daemon, name=BACKUP), name=OTHER))
            self.assertEqual(self.discover(daemon), [IQN])
            self.assertEqual(self.discover(daemon, name=OTHER), [BACKUP, IQN])

        assert_apart()
        status = self.admin(daemon, "status")
        self.assertEqual([target["name"] for target in status["targets"]], [IQN, BACKUP])
        self.assertEqual({unit["lun"]: unit["target"] for unit in status["units"]}, {1: IQN, 2: BACKUP})
        self.crash(daemon)
        assert_apart()
        self.assertEqual(daemon.stop(), 0)

    def test_it_is_at_all_portals(self):
        addresses = ("127.0.0.1", "127.0.0.2", "[::1]")
        daemon = self.serve("[target]\nportal = " + ", ".join(f"{each}:1" for each in addresses) + "\n" + DISKS)
        for address in addresses:
            self.assertTrue(self.login(self.url(daemon, address=address)), address)
            self.assertEqual(self.discover(daemon, address=address), [IQN])
        self.assertFalse(self.login(self.url(daemon, address="127.0.0.3")))
        self.assertIn(f"127.0.0.2:{daemon.port}", self.admin(daemon, "status")["portal"])
        taken = self.daemon(config="[target]\nportal = 127.0.0.4:1, 127.0.0.2:1\n" + DISKS, port=daemon.port)
        code, errors = taken.run()
        self.assertEqual(code, 1)
        self.assertIn(f"127.0.0.2:{daemon.port} is in use by another program", errors)
        self.assertEqual(daemon.stop(), 0)

    def test_the_target_proves_itself_to_those_who_ask(self):
        daemon = self.serve("[target]\n" + CHAP + MUTUAL + DISKS)
        url = self.url(daemon, ERIK)
        self.assertTrue(self.login(url))
        self.assertTrue(self.login(url, options="?target_user=muninn&target_password=another-of-twelve"))
        # The initiator finds that this is not its target.
        self.assertFalse(self.login(url, options="?target_user=muninn&target_password=wrong-of-twelve"))
        self.assertFalse(self.login(self.url(daemon)))
        # One that can't prove itself.
        self.reload(daemon, "[target]\n" + CHAP + DISKS)
        self.assertFalse(self.login(url, options="?target_user=muninn&target_password=another-of-twelve"))
        self.assertTrue(self.login(url))
        self.reload(daemon, "[target]\n" + CHAP + MUTUAL.replace("another", "fourth") + DISKS)
        self.crash(daemon)
        self.assertTrue(self.login(url, options="?target_user=muninn&target_password=fourth-of-twelve"))
        self.assertFalse([line for line in daemon.errors if "of-twelve" in line or "twelve-or" in line])
        self.assertEqual(daemon.stop(), 0)

    def test_who_asks_which_targets_there_are_has_to_know_an_account(self):
        daemon = self.serve("[target]\n" + DISCOVERY + DISKS)
        self.assertIsNone(self.discover(daemon))
        self.assertIsNone(self.discover(daemon, SCOUT.replace("third", "fourth")))
        self.assertEqual(self.discover(daemon, SCOUT), [IQN])
        # Logins to the target are another matter.
        self.assertTrue(self.login(self.url(daemon)))
        self.crash(daemon)
        self.assertIsNone(self.discover(daemon))
        self.reload(daemon, DISKS)
        self.assertEqual(self.discover(daemon), [IQN])

    def test_targets_come_and_go_while_others_are_used(self):
        daemon = self.serve(DISKS)
        disk = self.attach(daemon, 2, name=HOST)
        third = "[lun 3]\ntype = disk\ndevice = pool\npartition = 0x10003\nvolume_size = 16M\ntarget = backup\n"
        target = f"[target backup]\nallow_name = {OTHER}\n" + CHAP
        self.assertEqual(
            self.reload(daemon, target + DISKS + third),
            [f"target {BACKUP} is added", ACCOUNTS, "LUN 3 is added"],
        )
        url = self.url(daemon, ERIK, BACKUP, 3)
        self.assertTrue(self.login(url, name=OTHER))
        self.assertFalse(self.login(url))
        self.assertFalse(self.login(self.url(daemon, "", BACKUP, 3), name=OTHER))
        self.assertTrue(self.login(self.url(daemon)))
        self.good(disk.read(0, 1))
        self.assertIn(f"target {BACKUP} is removed", self.reload(daemon, DISKS))
        self.assertFalse(self.login(url, name=OTHER))
        self.assertEqual(self.discover(daemon, name=OTHER), [IQN])
        self.good(disk.read(0, 1))
        self.assertEqual(daemon.stop(), 0)

    def test_a_target_that_goes_lets_nobody_in_while_its_last_unit_is_used(self):
        daemon = self.serve("[target backup]\n" + CHAP + DISKS + ON_BACKUP)
        self.assertEqual(len(self.reload(daemon, "[target backup]\nname = " + BACKUP + "\n" + DISKS + ON_BACKUP)), 1)
        session = Session(daemon.port, BACKUP, 2, name=HOST)
        self.addCleanup(session.close)
        disk = Disk(session)
        left = self.reload(daemon, DISKS[: DISKS.index("[lun 2]")], code=8)
        self.assertIn("LUN 2: 1 session uses it", left[0])
        self.assertFalse(self.login(self.url(daemon, name=BACKUP, lun=2)))
        self.assertEqual(self.discover(daemon), [IQN])
        self.good(disk.read(0, 1))
        session.logout()
        done = self.reload(daemon, DISKS[: DISKS.index("[lun 2]")])
        self.assertEqual(done, ["LUN 2 is removed", f"target {BACKUP} is removed"])
        # The unit on the other one, which it was never on.
        self.reload(daemon, DISKS)
        self.assertTrue(self.login(self.url(daemon, lun=2)))
        self.assertEqual(daemon.stop(), 0)

    def test_a_target_that_comes_back_while_its_unit_is_used_requires_its_account_again(self):
        config = "[target backup]\n" + CHAP + DISKS + ON_BACKUP
        daemon = self.serve(config.replace(CHAP, f"name = {BACKUP}\n"))
        session = Session(daemon.port, BACKUP, 2, name=HOST)
        self.addCleanup(session.close)
        self.good(Disk(session).read(0, 1))
        self.reload(daemon, config)
        self.assertIn(ACCOUNTS, self.reload(daemon, DISKS[: DISKS.index("[lun 2]")], code=8))
        self.assertFalse(self.login(self.url(daemon, ERIK, BACKUP, 2)))
        done = self.reload(daemon, config)
        self.assertFalse(self.login(self.url(daemon, name=BACKUP, lun=2)))
        self.assertTrue(self.login(self.url(daemon, ERIK, BACKUP, 2)))
        self.good(Disk(session).read(0, 1))
        self.assertIn(ACCOUNTS, done)
        # They go once.
        self.assertIn(ACCOUNTS, self.reload(daemon, DISKS[: DISKS.index("[lun 2]")], code=8))
        self.assertNotIn(ACCOUNTS, self.reload(daemon, DISKS[: DISKS.index("[lun 2]")], code=8))
        self.assertEqual(daemon.stop(), 0)

    def test_accounts_stay_while_a_target_that_goes_may_still_let_initiators_in(self):
        target, first = "[target]\n" + CHAP, DISKS[: DISKS.index("[lun 2]")]
        daemon = self.serve(f"[target backup]\nname = {BACKUP}\n" + target + DISKS + ON_BACKUP)
        # tgtd refuses to close what it does not have any more.
        daemon.tgtadm("--op", "delete", "--mode", "target", "--force", "--tid", "2")
        done = self.reload(daemon, target.replace("erik", "anna") + first, code=8)
        accounts = daemon.tgtadm("--op", "show", "--mode", "account")
        self.assertIn("erik", accounts)
        self.assertNotIn("anna", accounts)
        self.assertIn(f"not done: target {BACKUP} may still let initiators in: ", done[0])
        self.assertIn("not done: CHAP accounts stay as they are until it lets nobody in", done[1])
        self.assertTrue(self.login(self.url(daemon, ERIK)))
        self.assertFalse(self.login(self.url(daemon)))

    def test_what_a_target_gets_waits_for_the_account_that_it_comes_with(self):
        first = DISKS[: DISKS.index("[lun 2]")]
        daemon = self.serve(f"[target backup]\nname = {BACKUP}\n[target]\nallow_name = {OTHER}\n" + DISKS + ON_BACKUP)
        daemon.tgtadm("--op", "delete", "--mode", "target", "--force", "--tid", "2")
        third = "[lun 3]\ntype = disk\ndevice = pool\npartition = 0x10003\nvolume_size = 16M\n"
        done = self.reload(daemon, "[target]\n" + CHAP + first + third, code=8)
        self.assertIn("not done: [target] lets nobody else in before its accounts are there", done)
        self.assertIn("not done: LUN 3 is not added: LUN 3 waits for the CHAP account of its target: reload again", done)
        # Nor does an administrator add it.
        keys = third.split("\n", 1)[1].replace("3", "4").replace(" = ", "=").split()
        self.assertIn("LUN 4 waits for the CHAP account of its target", self.refused(daemon, 8, "lun", "add", 4, *keys))
        self.assertFalse(self.login(self.url(daemon)))
        self.assertTrue(self.login(self.url(daemon), name=OTHER))
        for lun in (3, 4):
            self.assertFalse(self.login(self.url(daemon, lun=lun), name=OTHER))

    def test_a_change_that_stopped_midway_is_made_by_the_next_reload(self):
        lists = "[target]\nallow_address = 127.0.0.0/8, 10.0.0.1\n"
        daemon = self.serve(lists + CHAP + DISKS)
        # What a first half leaves: an entry and an account are gone, another account is there.
        daemon.tgtadm("--op", "unbind", "--mode", "target", "--tid", "1", "-I", "10.0.0.1")
        daemon.tgtadm("--op", "delete", "--mode", "account", "--user", "erik")
        daemon.tgtadm("--op", "new", "--mode", "account", "--user", "anna", "--password", "left-behind-here")
        changed = "[target]\nallow_address = 127.0.0.0/8\n" + CHAP.replace("erik", "anna") + DISKS
        self.assertEqual(len(self.reload(daemon, changed)), 2)
        self.assertTrue(self.login(self.url(daemon, "anna%twelve-or-more@")))
        self.assertFalse(self.login(self.url(daemon, "anna%left-behind-here@")))
        self.assertFalse(self.login(self.url(daemon)))
        daemon.tgtadm("--op", "bind", "--mode", "target", "--tid", "1", "-I", "10.0.0.2")
        self.assertEqual(
            self.reload(daemon, changed.replace("127.0.0.0/8", "127.0.0.0/8 10.0.0.2")), ["who may log in has changed"]
        )

    def test_the_past_of_a_volume_is_where_its_present_is(self):
        daemon = self.serve(f"[target backup]\nallow_name = {OTHER}\n" + CHAP + DISKS + ON_BACKUP)
        for arguments in (("0x10002",), ("0x10002", "--writable")):
            past = self.admin(daemon, "volume", "expose", *arguments)
            self.assertIn("\ntarget = backup\n", past["section"])
            self.assertIn(f"/{BACKUP}/{past['lun']}", past["url"])
            for name in (HOST, OTHER):
                self.assertFalse(self.login(self.url(daemon, lun=past["lun"]), name=name))
            self.assertFalse(self.login(self.url(daemon, ERIK, BACKUP, past["lun"])))
            self.assertTrue(self.login(self.url(daemon, ERIK, BACKUP, past["lun"]), name=OTHER))
        # One that no unit is: where the first unit of its device is.
        made = self.admin(daemon, "volume", "create", "16M")
        past = self.admin(daemon, "volume", "expose", made["partition"])
        self.assertTrue(self.login(self.url(daemon, lun=past["lun"])))

    def test_a_unit_is_not_made_for_a_target_that_is_not_served(self):
        config = DISKS.replace("type = osd\n", "type = osd\n" + ON_BACKUP) + ON_BACKUP
        daemon = self.serve(f"[target backup]\nname = {BACKUP}\n" + config)
        image = os.path.join(self.folder(), "image")
        said = self.refused(daemon, 8, "lun", "add", 5, "type=osd", "size=16M", "image=" + image)
        self.assertIn("is on [target]: write LUN 5 into it and reload", said)
        self.assertFalse(os.path.exists(image))

    def test_a_file_that_the_next_start_would_refuse_is_refused_with_added_units(self):
        head = f"[target backup]\nname = {BACKUP}\n[target]\n" + CHAP
        daemon = self.serve(head + DISKS + ON_BACKUP)
        added = self.admin(
            daemon, "lun", "add", 5, "type=disk", "device=pool", "partition=0x10005", "volume_size=16M"
        )["section"]
        moved = head + DISKS.replace("type = osd\n", "type = osd\n" + ON_BACKUP) + ON_BACKUP
        self.rewrite(daemon, moved)
        self.assertIn("[target] says who may log in, and no logical unit is on", self.refused(daemon, 2, "reload"))
        self.assertTrue(self.login(self.url(daemon, ERIK, lun=5)))
        self.assertIn("LUN 5 is in the file now", self.reload(daemon, moved + added))
        self.assertTrue(self.login(self.url(daemon, ERIK, lun=5)))
        self.assertFalse(self.login(self.url(daemon, lun=5)))

    def test_a_secret_of_a_file_is_taken_up(self):
        folder = self.folder()
        path = os.path.join(folder, "secret")

        def write(text):
            with open(path, "w", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(text)

        config = f"[target]\nchap_user = erik\nchap_secret_file = {path}\n" + DISKS
        daemon = self.daemon(config=config)
        code, errors = daemon.run()
        self.assertEqual(code, 1)
        self.assertIn(f"chap_secret_file: {path}: No such file or directory", errors)
        write("twelve-or-more\n")
        daemon.start()
        self.assertTrue(self.login(self.url(daemon, ERIK)))
        self.assertFalse(self.login(self.url(daemon)))
        write("fifteen-or-more\n")
        self.reload(daemon, config)
        self.assertFalse(self.login(self.url(daemon, ERIK)))
        self.assertTrue(self.login(self.url(daemon, "erik%fifteen-or-more@")))
        os.chmod(path, 0o644)
        self.assertIn("others than its owner can use this secret", self.refused(daemon, 8, "reload"))
        # A credential of systemd.
        other = self.daemon(
            config="[target]\nchap_user = erik\nchap_secret_file = secret\n" + DISKS,
            environment={"CREDENTIALS_DIRECTORY": folder},
        ).start()
        self.assertTrue(self.login(self.url(other, "erik%fifteen-or-more@")))
        self.assertFalse([line for line in daemon.errors + other.errors if "or-more" in line])


if __name__ == "__main__":
    unittest.main()
