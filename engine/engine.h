/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The object store: partitions of user objects and collections with data, attributes, timestamps and versions.
 *
 * Everything happens inside a transaction (one transaction = one OSD command). A writing transaction excludes all
 * others; reading transactions run side by side. What a writing transaction did becomes visible, and
 * crash-proof, as a whole at engine_commit, or not at all.
 *
 * Results are 0 or a negative errno:
 *   -ENOENT     no such partition, object, attribute or version
 *   -EEXIST     requested ID is taken
 *   -EINVAL     argument out of its documented range
 *   -ENOTEMPTY  partition has members
 *   -ENOSPC     device full; the transaction can go on or be aborted
 *   -EFBIG      object, attribute set or ID space at its limit
 *   -EMLINK     a clone of a clone, and so on, too deep
 *   -E2BIG      more modifications than are looked for at once
 *   -EROFS      written through an address with a version, or the transaction is a reading one
 *   -EPERM      retention is locked
 *   -EBUSY      something stands on it
 *   -EOVERFLOW  all sequence numbers, or all moments, have been used up: see engine_begin
 *   -EBADMSG    stored data fails its checksum; nothing was returned
 *   -EIO        device error
 * After an error other than -ENOSPC/-EFBIG/-EIO a call has changed nothing. After any error of a writing call
 * the caller normally aborts.
 */
#ifndef MUNINN_ENGINE_ENGINE_H
#define MUNINN_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "nand/nand.h"

struct engine;
struct engine_txn;

/* IDs 1..0xFFFF are reserved in every partition, and as partition IDs. */
#define ENGINE_FIRST_ID UINT64_C(0x10000)
/* Partition IDs fit in 48 bits. */
#define ENGINE_LAST_PARTITION_ID UINT64_C(0xFFFFFFFFFFFF)
#define ENGINE_PARTITIONS_MAX    65534
/* Largest object: 2^31 pieces of a page. With 4096-byte pages 8 TiB. */
#define ENGINE_PIECES_MAX          UINT32_C(0x80000000)
#define ENGINE_ATTRIBUTE_BYTES_MAX 65534
#define ENGINE_TABLE_CACHE_MIN     (UINT64_C(64) << 10)
/* All attributes of one object together, 16 bytes of overhead an attribute included. */
#define ENGINE_ATTRIBUTE_SET_BYTES_MAX (1U << 20)

/* See engine_options.history_interval_ms. */
#define ENGINE_EVERY_COMMAND UINT32_MAX

/* What becomes of a row's active segment in which a key has no place left, while others still have. */
enum engine_hot_rows {
	ENGINE_HOT_ROWS_FINALISE, /* it is sealed as it is */
	ENGINE_HOT_ROWS_KEEP, /* it is filled further beside a second one that takes such keys; costs an eighth more NVRAM */
	ENGINE_HOT_ROWS_SPREAD, /* the key goes on page by page wherever there is room, and the segment is filled */
};

/* finalise, keep, spread; and back. -EINVAL: another word. */
const char *engine_hot_rows_name(enum engine_hot_rows hot_rows);
int engine_hot_rows_parse(const char *name, enum engine_hot_rows *hot_rows);

struct engine_options {
	/* Placement (fixed at format; stored in the device). 0 = default everywhere. */
	uint32_t
		rows; /* active segments, power of two 1..1024; default by device size: 128 from 16 GiB */
	uint32_t segment_pages; /* power of two 8..4096, multiple of the erase block; default 256 */
	uint32_t
		record_bytes; /* expected mean record with header, sizes the filters; default 1024 */
	uint32_t
		fpr_millionths; /* false-positive rate of the newest table, 10^-6; default 500 (0.0005) */
	uint32_t fpr_factor_permille; /* growth of the rate per older table; default 1010 (1.01) */
	uint32_t filters;             /* of a segment, 8..16; default 8 */
	uint32_t
		paged_filters; /* of them, with a hash function of their own: filters, or filters - 1 and the last for
				     overflowed keys; default 7 ("8/7") */
	bool even_filters;                /* of equal size ("N"); default skewed ("S") */
	uint32_t over_provision_permille; /* hidden from users; default 100 (10 %) */
	enum engine_hot_rows hot_rows;    /* default: finalise */
	/* Run time. */
	bool stable_commits; /* every commit is as with `stable`; otherwise they survive a crash of the process only */
	/*
	 * Complete tables stay on flash and are read a page at a time as they are needed, through a cache of so many bytes
	 * (at least ENGINE_TABLE_CACHE_MIN); 0: they are kept in memory.
	 */
	uint64_t table_cache_bytes;
	/*
	 * When the NVRAM is lost or unusable: open with what is on flash, without what was only in NVRAM (-EINVAL otherwise).
	 * To be given once, and taken back.
	 */
	bool recover_without_nvram;
	bool merge_manual; /* space is reclaimed by engine_merge only; otherwise also when it gets low */
	uint32_t
		internal_version_tables; /* read-only tables of a row that make an internal version; default 1 */
	uint32_t onode_cache_entries;   /* decoded objects kept in memory; default 4096 */
	uint32_t directory_cache_nodes; /* decoded directory nodes kept in memory; default 1024 */
	/*
	 * Versions whose bound is kept in memory once it was asked for, 24 bytes each; default 16384. Reading an object as of
	 * another one costs one more look-up, of the version's record.
	 */
	uint32_t version_cache_entries;
	/*
	 * Moments of the past that can be told apart are so far apart; default 1000. ENGINE_EVERY_COMMAND: each command is
	 * one, which keeps every state of every directory.
	 */
	uint32_t history_interval_ms;
	uint64_t (*clock_ms)(void *); /* milliseconds since 1970 UTC; NULL = the system's clock */
	void *clock_context;
	const uint8_t *
		boot_id; /* 16 bytes that change when the host starts, read while opening; NULL: the kernel's */
};

