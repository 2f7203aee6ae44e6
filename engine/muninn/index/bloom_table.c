/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Read-only tables: grows, stores and searches the filters of up to 64 segments. */
#include "engine/muninn/index/bloom.h"

#include "common/crc32c.h"
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

/* ---- its sum ---- */

/* Words of the sum; those of columns follow, each column's in a part of its own. */
enum { SUM_NUMBER, SUM_LIVE, SUM_FACTS = 1 << 24, SUM_OVERFLOW = 1 << 25 };

static uint64_t sum_place(uint32_t column, uint32_t word)
{
	return (uint64_t)(column + 1) << 32 | word;
}

/* Without the columns themselves. */
static uint64_t sum_header(uint32_t index, uint32_t columns, uint64_t live)
{
	return sum_word(SUM_NUMBER, (uint64_t)index << 32 | columns) ^
	       (columns ? sum_word(SUM_LIVE, live) : 0);
}

/* What the columns' facts and overflow entries add. */
static uint64_t sum_facts(const struct table *table, uint32_t column)
{
	const uint8_t *at = column_at(table, column), *overflow = overflow_at(table, column);
	uint32_t count = get_le32(at + COLUMN_OVERFLOW_COUNT_AT);
	uint64_t sum = 0;

	for (uint32_t n = 0; n < COLUMN_BYTES / 8; n++)
		sum ^= sum_word(sum_place(column, SUM_FACTS + n), get_le64(at + 8 * n));
	for (uint32_t n = 0; n < count && n < table->overflow_entries; n++)
		sum ^= sum_word(sum_place(column, SUM_OVERFLOW + n),
				get_le48(overflow + (uint64_t)n * OVERFLOW_ENTRY_BYTES));
	return sum;
}

/* Turns a square of 64 words: bit c of word p becomes bit p of word c (Hacker's Delight, 7-3). */
static void turn(uint64_t words[64])
{
	uint64_t mask = UINT64_C(0x00000000ffffffff);

	for (uint32_t width = 32; width; width /= 2, mask ^= mask << width)
		for (uint32_t n = 0; n < 64; n = ((n | width) + 1) & ~width) {
			uint64_t other = (words[n] >> width ^ words[n | width]) & mask;

			words[n] ^= other << width;
			words[n | width] ^= other;
		}
}

/* What the filters of all columns add. */
static uint64_t sum_filters(const struct table *table, uint32_t columns)
{
	const uint8_t *at = words_at(table);
	uint64_t sum = 0;

	for (uint32_t first = 0; columns && first < table->filters.bits_total; first += 64) {
		uint64_t words[64] = { 0 };

		for (uint32_t n = 0; n < 64 && first + n < table->filters.bits_total; n++)
			words[n] = get_le64(at + (uint64_t)(first + n) * 8);
		turn(words);
		for (uint32_t column = 0; column < columns; column++)
			sum ^= sum_word(sum_place(column, first / 64), words[column]);
	}
	return sum;
}

uint64_t table_sum(const struct table *table)
{
	uint32_t columns = table_columns(table);
	uint64_t sum = sum_header(table_index(table), columns, table_live(table));

	for (uint32_t column = 0; column < columns; column++)
		sum ^= sum_facts(table, column);
	return sum ^ sum_filters(table, columns);
}

/* What a column adds that has just been written. */
static uint64_t sum_column(const struct table *table, uint32_t column,
			   const struct bloom_segment *index)
{
	uint64_t sum = sum_facts(table, column);

	for (uint32_t n = 0; n * 64 < index->filters.bits_total; n++)
		sum ^= sum_word(sum_place(column, n), index->bits[n]);
	return sum;
}

/* Stores one word of the header; then the sum is another one. */
static void store_header(struct table *table, uint32_t at, uint32_t value, uint64_t sum)
{
	if (table->sum)
		sum_begin_whole(table->sum, sum);
	nvram_store32(table->image + at, value);
	if (table->sum)
		sum_end(table->sum);
}

/* ---- beginning and growing ---- */

