/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the power fails in, and what is left of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "common/bytes.h"
#include "engine/muninn/merge_run.h"
#include "engine/muninn/row.h"
#include "tests/engine/flush_now.h"
#include "tests/engine/lost_page.h"
#include "tests/engine/muninn/power_cut_load.h"
#include "tests/engine/muninn/spanned.h"
#include "tests/engine/small_flash.h"

enum { PUTS = 6, TRANSACTIONS_MORE = 6 };

/* The load finds every block written before. */
enum { STAGE_TRANSACTIONS = 800, STAGE_FREE_SEGMENTS = 60 };
enum { LONGER_TRANSACTIONS = 2400, LONGER_FREE_SEGMENTS = 40 };

uint32_t load_value_bytes = VALUE_BYTES;
bool load_has_larger;
uint32_t load_stage_space = 6;
enum record_class load_class_of_keys = RECORD_CLASS_DATA;
struct nand_geometry load_geometry = SMALL_FLASH(160);
struct engine_options load_options = { .muninn.rows = 1,
				       .muninn.segment_pages = 8,
				       .muninn.record_bytes = 256 };

/* Where the NVRAM is not what it was, the host has been started again. */
static const uint8_t first_boot[16] = { 1 }, second_boot[16] = { 2 };

/* ---- transactions ---- */

/* Transaction n puts these keys; all values say n. */
static uint32_t key_number(uint64_t transaction, uint32_t put)
{
	return (uint32_t)(hash_mix(transaction * PUTS + put) % KEYS);
}

static struct record_key key_of(uint32_t number)
{
	return (struct record_key){ .class = number / 8 % 2 ? load_class_of_keys
							    : RECORD_CLASS_DATA,
				    .partition = 1,
				    .identifier = 0x10000 + number / 8,
				    .piece = number % 8 };
}

