/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The record store's operations: transactions, putting, statistics. */
#include "engine/muninn/operations.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/muninn/aborted.h"
#include "engine/muninn/check.h"
#include "engine/muninn/choose.h"
#include "engine/muninn/emptied.h"
#include "engine/muninn/flush.h"
#include "engine/muninn/lookup.h"
#include "engine/muninn/memory.h"
#include "engine/muninn/mend.h"
#include "engine/muninn/merge.h"
#include "engine/muninn/merge_run.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/outage.h"
#include "engine/muninn/place.h"
#include "engine/muninn/renew.h"
#include "engine/muninn/repair.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "engine/muninn/sample.h"
#include "engine/muninn/scrub.h"
#include "engine/muninn/seal.h"
#include "engine/muninn/settle.h"
#include "engine/muninn/void.h"

static struct muninn_store *store_of(struct record_store *base)
{
	return (struct muninn_store *)(void *)base;
}

/* ---- transactions ---- */

static void muninn_set_hidden(struct record_store *base, const struct record_hidden *hidden)
{
	store_of(base)->hidden = hidden;
}

static uint64_t muninn_begin(struct record_store *base, uint64_t at_least)
{
	struct muninn_store *store = store_of(base);

	assert(store->sequence == 0 && at_least <= store->committed + RECORD_GAP_MAX);
	store->sequence = max_u64(store->committed + 1, at_least);
	assert(store->sequence < RECORD_NEWEST);
	store->sealed_running = false;
	return store->sequence;
}

static void end_transaction(struct muninn_store *store)
{
	rows_end_touched(store);
	store->sequence = 0;
}

static void muninn_commit(struct record_store *base)
{
	struct muninn_store *store = store_of(base);
	bool formats = store->void_before == store->sequence;

	assert(store->sequence > store->committed);
	state_write(store, STATE_COMMITTED_AT, store->sequence);
	store->committed = store->sequence;
	end_transaction(store);
	if (formats)
		settle_format(store); /* what fails is logged, and tried again */
}

static void muninn_abort(struct record_store *base)
{
	struct muninn_store *store = store_of(base);
	uint64_t sequence = store->sequence;

	assert(sequence > store->committed);
	void_take_back(store);
	for (uint32_t n = 0; n < store->touched_count; n++)
		row_cut(store, store->touched[n], store->committed);
	if (store->sealed_running) {
		aborted_skip_to(store, sequence);
		roots_write(store); /* what is on flash alone does not tell */
	}
	end_transaction(store);
}

static int muninn_begin_format(struct record_store *base, uint64_t at_least, uint64_t *sequence)
{
	struct muninn_store *store = store_of(base);
	int result = settle_format(store);

	if (result)
		return result;
	*sequence = muninn_begin(base, at_least);
	void_begin(store, *sequence);
	return 0;
}

/* ---- putting ---- */

static int muninn_put(struct record_store *base, const struct record_key *key, uint64_t epoch,
		      unsigned flags, const void *value, uint32_t length, enum record_room room)
{
	struct muninn_store *store = store_of(base);
	struct new_record record = {
		.header = {
			.key = *key,
			.sequence = store->sequence,
			.epoch = epoch,
			.length = (uint16_t)length,
			.flags = (uint8_t)flags,
		},
		.value = value,
	};

	assert(epoch <= store->sequence && key->class < RECORD_CLASSES);
	assert(store->sequence != 0 && length <= store->geometry.page_bytes &&
	       flags < RECORD_MOVED);
	int result = place_record(store, &record, room);

	if (result == 0) {
		count_up(&store->counters.records_put, 1);
		count_up(&store->counters.record_bytes_put, RECORD_HEADER_BYTES + length);
	}
	return result;
}

/* ---- getting ---- */

static int muninn_get(struct record_store *base, const struct record_key *key, uint64_t bound,
		      void *value, uint32_t capacity, struct record_info *info)
{
	struct muninn_store *store = store_of(base);
	struct visibility visibility = store_visibility(store, bound);
	/* A merge has the store alone, so it is the one that asks. */
	struct merge_run *run = store->merge_run->is_asking ? store->merge_run : NULL;
	int result = lookup_get(store, key, &visibility, run, value, capacity, info);

	count_up(&store->counters.records_got, result == 0);
	count_up(&store->counters.records_absent, result == -ENOENT);
	return result;
}

