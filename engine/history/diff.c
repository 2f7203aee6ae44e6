/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Differences between two moments of a partition. Sequence numbers tell what nobody touched in
 * between: an object has the number of its last modification, a piece the number of its record.
 */
#include "common/bytes.h"
#include "engine/history/moments.h"
#include "engine/objects/data.h"

/*
 * One call looks at so many objects and pieces. An object counts as less if it is known that no
 * command has changed it.
 */
#define LOOKS_MAX   16384
#define LOOKS_FULL  16
#define LOOKS_QUICK 1
/* IDs of a directory that are listed at once, at most. */
#define WINDOW_IDS 256

/* What comes next of the cursor's object. */
enum { STAGE_OBJECT, STAGE_DATA, STAGE_LENGTH, STAGE_ATTRIBUTES };

/* The next IDs of a directory. */
struct window {
	uint64_t ids[WINDOW_IDS];
	size_t count, at;
	size_t wanted; /* next time: a call that soon finds something needs few */
	bool known, more;
};

/* One of the two moments. */
struct side {
	struct target target; /* the object in question; its onode is owned, NULL: it does not exist
				 there */
	struct partition state;
	uint64_t bound;
	struct window windows[PARTITION_SETS];
	bool has_object; /* the directories of this side have the cursor's */
};

struct diff {
	struct engine_txn *txn;
	struct side from, to;
	struct engine_diff_cursor *cursor;
	struct engine_difference *found;
	uint32_t looks; /* left */
	/*
	 * Nothing was rolled back between the moments, so what was not put between them is the
	 * same.
	 */
	bool is_one_line;
};

/* ---- moments ---- */

static int open_side(struct engine_txn *txn, struct partition *current, struct engine_moment moment,
		     struct side *side)
{
	int result = moment_resolve(txn, current, moment, &side->bound);

	if (!result)
		result = partition_as_of(txn->engine, current->id, side->bound, &side->state);
	side->target = (struct target){
		.txn = txn, .partition = &side->state, .bound = side->bound, .old = true
	};
	return result;
}

/*
 * Whether a reader at the later moment sees every record that a reader at the earlier one sees,
 * under the same keys, and beside them only newer records.
 */
static bool are_on_one_line(const struct diff *diff)
{
	const struct engine *engine = diff->txn->engine;
	const struct partition *from = &diff->from.state, *to = &diff->to.state;
	const struct hidden_interval *last = hidden_last(&engine->past->hidden, from->index,
							 max_u64(diff->from.bound, diff->to.bound));

	return engine->store->operations->has_between && from->index == to->index &&
	       from->created_sequence == to->created_sequence &&
	       from->origin.since == to->origin.since &&
	       (!last || last->at <= min_u64(diff->from.bound, diff->to.bound));
}

static int open_sides(struct diff *diff, uint64_t partition, struct engine_moment from,
		      struct engine_moment to)
{
	struct engine *engine = diff->txn->engine;
	struct partition *current;
	int result = partition == 0 ? -ENOENT : partition_get(engine, partition, &current);

	if (result)
		return result;
	result = open_side(diff->txn, current, from, &diff->from);
	if (!result)
		result = open_side(diff->txn, current, to, &diff->to);
	diff->is_one_line = !result && are_on_one_line(diff);
	partition_release(engine, current);
	return result;
}

static void close_side(struct side *side)
{
	onode_free(side->target.onode);
	side->target.onode = NULL;
}

/* ---- objects ---- */

static int fill_window(struct diff *diff, struct side *side, int which, uint64_t id)
{
	struct idset set = partition_set(diff->txn->engine, &side->state, which, side->bound);
	struct window *window = &side->windows[which];
	uint64_t next;

	window->wanted = window->wanted ? min_u64(window->wanted * 4, WINDOW_IDS) : 1;
	window->at = 0;
	window->known = true;
	return idset_list(&set, id, window->ids, window->wanted, &window->count, &window->more,
			  &next);
}

