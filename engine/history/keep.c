/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Tells who judges records what must be kept of each. */
#include "engine/history/keep.h"

#include <errno.h>

#include "common/bytes.h"
#include "engine/history/left_out.h"
#include "engine/objects/device_time.h"

/* Bounds that a record is looked for at, before those that are the same are taken together. */
#define BOUNDS_MAX 64

/* As if `without` were so, the device's history gives up for space what it may. */
static void imagine(struct keep_context *context)
{
	struct device_history *device = &context->device.device;

	if (!context->without || !context->without->spare)
		return;
	device->reclaimed = context->engine->committed;
	/* A lock that has ended keeps nothing any more. */
	device->reclaimed_ms = device_time_now(context->engine);
}

void keep_begin(struct keep_context *context, struct engine *engine,
		const struct keep_without *without, bool shares)
{
	*context = (struct keep_context){ .engine = engine, .without = without, .shares = shares };
	context->failed = partition_get(engine, 0, &context->root) != 0;
	if (context->failed)
		return;
	context->device = *context->root->history;
	imagine(context);
	context->failed = history_horizon(engine, &context->device, &context->device,
					  &context->device_horizon) != 0;
	if (without && !without->index)
		context->device_horizon = max_u64(context->device_horizon, without->horizon);
}

static void forget_owner(struct engine *engine, struct keep_owner *owner)
{
	if (owner->known && owner->source.partition)
		source_close(engine, &owner->source);
	owner->known = owner->kept.known = false;
}

void keep_end(struct keep_context *context)
{
	for (int at = 0; at < KEEP_OWNERS; at++)
		forget_owner(context->engine, &context->owners[at]);
	if (context->root)
		partition_release(context->engine, context->root);
	onode_free(context->object.onode);
}

/* ---- owners ---- */

/* False: whoever was remembered does not have the index any more. */
static bool open_remembered(struct engine *engine, uint16_t index, struct source *source)
{
	uint64_t id = 0;
	struct partition *partition;

	if (index != RECORD_ROOT_INDEX) {
		if (engine->past->owners[index % PAST_OWNERS].index != index)
			return false;
		id = engine->past->owners[index % PAST_OWNERS].partition;
		if (!id)
			return false;
	}
	if (partition_get(engine, id, &partition))
		return false;
	*source = (struct source){ .partition = partition };
	if (partition->index == index)
		return true;
	source_close(engine, source);
	return false;
}

/* As source_open; without a look-up if the owner is the one of the last time. */
static int open_owner(struct engine *engine, uint16_t index, bool shares, struct source *source)
{
	int result = 0;

	if (open_remembered(engine, index, source))
		return 0;
	result = source_open(engine, index, source);
	/* Who shares the turn changes nothing that others look at. */
	if (!result && !source->is_gone && !shares) {
		engine->past->owners[index % PAST_OWNERS].index = index;
		engine->past->owners[index % PAST_OWNERS].partition = source->partition->id;
	}
	return result;
}

/* No moment of an index before this bound counts. */
static uint64_t horizon_without(const struct keep_context *context, uint16_t index)
{
	const struct keep_without *without = context->without;

	return without && (!without->index || without->index == index) ? without->horizon : 0;
}

/* A removed partition may come back, so its own history says what is kept. */
static int find_owner(struct keep_context *context, struct keep_owner *owner)
{
	struct engine *engine = context->engine;
	struct source *source = &owner->source;
	int result = open_owner(engine, owner->index, context->shares, source);

	/* The root's moments are the device's. */
	owner->horizon = RECORD_NEWEST;
	if (result)
		source->partition = NULL;
	else if (owner->index != RECORD_ROOT_INDEX)
		result = history_horizon(engine, source->partition->history, &context->device,
					 &owner->horizon);
	if (!result)
		owner->horizon = max_u64(owner->horizon, horizon_without(context, owner->index));
	return result;
}

/* False: that can't be read. */
static bool learn_owner(struct keep_context *context, uint16_t index)
{
	struct keep_owner *owner = &context->owners[index % KEEP_OWNERS];

	context->owner = owner;
	if (owner->known && owner->index == index)
		return !owner->failed;
	forget_owner(context->engine, owner);
	owner->known = true;
	owner->index = index;
	owner->failed = find_owner(context, owner) != 0;
	return !owner->failed;
}

/* Whether a record is of its index's owner. Nothing shows those of earlier owners any more. */
static bool is_of_owner(const struct keep_context *context, uint64_t sequence)
{
	const struct partition *owner = context->owner->source.partition;

	return owner->index == RECORD_ROOT_INDEX ||
	       (owner->created_sequence && sequence >= owner->created_sequence);
}

