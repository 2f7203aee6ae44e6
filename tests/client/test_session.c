/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The full-feature phase with a target that keeps to the protocol. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "tests/client/peer.h"

static struct sent_pdu pdu;
static uint8_t data[1 << 20], buffer[1 << 20];

static int fill(void **state)
{
	(void)state;
	srand(1);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)rand();
	return 0;
}

static void test_a_command_without_data_is_sent_and_answered(void **state)
{
	struct counted_task task;
	struct peer peer;

	(void)state;
	peer_open(&peer, &PEER_PARAMETERS, 4);
	counted_task_make(&task, NULL, 0, NULL, 0);
	assert_int_equal(session_submit(peer.session, &task.task), 0);
	peer_take(&peer, &pdu);
	assert_int_equal(pdu.header[0], ISCSI_SCSI_COMMAND);
	assert_int_equal(pdu.header[1], 0x81);
	assert_int_equal(sent_cmd_sn(&pdu), 0xFFFFFFFE);
	assert_int_equal(get_be32(pdu.header + 28), 0xFFFFFFFF);
	assert_int_equal(peer_respond(&peer, sent_tag(&pdu), 0), 0);
	assert_int_equal(task.done, 1);
	assert_int_equal(task.task.result, 0);
	assert_int_equal(task.task.status, 0);
	assert_int_equal(session_outstanding(peer.session), 0);
	peer_close(&peer);
	assert_int_equal(task.done, 1);
}

static void test_numbers_go_on_over_their_wrap(void **state)
{
	struct counted_task task;
	struct peer peer;

	(void)state;
	peer_open(&peer, &PEER_PARAMETERS, 4);
	for (uint32_t i = 0; i < 5; i++) {
		counted_task_make(&task, NULL, 0, NULL, 0);
		session_submit(peer.session, &task.task);
		peer_take(&peer, &pdu);
		assert_int_equal(sent_cmd_sn(&pdu), 0xFFFFFFFE + i);
		assert_int_equal(get_be32(pdu.header + 28), 0xFFFFFFFF + i);
		assert_int_equal(peer_respond(&peer, sent_tag(&pdu), 0), 0);
		assert_int_equal(task.done, 1);
	}
	peer_close(&peer);
}

static void test_short_data_travels_with_its_command(void **state)
{
	struct counted_task task;
	struct peer peer;

	(void)state;
	peer_open(&peer, &PEER_PARAMETERS, 4);
	counted_task_make(&task, data, 101, NULL, 0);
	session_submit(peer.session, &task.task);
	peer_take(&peer, &pdu);
	assert_int_equal(pdu.header[1], 0xa1);
	assert_int_equal(pdu.data_length, 101);
	assert_memory_equal(pdu.data, data, 101);
	peer_close(&peer);
}

static void test_without_immediate_data_everything_waits_for_an_r2t(void **state)
{
	struct session_parameters parameters = PEER_PARAMETERS;
	struct counted_task task;
	struct peer peer;

	(void)state;
	parameters.immediate_data = false;
	peer_open(&peer, &parameters, 4);
	counted_task_make(&task, data, 101, NULL, 0);
	session_submit(peer.session, &task.task);
	peer_take(&peer, &pdu);
	assert_int_equal(pdu.data_length, 0);
	assert_int_equal(pdu.header[1], 0xa1);
	assert_int_equal(get_be32(pdu.header + 20), 101);
	peer_takes_nothing(&peer);
	assert_int_equal(peer_r2t(&peer, sent_tag(&pdu), 5, 0, 0, 101), 0);
	peer_take(&peer, &pdu);
	assert_int_equal(pdu.header[0], ISCSI_DATA_OUT);
	assert_int_equal(pdu.header[1], 0x80);
	assert_int_equal(get_be32(pdu.header + 20), 5);
	assert_memory_equal(pdu.data, data, 101);
	peer_close(&peer);
}

/* Takes a burst of Data-Out from `offset`, in segments of the agreed size. */
static void take_burst(struct peer *peer, uint32_t transfer_tag, uint32_t offset, uint32_t length)
{
	uint32_t sequence = 0, end = offset + length;

	while (offset < end) {
		uint32_t expected = end - offset < 8192 ? end - offset : 8192;

		peer_take(peer, &pdu);
		assert_int_equal(pdu.header[0], ISCSI_DATA_OUT);
		assert_int_equal(get_be32(pdu.header + 20), transfer_tag);
		assert_int_equal(get_be32(pdu.header + 36), sequence++);
		assert_int_equal(get_be32(pdu.header + 40), offset);
		assert_int_equal(pdu.data_length, expected);
		assert_memory_equal(pdu.data, data + offset, expected);
		offset += expected;
		assert_int_equal(pdu.header[1], offset == end ? 0x80 : 0);
	}
}