/* Lowers *next to the first ID >= `id` of a side. */
static int lower_to_next(struct diff *diff, struct side *side, uint64_t id, uint64_t *next,
			 bool *any)
{
	for (int which = 0; which < PARTITION_SETS; which++) {
		struct window *window = &side->windows[which];
		int result = 0;

		while (window->at < window->count && window->ids[window->at] < id)
			window->at++;
		if (!window->known || (window->at == window->count && window->more))
			result = fill_window(diff, side, which, id);
		if (result)
			return result;
		if (window->at < window->count && (!*any || window->ids[window->at] < *next)) {
			*next = window->ids[window->at];
			*any = true;
		}
	}
	return 0;
}

static bool has_object(const struct side *side, uint64_t id)
{
	bool has = false;

	for (int which = 0; which < PARTITION_SETS; which++) {
		const struct window *window = &side->windows[which];

		has |= window->at < window->count && window->ids[window->at] == id;
	}
	return has;
}

/*
 * Moves the cursor to the first object of either side from its own on. -ENOENT: there are no more.
 */
static int find_object(struct diff *diff)
{
	uint64_t id = diff->cursor->object, next = 0;
	bool any = false;
	int result = lower_to_next(diff, &diff->from, id, &next, &any);

	if (!result)
		result = lower_to_next(diff, &diff->to, id, &next, &any);
	if (result)
		return result;
	if (!any)
		return -ENOENT;
	diff->cursor->object = next;
	diff->from.has_object = has_object(&diff->from, next);
	diff->to.has_object = has_object(&diff->to, next);
	return 0;
}

/*
 * Whether the object, which both sides have, is the same for certain: nothing was put under it
 * between them.
 */
static bool is_untouched(const struct diff *diff)
{
	const struct record_store *store = diff->txn->engine->store;
	const struct record_key key = key_of_onode(diff->from.state.index, diff->cursor->object);

	return diff->is_one_line && !diff->to.state.is_unlogged && diff->from.has_object &&
	       diff->to.has_object &&
	       store->operations->has_between(diff->txn->engine->store, &key,
					      min_u64(diff->from.bound, diff->to.bound),
					      max_u64(diff->from.bound, diff->to.bound)) == 0;
}

static int load_object(struct diff *diff, struct side *side)
{
	int result;

	close_side(side);
	result = onode_load(diff->txn->engine->store, side->state.index, diff->cursor->object,
			    side->bound, partition_objects_since(&side->state), diff->txn->sequence,
			    &side->target.onode);
	return result == -ENOENT ? 0 : result;
}

static void next_object(struct diff *diff)
{
	diff->cursor->passed += diff->from.has_object + diff->to.has_object;
	diff->cursor->offset = 0;
	diff->cursor->state = diff->cursor->object == UINT64_MAX ? ENGINE_DIFF_DONE : STAGE_OBJECT;
	diff->cursor->object++;
}

static bool is_user_object(const struct side *side)
{
	return side->target.onode->head.type == ENGINE_USER_OBJECT;
}

static void report(struct diff *diff, enum engine_difference_kind kind, uint64_t offset,
		   uint64_t length)
{
	*diff->found = (struct engine_difference){
		.kind = kind, .object = diff->cursor->object, .offset = offset, .length = length
	};
}

/* Whether the object is on one side only. 1: that was reported; 0: go on. */
static int compare_presence(struct diff *diff)
{
	const struct onode *from = diff->from.target.onode, *to = diff->to.target.onode;

	if (from && to && !data_is_unmodified(&diff->from.target, &diff->to.target)) {
		diff->cursor->state = is_user_object(&diff->from) && is_user_object(&diff->to)
					      ? STAGE_DATA
					      : STAGE_ATTRIBUTES;
		return 0;
	}
	if (!from == !to) {
		next_object(diff);
		return 0;
	}
	report(diff, to ? ENGINE_OBJECT_ADDED : ENGINE_OBJECT_REMOVED, 0,
	       to ? to->head.length : from->head.length);
	next_object(diff);
	return 1;
}

/* ---- data ---- */

