/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A partition that keeps nothing is left out of the moments of the device.
 * Runs for each index.
 */
#include "engine/history/left_out.h"
#include "engine/history/past.h"
#include "engine/history/standing.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

enum { FILLER = CLONE + 2 };

/* A partition that says 'a' at 4 s and 'b' at 8 s. */
static void write_twice(struct fixture *f)
{
	write_page(f, 2 * SECOND, 0, 'a');
	write_page(f, 7 * SECOND, 0, 'b');
	f->now = 9 * SECOND;
}

static void check_others(struct fixture *f, char byte)
{
	check_page_of(f, OTHERS, 0, 0, byte);
}

static void write_object(struct fixture *f, uint64_t partition, uint64_t id, uint64_t ms, char byte)
{
	const struct engine_address address = { .partition = partition, .object = id };
	char bytes[PAGE];

	memset(bytes, byte, sizeof(bytes));
	f->now = ms;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, address, 0, bytes, sizeof(bytes)), 0);
	commit(f);
}

static void write_others(struct fixture *f, uint64_t ms, char byte)
{
	write_object(f, OTHERS, OBJECT, ms, byte);
}

/*
 * The other partition says 'p' at 3 s and keeps nothing from 9 s on, when it says 'q' at 10 s and
 * 'r' at 14 s; this one 'c' from 12 s on.
 */
static void leave_others_out(struct fixture *f)
{
	write_others(f, 3 * SECOND, 'p');
	write_twice(f);
	assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_NONE, 0), 0);
	write_others(f, 10 * SECOND, 'q');
	write_page(f, 12 * SECOND, 0, 'c');
	write_others(f, 14 * SECOND, 'r');
	f->now = 16 * SECOND;
}

static void test_a_partition_that_keeps_nothing_is_left_out_of_moments(void **state)
{
	struct fixture *f = *state;

	leave_others_out(f);
	merge_all(f);
	/* merge_all writes there. */
	write_others(f, 18 * SECOND, 'r');
	f->now = 20 * SECOND;
	assert_int_equal(stat_of_device_at(f, OTHERS, 8 * SECOND), 0);
	assert_int_equal(stat_of_device_at(f, OTHERS, 11 * SECOND), -ENOENT);
	assert_int_equal(stat_of_device_at(f, PARTITION, 11 * SECOND), 0);
	/* A rollback leaves it as it is. */
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(11 * SECOND)), 0);
	for (int start = 0; start < 2; start++) {
		check_page(f, 0, 0, 'b');
		check_others(f, 'r');
		crash(f);
	}
	write_others(f, 22 * SECOND, 's');
	/* But for one to before. */
	f->now = 24 * SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(8 * SECOND)), 0);
	check_page(f, 0, 0, 'b');
	check_others(f, 'p');
	/* Which is undone by number or time, but for what was left out. */
	f->now = 26 * SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(13 * SECOND)), 0);
	check_page(f, 0, 0, 'c');
	check_others(f, 'p');
}

static void test_with_another_policy_it_takes_part_again(void **state)
{
	struct fixture *f = *state;

	leave_others_out(f);
	assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_ALL, 0), 0);
	write_others(f, 18 * SECOND, 's');
	write_others(f, 20 * SECOND, 't');
	f->now = 22 * SECOND;
	merge_all(f);
	f->now += SECOND;
	assert_int_equal(stat_of_device_at(f, OTHERS, 8 * SECOND), 0);
	assert_int_equal(stat_of_device_at(f, OTHERS, 13 * SECOND), -ENOENT);
	/* The new policy keeps it as it was last. */
	assert_int_equal(stat_of_device_at(f, OTHERS, 15 * SECOND), 0);
	assert_int_equal(stat_of_device_at(f, OTHERS, 19 * SECOND), 0);
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(19 * SECOND)), 0);
	check_others(f, 's');
	f->now += 2 * SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(13 * SECOND)), 0);
	check_others(f, 's');
	check_page(f, 0, 0, 'c');
}

