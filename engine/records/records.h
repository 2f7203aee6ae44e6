/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What the object layer needs from a store of records. Private to engine/. A store knows nothing of
 * objects or history.
 *
 * A record is a value of 0..page_bytes bytes under a key (class, partition, identifier, piece).
 * Putting never replaces: every put adds a record, distinguished by its modification sequence
 * number (48 bits, one per writing transaction). A lookup returns the newest committed record
 * within a bound.
 *
 * Locking is the caller's: `begin`..`commit`/`abort`, `format` and `set_hidden` exclude
 * everything else on the store; `get` may run on many threads at once between them, and by the
 * writer inside its transaction, where it sees its own puts.
 */
#ifndef MUNINN_ENGINE_RECORDS_RECORDS_H
#define MUNINN_ENGINE_RECORDS_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/finding.h"
#include "engine/records/options.h"
#include "engine/records/statistics.h"

struct nand;
struct nand_geometry;

/* Sequence number bound that means "newest". Sequence numbers start at 1. */
#define RECORD_NEWEST ((UINT64_C(1) << 48) - 1)

/*
 * Numbers come in slots of so many. A store knows of them only this: when it has lost the last
 * commands, it uses up the rest of the slot that the last number it still has is in, so that no
 * lost number is ever given again.
 */
#define RECORD_SLOT_BITS 16
#define RECORD_SLOT      (UINT64_C(1) << RECORD_SLOT_BITS)

/* The slot that a sequence number is in: its first and its last possible number. */
static inline uint64_t slot_begin(uint64_t sequence)
{
	return sequence & ~(RECORD_SLOT - 1);
}

static inline uint64_t slot_end(uint64_t sequence)
{
	return sequence | (RECORD_SLOT - 1);
}

/*
 * How a kind of record is used, chosen by the caller. A store may place, index or keep records by
 * it; it says nothing about what they mean.
 */
enum record_class {
	RECORD_CLASS_DATA,     /* about a page each; many, read in runs of pieces */
	RECORD_CLASS_NODE,     /* up to a page; few, put again and again */
	RECORD_CLASS_METADATA, /* small; one for each thing that is stored */
	/* Few and small. What it costs to put them must not depend on what else is put. */
	RECORD_CLASS_HISTORY,
};

#define RECORD_CLASSES (RECORD_CLASS_HISTORY + 1)

/* Keys that differ in any field are different keys. */
struct record_key {
	uint64_t identifier;
	uint32_t piece;
	uint16_t partition;
	uint8_t class; /* enum record_class */
};

/*
 * An epoch is a range of sequence numbers inside which nobody will ever look back. It is named by
 * the number that it begins with. This one begins before all others and never ends: for records
 * that are only read as of now.
 */
#define RECORD_EPOCH_ENDLESS 0

enum record_flag {
	RECORD_TOMBSTONE = 1 << 0, /* the key ends here; length 0 */
	/*
	 * While it is still buffered the record may be dropped in favour of a newer committed one
	 * of the same key and the same epoch. Never in favour of anything else.
	 */
	RECORD_ABSORB = 1 << 1,
};

/*
 * Which part of the space a put may use when a device fills up. Each room leaves to those below it
 * what is kept for them. So the rooms above, however often they are used, take nothing from what
 * leads out of a full device.
 */
enum record_room {
	RECORD_ROOM_WRITE,  /* all that is not kept for those below */
	RECORD_ROOM_FREE,   /* removing */
	RECORD_ROOM_RETURN, /* going back */
	/* Going back where history is locked, which is done a limited number of times; what gives
	   history up. */
	RECORD_ROOM_RESCUE,
	RECORD_ROOM_UPKEEP, /* what is noted for merging, and what is done on the host */
	/* Merging alone: while anything can be reclaimed, a full device reclaims it. */
	RECORD_ROOM_MERGE,
};

#define RECORD_ROOMS (RECORD_ROOM_MERGE + 1)

/* Most sequence numbers that may be left out between two transactions. */
#define RECORD_GAP_MAX (UINT64_C(1) << 32)

/* A record as found. */
struct record_info {
	uint64_t sequence;
	uint32_t length; /* of the value */
	uint8_t flags;
};

/* What was found under a key of a run: 0, or the error of `get`. */
struct record_found {
	int result;
	struct record_info info;
};

/* Most keys of a run. */
#define RECORD_RUN_MAX 256