/* Zeroed NVRAM bytes that nand_create must provide for an engine formatted with these options. -EINVAL in `error`. */
int engine_nvram_bytes(const struct nand_geometry *geometry, const struct engine_options *options,
		       uint64_t *bytes, struct error_text *error);

/* Makes an empty store on a new or used device. Everything that it held is gone. */
int engine_format(struct nand *nand, const struct engine_options *options,
		  struct error_text *error);

/*
 * Opens a formatted device, completing or discarding whatever a crash left. The placement fields of `options` are
 * ignored. The engine uses `nand` until engine_close but does not own it.
 * -ENODEV: not formatted. -EINVAL: other version, corrupt. `error` says what and where.
 */
int engine_open(struct nand *nand, const struct engine_options *options, struct engine **engine,
		struct error_text *error);

/* Makes everything stable and closes. Returns the first error; the handle is gone in any case. */
int engine_close(struct engine *engine);

/* Closes as `kill -9` would: nothing is flushed. For tests. */
void engine_abandon(struct engine *engine);

/* What this engine can do; later engines differ. */
enum engine_capability {
	ENGINE_CAN_SNAPSHOT = 1 << 0,
	ENGINE_CAN_ROLLBACK = 1 << 1,
	ENGINE_CAN_MERGE = 1 << 2,
	ENGINE_KEEPS_HISTORY = 1 << 3,
};
uint32_t engine_capabilities(const struct engine *engine);

/* ---- addresses and transactions ---- */

enum engine_type { ENGINE_ROOT, ENGINE_PARTITION, ENGINE_COLLECTION, ENGINE_USER_OBJECT };

/* (0, 0) root; (P, 0) partition; (P, O) user object or collection. */
struct engine_address {
	uint64_t partition;
	uint64_t object;
	uint32_t version; /* 0 = current; v = as of that version, read-only: see "history" */
	uint32_t
		ago; /* user objects: as before their newest `ago` (to ENGINE_AGO_MAX) modifications, read-only; version must be 0 */
};

#define ENGINE_HISTORY_PROGRAMS 2

enum engine_mode {
	ENGINE_READ,  /* shared */
	ENGINE_WRITE, /* exclusive; refuses to use the space reserved for removing */
	ENGINE_FREE,  /* exclusive; for removing, which must work on a full device */
	/*
	 * Exclusive; for one engine_snapshot or engine_rollback: neither begins nor ends with work that others have left to do. At
	 * most ENGINE_HISTORY_PROGRAMS pages are programmed from beginning to end, unless the device is so full that nothing can
	 * be removed. A rollback works then, too, a snapshot does not.
	 */
	ENGINE_HISTORY,
	/*
	 * Exclusive; for setting policies and dropping versions alone. However often anything is removed, room is left for these and
	 * for going back; these, and going back in what is locked, have some that no other rollback uses.
	 */
	ENGINE_RESCUE,
};

/*
 * Waits for its turn. Only the thread that began a transaction uses and ends it. -ENOMEM. -EOVERFLOW: the engine has 2^48
 * sequence numbers in 2^32 slots, of which it uses one for each history_interval_ms, or for each command. When there are no more
 * slots, what needs a moment of its own (versions, going back, clones) ends with this error; when there are no more numbers
 * either, every writing transaction. Reading goes on.
 */
int engine_begin(struct engine *engine, enum engine_mode mode, struct engine_txn **txn);

/* Timestamps are left alone by all later calls of this transaction, or handled as usual again. */
void engine_bypass_timestamps(struct engine_txn *txn, bool bypass);

/* Milliseconds since 1970 at engine_begin. */
uint64_t engine_txn_time(const struct engine_txn *txn);

