/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* One object goes back, its log, and differences between two moments. */
#include <stdio.h>

#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

static void test_one_object_goes_back_alone(void **state)
{
	struct fixture *f = *state;
	uint8_t pages[3 * PAGE];
	uint64_t got;

	make_text_object(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT + 1, 1, NULL),
			 0);
	assert_int_equal(engine_attribute_set(f->txn, object(OBJECT), 1, 1, "then", 4), 0);
	commit(f);
	take_snapshot(f, PARTITION, NULL);
	begin(f, ENGINE_WRITE);
	memset(pages, 7, sizeof(pages));
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, pages, sizeof(pages)), 0);
	assert_int_equal(engine_write(f->txn, object(OBJECT + 1), 0, "kept", 4), 0);
	assert_int_equal(engine_attribute_set(f->txn, object(OBJECT), 1, 1, "now", 3), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback_object(f->txn, PARTITION, OBJECT, at_number(1)), 0);
	commit(f);
	check_text(f, object(OBJECT), "one");
	check_text(f, object(OBJECT + 1), "kept");
	begin(f, ENGINE_READ);
	uint32_t length;
	assert_int_equal(engine_attribute_get(f->txn, object(OBJECT), 1, 1, pages, 9, &length), 0);
	assert_int_equal(length, 4);
	assert_int_equal(stat_of(f, object(OBJECT)).used_bytes, PAGE);
	assert_int_equal(engine_read(f->txn,
				     (struct engine_address){
					     .partition = PARTITION, .object = OBJECT, .ago = 1 },
				     0, pages, sizeof(pages), &got),
			 0);
	assert_int_equal(got, sizeof(pages));
	commit(f);
}

static void test_a_removed_object_comes_back_and_a_new_one_goes(void **state)
{
	struct fixture *f = *state;

	make_text_object(f);
	take_snapshot(f, PARTITION, NULL);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_remove(f->txn, object(OBJECT)), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT + 1, 1, NULL),
			 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback_object(f->txn, PARTITION, OBJECT, at_number(1)), 0);
	assert_int_equal(engine_rollback_object(f->txn, PARTITION, OBJECT + 1, at_number(1)), 0);
	assert_int_equal(engine_rollback_object(f->txn, PARTITION, OBJECT + 2, at_number(1)),
			 -ENOENT);
	commit(f);
	check_text(f, object(OBJECT), "one");
	check_absent(f, object(OBJECT + 1));
}

static void test_undo_goes_back_modification_by_modification(void **state)
{
	struct fixture *f = *state;
	char text[24];

	make_text_object(f);
	for (int n = 1; n <= 5; n++) {
		snprintf(text, sizeof(text), "text %d", n);
		begin(f, ENGINE_WRITE);
		write_text(f, 0, text);
		commit(f);
	}
	for (uint32_t ago = 1; ago < 5; ago++) {
		snprintf(text, sizeof(text), "text %d", (int)(5 - ago));
		check_text(f,
			   (struct engine_address){
				   .partition = PARTITION, .object = OBJECT, .ago = ago },
			   text);
	}
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 2), 0);
	commit(f);
	check_text(f, object(OBJECT), "text 3");
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 1), 0);
	commit(f);
	check_text(f, object(OBJECT), "text 5");
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 100), -ENOENT);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 0), -EINVAL);
	assert_int_equal(engine_write(f->txn,
				      (struct engine_address){
					      .partition = PARTITION, .object = OBJECT, .ago = 1 },
				      0, "x", 1),
			 -EROFS);
	abort_all(f);
}

static void test_the_log_tells_creation_changes_and_removal(void **state)
{
	struct fixture *f = *state;
	struct engine_modification found;

	make_text_object(f); /* at 1 s */
	f->now = 5 * SECOND;
	put_text(f, object(OBJECT), "longer");
	begin(f, ENGINE_READ); /* is no modification */
	assert_int_equal(engine_accessed(f->txn, object(OBJECT), true, true), 0);
	commit(f);
	assert_int_equal(engine_flush(f->engine), 0);
	f->now = 9 * SECOND;
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_remove(f->txn, object(OBJECT)), 0);
	commit(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_log_next(f->txn, PARTITION, OBJECT, RECORD_NEWEST, &found), 0);
	assert_true(found.removed);
	assert_int_equal(found.time_ms, 9 * SECOND);
	assert_int_equal(engine_log_next(f->txn, PARTITION, OBJECT, found.sequence - 1, &found), 0);
	assert_false(found.removed || found.created);
	assert_int_equal(found.length, 6);
	assert_int_equal(found.time_ms, 5 * SECOND);
	assert_int_equal(engine_log_next(f->txn, PARTITION, OBJECT, found.sequence - 1, &found), 0);
	assert_true(found.created);
	assert_int_equal(found.length, 3);
	assert_int_equal(found.time_ms, 1 * SECOND);
	assert_int_equal(engine_log_next(f->txn, PARTITION, OBJECT, found.sequence - 1, &found),
			 -ENOENT);
	commit(f);
}

