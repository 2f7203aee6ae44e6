/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Reads pages of sealed segments, and makes those again that the flash has lost, as far as parity
 * can. A segment that lost a page is to be moved away: flash is not written in place. Thread-safe.
 */
#ifndef MUNINN_ENGINE_MUNINN_REPAIR_H
#define MUNINN_ENGINE_MUNINN_REPAIR_H

#include <errno.h>

#include "engine/muninn/store.h"

/* -ENOMEM. `repair_destroy` also of a store without. */
int repair_create(struct muninn_store *store);
void repair_destroy(struct muninn_store *store);

/* Bytes of memory that the allocator gave. */
uint64_t repair_memory(const struct muninn_store *store);

/*
 * Reads one page of a sealed segment, with its spare area; `data` may be NULL. -EBADMSG: it is
 * lost. The caller may wait.
 */
int repair_read(struct muninn_store *store, enum nand_cause cause, const struct nand_page_io *io);

/* The same of a page that can't be read: makes it again. */
int repair_page(struct muninn_store *store, enum nand_cause cause, const struct nand_page_io *io);

/*
 * Makes page `page` of a run again: the image of a group, say. The run has `pages` of its own, and
 * its parity behind them. `read` reads any of these by number: 0, or it is lost. -EBADMSG.
 */
typedef int repair_reader(void *context, uint32_t page, uint8_t *data);

int repair_run_page(struct muninn_store *store, uint32_t pages, uint32_t page, repair_reader *read,
		    void *context, uint8_t *data);

/* How a read has ended: sealed segments are programmed whole, so what is not there was lost. */
static inline bool repair_is_for(int result)
{
	return result == -EBADMSG || result == -ENODATA;
}

/*
 * The next segment that lost a page and is to be moved, if there is one. It stays the next one
 * until it is freed, or was given up because it has pages that are lost for good.
 */
bool repair_next(struct muninn_store *store, uint32_t *segment);

/* All that waits to be moved, or to be written anew. */
uint32_t repair_waiting(struct muninn_store *store);
void repair_give_up(struct muninn_store *store, uint32_t segment);

/*
 * A flash page of the image of a complete group was lost: the image is to be written anew, and is
 * the next one until that is done, or given up.
 */
void repair_note_image(struct muninn_store *store, uint32_t row, uint32_t group, uint64_t page);
bool repair_next_image(struct muninn_store *store, uint32_t *row, uint32_t *group);
void repair_end_image(struct muninn_store *store, uint32_t row, uint32_t group);

/* A page of the last root was lost, or of its list of changes: another one is to be written. */
void repair_note_root(struct muninn_store *store, uint64_t page);
bool repair_next_root(struct muninn_store *store);
void repair_end_root(struct muninn_store *store);

/*
 * Nothing else can be reclaimed: those that were given up may be tried again, because what was lost
 * may not be needed any more, or can be read after all. False: there are none.
 */
bool repair_try_again(struct muninn_store *store);

/* The segment is no more in use. */
void repair_forget(struct muninn_store *store, uint32_t segment);

/* Whether it has a page that is lost for good, as far as somebody has met that. */
bool repair_is_lost(const struct muninn_store *store, uint32_t segment);

/* Pages that were made again; that could not be. Each time they were read. */
void repair_count(struct muninn_store *store, uint64_t *repaired, uint64_t *lost);

#endif
