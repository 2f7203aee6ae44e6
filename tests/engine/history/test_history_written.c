/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What versions say was put since the one before: in their own partition, or, of the device's, on
 * the whole device.
 */
#include "engine/history/past.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

enum { BYTES = 20 * PAGE };

static void make_partitions(struct fixture *f)
{
	begin(f, ENGINE_WRITE);
	for (uint64_t id = PARTITION; id <= OTHERS; id++) {
		assert_int_equal(engine_partition_create(f->txn, id, NULL), 0);
		assert_int_equal(engine_create(f->txn, id, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
	}
	commit(f);
}

/* Writes `pages` pages in a partition, a second after what was done before. */
static void write_pages(struct fixture *f, uint64_t id, uint32_t pages)
{
	const struct engine_address address = { .partition = id, .object = OBJECT };
	static uint8_t bytes[BYTES];

	f->now += 1000;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, address, 0, bytes, (uint64_t)pages * PAGE), 0);
	commit(f);
}

static uint64_t written(struct fixture *f, uint64_t id, uint32_t number)
{
	struct engine_version version = { .position = 0 };
	uint64_t from = 0;

	begin(f, ENGINE_READ);
	do {
		assert_int_equal(engine_version_next(f->txn, id, from, &version), 0);
		from = version.position + 1;
	} while (version.version != number);
	commit(f);
	return version.written_bytes;
}

/* Pages, and something for what is about them. */
static void check_pages(uint64_t bytes, uint64_t pages)
{
	assert_true(bytes >= pages * PAGE);
	assert_true(bytes < (pages + 5) * PAGE);
}

static void test_a_version_counts_what_was_put_in_its_partition_only(void **state)
{
	struct fixture *f = *state;

	make_partitions(f);
	write_pages(f, PARTITION, 3);
	write_pages(f, OTHERS, 15);
	take_snapshot(f, PARTITION, NULL);
	take_snapshot(f, OTHERS, NULL);
	write_pages(f, OTHERS, 10);
	take_snapshot(f, PARTITION, NULL);
	take_snapshot(f, 0, NULL);
	check_pages(written(f, PARTITION, 1), 3);
	check_pages(written(f, OTHERS, 1), 15);
	assert_int_equal(written(f, PARTITION, 2), 0);
	assert_true(written(f, 0, ENGINE_DEVICE_VERSION_FIRST) > 28 * PAGE);
}

static void test_the_count_goes_on_after_a_restart(void **state)
{
	struct fixture *f = *state;

	make_partitions(f);
	take_snapshot(f, PARTITION, NULL);
	write_pages(f, PARTITION, 4);
	crash(f);
	write_pages(f, OTHERS, 15);
	write_pages(f, PARTITION, 2);
	crash(f);
	take_snapshot(f, PARTITION, NULL);
	check_pages(written(f, PARTITION, 2), 6);
}

/* But for what was put in the second before a crash. */
static void test_so_does_that_of_the_device(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	make_partitions(f);
	take_snapshot(f, 0, NULL);
	for (int round = 0; round < 4; round++)
		write_pages(f, PARTITION, 15);
	crash(f);
	version = take_snapshot(f, 0, NULL);
	assert_in_range(written(f, 0, version), 45 * PAGE, 80 * PAGE);
}

/* What is left out of the cache of partitions in between is not counted twice. */
static void test_a_partition_that_is_loaded_again_counts_once(void **state)
{
	struct fixture *f = *state;

	make_partitions(f);
	take_snapshot(f, PARTITION, NULL);
	write_pages(f, PARTITION, 4);
	f->now -= 1000;
	write_pages(f, PARTITION, 2);
	for (uint64_t id = OTHERS + 1; id < OTHERS + 400; id++) {
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_partition_create(f->txn, id, NULL), 0);
		commit(f);
	}
	take_snapshot(f, PARTITION, NULL);
	check_pages(written(f, PARTITION, 2), 6);
}

static void test_what_is_aborted_does_not_count(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[4 * PAGE] = { 0 };

	make_partitions(f);
	take_snapshot(f, PARTITION, NULL);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, bytes, sizeof(bytes)), 0);
	abort_all(f);
	take_snapshot(f, PARTITION, NULL);
	assert_int_equal(written(f, PARTITION, 2), 0);
}

/*
 * The most partitions that one transaction puts something in: access times of as many objects as it
 * changes.
 */
