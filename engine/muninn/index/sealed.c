/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What is known of a sealed segment, whatever the index. */
#include "engine/muninn/index/index.h"

struct sealed_segment sealed_segment_begin(uint32_t segment, uint64_t serial)
{
	return (struct sealed_segment){
		.segment = segment,
		.serial = serial,
		.first_sequence = RECORD_NEWEST,
		.is_ordered = true,
	};
}

void sealed_segment_add(struct sealed_segment *facts, const struct page_view *page)
{
	struct page_record record;
	uint32_t offset = 0;

	while (page_next(page, &offset, &record)) {
		uint64_t sequence = record_sequence(record.header);

		facts->records++;
		facts->record_bytes += RECORD_HEADER_BYTES + record_length(record.header);
		facts->first_sequence = min_u64(facts->first_sequence, sequence);
		facts->last_sequence = max_u64(facts->last_sequence, sequence);
		facts->is_ordered &= !record_is_moved(record.header);
	}
}
