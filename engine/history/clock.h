/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a clock leaves behind that was ahead and was set back. What was committed meanwhile is on
 * record as of times that come once more, and what was committed next has the latest of them:
 * between the last commit of before and that time, the table of times can't tell what was when.
 * Such spans of time are on record, so that nobody is shown another moment than the one asked for.
 * They end when the clock is behind that latest time by itself, or when an administrator says that
 * it is right (clock_trust.c). Byte layout in docs/objects.md.
 */
#ifndef MUNINN_ENGINE_HISTORY_CLOCK_H
#define MUNINN_ENGINE_HISTORY_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Spans on record. When there are more, the last one takes the next one in, with what lies between.
 */
#define CLOCK_SPANS_MAX 4

/*
 * Times at which the administrator has said that the clock is right. When there are more, the last
 * one takes the next one in.
 */
#define CLOCK_CUTS_MAX 4

#define CLOCK_HEAD_BYTES 8
#define CLOCK_SPAN_BYTES 12
#define CLOCK_CUT_BYTES  18

/* A clock that was set back by less is kept right, as clocks are. */
#define CLOCK_STEP_MS 2000

struct engine;
struct engine_txn;
struct history;

/* The times behind the first and before the last, ms since 1970, are in doubt. */
struct clock_span {
	uint64_t from_ms, until_ms;
};

/*
 * What has a number below `sequence` and is on record as of behind `from_ms` was before `until_ms`,
 * whatever the clock said, and counts as of then: then somebody knew what time it was.
 */
struct clock_cut {
	uint64_t sequence, from_ms, until_ms;
};

struct clock_spans {
	/*
	 * When the device's first slot began, if the table of times does not go back to it any
	 * more; else 0.
	 */
	uint64_t begun_ms;
	uint32_t count;
	struct clock_span list[CLOCK_SPANS_MAX];
	uint32_t cut_count;
	struct clock_cut cuts[CLOCK_CUTS_MAX]; /* both rise */
};

/* Reads the spans on record into engine->doubts. -EBADMSG, -EIO. */
int clock_load(struct engine *engine);

/*
 * Puts these, which are on record, and in engine->doubts, when the transaction is committed.
 * -ENOSPC, -EIO.
 */
int clock_put(struct engine_txn *txn, const struct clock_spans *spans);

/* As of when something counts that has a sequence number and is on record as of `ms`. */
uint64_t clock_cut(const struct clock_spans *spans, uint64_t sequence, uint64_t ms);

/*
 * Notes a span when a transaction that begins a slot finds the clock before the latest time on
 * record; what is noted counts when it is committed. `device` = the root's. -ENOSPC, -EIO,
 * -EBADMSG.
 */
int clock_note(struct engine_txn *txn, const struct history *device);

/*
 * The table of times loses what began at `first_ms` and went on from there: if that is its
 * beginning, it is noted, so that a clock from before the device was made is still known for what
 * it is. -ENOSPC, -EIO.
 */
int clock_forget(struct engine_txn *txn, uint64_t first_ms);

/*
 * Whether the time `ms`, asked for at `now_ms`, means one moment. -ESTALE: it is in doubt. -EIO,
 * -EBADMSG.
 */
int clock_check(struct engine *engine, const struct history *device, uint64_t now_ms, uint64_t ms);

/*
 * Whether the clock may have said `ms` when something was committed of which the time on record is
 * `recorded_ms`: that is in doubt, and both are of the same span.
 */
bool clock_was(const struct engine *engine, uint64_t recorded_ms, uint64_t ms);

#endif
