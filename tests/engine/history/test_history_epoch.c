/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A new time epoch: a clock was far ahead and was set back, and an administrator begins a time
 * epoch.
 */
#include "engine/history/retention.h"
#include "tests/engine/fixture.h"

enum { YEAR = 366 * 24 * 3600 };

static int begin_epoch(struct fixture *f)
{
	int result;

	begin(f, ENGINE_RESCUE);
	result = engine_time_epoch(f->txn);
	if (!result)
		commit(f);
	else
		abort_all(f);
	return result;
}

static void begin_epoch_at(struct fixture *f, uint64_t seconds)
{
	f->now = seconds * SECOND;
	assert_int_equal(begin_epoch(f), 0);
}

/* Writes at 1000 and 1010 s, and by a clock that is a year ahead; at 1020 s it is right again. */
static void be_a_year_ahead(struct fixture *f)
{
	f->now = 1000 * SECOND;
	make_text_object(f);
	put_text_at(f, 1010, "at 1010 s");
	put_text_at(f, YEAR, "a year ahead");
	put_text_at(f, 1020, "at 1020 s");
}

static void test_times_count_by_the_clock_from_then_on(void **state)
{
	struct fixture *f = *state;

	be_a_year_ahead(f);
	put_text_at(f, 1030, "at 1030 s");
	begin_epoch_at(f, 1040);
	put_text_at(f, 1050, "at 1050 s");
	put_text_at(f, 1060, "at 1060 s");
	f->now = 1070 * SECOND;
	for (int start = 0; start < 3; start++) {
		check_text_at(f, 1040, "at 1030 s");
		check_text_at(f, 1045, "at 1030 s");
		check_text_at(f, 1055, "at 1050 s");
		check_text_at(f, 1065, "at 1060 s");
		if (start)
			crash(f);
		else
			assert_int_equal(engine_close(f->engine), 0);
		if (!start)
			reopen(f);
	}
	/* A year later nothing comes up again. */
	put_text_at(f, YEAR - 5, "a year later");
	f->now = (YEAR + 10) * (uint64_t)SECOND;
	check_text_at(f, YEAR - 10, "at 1060 s");
	check_text_at(f, YEAR - 2, "a year later");
	check_text_at(f, YEAR + 5, "a year later");
}

static void test_a_time_before_the_epoch_is_refused(void **state)
{
	struct fixture *f = *state;

	be_a_year_ahead(f);
	begin_epoch_at(f, 1040);
	put_text_at(f, 1050, "at 1050 s");
	f->now = 1060 * SECOND;
	assert_int_equal(try_time(f, PARTITION, 1), -ESTALE);
	assert_int_equal(try_time(f, PARTITION, 1005), -ESTALE);
	assert_int_equal(try_time(f, PARTITION, 1039), -ESTALE);
	assert_int_equal(try_time(f, PARTITION, 1040), 0);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback(f->txn, PARTITION, at_time(1010 * SECOND)), -ESTALE);
	abort_all(f);
}

static void test_what_was_before_is_reached_by_number_and_version(void **state)
{
	static const char *const texts[] = { "at 1020 s", "a year ahead", "at 1010 s" };
	struct engine_modification modification = { .sequence = UINT64_MAX >> 16 };
	struct fixture *f = *state;
	uint32_t version;

	be_a_year_ahead(f);
	version = take_snapshot(f, PARTITION, NULL);
	begin_epoch_at(f, 1040);
	for (int n = 0; n < 3; n++) {
		begin(f, ENGINE_READ);
		assert_int_equal(engine_log_next(f->txn, PARTITION, OBJECT,
						 modification.sequence - 1, &modification),
				 0);
		commit(f);
		check_text(f,
			   at_version(object(OBJECT),
				      view_of(f, PARTITION, at_sequence(modification.sequence))),
			   texts[n]);
	}
	check_text(f, at_version(object(OBJECT), version), "at 1020 s");
	roll_back(f, PARTITION, at_sequence(modification.sequence));
	check_text(f, object(OBJECT), "at 1010 s");
}

