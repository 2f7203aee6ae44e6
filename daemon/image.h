/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The flash image of a logical unit: made if it is missing, and checked before tgtd opens it. */
#ifndef MUNINN_DAEMON_IMAGE_H
#define MUNINN_DAEMON_IMAGE_H

#include <stdbool.h>

#include "common/error.h"
#include "daemon/config.h"

/*
 * Whether the device that the configuration describes is possible, and takes the unit's disk, if
 * nothing of it is there; otherwise 0, because what is there counts. -EINVAL with a sentence.
 */
int image_plan(const struct lun_config *lun, struct error_text *error);

/*
 * Whether the host lets image_prepare make the unit's device, if nothing of it is there; otherwise
 * 0. Tries it without leaving anything. -errno with a sentence.
 */
int image_try(const struct lun_config *lun, struct error_text *error);

/*
 * Makes sure that the unit's image exists, is formatted, and is not in use. Creates a missing one
 * with the unit's size, geometry and engine options, and sets `created`. Starts an interrupted
 * creation again, because nothing was ever stored in it. Makes an empty NVRAM file if that is
 * missing and the unit has recover_without_nvram. An existing image grows to a larger size that
 * somebody has set; nothing else of it changes. -errno with a sentence.
 */
int image_prepare(const struct lun_config *lun, bool *created, struct error_text *error);

/*
 * After an end of tgtd that did not close the unit: opens the device and closes it, so that all
 * that was acknowledged is stable. -errno with a sentence.
 */
int image_make_stable(const struct lun_config *lun, struct error_text *error);

/* How large a unit's device is, and would be: it has whole erase blocks. */
struct image_growth {
	uint64_t before, after; /* bytes */
};

/*
 * Whether the unit's device can grow to `bytes`. Changes nothing, and works while the service has
 * the image open. -errno with a sentence.
 */
int image_plan_growth(const struct lun_config *lun, uint64_t bytes, struct image_growth *growth,
		      struct error_text *error);

/*
 * Whether image_prepare would take what is there, or nothing, by the names of files alone: no half
 * of a device, and the NVRAM file in its place. -errno with a sentence.
 */
int image_check_names(const struct lun_config *lun, struct error_text *error);

/* What keeps records, by its name, and the index that finds them; NULL: the device does not say. */
struct image_engine {
	const char *name, *index;
};

/*
 * The engine that the unit's image has, or will have when it is made. Changes nothing, and works
 * while the service has the image open. -errno with a sentence where image_prepare would refuse
 * what is there.
 */
int image_engine(const struct lun_config *lun, struct image_engine *engine,
		 struct error_text *error);

#endif
