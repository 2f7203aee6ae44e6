/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps the bounds that clones stand on, and releases those that nothing shows any more. */
#include "engine/history/standing.h"

#include "common/bytes.h"
#include "common/log.h"

enum {
	/* Bounds of one source that are looked at together. */
	REVIEWED_AT_ONCE = 64,
	/* States that one call reads, or a little more. */
	STATES_AT_ONCE = 1024,
	/* States that are read to learn about one bound or index; if it takes more, it stays. */
	STATES_READ_MAX = 12288,
};

/* ---- owners of indices ---- */

/*
 * The partition that is there under an index; NULL: none. An index that was given free has no
 * history. Its intervals are gone too, so an old state may show a partition that is not there, or
 * is under another index by now. With a history, such a state is -EBADMSG.
 */
static int owner_of(struct engine *engine, uint16_t index, struct partition **owner)
{
	struct partition state = { 0 };
	struct history history;
	int result = partition_state_of(engine->store, index, RECORD_NEWEST, &state);

	*owner = NULL;
	if (result)
		return result == -ENOENT ? 0 : result;
	result = partition_get(engine, state.id, owner);
	if (!result && (*owner)->index != index) {
		partition_release(engine, *owner);
		*owner = NULL;
	}
	if (result != -ENOENT)
		return result;
	result = history_read(engine->store, index, &history);
	return !result && history.created_sequence ? -EBADMSG : result;
}

int source_open(struct engine *engine, uint16_t index, struct source *source)
{
	struct partition *left = &source->left;
	int result;

	*source = (struct source){ .left = { .index = index, .history = &source->left_history } };
	result = owner_of(engine, index, &source->partition);
	if (result || source->partition)
		return result;
	source->is_gone = true;
	source->partition = left;
	result = history_read(engine->store, index, left->history);
	left->created_sequence = left->history->created_sequence;
	return result;
}

void source_close(struct engine *engine, struct source *source)
{
	if (source->partition != &source->left)
		partition_release(engine, source->partition);
}

int source_changed(struct engine_txn *txn, struct source *source)
{
	struct partition *partition = source->partition;

	if (source->is_gone)
		return history_put(&txn->writer, partition->index, partition->history);
	partition_mark_history(txn, partition);
	return 0;
}

/* ---- what is shown ---- */

/* A clone that stood, or stands, on a bound of a source; or, with source 0, any partition. */
struct standing {
	struct engine *engine;
	struct partition *root;
	struct source owner;    /* of the index of the clone, or of the partition */
	uint16_t source, index; /* the latter of the clone, or of the partition */
	uint64_t bound;         /* nothing that is looked for is older */
};

/* Whether this state is what is looked for. */
static bool is_wanted(const struct standing *standing, const struct partition *state)
{
	if (!standing->source)
		return state->id != 0;
	return state->origin.index == standing->source && state->origin.bound == standing->bound;
}

/*
 * Whether a moment from `from` to `to` shows the partition that was created at `created_sequence`.
 * A removed partition that comes back has its own moments again; these keep what it stood on, but
 * not its index.
 */
static int anything_shows(const struct standing *standing, uint64_t created_sequence, uint64_t from,
			  uint64_t to, bool *shows)
{
	struct partition *owner = standing->owner.partition;
	struct idset clones = history_clones(standing->engine, owner);
	int result = history_shows(standing->engine, standing->root, from, to, shows);

	if (result || *shows || !standing->source || owner->created_sequence != created_sequence)
		return result;
	result = history_set_shows(&clones, from, to, shows);
	if (result || *shows)
		return result;
	return history_shows(standing->engine, owner, from, to, shows);
}

/*
 * Whether a moment from `begin` to `end`, between two rollbacks, shows what is looked for. Goes
 * back from state to state; each tells since when it has been so.
 */
static int line_shows(const struct standing *standing, uint64_t begin, uint64_t end,
		      uint32_t *states, bool *shows)
{
	while (!*shows) {
		struct partition state;
		uint64_t since = 0;
		int result = partition_found_at(standing->engine->store, standing->index, end,
						&state, &since);

		if (++*states >= STATES_READ_MAX)
			*shows = true;
		if (result || !since)
			return result;
		if (is_wanted(standing, &state))
			result = anything_shows(standing, state.created_sequence,
						max_u64(since, begin), end, shows);
		if (result)
			return result;
		end = since - 1;
		if (since <= begin || end <= standing->bound)
			return 0;
	}
	return 0;
}

