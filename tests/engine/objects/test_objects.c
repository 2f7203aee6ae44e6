/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Partitions, objects, data and attributes by example. Runs for each index. */
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

/* ---- partitions ---- */

static void test_an_empty_store_is_an_empty_root(void **state)
{
	struct fixture *f = *state;
	uint64_t ids[4], next;
	size_t count;

	begin(f, ENGINE_READ);
	assert_int_equal(stat_of(f, the_root).type, ENGINE_ROOT);
	assert_int_equal(stat_of(f, the_root).members, 0);
	assert_int_equal(
		engine_list(f->txn, the_root, ENGINE_LIST_PARTITIONS, 0, ids, 4, &count, &next), 0);
	assert_int_equal(count, 0);
	assert_int_equal(next, 0);
	commit(f);
}

static void test_partition_ids_are_chosen_behind_the_highest(void **state)
{
	struct fixture *f = *state;
	uint64_t id;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, 0, &id), 0);
	assert_int_equal(id, ENGINE_FIRST_ID);
	assert_int_equal(engine_partition_create(f->txn, 0x20000, &id), 0);
	assert_int_equal(engine_partition_create(f->txn, 0, &id), 0);
	assert_int_equal(id, 0x20001);
	assert_int_equal(engine_partition_create(f->txn, 0x20000, &id), -EEXIST);
	assert_int_equal(engine_partition_create(f->txn, 0xffff, &id), -EINVAL);
	assert_int_equal(engine_partition_create(f->txn, ENGINE_LAST_PARTITION_ID + 1, &id),
			 -EINVAL);
	assert_int_equal(engine_partition_create(f->txn, ENGINE_LAST_PARTITION_ID, &id), 0);
	/* Behind the last one there is none: it comes from a gap. */
	assert_int_equal(engine_partition_create(f->txn, 0, &id), 0);
	assert_int_equal(id, ENGINE_FIRST_ID + 1);
	assert_int_equal(stat_of(f, the_root).members, 5);
	commit(f);
}

static void test_a_partition_with_members_is_removed_only_with_its_contents(void **state)
{
	struct fixture *f = *state;
	struct engine_stat stat;

	begin_with_object(f);
	write_text(f, 0, "gone");
	assert_int_equal(engine_partition_remove(f->txn, PARTITION, false), -ENOTEMPTY);
	assert_int_equal(engine_partition_remove(f->txn, PARTITION, true), 0);
	assert_int_equal(engine_stat(f->txn, the_partition, &stat), -ENOENT);
	assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
	assert_int_equal(stat_of(f, the_partition).members, 0);
	assert_int_equal(stat_of(f, the_partition).used_bytes, 0);
	assert_int_equal(engine_stat(f->txn, object(OBJECT), &stat), -ENOENT);
	commit(f);
}

static void test_removing_a_partition_costs_the_same_whatever_it_holds(void **state)
{
	struct fixture *f = *state;
	uint64_t before;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, 0, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, 5000, NULL), 0);
	commit(f);
	before = memory_store_counters(f->memory).puts;
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(f->txn, PARTITION, true), 0);
	commit(f);
	assert_true(memory_store_counters(f->memory).puts - before <= 4);
}

/* So that nothing shows what is gone. */
static void keep_nothing(struct fixture *f)
{
	const struct engine_retention none = { .kind = ENGINE_RETAIN_NONE };

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, 0, &none, false), 0);
	commit(f);
}

static void test_a_partition_does_not_show_objects_of_an_earlier_one_with_its_index(void **state)
{
	struct fixture *f = *state;
	struct engine_stat stat;

	keep_nothing(f);
	begin_with_object(f);
	write_text(f, 0, "old");
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_remove(f->txn, PARTITION, true), 0);
	commit(f);
	/* The index comes round again after all others. */
	f->engine->last_index = 0;
	f->engine->indices_wanted = 1;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
	assert_int_equal(f->engine->last_index, 1);
	assert_int_equal(engine_stat(f->txn, object(OBJECT), &stat), -ENOENT);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
	assert_int_equal(engine_truncate(f->txn, object(OBJECT), 3), 0);
	assert_data(f, object(OBJECT), "\0\0", 3);
	commit(f);
}

static int come_and_go(struct fixture *f)
{
	int result;

	begin(f, ENGINE_WRITE);
	result = engine_partition_create(f->txn, PARTITION, NULL);
	if (result) {
		abort_all(f);
		return result;
	}
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_remove(f->txn, PARTITION, false), 0);
	commit(f);
	return 0;
}

