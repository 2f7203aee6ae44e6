# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""scripts/mutants: how it draws mutants, which programs it tries them on, what counts as caught, how it is told."""

import contextlib
import importlib.machinery
import importlib.util
import io
import math
import os
import sys
import tempfile
import unittest

from tree import SCRIPTS

sys.path.insert(0, SCRIPTS)
loader = importlib.machinery.SourceFileLoader("mutants", os.path.join(SCRIPTS, "mutants"))
mutants = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutants", loader))
loader.exec_module(mutants)

SOURCE = "int f(int a)\n{\n\tif (a < 1)\n\t\treturn g(a,\n\t\t\t a + 2);\n\treturn -EIO;\n}\n"


class InTree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muninn-tree-")
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        os.mkdir("nand")
        with open("nand/one.c", "w", encoding="utf-8") as file:
            file.write(SOURCE)


class Drawing(InTree):
    def sources(self, *lines):
        return mutants.Sources([mutants.Program("nand/test_one", 1, {"nand/one.c": set(lines)})])

    def test_one_mutant_of_each_line_that_a_test_reaches(self):
        drawn = list(self.sources(3, 6).drawn("nand", 1))
        self.assertEqual(sorted(mutant.line for _, mutant in drawn), [3, 6])

    def test_a_seed_draws_the_same_again(self):
        sources = self.sources(3, 4, 5, 6)
        self.assertEqual(list(sources.drawn("nand", 7)), list(sources.drawn("nand", 7)))
        self.assertGreater(len({str(list(sources.drawn("nand", seed))) for seed in range(20)}), 1)

    def test_a_line_that_is_reached_besides_leaves_the_order_of_the_others(self):
        more = [pair for pair in self.sources(3, 4, 6).drawn("nand", 7) if pair[1].line != 4]
        self.assertEqual(list(self.sources(3, 6).drawn("nand", 7)), more)

    def test_nothing_is_drawn_where_no_test_comes(self):
        self.assertEqual(list(self.sources().drawn("nand", 1)), [])

    def test_a_mutant_over_several_lines_is_shown_whole(self):
        (mutant,) = [m for m in self.sources(4).mutants("nand/one.c") if m.rule == "result ignored"]
        self.assertEqual(
            mutants.shown("nand/one.c", SOURCE, mutant),
            "nand/one.c:4: result ignored\n-\t\t\t a + 2);\n+\t\t\t a + 2), 0;",
        )

    def test_an_equivalent_mutant_is_named_without_its_line(self):
        (mutant,) = [m for m in self.sources(6).mutants("nand/one.c") if m.rule == "no error"]
        self.assertEqual(mutants.name_of("nand/one.c", SOURCE, mutant), "nand/one.c | return -EIO; | return 0;")


class Programs(InTree):
    def test_one_that_is_for_each_index_runs_with_both(self):
        for name, comment in (("test_one", "Runs for one index. */"), ("test_two", "Runs for each index. */")):
            for path, text in ((f"tests/nand/{name}.c", comment), (f"built/nand/{name}", "")):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            os.chmod(path, 0o755)
        self.assertEqual(mutants.test_programs("built"), ["nand/test_one", "nand/test_two", "bloom:nand/test_two"])
        self.assertEqual(
            mutants.path_and_environment("bloom:nand/test_two", "release"),
            (os.path.abspath("build/tests/release/nand/test_two"), {"MUNINN_INDEX": "bloom"}),
        )
        self.assertEqual(mutants.path_and_environment("nand/test_one", "release")[1], {})


    def test_one_that_takes_too_long_is_left_out_until_it_may_take_longer(self):
        works = f"#!{sys.executable}\nimport time\nwhile time.process_time() < 1.5: pass\n"
        for variant, text in (("release-shared", works), ("coverage", "")):
            path = f"build/tests/{variant}/nand/test_long"
            os.makedirs(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o755)
        mutants.write_json("build/mutants/lines/nand/test_long.json", {"nand/one.c": [4]})
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertIsNone(mutants.look_at_program("nand/test_long", 1))
        self.assertIn("nand/test_long takes too long", said.getvalue())
        self.assertEqual(mutants.look_at_program("nand/test_long", 20).lines, {"nand/one.c": {4}})
        # That it passes is known now, and so is that it takes longer than this.
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertIsNone(mutants.look_at_program("nand/test_long", 1))


