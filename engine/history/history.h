/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The history of a partition, or of the whole device: which versions and other moments are kept,
 * and how far back they reach. Each has a record of its own, which no rollback hides. Byte layout
 * in docs/objects.md.
 */
#ifndef MUNINN_ENGINE_HISTORY_HISTORY_H
#define MUNINN_ENGINE_HISTORY_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "engine/history.h"
#include "engine/objects/objects.h"

#define HISTORY_FORMAT       10
#define HISTORY_BYTES        168
#define HISTORY_DEVICE_BYTES 292

/* What only the whole device has. */
struct device_history {
	/* Bounds before which moments are given up or not kept: see history_horizon. */
	uint64_t reclaimed;       /* where the kind is ENGINE_RETAIN_SNAPSHOTS */
	uint64_t lossy_removed;   /* of the device, what lossy partitions gave up that are gone */
	uint64_t inherited_floor; /* of partitions without a policy of their own */
	uint64_t intervals_floor; /* of the device's intervals */
	uint64_t left_since;      /* from here on partitions may be left out; 0: none ever was */
	uint64_t judged_ms;       /* up to when ages count */
	uint64_t reclaimed_ms;    /* device time at which `reclaimed` was raised last */
	uint64_t locked_until_ms; /* the latest lock of any partition, in device time */
	uint64_t passed_ms;       /* device time when this was put */
	uint64_t spared_ms;       /* of the slow lane: see slow_lane.h, and struct pace */
	uint32_t hidden_chunks;   /* of the table of hidden intervals */
	uint32_t lossy;           /* partitions whose own policy gives history up */
	uint32_t particular;      /* partitions with a policy of their own, removed ones too */
	uint32_t clones;          /* ever made */
	/* The table of times, and its last entry: see times.h. */
	uint32_t times, times_first;
	uint64_t slot_sequence, slot_ms, slot_bytes;
	uint64_t time_epoch_sequence, time_epoch_ms; /* where the present time epoch began */
	uint64_t last_version_bytes; /* engine.put_bytes when the last version was made */
};

struct history {
	uint64_t created_sequence; /* of its partition */
	uint32_t next_version;     /* the number of the next version, if no kept one has it */
	bool particular;           /* has a policy of its own; otherwise the device's counts */
	bool is_clone;             /* the partition began as a clone */
	/*
	 * Its lock is here in device time, and stays when it is over: what was given up since
	 * counts from then on.
	 */
	struct engine_retention retention;
	uint64_t written_bytes; /* put since the last version; see written.h */
	uint64_t floor;         /* a bound: only versions are kept of what is older */
	/*
	 * The device's moments do not show it from the one bound on, up to before the other. From
	 * 0: all show it; until 0: the stretch goes on. See left_out.h.
	 */
	uint64_t left_from, left_until;
	struct idset_header versions;
	/*
	 * Of a partition: the clones that stand on its bounds (history_clones). Nothing stands on
	 * the root, so its set is another one: the indices that are taken (history_indices).
	 */
	struct idset_header clones;
	struct device_history device; /* of the root */
};

/* The history of a new partition; with index 0, of a new device. */
struct history history_new(uint16_t index, uint64_t created_sequence);

/*
 * Encodes into `to`, and returns the length: HISTORY_BYTES, or HISTORY_DEVICE_BYTES with index 0.
 */
uint32_t history_encode(const struct history *history, uint16_t index, uint8_t *to);

/* -EBADMSG. */
int history_decode(struct history *history, uint16_t index, const uint8_t *from, uint32_t length);

/* Reads the history of an index, whoever owns it. None is on record: history_new(index, 0). */
int history_read(struct record_store *store, uint16_t index, struct history *history);

/* The same for the owner that was created at `created_sequence`: another one's counts as none. */
int history_load(struct engine *engine, uint16_t index, uint64_t created_sequence,
		 struct history *history);

int history_put(const struct record_writer *writer, uint16_t index, const struct history *history);

/* The sets of versions and of clones. */
struct idset history_versions(struct engine *engine, struct partition *partition);
struct idset history_clones(struct engine *engine, struct partition *partition);

/* The indices that are taken. Each is its owner's as long as anything shows it: see standing.h. */
struct idset history_indices(struct engine *engine, struct partition *root);

/* Elements of the set of versions, and of clones: bound and version number, or index. */
static inline uint64_t history_element(uint64_t bound, uint32_t number)
{
	return bound << 16 | number;
}

/*
 * The lowest bound of a set of versions or clones that is >= `sequence`; RECORD_NEWEST when there
 * is none. `number` (may be NULL) = its version number or index.
 */
int history_next_kept(const struct idset *set, uint64_t sequence, uint64_t *bound,
		      uint32_t *number);

/* The policy that holds for a partition, or for the device. */
const struct engine_retention *history_policy(const struct engine *engine,
					      const struct history *history);

/*
 * The bound from which on every moment of a partition (or of the device) can be reached. `device`:
 * the root's history.
 */
int history_horizon(struct engine *engine, const struct history *history,
		    const struct history *device, uint64_t *horizon);

/* The oldest bound at which the device may have moments other than versions. */
int history_device_oldest(struct engine *engine, const struct history *device, uint64_t *oldest);

/*
 * Whether a current partition, or the root, was there at `bound`. It may have been gone for a while
 * until a rollback of the device brought it back. 0, -ENOENT, -EIO, -EBADMSG.
 */
int history_was_there(struct engine *engine, const struct partition *partition, uint64_t bound);

/*
 * Whether a version keeps `bound` in a partition (in the root: in the whole device), or a clone
 * that stands on it, however old it is. 0 or -ENOENT.
 */
int history_keeps(struct engine *engine, struct partition *partition, uint64_t bound);

/* The same, or whether `bound` is not before the horizon, or ends a kept interval. */
int history_reaches(struct engine *engine, struct partition *partition, uint64_t bound);

/* *shows becomes true if a set of versions or clones has a bound from `from` to `to`. */
int history_set_shows(const struct idset *set, uint64_t from, uint64_t to, bool *shows);

/*
 * *shows becomes true if a partition itself (or with the root, the device) has a moment from `from`
 * to `to` that can be reached.
 */
int history_shows(struct engine *engine, struct partition *partition, uint64_t from, uint64_t to,
		  bool *shows);

/*
 * The bound from which on a policy keeps moments of intervals, of a partition (or of the device).
 * Older moments were under another policy, or none, so parts of them may be gone.
 */
uint64_t history_intervals_since(const struct history *history, const struct history *device);

/*
 * Lowers *lowest to the first bound >= `sequence` that a policy keeps for an interval, if that is
 * lower. Bounds that can't be reached any more do not count: at one of these a needed record may be
 * superseded, or lack its onode.
 */
int history_lower_by_interval(struct engine *engine, const struct history *history,
			      const struct history *device, uint64_t sequence, uint64_t *lowest);

/* Whether a policy keeps nothing but the present and versions. */
bool history_keeps_nothing(const struct engine_retention *policy);

/* The time that a policy keeps for the interval of `ms`, as of `now_ms`; 0: none any more. */
uint64_t history_interval_before(const struct engine_retention *policy, uint64_t now_ms,
				 uint64_t ms);

#endif
