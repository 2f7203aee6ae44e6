/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which pages of a segment have records that are older than it: gathered when it is sealed. */
#include "engine/muninn/older.h"

#include "engine/muninn/row.h"

void older_begin(struct older_pages *older, const struct row *row)
{
	struct sealed_segment last;

	*older = (struct older_pages){ 0 };
	/* What is new of the segment came after all that is in the one before. */
	if (row_index_read_last(row->index, &last, 1) == 1)
		older->below = last.last_sequence + 1;
}

static bool has_older(const struct page_view *page, uint64_t below)
{
	struct page_record record;
	uint32_t offset = 0;

	while (page_next(page, &offset, &record))
		if (record_sequence(record.header) < below)
			return true;
	return false;
}

void older_note(struct older_pages *older, uint32_t segment_pages, uint32_t page,
		const struct page_view *view)
{
	uint32_t bit = older_bit(segment_pages, page);

	if (has_older(view, older->below))
		older->map[bit / 64] |= UINT64_C(1) << bit % 64;
}
