/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Versions, moments, and what is kept of them. Runs for each index. */
#include "tests/engine/fixture.h"

#include "engine/history/times.h"
#include "engine/history/versions.h"

/* ---- versions ---- */

static void test_versions_have_names_that_are_found_and_taken_once(void **state)
{
	struct fixture *f = *state;
	struct engine_version version;
	uint32_t number;

	make_text_object(f);
	assert_int_equal(take_snapshot(f, PARTITION, "before"), 1);
	assert_int_equal(take_snapshot(f, 0, "all"), ENGINE_DEVICE_VERSION_FIRST);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(f->txn, PARTITION, "before", &number), -EEXIST);
	assert_int_equal(engine_snapshot(f->txn, PARTITION, "", &number), -EINVAL);
	assert_int_equal(engine_version_find(f->txn, PARTITION, "before", &number), 0);
	assert_int_equal(number, 1);
	assert_int_equal(engine_version_find(f->txn, PARTITION, "all", &number), 0);
	assert_int_equal(number, ENGINE_DEVICE_VERSION_FIRST);
	assert_int_equal(engine_version_find(f->txn, PARTITION, "after", &number), -ENOENT);
	assert_int_equal(engine_version_next(f->txn, PARTITION, 0, &version), 0);
	assert_int_equal(version.version, 1);
	assert_string_equal(version.name, "before");
	assert_int_equal(version.objects, 1);
	assert_int_equal(version.used_bytes, PAGE);
	assert_int_equal(version.time_ms, f->now);
	assert_int_equal(engine_version_next(f->txn, PARTITION, version.position + 1, &version), 0);
	assert_int_equal(version.version, ENGINE_DEVICE_VERSION_FIRST);
	assert_int_equal(engine_version_next(f->txn, PARTITION, version.position + 1, &version),
			 -ENOENT);
	abort_all(f);
}

static void test_a_group_has_versions_of_one_instant_or_none(void **state)
{
	static const uint64_t group[] = { PARTITION, CLONE }, twice[] = { PARTITION, PARTITION },
			      absent[] = { PARTITION, CLONE + 77 }, device[] = { PARTITION, 0 };
	static const uint64_t *const wrong[] = { twice, device };
	struct fixture *f = *state;
	struct engine_version one, other;
	uint32_t numbers[2], number;

	make_text_object(f);
	make_clone(f, PARTITION, CLONE);
	take_snapshot(f, PARTITION, "alone");
	begin(f, ENGINE_WRITE);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(engine_snapshot_group(f->txn, wrong[i], 2, NULL, numbers),
				 -EINVAL);
	assert_int_equal(engine_snapshot_group(f->txn, absent, 2, "group", numbers), -ENOENT);
	abort_all(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_version_find(f->txn, PARTITION, "group", &number), -ENOENT);
	assert_int_equal(engine_snapshot_group(f->txn, group, 2, NULL, numbers), -EROFS);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot_group(f->txn, group, 2, "group", numbers), 0);
	commit(f);
	assert_int_equal(numbers[0], 2);
	assert_int_equal(numbers[1], 1);
	begin(f, ENGINE_WRITE);
	write_text(f, 0, "two");
	commit(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_version_find(f->txn, PARTITION, "group", &number), 0);
	assert_int_equal(number, 2);
	assert_int_equal(engine_version_next(f->txn, CLONE, 0, &other), 0);
	assert_string_equal(other.name, "group");
	assert_int_equal(engine_version_next(f->txn, PARTITION, 0, &one), 0);
	assert_int_equal(engine_version_next(f->txn, PARTITION, one.position + 1, &one), 0);
	assert_int_equal(one.sequence, other.sequence);
	assert_int_equal(one.time_ms, other.time_ms);
	commit(f);
	check_text(f, at_version(object(OBJECT), 2), "one");
	/* A name that one of them has. */
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot_group(f->txn, group, 2, "alone", numbers), -EEXIST);
	abort_all(f);
}

