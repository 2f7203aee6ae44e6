/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What any object store can do: partitions of user objects and collections with data, attributes
 * and timestamps. What this one adds, its history, is in history.h; engine_capabilities tells what
 * a store has.
 *
 * Everything happens inside a transaction (one transaction = one OSD command). A writing
 * transaction excludes all others; reading transactions run side by side. What a writing
 * transaction did becomes visible, and crash-proof, as a whole at engine_commit, or not at all.
 *
 * Results are 0 or a negative errno:
 *   -ENOENT     no such partition, object, attribute or version
 *   -EEXIST     requested ID is taken
 *   -EINVAL     argument out of its documented range
 *   -ENOTEMPTY  partition has members
 *   -ENOSPC     device full; the transaction can go on or be aborted
 *   -EFBIG      object, attribute set or ID space at its limit
 *   -EMLINK     a clone of a clone, and so on, too deep
 *   -E2BIG      more than one transaction does, since all others wait for it
 *   -EROFS      written through an address with a version, or the transaction is a reading one
 *   -EPERM      retention is locked
 *   -EBUSY      something stands on it
 *   -EOVERFLOW  all sequence numbers, or all moments, have been used up: see engine_begin
 *   -EBADMSG    stored data fails its checksum; nothing was returned
 *   -EIO        device error
 *   -EINPROGRESS  in an attempt: something would have to wait
 * After an error other than -ENOSPC/-EFBIG/-EIO a call has changed nothing. After any error of a
 * writing call the caller normally aborts.
 */
#ifndef MUNINN_ENGINE_ENGINE_H
#define MUNINN_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct engine_txn;
struct engine_object;

/* IDs 1..0xFFFF are reserved in every partition, and as partition IDs. */
#define ENGINE_FIRST_ID UINT64_C(0x10000)
/* Partition IDs fit in 48 bits. */
#define ENGINE_LAST_PARTITION_ID UINT64_C(0xFFFFFFFFFFFF)
#define ENGINE_PARTITIONS_MAX    65534
/* Largest object: 2^31 pieces of a page. With 4096-byte pages 8 TiB. */
#define ENGINE_PIECES_MAX          UINT32_C(0x80000000)
#define ENGINE_ATTRIBUTE_BYTES_MAX 65534
/* All attributes of one object together, 16 bytes of overhead an attribute included. */
#define ENGINE_ATTRIBUTE_SET_BYTES_MAX (1U << 20)

/* Makes everything stable and closes. Returns the first error; the handle is gone in any case. */
int engine_close(struct engine *engine);

/* Closes as `kill -9` would: nothing is flushed. For tests. */
void engine_abandon(struct engine *engine);

/*
 * What this object store can do beside what every one can. The calls of what it can't do are not
 * to be made: the heading of a section names its capability; a section that names none is of every
 * store.
 */
enum engine_capability {
	ENGINE_HAS_COLLECTIONS = 1 << 0,
	ENGINE_HAS_MERGE = 1 << 1, /* engine_merge frees space */
	/* The others are of history.h. */
	ENGINE_HAS_VERSIONS = 1 << 2, /* moments, versions, views, and addresses that name them;
					 a moment that is not ENGINE_NOW, whatever the call */
	ENGINE_HAS_ROLLBACK = 1 << 3, /* going back, and the modifications of one object */
	ENGINE_HAS_DIFFERENCES = 1 << 4,
	ENGINE_HAS_RETENTION = 1 << 5, /* policies, locks, time epochs */
	ENGINE_HAS_CLONES = 1 << 6,
};

/* Bits of enum engine_capability; the same as long as the engine is open. */
uint32_t engine_capabilities(const struct engine *engine);

/* ---- addresses and transactions ---- */

enum engine_type { ENGINE_ROOT, ENGINE_PARTITION, ENGINE_COLLECTION, ENGINE_USER_OBJECT };

/* (0, 0) root; (P, 0) partition; (P, O) user object or collection. */
struct engine_address {
	uint64_t partition;
	uint64_t object;
	uint32_t version; /* 0 = current; v = as of that version, read-only: see "history" */
	uint32_t ago;     /* user objects: as before their newest `ago` (to ENGINE_AGO_MAX)
			     modifications, read-only; version must be 0 */
};

