/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The power of the flash fails at every operation of a load that seals segments, completes a table,
 * flushes, inside transactions too, and merges, and between the stores to NVRAM of every command;
 * the page in flight is absent, torn or garbage.
 *
 * With the NVRAM kept, which is what the store is made for, every committed transaction is there
 * and the one in flight is whole or absent. With the NVRAM lost, the store refuses to open. With
 * the host failed too, so that the NVRAM is back at its last syncs or a mixture of old and new
 * pages, the state is that of some transaction between the last flush and the last commit, whole.
 * No value is ever wrong.
 *
 * Runs for each index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/muninn/merge_run.h"
#include "engine/open.h"
#include "nand/rehearsal.h"
#include "tests/engine/flush_now.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/lost_page.h"
#include "tests/engine/muninn/flusher.h"
#include "tests/engine/muninn/spanned.h"
#include "tests/engine/sealers.h"
#include "tests/engine/small_flash.h"
#include "tests/repetition.h"

/* With room for parity. */
enum { SPARE_BYTES_PARITY = 160 };

enum { KEYS = 64, PUTS = 6, VALUE_BYTES = 200, TRANSACTIONS = 40, TRANSACTIONS_MORE = 6 };

/* Of each value. With 28 bytes of header two records nearly fill a page; 160 span pages. */
enum { SPANNED_BYTES = 160 };
static uint32_t value_bytes = VALUE_BYTES;

/* The load finds every block written before, and space for few segments in a growing table. */
enum { STAGE_TRANSACTIONS = 800, STAGE_FREE_SEGMENTS = 60 };
static uint32_t stage_space = 6;

static struct nand_geometry geometry = SMALL_FLASH(160);
static struct engine_options options = { .muninn.rows = 1,
					 .muninn.segment_pages = 8,
					 .muninn.record_bytes = 256 };

/* Where the NVRAM is not what it was, the host has been started again. */
static const uint8_t first_boot[16] = { 1 }, second_boot[16] = { 2 };

struct load {
	struct nand *stage; /* the device that every run begins with, closed after `first` - 1
			       transactions */
	uint64_t nvram_bytes;
	uint64_t first;
	uint64_t tables;
	uint32_t spanned;       /* pages */
	bool points;            /* let the power fail between stores to NVRAM, too */
	bool seals_beside;      /* full buffers are sealed behind the transactions ... */
	struct sealers sealers; /* ... by these */
	uint64_t most_at_once;  /* buffers, over all runs */
	bool flushes_beside;    /* flushes go on beside the transactions ... */
	struct flusher flusher; /* ... by this */
	uint64_t flushes;       /* that ended, over all runs */
	uint64_t runs;
	/* A merge in pieces beside the transactions then; over all runs those that freed. */
	enum { NOT_MERGING, MERGING_STEPPED, MERGING_RAN } merging;
	struct record_merge merge;
	uint64_t merges;

	uint64_t committed, flushed; /* last transactions of this run */
	uint64_t expected[TRANSACTIONS + 2]
			 [KEYS]; /* after transaction first - 1 + n: the last that put the key */

	struct {
		uint64_t programs, erases, syncs, points;
	} in_flight; /* what the power failed in, over all runs */
	struct {
		uint64_t present;  /* opened: all that was committed */
		uint64_t older;    /* opened: all that some earlier transaction left, not older than
				      the last flush */
		uint64_t refused;  /* did not open */
		uint64_t detected; /* opened; what is missing is answered by an error */
		uint64_t lost;     /* opened; silently without something that was flushed */
		uint64_t torn;     /* opened; no transaction ever left this */
		uint64_t wrong;    /* opened; data that were never put under the key */
	} outcomes;
	char refusal[512];
};

/* ---- transactions ---- */

/* Transaction n puts these keys; all values say n. */
static uint32_t key_number(uint64_t transaction, uint32_t put)
{
	return (uint32_t)(hash_mix(transaction * PUTS + put) % KEYS);
}

/* Of half of the keys. */
static enum record_class class_of_keys = RECORD_CLASS_DATA;

static struct record_key key_of(uint32_t number)
{
	return (struct record_key){ .class = number / 8 % 2 ? class_of_keys : RECORD_CLASS_DATA,
				    .partition = 1,
				    .identifier = 0x10000 + number / 8,
				    .piece = number % 8 };
}

