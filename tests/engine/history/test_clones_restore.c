/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A source can go back to what its clones and snapshots show, as long as they are there, whatever
 * else is left of its past.
 */
#include "tests/engine/fixture.h"

static void make_snapshot(struct fixture *f, uint64_t ms)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };

	f->now = ms;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone(f->txn, PARTITION, now, CLONE, false, NULL), 0);
	commit(f);
}

static struct engine_clone facts_of(struct fixture *f, uint64_t clone)
{
	struct engine_clone facts;

	begin(f, ENGINE_READ);
	assert_int_equal(engine_clone_get(f->txn, clone, &facts), 0);
	commit(f);
	return facts;
}

/* The moment that the snapshot stands on. */
static struct engine_moment moment_of_snapshot(struct fixture *f)
{
	return (struct engine_moment){ .kind = ENGINE_AT_SEQUENCE,
				       .value = facts_of(f, CLONE).sequence };
}

static int go_back(struct fixture *f, struct engine_moment moment)
{
	begin(f, ENGINE_WRITE);
	return end(f, engine_rollback(f->txn, PARTITION, moment));
}

/*
 * Overwrites pages again and again until history is given up for room, and with it the times of
 * then.
 */
static void write_until_history_goes(struct fixture *f)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	struct engine_merge_result total = { 0 };
	struct engine_history history = { 0 };
	char bytes[16 * PAGE] = { 0 };

	for (uint32_t round = 0; history.horizon_time_ms < 200 * SECOND; round++) {
		assert_true(round < 1000);
		f->now += 2 * SECOND;
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_write(f->txn, address, PAGE, bytes, sizeof(bytes)), 0);
		assert_int_equal(engine_history(f->txn, PARTITION, &history), 0);
		commit(f);
		for (int step = 0; step < 4; step++)
			engine_merge(f->engine, &total);
	}
}

static void test_a_partition_goes_back_to_its_snapshot_under_a_policy_that_keeps_nothing(
	void **state)
{
	struct fixture *f = *state;

	set_policy(f, PARTITION, 0, 0, 0);
	write_page(f, 2 * SECOND, 0, 'a');
	make_snapshot(f, 4 * SECOND);
	write_page(f, 6 * SECOND, 0, 'b');
	write_page(f, 8 * SECOND, 0, 'c');
	merge_all(f);
	assert_int_equal(go_back(f, moment_of_snapshot(f)), 0);
	check_page(f, 0, 0, 'a');
	/* Then it needs the snapshot no more. */
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(f->txn, CLONE, true), 0);
	commit(f);
	merge_all(f);
	check_page(f, 0, 0, 'a');
}

static void test_so_it_does_when_the_history_around_it_went_for_room(void **state)
{
	struct fixture *f = *state;

	write_page(f, 2 * SECOND, 0, 'a');
	make_snapshot(f, 4 * SECOND);
	write_page(f, 6 * SECOND, 0, 'b');
	write_until_history_goes(f);
	assert_int_equal(view_at(f, 5 * SECOND), 0);
	crash(f);
	assert_int_equal(go_back(f, moment_of_snapshot(f)), 0);
	check_page(f, 0, 0, 'a');
	check_page_of(f, CLONE, 0, 0, 'a');
}

static void test_it_does_not_when_the_snapshot_is_gone(void **state)
{
	struct engine_moment moment;
	struct fixture *f = *state;

	set_policy(f, 0, 0, 0, 0);
	write_page(f, 2 * SECOND, 0, 'a');
	make_snapshot(f, 4 * SECOND);
	moment = moment_of_snapshot(f);
	write_page(f, 6 * SECOND, 0, 'b');
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(f->txn, CLONE, true), 0);
	commit(f);
	merge_all(f);
	assert_int_equal(go_back(f, moment), -ENOENT);
	check_page(f, 0, 0, 'b');
}

/* The time whose contents it began with, which the table of times does not tell any more. */
static void test_a_clone_tells_its_time_as_long_as_it_is_there(void **state)
{
	struct fixture *f = *state;
	struct engine_moment of_old = { .kind = ENGINE_AT_VERSION };

	write_page(f, 2 * SECOND, 0, 'a');
	make_snapshot(f, 4 * SECOND);
	f->now = 5 * SECOND;
	of_old.value = take_snapshot(f, PARTITION, NULL);
	assert_int_equal(facts_of(f, CLONE).time_ms, 2 * SECOND);
	write_until_history_goes(f);
	crash(f);
	assert_int_equal(facts_of(f, CLONE).time_ms, 2 * SECOND);
	/* So does one that begins then with a version of old times. */
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone(f->txn, PARTITION, of_old, CLONE + 1, true, NULL), 0);
	commit(f);
	assert_int_equal(facts_of(f, CLONE + 1).time_ms, 5 * SECOND);
	/* A refresh begins with the present. */
	write_page(f, f->now + 2 * SECOND, 0, 'b');
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(f->txn, CLONE), 0);
	commit(f);
	assert_int_equal(facts_of(f, CLONE).time_ms, f->now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLASH_TEST(
			test_a_partition_goes_back_to_its_snapshot_under_a_policy_that_keeps_nothing),
		FLASH_TEST(test_so_it_does_when_the_history_around_it_went_for_room),
		FLASH_TEST(test_it_does_not_when_the_snapshot_is_gone),
		FLASH_TEST(test_a_clone_tells_its_time_as_long_as_it_is_there),
	};

	return cmocka_run_group_tests_name("clones, going back to them", tests, NULL, NULL);
}
