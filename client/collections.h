/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Collections of a partition, and commands on their members. Conventions as in client/osd_client.h;
 * all of them wait.
 */
#ifndef MUNINN_CLIENT_COLLECTIONS_H
#define MUNINN_CLIENT_COLLECTIONS_H

#include "client/osd_client.h"

/* A linear collection. `requested` 0: the target chooses; `chosen` may be NULL. */
int osd_client_create_collection(struct osd_client *client, uint64_t partition, uint64_t requested,
				 uint64_t *chosen, struct osd_client_error *error);

/* A tracking collection with the members of `source`, 0 = none. OSD-2 only. */
int osd_client_create_tracking_collection(struct osd_client *client, uint64_t partition,
					  uint64_t requested, uint64_t source, uint64_t *chosen,
					  struct osd_client_error *error);

/* `force`: also if it has members, which stay as objects. Otherwise -ENOTEMPTY. */
int osd_client_remove_collection(struct osd_client *client, struct osd_client_address collection,
				 bool force, struct osd_client_error *error);

/*
 * As osd_client_list: the members of a collection, or with object 0 the collections of the
 * partition.
 */
int osd_client_list_collection(struct osd_client *client, struct osd_client_address address,
			       uint64_t first, osd_client_listed *each, void *context,
			       struct osd_client_error *error);

/*
 * Makes an object a member, under a free number of its collections page. Being one already is no
 * error. If another client gives the same object a membership at the same time, this is atomic only
 * if both use these functions.
 */
int osd_client_join_collection(struct osd_client *client, struct osd_client_address object,
			       uint64_t collection, struct osd_client_error *error);

/* Ends the membership. -ENODATA: the object has none in this collection, or does not know of it. */
int osd_client_leave_collection(struct osd_client *client, struct osd_client_address object,
				uint64_t collection, struct osd_client_error *error);

/*
 * REMOVE MEMBER OBJECTS: removes the members themselves. On a tracking collection the target works
 * in the background, and this call asks until it has ended, so no command takes long. A linear one
 * of more members than the target removes at once lends them to a tracking one of its own. OSD-2
 * only.
 */
int osd_client_remove_members(struct osd_client *client, struct osd_client_address collection,
			      struct osd_client_error *error);

/* Bounds of an attribute's value as a byte string, inclusive; length 0 = none. */
struct osd_client_criterion {
	uint32_t page, number;
	const void *minimum, *maximum;
	uint16_t minimum_length, maximum_length;
};

/*
 * QUERY: calls `each` with the members that match all, or any, of the criteria, in ascending order.
 * `collection` may have a version. OSD-2 only. -EMSGSIZE: the criteria do not fit a command.
 */
int osd_client_query(struct osd_client *client, struct osd_client_address collection, bool all,
		     const struct osd_client_criterion *criteria, size_t count,
		     osd_client_listed *each, void *context, struct osd_client_error *error);

#endif