static void fill_value(uint8_t value[VALUE_BYTES], uint64_t transaction, uint32_t number)
{
	memset(value, (int)(transaction * 7 + number), value_bytes);
	put_le64(value, transaction);
}

/* A flush between two puts of every fourth transaction promises what was committed before it. */
static int flush_amid(struct load *load, struct record_store *store, uint64_t transaction,
		      uint32_t put)
{
	int result;

	if (load->flushes_beside || transaction % 4 != 3 || put != PUTS / 2)
		return 0;
	result = flush_now(store);
	load->flushed = result ? load->flushed : load->committed;
	return result;
}

static int seal_some(struct nand *nand, struct load *load, struct record_store *store,
		     bool in_transaction)
{
	if (!load->seals_beside)
		return 0;
	sealers_act(&load->sealers, store, in_transaction);
	load->most_at_once = max_u64(load->most_at_once, load->sealers.most_at_once);
	return load->points ? nand_power_point(nand) : 0;
}

static int flush_some(struct nand *nand, struct load *load, struct record_store *store)
{
	uint64_t finished = load->flusher.finished;
	int result;

	if (!load->flushes_beside)
		return 0;
	result = flusher_act(&load->flusher, (struct muninn_store *)(void *)store, load->committed,
			     &load->flushed);
	load->flushes += load->flusher.finished - finished;
	if (result)
		return result;
	return load->points ? nand_power_point(nand) : 0;
}

/* As a thread that merges: a step in turn, then what takes long at some moment, and so on. */
static int merge_some(struct nand *nand, struct load *load, struct record_store *store,
		      bool in_transaction)
{
	struct merge_run *run = ((struct muninn_store *)(void *)store)->merge_run;
	const struct record_keep keep = { 0 };
	int result;

	if (!load->flushes_beside)
		return 0;
	run->fetches_all = load->runs % 2;
	if (load->merging == MERGING_STEPPED) {
		store->operations->merge_run(store);
		load->merging = MERGING_RAN;
	} else if (!in_transaction) {
		if (load->merging == NOT_MERGING)
			load->merge = (struct record_merge){ .live_permille_max = 950,
							     .frees_behind = load->runs / 2 % 2 };
		result = store->operations->merge_step(store, &keep, &load->merge);
		/* Many pieces in a row, so that it comes to an end. */
		for (int n = 0; n < 40 && result == 1 && run->stage < MERGE_FULL; n++) {
			store->operations->merge_run(store);
			result = store->operations->merge_step(store, &keep, &load->merge);
		}
		load->merging = result == 1 ? MERGING_STEPPED : NOT_MERGING;
		load->merges += result == 0;
		if (result < 0 && result != -EAGAIN)
			return result;
	}
	return load->points ? nand_power_point(nand) : 0;
}

/* 0, or the error that it was given up for. */
static int run_transaction(struct nand *nand, struct load *load, struct record_store *store,
			   uint64_t transaction)
{
	uint8_t value[VALUE_BYTES];
	int result = 0;

	store->operations->begin(store, 0);
	for (uint32_t put = 0; put < PUTS && result == 0; put++) {
		struct record_key key = key_of(key_number(transaction, put));

		fill_value(value, transaction, key_number(transaction, put));
		result = store->operations->put(store, &key, 1, put % 2 ? RECORD_ABSORB : 0, value,
						value_bytes, false);
		if (result == 0)
			result = flush_amid(load, store, transaction, put);
		if (result == 0)
			result = seal_some(nand, load, store, true);
		if (result == 0)
			result = flush_some(nand, load, store);
		if (result == 0 && put % 2)
			result = merge_some(nand, load, store, true);
		if (result == 0 && load->points)
			result = nand_power_point(nand);
	}
	if (result == 0)
		store->operations->commit(store);
	else
		store->operations->abort(store);
	return result;
}

static void apply(uint64_t expected[KEYS], uint64_t transaction)
{
	for (uint32_t put = 0; put < PUTS; put++)
		expected[key_number(transaction, put)] = transaction;
}

static int merge(struct record_store *store)
{
	const struct record_keep keep = { 0 }; /* the present is all */
	struct record_merge merge = { .live_permille_max = 950 };
	int result = store->operations->merge(store, &keep, &merge);

	return result == -EAGAIN ? 0 : result;
}

/* ---- the stage ---- */

static struct record_store *open_store(struct nand *nand)
{
	struct error_text error = { "" };
	struct record_store *store;

