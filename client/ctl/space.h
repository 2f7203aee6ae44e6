/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What takes the space, as the target tells it part by part: added up, and for the whole device. */
#ifndef MUNINN_CLIENT_CTL_SPACE_H
#define MUNINN_CLIENT_CTL_SPACE_H

#include "client/ctl/ctl.h"

/* Bytes: of the records that were looked at, then of the flash. */
struct space_part {
	uint64_t kind, partition; /* enum osd_space_kind; 0: none */
	uint64_t live, kept, history, reclaimable, freed;
};

#define SPACE_VERSIONS 65536 /* all numbers that there are */

struct space {
	struct space_part *parts;
	size_t part_count, part_capacity;
	uint64_t *own; /* by the number of a version: what it alone keeps */
	struct space_part all;
	uint64_t looked_at, pages;
	uint64_t capacity, used, records, device; /* exact */
	struct progress progress;
};

/*
 * Asks for all of it. `parameters`: of SPACE, or NULL, `since`: a moment among them, or NULL.
 * CTL_OK, or a code with a message.
 */
int space_gather(struct space *space, struct ctl *ctl, struct osd_client_address address,
		 const struct osd_item_writer *parameters, const struct osd_client_moment *since);
void space_free(struct space *space);

#endif
