/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Partitions, objects, data and attributes by example, on the record store in memory. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/objects.h"
#include "memory_store.h"

#define PAGE 512
#define PID  ENGINE_FIRST_ID
#define OID  ENGINE_FIRST_ID

struct fixture {
	struct memory_store *memory;
	struct engine *engine;
	struct engine_txn *txn;
	uint64_t now;
};

static uint64_t clock_of(void *context)
{
	return ((struct fixture *)context)->now;
}

static void reopen(struct fixture *f)
{
	struct engine_options options = { .clock_ms = clock_of, .clock_context = f };

	assert_int_equal(engine_open_on(memory_store_open(f->memory), &options, &f->engine), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->memory = memory_store_create(PAGE);
	f->now = 1000;
	reopen(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->txn) /* a failed test left it */
		engine_abort(f->txn);
	assert_int_equal(engine_close(f->engine), 0);
	memory_store_destroy(f->memory);
	free(f);
	return 0;
}

static void begin(struct fixture *f, enum engine_mode mode)
{
	assert_int_equal(engine_begin(f->engine, mode, &f->txn), 0);
}

/* Ends the open transaction, whatever comes of it. */
static int end(struct fixture *f)
{
	struct engine_txn *txn = f->txn;

	f->txn = NULL;
	return engine_commit(txn, false);
}

static void commit(struct fixture *f)
{
	assert_int_equal(end(f), 0);
}

static void abort_all(struct fixture *f)
{
	engine_abort(f->txn);
	f->txn = NULL;
}

static void crash(struct fixture *f)
{
	engine_abandon(f->engine);
	f->txn = NULL;
	reopen(f);
}

static struct engine_address object(uint64_t id)
{
	return (struct engine_address){ .partition = PID, .object = id };
}

static struct engine_address at_version(struct engine_address address, uint32_t version)
{
	address.version = version;
	return address;
}

static const struct engine_address partition = { .partition = PID };
static const struct engine_address root = { 0 };

/* A partition with one empty user object, in an open writing transaction. */
static void begin_with_object(struct fixture *f)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, 0, NULL), 0);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, 0, 1, NULL), 0);
}

static void write_text(struct fixture *f, uint64_t offset, const char *text)
{
	assert_int_equal(engine_write(f->txn, object(OID), offset, text, strlen(text)), 0);
}

/* The object has exactly these bytes. */
static void assert_data(struct fixture *f, struct engine_address address, const void *wanted,
			size_t length)
{
	uint8_t *data = malloc(length + 2 * PAGE);
	uint64_t got;

	memset(data, 0xee, length + 2 * PAGE);
	assert_int_equal(engine_read(f->txn, address, 0, data, length + 2 * PAGE, &got), 0);
	assert_int_equal(got, length);
	assert_memory_equal(data, wanted, length);
	free(data);
}

static struct engine_stat stat_of(struct fixture *f, struct engine_address address)
{
	struct engine_stat stat;

	assert_int_equal(engine_stat(f->txn, address, &stat), 0);
	return stat;
}

/* ---- partitions ---- */

static void test_an_empty_store_is_an_empty_root(void **state)
{
	struct fixture *f = *state;
	uint64_t ids[4], next;
	size_t count;

	begin(f, ENGINE_READ);
	assert_int_equal(stat_of(f, root).type, ENGINE_ROOT);
	assert_int_equal(stat_of(f, root).members, 0);
	assert_int_equal(
		engine_list(f->txn, root, ENGINE_LIST_PARTITIONS, 0, ids, 4, &count, &next), 0);
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
	assert_int_equal(engine_partition_create(f->txn, 0, &id), -EFBIG);
	assert_int_equal(stat_of(f, root).members, 4);
	commit(f);
}

static void test_a_partition_with_members_is_removed_only_with_its_contents(void **state)
{
	struct fixture *f = *state;
	struct engine_stat stat;

	begin_with_object(f);
	write_text(f, 0, "gone");
	assert_int_equal(engine_partition_remove(f->txn, PID, false), -ENOTEMPTY);
	assert_int_equal(engine_partition_remove(f->txn, PID, true), 0);
	assert_int_equal(engine_stat(f->txn, partition, &stat), -ENOENT);
	assert_int_equal(engine_partition_create(f->txn, PID, NULL), 0);
	assert_int_equal(stat_of(f, partition).members, 0);
	assert_int_equal(stat_of(f, partition).used_bytes, 0);
	assert_int_equal(engine_stat(f->txn, object(OID), &stat), -ENOENT);
	commit(f);
}