/* Each piece is looked up by its own key, but their pages mostly follow one another. */
static void muninn_get_run(struct record_store *base, const struct record_key *key, uint32_t count,
			   uint64_t bound, uint8_t *values, uint32_t capacity,
			   struct record_found *found)
{
	struct muninn_store *store = store_of(base);
	struct visibility visibility = store_visibility(store, bound);
	struct record_key piece = *key;
	uint32_t got = 0, absent = 0;

	if (capacity < store->geometry.page_bytes) {
		for (uint32_t n = 0; n < count; n++, piece.piece++)
			found[n].result = muninn_get(base, &piece, bound,
						     values + (size_t)n * capacity, capacity,
						     &found[n].info);
		return;
	}
	lookup_get_run(store, key, count, &visibility, values, capacity, found);
	for (uint32_t n = 0; n < count; n++) {
		got += found[n].result == 0;
		absent += found[n].result == -ENOENT;
	}
	count_up(&store->counters.records_got, got);
	count_up(&store->counters.records_absent, absent);
}

static int muninn_list(struct record_store *base, const struct record_key *key, uint64_t bound,
		       uint64_t below, struct record_info *infos, uint32_t max)
{
	struct muninn_store *store = store_of(base);
	struct visibility visibility = store_visibility(store, bound);

	visibility.below = below;
	return lookup_list(store, key, &visibility, infos, max);
}

static int muninn_has_between(struct record_store *base, const struct record_key *key,
			      uint64_t after, uint64_t bound)
{
	return lookup_has_between(store_of(base), key, after, bound, NULL);
}

/* ---- the rest ---- */

static void muninn_catch_up(struct record_store *base, uint32_t pages)
{
	seal_catch_up(store_of(base), pages);
}

/* The number behind the last row's: what a merge has emptied. Writers may wait for that. */
static bool is_of_merge(const struct muninn_store *store, int work)
{
	return work == (int)store->geometry.rows;
}

static int muninn_seal_take(struct record_store *base)
{
	struct muninn_store *store = store_of(base);

	return emptied_take(store) ? (int)store->geometry.rows : seal_take(store);
}

static void muninn_seal_run(struct record_store *base, int work)
{
	struct muninn_store *store = store_of(base);

	if (is_of_merge(store, work))
		emptied_run(store);
	else
		seal_run(store, (uint32_t)work);
}

static int muninn_seal_step(struct record_store *base, int work)
{
	struct muninn_store *store = store_of(base);

	return is_of_merge(store, work) ? emptied_step(store) : seal_step(store, (uint32_t)work);
}

static void muninn_seal_state(struct record_store *base, struct record_sealing *sealing)
{
	const struct muninn_store *store = store_of(base);
	uint32_t history = history_row(&store->geometry);

	*sealing = (struct record_sealing){
		.waiting = store->waiting + row_has_newer(&store->rows[history]) +
			   emptied_are_under_way(store),
		.held_up = seal_is_held_up(store) && !emptied_wait(store),
		.pressed = rows_are_pressed(store),
	};
}

static uint64_t muninn_flush_begin(struct record_store *base)
{
	return flush_begin(store_of(base));
}

static int muninn_flush(struct record_store *base, uint64_t number)
{
	return flush_end(store_of(base), number);
}

static void muninn_copy_nvram(struct record_store *base, uint8_t *to)
{
	flush_copy(store_of(base), to);
}

static uint64_t muninn_memo(struct record_store *base)
{
	const uint8_t *at = store_of(base)->nvram + NVRAM_MEMO_AT;

	return le64toh(__atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_ACQUIRE));
}

static void muninn_set_memo(struct record_store *base, uint64_t memo)
{
	struct muninn_store *store = store_of(base);
	uint8_t *pair = store_sum(store, SUM_MEMO);

	/* Not two at a time: the sum would be the other one's. */
	pthread_mutex_lock(&store->seal_lock);
	sum_begin_whole(pair, sum_word(0, memo));
	nvram_store64(store->nvram + NVRAM_MEMO_AT, memo);
	sum_end(pair);
	pthread_mutex_unlock(&store->seal_lock);
}

