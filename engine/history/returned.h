/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Partitions that a rollback of the device brings back: those that are there behind it and were not
 * just before it, having been removed, or made to vanish by another rollback. While one was gone
 * nobody looked after what it had kept, and its policy had gone with it, so what is recorded of it
 * begins anew.
 */
#ifndef MUNINN_ENGINE_HISTORY_RETURNED_H
#define MUNINN_ENGINE_HISTORY_RETURNED_H

#include "engine/objects/objects.h"

/*
 * Behind the rollback of the device that the transaction has noted: a new history for each
 * partition that came back. Of its own past it has what the device keeps without a gap. `root`:
 * pinned, as of the rollback. -ENOSPC, -EIO, -EBADMSG, -ENOMEM.
 */
int returned_note(struct engine_txn *txn, struct partition *root);

#endif
