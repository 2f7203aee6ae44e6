/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A clock that was ahead, and was set back: a time either means the moment that it was, or is
 * refused.
 */
#include "engine/history/retention.h"
#include "tests/engine/history_fixture.h"

enum { SECOND = 1000 };

static int try_time(struct fixture *f, uint64_t seconds, uint64_t *sequence)
{
	int result;

	begin(f, ENGINE_READ);
	result = engine_moment_resolve(f->txn, PID, at_time(seconds * SECOND), sequence);
	commit(f);
	return result;
}

static void put_at(struct fixture *f, uint64_t seconds, const char *text)
{
	f->now = seconds * SECOND;
	put_text(f, object(OID), text);
}

static void check_in_doubt(struct fixture *f, uint64_t seconds)
{
	uint64_t sequence;

	assert_int_equal(try_time(f, seconds, &sequence), -ESTALE);
}

static void check_at(struct fixture *f, uint64_t seconds, const char *text)
{
	check_text(f, at_version(object(OID), view_of(f, PID, at_time(seconds * SECOND))), text);
}

/*
 * Writes at 1000, 1005 and 1010 s, at 2000 s by a wrong clock, and from 1020 s on by the right one.
 */
static void be_ahead(struct fixture *f)
{
	f->now = 1000 * SECOND;
	make_text_object(f);
	put_at(f, 1005, "at 1005 s");
	put_at(f, 1010, "at 1010 s");
	put_at(f, 2000, "at 2000 s, by a wrong clock");
	put_at(f, 1020, "at 1020 s");
	put_at(f, 1030, "at 1030 s");
	f->now = 1050 * SECOND;
}

static void test_times_are_in_doubt_from_the_last_right_one_to_the_wrong_one(void **state)
{
	struct fixture *f = *state;

	be_ahead(f);
	for (uint64_t seconds = 1011; seconds <= 1050; seconds++)
		check_in_doubt(f, seconds);
	/* What was before is as it was. */
	check_at(f, 1007, "at 1005 s");
	check_at(f, 1010, "at 1010 s");
}

static void test_so_they_are_before_anything_is_written_by_the_right_clock(void **state)
{
	struct fixture *f = *state;

	f->now = 1000 * SECOND;
	make_text_object(f);
	put_at(f, 1010, "at 1010 s");
	put_at(f, 2000, "at 2000 s, by a wrong clock");
	f->now = 1020 * SECOND;
	check_in_doubt(f, 1015);
	check_at(f, 1010, "at 1010 s");
}

static void test_so_they_are_when_those_times_have_come_for_good(void **state)
{
	struct fixture *f = *state;

	be_ahead(f);
	put_at(f, 2010, "at 2010 s");
	put_at(f, 2020, "at 2020 s");
	f->now = 2100 * SECOND;
	check_in_doubt(f, 1011);
	check_in_doubt(f, 1045);
	check_in_doubt(f, 1999);
	check_at(f, 1010, "at 1010 s");
	check_at(f, 2005, "at 1030 s");
	check_at(f, 2015, "at 2010 s");
}

static void test_so_they_are_after_a_restart(void **state)
{
	struct fixture *f = *state;

	be_ahead(f);
	assert_int_equal(engine_close(f->engine), 0);
	reopen(f);
	check_in_doubt(f, 1045);
	put_at(f, 2010, "at 2010 s");
	f->now = 2100 * SECOND;
	crash(f);
	check_in_doubt(f, 1045);
	check_at(f, 1010, "at 1010 s");
	check_at(f, 2015, "at 2010 s");
}

static void test_a_rollback_to_such_a_time_is_refused_and_by_number_it_is_done(void **state)
{
	struct engine_modification modification;
	struct fixture *f = *state;

	be_ahead(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback(f->txn, PID, at_time(1045 * SECOND)), -ESTALE);
	engine_abort(f->txn);
	check_text(f, object(OID), "at 1030 s");
	begin(f, ENGINE_READ);
	assert_int_equal(engine_log_next(f->txn, PID, OID, UINT64_MAX >> 16, &modification), 0);
	assert_int_equal(
		engine_log_next(f->txn, PID, OID, modification.sequence - 1, &modification), 0);
	commit(f);
	roll_back(f, PID, at_sequence(modification.sequence));
	check_text(f, object(OID), "at 1020 s");
}

