/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which pieces of an object hold data: a sorted list of runs of pieces. Pure bookkeeping; nothing
 * is read or put.
 *
 * Sequence numbers say which records count. Every record of a piece that was voided (by truncation,
 * clearing or an earlier object of the same ID) and still has content is not newer than the
 * object's void sequence; every record of a live piece in an extent is not older than the extent's
 * `min_sequence`. In an exact extent every piece is live. A loose one bridges gaps: a piece of it
 * is live only if its newest record is not older than min_sequence, which is newer than what was
 * voided there.
 */
#ifndef MUNINN_ENGINE_OBJECTS_EXTENTS_H
#define MUNINN_ENGINE_OBJECTS_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Most extents of an object between two calls of the engine. */
#define EXTENTS_MAX 1024

/*
 * An extent as stored: first piece 4, count - 1 with EXTENT_LOOSE in the top bit 4, min_sequence 8
 * bytes.
 */
#define EXTENT_BYTES 16
#define EXTENT_LOOSE UINT32_C(0x80000000)

/* No such piece. */
#define EXTENTS_NO_PIECE UINT32_MAX

struct extent {
	uint64_t min_sequence;
	uint32_t first;
	uint32_t count; /* of pieces, 1..2^31 */
	bool loose;
};

/* All zero = no extents. The array is owned. */
struct extents {
	struct extent *list;
	uint32_t count, capacity;
	uint32_t changed_from; /* extents before this one are as last put */
	uint64_t pieces;       /* in all extents together */
};

void extents_free(struct extents *extents);

/* Space for `more` further extents, so that as many calls below cannot fail. -ENOMEM. */
int extents_reserve(struct extents *extents, uint32_t more);

/* Makes a list what another one is. Needs space for all of the other one's. */
void extents_copy(struct extents *extents, const struct extents *from);

/* The extent that holds `piece`, or NULL. */
const struct extent *extents_find(const struct extents *extents, uint32_t piece);

/* The first piece >= `piece` in an extent, or EXTENTS_NO_PIECE. */
uint32_t extents_next_piece(const struct extents *extents, uint64_t piece);

/* How many pieces >= `piece` are in extents. */
uint64_t extents_count_from(const struct extents *extents, uint64_t piece);

/*
 * Notes that `piece` was put by transaction `now` (> void_sequence). Needs space for one extent.
 * Extents that touch become one where the rules above allow it.
 */
void extents_add(struct extents *extents, uint32_t piece, uint64_t void_sequence);

/*
 * Makes pieces first..end - 1 a hole. Needs space for one extent. The caller raises the object's
 * void sequence.
 */
void extents_remove(struct extents *extents, uint64_t first, uint64_t end);

/*
 * The pair (result, result + 1) of neighbours that is cheapest to bridge: the fewest pieces in
 * extents whose min_sequence is not newer than void_sequence. At least two extents.
 */
uint32_t extents_cheapest_pair(const struct extents *extents, uint64_t void_sequence);

/*
 * Bridges extents `index` and `index` + 1. Live pieces of those whose min_sequence is not newer
 * than void_sequence must have been put again by the current transaction before.
 */
void extents_bridge(struct extents *extents, uint32_t index, uint64_t void_sequence);

/* Encodes extents first..first + count - 1 into count * EXTENT_BYTES bytes. */
void extents_encode(const struct extents *extents, uint32_t first, uint32_t count, uint8_t *to);

/*
 * Replaces the list by `count` encoded ones. -EBADMSG when they break the rules of this file,
 * -ENOMEM.
 */
int extents_decode(struct extents *extents, const uint8_t *from, uint32_t count);

#endif