static void test_removing_a_partition_costs_the_same_whatever_it_holds(void **state)
{
	struct fixture *f = *state;
	uint64_t before;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, 0, NULL), 0);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, 0, 5000, NULL), 0);
	commit(f);
	before = memory_store_counters(f->memory).puts;
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(f->txn, PID, true), 0);
	commit(f);
	assert_true(memory_store_counters(f->memory).puts - before <= 4);
}

static void test_a_partition_does_not_show_objects_of_an_earlier_one_with_its_index(void **state)
{
	struct fixture *f = *state;
	struct engine_stat stat;

	begin_with_object(f);
	write_text(f, 0, "old");
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_remove(f->txn, PID, true), 0);
	commit(f);
	/* The index comes round again after all others. */
	f->engine->last_index = 0;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, PID, NULL), 0);
	assert_int_equal(f->engine->last_index, 1);
	assert_int_equal(engine_stat(f->txn, object(OID), &stat), -ENOENT);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, OID, 1, NULL), 0);
	assert_int_equal(engine_truncate(f->txn, object(OID), 3), 0);
	assert_data(f, object(OID), "\0\0", 3);
	commit(f);
}

static void test_partitions_that_come_and_go_do_not_use_anything_up(void **state)
{
	struct fixture *f = *state;

	for (uint32_t round = 0; round < ENGINE_PARTITIONS_MAX + 10; round++) {
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_partition_create(f->txn, PID, NULL), 0);
		abort_all(f);
	}
	for (uint32_t round = 0; round < ENGINE_PARTITIONS_MAX + 10; round++) {
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_partition_create(f->txn, PID, NULL), 0);
		commit(f);
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_partition_remove(f->txn, PID, false), 0);
		commit(f);
	}
}

/* ---- objects ---- */

static void test_object_ids_are_chosen_behind_the_highest_of_either_type(void **state)
{
	struct fixture *f = *state;
	uint64_t id;

	begin_with_object(f);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_COLLECTION, 0x12345, 1, &id), 0);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, 0, 3, &id), 0);
	assert_int_equal(id, 0x12346);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_COLLECTION, 0, 1, &id), 0);
	assert_int_equal(id, 0x12349);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, 0x12345, 1, &id), -EEXIST);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, UINT64_MAX, 1, &id), 0);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, 0, 1, &id), -EFBIG);
	assert_int_equal(stat_of(f, partition).members, 7);
	assert_int_equal(stat_of(f, partition).collections, 2);
	commit(f);
}

static void test_bad_arguments_of_create_are_refused(void **state)
{
	struct fixture *f = *state;

	begin_with_object(f);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_PARTITION, 0, 1, NULL), -EINVAL);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, 0, 0, NULL), -EINVAL);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, 0x20000, 2, NULL), -EINVAL);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, 0xffff, 1, NULL), -EINVAL);
	assert_int_equal(engine_create(f->txn, PID + 1, ENGINE_USER_OBJECT, 0, 1, NULL), -ENOENT);
	assert_int_equal(engine_create(f->txn, 0, ENGINE_USER_OBJECT, 0, 1, NULL), -ENOENT);
	commit(f);
}

