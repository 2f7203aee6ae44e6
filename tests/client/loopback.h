/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A small iSCSI target in a thread of its own, with a client logged in: commands go to a function
 * of the test. It asks for Data-Out with R2T in short bursts and sends Data-In in short segments.
 */
#ifndef MUNINN_TESTS_CLIENT_LOOPBACK_H
#define MUNINN_TESTS_CLIENT_LOOPBACK_H

#include "client/osd_client.h"

struct loopback_command {
	const uint8_t *cdb;
	size_t cdb_length;
	const uint8_t *out;
	size_t out_length;
	uint8_t *in; /* zeroed */
	size_t in_capacity;
	/* Results, zero at first. */
	size_t in_length;
	uint8_t status;
	uint8_t sense[252];
	size_t sense_length;
	bool hang_up; /* close the connection instead of answering */
};

/* Called in the target's thread. */
typedef void loopback_execute(void *context, struct loopback_command *command);

struct loopback;

/* Starts the target and makes a client of it. */
struct loopback *loopback_start(loopback_execute *execute, void *context, enum osd_version version,
				struct osd_client **client);
/* Disconnects the client and waits for the thread. */
void loopback_stop(struct loopback *loopback, struct osd_client *client);

/* CHECK CONDITION with sense. */
void loopback_fail(struct loopback_command *command, const struct osd_sense *sense);

#endif
