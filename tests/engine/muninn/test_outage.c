/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The host fails again and again, also while the store recovers from it: what the first failure
 * took back does not come back with a later one.
 *
 * Runs for each index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/muninn/store.h"
#include "engine/open.h"
#include "nand/nand.h"
#include "nand/power.h"
#include "tests/engine/flush_now.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/sealers.h"
#include "tests/engine/small_flash.h"

enum {
	KEYS = 24,
	VALUE_BYTES = 200,   /* two records in a page ... */
	SPANNED_BYTES = 160, /* ... or more, which span pages */
	FLUSHED = 40,
	TAKEN_BACK = 80,
	OPERATIONS_MAX = 1000,
	MIXTURES = 8
};

static uint32_t value_bytes = VALUE_BYTES;
static const struct nand_geometry geometry = SMALL_FLASH(160);

struct host {
	struct nand *nand;
	uint8_t boot[16];
	struct engine_options options;
};

static void start_host_with_rows(struct host *host, uint32_t rows)
{
	struct error_text error = { "" };
	uint64_t bytes;

	*host = (struct host){ .options = { .muninn.index = index_under_test(),
					    .muninn.rows = rows,
					    .muninn.segment_pages = 8,
					    .muninn.record_bytes = 256 } };
	host->options.records.boot_id = host->boot;
	if (engine_nvram_bytes(&geometry, &host->options, &bytes, &error) ||
	    nand_open_memory(&geometry, bytes, &host->nand, &error) ||
	    engine_format(host->nand, &host->options, &error))
		fail_msg("%s", error.text);
}

static void start_host(struct host *host)
{
	start_host_with_rows(host, 1);
}

static struct record_store *open_store(struct host *host)
{
	struct error_text error = { "" };
	struct record_store *store;

	if (engine_open_records(host->nand, &host->options, &store, &error))
		fail_msg("%s", error.text);
	return store;
}

/* Each puts one of so many keys in turn; the value says which transaction it was. */
static void run_on_keys(struct record_store *store, uint64_t keys, uint64_t first, uint64_t count)
{
	uint8_t value[VALUE_BYTES] = { 0 };

	for (uint64_t n = first; n < first + count; n++) {
		struct record_key key = { .partition = 1, .identifier = 0x10000 + n % keys };

		put_le64(value, n);
		store->operations->begin(store, 0);
		assert_int_equal(
			store->operations->put(store, &key, 1, 0, value, value_bytes, false), 0);
		store->operations->commit(store);
	}
}

static void run_transactions(struct record_store *store, uint64_t first, uint64_t count)
{
	run_on_keys(store, KEYS, first, count);
}

/*
 * The power is to fail after so many operations; each page of the NVRAM will be as flushed or as it
 * is then.
 */
static void arm(struct host *host, uint64_t operations, uint64_t seed)
{
	const struct nand_power_cut cut = { .after = operations,
					    .nvram = NAND_CUT_NVRAM_MIXED,
					    .seed = seed };
	struct error_text error;

	assert_int_equal(nand_arm_power_cut(host->nand, &cut, &error), 0);
}

static bool is_off(struct host *host)
{
	struct nand_power_status status;

	nand_power_status(host->nand, &status);
	return status.off;
}

/* The host fails now, and starts again. */
static void fail_host(struct host *host, struct record_store *store)
{
	for (int point = 0; !is_off(host) && point < OPERATIONS_MAX; point++)
		nand_power_point(host->nand);
	store->operations->close(store, false);
	assert_int_equal(nand_power_on(host->nand), 0);
	host->boot[0]++;
}

/* Opens the store; the host fails after so many operations of that. Whether it came to that. */
static bool fail_in_opening(struct host *host, uint64_t operations, uint64_t seed)
{
	struct error_text error;
	struct record_store *store = NULL;
	bool off;

	arm(host, operations, seed);
	if (engine_open_records(host->nand, &host->options, &store, &error) == 0)
		store->operations->close(store, false);
	off = is_off(host);
	nand_disarm_power_cut(host->nand);
	assert_int_equal(nand_power_on(host->nand), 0);
	host->boot[0]++;
	return off;
}

