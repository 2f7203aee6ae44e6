/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Versions, moments, going back, the log, differences, and what is kept. */
#include <stdio.h>

#include "tests/engine/history_fixture.h"

#include "engine/times.h"
#include "engine/versions.h"

#define SECOND 1000

/* A partition with one object that says "one". */
static void make_object(struct fixture *f)
{
	begin_with_object(f);
	write_text(f, 0, "one");
	commit(f);
}

/* ---- versions ---- */

static void test_versions_have_names_that_are_found_and_taken_once(void **state)
{
	struct fixture *f = *state;
	struct engine_version version;
	uint32_t number;

	make_object(f);
	assert_int_equal(take_snapshot(f, PID, "before"), 1);
	assert_int_equal(take_snapshot(f, 0, "all"), ENGINE_DEVICE_VERSION_FIRST);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(f->txn, PID, "before", &number), -EEXIST);
	assert_int_equal(engine_snapshot(f->txn, PID, "", &number), -EINVAL);
	assert_int_equal(engine_version_find(f->txn, PID, "before", &number), 0);
	assert_int_equal(number, 1);
	assert_int_equal(engine_version_find(f->txn, PID, "all", &number), 0);
	assert_int_equal(number, ENGINE_DEVICE_VERSION_FIRST);
	assert_int_equal(engine_version_find(f->txn, PID, "after", &number), -ENOENT);
	assert_int_equal(engine_version_next(f->txn, PID, 0, &version), 0);
	assert_int_equal(version.version, 1);
	assert_string_equal(version.name, "before");
	assert_int_equal(version.objects, 1);
	assert_int_equal(version.used_bytes, PAGE);
	assert_int_equal(version.time_ms, f->now);
	assert_int_equal(engine_version_next(f->txn, PID, version.position + 1, &version), 0);
	assert_int_equal(version.version, ENGINE_DEVICE_VERSION_FIRST);
	assert_int_equal(engine_version_next(f->txn, PID, version.position + 1, &version), -ENOENT);
	abort_all(f);
}

static void test_a_dropped_version_is_gone_and_its_name_is_free(void **state)
{
	struct fixture *f = *state;
	struct engine_version version;

	make_object(f);
	for (uint32_t number = 1; number <= 5; number++)
		assert_int_equal(take_snapshot(f, PID, number == 3 ? "three" : NULL), number);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_version_drop(f->txn, PID, 3), 0);
	assert_int_equal(engine_version_drop(f->txn, PID, 3), -ENOENT);
	assert_int_equal(engine_version_drop(f->txn, PID, 2), 0);
	commit(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_version_next(f->txn, PID, 0, &version), 0);
	assert_int_equal(version.version, 1);
	assert_int_equal(engine_version_next(f->txn, PID, version.position + 1, &version), 0);
	assert_int_equal(version.version, 4);
	commit(f);
	check_absent(f, at_version(object(OID), 3));
	check_text(f, at_version(object(OID), 4), "one");
	assert_int_equal(take_snapshot(f, PID, "three"), 6);
}

static void test_a_version_of_the_device_shows_removed_partitions(void **state)
{
	struct fixture *f = *state;
	uint64_t ids[2], next;
	size_t count;

	make_object(f);
	take_snapshot(f, 0, NULL);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(f->txn, PID, true), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, PID + 1, NULL), 0);
	assert_int_equal(engine_create(f->txn, PID + 1, ENGINE_USER_OBJECT, OID, 1, NULL), 0);
	commit(f);
	check_text(f, at_version(object(OID), ENGINE_DEVICE_VERSION_FIRST), "one");
	begin(f, ENGINE_READ);
	assert_int_equal(engine_list(f->txn, at_version(root, ENGINE_DEVICE_VERSION_FIRST),
				     ENGINE_LIST_PARTITIONS, 0, ids, 2, &count, &next),
			 0);
	assert_int_equal(count, 1);
	assert_int_equal(ids[0], PID);
	commit(f);
	roll_back(f, 0, at_number(ENGINE_DEVICE_VERSION_FIRST));
	check_text(f, object(OID), "one");
	check_absent(f, (struct engine_address){ .partition = PID + 1 });
	crash(f);
	check_text(f, object(OID), "one");
}

/* ---- moments ---- */

