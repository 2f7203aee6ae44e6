/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Objects of many pages, each of which can be told, for tests of going back with one object. */
#ifndef MUNINN_TESTS_ENGINE_HISTORY_OBJECT_PAGES_H
#define MUNINN_TESTS_ENGINE_HISTORY_OBJECT_PAGES_H

#include "common/bytes.h"
#include "engine/history/past.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

enum {
	PAGES = 200,
	BYTES = PAGES * PAGE,
	/* Onode, rollback and the root's history, and the two records with which a slot begins:
	   none of them holds data. */
	RECORDS_PUT_MAX = 9 * PAGE / 4,
};

static inline struct engine_address address_of(uint64_t partition, uint64_t object)
{
	return (struct engine_address){ .partition = partition, .object = object };
}

/* Writes pages first..end - 1 of an object, each with what it can be told by. */
void write_object(struct fixture *f, struct engine_address address, uint32_t first, uint32_t end,
		  uint8_t round);

/* Of a partition's OBJECT; all of PARTITION's. */
void write_pages(struct fixture *f, uint64_t partition, uint32_t first, uint32_t end,
		 uint8_t round);
void write_all(struct fixture *f, uint8_t round);

/* Pages first..end - 1 are those of a round; all of PARTITION's OBJECT are. */
void check_pages(struct fixture *f, struct engine_address address, uint32_t first, uint32_t end,
		 uint8_t round);
void check_all(struct fixture *f, uint8_t round);

/* What has ever been put, in bytes. */
static inline uint64_t put_so_far(const struct fixture *f)
{
	return f->engine->put_bytes;
}

/* Takes back modifications of OBJECT; having put no data. */
void undo(struct fixture *f, uint64_t partition, uint32_t modifications);
void undo_without_data(struct fixture *f, uint64_t partition, uint32_t modifications);

/* OBJECT goes back to a time. Returns how that failed. */
int object_go_back(struct fixture *f, uint64_t partition, uint64_t ms);

/* The partition does, and the clock goes on. */
void roll_back_to_time(struct fixture *f, uint64_t partition, uint64_t ms);

/* Fills buffers, so that what was put before is in segments that can be merged. */
void push(struct fixture *f);

#endif
