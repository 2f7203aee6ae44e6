/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What this object store adds to engine.h, its history: moments and versions, going back,
 * differences, what is kept, clones. Errors, addresses and transactions are explained there.
 */
#ifndef MUNINN_ENGINE_HISTORY_H
#define MUNINN_ENGINE_HISTORY_H

#include "engine/engine.h"

/*
 * -ETIME, of a call that makes the present a moment that lasts (a snapshot, a view, a clone), that
 * goes back or formats: such calls come faster than the device's life allows. Nothing has happened,
 * and a second later it may be tried again (objects/slots.h).
 */

/* ---- moments and versions (ENGINE_HAS_VERSIONS) ---- */

/* Numbers of versions, as they are in addresses: 16 bits. */
#define ENGINE_PARTITION_VERSION_LAST 0x7fffu /* 1..: versions of one partition */
#define ENGINE_DEVICE_VERSION_FIRST \
	0x8000u /* ..: versions of the whole device, the same in all partitions */
#define ENGINE_DEVICE_VERSION_LAST 0xefffu
#define ENGINE_VIEW_FIRST          0xf000u /* ..0xffff: views, see engine_view_open */
#define ENGINE_VIEW_LAST           0xffffu
#define ENGINE_VIEW_UNUSED_MS      600000u
#define ENGINE_VERSION_NAME_MAX    63

enum engine_moment_kind { ENGINE_NOW, ENGINE_AT_VERSION, ENGINE_AT_TIME, ENGINE_AT_SEQUENCE };

/* A moment of the past. */
struct engine_moment {
	enum engine_moment_kind kind;
	uint64_t value; /* version number; milliseconds since 1970 UTC; sequence number */
};

/*
 * The sequence number up to which a moment reaches; partition 0: of the whole device. A time means
 * the last boundary that is not behind it (engine_options.history_interval_ms). -ENOENT: no such
 * version; before the partition was made, or when it was gone for a while; or history does not
 * reach back that far (engine_history). -ESTALE: a time before
 * the present time epoch (engine_time_epoch).
 */
int engine_moment_resolve(struct engine_txn *txn, uint64_t partition, struct engine_moment moment,
			  uint64_t *sequence);

/*
 * The same for objects alone: a sequence number between the boundaries of its partition is taken
 * exactly.
 */
int engine_object_moment_resolve(struct engine_txn *txn, uint64_t partition,
				 struct engine_moment moment, uint64_t *sequence);

/*
 * Keeps this moment of a partition, or with partition 0 of the whole device, as a version: reading
 * at it gives the state of now, but access times may be older. Puts a few records, whatever there
 * is. `name` (1..ENGINE_VERSION_NAME_MAX bytes) may be NULL. Must come before all changes of its
 * transaction: -EINVAL. -EEXIST: the name is taken. -EFBIG: kept versions have all numbers. The
 * number is the one behind the last given that no kept version has; behind the last of all comes
 * the first again, so that a dropped version's number is given again as late as possible.
 */
int engine_snapshot(struct engine_txn *txn, uint64_t partition, const char *name,
		    uint32_t *version);

/*
 * The same of some partitions at one instant: all of them have a version of it behind the
 * transaction, or none. versions: one for each. -EINVAL also: a partition occurs twice, or one is
 * 0, of which the others are parts.
 */
int engine_snapshot_group(struct engine_txn *txn, const uint64_t *partitions, size_t count,
			  const char *name, uint32_t *versions);

struct engine_version {
	uint32_t version;
	uint64_t position; /* newer versions have higher ones; their numbers may be lower */
	uint64_t sequence, time_ms;
	uint64_t used_bytes, objects; /* of the partition then; versions of the device: 0 */
	/*
	 * Put since the version before: in the partition, or, of a version of the device, on the
	 * whole device. The version alone holds no more than this. A crash may take back the last
	 * second of the count.
	 */
	uint64_t written_bytes;
	char name[ENGINE_VERSION_NAME_MAX + 1]; /* "": none */
};

