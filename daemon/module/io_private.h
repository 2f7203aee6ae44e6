/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What io_threads.c and attempts.c share. */
#ifndef MUNINN_DAEMON_MODULE_IO_PRIVATE_H
#define MUNINN_DAEMON_MODULE_IO_PRIVATE_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#include "daemon/module/io_threads.h"

#include "list.h"
#include "scsi.h"
#include "tgtd.h"

/* Needs the others before it. */
#include "target.h"

/* One thread, and what it does. */
struct io_thread {
	struct io_threads *io;
	pthread_t thread;
	struct scsi_cmd *running; /* under lock; NULL: waits for one */
	bool aborts;              /* under lock: `running` has aborted others */
	uint64_t awaited;         /* under lock: the threads (bits) that it waits for at its end */
	struct mgmt_req
		*request; /* under lock: an initiator's request to abort `running`, as last seen */
};

/* A command that has begun, and waits for pages before the next attempt. */
struct parked {
	struct scsi_cmd *cmd;  /* NULL: none, or somebody has aborted it */
	unsigned int attempts; /* that have been made */
};

/* Where a command is executed: `kind` of its task. */
enum { ON_IO_THREAD, ON_MAIN_THREAD };

struct io_threads {
	struct io_work work;
	int event_fd;    /* readable: `done` or `due` is not empty */
	int timer_fd;    /* readable: it is time to look for aborted commands */
	bool timer_runs; /* main thread only */

	pthread_mutex_t lock;
	pthread_cond_t wanted;   /* of threads without work */
	unsigned int unoccupied; /* under lock: threads that wait for `wanted` */
	bool waking;             /* under lock: one is woken, and has not looked yet */
	bool wakes, tells;       /* under lock: io_leave wakes it, tells the main thread */
	pthread_cond_t changed;  /* a command has ended, or is due */
	struct order order;      /* under lock: of all commands that have not ended */
	struct list_head due;    /* under lock: commands of the main thread whose turn has come */
	struct list_head done;   /* under lock: ended commands, of which tgtd is to be told */
	void (*probe)(void *context); /* under lock: to be called; NULL: nothing */
	bool probing;                 /* under lock: a thread is calling it */
	bool stopping;                /* under lock */

	/* Of attempts.c. */
	struct scsi_cmd *attempted;                /* under lock: by the main thread; NULL: none */
	bool attempt_aborted;                      /* under lock: somebody has aborted that */
	struct parked parked[ATTEMPTS_PARKED_MAX]; /* under lock: by the number of the stage */
	unsigned int parked_count;
	unsigned int unsent; /* main thread only: stages whose reads have not set out */

	unsigned int count; /* threads that run */
	struct io_thread threads[];
};

/*
 * A command's place in the order lies in the link of tgtd's own queue of held back commands. tgtd
 * never holds back a command of ours, because all of them are SIMPLE to it.
 */
static_assert(sizeof(struct order_task) <= sizeof(struct list_head), "they fit there");
static_assert(_Alignof(struct order_task) <= _Alignof(struct list_head), "they fit there");

static inline struct order_task *io_task_of(struct scsi_cmd *cmd)
{
	return (struct order_task *)(void *)&cmd->qlist;
}

static inline struct scsi_cmd *io_command_of(struct order_task *task)
{
	return list_entry((struct list_head *)(void *)task, struct scsi_cmd, qlist);
}

/*
 * Did an initiator abort the command, by a task management function of iSCSI? Then it is not begun.
 * tgtd sets the mark on its main thread, and answers the function when the command comes back,
 * whatever its status.
 */
static inline bool io_is_aborted(struct scsi_cmd *cmd)
{
	return __atomic_load_n(&cmd->mreq, __ATOMIC_ACQUIRE) != NULL;
}

static inline void io_end_aborted(struct scsi_cmd *cmd)
{
	scsi_set_in_resid_by_actual(cmd, 0);
	scsi_set_out_resid_by_actual(cmd, 0);
	cmd->sense_len = 0;
	scsi_set_result(cmd, SAM_STAT_TASK_ABORTED);
}

/* What io_threads_choose looks for, and what it has found so far. */
struct search {
	struct io_threads *io;
	const struct task_choice *choice;
	bool abort;
	task_found *found;
	void *found_context;
	uint32_t count;
};

/* Under lock: is the command one of those? Then it is counted, and told. */
bool io_search_finds(struct search *search, const struct scsi_cmd *cmd);

/* Under lock: to `due` or `done`. */
void io_give_to_main(struct io_threads *io, struct scsi_cmd *cmd, struct list_head *list);

/* Under lock: there may be work for one more thread. */
void io_wake_one(struct io_threads *io);

/*
 * Gives the lock away, and tells others of what was done under it. Not before: who is woken may be
 * given this processor at once, and would only wait for the lock, whose owner waits for him.
 */
void io_leave(struct io_threads *io);

/* On the main thread: a command has ended that was asynchronous. */
void io_completed(struct io_threads *io, struct scsi_cmd *cmd);

void io_set_timer(struct io_threads *io);

/* ---- attempts.c ---- */

/* Watches for pages that have come. -ENOMEM. */
int attempts_watch(struct io_threads *io);

/* Tries again what has its pages. `wait`: until something has, if anything waits for some. */
void attempts_go_on(struct io_threads *io, bool wait);

/* Under lock: chooses among the commands that are tried, or wait for pages. */
void attempts_choose(struct search *search);

#endif
