/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What is known of a partition that a rollback of the device brings back, however it had gone, and
 * what learning it costs.
 */
#include "engine/history/past.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

enum { OTHER = PARTITION + 1 };

static void create_partition(struct fixture *f, uint64_t id)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, id, NULL), 0);
	commit(f);
}

static void roll_back_at(struct fixture *f, uint64_t second, struct engine_moment to)
{
	f->now = second * SECOND;
	roll_back(f, 0, to);
}

static struct device_history history_of_device(struct fixture *f)
{
	struct device_history found;
	struct partition *of_root;

	assert_int_equal(partition_get(f->engine, 0, &of_root), 0);
	found = of_root->history->device;
	partition_release(f->engine, of_root);
	return found;
}

/* Of its own, that is. */
static bool has_versions(struct fixture *f)
{
	struct engine_version version = { 0 };
	bool found = false;

	begin(f, ENGINE_READ);
	while (!found &&
	       engine_version_next(f->txn, PARTITION, version.position + 1, &version) == 0)
		found = version.version < ENGINE_DEVICE_VERSION_FIRST;
	commit(f);
	return found;
}

/* The partition has its policy, which what is counted says too, and its version. */
static void check_kept(struct fixture *f)
{
	struct engine_retention policy;

	begin(f, ENGINE_READ);
	assert_int_equal(engine_retention_get(f->txn, PARTITION, &policy), 0);
	commit(f);
	assert_int_equal(policy.kind, ENGINE_RETAIN_ALL);
	assert_int_equal(history_of_device(f).particular, 1);
	assert_true(has_versions(f));
}

/*
 * It was removed at 20 s, is back since 40 s with a policy and a version of its own, and gone again
 * since 50 s. Returns a moment at which it was there in between.
 */
static struct engine_moment come_and_go(struct fixture *f)
{
	uint32_t version;

	make_text_object(f);
	f->now = 20 * SECOND;
	remove_partition(f, PARTITION);
	roll_back_at(f, 40, at_time(15 * SECOND));
	set_kind(f, PARTITION, ENGINE_RETAIN_ALL);
	take_snapshot(f, PARTITION, NULL);
	f->now = 45 * SECOND;
	version = take_snapshot(f, 0, NULL);
	roll_back_at(f, 50, at_time(30 * SECOND));
	return at_number(version);
}

/* ---- what comes back ---- */

static void test_one_that_was_removed_comes_back_with_policy_and_versions(void **state)
{
	struct fixture *f = *state;
	struct engine_moment between = come_and_go(f);

	roll_back_at(f, 60, between);
	check_text(f, object(OBJECT), "one");
	check_kept(f);
	crash(f);
	check_kept(f);
}

static void test_one_that_had_vanished_does_so_too(void **state)
{
	struct engine_retention policy;
	struct fixture *f = *state;

	f->now = 5 * SECOND;
	make_text_object(f);
	f->now = 10 * SECOND;
	create_partition(f, OTHER);
	set_kind(f, OTHER, ENGINE_RETAIN_ALL);
	roll_back_at(f, 20, at_time(8 * SECOND));
	roll_back_at(f, 30, at_time(15 * SECOND));
	for (int round = 0; round < 2; round++) {
		assert_int_equal(try_time(f, OTHER, 14), 0);
		begin(f, ENGINE_READ);
		assert_int_equal(engine_retention_get(f->txn, OTHER, &policy), 0);
		commit(f);
		assert_int_equal(policy.kind, ENGINE_RETAIN_ALL);
		crash(f);
	}
}

static void test_another_one_of_its_id_takes_nothing_from_it(void **state)
{
	struct fixture *f = *state;
	struct engine_retention policy;

	make_text_object(f);
	set_kind(f, PARTITION, ENGINE_RETAIN_ALL);
	take_snapshot(f, PARTITION, NULL);
	f->now = 10 * SECOND;
	remove_partition(f, PARTITION);
	/* Indices are given from the first again. */
	crash(f);
	f->now = 20 * SECOND;
	create_partition(f, PARTITION);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_retention_get(f->txn, PARTITION, &policy), 0);
	commit(f);
	assert_int_equal(policy.kind, ENGINE_RETAIN_SNAPSHOTS);
	assert_false(has_versions(f));
	roll_back_at(f, 30, at_time(5 * SECOND));
	check_text(f, object(OBJECT), "one");
	check_kept(f);
	crash(f);
	check_kept(f);
}

