/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Regular expressions: what is understood, what is found, in how much work.
 * tests/e2e/test_search.py compares with grep.
 */
#include <errno.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "osd/expression_find.h"

/* A text that is given in pieces of so many bytes. */
struct text {
	const uint8_t *bytes;
	size_t length, piece;
	unsigned reads;
	bool holes; /* zeros are given as such, however many they are */
};

/* Bytes of zeros at an offset. */
static size_t zeros_at(const struct text *text, uint64_t offset)
{
	size_t length = 0;

	while (offset + length < text->length && text->bytes[offset + length] == 0)
		length++;
	return length;
}

static int read_text(void *context, uint64_t offset, const uint8_t **bytes, size_t *length)
{
	struct text *text = context;

	text->reads++;
	*length = 0;
	if (offset >= text->length)
		return 0;
	if (text->holes && text->bytes[offset] == 0) {
		*bytes = NULL;
		*length = zeros_at(text, offset);
		return 0;
	}
	*bytes = text->bytes + offset;
	*length = text->piece - offset % text->piece;
	if (*length > text->length - offset)
		*length = text->length - offset;
	return 0;
}

static struct expression *compiled(const char *pattern)
{
	struct expression *expression = malloc(sizeof(*expression));

	assert_int_equal(expression_compile((const uint8_t *)pattern, strlen(pattern), expression),
			 0);
	return expression;
}

/*
 * All matches as "0+3 7+1 "; `work` as each call begins with. *pauses: how often it had to be
 * called again. Owns the expression.
 */
static void find_all_of(struct expression *expression, struct text *text, uint64_t work_at_first,
			char *found, size_t room, unsigned *pauses)
{
	struct expression_matcher *matcher = expression_matcher_create(expression);
	uint64_t from = 0, begin = 0, end = 0, work = work_at_first;
	size_t used = 0;
	int outcome;

	*pauses = 0;
	found[0] = '\0';
	while ((outcome = expression_find(matcher, from, read_text, text, &work, &begin, &end)) !=
	       EXPRESSION_NONE) {
		if (outcome == EXPRESSION_PAUSED) {
			assert_true(begin > from);
			from = begin;
			work = work_at_first;
			++*pauses;
			continue;
		}
		assert_int_equal(outcome, EXPRESSION_FOUND);
		assert_true(begin >= from && end > begin && end <= text->length);
		used += (size_t)snprintf(found + used, room - used, "%llu+%llu ",
					 (unsigned long long)begin,
					 (unsigned long long)(end - begin));
		assert_true(used < room);
		from = end;
	}
	expression_matcher_free(matcher);
	free(expression);
}

static void find_all(const char *pattern, struct text *text, uint64_t work_at_first, char *found,
		     size_t room, unsigned *pauses)
{
	find_all_of(compiled(pattern), text, work_at_first, found, room, pauses);
}

static void expect_matches(const char *pattern, const char *bytes, size_t length,
			   const char *expected)
{
	char found[4096];
	unsigned pauses;

	for (size_t piece = 1; piece <= 64; piece *= 4) {
		struct text text = { (const uint8_t *)bytes, length, piece, 0, false };

		find_all(pattern, &text, 0, found, sizeof(found), &pauses);
		assert_string_equal(found, expected);
		assert_int_equal(pauses, 0);
		/* Out of work from the beginning: it stops wherever it may, and finds the same. */
		find_all(pattern, &text, EXPRESSION_WORK_MAX, found, sizeof(found), &pauses);
		assert_string_equal(found, expected);
	}
}

static void expect(const char *pattern, const char *text, const char *expected)
{
	expect_matches(pattern, text, strlen(text), expected);
}

static void test_the_leftmost_longest_match_is_found(void **state)
{
	(void)state;
	expect("a|ab|abc", "xabcd", "1+3 ");
	expect("b|abcd|a", "abce abcd", "0+1 1+1 5+4 ");
	expect("(a|ab)(c|bcd)", "abcd", "0+4 ");
	expect("a*", "baac", "1+2 ");
	expect("x*", "abc", "");
	expect("a.*b|c", "a c c b c\na c c", "0+7 8+1 12+1 14+1 ");
	expect("(a*)*b", "aaab aaa", "0+4 ");
	expect("(|a)+b", "aab", "0+3 ");
	expect("()", "a", "");
	expect("a||b", "ab", "0+1 1+1 ");
	expect("(a|b|)c", "ac bc c", "0+2 3+2 6+1 ");
}