/* ---- bounds ---- */

/* Whether a version of an index is to count as dropped. */
static bool is_dropped(const struct keep_context *context, uint16_t index, uint64_t bound)
{
	const struct keep_without *without = context->without;

	if (!without || without->index != index)
		return false;
	for (uint32_t n = 0; n < without->count; n++)
		if (without->bounds[n] == bound)
			return true;
	return false;
}

static int lower_to_version(const struct keep_context *context, struct partition *partition,
			    uint64_t sequence, uint64_t *lowest)
{
	const struct idset set = history_versions(context->engine, partition);
	uint64_t bound;
	int result = history_next_kept(&set, sequence, &bound, NULL);

	while (!result && bound < *lowest && is_dropped(context, partition->index, bound))
		result = history_next_kept(&set, bound + 1, &bound, NULL);
	if (!result && bound < *lowest)
		*lowest = bound;
	return result;
}

static int lower(const struct idset *set, uint64_t sequence, uint64_t *lowest)
{
	uint64_t bound;
	int result = history_next_kept(set, sequence, &bound, NULL);

	if (!result && bound < *lowest)
		*lowest = bound;
	return result;
}

/* The first bound >= `sequence` that is not before the device's horizon, and shows the owner. */
static uint64_t next_of_device(const struct keep_context *context, uint64_t sequence)
{
	uint64_t bound = max_u64(sequence, context->device_horizon);

	bound = max_u64(bound, horizon_without(context, context->owner->index));
	return is_of_owner(context, sequence)
		       ? left_out_pass(context->owner->source.partition->history, bound)
		       : bound;
}

/* Lowers *lowest to the first moment of an interval, of the device or of the index's owner. */
static int lower_by_interval(const struct keep_context *context, uint64_t sequence,
			     uint64_t *lowest)
{
	const struct history *device = context->root->history;
	const struct partition *owner = context->owner->source.partition;
	int result;

	sequence = max_u64(sequence, horizon_without(context, context->owner->index));
	if (!is_of_owner(context, sequence))
		return history_lower_by_interval(context->engine, device, device, sequence, lowest);
	result = left_out_lower_by_interval(context->engine, owner->history, device, sequence,
					    lowest);
	if (result || owner == context->root)
		return result;
	return history_lower_by_interval(context->engine, owner->history, device, sequence, lowest);
}

/* The lowest bound >= `sequence` that the device or, from `horizon` on, the owner keeps. */
static int lowest_kept(struct keep_context *context, uint64_t sequence, uint64_t horizon,
		       uint64_t *lowest)
{
	struct partition *owner = context->owner->source.partition;
	int result;

	*lowest = min_u64(next_of_device(context, sequence), max_u64(sequence, horizon));
	result = lower_to_version(context, context->root, sequence, lowest);
	if (!result && is_of_owner(context, sequence)) {
		const struct idset set = history_clones(context->engine, owner);

		if (owner != context->root)
			result = lower_to_version(context, owner, sequence, lowest);
		if (!result && context->owner->index != RECORD_ROOT_INDEX)
			result = lower(&set, sequence, lowest);
	}
	return result ? result : lower_by_interval(context, sequence, lowest);
}

/* The same, remembered. */
static int lowest_bound(struct keep_context *context, uint64_t sequence, uint64_t horizon,
			uint64_t *lowest)
{
	struct keep_owner *owner = context->owner;
	bool of_owner = is_of_owner(context, sequence);
	int result;

	if (owner->kept.known && owner->kept.of_owner == of_owner && sequence >= owner->kept.from &&
	    sequence <= owner->kept.bound) {
		*lowest = owner->kept.bound;
		return 0;
	}
	result = lowest_kept(context, sequence, horizon, lowest);
	owner->kept.known = !result;
	owner->kept.of_owner = of_owner;
	owner->kept.from = sequence;
	owner->kept.bound = *lowest;
	return result;
}

/* Inserts into an ascending list without doubles. False: it is full. */
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

/* The first of intervals from one on, in the order of `at`, that is behind `bound`. */
static uint32_t first_behind(const struct hidden *hidden, uint32_t from, uint32_t end,
			     uint64_t bound)
{
	while (from < end) {
		uint32_t middle = from + (end - from) / 2;

		if (hidden->list[middle].at <= bound)
			from = middle + 1;
		else
			end = middle;
	}
	return from;
}

