/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "daemon/module/io_threads.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "list.h"
#include "scsi.h"
#include "tgtd.h"

/* One thread, and what it does. */
struct io_thread {
	struct io_threads *io;
	pthread_t thread;
	struct scsi_cmd *running; /* under lock; NULL: waits for one */
	bool aborts;              /* under lock: `running` has aborted others */
	uint64_t awaited;         /* under lock: threads (bits) that it waits for, then */
};

/* What an I/O thread asks tgtd's main thread to find among the commands that tgtd holds back. */
struct held_back_search {
	const struct osd_task_choice *choice;
	bool abort;
	osd_task_found *found;
	void *found_context;
	uint32_t count;
	bool done;
};

struct io_threads {
	io_execute *execute;
	void *context;
	struct tgt_cmd_queue *held_back; /* main thread only */
	int event_fd;                    /* readable: `done` is not empty, or there is a search */

	pthread_mutex_t lock;
	pthread_cond_t wanted;           /* of threads without work */
	pthread_cond_t changed;          /* a command has ended, or a search has */
	struct list_head pending;        /* under lock */
	struct list_head done;           /* under lock */
	struct held_back_search *search; /* under lock; one at a time */
	bool stopping;                   /* under lock */

	unsigned int count; /* threads that run */
	struct io_thread threads[];
};

/* In the link of a command that tgtd still holds back: it has been aborted. Nobody else uses the link until then. */
static struct list_head aborted_mark;

static void announce(struct io_threads *io)
{
	const uint64_t one = 1;

	/* Can fail only when the counter overflows, and then the event is pending anyway. */
	if (write(io->event_fd, &one, sizeof(one)) != sizeof(one))
		return;
}

/*
 * An initiator aborted a command that tgtd has handed over already: one that has not begun is not begun. tgtd sets the mark
 * on its main thread; it answers the task management function when the command comes back, whatever its status.
 */
static bool is_aborted(struct scsi_cmd *cmd)
{
	return __atomic_load_n(&cmd->mreq, __ATOMIC_ACQUIRE) != NULL;
}

static void end_aborted(struct scsi_cmd *cmd)
{
	scsi_set_in_resid_by_actual(cmd, 0);
	scsi_set_out_resid_by_actual(cmd, 0);
	cmd->sense_len = 0;
	scsi_set_result(cmd, SAM_STAT_TASK_ABORTED);
}

/* Under lock. The main thread takes all of `done` at once: one announcement a batch. */
static void add_done(struct io_threads *io, struct scsi_cmd *cmd)
{
	bool first = list_empty(&io->done);

	list_add_tail(&cmd->bs_list, &io->done);
	if (first)
		announce(io);
}

static uint64_t bit_of(const struct io_thread *thread)
{
	return UINT64_C(1) << (thread - thread->io->threads);
}

/* Under lock: nobody is to wait for this thread any longer. */
static void release_waiting(struct io_thread *thread)
{
	struct io_threads *io = thread->io;

	for (unsigned int i = 0; i < io->count; i++)
		io->threads[i].awaited &= ~bit_of(thread);
	pthread_cond_broadcast(&io->changed);
}

static void run(struct io_thread *thread, struct scsi_cmd *cmd)
{
	struct io_threads *io = thread->io;

	thread->running = cmd;
	pthread_mutex_unlock(&io->lock);
	if (is_aborted(cmd))
		end_aborted(cmd);
	else
		io->execute(io->context, cmd);
	pthread_mutex_lock(&io->lock);
	/* What it waits for is at work on other threads and waits for nobody: see io_threads_choose. */
	while (thread->awaited != 0)
		pthread_cond_wait(&io->changed, &io->lock);
	thread->running = NULL;
	thread->aborts = false;
	release_waiting(thread);
	add_done(io, cmd);
}

static void *serve(void *argument)
{
	struct io_thread *thread = argument;
	struct io_threads *io = thread->io;

	pthread_mutex_lock(&io->lock);
	while (true) {
		struct scsi_cmd *cmd;

		while (list_empty(&io->pending) && !io->stopping)
			pthread_cond_wait(&io->wanted, &io->lock);
		if (list_empty(&io->pending))
			break;
		cmd = list_first_entry(&io->pending, struct scsi_cmd, bs_list);
		list_del(&cmd->bs_list);
		run(thread, cmd);
	}
	pthread_mutex_unlock(&io->lock);
	return NULL;
}

