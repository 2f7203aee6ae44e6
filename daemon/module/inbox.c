/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads from a socket what is wanted, and ahead. */
#include "daemon/module/inbox.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/bytes.h"

/*
 * Behind a part as long as this, probably another one follows. Only its PDU's header is read ahead,
 * because what comes by the inbox is copied twice.
 */
#define LONG_PART_BYTES  32768
#define SHORT_READ_AHEAD 512

void inbox_open(struct inbox *inbox)
{
	inbox->memory = malloc(INBOX_BYTES);
}

void inbox_close(struct inbox *inbox)
{
	free(inbox->memory);
	*inbox = (struct inbox){ 0 };
}

static ssize_t take(struct inbox *inbox, void *to, size_t bytes)
{
	uint32_t taken = (uint32_t)min_u64(bytes, inbox->count);

	memcpy(to, inbox->memory + inbox->at, taken);
	inbox->at += taken;
	inbox->count -= taken;
	return taken;
}

ssize_t inbox_read(struct inbox *inbox, int fd, void *to, size_t bytes)
{
	struct iovec parts[] = {
		{ to, bytes },
		{ inbox->memory, bytes < LONG_PART_BYTES ? INBOX_BYTES : SHORT_READ_AHEAD },
	};
	ssize_t got;

	if (inbox->count > 0)
		return take(inbox, to, bytes);
	got = syscall(SYS_readv, fd, parts, inbox->memory ? 2 : 1);
	if (got <= (ssize_t)bytes)
		return got;
	inbox->at = 0;
	inbox->count = (uint32_t)(got - (ssize_t)bytes);
	return (ssize_t)bytes;
}
