/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The index of an active segment: where its keys may go, and where they are. In memory. */
#include <malloc.h>
#include <stdlib.h>

#include "engine/muninn/index/bloom.h"

static uint32_t place_page(const struct bloom_segment *index, const struct key_hash *hash,
			   uint32_t place)
{
	return hash_own_page(hash, place, index->base.geometry->segment_pages, index->eighths);
}

/*
 * Which of a key's entries in the overflow map is for a place, and which bit of it. `place` is not
 * below paged_filters.
 */
static uint32_t entry_of(const struct bloom_segment *index, uint32_t place, uint32_t *bit)
{
	if (place < BLOOM_FUNCTIONS) {
		*bit = place - index->base.geometry->bloom.paged_filters;
		return 0;
	}
	*bit = (place - BLOOM_FUNCTIONS) % OVERFLOW_PLACES_MAX;
	return 1 + (place - BLOOM_FUNCTIONS) / OVERFLOW_PLACES_MAX;
}

/* The n-th entry of a key, from 0; NULL: it has not so many. */
static struct overflow_entry *overflow_find(const struct bloom_segment *index,
					    const struct key_hash *hash, uint32_t n)
{
	uint32_t wanted = hash_overflow(hash);

	if (index->base.geometry->bloom.paged_filters == index->base.geometry->bloom.filters ||
	    !filter_test(index->bits, &index->filters, index->base.geometry->bloom.paged_filters,
			 hash))
		return NULL;
	for (uint32_t i = 0; i < index->overflow_count; i++)
		if (index->overflow[i].hash == wanted && n-- == 0)
			return &index->overflow[i];
	return NULL;
}

