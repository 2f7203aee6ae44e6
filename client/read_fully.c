/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads from a file descriptor until there is enough. */
#include "client/read_fully.h"

#include <errno.h>
#include <unistd.h>

ssize_t read_fully(int fd, uint8_t *data, size_t capacity)
{
	size_t length = 0;

	while (length < capacity) {
		ssize_t got = read(fd, data + length, capacity - length);

		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		length += (size_t)got;
	}
	return (ssize_t)length;
}
