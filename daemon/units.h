/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Logical units that come and go while a tgtd serves: for administrators and for a reload. */
#ifndef MUNINN_DAEMON_UNITS_H
#define MUNINN_DAEMON_UNITS_H

#include "daemon/server.h"

/* The unit of that number that is served; NULL: there is none. */
struct lun_config *units_find(const struct server *server, unsigned int number);

/* Whether two units are on one device. */
bool units_share_device(const struct lun_config *lun, const struct lun_config *other);

/* Whether only a start can serve the unit: it is an OSD, and others that are served use its device.
 */
bool units_needs_start(const struct server *server, const struct lun_config *lun);

/*
 * The number of a partition's version, by that or its name, on the device of a unit that is served.
 * -ENOENT: there is none; with a sentence.
 */
int units_find_version(struct server *server, const struct lun_config *lun, uint64_t partition,
		       const char *version, uint64_t *number, struct error_text *error);

/*
 * Serves one more unit of `wanted`, which is what the file says: makes its device if that is
 * missing. Not at a target that lets in whom the file does not (access_lacks_account), and not a
 * disk of a version that is not there. -errno with a sentence; then nothing has changed.
 */
int units_add(struct server *server, const struct config *wanted, const struct lun_config *lun,
	      struct error_text *error);

/*
 * Serves a unit no more. Waits a while for its commands; -EBUSY with a sentence if they go on.
 * Sessions that use it: see admin_check_unused.
 */
int units_remove(struct server *server, unsigned int number, struct error_text *error);

/*
 * Lets the unit's disk grow; initiators are told. -EINVAL with a sentence: it would shrink, or is
 * no disk of the present.
 */
int units_grow(struct server *server, unsigned int number, uint64_t bytes,
	       struct error_text *error);

/*
 * Lets the device that the unit is on grow as at a start (image_prepare): takes all units on it
 * away, and serves them again, as they were. Sessions that use them: see admin_count_users; whether
 * it can grow: image_plan_growth. -errno with a sentence, which names the units that are not served
 * again, and says what serves them. The device is whole in any case.
 */
int units_grow_device(struct server *server, const struct lun_config *unit, uint64_t bytes,
		      struct error_text *error);

/* How large a disk is now, which is what its volume has. -errno with a sentence. */
int units_disk_bytes(struct server *server, unsigned int number, uint64_t *bytes,
		     struct error_text *error);

#endif