/* The highest sequence number that has been, or that a moment up to now may be told as: the end of the present one's. */
uint64_t engine_txn_sequence_max(const struct engine_txn *txn);

/*
 * Ends a transaction and frees it. `stable`: on return all that is committed survives power loss of the host, of a reading
 * one all that it may have read; commits of several threads that come together share one flush.
 * -ENOSPC: there was no room for its metadata; nothing of it happened, as after engine_abort. -EIO of the sync: it is
 * committed, its durability unknown. Other errors (-EIO of a put, -ENOMEM): nothing of it happened.
 */
int engine_commit(struct engine_txn *txn, bool stable);

/* Ends a transaction, nothing of which happened. Also right for reading ones. */
void engine_abort(struct engine_txn *txn);

/*
 * FORMAT OSD: begins a transaction as with ENGINE_FREE, in which there are no partitions, objects, versions and attributes any
 * more, but for the root's lasting attributes; it may set others. With its commit everything else is gone and all that it did is
 * there, at once; an abort leaves everything as it was. -EPERM: the retention of a partition is locked. -EBADMSG: the
 * lasting attributes can't be read.
 */
int engine_begin_format(struct engine *engine, struct engine_txn **txn);

/* The same, with nothing in it. */
int engine_reformat(struct engine *engine);

/*
 * Everything committed becomes stable on the host's storage, access times included (unless the device is full: then
 * they stay in memory).
 */
int engine_flush(struct engine *engine);

/* ---- partitions and objects ---- */

/*
 * `requested` 0: the engine chooses highest + 1, from ENGINE_FIRST_ID, or when that is beyond the last ID one in a gap
 * (free_ids.h). `chosen` may be NULL.
 */
int engine_partition_create(struct engine_txn *txn, uint64_t requested, uint64_t *chosen);

/* -ENOTEMPTY when it has objects or collections, unless `contents`. */
int engine_partition_remove(struct engine_txn *txn, uint64_t partition, bool contents);

/*
 * Creates `count` (>= 1) empty objects of `type` (ENGINE_USER_OBJECT or ENGINE_COLLECTION) with consecutive IDs.
 * `requested` 0: highest ID of either type + 1, or in a gap as above; otherwise count must be 1. `first` (may be NULL) = lowest
 * new ID.
 */
int engine_create(struct engine_txn *txn, uint64_t partition, enum engine_type type,
		  uint64_t requested, uint32_t count, uint64_t *first);
/* The same with `requested` 0, for callers to whom IDs above `last` mean nothing. */
int engine_create_up_to(struct engine_txn *txn, uint64_t partition, enum engine_type type,
			uint64_t last, uint32_t count, uint64_t *first);

/* A user object leaves its collections with it. -ENOTEMPTY: a collection with members. */
int engine_remove(struct engine_txn *txn, struct engine_address address);

/* ---- data of user objects ---- */

/* Extends the object when the range ends behind its end; the gap is a hole. Length 0 changes nothing. */
int engine_write(struct engine_txn *txn, struct engine_address address, uint64_t offset,
		 const void *data, uint64_t length);

/* Writes at the end; `offset` (may be NULL) = where. */
int engine_append(struct engine_txn *txn, struct engine_address address, const void *data,
		  uint64_t length, uint64_t *offset);

/* Cuts or extends (with a hole) to `length` bytes. */
int engine_truncate(struct engine_txn *txn, struct engine_address address, uint64_t length);

/* Zeros over the range (a hole where whole pieces are covered); extends like a write. */
int engine_clear(struct engine_txn *txn, struct engine_address address, uint64_t offset,
		 uint64_t length);

/* Removes the range and moves the rest down. -EINVAL when it starts behind the end. */
int engine_punch(struct engine_txn *txn, struct engine_address address, uint64_t offset,
		 uint64_t length);

/* Reads up to the end; `got` = bytes read (0 at or behind the end). Holes are zeros. */
int engine_read(struct engine_txn *txn, struct engine_address address, uint64_t offset, void *data,
		uint64_t length, uint64_t *got);

/* ---- layout of data ---- */

enum engine_extent_kind {
	ENGINE_EXTENT_DATA,
	ENGINE_EXTENT_HOLE,
	ENGINE_EXTENT_DAMAGED, /* stored data that fails its checksum or is lost */
	ENGINE_EXTENT_SAME,    /* engine_compare: both objects have the same bytes */
};

struct engine_extent {
	enum engine_extent_kind kind;
	uint64_t offset, length;
};

/*
 * The run of one kind that begins at `offset`, in whole pages but for its ends. With `verify` all data is read, and damaged
 * data is found; otherwise it is read only where memory does not tell whether there is any. `*budget` pages at most
 * are read, by which it is lowered: the run ends where it is used up. -ENOENT: `offset` is not inside the object.
 * -EAGAIN: the budget does not even allow the first page. -EINVAL: not a user object.
 */
