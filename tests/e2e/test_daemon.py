# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""muninnd: what it says, how it starts, stops, dies, and what it refuses."""

import json
import os
import re
import signal
import socket
import subprocess
import unittest

import osd
from harness import IQN, LIMIT_SECONDS, MUNINNCTL, MUNINND, E2ETest, children_of, sanitizer_environment, wait_for_exit
from iscsi import Session
from osd import Osd

SANITIZED = True

CONFIG = """\
[lun 1]
type = osd
size = 64M
"""


class Starting(E2ETest):
    def test_one_line_per_unit_tells_number_type_and_url(self):
        daemon = self.daemon(size="64M").start()
        self.assertEqual(daemon.output[0], f"LUN 1 osd {daemon.url()}")

    def test_an_initiator_logs_in_and_sees_an_osd(self):
        daemon = self.daemon(size="64M").start()
        inquiry = self.tool("iscsi-inq", daemon.url())
        self.assertIn("Peripheral Device Type:OSD", inquiry)
        self.assertRegex(inquiry, r"(?i)Vendor:MUNINN\b")

    def test_an_initiator_finds_the_serial_number(self):
        daemon = self.daemon(config=CONFIG + "serial = shelf-7\n").start()
        page = self.tool("iscsi-inq", "-e", "1", "-c", "128", daemon.url())
        self.assertIn("shelf-7", page)

    def test_discovery_lists_the_target_and_its_units(self):
        daemon = self.daemon(config=CONFIG + "[lun 7]\nsize = 64M\n").start()
        listing = self.tool("iscsi-ls", "-s", f"iscsi://127.0.0.1:{daemon.port}/")
        self.assertIn(f"Target:{IQN}", listing)
        self.assertRegex(listing, r"Lun:1 +Type:OSD")
        self.assertRegex(listing, r"Lun:7 +Type:OSD")

    def test_help_and_check_config_start_nothing(self):
        self.assertIn("--state-dir", self.tool(MUNINND, "--help"))
        self.assertEqual(self.tool(MUNINND, "--version").removeprefix("muninnd"), self.ctl("--version").removeprefix("muninnctl"))
        path = os.path.join(self.folder(), "muninn.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIG)
        self.assertIn("correct", self.tool(MUNINND, "--check-config", "--config", path))

    def test_a_missing_image_is_created_and_then_kept(self):
        daemon = self.daemon(size="64M").start()
        daemon.wait_for_line("new device")
        with open(daemon.image(), "rb") as image:
            before = image.read(512)
        daemon.restart()
        self.assertFalse(any("new device" in line for line in daemon.errors))
        with open(daemon.image(), "rb") as image:
            self.assertEqual(image.read(512), before)

    def test_an_image_that_was_there_before_is_missed(self):
        daemon = self.daemon(size="64M").start()
        self.assertFalse([line for line in daemon.errors if "warning" in line and "lun1.img" in line])
        self.ctl("mkpart", daemon.url(), "0x10000")
        daemon.stop()
        for suffix in ("", ".nvram"):
            os.rename(daemon.image() + suffix, daemon.image() + ".away" + suffix)
        daemon.start()
        line = daemon.wait_for_line("was there before and is missing")
        self.assertIn(f"warning: LUN 1: {daemon.image()} was there", line)
        self.assertIn("new, empty device of 64 MiB", line)
        self.assertEqual(self.ctl("ls", daemon.url()), "")
        # The way back that it names.
        daemon.stop()
        for suffix in ("", ".nvram"):
            os.rename(daemon.image() + ".away" + suffix, daemon.image() + suffix)
        daemon.start()
        self.assertEqual(self.ctl("ls", daemon.url()), "0x10000\n")
        self.assertFalse([line for line in daemon.errors if "is missing" in line])
        with open(os.path.join(daemon.state_dir, "devices"), encoding="utf-8") as file:
            self.assertEqual(file.read(), daemon.image() + "\n")

    def test_an_interrupted_creation_starts_over(self):
        daemon = self.daemon(size="64M")
        for leftover in (".new", ".new.nvram"):
            with open(daemon.image() + leftover, "wb") as file:
                file.write(b"half a device")
        daemon.start()
        self.assertEqual(daemon.stop(), 0)
        self.assertFalse(os.path.exists(daemon.image() + ".new"))

    def test_a_creation_interrupted_between_its_two_renames_is_completed(self):
        daemon = self.daemon(size="64M").start()
        self.assertEqual(daemon.stop(), 0)
        os.rename(daemon.image(), daemon.image() + ".new")
        daemon.start()
        self.assertEqual(daemon.stop(), 0)

    def test_the_module_of_this_build_is_used_and_nothing_is_installed(self):
        installed = os.path.exists("/usr/lib/tgt/backing-store/bs_muninn.so")
        daemon = self.daemon(size="64M").start()
        with open(f"/proc/{daemon.tgtd_pid}/maps", encoding="utf-8") as maps:
            self.assertIn(os.path.join(os.path.dirname(os.path.dirname(MUNINND)), "lib", "bs_muninn.so"), maps.read())
        self.assertEqual(os.path.exists("/usr/lib/tgt/backing-store/bs_muninn.so"), installed)

    def allocator(self, daemon):
        """Whether tgtd has jemalloc mapped, and what the statistics say of the allocator."""
        with open(f"/proc/{daemon.tgtd_pid}/maps", encoding="utf-8") as maps:
            mapped = "libjemalloc.so.2" in maps.read()
        statistics = json.loads(self.ctl("--json", "statistics", daemon.url()))
        return mapped, {name: value for name, value in statistics.items() if name.startswith("allocator_")}

    def test_jemalloc_serves_and_its_figures_are_told_except_under_sanitizers(self):
        mapped, figures = self.allocator(self.daemon(size="64M").start())
        self.assertEqual(mapped, not sanitizer_environment())
        if mapped:
            allocated, active, resident = (figures.pop(f"allocator_{name}_bytes") for name in ("allocated", "active", "resident"))
            self.assertGreater(allocated, 1 << 20)
            self.assertGreaterEqual(active, allocated)
            self.assertGreaterEqual(resident, active)
        self.assertEqual(figures, {})

    def test_the_allocator_of_the_c_library_has_no_figures(self):
        daemon = self.daemon(config="[daemon]\nallocator = system\n" + CONFIG).start()
        self.assertEqual(self.allocator(daemon), (False, {}))

    def test_an_allocator_of_ones_own_is_preloaded(self):
        own = os.path.join(self.folder(), "my: allocator.so")
        source = "#include <stdlib.h>\nint own_allocator_is_here(void) { return abs(1); }\n"
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", own, "-x", "c", "-"], input=source, text=True, check=True)
        daemon = self.daemon(config=f"[daemon]\nallocator = {own}\n" + CONFIG).start()
        with open(f"/proc/{daemon.tgtd_pid}/maps", encoding="utf-8") as maps:
            self.assertEqual(own in maps.read(), not sanitizer_environment())
        self.assertEqual(daemon.stop(), 0)

    def test_a_folder_with_a_very_long_name_full_of_blanks(self):
        deep = self.folder()
        for _ in range(5):
            deep = os.path.join(deep, "a folder with blanks: and with a colon")
            os.mkdir(deep)
        daemon = self.daemon(state_dir=deep, size="64M").start()
        self.assertIn("OSD", self.tool("iscsi-inq", daemon.url()))
        self.assertEqual(daemon.stop(), 0)


class Stopping(E2ETest):
    def assert_stops_cleanly(self, number):
        daemon = self.daemon(size="64M").start()
        self.assertEqual(daemon.stop(number), 0, daemon.errors)
        self.assertTrue(any("everything is stable" in line for line in daemon.errors), daemon.errors)
        wait_for_exit(daemon.tgtd_pid)
        self.assertEqual(
            sorted(os.listdir(daemon.state_dir)),
            ["devices", "lun1.img", "lun1.img.nvram", "muninnd.lock", "tgtd.lock"],
        )

    def test_sigterm_stops_cleanly(self):
        self.assert_stops_cleanly(signal.SIGTERM)

    def test_sigint_stops_cleanly(self):
        self.assert_stops_cleanly(signal.SIGINT)

    def test_a_stop_with_a_connection_open_is_clean(self):
        daemon = self.daemon(size="64M").start()
        with socket.create_connection(("127.0.0.1", daemon.port)):
            self.assertEqual(daemon.stop(), 0, daemon.errors)

    def test_a_stop_under_load_is_clean(self):
        daemon = self.daemon(size="512M").start()
        self.ctl("mkpart", daemon.url(), "0x10000")
        big = os.path.join(self.folder(), "big")
        with open(big, "wb") as file:
            file.truncate(300 << 20)
        put = [MUNINNCTL, "put", daemon.url(), "0x10000/0x10000", big]
        with subprocess.Popen(put, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            while json.loads(self.ctl("--json", "info", daemon.url()))["used"] == 0:
                pass
            self.assertEqual(daemon.stop(), 0, daemon.errors)
        self.assertTrue(any("everything is stable" in line for line in daemon.errors), daemon.errors)
        daemon.start()
        self.assertGreater(json.loads(self.ctl("--json", "info", daemon.url()))["used"], 0)

    def test_a_stop_right_after_the_launch_leaves_nothing_running(self):
        daemon = self.daemon(size="64M").launch()
        self.assertIn(daemon.stop(), (0, -signal.SIGTERM))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", daemon.port))

    def test_a_unit_whose_image_was_taken_away_says_so_until_it_has_one(self):
        daemon = self.daemon(size="64M").start()
        unit = ("--op", "update", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "--params")
        with daemon.session() as session:
            daemon.tgtadm(*unit, "online=0")
            with self.assertRaises(subprocess.CalledProcessError):
                daemon.tgtadm(*unit, "path=/nowhere")
            refused = Osd(session).run(osd.GET_ATTRIBUTES)
            self.assertEqual((refused.status, refused.sense.key, refused.sense.code), (0x02, 0x2, 0x0403))
            daemon.tgtadm(*unit, "path=" + daemon.image())
            Osd(session).must(osd.GET_ATTRIBUTES)
        self.assertEqual(daemon.stop(), 0, daemon.errors)

    def test_the_same_port_and_image_can_be_used_again_at_once(self):
        daemon = self.daemon(size="64M").start()
        for _ in range(3):
            daemon.restart()
        self.assertIn("OSD", self.tool("iscsi-inq", daemon.url()))


class Dying(E2ETest):
    def test_tgtd_does_not_outlive_a_killed_muninnd(self):
        daemon = self.daemon(size="64M").start()
        daemon.process.kill()
        daemon.wait()
        wait_for_exit(daemon.tgtd_pid)

    def test_a_successor_starts_at_once_after_a_kill(self):
        daemon = self.daemon(size="64M").start()
        for _ in range(5):
            daemon.process.kill()
            daemon.wait()
            daemon.start()
        self.assertIn("OSD", self.tool("iscsi-inq", daemon.url()))

    def test_muninnd_says_so_and_starts_another_one_when_tgtd_dies(self):
        daemon = self.daemon(size="64M").start()
        os.kill(daemon.tgtd_pid, signal.SIGKILL)
        daemon.wait_for_line("initiators can log in")
        self.assertRegex("\n".join(daemon.errors), r"tgtd \(process \d+\) died of signal 9")
        self.assertIn("OSD", self.tool("iscsi-inq", daemon.url()))
        self.assertEqual(daemon.stop(), 0, daemon.errors)

    def test_it_waits_twice_as_long_before_the_next_start(self):
        daemon = self.daemon(size="64M").start()
        os.kill(daemon.tgtd_pid, signal.SIGKILL)
        daemon.wait_for_line("tgtd is started again in 1 s")
        daemon.wait_for_line("initiators can log in")
        (successor,) = children_of(daemon.process.pid)
        os.kill(successor, signal.SIGKILL)
        daemon.wait_for_line("tgtd is started again in 2 s")
        self.assertEqual(daemon.stop(), 0, daemon.errors)

    def test_a_stop_while_tgtd_is_down_closes_the_units(self):
        daemon = self.daemon(size="64M").start()
        os.kill(daemon.tgtd_pid, signal.SIGKILL)
        daemon.wait_for_line("tgtd is started again in")
        self.assertEqual(daemon.stop(), 0, daemon.errors)
        self.assertTrue(any("what was acknowledged is stable now" in line for line in daemon.errors), daemon.errors)


class Refusing(E2ETest):
    def assert_refused(self, daemon, code, pattern):
        result, errors = daemon.run()
        self.assertRegex(errors, pattern)
        self.assertEqual(result, code, errors)

    def test_a_port_in_use(self):
        with socket.socket() as busy:
            busy.bind(("127.0.0.1", 0))
            busy.listen()
            port = busy.getsockname()[1]
            self.assert_refused(self.daemon(port=port), 1, rf"127\.0\.0\.1:{port} is in use .*PORT=")

    def test_a_second_muninnd_in_the_same_folder(self):
        first = self.daemon(size="64M").start()
        second = self.daemon(state_dir=first.state_dir, size="64M")
        self.assert_refused(second, 1, rf"another muninnd \(process {first.process.pid}\)")
        self.assertIn("OSD", self.tool("iscsi-inq", first.url()))

    def test_an_image_in_use_by_another_daemon(self):
        first = self.daemon(size="64M").start()
        second = self.daemon(config=CONFIG + f"image = {first.image()}\n")
        self.assert_refused(second, 1, r"LUN 1: .*lun1\.img is in use by process")

    def test_a_configuration_error_with_file_line_and_reason(self):
        daemon = self.daemon(config="[target]\nportal = 127.0.0.1:3260\n\ncolour = blue\n")
        self.assert_refused(daemon, 2, re.escape(daemon.config_path) + r":4: \[target\] has no key colour")

    def test_a_configuration_that_is_not_there(self):
        done = subprocess.run([MUNINND, "--config", "/nonexistent.conf"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nonexistent.conf: No such file", done.stderr)

    def test_wrong_options(self):
        for options in (["--port", "70000"], ["--size", "8X"], ["--colour"], ["blue"]):
            done = subprocess.run([MUNINND, "--defaults", *options], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)

    def test_a_size_that_is_too_small_for_the_engine(self):
        self.assert_refused(self.daemon(size="1M"), 2, r"LUN 1: ")

    def test_a_tgtd_that_is_not_there(self):
        daemon = self.daemon(config=CONFIG + "[daemon]\ntgtd = /nonexistent/tgtd\n")
        self.assert_refused(daemon, 1, r"/nonexistent/tgtd: No such file .*install the package tgt")

    def test_a_module_that_is_not_there(self):
        daemon = self.daemon(config=CONFIG + "[daemon]\nmodule = /nonexistent/bs_muninn.so\n")
        self.assert_refused(daemon, 1, r"module /nonexistent/bs_muninn.so: No such file")

    @unittest.skipIf(sanitizer_environment(), "sanitizers bring their own allocator")
    def test_an_allocator_that_is_not_there(self):
        daemon = self.daemon(config=CONFIG + "[daemon]\nallocator = /nonexistent/allocator.so\n")
        self.assert_refused(daemon, 1, r"allocator /nonexistent/allocator.so: No such file")

    def test_a_tgtd_that_the_module_was_not_built_for(self):
        daemon = self.daemon(size="64M", environment={"MUNINN_TGTD_BUILD_ID": "0123"})
        self.assert_refused(daemon, 1, r"built for the tgtd of tgt .* with build ID 0123, but runs")


class RefusingImages(E2ETest):
    def prepared(self):
        daemon = self.daemon(size="64M").start()
        self.assertEqual(daemon.stop(), 0)
        return daemon

    def contents(self, path):
        if not os.path.exists(path):
            return None
        with open(path, "rb") as file:
            return file.read()

    def assert_refused_unchanged(self, daemon, pattern):
        files = (daemon.image(), daemon.image() + ".nvram")
        before = [self.contents(path) for path in files]
        code, errors = daemon.run()
        self.assertEqual(code, 1, errors)
        self.assertRegex(errors, r"LUN 1: ")
        self.assertRegex(errors, pattern)
        after = [self.contents(path) for path in files]
        self.assertTrue(before == after, "a refused device was changed")

    def test_a_missing_image_beside_its_nvram(self):
        daemon = self.prepared()
        os.unlink(daemon.image())
        self.assert_refused_unchanged(daemon, r"lun1\.img is missing, but its NVRAM file")

    def test_an_image_without_its_nvram(self):
        daemon = self.prepared()
        os.unlink(daemon.image() + ".nvram")
        self.assert_refused_unchanged(daemon, r"nvram is missing, .*: put it back .* recover_without_nvram = yes saves")

    def test_files_of_two_times(self):
        daemon = self.prepared()
        files = (daemon.image(), daemon.image() + ".nvram")
        older = [self.contents(path) for path in files]
        daemon.start()
        self.ctl("mkpart", daemon.url(), 0x10000)
        self.assertEqual(daemon.stop(), 0)
        newer = [self.contents(path) for path in files]
        for number, word in ((1, "older"), (0, "newer")):
            with open(files[number], "wb") as file:
                file.write(older[number])
            when = r"\(last opened \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\)"
            pattern = rf"lun1\.img\.nvram {when} is {word} than .*lun1\.img {when}: one of them was put back"
            self.assert_refused_unchanged(daemon, pattern)
            # The check says the same.
            checked = subprocess.run(daemon.command + ["--check-config"], capture_output=True, text=True, check=False)
            self.assertEqual(checked.returncode, 1)
            self.assertRegex(checked.stderr, pattern)
            with open(files[number], "wb") as file:
                file.write(newer[number])
        daemon.start()
        self.assertIn("0x10000", self.ctl("ls", daemon.url()))
        self.assertEqual(daemon.stop(), 0)

    def test_an_image_with_a_damaged_page_of_nvram(self):
        daemon = self.daemon(size="64M").start()
        self.ctl("mkpart", daemon.url(), 0x10000)
        self.ctl("put", daemon.url(), "0x10000/0x10004", stdin=b"a raven" * 5000)
        self.assertEqual(daemon.stop(), 0)
        nvram = daemon.image() + ".nvram"
        whole = self.contents(nvram)
        for page in range(0, len(whole), 4096):
            if b"a raven" in whole[page : page + 4096]:
                break
        with open(nvram, "r+b") as file:
            file.seek(page)
            file.write(bytes(4096))
        self.assert_refused_unchanged(daemon, rf"lun1\.img\.nvram: bytes {page} to \d+, which hold records of row")
        with open(nvram, "wb") as file:
            file.write(whole)
        daemon.start()
        self.assertEqual(self.ctl("get", daemon.url(), "0x10000/0x10004", binary=True), b"a raven" * 5000)
        self.assertEqual(daemon.stop(), 0)

    def test_an_image_whose_nvram_is_lost_opens_when_that_is_wanted(self):
        first = self.prepared()
        os.unlink(first.image() + ".nvram")
        config = "[lun 1]\ntype = osd\nrecover_without_nvram = yes\n"
        daemon = self.daemon(state_dir=first.state_dir, config=config).start()
        self.ctl("mkpart", daemon.url(), 0x10000)
        self.assertEqual(daemon.stop(), 0)
        errors = "\n".join(daemon.errors)
        self.assertIn("lun1.img.nvram was missing: made an empty one", errors)
        self.assertIn("recovered without NVRAM", errors)
        self.assertEqual(daemon.start().stop(), 0)
        self.assertNotIn("recovered without NVRAM", "\n".join(daemon.errors))

    def test_a_truncated_image(self):
        daemon = self.prepared()
        os.truncate(daemon.image(), os.path.getsize(daemon.image()) // 2)
        self.assert_refused_unchanged(daemon, r"(?i)truncated|bytes")

    def test_a_foreign_file(self):
        daemon = self.prepared()
        with open(daemon.image(), "wb") as image:
            image.write(b"not an image\n" * 4096)
        self.assert_refused_unchanged(daemon, r"(?i)not .*image")

    def test_an_empty_file(self):
        daemon = self.prepared()
        os.truncate(daemon.image(), 0)
        self.assert_refused_unchanged(daemon, r"lun1\.img")


class Access(E2ETest):
    ACCOUNT = "[target]\nchap_user = erik\nchap_secret = twelve-or-more\n"

    def login(self, daemon, account="", name="iqn.2014-06.local.host:test"):
        done = subprocess.run(
            ["iscsi-inq", "-i", name, daemon.url(account=account)], capture_output=True, timeout=60, check=False
        )
        return done.returncode == 0

    def test_chap_lets_in_who_knows_the_secret_and_nobody_else(self):
        daemon = self.daemon(config=CONFIG + self.ACCOUNT).start()
        self.assertIn("erik%SECRET@", daemon.output[0])
        self.assertTrue(self.login(daemon, account="erik%twelve-or-more@"))
        self.assertFalse(self.login(daemon, account="erik%something-else@"))
        self.assertFalse(self.login(daemon))

    def test_the_log_tells_at_once_who_came_in_and_who_did_not(self):
        daemon = self.daemon(config=CONFIG + self.ACCOUNT + "allow_name = iqn.2014-06.local.host:a\n").start()
        told = []
        for account, name, what in (
            ("erik%twelve-or-more@", "a", f"muninn: a login from 127.0.0.1 to {IQN}"),
            ("erik%something-else@", "a", f"muninn: refused a login from 127.0.0.1 to {IQN}: authentication failed (CHAP)"),
            ("erik%twelve-or-more@", "b", f"muninn: refused a login from 127.0.0.1 to {IQN}: there is no such target, or"),
        ):
            name = "iqn.2014-06.local.host:" + name
            self.login(daemon, account=account, name=name)
            daemon.wait_for_line(what)
            lines = [line for line in daemon.errors if what in line]
            told += lines
            self.assertEqual(len(lines), 1)
            self.assertRegex(lines[0], rf"^tgtd: {re.escape(what)}.*; initiator {name}$")
        self.assertEqual(len([line for line in daemon.errors if "login" in line]), 3)

    def assert_few_lines(self, config, reason, times):
        """Whoever is refused so many times takes a few lines of the log, with the right count, and disturbs nobody."""
        daemon = self.daemon(config=CONFIG + config).start()
        account = "erik%twelve-or-more@" if "chap" in config else ""
        for number in range(times):
            with self.assertRaisesRegex(ConnectionRefusedError, "login refused, status 020[13]"):
                Session(daemon.port, IQN, name="iqn.2014-06.local.host:b")
            if number % 100 == 50:
                self.assertTrue(self.login(daemon, account=account, name="iqn.2014-06.local.host:a"))
        self.assertEqual(daemon.stop(), 0)
        lines = [line for line in daemon.errors if "refused a login" in line]
        # The first one, and the others at the end and in each minute that it took.
        self.assertIn(len(lines), range(2, 8))
        again = [re.match(rf"tgtd: muninn: (?:(\d+) more in the last minute: )?refused a login .*{reason}", line).group(1) for line in lines]
        self.assertIsNone(again[0])
        self.assertEqual(sum(int(number or 1) for number in again), times)

    def test_hundreds_of_wrong_passwords_are_a_few_lines_with_the_right_count(self):
        self.assert_few_lines(self.ACCOUNT, "authentication failed", 300)

    def test_hundreds_of_names_that_are_not_listed_are_a_few_lines_with_the_right_count(self):
        self.assert_few_lines("[target]\nallow_name = iqn.2014-06.local.host:a\n", "there is no such target", 300)

    def test_under_systemd_lines_have_priorities_and_nobody_is_told_what_to_type(self):
        folder = self.folder()
        notify = os.path.join(folder, "notify")
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(notify)
        manager.settimeout(LIMIT_SECONDS)
        daemon = self.daemon(config=CONFIG + self.ACCOUNT)
        os.chmod(daemon.config_path, 0o644)
        journal = open(os.path.join(folder, "journal"), "w+", encoding="utf-8")
        self.addCleanup(journal.close)
        of_journal = os.fstat(journal.fileno())
        environment = {"NOTIFY_SOCKET": notify, "JOURNAL_STREAM": f"{of_journal.st_dev}:{of_journal.st_ino}"}
        service = subprocess.Popen(
            daemon.command, stdout=subprocess.PIPE, stderr=journal, text=True, env={**daemon.environment, **environment}
        )
        self.addCleanup(service.stdout.close)
        self.assertRegex(manager.recv(4096).decode(), r"^READY=1\nSTATUS=serving 1 logical units at ")
        self.login(daemon, account="erik%something-else@")
        service.terminate()
        said = service.communicate(timeout=LIMIT_SECONDS)[0]
        self.assertRegex(said, r"^LUN 1 osd iscsi://\S+\nReady.\n$")
        journal.seek(0)
        lines = journal.read()
        self.assertRegex(lines, "(?m)^<4>muninn: warning: .*others than its owner can read it")
        self.assertRegex(lines, "(?m)^<4>tgtd: muninn: refused a login from")
        self.assertRegex(lines, "(?m)^<6>tgtd: muninn: LUN 1: closed, everything is stable$")
        self.assertNotRegex(lines, "(?m)^[^<]|muninn: <")

    def test_a_secret_that_others_can_read_is_warned_of(self):
        daemon = self.daemon(config=CONFIG + self.ACCOUNT)
        os.chmod(daemon.config_path, 0o640)
        daemon.start()
        daemon.wait_for_line(f"{daemon.config_path} holds chap_secret and others than its owner can read it: ch")
        daemon.stop()
        os.chmod(daemon.config_path, 0o600)
        daemon.start()
        self.assertFalse([line for line in daemon.errors if "can read it" in line])

    def test_only_allowed_initiator_names_get_in(self):
        daemon = self.daemon(config=CONFIG + "[target]\nallow_name = iqn.2014-06.local.host:a\n").start()
        self.assertTrue(self.login(daemon, name="iqn.2014-06.local.host:a"))
        self.assertFalse(self.login(daemon, name="iqn.2014-06.local.host:b"))
        # muninnctl has a name of its own.
        self.assertIn(b"or its access list has not got this initiator", self.try_ctl("info", daemon.url()).stderr)

    def test_only_allowed_addresses_get_in(self):
        daemon = self.daemon(config=CONFIG + "[target]\nallow_address = 192.0.2.0/24\n").start()
        self.assertFalse(self.login(daemon))

    def test_the_secret_is_in_no_output_and_no_process_list(self):
        daemon = self.daemon(config=CONFIG + self.ACCOUNT).start()
        self.assertNotIn("twelve-or-more", "\n".join(daemon.output + daemon.errors))
        for pid in (daemon.process.pid, daemon.tgtd_pid):
            for what in ("cmdline", "environ"):
                with open(f"/proc/{pid}/{what}", "rb") as file:
                    self.assertNotIn(b"twelve-or-more", file.read())


if __name__ == "__main__":
    unittest.main()
