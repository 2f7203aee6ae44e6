/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Numbers of versions: given in turn, those of dropped versions again, never one that a kept
 * version has.
 */
#include "engine/history/past.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

/*
 * Lets the numbers of a partition (0: of the device) go on with this one, as if those before had
 * been given.
 */
static void go_on_with(struct fixture *f, uint64_t id, uint32_t number)
{
	struct partition *found;

	begin(f, ENGINE_WRITE);
	assert_int_equal(partition_get(f->engine, id, &found), 0);
	found->history->next_version = number;
	partition_mark_history(f->txn, found);
	partition_release(f->engine, found);
	commit(f);
}

/* The numbers of a partition's versions from the oldest to the newest. */
static void check_order(struct fixture *f, uint64_t id, const uint32_t *wanted, size_t count)
{
	struct engine_version version = { .position = 0 };
	uint64_t from = 0, sequence = 0;

	begin(f, ENGINE_READ);
	for (size_t index = 0; index < count; index++) {
		assert_int_equal(engine_version_next(f->txn, id, from, &version), 0);
		assert_int_equal(version.version, wanted[index]);
		assert_true(version.sequence > sequence);
		sequence = version.sequence;
		from = version.position + 1;
	}
	assert_int_equal(engine_version_next(f->txn, id, from, &version), -ENOENT);
	commit(f);
}

static void test_numbers_run_out_when_kept_versions_have_all_of_them(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	create(f, PARTITION);
	put_text(f, object(OBJECT), "x");
	begin(f, ENGINE_WRITE);
	for (uint32_t wanted = 1; wanted <= ENGINE_PARTITION_VERSION_LAST; wanted++) {
		assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, &version), 0);
		assert_int_equal(version, wanted);
	}
	assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, &version), -EFBIG);
	commit(f);
	check_text(f, at_version(object(OBJECT), ENGINE_PARTITION_VERSION_LAST), "x");
	/* Those of dropped versions are given again, and no others. */
	drop_version(f, PARTITION, 30000);
	drop_version(f, PARTITION, 5);
	crash(f);
	put_text(f, object(OBJECT), "y");
	assert_int_equal(take_snapshot(f, PARTITION, "again"), 5);
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 30000);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, &version), -EFBIG);
	abort_all(f);
	crash(f);
	check_text(f, at_version(object(OBJECT), 5), "y");
	check_text(f, at_version(object(OBJECT), 4), "x");
	check_text(f, at_version(object(OBJECT), 30001), "x");
	/* The device's are others. */
	assert_int_equal(take_snapshot(f, 0, NULL), ENGINE_DEVICE_VERSION_FIRST);
}

static void test_a_number_is_given_again_as_late_as_possible(void **state)
{
	struct fixture *f = *state;

	create(f, PARTITION);
	for (uint32_t number = 1; number <= 4; number++)
		assert_int_equal(take_snapshot(f, PARTITION, NULL), number);
	drop_version(f, PARTITION, 2);
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 5);
	go_on_with(f, PARTITION, ENGINE_PARTITION_VERSION_LAST);
	assert_int_equal(take_snapshot(f, PARTITION, NULL), ENGINE_PARTITION_VERSION_LAST);
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 2);
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 6);
	check_order(f, PARTITION, (uint32_t[]){ 1, 3, 4, 5, ENGINE_PARTITION_VERSION_LAST, 2, 6 },
		    7);
}

static void test_numbers_of_the_device_begin_again_too(void **state)
{
	struct fixture *f = *state;

	create(f, PARTITION);
	assert_int_equal(take_snapshot(f, 0, NULL), ENGINE_DEVICE_VERSION_FIRST);
	go_on_with(f, 0, ENGINE_DEVICE_VERSION_LAST);
	put_text(f, object(OBJECT), "last");
	assert_int_equal(take_snapshot(f, 0, NULL), ENGINE_DEVICE_VERSION_LAST);
	put_text(f, object(OBJECT), "next");
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 1);
	assert_int_equal(take_snapshot(f, 0, NULL), ENGINE_DEVICE_VERSION_FIRST + 1);
	check_text(f, at_version(object(OBJECT), ENGINE_DEVICE_VERSION_LAST), "last");
	check_text(f, at_version(object(OBJECT), ENGINE_DEVICE_VERSION_FIRST + 1), "next");
	check_order(f, PARTITION,
		    (uint32_t[]){ ENGINE_DEVICE_VERSION_FIRST, ENGINE_DEVICE_VERSION_LAST, 1,
				  ENGINE_DEVICE_VERSION_FIRST + 1 },
		    4);
	check_order(f, 0,
		    (uint32_t[]){ ENGINE_DEVICE_VERSION_FIRST, ENGINE_DEVICE_VERSION_LAST,
				  ENGINE_DEVICE_VERSION_FIRST + 1 },
		    3);
}

