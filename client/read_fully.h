/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reading from a file descriptor until there is enough. */
#ifndef MUNINN_CLIENT_READ_FULLY_H
#define MUNINN_CLIENT_READ_FULLY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Reads until `capacity` bytes are there or the file ends. Returns how many, or -errno; -EINTR when
 * a signal comes that the program catches, in order to end.
 */
ssize_t read_fully(int fd, uint8_t *data, size_t capacity);

#endif
