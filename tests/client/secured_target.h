/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The target's own OSD layer behind a session, with keys and a secured partition, and a client that
 * signs by them.
 */
#ifndef MUNINN_TESTS_CLIENT_SECURED_TARGET_H
#define MUNINN_TESTS_CLIENT_SECURED_TARGET_H

#include <stdio.h>

#include "client/security.h"
#include "tests/client/local_target.h"

#define PARTITION         0x10000
#define OBJECT            0x10005
#define DEVICE_KEY_BYTE_0 7 /* of the unit's device key; the others are 0 */

#define UUID_BYTES_0_TO_2 "010203" /* of the unit; the others are 0 */

static const struct osd_client_address ADDRESS = { PARTITION, OBJECT, 0 };
static const struct osd_client_address IN_PARTITION = { PARTITION, 0, 0 };

struct target {
	struct local_target unit;
	struct osd_client *client; /* the unit's */
	FILE *record; /* what goes over the wire, a line of JSON a command; NULL: nowhere */
	/* What happens to answers to commands with this action; 0 = nothing. */
	uint16_t action;
	void (*change)(struct loopback_command *command);
};

/* Where targets that are opened from now on record; NULL: nowhere. */
extern FILE *record_of_targets;

/* A unit without partitions; the client does not sign. */
void open_target(struct target *target, enum osd_version version);
void close_target(struct target *target);
/*
 * A partition secured with `wanted`, an object in it with ten bytes of content; the client signs.
 */
void open_secured(struct target *target, enum osd_version version, uint8_t wanted);

/* Gives credentials for all commands, with this method; SET KEY has at least CMDRSP. */
extern uint8_t method;
int give(void *context, const struct osd_cdb *cdb, struct osd_credential *credential);

/*
 * Calls of the client that must succeed, on the object and in the partition. Its content is ten
 * bytes again at the end.
 */
void do_everything(struct osd_client *client);

#endif
