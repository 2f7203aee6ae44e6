/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A format makes all before it void: it finds only what it puts; its commit leaves that alone, its
 * abort all else; the power may fail at every operation. Runs for each index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "engine/muninn/store.h"
#include "engine/open.h"
#include "engine/records/records.h"
#include "nand/private.h"
#include "nand/rehearsal.h"
#include "tests/engine/flush_now.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/small_flash.h"

enum { OLD_KEYS = 400, BEGINNING = 60, VALUE_MAX = 512 };

static const struct nand_geometry geometry = SMALL_FLASH(300);
static const uint8_t boots[2][16] = { { 1 }, { 2 } };

/* NULL: the power is off. */
static struct record_store *open_store_with(struct nand *nand, int boot, bool without_nvram)
{
	const struct engine_options options = { .muninn.rows = 2,
						.muninn.index = index_under_test(),
						.muninn.segment_pages = 8,
						.muninn.record_bytes = 256,
						.records.recover_without_nvram = without_nvram,
						.records.boot_id = boots[boot] };
	struct nand_power_status status;
	struct error_text error = { "" };
	struct record_store *store;

	if (engine_open_records(nand, &options, &store, &error) == 0)
		return store;
	nand_power_status(nand, &status);
	if (!status.off)
		fail_msg("%s", error.text);
	return NULL;
}

static struct record_store *open_store(struct nand *nand, int boot)
{
	return open_store_with(nand, boot, false);
}

/*
 * Two kinds of keys that differ in their partition; values of all lengths, up to one that fills a
 * page.
 */
static struct record_key key_of(uint16_t kind, uint32_t number)
{
	return (struct record_key){ .partition = kind, .identifier = 0x10000 + number };
}

static uint32_t value_of(uint16_t kind, uint32_t number, uint8_t value[VALUE_MAX])
{
	memset(value, (int)(kind * 100 + number), VALUE_MAX);
	return number % 5 == 4 ? VALUE_MAX : number * 37 % 300;
}

static int put(struct record_store *store, uint16_t kind, uint32_t number)
{
	const struct record_key key = key_of(kind, number);
	uint8_t value[VALUE_MAX];
	uint32_t length = value_of(kind, number, value);

	return store->operations->put(store, &key, 1, 0, value, length, true);
}

/* How many of a kind are there; what is there has to be right. */
static uint32_t count_found(struct record_store *store, uint16_t kind, uint32_t count)
{
	uint32_t found = 0;

	for (uint32_t number = 0; number < count; number++) {
		const struct record_key key = key_of(kind, number);
		uint8_t value[VALUE_MAX], wanted[VALUE_MAX];
		struct record_info info;
		int result = store->operations->get(store, &key, RECORD_NEWEST, value,
						    sizeof(value), &info);

		if (result == -ENOENT)
			continue;
		assert_int_equal(result, 0);
		assert_int_equal(info.length, value_of(kind, number, wanted));
		assert_memory_equal(value, wanted, info.length);
		found++;
	}
	return found;
}

/* Whether all of a kind are there, or none. */
static bool is_there(struct record_store *store, uint16_t kind, uint32_t count)
{
	uint32_t found = count_found(store, kind, count);

	assert_true(found == 0 || found == count);
	return found != 0;
}

static void fill(struct record_store *store, uint16_t kind, uint32_t count)
{
	for (uint32_t number = 0; number < count; number++) {
		store->operations->begin(store, 0);
		assert_int_equal(put(store, kind, number), 0);
		store->operations->commit(store);
	}
}

static int put_beginning(struct record_store *store)
{
	uint64_t sequence;
	int result = store->operations->begin_format(store, 0, &sequence);

	for (uint32_t number = 0; result == 0 && number < BEGINNING; number++)
		result = put(store, 2, number);
	return result;
}

static struct nand *new_device(uint64_t nvram_bytes)
{
	struct error_text error = { "" };
	struct nand *nand;

	assert_int_equal(nand_open_memory(&geometry, nvram_bytes, &nand, &error), 0);
	return nand;
}

static uint64_t nvram_bytes(void)
{
	const struct engine_options options = { .muninn.rows = 2,
						.muninn.index = index_under_test(),
						.muninn.segment_pages = 8,
						.muninn.record_bytes = 256 };
	struct error_text error = { "" };
	uint64_t bytes;

	assert_int_equal(engine_nvram_bytes(&geometry, &options, &bytes, &error), 0);
	return bytes;
}