static void test_matches_stay_inside_lines(void **state)
{
	(void)state;
	expect("^a", "aa\na\nba", "0+1 3+1 ");
	expect("a$", "aa\nab\na", "1+1 6+1 ");
	expect("^$", "\n\n", "");
	expect("^a*$", "aa\nab\n\na", "0+2 7+1 ");
	expect("a[^b]*", "aac\nd", "0+3 ");
	expect("a\\W", "a\na ", "2+2 ");
	expect("a.b", "a\nb", "");
	expect("(^|x)a", "aaxa\na", "0+1 2+2 5+1 ");
	expect("a(b|$)", "ab a\na", "0+2 3+1 5+1 ");
	expect("a^b", "a^b", "");
}

static void test_bounds_and_brackets(void **state)
{
	(void)state;
	expect("a{2}", "aaaaa", "0+2 2+2 ");
	expect("ba{0}c", "bac bc", "4+2 ");
	expect("a{0,2}b", "aaab b", "1+3 5+1 ");
	expect("(ab?){2,3}", "aababab", "0+5 ");
	expect("a{3,}", "aa aaaa", "3+4 ");
	expect("(a|b{2}){1,2}", "bbabbb", "0+3 3+2 ");
	expect("[]a]+", "x]a]", "1+3 ");
	expect("[^]a]+", "x]a]y", "0+1 4+1 ");
	expect("[a-c-]+", "-abcd", "0+4 ");
	expect("[[:digit:][:upper:]_]+", "aZ9_b", "1+3 ");
	expect("[[.-.]a]+[[=b=]]", "-ab", "0+3 ");
	expect("[\\n]+", "\\n", "0+2 ");
	expect("{\"a\"}", "{\"a\"}", "0+5 ");
	expect("\\{1\\}\\.\\*", "{1}.*", "0+5 ");
	expect("\\w+\\s", "ab_9 c", "0+5 ");
}

static void test_all_bytes_but_the_newline_are_characters(void **state)
{
	(void)state;
	expect_matches("a.b",
		       "a\0b a\xff"
		       "b",
		       7, "0+3 4+3 ");
	expect_matches("[^a]+", "a\0\xc3\xa9", 4, "1+3 ");
}

static void test_what_is_not_understood_is_refused(void **state)
{
	static const char *const wrong[] = { "",        "(",    "a)",    "[a",     "[]",
					     "*a",      "(+a)", "a|*",   "^*",     "a{2,1}",
					     "a{1",     "a{1,", "a\\",   "(a)\\1", "\\bword",
					     "\\<a",    "\\d",  "[z-a]", "a\nb",   "[[:no:]]",
					     "[[.ab.]]" };
	static const char *const large[] = { "a{256}", "((a{9}){9}){9}", "(a{200}){3}" };
	struct expression *expression = malloc(sizeof(*expression));
	char deep[EXPRESSION_DEPTH_MAX + 4], full[EXPRESSION_BYTES_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (expression_compile((const uint8_t *)wrong[i], strlen(wrong[i]), expression) !=
		    -EINVAL)
			fail_msg("'%s' was taken", wrong[i]);
	}
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
		assert_int_equal(
			expression_compile((const uint8_t *)large[i], strlen(large[i]), expression),
			-E2BIG);
	memset(deep, '(', sizeof(deep));
	assert_int_equal(expression_compile((const uint8_t *)deep, sizeof(deep), expression),
			 -E2BIG);
	memset(full, 'a', sizeof(full));
	assert_int_equal(
		expression_compile((const uint8_t *)full, EXPRESSION_BYTES_MAX, expression), 0);
	assert_int_equal(
		expression_compile((const uint8_t *)full, EXPRESSION_BYTES_MAX + 1, expression),
		-EINVAL);
	free(expression);
}

/* ---- the C library as an oracle ---- */

static unsigned roll(uint32_t *dice, unsigned sides)
{
	*dice = *dice * 1664525 + 1013904223;
	return (*dice >> 16) % sides;
}