/* Each of the keys has what the last of `count` transactions that put it said. */
static void check_keys(struct record_store *store, uint64_t keys, uint64_t count)
{
	for (uint64_t number = 0; number < keys; number++) {
		struct record_key key = { .partition = 1, .identifier = 0x10000 + number };
		uint64_t newest = count - 1 - (count - 1 - number) % keys;
		uint8_t value[VALUE_BYTES];
		struct record_info info;

		assert_int_equal(store->operations->get(store, &key, RECORD_NEWEST, value,
							sizeof(value), &info),
				 0);
		assert_int_equal(get_le64(value), newest);
	}
}

static void check_flushed(struct record_store *store)
{
	check_keys(store, KEYS, FLUSHED);
}

static void discard_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/*
 * Two failures of the host, and a third one after so many operations of recovery. Whether it came
 * to that.
 */
static bool fail_three_times(uint64_t operations, uint64_t seed)
{
	struct record_store *store;
	struct host host;
	bool failed;

	start_host(&host);
	store = open_store(&host);
	run_transactions(store, 0, FLUSHED);
	assert_int_equal(flush_now(store), 0);
	arm(&host, OPERATIONS_MAX / 2, seed);
	/* So many that some are in sealed segments. */
	run_transactions(store, FLUSHED, TAKEN_BACK);
	fail_host(&host, store);
	store = open_store(&host);
	check_flushed(store);
	arm(&host, OPERATIONS_MAX / 2, seed);
	run_transactions(store, FLUSHED, 1);
	fail_host(&host, store);
	failed = fail_in_opening(&host, operations, seed);
	store = open_store(&host);
	check_flushed(store);
	assert_int_equal(store->operations->close(store, true), 0);
	nand_close(host.nand);
	return failed;
}

static void test_what_one_failure_took_back_stays_away_when_another_interrupts_recovery(
	void **state)
{
	(void)state;
	log_configure(discard_line, LOG_LEVEL_ERROR);
	for (uint64_t seed = 1; seed <= MIXTURES; seed++) {
		uint64_t operations = 0;

		while (operations < OPERATIONS_MAX && fail_three_times(operations, seed))
			operations++;
		assert_in_range(operations, 1, OPERATIONS_MAX - 1);
	}
	log_configure(NULL, LOG_LEVEL_WARNING);
}

enum { SMALL_KEYS = 6, SMALL_BYTES = 40 };

/* Puts all small keys; the value says `word`. */
static void put_small(struct record_store *store, uint64_t word)
{
	uint8_t value[SMALL_BYTES] = { 0 };

	put_le64(value, word);
	for (uint64_t number = 0; number < SMALL_KEYS; number++) {
		struct record_key key = { .partition = 2, .identifier = 0x10000 + number };

		assert_int_equal(
			store->operations->put(store, &key, 1, 0, value, sizeof(value), false), 0);
	}
}

static void commit_small(struct record_store *store, uint64_t word)
{
	store->operations->begin(store, 0);
	put_small(store, word);
	store->operations->commit(store);
}

/* Commits nothing, with the first number of a later slot, and flushes. */
static void flush_in_a_later_slot(struct record_store *store)
{
	store->operations->begin(store, RECORD_SLOT);
	store->operations->commit(store);
	assert_int_equal(flush_now(store), 0);
}

static void check_small(struct record_store *store, uint64_t word)
{
	for (uint64_t number = 0; number < SMALL_KEYS; number++) {
		struct record_key key = { .partition = 2, .identifier = 0x10000 + number };
		uint8_t value[SMALL_BYTES];
		struct record_info info;

		assert_int_equal(store->operations->get(store, &key, RECORD_NEWEST, value,
							sizeof(value), &info),
				 0);
		assert_int_equal(get_le64(value), word);
	}
}

/*
 * Puts of an aborted command lie where later ones are put. When the later ones' place reaches the
 * host's storage and they do not, the aborted ones, with lower numbers than the last flush, are not
 * taken for them.
 */
static void test_what_was_aborted_before_a_flush_does_not_come_back_with_pages_of_nvram_mixed(
	void **state)
{
	(void)state;
	log_configure(discard_line, LOG_LEVEL_ERROR);
	for (uint64_t seed = 1; seed <= 4 * MIXTURES; seed++) {
		struct record_store *store;
		struct host host;

		start_host(&host);
		store = open_store(&host);
		commit_small(store, 1);
		store->operations->begin(store, 0);
		put_small(store, 2);
		store->operations->abort(store);
		/*
		 * Numbers may be left out, so those of the aborted command are lower than this one.
		 */
		flush_in_a_later_slot(store);
		arm(&host, OPERATIONS_MAX / 2, seed);
		commit_small(store, 3);
		fail_host(&host, store);
		store = open_store(&host);
		check_small(store, 1);
		assert_int_equal(store->operations->close(store, true), 0);
		nand_close(host.nand);
	}
	log_configure(NULL, LOG_LEVEL_WARNING);
}

