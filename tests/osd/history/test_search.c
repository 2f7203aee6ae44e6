/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * SEARCH: what it finds, in how many commands, and in holes. test_expression.c has the expressions
 * themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "osd/expression_find.h"
#include "osd/functions.h"
#include "tests/osd/function_call.h"

/* ---- calls ---- */

struct match {
	uint64_t object, offset, length;
};

/*
 * No search here is worth more commands; without a limit one that gets nowhere would take its time.
 */
#define COMMANDS_MAX 64

/* Runs a search to its end; returns the matches. */
static size_t search(struct unit *unit, struct function_call *call, struct match *matches,
		     size_t most, unsigned *commands)
{
	size_t count = 0;

	*commands = 0;
	do {
		struct osd_item entry;

		function_run(unit, call);
		expect_good(unit);
		assert_true(++*commands <= COMMANDS_MAX);
		for (size_t n = 0; function_entry(unit, n, &entry); n++) {
			assert_true(count < most);
			matches[count++] = (struct match){
				entry_number(&entry, OSD_ITEM_OBJECT),
				entry_number(&entry, OSD_ITEM_OFFSET),
				entry_number(&entry, OSD_ITEM_LENGTH),
			};
		}
	} while (function_continue(unit, call));
	return count;
}

static void assert_match(const struct match *match, uint64_t object, uint64_t offset,
			 uint64_t length)
{
	assert_int_equal(match->object, object);
	assert_int_equal(match->offset, offset);
	assert_int_equal(match->length, length);
}

/* ---- what is found ---- */

static void test_search_finds_bytes_wherever_they_lie(void **state)
{
	struct unit *unit = *state;
	static const uint64_t places[] = { 0, 65535, 65537, 131070, 200000, 262144 - 6 };
	struct function_call call;
	struct match matches[16];
	unsigned commands;
	size_t count;

	function_subscribe(unit);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		unit_write(unit, O, places[i] == 65537 ? 65541 : places[i], "needle", 6);
	unit_create(unit, P, O + 1);
	unit_write(unit, O + 1, 3, "xneedlex", 8);

	function_of(&call, OSD_FUNCTION_SEARCH, P, 0);
	osd_item_add(&call.writer, OSD_ITEM_PATTERN, "needle", 6);
	count = search(unit, &call, matches, 16, &commands);
	assert_int_equal(count, 7);
	for (size_t i = 0; i < 6; i++)
		assert_match(&matches[i], O, places[i] == 65537 ? 65541 : places[i], 6);
	assert_match(&matches[6], O + 1, 4, 6);

	/* One object only. */
	function_of(&call, OSD_FUNCTION_SEARCH, P, O + 1);
	osd_item_add(&call.writer, OSD_ITEM_PATTERN, "needle", 6);
	assert_int_equal(search(unit, &call, matches, 16, &commands), 1);
	assert_int_equal(commands, 1);
}

static void test_search_takes_regular_expressions_and_their_lines(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	struct match matches[16];
	unsigned commands;
	uint8_t *text = malloc(200000);

	function_subscribe(unit);
	memset(text, 'a', 200000);
	memcpy(text, "error 12\nno error 3\nerror x\n", 28);
	memcpy(text + 65530, "\nerror 4567\0", 12);
	unit_write(unit, O, 0, text, 200000);
	function_of(&call, OSD_FUNCTION_SEARCH, P, O);
	osd_item_add_text(&call.writer, OSD_ITEM_REGEX, "^error [0-9]+");
	assert_int_equal(search(unit, &call, matches, 16, &commands), 2);
	assert_match(&matches[0], O, 0, 8);
	assert_match(&matches[1], O, 65531, 10);
	free(text);
}

static void test_search_streams_more_results_than_fit_and_never_twice(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	struct match *matches = calloc(3000, sizeof(*matches));
	uint8_t *text = malloc(3000 * 100);
	unsigned commands;

	function_subscribe(unit);
	memset(text, ' ', 3000 * 100);
	for (size_t i = 0; i < 3000; i++)
		memcpy(text + i * 100, "hit", 3);
	unit_write(unit, O, 0, text, 3000 * 100);
	function_of(&call, OSD_FUNCTION_SEARCH, P, 0);
	osd_item_add_text(&call.writer, OSD_ITEM_PATTERN, "hit");
	assert_int_equal(search(unit, &call, matches, 3000, &commands), 3000);
	assert_true(commands > 3);
	for (size_t i = 0; i < 3000; i++)
		assert_match(&matches[i], O, i * 100, 3);
	free(text);
	free(matches);
}

