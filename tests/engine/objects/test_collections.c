/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Collections of the engine: memberships that objects know, bare members, what ends them, versions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

/* Objects OBJECT.. of the partition, and two collections. */
enum { OBJECTS = 8 };
#define C (OBJECT + 0x100)
#define D (OBJECT + 0x101)

static int setup_collections(void **state)
{
	struct fixture *f;

	setup_on_memory(state);
	f = *state;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, 0, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, OBJECTS, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, C, 1, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, D, 1, NULL), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	return 0;
}

#define WITH(name) cmocka_unit_test_setup_teardown(name, setup_collections, teardown)

static void join(struct fixture *f, uint64_t id, uint32_t number, uint64_t collection)
{
	assert_int_equal(engine_membership_set(f->txn, object(id), number, collection), 0);
}

/* The members are exactly these, as a bit mask of objects OBJECT + n. */
static void assert_members(struct fixture *f, struct engine_address collection, unsigned wanted)
{
	uint64_t ids[64], next, count_all;
	unsigned found = 0;
	size_t count;

	assert_int_equal(
		engine_list(f->txn, collection, ENGINE_LIST_MEMBERS, 0, ids, 64, &count, &next), 0);
	assert_int_equal(next, 0);
	for (size_t i = 0; i < count; i++)
		found |= 1U << (ids[i] - OBJECT);
	assert_int_equal(found, wanted);
	assert_int_equal(stat_of(f, collection).members, count);
	assert_int_equal(engine_list_count(f->txn, collection, ENGINE_LIST_MEMBERS, 0, &count_all),
			 0);
	assert_int_equal(count_all, count);
}

/* What the membership attribute shows; 0: it is not defined. */
static uint64_t shown(struct fixture *f, struct engine_address address, uint32_t number)
{
	uint8_t value[16];
	uint32_t length;
	int result = engine_attribute_get(f->txn, address, ENGINE_MEMBERSHIPS_PAGE, number, value,
					  sizeof(value), &length);

	if (result == -ENOENT)
		return 0;
	assert_int_equal(result, 0);
	assert_int_equal(length, 8);
	return get_be64(value);
}

static void test_a_membership_shows_on_both_sides(void **state)
{
	struct fixture *f = *state;
	uint32_t count;

	join(f, OBJECT + 1, 1, C);
	join(f, OBJECT + 3, 7, C);
	join(f, OBJECT + 3, 9, D);
	commit(f);
	crash(f);
	begin(f, ENGINE_READ);
	assert_members(f, object(C), 1 << 1 | 1 << 3);
	assert_members(f, object(D), 1 << 3);
	assert_int_equal(shown(f, object(OBJECT + 3), 7), C);
	assert_int_equal(shown(f, object(OBJECT + 3), 9), D);
	assert_int_equal(shown(f, object(OBJECT + 3), 1), 0);
	assert_int_equal(engine_membership_count(f->txn, object(OBJECT + 3), &count), 0);
	assert_int_equal(count, 2);
	abort_all(f);
}

static void test_memberships_are_enumerated_as_attributes(void **state)
{
	struct fixture *f = *state;
	uint32_t page = 0, number = 0, length;
	uint8_t value[16];

	join(f, OBJECT, 3, C);
	join(f, OBJECT, 5, D);
	assert_int_equal(engine_attribute_set(f->txn, object(OBJECT), 9, 1, "x", 1), 0);
	/* The collection of number 3 goes; its attribute is not shown any more. */
	assert_int_equal(engine_members_clear(f->txn, object(C)), 0);
	assert_int_equal(engine_remove(f->txn, object(C)), 0);
	assert_int_equal(engine_attribute_next(f->txn, object(OBJECT), &page, &number, value,
					       sizeof(value), &length),
			 0);
	assert_int_equal(page, ENGINE_MEMBERSHIPS_PAGE);
	assert_int_equal(number, 5);
	assert_int_equal(length, 8);
	assert_int_equal(get_be64(value), D);
	number++;
	assert_int_equal(engine_attribute_next(f->txn, object(OBJECT), &page, &number, value,
					       sizeof(value), &length),
			 0);
	assert_int_equal(page, 9);
	/* A collection's own state is never shown. */
	page = number = 0;
	assert_int_equal(engine_attribute_next(f->txn, object(D), &page, &number, value,
					       sizeof(value), &length),
			 -ENOENT);
	assert_int_equal(engine_attribute_get(f->txn, object(D), ENGINE_PRIVATE_PAGE, 0, value,
					      sizeof(value), &length),
			 -ENOENT);
	abort_all(f);
}