static void complete_done(struct io_threads *io)
{
	struct list_head batch;

	INIT_LIST_HEAD(&batch);
	pthread_mutex_lock(&io->lock);
	list_splice_init(&io->done, &batch);
	pthread_mutex_unlock(&io->lock);
	while (!list_empty(&batch)) {
		struct scsi_cmd *cmd = list_first_entry(&batch, struct scsi_cmd, bs_list);

		list_del(&cmd->bs_list);
		target_cmd_io_done(cmd, scsi_get_result(cmd));
	}
}

/* ---- choosing tasks ---- */

static bool is_chosen(const struct osd_task_choice *choice, const struct scsi_cmd *cmd)
{
	if (!choice->every_nexus && cmd->cmd_itn_id != choice->nexus)
		return false;
	/* tgtd keeps iSCSI's tag of 32 bits as it is on the wire. */
	return !choice->one || be32toh((uint32_t)cmd->tag) == choice->tag;
}

/* Main thread. tgtd hands marked commands over in their turn, and they end then. */
static void search_held_back(struct io_threads *io)
{
	struct held_back_search *search;
	struct scsi_cmd *cmd;

	pthread_mutex_lock(&io->lock);
	search = io->search;
	if (search && !search->done) {
		list_for_each_entry(cmd, &io->held_back->queue, qlist)
		{
			if (cmd->bs_list.next == &aborted_mark || !is_chosen(search->choice, cmd))
				continue;
			search->count++;
			if (search->found)
				search->found(search->found_context, cmd->cmd_itn_id);
			if (search->abort)
				cmd->bs_list.next = &aborted_mark;
		}
		search->done = true;
		pthread_cond_broadcast(&io->changed);
	}
	pthread_mutex_unlock(&io->lock);
}

/* Under lock, on an I/O thread. A unit that closes holds nothing back. */
static uint32_t choose_held_back(struct io_threads *io, struct held_back_search *search)
{
	if (!io->held_back)
		return 0;
	while (io->search && !io->stopping)
		pthread_cond_wait(&io->changed, &io->lock);
	if (io->stopping)
		return 0;
	io->search = search;
	announce(io);
	while (!search->done && !io->stopping)
		pthread_cond_wait(&io->changed, &io->lock);
	io->search = NULL;
	pthread_cond_broadcast(&io->changed);
	return search->count;
}

/* Under lock: those that have not begun. */
static uint32_t choose_pending(struct io_threads *io, const struct held_back_search *search)
{
	struct scsi_cmd *cmd, *next;
	uint32_t count = 0;

	list_for_each_entry_safe(cmd, next, &io->pending, bs_list)
	{
		if (!is_chosen(search->choice, cmd))
			continue;
		count++;
		if (search->found)
			search->found(search->found_context, cmd->cmd_itn_id);
		if (search->abort) {
			list_del(&cmd->bs_list);
			end_aborted(cmd);
			add_done(io, cmd);
		}
	}
	return count;
}

/*
 * Under lock: those at work on other threads. What aborts others itself is not waited for, so that two that abort each
 * other both end.
 */
static uint32_t choose_running(struct io_thread *self, const struct held_back_search *search)
{
	struct io_threads *io = self->io;
	uint32_t count = 0;

	for (unsigned int i = 0; i < io->count; i++) {
		struct io_thread *thread = &io->threads[i];

		if (thread == self || !thread->running ||
		    !is_chosen(search->choice, thread->running))
			continue;
		count++;
		if (search->found)
			search->found(search->found_context, thread->running->cmd_itn_id);
		if (search->abort && !thread->aborts)
			self->awaited |= bit_of(thread);
	}
	return count;
}

uint32_t io_threads_choose(void *threads, const struct osd_task_choice *choice, bool abort,
			   osd_task_found *found, void *found_context)
{
	struct io_threads *io = threads;
	struct held_back_search search = { choice, abort, found, found_context, 0, false };
	struct io_thread *self = NULL;
	uint32_t count;

	pthread_mutex_lock(&io->lock);
	for (unsigned int i = 0; i < io->count; i++)
		if (pthread_equal(io->threads[i].thread, pthread_self()))
			self = &io->threads[i];
	assert(self && self->running);
	if (abort) {
		self->aborts = true;
		release_waiting(self);
	}
	/* From where commands come to where they go, so that none is missed on its way. */
	count = choose_held_back(io, &search);
	count += choose_pending(io, &search);
	count += choose_running(self, &search);
	pthread_mutex_unlock(&io->lock);
	return count;
}

/* ---- tgtd's main thread ---- */

