/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Recorded times never go down: what is written by a clock that is behind counts as of the last
 * recorded time.
 */
#include "common/log.h"
#include "engine/history/past.h"
#include "engine/history/times.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

/*
 * Writes at 1000, 1005 and 1010 s, at 2000 s by a wrong clock, and from 1020 s on by the right one.
 */
static void be_ahead(struct fixture *f)
{
	f->now = 1000 * SECOND;
	make_text_object(f);
	put_text_at(f, 1005, "at 1005 s");
	put_text_at(f, 1010, "at 1010 s");
	put_text_at(f, 2000, "at 2000 s, by a wrong clock");
	put_text_at(f, 1020, "at 1020 s");
	put_text_at(f, 1030, "at 1030 s");
	f->now = 1050 * SECOND;
}

/* What was written by a clock that was behind came at the last recorded time, as far as it goes. */
static void check_what_times_mean(struct fixture *f)
{
	check_text_at(f, 1007, "at 1005 s");
	check_text_at(f, 1010, "at 1010 s");
	check_text_at(f, 1045, "at 1010 s");
	check_text_at(f, 1999, "at 1010 s");
	check_text_at(f, 2000, "at 1030 s");
}

static void test_what_follows_a_wrong_clock_counts_as_of_its_time(void **state)
{
	struct fixture *f = *state;

	be_ahead(f);
	check_text_at(f, 1045, "at 1010 s");
	check_text(f, object(OBJECT), "at 1030 s");
	put_text_at(f, 2010, "at 2010 s");
	put_text_at(f, 2020, "at 2020 s");
	f->now = 2100 * SECOND;
	check_what_times_mean(f);
	check_text_at(f, 2009, "at 1030 s");
	check_text_at(f, 2015, "at 2010 s");
	check_text_at(f, 2050, "at 2020 s");
}

static void test_so_it_is_after_a_restart_and_a_crash(void **state)
{
	struct fixture *f = *state;

	be_ahead(f);
	assert_int_equal(engine_close(f->engine), 0);
	reopen(f);
	check_what_times_mean(f);
	put_text_at(f, 1060, "at 1060 s");
	crash(f);
	check_text_at(f, 1999, "at 1010 s");
	check_text_at(f, 2000, "at 1060 s");
	put_text_at(f, 2010, "at 2010 s");
	f->now = 2100 * SECOND;
	check_text_at(f, 2009, "at 1060 s");
	check_text_at(f, 2015, "at 2010 s");
}

static void test_by_number_everything_is_reached(void **state)
{
	static const char *const texts[] = { "at 1030 s", "at 1020 s",
					     "at 2000 s, by a wrong clock", "at 1010 s" };
	struct engine_modification modification = { .sequence = UINT64_MAX >> 16 };
	struct fixture *f = *state;

	be_ahead(f);
	for (size_t at = 0; at < sizeof(texts) / sizeof(texts[0]); at++) {
		begin(f, ENGINE_READ);
		assert_int_equal(engine_log_next(f->txn, PARTITION, OBJECT,
						 modification.sequence - 1, &modification),
				 0);
		commit(f);
		check_text(f,
			   at_version(object(OBJECT),
				      view_of(f, PARTITION, at_sequence(modification.sequence))),
			   texts[at]);
	}
	roll_back(f, PARTITION, at_sequence(modification.sequence));
	check_text(f, object(OBJECT), "at 1010 s");
}

static void test_a_log_says_the_recorded_times(void **state)
{
	static const uint64_t seconds[] = { 2000, 2000, 2000, 1010, 1005, 1000 };
	struct engine_modification modification = { .sequence = UINT64_MAX >> 16 };
	struct fixture *f = *state;

	be_ahead(f);
	begin(f, ENGINE_READ);
	for (size_t at = 0; at < sizeof(seconds) / sizeof(seconds[0]); at++) {
		assert_int_equal(engine_log_next(f->txn, PARTITION, OBJECT,
						 modification.sequence - 1, &modification),
				 0);
		assert_int_equal(modification.time_ms, seconds[at] * SECOND);
	}
	commit(f);
}

