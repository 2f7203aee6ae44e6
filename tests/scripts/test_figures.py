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


def entry(section, case, metric, ours, scale, commit="abc"):
    return {
        "section": section, "case": case, "metric": metric, "unit": "x", "ours": ours, "paper": 0.5, "note": None,
        "predicted": 0.125, "ribbon": 0.625, "ribbon_predicted": None,
        "parameters": {"scale": scale}, "seed": 7, "commit": commit,
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
        return self.draw_all([entry("6.4", "random updates, kept", "segment_utilization", ours, scale)])

    def draw_all(self, entries, *options):
        results = os.path.join(self.place.name, "results.json")
        with open(results, "w", encoding="utf-8") as file:
            json.dump(entries, file)
        return self.run_script(*options, results, self.folder)

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

    def test_what_is_predicted_stands_beside_what_is_measured(self):
        self.assertEqual(self.draw("full").returncode, 0)
        self.assertIn("| 0.5 | 0.125 | 0.25 |  | 0.625 |", self.read("muninn-results.md"))

    def test_an_update_replaces_its_sections_and_says_of_which_commit_they_are(self):
        six_five = entry("6.5", "random updates", "x", 0.375, "full")
        self.assertEqual(
            self.draw_all([six_five, entry("6.4", "old", "segment_utilization", 0.25, "full")]).returncode, 0
        )
        done = self.draw_all([entry("6.4", "new", "segment_utilization", 0.75, "full", "def")], "--update")
        self.assertEqual(done.returncode, 0, done.stderr)
        for drawn in (self.read("muninn-results.md"), self.redrawn()):
            self.assertIn("commit abc.\nOf commit def: 6.4.\n", drawn)
            self.assertIn("| 6.4 | new | segment_utilization | x | 0.5 | 0.125 | 0.75 |", drawn)
            self.assertIn("| 6.5 | random updates | x | x | 0.5 | 0.125 | 0.375 |", drawn)
            self.assertNotIn("| old |", drawn)

    def redrawn(self):
        self.assertEqual(self.run_script("--redraw", self.folder).returncode, 0)
        return self.read("muninn-results.md")

    def test_an_update_of_another_scale_or_seed_is_refused(self):
        self.assertEqual(self.draw("full").returncode, 0)
        before = self.read("muninn-results.md")
        other_seed = entry("6.4", "random updates, kept", "segment_utilization", 0.75, "full") | {"seed": 8}
        for wrong in (entry("6.4", "new", "segment_utilization", 0.75, "quick"), other_seed):
            done = self.draw_all([wrong], "--update")
            self.assertEqual(done.returncode, 1)
            self.assertIn("differ from the table in scale or seed", done.stderr)
            self.assertEqual(self.read("muninn-results.md"), before)

    def test_a_table_without_the_newer_columns_is_read(self):
        self.assertEqual(self.draw("full").returncode, 0)
        table = self.read("muninn-results.md").splitlines()
        older = [line.split("|") for line in table if line.startswith("|")]
        older = ["|".join(cells[:6] + [cells[7]] + cells[10:]) for cells in older]
        with open(os.path.join(self.folder, "muninn-results.md"), "w", encoding="utf-8") as file:
            file.write("\n".join([line for line in table if not line.startswith("|")] + older) + "\n")
        self.assertIn("| 0.5 |  | 0.25 |  |  |", self.redrawn())

    def test_a_folder_without_a_table_has_nothing_to_draw_again(self):
        done = self.run_script("--redraw", self.folder)
        self.assertEqual(done.returncode, 1)
        table = os.path.join(self.folder, "muninn-results.md")
        self.assertEqual(done.stderr, f"figures-muninn: there is no {table}; run make bench-paper and make figures\n")


if __name__ == "__main__":
    unittest.main()
