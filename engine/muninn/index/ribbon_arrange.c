/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Arranges the records of a full buffer for its segment. */
#include "engine/muninn/index/ribbon_arrange.h"

#include <stdlib.h>

#include "engine/muninn/index/ribbon/group_format.h"
#include "engine/muninn/index/ribbon/placement.h"
#include "engine/muninn/index/ribbon/ribbon_hash.h"

struct arranged {
	const uint8_t *header, *value;
	struct record_key key;
	struct key_hash hash;
	uint64_t sequence;
	uint32_t bytes; /* of its page; one with its header in the spare area takes all of it, and
			   where there are cells each takes one */
	uint32_t own_bytes; /* header and value */
	uint16_t page;
	uint8_t candidate; /* PLACEMENT_NONE: none of them */
	bool is_large;     /* it has a page for itself, and its header in the spare area */
	bool has_run;      /* it is a head, and its key has older records in a run */
	bool is_apart;     /* its tag has records that are larger than a cell */
};

struct arrangement {
	const struct muninn_geometry *geometry; /* while it is made */
	uint64_t serial;
	uint32_t pages, page_bytes, cell_bytes;
	uint32_t run_pages; /* with those of records that are apart */
	uint32_t count;     /* of records */
	bool has_apart;     /* some of them are */
	struct arranged *records;
	uint64_t *words;           /* to sort them by: the number of a record is the lower half */
	uint64_t *spare;           /* as many, to sort with */
	uint32_t *order;           /* records by page ... */
	uint32_t *begins;          /* ... and where those of a page begin */
	uint32_t *space;           /* of each page, what is left for records that begin there */
	uint32_t *offsets;         /* where the first record of each page begins in it */
	uint32_t *run_tags;        /* of each page of runs: see RUN_TAG_BYTES */
	struct tag_entry *entries; /* of keys, and behind them of pages of runs */
	uint32_t key_entries;
};

/* ---- memory ---- */

void arrangement_destroy(struct arrangement *arrangement)
{
	if (!arrangement)
		return;
	free(arrangement->records);
	free(arrangement->words);
	free(arrangement->spare);
	free(arrangement->order);
	free(arrangement->begins);
	free(arrangement->space);
	free(arrangement->offsets);
	free(arrangement->run_tags);
	free(arrangement->entries);
	free(arrangement);
}

static struct arrangement *create(const struct muninn_geometry *geometry, uint64_t serial,
				  uint32_t count)
{
	struct arrangement *arrangement = calloc(1, sizeof(*arrangement));
	uint32_t pages = geometry->segment_pages;
	size_t some = count + (size_t)1; /* a buffer with cells may be empty */

	if (!arrangement)
		return NULL;
	arrangement->geometry = geometry;
	arrangement->serial = serial;
	arrangement->pages = pages;
	arrangement->page_bytes = geometry->page_bytes;
	arrangement->count = count;
	arrangement->records = malloc(some * sizeof(*arrangement->records));
	arrangement->words = malloc(some * sizeof(*arrangement->words));
	arrangement->spare = malloc(some * sizeof(*arrangement->spare));
	arrangement->order = malloc(some * sizeof(*arrangement->order));
	arrangement->begins = calloc(pages + UINT32_C(1), sizeof(*arrangement->begins));
	arrangement->space = malloc(pages * sizeof(*arrangement->space));
	arrangement->offsets = malloc(pages * sizeof(*arrangement->offsets));
	arrangement->run_tags = malloc(pages * sizeof(*arrangement->run_tags));
	arrangement->entries = malloc((count + (uint64_t)pages) * sizeof(*arrangement->entries));
	if (arrangement->records && arrangement->words && arrangement->spare &&
	    arrangement->order && arrangement->begins && arrangement->space &&
	    arrangement->offsets && arrangement->run_tags && arrangement->entries)
		return arrangement;
	arrangement_destroy(arrangement);
	return NULL;
}

/* ---- the records ---- */

/* What each page, from one on, takes of the records that begin in it; the one before ends there. */
static void measure_pages(struct arrangement *arrangement, uint32_t from)
{
	uint32_t begin = 0;

	for (uint32_t page = from; page < arrangement->pages; page++)
		arrangement->space[page] =
			arrangement->cell_bytes
				? arrangement->cell_bytes *
					  span_next_page(arrangement->geometry,
							 arrangement->cell_bytes,
							 page + 1 == arrangement->pages, &begin)
				: arrangement->page_bytes;
}

