# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""scripts/mutations.py: each rule changes what it should and nothing else; what is exempt stays as it is."""

import sys
import unittest

from tree import SCRIPTS

sys.path.insert(0, SCRIPTS)
import mutations  # noqa: E402


def changes_of(*lines):
    """{rule: [the changed lines]} of a function body."""
    source = "\n".join(["int f(int a, int b)", "{", *lines, "}", ""])
    reached = set(range(3, 3 + len(lines)))
    found = {}
    for mutant in mutations.mutants_of(source, reached):
        changed = mutations.apply(source, mutant)
        assert changed.count("\n") == source.count("\n"), changed
        found.setdefault(mutant.rule, []).append("\n".join(changed.splitlines()[2:-1]).strip())
    return found


class Mutations(unittest.TestCase):
    def expect(self, lines, expected):
        self.assertEqual(changes_of(*lines), expected)

    def test_a_comparison_moves_its_boundary_and_turns_round(self):
        self.expect(["return a < b;"], {"< to <=": ["return a <= b;"], "< to >=": ["return a >= b;"]})
        self.expect(["return a == b;"], {"== to !=": ["return a != b;"]})

    def test_whether_a_descriptor_is_one_has_no_boundary(self):
        self.expect(["return fd < 0;"], {"< to >=": ["return fd >= 0;"]})

    def test_a_condition_is_negated_as_a_whole(self):
        self.expect(
            ["if (f(a) && b)", "\t;"],
            {"condition negated": ["if (!(f(a) && b))\n\t;"], "&& to ||": ["if (f(a) || b)\n\t;"]},
        )

    def test_only_operators_between_two_operands_change(self):
        self.expect(["a = *p + -b;"], {"statement left out": [";"], "+ to -": ["a = *p - -b;"]})
        self.expect(["a = f(&b) & c[1];"], {
            "statement left out": [";"],
            "& to |": ["a = f(&b) | c[1];"],
            "number off by one": ["a = f(&b) & c[0];", "a = f(&b) & c[2];"],
        })  # fmt: skip

    def test_numbers_move_by_one_and_stay_positive(self):
        self.expect(["return g(0, 7u);"], {
            "number off by one": ["return g(1, 7u);", "return g(0, 6u);", "return g(0, 8u);"],
            "result ignored": ["return g(0, 7u), 0;"],
        })  # fmt: skip

    def test_statements_are_left_out_and_declarations_stay(self):
        self.expect(["struct x y;", "unsigned z;", "uint32_t v;", "uint32_t *w;", "g(a);"], {
            "statement left out": ["struct x y;\nunsigned z;\nuint32_t v;\nuint32_t *w;\n;"],
        })  # fmt: skip
        self.expect(["char text[64] = { g[2] };"], {
            "number off by one": ["char text[64] = { g[1] };", "char text[64] = { g[3] };"]
        })  # fmt: skip
        self.expect(["g(a,", "  b);"], {"statement left out": [";"]})

    def test_a_declaration_behind_a_list_of_values_stays(self):
        source = "enum { A = 1, B = 2 };\nint f(void)\n{\n\tuint8_t bytes[8];\n}\n"
        self.assertEqual(mutations.mutants_of(source, {4}), [])

    def test_jumps_are_left_out_in_branches_and_behind_labels(self):
        self.expect(
            ["switch (a) {", "case B:", "\tbreak;", "}"], {"jump left out": ["switch (a) {\ncase B:\n\t;\n}"]}
        )

    def test_an_error_is_kept_to_oneself(self):
        self.expect(["return -EIO;"], {"no error": ["return 0;"]})
        self.expect(["return result;"], {"no error": ["return 0;"]})
        self.expect(["return value;"], {})

    def test_what_only_speaks_or_checks_the_program_stays(self):
        for statement in (
            "assert(a == 1);",
            'log_line(LEVEL, "%d", a + 1);',
            "pthread_mutex_lock(&m);",
            "free(a);",
            'g("1 < 2");',
            "/* a < b */",
        ):
            expected = {"statement left out": [";"]} if statement.startswith("g") else {}
            self.expect([statement], expected)

    def test_lines_that_no_test_reaches_stay(self):
        source = "int f(int a)\n{\n\tif (a > 1)\n\t\treturn 2;\n\treturn 3;\n}\n"
        self.assertEqual({mutant.line for mutant in mutations.mutants_of(source, {4})}, {4})
        self.assertEqual(mutations.mutants_of(source, set()), [])

    def test_truth_and_counting_turn_round(self):
        self.expect(["return true;"], {"truth turned round": ["return false;"]})
        self.expect(["a++;"], {"statement left out": [";"], "counts the other way": ["a--;"]})
        self.expect(["return !a;"], {"not left out": ["return !!a;"]})