static void test_all_partitions_of_a_transaction_count(void **state)
{
	const uint64_t last = PARTITION + ENGINE_DIRTY_ONODES_MAX - 1;
	struct fixture *f = *state;
	uint64_t transactions;

	for (uint64_t id = PARTITION; id <= last; id++) {
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_partition_create(f->txn, id, NULL), 0);
		assert_int_equal(engine_create(f->txn, id, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
		commit(f);
		take_snapshot(f, id, NULL);
	}
	f->now += 2000;
	begin(f, ENGINE_READ);
	for (uint64_t id = PARTITION; id <= last; id++) {
		const struct engine_address address = { .partition = id, .object = OBJECT };

		assert_int_equal(engine_accessed(f->txn, address, true, false), 0);
	}
	commit(f);
	transactions = f->engine->transactions;
	engine_settle_accesses(f->engine, 0);
	assert_int_equal(f->engine->transactions, transactions + 1);
	crash(f);
	for (uint64_t id = PARTITION; id <= last; id++) {
		take_snapshot(f, id, NULL);
		assert_true(written(f, id, 2) > 0);
	}
}

static void test_a_dropped_version_leaves_its_count_to_the_next_one(void **state)
{
	struct fixture *f = *state;

	make_partitions(f);
	write_pages(f, PARTITION, 2);
	take_snapshot(f, PARTITION, NULL);
	write_pages(f, PARTITION, 5);
	take_snapshot(f, PARTITION, NULL);
	drop_version(f, PARTITION, 1);
	check_pages(written(f, PARTITION, 2), 7);
	/* Or to the one to come. */
	drop_version(f, PARTITION, 2);
	write_pages(f, PARTITION, 4);
	take_snapshot(f, PARTITION, NULL);
	check_pages(written(f, PARTITION, 3), 12);
}

static void test_histories_of_other_formats_are_refused(void **state)
{
	struct history history = history_new(7, 100), found;
	uint8_t record[HISTORY_DEVICE_BYTES];
	uint32_t length;

	(void)state;
	history.written_bytes = 4711;
	history.left_from = 200;
	history.left_until = 300;
	length = history_encode(&history, 7, record);
	assert_int_equal(history_decode(&found, 7, record, length), 0);
	assert_int_equal(found.created_sequence, 100);
	assert_int_equal(found.left_from, 200);
	assert_int_equal(found.left_until, 300);
	assert_int_equal(found.written_bytes, 4711);
	record[0] = HISTORY_FORMAT - 1;
	assert_int_equal(history_decode(&found, 7, record, length), -EBADMSG);
	record[0] = HISTORY_FORMAT + 1;
	assert_int_equal(history_decode(&found, 7, record, length), -EBADMSG);
}

/* That of the root, in which every number is another one. */
static void test_a_history_of_the_device_is_read_as_it_was_put(void **state)
{
	struct history history = history_new(RECORD_ROOT_INDEX, 0), found;
	struct device_history *device = &history.device;
	uint8_t record[HISTORY_DEVICE_BYTES], again[HISTORY_DEVICE_BYTES];
	uint32_t length;

	(void)state;
	*device = (struct device_history){
		.reclaimed = 1,
		.judged_ms = 2,
		.inherited_floor = 3,
		.hidden_chunks = 4,
		.lossy = 7,
		.particular = 8,
		.clones = 9,
		.lossy_removed = 10,
		.locked_until_ms = 11,
		.times = 13,
		.times_first = 12,
		.slot_sequence = 14,
		.slot_ms = 15,
		.slot_bytes = 16,
		.last_version_bytes = 17,
		.time_epoch_sequence = 18,
		.time_epoch_ms = 19,
		.intervals_floor = 20,
		.left_since = 21,
	};
	length = history_encode(&history, RECORD_ROOT_INDEX, record);
	assert_int_equal(history_decode(&found, RECORD_ROOT_INDEX, record, length), 0);
	assert_memory_equal(&found.device, device, sizeof(*device));
	assert_int_equal(history_encode(&found, RECORD_ROOT_INDEX, again), length);
	assert_memory_equal(again, record, length);
	assert_int_equal(history_decode(&found, RECORD_ROOT_INDEX, record, HISTORY_BYTES),
			 -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_version_counts_what_was_put_in_its_partition_only),
		TEST(test_the_count_goes_on_after_a_restart),
		TEST(test_so_does_that_of_the_device),
		TEST(test_a_partition_that_is_loaded_again_counts_once),
		TEST(test_what_is_aborted_does_not_count),
		TEST(test_all_partitions_of_a_transaction_count),
		TEST(test_a_dropped_version_leaves_its_count_to_the_next_one),
		cmocka_unit_test(test_histories_of_other_formats_are_refused),
		cmocka_unit_test(test_a_history_of_the_device_is_read_as_it_was_put),
	};

	return cmocka_run_group_tests_name("history_written", tests, NULL, NULL);
}