/*
 * The kept versions of a partition, those of the device at which it was there among them, or of the
 * device (partition 0), from the oldest to the newest: the first one whose position is >= `from`.
 * -ENOENT: no more.
 */
int engine_version_next(struct engine_txn *txn, uint64_t partition, uint64_t from,
			struct engine_version *version);

/* The same of a partition's own versions alone, however many the device has between them. */
int engine_version_next_own(struct engine_txn *txn, uint64_t partition, uint64_t from,
			    struct engine_version *version);

/* The version of that name: of the partition, else of the device. -ENOENT. */
int engine_version_find(struct engine_txn *txn, uint64_t partition, const char *name,
			uint32_t *version);

/*
 * Ends a version: what only it needs can be reclaimed. Partition 0 for versions of the device.
 * -EBUSY: a clone stands on it, or did at a moment that can be reached. -EPERM: the partition's
 * retention is locked, or for a version of the device any partition's retention.
 */
int engine_version_drop(struct engine_txn *txn, uint64_t partition, uint32_t version);

/*
 * A version number for a moment of a partition, in memory only: it keeps nothing from being
 * reclaimed, and ends with the engine (-ENOENT for its number then). The same moment has the same
 * number. After ENGINE_VIEW_UNUSED_MS without a read at it, another moment may get the number.
 * -EFBIG: all are in use. Works in reading transactions.
 */
int engine_view_open(struct engine_txn *txn, uint64_t partition, struct engine_moment moment,
		     uint32_t *version);
/*
 * The same of the present, for who reads at it in several transactions and then releases it: unless
 * others have asked for it, its number is free at once. *bound = what engine_moment_resolve says of
 * the number. One that is never released ends like others.
 */
int engine_view_hold(struct engine_txn *txn, uint64_t partition, uint32_t *version,
		     uint64_t *bound);
void engine_view_release(struct engine_txn *txn, uint64_t partition, uint32_t version,
			 uint64_t bound);

/* How far back the moments of a partition reach; 0: of the device. */
struct engine_history {
	uint64_t horizon_sequence, horizon_time_ms; /* every moment from here on can be reached */
	uint32_t versions;                          /* kept, the device's included */
	uint32_t rollbacks;                         /* of the partition and of the device */
};

int engine_history(struct engine_txn *txn, uint64_t partition, struct engine_history *history);

/* ---- going back, and what there is to go back from (ENGINE_HAS_ROLLBACK) ---- */

/*
 * Rollbacks on record, of partitions, the device, and objects. A partition, and its objects
 * together, may have as many as are still free of these; beyond that they get slow ...
 */
#define ENGINE_HIDDEN_MAX 65536
/* ... and so many in any case, whatever others have. */
#define ENGINE_HIDDEN_OWN 8
/*
 * A rollback to a moment between another rollback and its moment leads back behind that one, and so
 * on: with more of these for readers to follow rollbacks get slow, too.
 */
#define ENGINE_HIDDEN_STEPS 4096

/*
 * The partition (0: the whole device) is again as at `to`. What came after it is hidden, and can be
 * reached by its versions and moments as before, so that a rollback can itself be rolled back,
 * until it is reclaimed. A few records, whatever the size. Versions, retention and clones are not
 * touched: a partition that the device's brings back has its own ones. Must come before all changes
 * of its transaction and is its only change: -EINVAL. -EPERM, of the device: a partition whose
 * retention is locked would vanish. -ENOENT, -ENODATA, -ESTALE as engine_moment_resolve.
 *
 * -ETIME: too fast. Beyond the limits above, and where history is locked and a device so full that
 * only the last room is left, three of a partition go in a minute (history/slow_lane.h), so that
 * nothing uses up going back. -EFBIG: four million are on record.
 */
int engine_rollback(struct engine_txn *txn, uint64_t partition, struct engine_moment to);