static void test_a_time_shows_what_was_there_then(void **state)
{
	static const char *const texts[] = { "at 10 s", "at 20 s", "at 30 s, longer" };
	struct fixture *f = *state;

	make_object(f);
	for (uint64_t n = 0; n < 3; n++) {
		f->now = (10 + 10 * n) * SECOND;
		put_text(f, object(OID), texts[n]);
	}
	f->now = 60 * SECOND;
	check_text(f, at_version(object(OID), view_of(f, PID, at_time(30 * SECOND))), texts[2]);
	/* After a crash it is not known any more when in its second the last commit was. */
	for (int reopened = 0; reopened < 2; reopened++) {
		for (uint64_t n = 0; n < 3; n++) {
			uint64_t ms = (10 + 10 * n) * SECOND;

			check_text(f,
				   at_version(object(OID), view_of(f, PID, at_time(ms + SECOND))),
				   texts[n]);
			check_text(f, at_version(object(OID), view_of(f, PID, at_time(ms + 9999))),
				   texts[n]);
		}
		crash(f);
	}
	roll_back(f, PID, at_time(25 * SECOND));
	check_text(f, object(OID), texts[1]);
	/* A rollback can be rolled back. */
	roll_back(f, PID, at_time(45 * SECOND));
	check_text(f, object(OID), texts[2]);
}

static void test_a_time_inside_a_slot_means_the_end_of_the_one_before(void **state)
{
	struct fixture *f = *state;

	make_object(f);
	f->now = 10 * SECOND;
	put_text(f, object(OID), "slot");
	f->now += 300;
	put_text(f, object(OID), "slot goes on");
	f->now = 20 * SECOND;
	put_text(f, object(OID), "later");
	check_text(f, at_version(object(OID), view_of(f, PID, at_time(10 * SECOND + 299))), "one");
	check_text(f, at_version(object(OID), view_of(f, PID, at_time(10 * SECOND + 300))),
		   "slot goes on");
}

static void test_a_moment_before_a_partition_is_none(void **state)
{
	struct fixture *f = *state;
	uint64_t sequence;

	f->now = 10 * SECOND;
	make_object(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_moment_resolve(f->txn, PID, at_time(5 * SECOND), &sequence),
			 -ENOENT);
	assert_int_equal(engine_moment_resolve(f->txn, PID, at_sequence(1), &sequence), -ENOENT);
	assert_int_equal(engine_moment_resolve(f->txn, PID, at_number(1), &sequence), -ENOENT);
	commit(f);
}

/* Nobody who reads at a number is ever shown another moment. */
static void test_a_view_that_is_in_use_keeps_its_number(void **state)
{
	const struct engine_moment present = { .kind = ENGINE_NOW };
	struct fixture *f = *state;
	uint32_t first, again, none;

	make_object(f);
	first = view_of(f, PID, at_sequence(UINT32_MAX));
	f->now += 2 * SECOND;
	put_text(f, object(OID), "two");
	check_text(f, at_version(object(OID), first), "one");
	again = view_of(f, PID, present);
	assert_int_not_equal(again, first);
	check_text(f, at_version(object(OID), again), "two");
	assert_int_equal(view_of(f, PID, present), again);
	for (uint32_t n = 0; n < ENGINE_VIEWS - 2; n++) {
		f->now += 100;
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_snapshot(f->txn, PID, NULL, NULL), 0);
		commit(f);
		view_of(f, PID, present);
	}
	f->now += 2 * SECOND;
	put_text(f, object(OID), "three");
	begin(f, ENGINE_READ);
	assert_int_equal(engine_view_open(f->txn, PID, present, &none), -EFBIG);
	commit(f);
	check_text(f, at_version(object(OID), first), "one");
	check_text(f, at_version(object(OID), again), "two");
	/* One is read at, the other is not. */
	f->now += ENGINE_VIEW_UNUSED_MS - SECOND;
	check_text(f, at_version(object(OID), first), "one");
	f->now += 2 * SECOND;
	for (uint32_t n = 0; n < ENGINE_VIEWS - 1; n++) {
		f->now += 100;
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_snapshot(f->txn, PID, NULL, NULL), 0);
		commit(f);
		assert_int_not_equal(view_of(f, PID, present), first);
	}
	check_text(f, at_version(object(OID), first), "one");
	check_text(f, at_version(object(OID), again), "three");
}

