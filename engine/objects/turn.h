/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The turn: who may use what is stored. Readers share it, a writer has it alone. Who has to wait
 * gets it in the order of coming: who gives it to take it again, between two steps of something
 * long, lets all others that wait have it first. Commands and other short work may pass the first
 * of them a few times: he sleeps, and nobody would have the turn until he has woken up.
 *
 * Sleeping and waking takes longer than most hold it. So everybody, readers too, first tries again
 * and again for some microseconds, and who may not wait for a few more. Who holds it for long, in
 * pieces, ends a piece when somebody wants it (`wanted`). With one processor nobody tries twice:
 * who has it could not give it meanwhile.
 *
 * What is short need not wait for the end of a long transaction: whoever has the turn alone does it
 * for others between two records, and beside readers it is done at once (turn_call).
 *
 * It counts how long it is held, in records that the holder works on (engine/records/work.h), and
 * of those who have it alone also in time.
 */
#ifndef MUNINN_ENGINE_OBJECTS_TURN_H
#define MUNINN_ENGINE_OBJECTS_TURN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Threads that wait for the same condition are woken together; more than that many are rare. */
#define TURN_PLACES 16

/* What one caller at a time wants done in the turn. */
struct turn_work {
	pthread_mutex_t callers;
	pthread_mutex_t mutex; /* of what follows */
	pthread_cond_t changed;
	bool wanted; /* atomic: who has the turn alone looks at it with each record */
	void (*run)(void *context);
	void *context;
};

/* Of those who had the turn alone, since it was made. */
struct turn_times {
	uint64_t taken, held_ns;
	uint64_t waited, waited_ns; /* those that slept until they had it */
	uint64_t waited_most_ns;
};

struct turn {
	uint32_t state; /* atomic: who has it, and whether the first of the queue sleeps */
	bool tries;     /* before it waits: there is another processor */
	/* Those who wait: the first of them for the turn, the others for their number. */
	struct turn_queue {
		pthread_mutex_t mutex;
		pthread_cond_t first_may;
		pthread_cond_t places[TURN_PLACES]; /* by number */
		uint32_t first;                     /* number of who gets it next; atomic */
		uint32_t next;                      /* of who comes next; atomic */
		uint32_t passes;                    /* how many have passed the first; atomic */
	} queue;
	struct turn_work work;
	uint32_t awaited;        /* atomic: those who try to have it and may not wait ... */
	uint32_t wanted;         /* ... and with them those who wait */
	uint64_t since;          /* of who has it alone: records_worked when that began */
	uint64_t most;           /* atomic: records of the longest holding so far */
	uint64_t since_ns;       /* of who has it alone */
	struct turn_times times; /* changed by who has it alone */
};

void turn_init(struct turn *turn);
void turn_destroy(struct turn *turn);

/* To have it alone. */
void turn_take(struct turn *turn);
/* The same for what is short: passes the first of those who wait if nobody has it just now. */
void turn_take_passing(struct turn *turn);
/* Does not wait, but tries for a moment. False: it is not to be had now. */
bool turn_try_take(struct turn *turn);
void turn_give(struct turn *turn);

/* To share it. What turn_share and turn_try_share return goes to turn_unshare. */
uint64_t turn_share(struct turn *turn);
void turn_unshare(struct turn *turn, uint64_t since);

/* Records that the calling thread has worked on since it has the turn, alone or shared. */
uint64_t turn_worked(const struct turn *turn, bool shared, uint64_t since);

/* Does not wait, but tries for a moment. False: it is not to be had now. */
bool turn_try_share(struct turn *turn, uint64_t *since);

/*
 * Runs something short in the turn: between two records of a transaction that has it alone, or
 * beside readers, also if somebody waits for these. The caller has no turn.
 */
void turn_call(struct turn *turn, void (*run)(void *context), void *context);

/* By who has the turn alone, between two records: does what turn_call waits for. */
void turn_serve(struct turn *turn);

/* Whether the first of those who wait sleeps, until somebody else has given the turn. */
bool turn_is_slept_for(const struct turn *turn);

/* Records of the longest holding since the last call. */
uint64_t turn_take_most(struct turn *turn);

#endif
