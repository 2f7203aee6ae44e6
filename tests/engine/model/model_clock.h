/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What times mean, by the model's own reckoning: it sees which number was committed when, by a
 * clock that goes ahead and back, and knows from that alone which moment a time is: recorded times
 * never go down, until an epoch begins.
 */
#ifndef MUNINN_TESTS_ENGINE_MODEL_MODEL_CLOCK_H
#define MUNINN_TESTS_ENGINE_MODEL_MODEL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum { MODEL_SLOTS = 1024 }; /* that are remembered, the newest ones */

/* A slot of sequence numbers, and the recorded times of its first and its last commit. */
struct model_slot {
	uint64_t number, first_ms, last_ms;
};

struct model_clock {
	uint64_t sequence; /* of the last commit seen */
	uint64_t highest;  /* what the clock ever said */
	uint64_t epoch_sequence, epoch_ms;
	uint32_t count;
	bool forgot; /* slots */
	struct model_slot slots[MODEL_SLOTS];
};

enum model_meaning {
	MODEL_MEANS_MOMENT, /* the end of the slot `*bound`, or 0: before everything */
	MODEL_BEFORE_EPOCH,
	MODEL_NOT_CERTAIN, /* the model does not know */
};

/*
 * The clock said `ms` when everything up to `sequence` had been committed, and nothing behind it.
 */
void model_clock_see(struct model_clock *clock, uint64_t sequence, uint64_t ms);

/* Whether something is recorded as of later than `now_ms`. */
bool model_clock_is_behind(const struct model_clock *clock, uint64_t now_ms);

/* An epoch began at `now_ms`, with the command `sequence`, which is still to be seen. */
void model_clock_begin_epoch(struct model_clock *clock, uint64_t sequence, uint64_t now_ms);

/*
 * The engine was opened anew; everything up to `sequence` counts, and what was behind it is taken
 * back.
 */
void model_clock_open(struct model_clock *clock, uint64_t sequence);

/* What the time `ms` means. */
enum model_meaning model_clock_meaning(const struct model_clock *clock, uint64_t ms,
				       uint64_t *bound);

/*
 * Some time that may tell a mistake: near what is on record, near the beginning of the epoch, or
 * any. `random`: any number.
 */
uint64_t model_clock_some_time(const struct model_clock *clock, uint64_t now_ms, uint64_t random);

/* A time that the clock is set to, ahead or back, a little or a lot. */
uint64_t model_clock_some_jump(const struct model_clock *clock, uint64_t now_ms, uint64_t random);

#endif