/*
 * Nobody has used the headers of a full buffer for long. So they are fetched before it is their
 * turn: from so many pages ahead, where they are if the records there are as long.
 */
enum { PAGES_AHEAD = 4 };

/*
 * How many records there are. 0: they are better left where they are, because most take a page
 * each. Pieces of an object that follow each other are on pages that follow each other then, and an
 * entry of three bytes is little for a page.
 */
static uint32_t count_records(const struct muninn_geometry *geometry, const struct page_view *pages,
			      uint32_t cell_bytes)
{
	uint64_t count = 0, used = 0;

	for (uint32_t page = 0; page < geometry->segment_pages; page++) {
		const uint8_t *ahead = page + PAGES_AHEAD < geometry->segment_pages
					       ? pages[page + PAGES_AHEAD].data
					       : NULL;
		struct page_record record;

		for (uint32_t offset = 0, at = 0; page_next(&pages[page], &offset, &record);
		     at = offset, count++)
			if (ahead)
				__builtin_prefetch(ahead + at);
		used += pages[page].used;
	}
	return !cell_bytes && 2 * used > count * geometry->page_bytes ? 0 : (uint32_t)count;
}

static uint32_t taken_bytes(const struct arrangement *arrangement, const struct arranged *record)
{
	if (arrangement->cell_bytes)
		return arrangement->cell_bytes;
	return record->is_large ? arrangement->page_bytes : record->own_bytes;
}

static void collect(struct arrangement *arrangement, const struct page_view *pages)
{
	struct arranged *to = arrangement->records;

	for (uint32_t page = 0; page < arrangement->pages; page++) {
		struct page_record record;

		for (uint32_t offset = 0; page_next(&pages[page], &offset, &record); to++) {
			struct record_header header;

			record_header_decode(record.header, &header);
			*to = (struct arranged){
				.header = record.header,
				.value = record.value,
				.key = header.key,
				.hash = key_hash(&header.key, arrangement->pages),
				.sequence = header.sequence,
				.own_bytes = (uint32_t)RECORD_HEADER_BYTES + header.length,
				.candidate = PLACEMENT_NONE,
				.is_large = pages[page].large_header != NULL,
			};
			to->bytes = taken_bytes(arrangement, to);
		}
	}
}

/* By bytes, from the lowest on. Those that all words have in common are passed over. */
static void sort_words(uint64_t *words, uint64_t *spare, uint32_t count)
{
	uint32_t ends[sizeof(*words)][256] = { 0 };
	uint64_t *from = words, *to = spare, *other;

	for (uint32_t n = 0; n < count; n++)
		for (uint32_t byte = 0; byte < sizeof(*words); byte++)
			ends[byte][words[n] >> 8 * byte & 255]++;
	for (uint32_t byte = 0; count && byte < sizeof(*words); byte++) {
		if (ends[byte][from[0] >> 8 * byte & 255] == count)
			continue;
		for (uint32_t value = 1; value < 256; value++)
			ends[byte][value] += ends[byte][value - 1];
		for (uint32_t n = count; n-- > 0;)
			to[--ends[byte][from[n] >> 8 * byte & 255]] = from[n];
		other = from;
		from = to;
		to = other;
	}
	if (from != words)
		memcpy(words, from, count * sizeof(*words));
}

static struct arranged *record_of(const struct arrangement *arrangement, uint32_t n)
{
	return &arrangement->records[(uint32_t)arrangement->words[n]];
}

/* The end of the records, in the order of words, that have the same tag as the n-th one. */
static uint32_t end_of_tag(const struct arrangement *arrangement, uint32_t n)
{
	uint32_t end = n + 1;

	while (end < arrangement->count &&
	       arrangement->words[end] >> 32 == arrangement->words[n] >> 32)
		end++;
	return end;
}