static void test_an_object_that_comes_again_is_empty(void **state)
{
	struct fixture *f = *state;

	begin_with_object(f);
	write_text(f, 0, "first life");
	assert_int_equal(engine_attribute_set(f->txn, object(OID), 1, 1, "a", 1), 0);
	for (int times = 0; times < 2; times++) {
		uint32_t length;

		assert_int_equal(engine_remove(f->txn, object(OID)), 0);
		assert_int_equal(engine_remove(f->txn, object(OID)), -ENOENT);
		assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, OID, 1, NULL), 0);
		assert_int_equal(engine_truncate(f->txn, object(OID), 10), 0);
		assert_data(f, object(OID), "\0\0\0\0\0\0\0\0\0", 10);
		assert_int_equal(engine_attribute_get(f->txn, object(OID), 1, 1, NULL, 0, &length),
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
	uint64_t ids[100], next = 0, wanted = OID, count_from;
	size_t count;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, 0, NULL), 0);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, 0, 1234, NULL), 0);
	commit(f);
	begin(f, ENGINE_READ);
	do {
		assert_int_equal(engine_list(f->txn, partition, ENGINE_LIST_USER_OBJECTS, next, ids,
					     100, &count, &next),
				 0);
		for (size_t index = 0; index < count; index++)
			assert_int_equal(ids[index], wanted++);
	} while (next);
	assert_int_equal(wanted, OID + 1234);
	assert_int_equal(
		engine_list_count(f->txn, partition, ENGINE_LIST_USER_OBJECTS, 0, &count_from), 0);
	assert_int_equal(count_from, 1234);
	assert_int_equal(engine_list_count(f->txn, partition, ENGINE_LIST_USER_OBJECTS, OID + 1000,
					   &count_from),
			 0);
	assert_int_equal(count_from, 234);
	assert_int_equal(
		engine_list_count(f->txn, partition, ENGINE_LIST_COLLECTIONS, 0, &count_from), 0);
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
	assert_int_equal(engine_write(f->txn, object(OID), 100, model + 100, 2 * PAGE), 0);
	memset(model + 4 * PAGE, 'b', PAGE);
	assert_int_equal(engine_write(f->txn, object(OID), 4 * PAGE, model + 4 * PAGE, PAGE), 0);
	assert_data(f, object(OID), model, sizeof(model));
	assert_int_equal(stat_of(f, object(OID)).used_bytes, 4 * PAGE);
	assert_int_equal(stat_of(f, partition).used_bytes, 4 * PAGE);
	commit(f);
	begin(f, ENGINE_READ);
	assert_data(f, object(OID), model, sizeof(model));
	commit(f);
}

static void test_an_aligned_page_is_one_record_and_needs_no_read(void **state)
{
	struct fixture *f = *state;
	struct memory_store_counters before, after;
	uint8_t page[PAGE] = { 1 };

	begin_with_object(f);
	assert_int_equal(engine_write(f->txn, object(OID), 0, page, PAGE), 0);
	commit(f);
	before = memory_store_counters(f->memory);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, object(OID), 0, page, PAGE), 0);
	commit(f);
	after = memory_store_counters(f->memory);
	assert_int_equal(after.gets, before.gets);
	assert_int_equal(after.puts - before.puts, 2); /* the page and the onode */
}

static void test_small_objects_take_small_records(void **state)
{
	struct fixture *f = *state;
	uint64_t before;

	begin_with_object(f);
	before = memory_store_counters(f->memory).put_bytes;
	write_text(f, 0, "ten bytes.");
	assert_int_equal(memory_store_counters(f->memory).put_bytes - before, 10);
	write_text(f, 10, "and ten.");
	assert_int_equal(memory_store_counters(f->memory).put_bytes - before, 28);
	commit(f);
}

static void test_what_was_cut_does_not_come_back(void **state)
{
	struct fixture *f = *state;
	uint8_t model[3 * PAGE];

	begin_with_object(f);
	memset(model, 'x', sizeof(model));
	assert_int_equal(engine_write(f->txn, object(OID), 0, model, sizeof(model)), 0);
	for (int times = 0; times < 2; times++) {
		assert_int_equal(engine_truncate(f->txn, object(OID), PAGE + 10), 0);
		assert_int_equal(engine_truncate(f->txn, object(OID), sizeof(model)), 0);
		memset(model + PAGE + 10, 0, 2 * PAGE - 10);
		assert_data(f, object(OID), model, sizeof(model));
		assert_int_equal(stat_of(f, object(OID)).used_bytes, 2 * PAGE);
		commit(f);
		begin(f, ENGINE_WRITE);
		memset(model + 2 * PAGE, 'y', PAGE);
		assert_int_equal(
			engine_write(f->txn, object(OID), 2 * PAGE, model + 2 * PAGE, PAGE), 0);
	}
	commit(f);
}