static int muninn_sync_memo(struct record_store *base)
{
	return nand_nvram_sync(store_of(base)->nand, 0, NVRAM_PAGE);
}

/*
 * The mark at which merging begins. It leaves space to seal every row before ordinary puts are
 * refused.
 */
static uint32_t merging_mark(const struct muninn_store *store)
{
	const struct muninn_geometry *geometry = &store->geometry;

	return geometry->room_kept[RECORD_ROOM_WRITE] + geometry->merging_slack + 4;
}

static uint32_t muninn_shortage(struct record_store *base, enum record_room room)
{
	const struct muninn_store *store = store_of(base);
	const struct muninn_geometry *geometry = &store->geometry;
	uint32_t mark = room == RECORD_ROOM_WRITE ? merging_mark(store) : geometry->room_kept[room];

	return store->space.count < mark ? mark - store->space.count : 0;
}

static uint32_t muninn_merge_calls_max(struct record_store *base)
{
	return choose_calls_max(store_of(base));
}

/* What lost pages and is written anew comes first. 1: none has, or a merge goes on. */
static int renew_before(struct muninn_store *store, const struct record_merge *merge)
{
	if (merge->choice != RECORD_MERGE_MENDED || store->merge_run->stage != MERGE_IDLE)
		return 1;
	emptied_finish(store);
	return renew_next(store);
}

/* What waits to be written anew holds up nothing else: it may wait for the space that others free.
 */
static bool has_ended(int renewed)
{
	return renewed == 0 || renewed == -EBADMSG;
}

static int merged(int renewed, int result)
{
	return renewed < 0 && result == -EAGAIN ? renewed : result;
}

static int muninn_merge(struct record_store *base, const struct record_keep *keep,
			struct record_merge *merge)
{
	struct muninn_store *store = store_of(base);

	assert(store->sequence == 0);
	int renewed = renew_before(store, merge);

	return has_ended(renewed) ? renewed : merged(renewed, merge_segments(store, keep, merge));
}

static int muninn_merge_step(struct record_store *base, const struct record_keep *keep,
			     struct record_merge *merge)
{
	struct muninn_store *store = store_of(base);

	assert(store->sequence == 0);
	int renewed = renew_before(store, merge);

	return has_ended(renewed) ? renewed : merged(renewed, merge_piece(store, keep, merge));
}

static void muninn_merge_run(struct record_store *base)
{
	merge_run_beside(store_of(base));
}

static void muninn_scrub(struct record_store *base, struct record_scrub *scrub)
{
	scrub_some(store_of(base), scrub);
}

/* So many of all segments stay as they are, because they are written again before others. */
#define KEPT_PART 8

static bool muninn_trim(struct record_store *base, enum record_trim step)
{
	struct muninn_store *store = store_of(base);
	/* The one that is being emptied must not make a merge begin, or a put fail. */
	uint32_t kept =
		(uint32_t)max_u64(store->geometry.segments / KEPT_PART, merging_mark(store));

	switch (step) {
	case RECORD_TRIM_LOOK:
		return space_trim_look(&store->space, kept);
	case RECORD_TRIM_TAKE:
		return space_trim_take(&store->space, kept);
	case RECORD_TRIM_EMPTY:
		space_trim_empty(&store->space);
		return true;
	default:
		space_trim_put_back(&store->space);
		return true;
	}
}

static int muninn_sample(struct record_store *base, struct record_sample *sample)
{
	return sample_page(store_of(base), sample);
}

static void muninn_map(struct record_store *base, struct record_stretch *stretches, uint32_t count)
{
	sample_map(store_of(base), stretches, count);
}

static uint32_t muninn_damaged(struct record_store *base)
{
	return repair_waiting(store_of(base));
}

