/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A session with one command in flight, as many tests of what a target may do to one begin; and how
 * they end.
 */
#ifndef MUNINN_TESTS_CLIENT_PEER_SCENE_H
#define MUNINN_TESTS_CLIENT_PEER_SCENE_H

#include "tests/client/peer.h"

#define PEER_SCENE_BYTES 64U /* bytes that the command reads, if it reads */

struct peer_scene {
	struct peer peer;
	struct counted_task task;
	uint8_t memory[PEER_SCENE_BYTES + 64]; /* the buffer, and a guard behind it */
	uint32_t tag;
	uint8_t header[48]; /* for the test */
};

/* The command writes 32 bytes, of which none were sent, and reads, or does one of the two. */
void peer_scene_set(struct peer_scene *scene, bool writes, bool reads);

/* Submits another command without data, and gives its tag. */
uint32_t peer_scene_submit_other(struct peer_scene *scene, struct counted_task *other);

/* After another millisecond of silence the session ends, for there was no answer. */
void peer_scene_expect_silence_end(struct peer_scene *scene);

/*
 * The session must have ended with `result`, a sentence that holds `word`, and the command with it.
 */
void peer_scene_expect_end(struct peer_scene *scene, int result, const char *word);

/* Nothing was stored behind the buffer. */
void peer_scene_expect_guard(const struct peer_scene *scene);

#endif
