# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""The configuration is taken up anew while sessions go on: what changes at once, what is left, what needs a restart;
a wrong file changes nothing. And what systemd is told."""

import os
import signal
import socket
import subprocess
import threading
import time
import unittest

from harness import IQN, LIMIT_SECONDS, children_of, noise, wait_for_exit
from service import HOST, OTHER, POOL, ServiceTest

SANITIZED = True
THIRD = "[lun 3]\ntype = disk\ndevice = pool\npartition = 0x10003\nvolume_size = 16M\n"
ACCOUNT = "[target]\nchap_user = erik\nchap_secret = twelve-or-more\n"


class Manager:
    """Plays systemd: the messages of a service to it."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.said = []
        self.changed = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while message := self.socket.recv(4096).decode():
            with self.changed:
                self.said.append(message)
                self.changed.notify_all()

    def mark(self, text):
        """A message of the test's own, behind all that have come."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
            own.sendto(text.encode(), self.path)

    def close(self):
        """An empty message ends the listener."""
        self.mark("")

    def between(self, first, last):
        """The messages between two."""
        with self.changed:
            begin = next(i for i, message in enumerate(self.said) if first in message)
            end = next(i for i, message in enumerate(self.said) if i > begin and last in message)
            return self.said[begin + 1 : end]

    def wait_for(self, text, count=1):
        """Until a message with this text has come so often."""

        def has_come():
            return sum(text in message for message in self.said) >= count

        with self.changed:
            if not self.changed.wait_for(has_come, LIMIT_SECONDS):
                raise AssertionError(f"systemd was never told {text}: {self.said}")

    def count(self, text):
        with self.changed:
            return sum(text in message for message in self.said)


class Reload(ServiceTest):
    def reload(self, daemon, config, code=0):
        """(done, left, restart)"""
        self.rewrite(daemon, config)
        done = self.try_ctl("reload", "--socket", self.socket_of(daemon))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        lines = done.stdout.decode().splitlines()
        left = [line for line in lines if line.startswith("not done: ")]
        restart = [line for line in lines if line.startswith("restart: ")]
        return [line for line in lines if line not in left + restart], left, restart

    def login(self, daemon, account="", name=HOST):
        command = ["iscsi-inq", "-i", name, daemon.url(account=account)]
        return subprocess.run(command, capture_output=True, timeout=LIMIT_SECONDS, check=False).returncode == 0

    def test_units_come_and_go_while_others_are_used(self):
        daemon = self.serve()
        disk, data = self.attach(daemon, 2, name=HOST), noise(65536, 1)
        self.good(disk.write(0, data))
        self.assertEqual(self.reload(daemon, POOL + THIRD), (["LUN 3 is added"], [], []))
        self.settle(disk)
        self.assertEqual(disk.read(0, 128).data_in, data)
        third = self.attach(daemon, 3, name=OTHER)
        self.good(third.write(0, data))
        # It is used: it stays, and goes when it is not.
        done, left, restart = self.reload(daemon, POOL, code=8)
        self.assertEqual((done, restart, len(left)), ([], [], 1))
        self.assertIn(f"LUN 3: 1 session uses it ({OTHER} at 127.0.0.1)", left[0])
        self.assertIn("`muninnctl lun rm 3 --force` removes it", left[0])
        self.assertEqual(third.read(0, 128).data_in, data)
        third.session.logout()
        self.assertEqual(self.reload(daemon, POOL), (["LUN 3 is removed"], [], []))
        self.assertEqual(sorted(self.units(daemon)), [1, 2])
        self.assertEqual(self.reload(daemon, POOL), (["nothing has changed"], [], []))
        self.settle(disk)
        # Its volume is still there.
        self.reload(daemon, POOL + THIRD)
        self.assertEqual(self.attach(daemon, 3).read(0, 128).data_in, data)
        self.settle(disk)
        self.assertEqual(disk.read(0, 128).data_in, data)
        self.assertEqual(daemon.stop(), 0)

    def test_a_unit_of_a_version_that_is_not_there_is_told_and_the_rest_is_done(self):
        daemon = self.serve()
        self.ctl("snapshot", daemon.url(), "0x10002", "--name", "before")
        past = "[lun 9]\ntype = disk\ndevice = pool\npartition = 0x10002\nversion = {}\n"
        new = "[lun 8]\ntype = disk\nsize = 16M\nversion = before\n"
        for wrong in ("befor", "77"):
            done, left, restart = self.reload(daemon, POOL + past.format(wrong) + new + THIRD, code=8)
            self.assertEqual((done, restart, len(left)), (["LUN 3 is added"], [], 2))
            self.assertIn("LUN 8 is not added: version = before: the device", left[1])
            self.assertIn(f"LUN 9 is not added: partition 0x10002 has no version '{wrong}'", left[0])
            self.assertIn("`muninnctl versions URL 0x10002` shows those that it has", left[0])
            self.assertEqual(sorted(self.units(daemon)), [1, 2, 3])
            self.assertEqual(self.reload(daemon, POOL), (["LUN 3 is removed"], [], []))
        self.assertFalse(os.path.exists(daemon.image(8)))
        # It is corrected: no restart is needed.
        self.assertEqual(self.reload(daemon, POOL + past.format("before")), (["LUN 9 is added"], [], []))
        self.good(self.attach(daemon, 9).read(0, 1))
        self.assertEqual(daemon.stop(), 0)

    def test_a_partition_is_not_served_twice_while_its_old_unit_is_used(self):
        daemon = self.serve()
        disk = self.attach(daemon, 2, name=HOST)
        self.good(disk.read(0, 1))
        moved = POOL.replace("[lun 2]", "[lun 9]")
        _, left, _ = self.reload(daemon, moved, code=8)
        self.assertIn("both partition 0x10002", "".join(left))
        self.assertEqual(sorted(self.units(daemon)), [1, 2])
        disk.session.close()
        self.reload(daemon, moved)
        self.assertEqual(sorted(self.units(daemon)), [1, 9])

    def test_folders_are_relative_to_where_the_service_was_started(self):
        daemon = self.daemon(config=POOL)
        at = daemon.command.index("--state-dir") + 1
        daemon.command[at] = os.path.relpath(daemon.command[at])
        daemon.start()
        self.assertEqual(self.reload(daemon, POOL), (["nothing has changed"], [], []))
        self.assertIn("LUN 3", " ".join(self.reload(daemon, POOL + THIRD)[0]))

    def test_a_wrong_file_changes_nothing(self):
        daemon = self.serve()
        disk = self.attach(daemon, 2)
        other = os.path.join(daemon.state_dir, "no-image")
        with open(other, "wb") as file:
            file.write(noise(1 << 20, 1))
        for code, message, config in (
            (2, f"{daemon.config_path}:9: [lun 2] has no key partiton", POOL.replace("partition =", "partiton =") + THIRD),
            (2, "there is no logical unit", "[daemon]\n"),
            (2, "both partition 0x10002", POOL + THIRD.replace("0x10003", "0x10002")),
            (8, "/nowhere/key", POOL + THIRD + "[lun 4]\ntype = osd\nsize = 16M\nkey_file = /nowhere/key\n"),
            (8, f"LUN 4: {other}.nvram is missing", POOL + THIRD + f"[lun 4]\ntype = osd\nimage = {other}\n"),
            (8, "this host has no group", "[daemon]\nadmin_group = no-such-group\n" + POOL + THIRD),
        ):
            self.rewrite(daemon, config)
            said = self.refused(daemon, code, "reload")
            self.assertIn(message, said)
            self.assertEqual(sorted(self.units(daemon)), [1, 2])
        os.unlink(daemon.config_path)
        self.assertIn("No such file", self.refused(daemon, 8, "reload"))
        daemon.wait_for_line("reload: nothing has changed", "No such file")
        self.good(disk.read(0, 1))
        self.assertEqual(self.reload(daemon, POOL), (["nothing has changed"], [], []))

    def test_damage_of_an_image_that_waits_to_grow_is_told_by_who_serves_it(self):
        daemon = self.serve()
        daemon.stop()
        image = os.path.join(daemon.state_dir, "pool.img")
        with open(image, "r+b") as file:  # the word of a block that is free, in the block table
            file.seek(65536 + 8 * 2000)
            file.write(b"\xff" * 8)
        daemon.start()
        told = daemon.wait_for_line("state of 1 blocks is damaged")
        for host in range(3):
            who = f"[target]\nallow_name = iqn.2026-11.host:{host}\n"
            _, _, restart = self.reload(daemon, who + POOL.replace("512M", "600M"))
            self.assertEqual(len(restart), 1, restart)
        self.ctl("status", "--socket", self.socket_of(daemon))
        self.assertEqual([line for line in daemon.errors if "blocks is damaged" in line], [told])

    def test_an_image_that_is_served_or_waits_for_a_restart_refuses_nothing(self):
        """Somebody may have to be shut out at once. What would make the next start fail is told, once for each device."""
        daemon = self.serve()
        image = os.path.join(daemon.state_dir, "pool.img")
        names, fails = iter(range(100)), "restart: the next start would fail: "

        def narrow(config, *restart):
            done, left, told = self.reload(daemon, f"[target]\nallow_name = iqn.2026-11.host:{next(names)}\n" + config)
            self.assertEqual((done, left), (["who may log in has changed"], []))
            self.assertEqual(len(told), len(restart), told)
            for line, text in zip(told, restart):
                self.assertTrue(line.startswith(text), told)

        for suffix, said in (("", f"{image} is missing, but its NVRAM file"), (".nvram", f"{image}.nvram is missing")):
            os.rename(image + suffix, image + ".away")
            narrow(POOL, f"{fails}LUN 1: {said}")
            os.rename(image + ".away", image + suffix)
        # What is in a file that is served is not looked at.
        with open(image, "r+b") as file:
            header = file.read(1 << 16)
            file.seek(0)
            file.write(noise(1 << 16, 1))
            narrow(POOL)
            larger = POOL.replace("512M", "600M")
            narrow(larger, f"{fails}LUN 1: {image}", "restart: LUN 1: its device gets its larger size")
            file.seek(0)
            file.write(header)
        narrow(larger, "restart: LUN 1: its device gets its larger size")
        narrow(POOL.replace("512M", "512T"), f"{fails}LUN 1: ", "restart: LUN 1: its device gets its larger size")
        changed = [f"restart: LUN {lun} has changed" for lun in (1, 2)]
        other = POOL.replace("[device pool]", "[device pool]\nimage = other.img")
        narrow(other, *changed)
        with open(os.path.join(daemon.state_dir, "other.img"), "wb") as file:
            file.write(noise(1 << 20, 1))
        narrow(other, f"{fails}LUN 1: {file.name}.nvram is missing", *changed)
        # A key file.
        narrow(POOL.replace("type = osd", "type = osd\nkey_file = missing"), f"{fails}{daemon.config_path}:", changed[0])
        narrow(POOL)
        self.assertEqual(daemon.stop(), 0)

    def test_who_may_log_in_changes_at_once(self):
        daemon = self.serve(f"[target]\nallow_name = {HOST}, {OTHER}\n" + POOL)
        disk, other = self.attach(daemon, 2, name=HOST), self.attach(daemon, 2, name=OTHER)
        done, left, _ = self.reload(daemon, f"[target]\nallow_name = {HOST}\n" + POOL)
        self.assertEqual(done, ["who may log in has changed", f"the session of {OTHER} at 127.0.0.1 is ended"])
        self.assertEqual(left, [])
        with self.assertRaises(ConnectionError):
            other.read(0, 1)
        self.assertFalse(self.login(daemon, name=OTHER))
        self.good(disk.read(0, 1))
        # By address: everybody on this host again, then nobody.
        self.reload(daemon, "[target]\nallow_address = 127.0.0.0/8\n" + POOL)
        self.assertTrue(self.login(daemon, name=OTHER))
        self.good(disk.read(0, 1))
        self.reload(daemon, "[target]\nallow_address = 10.0.0.0/8, ::1\n" + POOL)
        self.assertFalse(self.login(daemon))
        with self.assertRaises(ConnectionError):
            disk.read(0, 1)
        self.reload(daemon, POOL)
        self.assertTrue(self.login(daemon))

    def test_who_may_log_in_is_asked_of_whole_names(self):
        daemon = self.serve()
        names = [HOST, f"{HOST} too", f" {HOST}", f"{HOST} "]
        disks = [self.attach(daemon, 2, name=name) for name in names]
        sessions = self.admin(daemon, "session", "ls")["sessions"]
        self.assertEqual(sorted(session["initiator"] for session in sessions), sorted(names))
        done, left, _ = self.reload(daemon, f"[target]\nallow_name = {HOST}\n" + POOL)
        ended = [f"the session of {name} at 127.0.0.1 is ended" for name in names[1:]]
        self.assertEqual((sorted(done), left), (sorted(["who may log in has changed", *ended]), []))
        self.good(disks[0].read(0, 1))
        for disk in disks[1:]:
            with self.assertRaises(ConnectionError):
                disk.read(0, 1)

    def test_the_account_changes_at_once_and_sessions_go_on(self):
        daemon = self.serve()
        disk = self.attach(daemon, 2)
        done, _, _ = self.reload(daemon, ACCOUNT + POOL)
        self.assertIn("CHAP accounts have changed; sessions that are logged in go on", done[0])
        self.assertFalse(self.login(daemon))
        self.assertTrue(self.login(daemon, "erik%twelve-or-more@"))
        # Another secret of the same name; another name; none.
        self.reload(daemon, ACCOUNT.replace("twelve", "thirteen") + POOL)
        self.assertFalse(self.login(daemon, "erik%twelve-or-more@"))
        self.assertTrue(self.login(daemon, "erik%thirteen-or-more@"))
        self.reload(daemon, ACCOUNT.replace("erik", "anna") + POOL)
        self.assertFalse(self.login(daemon, "erik%thirteen-or-more@"))
        self.assertTrue(self.login(daemon, "anna%twelve-or-more@"))
        self.reload(daemon, POOL)
        self.assertTrue(self.login(daemon))
        self.good(disk.read(0, 1))
        self.assertNotIn("or-more", "\n".join(daemon.errors))
        self.assertEqual(daemon.stop(), 0)

    def test_what_needs_a_restart_is_named_and_counts_then(self):
        daemon = self.serve()
        config = (
            f"[target]\nname = {IQN}2\n[limits]\nconnections = 7\n[daemon]\nlog_level = debug\nwatchdog = 50\n"
            + POOL.replace("volume_size = 64M", "volume_size = 80M\nthreads = 3")
        )
        done, left, restart = self.reload(daemon, config)
        self.assertEqual(
            (done, left), (["LUN 2 has its new volume_size", "watchdog has changed", "log_level has changed"], [])
        )
        self.assertEqual(len(restart), 3, restart)
        for text in ("name of [target]", "[limits]", "LUN 2 has changed"):
            self.assertTrue(any(text in line for line in restart), (text, restart))
        self.assertEqual(self.units(daemon)[2]["threads"], 2)
        self.assertEqual(self.attach(daemon, 2).capacity(), (80 << 11, 512))
        daemon.restart()
        self.assertEqual(self.units(daemon)[2]["threads"], 3)
        self.assertEqual(self.admin(daemon, "status")["target"], IQN + "2")

    def test_a_volume_that_has_grown_further_than_the_file_says_stays_so(self):
        daemon = self.serve()
        self.admin(daemon, "lun", "resize", 2, "80M")
        daemon.restart()
        done, left, restart = self.reload(daemon, POOL.replace("64M", "70M"))
        self.assertEqual((left, restart), ([], []))
        self.assertEqual(done, [f"LUN 2 has {80 << 20} bytes, more than volume_size says: it stays so"])
        self.assertEqual(self.reload(daemon, POOL.replace("64M", "70M"))[0], ["nothing has changed"])
        self.assertEqual(self.attach(daemon, 2).capacity(), (80 << 11, 512))

    def test_a_volume_does_not_shrink_to_a_smaller_size_and_the_command_says_so(self):
        daemon = self.serve()
        smaller = POOL.replace("64M", "48M")
        self.assertEqual(
            self.reload(daemon, smaller),
            ([f"LUN 2 has {64 << 20} bytes, more than volume_size says: it stays so"], [], []),
        )
        self.assertEqual(self.reload(daemon, smaller)[0], ["nothing has changed"])
        self.assertEqual(self.attach(daemon, 2).capacity(), (64 << 11, 512))
        # Without a size in the file nothing is said.
        self.assertEqual(self.reload(daemon, POOL.replace("volume_size = 64M\n", ""))[0], ["nothing has changed"])

    def test_a_size_of_another_unit_changes_nothing_of_the_one_that_is_served(self):
        daemon = self.serve()
        waits = ([], [], ["restart: LUN 2 has changed: it counts from the next start on"])
        for size in ("200M", "48M"):
            other = POOL.replace("0x10002", "0x10005").replace("64M", size)
            for _ in ("first", "again"):
                self.assertEqual(self.reload(daemon, other), waits)
        self.assertEqual(self.attach(daemon, 2).capacity(), (64 << 11, 512))
        self.assertEqual(self.reload(daemon, POOL), (["nothing has changed"], [], []))
        # An OSD becomes a disk.
        osd = "[lun 3]\ntype = osd\nsize = 16M\n"
        self.reload(daemon, POOL + osd)
        disk = osd.replace("osd", "disk") + "partition = 0x10002\nvolume_size = 8M\n"
        self.assertEqual(self.reload(daemon, POOL + disk), ([], [], [waits[2][0].replace("LUN 2", "LUN 3")]))

    def test_a_size_that_is_not_known_is_not_changed(self):
        config = "[daemon]\nwatchdog = 10\n" + POOL
        daemon = self.serve(config)
        self.rewrite(daemon, config.replace("64M", "48M"))
        for turn in range(1, 10):
            tgtd = children_of(daemon.process.pid)[0]
            os.kill(tgtd, signal.SIGSTOP)
            done = self.try_ctl("reload", "--socket", self.socket_of(daemon))
            self.assertEqual(done.returncode, 8, done)
            if b"LUN 2" in done.stdout:
                break
            # The service asks by itself, too, and has found it first: tgtd is started again.
            wait_for_exit(tgtd)
            while sum("initiators can log in" in line for line in daemon.errors) < turn:
                time.sleep(0.02)
        said = done.stdout.decode()
        self.assertRegex(said, "^not done: LUN 2 keeps its size, which is not known now: .*does not answer within 10 s\n")

    def test_the_log_level_changes_at_once_for_tgtd_too(self):
        daemon = self.serve()
        quiet = "[daemon]\nlog_level = warning\n"
        self.reload(daemon, quiet + POOL)
        self.admin(daemon, "lun", "add", 3, *(line.replace(" ", "") for line in THIRD.splitlines()[1:]))
        self.admin(daemon, "lun", "rm", 3)
        self.reload(daemon, POOL + THIRD.replace("lun 3", "lun 4"))
        self.reload(daemon, POOL)
        daemon.wait_for_line("LUN 4: closed, everything is stable")
        # Both had the same to say.
        self.assertFalse([line for line in daemon.errors if "LUN 3" in line])

    def test_units_that_were_added_stay_until_the_file_has_them(self):
        daemon = self.serve()
        keys = [line.replace(" ", "") for line in THIRD.splitlines()[1:]]
        self.admin(daemon, "lun", "add", 3, *keys)
        self.assertEqual(self.reload(daemon, POOL), (["nothing has changed"], [], []))
        self.assertTrue(self.units(daemon)[3]["added"])
        self.assertEqual(self.reload(daemon, POOL + THIRD), (["LUN 3 is in the file now"], [], []))
        self.assertFalse(self.units(daemon)[3]["added"])
        self.assertEqual(self.reload(daemon, POOL), (["LUN 3 is removed"], [], []))
        # The file has another unit of that number.
        self.admin(daemon, "lun", "add", 3, *keys)
        other = "[lun 3]\ntype = osd\nsize = 16M\n"
        _, _, restart = self.reload(daemon, POOL + other)
        self.assertEqual(restart, ["restart: LUN 3 has changed: it counts from the next start on"])
        daemon.restart()
        self.assertEqual(self.units(daemon)[3]["type"], "osd")

    def test_it_works_without_tgtd_having_to_be_started_again_after_a_crash(self):
        daemon = self.serve()
        self.reload(daemon, ACCOUNT + POOL + THIRD)
        os.kill(daemon.tgtd_pid, signal.SIGKILL)
        daemon.wait_for_line("initiators can log in")
        self.assertFalse(self.login(daemon))
        self.assertTrue(self.login(daemon, "erik%twelve-or-more@"))
        self.assertEqual(sorted(self.units(daemon)), [1, 2, 3])


class UnderSystemd(ServiceTest):
    def managed(self, config, **environment):
        folder = self.folder()
        manager = Manager(folder)
        self.addCleanup(manager.close)
        daemon = self.daemon(config=config, environment={"NOTIFY_SOCKET": manager.path, **environment})
        return daemon.start(), manager

    def test_sighup_is_a_reload(self):
        daemon, _ = self.managed(POOL)
        self.rewrite(daemon, POOL + THIRD)
        os.kill(daemon.process.pid, signal.SIGHUP)
        daemon.wait_for_line("reload: LUN 3 is added")
        self.assertEqual(sorted(self.units(daemon)), [1, 2, 3])
        self.rewrite(daemon, "wrong")
        os.kill(daemon.process.pid, signal.SIGHUP)
        daemon.wait_for_line("reload: nothing has changed")
        self.assertEqual(sorted(self.units(daemon)), [1, 2, 3])
        self.assertEqual(daemon.stop(), 0)

    def test_sighup_while_there_is_no_tgtd_is_a_reload_later(self):
        folder = self.folder()
        manager = Manager(folder)
        self.addCleanup(manager.close)
        daemon, link = self.with_tgtd_of_its_own(POOL, environment={"NOTIFY_SOCKET": manager.path})
        daemon.start()
        os.unlink(link)
        os.kill(daemon.tgtd_pid, signal.SIGKILL)
        daemon.wait_for_line("tgtd is started again in")
        self.rewrite(daemon, f"[daemon]\ntgtd = {link}\n" + POOL + THIRD)
        os.kill(daemon.process.pid, signal.SIGHUP)
        daemon.wait_for_line("the configuration is taken up when tgtd runs again")
        os.symlink("/usr/sbin/tgtd", link)
        daemon.wait_for_line("reload: LUN 3 is added")
        self.assertEqual(sorted(self.units(daemon)), [1, 2, 3])
        self.assertEqual(daemon.stop(), 0)

    def test_without_it_sighup_is_a_stop(self):
        self.assertEqual(self.serve().stop(signal.SIGHUP), 0)

    def test_it_is_told_of_life_while_the_units_answer(self):
        config = "[daemon]\nwatchdog = 2\n" + POOL
        daemon, manager = self.managed(config, WATCHDOG_USEC="360000000")
        manager.wait_for("READY=1")
        manager.wait_for("WATCHDOG=1", manager.count("WATCHDOG=1") + 3)
        # Nothing answers while tgtd stands still. A last answer may be on its way.
        os.kill(daemon.process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, daemon.process.pid, os.WSTOPPED)
        os.kill(daemon.tgtd_pid, signal.SIGSTOP)
        manager.mark("tgtd stands still")
        os.kill(daemon.process.pid, signal.SIGCONT)
        manager.wait_for("STATUS=tgtd is started again: ")
        between = manager.between("tgtd stands still", "STATUS=tgtd is started again: ")
        self.assertLessEqual(between.count("WATCHDOG=1"), 1, between)
        manager.wait_for("STATUS=serving 2 logical units", 2)
        manager.wait_for("WATCHDOG=1", manager.count("WATCHDOG=1") + 3)
        self.assertEqual(daemon.stop(), 0)
        manager.wait_for("STOPPING=1")


if __name__ == "__main__":
    unittest.main()