/* The first moment from `sequence` on that the device keeps at intervals, one after the other. */
static uint64_t first_that_shows(struct fixture *f, const struct history *history,
				 const struct history *device, uint64_t sequence)
{
	for (;;) {
		uint64_t found = RECORD_NEWEST;

		assert_int_equal(
			history_lower_by_interval(f->engine, device, device, sequence, &found), 0);
		if (left_out_pass(history, found) == found)
			return found;
		sequence = found + 1;
	}
}

/* More than there are. */
enum { SLOTS = 100 };

/* OTHERS is left out from 10 s, which ends an interval, to 17 s, or on. */
static void check_intervals(struct fixture *f, bool takes_part_again)
{
	struct partition *root, *others;
	uint64_t last = 0, lowest;
	uint32_t passed = 0, found = 0;

	begin(f, ENGINE_READ);
	assert_int_equal(partition_get(f->engine, 0, &root), 0);
	assert_int_equal(partition_get(f->engine, OTHERS, &others), 0);
	for (uint64_t slot = 0; slot < SLOTS; slot++) {
		uint64_t sequence = slot * RECORD_SLOT + 1, expected, of_device = RECORD_NEWEST;

		expected = first_that_shows(f, others->history, root->history, sequence);
		assert_int_equal(history_lower_by_interval(f->engine, root->history, root->history,
							   sequence, &of_device),
				 0);
		lowest = RECORD_NEWEST;
		assert_int_equal(left_out_lower_by_interval(f->engine, others->history,
							    root->history, sequence, &lowest),
				 0);
		assert_true(lowest == expected);
		/* What is lower already stays. */
		lowest = last;
		assert_int_equal(left_out_lower_by_interval(f->engine, others->history,
							    root->history, sequence, &lowest),
				 0);
		assert_true(lowest == last);
		passed += of_device != expected;
		found += expected != RECORD_NEWEST;
		last = sequence;
	}
	assert_in_range(passed, 1, SLOTS - 1);
	assert_in_range(found, 1, SLOTS - 1);
	assert_int_equal(others->history->left_until != 0, takes_part_again);
	partition_release(f->engine, others);
	partition_release(f->engine, root);
	commit(f);
}

static void test_the_devices_intervals_that_leave_it_out_are_passed_over(void **state)
{
	const struct engine_retention every = { .kind = ENGINE_RETAIN_ALL,
						.keep_interval_ms = 2 * SECOND,
						.keep_interval_for_ms = 1000 * SECOND };
	struct fixture *f = *state;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, 0, &every, false), 0);
	commit(f);
	for (uint64_t second = 2; second < 40; second++) {
		write_others(f, second * SECOND, (char)second);
		if (second == 10)
			assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_NONE, 0), 0);
		if (second == 16)
			check_intervals(f, false);
		if (second == 17)
			assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_ALL, 0), 0);
	}
	check_intervals(f, true);
}

/* It has one such stretch, from the first policy of that kind to the last. */
static void test_when_it_keeps_nothing_again_it_is_left_out_in_between_too(void **state)
{
	struct fixture *f = *state;

	leave_others_out(f);
	assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_ALL, 0), 0);
	write_others(f, 18 * SECOND, 's');
	f->now = 20 * SECOND;
	assert_int_equal(stat_of_device_at(f, OTHERS, 19 * SECOND), 0);
	assert_int_equal(try_kind(f, OTHERS, ENGINE_RETAIN_NONE, 0), 0);
	f->now = 22 * SECOND;
	assert_int_equal(stat_of_device_at(f, OTHERS, 8 * SECOND), 0);
	assert_int_equal(stat_of_device_at(f, OTHERS, 19 * SECOND), -ENOENT);
}

static void test_a_version_of_the_device_has_it(void **state)
{
	struct engine_moment version = { .kind = ENGINE_AT_VERSION };
	struct fixture *f = *state;

	leave_others_out(f);
	version.value = take_snapshot(f, 0, NULL);
	write_others(f, 18 * SECOND, 's');
	f->now = 20 * SECOND;
	merge_all(f);
	f->now += SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, version), 0);
	check_others(f, 'r');
	check_page(f, 0, 0, 'c');
}