static void test_a_view_ends_with_the_engine(void **state)
{
	struct fixture *f = *state;
	uint32_t first;

	make_object(f);
	first = view_of(f, PID, at_sequence(UINT32_MAX));
	crash(f);
	f->now += SECOND;
	check_absent(f, at_version(object(OID), first));
	crash(f);
	assert_int_not_equal(view_of(f, PID, at_sequence(UINT32_MAX)), first);
	check_absent(f, at_version(object(OID), first));
}

/* ---- going back ---- */

static void test_a_rollback_keeps_versions_and_their_numbers(void **state)
{
	struct fixture *f = *state;

	make_object(f);
	take_snapshot(f, PID, "one");
	put_text(f, object(OID), "two");
	take_snapshot(f, PID, "two");
	put_text(f, object(OID), "three");
	roll_back(f, PID, at_number(1));
	for (int crashed = 0; crashed < 2; crashed++) {
		check_text(f, object(OID), "one");
		check_text(f, at_version(object(OID), 2), "two");
		begin(f, ENGINE_READ);
		assert_int_equal(stat_of(f, partition).version, 3);
		commit(f);
		crash(f);
	}
	put_text(f, object(OID), "another three");
	assert_int_equal(take_snapshot(f, PID, NULL), 3);
	roll_back(f, PID, at_number(2));
	check_text(f, object(OID), "two");
	roll_back(f, PID, at_number(3));
	check_text(f, object(OID), "another three");
}

static void test_an_aborted_rollback_changed_nothing(void **state)
{
	struct fixture *f = *state;

	make_object(f);
	take_snapshot(f, PID, NULL);
	put_text(f, object(OID), "two");
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback(f->txn, PID, at_number(1)), 0);
	assert_data(f, object(OID), "one", 3);
	assert_int_equal(engine_write(f->txn, object(OID), 0, "ONE", 3), 0);
	abort_all(f);
	check_text(f, object(OID), "two");
	crash(f);
	check_text(f, object(OID), "two");
	begin(f, ENGINE_WRITE);
	write_text(f, 0, "x");
	assert_int_equal(engine_rollback(f->txn, PID, at_number(1)), -EINVAL);
	abort_all(f);
}

static void test_changes_may_follow_a_rollback_in_its_transaction(void **state)
{
	struct fixture *f = *state;

	make_object(f);
	take_snapshot(f, PID, NULL);
	put_text(f, object(OID), "two");
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback(f->txn, PID, at_number(1)), 0);
	assert_int_equal(engine_write(f->txn, object(OID), 3, " and a half", 11), 0);
	commit(f);
	crash(f);
	check_text(f, object(OID), "one and a half");
}

static int try_rollback(struct fixture *f, uint64_t partition_id, struct engine_moment to)
{
	int result;

	begin(f, ENGINE_WRITE);
	result = engine_rollback(f->txn, partition_id, to);
	if (result)
		abort_all(f);
	else
		commit(f);
	return result;
}

static uint32_t rollbacks_of(struct fixture *f, uint64_t partition_id)
{
	struct engine_history history;

	begin(f, ENGINE_READ);
	assert_int_equal(engine_history(f->txn, partition_id, &history), 0);
	commit(f);
	return history.rollbacks;
}

/* As long as all that they led to can be reached. Others have their own. */
static void test_rollbacks_of_a_partition_run_out_with_an_error(void **state)
{
	const struct engine_retention none = { .kind = ENGINE_RETAIN_NONE };
	const uint64_t other_id = PID + 1;
	struct fixture *f = *state;
	uint32_t device_version;

	make_object(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, other_id, NULL), 0);
	commit(f);
	take_snapshot(f, PID, NULL);
	take_snapshot(f, other_id, NULL);
	device_version = take_snapshot(f, 0, NULL);
	for (int n = 0; n < ENGINE_ROLLBACKS_OF_ONE; n++)
		roll_back(f, PID, at_number(1));
	assert_int_equal(try_rollback(f, PID, at_number(1)), -EFBIG);
	assert_int_equal(try_rollback(f, other_id, at_number(1)), 0);
	assert_int_equal(try_rollback(f, 0, at_number(device_version)), 0);
	crash(f);
	check_text(f, object(OID), "one");
	assert_int_equal(rollbacks_of(f, PID), ENGINE_ROLLBACKS_OF_ONE + 1);
	assert_int_equal(try_rollback(f, PID, at_number(1)), -EFBIG);
	/* Once it keeps less, there is room among them again. */
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, PID, &none, false), 0);
	commit(f);
	put_text(f, object(OID), "two");
	assert_int_equal(try_rollback(f, PID, at_number(1)), 0);
	check_text(f, object(OID), "one");
	crash(f);
	check_text(f, object(OID), "one");
	assert_int_equal(rollbacks_of(f, PID), ENGINE_ROLLBACKS_OF_ONE + 1);
}