/* Keys in any order, but always the same one. */
static int compare_keys(const struct arranged *a, const struct arranged *b)
{
	const uint64_t words[2][2] = {
		{ a->key.identifier,
		  (uint64_t)a->key.partition << 40 | (uint64_t)a->key.class << 32 | a->key.piece },
		{ b->key.identifier,
		  (uint64_t)b->key.partition << 40 | (uint64_t)b->key.class << 32 | b->key.piece },
	};

	for (int n = 0; n < 2; n++)
		if (words[0][n] != words[1][n])
			return words[0][n] < words[1][n] ? -1 : 1;
	return 0;
}

/* By key, and by number; those of equal ones as they were put. */
static bool comes_before(const struct arranged *a, const struct arranged *b)
{
	int keys = compare_keys(a, b);

	return keys ? keys < 0 : a->sequence < b->sequence;
}

/* Mostly they are in order already. */
static void sort_by_key(struct arrangement *arrangement, uint32_t first, uint32_t end)
{
	for (uint32_t n = first + 1; n < end; n++) {
		uint64_t word = arrangement->words[n];
		const struct arranged *record = record_of(arrangement, n);
		uint32_t at = n;

		for (; at > first && comes_before(record, record_of(arrangement, at - 1)); at--)
			arrangement->words[at] = arrangement->words[at - 1];
		arrangement->words[at] = word;
	}
}

static void sort_by_tag(struct arrangement *arrangement)
{
	uint32_t count = arrangement->count;

	for (uint32_t n = 0; n < count; n++)
		arrangement->words[n] = (uint64_t)tag_of(&arrangement->records[n].hash) << 32 | n;
	sort_words(arrangement->words, arrangement->spare, count);
	for (uint32_t first = 0, end; first < count; first = end) {
		end = end_of_tag(arrangement, first);
		sort_by_key(arrangement, first, end);
	}
}

/* ---- runs ---- */

/*
 * The records of a tag, in the order of words. Those before `runs_end` are in runs; the last one
 * may be apart, which is the head of the only key.
 */
struct same_tag {
	uint32_t first, runs_end, end;
};

/* Goes on to the next tag; begins with zeros. False: there are no more. */
static bool next_any_tag(const struct arrangement *arrangement, struct same_tag *tag)
{
	tag->first = tag->end;
	if (tag->first == arrangement->count)
		return false;
	tag->end = end_of_tag(arrangement, tag->first);
	return true;
}

/* The same of tags whose records are not apart. */
static bool next_tag(const struct arrangement *arrangement, bool with_heads, struct same_tag *tag)
{
	const struct arranged *first, *last;

	do {
		if (!next_any_tag(arrangement, tag))
			return false;
	} while (record_of(arrangement, tag->first)->is_apart);
	first = record_of(arrangement, tag->first);
	last = record_of(arrangement, tag->end - 1);
	tag->runs_end = tag->end;
	if (tag->end - tag->first == 1 || (!with_heads && compare_keys(first, last) == 0))
		tag->runs_end--;
	return true;
}

/* Runs fill page after page. False: there are not so many pages. */
static bool fill_runs(struct arrangement *arrangement, bool with_heads)
{
	uint32_t pages = arrangement->pages, begun = 0;
	struct same_tag tag = { 0 };

	measure_pages(arrangement, 0);
	while (next_tag(arrangement, with_heads, &tag))
		for (uint32_t n = tag.first; n < tag.runs_end; n++) {
			struct arranged *record = record_of(arrangement, n);

			while (!begun || arrangement->space[begun - 1] < record->bytes) {
				if (begun == pages)
					return false;
				/* Less than a tag that has nothing on the page before. */
				arrangement->run_tags[begun] =
					tag_of(&record->hash) - (begun && n == tag.first);
				begun++;
			}
			record->page = (uint16_t)(begun - 1);
			record->candidate = PLACEMENT_NONE;
			arrangement->space[begun - 1] -= record->bytes;
		}
	arrangement->run_pages = begun;
	return true;
}

/* ---- records that are larger than a cell ---- */

/*
 * Finds them. All records of their tags are apart, and those of the highest tag, for which their
 * pages would be taken. A large one has a page for itself if the others of its tag are large, too.
 */
