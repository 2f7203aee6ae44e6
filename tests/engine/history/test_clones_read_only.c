/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Clones that are not writable: nothing changes what they show, but a refresh; also after a
 * restart.
 */
#include "tests/engine/fixture.h"

#define SNAPSHOT_ID (PARTITION + 1)
#define ANOTHER     (PARTITION + 2)
#define C           (OBJECT + 0x100)
#define FREE_ID     (OBJECT + 0x200)

/* Makes a snapshot partition of PARTITION as it is now. */
static void make_snapshot(struct fixture *f)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };

	f->now += 2000;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone(f->txn, PARTITION, now, SNAPSHOT_ID, false, NULL), 0);
	/* The command that makes it may still give it attributes. */
	assert_int_equal(engine_attribute_set(f->txn,
					      (struct engine_address){ .partition = SNAPSHOT_ID },
					      0x30000000, 1, "made", 4),
			 0);
	commit(f);
}

static int setup_snapshot(void **state)
{
	struct fixture *f;

	setup_on_memory(state);
	f = *state;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, 2, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, C, 1, NULL), 0);
	assert_int_equal(engine_membership_set(f->txn, object(OBJECT), 1, C), 0);
	assert_int_equal(engine_attribute_set(f->txn, object(OBJECT), 0x30000000, 1, "old", 3), 0);
	commit(f);
	put_text(f, object(OBJECT), "old");
	make_snapshot(f);
	put_text(f, object(OBJECT), "new");
	return 0;
}

static struct engine_address in_snapshot(uint64_t id)
{
	return (struct engine_address){ .partition = SNAPSHOT_ID, .object = id };
}

/* ---- what is refused ---- */

static int do_create(struct engine_txn *txn)
{
	return engine_create(txn, SNAPSHOT_ID, ENGINE_USER_OBJECT, FREE_ID, 1, NULL);
}

static int do_create_collection(struct engine_txn *txn)
{
	return engine_create(txn, SNAPSHOT_ID, ENGINE_COLLECTION, 0, 1, NULL);
}

static int do_remove(struct engine_txn *txn)
{
	return engine_remove(txn, in_snapshot(OBJECT + 1));
}

static int do_write(struct engine_txn *txn)
{
	return engine_write(txn, in_snapshot(OBJECT), 1, "x", 1);
}

static int do_append(struct engine_txn *txn)
{
	return engine_append(txn, in_snapshot(OBJECT), "x", 1, NULL);
}

static int do_truncate(struct engine_txn *txn)
{
	return engine_truncate(txn, in_snapshot(OBJECT), 1);
}

static int do_clear(struct engine_txn *txn)
{
	return engine_clear(txn, in_snapshot(OBJECT), 0, 1);
}

static int do_punch(struct engine_txn *txn)
{
	return engine_punch(txn, in_snapshot(OBJECT), 0, 1);
}

static int do_copy_into(struct engine_txn *txn)
{
	return engine_copy_data(txn, in_snapshot(OBJECT), in_snapshot(OBJECT + 1));
}

static int do_set_attribute(struct engine_txn *txn)
{
	return engine_attribute_set(txn, in_snapshot(OBJECT), 0x30000000, 1, "x", 1);
}

static int do_remove_attribute(struct engine_txn *txn)
{
	return engine_attribute_set(txn, in_snapshot(OBJECT), 0x30000000, 1, NULL, 0);
}

static int do_set_attribute_of_the_partition(struct engine_txn *txn)
{
	return engine_attribute_set(txn, in_snapshot(0), 0x30000000, 1, "x", 1);
}

static int do_set_time(struct engine_txn *txn)
{
	return engine_set_time(txn, in_snapshot(OBJECT), ENGINE_TIME_DATA_MODIFIED, 1);
}

static int do_join(struct engine_txn *txn)
{
	return engine_membership_set(txn, in_snapshot(OBJECT + 1), 1, C);
}

static int do_leave(struct engine_txn *txn)
{
	return engine_membership_set(txn, in_snapshot(OBJECT), 1, 0);
}

static int do_insert_member(struct engine_txn *txn)
{
	return engine_member_insert(txn, in_snapshot(C), FREE_ID);
}

static int do_remove_member(struct engine_txn *txn)
{
	return engine_member_remove(txn, in_snapshot(C), OBJECT);
}

static int do_clear_members(struct engine_txn *txn)
{
	return engine_members_clear(txn, in_snapshot(C));
}

static int do_remove_collection(struct engine_txn *txn)
{
	return engine_remove(txn, in_snapshot(C));
}

static int do_snapshot(struct engine_txn *txn)
{
	return engine_snapshot(txn, SNAPSHOT_ID, NULL, NULL);
}

static int do_rollback(struct engine_txn *txn)
{
	return engine_rollback(txn, SNAPSHOT_ID, (struct engine_moment){ .kind = ENGINE_NOW });
}

static int do_rollback_object(struct engine_txn *txn)
{
	return engine_rollback_object(txn, SNAPSHOT_ID, OBJECT,
				      (struct engine_moment){ .kind = ENGINE_NOW });
}

static int do_undo(struct engine_txn *txn)
{
	return engine_undo(txn, SNAPSHOT_ID, OBJECT, 1);
}

static int (*const refused[])(struct engine_txn *) = {
	do_create,
	do_create_collection,
	do_remove,
	do_write,
	do_append,
	do_truncate,
	do_clear,
	do_punch,
	do_copy_into,
	do_set_attribute,
	do_remove_attribute,
	do_set_attribute_of_the_partition,
	do_set_time,
	do_join,
	do_leave,
	do_insert_member,
	do_remove_member,
	do_clear_members,
	do_remove_collection,
	do_snapshot,
	do_rollback,
	do_rollback_object,
	do_undo,
};

