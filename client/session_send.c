/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The sending half: gathers answers to pings, Data-Out bursts, new commands and the logout into
 * batches of PDUs, and sends a batch with one system call. Data goes from where the caller has it.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "client/session_private.h"
#include "common/bytes.h"

static const uint8_t zeros[4];

static bool batch_full(const struct send_batch *batch)
{
	return batch->pdus == BATCH_PDUS;
}

/*
 * Adds the PDU whose header stands in headers[pdus]; `length` bytes of the command's Data-Out from
 * `offset` follow.
 */
static void batch_add(struct send_batch *batch, size_t header_length, struct session_task *task,
		      uint32_t offset, uint32_t length)
{
	struct iovec *to = &batch->vectors[batch->vectors_used];
	unsigned used = 1;

	assert(!batch_full(batch));
	to[0] = (struct iovec){ batch->headers[batch->pdus], header_length };
	if (length > 0)
		used += segments_slice(task->out, task->out_count, offset, length, to + 1,
				       SESSION_SEGMENTS_MAX);
	if (length % 4)
		to[used++] = (struct iovec){ (void *)zeros, 4 - length % 4 };
	batch->vectors_used += used;
	batch->tasks[batch->pdus++] = task;
	if (task)
		task->batched++;
}

/* ---- commands and their data ---- */

void session_begin_burst(struct session *session, struct session_task *task, uint32_t tag,
			 uint32_t length)
{
	assert(task->burst_left == 0 && length > 0);
	task->burst_tag = tag;
	task->burst_offset = task->out_promised;
	task->burst_left = length;
	task->burst_sn = 0;
	task->out_promised += length;
	task_list_append(&session->bursts, task);
}

void session_drop_burst(struct session *session, struct session_task *task)
{
	struct task_list kept = { 0 };
	struct session_task *other;

	if (task->burst_left == 0)
		return;
	while ((other = task_list_take(&session->bursts)) != NULL)
		if (other != task)
			task_list_append(&kept, other);
	session->bursts = kept;
	task->burst_left = 0;
}

static void add_command(struct session *session, struct session_task *task, uint32_t cmd_sn)
{
	const struct session_parameters *agreed = &session->parameters;
	struct send_batch *batch = &session->batch;
	uint32_t unsolicited = min_u64(task->out_length, agreed->first_burst_bytes);
	uint32_t immediate =
		agreed->immediate_data ? min_u64(unsolicited, agreed->target_segment_bytes) : 0;
	uint32_t following = agreed->initial_r2t ? 0 : unsolicited - immediate;
	struct iscsi_command command = {
		.lun = session->lun,
		.task_tag = task->tag,
		.cmd_sn = cmd_sn,
		.exp_stat_sn = session->exp_stat_sn,
		.cdb = task->cdb,
		.cdb_length = task->cdb_length,
		.ordered = task->ordered,
		.reads = task->in_length > 0,
		.writes = task->out_length > 0,
		.read_length = task->in_length,
		.write_length = task->out_length,
		.immediate_length = immediate,
		.final = following == 0,
	};

	batch_add(batch, iscsi_encode_command(batch->headers[batch->pdus], &command), task, 0,
		  immediate);
	task->out_promised = immediate;
	if (following > 0)
		session_begin_burst(session, task, ISCSI_TAG_NONE, following);
}

static void add_data_out(struct session *session, struct session_task *task)
{
	struct send_batch *batch = &session->batch;
	uint32_t length = min_u64(task->burst_left, session->parameters.target_segment_bytes);
	struct iscsi_data_out data = {
		.lun = session->lun,
		.task_tag = task->tag,
		.transfer_tag = task->burst_tag,
		.exp_stat_sn = session->exp_stat_sn,
		.data_sn = task->burst_sn++,
		.offset = task->burst_offset,
		.length = length,
		.final = length == task->burst_left,
	};

	iscsi_encode_data_out(batch->headers[batch->pdus], &data);
	batch_add(batch, ISCSI_BHS_BYTES, task, task->burst_offset, length);
	task->burst_offset += length;
	task->burst_left -= length;
}

/* ---- batches ---- */

static void add_nop_answers(struct session *session)
{
	struct send_batch *batch = &session->batch;

	for (unsigned i = 0; i < session->nop_count; i++) {
		iscsi_encode_nop_answer(batch->headers[batch->pdus], session->nop_answers[i].lun,
					session->nop_answers[i].transfer_tag, session->cmd_sn,
					session->exp_stat_sn);
		batch_add(batch, ISCSI_BHS_BYTES, NULL, 0, 0);
	}
	session->nop_count = 0;
}

static void fill_batch(struct session *session)
{
	struct send_batch *batch = &session->batch;
	struct session_task *task;
	uint32_t cmd_sn;

	add_nop_answers(session);
	/* What the target waits for goes first. */
	while (!batch_full(batch) && session->bursts.first) {
		add_data_out(session, session->bursts.first);
		if (session->bursts.first->burst_left == 0)
			task_list_take(&session->bursts);
	}
	while (!batch_full(batch) && (task = session_activate(session, &cmd_sn)) != NULL)
		add_command(session, task, cmd_sn);
	if (!batch_full(batch) && session->logout == LOGOUT_WANTED) {
		iscsi_encode_logout(batch->headers[batch->pdus], ISCSI_TAG_NONE - 1,
				    session->cmd_sn, session->exp_stat_sn);
		batch_add(batch, ISCSI_BHS_BYTES, NULL, 0, 0);
		session->logout = LOGOUT_SENT;
	}
}

static void release_batch(struct session *session)
{
	struct send_batch *batch = &session->batch;

	for (unsigned i = 0; i < batch->pdus; i++) {
		struct session_task *task = batch->tasks[i];

		if (task && --task->batched == 0 && task->state == TASK_ANSWERED)
			session_answered(session, task);
	}
	batch->pdus = 0;
	batch->vectors_used = 0;
	batch->vectors_sent = 0;
}

static void advance(struct send_batch *batch, size_t sent)
{
	while (sent > 0) {
		struct iovec *vector = &batch->vectors[batch->vectors_sent];
		size_t take = min_u64(sent, vector->iov_len);

		vector->iov_base = (uint8_t *)vector->iov_base + take;
		vector->iov_len -= take;
		sent -= take;
		if (vector->iov_len == 0)
			batch->vectors_sent++;
	}
}

bool session_has_output(const struct session *session)
{
	return !session->deaf && session->batch.vectors_sent < session->batch.vectors_used;
}

int session_send(struct session *session)
{
	struct send_batch *batch = &session->batch;

	while (!session->deaf) {
		struct msghdr message = { 0 };
		ssize_t sent;

		if (!session_has_output(session)) {
			release_batch(session);
			fill_batch(session);
			if (!session_has_output(session))
				return 0;
		}
		message.msg_iov = batch->vectors + batch->vectors_sent;
		message.msg_iovlen = batch->vectors_used - batch->vectors_sent;
		sent = sendmsg(session->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return 0;
		/*
		 * Answers may have come before the end. session_receive takes them first, and then
		 * reports it.
		 */
		session->deaf = sent < 0 && (errno == EPIPE || errno == ECONNRESET);
		if (session->deaf)
			return 0;
		if (sent < 0 && errno != EINTR)
			return session_fail(session, -errno,
					    "iSCSI session: the connection broke while sending: %s",
					    strerror(errno));
		if (sent > 0)
			advance(batch, (size_t)sent);
	}
	return 0;
}