static void test_search_refuses_what_it_cannot_do_in_bounded_time(void **state)
{
	static const char *const expressions[] = { "(a)\\1", "((a{9}){9}){9}", "a{256}", "(", "" };
	struct unit *unit = *state;
	struct function_call call;

	function_subscribe(unit);
	for (size_t i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++) {
		function_of(&call, OSD_FUNCTION_SEARCH, P, O);
		osd_item_add_text(&call.writer, OSD_ITEM_REGEX, expressions[i]);
		function_run(unit, &call);
		expect_parameter(unit, 0);
	}
	/* Neither pattern nor expression, and both. */
	function_of(&call, OSD_FUNCTION_SEARCH, P, O);
	function_run(unit, &call);
	expect_parameter(unit, 0);
	osd_item_add_text(&call.writer, OSD_ITEM_REGEX, "a");
	osd_item_add_text(&call.writer, OSD_ITEM_PATTERN, "a");
	function_run(unit, &call);
	expect_parameter(unit, 16);
	function_of(&call, OSD_FUNCTION_SEARCH, P, O);
	osd_item_add_text(&call.writer, OSD_ITEM_PATTERN, "a");
	call.call.data_in_capacity = 1000;
	function_run(unit, &call);
	expect_field(unit, 32);
}

static void test_no_expression_takes_a_command_long(void **state)
{
	enum { TEXT_BYTES = 2 << 20 };
	struct unit *unit = *state;
	struct function_call call;
	uint8_t *text = malloc(TEXT_BYTES);
	uint32_t random = 1;
	struct timespec before, after;

	function_subscribe(unit);
	for (size_t i = 0; i < TEXT_BYTES; i++) {
		random = random * 1664525 + 1013904223;
		text[i] = 'a' + (random >> 31);
	}
	unit_write(unit, O, 0, text, TEXT_BYTES);
	function_of(&call, OSD_FUNCTION_SEARCH, P, O);
	osd_item_add_text(&call.writer, OSD_ITEM_REGEX, "(a|b)*a(a|b){60}c");
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
	function_run(unit, &call);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
	expect_good(unit);
	/* It says where to go on, and has got on. */
	assert_in_range(function_number(unit, OSD_ITEM_COUNT), 1, TEXT_BYTES - 1);
	/* Sanitizers take their time. */
	assert_true(after.tv_sec - before.tv_sec <= 5);
	free(text);
}

static void test_a_match_is_found_wherever_windows_end(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	struct match matches[16];
	static uint8_t text[140000];
	unsigned commands;

	function_subscribe(unit);
	for (size_t at = 65300; at < 65700; at += 13) {
		memset(text, '.', sizeof(text));
		memset(text + at, 'x', 200);
		unit_write(unit, O, 0, text, sizeof(text));
		function_of(&call, OSD_FUNCTION_SEARCH, P, O);
		osd_item_add_text(&call.writer, OSD_ITEM_REGEX, "x+");
		assert_int_equal(search(unit, &call, matches, 16, &commands), 1);
		assert_match(&matches[0], O, at, 200);
		function_of(&call, OSD_FUNCTION_SEARCH, P, O);
		osd_item_add_text(&call.writer, OSD_ITEM_REGEX, "x$");
		assert_int_equal(search(unit, &call, matches, 16, &commands), 0);
	}
}

/* ---- holes ---- */

#define TEBIBYTE (UINT64_C(1) << 40)

/*
 * An object of a TiB with data in it at both ends and in the middle, each part shorter than a page.
 */
static void make_sparse(struct unit *unit, uint64_t object)
{
	unit_write(unit, object, 0, "abc\nfirst", 9);
	unit_write(unit, object, TEBIBYTE / 2 - 3, "middle", 6);
	unit_write(unit, object, TEBIBYTE - 4, "last", 4);
}

