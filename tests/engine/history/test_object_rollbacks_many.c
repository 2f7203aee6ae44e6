/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Many rollbacks of objects: how many a reader goes by, when they run out, their record. */
#include "tests/engine/history/object_pages.h"

/* How many rollbacks a reader of the object's oldest data goes by. */
static uint32_t steps_of(struct fixture *f)
{
	return hidden_steps(&f->engine->past->hidden, index_of(f, PARTITION), OBJECT, RECORD_NEWEST,
			    UINT32_MAX);
}

static void test_undoing_again_and_again_leaves_one_step_to_readers(void **state)
{
	struct fixture *f = *state;

	write_all(f, 1);
	write_all(f, 2);
	for (uint8_t n = 0; n < 50; n++) {
		undo_without_data(f, PARTITION, 1);
		assert_int_equal(steps_of(f), 1);
		check_all(f, n % 2 ? 2 : 1);
	}
	crash(f);
	for (uint8_t n = 0; n < 9; n++) {
		undo_without_data(f, PARTITION, 1);
		assert_int_equal(steps_of(f), 1);
		check_all(f, n % 2 ? 2 : 1);
	}
	/* A transaction that writes behind its rollback leaves more than that did. */
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 1), 0);
	assert_int_equal(engine_write(f->txn, address_of(PARTITION, OBJECT), 5, "x", 1), 0);
	commit(f);
	write_all(f, 3);
	undo_without_data(f, PARTITION, 1);
	check_pages(f, address_of(PARTITION, OBJECT), 1, PAGES, 2);
	begin(f, ENGINE_READ);
	char byte;
	uint64_t got;
	assert_int_equal(engine_read(f->txn, address_of(PARTITION, OBJECT), 5, &byte, 1, &got), 0);
	assert_int_equal(byte, 'x');
	commit(f);
}

/*
 * What stays between what is undone makes each rollback a step of its own; with many of them the
 * object is put again.
 */
static void test_readers_never_go_by_too_many(void **state)
{
	enum { ROUNDS = 600, STEPS_MANY = 512 };
	struct fixture *f = *state;

	write_all(f, 0);
	for (uint32_t n = 0; n < ROUNDS; n++) {
		write_pages(f, PARTITION, n % PAGES, n % PAGES + 1, 1);
		write_pages(f, PARTITION, 0, 1, 2);
		undo(f, PARTITION, 1);
		assert_in_range(steps_of(f), 1, STEPS_MANY);
	}
	assert_int_equal(steps_of(f), STEPS_MANY);
	check_all(f, 1);
}

/* As many as all share, all of them seen. */
static void use_up_shared_ones(struct fixture *f)
{
	struct hidden *hidden = &f->engine->past->hidden;
	const uint16_t others = index_of(f, OTHERS);
	uint64_t first;

	f->now += 5 * SECOND;
	write_pages(f, OTHERS, 0, 1, 1);
	first = f->engine->committed;
	for (int slot = 0; slot < 3; slot++) {
		f->now += 50 * SECOND;
		write_pages(f, OTHERS, 0, 1, 1);
	}
	assert_true(f->engine->committed > first + 2 * ENGINE_HIDDEN_MAX);
	assert_null(hidden->list);
	hidden->capacity = 2 * ENGINE_HIDDEN_MAX;
	hidden->list = calloc(hidden->capacity, sizeof(*hidden->list));
	assert_non_null(hidden->list);
	/* They are in memory only: new ones go to the first chunks of the table. */
	for (uint32_t n = 0; n < ENGINE_HIDDEN_MAX; n++)
		hidden->list[n] = (struct hidden_interval){ .identifier = OBJECT,
							    .partition = others,
							    .at = first + 2 * n + 2,
							    .to = first + 2 * n + 1 };
	hidden->count = ENGINE_HIDDEN_MAX;
	assert_int_equal(hidden_targets_load(&hidden->targets, hidden->list, hidden->count), 0);
}

