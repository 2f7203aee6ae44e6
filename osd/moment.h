/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The moment that a command looks at in several transactions, while others change what is there.
 * Private to osd/.
 */
#ifndef MUNINN_OSD_MOMENT_H
#define MUNINN_OSD_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

struct osd_request;

struct osd_moment {
	uint32_t view;      /* version number that stands for it; 0: none is held */
	uint64_t bound;     /* that this number has to stand for */
	uint64_t partition; /* of the number */
};

/* Whether an address names something of the past. Writes do not change that. */
static inline bool osd_moment_is_past(const struct engine_address *address)
{
	return address->version != 0 || address->ago != 0;
}

/*
 * Holds the present of a partition, as the transaction sees it. False: it is not kept (where no
 * history is, or all numbers are in use).
 */
bool osd_moment_hold(struct osd_request *request, uint64_t partition);
/*
 * Can the moment that is held still be seen? Its number may stand for another one now, or history
 * may have been given up. To be asked at the beginning of a transaction, and again at its end.
 */
bool osd_moment_is_there(const struct osd_request *request);
/* The command needs its moment no longer, or can no longer see it. Inside a transaction. */
void osd_moment_release(struct osd_request *request);
/* The same behind the last transaction, inside none. */
void osd_moment_end(struct osd_request *request);

#endif
