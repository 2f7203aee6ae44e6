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
	/* States that are read to learn about one bound; if it takes more, it stays. */
	STATES_READ_MAX = 3 * ENGINE_ROLLBACKS_OF_ONE,
};

/* ---- sources ---- */

/*
 * Who has an index now; NULL: nobody. -EBADMSG: its state says that somebody does, the table of
 * partitions does not.
 */
static int owner_of(struct engine *engine, uint16_t index, struct partition **owner)
{
	struct partition state = { 0 };
	int result = partition_state_of(engine->store, index, RECORD_NEWEST, &state);

	*owner = NULL;
	if (result)
		return result == -ENOENT ? 0 : result;
	result = partition_get(engine, state.id, owner);
	return result == -ENOENT ? -EBADMSG : result;
}

int source_open(struct engine *engine, uint16_t index, struct source *source)
{
	int result;

	*source = (struct source){ .left = { .index = index } };
	result = owner_of(engine, index, &source->partition);
	if (result || source->partition)
		return result;
	source->partition = &source->left;
	result = history_read(engine->store, index, &source->left.history);
	return result;
}

void source_close(struct engine *engine, struct source *source)
{
	if (source->partition != &source->left)
		partition_release(engine, source->partition);
}

/*
 * Stores what has changed about a source. One that is gone and not needed any more gives its index
 * free.
 */
static int source_changed(struct engine_txn *txn, struct partition *root, struct source *source)
{
	struct history *history = &source->partition->history;
	struct idset reserved = history_clones(txn->engine, root);
	int result;

	if (source->partition != &source->left)
		partition_mark_history(txn, source->partition);
	else if (history->clones.count)
		return history_put(&txn->writer, source->left.index, history);
	if (history->clones.count)
		return 0;
	result = idset_remove(&reserved, &txn->writer, source->left.index);
	if (result && result != -ENOENT)
		return result;
	partition_mark_history(txn, root);
	if (source->partition != &source->left)
		return 0;
	txn->partitions_removed = true; /* an index is free again */
	return record_put(&txn->writer, key_of_history(source->left.index), RECORD_TOMBSTONE, NULL,
			  0);
}

/* ---- what shows a clone ---- */

/* A clone that stood, or stands, on a bound of a source. */
struct standing {
	struct engine *engine;
	struct partition *root;
	uint16_t source, index; /* of the clone */
	uint64_t bound;
	/*
	 * Who has the clone's index now; NULL: nobody. Then what is left of one that clones of its
	 * own stand on.
	 */
	struct partition *owner;
	struct history left;
};

/*
 * Whether clones of the clone stand on it at a moment from `from` to `to`. They do so on the index,
 * whoever has it now.
 */
static int clones_show(const struct standing *standing, uint64_t from, uint64_t to, bool *shows)
{
	struct partition any = { .index = standing->index, .history = standing->left };
	struct idset clones;

	if (standing->owner)
		any.history = standing->owner->history;
	clones = history_clones(standing->engine, &any);
	return history_set_shows(&clones, from, to, shows);
}

/*
 * Whether anything shows the partition that was created at `created_sequence` at a moment from
 * `from` to `to`.
 */
static int anything_shows(const struct standing *standing, uint64_t created_sequence, uint64_t from,
			  uint64_t to, bool *shows)
{
	int result = history_shows(standing->engine, standing->root, from, to, shows);

	if (!result && !*shows)
		result = clones_show(standing, from, to, shows);
	if (result || *shows || !standing->owner ||
	    standing->owner->created_sequence != created_sequence)
		return result;
	return history_shows(standing->engine, standing->owner, from, to, shows);
}

/*
 * Whether readers from `begin` to `end`, between two rollbacks, find the clone standing there at a
 * moment that can be reached. Goes back from state to state: each tells since when it has been so.
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
		if (state.origin.index == standing->source && state.origin.bound == standing->bound)
			result = anything_shows(standing, state.created_sequence,
						max_u64(since, begin), end, shows);
		if (result)
			return result;
		/* A clone is younger than what it stands on. */
		if (since <= begin || since <= standing->bound)
			return 0;
		end = since - 1;
	}
	return 0;
}