/* Without bounds and groups in groups, with which the library has its own errors. */
static void make_pattern(uint32_t *dice, char *pattern)
{
	static const char *const atoms[] = {
		"a", "b", "c", ".", "[ab]", "[^a]", "(a|bc)", "(ab*|b)"
	};
	static const char *const signs[] = { "", "", "", "*", "+", "?" };

	pattern[0] = '\0';
	for (unsigned branch = 0, branches = 1 + roll(dice, 2); branch < branches; branch++) {
		if (branch > 0)
			strcat(pattern, "|");
		for (unsigned i = 0, count = 1 + roll(dice, 4); i < count; i++) {
			strcat(pattern, atoms[roll(dice, 8)]);
			strcat(pattern, signs[roll(dice, 6)]);
		}
	}
}

static void ask_library(const char *pattern, const char *text, char *found)
{
	regex_t expression;
	regmatch_t match;
	size_t from = 0, used = 0;

	found[0] = '\0';
	assert_int_equal(regcomp(&expression, pattern, REG_EXTENDED | REG_NEWLINE), 0);
	while (text[from] && regexec(&expression, text + from, 1, &match,
				     from > 0 && text[from - 1] != '\n' ? REG_NOTBOL : 0) == 0) {
		if (match.rm_eo > match.rm_so)
			used += (size_t)sprintf(found + used, "%zu+%zu ",
						from + (size_t)match.rm_so,
						(size_t)(match.rm_eo - match.rm_so));
		from += (size_t)match.rm_eo + (match.rm_eo == match.rm_so);
	}
	regfree(&expression);
}

static void test_random_expressions_find_what_the_library_finds(void **state)
{
	uint32_t dice = 20140610;

	(void)state;
	for (unsigned turn = 0; turn < 3000; turn++) {
		char pattern[256], text[64], expected[512];
		size_t length = roll(&dice, sizeof(text) - 1);

		make_pattern(&dice, pattern);
		for (size_t i = 0; i < length; i++)
			text[i] = "aaabbbccd\n"[roll(&dice, 10)];
		text[length] = '\0';
		ask_library(pattern, text, expected);
		expect(pattern, text, expected);
	}
}

/* ---- how much work ---- */

static void test_matches_of_up_to_a_mebibyte_are_whole(void **state)
{
	size_t length = EXPRESSION_SPAN_MAX + 100;
	uint8_t *bytes = malloc(length);
	struct text text = { bytes, length, 5000, 0, false };
	char found[256], expected[256];
	unsigned pauses;

	(void)state;
	memset(bytes, 'a', length);
	bytes[50] = 'x';
	bytes[50 + EXPRESSION_SPAN_MAX - 1] = 'y';
	snprintf(expected, sizeof(expected), "50+%llu ", (unsigned long long)EXPRESSION_SPAN_MAX);
	find_all("xa*y", &text, 0, found, sizeof(found), &pauses);
	assert_string_equal(found, expected);
	find_all("xa*y", &text, EXPRESSION_WORK_MAX, found, sizeof(found), &pauses);
	assert_string_equal(found, expected);
	free(bytes);
}

/* The library would take minutes and gigabytes for some of these. */
static void test_no_expression_does_more_than_its_work_before_it_pauses(void **state)
{
	static const char *const patterns[] = {
		"(a|b)*a(a|b){60}c", "(a|aa){1,64}c", "a.*c",
		"(a*)*(b*)*c",       "(.*.*.*)*c",    "[ab]{1,200}c"
	};
	size_t length = 400000;
	uint8_t *bytes = malloc(length);
	struct text text = { bytes, length, 4096, 0, false };
	uint32_t dice = 7;

	(void)state;
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)('a' + roll(&dice, 2));
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		struct expression *expression = compiled(patterns[i]);
		struct expression_matcher *matcher = expression_matcher_create(expression);
		uint64_t from = 0, begin, end, work;
		int outcome;

		do {
			work = 0;
			outcome = expression_find(matcher, from, read_text, &text, &work, &begin,
						  &end);
			assert_true(work <= 2 * EXPRESSION_WORK_MAX);
			assert_true(outcome == EXPRESSION_NONE || begin > from);
			from = begin;
		} while (outcome == EXPRESSION_PAUSED);
		assert_int_equal(outcome, EXPRESSION_NONE);
		expression_matcher_free(matcher);
		free(expression);
	}
	free(bytes);
}

/* ---- zeros ---- */

/* Runs of zeros of all lengths, some of which are longer than what a match may have. */
static size_t make_holey(uint32_t *dice, char *text, size_t room)
{
	size_t length = 0;

	while (length + 300 < room) {
		size_t zeros = roll(dice, 3) == 0 ? roll(dice, 300) : roll(dice, 5);

		memset(text + length, 0, zeros);
		length += zeros;
		text[length++] = "aaabbbccd\n"[roll(dice, 10)];
	}
	return length - roll(dice, 2);
}

