/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Targets that break the protocol: the session ends with a reason, and no byte lands where it must
 * not.
 */
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
#include "tests/client/peer_scene.h"

static struct sent_pdu pdu;
static uint8_t data[300000];

static void test_more_data_than_room_is_refused(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, false, true);
	peer_data_in(&scene.peer, scene.tag, 0, 0, data, PEER_SCENE_BYTES + 1);
	peer_scene_expect_end(&scene, -EPROTO, "more data");
}

static void test_more_data_than_is_left_is_refused(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, false, true);
	assert_int_equal(peer_data_in(&scene.peer, scene.tag, 0, 0, data, PEER_SCENE_BYTES - 1), 0);
	peer_data_in(&scene.peer, scene.tag, 1, PEER_SCENE_BYTES - 1, data, 2);
	peer_scene_expect_end(&scene, -EPROTO, "more data");
}

static void test_data_out_of_order_is_refused(void **state)
{
	static const uint32_t offsets[] = {
		1, 8, PEER_SCENE_BYTES, PEER_SCENE_BYTES + 1, 0x7fffffff, 0xffffffff, 0xfffffff8
	};

	(void)state;
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		struct peer_scene scene;

		peer_scene_set(&scene, false, true);
		peer_data_in(&scene.peer, scene.tag, 0, offsets[i], data, 8);
		peer_scene_expect_end(&scene, -EPROTO, "out of order");
	}
}

static void test_data_twice_is_refused(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, false, true);
	assert_int_equal(peer_data_in(&scene.peer, scene.tag, 0, 0, data, 8), 0);
	peer_data_in(&scene.peer, scene.tag, 1, 0, data, 8);
	peer_scene_expect_end(&scene, -EPROTO, "out of order");
}

static void test_a_gap_in_data_sn_is_refused(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, false, true);
	peer_data_in(&scene.peer, scene.tag, 1, 0, data, 8);
	peer_scene_expect_end(&scene, -EPROTO, "DataSN");
}

static void test_data_for_a_command_that_reads_nothing_is_refused(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, true, false);
	peer_data_in(&scene.peer, scene.tag, 0, 0, data, 8);
	peer_scene_expect_end(&scene, -EPROTO, "reads nothing");
}

static void test_tags_of_no_command_are_refused(void **state)
{
	struct peer_scene scene;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		uint32_t tags[6];

		peer_scene_set(&scene, true, true);
		tags[0] = scene.tag + 1;       /* another slot */
		tags[1] = scene.tag + 0x10000; /* later command in the same slot */
		tags[2] = scene.tag - 0x10000;
		tags[3] = 0xffffffff;
		tags[4] = scene.tag | 0xffff; /* no such slot */
		tags[5] = scene.tag ^ 0x80000000;
		if (i % 3 == 0)
			peer_data_in(&scene.peer, tags[i], 0, 0, data, 8);
		else if (i % 3 == 1)
			peer_r2t(&scene.peer, tags[i], 1, 0, 0, 32);
		else
			peer_respond(&scene.peer, tags[i], 0);
		peer_scene_expect_end(&scene, -EPROTO, "tag of no command");
	}
}

static void test_an_answer_given_twice_is_refused(void **state)
{
	struct counted_task other;
	struct peer_scene scene;
	uint32_t tag;

	(void)state;
	peer_scene_set(&scene, true, true);
	tag = peer_scene_submit_other(&scene, &other);
	peer_respond(&scene.peer, tag, 0);
	assert_int_equal(other.done, 1);
	peer_respond(&scene.peer, tag, 0);
	assert_int_equal(other.done, 1);
	peer_scene_expect_end(&scene, -EPROTO, "tag of no command");
}

static void expect_bad_r2t(uint32_t transfer_tag, uint32_t sequence, uint32_t offset,
			   uint32_t length, const char *word)
{
	struct peer_scene scene;

	peer_scene_set(&scene, true, true);
	peer_r2t(&scene.peer, scene.tag, transfer_tag, sequence, offset, length);
	peer_scene_expect_end(&scene, -EPROTO, word);
}

static void test_requests_for_data_that_is_not_there_are_refused(void **state)
{
	(void)state;
	expect_bad_r2t(1, 0, 0, 33, "beyond the end");
	expect_bad_r2t(1, 0, 1, 31, "out of order");
	expect_bad_r2t(1, 0, 32, 1, "out of order");
	expect_bad_r2t(1, 0, 0xfffffff0, 32, "out of order");
	expect_bad_r2t(1, 0, 0, 0, "burst length of 0");
	expect_bad_r2t(1, 0, 0, 262145, "MaxBurstLength");
	expect_bad_r2t(1, 0, 0, 0xffffffff, "MaxBurstLength");
	expect_bad_r2t(ISCSI_TAG_NONE, 0, 0, 32, "transfer tag");
	expect_bad_r2t(1, 5, 0, 32, "R2TSN");
}

