/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Space comes back by itself: objects that are overwritten, cut or removed, and partitions that are
 * gone, make room for new ones, while user versions keep what they need.
 *
 * Runs for each index.
 */
#include <stdio.h>

#include "tests/engine/fixture.h"

enum { BLOCKS = 900, OBJECTS = 20, OBJECT_BYTES = 20000 };

static uint8_t bytes[OBJECT_BYTES]; /* scratch space */

static int setup(void **state)
{
	struct fixture *f = make_merging(BLOCKS);

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, OBJECTS, NULL), 0);
	commit(f);
	*state = f;
	return 0;
}

static void fill(uint32_t object, uint32_t round)
{
	for (uint32_t i = 0; i < OBJECT_BYTES; i++)
		bytes[i] = (uint8_t)(i * 31 + object * 7 + round * 13 + (i >> 8));
}

static int write_object(struct fixture *f, uint32_t object, uint32_t round)
{
	struct engine_address address = { .partition = PARTITION, .object = OBJECT + object };
	int result;

	fill(object, round);
	begin(f, ENGINE_WRITE);
	result = engine_write(f->txn, address, 0, bytes, OBJECT_BYTES);
	return end(f, result);
}

static void check_object(struct fixture *f, uint32_t object, uint32_t version, uint32_t round)
{
	struct engine_address address = { .partition = PARTITION,
					  .object = OBJECT + object,
					  .version = version };
	uint8_t *found = malloc(OBJECT_BYTES);
	uint64_t got;

	assert_non_null(found);
	fill(object, round);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_read(f->txn, address, 0, found, OBJECT_BYTES, &got), 0);
	assert_int_equal(got, OBJECT_BYTES);
	assert_memory_equal(found, bytes, OBJECT_BYTES);
	commit(f);
	free(found);
}

static uint64_t capacity(struct fixture *f)
{
	struct engine_statistics statistics;

	engine_read_statistics(f->engine, &statistics);
	return statistics.capacity_bytes;
}

static void test_overwriting_goes_on_for_ever_and_versions_stay(void **state)
{
	struct fixture *f = *state;
	uint32_t rounds = (uint32_t)(capacity(f) / (OBJECTS * OBJECT_BYTES)) * 5;

	for (uint32_t round = 0; round < rounds; round++) {
		for (uint32_t object = 0; object < OBJECTS; object++)
			assert_int_equal(write_object(f, object, round), 0);
		if (round == 1)
			assert_int_equal(take_snapshot(f, PARTITION, NULL), 1);
		if (round == 3)
			assert_int_equal(take_snapshot(f, PARTITION, NULL), 2);
	}
	for (int reopened = 0; reopened < 2; reopened++) {
		for (uint32_t object = 0; object < OBJECTS; object++) {
			check_object(f, object, 0, rounds - 1);
			check_object(f, object, 1, 1);
			check_object(f, object, 2, 3);
		}
		crash(f);
	}
}

static void test_merging_reads_no_past_onodes_of_objects_that_are_in_memory(void **state)
{
	struct fixture *f = *state;
	uint32_t rounds = (uint32_t)(capacity(f) / (OBJECTS * OBJECT_BYTES)) * 5;
	struct engine_statistics before, after;

	engine_read_statistics(f->engine, &before);
	for (uint32_t round = 0; round < rounds; round++)
		for (uint32_t object = 0; object < OBJECTS; object++)
			assert_int_equal(write_object(f, object, round), 0);
	engine_read_statistics(f->engine, &after);
	/* What it reads itself is not a user's. */
	assert_true(after.segments_free < after.segments / 2);
	assert_true(after.user_page_reads - before.user_page_reads < rounds);
}

/* Creates objects of a partition until there is no room. Returns how many there are. */
static uint32_t fill_partition(struct fixture *f, uint64_t partition)
{
	uint32_t count = 0;
	int result = 0;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, partition, NULL), 0);
	commit(f);
	while (result == 0) {
		struct engine_address address = { .partition = partition };

		begin(f, ENGINE_WRITE);
		result =
			engine_create(f->txn, partition, ENGINE_USER_OBJECT, 0, 1, &address.object);
		if (!result)
			result = engine_write(f->txn, address, 0, bytes, OBJECT_BYTES);
		result = end(f, result);
		count += result == 0;
	}
	assert_int_equal(result, -ENOSPC);
	return count;
}

static void test_removing_a_partition_makes_room_on_a_full_device(void **state)
{
	struct fixture *f = *state;
	uint32_t first = 0;

	for (uint32_t object = 0; object < OBJECTS; object++)
		assert_int_equal(write_object(f, object, 5), 0);
	for (uint64_t partition = PARTITION + 1; partition < PARTITION + 6; partition++) {
		uint32_t count = fill_partition(f, partition);

		first = first ? first : count;
		assert_true(count >= first * 9 / 10);
		begin(f, ENGINE_FREE);
		assert_int_equal(engine_partition_remove(f->txn, partition, true), 0);
		commit(f);
	}
	assert_true((uint64_t)first * OBJECT_BYTES > capacity(f) / 2);
	for (uint32_t object = 0; object < OBJECTS; object++)
		check_object(f, object, 0, 5);
}

