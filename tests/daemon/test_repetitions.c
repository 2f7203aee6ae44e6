/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Lines that come again and again: the log has few of them, and the counts are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/module/repetitions.h"

enum { LINES = 256, MINUTE = REPETITIONS_EACH_MS, BEGIN = 1234567 };

static char lines[LINES][REPETITION_BYTES + 64];
static size_t line_count;

static void take_line(enum log_level level, const char *line)
{
	assert_int_equal(level, LOG_LEVEL_WARNING);
	assert_in_range(line_count, 0, LINES - 1);
	snprintf(lines[line_count++], sizeof(lines[0]), "%s", line);
}

static struct repetitions repetitions;

static int set_up(void **state)
{
	(void)state;
	repetitions = (struct repetitions){ .what = "logins" };
	line_count = 0;
	log_configure(take_line, LOG_LEVEL_DEBUG);
	return 0;
}

static void say(const char *text, int64_t now_ms)
{
	repetitions_say(&repetitions, LOG_LEVEL_WARNING, text, now_ms);
}

static void test_a_line_is_said_once_and_its_repetitions_are_counted(void **state)
{
	(void)state;
	for (int n = 0; n < 300; n++)
		say("refused", BEGIN + n);
	say("another", BEGIN + 300);
	repetitions_sum_up(&repetitions, BEGIN + MINUTE - 1);
	assert_int_equal(line_count, 2);
	assert_string_equal(lines[0], "refused");
	assert_string_equal(lines[1], "another");
	repetitions_sum_up(&repetitions, BEGIN + MINUTE);
	assert_int_equal(line_count, 3);
	assert_string_equal(lines[2], "299 more in the last minute: refused");
	/* They are not counted twice. */
	repetitions_sum_up(&repetitions, BEGIN + 10 * MINUTE);
	assert_int_equal(line_count, 3);
}

static void test_a_line_that_goes_on_has_one_summary_a_minute(void **state)
{
	(void)state;
	for (int n = 0; n <= 600; n++)
		say("refused", BEGIN + n * (MINUTE / 60));
	/* Ten minutes, once a second. */
	assert_int_equal(line_count, 11);
	assert_string_equal(lines[1], "59 more in the last minute: refused");
	assert_string_equal(lines[10], "60 more in the last minute: refused");
}

static void test_a_line_that_stopped_for_a_minute_is_said_at_once_again(void **state)
{
	(void)state;
	say("refused", BEGIN);
	say("refused", BEGIN + MINUTE);
	say("refused", BEGIN + MINUTE + 1);
	assert_int_equal(line_count, 2);
	assert_string_equal(lines[1], "refused");
}

static void test_lines_that_all_differ_are_bounded_too(void **state)
{
	char text[32];

	(void)state;
	for (int n = 0; n < 1000; n++) {
		snprintf(text, sizeof(text), "refused %d", n % 500);
		say(text, BEGIN + n);
	}
	assert_int_equal(line_count, REPETITIONS_MAX);
	repetitions_sum_up(&repetitions, BEGIN + 2 * MINUTE);
	assert_int_equal(line_count, 2 * REPETITIONS_MAX + 1);
	assert_string_equal(lines[REPETITIONS_MAX], "1 more in the last minute: refused 0");
	assert_string_equal(lines[2 * REPETITIONS_MAX], "960 more logins without a message");
	/* Nor are they counted twice. */
	repetitions_sum_up(&repetitions, BEGIN + 4 * MINUTE);
	assert_int_equal(line_count, 2 * REPETITIONS_MAX + 1);
}

static void test_at_the_end_everything_is_told(void **state)
{
	(void)state;
	say("refused", BEGIN);
	say("refused", BEGIN);
	repetitions_sum_up(&repetitions, INT64_MAX);
	assert_int_equal(line_count, 2);
}

/* A unit that is closed may be the last one, or not. */
static void test_behind_an_end_that_was_none_lines_are_said_and_counted(void **state)
{
	(void)state;
	say("refused", BEGIN);
	say("refused", BEGIN);
	repetitions_sum_up(&repetitions, INT64_MAX);
	say("refused", BEGIN + 1);
	assert_int_equal(line_count, 3);
	assert_string_equal(lines[2], "refused");
	say("refused", BEGIN + 2);
	repetitions_sum_up(&repetitions, BEGIN + 1 + MINUTE);
	assert_int_equal(line_count, 4);
	assert_string_equal(lines[3], "1 more in the last minute: refused");
}

static void test_lines_longer_than_their_place_are_the_same_ones(void **state)
{
	char text[2 * REPETITION_BYTES];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	say(text, BEGIN);
	say(text, BEGIN);
	assert_int_equal(line_count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_line_is_said_once_and_its_repetitions_are_counted,
				       set_up),
		cmocka_unit_test_setup(test_a_line_that_goes_on_has_one_summary_a_minute, set_up),
		cmocka_unit_test_setup(test_a_line_that_stopped_for_a_minute_is_said_at_once_again,
				       set_up),
		cmocka_unit_test_setup(test_lines_that_all_differ_are_bounded_too, set_up),
		cmocka_unit_test_setup(test_at_the_end_everything_is_told, set_up),
		cmocka_unit_test_setup(test_behind_an_end_that_was_none_lines_are_said_and_counted,
				       set_up),
		cmocka_unit_test_setup(test_lines_longer_than_their_place_are_the_same_ones,
				       set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
