/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * When a partition was there. Between its creation and now it may have been gone: removed, or made
 * vanish by a rollback of the device, until another one brought it back. Such a gap ends with a
 * rollback of the device only, and reaches, in the order of sequence numbers, from where the
 * partition went to just before that.
 */
#ifndef MUNINN_ENGINE_HISTORY_PRESENCE_H
#define MUNINN_ENGINE_HISTORY_PRESENCE_H

#include "engine/objects/objects.h"

/*
 * Whether a current partition, or the root, was there at `bound`: itself, not another one of its ID
 * or its index. It reads nothing where there can be no gap. -ENOENT: it was not, or not yet. -EIO,
 * -EBADMSG.
 */
int presence_check(struct engine *engine, const struct partition *partition, uint64_t bound);

/* The same for a number that need not end a slot, as of which single objects are read. */
int presence_check_inside(struct engine *engine, const struct partition *partition,
			  uint64_t sequence);

/*
 * Behind `bound`, at which a current partition was gone: the number from which on it can be there
 * again.
 */
uint64_t presence_next(const struct engine *engine, uint64_t bound);

/*
 * Counts the kept versions of the device at which a current partition, not the root, was gone.
 * -EIO, -EBADMSG.
 */
int presence_count_missed(struct engine *engine, struct partition *root,
			  const struct partition *partition, uint64_t *missed);

#endif
