/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A session with one command in flight, as many tests begin. */
#include "tests/client/peer_scene.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define GUARD 0xA5

void peer_scene_set(struct peer_scene *scene, bool writes, bool reads)
{
	static const uint8_t data[32];
	struct session_parameters parameters = PEER_PARAMETERS;
	struct sent_pdu pdu;

	parameters.immediate_data = false;
	peer_open(&scene->peer, &parameters, 4);
	memset(scene->memory, GUARD, sizeof(scene->memory));
	counted_task_make(&scene->task, data, writes ? 32 : 0, scene->memory,
			  reads ? PEER_SCENE_BYTES : 0);
	session_submit(scene->peer.session, &scene->task.task);
	peer_take(&scene->peer, &pdu);
	scene->tag = sent_tag(&pdu);
}

void peer_scene_expect_guard(const struct peer_scene *scene)
{
	for (size_t i = PEER_SCENE_BYTES; i < sizeof(scene->memory); i++)
		assert_int_equal(scene->memory[i], GUARD);
}

void peer_scene_expect_end(struct peer_scene *scene, int result, const char *word)
{
	struct error_text error;

	assert_int_equal(session_error(scene->peer.session, &error), result);
	if (!strstr(error.text, word))
		fail_msg("'%s' does not say '%s'", error.text, word);
	assert_int_equal(scene->task.done, 1);
	assert_int_equal(scene->task.task.result, result);
	assert_int_equal(session_outstanding(scene->peer.session), 0);
	assert_int_equal(session_submit(scene->peer.session, &scene->task.task), result);
	peer_scene_expect_guard(scene);
	peer_close(&scene->peer);
	assert_int_equal(scene->task.done, 1);
}

uint32_t peer_scene_submit_other(struct peer_scene *scene, struct counted_task *other)
{
	struct sent_pdu pdu;

	counted_task_make(other, NULL, 0, NULL, 0);
	session_submit(scene->peer.session, &other->task);
	peer_take(&scene->peer, &pdu);
	return sent_tag(&pdu);
}

void peer_scene_expect_silence_end(struct peer_scene *scene)
{
	scene->peer.clock_ms += 1;
	assert_int_equal(session_step(scene->peer.session, 0), -ETIMEDOUT);
	peer_scene_expect_end(scene, -ETIMEDOUT, "no answer");
}