/*
 * A rollback to behind a record brings it back, so the first moment from the rollback on needs it.
 *
 * A scope may have many rollbacks, and each record of a merge comes here. If none of them goes back
 * behind the record, one search tells. Those with the same first moment are passed over by another
 * one; there are at most BOUNDS_MAX such moments. What is left to step through are rollbacks before
 * the record that stand behind the last of these moments.
 */
static int add_rollbacks_of(struct keep_context *context, uint16_t partition, uint64_t identifier,
			    uint64_t sequence, uint64_t horizon, uint64_t *bounds, uint32_t *count)
{
	const struct hidden *hidden = &context->engine->past->hidden;
	uint32_t rollbacks,
		first = hidden_range(hidden, partition, identifier, identifier, &rollbacks);
	uint32_t end = first + rollbacks, work = 0;
	uint32_t index = first_behind(hidden, first, end, sequence);

	if (index == end || !hidden_targets_lead(&hidden->targets, partition, identifier,
						 identifier, sequence, RECORD_NEWEST, &work))
		return 0;
	while (index < end) {
		const struct hidden_interval *interval = &hidden->list[index++];
		uint64_t lowest = 0;
		int result;

		if (interval->to < sequence)
			continue;
		result = lowest_kept(context, interval->at, horizon, &lowest);
		if (result)
			return result;
		if (!add_bound(bounds, count, lowest))
			return -ENOSPC;
		index = first_behind(hidden, index, end, lowest);
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
		horizon = context->owner->horizon;
	if (sequence > horizon ||
	    (sequence > context->device_horizon && next_of_device(context, sequence) == sequence)) {
		/* A moment of its own, or, as far as records are absorbed, the end of its slot. */
		bounds[(*count)++] = info->flags & RECORD_ABSORB ? slot_end(sequence) : sequence;
		return 0;
	}
	result = lowest_bound(context, sequence, horizon, &bounds[0]);
	if (result)
		return result;
	*count = 1;
	return add_rollbacks(context, key, sequence, horizon, bounds, count);
}

const struct source *keep_source(struct keep_context *context, const struct record_key *key)
{
	if (context->failed || !learn_owner(context, key->partition))
		return NULL;
	return &context->owner->source;
}

int keep_next(struct keep_context *context, const struct record_key *key, uint64_t bound,
	      uint64_t *next)
{
	if (context->failed || !learn_owner(context, key->partition))
		return -EIO;
	return lowest_kept(context, bound, context->owner->horizon, next);
}

static uint32_t kept_bounds(void *context_, const struct record_key *key,
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
	if (onode->data.here)
		return false;
	/* An object that came back after its removal has data from before it was created again. */
	extent = extents_find(&onode->extents, piece);
	return extent && sequence >= extent->min_sequence;
}

/* A piece of an object, as of a number. */
struct reached {
	uint32_t piece;
	uint64_t sequence;
};

static bool is_reached(void *context, const struct cache_entry *entry)
{
	const struct reached *reached = context;

	return object_reaches((const struct onode *)entry, reached->piece, reached->sequence);
}

/*
 * Whether the object of now reaches the record, as far as memory tells. What it reaches now it has
 * reached since the record was put, unless it was gone meanwhile and has been brought back: then
 * that moment keeps more than it shows.
 */
static bool is_reached_now(struct keep_context *context, const struct record_key *key,
			   uint64_t sequence)
{
	const struct source *owner = &context->owner->source;
	struct reached reached = { .piece = key->piece, .sequence = sequence };

	return !owner->is_gone && sequence >= owner->partition->origin.since &&
	       cache_ask(&context->engine->onodes,
			 (struct cache_key){ .identifier = key->identifier,
					     .partition = key->partition },
			 is_reached, &reached);
}

/* Errors count as reachable. */
static bool is_reachable(void *context_, const struct record_key *key,
			 const struct record_info *info, uint64_t bound)
{
	struct keep_context *context = context_;

	if (key->partition == RECORD_ROOT_INDEX || context->failed ||
	    !learn_owner(context, key->partition))
		return true;
	/* Without the newest history of an index, an earlier owner's would be the newest. */
	if (key->identifier == RECORD_ID_HISTORY)
		return true;
	if (!is_of_owner(context, info->sequence))
		return false;
	if (key_is_timeless(key))
		return true;
	/* Just put, it is reached. */
	if (bound == info->sequence || bound == slot_end(info->sequence))
		return true;
	if (is_reached_now(context, key, info->sequence))
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
	       context->owner->source.partition->history->is_clone;
}

struct record_keep keep_of(struct keep_context *context)
{
	return (struct record_keep){
		.context = context,
		.bounds = kept_bounds,
		.is_reachable = is_reachable,
		.keeps_lone_tombstone = keeps_lone_tombstone,
	};
}
