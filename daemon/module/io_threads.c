/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Runs the commands of one logical unit on its threads and gives them back to tgtd. */
#include "daemon/module/io_threads.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/thread.h"
#include "daemon/module/io_private.h"
#include "daemon/module/later.h"
#include "daemon/module/nexus.h"
#include "daemon/module/requests.h"

/*
 * How long an aborted command that has not begun may stay. tgtd only notes the request in the
 * command.
 */
#define ABORT_LOOK_MS 100

static void announce(struct io_threads *io)
{
	const uint64_t one = 1;

	/* Fails only when the counter overflows, and then the event is pending anyway. */
	if (write(io->event_fd, &one, sizeof(one)) != sizeof(one))
		return;
}

bool io_threads_is_aborted(struct scsi_cmd *cmd)
{
	return io_is_aborted(cmd);
}

/*
 * Under lock: to `due` or `done`. The main thread takes everything in both at once, so one event
 * announces a batch.
 */
void io_give_to_main(struct io_threads *io, struct scsi_cmd *cmd, struct list_head *list)
{
	bool first = list_empty(&io->due) && list_empty(&io->done);

	list_add_tail(&cmd->bs_list, list);
	pthread_cond_broadcast(&io->changed);
	io->tells |= first;
}

/*
 * Under lock: there may be work for one more thread. It wakes the next one if there is work for
 * that, too; so whoever has much work for them wakes one.
 */
void io_wake_one(struct io_threads *io)
{
	if (!order_has_next(&io->order) || !io->unoccupied || io->waking)
		return;
	io->waking = io->wakes = true;
}

void io_leave(struct io_threads *io)
{
	bool tells = io->tells, wakes = io->wakes;

	io->tells = io->wakes = false;
	pthread_mutex_unlock(&io->lock);
	if (tells)
		announce(io);
	if (wakes)
		pthread_cond_signal(&io->wanted);
}

static uint64_t bit_of(const struct io_thread *thread)
{
	return UINT64_C(1) << (thread - thread->io->threads);
}

/* Under lock: nobody has to wait for this thread any longer. */
static void release_waiting(struct io_thread *thread)
{
	struct io_threads *io = thread->io;

	for (unsigned int i = 0; i < io->count; i++)
		io->threads[i].awaited &= ~bit_of(thread);
	pthread_cond_broadcast(&io->changed);
}

static void run(struct io_thread *thread, struct order_task *task)
{
	struct io_threads *io = thread->io;
	struct scsi_cmd *cmd = io_command_of(task);

	thread->running = cmd;
	io_leave(io);
	if (io_is_aborted(cmd))
		io_end_aborted(cmd);
	else
		io->work.execute(io->work.context, cmd);
	pthread_mutex_lock(&io->lock);
	/*
	 * The commands that it waits for are at work on other threads and wait for nobody: see
	 * io_threads_choose.
	 */
	while (thread->awaited != 0)
		pthread_cond_wait(&io->changed, &io->lock);
	thread->running = NULL;
	thread->aborts = false;
	release_waiting(thread);
	order_end(&io->order, task);
	io_wake_one(io);
	io_give_to_main(io, cmd, &io->done);
}

/* Under lock, which it gives away meanwhile. */
static void answer_probe(struct io_threads *io)
{
	if (!io->probe || io->probing)
		return;
	io->probing = true;
	io_leave(io);
	io->probe(io->work.context);
	pthread_mutex_lock(&io->lock);
	io->probing = false;
	io->probe = NULL;
}

/* Under lock, which it gives away while there is none. NULL: the end. */
static struct order_task *next_task(struct io_threads *io)
{
	struct order_task *task;

	answer_probe(io);
	while (!(task = order_take(&io->order)) && !io->stopping) {
		if (io->tells || io->wakes) {
			io_leave(io);
			pthread_mutex_lock(&io->lock);
			continue;
		}
		io->unoccupied++;
		pthread_cond_wait(&io->wanted, &io->lock);
		io->unoccupied--;
		io->waking = false;
		answer_probe(io);
	}
	return task;
}