	if (engine_open_records(nand, &options, &store, &error))
		fail_msg("%s", error.text);
	return store;
}

/* Of the row whose table is next to be complete. */
static uint32_t growing_segments(struct record_store *base)
{
	struct muninn_store *store = (struct muninn_store *)(void *)base;
	uint64_t most = 0;

	for (uint32_t row = 0; row < store->geometry.hashed_rows; row++)
		most = max_u64(most, row_index_members(store->rows[row].index));
	return (uint32_t)most;
}

/* Of a full group, but for the first one of a row with a ribbon index. */
static uint32_t group_segments(void)
{
	return options.muninn.index == INDEX_RIBBON ? RIBBON_MEMBERS : GROUP_SEGMENTS;
}

static void set_stage(struct load *load)
{
	struct load quiet = { 0 };
	struct record_statistics statistics = { 0 };
	struct error_text error = { "" };
	struct record_store *store;

	if (engine_nvram_bytes(&geometry, &options, &load->nvram_bytes, &error) ||
	    nand_open_memory(&geometry, load->nvram_bytes, &load->stage, &error) ||
	    engine_format(load->stage, &options, &error))
		fail_msg("%s", error.text);
	store = open_store(load->stage);
	for (load->first = 1; load->first <= STAGE_TRANSACTIONS ||
			      growing_segments(store) != group_segments() - stage_space;
	     load->first++) {
		assert_int_equal(run_transaction(load->stage, &quiet, store, load->first), 0);
		apply(load->expected[0], load->first);
		store->operations->statistics(store, &statistics);
		if (statistics.segments_free < STAGE_FREE_SEGMENTS)
			assert_int_equal(merge(store), 0);
	}
	for (uint64_t n = 1; n <= TRANSACTIONS + 1; n++) {
		memcpy(load->expected[n], load->expected[n - 1], sizeof(load->expected[n]));
		apply(load->expected[n], load->first - 1 + n);
	}
	load->tables = statistics.tables;
	load->spanned = count_spanned_pages(store);
	assert_int_equal(store->operations->close(store, true), 0);
}

static void copy_mapping(struct nand_mapping *to, const struct nand_mapping *from)
{
	assert_int_equal(to->bytes, from->bytes);
	memcpy(to->at, from->at, from->bytes);
}

static void prepare(struct nand *nand, void *context)
{
	struct load *load = context;

	options.records.boot_id = first_boot;
	copy_mapping(&nand->pages, &load->stage->pages);
	copy_mapping(&nand->table, &load->stage->table);
	copy_mapping(&nand->nvram, &load->stage->nvram);
	memcpy(nand->uuid, load->stage->uuid, sizeof(nand->uuid));
	memcpy(nand->contents, load->stage->contents, sizeof(nand->contents));
	load->committed = load->flushed = load->first - 1;
	load->sealers = (struct sealers){ .random = 1 };
	/* Another schedule in each run. */
	load->flusher = (struct flusher){ .random = hash_mix(++load->runs) };
	load->merging = NOT_MERGING;
}

/* ---- the load ---- */

/* A commit is a store to NVRAM, which does not notice that the power is off. */
static bool is_off(struct nand *nand)
{
	struct nand_power_status status;

	nand_power_status(nand, &status);
	return status.off;
}

static void note_in_flight(struct nand *nand, struct load *load)
{
	struct nand_power_status status;

	nand_power_status(nand, &status);
	load->in_flight.programs += strncmp(status.in_flight, "program", 7) == 0;
	load->in_flight.erases += strncmp(status.in_flight, "erase", 5) == 0;
	load->in_flight.syncs += strncmp(status.in_flight, "sync", 4) == 0;
	load->in_flight.points += strncmp(status.in_flight, "scenario", 8) == 0;
}

static void run(struct nand *nand, void *context)
{
	struct load *load = context;
	struct error_text error;
	struct record_store *store;
	int result = 0;

	if (engine_open_records(nand, &options, &store, &error))
		return;
	for (uint64_t n = 0; n < TRANSACTIONS && result == 0; n++) {
		uint64_t transaction = load->first + n;

		result = run_transaction(nand, load, store, transaction);
		if (result || is_off(nand))
			break;
		load->committed = transaction;
		if (n % 5 == 4 && !load->flushes_beside) {
			result = flush_now(store);
			load->flushed = result ? load->flushed : transaction;
		}
		if (result == 0)
			result = seal_some(nand, load, store, false);
		if (result == 0)
			result = flush_some(nand, load, store);
		if (result == 0)
			result = merge_some(nand, load, store, false);
		if (result == 0 && n % 7 == 6 && !load->flushes_beside)
			result = merge(store);
	}
	store->operations->close(store, false);
	note_in_flight(nand, load);
}

