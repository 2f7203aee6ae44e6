/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The flash image of a logical unit: made when it is missing, looked at before tgtd opens it. */
#ifndef MUNINN_DAEMON_IMAGE_H
#define MUNINN_DAEMON_IMAGE_H

#include <stdbool.h>

#include "common/error.h"
#include "daemon/config.h"

/*
 * Afterwards the unit's image exists, is formatted, and nobody else has it open. A missing one is
 * created with the unit's size, geometry and engine options; `created` says so. An interrupted
 * creation starts over (nothing was ever stored in it). -errno with a sentence; an existing image
 * is never changed.
 */
int image_prepare(const struct lun_config *lun, bool *created, struct error_text *error);

#endif
