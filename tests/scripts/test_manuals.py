# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""scripts/manuals says in manual pages and completions what the programs say of themselves; `make install` takes all
there is, and names what it needs; packages are built of the sources that there are."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PROGRAMS = os.path.join(ROOT, "build", "bin")

DEV = """
#include <stdio.h>
#include "client/osd_client.h"
#include "client/tree.h"
int main(void)
{
	int (*volatile import)() = (int (*)())tree_import;
	struct osd_client_address address;
	struct error_text error;
	char text[OSD_CLIENT_ADDRESS_TEXT];

	if (osd_client_parse_address("65536/0x10004", &address, &error) < 0)
		return 1;
	osd_client_format_address(address, text);
	puts(text);
	return import == 0;
}
"""


def run(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, **more).stdout


def make(*words, path=os.environ["PATH"]):
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name} | {"PATH": path}
    return subprocess.run(["make", "-C", ROOT, *words], capture_output=True, text=True, env=environment)


class Manuals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        run(os.path.join(ROOT, "scripts", "manuals"), PROGRAMS, cls.folder)
        cls.help = run(os.path.join(PROGRAMS, "muninnctl"), "--help")
        cls.verbs = [line[2:17].strip() for line in cls.help.split("\n\n")[1].split("\n")]

    def page(self, name):
        """Its text without the marks of troff."""
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read().replace("\\-", "-").replace("\\(aq", "'").replace("\\(ga", "`").replace("\\&", "").replace("\\e", "\\")

    def test_each_verb_has_its_help(self):
        page = self.page("muninnctl.1")
        self.assertIn("nand create", self.verbs)
        for verb in self.verbs:
            synopsis, text = run(os.path.join(PROGRAMS, "muninnctl"), "help", *verb.split()).split("\n\n", 1)
            self.assertIn(f'.SS "{synopsis.removeprefix("muninnctl ")}"\n', page)
            for line in text.split("\n")[1:-2]:
                self.assertIn(line, page)

    def test_each_program_says_its_help(self):
        for name in ("muninnd.8", "muninn-fsck.8", "muninn-bench.1"):
            page = self.page(name)
            headings = re.findall(r"(?m)^\.SH (.*)$", page)
            for line in filter(None, run(os.path.join(PROGRAMS, name[:-2]), "--help").split("\n")):
                # Only a heading is in upper case.
                self.assertTrue(f"\n{line}\n" in page or line.rstrip(":").upper() in headings, line)

    def test_each_key_has_its_text(self):
        page = self.page("muninn.conf.5")
        with open(os.path.join(ROOT, "conf", "muninn.conf"), encoding="utf-8") as file:
            text = file.read()
        keys = re.findall(r"(?m)^#? *([a-z_]+ = .*)$", text)
        self.assertGreater(len(keys), 60)
        for key in keys:
            self.assertIn(f".B {key}\n", page)
        for line in re.findall(r"(?m)^# ([A-Z].*)$", text):
            self.assertIn(line, page)

    def complete(self, *words):
        script = """. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _muninnctl; echo "${COMPREPLY[*]}" """
        return run("bash", "-c", script, "bash", os.path.join(self.folder, "muninnctl.bash"), "muninnctl", *words).split()

    def test_bash_completes_verbs_and_their_options(self):
        self.assertEqual(self.complete("sna"), ["snapshot"])
        self.assertEqual(self.complete("key", "s"), ["set", "show"])
        self.assertEqual(self.complete("help", "trunc"), ["truncate"])
        self.assertEqual(self.complete("help", "key", "mi"), ["mint"])
        self.assertEqual(self.complete("put", "iscsi", ":", "//h/t/1", "--re"), ["--replace"])
        self.assertEqual(self.complete("key", "mint", "--perm"), ["--permissions"])
        self.assertNotIn("--replace", self.complete("get", "--"))
        self.assertIn("--json", self.complete("get", "--"))
        self.assertLessEqual({verb.split()[0] for verb in self.verbs}, set(self.complete("")))

    def test_zsh_reads_its_completion(self):
        run("zsh", "-n", os.path.join(self.folder, "_muninnctl"))