/*
 * What was rolled back. Its functions run on any thread, at any time between two calls of
 * set_hidden.
 */
struct record_hidden {
	void *context;
	/*
	 * Whether a rollback hides a record of `key` with `sequence` (<= bound) from a reader at
	 * `bound`. Quick when there are no rollbacks; must not call the store.
	 */
	bool (*is_hidden)(void *context, const struct record_key *key, uint64_t sequence,
			  uint64_t bound);
};

/*
 * What merge must keep: the record that is found for every key at the present, and at each kept
 * bound of its partition. May call `get`.
 */
struct record_keep {
	void *context;
	/*
	 * The bounds besides the present (RECORD_NEWEST) at which a record is looked for,
	 * ascending, none below its sequence number; at most `max`. Found and reachable at one of
	 * them, it is kept. A bound equal to its sequence number means: keep it unless a later put
	 * of its own command supersedes it. Returns how many; more than `max`: keep it as with
	 * that bound, whether it can be reached or not.
	 * Without rollbacks the lowest bound is enough, since what is superseded there stays so;
	 * each rollback may bring a record back, so the lowest bound behind it belongs to the
	 * list too. NULL: the present is all.
	 */
	uint32_t (*bounds)(void *context, const struct record_key *key,
			   const struct record_info *info, uint64_t *bounds, uint32_t max);
	/*
	 * Whether the record, found for its key at `bound`, can be reached there: it is not a piece
	 * of something removed or cut off. NULL: every one can.
	 */
	bool (*is_reachable)(void *context, const struct record_key *key,
			     const struct record_info *info, uint64_t bound);
	/*
	 * Whether a tombstone that ends no older record of its key says something all the same, as
	 * in a clone, where it hides a record of the origin. NULL: none does.
	 */
	bool (*keeps_lone_tombstone)(void *context, const struct record_key *key,
				     const struct record_info *info);
};

/* Page programs behind a command that must not take long; see record_store_operations.catch_up. */
#define RECORD_CATCH_UP_FEW 2

#define MERGE_SEGMENTS_MAX 16

/* How the segments to merge are found. What is found is counted before it is moved, either way. */
enum record_merge_choice {
	RECORD_MERGE_SAMPLED, /* some segments' pages are read, and those that hold least taken */
	/* By what the store knows without reading, in the published store by its filters. */
	RECORD_MERGE_ESTIMATED,
	/* Only a segment that lost pages and is to be moved; see `scrub`. */
	RECORD_MERGE_MENDED,
};

struct record_merge {
	uint32_t segments_wanted;   /* in one call, 1..MERGE_SEGMENTS_MAX; 0 = 1 */
	uint32_t segments_least;    /* that a call takes before it may end early; 0 = 1 */
	uint32_t live_permille_max; /* of a segment's bytes; with more live it is left alone; the
				       paper takes 800 */
	enum record_merge_choice choice;
	/*
	 * In pieces: what the call has emptied may become free behind it. seal_take gives that to a
	 * thread. A call may end early then, as soon as those of the one before are free.
	 */
	bool frees_behind;
	/* Atomic. In pieces: not 0: others wait for the end of this one. NULL: nobody ever does. */
	const uint32_t *awaited;
	/* Results, added up over calls. */
	uint64_t segments_freed;
	uint64_t segments_taken; /* by what was moved */
	uint64_t pages_read;
	uint64_t records_looked_at; /* by how much of them is needed, and to move them */
	uint64_t records_moved, records_dropped;
	uint64_t bytes_moved; /* headers and values */
};

/*
 * Reads what the flash holds, records and what leads to them, a part at a time, to find what has
 * been lost while it can still be made again.
 */
struct record_scrub {
	uint64_t position; /* where to begin, 0: anew; then where to go on, 0: all was read */
	uint32_t pages;    /* to read, about */
	uint64_t end;      /* result: positions are below it */
	/* Results, added up over calls. */
	uint64_t read;
	uint64_t repaired; /* that were lost and made again */
	uint64_t lost;     /* for good */
};

struct record_store;

/* A look at all that a store keeps. */
struct record_check {
	struct findings *findings;
	void *context; /* of the two below */
	/* A record that is stored and counts, in any order; one that merge moved perhaps twice. */
	void (*record)(void *context, const struct record_key *key, const struct record_info *info);
	/* Pages of flash that have been read, of how many. */
	void (*progress)(void *context, uint64_t done, uint64_t total);
	/* Results. */
	uint64_t segments, pages, records;
};