#define ENGINE_HISTORY_PROGRAMS 2

enum engine_mode {
	ENGINE_READ,  /* shared */
	ENGINE_WRITE, /* exclusive; refuses to use the space reserved for removing */
	ENGINE_FREE,  /* exclusive; for removing, which must work on a full device */
	/*
	 * Exclusive; for one engine_snapshot or engine_rollback: neither begins nor ends with work
	 * that others have left to do. At most ENGINE_HISTORY_PROGRAMS pages are programmed from
	 * beginning to end, unless the device is so full that nothing can be removed. A rollback
	 * works then, too, a snapshot does not.
	 */
	ENGINE_HISTORY,
	/*
	 * Exclusive; for setting policies and dropping versions alone. However often anything is
	 * removed, room is left for these and for going back; these, and going back in what is
	 * locked, have some that no other rollback uses.
	 */
	ENGINE_RESCUE,
};

/*
 * Waits for its turn. Only the thread that began a transaction uses and ends it. -ENOMEM.
 * -EOVERFLOW: the engine has 2^48 sequence numbers in 2^32 slots. It uses one slot for each
 * history_interval_ms, or for each command. When there are no more slots, versions, rollbacks and
 * clones end with this error, because they need a moment of their own. When there are no more
 * numbers either, every writing transaction does. Reading goes on.
 */
int engine_begin(struct engine *engine, enum engine_mode mode, struct engine_txn **txn);

/* Timestamps are left alone by all later calls of this transaction, or handled as usual again. */
void engine_bypass_timestamps(struct engine_txn *txn, bool bypass);

/* Milliseconds since 1970 at engine_begin. */
uint64_t engine_txn_time(const struct engine_txn *txn);

/*
 * How much the transaction has done so far, in records read, looked up or put: others wait for it
 * as long.
 */
uint64_t engine_txn_worked(const struct engine_txn *txn);

/*
 * The highest sequence number that has been, or that a moment up to now may be told as: the end of
 * the present one's.
 */
uint64_t engine_txn_sequence_max(const struct engine_txn *txn);

/*
 * Ends a transaction and frees it. `stable`: on return all that is committed survives power loss of
 * the host, of a reading one all that it may have read; commits of several threads that come
 * together share one flush. -ENOSPC: there was no room for its metadata; nothing of it happened, as
 * after engine_abort. -EIO of the sync: it is committed, its durability unknown. Other errors (-EIO
 * of a put, -ENOMEM): nothing of it happened.
 */
int engine_commit(struct engine_txn *txn, bool stable);

/* Ends a transaction and takes back all that it did. Also right for reading ones. */
void engine_abort(struct engine_txn *txn);

/*
 * An attempt: between the two calls nothing waits in this thread, neither for the turn, nor for
 * flash or the host, nor for work that others have left to do. What would have to wait ends with
 * -EINPROGRESS instead, and so does then the commit of the transaction, whatever became of that
 * error: nothing of it has happened. A thread that may wait is to make it again; or another attempt
 * is made, when the pages have come that `stage` (nand.h; may be NULL) has noted.
 *
 * Allowed are the calls of a transaction that neither formats nor goes back nor ends `stable`.
 */
struct nand_stage;
void engine_attempt_begin(struct nand_stage *stage);
void engine_attempt_end(void);

/*
 * A writing transaction that can be done again: between the two calls no transaction of this thread
 * writes a full buffer to flash itself, which would hold up everybody else. Where it would have to,
 * for its many records, it ends with -EINPROGRESS, as an attempt does, and nothing of it has
 * happened. False: the engine has no threads that do it in its place, and there is no second call.
 *
 * The second call returns true if it was so. Then it has waited, without the turn, until some of
 * what was found full is written, so the next try gets further. That is one buffer behind the first
 * try, and twice as many behind each one of the `tries` before: to wait for all of them at once
 * would let the threads run out of work.
 */
bool engine_seals_put_off(struct engine *engine);
bool engine_seals_awaited(struct engine *engine, uint32_t tries);

/*
 * FORMAT OSD: begins a transaction as with ENGINE_FREE, in which there are no partitions, objects,
 * versions and attributes any more, but for the root's lasting attributes; it may set others. With
 * its commit everything else is gone and all that it did is there, at once; an abort leaves
 * everything as it was. -EPERM: the retention of a partition is locked. -EBADMSG: the lasting
 * attributes can't be read.
 */
