/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A pairing heap (Fredman, Sedgewick, Sleator, Tarjan, 1986) over the elements of an array, each of
 * which begins with a struct osd_heap_node. Many heaps can share one array. Private to
 * security_nonces.c.
 */
#ifndef MUNINN_OSD_SECURITY_HEAP_H
#define MUNINN_OSD_SECURITY_HEAP_H

#include <stddef.h>
#include <stdint.h>

#define OSD_HEAP_NOTHING UINT32_MAX

struct osd_heap_node {
	uint64_t key;
	uint32_t child, sibling;
};

struct osd_heap_array {
	void *elements;
	size_t element_bytes;
};

static inline struct osd_heap_node *osd_heap_node(const struct osd_heap_array *array,
						  uint32_t index)
{
	return (struct osd_heap_node *)((char *)array->elements + index * array->element_bytes);
}

/* Makes one heap of two; returns its root. */
static inline uint32_t osd_heap_meld(const struct osd_heap_array *array, uint32_t a, uint32_t b)
{
	uint32_t lower = a, higher = b;

	if (a == OSD_HEAP_NOTHING || b == OSD_HEAP_NOTHING)
		return a == OSD_HEAP_NOTHING ? b : a;
	if (osd_heap_node(array, b)->key < osd_heap_node(array, a)->key) {
		lower = b;
		higher = a;
	}
	osd_heap_node(array, higher)->sibling = osd_heap_node(array, lower)->child;
	osd_heap_node(array, lower)->child = higher;
	return lower;
}

static inline void osd_heap_push(const struct osd_heap_array *array, uint32_t *root, uint32_t index,
				 uint64_t key)
{
	*osd_heap_node(array, index) =
		(struct osd_heap_node){ key, OSD_HEAP_NOTHING, OSD_HEAP_NOTHING };
	*root = osd_heap_meld(array, *root, index);
}

/* Takes out the element with the lowest key, *root, of a heap that is not empty. */
static inline uint32_t osd_heap_pop(const struct osd_heap_array *array, uint32_t *root)
{
	uint32_t lowest = *root, left = osd_heap_node(array, lowest)->child;
	uint32_t pairs = OSD_HEAP_NOTHING;

	*root = OSD_HEAP_NOTHING;
	while (left != OSD_HEAP_NOTHING) {
		uint32_t right = osd_heap_node(array, left)->sibling, rest = OSD_HEAP_NOTHING;

		if (right != OSD_HEAP_NOTHING)
			rest = osd_heap_node(array, right)->sibling;
		left = osd_heap_meld(array, left, right);
		osd_heap_node(array, left)->sibling = pairs;
		pairs = left;
		left = rest;
	}
	while (pairs != OSD_HEAP_NOTHING) {
		uint32_t rest = osd_heap_node(array, pairs)->sibling;

		*root = osd_heap_meld(array, *root, pairs);
		pairs = rest;
	}
	return lowest;
}

#endif