static void test_indices_that_history_shows_run_out_with_an_error(void **state)
{
	struct fixture *f = *state;
	uint32_t round = 0;

	while (come_and_go(f) == 0)
		round++;
	assert_int_equal(round, ENGINE_PARTITIONS_MAX);
	assert_int_equal(come_and_go(f), -EFBIG);
	keep_nothing(f);
	/* What may be free again is looked for when some could not be created. */
	assert_int_equal(come_and_go(f), -EFBIG);
	for (round = 0; round < 1000; round++)
		assert_int_equal(come_and_go(f), 0);
}

static void test_partitions_that_come_and_go_do_not_use_anything_up(void **state)
{
	struct fixture *f = *state;

	keep_nothing(f);
	for (uint32_t round = 0; round < ENGINE_PARTITIONS_MAX + 10; round++) {
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
		abort_all(f);
	}
	for (uint32_t round = 0; round < ENGINE_PARTITIONS_MAX + 10; round++)
		assert_int_equal(come_and_go(f), 0);
}

/* ---- objects ---- */

static void test_object_ids_are_chosen_behind_the_highest_of_either_type(void **state)
{
	struct fixture *f = *state;
	uint64_t id;

	begin_with_object(f);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, 0x12345, 1, &id), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, 3, &id), 0);
	assert_int_equal(id, 0x12346);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, 0, 1, &id), 0);
	assert_int_equal(id, 0x12349);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0x12345, 1, &id),
			 -EEXIST);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, UINT64_MAX, 1, &id),
			 0);
	assert_int_equal(stat_of(f, the_partition).members, 7);
	assert_int_equal(stat_of(f, the_partition).collections, 2);
	commit(f);
}

static void test_ids_go_on_in_a_gap_when_the_last_one_is_taken(void **state)
{
	enum { DENSE = 1000, FURTHER = 5000 };
	struct fixture *f = *state;
	uint64_t id, first = 0;

	begin_with_object(f);
	assert_int_equal(engine_remove(f->txn, object(OBJECT)), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, DENSE, &first), 0);
	assert_int_equal(first, ENGINE_FIRST_ID);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, UINT64_MAX, 1, &id),
			 0);
	/*
	 * One after the other, of both types, also across the places that are looked at; several
	 * stay together.
	 */
	for (uint64_t next = first + DENSE; next < first + FURTHER; next += 5) {
		assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, 0, 1, &id), 0);
		assert_int_equal(id, next);
		assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, 4, &id),
				 0);
		assert_int_equal(id, next + 1);
	}
	commit(f);
}

static void test_ids_are_chosen_up_to_what_the_caller_can_name(void **state)
{
	struct fixture *f = *state;
	const uint64_t last = ENGINE_FIRST_ID + 9;
	uint64_t id;

	begin_with_object(f);
	assert_int_equal(engine_remove(f->txn, object(OBJECT)), 0);
	assert_int_equal(engine_create_up_to(f->txn, PARTITION, ENGINE_USER_OBJECT, last, 8, &id),
			 0);
	assert_int_equal(id, ENGINE_FIRST_ID);
	assert_int_equal(engine_create_up_to(f->txn, PARTITION, ENGINE_USER_OBJECT, last, 3, &id),
			 -EFBIG);
	assert_int_equal(engine_create_up_to(f->txn, PARTITION, ENGINE_USER_OBJECT, last, 2, &id),
			 0);
	assert_int_equal(id, last - 1);
	assert_int_equal(engine_create_up_to(f->txn, PARTITION, ENGINE_USER_OBJECT, last, 1, &id),
			 -EFBIG);
	/* What has been removed is a gap. */
	assert_int_equal(engine_remove(f->txn, object(ENGINE_FIRST_ID + 2)), 0);
	assert_int_equal(engine_create_up_to(f->txn, PARTITION, ENGINE_USER_OBJECT, last, 1, &id),
			 0);
	assert_int_equal(id, ENGINE_FIRST_ID + 2);
	assert_int_equal(engine_create_up_to(f->txn, PARTITION, ENGINE_USER_OBJECT, 5, 1, &id),
			 -EINVAL);
	commit(f);
}

static void test_bad_arguments_of_create_are_refused(void **state)
{
	struct fixture *f = *state;

	begin_with_object(f);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_PARTITION, 0, 1, NULL), -EINVAL);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, 0, NULL), -EINVAL);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0x20000, 2, NULL),
			 -EINVAL);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0xffff, 1, NULL),
			 -EINVAL);
	assert_int_equal(engine_create(f->txn, PARTITION + 1, ENGINE_USER_OBJECT, 0, 1, NULL),
			 -ENOENT);
	assert_int_equal(engine_create(f->txn, 0, ENGINE_USER_OBJECT, 0, 1, NULL), -ENOENT);
	commit(f);
}