/* A tombstone has no times: it has that of its slot, or of what was removed if that was later. */
static void test_the_log_has_the_time_of_a_removal(void **state)
{
	struct fixture *f = *state;
	struct engine_modification found;

	make_text_object(f);
	f->now = 5 * SECOND;
	put_text(f, object(OBJECT), "begins a slot");
	f->now = 5 * SECOND + 327;
	put_text(f, object(OBJECT), "is in it, too");
	f->now = 5 * SECOND + 564;
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_remove(f->txn, object(OBJECT)), 0);
	commit(f);
	/* As it does when others follow, in that slot and behind it, and after a restart. */
	for (int after = 0; after < 4; after++) {
		begin(f, ENGINE_READ);
		assert_int_equal(engine_log_next(f->txn, PARTITION, OBJECT, RECORD_NEWEST, &found),
				 0);
		assert_true(found.removed);
		assert_int_equal(found.time_ms, 5 * SECOND + 327);
		assert_int_equal(
			engine_log_next(f->txn, PARTITION, OBJECT, found.sequence - 1, &found), 0);
		assert_int_equal(found.time_ms, 5 * SECOND + 327);
		commit(f);
		f->now = after == 0 ? 5 * SECOND + 900 : (uint64_t)(8 + after) * SECOND;
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT,
					       OBJECT + 1 + (uint64_t)after, 1, NULL),
				 0);
		commit(f);
		if (after == 2)
			crash(f);
	}
}

/* ---- differences ---- */

static void expect_difference(struct fixture *f, struct engine_diff_cursor *cursor,
			      struct engine_difference wanted)
{
	struct engine_difference found;

	assert_int_equal(engine_diff_next(f->txn, PARTITION, at_number(1),
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
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT + 1, 4, NULL),
			 -EINVAL);
	for (uint64_t n = 1; n <= 4; n++)
		assert_int_equal(
			engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT + n, 1, NULL),
			0);
	for (uint64_t n = 0; n <= 3; n++)
		assert_int_equal(engine_write(f->txn, object(OBJECT + n), 0, bytes, sizeof(bytes)),
				 0);
	commit(f);
	take_snapshot(f, PARTITION, NULL);
	begin(f, ENGINE_WRITE);
	memset(bytes, 2, sizeof(bytes));
	assert_int_equal(engine_write(f->txn, object(OBJECT), 10, bytes, 5), 0);
	assert_int_equal(engine_write(f->txn, object(OBJECT), PAGE + 100, bytes, PAGE), 0);
	assert_int_equal(engine_truncate(f->txn, object(OBJECT + 1), 5 * PAGE), 0);
	assert_int_equal(engine_remove(f->txn, object(OBJECT + 2)), 0);
	memset(bytes, 1, sizeof(bytes)); /* put again, but the same */
	assert_int_equal(engine_write(f->txn, object(OBJECT + 3), 0, bytes, sizeof(bytes)), 0);
	assert_int_equal(engine_attribute_set(f->txn, object(OBJECT + 4), 1, 1, "x", 1), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT + 9, 1, NULL),
			 0);
	commit(f);
	begin(f, ENGINE_READ);
	expect_difference(f, &cursor,
			  (struct engine_difference){ ENGINE_DATA_DIFFERS, OBJECT, 10, 5 });
	expect_difference(
		f, &cursor,
		(struct engine_difference){ ENGINE_DATA_DIFFERS, OBJECT, PAGE + 100, PAGE });
	expect_difference(f, &cursor,
			  (struct engine_difference){ ENGINE_LENGTH_DIFFERS, OBJECT + 1, 5 * PAGE,
						      5 * PAGE });
	expect_difference(
		f, &cursor,
		(struct engine_difference){ ENGINE_OBJECT_REMOVED, OBJECT + 2, 0, 6 * PAGE });
	expect_difference(f, &cursor,
			  (struct engine_difference){ ENGINE_ATTRIBUTES_DIFFER, OBJECT + 4, 0, 0 });
	expect_difference(f, &cursor,
			  (struct engine_difference){ ENGINE_OBJECT_ADDED, OBJECT + 9, 0, 0 });
	for (int again = 0; again < 2; again++)
		assert_int_equal(engine_diff_next(f->txn, PARTITION, at_number(1),
						  (struct engine_moment){ .kind = ENGINE_NOW },
						  &cursor, &found),
				 -ENOENT);
	assert_true(cursor.state == ENGINE_DIFF_DONE);
	commit(f);
}