static void test_a_request_for_what_was_sent_already_is_refused(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, true, false);
	assert_int_equal(peer_r2t(&scene.peer, scene.tag, 1, 0, 0, 32), 0);
	peer_r2t(&scene.peer, scene.tag, 2, 1, 0, 32);
	peer_scene_expect_end(&scene, -EPROTO, "out of order");
}

static void test_a_second_request_before_the_first_is_served_is_refused(void **state)
{
	struct session_parameters parameters = PEER_PARAMETERS;
	struct counted_task tasks[16];
	struct error_text error;
	struct peer peer;

	(void)state;
	parameters.immediate_data = false;
	peer_open(&peer, &parameters, 16);
	for (int i = 0; i < 16; i++) {
		counted_task_make(&tasks[i], data, 262144, NULL, 0);
		tasks[i].task.out[tasks[i].task.out_count++] = (struct iovec){ data, 262144 };
		session_submit(peer.session, &tasks[i].task);
	}
	for (int i = 0; i < 16; i++)
		peer_take(&peer, &pdu);
	/* Nothing of the data is read, so that at last nothing more can be sent. */
	for (int i = 0; i < 16; i++)
		assert_int_equal(peer_r2t(&peer, tasks[i].task.tag, 1, 0, 0, 262144), 0);
	assert_true(session_events(peer.session) & POLLOUT);
	assert_true(tasks[15].task.burst_left > 0);
	assert_int_equal(peer_r2t(&peer, tasks[15].task.tag, 2, 1, 262144, 262144), -EPROTO);
	session_error(peer.session, &error);
	assert_non_null(strstr(error.text, "MaxOutstandingR2T"));
	peer_close(&peer);
}

static void test_a_request_to_a_command_that_writes_nothing_is_refused(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, false, true);
	peer_r2t(&scene.peer, scene.tag, 1, 0, 0, 1);
	peer_scene_expect_end(&scene, -EPROTO, "beyond the end");
}

static void test_status_out_of_sequence_is_refused(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, true, true);
	scene.peer.stat_sn++;
	peer_respond(&scene.peer, scene.tag, 0);
	peer_scene_expect_end(&scene, -EPROTO, "StatSN");
}

static void give_response(struct peer_scene *scene, uint8_t flags, uint32_t read_residual,
			  uint32_t residual)
{
	peer_header(&scene->peer, scene->header, ISCSI_SCSI_RESPONSE, flags, scene->tag);
	put_be32(scene->header + 40, read_residual);
	put_be32(scene->header + 44, residual);
	scene->peer.stat_sn++;
	peer_give(&scene->peer, scene->header, NULL, 0);
}

static void test_impossible_residuals_are_refused(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, true, true);
	give_response(&scene, ISCSI_FINAL | ISCSI_UNDERFLOW | ISCSI_OVERFLOW, 0, 1);
	peer_scene_expect_end(&scene, -EPROTO, "residual");
	peer_scene_set(&scene, true, true);
	give_response(&scene, ISCSI_FINAL | ISCSI_UNDERFLOW, 0, 33);
	peer_scene_expect_end(&scene, -EPROTO, "residual");
	peer_scene_set(&scene, true, true);
	give_response(&scene, ISCSI_FINAL | ISCSI_READ_UNDERFLOW, PEER_SCENE_BYTES + 1, 0);
	peer_scene_expect_end(&scene, -EPROTO, "residual");
	peer_scene_set(&scene, true, true);
	give_response(&scene, ISCSI_FINAL | ISCSI_READ_UNDERFLOW | ISCSI_READ_OVERFLOW, 1, 0);
	peer_scene_expect_end(&scene, -EPROTO, "residual");
	peer_scene_set(&scene, false, true);
	give_response(&scene, ISCSI_FINAL | ISCSI_UNDERFLOW, 0, PEER_SCENE_BYTES + 1);
	peer_scene_expect_end(&scene, -EPROTO, "residual");
}

/* The session goes on: only this command has failed. */
static void test_a_read_that_is_called_complete_without_its_data_fails(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, false, true);
	peer_data_in(&scene.peer, scene.tag, 0, 0, data, 8);
	give_response(&scene, ISCSI_FINAL | ISCSI_UNDERFLOW, 0, PEER_SCENE_BYTES - 9);
	assert_int_equal(scene.task.done, 1);
	assert_int_equal(scene.task.task.result, -EPROTO);
	assert_int_equal(session_error(scene.peer.session, NULL), 0);
	peer_close(&scene.peer);
}