#define RECORD_NO_SEGMENT UINT32_MAX

/* What a run of segments is used for. */
struct record_stretch {
	uint32_t segments, free, sealed; /* the others hold what the store notes for itself */
};

/* A look at one page of all that a store keeps, to tell from many of them what takes its space. */
struct record_sample {
	uint64_t page; /* below `pages`; there is nothing behind that */
	/* Results: how many pages there are; bytes of the device, and those that all records take.
	 */
	uint64_t pages, device_bytes, bytes;
	uint32_t segment; /* ... and where the page is; RECORD_NO_SEGMENT: in NVRAM, or nowhere */
	void *context;
	/*
	 * Called for each record in the page, whether it is found or not, with the bytes that it
	 * takes. `counts`: false of what was aborted, or is void.
	 */
	void (*record)(void *context, const struct record_key *key, const struct record_info *info,
		       uint32_t bytes, bool counts);
};

/* Whether a store that leaves out what is damaged may lack records of a key. */
enum record_certainty {
	RECORD_CERTAIN,
	RECORD_UNCERTAIN,
	RECORD_ALL_UNCERTAIN, /* of this and any other key */
};

/* What there is to write to flash behind the writers. */
struct record_sealing {
	uint32_t waiting; /* buffers that are full */
	bool held_up; /* seal_take has found none of them: they wait for a seal_step of others */
	bool pressed; /* so many that a put may have to write one itself */
};

/* How flash is emptied that nothing needs. */
enum record_trim {
	RECORD_TRIM_LOOK,     /* beside readers: is there any? */
	RECORD_TRIM_TAKE,     /* excludes everything else: nobody else gets it */
	RECORD_TRIM_EMPTY,    /* beside everything; waits for the flash and the host */
	RECORD_TRIM_PUT_BACK, /* excludes everything else: it is free again */
};

struct record_store_operations {
	/*
	 * What rollbacks hide from now on; the store keeps the pointer. NULL, and after opening:
	 * nothing. Bounds of readers stay plain numbers.
	 */
	void (*set_hidden)(struct record_store *store, const struct record_hidden *hidden);

	/*
	 * Begins the one writing transaction and returns its sequence number: `at_least`, or higher
	 * when it has been used up (never 0). Numbers left out mean nothing; at most RECORD_GAP_MAX
	 * in a row.
	 */
	uint64_t (*begin)(struct record_store *store, uint64_t at_least);

	/*
	 * Adds a record. `epoch`: the number that its epoch began with, at most the transaction's
	 * own. A store may take it for a later one, and then absorbs less. -ENOSPC: there is no
	 * space for it in that room. Two puts of one key in one transaction: the later one counts.
	 */
	int (*put)(struct record_store *store, const struct record_key *key, uint64_t epoch,
		   unsigned flags, const void *value, uint32_t length, enum record_room room);

	/* Makes all puts since begin visible and crash-proof. Cannot fail. */
	void (*commit)(struct record_store *store);

	/* Undoes all puts since begin. */
	void (*abort)(struct record_store *store);

	/*
	 * Finds the newest visible record of `key` with sequence <= `bound` and copies at most
	 * `capacity` bytes of its value (value may be NULL with capacity 0). A tombstone is
	 * returned like any record, with its flag. -ENOENT: there is none. -EBADMSG: a page that
	 * may hold it is corrupt.
	 */
	int (*get)(struct record_store *store, const struct record_key *key, uint64_t bound,
		   void *value, uint32_t capacity, struct record_info *info);

	/*
	 * get for `count` keys, at most RECORD_RUN_MAX: `key` and those of the pieces behind it. A
	 * store can read them in one request. Their values stand `capacity` bytes apart; behind a
	 * value the memory up to the next one is undefined, and all of it where nothing is found.
	 */
	void (*get_run)(struct record_store *store, const struct record_key *key, uint32_t count,
			uint64_t bound, uint8_t *values, uint32_t capacity,
			struct record_found *found);