static void prepare(struct nand *nand, void *context)
{
	const struct engine_options options = { .muninn.rows = 2,
						.muninn.index = index_under_test(),
						.muninn.segment_pages = 8,
						.muninn.record_bytes = 256,
						.records.boot_id = boots[0] };
	struct error_text error = { "" };
	struct record_store *store;

	(void)context;
	assert_int_equal(engine_format(nand, &options, &error), 0);
	store = open_store(nand, 0);
	fill(store, 1, OLD_KEYS);
	assert_int_equal(store->operations->close(store, true), 0);
}

/* With old records, and a format under way that has put its beginning. */
static struct record_store *open_formatting(struct nand *nand)
{
	struct record_store *store;

	prepare(nand, NULL);
	store = open_store(nand, 0);
	assert_int_equal(put_beginning(store), 0);
	return store;
}

static void test_a_format_finds_only_what_it_puts_and_an_abort_leaves_the_rest(void **state)
{
	struct nand *nand = new_device(nvram_bytes());
	struct record_store *store = open_formatting(nand);

	(void)state;
	assert_false(is_there(store, 1, OLD_KEYS));
	assert_true(is_there(store, 2, BEGINNING));
	store->operations->abort(store);
	for (int again = 0; again < 2; again++) {
		assert_true(is_there(store, 1, OLD_KEYS));
		assert_false(is_there(store, 2, BEGINNING));
		store->operations->close(store, again);
		store = open_store(nand, 0);
	}
	store->operations->close(store, true);
	assert_int_equal(nand_close(nand), 0);
}

