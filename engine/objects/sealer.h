/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The threads that write a store's full buffers to flash behind the writers. They take the turn for
 * what is short, and program and sync without it.
 */
#ifndef MUNINN_ENGINE_OBJECTS_SEALER_H
#define MUNINN_ENGINE_OBJECTS_SEALER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;

#define SEALER_THREADS_MAX 4

struct sealer {
	pthread_t threads[SEALER_THREADS_MAX];
	uint32_t count; /* 0: nobody seals behind the writers */
	pthread_mutex_t mutex;
	pthread_cond_t due;   /* for the threads */
	pthread_cond_t spare; /* for writers */
	uint32_t waiting;     /* buffers, as of the last look */
	uint32_t busy;        /* threads that seal one */
	bool wanted;          /* one may wait that nobody seals yet */
	bool stop;
	bool failing;      /* as of the last buffer: only writers have it tried again */
	uint32_t failures; /* so that who waits notices one */
	uint32_t sealed;   /* likewise, and how many */
	bool pressed;      /* atomic: writers wait, so that they need not seal themselves */
};

/* -EAGAIN: no thread can be started. A store that has nothing to seal needs none. */
int sealer_start(struct engine *engine);

/* Before the engine is closed, by who does not have the turn. */
void sealer_stop(struct engine *engine);

/* With the turn, to be followed by sealer_stop: nothing begins any more. */
void sealer_end(struct engine *engine);

/* With the turn, alone: something may have been put. */
void sealer_look(struct engine *engine);

/* Without the turn, before a command puts: waits until there is a spare buffer. */
void sealer_wait(struct engine *engine);

/*
 * Without the turn: waits until `most` buffers are sealed, or as many as are full now, or until one
 * could not be.
 */
void sealer_wait_for_some(struct engine *engine, uint32_t most);

#endif
