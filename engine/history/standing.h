/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How long the bounds that clones stand on are kept: as long as the clone is there, and then as
 * long as a version or any other moment that can be reached shows it, for there it still reads its
 * source.
 */
#ifndef MUNINN_ENGINE_HISTORY_STANDING_H
#define MUNINN_ENGINE_HISTORY_STANDING_H

#include "engine/objects/objects.h"

/* A partition that clones stand on: a current one, or what is left of one that is gone. */
struct source {
	struct partition *partition; /* pinned, or &left */
	struct partition left;
};

/* Finds who has, or had, an index that is not free. 0 or -EIO, -EBADMSG, -ENOMEM. */
int source_open(struct engine *engine, uint16_t index, struct source *source);
void source_close(struct engine *engine, struct source *source);

/*
 * Gives `bound` of a current partition free if clones stood on it that nothing shows any more.
 * -EBUSY: one is still shown, and nothing has changed. Other errors: see engine.h.
 */
int standing_release(struct engine_txn *txn, struct partition *partition, uint64_t bound);

/*
 * Looks at some of the bounds that clones stood on, going round all of them call by call, and gives
 * free what nothing shows any more. The caller has the turn, and no transaction is open. Errors
 * leave everything as it is.
 */
void standing_review(struct engine *engine);

#endif