static void test_a_long_write_spans_r2t_bursts(void **state)
{
	struct counted_task task;
	struct peer peer;
	uint32_t tag, at = 8192, sequence = 0;

	(void)state;
	peer_open(&peer, &PEER_PARAMETERS, 4);
	counted_task_make(&task, NULL, 0, NULL, 0);
	/* In pieces, none of them aligned to anything. */
	task.task.out[0] = (struct iovec){ data, 1 };
	task.task.out[1] = (struct iovec){ data + 1, 300001 };
	task.task.out[2] = (struct iovec){ data + 300002, 0 };
	task.task.out[3] = (struct iovec){ data + 300002, 699998 };
	task.task.out_count = 4;
	assert_int_equal(session_submit(peer.session, &task.task), 0);
	peer_take(&peer, &pdu);
	tag = sent_tag(&pdu);
	assert_int_equal(pdu.data_length, 8192);
	assert_memory_equal(pdu.data, data, 8192);
	while (at < 1000000) {
		uint32_t length = 1000000 - at < 262144 ? 1000000 - at : 262144;

		assert_int_equal(peer_r2t(&peer, tag, 70 + sequence, sequence, at, length), 0);
		take_burst(&peer, 70 + sequence, at, length);
		at += length;
		sequence++;
	}
	peer_takes_nothing(&peer);
	peer_respond(&peer, tag, 0);
	assert_int_equal(task.done, 1);
	assert_int_equal(task.task.result, 0);
	peer_close(&peer);
}

static void test_with_initial_r2t_off_the_first_burst_is_unsolicited(void **state)
{
	struct session_parameters parameters = PEER_PARAMETERS;
	struct counted_task task;
	struct peer peer;

	(void)state;
	parameters.initial_r2t = false;
	peer_open(&peer, &parameters, 4);
	counted_task_make(&task, data, 100000, NULL, 0);
	session_submit(peer.session, &task.task);
	peer_take(&peer, &pdu);
	assert_int_equal(pdu.header[1], 0x21);
	assert_int_equal(pdu.data_length, 8192);
	take_burst(&peer, ISCSI_TAG_NONE, 8192, 65536 - 8192);
	peer_takes_nothing(&peer);
	assert_int_equal(peer_r2t(&peer, sent_tag(&pdu), 3, 0, 65536, 100000 - 65536), 0);
	take_burst(&peer, 3, 65536, 100000 - 65536);
	peer_close(&peer);
}

static void test_data_in_fills_the_room_across_its_segments(void **state)
{
	struct counted_task task;
	struct peer peer;
	uint32_t tag, at = 0, sequence = 0;

	(void)state;
	memset(buffer, 0, sizeof(buffer));
	peer_open(&peer, &PEER_PARAMETERS, 4);
	counted_task_make(&task, NULL, 0, NULL, 0);
	task.task.in[0] = (struct iovec){ buffer, 3 };
	task.task.in[1] = (struct iovec){ buffer + 3, 499997 };
	task.task.in[2] = (struct iovec){ buffer + 500000, 123457 };
	task.task.in_count = 3;
	session_submit(peer.session, &task.task);
	peer_take(&peer, &pdu);
	tag = sent_tag(&pdu);
	assert_int_equal(pdu.header[1], 0xc1);
	assert_int_equal(get_be32(pdu.header + 20), 623457);
	for (uint32_t length = 1; at < 623457; length = length * 5 + 1) {
		if (length > 262144)
			length = 262144;
		if (length > 623457 - at)
			length = 623457 - at;
		assert_int_equal(peer_data_in(&peer, tag, sequence++, at, data + at, length), 0);
		at += length;
	}
	assert_int_equal(task.done, 0);
	peer_respond(&peer, tag, 0);
	assert_int_equal(task.done, 1);
	assert_int_equal(task.task.result, 0);
	assert_int_equal(task.task.in_received, 623457);
	assert_memory_equal(buffer, data, 623457);
	assert_int_equal(buffer[623457], 0);
	peer_close(&peer);
}

