/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A small iSCSI target in a thread of its own, with a client logged in. */
#include "tests/client/loopback.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bytes.h"

#define BURST_BYTES   20000U
#define SEGMENT_BYTES 4096U
#define WINDOW        64U

struct pending {
	struct pending *next;
	uint8_t cdb[ISCSI_CDB_BYTES_MAX];
	size_t cdb_length;
	uint32_t tag;
	bool reads, writes;
	uint32_t out_length, in_capacity;
	uint32_t received; /* bytes of Data-Out */
	uint32_t sequence; /* of R2T and Data-In */
	uint8_t *out;
};

struct loopback {
	int fd;
	pthread_t thread;
	loopback_execute *execute;
	void *context;
	uint32_t stat_sn, exp_cmd_sn;
	struct pending *first, **last;
	bool requested; /* an R2T of the first command is out */
	bool ended;
};

static bool receive(struct loopback *loopback, void *to, size_t length)
{
	/* A read of nothing would wait for something. */
	return length == 0 || recv(loopback->fd, to, length, MSG_WAITALL) == (ssize_t)length;
}

static void transmit(struct loopback *loopback, uint8_t header[48], const void *data, size_t length)
{
	static const uint8_t zeros[4];
	struct iovec vectors[3] = {
		{ header, 48 },
		{ (void *)data, length },
		{ (void *)zeros, (4 - length % 4) % 4 },
	};

	header[5] = (uint8_t)(length >> 16);
	put_be16(header + 6, (uint16_t)length);
	put_be32(header + 28, loopback->exp_cmd_sn);
	put_be32(header + 32, loopback->exp_cmd_sn + WINDOW - 1);
	for (int i = 0; i < 3; i++)
		for (size_t at = 0; at < vectors[i].iov_len;) {
			ssize_t sent = send(loopback->fd, (uint8_t *)vectors[i].iov_base + at,
					    vectors[i].iov_len - at, MSG_NOSIGNAL);

			if (sent < 0) {
				loopback->ended = true;
				return;
			}
			at += (size_t)sent;
		}
}

/* ---- PDUs of the initiator ---- */

static bool take_command(struct loopback *loopback, const uint8_t *header, const uint8_t *segments)
{
	struct pending *pending = calloc(1, sizeof(*pending));
	size_t segments_length = 4 * (size_t)header[4];
	uint32_t immediate = (uint32_t)header[5] << 16 | get_be16(header + 6);

	pending->tag = get_be32(header + 16);
	pending->reads = header[1] & 0x40;
	pending->writes = header[1] & 0x20;
	*(pending->writes ? &pending->out_length : &pending->in_capacity) = get_be32(header + 20);
	memcpy(pending->cdb, header + 32, 16);
	pending->cdb_length = 16;
	for (size_t at = 0; at + 4 <= segments_length;) {
		size_t length = get_be16(segments + at);

		if (segments[at + 2] == 1) {
			memcpy(pending->cdb + 16, segments + at + 4, length - 1);
			pending->cdb_length = 16 + length - 1;
		} else {
			pending->in_capacity = get_be32(segments + at + 4);
		}
		at += align_up(3 + length, 4);
	}
	pending->out = calloc(1, pending->out_length + 4);
	*loopback->last = pending;
	loopback->last = &pending->next;
	loopback->exp_cmd_sn = get_be32(header + 24) + 1;
	pending->received = immediate;
	return immediate == 0 || receive(loopback, pending->out, align_up(immediate, 4));
}

static bool take_data(struct loopback *loopback, const uint8_t *header)
{
	uint32_t length = (uint32_t)header[5] << 16 | get_be16(header + 6);
	struct pending *pending = loopback->first;

	if (!pending || pending->tag != get_be32(header + 16) ||
	    pending->received != get_be32(header + 40) ||
	    length > pending->out_length - pending->received)
		return false;
	if (!receive(loopback, pending->out + pending->received, align_up(length, 4)))
		return false;
	pending->received += length;
	if (header[1] & 0x80)
		loopback->requested = false;
	return true;
}

static void answer_logout(struct loopback *loopback, const uint8_t *request)
{
	uint8_t header[48] = { ISCSI_LOGOUT_RESPONSE, 0x80 };

	memcpy(header + 16, request + 16, 4);
	put_be32(header + 24, loopback->stat_sn++);
	transmit(loopback, header, NULL, 0);
	loopback->ended = true;
}

static bool take_pdu(struct loopback *loopback)
{
	uint8_t header[48], segments[1020];

	if (!receive(loopback, header, sizeof(header)) ||
	    !receive(loopback, segments, 4 * (size_t)header[4]))
		return false;
	switch (header[0] & 0x3f) {
	case ISCSI_SCSI_COMMAND:
		return take_command(loopback, header, segments);
	case ISCSI_DATA_OUT:
		return take_data(loopback, header);
	case ISCSI_LOGOUT_REQUEST:
		answer_logout(loopback, header);
		return true;
	default:
		return false;
	}
}

/* ---- answers ---- */