static void test_a_version_of_the_command_that_removes_it_is_there_again(void **state)
{
	struct fixture *f = *state;
	uint32_t of_device, own;

	make_text_object(f);
	of_device = take_snapshot(f, 0, NULL);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, &own), 0);
	assert_int_equal(engine_partition_remove(f->txn, PARTITION, true), 0);
	commit(f);
	roll_back(f, 0, at_number(of_device));
	check_text(f, at_version(object(OBJECT), own), "one");
	crash(f);
	check_text(f, at_version(object(OBJECT), own), "one");
}

static void test_those_that_stay_keep_policy_and_versions(void **state)
{
	struct fixture *f = *state;

	make_text_object(f);
	set_kind(f, PARTITION, ENGINE_RETAIN_ALL);
	take_snapshot(f, PARTITION, NULL);
	f->now = 10 * SECOND;
	create_partition(f, OTHER);
	roll_back_at(f, 20, at_time(8 * SECOND));
	roll_back_at(f, 30, at_time(15 * SECOND));
	assert_true(has_versions(f));
	assert_int_equal(history_of_device(f).particular, 1);
	crash(f);
	assert_true(has_versions(f));
}

static void test_a_rollback_that_is_aborted_has_noted_nothing(void **state)
{
	struct engine_retention policy;
	struct fixture *f = *state;

	make_text_object(f);
	set_kind(f, PARTITION, ENGINE_RETAIN_ALL);
	f->now = 10 * SECOND;
	remove_partition(f, PARTITION);
	f->now = 20 * SECOND;
	create_partition(f, PARTITION);
	set_kind(f, PARTITION, ENGINE_RETAIN_ALL);
	f->now = 30 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback(f->txn, 0, at_time(5 * SECOND)), 0);
	abort_all(f);
	for (int round = 0; round < 2; round++) {
		begin(f, ENGINE_READ);
		assert_int_equal(engine_retention_get(f->txn, PARTITION, &policy), 0);
		commit(f);
		assert_int_equal(policy.kind, ENGINE_RETAIN_ALL);
		assert_int_equal(history_of_device(f).particular, 2);
		crash(f);
	}
}

/* ---- its past ---- */

/* And what others have of theirs is none of its business. */
static void test_it_has_of_its_past_what_it_and_the_device_have_kept(void **state)
{
	struct fixture *f = *state;

	make_text_object(f);
	put_text_at(f, 10, "two");
	f->now = 15 * SECOND;
	create_partition(f, OTHER);
	create_partition(f, OTHER + 1);
	set_kind(f, OTHER, ENGINE_RETAIN_NONE);
	put_text_at(f, 17, "three");
	f->now = 18 * SECOND;
	remove_partition(f, OTHER);
	put_text_at(f, 20, "four");
	f->now = 25 * SECOND;
	remove_partition(f, PARTITION);
	roll_back_at(f, 30, at_time(23 * SECOND));
	check_text(f, object(OBJECT), "four");
	assert_int_equal(try_time(f, PARTITION, 12), 0);
	assert_int_equal(try_time(f, PARTITION, 22), 0);
	assert_int_equal(try_time(f, OTHER + 1, 16), 0);
	assert_int_equal(try_time(f, 0, 17), 0);
	roll_back_at(f, 40, at_time(12 * SECOND));
	check_text(f, object(OBJECT), "two");
}

/* ---- what it costs ---- */

static void test_learning_about_a_partition_costs_the_same_after_many_rollbacks(void **state)
{
	struct fixture *f = *state;
	uint64_t gets[2];

	make_text_object(f);
	for (uint32_t second = 1; second <= 50; second++)
		put_text_at(f, second * 10, "two");
	for (int round = 0; round < 2; round++) {
		uint64_t before;

		crash(f);
		before = memory_store_counters(f->memory).gets;
		check_text(f, object(OBJECT), "two");
		gets[round] = memory_store_counters(f->memory).gets - before;
		/* To another moment each time. */
		for (uint32_t second = 2; second <= 50 && round == 0; second++)
			roll_back_at(f, 1000 + second, at_time((second * 10 + 5) * SECOND));
	}
	assert_int_equal(gets[0], gets[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_that_was_removed_comes_back_with_policy_and_versions),
		TEST(test_one_that_had_vanished_does_so_too),
		TEST(test_another_one_of_its_id_takes_nothing_from_it),
		TEST(test_a_version_of_the_command_that_removes_it_is_there_again),
		TEST(test_those_that_stay_keep_policy_and_versions),
		TEST(test_a_rollback_that_is_aborted_has_noted_nothing),
		TEST(test_it_has_of_its_past_what_it_and_the_device_have_kept),
		TEST(test_learning_about_a_partition_costs_the_same_after_many_rollbacks),
	};

	return cmocka_run_group_tests_name("history_returned", tests, NULL, NULL);
}
