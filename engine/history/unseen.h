/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Rollbacks that no reader sees any more, of partitions and of single objects. A reader goes by the
 * last rollback at or before its bound, and from there as of the number that was gone back to. One
 * of a partition that neither a moment that can be reached nor another rollback leads to may be
 * forgotten, and everybody reads as before.
 */
#ifndef MUNINN_ENGINE_HISTORY_UNSEEN_H
#define MUNINN_ENGINE_HISTORY_UNSEEN_H

#include "engine/objects/objects.h"

/*
 * Before a rollback of `partition` (the root: of the device) to `to`. *found: the new one can have
 * the place of *unseen, which may be another partition's; otherwise there is room for one more.
 * -EFBIG: there is neither. -EIO, -EBADMSG, -ENOMEM.
 */
int unseen_find(struct engine *engine, struct partition *partition, uint64_t to,
		struct rollback *unseen, bool *found);

/*
 * The same before the rollback of an object, `rollback`, whose number is not known yet. Data of
 * objects is read at moments at which they are there, so of an object that is gone, or another one
 * since, rollbacks to which no other one leads are forgotten too.
 */
int unseen_find_object(struct engine *engine, const struct object_rollback *rollback,
		       struct object_rollback *unseen, bool *found);

#endif