static void test_a_log_says_what_the_clock_said(void **state)
{
	static const uint64_t seconds[] = { 1030, 1020, 2000, 1010, 1005, 1000 };
	struct engine_modification modification = { .sequence = UINT64_MAX >> 16 };
	struct fixture *f = *state;

	be_ahead(f);
	begin(f, ENGINE_READ);
	for (size_t at = 0; at < sizeof(seconds) / sizeof(seconds[0]); at++) {
		assert_int_equal(
			engine_log_next(f->txn, PID, OID, modification.sequence - 1, &modification),
			0);
		assert_int_equal(modification.time_ms, seconds[at] * SECOND);
	}
	commit(f);
}

static void test_a_clock_that_is_kept_right_puts_nothing_in_doubt(void **state)
{
	struct fixture *f = *state;

	f->now = 1000 * SECOND;
	make_text_object(f);
	put_at(f, 1010, "at 1010 s");
	put_at(f, 1009, "a second less");
	f->now = 1012 * SECOND;
	check_at(f, 1005, "one");
	check_at(f, 1011, "a second less");
}

static void test_a_clock_from_before_the_device_puts_nothing_in_doubt(void **state)
{
	struct fixture *f = *state;
	uint64_t sequence;

	f->now = 1000 * SECOND;
	make_text_object(f);
	put_at(f, 1010, "at 1010 s");
	put_at(f, 5, "by a clock without a battery");
	f->now = 6 * SECOND;
	assert_int_equal(try_time(f, 5, &sequence), -ENOENT);
	put_at(f, 1100, "at 1100 s");
	f->now = 1110 * SECOND;
	check_at(f, 1005, "one");
	check_at(f, 1050, "by a clock without a battery");
}

static void test_with_such_a_clock_times_mean_the_same_after_a_restart(void **state)
{
	struct fixture *f = *state;

	f->now = 1000 * SECOND;
	make_text_object(f);
	put_at(f, 1010, "at 1010 s");
	f->now = 5 * SECOND;
	crash(f);
	check_at(f, 1005, "one");
	check_at(f, 1010, "at 1010 s");
}

/*
 * Commands by a clock that is behind have the latest time on record, whatever comes of them in a
 * crash.
 */
static void test_what_a_clock_said_that_is_behind_is_no_later_after_a_crash(void **state)
{
	struct fixture *f = *state;

	f->now = 1000 * SECOND;
	make_text_object(f);
	put_at(f, 2000, "by a wrong clock");
	f->now = 1020 * SECOND;
	put_text(f, object(OID), "at 1020 s");
	f->now += 900;
	put_text(f, object(OID), "at 1020.9 s");
	f->now = 2100 * SECOND;
	crash(f);
	f->now = 2200 * SECOND;
	begin(f, ENGINE_READ);
	uint64_t at_once, later;

	assert_int_equal(engine_moment_resolve(f->txn, PID, at_time(2000 * SECOND + 10), &at_once),
			 0);
	assert_int_equal(engine_moment_resolve(f->txn, PID, at_time(2005 * SECOND), &later), 0);
	commit(f);
	assert_int_equal(at_once, later);
	check_at(f, 2001, "at 1020.9 s");
}

/*
 * The last command's time is as late as its number tells, also when the clock is behind as the
 * device is opened.
 */
static void test_the_last_command_before_a_restart_is_not_taken_for_an_earlier_one(void **state)
{
	struct fixture *f = *state;
	uint64_t sequence;

	f->now = 1000 * SECOND;
	make_text_object(f);
	put_at(f, 2000, "at 2000 s");
	f->now += 900;
	put_text(f, object(OID), "at 2000.9 s");
	f->now = 5 * SECOND;
	crash(f);
	check_at(f, 1999, "one");
	begin(f, ENGINE_READ);
	assert_int_equal(
		engine_moment_resolve(f->txn, PID, at_time(2000 * SECOND + 500), &sequence), 0);
	commit(f);
	check_text(f, at_version(object(OID), view_of(f, PID, at_sequence(sequence))), "one");
	check_at(f, 2001, "at 2000.9 s");
}

/* History from 1000 s to 1100 s, of which only the newest is left. */
static void give_up_the_oldest(struct fixture *f)
{
	struct engine_history history;

	f->now = 1000 * SECOND;
	make_text_object(f);
	for (uint64_t second = 1001; second <= 1100; second++)
		put_at(f, second, "some text");
	assert_int_equal(retention_reclaim(f->engine, UINT32_MAX, RECORD_NEWEST), 0);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_history(f->txn, PID, &history), 0);
	commit(f);
	assert_true(history.horizon_time_ms > 1090 * SECOND);
}

