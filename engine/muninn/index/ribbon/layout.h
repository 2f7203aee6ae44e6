/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Where the records of a full buffer go in their segment.
 *
 *   head pages | directory of runs | runs
 *
 * The newest record of each key is its head: it goes to one of the key's candidate pages, so that
 * the index needs only to know which. The older records of the key, if there are any, follow each
 * other in the runs, page by page upwards. The directory says which pages of the runs have records
 * of a key, and down to which number. So any old version costs its head, a page of the directory,
 * and its own page. Directory and runs are the tail of the segment.
 *
 * What finds no place is carried: it goes to the row's next segment, and is placed first there. Of
 * a key the newest records are carried, or all, so that what is in the next segment is newer than
 * what is in this one.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_LAYOUT_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_LAYOUT_H

#include "engine/muninn/format.h"
#include "engine/muninn/hash.h"
#include "engine/muninn/index/ribbon/placement.h"

#define LAYOUT_CARRIED UINT16_MAX

struct layout_record {
	const uint8_t *header; /* RECORD_HEADER_BYTES; the later one of equal numbers counts */
	struct key_hash hash;
	bool was_carried; /* from the row's last segment: placed before others */
	/* Out: */
	bool is_head;
	bool has_older;    /* of a head: the tail has older ones */
	uint16_t page;     /* of the segment; LAYOUT_CARRIED: it is not in this one */
	uint8_t candidate; /* of a head */
	uint32_t older;    /* the next older record of the key in the segment; UINT32_MAX: none */
};

struct layout_shape {
	uint64_t serial; /* of the segment: other segments have other candidates for a key */
	uint32_t pages;
	uint32_t page_bytes;
};

/* What came of it. */
struct layout_result {
	uint32_t tail_pages, directory_pages; /* the first ones of the tail */
	uint32_t heads, carried;              /* records */
};

/* Memory for segments of up to so many pages and records. NULL: out of memory. */
struct layout;
struct layout *layout_create(uint32_t pages_max, uint32_t records_max);
void layout_destroy(struct layout *layout);
uint64_t layout_bytes(uint32_t pages_max, uint32_t records_max);

/* Solves for all records of a buffer, in the order in which they were put. */
void layout_solve(struct layout *layout, const struct layout_shape *shape,
		  struct layout_record *records, uint32_t count, struct layout_result *result);

/*
 * The records of a page in the order in which they stand there: `*records` names them. Returns how
 * many there are.
 */
uint32_t layout_page_records(const struct layout *layout, uint32_t page, const uint32_t **records);

/* ---- the directory of runs ---- */

/* Records of a key that a page of the runs has. */
struct run_entry {
	uint32_t tag;
	uint64_t oldest; /* number of a record of the key there */
	uint16_t page;   /* of the segment */
};

#define RUN_ENTRY_BYTES 12 /* tag 4, oldest 6, page 2 */

static inline uint32_t run_entries_of_page(uint32_t page_bytes)
{
	return page_bytes / RUN_ENTRY_BYTES;
}

/* Bytes of page `number` of the directory, from 0. Returns how many are used. */
uint32_t layout_put_directory(const struct layout *layout, uint32_t number, uint8_t *bytes);

struct run_entry run_entry_at(const uint8_t *bytes, uint32_t n);

/*
 * The first of `count` entries whose page may have what is looked for: the newest record of the tag
 * up to `bound`. What follows it, while the tag is the same, is older. `count`: there is none on
 * this page of the directory.
 */
uint32_t run_directory_find(const uint8_t *bytes, uint32_t count, uint32_t tag, uint64_t bound);

#endif
