/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How much of a segment is live: by a few of its pages, or by all of its records. */
#include "engine/muninn/liveness.h"

#include <assert.h>
#include <errno.h>

#include "engine/muninn/judge.h"
#include "engine/muninn/row.h"
#include "engine/records/need.h"

enum {
	SAMPLED_READS = 32,   /* of a segment with few records, to find pages that have some */
	FILLED_SEGMENTS = 16, /* that tell what the segments of a row are filled to */
};

/*
 * How full the row's last few segments were when they were sealed, on average. A whole segment if
 * it has none yet.
 */
static uint64_t filled_bytes(struct muninn_store *store, const struct row *row)
{
	struct sealed_segment last[FILLED_SEGMENTS];
	uint32_t count = row_index_read_last(row->index, last, FILLED_SEGMENTS);
	uint64_t bytes = 0;

	for (uint32_t n = 0; n < count; n++)
		bytes += last[n].record_bytes;
	return count ? bytes / count : segment_bytes(store);
}

/* Bytes that a record takes of a segment. A record as large as a page takes a page. */
static uint32_t taken_bytes(const struct muninn_store *store, uint32_t length)
{
	uint32_t bytes = RECORD_HEADER_BYTES + length, page_bytes = store->geometry.page_bytes;

	return bytes < page_bytes ? bytes : page_bytes;
}

/* Whether most records of a segment have a page for themselves. */
static bool is_mostly_large(const struct muninn_store *store, const struct sealed_segment *facts)
{
	return facts->record_bytes >= facts->records * (uint64_t)store->geometry.page_bytes / 2;
}

static void add(const struct muninn_store *store, struct live_bytes *bytes,
		const struct record_header *header, int need)
{
	bytes->records++;
	bytes->all += RECORD_HEADER_BYTES + header->length;
	if (need <= RECORD_NEED_NONE)
		return;
	bytes->live += RECORD_HEADER_BYTES + header->length;
	if (bytes->keys)
		bytes->keys[key_hash(&header->key, store->geometry.segment_pages).key %
			    MERGE_KEY_GROUPS] += taken_bytes(store, header->length);
}

static int add_roughly(struct merge_run *run, const struct page_record *record, uint64_t serial,
		       void *context)
{
	struct record_header header;
	int need;

	(void)serial;
	record_header_decode(record->header, &header);
	need = judge_record(run, &header, true);
	/* All of it is judged again. This only finds what else is missing. */
	if (merge_run_misses(run))
		return 0;
	add(run->store, context, &header, need);
	return need < 0 ? need : 0;
}

/*
 * How much of a new segment it takes to put again what is still needed of this one, per mille. A
 * row that was never filled will not be filled now: its segments end with the places of its hottest
 * key. `bytes` are of all or some of the segment's pages.
 */
static uint32_t live_permille(struct muninn_store *store, const struct victim *victim,
			      const struct live_bytes *bytes, uint64_t record_bytes)
{
	uint64_t live = bytes->all ? record_bytes * bytes->live / bytes->all : 0;
	uint64_t half = segment_bytes(store) / 2, refilled = record_bytes, part;

	/* Other segments are refilled to at least half of their capacity. */
	if (record_bytes < half)
		refilled = max_u64(record_bytes,
				   min_u64(filled_bytes(store, &store->rows[victim->row]), half));
	part = live * 1000 / max_u64(1, refilled);

	for (uint32_t group = 0; bytes->keys && group < MERGE_KEY_GROUPS; group++)
		part = max_u64(part, bytes->keys[group] * UINT64_C(1000) /
					     ((uint64_t)index_key_pages_max(&store->geometry) *
					      store->geometry.page_bytes));
	return (uint32_t)min_u64(part, 1000);
}

/* The least that it can be if so many further pages are looked at. */
static uint32_t live_permille_least(struct muninn_store *store, const struct victim *victim,
				    const struct live_bytes *bytes, uint32_t pages,
				    uint64_t record_bytes)
{
	struct live_bytes all = *bytes;

	all.all += (uint64_t)pages * (store->geometry.page_bytes + RECORD_HEADER_BYTES);
	return live_permille(store, victim, &all, record_bytes);
}