static void test_an_object_leaves_and_moves(void **state)
{
	struct fixture *f = *state;

	join(f, OBJECT, 1, C);
	join(f, OBJECT + 1, 1, C);
	join(f, OBJECT, 1, D); /* the same number: moves */
	assert_members(f, object(C), 1 << 1);
	assert_members(f, object(D), 1 << 0);
	join(f, OBJECT + 1, 1, 0);
	assert_members(f, object(C), 0);
	assert_int_equal(shown(f, object(OBJECT + 1), 1), 0);
	join(f, OBJECT + 1, 1, 0); /* none already */
	join(f, OBJECT, 1, D);     /* as it is */
	assert_members(f, object(D), 1 << 0);
	abort_all(f);
}

static void test_what_is_refused(void **state)
{
	struct fixture *f = *state;
	const struct engine_address member = object(OBJECT);

	join(f, OBJECT, 1, C);
	assert_int_equal(engine_membership_set(f->txn, member, 2, C), -EEXIST);
	assert_int_equal(engine_membership_set(f->txn, member, 2, C + 50), -EINVAL);
	assert_int_equal(engine_membership_set(f->txn, member, 2, OBJECT + 1), -EINVAL);
	assert_int_equal(engine_membership_set(f->txn, member, 2, 5), -EINVAL);
	assert_int_equal(engine_membership_set(f->txn, member, 0, C), -EINVAL);
	assert_int_equal(engine_membership_set(f->txn, member, 0xFFFFFF01, C), -EINVAL);
	assert_int_equal(engine_membership_set(f->txn, object(C), 1, D), -EINVAL);
	assert_int_equal(engine_membership_set(f->txn, object(OBJECT + 77), 1, D), -ENOENT);
	assert_int_equal(engine_member_insert(f->txn, object(C), OBJECT), -EEXIST);
	assert_int_equal(engine_member_insert(f->txn, object(OBJECT), OBJECT), -EINVAL);
	assert_int_equal(engine_member_insert(f->txn, object(C), 5), -EINVAL);
	assert_int_equal(engine_member_remove(f->txn, object(C), OBJECT + 1), -ENOENT);
	assert_int_equal(engine_attribute_set(f->txn, member, ENGINE_MEMBERSHIPS_PAGE, 1, "x", 1),
			 -EINVAL);
	assert_int_equal(engine_attribute_set(f->txn, object(C), ENGINE_PRIVATE_PAGE, 0, "x", 1),
			 -EINVAL);
	assert_int_equal(engine_remove(f->txn, object(C)), -ENOTEMPTY);
	assert_members(f, object(C), 1 << 0);
	abort_all(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_membership_set(f->txn, member, 1, C), -EROFS);
	assert_int_equal(engine_member_insert(f->txn, object(C), OBJECT), -EROFS);
	assert_int_equal(engine_members_clear(f->txn, object(C)), -EROFS);
	abort_all(f);
}

static void test_an_aborted_transaction_leaves_memberships_as_they_were(void **state)
{
	struct fixture *f = *state;

	join(f, OBJECT, 1, C);
	commit(f);
	begin(f, ENGINE_WRITE);
	join(f, OBJECT + 1, 1, C);
	join(f, OBJECT, 1, 0);
	abort_all(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_members_clear(f->txn, object(C)), 0);
	assert_int_equal(engine_remove(f->txn, object(C)), 0);
	abort_all(f);
	begin(f, ENGINE_READ);
	assert_members(f, object(C), 1 << 0);
	assert_int_equal(shown(f, object(OBJECT), 1), C);
	abort_all(f);
}