static void test_the_last_data_in_may_bring_the_status_and_residual(void **state)
{
	struct counted_task task;
	struct peer peer;
	uint8_t header[48];

	(void)state;
	peer_open(&peer, &PEER_PARAMETERS, 4);
	counted_task_make(&task, NULL, 0, buffer, 100);
	session_submit(peer.session, &task.task);
	peer_take(&peer, &pdu);
	peer_header(&peer, header, ISCSI_DATA_IN,
		    ISCSI_FINAL | ISCSI_UNDERFLOW | ISCSI_DATA_IN_STATUS, sent_tag(&pdu));
	put_be32(header + 44, 60);
	peer.stat_sn++;
	assert_int_equal(peer_give(&peer, header, data, 40), 0);
	assert_int_equal(task.done, 1);
	assert_int_equal(task.task.result, 0);
	assert_int_equal(task.task.in_received, 40);
	assert_int_equal(task.task.in_residual, 60);
	assert_memory_equal(buffer, data, 40);
	peer_close(&peer);
}

static void test_a_bidirectional_command_has_both_residuals_and_one_numbering(void **state)
{
	struct session_parameters parameters = PEER_PARAMETERS;
	struct counted_task task;
	struct peer peer;
	uint8_t header[48];
	uint32_t tag;

	(void)state;
	parameters.immediate_data = false;
	peer_open(&peer, &parameters, 4);
	counted_task_make(&task, data, 50, buffer, 100);
	session_submit(peer.session, &task.task);
	peer_take(&peer, &pdu);
	tag = sent_tag(&pdu);
	assert_int_equal(pdu.header[1], 0xe1);
	assert_int_equal(pdu.header[4], 2);
	assert_int_equal(get_be32(pdu.header + 20), 50);
	assert_int_equal(get_be32(pdu.header + 52), 100);
	assert_int_equal(peer_r2t(&peer, tag, 1, 0, 0, 40), 0);
	assert_int_equal(peer_data_in(&peer, tag, 1, 0, data + 500, 30), 0);
	peer_header(&peer, header, ISCSI_SCSI_RESPONSE,
		    ISCSI_FINAL | ISCSI_UNDERFLOW | ISCSI_READ_UNDERFLOW, tag);
	put_be32(header + 40, 70);
	put_be32(header + 44, 10);
	peer.stat_sn++;
	assert_int_equal(peer_give(&peer, header, NULL, 0), 0);
	assert_int_equal(task.done, 1);
	assert_int_equal(task.task.result, 0);
	assert_int_equal(task.task.in_received, 30);
	assert_int_equal(task.task.in_residual, 70);
	assert_int_equal(task.task.out_residual, 10);
	assert_memory_equal(buffer, data + 500, 30);
	peer_close(&peer);
}

static void test_an_overflow_is_a_negative_residual(void **state)
{
	struct counted_task task;
	struct peer peer;
	uint8_t header[48];

	(void)state;
	peer_open(&peer, &PEER_PARAMETERS, 4);
	counted_task_make(&task, NULL, 0, buffer, 8);
	session_submit(peer.session, &task.task);
	peer_take(&peer, &pdu);
	peer_data_in(&peer, sent_tag(&pdu), 0, 0, data, 8);
	peer_header(&peer, header, ISCSI_SCSI_RESPONSE, ISCSI_FINAL | ISCSI_OVERFLOW,
		    sent_tag(&pdu));
	put_be32(header + 44, 1000);
	peer.stat_sn++;
	assert_int_equal(peer_give(&peer, header, NULL, 0), 0);
	assert_int_equal(task.task.result, 0);
	assert_int_equal(task.task.in_residual, -1000);
	peer_close(&peer);
}

static void test_sense_arrives_with_its_status(void **state)
{
	static const uint8_t sense[] = { 0x72, 5, 0x24, 0, 0, 0, 0, 0 };
	struct counted_task task;
	struct peer peer;

	(void)state;
	peer_open(&peer, &PEER_PARAMETERS, 4);
	counted_task_make(&task, NULL, 0, buffer, 8);
	session_submit(peer.session, &task.task);
	peer_take(&peer, &pdu);
	assert_int_equal(peer_respond_sense(&peer, sent_tag(&pdu), sense, sizeof(sense)), 0);
	assert_int_equal(task.done, 1);
	assert_int_equal(task.task.result, 0);
	assert_int_equal(task.task.status, 2);
	assert_int_equal(task.task.sense_length, sizeof(sense));
	assert_memory_equal(task.task.sense, sense, sizeof(sense));
	peer_close(&peer);
}