static int is_there(struct fixture *f, uint64_t partition)
{
	struct engine_stat stat;
	int result;

	begin(f, ENGINE_READ);
	result = engine_stat(f->txn, (struct engine_address){ .partition = partition }, &stat);
	commit(f);
	return result;
}

/* One that is gone stays so, but for a rollback to a moment that shows it. */
static void test_one_that_was_removed_stays_so(void **state)
{
	struct fixture *f = *state;

	leave_others_out(f);
	remove_partition(f, OTHERS);
	write_page(f, 18 * SECOND, 0, 'd');
	f->now = 20 * SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(13 * SECOND)), 0);
	for (int start = 0; start < 2; start++) {
		check_page(f, 0, 0, 'c');
		assert_int_equal(is_there(f, OTHERS), -ENOENT);
		crash(f);
	}
	f->now = 22 * SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(8 * SECOND)), 0);
	check_others(f, 'p');
	check_page(f, 0, 0, 'b');
}

/* Whether moments from now on leave it out. */
static bool is_left_out(struct fixture *f, uint64_t id)
{
	struct partition *partition;
	bool left_out;

	begin(f, ENGINE_READ);
	assert_int_equal(partition_get(f->engine, id, &partition), 0);
	left_out = partition->history->left_from && !partition->history->left_until;
	partition_release(f->engine, partition);
	commit(f);
	return left_out;
}

/* For room it has lost its policy, and goes by the device's when it comes back. */
static void test_one_that_lost_its_policy_takes_part_again(void **state)
{
	struct fixture *f = *state;

	leave_others_out(f);
	assert_true(is_left_out(f, OTHERS));
	remove_partition(f, OTHERS);
	assert_int_equal(standing_give_up(f->engine), 0);
	f->now = 20 * SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(8 * SECOND)), 0);
	assert_false(is_left_out(f, OTHERS));
	write_others(f, 22 * SECOND, 's');
	write_others(f, 24 * SECOND, 't');
	f->now = 26 * SECOND;
	assert_int_equal(stat_of_device_at(f, OTHERS, 11 * SECOND), -ENOENT);
	assert_int_equal(stat_of_device_at(f, OTHERS, 23 * SECOND), 0);
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(23 * SECOND)), 0);
	check_others(f, 's');
}

static bool is_index_taken(struct fixture *f, uint16_t index)
{
	struct partition *root;
	uint64_t element = 0, next;
	size_t count;
	bool more;

	begin(f, ENGINE_READ);
	assert_int_equal(partition_get(f->engine, 0, &root), 0);
	struct idset indices = history_indices(f->engine, root);

	assert_int_equal(idset_list(&indices, index, &element, 1, &count, &more, &next), 0);
	partition_release(f->engine, root);
	commit(f);
	return count && element == index;
}

/* Also if a moment to which the device has gone back would have it, were it not left out. */
static void test_its_index_is_free_when_no_moment_shows_it(void **state)
{
	struct fixture *f = *state;
	struct source source;
	uint16_t index;

	leave_others_out(f);
	index = index_of(f, OTHERS);
	remove_partition(f, OTHERS);
	f->now = 18 * SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(13 * SECOND)), 0);
	assert_int_equal(try_kind(f, 0, ENGINE_RETAIN_NONE, 0), 0);
	write_page(f, 20 * SECOND, 0, 'd');
	f->now = 22 * SECOND;
	standing_review(f->engine);
	assert_false(is_index_taken(f, index));
	begin(f, ENGINE_READ);
	assert_int_equal(source_open(f->engine, index, &source), 0);
	assert_true(source.is_gone);
	source_close(f->engine, &source);
	commit(f);
	crash(f);
	assert_int_equal(is_there(f, OTHERS), -ENOENT);
	create(f, CLONE);
	assert_int_equal(index_of(f, CLONE), index);
}

