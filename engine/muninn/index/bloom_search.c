/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Searching a table: which of its segments may hold a key, and which pages of them. */
#include "engine/muninn/index/bloom.h"

/* Of fewer places too many may be false: they are visited from the newest one on. */
enum { NARROW_PLACES = 6 };

static const uint8_t *column_at(const struct table *table, uint32_t column)
{
	return table->image + TABLE_HEADER_BYTES + (uint64_t)column * COLUMN_BYTES;
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
			columns = filter_columns((table->image + table_bits_offset()),
						 &table->filters, filter, hash, all);
		if (search->result) {
			search->columns = 0;
			return;
		}
		search->matches[filter] = columns;
		search->columns |= columns;
	}
}

/*
 * Notes places BLOOM_FUNCTIONS + `first` and behind it. What is not in the segment is of a damaged
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
		int result = table_read_bytes(table, at, entry, sizeof(entry));

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

bool table_search_segment(struct table_search *search, uint32_t *segment)
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
		search->eighths = serial_eighths(get_le64(facts + COLUMN_SERIAL_AT));
		search->result = column_places(search, column);
		if (search->result)
			return false;
		*segment = get_le32(facts + COLUMN_SEGMENT_AT);
		return true;
	}
	return false;
}

uint64_t table_search_last(const struct table_search *search)
{
	return get_le64(column_at(search->table, search->column) + COLUMN_LAST_SEQUENCE_AT);
}

uint32_t table_search_place(const struct table_search *search)
{
	for (uint32_t word = search->further_end; word-- > 0;)
		if (search->further[word])
			return BLOOM_FUNCTIONS + word * 64 + 63 -
			       (uint32_t)__builtin_clzll(search->further[word]);
	return search->places ? 31 - (uint32_t)__builtin_clz(search->places) : UINT32_MAX;
}

void table_search_leave(struct table_search *search, uint32_t place)
{
	if (place < BLOOM_FUNCTIONS)
		search->places &= ~(1U << place);
	else
		search->further[(place - BLOOM_FUNCTIONS) / 64] &=
			~(UINT64_C(1) << (place - BLOOM_FUNCTIONS) % 64);
}

bool table_search_page(struct table_search *search, uint32_t *page)
{
	for (;;) {
		uint32_t place = table_search_place(search);

		if (place == UINT32_MAX)
			return false;
		table_search_leave(search, place);
		*page = hash_own_page(search->hash, place, search->table->segment_pages,
				      search->eighths);
		/*
		 * Otherwise a false positive: an earlier place stands for that page, and newer
		 * records may be at places between the two.
		 */
		if (*page != UINT32_MAX)
			return true;
	}
}

/* Lists the places that are left, but for false ones. */
static void list_places(struct table_search *search, struct narrow *narrow)
{
	struct table_search rest = *search;
	uint32_t page, place;

	narrow->count = 0;
	while ((place = table_search_place(&rest)) != UINT32_MAX) {
		table_search_leave(&rest, place);
		page = hash_own_page(search->hash, place, search->table->segment_pages,
				     search->eighths);
		if (page != UINT32_MAX)
			narrow_add(narrow, place, page);
	}
}

static void keep_places(struct table_search *search, const struct narrow *narrow)
{
	search->places = 0;
	search->further_end = 0;
	for (uint32_t n = 0; n < narrow->count; n++) {
		uint32_t place = narrow->places[n];

		if (place < BLOOM_FUNCTIONS)
			search->places |= 1U << place;
		else
			note_further(search, place - BLOOM_FUNCTIONS, 1);
	}
}

int table_search_narrow(struct table_search *search, enum narrow_way way, index_probe *probe,
			void *context)
{
	const uint8_t *facts = column_at(search->table, search->column);
	struct narrow narrow;
	int result;

	narrow.first_sequence = get_le64(facts + COLUMN_FIRST_SEQUENCE_AT);
	narrow.last_sequence = get_le64(facts + COLUMN_LAST_SEQUENCE_AT);
	if (get_le32(facts + COLUMN_ORDERED_AT) != 1 || search->bound >= narrow.last_sequence)
		return 0;
	list_places(search, &narrow);
	if (narrow.count < NARROW_PLACES)
		return 0;
	result = narrow_find(&narrow, search->bound, way, probe, context);
	keep_places(search, &narrow);
	return result;
}