/*
 * A failure takes puts back of which the slot's header had not reached the host's storage, but the
 * slot itself had. A second one, behind a flush with higher numbers, leaves the header of later
 * puts and the slot as it was.
 */
static void test_what_one_failure_took_back_does_not_come_back_in_the_place_of_later_puts(
	void **state)
{
	(void)state;
	log_configure(discard_line, LOG_LEVEL_ERROR);
	for (uint64_t seed = 1; seed <= 32 * MIXTURES; seed++) {
		struct record_store *store;
		struct host host;

		start_host(&host);
		store = open_store(&host);
		commit_small(store, 1);
		assert_int_equal(flush_now(store), 0);
		arm(&host, OPERATIONS_MAX / 2, seed);
		commit_small(store, 2);
		fail_host(&host, store);
		store = open_store(&host);
		check_small(store, 1);
		flush_in_a_later_slot(store);
		arm(&host, OPERATIONS_MAX / 2, seed + 1000);
		commit_small(store, 3);
		fail_host(&host, store);
		store = open_store(&host);
		check_small(store, 1);
		assert_int_equal(store->operations->close(store, true), 0);
		nand_close(host.nand);
	}
	log_configure(NULL, LOG_LEVEL_WARNING);
}

/* ---- two flushes of one number ---- */

/* So that a sealed segment has some records that are still needed. */
enum { MANY_KEYS = 60, MANY_TRANSACTIONS = 70 };

static uint32_t keep_newest(void *context, const struct record_key *key,
			    const struct record_info *info, uint64_t *bounds, uint32_t max)
{
	(void)context;
	(void)key;
	(void)info;
	if (max)
		bounds[0] = RECORD_NEWEST;
	return 1;
}

/* Moves records, which commits nothing, and flushes again. The power may fail meanwhile. */
static void merge_and_flush(struct host *host, struct record_store *store)
{
	const struct record_keep keep = { .bounds = keep_newest };
	struct record_merge merge = { .live_permille_max = 1000 };

	store->operations->merge(store, &keep, &merge);
	assert_true(merge.records_moved > 0 || is_off(host));
	if (!is_off(host))
		flush_now(store);
}

/* Whether the power failed before all was done. */
static bool fail_between_flushes(uint64_t operations, uint64_t seed)
{
	struct record_store *store;
	struct host host;
	bool failed;

	start_host(&host);
	store = open_store(&host);
	run_on_keys(store, MANY_KEYS, 0, MANY_TRANSACTIONS);
	assert_int_equal(flush_now(store), 0);
	arm(&host, operations, seed);
	merge_and_flush(&host, store);
	failed = is_off(&host);
	fail_host(&host, store);
	store = open_store(&host);
	check_keys(store, MANY_KEYS, MANY_TRANSACTIONS);
	assert_int_equal(store->operations->close(store, true), 0);
	nand_close(host.nand);
	return failed;
}

/*
 * What merging moves has old numbers, which an earlier flush speaks of. A flush that promises it,
 * too, and is interrupted, is not taken for that one.
 */
static void test_a_flush_that_fails_promises_nothing_by_the_number_of_the_one_before(void **state)
{
	(void)state;
	log_configure(discard_line, LOG_LEVEL_ERROR);
	for (uint64_t seed = 1; seed <= MIXTURES; seed++) {
		uint64_t operations = 0;

		while (operations < OPERATIONS_MAX && fail_between_flushes(operations, seed))
			operations++;
		assert_in_range(operations, 1, OPERATIONS_MAX - 1);
	}
	log_configure(NULL, LOG_LEVEL_WARNING);
}

/* ---- a crash of the store, and then of the host ---- */

/* Fewer than two buffers hold, more than one: so one waits to be sealed. */
enum { WAITING_KEYS = 24, STAGES_MAX = 12 };

