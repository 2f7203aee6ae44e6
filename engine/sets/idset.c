/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Changes and lists ordered sets of IDs: B+ trees whose nodes are records. */
#include "engine/sets/idset.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "engine/sets/idset_count.h"
#include "engine/sets/idset_node.h"
#include "engine/sets/idset_path.h"

/* Changed nodes that may wait in memory; a single call changes up to IDSET_HEIGHT_MAX * 2 more. */
#define DIRTY_NODES_MAX 64

void idset_header_encode(const struct idset_header *header, uint8_t *to)
{
	put_le64(to, header->count);
	put_le32(to + 8, header->root);
	put_le32(to + 12, header->next_node);
	put_le32(to + 16, header->generation);
	to[20] = header->height;
	to[21] = header->free_count;
	put_le16(to + 22, 0);
	for (int index = 0; index < IDSET_FREE_NODES; index++)
		put_le32(to + 24 + 4 * index, header->free_nodes[index]);
}

int idset_header_decode(struct idset_header *header, const uint8_t *from)
{
	*header = (struct idset_header){
		.count = get_le64(from),
		.root = get_le32(from + 8),
		.next_node = get_le32(from + 12),
		.generation = get_le32(from + 16),
		.height = from[20],
		.free_count = from[21],
	};
	for (int index = 0; index < IDSET_FREE_NODES; index++) {
		header->free_nodes[index] = get_le32(from + 24 + 4 * index);
		if (header->free_nodes[index] >= IDSET_NODES_MAX)
			return -EBADMSG;
	}
	if (header->height > IDSET_HEIGHT_MAX || header->free_count > IDSET_FREE_NODES ||
	    header->next_node > IDSET_NODES_MAX || header->root >= IDSET_NODES_MAX ||
	    (header->height == 0) != (header->count == 0) || get_le16(from + 22) != 0)
		return -EBADMSG;
	return 0;
}

/* ---- finding ---- */

int idset_contains(const struct idset *set, uint64_t id)
{
	struct idset_path path;
	uint32_t index;
	int result;

	if (set->header->height == 0)
		return 0;
	result = idset_descend(set, id, &path);
	if (result)
		return result;
	index = idset_node_position(idset_leaf_of(&path), id);
	result = index < idset_leaf_of(&path)->count && idset_leaf_of(&path)->keys[index] == id;
	idset_path_release(set, &path);
	return result;
}

int idset_last(const struct idset *set, uint64_t *id)
{
	struct idset_path path;
	int result;

	if (set->header->height == 0)
		return -ENOENT;
	result = idset_descend(set, UINT64_MAX, &path);
	if (result)
		return result;
	/* Leaves are never empty. */
	if (idset_leaf_of(&path)->count)
		*id = idset_leaf_of(&path)->keys[idset_leaf_of(&path)->count - 1];
	else
		result = -EBADMSG;
	idset_path_release(set, &path);
	return result;
}

int idset_before(const struct idset *set, uint64_t id, uint64_t *before)
{
	struct idset_path path;
	uint32_t index;
	int result;

	if (set->header->height == 0)
		return -ENOENT;
	result = idset_descend(set, id, &path);
	if (result)
		return result;
	index = idset_node_position(idset_leaf_of(&path), id);
	/* It may be in the leaf before: no leaf is empty, so not further away. */
	if (index == 0 && path.lower > 0) {
		idset_path_release(set, &path);
		result = idset_descend(set, path.lower - 1, &path);
		if (result)
			return result;
		index = idset_leaf_of(&path)->count;
	}
	if (index > 0)
		*before = idset_leaf_of(&path)->keys[index - 1];
	else
		result = -ENOENT;
	idset_path_release(set, &path);
	return result;
}