static void test_a_dropped_version_is_gone_and_its_name_is_free(void **state)
{
	struct fixture *f = *state;
	struct engine_version version;

	make_text_object(f);
	for (uint32_t number = 1; number <= 5; number++)
		assert_int_equal(take_snapshot(f, PARTITION, number == 3 ? "three" : NULL), number);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_version_drop(f->txn, PARTITION, 3), 0);
	assert_int_equal(engine_version_drop(f->txn, PARTITION, 3), -ENOENT);
	assert_int_equal(engine_version_drop(f->txn, PARTITION, 2), 0);
	commit(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_version_next(f->txn, PARTITION, 0, &version), 0);
	assert_int_equal(version.version, 1);
	assert_int_equal(engine_version_next(f->txn, PARTITION, version.position + 1, &version), 0);
	assert_int_equal(version.version, 4);
	commit(f);
	check_absent(f, at_version(object(OBJECT), 3));
	check_text(f, at_version(object(OBJECT), 4), "one");
	assert_int_equal(take_snapshot(f, PARTITION, "three"), 6);
}

static void test_a_version_of_the_device_shows_removed_partitions(void **state)
{
	struct fixture *f = *state;
	uint64_t ids[2], next;
	size_t count;

	make_text_object(f);
	take_snapshot(f, 0, NULL);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(f->txn, PARTITION, true), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, PARTITION + 1, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION + 1, ENGINE_USER_OBJECT, OBJECT, 1, NULL),
			 0);
	commit(f);
	check_text(f, at_version(object(OBJECT), ENGINE_DEVICE_VERSION_FIRST), "one");
	begin(f, ENGINE_READ);
	assert_int_equal(engine_list(f->txn, at_version(the_root, ENGINE_DEVICE_VERSION_FIRST),
				     ENGINE_LIST_PARTITIONS, 0, ids, 2, &count, &next),
			 0);
	assert_int_equal(count, 1);
	assert_int_equal(ids[0], PARTITION);
	commit(f);
	roll_back(f, 0, at_number(ENGINE_DEVICE_VERSION_FIRST));
	check_text(f, object(OBJECT), "one");
	check_absent(f, (struct engine_address){ .partition = PARTITION + 1 });
	crash(f);
	check_text(f, object(OBJECT), "one");
}

/* ---- moments ---- */

static void test_a_time_shows_what_was_there_then(void **state)
{
	static const char *const texts[] = { "at 10 s", "at 20 s", "at 30 s, longer" };
	struct fixture *f = *state;

	make_text_object(f);
	for (uint64_t n = 0; n < 3; n++) {
		f->now = (10 + 10 * n) * SECOND;
		put_text(f, object(OBJECT), texts[n]);
	}
	f->now = 60 * SECOND;
	check_text(f, at_version(object(OBJECT), view_of(f, PARTITION, at_time(30 * SECOND))),
		   texts[2]);
	/* After a crash it is not known any more when in its second the last commit was. */
	for (int reopened = 0; reopened < 2; reopened++) {
		for (uint64_t n = 0; n < 3; n++) {
			uint64_t ms = (10 + 10 * n) * SECOND;

			check_text(f,
				   at_version(object(OBJECT),
					      view_of(f, PARTITION, at_time(ms + SECOND))),
				   texts[n]);
			check_text(f,
				   at_version(object(OBJECT),
					      view_of(f, PARTITION, at_time(ms + 9999))),
				   texts[n]);
		}
		crash(f);
	}
	roll_back(f, PARTITION, at_time(25 * SECOND));
	check_text(f, object(OBJECT), texts[1]);
	/* A rollback can be rolled back. */
	roll_back(f, PARTITION, at_time(45 * SECOND));
	check_text(f, object(OBJECT), texts[2]);
}

