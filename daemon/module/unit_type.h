/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The types of logical units: one table for muninnd, which reads `type` in the configuration, and
 * for the module, which has a kind (unit.h) for each.
 */
#ifndef MUNINN_DAEMON_MODULE_UNIT_TYPE_H
#define MUNINN_DAEMON_MODULE_UNIT_TYPE_H

#include <stdint.h>

struct unit_type {
	const char *word;          /* `type` in the configuration */
	uint8_t device_type;       /* SPC's peripheral device type */
	const char *backing_store; /* the name of its kind among tgtd's backing stores */
};

enum {
	UNIT_TYPE_OSD, /* the default */
	UNIT_TYPE_DISK,
	UNIT_TYPES
};

extern const struct unit_type unit_types[UNIT_TYPES];

#endif
