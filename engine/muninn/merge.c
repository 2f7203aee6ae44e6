/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Merges: reclaims segments. One step takes a few sealed segments, puts again the records in them
 * that are still needed, takes the segments out of their rows' indices and frees them.
 *
 * A moved record keeps its sequence number, so it counts at once. Both copies are the same record;
 * a crash may leave both. If newer records of its key exist, hidden ones too, the moved one is
 * marked: its new place is newer than it is, and a search that meets it goes on (lookup.c).
 *
 * A thread merges in pieces, between which others put. What was found superseded stays so, since
 * whatever can still be gone back to was kept. What was found to be the newest of its key is judged
 * once more when it is moved, if the key has been put meanwhile.
 */
#include "engine/muninn/merge.h"

#include <errno.h>

#include "engine/muninn/choose.h"
#include "engine/muninn/emptied.h"
#include "engine/muninn/flush.h"
#include "engine/muninn/judge.h"
#include "engine/muninn/lookup.h"
#include "engine/muninn/place.h"
#include "engine/muninn/repair.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "engine/muninn/seal.h"
#include "engine/muninn/settle.h"
#include "engine/muninn/void.h"
#include "engine/records/need.h"
#include "engine/records/rooms.h"

enum {
	READS = 6144,         /* pages: with so many the segment that is counted is given up ... */
	READS_PERMILLE = 666, /* ... and with this part of them no further one is looked for */
	READ_SEGMENTS = 4,    /* but at least the pages of so many segments */
	READS_IN_PIECES = 4,  /* in pieces so many times as many, and fewer flushes */
	READ_FACTOR_MAX = 1 << 20,
};

/* ---- moving ---- */

/* What was found for the record when its segment was counted, or is found now. */
static int need_of(struct merge_run *run, const struct record_header *header)
{
	struct merge_moving *moving = &run->moving;
	int need = moving->needs ? *moving->needs : RECORD_NEED_NEWEST, newer = !moving->needs;

	/* In one piece nothing has been put since it was counted. */
	if (moving->needs && run->in_pieces && need == RECORD_NEED_NEWEST)
		newer = lookup_has_between(run->store, &header->key, run->counted_at, RECORD_NEWEST,
					   run);
	if (newer < 0)
		return newer;
	return newer ? judge_record(run, header, false) : need;
}

/* The page that is moved. */
static uint64_t moving_page(const struct merge_run *run)
{
	return segment_page(&run->store->geometry, run->moving.victim.segment) + run->moving.page;
}

