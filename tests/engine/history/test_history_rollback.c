/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Partitions and the device go back; how many rollbacks are on record, and which of them are
 * forgotten.
 *
 * Runs for each index.
 */
#include <stdio.h>

#include "engine/history/hidden_review.h"
#include "engine/history/retention.h"
#include "engine/history/standing.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

static void test_a_rollback_keeps_versions_and_their_numbers(void **state)
{
	struct fixture *f = *state;

	make_text_object(f);
	take_snapshot(f, PARTITION, "one");
	put_text(f, object(OBJECT), "two");
	take_snapshot(f, PARTITION, "two");
	put_text(f, object(OBJECT), "three");
	roll_back(f, PARTITION, at_number(1));
	for (int crashed = 0; crashed < 2; crashed++) {
		check_text(f, object(OBJECT), "one");
		check_text(f, at_version(object(OBJECT), 2), "two");
		begin(f, ENGINE_READ);
		assert_int_equal(stat_of(f, the_partition).version, 3);
		commit(f);
		crash(f);
	}
	put_text(f, object(OBJECT), "another three");
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 3);
	roll_back(f, PARTITION, at_number(2));
	check_text(f, object(OBJECT), "two");
	roll_back(f, PARTITION, at_number(3));
	check_text(f, object(OBJECT), "another three");
}

static void test_an_aborted_rollback_changed_nothing(void **state)
{
	struct fixture *f = *state;

	make_text_object(f);
	take_snapshot(f, PARTITION, NULL);
	put_text(f, object(OBJECT), "two");
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback(f->txn, PARTITION, at_number(1)), 0);
	assert_data(f, object(OBJECT), "one", 3);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, "ONE", 3), 0);
	abort_all(f);
	check_text(f, object(OBJECT), "two");
	crash(f);
	check_text(f, object(OBJECT), "two");
	begin(f, ENGINE_WRITE);
	write_text(f, 0, "x");
	assert_int_equal(engine_rollback(f->txn, PARTITION, at_number(1)), -EINVAL);
	abort_all(f);
}

static void test_changes_may_follow_a_rollback_in_its_transaction(void **state)
{
	struct fixture *f = *state;

	make_text_object(f);
	take_snapshot(f, PARTITION, NULL);
	put_text(f, object(OBJECT), "two");
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback(f->txn, PARTITION, at_number(1)), 0);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 3, " and a half", 11), 0);
	commit(f);
	crash(f);
	check_text(f, object(OBJECT), "one and a half");
}

static uint32_t rollbacks_of(struct fixture *f, uint64_t partition_id)
{
	struct engine_history history;

	begin(f, ENGINE_READ);
	assert_int_equal(engine_history(f->txn, partition_id, &history), 0);
	commit(f);
	return history.rollbacks;
}

static void review(struct fixture *f, uint32_t calls)
{
	for (uint32_t call = 0; call < calls; call++) {
		hidden_review(f->engine);
		standing_review(f->engine);
	}
}

/*
 * Beyond the limits a partition goes back slowly. However often it has done so, a minute later it
 * can once more.
 */
static void go_back_slowly(struct fixture *f, uint64_t partition, struct engine_moment to)
{
	uint32_t before = rollbacks_of(f, partition), gone = 0;

	for (int minute = 0; minute < 3; minute++) {
		f->now += SLOW_LANE_OF_ONE_MS;
		while (try_rollback(f, ENGINE_WRITE, partition, to) == 0)
			assert_true(++gone <= 9);
		assert_int_equal(try_rollback(f, ENGINE_WRITE, partition, to), -ETIME);
	}
	assert_int_equal(gone, 3 * SLOW_LANE_OF_ONE);
	assert_int_equal(rollbacks_of(f, partition), before + gone);
}

/* As many of one partition as there may be: as are still free for others. */
enum { OF_ONE = ENGINE_HIDDEN_MAX / 2 };

