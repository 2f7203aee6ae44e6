/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What merging must keep, told to the record store: what is found at the present, at the end of
 * every kept version, and at every moment that can be reached, of objects that exist there. And
 * when to merge.
 */
#include "engine/history/merge.h"

#include <errno.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/history/hidden_review.h"
#include "engine/history/left_out.h"
#include "engine/history/retention.h"
#include "engine/history/standing.h"
#include "engine/history/times.h"

enum {
	/* Segments with more live bytes are left alone; the paper takes 80 %. */
	LIVE_PERMILLE_MAX = 800,
	/* By itself merging stops earlier: writers wait for it, and what is gained gets less and
	   less. */
	LIVE_PERMILLE_AUTOMATIC = 700,
	SEGMENTS_AT_ONCE = 8,
	/* A step is worth it when it gains more than this part of what it frees. */
	GAIN_PART = 16,
	/* At most, before one transaction, so that none waits long; and none once so many pages
	   have been read. */
	STEPS_PER_TRANSACTION = 6,
	READS_PER_TRANSACTION = 4096,
	/* Steps in a row that found nothing, after which history is given up ... */
	FUTILE_STEPS_RECLAIM = 2,
	/* ... that took so many times the room that is short. */
	RECLAIM_FACTOR = 2,
	/* Before a single command that puts much; it ends sooner, with the room or without anything
	   more to merge. */
	STEPS_FOR_ONE_MAX = 16384,
	/* A sealed segment is not quite full. */
	ROOM_LOST_PART = 16,
	/* Between two tries after a walk over all segments found nothing: transactions, or time, in
	   which some may have grown old. */
	FUTILE_TRANSACTIONS = 256,
	FUTILE_MS = 10000,
};

/* Bounds that a record is looked for at, before those that are the same are taken together. */
#define BOUNDS_MAX 64

/* What was looked up last. Records of one object, and of one partition, tend to lie together. */
struct keep_context {
	struct engine *engine;
	struct partition *root; /* pinned */
	uint64_t device_horizon;
	bool failed; /* to learn about the device: everything is kept */
	/* Who has the index, there or gone. */
	struct {
		bool known, failed;
		uint16_t index;
		struct source source;
		uint64_t horizon; /* of the owner by itself */
	} owner;
	/* What was kept between two numbers. */
	struct {
		bool known, of_owner;
		uint16_t index;
		uint64_t from, bound;
	} kept;
	struct {
		bool known, exists;
		uint16_t index;
		uint64_t bound;
		struct partition state;
	} state;
	struct {
		bool known;
		uint16_t index;
		uint64_t identifier;
		uint64_t bound;
		struct onode *onode; /* NULL: does not exist there */
	} object;
};

static void context_begin(struct keep_context *context, struct engine *engine)
{
	*context = (struct keep_context){ .engine = engine };
	context->failed = partition_get(engine, 0, &context->root) != 0;
	if (!context->failed)
		context->failed = history_horizon(engine, context->root->history,
						  context->root->history, 0,
						  &context->device_horizon) != 0;
}

static void forget_owner(struct keep_context *context)
{
	if (context->owner.known && context->owner.source.partition)
		source_close(context->engine, &context->owner.source);
	context->owner.known = false;
	context->kept.known = false;
}

static void context_end(struct keep_context *context)
{
	forget_owner(context);
	if (context->root)
		partition_release(context->engine, context->root);
	onode_free(context->object.onode);
}

/* ---- owners ---- */

/* What it is about is kept as its own history says, also while it is gone: it may come back. */
static int find_owner(struct keep_context *context, uint16_t index)
{
	struct engine *engine = context->engine;
	struct source *source = &context->owner.source;
	int result = source_open(engine, index, source);

	/* The root's moments are the device's. */
	context->owner.horizon = RECORD_NEWEST;
	if (result)
		source->partition = NULL;
	else if (index != RECORD_ROOT_INDEX)
		result = history_horizon(engine, source->partition->history, context->root->history,
					 source->partition->created_sequence,
					 &context->owner.horizon);
	return result;
}

