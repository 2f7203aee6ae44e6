/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What is known about the history of a partition, or of the whole device: the versions that are
 * kept, what else is, and how far back it reaches. Kept in a record of its own that no rollback
 * hides. Byte layout in docs/objects.md.
 */
#ifndef MUNINN_ENGINE_HISTORY_HISTORY_H
#define MUNINN_ENGINE_HISTORY_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "engine/history.h"
#include "engine/objects/objects.h"

#define HISTORY_FORMAT       8
#define HISTORY_BYTES        168
#define HISTORY_DEVICE_BYTES 268

/* What only the whole device has. */
struct device_history {
	/* Under ENGINE_RETAIN_SNAPSHOTS what is older than this may have been reclaimed. */
	uint64_t reclaimed;
	uint64_t judged_ms;       /* when ages were last compared with what policies say */
	uint64_t inherited_floor; /* of those without a policy of their own */
	uint32_t hidden_chunks;   /* of the table of hidden intervals */
	uint32_t lossy;           /* partitions with a policy of their own that gives history up */
	uint32_t particular; /* partitions with a policy of their own, also those that are gone */
	uint32_t clones;     /* that were ever made */
	uint64_t lossy_removed;   /* no moment of the device before it: what lossy ones gave up that
				     are gone */
	uint64_t locked_until_ms; /* the latest of any partition */
	/* The table of times: see times.h. */
	uint32_t times, times_first;
	uint64_t slot_sequence, slot_ms, slot_bytes; /* its last entry */
	uint64_t last_version_bytes; /* what had ever been put when the last version was made */
	uint64_t time_epoch_sequence, time_epoch_ms; /* where the present one began */
	uint64_t intervals_floor; /* no moment of the device's intervals before it */
	uint64_t left_since;      /* no partition was left out of moments before it; 0: none ever */
};

struct history {
	uint64_t created_sequence; /* of the partition that it is about */
	uint32_t next_version;     /* the number that the next version gets if no kept one has it */
	bool particular;           /* has a policy of its own; otherwise the device's counts */
	bool is_clone;             /* the partition began as a clone */
	struct engine_retention retention;
	uint64_t written_bytes; /* put since the last version; see written.h */
	uint64_t floor;         /* no moment before this one can be reached, but kept versions */
	/*
	 * Moments of the device from the one on, up to before the other, do not show it; until 0:
	 * it goes on; from 0: all do. See left_out.h.
	 */
	uint64_t left_from, left_until;
	struct idset_header versions;
	struct idset_header clones;   /* of the root: indices that are taken */
	struct device_history device; /* of the root */
};

/* What holds for a partition, or with index 0 for the device, about which nothing is recorded. */
struct history history_new(uint16_t index, uint64_t created_sequence);

/*
 * Encodes into `to`, and returns the length: HISTORY_BYTES, or HISTORY_DEVICE_BYTES with index 0.
 */
uint32_t history_encode(const struct history *history, uint16_t index, uint8_t *to);

/* -EBADMSG. */
int history_decode(struct history *history, uint16_t index, const uint8_t *from, uint32_t length);

/*
 * Reads the history of an index, whoever it belongs to. Nothing is recorded: history_new with no
 * partition.
 */
int history_read(struct record_store *store, uint16_t index, struct history *history);

/*
 * The same for an owner that was created at `created_sequence`; that of another one counts as none.
 */
int history_load(struct engine *engine, uint16_t index, uint64_t created_sequence,
		 struct history *history);

/* Puts it. */
int history_put(const struct record_writer *writer, uint16_t index, const struct history *history);

/* The policy that holds for a partition (or the root). */
const struct engine_retention *history_policy(const struct history *history,
					      const struct history *device);

/* The sets of versions and of clones. */
struct idset history_versions(struct engine *engine, struct partition *partition);
struct idset history_clones(struct engine *engine, struct partition *partition);

/*
 * The indices that are taken: each from the creation of its owner until nothing shows that one any
 * more (standing.h), whether it is there now or not.
 */
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

/*
 * From when on every moment of a partition (or of the device) can be reached: a bound. `device` =
 * the root's.
 */
int history_horizon(struct engine *engine, const struct history *history,
		    const struct history *device, uint64_t *horizon);

/* Before which number the device has no moments at all but versions: none of intervals either. */
int history_device_oldest(struct engine *engine, const struct history *device, uint64_t *oldest);

/*
 * Whether a current partition, or the root, was there at `bound`: it may have been gone for a while
 * until a rollback of the device brought it back. -ENOENT: it was not, or not yet. -EIO, -EBADMSG.
 */
int history_was_there(struct engine *engine, const struct partition *partition, uint64_t bound);

/*
 * Whether `bound` is kept in a partition (or in the root: in the whole device) by a version, or
 * because a clone stands on it, however old it is. 0 or -ENOENT.
 */
int history_keeps(struct engine *engine, struct partition *partition, uint64_t bound);

/*
 * Whether `bound` can be reached in a partition (or in the root: in the whole device): it is not
 * before the horizon, or it is kept. 0 or -ENOENT.
 */
int history_reaches(struct engine *engine, struct partition *partition, uint64_t bound);

/* *shows becomes true if a set of versions or clones has a bound from `from` to `to`. */
int history_set_shows(const struct idset *set, uint64_t from, uint64_t to, bool *shows);

/*
 * *shows becomes true if a moment from `from` to `to` can be reached in a partition by itself, or
 * in the root: of the device.
 */
int history_shows(struct engine *engine, struct partition *partition, uint64_t from, uint64_t to,
		  bool *shows);

/*
 * From which bound on moments of a policy's intervals are kept, of a partition (or of the device);
 * RECORD_NEWEST: none are. What is older was kept by another policy, or by none, so it may be there
 * in part only.
 */
uint64_t history_intervals_since(const struct history *history, const struct history *device);

/*
 * Lowers *lowest to the first bound >= `sequence` that a policy keeps as the moment of an interval,
 * if that is lower. Only what still can be reached counts: a record that is needed later may be
 * superseded, or lack its onode, at a moment that is gone.
 */
int history_lower_by_interval(struct engine *engine, const struct history *history,
			      const struct history *device, uint64_t sequence, uint64_t *lowest);

/* Whether a policy keeps nothing but the present and versions. */
bool history_keeps_nothing(const struct engine_retention *policy);

/*
 * The moment that a policy with intervals keeps at or before `ms`, as a time; 0: none, at the
 * judged time `now_ms`.
 */
uint64_t history_interval_before(const struct engine_retention *policy, uint64_t now_ms,
				 uint64_t ms);

#endif
