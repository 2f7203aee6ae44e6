/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * An open store: what it keeps in memory, and how to read its state words. Private to this folder.
 */
#ifndef MUNINN_ENGINE_MUNINN_STORE_H
#define MUNINN_ENGINE_MUNINN_STORE_H

#include <pthread.h>

#include "engine/muninn/buffer.h"
#include "engine/muninn/index/index.h"
#include "engine/muninn/muninn.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/older.h"
#include "engine/records/space.h"

#define NO_ROW  UINT16_MAX
#define NO_PAGE UINT64_MAX

/* Segments that are programmed at once at most: by threads, and by who has the turn. */
#define SEAL_SCRATCH_MAX 5

/* What has to be done next for a row's older buffer to become a segment (seal.c). */
enum seal_stage {
	SEAL_NONE,    /* nothing has begun */
	SEAL_BUILD,   /* the row's group is full: make its image ... */
	SEAL_IMAGE,   /* ... and program that */
	SEAL_ENTRY,   /* make the directory's entry for it stable ... */
	SEAL_LISTED,  /* ... the word that makes it count ... */
	SEAL_GROUP,   /* ... and that the row has begun its next group */
	SEAL_ROOT,    /* program the root or list that follows a complete group */
	SEAL_PROGRAM, /* program the segment */
	SEAL_COLUMN,  /* make stable what the index says of it ... */
	SEAL_MEMBER,  /* ... and the word that makes it count */
	SEAL_STAGES,
};

/* Who may be about a stage. */
enum seal_running {
	SEAL_IDLE, /* who has the turn */
	SEAL_DUE,  /* the first one that runs it */
	SEAL_RUNNING,
};

/* A row's older buffer on its way to a segment of flash. */
struct sealing {
	enum seal_running running; /* under store->seal_lock */
	bool driven;               /* a thread will ask for the next stage */
	enum seal_stage stage;
	bool ran;             /* the stage: `result` tells how */
	int result;           /* of it */
	const uint8_t *entry; /* of the image: a root or list follows that ... NULL: none does */
	uint64_t root_serial; /* ... with this number */
	bool joins;           /* the image is of a group in the place of others; what was held
				 back for these begins and ends with: */
	uint64_t held_from, held_to;
	uint32_t segment; /* that waits for the buffer; NO_SEGMENT: none has been taken */
	bool erased;
	uint32_t erasures;  /* of its most worn block */
	uint32_t pages;     /* of it that have been programmed */
	uint64_t committed; /* when programming began */
	struct sealed_segment facts;
	struct arrangement *arrangement; /* of its records; NULL: they stay on their pages */
	struct older_pages older;
};

struct row {
	struct buffer buffer;    /* the active segment; the older one, which is full, of two */
	struct buffer newer;     /* takes the records then; `area` NULL: none */
	struct sealing sealing;  /* of the older buffer */
	struct row_index *index; /* of its sealed segments */
	bool keeps_groups;       /* none takes the place of others: that has failed once */
	bool touched;            /* by the running transaction: listed in the store */
	bool unpromised;         /* holds committed records that no flush has begun to promise */
};

/* Memory to program a segment from. */
struct seal_scratch {
	struct seal_scratch *next;
	uint8_t *spares;          /* spare areas, where there are no `pages` */
	struct nand_page_io *ios; /* one a page */
	struct page_view *views;  /* of the buffer's pages; NULL: nothing is arranged ... */
	uint8_t *pages;           /* ... nor composed, in pages with spare areas as on flash */
	uint8_t *parity;          /* what making it needs; NULL: there is none */
};

/* The image of a group of a row's index on its way to flash. */
struct image_writing {
	uint8_t *entry;           /* of the directory, not in use yet; NULL: none is on its way */
	struct index_image image; /* `bytes` NULL: it has not been made */
	bool is_placed;           /* the entry's segments count as used */
	struct index_join join;   /* the groups that it takes the place of; of none: the growing one
				     becomes complete */
	uint8_t *parts;           /* copies of their entries */
	uint8_t *ranges;          /* of its segments' old records: to be put behind the image */
	uint32_t ranges_bytes;
	uint32_t row;
	uint32_t pages; /* that have been programmed */
	uint32_t attempts;
	bool page_failed;
};

/* A root in store->root, or a list of changes, on its way to the ring. */
struct root_writing {
	const uint8_t *bytes; /* store->root, or store->list */
	uint32_t pages;       /* 0: there is none on its way */
	uint32_t part;        /* the next page */
	uint32_t end;         /* of the ring's segment, where it goes */
	int failed;           /* nobody goes on with it; 0: it has not */
	uint64_t serial;
};

struct store_counters {
	uint64_t records_put, records_got, records_absent, record_bytes_put;
	uint64_t page_reads, false_positive_reads;
	uint64_t sealed_records, sealed_record_bytes;
};

struct merge_run;
struct repair;

/* What merging remembers from one run to the next. */
struct merge_walk {
	uint32_t cursor, step;   /* walk over the segments */
	uint32_t old_row;        /* walk over the rows, for their oldest segments */
	uint64_t random;         /* which of their pages it looks at */
	uint32_t row, group;     /* walk over the complete groups of the rows' indices */
	uint32_t closer_choices; /* so many look closer at what they would count (choose.c) */
	uint32_t read_factor;    /* how many times as many pages as usual the next run may read */
	uint16_t *estimates;     /* live per mille of segments, as the index estimates; UINT16_MAX:
				    unknown;   NULL: all are */
};

