/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Blanks: stretches of sequence numbers in which the device has no moments, since some partition
 * kept nothing then. One begins with the policy that keeps nothing and ends when no partition has
 * such a policy any more. Moments before, between and behind them are the device's as if there had
 * never been such a partition. Byte layout in docs/objects.md.
 */
#ifndef MUNINN_ENGINE_HISTORY_BLANKS_H
#define MUNINN_ENGINE_HISTORY_BLANKS_H

#include <stdint.h>

/*
 * When there are more, the two that are nearest to one another become one, with what lies between.
 */
#define BLANKS_MAX         16
#define BLANKS_HEAD_BYTES  8
#define BLANKS_ENTRY_BYTES 12
#define BLANKS_BYTES_MAX   (BLANKS_HEAD_BYTES + BLANKS_MAX * BLANKS_ENTRY_BYTES)

/* The bounds from `from` on, but not `until`. */
struct blank {
	uint64_t from, until;
};

struct blanks {
	uint64_t since; /* where the one began that has not ended yet; 0: there is none */
	uint32_t count;
	struct blank list[BLANKS_MAX]; /* ascending, with moments between them */
};

/* Encodes into `to`, BLANKS_BYTES_MAX bytes; returns the length. */
uint32_t blanks_encode(const struct blanks *blanks, uint8_t *to);

/* -EBADMSG. */
int blanks_decode(struct blanks *blanks, const uint8_t *from, uint32_t length);

/* One begins with the slot of `sequence`, if none has. */
void blanks_begin(struct blanks *blanks, uint64_t sequence);

/*
 * The one that has begun ends at `sequence`, if one has. What lies before `horizon` is forgotten:
 * there are no moments anyway.
 */
void blanks_end(struct blanks *blanks, uint64_t sequence, uint64_t horizon);

/*
 * The first bound not before `bound` that is in none of them. `committed`: the last number so far,
 * at which one that goes on ends.
 */
uint64_t blanks_pass(const struct blanks *blanks, uint64_t committed, uint64_t bound);

/* From which bound on there is none any more; 0: there is none at all. */
uint64_t blanks_behind(const struct blanks *blanks, uint64_t committed);

#endif
