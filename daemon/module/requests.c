/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Finds task management requests that have lost their place in a command to another one.
 *
 * tgtd counts in a request how many commands it waits for, and counts down when one of them ends.
 * So a request that fewer commands name than it counts has lost places. All requests are taken down
 * just before tgtd acts on another one (stream.c), which is the only time that a place can be lost.
 * A request that has lost them all is answered by "rejected": what it was about is the other one's
 * now.
 */
#include "daemon/module/requests.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "list.h"
#include "scsi.h"
#include "tgtd.h"

/* Want the others before them. */
#include "driver.h"
#include "target.h"

/* A request that commands name. tgtd frees it with the last of those that it counts. */
struct known {
	struct mgmt_req *request;
	int driver;  /* its number among tgtd's */
	int busy;    /* as the request had it when it was last looked at, less those that ended */
	int named;   /* while looking: commands that name it */
	bool shared; /* while looking: with a unit that is not watched */
};

/*
 * In mgmt_req.result, which tgtd does not use before the end: 0 = not seen yet, otherwise the place
 * in `known` and 1, or this.
 */
enum { LEFT_ALONE = -1 };

static struct known *known;
static int known_count, known_room;
static bool unsettled; /* requests may have lost their places since all were looked at */

/* tgtd's own; the same for all units that are watched. */
static void (*stock_done)(struct target *target, struct scsi_cmd *cmd);

static void forget(int i, int mark)
{
	if (mark)
		known[i].request->result = mark;
	known[i] = known[--known_count];
	if (i < known_count)
		known[i].request->result = i + 1;
}

/* 0 = there is no memory for it. */
static int take_down(struct mgmt_req *request, int driver)
{
	if (known_count == known_room) {
		int room = known_room ? 2 * known_room : 64;
		struct known *more = realloc(known, (size_t)room * sizeof(*more));

		if (!more)
			return 0;
		known = more;
		known_room = room;
	}
	known[known_count] = (struct known){ .request = request, .driver = driver };
	return request->result = ++known_count;
}

static void command_ends(struct target *target, struct scsi_cmd *cmd);

static void look_at(const struct scsi_cmd *cmd)
{
	struct mgmt_req *request = cmd->mreq;
	bool watched = cmd->dev->cmd_done == command_ends;
	int place;

	if (!request || request->result == LEFT_ALONE)
		return;
	place = request->result;
	if (!place && watched)
		place = take_down(request, cmd->c_target->lid);
	if (!place) {
		request->result = LEFT_ALONE;
		return;
	}
	known[place - 1].named++;
	known[place - 1].shared |= !watched;
}

static void look_at_all(void)
{
	struct target *target;
	struct it_nexus *nexus;
	struct scsi_cmd *cmd;

	for (int i = 0; tgt_drivers[i]; i++)
		list_for_each_entry(target, &tgt_drivers[i]->target_list, lld_siblings)
			list_for_each_entry(nexus, &target->it_nexus_list, nexus_siblings)
				list_for_each_entry(cmd, &nexus->cmd_list, c_hlist) look_at(cmd);
}

static void reject(const struct known *lost)
{
	lost->request->result = -ECANCELED;
	tgt_drivers[lost->driver]->mgmt_end_notify(lost->request);
	free(lost->request);
}

void requests_look(void)
{
	for (int i = 0; i < known_count; i++) {
		known[i].named = 0;
		known[i].shared = false;
	}
	look_at_all();
	unsettled = false;
	for (int i = known_count - 1; i >= 0; i--) {
		struct known looked_at = known[i];

		if (looked_at.shared) {
			forget(i, LEFT_ALONE);
			continue;
		}
		known[i].busy = looked_at.request->busy = looked_at.named;
		if (looked_at.named == 0) {
			forget(i, 0);
			reject(&looked_at);
		}
	}
}

void requests_arrive(void)
{
	requests_look();
	unsettled = true;
}

/*
 * In place of tgtd's own, which it calls for a command that has ended and been answered. It has
 * counted down the command's request, and freed it if that was the last one.
 */
static void command_ends(struct target *target, struct scsi_cmd *cmd)
{
	const struct mgmt_req *request = cmd->mreq;

	cmd->mreq = NULL;
	for (int i = 0; request && i < known_count; i++) {
		if (known[i].request != request)
			continue;
		if (--known[i].busy == 0)
			forget(i, 0);
		break;
	}
	if (unsettled)
		requests_look();
	stock_done(target, cmd);
}

void requests_watch(struct scsi_lu *lu)
{
	if (!stock_done)
		stock_done = lu->cmd_done;
	if (lu->cmd_done == stock_done)
		lu->cmd_done = command_ends;
}