int engine_begin_format(struct engine *engine, struct engine_txn **txn);

/* The same, with nothing in it. For tests. */
int engine_reformat(struct engine *engine);

/*
 * Everything committed becomes stable on the host's storage, access times included (unless the
 * device is full: then they stay in memory).
 */
int engine_flush(struct engine *engine);

/*
 * The same beside transactions that are under way, however long they take: a writing one flushes
 * between two of its records what was committed before it, and nobody waits for a reading one.
 * Access times stay in memory.
 */
int engine_flush_beside(struct engine *engine);

/*
 * Begins a copy of the device (nand/image_copy.h) between two transactions. All that is committed
 * is in it, and nothing else; it is as stable as behind engine_flush. *held_us: for how long nobody
 * else had the turn, about what it takes to copy the NVRAM in memory. -EOPNOTSUPP: the records are
 * on no device.
 */
struct nand_image_copy;
int engine_begin_copy(struct engine *engine, struct nand_image_copy *copy, uint64_t *held_us);

/* ---- opened objects ---- */

/* Objects that a transaction has open at once. */
#define ENGINE_OBJECTS_MAX 8

/*
 * Finds what an address names, once for all calls about it in this transaction. Opened again, an
 * object has the same handle, and takes no time. What is removed, or made something else by going
 * back, is found anew by the next call. It ends with engine_close_object, once for each opening, or
 * with the transaction. -ENOENT, -EBADMSG.
 */
int engine_open_object(struct engine_txn *txn, struct engine_address address,
		       struct engine_object **object);

/* NULL: nothing happens. */
void engine_close_object(struct engine_object *object);

struct engine_address engine_object_address(const struct engine_object *object);

/* ---- partitions and objects ---- */

/*
 * `requested` 0: the engine chooses highest + 1, from ENGINE_FIRST_ID, or when that is beyond the
 * last ID one in a gap (free_ids.h). `chosen` may be NULL. -EFBIG: no ID is free, or as many
 * partitions as there can be are there or shown by moments that can be reached.
 */
int engine_partition_create(struct engine_txn *txn, uint64_t requested, uint64_t *chosen);

/*
 * From now on writing into pieces that all have data, of a user object of the partition, puts these
 * pieces and nothing else: neither times nor modified_sequence tell of it, nor does the log of the
 * object's modifications. Versions, moments, rollbacks and differences are as exact as of others;
 * differences take a look at each piece. For volumes, where nobody asks who changed an object when.
 * A clone of it is so, too. -ENOTEMPTY: it has objects.
 */
int engine_partition_unlog(struct engine_txn *txn, uint64_t partition);

/* -ENOTEMPTY when it has objects or collections, unless `contents`. */
int engine_partition_remove(struct engine_txn *txn, uint64_t partition, bool contents);

/*
 * Creates `count` (>= 1) empty objects of `type` (ENGINE_USER_OBJECT or ENGINE_COLLECTION) with
 * consecutive IDs. `requested` 0: highest ID of either type + 1, or in a gap as above; otherwise
 * count must be 1. `first` (may be NULL) = lowest new ID.
 */
int engine_create(struct engine_txn *txn, uint64_t partition, enum engine_type type,
		  uint64_t requested, uint32_t count, uint64_t *first);
/* The same with `requested` 0, for callers to whom IDs above `last` mean nothing. */
int engine_create_up_to(struct engine_txn *txn, uint64_t partition, enum engine_type type,
			uint64_t last, uint32_t count, uint64_t *first);

/* A user object leaves its collections with it. -ENOTEMPTY: a collection with members. */
int engine_object_remove(struct engine_object *object);

/* ---- data of user objects ---- */

/*
 * Extends the object when the range ends behind its end; the gap is a hole. Length 0 changes
 * nothing.
 */
int engine_object_write(struct engine_object *object, uint64_t offset, const void *data,
			uint64_t length);

/* Writes at the end; `offset` (may be NULL) = where. */
int engine_object_append(struct engine_object *object, const void *data, uint64_t length,
			 uint64_t *offset);

