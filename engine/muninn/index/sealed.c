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

void sealed_segment_tell(const struct sealed_segment *segment, bool is_live,
			 const struct fields *to)
{
	field_row(to);
	field_number(to, "member", segment->member);
	field_number(to, "segment", segment->segment);
	field_flag(to, "live", is_live);
	field_number(to, "records", segment->records);
	field_number(to, "bytes", segment->record_bytes);
	field_number(to, "serial", segment->serial);
	field_number(to, "first", segment->first_sequence);
	field_number(to, "last", segment->last_sequence);
	field_flag(to, "moved", !segment->is_ordered);
}