/* False: that can't be read. */
static bool learn_owner(struct keep_context *context, uint16_t index)
{
	if (context->owner.known && context->owner.index == index)
		return !context->owner.failed;
	forget_owner(context);
	context->owner.known = true;
	context->owner.index = index;
	context->owner.failed = find_owner(context, index) != 0;
	return !context->owner.failed;
}

/*
 * Whether a record is of the owner of its index. Otherwise it is of an earlier one, and nothing
 * shows that any more.
 */
static bool is_of_owner(const struct keep_context *context, uint64_t sequence)
{
	const struct partition *owner = context->owner.source.partition;

	return owner->index == RECORD_ROOT_INDEX ||
	       (owner->created_sequence && sequence >= owner->created_sequence);
}

/* ---- bounds ---- */

static int lower(const struct idset *set, uint64_t sequence, uint64_t *lowest)
{
	uint64_t bound;
	int result = history_next_kept(set, sequence, &bound, NULL);

	if (!result && bound < *lowest)
		*lowest = bound;
	return result;
}

/* The first bound >= `sequence` that the device keeps as one of many, and shows the owner at. */
static uint64_t next_of_device(const struct keep_context *context, uint64_t sequence)
{
	uint64_t bound = max_u64(sequence, context->device_horizon);

	return is_of_owner(context, sequence)
		       ? left_out_pass(context->owner.source.partition->history, bound)
		       : bound;
}

/* The first of the moments that are kept at intervals, of the device and of who has the index. */
static int lower_by_interval(const struct keep_context *context, uint64_t sequence,
			     uint64_t *lowest)
{
	const struct history *device = context->root->history;
	const struct partition *owner = context->owner.source.partition;
	int result;

	if (!is_of_owner(context, sequence))
		return history_lower_by_interval(context->engine, device, device, 0, sequence,
						 lowest);
	result = left_out_lower_by_interval(context->engine, owner->history, device, sequence,
					    lowest);
	if (result || owner == context->root)
		return result;
	return history_lower_by_interval(context->engine, owner->history, device,
					 owner->created_sequence, sequence, lowest);
}

/*
 * The lowest bound >= `sequence` that is kept of an index: by the device, which can show more than
 * an owner that kept nothing later, or by the owner, from `horizon` on.
 */
static int lowest_kept(struct keep_context *context, uint64_t sequence, uint64_t horizon,
		       uint64_t *lowest)
{
	struct engine *engine = context->engine;
	struct idset set = history_versions(engine, context->root);
	int result;

	*lowest = min_u64(next_of_device(context, sequence), max_u64(sequence, horizon));
	result = lower(&set, sequence, lowest);
	if (!result && is_of_owner(context, sequence)) {
		set = history_versions(engine, context->owner.source.partition);
		result = lower(&set, sequence, lowest);
		set = history_clones(engine, context->owner.source.partition);
		if (!result && context->owner.index != RECORD_ROOT_INDEX)
			result = lower(&set, sequence, lowest);
	}
	return result ? result : lower_by_interval(context, sequence, lowest);
}

/* The same, remembered. */
static int lowest_bound(struct keep_context *context, uint16_t index, uint64_t sequence,
			uint64_t horizon, uint64_t *lowest)
{
	bool of_owner = is_of_owner(context, sequence);
	int result;

	if (context->kept.known && context->kept.index == index &&
	    context->kept.of_owner == of_owner && sequence >= context->kept.from &&
	    sequence <= context->kept.bound) {
		*lowest = context->kept.bound;
		return 0;
	}
	result = lowest_kept(context, sequence, horizon, lowest);
	context->kept.known = !result;
	context->kept.index = index;
	context->kept.of_owner = of_owner;
	context->kept.from = sequence;
	context->kept.bound = *lowest;
	return result;
}

