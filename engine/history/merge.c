/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Decides when to merge, and when history is given up because merging gains nothing any more. */
#include "engine/history/merge.h"

#include <errno.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/history/hidden_review.h"
#include "engine/history/merge_step.h"
#include "engine/history/retention.h"
#include "engine/history/standing.h"
#include "engine/records/waiting.h"

enum {
	/* Segments with more live bytes are left alone; the paper takes 80 %. */
	LIVE_PERMILLE_MAX = 800,
	/* Automatic merging stops earlier: writers wait for it, and each step gains less. */
	LIVE_PERMILLE_AUTOMATIC = 700,
	/*
	 * Where history is much of the device, some of it goes before dearer segments are taken:
	 * the last tenth of it would cost as much to keep as all the rest.
	 */
	LIVE_PERMILLE_CHEAP = 200,
	/* So much is much, and so little is little, per mille; between them it is by degrees. */
	HISTORY_MUCH_PERMILLE = 375,
	HISTORY_LITTLE_PERMILLE = 125,
	/* Where none may go, this is asked again after so many transactions. */
	DEAR_TRANSACTIONS = 4096,
	/* Segments of a step, at most; of steps that free fewer so many are judged together. */
	SEGMENTS_AT_ONCE = 8,
	/* And at least, as they share flushes; but no more than a part of the slack. */
	SEGMENTS_LEAST = 4,
	SLACK_PART = 4,
	/* A step is worth it when it gains more than this part of what it frees. */
	GAIN_PART = 16,
	/* Before one transaction, so that none waits long: steps, and pages read, at most. */
	STEPS_PER_TRANSACTION = 6,
	READS_PER_TRANSACTION = 4096,
	/* After so many steps in a row that gained nothing history is given up ... */
	FUTILE_STEPS_RECLAIM = 2,
	/* ... that took so many times the space that is short. */
	RECLAIM_FACTOR = 2,
	/* For one command that puts much. It ends sooner, with the space or with nothing to gain.
	 */
	STEPS_FOR_ONE_MAX = 16384,
	/* A sealed segment is not quite full. */
	SPACE_LOST_PART = 16,
	/*
	 * When no segment was worth a step, the next try comes after so many transactions, or so
	 * much time, in which records may have grown old.
	 */
	FUTILE_TRANSACTIONS = 256,
	FUTILE_MS = 10000,
};

/* Gives free what nothing shows any more. */
static void review(struct engine *engine)
{
	hidden_review(engine);
	standing_review(engine);
}

/* Before the first step. */
static void prepare(struct engine *engine)
{
	retention_judge(engine);
	review(engine);
}

/* History was given up: steps may gain again. What clones stood on may have been for it alone. */
static void look_again(struct engine *engine)
{
	engine->past->merge_futile = 0;
	engine->past->merge_dear_until = 0;
	review(engine);
}

/* How much of a segment may be needed: the more history there is to give up, the less. */
static uint32_t live_permille_max(struct engine *engine)
{
	const uint32_t range = HISTORY_MUCH_PERMILLE - HISTORY_LITTLE_PERMILLE;
	uint64_t kept, more;

	if (engine->transactions < engine->past->merge_dear_until ||
	    retention_kept_bytes(engine, &kept) != 0)
		return LIVE_PERMILLE_AUTOMATIC;
	kept = kept / (engine->store->limits.capacity_bytes / 1000);
	more = kept - min_u64(kept, HISTORY_LITTLE_PERMILLE);
	return LIVE_PERMILLE_AUTOMATIC -
	       (uint32_t)((LIVE_PERMILLE_AUTOMATIC - LIVE_PERMILLE_CHEAP) * min_u64(more, range) /
			  range);
}

/* Gives up the oldest history for so many segments. -EAGAIN: none may go. */
static int reclaim(struct engine *engine, uint32_t segments)
{
	uint64_t bytes = segments * RECLAIM_FACTOR * engine->store->limits.segment_bytes;
	bool much = live_permille_max(engine) < LIVE_PERMILLE_AUTOMATIC;
	int result = -EAGAIN;

	/* It takes a little space, so a device that is full of what is needed does it once. */
	if (much || engine->transactions > engine->past->reclaimed_at)
		result = retention_reclaim(engine, bytes, RECORD_NEWEST);
	engine->past->reclaimed_at = engine->transactions;
	if (!result)
		look_again(engine);
	return result;
}

