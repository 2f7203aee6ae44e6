/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A source can go back to what its clones and snapshots show, as long as they are there, whatever
 * else is left of its past.
 */
#include "tests/engine/device_fixture.h"

static void make_snapshot(struct device *device, uint64_t ms)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };

	device->now = ms;
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_clone(device->txn, PARTITION, now, CLONE, false, NULL), 0);
	commit(device);
}

static struct engine_clone facts_of(struct device *device, uint64_t clone)
{
	struct engine_clone facts;

	begin(device, ENGINE_READ);
	assert_int_equal(engine_clone_get(device->txn, clone, &facts), 0);
	commit(device);
	return facts;
}

/* The moment that the snapshot stands on. */
static struct engine_moment moment_of_snapshot(struct device *device)
{
	return (struct engine_moment){ .kind = ENGINE_AT_SEQUENCE,
				       .value = facts_of(device, CLONE).sequence };
}

static int go_back(struct device *device, struct engine_moment moment)
{
	begin(device, ENGINE_WRITE);
	return end(device, engine_rollback(device->txn, PARTITION, moment));
}

/*
 * Overwrites pages again and again until history is given up for room, and with it the times of
 * then.
 */
static void write_until_history_goes(struct device *device)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	struct engine_merge_result total = { 0 };
	struct engine_history history = { 0 };
	char bytes[16 * PAGE] = { 0 };

	for (uint32_t round = 0; history.horizon_time_ms < 200 * SECOND; round++) {
		assert_true(round < 1000);
		device->now += 2 * SECOND;
		begin(device, ENGINE_WRITE);
		assert_int_equal(engine_write(device->txn, address, PAGE, bytes, sizeof(bytes)), 0);
		assert_int_equal(engine_history(device->txn, PARTITION, &history), 0);
		commit(device);
		for (int step = 0; step < 4; step++)
			engine_merge(device->engine, &total);
	}
}

static void test_a_partition_goes_back_to_its_snapshot_under_a_policy_that_keeps_nothing(
	void **state)
{
	struct device *device = *state;

	set_policy(device, PARTITION, 0, 0, 0);
	write_page(device, 2 * SECOND, 0, 'a');
	make_snapshot(device, 4 * SECOND);
	write_page(device, 6 * SECOND, 0, 'b');
	write_page(device, 8 * SECOND, 0, 'c');
	merge_all(device);
	assert_int_equal(go_back(device, moment_of_snapshot(device)), 0);
	check_page(device, 0, 0, 'a');
	/* Then it needs the snapshot no more. */
	begin(device, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(device->txn, CLONE, true), 0);
	commit(device);
	merge_all(device);
	check_page(device, 0, 0, 'a');
}

static void test_so_it_does_when_the_history_around_it_went_for_room(void **state)
{
	struct device *device = *state;

	write_page(device, 2 * SECOND, 0, 'a');
	make_snapshot(device, 4 * SECOND);
	write_page(device, 6 * SECOND, 0, 'b');
	write_until_history_goes(device);
	assert_int_equal(view_at(device, 5 * SECOND), 0);
	crash(device);
	assert_int_equal(go_back(device, moment_of_snapshot(device)), 0);
	check_page(device, 0, 0, 'a');
	check_page_of(device, CLONE, 0, 0, 'a');
}

static void test_it_does_not_when_the_snapshot_is_gone(void **state)
{
	struct engine_moment moment;
	struct device *device = *state;

	set_policy(device, 0, 0, 0, 0);
	write_page(device, 2 * SECOND, 0, 'a');
	make_snapshot(device, 4 * SECOND);
	moment = moment_of_snapshot(device);
	write_page(device, 6 * SECOND, 0, 'b');
	begin(device, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(device->txn, CLONE, true), 0);
	commit(device);
	merge_all(device);
	assert_int_equal(go_back(device, moment), -ENOENT);
	check_page(device, 0, 0, 'b');
}

/* The time whose contents it began with, which the table of times does not tell any more. */
static void test_a_clone_tells_its_time_as_long_as_it_is_there(void **state)
{
	struct device *device = *state;
	struct engine_moment of_old = { .kind = ENGINE_AT_VERSION };

	write_page(device, 2 * SECOND, 0, 'a');
	make_snapshot(device, 4 * SECOND);
	device->now = 5 * SECOND;
	of_old.value = take_snapshot(device, PARTITION);
	assert_int_equal(facts_of(device, CLONE).time_ms, 2 * SECOND);
	write_until_history_goes(device);
	crash(device);
	assert_int_equal(facts_of(device, CLONE).time_ms, 2 * SECOND);
	/* So does one that begins then with a version of old times. */
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_clone(device->txn, PARTITION, of_old, CLONE + 1, true, NULL), 0);
	commit(device);
	assert_int_equal(facts_of(device, CLONE + 1).time_ms, 5 * SECOND);
	/* A refresh begins with the present. */
	write_page(device, device->now + 2 * SECOND, 0, 'b');
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(device->txn, CLONE), 0);
	commit(device);
	assert_int_equal(facts_of(device, CLONE).time_ms, device->now);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_partition_goes_back_to_its_snapshot_under_a_policy_that_keeps_nothing),
		TEST(test_so_it_does_when_the_history_around_it_went_for_room),
		TEST(test_it_does_not_when_the_snapshot_is_gone),
		TEST(test_a_clone_tells_its_time_as_long_as_it_is_there),
	};

	return cmocka_run_group_tests_name("clones, going back to them", tests, NULL, NULL);
}
