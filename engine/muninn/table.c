/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Read-only tables: grows, stores and searches the filters of up to 64 segments. */
#include "engine/muninn/table.h"

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
	table->unsynced = true; /* nobody knows whether it is */
	muninn_filter_geometry(geometry, index, &table->filters);
	table->paged_filters = geometry->paged_filters;
	table->overflow_entries = geometry->overflow_entries;
	table->further_places =
		geometry->places > HASH_FUNCTIONS ? geometry->places - HASH_FUNCTIONS : 0;
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
	table->unsynced = true;
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
	       get_le32(image + TABLE_COLUMNS_AT) <= MUNINN_COLUMNS;
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
	       (count == MUNINN_COLUMNS ? UINT64_MAX : (UINT64_C(1) << count) - 1);
}

void table_kill_column(struct table *table, uint32_t column)
{
	uint64_t bit = UINT64_C(1) << column;

	assert(table_live(table) & bit);
	nvram_store64(table->live_word, get_le64(table->live_word) & ~bit);
	table->unsynced = true;
}

struct table_column table_column_begin(uint32_t segment, uint64_t serial)
{
	return (struct table_column){
		.segment = segment,
		.serial = serial,
		.first_sequence = RECORD_NEWEST,
		.is_ordered = true,
	};
}

void table_column_add(struct table_column *facts, const struct page_view *page)
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

void table_read_column(const struct table *table, uint32_t column, struct table_column *facts)
{
	const uint8_t *at = column_at(table, column);

	*facts = (struct table_column){
		.segment = get_le32(at + COLUMN_SEGMENT_AT),
		.records = get_le32(at + COLUMN_RECORDS_AT),
		.serial = get_le64(at + COLUMN_SERIAL_AT),
		.first_sequence = get_le64(at + COLUMN_FIRST_SEQUENCE_AT),
		.last_sequence = get_le64(at + COLUMN_LAST_SEQUENCE_AT),
		.record_bytes = get_le64(at + COLUMN_RECORD_BYTES_AT),
		.overflow_count = get_le32(at + COLUMN_OVERFLOW_COUNT_AT),
		.is_ordered = get_le32(at + COLUMN_ORDERED_AT) == 1,
	};
}

void table_write_column(struct table *table, const struct buffer *buffer,
			const struct table_column *facts)
{
	uint32_t column = table_columns(table);
	uint64_t bit = UINT64_C(1) << column;
	uint8_t *at = column_at(table, column);
	uint8_t *words = words_at(table);
	uint8_t *overflow = overflow_at(table, column);

	assert(column < MUNINN_COLUMNS && buffer->filters.bits_total == table->filters.bits_total);
	assert(buffer->overflow_count <= table->overflow_entries);
	put_le32(at + COLUMN_SEGMENT_AT, facts->segment);
	put_le32(at + COLUMN_RECORDS_AT, facts->records);
	put_le64(at + COLUMN_SERIAL_AT, facts->serial);
	put_le64(at + COLUMN_FIRST_SEQUENCE_AT, facts->first_sequence);
	put_le64(at + COLUMN_LAST_SEQUENCE_AT, facts->last_sequence);
	put_le64(at + COLUMN_RECORD_BYTES_AT, facts->record_bytes);
	put_le32(at + COLUMN_OVERFLOW_COUNT_AT, buffer->overflow_count);
	put_le32(at + COLUMN_ORDERED_AT, facts->is_ordered);
	/*
	 * The column may hold bits of an earlier table, or of an attempt that a crash cut short:
	 * set and clear.
	 */
	for (uint32_t position = 0; position < table->filters.bits_total; position++) {
		uint64_t word = get_le64(words + (uint64_t)position * 8) & ~bit;

		if (buffer->bits[position / 64] >> (position % 64) & 1)
			word |= bit;
		put_le64(words + (uint64_t)position * 8, word);
	}
	for (uint32_t i = 0; i < buffer->overflow_count; i++, overflow += OVERFLOW_ENTRY_BYTES)
		put_le48(overflow, (uint64_t)buffer->overflow[i].hash << OVERFLOW_PLACES_MAX |
					   buffer->overflow[i].places);
}

void table_commit_column(struct table *table)
{
	uint32_t column = table_columns(table);

	/* The bit counts only when the column does. */
	nvram_store64(table->live_word, get_le64(table->live_word) | UINT64_C(1) << column);
	nvram_store32(table->image + TABLE_COLUMNS_AT, column + 1);
	table->unsynced = true;
}

uint64_t table_memory_bytes(const struct table *table)
{
	return table->source ? table_bits_offset() : table->image_bytes;
}

static int read_bytes(const struct table *table, uint64_t offset, void *to, uint32_t bytes)
{
	if (table->source)
		return table->source->read(table->source, table, offset, to, bytes);
	memcpy(to, table->image + offset, bytes);
	return 0;
}

int table_word(const struct table *table, uint32_t position, uint64_t *word)
{
	uint8_t bytes[8] = { 0 };
	int result = read_bytes(table, table_bits_offset() + (uint64_t)position * 8, bytes,
				sizeof(bytes));

	*word = get_le64(bytes);
	return result;
}

/* As filter_columns, of a table that is not in memory. */
static int read_columns(const struct table *table, uint32_t filter, const struct key_hash *hash,
			uint64_t *columns)
{
	struct filter_cursor cursor = filter_begin(&table->filters, filter, hash);

	for (uint32_t i = 0; i < table->filters.hashes[filter] && *columns; i++) {
		uint64_t word;
		int result = table_word(table, filter_next(&cursor), &word);

		if (result)
			return result;
		*columns &= word;
	}
	return 0;
}