static void *serve(void *argument)
{
	struct io_thread *thread = argument;
	struct io_threads *io = thread->io;
	struct order_task *task;

	pthread_mutex_lock(&io->lock);
	while ((task = next_task(io)) != NULL) {
		io_wake_one(io);
		if (task->kind == ON_MAIN_THREAD)
			io_give_to_main(io, io_command_of(task), &io->due);
		else
			run(thread, task);
	}
	io_leave(io);
	return NULL;
}

/* ---- choosing tasks ---- */

bool io_search_finds(struct search *search, const struct scsi_cmd *cmd)
{
	const struct task_choice *choice = search->choice;

	if (!choice->every_nexus && nexus_of(cmd) != choice->nexus)
		return false;
	/* tgtd keeps iSCSI's tag of 32 bits as on the wire. */
	if (choice->one && be32toh((uint32_t)cmd->tag) != choice->tag)
		return false;
	search->count++;
	if (search->found)
		search->found(search->found_context, nexus_of(cmd));
	return true;
}

/* Under lock, an order_visitor: chooses among those that have not begun. */
static bool choose_waiting(void *context, struct order_task *task)
{
	struct search *search = context;
	struct scsi_cmd *cmd = io_command_of(task);

	if (!io_search_finds(search, cmd) || !search->abort)
		return false;
	io_end_aborted(cmd);
	io_give_to_main(search->io, cmd, &search->io->done);
	return true;
}

/*
 * Under lock: chooses among those at work on other threads. Nobody waits for a command that aborts
 * others itself, so two that abort each other both end.
 */
static void choose_running(struct io_thread *self, struct search *search)
{
	struct io_threads *io = self->io;

	for (unsigned int i = 0; i < io->count; i++) {
		struct io_thread *thread = &io->threads[i];

		if (thread == self || !thread->running || !io_search_finds(search, thread->running))
			continue;
		if (search->abort && !thread->aborts)
			self->awaited |= bit_of(thread);
	}
}

uint32_t io_threads_choose(struct io_threads *io, const struct task_choice *choice, bool abort,
			   task_found *found, void *found_context)
{
	struct search search = { io, choice, abort, found, found_context, 0 };
	struct io_thread *self = NULL;

	pthread_mutex_lock(&io->lock);
	for (unsigned int i = 0; i < io->count; i++)
		if (pthread_equal(io->threads[i].thread, pthread_self()))
			self = &io->threads[i];
	assert(self && self->running);
	if (abort) {
		self->aborts = true;
		release_waiting(self);
	}
	order_visit(&io->order, choose_waiting, &search);
	io_wake_one(io);
	choose_running(self, &search);
	attempts_choose(&search);
	io_leave(io);
	return search.count;
}

/* ---- tgtd's main thread ---- */

/* Performs a command that tgtd answers itself, and whose turn has come. */
static void perform(struct io_threads *io, struct scsi_cmd *cmd)
{
	if (io_is_aborted(cmd))
		io_end_aborted(cmd);
	else
		scsi_set_result(cmd, io->work.perform(io->work.context, cmd));
	pthread_mutex_lock(&io->lock);
	order_end(&io->order, io_task_of(cmd));
	io_wake_one(io);
	io_leave(io);
}

/*
 * When a command that tgtd has handed over ends, tgtd answers ABORT TASK by "task does not exist".
 * But a command that was kept from beginning did exist, and has been aborted.
 */
static void say_that_it_was_aborted(struct scsi_cmd *cmd)
{
	if (cmd->mreq && cmd->mreq->function == ABORT_TASK &&
	    scsi_get_result(cmd) == SAM_STAT_TASK_ABORTED)
		cmd->mreq->function = ABORT_TASK_SET;
}

