/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What has come in at a socket and nobody has asked for yet. tgtd reads each part of a PDU by
 * itself; so one system call brings what it wants and what follows, mostly several commands.
 */
#ifndef MUNINN_DAEMON_MODULE_INBOX_H
#define MUNINN_DAEMON_MODULE_INBOX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define INBOX_BYTES 32768

struct inbox {
	uint8_t *memory; /* NULL: nothing is read ahead */
	uint32_t at, count;
};

/* Reads ahead from now on, if there is memory for that. Once for an inbox of zeros. */
void inbox_open(struct inbox *inbox);
void inbox_close(struct inbox *inbox);

/* As read(2), from the inbox as long as it has bytes, and then from the socket. */
ssize_t inbox_read(struct inbox *inbox, int fd, void *to, size_t bytes);

#endif
