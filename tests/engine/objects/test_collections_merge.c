/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Members of collections, present and of old versions, survive that space is reclaimed around them.
 */
#include "tests/engine/fixture.h"

enum { MEMBERS = 600, COLLECTION = 0x20000 };
enum { CHURN_BYTES = 20000, CHURN_OBJECTS = 20, CHURN_ROUNDS = 40, CHURN_FIRST = 0x30000 };

static struct engine_address at(uint64_t object, uint32_t version)
{
	return (struct engine_address){ .partition = PARTITION,
					.object = object,
					.version = version };
}

static int setup(void **state)
{
	struct fixture *f = make_merging(1200);

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, MEMBERS, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, COLLECTION, 1, NULL),
			 0);
	for (uint32_t i = 0; i < MEMBERS; i++)
		assert_int_equal(engine_membership_set(f->txn, at(OBJECT + i, 0), 1, COLLECTION),
				 0);
	for (uint32_t i = 0; i < CHURN_OBJECTS; i++)
		assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT,
					       CHURN_FIRST + i, 1, NULL),
				 0);
	commit(f);
	*state = f;
	return 0;
}

/*
 * Writes the device over several times. The members' onodes, too: they share segments with the
 * nodes of the collection, which have to be moved out of them.
 */
static void churn(struct fixture *f)
{
	uint8_t *bytes = malloc(CHURN_BYTES);

	for (uint32_t round = 0; round < CHURN_ROUNDS; round++) {
		for (uint32_t i = 0; i < MEMBERS; i++) {
			begin(f, ENGINE_WRITE);
			assert_int_equal(engine_attribute_set(f->txn, at(OBJECT + i, 0), 9, 1,
							      &round, sizeof(round)),
					 0);
			commit(f);
		}
		for (uint32_t i = 0; i < CHURN_OBJECTS; i++) {
			memset(bytes, (int)(round + i), CHURN_BYTES);
			begin(f, ENGINE_WRITE);
			assert_int_equal(
				engine_write(f->txn, at(CHURN_FIRST + i, 0), 0, bytes, CHURN_BYTES),
				0);
			commit(f);
		}
	}
	free(bytes);
}

/* Every `step`-th object from `first` on is a member at the version, and no other. */
static void check_members(struct fixture *f, uint32_t version, uint32_t first, uint32_t step)
{
	uint64_t ids[64], next = 1, expected = OBJECT + first;
	size_t count;

	begin(f, ENGINE_READ);
	while (next != 0) {
		assert_int_equal(engine_list(f->txn, at(COLLECTION, version), ENGINE_LIST_MEMBERS,
					     next, ids, 64, &count, &next),
				 0);
		for (size_t i = 0; i < count; i++, expected += step) {
			uint8_t value[8];
			uint32_t length;

			assert_int_equal(ids[i], expected);
			assert_int_equal(engine_attribute_get(f->txn, at(ids[i], version),
							      ENGINE_MEMBERSHIPS_PAGE, 1, value, 8,
							      &length),
					 0);
		}
	}
	assert_true(expected >= OBJECT + MEMBERS && expected < OBJECT + MEMBERS + step);
	commit(f);
}

static void test_members_survive_merges(void **state)
{
	struct fixture *f = *state;
	struct engine_statistics statistics;
	uint32_t version;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, &version), 0);
	commit(f);
	churn(f);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		if (i % 3 == 0)
			continue;
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_membership_set(f->txn, at(OBJECT + i, 0), 1, 0), 0);
		commit(f);
	}
	churn(f);
	check_members(f, version, 0, 1);
	check_members(f, 0, 0, 3);
	engine_read_statistics(f->engine, &statistics);
	/* What was written is several times the device: it was merged. */
	assert_true(statistics.record_bytes_put > 5 * statistics.capacity_bytes);
	assert_int_equal(engine_close(f->engine), 0);
	reopen(f);
	check_members(f, version, 0, 1);
	check_members(f, 0, 0, 3);
}

static void test_members_of_a_collection_that_went_are_reclaimed(void **state)
{
	struct fixture *f = *state;

	/* Each round leaves some 10 KiB of nodes behind, altogether more than the device holds. */
	for (uint32_t round = 0; round < 300; round++) {
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, COLLECTION + 1,
					       1, NULL),
				 0);
		for (uint32_t i = 0; i < 2000; i++)
			assert_int_equal(
				engine_member_insert(f->txn, at(COLLECTION + 1, 0), OBJECT + i), 0);
		commit(f);
		begin(f, ENGINE_FREE);
		assert_int_equal(engine_members_clear(f->txn, at(COLLECTION + 1, 0)), 0);
		assert_int_equal(engine_remove(f->txn, at(COLLECTION + 1, 0)), 0);
		commit(f);
	}
	check_members(f, 0, 0, 1);
}

#define MERGING_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MERGING_TEST(test_members_survive_merges),
		MERGING_TEST(test_members_of_a_collection_that_went_are_reclaimed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