static void test_an_object_that_comes_again_is_empty(void **state)
{
	struct fixture *f = *state;

	begin_with_object(f);
	write_text(f, 0, "first life");
	assert_int_equal(engine_attribute_set(f->txn, object(OBJECT), 1, 1, "a", 1), 0);
	for (int times = 0; times < 2; times++) {
		uint32_t length;

		assert_int_equal(engine_remove(f->txn, object(OBJECT)), 0);
		assert_int_equal(engine_remove(f->txn, object(OBJECT)), -ENOENT);
		assert_int_equal(
			engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
		assert_int_equal(engine_truncate(f->txn, object(OBJECT), 10), 0);
		assert_data(f, object(OBJECT), "\0\0\0\0\0\0\0\0\0", 10);
		assert_int_equal(
			engine_attribute_get(f->txn, object(OBJECT), 1, 1, NULL, 0, &length),
			-ENOENT);
		write_text(f, 0, "later life");
		commit(f);
		begin(f, ENGINE_WRITE);
	}
	commit(f);
}

static void test_lists_go_on_where_the_last_one_ended(void **state)
{
	struct fixture *f = *state;
	uint64_t ids[100], next = 0, wanted = OBJECT, count_from;
	size_t count;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, 0, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, 1234, NULL), 0);
	commit(f);
	begin(f, ENGINE_READ);
	do {
		assert_int_equal(engine_list(f->txn, the_partition, ENGINE_LIST_USER_OBJECTS, next,
					     ids, 100, &count, &next),
				 0);
		for (size_t index = 0; index < count; index++)
			assert_int_equal(ids[index], wanted++);
	} while (next);
	assert_int_equal(wanted, OBJECT + 1234);
	assert_int_equal(
		engine_list_count(f->txn, the_partition, ENGINE_LIST_USER_OBJECTS, 0, &count_from),
		0);
	assert_int_equal(count_from, 1234);
	assert_int_equal(engine_list_count(f->txn, the_partition, ENGINE_LIST_USER_OBJECTS,
					   OBJECT + 1000, &count_from),
			 0);
	assert_int_equal(count_from, 234);
	assert_int_equal(
		engine_list_count(f->txn, the_partition, ENGINE_LIST_COLLECTIONS, 0, &count_from),
		0);
	assert_int_equal(count_from, 0);
	commit(f);
}

/* ---- data ---- */

static void test_data_comes_back_across_pages_and_holes_are_zeros(void **state)
{
	struct fixture *f = *state;
	uint8_t model[5 * PAGE] = { 0 };

	begin_with_object(f);
	memset(model + 100, 'a', 2 * PAGE);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 100, model + 100, 2 * PAGE), 0);
	memset(model + 4 * PAGE, 'b', PAGE);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 4 * PAGE, model + 4 * PAGE, PAGE), 0);
	assert_data(f, object(OBJECT), model, sizeof(model));
	assert_int_equal(stat_of(f, object(OBJECT)).used_bytes, 4 * PAGE);
	assert_int_equal(stat_of(f, the_partition).used_bytes, 4 * PAGE);
	commit(f);
	begin(f, ENGINE_READ);
	assert_data(f, object(OBJECT), model, sizeof(model));
	commit(f);
}

static void test_an_aligned_page_is_one_record_and_needs_no_read(void **state)
{
	struct fixture *f = *state;
	struct memory_store_counters before, after;
	uint8_t page[PAGE] = { 1 };

	begin_with_object(f);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, page, PAGE), 0);
	commit(f);
	before = memory_store_counters(f->memory);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, page, PAGE), 0);
	commit(f);
	after = memory_store_counters(f->memory);
	assert_int_equal(after.gets, before.gets);
	assert_int_equal(after.puts - before.puts, 2); /* the page and the onode */
}

static void test_a_short_piece_takes_a_short_record(void **state)
{
	struct fixture *f = *state;
	uint64_t before;

	begin_with_object(f);
	before = memory_store_counters(f->memory).put_bytes;
	write_text(f, PAGE, "ten bytes.");
	assert_int_equal(memory_store_counters(f->memory).put_bytes - before, 10);
	write_text(f, PAGE + 10, "and ten.");
	assert_int_equal(memory_store_counters(f->memory).put_bytes - before, 28);
	commit(f);
}

