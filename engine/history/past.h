/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What an engine keeps in memory of its history. */
#ifndef MUNINN_ENGINE_HISTORY_PAST_H
#define MUNINN_ENGINE_HISTORY_PAST_H

#include <pthread.h>

#include "engine/history/hidden.h"
#include "engine/history/history.h"
#include "engine/history/merger.h"
#include "engine/history/slow_lane.h"
#include "engine/objects/objects.h"

/* A number given to a moment. */
struct view {
	uint64_t partition;     /* 0: the whole device */
	uint64_t bound;         /* 0: not in use */
	uint64_t objects_bound; /* objects are read at it: each of their changes counts */
	uint64_t used_ms;       /* when it was asked for last, or something was read at it */
	bool opened;            /* by engine_view_open: somebody may come back to its number */
	uint32_t holders;       /* engine_view_hold, and not released */
};

#define ENGINE_VIEWS (ENGINE_VIEW_LAST - ENGINE_VIEW_FIRST + 1)

/*
 * How far the round has got that looks for bounds that no clone stands on any more: see standing.h.
 */
struct standing_review {
	uint32_t source;  /* index of the next one */
	uint64_t element; /* of its set, the next one */
	bool failed;      /* something of this round could not be looked at */
};

#define PAST_OWNERS 64

struct past {
	struct hidden hidden;
	struct slow_lane lane;
	struct engine_retention policy; /* of the device: of partitions without one of their own */
	bool clock_behind;              /* it was warned of: see times.c */
	/*
	 * Pieces of an object that goes back: with no more it is put again; and where that can't be
	 * had otherwise, up to so many.
	 */
	uint64_t pieces_put_again, pieces_put_max;
	struct standing_review review;
	/*
	 * Merge steps in a row that gained nothing. When all have been tried for nothing: the count
	 * of transactions, or the time, from which on to try again.
	 */
	uint32_t merge_futile;
	uint64_t merge_freed, merge_taken; /* segments, by steps that are judged together */
	uint64_t merge_again, merge_again_ms;
	struct merger merger;
	/* Who had an index when a merge asked last: the partition tells whether it still has. */
	struct {
		uint16_t index;
		uint64_t partition; /* 0: nobody asked */
	} owners[PAST_OWNERS];
	uint64_t reclaimed_at; /* transactions when history was given up last */
	/* What had been put when that history began that has not been given up; see retention.c. */
	struct {
		uint64_t bound, put_bytes;
		bool known;
	} kept_since;
	/* Up to this count of transactions merging takes dear segments: no history may go. */
	uint64_t merge_dear_until;
	int warned_merge, warned_review; /* the errors that were logged last */
	pthread_mutex_t views_mutex;
	struct view views[ENGINE_VIEWS];
	/*
	 * Where the next one goes. It begins somewhere else each time, so that a number of before
	 * seldom means anything.
	 */
	uint32_t views_next;
};

/* For the table in calls.c; see history_calls.h. */
int past_open(struct engine *engine);
void past_close(struct engine *engine);
int past_learn(struct engine *engine);

#endif
