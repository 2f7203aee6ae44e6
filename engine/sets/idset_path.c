/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Finds the way from the root of a set of IDs to one of its leaves. */
#include "engine/sets/idset_path.h"

int idset_node_get(const struct idset *set, uint32_t number, struct idset_node **node)
{
	int result;

	if (idset_is_current(set)) {
		*node = (struct idset_node *)cache_get(set->nodes,
						       idset_node_cache_key(&set->first, number));
		if (*node)
			return 0;
	}
	result = idset_node_load(set->store, &set->first, number, set->bound, node);
	if (!result && idset_is_current(set))
		*node = (struct idset_node *)cache_add(set->nodes, &(*node)->entry,
						       idset_node_bytes(*node));
	return result;
}

void idset_node_release(const struct idset *set, struct idset_node *node)
{
	if (idset_is_current(set))
		cache_unpin(set->nodes, &node->entry);
	else
		idset_node_destroy(&node->entry);
}

void idset_path_release(const struct idset *set, struct idset_path *path)
{
	while (path->depth)
		idset_node_release(set, path->nodes[--path->depth]);
}

/* The child of an inner node under which `id` is or belongs. */
static uint32_t child_index(const struct idset_node *node, uint64_t id)
{
	uint32_t index = idset_node_position(node, id);

	if (index < node->count && node->keys[index] == id)
		return index;
	return index ? index - 1 : 0;
}

int idset_descend(const struct idset *set, uint64_t id, struct idset_path *path)
{
	uint32_t number = set->header->root;

	path->depth = 0;
	path->lower = 0;
	path->bounded = false;
	for (uint32_t level = set->header->height; level > 0; level--) {
		enum idset_kind wanted = level == 1 ? IDSET_LEAF : IDSET_INNER;
		struct idset_node *node;
		uint32_t index;
		int result = idset_node_get(set, number, &node);

		if (!result) {
			path->nodes[path->depth++] = node;
			result = node->kind == wanted ? 0 : -EBADMSG;
		}
		if (result) {
			idset_path_release(set, path);
			return result;
		}
		if (wanted == IDSET_LEAF)
			continue;
		index = child_index(node, id);
		path->indexes[path->depth - 1] = index;
		number = node->children[index];
		if (index > 0)
			path->lower = node->keys[index];
		if (index + 1 < node->count) {
			path->bounded = true;
			path->upper = node->keys[index + 1];
		}
	}
	return 0;
}