int engine_map(struct engine_txn *txn, struct engine_address address, uint64_t offset, bool verify,
	       uint32_t *budget, struct engine_extent *extent);

/*
 * The run that begins at `offset` in which two user objects are the same, or differ: then the kind is what the first has
 * there, or damaged if either is. Where only one of them has bytes they differ. Budget and errors as engine_map; -ENOENT
 * when `offset` is inside neither object, or there is no such object.
 */
int engine_compare(struct engine_txn *txn, struct engine_address first,
		   struct engine_address second, uint64_t offset, uint32_t *budget,
		   struct engine_extent *extent);

/* Gives a user object the data of another one: length, bytes and holes. -EBADMSG: some of it is damaged. */
int engine_copy_data(struct engine_txn *txn, struct engine_address from, struct engine_address to);

/* ---- attributes: plain storage of any object, root and partitions included ---- */

/*
 * Sets, or with length 0 removes, one attribute; removing what is not set is no error. Page and number are not
 * interpreted. -EFBIG past the limits.
 */
int engine_attribute_set(struct engine_txn *txn, struct engine_address address, uint32_t page,
			 uint32_t number, const void *value, uint32_t length);

/* Copies at most `capacity` bytes; `length` = full length. -ENOENT when not set. */
int engine_attribute_get(struct engine_txn *txn, struct engine_address address, uint32_t page,
			 uint32_t number, void *value, uint32_t capacity, uint32_t *length);

/* The first attribute at or behind (*page, *number), in order of page and number; fills both. -ENOENT: no more. */
int engine_attribute_next(struct engine_txn *txn, struct engine_address address, uint32_t *page,
			  uint32_t *number, void *value, uint32_t capacity, uint32_t *length);

/*
 * Attributes of the root and of partitions on these pages are **lasting** from now on: of what holds now, and no part of
 * history. The calls above find them like all others, under an address with a version those of the present. No rollback
 * takes them back, a clone begins without any, a refreshed one keeps its own, engine_begin_format leaves those of the root. A
 * partition that a rollback of the device brings back has those that it was removed with, or none if they are lost (struct
 * engine_stat). To be called before the first transaction; at most ENGINE_LASTING_PAGES_MAX pages.
 */
#define ENGINE_LASTING_PAGES_MAX 8
void engine_set_lasting_pages(struct engine *engine, const uint32_t *pages, uint32_t count);

/*
 * The memo: a number that the caller keeps on the device beside all objects. It is no part of history, no rollback and no
 * format takes it away; it is 0 on a new device, and again on one whose NVRAM was lost. Setting it needs neither room nor a sequence
 * number nor a turn: it works, inside and outside of transactions and on any thread, where nothing else can be written any
 * more, and outlives the process from then on. `stable`: on return also a power loss of the host (-EIO: it may not); otherwise
 * with the next flush, or with engine_options.stable_commits at once.
 */
uint64_t engine_memo(const struct engine *engine);
int engine_set_memo(struct engine *engine, uint64_t memo, bool stable);

/*
 * ---- collections: ordered sets of IDs of their partition's user objects ----
 *
 * An object can know that it is a member: its memberships are attributes of page ENGINE_MEMBERSHIPS_PAGE, each value a
 * collection's ID in 8 bytes, big-endian. The attribute calls above show them, only engine_membership_set changes them
 * (engine_attribute_set: -EINVAL). They end with the object and with the collection. Members that were only
 * inserted are bare IDs, which stay when their object goes.
 */
#define ENGINE_MEMBERSHIPS_PAGE        4u
#define ENGINE_MEMBERSHIPS_LAST_NUMBER UINT32_C(0xFFFFFF00) /* the first is 1 */
/* Of one object, so that removing it is bounded. */
#define ENGINE_MEMBERSHIPS_MAX 1024
/* A page of attributes that is the engine's own: never shown, -EINVAL when set. */
#define ENGINE_PRIVATE_PAGE UINT32_C(0xFFFFFFFF)

/*
 * Makes membership `number` of a user object that of `collection`, 0 = of none; the one that it was before ends.
 * -EINVAL: not a user object, number out of range, no such collection. -EEXIST: the object is in that collection already.
 * -EFBIG: more than ENGINE_MEMBERSHIPS_MAX.
 */
int engine_membership_set(struct engine_txn *txn, struct engine_address object, uint32_t number,
			  uint64_t collection);

/* How many collections an object knows that it is in. */
int engine_membership_count(struct engine_txn *txn, struct engine_address object, uint32_t *count);

