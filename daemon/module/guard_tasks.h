/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The commands of a session that tgtd has not answered, found by their task tags as tgtd finds
 * them: of two with one tag, the newer one.
 */
#ifndef MUNINN_DAEMON_MODULE_GUARD_TASKS_H
#define MUNINN_DAEMON_MODULE_GUARD_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/module/limits.h"

/* Twice the limit: what a session may have while some of its commands wait for data. */
#define GUARD_TASKS_MAX (2 * LIMITS_COMMANDS_MAX)

enum guard_data {
	GUARD_DATA_COMPLETE,    /* there is none, or all has come: tgtd executes the command */
	GUARD_DATA_UNSOLICITED, /* comes by itself */
	GUARD_DATA_NEEDED,      /* tgtd will ask for it */
	GUARD_DATA_SOLICITED,   /* tgtd has asked for some */
};

struct guard_task {
	uint32_t tag;
	uint32_t length;       /* bytes of Data-Out in all */
	uint32_t received;     /* of them */
	uint32_t window_end;   /* tgtd has asked for the bytes before this one */
	uint32_t transfer_tag; /* the tag that it gave them */
	uint64_t bytes;        /* of tgtd's buffers for the command */
	uint16_t next;         /* 1 + place of the next one; 0 = none */
	uint8_t data;          /* enum guard_data */
	bool aborted;          /* its tag may come again */
};

struct guard_tasks {
	struct guard_task *all;
	uint16_t *buckets; /* 1 + place of the first task; 0 = none */
	uint32_t room, bucket_mask;
	uint32_t count, waiting; /* tasks; those that wait for data */
	uint16_t free;           /* 1 + place; 0 = none */
};

/* For `room` tasks, GUARD_TASKS_MAX at most. -ENOMEM. */
int guard_tasks_init(struct guard_tasks *tasks, uint32_t room);
void guard_tasks_release(struct guard_tasks *tasks);

/* NULL: there is no room. The task is empty but for its tag. */
struct guard_task *guard_tasks_add(struct guard_tasks *tasks, uint32_t tag);

/* The newest task with this tag; NULL: none. */
struct guard_task *guard_tasks_find(const struct guard_tasks *tasks, uint32_t tag);

/* Use this to change what a task waits for. */
void guard_tasks_set(struct guard_tasks *tasks, struct guard_task *task, enum guard_data data);

void guard_tasks_remove(struct guard_tasks *tasks, struct guard_task *task);

/* All (`one` = false), or those with the tag. */
void guard_tasks_abort(struct guard_tasks *tasks, bool one, uint32_t tag);

#endif