/* Seals what waits, but for what follows so many stages. Whether there was more to do. */
static bool seal_in_part(struct record_store *store, int stages)
{
	int number = store->operations->seal_take(store), result = 1;

	assert_true(number >= 0);
	for (int n = 0; n < stages && result == 1; n++) {
		store->operations->seal_run(store, number);
		result = store->operations->seal_step(store, number);
	}
	return result == 1;
}

static uint32_t members(struct record_store *store)
{
	return row_index_members(((struct muninn_store *)store)->rows[0].index);
}

/*
 * One segment of the row's group waits to be sealed, behind `sealed` others; the store crashes so
 * many stages later, and the host behind that. Whether there was more to do.
 */
static bool fail_behind_a_crash(uint32_t sealed, int stages, uint64_t seed)
{
	uint64_t count = WAITING_KEYS;
	struct record_store *store;
	struct host host;
	bool more;

	start_host(&host);
	store = open_store(&host);
	run_on_keys(store, WAITING_KEYS, 0, count);
	for (; members(store) < sealed; count++)
		run_on_keys(store, WAITING_KEYS, count, 1);
	assert_int_equal(members(store), sealed);
	assert_int_equal(flush_now(store), 0);
	arm(&host, OPERATIONS_MAX / 2, seed);
	more = seal_in_part(store, stages);
	store->operations->close(store, false);
	store = open_store(&host);
	fail_host(&host, store);
	store = open_store(&host);
	check_keys(store, WAITING_KEYS, count);
	assert_int_equal(store->operations->close(store, true), 0);
	nand_close(host.nand);
	return more;
}

static void fail_behind_crashes(uint32_t sealed, int stages_min)
{
	log_configure(discard_line, LOG_LEVEL_ERROR);
	for (uint64_t seed = 1; seed <= 4 * MIXTURES; seed++) {
		int stages = 0;

		while (stages < STAGES_MAX && fail_behind_a_crash(sealed, stages, seed))
			stages++;
		assert_in_range(stages, stages_min, STAGES_MAX - 1);
	}
	log_configure(NULL, LOG_LEVEL_WARNING);
}

/*
 * Opening finds that a segment counts, and gives its buffer away. That it counts need not have
 * reached the host's storage then.
 */
static void test_what_was_sealed_when_the_store_crashed_is_there_when_the_host_fails_then(
	void **state)
{
	(void)state;
	fail_behind_crashes(0, 2);
}

/* The same of a group: opening finds that it is complete, and begins the next one in its NVRAM. */
static void test_a_group_that_was_complete_when_the_store_crashed_is_there_then(void **state)
{
	(void)state;
	fail_behind_crashes(
		index_under_test() == INDEX_RIBBON ? ribbon_members(0, 0) : GROUP_SEGMENTS, 4);
}

/* ---- a crash of the store while it merges, and then of the host ---- */

enum { PIECES_MAX = 200 };

/* Merges so many pieces. Whether there was more to do. */
static bool merge_in_part(struct record_store *store, int pieces)
{
	const struct record_keep keep = { .bounds = keep_newest };
	struct record_merge merge = { .live_permille_max = 1000 };
	int result = 1;

	for (int n = 0; n < pieces && result == 1; n++) {
		result = store->operations->merge_step(store, &keep, &merge);
		if (n + 1 < pieces && result == 1)
			store->operations->merge_run(store);
	}
	assert_in_range(result, 0, 1);
	return result == 1;
}

/* Puts keys until there is no room for more; returns how many transactions that took. */
static uint64_t fill(struct record_store *store, enum record_room room)
{
	uint8_t value[VALUE_BYTES] = { 0 };
	uint64_t n = 0;

	for (int result = 0; !result; n++) {
		struct record_key key = { .partition = 1, .identifier = 0x10000 + n % MANY_KEYS };

		put_le64(value, n);
		store->operations->begin(store, 0);
		result = store->operations->put(store, &key, 1, 0, value, value_bytes, room);
		if (result)
			store->operations->abort(store);
		else
			store->operations->commit(store);
	}
	return n - 1;
}

