/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What times mean, by the model's own reckoning: it sees which number was committed when, by a
 * clock that goes ahead and back, and knows from that alone which moment a time is, and which times
 * are in doubt. Where what the engine knows hangs on a crash, the model knows a range, and within
 * that nothing for certain.
 */
#ifndef MUNINN_TESTS_ENGINE_MODEL_MODEL_CLOCK_H
#define MUNINN_TESTS_ENGINE_MODEL_MODEL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum {
	MODEL_SLOTS = 1024, /* that are remembered, the newest ones */
	MODEL_DOUBTS = 64,  /* when so many are on record, the clock goes back no more */
};

/* A time on record, which is one of these. */
struct model_time {
	uint64_t from, until;
};

/* A slot of sequence numbers, and when its first and its last commit were. */
struct model_slot {
	uint64_t number;
	struct model_time first, last;
};

/*
 * Times in doubt, as noted with the commit `sequence`: behind `from` and before `until`, both
 * exclusive.
 */
struct model_doubt {
	uint64_t sequence;
	struct model_time from, until;
	bool maybe; /* or not noted at all */
};

struct model_clock {
	uint64_t sequence; /* of the last commit seen */
	uint64_t highest;  /* what the clock ever said */
	uint32_t count, doubt_count;
	bool forgot; /* slots */
	bool cut;    /* the engine does not know the first ones any more either */
	struct model_slot slots[MODEL_SLOTS];
	struct model_doubt doubts[MODEL_DOUBTS];
};

enum model_meaning {
	MODEL_MEANS_MOMENT, /* the end of the slot `*bound`, or 0: before everything */
	MODEL_IN_DOUBT,
	MODEL_NOT_CERTAIN, /* the model does not know */
};

/*
 * The clock said `ms` when everything up to `sequence` had been committed, and nothing behind it.
 */
void model_clock_see(struct model_clock *clock, uint64_t sequence, uint64_t ms);

/* Whether something is on record as of later than `now_ms`, for certain; *maybe: or may be. */
bool model_clock_is_behind(const struct model_clock *clock, uint64_t now_ms, bool *maybe);

/*
 * The administrator said that the clock was right at `now_ms`, with the command `sequence`, which
 * is still to be seen.
 */
void model_clock_trust(struct model_clock *clock, uint64_t sequence, uint64_t now_ms);

/*
 * The engine was opened anew; everything up to `sequence` counts, and what was behind it is taken
 * back.
 */
void model_clock_open(struct model_clock *clock, uint64_t sequence);

/* What the time `ms` means when the clock says `now_ms`. */
enum model_meaning model_clock_meaning(const struct model_clock *clock, uint64_t now_ms,
				       uint64_t ms, uint64_t *bound);

/*
 * Some time that may tell a mistake: near what is on record, near the edge of a doubt, or any.
 * `random`: any number.
 */
uint64_t model_clock_some_time(const struct model_clock *clock, uint64_t now_ms, uint64_t random);

/* A time that the clock is set to, ahead or back, a little or a lot. */
uint64_t model_clock_some_jump(const struct model_clock *clock, uint64_t now_ms, uint64_t random);

#endif