	/*
	 * Makes *key the first key not before it under which `get` finds something at `bound`,
	 * tombstones too, in the order of partition, identifier, piece and class. -ENOENT: there is
	 * none. NULL: the store has no order of keys.
	 *
	 * Nothing in the engine calls it: not every store has such an order, so the object layer
	 * lists by sets of its own (engine/sets). It is here for stores that have one for nothing,
	 * like a tree, and what may come to use it; the conformance suite holds them to it.
	 */
	int (*next)(struct record_store *store, struct record_key *key, uint64_t bound);

	/*
	 * Lists the newest records of a key that a reader at `bound` sees, tombstones too, newest
	 * first, at most `max`; only those with a sequence number below `below` (RECORD_NEWEST + 1:
	 * all). Returns how many. -EBADMSG.
	 */
	int (*list)(struct record_store *store, const struct record_key *key, uint64_t bound,
		    uint64_t below, struct record_info *infos, uint32_t max);

	/*
	 * Whether anything was put under `key` with a number above `after` and up to `bound`,
	 * hidden or not, that has not been merged away: 1 or 0. Where nothing was, that takes
	 * few reads of records: the index of what is newer than `after` mostly tells. -EBADMSG,
	 * -EIO. NULL: the store can't tell.
	 */
	int (*has_between)(struct record_store *store, const struct record_key *key, uint64_t after,
			   uint64_t bound);

	/*
	 * Does some of what puts of history's records have left to do, outside transactions.
	 * Programs at most `pages` pages, or with more than RECORD_CATCH_UP_FEW all that it takes
	 * to leave space for many calls with so few. NULL: nothing is ever left.
	 */
	void (*catch_up)(struct record_store *store, uint32_t pages);

	/*
	 * For threads that write full buffers to flash behind the writers, and make stable what a
	 * merge leaves to them (frees_behind), which counts as one; NULL: there are none.
	 * Outside transactions, excluding everything else, seal_take chooses one that waits: a
	 * number, or -EAGAIN: none does, or another error. Then, until seal_step says that this is
	 * all, seal_run does what takes long, beside everything on the store; and seal_step, like
	 * seal_take, what follows it: 1: there is more to run. 0: sealed, perhaps by a writer that
	 * could not wait. Errors: it waits again.
	 */
	int (*seal_take)(struct record_store *store);
	void (*seal_run)(struct record_store *store, int number);
	int (*seal_step)(struct record_store *store, int number);
	void (*seal_state)(struct record_store *store, struct record_sealing *sealing);

	/*
	 * Everything committed becomes stable on the host's storage. flush_begin says up to which
	 * number. It is quick, and is called outside transactions or between two puts of one,
	 * beside reading ones, one at a time. flush, which waits for the host, then makes that so,
	 * beside everything on the store; errors: nothing was promised.
	 */
	uint64_t (*flush_begin)(struct record_store *store);
	int (*flush)(struct record_store *store, uint64_t number);

	/*
	 * Copies the NVRAM, for a copy of the device: as a flush of all that is committed leaves
	 * it. Outside transactions, excluding everything else but seal_run and what runs beside
	 * everything. NULL: the store has no device.
	 */
	void (*copy_nvram)(struct record_store *store, uint8_t *to);

	/* The next three are NULL in a store that cannot merge. */

	/*
	 * How many segments short of its mark the store is; 0 = there is enough space and no need
	 * to merge. The mark of RECORD_ROOM_WRITE leaves space for some puts; that of another room
	 * is where it is used up.
	 */
	uint32_t (*shortage)(struct record_store *store, enum record_room room);

	/*
	 * Frees segments: moves what `keep` needs of them to the active ones. Outside transactions;
	 * crash-safe at any point. -EAGAIN: none of the next few segments was worth it; as many
	 * calls as merge_calls_max go round all of them. -ENOSPC: no space for what is to be moved.
	 */
	uint32_t (*merge_calls_max)(struct record_store *store);
	int (*merge)(struct record_store *store, const struct record_keep *keep,
		     struct record_merge *merge);

	/*
	 * The same in pieces, by a thread beside others. 1: merge_run, without excluding anything
	 * on the store, does what takes long, and the next merge_step goes on. Otherwise as merge.
	 * Only one merge goes on at a time. NULL: there are no pieces.
	 */
	int (*merge_step)(struct record_store *store, const struct record_keep *keep,
			  struct record_merge *merge);
	void (*merge_run)(struct record_store *store);

