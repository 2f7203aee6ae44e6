/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The life of commands: waiting, in flight, answered; deadlines; the end of the session. */
#include "client/session.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/session_private.h"
#include "common/bytes.h"

/* PDU code has signed lengths in too many places for 4 GiB. */
#define TRANSFER_BYTES_MAX INT32_MAX
/* Of RFC 7143, 13.12: the smallest MaxRecvDataSegmentLength. */
#define SEGMENT_BYTES_MIN 512U
#define SEGMENT_BYTES_MAX 0xFFFFFFU
#define NO_DEADLINE       UINT64_MAX

void task_list_append(struct task_list *list, struct session_task *task)
{
	task->next = NULL;
	if (list->last)
		list->last->next = task;
	else
		list->first = task;
	list->last = task;
}

struct session_task *task_list_take(struct task_list *list)
{
	struct session_task *task = list->first;

	if (task) {
		list->first = task->next;
		if (!list->first)
			list->last = NULL;
		task->next = NULL;
	}
	return task;
}

unsigned segments_slice(const struct iovec *segments, unsigned count, size_t offset, size_t length,
			struct iovec *to, unsigned capacity)
{
	unsigned used = 0;

	for (unsigned i = 0; i < count && length > 0; i++) {
		size_t take;

		if (offset >= segments[i].iov_len) {
			offset -= segments[i].iov_len;
			continue;
		}
		take = min_u64(segments[i].iov_len - offset, length);
		assert(used < capacity);
		to[used].iov_base = (uint8_t *)segments[i].iov_base + offset;
		to[used].iov_len = take;
		used++;
		length -= take;
		offset = 0;
	}
	assert(length == 0);
	return used;
}

