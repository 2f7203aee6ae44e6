/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Numbers of sessions. A backing store learns of no login and no logout. But tgtd writes the time
 * into each session that it makes, and uses it for one thing only: a registration of PERSISTENT
 * RESERVE OUT belongs to the session with this number and this time. So a number of ours can take
 * its place. It is negative, which no time is, and so tells the sessions that have one already. For
 * registrations it is as good as the time, and better when many sessions begin in one second.
 */
#include "daemon/module/nexus.h"

#include <assert.h>
#include <stddef.h>

#include "list.h"
#include "scsi.h"
#include "tgtd.h"

/* Wants the others before it. */
#include "target.h"

static_assert(sizeof(((struct it_nexus *)0)->ctime) == 8, "a counter that never wraps");

static long newest; /* counts down */

void nexus_greet(struct it_nexus *nexus)
{
	if (nexus->ctime >= 0)
		nexus->ctime = --newest;
}

uint64_t nexus_of(const struct scsi_cmd *cmd)
{
	assert(cmd->it_nexus->ctime < 0);
	return -(uint64_t)cmd->it_nexus->ctime;
}
