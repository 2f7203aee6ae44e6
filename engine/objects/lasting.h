/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Lasting attributes: those of the root and of partitions that are no part of history. They are
 * kept in an onode beside the one of the root or partition, under an identifier that is timeless
 * (key_is_timeless): no rollback takes them back, whatever it rolls back and however much that
 * is, and a clone does not have its source's.
 */
#ifndef MUNINN_ENGINE_OBJECTS_LASTING_H
#define MUNINN_ENGINE_OBJECTS_LASTING_H

#include "engine/objects/objects.h"

/* Whether attributes of an address on this page are lasting ones. */
bool lasting_has(const struct engine *engine, struct engine_address address, uint32_t page);

/*
 * Opens the lasting attributes of the root or of a partition, as they are now, whatever version
 * `address` names; if the version shows an earlier partition of that ID, those that it was removed
 * with. What nobody has set yet is there, and empty. An object that the transaction has open in the
 * view of that version is closed. -ENOENT: no such partition or version; -EBADMSG; -ENOMEM. Ended
 * by target_close.
 */
int lasting_open(struct engine_txn *txn, struct engine_address address, struct target *target);

/*
 * Copies the root's into `copy`, and gives those of a copy to the root, which has none. -ENOMEM,
 * -EBADMSG, -EFBIG.
 */
int lasting_copy(struct engine_txn *txn, struct attribute_set *copy);
int lasting_give(struct engine_txn *txn, struct attribute_set *copy);

/*
 * Puts what the transaction has changed of a partition's that is about to be removed. -ENOSPC,
 * -EIO.
 */
int lasting_put(struct engine_txn *txn, const struct partition *partition);

#endif