/*
 * One user object is again as at `to`, which is a modification like any other. It may have been
 * removed since; one that did not exist then is removed. It is a member of the collections of then
 * again, as far as they are still there, and of no others that it knows of. It puts a few records,
 * whatever the size, because it hides the newer data. Where the object is small, or no interval can
 * be had, it puts the differing data once more: see docs/objects.md, "Rollbacks". -ENOENT: neither
 * then nor now. -EFBIG: it would have to put the data once more, and the object is too large.
 */
int engine_rollback_object(struct engine_txn *txn, uint64_t partition, uint64_t object,
			   struct engine_moment to);

/* Looking for a modification is one look-up for each newer one, so a single call counts so many. */
#define ENGINE_AGO_MAX 65536

/* One transaction looks for so many modifications at most. An address with more `ago`: -E2BIG. */
#define ENGINE_AGO_AT_ONCE 4096

/*
 * The same to before its newest `modifications` ones. -ENOENT: there are fewer within the kept
 * history. -E2BIG: that is more than ENGINE_AGO_AT_ONCE.
 */
int engine_undo(struct engine_txn *txn, uint64_t partition, uint64_t object,
		uint32_t modifications);

/* How far an undo has come in counting modifications. All zero at the beginning. */
struct engine_undo {
	uint64_t newest; /* modification of the object when the count began */
	uint64_t bound;  /* before those that are counted */
	uint32_t counted;
};

/*
 * The same in several transactions, for up to ENGINE_AGO_MAX modifications. -EAGAIN: this one has
 * only counted; the next one goes on with `undo`, or begins again if the object was modified in
 * between.
 */
int engine_undo_on(struct engine_txn *txn, uint64_t partition, uint64_t object,
		   uint32_t modifications, struct engine_undo *undo);

/* Space that a command would have needed, and the moment that must not be given up for it. */
struct engine_space {
	uint64_t bytes, moment;
};

/*
 * After the -ENOSPC of one of the last two: whether it was seen before anything was put that there
 * is too little space, but may be some if history is given up. Then the transaction is to be
 * aborted, and it may be tried once more after engine_make_space.
 */
bool engine_space_wanted(const struct engine_txn *txn, struct engine_space *wanted);

/*
 * Merges, and gives up the oldest history, until there is so much space; others get their turn
 * between steps, and may use some of it. Not inside a transaction. -ENOSPC: so much can't be had.
 */
int engine_make_space(struct engine *engine, const struct engine_space *wanted);

struct engine_modification {
	uint64_t sequence, time_ms;
	uint64_t length; /* of the object after it */
	bool removed, created;
};

/*
 * Modifications of one object, newest first: the newest with a sequence number <= `below`. -ENOENT:
 * no more.
 */
int engine_log_next(struct engine_txn *txn, uint64_t partition, uint64_t object, uint64_t below,
		    struct engine_modification *modification);

/* ---- differences (ENGINE_HAS_DIFFERENCES) ---- */

enum engine_difference_kind {
	ENGINE_OBJECT_ADDED,
	ENGINE_OBJECT_REMOVED,
	ENGINE_DATA_DIFFERS,   /* offset and length: within the newer length; what was not there
				  counts as zeros */
	ENGINE_LENGTH_DIFFERS, /* offset: the shorter of the two; length: the new one */
	ENGINE_ATTRIBUTES_DIFFER,
};

struct engine_difference {
	enum engine_difference_kind kind;
	uint64_t object, offset, length;
};

/* All zero at the beginning. */
struct engine_diff_cursor {
	uint64_t object, offset;
	uint64_t passed; /* objects left behind, counted at each moment where they are */
	uint32_t state;
	/* Work of all calls so far, in sixteenths of a piece or an object looked at. */
	uint32_t looks;
};

/*
 * The next difference between two moments of a partition, in order of object and offset. Bounded
 * work a call: -EAGAIN when none was found so far. -ENOENT: no more (cursor->state is then
 * ENGINE_DIFF_DONE), or no such moment.
 */