void table_search_begin(struct table_search *search, const struct table *table,
			const struct key_hash *hash, uint64_t bound)
{
	uint64_t all = table_live(table);

	search->table = table;
	search->hash = hash;
	search->bound = bound;
	search->after = 0;
	search->columns = 0;
	search->places = 0;
	search->further_end = 0;
	search->result = 0;
	for (uint32_t filter = 0; filter < table->filters.filters; filter++) {
		uint64_t columns = all;

		if (table->source)
			search->result = read_columns(table, filter, hash, &columns);
		else
			columns =
				filter_columns(words_at(table), &table->filters, filter, hash, all);
		if (search->result) {
			search->columns = 0;
			return;
		}
		search->matches[filter] = columns;
		search->columns |= columns;
	}
}

/*
 * Notes places HASH_FUNCTIONS + `first` and behind it. What is not in the segment is of a damaged
 * map.
 */
static void note_further(struct table_search *search, uint32_t first, uint32_t places)
{
	for (; places; places &= places - 1) {
		uint32_t place = first + (uint32_t)__builtin_ctz(places);

		if (place >= search->table->further_places)
			return;
		while (search->further_end <= place / 64)
			search->further[search->further_end++] = 0;
		search->further[place / 64] |= UINT64_C(1) << place % 64;
	}
}

/* The places of an overflowed key in a column. */
static int overflow_places(struct table_search *search, uint32_t column)
{
	const struct table *table = search->table;
	uint32_t wanted = hash_overflow(search->hash), found = 0;
	uint32_t count = get_le32(column_at(table, column) + COLUMN_OVERFLOW_COUNT_AT);
	uint64_t at = table_overflow_offset(table->filters.bits_total) +
		      (uint64_t)column * table->overflow_entries * OVERFLOW_ENTRY_BYTES;

	assert(count <= table->overflow_entries);
	for (uint32_t i = 0; i < count; i++, at += OVERFLOW_ENTRY_BYTES) {
		uint8_t entry[OVERFLOW_ENTRY_BYTES];
		int result = read_bytes(table, at, entry, sizeof(entry));

		if (result)
			return result;
		uint64_t packed = get_le48(entry);
		uint32_t places = (uint32_t)(packed & ((1U << OVERFLOW_PLACES_MAX) - 1));

		if (packed >> OVERFLOW_PLACES_MAX != wanted)
			continue;
		if (found++ == 0)
			search->places |= places << table->paged_filters;
		else
			note_further(search, (found - 2) * OVERFLOW_PLACES_MAX, places);
	}
	return 0;
}

/* The places to try in a column: overflowed ones from its map, the others from the filters. */
static int column_places(struct table_search *search, uint32_t column)
{
	const struct table *table = search->table;

	search->places = 0;
	search->further_end = 0;
	for (uint32_t filter = 0; filter < table->paged_filters; filter++)
		if (search->matches[filter] >> column & 1)
			search->places |= 1U << filter;
	if (table->paged_filters < table->filters.filters &&
	    search->matches[table->paged_filters] >> column & 1)
		return overflow_places(search, column);
	return 0;
}

bool table_search_column(struct table_search *search, uint32_t *segment)
{
	while (search->columns) {
		uint32_t column = 63 - (uint32_t)__builtin_clzll(search->columns);
		const uint8_t *facts = column_at(search->table, column);

		search->columns &= ~(UINT64_C(1) << column);
		/* Nothing in the segment is as old as the bound asks, or as new. */
		if (get_le64(facts + COLUMN_FIRST_SEQUENCE_AT) > search->bound ||
		    get_le64(facts + COLUMN_LAST_SEQUENCE_AT) <= search->after)
			continue;
		search->column = column;
		search->result = column_places(search, column);
		if (search->result)
			return false;
		*segment = get_le32(facts + COLUMN_SEGMENT_AT);
		return true;
	}
	return false;
}

uint32_t table_search_place(const struct table_search *search, uint32_t most)
{
	uint32_t places = search->places;

	if (most >= HASH_FUNCTIONS) {
		uint32_t further = most - HASH_FUNCTIONS;

		for (uint32_t word = search->further_end; word-- > 0;) {
			uint64_t bits = search->further[word];

			if (word > further / 64)
				continue;
			if (word == further / 64 && further % 64 < 63)
				bits &= (UINT64_C(2) << further % 64) - 1;
			if (bits)
				return HASH_FUNCTIONS + word * 64 + 63 -
				       (uint32_t)__builtin_clzll(bits);
		}
	} else {
		places &= (2U << most) - 1;
	}
	return places ? 31 - (uint32_t)__builtin_clz(places) : UINT32_MAX;
}

void table_search_leave(struct table_search *search, uint32_t place)
{
	if (place < HASH_FUNCTIONS)
		search->places &= ~(1U << place);
	else
		search->further[(place - HASH_FUNCTIONS) / 64] &=
			~(UINT64_C(1) << (place - HASH_FUNCTIONS) % 64);
}

void table_search_leave_behind(struct table_search *search, uint32_t place)
{
	for (;;) {
		uint32_t last = table_search_place(search, UINT32_MAX);

		if (last == UINT32_MAX || last <= place)
			return;
		table_search_leave(search, last);
	}
}

uint32_t table_search_count(const struct table_search *search)
{
	uint32_t count = (uint32_t)__builtin_popcount(search->places);

	for (uint32_t word = 0; word < search->further_end; word++)
		count += (uint32_t)__builtin_popcountll(search->further[word]);
	return count;
}

bool table_search_is_ordered(const struct table_search *search, uint64_t *last_sequence)
{
	const uint8_t *facts = column_at(search->table, search->column);

	*last_sequence = get_le64(facts + COLUMN_LAST_SEQUENCE_AT);
	return get_le32(facts + COLUMN_ORDERED_AT) == 1;
}