/* With matches of up to `span` bytes. */
static void expect_the_same_in_holes(const char *pattern, const char *text, size_t length,
				     uint64_t span, uint64_t work)
{
	static char found[2][1 << 17];
	unsigned pauses;

	for (unsigned holes = 0; holes < 2; holes++) {
		struct text input = { (const uint8_t *)text, length, 64, 0, holes };
		struct expression *expression = compiled(pattern);

		expression->span = span;
		find_all_of(expression, &input, work, found[holes], sizeof(found[holes]), &pauses);
	}
	if (strcmp(found[0], found[1]) != 0)
		fail_msg("'%s', %zu bytes, span %llu: %s instead of %s", pattern, length,
			 (unsigned long long)span, found[1], found[0]);
}

static void test_in_zeros_that_are_not_looked_at_the_same_is_found(void **state)
{
	static const char *const patterns[] = { "a.*b",
						"(..)+b",
						"((...)+|(..)+)b",
						"(.{7}a?)*c",
						"[^a]+",
						"(a|.b)(.{5})*d",
						".{40}",
						"^.*$",
						"a.*|c.+b",
						"(a...|b..)*c?",
						"((..)+|(.....)+)d",
						"a(..)*",
						"(b|c)(...)+",
						"((..)+|(.....)+)[ab]?" };
	static const uint64_t spans[] = { 10, 37, 64, 150, 100000 };
	uint32_t dice = 19690720;
	char text[4000];

	(void)state;
	for (unsigned turn = 0; turn < 1500; turn++) {
		size_t length = make_holey(&dice, text, 400 + roll(&dice, sizeof(text) - 400));
		char pattern[256];

		make_pattern(&dice, pattern);
		if (roll(&dice, 4) == 0)
			strcpy(pattern,
			       patterns[roll(&dice, sizeof(patterns) / sizeof(patterns[0]))]);
		expect_the_same_in_holes(pattern, text, length, spans[roll(&dice, 5)],
					 roll(&dice, 4) == 0 ? EXPRESSION_WORK_MAX : 0);
	}
}

/* A TiB of zeros behind "b". */
static int read_hole(void *context, uint64_t offset, const uint8_t **bytes, size_t *length)
{
	const uint64_t end = UINT64_C(1) << 40;

	(void)context;
	*bytes = offset == 0 ? (const uint8_t *)"b" : NULL;
	*length = offset == 0 ? 1 : offset < end ? end - offset : 0;
	return 0;
}

static void test_a_hole_costs_the_same_however_long_it_is(void **state)
{
	static const char *const patterns[] = {
		"a",      ".a",      "b.*a",   "(..)+a",         "(.{3}|.{5})*a",
		"[^x]$x", ".{100}a", "(.*)*a", "b{0,9}.{9}(c|$)"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		struct expression *expression = compiled(patterns[i]);
		struct expression_matcher *matcher = expression_matcher_create(expression);
		uint64_t work = 0, begin = 0, end = 0;
		int outcome = expression_find(matcher, 0, read_hole, NULL, &work, &begin, &end);

		if (strchr(patterns[i], '$') == NULL || outcome != EXPRESSION_FOUND)
			assert_int_equal(outcome, EXPRESSION_NONE);
		else
			assert_int_equal(end, UINT64_C(1) << 40);
		assert_true(work < 100000);
		expression_matcher_free(matcher);
		free(expression);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_leftmost_longest_match_is_found),
		cmocka_unit_test(test_matches_stay_inside_lines),
		cmocka_unit_test(test_bounds_and_brackets),
		cmocka_unit_test(test_all_bytes_but_the_newline_are_characters),
		cmocka_unit_test(test_what_is_not_understood_is_refused),
		cmocka_unit_test(test_random_expressions_find_what_the_library_finds),
		cmocka_unit_test(test_matches_of_up_to_a_mebibyte_are_whole),
		cmocka_unit_test(test_in_zeros_that_are_not_looked_at_the_same_is_found),
		cmocka_unit_test(test_a_hole_costs_the_same_however_long_it_is),
		cmocka_unit_test(test_no_expression_does_more_than_its_work_before_it_pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