#define ENGINE_DIFF_DONE UINT32_MAX
int engine_diff_next(struct engine_txn *txn, uint64_t partition, struct engine_moment from,
		     struct engine_moment to, struct engine_diff_cursor *cursor,
		     struct engine_difference *difference);

/*
 * How far a cursor is: *done of *total; from call to call more, as long as the moments stay the
 * same. Errors as above.
 */
int engine_diff_progress(struct engine_txn *txn, uint64_t partition, struct engine_moment from,
			 struct engine_moment to, const struct engine_diff_cursor *cursor,
			 uint64_t *done, uint64_t *total);

/* ---- what is kept (ENGINE_HAS_RETENTION) ---- */

enum engine_retention_kind {
	ENGINE_RETAIN_SNAPSHOTS, /* all of history while there is space, the oldest goes first;
				    versions stay */
	ENGINE_RETAIN_ALL,
	/*
	 * The present and versions. As a partition's own policy it also leaves the partition out of
	 * the device's moments from then on: they do not show it (-ENOENT), and a rollback of the
	 * device to one of them leaves it as it is.
	 */
	ENGINE_RETAIN_NONE,
};

/* What is kept beside the present and the versions. */
struct engine_retention {
	enum engine_retention_kind kind;
	uint64_t keep_all_ms; /* every moment this far back is kept for certain; 0: as the kind says
			       */
	uint64_t keep_interval_ms;     /* behind that, one moment for each such interval ... */
	uint64_t keep_interval_for_ms; /* ... this far back */
	/*
	 * Until then nothing shortens any of it nor drops a version, and what it does not limit is
	 * kept; milliseconds since 1970, 0: not locked. The lock counts the time that the device is
	 * open. So no clock ends it: it ends on this day if the device is open until then,
	 * otherwise later. What it kept stays when it is over, until room is needed.
	 */
	uint64_t locked_until_ms;
};

int engine_retention_get(struct engine_txn *txn, uint64_t partition,
			 struct engine_retention *retention);

/*
 * -EPERM: would shorten what is locked, unless `administrator`. A lock that would end less than a
 * minute earlier ends as before: clocks differ. -EINVAL: not a policy.
 */
int engine_retention_set(struct engine_txn *txn, uint64_t partition,
			 const struct engine_retention *retention, bool administrator);

/*
 * What takes the space. Pages of all that is stored are looked at, spread over the device, and each
 * record in them is judged as a merge would. Sums over few pages tell parts of the whole, about;
 * over all pages everything, once. A transaction that reads does a bounded part of that: the caller
 * adds up, and goes on with `position`.
 */
enum engine_survey_kind {
	ENGINE_SURVEY_PARTITION,
	ENGINE_SURVEY_DEVICE,  /* what the device notes about itself */
	ENGINE_SURVEY_REMOVED, /* partitions that are gone, and that a moment may still show */
	ENGINE_SURVEY_OTHERS,  /* partitions that were not asked for */
};

/* Bytes of records. */
struct engine_survey_part {
	enum engine_survey_kind kind;
	uint64_t partition; /* 0: none */
	uint64_t live;      /* what the present shows */
	uint64_t kept;      /* what only the past shows: versions, clones, what policies promise */
	uint64_t history;   /* the rest of it, which goes when writes need its space */
	uint64_t reclaimable; /* what nothing shows: the next merge may drop it */
	uint64_t freed; /* what moves to the last two when what `drop` and `horizon` say is done */
};

/* What the present does not show, and of all versions only this one. */
struct engine_survey_version {
	uint32_t version;
	uint64_t bytes;
};

#define ENGINE_SURVEY_PARTS     24
#define ENGINE_SURVEY_VERSIONS  24
#define ENGINE_SURVEY_DROPS     24
#define ENGINE_SURVEY_STRETCHES 256

/* A run of the flash's segments. */
struct engine_stretch {
	uint32_t segments, free, sealed; /* the others: what the device notes about itself */
	/* Of its pages that were looked at: bytes of records, and what the present shows of them.
	 */
	uint64_t looked_bytes, live_bytes;
};