/* Fills the value of a key; its bytes. */
static uint16_t fill_value(uint8_t value[LARGER_BYTES], uint64_t transaction, uint32_t number)
{
	uint16_t bytes = (uint16_t)load_value_bytes;

	/* Sometimes such a key is as small as others. */
	if (load_has_larger && number % LARGER_KEYS == 0 && transaction % 8)
		bytes = LARGER_BYTES - number % 2 * LARGER_BYTES / 4;
	memset(value, (int)(transaction * 7 + number), bytes);
	put_le64(value, transaction);
	return bytes;
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
	uint8_t value[LARGER_BYTES];
	int result = 0;

	store->operations->begin(store, 0);
	for (uint32_t put = 0; put < PUTS && result == 0; put++) {
		struct record_key key = key_of(key_number(transaction, put));
		uint16_t bytes = fill_value(value, transaction, key_number(transaction, put));

		result = store->operations->put(store, &key, 1, put % 2 ? RECORD_ABSORB : 0, value,
						bytes, false);
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

	if (engine_open_records(nand, &load_options, &store, &error))
		fail_msg("%s", error.text);
	return store;
}

/* Groups that have been completed, also those that are gone or have given their place to one. */
static uint64_t count_completed(const struct record_store *store)
{
	const struct muninn_store *muninn = (const struct muninn_store *)(const void *)store;
	uint64_t count = 0;

	for (uint32_t row = 0; row < muninn->geometry.rows; row++)
		count += row_index_growing(muninn->rows[row].index);
	return count;
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
	return load_options.muninn.index == INDEX_RIBBON ? RIBBON_MEMBERS : GROUP_SEGMENTS;
}

/* Longer segments have to be nearly full, so that the load seals any; and with larger records. */
static bool is_ready(const struct record_store *base)
{
	const struct muninn_store *store = (const struct muninn_store *)(const void *)base;
	const struct row *row = &store->rows[0];
	const struct buffer *buffer = row_has_newer(row) ? &row->newer : &row->buffer;
	uint64_t bytes = (uint64_t)store->geometry.segment_pages * store->geometry.page_bytes;

	return !load_has_larger || (buffer->is_mixed && buffer->used_bytes * 4 > bytes * 3);
}

void load_set_stage(struct load *load)
{
	struct load quiet = { 0 };
	struct record_statistics statistics = { 0 };
	struct error_text error = { "" };
	struct record_store *store;
	uint32_t transactions = load_has_larger ? LONGER_TRANSACTIONS : STAGE_TRANSACTIONS;
	uint32_t free_segments = load_has_larger ? LONGER_FREE_SEGMENTS : STAGE_FREE_SEGMENTS;

	load_options.records.boot_id = first_boot;
	if (engine_nvram_bytes(&load_geometry, &load_options, &load->nvram_bytes, &error) ||
	    nand_open_memory(&load_geometry, load->nvram_bytes, &load->stage, &error) ||
	    engine_format(load->stage, &load_options, &error))
		fail_msg("%s", error.text);
	store = open_store(load->stage);
	for (load->first = 1;
	     load->first <= transactions ||
	     growing_segments(store) != group_segments() - load_stage_space || !is_ready(store);
	     load->first++) {
		assert_int_equal(run_transaction(load->stage, &quiet, store, load->first), 0);
		apply(load->expected[0], load->first);
		store->operations->statistics(store, &statistics);
		if (statistics.segments_free < free_segments)
			assert_int_equal(merge(store), 0);
	}
	for (uint64_t n = 1; n <= TRANSACTIONS + 1; n++) {
		memcpy(load->expected[n], load->expected[n - 1], sizeof(load->expected[n]));
		apply(load->expected[n], load->first - 1 + n);
	}
	load->completed = count_completed(store);
	load->spanned = count_spanned_pages(store);
	assert_int_equal(store->operations->close(store, true), 0);
}

static void copy_mapping(struct nand_mapping *to, const struct nand_mapping *from)
{
	assert_int_equal(to->bytes, from->bytes);
	memcpy(to->at, from->at, from->bytes);
}

void load_prepare(struct nand *nand, void *context)
{
	struct load *load = context;

	load_options.records.boot_id = first_boot;
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

void load_run(struct nand *nand, void *context)
{
	struct load *load = context;
	struct error_text error;
	struct record_store *store;
	int result = 0;

	if (engine_open_records(nand, &load_options, &store, &error))
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
	uint8_t value[LARGER_BYTES], expected[LARGER_BYTES];
	uint16_t bytes;
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
	bytes = fill_value(expected, *transaction, number);
	return info.length == bytes && memcmp(value, expected, bytes) == 0 ? FOUND_RIGHT
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

void load_check(struct nand *nand, void *context, const struct nand_power_cut *cut)
{
	char text[NAND_POWER_CUT_TEXT] = "no cut";
	struct load *load = context;
	struct error_text error = { "" };
	struct record_store *store;
	uint64_t present = load->outcomes.present;

	if (cut)
		nand_power_cut_format(cut, text);
	if (cut && cut->nvram != NAND_CUT_NVRAM_KEPT)
		load_options.records.boot_id = second_boot;
	if (engine_open_records(nand, &load_options, &store, &error)) {
		load->outcomes.refused++;
		snprintf(load->refusal, sizeof(load->refusal), "%s", error.text);
		if (!cut || cut->nvram == NAND_CUT_NVRAM_KEPT)
			fail_msg("%s: %s", text, error.text);
		return;
	}
	if (load_geometry.spare_bytes == SPARE_BYTES_PARITY)
		lose_pages(nand, (struct muninn_store *)(void *)store);
	judge(load, store);
	/* Few of the longer segments are filled. */
	if (!cut)
		assert_true(load_has_larger || count_completed(store) > load->completed);
	if ((!cut || cut->nvram == NAND_CUT_NVRAM_KEPT) && load->outcomes.present != present + 1)
		fail_msg("%s: not everything that was committed is there, or not as it was", text);
	go_on(nand, load, store, text);
}