void io_completed(struct io_threads *io, struct scsi_cmd *cmd)
{
	say_that_it_was_aborted(cmd);
	if (io->work.ended)
		io->work.ended(io->work.context, cmd);
	target_cmd_io_done(cmd, scsi_get_result(cmd));
}

void io_threads_arrives(struct scsi_cmd *cmd)
{
	io_task_of(cmd)->arrived_us = (uint32_t)clock_microseconds();
}

uint32_t io_threads_took_us(struct scsi_cmd *cmd)
{
	return (uint32_t)clock_microseconds() - io_task_of(cmd)->arrived_us;
}

static void complete(struct io_threads *io)
{
	struct list_head due, done;

	INIT_LIST_HEAD(&due);
	INIT_LIST_HEAD(&done);
	pthread_mutex_lock(&io->lock);
	list_splice_init(&io->due, &due);
	list_splice_init(&io->done, &done);
	io_leave(io);
	while (!list_empty(&due)) {
		struct scsi_cmd *cmd = list_first_entry(&due, struct scsi_cmd, bs_list);

		list_del(&cmd->bs_list);
		perform(io, cmd);
		list_add_tail(&cmd->bs_list, &done);
	}
	while (!list_empty(&done)) {
		struct scsi_cmd *cmd = list_first_entry(&done, struct scsi_cmd, bs_list);

		list_del(&cmd->bs_list);
		io_completed(io, cmd);
	}
}

static void on_event(int fd, int events, void *data)
{
	uint64_t announcements;

	(void)events;
	if (read(fd, &announcements, sizeof(announcements)) != sizeof(announcements))
		return;
	complete(data);
}

void io_set_timer(struct io_threads *io)
{

	const struct itimerspec once = { .it_value.tv_nsec = ABORT_LOOK_MS * 1000000L };

	/* If this failed, aborted commands would end in their turn. */
	io->timer_runs = timerfd_settime(io->timer_fd, 0, &once, NULL) == 0;
}

/* Under lock, an order_visitor. */
static bool take_out_aborted(void *context, struct order_task *task)
{
	struct io_threads *io = context;
	struct scsi_cmd *cmd = io_command_of(task);

	if (!io_is_aborted(cmd))
		return false;
	io_end_aborted(cmd);
	io_give_to_main(io, cmd, &io->done);
	return true;
}

/*
 * Ends commands that were aborted before they began. The timer runs as long as there are commands.
 */
static void on_timer(int fd, int events, void *data)
{
	struct io_threads *io = data;
	uint64_t expirations;
	bool idle;

	(void)events;
	/* Nothing to read: the timer was set again meanwhile. Looking once more does no harm. */
	if (read(fd, &expirations, sizeof(expirations)) != sizeof(expirations))
		expirations = 0;
	pthread_mutex_lock(&io->lock);
	order_visit(&io->order, take_out_aborted, io);
	io_wake_one(io);
	idle = order_is_empty(&io->order);
	io_leave(io);
	io->timer_runs = false;
	if (!idle)
		io_set_timer(io);
	requests_look();
	complete(io);
}

/* Until every command has ended. */
static void drain(struct io_threads *io)
{
	pthread_mutex_lock(&io->lock);
	while (!order_is_empty(&io->order)) {
		if (io->parked_count) {
			io_leave(io);
			attempts_go_on(io, true);
			pthread_mutex_lock(&io->lock);
			continue;
		}
		if (list_empty(&io->due)) {
			pthread_cond_wait(&io->changed, &io->lock);
			continue;
		}
		io_leave(io);
		complete(io);
		pthread_mutex_lock(&io->lock);
	}
	io_leave(io);
}

/* There are no commands any more. */
static void end_threads(struct io_threads *io)
{
	pthread_mutex_lock(&io->lock);
	io->stopping = true;
	pthread_cond_broadcast(&io->wanted);
	io_leave(io);
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
	if (io->timer_fd >= 0)
		close(io->timer_fd);
	free(io);
}