	/*
	 * Reads some pages, beside readers. `damaged`: segments that lost pages which could be made
	 * again, so that merges are to move what is in them. Both NULL: the store can't tell.
	 */
	void (*scrub)(struct record_store *store, struct record_scrub *scrub);
	uint32_t (*damaged)(struct record_store *store);

	/*
	 * Empties some flash that nothing needs, and of which there is plenty, so that the host
	 * gets its space back. By one thread, and the steps one behind the other. False: there is
	 * nothing to empty. NULL: the store has nothing to give.
	 */
	bool (*trim)(struct record_store *store, enum record_trim step);

	/*
	 * Begins the one writing transaction as the first one of an empty store: all that is older
	 * is void. Until its end `get` finds only what it has put. Its `commit` makes that so for
	 * good, at once and across a crash; `abort` leaves all as it was. Sequence numbers go on.
	 * -EIO, -ENOMEM: the format before this one is not stable on the host yet.
	 */
	int (*begin_format)(struct record_store *store, uint64_t at_least, uint64_t *sequence);

	/*
	 * A number that is kept beside the records, whatever becomes of them: 0 until it is set.
	 * Setting it takes no space, can't fail, is crash-proof at once and as a whole, and belongs
	 * to no transaction: both may be called at any time, on any thread. It becomes stable on
	 * the host's storage with `sync_memo` (-EIO) or `flush`.
	 */
	uint64_t (*memo)(struct record_store *store);
	void (*set_memo)(struct record_store *store, uint64_t memo);
	int (*sync_memo)(struct record_store *store);

	/*
	 * Reads all that is stored and compares it with what refers to it, and adds what is wrong
	 * to the findings. Nothing else may happen on the store meanwhile but `get`. -ENOMEM. NULL:
	 * the store has nothing to compare.
	 */
	int (*check)(struct record_store *store, struct record_check *check);

	/* Shows a page, beside readers. -EIO. NULL: the store has no way to show one. */
	int (*sample)(struct record_store *store, struct record_sample *sample);

	/*
	 * Divides the device into so many stretches, at most as many as it has segments, and says
	 * what these are used for. Beside readers. NULL: the store has no segments.
	 */
	void (*map)(struct record_store *store, struct record_stretch *stretches, uint32_t count);

	/* NULL: it lacks none. */
	enum record_certainty (*is_uncertain)(struct record_store *store,
					      const struct record_key *key);

	/* Fills in what the store counts. */
	void (*statistics)(struct record_store *store, struct record_statistics *statistics);

	/* Frees the store; `stable`: flushes before. */
	int (*close)(struct record_store *store, bool stable);
};

/* First member of every implementation. */
struct record_store {
	const struct record_store_operations *operations;
	struct record_limits limits;
	const char *device; /* names it in messages; the store's */
	/* Of those above the store: see access.h. NULL: records are where their keys say. */
	const struct record_lineage *lineage;
};

/*
 * A kind of record store. `records` are the options that all kinds take, `own` those of this one;
 * both are used only during the call, `own` NULL: defaults.
 */
struct record_store_type {
	/*
	 * As in the configuration, and as engine_format leaves it on the device (nand_contents): at
	 * most NAND_CONTENTS_BYTES - 1 characters.
	 */
	const char *name;

	/* Zeroed NVRAM bytes that it needs. -EINVAL. */
	int (*nvram_bytes)(const struct nand_geometry *geometry,
			   const struct record_options *records, const void *own, uint64_t *bytes,
			   struct error_text *error);

	/* Makes an empty store, which `open` refuses until it is complete. */
	int (*format)(struct nand *nand, const struct record_options *records, const void *own,
		      struct error_text *error);

	/*
	 * Adds what can be told to be wrong without opening the store, and changes nothing. NULL:
	 * nothing can.
	 */
	void (*examine)(struct nand *nand, struct findings *findings);

	/*
	 * Completes or discards what a crash left. The NVRAM may be lost: then it is zeroed.
	 * -ENODEV: not formatted. -EINVAL: another version of the format, or corrupt.
	 */
	int (*open)(struct nand *nand, const struct record_options *records, const void *own,
		    struct record_store **store, struct error_text *error);

	/*
	 * Makes a device that this store is on, and that nobody has open, larger: nand_grow to
	 * `blocks` blocks. `really` false: only tells whether that can be. -EINVAL. NULL: none can.
	 */
	int (*grow)(struct nand *nand, uint64_t blocks, bool really, struct error_text *error);
};

#endif
