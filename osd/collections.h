/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Collections, and the commands on their members. Private to osd/.
 *
 * A command on the members of a linear collection is one transaction like every other. On those of
 * a tracking collection it is one for each batch of members, each of which leaves the collection
 * when it has been dealt with: what is left when the command fails, or the target dies, is what
 * remains to be done. How far it has come is in the command tracking page of the collection, stored
 * with each batch. Where the answer tells of the members, all are one batch: who is not told of a
 * member because a later one failed finds it still there.
 */
#ifndef MUNINN_OSD_COLLECTIONS_H
#define MUNINN_OSD_COLLECTIONS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/wire.h"

struct osd_request;
struct osd_subject;

/* Commands that work on tracking collections at the same time; more are refused. */
#define OSD_TRACKERS_MAX 32

/* Which collections are in work. */
struct osd_trackers {
	pthread_mutex_t mutex;
	struct osd_tracker {
		uint64_t partition, object; /* partition 0: free */
		uint16_t action;
		bool cancelled; /* what is there under these IDs is not what the command was sent
				   for */
	} entries[OSD_TRACKERS_MAX];
};

/* How many members a command has dealt with. */
struct osd_tracking_counts {
	uint64_t processed, newer_skipped, missing_skipped;
};

/* What a command knows of the tracking collection that it works on. */
struct osd_tracking {
	uint64_t partition, object; /* partition 0: none */
	struct osd_tracker *entry;  /* its own, until it ends */
	uint64_t created;           /* created_sequence of the collection in the CDB */
	uint64_t members;           /* when it began */
	struct osd_tracking_counts counts;
	struct osd_tracking_counts committed; /* in the transactions before this one */
	uint64_t next;                        /* QUERY: the member that is looked at next */
};

/* How far a QUERY has come whose matches are returned. */
struct osd_search_progress {
	bool begun;
	bool whole;     /* in one transaction */
	uint32_t view;  /* version number of the moment that it is about, 0: what it searches does
			   not change */
	uint64_t bound; /* what that number has to stand for */
	uint64_t partition; /* whose it is */
	uint64_t next;      /* member that is looked at next */
	uint64_t found;
};

/* Attributes of members, as they gather. */
struct osd_member_answer {
	struct osd_list_writer writer;
	bool begun;
	bool full; /* there was no space for a member */
};

void osd_trackers_init(struct osd_trackers *trackers);

/* Service action of the command that works on a tracking collection, 0 = none. */
uint16_t osd_tracker_active(struct osd_trackers *trackers, uint64_t partition, uint64_t object);

/*
 * The command begins to work on a tracking collection of `members` members. Fails with `field` if
 * another one does, or too many do.
 */
int osd_tracking_begin(struct osd_request *request, uint64_t object, uint64_t members,
		       uint16_t field);
/*
 * Another batch of the command. Fails if the collection in the CDB, or the one that is tracked, is
 * not the one that the command began with. Inside its transaction.
 */
int osd_tracking_resume(struct osd_request *request);
/*
 * The command takes away, or back, what others work on: ends those. To be called at the end of its
 * transaction, so that no batch comes in between; a commit that fails has ended them all the same.
 */
void osd_tracking_cancel_others(const struct osd_request *request);
/* Stores how far it has come; with `ended` that it has ended well. Inside a writing transaction. */
int osd_tracking_store(struct osd_request *request, bool ended);
/*
 * The command has ended: if it has failed, that and its sense data are stored. Outside
 * transactions.
 */
void osd_tracking_end(struct osd_request *request);

/* Type of a collection: *type = OSD_COLLECTION_... */
int osd_collection_type(const struct osd_subject *subject, uint8_t *type);
/*
 * Finds a second collection that a command names, in the partition of its first one; errors are
 * about `field`. `permissions`: as of osd_further_check.
 */
int osd_find_collection(struct osd_request *request, uint64_t object, uint16_t field,
			uint16_t permissions, struct osd_subject *subject);

/* Sets a number of the collections page of a user object. As osd_page_set. */
int osd_set_membership(struct osd_request *request, const struct osd_subject *subject,
		       const struct osd_attribute *attribute);

/* ---- commands ---- */

int osd_create_collection(struct osd_request *request);
int osd_create_user_tracking_collection(struct osd_request *request);
int osd_remove_collection(struct osd_request *request);
int osd_check_members(struct osd_request *request);
int osd_remove_member_objects(struct osd_request *request);
int osd_get_member_attributes(struct osd_request *request);
int osd_set_member_attributes(struct osd_request *request);
int osd_check_query(struct osd_request *request);
/*
 * Calls `use` with page and number of each criterion of a query that was checked. Ends at the first
 * non-zero result.
 */
int osd_query_each(struct osd_request *request,
		   int (*use)(void *context, const struct osd_attribute *attribute), void *context);
int osd_query(struct osd_request *request);
/*
 * Behind the last transaction, inside none: a QUERY that failed between its turns gives the number
 * of its moment back.
 */
void osd_query_end(struct osd_request *request);

#endif