static void test_what_was_cut_does_not_come_back(void **state)
{
	struct fixture *f = *state;
	uint8_t model[3 * PAGE];

	begin_with_object(f);
	memset(model, 'x', sizeof(model));
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, model, sizeof(model)), 0);
	for (int times = 0; times < 2; times++) {
		assert_int_equal(engine_truncate(f->txn, object(OBJECT), PAGE + 10), 0);
		assert_int_equal(engine_truncate(f->txn, object(OBJECT), sizeof(model)), 0);
		memset(model + PAGE + 10, 0, 2 * PAGE - 10);
		assert_data(f, object(OBJECT), model, sizeof(model));
		assert_int_equal(stat_of(f, object(OBJECT)).used_bytes, 2 * PAGE);
		commit(f);
		begin(f, ENGINE_WRITE);
		memset(model + 2 * PAGE, 'y', PAGE);
		assert_int_equal(
			engine_write(f->txn, object(OBJECT), 2 * PAGE, model + 2 * PAGE, PAGE), 0);
	}
	commit(f);
}

static void test_clear_makes_zeros_and_whole_pages_holes(void **state)
{
	struct fixture *f = *state;
	uint8_t model[4 * PAGE];

	begin_with_object(f);
	memset(model, 'x', sizeof(model));
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, model, sizeof(model)), 0);
	assert_int_equal(engine_clear(f->txn, object(OBJECT), 10, 2 * PAGE), 0);
	memset(model + 10, 0, 2 * PAGE);
	assert_data(f, object(OBJECT), model, sizeof(model));
	assert_int_equal(stat_of(f, object(OBJECT)).used_bytes, 3 * PAGE);
	assert_int_equal(engine_clear(f->txn, object(OBJECT), 3 * PAGE, 3 * PAGE), 0);
	assert_int_equal(stat_of(f, object(OBJECT)).length, 6 * PAGE);
	assert_int_equal(stat_of(f, object(OBJECT)).used_bytes, 2 * PAGE);
	commit(f);
}

static void test_punch_moves_the_rest_down(void **state)
{
	struct fixture *f = *state;
	uint8_t model[4 * PAGE];

	begin_with_object(f);
	for (size_t index = 0; index < sizeof(model); index++)
		model[index] = (uint8_t)(index * 7 + index / 256);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, model, sizeof(model)), 0);
	assert_int_equal(engine_punch(f->txn, object(OBJECT), 100, PAGE + 50), 0);
	memmove(model + 100, model + PAGE + 150, sizeof(model) - PAGE - 150);
	assert_data(f, object(OBJECT), model, sizeof(model) - PAGE - 50);
	assert_int_equal(engine_punch(f->txn, object(OBJECT), 4 * PAGE, 1), -EINVAL);
	commit(f);
}

static void test_append_says_where(void **state)
{
	struct fixture *f = *state;
	uint64_t offset;

	begin_with_object(f);
	assert_int_equal(engine_append(f->txn, object(OBJECT), "one", 3, &offset), 0);
	assert_int_equal(offset, 0);
	assert_int_equal(engine_append(f->txn, object(OBJECT), "two", 3, &offset), 0);
	assert_int_equal(offset, 3);
	assert_data(f, object(OBJECT), "onetwo", 6);
	commit(f);
}

static void test_an_object_has_a_largest_length(void **state)
{
	struct fixture *f = *state;
	uint64_t most = (uint64_t)ENGINE_PIECES_MAX * PAGE, got;
	char byte = 0;

	begin_with_object(f);
	assert_int_equal(engine_write(f->txn, object(OBJECT), most, "x", 1), -EFBIG);
	assert_int_equal(engine_write(f->txn, object(OBJECT), UINT64_MAX, "x", 1), -EFBIG);
	assert_int_equal(engine_truncate(f->txn, object(OBJECT), most + 1), -EFBIG);
	assert_int_equal(stat_of(f, object(OBJECT)).length, 0);
	assert_int_equal(engine_write(f->txn, object(OBJECT), most - 1, "x", 1), 0);
	assert_int_equal(engine_read(f->txn, object(OBJECT), most - 1, &byte, 1, &got), 0);
	assert_int_equal(byte, 'x');
	assert_int_equal(engine_append(f->txn, object(OBJECT), "x", 1, NULL), -EFBIG);
	commit(f);
}

static void test_data_calls_want_user_objects(void **state)
{
	struct fixture *f = *state;
	uint64_t id, got;

	begin_with_object(f);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, 0, 1, &id), 0);
	assert_int_equal(engine_write(f->txn, object(id), 0, "x", 1), -EINVAL);
	assert_int_equal(engine_write(f->txn, the_partition, 0, "x", 1), -EINVAL);
	assert_int_equal(engine_truncate(f->txn, the_root, 1), -EINVAL);
	assert_int_equal(engine_read(f->txn, object(id), 0, &id, 1, &got), -EINVAL);
	assert_int_equal(engine_read(f->txn, object(id + 1), 0, &id, 1, &got), -ENOENT);
	assert_int_equal(engine_remove(f->txn, the_partition), -EINVAL);
	commit(f);
}