/* ---- what is left ---- */

enum found { FOUND_RIGHT, FOUND_ERROR, FOUND_WRONG };

/* The transaction that the key was last put by, 0 when it is absent. */
static enum found find(struct record_store *store, uint32_t number, uint64_t *transaction)
{
	uint8_t value[VALUE_BYTES], expected[VALUE_BYTES];
	struct record_key key = key_of(number);
	struct record_info info;
	int result =
		store->operations->get(store, &key, RECORD_NEWEST, value, sizeof(value), &info);

	*transaction = 0;
	if (result == -ENOENT)
		return FOUND_RIGHT;
	if (result)
		return FOUND_ERROR;
	*transaction = get_le64(value);
	fill_value(expected, *transaction, number);
	return info.length == value_bytes && memcmp(value, expected, value_bytes) == 0
		       ? FOUND_RIGHT
		       : FOUND_WRONG;
}

/* What is there of every key. False: not everything could be read. */
static bool find_all(struct record_store *store, uint64_t found[KEYS], bool *wrong)
{
	bool readable = true;

	for (uint32_t number = 0; number < KEYS; number++) {
		enum found what = find(store, number, &found[number]);

		readable = readable && what != FOUND_ERROR;
		*wrong = *wrong || what == FOUND_WRONG;
	}
	return readable;
}

/* The transaction that left exactly this; UINT64_MAX: none did. */
static uint64_t transaction_of(const struct load *load, const uint64_t found[KEYS])
{
	for (uint64_t n = TRANSACTIONS + 2; n-- > 0;)
		if (memcmp(found, load->expected[n], sizeof(load->expected[n])) == 0)
			return load->first - 1 + n;
	return UINT64_MAX;
}

static bool is_older_than(const uint64_t found[KEYS], const uint64_t expected[KEYS])
{
	for (uint32_t number = 0; number < KEYS; number++)
		if (found[number] < expected[number])
			return true;
	return false;
}

static void judge(struct load *load, struct record_store *store)
{
	bool wrong = false;
	uint64_t found[KEYS];
	bool readable = find_all(store, found, &wrong);
	uint64_t transaction = transaction_of(load, found);

	if (wrong)
		load->outcomes.wrong++;
	else if (!readable)
		load->outcomes.detected++;
	else if (is_older_than(found, load->expected[load->flushed - (load->first - 1)]))
		load->outcomes.lost++;
	else if (transaction == UINT64_MAX)
		load->outcomes.torn++;
	else if (transaction >= load->committed)
		load->outcomes.present++;
	else
		load->outcomes.older++;
}

/* One of each segment that counts: parity gives it back. */
static void lose_pages(struct nand *nand, const struct muninn_store *store)
{
	for (uint32_t segment = 0; segment < store->geometry.segments; segment++)
		if (store->segment_rows[segment] != NO_ROW)
			lose_page(nand, segment_page(&store->geometry, segment) + segment % 8);
}

/* Goes on with transactions, a merge and a crash: nothing that the cut left is in the way. */
static void go_on(struct nand *nand, struct load *load, struct record_store *store, const char *cut)
{
	struct load quiet = { 0 };
	uint64_t expected[KEYS], found, transaction;
	bool wrong = false;

	find_all(store, expected, &wrong);
	transaction = transaction_of(load, expected);
	for (int more = 0; more < TRANSACTIONS_MORE; more++) {
		int result = run_transaction(nand, &quiet, store, ++transaction);

		if (result || (more == TRANSACTIONS_MORE / 2 && merge(store)))
			fail_msg("%s: the store cannot go on (%d)", cut, result);
		apply(expected, transaction);
	}
	store->operations->close(store, false);
	store = open_store(nand);
	for (uint32_t number = 0; number < KEYS; number++)
		if (find(store, number, &found) != FOUND_RIGHT || found != expected[number])
			fail_msg("%s: key %u is of transaction %llu, not %llu, some transactions "
				 "later",
				 cut, number, (unsigned long long)found,
				 (unsigned long long)expected[number]);
	store->operations->close(store, false);
}