/* What is hidden stays so, and versions of lines that were left show what they did. */
static void test_rollbacks_that_nothing_shows_make_room_for_others(void **state)
{
	const struct engine_retention none = { .kind = ENGINE_RETAIN_NONE };
	struct fixture *f = *state;
	struct engine_address left = object(OID);
	char text[32];

	make_object(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, PID, &none, false), 0);
	commit(f);
	take_snapshot(f, PID, NULL);
	roll_back(f, PID, at_number(1));
	put_text(f, object(OID), "a line that was left");
	left.version = take_snapshot(f, PID, NULL);
	for (int n = 0; n < 40; n++) {
		roll_back(f, PID, at_number(1));
		check_text(f, object(OID), "one");
		snprintf(text, sizeof(text), "nobody sees %d", n);
		put_text(f, object(OID), text);
		if (n % 10 == 3) {
			/* One that is taken back has taken nobody's place. */
			begin(f, ENGINE_WRITE);
			assert_int_equal(engine_rollback(f->txn, PID, at_number(1)), 0);
			abort_all(f);
			check_text(f, object(OID), text);
		}
		check_text(f, left, "a line that was left");
		if (n % 10 == 7)
			crash(f);
	}
	assert_true(rollbacks_of(f, PID) < 10);
	roll_back(f, PID, at_number(left.version));
	check_text(f, object(OID), "a line that was left");
	roll_back(f, PID, at_number(1));
	check_text(f, object(OID), "one");
}

static void test_rollbacks_of_an_earlier_partition_are_none_of_a_later_one(void **state)
{
	const uint64_t later = PID + 1;
	struct fixture *f = *state;

	make_object(f);
	take_snapshot(f, PID, NULL);
	for (int n = 0; n < ENGINE_ROLLBACKS_OF_ONE; n++)
		roll_back(f, PID, at_number(1));
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_remove(f->txn, PID, true), 0);
	commit(f);
	/* Opened again, the engine gives the first index that is free. */
	crash(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, later, NULL), 0);
	commit(f);
	assert_int_equal(rollbacks_of(f, later), 0);
	take_snapshot(f, later, NULL);
	assert_int_equal(try_rollback(f, later, at_number(1)), 0);
	assert_int_equal(rollbacks_of(f, later), 1);
}

/* What a clone stood on is looked for from one of its rollbacks to the one before, so it needs them all. */
static void test_rollbacks_of_a_clone_stay_although_nothing_shows_them(void **state)
{
	const struct engine_retention none = { .kind = ENGINE_RETAIN_NONE };
	const struct engine_moment now = { .kind = ENGINE_NOW };
	const uint64_t clone = PID + 1;
	struct engine_address address = { .partition = clone, .object = OID };
	struct fixture *f = *state;

	make_object(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, 0, &none, false), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone(f->txn, PID, now, clone, true, NULL), 0);
	commit(f);
	take_snapshot(f, clone, NULL);
	for (uint32_t n = 1; n <= 20; n++) {
		put_text(f, address, "nobody sees it");
		roll_back(f, clone, at_number(1));
		check_text(f, address, "one");
		assert_int_equal(rollbacks_of(f, clone), n);
	}
}

