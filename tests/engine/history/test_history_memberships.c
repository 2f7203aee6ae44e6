/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Objects that go back by undo or rollback are members of the collections of then, as far as they
 * are still there.
 */
#include "common/bytes.h"
#include "tests/engine/fixture.h"

#define C (OBJECT + 0x100)
#define D (OBJECT + 0x101)

static int setup_collections(void **state)
{
	struct fixture *f;

	setup_on_memory(state);
	f = *state;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, C, 1, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, D, 1, NULL), 0);
	commit(f);
	return 0;
}

/* A transaction each. */
static void set(struct fixture *f, uint32_t number, uint64_t collection)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_membership_set(f->txn, object(OBJECT), number, collection), 0);
	commit(f);
}

static void remove_one(struct fixture *f, uint64_t id)
{
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_remove(f->txn, object(id)), 0);
	commit(f);
}

static void empty(struct fixture *f, uint64_t collection)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_members_clear(f->txn, object(collection)), 0);
	commit(f);
}

static void undo(struct fixture *f, uint32_t modifications)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, modifications), 0);
	commit(f);
}

static void roll_object_back(struct fixture *f, uint32_t version)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback_object(f->txn, PARTITION, OBJECT, at_number(version)), 0);
	commit(f);
}

/* What the object knows under a number (0: nothing), and whether both collections have it. */
static void check(struct fixture *f, uint32_t number, uint64_t wanted, uint64_t in_c, uint64_t in_d)
{
	uint8_t value[8] = { 0 };
	uint64_t count;
	uint32_t length;
	int result;

	begin(f, ENGINE_READ);
	result = engine_attribute_get(f->txn, object(OBJECT), ENGINE_MEMBERSHIPS_PAGE, number,
				      value, sizeof(value), &length);
	assert_int_equal(result, wanted ? 0 : -ENOENT);
	assert_int_equal(get_be64(value), wanted);
	if (engine_list_count(f->txn, object(C), ENGINE_LIST_MEMBERS, 0, &count) == 0)
		assert_int_equal(count, in_c);
	assert_int_equal(engine_list_count(f->txn, object(D), ENGINE_LIST_MEMBERS, 0, &count), 0);
	assert_int_equal(count, in_d);
	commit(f);
}

static void test_undo_takes_joining_and_leaving_back(void **state)
{
	struct fixture *f = *state;

	set(f, 1, C);
	undo(f, 1);
	check(f, 1, 0, 0, 0);
	undo(f, 1);
	check(f, 1, C, 1, 0);
	set(f, 1, D);
	check(f, 1, D, 0, 1);
	undo(f, 1);
	check(f, 1, C, 1, 0);
	set(f, 1, 0);
	undo(f, 1);
	crash(f);
	check(f, 1, C, 1, 0);
	/* Writing is another thing. */
	put_text(f, object(OBJECT), "text");
	undo(f, 1);
	check(f, 1, C, 1, 0);
}

static void test_a_removed_object_comes_back_with_its_memberships(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	set(f, 7, C);
	set(f, 9, D);
	version = take_snapshot(f, PARTITION, NULL);
	remove_one(f, OBJECT);
	check(f, 7, 0, 0, 0);
	undo(f, 1);
	check(f, 7, C, 1, 1);
	check(f, 9, D, 1, 1);
	remove_one(f, OBJECT);
	roll_object_back(f, version);
	check(f, 7, C, 1, 1);
	crash(f);
	check(f, 9, D, 1, 1);
	/* And goes with them again. */
	remove_one(f, OBJECT);
	check(f, 9, 0, 0, 0);
}

static void test_numbers_are_exchanged_back(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	set(f, 1, C);
	set(f, 2, D);
	version = take_snapshot(f, PARTITION, NULL);
	set(f, 1, 0);
	set(f, 2, C);
	set(f, 1, D);
	roll_object_back(f, version);
	check(f, 1, C, 1, 1);
	check(f, 2, D, 1, 1);
}

static void test_collections_that_are_gone_or_made_again_are_left_out(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	set(f, 1, C);
	set(f, 2, D);
	version = take_snapshot(f, PARTITION, NULL);
	set(f, 1, 0);
	set(f, 2, 0);
	remove_one(f, C);
	roll_object_back(f, version);
	check(f, 1, 0, 0, 1);
	check(f, 2, D, 0, 1);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, C, 1, NULL), 0);
	commit(f);
	put_text(f, object(OBJECT), "text");
	roll_object_back(f, version);
	check(f, 1, 0, 0, 1);
}

static void test_an_object_joins_a_collection_again_that_was_emptied(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	set(f, 1, C);
	version = take_snapshot(f, PARTITION, NULL);
	empty(f, C);
	check(f, 1, 0, 0, 0);
	roll_object_back(f, version);
	check(f, 1, C, 1, 0);
}

static void test_a_bare_member_stays_bare(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	set(f, 1, C);
	version = take_snapshot(f, PARTITION, NULL);
	set(f, 1, 0);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_member_insert(f->txn, object(C), OBJECT), 0);
	commit(f);
	roll_object_back(f, version);
	check(f, 1, 0, 1, 0);
}

#define WITH(name) cmocka_unit_test_setup_teardown(name, setup_collections, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_undo_takes_joining_and_leaving_back),
		WITH(test_a_removed_object_comes_back_with_its_memberships),
		WITH(test_numbers_are_exchanged_back),
		WITH(test_collections_that_are_gone_or_made_again_are_left_out),
		WITH(test_an_object_joins_a_collection_again_that_was_emptied),
		WITH(test_a_bare_member_stays_bare),
	};

	return cmocka_run_group_tests_name("history_memberships", tests, NULL, NULL);
}
