/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Members of collections, present and of old versions, survive that space is reclaimed around them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "engine/history.h"
#include "engine/options.h"
#include "tests/engine/by_address.h"

enum { MEMBERS = 600, PARTITION = 0x10000, FIRST = 0x10000, COLLECTION = 0x20000 };
enum { CHURN_BYTES = 20000, CHURN_OBJECTS = 20, CHURN_ROUNDS = 40, CHURN_FIRST = 0x30000 };

static const struct nand_geometry shape = {
	.page_bytes = 512,
	.spare_bytes = 64,
	.pages_per_block = 8,
	.blocks = 1200,
	.channels = 1,
	.dies_per_channel = 1,
};
static const struct engine_options options = { .muninn.rows = 2,
					       .muninn.segment_pages = 16,
					       .muninn.record_bytes = 256 };

struct device {
	struct nand *nand;
	struct engine *engine;
	struct engine_txn *txn;
};

static struct engine_address at(uint64_t object, uint32_t version)
{
	return (struct engine_address){ .partition = PARTITION,
					.object = object,
					.version = version };
}

static void begin(struct device *device, enum engine_mode mode)
{
	assert_int_equal(engine_begin(device->engine, mode, &device->txn), 0);
}

static void commit(struct device *device)
{
	assert_int_equal(engine_commit(device->txn, false), 0);
}

static int setup(void **state)
{
	struct device *device = calloc(1, sizeof(*device));
	struct error_text error = { "" };
	uint64_t nvram;

	assert_int_equal(engine_nvram_bytes(&shape, &options, &nvram, &error), 0);
	assert_int_equal(nand_open_memory(&shape, nvram, &device->nand, &error), 0);
	assert_int_equal(engine_format(device->nand, &options, &error), 0);
	assert_int_equal(engine_open(device->nand, &options, &device->engine, &error), 0);
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(device->txn, PARTITION, NULL), 0);
	assert_int_equal(
		engine_create(device->txn, PARTITION, ENGINE_USER_OBJECT, 0, MEMBERS, NULL), 0);
	assert_int_equal(
		engine_create(device->txn, PARTITION, ENGINE_COLLECTION, COLLECTION, 1, NULL), 0);
	for (uint32_t i = 0; i < MEMBERS; i++)
		assert_int_equal(
			engine_membership_set(device->txn, at(FIRST + i, 0), 1, COLLECTION), 0);
	for (uint32_t i = 0; i < CHURN_OBJECTS; i++)
		assert_int_equal(engine_create(device->txn, PARTITION, ENGINE_USER_OBJECT,
					       CHURN_FIRST + i, 1, NULL),
				 0);
	commit(device);
	*state = device;
	return 0;
}

static int teardown(void **state)
{
	struct device *device = *state;

	assert_int_equal(engine_close(device->engine), 0);
	assert_int_equal(nand_close(device->nand), 0);
	free(device);
	return 0;
}

/*
 * Writes the device over several times. The members' onodes, too: they share segments with the
 * nodes of the collection, which have to be moved out of them.
 */
static void churn(struct device *device)
{
	uint8_t *bytes = malloc(CHURN_BYTES);

	for (uint32_t round = 0; round < CHURN_ROUNDS; round++) {
		for (uint32_t i = 0; i < MEMBERS; i++) {
			begin(device, ENGINE_WRITE);
			assert_int_equal(engine_attribute_set(device->txn, at(FIRST + i, 0), 9, 1,
							      &round, sizeof(round)),
					 0);
			commit(device);
		}
		for (uint32_t i = 0; i < CHURN_OBJECTS; i++) {
			memset(bytes, (int)(round + i), CHURN_BYTES);
			begin(device, ENGINE_WRITE);
			assert_int_equal(engine_write(device->txn, at(CHURN_FIRST + i, 0), 0, bytes,
						      CHURN_BYTES),
					 0);
			commit(device);
		}
	}
	free(bytes);
}

/* Every `step`-th object from `first` on is a member at the version, and no other. */
static void check_members(struct device *device, uint32_t version, uint32_t first, uint32_t step)
{
	uint64_t ids[64], next = 1, expected = FIRST + first;
	size_t count;

	begin(device, ENGINE_READ);
	while (next != 0) {
		assert_int_equal(engine_list(device->txn, at(COLLECTION, version),
					     ENGINE_LIST_MEMBERS, next, ids, 64, &count, &next),
				 0);
		for (size_t i = 0; i < count; i++, expected += step) {
			uint8_t value[8];
			uint32_t length;

			assert_int_equal(ids[i], expected);
			assert_int_equal(engine_attribute_get(device->txn, at(ids[i], version),
							      ENGINE_MEMBERSHIPS_PAGE, 1, value, 8,
							      &length),
					 0);
		}
	}
	assert_true(expected >= FIRST + MEMBERS && expected < FIRST + MEMBERS + step);
	commit(device);
}

static void test_members_survive_merges(void **state)
{
	struct device *device = *state;
	struct error_text error;
	struct engine_statistics statistics;
	uint32_t version;

	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(device->txn, PARTITION, NULL, &version), 0);
	commit(device);
	churn(device);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		if (i % 3 == 0)
			continue;
		begin(device, ENGINE_WRITE);
		assert_int_equal(engine_membership_set(device->txn, at(FIRST + i, 0), 1, 0), 0);
		commit(device);
	}
	churn(device);
	check_members(device, version, 0, 1);
	check_members(device, 0, 0, 3);
	engine_read_statistics(device->engine, &statistics);
	/* What was written is several times the device: it was merged. */
	assert_true(statistics.record_bytes_put > 5 * statistics.capacity_bytes);
	assert_int_equal(engine_close(device->engine), 0);
	assert_int_equal(engine_open(device->nand, &options, &device->engine, &error), 0);
	check_members(device, version, 0, 1);
	check_members(device, 0, 0, 3);
}

static void test_members_of_a_collection_that_went_are_reclaimed(void **state)
{
	struct device *device = *state;

	/* Each round leaves some 10 KiB of nodes behind, altogether more than the device holds. */
	for (uint32_t round = 0; round < 300; round++) {
		begin(device, ENGINE_WRITE);
		assert_int_equal(engine_create(device->txn, PARTITION, ENGINE_COLLECTION,
					       COLLECTION + 1, 1, NULL),
				 0);
		for (uint32_t i = 0; i < 2000; i++)
			assert_int_equal(
				engine_member_insert(device->txn, at(COLLECTION + 1, 0), FIRST + i),
				0);
		commit(device);
		begin(device, ENGINE_FREE);
		assert_int_equal(engine_members_clear(device->txn, at(COLLECTION + 1, 0)), 0);
		assert_int_equal(engine_remove(device->txn, at(COLLECTION + 1, 0)), 0);
		commit(device);
	}
	check_members(device, 0, 0, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_members_survive_merges, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_members_of_a_collection_that_went_are_reclaimed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