/* ---- one number, two records ---- */

enum { CLONE_OF_CLONE = CLONE + 1 };

static const struct engine_address in_clone = { .partition = CLONE, .object = OBJECT };

/*
 * A clone, and its source, whose object one transaction has changed: there the number is the same.
 */
static void change_both(struct fixture *f)
{
	make_text_object(f);
	make_clone(f, PARTITION, CLONE);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, "of the source", 13), 0);
	assert_int_equal(engine_write(f->txn, in_clone, 0, "of the clone ", 13), 0);
	commit(f);
}

/* Of that object, which said "of the clone " then. */
static void check_difference(struct fixture *f, uint64_t partition, uint32_t version)
{
	struct engine_diff_cursor cursor = { 0 };
	struct engine_difference found;

	begin(f, ENGINE_READ);
	assert_int_equal(engine_diff_next(f->txn, partition, at_number(version),
					  (struct engine_moment){ .kind = ENGINE_NOW }, &cursor,
					  &found),
			 0);
	commit(f);
	assert_int_equal(found.kind, ENGINE_DATA_DIFFERS);
	assert_int_equal(found.offset, 7);
	assert_int_equal(found.length, 6);
}

/* After a refresh the clone has its source's. */
static void test_differences_across_a_refresh_are_not_told_by_numbers_alone(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	change_both(f);
	version = take_snapshot(f, CLONE, NULL);
	refresh_clone(f, CLONE);
	check_difference(f, CLONE, version);
}

/* The same one clone further: none of both is its own. */
static void test_differences_across_the_refresh_of_a_source_are_not_told_by_numbers(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	change_both(f);
	make_clone(f, CLONE, CLONE_OF_CLONE);
	version = take_snapshot(f, CLONE_OF_CLONE, NULL);
	refresh_clone(f, CLONE);
	refresh_clone(f, CLONE_OF_CLONE);
	check_difference(f, CLONE_OF_CLONE, version);
}

static void test_an_object_goes_back_across_a_refresh_to_what_has_its_number(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	change_both(f);
	version = take_snapshot(f, CLONE, NULL);
	refresh_clone(f, CLONE);
	check_text(f, in_clone, "of the source");
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback_object(f->txn, CLONE, OBJECT, at_number(version)), 0);
	commit(f);
	check_text(f, in_clone, "of the clone ");
}

static void test_an_object_that_finds_no_room_to_go_back_stays_as_it_is(void **state)
{
	struct fixture *f = *state;
	char before[3 * PAGE], now[5 * PAGE];
	uint64_t full;

	memset(before, 'a', sizeof(before));
	memset(now, 'b', sizeof(now));
	begin_with_object(f);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, before, sizeof(before)), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, now, sizeof(now)), 0);
	commit(f);
	full = memory_store_counters(f->memory).bytes;
	memory_store_limit(f->memory, full, full);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 1), -ENOSPC);
	abort_all(f);
	begin(f, ENGINE_READ);
	assert_data(f, object(OBJECT), now, sizeof(now));
	commit(f);
	memory_store_limit(f->memory, 2 * full, 2 * full);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 1), 0);
	assert_data(f, object(OBJECT), before, sizeof(before));
	commit(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_object_that_finds_no_room_to_go_back_stays_as_it_is),
		TEST(test_one_object_goes_back_alone),
		TEST(test_a_removed_object_comes_back_and_a_new_one_goes),
		TEST(test_undo_goes_back_modification_by_modification),
		TEST(test_the_log_tells_creation_changes_and_removal),
		TEST(test_the_log_has_the_time_of_a_removal),
		TEST(test_differences_are_exactly_what_was_changed),
		TEST(test_differences_across_a_refresh_are_not_told_by_numbers_alone),
		TEST(test_differences_across_the_refresh_of_a_source_are_not_told_by_numbers),
		TEST(test_an_object_goes_back_across_a_refresh_to_what_has_its_number),
	};

	return cmocka_run_group_tests_name("history_objects", tests, NULL, NULL);
}