/* Of a device that is opened though something is damaged: where records may be lost (mend.h). */
struct lost_place {
	uint64_t serial; /* of the segment */
	uint32_t row, page;
};

struct lost {
	struct lost_place *places;
	uint32_t count;
	bool all; /* anywhere */
};

#define LOST_ALL_PAGES UINT32_MAX

/* Records of a row, in a page (or all pages) of its segment with a serial, may be lost. */
void lost_note(struct lost *lost, uint32_t row, uint32_t page, uint64_t serial);

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
	struct parity parity;               /* of sealed segments */
	struct repair *repair;              /* of their pages */
	struct index *index;                /* of sealed segments */
	uint64_t committed;                 /* highest sequence number that counts */
	uint64_t flush_begun;               /* that of the last flush that has begun; 0: none has */
	uint64_t sequence;                  /* of the running transaction, 0 = none */
	uint64_t void_before;               /* what is older does not count; see void.c */
	const struct record_hidden *hidden; /* what rollbacks hide; NULL: nothing */
	bool sealed_running; /* the running transaction sealed a segment, so some of its records may
				be on flash */
	uint16_t *images;    /* for each segment the group images that touch it */
	uint32_t metadata_segment,
		metadata_page; /* where the next group image begins; NO_SEGMENT: in a new segment */
	uint8_t *spare;        /* space for a spare area */
	/* Who runs a stage; the list of scratch memory; the flushed number; the memo. */
	pthread_mutex_t seal_lock;
	pthread_cond_t seal_ran;
	struct seal_scratch scratch[SEAL_SCRATCH_MAX], *free_scratch;
	uint32_t waiting; /* rows with two buffers, but history's */
	bool held_up;     /* seal_take found nothing but rows that wait for a thread's image, ... */
	uint32_t held_up_free;          /* ... when so many segments were free */
	struct store_counters counters; /* updated atomically: readers run side by side */
	struct image_writing image_writing;
	uint32_t
		sealed_beside_history; /* segments of other rows, since history's was sealed last */
	int seal_error_logged;         /* the last one; 0 when all is well */
	uint64_t open_microseconds;
	/* While it is opened: */
	const struct record_options *records;
	const struct muninn_options *options;
	uint8_t boot_id[NVRAM_BOOT_BYTES];
	bool host_failed;     /* since the store was last open, and that had no clean end */
	uint64_t fallen_from; /* then: the highest sequence number that there was */
	uint8_t *root;        /* space for a root and its parity */
	struct root_writing root_writing;
	uint8_t *list;         /* a list of changes since the last root, and its parity */
	uint32_t list_kills;   /* in it */
	uint32_t list_groups;  /* behind these */
	uint64_t root_serial;  /* of the root that a list goes with, written since open; 0: none */
	uint32_t root_entries; /* of the directory, in that */
	/* Of what is held back these may go with what was held back before them. */
	uint64_t ready_from, ready_to;
	bool root_outdated;        /* segments have been sealed since, or numbers aborted */
	int root_error_logged;     /* the last one; 0 when one has been written */
	uint16_t *segment_rows;    /* for each segment the row that it is sealed in, or NO_ROW */
	struct older_pages *older; /* for each segment ... */
	uint64_t older_bytes;      /* ... and memory of their ranges */
	struct merge_walk merge_walk;
	struct lost *salvaged; /* while a damaged device is opened: what is lost is noted there */
	struct lost lost;      /* nothing, unless the device is salvaged */
	struct merge_run *merge_run; /* memory for one; passed along while it goes on */
};

static inline void count_up(uint64_t *counter, uint64_t by)
{
	__atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

static inline uint64_t state_read(const struct muninn_store *store, uint32_t at)
{
	return get_le64(store->nvram + at);
}

static inline uint8_t *store_sum(const struct muninn_store *store, enum nvram_sum sum)
{
	return store->nvram + sum_pair_at(&store->geometry, sum);
}

/* Changes a state word that has a sum: all but two, see sums.c. */
static inline void state_write(struct muninn_store *store, uint32_t at, uint64_t value)
{
	uint8_t *pair = store_sum(store, SUM_STATE);

	sum_begin(pair, sum_word(at, state_read(store, at)) ^ sum_word(at, value));
	nvram_store64(store->nvram + at, value);
	sum_end(pair);
}

/*
 * Says that `bytes` bytes of NVRAM from `at` on, which hold `what`, contradict what is at `other`.
 * Returns -EINVAL.
 */
int store_refuse_nvram(const struct muninn_store *store, const char *what, uint64_t at,
		       uint64_t bytes, uint64_t other, struct error_text *error);

/* Which records count up to `bound`, for readers. */
struct visibility store_visibility(const struct muninn_store *store, uint64_t bound);

/*
 * Notes what is known of the old records of a segment, which the store takes over; forgets what it
 * knows of them.
 */
void store_note_older(struct muninn_store *store, uint32_t segment,
		      const struct older_pages *older);
void store_forget_older(struct muninn_store *store, uint32_t segment);

/*
 * Memory for a store whose geometry is known. -EINVAL (too little NVRAM), -ENOMEM, with a sentence.
 */
int store_allocate(struct muninn_store *store, struct error_text *error);

/* Also of a store that could be allocated in part only. */
void store_free(struct muninn_store *store);

#endif
