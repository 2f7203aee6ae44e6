/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The file that holds a unit's device key: 64 hexadecimal digits and a newline. */
#ifndef MUNINN_WIRE_KEYS_FILE_H
#define MUNINN_WIRE_KEYS_FILE_H

#include <stdint.h>

#include "common/error.h"

#define OSD_DEVICE_KEY_BYTES 32

/*
 * Reads it. Negative errno with a sentence: -ENOENT and other errors of opening; -EPERM: others
 * than the owner may read or write it; -EINVAL: it holds something else.
 */
int osd_key_file_read(const char *path, uint8_t key[OSD_DEVICE_KEY_BYTES],
		      struct error_text *error);

/* Makes one with a random key, mode 0600. -EEXIST: there is a file already, which stays. */
int osd_key_file_create(const char *path, struct error_text *error);

#endif