/* ---- attributes ---- */

static void test_attributes_are_kept_in_order_of_page_and_number(void **state)
{
	static const uint32_t pages[] = { 7, 0x30000001, 7, 1, 7 },
			      numbers[] = { 3, 0, 1, UINT32_MAX, 2 };
	static const uint32_t order[] = { 3, 2, 4, 0, 1 };
	const struct engine_address addresses[] = { the_root, the_partition, object(OBJECT) };
	struct fixture *f = *state;

	begin_with_object(f);
	for (int which = 0; which < 3; which++) {
		uint32_t page = 0, number = 0, length;
		char value[2];

		for (uint32_t index = 0; index < 5; index++)
			assert_int_equal(engine_attribute_set(f->txn, addresses[which],
							      pages[index], numbers[index],
							      &"01234"[index], 1),
					 0);
		for (uint32_t index = 0; index < 5; index++, number++) {
			assert_int_equal(engine_attribute_next(f->txn, addresses[which], &page,
							       &number, value, 2, &length),
					 0);
			assert_int_equal(page, pages[order[index]]);
			assert_int_equal(number, numbers[order[index]]);
			assert_int_equal(value[0], '0' + (int)order[index]);
			assert_int_equal(length, 1);
			if (number == UINT32_MAX)
				page++;
		}
		assert_int_equal(engine_attribute_next(f->txn, addresses[which], &page, &number,
						       value, 2, &length),
				 -ENOENT);
	}
	commit(f);
}

static void test_attributes_have_limits(void **state)
{
	struct fixture *f = *state;
	uint8_t *value = calloc(1, ENGINE_ATTRIBUTE_BYTES_MAX + 1);
	uint32_t set = 0, length;

	begin_with_object(f);
	assert_int_equal(engine_attribute_set(f->txn, object(OBJECT), 1, 1, value,
					      ENGINE_ATTRIBUTE_BYTES_MAX + 1),
			 -EFBIG);
	while (engine_attribute_set(f->txn, object(OBJECT), 1, set, value, 65000) == 0)
		set++;
	assert_int_equal(set, ENGINE_ATTRIBUTE_SET_BYTES_MAX / (65000 + 16));
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_attribute_set(f->txn, object(OBJECT), 1, 3, NULL, 0), 0);
	assert_int_equal(engine_attribute_get(f->txn, object(OBJECT), 1, 3, NULL, 0, &length),
			 -ENOENT);
	assert_int_equal(engine_attribute_get(f->txn, object(OBJECT), 1, 4, NULL, 0, &length), 0);
	assert_int_equal(length, 65000);
	commit(f);
	free(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_empty_store_is_an_empty_root),
		TEST(test_partition_ids_are_chosen_behind_the_highest),
		TEST(test_a_partition_with_members_is_removed_only_with_its_contents),
		TEST(test_removing_a_partition_costs_the_same_whatever_it_holds),
		TEST(test_a_partition_does_not_show_objects_of_an_earlier_one_with_its_index),
		TEST(test_indices_that_history_shows_run_out_with_an_error),
		TEST(test_partitions_that_come_and_go_do_not_use_anything_up),
		TEST(test_object_ids_are_chosen_behind_the_highest_of_either_type),
		TEST(test_ids_go_on_in_a_gap_when_the_last_one_is_taken),
		TEST(test_ids_are_chosen_up_to_what_the_caller_can_name),
		TEST(test_bad_arguments_of_create_are_refused),
		TEST(test_an_object_that_comes_again_is_empty),
		TEST(test_lists_go_on_where_the_last_one_ended),
		TEST(test_data_comes_back_across_pages_and_holes_are_zeros),
		TEST(test_an_aligned_page_is_one_record_and_needs_no_read),
		TEST(test_a_short_piece_takes_a_short_record),
		TEST(test_what_was_cut_does_not_come_back),
		TEST(test_clear_makes_zeros_and_whole_pages_holes),
		TEST(test_punch_moves_the_rest_down),
		TEST(test_append_says_where),
		TEST(test_an_object_has_a_largest_length),
		TEST(test_data_calls_want_user_objects),
		TEST(test_attributes_are_kept_in_order_of_page_and_number),
		TEST(test_attributes_have_limits),
	};

	return cmocka_run_group_tests_name("objects", tests, NULL, NULL);
}