int engine_merge(struct engine *engine, struct engine_merge_result *total)
{
	const struct record_store_operations *operations = engine->store->operations;
	struct record_merge merge = { .segments_wanted = 1,
				      .live_permille_max = LIVE_PERMILLE_MAX };
	int result = -EOPNOTSUPP;

	pthread_mutex_lock(&engine->past->merger.merging);
	turn_take(&engine->turn);
	if (operations->merge) {
		prepare(engine);
		result = merge_step(engine, &merge);
		if (result == -EAGAIN && operations->shortage(engine->store, RECORD_ROOM_WRITE) &&
		    !reclaim(engine, operations->shortage(engine->store, RECORD_ROOM_WRITE)))
			result = merge_step(engine, &merge);
	}
	turn_give(&engine->turn);
	pthread_mutex_unlock(&engine->past->merger.merging);
	total->segments_freed += merge.segments_freed;
	total->records_moved += merge.records_moved;
	total->records_dropped += merge.records_dropped;
	return result;
}

/* ---- steps that gain nothing ---- */

/*
 * Whether steps were worth their time: what they moved takes clearly fewer segments than they
 * freed. Otherwise what is there is needed, whatever a single segment looks like.
 */
static bool have_gained(const struct past *past)
{
	return past->merge_freed > past->merge_taken + past->merge_freed / GAIN_PART;
}

/* Writers meet the same error again and again; it is logged once, until something else comes. */
static void warn(struct engine *engine, int result)
{
	if (result && result != engine->past->warned_merge)
		log_line(LOG_LEVEL_WARNING,
			 result == -ENOSPC
				 ? "%s: merging stops: no space to move what is needed; "
				   "remove objects or versions (error %d)"
				 : "%s: merging leaves a segment as it is and goes on with "
				   "others (error %d)",
			 engine->store->device, -result);
	engine->past->warned_merge = result;
}

/* Before a step may end early. What others put must not use up the slack meanwhile. */
static uint32_t segments_least(const struct engine *engine)
{
	return (uint32_t)min_u64(SEGMENTS_LEAST, engine->store->limits.segments_slack / SLACK_PART);
}

/*
 * For a store that lacks `shortage` segments. Several at once share the waits for the host's
 * storage; the more are lacking, the more it frees, so that merging keeps up with writing.
 */
static struct record_merge want(struct engine *engine, uint32_t shortage, bool stores)
{
	return (struct record_merge){
		.segments_wanted = (uint32_t)max_u64(shortage, SEGMENTS_AT_ONCE),
		.live_permille_max = stores ? live_permille_max(engine) : LIVE_PERMILLE_AUTOMATIC,
		.segments_least = segments_least(engine),
		.frees_behind = engine->sealer.count > 0,
	};
}

/* A step has ended. -EAGAIN: it gained nothing, or together with those before it. */
static int note_step(struct engine *engine, const struct record_merge *merge, int result)
{
	struct past *past = engine->past;

	past->merge_freed += merge->segments_freed;
	past->merge_taken += merge->segments_taken;
	if (result == 0 && merge->frees_behind && past->merge_freed < SEGMENTS_AT_ONCE)
		return 0;
	if (result == 0 || (result == -EAGAIN && past->merge_freed > 0))
		result = have_gained(past) ? 0 : -EAGAIN;
	past->merge_freed = past->merge_taken = 0;
	past->merge_futile = result == 0 ? 0 : past->merge_futile + 1;
	past->merge_again = engine->transactions + FUTILE_TRANSACTIONS;
	past->merge_again_ms = engine_time_now(engine) + FUTILE_MS;
	if (result != -EAGAIN)
		warn(engine, result);
	return result;
}

/* Whether the last steps have looked at all segments for nothing. */
static bool has_tried_all(const struct engine *engine)
{
	return engine->past->merge_futile >
	       engine->store->operations->merge_calls_max(engine->store);
}

