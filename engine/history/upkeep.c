/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Finds what the flash has lost before more of it is lost, and moves away what is beside it. Both
 * go on beside others: reading shares the turn for a few pages, moving is a merge in pieces. An
 * image of the index or a root that lost a page is rare, and is written anew in turn.
 */
#include <errno.h>

#include "common/bytes.h"
#include "engine/history/merge.h"
#include "engine/objects/sealer.h"

/* Pages that are read in one turn, which others wait for. */
enum { PAGES_IN_TURN = 8 };

int engine_scrub(struct engine *engine, struct engine_scrub *scrub)
{
	const struct record_store_operations *operations = engine->store->operations;
	struct record_scrub part = { .position = scrub->position };
	uint32_t left = scrub->pages;

	if (!operations->scrub)
		return -EOPNOTSUPP;
	do {
		uint64_t since = turn_share(&engine->turn);

		part.pages = (uint32_t)min_u64(left, PAGES_IN_TURN);
		operations->scrub(engine->store, &part);
		turn_unshare(&engine->turn, since);
		left -= part.pages;
	} while (left && part.position);
	scrub->position = part.position;
	scrub->end = part.end;
	scrub->read += part.read;
	scrub->repaired += part.repaired;
	scrub->lost += part.lost;
	return 0;
}

static bool trim_in_turn(struct engine *engine, enum record_trim step)
{
	bool more;

	turn_take(&engine->turn);
	more = engine->store->operations->trim(engine->store, step);
	turn_give(&engine->turn);
	return more;
}

void engine_trim(struct engine *engine, uint32_t segments)
{
	const struct record_store_operations *operations = engine->store->operations;
	bool more = operations->trim != NULL;

	for (uint32_t n = 0; more && n < segments; n++) {
		/* Mostly there is nothing, and a look holds up nobody who reads. */
		uint64_t since = turn_share(&engine->turn);

		more = operations->trim(engine->store, RECORD_TRIM_LOOK);
		turn_unshare(&engine->turn, since);
		if (more)
			more = trim_in_turn(engine, RECORD_TRIM_TAKE);
		if (!more)
			break;
		/* The flash, and the host, which may write pages back first, hold up nobody. */
		operations->trim(engine->store, RECORD_TRIM_EMPTY);
		trim_in_turn(engine, RECORD_TRIM_PUT_BACK);
	}
}

uint32_t engine_damaged(struct engine *engine)
{
	const struct record_store_operations *operations = engine->store->operations;

	return operations->damaged ? operations->damaged(engine->store) : 0;
}

static int mend_piece(struct engine *engine, struct merge_job *job)
{
	int result;

	sealer_wait(engine);
	turn_take(&engine->turn);
	result = merge_mend_piece(engine, job);
	sealer_look(engine);
	turn_give(&engine->turn);
	return result;
}

int engine_mend(struct engine *engine, struct engine_merge_result *total)
{
	struct merge_job job = { .merge.segments_wanted = 0 };
	int result;

	if (!engine_damaged(engine))
		return -EAGAIN;
	pthread_mutex_lock(&engine->past->merger.merging);
	do {
		result = mend_piece(engine, &job);
		if (job.under_way)
			engine->store->operations->merge_run(engine->store);
	} while (job.under_way);
	pthread_mutex_unlock(&engine->past->merger.merging);
	total->segments_freed += job.merge.segments_freed;
	total->records_moved += job.merge.records_moved;
	total->records_dropped += job.merge.records_dropped;
	return result;
}