static void check(struct nand *nand, void *context, const struct nand_power_cut *cut)
{
	char text[NAND_POWER_CUT_TEXT] = "no cut";
	struct load *load = context;
	struct error_text error = { "" };
	struct record_store *store;
	uint64_t present = load->outcomes.present;

	if (cut)
		nand_power_cut_format(cut, text);
	if (cut && cut->nvram != NAND_CUT_NVRAM_KEPT)
		options.records.boot_id = second_boot;
	if (engine_open_records(nand, &options, &store, &error)) {
		load->outcomes.refused++;
		snprintf(load->refusal, sizeof(load->refusal), "%s", error.text);
		if (!cut || cut->nvram == NAND_CUT_NVRAM_KEPT)
			fail_msg("%s: %s", text, error.text);
		return;
	}
	if (geometry.spare_bytes == SPARE_BYTES_PARITY)
		lose_pages(nand, (struct muninn_store *)(void *)store);
	judge(load, store);
	if (!cut) {
		struct record_statistics statistics = { 0 };

		store->operations->statistics(store, &statistics);
		assert_true(statistics.tables > load->tables);
	}
	if ((!cut || cut->nvram == NAND_CUT_NVRAM_KEPT) && load->outcomes.present != present + 1)
		fail_msg("%s: not everything that was committed is there, or not as it was", text);
	go_on(nand, load, store, text);
}

/* ---- the rehearsals ---- */

static void discard_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* As threads would do it: see sealers.h. */
static bool seals_beside, flushes_beside;

static struct load *rehearse(enum nand_cut_nvram nvram, size_t ends_first, size_t ends_count,
			     bool points, uint64_t every)
{
	struct nand_power_cut ends[NAND_REHEARSAL_ENDS];
	struct load *load = calloc(1, sizeof(*load));
	struct error_text error = { "" };
	uint64_t runs = 0;

	assert_non_null(load);
	log_configure(discard_line, LOG_LEVEL_ERROR);
	options.records.boot_id = first_boot;
	set_stage(load);
	assert_int_equal(load->spanned > 0, value_bytes == SPANNED_BYTES);
	load->points = points;
	load->seals_beside = seals_beside;
	load->flushes_beside = flushes_beside;
	nand_rehearsal_ends(&geometry, nvram, ends);
	struct nand_rehearsal rehearsal = {
		.geometry = &geometry,
		.nvram_bytes = load->nvram_bytes,
		.context = load,
		.prepare = prepare,
		.run = run,
		.check = check,
		.ends = ends + ends_first,
		.ends_count = ends_count,
		/* Few cuts meet each of the parts that flushes beside the load have. */
		.stride = flushes_beside ? every : cut_stride(every),
	};

	if (nand_rehearse(&rehearsal, &runs, &error))
		fail_msg("%s", error.text);
	print_message("%llu runs: %llu all present, %llu older, %llu refused, %llu damage "
		      "reported, %llu flushed data"
		      " lost, %llu torn, %llu wrong\n",
		      (unsigned long long)runs, (unsigned long long)load->outcomes.present,
		      (unsigned long long)load->outcomes.older,
		      (unsigned long long)load->outcomes.refused,
		      (unsigned long long)load->outcomes.detected,
		      (unsigned long long)load->outcomes.lost,
		      (unsigned long long)load->outcomes.torn,
		      (unsigned long long)load->outcomes.wrong);
	print_message("in flight: %llu programs, %llu erases, %llu syncs; between stores to NVRAM: "
		      "%llu\n",
		      (unsigned long long)load->in_flight.programs,
		      (unsigned long long)load->in_flight.erases,
		      (unsigned long long)load->in_flight.syncs,
		      (unsigned long long)load->in_flight.points);
	assert_true(load->in_flight.programs > 0 && load->in_flight.erases > 0 &&
		    load->in_flight.syncs > 0);
	if (load->refusal[0])
		print_message("a refusal: %s\n", load->refusal);
	nand_abandon(load->stage);
	log_configure(NULL, LOG_LEVEL_WARNING);
	return load;
}

static void test_nvram_kept_cut_between_any_two_stores_of_a_command(void **state)
{
	(void)state;
	free(rehearse(NAND_CUT_NVRAM_KEPT, 0, 1, true, 1));
}

