/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Targets that fall silent or die: all commands end, in time, and what was answered before counts.
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

#include "tests/client/peer_scene.h"

static struct sent_pdu pdu;
static uint8_t data[300000];

static void test_a_closed_connection_ends_all_commands(void **state)
{
	struct counted_task waiting[6];
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, true, true);
	for (int i = 0; i < 6; i++) {
		counted_task_make(&waiting[i], NULL, 0, NULL, 0);
		session_submit(scene.peer.session, &waiting[i].task);
	}
	session_step(scene.peer.session, 0);
	peer_hang_up(&scene.peer);
	for (int i = 0; i < 3; i++)
		session_step(scene.peer.session, 0);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(waiting[i].done, 1);
		assert_true(waiting[i].task.result < 0);
	}
	assert_int_equal(session_error(scene.peer.session, NULL), -ECONNRESET);
	peer_close(&scene.peer);
}

static void test_a_connection_that_ends_in_the_middle_of_data_ends_the_command(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, false, true);
	peer_header(&scene.peer, scene.header, ISCSI_DATA_IN, 0, scene.tag);
	scene.header[7] = PEER_SCENE_BYTES;
	assert_int_equal(send(scene.peer.fd, scene.header, 48, 0), 48);
	assert_int_equal(send(scene.peer.fd, data, 10, 0), 10);
	session_step(scene.peer.session, 0);
	assert_int_equal(scene.task.done, 0);
	peer_hang_up(&scene.peer);
	session_step(scene.peer.session, 0);
	peer_scene_expect_end(&scene, -ECONNRESET, "closed the connection");
}

static void test_an_answer_right_before_the_end_still_counts(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, true, false);
	peer_header(&scene.peer, scene.header, ISCSI_SCSI_RESPONSE, ISCSI_FINAL, scene.tag);
	assert_int_equal(send(scene.peer.fd, scene.header, 48, 0), 48);
	peer_hang_up(&scene.peer);
	session_step(scene.peer.session, 0);
	session_step(scene.peer.session, 0);
	assert_int_equal(scene.task.done, 1);
	assert_int_equal(scene.task.task.result, 0);
	peer_close(&scene.peer);
}

static void test_an_answer_counts_also_when_nothing_can_be_sent_any_more(void **state)
{
	struct counted_task late;
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, true, false);
	peer_header(&scene.peer, scene.header, ISCSI_SCSI_RESPONSE, ISCSI_FINAL, scene.tag);
	assert_int_equal(send(scene.peer.fd, scene.header, 48, 0), 48);
	peer_hang_up(&scene.peer);
	counted_task_make(&late, NULL, 0, NULL, 0);
	session_submit(scene.peer.session, &late.task);
	while (session_step(scene.peer.session, 0) == 0)
		;
	assert_int_equal(scene.task.done, 1);
	assert_int_equal(scene.task.task.result, 0);
	assert_int_equal(late.done, 1);
	assert_int_equal(late.task.result, -ECONNRESET);
	peer_close(&scene.peer);
}

static void test_a_silent_target_ends_in_a_timeout(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, true, true);
	scene.peer.clock_ms += 999;
	assert_int_equal(session_step(scene.peer.session, 0), 0);
	assert_int_equal(scene.task.done, 0);
	peer_scene_expect_silence_end(&scene);
}

static void test_a_slow_target_is_not_given_up(void **state)
{
	struct counted_task other;
	struct peer_scene scene;
	uint32_t tag;

	(void)state;
	peer_scene_set(&scene, true, true);
	tag = peer_scene_submit_other(&scene, &other);
	/*
	 * Something happens, for this command or for another one, whenever the time is nearly over.
	 */
	scene.peer.clock_ms += 999;
	assert_int_equal(peer_r2t(&scene.peer, scene.tag, 1, 0, 0, 16), 0);
	scene.peer.clock_ms += 999;
	assert_int_equal(peer_data_in(&scene.peer, scene.tag, 1, 0, data, 8), 0);
	scene.peer.clock_ms += 999;
	assert_int_equal(peer_respond(&scene.peer, tag, 0), 0);
	scene.peer.clock_ms += 999;
	assert_int_equal(session_step(scene.peer.session, 0), 0);
	peer_scene_expect_silence_end(&scene);
}