static void test_one_object_goes_back_alone(void **state)
{
	struct fixture *f = *state;
	uint8_t pages[3 * PAGE];
	uint64_t got;

	make_object(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, OID + 1, 1, NULL), 0);
	assert_int_equal(engine_attribute_set(f->txn, object(OID), 1, 1, "then", 4), 0);
	commit(f);
	take_snapshot(f, PID, NULL);
	begin(f, ENGINE_WRITE);
	memset(pages, 7, sizeof(pages));
	assert_int_equal(engine_write(f->txn, object(OID), 0, pages, sizeof(pages)), 0);
	assert_int_equal(engine_write(f->txn, object(OID + 1), 0, "kept", 4), 0);
	assert_int_equal(engine_attribute_set(f->txn, object(OID), 1, 1, "now", 3), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback_object(f->txn, PID, OID, at_number(1)), 0);
	commit(f);
	check_text(f, object(OID), "one");
	check_text(f, object(OID + 1), "kept");
	begin(f, ENGINE_READ);
	uint32_t length;
	assert_int_equal(engine_attribute_get(f->txn, object(OID), 1, 1, pages, 9, &length), 0);
	assert_int_equal(length, 4);
	assert_int_equal(stat_of(f, object(OID)).used_bytes, PAGE);
	assert_int_equal(
		engine_read(f->txn,
			    (struct engine_address){ .partition = PID, .object = OID, .ago = 1 }, 0,
			    pages, sizeof(pages), &got),
		0);
	assert_int_equal(got, sizeof(pages));
	commit(f);
}

static void test_a_removed_object_comes_back_and_a_new_one_goes(void **state)
{
	struct fixture *f = *state;

	make_object(f);
	take_snapshot(f, PID, NULL);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_remove(f->txn, object(OID)), 0);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, OID + 1, 1, NULL), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback_object(f->txn, PID, OID, at_number(1)), 0);
	assert_int_equal(engine_rollback_object(f->txn, PID, OID + 1, at_number(1)), 0);
	assert_int_equal(engine_rollback_object(f->txn, PID, OID + 2, at_number(1)), -ENOENT);
	commit(f);
	check_text(f, object(OID), "one");
	check_absent(f, object(OID + 1));
}

static void test_undo_goes_back_modification_by_modification(void **state)
{
	struct fixture *f = *state;
	char text[24];

	make_object(f);
	for (int n = 1; n <= 5; n++) {
		snprintf(text, sizeof(text), "text %d", n);
		begin(f, ENGINE_WRITE);
		write_text(f, 0, text);
		commit(f);
	}
	for (uint32_t ago = 1; ago < 5; ago++) {
		snprintf(text, sizeof(text), "text %d", (int)(5 - ago));
		check_text(f,
			   (struct engine_address){ .partition = PID, .object = OID, .ago = ago },
			   text);
	}
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PID, OID, 2), 0);
	commit(f);
	check_text(f, object(OID), "text 3");
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PID, OID, 1), 0);
	commit(f);
	check_text(f, object(OID), "text 5");
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PID, OID, 100), -ENOENT);
	assert_int_equal(engine_undo(f->txn, PID, OID, 0), -EINVAL);
	assert_int_equal(
		engine_write(f->txn,
			     (struct engine_address){ .partition = PID, .object = OID, .ago = 1 },
			     0, "x", 1),
		-EROFS);
	abort_all(f);
}

static void test_the_log_tells_creation_changes_and_removal(void **state)
{
	struct fixture *f = *state;
	struct engine_modification found;

	make_object(f); /* at 1 s */
	f->now = 5 * SECOND;
	put_text(f, object(OID), "longer");
	begin(f, ENGINE_READ); /* is no modification */
	assert_int_equal(engine_accessed(f->txn, object(OID), true, true), 0);
	commit(f);
	assert_int_equal(engine_flush(f->engine), 0);
	f->now = 9 * SECOND;
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_remove(f->txn, object(OID)), 0);
	commit(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_log_next(f->txn, PID, OID, RECORD_NEWEST, &found), 0);
	assert_true(found.removed);
	assert_int_equal(found.time_ms, 9 * SECOND);
	assert_int_equal(engine_log_next(f->txn, PID, OID, found.sequence - 1, &found), 0);
	assert_false(found.removed || found.created);
	assert_int_equal(found.length, 6);
	assert_int_equal(found.time_ms, 5 * SECOND);
	assert_int_equal(engine_log_next(f->txn, PID, OID, found.sequence - 1, &found), 0);
	assert_true(found.created);
	assert_int_equal(found.length, 3);
	assert_int_equal(found.time_ms, 1 * SECOND);
	assert_int_equal(engine_log_next(f->txn, PID, OID, found.sequence - 1, &found), -ENOENT);
	commit(f);
}

/* ---- differences ---- */

static void expect_difference(struct fixture *f, struct engine_diff_cursor *cursor,
			      struct engine_difference wanted)
{
	struct engine_difference found;