int idset_list(const struct idset *set, uint64_t first, uint64_t *ids, size_t capacity,
	       size_t *count, bool *more, uint64_t *next)
{
	struct idset_path path = { .bounded = set->header->height > 0, .upper = first };

	*count = 0;
	*more = false;
	while (path.bounded) {
		const struct idset_node *leaf;
		int result = idset_descend(set, path.upper, &path);

		if (result)
			return result;
		leaf = idset_leaf_of(&path);
		idset_counts_note_leaf(&path);
		for (uint32_t index = idset_node_position(leaf, first); index < leaf->count;
		     index++) {
			if (*count == capacity) {
				*more = true;
				*next = leaf->keys[index];
				idset_path_release(set, &path);
				return 0;
			}
			ids[(*count)++] = leaf->keys[index];
		}
		idset_path_release(set, &path);
	}
	return 0;
}

int idset_next(const struct idset *set, uint64_t first, uint64_t *id)
{
	uint64_t next;
	size_t count;
	bool more;
	int result = idset_list(set, first, id, 1, &count, &more, &next);

	return !result && count == 0 ? -ENOENT : result;
}

int idset_walk(struct idset_walk *walk, uint64_t *id)
{
	if (walk->at == walk->count) {
		int result;

		if (!walk->more)
			return 0;
		walk->at = 0;
		result = idset_list(walk->set, walk->next, walk->ids,
				    sizeof(walk->ids) / sizeof(*walk->ids), &walk->count,
				    &walk->more, &walk->next);
		if (result || walk->count == 0)
			return result;
	}
	*id = walk->ids[walk->at++];
	return 1;
}

/* ---- changing ---- */

struct node_writer {
	struct cache *nodes;
	const struct record_writer *writer;
};

static int node_put(void *context, struct cache_entry *entry)
{
	const struct node_writer *to = context;
	struct idset_node *node = (struct idset_node *)entry;
	int result = idset_node_put(to->writer, node);

	if (!result)
		cache_mark_clean(to->nodes, entry, idset_node_bytes(node));
	return result;
}

static int put_dirty_above(struct cache *nodes, const struct record_writer *writer, uint32_t limit)
{
	struct node_writer to = { nodes, writer };

	return cache_put_dirty(nodes, limit, node_put, &to);
}

int idset_put_dirty(struct cache *nodes, const struct record_writer *writer)
{
	return put_dirty_above(nodes, writer, 0);
}

static void node_changes(struct idset *set, struct idset_node *node)
{
	cache_mark_dirty(set->nodes, &node->entry);
}

/* The next put of the node rewrites its base. */
static void node_changes_whole(struct idset *set, struct idset_node *node)
{
	node_changes(set, node);
	if (node->whole)
		return;
	node->whole = true;
	node->generation = ++set->header->generation;
}

static void leaf_changes(struct idset *set, struct idset_node *leaf, enum idset_operation_kind kind,
			 uint64_t id)
{
	node_changes(set, leaf);
	if (!idset_node_log(leaf, kind, id))
		node_changes_whole(set, leaf);
}

/* Takes `count` (0 or more) node numbers. -EFBIG: there are none left, and none were taken. */
static int take_numbers(struct idset_header *header, uint32_t count, uint32_t *numbers)
{
	if (count > header->free_count + (IDSET_NODES_MAX - header->next_node))
		return -EFBIG;
	for (uint32_t index = 0; index < count; index++)
		numbers[index] = header->free_count ? header->free_nodes[--header->free_count]
						    : header->next_node++;
	return 0;
}

/* Drops a pinned node that is not part of the set any more. Its pin remains. */
static void node_frees(struct idset *set, struct idset_node *node)
{
	struct idset_header *header = set->header;

	if (header->free_count < IDSET_FREE_NODES)
		header->free_nodes[header->free_count++] = node->entry.key.number;
	cache_drop(set->nodes, &node->entry);
}

/*
 * Makes and pins `count` new nodes: of the leaf level, the level above it... On an error nothing
 * has changed.
 */
