/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The thread that merges beside others, in pieces: it has the turn for what is short, and reads
 * flash and waits for the host without it. The less room there is, the less others put: first as
 * much as they like, then with each piece a part of what it may gain, by the records that it looked
 * at, at last nothing until there is room.
 */
#ifndef MUNINN_ENGINE_HISTORY_MERGER_H
#define MUNINN_ENGINE_HISTORY_MERGER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

/* A share: as much as they like. */
#define MERGER_ANY UINT32_MAX

struct merger {
	pthread_t thread;
	bool is_on;
	pthread_mutex_t merging; /* by who merges, before the turn: one merge at a time */
	pthread_mutex_t mutex;   /* of what follows */
	pthread_cond_t due;      /* for the thread */
	pthread_cond_t moved;    /* for those who wait */
	bool wanted, busy, stop;
	bool stores;    /* what wants room may cost history; taken with `wanted` */
	uint32_t share; /* atomic: per cent of what pieces gain that others may put meanwhile; 0:
			   nothing until there is room, or the thread finds none to be had */
	int64_t grant;  /* atomic: bytes that others may put before they wait for another piece */
	/* What the last steps gained, bytes of room, and how many records they looked at. */
	uint64_t gained, looked_at;
	uint64_t step_looked_at; /* by the step that is under way */
};

/* As a member of engine->past: before anything else, and at the end. */
void merger_init(struct merger *merger);
void merger_destroy(struct merger *merger);

/* The same as sealer_start, sealer_end and sealer_stop: see history_calls.h. */
int merger_start(struct engine *engine);
void merger_end(struct engine *engine);
void merger_stop(struct engine *engine);

/* Before the first step. */
void merger_guess_gain(struct engine *engine);

/* With the turn, alone: room may have become less. `stores`: for a command that stores. */
void merger_look(struct engine *engine, bool stores);

/*
 * What the thread does, for those who do it at moments of their own choice: takes what is wanted
 * (false: nothing is); a piece, as merge_do_piece, also -EAGAIN when the thread is to end; is done.
 */
struct merge_job;
bool merger_take_work(struct merger *merger, bool *stores);
int merger_do_piece(struct engine *engine, struct merge_job *job);
void merger_end_work(struct merger *merger);

/*
 * Without the turn, before a command: waits until it may put something. False: it may not yet, and
 * the thread may not wait.
 */
bool merger_await(struct engine *engine, enum engine_mode mode);

/* Whether such a command need not wait now. */
bool merger_lets_on(const struct engine *engine);

/* With the turn: a command has put so much. */
void merger_count_put(struct engine *engine, uint64_t bytes);

/*
 * With the turn, alone, behind merger_await: whether others have used up what it waited for, while
 * the thread goes on. Then the command is to give the turn back and to wait once more.
 */
bool merger_is_behind(struct engine *engine, enum engine_mode mode);

#endif