static void test_clear_makes_zeros_and_whole_pages_holes(void **state)
{
	struct fixture *f = *state;
	uint8_t model[4 * PAGE];

	begin_with_object(f);
	memset(model, 'x', sizeof(model));
	assert_int_equal(engine_write(f->txn, object(OID), 0, model, sizeof(model)), 0);
	assert_int_equal(engine_clear(f->txn, object(OID), 10, 2 * PAGE), 0);
	memset(model + 10, 0, 2 * PAGE);
	assert_data(f, object(OID), model, sizeof(model));
	assert_int_equal(stat_of(f, object(OID)).used_bytes, 3 * PAGE);
	assert_int_equal(engine_clear(f->txn, object(OID), 3 * PAGE, 3 * PAGE), 0);
	assert_int_equal(stat_of(f, object(OID)).length, 6 * PAGE);
	assert_int_equal(stat_of(f, object(OID)).used_bytes, 2 * PAGE);
	commit(f);
}

static void test_punch_moves_the_rest_down(void **state)
{
	struct fixture *f = *state;
	uint8_t model[4 * PAGE];

	begin_with_object(f);
	for (size_t index = 0; index < sizeof(model); index++)
		model[index] = (uint8_t)(index * 7 + index / 256);
	assert_int_equal(engine_write(f->txn, object(OID), 0, model, sizeof(model)), 0);
	assert_int_equal(engine_punch(f->txn, object(OID), 100, PAGE + 50), 0);
	memmove(model + 100, model + PAGE + 150, sizeof(model) - PAGE - 150);
	assert_data(f, object(OID), model, sizeof(model) - PAGE - 50);
	assert_int_equal(engine_punch(f->txn, object(OID), 4 * PAGE, 1), -EINVAL);
	commit(f);
}

static void test_append_says_where(void **state)
{
	struct fixture *f = *state;
	uint64_t offset;

	begin_with_object(f);
	assert_int_equal(engine_append(f->txn, object(OID), "one", 3, &offset), 0);
	assert_int_equal(offset, 0);
	assert_int_equal(engine_append(f->txn, object(OID), "two", 3, &offset), 0);
	assert_int_equal(offset, 3);
	assert_data(f, object(OID), "onetwo", 6);
	commit(f);
}

static void test_an_object_has_a_largest_length(void **state)
{
	struct fixture *f = *state;
	uint64_t most = (uint64_t)ENGINE_PIECES_MAX * PAGE, got;
	char byte = 0;

	begin_with_object(f);
	assert_int_equal(engine_write(f->txn, object(OID), most, "x", 1), -EFBIG);
	assert_int_equal(engine_write(f->txn, object(OID), UINT64_MAX, "x", 1), -EFBIG);
	assert_int_equal(engine_truncate(f->txn, object(OID), most + 1), -EFBIG);
	assert_int_equal(stat_of(f, object(OID)).length, 0);
	assert_int_equal(engine_write(f->txn, object(OID), most - 1, "x", 1), 0);
	assert_int_equal(engine_read(f->txn, object(OID), most - 1, &byte, 1, &got), 0);
	assert_int_equal(byte, 'x');
	assert_int_equal(engine_append(f->txn, object(OID), "x", 1, NULL), -EFBIG);
	commit(f);
}

static void test_data_calls_want_user_objects(void **state)
{
	struct fixture *f = *state;
	uint64_t id, got;

	begin_with_object(f);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_COLLECTION, 0, 1, &id), 0);
	assert_int_equal(engine_write(f->txn, object(id), 0, "x", 1), -EINVAL);
	assert_int_equal(engine_write(f->txn, partition, 0, "x", 1), -EINVAL);
	assert_int_equal(engine_truncate(f->txn, root, 1), -EINVAL);
	assert_int_equal(engine_read(f->txn, object(id), 0, &id, 1, &got), -EINVAL);
	assert_int_equal(engine_read(f->txn, object(id + 1), 0, &id, 1, &got), -ENOENT);
	assert_int_equal(engine_remove(f->txn, partition), -EINVAL);
	commit(f);
}

