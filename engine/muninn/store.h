/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The Muninn record store: rows of an active segment and read-only tables, on one NAND device.
 * Private to this folder.
 */
#ifndef MUNINN_ENGINE_MUNINN_STORE_H
#define MUNINN_ENGINE_MUNINN_STORE_H

#include "engine/muninn/buffer.h"
#include "engine/muninn/index/table_cache.h"
#include "engine/muninn/muninn.h"
#include "engine/records/space.h"

#define NO_ROW  UINT16_MAX
#define NO_PAGE UINT64_MAX

struct row {
	struct buffer buffer; /* the active segment */
	struct buffer newer;  /* a second one, for keys that have no place left in the first; `area`
				 NULL: none */
	struct table growing; /* the read-only table that sealed segments are added to, in NVRAM */
	struct table *complete; /* complete tables in memory, oldest first */
	uint32_t complete_count;
	struct table_bounds bounds; /* of the complete tables */
	bool touched;               /* by the running transaction: listed in the store */
	bool unsynced;              /* changed since the last flush */
};

/* A row's older buffer on its way to a segment of flash. */
struct sealing {
	uint32_t segment; /* NO_SEGMENT: none has been taken */
	uint32_t pages;   /* of it that have been programmed */
	bool unfinished;  /* the buffer holds records of a transaction that is not committed */
};

/* The image of a row's growing table on its way to flash. */
struct image_writing {
	struct table table; /* a copy; `image` NULL: there is none on its way */
	uint8_t *entry;     /* of the directory, not in use yet; its segments count as used */
	uint32_t row;
	uint32_t pages; /* that have been programmed */
	uint32_t attempts;
};

/* A root in store->root on its way to the ring. */
struct root_writing {
	uint32_t pages; /* 0: there is none on its way */
	uint32_t part;  /* the next page */
	uint32_t end;   /* of the ring's segment, where it goes */
	uint64_t serial;
};

struct store_counters {
	uint64_t records_put, records_got, records_absent, record_bytes_put;
	uint64_t page_reads, false_positive_reads;
	uint64_t sealed_records, sealed_record_bytes;
};

struct merge_run;

/* What merging remembers from one run to the next. */
struct merge_walk {
	uint32_t cursor, step; /* walk over the segments */
	uint64_t random;       /* which of their pages it looks at */
	uint32_t row, table;   /* walk over the complete tables */
	uint32_t read_factor;  /* how many times as many pages as usual the next run may read */
	uint16_t *estimates;   /* live per mille of segments, by their filters; UINT16_MAX: unknown;
				  NULL: all are */
};

struct muninn_store {
	struct record_store base;
	struct nand *nand;
	struct muninn_geometry geometry;
	uint8_t *nvram;
	struct row *rows;
	uint16_t *touched; /* rows that the running transaction has put to */
	uint32_t touched_count;
	struct buffer *free_buffers; /* of no row */
	uint32_t free_buffer_count;
	struct space space;
	struct table_cache *table_cache;        /* of complete tables; NULL: they are in memory */
	uint64_t committed;                     /* highest sequence number that counts */
	uint64_t sequence;                      /* of the running transaction, 0 = none */
	uint64_t void_before;                   /* what is older does not count; see void.c */
	const struct record_timeline *timeline; /* what rollbacks hide; NULL: nothing */
	bool sealed_running; /* the running transaction sealed a segment, so some of its records may
				be on flash */
	uint16_t *images;    /* for each segment the table images that touch it */
	uint32_t metadata_segment,
		metadata_page; /* where the next table image begins; NO_SEGMENT: in a new segment */
	uint8_t *spares;       /* spare areas of a segment, for programming */
	struct nand_page_io *ios;           /* one a page of a segment */
	struct store_counters counters;     /* updated atomically: readers run side by side */
	struct sealing history_sealing;     /* history's row is sealed a few pages at a time ... */
	struct image_writing history_image; /* ... and so is its table written */
	uint32_t
		sealed_beside_history; /* segments of other rows, since history's was sealed last */
	int history_told;              /* the error that was logged last, until all is well */
	uint64_t open_microseconds;
	/* While it is opened: */
	const struct record_options *records;
	const struct muninn_options *options;
	uint8_t boot_id[NVRAM_BOOT_BYTES];
	bool host_failed;     /* since the store was last open */
	uint64_t fallen_from; /* then: the highest sequence number that there was */
	uint8_t *root;        /* space for a root */
	struct root_writing root_writing;
	uint8_t *kills;         /* a list of kills, as it is written; a page */
	uint32_t kill_count;    /* in it: since the last root */
	uint64_t root_serial;   /* of the last root that was written since open; 0: none */
	bool root_outdated;     /* segments have been sealed since, or numbers aborted */
	int root_told;          /* the error that was logged last, until one is written */
	uint16_t *segment_rows; /* for each segment the row that it is sealed in, or NO_ROW */
	struct merge_walk merge_walk;
	struct merge_run *merge_run; /* memory for one; passed along while it goes on */
	uint32_t version_tables;     /* tables of an internal version */
};

