/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Transactions, crashes, a full store, versions, times and formatting by example. */
#include "common/bytes.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

/* ---- transactions ---- */

static void test_an_aborted_transaction_leaves_nothing_behind(void **state)
{
	struct fixture *f = *state;
	struct engine_stat stat, before;
	uint32_t length;

	begin_with_object(f);
	write_text(f, 0, "kept");
	assert_int_equal(engine_attribute_set(f->txn, object(OBJECT), 1, 1, "kept", 4), 0);
	commit(f);
	begin(f, ENGINE_READ);
	before = stat_of(f, object(OBJECT));
	commit(f);
	f->now += 1000;
	begin(f, ENGINE_WRITE);
	write_text(f, 0, "lost and longer");
	assert_int_equal(engine_attribute_set(f->txn, object(OBJECT), 1, 2, "lost", 4), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, 100, NULL), 0);
	assert_int_equal(engine_partition_create(f->txn, 0, NULL), 0);
	abort_all(f);
	begin(f, ENGINE_READ);
	assert_data(f, object(OBJECT), "kept", 4);
	assert_int_equal(engine_attribute_get(f->txn, object(OBJECT), 1, 2, NULL, 0, &length),
			 -ENOENT);
	assert_int_equal(stat_of(f, the_partition).members, 1);
	assert_int_equal(stat_of(f, the_root).members, 1);
	stat = stat_of(f, object(OBJECT));
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
	assert_data(f, object(OBJECT), "kept", 4);
	assert_int_equal(stat_of(f, the_partition).used_bytes, PAGE);
	assert_int_equal(stat_of(f, the_partition).members, 1);
	commit(f);
}

static void test_reading_transactions_change_nothing(void **state)
{
	struct fixture *f = *state;

	begin_with_object(f);
	commit(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, "x", 1), -EROFS);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, 1, NULL), -EROFS);
	assert_int_equal(engine_partition_create(f->txn, 0, NULL), -EROFS);
	assert_int_equal(engine_partition_remove(f->txn, PARTITION, true), -EROFS);
	assert_int_equal(engine_remove(f->txn, object(OBJECT)), -EROFS);
	assert_int_equal(engine_attribute_set(f->txn, object(OBJECT), 1, 1, "x", 1), -EROFS);
	assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, NULL), -EROFS);
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
	assert_int_equal(end(f, 0), -ENOSPC);
	begin(f, ENGINE_READ);
	assert_data(f, object(OBJECT), "kept", 4);
	commit(f);
}

static void test_a_full_store_can_be_emptied(void **state)
{
	struct fixture *f = *state;
	char page[PAGE] = "new";
	uint64_t full;

	begin_with_object(f);
	write_text(f, 0, "old");
	commit(f);
	full = memory_store_counters(f->memory).bytes;
	memory_store_limit(f->memory, full, full + 1000);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, page, PAGE), -ENOSPC);
	abort_all(f);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_remove(f->txn, object(OBJECT)), 0);
	commit(f);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_partition_remove(f->txn, PARTITION, false), 0);
	commit(f);
}

/*
 * What a transaction changes waits in memory, but not all of it: a commit puts the rest at once,
 * and nobody may wait for many.
 */
static void test_few_changed_onodes_and_partitions_wait_for_the_commit(void **state)
{
	enum { PARTITIONS = 3 * ENGINE_DIRTY_PARTITIONS_MAX, OBJECTS = 4 };
	struct fixture *f = *state;
	uint64_t onodes = 0, partitions = 0;

	for (uint32_t n = 0; n < PARTITIONS; n++) {
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_partition_create(f->txn, PARTITION + n, NULL), 0);
		assert_int_equal(
			engine_create(f->txn, PARTITION + n, ENGINE_USER_OBJECT, 0, OBJECTS, NULL),
			0);
		commit(f);
	}
	begin(f, ENGINE_WRITE);
	for (uint32_t n = 0; n < PARTITIONS * OBJECTS; n++) {
		const struct engine_address address = { .partition = PARTITION + n / OBJECTS,
							.object = OBJECT + n % OBJECTS };
		char page[PAGE];

		memset(page, (int)n, sizeof(page));
		assert_int_equal(engine_write(f->txn, address, 0, page, sizeof(page)), 0);
		onodes = max_u64(onodes, f->engine->onodes.dirty_entries);
		partitions = max_u64(partitions, f->engine->partitions.dirty_entries);
	}
	/* One more is marked behind the limit: the one that is changed. */
	assert_int_equal(onodes, ENGINE_DIRTY_ONODES_MAX);
	assert_int_equal(partitions, ENGINE_DIRTY_PARTITIONS_MAX + 1);
	commit(f);
	crash(f);
	begin(f, ENGINE_READ);
	for (uint32_t n = 0; n < PARTITIONS * OBJECTS; n++) {
		const struct engine_address address = { .partition = PARTITION + n / OBJECTS,
							.object = OBJECT + n % OBJECTS };
		char page[PAGE];

		memset(page, (int)n, sizeof(page));
		assert_data(f, address, page, sizeof(page));
	}
	commit(f);
}

