# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
"""Small faults that can be put into a C source: a comparison turned round, a call left out, an error kept to oneself.

The source is read as tokens, without a parser. What comes out may not compile; the caller skips it. Nothing is changed
in statements that only say something or check the program itself (EXEMPT), in comments, strings and preprocessor lines.
"""

import bisect
import collections
import re

# line: number of the changed line; rule: what was done; start, end: the characters that text
# replaces.
Mutant = collections.namedtuple("Mutant", "line rule start end text")

Token = collections.namedtuple("Token", "kind text start end line")

PATTERN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)
      | (?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)
      | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<number>(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)[uUlLfF]*)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^~!<>=?:;,.(){}\[\]])""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)

# What a statement calls that no test need notice: messages, checks of the program itself, the order
# of threads (ThreadSanitizer's business), hints about speed, and memory that is given back at the
# end (LeakSanitizer's business).
EXEMPT = re.compile(
    r"^(assert|static_assert|_Static_assert|log_line|error_set|pthread_\w+|free|\w*prefetch\w*|madvise|posix_\w+"
    r"|sched_yield|atomic_thread_fence)$"
)

KEYWORDS = set(
    "auto break case const continue default do else enum extern for goto if inline register return sizeof static struct"
    " switch typedef union volatile while".split()
)

# Binary operators, and what each becomes.
BINARY = {
    "<": ["<=", ">="],
    "<=": ["<", ">"],
    ">": [">=", "<="],
    ">=": [">", "<"],
    "==": ["!="],
    "!=": ["=="],
    "&&": ["||"],
    "||": ["&&"],
    "+": ["-"],
    "-": ["+"],
    "*": ["/"],
    "/": ["*"],
    "%": ["/"],
    "<<": [">>"],
    ">>": ["<<"],
    "&": ["|"],
    "|": ["&"],
    "+=": ["-="],
    "-=": ["+="],
    "|=": ["&="],
    "&=": ["|="],
}
ERRORS = {"error", "result", "failed", "ret", "code"}


def tokens_of(source):
    """The tokens of a source, comments and preprocessor lines left out."""
    starts = [0] + [match.end() for match in re.finditer("\n", source)]
    found = []
    for match in PATTERN.finditer(source):
        if match.lastgroup not in ("comment", "directive"):
            line = bisect.bisect_right(starts, match.start())
            found.append(Token(match.lastgroup, match.group(), match.start(), match.end(), line))
    return found


def closing(tokens, opening):
    """Index of the parenthesis that closes the one at an index, or None."""
    depth = 0
    for i in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[i].text, 0)
        if depth == 0:
            return i
    return None


def statements_of(tokens):
    """(first, last) of each statement that ends in a semicolon, as indices; headers of loops and branches left out."""
    begins, i = True, 0
    while i < len(tokens):
        text = tokens[i].text
        if text in "{};" or text in ("else", "do"):
            begins = True
        elif begins and text in ("if", "while", "for", "switch") and tokens[i + 1].text == "(":
            i = closing(tokens, i + 1) or len(tokens)
        elif begins and text in ("case", "default") or begins and i + 1 < len(tokens) and tokens[i + 1].text == ":":
            while i < len(tokens) and tokens[i].text != ":":
                i += 1
        elif begins:
            last = end_of_statement(tokens, i)
            if last is not None:
                yield i, last
                i = last
            else:
                begins = False
        i += 1


def end_of_statement(tokens, first):
    """Index of the semicolon that ends it, or None where a brace comes first that begins no value, or ends a list."""
    depth, has_value = 0, tokens[first].text == "return"
    for i in range(first, len(tokens)):
        text = tokens[i].text
        has_value |= text == "="
        if text in "{}" and depth == 0 and not has_value:
            return None
        depth += {"(": 1, ")": -1, "{": 1, "}": -1}.get(text, 0)
        if depth < 0:
            return None
        if text == ";" and depth == 0:
            return i
    return None


def is_declaration(tokens, first):
    words = [token.text for token in tokens[first : first + 3]]
    if words[0] in ("struct", "const", "static", "enum", "union", "unsigned", "volatile", "typedef", "extern"):
        return True
    if tokens[first].kind != "word" or words[0] in KEYWORDS or len(words) < 3:
        return False
    return tokens[first + 1].kind == "word" or words[1] == "*" and tokens[first + 2].kind == "word"


def exempt_ranges(tokens):
    """(first, last) indices of the statements that are left as they are."""
    return [
        (first, last)
        for first, last in statements_of(tokens)
        if tokens[first].kind == "word" and EXEMPT.match(tokens[first].text) and tokens[first + 1].text == "("
    ]