static void find_apart(struct arrangement *arrangement)
{
	struct same_tag tag = { 0 };

	while (arrangement->cell_bytes && next_any_tag(arrangement, &tag)) {
		bool is_highest = arrangement->words[tag.first] >> 32 == APART_TAG;
		bool are_apart = arrangement->has_apart && is_highest, are_large = true;

		for (uint32_t n = tag.first; n < tag.end; n++) {
			const struct arranged *record = record_of(arrangement, n);

			are_apart |= record->own_bytes > arrangement->cell_bytes;
			are_large &= record->is_large;
		}
		for (uint32_t n = tag.first; n < tag.end; n++) {
			record_of(arrangement, n)->is_apart = are_apart;
			record_of(arrangement, n)->is_large = are_large;
		}
		arrangement->has_apart |= are_apart;
	}
}

/* Puts records that are apart behind each other, from byte *at of the segment on. */
static void fill_apart(struct arrangement *arrangement, bool are_large, uint64_t *at)
{
	struct same_tag tag = { 0 };

	while (next_any_tag(arrangement, &tag))
		for (uint32_t n = tag.first; n < tag.end; n++) {
			struct arranged *record = record_of(arrangement, n);

			if (!record->is_apart || record->is_large != are_large)
				continue;
			*at = span_next_header(arrangement->geometry, *at);
			record->page = (uint16_t)(*at / arrangement->page_bytes);
			record->candidate = PLACEMENT_NONE;
			*at += are_large ? arrangement->page_bytes : record->own_bytes;
		}
}

/*
 * Puts them behind runs, and measures the pages that are left for heads. A search for a run passes
 * over their pages. False: there are not so many.
 */
static bool place_apart(struct arrangement *arrangement)
{
	uint32_t runs = arrangement->run_pages, begin = 0;
	uint64_t at;

	for (uint32_t page = 0; page < runs; page++)
		span_next_page(arrangement->geometry, arrangement->cell_bytes, false, &begin);
	at = (uint64_t)runs * arrangement->page_bytes + begin;
	fill_apart(arrangement, false, &at);
	at = align_up(at, arrangement->page_bytes);
	fill_apart(arrangement, true, &at);
	if (at > (uint64_t)arrangement->pages * arrangement->page_bytes)
		return false;
	arrangement->run_pages = (uint32_t)(at / arrangement->page_bytes);
	for (uint32_t page = runs; page < arrangement->run_pages; page++) {
		arrangement->run_tags[page] = APART_TAG;
		arrangement->space[page] = 0;
	}
	measure_pages(arrangement, arrangement->run_pages);
	return true;
}

/* ---- candidates ---- */

static void make_item(const struct arrangement *arrangement, const struct arranged *record,
		      struct placement_item *item)
{
	uint32_t heads = arrangement->pages - arrangement->run_pages;

	item->bytes = record->bytes;
	for (uint32_t candidate = 0; candidate < PLACEMENT_CANDIDATES; candidate++)
		item->pages[candidate] = (uint16_t)candidate_page(
			&record->hash, arrangement->serial, candidate, heads);
}

/*
 * Any page with space, but of a head with a run one behind all runs, so that a search from the last
 * page on meets it first. False: there is none.
 */
static bool place_anywhere(struct arrangement *arrangement, struct arranged *record)
{
	for (uint32_t page = record->has_run ? arrangement->run_pages : 0;
	     page < arrangement->pages; page++) {
		if (arrangement->space[page] < record->bytes)
			continue;
		arrangement->space[page] -= record->bytes;
		record->page = (uint16_t)page;
		return true;
	}
	return false;
}

/* Places those that found no candidate, those with runs first. */
static bool place_rest(struct arrangement *arrangement, const uint64_t *heads, uint32_t count)
{
	for (int with_runs = 1; with_runs >= 0; with_runs--)
		for (uint32_t n = 0; n < count; n++) {
			struct arranged *record = &arrangement->records[(uint32_t)heads[n]];

			if (record->candidate == PLACEMENT_NONE && record->has_run == with_runs &&
			    !place_anywhere(arrangement, record))
				return false;
		}
	return true;
}