class Going(unittest.TestCase):
    def test_all_mutants_of_a_file_are_tried(self):
        run = mutants.Run.__new__(mutants.Run)
        run.jobs, run.outcome = 1, lambda pair: mutants.Outcome("caught", "")
        for count in range(9):
            self.assertEqual([path for path, _, _ in run.try_all([(n, None) for n in range(count)], count)], list(range(count)))

    def test_what_does_not_count_is_made_up_for(self):
        run = mutants.Run.__new__(mutants.Run)
        run.jobs, run.outcome = 2, lambda pair: mutants.Outcome("caught" if pair[0] % 3 else "same code", "")
        done = run.try_all([(n, None) for n in range(100)], 10)
        self.assertEqual([path for path, _, _ in done], list(range(15)))


class Trying(unittest.TestCase):
    def outcome(self, *command, limit=10):
        return mutants.run_limited(list(command), {}, limit)[0]

    def test_a_program_passes_fails_or_crashes(self):
        self.assertEqual(self.outcome("true"), "passed")
        self.assertEqual(self.outcome("false"), "failed")
        self.assertEqual(self.outcome("sh", "-c", "kill -ABRT $$"), "failed")
        self.assertEqual(self.outcome("sh", "-c", "kill -SEGV $$"), "crashed")

    def test_a_program_that_goes_on_for_ever_is_ended(self):
        self.assertEqual(self.outcome("sh", "-c", "while :; do :; done", limit=1), "endless")

    def test_a_program_that_waits_for_ever_is_ended_but_not_one_whose_child_works(self):
        self.addCleanup(setattr, mutants, "STUCK_SECONDS", mutants.STUCK_SECONDS)
        mutants.STUCK_SECONDS = 2
        self.assertEqual(self.outcome("sleep", "1000"), "endless")
        works = "import time\nwhile time.process_time() < 3.5: pass"
        self.assertEqual(self.outcome("sh", "-c", f"{sys.executable} -c '{works}'; true"), "passed")

    def test_a_program_that_takes_all_memory_is_ended(self):
        self.addCleanup(setattr, mutants, "MEMORY_BYTES", mutants.MEMORY_BYTES)
        mutants.MEMORY_BYTES = 64 << 20
        self.assertEqual(self.outcome(sys.executable, "-c", "x = bytearray(1 << 28)\nwhile True: pass"), "memory")

    def test_others_may_use_the_folder_of_a_program(self):
        self.assertEqual(self.outcome("sh", "-c", "test $(stat -c %a $TMPDIR) = 755"), "passed")

    def test_what_a_program_leaves_behind_goes_with_it(self):
        with tempfile.NamedTemporaryFile(mode="r") as noted:
            self.assertEqual(self.outcome("sh", "-c", f"echo $TMPDIR >{noted.name}; echo 1 >$TMPDIR/left"), "passed")
            self.assertFalse(os.path.exists(noted.read().strip()))

    def test_programs_of_the_folder_come_first_and_then_the_shortest(self):
        def program(name, seconds, line=1):
            return mutants.Program(name, seconds, {"nand/one.c": {line}})

        programs = [
            program("osd/test_a", 0.1),
            program("nand/test_b", 3),
            program("nand/test_c", 1),
            program("nand/test_one", 4),
            program("nand/test_elsewhere", 0, line=2),
            program("osd/test_long", 10),
            program("bloom:nand/test_d", 2),
        ]
        nearest = [program.name for program in mutants.nearest_first(programs, "nand/one.c", 1, math.inf)]
        first = ["nand/test_one", "nand/test_c", "bloom:nand/test_d", "nand/test_b", "osd/test_a"]
        self.assertEqual(nearest, [*first, "osd/test_long"])
        self.assertEqual([program.name for program in mutants.nearest_first(programs, "nand/one.c", 1, 11)], first)