struct engine_survey {
	uint64_t partition; /* whose versions; 0: the device's, and all partitions */
	uint32_t drop[ENGINE_SURVEY_DROPS], drop_count; /* its versions that would be dropped ... */
	uint64_t horizon;  /* ... and the sequence number before which only versions stay */
	uint64_t position; /* 0 at the beginning; then where to go on */
	uint64_t wanted;   /* pages in all */
	uint64_t work;     /* records that this transaction may read, about */
	/*
	 * The device in so many stretches, the caller's; added to in all parts, so zero at the
	 * beginning. A store without segments, or with fewer, lowers the number. NULL: none.
	 */
	struct engine_stretch *stretches;
	uint32_t stretch_count;
	/* Results, of this part. */
	bool done;
	uint64_t looked_at; /* pages */
	uint32_t part_count, version_count;
	struct engine_survey_part parts[ENGINE_SURVEY_PARTS];
	struct engine_survey_version versions[ENGINE_SURVEY_VERSIONS];
	/* Of the whole: pages; bytes of the flash that all records take; and beside them. */
	uint64_t pages, record_bytes;
	uint64_t capacity_bytes, used_bytes, flash_bytes;
};

/* -ENOENT: no such partition, or version. -EOPNOTSUPP. -EIO. */
int engine_survey(struct engine_txn *txn, struct engine_survey *survey);

/*
 * Begins a new time epoch, after a clock that was far ahead: recorded times never go down, so
 * until the clock has caught up all commands have the last one. From this command on times count by
 * the clock again. Moments of before are reached by number, version or name; a time before the
 * time epoch is refused (-ESTALE). Ages of what is kept count from now on at most: nothing is given
 * up earlier for it, what is gone stays so, and moments of intervals of before are no longer kept.
 * No lock ends earlier. Must come before all changes of its transaction. -EALREADY: nothing is
 * recorded as of later than the clock says. -EINVAL: something was changed before.
 */
int engine_time_epoch(struct engine_txn *txn);

/*
 * Puts on record how long the device has been open (options.h, running_ms), if at least `owed_ms`
 * of that is not yet. To be called now and then: other commands do it at most once in a
 * history_interval_ms, and a crash takes back what is not on record, so that locks last longer. Not
 * inside a transaction. -ENOSPC, -EIO: later is as good.
 */
#define ENGINE_KEEP_TIME_MS 60000
int engine_keep_time(struct engine *engine, uint64_t owed_ms);

/* ---- clones (ENGINE_HAS_CLONES) ---- */

#define ENGINE_CLONE_DEPTH_MAX 16

/*
 * A new partition whose contents are those of `source` at a moment; nothing is copied. Not
 * writable: a snapshot partition of the standard (-EROFS for changes of it). -EMLINK: source is
 * itself a clone, and so on, ENGINE_CLONE_DEPTH_MAX deep; it stays so when it is detached, and when
 * what it was made of is removed, since it reads there what it has not put itself. -EFBIG: ID space
 * at its limit.
 */
int engine_clone(struct engine_txn *txn, uint64_t source, struct engine_moment moment,
		 uint64_t requested, bool writable, uint64_t *chosen);

/* Again as its source is now; what was changed in it is hidden. -ENOENT: the source was removed. */
int engine_clone_refresh(struct engine_txn *txn, uint64_t clone);

/* No longer associated with its source; an ordinary, writable partition. */
int engine_clone_detach(struct engine_txn *txn, uint64_t clone);

struct engine_clone {
	uint64_t source; /* 0: it was removed */
	uint64_t sequence, time_ms;
	bool writable;
};

/* -ENOENT: not a clone. */
int engine_clone_get(struct engine_txn *txn, uint64_t partition, struct engine_clone *clone);

/*
 * Through how many partitions a partition reads what it has not put itself, detached and removed
 * ones included. 0: it is no clone.
 */
int engine_clone_depth(struct engine_txn *txn, uint64_t partition, uint32_t *depth);

#endif