/* The largest ones first: `heads` has their sizes, upside down, and numbers. */
static bool place(struct arrangement *arrangement, struct placement *placement,
		  struct placement_item *items, uint64_t *heads, uint32_t count)
{
	sort_words(heads, arrangement->spare, count);
	for (uint32_t n = 0; n < count; n++)
		make_item(arrangement, &arrangement->records[(uint32_t)heads[n]], &items[n]);
	placement_begin(placement, arrangement->pages - arrangement->run_pages,
			arrangement->space + arrangement->run_pages, items, count);
	for (uint32_t n = 0; n < count; n++)
		placement_add(placement, n);
	for (uint32_t n = 0; n < count; n++) {
		struct arranged *record = &arrangement->records[(uint32_t)heads[n]];

		record->candidate = items[n].candidate;
		if (record->candidate == PLACEMENT_NONE)
			continue;
		record->page =
			(uint16_t)(arrangement->run_pages + items[n].pages[record->candidate]);
		arrangement->space[record->page] -= record->bytes;
	}
	return place_rest(arrangement, heads, count);
}

/* Those that are not in runs. False: they don't fit, or there is no memory. */
static bool place_heads(struct arrangement *arrangement, bool with_heads)
{
	struct placement *placement = placement_create(arrangement->pages, arrangement->count + 1);
	struct placement_item *items = malloc((arrangement->count + 1) * sizeof(*items));
	uint64_t *heads = malloc((arrangement->count + 1) * sizeof(*heads));
	bool placed = placement && items && heads;
	struct same_tag tag = { 0 };
	uint32_t count = 0;

	while (placed && next_tag(arrangement, with_heads, &tag)) {
		struct arranged *head = record_of(arrangement, tag.end - 1);

		if (tag.runs_end == tag.end)
			continue;
		head->has_run = tag.runs_end > tag.first;
		head->candidate = PLACEMENT_NONE;
		heads[count++] = (uint64_t)(UINT32_MAX - head->bytes) << 32 |
				 (uint32_t)arrangement->words[tag.end - 1];
	}
	if (placed && count)
		placed = arrangement->run_pages < arrangement->pages
				 ? place(arrangement, placement, items, heads, count)
				 : place_rest(arrangement, heads, count);
	placement_destroy(placement);
	free(items);
	free(heads);
	return placed;
}

/* ---- what came of it ---- */

/*
 * Records by page. Of equal numbers of a key in a page the last one counts, as in the buffer. Those
 * that are apart are in the order in which they were placed.
 */
static void sort_by_page(struct arrangement *arrangement)
{
	uint32_t *begins = arrangement->begins;

	for (uint32_t n = 0; n < arrangement->count; n++)
		begins[arrangement->records[n].page]++;
	for (uint32_t page = 1; page <= arrangement->pages; page++)
		begins[page] += begins[page - 1];
	for (uint32_t n = arrangement->count; n-- > 0;) {
		uint32_t number = arrangement->has_apart ? (uint32_t)arrangement->words[n] : n;

		arrangement->order[--begins[arrangement->records[number].page]] = number;
	}
}

/* The n-th record, page by page. */
static const struct arranged *in_order(const struct arrangement *arrangement, uint32_t n)
{
	return &arrangement->records[arrangement->order[n]];
}

/* Records are one behind the other: where one ends behind its page, those of the next begin. */
static void measure_offsets(struct arrangement *arrangement)
{
	uint32_t at = 0;

	for (uint32_t page = 0; page < arrangement->pages; page++) {
		uint32_t first = arrangement->begins[page], end = arrangement->begins[page + 1];

		arrangement->offsets[page] = at;
		if (first < end && in_order(arrangement, first)->is_large)
			continue;
		for (uint32_t n = first; n < end; n++)
			at += in_order(arrangement, n)->own_bytes;
		at = at > arrangement->page_bytes ? at - arrangement->page_bytes : 0;
	}
}

/*
 * One for the newest record of each key, and for each that is apart; then one for each page before
 * those of heads.
 */
static void make_entries(struct arrangement *arrangement)
{
	struct tag_entry *to = arrangement->entries;

	for (uint32_t n = 0; n < arrangement->count; n++) {
		const struct arranged *record = record_of(arrangement, n);
		bool is_last = n + 1 == arrangement->count ||
			       compare_keys(record, record_of(arrangement, n + 1)) != 0;
		struct tag_entry entry = { .tag = tag_of(&record->hash),
					   .location =
						   location_word(record->page, record->candidate) };

		if ((!is_last && !record->is_apart) ||
		    (to > arrangement->entries && to[-1].tag == entry.tag &&
		     to[-1].location == entry.location))
			continue;
		*to++ = entry;
	}
	arrangement->key_entries = (uint32_t)(to - arrangement->entries);
	for (uint32_t page = 0; page < arrangement->run_pages; page++)
		*to++ = (struct tag_entry){ .tag = arrangement->run_tags[page],
					    .location = location_word(page, PLACEMENT_NONE) };
}

