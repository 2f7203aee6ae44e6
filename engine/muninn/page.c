/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Finds records in a page, wherever the page is. */
#include "engine/muninn/page.h"

bool sequence_is_visible(const struct visibility *visibility, uint64_t sequence)
{
	uint64_t low = 0;
	uint64_t high = visibility->aborted_count;

	if (sequence > visibility->bound || sequence >= visibility->below ||
	    sequence < visibility->from)
		return false;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		const uint8_t *range = visibility->aborted + middle * ABORTED_RANGE_BYTES;

		if (sequence < get_le64(range))
			high = middle;
		else if (sequence > get_le64(range + 8))
			low = middle + 1;
		else
			return false;
	}
	return true;
}

bool page_find(const struct page_view *page, const struct record_key *key,
	       const struct visibility *visibility, struct page_record *found)
{
	struct page_record record;
	uint64_t newest = 0;
	uint32_t offset = 0;

	while (page_next(page, &offset, &record)) {
		uint64_t sequence = record_sequence(record.header);

		if (record_has_key(record.header, key) && sequence >= newest &&
		    record_is_visible(visibility, key, sequence) &&
		    !(sequence == visibility->ignored_tombstone &&
		      record_is_tombstone(record.header))) {
			*found = record;
			newest = sequence;
		}
	}
	return newest != 0;
}
