/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which tables of a row are old enough for a bound, and new enough. */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_TABLE_BOUNDS_H
#define MUNINN_ENGINE_MUNINN_INDEX_TABLE_BOUNDS_H

#include "engine/muninn/index/bloom_table.h"

/* A few consecutive tables of a row. */
struct internal_version {
	uint32_t number;     /* index of its tables / tables of a version */
	uint32_t tables_end; /* of the row's complete tables, the first that is newer */
	uint64_t floor;      /* no record in it or in a newer one has a lower sequence number */
	uint64_t ceiling;    /* none in it or in an older one has a higher one */
};

struct table_bounds {
	struct internal_version *versions; /* oldest first */
	uint32_t count;
};

/* Finds the bounds again, after the complete tables have changed. */
void bounds_refresh(struct table_bounds *bounds, const struct table *tables, uint32_t table_count,
		    uint32_t tables_each);

/* How many of the tables, from the oldest on, may hold records with numbers up to `bound`. */
uint32_t bounds_find(const struct table_bounds *bounds, uint32_t table_count, uint64_t bound);

/* How many of them, from the oldest on, hold nothing with a number above `after`. */
uint32_t bounds_find_after(const struct table_bounds *bounds, uint64_t after);

#endif
