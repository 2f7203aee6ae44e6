# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""scripts/figures-muninn: figures say what they are, and quick ones do not replace those of full scale."""

import json
import os
import stat
import subprocess
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "figures-muninn")
# Keeps what it is told as its output, and draws nothing.
GNUPLOT = """#!/usr/bin/env python3
import re, sys
text = sys.stdin.read()
open(re.search(r'set output "(.*)"', text)[1], "w").write(text)
"""


def entry(section, case, metric, ours, scale):
    return {
        "section": section, "case": case, "metric": metric, "unit": "x", "ours": ours, "paper": 0.5, "note": None,
        "parameters": {"scale": scale}, "seed": 7, "commit": "abc",
    }  # fmt: skip


class Figures(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.folder = os.path.join(self.place.name, "figures")
        tool = os.path.join(self.place.name, "gnuplot")
        with open(tool, "w", encoding="utf-8") as file:
            file.write(GNUPLOT)
        os.chmod(tool, stat.S_IRWXU)

    def run_script(self, *arguments):
        path = self.place.name + ":" + os.environ["PATH"]
        environment = {**os.environ, "PATH": path}
        return subprocess.run([SCRIPT, *arguments], env=environment, capture_output=True, text=True, check=False)

    def draw(self, scale, ours=0.25):
        results = os.path.join(self.place.name, "results.json")
        with open(results, "w", encoding="utf-8") as file:
            json.dump([entry("6.4", "random updates, kept", "segment_utilization", ours, scale)], file)
        return self.run_script(results, self.folder)

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def test_a_figure_has_its_place_in_the_paper_and_its_scale(self):
        self.assertEqual(self.draw("full").returncode, 0)
        title = 'set title "Section 6.4 of the paper: segment utilization with updates (full scale, seed 7)"'
        self.assertIn(title, self.read("muninn-updates.svg"))

    def test_quick_results_do_not_replace_full_ones(self):
        self.assertEqual(self.draw("full").returncode, 0)
        before = self.read("muninn-updates.svg"), self.read("muninn-results.md")
        done = self.draw("quick", 0.75)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has figures of full scale", done.stderr)
        self.assertEqual((self.read("muninn-updates.svg"), self.read("muninn-results.md")), before)

    def test_others_replace_one_another(self):
        for scale in ("quick", "quick", "full", "full"):
            done = self.draw(scale)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"{scale} scale", self.read("muninn-results.md"))

    def test_a_table_draws_its_figures_again(self):
        self.assertEqual(self.draw("full").returncode, 0)
        before = self.read("muninn-updates.svg"), self.read("muninn-results.md")
        os.unlink(os.path.join(self.folder, "muninn-updates.svg"))
        done = self.run_script("--redraw", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.read("muninn-updates.svg"), self.read("muninn-results.md")), before)

    def test_a_folder_without_a_table_has_nothing_to_draw_again(self):
        done = self.run_script("--redraw", self.folder)
        self.assertEqual(done.returncode, 1)
        table = os.path.join(self.folder, "muninn-results.md")
        self.assertEqual(done.stderr, f"figures-muninn: there is no {table}; run make bench-paper and make figures\n")


if __name__ == "__main__":
    unittest.main()