/*
 * Goes back from rollback to rollback, of the device and of the partition: moments before one may
 * show states that it hides from later readers.
 */
static int is_shown(const struct standing *standing, uint32_t *states, bool *shows)
{
	const struct hidden *hidden = &standing->engine->past->hidden;
	uint64_t end = RECORD_NEWEST;

	*shows = false;
	while (!*shows && end > standing->bound) {
		const struct hidden_interval *last = hidden_last(hidden, standing->index, end);
		uint64_t begin = last ? last->at : 0;
		int result = line_shows(standing, begin, end, states, shows);

		if (result || begin == 0)
			return result;
		end = begin - 1;
	}
	return 0;
}

/*
 * Whether the clone of an element (bound << 16 | index) of a source's set is still to be seen
 * standing there. Adds the states that it read for it.
 */
static int is_needed(struct engine *engine, struct partition *root, uint16_t source,
		     uint64_t element, uint32_t *states, bool *needed)
{
	struct standing standing = {
		.engine = engine,
		.root = root,
		.source = source,
		.index = (uint16_t)element,
		.bound = element >> 16,
	};
	int result = source_open(engine, standing.index, &standing.owner);

	*needed = true;
	if (result)
		return result;
	result = is_shown(&standing, states, needed);
	source_close(engine, &standing.owner);
	return result;
}

/* Whether a moment of the device still shows a partition that is gone, or a clone stands on it. */
static int is_index_needed(struct engine *engine, struct partition *root, uint16_t index,
			   uint32_t *states, bool *needed)
{
	struct standing standing = { .engine = engine, .root = root, .index = index };
	int result = source_open(engine, index, &standing.owner);

	*needed = true;
	if (result)
		return result;
	if (standing.owner.is_gone && standing.owner.partition->history->clones.count == 0) {
		standing.bound = max_u64(standing.owner.partition->created_sequence, 1) - 1;
		result = is_shown(&standing, states, needed);
	}
	source_close(engine, &standing.owner);
	return result;
}

/* ---- giving free ---- */

/* Removes what was just found in a set: if it is not there, the set is damaged. */
static int remove_found(struct idset *set, const struct record_writer *writer, uint64_t element)
{
	int result = idset_remove(set, writer, element);

	return result == -ENOENT ? -EBADMSG : result;
}

/* -EBUSY: something shows a clone that stands on just this bound. */
static int check_bound(struct engine *engine, struct partition *root, struct partition *partition,
		       uint64_t bound)
{
	struct idset clones = history_clones(engine, partition);
	struct idset_walk walk = idset_walk_from(&clones, history_element(bound, 0));
	uint64_t element;
	int result;

	while ((result = idset_walk(&walk, &element)) > 0 && element >> 16 == bound) {
		uint32_t states = 0;
		bool needed;

		result = is_needed(engine, root, partition->index, element, &states, &needed);
		if (result || needed)
			return result ? result : -EBUSY;
	}
	return result < 0 ? result : 0;
}

int standing_release(struct engine_txn *txn, struct partition *partition, uint64_t bound)
{
	struct idset clones = history_clones(txn->engine, partition);
	uint64_t found = bound;
	struct partition *root;
	int result;

	/* Clones stand on partitions. */
	if (partition->index == RECORD_ROOT_INDEX)
		return 0;
	result = partition_get(txn->engine, 0, &root);
	if (result)
		return result;
	result = check_bound(txn->engine, root, partition, bound);
	/* Each turn removes one. */
	while (!result) {
		uint32_t index;

		result = history_next_kept(&clones, bound, &found, &index);
		if (result || found != bound)
			break;
		result = remove_found(&clones, &txn->writer, history_element(bound, index));
		if (!result)
			partition_mark_history(txn, partition);
	}
	partition_release(txn->engine, root);
	return result;
}

/* ---- reviews ---- */

/* Bounds of one source that nothing shows any more, or its index itself. */
struct found {
	uint16_t source;
	bool index_is_free;
	uint32_t count;
	uint64_t elements[REVIEWED_AT_ONCE];
};

/* Forgets what is in memory of an index's records: others take their places. */
static void forget_index(struct engine *engine, uint16_t index)
{
	cache_drop_partition(&engine->onodes, index);
	cache_drop_partition(&engine->nodes, index);
}

