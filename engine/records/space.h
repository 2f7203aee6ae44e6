/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Free segments. A segment is a run of erase blocks that a store programs, and erases, as a whole.
 * Nothing is stored: at opening the store finds out which segments are in use.
 *
 * Wear: of the segments that were free longest the least worn one is taken. That levels the wear of
 * what is written again and again. Data that never change may lie on a segment that is far less
 * worn than others; space_level names it, so that a merge moves them.
 */
#ifndef MUNINN_ENGINE_RECORDS_SPACE_H
#define MUNINN_ENGINE_RECORDS_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "nand/nand.h"

/* How a device is divided. Segment n begins with block n * segment_blocks. */
struct space_shape {
	uint32_t segment_blocks; /* of one segment */
	uint32_t first;          /* the segments before this one are never given out */
	uint32_t segments;       /* the number behind the last one */
};

struct space {
	struct nand *nand;
	struct space_shape shape;
	uint32_t *ring; /* free segments, oldest first; behind them those that are held back */
	uint32_t first, count;
	uint64_t held, let_go; /* held back since open; how many of these have been let go */
	uint32_t trimmed;      /* of the ring, where space_trim_look goes on */
	uint32_t away;         /* the segment that is being emptied, off the ring; or NO_SEGMENT */
	uint32_t away_erasures;
	int away_result;  /* of its erase */
	uint32_t retired; /* segments with a block that failed */
	uint32_t *wear;   /* of each segment: erasures of its most worn block */
	uint32_t wear_most;
	uint64_t taken,
		levelled; /* segments taken since open; how many were when one was last levelled */
};

#define NO_SEGMENT UINT32_MAX
/* A sealed segment with so many erasures less than the most worn one is moved ... */
#define SPACE_WEAR_SPREAD 32
/* ... but only one for so many segments written, which limits what levelling costs. */
#define SPACE_LEVEL_EVERY 8

/* The segments from shape->first on for which in_use[segment] is false are free. -ENOMEM. */
int space_create(struct space *space, struct nand *nand, const struct space_shape *shape,
		 const bool *in_use);
void space_destroy(struct space *space);

/*
 * Takes the least worn of the segments that were free longest and erases it if need be; a segment
 * that can't be erased is retired and the next one taken. -ENOSPC: no free segment.
 */
int space_take(struct space *space, uint32_t *segment);

/*
 * The same in two parts, so that nobody waits for the erase. space_reserve takes one that has to be
 * erased (segment_erase) before it is programmed; space_prepared says how that went.
 */
int space_reserve(struct space *space, uint32_t *segment);
void space_prepared(struct space *space, uint32_t segment, int result, uint32_t erasures);

/* Pages of a segment that have been programmed. -EBADMSG. */
int segment_end(struct nand *nand, uint32_t segment_blocks, uint32_t segment, uint32_t *end);

/*
 * Erases the blocks of a segment that are not erased already; -EIO, with a line in the log.
 * `erasures`: of its most worn block.
 */
int segment_erase(struct nand *nand, uint32_t segment_blocks, enum nand_cause cause,
		  uint32_t segment, uint32_t *erasures);

/*
 * Emptying free segments and giving their space back to the host, one at a time and by one thread;
 * but not the first `kept`, which are taken before the others and keep what they have.
 *
 * space_trim_look goes round them, some with each call, beside those who only read, and tells
 * whether one holds something, or space. space_trim_take takes one off the list; false: there is
 * none. space_trim_empty needs nobody to wait for it. space_trim_put_back makes it free again, to
 * be taken after all others, or retires it.
 */
bool space_trim_look(struct space *space, uint32_t kept);
bool space_trim_take(struct space *space, uint32_t kept);
void space_trim_empty(struct space *space);
void space_trim_put_back(struct space *space);

/* Free segments, with the one that is being emptied. */
static inline uint32_t space_free(const struct space *space)
{
	return space->count + (space->away != NO_SEGMENT);
}

/* The n-th of the list: of those that are free, then of those that are held back. */
static inline uint32_t *space_ring_at(const struct space *space, uint32_t n)
{
	return &space->ring[(space->first + n) % space->shape.segments];
}

/* Gives back a segment whose contents nobody needs. */
void space_release(struct space *space, uint32_t segment);

/*
 * The same of a segment that something on storage still names: nobody gets it, and it does not
 * count as free, until it is let go. In the order in which they came: space_let_go lets those go
 * that had been held when space->held was `until`.
 */
void space_hold(struct space *space, uint32_t segment);
void space_let_go(struct space *space, uint64_t until);

/* How many are held back. */
static inline uint32_t space_held_back(const struct space *space)
{
	return (uint32_t)(space->held - space->let_go);
}

/*
 * The least worn of the segments for which `is_used`, if it is far enough behind and enough was
 * written since the last one. NO_SEGMENT: there is none.
 */
uint32_t space_level(struct space *space, bool (*is_used)(const void *context, uint32_t segment),
		     const void *context);

/*
 * Tells that a segment that was named can't be moved. It is not named again before the most worn
 * one is that far ahead of it once more.
 */
void space_leave(struct space *space, uint32_t segment);

#endif