static void test_the_queue_depth_bounds_commands_in_flight(void **state)
{
	struct counted_task tasks[5];
	uint32_t tags[5];
	struct peer peer;

	(void)state;
	peer_open(&peer, &PEER_PARAMETERS, 3);
	for (int i = 0; i < 5; i++) {
		counted_task_make(&tasks[i], NULL, 0, NULL, 0);
		session_submit(peer.session, &tasks[i].task);
	}
	for (int i = 0; i < 3; i++) {
		peer_take(&peer, &pdu);
		tags[i] = sent_tag(&pdu);
	}
	peer_takes_nothing(&peer);
	/* Answers may come in any order; each makes space for one. */
	assert_int_equal(peer_respond(&peer, tags[1], 0), 0);
	assert_int_equal(tasks[1].done, 1);
	assert_int_equal(tasks[0].done + tasks[2].done, 0);
	peer_take(&peer, &pdu);
	assert_int_equal(sent_cmd_sn(&pdu), 0xFFFFFFFE + 3);
	assert_int_not_equal(sent_tag(&pdu), tags[1]);
	peer_takes_nothing(&peer);
	peer_close(&peer);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(tasks[i].done, 1);
		assert_int_equal(tasks[i].task.result, i == 1 ? 0 : -ECANCELED);
	}
}

static void test_a_closed_window_holds_commands_back_until_it_opens(void **state)
{
	struct session_parameters parameters = PEER_PARAMETERS;
	struct counted_task tasks[3];
	struct peer peer;
	uint8_t header[48];

	(void)state;
	parameters.max_cmd_sn = parameters.cmd_sn;
	peer_open(&peer, &parameters, 8);
	for (int i = 0; i < 3; i++) {
		counted_task_make(&tasks[i], NULL, 0, NULL, 0);
		session_submit(peer.session, &tasks[i].task);
	}
	peer_take(&peer, &pdu);
	peer_takes_nothing(&peer);
	peer_respond(&peer, sent_tag(&pdu), 0);
	peer_takes_nothing(&peer);
	/* A NOP-In that asks for nothing opens the window by two. */
	peer.max_cmd_sn += 2;
	peer_header(&peer, header, ISCSI_NOP_IN, ISCSI_FINAL, ISCSI_TAG_NONE);
	assert_int_equal(peer_give(&peer, header, NULL, 0), 0);
	peer_take(&peer, &pdu);
	peer_take(&peer, &pdu);
	assert_int_equal(sent_cmd_sn(&pdu), 0);
	peer_close(&peer);
}

static void test_a_window_never_goes_back(void **state)
{
	struct counted_task task;
	struct peer peer;
	uint8_t header[48];

	(void)state;
	peer_open(&peer, &PEER_PARAMETERS, 8);
	/* This would close it. */
	peer.max_cmd_sn -= 128;
	peer_header(&peer, header, ISCSI_NOP_IN, ISCSI_FINAL, ISCSI_TAG_NONE);
	assert_int_equal(peer_give(&peer, header, NULL, 0), 0);
	counted_task_make(&task, NULL, 0, NULL, 0);
	session_submit(peer.session, &task.task);
	peer_take(&peer, &pdu);
	peer_close(&peer);
}

static void test_a_ping_is_answered_with_its_tag(void **state)
{
	struct peer peer;
	uint8_t header[48];

	(void)state;
	peer_open(&peer, &PEER_PARAMETERS, 8);
	peer_header(&peer, header, ISCSI_NOP_IN, ISCSI_FINAL, ISCSI_TAG_NONE);
	put_be32(header + 20, 0x1234);
	header[9] = 1;
	assert_int_equal(peer_give(&peer, header, "ping", 4), 0);
	peer_take(&peer, &pdu);
	assert_int_equal(pdu.header[0], 0x40);
	assert_int_equal(pdu.header[9], 1);
	assert_int_equal(get_be32(pdu.header + 16), ISCSI_TAG_NONE);
	assert_int_equal(get_be32(pdu.header + 20), 0x1234);
	peer_close(&peer);
}

