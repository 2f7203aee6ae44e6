/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Clones: partitions that begin as another one was. How they read is in lineage.h. */
#include "common/bytes.h"
#include "engine/history/moments.h"
#include "engine/history/standing.h"
#include "engine/history/times.h"
#include "engine/history/versions.h"

/* ---- who stands on whom ---- */

/* Notes that clone `index` stands on a bound of a partition. */
static int stand_on(struct engine_txn *txn, struct partition *source, uint64_t bound,
		    uint16_t index)
{
	struct idset clones = history_clones(txn->engine, source);
	int result = idset_insert(&clones, &txn->writer, history_element(bound, index));

	if (result)
		return result == -EEXIST ? 0 : result;
	partition_mark_history(txn, source);
	return 0;
}

/* ---- making ---- */

/* When the contents of a moment came about. 0: not known, the table of times begins later. */
static int time_of_bound(struct engine *engine, const struct partition *root, uint64_t bound,
			 uint64_t *ms)
{
	uint64_t last_ms;
	int result = times_of_boundary(engine, root->history, bound, ms, &last_ms);

	return result == -ENOENT ? 0 : result;
}

/* Lets a new partition begin as `state`, which is its source as of `bound`, at about `ms`. */
static int inherit(struct engine_txn *txn, struct partition *clone, const struct partition *state,
		   uint64_t bound, uint64_t ms, bool writable)
{
	memcpy(clone->sets, state->sets, sizeof(clone->sets));
	usage_change(txn, clone->used_bytes, state->used_bytes);
	clone->used_bytes = state->used_bytes;
	clone->is_unlogged = state->is_unlogged;
	clone->origin = (struct partition_origin){
		.index = state->index,
		.associated = true,
		.writable = writable,
		.bound = bound,
		.since = txn->sequence,
		.ms = ms,
	};
	clone->history->is_clone = true;
	partition_mark_history(txn, clone);
	lineage_note(&txn->engine->lineage, clone->index);
	lineage_forget(&txn->engine->lineage);
	return partition_put_now(txn, clone);
}

/* Copies the attributes of a partition as of `bound` to its new clone. */
static int copy_attributes(struct engine_txn *txn, uint64_t source, uint64_t bound, uint64_t clone)
{
	struct engine_address address = { .partition = clone };
	struct target then, now;
	int result = target_open(txn, address, TARGET_READ, &now);

	if (result)
		return result;
	result = target_open_at(txn, source, 0, bound, &then);
	if (!result)
		result = target_change(&now);
	if (!result)
		result = attribute_set_add_all(&now.onode->attributes, &then.onode->attributes);
	target_close(&now);
	return result;
}

struct cloning {
	struct partition_pair of; /* the source */
	uint64_t bound, ms;       /* when that was; 0: not known */
	struct partition state;   /* of the source as of the bound */
};

static int make_clone(struct engine_txn *txn, struct cloning *cloning, uint64_t requested,
		      bool writable, uint64_t *chosen)
{
	struct engine *engine = txn->engine;
	struct partition *clone;
	uint64_t id;
	int result = engine_partition_create(txn, requested, &id);

	if (result)
		return result;
	result = partition_get(engine, id, &clone);
	if (result)
		return result;
	result = stand_on(txn, cloning->of.partition, cloning->bound, clone->index);
	if (!result)
		result =
			inherit(txn, clone, &cloning->state, cloning->bound, cloning->ms, writable);
	partition_release(engine, clone);
	cloning->of.root->history->device.clones++;
	partition_mark_history(txn, cloning->of.root);
	if (!result)
		result = copy_attributes(txn, cloning->of.partition->id, cloning->bound, id);
	if (!result && chosen)
		*chosen = id;
	return result;
}

/* Learns when the contents of the clone came about. Versions know it longer than the table. */
static int learn_time(struct engine_txn *txn, struct cloning *cloning, struct engine_moment moment)
{
	struct engine *engine = txn->engine;
	struct version_record version;
	struct partition *scope = cloning->of.partition;
	int result = time_of_bound(engine, cloning->of.root, cloning->bound, &cloning->ms);

	if (result || cloning->ms || moment.kind != ENGINE_AT_VERSION ||
	    moment.value >= ENGINE_VIEW_FIRST)
		return result;
	if (version_is_of_device((uint32_t)moment.value))
		scope = cloning->of.root;
	result = version_read(engine, scope, (uint32_t)moment.value, &version);
	if (!result)
		cloning->ms = version.time_ms;
	return result;
}

/* What the source was at the moment. -EMLINK: clones stand on one another too deep already. */
static int learn_source(struct engine_txn *txn, struct cloning *cloning, uint64_t source,
			struct engine_moment moment)
{
	struct engine *engine = txn->engine;
	int result = moment_resolve(txn, cloning->of.partition, moment, &cloning->bound);