static void test_a_removed_object_is_in_no_collection(void **state)
{
	struct fixture *f = *state;

	join(f, OBJECT, 1, C);
	join(f, OBJECT, 2, D);
	join(f, OBJECT + 1, 1, D);
	commit(f);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_remove(f->txn, object(OBJECT)), 0);
	assert_members(f, object(C), 0);
	assert_members(f, object(D), 1 << 1);
	commit(f);
	/* A later object of this ID is not what was a member. */
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
	assert_members(f, object(D), 1 << 1);
	assert_int_equal(shown(f, object(OBJECT), 2), 0);
	abort_all(f);
}

static void test_a_later_collection_of_the_same_id_is_another_one(void **state)
{
	struct fixture *f = *state;

	join(f, OBJECT, 1, C);
	commit(f);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_members_clear(f->txn, object(C)), 0);
	assert_int_equal(engine_remove(f->txn, object(C)), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(shown(f, object(OBJECT), 1), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, C, 1, NULL), 0);
	assert_int_equal(shown(f, object(OBJECT), 1), 0);
	assert_members(f, object(C), 0);
	join(f, OBJECT + 2, 1, C);
	assert_int_equal(shown(f, object(OBJECT), 1), 0);
	/* Not even if the ID is inserted: the object joined the other one. */
	assert_int_equal(engine_member_insert(f->txn, object(C), OBJECT), 0);
	assert_int_equal(shown(f, object(OBJECT), 1), 0);
	assert_int_equal(engine_member_remove(f->txn, object(C), OBJECT), 0);
	/* The number that is not shown can be given again. */
	join(f, OBJECT, 1, D);
	commit(f);
	crash(f);
	begin(f, ENGINE_READ);
	assert_members(f, object(C), 1 << 2);
	assert_int_equal(shown(f, object(OBJECT), 1), D);
	abort_all(f);
}

/* More members than the nodes that wait in memory, so that some are put before the end. */
static void insert_many(struct fixture *f, uint64_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(engine_member_insert(f->txn, object(C), first + i), 0);
}

static void test_a_collection_can_go_and_come_back_in_one_transaction(void **state)
{
	struct fixture *f = *state;
	uint64_t ids[4], next;
	size_t count;

	insert_many(f, OBJECT + 1000, 6000);
	/* The first leaf is in the store by now, and gets an operation behind it. */
	assert_int_equal(engine_member_remove(f->txn, object(C), OBJECT + 1000), 0);
	insert_many(f, OBJECT + 7000, 6000);
	assert_int_equal(engine_members_clear(f->txn, object(C)), 0);
	assert_int_equal(engine_remove(f->txn, object(C)), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, C, 1, NULL), 0);
	insert_many(f, OBJECT + 9000, 3);
	commit(f);
	crash(f);
	begin(f, ENGINE_READ);
	assert_int_equal(
		engine_list(f->txn, object(C), ENGINE_LIST_MEMBERS, 0, ids, 4, &count, &next), 0);
	assert_int_equal(count, 3);
	assert_int_equal(ids[0], OBJECT + 9000);
	abort_all(f);
}

static void test_an_id_that_was_data_can_be_a_collection_and_back(void **state)
{
	struct fixture *f = *state;
	uint8_t pages[8 * PAGE];

	memset(pages, 0x77, sizeof(pages));
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, pages, sizeof(pages)), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_remove(f->txn, object(OBJECT)), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, OBJECT, 1, NULL), 0);
	join(f, OBJECT + 2, 1, OBJECT);
	commit(f);
	crash(f);
	begin(f, ENGINE_WRITE);
	assert_members(f, object(OBJECT), 1 << 2);
	assert_int_equal(engine_members_clear(f->txn, object(OBJECT)), 0);
	assert_int_equal(engine_remove(f->txn, object(OBJECT)), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 2 * PAGE, pages, PAGE), 0);
	memset(pages, 0, 2 * (size_t)PAGE);
	assert_data(f, object(OBJECT), pages, 3 * (size_t)PAGE);
	abort_all(f);
}