static void test_after_an_announced_logout_no_command_is_taken(void **state)
{
	struct counted_task task, late;
	struct peer peer;
	uint8_t header[48];

	(void)state;
	peer_open(&peer, &PEER_PARAMETERS, 8);
	counted_task_make(&task, NULL, 0, NULL, 0);
	session_submit(peer.session, &task.task);
	peer_take(&peer, &pdu);
	peer_header(&peer, header, ISCSI_ASYNC_MESSAGE, ISCSI_FINAL, ISCSI_TAG_NONE);
	header[36] = 1;
	peer.stat_sn++;
	assert_int_equal(peer_give(&peer, header, NULL, 0), 0);
	counted_task_make(&late, NULL, 0, NULL, 0);
	assert_int_equal(session_submit(peer.session, &late.task), -ENOTCONN);
	assert_int_equal(late.done, 0);
	/* What is under way still ends well. */
	assert_int_equal(peer_respond(&peer, sent_tag(&pdu), 0), 0);
	assert_int_equal(task.task.result, 0);
	assert_int_equal(task.done, 1);
	peer_close(&peer);
}

struct chain {
	struct session_task task;
	struct session *session;
	unsigned left;
};

static void submit_again(struct session_task *task)
{
	struct chain *chain = (struct chain *)task;

	if (--chain->left > 0)
		assert_int_equal(session_submit(chain->session, task), 0);
}

static void test_a_command_may_be_submitted_from_a_completion(void **state)
{
	struct chain chain = { .left = 3,
			       .task = { .cdb = { 0 }, .cdb_length = 6, .done = submit_again } };
	struct peer peer;

	(void)state;
	peer_open(&peer, &PEER_PARAMETERS, 1);
	chain.session = peer.session;
	session_submit(peer.session, &chain.task);
	for (int i = 0; i < 3; i++) {
		peer_take(&peer, &pdu);
		peer_respond(&peer, sent_tag(&pdu), 0);
	}
	assert_int_equal(chain.left, 0);
	assert_int_equal(session_outstanding(peer.session), 0);
	peer_close(&peer);
}

static void test_a_push_sends_and_calls_nobody(void **state)
{
	struct chain chain = { .left = 1,
			       .task = { .cdb = { 0 }, .cdb_length = 6, .done = submit_again } };
	uint8_t sent[ISCSI_BHS_BYTES];
	struct peer peer;

	(void)state;
	peer_open(&peer, &PEER_PARAMETERS, 1);
	chain.session = peer.session;
	session_submit(peer.session, &chain.task);
	assert_int_equal(recv(peer.fd, sent, sizeof(sent), MSG_DONTWAIT), -1);
	assert_int_equal(session_push(peer.session), 0);
	assert_int_equal(recv(peer.fd, sent, sizeof(sent), MSG_DONTWAIT), sizeof(sent));
	assert_int_equal(session_events(peer.session), POLLIN);
	assert_int_equal(chain.left, 1);
	assert_int_equal(peer_respond(&peer, get_be32(sent + 16), 0), 0);
	assert_int_equal(chain.left, 0);
	/* A dead session says so, and the command learns it from the step. */
	peer_hang_up(&peer);
	assert_true(session_step(peer.session, 0) < 0);
	assert_true(session_push(peer.session) < 0);
	peer_close(&peer);
}

static void test_bytes_may_arrive_one_by_one(void **state)
{
	struct counted_task task;
	struct peer peer;
	uint8_t header[48], stream[48 + 8];

	(void)state;
	memset(buffer, 0, 16);
	peer_open(&peer, &PEER_PARAMETERS, 1);
	counted_task_make(&task, NULL, 0, buffer, 5);
	session_submit(peer.session, &task.task);
	peer_take(&peer, &pdu);
	peer_header(&peer, header, ISCSI_DATA_IN, ISCSI_FINAL | ISCSI_DATA_IN_STATUS,
		    sent_tag(&pdu));
	header[7] = 5;
	memcpy(stream, header, 48);
	memcpy(stream + 48, "hello\0\0\0", 8);
	for (size_t i = 0; i < sizeof(stream); i++) {
		assert_int_equal(task.done, 0);
		assert_int_equal(send(peer.fd, stream + i, 1, 0), 1);
		assert_int_equal(session_step(peer.session, 0), 0);
	}
	assert_int_equal(task.done, 1);
	assert_int_equal(task.task.result, 0);
	assert_memory_equal(buffer, "hello\0\0\0", 8);
	peer_close(&peer);
}

