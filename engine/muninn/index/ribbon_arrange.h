/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Where the records of a full buffer go when it is sealed.
 *
 *   head pages | tail
 *
 * A record whose tag no other one of the segment has goes to one of its candidates among the head
 * pages, so that the index needs only to know which. Records of equal tags are in the tail, in the
 * order of their numbers, so that a key which is put again and again takes few entries. What finds
 * no candidate goes to any page that has space.
 *
 * The segment has the same records as the buffer, and the same buffer gives the same arrangement.
 * So nobody needs to know of it but the index, and a crash needs nothing of it.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_ARRANGE_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_ARRANGE_H

#include "engine/muninn/index/index.h"

/* As index_arrange. */
struct arrangement *ribbon_arrange(const struct muninn_geometry *geometry,
				   const struct ribbon_shape *shape, uint64_t serial,
				   const struct page_view *pages);

/* What the index is told: entries of the segment, and the pages of its tail. */
const struct tag_entry *arrangement_entries(const struct arrangement *arrangement, uint32_t *count,
					    uint32_t *tail_pages);

#endif
