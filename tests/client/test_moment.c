/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Moments as people write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/osd_client.h"

/* 2026-11-21T14:32:05Z */
#define NOW UINT64_C(1795271525000)

static struct osd_client_moment parse(const char *text)
{
	struct osd_client_moment moment;
	struct error_text error;

	if (osd_client_parse_moment(text, NOW, &moment, &error) < 0)
		fail_msg("%s", error.text);
	return moment;
}

static void expect(const char *text, enum osd_client_moment_kind kind, uint64_t value)
{
	struct osd_client_moment moment = parse(text);

	assert_int_equal(moment.kind, kind);
	assert_true(moment.value == value);
}

static void test_versions_sequences_and_counts_are_numbers(void **state)
{
	(void)state;
	expect("3", OSD_CLIENT_AT_VERSION, 3);
	expect("0x8001", OSD_CLIENT_AT_VERSION, 0x8001);
	expect("@0X1f", OSD_CLIENT_AT_VERSION, 31);
	expect("#4711", OSD_CLIENT_AT_SEQUENCE, 4711);
	expect("~2", OSD_CLIENT_AGO, 2);
	expect("now", OSD_CLIENT_NOW, 0);
}

static void test_letters_are_the_name_of_a_version(void **state)
{
	(void)state;
	assert_int_equal(parse("before-upgrade 2").kind, OSD_CLIENT_AT_NAME);
	assert_string_equal(parse("before-upgrade 2").name, "before-upgrade 2");
}

static void test_times_are_local_or_of_the_zone_behind_them(void **state)
{
	(void)state;
	expect("2026-11-21T14:32:05Z", OSD_CLIENT_AT_TIME, NOW);
	expect("2026-11-21 14:32:05.250Z", OSD_CLIENT_AT_TIME, NOW + 250);
	expect("2026-11-21T16:02:05+01:30", OSD_CLIENT_AT_TIME, NOW);
	expect("2026-11-21T14:32Z", OSD_CLIENT_AT_TIME, NOW - 5000);
	setenv("TZ", "UTC-2", 1); /* two hours east of UTC */
	tzset();
	expect("2026-11-21T16:32:05", OSD_CLIENT_AT_TIME, NOW);
	expect("2026-11-21", OSD_CLIENT_AT_TIME, NOW - 5000 - 32 * 60000 - 16 * 3600000);
	unsetenv("TZ");
	tzset();
}

static void test_durations_count_back_from_now(void **state)
{
	(void)state;
	expect("-250ms", OSD_CLIENT_AT_TIME, NOW - 250);
	expect("-10s", OSD_CLIENT_AT_TIME, NOW - 10000);
	expect("-10min", OSD_CLIENT_AT_TIME, NOW - 600000);
	expect("@-10min", OSD_CLIENT_AT_TIME, NOW - 600000);
	expect("-2h", OSD_CLIENT_AT_TIME, NOW - 7200000);
	expect("-1d", OSD_CLIENT_AT_TIME, NOW - 86400000);
	expect("-3w", OSD_CLIENT_AT_TIME, NOW - UINT64_C(3) * 7 * 86400000);
}

static void test_everything_else_is_refused_with_examples(void **state)
{
	static const char *const wrong[] = {
		"",
		"0",
		"~",
		"~0",
		"~0x2",
		"0x",
		"0x0",
		"0x1g",
		"#",
		"-",
		"-10",
		"-10y",
		"--1h",
		"2026-13-01",
		"2026-1",
		"12:60",
		"2026-11-21T",
		"2026-11-21x",
		"2026-11-21T14:32:05+1",
		"~2x",
		"-9999999w",
		"?",
		"99999999999999999999",
		"2026-11-21T14:32:05+15:00",
		"a-name-that-is-longer-than-the-sixty-three-bytes-that-a-name-may-have-at-most",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct osd_client_moment moment;
		struct error_text error = { "" };

		if (osd_client_parse_moment(wrong[i], NOW, &moment, &error) != -EINVAL)
			fail_msg("'%s' was taken", wrong[i]);
		assert_non_null(strstr(error.text, "2026-11-21T14:32:05"));
	}
}

static void expect_refused(const char *text, const char *why)
{
	struct osd_client_moment moment;
	struct error_text error = { "" };

	if (osd_client_parse_moment(text, NOW, &moment, &error) != -EINVAL)
		fail_msg("'%s' was taken", text);
	if (!strstr(error.text, why))
		fail_msg("'%s' is not in: %s", why, error.text);
}