	assert_int_equal(engine_diff_next(f->txn, PID, at_number(1),
					  (struct engine_moment){ .kind = ENGINE_NOW }, cursor,
					  &found),
			 0);
	assert_int_equal(found.kind, wanted.kind);
	assert_int_equal(found.object, wanted.object);
	assert_int_equal(found.offset, wanted.offset);
	assert_int_equal(found.length, wanted.length);
}

static void test_differences_are_exactly_what_was_changed(void **state)
{
	struct fixture *f = *state;
	struct engine_diff_cursor cursor = { 0 };
	struct engine_difference found;
	uint8_t bytes[6 * PAGE];

	memset(bytes, 1, sizeof(bytes));
	begin_with_object(f);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, OID + 1, 4, NULL), -EINVAL);
	for (uint64_t n = 1; n <= 4; n++)
		assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, OID + n, 1, NULL),
				 0);
	for (uint64_t n = 0; n <= 3; n++)
		assert_int_equal(engine_write(f->txn, object(OID + n), 0, bytes, sizeof(bytes)), 0);
	commit(f);
	take_snapshot(f, PID, NULL);
	begin(f, ENGINE_WRITE);
	memset(bytes, 2, sizeof(bytes));
	assert_int_equal(engine_write(f->txn, object(OID), 10, bytes, 5), 0);
	assert_int_equal(engine_write(f->txn, object(OID), PAGE + 100, bytes, PAGE), 0);
	assert_int_equal(engine_truncate(f->txn, object(OID + 1), 5 * PAGE), 0);
	assert_int_equal(engine_remove(f->txn, object(OID + 2)), 0);
	memset(bytes, 1, sizeof(bytes)); /* put again, but the same */
	assert_int_equal(engine_write(f->txn, object(OID + 3), 0, bytes, sizeof(bytes)), 0);
	assert_int_equal(engine_attribute_set(f->txn, object(OID + 4), 1, 1, "x", 1), 0);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, OID + 9, 1, NULL), 0);
	commit(f);
	begin(f, ENGINE_READ);
	expect_difference(f, &cursor,
			  (struct engine_difference){ ENGINE_DATA_DIFFERS, OID, 10, 5 });
	expect_difference(f, &cursor,
			  (struct engine_difference){ ENGINE_DATA_DIFFERS, OID, PAGE + 100, PAGE });
	expect_difference(
		f, &cursor,
		(struct engine_difference){ ENGINE_LENGTH_DIFFERS, OID + 1, 5 * PAGE, 5 * PAGE });
	expect_difference(
		f, &cursor,
		(struct engine_difference){ ENGINE_OBJECT_REMOVED, OID + 2, 0, 6 * PAGE });
	expect_difference(f, &cursor,
			  (struct engine_difference){ ENGINE_ATTRIBUTES_DIFFER, OID + 4, 0, 0 });
	expect_difference(f, &cursor,
			  (struct engine_difference){ ENGINE_OBJECT_ADDED, OID + 9, 0, 0 });
	for (int again = 0; again < 2; again++)
		assert_int_equal(engine_diff_next(f->txn, PID, at_number(1),
						  (struct engine_moment){ .kind = ENGINE_NOW },
						  &cursor, &found),
				 -ENOENT);
	assert_true(cursor.state == ENGINE_DIFF_DONE);
	commit(f);
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

	make_object(f);
	take_snapshot(f, PID, NULL);
	take_snapshot(f, 0, NULL);
	assert_int_equal(set_retention(f, PID, locked, false), 0);
	assert_int_equal(set_retention(f, PID, weaker, false), -EPERM);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_version_drop(f->txn, PID, 1), -EPERM);
	assert_int_equal(engine_version_drop(f->txn, 0, ENGINE_DEVICE_VERSION_FIRST), -EPERM);
	assert_int_equal(engine_partition_remove(f->txn, PID, true), -EPERM);
	abort_all(f);
	assert_int_equal(engine_reformat(f->engine), -EPERM);
	crash(f);
	weaker.locked_until_ms = 200 * SECOND;
	assert_int_equal(set_retention(f, PID, weaker, false), -EPERM);
	weaker.locked_until_ms = 0;
	assert_int_equal(set_retention(f, PID, weaker, true), 0);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_version_drop(f->txn, PID, 1), 0);
	commit(f);
	assert_int_equal(engine_reformat(f->engine), 0);
}