static int nodes_make(struct idset *set, uint32_t count, struct idset_node **nodes)
{
	struct idset_header before = *set->header;
	uint32_t numbers[IDSET_HEIGHT_MAX + 1];
	int result = take_numbers(set->header, count, numbers);
	uint32_t made = 0;

	while (!result && made < count) {
		nodes[made] = idset_node_new(&set->first, numbers[made],
					     made ? IDSET_INNER : IDSET_LEAF,
					     record_bytes_max(set->store));
		if (nodes[made])
			made++;
		else
			result = -ENOMEM;
	}
	if (result) {
		while (made)
			idset_node_destroy(&nodes[--made]->entry);
		*set->header = before;
		return result;
	}
	for (uint32_t index = 0; index < count; index++) {
		struct cache_entry *entry =
			cache_add(set->nodes, &nodes[index]->entry, idset_node_bytes(nodes[index]));

		/* Freed numbers are dropped from the cache, so nobody else has this one. */
		assert(entry == &nodes[index]->entry);
		node_changes_whole(set, (struct idset_node *)entry);
	}
	return 0;
}

/*
 * How many new nodes an insertion along `path` needs: one for each full node, and a root if the old
 * one splits.
 */
static uint32_t nodes_needed(const struct idset_path *path)
{
	uint32_t needed = 0;

	while (needed < path->depth) {
		const struct idset_node *node = path->nodes[path->depth - 1 - needed];

		if (node->count < node->capacity)
			return needed;
		needed++;
	}
	return needed + 1;
}

/*
 * Inserts an entry at `index` of a full node by moving its upper half to `right`. An entry that
 * goes to the end becomes the first of `right` instead, so that ascending IDs leave full nodes
 * behind.
 */
static void insert_splitting(struct idset *set, struct idset_node *node, uint32_t index,
			     uint64_t key, uint32_t child, struct idset_node *right)
{
	uint32_t from = index == node->count ? node->count : node->count / 2;

	node_changes_whole(set, node);
	idset_node_split(node, from, right);
	if (index >= from)
		idset_node_insert(right, index - from, key, child);
	else
		idset_node_insert(node, index, key, child);
}

/*
 * Puts a new root above the old one and its new sibling `child`, which has the IDs from `key` on.
 */
static void grow_root(struct idset *set, struct idset_node *root, uint64_t key, uint32_t child)
{
	idset_node_insert(root, 0, 0, set->header->root);
	idset_node_insert(root, 1, key, child);
	set->header->root = root->entry.key.number;
	set->header->height++;
}

/*
 * Inserts `id` along `path`, whose leaf and so many nodes above it are full that `needed` new ones
 * were made.
 */
static void insert_along(struct idset *set, const struct idset_path *path, uint64_t id,
			 struct idset_node **made, uint32_t needed)
{
	struct idset_node *leaf = idset_leaf_of(path);
	uint32_t index = idset_node_position(leaf, id), level;
	uint64_t key = id;
	uint32_t child = 0;

	if (needed == 0) {
		idset_node_insert(leaf, index, id, 0);
		leaf_changes(set, leaf, IDSET_INSERT, id);
		return;
	}
	for (level = 0; level < needed; level++) {
		struct idset_node *node;

		if (level == path->depth) {
			grow_root(set, made[level], key, child);
			return;
		}
		node = path->nodes[path->depth - 1 - level];
		insert_splitting(set, node, index, key, child, made[level]);
		key = made[level]->keys[0];
		child = made[level]->entry.key.number;
		if (made[level]->kind == IDSET_INNER)
			made[level]->keys[0] = 0;
		if (level + 1 < path->depth)
			index = path->indexes[path->depth - 2 - level] + 1;
	}
	node_changes_whole(set, path->nodes[path->depth - 1 - level]);
	idset_node_insert(path->nodes[path->depth - 1 - level], index, key, child);
}

