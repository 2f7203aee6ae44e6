/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The target's own OSD layer over a device in memory, behind a loopback session: what a client of
 * the real target talks to.
 */
#ifndef MUNINN_TESTS_CLIENT_LOCAL_TARGET_H
#define MUNINN_TESTS_CLIENT_LOCAL_TARGET_H

#include "nand/nand.h"
#include "osd/osd.h"
#include "tests/client/loopback.h"

struct local_target {
	struct nand *nand;
	struct engine *engine;
	struct osd_device *device;
	struct loopback *loopback;
	struct osd_client *client;
};

/*
 * An empty unit with space for `bytes`; `options` may be NULL. Fails the test when something goes
 * wrong.
 */
void local_target_open(struct local_target *target, uint64_t bytes, const uint8_t uuid[16],
		       const struct osd_options *options);
/*
 * Starts the session: commands go to `execute`, which passes OSD commands on to
 * local_target_execute.
 */
void local_target_start(struct local_target *target, enum osd_version version,
			loopback_execute *execute, void *context);
/* Both, for OSD-2 commands and nothing else. */
void local_target_serve(struct local_target *target, uint64_t bytes);
void local_target_close(struct local_target *target);

/* Runs an OSD command, in the session's thread. */
void local_target_execute(struct local_target *target, uint64_t nexus,
			  struct loopback_command *command);

#endif
