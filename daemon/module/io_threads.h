/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The I/O threads of one logical unit, and the order of its commands. All commands that tgtd hands
 * over begin here, in the order that their task attributes ask for (order.h). They come back to
 * tgtd's main thread in batches, announced over one eventfd.
 *
 * Commands are tgtd's, and are linked through their own fields. tgtd's command window (128 a
 * session) bounds their number. Nothing is allocated on the way. Everything in tgtd is called on
 * its main thread.
 */
#ifndef MUNINN_DAEMON_MODULE_IO_THREADS_H
#define MUNINN_DAEMON_MODULE_IO_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/module/order.h"

struct scsi_cmd;
struct io_threads;
struct nand_stage;
struct nand_stages;

/* Commands that may wait for pages of flash on no thread. */
#define ATTEMPTS_PARKED_MAX 64

/* As many as one word has bits. */
#define IO_THREADS_MAX 64

/*
 * Executes one command on an I/O thread and leaves the status in cmd->result, sense and residuals
 * in their places.
 */
typedef void io_execute(void *context, struct scsi_cmd *cmd);

/*
 * Tries to execute one command on tgtd's main thread, as io_execute, without waiting for anything.
 * False: nothing has happened, and the command is still to be executed. `stage`: for pages of flash
 * that it lacks (nand.h); NULL: none.
 */
typedef bool io_attempt(void *context, struct scsi_cmd *cmd, struct nand_stage *stage);

/*
 * Executes one command on tgtd's main thread, without waiting for anything. As io_execute, but
 * returns the status.
 */
typedef int io_perform(void *context, struct scsi_cmd *cmd);

/* A command that was asynchronous ends; its status is in its place. On tgtd's main thread. */
typedef void io_ended(void *context, struct scsi_cmd *cmd);

/* What is done with commands. */
struct io_work {
	io_execute *execute;
	io_attempt *attempt; /* NULL: none is tried */
	io_perform *perform; /* of those for the main thread */
	io_ended *ended;     /* NULL: nobody counts */
	void *context;       /* of all of them */
	/* ATTEMPTS_PARKED_MAX of them, and their event; NULL: none. */
	struct nand_stages *stages;
	int stages_fd;
};

/* Starts `count` threads (1..IO_THREADS_MAX). -ENOMEM, -EAGAIN, -EMFILE with a sentence. */
int io_threads_start(unsigned int count, const struct io_work *work, struct io_threads **threads,
		     struct error_text *error);

/*
 * Notes when a command arrived, before one of the next two; and how many microseconds ago that was,
 * up to an hour.
 */
void io_threads_arrives(struct scsi_cmd *cmd);
uint32_t io_threads_took_us(struct scsi_cmd *cmd);

/*
 * Takes a command that an I/O thread can execute. Main thread. If its turn has come and an attempt
 * succeeds, returns its status. Otherwise makes it asynchronous, and it completes later, also if
 * somebody aborts it meanwhile: if it has not begun, then soon, with TASK ABORTED, and without
 * waiting for others.
 */
int io_threads_submit(struct io_threads *threads, struct scsi_cmd *cmd,
		      enum order_attribute attribute);

/*
 * Takes a command for the main thread, where this is called. If its turn has come, performs it and
 * returns its status. Otherwise makes it asynchronous, and it completes later, as above.
 */
int io_threads_perform(struct io_threads *threads, struct scsi_cmd *cmd,
		       enum order_attribute attribute);

/* Which commands a task management function is about. */
struct task_choice {
	bool every_nexus; /* of all sessions, not of `nexus` alone */
	uint64_t nexus;   /* nexus.h */
	bool one;         /* of those the one with `tag` only */
	uint64_t tag;     /* iSCSI's Initiator Task Tag */
};

/* Has an initiator aborted a command that has begun? On the thread that executes it. */
bool io_threads_is_aborted(struct scsi_cmd *cmd);

/* Called with the session of each command that was found. */
typedef void task_found(void *context, uint64_t nexus);

/*
 * Chooses among the commands that have arrived and have not ended, except the one that calls: on an
 * I/O thread, from inside io_execute. Calls `found` (may be NULL) for each and returns their
 * number. With `abort`, those that have not begun end at once with TASK ABORTED. A command that
 * aborts others completes after those of them that had begun.
 */
uint32_t io_threads_choose(struct io_threads *threads, const struct task_choice *choice, bool abort,
			   task_found *found, void *found_context);

/* Whether no command is under way. */
bool io_threads_are_idle(struct io_threads *threads);

/*
 * Asks the next thread that is free to call `probe`, with the context of io_threads_start, as a
 * sign that it can execute commands. Whether the call that was asked for before has returned (true
 * the first time).
 */
bool io_threads_probe(struct io_threads *threads, void (*probe)(void *context));

/* Executes and completes everything that has arrived, then ends the threads. Main thread. */
void io_threads_stop(struct io_threads *threads);

#endif
