/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What disk.c asks of volumes.c. Private to disk/. */
#ifndef MUNINN_DISK_VOLUMES_H
#define MUNINN_DISK_VOLUMES_H

#include <stdbool.h>

#include "disk/volume.h"

/* Is it a clone that can't be written? */
bool volumes_is_read_only(const struct volume *volume);

#endif
