/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The types of logical units that there are. */
#include "daemon/module/unit_type.h"

#include "scsi.h"

const struct unit_type unit_types[UNIT_TYPES] = {
	[UNIT_TYPE_OSD] = { "osd", TYPE_OSD, "muninn" },
	[UNIT_TYPE_DISK] = { "disk", TYPE_DISK, "muninn_disk" },
};