static void test_an_answered_command_keeps_its_buffers_until_they_are_sent(void **state)
{
	struct session_parameters parameters = PEER_PARAMETERS;
	struct counted_task tasks[16], *early = NULL;
	struct peer peer;

	(void)state;
	parameters.initial_r2t = false;
	parameters.first_burst_bytes = 262144;
	peer_open(&peer, &parameters, 16);
	for (int i = 0; i < 16; i++) {
		counted_task_make(&tasks[i], data, 262144, NULL, 0);
		session_submit(peer.session, &tasks[i].task);
	}
	/*
	 * The target reads nothing: the socket fills, and the session still has PDUs of some
	 * command to send.
	 */
	session_step(peer.session, 0);
	assert_true(session_events(peer.session) & POLLOUT);
	for (int i = 0; i < 16; i++)
		if (tasks[i].task.batched > 0)
			early = &tasks[i];
	assert_non_null(early);
	assert_int_equal(peer_respond(&peer, early->task.tag, 2), 0);
	assert_int_equal(early->done, 0);
	while (early->done == 0)
		peer_take(&peer, &pdu);
	assert_int_equal(early->task.result, 0);
	assert_int_equal(early->task.status, 2);
	peer_close(&peer);
}

static void test_impossible_options_and_lengths_are_refused(void **state)
{
	struct counted_task task;
	struct peer peer;

	(void)state;
	peer_open(&peer, &PEER_PARAMETERS, 1);
	counted_task_make(&task, NULL, 0, NULL, 0);
	task.task.cdb_length = 0;
	assert_int_equal(session_submit(peer.session, &task.task), -EINVAL);
	task.task.cdb_length = ISCSI_CDB_BYTES_MAX + 1;
	assert_int_equal(session_submit(peer.session, &task.task), -EINVAL);
	task.task.cdb_length = 6;
	task.task.in[0] = (struct iovec){ buffer, (size_t)INT32_MAX + 1 };
	task.task.in_count = 1;
	assert_int_equal(session_submit(peer.session, &task.task), -EINVAL);
	task.task.in_count = SESSION_SEGMENTS_MAX + 1;
	assert_int_equal(session_submit(peer.session, &task.task), -EINVAL);
	assert_int_equal(session_outstanding(peer.session), 0);
	peer_close(&peer);
	assert_int_equal(task.done, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_command_without_data_is_sent_and_answered),
		cmocka_unit_test(test_numbers_go_on_over_their_wrap),
		cmocka_unit_test(test_short_data_travels_with_its_command),
		cmocka_unit_test(test_without_immediate_data_everything_waits_for_an_r2t),
		cmocka_unit_test(test_a_long_write_spans_r2t_bursts),
		cmocka_unit_test(test_with_initial_r2t_off_the_first_burst_is_unsolicited),
		cmocka_unit_test(test_data_in_fills_the_room_across_its_segments),
		cmocka_unit_test(test_the_last_data_in_may_bring_the_status_and_residual),
		cmocka_unit_test(test_a_bidirectional_command_has_both_residuals_and_one_numbering),
		cmocka_unit_test(test_an_overflow_is_a_negative_residual),
		cmocka_unit_test(test_sense_arrives_with_its_status),
		cmocka_unit_test(test_the_queue_depth_bounds_commands_in_flight),
		cmocka_unit_test(test_a_closed_window_holds_commands_back_until_it_opens),
		cmocka_unit_test(test_a_window_never_goes_back),
		cmocka_unit_test(test_a_ping_is_answered_with_its_tag),
		cmocka_unit_test(test_after_an_announced_logout_no_command_is_taken),
		cmocka_unit_test(test_a_command_may_be_submitted_from_a_completion),
		cmocka_unit_test(test_a_push_sends_and_calls_nobody),
		cmocka_unit_test(test_bytes_may_arrive_one_by_one),
		cmocka_unit_test(test_an_answered_command_keeps_its_buffers_until_they_are_sent),
		cmocka_unit_test(test_impossible_options_and_lengths_are_refused),
	};

	return cmocka_run_group_tests(tests, fill, NULL);
}