static void test_a_target_that_gives_a_command_up_fails_it_alone(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, true, true);
	peer_header(&scene.peer, scene.header, ISCSI_SCSI_RESPONSE, ISCSI_FINAL, scene.tag);
	scene.header[2] = 1;
	scene.peer.stat_sn++;
	assert_int_equal(peer_give(&scene.peer, scene.header, NULL, 0), 0);
	assert_int_equal(scene.task.done, 1);
	assert_int_equal(scene.task.task.result, -EREMOTEIO);
	peer_close(&scene.peer);
}

static void test_sense_longer_than_its_segment_is_refused(void **state)
{
	static const uint8_t too_long[] = { 0, 9, 0x72, 5, 0x24, 0, 0, 0, 0, 0 };
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, true, true);
	peer_header(&scene.peer, scene.header, ISCSI_SCSI_RESPONSE, ISCSI_FINAL, scene.tag);
	scene.header[3] = 2;
	peer_give(&scene.peer, scene.header, too_long, sizeof(too_long));
	peer_scene_expect_end(&scene, -EPROTO, "sense");
	peer_scene_set(&scene, true, true);
	peer_header(&scene.peer, scene.header, ISCSI_SCSI_RESPONSE, ISCSI_FINAL, scene.tag);
	peer_give(&scene.peer, scene.header, too_long, 1);
	peer_scene_expect_end(&scene, -EPROTO, "sense");
}

static void test_the_status_of_a_bidirectional_command_is_not_taken_from_data_in(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, true, true);
	peer_header(&scene.peer, scene.header, ISCSI_DATA_IN, ISCSI_FINAL | ISCSI_DATA_IN_STATUS,
		    scene.tag);
	peer_give(&scene.peer, scene.header, data, 8);
	peer_scene_expect_end(&scene, -EPROTO, "bidirectional");
}

static void test_unreasonable_lengths_are_refused_before_they_arrive(void **state)
{
	static const uint8_t opcodes[] = { ISCSI_SCSI_RESPONSE, ISCSI_NOP_IN, ISCSI_REJECT,
					   ISCSI_ASYNC_MESSAGE };
	struct peer_scene scene;

	(void)state;
	for (size_t i = 0; i < sizeof(opcodes); i++) {
		peer_scene_set(&scene, true, true);
		peer_header(&scene.peer, scene.header, opcodes[i], ISCSI_FINAL, scene.tag);
		scene.header[5] = 0;
		put_be16(scene.header + 6, 8193);
		assert_int_equal(send(scene.peer.fd, scene.header, 48, 0), 48);
		session_step(scene.peer.session, 0);
		peer_scene_expect_end(&scene, -EPROTO, "unreasonable length");
	}
	peer_scene_set(&scene, true, true);
	peer_header(&scene.peer, scene.header, ISCSI_DATA_IN, 0, scene.tag);
	memset(scene.header + 5, 0xff, 3);
	assert_int_equal(send(scene.peer.fd, scene.header, 48, 0), 48);
	session_step(scene.peer.session, 0);
	peer_scene_expect_end(&scene, -EPROTO, "longer than agreed");
}

static void test_headers_that_targets_do_not_send_are_refused(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, true, true);
	peer_header(&scene.peer, scene.header, 0x05, 0, scene.tag);
	peer_give(&scene.peer, scene.header, NULL, 0);
	peer_scene_expect_end(&scene, -EPROTO, "0x05");
	peer_scene_set(&scene, true, true);
	peer_header(&scene.peer, scene.header, ISCSI_SCSI_RESPONSE, ISCSI_FINAL, scene.tag);
	scene.header[4] = 1;
	peer_give(&scene.peer, scene.header, NULL, 0);
	peer_scene_expect_end(&scene, -EPROTO, "additional header");
	peer_scene_set(&scene, true, true);
	peer_header(&scene.peer, scene.header, ISCSI_LOGOUT_RESPONSE, ISCSI_FINAL, 0);
	peer_give(&scene.peer, scene.header, NULL, 0);
	peer_scene_expect_end(&scene, -EPROTO, "logout that was not sent");
	peer_scene_set(&scene, true, true);
	peer_header(&scene.peer, scene.header, ISCSI_NOP_IN, ISCSI_FINAL, 7);
	peer_give(&scene.peer, scene.header, NULL, 0);
	peer_scene_expect_end(&scene, -EPROTO, "ping");
}

