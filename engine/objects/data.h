/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Pieces of data of an object, for the files that change ranges of it. */
#ifndef MUNINN_ENGINE_OBJECTS_DATA_H
#define MUNINN_ENGINE_OBJECTS_DATA_H

#include "engine/objects/objects.h"

/*
 * Reads the record of a piece: at most `capacity` bytes; *length = how long it is, 0 in a hole.
 * What is behind its end is zeros. -EBADMSG.
 */
int data_get(const struct target *target, uint32_t piece, void *data, uint32_t capacity,
	     uint32_t *length);

/*
 * Whether two targets, of one object at two bounds, have a piece from the same record; whether they
 * have the object as the same command left it. Errors count as no.
 */
bool data_is_same_record(const struct target *one, const struct target *other, uint32_t piece);
bool data_is_unmodified(const struct target *one, const struct target *other);

/*
 * Puts a piece of a changed target. -ENOSPC, -EIO, -ENOMEM. The caller sees to data_limit_extents
 * and data_account.
 */
int data_put(struct target *target, uint32_t piece, const void *data, uint32_t length);

/*
 * Makes pieces first..end - 1 of a changed target a hole. Those that this very transaction has put
 * get an empty record, so that all records voided with content are older than the transaction. Then
 * as for data_put.
 */
int data_void(struct target *target, uint64_t first, uint64_t end);

/* Cuts a changed target to fewer bytes than it has. Uses scratch buffer 0. Then as for data_put. */
int data_cut(struct target *target, uint64_t length);

/*
 * Bridges gaps until there are at most EXTENTS_MAX extents. Uses scratch buffer 1. Errors as
 * data_get and data_put.
 */
int data_limit_extents(struct target *target);

/*
 * Carries what the object's pieces have become since there were `before` of them over to the
 * partition.
 */
void data_account(struct target *target, uint64_t before);

/* -EFBIG: the range does not fit into any object. */
int data_check_range(const struct engine_txn *txn, uint64_t offset, uint64_t length);

/* The object's data is modified now, unless timestamps are bypassed. */
void data_modified_now(struct target *target);

/* Call before the first change of an object's data: target_change, and the time of it. */
int data_change(struct target *target);

#endif