/* Its history goes with it: the next owner begins with one of its own. */
static int give_index_free(struct engine_txn *txn, struct partition *root, struct source *source)
{
	uint16_t index = source->partition->index;
	struct idset indices = history_indices(txn->engine, root);
	int result = remove_found(&indices, &txn->writer, index);

	if (result)
		return result;
	root->history->device.particular -= source->partition->history->particular;
	partition_mark_history(txn, root);
	txn->partitions_removed = true;
	forget_index(txn->engine, index);
	return record_put(&txn->writer, key_of_history(index), RECORD_TOMBSTONE, NULL, 0);
}

static int give_free(struct engine_txn *txn, struct partition *root, void *context)
{
	const struct found *found = context;
	struct source source;
	struct idset clones;
	int result = source_open(txn->engine, found->source, &source);

	if (result)
		return result;
	clones = history_clones(txn->engine, source.partition);
	for (uint32_t at = 0; !result && at < found->count; at++)
		result = remove_found(&clones, &txn->writer, found->elements[at]);
	if (!result && found->index_is_free && source.is_gone)
		result = give_index_free(txn, root, &source);
	else if (!result)
		result = source_changed(txn, &source);
	source_close(txn->engine, &source);
	return result;
}

/* Looks at a source's bounds from where the last call ended, until *states is at its limit. */
static int review_source(struct engine *engine, struct partition *root, uint16_t index,
			 uint32_t *states, struct found *found)
{
	struct standing_review *review = &engine->past->review;
	uint64_t elements[REVIEWED_AT_ONCE];
	struct source source;
	size_t count = 0, at = 0;
	bool more = false;
	int result = source_open(engine, index, &source);

	if (result)
		return result;
	struct idset clones = history_clones(engine, source.partition);

	*found = (struct found){ .source = index };
	result = idset_list(&clones, review->element, elements, REVIEWED_AT_ONCE, &count, &more,
			    &review->element);
	for (; !result && at < count && *states < STATES_AT_ONCE; at++) {
		bool needed;

		result = is_needed(engine, root, index, elements[at], states, &needed);
		if (!result && !needed)
			found->elements[found->count++] = elements[at];
	}
	source_close(engine, &source);
	++*states;
	if (!result && !more && at == count) {
		bool needed;

		result = is_index_needed(engine, root, index, states, &needed);
		found->index_is_free = !result && !needed;
	}
	if (!result && at < count) {
		review->element = elements[at];
	} else if (!more) {
		review->element = 0;
		review->source = (uint32_t)index + 1;
	}
	return result;
}

/* The next source of the round. *over: there is none. */
static int next_source(struct engine *engine, struct partition *root, uint16_t *index, bool *over)
{
	struct idset indices = history_indices(engine, root);
	struct standing_review *review = &engine->past->review;
	uint64_t element;
	int result = idset_next(&indices, review->source, &element);

	*over = result == -ENOENT;
	if (result)
		return *over ? 0 : result;
	/* The one that the last call was at may be gone. */
	if (element != review->source)
		review->element = 0;
	review->source = (uint32_t)element;
	*index = (uint16_t)element;
	return 0;
}

/* One step of a round: a source, or some of its bounds. What fails waits for the next round. */
static int review_some(struct engine *engine, uint32_t *states, bool *over)
{
	struct found found = { 0 };
	struct partition *root;
	uint16_t index = 0;
	int result = partition_get(engine, 0, &root);

	if (result)
		return result;
	result = next_source(engine, root, &index, over);
	if (!result && !*over) {
		result = review_source(engine, root, index, states, &found);
		if (result) {
			engine->past->review.element = 0;
			engine->past->review.source = (uint32_t)index + 1;
		}
	}
	partition_release(engine, root);
	if (!result && (found.count || found.index_is_free))
		result = engine_aside(engine, give_free, &found);
	/*
	 * The next owner of the index begins with nothing hidden. This comes after the index is
	 * free: without its intervals an old state may show a partition there again.
	 */
	if (!result && found.index_is_free)
		result = hidden_drop_partition(engine, index);
	if (!result && found.index_is_free)
		stale_say(&engine->memories, STALE_INDICES);
	return result;
}

/* Whether any partition is gone that may come back. */
static bool has_gone(const struct partition *root)
{
	return root->history->clones.count != root->sets[PARTITION_USER_OBJECTS].count;
}