/*
 * Adds a bare ID, whether there is such an object or not. If the object was a member before and was taken out by
 * engine_member_remove or engine_members_clear, it knows of it again. -EEXIST; -EINVAL: not a collection.
 */
int engine_member_insert(struct engine_txn *txn, struct engine_address collection, uint64_t object);

/* Takes an ID out. -ENOENT: it was not in (or there is no such collection). */
int engine_member_remove(struct engine_txn *txn, struct engine_address collection, uint64_t object);

/* Empties a collection at once, whatever it holds. */
int engine_members_clear(struct engine_txn *txn, struct engine_address collection);

/* ---- facts ---- */

enum engine_time {
	ENGINE_TIME_CREATED,
	ENGINE_TIME_ATTRIBUTES_ACCESSED,
	ENGINE_TIME_ATTRIBUTES_MODIFIED,
	ENGINE_TIME_DATA_ACCESSED,
	ENGINE_TIME_DATA_MODIFIED,
	ENGINE_TIMES
};

struct engine_stat {
	enum engine_type type;
	uint64_t length; /* user objects: logical length in bytes */
	uint64_t
		used_bytes; /* pieces that hold data * page size; partition: sum over its objects; root: 0 */
	/* root: partitions; partition: user objects and collections; collection: IDs in it */
	uint64_t members;
	uint64_t collections;       /* partition: collections among the members */
	uint64_t created_sequence;  /* sequence number of the command that created it */
	uint64_t modified_sequence; /* sequence number of the last command that changed it */
	uint64_t
		filled_sequence; /* collection: of the last command that added a member, 0 = none */
	uint32_t version;        /* partition: its current user version, counting from 1 */
	/* root, partition, where there are lasting attributes: of the last command that changed one of the present's */
	uint64_t lasting_sequence;
	/*
	 * The partition was removed, another one had its place, and a rollback of the device brought it back: what lasting
	 * attributes it had is not known. It stays so, whatever is set.
	 */
	bool lasting_lost;
	uint64_t times_ms[ENGINE_TIMES];
};

/* Bytes of a piece: objects are stored in whole ones. */
uint32_t engine_page_bytes(const struct engine *engine);

int engine_stat(struct engine_txn *txn, struct engine_address address, struct engine_stat *stat);

/*
 * What all partitions hold together: the sum of their used_bytes, with what the transaction has changed, and by how much this has
 * made it grow (0 of a transaction that rolls a partition or the device back). Counted once, by reading the state of each
 * partition, when it is asked for the first time, and after rollbacks; otherwise constant time.
 */
int engine_used(struct engine_txn *txn, uint64_t *bytes, int64_t *change);

/*
 * Sets one timestamp explicitly (all but created; below 2^48). Creating an object sets all of them. The engine itself
 * maintains them: data and attribute calls update the modified times at commit, engine_accessed the accessed times.
 * Accessed times are kept in memory and become stable at flush, close, when many have gathered, or at the next change
 * of the object.
 */
int engine_set_time(struct engine_txn *txn, struct engine_address address, enum engine_time which,
		    uint64_t ms);

/* Notes an access now. Works in reading transactions. */
int engine_accessed(struct engine_txn *txn, struct engine_address address, bool data,
		    bool attributes);

enum engine_list {
	ENGINE_LIST_PARTITIONS,
	ENGINE_LIST_USER_OBJECTS,
	ENGINE_LIST_COLLECTIONS,
	ENGINE_LIST_MEMBERS, /* of the collection `partition.object`; -EINVAL if that is none */
};

/*
 * IDs >= `first` in ascending order, at most `capacity` of them. `partition.object` is ignored but for members; for
 * partitions the whole address but its version. `next` = first ID not returned, 0 when all were.
 */
int engine_list(struct engine_txn *txn, struct engine_address partition, enum engine_list what,
		uint64_t first, uint64_t *ids, size_t capacity, size_t *count, uint64_t *next);

/* How many IDs >= `first` there are. Constant time for first = 0, otherwise proportional to the directory's nodes. */
int engine_list_count(struct engine_txn *txn, struct engine_address partition,
		      enum engine_list what, uint64_t first, uint64_t *count);

/*
 * The sequence number of the last command that changed the list; it may be that of a later one after the unit was opened or a
 * command failed. So of two equal ones the list is the same.
 */
int engine_list_sequence(struct engine_txn *txn, struct engine_address partition,
			 enum engine_list what, uint64_t *sequence);

/* ---- history: moments and versions ---- */

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
 * The sequence number up to which a moment reaches; partition 0: of the whole device. A time means the last boundary that
 * is not behind it (engine_options.history_interval_ms).
 * -ENOENT: no such version; before the partition was made, or when it was gone for a while; or history does not reach back that
 * far (engine_history). -ENODATA: the device does not have the moment, since a partition kept nothing then (ENGINE_RETAIN_NONE of its
 * own). -ESTALE: the clock was ahead at that time, or is behind now, so that it means no moment for certain.
 */
