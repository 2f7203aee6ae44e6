/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Runs the commands of one logical unit on its threads and gives them back to tgtd. */
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
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/module/nexus.h"
#include "daemon/module/requests.h"

#include "list.h"
#include "scsi.h"
#include "tgtd.h"

/* Need the others before them. */
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

/* Where a command is executed: `kind` of its task. */
enum { ON_IO_THREAD, ON_MAIN_THREAD };

struct io_threads {
	struct io_work work;
	int event_fd;    /* readable: `done` or `due` is not empty */
	int timer_fd;    /* readable: it is time to look for aborted commands */
	bool timer_runs; /* main thread only */

	pthread_mutex_t lock;
	pthread_cond_t wanted;  /* of threads without work */
	unsigned int unoccupied; /* under lock: threads that wait for `wanted` */
	bool waking;            /* under lock: one of them has been woken, and has not looked yet */
	pthread_cond_t changed; /* a command has ended, or is due */
	struct order order;     /* under lock: of all commands that have not ended */
	struct list_head due;   /* under lock: commands of the main thread whose turn has come */
	struct list_head done;  /* under lock: ended commands, of which tgtd is to be told */
	void (*probe)(void *context); /* under lock: to be called; NULL: nothing */
	struct scsi_cmd *attempted; /* under lock: by the main thread; NULL: none */
	bool attempt_aborted;       /* under lock: somebody has aborted that */
	bool probing;                 /* under lock: a thread is calling it */
	bool stopping;                /* under lock */

	unsigned int count; /* threads that run */
	struct io_thread threads[];
};

/*
 * How long an aborted command that has not begun may stay. tgtd only notes the request in the
 * command.
 */
#define ABORT_LOOK_MS 100

/*
 * A command's place in the order lies in the link of tgtd's own queue of held back commands. tgtd
 * never holds back a command of ours, because all of them are SIMPLE to it.
 */
static_assert(sizeof(struct order_task) <= sizeof(struct list_head), "they fit there");
static_assert(_Alignof(struct order_task) <= _Alignof(struct list_head), "they fit there");

static struct order_task *task_of(struct scsi_cmd *cmd)
{
	return (struct order_task *)(void *)&cmd->qlist;
}

static struct scsi_cmd *command_of(struct order_task *task)
{
	return list_entry((struct list_head *)(void *)task, struct scsi_cmd, qlist);
}

static void announce(struct io_threads *io)
{
	const uint64_t one = 1;

	/* Fails only when the counter overflows, and then the event is pending anyway. */
	if (write(io->event_fd, &one, sizeof(one)) != sizeof(one))
		return;
}

/*
 * Did an initiator abort the command, by a task management function of iSCSI? Then it is not begun.
 * tgtd sets the mark on its main thread, and answers the function when the command comes back,
 * whatever its status.
 */
static bool is_aborted(struct scsi_cmd *cmd)
{
	return __atomic_load_n(&cmd->mreq, __ATOMIC_ACQUIRE) != NULL;
}

bool io_threads_is_aborted(struct scsi_cmd *cmd)
{
	return is_aborted(cmd);
}

static void end_aborted(struct scsi_cmd *cmd)
{
	scsi_set_in_resid_by_actual(cmd, 0);
	scsi_set_out_resid_by_actual(cmd, 0);
	cmd->sense_len = 0;
	scsi_set_result(cmd, SAM_STAT_TASK_ABORTED);
}

/*
 * Under lock: to `due` or `done`. The main thread takes everything in both at once, so one event
 * announces a batch.
 */
static void give_to_main(struct io_threads *io, struct scsi_cmd *cmd, struct list_head *list)
{
	bool first = list_empty(&io->due) && list_empty(&io->done);

	list_add_tail(&cmd->bs_list, list);
	pthread_cond_broadcast(&io->changed);
	if (first)
		announce(io);
}

/*
 * Under lock: there may be work for one more thread. It wakes the next one if there is work for
 * that, too; so whoever has much work for them wakes one.
 */
static void wake_one(struct io_threads *io)
{
	if (!order_has_next(&io->order) || !io->unoccupied || io->waking)
		return;
	io->waking = true;
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
	struct scsi_cmd *cmd = command_of(task);

	thread->running = cmd;
	pthread_mutex_unlock(&io->lock);
	if (is_aborted(cmd))
		end_aborted(cmd);
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
	wake_one(io);
	give_to_main(io, cmd, &io->done);
}

/* Under lock, which it gives away meanwhile. */
static void answer_probe(struct io_threads *io)
{
	if (!io->probe || io->probing)
		return;
	io->probing = true;
	pthread_mutex_unlock(&io->lock);
	io->probe(io->work.context);
	pthread_mutex_lock(&io->lock);
	io->probing = false;
	io->probe = NULL;
}