static void test_with_parity_a_page_of_each_segment_is_lost_besides(void **state)
{
	const uint32_t spare_bytes = geometry.spare_bytes;

	(void)state;
	geometry.spare_bytes = SPARE_BYTES_PARITY;
	options.muninn.parity = 1;
	free(rehearse(NAND_CUT_NVRAM_KEPT, 0, NAND_REHEARSAL_ENDS, false, 1));
	/* Segments that are programmed in parts. */
	class_of_keys = RECORD_CLASS_HISTORY;
	free(rehearse(NAND_CUT_NVRAM_KEPT, 0, 1, false, 2));
	class_of_keys = RECORD_CLASS_DATA;
	options.muninn.parity = MUNINN_PARITY_NONE;
	geometry.spare_bytes = spare_bytes;
}

static void test_nvram_kept_with_the_page_in_flight_torn_or_garbage(void **state)
{
	(void)state;
	free(rehearse(NAND_CUT_NVRAM_KEPT, 1, NAND_REHEARSAL_ENDS - 1, false, 1));
}

/* History's row has two buffers most of the time, and segments that are programmed in parts. */
static void test_nvram_kept_with_records_of_history_in_a_row_of_two_buffers(void **state)
{
	(void)state;
	class_of_keys = RECORD_CLASS_HISTORY;
	free(rehearse(NAND_CUT_NVRAM_KEPT, 0, 1, true, 1));
	class_of_keys = RECORD_CLASS_DATA;
}

static void seal_beside(void)
{
	seals_beside = true;
	options.muninn.rows = 4;
	stage_space = 1;
}

static void seal_at_once(void)
{
	seals_beside = false;
	options.muninn.rows = 1;
	stage_space = 6;
}

static void test_nvram_kept_while_several_full_buffers_are_sealed_behind_commands(void **state)
{
	struct load *load;

	(void)state;
	seal_beside();
	load = rehearse(NAND_CUT_NVRAM_KEPT, 0, 1, true, 1);
	seal_at_once();
	assert_in_range(load->most_at_once, 2, SEALERS);
	free(load);
}

static void test_nvram_lost_is_refused_with_a_clear_message(void **state)
{
	struct load *load = rehearse(NAND_CUT_NVRAM_LOST, 0, 2, false, 5);

	(void)state;
	assert_int_equal(load->outcomes.present, 2); /* the runs without a cut */
	assert_true(load->outcomes.refused > 0);
	assert_int_equal(load->outcomes.older + load->outcomes.lost + load->outcomes.detected, 0);
	assert_int_equal(load->outcomes.torn + load->outcomes.wrong, 0);
	assert_non_null(strstr(load->refusal, "recover_without_nvram"));
	free(load);
}

/*
 * The state is that of a flush or of a later transaction, whole: nothing flushed is missing,
 * nothing else is there in part.
 */
static void expect_whole_transactions(const struct load *load)
{
	assert_true(load->outcomes.older > 0);
	assert_int_equal(load->outcomes.torn, 0);
	assert_int_equal(load->outcomes.wrong, 0);
	assert_int_equal(load->outcomes.lost, 0);
	assert_int_equal(load->outcomes.detected, 0);
	assert_int_equal(load->outcomes.refused, 0);
}

static void test_the_host_fails_and_its_nvram_is_as_last_flushed(void **state)
{
	struct load *load = rehearse(NAND_CUT_NVRAM_FLUSHED, 0, 3, true, 1);

	(void)state;
	expect_whole_transactions(load);
	free(load);
}

static void test_the_host_fails_and_its_nvram_is_a_mixture_of_old_and_new_pages(void **state)
{
	struct load *load = rehearse(NAND_CUT_NVRAM_MIXED, 0, 3, true, 1);

	(void)state;
	expect_whole_transactions(load);
	free(load);
}

static void test_the_host_fails_with_records_of_history_in_a_row_of_two_buffers(void **state)
{
	static const enum nand_cut_nvram nvram[] = { NAND_CUT_NVRAM_FLUSHED, NAND_CUT_NVRAM_MIXED };

	(void)state;
	class_of_keys = RECORD_CLASS_HISTORY;
	for (size_t i = 0; i < 2; i++) {
		struct load *load = rehearse(nvram[i], 0, 3, true, 2);

		expect_whole_transactions(load);
		free(load);
	}
	class_of_keys = RECORD_CLASS_DATA;
}

