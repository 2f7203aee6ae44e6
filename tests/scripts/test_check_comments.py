# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""scripts/check-comments finds files without an opening sentence, and comments that are too wide."""

import subprocess

from tree import TreeCase

LICENCE = "/* SPDX-License-Identifier: MIT */"


class CheckComments(TreeCase):
    def setUp(self):
        super().setUp()
        subprocess.run(["git", "init", "--quiet", self.root], check=True)

    def check(self):
        code, lines = self.run_script("check-comments")
        self.assertEqual(code, 1 if lines else 0)
        return lines

    def test_a_sentence_behind_the_licence_passes_in_either_form(self):
        self.write("a/one.c", LICENCE, "/* Does one thing. */", "int one;")
        self.write("a/two.h", LICENCE, "", "/*", " * Two things, of which", " * this is one.", " */", "int two;")
        self.write("a/three.c", LICENCE, "// Does three things.", "int three;")
        self.assertEqual(self.check(), [])

    def test_a_file_without_a_sentence_fails(self):
        self.write("a/code.c", LICENCE, "int one;", "/* Not at the beginning. */")
        self.write("a/heading.c", LICENCE, "/* ---- heading ---- */")
        self.write("a/nothing.h", LICENCE)
        self.write("a/licence.c", "/* Does one thing. */", "/* Does one thing. */")
        files = [line.split(":")[0] for line in self.check()]
        self.assertEqual(files, ["a/code.c", "a/heading.c", "a/licence.c", "a/nothing.h"])

    def test_a_wide_line_of_a_comment_fails_and_one_of_code_does_not(self):
        wide = "x" * 97
        self.write(
            "a/one.c",
            LICENCE,
            "/* Does one thing. */",
            f"/* {wide} */",
            "/*",
            f" * {wide}",
            f" * {wide}x",
            " */",
            f'const char *text = "/* {wide} */";',
            "\t\t/* " + "x" * 79 + " */",
        )
        self.write("run.sh", "#!/bin/sh", f"#  {wide}", f"# {wide}xx", f"echo {wide} {wide}")
        self.write("conf/service.conf", f"#  {wide}", f"# {wide}xx", f"key = {wide} {wide}")
        self.assertEqual(
            [line.split(" ")[0] for line in self.check()],
            ["a/one.c:3:", "a/one.c:6:", "a/one.c:9:", "conf/service.conf:2:", "run.sh:3:"],
        )
