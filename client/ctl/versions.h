/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The kept versions of a partition or the device, as an array. */
#ifndef MUNINN_CLIENT_CTL_VERSIONS_H
#define MUNINN_CLIENT_CTL_VERSIONS_H

#include "client/ctl/ctl.h"

struct ctl_version {
	uint64_t number, sequence, ms; /* `ms`: when it was made, since 1970 */
	char name[OSD_VERSION_NAME_MAX + 1];
	bool is_chosen; /* the verb's own */
};

struct ctl_versions {
	struct ctl_version *list; /* the oldest first */
	size_t count, capacity;
};

/*
 * All that VERSIONS tells of an address; connects. Those of a partition include the device's, from
 * OSD_DEVICE_VERSION_FIRST on. CTL_OK or, with a message, a code; ctl_free_versions in each case.
 * `versions` is zeroed before.
 */
int ctl_load_versions(struct ctl *ctl, struct osd_client_address address,
		      struct ctl_versions *versions);
void ctl_free_versions(struct ctl_versions *versions);

/* The first version with this number or, with number 0, this name; NULL: there is none. */
struct ctl_version *ctl_find_version(const struct ctl_versions *versions, uint64_t number,
				     const char *name);

#endif