static bool fail_behind_a_merge(int pieces, uint64_t seed)
{
	struct record_store *store;
	struct host host;
	uint64_t count;
	bool more;

	start_host(&host);
	store = open_store(&host);
	count = fill(store, RECORD_ROOM_WRITE);
	assert_int_equal(flush_now(store), 0);
	arm(&host, OPERATIONS_MAX / 2, seed);
	more = merge_in_part(store, pieces);
	store->operations->close(store, false);
	store = open_store(&host);
	/* All that is free is written again. */
	fill(store, RECORD_ROOM_MERGE);
	fail_host(&host, store);
	store = open_store(&host);
	check_keys(store, MANY_KEYS, count);
	assert_int_equal(store->operations->close(store, true), 0);
	nand_close(host.nand);
	return more;
}

/* Opening finds segments taken out, and lets them be written again. */
static void test_what_was_merged_when_the_store_crashed_is_there_when_the_host_fails_then(
	void **state)
{
	(void)state;
	log_configure(discard_line, LOG_LEVEL_ERROR);
	for (uint64_t seed = 1; seed <= 4 * MIXTURES; seed++) {
		int pieces = 1;

		while (pieces < PIECES_MAX && fail_behind_a_merge(pieces, seed))
			pieces++;
		assert_in_range(pieces, 3, PIECES_MAX - 1);
	}
	log_configure(NULL, LOG_LEVEL_WARNING);
}

/* ---- buffers that nothing was promised of ---- */

enum { TWO_ROWS = 2, IN_MANY_BUFFERS = 200 };

/* Full buffers are sealed beside them, so that another row may take what one has given back. */
static void run_beside_sealers(struct record_store *store, uint64_t count, uint64_t seed)
{
	struct sealers sealers = { .random = seed };

	for (uint64_t n = 0; n < count; n++) {
		run_transactions(store, n, 1);
		sealers_act(&sealers, store, false);
	}
}

static void check_nothing_is_there(struct record_store *store)
{
	for (uint64_t number = 0; number < KEYS; number++) {
		struct record_key key = { .partition = 1, .identifier = 0x10000 + number };
		struct record_info info;

		assert_int_equal(store->operations->get(store, &key, RECORD_NEWEST, NULL, 0, &info),
				 -ENOENT);
	}
}

/* Whether NVRAM as the store found it has three buffers of a row that were not sealed. */
static bool had_three_buffers(struct record_store *base, uint8_t *nvram)
{
	const struct muninn_store *store = (struct muninn_store *)base;
	const struct muninn_geometry *layout = &store->geometry;
	uint32_t counts[TWO_ROWS + 1] = { 0 };
	bool any = false;

	for (uint32_t n = 0; n < layout->buffers; n++) {
		const struct buffer buffer = { .area = nvram + layout->buffers_at +
						       n * layout->buffer_bytes };
		uint32_t row = buffer_row(&buffer);

		if (row >= layout->rows ||
		    buffer_stored_serial(&buffer) <= row_index_last_serial(store->rows[row].index))
			continue;
		any |= ++counts[row] == 3;
	}
	return any;
}

/*
 * A flush found a row's buffer empty, so it need not be stable that it is sealed. When the host
 * fails, this one may still be there as the row's, beside the two that followed.
 */
static void test_a_row_may_have_three_buffers_when_the_host_has_failed(void **state)
{
	uint64_t bytes;
	uint8_t *before;
	bool any = false;

	(void)state;
	log_configure(discard_line, LOG_LEVEL_ERROR);
	for (uint64_t seed = 1; seed <= 16 * MIXTURES; seed++) {
		struct record_store *store;
		struct host host;
		const uint8_t *nvram;

		start_host_with_rows(&host, TWO_ROWS);
		store = open_store(&host);
		assert_int_equal(flush_now(store), 0);
		arm(&host, OPERATIONS_MAX / 2, seed);
		run_beside_sealers(store, IN_MANY_BUFFERS / 2 + seed % 32, seed);
		fail_host(&host, store);
		nvram = nand_nvram(host.nand, &bytes);
		before = malloc(bytes);
		assert_non_null(before);
		memcpy(before, nvram, bytes);
		store = open_store(&host);
		any |= had_three_buffers(store, before);
		free(before);
		check_nothing_is_there(store);
		run_beside_sealers(store, IN_MANY_BUFFERS, seed);
		/* Now it is no failure of the host. */
		store->operations->close(store, false);
		store = open_store(&host);
		check_keys(store, KEYS, IN_MANY_BUFFERS);
		assert_int_equal(store->operations->close(store, true), 0);
		nand_close(host.nand);
	}
	assert_true(any);
	log_configure(NULL, LOG_LEVEL_WARNING);
}