/* Cuts or extends (with a hole) to `length` bytes. */
int engine_object_truncate(struct engine_object *object, uint64_t length);

/* Zeros over the range (a hole where whole pieces are covered); extends like a write. */
int engine_object_clear(struct engine_object *object, uint64_t offset, uint64_t length);

/*
 * Removes the range and moves the rest down. -EINVAL when it starts behind the end; -E2BIG when
 * more than so many pieces with data lie behind it.
 */
#define ENGINE_PIECES_MOVED_MAX 2048
int engine_object_punch(struct engine_object *object, uint64_t offset, uint64_t length);

/* Reads up to the end; `got` = bytes read (0 at or behind the end). Holes are zeros. */
int engine_object_read(struct engine_object *object, uint64_t offset, void *data, uint64_t length,
		       uint64_t *got);

/* ---- layout of data ---- */

enum engine_extent_kind {
	ENGINE_EXTENT_DATA,
	ENGINE_EXTENT_HOLE,
	ENGINE_EXTENT_DAMAGED, /* stored data that fails its checksum or is lost */
	ENGINE_EXTENT_SAME,    /* engine_object_compare: both objects have the same bytes */
};

struct engine_extent {
	enum engine_extent_kind kind;
	uint64_t offset, length;
};

/*
 * The run of one kind that begins at `offset`, in whole pages but for its ends. With `verify` all
 * data is read, and damaged data is found; otherwise it is read only where memory does not tell
 * whether there is any. `*budget` pages at most are read, by which it is lowered: the run ends
 * where it is used up. -ENOENT: `offset` is not inside the object. -EAGAIN: the budget does not
 * even allow the first page. -EINVAL: not a user object.
 */
int engine_object_map(struct engine_object *object, uint64_t offset, bool verify, uint32_t *budget,
		      struct engine_extent *extent);

/*
 * The run that begins at `offset` in which two user objects are the same, or differ: then the kind
 * is what the first has there, or damaged if either is. Where only one of them has bytes they
 * differ. Budget and errors as engine_object_map; -ENOENT when `offset` is inside neither object,
 * or there is no such object.
 */
int engine_object_compare(struct engine_object *first, struct engine_object *second,
			  uint64_t offset, uint32_t *budget, struct engine_extent *extent);

/*
 * Gives a user object the data of another one from *offset on: length, bytes and holes. At offset 0
 * what it had goes first. Copies *budget pages at most, by which it is lowered. -EAGAIN: that was
 * not all, and *offset is where to go on. -EBADMSG: some of it is damaged.
 */
int engine_object_copy_data(struct engine_object *from, struct engine_object *to, uint64_t *offset,
			    uint32_t *budget);

/* ---- attributes: plain storage of any object, root and partitions included ---- */

/*
 * Sets, or with length 0 removes, one attribute; removing what is not set is no error. Page and
 * number are not interpreted. -EFBIG past the limits.
 */
int engine_object_attribute_set(struct engine_object *object, uint32_t page, uint32_t number,
				const void *value, uint32_t length);

/* Copies at most `capacity` bytes; `length` = full length. -ENOENT when not set. */
int engine_object_attribute_get(struct engine_object *object, uint32_t page, uint32_t number,
				void *value, uint32_t capacity, uint32_t *length);

/*
 * The first attribute at or behind (*page, *number), in order of page and number; fills both.
 * -ENOENT: no more.
 */
int engine_object_attribute_next(struct engine_object *object, uint32_t *page, uint32_t *number,
				 void *value, uint32_t capacity, uint32_t *length);

/*
 * Attributes of the root and of partitions on these pages are **lasting** from now on: of what
 * holds now, and no part of history. The calls above find them like all others, under an address
 * with a version those of the present: of the partition that the version shows. An earlier one of
 * that ID, which is not there any more, has those that it was removed with, under such an address
 * and when a rollback of the device brings it back (-EBADMSG: they are lost). No rollback takes
 * them back, a clone begins without any, a refreshed one keeps its own, engine_begin_format leaves
 * those of the root. To be called before the first transaction; at most ENGINE_LASTING_PAGES_MAX
 * pages. Of every store: one without history has them all so, and only keeps those of the root when
 * it is formatted.
 */