static void request_data(struct loopback *loopback, struct pending *pending)
{
	uint8_t header[48] = { ISCSI_R2T, 0x80 };

	put_be32(header + 16, pending->tag);
	put_be32(header + 20, 0x77);
	put_be32(header + 24, loopback->stat_sn);
	put_be32(header + 36, pending->sequence++);
	put_be32(header + 40, pending->received);
	put_be32(header + 44,
		 (uint32_t)min_u64(pending->out_length - pending->received, BURST_BYTES));
	loopback->requested = true;
	transmit(loopback, header, NULL, 0);
}

static void send_data(struct loopback *loopback, struct pending *pending,
		      const struct loopback_command *command)
{
	for (size_t at = 0; at < command->in_length; at += SEGMENT_BYTES) {
		uint8_t header[48] = { ISCSI_DATA_IN };

		put_be32(header + 16, pending->tag);
		put_be32(header + 20, ISCSI_TAG_NONE);
		put_be32(header + 36, pending->sequence++);
		put_be32(header + 40, (uint32_t)at);
		transmit(loopback, header, command->in + at,
			 min_u64(command->in_length - at, SEGMENT_BYTES));
	}
}

static void send_response(struct loopback *loopback, struct pending *pending,
			  const struct loopback_command *command)
{
	uint8_t header[48] = { ISCSI_SCSI_RESPONSE, 0x80, 0, command->status };
	uint8_t sense[2 + sizeof(command->sense)];
	size_t rest = pending->in_capacity - command->in_length;

	put_be32(header + 16, pending->tag);
	put_be32(header + 24, loopback->stat_sn++);
	if (pending->reads && rest > 0) {
		header[1] |= pending->writes ? ISCSI_READ_UNDERFLOW : ISCSI_UNDERFLOW;
		put_be32(header + (pending->writes ? 40 : 44), (uint32_t)rest);
	}
	put_be16(sense, (uint16_t)command->sense_length);
	memcpy(sense + 2, command->sense, command->sense_length);
	transmit(loopback, header, sense, command->sense_length ? 2 + command->sense_length : 0);
}

static void execute(struct loopback *loopback, struct pending *pending)
{
	struct loopback_command command = {
		.cdb = pending->cdb,
		.cdb_length = pending->cdb_length,
		.out = pending->out,
		.out_length = pending->out_length,
		.in = calloc(1, pending->in_capacity + 1),
		.in_capacity = pending->in_capacity,
	};

	loopback->execute(loopback->context, &command);
	if (command.hang_up) {
		loopback->ended = true;
	} else {
		send_data(loopback, pending, &command);
		send_response(loopback, pending, &command);
	}
	free(command.in);
}

static void remove_first(struct loopback *loopback)
{
	struct pending *pending = loopback->first;

	loopback->first = pending->next;
	if (!loopback->first)
		loopback->last = &loopback->first;
	free(pending->out);
	free(pending);
}

static void *serve(void *context)
{
	struct loopback *loopback = context;

	while (!loopback->ended) {
		struct pending *pending = loopback->first;

		if (pending && pending->received == pending->out_length) {
			execute(loopback, pending);
			remove_first(loopback);
		} else if (pending && !loopback->requested) {
			request_data(loopback, pending);
		} else if (!take_pdu(loopback)) {
			break;
		}
	}
	shutdown(loopback->fd, SHUT_RDWR);
	return NULL;
}

struct loopback *loopback_start(loopback_execute *run, void *context, enum osd_version version,
				struct osd_client **client)
{
	const struct session_parameters parameters = {
		.immediate_data = true,
		.initial_r2t = true,
		.first_burst_bytes = 3000,
		.max_burst_bytes = BURST_BYTES,
		.target_segment_bytes = SEGMENT_BYTES,
		.initiator_segment_bytes = SEGMENT_BYTES,
		.cmd_sn = 1,
		.exp_stat_sn = 1,
		.max_cmd_sn = WINDOW,
	};
	const struct session_options options = { .queue_depth = 16, .timeout_ms = 20000 };
	struct loopback *loopback = calloc(1, sizeof(*loopback));
	struct session *session;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(session_create(fds[0], &parameters, &options, &session, NULL), 0);
	assert_int_equal(osd_client_on_session(session, version, client), 0);
	loopback->fd = fds[1];
	loopback->execute = run;
	loopback->context = context;
	loopback->stat_sn = 1;
	loopback->last = &loopback->first;
	assert_int_equal(pthread_create(&loopback->thread, NULL, serve, loopback), 0);
	return loopback;
}

void loopback_stop(struct loopback *loopback, struct osd_client *client)
{
	osd_client_disconnect(client);
	pthread_join(loopback->thread, NULL);
	while (loopback->first)
		remove_first(loopback);
	close(loopback->fd);
	free(loopback);
}

void loopback_fail(struct loopback_command *command, const struct osd_sense *sense)
{
	command->status = 2;
	command->sense_length = osd_sense_encode(sense, command->sense, sizeof(command->sense));
}