/* As long as all that they led to can be reached. Others have their own. */
static void test_rollbacks_of_a_partition_get_slow(void **state)
{
	const struct engine_retention none = { .kind = ENGINE_RETAIN_NONE };
	const uint64_t other_id = PARTITION + 1;
	struct fixture *f = *state;
	uint32_t device_version;

	make_text_object(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, other_id, NULL), 0);
	commit(f);
	take_snapshot(f, PARTITION, NULL);
	take_snapshot(f, other_id, NULL);
	device_version = take_snapshot(f, 0, NULL);
	for (uint32_t n = 0; n < OF_ONE; n++)
		roll_back(f, PARTITION, at_number(1));
	go_back_slowly(f, PARTITION, at_number(1));
	assert_int_equal(try_rollback(f, ENGINE_WRITE, other_id, at_number(1)), 0);
	assert_int_equal(try_rollback(f, ENGINE_WRITE, 0, at_number(device_version)), 0);
	crash(f);
	check_text(f, object(OBJECT), "one");
	assert_int_equal(rollbacks_of(f, PARTITION), OF_ONE + 9 + 1);
	go_back_slowly(f, PARTITION, at_number(1));
	/*
	 * Once the device keeps less, of which they all are moments too, there is room among them
	 * again.
	 */
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, 0, &none, false), 0);
	commit(f);
	put_text(f, object(OBJECT), "two");
	assert_int_equal(try_rollback(f, ENGINE_WRITE, PARTITION, at_number(1)), 0);
	check_text(f, object(OBJECT), "one");
	crash(f);
	check_text(f, object(OBJECT), "one");
	assert_true(rollbacks_of(f, PARTITION) < OF_ONE);
	/* However many of one partition there are, each call looks at as many as of several. */
	review(f, OF_ONE / 64 + 10);
	assert_true(rollbacks_of(f, PARTITION) < 64);
	check_text(f, object(OBJECT), "one");
}

/* What is hidden stays so, and versions of lines that were left show what they did. */
static void test_rollbacks_that_nothing_shows_make_room_for_others(void **state)
{
	const struct engine_retention none = { .kind = ENGINE_RETAIN_NONE };
	struct fixture *f = *state;
	struct engine_address left = object(OBJECT);
	char text[32];

	make_text_object(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, PARTITION, &none, false), 0);
	commit(f);
	take_snapshot(f, PARTITION, NULL);
	roll_back(f, PARTITION, at_number(1));
	put_text(f, object(OBJECT), "a line that was left");
	left.version = take_snapshot(f, PARTITION, NULL);
	for (int n = 0; n < 40; n++) {
		roll_back(f, PARTITION, at_number(1));
		check_text(f, object(OBJECT), "one");
		snprintf(text, sizeof(text), "nobody sees %d", n);
		put_text(f, object(OBJECT), text);
		if (n % 10 == 3) {
			/* One that is taken back has taken nobody's place. */
			begin(f, ENGINE_WRITE);
			assert_int_equal(engine_rollback(f->txn, PARTITION, at_number(1)), 0);
			abort_all(f);
			check_text(f, object(OBJECT), text);
		}
		check_text(f, left, "a line that was left");
		if (n % 10 == 7)
			crash(f);
	}
	assert_true(rollbacks_of(f, PARTITION) < 10);
	roll_back(f, PARTITION, at_number(left.version));
	check_text(f, object(OBJECT), "a line that was left");
	roll_back(f, PARTITION, at_number(1));
	check_text(f, object(OBJECT), "one");
}

static void make_partition(struct fixture *f, uint64_t id)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, id, NULL), 0);
	commit(f);
	assert_int_equal(take_snapshot(f, id, NULL), 1);
}

/* Of all intervals on record. */
static uint32_t bytes_of_hidden(const struct fixture *f)
{
	const struct hidden *hidden = &f->engine->past->hidden;
	uint32_t bytes = 0;

	for (uint32_t chunk = 0; chunk < hidden->chunks; chunk++)
		bytes += hidden->lengths[chunk] - HIDDEN_CHUNK_HEAD_BYTES;
	return bytes;
}