/* Inserts into an ascending list without doubles. False: there is no room. */
static bool add_bound(uint64_t *bounds, uint32_t *count, uint64_t bound)
{
	uint32_t at = 0;

	while (at < *count && bounds[at] < bound)
		at++;
	if (at < *count && bounds[at] == bound)
		return true;
	if (*count == BOUNDS_MAX)
		return false;
	memmove(&bounds[at + 1], &bounds[at], (*count - at) * sizeof(*bounds));
	bounds[at] = bound;
	(*count)++;
	return true;
}

/*
 * A rollback to a number not before the record's may bring it back: it is looked for at the first
 * moment from then on. Those of one scope are in order, so many have the same one.
 */
static int add_rollbacks_of(struct keep_context *context, uint16_t partition, uint64_t identifier,
			    uint64_t sequence, uint64_t horizon, uint64_t *bounds, uint32_t *count)
{
	const struct hidden *hidden = &context->engine->past->hidden;
	uint32_t rollbacks,
		first = hidden_range(hidden, partition, identifier, identifier, &rollbacks);
	uint64_t lowest = 0;

	for (uint32_t index = first; index < first + rollbacks; index++) {
		const struct hidden_interval *interval = &hidden->list[index];
		int result;

		if (interval->to < sequence || interval->at <= lowest)
			continue;
		result = lowest_kept(context, interval->at, horizon, &lowest);
		if (result)
			return result;
		if (!add_bound(bounds, count, lowest))
			return -ENOSPC;
	}
	return 0;
}

static int add_rollbacks(struct keep_context *context, const struct record_key *key,
			 uint64_t sequence, uint64_t horizon, uint64_t *bounds, uint32_t *count)
{
	int result =
		add_rollbacks_of(context, RECORD_ROOT_INDEX, 0, sequence, horizon, bounds, count);

	if (!result && key->partition != RECORD_ROOT_INDEX)
		result = add_rollbacks_of(context, key->partition, 0, sequence, horizon, bounds,
					  count);
	if (!result && key_is_data(key))
		result = add_rollbacks_of(context, key->partition, key->identifier, sequence,
					  horizon, bounds, count);
	return result;
}

static int collect_bounds(struct keep_context *context, const struct record_key *key,
			  const struct record_info *info, uint64_t *bounds, uint32_t *count)
{
	uint64_t sequence = info->sequence, horizon = RECORD_NEWEST;
	int result;

	if (is_of_owner(context, sequence))
		horizon = context->owner.horizon;
	if (sequence > horizon ||
	    (sequence > context->device_horizon && next_of_device(context, sequence) == sequence)) {
		/* A moment of its own, or, as far as records are absorbed, the end of its slot. */
		bounds[(*count)++] = info->flags & RECORD_ABSORB ? slot_end(sequence) : sequence;
		return 0;
	}
	result = lowest_bound(context, key->partition, sequence, horizon, &bounds[0]);
	if (result)
		return result;
	*count = 1;
	return add_rollbacks(context, key, sequence, horizon, bounds, count);
}

static uint32_t boundaries(void *context_, const struct record_key *key,
			   const struct record_info *info, uint64_t *bounds, uint32_t max)
{
	struct keep_context *context = context_;
	uint64_t found[BOUNDS_MAX];
	uint32_t count = 0;

	if (key_is_timeless(key))
		return 0;
	if (context->failed || !learn_owner(context, key->partition) ||
	    collect_bounds(context, key, info, found, &count))
		return max + 1;
	for (uint32_t at = 0; at < count && at < max; at++)
		bounds[at] = found[at];
	return count;
}

/* ---- reachability ---- */

/* The partition of an index as of `bound`. NULL: none. Errors are negative. */
static int find_state(struct keep_context *context, uint16_t index, uint64_t bound)
{
	int result;

	if (context->state.known && context->state.index == index && context->state.bound == bound)
		return 0;
	context->state.state = (struct partition){ 0 };
	result = partition_state_of(context->engine->store, index, bound, &context->state.state);
	context->state.known = !result || result == -ENOENT;
	context->state.exists = !result;
	context->state.index = index;
	context->state.bound = bound;
	return context->state.known ? 0 : result;
}