static void test_a_time_inside_a_slot_means_the_end_of_the_one_before(void **state)
{
	struct fixture *f = *state;

	make_text_object(f);
	f->now = 10 * SECOND;
	put_text(f, object(OBJECT), "slot");
	f->now += 300;
	put_text(f, object(OBJECT), "slot goes on");
	f->now = 20 * SECOND;
	put_text(f, object(OBJECT), "later");
	check_text(f, at_version(object(OBJECT), view_of(f, PARTITION, at_time(10 * SECOND + 299))),
		   "one");
	check_text(f, at_version(object(OBJECT), view_of(f, PARTITION, at_time(10 * SECOND + 300))),
		   "slot goes on");
}

/* Makes the object's partition, and puts "one" and "two". Returns the number of "one". */
static uint64_t make_in_a_new_slot(struct fixture *f, struct engine_address address)
{
	uint64_t first;

	f->now += 10 * SECOND;
	create(f, address.partition);
	put_text(f, address, "one");
	first = f->engine->committed;
	put_text(f, address, "two");
	return first;
}

/* Of the states of a partition in one slot the last one alone is stored. */
static void test_numbers_inside_the_slot_in_which_a_partition_was_made_can_be_read(void **state)
{
	const struct engine_address address = { .partition = CLONE, .object = OBJECT };
	const struct engine_address partition = { .partition = CLONE };
	struct fixture *f = *state;
	uint64_t first = make_in_a_new_slot(f, address);
	uint32_t version;

	for (uint64_t more = OBJECT + 1; more < OBJECT + 50; more++) {
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_create(f->txn, CLONE, ENGINE_USER_OBJECT, more, 1, NULL),
				 0);
		commit(f);
	}
	f->now += 10 * SECOND;
	put_text(f, address, "three");
	version = view_of(f, CLONE, at_sequence(first));
	check_text(f, at_version(address, version), "one");
	begin(f, ENGINE_READ);
	assert_int_equal(stat_of(f, at_version(partition, version)).members, 50);
	commit(f);
}

/* What is told of it while the slot goes on is not what a later moment shows. */
static void test_a_number_inside_the_slot_that_goes_on_ends_it(void **state)
{
	const struct engine_address address = { .partition = CLONE, .object = OBJECT };
	const struct engine_address partition = { .partition = CLONE };
	struct fixture *f = *state;
	uint64_t first = make_in_a_new_slot(f, address);
	uint32_t version, last;

	version = view_of(f, CLONE, at_sequence(first));
	check_text(f, at_version(address, version), "one");
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_create(f->txn, CLONE, ENGINE_USER_OBJECT, OBJECT + 1, 1, NULL), 0);
	commit(f);
	last = take_snapshot(f, CLONE, NULL);
	begin(f, ENGINE_READ);
	assert_int_equal(stat_of(f, at_version(partition, version)).members, 1);
	assert_int_equal(stat_of(f, at_version(partition, last)).members, 2);
	commit(f);
	put_text(f, address, "three");
	merge_what_can_be(f);
	check_text(f, at_version(address, version), "one");
}

static void test_a_moment_before_a_partition_is_none(void **state)
{
	struct fixture *f = *state;
	uint64_t sequence;

	f->now = 10 * SECOND;
	make_text_object(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_moment_resolve(f->txn, PARTITION, at_time(5 * SECOND), &sequence),
			 -ENOENT);
	assert_int_equal(engine_moment_resolve(f->txn, PARTITION, at_sequence(1), &sequence),
			 -ENOENT);
	sequence = 77;
	assert_int_equal(engine_moment_resolve(f->txn, PARTITION, at_number(1), &sequence),
			 -ENOENT);
	/* What is not known is not told. */
	assert_int_equal(sequence, 77);
	commit(f);
}