static void test_bare_members_stay_when_their_object_goes(void **state)
{
	struct fixture *f = *state;
	uint64_t filled;

	assert_int_equal(stat_of(f, object(C)).filled_sequence, 0);
	assert_int_equal(engine_member_insert(f->txn, object(C), OBJECT), 0);
	assert_int_equal(engine_member_insert(f->txn, object(C), OBJECT + 1), 0);
	assert_int_equal(shown(f, object(OBJECT), 1), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	filled = stat_of(f, object(C)).filled_sequence;
	assert_true(stat_of(f, object(OBJECT)).created_sequence < filled);
	assert_int_equal(engine_remove(f->txn, object(OBJECT)), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
	assert_members(f, object(C), 1 << 0 | 1 << 1);
	/* The new object is told from the old by when it was created. */
	assert_true(stat_of(f, object(OBJECT)).created_sequence > filled);
	assert_int_equal(engine_member_remove(f->txn, object(C), OBJECT), 0);
	assert_members(f, object(C), 1 << 1);
	abort_all(f);
}

static void test_old_versions_show_the_members_of_their_time(void **state)
{
	struct fixture *f = *state;
	struct engine_address collection = object(C), member = object(OBJECT);
	uint32_t version;

	join(f, OBJECT, 1, C);
	join(f, OBJECT + 1, 1, C);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, &version), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	join(f, OBJECT, 1, D);
	join(f, OBJECT + 2, 1, C);
	assert_int_equal(engine_remove(f->txn, object(OBJECT + 1)), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_members_clear(f->txn, object(C)), 0);
	assert_int_equal(engine_remove(f->txn, object(C)), 0);
	commit(f);
	crash(f);
	begin(f, ENGINE_READ);
	assert_members(f, at_version(collection, version), 1 << 0 | 1 << 1);
	assert_members(f, at_version(object(D), version), 0);
	assert_members(f, object(D), 1 << 0);
	assert_int_equal(shown(f, at_version(member, version), 1), C);
	assert_int_equal(shown(f, at_version(object(OBJECT + 1), version), 1), C);
	assert_int_equal(shown(f, member, 1), D);
	abort_all(f);
}

static void test_a_rollback_brings_members_back(void **state)
{
	struct fixture *f = *state;
	struct engine_moment moment = { .kind = ENGINE_AT_VERSION };
	uint64_t count;
	uint32_t version;

	insert_many(f, OBJECT + 1000, 500);
	join(f, OBJECT, 1, C);
	join(f, OBJECT + 1, 1, D);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, &version), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	insert_many(f, OBJECT + 1500, 500);
	join(f, OBJECT + 1, 1, C);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_members_clear(f->txn, object(C)), 0);
	assert_int_equal(engine_remove(f->txn, object(C)), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	moment.value = version;
	assert_int_equal(engine_rollback(f->txn, PARTITION, moment), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	insert_many(f, OBJECT + 1700, 3);
	join(f, OBJECT + 2, 1, C);
	commit(f);
	crash(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_list_count(f->txn, object(C), ENGINE_LIST_MEMBERS, 0, &count), 0);
	assert_int_equal(count, 500 + 1 + 3 + 1);
	assert_int_equal(
		engine_list_count(f->txn, object(C), ENGINE_LIST_MEMBERS, OBJECT + 1500, &count),
		0);
	assert_int_equal(count, 3);
	assert_members(f, object(D), 1 << 1);
	assert_int_equal(shown(f, object(OBJECT), 1), C);
	assert_int_equal(shown(f, object(OBJECT + 1), 1), D);
	abort_all(f);
}

static void test_the_number_of_memberships_is_limited_and_dead_ones_do_not_count(void **state)
{
	struct fixture *f = *state;
	uint64_t first;
	uint32_t count;

	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, 0,
				       ENGINE_MEMBERSHIPS_MAX + 1, &first),
			 0);
	for (uint32_t i = 0; i < ENGINE_MEMBERSHIPS_MAX; i++)
		join(f, OBJECT, i + 1, first + i);
	assert_int_equal(engine_membership_set(f->txn, object(OBJECT), ENGINE_MEMBERSHIPS_MAX + 1,
					       first + ENGINE_MEMBERSHIPS_MAX),
			 -EFBIG);
	assert_int_equal(engine_members_clear(f->txn, object(first)), 0);
	join(f, OBJECT, ENGINE_MEMBERSHIPS_MAX + 1, first + ENGINE_MEMBERSHIPS_MAX);
	assert_int_equal(engine_membership_count(f->txn, object(OBJECT), &count), 0);
	assert_int_equal(count, ENGINE_MEMBERSHIPS_MAX);
	abort_all(f);
}