static uint64_t now_ms(const struct session *session)
{
	struct timespec now;

	if (session->options.clock_ms)
		return session->options.clock_ms(session->options.clock_context);
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool parameters_valid(const struct session_parameters *parameters)
{
	return parameters->target_segment_bytes >= SEGMENT_BYTES_MIN &&
	       parameters->target_segment_bytes <= SEGMENT_BYTES_MAX &&
	       parameters->initiator_segment_bytes >= SEGMENT_BYTES_MIN &&
	       parameters->initiator_segment_bytes <= SEGMENT_BYTES_MAX &&
	       parameters->first_burst_bytes <= SEGMENT_BYTES_MAX &&
	       parameters->max_burst_bytes >= SEGMENT_BYTES_MIN &&
	       parameters->max_burst_bytes <= SEGMENT_BYTES_MAX;
}

static const struct session_carrier iscsi_carrier = {
	.name = "iSCSI session",
	.send = session_send,
	.has_output = session_has_output,
	.receive = session_receive,
};

int session_create(int fd, const struct session_parameters *parameters,
		   const struct session_options *options, struct session **session,
		   struct error_text *error)
{
	return session_create_on(&iscsi_carrier, NULL, fd, parameters, options, session, error);
}

int session_create_on(const struct session_carrier *carrier, void *state, int fd,
		      const struct session_parameters *parameters,
		      const struct session_options *options, struct session **session,
		      struct error_text *error)
{
	struct session *created;
	int result = -ENOMEM;

	if (options->queue_depth < 1 || options->queue_depth > SESSION_QUEUE_DEPTH_MAX ||
	    options->lun >= 0x4000 || !parameters_valid(parameters)) {
		close(fd);
		free(state);
		return error_set(error, -EINVAL,
				 "%s: queue depth, LUN or negotiated lengths are out of range",
				 carrier->name);
	}
	created = calloc(1, sizeof(*created));
	if (!created)
		goto fail;
	created->slots = calloc(options->queue_depth, sizeof(struct session_task *));
	created->generations = calloc(options->queue_depth, sizeof(*created->generations));
	if (!created->slots || !created->generations)
		goto fail;
	result = fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0 ? -errno : 0;
	if (result < 0)
		goto fail;
	created->carrier = carrier;
	created->carrier_state = state;
	created->fd = fd;
	created->parameters = *parameters;
	created->options = *options;
	iscsi_encode_lun(created->lun, options->lun);
	created->cmd_sn = parameters->cmd_sn;
	created->exp_stat_sn = parameters->exp_stat_sn;
	created->max_cmd_sn = parameters->max_cmd_sn;
	*session = created;
	return 0;
fail:
	if (created) {
		free(created->slots);
		free(created->generations);
	}
	free(created);
	free(state);
	close(fd);
	return error_set(error, result, "%s: %s", carrier->name, strerror(-result));
}

/* ---- commands ---- */

static int segments_length(const struct iovec *segments, unsigned count, uint32_t *length)
{
	uint64_t sum = 0;

	if (count > SESSION_SEGMENTS_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < count; i++) {
		if (segments[i].iov_len > TRANSFER_BYTES_MAX)
			return -EINVAL;
		sum += segments[i].iov_len;
	}
	if (sum > TRANSFER_BYTES_MAX)
		return -EINVAL;
	*length = (uint32_t)sum;
	return 0;
}

int session_submit(struct session *session, struct session_task *task)
{
	if (session->failure)
		return session->failure;
	if (session->closing || session->logout != LOGOUT_NONE)
		return -ENOTCONN;
	if (task->cdb_length < 1 || task->cdb_length > ISCSI_CDB_BYTES_MAX ||
	    segments_length(task->out, task->out_count, &task->out_length) < 0 ||
	    segments_length(task->in, task->in_count, &task->in_length) < 0)
		return -EINVAL;
	if (session->carrier->check && session->carrier->check(task) < 0)
		return -EMSGSIZE;
	task->result = 0;
	task->status = 0;
	task->sense_length = 0;
	task->in_received = 0;
	task->out_residual = 0;
	task->in_residual = 0;
	task->out_promised = 0;
	task->sequence = 0;
	task->burst_left = 0;
	task->batched = 0;
	task->state = TASK_WAITING;
	task_list_append(&session->waiting, task);
	session->outstanding++;
	return 0;
}

size_t session_outstanding(const struct session *session)
{
	return session->outstanding;
}

/* Takes the lowest free slot, so that a short queue uses few of them. */
static uint32_t take_slot(struct session *session, struct session_task *task)
{
	uint32_t slot = 0;

	while (session->slots[slot])
		slot++;
	assert(slot < session->options.queue_depth);
	session->slots[slot] = task;
	session->slots_used++;
	/*
	 * With the generation, a late or invented answer to an old command has a wrong tag. 0xFFFF
	 * stays unused.
	 */
	session->generations[slot] = (session->generations[slot] + 1) % 0xFFFF;
	return session->generations[slot] << 16 | slot;
}

struct session_task *session_find(struct session *session, uint32_t tag)
{
	uint32_t slot = tag & 0xFFFF;

	if (slot >= session->options.queue_depth || !session->slots[slot] ||
	    session->slots[slot]->tag != tag || session->slots[slot]->state != TASK_ACTIVE)
		return NULL;
	return session->slots[slot];
}

static bool window_open(const struct session *session)
{
	return !serial_after(session->cmd_sn, session->max_cmd_sn);
}

struct session_task *session_activate(struct session *session, uint32_t *cmd_sn)
{
	struct session_task *task;

	if (!session->waiting.first || session->slots_used == session->options.queue_depth ||
	    !window_open(session))
		return NULL;
	task = task_list_take(&session->waiting);
	task->allowed_ms = task->timeout_ms ? task->timeout_ms : session->options.timeout_ms;
	task->sent_ms = now_ms(session);
	task->tag = take_slot(session, task);
	task->state = TASK_ACTIVE;
	*cmd_sn = session->cmd_sn++;
	return task;
}

static void finish(struct session *session, struct session_task *task)
{
	uint32_t slot = task->tag & 0xFFFF;

	assert(task->state == TASK_ACTIVE || task->state == TASK_ANSWERED);
	assert(session->slots[slot] == task);
	session->slots[slot] = NULL;
	session->slots_used--;
	task->state = TASK_DONE;
	task_list_append(&session->done, task);
}

void session_progress(struct session *session)
{
	session->progress_ms = now_ms(session);
}

void session_answered(struct session *session, struct session_task *task)
{
	if (task->state == TASK_ACTIVE) {
		session_drop_burst(session, task);
		task->state = TASK_ANSWERED;
	}
	/* While the kernel has not taken the last PDU that was begun, its buffers must stay. */
	if (task->batched == 0)
		finish(session, task);
}

static void call_done(struct session *session)
{
	struct session_task *task;

	while ((task = task_list_take(&session->done)) != NULL) {
		task->state = TASK_IDLE;
		session->outstanding--;
		task->done(task);
	}
}

/* ---- the end ---- */

int session_fail(struct session *session, int result, const char *format, ...)
{
	va_list arguments;

	assert(result < 0);
	if (session->failure)
		return session->failure;
	session->failure = result;
	va_start(arguments, format);
	vsnprintf(session->failure_text.text, sizeof(session->failure_text.text), format,
		  arguments);
	va_end(arguments);
	return result;
}

int session_error(const struct session *session, struct error_text *error)
{
	if (session->failure && error)
		*error = session->failure_text;
	return session->failure;
}

/*
 * All commands get the session's failure. The connection is dead and touches nothing of theirs any
 * more.
 */
static void fail_all(struct session *session)
{
	struct session_task *task;

	session->batch.pdus = 0;
	session->batch.vectors_used = 0;
	session->batch.vectors_sent = 0;
	session->bursts = (struct task_list){ 0 };
	session->receive.task = NULL;
	for (uint32_t slot = 0; slot < session->options.queue_depth; slot++) {
		task = session->slots[slot];
		if (!task)
			continue;
		/* A complete answer counts, even if the connection died right behind it. */
		if (task->state == TASK_ACTIVE)
			task->result = session->failure;
		finish(session, task);
	}
	while ((task = task_list_take(&session->waiting)) != NULL) {
		task->result = session->failure;
		task->state = TASK_DONE;
		task_list_append(&session->done, task);
	}
}

void session_destroy(struct session *session)
{
	if (!session)
		return;
	session_fail(session, -ECANCELED, "%s: closed by this side with commands in flight",
		     session->carrier->name);
	fail_all(session);
	call_done(session);
	assert(session->outstanding == 0);
	close(session->fd);
	free(session->carrier_state);
	free(session->slots);
	free(session->generations);
	free(session);
}

/* ---- time ---- */

static uint64_t next_deadline(const struct session *session)
{
	uint64_t first = NO_DEADLINE;

	for (uint32_t slot = 0; slot < session->options.queue_depth && session->slots_used;
	     slot++) {
		const struct session_task *task = session->slots[slot];

		if (task && task->allowed_ms)
			first = min_u64(first, max_u64(task->sent_ms, session->progress_ms) +
						       task->allowed_ms);
	}
	if (session->blocked_since_ms && session->options.timeout_ms)
		first = min_u64(first, session->blocked_since_ms + session->options.timeout_ms);
	return first;
}

/*
 * A target may close its window for ever while nothing is in flight. No command's deadline would
 * notice that.
 */
static void watch_window(struct session *session)
{
	bool blocked = session->waiting.first && session->slots_used == 0 && !window_open(session);

	if (!blocked)
		session->blocked_since_ms = 0;
	else if (!session->blocked_since_ms)
		session->blocked_since_ms = max_u64(now_ms(session), 1);
}

static int check_deadlines(struct session *session)
{
	if (now_ms(session) < next_deadline(session))
		return 0;
	if (session->slots_used == 0)
		return session_fail(session, -ETIMEDOUT,
				    "%s: the target has accepted no command for %u ms; is it "
				    "overloaded?",
				    session->carrier->name, session->options.timeout_ms);
	return session_fail(session, -ETIMEDOUT,
			    "%s: no answer within the time allowed; is the target still running? "
			    "(--timeout allows more)",
			    session->carrier->name);
}

static int wait_milliseconds(const struct session *session, int timeout_ms)
{
	uint64_t deadline = next_deadline(session);
	uint64_t now, left;

	if (deadline == NO_DEADLINE)
		return timeout_ms;
	now = now_ms(session);
	left = deadline > now ? min_u64(deadline - now, INT_MAX) : 0;
	return timeout_ms < 0 || left < (uint64_t)timeout_ms ? (int)left : timeout_ms;
}

/* ---- steps ---- */

int session_descriptor(const struct session *session)
{
	return session->fd;
}

int session_push(struct session *session)
{
	return session->failure ? session->failure : session->carrier->send(session);
}

short session_events(const struct session *session)
{
	return session->carrier->has_output(session) ? POLLIN | POLLOUT : POLLIN;
}

static int exchange(struct session *session, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = session->fd };
	int ready;

	if (session->carrier->send(session) < 0)
		return session->failure;
	watch_window(session);
	poll_fd.events = session_events(session);
	ready = poll(&poll_fd, 1, session->done.first ? 0 : wait_milliseconds(session, timeout_ms));
	if (ready < 0 && errno != EINTR)
		return session_fail(session, -errno, "%s: poll: %s", session->carrier->name,
				    strerror(errno));
	if ((session->deaf || (ready > 0 && poll_fd.revents & ~POLLOUT)) &&
	    session->carrier->receive(session) < 0)
		return session->failure;
	if (session->carrier->send(session) < 0)
		return session->failure;
	watch_window(session);
	return check_deadlines(session);
}

int session_step(struct session *session, int timeout_ms)
{
	if (!session->failure)
		exchange(session, timeout_ms);
	if (session->failure)
		fail_all(session);
	call_done(session);
	return session->failure;
}

int session_logout(struct session *session, uint32_t timeout_ms)
{
	uint64_t deadline = now_ms(session) + timeout_ms;

	while (!session->failure && session->logout != LOGOUT_ANSWERED) {
		uint64_t now = now_ms(session);

		if (session->outstanding == 0 && session->logout == LOGOUT_NONE)
			session->logout = LOGOUT_WANTED;
		if (now >= deadline)
			return session_fail(session, -ETIMEDOUT,
					    "%s: the target does not answer the logout",
					    session->carrier->name);
		session_step(session, (int)min_u64(deadline - now, INT_MAX));
	}
	return session->logout == LOGOUT_ANSWERED ? 0 : session->failure;
}