/* Nobody who reads at a number is ever shown another moment. */
static void test_a_view_that_is_in_use_keeps_its_number(void **state)
{
	const struct engine_moment present = { .kind = ENGINE_NOW };
	struct fixture *f = *state;
	uint32_t first, again, none;

	make_text_object(f);
	first = view_of(f, PARTITION, at_sequence(UINT32_MAX));
	f->now += 2 * SECOND;
	put_text(f, object(OBJECT), "two");
	check_text(f, at_version(object(OBJECT), first), "one");
	again = view_of(f, PARTITION, present);
	assert_int_not_equal(again, first);
	check_text(f, at_version(object(OBJECT), again), "two");
	assert_int_equal(view_of(f, PARTITION, present), again);
	for (uint32_t n = 0; n < ENGINE_VIEWS - 2; n++) {
		f->now += 100;
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, NULL), 0);
		commit(f);
		view_of(f, PARTITION, present);
	}
	f->now += 2 * SECOND;
	put_text(f, object(OBJECT), "three");
	begin(f, ENGINE_READ);
	assert_int_equal(engine_view_open(f->txn, PARTITION, present, &none), -EFBIG);
	commit(f);
	check_text(f, at_version(object(OBJECT), first), "one");
	check_text(f, at_version(object(OBJECT), again), "two");
	/* One is read at, the other is not. */
	f->now += ENGINE_VIEW_UNUSED_MS - SECOND;
	check_text(f, at_version(object(OBJECT), first), "one");
	f->now += 2 * SECOND;
	for (uint32_t n = 0; n < ENGINE_VIEWS - 1; n++) {
		f->now += 100;
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, NULL), 0);
		commit(f);
		assert_int_not_equal(view_of(f, PARTITION, present), first);
	}
	check_text(f, at_version(object(OBJECT), first), "one");
	check_text(f, at_version(object(OBJECT), again), "three");
}

static void test_a_view_ends_with_the_engine(void **state)
{
	struct fixture *f = *state;
	uint32_t first;

	make_text_object(f);
	first = view_of(f, PARTITION, at_sequence(UINT32_MAX));
	crash(f);
	f->now += SECOND;
	check_absent(f, at_version(object(OBJECT), first));
	crash(f);
	assert_int_not_equal(view_of(f, PARTITION, at_sequence(UINT32_MAX)), first);
	check_absent(f, at_version(object(OBJECT), first));
}

/* ---- retention ---- */

static int set_retention(struct fixture *f, uint64_t id, struct engine_retention retention,
			 bool administrator)
{
	int result;

	begin(f, ENGINE_WRITE);
	result = engine_retention_set(f->txn, id, &retention, administrator);
	if (result)
		abort_all(f);
	else
		commit(f);
	return result;
}

static void test_a_locked_retention_is_shortened_by_the_administrator_only(void **state)
{
	const struct engine_retention locked = { .kind = ENGINE_RETAIN_ALL,
						 .locked_until_ms = 100 * SECOND };
	struct engine_retention weaker = { .kind = ENGINE_RETAIN_SNAPSHOTS,
					   .locked_until_ms = 100 * SECOND };
	struct fixture *f = *state;

	make_text_object(f);
	take_snapshot(f, PARTITION, NULL);
	take_snapshot(f, 0, NULL);
	assert_int_equal(set_retention(f, PARTITION, locked, false), 0);
	assert_int_equal(set_retention(f, PARTITION, weaker, false), -EPERM);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_version_drop(f->txn, PARTITION, 1), -EPERM);
	assert_int_equal(engine_version_drop(f->txn, 0, ENGINE_DEVICE_VERSION_FIRST), -EPERM);
	assert_int_equal(engine_partition_remove(f->txn, PARTITION, true), -EPERM);
	abort_all(f);
	assert_int_equal(engine_reformat(f->engine), -EPERM);
	crash(f);
	weaker.locked_until_ms = 200 * SECOND;
	assert_int_equal(set_retention(f, PARTITION, weaker, false), -EPERM);
	weaker.locked_until_ms = 0;
	assert_int_equal(set_retention(f, PARTITION, weaker, true), 0);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_version_drop(f->txn, PARTITION, 1), 0);
	commit(f);
	assert_int_equal(engine_reformat(f->engine), 0);
}

