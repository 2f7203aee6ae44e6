/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The index of an active segment: where its keys may go, and where they are. In memory. */
#include <malloc.h>
#include <stdlib.h>

#include "engine/muninn/index/bloom.h"

static uint32_t place_page(const struct segment_index *index, const struct key_hash *hash,
			   uint32_t place)
{
	return hash_own_page(hash, place, index->geometry->segment_pages, index->eighths);
}

/*
 * Which of a key's entries in the overflow map is for a place, and which bit of it. `place` is not
 * below paged_filters.
 */
static uint32_t entry_of(const struct segment_index *index, uint32_t place, uint32_t *bit)
{
	if (place < BLOOM_FUNCTIONS) {
		*bit = place - index->geometry->bloom.paged_filters;
		return 0;
	}
	*bit = (place - BLOOM_FUNCTIONS) % OVERFLOW_PLACES_MAX;
	return 1 + (place - BLOOM_FUNCTIONS) / OVERFLOW_PLACES_MAX;
}

/* The n-th entry of a key, from 0; NULL: it has not so many. */
static struct overflow_entry *overflow_find(const struct segment_index *index,
					    const struct key_hash *hash, uint32_t n)
{
	uint32_t wanted = hash_overflow(hash);

	if (index->geometry->bloom.paged_filters == index->geometry->bloom.filters ||
	    !filter_test(index->bits, &index->filters, index->geometry->bloom.paged_filters, hash))
		return NULL;
	for (uint32_t i = 0; i < index->overflow_count; i++)
		if (index->overflow[i].hash == wanted && n-- == 0)
			return &index->overflow[i];
	return NULL;
}

/* How many entries a key has; *last, if it has any: the last one. */
static uint32_t overflow_entries(const struct segment_index *index, const struct key_hash *hash,
				 const struct overflow_entry **last)
{
	const struct overflow_entry *entry = overflow_find(index, hash, 0);
	uint32_t count = 0;

	if (!entry)
		return 0;
	for (; entry < index->overflow + index->overflow_count; entry++)
		if (entry->hash == hash_overflow(hash)) {
			*last = entry;
			count++;
		}
	return count;
}

/* The last place that the key was put to (or, by a false positive, seems to), or 0. */
static uint32_t last_place(const struct segment_index *index, const struct key_hash *hash)
{
	const struct overflow_entry *last;
	uint32_t count = overflow_entries(index, hash, &last);

	if (count) {
		uint32_t bit = 31 - (uint32_t)__builtin_clz(last->places);

		return count == 1 ? index->geometry->bloom.paged_filters + bit
				  : BLOOM_FUNCTIONS + (count - 2) * OVERFLOW_PLACES_MAX + bit;
	}
	for (uint32_t filter = index->geometry->bloom.paged_filters; filter-- > 0;)
		if (filter_test(index->bits, &index->filters, filter, hash))
			return filter;
	return 0;
}

/* Whether the index has space to note the key at `place`. */
static bool place_can_be_noted(const struct segment_index *index, const struct key_hash *hash,
			       uint32_t place)
{
	const struct overflow_entry *last;
	uint32_t bit, count, entry;

	if (place < index->geometry->bloom.paged_filters)
		return index->keys[place] < index->geometry->bloom.keys_limit[place] ||
		       filter_test(index->bits, &index->filters, place, hash);
	entry = entry_of(index, place, &bit);
	count = overflow_entries(index, hash, &last);
	return entry < count ||
	       index->overflow_count + entry + 1 - count <= index->geometry->bloom.overflow_entries;
}

/*
 * Whether a key may be put to a place. The further ones are for keys that are put often: they have
 * a hash function's place from the overflow map. No entry is left empty for them, so that they use
 * up the map no faster than they fill the segment.
 */
static bool may_place(const struct segment_index *index, const struct key_hash *hash,
		      uint32_t place)
{
	const struct overflow_entry *last;
	uint32_t bit;

	return place < BLOOM_FUNCTIONS ||
	       entry_of(index, place, &bit) <= overflow_entries(index, hash, &last);
}

static void note_in_overflow(struct segment_index *index, const struct key_hash *hash,
			     uint32_t place)
{
	uint32_t bit, number = entry_of(index, place, &bit);
	struct overflow_entry *entry;

	/*
	 * Pages that are indexed again come in their own order, so an entry may come before those
	 * ahead of it.
	 */
	while (!(entry = overflow_find(index, hash, number))) {
		assert(index->overflow_count < index->geometry->bloom.overflow_entries);
		index->overflow[index->overflow_count++] =
			(struct overflow_entry){ .hash = hash_overflow(hash) };
	}
	entry->places |= 1U << bit;
}

