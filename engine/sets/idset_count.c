/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Counts the IDs of a set below each child of its inner nodes, in memory. */
#include "engine/sets/idset_count.h"

/* Several readers may count at once; they find the same numbers. Writers are alone. */
static uint64_t known_below(const struct idset_node *node, uint32_t index)
{
	return __atomic_load_n(&node->counts[index], __ATOMIC_RELAXED);
}

static void note_below(struct idset_node *node, uint32_t index, uint64_t count)
{
	__atomic_store_n(&node->counts[index], count, __ATOMIC_RELAXED);
}

void idset_counts_note_leaf(const struct idset_path *path)
{
	if (path->depth > 1)
		note_below(path->nodes[path->depth - 2], path->indexes[path->depth - 2],
			   idset_leaf_of(path)->count);
}

void idset_counts_change(struct idset *set, const struct idset_path *path, uint32_t split,
			 int change)
{
	for (uint32_t level = 1; level < path->depth; level++) {
		struct idset_node *node = path->nodes[path->depth - 1 - level];
		uint64_t *count = &node->counts[path->indexes[path->depth - 1 - level]];

		/* Even if it is not known: from now on the open transaction's state is counted. */
		cache_mark_touched(set->nodes, &node->entry);
		if (level <= split)
			*count = 0;
		else if (*count)
			*count += (uint64_t)(int64_t)change;
	}
}

/* ---- counting ---- */

/* A node whose children are being counted. */
struct frame {
	struct idset_node *node;
	uint32_t index; /* children before this one are in `sum` */
	uint64_t sum;
};

/* Adds up the known counts, up to the first unknown one. true: all of the node were known. */
static bool add_known(struct frame *frame)
{
	const struct idset_node *node = frame->node;

	if (node->kind == IDSET_LEAF) {
		frame->sum = node->count;
		return true;
	}
	for (; frame->index < node->count; frame->index++) {
		uint64_t below = known_below(node, frame->index);

		if (!below)
			return false;
		frame->sum += below;
	}
	return true;
}

/*
 * IDs below node `number` of that level (1: a leaf). Visits the leaves below it that nobody has
 * counted.
 */
static int count_below(const struct idset *set, uint32_t number, uint32_t level, uint64_t *count)
{
	struct frame frames[IDSET_HEIGHT_MAX];
	uint32_t depth = 0;
	int result;

	do {
		struct frame *frame = &frames[depth];

		*frame = (struct frame){ 0 };
		result = idset_node_get(set, number, &frame->node);
		if (result)
			break;
		depth++;
		if ((frame->node->kind == IDSET_LEAF) != (level == depth)) {
			result = -EBADMSG;
			break;
		}
		while (depth && add_known(&frames[depth - 1])) {
			*count = frames[--depth].sum;
			idset_node_release(set, frames[depth].node);
			if (depth == 0)
				break;
			frame = &frames[depth - 1];
			note_below(frame->node, frame->index, *count);
			frame->sum += *count;
			frame->index++;
		}
		if (depth)
			number = frames[depth - 1].node->children[frames[depth - 1].index];
	} while (depth);
	while (depth)
		idset_node_release(set, frames[--depth].node);
	return result;
}

static uint32_t unknown_between(const struct idset_node *node, uint32_t from, uint32_t to)
{
	uint32_t unknown = 0;

	for (uint32_t index = from; index < to; index++)
		unknown += known_below(node, index) == 0;
	return unknown;
}

/*
 * Whether there is less to visit before the path than behind it; what is unknown high up weighs
 * more than all below.
 */
static bool less_before(const struct idset_path *path)
{
	for (uint32_t depth = 0; depth + 1 < path->depth; depth++) {
		const struct idset_node *node = path->nodes[depth];
		uint32_t before = unknown_between(node, 0, path->indexes[depth]);
		uint32_t behind = unknown_between(node, path->indexes[depth] + 1, node->count);

		if (before != behind)
			return before < behind;
	}
	return true;
}

/* Adds what lies below the children from..to-1 of the node at `depth` of the path. */
static int add_children(const struct idset *set, const struct idset_path *path, uint32_t depth,
			uint32_t from, uint32_t to, uint64_t *sum)
{
	struct idset_node *node = path->nodes[depth];

	for (uint32_t index = from; index < to; index++) {
		uint64_t below = known_below(node, index);

		if (!below) {
			int result = count_below(set, node->children[index],
						 path->depth - 1 - depth, &below);

			if (result)
				return result;
			note_below(node, index, below);
		}
		*sum += below;
	}
	return 0;
}

/* IDs in the leaves before, or behind, the one of the path. */
static int count_beside(const struct idset *set, const struct idset_path *path, bool before,
			uint64_t *sum)
{
	int result = 0;

	*sum = 0;
	for (uint32_t depth = 0; !result && depth + 1 < path->depth; depth++) {
		uint32_t index = path->indexes[depth];

		result = before ? add_children(set, path, depth, 0, index, sum)
				: add_children(set, path, depth, index + 1,
					       path->nodes[depth]->count, sum);
	}
	return result;
}

int idset_count(const struct idset *set, uint64_t first, uint64_t *count)
{
	struct idset_path path;
	uint32_t position;
	uint64_t beside;
	bool before;
	int result;

	*count = set->header->count;
	if (first == 0 || set->header->height == 0)
		return 0;
	result = idset_descend(set, first, &path);
	if (result)
		return result;
	before = less_before(&path);
	result = count_beside(set, &path, before, &beside);
	position = idset_node_position(idset_leaf_of(&path), first);
	if (before)
		*count -= beside + position;
	else
		*count = beside + idset_leaf_of(&path)->count - position;
	if (!result && *count > set->header->count)
		result = -EBADMSG;
	idset_path_release(set, &path);
	return result;
}
