# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""The administration socket: who may ask, what is bounded; how the service is, sessions, units that come and go,
volumes and their past."""

import datetime
import grp
import json
import os
import re
import signal
import socket
import subprocess
import time
import unittest

from harness import LIMIT_SECONDS, MUNINNCTL, noise, wait_for_exit
from service import HOST, OTHER, POOL, ServiceTest
from test_terminal import ROWS, Terminal

SANITIZED = True
NOBODY = 65534
CONNECTIONS = 8  # at once


def ask_as(user, groups, folder, request=b'{"do":"session ls"}\n'):
    """What another user of this host gets for a request; the reason, where he can't even connect."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.chdir(folder)
            os.setgroups(groups)
            os.setgid(NOBODY)
            os.setuid(user)
            with socket.socket(socket.AF_UNIX) as asking:
                asking.settimeout(LIMIT_SECONDS)
                asking.connect("admin")
                try:
                    asking.sendall(request)
                except BrokenPipeError:
                    pass
                os.write(write_end, asking.recv(65536))
        except OSError as error:
            os.write(write_end, json.dumps({"reason": error.strerror}).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer)


class Socket(ServiceTest):
    @unittest.skipIf(os.geteuid(), "only root can be somebody else")
    def test_arguments_that_are_no_text_are_refused(self):
        daemon = self.serve()
        for words in (
            ("lun", "add", "5", "type=osd", f"image={daemon.state_dir}/caf\udce9.img"),
            ("volume", "ls", "--device", "p\udce9"),
            ("session", "kick", "iqn.2026-11.host:\udce9"),
        ):
            self.assertIn("an argument is no UTF-8 text", self.refused(daemon, 2, *words))
        self.assertEqual(sorted(self.units(daemon)), [1, 2])

    def test_only_root_the_service_and_members_of_a_group_may_ask(self):
        group = next(entry for entry in grp.getgrall() if entry.gr_gid not in (0, NOBODY))
        daemon = self.serve()
        os.chmod(daemon.state_dir, 0o711)
        self.assertEqual(ask_as(NOBODY, [], daemon.state_dir), {"reason": "Permission denied"})
        self.assertEqual(daemon.stop(), 0)
        daemon = self.serve(f"[daemon]\nadmin_group = {group.gr_name}\n" + POOL)
        os.chmod(daemon.state_dir, 0o711)
        message = ask_as(NOBODY, [], daemon.state_dir)["error"]["message"]
        self.assertIn("may not administer this service: root may", message)
        self.assertIn(f"members of group {group.gr_name}", message)
        daemon.wait_for_line("administration: user", "was turned away")
        # A line a minute is enough.
        for _ in range(20):
            self.assertEqual(ask_as(NOBODY, [], daemon.state_dir)["error"]["kind"], "denied")
        self.assertEqual(sum("was turned away" in line for line in daemon.errors), 1)
        self.assertEqual(ask_as(NOBODY, [group.gr_gid], daemon.state_dir), {"ok": {"sessions": []}})
        self.assertEqual(self.admin(daemon, "session", "ls"), {"sessions": []})
        # What has all data and keys in it is not for the group.
        refused = ask_as(NOBODY, [group.gr_gid], daemon.state_dir, b'{"do":"device backup","device":"1"}\n')["error"]
        self.assertEqual(refused["kind"], "denied")
        self.assertIn("a backup has all data and keys of the device", refused["message"])

    def test_a_group_that_the_host_does_not_have_is_refused(self):
        code, errors = self.daemon(config="[daemon]\nadmin_group = no-such-group\n" + POOL).run()
        self.assertEqual(code, 1)
        self.assertIn("admin_group: this host has no group no-such-group", errors)

    def test_who_says_nothing_or_nonsense_holds_up_nobody(self):
        daemon = self.serve()
        silent = []
        for _ in range(2 * CONNECTIONS):
            silent.append(socket.socket(socket.AF_UNIX))
            self.addCleanup(silent[-1].close)
            silent[-1].connect(self.socket_of(daemon))
        # Behind all of them; each is shown out after a while.
        self.assertEqual(self.admin(daemon, "session", "ls"), {"sessions": []})
        for each in silent:
            each.settimeout(LIMIT_SECONDS)
            self.assertEqual(each.recv(1), b"")
        self.assertEqual(self.ask(daemon, b"x" * 20000), b"")
        for nonsense in (b"x\n", b"[]\n", b'{"do":1}\n', b'{"do":"fly"}\n', b"\xff\n", b'{"do":"lun rm"}\n'):
            self.assertEqual(json.loads(self.ask(daemon, nonsense))["error"]["kind"], "usage", nonsense)
        # Half a request, and gone.
        with socket.socket(socket.AF_UNIX) as gone:
            gone.connect(self.socket_of(daemon))
            gone.sendall(b'{"do":')
        self.assertEqual(self.admin(daemon, "session", "ls"), {"sessions": []})
        self.assertEqual(daemon.stop(), 0)
        self.assertFalse(os.path.exists(self.socket_of(daemon)))

    def test_without_a_service_it_says_so(self):
        daemon = self.daemon(config=POOL)
        self.assertIn("no service answers there", self.refused(daemon, 6, "status"))


