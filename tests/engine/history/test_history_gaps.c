/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Partitions that were gone for a while, until a rollback of the device brought them back: moments
 * from then are none of theirs.
 */
#include "tests/engine/fixture.h"

static const uint64_t other_id = PARTITION + 1;

static void pass(struct fixture *f)
{
	f->now += 3 * SECOND;
}

/* With one object that says so. */
static void make_partition(struct fixture *f, uint64_t id, const char *text)
{
	const struct engine_address address = { .partition = id, .object = OBJECT };

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, id, NULL), 0);
	assert_int_equal(engine_create(f->txn, id, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
	assert_int_equal(engine_write(f->txn, address, 0, text, strlen(text)), 0);
	commit(f);
}

/* The last boundary, as a number. */
static struct engine_moment moment_of_device(struct fixture *f)
{
	uint64_t sequence;

	begin(f, ENGINE_READ);
	assert_int_equal(engine_moment_resolve(f->txn, 0, at_time(f->now), &sequence), 0);
	commit(f);
	return at_sequence(sequence);
}

/* PARTITION was there, gone, and is there again with "one". */
struct gap {
	uint32_t before, within; /* versions of the device */
	uint64_t ms;             /* a moment in which it was gone */
	struct engine_moment sequence;
};

static struct gap note_gap(struct fixture *f, uint32_t before)
{
	struct gap gap = { .before = before };

	pass(f);
	gap.ms = f->now;
	gap.sequence = moment_of_device(f);
	gap.within = take_snapshot(f, 0, NULL);
	pass(f);
	return gap;
}

/* It was removed. */
static struct gap make_gap(struct fixture *f)
{
	struct gap gap;
	uint32_t before;

	make_partition(f, PARTITION, "one");
	pass(f);
	before = take_snapshot(f, 0, NULL);
	pass(f);
	remove_partition(f, PARTITION);
	gap = note_gap(f, before);
	roll_back(f, 0, at_number(before));
	pass(f);
	return gap;
}

/* A rollback of the device to before its creation took it away. */
static struct gap make_gap_by_rollback(struct fixture *f)
{
	struct gap gap;
	uint32_t before, empty;

	make_partition(f, other_id, "another one's");
	pass(f);
	empty = take_snapshot(f, 0, NULL);
	pass(f);
	make_partition(f, PARTITION, "one");
	pass(f);
	before = take_snapshot(f, 0, NULL);
	pass(f);
	roll_back(f, 0, at_number(empty));
	gap = note_gap(f, before);
	roll_back(f, 0, at_number(before));
	pass(f);
	return gap;
}

static void check_partition_stays(struct fixture *f, const struct gap *gap)
{
	const struct engine_moment moments[] = { at_number(gap->within), at_time(gap->ms),
						 gap->sequence };

	for (size_t n = 0; n < sizeof(moments) / sizeof(moments[0]); n++) {
		assert_int_equal(try_rollback(f, ENGINE_HISTORY, PARTITION, moments[n]), -ENOENT);
		check_text(f, object(OBJECT), "one");
	}
	crash(f);
	check_text(f, object(OBJECT), "one");
	put_text(f, object(OBJECT), "two");
	assert_int_equal(try_rollback(f, ENGINE_HISTORY, PARTITION, at_number(gap->before)), 0);
	check_text(f, object(OBJECT), "one");
	crash(f);
	check_text(f, object(OBJECT), "one");
	remove_partition(f, PARTITION);
}

static void test_a_partition_does_not_go_back_to_when_it_had_been_removed(void **state)
{
	struct gap gap = make_gap(*state);

	check_partition_stays(*state, &gap);
}

static void test_a_partition_does_not_go_back_to_when_a_rollback_had_taken_it(void **state)
{
	struct gap gap = make_gap_by_rollback(*state);

	check_partition_stays(*state, &gap);
}

static void test_a_locked_partition_stays_too_and_can_be_unlocked(void **state)
{
	struct fixture *f = *state;
	struct engine_retention policy = { .kind = ENGINE_RETAIN_SNAPSHOTS };
	struct gap gap = make_gap(f);

	policy.locked_until_ms = f->now + 1000 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, PARTITION, &policy, false), 0);
	commit(f);
	assert_int_equal(try_rollback(f, ENGINE_HISTORY, PARTITION, at_number(gap.within)),
			 -ENOENT);
	assert_int_equal(try_rollback(f, ENGINE_HISTORY, PARTITION, at_time(gap.ms)), -ENOENT);
	policy.locked_until_ms = 0;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, PARTITION, &policy, true), 0);
	commit(f);
	check_text(f, object(OBJECT), "one");
}