void table_begin(struct table *table, const struct muninn_geometry *geometry, uint8_t *image,
		 uint32_t row, uint32_t index)
{
	set_shape(table, geometry, image, index);
	store_header(table, TABLE_COLUMNS_AT, 0, sum_header(table_index(table), 0, 0));
	put_le32(image + TABLE_MAGIC_AT, TABLE_MAGIC);
	put_le32(image + TABLE_VERSION_AT, MUNINN_FORMAT_VERSION);
	put_le32(image + TABLE_ROW_AT, row);
	put_le32(image + TABLE_BITS_AT, table->filters.bits_total);
	put_le32(image + TABLE_OVERFLOW_AT, table->overflow_entries);
	put_le32(image + TABLE_CRC_AT, 0);
	memset(image + TABLE_CRC_AT + 4, 0, TABLE_HEADER_BYTES - TABLE_CRC_AT - 4);
	store_header(table, TABLE_INDEX_AT, index, sum_header(index, 0, 0));
}

bool table_attach(struct table *table, const struct muninn_geometry *geometry, uint8_t *image,
		  uint32_t row)
{
	set_shape(table, geometry, image, get_le32(image + TABLE_INDEX_AT));
	return get_le32(image + TABLE_MAGIC_AT) == TABLE_MAGIC &&
	       get_le32(image + TABLE_VERSION_AT) == MUNINN_FORMAT_VERSION &&
	       get_le32(image + TABLE_ROW_AT) == row &&
	       (get_le32(image + TABLE_BITS_AT) == table->filters.bits_total ||
		get_le32(image + TABLE_COLUMNS_AT) == 0) &&
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
	/* Of a complete table this word is in the directory, which has a sum of its own. */
	if (table->sum)
		sum_begin(table->sum, sum_word(SUM_LIVE, table_live(table)) ^
					      sum_word(SUM_LIVE, table_live(table) & ~bit));
	nvram_store64(table->live_word, get_le64(table->live_word) & ~bit);
	if (table->sum)
		sum_end(table->sum);
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

bool table_image_is_intact(const uint8_t *image, uint64_t length)
{
	const uint8_t zero[4] = { 0 };
	uint32_t crc = crc32c(crc32c(0, image, TABLE_CRC_AT), zero, sizeof(zero));

	crc = crc32c(crc, image + TABLE_CRC_AT + 4, length - TABLE_CRC_AT - 4);
	return crc == get_le32(image + TABLE_CRC_AT);
}

bool bloom_tell_image(const struct muninn_geometry *geometry, uint8_t *image, uint64_t length,
		      uint64_t live, const struct fields *to)
{
	struct table table = { .sum = NULL };

	if (length < table_bits_offset() || get_le32(image + TABLE_MAGIC_AT) != TABLE_MAGIC ||
	    !table_attach(&table, geometry, image, get_le32(image + TABLE_ROW_AT)) ||
	    table.image_bytes != length)
		return false;
	field_flag(to, "image_intact", table_image_is_intact(image, length));
	field_number(to, "member_count", table_columns(&table));
	field_number(to, "bit_positions", table.filters.bits_total);
	field_number(to, "overflow_entries_max", table.overflow_entries);
	field_list(to, "members");
	for (uint32_t column = 0; column < table_columns(&table); column++) {
		struct sealed_segment facts;

		table_read_column(&table, column, &facts);
		sealed_segment_tell(&facts, live >> column & 1, to);
		field_number(to, "overflow",
			     get_le32(column_at(&table, column) + COLUMN_OVERFLOW_COUNT_AT));
	}
	field_end(to);
	return true;
}

void table_write_column(struct table *table, const struct bloom_segment *index,
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
	table->column_sum = sum_column(table, column, index);
}

void table_commit_column(struct table *table)
{
	uint32_t column = table_columns(table), index = table_index(table);
	uint64_t live = table_live(table);
	uint64_t change = table->column_sum ^ sum_header(index, column, live);

	live |= UINT64_C(1) << column;
	/* The bit counts only when the column does. */
	nvram_store64(table->live_word, live);
	change ^= sum_header(index, column + 1, live);
	store_header(table, TABLE_COLUMNS_AT, column + 1, get_le64(table->sum) ^ change);
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
