/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Opened objects: found once, and what becomes of them when the object does not stay. */
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

static struct engine_object *open_object(struct fixture *f, uint64_t object)
{
	const struct engine_address address = { .partition = PARTITION, .object = object };
	struct engine_object *opened;

	assert_int_equal(engine_open_object(f->txn, address, &opened), 0);
	return opened;
}

/* A partition with three user objects. */
static int setup_objects(void **state)
{
	struct fixture *f;

	setup_on_memory(state);
	f = *state;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, 3, NULL), 0);
	assert_int_equal(end(f, 0), 0);
	return 0;
}

static uint64_t lookups(struct fixture *f)
{
	return f->engine->object_lookups;
}

static void what_is_open_is_not_looked_up_again(void **state)
{
	struct fixture *f = *state;
	struct engine_object *object, *again;
	struct engine_stat stat;
	uint64_t before = lookups(f), got;
	char data[4];

	begin(f, ENGINE_WRITE);
	object = open_object(f, OBJECT);
	assert_int_equal(engine_object_write(object, 0, "data", 4), 0);
	assert_int_equal(engine_object_read(object, 0, data, 4, &got), 0);
	assert_int_equal(engine_object_stat(object, &stat), 0);
	again = open_object(f, OBJECT);
	assert_ptr_equal(again, object);
	engine_close_object(object);
	engine_close_object(again);
	/* Neither is what was open before. */
	engine_close_object(open_object(f, OBJECT));
	assert_int_equal(lookups(f) - before, 1);
	assert_int_equal(end(f, 0), 0);
}

static void closed_objects_give_way_to_others(void **state)
{
	struct fixture *f = *state;
	uint64_t before = lookups(f);

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, 20, NULL), 0);
	for (int round = 0; round < 2; round++)
		for (uint64_t i = 0; i < 20; i++) {
			struct engine_object *object = open_object(f, OBJECT + i);

			assert_int_equal(engine_object_address(object).object, OBJECT + i);
			assert_int_equal(engine_object_write(object, 0, "x", 1), 0);
			engine_close_object(object);
		}
	assert_int_equal(lookups(f) - before, 40);
	assert_int_equal(end(f, 0), 0);
}

static void a_removed_object_is_not_found_and_one_made_in_its_place_is(void **state)
{
	struct fixture *f = *state;
	struct engine_object *object;
	struct engine_stat stat;

	begin(f, ENGINE_WRITE);
	object = open_object(f, OBJECT);
	assert_int_equal(engine_object_write(object, 0, "data", 4), 0);
	assert_int_equal(engine_object_remove(object), 0);
	assert_int_equal(engine_object_stat(object, &stat), -ENOENT);
	assert_int_equal(engine_object_write(object, 0, "data", 4), -ENOENT);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
	assert_int_equal(engine_object_stat(object, &stat), 0);
	assert_int_equal(stat.length, 0);
	assert_int_equal(end(f, 0), 0);
}

static void an_object_goes_with_its_partition(void **state)
{
	struct fixture *f = *state;
	struct engine_object *object;
	struct engine_stat stat;

	begin(f, ENGINE_WRITE);
	object = open_object(f, OBJECT);
	assert_int_equal(engine_partition_remove(f->txn, PARTITION, true), 0);
	assert_int_equal(engine_object_stat(object, &stat), -ENOENT);
	assert_int_equal(end(f, 0), 0);
}

static void after_going_back_an_opened_object_is_as_it_was(void **state)
{
	static const uint64_t partitions[] = { PARTITION, 0 };
	struct fixture *f = *state;

	for (size_t i = 0; i < 2; i++) {
		const struct engine_address no_partition = { 0 };
		struct engine_object *object, *of_root;
		struct engine_stat stat;
		uint32_t version;

		f->now += 2000;
		begin(f, ENGINE_HISTORY);
		assert_int_equal(engine_snapshot(f->txn, partitions[i], NULL, &version), 0);
		assert_int_equal(end(f, 0), 0);
		f->now += 2000;
		begin(f, ENGINE_WRITE);
		object = open_object(f, OBJECT + i);
		assert_int_equal(engine_object_write(object, 0, "data", 4), 0);
		assert_int_equal(end(f, 0), 0);
		f->now += 2000;
		begin(f, ENGINE_HISTORY);
		object = open_object(f, OBJECT + i);
		assert_int_equal(engine_open_object(f->txn, no_partition, &of_root), 0);
		assert_int_equal(engine_object_stat(object, &stat), 0);
		assert_int_equal(stat.length, 4);
		assert_int_equal(engine_rollback(f->txn, partitions[i], at_number(version)), 0);
		assert_int_equal(engine_object_stat(object, &stat), 0);
		assert_int_equal(stat.length, 0);
		assert_int_equal(engine_object_stat(of_root, &stat), 0);
		assert_int_equal(end(f, 0), 0);
	}
}

static void what_is_old_or_only_read_is_not_changed(void **state)
{
	struct fixture *f = *state;
	struct engine_address address = { .partition = PARTITION, .object = OBJECT };
	struct engine_object *object;

	f->now += 2000;
	begin(f, ENGINE_HISTORY);
	assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, &address.version), 0);
	assert_int_equal(end(f, 0), 0);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_open_object(f->txn, address, &object), 0);
	assert_int_equal(engine_object_write(object, 0, "data", 4), -EROFS);
	assert_int_equal(end(f, 0), 0);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_object_write(open_object(f, OBJECT), 0, "data", 4), -EROFS);
	assert_int_equal(end(f, 0), 0);
}

static void an_abort_closes_what_is_open_and_changed(void **state)
{
	struct fixture *f = *state;
	struct engine_object *object;
	struct engine_stat stat;

	begin(f, ENGINE_WRITE);
	object = open_object(f, OBJECT);
	assert_int_equal(engine_object_write(object, 0, "data", 4), 0);
	engine_abort(f->txn);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_object_stat(open_object(f, OBJECT), &stat), 0);
	assert_int_equal(stat.length, 0);
	engine_abort(f->txn);
	f->txn = NULL;
}

#define with_objects(test) cmocka_unit_test_setup_teardown(test, setup_objects, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_objects(what_is_open_is_not_looked_up_again),
		with_objects(closed_objects_give_way_to_others),
		with_objects(a_removed_object_is_not_found_and_one_made_in_its_place_is),
		with_objects(an_object_goes_with_its_partition),
		with_objects(after_going_back_an_opened_object_is_as_it_was),
		with_objects(what_is_old_or_only_read_is_not_changed),
		with_objects(an_abort_closes_what_is_open_and_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
