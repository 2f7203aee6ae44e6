/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Read-only tables: grows, stores and searches the filters of up to 64 segments. */
#include "engine/muninn/index/bloom.h"

#include "engine/muninn/nvram.h"

static uint8_t *column_at(const struct table *table, uint32_t column)
{
	return table->image + TABLE_HEADER_BYTES + (uint64_t)column * COLUMN_BYTES;
}

static uint8_t *words_at(const struct table *table)
{
	return table->image + table_bits_offset();
}

static uint8_t *overflow_at(const struct table *table, uint32_t column)
{
	return table->image + table_overflow_offset(table->filters.bits_total) +
	       (uint64_t)column * table->overflow_entries * OVERFLOW_ENTRY_BYTES;
}

static void set_shape(struct table *table, const struct muninn_geometry *geometry, uint8_t *image,
		      uint32_t index)
{
	table->image = image;
	table->source = NULL;
	table->live_word = image + TABLE_LIVE_AT;
	bloom_filter_geometry(geometry, index, &table->filters);
	table->paged_filters = geometry->bloom.paged_filters;
	table->overflow_entries = geometry->bloom.overflow_entries;
	table->further_places = geometry->bloom.places > BLOOM_FUNCTIONS
					? geometry->bloom.places - BLOOM_FUNCTIONS
					: 0;
	table->segment_pages = geometry->segment_pages;
	table->image_bytes = table_image_bytes(table->filters.bits_total, table->overflow_entries);
	assert(table->image_bytes <= geometry->image_bytes_max);
}

void table_begin(struct table *table, const struct muninn_geometry *geometry, uint8_t *image,
		 uint32_t row, uint32_t index)
{
	set_shape(table, geometry, image, index);
	nvram_store32(image + TABLE_COLUMNS_AT, 0);
	put_le32(image + TABLE_MAGIC_AT, TABLE_MAGIC);
	put_le32(image + TABLE_VERSION_AT, MUNINN_FORMAT_VERSION);
	put_le32(image + TABLE_ROW_AT, row);
	put_le32(image + TABLE_BITS_AT, table->filters.bits_total);
	put_le32(image + TABLE_OVERFLOW_AT, table->overflow_entries);
	put_le32(image + TABLE_CRC_AT, 0);
	memset(image + TABLE_CRC_AT + 4, 0, TABLE_HEADER_BYTES - TABLE_CRC_AT - 4);
	nvram_store32(image + TABLE_INDEX_AT, index);
}

bool table_attach(struct table *table, const struct muninn_geometry *geometry, uint8_t *image,
		  uint32_t row)
{
	set_shape(table, geometry, image, get_le32(image + TABLE_INDEX_AT));
	return get_le32(image + TABLE_MAGIC_AT) == TABLE_MAGIC &&
	       get_le32(image + TABLE_VERSION_AT) == MUNINN_FORMAT_VERSION &&
	       get_le32(image + TABLE_ROW_AT) == row &&
	       get_le32(image + TABLE_BITS_AT) == table->filters.bits_total &&
	       get_le32(image + TABLE_OVERFLOW_AT) == table->overflow_entries &&
	       get_le32(image + TABLE_COLUMNS_AT) <= GROUP_SEGMENTS;
}

uint32_t table_index(const struct table *table)
{
	return get_le32(table->image + TABLE_INDEX_AT);
}

uint32_t table_columns(const struct table *table)
{
	return get_le32(table->image + TABLE_COLUMNS_AT);
}

uint64_t table_live(const struct table *table)
{
	uint32_t count = table_columns(table);

	return get_le64(table->live_word) &
	       (count == GROUP_SEGMENTS ? UINT64_MAX : (UINT64_C(1) << count) - 1);
}

void table_kill_column(struct table *table, uint32_t column)
{
	uint64_t bit = UINT64_C(1) << column;

	assert(table_live(table) & bit);
	nvram_store64(table->live_word, get_le64(table->live_word) & ~bit);
}

void table_read_column(const struct table *table, uint32_t column, struct sealed_segment *facts)
{
	const uint8_t *at = column_at(table, column);

	*facts = (struct sealed_segment){
		.segment = get_le32(at + COLUMN_SEGMENT_AT),
		.group = table_index(table),
		.member = column,
		.records = get_le32(at + COLUMN_RECORDS_AT),
		.serial = get_le64(at + COLUMN_SERIAL_AT),
		.first_sequence = get_le64(at + COLUMN_FIRST_SEQUENCE_AT),
		.last_sequence = get_le64(at + COLUMN_LAST_SEQUENCE_AT),
		.record_bytes = get_le64(at + COLUMN_RECORD_BYTES_AT),
		.is_ordered = get_le32(at + COLUMN_ORDERED_AT) == 1,
	};
}

void table_write_column(struct table *table, const struct segment_index *index,
			const struct sealed_segment *facts)
{
	uint32_t column = table_columns(table);
	uint64_t bit = UINT64_C(1) << column;
	uint8_t *at = column_at(table, column);
	uint8_t *words = words_at(table);
	uint8_t *overflow = overflow_at(table, column);

	assert(column < GROUP_SEGMENTS && index->filters.bits_total == table->filters.bits_total);
	assert(index->overflow_count <= table->overflow_entries);
	put_le32(at + COLUMN_SEGMENT_AT, facts->segment);
	put_le32(at + COLUMN_RECORDS_AT, facts->records);
	put_le64(at + COLUMN_SERIAL_AT, facts->serial);
	put_le64(at + COLUMN_FIRST_SEQUENCE_AT, facts->first_sequence);
	put_le64(at + COLUMN_LAST_SEQUENCE_AT, facts->last_sequence);
	put_le64(at + COLUMN_RECORD_BYTES_AT, facts->record_bytes);
	put_le32(at + COLUMN_OVERFLOW_COUNT_AT, index->overflow_count);
	put_le32(at + COLUMN_ORDERED_AT, facts->is_ordered);
	/*
	 * The column may hold bits of an earlier table, or of an attempt that a crash cut short:
	 * set and clear.
	 */
	for (uint32_t position = 0; position < table->filters.bits_total; position++) {
		uint64_t word = get_le64(words + (uint64_t)position * 8) & ~bit;

		if (index->bits[position / 64] >> (position % 64) & 1)
			word |= bit;
		put_le64(words + (uint64_t)position * 8, word);
	}
	for (uint32_t i = 0; i < index->overflow_count; i++, overflow += OVERFLOW_ENTRY_BYTES)
		put_le48(overflow, (uint64_t)index->overflow[i].hash << OVERFLOW_PLACES_MAX |
					   index->overflow[i].places);
}

void table_commit_column(struct table *table)
{
	uint32_t column = table_columns(table);

	/* The bit counts only when the column does. */
	nvram_store64(table->live_word, get_le64(table->live_word) | UINT64_C(1) << column);
	nvram_store32(table->image + TABLE_COLUMNS_AT, column + 1);
}

uint64_t table_memory_bytes(const struct table *table)
{
	return table->source ? table_bits_offset() : table->image_bytes;
}

int table_read_bytes(const struct table *table, uint64_t offset, void *to, uint32_t bytes)
{
	if (table->source)
		return table->source->read(table->source, table, offset, to, bytes);
	memcpy(to, table->image + offset, bytes);
	return 0;
}

int table_word(const struct table *table, uint32_t position, uint64_t *word)
{
	uint8_t bytes[8] = { 0 };
	int result = table_read_bytes(table, table_bits_offset() + (uint64_t)position * 8, bytes,
				      sizeof(bytes));

	*word = get_le64(bytes);
	return result;
}