static int create_threads(struct io_threads *io, unsigned int count)
{
	int result = 0;

	pthread_mutex_lock(&io->lock);
	while (io->count < count && !result) {
		struct io_thread *thread = &io->threads[io->count];

		thread->io = io;
		result = thread_start(&thread->thread, "muninn-io", serve, thread);
		if (!result)
			io->count++;
	}
	io_leave(io);
	return result;
}

/* Watches all descriptors or none. */
static int watch(struct io_threads *io)
{
	if (tgt_event_add(io->event_fd, EPOLLIN, on_event, io))
		return -ENOMEM;
	if (tgt_event_add(io->timer_fd, EPOLLIN, on_timer, io)) {
		tgt_event_del(io->event_fd);
		return -ENOMEM;
	}
	if (attempts_watch(io)) {
		tgt_event_del(io->event_fd);
		tgt_event_del(io->timer_fd);
		return -ENOMEM;
	}
	return 0;
}

int io_threads_start(unsigned int count, const struct io_work *work, struct io_threads **threads,
		     struct error_text *error)
{
	struct io_threads *io = calloc(1, sizeof(*io) + count * sizeof(io->threads[0]));
	int result;

	assert(count >= 1 && count <= IO_THREADS_MAX);
	if (!io)
		return error_set(error, -ENOMEM, "out of memory");
	io->work = *work;
	order_init(&io->order);
	INIT_LIST_HEAD(&io->due);
	INIT_LIST_HEAD(&io->done);
	pthread_mutex_init(&io->lock, NULL);
	pthread_cond_init(&io->wanted, NULL);
	pthread_cond_init(&io->changed, NULL);
	io->timer_fd = -1;
	io->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (io->event_fd >= 0)
		io->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (io->timer_fd < 0) {
		result = error_set(error, -errno, "no event descriptor: %s", strerror(errno));
		release(io);
		return result;
	}
	result = create_threads(io, count);
	if (result)
		error_set(error, result, "could start only %u of %u I/O threads: %s", io->count,
			  count, strerror(-result));
	else if (watch(io))
		result = error_set(error, -ENOMEM, "tgtd could not watch one more descriptor");
	if (result) {
		end_threads(io);
		release(io);
		return result;
	}
	*threads = io;
	return 0;
}

int io_threads_perform(struct io_threads *threads, struct scsi_cmd *cmd,
		       enum order_attribute attribute)
{
	struct order_task *task = io_task_of(cmd);
	bool begun;
	int status;

	pthread_mutex_lock(&threads->lock);
	begun = order_begin_at_once(&threads->order, task, attribute, ON_MAIN_THREAD);
	if (!begun) {
		set_cmd_async(cmd);
		order_arrive(&threads->order, task, attribute, ON_MAIN_THREAD);
	}
	io_leave(threads);
	if (!begun) {
		if (!threads->timer_runs)
			io_set_timer(threads);
		return SAM_STAT_GOOD;
	}
	status = threads->work.perform(threads->work.context, cmd);
	pthread_mutex_lock(&threads->lock);
	order_end(&threads->order, task);
	io_wake_one(threads);
	io_leave(threads);
	return status;
}

bool io_threads_are_idle(struct io_threads *threads)
{
	bool idle;

	pthread_mutex_lock(&threads->lock);
	idle = order_is_empty(&threads->order);
	io_leave(threads);
	return idle;
}

bool io_threads_probe(struct io_threads *threads, void (*probe)(void *context))
{
	bool answered;

	pthread_mutex_lock(&threads->lock);
	answered = !threads->probe;
	threads->probe = probe;
	pthread_cond_broadcast(&threads->wanted);
	io_leave(threads);
	return answered;
}

void io_threads_stop(struct io_threads *threads)
{
	drain(threads);
	end_threads(threads);
	complete(threads);
	tgt_event_del(threads->event_fd);
	tgt_event_del(threads->timer_fd);
	later_forget(threads);
	if (threads->work.stages)
		tgt_event_del(threads->work.stages_fd);
	release(threads);
}
