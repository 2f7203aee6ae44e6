/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How much initiators may take of the service: section [limits] of the configuration. muninnd
 * writes the limits into tgtd's environment, and the module reads them there.
 */
#ifndef MUNINN_DAEMON_MODULE_LIMITS_H
#define MUNINN_DAEMON_MODULE_LIMITS_H

#include <stdint.h>

#define LIMITS_VARIABLE   "MUNINN_LIMITS"
#define LIMITS_TEXT_BYTES 256

#define LIMITS_COMMANDS_MAX 4096

struct limits {
	uint32_t connections;             /* at once */
	uint32_t connections_per_address; /* of them, from one address */
	uint32_t login_timeout;           /* seconds from connecting to the end of the login */
	uint32_t stall_timeout; /* seconds that an initiator may keep the target waiting */
	uint32_t commands;      /* of a session that are not answered */
	/* Bytes of one command in one direction; of all commands of a session; of all sessions. */
	uint64_t transfer;
	uint64_t session_memory;
	uint64_t memory;
};

/* The built-in values. */
void limits_default(struct limits *limits);

/* As text for limits_read. */
void limits_write(const struct limits *limits, char text[LIMITS_TEXT_BYTES]);

/* -EINVAL: the text is not from limits_write. */
int limits_read(const char *text, struct limits *limits);

#endif
