/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A page of records, wherever it is: in a row buffer or read from flash. */
#ifndef MUNINN_ENGINE_MUNINN_PAGE_H
#define MUNINN_ENGINE_MUNINN_PAGE_H

#include "engine/muninn/format.h"

struct page_view {
	uint64_t serial; /* of the segment */
	uint64_t number; /* of the flash page; unused elsewhere */
	const uint8_t *data;
	uint32_t used; /* bytes of `data` that hold records */
	const uint8_t
		*large_header; /* of the only record, or NULL when headers are in the data area */
	uint32_t begin;        /* of these, the first ones are of a record of the page before */
	uint32_t beyond;       /* bytes of the last record that the page behind begins with */
	bool follows;          /* that page is behind this one in memory */
	bool checked; /* all of it is as it was programmed: the flash has just summed it up */
};

/* One record of a page. */
struct page_record {
	const uint8_t *header; /* RECORD_HEADER_BYTES */
	const uint8_t *value;
	uint32_t cut; /* bytes of the value that are not there: the page behind has them */
};

/* Of a page of flash that holds records, whose spare area outlives the view. */
static inline struct page_view page_view_of(const struct page_spare *spare, uint64_t number,
					    const uint8_t *data)
{
	return (struct page_view){
		.serial = spare->serial,
		.number = number,
		.data = data,
		.used = spare->used,
		.large_header = spare->large ? spare->large_header : NULL,
		.begin = spare->begin,
		.beyond = spare->beyond,
	};
}

/* Whether a page is the one behind another one, whose last record goes on there. */
static inline bool page_goes_on(const struct page_view *page, const struct page_view *behind)
{
	return behind->serial == page->serial && behind->begin == page->beyond;
}

/* Where its records end, as an offset of page_next. */
static inline uint32_t page_end(const struct page_view *page)
{
	return page->used + page->beyond;
}

/* Which records of a key count. */
struct visibility {
	uint64_t bound;                     /* of the reader: highest sequence number */
	uint64_t below;                     /* only lower numbers than this */
	uint64_t from;                      /* what is older is void */
	const struct record_hidden *hidden; /* what rollbacks hide; NULL: nothing */
	const uint8_t *aborted; /* ascending ranges of numbers that do not count, as in NVRAM */
	uint64_t aborted_count;
	uint64_t ignored_tombstone; /* a tombstone with this number does not count; 0 = all do */
};

/* Within the bounds and not aborted; rollbacks apart. */
bool sequence_is_visible(const struct visibility *visibility, uint64_t sequence);

/* Whether a rollback hides a record of `key`, which is within the bound. */
static inline bool record_is_hidden(const struct visibility *visibility,
				    const struct record_key *key, uint64_t sequence)
{
	const struct record_hidden *hidden = visibility->hidden;

	return hidden && hidden->is_hidden(hidden->context, key, sequence, visibility->bound);
}

/* Within the bounds, not aborted, and not hidden. */
static inline bool record_is_visible(const struct visibility *visibility,
				     const struct record_key *key, uint64_t sequence)
{
	return sequence_is_visible(visibility, sequence) &&
	       !record_is_hidden(visibility, key, sequence);
}

/*
 * The record at *offset (0 to begin, then as left by the last call); false at the end, where
 * *offset is page_end. A record that runs over the end also ends the walk, with *offset left below.
 */
static inline bool page_next(const struct page_view *page, uint32_t *offset,
			     struct page_record *record)
{
	if (page->large_header) {
		record->header = page->large_header;
		record->value = page->data;
		record->cut = 0;
		if (*offset == page->used || record_length(page->large_header) > page->used)
			return false;
		*offset = page->used;
		return true;
	}
	if (*offset < page->begin)
		*offset = page->begin;
	if (*offset + RECORD_HEADER_BYTES > page->used)
		return false;
	record->header = page->data + *offset;
	record->value = record->header + RECORD_HEADER_BYTES;
	uint32_t end = *offset + RECORD_HEADER_BYTES + record_length(record->header);

	if (end > page_end(page))
		return false;
	record->cut = end > page->used && !page->follows ? end - page->used : 0;
	*offset = end;
	return true;
}

/*
 * The visible record of `key` with the highest sequence number in the page; of equal ones the last.
 */
bool page_find(const struct page_view *page, const struct record_key *key,
	       const struct visibility *visibility, struct page_record *found);

#endif