static void test_the_host_fails_while_several_full_buffers_are_sealed_behind_commands(void **state)
{
	static const enum nand_cut_nvram nvram[] = { NAND_CUT_NVRAM_FLUSHED, NAND_CUT_NVRAM_MIXED };

	(void)state;
	seal_beside();
	for (size_t i = 0; i < 2; i++) {
		struct load *load = rehearse(nvram[i], 0, 3, true, 2);

		expect_whole_transactions(load);
		assert_in_range(load->most_at_once, 2, SEALERS);
		free(load);
	}
	seal_at_once();
}

/*
 * The number of a flush is taken between any two puts, and the NVRAM gets to the host's storage in
 * parts, while puts, seals and a merge in pieces go on.
 */
static void test_the_host_fails_while_a_flush_goes_on_beside_commands(void **state)
{
	static const enum nand_cut_nvram nvram[] = { NAND_CUT_NVRAM_FLUSHED, NAND_CUT_NVRAM_MIXED };

	(void)state;
	flushes_beside = true;
	for (size_t i = 0; i < 4; i++) {
		struct load *load;

		if (i >= 2)
			seal_beside();
		load = rehearse(nvram[i % 2], 0, 3, true, i < 2 ? 3 : 4);
		seal_at_once();
		print_message("%llu flushes ended, %llu merges\n",
			      (unsigned long long)load->flushes, (unsigned long long)load->merges);
		assert_true(load->flushes > 1000 && load->merges > 500);
		expect_whole_transactions(load);
		free(load);
	}
	flushes_beside = false;
}

/*
 * With consent the store opens all the same. What was in the buffers is gone, so commands are there
 * in part, or not at all; no value is wrong, and nothing is damaged.
 */
static void test_nvram_lost_is_recovered_from_flash_with_consent(void **state)
{
	struct load *load;

	(void)state;
	options.records.recover_without_nvram = true;
	load = rehearse(NAND_CUT_NVRAM_LOST, 0, 3, false, 2);
	options.records.recover_without_nvram = false;
	assert_int_equal(load->outcomes.refused, 0);
	assert_int_equal(load->outcomes.detected + load->outcomes.wrong, 0);
	free(load);
}

static void test_the_same_with_records_that_span_pages(void **state)
{
	const uint32_t space = stage_space;

	if (options.muninn.index != INDEX_RIBBON)
		skip();
	value_bytes = SPANNED_BYTES;
	stage_space = 3;
	test_nvram_kept_cut_between_any_two_stores_of_a_command(state);
	test_nvram_kept_with_the_page_in_flight_torn_or_garbage(state);
	test_with_parity_a_page_of_each_segment_is_lost_besides(state);
	test_nvram_lost_is_recovered_from_flash_with_consent(state);
	test_the_host_fails_and_its_nvram_is_as_last_flushed(state);
	test_the_host_fails_and_its_nvram_is_a_mixture_of_old_and_new_pages(state);
	test_nvram_kept_while_several_full_buffers_are_sealed_behind_commands(state);
	test_the_host_fails_while_several_full_buffers_are_sealed_behind_commands(state);
	stage_space = space;
	value_bytes = VALUE_BYTES;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nvram_kept_cut_between_any_two_stores_of_a_command),
		cmocka_unit_test(test_nvram_kept_with_the_page_in_flight_torn_or_garbage),
		cmocka_unit_test(test_with_parity_a_page_of_each_segment_is_lost_besides),
		cmocka_unit_test(test_nvram_kept_with_records_of_history_in_a_row_of_two_buffers),
		cmocka_unit_test(
			test_nvram_kept_while_several_full_buffers_are_sealed_behind_commands),
		cmocka_unit_test(test_nvram_lost_is_refused_with_a_clear_message),
		cmocka_unit_test(test_nvram_lost_is_recovered_from_flash_with_consent),
		cmocka_unit_test(test_the_host_fails_and_its_nvram_is_as_last_flushed),
		cmocka_unit_test(
			test_the_host_fails_and_its_nvram_is_a_mixture_of_old_and_new_pages),
		cmocka_unit_test(
			test_the_host_fails_with_records_of_history_in_a_row_of_two_buffers),
		cmocka_unit_test(
			test_the_host_fails_while_several_full_buffers_are_sealed_behind_commands),
		cmocka_unit_test(test_the_host_fails_while_a_flush_goes_on_beside_commands),
		cmocka_unit_test(test_the_same_with_records_that_span_pages),
	};

	options.muninn.index = index_under_test();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
