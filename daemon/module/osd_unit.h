/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The kind of unit that speaks T10 OSD. */
#ifndef MUNINN_DAEMON_MODULE_OSD_UNIT_H
#define MUNINN_DAEMON_MODULE_OSD_UNIT_H

#include "daemon/module/unit.h"

extern const struct unit_kind osd_unit;

#endif
