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
	struct root_header kills_header;
	uint8_t *kills;       /* the list that goes with it; NULL: none */
	uint64_t lost;        /* serial of the root that the newest list goes with, which can't be
				 read; 0: none */
	uint64_t serial_most; /* highest of any page of the ring */
	uint32_t segment;     /* of the ring, that the newest page is in */
	uint64_t pages_read;
	uint32_t pages_missing;  /* of both, and of their parity ... */
	uint32_t pages_restored; /* ... those that parity has given back */
};

/* -ENOENT: none. -ENOMEM. The result is ended by root_found_free, also after an error. */
int root_find(struct nand *nand, struct found_root *found);

/*
 * The root or list of kills with this serial, whatever else there is: in `bytes` or in `kills`,
 * with its header. Otherwise as root_find.
 */
int root_find_serial(struct nand *nand, uint64_t serial, struct found_root *found);

void root_found_free(struct found_root *found);

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

/* The n-th of a list of kills. */
static inline void root_read_kill(const uint8_t *kills, uint32_t n, struct root_kill *kill)
{
	root_kill_decode(kills + ROOT_HEADER_BYTES + (uint64_t)n * ROOT_KILL_BYTES, kill);
}

#endif