/* All matches of PATTERN or REGEX in O are `count` ones. */
static void expect_in_sparse(struct unit *unit, uint16_t tag, const void *pattern, size_t length,
			     const struct match *wanted, size_t count)
{
	struct function_call call;
	struct match matches[16];
	unsigned commands;
	size_t found;

	function_of(&call, OSD_FUNCTION_SEARCH, P, O);
	osd_item_add(&call.writer, tag, pattern, (uint32_t)length);
	found = search(unit, &call, matches, 16, &commands);
	assert_int_equal(found, count);
	for (size_t i = 0; i < count; i++)
		assert_match(&matches[i], O, wanted[i].offset, wanted[i].length);
}

#define expect_bytes_in_sparse(unit, pattern, ...)                             \
	expect_in_sparse(unit, OSD_ITEM_PATTERN, pattern, sizeof(pattern) - 1, \
			 (const struct match[]){ __VA_ARGS__ },                \
			 sizeof((const struct match[]){ __VA_ARGS__ }) / sizeof(struct match))
#define expect_expression_in_sparse(unit, pattern, ...)                      \
	expect_in_sparse(unit, OSD_ITEM_REGEX, pattern, sizeof(pattern) - 1, \
			 (const struct match[]){ __VA_ARGS__ },              \
			 sizeof((const struct match[]){ __VA_ARGS__ }) / sizeof(struct match))

static void test_search_goes_over_a_hole_of_a_tebibyte_at_once(void **state)
{
	struct unit *unit = *state;
	const uint64_t middle = TEBIBYTE / 2 - 3, last = TEBIBYTE - 4;

	function_subscribe(unit);
	make_sparse(unit, O);
	expect_bytes_in_sparse(unit, "middle", { O, middle, 6 });
	expect_bytes_in_sparse(unit, "last", { O, last, 4 });
	expect_bytes_in_sparse(unit, "\0l", { O, last - 1, 2 });
	expect_bytes_in_sparse(unit, "e\0\0\0", { O, middle + 5, 4 });
	expect_bytes_in_sparse(unit, "\0\0mid", { O, middle - 2, 5 });
	expect_expression_in_sparse(unit, "[a-z]+", { O, 0, 3 }, { O, 4, 5 }, { O, middle, 6 },
				    { O, last, 4 });
	/* Each of them has threads at every zero; none has a match there. */
	expect_expression_in_sparse(unit, "..dl", { O, middle + 1, 4 });
	expect_expression_in_sparse(unit, ".{20}last$", { O, last - 20, 24 });
	expect_expression_in_sparse(unit, "[^x]{7}m", { O, middle - 7, 8 });
	expect_expression_in_sparse(unit, "(...)+x|^f", { O, 4, 1 });
}

/* Until it is done, or `commands` were sent. */
static uint64_t count_looked_at(struct unit *unit, struct function_call *call, unsigned commands)
{
	uint64_t looked_at = 0;

	do {
		function_run(unit, call);
		expect_good(unit);
		looked_at += function_number(unit, OSD_ITEM_COUNT);
	} while (function_continue(unit, call) && --commands > 0);
	return looked_at;
}

static void test_bytes_of_holes_count_as_looked_at(void **state)
{
	struct unit *unit = *state;
	struct function_call call;

	function_subscribe(unit);
	make_sparse(unit, O);
	function_of(&call, OSD_FUNCTION_SEARCH, P, O);
	osd_item_add_text(&call.writer, OSD_ITEM_PATTERN, "nowhere");
	assert_int_equal(count_looked_at(unit, &call, COMMANDS_MAX), TEBIBYTE);
	assert_int_equal(function_number(unit, OSD_ITEM_PROGRESS), 1000);
	function_of(&call, OSD_FUNCTION_SEARCH, P, O);
	osd_item_add_text(&call.writer, OSD_ITEM_REGEX, ".nowhere");
	assert_int_equal(count_looked_at(unit, &call, COMMANDS_MAX), TEBIBYTE);
}

/*
 * A result for each match, as everywhere; so the stream is as long as the hole, and ends when
 * nobody calls again.
 */