static void test_a_clock_from_before_the_device_is_one_that_is_behind(void **state)
{
	struct fixture *f = *state;

	f->now = 1000 * SECOND;
	make_text_object(f);
	put_text_at(f, 1010, "at 1010 s");
	put_text_at(f, 5, "by a clock without a battery");
	f->now = 6 * SECOND;
	assert_int_equal(try_time(f, PARTITION, 5), -ENOENT);
	crash(f);
	put_text_at(f, 1100, "at 1100 s");
	f->now = 1110 * SECOND;
	check_text_at(f, 1005, "one");
	check_text_at(f, 1050, "by a clock without a battery");
	check_text_at(f, 1105, "at 1100 s");
}

static void test_slots_end_by_the_clock_while_it_is_behind(void **state)
{
	struct fixture *f = *state;
	uint64_t first, second;

	be_ahead(f);
	first = f->engine->committed;
	put_text_at(f, 1052, "at 1052 s");
	second = f->engine->committed;
	assert_true(slot_begin(second) > slot_begin(first));
	f->now += 10;
	put_text(f, object(OBJECT), "10 ms later");
	assert_int_equal(slot_begin(f->engine->committed), slot_begin(second));
}

/* ---- the warning ---- */

static int warnings;

static void count_warning(enum log_level level, const char *text)
{
	warnings += level == LOG_LEVEL_WARNING && strstr(text, "the clock says") != NULL;
}

static void test_a_clock_that_is_behind_is_warned_of_once_until_it_has_caught_up(void **state)
{
	struct fixture *f = *state;

	warnings = 0;
	log_configure(count_warning, LOG_LEVEL_WARNING);
	f->now = 1000 * SECOND;
	make_text_object(f);
	put_text_at(f, 1010, "at 1010 s");
	put_text_at(f, 1009, "a second less, as clocks are kept right");
	assert_int_equal(warnings, 0);
	put_text_at(f, 1020, "ahead");
	for (uint64_t second = 1011; second < 1018; second++)
		put_text_at(f, second, "behind");
	assert_int_equal(warnings, 1);
	put_text_at(f, 1030, "right again");
	assert_int_equal(warnings, 1);
	put_text_at(f, 1022, "behind again");
	assert_int_equal(warnings, 2);
	log_configure(NULL, LOG_LEVEL_INFO);
}

/*
 * Numbers that were given for moments while the clock was ahead come free as others do, and not
 * when that time has come.
 */
static void test_views_from_then_come_free(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	f->now = 1000 * SECOND;
	make_text_object(f);
	for (uint32_t at = 0; at < ENGINE_VIEWS; at++)
		f->engine->past->views[at] = (struct view){ .partition = PARTITION,
							    .bound = 1 + at,
							    .objects_bound = 1 + at,
							    .used_ms = 1000000 * SECOND };
	f->now = 1010 * SECOND;
	begin(f, ENGINE_READ);
	assert_int_equal(engine_view_open(f->txn, PARTITION, at_time(1005 * SECOND), &version),
			 -EFBIG);
	commit(f);
	f->now += ENGINE_VIEW_UNUSED_MS;
	check_text_at(f, 1005, "one");
}

static void test_a_format_begins_time_anew_though_the_clock_had_been_ahead(void **state)
{
	struct fixture *f = *state;

	static const uint32_t lasting = 0x30000005;

	be_ahead(f);
	engine_set_lasting_pages(f->engine, &lasting, 1);
	begin(f, ENGINE_WRITE);
	assert_int_equal(
		engine_attribute_set(f->txn, (struct engine_address){ 0 }, lasting, 1, "stays", 5),
		0);
	commit(f);
	assert_int_equal(engine_reformat(f->engine), 0);
	f->now = 1060 * SECOND;
	make_text_object(f);
	put_text_at(f, 1070, "at 1070 s");
	f->now = 1080 * SECOND;
	check_text_at(f, 1065, "one");
	check_text_at(f, 1075, "at 1070 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_follows_a_wrong_clock_counts_as_of_its_time),
		TEST(test_so_it_is_after_a_restart_and_a_crash),
		TEST(test_by_number_everything_is_reached),
		TEST(test_a_log_says_the_recorded_times),
		TEST(test_a_clock_from_before_the_device_is_one_that_is_behind),
		TEST(test_slots_end_by_the_clock_while_it_is_behind),
		TEST(test_a_clock_that_is_behind_is_warned_of_once_until_it_has_caught_up),
		TEST(test_views_from_then_come_free),
		TEST(test_a_format_begins_time_anew_though_the_clock_had_been_ahead),
	};

	return cmocka_run_group_tests_name("history_clock", tests, NULL, NULL);
}