/* Goes back from rollback to rollback. */
static int is_shown(const struct standing *standing, uint32_t *states, bool *shows)
{
	const struct timeline *timeline = &standing->engine->timeline;
	uint64_t end = RECORD_NEWEST;

	*shows = false;
	while (!*shows && end > standing->bound) {
		const struct rollback *last = timeline_last(timeline, standing->index, end);
		uint64_t begin = last ? last->at : 0;
		int result = line_shows(standing, begin, end, states, shows);

		if (result || begin == 0)
			return result;
		end = begin - 1;
	}
	return 0;
}

static int learn_owner(struct standing *standing)
{
	int result = owner_of(standing->engine, standing->index, &standing->owner);

	if (result || standing->owner)
		return result;
	return history_read(standing->engine->store, standing->index, &standing->left);
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
	int result = learn_owner(&standing);

	*needed = true;
	if (result)
		return result;
	result = is_shown(&standing, states, needed);
	if (standing.owner)
		partition_release(engine, standing.owner);
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
	uint64_t from = history_element(bound, 0);
	bool needed = false, more = true;
	int result = 0;

	while (!result && !needed && more) {
		uint32_t states = 0;
		uint64_t element;
		size_t count;

		result = idset_list(&clones, from, &element, 1, &count, &more, &from);
		if (result || !count || element >> 16 != bound)
			break;
		result = is_needed(engine, root, partition->index, element, &states, &needed);
	}
	return result ? result : needed ? -EBUSY : 0;
}

int standing_release(struct engine_txn *txn, struct partition *partition, uint64_t bound)
{
	struct source source = { .partition = partition, .left = { .index = partition->index } };
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
			result = source_changed(txn, root, &source);
	}
	partition_release(txn->engine, root);
	return result;
}

/* ---- reviews ---- */

/* Bounds of one source that nothing shows any more. */
struct found {
	uint16_t source;
	uint32_t count;
	uint64_t elements[REVIEWED_AT_ONCE];
};

static int give_free(struct engine_txn *txn, void *context)
{
	const struct found *found = context;
	struct partition *root;
	struct source source;
	int result = partition_get(txn->engine, 0, &root);

	if (result)
		return result;
	result = source_open(txn->engine, found->source, &source);
	if (!result) {
		struct idset clones = history_clones(txn->engine, source.partition);

		for (uint32_t at = 0; !result && at < found->count; at++)
			result = remove_found(&clones, &txn->writer, found->elements[at]);
		if (!result)
			result = source_changed(txn, root, &source);
		source_close(txn->engine, &source);
	}
	partition_release(txn->engine, root);
	return result;
}

/* Looks at a source's bounds from where the last call ended, until *states is at its limit. */
static int review_source(struct engine *engine, struct partition *root, uint16_t index,
			 uint32_t *states, struct found *found)
{
	struct standing_review *review = &engine->review;
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
	struct idset reserved = history_clones(engine, root);
	uint64_t element, next;
	size_t count;
	bool more;
	int result =
		idset_list(&reserved, engine->review.source, &element, 1, &count, &more, &next);

	*over = !result && count == 0;
	if (result || *over)
		return result;
	/* The one that the last call was at may be gone. */
	if (element != engine->review.source)
		engine->review.element = 0;
	engine->review.source = (uint32_t)element;
	*index = (uint16_t)element;
	return 0;
}

/*
 * One step of a round: a source, or a part of its bounds. One that can't be looked at is passed
 * over until the next round.
 */
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
			engine->review.element = 0;
			engine->review.source = (uint32_t)index + 1;
		}
	}
	partition_release(engine, root);
	if (!result && found.count)
		result = engine_aside(engine, give_free, &found);
	return result;
}

void standing_review(struct engine *engine)
{
	uint32_t states = 0;
	bool over = false;
	int result = 0;

	/* Each source has a bound, and each bound takes a state. */
	for (int step = 0; !result && !over && states < STATES_AT_ONCE && step < STATES_AT_ONCE;
	     step++)
		result = review_some(engine, &states, &over);
	if (result && result != engine->review_told) {
		log_line(LOG_LEVEL_WARNING, "what clones stood on stays for now: error %d",
			 -result);
		engine->review_told = result;
	}
	engine->review.failed |= result != 0;
	if (!over)
		return;
	if (!engine->review.failed)
		engine->review_told = 0;
	engine->review = (struct standing_review){ 0 };
}
