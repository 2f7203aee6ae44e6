/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What `send` and `receive` share. */
#ifndef MUNINN_CLIENT_CTL_SEND_H
#define MUNINN_CLIENT_CTL_SEND_H

#include "client/ctl/ctl.h"
#include "client/stream.h"
#include "client/tree.h"

/*
 * Attributes of TREE_PARTITION_PAGE in a partition that a stream went to: what it is now a copy of,
 * and that a stream is being received (1 byte: 1 a whole partition, 2 differences).
 */
#define SEND_RECEIVED       3u
#define SEND_RECEIVED_BYTES (STREAM_SYSTEM_BYTES + 8 + 8)
#define SEND_UNDER_WAY      4u

/* Whether an attribute of an object, or of a partition, is one that others may set. */
bool send_is_carried(bool of_partition, uint32_t page, uint32_t number);

/* A kept version of a partition. */
struct send_version {
	uint64_t number, sequence;
};

/* Finds it by number or name. CTL_OK, or a code with a message. */
int send_find_version(struct ctl *ctl, struct osd_client_address partition, const char *text,
		      struct send_version *version);

/* The name of the version that `receive` makes. */
const char *send_version_name(uint64_t sequence, char name[OSD_VERSION_NAME_MAX + 1]);

#endif