static inline void count_up(uint64_t *counter, uint64_t by)
{
	__atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

static inline uint64_t state_read(const struct muninn_store *store, uint32_t at)
{
	return get_le64(store->nvram + at);
}

/* Where a row's growing table is. */
static inline uint8_t *growing_image(const struct muninn_store *store, uint32_t row)
{
	return store->nvram + store->geometry.tables_at + row * store->geometry.table_bytes;
}

static inline bool row_has_newer(const struct row *row)
{
	return row->newer.area != NULL;
}

/* Where a key's records are. RECORD_CLASS_HISTORY has a row of its own. */
static inline uint32_t store_row(const struct muninn_store *store, const struct record_key *key,
				 const struct key_hash *hash)
{
	return key->class == RECORD_CLASS_HISTORY ? history_row(&store->geometry)
						  : hash_row(hash, store->geometry.hashed_rows);
}

/* Which records count up to `bound`, for readers. */
static inline struct visibility store_visibility(const struct muninn_store *store, uint64_t bound)
{
	return (struct visibility){
		.bound = bound,
		.below = RECORD_NEWEST + 1,
		.from = store->void_before,
		.timeline = store->timeline,
		.aborted = store->nvram + NVRAM_ABORTED_AT,
		.aborted_count = state_read(store, STATE_ABORTED_COUNT_AT),
	};
}

/* ---- aborted.c: sequence numbers that never count ---- */

/* Whether one more range can be noted. */
bool aborted_has_room(const struct muninn_store *store, enum record_room room);

/*
 * Notes that the numbers above the committed one, up to `last`, never count; their records on flash
 * are skipped from now on. `last` becomes the committed number. There must be room.
 */
void store_abandon(struct muninn_store *store, uint64_t last);

/* Ends the list with what was in it at the commit of `last`. */
void aborted_take_back(struct muninn_store *store, uint64_t last);

/* Takes ranges off the list that no sealed segment needs any more. */
int aborted_prune(struct muninn_store *store);

/* ---- outage.c: when the host itself has failed ---- */

/*
 * Whether this boot of the host is another one than when the store was last opened: `host_failed`.
 */
void outage_look(struct muninn_store *store, const struct record_options *records);

/* Notes this boot in NVRAM. */
void outage_note_boot(struct muninn_store *store);

/* Sets `committed` back to the last flush, before the buffers are recovered. Tables are loaded. */
void outage_fall_back(struct muninn_store *store);

/* Aborts what came after the last flush, and makes the store that is left stable. */
int outage_finish(struct muninn_store *store, struct error_text *error);

/* The next buffer serial, made stable in NVRAM before it is used. */
uint64_t store_next_serial(struct muninn_store *store);

/* ---- row.c: which buffers a row has, and which of them a record goes to ---- */

/* Number of the table that takes the segment that the row seals next (0), or the one after (1). */
uint32_t row_next_table(const struct row *row, uint32_t ahead);

/* Begins an empty active segment for a row without one. There must be a free buffer. */
void row_start_buffer(struct muninn_store *store, uint32_t row);

/* Begins a second, newer one beside it. There must be a free buffer. */
void row_take_newer(struct muninn_store *store, uint32_t row);

/* What follows when the row's (older) active segment has been sealed. */
void row_end_buffer(struct muninn_store *store, uint32_t row);

/* All buffers become no row's, and empty. */
void rows_release_buffers(struct muninn_store *store);

/*
 * Gives each row the buffers in NVRAM that are its own and not sealed, cuts them to what is
 * committed and builds their filters again. -EINVAL with a sentence.
 */
int rows_recover_buffers(struct muninn_store *store, struct error_text *error);

/* The rows that have been put to are to be flushed; none is touched any more. */
void rows_end_touched(struct muninn_store *store);

/* Removes from a row's buffers what is newer than `last`. */
void row_cut(struct row *row, uint64_t last);

/* Bytes of headers and values in all buffers; memory of the buffers' filters and maps. */
uint64_t rows_buffered_bytes(const struct muninn_store *store);
uint64_t rows_filter_bytes(const struct muninn_store *store);

/*
 * Puts a record into its row's buffer, sealing it first when it is full. Visible at once when its
 * sequence number is a committed one. -ENOSPC, -EIO.
 */
int store_place(struct muninn_store *store, const struct new_record *record, enum record_room room);

/* Drops what is older than `before` from all buffers. It must not be needed any more. */
void rows_drop_void(struct muninn_store *store, uint64_t before);

/* ---- void.c: what a format makes void ---- */

/* The running transaction sees only what it puts, and its commit makes all else void. */
void void_begin(struct muninn_store *store, uint64_t sequence);

/* The running transaction is aborted. */
void void_take_back(struct muninn_store *store);

/* Whether a format is committed, but not settled yet. */
static inline bool void_is_unsettled(const struct muninn_store *store)
{
	uint64_t next = state_read(store, STATE_VOID_NEXT_AT);

	return next && next <= store->committed;
}

/*
 * After the commit of a format: makes it stable and frees what is void, unless that has been done.
 * An error is logged; it leaves all as it is, to be tried again. -EIO, -ENOMEM.
 */
int void_settle(struct muninn_store *store);

/* What is older does not count, by the last format that was committed. */
static inline uint64_t void_in_effect(const struct muninn_store *store)
{
	return void_is_unsettled(store) ? state_read(store, STATE_VOID_NEXT_AT)
					: state_read(store, STATE_VOID_AT);
}

/* When opening: whether the last format was committed. `committed` is final. */
void void_recover(struct muninn_store *store);

/* ---- lookup.c: each with the merge that it is made for, which counts its reads; NULL: none ----
 */

/* record_store_operations.get, with what counts. -EBUSY: the merge may read no more. */
int store_get(struct muninn_store *store, const struct record_key *key,
	      const struct visibility *visibility, struct merge_run *run, void *value,
	      uint32_t capacity, struct record_info *info);

/*
 * The same, of those with sequence numbers from `since` on; of what is older something may be
 * found, or not.
 */
int store_get_since(struct muninn_store *store, const struct record_key *key,
		    const struct visibility *visibility, uint64_t since, struct merge_run *run,
		    void *value, uint32_t capacity, struct record_info *info);

/*
 * Whether a tombstone ends anything: another record of its key as old as it or older, of its own
 * command too, hidden or not. 1, 0, or the error of the search.
 */
int store_has_older(struct muninn_store *store, const struct record_key *key, uint64_t sequence,
		    struct merge_run *run);

/*
 * The `max` newest records of a key that count, newest first. Returns how many there are, or the
 * error of the search.
 */
int store_list(struct muninn_store *store, const struct record_key *key,
	       const struct visibility *visibility, struct record_info *infos, uint32_t max);

/*
 * Calls `take` for all records of a key with numbers from `from` to `to`, hidden and aborted ones
 * too, from the newest place to the oldest. 0, or the first error, of `take` too.
 */
int store_gather(struct muninn_store *store, const struct record_key *key, uint64_t from,
		 uint64_t to, struct merge_run *run,
		 int (*take)(void *context, const struct page_view *page,
			     const struct page_record *record),
		 void *context);

/* record_store_operations.has_between. */
int store_has_between(struct muninn_store *store, const struct record_key *key, uint64_t after,
		      uint64_t bound);

/* Finds again which of the row's complete tables are old enough for what. */
static inline void row_refresh_bounds(const struct muninn_store *store, struct row *row)
{
	bounds_refresh(&row->bounds, row->complete, row->complete_count, store->version_tables);
}

/* ---- seal.c ---- */

/* Nothing is on its way. */
void sealing_begin(struct sealing *sealing);

/* What has been programmed does not count; its segment is free again. */
void sealing_give_up(struct muninn_store *store, struct sealing *sealing);

/*
 * Programs a row's (older) active segment, adds it to the growing table and begins an empty one. Of
 * history's row it does what is left to do. -ENOSPC, -EIO.
 */
int store_seal_row(struct muninn_store *store, uint32_t row);

/*
 * record_store_operations.catch_up: when history's row has a second buffer, or needs one, goes on
 * sealing the first, for which it programs at most `pages` pages. Outside transactions. What fails
 * is logged, and tried again by the next call.
 */
void store_catch_up(struct muninn_store *store, uint32_t pages);

/* Makes all that is committed stable on the host. */
int store_flush(struct muninn_store *store);

/* ---- directory.c: complete tables ---- */

/*
 * Writes a row's growing table, which must be full, to flash, and begins the next one and, of
 * history's row, a root. Takes the pages that it programs off *pages; where these are too few for a
 * table of history's row, the next call goes on. -ENOSPC, -EIO.
 */
int store_complete_table(struct muninn_store *store, uint32_t row, uint32_t *pages);

/*
 * Loads all complete tables into memory, marks the segments that they and their images occupy, and
 * finds where the next image goes. -EINVAL, -EBADMSG with a sentence.
 */
int store_load_tables(struct muninn_store *store, bool *in_use, struct error_text *error);

/* Reads a page of a complete table's image; a table_page_reader with the store as its context. */
int store_read_table_page(void *context, const struct table *table, uint32_t page, uint8_t *data);

/* Takes a column out of a table of a row. The store no longer looks for anything in its segment. */
void store_kill_column(struct muninn_store *store, uint32_t row, struct table *table,
		       uint32_t column);

/* Ends the complete tables of a row that have no column left, and gives back their images. */
void store_drop_empty_tables(struct muninn_store *store, uint32_t row);

/* Entries of the directory that are in use. */
uint32_t store_directory_used(const struct muninn_store *store);

/*
 * Copies the entries in use one behind the other and returns their number; makes such a copy the
 * directory.
 */
uint32_t store_copy_directory(const struct muninn_store *store, uint8_t *to);
void store_restore_directory(struct muninn_store *store, const uint8_t *from, uint32_t count);

/* ---- roots.c ---- */

/*
 * Appends a root to the ring: what NVRAM says of the flash. What fails is logged: the store works
 * without. -EIO, -EFBIG (interrupted commands without end).
 */
int store_write_root(struct muninn_store *store);

/*
 * The same in parts: makes the root; appends at most *pages pages of it, which are taken off.
 * Without one on its way: 0.
 */
int store_begin_root(struct muninn_store *store);
int store_go_on_root(struct muninn_store *store, uint32_t *pages);

/*
 * Notes in the ring that columns have been merged away. Before their segments may be written again.
 * Errors as above.
 */
int store_write_kills(struct muninn_store *store, const struct root_kill *kills, uint32_t count);

/*
 * Erases the ring, which begins anew with roots from `serial` on. What can't be erased is left out.
 */
void store_format_ring(struct muninn_store *store, uint64_t serial);

/*
 * Whether the flash has a newer root than NVRAM knows: one page is looked at. -EINVAL with a
 * sentence.
 */
int store_check_ring(struct muninn_store *store, struct error_text *error);

/* ---- root_find.c ---- */

/* The newest root on flash, and what belongs to it. */
struct found_root {
	struct muninn_geometry geometry; /* of the device, by the root's static header */
	struct root_header header;
	uint8_t *bytes; /* all of it */
	struct root_header kills_header;
	uint8_t *kills;       /* the list that goes with it; NULL: none */
	uint64_t serial_most; /* highest of any page of the ring */
	uint32_t segment;     /* of the ring, that the newest page is in */
	uint64_t pages_read;
};

/* -ENOENT: none. -ENOMEM. The result is ended by root_found_free, also after an error. */
int root_find(struct nand *nand, struct found_root *found);
void root_found_free(struct found_root *found);

/* ---- rebuild.c ---- */

/*
 * Makes the NVRAM again from what is on flash, without what was only in NVRAM. -ENOENT: there is no
 * root.
 */
int store_rebuild_nvram(struct nand *nand, const struct record_options *records,
			const struct muninn_options *options, struct error_text *error);

/* ---- header.c ---- */

/*
 * The static header of a device, NVRAM_HEADER_CRC_AT + 4 bytes. header_read: -ENODEV, -EPROTO
 * (another version), -EINVAL.
 */
void header_write(uint8_t *to, const struct muninn_geometry *geometry, const uint8_t uuid[16]);
int header_read(const uint8_t *from, struct nand *nand, struct muninn_geometry *geometry,
		struct error_text *error);

/* ---- memory.c ---- */

void store_count_memory(const struct muninn_store *store, struct record_memory *memory);

/* ---- merge.c ---- */

/* Memory for merges, and the walk over the segments. -ENOMEM. */
int store_merge_create(struct muninn_store *store);
void store_merge_destroy(struct muninn_store *store);

/* Bytes of that memory: what grows with the segments; what does not. */
uint64_t store_merge_segment_bytes(const struct muninn_store *store);
uint64_t store_merge_scratch_bytes(const struct muninn_store *store);

/* A segment is taken out of the store: nothing is estimated of it any more. */
static inline void store_merge_forget(struct muninn_store *store, uint32_t segment)
{
	if (store->merge_walk.estimates)
		store->merge_walk.estimates[segment] = UINT16_MAX;
}

/* record_store_operations.merge_calls_max and .merge. */
uint32_t store_merge_calls_max(const struct muninn_store *store);
int store_merge(struct muninn_store *store, const struct record_keep *keep,
		struct record_merge *merge);

/* Forgets a table image that is on its way, and its segments with it. */
void store_forget_image(struct muninn_store *store);

/* Ends all entries of the directory in NVRAM. */
void store_empty_directory(struct muninn_store *store);

/* Forgets the complete tables of all rows. */
void store_drop_tables(struct muninn_store *store);

/* ---- allocate.c ---- */

/*
 * Memory for a store whose geometry is known. -EINVAL (too little NVRAM), -ENOMEM, with a sentence.
 */
int store_allocate(struct muninn_store *store, struct error_text *error);
void store_free(struct muninn_store *store);

/* ---- operations.c ---- */

extern const struct record_store_operations muninn_operations;

#endif