static void test_pings_and_empty_data_keep_no_command_alive(void **state)
{
	struct peer_scene scene;

	(void)state;
	peer_scene_set(&scene, true, true);
	scene.peer.clock_ms += 999;
	assert_int_equal(peer_data_in(&scene.peer, scene.tag, 0, 0, data, 0), 0);
	peer_header(&scene.peer, scene.header, ISCSI_NOP_IN, ISCSI_FINAL, ISCSI_TAG_NONE);
	assert_int_equal(peer_give(&scene.peer, scene.header, NULL, 0), 0);
	peer_scene_expect_silence_end(&scene);
}

static void test_a_command_may_have_more_time_than_others(void **state)
{
	struct counted_task task;
	struct peer peer;

	(void)state;
	peer_open(&peer, &PEER_PARAMETERS, 4);
	counted_task_make(&task, NULL, 0, NULL, 0);
	task.task.timeout_ms = 5000;
	session_submit(peer.session, &task.task);
	peer_take(&peer, &pdu);
	peer.clock_ms += 4999;
	assert_int_equal(session_step(peer.session, 0), 0);
	assert_int_equal(peer_respond(&peer, sent_tag(&pdu), 0), 0);
	assert_int_equal(task.task.result, 0);
	peer_close(&peer);
}

static void test_a_target_that_never_opens_its_window_ends_in_a_timeout(void **state)
{
	struct session_parameters parameters = PEER_PARAMETERS;
	struct counted_task task;
	struct error_text error;
	struct peer peer;

	(void)state;
	parameters.max_cmd_sn = parameters.cmd_sn - 1;
	peer_open(&peer, &parameters, 4);
	counted_task_make(&task, NULL, 0, NULL, 0);
	session_submit(peer.session, &task.task);
	peer_takes_nothing(&peer);
	peer.clock_ms += 1000;
	assert_int_equal(session_step(peer.session, 0), -ETIMEDOUT);
	session_error(peer.session, &error);
	assert_non_null(strstr(error.text, "accepted no command"));
	assert_int_equal(task.done, 1);
	assert_int_equal(task.task.result, -ETIMEDOUT);
	peer_close(&peer);
}

static void test_a_target_that_reads_nothing_ends_in_a_timeout(void **state)
{
	struct counted_task tasks[64];
	struct session_parameters parameters = PEER_PARAMETERS;
	struct peer peer;

	(void)state;
	parameters.initial_r2t = false;
	parameters.first_burst_bytes = 262144;
	peer_open(&peer, &parameters, 64);
	for (int i = 0; i < 64; i++) {
		counted_task_make(&tasks[i], data, sizeof(data), NULL, 0);
		session_submit(peer.session, &tasks[i].task);
	}
	assert_int_equal(session_step(peer.session, 0), 0);
	peer.clock_ms += 1000;
	assert_int_equal(session_step(peer.session, 0), -ETIMEDOUT);
	for (int i = 0; i < 64; i++)
		assert_int_equal(tasks[i].done, 1);
	peer_close(&peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_closed_connection_ends_all_commands),
		cmocka_unit_test(
			test_a_connection_that_ends_in_the_middle_of_data_ends_the_command),
		cmocka_unit_test(test_an_answer_right_before_the_end_still_counts),
		cmocka_unit_test(test_an_answer_counts_also_when_nothing_can_be_sent_any_more),
		cmocka_unit_test(test_a_silent_target_ends_in_a_timeout),
		cmocka_unit_test(test_a_slow_target_is_not_given_up),
		cmocka_unit_test(test_pings_and_empty_data_keep_no_command_alive),
		cmocka_unit_test(test_a_command_may_have_more_time_than_others),
		cmocka_unit_test(test_a_target_that_never_opens_its_window_ends_in_a_timeout),
		cmocka_unit_test(test_a_target_that_reads_nothing_ends_in_a_timeout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
