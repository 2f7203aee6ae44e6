/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The thread that merges beside others, in pieces: it has the turn for what is short, and reads
 * flash and waits for the host without it. The less room there is, the more of the time is its own:
 * first it takes its turn like everybody, then each command that stores waits for more and more
 * pieces, and at last for room.
 */
#ifndef MUNINN_ENGINE_HISTORY_MERGER_H
#define MUNINN_ENGINE_HISTORY_MERGER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

/* In place of a number of pieces: until there is room, or the thread finds none to be had. */
#define MERGER_ALL UINT32_MAX

struct merger {
	pthread_t thread;
	bool is_on;
	pthread_mutex_t merging; /* by who merges, before the turn: one merge at a time */
	pthread_mutex_t mutex;   /* of what follows */
	pthread_cond_t due;      /* for the thread */
	pthread_cond_t moved;    /* for those who wait */
	bool wanted, busy, stop;
	bool stores;     /* what wants room may cost history; taken with `wanted` */
	uint64_t pieces; /* that have been done */
	uint32_t share;  /* atomic: pieces that a command that stores waits for */
};

/* As a member of engine->past: before anything else, and at the end. */
void merger_init(struct merger *merger);
void merger_destroy(struct merger *merger);

/* The same as sealer_start, sealer_end and sealer_stop: see history_calls.h. */
int merger_start(struct engine *engine);
void merger_end(struct engine *engine);
void merger_stop(struct engine *engine);

/* With the turn, alone: room may have become less. `stores`: for a command that stores. */
void merger_look(struct engine *engine, bool stores);

/* Without the turn, before a command: waits as long as the share says. */
void merger_await(struct engine *engine, enum engine_mode mode);

/*
 * With the turn, alone, behind merger_await: whether others have used up what it waited for, while
 * the thread goes on. Then the command is to give the turn back and to wait once more.
 */
bool merger_is_behind(struct engine *engine, enum engine_mode mode);

#endif