static void *serve(void *argument)
{
	struct io_thread *thread = argument;
	struct io_threads *io = thread->io;

	pthread_mutex_lock(&io->lock);
	while (true) {
		struct order_task *task;

		answer_probe(io);
		while (!(task = order_take(&io->order)) && !io->stopping) {
			io->unoccupied++;
			pthread_cond_wait(&io->wanted, &io->lock);
			io->unoccupied--;
			io->waking = false;
			answer_probe(io);
		}
		if (!task)
			break;
		wake_one(io);
		if (task->kind == ON_MAIN_THREAD)
			give_to_main(io, command_of(task), &io->due);
		else
			run(thread, task);
	}
	pthread_mutex_unlock(&io->lock);
	return NULL;
}

/* ---- choosing tasks ---- */

static bool is_chosen(const struct task_choice *choice, const struct scsi_cmd *cmd)
{
	if (!choice->every_nexus && nexus_of(cmd) != choice->nexus)
		return false;
	/* tgtd keeps iSCSI's tag of 32 bits as on the wire. */
	return !choice->one || be32toh((uint32_t)cmd->tag) == choice->tag;
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

static void note_found(struct search *search, const struct scsi_cmd *cmd)
{
	search->count++;
	if (search->found)
		search->found(search->found_context, nexus_of(cmd));
}

/* Under lock, an order_visitor: chooses among those that have not begun. */
static bool choose_waiting(void *context, struct order_task *task)
{
	struct search *search = context;
	struct scsi_cmd *cmd = command_of(task);

	if (!is_chosen(search->choice, cmd))
		return false;
	note_found(search, cmd);
	if (!search->abort)
		return false;
	end_aborted(cmd);
	give_to_main(search->io, cmd, &search->io->done);
	return true;
}

/*
 * Under lock: chooses what the main thread tries to execute. Its answer comes before that of whoever
 * aborts it, because the main thread gives both. If the attempt fails, it does not begin again.
 */
static void choose_attempted(struct search *search)
{
	struct io_threads *io = search->io;

	if (!io->attempted || !is_chosen(search->choice, io->attempted))
		return;
	note_found(search, io->attempted);
	io->attempt_aborted |= search->abort;
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

		if (thread == self || !thread->running ||
		    !is_chosen(search->choice, thread->running))
			continue;
		note_found(search, thread->running);
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
	wake_one(io);
	choose_running(self, &search);
	choose_attempted(&search);
	pthread_mutex_unlock(&io->lock);
	return search.count;
}

/* ---- tgtd's main thread ---- */

/* Performs a command that tgtd answers itself, and whose turn has come. */
static void perform(struct io_threads *io, struct scsi_cmd *cmd)
{
	if (is_aborted(cmd))
		end_aborted(cmd);
	else
		scsi_set_result(cmd, io->work.perform(io->work.context, cmd));
	pthread_mutex_lock(&io->lock);
	order_end(&io->order, task_of(cmd));
	wake_one(io);
	pthread_mutex_unlock(&io->lock);
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

static void complete(struct io_threads *io)
{
	struct list_head due, done;

	INIT_LIST_HEAD(&due);
	INIT_LIST_HEAD(&done);
	pthread_mutex_lock(&io->lock);
	list_splice_init(&io->due, &due);
	list_splice_init(&io->done, &done);
	pthread_mutex_unlock(&io->lock);
	while (!list_empty(&due)) {
		struct scsi_cmd *cmd = list_first_entry(&due, struct scsi_cmd, bs_list);

		list_del(&cmd->bs_list);
		perform(io, cmd);
		list_add_tail(&cmd->bs_list, &done);
	}
	while (!list_empty(&done)) {
		struct scsi_cmd *cmd = list_first_entry(&done, struct scsi_cmd, bs_list);

		list_del(&cmd->bs_list);
		say_that_it_was_aborted(cmd);
		target_cmd_io_done(cmd, scsi_get_result(cmd));
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

static void set_timer(struct io_threads *io)
{
	const struct itimerspec once = { .it_value.tv_nsec = ABORT_LOOK_MS * 1000000L };

	/* If this failed, aborted commands would end in their turn. */
	io->timer_runs = timerfd_settime(io->timer_fd, 0, &once, NULL) == 0;
}

/* Under lock, an order_visitor. */
static bool take_out_aborted(void *context, struct order_task *task)
{
	struct io_threads *io = context;
	struct scsi_cmd *cmd = command_of(task);

	if (!is_aborted(cmd))
		return false;
	end_aborted(cmd);
	give_to_main(io, cmd, &io->done);
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
	wake_one(io);
	idle = order_is_empty(&io->order);
	pthread_mutex_unlock(&io->lock);
	io->timer_runs = false;
	if (!idle)
		set_timer(io);
	requests_look();
	complete(io);
}

/* Until every command has ended. */
static void drain(struct io_threads *io)
{
	pthread_mutex_lock(&io->lock);
	while (!order_is_empty(&io->order)) {
		if (list_empty(&io->due)) {
			pthread_cond_wait(&io->changed, &io->lock);
			continue;
		}
		pthread_mutex_unlock(&io->lock);
		complete(io);
		pthread_mutex_lock(&io->lock);
	}
	pthread_mutex_unlock(&io->lock);
}

/* There are no commands any more. */
static void end_threads(struct io_threads *io)
{
	pthread_mutex_lock(&io->lock);
	io->stopping = true;
	pthread_cond_broadcast(&io->wanted);
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
	if (io->timer_fd >= 0)
		close(io->timer_fd);
	free(io);
}

/* The threads take no signals, because tgtd's main thread reads its own through a signalfd. */
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

/* Watches both descriptors or none. */
static int watch(struct io_threads *io)
{
	if (tgt_event_add(io->event_fd, EPOLLIN, on_event, io))
		return -ENOMEM;
	if (tgt_event_add(io->timer_fd, EPOLLIN, on_timer, io)) {
		tgt_event_del(io->event_fd);
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

/*
 * Under lock, which it gives away meanwhile: the command has begun, and the main thread tries to
 * execute it. False: it could not.
 */
static bool attempt(struct io_threads *io, struct scsi_cmd *cmd)
{
	bool ended;

	io->attempted = cmd;
	io->attempt_aborted = false;
	pthread_mutex_unlock(&io->lock);
	ended = io->work.attempt(io->work.context, cmd);
	pthread_mutex_lock(&io->lock);
	io->attempted = NULL;
	if (!ended && io->attempt_aborted) {
		end_aborted(cmd);
		ended = true;
	}
	return ended;
}

/* Under lock: a command arrives. True: it has ended. */
static bool arrive(struct io_threads *io, struct scsi_cmd *cmd, enum order_attribute attribute)
{
	struct order_task *task = task_of(cmd);

	if (!io->work.attempt ||
	    !order_begin_at_once(&io->order, task, attribute, ON_IO_THREAD)) {
		set_cmd_async(cmd);
		order_arrive(&io->order, task, attribute, ON_IO_THREAD);
		return false;
	}
	if (attempt(io, cmd)) {
		order_end(&io->order, task);
		return true;
	}
	set_cmd_async(cmd);
	order_put_back(&io->order, task);
	return false;
}

int io_threads_submit(struct io_threads *threads, struct scsi_cmd *cmd,
		      enum order_attribute attribute)
{
	bool ended;

	pthread_mutex_lock(&threads->lock);
	ended = arrive(threads, cmd, attribute);
	wake_one(threads);
	pthread_mutex_unlock(&threads->lock);
	if (ended)
		return scsi_get_result(cmd);
	if (!threads->timer_runs)
		set_timer(threads);
	return SAM_STAT_GOOD;
}

int io_threads_perform(struct io_threads *threads, struct scsi_cmd *cmd,
		       enum order_attribute attribute)
{
	struct order_task *task = task_of(cmd);
	bool begun;
	int status;

	pthread_mutex_lock(&threads->lock);
	begun = order_begin_at_once(&threads->order, task, attribute, ON_MAIN_THREAD);
	if (!begun) {
		set_cmd_async(cmd);
		order_arrive(&threads->order, task, attribute, ON_MAIN_THREAD);
	}
	pthread_mutex_unlock(&threads->lock);
	if (!begun) {
		if (!threads->timer_runs)
			set_timer(threads);
		return SAM_STAT_GOOD;
	}
	status = threads->work.perform(threads->work.context, cmd);
	pthread_mutex_lock(&threads->lock);
	order_end(&threads->order, task);
	wake_one(threads);
	pthread_mutex_unlock(&threads->lock);
	return status;
}

bool io_threads_are_idle(struct io_threads *threads)
{
	bool idle;

	pthread_mutex_lock(&threads->lock);
	idle = order_is_empty(&threads->order);
	pthread_mutex_unlock(&threads->lock);
	return idle;
}

bool io_threads_probe(struct io_threads *threads, void (*probe)(void *context))
{
	bool answered;

	pthread_mutex_lock(&threads->lock);
	answered = !threads->probe;
	threads->probe = probe;
	pthread_cond_broadcast(&threads->wanted);
	pthread_mutex_unlock(&threads->lock);
	return answered;
}

void io_threads_stop(struct io_threads *threads)
{
	drain(threads);
	end_threads(threads);
	complete(threads);
	tgt_event_del(threads->event_fd);
	tgt_event_del(threads->timer_fd);
	release(threads);
}
