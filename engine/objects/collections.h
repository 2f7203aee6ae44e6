/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Collections inside the engine. Byte layouts in docs/objects.md.
 *
 * The members of a collection are an ID set under the collection's own identifier; its header is a
 * private attribute of the collection. A membership that an object knows is an attribute of the
 * object with the collection's ID and the sequence number of the collection's creation. It counts
 * only while that collection is there and has the object in its set, so that a collection goes, or
 * is emptied, without its members being visited.
 */
#ifndef MUNINN_ENGINE_OBJECTS_COLLECTIONS_H
#define MUNINN_ENGINE_OBJECTS_COLLECTIONS_H

#include "engine/objects/objects.h"

/* Value of the private attribute: header of the set, and when it was filled. */
#define COLLECTION_STATE_BYTES (IDSET_HEADER_BYTES + 6)
/* Value of a membership: ID of the collection 8, big-endian; its created sequence 6. */
#define MEMBERSHIP_BYTES 14
/* Of which the attribute calls show the ID. */
#define MEMBERSHIP_SHOWN_BYTES 8

/* Members and fill of a collection, for engine_stat. -EBADMSG. */
int collection_stat(const struct onode *onode, struct engine_stat *stat);

/* Whether a removal of this collection would lose members. 1, 0, -EBADMSG. */
int collection_has_members(const struct onode *onode);

/* The collection of `target` is removed: nothing of its set must stay in memory. */
int collection_drop(struct target *target);

/* Ends the memberships of the user object of `target`, which is about to be removed. */
int memberships_end(struct target *target);

/*
 * Lets the opened user object, which is to be as it was then, be a member of the collections of
 * then: those that are still there, and no others that it knows of. -ENOSPC, -EFBIG, errors of
 * reading.
 */
int memberships_restore(struct target *now, const struct target *then);

/* Is (page, number) of this onode a membership, not a plain attribute? */
bool membership_is_at(const struct onode *onode, uint32_t page, uint32_t number);

/* Does the stored membership count as seen from the object of `target`? 1, 0; errors of reading. */
int membership_is_live(const struct target *target, const uint8_t *value, uint32_t length);

/* As engine_object_membership_set, of an opened user object; `number` is in range. */
int membership_change(struct target *object, uint32_t number, uint64_t collection);

/*
 * Opens the set of an opened collection's members. The set points to `header`, which this fills.
 * -EINVAL: something else.
 */
int collection_set(struct engine_object *object, struct idset *set, struct idset_header *header);

#endif
