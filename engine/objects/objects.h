/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The inside of the object layer: the engine, its transactions, and how a call gets at the object
 * it is about.
 */
#ifndef MUNINN_ENGINE_OBJECTS_OBJECTS_H
#define MUNINN_ENGINE_OBJECTS_OBJECTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/history.h"
#include "engine/objects/access_times.h"
#include "engine/objects/device_time.h"
#include "engine/objects/history_calls.h"
#include "engine/objects/kept.h"
#include "engine/objects/keys.h"
#include "engine/objects/lineage.h"
#include "engine/objects/onode.h"
#include "engine/objects/partition.h"
#include "engine/objects/sealer.h"
#include "engine/objects/slots.h"
#include "engine/objects/stale.h"
#include "engine/objects/turn.h"
#include "engine/objects/written.h"
#include "engine/options.h"
#include "engine/records/access.h"
#include "engine/records/cache.h"

/* Onodes that a transaction has changed and not put; the oldest is put when there would be more. */
#define ENGINE_DIRTY_ONODES_MAX     64
#define ENGINE_DIRTY_PARTITIONS_MAX 16

/* Transactions that wait to be used. */
struct txn_pool {
	pthread_mutex_t mutex;
	struct engine_txn *free;
	struct engine_txn *transactions; /* all of them ... */
	uint8_t *pages;                  /* ... and theirs */
};

struct engine {
	struct record_store *store;
	const struct history_calls *history;
	struct past *past;             /* what these keep in memory */
	struct engine_options options; /* with the defaults filled in */
	uint32_t page_bytes;           /* most data of a piece = of a record */
	uint32_t inline_max;           /* most data of an object that is kept in its onode */
	struct turn turn; /* shared by reading transactions, held alone by writing ones */
	struct txn_pool pool;
	struct engine_txn *writer; /* the open writing transaction; owned by the holder of `turn` */
	struct memories memories;  /* what is remembered of the records */
	struct cache onodes;       /* struct onode, current ones */
	struct cache nodes;        /* struct idset_node, current ones */
	struct cache partitions;   /* struct partition, current ones */
	struct access_times accesses;
	/* Which partition indices are taken, read from their set when one is to be chosen. */
	bool indices_known;
	uint32_t indices_wanted; /* few are free: history looks for some so often */
	uint8_t indices[(UINT16_MAX + 1) / 8];
	uint16_t last_index;
	uint8_t *page;         /* scratch space of the writer: see struct record_writer */
	uint64_t transactions; /* committed since open */
	/*
	 * One flush at a time; those who waited for it find that theirs is done too, and that of
	 * whoever committed before it began.
	 */
	pthread_mutex_t flushing;
	uint64_t flushed;      /* transactions committed when the last good flush began */
	uint64_t flushes;      /* that have begun since open; atomic */
	uint64_t flushes_good; /* the last of them that succeeded */
	struct sealer sealer;
	struct lineage lineage;
	uint64_t committed, committed_ms; /* the last transaction that put anything */
	uint64_t numbered;                /* the last transaction since the engine was opened */
	struct device_time device_time;
	uint64_t slot_ms; /* when the present slot began, as the clock said */
	bool slot_over;   /* the next writing transaction begins a slot; atomic: readers set it */
	uint64_t slots_warned_ms; /* device time of the last warning; atomic: see slots.h */
	uint64_t put_bytes;       /* of all records ever; a crash may take some of it back */
	struct written *written;  /* by partition index */
	struct kept kept;
	uint64_t open_microseconds; /* 0: not opened on a device */
	uint64_t object_lookups;    /* atomic: see engine_statistics */
	/* Sum of what all partitions hold: see usage.c. */
	bool used_known; /* atomic, as is what it speaks of: readers count it */
	uint64_t used_bytes;
	engine_facts_maker *make_facts;
	pthread_mutex_t facts_mutex;                      /* of writing facts down */
	uint32_t lasting_pages[ENGINE_LASTING_PAGES_MAX]; /* see lasting.h */
	uint32_t lasting_count;
};