static void test_a_device_that_was_made_by_a_wrong_clock_gets_times(void **state)
{
	struct fixture *f = *state;

	f->now = YEAR * (uint64_t)SECOND;
	make_text_object(f);
	put_text_at(f, YEAR + 10, "two");
	begin_epoch_at(f, 1000);
	put_text_at(f, 1010, "at 1010 s");
	f->now = 1020 * SECOND;
	check_text_at(f, 1005, "two");
	check_text_at(f, 1015, "at 1010 s");
	assert_int_equal(try_time(f, PARTITION, 990), -ESTALE);
}

static void test_a_clock_that_nothing_is_ahead_of_needs_none(void **state)
{
	struct fixture *f = *state;

	f->now = 1000 * SECOND;
	make_text_object(f);
	put_text_at(f, 1010, "at 1010 s");
	assert_int_equal(begin_epoch(f), -EALREADY);
	f->now = 1020 * SECOND;
	assert_int_equal(begin_epoch(f), -EALREADY);
	check_text_at(f, 1005, "one");
	begin(f, ENGINE_READ);
	assert_int_equal(engine_time_epoch(f->txn), -EROFS);
	commit(f);
}

static void test_an_aborted_epoch_is_none(void **state)
{
	struct fixture *f = *state;

	be_a_year_ahead(f);
	f->now = 1040 * SECOND;
	begin(f, ENGINE_RESCUE);
	assert_int_equal(engine_time_epoch(f->txn), 0);
	abort_all(f);
	put_text_at(f, 1050, "at 1050 s");
	f->now = 1060 * SECOND;
	check_text_at(f, 1015, "at 1010 s");
	check_text_at(f, 1055, "at 1010 s");
	crash(f);
	check_text_at(f, 1055, "at 1010 s");
}

static void test_the_clock_may_be_wrong_again_and_again(void **state)
{
	struct fixture *f = *state;

	f->now = 1000 * SECOND;
	make_text_object(f);
	for (uint64_t day = 1; day <= 7; day++) {
		put_text_at(f, day * 10000, "right");
		put_text_at(f, day * 10000 + YEAR, "ahead");
		put_text_at(f, day * 10000 + 1000, "right again");
		begin_epoch_at(f, day * 10000 + 2000);
		put_text_at(f, day * 10000 + 3000, "right for long");
		crash(f);
		check_text_at(f, day * 10000 + 2500, "right again");
		check_text_at(f, day * 10000 + 3000, "right for long");
		assert_int_equal(try_time(f, PARTITION, day * 10000 + 1500), -ESTALE);
	}
}

static void test_an_epoch_that_began_too_late_is_ended_by_another(void **state)
{
	struct fixture *f = *state;

	be_a_year_ahead(f);
	begin_epoch_at(f, 5000);
	put_text_at(f, 5010, "at 5010 s, by a clock that was wrong again");
	begin_epoch_at(f, 1100);
	put_text_at(f, 1110, "at 1110 s");
	f->now = 1120 * SECOND;
	check_text_at(f, 1105, "at 5010 s, by a clock that was wrong again");
	check_text_at(f, 1115, "at 1110 s");
	assert_int_equal(try_time(f, PARTITION, 1050), -ESTALE);
	f->now = 6000 * SECOND;
	check_text_at(f, 5005, "at 1110 s");
}

/* A lock counts the time that the device is open, in whatever epoch. */
static void test_no_lock_ends_earlier_for_it(void **state)
{
	const struct engine_retention locked = {
		.kind = ENGINE_RETAIN_ALL, .locked_until_ms = (YEAR + 100) * (uint64_t)SECOND
	};
	const struct engine_retention less = { .kind = ENGINE_RETAIN_SNAPSHOTS };
	struct fixture *f = *state;

	be_a_year_ahead(f);
	f->now = YEAR * (uint64_t)SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, PARTITION, &locked, false), 0);
	commit(f);
	begin_epoch_at(f, 1040);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, PARTITION, &less, false), -EPERM);
	abort_all(f);
	f->now += 99 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, PARTITION, &less, false), -EPERM);
	abort_all(f);
	f->now += SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, PARTITION, &less, false), 0);
	commit(f);
}