/* Whether there is anything to look at: partitions that are gone, or clones. */
static int has_work(struct engine *engine, bool *has)
{
	struct partition *root;
	int result = partition_get(engine, 0, &root);

	*has = false;
	if (result)
		return result;
	*has = root->history->device.clones || has_gone(root);
	partition_release(engine, root);
	return 0;
}

/* ---- giving up what only partitions that are gone keep ---- */

static bool may_give_up(struct engine *engine, const struct source *source)
{
	const struct history *history = source->partition->history;

	return source->is_gone && (history->versions.count || history->particular) &&
	       history_policy(engine, history)->locked_until_ms <= device_time_now(engine);
}

/* From here on the device's policy counts for it; what it has not kept does not come back. */
static int keep_as_device_does(struct engine_txn *txn, struct partition *root, void *context)
{
	uint16_t index = *(const uint16_t *)context;
	struct history *history;
	struct source source;
	uint64_t horizon;
	int result = source_open(txn->engine, index, &source);

	if (result)
		return result;
	history = source.partition->history;
	result = history_horizon(txn->engine, history, root->history, &horizon);
	if (!result) {
		root->history->device.particular -= history->particular;
		partition_mark_history(txn, root);
		history->floor = max_u64(history->floor, horizon);
		history->particular = false;
		history->retention = (struct engine_retention){ 0 };
		/* Should it come back, moments of the device show it again. */
		if (history->left_from && !history->left_until)
			history->left_until = txn->sequence;
		history->versions =
			(struct idset_header){ .generation = history->versions.generation };
		forget_index(txn->engine, index);
		result = source_changed(txn, &source);
	}
	source_close(txn->engine, &source);
	return result;
}

/* The next partition from `*next` on that may give something up. *found = 0: there is none. */
static int find_in(struct engine *engine, struct partition *root, uint64_t *next, uint16_t *found)
{
	struct idset indices = history_indices(engine, root);
	struct idset_walk walk = idset_walk_from(&indices, *next);
	uint64_t index;
	int result = 0;

	while (!*found && has_gone(root) && (result = idset_walk(&walk, &index)) > 0) {
		struct source source;

		result = source_open(engine, (uint16_t)index, &source);
		if (result)
			return result;
		if (may_give_up(engine, &source))
			*found = (uint16_t)index;
		source_close(engine, &source);
		*next = index + 1;
	}
	return result < 0 ? result : 0;
}

static int find_to_give_up(struct engine *engine, uint64_t *next, uint16_t *found)
{
	struct partition *root;
	int result = partition_get(engine, 0, &root);

	*found = 0;
	if (result)
		return result;
	result = find_in(engine, root, next, found);
	partition_release(engine, root);
	return result;
}

int standing_give_up(struct engine *engine)
{
	uint64_t next = 0;
	uint16_t index;
	bool gave = false;
	int result = 0;

	for (int turn = 0; !result && turn < REVIEWED_AT_ONCE; turn++) {
		result = find_to_give_up(engine, &next, &index);
		if (result || !index)
			break;
		result = engine_aside(engine, keep_as_device_does, &index);
		gave |= !result;
	}
	return gave ? 0 : result ? result : -EAGAIN;
}

/* ---- rounds ---- */

/* Says once what keeps the review from going on; says it again when the error is another one. */
static void warn_review(struct engine *engine, int result)
{
	if (!result || result == engine->past->warned_review)
		return;
	log_line(LOG_LEVEL_WARNING,
		 "%s: can't tell what removed partitions and clones still need (error %d); "
		 "their space stays in use for now",
		 engine->store->device, -result);
	engine->past->warned_review = result;
}

/*
 * Goes on with the round until it is over, or enough was read for one call. A round without errors
 * ends the silence of warn_review.
 */
void standing_review(struct engine *engine)
{
	uint32_t states = 0;
	bool over = false, has;
	int result = has_work(engine, &has);

	if (!result && !has)
		return;
	for (int step = 0; !result && !over && states < STATES_AT_ONCE && step < STATES_AT_ONCE;
	     step++)
		result = review_some(engine, &states, &over);
	warn_review(engine, result);
	engine->past->review.failed |= result != 0;
	if (!over)
		return;
	if (!engine->past->review.failed)
		engine->past->warned_review = 0;
	engine->past->review = (struct standing_review){ 0 };
}