static void on_event(int fd, int events, void *data)
{
	uint64_t announcements;

	(void)events;
	if (read(fd, &announcements, sizeof(announcements)) != sizeof(announcements))
		return;
	search_held_back(data);
	complete_done(data);
}

/* Lets the threads finish what is queued and ends them. */
static void end_threads(struct io_threads *io)
{
	pthread_mutex_lock(&io->lock);
	io->stopping = true;
	pthread_cond_broadcast(&io->wanted);
	pthread_cond_broadcast(&io->changed);
	pthread_mutex_unlock(&io->lock);
	for (unsigned int i = 0; i < io->count; i++)
		pthread_join(io->threads[i].thread, NULL);
}

static void release(struct io_threads *io)
{
	pthread_cond_destroy(&io->wanted);
	pthread_cond_destroy(&io->changed);
	pthread_mutex_destroy(&io->lock);
	if (io->event_fd >= 0)
		close(io->event_fd);
	free(io);
}

/* The threads take no signals: tgtd's main thread reads its own through a signalfd. */
static int create_threads(struct io_threads *io, unsigned int count)
{
	sigset_t all, before;
	int result = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&io->lock);
	while (io->count < count && !result) {
		struct io_thread *thread = &io->threads[io->count];

		thread->io = io;
		result = pthread_create(&thread->thread, NULL, serve, thread);
		if (!result)
			io->count++;
	}
	pthread_mutex_unlock(&io->lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -result;
}

int io_threads_start(unsigned int count, io_execute *execute, void *context,
		     struct tgt_cmd_queue *held_back, struct io_threads **threads,
		     struct error_text *error)
{
	struct io_threads *io = calloc(1, sizeof(*io) + count * sizeof(io->threads[0]));
	int result;

	assert(count >= 1 && count <= IO_THREADS_MAX);
	if (!io)
		return error_set(error, -ENOMEM, "out of memory");
	io->execute = execute;
	io->context = context;
	io->held_back = held_back;
	INIT_LIST_HEAD(&io->pending);
	INIT_LIST_HEAD(&io->done);
	pthread_mutex_init(&io->lock, NULL);
	pthread_cond_init(&io->wanted, NULL);
	pthread_cond_init(&io->changed, NULL);
	io->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (io->event_fd < 0) {
		result = error_set(error, -errno, "no event descriptor: %s", strerror(errno));
		release(io);
		return result;
	}
	result = create_threads(io, count);
	if (result) {
		error_set(error, result, "could start only %u of %u I/O threads: %s", io->count,
			  count, strerror(-result));
	} else if (tgt_event_add(io->event_fd, EPOLLIN, on_event, io)) {
		result = error_set(error, -ENOMEM, "tgtd could not watch one more descriptor");
	}
	if (result) {
		end_threads(io);
		release(io);
		return result;
	}
	*threads = io;
	return 0;
}

/*
 * tgtd keeps back an ORDERED command until all others have ended, but hands over SIMPLE ones that came behind it: then there
 * may never be a moment without others. Such a command joins what is kept back, in its place; tgtd, which counts it as active
 * when we return, gives it to us again in its turn.
 */
static bool hand_back(struct io_threads *io, struct scsi_cmd *cmd)
{
	struct tgt_cmd_queue *held_back = io->held_back;

	if (!held_back || cmd->attribute != MSG_SIMPLE_TAG || cmd_queued(cmd) ||
	    list_empty(&held_back->queue))
		return false;
	set_cmd_queued(cmd);
	list_add_tail(&cmd->qlist, &held_back->queue);
	held_back->active_cmd--;
	return true;
}

void io_threads_submit(struct io_threads *threads, struct scsi_cmd *cmd)
{
	set_cmd_async(cmd);
	if (hand_back(threads, cmd))
		return;
	pthread_mutex_lock(&threads->lock);
	if (cmd->bs_list.next == &aborted_mark) {
		end_aborted(cmd);
		add_done(threads, cmd);
		pthread_mutex_unlock(&threads->lock);
		return;
	}
	/* tgtd sees to when an ORDERED command's turn comes; what HEAD OF QUEUE overtakes may be here. */
	if (cmd->attribute == MSG_HEAD_TAG)
		list_add(&cmd->bs_list, &threads->pending);
	else
		list_add_tail(&cmd->bs_list, &threads->pending);
	pthread_mutex_unlock(&threads->lock);
	pthread_cond_signal(&threads->wanted);
}

void io_threads_stop(struct io_threads *threads)
{
	end_threads(threads);
	complete_done(threads);
	tgt_event_del(threads->event_fd);
	release(threads);
}
