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
#include <string.h>

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

/* tgtd keeps the name only in what `tgtadm --op show` prints of a session. */
const char *nexus_initiator(const struct scsi_cmd *cmd)
{
	static const char label[] = "Initiator: ";
	const char *info = cmd->it_nexus->info;

	if (!info)
		return NULL;
	info += strspn(info, " ");
	return strncmp(info, label, sizeof(label) - 1) == 0 ? info + sizeof(label) - 1 : NULL;
}

bool nexus_is_logged_in(void *target, uint64_t nexus)
{
	const struct target *at = target;
	struct it_nexus *each;

	list_for_each_entry(each, &at->it_nexus_list,
			    nexus_siblings) if (each->ctime == -(long)nexus) return true;
	return false;
}
