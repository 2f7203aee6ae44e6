/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Places items by the shortest path of moves: a breadth-first search over pages. With items of one
 * size that finds a path whenever there is one (augmenting paths of a matching). With different
 * sizes it is a good guess: each move frees enough for the item that comes.
 */
#include "engine/muninn/index/ribbon/placement.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

/*
 * Pages that a search looks at, at most. Long searches pay while few items need one; all together
 * may look at a few pages for each item, then all searches are short.
 */
enum { NODES_MAX = 256, NODES_MIN = 16, NODES_PER_ITEM = 4 };

#define NO_ITEM UINT32_MAX
#define NO_NODE UINT32_MAX

/* A page that lacks `lack` bytes for an item that would come from another page, or is new. */
struct node {
	uint32_t page;
	uint32_t lack;
	uint32_t item;
	uint32_t parent; /* the node of the page that the item would leave; NO_NODE: it is new */
	uint8_t candidate;
};

struct page {
	uint32_t free;
	uint32_t first; /* of its items */
	uint32_t stamp; /* of the last search that looked at it ... */
	uint32_t lack;  /* ... and with what lack */
};

struct placement {
	uint32_t pages_max, items_max;
	struct placement_item *items;
	struct page *pages;
	uint32_t *next; /* of each item, in its page */
	uint32_t stamp;
	uint32_t node_count, node_limit;
	uint32_t nodes_left; /* for long searches */
	struct node nodes[NODES_MAX];
};

/* ---- memory ---- */

struct placement *placement_create(uint32_t pages_max, uint32_t items_max)
{
	struct placement *placement = calloc(1, sizeof(*placement));

	if (!placement)
		return NULL;
	placement->pages_max = pages_max;
	placement->items_max = items_max;
	placement->pages = malloc(pages_max * sizeof(*placement->pages));
	placement->next = malloc(items_max * sizeof(*placement->next));
	if (placement->pages && placement->next)
		return placement;
	placement_destroy(placement);
	return NULL;
}

void placement_destroy(struct placement *placement)
{
	if (!placement)
		return;
	free(placement->pages);
	free(placement->next);
	free(placement);
}

uint64_t placement_bytes(uint32_t pages_max, uint32_t items_max)
{
	return sizeof(struct placement) + pages_max * sizeof(struct page) +
	       items_max * sizeof(uint32_t);
}

/* ---- pages ---- */

void placement_begin(struct placement *placement, uint32_t pages, const uint32_t *space,
		     struct placement_item *items, uint32_t count)
{
	assert(pages <= placement->pages_max && count <= placement->items_max);
	placement->items = items;
	placement->stamp = 0;
	placement->nodes_left = count * NODES_PER_ITEM;
	for (uint32_t page = 0; page < pages; page++)
		placement->pages[page] = (struct page){ .free = space[page], .first = NO_ITEM };
	for (uint32_t n = 0; n < count; n++)
		items[n].candidate = PLACEMENT_NONE;
}

static void put(struct placement *placement, uint32_t number, uint8_t candidate)
{
	struct placement_item *item = &placement->items[number];
	struct page *page = &placement->pages[item->pages[candidate]];

	assert(page->free >= item->bytes);
	page->free -= item->bytes;
	placement->next[number] = page->first;
	page->first = number;
	item->candidate = candidate;
}

static void take(struct placement *placement, uint32_t number)
{
	struct placement_item *item = &placement->items[number];
	struct page *page = &placement->pages[item->pages[item->candidate]];
	uint32_t *link = &page->first;

	while (*link != number)
		link = &placement->next[*link];
	*link = placement->next[number];
	page->free += item->bytes;
}

/* ---- the search ---- */

static bool is_on_path(const struct placement *placement, uint32_t node, uint32_t page)
{
	for (; node != NO_NODE; node = placement->nodes[node].parent)
		if (placement->nodes[node].page == page)
			return true;
	return false;
}

/*
 * Looks at a page for an item. A page that was looked at before is worth it again if it lacks less
 * now. True: it has space.
 */
static bool look_at(struct placement *placement, uint32_t number, uint8_t candidate,
		    uint32_t parent)
{
	const struct placement_item *item = &placement->items[number];
	uint32_t at = item->pages[candidate];
	struct page *page = &placement->pages[at];
	uint32_t lack;

	/* On the path it may have space for this item, but not for its own one as well. */
	if (page->free >= item->bytes)
		return !is_on_path(placement, parent, at);
	lack = item->bytes - page->free;
	if ((page->stamp == placement->stamp && page->lack <= lack) ||
	    placement->node_count == placement->node_limit || is_on_path(placement, parent, at))
		return false;
	page->stamp = placement->stamp;
	page->lack = lack;
	placement->nodes[placement->node_count++] = (struct node){
		.page = at, .lack = lack, .item = number, .parent = parent, .candidate = candidate
	};
	return false;
}

/* The last item has space; along the path each one takes the space of the one before it. */
static void move_along(struct placement *placement, uint32_t number, uint8_t candidate,
		       uint32_t node)
{
	while (node != NO_NODE) {
		const struct node *at = &placement->nodes[node];

		take(placement, number);
		put(placement, number, candidate);
		number = at->item;
		candidate = at->candidate;
		node = at->parent;
	}
	put(placement, number, candidate);
}

/* Whether any item of a node's page can go elsewhere at once; then all move. */
static bool expand(struct placement *placement, uint32_t node)
{
	uint32_t lack = placement->nodes[node].lack, page = placement->nodes[node].page;

	for (uint32_t number = placement->pages[page].first; number != NO_ITEM;
	     number = placement->next[number]) {
		const struct placement_item *item = &placement->items[number];

		if (item->bytes < lack)
			continue;
		for (uint8_t candidate = 0; candidate < PLACEMENT_CANDIDATES; candidate++) {
			if (item->pages[candidate] == page ||
			    !look_at(placement, number, candidate, node))
				continue;
			move_along(placement, number, candidate, node);
			return true;
		}
	}
	return false;
}

/* The candidate page with most space, so that pages fill evenly. */
static uint8_t emptiest(const struct placement *placement, const struct placement_item *item)
{
	uint8_t best = 0;

	for (uint8_t candidate = 1; candidate < PLACEMENT_CANDIDATES; candidate++)
		if (placement->pages[item->pages[candidate]].free >
		    placement->pages[item->pages[best]].free)
			best = candidate;
	return best;
}

/* Finds a path to a page with space, and moves along it. */
static bool search(struct placement *placement, uint32_t number)
{
	placement->stamp++;
	placement->node_count = 0;
	placement->node_limit =
		(uint32_t)min_u64(max_u64(placement->nodes_left, NODES_MIN), NODES_MAX);
	for (uint8_t candidate = 0; candidate < PLACEMENT_CANDIDATES; candidate++)
		look_at(placement, number, candidate, NO_NODE);
	for (uint32_t node = 0; node < placement->node_count; node++)
		if (expand(placement, node))
			return true;
	return false;
}

bool placement_add(struct placement *placement, uint32_t number)
{
	const struct placement_item *item = &placement->items[number];
	uint8_t best = emptiest(placement, item);
	bool found;

	if (placement->pages[item->pages[best]].free >= item->bytes) {
		put(placement, number, best);
		return true;
	}
	found = search(placement, number);
	placement->nodes_left -= (uint32_t)min_u64(placement->node_count, placement->nodes_left);
	return found;
}
