/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What merging must keep, told to the record store: the newest record at the present and at the end of every user version,
 * of objects that exist there. And when to merge.
 */
#include <errno.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/objects.h"

enum {
	/* Segments with more live bytes are left alone; the paper takes 80 %. */
	LIVE_PERMILLE_MAX = 800,
	/* By itself merging stops earlier: writers wait for it, and what is gained gets less and less. */
	LIVE_PERMILLE_AUTOMATIC = 700,
	SEGMENTS_AT_ONCE = 8,
	/* Before one transaction, so that none waits long. */
	STEPS_PER_TRANSACTION = 1,
	/* Transactions between two tries after a walk over all segments found nothing. */
	FUTILE_TRANSACTIONS = 256,
};

/* What was looked up last. Records of one object, and of one partition, tend to lie together. */
struct keep_context {
	struct engine *engine;
	struct {
		bool known, exists;
		uint16_t index;
		uint64_t created_sequence;
	} partition;
	struct {
		bool known;
		uint16_t index;
		uint16_t version;
		uint64_t at;
	} boundary;
	struct {
		bool known;
		uint16_t index;
		uint64_t identifier;
		uint64_t bound;
		struct onode *onode; /* NULL: does not exist there */
	} object;
};

/* ---- boundaries ---- */

/* The end of the user version that the record belongs to, if that has ended. */
static uint64_t lowest_boundary(struct keep_context *context, const struct record_key *key,
				uint16_t version, uint64_t sequence)
{
	struct record_key end = {
		.identifier = RECORD_ID_VERSIONS,
		.piece = version,
		.partition = key->partition,
	};
	uint8_t record[VERSION_RECORD_BYTES];
	struct record_info info;
	int result;

	if (key->partition == RECORD_ROOT_INDEX)
		return RECORD_NEWEST;
	if (!context->boundary.known || context->boundary.index != key->partition ||
	    context->boundary.version != version) {
		context->boundary.known = true;
		context->boundary.index = key->partition;
		context->boundary.version = version;
		context->boundary.at = RECORD_NEWEST;
		result = record_get(context->engine->store, end, RECORD_NEWEST, record,
				    sizeof(record), &info);
		if (result == 0 && info.length == sizeof(record))
			context->boundary.at = get_le48(record);
		else if (result != -ENOENT)
			context->boundary.at = 0; /* can't be read: see below */
	}
	/*
	 * The snapshot itself is put with the version that it ends, behind its end. Should the end be unreadable, the
	 * record is its own boundary: found there, it is kept.
	 */
	if (context->boundary.at < sequence)
		return context->boundary.at ? RECORD_NEWEST : sequence;
	return context->boundary.at;
}

static uint32_t boundaries(void *context, const struct record_key *key,
			   const struct record_info *info, uint64_t *bounds, uint32_t max)
{
	uint64_t lowest = lowest_boundary(context, key, info->version, info->sequence);

	if (lowest == RECORD_NEWEST)
		return 0;
	if (max)
		bounds[0] = lowest;
	return 1;
}

/* ---- reachability ---- */

/* False: the partition of this index is gone, or the record is of an earlier one. Errors count as reachable. */
static bool partition_reaches(struct keep_context *context, uint16_t index, uint64_t sequence)
{
	struct record_key key = { .identifier = RECORD_ID_STATE, .partition = index };
	struct partition state = { 0 };
	uint8_t record[PARTITION_STATE_BYTES];
	struct record_info info;
	int result;

	if (!context->partition.known || context->partition.index != index) {
		result = record_get(context->engine->store, key, RECORD_NEWEST, record,
				    sizeof(record), &info);
		if (!result)
			result = partition_decode(&state, record, info.length);
		context->partition.known = true;
		context->partition.index = index;
		context->partition.exists = result != -ENOENT;
		context->partition.created_sequence = result ? 0 : state.created_sequence;
	}
	return context->partition.exists && sequence >= context->partition.created_sequence;
}

/* The object as of `bound`; NULL when it does not exist there. Negative errno when that can't be read. */
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
			    context->partition.created_sequence, 0, &context->object.onode);
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

	if (!onode || sequence < onode->head.created_sequence)
		return false;
	if (piece >= ENGINE_PIECES_MAX)
		return true;
	extent = extents_find(&onode->extents, piece);
	return extent && sequence >= extent->min_sequence;
}

static bool is_reachable(void *context_, const struct record_key *key,
			 const struct record_info *info, uint64_t bound)
{
	struct keep_context *context = context_;

	if (key->partition == RECORD_ROOT_INDEX)
		return true;
	if (!partition_reaches(context, key->partition, info->sequence))
		return false;
	if (key->identifier < ENGINE_FIRST_ID || key->piece == RECORD_ONODE_PIECE)
		return true;
	return find_object(context, key, bound) ||
	       object_reaches(context->object.onode, key->piece, info->sequence);
}

/* ---- merging ---- */

static int merge_step(struct engine *engine, uint32_t wanted, uint32_t live_permille_max,
		      struct engine_merge_result *total)
{
	struct keep_context context = { .engine = engine };
	const struct record_keep keep = {
		.context = &context,
		.boundaries = boundaries,
		.is_reachable = is_reachable,
	};
	struct record_merge merge = { .segments_wanted = wanted,
				      .live_permille_max = live_permille_max };
	int result = engine->store->operations->merge(engine->store, &keep, &merge);

	onode_free(context.object.onode);
	total->segments_freed += merge.segments_freed;
	total->records_moved += merge.records_moved;
	total->records_dropped += merge.records_dropped;
	return result;
}

int engine_merge(struct engine *engine, struct engine_merge_result *total)
{
	int result = -EOPNOTSUPP;

	pthread_rwlock_wrlock(&engine->turn);
	if (engine->store->operations->merge)
		result = merge_step(engine, 1, LIVE_PERMILLE_MAX, total);
	pthread_rwlock_unlock(&engine->turn);
	return result;
}

void engine_make_room(struct engine *engine)
{
	const struct record_store_operations *operations = engine->store->operations;
	struct engine_merge_result total = { 0 };

	if (!operations->merge || engine->options.merge_manual)
		return;
	for (int step = 0; step < STEPS_PER_TRANSACTION; step++) {
		uint32_t shortage = operations->shortage(engine->store);
		int result;

		if (!shortage ||
		    (engine->merge_futile > operations->merge_calls_max(engine->store) &&
		     engine->transactions < engine->merge_again))
			return;
		/*
		 * Several at once share the waits for the host's storage; the lower the room, the more, so that
		 * merging keeps up with writing.
		 */
		result = merge_step(engine,
				    shortage < SEGMENTS_AT_ONCE ? SEGMENTS_AT_ONCE : shortage,
				    LIVE_PERMILLE_AUTOMATIC, &total);
		engine->merge_futile = result == 0 ? 0 : engine->merge_futile + 1;
		engine->merge_again = engine->transactions + FUTILE_TRANSACTIONS;
		if (result && result != -EAGAIN)
			log_line(LOG_LEVEL_WARNING, "merge: error %d; %s", -result,
				 result == -ENOSPC ? "no room to move what is needed"
						   : "a segment stays as it is");
	}
}
