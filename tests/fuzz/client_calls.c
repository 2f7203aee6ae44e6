/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Calls of osd_client.h, answered with what an input says; PDUs around it are right. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/check.h"
#include "client/client_private.h"
#include "client/collections.h"
#include "common/bytes.h"
#include "tests/fuzz/client_session.h"

#define CALLS_MAX   8
#define ANSWERS_MAX 24
#define BUFFER      8192

/* The other end, in the same thread: it gets its turn when the session looks at its clock. */
struct peer {
	int fd; /* -1: closed */
	struct fuzz_reader *input;
	uint8_t buffer[BUFFER];
	size_t filled;
	uint32_t stat_sn, cmd_sn;
	unsigned answers;
};

static void hang_up(struct peer *peer)
{
	if (peer->fd >= 0)
		close(peer->fd);
	peer->fd = -1;
}

static void transmit(struct peer *peer, const uint8_t header[ISCSI_BHS_BYTES], const uint8_t *data,
		     size_t length)
{
	uint8_t pdu[ISCSI_BHS_BYTES + 4096 + 4] = { 0 };

	memcpy(pdu, header, ISCSI_BHS_BYTES);
	put_be16(pdu + 6, (uint16_t)length);
	put_be32(pdu + 28, peer->cmd_sn);
	put_be32(pdu + 32, peer->cmd_sn + 31);
	if (length > 0)
		memcpy(pdu + ISCSI_BHS_BYTES, data, length);
	length = ISCSI_BHS_BYTES + align_up(length, 4);
	if (send(peer->fd, pdu, length, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)length)
		hang_up(peer);
}

/*
 * Answers a command. In the input: status, where bit 7 means that the data go through as sense data
 * does not; bytes (2); the bytes: Data-In, or sense data with CHECK CONDITION.
 */
static void answer(struct peer *peer, const uint8_t *command)
{
	uint8_t header[ISCSI_BHS_BYTES] = { 0 }, how = fuzz_take8(peer->input), sense[258];
	size_t taken, wanted = command[1] & ISCSI_COMMAND_READ ? get_be32(command + 20) : 0;
	const uint8_t *data = fuzz_take(peer->input, fuzz_take16(peer->input) & 0xFFF, &taken);
	bool is_sense = (how & 0x7F) == 2;
	size_t in = is_sense ? 0 : min_u64(taken, wanted);

	if (command[1] & ISCSI_COMMAND_WRITE)
		in = 0; /* the expected length in the header is that of Data-Out */
	if (in > 0) {
		header[0] = ISCSI_DATA_IN;
		header[1] = ISCSI_FINAL;
		memcpy(header + 16, command + 16, 4);
		put_be32(header + 20, ISCSI_TAG_NONE);
		transmit(peer, header, data, in);
		memset(header, 0, sizeof(header));
	}
	header[0] = ISCSI_SCSI_RESPONSE;
	header[1] = ISCSI_FINAL;
	header[3] = how & 0x7F;
	memcpy(header + 16, command + 16, 4);
	put_be32(header + 24, peer->stat_sn++);
	if (wanted > in && !(command[1] & ISCSI_COMMAND_WRITE)) {
		header[1] |= ISCSI_UNDERFLOW;
		put_be32(header + 44, (uint32_t)(wanted - in));
	}
	taken = is_sense ? min_u64(taken, 256) : 0;
	put_be16(sense, (uint16_t)taken);
	if (taken > 0)
		memcpy(sense + 2, data, taken);
	if (peer->fd >= 0)
		transmit(peer, header, sense, is_sense ? taken + 2 : 0);
}

/*
 * Bidirectional and writing commands have their answer in Data-In of which the response does not
 * say how much there is: the space for it is in the additional header segment.
 */
static void answer_bidirectional(struct peer *peer, const uint8_t *command, size_t ahs)
{
	const uint8_t *segments = command + ISCSI_BHS_BYTES;
	uint8_t header[ISCSI_BHS_BYTES] = { 0 }, how = fuzz_take8(peer->input);
	size_t taken, wanted = 0, in;
	const uint8_t *data = fuzz_take(peer->input, fuzz_take16(peer->input) & 0xFFF, &taken);

	for (size_t at = 0; at + 8 <= ahs; at += align_up(3 + (size_t)get_be16(segments + at), 4))
		if (segments[at + 2] == 2)
			wanted = get_be32(segments + at + 4);
	in = min_u64(taken, wanted);
	if (in > 0) {
		header[0] = ISCSI_DATA_IN;
		header[1] = ISCSI_FINAL;
		memcpy(header + 16, command + 16, 4);
		put_be32(header + 20, ISCSI_TAG_NONE);
		transmit(peer, header, data, in);
		memset(header, 0, sizeof(header));
	}
	header[0] = ISCSI_SCSI_RESPONSE;
	header[1] = (uint8_t)(ISCSI_FINAL | (wanted > in ? ISCSI_READ_UNDERFLOW : 0));
	header[3] = how & 0x7F;
	memcpy(header + 16, command + 16, 4);
	put_be32(header + 24, peer->stat_sn++);
	put_be32(header + 40, (uint32_t)(wanted - in));
	if (peer->fd >= 0)
		transmit(peer, header, NULL, 0);
}