static void test_times_of_both_sides_are_kept_and_bypassed(void **state)
{
	struct fixture *f = *state;

	f->now = 2000;
	commit(f);
	begin(f, ENGINE_WRITE);
	join(f, OBJECT, 1, C);
	assert_int_equal(stat_of(f, object(OBJECT)).times_ms[ENGINE_TIME_ATTRIBUTES_MODIFIED],
			 2000);
	assert_int_equal(stat_of(f, object(C)).times_ms[ENGINE_TIME_DATA_MODIFIED], 2000);
	engine_bypass_timestamps(f->txn, true);
	join(f, OBJECT + 1, 1, D);
	assert_int_equal(stat_of(f, object(OBJECT + 1)).times_ms[ENGINE_TIME_ATTRIBUTES_MODIFIED],
			 1000);
	assert_int_equal(stat_of(f, object(D)).times_ms[ENGINE_TIME_DATA_MODIFIED], 1000);
	abort_all(f);
}

static void test_many_members_are_listed_in_order_from_anywhere(void **state)
{
	enum { MANY = 20000 };
	struct fixture *f = *state;
	uint64_t ids[300], next = OBJECT + 1000, expected = OBJECT + 1000, rest;
	size_t count;

	insert_many(f, OBJECT + 1000, MANY);
	commit(f);
	crash(f);
	begin(f, ENGINE_READ);
	while (next != 0) {
		assert_int_equal(engine_list(f->txn, object(C), ENGINE_LIST_MEMBERS, next, ids, 300,
					     &count, &next),
				 0);
		for (size_t i = 0; i < count; i++)
			assert_int_equal(ids[i], expected++);
	}
	assert_int_equal(expected, OBJECT + 1000 + MANY);
	assert_int_equal(engine_list_count(f->txn, object(C), ENGINE_LIST_MEMBERS,
					   OBJECT + 1000 + MANY - 7, &rest),
			 0);
	assert_int_equal(rest, 7);
	abort_all(f);
}

/* Every put of the transaction fails once: nothing of it is there. */
static void test_no_failed_put_leaves_half_a_membership(void **state)
{
	struct fixture *f = *state;
	int result = -ENOSPC, puts;

	join(f, OBJECT, 1, D);
	commit(f);
	for (puts = 0; result == -ENOSPC && puts < 100; puts++) {
		begin(f, ENGINE_WRITE);
		assert_members(f, object(C), 0);
		assert_members(f, object(D), 1 << 0);
		assert_int_equal(shown(f, object(OBJECT), 1), D);
		memory_store_fail_put(f->memory, puts);
		join(f, OBJECT, 1, C);
		result = end(f, 0);
	}
	memory_store_fail_put(f->memory, -1);
	assert_int_equal(result, 0);
	assert_true(puts > 3);
	begin(f, ENGINE_READ);
	assert_members(f, object(C), 1 << 0);
	assert_members(f, object(D), 0);
	abort_all(f);
}

enum { MANY_COLLECTIONS = 2 * ENGINE_DIRTY_ONODES_MAX };

static struct engine_address of_many(uint32_t n)
{
	return object(C + 0x1000 + n);
}

/*
 * An object that goes changes its collections, more than may wait for the commit. So puts fail
 * before that, and the call tells.
 */
static void test_no_failed_put_leaves_a_removed_object_in_a_collection(void **state)
{
	struct fixture *f = *state;
	int result = -ENOSPC, puts = 0;

	for (uint32_t n = 0; n < MANY_COLLECTIONS; n++) {
		assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION,
					       of_many(n).object, 1, NULL),
				 0);
		join(f, OBJECT, 1 + n, of_many(n).object);
	}
	commit(f);
	for (; result == -ENOSPC && puts < 1000; puts += 7) {
		begin(f, ENGINE_FREE);
		memory_store_fail_put(f->memory, puts);
		result = engine_remove(f->txn, object(OBJECT));
		/* What failed is told there and then. */
		if (!result)
			memory_store_fail_put(f->memory, -1);
		result = end(f, result);
		begin(f, ENGINE_READ);
		for (uint32_t n = 0; n < MANY_COLLECTIONS; n++)
			assert_members(f, of_many(n), result ? 1 << 0 : 0);
		abort_all(f);
	}
	assert_int_equal(result, 0);
	assert_true(puts > ENGINE_DIRTY_ONODES_MAX);
}