/* ---- attributes ---- */

static void test_attributes_are_kept_in_order_of_page_and_number(void **state)
{
	static const uint32_t pages[] = { 7, 0x30000001, 7, 1, 7 },
			      numbers[] = { 3, 0, 1, UINT32_MAX, 2 };
	static const uint32_t order[] = { 3, 2, 4, 0, 1 };
	const struct engine_address addresses[] = { root, partition, object(OID) };
	struct fixture *f = *state;

	begin_with_object(f);
	for (int which = 0; which < 3; which++) {
		uint32_t page = 0, number = 0, length;
		char value[2];

		for (uint32_t index = 0; index < 5; index++)
			assert_int_equal(engine_attribute_set(f->txn, addresses[which],
							      pages[index], numbers[index],
							      "01234" + index, 1),
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
	assert_int_equal(engine_attribute_set(f->txn, object(OID), 1, 1, value,
					      ENGINE_ATTRIBUTE_BYTES_MAX + 1),
			 -EFBIG);
	while (engine_attribute_set(f->txn, object(OID), 1, set, value, 65000) == 0)
		set++;
	assert_int_equal(set, ENGINE_ATTRIBUTE_SET_BYTES_MAX / (65000 + 16));
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_attribute_set(f->txn, object(OID), 1, 3, NULL, 0), 0);
	assert_int_equal(engine_attribute_get(f->txn, object(OID), 1, 3, NULL, 0, &length),
			 -ENOENT);
	assert_int_equal(engine_attribute_get(f->txn, object(OID), 1, 4, NULL, 0, &length), 0);
	assert_int_equal(length, 65000);
	commit(f);
	free(value);
}

/* ---- transactions ---- */

static void test_an_aborted_transaction_leaves_nothing_behind(void **state)
{
	struct fixture *f = *state;
	struct engine_stat stat, before;
	uint32_t length;

	begin_with_object(f);
	write_text(f, 0, "kept");
	assert_int_equal(engine_attribute_set(f->txn, object(OID), 1, 1, "kept", 4), 0);
	commit(f);
	begin(f, ENGINE_READ);
	before = stat_of(f, object(OID));
	commit(f);
	f->now += 1000;
	begin(f, ENGINE_WRITE);
	write_text(f, 0, "lost and longer");
	assert_int_equal(engine_attribute_set(f->txn, object(OID), 1, 2, "lost", 4), 0);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, 0, 100, NULL), 0);
	assert_int_equal(engine_partition_create(f->txn, 0, NULL), 0);
	abort_all(f);
	begin(f, ENGINE_READ);
	assert_data(f, object(OID), "kept", 4);
	assert_int_equal(engine_attribute_get(f->txn, object(OID), 1, 2, NULL, 0, &length),
			 -ENOENT);
	assert_int_equal(stat_of(f, partition).members, 1);
	assert_int_equal(stat_of(f, root).members, 1);
	stat = stat_of(f, object(OID));
	assert_int_equal(stat.modified_sequence, before.modified_sequence);
	assert_int_equal(stat.used_bytes, before.used_bytes);
	assert_memory_equal(stat.times_ms, before.times_ms, sizeof(stat.times_ms));
	commit(f);
}

static void test_a_crash_keeps_what_is_committed_and_nothing_else(void **state)
{
	struct fixture *f = *state;

	begin_with_object(f);
	write_text(f, 0, "kept");
	commit(f);
	begin(f, ENGINE_WRITE);
	write_text(f, 0, "lost");
	crash(f);
	begin(f, ENGINE_READ);
	assert_data(f, object(OID), "kept", 4);
	assert_int_equal(stat_of(f, partition).used_bytes, PAGE);
	assert_int_equal(stat_of(f, partition).members, 1);
	commit(f);
}

static void test_reading_transactions_change_nothing(void **state)
{
	struct fixture *f = *state;

	begin_with_object(f);
	commit(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_write(f->txn, object(OID), 0, "x", 1), -EROFS);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, 0, 1, NULL), -EROFS);
	assert_int_equal(engine_partition_create(f->txn, 0, NULL), -EROFS);
	assert_int_equal(engine_partition_remove(f->txn, PID, true), -EROFS);
	assert_int_equal(engine_remove(f->txn, object(OID)), -EROFS);
	assert_int_equal(engine_attribute_set(f->txn, object(OID), 1, 1, "x", 1), -EROFS);
	assert_int_equal(engine_snapshot(f->txn, PID, NULL), -EROFS);
	commit(f);
}

