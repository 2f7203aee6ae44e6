/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "daemon/module/io_threads.h"

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

struct io_threads {
	io_execute *execute;
	void *context;
	int event_fd; /* readable: `done` is not empty */

	pthread_mutex_t lock;
	pthread_cond_t wanted;
	struct list_head pending; /* under lock */
	struct list_head done;    /* under lock */
	bool stopping;            /* under lock */

	unsigned int count; /* threads that run */
	pthread_t threads[];
};

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

static void *serve(void *argument)
{
	struct io_threads *io = argument;

	pthread_mutex_lock(&io->lock);
	while (true) {
		struct scsi_cmd *cmd;
		bool first;

		while (list_empty(&io->pending) && !io->stopping)
			pthread_cond_wait(&io->wanted, &io->lock);
		if (list_empty(&io->pending))
			break;
		cmd = list_first_entry(&io->pending, struct scsi_cmd, bs_list);
		list_del(&cmd->bs_list);
		pthread_mutex_unlock(&io->lock);

		if (is_aborted(cmd))
			scsi_set_result(cmd, SAM_STAT_TASK_ABORTED);
		else
			io->execute(io->context, cmd);

		pthread_mutex_lock(&io->lock);
		first = list_empty(&io->done);
		list_add_tail(&cmd->bs_list, &io->done);
		/* The main thread takes all of `done` at once: one announcement a batch. */
		if (first)
			announce(io);
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

static void on_event(int fd, int events, void *data)
{
	uint64_t announcements;

	(void)events;
	if (read(fd, &announcements, sizeof(announcements)) == sizeof(announcements))
		complete_done(data);
}

/* Lets the threads finish what is queued and ends them. */
static void end_threads(struct io_threads *io)
{
	pthread_mutex_lock(&io->lock);
	io->stopping = true;
	pthread_cond_broadcast(&io->wanted);
	pthread_mutex_unlock(&io->lock);
	for (unsigned int i = 0; i < io->count; i++)
		pthread_join(io->threads[i], NULL);
}

static void release(struct io_threads *io)
{
	pthread_cond_destroy(&io->wanted);
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
	while (io->count < count && !result) {
		result = pthread_create(&io->threads[io->count], NULL, serve, io);
		if (!result)
			io->count++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -result;
}

int io_threads_start(unsigned int count, io_execute *execute, void *context,
		     struct io_threads **threads, struct error_text *error)
{
	struct io_threads *io = calloc(1, sizeof(*io) + count * sizeof(io->threads[0]));
	int result;

	if (!io)
		return error_set(error, -ENOMEM, "out of memory");
	io->execute = execute;
	io->context = context;
	INIT_LIST_HEAD(&io->pending);
	INIT_LIST_HEAD(&io->done);
	pthread_mutex_init(&io->lock, NULL);
	pthread_cond_init(&io->wanted, NULL);
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

void io_threads_submit(struct io_threads *threads, struct scsi_cmd *cmd)
{
	set_cmd_async(cmd);
	pthread_mutex_lock(&threads->lock);
	/* tgtd sees to the order that ORDERED asks for; what HEAD OF QUEUE overtakes may be here. */
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