#define ENGINE_LASTING_PAGES_MAX 8
void engine_set_lasting_pages(struct engine *engine, const uint32_t *pages, uint32_t count);

/*
 * Whether an address of a partition, with a version, shows the partition that has this ID now, and
 * not an earlier one. -ENOENT: it shows none.
 */
int engine_partition_shown(struct engine_txn *txn, struct engine_address address, bool *is_present);

/*
 * A lasting attribute of the partition that a snapshot partition (engine_clone) was made of, or
 * with `above` 2 of what that was a snapshot of, and so on: as it is now, or was removed with.
 * -ENODATA: there is none above; -ENOENT: not set, or the address shows no partition.
 */
int engine_snapshot_attribute_get(struct engine_txn *txn, struct engine_address address,
				  unsigned above, uint32_t page, uint32_t number, void *value,
				  uint32_t capacity, uint32_t *length);

/*
 * Facts: what the caller makes of the attributes of the root or of a partition, as they are now, so
 * that it need not look them up for each command. The engine keeps them with what it knows of the
 * partition, and has them made again when an attribute has changed.
 */
#define ENGINE_FACTS_BYTES 160
struct engine_facts {
	uint8_t bytes[ENGINE_FACTS_BYTES];
};

/* Makes them: 0, or the error with which engine_facts_of ends. */
typedef int engine_facts_maker(struct engine_object *object, struct engine_facts *facts);

/* To be called before the first transaction. */
void engine_set_facts_maker(struct engine *engine, engine_facts_maker *make);

/* Those of the root (0) or of a partition. -ENOENT: no such partition; errors of the maker. */
int engine_facts_of(struct engine_txn *txn, uint64_t partition, struct engine_facts *facts);

/*
 * The memo: a number that the caller keeps on the device beside all objects. It is no part of
 * history, no rollback and no format takes it away; it is 0 on a new device, and again on one whose
 * NVRAM was lost. Setting it needs neither room nor a sequence number nor a turn: it works, inside
 * and outside of transactions and on any thread, where nothing else can be written any more, and
 * outlives the process from then on. `stable`: on return also a power loss of the host (-EIO: it
 * may not); otherwise with the next flush, or with engine_options.stable_commits at once.
 */
uint64_t engine_memo(const struct engine *engine);
int engine_set_memo(struct engine *engine, uint64_t memo, bool stable);

/*
 * ---- collections (ENGINE_HAS_COLLECTIONS) ----
 *
 * Ordered sets of IDs of their partition's user objects. Without them engine_create makes no
 * ENGINE_COLLECTION, and there are no ENGINE_LIST_COLLECTIONS and ENGINE_LIST_MEMBERS.
 *
 * An object can know that it is a member: its memberships are attributes of page
 * ENGINE_MEMBERSHIPS_PAGE, each value a collection's ID in 8 bytes, big-endian. The attribute calls
 * above show them, only engine_object_membership_set changes them (engine_object_attribute_set:
 * -EINVAL). They end with the object and with the collection. Members that were only inserted are
 * bare IDs, which stay when their object goes.
 */
#define ENGINE_MEMBERSHIPS_PAGE        4u
#define ENGINE_MEMBERSHIPS_LAST_NUMBER UINT32_C(0xFFFFFF00) /* the first is 1 */
/* Of one object, so that removing it is bounded. */
#define ENGINE_MEMBERSHIPS_MAX 1024
/* A page of attributes that is the engine's own: never shown, -EINVAL when set. */
#define ENGINE_PRIVATE_PAGE UINT32_C(0xFFFFFFFF)

/*
 * Makes a user object a member of `collection` (0: of none) under membership `number`, in place of
 * the collection that this number stood for before. -EINVAL: not a user object, number out of
 * range, no such collection. -EEXIST: the object is in that collection already. -EFBIG: more than
 * ENGINE_MEMBERSHIPS_MAX.
 */
int engine_object_membership_set(struct engine_object *object, uint32_t number,
				 uint64_t collection);

/* How many collections an object knows that it is in. */
int engine_object_membership_count(struct engine_object *object, uint32_t *count);

/*
 * Adds a bare ID, whether there is such an object or not. If the object was a member before and was
 * taken out by engine_object_member_remove or engine_object_members_clear, it knows of it again.
 * -EEXIST; -EINVAL: not a collection.
 */