/* Its onode, the one that it was created with too, is absorbed by what comes within the slot. */
static void test_without_history_an_object_that_changes_keeps_one_onode(void **state)
{
	struct fixture *f = *state;
	uint64_t created[2], changed[2];

	for (uint32_t keeps = 0; keeps < 2; keeps++) {
		const struct engine_retention policy = { .kind = keeps ? ENGINE_RETAIN_ALL
								       : ENGINE_RETAIN_NONE };

		memory_store_absorb(f->memory, true);
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_partition_create(f->txn, PARTITION + keeps, NULL), 0);
		assert_int_equal(engine_retention_set(f->txn, PARTITION + keeps, &policy, false),
				 0);
		commit(f);
		f->now += 100 * SECOND;
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_create(f->txn, PARTITION + keeps, ENGINE_USER_OBJECT,
					       OBJECT, 1, NULL),
				 0);
		commit(f);
		created[keeps] = memory_store_counters(f->memory).records;
		for (uint8_t n = 0; n < 5; n++) {
			const struct engine_address address = { .partition = PARTITION + keeps,
								.object = OBJECT };

			begin(f, ENGINE_WRITE);
			assert_int_equal(engine_attribute_set(f->txn, address, 0x10000, 1, &n, 1),
					 0);
			commit(f);
		}
		changed[keeps] = memory_store_counters(f->memory).records;
	}
	assert_int_equal(changed[0], created[0]);
	assert_true(changed[1] >= created[1] + 5);
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
	assert_int_equal(engine_attribute_set(f->txn, object(OBJECT), 1, 1, "1", 1), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, &version), 0);
	assert_int_equal(version, 1);
	assert_int_equal(engine_remove(f->txn, object(OBJECT)), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT + 1, 1, NULL),
			 0);
	commit(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_stat(f->txn, object(OBJECT), &stat), -ENOENT);
	assert_data(f, at_version(object(OBJECT), 1), "version one", 11);
	assert_int_equal(engine_attribute_get(f->txn, at_version(object(OBJECT), 1), 1, 1, &value,
					      1, &length),
			 0);
	assert_int_equal(value, '1');
	assert_int_equal(engine_list(f->txn, at_version(the_partition, 1), ENGINE_LIST_USER_OBJECTS,
				     0, ids, 3, &count, &next),
			 0);
	assert_int_equal(count, 1);
	assert_int_equal(ids[0], OBJECT);
	assert_int_equal(stat_of(f, at_version(the_partition, 1)).used_bytes, PAGE);
	assert_int_equal(stat_of(f, at_version(the_partition, 1)).version, 1);
	assert_int_equal(stat_of(f, the_partition).version, 2);
	assert_int_equal(engine_stat(f->txn, at_version(object(OBJECT + 1), 1), &stat), -ENOENT);
	assert_int_equal(engine_stat(f->txn, at_version(object(OBJECT), 2), &stat), -ENOENT);
	assert_int_equal(engine_stat(f->txn, at_version(the_root, 1), &stat), -ENOENT);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, at_version(object(OBJECT), 1), 0, "x", 1), -EROFS);
	commit(f);
}

static void test_a_snapshot_comes_first_in_its_transaction(void **state)
{
	struct fixture *f = *state;

	begin_with_object(f);
	assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, NULL), -EINVAL);
	commit(f);
	begin(f, ENGINE_WRITE);
	write_text(f, 0, "x");
	assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, NULL), -EINVAL);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_accessed(f->txn, object(OBJECT), true, true), 0);
	assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, NULL), -EINVAL);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, NULL), 0);
	write_text(f, 0, "y");
	commit(f);
	begin(f, ENGINE_READ);
	assert_data(f, at_version(object(OBJECT), 1), "x", 1);
	assert_data(f, object(OBJECT), "y", 1);
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
	assert_int_equal(engine_attribute_set(f->txn, object(OBJECT), 1, 1, "x", 1), 0);
	commit(f);
	f->now = 4000;
	begin(f, ENGINE_READ);
	assert_int_equal(engine_accessed(f->txn, object(OBJECT), true, false), 0);
	stat = stat_of(f, object(OBJECT));
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
	assert_int_equal(engine_attribute_set(f->txn, object(OBJECT), 1, 1, "x", 1), 0);
	assert_int_equal(engine_accessed(f->txn, object(OBJECT), true, true), 0);
	for (int which = 0; which < ENGINE_TIMES; which++)
		assert_int_equal(stat_of(f, object(OBJECT)).times_ms[which], 1000);
	assert_int_equal(engine_set_time(f->txn, object(OBJECT), ENGINE_TIME_DATA_MODIFIED, 77), 0);
	assert_int_equal(engine_set_time(f->txn, object(OBJECT), ENGINE_TIME_CREATED, 77), -EINVAL);
	assert_int_equal(stat_of(f, object(OBJECT)).times_ms[ENGINE_TIME_DATA_MODIFIED], 77);
	commit(f);
}