static void test_a_clock_from_before_what_is_left_of_history_was_ahead_all_the_same(void **state)
{
	struct fixture *f = *state;

	give_up_the_oldest(f);
	put_at(f, 1040, "at 1040 s, after having been ahead");
	crash(f);
	f->now = 1200 * SECOND;
	check_in_doubt(f, 1050);
	check_in_doubt(f, 1099);
	check_at(f, 1101, "at 1040 s, after having been ahead");
}

static void test_but_not_one_from_before_the_device(void **state)
{
	struct fixture *f = *state;

	give_up_the_oldest(f);
	crash(f);
	put_at(f, 5, "by a clock without a battery");
	f->now = 1200 * SECOND;
	check_at(f, 1101, "by a clock without a battery");
	put_at(f, 1200, "at 1200 s");
	f->now = 1210 * SECOND;
	check_at(f, 1150, "by a clock without a battery");
	check_at(f, 1205, "at 1200 s");
}

/* More spans than there is room for: what lies between the last ones is in doubt, too. */
static void test_of_many_such_days_none_is_forgotten(void **state)
{
	struct fixture *f = *state;

	f->now = 1000 * SECOND;
	make_text_object(f);
	for (uint64_t day = 1; day <= 6; day++) {
		put_at(f, day * 10000, "right");
		put_at(f, day * 10000 + 2000, "ahead");
		put_at(f, day * 10000 + 1000, "right again");
		put_at(f, day * 10000 + 3000, "right for long");
	}
	f->now = 100000 * SECOND;
	for (uint64_t day = 1; day <= 6; day++)
		check_in_doubt(f, day * 10000 + 1500);
	check_at(f, 13500, "right for long");
	check_at(f, 63500, "right for long");
	check_in_doubt(f, 53500);
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
		f->engine->views[at] = (struct view){ .partition = PID,
						      .bound = 1 + at,
						      .objects_bound = 1 + at,
						      .used_ms = 1000000 * SECOND };
	f->now = 1010 * SECOND;
	begin(f, ENGINE_READ);
	assert_int_equal(engine_view_open(f->txn, PID, at_time(1005 * SECOND), &version), -EFBIG);
	commit(f);
	f->now += ENGINE_VIEW_UNUSED_MS;
	check_at(f, 1005, "one");
}

static void test_a_format_forgets_them(void **state)
{
	struct fixture *f = *state;
	uint64_t sequence;

	be_ahead(f);
	f->now = 2100 * SECOND;
	assert_int_equal(engine_reformat(f->engine), 0);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, PID, NULL), 0);
	commit(f);
	f->now = 2200 * SECOND;
	assert_int_equal(try_time(f, 1045, &sequence), -ENOENT);
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
	put_at(f, 1070, "at 1070 s");
	f->now = 1080 * SECOND;
	check_at(f, 1065, "one");
	check_at(f, 1075, "at 1070 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_times_are_in_doubt_from_the_last_right_one_to_the_wrong_one),
		TEST(test_so_they_are_before_anything_is_written_by_the_right_clock),
		TEST(test_so_they_are_when_those_times_have_come_for_good),
		TEST(test_so_they_are_after_a_restart),
		TEST(test_a_rollback_to_such_a_time_is_refused_and_by_number_it_is_done),
		TEST(test_a_log_says_what_the_clock_said),
		TEST(test_a_clock_that_is_kept_right_puts_nothing_in_doubt),
		TEST(test_a_clock_from_before_the_device_puts_nothing_in_doubt),
		TEST(test_with_such_a_clock_times_mean_the_same_after_a_restart),
		TEST(test_what_a_clock_said_that_is_behind_is_no_later_after_a_crash),
		TEST(test_the_last_command_before_a_restart_is_not_taken_for_an_earlier_one),
		TEST(test_a_clock_from_before_what_is_left_of_history_was_ahead_all_the_same),
		TEST(test_but_not_one_from_before_the_device),
		TEST(test_of_many_such_days_none_is_forgotten),
		TEST(test_views_from_then_come_free),
		TEST(test_a_format_forgets_them),
		TEST(test_a_format_begins_time_anew_though_the_clock_had_been_ahead),
	};

	return cmocka_run_group_tests_name("history_clock", tests, NULL, NULL);
}
