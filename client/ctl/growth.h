/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How fast a partition, or all of them, grows: the present beside what it was a day ago. */
#ifndef MUNINN_CLIENT_CTL_GROWTH_H
#define MUNINN_CLIENT_CTL_GROWTH_H

#include "client/ctl/ctl.h"

struct growth {
	bool is_known;    /* history reaches back, and this initiator may look at it */
	int64_t bytes;    /* more than then; negative: fewer */
	uint64_t span_ms; /* since then: a day, or as far as history reaches */
};

/* Below that it says nothing of a day. */
#define GROWTH_SPAN_MS_MIN 3600000

/* Asks, of a partition or the root. */
void growth_take(struct growth *growth, struct ctl *ctl, struct osd_client_address address);

/* Of a day. 0 if that can't be told from so short a time. */
int64_t growth_of_a_day(const struct growth *growth);

/* In how many days so many bytes are filled; -1: never, or nobody can tell. */
double growth_days_until_full(const struct growth *growth, uint64_t available);

#endif
