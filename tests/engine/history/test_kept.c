/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What is kept in memory of versions and old states, and that it never shows what is not so any
 * more.
 */
#include "tests/engine/fixture.h"

#include "engine/objects/kept.h"

static void test_a_bound_is_found_until_all_is_forgotten(void **state)
{
	struct kept kept;
	uint64_t bound = 0;

	(void)state;
	assert_int_equal(kept_init(&kept, 8), 0);
	assert_false(kept_find_bound(&kept, PARTITION, 1, &bound));
	kept_add_bound(&kept, PARTITION, 1, 77);
	assert_true(kept_find_bound(&kept, PARTITION, 1, &bound));
	assert_int_equal(bound, 77);
	assert_false(kept_find_bound(&kept, PARTITION + 1, 1, &bound));
	assert_false(kept_find_bound(&kept, PARTITION, 9, &bound));
	assert_false(kept_find_bound(&kept, PARTITION, 0, &bound));
	kept_forget(&kept);
	assert_false(kept_find_bound(&kept, PARTITION, 1, &bound));
	kept_destroy(&kept);
}

static void test_versions_of_a_partition_do_not_take_each_others_places(void **state)
{
	struct kept kept;
	uint64_t bound;

	(void)state;
	assert_int_equal(kept_init(&kept, 100), 0);
	for (uint32_t version = 1; version <= 100; version++)
		kept_add_bound(&kept, PARTITION, version, version * 10);
	for (uint32_t version = 1; version <= 100; version++) {
		assert_true(kept_find_bound(&kept, PARTITION, version, &bound));
		assert_int_equal(bound, version * 10);
	}
	kept_add_bound(&kept, PARTITION, 101, 1010);
	assert_false(kept_find_bound(&kept, PARTITION, 1, &bound));
	kept_destroy(&kept);
}

static void test_generations_that_come_round_do_not_bring_anything_back(void **state)
{
	struct kept kept;
	uint64_t bound;

	(void)state;
	assert_int_equal(kept_init(&kept, 8), 0);
	kept_add_bound(&kept, PARTITION, 1, 77);
	kept.generation = UINT32_MAX;
	kept_forget(&kept);
	assert_false(kept_find_bound(&kept, PARTITION, 1, &bound));
	kept_destroy(&kept);
}

static void test_a_state_is_of_its_partition_and_bound(void **state)
{
	struct partition partition_state = { .id = PARTITION, .index = 5 }, found;
	struct kept kept;

	(void)state;
	assert_int_equal(kept_init(&kept, 1), 0);
	kept_add_state(&kept, 77, &partition_state);
	assert_true(kept_find_state(&kept, PARTITION, 77, &found));
	assert_int_equal(found.index, 5);
	assert_false(kept_find_state(&kept, PARTITION, 78, &found));
	assert_false(kept_find_state(&kept, PARTITION + 1, 77, &found));
	kept_forget(&kept);
	assert_false(kept_find_state(&kept, PARTITION, 77, &found));
	kept_destroy(&kept);
}

/*
 * Looking at an object of then does without the partition of then; looking at the partition does
 * not.
 */
static void test_one_transaction_sees_object_and_directory_of_the_same_version(void **state)
{
	struct fixture *f = *state;
	struct engine_address then;
	uint64_t ids[4], next;
	size_t count;

	begin_with_object(f);
	write_text(f, 0, "one");
	commit(f);
	then = at_version(the_partition, take_snapshot(f, PARTITION, NULL));
	f->now += 10000;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, 2, NULL), 0);
	commit(f);
	put_text(f, object(OBJECT), "two");
	begin(f, ENGINE_READ);
	assert_data(f, at_version(object(OBJECT), then.version), "one", 3);
	assert_int_equal(
		engine_list(f->txn, then, ENGINE_LIST_USER_OBJECTS, 0, ids, 4, &count, &next), 0);
	assert_int_equal(count, 1);
	assert_int_equal(stat_of(f, then).members, 1);
	assert_int_equal(stat_of(f, the_partition).members, 3);
	assert_data(f, at_version(object(OBJECT), then.version), "one", 3);
	commit(f);
}

/* A number that was dropped, and is given again, is another moment. */
static void test_a_version_that_is_dropped_is_forgotten(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	begin_with_object(f);
	write_text(f, 0, "one");
	commit(f);
	version = take_snapshot(f, PARTITION, NULL);
	check_text(f, at_version(object(OBJECT), version), "one");
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_version_drop(f->txn, PARTITION, version), 0);
	commit(f);
	check_absent(f, at_version(object(OBJECT), version));
}

/* An abort leaves what a version that it made was. */
static void test_a_version_that_an_abort_takes_back_is_forgotten(void **state)
{
	struct fixture *f = *state;
	struct engine_stat stat;
	uint32_t aborted, version;

	begin_with_object(f);
	write_text(f, 0, "one");
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, &aborted), 0);
	assert_int_equal(engine_stat(f->txn, at_version(object(OBJECT), aborted), &stat), 0);
	abort_all(f);
	check_absent(f, at_version(object(OBJECT), aborted));
	f->now += 10000;
	put_text(f, object(OBJECT), "two");
	version = take_snapshot(f, PARTITION, NULL);
	assert_int_equal(version, aborted);
	check_text(f, at_version(object(OBJECT), version), "two");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_bound_is_found_until_all_is_forgotten),
		cmocka_unit_test(test_versions_of_a_partition_do_not_take_each_others_places),
		cmocka_unit_test(test_generations_that_come_round_do_not_bring_anything_back),
		cmocka_unit_test(test_a_state_is_of_its_partition_and_bound),
		TEST(test_one_transaction_sees_object_and_directory_of_the_same_version),
		TEST(test_a_version_that_is_dropped_is_forgotten),
		TEST(test_a_version_that_an_abort_takes_back_is_forgotten),
	};

	return cmocka_run_group_tests_name("kept", tests, NULL, NULL);
}