/* The same, and nothing has happened since that could have changed that. */
static bool is_pointless(struct engine *engine)
{
	struct past *past = engine->past;
	uint64_t now = engine_time_now(engine);

	if (!has_tried_all(engine) || engine->transactions >= past->merge_again)
		return false;
	/* Going back puts what takes the place of something: that can be reclaimed at once. */
	if (engine->store->operations->shortage(engine->store, RECORD_ROOM_RETURN))
		return false;
	/* A clock that was set back must not hold up anything. */
	if (now < past->merge_again_ms && now + FUTILE_MS >= past->merge_again_ms)
		return true;
	past->merge_futile = FUTILE_STEPS_RECLAIM;
	return false;
}

/* Merges once. -EAGAIN: it gained nothing. *pages_read grows by those that it read. */
static int merge_some(struct engine *engine, uint32_t shortage, bool stores, uint64_t *pages_read)
{
	struct record_merge merge = want(engine, shortage, stores);
	int result = merge_step(engine, &merge);

	*pages_read += merge.pages_read;
	return note_step(engine, &merge, result);
}

/*
 * Steps have gained nothing: the oldest history is the first to be needed no more. Where none may
 * go, dearer segments do. -EAGAIN: what is left is needed.
 */
static int find_more(struct engine *engine, uint32_t shortage, bool stores)
{
	if (engine->past->merge_futile < FUTILE_STEPS_RECLAIM)
		return 0;
	if (stores && reclaim(engine, shortage) == 0)
		return 0;
	if (!stores || live_permille_max(engine) == LIVE_PERMILLE_AUTOMATIC)
		return -EAGAIN;
	engine->past->merge_dear_until = engine->transactions + DEAR_TRANSACTIONS;
	engine->past->merge_futile = 0;
	return 0;
}

/* ---- by a thread ---- */

bool merge_is_wanted(struct engine *engine)
{
	return engine->store->operations->shortage(engine->store, RECORD_ROOM_WRITE) &&
	       !is_pointless(engine);
}

int merge_do_piece(struct engine *engine, struct merge_job *job)
{
	uint32_t shortage = engine->store->operations->shortage(engine->store, RECORD_ROOM_WRITE);
	uint64_t before;
	int result;

	job->looked_at = 0;
	if (!job->under_way) {
		if (!merge_is_wanted(engine))
			return -EAGAIN;
		prepare(engine);
		job->merge = want(engine, shortage, job->stores);
	}
	before = job->merge.records_looked_at;
	result = merge_step_piece(engine, &job->merge);
	job->looked_at = job->merge.records_looked_at - before;
	job->under_way = result == 1;
	if (job->under_way || note_step(engine, &job->merge, result) == 0)
		return 0;
	return find_more(engine, shortage, job->stores);
}

int merge_mend_piece(struct engine *engine, struct merge_job *job)
{
	int result;

	if (!job->under_way) {
		prepare(engine);
		job->merge = (struct record_merge){ .segments_wanted = 1,
						    .live_permille_max = 1000,
						    .choice = RECORD_MERGE_MENDED };
	}
	result = merge_step_piece(engine, &job->merge);
	job->under_way = result == 1;
	return job->under_way ? 0 : result;
}

/* ---- around each transaction ---- */

/* Partitions are created, and few indices are free. */
static void look_for_indices(struct engine *engine)
{
	retention_judge(engine);
	do
		standing_review(engine);
	while (--engine->indices_wanted && engine->indices_known);
	engine->indices_wanted = 0;
}

bool merge_is_due(const struct engine *engine)
{
	const struct record_store_operations *operations = engine->store->operations;

	if (hidden_review_is_due(engine) || engine->indices_wanted)
		return true;
	if (engine->past->merger.is_on)
		return !merger_lets_on(engine);
	return operations->merge && !engine->options.merge_manual &&
	       operations->shortage(engine->store, RECORD_ROOM_WRITE);
}