/* More than wait in memory, so that nodes are put before they are gone, and again when changed. */
enum { GONE = 6000, STEP = 40 };

static void fill_and_change(struct fixture *f)
{
	insert_many(f, OBJECT + 1000, GONE);
	for (uint32_t i = 0; i < GONE; i += STEP)
		assert_int_equal(engine_member_remove(f->txn, object(C), OBJECT + 1000 + i), 0);
	for (uint32_t i = 0; i < GONE; i += STEP)
		assert_int_equal(engine_member_insert(f->txn, object(C), OBJECT + 1000 + i), 0);
}

/* Nothing of the earlier set is taken for the later one's, in the same transaction neither. */
static void test_a_later_collection_has_nothing_of_a_set_that_was_emptied(void **state)
{
	struct fixture *f = *state;

	for (uint32_t in_one = 0; in_one < 2; in_one++) {
		fill_and_change(f);
		if (!in_one) {
			commit(f);
			begin(f, ENGINE_WRITE);
		}
		for (uint32_t i = 0; i < GONE; i++)
			assert_int_equal(engine_member_remove(f->txn, object(C), OBJECT + 1000 + i),
					 0);
		assert_int_equal(engine_remove(f->txn, object(C)), 0);
		assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, C, 1, NULL),
				 0);
		assert_members(f, object(C), 0);
		join(f, OBJECT + 2, 1 + in_one, C);
		assert_int_equal(engine_member_insert(f->txn, object(C), OBJECT + 3), 0);
		assert_members(f, object(C), 1 << 2 | 1 << 3);
		commit(f);
		crash(f);
		begin(f, ENGINE_WRITE);
		assert_members(f, object(C), 1 << 2 | 1 << 3);
		assert_int_equal(engine_members_clear(f->txn, object(C)), 0);
	}
	abort_all(f);
}

/*
 * The first collection of the first partition with OBJECT as its only member, byte by byte as
 * docs/objects.md has it.
 */
static void test_the_stored_bytes_are_as_documented(void **state)
{
	struct fixture *f = *state;
	static const uint8_t leaf[] = { 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0 };
	struct record_key node = key_of_node(1, C, 0);
	uint8_t record[PAGE];
	struct record_info info;

	join(f, OBJECT, 1, C);
	commit(f);
	begin(f, ENGINE_READ);
	assert_int_equal(
		record_get(f->engine->store, node, RECORD_NEWEST, record, sizeof(record), &info),
		0);
	assert_int_equal(info.length, sizeof(leaf));
	assert_memory_equal(record, leaf, sizeof(leaf));
	abort_all(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_a_membership_shows_on_both_sides),
		WITH(test_memberships_are_enumerated_as_attributes),
		WITH(test_an_object_leaves_and_moves),
		WITH(test_what_is_refused),
		WITH(test_an_aborted_transaction_leaves_memberships_as_they_were),
		WITH(test_a_removed_object_is_in_no_collection),
		WITH(test_a_later_collection_of_the_same_id_is_another_one),
		WITH(test_a_collection_can_go_and_come_back_in_one_transaction),
		WITH(test_an_id_that_was_data_can_be_a_collection_and_back),
		WITH(test_bare_members_stay_when_their_object_goes),
		WITH(test_old_versions_show_the_members_of_their_time),
		WITH(test_a_rollback_brings_members_back),
		WITH(test_the_number_of_memberships_is_limited_and_dead_ones_do_not_count),
		WITH(test_times_of_both_sides_are_kept_and_bypassed),
		WITH(test_many_members_are_listed_in_order_from_anywhere),
		WITH(test_no_failed_put_leaves_half_a_membership),
		WITH(test_no_failed_put_leaves_a_removed_object_in_a_collection),
		WITH(test_a_later_collection_has_nothing_of_a_set_that_was_emptied),
		WITH(test_the_stored_bytes_are_as_documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