/* Partitions behind PARTITION roll back until nothing is left of what is shared by all. */
static uint32_t use_up_shared_rollbacks(struct fixture *f)
{
	uint32_t partitions = 0;

	while (f->engine->past->hidden.count < ENGINE_HIDDEN_MAX) {
		make_partition(f, PARTITION + ++partitions);
		while (try_rollback(f, ENGINE_WRITE, PARTITION + partitions, at_number(1)) == 0)
			assert_true(f->engine->past->hidden.count <
				    ENGINE_HIDDEN_MAX + 2 * ENGINE_HIDDEN_OWN);
	}
	return partitions;
}

static void test_rollbacks_of_others_leave_room_for_those_of_each_partition(void **state)
{
	struct fixture *f = *state;
	uint32_t device_version;
	uint64_t later;

	make_text_object(f);
	take_snapshot(f, PARTITION, NULL);
	device_version = take_snapshot(f, 0, NULL);
	later = PARTITION + use_up_shared_rollbacks(f) + 1;
	make_partition(f, later);
	for (int n = 0; n < ENGINE_HIDDEN_OWN; n++) {
		put_text(f, object(OBJECT), "two");
		assert_int_equal(try_rollback(f, ENGINE_WRITE, PARTITION, at_number(1)), 0);
		check_text(f, object(OBJECT), "one");
		assert_int_equal(try_rollback(f, ENGINE_WRITE, later, at_number(1)), 0);
	}
	/* Everything can be reached, so no more of them are forgotten for it. */
	go_back_slowly(f, PARTITION, at_number(1));
	crash(f);
	assert_int_equal(rollbacks_of(f, PARTITION), ENGINE_HIDDEN_OWN + 9);
	assert_int_equal(try_rollback(f, ENGINE_WRITE, 0, at_number(device_version)), 0);
	check_text(f, object(OBJECT), "one");
}

static void test_rollbacks_of_others_that_nothing_shows_make_room(void **state)
{
	struct fixture *f = *state;
	uint32_t partitions;

	make_text_object(f);
	take_snapshot(f, PARTITION, NULL);
	partitions = use_up_shared_rollbacks(f);
	for (int n = 0; n < ENGINE_HIDDEN_OWN; n++)
		roll_back(f, PARTITION, at_number(1));
	go_back_slowly(f, PARTITION, at_number(1));
	/* One is removed, and nothing but this one shows anything of the past any more. */
	set_kind(f, PARTITION, ENGINE_RETAIN_ALL);
	set_kind(f, 0, ENGINE_RETAIN_NONE);
	remove_partition(f, PARTITION + partitions);
	review(f, 20000);
	assert_true(f->engine->past->hidden.count < 100);
	for (int n = 0; n < 3; n++) {
		put_text(f, object(OBJECT), "two");
		assert_int_equal(try_rollback(f, ENGINE_WRITE, PARTITION, at_number(1)), 0);
		check_text(f, object(OBJECT), "one");
	}
	crash(f);
	check_text(f, object(OBJECT), "one");
	assert_int_equal(rollbacks_of(f, PARTITION), ENGINE_HIDDEN_OWN + 9 + 3);
	/* Their space in the table is used again. */
	assert_int_equal(bytes_of_hidden(f), f->engine->past->hidden.count * HIDDEN_BYTES);
	assert_in_range(f->engine->past->hidden.chunks, 1,
			(ENGINE_HIDDEN_MAX + 5 * ENGINE_HIDDEN_OWN) / HIDDEN_CHUNK_FULL + 1);
}

/*
 * Between its two rollbacks the partition is as the first one left it. The device shows it so by a
 * version, or by a moment of an interval; the partition itself keeps only what is new.
 */