static void test_a_lock_ends_by_itself(void **state)
{
	const struct engine_retention locked = { .kind = ENGINE_RETAIN_ALL,
						 .locked_until_ms = 100 * SECOND };
	struct fixture *f = *state;

	make_object(f);
	assert_int_equal(set_retention(f, PID, locked, false), 0);
	f->now = 100 * SECOND;
	assert_int_equal(set_retention(f, PID, (struct engine_retention){ 0 }, false), 0);
	assert_int_equal(engine_reformat(f->engine), 0);
}

static void test_retention_none_keeps_versions_only(void **state)
{
	struct fixture *f = *state;
	struct engine_history history;
	uint64_t sequence;

	make_object(f);
	take_snapshot(f, PID, NULL);
	assert_int_equal(set_retention(f, PID,
				       (struct engine_retention){ .kind = ENGINE_RETAIN_NONE },
				       false),
			 0);
	f->now = 10 * SECOND;
	put_text(f, object(OID), "two");
	f->now = 20 * SECOND;
	put_text(f, object(OID), "three");
	begin(f, ENGINE_READ);
	assert_int_equal(engine_moment_resolve(f->txn, PID, at_time(15 * SECOND), &sequence),
			 -ENOENT);
	assert_int_equal(engine_history(f->txn, PID, &history), 0);
	assert_int_equal(history.versions, 1);
	commit(f);
	check_text(f, at_version(object(OID), 1), "one");
	/* What was not kept does not come back with another policy. */
	assert_int_equal(set_retention(f, PID, (struct engine_retention){ 0 }, false), 0);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_moment_resolve(f->txn, PID, at_time(15 * SECOND), &sequence),
			 -ENOENT);
	commit(f);
}

static void test_partitions_take_over_the_policy_of_the_device(void **state)
{
	struct engine_retention all = { .kind = ENGINE_RETAIN_ALL }, found;
	struct fixture *f = *state;

	make_object(f);
	assert_int_equal(set_retention(f, 0, all, false), 0);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_retention_get(f->txn, PID, &found), 0);
	assert_int_equal(found.kind, ENGINE_RETAIN_ALL);
	commit(f);
	assert_int_equal(set_retention(f, PID,
				       (struct engine_retention){ .kind = ENGINE_RETAIN_NONE },
				       false),
			 0);
	crash(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_retention_get(f->txn, PID, &found), 0);
	assert_int_equal(found.kind, ENGINE_RETAIN_NONE);
	assert_int_equal(engine_retention_get(f->txn, 0, &found), 0);
	assert_int_equal(found.kind, ENGINE_RETAIN_ALL);
	commit(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_versions_have_names_that_are_found_and_taken_once),
		TEST(test_a_dropped_version_is_gone_and_its_name_is_free),
		TEST(test_a_version_of_the_device_shows_removed_partitions),
		TEST(test_a_time_shows_what_was_there_then),
		TEST(test_a_time_inside_a_slot_means_the_end_of_the_one_before),
		TEST(test_a_moment_before_a_partition_is_none),
		TEST(test_a_view_that_is_in_use_keeps_its_number),
		TEST(test_a_view_ends_with_the_engine),
		TEST(test_a_rollback_keeps_versions_and_their_numbers),
		TEST(test_an_aborted_rollback_changed_nothing),
		TEST(test_changes_may_follow_a_rollback_in_its_transaction),
		TEST(test_rollbacks_of_a_partition_run_out_with_an_error),
		TEST(test_rollbacks_that_nothing_shows_make_room_for_others),
		TEST(test_rollbacks_of_an_earlier_partition_are_none_of_a_later_one),
		TEST(test_rollbacks_of_a_clone_stay_although_nothing_shows_them),
		TEST(test_one_object_goes_back_alone),
		TEST(test_a_removed_object_comes_back_and_a_new_one_goes),
		TEST(test_undo_goes_back_modification_by_modification),
		TEST(test_the_log_tells_creation_changes_and_removal),
		TEST(test_differences_are_exactly_what_was_changed),
		TEST(test_a_locked_retention_is_shortened_by_the_administrator_only),
		TEST(test_a_lock_ends_by_itself),
		TEST(test_retention_none_keeps_versions_only),
		TEST(test_partitions_take_over_the_policy_of_the_device),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