static int insert_first(struct idset *set, uint64_t id)
{
	struct idset_node *root = NULL;
	int result = nodes_make(set, 1, &root);

	if (result)
		return result;
	idset_node_insert(root, 0, id, 0);
	set->header->root = root->entry.key.number;
	set->header->height = 1;
	set->header->count = 1;
	cache_unpin(set->nodes, &root->entry);
	return 0;
}

/* Inserts an ID into the leaf at the end of `path`. */
static int insert_at(struct idset *set, const struct idset_path *path, uint64_t id)
{
	struct idset_node *made[IDSET_HEIGHT_MAX + 1], *leaf = idset_leaf_of(path);
	uint32_t needed = nodes_needed(path), index = idset_node_position(leaf, id);
	int result;

	if (index < leaf->count && leaf->keys[index] == id)
		return -EEXIST;
	if (needed > IDSET_HEIGHT_MAX)
		return -EFBIG;
	result = nodes_make(set, needed, made);
	if (result)
		return result;
	idset_counts_change(set, path, needed, 1);
	insert_along(set, path, id, made, needed);
	set->header->count++;
	while (needed)
		cache_unpin(set->nodes, &made[--needed]->entry);
	return 0;
}

int idset_insert(struct idset *set, const struct record_writer *writer, uint64_t id)
{
	struct idset_path path;
	int result;

	assert(idset_is_current(set));
	result = put_dirty_above(set->nodes, writer, DIRTY_NODES_MAX);
	if (result)
		return result;
	if (set->header->height == 0) {
		result = insert_first(set, id);
	} else {
		result = idset_descend(set, id, &path);
		if (result)
			return result;
		result = insert_at(set, &path, id);
		idset_path_release(set, &path);
	}
	if (!result)
		set->header->changed_sequence = writer->sequence;
	return result;
}

/*
 * Takes the emptied leaf of `path` and the inner nodes that become empty with it out of the tree.
 */
static void remove_along(struct idset *set, const struct idset_path *path)
{
	uint32_t level = path->depth;

	while (level > 0 && path->nodes[level - 1]->count == 0) {
		node_frees(set, path->nodes[level - 1]);
		level--;
		if (level > 0) {
			node_changes_whole(set, path->nodes[level - 1]);
			idset_node_remove(path->nodes[level - 1], path->indexes[level - 1]);
		}
	}
	if (level == 0) {
		/*
		 * Empty: all nodes are free. The generation goes on, so that their old records are
		 * not taken for new ones.
		 */
		*set->header = (struct idset_header){ .generation = set->header->generation };
		return;
	}
	/* A root with one child hands over to it, as far down as the path shows it. */
	for (uint32_t top = 0; top + 1 < path->depth && path->nodes[top]->count == 1; top++) {
		set->header->root = path->nodes[top]->children[0];
		set->header->height--;
		node_frees(set, path->nodes[top]);
		if (top + 1 >= level || path->nodes[top + 1]->entry.key.number != set->header->root)
			return;
	}
}

int idset_remove(struct idset *set, const struct record_writer *writer, uint64_t id)
{
	struct idset_node *leaf;
	struct idset_path path;
	uint32_t index;
	int result;

	assert(idset_is_current(set));
	if (set->header->height == 0)
		return -ENOENT;
	result = put_dirty_above(set->nodes, writer, DIRTY_NODES_MAX);
	if (!result)
		result = idset_descend(set, id, &path);
	if (result)
		return result;
	leaf = idset_leaf_of(&path);
	index = idset_node_position(leaf, id);
	if (index == leaf->count || leaf->keys[index] != id) {
		idset_path_release(set, &path);
		return -ENOENT;
	}
	set->header->count--;
	idset_node_remove(leaf, index);
	leaf_changes(set, leaf, IDSET_REMOVE, id);
	idset_counts_change(set, &path, 0, -1);
	remove_along(set, &path);
	idset_path_release(set, &path);
	set->header->changed_sequence = writer->sequence;
	return 0;
}