static void test_what_matches_zeros_matches_all_along_a_hole(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	struct osd_item entry;
	uint64_t at = 9, span;

	function_subscribe(unit);
	make_sparse(unit, O);
	function_of(&call, OSD_FUNCTION_SEARCH, P, O);
	osd_item_add(&call.writer, OSD_ITEM_PATTERN, "\0\0\0", 3);
	for (unsigned command = 0; command < 3; command++) {
		function_run(unit, &call);
		expect_good(unit);
		for (size_t n = 0; function_entry(unit, n, &entry); n++, at += 3)
			assert_int_equal(entry_number(&entry, OSD_ITEM_OFFSET), at);
		assert_true(function_continue(unit, &call));
	}
	assert_true(at > 1000);
	assert_in_range(function_number(unit, OSD_ITEM_PROGRESS), 0, 999);

	/* Matches longer than what is found exactly follow one another. */
	function_of(&call, OSD_FUNCTION_SEARCH, P, O);
	osd_item_add_text(&call.writer, OSD_ITEM_REGEX, "[^a-z]+");
	assert_true(count_looked_at(unit, &call, 1) > 100 * EXPRESSION_SPAN_MAX);
	assert_true(function_entry(unit, 1, &entry));
	at = entry_number(&entry, OSD_ITEM_OFFSET);
	span = entry_number(&entry, OSD_ITEM_LENGTH);
	assert_in_range(span, EXPRESSION_SPAN_MAX, 2 * EXPRESSION_SPAN_MAX);
	assert_true(function_entry(unit, 100, &entry));
	assert_int_equal(entry_number(&entry, OSD_ITEM_OFFSET), at + 99 * span);
	assert_int_equal(entry_number(&entry, OSD_ITEM_LENGTH), span);
}

/* The same bytes once with holes, and once written. */
static void test_search_finds_in_holes_what_it_finds_in_written_zeros(void **state)
{
	enum { LENGTH = 600000, MATCHES = 4000 };
	static const char *const expressions[] = { "a",       ".b",     "[^b]*c", "b.*",
						   "a.{200}", ".{255}", "[^a]+",  "(a|.b|c)+",
						   "(..)*b",  ".$|a" };
	static const uint64_t places[] = { 0,      1,      70000,  70003,  139264, 204799,
					   204800, 204801, 331776, 331777, 480000, 599999 };
	struct unit *unit = *state;
	struct match *matches = calloc(2 * (size_t)MATCHES, sizeof(*matches));
	uint8_t *written = calloc(1, LENGTH);
	static const uint8_t zeros[700];
	unsigned commands;

	function_subscribe(unit);
	unit_create(unit, P, O + 1);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		written[places[i]] = "abc\n"[i % 4];
		unit_write(unit, O, places[i], &"abc\n"[i % 4], 1);
	}
	unit_write(unit, O + 1, 0, written, LENGTH);
	for (size_t i = 0; i < 1 + sizeof(expressions) / sizeof(expressions[0]); i++) {
		size_t count[2];

		for (unsigned which = 0; which < 2; which++) {
			struct function_call call;

			function_of(&call, OSD_FUNCTION_SEARCH, P, O + which);
			if (i == 0)
				osd_item_add(&call.writer, OSD_ITEM_PATTERN, zeros, sizeof(zeros));
			else
				osd_item_add_text(&call.writer, OSD_ITEM_REGEX, expressions[i - 1]);
			count[which] = search(unit, &call, matches + (size_t)which * MATCHES,
					      MATCHES, &commands);
		}
		assert_true(count[0] > 0);
		assert_int_equal(count[0], count[1]);
		for (size_t n = 0; n < count[0]; n++)
			assert_match(&matches[n], O, matches[MATCHES + n].offset,
				     matches[MATCHES + n].length);
	}
	free(written);
	free(matches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_search_finds_bytes_wherever_they_lie),
		with_object(test_search_takes_regular_expressions_and_their_lines),
		with_object(test_search_streams_more_results_than_fit_and_never_twice),
		with_object(test_search_refuses_what_it_cannot_do_in_bounded_time),
		with_object(test_no_expression_takes_a_command_long),
		with_object(test_a_match_is_found_wherever_windows_end),
		with_object(test_search_goes_over_a_hole_of_a_tebibyte_at_once),
		with_object(test_bytes_of_holes_count_as_looked_at),
		with_object(test_what_matches_zeros_matches_all_along_a_hole),
		with_object(test_search_finds_in_holes_what_it_finds_in_written_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