/* What else is asked of a moment. */
static void check_refused(struct fixture *f, struct engine_moment moment)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };
	struct engine_diff_cursor cursor = { 0 };
	struct engine_difference difference;
	uint64_t sequence, done, total, clone;
	uint32_t version;

	begin(f, ENGINE_READ);
	assert_int_equal(engine_moment_resolve(f->txn, PARTITION, moment, &sequence), -ENOENT);
	assert_int_equal(engine_object_moment_resolve(f->txn, PARTITION, moment, &sequence),
			 -ENOENT);
	assert_int_equal(engine_view_open(f->txn, PARTITION, moment, &version), -ENOENT);
	assert_int_equal(engine_diff_next(f->txn, PARTITION, moment, now, &cursor, &difference),
			 -ENOENT);
	assert_int_not_equal(cursor.state, ENGINE_DIFF_DONE);
	assert_int_equal(engine_diff_next(f->txn, PARTITION, now, moment, &cursor, &difference),
			 -ENOENT);
	/* The device has no moments to compare. */
	assert_int_equal(engine_diff_next(f->txn, 0, now, now, &cursor, &difference), -ENOENT);
	assert_int_equal(
		engine_diff_progress(f->txn, PARTITION, moment, now, &cursor, &done, &total),
		-ENOENT);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback_object(f->txn, PARTITION, OBJECT, moment), -ENOENT);
	assert_int_equal(engine_clone(f->txn, PARTITION, moment, PARTITION + 9, true, &clone),
			 -ENOENT);
	abort_all(f);
}

static void test_nothing_is_shown_or_taken_from_when_it_was_gone(void **state)
{
	struct fixture *f = *state;
	struct gap gap = make_gap(f);

	check_refused(f, at_number(gap.within));
	check_refused(f, at_time(gap.ms));
	check_refused(f, gap.sequence);
	check_refused(f, at_number(view_of(f, 0, at_time(gap.ms))));
	check_absent(f, at_version(object(OBJECT), gap.within));
	check_text(f, at_version(object(OBJECT), gap.before), "one");
	check_text(f, at_version(object(OBJECT), view_of(f, PARTITION, at_number(gap.before))),
		   "one");
}

/*
 * With its ID, but with a past of its own; under another index, and, opened again, under the same
 * one.
 */
static void test_what_another_partition_of_its_id_was_is_none_of_its_past(void **state)
{
	struct fixture *f = *state;
	struct gap gap;

	for (int same_index = 0; same_index < 2; same_index++) {
		uint32_t before;

		if (same_index == 0)
			make_partition(f, PARTITION, "one");
		pass(f);
		before = take_snapshot(f, 0, NULL);
		pass(f);
		remove_partition(f, PARTITION);
		if (same_index)
			crash(f);
		make_partition(f, PARTITION, "another one's");
		gap = note_gap(f, before);
		roll_back(f, 0, at_number(before));
		pass(f);
		check_refused(f, at_number(gap.within));
		check_refused(f, at_time(gap.ms));
		check_text(f, at_version(object(OBJECT), gap.within), "another one's");
		check_text(f, object(OBJECT), "one");
		assert_int_equal(try_rollback(f, ENGINE_HISTORY, PARTITION, at_number(gap.within)),
				 -ENOENT);
		check_text(f, object(OBJECT), "one");
	}
}