/*
 * The object as of `bound`; NULL when it does not exist there. Negative errno when that can't be
 * read.
 */
static int find_object(struct keep_context *context, const struct record_key *key, uint64_t bound)
{
	int result;

	if (context->object.known && context->object.index == key->partition &&
	    context->object.identifier == key->identifier && context->object.bound == bound)
		return 0;
	onode_free(context->object.onode);
	context->object.onode = NULL;
	context->object.known = false;
	result = onode_load(context->engine->store, key->partition, key->identifier, bound,
			    partition_objects_since(&context->state.state), 0,
			    &context->object.onode);
	if (result && result != -ENOENT)
		return result;
	context->object.known = true;
	context->object.index = key->partition;
	context->object.identifier = key->identifier;
	context->object.bound = bound;
	return 0;
}

static bool object_reaches(const struct onode *onode, uint32_t piece, uint64_t sequence)
{
	const struct extent *extent;

	if (!onode)
		return false;
	if (piece >= ENGINE_PIECES_MAX)
		return sequence >= onode->head.created_sequence;
	/*
	 * One that came back after it had been removed has data from before it was created again.
	 */
	extent = extents_find(&onode->extents, piece);
	return extent && sequence >= extent->min_sequence;
}

/* Errors count as reachable. */
static bool is_reachable(void *context_, const struct record_key *key,
			 const struct record_info *info, uint64_t bound)
{
	struct keep_context *context = context_;

	if (key->partition == RECORD_ROOT_INDEX || context->failed ||
	    !learn_owner(context, key->partition))
		return true;
	/*
	 * Were the newest history of an index dropped, an older one, of an earlier owner, would be
	 * the newest.
	 */
	if (key->identifier == RECORD_ID_HISTORY)
		return true;
	if (!is_of_owner(context, info->sequence))
		return false;
	if (key_is_timeless(key))
		return true;
	/* Just put, it is reached. */
	if (bound == info->sequence || bound == slot_end(info->sequence))
		return true;
	if (find_state(context, key->partition, bound))
		return true;
	if (!context->state.exists || info->sequence < context->state.state.created_sequence)
		return false;
	if (key->identifier != 0 && info->sequence < context->state.state.origin.since)
		return false;
	if (key->identifier < ENGINE_FIRST_ID || key->piece == RECORD_ONODE_PIECE)
		return true;
	return find_object(context, key, bound) ||
	       object_reaches(context->object.onode, key->piece, info->sequence);
}

/* In a clone a tombstone hides what its source has. */
static bool keeps_lone_tombstone(void *context_, const struct record_key *key,
				 const struct record_info *info)
{
	struct keep_context *context = context_;

	if (key_is_timeless(key) || key->partition == RECORD_ROOT_INDEX)
		return false;
	if (context->failed || !learn_owner(context, key->partition))
		return true;
	return is_of_owner(context, info->sequence) &&
	       context->owner.source.partition->history->is_clone;
}

/* ---- merging ---- */

static int merge_step(struct engine *engine, struct record_merge *merge)
{
	struct keep_context context;
	const struct record_keep keep = {
		.context = &context,
		.boundaries = boundaries,
		.is_reachable = is_reachable,
		.keeps_lone_tombstone = keeps_lone_tombstone,
	};
	int result;

	context_begin(&context, engine);
	result = engine->store->operations->merge(engine->store, &keep, merge);
	context_end(&context);
	return result;
}

/* Gives free what nothing shows any more. */
static void review(struct engine *engine)
{
	hidden_review(engine);
	standing_review(engine);
}