/* The next PDU of the session, if it is whole; its length, or 0. */
static size_t whole_pdu(const struct peer *peer)
{
	size_t length = ISCSI_BHS_BYTES;

	if (peer->filled < length)
		return 0;
	length += 4 * (size_t)peer->buffer[4] + align_up(get_be16(peer->buffer + 6), 4);
	return peer->filled < length ? 0 : length;
}

static uint64_t take_turn(void *context)
{
	struct peer *peer = context;
	ssize_t got;
	size_t length;

	if (peer->fd < 0)
		return 1;
	got = recv(peer->fd, peer->buffer + peer->filled, BUFFER - peer->filled, MSG_DONTWAIT);
	peer->filled += got > 0 ? (size_t)got : 0;
	while (peer->fd >= 0 && (length = whole_pdu(peer)) > 0) {
		const uint8_t *pdu = peer->buffer;
		bool both = pdu[1] & ISCSI_COMMAND_WRITE && pdu[1] & ISCSI_COMMAND_READ;

		if ((pdu[0] & 0x3F) == ISCSI_SCSI_COMMAND) {
			peer->cmd_sn = get_be32(pdu + 24) + 1;
			if (peer->input->left == 0 || peer->answers++ == ANSWERS_MAX)
				hang_up(peer);
			else if (both)
				answer_bidirectional(peer, pdu, 4 * (size_t)pdu[4]);
			else
				answer(peer, pdu);
		}
		peer->filled -= length;
		memmove(peer->buffer, peer->buffer + length, peer->filled);
	}
	/* A PDU that is larger than the buffer will never be whole. */
	if (peer->filled == BUFFER)
		hang_up(peer);
	return 1;
}

static struct osd_client *open_client(struct peer *peer, enum osd_version version)
{
	struct session_parameters parameters = {
		.immediate_data = true,
		.initial_r2t = true,
		.first_burst_bytes = 4096,
		.max_burst_bytes = 4096,
		.target_segment_bytes = 4096,
		.initiator_segment_bytes = 8192,
		.cmd_sn = 1,
		.exp_stat_sn = 1,
		.max_cmd_sn = 32,
	};
	struct session_options options = {
		.queue_depth = 4,
		.timeout_ms = 1000,
		.clock_ms = take_turn,
		.clock_context = peer,
	};
	struct osd_client *client;
	struct session *session;
	int fds[2];

	fuzz_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	peer->fd = fds[1];
	peer->stat_sn = 1;
	fuzz_check(session_create(fds[0], &parameters, &options, &session, NULL) == 0);
	fuzz_check(osd_client_on_session(session, version, &client) == 0);
	return client;
}

/* ---- calls ---- */

static int each_id(void *context, uint64_t id)
{
	uint64_t *last = context;

	fuzz_check(id >= *last);
	*last = id;
	return 0;
}

static int each_attribute(void *context, const struct osd_attribute *attribute)
{
	(void)context;
	fuzz_check(attribute->present <= attribute->length);
	fuzz_touch(attribute->value, attribute->present);
	return 0;
}

static int each_item(void *context, const uint8_t *items, size_t length)
{
	struct osd_item_reader reader;
	struct osd_item item;

	(void)context;
	osd_items_read(&reader, items, length);
	while (osd_item_next(&reader, &item) == 1)
		fuzz_touch(item.value, item.length);
	return 0;
}

static int each_damaged(void *context, struct osd_client_address address, uint16_t type)
{
	(void)context;
	(void)address;
	(void)type;
	return 0;
}

