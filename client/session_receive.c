/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The receiving half: splits the byte stream into PDUs and acts on them. Headers and small data
 * come through one buffer; long Data-In goes from the socket straight to where the caller wants it.
 *
 * It compares every number of the target with what that may be, before it uses the number.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "client/session_private.h"
#include "common/bytes.h"

/*
 * Reads of one step: a target that sends without end must not keep the caller from its deadlines.
 */
#define READS_PER_STEP     16
#define RESPONSE_COMPLETED 0x00
#define SENSE_HEAD_BYTES   2U

/* Events of an Asynchronous Message. */
enum { ASYNC_SCSI = 0, ASYNC_LOGOUT = 1, ASYNC_DROP_CONNECTION = 2, ASYNC_DROP_SESSION = 3 };

static int protocol_error(struct session *session, const char *what)
{
	return session_fail(session, -EPROTO,
			    "iSCSI session: the target broke the protocol: %s in a %s", what,
			    iscsi_opcode_name(session->receive.header.opcode));
}

/* ---- numbering ---- */

static void note_window(struct session *session, const struct iscsi_header *header)
{
	/*
	 * A PDU may be older than one that came before it, so only later windows count (RFC 7143,
	 * 4.2.2.1).
	 */
	if (serial_after(header->exp_cmd_sn - 1, header->max_cmd_sn))
		return;
	if (serial_after(header->max_cmd_sn, session->max_cmd_sn))
		session->max_cmd_sn = header->max_cmd_sn;
}

static int check_stat_sn(struct session *session, const struct iscsi_header *header)
{
	if (header->stat_sn != session->exp_stat_sn)
		return protocol_error(session, "status out of sequence (StatSN)");
	session->exp_stat_sn++;
	return 0;
}

/* Data-In and R2T of one command share a numbering, in the order in which the target sends them. */
static int check_sequence(struct session *session, struct session_task *task,
			  const struct iscsi_header *header)
{
	if (header->sequence != task->sequence)
		return protocol_error(session, "DataSN or R2TSN out of sequence");
	task->sequence++;
	return 0;
}

/* ---- results of commands ---- */

/* -EPROTO when the flags or the count can't be. */
static int decode_residual(bool over, bool under, uint32_t count, uint32_t length,
			   int64_t *residual)
{
	*residual = 0;
	if (over && under)
		return -EPROTO;
	if (under && count > length)
		return -EPROTO;
	if (under)
		*residual = count;
	if (over)
		*residual = -(int64_t)count;
	return 0;
}

/* When the target calls a command complete, all bytes that it claims to have sent must be here. */
static int judge_read(const struct session_task *task)
{
	uint64_t expected = task->in_residual > 0 ? task->in_length - (uint64_t)task->in_residual
						  : task->in_length;

	return task->status == 0 && task->in_received != expected ? -EPROTO : 0;
}

static int decode_residuals(struct session_task *task, const struct iscsi_header *header)
{
	bool over = header->flags & ISCSI_OVERFLOW, under = header->flags & ISCSI_UNDERFLOW;
	bool read_over = header->flags & ISCSI_READ_OVERFLOW,
	     read_under = header->flags & ISCSI_READ_UNDERFLOW;

	if (task->out_length > 0) {
		if (decode_residual(over, under, header->residual, task->out_length,
				    &task->out_residual) < 0)
			return -EPROTO;
		if (task->in_length == 0)
			return 0;
		return decode_residual(read_over, read_under, header->read_residual,
				       task->in_length, &task->in_residual);
	}
	return decode_residual(over, under, header->residual, task->in_length, &task->in_residual);
}

static int take_sense(struct session *session, struct session_task *task,
		      const struct iscsi_header *header)
{
	size_t length;

	if (header->data_length == 0)
		return 0;
	if (header->data_length < SENSE_HEAD_BYTES)
		return protocol_error(session, "data segment too short for sense");
	length = get_be16(session->receive.control);
	if (length > header->data_length - SENSE_HEAD_BYTES)
		return protocol_error(session, "sense longer than its data segment");
	task->sense_length = min_u64(length, SESSION_SENSE_BYTES_MAX);
	memcpy(task->sense, session->receive.control + SENSE_HEAD_BYTES, task->sense_length);
	return 0;
}