int engine_moment_resolve(struct engine_txn *txn, uint64_t partition, struct engine_moment moment,
			  uint64_t *sequence);

/* The same for objects alone: a sequence number between the boundaries of its partition is taken exactly. */
int engine_object_moment_resolve(struct engine_txn *txn, uint64_t partition,
				 struct engine_moment moment, uint64_t *sequence);

/*
 * Keeps this moment of a partition, or with partition 0 of the whole device, as a version: reading at it gives the state of
 * now, but access times may be older. Puts a few records, whatever there is. `name` (1..ENGINE_VERSION_NAME_MAX bytes)
 * may be NULL. Must come before all changes of its transaction: -EINVAL. -EEXIST: the name is taken. -EFBIG: kept
 * versions have all numbers. The number is the one behind the last given that no kept version has; behind the last of all
 * comes the first again, so that a dropped version's number is given again as late as possible.
 */
int engine_snapshot(struct engine_txn *txn, uint64_t partition, const char *name,
		    uint32_t *version);

struct engine_version {
	uint32_t version;
	uint64_t position; /* newer versions have higher ones; their numbers may be lower */
	uint64_t sequence, time_ms;
	uint64_t used_bytes, objects; /* of the partition then; versions of the device: 0 */
	/*
	 * Put since the version before: in the partition, or, of a version of the device, on the whole device. The most that
	 * the version holds alone. A crash may take back what was put in the last second before.
	 */
	uint64_t written_bytes;
	char name[ENGINE_VERSION_NAME_MAX + 1]; /* "": none */
};

/*
 * The kept versions of a partition, those of the device at which it was there among them, or of the device
 * (partition 0), from the oldest to the newest: the first one whose position is >= `from`. -ENOENT: no more.
 */
int engine_version_next(struct engine_txn *txn, uint64_t partition, uint64_t from,
			struct engine_version *version);

/* The version of that name: of the partition, else of the device. -ENOENT. */
int engine_version_find(struct engine_txn *txn, uint64_t partition, const char *name,
			uint32_t *version);

/*
 * Ends a version: what only it needs can be reclaimed. Partition 0 for versions of the device. -EBUSY: a clone stands on
 * it, or did at a moment that can be reached. -EPERM: the partition's retention is locked (of the device: that of any partition).
 */
int engine_version_drop(struct engine_txn *txn, uint64_t partition, uint32_t version);

/*
 * A version number for a moment of a partition, in memory only: it keeps nothing from being reclaimed, and ends with the
 * engine (-ENOENT for its number then). The same moment has the same number; that of one that nothing was read at for
 * ENGINE_VIEW_UNUSED_MS may be given to another one. -EFBIG: all are in use. Works in reading transactions.
 */
int engine_view_open(struct engine_txn *txn, uint64_t partition, struct engine_moment moment,
		     uint32_t *version);
/*
 * The same of the present, for who reads at it in several transactions and then releases it: unless others have asked for it, its
 * number is free at once. *bound = what engine_moment_resolve says of the number. One that is never released ends like others.
 */
int engine_view_hold(struct engine_txn *txn, uint64_t partition, uint32_t *version,
		     uint64_t *bound);
void engine_view_release(struct engine_txn *txn, uint64_t partition, uint32_t version,
			 uint64_t bound);

/* ---- history: going back ---- */

/* Rollbacks on record: of each partition, and of the device. */
#define ENGINE_ROLLBACKS_OF_ONE 4096
/* Of all partitions together; beyond that each of them still has so many of its own. */
#define ENGINE_ROLLBACKS_SHARED 61440
#define ENGINE_ROLLBACKS_OWN    8
/* Of everything together: room for the own ones of all partitions, and for the device's. */
#define ENGINE_ROLLBACKS_MAX \
	(ENGINE_ROLLBACKS_SHARED + ENGINE_ROLLBACKS_OWN * 65536 + ENGINE_ROLLBACKS_OF_ONE)

/*
 * The partition (0: the whole device) is again as at `to`. What came after it is hidden, and can be reached by its
 * versions and moments as before, so that a rollback can itself be rolled back, until it is reclaimed. A few records,
 * whatever the size, and one for each partition that the device's brings back. Versions, retention and clones are not touched, but
 * that a partition which comes back has no versions and no retention of its own. Must come before all changes of its transaction and is
 * its only change: -EINVAL. -EFBIG: ENGINE_ROLLBACKS_OF_ONE are on record of it that moments which can be reached
 * lie behind, or ENGINE_ROLLBACKS_OWN and all that partitions share are taken. -EPERM, of the device: a partition whose retention is
 * locked would vanish. -ENOENT, -ENODATA, -ESTALE as engine_moment_resolve.
 */