class Status(ServiceTest):
    def test_it_stops_asking_a_tgtd_that_hangs(self):
        # The service does not ask by itself for 75 s.
        daemon = self.serve("[daemon]\nwatchdog = 300\n" + POOL)
        self.units(daemon)
        os.kill(daemon.tgtd_pid, signal.SIGSTOP)
        troubles = [unit["trouble"] for unit in self.units(daemon).values()]
        self.assertEqual(troubles, ["it was not asked: others did not answer in time"] * 2)

    def test_tgtd_is_looked_after_between_two_requests(self):
        daemon = self.serve("[daemon]\nwatchdog = 3\n" + POOL)
        os.kill(daemon.process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, daemon.process.pid, os.WSTOPPED)
        os.kill(daemon.tgtd_pid, signal.SIGSTOP)
        asking = []
        for _ in range(CONNECTIONS):
            asking.append(socket.socket(socket.AF_UNIX))
            self.addCleanup(asking[-1].close)
            asking[-1].settimeout(LIMIT_SECONDS)
            asking[-1].connect(self.socket_of(daemon))
            asking[-1].sendall(b'{"do":"status"}\n')
        os.kill(daemon.process.pid, signal.SIGCONT)
        running = 0
        for each in asking:
            answer = b""
            while got := each.recv(65536):
                answer += got
            running += json.loads(answer)["ok"]["tgtd"] is not None and b"not asked" in answer
        # Each takes 2 s of the 3 s that tgtd has.
        self.assertLessEqual(running, 3)
        daemon.wait_for_line("tgtd does not answer within 3 s")
        daemon.wait_for_line("initiators can log in")

    def test_it_tells_of_units_sessions_and_troubles(self):
        daemon = self.serve()
        disk = self.attach(daemon, 2, name=HOST)
        self.good(disk.write(0, noise(8192, 1)))
        status = self.admin(daemon, "status")
        self.assertEqual((status["process"], status["tgtd"]["process"]), (daemon.process.pid, daemon.tgtd_pid))
        self.assertEqual((status["sessions"], status["tgtd"]["restarts"]), (1, 0))
        units = {unit["lun"]: unit for unit in status["units"]}
        self.assertEqual((units[1]["type"], units[2]["type"], units[2]["partition"]), ("osd", "disk", "0x10002"))
        self.assertEqual((units[2]["bytes"], units[2]["read_only"], units[2]["added"]), (64 << 20, False, False))
        self.assertGreater(units[2]["used_bytes"], 8192)
        self.assertEqual((len(units[1]["sessions"]), len(units[2]["sessions"])), (0, 1))
        text = self.lines(daemon, "status")
        self.assertIn("LUN 2   disk  64.0 MiB, volume 0x10002; device pool", text)
        self.assertNotIn("last warnings", text)
        os.kill(daemon.tgtd_pid, signal.SIGKILL)
        daemon.wait_for_line("initiators can log in")
        status = self.admin(daemon, "status")
        self.assertEqual((status["sessions"], status["tgtd"]["restarts"]), (0, 1))
        self.assertTrue(any("died of signal 9" in trouble["line"] for trouble in status["troubles"]), status)
        self.assertEqual(status["troubles"][0]["line"], "tgtd runs again: initiators can log in")
        self.assertIn("last warnings and errors, the newest first:", self.lines(daemon, "status"))
        self.assertEqual(daemon.stop(), 0)

    def test_it_answers_while_tgtd_is_being_started_again(self):
        daemon = self.serve()
        os.kill(daemon.tgtd_pid, signal.SIGKILL)
        daemon.wait_for_line("tgtd is started again in 1 s")
        status = self.admin(daemon, "status")
        self.assertEqual(len(status["units"]), 2)
        daemon.wait_for_line("initiators can log in")
        self.assertEqual(self.admin(daemon, "status")["tgtd"]["restarts"], 1)

    def test_what_needs_tgtd_is_refused_while_there_is_none(self):
        daemon, link = self.with_tgtd_of_its_own(POOL)
        daemon.start()
        os.unlink(link)
        os.kill(daemon.tgtd_pid, signal.SIGKILL)
        daemon.wait_for_line("tgtd is started again in")
        for verb in (
            ("session", "ls"),
            ("session", "kick", "1"),
            ("lun", "rm", "2"),
            ("lun", "resize", "2", "80M"),
            ("lun", "add", "5", "type=osd"),
            ("volume", "ls"),
            ("volume", "rm", "0x10009"),
            ("reload",),
        ):
            self.assertIn("tgtd does not run just now, it is started again", self.refused(daemon, 8, *verb))
        os.symlink("/usr/sbin/tgtd", link)
        daemon.wait_for_line("initiators can log in")
        self.assertEqual(self.admin(daemon, "session", "ls"), {"sessions": []})

    def test_sessions_are_listed_with_what_they_use_and_ended(self):
        daemon = self.serve()
        disk, other = self.attach(daemon, 2, name=HOST), self.attach(daemon, 1, name=OTHER)
        listed = {each["initiator"]: each for each in self.admin(daemon, "session", "ls")["sessions"]}
        self.assertEqual({name: each["units"] for name, each in listed.items()}, {HOST: [2], OTHER: [1]})
        self.assertEqual({each["address"] for each in listed.values()}, {"127.0.0.1"})
        self.assertIn(f"{HOST} 127.0.0.1 LUN 2\n", self.lines(daemon, "session", "ls"))
        self.assertIn("no session of iqn.x:y is logged in", self.refused(daemon, 3, "session", "kick", "iqn.x:y"))
        self.assertIn("there is no session 60000", self.refused(daemon, 3, "session", "kick", "60000"))
        kicked = self.admin(daemon, "session", "kick", HOST)["kicked"]
        self.assertEqual(kicked, [listed[HOST]["session"]])
        with self.assertRaises(ConnectionError):
            disk.read(0, 1)
        other.session.run(bytes(6))
        self.admin(daemon, "session", "kick", listed[OTHER]["session"])
        with self.assertRaises(ConnectionError):
            other.session.run(bytes(6))
        self.attach(daemon, 2, name=HOST)
        daemon.wait_for_line("administration: session", HOST, "is ended")