static int end_response(struct session *session, const struct iscsi_header *header)
{
	struct session_task *task = session_find(session, header->task_tag);

	if (!task)
		return protocol_error(session, "tag of no command in flight");
	session_progress(session);
	if (check_stat_sn(session, header) < 0)
		return session->failure;
	if (header->response != RESPONSE_COMPLETED) {
		task->result = -EREMOTEIO;
		session_answered(session, task);
		return 0;
	}
	task->status = header->status;
	if (decode_residuals(task, header) < 0)
		return protocol_error(session, "impossible residual");
	if (take_sense(session, task, header) < 0)
		return session->failure;
	task->result = judge_read(task);
	session_answered(session, task);
	return 0;
}

/* ---- Data-In ---- */

static int begin_data_in(struct session *session, const struct iscsi_header *header)
{
	struct receive_state *receive = &session->receive;
	struct session_task *task = session_find(session, header->task_tag);

	if (!task)
		return protocol_error(session, "tag of no command in flight");
	if (task->in_length == 0)
		return protocol_error(session, "data for a command that reads nothing");
	if (check_sequence(session, task, header) < 0)
		return session->failure;
	/*
	 * DataPDUInOrder and DataSequenceInOrder are Yes: bytes come once and in order, so none is
	 * missing.
	 */
	if (header->offset != task->in_received)
		return protocol_error(session, "data out of order (buffer offset)");
	if (header->data_length > task->in_length - task->in_received)
		return protocol_error(session, "more data than there is space for");
	receive->task = task;
	receive->places_count = segments_slice(task->in, task->in_count, header->offset,
					       header->data_length, receive->places,
					       SESSION_SEGMENTS_MAX);
	return 0;
}

static int end_data_in(struct session *session, const struct iscsi_header *header)
{
	struct session_task *task = session->receive.task;

	session->receive.task = NULL;
	task->in_received += header->data_length;
	/* Empty ones do not count as progress: they could come for ever. */
	if (header->data_length > 0)
		session_progress(session);
	if (!(header->flags & ISCSI_DATA_IN_STATUS))
		return 0;
	if (!(header->flags & ISCSI_FINAL))
		return protocol_error(session, "status before the last data");
	if (task->out_length > 0)
		return protocol_error(session, "status of a bidirectional command");
	if (check_stat_sn(session, header) < 0)
		return session->failure;
	task->status = header->status;
	if (decode_residuals(task, header) < 0)
		return protocol_error(session, "impossible residual");
	task->result = judge_read(task);
	session_answered(session, task);
	return 0;
}

/* ---- R2T ---- */

static int end_r2t(struct session *session, const struct iscsi_header *header)
{
	struct session_task *task = session_find(session, header->task_tag);

	if (!task)
		return protocol_error(session, "tag of no command in flight");
	if (header->transfer_tag == ISCSI_TAG_NONE)
		return protocol_error(session, "reserved transfer tag");
	if (check_sequence(session, task, header) < 0)
		return session->failure;
	if (header->burst_length == 0 || header->burst_length > session->parameters.max_burst_bytes)
		return protocol_error(session, "burst length of 0 or above MaxBurstLength");
	if (task->burst_left > 0)
		return protocol_error(
			session, "second request before the first was served (MaxOutstandingR2T)");
	if (header->offset != task->out_promised ||
	    header->burst_length > task->out_length - task->out_promised)
		return protocol_error(session, "request for data out of order or beyond the end");
	session_progress(session);
	session_begin_burst(session, task, header->transfer_tag, header->burst_length);
	return 0;
}

/* ---- PDUs that belong to no command ---- */

