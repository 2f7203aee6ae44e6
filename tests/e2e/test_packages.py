# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""The Debian packages, as an administrator meets them: installed, edited, started, upgraded and purged in a container
that boots with systemd. `make check` builds them before. One scenario runs in two boots; each test looks at a part of
what it said."""

import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import BUILD, LIMIT_SECONDS, ROOT

TIME_LIMIT_SECONDS = 900

DEB = os.path.join(BUILD, "deb")
CONTAINER = os.path.join(BUILD, "container")

# Each command says what it is before what it says.
HEAD = r"""#!/bin/bash
export MUNINN_URL=iscsi://127.0.0.1:3260/iqn.2014-06.local.muninn:osd/1 DEBIAN_FRONTEND=noninteractive
part() { echo "==== $*"; }
# The exit code is the last line of a part.
try() { "$@" 2>&1; echo "code $?"; }
pid() { systemctl show -p MainPID --value muninn; }
"""

FIRST = HEAD + r"""
part install
try apt-get -y install /packages/old/muninn_*.deb
part before the start
systemctl is-enabled muninn tgt
systemctl is-active muninn tgt
part edit
sed -i 's/^#size = 8G/size = 256M/' /etc/muninn/muninn.conf
try muninnd --check-config
try runuser -u muninn -- muninnd --check-config
ls -d /run/muninn /var/lib/muninn
part start
try systemctl enable --now muninn
part check of what is served
try runuser -u muninn -- muninnd --check-config
part advice on a secret
sed 's/^#chap_/chap_/' /etc/muninn/muninn.conf >/root/secret.conf
muninnd --config /root/secret.conf --check-config 2>&1 | sed -n 's/.*others than its owner can read it: //p' | tee /root/advice
try sh -ec "$(cat /root/advice)"
stat -c '%U:%G %a' /root/secret.conf
muninnd --config /root/secret.conf --check-config 2>&1 | grep -c 'can read it'
part who
stat -c %U /proc/$(pid) $(sed 's|[0-9]*|/proc/&|' /proc/$(pid)/task/$(pid)/children)
stat -c '%U:%G %a' /etc/muninn/muninn.conf /var/lib/muninn /var/lib/muninn/lun1.img
part write
muninnctl mkpart 0x10000
head -c 5000000 /dev/urandom >/root/content
try muninnctl put 0x10000/0x10000 /root/content
muninnctl snapshot 0x10000 --name before
part restart
try systemctl restart muninn
muninnctl get 0x10000/0x10000 | try cmp - /root/content
part status
try muninnctl status
try runuser -u nobody -- muninnctl status
part reload
cp /etc/muninn/muninn.conf /root/before.conf
printf '[lun 7]\ntype = disk\nsize = 64M\nvolume_size = 16M\n[daemon]\nadmin_group = games\n' >>/etc/muninn/muninn.conf
before=$(pid)
try systemctl reload muninn
muninnctl --json status | grep -o '"lun":[0-9]*'
setpriv --reuid nobody --regid nogroup --groups games muninnctl session ls && echo member
try runuser -u nobody -- muninnctl session ls
[ "$before" = "$(pid)" ] && echo went on
muninnctl get 0x10000/0x10000 | try cmp - /root/content
part reload of a wrong file
cp /root/before.conf /etc/muninn/muninn.conf
echo '[lun 8' >>/etc/muninn/muninn.conf
systemctl reload muninn 2>/dev/null || echo refused
systemctl is-active muninn
cp /root/before.conf /etc/muninn/muninn.conf
try systemctl reload muninn
muninnctl --json status | grep -o '"lun":[0-9]*'
rm /var/lib/muninn/lun7.img*
part watchdog
systemctl show -p WatchdogUSec muninn
systemctl show -p WatchdogTimestamp --value muninn | wc -w
part start of tgt
systemctl start tgt
systemctl is-active muninn
systemctl stop tgt
part upgrade
before=$(pid)
try apt-get -y install /packages/new/muninn_*.deb
[ "$before" != "$(pid)" ] && echo restarted
dpkg-query -W -f '${Version}\n' muninn
systemctl is-enabled muninn
part after the upgrade
systemctl is-active muninn
muninnctl get 0x10000/0x10000 | try cmp - /root/content
muninnctl versions 0x10000
part warnings
journalctl -u muninn -o cat --no-pager -p 4 | grep -v 'muninn: [a-z]*: \(reload\|administration\): '
part administration
try muninnctl retention 0x10000 lock-until=2099-01-01
try muninnctl unlock /var/lib/muninn/lun1.img 0x10000
try muninnctl nand faults /var/lib/muninn/lun1.img seed=7
part files of root
muninnctl nand faults /var/lib/muninn/lun1.img off
muninnctl key create /var/lib/muninn/device.key
systemctl stop muninn
muninn-fsck --quiet --repair --to /var/lib/muninn/new.img /var/lib/muninn/lun1.img
cd /var/lib/muninn
mv new.img.nvram lun1.img.nvram
mv new.img lun1.img
stat -c '%U:%G %n' *
sed -i 's/^#key_file = /key_file = /' /etc/muninn/muninn.conf
try systemctl start muninn
muninnctl get 0x10000/0x10000 | try cmp - /root/content
cd /
part security
systemd-analyze security --no-pager muninn | tail -1
part completion
bash -c '. /usr/share/bash-completion/completions/muninnctl; COMP_WORDS=(muninnctl snap) COMP_CWORD=1; _muninnctl; echo "${COMPREPLY[*]}"'
part journal
journalctl -u muninn -o cat --no-pager -p 6
"""

SECOND = HEAD + r"""
part after the boot
for i in $(seq 600); do systemctl is-active --quiet muninn && break; sleep 0.1; done
systemctl is-active muninn
muninnctl get 0x10000/0x10000 | try cmp - /root/content
part remove
try apt-get -y remove muninn
systemctl is-active muninn
ls /var/lib/muninn
part purge
try apt-get -y purge muninn
ls -d /etc/muninn /var/lib/muninn
ls /var/lib/muninn
part beside targets of tgt
echo '<target iqn.2014-06.local.other:disk>' >/etc/tgt/conf.d/other.conf
systemctl --quiet enable tgt
try apt-get -y install /packages/new/muninn_*.deb
systemctl is-enabled muninn tgt
part again
try systemctl start muninn
muninnctl get 0x10000/0x10000 | try cmp - /root/content
part purge of all
touch /var/lib/muninn/REMOVE-ON-PURGE
try apt-get -y purge muninn
ls -d /etc/muninn /var/lib/muninn
part purge of a mount point
try apt-get -y install /packages/new/muninn_*.deb
mkdir -p /srv/muninn/sub /var/lib/muninn
touch /srv/muninn/REMOVE-ON-PURGE /srv/muninn/sub/lun1.img
mount --bind /srv/muninn /var/lib/muninn
try apt-get -y purge muninn
umount /var/lib/muninn
find /srv/muninn
part purge of a link
try apt-get -y install /packages/new/muninn_*.deb
rmdir /var/lib/muninn
ln -s /srv/muninn /var/lib/muninn
touch /srv/muninn/REMOVE-ON-PURGE /srv/muninn/lun1.img
try apt-get -y purge muninn
find /srv/muninn
"""

SERVICE = """[Unit]
Description=scenario of a test
After=tgt.service
[Service]
Type=oneshot
ExecStart=/scenario
StandardOutput=append:/said
StandardError=inherit
ExecStopPost=systemctl --no-block poweroff
[Install]
WantedBy=multi-user.target
"""


def newer(package, folder):
    """The same package, one version on."""
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(["dpkg-deb", "-R", package, work], check=True)
        control = os.path.join(work, "DEBIAN", "control")
        with open(control, encoding="utf-8") as file:
            text = re.sub(r"(?m)^(Version: .*)$", r"\1+1", file.read())
        with open(control, "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", work, folder], check=True, stdout=subprocess.DEVNULL)


class Machine:
    """A root folder that boots."""

    def __init__(self, package):
        self.root = tempfile.mkdtemp(prefix="machine-", dir=CONTAINER)
        # The journal names files by the machine's ID, and an empty one is made at the first boot.
        subprocess.run(["cp", "-a", "--reflink=auto", os.path.join(CONTAINER, "root", "."), self.root], check=True)
        for folder in ("old", "new"):
            os.makedirs(self.path("packages", folder))
        shutil.copy(package, self.path("packages", "old"))
        newer(package, self.path("packages", "new"))
        self.write("etc/systemd/system/scenario.service", SERVICE)
        os.makedirs(self.path("etc/systemd/system/multi-user.target.wants"), exist_ok=True)
        os.symlink("/etc/systemd/system/scenario.service", self.path("etc/systemd/system/multi-user.target.wants/scenario.service"))

    def path(self, *names):
        return os.path.join(self.root, *names)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def run(self, scenario):
        """Boots, and returns {part: what it said}."""
        # What systemd says of its end goes to the same file: it belongs to no part of a test.
        self.write("scenario", scenario + "part end\n")
        os.chmod(self.path("scenario"), 0o755)
        command = ["systemd-nspawn", "-D", self.root, "--private-network", "--register=no", "--keep-unit", "-b"]
        booted = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=3 * LIMIT_SECONDS
        )
        if not os.path.exists(self.path("said")):
            raise AssertionError("the container has not run the scenario:\n" + booted.stdout[-4000:] + booted.stderr[-4000:])
        with open(self.path("said"), encoding="utf-8", errors="replace") as file:
            parts = re.split(r"(?m)^==== (.*)\n", file.read())
        os.rename(self.path("said"), self.path("said.before"))
        return dict(zip(parts[1::2], parts[2::2]))


def why_not():
    """Why no container boots here; None: one does."""
    if os.geteuid() != 0:
        return "only root can boot a container"
    if not shutil.which("systemd-nspawn"):
        return "there is no systemd-nspawn: scripts/bootstrap container"
    if subprocess.run(["unshare", "-m", "-p", "-n", "-f", "true"], capture_output=True).returncode:
        return "this machine lets nobody make namespaces"
    return None


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        packages = glob.glob(os.path.join(DEB, "muninn_*.deb"))
        if not packages:
            raise AssertionError("there are no packages: make deb")
        cls.package = packages[0]
        reason = why_not()
        if reason:
            raise unittest.SkipTest(reason)
        subprocess.run([os.path.join(ROOT, "scripts", "container"), CONTAINER, cls.package], check=True)
        machine = Machine(cls.package)
        cls.addClassCleanup(shutil.rmtree, machine.root)
        cls.first = machine.run(FIRST)
        cls.second = machine.run(SECOND)

    def test_an_installation_makes_way_and_starts_nothing_now_or_at_the_next_boot(self):
        self.assertTrue(self.first["install"].endswith("code 0\n"), self.first["install"])
        self.assertIn("tgt.service had no targets and is disabled", self.first["install"])
        self.assertEqual(self.first["before the start"].split(), ["disabled", "disabled", "inactive", "inactive"])

    def test_targets_of_tgt_keep_its_service(self):
        said = self.second["beside targets of tgt"]
        self.assertIn("tgt.service has targets and stays", said)
        self.assertTrue(said.endswith("code 0\ndisabled\nenabled\n"), said)

    def test_one_file_is_edited_and_the_service_runs_as_its_own_user(self):
        # The check leaves no folder, and its user can't make those that systemd makes.
        refused = r"run_dir: /run/muninn: Permission denied\ncode 1"
        self.assertRegex(self.first["edit"], rf"code 0\n.*{refused}\nls: .*/run/muninn.*\nls: .*/var/lib/muninn.*\n$")
        self.assertTrue(self.first["start"].endswith("code 0\n"), self.first["journal"])
        who = ["muninn", "muninn", "root:muninn 640", "muninn:muninn 700", "muninn:muninn 600"]
        self.assertEqual([line.strip() for line in self.first["who"].splitlines()], who)

    def test_its_user_can_check_what_it_serves(self):
        self.assertTrue(self.first["check of what is served"].endswith("code 0\n"), self.first["check of what is served"])

    def test_advice_on_a_secret_leaves_the_file_to_the_service(self):
        advice = "chgrp muninn /root/secret.conf; chmod 640 /root/secret.conf"
        self.assertEqual(self.first["advice on a secret"].splitlines(), [advice, "code 0", "root:muninn 640", "0"])

    def test_what_was_written_is_there_after_a_restart_an_upgrade_and_a_boot(self):
        self.assertEqual(self.first["write"].splitlines()[-2], "code 0", self.first["write"])
        self.assertEqual(self.first["restart"].split("\n")[:2], ["code 0", "code 0"])
        self.assertTrue(self.first["after the upgrade"].startswith("active\ncode 0\n"))
        self.assertIn("before", self.first["after the upgrade"])
        self.assertEqual(self.second["after the boot"], "active\ncode 0\n")

    def test_an_upgrade_starts_the_running_service_again(self):
        said = self.first["upgrade"]
        self.assertRegex(said, r"code 0\nrestarted\n.*\+1\nenabled\n$")

    def test_root_and_a_group_ask_the_running_service(self):
        said = self.first["status"]
        self.assertRegex(said, r"(?s)^muninnd .*LUN 1   osd .*code 0\nmuninnctl: /run/muninn/admin: Permission denied: .*code 7\n$")
        self.assertRegex(self.first["reload"], r"\nmember\nmuninnctl: session ls: user nobody \(\d+\) may not administer .*\ncode 7\n")

    def test_a_reload_applies_the_file_and_a_wrong_file_changes_nothing(self):
        said = self.first["reload"]
        self.assertRegex(said, r'^code 0\n"lun":1\n"lun":7\n')
        self.assertTrue(said.endswith("went on\ncode 0\n"), said)
        self.assertIn("reload: LUN 7 is added", self.first["journal"])
        self.assertEqual(self.first["reload of a wrong file"], 'refused\nactive\ncode 0\n"lun":1\n')
        self.assertIn("muninn: error: reload: nothing has changed: /etc/muninn/muninn.conf:", self.first["journal"])

    def test_systemd_hears_that_the_service_lives(self):
        self.assertRegex(self.first["watchdog"], r"^WatchdogUSec=6min\n[1-9]\d*\n$")

    def test_a_start_of_tgt_does_not_stop_it(self):
        self.assertEqual(self.first["start of tgt"].split("\n")[-2], "active", self.first["start of tgt"])

    def test_root_administers_devices_of_the_service(self):
        codes = re.findall(r"(?m)^code \d+$", self.first["administration"])
        self.assertEqual(codes, ["code 0"] * 3, self.first["administration"])
        files = ["device.key", "devices", "lun1.img", "lun1.img.nvram"]
        wanted = [f"muninn:muninn {name}" for name in files] + ["code 0", "code 0"]
        self.assertEqual(self.first["files of root"].splitlines(), wanted)

    def test_it_is_confined(self):
        exposure = re.search(r"Overall exposure level for muninn.service: (\d+\.\d)", self.first["security"])
        self.assertLessEqual(float(exposure.group(1)), 2.5)

    def test_the_journal_has_what_it_says_and_no_advice_to_type(self):
        self.assertRegex(self.first["journal"], r"(?m)^LUN 1 osd iscsi://127.0.0.1:3260/")
        self.assertRegex(self.first["journal"], r"(?m)^tgtd: muninn: LUN 1: closed, everything is stable$")
        self.assertNotIn("Ctrl-C", self.first["journal"])
        # Neither the confinement nor the user takes anything away.
        self.assertNotRegex(self.first["warnings"], r"(?i)muninn: |denied|not permitted|jemalloc")

    def test_verbs_are_completed(self):
        self.assertEqual(self.first["completion"], "snapshot\n")

    def test_removing_and_purging_keep_the_devices_unless_somebody_asks(self):
        self.assertIn("code 0\ninactive\ndevice.key\ndevices\nlun1.img\nlun1.img.nvram\n", self.second["remove"])
        self.assertIn("the devices stay in /var/lib/muninn", self.second["purge"])
        self.assertTrue(self.second["purge"].endswith("/var/lib/muninn\ndevice.key\ndevices\nlun1.img\nlun1.img.nvram\n"), self.second["purge"])
        self.assertNotIn("\n/etc/muninn\n", self.second["purge"])
        self.assertEqual(self.second["again"], "code 0\ncode 0\n")
        self.assertNotIn("\n/var/lib/muninn\n", self.second["purge of all"])

    def test_purging_empties_what_a_mount_point_or_a_link_leads_to(self):
        for part in ("purge of a mount point", "purge of a link"):
            self.assertTrue(self.second[part].endswith("code 0\n/srv/muninn\n"), self.second[part])

    def test_it_depends_on_the_tgt_that_it_was_built_with(self):
        depends = subprocess.run(["dpkg-deb", "-f", self.package, "Depends"], check=True, capture_output=True, text=True)
        version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "tgt"], check=True, capture_output=True, text=True)
        self.assertIn(f"tgt (= {version.stdout})", depends.stdout)

    def test_lintian_finds_no_error(self):
        packages = glob.glob(os.path.join(DEB, "*.deb"))
        said = subprocess.run(["lintian", "--allow-root", *packages], capture_output=True, text=True, timeout=3 * LIMIT_SECONDS)
        self.assertEqual([line for line in said.stdout.splitlines() if line.startswith("E:")], [])


if __name__ == "__main__":
    unittest.main()
