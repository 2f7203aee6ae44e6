/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The I/O threads of one logical unit: commands go to them in order of arrival and come back to tgtd's main thread in
 * batches, announced over one eventfd.
 *
 * The queue holds commands that tgtd owns, linked through their own `bs_list`; tgtd's command window (128 a session)
 * bounds it and nothing is allocated on the way. Everything of tgtd's is called on its main thread.
 */
#ifndef MUNINN_DAEMON_MODULE_IO_THREADS_H
#define MUNINN_DAEMON_MODULE_IO_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "osd/osd.h"

struct scsi_cmd;
struct tgt_cmd_queue;
struct io_threads;

/* As many as one word has bits. */
#define IO_THREADS_MAX 64

/* Executes one command on an I/O thread and leaves the status in cmd->result, sense and residuals in their places. */
typedef void io_execute(void *context, struct scsi_cmd *cmd);

/*
 * Starts `count` threads (1..IO_THREADS_MAX). `held_back` is where tgtd keeps the logical unit's commands whose turn has not
 * come; NULL: nowhere. -ENOMEM, -EAGAIN, -EMFILE with a sentence.
 */
int io_threads_start(unsigned int count, io_execute *execute, void *context,
		     struct tgt_cmd_queue *held_back, struct io_threads **threads,
		     struct error_text *error);

/* Queues a command. Main thread; the command completes later, also when it is aborted meanwhile. */
void io_threads_submit(struct io_threads *threads, struct scsi_cmd *cmd);

/*
 * As osd_task_set's `choose`, with the io_threads as context, on the commands that have arrived and have not ended. On an
 * I/O thread, from inside io_execute. Commands that are aborted end with TASK ABORTED, those that tgtd holds back when their
 * turn comes. A command that aborts others completes behind those of them that had begun.
 */
uint32_t io_threads_choose(void *threads, const struct osd_task_choice *choice, bool abort,
			   osd_task_found *found, void *found_context);

/* Executes and completes everything that is queued, then ends the threads. Main thread. */
void io_threads_stop(struct io_threads *threads);

#endif