/* A partition as of a moment, kept from one call of a transaction to the next. */
struct old_view {
	/* What it was opened for. Without a version and `ago`: just for the bound. */
	struct engine_address address;
	uint64_t bound;         /* 0: nothing kept */
	uint64_t objects_bound; /* the same but for views by sequence number: see struct view */
	bool one_object;        /* only for one: the partition is read as of now */
	struct partition partition;
	struct onode *onode; /* the object looked at last, or NULL */
};

/* ---- the object that a call is about ---- */

struct target {
	struct engine_txn *txn;
	struct partition *partition; /* of the object; the root's for the root */
	struct onode *onode;
	uint64_t bound; /* RECORD_NEWEST, or as of when it is read */
	bool old;       /* addressed with a version */
};

/* An opened object: a place in its transaction. */
struct engine_object {
	struct engine_txn *txn; /* NULL: never used */
	struct engine_address address;
	struct target target; /* onode NULL: to be found by the address */
	uint32_t uses;        /* 0: closed */
	uint32_t closed;      /* counts closings of the transaction: when it was closed last */
};

/* Buffers of a transaction, of a page each. */
enum txn_buffer {
	TXN_PIECE,       /* the piece that is read or written */
	TXN_OTHER_PIECE, /* a second one, which the first is copied from, merged with or compared to
			  */
	TXN_BUFFERS
};

struct engine_txn {
	struct engine_txn *next_free; /* in the pool */
	bool alone;                   /* allocated by itself, not with the engine */
	struct engine *engine;
	enum engine_mode mode;
	bool bypass;
	bool is_aside; /* the engine's own, of what merging needs: see engine_aside */
	bool changed;  /* anything but version numbers */
	/*
	 * After it something reads otherwise, so its slot is on record. What only notes something
	 * about history takes the place of what it noted before, and none of a full device's room
	 * for good.
	 */
	bool is_moment;
	bool partitions_created, partitions_removed;
	/*
	 * Highest generation of a node of the collections that it removed: one that it makes under
	 * the same ID goes on from there, since sequence numbers do not tell its records from
	 * theirs.
	 */
	uint32_t members_generation;
	uint64_t time_ms;
	uint64_t device_ms; /* device time; 0: nobody has asked for it yet */
	uint64_t since;     /* of reading ones: see turn_share */
	uint64_t sequence;  /* of writing transactions, otherwise 0 */
	struct record_writer writer;
	uint64_t put_bytes; /* records and their headers */
	struct written_parts written;
	bool rolled_back, object_rolled_back, policy_changed, forgets_states;
	bool data_put;                         /* pieces of any object */
	bool begins_time_epoch;                /* of times: see time_epoch.c */
	struct engine_retention policy_before; /* of the device, if the transaction changed it */
	int64_t used_change;       /* by how much what partitions hold has grown; not told after a
				      rollback */
	bool formats;              /* its commit takes away all that was there before */
	uint64_t put_bytes_before; /* then: what engine->put_bytes was */
	/*
	 * The partition (0: all of them) whose noted access times are of a past that is hidden now.
	 */
	bool forgets_accesses;
	uint64_t accesses_of;
	struct engine_space space_wanted; /* bytes 0: none */
	struct old_view old;
	struct engine_object objects[ENGINE_OBJECTS_MAX];
	uint32_t closings;
	uint8_t *pages[TXN_BUFFERS]; /* of a page each */
};

/*
 * Makes an engine on a store of records, which belongs to the engine from now on, also on failure:
 * it is closed with it. NULL options = defaults. -ENOMEM.
 */
int engine_open_on(struct record_store *store, const struct engine_options *options,
		   struct engine **engine, struct error_text *error);

/* The transactions of an engine, made with it and used again. -ENOMEM. */
int txn_pool_init(struct engine *engine);
void txn_pool_destroy(struct engine *engine);

