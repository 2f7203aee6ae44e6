# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""scripts/check-docs finds dead links, headings within lines, wide lines, missing pages, functions and keys."""

import subprocess
import unittest

from tree import SCRIPTS, TreeCase

TOUR = "A READ: `first` ([one.c](../a/one.c)), then `second` and `third` ([one.c](../a/one.c))."
CODE = ("int first(void)", "{", "}", "", "static struct x *second(int a,", "\t\t\tint b)", "{", "}", "int third(void);")


class CheckDocs(TreeCase):
    def setUp(self):
        super().setUp()
        subprocess.run(["git", "init", "--quiet", self.root], check=True)
        self.write("docs/tour.md", TOUR.replace(" and `third`", ""))
        self.write("docs/configuration.md", "| `port`, `size` | 1 |")
        self.write("conf/muninn.conf", "[lun 1]", "#port = 1", "size = 2")
        self.write("docs/messages.md", "* `the clock of N is wrong`: set it.")
        self.write("a/one.c", *CODE)

    def check(self):
        code, lines = self.run_script("check-docs")
        self.assertEqual(code, 1 if lines else 0)
        return lines

    def test_a_tree_whose_documents_are_right_passes(self):
        self.write("README.md", "# One", "[a](docs/tour.md), [b](#one), [c](https://x.y/z)", "```", "x" * 120, "```")
        self.assertEqual(self.check(), [])

    def test_links_lead_to_files_and_headings(self):
        self.write("README.md", "# One `two`", "[a](b.md) [c](#one) [d](#one-two) [e](docs/tour.md#nothing)")
        self.assertEqual(
            self.check(),
            [
                "README.md: there is no b.md",
                "README.md: README.md has no heading #one",
                "README.md: docs/tour.md has no heading #nothing",
            ],
        )

    def test_a_wide_line_fails_and_one_of_a_generated_page_does_not(self):
        self.write("README.md", "x" * 101)
        self.write("docs/figures/" "results.md", "x" * 101)
        self.assertEqual(self.check(), ["README.md:1: 101 columns; 100 is the limit"])

    def test_a_heading_within_a_line_is_none(self):
        self.write("README.md", "# One ## two", "## Two", "the last. ## Three", "`# a ## B`", "```", "a ## B", "```")
        self.assertEqual(self.check(), ["README.md:3: a heading within a line"])

    def test_pages_that_sources_name_are_there(self):
        self.write("a/two.c", "/* See docs/tour.md and docs/" "old.md. */")
        self.assertEqual(self.check(), ["a/two.c: there is no docs/" "old.md"])

    def test_functions_of_the_tour_are_defined_in_their_files(self):
        self.write("docs/tour.md", TOUR)
        self.assertEqual(self.check(), ["docs/tour.md: a/one.c does not define third"])

    def test_a_tour_without_functions_fails(self):
        self.write("docs/tour.md", "Nothing.")
        self.assertEqual(self.check(), ["docs/tour.md: names no function in the form that this script reads"])

    def test_a_long_tour_fails(self):
        self.write("docs/tour.md", TOUR.replace(" and `third`", ""), *[""] * 150)
        self.assertEqual(self.check(), ["docs/tour.md: 151 lines; 150 is the limit"])

    def test_every_warning_of_the_engine_is_in_its_page(self):
        known, unknown = '"%s: the clock of %u is wrong"', '"%s: the moon of %u "\n"is full"'
        self.write("engine/two.c", f"log_line(LOG_LEVEL_WARNING, {known}, a, b);")
        self.write("nand/three.c", f"log_line(LOG_LEVEL_DEBUG, {unknown}, a, b);")
        self.assertEqual(self.check(), [])
        self.write("nand/three.c", f"log_line(LOG_LEVEL_ERROR,\n{unknown}, a, b);")
        self.assertEqual(self.check(), ["docs/messages.md: lacks what nand/three.c logs: %s: the moon of %u is full"])

    def test_every_key_of_the_configuration_is_in_its_page(self):
        self.write("docs/configuration.md", "| `size`, `speed` | 1 |")
        self.assertEqual(
            self.check(), ["docs/configuration.md: lacks the key port", "docs/configuration.md: there is no key speed"]
        )

    def test_the_documents_of_this_tree_are_right(self):
        done = subprocess.run([f"{SCRIPTS}/check-docs"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
