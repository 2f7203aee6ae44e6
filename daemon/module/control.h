/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What muninnd asks of a unit over tgtd's control socket. It sends them as tgtd's request to
 * configure a unit, with parameters `muninn=WORD`. The answer comes at once, from tgtd's main
 * thread: TGTADM_LUN_ACTIVE says "not yet, ask again".
 *
 *   flush   what was acknowledged becomes stable, also beside long commands
 *   idle    no command is under way
 *   probe   the unit is alive: since the last time a thread has been free and has reached the
 *           engine, or commands have moved pages of flash
 *   log L   lines up to level L (log.h) are logged from now on, of all units
 *   ask Q   a question that has an answer (questions.h): it stands in CONTROL_ANSWER_FILE then
 *
 * flush and ask take a thread, one at a time for each unit.
 */
#ifndef MUNINN_DAEMON_MODULE_CONTROL_H
#define MUNINN_DAEMON_MODULE_CONTROL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/module/control_words.h"

#include "list.h"
#include "scsi.h"
#include "tgtd.h"

struct unit;

/* What a unit keeps for it. */
struct control {
	/* tgtd's own, for other parameters. */
	tgtadm_err (*stock_config)(struct scsi_lu *lu, char *params);
	pthread_t worker;
	bool working; /* there is a worker */
	bool done;    /* atomic: it has ended, with `result` */
	int result;
	char question[CONTROL_QUESTION_BYTES]; /* what the worker works at; "": a flush */
	char *answer;                          /* its text */
	struct error_text reason;              /* why `result` is not 0 */
	uint64_t pages_moved;                  /* at the last probe */
};

/* Puts its function in the place of tgtd's. */
void control_attach(struct unit *unit, struct scsi_lu *lu);

/* Before the unit's device is closed: nobody uses it when this returns. */
void control_end(struct unit *unit);

#endif
