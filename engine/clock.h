/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a clock leaves behind that was ahead and was set back. What was committed meanwhile is on record as of times that come
 * once more, and what was committed next has the latest of them: between the last commit of before and that time, the table of
 * times can't tell what was when. Such spans of time are on record, so that nobody is shown another moment than the one
 * asked for. Byte layout in docs/objects.md.
 */
#ifndef MUNINN_ENGINE_CLOCK_H
#define MUNINN_ENGINE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Spans on record. When there are more, the last one takes the next one in, with what lies between. */
#define CLOCK_SPANS_MAX 4

#define CLOCK_HEAD_BYTES 8
#define CLOCK_SPAN_BYTES 12

/* A clock that was set back by less is kept right, as clocks are. */
#define CLOCK_STEP_MS 2000

struct engine;
struct engine_txn;
struct history;

/* The times behind the first and before the last, ms since 1970, are in doubt. */
struct clock_span {
	uint64_t from_ms, until_ms;
};

struct clock_spans {
	/* When the device's first slot began, if the table of times does not go back to it any more; else 0. */
	uint64_t begun_ms;
	uint32_t count;
	struct clock_span list[CLOCK_SPANS_MAX];
};

/* Reads the spans on record into engine->doubts. -EBADMSG, -EIO. */
int clock_load(struct engine *engine);

/*
 * Notes a span when a transaction that begins a slot finds the clock before the latest time on record; what is noted counts
 * when it is committed. `device` = the root's. -ENOSPC, -EIO, -EBADMSG.
 */
int clock_note(struct engine_txn *txn, const struct history *device);

/*
 * The table of times loses what began at `first_ms` and went on from there: if that is its beginning, it is noted, so that a clock
 * from before the device was made is still known for what it is. -ENOSPC, -EIO.
 */
int clock_forget(struct engine_txn *txn, uint64_t first_ms);

/* Whether the time `ms`, asked for at `now_ms`, means one moment. -ESTALE: it is in doubt. -EIO, -EBADMSG. */
int clock_check(struct engine *engine, const struct history *device, uint64_t now_ms, uint64_t ms);

/*
 * Whether the clock may have said `ms` when something was committed of which the time on record is `recorded_ms`: that is in
 * doubt, and both are of the same span.
 */
bool clock_was(const struct engine *engine, uint64_t recorded_ms, uint64_t ms);

#endif