	if (!result)
		result = partition_as_of(engine, source, cloning->bound, &cloning->state);
	/* The bound is one of the partition of now: an earlier one of that ID is another one. */
	if (!result && cloning->state.index != cloning->of.partition->index)
		result = -ENOENT;
	if (!result)
		result = learn_time(txn, cloning, moment);
	if (!result)
		result = lineage_depth(engine->store, cloning->state.index, cloning->bound);
	if (result >= ENGINE_CLONE_DEPTH_MAX)
		return -EMLINK;
	return result < 0 ? result : 0;
}

int engine_clone(struct engine_txn *txn, uint64_t source, struct engine_moment moment,
		 uint64_t requested, bool writable, uint64_t *chosen)
{
	struct cloning cloning = { 0 };
	int result;

	if (txn->mode == ENGINE_READ)
		return -EROFS;
	if (source == 0)
		return -ENOENT;
	result = partition_get_pair(txn->engine, source, &cloning.of);
	if (result)
		return result;
	result = learn_source(txn, &cloning, source, moment);
	if (!result)
		result = make_clone(txn, &cloning, requested, writable, chosen);
	partition_release_pair(txn->engine, &cloning.of);
	return result;
}

/* ---- refresh, detach ---- */

/* Calls `change` for a clone that is associated with its source. */
static int change_clone(struct engine_txn *txn, uint64_t id,
			int (*change)(struct engine_txn *txn, struct partition *root,
				      struct partition *clone))
{
	struct partition_pair pair;
	int result;

	if (txn->mode == ENGINE_READ)
		return -EROFS;
	result = partition_get_pair(txn->engine, id, &pair);
	if (result)
		return result;
	result = pair.partition->origin.associated ? partitions_limit_dirty(txn) : -ENOENT;
	if (!result)
		result = change(txn, pair.root, pair.partition);
	partition_release_pair(txn->engine, &pair);
	return result;
}

/* Lets a clone begin anew as its source, a current partition, is now. */
static int begin_anew(struct engine_txn *txn, struct partition *root, struct partition *clone,
		      struct partition *source)
{
	struct engine *engine = txn->engine;
	uint64_t bound = slot_end(engine->committed), ms = 0;
	int result = time_of_bound(engine, root, bound, &ms);

	if (!result)
		result = stand_on(txn, source, bound, clone->index);
	if (result)
		return result;
	txn->changed = txn->forgets_accesses = txn->forgets_states = true;
	txn->accesses_of = clone->id;
	cache_drop_partition(&engine->onodes, clone->index);
	cache_drop_partition(&engine->nodes, clone->index);
	partition_forget_facts(clone);
	return inherit(txn, clone, source, bound, ms, clone->origin.writable);
}

static int refresh(struct engine_txn *txn, struct partition *root, struct partition *clone)
{
	struct source source;
	int result = txn_begin_slot(txn, SLOT_KEEP);

	if (!result)
		result = source_open(txn->engine, clone->origin.index, &source);
	if (result)
		return result;
	result = source.is_gone ? -ENOENT : begin_anew(txn, root, clone, source.partition);
	source_close(txn->engine, &source);
	return result;
}

int engine_clone_refresh(struct engine_txn *txn, uint64_t clone)
{
	return change_clone(txn, clone, refresh);
}

static int detach(struct engine_txn *txn, struct partition *root, struct partition *clone)
{
	(void)root;
	clone->origin.associated = false;
	clone->origin.writable = true;
	txn->changed = true;
	partition_mark(txn, clone);
	return 0;
}

int engine_clone_detach(struct engine_txn *txn, uint64_t clone)
{
	return change_clone(txn, clone, detach);
}

int engine_clone_get(struct engine_txn *txn, uint64_t id, struct engine_clone *clone)
{
	struct engine *engine = txn->engine;
	struct partition *partition;
	struct source source;
	int result = partition_get(engine, id, &partition);

	if (result)
		return result;
	*clone = (struct engine_clone){ .sequence = partition->origin.bound,
					.time_ms = partition->origin.ms,
					.writable = partition->origin.writable };
	result = partition->origin.associated
			 ? source_open(engine, partition->origin.index, &source)
			 : -ENOENT;
	partition_release(engine, partition);
	if (result)
		return result;
	clone->source = source.partition->id; /* 0: it is gone */
	source_close(engine, &source);
	return 0;
}

int engine_clone_depth(struct engine_txn *txn, uint64_t id, uint32_t *depth)
{
	struct engine *engine = txn->engine;
	struct partition *partition;
	struct partition_origin origin;
	int result = partition_get(engine, id, &partition);

	if (result)
		return result;
	origin = partition->origin;
	partition_release(engine, partition);
	*depth = 0;
	if (!origin.index)
		return 0;
	result = lineage_depth(engine->store, origin.index, origin.bound);
	if (result < 0)
		return result;
	*depth = (uint32_t)result + 1;
	return 0;
}