def exempt_sizes(tokens, first, last, exempt):
    """Leaves the sizes of declared arrays as they are: space to spare is no fault, and ASan sees what is too little."""
    for i in range(first, last):
        if tokens[i].text == "=":
            return
        if tokens[i].text == "[":
            exempt[i + 1] = True


def is_binary(tokens, i):
    """Whether the operator at an index stands between two operands, as far as tokens tell."""
    before = tokens[i - 1]
    if before.kind == "word":
        return before.text not in KEYWORDS
    return before.kind == "number" or before.text in (")", "]")


def is_about_descriptor(tokens, i):
    """Whether a file descriptor is compared with 0, which is none that a program with an open stdin gets."""
    return tokens[i - 1].text.endswith("fd") and tokens[i + 1].text == "0"


def without(tokens, first, last):
    """The statement is left out; its semicolon stays."""
    return tokens[first].start, tokens[last].start, ""


def of_statement(tokens, first, last):
    """Yields (rule, start, end, text) for a statement as a whole."""
    word = tokens[first].text
    inner = tokens[first + 1 : last]
    if word == "return":
        if not inner:
            return
        value = (inner[0].start, inner[-1].end)
        if inner[0].text == "-" or len(inner) == 1 and inner[0].text in ERRORS:
            yield "no error", value[0], value[1], "0"
        elif len(inner) > 2 and inner[0].kind == "word" and inner[1].text == "(" and inner[-1].text == ")":
            if closing(tokens, first + 2) == last - 1:
                yield "result ignored", value[1], value[1], ", 0"
    elif word in ("break", "continue", "goto"):
        yield "jump left out", *without(tokens, first, last)
    elif not is_declaration(tokens, first):
        yield "statement left out", *without(tokens, first, last)


def of_token(tokens, i):
    """Yields (rule, start, end, text) for one token."""
    token = tokens[i]
    if token.text in ("if", "while") and tokens[i + 1].text == "(":
        last = closing(tokens, i + 1)
        if last:
            yield "condition negated", tokens[i + 1].start, tokens[i + 1].end, "(!("
    elif token.text in BINARY and is_binary(tokens, i):
        for other in BINARY[token.text]:
            if is_about_descriptor(tokens, i) and {token.text, other} in ({"<", "<="}, {">", ">="}):
                continue
            yield f"{token.text} to {other}", token.start, token.end, other
    elif token.text in ("++", "--"):
        yield "counts the other way", token.start, token.end, "--" if token.text == "++" else "++"
    elif token.text == "!" and tokens[i + 1].text != "=":
        yield "not left out", token.start, token.end, "!!"
    elif token.text in ("true", "false"):
        yield "truth turned round", token.start, token.end, "false" if token.text == "true" else "true"
    elif re.fullmatch(r"\d+[uUlL]*", token.text):
        if token.text == "0" and tokens[i - 2].text.endswith("fd"):
            return
        digits = re.match(r"\d+", token.text).group()
        for value in {int(digits) + 1, max(int(digits) - 1, 0)} - {int(digits)}:
            yield "number off by one", token.start, token.end, f"{value}{token.text[len(digits):]}"


def mutants_of(source, lines):
    """All mutants of a source whose changed token lies on one of the lines, in the order of the source."""
    tokens = tokens_of(source)
    exempt = [False] * len(tokens)
    for first, last in exempt_ranges(tokens):
        exempt[first : last + 1] = [True] * (last + 1 - first)
    found = []
    for first, last in statements_of(tokens):
        if is_declaration(tokens, first):
            exempt[first + 1] |= tokens[first + 1].text == "*"
            exempt_sizes(tokens, first, last, exempt)
        if tokens[first].line in lines and not exempt[first]:
            found += [Mutant(tokens[first].line, *change) for change in of_statement(tokens, first, last)]
    for i in range(1, len(tokens) - 1):
        if tokens[i].line in lines and not exempt[i]:
            found += [Mutant(tokens[i].line, *change) for change in of_token(tokens, i)]
    return sorted(found, key=lambda mutant: (mutant.start, mutant.rule, mutant.text))


def apply(source, mutant):
    """The source with the fault in it; lines keep their numbers."""
    removed = source[mutant.start : mutant.end]
    changed = source[: mutant.start] + mutant.text + "\n" * removed.count("\n") + source[mutant.end :]
    if mutant.rule != "condition negated":
        return changed
    tokens = tokens_of(source)
    opening = next(i for i, token in enumerate(tokens) if token.start == mutant.start)
    end = tokens[closing(tokens, opening)].end + len(mutant.text) - len(removed)
    return changed[:end] + ")" + changed[end:]
