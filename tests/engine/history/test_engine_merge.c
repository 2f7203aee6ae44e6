/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Space comes back by itself: objects that are overwritten, cut or removed, and partitions that are
 * gone, make room for new ones, while user versions keep what they need.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "engine/history.h"
#include "engine/options.h"
#include "tests/engine/by_address.h"

enum { OBJECTS = 20, OBJECT_BYTES = 20000, PARTITION = 0x10000, FIRST = 0x10000 };

static const struct nand_geometry shape = {
	.page_bytes = 512,
	.spare_bytes = 64,
	.pages_per_block = 8,
	.blocks = 900,
	.channels = 1,
	.dies_per_channel = 1,
};
static const struct engine_options options = { .muninn.rows = 2,
					       .muninn.segment_pages = 16,
					       .muninn.record_bytes = 256 };

struct device {
	struct nand *nand;
	struct engine *engine;
	uint8_t *bytes; /* OBJECT_BYTES of scratch space */
};

static void open_engine(struct device *device)
{
	struct error_text error = { "" };

	if (engine_open(device->nand, &options, &device->engine, &error))
		fail_msg("%s", error.text);
}

static int setup(void **state)
{
	struct device *device = calloc(1, sizeof(*device));
	struct error_text error = { "" };
	struct engine_txn *txn;
	uint64_t nvram;

	assert_non_null(device);
	device->bytes = malloc(OBJECT_BYTES);
	assert_non_null(device->bytes);
	assert_int_equal(engine_nvram_bytes(&shape, &options, &nvram, &error), 0);
	assert_int_equal(nand_open_memory(&shape, nvram, &device->nand, &error), 0);
	assert_int_equal(engine_format(device->nand, &options, &error), 0);
	open_engine(device);
	assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_partition_create(txn, PARTITION, NULL), 0);
	assert_int_equal(engine_create(txn, PARTITION, ENGINE_USER_OBJECT, 0, OBJECTS, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	*state = device;
	return 0;
}

static int teardown(void **state)
{
	struct device *device = *state;

	assert_int_equal(engine_close(device->engine), 0);
	assert_int_equal(nand_close(device->nand), 0);
	free(device->bytes);
	free(device);
	return 0;
}

static void fill(uint8_t *bytes, uint32_t object, uint32_t round)
{
	for (uint32_t i = 0; i < OBJECT_BYTES; i++)
		bytes[i] = (uint8_t)(i * 31 + object * 7 + round * 13 + (i >> 8));
}

static int write_object(struct device *device, uint32_t object, uint32_t round)
{
	struct engine_address address = { .partition = PARTITION, .object = FIRST + object };
	struct engine_txn *txn;
	int result;

	fill(device->bytes, object, round);
	assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
	result = engine_write(txn, address, 0, device->bytes, OBJECT_BYTES);
	if (result) {
		engine_abort(txn);
		return result;
	}
	return engine_commit(txn, false);
}

static void check_object(struct device *device, uint32_t object, uint32_t version, uint32_t round)
{
	struct engine_address address = { .partition = PARTITION,
					  .object = FIRST + object,
					  .version = version };
	uint8_t *found = malloc(OBJECT_BYTES);
	struct engine_txn *txn;
	uint64_t got;

	assert_non_null(found);
	fill(device->bytes, object, round);
	assert_int_equal(engine_begin(device->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_read(txn, address, 0, found, OBJECT_BYTES, &got), 0);
	assert_int_equal(got, OBJECT_BYTES);
	assert_memory_equal(found, device->bytes, OBJECT_BYTES);
	assert_int_equal(engine_commit(txn, false), 0);
	free(found);
}

static void snapshot(struct device *device, uint32_t expected)
{
	struct engine_txn *txn;
	uint32_t version;

	assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_snapshot(txn, PARTITION, NULL, &version), 0);
	assert_int_equal(version, expected);
	assert_int_equal(engine_commit(txn, false), 0);
}

static uint64_t capacity(struct device *device)
{
	struct engine_statistics statistics;

	engine_read_statistics(device->engine, &statistics);
	return statistics.capacity_bytes;
}

static void test_overwriting_goes_on_for_ever_and_versions_stay(void **state)
{
	struct device *device = *state;
	uint32_t rounds = (uint32_t)(capacity(device) / (OBJECTS * OBJECT_BYTES)) * 5;

	for (uint32_t round = 0; round < rounds; round++) {
		for (uint32_t object = 0; object < OBJECTS; object++)
			assert_int_equal(write_object(device, object, round), 0);
		if (round == 1)
			snapshot(device, 1);
		if (round == 3)
			snapshot(device, 2);
	}
	for (int reopened = 0; reopened < 2; reopened++) {
		for (uint32_t object = 0; object < OBJECTS; object++) {
			check_object(device, object, 0, rounds - 1);
			check_object(device, object, 1, 1);
			check_object(device, object, 2, 3);
		}
		engine_abandon(device->engine);
		open_engine(device);
	}
}

/* Creates objects of a partition until there is no room. Returns how many there are. */
static uint32_t fill_partition(struct device *device, uint64_t partition)
{
	struct engine_txn *txn;
	uint32_t count = 0;
	int result = 0;

	assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_partition_create(txn, partition, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	while (result == 0) {
		struct engine_address address = { .partition = partition };

		assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
		result = engine_create(txn, partition, ENGINE_USER_OBJECT, 0, 1, &address.object);
		if (!result)
			result = engine_write(txn, address, 0, device->bytes, OBJECT_BYTES);
		if (result)
			engine_abort(txn);
		else
			result = engine_commit(txn, false);
		count += result == 0;
	}
	assert_int_equal(result, -ENOSPC);
	return count;
}

static void test_removing_a_partition_makes_room_on_a_full_device(void **state)
{
	struct device *device = *state;
	uint32_t first = 0;

	for (uint32_t object = 0; object < OBJECTS; object++)
		assert_int_equal(write_object(device, object, 5), 0);
	for (uint64_t partition = PARTITION + 1; partition < PARTITION + 6; partition++) {
		struct engine_txn *txn;
		uint32_t count = fill_partition(device, partition);

		first = first ? first : count;
		assert_true(count >= first * 9 / 10);
		assert_int_equal(engine_begin(device->engine, ENGINE_FREE, &txn), 0);
		assert_int_equal(engine_partition_remove(txn, partition, true), 0);
		assert_int_equal(engine_commit(txn, false), 0);
	}
	assert_true((uint64_t)first * OBJECT_BYTES > capacity(device) / 2);
	for (uint32_t object = 0; object < OBJECTS; object++)
		check_object(device, object, 0, 5);
}

static void test_removing_and_cutting_objects_makes_room_on_a_full_device(void **state)
{
	struct device *device = *state;
	struct engine_txn *txn;
	uint32_t count, written = 0;

	for (uint32_t object = 0; object < OBJECTS; object++)
		assert_int_equal(write_object(device, object, 9), 0);
	count = fill_partition(device, PARTITION + 1);
	for (uint32_t object = 0; object < count; object++) {
		struct engine_address address = { .partition = PARTITION + 1,
						  .object = FIRST + object };

		assert_int_equal(engine_begin(device->engine, ENGINE_FREE, &txn), 0);
		assert_int_equal(object % 2 ? engine_remove(txn, address)
					    : engine_truncate(txn, address, 0),
				 0);
		assert_int_equal(engine_commit(txn, false), 0);
	}
	/*
	 * The first ones may still be refused until a walk over the segments has found what went.
	 */
	for (uint32_t tries = 0; tries < 2000 && written < count * 8 / 10; tries++) {
		int result = write_object(device, written % OBJECTS, 10 + written / OBJECTS);

		assert_true(result == 0 || result == -ENOSPC);
		written += result == 0;
	}
	assert_int_equal(written, count * 8 / 10);
}

static void test_without_automatic_merging_space_comes_back_on_request_only(void **state)
{
	struct device *device = *state;
	struct engine_merge_result total = { 0 };
	struct engine_options manual = options;
	struct error_text error = { "" };
	int result = 0;
	uint32_t round = 0;

	assert_int_equal(engine_close(device->engine), 0);
	manual.merge_manual = true;
	assert_int_equal(engine_open(device->nand, &manual, &device->engine, &error), 0);
	for (; result == 0; round++)
		result = write_object(device, 0, round);
	assert_int_equal(result, -ENOSPC);
	check_object(device, 0, 0, round - 2);
	assert_int_equal(write_object(device, 0, 1), -ENOSPC);
	for (int step = 0; step < 40; step++)
		assert_int_equal(engine_merge(device->engine, &total), 0);
	assert_int_equal(total.segments_freed, 40);
	assert_int_equal(write_object(device, 0, 1), 0);
	check_object(device, 0, 0, 1);
	assert_true(engine_capabilities(device->engine) & ENGINE_HAS_MERGE);
}

/* Until a rollback of the device brings it back. */
static void test_lasting_attributes_of_a_removed_partition_outlive_merging(void **state)
{
	const uint32_t page = 0x30000005;
	const struct engine_address removed = { .partition = PARTITION + 1 };
	struct engine_moment to = { .kind = ENGINE_AT_VERSION };
	struct device *device = *state;
	struct engine_txn *txn;
	uint32_t version, length;
	char value[8] = "";

	engine_set_lasting_pages(device->engine, &page, 1);
	assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_partition_create(txn, removed.partition, NULL), 0);
	assert_int_equal(engine_attribute_set(txn, removed, page, 1, "closed", 6), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_snapshot(txn, 0, NULL, &version), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_int_equal(engine_begin(device->engine, ENGINE_FREE, &txn), 0);
	assert_int_equal(engine_partition_remove(txn, removed.partition, true), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	for (uint32_t round = 0; round < 800; round++)
		assert_int_equal(write_object(device, round % OBJECTS, round), 0);
	to.value = version;
	assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_rollback(txn, 0, to), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_int_equal(engine_begin(device->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_attribute_get(txn, removed, page, 1, value, sizeof(value), &length),
			 0);
	assert_string_equal(value, "closed");
	engine_abort(txn);
}

/* Segments that hold little but live data are not worth moving, however low the room is. */
static void test_filling_a_device_with_live_objects_moves_little(void **state)
{
	struct device *device = *state;
	struct nand_counters before, after;
	struct engine_txn *txn = NULL;
	uint64_t programmed, pages = (uint64_t)shape.blocks * shape.pages_per_block;
	uint32_t objects = 0;
	int result = 0;

	nand_read_counters(device->nand, &before);
	while (result == 0) {
		struct engine_address address = { .partition = PARTITION };

		assert_int_equal(engine_begin(device->engine, ENGINE_WRITE, &txn), 0);
		result = engine_create(txn, PARTITION, ENGINE_USER_OBJECT, 0, 1, &address.object);
		if (!result)
			result = engine_write(txn, address, 0, device->bytes, 900);
		if (result)
			engine_abort(txn);
		else
			result = engine_commit(txn, false);
		objects += result == 0;
	}
	assert_int_equal(result, -ENOSPC);
	nand_read_counters(device->nand, &after);
	programmed = after.by_cause[NAND_CAUSE_USER].pages_programmed -
		     before.by_cause[NAND_CAUSE_USER].pages_programmed;
	print_message("%u objects, %llu of %llu pages programmed\n", objects,
		      (unsigned long long)programmed, (unsigned long long)pages);
	assert_true(programmed < 2 * pages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_overwriting_goes_on_for_ever_and_versions_stay,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_removing_a_partition_makes_room_on_a_full_device, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_lasting_attributes_of_a_removed_partition_outlive_merging, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			test_filling_a_device_with_live_objects_moves_little, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_removing_and_cutting_objects_makes_room_on_a_full_device, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			test_without_automatic_merging_space_comes_back_on_request_only, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