/*
 * Ages were compared by the wrong clock. From the epoch on a policy keeps what it says again, and
 * promises nothing that is gone.
 */
static void keep_again(struct fixture *f, uint64_t id)
{
	uint64_t horizon;

	f->now = 1000 * SECOND;
	make_text_object(f);
	set_policy(f, id, 100 * SECOND, 0, 0);
	put_text_at(f, 1010, "at 1010 s");
	put_text_at(f, YEAR, "a year ahead");
	f->now = (YEAR + 1000) * (uint64_t)SECOND;
	retention_judge(f->engine);
	horizon = horizon_of(f, PARTITION);
	begin_epoch_at(f, 1040);
	assert_true(horizon_of(f, PARTITION) >= horizon);
	put_text_at(f, 1050, "at 1050 s");
	put_text_at(f, 1060, "at 1060 s");
	for (int start = 0; start < 2; start++) {
		f->now = 1070 * SECOND;
		retention_judge(f->engine);
		assert_true(horizon_of(f, PARTITION) >= horizon);
		assert_int_equal(try_time(f, PARTITION, 1005), -ESTALE);
		check_text_at(f, 1055, "at 1050 s");
		crash(f);
	}
	/* And as long as it says. */
	put_text_at(f, 1500, "at 1500 s");
	retention_judge(f->engine);
	assert_int_equal(try_time(f, PARTITION, 1055), -ENOENT);
}

static void test_a_partition_keeps_again_what_its_policy_says(void **state)
{
	keep_again(*state, PARTITION);
}

static void test_all_partitions_keep_again_what_the_devices_policy_says(void **state)
{
	keep_again(*state, 0);
}

/* Its policy had given up everything but the present by the time at which it was removed. */
static void test_a_partition_that_comes_back_promises_nothing_that_is_gone(void **state)
{
	struct fixture *f = *state;
	uint32_t version;
	uint64_t horizon;

	f->now = 1000 * SECOND;
	make_text_object(f);
	set_policy(f, PARTITION, 100 * SECOND, 0, 0);
	put_text_at(f, 1010, "at 1010 s");
	put_text_at(f, YEAR, "a year ahead");
	f->now = (YEAR + 1000) * (uint64_t)SECOND;
	version = take_snapshot(f, 0, NULL);
	retention_judge(f->engine);
	horizon = horizon_of(f, PARTITION);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_remove(f->txn, PARTITION, true), 0);
	commit(f);
	begin_epoch_at(f, 1040);
	roll_back(f, 0, at_number(version));
	check_text(f, object(OBJECT), "a year ahead");
	for (int start = 0; start < 2; start++) {
		assert_true(horizon_of(f, PARTITION) >= horizon);
		crash(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_times_count_by_the_clock_from_then_on),
		TEST(test_a_time_before_the_epoch_is_refused),
		TEST(test_what_was_before_is_reached_by_number_and_version),
		TEST(test_a_device_that_was_made_by_a_wrong_clock_gets_times),
		TEST(test_a_clock_that_nothing_is_ahead_of_needs_none),
		TEST(test_an_aborted_epoch_is_none),
		TEST(test_the_clock_may_be_wrong_again_and_again),
		TEST(test_an_epoch_that_began_too_late_is_ended_by_another),
		TEST(test_no_lock_ends_earlier_for_it),
		TEST(test_a_partition_keeps_again_what_its_policy_says),
		TEST(test_all_partitions_keep_again_what_the_devices_policy_says),
		TEST(test_a_partition_that_comes_back_promises_nothing_that_is_gone),
	};

	return cmocka_run_group_tests_name("history_epoch", tests, NULL, NULL);
}