static void test_a_commit_without_room_is_an_abort(void **state)
{
	struct fixture *f = *state;

	begin_with_object(f);
	write_text(f, 0, "kept");
	commit(f);
	begin(f, ENGINE_WRITE);
	write_text(f, 0, "lost");
	memory_store_fail_put(f->memory, 0);
	assert_int_equal(end(f), -ENOSPC);
	begin(f, ENGINE_READ);
	assert_data(f, object(OID), "kept", 4);
	commit(f);
}

static void test_a_full_store_can_be_emptied(void **state)
{
	struct fixture *f = *state;
	uint64_t full;

	begin_with_object(f);
	write_text(f, 0, "old");
	commit(f);
	full = memory_store_counters(f->memory).bytes;
	memory_store_limit(f->memory, full, full + 1000);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, object(OID), 0, "x", 1), -ENOSPC);
	abort_all(f);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_remove(f->txn, object(OID)), 0);
	commit(f);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(f->txn, PID, false), 0);
	commit(f);
}

/* ---- versions ---- */

static void test_a_version_shows_everything_as_it_was(void **state)
{
	struct fixture *f = *state;
	uint32_t version, length;
	uint64_t ids[3], next;
	struct engine_stat stat;
	size_t count;
	char value;

	begin_with_object(f);
	write_text(f, 0, "version one");
	assert_int_equal(engine_attribute_set(f->txn, object(OID), 1, 1, "1", 1), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(f->txn, PID, &version), 0);
	assert_int_equal(version, 1);
	assert_int_equal(engine_remove(f->txn, object(OID)), 0);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, OID + 1, 1, NULL), 0);
	commit(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_stat(f->txn, object(OID), &stat), -ENOENT);
	assert_data(f, at_version(object(OID), 1), "version one", 11);
	assert_int_equal(
		engine_attribute_get(f->txn, at_version(object(OID), 1), 1, 1, &value, 1, &length),
		0);
	assert_int_equal(value, '1');
	assert_int_equal(engine_list(f->txn, at_version(partition, 1), ENGINE_LIST_USER_OBJECTS, 0,
				     ids, 3, &count, &next),
			 0);
	assert_int_equal(count, 1);
	assert_int_equal(ids[0], OID);
	assert_int_equal(stat_of(f, at_version(partition, 1)).used_bytes, PAGE);
	assert_int_equal(stat_of(f, at_version(partition, 1)).version, 1);
	assert_int_equal(stat_of(f, partition).version, 2);
	assert_int_equal(engine_stat(f->txn, at_version(object(OID + 1), 1), &stat), -ENOENT);
	assert_int_equal(engine_stat(f->txn, at_version(object(OID), 2), &stat), -ENOENT);
	assert_int_equal(engine_stat(f->txn, at_version(root, 1), &stat), -ENOENT);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, at_version(object(OID), 1), 0, "x", 1), -EROFS);
	commit(f);
}

static void test_a_snapshot_comes_first_in_its_transaction(void **state)
{
	struct fixture *f = *state;

	begin_with_object(f);
	assert_int_equal(engine_snapshot(f->txn, PID, NULL), -EINVAL);
	commit(f);
	begin(f, ENGINE_WRITE);
	write_text(f, 0, "x");
	assert_int_equal(engine_snapshot(f->txn, PID, NULL), -EINVAL);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_accessed(f->txn, object(OID), true, true), 0);
	assert_int_equal(engine_snapshot(f->txn, PID, NULL), -EINVAL);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(f->txn, PID, NULL), 0);
	write_text(f, 0, "y");
	commit(f);
	begin(f, ENGINE_READ);
	assert_data(f, at_version(object(OID), 1), "x", 1);
	assert_data(f, object(OID), "y", 1);
	commit(f);
}