/* The piece as that side has it, filled up with zeros. */
static int read_side(const struct side *side, uint32_t piece, uint8_t *page, uint32_t page_bytes)
{
	uint32_t length;
	int result = data_get(&side->target, piece, page, page_bytes, &length);

	if (!result)
		memset(page + length, 0, page_bytes - length);
	return result;
}

/* Which bytes of a piece differ: *first..*end - 1; none: equal. */
static int compare_piece(struct diff *diff, uint32_t piece, uint32_t *first, uint32_t *end)
{
	uint32_t page_bytes = diff->txn->engine->page_bytes, at = 0;
	uint64_t length = diff->to.target.onode->head.length - (uint64_t)piece * page_bytes;
	uint8_t *from = txn_page(diff->txn, TXN_PIECE), *to = txn_page(diff->txn, TXN_OTHER_PIECE);
	int result;

	*first = *end = 0;
	if (data_is_same_record(&diff->from.target, &diff->to.target, piece))
		return 0;
	result = read_side(&diff->from, piece, from, page_bytes);
	if (!result)
		result = read_side(&diff->to, piece, to, page_bytes);
	if (result)
		return result;
	length = min_u64(length, page_bytes);
	while (at < length && from[at] == to[at])
		at++;
	*first = at;
	for (*end = (uint32_t)length; *end > at && from[*end - 1] == to[*end - 1];)
		(*end)--;
	return 0;
}

/* The first piece from `piece` on that either side has; EXTENTS_NO_PIECE. */
static uint64_t next_piece(const struct diff *diff, uint64_t piece)
{
	return min_u64(extents_next_piece(&diff->from.target.onode->extents, piece),
		       extents_next_piece(&diff->to.target.onode->extents, piece));
}

/*
 * The next range of data that differs: it begins in the first piece that does, and goes on as long
 * as each next one differs from its first byte on. 1: reported; 0: go on.
 */
static int compare_data(struct diff *diff)
{
	uint64_t page_bytes = diff->txn->engine->page_bytes, begin = 0, end = 0;
	uint64_t size = diff->to.target.onode->head.length;
	uint64_t piece = next_piece(diff, diff->cursor->offset / page_bytes);

	while (piece * page_bytes < size && diff->looks) {
		uint32_t first, behind;
		int result = compare_piece(diff, (uint32_t)piece, &first, &behind);

		if (result)
			return result;
		diff->looks -= min_u64(diff->looks, LOOKS_FULL);
		if (end && (piece * page_bytes != end || first || !behind))
			break;
		if (behind > first) {
			begin = end ? begin : piece * page_bytes + first;
			end = piece * page_bytes + behind;
		}
		diff->cursor->offset = (piece + 1) * page_bytes;
		if (end && end < min_u64((piece + 1) * page_bytes, size))
			break;
		piece = next_piece(diff, piece + 1);
	}
	if (end) {
		report(diff, ENGINE_DATA_DIFFERS, begin, end - begin);
		return 1;
	}
	if (piece * page_bytes >= size)
		diff->cursor->state = STAGE_LENGTH;
	return 0;
}

/* ---- the rest of an object ---- */

static int compare_length(struct diff *diff)
{
	uint64_t from = diff->from.target.onode->head.length;
	uint64_t to = diff->to.target.onode->head.length;

	diff->cursor->state = STAGE_ATTRIBUTES;
	if (from == to)
		return 0;
	report(diff, ENGINE_LENGTH_DIFFERS, from < to ? from : to, to);
	return 1;
}

static int compare_attributes(struct diff *diff)
{
	const struct attribute_set *from = &diff->from.target.onode->attributes;
	const struct attribute_set *to = &diff->to.target.onode->attributes;
	bool same = from->length == to->length &&
		    (from->length == 0 || memcmp(from->bytes, to->bytes, from->length) == 0);

	if (!same)
		report(diff, ENGINE_ATTRIBUTES_DIFFER, 0, 0);
	next_object(diff);
	return same ? 0 : 1;
}

/*
 * Does what the cursor's stage asks for. 1: a difference was reported; 0: go on; -ENOENT: the end.
 */