static void test_a_reject_ends_the_session_and_names_its_reason(void **state)
{
	struct peer_scene scene;
	uint8_t rejected[48] = { ISCSI_SCSI_COMMAND };

	(void)state;
	peer_scene_set(&scene, true, true);
	peer_header(&scene.peer, scene.header, ISCSI_REJECT, ISCSI_FINAL, ISCSI_TAG_NONE);
	scene.header[2] = 0x09;
	peer_give(&scene.peer, scene.header, rejected, sizeof(rejected));
	peer_scene_expect_end(&scene, -EPROTO, "rejected a SCSI Command PDU: invalid PDU field");
}

static void test_an_announced_drop_ends_the_session(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, true, true);
	peer_header(&scene.peer, scene.header, ISCSI_ASYNC_MESSAGE, ISCSI_FINAL, ISCSI_TAG_NONE);
	scene.header[36] = 3;
	peer_give(&scene.peer, scene.header, NULL, 0);
	peer_scene_expect_end(&scene, -ECONNRESET, "drops");
}

static void test_a_flood_of_pings_is_not_stored_without_end(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, true, true);
	peer_header(&scene.peer, scene.header, ISCSI_NOP_IN, ISCSI_FINAL, ISCSI_TAG_NONE);
	put_be32(scene.header + 20, 1);
	for (int i = 0; i < 20; i++)
		assert_int_equal(send(scene.peer.fd, scene.header, 48, 0), 48);
	session_step(scene.peer.session, 0);
	peer_scene_expect_end(&scene, -EPROTO, "pings");
}

/* Random bytes, and random changes of good headers, must at worst end the session. */
static void test_random_pdus_do_no_harm(void **state)
{
	static const uint8_t opcodes[] = { 0x20, 0x21, 0x25, 0x26, 0x31, 0x32, 0x3f };
	unsigned seed = 20261121;

	(void)state;
	print_message("seed %u\n", seed);
	srand(seed);
	for (int round = 0; round < 2000; round++) {
		struct peer_scene scene;
		uint8_t body[16];

		peer_scene_set(&scene, round & 1, round & 2);
		for (int i = 0; i < 4; i++) {
			peer_header(&scene.peer, scene.header, opcodes[rand() % 7], (uint8_t)rand(),
				    scene.tag);
			put_be32(scene.header + 36, (uint32_t)rand() % 3);
			put_be32(scene.header + 40, (uint32_t)rand() % 3 * 8);
			put_be32(scene.header + 44, (uint32_t)rand() % 80);
			if (rand() % 2)
				scene.header[rand() % 48] = (uint8_t)rand();
			for (size_t j = 0; j < sizeof(body); j++)
				body[j] = (uint8_t)rand();
			/* The session may be gone, and its socket with it. */
			if (session_error(scene.peer.session, NULL) == 0)
				peer_give(&scene.peer, scene.header, body,
					  (size_t)rand() % sizeof(body));
		}
		peer_scene_expect_guard(&scene);
		peer_close(&scene.peer);
		assert_int_equal(scene.task.done, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_more_data_than_room_is_refused),
		cmocka_unit_test(test_more_data_than_is_left_is_refused),
		cmocka_unit_test(test_data_out_of_order_is_refused),
		cmocka_unit_test(test_data_twice_is_refused),
		cmocka_unit_test(test_a_gap_in_data_sn_is_refused),
		cmocka_unit_test(test_data_for_a_command_that_reads_nothing_is_refused),
		cmocka_unit_test(test_tags_of_no_command_are_refused),
		cmocka_unit_test(test_an_answer_given_twice_is_refused),
		cmocka_unit_test(test_requests_for_data_that_is_not_there_are_refused),
		cmocka_unit_test(test_a_request_for_what_was_sent_already_is_refused),
		cmocka_unit_test(test_a_second_request_before_the_first_is_served_is_refused),
		cmocka_unit_test(test_a_request_to_a_command_that_writes_nothing_is_refused),
		cmocka_unit_test(test_status_out_of_sequence_is_refused),
		cmocka_unit_test(test_impossible_residuals_are_refused),
		cmocka_unit_test(test_a_read_that_is_called_complete_without_its_data_fails),
		cmocka_unit_test(test_a_target_that_gives_a_command_up_fails_it_alone),
		cmocka_unit_test(test_sense_longer_than_its_segment_is_refused),
		cmocka_unit_test(
			test_the_status_of_a_bidirectional_command_is_not_taken_from_data_in),
		cmocka_unit_test(test_unreasonable_lengths_are_refused_before_they_arrive),
		cmocka_unit_test(test_headers_that_targets_do_not_send_are_refused),
		cmocka_unit_test(test_a_reject_ends_the_session_and_names_its_reason),
		cmocka_unit_test(test_an_announced_drop_ends_the_session),
		cmocka_unit_test(test_a_flood_of_pings_is_not_stored_without_end),
		cmocka_unit_test(test_random_pdus_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
