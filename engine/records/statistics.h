/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What a record store counts, and what it can take. */
#ifndef MUNINN_ENGINE_RECORDS_STATISTICS_H
#define MUNINN_ENGINE_RECORDS_STATISTICS_H

#include <stdint.h>

/* What does not change while a store is open. */
struct record_limits {
	uint32_t value_bytes;    /* most bytes of a value */
	uint64_t capacity_bytes; /* that records of any age can take */
	uint64_t segment_bytes;  /* about what merging frees at once; 0: the store can't merge */
	uint32_t segments_open;  /* segments that are filled side by side */
	uint32_t segments_slack; /* with a larger shortage puts wait for merging */
};

#define RECORD_MEMORY_KINDS_MAX 8

/* Heap memory of one kind, as the allocator counts it. NVRAM is apart. */
struct record_memory {
	const char *name; /* NULL behind the last one */
	uint64_t bytes;
};

/* A store leaves alone, and so 0, what it does not have. */
struct record_statistics {
	/* ---- any store ---- */
	uint64_t committed_sequence;
	uint64_t used_bytes; /* occupied by records of any age, of record_limits.capacity_bytes */
	uint64_t open_microseconds;                        /* how long opening took */
	uint64_t records_put, records_got, records_absent; /* since open */
	uint64_t record_bytes_put;
	struct record_memory memory[RECORD_MEMORY_KINDS_MAX];

	/* ---- one on flash ---- */
	uint64_t user_page_reads; /* pages read from flash for lookups, wasted ones included */
	uint64_t index_bytes;     /* of the index, in memory */
	uint64_t buffer_bytes;    /* of records that are not on flash yet, in NVRAM */

	uint64_t pages_repaired; /* reads of pages that were lost, and made again from parity */
	uint64_t pages_lost;     /* reads of pages that could not be */

	/* ---- one that gathers records in segments, which it seals and merges ---- */
	uint64_t segments, segments_free, segments_sealed, segments_metadata;
	uint64_t sealed_records; /* records in sealed segments */
	uint64_t sealed_record_bytes;

	/* ---- Muninn alone ---- */
	uint64_t index; /* which: 1 Bloom, 2 ribbon, as in the static header */
	uint64_t rows, tables, internal_versions;
	uint64_t false_positive_reads; /* of user_page_reads: the key was not there */
	uint64_t table_cache_bytes;    /* of index_bytes, the cache of tables on flash */
	uint64_t table_reads;          /* pages of tables asked of that cache since open ... */
	uint64_t table_page_reads;     /* ... and those that it had to read from flash */
};

#endif