static void test_accessed_times_survive_a_flush_and_a_close(void **state)
{
	struct fixture *f = *state;

	begin_with_object(f);
	commit(f);
	f->now = 2000;
	begin(f, ENGINE_READ);
	assert_int_equal(engine_accessed(f->txn, object(OBJECT), true, false), 0);
	commit(f);
	assert_int_equal(engine_flush(f->engine), 0);
	f->now = 3000;
	begin(f, ENGINE_READ);
	assert_int_equal(engine_accessed(f->txn, object(OBJECT), false, true), 0);
	commit(f);
	crash(f);
	begin(f, ENGINE_READ);
	assert_int_equal(stat_of(f, object(OBJECT)).times_ms[ENGINE_TIME_DATA_ACCESSED], 2000);
	assert_int_equal(stat_of(f, object(OBJECT)).times_ms[ENGINE_TIME_ATTRIBUTES_ACCESSED],
			 1000);
	assert_int_equal(engine_accessed(f->txn, object(OBJECT), false, true), 0);
	commit(f);
	assert_int_equal(engine_close(f->engine), 0);
	reopen(f);
	begin(f, ENGINE_READ);
	assert_int_equal(stat_of(f, object(OBJECT)).times_ms[ENGINE_TIME_ATTRIBUTES_ACCESSED],
			 3000);
	commit(f);
}

static void test_many_accesses_are_stored_before_memory_runs_out(void **state)
{
	struct fixture *f = *state;
	uint32_t objects = f->engine->options.onode_cache_entries * 2;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, 0, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, objects, NULL), 0);
	commit(f);
	f->now = 2000;
	for (uint64_t id = OBJECT; id < OBJECT + objects; id++) {
		begin(f, ENGINE_READ);
		assert_int_equal(engine_accessed(f->txn, object(id), true, false), 0);
		commit(f);
	}
	begin(f, ENGINE_READ);
	for (uint64_t id = OBJECT; id < OBJECT + objects; id++)
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
	assert_int_equal(engine_attribute_set(f->txn, the_root, 1, 1, "x", 1), 0);
	commit(f);
	assert_int_equal(engine_reformat(f->engine), 0);
	begin(f, ENGINE_WRITE);
	assert_int_equal(stat_of(f, the_root).members, 0);
	assert_int_equal(engine_stat(f->txn, the_partition, &stat), -ENOENT);
	assert_int_equal(engine_attribute_get(f->txn, the_root, 1, 1, NULL, 0, &length), -ENOENT);
	assert_int_equal(engine_partition_create(f->txn, 0, NULL), 0);
	assert_int_equal(stat_of(f, the_partition).members, 0);
	commit(f);
}

/* More at once than an engine begins with: again and again, each with buffers of its own. */
static void test_many_transactions_read_at_once(void **state)
{
	enum { AT_ONCE = 50 };
	struct fixture *f = *state;
	struct engine_txn *txns[AT_ONCE];

	begin_with_object(f);
	write_text(f, 0, "text");
	commit(f);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t n = 0; n < AT_ONCE; n++) {
			assert_int_equal(engine_begin(f->engine, ENGINE_READ, &txns[n]), 0);
			memset(txn_page(txns[n], TXN_PIECE), (int)n, PAGE);
			memset(txn_page(txns[n], TXN_OTHER_PIECE), (int)n, PAGE);
		}
		for (uint32_t n = 0; n < AT_ONCE; n++) {
			assert_int_equal(txn_page(txns[n], TXN_PIECE)[PAGE - 1], n);
			assert_int_equal(txn_page(txns[n], TXN_OTHER_PIECE)[0], n);
			f->txn = txns[n];
			assert_data(f, object(OBJECT), "text", 4);
			commit(f);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_aborted_transaction_leaves_nothing_behind),
		TEST(test_a_crash_keeps_what_is_committed_and_nothing_else),
		TEST(test_reading_transactions_change_nothing),
		TEST(test_a_commit_without_room_is_an_abort),
		TEST(test_a_full_store_can_be_emptied),
		TEST(test_few_changed_onodes_and_partitions_wait_for_the_commit),
		TEST(test_without_history_an_object_that_changes_keeps_one_onode),
		TEST(test_a_version_shows_everything_as_it_was),
		TEST(test_a_snapshot_comes_first_in_its_transaction),
		TEST(test_times_follow_what_is_done),
		TEST(test_bypassed_timestamps_stay),
		TEST(test_accessed_times_survive_a_flush_and_a_close),
		TEST(test_many_accesses_are_stored_before_memory_runs_out),
		TEST(test_reformat_empties_everything),
		TEST(test_many_transactions_read_at_once),
	};

	return cmocka_run_group_tests_name("transactions on objects", tests, NULL, NULL);
}
