/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Sizes that follow from the NAND geometry and the options: segments, rows, the places of things
 * in NVRAM; and the sizes of the index.
 */
#ifndef MUNINN_ENGINE_MUNINN_GEOMETRY_H
#define MUNINN_ENGINE_MUNINN_GEOMETRY_H

#include "engine/muninn/format.h"
#include "engine/muninn/index/bloom_geometry.h"
#include "engine/muninn/options.h"
#include "engine/muninn/parity.h"

/*
 * Rows that are full take a second buffer while their first one is sealed. There are so many for
 * that, at most one for each row, and one more that only history's row takes.
 */
#define BUFFERS_SPARE_MAX 8

struct muninn_geometry {
	/* As configured. */
	uint32_t page_bytes;
	uint32_t segment_pages;
	uint32_t hashed_rows; /* that keys are hashed to */
	uint32_t record_bytes;
	uint32_t over_provision_permille;
	enum index_kind index;
	struct bloom_geometry bloom; /* its sizes, if it is that one */
	struct parity_shape parity;
	/* Derived. */
	uint32_t rows; /* all of them: the last one is history's, see row.c */
	uint32_t block_pages;
	uint32_t segment_blocks;
	uint32_t segments;
	uint32_t
		first_segments; /* before the device grew: sizes that can't change follow from it */
	uint32_t blocks;
	uint32_t root_segments;           /* the first ones of the device: the ring of roots */
	uint32_t root_bytes_max;          /* of a root */
	uint32_t reserve_metadata;        /* free segments kept for group images */
	uint32_t room_kept[RECORD_ROOMS]; /* free segments that puts of each room leave */
	uint32_t merging_slack;           /* further ones, in which merging keeps up with puts */
	uint64_t image_bytes_max;         /* of a group's image */
	uint32_t image_segments_max;      /* segments that an image may touch */
	uint32_t root_entry_bytes;        /* of a directory entry, as much as a root repeats */
	uint32_t directory_entry_bytes;   /* all of it, with the members of the group */
	uint32_t directory_entries;
	uint32_t buffers; /* that there is NVRAM for: one a row, and those for full rows */
	/* NVRAM places. */
	uint64_t sums_at;                   /* the sums of all structures */
	uint64_t buffers_at;                /* first buffer area */
	uint64_t buffer_bytes;              /* size of a buffer area */
	uint64_t slot_headers_at, slots_at; /* within a buffer area */
	uint64_t groups_at;                 /* first row's growing group */
	uint64_t group_bytes;               /* space for one */
	uint64_t nvram_bytes;
};

/* Fills in the defaults and checks. -EINVAL with a sentence. */
int muninn_geometry_choose(const struct nand_geometry *nand, const struct record_options *records,
			   const struct muninn_options *options, struct muninn_geometry *geometry,
			   struct error_text *error);

/* Whether a record of so many bytes of value has a page for itself, and its header beside that. */
static inline bool record_is_large(const struct muninn_geometry *geometry, uint32_t length)
{
	return RECORD_HEADER_BYTES + length > geometry->page_bytes;
}

/* Most records that a segment can hold. */
static inline uint64_t segment_records_max(const struct muninn_geometry *geometry)
{
	return (uint64_t)geometry->segment_pages * (geometry->page_bytes / RECORD_HEADER_BYTES + 1);
}

/* First page of a segment. */
static inline uint64_t segment_page(const struct muninn_geometry *geometry, uint32_t segment)
{
	return (uint64_t)segment * geometry->segment_pages;
}

/* Pages of what is written to flash as a run of `bytes`: its own, and its parity. */
static inline uint32_t run_pages_own(const struct muninn_geometry *geometry, uint64_t bytes)
{
	return (uint32_t)divide_up(bytes, geometry->page_bytes);
}

static inline uint32_t run_pages(const struct muninn_geometry *geometry, uint64_t bytes)
{
	uint32_t own = run_pages_own(geometry, bytes);

	return own + parity_run_more(&geometry->parity, own);
}

/* The row of RECORD_CLASS_HISTORY. */
static inline uint32_t history_row(const struct muninn_geometry *geometry)
{
	return geometry->hashed_rows;
}

/* Where the pair of a sum is in NVRAM; of a row's growing group; of a buffer. */
static inline uint64_t sum_pair_at(const struct muninn_geometry *geometry, uint32_t sum)
{
	return geometry->sums_at + SUMS_PAIRS_AT + (uint64_t)sum * SUM_PAIR_BYTES;
}

static inline uint64_t row_sum_pair_at(const struct muninn_geometry *geometry, uint32_t row)
{
	return sum_pair_at(geometry, SUM_ROWS + row);
}

static inline uint64_t buffer_sum_pair_at(const struct muninn_geometry *geometry, uint32_t buffer)
{
	return sum_pair_at(geometry, SUM_ROWS + geometry->rows + buffer);
}

/* Slots of a buffer: a page each, and one spare for compaction. */
static inline uint32_t buffer_slots(const struct muninn_geometry *geometry)
{
	return geometry->segment_pages + 1;
}

#endif