static void test_user_versions_run_out_with_an_error(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	begin_with_object(f);
	write_text(f, 0, "x");
	commit(f);
	begin(f, ENGINE_WRITE);
	for (uint32_t wanted = 1; wanted < PARTITION_VERSIONS_MAX; wanted++) {
		assert_int_equal(engine_snapshot(f->txn, PID, &version), 0);
		assert_int_equal(version, wanted);
	}
	assert_int_equal(engine_snapshot(f->txn, PID, &version), -EFBIG);
	commit(f);
	begin(f, ENGINE_READ);
	assert_data(f, at_version(object(OID), PARTITION_VERSIONS_MAX - 1), "x", 1);
	assert_int_equal(stat_of(f, partition).version, PARTITION_VERSIONS_MAX);
	commit(f);
}

/* ---- times ---- */

static void test_times_follow_what_is_done(void **state)
{
	struct fixture *f = *state;
	struct engine_stat stat;

	begin_with_object(f);
	commit(f);
	f->now = 2000;
	begin(f, ENGINE_WRITE);
	write_text(f, 0, "x");
	commit(f);
	f->now = 3000;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_attribute_set(f->txn, object(OID), 1, 1, "x", 1), 0);
	commit(f);
	f->now = 4000;
	begin(f, ENGINE_READ);
	assert_int_equal(engine_accessed(f->txn, object(OID), true, false), 0);
	stat = stat_of(f, object(OID));
	commit(f);
	assert_int_equal(stat.times_ms[ENGINE_TIME_CREATED], 1000);
	assert_int_equal(stat.times_ms[ENGINE_TIME_DATA_MODIFIED], 2000);
	assert_int_equal(stat.times_ms[ENGINE_TIME_ATTRIBUTES_MODIFIED], 3000);
	assert_int_equal(stat.times_ms[ENGINE_TIME_DATA_ACCESSED], 4000);
	assert_int_equal(stat.times_ms[ENGINE_TIME_ATTRIBUTES_ACCESSED], 1000);
}

static void test_bypassed_timestamps_stay(void **state)
{
	struct fixture *f = *state;

	begin_with_object(f);
	commit(f);
	f->now = 2000;
	begin(f, ENGINE_WRITE);
	engine_bypass_timestamps(f->txn, true);
	write_text(f, 0, "x");
	assert_int_equal(engine_attribute_set(f->txn, object(OID), 1, 1, "x", 1), 0);
	assert_int_equal(engine_accessed(f->txn, object(OID), true, true), 0);
	for (int which = 0; which < ENGINE_TIMES; which++)
		assert_int_equal(stat_of(f, object(OID)).times_ms[which], 1000);
	assert_int_equal(engine_set_time(f->txn, object(OID), ENGINE_TIME_DATA_MODIFIED, 77), 0);
	assert_int_equal(engine_set_time(f->txn, object(OID), ENGINE_TIME_CREATED, 77), -EINVAL);
	assert_int_equal(stat_of(f, object(OID)).times_ms[ENGINE_TIME_DATA_MODIFIED], 77);
	commit(f);
}

static void test_accessed_times_survive_a_flush_and_a_close(void **state)
{
	struct fixture *f = *state;

	begin_with_object(f);
	commit(f);
	f->now = 2000;
	begin(f, ENGINE_READ);
	assert_int_equal(engine_accessed(f->txn, object(OID), true, false), 0);
	commit(f);
	assert_int_equal(engine_flush(f->engine), 0);
	f->now = 3000;
	begin(f, ENGINE_READ);
	assert_int_equal(engine_accessed(f->txn, object(OID), false, true), 0);
	commit(f);
	crash(f);
	begin(f, ENGINE_READ);
	assert_int_equal(stat_of(f, object(OID)).times_ms[ENGINE_TIME_DATA_ACCESSED], 2000);
	assert_int_equal(stat_of(f, object(OID)).times_ms[ENGINE_TIME_ATTRIBUTES_ACCESSED], 1000);
	assert_int_equal(engine_accessed(f->txn, object(OID), false, true), 0);
	commit(f);
	assert_int_equal(engine_close(f->engine), 0);
	reopen(f);
	begin(f, ENGINE_READ);
	assert_int_equal(stat_of(f, object(OID)).times_ms[ENGINE_TIME_ATTRIBUTES_ACCESSED], 3000);
	commit(f);
}