/* Gives the oldest history up for so many segments. -EAGAIN: there is none that may go. */
static int reclaim(struct engine *engine, uint32_t segments)
{
	int result = -EAGAIN;

	/*
	 * It takes a little room itself, so a device that is full of what is needed does it once.
	 */
	if (engine->transactions > engine->past->reclaimed_at)
		result = retention_reclaim(
			engine, segments * RECLAIM_FACTOR * engine->store->limits.segment_bytes,
			RECORD_NEWEST);
	engine->past->reclaimed_at = engine->transactions;
	if (!result) {
		engine->past->merge_futile = 0;
		/* What clones stood on may have been for moments that are given up. */
		review(engine);
	}
	return result;
}

int engine_merge(struct engine *engine, struct engine_merge_result *total)
{
	const struct record_store_operations *operations = engine->store->operations;
	struct record_merge merge = { .segments_wanted = 1,
				      .live_permille_max = LIVE_PERMILLE_MAX };
	int result = -EOPNOTSUPP;

	pthread_rwlock_wrlock(&engine->turn);
	if (operations->merge) {
		retention_judge(engine);
		review(engine);
		result = merge_step(engine, &merge);
		if (result == -EAGAIN && operations->shortage(engine->store, false) &&
		    reclaim(engine, operations->shortage(engine->store, false)) == 0)
			result = merge_step(engine, &merge);
	}
	pthread_rwlock_unlock(&engine->turn);
	total->segments_freed += merge.segments_freed;
	total->records_moved += merge.records_moved;
	total->records_dropped += merge.records_dropped;
	return result;
}

/*
 * Whether a step was worth its time: what it moved takes clearly fewer segments than it freed.
 * Otherwise what is there is needed, whatever a single segment looks like.
 */
static bool has_gained(const struct record_merge *merge)
{
	return merge->segments_freed > merge->segments_taken + merge->segments_freed / GAIN_PART;
}

/*
 * One step for a store that is `shortage` segments short of room. -EAGAIN: it gained nothing.
 * *pages_read grows by those that it read.
 */
static int make_some_room(struct engine *engine, uint32_t shortage, uint64_t *pages_read)
{
	/*
	 * Several at once share the waits for the host's storage; the lower the room, the more, so
	 * that merging keeps up with writing.
	 */
	struct record_merge merge = { .segments_wanted =
					      (uint32_t)max_u64(shortage, SEGMENTS_AT_ONCE),
				      .live_permille_max = LIVE_PERMILLE_AUTOMATIC };
	int result = merge_step(engine, &merge);

	*pages_read += merge.pages_read;
	if (result == 0 && !has_gained(&merge))
		result = -EAGAIN;
	engine->past->merge_futile = result == 0 ? 0 : engine->past->merge_futile + 1;
	engine->past->merge_again = engine->transactions + FUTILE_TRANSACTIONS;
	engine->past->merge_again_ms = engine_time_now(engine) + FUTILE_MS;
	if (result && result != -EAGAIN && result != engine->past->warned_merge)
		log_line(LOG_LEVEL_WARNING, "merge: error %d; %s", -result,
			 result == -ENOSPC ? "no room to move what is needed"
					   : "a segment stays as it is");
	if (result != -EAGAIN)
		engine->past->warned_merge = result;
	return result;
}

/*
 * Whether all segments have been looked at for nothing, and nothing has happened since that could
 * have changed that.
 */
static bool is_pointless(struct engine *engine)
{
	uint64_t now = engine_time_now(engine);

	if (engine->past->merge_futile <= engine->store->operations->merge_calls_max(engine->store))
		return false;
	if (engine->transactions >= engine->past->merge_again)
		return false;
	/* A clock that was set back must not hold up anything. */
	if (now < engine->past->merge_again_ms && now + FUTILE_MS >= engine->past->merge_again_ms)
		return true;
	engine->past->merge_futile = FUTILE_STEPS_RECLAIM;
	return false;
}

/* Partitions are created, and few indices are free. */
static void look_for_indices(struct engine *engine)
{
	retention_judge(engine);
	do
		standing_review(engine);
	while (--engine->indices_wanted && engine->indices_known);
	engine->indices_wanted = 0;
}