static void go_back_twice(struct fixture *f, bool by_version)
{
	uint32_t version = 0;

	f->now = 5 * SECOND;
	make_text_object(f);
	put_text_at(f, 15, "two");
	f->now = 18 * SECOND;
	roll_back(f, PARTITION, at_time(13 * SECOND));
	f->now = 20 * SECOND;
	if (by_version)
		version = take_snapshot(f, 0, NULL);
	f->now = 25 * SECOND;
	roll_back(f, PARTITION, at_time(16 * SECOND));
	f->now = 28 * SECOND;
	set_policy(f, PARTITION, 3 * SECOND, 0, 0);
	set_policy(f, 0, 0, by_version ? 0 : 10 * SECOND, by_version ? 0 : 100 * SECOND);
	put_text_at(f, 60, "three");
	f->now = 65 * SECOND;
	retention_judge(f->engine);
	review(f, 10);
	if (!by_version)
		version = view_of(f, 0, at_time(20 * SECOND));
	check_text(f, at_version(object(OBJECT), version), "one");
	if (by_version)
		drop_version(f, 0, version);
	/* Then nothing does; and the last one is that of the present. */
	put_text_at(f, 200, "four");
	f->now = 300 * SECOND;
	retention_judge(f->engine);
	review(f, 10);
	assert_int_equal(f->engine->past->hidden.count, 1);
	check_text(f, object(OBJECT), "four");
}

static void test_rollbacks_stay_that_a_version_of_the_device_shows(void **state)
{
	go_back_twice(*state, true);
}

static void test_rollbacks_stay_that_a_moment_of_an_interval_of_the_device_shows(void **state)
{
	go_back_twice(*state, false);
}

/* Neither in a chunk that it began, nor in one that was there. */
static void test_an_aborted_rollback_takes_no_space_on_record(void **state)
{
	struct fixture *f = *state;

	make_text_object(f);
	take_snapshot(f, PARTITION, NULL);
	for (uint32_t on_record = 0; on_record < 3; on_record++) {
		begin(f, ENGINE_HISTORY);
		assert_int_equal(engine_rollback(f->txn, PARTITION, at_number(1)), 0);
		abort_all(f);
		assert_int_equal(f->engine->past->hidden.chunks, on_record ? 1 : 0);
		assert_int_equal(bytes_of_hidden(f), on_record * HIDDEN_BYTES);
		roll_back(f, PARTITION, at_number(1));
		assert_int_equal(bytes_of_hidden(f), (on_record + 1) * HIDDEN_BYTES);
	}
	crash(f);
	assert_int_equal(rollbacks_of(f, PARTITION), 3);
	check_text(f, object(OBJECT), "one");
}

/* Its index is free then, and who gets it begins without. */
static void test_rollbacks_of_a_removed_partition_are_forgotten(void **state)
{
	const uint64_t later = PARTITION + 2;
	struct fixture *f = *state;

	make_text_object(f);
	take_snapshot(f, PARTITION, NULL);
	set_kind(f, PARTITION, ENGINE_RETAIN_ALL);
	make_partition(f, PARTITION + 1);
	for (int n = 0; n < 10; n++)
		roll_back(f, PARTITION + 1, at_number(1));
	assert_int_equal(f->engine->past->hidden.count, 10);
	remove_partition(f, PARTITION + 1);
	review(f, 10);
	assert_int_equal(f->engine->past->hidden.count, 10);
	assert_int_equal(f->engine->past->hidden.targets.count, 10);
	set_kind(f, 0, ENGINE_RETAIN_NONE);
	review(f, 10);
	assert_int_equal(f->engine->past->hidden.count, 0);
	assert_int_equal(f->engine->past->hidden.targets.count, 0);
	/* Opened again, the engine gives the first index that is free. */
	crash(f);
	assert_int_equal(f->engine->past->hidden.count, 0);
	make_partition(f, later);
	assert_int_equal(rollbacks_of(f, later), 0);
	assert_int_equal(try_rollback(f, ENGINE_WRITE, later, at_number(1)), 0);
	assert_int_equal(rollbacks_of(f, later), 1);
	assert_int_equal(f->engine->past->hidden.chunks, 1);
	assert_int_equal(bytes_of_hidden(f), HIDDEN_BYTES);
}