static void test_removing_and_cutting_objects_makes_room_on_a_full_device(void **state)
{
	struct fixture *f = *state;
	uint32_t count, written = 0;

	for (uint32_t object = 0; object < OBJECTS; object++)
		assert_int_equal(write_object(f, object, 9), 0);
	count = fill_partition(f, PARTITION + 1);
	for (uint32_t object = 0; object < count; object++) {
		struct engine_address address = { .partition = PARTITION + 1,
						  .object = OBJECT + object };

		begin(f, ENGINE_FREE);
		assert_int_equal(object % 2 ? engine_remove(f->txn, address)
					    : engine_truncate(f->txn, address, 0),
				 0);
		commit(f);
	}
	/*
	 * The first ones may still be refused until a walk over the segments has found what went.
	 */
	for (uint32_t tries = 0; tries < 2000 && written < count * 8 / 10; tries++) {
		int result = write_object(f, written % OBJECTS, 10 + written / OBJECTS);

		assert_true(result == 0 || result == -ENOSPC);
		written += result == 0;
	}
	assert_int_equal(written, count * 8 / 10);
}

static void test_without_automatic_merging_space_comes_back_on_request_only(void **state)
{
	struct fixture *f = *state;
	struct engine_merge_result total = { 0 };
	struct engine_options manual = options_of(f);
	struct error_text error = { "" };
	int result = 0;
	uint32_t round = 0;

	assert_int_equal(engine_close(f->engine), 0);
	manual.merge_manual = true;
	assert_int_equal(engine_open(f->nand, &manual, &f->engine, &error), 0);
	for (; result == 0; round++)
		result = write_object(f, 0, round);
	assert_int_equal(result, -ENOSPC);
	check_object(f, 0, 0, round - 2);
	assert_int_equal(write_object(f, 0, 1), -ENOSPC);
	for (int step = 0; step < 40; step++)
		assert_int_equal(engine_merge(f->engine, &total), 0);
	assert_int_equal(total.segments_freed, 40);
	assert_int_equal(write_object(f, 0, 1), 0);
	check_object(f, 0, 0, 1);
	assert_true(engine_capabilities(f->engine) & ENGINE_HAS_MERGE);
}

/* Until a rollback of the device brings it back. */
static void test_lasting_attributes_of_a_removed_partition_outlive_merging(void **state)
{
	const uint32_t page = 0x30000005;
	const struct engine_address removed = { .partition = PARTITION + 1 };
	struct engine_moment to = { .kind = ENGINE_AT_VERSION };
	struct fixture *f = *state;
	uint32_t version, length;
	char value[8] = "";

	engine_set_lasting_pages(f->engine, &page, 1);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, removed.partition, NULL), 0);
	assert_int_equal(engine_attribute_set(f->txn, removed, page, 1, "closed", 6), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(f->txn, 0, NULL, &version), 0);
	commit(f);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(f->txn, removed.partition, true), 0);
	commit(f);
	for (uint32_t round = 0; round < 800; round++)
		assert_int_equal(write_object(f, round % OBJECTS, round), 0);
	to.value = version;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback(f->txn, 0, to), 0);
	commit(f);
	begin(f, ENGINE_READ);
	assert_int_equal(
		engine_attribute_get(f->txn, removed, page, 1, value, sizeof(value), &length), 0);
	assert_string_equal(value, "closed");
	abort_all(f);
}

/* Segments that hold little but live data are not worth moving, however low the room is. */
static void test_filling_a_device_with_live_objects_moves_little(void **state)
{
	struct fixture *f = *state;
	struct nand_counters before, after;
	uint64_t programmed, pages = (uint64_t)BLOCKS * 8;
	uint32_t objects = 0;
	int result = 0;

	nand_read_counters(f->nand, &before);
	while (result == 0) {
		struct engine_address address = { .partition = PARTITION };

		begin(f, ENGINE_WRITE);
		result =
			engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, 1, &address.object);
		if (!result)
			result = engine_write(f->txn, address, 0, bytes, 900);
		result = end(f, result);
		objects += result == 0;
	}
	assert_int_equal(result, -ENOSPC);
	nand_read_counters(f->nand, &after);
	programmed = after.by_cause[NAND_CAUSE_USER].pages_programmed -
		     before.by_cause[NAND_CAUSE_USER].pages_programmed;
	print_message("%u objects, %llu of %llu pages programmed\n", objects,
		      (unsigned long long)programmed, (unsigned long long)pages);
	assert_true(programmed < 2 * pages);
}

#define MERGING_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MERGING_TEST(test_overwriting_goes_on_for_ever_and_versions_stay),
		MERGING_TEST(test_merging_reads_no_past_onodes_of_objects_that_are_in_memory),
		MERGING_TEST(test_removing_a_partition_makes_room_on_a_full_device),
		MERGING_TEST(test_lasting_attributes_of_a_removed_partition_outlive_merging),
		MERGING_TEST(test_filling_a_device_with_live_objects_moves_little),
		MERGING_TEST(test_removing_and_cutting_objects_makes_room_on_a_full_device),
		MERGING_TEST(test_without_automatic_merging_space_comes_back_on_request_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
