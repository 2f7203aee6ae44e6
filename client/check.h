/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Looks for damage in what a unit stores: OBJECT STRUCTURE CHECK, in as many commands as it takes.
 * OSD-2 only.
 */
#ifndef MUNINN_CLIENT_CHECK_H
#define MUNINN_CLIENT_CHECK_H

#include "client/osd_client.h"

/* What was looked at. */
struct osd_client_checked {
	uint64_t objects; /* the root and partitions included */
	uint64_t pages;   /* of data read */
};

/*
 * `type`: OSD_MAP_DAMAGED_DATA, _ATTRIBUTES or _DIRECTORY. A result other than 0 ends the check;
 * osd_client_check returns it.
 */
typedef int osd_client_damaged(void *context, struct osd_client_address address, uint16_t type);

/* A damaged range of an object. As osd_client_damaged. */
typedef int osd_client_damaged_range(void *context, uint64_t offset, uint64_t length);

/* Calls `each` for the damaged ranges of a user object, ascending; those that touch are one. */
int osd_client_check_ranges(struct osd_client *client, struct osd_client_address address,
			    osd_client_damaged_range *each, void *context,
			    struct osd_client_error *error);

/*
 * Checks an object, a partition with everything in it, or the root: its table of partitions and the
 * state of each, not what is in them. Adds to `checked`, also when it fails.
 */
int osd_client_check(struct osd_client *client, struct osd_client_address address,
		     osd_client_damaged *each, void *context, struct osd_client_checked *checked,
		     struct osd_client_error *error);

#endif
