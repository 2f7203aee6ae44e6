/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Where the records of a full buffer go when it is sealed.
 *
 *   runs | larger records | heads
 *
 * The newest record of a key goes to one of its candidates among the pages of heads, so that the
 * index needs only to know which. Older ones are in a run: records of all runs fill page after
 * page, by tag, key and number. So the index has one entry for a key, however often it was put, and
 * the tags of pages of runs tell where its older records are. A head that finds no candidate goes
 * to any other page of heads, and one without a run to any page with space.
 *
 * If the buffer has cells (span.h), records that are larger than a cell, and the others of their
 * tags, are between both, by tag, key and number. Each has an entry. Pages of these count as pages
 * of runs, but no run leads to them.
 *
 * Keys that share a tag are in runs as a whole, so that from the last page on a search meets the
 * newest record of each first. If heads don't fit otherwise, all of those that have runs are there.
 *
 * The segment has the same records as the buffer, and the same buffer gives the same arrangement.
 * So nobody needs to know of it but the index, and a crash needs nothing of it.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_ARRANGE_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_ARRANGE_H

#include "engine/muninn/index/index.h"
#include "engine/muninn/span.h"

/* As index_arrange. */
struct arrangement *ribbon_arrange(const struct muninn_geometry *geometry,
				   const struct ribbon_shape *shape, uint64_t serial,
				   const struct page_view *pages, uint32_t cell_bytes);

/*
 * What the index is told: an entry for each key, `count` of them, and behind these one for each
 * page of runs.
 */
const struct tag_entry *arrangement_entries(const struct arrangement *arrangement, uint32_t *count,
					    uint32_t *run_pages);

#endif