static void test_days_and_times_that_no_calendar_has_are_refused(void **state)
{
	static const char *const wrong[] = {
		"2026-06-31",        "2026-11-31",
		"2026-02-29",        "2100-02-29T12:00:00Z",
		"2026-02-30T10:00Z", "2026-02-30T10:00+01:00",
		"2026-04-31 10:00",  "2026-06-30T10:00:60Z",
		"10:00:60",          "07:15:61",
		"todayT10:00:60",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		expect_refused(wrong[i], "there is no such day or time");
	parse("2028-02-29");
	parse("2026-06-30");
	parse("2026-12-31T23:59:59Z");
}

static void test_local_times_that_clocks_leave_out_or_show_twice_need_an_offset(void **state)
{
	(void)state;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1); /* as in Berlin */
	tzset();
	expect_refused("2026-03-29T02:30", "left out");
	expect_refused("2026-03-29T02:00:00", "left out");
	expect_refused("2026-03-29T02:59:59.999", "giving the offset");
	expect_refused("2026-10-25T02:30", "twice");
	expect_refused("2026-10-25T02:00:00", "giving the offset");
	/* The hours beside them, and both of the two with their offsets. */
	expect("2026-03-29T01:59:59", OSD_CLIENT_AT_TIME, UINT64_C(1774745999000));
	expect("2026-03-29T03:00:00", OSD_CLIENT_AT_TIME, UINT64_C(1774746000000));
	expect("2026-10-25T01:59:59", OSD_CLIENT_AT_TIME, UINT64_C(1792886399000));
	expect("2026-10-25T03:00:00", OSD_CLIENT_AT_TIME, UINT64_C(1792893600000));
	expect("2026-10-25T02:30:00+02:00", OSD_CLIENT_AT_TIME, UINT64_C(1792888200000));
	expect("2026-10-25T02:30:00+01:00", OSD_CLIENT_AT_TIME, UINT64_C(1792891800000));
	/* Summer and winter. */
	expect("2026-07-01T12:00:00", OSD_CLIENT_AT_TIME, UINT64_C(1782900000000));
	expect("2026-01-01T12:00:00", OSD_CLIENT_AT_TIME, UINT64_C(1767265200000));
	unsetenv("TZ");
	tzset();
}

static void test_days_have_names_and_a_time_alone_is_the_last_one(void **state)
{
	(void)state;
	setenv("TZ", "UTC-2", 1); /* two hours east of UTC: it is 16:32:05 */
	expect("today", OSD_CLIENT_AT_TIME, NOW - ((16 * 60 + 32) * 60 + 5) * 1000);
	expect("yesterday", OSD_CLIENT_AT_TIME, NOW - ((40 * 60 + 32) * 60 + 5) * 1000);
	expect("yesterday 16:32:05", OSD_CLIENT_AT_TIME, NOW - 86400000);
	expect("todayT16:30", OSD_CLIENT_AT_TIME, NOW - 125000);
	expect("16:32:05", OSD_CLIENT_AT_TIME, NOW);
	expect("16:32", OSD_CLIENT_AT_TIME, NOW - 5000);
	expect("16:32:04.5", OSD_CLIENT_AT_TIME, NOW - 500);
	/* Not yet today. */
	expect("16:33", OSD_CLIENT_AT_TIME, NOW - 86400000 + 55000);
	assert_int_equal(parse("yesterdays").kind, OSD_CLIENT_AT_NAME);
	assert_true(osd_client_is_day("today"));
	assert_false(osd_client_is_day("todays"));
	unsetenv("TZ");
}

static void test_a_day_that_clocks_were_set_on_is_as_long_as_it_was(void **state)
{
	/* 2026-03-29T12:00 in Berlin; at 2:00 it became 3:00. */
	const uint64_t now = UINT64_C(1774778400000);
	struct osd_client_moment moment;
	struct error_text error;

	(void)state;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	assert_int_equal(osd_client_parse_moment("today", now, &moment, &error), 0);
	assert_true(moment.value == now - 11 * UINT64_C(3600000));
	assert_int_equal(osd_client_parse_moment("yesterday 12:00", now, &moment, &error), 0);
	assert_true(moment.value == now - 23 * UINT64_C(3600000));
	assert_int_equal(osd_client_parse_moment("02:30", now, &moment, &error), -EINVAL);
	assert_non_null(strstr(error.text, "left out"));
	unsetenv("TZ");
}

static void test_units_may_be_words(void **state)
{
	(void)state;
	expect("-1day", OSD_CLIENT_AT_TIME, NOW - 86400000);
	expect("-2days", OSD_CLIENT_AT_TIME, NOW - 2 * 86400000);
	expect("-3hours", OSD_CLIENT_AT_TIME, NOW - 3 * 3600000);
	expect("-1week", OSD_CLIENT_AT_TIME, NOW - 604800000);
	expect("-5minutes", OSD_CLIENT_AT_TIME, NOW - 300000);
	expect("-1second", OSD_CLIENT_AT_TIME, NOW - 1000);
}

static void test_words_that_are_no_times_are_refused(void **state)
{
	static const char *const texts[] = { "yesterday 25:00", "todayT",   "today 10:00Z",
					     "16:60",           "16:32x",   "-1hs",
					     "-1dayss",         "-1months", "16:32Z" };
	struct osd_client_moment moment;
	struct error_text error;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (osd_client_parse_moment(texts[i], NOW, &moment, &error) != -EINVAL)
			fail_msg("%s is a moment", texts[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions_sequences_and_counts_are_numbers),
		cmocka_unit_test(test_letters_are_the_name_of_a_version),
		cmocka_unit_test(test_times_are_local_or_of_the_zone_behind_them),
		cmocka_unit_test(test_durations_count_back_from_now),
		cmocka_unit_test(test_days_have_names_and_a_time_alone_is_the_last_one),
		cmocka_unit_test(test_a_day_that_clocks_were_set_on_is_as_long_as_it_was),
		cmocka_unit_test(test_units_may_be_words),
		cmocka_unit_test(test_words_that_are_no_times_are_refused),
		cmocka_unit_test(test_everything_else_is_refused_with_examples),
		cmocka_unit_test(test_days_and_times_that_no_calendar_has_are_refused),
		cmocka_unit_test(
			test_local_times_that_clocks_leave_out_or_show_twice_need_an_offset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