static int step(struct diff *diff)
{
	int result = 0;

	if (diff->cursor->state == ENGINE_DIFF_DONE)
		return -ENOENT;
	if (diff->cursor->state == STAGE_OBJECT) {
		result = find_object(diff);
		if (!result && is_untouched(diff)) {
			next_object(diff);
			diff->looks += LOOKS_FULL - LOOKS_QUICK;
			return 0;
		}
		if (!result)
			result = load_object(diff, &diff->from);
		if (!result)
			result = load_object(diff, &diff->to);
		return result ? result : compare_presence(diff);
	}
	diff->from.has_object = diff->to.has_object = true;
	if (!diff->from.target.onode)
		result = load_object(diff, &diff->from);
	if (!result && !diff->to.target.onode)
		result = load_object(diff, &diff->to);
	if (result)
		return result;
	/* A cursor that belongs to other moments. */
	if (!diff->from.target.onode || !diff->to.target.onode)
		return -EINVAL;
	switch (diff->cursor->state) {
	case STAGE_DATA:
		return compare_data(diff);
	case STAGE_LENGTH:
		return compare_length(diff);
	default:
		return compare_attributes(diff);
	}
}

int engine_diff_next(struct engine_txn *txn, uint64_t partition, struct engine_moment from,
		     struct engine_moment to, struct engine_diff_cursor *cursor,
		     struct engine_difference *difference)
{
	struct diff diff = {
		.txn = txn, .cursor = cursor, .found = difference, .looks = LOOKS_MAX
	};
	int result;

	if (cursor->state == ENGINE_DIFF_DONE)
		return -ENOENT;
	if (cursor->state > STAGE_ATTRIBUTES)
		return -EINVAL;
	result = open_sides(&diff, partition, from, to);
	if (result)
		return result;
	while (!result && diff.looks) {
		diff.looks -= min_u64(diff.looks, LOOKS_FULL);
		result = step(&diff);
	}
	close_side(&diff.from);
	close_side(&diff.to);
	cursor->looks += LOOKS_MAX - diff.looks;
	if (result == -ENOENT)
		cursor->state = ENGINE_DIFF_DONE;
	return result > 0 ? 0 : result == 0 ? -EAGAIN : result;
}

/* ---- how far ---- */

/* An object counts so much at each moment, so that long ones show that something happens. */
#define PROGRESS_UNITS 1024

static uint64_t count_objects(const struct side *side)
{
	uint64_t count = 0;

	for (int which = 0; which < PARTITION_SETS; which++)
		count += side->state.sets[which].count;
	return count;
}

/* Of the cursor's object, at both moments together. */
static int count_units(struct diff *diff, uint64_t *units)
{
	const struct engine_diff_cursor *cursor = diff->cursor;
	uint64_t length;
	int result;

	*units = 0;
	if (cursor->state == STAGE_OBJECT)
		return 0;
	result = load_object(diff, &diff->to);
	if (result || !diff->to.target.onode)
		return result;
	length = diff->to.target.onode->head.length;
	*units = 2 * (cursor->offset < length ? cursor->offset / (length / PROGRESS_UNITS + 1)
					      : PROGRESS_UNITS);
	return 0;
}

int engine_diff_progress(struct engine_txn *txn, uint64_t partition, struct engine_moment from,
			 struct engine_moment to, const struct engine_diff_cursor *cursor,
			 uint64_t *done, uint64_t *total)
{
	struct engine_diff_cursor copy = *cursor;
	struct diff diff = { .txn = txn, .cursor = &copy };
	uint64_t objects, units;
	int result = open_sides(&diff, partition, from, to);

	if (result)
		return result;
	objects = count_objects(&diff.from) + count_objects(&diff.to);
	*total = objects * PROGRESS_UNITS;
	*done = *total;
	if (cursor->state != ENGINE_DIFF_DONE && cursor->passed < objects) {
		result = count_units(&diff, &units);
		*done = min_u64(cursor->passed * PROGRESS_UNITS + (result ? 0 : units), *total);
	}
	close_side(&diff.from);
	close_side(&diff.to);
	return result;
}