static void test_a_lock_ends_by_itself(void **state)
{
	const struct engine_retention locked = { .kind = ENGINE_RETAIN_ALL,
						 .locked_until_ms = 100 * SECOND };
	struct fixture *f = *state;

	make_text_object(f);
	assert_int_equal(set_retention(f, PARTITION, locked, false), 0);
	f->now = 100 * SECOND;
	assert_int_equal(set_retention(f, PARTITION, (struct engine_retention){ 0 }, false), 0);
	assert_int_equal(engine_reformat(f->engine), 0);
}

static void test_retention_none_keeps_versions_only(void **state)
{
	struct fixture *f = *state;
	struct engine_history history;
	uint64_t sequence;

	make_text_object(f);
	take_snapshot(f, PARTITION, NULL);
	assert_int_equal(set_retention(f, PARTITION,
				       (struct engine_retention){ .kind = ENGINE_RETAIN_NONE },
				       false),
			 0);
	f->now = 10 * SECOND;
	put_text(f, object(OBJECT), "two");
	f->now = 20 * SECOND;
	put_text(f, object(OBJECT), "three");
	begin(f, ENGINE_READ);
	assert_int_equal(engine_moment_resolve(f->txn, PARTITION, at_time(15 * SECOND), &sequence),
			 -ENOENT);
	assert_int_equal(engine_history(f->txn, PARTITION, &history), 0);
	assert_int_equal(history.versions, 1);
	commit(f);
	check_text(f, at_version(object(OBJECT), 1), "one");
	/* What was not kept does not come back with another policy. */
	assert_int_equal(set_retention(f, PARTITION, (struct engine_retention){ 0 }, false), 0);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_moment_resolve(f->txn, PARTITION, at_time(15 * SECOND), &sequence),
			 -ENOENT);
	commit(f);
}

static void test_partitions_take_over_the_policy_of_the_device(void **state)
{
	struct engine_retention all = { .kind = ENGINE_RETAIN_ALL }, found;
	struct fixture *f = *state;

	make_text_object(f);
	assert_int_equal(set_retention(f, 0, all, false), 0);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_retention_get(f->txn, PARTITION, &found), 0);
	assert_int_equal(found.kind, ENGINE_RETAIN_ALL);
	commit(f);
	assert_int_equal(set_retention(f, PARTITION,
				       (struct engine_retention){ .kind = ENGINE_RETAIN_NONE },
				       false),
			 0);
	crash(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_retention_get(f->txn, PARTITION, &found), 0);
	assert_int_equal(found.kind, ENGINE_RETAIN_NONE);
	assert_int_equal(engine_retention_get(f->txn, 0, &found), 0);
	assert_int_equal(found.kind, ENGINE_RETAIN_ALL);
	commit(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_versions_have_names_that_are_found_and_taken_once),
		TEST(test_a_group_has_versions_of_one_instant_or_none),
		TEST(test_a_dropped_version_is_gone_and_its_name_is_free),
		TEST(test_a_version_of_the_device_shows_removed_partitions),
		TEST(test_a_time_shows_what_was_there_then),
		TEST(test_a_time_inside_a_slot_means_the_end_of_the_one_before),
		FLASH_TEST(test_numbers_inside_the_slot_in_which_a_partition_was_made_can_be_read),
		FLASH_TEST(test_a_number_inside_the_slot_that_goes_on_ends_it),
		TEST(test_a_moment_before_a_partition_is_none),
		TEST(test_a_view_that_is_in_use_keeps_its_number),
		TEST(test_a_view_ends_with_the_engine),
		TEST(test_a_locked_retention_is_shortened_by_the_administrator_only),
		TEST(test_a_lock_ends_by_itself),
		TEST(test_retention_none_keeps_versions_only),
		TEST(test_partitions_take_over_the_policy_of_the_device),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