static void test_many_accesses_are_stored_before_memory_runs_out(void **state)
{
	struct fixture *f = *state;
	uint32_t objects = f->engine->options.onode_cache_entries * 2;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, 0, NULL), 0);
	assert_int_equal(engine_create(f->txn, PID, ENGINE_USER_OBJECT, 0, objects, NULL), 0);
	commit(f);
	f->now = 2000;
	for (uint64_t id = OID; id < OID + objects; id++) {
		begin(f, ENGINE_READ);
		assert_int_equal(engine_accessed(f->txn, object(id), true, false), 0);
		commit(f);
	}
	begin(f, ENGINE_READ);
	for (uint64_t id = OID; id < OID + objects; id++)
		assert_int_equal(stat_of(f, object(id)).times_ms[ENGINE_TIME_DATA_ACCESSED], 2000);
	commit(f);
}

/* ---- the whole store ---- */

static void test_reformat_empties_everything(void **state)
{
	struct fixture *f = *state;
	struct engine_stat stat;
	uint32_t length;

	begin_with_object(f);
	assert_int_equal(engine_attribute_set(f->txn, root, 1, 1, "x", 1), 0);
	commit(f);
	assert_int_equal(engine_reformat(f->engine), 0);
	begin(f, ENGINE_WRITE);
	assert_int_equal(stat_of(f, root).members, 0);
	assert_int_equal(engine_stat(f->txn, partition, &stat), -ENOENT);
	assert_int_equal(engine_attribute_get(f->txn, root, 1, 1, NULL, 0, &length), -ENOENT);
	assert_int_equal(engine_partition_create(f->txn, 0, NULL), 0);
	assert_int_equal(stat_of(f, partition).members, 0);
	commit(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_empty_store_is_an_empty_root),
		TEST(test_partition_ids_are_chosen_behind_the_highest),
		TEST(test_a_partition_with_members_is_removed_only_with_its_contents),
		TEST(test_removing_a_partition_costs_the_same_whatever_it_holds),
		TEST(test_a_partition_does_not_show_objects_of_an_earlier_one_with_its_index),
		TEST(test_partitions_that_come_and_go_do_not_use_anything_up),
		TEST(test_object_ids_are_chosen_behind_the_highest_of_either_type),
		TEST(test_bad_arguments_of_create_are_refused),
		TEST(test_an_object_that_comes_again_is_empty),
		TEST(test_lists_go_on_where_the_last_one_ended),
		TEST(test_data_comes_back_across_pages_and_holes_are_zeros),
		TEST(test_an_aligned_page_is_one_record_and_needs_no_read),
		TEST(test_small_objects_take_small_records),
		TEST(test_what_was_cut_does_not_come_back),
		TEST(test_clear_makes_zeros_and_whole_pages_holes),
		TEST(test_punch_moves_the_rest_down),
		TEST(test_append_says_where),
		TEST(test_an_object_has_a_largest_length),
		TEST(test_data_calls_want_user_objects),
		TEST(test_attributes_are_kept_in_order_of_page_and_number),
		TEST(test_attributes_have_limits),
		TEST(test_an_aborted_transaction_leaves_nothing_behind),
		TEST(test_a_crash_keeps_what_is_committed_and_nothing_else),
		TEST(test_reading_transactions_change_nothing),
		TEST(test_a_commit_without_room_is_an_abort),
		TEST(test_a_full_store_can_be_emptied),
		TEST(test_a_version_shows_everything_as_it_was),
		TEST(test_a_snapshot_comes_first_in_its_transaction),
		TEST(test_user_versions_run_out_with_an_error),
		TEST(test_times_follow_what_is_done),
		TEST(test_bypassed_timestamps_stay),
		TEST(test_accessed_times_survive_a_flush_and_a_close),
		TEST(test_many_accesses_are_stored_before_memory_runs_out),
		TEST(test_reformat_empties_everything),
	};

	return cmocka_run_group_tests_name("objects", tests, NULL, NULL);
}
