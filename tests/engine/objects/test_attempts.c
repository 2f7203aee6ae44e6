/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Attempts: transactions in which nothing waits. They are made as a whole, or nothing happens. */
#include "engine/objects/objects.h"
#include "engine/records/waiting.h"
#include "nand/timing.h"
#include "tests/engine/fixture.h"

/* An attempt to write; the result of the first call that fails, or of the commit. */
static int try_to_write(struct engine *engine, uint64_t offset, const void *data, size_t bytes)
{
	struct engine_txn *txn;
	int result;

	engine_attempt_begin(NULL);
	result = engine_begin(engine, ENGINE_WRITE, &txn);
	if (!result) {
		result = engine_write(txn, object(OBJECT), offset, data, bytes);
		if (result)
			engine_abort(txn);
		else
			result = engine_commit(txn, false);
	}
	engine_attempt_end();
	return result;
}

static int try_to_read(struct engine *engine, uint64_t offset, void *data, size_t bytes)
{
	struct engine_txn *txn;
	uint64_t got = 0;
	int result;

	engine_attempt_begin(NULL);
	result = engine_begin(engine, ENGINE_READ, &txn);
	if (!result) {
		result = engine_read(txn, object(OBJECT), offset, data, bytes, &got);
		if (result)
			engine_abort(txn);
		else
			result = engine_commit(txn, false);
	}
	engine_attempt_end();
	return result;
}

static void test_what_need_not_wait_is_done(void **state)
{
	struct fixture *fixture = *state;
	char data[8] = "";

	assert_int_equal(try_to_write(fixture->engine, 0, "written", 8), 0);
	assert_int_equal(try_to_read(fixture->engine, 0, data, 8), 0);
	assert_string_equal(data, "written");
}

static void test_nobody_waits_for_the_turn(void **state)
{
	struct fixture *fixture = *state;
	struct engine *engine = fixture->engine;
	uint64_t since;
	char data[8];

	/* As another thread would have it. */
	turn_take(&engine->turn);
	assert_int_equal(try_to_write(engine, 0, "written", 8), -EINPROGRESS);
	assert_int_equal(try_to_read(engine, 0, data, 8), -EINPROGRESS);
	turn_give(&engine->turn);
	since = turn_share(&engine->turn);
	assert_int_equal(try_to_write(engine, 0, "written", 8), -EINPROGRESS);
	assert_int_equal(try_to_read(engine, 0, data, 8), 0);
	turn_unshare(&engine->turn, since);
	assert_int_equal(try_to_write(engine, 0, "written", 8), 0);
}

static void test_an_error_that_somebody_swallows_ends_the_transaction_all_the_same(void **state)
{
	struct fixture *fixture = *state;
	struct engine_txn *txn;
	char data[8] = "";

	assert_int_equal(try_to_write(fixture->engine, 0, "first..", 8), 0);
	for (int mode = ENGINE_READ; mode <= ENGINE_WRITE; mode++) {
		engine_attempt_begin(NULL);
		assert_int_equal(engine_begin(fixture->engine, (enum engine_mode)mode, &txn), 0);
		if (mode == ENGINE_WRITE)
			assert_int_equal(engine_write(txn, object(OBJECT), 0, "second.", 8), 0);
		(void)would_wait();
		assert_int_equal(engine_commit(txn, false), -EINPROGRESS);
		engine_attempt_end();
	}
	assert_int_equal(try_to_read(fixture->engine, 0, data, 8), 0);
	assert_string_equal(data, "first..");
}

/* Until no attempt succeeds: then a row would have to be sealed, or space to be made. */
static void test_nobody_seals_and_what_was_tried_leaves_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct nand_counters before, after;
	uint8_t page[PAGE], read[PAGE];
	int result = 0;
	uint32_t value = 0;

	nand_read_counters(fixture->nand, &before);
	for (; !result && value < 100000; value++) {
		memset(page, (int)value, sizeof(page));
		result = try_to_write(fixture->engine, value % 64 * PAGE, page, PAGE);
	}
	assert_int_equal(result, -EINPROGRESS);
	nand_read_counters(fixture->nand, &after);
	for (int cause = 0; cause < NAND_CAUSES; cause++)
		assert_int_equal(after.by_cause[cause].pages_programmed,
				 before.by_cause[cause].pages_programmed);

	/* Each page is as the last attempt that succeeded left it. */
	value--;
	for (uint32_t n = 1; n <= 64 && n <= value; n++) {
		uint32_t last = value - n;

		memset(page, (int)last, sizeof(page));
		assert_int_equal(try_to_read(fixture->engine, last % 64 * PAGE, read, PAGE), 0);
		assert_memory_equal(read, page, PAGE);
	}
}

static void test_slow_flash_is_not_waited_for(void **state)
{
	struct fixture *fixture = *state;
	struct nand_timing timing = { .mode = NAND_TIMING_REAL, .page_read_ns = 1000 };
	struct error_text error;
	struct engine_txn *txn;
	uint8_t page[PAGE] = { 0 };
	uint64_t got;
	int results[2] = { 0 };

	/* So much that most of it is on flash. */
	for (uint32_t n = 0; n < 600; n++) {
		assert_int_equal(engine_begin(fixture->engine, ENGINE_WRITE, &txn), 0);
		assert_int_equal(engine_write(txn, object(OBJECT), n * PAGE, page, PAGE), 0);
		assert_int_equal(engine_commit(txn, false), 0);
	}
	assert_int_equal(nand_set_timing(fixture->nand, &timing, &error), 0);
	for (uint32_t n = 0; n < 600; n++) {
		int result = try_to_read(fixture->engine, n * PAGE, page, PAGE);

		assert_true(result == 0 || result == -EINPROGRESS);
		results[result != 0]++;
	}
	assert_true(results[0] > 0 && results[1] > 0);
	assert_int_equal(engine_begin(fixture->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_read(txn, object(OBJECT), 0, page, PAGE, &got), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static void test_what_is_to_be_stable_waits(void **state)
{
	struct fixture *fixture = *state;
	char data[8];

	fixture->engine->options.stable_commits = true;
	assert_int_equal(try_to_write(fixture->engine, 0, "written", 8), -EINPROGRESS);
	assert_int_equal(try_to_read(fixture->engine, 0, data, 8), 0);
	fixture->engine->options.stable_commits = false;
}

static void test_access_times_that_have_to_be_stored_are_left_to_others(void **state)
{
	struct fixture *fixture = *state;
	struct engine *engine = fixture->engine;
	uint32_t most = engine->options.onode_cache_entries;
	char data[8];

	for (uint32_t n = 0; n < most; n++)
		access_times_note(&engine->accesses,
				  (struct access_key){ .partition = PARTITION,
						       .object = OBJECT + 1 + n,
						       .created_sequence = 1 },
				  true, false, SECOND);
	assert_int_equal(try_to_read(engine, 0, data, 8), -EINPROGRESS);
	engine_settle_accesses(engine, 0);
	assert_int_equal(try_to_read(engine, 0, data, 8), 0);
}

#define on_flash(test) cmocka_unit_test_setup_teardown(test, setup_on_flash, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_flash(test_what_need_not_wait_is_done),
		on_flash(test_nobody_waits_for_the_turn),
		on_flash(test_an_error_that_somebody_swallows_ends_the_transaction_all_the_same),
		on_flash(test_nobody_seals_and_what_was_tried_leaves_nothing),
		on_flash(test_slow_flash_is_not_waited_for),
		on_flash(test_what_is_to_be_stable_waits),
		on_flash(test_access_times_that_have_to_be_stored_are_left_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