/* An object that was written in the slot in which its partition came back. */
static void test_numbers_from_right_behind_a_gap_show_objects_and_what_came_back(void **state)
{
	struct fixture *f = *state;
	struct gap gap = make_gap(f);
	struct engine_modification written;
	uint32_t version;

	remove_partition(f, PARTITION);
	pass(f);
	roll_back(f, 0, at_number(gap.before));
	put_text(f, object(OBJECT), "behind it");
	begin(f, ENGINE_READ);
	assert_int_equal(engine_log_next(f->txn, PARTITION, OBJECT, UINT64_MAX >> 16, &written), 0);
	commit(f);
	put_text(f, object(OBJECT), "later");
	version = view_of(f, PARTITION, at_sequence(written.sequence));
	check_text(f, at_version(object(OBJECT), version), "behind it");
	begin(f, ENGINE_READ);
	assert_int_equal(stat_of(f, at_version(the_partition, version)).members, 1);
	commit(f);
}

/* ---- versions ---- */

/* What is listed of a partition is what `wanted` has, and is counted. */
static void check_versions(struct fixture *f, const uint32_t *wanted, uint32_t count)
{
	struct engine_history history;
	struct engine_version version;
	uint64_t from = 0;

	begin(f, ENGINE_READ);
	for (uint32_t n = 0; n < count; n++) {
		assert_int_equal(engine_version_next(f->txn, PARTITION, from, &version), 0);
		assert_int_equal(version.version, wanted[n]);
		stat_of(f, at_version(the_partition, version.version));
		from = version.position + 1;
	}
	assert_int_equal(engine_version_next(f->txn, PARTITION, from, &version), -ENOENT);
	assert_int_equal(engine_history(f->txn, PARTITION, &history), 0);
	assert_int_equal(history.versions, count);
	commit(f);
}

static void test_versions_of_the_device_from_when_it_was_gone_are_none_of_it(void **state)
{
	struct fixture *f = *state;
	uint32_t wanted[16], count = 0, first;

	take_snapshot(f, 0, NULL);
	pass(f);
	make_partition(f, PARTITION, "one");
	wanted[count++] = first = take_snapshot(f, 0, NULL);
	check_versions(f, wanted, count);
	for (int gap = 0; gap < 4; gap++) {
		for (int n = 0; n < gap; n++) {
			pass(f);
			wanted[count++] = take_snapshot(f, 0, NULL);
		}
		pass(f);
		remove_partition(f, PARTITION);
		for (int n = 0; n < 2 + gap; n++) {
			take_snapshot(f, 0, NULL);
			pass(f);
		}
		roll_back(f, 0, at_number(first));
		check_versions(f, wanted, count);
		/* Its own ones come back with it. */
		wanted[count++] = take_snapshot(f, PARTITION, NULL);
		check_versions(f, wanted, count);
	}
	/* Again and again without anything between. */
	roll_back(f, 0, at_number(first));
	roll_back(f, 0, at_number(first));
	check_versions(f, wanted, count);
	crash(f);
	check_versions(f, wanted, count);
	wanted[count++] = take_snapshot(f, 0, NULL);
	check_versions(f, wanted, count);
}

static void test_versions_from_before_and_behind_a_vanishing_are_listed(void **state)
{
	struct fixture *f = *state;
	struct gap gap = make_gap_by_rollback(f);
	const uint32_t wanted[] = { gap.before, take_snapshot(f, 0, NULL) };

	check_versions(f, wanted, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_partition_does_not_go_back_to_when_it_had_been_removed),
		TEST(test_a_partition_does_not_go_back_to_when_a_rollback_had_taken_it),
		TEST(test_a_locked_partition_stays_too_and_can_be_unlocked),
		TEST(test_nothing_is_shown_or_taken_from_when_it_was_gone),
		TEST(test_what_another_partition_of_its_id_was_is_none_of_its_past),
		TEST(test_numbers_from_right_behind_a_gap_show_objects_and_what_came_back),
		TEST(test_versions_of_the_device_from_when_it_was_gone_are_none_of_it),
		TEST(test_versions_from_before_and_behind_a_vanishing_are_listed),
	};

	return cmocka_run_group_tests_name("history_gaps", tests, NULL, NULL);
}
