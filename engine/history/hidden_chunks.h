/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Hidden intervals on record: chunks of a table of the root, which are only read as a whole and as
 * of now. A chunk has those of partitions and of the device first, then those of objects, which are
 * longer. Byte layout in docs/objects.md.
 */
#ifndef MUNINN_ENGINE_HISTORY_HIDDEN_CHUNKS_H
#define MUNINN_ENGINE_HISTORY_HIDDEN_CHUNKS_H

#include "engine/objects/keys.h"
#include "engine/records/access.h"

/* Of a chunk at most: it fits into a page of 512 bytes. */
#define HIDDEN_CHUNK_BYTES 449
/* Of its head, and of an interval. */
#define HIDDEN_CHUNK_HEAD_BYTES 1
#define HIDDEN_BYTES            14
#define HIDDEN_OF_OBJECT_BYTES  (HIDDEN_BYTES + 9)
/* So many at least are in a chunk that has no space for another one. */
#define HIDDEN_CHUNK_FULL 18

struct hidden_interval {
	uint64_t identifier; /* of an object; 0: all of the partition, or of the device */
	uint64_t at, to;
	uint32_t chunk;     /* that it is in */
	uint16_t partition; /* index; 0: the device */
	bool is_followed;   /* of an object: its transaction may have put data behind it */
};

static inline uint32_t hidden_bytes(const struct hidden_interval *interval)
{
	return interval->identifier ? HIDDEN_OF_OBJECT_BYTES : HIDDEN_BYTES;
}

/*
 * Calls `take` for each interval of a chunk, and sets *length to the chunk's length. Errors of
 * `take`, and -EBADMSG, -EIO.
 */
int hidden_chunk_load(struct record_store *store, uint32_t number,
		      int (*take)(void *context, const struct hidden_interval *interval),
		      void *context, uint32_t *length);

/* Begins a chunk with an interval, or adds it to one with space for it. -ENOSPC, -EIO, -EBADMSG. */
int hidden_chunk_begin(const struct record_writer *writer, const struct hidden_interval *interval);
int hidden_chunk_add(const struct record_writer *writer, const struct hidden_interval *interval);

/* Begins a chunk, or begins it anew, without an interval. -ENOSPC, -EIO. */
int hidden_chunk_empty(const struct record_writer *writer, uint32_t number);

/* Takes it out of its chunk, or puts what has changed of it. -ENOSPC, -EIO, -EBADMSG. */
int hidden_chunk_remove(const struct record_writer *writer, const struct hidden_interval *interval);
int hidden_chunk_change(const struct record_writer *writer, const struct hidden_interval *interval);

#endif