/* Everything in its place. False: it does not fit so. A member has so many bits for pages. */
static bool arrange(struct arrangement *arrangement, bool with_heads)
{
	return fill_runs(arrangement, with_heads) &&
	       (!arrangement->has_apart || place_apart(arrangement)) &&
	       arrangement->run_pages <= MEMBER_RUN_PAGES_MAX &&
	       place_heads(arrangement, with_heads);
}

struct arrangement *ribbon_arrange(const struct muninn_geometry *geometry,
				   const struct ribbon_shape *shape, uint64_t serial,
				   const struct page_view *pages, uint32_t cell_bytes)
{
	uint32_t count = count_records(geometry, pages, cell_bytes);
	struct arrangement *arrangement;

	if ((count == 0 && !cell_bytes) || count > shape->segment_entries)
		return NULL;
	arrangement = create(geometry, serial, count);
	if (!arrangement)
		return NULL;
	arrangement->cell_bytes = cell_bytes;
	collect(arrangement, pages);
	sort_by_tag(arrangement);
	find_apart(arrangement);
	if (arrange(arrangement, false) || arrange(arrangement, true)) {
		sort_by_page(arrangement);
		measure_offsets(arrangement);
		make_entries(arrangement);
		if (arrangement->key_entries + arrangement->run_pages <= shape->segment_entries)
			return arrangement;
	}
	arrangement_destroy(arrangement);
	return NULL;
}

/* The end of the last record of the page before. */
static void copy_begin(const struct arrangement *arrangement, uint32_t page, uint8_t *data)
{
	uint32_t bytes = arrangement->offsets[page];
	const struct arranged *last;

	if (!bytes)
		return;
	last = in_order(arrangement, arrangement->begins[page] - 1);
	memcpy(data, last->value + (last->own_bytes - RECORD_HEADER_BYTES - bytes), bytes);
}

enum { LINE_BYTES = 64 }; /* of a cache, mostly */

/* Begins to fetch the n-th record by page: it is in no cache. */
static void prefetch_record(const struct arrangement *arrangement, uint32_t n)
{
	const struct arranged *record;
	const uint8_t *from;

	if (n >= arrangement->count)
		return;
	record = &arrangement->records[arrangement->order[n]];
	from = record->is_large ? record->value : record->header;
	for (uint32_t at = 0; at < record->own_bytes; at += LINE_BYTES)
		__builtin_prefetch(from + at);
}

struct page_view arrangement_page(const struct arrangement *arrangement, uint32_t page,
				  uint8_t *data)
{
	const uint32_t *begins = arrangement->begins;
	struct page_view view = {
		.serial = arrangement->serial,
		.data = data,
		.begin = arrangement->offsets[page],
		.used = arrangement->offsets[page],
	};

	copy_begin(arrangement, page, data);
	for (uint32_t n = begins[page]; n < begins[page + 1]; n++) {
		const struct arranged *record = in_order(arrangement, n);
		uint32_t bytes = record->own_bytes;
		uint32_t room = arrangement->page_bytes - view.used;

		prefetch_record(arrangement, n + 1);
		if (record->is_large) {
			view.large_header = record->header;
			view.data = record->value;
			view.used = record_length(record->header);
			return view;
		}
		view.beyond = bytes > room ? bytes - room : 0;
		memcpy(data + view.used, record->header, RECORD_HEADER_BYTES);
		memcpy(data + view.used + RECORD_HEADER_BYTES, record->value,
		       bytes - RECORD_HEADER_BYTES - view.beyond);
		view.used += bytes - view.beyond;
	}
	return view;
}

const struct tag_entry *arrangement_entries(const struct arrangement *arrangement, uint32_t *count,
					    uint32_t *run_pages)
{
	*count = arrangement->key_entries;
	*run_pages = arrangement->run_pages;
	return arrangement->entries;
}