int engine_object_member_insert(struct engine_object *collection, uint64_t object);

/* Takes an ID out. -ENOENT: it was not in (or there is no such collection). */
int engine_object_member_remove(struct engine_object *collection, uint64_t object);

/* Empties a collection at once, whatever it holds. */
int engine_object_members_clear(struct engine_object *collection);

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
	uint64_t length;     /* user objects: logical length in bytes */
	uint64_t used_bytes; /* pieces that hold data * page size; partition: sum over its objects;
				root: 0 */
	/* root: partitions; partition: user objects and collections; collection: IDs in it */
	uint64_t members;
	uint64_t collections;       /* partition: collections among the members */
	uint64_t created_sequence;  /* sequence number of the command that created it */
	uint64_t modified_sequence; /* sequence number of the last command that changed it */
	bool is_unlogged; /* objects: their data may be newer; see engine_partition_unlog */
	/*
	 * At a number between two moments: lists and sums are of another moment than the objects,
	 * so that these need not be what those say.
	 */
	bool is_between;
	uint64_t
		filled_sequence; /* collection: of the last command that added a member, 0 = none */
	uint32_t version;        /* partition: its current user version, counting from 1 */
	/*
	 * root, partition, where there are lasting attributes: of the last command that changed one
	 * of the present's
	 */
	uint64_t lasting_sequence;
	uint64_t times_ms[ENGINE_TIMES];
};

/* Bytes of a piece: objects are stored in whole ones. */
uint32_t engine_page_bytes(const struct engine *engine);

int engine_object_stat(struct engine_object *object, struct engine_stat *stat);

/*
 * What all partitions hold together: the sum of their used_bytes, with what the transaction has
 * changed, and by how much this has made it grow (0 of a transaction that rolls a partition or the
 * device back). Counted once, by reading the state of each partition, when it is asked for the
 * first time, and after rollbacks; otherwise constant time.
 */
int engine_used(struct engine_txn *txn, uint64_t *bytes, int64_t *change);

/*
 * Sets one timestamp explicitly (all but created; below 2^48). Creating an object sets all of them.
 * The engine itself maintains them: data and attribute calls update the modified times at commit,
 * engine_object_accessed the accessed times. Accessed times are kept in memory and become stable at
 * flush, close, when many have gathered, or at the next change of the object.
 */
int engine_object_set_time(struct engine_object *object, enum engine_time which, uint64_t ms);

/* Notes an access now. Works in reading transactions. */
int engine_object_accessed(struct engine_object *object, bool data, bool attributes);

enum engine_list {
	ENGINE_LIST_PARTITIONS,
	ENGINE_LIST_USER_OBJECTS,
	ENGINE_LIST_COLLECTIONS,
	ENGINE_LIST_MEMBERS,
};

/*
 * IDs >= `first` in ascending order, at most `capacity` of them: partitions of the root, user
 * objects and collections of a partition, members of a collection. `next` = first ID not returned,
 * 0 when all were. -EINVAL: the object has no such list.
 */
int engine_object_list(struct engine_object *object, enum engine_list what, uint64_t first,
		       uint64_t *ids, size_t capacity, size_t *count, uint64_t *next);

/*
 * How many IDs >= `first` there are. Constant time for first = 0, otherwise proportional to the
 * directory's nodes.
 */
int engine_object_list_count(struct engine_object *object, enum engine_list what, uint64_t first,
			     uint64_t *count);

/*
 * The sequence number of the last command that changed the list. After the unit was opened, or a
 * command failed, it may be higher. So if it is equal twice, the list is the same.
 */
int engine_object_list_sequence(struct engine_object *object, enum engine_list what,
				uint64_t *sequence);

/* ---- reclaiming space (ENGINE_HAS_MERGE) ---- */

/* Added up over calls. */
struct engine_merge_result {
	uint64_t segments_freed;
	uint64_t records_moved, records_dropped;
};

/*
 * One step of a merge: frees one segment that holds little of what the present and the ended user
 * versions need; moves that. Not inside a transaction; waits for its turn; other threads get theirs
 * between steps. -EAGAIN: none of the next few segments was worth it. -ENOSPC, -EBADMSG (a damaged
 * page: its segment stays), -EOPNOTSUPP.
 */
