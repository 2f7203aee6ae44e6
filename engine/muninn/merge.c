/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Merges: reclaims segments. One step takes a few sealed segments, puts again the records in them
 * that are still needed, takes the segments out of their rows' indices and frees them.
 *
 * A moved record keeps its sequence number, so it counts at once. Both copies are the same record;
 * a crash may leave both. If newer records of its key exist, hidden ones too, the moved one is
 * marked: its new place is newer than it is, and a search that meets it goes on (lookup.c).
 */
#include "engine/muninn/merge.h"

#include <errno.h>

#include "engine/muninn/choose.h"
#include "engine/muninn/directory.h"
#include "engine/muninn/flush.h"
#include "engine/muninn/judge.h"
#include "engine/muninn/place.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "engine/muninn/seal.h"
#include "engine/muninn/settle.h"
#include "engine/records/need.h"
#include "engine/records/rooms.h"

enum {
	READS = 6144,         /* pages: with so many the segment that is counted is given up ... */
	READS_PERMILLE = 666, /* ... and with this part of them no further one is looked for */
	READ_SEGMENTS = 4,    /* but at least the pages of so many segments */
	READ_FACTOR_MAX = 1 << 20,
};

/* ---- moving ---- */

struct moving {
	const uint8_t *needs; /* of the records to come, as counted; NULL: to be found out */
};

static int move_record(struct merge_run *run, const struct page_record *record, uint64_t serial,
		       void *context)
{
	struct moving *moving = context;
	struct record_merge *merge = run->merge;
	struct new_record moved = { .value = record->value };
	int need, result;

	if (!record_is_intact(record->header, serial, record->value))
		return -EBADMSG;
	record_header_decode(record->header, &moved.header);
	need = moving->needs ? *moving->needs++
			     : judge_record(run, &moved.header, record->value, false);
	if (need <= RECORD_NEED_NONE) {
		merge->records_dropped += need == RECORD_NEED_NONE;
		return need;
	}
	if (need == RECORD_NEED_OLD)
		moved.header.flags |= RECORD_MOVED;
	else
		moved.header.flags &= (uint8_t)~RECORD_MOVED;
	result = place_record(run->store, &moved, RECORD_ROOM_MERGE);
	if (!result) {
		merge->records_moved++;
		merge->bytes_moved += RECORD_HEADER_BYTES + moved.header.length;
	}
	return result;
}

/*
 * Takes a segment out of its row's index, and its group too when that was the last one.
 */
static struct root_kill take_out(struct muninn_store *store, const struct victim *victim)
{
	struct sealed_segment segment;

	row_index_find(store->rows[victim->row].index, victim->segment, &segment);
	directory_take_out(store, victim->row, &segment);
	directory_drop_empty(store, victim->row);
	return (struct root_kill){
		.segment = segment.segment,
		.row = (uint16_t)victim->row,
		.member = (uint16_t)segment.member,
		.group = segment.group,
		.serial = segment.serial,
	};
}

static bool is_chosen(const struct victim *batch, uint32_t count, uint32_t segment)
{
	for (uint32_t i = 0; i < count; i++)
		if (batch[i].segment == segment)
			return true;
	return false;
}

/*
 * Whether a step takes another segment. The first one can always be finished: its records are all
 * of one row. A further one may run out of space, after work for nothing.
 */
static bool may_go_on(const struct merge_run *run)
{
	const struct muninn_store *store = run->store;

	return room_has_segment(store->geometry.room_kept, RECORD_ROOM_RESCUE,
				store->space.count) &&
	       run->reads < run->reads_max * READS_PERMILLE / 1000;
}

/*
 * Chooses up to `wanted` segments and moves what is needed of each. Returns how many are done;
 * *result: why no more.
 */
static uint32_t move_batch(struct merge_run *run, uint32_t wanted, struct victim *batch,
			   int *result)
{
	struct muninn_store *store = run->store;
	uint32_t count = 0;

	while (count < wanted && (count == 0 || may_go_on(run))) {
		struct moving moving = { .needs = NULL };
		struct victim victim = { 0 };

		*result = choose_segment(run, &victim);
		if (!*result && is_chosen(batch, count, victim.segment))
			*result = -EAGAIN;
		/* Nothing has been put since it was counted. */
		if (run->needs_segment == victim.segment)
			moving.needs = run->needs;
		for (uint32_t page = 0; !*result && page < store->geometry.segment_pages; page++)
			*result = merge_run_visit_page(run, victim.segment, page, move_record,
						       &moving);
		/* A damaged segment is no reason to stop: levelling can do without it. */
		if (*result && *result != -ENOSPC && victim.is_unworn) {
			space_leave(&store->space, victim.segment);
			continue;
		}
		run->needs_segment = NO_SEGMENT;
		if (*result)
			break;
		batch[count++] = victim;
	}
	rows_end_touched(store);
	return count;
}

/*
 * Limits the reads of one merge, since somebody may wait for it. If they were not enough to judge a
 * single segment, the next merge may read more.
 */
static uint64_t reads_allowed(const struct muninn_store *store)
{
	uint64_t reads = max_u64(READS, (uint64_t)READ_SEGMENTS * store->geometry.segment_pages);

	return reads * store->merge_walk.read_factor;
}

static void allow_reads(const struct merge_run *run, uint32_t segments_moved)
{
	struct merge_walk *walk = &run->store->merge_walk;

	if (segments_moved)
		walk->read_factor = 1;
	else if (merge_run_has_read_enough(run) && walk->read_factor < READ_FACTOR_MAX)
		walk->read_factor *= 2;
}

int merge_segments(struct muninn_store *store, const struct record_keep *keep,
		   struct record_merge *merge)
{
	struct merge_run *run = store->merge_run;
	struct victim batch[MERGE_SEGMENTS_MAX];
	struct root_kill kills[MERGE_SEGMENTS_MAX];
	uint32_t wanted = merge->segments_wanted ? merge->segments_wanted : 1;
	uint64_t taken = store->space.taken;
	int result = settle_format(store);

	if (result)
		return result;
	merge_run_begin(run, keep, merge, reads_allowed(store));
	uint32_t count =
		move_batch(run, (uint32_t)min_u64(wanted, MERGE_SEGMENTS_MAX), batch, &result);

	/* Commands that must not take long shall not find the buffers full of what was moved. */
	seal_catch_up(store, UINT32_MAX);
	merge->segments_taken += store->space.taken - taken;
	merge->pages_read += run->reads;
	allow_reads(run, count);
	if (count == 0)
		return result;
	/*
	 * The order on stable storage: what was moved, then that its old segments are out, then
	 * whatever is written to these.
	 */
	roots_expect_kills(store);
	result = flush_all(store);
	if (result)
		return result;
	for (uint32_t i = 0; i < count; i++) {
		seal_settle_group(store, batch[i].row);
		kills[i] = take_out(store, &batch[i]);
	}
	result = flush_all(store);
	if (result)
		return result;
	roots_write_kills(store, kills, count); /* what fails is logged: NVRAM says it all */
	for (uint32_t i = 0; i < count; i++)
		space_release(&store->space, batch[i].segment);
	merge->segments_freed += count;
	return 0;
}