static void test_a_format_leaves_what_it_put_and_a_store_that_can_be_filled(void **state)
{
	struct nand *nand = new_device(nvram_bytes());
	struct record_statistics before, after;
	struct record_store *store;

	(void)state;
	prepare(nand, NULL);
	store = open_store(nand, 0);
	for (int again = 0; again < 3; again++) {
		store->operations->statistics(store, &before);
		assert_int_equal(put_beginning(store), 0);
		store->operations->commit(store);
		store->operations->statistics(store, &after);
		assert_true(after.segments_free >= before.segments_free);
		assert_int_equal(after.segments_free + after.segments_sealed +
					 after.segments_metadata,
				 after.segments);
		assert_false(is_there(store, 1, OLD_KEYS));
		assert_true(is_there(store, 2, BEGINNING));
		fill(store, 1, OLD_KEYS);
		store->operations->close(store, false);
		store = open_store(nand, 0);
		assert_true(is_there(store, 1, OLD_KEYS));
		assert_true(is_there(store, 2, BEGINNING));
	}
	store->operations->close(store, true);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- beside a thread that seals ---- */

/* Does what the thread does until a full buffer is about to run a stage. False: none comes there.
 */
static bool seals_until(struct record_store *store, enum seal_stage stage)
{
	const struct muninn_store *inside = (const struct muninn_store *)(const void *)store;
	int row = store->operations->seal_take(store);

	if (row < 0)
		return false;
	do {
		if (inside->rows[row].sealing.stage == stage)
			return true;
		store->operations->seal_run(store, row);
	} while (store->operations->seal_step(store, row) == 1);
	return false;
}

/* A merge makes a format final, and what was void is let go. */
static void settle(struct record_store *store)
{
	const struct record_keep keep = { .bounds = NULL };
	struct record_merge merge = { .segments_wanted = 1, .live_permille_max = 1000 };
	int result = store->operations->merge(store, &keep, &merge);

	assert_true(result == 0 || result == -EAGAIN);
}

/* Of the flash, but for roots; also no image of the index that is under way. */
static void expect_nothing_used(struct record_store *store)
{
	const struct muninn_store *inside = (const struct muninn_store *)(const void *)store;
	struct record_statistics statistics;

	store->operations->statistics(store, &statistics);
	assert_int_equal(statistics.segments_free,
			 statistics.segments - inside->geometry.root_segments);
	assert_null(inside->image_writing.image.bytes);
	assert_null(inside->image_writing.entry);
}

static void test_a_format_may_come_at_each_stage_of_a_buffer_that_is_sealed(void **state)
{
	(void)state;
	for (enum seal_stage stage = SEAL_BUILD; stage < SEAL_STAGES; stage++) {
		struct record_store *store;
		struct nand *nand;
		uint64_t sequence;

		/* A buffer waits for its member's sync only behind a promise. */
		if (stage == SEAL_MEMBER || stage == SEAL_COLUMN)
			continue;
		nand = new_device(nvram_bytes());
		prepare(nand, NULL);
		store = open_store(nand, 0);
		for (uint32_t n = 0; !seals_until(store, stage); n++) {
			assert_true(n < 10 * OLD_KEYS);
			fill(store, 1, 20);
		}
		/* A command that puts might end what is under way. */
		assert_int_equal(store->operations->begin_format(store, 0, &sequence), 0);
		store->operations->commit(store);
		settle(store);
		expect_nothing_used(store);
		assert_false(is_there(store, 1, OLD_KEYS));
		for (int again = 0; again < 3; again++) {
			fill(store, 1, OLD_KEYS);
			assert_true(is_there(store, 1, OLD_KEYS));
			store->operations->close(store, false);
			store = open_store(nand, 0);
			assert_true(is_there(store, 1, OLD_KEYS));
		}
		store->operations->close(store, true);
		assert_int_equal(nand_close(nand), 0);
	}
}

static void test_a_format_of_too_much_is_refused_and_can_be_aborted(void **state)
{
	struct nand *nand = new_device(nvram_bytes());
	struct record_store *store;
	uint64_t sequence;
	int result = 0;

	(void)state;
	prepare(nand, NULL);
	store = open_store(nand, 0);
	assert_int_equal(store->operations->begin_format(store, 0, &sequence), 0);
	for (uint32_t number = 0; result == 0 && number < 10000; number++)
		result = put(store, 2, number);
	assert_int_equal(result, -ENOSPC);
	store->operations->abort(store);
	assert_true(is_there(store, 1, OLD_KEYS));
	store->operations->close(store, true);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- power cuts ---- */

struct progress {
	bool answered, host_fails;
	unsigned before, after;
};

static void run(struct nand *nand, void *context)
{
	struct progress *progress = context;
	struct record_store *store = open_store(nand, 0);
	struct nand_power_status status;
	int result;

	progress->answered = false;
	if (!store)
		return;
	result = put_beginning(store);
	if (result == 0)
		store->operations->commit(store);
	nand_power_status(nand, &status);
	progress->answered = result == 0 && !status.off;
	store->operations->close(store, false);
}

static void check(struct nand *nand, void *context, const struct nand_power_cut *cut)
{
	struct progress *progress = context;
	struct record_store *store = open_store(nand, cut && progress->host_fails);
	bool before = is_there(store, 1, OLD_KEYS), after = is_there(store, 2, BEGINNING);

	assert_true(before != after);
	assert_true(after || !progress->answered);
	progress->before += before;
	progress->after += after;
	/* And it goes on. */
	fill(store, 3, 100);
	assert_true(is_there(store, 3, 100));
	assert_true(is_there(store, before ? 1 : 2, before ? OLD_KEYS : BEGINNING));
	store->operations->close(store, false);
}

/*
 * Without NVRAM, what was in the rows' buffers is gone; but nothing is there that was formatted
 * away beside what came after.
 */
static void check_without_nvram(struct nand *nand, void *context, const struct nand_power_cut *cut)
{
	struct progress *progress = context;
	struct record_store *store = open_store_with(nand, 0, cut != NULL);
	uint32_t before = count_found(store, 1, OLD_KEYS), after = count_found(store, 2, BEGINNING);

	assert_true(before == 0 || after == 0);
	assert_true(before == 0 || before > OLD_KEYS / 2);
	progress->before += before != 0;
	progress->after += after != 0;
	fill(store, 3, 100);
	assert_true(is_there(store, 3, 100));
	store->operations->close(store, false);
}

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void rehearse(enum nand_cut_nvram nvram, size_t ends_count)
{
	struct nand_power_cut ends[NAND_REHEARSAL_ENDS];
	struct progress progress = { .host_fails = nvram != NAND_CUT_NVRAM_KEPT };
	struct nand_rehearsal rehearsal = { .geometry = &geometry,
					    .nvram_bytes = nvram_bytes(),
					    .context = &progress,
					    .prepare = prepare,
					    .run = run,
					    .check = nvram == NAND_CUT_NVRAM_LOST
							     ? check_without_nvram
							     : check,
					    .ends = ends,
					    .ends_count = ends_count };
	struct error_text error = { "" };
	uint64_t runs = 0;

	log_configure(no_log, LOG_LEVEL_ERROR);
	nand_rehearsal_ends(&geometry, nvram, ends);
	if (nand_rehearse(&rehearsal, &runs, &error) != 0)
		fail_msg("%s", error.text);
	log_configure(NULL, LOG_LEVEL_WARNING);
	assert_true(progress.before > 30);
	/* Little of it is on flash before the store is closed. */
	assert_true(nvram == NAND_CUT_NVRAM_LOST || progress.after > 8);
}

/* ---- the host can't store ---- */

static unsigned syncs_left;

static int store_while_it_works(struct nand *nand, const struct nand_nvram_range *ranges,
				uint32_t count)
{
	(void)nand;
	(void)ranges;
	(void)count;
	if (syncs_left == 0)
		return -EIO;
	syncs_left--;
	return 0;
}

/*
 * From now on so many syncs of the NVRAM succeed. The device is in memory, which otherwise has
 * none.
 */
static void limit_syncs(struct nand *nand, unsigned syncs)
{
	syncs_left = syncs;
	nand->nvram_group.store = store_while_it_works;
	nand->nvram_fd = 0;
}

/* As opening the image does. */
static void end_limit(struct nand *nand)
{
	nand->nvram_fd = -1;
	nand->nvram_group.failed = false;
}

/* How many records are in segments. */
static uint64_t sealed_records(struct record_store *store)
{
	struct record_statistics statistics = { 0 };

	store->operations->statistics(store, &statistics);
	return statistics.sealed_records;
}

/*
 * The process is all that ends, so the format holds from its commit on. What was there before is
 * freed at once, or by the next opening, which can make NVRAM stable.
 */
static void test_a_format_that_can_t_be_made_stable_holds_and_opening_frees_what_is_void(
	void **state)
{
	unsigned unsettled = 0;
	bool stable = false;

	(void)state;
	log_configure(no_log, LOG_LEVEL_ERROR);
	for (unsigned syncs = 0; !stable; syncs++) {
		struct nand *nand = new_device(nvram_bytes());
		struct record_store *store;
		uint64_t sequence;
		int result;

		assert_true(syncs < 100);
		prepare(nand, NULL);
		store = open_store(nand, 0);
		assert_int_equal(put_beginning(store), 0);
		limit_syncs(nand, syncs);
		store->operations->commit(store);
		stable = !nand->nvram_group.failed;
		for (int again = 0; again < 2; again++) {
			assert_false(is_there(store, 1, OLD_KEYS));
			assert_true(is_there(store, 2, BEGINNING));
			if (again)
				break;
			/* Nor does another one begin, which could lead back to before this one. */
			result = store->operations->begin_format(store, 0, &sequence);
			assert_true(result == 0 || (result == -EIO && !stable));
			unsettled += result != 0;
			if (!result)
				store->operations->abort(store);
			store->operations->close(store, false);
			end_limit(nand);
			store = open_store(nand, 0);
		}
		fill(store, 3, 10);
		/* But for what shares a segment with the beginning. */
		assert_true(sealed_records(store) < OLD_KEYS / 2);
		store->operations->close(store, false);
		assert_int_equal(nand_close(nand), 0);
	}
	log_configure(NULL, LOG_LEVEL_WARNING);
	assert_true(unsettled > 1);
}

/* What a flush promised before the format is not missed. */
static void test_the_host_fails_after_a_format_that_emptied_flushed_buffers(void **state)
{
	struct nand *nand = new_device(nvram_bytes());
	struct record_store *store = open_formatting(nand);

	(void)state;
	store->operations->commit(store);
	assert_int_equal(flush_now(store), 0);
	store->operations->close(store, false);
	store = open_store(nand, 1);
	assert_false(is_there(store, 1, OLD_KEYS));
	assert_true(is_there(store, 2, BEGINNING));
	store->operations->close(store, false);
	assert_int_equal(nand_close(nand), 0);
}

/* Stores formatted again and again, with and without aborts and losses between. */
static void test_each_of_many_formats_makes_the_one_before_it_void(void **state)
{
	struct nand *nand = new_device(nvram_bytes());
	struct record_store *store;
	uint64_t sequence;

	(void)state;
	prepare(nand, NULL);
	store = open_store(nand, 0);
	for (int round = 0; round < 12; round++) {
		assert_int_equal(put_beginning(store), 0);
		store->operations->commit(store);
		assert_false(is_there(store, 1, OLD_KEYS));
		fill(store, 1, OLD_KEYS);
		assert_int_equal(put_beginning(store), 0);
		store->operations->abort(store);
		assert_true(is_there(store, 1, OLD_KEYS));
		assert_int_equal(flush_now(store), 0);
		store->operations->close(store, false);
		store = open_store(nand, round % 2);
		assert_true(is_there(store, 1, OLD_KEYS));
		assert_true(is_there(store, 2, BEGINNING));
		assert_int_equal(store->operations->begin_format(store, 0, &sequence), 0);
		store->operations->commit(store);
		assert_false(is_there(store, 2, BEGINNING));
		assert_int_equal(sealed_records(store), 0);
		fill(store, 1, OLD_KEYS);
	}
	store->operations->close(store, true);
	assert_int_equal(nand_close(nand), 0);
}

/* Writes one record after the other until that fails. */
static void write_until_it_ends(struct record_store *store)
{
	int result = 0;

	for (uint32_t number = 0; !result; number++) {
		assert_true(number < 100000);
		store->operations->begin(store, 0);
		result = put(store, 1, number);
		if (result)
			store->operations->abort(store);
		else
			store->operations->commit(store);
	}
}

/*
 * Nothing was flushed since, but what a format began with is stable; and rows that have completed
 * several tables by then do not come back with the beginning of an earlier one.
 */
static void test_the_host_fails_while_what_a_format_freed_is_written_over(void **state)
{
	struct error_text error = { "" };

	(void)state;
	log_configure(no_log, LOG_LEVEL_ERROR);
	for (uint64_t after = 100; after < 2500; after += 130) {
		const struct nand_power_cut cut = { .after = after,
						    .nvram = NAND_CUT_NVRAM_FLUSHED };
		struct nand *nand = new_device(nvram_bytes());
		struct nand_power_status status;
		struct record_store *store;

		prepare(nand, NULL);
		store = open_store(nand, 0);
		assert_int_equal(put_beginning(store), 0);
		assert_int_equal(nand_arm_power_cut(nand, &cut, &error), 0);
		store->operations->commit(store);
		write_until_it_ends(store);
		nand_power_status(nand, &status);
		assert_true(status.off);
		store->operations->close(store, false);
		assert_int_equal(nand_power_on(nand), 0);
		store = open_store(nand, 1);
		assert_true(is_there(store, 2, BEGINNING));
		store->operations->close(store, false);
		assert_int_equal(nand_close(nand), 0);
	}
	log_configure(NULL, LOG_LEVEL_WARNING);
}

static void test_the_power_fails_at_every_operation_of_a_format(void **state)
{
	(void)state;
	rehearse(NAND_CUT_NVRAM_KEPT, 3);
}

static void test_the_host_fails_at_every_operation_of_a_format(void **state)
{
	(void)state;
	rehearse(NAND_CUT_NVRAM_FLUSHED, 2);
	rehearse(NAND_CUT_NVRAM_MIXED, 3);
}

static void test_the_nvram_is_lost_at_every_operation_of_a_format(void **state)
{
	(void)state;
	rehearse(NAND_CUT_NVRAM_LOST, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_format_finds_only_what_it_puts_and_an_abort_leaves_the_rest),
		cmocka_unit_test(test_a_format_leaves_what_it_put_and_a_store_that_can_be_filled),
		cmocka_unit_test(test_a_format_may_come_at_each_stage_of_a_buffer_that_is_sealed),
		cmocka_unit_test(test_a_format_of_too_much_is_refused_and_can_be_aborted),
		cmocka_unit_test(
			test_a_format_that_can_t_be_made_stable_holds_and_opening_frees_what_is_void),
		cmocka_unit_test(test_the_host_fails_after_a_format_that_emptied_flushed_buffers),
		cmocka_unit_test(test_each_of_many_formats_makes_the_one_before_it_void),
		cmocka_unit_test(test_the_host_fails_while_what_a_format_freed_is_written_over),
		cmocka_unit_test(test_the_power_fails_at_every_operation_of_a_format),
		cmocka_unit_test(test_the_host_fails_at_every_operation_of_a_format),
		cmocka_unit_test(test_the_nvram_is_lost_at_every_operation_of_a_format),
	};

	return cmocka_run_group_tests_name("formats", tests, NULL, NULL);
}
