/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Timing and faults of a device that another process has open. They are left beside its image as
 * IMAGE.timing and IMAGE.faults. That process takes them up while it runs, and so does each later
 * one, until they are taken back.
 */
#ifndef MUNINN_NAND_LIVE_H
#define MUNINN_NAND_LIVE_H

#include <stdint.h>

#include "common/error.h"

struct nand;

enum nand_setting {
	NAND_SETTING_TIMING, /* text of nand_timing_parse */
	NAND_SETTING_FAULTS, /* text of nand_faults_parse */
	NAND_SETTINGS
};

/* "timing", "faults". */
const char *nand_setting_name(enum nand_setting which);

/*
 * Leaves a setting for the image's present and later users; NULL takes it back: as at creation.
 * -EINVAL: bad text; -ENOENT: no such image, or nothing to take back; -errno of the file system.
 */
int nand_leave_setting(const char *image, enum nand_setting which, const char *text,
		       struct error_text *error);

/* Which settings a process has taken up. All zero: none. Used by one thread at a time. */
struct nand_settings {
	uint64_t seen[NAND_SETTINGS]; /* what identifies the file that was applied; 0 = there was
					 none */
};

/*
 * Takes up what has changed since the last call; costs one stat for each setting if nothing has. A
 * setting that can't be read or applied is logged once, and leaves the device as it is.
 */
void nand_take_settings(struct nand *nand, struct nand_settings *settings);

#endif
