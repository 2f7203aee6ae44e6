/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The other end of a session, played by the test in the same thread. */
#include "tests/client/peer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bytes.h"

const struct session_parameters PEER_PARAMETERS = {
	.immediate_data = true,
	.initial_r2t = true,
	.first_burst_bytes = 65536,
	.max_burst_bytes = 262144,
	.target_segment_bytes = 8192,
	.initiator_segment_bytes = 262144,
	.cmd_sn = 0xFFFFFFFE, /* wraps soon */
	.exp_stat_sn = 0xFFFFFFFF,
	.max_cmd_sn = 0xFFFFFFFE + 127,
};

static uint64_t standing_clock(void *context)
{
	return ((struct peer *)context)->clock_ms;
}

void peer_open(struct peer *peer, const struct session_parameters *parameters, uint32_t queue_depth)
{
	struct session_options options = {
		.queue_depth = queue_depth,
		.timeout_ms = 1000,
		.lun = 1,
		.clock_ms = standing_clock,
		.clock_context = peer,
	};
	int fds[2], bytes = 1 << 16;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	/* Small, so that a target that reads nothing is soon noticed. */
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	*peer = (struct peer){
		.fd = fds[1],
		.stat_sn = parameters->exp_stat_sn,
		.max_cmd_sn = parameters->max_cmd_sn,
		.clock_ms = 5000,
	};
	assert_int_equal(session_create(fds[0], parameters, &options, &peer->session, NULL), 0);
}

void peer_hang_up(struct peer *peer)
{
	if (peer->fd >= 0)
		close(peer->fd);
	peer->fd = -1;
}

void peer_close(struct peer *peer)
{
	peer_hang_up(peer);
	session_destroy(peer->session);
}

/* Reads exactly; lets the session send when there is nothing. */
static void receive(struct peer *peer, uint8_t *to, size_t length)
{
	unsigned idle = 0;

	while (length > 0) {
		ssize_t got = recv(peer->fd, to, length, MSG_DONTWAIT);

		if (got < 0) {
			assert_int_equal(errno, EAGAIN);
			/* What is not sent after two steps is not sent at all. */
			assert_true(idle++ < 2);
			session_step(peer->session, 0);
			continue;
		}
		assert_true(got > 0);
		idle = 0;
		to += got;
		length -= (size_t)got;
	}
}

void peer_take(struct peer *peer, struct sent_pdu *pdu)
{
	size_t padded;

	receive(peer, pdu->header, ISCSI_BHS_BYTES);
	pdu->header_length = ISCSI_BHS_BYTES + 4 * (size_t)pdu->header[4];
	assert_true(pdu->header_length <= sizeof(pdu->header));
	receive(peer, pdu->header + ISCSI_BHS_BYTES, pdu->header_length - ISCSI_BHS_BYTES);
	pdu->data_length = (size_t)pdu->header[5] << 16 | get_be16(pdu->header + 6);
	padded = align_up(pdu->data_length, 4);
	assert_true(padded <= sizeof(pdu->data));
	receive(peer, pdu->data, padded);
	for (size_t i = pdu->data_length; i < padded; i++)
		assert_int_equal(pdu->data[i], 0);
}

void peer_takes_nothing(struct peer *peer)
{
	uint8_t byte;

	session_step(peer->session, 0);
	assert_int_equal(recv(peer->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK), -1);
	assert_int_equal(errno, EAGAIN);
}

int peer_give(struct peer *peer, const uint8_t header[48], const void *data, size_t length)
{
	static const uint8_t padding[4];
	uint8_t copy[48];

	memcpy(copy, header, sizeof(copy));
	copy[5] = (uint8_t)(length >> 16);
	put_be16(copy + 6, (uint16_t)length);
	assert_int_equal(send(peer->fd, copy, sizeof(copy), MSG_NOSIGNAL), sizeof(copy));
	for (size_t at = 0; at < length;) {
		ssize_t sent = send(peer->fd, (const uint8_t *)data + at, length - at,
				    MSG_DONTWAIT | MSG_NOSIGNAL);

		/* The socket is full: the session takes some. */
		if (sent < 0) {
			assert_int_equal(errno, EAGAIN);
			if (session_step(peer->session, 0) < 0)
				return session_error(peer->session, NULL);
			continue;
		}
		at += (size_t)sent;
	}
	if (length % 4)
		assert_int_equal(send(peer->fd, padding, 4 - length % 4, MSG_NOSIGNAL),
				 4 - length % 4);
	session_step(peer->session, 0);
	return session_step(peer->session, 0);
}

void peer_header(const struct peer *peer, uint8_t header[48], uint8_t opcode, uint8_t flags,
		 uint32_t tag)
{
	memset(header, 0, 48);
	header[0] = opcode;
	header[1] = flags;
	put_be32(header + 16, tag);
	put_be32(header + 20, ISCSI_TAG_NONE);
	put_be32(header + 24, peer->stat_sn);
	put_be32(header + 28, peer->max_cmd_sn - 1);
	put_be32(header + 32, peer->max_cmd_sn);
}

int peer_respond(struct peer *peer, uint32_t tag, uint8_t status)
{
	uint8_t header[48];

	peer_header(peer, header, ISCSI_SCSI_RESPONSE, ISCSI_FINAL, tag);
	header[3] = status;
	peer->stat_sn++;
	return peer_give(peer, header, NULL, 0);
}

int peer_respond_sense(struct peer *peer, uint32_t tag, const uint8_t *sense, size_t length)
{
	uint8_t header[48], data[2 + 252];

	peer_header(peer, header, ISCSI_SCSI_RESPONSE, ISCSI_FINAL, tag);
	header[3] = 2;
	peer->stat_sn++;
	put_be16(data, (uint16_t)length);
	memcpy(data + 2, sense, length);
	return peer_give(peer, header, data, 2 + length);
}

int peer_data_in(struct peer *peer, uint32_t tag, uint32_t sequence, uint32_t offset,
		 const void *data, size_t length)
{
	uint8_t header[48];

	peer_header(peer, header, ISCSI_DATA_IN, 0, tag);
	put_be32(header + 24, 0);
	put_be32(header + 36, sequence);
	put_be32(header + 40, offset);
	return peer_give(peer, header, data, length);
}

int peer_r2t(struct peer *peer, uint32_t tag, uint32_t transfer_tag, uint32_t sequence,
	     uint32_t offset, uint32_t length)
{
	uint8_t header[48];

	peer_header(peer, header, ISCSI_R2T, ISCSI_FINAL, tag);
	put_be32(header + 20, transfer_tag);
	put_be32(header + 36, sequence);
	put_be32(header + 40, offset);
	put_be32(header + 44, length);
	return peer_give(peer, header, NULL, 0);
}

uint32_t sent_tag(const struct sent_pdu *pdu)
{
	return get_be32(pdu->header + 16);
}

uint32_t sent_cmd_sn(const struct sent_pdu *pdu)
{
	return get_be32(pdu->header + 24);
}

static void count(struct session_task *task)
{
	((struct counted_task *)task)->done++;
}

void counted_task_make(struct counted_task *task, const void *out, size_t out_length, void *in,
		       size_t in_length)
{
	*task = (struct counted_task){ .task = {
					       .cdb = { 0x12 }, .cdb_length = 6, .done = count } };
	if (out_length)
		task->task.out[task->task.out_count++] = (struct iovec){ (void *)out, out_length };
	if (in_length)
		task->task.in[task->task.in_count++] = (struct iovec){ in, in_length };
}