class Installing(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    def files(self):
        return sorted(os.path.relpath(os.path.join(folder, name), self.root) for folder, _, names in os.walk(self.root) for name in names)

    def test_a_bare_machine_is_told_what_it_needs(self):
        # No compiler, no tgtd, no headers.
        for lack in ("CC=no-such-compiler", "TGTD=/nonexistent", "CC=gcc -nostdinc"):
            for target in ("install", "install-dev", "install-bench"):
                done = make(target, f"DESTDIR={self.root}", lack)
                self.assertNotEqual(done.returncode, 0, lack)
                self.assertIn("scripts/bootstrap installs it", done.stderr, lack)
                self.assertEqual(self.files(), [], lack)

    def test_all_is_installed_and_goes_again_but_for_the_configuration(self):
        for target in ("install", "install-dev", "install-bench"):
            done = make(target, f"DESTDIR={self.root}", "PREFIX=/usr")
            self.assertEqual(done.returncode, 0, done.stderr)
        wanted = {"usr/sbin/muninnd", "usr/bin/muninnctl", "usr/share/man/man5/muninn.conf.5", "usr/bin/muninn-bench"}
        wanted |= {"usr/lib/tgt/backing-store/bs_muninn.so", "lib/systemd/system/muninn.service", "usr/lib/sysusers.d/muninn.conf"}
        self.assertLessEqual(wanted, set(self.files()))
        with open(os.path.join(self.root, "lib/systemd/system/muninn.service"), encoding="utf-8") as file:
            self.assertIn("\nExecStart=/usr/sbin/muninnd\n", file.read())
        self.assertEqual(make("uninstall", f"DESTDIR={self.root}", "PREFIX=/usr").returncode, 0)
        self.assertEqual(self.files(), ["etc/muninn/muninn.conf"])

    def test_zsh_finds_its_completion_where_it_is_installed(self):
        searched = run("zsh", "-f", "-c", "print -l $fpath").split("\n")
        for prefix, folder in (("/usr", "/usr/share/zsh/vendor-completions"), ("/usr/local", "/usr/local/share/zsh/site-functions")):
            self.assertEqual(make("install", f"DESTDIR={self.root}", f"PREFIX={prefix}").returncode, 0)
            self.assertIn(folder, searched)
            self.assertTrue(os.path.exists(f"{self.root}{folder}/_muninnctl"), self.files())

    def test_packages_are_built_of_the_sources_that_there_are(self):
        """One that is gone does not stay in the tree of an earlier build; what was built there does."""
        tools, deb = os.path.join(self.root, "bin"), os.path.join(self.root, "deb")
        os.mkdir(tools)
        with open(os.path.join(tools, "dpkg-buildpackage"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\ntouch ../built.deb\n")
        os.chmod(file.name, 0o755)
        path = f"{tools}:{os.environ['PATH']}"
        self.assertEqual(make("build-deb", f"DEB={deb}", path=path).returncode, 0)
        tree = next(entry.path for entry in os.scandir(deb) if entry.is_dir())
        for name in ("common/gone.c", ".hidden", "build/lib/libkept.a"):
            os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
            with open(os.path.join(tree, name), "w", encoding="ascii"):
                pass
        self.assertEqual(make("build-deb", f"DEB={deb}", path=path).returncode, 0)
        there = [os.path.exists(os.path.join(tree, name)) for name in ("common/gone.c", ".hidden", "build/lib/libkept.a")]
        self.assertEqual(there, [False, False, True])
        self.assertTrue(os.path.exists(os.path.join(tree, "debian", "rules")))

    def test_a_program_is_built_with_what_is_installed_for_it(self):
        self.assertEqual(make("install-dev", f"DESTDIR={self.root}", "PREFIX=/usr").returncode, 0)
        with open(os.path.join(self.root, "usr/lib/pkgconfig/muninn-client.pc"), encoding="utf-8") as file:
            text = file.read().replace("prefix=/usr", f"prefix={self.root}/usr")
        values = dict(re.findall(r"(?m)^(\w+)(?:=|: )(.*)$", text))
        for name in ("includedir", "libdir"):
            values[name] = values[name].replace("${prefix}", values["prefix"])
        flags = [values[name].replace("${includedir}", values["includedir"]).replace("${libdir}", values["libdir"]) for name in ("Cflags", "Libs")]
        source, program = os.path.join(self.root, "one.c"), os.path.join(self.root, "one")
        with open(source, "w", encoding="utf-8") as file:
            file.write(DEV)
        run("gcc", "-Wall", "-Werror", *flags[0].split(), source, "-o", program, *flags[1].split())
        self.assertEqual(run(program), "0x10000/0x10004\n")


if __name__ == "__main__":
    unittest.main()
