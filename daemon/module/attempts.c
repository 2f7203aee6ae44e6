/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Attempts to execute commands on tgtd's main thread. A command that needs pages of flash which are
 * not at hand is parked, with a stage that brings them (nand.h), and tried again when they have
 * come; so one thread has many reads under way. What has to wait for anything else, or for pages
 * again and again, goes to the I/O threads, as if it had just arrived.
 *
 * A parked command has begun, but nothing has happened: it ends at once when somebody aborts it.
 * Its stage is given back when its pages have come.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "daemon/module/io_private.h"
#include "daemon/module/later.h"
#include "nand/nand.h"

/* A key is mostly where its filters say first: object, data, and seldom one more of each. */
#define ATTEMPTS_MAX 5

/* Commands whose reads set out together at most, while tgtd has more to do. */
#define SENT_TOGETHER_MAX 8

enum outcome {
	ENDED,
	PARKED,
	FAILED, /* for a thread */
};

static void flush(void *context)
{
	struct io_threads *io = context;

	io->unsent = 0;
	nand_stages_flush(io->work.stages);
}

/* Has the pages read that the attempt lacked. False: there are none, or it is of no use. */
static bool send(struct io_threads *io, struct nand_stage *stage)
{
	if (!nand_stage_send(stage))
		return false;
	if (++io->unsent >= SENT_TOGETHER_MAX || !later_put_off(flush, io))
		flush(io);
	return true;
}

/*
 * Under lock, which it gives away meanwhile: the command has begun, and is tried. `attempts`: that
 * were made before.
 */
static enum outcome try(struct io_threads *io, struct scsi_cmd *cmd, struct nand_stage *stage,
			unsigned int attempts)
{
	enum outcome outcome = FAILED;

	io->attempted = cmd;
	io->attempt_aborted = false;
	io_leave(io);
	if (io->work.attempt(io->work.context, cmd, stage))
		outcome = ENDED;
	else if (stage && attempts + 1 < ATTEMPTS_MAX && send(io, stage))
		outcome = PARKED;
	pthread_mutex_lock(&io->lock);
	io->attempted = NULL;
	if (outcome == PARKED) {
		io->parked[stage->number] = (struct parked){ cmd, attempts + 1 };
		io->parked_count++;
	}
	if (outcome != ENDED && io->attempt_aborted) {
		io_end_aborted(cmd);
		if (outcome == PARKED) {
			io->parked[stage->number].cmd = NULL;
			io->parked_count--;
		}
		outcome = ENDED;
	}
	return outcome;
}

/* Is something under way for the stage? */
static bool is_under_way(const struct io_threads *io, const struct nand_stage *stage)
{
	return io->parked[stage->number].attempts != 0;
}

static void give_stage(struct io_threads *io, struct nand_stage *stage)
{
	if (stage && !is_under_way(io, stage))
		nand_stage_give(stage);
}

/* Under lock: a command arrives. */
static enum outcome arrive(struct io_threads *io, struct scsi_cmd *cmd,
			   enum order_attribute attribute)
{
	struct order_task *task = io_task_of(cmd);
	struct nand_stage *stage = NULL;
	enum outcome outcome;

	if (!io->work.attempt || !order_begin_at_once(&io->order, task, attribute, ON_IO_THREAD)) {
		set_cmd_async(cmd);
		order_arrive(&io->order, task, attribute, ON_IO_THREAD);
		return FAILED;
	}
	if (io->work.stages)
		stage = nand_stage_take(io->work.stages);
	outcome = try(io, cmd, stage, 0);
	give_stage(io, stage);
	if (outcome == ENDED)
		order_end(&io->order, task);
	else
		set_cmd_async(cmd);
	if (outcome == FAILED)
		order_put_back(&io->order, task);
	return outcome;
}

int io_threads_submit(struct io_threads *io, struct scsi_cmd *cmd, enum order_attribute attribute)
{
	enum outcome outcome;

	pthread_mutex_lock(&io->lock);
	outcome = arrive(io, cmd, attribute);
	io_wake_one(io);
	io_leave(io);
	if (outcome == ENDED)
		return scsi_get_result(cmd);
	if (!io->timer_runs)
		io_set_timer(io);
	return SAM_STAT_GOOD;
}

/* ---- when pages have come ---- */

/* Under lock, which it gives away meanwhile: the pages of the stage have come. */
static enum outcome try_again(struct io_threads *io, struct nand_stage *stage, struct scsi_cmd *cmd)
{
	unsigned int attempts = io->parked[stage->number].attempts;

	io->parked[stage->number] = (struct parked){ 0 };
	/* Somebody has aborted it, and it has ended. */
	if (!cmd)
		return PARKED;
	io->parked_count--;
	if (!io_is_aborted(cmd))
		return try(io, cmd, stage, attempts);
	io_end_aborted(cmd);
	return ENDED;
}

static void go_on(struct io_threads *io, struct nand_stage *stage)
{
	struct scsi_cmd *cmd;
	enum outcome outcome;

	pthread_mutex_lock(&io->lock);
	cmd = io->parked[stage->number].cmd;
	outcome = try_again(io, stage, cmd);
	give_stage(io, stage);
	if (outcome == ENDED)
		order_end(&io->order, io_task_of(cmd));
	if (outcome == FAILED)
		order_put_back(&io->order, io_task_of(cmd));
	io_wake_one(io);
	io_leave(io);
	if (outcome == ENDED)
		io_completed(io, cmd);
}

void attempts_go_on(struct io_threads *io, bool wait)
{
	struct nand_stage *stage = nand_stages_next(io->work.stages, wait);

	for (; stage; stage = nand_stages_next(io->work.stages, false))
		go_on(io, stage);
}

static void on_pages(int fd, int events, void *data)
{
	uint64_t count;

	(void)events;
	if (read(fd, &count, sizeof(count)) != sizeof(count))
		return;
	attempts_go_on(data, false);
}

int attempts_watch(struct io_threads *io)
{
	if (!io->work.stages)
		return 0;
	return tgt_event_add(io->work.stages_fd, EPOLLIN, on_pages, io) ? -ENOMEM : 0;
}

/* ---- for those who choose tasks ---- */

/*
 * The answer of what is being tried comes before that of whoever aborts it, because the main thread
 * gives both. If the attempt fails, it does not begin again.
 */
static void choose_attempted(struct search *search)
{
	struct io_threads *io = search->io;

	if (io->attempted && io_search_finds(search, io->attempted))
		io->attempt_aborted |= search->abort;
}

void attempts_choose(struct search *search)
{
	struct io_threads *io = search->io;

	choose_attempted(search);
	for (unsigned int n = 0; n < ATTEMPTS_PARKED_MAX && io->parked_count; n++) {
		struct scsi_cmd *cmd = io->parked[n].cmd;

		if (!cmd || !io_search_finds(search, cmd) || !search->abort)
			continue;
		io->parked[n].cmd = NULL;
		io->parked_count--;
		io_end_aborted(cmd);
		order_end(&io->order, io_task_of(cmd));
		io_give_to_main(io, cmd, &io->done);
	}
	io_wake_one(io);
}
