/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Collections, and the commands on their members. Private to osd/.
 *
 * A command on the members of a linear collection is one transaction, like every other command. On
 * a tracking collection it is one transaction for each batch of members. Each member leaves the
 * collection when the command is done with it. So when the command fails, or the target dies, the
 * collection holds what remains to be done. The command tracking page of the collection says how
 * far the command has come; each batch stores it.
 *
 * If the answer tells of the members, all members are one batch. Otherwise a failure at a later
 * member would hide from the initiator what was done to earlier ones.
 */
#ifndef MUNINN_OSD_COLLECTIONS_H
#define MUNINN_OSD_COLLECTIONS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/wire.h"

struct osd_request;
struct osd_subject;

/* Commands that work on tracking collections at the same time. The target refuses more. */
#define OSD_TRACKERS_MAX 32

/* Which collections are in work. */
struct osd_trackers {
	pthread_mutex_t mutex;
	struct osd_tracker {
		uint64_t partition, object; /* partition 0: free */
		uint16_t action;
		bool cancelled; /* these IDs now mean something else than when the command was sent
				 */
	} entries[OSD_TRACKERS_MAX];
};

/* How many members a command has dealt with. */
struct osd_tracking_counts {
	uint64_t processed, newer_skipped, missing_skipped;
};

/* What a command knows of the tracking collection that it works on. */
struct osd_tracking {
	uint64_t partition, object; /* partition 0: none */
	struct osd_tracker *entry;  /* the command's own, until it ends */
	uint64_t created;           /* created_sequence of the collection in the CDB */
	uint64_t members;           /* when the command began */
	struct osd_tracking_counts counts;
	struct osd_tracking_counts committed; /* in earlier transactions */
	uint64_t next;                        /* QUERY: the next member to look at */
};

/* How far a QUERY has come that returns its matches. */
struct osd_search_progress {
	bool begun;
	enum {
		OSD_SEARCHES_WHOLE,   /* in one transaction */
		OSD_SEARCHES_PAST,    /* what does not change */
		OSD_SEARCHES_MOMENT,  /* the one that the request holds */
		OSD_SEARCHES_PRESENT, /* of each transaction */
	} kind;
	uint64_t next; /* the next member to look at */
	uint64_t found;
};

/* Attributes of members, while they are gathered. */
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
 * another command works on it, or too many commands work.
 */
int osd_tracking_begin(struct osd_request *request, uint64_t object, uint64_t members,
		       uint16_t field);
/*
 * Begins another batch of the command, inside its transaction. Fails if the collection in the CDB,
 * or the tracked one, is not the one that the command began with.
 */
int osd_tracking_resume(struct osd_request *request);
/*
 * The command takes away, or back, what other commands work on: ends those. Call it at the end of
 * the transaction, so that no batch comes in between. If the commit then fails, they have ended
 * nevertheless.
 */
void osd_tracking_cancel_others(const struct osd_request *request);
/* Stores how far the command has come. `ended`: it has ended well. Inside a writing transaction. */
int osd_tracking_store(struct osd_request *request, bool ended);
/*
 * The command has ended. If it has failed, stores that with its sense data. Outside transactions.
 */
void osd_tracking_end(struct osd_request *request);

/* Type of a collection: *type = OSD_COLLECTION_... */
int osd_collection_type(const struct osd_subject *subject, uint8_t *type);
/*
 * Finds a second collection that a command names, in the partition of the first. Errors are about
 * `field`. `permissions`: as of osd_further_check.
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
 * Calls `use` with page and number of each criterion of a checked query. Ends at the first non-zero
 * result.
 */
int osd_query_each(struct osd_request *request,
		   int (*use)(void *context, const struct osd_attribute *attribute), void *context);
int osd_query(struct osd_request *request);

#endif
