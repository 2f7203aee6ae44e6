/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Limits of what initiators may take, as text and back. */
#include "daemon/module/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

void limits_default(struct limits *limits)
{
	limits->connections = 256;
	limits->connections_per_address = 128;
	limits->login_timeout = 15;
	limits->stall_timeout = 60;
	limits->commands = 1024;
	limits->transfer = UINT64_C(128) << 20;
	limits->session_memory = UINT64_C(256) << 20;
	limits->memory = UINT64_C(1) << 30;
}

void limits_write(const struct limits *limits, char text[LIMITS_TEXT_BYTES])
{
	snprintf(text, LIMITS_TEXT_BYTES,
		 "%" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64
		 " %" PRIu64,
		 limits->connections, limits->connections_per_address, limits->login_timeout,
		 limits->stall_timeout, limits->commands, limits->transfer, limits->session_memory,
		 limits->memory);
}

int limits_read(const char *text, struct limits *limits)
{
	struct limits read;
	int end = 0;

	if (sscanf(text,
		   "%" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu64
		   " %" SCNu64 " %" SCNu64 "%n",
		   &read.connections, &read.connections_per_address, &read.login_timeout,
		   &read.stall_timeout, &read.commands, &read.transfer, &read.session_memory,
		   &read.memory, &end) != 8 ||
	    text[end])
		return -EINVAL;
	if (!read.commands || read.commands > LIMITS_COMMANDS_MAX)
		return -EINVAL;
	*limits = read;
	return 0;
}
