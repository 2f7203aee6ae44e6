/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The turn: who may use what is stored. Readers share it, a writer has it alone. Who has to wait
 * gets it in the order of coming: who gives it to take it again, between two steps of something
 * long, lets all others that wait have it first.
 *
 * It counts how long it is held, in records that the holder works on (engine/records/work.h).
 */
#ifndef MUNINN_ENGINE_OBJECTS_TURN_H
#define MUNINN_ENGINE_OBJECTS_TURN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Threads that wait for the same condition are woken together; more than that many are rare. */
#define TURN_PLACES 16

struct turn {
	pthread_rwlock_t lock;
	/* Those who wait: the first of them for the lock, the others for their number. */
	struct turn_queue {
		pthread_mutex_t mutex;
		pthread_cond_t places[TURN_PLACES]; /* by number */
		uint32_t first;                     /* number of who gets it next; atomic */
		uint32_t next;                      /* of who comes next; atomic */
	} queue;
	uint64_t since; /* of who has it alone: records_worked when that began */
	uint64_t most;  /* atomic: records of the longest holding so far */
};

void turn_init(struct turn *turn);
void turn_destroy(struct turn *turn);

/* To have it alone. */
void turn_take(struct turn *turn);
/* Does not wait. False: it is not to be had now. */
bool turn_try_take(struct turn *turn);
void turn_give(struct turn *turn);

/* To share it. What turn_share and turn_try_share return goes to turn_unshare. */
uint64_t turn_share(struct turn *turn);
void turn_unshare(struct turn *turn, uint64_t since);

/* Does not wait. False: it is not to be had now. */
bool turn_try_share(struct turn *turn, uint64_t *since);

/* Records of the longest holding since the last call. */
uint64_t turn_take_most(struct turn *turn);

#endif
