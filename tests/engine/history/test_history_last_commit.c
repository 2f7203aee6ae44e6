/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The last commit before a restart counts as of the time at which its slot began, so moments behind
 * it mean what they meant before.
 */
#include "engine/history/times.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

static uint64_t bound_at(struct fixture *f, uint64_t ms)
{
	uint64_t bound = 0;

	begin(f, ENGINE_READ);
	assert_int_equal(engine_moment_resolve(f->txn, PARTITION, at_time(ms), &bound), 0);
	commit(f);
	return bound;
}

static int time_of(struct fixture *f, uint64_t sequence, uint64_t *ms)
{
	struct partition *root;
	int result;

	begin(f, ENGINE_READ);
	assert_int_equal(partition_get(f->engine, 0, &root), 0);
	result = times_of(f->engine, root->history, sequence, ms);
	partition_release(f->engine, root);
	commit(f);
	return result;
}

/* Nor is one told when the table can't be read, but that is an error. */
static void test_no_time_is_told_of_numbers_before_the_first_that_has_one(void **state)
{
	struct fixture *f = *state;
	const struct record_key table = key_of_table(RECORD_ID_TIMES, 0);
	uint64_t ms = 1, bound;

	create(f, PARTITION);
	for (uint32_t second = 50; second < 60; second++)
		put_text_at(f, second, "text");
	bound = bound_at(f, 55 * SECOND);
	assert_int_equal(time_of(f, bound, &ms), 0);
	assert_int_equal(ms, 55 * SECOND);
	assert_int_equal(time_of(f, 0, &ms), 0);
	assert_int_equal(ms, 0);
	memory_store_corrupt(f->memory, &table);
	assert_int_equal(time_of(f, bound, &ms), -EBADMSG);
	memory_store_corrupt(f->memory, NULL);
}

/* A write at 60.0 s, two more in the same slot, and then nothing. */
static void write_and_rest(struct fixture *f)
{
	create(f, PARTITION);
	f->now = 50 * SECOND;
	put_text(f, object(OBJECT), "before");
	f->now = 60 * SECOND;
	put_text(f, object(OBJECT), "one");
	f->now += 100;
	put_text(f, object(OBJECT), "two");
	f->now += 200;
	put_text(f, object(OBJECT), "three");
	f->now += 1;
}

static void test_a_moment_behind_the_last_commit_is_the_same_after_a_crash(void **state)
{
	struct fixture *f = *state;
	uint64_t bound;

	write_and_rest(f);
	bound = bound_at(f, f->now);
	assert_true(bound_at(f, f->now - 2) < bound);
	f->now = 70 * SECOND;
	crash(f);
	assert_int_equal(bound_at(f, 60 * SECOND + 301), bound);
	/* Inside the slot too, of which no other time is on record. */
	assert_int_equal(bound_at(f, 60 * SECOND), bound);
	assert_true(bound_at(f, 60 * SECOND - 1) < bound);
	/* Also when it is noted for good. */
	put_text(f, object(OBJECT), "four");
	crash(f);
	assert_int_equal(bound_at(f, 60 * SECOND + 301), bound);
	check_text(f, at_version(object(OBJECT), view_of(f, PARTITION, at_time(60 * SECOND + 301))),
		   "three");
}

/* Every moment of the last 10 s is kept: just behind the last commit, too. */
static void test_what_is_kept_for_certain_is_no_shorter_after_a_crash(void **state)
{
	const struct engine_retention keep = { .kind = ENGINE_RETAIN_NONE,
					       .keep_all_ms = 10 * SECOND };
	struct fixture *f = *state;
	struct engine_history before, after;

	create(f, PARTITION);
	f->now = 40 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, PARTITION, &keep, false), 0);
	commit(f);
	f->now = 60 * SECOND;
	put_text(f, object(OBJECT), "one");
	f->now = 60 * SECOND + 301;
	begin(f, ENGINE_READ);
	assert_int_equal(engine_history(f->txn, PARTITION, &before), 0);
	commit(f);
	crash(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_history(f->txn, PARTITION, &after), 0);
	commit(f);
	assert_int_equal(after.horizon_sequence, before.horizon_sequence);
	check_text(f, at_version(object(OBJECT), view_of(f, PARTITION, at_time(60 * SECOND + 2))),
		   "one");
}

/*
 * A policy that kept nothing ends: what it says is kept from then on is the moment of the last
 * commit.
 */
static void test_the_floor_of_a_policy_that_ended_is_no_later_after_a_crash(void **state)
{
	const struct engine_retention none = { .kind = ENGINE_RETAIN_NONE };
	const struct engine_retention all = { .kind = ENGINE_RETAIN_ALL };
	struct fixture *f = *state;

	create(f, PARTITION);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, PARTITION, &none, false), 0);
	commit(f);
	f->now = 60 * SECOND;
	put_text(f, object(OBJECT), "one");
	f->now = 62 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, PARTITION, &all, false), 0);
	commit(f);
	f->now = 70 * SECOND;
	crash(f);
	check_text(f, at_version(object(OBJECT), view_of(f, PARTITION, at_time(62 * SECOND + 1))),
		   "one");
}

static void test_commands_that_change_nothing_leave_the_last_commit_where_it_was(void **state)
{
	struct fixture *f = *state;
	uint64_t bound;

	write_and_rest(f);
	bound = bound_at(f, f->now);
	f->now = 65 * SECOND;
	begin(f, ENGINE_WRITE);
	commit(f);
	f->now = 70 * SECOND;
	crash(f);
	assert_int_equal(bound_at(f, 60 * SECOND + 301), bound);
}

/* As on a device that was so short of room that all history went, in the slot that goes on. */
static void test_the_present_has_a_number_when_all_before_it_is_given_up(void **state)
{
	struct fixture *f = *state;
	struct partition *device;
	uint64_t bound = 0;

	write_and_rest(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(partition_get(f->engine, 0, &device), 0);
	device->history->device.reclaimed = slot_end(f->txn->sequence);
	partition_mark_history(f->txn, device);
	partition_release(f->engine, device);
	commit(f);
	begin(f, ENGINE_READ);
	assert_int_equal(
		engine_moment_resolve(f->txn, PARTITION, (struct engine_moment){ 0 }, &bound), 0);
	assert_true(bound > f->engine->committed);
	commit(f);
	check_text(f, at_version(object(OBJECT), view_of(f, PARTITION, at_sequence(bound))),
		   "three");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_time_is_told_of_numbers_before_the_first_that_has_one),
		TEST(test_a_moment_behind_the_last_commit_is_the_same_after_a_crash),
		TEST(test_what_is_kept_for_certain_is_no_shorter_after_a_crash),
		TEST(test_the_floor_of_a_policy_that_ended_is_no_later_after_a_crash),
		TEST(test_commands_that_change_nothing_leave_the_last_commit_where_it_was),
		TEST(test_the_present_has_a_number_when_all_before_it_is_given_up),
	};

	return cmocka_run_group_tests_name("history_last_commit", tests, NULL, NULL);
}