void merge_before(struct engine *engine, enum engine_mode mode)
{
	const struct record_store_operations *operations = engine->store->operations;
	/* Others go back, or say what is kept: that must not cost what they are about. */
	bool stores = mode == ENGINE_WRITE || mode == ENGINE_FREE;
	uint64_t pages_read = 0;

	hidden_review_if_due(engine);
	if (engine->indices_wanted)
		look_for_indices(engine);
	if (!operations->merge || engine->options.merge_manual)
		return;
	if (engine->past->merger.is_on) {
		merger_look(engine, stores);
		return;
	}
	/* It takes little, and who comes next makes up for it. */
	if (mode == ENGINE_HISTORY && !operations->shortage(engine->store, RECORD_ROOM_FREE))
		return;
	for (int step = 0; step < STEPS_PER_TRANSACTION && pages_read < READS_PER_TRANSACTION;
	     step++) {
		uint32_t shortage = operations->shortage(engine->store, RECORD_ROOM_WRITE);

		if (!shortage || is_pointless(engine))
			return;
		if (step == 0)
			prepare(engine);
		if (merge_some(engine, shortage, stores, &pages_read) &&
		    find_more(engine, shortage, stores))
			return;
	}
}

void merge_after(struct engine_txn *txn)
{
	bool frees = txn->mode == ENGINE_FREE || txn->mode == ENGINE_RESCUE || txn->rolled_back ||
		     txn->object_rolled_back;

	/* What the engine notes aside removes nothing. */
	if (frees && !txn->is_aside)
		txn->engine->past->merge_futile = 0;
	if (!txn->engine->past->merger.is_on)
		return;
	merger_count_put(txn->engine, txn->put_bytes);
	/* Others look when they begin. */
	if (frees || !may_wait())
		merger_look(txn->engine, txn->mode == ENGINE_WRITE || txn->mode == ENGINE_FREE);
}

/* ---- space for a command that puts much ---- */

static uint64_t free_bytes(struct engine *engine)
{
	uint64_t capacity = engine->store->limits.capacity_bytes;
	struct record_statistics statistics = { 0 };

	engine->store->operations->statistics(engine->store, &statistics);
	return capacity - min_u64(statistics.used_bytes, capacity);
}

static uint64_t with_loss(uint64_t bytes)
{
	return bytes + bytes / SPACE_LOST_PART;
}

bool merge_has_space(struct engine *engine, uint64_t bytes)
{
	/* So little goes into what is buffered, or each command makes space for it. */
	return !engine->store->operations->merge || bytes <= engine->store->limits.segment_bytes ||
	       with_loss(bytes) <= free_bytes(engine);
}

bool merge_fits(struct engine *engine, uint64_t bytes)
{
	return bytes <= engine->store->limits.capacity_bytes;
}

/* -EAGAIN: another step is needed. -ENOSPC: none will help. */
static int step_to_space(struct engine *engine, const struct engine_space *wanted)
{
	uint64_t bytes = with_loss(wanted->bytes), found = free_bytes(engine);
	uint64_t pages_read = 0;

	/* Segments that are being filled may take so much in addition. */
	bytes += engine->store->limits.segments_open * engine->store->limits.segment_bytes;
	if (found >= bytes)
		return 0;
	if (merge_some(engine, SEGMENTS_AT_ONCE, false, &pages_read) == 0 ||
	    engine->past->merge_futile < FUTILE_STEPS_RECLAIM)
		return -EAGAIN;
	if (retention_reclaim(engine, bytes - found, wanted->moment) == 0) {
		look_again(engine);
		return -EAGAIN;
	}
	return has_tried_all(engine) ? -ENOSPC : -EAGAIN;
}

int engine_make_space(struct engine *engine, const struct engine_space *wanted)
{
	int result = -EAGAIN;

	if (!engine->store->operations->merge || engine->options.merge_manual)
		return -ENOSPC;
	pthread_mutex_lock(&engine->past->merger.merging);
	for (int step = 0; result == -EAGAIN && step < STEPS_FOR_ONE_MAX; step++) {
		turn_take(&engine->turn);
		if (step == 0)
			prepare(engine);
		result = step_to_space(engine, wanted);
		turn_give(&engine->turn);
	}
	pthread_mutex_unlock(&engine->past->merger.merging);
	return result == -EAGAIN ? -ENOSPC : result;
}