static int end_nop_in(struct session *session, const struct iscsi_header *header)
{
	struct nop_answer *answer;

	/*
	 * This side sends no pings, so a NOP-In must be the target's own. It shows the next StatSN
	 * and does not use it up.
	 */
	if (header->task_tag != ISCSI_TAG_NONE)
		return protocol_error(session, "answer to a ping that was not sent");
	if (header->transfer_tag == ISCSI_TAG_NONE)
		return 0;
	if (session->nop_count == NOP_ANSWERS_MAX)
		return protocol_error(session, "too many pings at once");
	answer = &session->nop_answers[session->nop_count++];
	memcpy(answer->lun, header->lun, sizeof(answer->lun));
	answer->transfer_tag = header->transfer_tag;
	return 0;
}

static int end_async_message(struct session *session, const struct iscsi_header *header)
{
	if (check_stat_sn(session, header) < 0)
		return session->failure;
	switch (header->async_event) {
	case ASYNC_LOGOUT:
		session->closing = true;
		return 0;
	case ASYNC_DROP_CONNECTION:
	case ASYNC_DROP_SESSION:
		return session_fail(
			session, -ECONNRESET,
			"iSCSI session: the target announces that it drops the session");
	default:
		/*
		 * SCSI events come again as unit attentions, and vendor events mean nothing here.
		 */
		return 0;
	}
}

static int end_reject(struct session *session, const struct iscsi_header *header)
{
	struct iscsi_header rejected = { .opcode = ISCSI_REJECT };

	if (check_stat_sn(session, header) < 0)
		return session->failure;
	if (header->data_length >= ISCSI_BHS_BYTES)
		rejected.opcode = session->receive.control[0] & 0x3f;
	/*
	 * Without error recovery nothing tells whether the target still has the command, so ends
	 * the session.
	 */
	return session_fail(session, -EPROTO,
			    "iSCSI session: the target rejected a %s PDU: %s (0x%02x)",
			    iscsi_opcode_name(rejected.opcode),
			    iscsi_reject_reason(header->response), header->response);
}

static int end_logout_response(struct session *session, const struct iscsi_header *header)
{
	if (session->logout != LOGOUT_SENT)
		return protocol_error(session, "answer to a logout that was not sent");
	if (check_stat_sn(session, header) < 0)
		return session->failure;
	session->logout = LOGOUT_ANSWERED;
	return 0;
}

/* ---- PDUs ---- */

static int begin_pdu(struct session *session, const uint8_t *bhs)
{
	struct receive_state *receive = &session->receive;
	struct iscsi_header *header = &receive->header;

	if (iscsi_decode_header(bhs, header) < 0)
		return session_fail(
			session, -EPROTO,
			"iSCSI session: the target sent opcode 0x%02x, which has no place here",
			bhs[0]);
	if (header->additional_header_words > 0)
		return protocol_error(session, "additional header segment");
	if (header->data_length > session->parameters.initiator_segment_bytes)
		return protocol_error(session, "data segment longer than agreed");
	note_window(session, header);
	receive->data_left = header->data_length;
	receive->padding_left = (4 - header->data_length % 4) % 4;
	receive->in_pdu = true;
	if (header->opcode == ISCSI_DATA_IN)
		return begin_data_in(session, header);
	if (header->data_length > CONTROL_BYTES_MAX)
		return protocol_error(session, "data segment of unreasonable length");
	receive->places[0] = (struct iovec){ receive->control, header->data_length };
	receive->places_count = 1;
	return 0;
}

static int end_pdu(struct session *session)
{
	const struct iscsi_header *header = &session->receive.header;

	session->receive.in_pdu = false;
	switch (header->opcode) {
	case ISCSI_SCSI_RESPONSE:
		return end_response(session, header);
	case ISCSI_DATA_IN:
		return end_data_in(session, header);
	case ISCSI_R2T:
		return end_r2t(session, header);
	case ISCSI_NOP_IN:
		return end_nop_in(session, header);
	case ISCSI_LOGOUT_RESPONSE:
		return end_logout_response(session, header);
	case ISCSI_ASYNC_MESSAGE:
		return end_async_message(session, header);
	case ISCSI_REJECT:
		return end_reject(session, header);
	default:
		assert(!"iscsi_decode_header lets nothing else through");
		return -EPROTO;
	}
}