/* Who has the index again, and the ID, is not taken for one that had the ID in between. */
/*
 * The index of the removed one shows its last state again as soon as nothing hides it. Who has its
 * ID by then has another index, which is not taken for the free one.
 */
static void test_who_has_its_id_keeps_its_own_index(void **state)
{
	struct fixture *f = *state;
	uint16_t index, other;
	uint32_t version;

	leave_others_out(f);
	index = index_of(f, OTHERS);
	remove_partition(f, OTHERS);
	f->now = 18 * SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(13 * SECOND)), 0);
	f->now = 19 * SECOND;
	create(f, OTHERS);
	other = index_of(f, OTHERS);
	assert_int_not_equal(other, index);
	write_others(f, 20 * SECOND, 'x');
	version = take_snapshot(f, OTHERS, "kept");
	write_others(f, 21 * SECOND, 'y');
	assert_int_equal(try_kind(f, 0, ENGINE_RETAIN_NONE, 0), 0);
	write_page(f, 22 * SECOND, 0, 'd');
	f->now = 24 * SECOND;
	standing_review(f->engine);
	for (int start = 0; start < 2; start++) {
		assert_false(is_index_taken(f, index));
		assert_true(is_index_taken(f, other));
		assert_int_equal(index_of(f, OTHERS), other);
		check_others(f, 'y');
		check_page_of(f, OTHERS, version, 0, 'x');
		crash(f);
	}
}

static void test_a_version_has_who_had_the_id_then(void **state)
{
	struct fixture *f = *state;
	uint32_t version;
	uint16_t index;

	leave_others_out(f);
	index = index_of(f, OTHERS);
	remove_partition(f, OTHERS);
	f->now = 18 * SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(13 * SECOND)), 0);
	create(f, OTHERS);
	assert_int_not_equal(index_of(f, OTHERS), index);
	write_others(f, 20 * SECOND, 'z');
	f->now = 22 * SECOND;
	version = take_snapshot(f, 0, NULL);
	remove_partition(f, OTHERS);
	assert_int_equal(try_kind(f, 0, ENGINE_RETAIN_NONE, 0), 0);
	write_page(f, 24 * SECOND, 0, 'd');
	f->now = 26 * SECOND;
	standing_review(f->engine);
	crash(f);
	create(f, OTHERS);
	assert_int_equal(index_of(f, OTHERS), index);
	check_page_of(f, OTHERS, version, 0, 'z');
}

/*
 * A partition that keeps nothing from its beginning on. With its objects it fills some segments of
 * each row, for either index: what is written again is absorbed by buffers that gather, so each
 * page is written once.
 */
static void create_full(struct fixture *f, uint64_t partition)
{
	enum { OBJECTS = 40 };
	const struct engine_retention none = { .kind = ENGINE_RETAIN_NONE };
	uint64_t id;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, partition, NULL), 0);
	assert_int_equal(engine_create(f->txn, partition, ENGINE_USER_OBJECT, 0, OBJECTS, &id), 0);
	assert_int_equal(engine_retention_set(f->txn, partition, &none, false), 0);
	commit(f);
	f->now += SECOND;
	for (uint64_t n = 0; n < OBJECTS; n++)
		write_object(f, partition, id + n, f->now, (char)n);
}

/*
 * Nothing is left of it, but that it was in the table of partitions. `used_again`: the partition
 * that has its index then; 0: none has.
 */