/* What older programs noted when all had been given. */
static void test_a_partition_that_had_given_all_its_numbers_goes_on(void **state)
{
	struct fixture *f = *state;

	create(f, PARTITION);
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 1);
	go_on_with(f, PARTITION, ENGINE_PARTITION_VERSION_LAST + 1);
	go_on_with(f, 0, ENGINE_DEVICE_VERSION_LAST + 1);
	crash(f);
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 2);
	assert_int_equal(take_snapshot(f, 0, NULL), ENGINE_DEVICE_VERSION_FIRST);
}

static void test_a_number_that_is_given_again_has_the_name_of_its_new_version(void **state)
{
	struct fixture *f = *state;
	uint32_t number;

	create(f, PARTITION);
	assert_int_equal(take_snapshot(f, PARTITION, "old"), 1);
	assert_int_equal(take_snapshot(f, PARTITION, "kept"), 2);
	drop_version(f, PARTITION, 1);
	go_on_with(f, PARTITION, 1);
	assert_int_equal(take_snapshot(f, PARTITION, "new"), 1);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_version_find(f->txn, PARTITION, "new", &number), 0);
	assert_int_equal(number, 1);
	assert_int_equal(engine_version_find(f->txn, PARTITION, "old", &number), -ENOENT);
	commit(f);
}

/* Going back, differences and views go by the age of a version. */
static void test_an_old_version_with_a_high_number_is_older_than_a_new_one_with_a_low(void **state)
{
	struct engine_diff_cursor cursor = { 0 };
	struct engine_difference difference;
	struct fixture *f = *state;
	int result;

	create(f, PARTITION);
	put_text(f, object(OBJECT), "one");
	go_on_with(f, PARTITION, 500);
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 500);
	put_text(f, object(OBJECT), "three");
	go_on_with(f, PARTITION, 3);
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 3);
	begin(f, ENGINE_READ);
	do
		result = engine_diff_next(f->txn, PARTITION, at_number(500), at_number(3), &cursor,
					  &difference);
	while (result == -EAGAIN);
	assert_int_equal(result, 0);
	assert_int_equal(difference.object, OBJECT);
	commit(f);
	roll_back(f, PARTITION, at_number(500));
	check_text(f, object(OBJECT), "one");
	roll_back(f, PARTITION, at_number(3));
	check_text(f, object(OBJECT), "three");
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 4);
}

static void test_a_partition_that_came_back_goes_on_with_its_numbers(void **state)
{
	static const char *const names[] = { "one", "two", "three" };
	struct fixture *f = *state;
	uint32_t of_device;

	create(f, PARTITION);
	put_text(f, object(OBJECT), "old");
	for (uint32_t number = 1; number <= 3; number++)
		assert_int_equal(take_snapshot(f, PARTITION, names[number - 1]), number);
	of_device = take_snapshot(f, 0, NULL);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(f->txn, PARTITION, true), 0);
	commit(f);
	roll_back(f, 0, at_number(of_device));
	check_text(f, object(OBJECT), "old");
	for (uint32_t number = 1; number <= 3; number++)
		check_text(f, at_version(object(OBJECT), number), "old");
	put_text(f, object(OBJECT), "new");
	assert_int_equal(take_snapshot(f, PARTITION, "four"), 4);
	check_text(f, at_version(object(OBJECT), 4), "new");
	check_order(f, PARTITION, (uint32_t[]){ 1, 2, 3, of_device, 4 }, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_numbers_run_out_when_kept_versions_have_all_of_them),
		TEST(test_a_number_is_given_again_as_late_as_possible),
		TEST(test_numbers_of_the_device_begin_again_too),
		TEST(test_a_partition_that_had_given_all_its_numbers_goes_on),
		TEST(test_a_number_that_is_given_again_has_the_name_of_its_new_version),
		TEST(test_an_old_version_with_a_high_number_is_older_than_a_new_one_with_a_low),
		TEST(test_a_partition_that_came_back_goes_on_with_its_numbers),
	};

	return cmocka_run_group_tests_name("history_numbers", tests, NULL, NULL);
}