/* ---- bytes ---- */

/* `length` bytes of the data segment have been stored: moves the places on. */
static void places_advance(struct receive_state *receive, size_t length)
{
	unsigned gone = 0;

	assert(length <= receive->data_left);
	receive->data_left -= (uint32_t)length;
	while (gone < receive->places_count && length >= receive->places[gone].iov_len)
		length -= receive->places[gone++].iov_len;
	memmove(receive->places, receive->places + gone,
		(receive->places_count - gone) * sizeof(receive->places[0]));
	receive->places_count -= gone;
	if (length > 0) {
		receive->places[0].iov_base = (uint8_t *)receive->places[0].iov_base + length;
		receive->places[0].iov_len -= length;
	}
}

static void copy_buffered_data(struct receive_state *receive)
{
	while (receive->data_left > 0 && receive->begin < receive->end) {
		size_t take = min_u64(receive->end - receive->begin, receive->places[0].iov_len);

		memcpy(receive->places[0].iov_base, receive->buffer + receive->begin, take);
		receive->begin += take;
		places_advance(receive, take);
	}
}

/* Takes what is in the buffer apart. */
static int consume(struct session *session)
{
	struct receive_state *receive = &session->receive;

	for (;;) {
		size_t skip;

		if (!receive->in_pdu) {
			if (receive->end - receive->begin < ISCSI_BHS_BYTES)
				return 0;
			if (begin_pdu(session, receive->buffer + receive->begin) < 0)
				return session->failure;
			receive->begin += ISCSI_BHS_BYTES;
		}
		copy_buffered_data(receive);
		skip = min_u64(receive->padding_left, receive->end - receive->begin);
		if (receive->data_left > 0)
			return 0;
		receive->begin += skip;
		receive->padding_left -= (uint32_t)skip;
		if (receive->padding_left > 0)
			return 0;
		if (end_pdu(session) < 0)
			return session->failure;
	}
}

/* One read. The missing part of a data segment goes to its place, what follows into the buffer. */
static ssize_t read_socket(struct session *session)
{
	struct receive_state *receive = &session->receive;
	struct iovec vectors[SESSION_SEGMENTS_MAX + 2];
	size_t direct = receive->in_pdu ? receive->data_left : 0;
	unsigned count = 0;
	ssize_t got;

	memmove(receive->buffer, receive->buffer + receive->begin, receive->end - receive->begin);
	receive->end -= receive->begin;
	receive->begin = 0;
	if (direct > 0) {
		assert(receive->end == 0);
		count = receive->places_count;
		memcpy(vectors, receive->places, count * sizeof(vectors[0]));
	}
	vectors[count++] = (struct iovec){ receive->buffer + receive->end,
					   RECEIVE_BUFFER_BYTES - receive->end };
	got = readv(session->fd, vectors, (int)count);
	if (got > 0) {
		size_t placed = min_u64((uint64_t)got, direct);

		if (placed > 0)
			places_advance(receive, placed);
		receive->end += (size_t)got - placed;
	}
	return got;
}

int session_receive(struct session *session)
{
	for (int reads = 0; reads < READS_PER_STEP; reads++) {
		ssize_t got = read_socket(session);

		if (got == 0 && session->logout == LOGOUT_ANSWERED)
			return 0;
		if (got == 0)
			return session_fail(session, -ECONNRESET,
					    "iSCSI session: the target closed the connection");
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && !session->deaf)
			return 0;
		if (got < 0 && (errno == ECONNRESET || session->deaf))
			return session_fail(session, -ECONNRESET,
					    "iSCSI session: the target closed the connection");
		if (got < 0)
			return session_fail(session, -errno,
					    "iSCSI session: the connection broke: %s",
					    strerror(errno));
		if (consume(session) < 0)
			return session->failure;
	}
	return 0;
}