static void test_a_removed_partition_s_past_stays_as_a_version_of_the_device_shows_it(void **state)
{
	const uint64_t removed = PARTITION + 1;
	struct engine_address address = { .partition = removed, .object = OBJECT };
	struct fixture *f = *state;

	make_text_object(f);
	take_snapshot(f, PARTITION, NULL);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, removed, NULL), 0);
	assert_int_equal(engine_create(f->txn, removed, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
	commit(f);
	put_text(f, address, "then");
	take_snapshot(f, removed, NULL);
	put_text(f, address, "hidden");
	roll_back(f, removed, at_number(1));
	address.version = take_snapshot(f, 0, NULL);
	set_kind(f, 0, ENGINE_RETAIN_NONE);
	remove_partition(f, removed);
	for (int n = 0; n < 20; n++) {
		roll_back(f, PARTITION, at_number(1));
		review(f, 1);
		check_text(f, address, "then");
	}
	crash(f);
	check_text(f, address, "then");
	roll_back(f, 0, at_number(address.version));
	address.version = 0;
	check_text(f, address, "then");
}

/*
 * What a clone stood on is looked for from one of its rollbacks to the one before, so it needs them
 * all.
 */
static void test_rollbacks_of_a_clone_stay_although_nothing_shows_them(void **state)
{
	const struct engine_retention none = { .kind = ENGINE_RETAIN_NONE };
	const struct engine_moment now = { .kind = ENGINE_NOW };
	const uint64_t clone = PARTITION + 1;
	struct engine_address address = { .partition = clone, .object = OBJECT };
	struct fixture *f = *state;

	make_text_object(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, 0, &none, false), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone(f->txn, PARTITION, now, clone, true, NULL), 0);
	commit(f);
	take_snapshot(f, clone, NULL);
	for (uint32_t n = 1; n <= 20; n++) {
		put_text(f, address, "nobody sees it");
		roll_back(f, clone, at_number(1));
		review(f, 1);
		check_text(f, address, "one");
		assert_int_equal(rollbacks_of(f, clone), n);
	}
}

/* From one that leads to the one before, which leads to the one before that, and so on. */
static void test_rollbacks_that_lead_by_many_get_slow(void **state)
{
	struct fixture *f = *state;

	make_text_object(f);
	for (uint32_t n = 0; n < ENGINE_HIDDEN_STEPS; n++) {
		uint32_t version = take_snapshot(f, PARTITION, NULL);

		roll_back(f, PARTITION, at_number(version));
	}
	check_text(f, object(OBJECT), "one");
	go_back_slowly(f, PARTITION, at_number(take_snapshot(f, PARTITION, NULL)));
	check_text(f, object(OBJECT), "one");
	/* What lies behind fewer can be gone back to at once. */
	assert_int_equal(try_rollback(f, ENGINE_WRITE, PARTITION, at_number(1)), 0);
	check_text(f, object(OBJECT), "one");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_rollback_keeps_versions_and_their_numbers),
		TEST(test_an_aborted_rollback_changed_nothing),
		TEST(test_changes_may_follow_a_rollback_in_its_transaction),
		TEST(test_rollbacks_of_a_partition_get_slow),
		TEST(test_rollbacks_that_nothing_shows_make_room_for_others),
		TEST(test_rollbacks_of_others_leave_room_for_those_of_each_partition),
		TEST(test_rollbacks_of_others_that_nothing_shows_make_room),
		TEST(test_rollbacks_stay_that_a_version_of_the_device_shows),
		TEST(test_rollbacks_stay_that_a_moment_of_an_interval_of_the_device_shows),
		TEST(test_an_aborted_rollback_takes_no_space_on_record),
		TEST(test_rollbacks_of_a_removed_partition_are_forgotten),
		TEST(test_a_removed_partition_s_past_stays_as_a_version_of_the_device_shows_it),
		TEST(test_rollbacks_of_a_clone_stay_although_nothing_shows_them),
		TEST(test_rollbacks_that_lead_by_many_get_slow),
	};

	return cmocka_run_group_tests_name("history_rollback", tests, NULL, NULL);
}