/* Tries everything, and commits what comes of it. */
static void try_everything(struct fixture *f)
{
	for (size_t at = 0; at < sizeof(refused) / sizeof(refused[0]); at++) {
		int result;

		f->now += 2000;
		begin(f, at % 2 ? ENGINE_FREE : ENGINE_WRITE);
		result = refused[at](f->txn);
		if (result != -EROFS)
			fail_msg("call %zu: %d", at, result);
		commit(f);
	}
	begin(f, ENGINE_READ);
	assert_int_equal(engine_accessed(f->txn, in_snapshot(OBJECT), true, true), 0);
	commit(f);
}

/* The snapshot shows all as when it was made. */
static void check_snapshot(struct fixture *f, const char *text)
{
	uint64_t ids[4], next;
	struct engine_stat stat;
	uint32_t length;
	char value[8];
	size_t count;

	check_text(f, in_snapshot(OBJECT), text);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_list(f->txn, in_snapshot(0), ENGINE_LIST_USER_OBJECTS, 0, ids, 4,
				     &count, &next),
			 0);
	assert_int_equal(count, 2);
	assert_int_equal(
		engine_list(f->txn, in_snapshot(C), ENGINE_LIST_MEMBERS, 0, ids, 4, &count, &next),
		0);
	assert_int_equal(count, 1);
	assert_int_equal(ids[0], OBJECT);
	assert_int_equal(engine_attribute_get(f->txn, in_snapshot(OBJECT), 0x30000000, 1, value,
					      sizeof(value), &length),
			 0);
	assert_int_equal(length, 3);
	assert_int_equal(engine_attribute_get(f->txn, in_snapshot(0), 0x30000000, 1, value,
					      sizeof(value), &length),
			 0);
	assert_int_equal(length, 4);
	assert_int_equal(engine_stat(f->txn, in_snapshot(OBJECT + 1), &stat), 0);
	assert_int_equal(stat.length, 0);
	commit(f);
}

static void test_every_change_of_a_snapshot_is_refused(void **state)
{
	struct fixture *f = *state;

	try_everything(f);
	check_snapshot(f, "old");
	crash(f);
	try_everything(f);
	check_snapshot(f, "old");
	check_text(f, object(OBJECT), "new");
}

static void test_a_snapshot_that_is_refreshed_stays_read_only(void **state)
{
	struct fixture *f = *state;

	for (int round = 0; round < 2; round++) {
		f->now += 2000;
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_clone_refresh(f->txn, SNAPSHOT_ID), 0);
		commit(f);
		check_snapshot(f, "new");
		try_everything(f);
		check_snapshot(f, "new");
		crash(f);
	}
	check_snapshot(f, "new");
}

/* Its moments are those of the device. */
static void test_versions_of_the_device_show_a_snapshot_as_it_was(void **state)
{
	struct fixture *f = *state;
	uint32_t version = take_snapshot(f, 0, NULL);

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(f->txn, SNAPSHOT_ID), 0);
	commit(f);
	check_text(f, in_snapshot(OBJECT), "new");
	check_text(f, at_version(in_snapshot(OBJECT), version), "old");
	roll_back(f, 0, at_number(version));
	check_snapshot(f, "old");
	try_everything(f);
	check_snapshot(f, "old");
}

static void test_a_snapshot_outlives_its_source_and_goes_with_contents(void **state)
{
	struct fixture *f = *state;

	begin(f, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(f->txn, PARTITION, true), 0);
	commit(f);
	crash(f);
	check_snapshot(f, "old");
	try_everything(f);
	check_snapshot(f, "old");
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(f->txn, SNAPSHOT_ID), -ENOENT);
	abort_all(f);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(f->txn, SNAPSHOT_ID, false), -ENOTEMPTY);
	assert_int_equal(engine_partition_remove(f->txn, SNAPSHOT_ID, true), 0);
	commit(f);
	check_absent(f, in_snapshot(0));
}

static void test_a_clone_of_a_snapshot_can_be_written(void **state)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };
	const struct engine_address copy = { .partition = ANOTHER, .object = OBJECT };
	struct fixture *f = *state;

	f->now += 2000;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone(f->txn, SNAPSHOT_ID, now, ANOTHER, true, NULL), 0);
	commit(f);
	check_text(f, copy, "old");
	put_text(f, copy, "other");
	crash(f);
	check_text(f, copy, "other");
	check_snapshot(f, "old");
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(f->txn, SNAPSHOT_ID, true), 0);
	commit(f);
	crash(f);
	check_text(f, copy, "other");
	check_text(f, object(OBJECT), "new");
}

static void test_a_detached_snapshot_can_be_written(void **state)
{
	struct fixture *f = *state;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone_detach(f->txn, SNAPSHOT_ID), 0);
	commit(f);
	crash(f);
	put_text(f, in_snapshot(OBJECT), "own");
	check_text(f, in_snapshot(OBJECT), "own");
	check_text(f, object(OBJECT), "new");
}

#define WITH(name) cmocka_unit_test_setup_teardown(name, setup_snapshot, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(test_every_change_of_a_snapshot_is_refused),
		WITH(test_a_snapshot_that_is_refreshed_stays_read_only),
		WITH(test_versions_of_the_device_show_a_snapshot_as_it_was),
		WITH(test_a_snapshot_outlives_its_source_and_goes_with_contents),
		WITH(test_a_clone_of_a_snapshot_can_be_written),
		WITH(test_a_detached_snapshot_can_be_written),
	};

	return cmocka_run_group_tests_name("clones_read_only", tests, NULL, NULL);
}
