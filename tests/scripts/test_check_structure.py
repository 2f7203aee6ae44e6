# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""scripts/check-structure finds what goes up between folders and circles of more than three modules, and nothing else."""

from tree import TreeCase


class CheckStructure(TreeCase):
    def circle(self, *names):
        """Modules of engine/history/, each of which calls the next one, and the last one the first."""
        for name, called in zip(names, names[1:] + names[:1]):
            self.write(f"engine/history/{name}.h", f"void {name}(void);")
            self.write(
                f"engine/history/{name}.c",
                f'#include "engine/history/{called}.h"',
                f"void {name}(void)",
                "{",
                f"\tif (1) {{ {called}(); }}",
                "}",
            )

    def expect_right(self):
        self.assertEqual(self.run_script("check-structure"), (0, []))

    def expect_wrong(self, *expected):
        code, lines = self.run_script("check-structure")
        self.assertEqual(lines, list(expected))
        self.assertEqual(code, 1)

    def test_a_circle_of_three_modules_passes(self):
        self.circle("one", "two", "three")
        self.expect_right()

    def test_a_circle_of_four_modules_fails_and_its_calls_are_told(self):
        self.circle("one", "two", "three", "four")
        self.expect_wrong(
            "circle of 4 modules that call each other; 3 are allowed:",
            "  engine/history/four -> engine/history/one: one",
            "  engine/history/one -> engine/history/two: two",
            "  engine/history/three -> engine/history/four: four",
            "  engine/history/two -> engine/history/three: three",
        )

    def test_a_report_tells_the_same_and_passes(self):
        self.circle("one", "two", "three", "four")
        code, lines = self.run_script("check-structure", "--report")
        self.assertEqual((code, len(lines)), (0, 5))

    def test_a_circle_is_found_across_folders_of_the_engine(self):
        self.circle("one", "two", "three")
        self.write("engine/objects/four.c", "void four(void)", "{", "\tone();", "}")
        self.write("engine/history/three.c", "void three(void)", "{", "\tfour();", "\tone();", "}")
        self.expect_wrong(
            "engine/objects/four.c calls one() of engine/history/one: engine/objects/ may not know engine/history/",
            "circle of 4 modules that call each other; 3 are allowed:",
            "  engine/history/one -> engine/history/two: two",
            "  engine/history/three -> engine/history/one: one",
            "  engine/history/three -> engine/objects/four: four",
            "  engine/history/two -> engine/history/three: three",
            "  engine/objects/four -> engine/history/one: one",
        )

    def test_a_function_in_a_table_or_an_argument_closes_no_circle(self):
        self.circle("one", "two", "three", "four")
        self.write("engine/history/two.c", "static const struct calls calls = { .run = three };", "void two(void) { }")
        self.expect_right()
        self.write("engine/history/two.c", "void two(void)", "{", "\teach(three);", "}")
        self.expect_right()

    def test_only_calls_of_functions_by_name_count(self):
        self.circle("one", "two", "three", "four")
        self.write(
            "engine/history/two.c",
            "/* three() would close the circle. */",
            "#define AGAIN three()",
            "struct calls { void (*three)(void); };",
            "static void local(struct calls *calls, void (*three)(void))",
            "{",
            '\tprint("three()"); // three()',
            "\tcalls->three();",
            "\tthree();",
            "}",
            "void two(void) { local(0, 0); }",
        )
        self.expect_right()

    def test_a_static_function_is_meant_before_one_of_another_file(self):
        self.circle("one", "two", "three", "four")
        self.write("engine/history/two.c", "static void three(void) { }", "void two(void) { three(); }")
        self.expect_right()

    def test_a_call_in_an_inline_function_of_a_header_counts(self):
        self.circle("one", "two", "three", "four")
        self.write("engine/history/two.h", "static inline void two(void)", "{", "\tthree();", "}")
        self.write("engine/history/two.c", "")
        self.assertEqual(self.run_script("check-structure")[0], 1)

    def test_an_include_that_goes_up_fails(self):
        self.write("engine/objects/node.c", '#include "engine/history/times.h"', '#include "engine/engine.h"')
        self.write("nand/page.h", '#include "engine/engine.h"')
        self.expect_wrong(
            "nand/page.h includes engine/engine.h: nand/ may not know engine/",
            "engine/objects/node.c includes engine/history/times.h: engine/objects/ may not know engine/history/",
        )

    def test_a_call_that_goes_up_fails_without_an_include_too(self):
        self.write("engine/history/times.c", "int times_of(int number) { return number; }")
        self.write("engine/objects/node.c", "int times_of(int);", "int node(void) { return times_of(1); }")
        self.expect_wrong(
            "engine/objects/node.c calls times_of() of engine/history/times: "
            "engine/objects/ may not know engine/history/"
        )

    def test_a_table_that_names_a_function_further_up_fails(self):
        self.write("engine/history/times.c", "int times_of(int number) { return number; }")
        self.write("engine/objects/node.c", "static const struct hooks hooks = {", "\t.times = times_of,", "};")
        self.expect_wrong(
            "engine/objects/node.c names times_of() of engine/history/times: "
            "engine/objects/ may not know engine/history/"
        )

    def test_a_header_further_up_is_not_included_for_its_structs_alone(self):
        self.write("engine/history/history.h", "struct history { int kept; };")
        self.write("engine/objects/node.c", '#include "engine/history/history.h"', "struct history history;")
        self.expect_wrong(
            "engine/objects/node.c includes engine/history/history.h: engine/objects/ may not know engine/history/"
        )

    def test_calls_and_includes_that_go_down_pass(self):
        self.write("engine/objects/node.h", "int node(void);")
        self.write("engine/objects/node.c", "int node(void) { return 0; }")
        self.write("engine/history/times.c", '#include "engine/objects/node.h"', "int times(void) { return node(); }")
        self.write("osd/read.c", '#include "engine/engine.h"', "int osd_read(void) { return times(); }")
        self.expect_right()

    def test_only_public_headers_of_another_part_are_included(self):
        self.write("engine/open.c", '#include "nand/nand.h"', '#include "nand/private.h"')
        self.write("osd/read.c", '#include "engine/objects/node.h"')
        self.expect_wrong(
            "engine/open.c includes nand/private.h, which is private to nand/",
            "osd/read.c includes engine/objects/node.h, which is private to engine/",
        )

    def test_the_index_of_the_muninn_store_stands_below_it(self):
        self.write("engine/muninn/seal.c", '#include "engine/muninn/index/index.h"')
        self.write("engine/muninn/index/bloom.c", '#include "engine/muninn/store.h"')
        self.expect_wrong(
            "engine/muninn/index/bloom.c includes engine/muninn/store.h: "
            "engine/muninn/index/ may not know engine/muninn/"
        )

    def test_a_program_that_runs_for_each_index_asks_for_which(self):
        self.write("tests/engine/index_under_test.h", "static inline int index_under_test(void) { return 1; }")
        self.write("tests/engine/fixture.c", "int make(void) { return index_under_test(); }", "int other_of(void);")
        self.write("tests/engine/muninn/shape.h", "static inline int shape(void) { return make(); }")
        self.write("tests/engine/muninn/plain.h", "static inline int plain(void) { return 2; }")
        for name, call in (("own", "index_under_test"), ("helped", "shape"), ("blind", "plain")):
            self.write(
                f"tests/engine/muninn/test_{name}.c",
                "/* Runs for each index. */",
                "int main(void) { return " + call + "(); }",
            )
        self.write("tests/engine/muninn/test_unmarked.c", "int main(void) { return plain(); }")
        self.expect_wrong(
            'tests/engine/muninn/test_blind.c says "Runs for each index.", but never calls index_under_test()'
        )