/*
 * Other objects' never shut one out: each partition has some of its own, and what is not too large
 * is put again.
 */
static void test_when_they_run_out_an_object_is_put_again(void **state)
{
	struct fixture *f = *state;
	const uint32_t full = ENGINE_HIDDEN_MAX + ENGINE_HIDDEN_OWN;
	uint64_t before;

	use_up_shared_ones(f);
	write_all(f, 1);
	write_all(f, 2);
	for (int n = 0; n < ENGINE_HIDDEN_OWN; n++)
		undo_without_data(f, PARTITION, 1);
	check_all(f, 2);
	assert_int_equal(f->engine->past->hidden.count, full);
	before = put_so_far(f);
	undo(f, PARTITION, 1);
	assert_true(put_so_far(f) - before > BYTES);
	check_all(f, 1);
	assert_int_equal(f->engine->past->hidden.count, full);
	f->engine->past->pieces_put_max = PAGES;
	begin(f, ENGINE_WRITE);
	assert_int_equal(end(f, engine_undo(f->txn, PARTITION, OBJECT, 1)), -EFBIG);
	check_all(f, 1);
}

/* However many an object's writer makes: the partition, and others, still go back. */
static void test_objects_leave_their_partition_a_way_back(void **state)
{
	struct fixture *f = *state;

	use_up_shared_ones(f);
	write_pages(f, PARTITION, 0, 1, 1);
	f->now += 5 * SECOND;
	roll_back_to_time(f, PARTITION, f->now - SECOND);
	roll_back_to_time(f, OTHERS, f->now - SECOND);
	roll_back_to_time(f, 0, f->now - SECOND);
	check_pages(f, address_of(PARTITION, OBJECT), 0, 1, 1);
}

/* The example of docs/objects.md. */
static void test_the_record_is_as_documented(void **state)
{
	/* The device's comes first, though it was added later. */
	uint8_t wanted[HIDDEN_CHUNK_HEAD_BYTES + HIDDEN_BYTES + HIDDEN_OF_OBJECT_BYTES] = { 1 };
	struct fixture *f = *state;
	const struct record_key key = key_of_table(RECORD_ID_HIDDEN, 0);
	uint8_t *of_object = wanted + HIDDEN_CHUNK_HEAD_BYTES + HIDDEN_BYTES;
	const struct hidden_interval *list;
	struct record_info info;
	uint8_t record[PAGE];

	write_all(f, 1);
	write_all(f, 2);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 1), 0);
	assert_int_equal(engine_write(f->txn, address_of(PARTITION, OBJECT), 5, "x", 1), 0);
	commit(f);
	f->now += 5 * SECOND;
	roll_back_to_time(f, 0, f->now - SECOND);
	assert_int_equal(f->engine->past->hidden.count, 2);
	list = f->engine->past->hidden.list;
	assert_int_equal(
		record_get(f->engine->store, key, RECORD_NEWEST, record, sizeof(record), &info), 0);
	put_le48(wanted + 3, list[0].at);
	put_le48(wanted + 9, list[0].to);
	put_le16(of_object, 1);
	put_le48(of_object + 2, list[1].at);
	put_le48(of_object + 8, list[1].to);
	put_le64(of_object + 14, OBJECT);
	of_object[22] = 1;
	assert_int_equal(info.length, sizeof(wanted));
	assert_memory_equal(record, wanted, sizeof(wanted));
	assert_true(list[0].to < list[0].at && list[1].to < list[1].at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLASH_TEST(test_undoing_again_and_again_leaves_one_step_to_readers),
		FLASH_TEST(test_readers_never_go_by_too_many),
		FLASH_TEST(test_when_they_run_out_an_object_is_put_again),
		FLASH_TEST(test_objects_leave_their_partition_a_way_back),
		FLASH_TEST(test_the_record_is_as_documented),
	};

	return cmocka_run_group_tests_name("object_rollbacks_many", tests, NULL, NULL);
}