void segment_index_note(struct segment_index *index, const struct key_hash *hash, uint32_t place)
{
	uint32_t paged = index->geometry->bloom.paged_filters;
	uint32_t filter = place < paged ? place : paged;
	bool is_new = !filter_test(index->bits, &index->filters, filter, hash);

	if (is_new) {
		filter_add(index->bits, &index->filters, filter, hash);
		index->keys[filter]++;
	}
	if (filter == paged)
		note_in_overflow(index, hash, place);
}

/* ---- putting ---- */

/*
 * Never before the last place of the key: a search takes the last place first and must find the
 * newest there.
 */
uint32_t segment_index_first(const struct segment_index *index, const struct key_hash *hash)
{
	return last_place(index, hash);
}

bool segment_index_next(const struct segment_index *index, const struct key_hash *hash,
			uint32_t *place, uint32_t *page)
{
	for (; *place < index->geometry->bloom.places; ++*place) {
		*page = place_page(index, hash, *place);
		if (*page != UINT32_MAX && place_can_be_noted(index, hash, *place) &&
		    may_place(index, hash, *place))
			return true;
	}
	return false;
}

bool segment_index_note_page(struct segment_index *index, const struct key_hash *hash,
			     uint32_t page)
{
	uint32_t place = hash_place(hash, page, index->geometry->segment_pages, index->eighths);

	if (place >= index->geometry->bloom.places ||
	    (place >= index->geometry->bloom.paged_filters &&
	     !place_can_be_noted(index, hash, place)))
		return false;
	segment_index_note(index, hash, place);
	return true;
}

/* ---- finding ---- */

/* Whether the index says that the key was put to `place`. */
static bool place_is_noted(const struct segment_index *index, const struct key_hash *hash,
			   uint32_t place)
{
	const struct overflow_entry *entry;
	uint32_t bit;

	if (place < index->geometry->bloom.paged_filters)
		return filter_test(index->bits, &index->filters, place, hash);
	entry = overflow_find(index, hash, entry_of(index, place, &bit));
	return entry && entry->places >> bit & 1;
}

bool segment_index_find(const struct segment_index *index, const struct key_hash *hash,
			uint32_t *place, uint32_t *page)
{
	uint32_t below = *place;

	/* Behind the last place there is nothing to ask for. */
	if (below > index->geometry->bloom.paged_filters)
		below = (uint32_t)min_u64(below, last_place(index, hash) + 1);
	while (below-- > 0) {
		if (!place_is_noted(index, hash, below))
			continue;
		*page = place_page(index, hash, below);
		if (*page == UINT32_MAX)
			continue;
		*place = below;
		return true;
	}
	return false;
}

bool index_may_place(const struct muninn_geometry *geometry, const struct key_hash *hash,
		     uint64_t serial, uint32_t page)
{
	for (uint32_t place = 0; place < BLOOM_FUNCTIONS; place++)
		if (hash_page(hash, place, geometry->segment_pages, serial_eighths(serial)) == page)
			return true;
	return false;
}

bool index_spreads(const struct muninn_geometry *geometry)
{
	return geometry->bloom.places > BLOOM_FUNCTIONS;
}

/* ---- memory ---- */

struct segment_index *segment_index_create(const struct muninn_geometry *geometry)
{
	struct segment_index *index = calloc(1, sizeof(*index));
	struct filter_geometry newest;

	if (!index)
		return NULL;
	bloom_filter_geometry(geometry, geometry->bloom.tables_expected, &newest);
	index->geometry = geometry;
	index->bits_bytes = align_up(newest.bits_total, 64) / 8;
	index->bits = calloc(1, index->bits_bytes);
	index->overflow = calloc(geometry->bloom.overflow_entries, sizeof(*index->overflow));
	if (index->bits && index->overflow)
		return index;
	segment_index_destroy(index);
	return NULL;
}

void segment_index_destroy(struct segment_index *index)
{
	if (!index)
		return;
	free(index->bits);
	free(index->overflow);
	free(index);
}

void segment_index_begin(struct segment_index *index, const struct row_index *row, uint32_t ahead,
			 uint64_t serial)
{
	uint32_t table = table_index(&row->growing) +
			 (table_columns(&row->growing) + ahead >= GROUP_SEGMENTS);

	bloom_filter_geometry(index->geometry, table, &index->filters);
	assert(align_up(index->filters.bits_total, 64) / 8 <= index->bits_bytes);
	memset(index->bits, 0, index->bits_bytes);
	memset(index->keys, 0, sizeof(index->keys));
	index->overflow_count = 0;
	index->eighths = serial_eighths(serial);
}

uint64_t segment_index_bytes(const struct segment_index *index)
{
	return index->bits_bytes +
	       index->geometry->bloom.overflow_entries * sizeof(*index->overflow);
}

uint64_t segment_index_memory(const struct segment_index *index)
{
	return index ? malloc_usable_size((void *)(uintptr_t)index) +
			       malloc_usable_size(index->bits) + malloc_usable_size(index->overflow)
		     : 0;
}