static void roll_back_to_what_was_never_shown(struct fixture *f, uint64_t used_again)
{
	uint16_t index;

	write_twice(f);
	f->now = 11 * SECOND;
	create_full(f, CLONE);
	index = index_of(f, CLONE);
	write_page(f, 14 * SECOND, 0, 'c');
	f->now = 16 * SECOND;
	remove_partition(f, CLONE);
	/*
	 * Nothing of it stays in the rows' buffers, where no merge comes, nor beside what is
	 * needed, where none is worth it.
	 */
	create_full(f, FILLER);
	remove_partition(f, FILLER);
	write_page(f, 18 * SECOND, 0, 'd');
	assert_true(is_index_taken(f, index));
	for (int n = 0; n < 6; n++) {
		f->now += 2 * SECOND;
		merge_all(f);
	}
	assert_false(is_index_taken(f, index));
	/* Whoever has the index now, also under the ID, was not there then. */
	if (used_again) {
		crash(f);
		create(f, used_again);
		assert_int_equal(index_of(f, used_again), index);
	}
	f->now += 2 * SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(15 * SECOND)), 0);
	for (int start = 0; start < 2; start++) {
		check_page(f, 0, 0, 'c');
		assert_int_equal(is_there(f, CLONE), -ENOENT);
		assert_int_equal(stat_of_device_at(f, CLONE, 15 * SECOND), -ENOENT);
		crash(f);
	}
	assert_int_equal(is_there(f, CLONE + 1), -ENOENT);
	create(f, CLONE);
	assert_int_equal(is_there(f, CLONE), 0);
}

static void test_one_that_no_moment_ever_showed_is_not_brought_back(void **state)
{
	roll_back_to_what_was_never_shown(*state, 0);
}

static void test_nor_is_who_has_its_index(void **state)
{
	roll_back_to_what_was_never_shown(*state, CLONE + 1);
}

static void test_nor_is_who_has_its_index_and_its_id(void **state)
{
	roll_back_to_what_was_never_shown(*state, CLONE);
}

/* One that was made behind the moment goes, as any other. */
static void test_one_that_was_made_later_goes(void **state)
{
	struct fixture *f = *state;

	write_twice(f);
	f->now = 11 * SECOND;
	create(f, CLONE);
	f->now = 13 * SECOND;
	assert_int_equal(try_kind(f, CLONE, ENGINE_RETAIN_NONE, 0), 0);
	f->now = 15 * SECOND;
	assert_int_equal(try_rollback(f, ENGINE_RESCUE, 0, at_time(8 * SECOND)), 0);
	assert_int_equal(is_there(f, CLONE), -ENOENT);
}

static void test_a_rollback_that_is_aborted_leaves_nothing_behind(void **state)
{
	struct fixture *f = *state;

	leave_others_out(f);
	begin(f, ENGINE_RESCUE);
	assert_int_equal(engine_rollback(f->txn, 0, at_time(11 * SECOND)), 0);
	engine_abort(f->txn);
	f->txn = NULL;
	check_page(f, 0, 0, 'c');
	check_others(f, 'r');
	assert_int_equal(f->engine->past->hidden.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLASH_TEST(test_a_partition_that_keeps_nothing_is_left_out_of_moments),
		FLASH_TEST(test_with_another_policy_it_takes_part_again),
		FLASH_TEST(test_the_devices_intervals_that_leave_it_out_are_passed_over),
		FLASH_TEST(test_when_it_keeps_nothing_again_it_is_left_out_in_between_too),
		FLASH_TEST(test_a_version_of_the_device_has_it),
		FLASH_TEST(test_one_that_was_removed_stays_so),
		FLASH_TEST(test_one_that_lost_its_policy_takes_part_again),
		FLASH_TEST(test_its_index_is_free_when_no_moment_shows_it),
		FLASH_TEST(test_who_has_its_id_keeps_its_own_index),
		FLASH_TEST(test_a_version_has_who_had_the_id_then),
		FLASH_TEST(test_one_that_no_moment_ever_showed_is_not_brought_back),
		FLASH_TEST(test_nor_is_who_has_its_index),
		FLASH_TEST(test_nor_is_who_has_its_index_and_its_id),
		FLASH_TEST(test_one_that_was_made_later_goes),
		FLASH_TEST(test_a_rollback_that_is_aborted_leaves_nothing_behind),
	};

	return cmocka_run_group_tests_name("history_left_out", tests, NULL, NULL);
}