static int move_needed(struct merge_run *run, const struct page_record *record, uint64_t serial)
{
	struct record_merge *merge = run->merge;
	struct new_record moved = { .value = record->value };
	int need, result;

	run->worked++;
	record_header_decode(record->header, &moved.header);
	need = need_of(run, &moved.header);
	if (need <= RECORD_NEED_NONE) {
		merge->records_dropped += need == RECORD_NEED_NONE;
		return need;
	}
	if (!record->value) {
		merge_run_note_data(run, moving_page(run));
		return -EBUSY;
	}
	if (!record_is_intact(record->header, serial, record->value))
		return -EBADMSG;
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

/* Of a page that is visited again those that are done are passed over. */
static int move_record(struct merge_run *run, const struct page_record *record, uint64_t serial,
		       void *context)
{
	struct merge_moving *moving = &run->moving;
	int result;

	(void)context;
	if (moving->seen++ < moving->done)
		return 0;
	result = move_needed(run, record, serial);
	if (!result) {
		moving->done++;
		moving->needs += moving->needs != NULL;
	}
	return result;
}

/* Moves the rest of a segment. -EINPROGRESS: a piece has ended. */
static int move_segment(struct merge_run *run)
{
	struct merge_moving *moving = &run->moving;

	for (; moving->page < run->store->geometry.segment_pages; moving->page++) {
		int result;

		if (merge_run_has_done_enough(run))
			return -EINPROGRESS;
		moving->seen = 0;
		merge_run_look(run);
		result = merge_run_visit_page(run, moving->victim.segment, moving->page,
					      move_record, NULL);
		if (merge_run_misses(run))
			return -EINPROGRESS;
		if (result)
			return result;
		merge_run_got_ahead(run);
		moving->done = 0;
	}
	return 0;
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
 * Where segments become free behind the merge, a step that has taken enough of them ends as soon as
 * those before are free. So room comes evenly, and in larger parts only where it takes long to make
 * them stable.
 */
static bool takes_more(const struct merge_run *run)
{
	bool ends_early = run->in_pieces && run->merge->frees_behind &&
			  run->count >= run->merge->segments_least &&
			  !emptied_are_under_way(run->store);

	return run->count == 0 || (run->count < run->wanted && !ends_early && may_go_on(run));
}

static int note_needed(struct merge_run *run, const struct page_record *record, uint64_t serial,
		       void *context)
{
	const uint8_t **need = context;

	(void)serial;
	if (*(*need)++ > RECORD_NEED_NONE && !record->value)
		merge_run_note_data(run, moving_page(run));
	return 0;
}

/* The data that counting has not read, of what is needed: they are read together. */
static void note_all_needed(struct merge_run *run)
{
	struct merge_moving *moving = &run->moving;
	const uint8_t *need = moving->needs;

	for (; moving->page < run->store->geometry.segment_pages; moving->page++)
		merge_run_visit_page(run, moving->victim.segment, moving->page, note_needed, &need);
	moving->page = 0;
}

/* The next segment whose records are moved. */
static int begin_segment(struct merge_run *run)
{
	struct victim victim = { 0 };
	int result = choose_segment(run, &victim);

	if (!result && merge_run_has_chosen(run, victim.segment))
		result = -EAGAIN;
	if (result)
		return result;
	run->moving = (struct merge_moving){ .victim = victim };
	if (run->needs_segment == victim.segment)
		run->moving.needs = run->needs;
	if (run->moving.needs && run->segment.by_headers)
		note_all_needed(run);
	run->stage = MERGE_MOVE;
	return 0;
}

static int end_segment(struct merge_run *run, int result)
{
	const struct victim *victim = &run->moving.victim;

	run->stage = MERGE_CHOOSE;
	run->needs_segment = NO_SEGMENT;
	if (result == -EBADMSG)
		repair_give_up(run->store, victim->segment);
	/* A damaged segment is no reason to stop: levelling can do without it. */
	if (result && result != -ENOSPC && victim->is_unworn)
		space_leave(&run->store->space, victim->segment);
	else if (result)
		return result;
	else
		run->batch[run->count++] = *victim;
	return 0;
}

/*
 * Chooses up to `wanted` segments and moves what is needed of each. -EINPROGRESS: a piece has
 * ended. run->result: why there are no more.
 */
static int move_batch(struct merge_run *run)
{
	int result = 0;

	while (!result && (run->stage == MERGE_MOVE || takes_more(run))) {
		if (run->stage == MERGE_CHOOSE)
			result = begin_segment(run);
		if (result)
			break;
		result = move_segment(run);
		if (result != -EINPROGRESS)
			result = end_segment(run, result);
	}
	rows_end_touched(run->store);
	run->result = result;
	return result == -EINPROGRESS ? result : 0;
}

/*
 * Limits the reads of one merge, since somebody may wait for it. If they were not enough to judge a
 * single segment, the next merge may read more.
 */
static uint64_t reads_allowed(const struct muninn_store *store)
{
	uint64_t reads = max_u64(READS, (uint64_t)READ_SEGMENTS * store->geometry.segment_pages);

	/* Between two pieces others have their turn. */
	if (store->merge_run->in_pieces)
		reads *= READS_IN_PIECES;
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

/* ---- from stage to stage ---- */

/*
 * An error has ended something before what it had taken out was stable: so that is made up for. No
 * list of changes tells all of it.
 */
static int let_go_the_rest(struct muninn_store *store)
{
	int result = flush_all(store);

	if (result)
		return result;
	roots_supersede(store);
	space_let_go(&store->space, store->space.held);
	return 0;
}

static int begin(struct muninn_store *store, const struct record_keep *keep,
		 struct record_merge *merge)
{
	struct merge_run *run = store->merge_run;
	uint64_t wanted = merge->segments_wanted ? merge->segments_wanted : 1;
	int result = 0;

	if (void_is_unsettled(store) || !run->in_pieces)
		emptied_finish(store);
	result = settle_format(store);
	if (!result && space_held_back(&store->space) && !emptied_are_under_way(store))
		result = let_go_the_rest(store);
	if (result)
		return result;
	merge_run_begin(run, keep, merge, reads_allowed(store));
	run->wanted = (uint32_t)min_u64(wanted, MERGE_SEGMENTS_MAX);
	return 0;
}

static int end(struct merge_run *run, int result)
{
	run->stage = MERGE_IDLE;
	return result;
}

/* 1: those that an earlier run has emptied are still on their way. */
static int stage_full(struct merge_run *run)
{
	int earlier;

	if (emptied_go_on(run->store))
		return 1;
	earlier = emptied_take_result(run->store);
	if (earlier && earlier != -EAGAIN)
		return end(run, earlier);
	if (run->count == 0)
		return end(run, run->result);
	emptied_begin(run->store);
	run->merge->segments_freed += run->count;
	run->stage = MERGE_LEAVES;
	if (run->in_pieces && run->merge->frees_behind)
		return end(run, 0);
	emptied_go_on(run->store);
	return 1;
}

/* 1: a piece has ended, or those before are to become free. */
static int stage_move(struct merge_run *run)
{
	struct muninn_store *store = run->store;
	uint64_t taken = store->space.taken;
	int result = move_batch(run);

	/*
	 * Commands that must not take long shall not find the buffers full of what was moved. Where
	 * there is a thread that merges there are some that seal.
	 */
	if (!result && !run->in_pieces)
		seal_catch_up(store, UINT32_MAX);
	run->merge->segments_taken += store->space.taken - taken;
	if (result)
		return 1;
	run->merge->pages_read += run->reads;
	allow_reads(run, run->count);
	run->stage = MERGE_FULL;
	return stage_full(run);
}

static int stage_leaves(struct merge_run *run)
{
	int result;

	if (emptied_go_on(run->store))
		return 1;
	result = emptied_take_result(run->store);
	if (result)
		run->merge->segments_freed -= run->count;
	return end(run, result);
}

static int go_through(struct merge_run *run)
{
	switch (run->stage) {
	case MERGE_FULL:
		return stage_full(run);
	case MERGE_LEAVES:
		return stage_leaves(run);
	default:
		return stage_move(run);
	}
}

static int advance(struct merge_run *run)
{
	int result = go_through(run);

	run->merge->records_looked_at += run->worked;
	return result;
}

void merge_run_beside(struct muninn_store *store)
{
	struct merge_run *run = store->merge_run;

	if (run->stage == MERGE_FULL || run->stage == MERGE_LEAVES)
		emptied_run(store);
	else
		merge_run_fetch(run);
}

int merge_piece(struct muninn_store *store, const struct record_keep *keep,
		struct record_merge *merge)
{
	struct merge_run *run = store->merge_run;
	int result = 0;

	run->in_pieces = true;
	if (run->stage == MERGE_IDLE)
		result = begin(store, keep, merge);
	else if (run->stage != MERGE_LEAVES && run->void_before != store->void_before)
		return end(run, -EAGAIN);
	if (result)
		return result;
	run->keep = keep;
	run->merge = merge;
	merge_run_begin_piece(run);
	return advance(run);
}

int merge_segments(struct muninn_store *store, const struct record_keep *keep,
		   struct record_merge *merge)
{
	struct merge_run *run = store->merge_run;
	int result;

	run->in_pieces = false;
	result = begin(store, keep, merge);
	if (result)
		return result;
	while ((result = advance(run)) == 1) {
		merge_run_beside(store);
		merge_run_begin_piece(run);
	}
	return result;
}