int engine_merge(struct engine *engine, struct engine_merge_result *result);

/*
 * Empties flash that nothing needs, where there is plenty of it, so that the host gets its space
 * back: at most so many segments, each beside others. To be called now and then, by one thread. Not
 * inside a transaction; beside others.
 */
void engine_trim(struct engine *engine, uint32_t segments);

/* ---- what the flash has lost ---- */

struct engine_scrub {
	uint64_t position; /* where to begin, 0: anew; then where to go on, 0: all was read */
	uint32_t pages;    /* to read, about */
	uint64_t end;      /* result: positions are below it */
	/* Results, added up over calls. */
	uint64_t read;
	uint64_t repaired; /* that were lost and made again from parity */
	uint64_t lost;     /* for good */
};

/*
 * Reads what is in use of the flash, whatever it holds, and makes again what is lost and can be.
 * Not inside a transaction; beside others. -EOPNOTSUPP.
 */
int engine_scrub(struct engine *engine, struct engine_scrub *scrub);

/*
 * Flash is not written in place: a page that was made again stays lost until what is in its segment
 * is moved. How many segments wait for that, of those that reads have met; moves one of them. As
 * engine_merge, but beside others, in pieces. -EAGAIN: none waits.
 */
uint32_t engine_damaged(struct engine *engine);
int engine_mend(struct engine *engine, struct engine_merge_result *result);

/* ---- statistics ---- */

#define ENGINE_MEMORY_KINDS_MAX 8 /* the empty one behind the last included */

/* Heap memory of one kind, as the allocator counts it. */
struct engine_memory {
	const char *name; /* NULL behind the last one */
	uint64_t bytes;
};

/* What a store does not have it leaves 0. */
struct engine_statistics {
	/* ---- any store ---- */
	uint64_t capacity_bytes; /* offered to users: page data less over-provisioning and metadata
				  */
	uint64_t used_bytes;     /* of what is offered, by the present and the past */
	uint64_t committed_sequence;
	uint64_t open_microseconds; /* how long engine_open took */
	/*
	 * The turn, of writing transactions and what else must have it alone: how often and for how
	 * long it was taken, how often and for how long somebody waited for it.
	 */
	uint64_t turns, turns_held_us, turns_waited, turns_waited_us, turn_waited_most_us;
	uint64_t object_lookups; /* objects found by their addresses since open */
	uint64_t cache_bytes; /* onode, directory, partition and version caches at their limits */
	struct engine_memory memory[ENGINE_MEMORY_KINDS_MAX]; /* of what the objects stand on */

	/* ---- a store of records ---- */
	uint64_t records_put, records_got, records_absent; /* since open */
	uint64_t record_bytes_put;
	uint64_t user_page_reads; /* pages read from flash for lookups, wasted ones included */
	uint64_t index_bytes;     /* of the index, in memory */
	uint64_t buffer_bytes;    /* of records that are not on flash yet, in NVRAM */
	uint64_t pages_repaired;  /* reads of pages that were lost, and made again from parity */
	uint64_t pages_lost;      /* reads of pages that could not be */

	/* ---- one that gathers records in segments, which it seals and merges ---- */
	uint64_t segments, segments_free, segments_sealed, segments_metadata;
	uint64_t sealed_records; /* records in sealed segments */
	uint64_t sealed_record_bytes;

	/* ---- Muninn alone ---- */
	uint64_t index; /* which: 1 Bloom, 2 ribbon, as in the static header */
	uint64_t rows, tables, internal_versions;
	uint64_t false_positive_reads; /* of user_page_reads: the key was not there */
	uint64_t table_cache_bytes;    /* of index_bytes, the cache of tables on flash */
	uint64_t table_reads;          /* pages of tables asked of that cache since open ... */
	uint64_t table_page_reads;     /* ... and those that it had to read from flash */
};

/*
 * Waits for its turn like a reading transaction: never call it inside a transaction of the same
 * thread.
 */
void engine_read_statistics(struct engine *engine, struct engine_statistics *statistics);

/*
 * The longest time since the last call for which somebody held others up: as records that were put,
 * looked up or merged in between. For tests and benchmarks.
 */
uint64_t engine_take_longest_turn(struct engine *engine);

#endif