uint32_t liveness_sample(struct merge_run *run, const struct victim *victim, struct sample *sample)
{
	struct muninn_store *store = run->store;
	uint32_t pages = store->geometry.segment_pages;
	uint32_t samples = pages < sample->pages ? pages : sample->pages, left = samples;
	struct live_bytes bytes = { 0 };
	struct sealed_segment facts;

	row_index_find(store->rows[victim->row].index, victim->segment, &facts);
	bool is_full = facts.record_bytes * 2 >= segment_bytes(store);
	uint32_t reads = is_full || pages < SAMPLED_READS ? samples : SAMPLED_READS;

	for (uint32_t i = 0; i < reads && left && !sample->is_cut; i++) {
		uint32_t page = (sample->first + i * (pages / samples) + i / samples) % pages;
		uint64_t before = bytes.all;

		run->is_large = is_mostly_large(store, &facts);
		if (merge_run_visit_page(run, victim->segment, page, add_roughly, &bytes) &&
		    !merge_run_misses(run))
			return 1000;
		left -= bytes.all != before;
		sample->is_cut = left && live_permille_least(store, victim, &bytes, left,
							     facts.record_bytes) > sample->limit;
	}
	sample->records = bytes.records;
	return live_permille_least(store, victim, &bytes, sample->is_cut ? left : 0,
				   facts.record_bytes);
}

/* ---- counting ---- */

enum { NOT_JUDGED = UINT8_MAX };

static void begin_count(struct merge_run *run, bool seems_cheap)
{
	struct merge_choice *choice = &run->choice;
	struct sealed_segment facts;

	row_index_find(run->store->rows[choice->best.row].index, choice->best.segment, &facts);
	run->counted = choice->best.segment;
	run->counted_most = facts.last_sequence;
	run->counted_at = run->store->committed;
	run->needs_segment = NO_SEGMENT;
	/* Otherwise too many data would have to be read behind the headers. */
	run->segment.by_headers = seems_cheap && !run->fetches_all &&
				  is_mostly_large(run->store, &facts);
	memset(run->needs, NOT_JUDGED, segment_records_max(&run->store->geometry));
	memset(choice->keys, 0, sizeof(choice->keys));
	choice->counted = (struct live_bytes){ .keys = choice->keys };
	choice->page = choice->records = 0;
	choice->counts = true;
}

/* What a piece judges of a segment. */
struct judging {
	uint8_t *needs; /* of the next record */
	bool leaves;    /* some that are to be judged again, or later */
};

static bool is_piece_full(const struct merge_run *run)
{
	return merge_run_has_done_enough(run) || run->missing_count == MERGE_MISSING;
}

/* A record, unless it was judged before. What it lacks is read together with what others lack. */
static int judge_next(struct merge_run *run, const struct page_record *record, uint64_t serial,
		      void *context)
{
	struct judging *judging = context;
	uint8_t *need = judging->needs++;
	struct record_header header;
	int result;

	(void)serial;
	if (*need != NOT_JUDGED)
		return 0;
	/* Asked once: others come and go meanwhile. */
	if (is_piece_full(run)) {
		judging->leaves = true;
		return 0;
	}
	record_header_decode(record->header, &header);
	merge_run_look(run);
	result = judge_record(run, &header, false);
	judging->leaves |= merge_run_misses(run);
	if (merge_run_misses(run))
		return 0;
	merge_run_got_ahead(run);
	if (result < 0)
		return result;
	*need = (uint8_t)result;
	add(run->store, &run->choice.counted, &header, result);
	return 0;
}

/* Judges some records of the best segment. 0: all are judged. -EINPROGRESS. */
static int judge_segment(struct merge_run *run)
{
	struct merge_choice *choice = &run->choice;
	uint32_t pages = run->store->geometry.segment_pages;
	struct judging judging = { .needs = run->needs + choice->records };

	for (uint32_t page = choice->page; page < pages && !is_piece_full(run); page++) {
		int result;

		merge_run_look(run);
		result =
			merge_run_visit_page(run, choice->best.segment, page, judge_next, &judging);
		if (result)
			return result;
		if (judging.leaves)
			continue;
		choice->page = page + 1;
		choice->records = (uint32_t)(judging.needs - run->needs);
	}
	if (choice->page < pages)
		return -EINPROGRESS;
	assert(!memchr(run->needs, NOT_JUDGED, choice->records));
	return 0;
}

int liveness_count(struct merge_run *run, bool seems_cheap)
{
	struct merge_choice *choice = &run->choice;
	int result;

	if (!choice->counts)
		begin_count(run, seems_cheap);
	if (!merge_run_has_segment(run, choice->best.segment))
		return -EINPROGRESS;
	result = judge_segment(run);
	if (result == -EINPROGRESS)
		return result;
	choice->counts = false;
	choice->best.live_permille = 1000;
	if (result)
		return 0;
	choice->best.live_permille =
		live_permille(run->store, &choice->best, &choice->counted, choice->counted.all);
	run->needs_segment = choice->best.segment;
	return 0;
}