int engine_rollback(struct engine_txn *txn, uint64_t partition, struct engine_moment to);

/*
 * One user object is again as at `to`, which is a modification like any other. It may have been removed since; one that did not
 * exist then is removed. It is a member of the collections of then again, as far as they are still there, and of no others that
 * it knows of. A few records, whatever the size: what was put since is hidden. Only a small one, and where hiding can't be had,
 * is put again where it differs: see docs/objects.md, "Rollbacks". -ENOENT: neither then nor now. -EFBIG: it would have to be put
 * again, and is too large for that.
 */
int engine_rollback_object(struct engine_txn *txn, uint64_t partition, uint64_t object,
			   struct engine_moment to);

/* Looking for a modification is one look-up for each newer one, so a single call counts so many. */
#define ENGINE_AGO_MAX 65536

/*
 * The same to before its newest `modifications` ones. -ENOENT: there are fewer within the kept history. -E2BIG: that is more than
 * ENGINE_AGO_MAX; engine_log_next finds the moment step by step.
 */
int engine_undo(struct engine_txn *txn, uint64_t partition, uint64_t object,
		uint32_t modifications);

/* Room that a command would have needed, and the moment that must not be given up for it. */
struct engine_room {
	uint64_t bytes, moment;
};

/*
 * After the -ENOSPC of one of the last two: whether it was seen before anything was put that there is too little room, but may be
 * some if history is given up. Then the transaction is to be aborted, and it may be tried once more after engine_make_room_for.
 */
bool engine_room_wanted(const struct engine_txn *txn, struct engine_room *wanted);

struct engine_modification {
	uint64_t sequence, time_ms;
	uint64_t length; /* of the object after it */
	bool removed, created;
};

/* Modifications of one object, newest first: the newest with a sequence number <= `below`. -ENOENT: no more. */
int engine_log_next(struct engine_txn *txn, uint64_t partition, uint64_t object, uint64_t below,
		    struct engine_modification *modification);

/* ---- history: differences ---- */

enum engine_difference_kind {
	ENGINE_OBJECT_ADDED,
	ENGINE_OBJECT_REMOVED,
	ENGINE_DATA_DIFFERS, /* offset and length: within the newer length; what was not there counts as zeros */
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
};

/*
 * The next difference between two moments of a partition, in order of object and offset. Bounded work a call: -EAGAIN
 * when none was found so far. -ENOENT: no more (cursor->state is then ENGINE_DIFF_DONE), or no such moment.
 */
#define ENGINE_DIFF_DONE UINT32_MAX
int engine_diff_next(struct engine_txn *txn, uint64_t partition, struct engine_moment from,
		     struct engine_moment to, struct engine_diff_cursor *cursor,
		     struct engine_difference *difference);

/* How far a cursor is: *done of *total; from call to call more, as long as the moments stay the same. Errors as above. */
int engine_diff_progress(struct engine_txn *txn, uint64_t partition, struct engine_moment from,
			 struct engine_moment to, const struct engine_diff_cursor *cursor,
			 uint64_t *done, uint64_t *total);

/* ---- history: what is kept ---- */

enum engine_retention_kind {
	ENGINE_RETAIN_SNAPSHOTS, /* all of history while there is room, the oldest goes first; versions stay */
	ENGINE_RETAIN_ALL,
	ENGINE_RETAIN_NONE, /* the present and versions */
};

/* What is kept beside the present and the versions. */
struct engine_retention {
	enum engine_retention_kind kind;
	uint64_t
		keep_all_ms; /* every moment this far back is kept for certain; 0: as the kind says */
	uint64_t keep_interval_ms;     /* behind that, one moment for each such interval ... */
	uint64_t keep_interval_for_ms; /* ... this far back */
	uint64_t
		locked_until_ms; /* until then nothing shortens any of it nor drops a version, and what it does not limit is kept; 0: not locked */
};

int engine_retention_get(struct engine_txn *txn, uint64_t partition,
			 struct engine_retention *retention);

/* -EPERM: would shorten what is locked, unless `administrator`. -EINVAL: not a policy. */
int engine_retention_set(struct engine_txn *txn, uint64_t partition,
			 const struct engine_retention *retention, bool administrator);

#define ENGINE_BLANKS_MAX 17

/* The device has no moment from the first time up to before the last, since a partition kept nothing then. */
struct engine_blank {
	uint64_t from_ms, until_ms; /* until_ms 0: it goes on */
};

/*
 * The administrator's word that the clock is right now, although commands are on record as of later (-ESTALE of moments): they were
 * before now. From this command on times count by the clock; those between *from_ms, ms since 1970, and now mean nothing, for good.
 * What policies have given up by the wrong clock stays so, and moments of their intervals count from now on. Must come before all
 * changes of its transaction. -EALREADY: nothing on record is ahead of the clock. -EINVAL: something was changed before.
 */
