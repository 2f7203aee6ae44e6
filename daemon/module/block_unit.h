/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The kind of unit that is a disk. */
#ifndef MUNINN_DAEMON_MODULE_BLOCK_UNIT_H
#define MUNINN_DAEMON_MODULE_BLOCK_UNIT_H

#include "daemon/module/unit.h"

extern const struct unit_kind block_unit;

#endif