/* How many entries a key has; *last, if it has any: the last one. */
static uint32_t overflow_entries(const struct bloom_segment *index, const struct key_hash *hash,
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
static uint32_t last_place(const struct bloom_segment *index, const struct key_hash *hash)
{
	const struct overflow_entry *last;
	uint32_t count = overflow_entries(index, hash, &last);

	if (count) {
		uint32_t bit = 31 - (uint32_t)__builtin_clz(last->places);

		return count == 1 ? index->base.geometry->bloom.paged_filters + bit
				  : BLOOM_FUNCTIONS + (count - 2) * OVERFLOW_PLACES_MAX + bit;
	}
	for (uint32_t filter = index->base.geometry->bloom.paged_filters; filter-- > 0;)
		if (filter_test(index->bits, &index->filters, filter, hash))
			return filter;
	return 0;
}

/* Whether the index has space to note the key at `place`. */
static bool place_can_be_noted(const struct bloom_segment *index, const struct key_hash *hash,
			       uint32_t place)
{
	const struct overflow_entry *last;
	uint32_t bit, count, entry;

	if (place < index->base.geometry->bloom.paged_filters)
		return index->keys[place] < index->base.geometry->bloom.keys_limit[place] ||
		       filter_test(index->bits, &index->filters, place, hash);
	entry = entry_of(index, place, &bit);
	count = overflow_entries(index, hash, &last);
	return entry < count || index->overflow_count + entry + 1 - count <=
					index->base.geometry->bloom.overflow_entries;
}

/*
 * Whether a key may be put to a place. The further ones are for keys that are put often: they have
 * a hash function's place from the overflow map. No entry is left empty for them, so that they use
 * up the map no faster than they fill the segment.
 */
static bool may_place(const struct bloom_segment *index, const struct key_hash *hash,
		      uint32_t place)
{
	const struct overflow_entry *last;
	uint32_t bit;

	return place < BLOOM_FUNCTIONS ||
	       entry_of(index, place, &bit) <= overflow_entries(index, hash, &last);
}

static void note_in_overflow(struct bloom_segment *index, const struct key_hash *hash,
			     uint32_t place)
{
	uint32_t bit, number = entry_of(index, place, &bit);
	struct overflow_entry *entry;

	/*
	 * Pages that are indexed again come in their own order, so an entry may come before those
	 * ahead of it.
	 */
	while (!(entry = overflow_find(index, hash, number))) {
		assert(index->overflow_count < index->base.geometry->bloom.overflow_entries);
		index->overflow[index->overflow_count++] =
			(struct overflow_entry){ .hash = hash_overflow(hash) };
	}
	entry->places |= 1U << bit;
}

void bloom_segment_note(struct segment_index *base, const struct key_hash *hash, uint32_t place)
{
	struct bloom_segment *index = bloom_segment_of(base);
	uint32_t paged = index->base.geometry->bloom.paged_filters;
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
uint32_t bloom_segment_first(const struct segment_index *base, const struct key_hash *hash)
{
	return last_place(bloom_segment_in(base), hash);
}

bool bloom_segment_next(const struct segment_index *base, const struct key_hash *hash,
			uint32_t *place, uint32_t *page)
{
	const struct bloom_segment *index = bloom_segment_in(base);

	for (; *place < index->base.geometry->bloom.places; ++*place) {
		*page = place_page(index, hash, *place);
		if (*page != UINT32_MAX && place_can_be_noted(index, hash, *place) &&
		    may_place(index, hash, *place))
			return true;
	}
	return false;
}

bool bloom_segment_note_page(struct segment_index *base, const struct key_hash *hash, uint32_t page)
{
	struct bloom_segment *index = bloom_segment_of(base);
	uint32_t place =
		hash_place(hash, page, index->base.geometry->segment_pages, index->eighths);

	if (place >= index->base.geometry->bloom.places ||
	    (place >= index->base.geometry->bloom.paged_filters &&
	     !place_can_be_noted(index, hash, place)))
		return false;
	bloom_segment_note(base, hash, place);
	return true;
}

/* ---- finding ---- */

/* Whether the index says that the key was put to `place`. */
static bool place_is_noted(const struct bloom_segment *index, const struct key_hash *hash,
			   uint32_t place)
{
	const struct overflow_entry *entry;
	uint32_t bit;

	if (place < index->base.geometry->bloom.paged_filters)
		return filter_test(index->bits, &index->filters, place, hash);
	entry = overflow_find(index, hash, entry_of(index, place, &bit));
	return entry && entry->places >> bit & 1;
}

bool bloom_segment_find(const struct segment_index *base, const struct key_hash *hash,
			const struct pages_up_to *wanted, uint32_t *place, uint32_t *page)
{
	const struct bloom_segment *index = bloom_segment_in(base);
	uint32_t below = *place;

	/* Behind the last place there is nothing to ask for. */
	if (below > index->base.geometry->bloom.paged_filters)
		below = (uint32_t)min_u64(below, last_place(index, hash) + 1);
	while (below-- > 0) {
		if (!place_is_noted(index, hash, below))
			continue;
		*page = place_page(index, hash, below);
		if (*page == UINT32_MAX || (wanted && wanted->lowest[*page] > wanted->bound))
			continue;
		*place = below;
		return true;
	}
	return false;
}

bool bloom_may_place(const struct muninn_geometry *geometry, const struct key_hash *hash,
		     uint64_t serial, uint32_t page)
{
	for (uint32_t place = 0; place < BLOOM_FUNCTIONS; place++)
		if (hash_page(hash, place, geometry->segment_pages, serial_eighths(serial)) == page)
			return true;
	return false;
}

bool bloom_spreads(const struct muninn_geometry *geometry)
{
	return geometry->bloom.places > BLOOM_FUNCTIONS;
}

/* ---- memory ---- */

struct segment_index *bloom_segment_create(const struct muninn_geometry *geometry)
{
	struct bloom_segment *index = calloc(1, sizeof(*index));
	struct filter_geometry largest;

	if (!index)
		return NULL;
	bloom_largest_filters(geometry, &largest);
	index->base = (struct segment_index){ .type = &bloom_index, .geometry = geometry };
	index->bits_bytes = align_up(largest.bits_total, 64) / 8;
	index->bits = calloc(1, index->bits_bytes);
	index->overflow = calloc(geometry->bloom.overflow_entries, sizeof(*index->overflow));
	if (index->bits && index->overflow)
		return &index->base;
	bloom_segment_destroy(&index->base);
	return NULL;
}

void bloom_segment_destroy(struct segment_index *base)
{
	struct bloom_segment *index = bloom_segment_of(base);

	free(index->bits);
	free(index->overflow);
	free(index);
}

void bloom_segment_begin(struct segment_index *base, const struct row_index *row, uint32_t ahead,
			 uint64_t serial)
{
	struct bloom_segment *index = bloom_segment_of(base);
	const struct table *growing = &bloom_row_in(row)->growing;
	uint32_t table = table_index(growing) + (table_columns(growing) + ahead >= GROUP_SEGMENTS);

	bloom_filter_geometry(index->base.geometry, table, &index->filters);
	assert(align_up(index->filters.bits_total, 64) / 8 <= index->bits_bytes);
	memset(index->bits, 0, index->bits_bytes);
	memset(index->keys, 0, sizeof(index->keys));
	index->overflow_count = 0;
	index->eighths = serial_eighths(serial);
}

uint64_t bloom_segment_bytes(const struct segment_index *base)
{
	const struct bloom_segment *index = bloom_segment_in(base);

	return index->bits_bytes +
	       index->base.geometry->bloom.overflow_entries * sizeof(*index->overflow);
}

uint64_t bloom_segment_memory(const struct segment_index *base)
{
	const struct bloom_segment *index = bloom_segment_in(base);

	return malloc_usable_size((void *)(uintptr_t)index) + malloc_usable_size(index->bits) +
	       malloc_usable_size(index->overflow);
}