int engine_clock_trust(struct engine_txn *txn, uint64_t *from_ms);

struct engine_history {
	uint64_t horizon_sequence, horizon_time_ms; /* every moment from here on can be reached */
	uint64_t
		first_time_ms; /* of the device: every moment from here on, but for its blanks; else the same */
	uint32_t versions;  /* kept, the device's included */
	uint32_t rollbacks; /* of the partition and of the device */
	uint32_t blank_count;
	struct engine_blank blanks[ENGINE_BLANKS_MAX]; /* of the device, ascending */
};

int engine_history(struct engine_txn *txn, uint64_t partition, struct engine_history *history);

/* ---- history: clones ---- */

#define ENGINE_CLONE_DEPTH_MAX 16

/*
 * A new partition whose contents are those of `source` at a moment; nothing is copied. Not writable: a snapshot partition
 * of the standard (-EROFS for changes of it). -EMLINK: source is itself a clone, and so on, ENGINE_CLONE_DEPTH_MAX deep; it
 * stays so when it is detached, and when what it was made of is removed, since it reads there what it has not put itself.
 * -EFBIG: ID space at its limit.
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

/* Through how many partitions a partition reads what it has not put itself, detached and removed ones included. 0: it is no clone. */
int engine_clone_depth(struct engine_txn *txn, uint64_t partition, uint32_t *depth);

/* ---- reclaiming space ---- */

/* Added up over calls. */
struct engine_merge_result {
	uint64_t segments_freed;
	uint64_t records_moved, records_dropped;
};

/*
 * One step of a merge: frees one segment that holds little of what the present and the ended user versions need; moves
 * that. Not inside a transaction; waits for its turn; other threads get theirs between steps. -EAGAIN: none of the next
 * few segments was worth it. -ENOSPC, -EBADMSG (a damaged page: its segment stays), -EOPNOTSUPP.
 */
int engine_merge(struct engine *engine, struct engine_merge_result *result);

/*
 * Merges, and gives up the oldest history, until there is so much room; others get their turn between steps, and may use some of
 * it. Not inside a transaction. -ENOSPC: so much can't be had.
 */
int engine_make_room_for(struct engine *engine, const struct engine_room *wanted);

/* ---- statistics ---- */

/* Heap memory of the record store by what it holds, as the allocator counts it. NVRAM is apart: buffer_bytes, growing tables. */
enum engine_memory {
	ENGINE_MEMORY_TABLES, /* complete tables: images, or what of them is not on flash alone */
	ENGINE_MEMORY_TABLE_CACHE, /* pages of tables on flash */
	ENGINE_MEMORY_FILTERS,     /* filters and overflow maps of the active segments */
	ENGINE_MEMORY_ROWS,        /* rows, their lists of tables, internal versions and buffers */
	ENGINE_MEMORY_SEGMENTS, /* what is known of each segment: free ones, wear, rows, images */
	ENGINE_MEMORY_SCRATCH,  /* room for programming a segment and for roots */
	ENGINE_MEMORY_KINDS
};

const char *engine_memory_name(enum engine_memory kind);

struct engine_statistics {
	uint64_t
		capacity_bytes; /* offered to users: page data less over-provisioning and metadata */
	uint64_t used_bytes;    /* occupied by records of any age, of what is offered */
	uint64_t segments, segments_free, segments_sealed, segments_metadata;
	uint64_t rows, tables, internal_versions;
	uint64_t records_put, records_got, records_absent; /* since open */
	uint64_t record_bytes_put;
	uint64_t user_page_reads;      /* pages read from flash for lookups, wasted ones included */
	uint64_t false_positive_reads; /* of them: key was not there */
	uint64_t index_bytes;          /* filters, overflow maps and segment tables in memory */
	uint64_t table_cache_bytes;    /* of them, the cache of tables on flash */
	uint64_t table_reads;          /* pages of tables asked of that cache since open ... */
	uint64_t table_page_reads;     /* ... and those that it had to read from flash */
	uint64_t memory_bytes[ENGINE_MEMORY_KINDS];
	uint64_t buffer_bytes; /* row buffers, in NVRAM */
	uint64_t cache_bytes;  /* onode, directory, partition and version caches at their limits */
	uint64_t sealed_records; /* records in sealed segments */
	uint64_t sealed_record_bytes;
	uint64_t committed_sequence;
	uint64_t open_microseconds; /* how long engine_open took */
};

/* Waits for its turn like a reading transaction: never call it inside a transaction of the same thread. */
void engine_read_statistics(struct engine *engine, struct engine_statistics *statistics);

#endif
