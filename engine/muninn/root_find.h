/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The newest root of a device. */
#ifndef MUNINN_ENGINE_MUNINN_ROOT_FIND_H
#define MUNINN_ENGINE_MUNINN_ROOT_FIND_H

#include "engine/muninn/geometry.h"
#include "nand/nand.h"

/* The newest root on flash, and what belongs to it. */
struct found_root {
	struct muninn_geometry geometry; /* of the device, by the root's static header */
	struct root_header header;
	uint8_t *bytes; /* all of it */
	struct root_header list_header;
	uint8_t *list;    /* the list that goes with it; NULL: none */
	uint8_t *entries; /* of the directory in both, as in a root */
	uint32_t entry_count;
	uint64_t lost;        /* serial of the root that the newest list goes with, which can't be
				 read; 0: none */
	uint64_t serial_most; /* highest of any page of the ring */
	uint32_t segment;     /* of the ring, that the last one of these pages is in */
	uint64_t pages_read;
	uint32_t pages_missing;  /* of both, and of their parity ... */
	uint32_t pages_restored; /* ... those that parity has given back */
};

/* -ENOENT: none. -ENOMEM. The result is ended by root_found_free, also after an error. */
int root_find(struct nand *nand, struct found_root *found);

/*
 * The root or list of changes with this serial, whatever else there is: in `bytes` or in `list`,
 * with its header. Otherwise as root_find.
 */
int root_find_serial(struct nand *nand, uint64_t serial, struct found_root *found);

void root_found_free(struct found_root *found);

/* Whether the page with the first spare area was written to the ring after that with the other. */
static inline bool root_page_is_behind(const struct page_spare *page,
				       const struct page_spare *other)
{
	return page->serial > other->serial ||
	       (page->serial == other->serial && page->part > other->part);
}

/* ---- where the parts of a root are that has been found ---- */

static inline uint64_t root_aborted_at(void)
{
	return ROOT_HEADER_BYTES + ROOT_STATIC_BYTES;
}

static inline uint64_t root_entries_at(const struct root_header *header)
{
	return root_aborted_at() + header->aborted_count * ABORTED_RANGE_BYTES;
}

static inline uint64_t root_rows_at(const struct muninn_geometry *geometry,
				    const struct root_header *header)
{
	return root_entries_at(header) + (uint64_t)header->count * geometry->root_entry_bytes;
}

/* Bytes of a row there, with the segments of its growing group. */
static inline uint64_t root_row_bytes(const uint8_t *row)
{
	return ROOT_ROW_BYTES + 4 * (uint64_t)get_le32(row + ROOT_ROW_MEMBERS_AT);
}

/* ---- and of a list of changes ---- */

/* Bytes of a list. */
static inline uint64_t root_list_bytes(const struct muninn_geometry *geometry, uint64_t kills,
				       uint64_t groups)
{
	return ROOT_HEADER_BYTES + kills * ROOT_KILL_BYTES +
	       groups * (ROOT_GROUP_ENTRY_AT + geometry->root_entry_bytes);
}

/* The n-th of its kills. */
static inline void root_read_kill(const uint8_t *list, uint32_t n, struct root_kill *kill)
{
	root_kill_decode(list + ROOT_HEADER_BYTES + (uint64_t)n * ROOT_KILL_BYTES, kill);
}

/* The n-th of its groups, behind so many kills. */
static inline const uint8_t *root_list_group(const struct muninn_geometry *geometry,
					     const uint8_t *list, uint32_t kills, uint32_t n)
{
	return list + root_list_bytes(geometry, kills, n);
}

#endif