/* ---- pages that were compacted ---- */

/* So few that they stay in one buffer, and so many puts that pages are compacted all the time. */
enum { ABSORBED_KEYS = 20, ABSORBED_BYTES = 60, ABSORBED_BEFORE = 60, ABSORBED_BEHIND = 25 };

/*
 * Puts keys at random, each in favour of later ones; `values` (NULL: not wanted) notes which
 * transaction put each last.
 */
static void overwrite(struct record_store *store, uint64_t *random, uint64_t first, uint64_t count,
		      uint64_t *values)
{
	uint8_t value[ABSORBED_BYTES] = { 0 };

	for (uint64_t n = first; n < first + count; n++) {
		uint64_t number = (*random = *random * UINT64_C(6364136223846793005) + 1) >> 33;
		struct record_key key = { .partition = 1,
					  .identifier = 0x10000 + number % ABSORBED_KEYS };

		put_le64(value, n);
		store->operations->begin(store, 0);
		assert_int_equal(store->operations->put(store, &key, 1, RECORD_ABSORB, value,
							sizeof(value), false),
				 0);
		store->operations->commit(store);
		if (values)
			values[number % ABSORBED_KEYS] = n;
	}
}

static void check_values(struct record_store *store, const uint64_t *values)
{
	for (uint64_t number = 0; number < ABSORBED_KEYS; number++) {
		struct record_key key = { .partition = 1, .identifier = 0x10000 + number };
		uint8_t value[ABSORBED_BYTES];
		struct record_info info;
		int result = store->operations->get(store, &key, RECORD_NEWEST, value,
						    sizeof(value), &info);

		assert_int_equal(result, values[number] ? 0 : -ENOENT);
		if (values[number])
			assert_int_equal(get_le64(value), values[number]);
	}
}

/*
 * A slot that a page has left holds nothing. Otherwise the map of a page that takes it after a
 * flush could reach the host's storage alone, and what the slot held before would shadow what was
 * flushed.
 */
static void test_what_a_compacted_page_has_left_does_not_come_back(void **state)
{
	(void)state;
	log_configure(discard_line, LOG_LEVEL_ERROR);
	for (uint64_t seed = 1; seed <= 64 * MIXTURES; seed++) {
		uint64_t values[ABSORBED_KEYS] = { 0 }, random = seed;
		struct record_store *store;
		struct host host;

		start_host(&host);
		store = open_store(&host);
		overwrite(store, &random, 1, ABSORBED_BEFORE + seed % 16, values);
		assert_int_equal(flush_now(store), 0);
		arm(&host, OPERATIONS_MAX / 2, seed);
		overwrite(store, &random, 1000, ABSORBED_BEHIND, NULL);
		fail_host(&host, store);
		store = open_store(&host);
		check_values(store, values);
		assert_int_equal(store->operations->close(store, true), 0);
		nand_close(host.nand);
	}
	log_configure(NULL, LOG_LEVEL_WARNING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_what_was_aborted_before_a_flush_does_not_come_back_with_pages_of_nvram_mixed),
		cmocka_unit_test(
			test_what_one_failure_took_back_does_not_come_back_in_the_place_of_later_puts),
		cmocka_unit_test(
			test_what_one_failure_took_back_stays_away_when_another_interrupts_recovery),
		cmocka_unit_test(
			test_a_flush_that_fails_promises_nothing_by_the_number_of_the_one_before),
		cmocka_unit_test(
			test_what_was_sealed_when_the_store_crashed_is_there_when_the_host_fails_then),
		cmocka_unit_test(
			test_a_group_that_was_complete_when_the_store_crashed_is_there_then),
		cmocka_unit_test(
			test_what_was_merged_when_the_store_crashed_is_there_when_the_host_fails_then),
		cmocka_unit_test(test_a_row_may_have_three_buffers_when_the_host_has_failed),
		cmocka_unit_test(test_what_a_compacted_page_has_left_does_not_come_back),
	};

	int failed = cmocka_run_group_tests_name("muninn, failures of the host", tests, NULL, NULL);

	value_bytes = SPANNED_BYTES;
	return failed + cmocka_run_group_tests_name("muninn, failures of the host, spanned pages",
						    tests, NULL, NULL);
}
