/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A queue and the requests in it: what queue.c and request.c share. queue.c takes requests in and
 * gives them back; request.c brings their pages to the mover and through the checks. Private to
 * them.
 */
#ifndef MUNINN_NAND_REQUEST_H
#define MUNINN_NAND_REQUEST_H

#include "nand/lab.h"
#include "nand/page.h"

struct slot;

struct slot_transfer {
	struct nand_transfer transfer;
	struct slot *slot;
	uint32_t first_page, pages; /* of the request */
};

struct page_state {
	struct nand_page_way way;
	uint8_t *spare; /* in the slot's buffers; the data, if they are moved, are in front of it */
	int error;
};

/* A request under way. */
struct slot {
	struct nand_request *request;
	struct nand_timed timed;
	struct slot *following_timed;
	bool measured;
	bool arrived; /* nothing is under way any more, the result is there */
	struct page_state *pages;
	struct slot_transfer *transfers;
	uint8_t *buffers; /* where pages are moved to and from: buffer_bytes for each */
	bool in_place;    /* or they are moved from where the caller has them */
	uint32_t set_out; /* pages that are or were under way */
	int stop;         /* why the page after them was not */
	uint32_t transfers_used;
	uint32_t transfers_left; /* unfinished; one more while the request is being submitted */
	struct slot *following;
};

struct nand_queue {
	struct nand *nand;
	uint32_t depth, request_pages;
	bool holds;
	uint32_t held; /* requests submitted and not reaped */
	uint32_t transfers_held, transfers_max;
	uint32_t writes_held;  /* of the transfers */
	uint32_t buffer_bytes; /* what a page takes at most, in whole units */
	struct nand_units units;
	struct nand_mover *mover; /* NULL: everything is done at once */
	struct slot *slots, *free;
	struct slot *first_program, **last_program; /* in the order of submission */
	struct slot *first_timed; /* ordered by the time at which the flash is done */
	struct nand_request *first_completed, **last_completed;
	uint32_t completed;
	struct nand_mapping buffers, state; /* what the slots point to */
};

/* Does a model say when the flash is done? */
static inline bool nand_slot_is_modelled(const struct slot *slot)
{
	return slot->timed.generation != 0 && !slot->measured;
}

/* ---- queue.c ---- */

/* The result of a request; it is complete unless the flash still takes its time. */
void nand_slot_settle(struct nand_queue *queue, struct slot *slot, int result, size_t done);

/*
 * The times of a request's pages: when they set out if they are modelled, when they have been moved
 * if measured.
 */
void nand_slot_time_pages(struct nand_queue *queue, struct slot *slot);

/* All pages of the request have been given their times. */
void nand_slot_insert_timed(struct nand_queue *queue, struct slot *slot);

/* ---- request.c, where there is a mover ---- */

/* The request of a slot sets out; what can share the next flush of the mover waits for it. */
void nand_request_begin(struct nand_queue *queue, struct slot *slot);

/*
 * Takes a finished transfer from the mover, and settles its request if that was the last one.
 * False: there is none.
 */
bool nand_request_collect(struct nand_queue *queue, bool wait);

#endif