void merge_before(struct engine *engine, enum engine_mode mode)
{
	const struct record_store_operations *operations = engine->store->operations;
	uint64_t pages_read = 0;

	hidden_review_if_due(engine);
	if (engine->indices_wanted)
		look_for_indices(engine);
	if (!operations->merge || engine->options.merge_manual)
		return;
	/* It takes little, and who comes next makes up for it. */
	if (mode == ENGINE_HISTORY && !operations->shortage(engine->store, true))
		return;
	for (int step = 0; step < STEPS_PER_TRANSACTION && pages_read < READS_PER_TRANSACTION;
	     step++) {
		uint32_t shortage = operations->shortage(engine->store, false);

		if (!shortage || is_pointless(engine))
			return;
		if (step == 0) {
			retention_judge(engine);
			review(engine);
		}
		if (make_some_room(engine, shortage, &pages_read) == 0)
			continue;
		/* What is left is needed; the oldest history is the first to be needed no more. */
		if (engine->past->merge_futile >= FUTILE_STEPS_RECLAIM && reclaim(engine, shortage))
			return;
	}
}

/* What is removed makes room: look for it again. What is noted for merging removes nothing. */
void merge_after(struct engine_txn *txn)
{
	if (!txn->is_aside && (txn->mode == ENGINE_FREE || txn->mode == ENGINE_RESCUE ||
			       txn->rolled_back || txn->object_rolled_back))
		txn->engine->past->merge_futile = 0;
}

/* ---- room for a command that puts much ---- */

static uint64_t free_bytes(struct engine *engine)
{
	uint64_t capacity = engine->store->limits.capacity_bytes;
	struct record_statistics statistics = { 0 };

	engine->store->operations->statistics(engine->store, &statistics);
	return capacity - min_u64(statistics.used_bytes, capacity);
}

static uint64_t with_loss(uint64_t bytes)
{
	return bytes + bytes / ROOM_LOST_PART;
}

bool merge_has_space(struct engine *engine, uint64_t bytes)
{
	/* So little goes into what is buffered, or each command makes room for it. */
	return !engine->store->operations->merge || bytes <= engine->store->limits.segment_bytes ||
	       with_loss(bytes) <= free_bytes(engine);
}

bool merge_fits(struct engine *engine, uint64_t bytes)
{
	return bytes <= engine->store->limits.capacity_bytes;
}

/* -EAGAIN: another step is needed. -ENOSPC: none will help. */
static int step_to_room(struct engine *engine, const struct engine_room *wanted)
{
	uint32_t futile_max = engine->store->operations->merge_calls_max(engine->store);
	uint64_t bytes = with_loss(wanted->bytes), found = free_bytes(engine);
	uint64_t pages_read = 0;

	/* Segments that are being filled may take so much in addition. */
	bytes += engine->store->limits.segments_open * engine->store->limits.segment_bytes;
	if (found >= bytes)
		return 0;
	if (make_some_room(engine, SEGMENTS_AT_ONCE, &pages_read) == 0)
		return -EAGAIN;
	if (engine->past->merge_futile < FUTILE_STEPS_RECLAIM)
		return -EAGAIN;
	if (retention_reclaim(engine, bytes - found, wanted->moment) == 0) {
		engine->past->merge_futile = 0;
		review(engine);
		return -EAGAIN;
	}
	return engine->past->merge_futile > futile_max ? -ENOSPC : -EAGAIN;
}

int engine_make_room_for(struct engine *engine, const struct engine_room *wanted)
{
	int result = -EAGAIN;

	if (!engine->store->operations->merge || engine->options.merge_manual)
		return -ENOSPC;
	for (int step = 0; result == -EAGAIN && step < STEPS_FOR_ONE_MAX; step++) {
		pthread_rwlock_wrlock(&engine->turn);
		if (step == 0) {
			retention_judge(engine);
			review(engine);
		}
		result = step_to_room(engine, wanted);
		pthread_rwlock_unlock(&engine->turn);
	}
	return result == -EAGAIN ? -ENOSPC : result;
}