/* A transaction that has not begun. NULL: no memory. */
struct engine_txn *txn_new(struct engine *engine, enum engine_mode mode);

/* Gives back what a transaction that has ended holds, and itself. */
void txn_free(struct engine_txn *txn);

/* Scratch buffer 0 or 1 of a transaction, a page long; contents undefined. */
static inline uint8_t *txn_page(struct engine_txn *txn, enum txn_buffer which)
{
	return txn->pages[which];
}

/* The time by the engine's clock. */
uint64_t engine_time_now(const struct engine *engine);

/* Writes noted access times into onodes until at most `most` wait. */
void engine_settle_accesses(struct engine *engine, uint32_t most);

/*
 * Makes a writing transaction that has changed nothing so far the first one of its slot, so that
 * everything before it is a moment. Its sequence number may change. -EROFS, -EINVAL: it has changed
 * something. -EOVERFLOW, -ETIME: see slots_check.
 */
int txn_begin_slot(struct engine_txn *txn, enum slot_use use);

/*
 * Lets a transaction of mode ENGINE_RESCUE or ENGINE_HISTORY use more of a full device's room from
 * here on; those of other modes are left alone.
 */
void txn_raise_room(struct engine_txn *txn, enum record_room room);

/*
 * Runs `work` in a transaction of its own, while the caller has the turn and no transaction is
 * open: what the engine notes so that merging can go on. It may use the last room, and is no
 * moment: what it puts must be timeless, and take the place of what it put before.
 */
typedef int aside_work(struct engine_txn *txn, struct partition *root, void *context);
int engine_aside(struct engine *engine, aside_work *work, void *context);

/* ---- what partitions hold (usage.c) ---- */

/* A partition holds more, or less, from now on. */
void usage_change(struct engine_txn *txn, uint64_t before, uint64_t after);

/* The transaction is committed. */
void usage_commit(struct engine_txn *txn);

/* ---- targets ---- */

enum target_use { TARGET_READ, TARGET_CHANGE };

/* Finds what `address` names. -ENOENT; -EROFS if it cannot be changed but is to be; -EBADMSG... */
int target_open(struct engine_txn *txn, struct engine_address address, enum target_use use,
		struct target *target);
void target_close(struct target *target);

/* -EROFS: it is in a partition that only shows its source. */
int target_check_writable(const struct target *target);

/* The object (0: the partition itself) as of `bound`. */
int target_open_at(struct engine_txn *txn, uint64_t partition, uint64_t object, uint64_t bound,
		   struct target *target);

/* The partition that an address with a version or `ago` means. The view is the transaction's. */
int target_view(struct engine_txn *txn, struct engine_address address, struct old_view **view);

/*
 * Removes what a target that can be changed stands for, as engine_object_remove. It is to be
 * closed.
 */
int object_remove(struct target *target);

/*
 * Gives back what the transaction's opened objects have found; they find it anew. Before the caches
 * are cleared, and before its end.
 */
void objects_release(struct engine_txn *txn);

/*
 * Call before the first change of the target, after all checks. target_touch does not count as a
 * modification of the object (for access times), target_change does. -ENOSPC, -EIO: of another
 * onode that had to be put.
 */
int target_touch(struct target *target);
int target_change(struct target *target);

/* The modification itself, behind target_touch. */
void target_modified(struct target *target);

/* The second half of target_touch: takes noted access times in and marks the onode. */
void target_mark(struct target *target);

/*
 * Puts changed onodes until there may be one more. -ENOSPC, -EIO: of one that was put.
 */
int onodes_limit_dirty(struct engine_txn *txn);

/* Puts the onodes that the transaction changed. */
int onodes_put_dirty(struct engine_txn *txn);

/*
 * Sequence numbers and times of an onode that is created now. They are set even if timestamps are
 * bypassed.
 */
void onode_born(struct onode *onode, const struct engine_txn *txn);

#endif