class Top(ServiceTest):
    def pictures(self, terminal, count):
        terminal.wait_for(r"(PROG/WRITE(.|\n)*){%d}" % count)
        self.assertEqual(terminal.interrupt(), 0)
        return terminal.text.split("\033[H\033[2J")[1:count]

    def test_a_pipe_gets_what_units_and_devices_do_a_second_once(self):
        daemon = self.serve()
        disk, data = self.attach(daemon, 2), noise(65536, 1)
        top = subprocess.Popen(
            [MUNINNCTL, "top", "--socket", self.socket_of(daemon)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        # Whatever two seconds it looks at, there are writes in them.
        while top.poll() is None:
            self.good(disk.write(0, data))
        lines = top.communicate()[0].splitlines()
        self.assertEqual(top.returncode, 0)
        self.assertLessEqual(max(map(len, lines)), 80)
        units = {line.split()[0]: line.split() for line in lines if re.match(r" +\d+ (osd|disk) ", line)}
        self.assertEqual((units["1"][1], units["2"][1]), ("osd", "disk"))
        self.assertEqual(units["1"][2:6], ["0", "0", "B", "0"])
        self.assertGreater(int(units["2"][5]), 0, lines)
        self.assertEqual(units["2"][-1], "1")
        # Nobody has asked unit 1 for anything, so its commands took no time.
        self.assertEqual(units["1"][8], "-")
        self.assertRegex(" ".join(units["2"][8:10]), r"\d+(\.\d\d)? ms")
        self.assertGreater(float(units["2"][8]), 0)
        heads, pool = next(line for line in lines if line.startswith("DEVICE")), next(line for line in lines if line.startswith("pool"))
        device = dict(zip(heads.split(), pool.split()))
        self.assertEqual(device["PAGE/READ"], "-")
        self.assertRegex(device["PROG/WRITE"], r"^\d+\.\d\d$")
        self.assertEqual(device["WEAR"], "0")
        self.assertRegex(pool, r" \d+% of 45\d\.\d MiB$")
        status = self.units(daemon)[2]
        self.assertGreaterEqual(status["written_bytes"], status["writes"] * 65536)
        self.assertGreater(status["writes"], 0)
        self.assertIn("`status --json` has what it counts", self.refused(daemon, 2, "top", "--json"))

    def test_it_ends_while_the_service_hangs(self):
        path = os.path.join(self.folder(), "admin")
        with socket.socket(socket.AF_UNIX) as hanging:
            hanging.settimeout(LIMIT_SECONDS)
            hanging.bind(path)
            hanging.listen()
            top = subprocess.Popen([MUNINNCTL, "top", "--socket", path], stdin=subprocess.DEVNULL)
            self.addCleanup(top.wait)
            self.addCleanup(top.kill)
            with hanging.accept()[0] as asked:
                self.assertIn(b"status", asked.recv(4096))
                # Perhaps before it waits for the answer.
                for _ in range(LIMIT_SECONDS):
                    top.send_signal(signal.SIGINT)
                    try:
                        self.assertEqual(top.wait(1), 0)
                        return
                    except subprocess.TimeoutExpired:
                        pass
        self.fail("top goes on")

    def test_a_terminal_gets_it_again_until_somebody_has_seen_enough(self):
        daemon = self.serve()
        terminal = Terminal("top", "--socket", self.socket_of(daemon), columns=80)
        for picture in self.pictures(terminal, 2):
            self.assertLess(len(picture.splitlines()), ROWS)
            self.assertIn("LUN TYPE   READS/s", picture)
        # More units than lines: those that fit.
        for number in range(3, 30):
            self.admin(daemon, "lun", "add", number, "type=disk", "device=pool", f"partition={0x10000 + number}", "volume_size=1M")
        terminal = Terminal("top", "--socket", self.socket_of(daemon), columns=80)
        terminal.wait_for(r"(LUN TYPE(.|\n)*){2}")
        self.assertEqual(terminal.interrupt(), 0)
        self.assertLess(len(terminal.text.split("\033[H\033[2J")[1].splitlines()), ROWS)


class Units(ServiceTest):
    def test_a_unit_comes_and_goes_and_is_gone_after_a_restart(self):
        daemon = self.serve()
        added = self.admin(daemon, "lun", "add", 5, "type=disk", "device=pool", "partition=0x10005", "volume_size=16M")
        section = "[lun 5]\ntype = disk\ndevice = pool\npartition = 0x10005\nvolume_size = 16M\n"
        self.assertEqual((added["section"], added["file"]), (section, daemon.config_path))
        disk, data = self.attach(daemon, 5, name=HOST), noise(4096, 1)
        self.assertEqual(disk.capacity(), (16 << 11, 512))
        self.good(disk.write(0, data))
        # A tgtd that is started again has it.
        os.kill(daemon.tgtd_pid, signal.SIGKILL)
        daemon.wait_for_line("initiators can log in")
        wait_for_exit(daemon.tgtd_pid)
        disk = self.attach(daemon, 5, name=HOST)
        self.assertEqual(disk.read(0, 8).data_in, data)
        message = self.refused(daemon, 8, "lun", "rm", 5)
        self.assertIn(f"LUN 5: 1 session uses it ({HOST} at 127.0.0.1): log out there, or say --force", message)
        disk.session.logout()
        self.admin(daemon, "lun", "rm", 5)
        self.assertEqual(sorted(self.units(daemon)), [1, 2])
        self.assertIn("there is no LUN 5", self.refused(daemon, 3, "lun", "rm", 5))
        # Again, with what was written; and by force.
        self.admin(daemon, "lun", "add", 5, "type=disk", "device=pool", "partition=0x10005")
        disk = self.attach(daemon, 5)
        self.assertEqual(disk.read(0, 8).data_in, data)
        self.admin(daemon, "lun", "rm", 5, "--force")
        self.sense(disk.read(0, 1), 5, 0x2500)
        self.admin(daemon, "lun", "add", 5, "type=disk", "device=pool", "partition=0x10005")
        daemon.restart()
        self.assertEqual(sorted(self.units(daemon)), [1, 2])
        self.assertEqual(daemon.stop(), 0)

    def test_what_the_file_would_not_take_is_refused(self):
        daemon = self.serve()
        for code, message, keys in (
            (2, "has no key typ", ["typ=disk"]),
            (2, "'type' is not KEY=VALUE", ["type"]),
            (2, "' type=disk' is not KEY=VALUE", [" type=disk"]),
            (2, "'[lun 6]=' is not KEY=VALUE", ["[lun 6]="]),
            (2, "'#type=disk' is not KEY=VALUE", ["#type=disk"]),
            (2, "there is no section [device other]", ["device=other"]),
            (2, "both partition 0x10002", ["type=disk", "device=pool", "partition=0x10002"]),
            (2, "so size belongs to [device pool]", ["type=disk", "device=pool", "size=1G"]),
            (2, "is set twice", ["type=disk", "type=disk"]),
            (2, "both OSDs on device pool", ["type=osd", "device=pool"]),
            (2, "have the same image", [f"image={daemon.state_dir}/pool.img"]),
        ):
            self.assertIn(message, self.refused(daemon, code, "lun", "add", 5, *keys))
        self.assertIn("there is a LUN 2 already", self.refused(daemon, 4, "lun", "add", 2, "type=osd"))
        self.assertIn("no LUN, a number from 1 to 255", self.refused(daemon, 2, "lun", "add", 256, "type=osd"))
        # The module refuses it, and says why.
        self.ctl("mkpart", daemon.url(), "0x10007")
        message = self.refused(daemon, 2, "lun", "add", 5, "type=disk", "device=pool", "partition=0x10007")
        self.assertIn("partition 0x10007 is not a volume", message)
        self.assertEqual(sorted(self.units(daemon)), [1, 2])
        # With a device of its own, which is made.
        self.admin(daemon, "lun", "add", 5, "type=osd", "size=32M")
        self.ctl("mkpart", daemon.url(5), "0x10000")
        self.assertEqual(daemon.stop(), 0)

    def test_the_time_since_which_it_runs_stays_the_same(self):
        daemon = self.serve()
        first = self.admin(daemon, "status")
        begun = int(time.time())
        while int(time.time()) < begun + 2:
            status = self.admin(daemon, "status")
            self.assertEqual(status["since"], first["since"])
            self.assertEqual(status["tgtd"]["since"], first["tgtd"]["since"])
        began = datetime.datetime.fromisoformat(first["since"]).timestamp()
        self.assertTrue(begun - LIMIT_SECONDS < began <= begun, first["since"])

    def test_a_unit_of_the_file_comes_back(self):
        daemon = self.serve()
        back = f", unless you remove [lun 2] from {daemon.config_path}"
        self.assertIn("LUN 2 comes back at the next start or reload" + back, self.lines(daemon, "lun", "rm", 2))
        self.assertEqual(sorted(self.units(daemon)), [1])
        self.assertIn("has [lun 2]: a reload or the next start serves it", self.refused(daemon, 2, "lun", "add", 2, "type=osd"))
        self.assertEqual(self.admin(daemon, "reload")["done"], ["LUN 2 is added"])
        self.lines(daemon, "lun", "rm", 2)
        daemon.restart()
        self.assertEqual(sorted(self.units(daemon)), [1, 2])

    def test_an_osd_beside_disks_comes_back_at_a_start_only(self):
        daemon = self.serve()
        back = f"LUN 1 comes back at the next start, unless you remove [lun 1] from {daemon.config_path}"
        self.assertIn(back, self.lines(daemon, "lun", "rm", 1))
        start = f"restart the service with LUN 1 in {daemon.config_path}"
        self.assertIn(start, self.try_ctl("reload", "--socket", self.socket_of(daemon)).stdout.decode())
        daemon.restart()
        self.assertEqual(sorted(self.units(daemon)), [1, 2])
        # The last one on the device is no such case.
        self.lines(daemon, "lun", "rm", 2)
        self.assertIn("LUN 1 comes back at the next start or reload", self.lines(daemon, "lun", "rm", 1))

    def test_a_disk_grows_while_it_is_used(self):
        daemon = self.serve()
        disk = self.attach(daemon, 2)
        self.sense(disk.write(64 << 11, bytes(512)), 5, 0x2100)
        self.assertEqual(self.admin(daemon, "lun", "resize", 2, "80M")["bytes"], 80 << 20)
        self.sense(disk.read(0, 1), 6, 0x2A09)
        self.assertEqual(disk.capacity(), (80 << 11, 512))
        self.good(disk.write(64 << 11, b"more" * 128))
        self.assertIn("it can grow, not shrink", self.refused(daemon, 2, "lun", "resize", 2, "64M"))
        self.assertIn("type osd can't grow", self.refused(daemon, 2, "lun", "resize", 1, "1G"))
        # The file still says 64M.
        daemon.restart()
        disk = self.attach(daemon, 2)
        self.assertEqual(disk.capacity(), (80 << 11, 512))
        self.assertEqual(disk.read(64 << 11, 1).data_in, b"more" * 128)
        self.assertEqual(daemon.stop(), 0)


class Volumes(ServiceTest):
    def volumes(self, daemon):
        return {volume["partition"]: volume for volume in self.admin(daemon, "volume", "ls")["volumes"]}

    def test_volumes_are_made_grow_and_go(self):
        daemon = self.serve()
        self.ctl("mkpart", daemon.url(), "0x20000")  # of objects: no volume
        self.assertEqual(self.admin(daemon, "volume", "create", "16M", "0x10009")["partition"], "0x10009")
        made = self.admin(daemon, "volume", "create", "8M", "--block-size", 4096)
        self.assertEqual((made["bytes"], made["block_bytes"]), (8 << 20, 4096))
        volumes = self.volumes(daemon)
        self.assertEqual(sorted(volumes), sorted(["0x10002", "0x10009", made["partition"]]))
        self.assertEqual((volumes["0x10002"]["units"], volumes["0x10009"]["units"]), ([2], []))
        self.assertIn("there is a partition 0x10009 already", self.refused(daemon, 4, "volume", "create", "1M", "0x10009"))
        self.admin(daemon, "volume", "resize", "0x10009", "32M")
        self.admin(daemon, "volume", "resize", "0x10002", "65M")
        self.assertEqual(self.volumes(daemon)["0x10009"]["bytes"], 32 << 20)
        self.assertEqual(self.attach(daemon, 2).capacity(), (65 << 11, 512))
        self.assertIn("can grow, not shrink", self.refused(daemon, 2, "volume", "resize", "0x10009", "16M"))
        self.assertIn("0x20000 is not a volume", self.refused(daemon, 2, "volume", "rm", "0x20000"))
        self.assertIn("there is no partition 0x30000", self.refused(daemon, 3, "volume", "rm", "0x30000"))
        self.assertIn("LUN 2 is on volume 0x10002", self.refused(daemon, 8, "volume", "rm", "0x10002"))
        self.admin(daemon, "volume", "rm", "0x10009")
        self.assertNotIn("0x10009", self.volumes(daemon))
        self.admin(daemon, "lun", "add", 7, "type=disk", "size=16M", "volume_size=8M")
        self.assertIn("say which device with --device: pool, lun7", self.refused(daemon, 2, "volume", "create", "1M"))
        self.admin(daemon, "volume", "create", "1M", "0x10011", "--device", "lun7")
        self.assertEqual(self.volumes(daemon)["0x10011"]["device"], "lun7")
        self.assertEqual(daemon.stop(), 0)

    def test_all_volumes_are_listed_however_many(self):
        daemon = self.serve()
        wanted = [f"{0x20000 + i:#x}" for i in range(205)]
        for partition in wanted:
            request = {"do": "volume create", "partition": int(partition, 0), "bytes": 1 << 20, "block_bytes": 0}
            self.assertIn(b'"ok"', self.ask(daemon, json.dumps(request).encode() + b"\n"))
        answer = self.admin(daemon, "volume", "ls")
        self.assertEqual([volume["partition"] for volume in answer["volumes"]], ["0x10002"] + wanted)
        self.assertNotIn("incomplete", answer)
        self.assertEqual(len(self.lines(daemon, "volume", "ls").splitlines()), 206)

    def test_a_locked_history_keeps_its_volume(self):
        daemon = self.serve()
        self.admin(daemon, "volume", "create", "8M", "0x10009")
        self.ctl("retention", daemon.url(), "0x10009", "lock-until=2099-01-01")
        self.assertIn("the history of partition 0x10009 is locked", self.refused(daemon, 7, "volume", "rm", "0x10009"))
        self.assertIn("0x10009", self.volumes(daemon))

    def test_the_past_is_a_disk_beside_the_present(self):
        daemon = self.serve()
        disk, old, new, third = self.attach(daemon, 2), noise(65536, 1), noise(65536, 2), noise(65536, 3)
        self.good(disk.write(0, old))
        self.ctl("snapshot", daemon.url(), "0x10002", "--name", "before")
        self.good(disk.write(0, new))
        version = self.admin(daemon, "volume", "expose", "0x10002@before")
        past = self.attach(daemon, version["lun"])
        self.assertEqual(past.read(0, 128).data_in, old)
        self.sense(past.write(0, third), 7, 0x2700)
        self.assertIn("version = before\n", version["section"])
        self.assertNotIn("partition", version)
        said = self.refused(daemon, 4, "volume", "expose", "0x10002@before")
        self.assertIn(f"LUN {version['lun']} shows version before of partition 0x10002 already", said)
        # A clone that can be written.
        clone = self.admin(daemon, "volume", "expose", "0x10002@before", "--writable", "--lun", 20)
        self.assertEqual(clone["lun"], 20)
        written = self.attach(daemon, 20)
        self.assertEqual(written.read(0, 128).data_in, old)
        self.good(written.write(0, third))
        # A moment that is no version: a clone that can only be read, which says so.
        present = self.admin(daemon, "volume", "expose", "0x10002")
        still = self.attach(daemon, present["lun"])
        self.settle(disk)
        self.good(disk.write(0, third))
        self.assertEqual(still.read(0, 128).data_in, new)
        self.settle(past)
        self.sense(still.write(0, third), 7, 0x2700)
        mode = self.good(still.session.run(bytes([0x1A, 0x08, 0x3F, 0, 255, 0]), read_length=255))
        self.assertEqual(mode.data_in[2] >> 7, 1)  # WP
        self.assertTrue(self.volumes(daemon)[present["partition"]]["read_only"])
        self.assertEqual(past.read(0, 128).data_in, old)
        # What it printed keeps them.
        self.rewrite(daemon, POOL + version["section"] + clone["section"])
        daemon.restart()
        self.assertEqual(sorted(self.units(daemon)), [1, 2, version["lun"], 20])
        self.assertEqual(self.attach(daemon, 20).read(0, 128).data_in, third)
        self.assertEqual(self.attach(daemon, version["lun"]).read(0, 128).data_in, old)
        self.assertEqual(daemon.stop(), 0)

    def test_a_version_that_is_not_there_is_no_unit_to_add(self):
        daemon = self.serve()
        self.ctl("snapshot", daemon.url(), "0x10002", "--name", "before")
        disk = ("type=disk", "device=pool", "partition=0x10002")
        for wrong in ("befor", "77"):
            said = self.refused(daemon, 3, "lun", "add", 9, *disk, f"version={wrong}")
            self.assertIn(f"partition 0x10002 has no version '{wrong}': `muninnctl versions URL 0x10002`", said)
        said = self.refused(daemon, 3, "lun", "add", 9, "type=disk", "size=16M", "version=before")
        self.assertIn("is not there yet, so it has no versions", said)
        self.assertEqual(sorted(self.units(daemon)), [1, 2])
        self.assertFalse(os.path.exists(daemon.image(9)))
        self.admin(daemon, "lun", "add", 9, *disk, "version=before")
        self.assertEqual(sorted(self.units(daemon)), [1, 2, 9])

    def test_a_version_that_no_section_can_name_is_exposed_by_its_number(self):
        daemon = self.serve()
        for name in ("a=b", "na\u00efve", "a b"):
            number = self.ctl("snapshot", daemon.url(), "0x10002", "--name", name).strip()
            said = self.refused(daemon, 2, "volume", "expose", f"0x10002@{name}")
            self.assertIn("give its number", said)
            exposed = self.admin(daemon, "volume", "expose", f"0x10002@{number}")
            self.assertIn(f"version = {number}\n", exposed["section"])
            if " " not in name:
                self.admin(daemon, "volume", "expose", f"0x10002@{name}", "--writable")

    def test_the_past_takes_no_number_that_the_file_has(self):
        daemon = self.serve()
        self.ctl("snapshot", daemon.url(), "0x10002", "--name", "before")
        self.admin(daemon, "lun", "rm", 2)
        self.assertEqual(self.admin(daemon, "volume", "expose", "0x10002@before")["lun"], 3)

    def test_moments_that_are_not_there_are_refused_and_leave_nothing(self):
        daemon = self.serve()
        self.ctl("snapshot", daemon.url(), "0x10002")
        for message, address in (
            ("has no version 'never'", "0x10002@never"),
            ("has no version '9'", "0x10002@9"),
            ("has no version '4294967297'", "0x10002@4294967297"),
            ("its history does not reach back so far", "0x10002@2001-01-01"),
            ("it is still to come", "0x10002@#99999999999999"),
            ("there is no partition 0x30000", "0x30000"),
        ):
            self.assertIn(message, self.refused(daemon, 3, "volume", "expose", address, "--writable"))
        self.assertIn("lies in the future", self.refused(daemon, 2, "volume", "expose", "0x10002@2222-01-01"))
        self.assertIn("is no moment of a volume", self.refused(daemon, 2, "volume", "expose", "0x10002@~1"))
        self.assertIn("there is a LUN 1 already", self.refused(daemon, 4, "volume", "expose", "0x10002", "--lun", 1))
        # A program that misspells the kind does not get the present in the place of the past.
        asked = b'{"do": "volume expose", "device": "pool", "partition": 65538, "kind": "Time", "value": 5}\n'
        self.assertIn("no kind 'Time' of moment", json.loads(self.ask(daemon, asked))["error"]["message"])
        self.assertEqual(list(self.volumes(daemon)), ["0x10002"])
        self.assertEqual(sorted(self.units(daemon)), [1, 2])
        # A device of a unit's own can have no other unit.
        own = self.serve("[lun 1]\ntype = disk\nsize = 32M\nvolume_size = 8M\n")
        self.assertIn("give it a section [device NAME]", self.refused(own, 2, "volume", "expose", "0x10000"))


if __name__ == "__main__":
    unittest.main()
