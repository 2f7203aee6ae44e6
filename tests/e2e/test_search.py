# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""SEARCH finds what grep finds in the same bytes, wherever they lie in objects, and in as many commands as it takes."""

import json
import os
import random
import re
import subprocess
import unittest

from harness import OneDaemonTest, noise

WINDOW = 65536  # what the target looks at in one piece


class Search(OneDaemonTest):
    def setUp(self):
        self.url = self.shared.url()
        self.partition = next(self.partitions)
        self.ctl("mkpart", self.url, self.partition)

    def put(self, number, content):
        address = f"0x{self.partition:x}/0x{0x10000 + number:x}"
        self.ctl("put", self.url, address, "--replace", stdin=content)
        return address

    def search(self, where, pattern, *words):
        """{(address, offset, length)} of all matches."""
        done = self.try_ctl("search", self.url, where, pattern, *words)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        found = []
        for line in done.stdout.decode().splitlines():
            address, span = line.split()
            offset, length = span.split("+")
            found.append((address, int(offset), int(length)))
        self.assertEqual(done.returncode, 0 if found else 3)
        return found

    def grep(self, content, pattern):
        """(offset, length) of all matches, by grep. Its output is taken apart by the lines that it must consist of."""
        path = os.path.join(self.folder("grep"), "content")
        with open(path, "wb") as file:
            file.write(content)
        done = subprocess.run(
            ["grep", "-Eabo", "-e", pattern, path], capture_output=True, env={"LC_ALL": "C"}, check=False, timeout=100
        )
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found = []
        for line in done.stdout.split(b"\n")[:-1]:
            offset, _, match = line.partition(b":")
            self.assertEqual(content[int(offset) : int(offset) + len(match)], match)
            found.append((int(offset), len(match)))
        return found

    def assert_like_grep(self, content, patterns):
        address = self.put(0, content)
        for pattern in patterns:
            with self.subTest(pattern=pattern):
                found = self.search(address, pattern, "--regex")
                self.assertEqual([match[1:] for match in found], self.grep(content, pattern))

    @staticmethod
    def random_pattern(dice, depth=3):
        """An expression that every implementation must understand alike."""

        def atom(left):
            kind = dice.randrange(10)
            if kind < 7 or left == 0:
                return dice.choice(["a", "b", "c", "d", ".", "[ab]", "[^a]", "[b-d]", "[[:space:]]", r"\.", "x"])
            return "(" + expression(left - 1) + ")"

        def piece(left):
            return atom(left) + dice.choice(["", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}"])

        def branch(left):
            return "".join(piece(left) for _ in range(dice.randrange(1, 4)))

        def expression(left):
            return "|".join(branch(left) for _ in range(dice.choice([1, 1, 2])))

        text = expression(depth)
        if "|" not in text:
            text = dice.choice(["", "", "^"]) + text + dice.choice(["", "", "$"])
        return text

    def test_random_expressions_in_random_texts(self):
        dice = random.Random(2014)
        for turn in range(6):
            # Long enough for pages and windows to end inside matches.
            content = bytes(dice.choices(b"aaaaabbbcd.x \n", k=dice.choice([10, 5000, 3 * WINDOW])))
            patterns = []
            while len(patterns) < 8:
                pattern = self.random_pattern(dice)
                # What is refused as too large is another test's business.
                if len(pattern) < 80:
                    patterns.append(pattern)
            with self.subTest(turn=turn):
                self.assert_like_grep(content, patterns)

    def test_random_bytes(self):
        self.assert_like_grep(noise(200_000, 1), ["[a-z]{4,}", r"\w+$", "^[^a-z]+", ".{100,}", "(a|b)[^c]*d"])

    def test_matches_across_pages_and_windows(self):
        for border in (4096, WINDOW, 2 * WINDOW):
            for length in (2, 300, 5000, 70_000):
                for before in (1, length // 2, length - 1):
                    content = bytearray(noise(border + length + 3000, border + length).replace(b"<", b".").replace(b"\n", b"."))
                    begin = max(border - before, 0)
                    content[begin : begin + length] = b"<" + b"=" * (length - 2) + b">"
                    address = self.put(1, bytes(content))
                    found = self.search(address, "<=*>", "--regex")
                    self.assertEqual([match[1:] for match in found], [(begin, length)])

    def test_results_of_many_commands_in_many_objects(self):
        dice, expected = random.Random(3), []
        for number in range(25):
            content = b"".join(b"line %d with %s\n" % (i, b"needle" if dice.random() < 0.4 else b"straw") for i in range(2500))
            address = self.put(number, content)
            expected += [(address, match.start(), len(match.group())) for match in re.finditer(rb"[0-9]+ with needle$", content, re.M)]
        self.assertGreater(len(expected), 20_000)
        self.assertEqual(self.search(f"0x{self.partition:x}", "[0-9]+ with needle$", "--regex"), expected)
        plain = [(address, offset + length - 6, 6) for address, offset, length in expected]
        self.assertEqual(self.search(f"0x{self.partition:x}", "needle"), plain)
        done = self.try_ctl("search", self.url, self.partition, "needle", "--progress")
        percent = [int(line.split()[-1].rstrip("%")) for line in done.stderr.decode().splitlines()]
        self.assertEqual(percent, sorted(percent))
        self.assertEqual(percent[-1], 100)

    def test_the_past_is_searched_too(self):
        self.put(0, b"once upon a time")
        self.ctl("snapshot", self.url, self.partition, "--name", "then")
        self.put(0, b"now")
        self.assertEqual(self.search(f"{self.partition}", "upon"), [])
        found = json.loads(self.ctl("--json", "search", self.url, f"{self.partition}@then", "u[a-z]+", "--regex"))
        self.assertEqual([(match["offset"], match["length"]) for match in found], [(5, 4)])

    def test_wrong_expressions_are_refused_with_a_reason(self):
        for pattern in ("(", "a{2,1}", r"(a)\1", "*a", "((a{9}){9}){9}"):
            done = self.try_ctl("search", self.url, self.partition, pattern, "--regex")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(b"regular expression", done.stderr)


if __name__ == "__main__":
    unittest.main()