/* What came to the standard's first commands. */
static int call_more(struct osd_client *client, unsigned which, struct osd_client_error *error)
{
	static const struct osd_client_criterion criterion = { .page = 1, .number = 0x82 };
	static const struct osd_client_moment named = { .kind = OSD_CLIENT_AT_NAME,
							.name = "scene" };
	struct osd_client_address object = { .partition = 0x10000, .object = 0x10000 };
	struct osd_client_checked checked;
	uint64_t number, last = 0;
	uint16_t version;

	switch (which) {
	case 10:
		return osd_client_list_collection(client, object, 0, each_id, &last, error);
	case 11:
		return osd_client_query(client, object, true, &criterion, 1, each_id, &last, error);
	case 12:
		return osd_client_check(client, object, each_damaged, NULL, &checked, error);
	case 13:
		return osd_client_execute(client, OSD_FUNCTION_VERSIONS, object, NULL, 0, each_item,
					  NULL, error);
	case 14:
		return osd_client_resolve(client, object, &named, &version, error);
	case 15:
		return osd_client_copy(client, object, 0x10001, 0, &number, error);
	default:
		return osd_client_remove_members(client, object, error);
	}
}

static int call(struct osd_client *client, uint8_t which, struct osd_client_error *error)
{
	static const struct osd_client_value gets[] = {
		{ .page = 1, .number = 0x82, .length = 8 },
		{ .page = 0xFFFFFFFF, .number = 0xFFFFFFFF, .length = 200 },
	};
	struct osd_client_address object = { .partition = 0x10000, .object = 0x10000 };
	struct osd_inquiry_data inquiry;
	uint8_t data[64];
	uint64_t number, last = 0;
	uint32_t length;
	size_t got;
	int result;

	switch (which % 17) {
	case 0:
		return osd_client_list(client, object, 0, each_id, &last, error);
	case 1:
		return osd_client_get_attributes(client, object, gets, 2, each_attribute, NULL,
						 error);
	case 2:
		return osd_client_get_number(client, object, 1, 0x82, &number, error);
	case 3:
		result = osd_client_read(client, object, 0, data, sizeof(data), &got, error);
		fuzz_check(result < 0 || got <= sizeof(data));
		return result;
	case 4:
		return osd_client_create(client, 0x10000, 0, 3, &number, NULL, error);
	case 5:
		return osd_client_create_partition(client, 0, 0, &number, error);
	case 6:
		return osd_client_append(client, object, "data", 4, &number, error);
	case 7:
		return osd_client_inquiry(client, &inquiry, error);
	case 8:
		return osd_client_get_attribute(client, object, 1, 9, data, sizeof(data), &length,
						error);
	case 9:
		return osd_client_remove(client, object, error);
	default:
		return call_more(client, which % 17, error);
	}
}

void fuzz_client_calls(struct fuzz_reader *input)
{
	static struct peer peer;
	enum osd_version version = fuzz_take8(input) & 1 ? OSD_1 : OSD_2;
	struct osd_client *client;

	memset(&peer, 0, sizeof(peer));
	peer.input = input;
	client = open_client(&peer, version);
	for (int i = 0; i < CALLS_MAX && input->left > 0 && peer.fd >= 0; i++) {
		struct osd_client_error error = { 0 };
		int result = call(client, fuzz_take8(input), &error);

		fuzz_check(result <= 0);
		fuzz_check(result == 0 || error.sentence.text[0] != '\0');
	}
	hang_up(&peer);
	osd_client_disconnect(client);
}

/* ---- status and sense data ---- */

void fuzz_client_outcome(struct fuzz_reader *input)
{
	static struct osd_request request;
	size_t taken;
	const uint8_t *sense;

	memset(&request, 0, sizeof(request));
	request.cdb.version = fuzz_take8(input) & 1 ? OSD_1 : OSD_2;
	request.cdb.action = (uint16_t)(OSD_OBJECT_STRUCTURE_CHECK + fuzz_take8(input) % 0x33);
	request.cdb.partition = (uint64_t)fuzz_take16(input) << 48 | fuzz_take16(input);
	request.cdb.object = fuzz_take16(input);
	request.buffer_length = fuzz_take8(input);
	request.task.in_received = fuzz_take8(input);
	request.task.status = fuzz_take8(input);
	sense = fuzz_take(input, SESSION_SENSE_BYTES_MAX, &taken);
	if (taken > 0)
		memcpy(request.task.sense, sense, taken);
	request.task.sense_length = taken;
	outcome_decode(&request, NULL);
	fuzz_check(request.received <= request.buffer_length);
	fuzz_check(request.error.result <= 0);
	fuzz_check((request.error.result < 0) == (request.error.sentence.text[0] != '\0'));
}