static void muninn_statistics(struct record_store *base, struct record_statistics *statistics)
{
	struct muninn_store *store = store_of(base);
	const struct muninn_geometry *geometry = &store->geometry;
	uint64_t segment_bytes = (uint64_t)geometry->segment_pages * geometry->page_bytes;
	struct index_figures index;
	/* What is only taken counts with its buffer. */
	uint32_t free_segments = space_free(&store->space);

	for (uint32_t number = 0; number < geometry->rows; number++)
		free_segments += store->rows[number].sealing.segment != NO_SEGMENT;

	index_count(store->index, &index);
	statistics->internal_versions = index.internal_versions;
	statistics->segments = geometry->segments;
	statistics->segments_free = free_segments;
	statistics->segments_sealed = index.segments;
	statistics->segments_metadata =
		geometry->segments - free_segments - store->space.retired - index.segments;
	statistics->index = geometry->index;
	statistics->rows = geometry->hashed_rows;
	statistics->tables = index.groups;
	statistics->used_bytes = min_u64(
		store->base.limits.capacity_bytes,
		(geometry->segments - geometry->root_segments - free_segments) * segment_bytes +
			rows_buffered_bytes(store));
	statistics->records_put = __atomic_load_n(&store->counters.records_put, __ATOMIC_RELAXED);
	statistics->records_got = __atomic_load_n(&store->counters.records_got, __ATOMIC_RELAXED);
	statistics->records_absent =
		__atomic_load_n(&store->counters.records_absent, __ATOMIC_RELAXED);
	statistics->record_bytes_put =
		__atomic_load_n(&store->counters.record_bytes_put, __ATOMIC_RELAXED);
	statistics->user_page_reads =
		__atomic_load_n(&store->counters.page_reads, __ATOMIC_RELAXED);
	statistics->false_positive_reads =
		__atomic_load_n(&store->counters.false_positive_reads, __ATOMIC_RELAXED);
	repair_count(store, &statistics->pages_repaired, &statistics->pages_lost);
	statistics->index_bytes = index.bytes + rows_index_bytes(store) + store->older_bytes;
	memory_count(store, statistics->memory);
	statistics->table_cache_bytes = index.cache_memory;
	statistics->table_reads = index.reads;
	statistics->table_page_reads = index.reads_missed;
	statistics->buffer_bytes =
		(uint64_t)geometry->buffers *
		((uint64_t)buffer_slots(geometry) * geometry->page_bytes +
		 2 * (uint64_t)geometry->segment_pages * sizeof(*store->rows[0].buffer.absorbable));
	statistics->sealed_records =
		__atomic_load_n(&store->counters.sealed_records, __ATOMIC_RELAXED);
	statistics->sealed_record_bytes =
		__atomic_load_n(&store->counters.sealed_record_bytes, __ATOMIC_RELAXED);
	statistics->committed_sequence = store->committed;
	statistics->open_microseconds = store->open_microseconds;
}

static int muninn_close(struct record_store *base, bool stable)
{
	struct muninn_store *store = store_of(base);
	int result = 0;

	if (stable && emptied_are_under_way(store))
		emptied_finish(store);
	if (stable)
		result = flush_all(store);
	if (stable && !result)
		roots_finish(store);
	if (stable && !result && store->root_outdated)
		roots_write(store);
	if (stable && !result)
		outage_note_clean(store);
	store_free(store);
	return result;
}

const struct record_store_operations muninn_operations = {
	.set_hidden = muninn_set_hidden,
	.begin = muninn_begin,
	.put = muninn_put,
	.commit = muninn_commit,
	.abort = muninn_abort,
	.get = muninn_get,
	.get_run = muninn_get_run,
	.list = muninn_list,
	.has_between = muninn_has_between,
	.catch_up = muninn_catch_up,
	.seal_take = muninn_seal_take,
	.seal_run = muninn_seal_run,
	.seal_step = muninn_seal_step,
	.seal_state = muninn_seal_state,
	.flush_begin = muninn_flush_begin,
	.flush = muninn_flush,
	.copy_nvram = muninn_copy_nvram,
	.shortage = muninn_shortage,
	.merge_calls_max = muninn_merge_calls_max,
	.merge = muninn_merge,
	.merge_step = muninn_merge_step,
	.merge_run = muninn_merge_run,
	.scrub = muninn_scrub,
	.damaged = muninn_damaged,
	.begin_format = muninn_begin_format,
	.memo = muninn_memo,
	.set_memo = muninn_set_memo,
	.sync_memo = muninn_sync_memo,
	.check = check_store,
	.sample = muninn_sample,
	.map = muninn_map,
	.trim = muninn_trim,
	.is_uncertain = lost_has,
	.statistics = muninn_statistics,
	.close = muninn_close,
};
