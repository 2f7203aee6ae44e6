/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * One run of a merge: its memory, what it has read and found, and how far it has got. A run only
 * looks at pages that it has read, or that the host has in memory. Pages that it lacks are noted
 * (`missing`), and read together; a thread that merges in pieces does so without the turn. Then
 * what needed them is done again.
 */
#ifndef MUNINN_ENGINE_MUNINN_MERGE_RUN_H
#define MUNINN_ENGINE_MUNINN_MERGE_RUN_H

#include "engine/muninn/repeats.h"
#include "engine/muninn/store.h"

/* What a merge has found for a key at a bound. */
struct merge_find {
	struct record_key key;
	uint64_t bound;
	uint64_t sequence; /* 0: nothing is noted here */
	uint32_t crc;      /* its own, which its header has */
	bool lasts;        /* whatever is put later, or taken back */
	bool is_any;       /* it is newer than what was judged; there may be newer ones */
	bool hides;        /* by who sees what rollbacks leave, or by one who sees everything */
};

#define MERGE_FINDS 256

/* A page that a merge has read. */
struct merge_page {
	uint64_t number; /* NO_PAGE: none */
	bool has_data;   /* or the spare area alone */
	struct page_spare spare;
	uint16_t following; /* of those whose numbers are the same modulo MERGE_PAGES */
};

/* Pages that are remembered, those that were read last. */
#define MERGE_PAGES 512

/* Pages that are read together. */
#define MERGE_MISSING 256

/*
 * All pages of the segment that is counted and moved, read at once. `by_headers`: of a page that
 * holds one record alone no more than the header, if the host has it in memory. The data of those
 * that are needed follow.
 */
struct merge_segment {
	uint32_t number; /* NO_SEGMENT: none */
	bool by_headers;
	uint8_t *data;
	struct page_spare *spares;
	int *results; /* of reading each page; -EINPROGRESS: its data were not read */
	struct repeats repeats;
};

/* A sealed segment. */
struct victim {
	uint32_t row;
	uint32_t segment;
	uint32_t live_permille; /* of the bytes of its records, those that are needed */
	bool is_unworn;         /* chosen to level wear */
};

#define MERGE_KEY_GROUPS 1024

/* Bytes of records that were looked at, and of those that are needed. */
struct live_bytes {
	uint64_t live, all;
	uint32_t *keys;   /* needed bytes of the keys with the same hash, MERGE_KEY_GROUPS of them;
			     NULL: not wanted */
	uint32_t records; /* that were looked at */
};

/* A segment that may be the next victim; a few of its pages tell how much of it is live. */
struct merge_candidate {
	struct victim victim;
	uint32_t first; /* of the pages */
	bool is_sampled;
	bool is_cut;  /* it has at least so much that is live: its other pages were left out */
	bool is_sure; /* by enough records */
};

#define MERGE_CANDIDATES 16

/* How far the choice of a segment has got: see choose.c. */
struct merge_choice {
	uint32_t step;
	struct victim best;
	struct merge_candidate candidates[MERGE_CANDIDATES];
	uint32_t candidate_count; /* 0: none have been drawn yet */
	/* Counting `best`: its first page with a record that was not judged yet, and how many
	   records are before that page. */
	bool counts;
	uint32_t page, records;
	struct live_bytes counted;
	uint32_t keys[MERGE_KEY_GROUPS];
};

/* How far the records of a segment have been moved. */
struct merge_moving {
	struct victim victim;
	const uint8_t *needs; /* of its records, as counted; NULL: to be found out */
	uint32_t page;        /* the next one ... */
	uint32_t done;        /* ... of which so many records are done */
	uint32_t seen;        /* of that page, now */
};

enum merge_stage {
	MERGE_IDLE,
	MERGE_CHOOSE,
	MERGE_MOVE,
	MERGE_FULL,   /* there are no more: waits for those that an earlier run has emptied ... */
	MERGE_LEAVES, /* ... and then for its own */
};

/* What is to be made stable of emptied segments (emptied.c). */
enum emptied_stage {
	EMPTIED_NONE,
	EMPTIED_MOVED, /* what was moved ... */
	EMPTIED_OUT,   /* ... and that they are out */
};

struct emptied {
	struct sealing way; /* who is about the stage, and how it ended; no more of it is used */
	enum emptied_stage stage;
	struct victim segments[MERGE_SEGMENTS_MAX];
	struct root_kill kills[MERGE_SEGMENTS_MAX];
	uint32_t count;
	uint64_t number;      /* that a flush is to make stable */
	uint64_t held;        /* what was held back by then is let go behind it */
	uint64_t root_serial; /* a root with this number or a higher one is without them */
	uint64_t void_before; /* of the store when the merge began */
	int result;
};

/* The store keeps its memory, so that a merge need not get any. */
struct merge_run {
	struct muninn_store *store;
	const struct record_keep *keep;
	struct record_merge *merge; /* what is wanted, and the results */
	/* Pages that have been read, and that may be. */
	uint64_t reads, reads_max;
	/* A ring, and where the chains of its pages begin. The place of the next page is empty. */
	struct merge_page pages[MERGE_PAGES];
	uint16_t chains[MERGE_PAGES];
	uint32_t empty;
	uint8_t *data; /* of the pages */
	struct merge_segment segment;
	struct page_spare header;             /* of the page whose header was read last */
	struct merge_find finds[MERGE_FINDS]; /* what was found last */
	uint32_t counted;       /* the segment that is, or was last; NO_SEGMENT: none */
	uint64_t counted_most;  /* the highest number in it */
	uint64_t counted_at;    /* the committed number when that began */
	uint8_t *needs;         /* what was found for each record of the segment counted last */
	uint32_t needs_segment; /* NO_SEGMENT: none */
	enum merge_stage stage;
	uint32_t wanted; /* segments */
	struct victim batch[MERGE_SEGMENTS_MAX];
	uint32_t count; /* of them that are done */
	struct emptied emptied;
	struct merge_choice choice;
	struct merge_moving moving;
	int result;           /* why there are no more */
	uint64_t void_before; /* of the store when it began: a format takes everything away */
	bool in_pieces;
	bool tried_again; /* segments that were given up as damaged */
	bool fetches_all; /* set by tests: as if the host had no page in memory */
	uint64_t missing[MERGE_MISSING];
	uint32_t missing_count;
	uint32_t missing_segment; /* all of it; NO_SEGMENT: none */
	bool is_asking;           /* the caller, whose look-ups are the run's meanwhile */
	bool is_large;            /* what is looked at has a page for itself, or mostly so */
	uint32_t visited;         /* the segment of the page that is looked at */
	bool misses;              /* what is looked at now needs something that is missing */
	uint32_t tries;           /* of the same thing */
	uint32_t worked;          /* records that this piece has looked at */
	uint8_t *spares;          /* spare areas of pages that are read together ... */
	struct nand_page_io *ios;
};

/* Memory for merges, and the walk over the segments. -ENOMEM. */
int merge_run_create(struct muninn_store *store);
void merge_run_destroy(struct muninn_store *store);

/* Bytes of that memory: the part that grows with the segments, and the rest. */
uint64_t merge_run_segment_bytes(const struct muninn_store *store);
uint64_t merge_run_scratch_bytes(const struct muninn_store *store);

/* Forgets what was estimated of a segment that is taken out. */
void merge_run_forget(struct muninn_store *store, uint32_t segment);

/* Begins a run: nothing is known of what is found, and `reads_max` pages may be read. */
void merge_run_begin(struct merge_run *run, const struct record_keep *keep,
		     struct record_merge *merge, uint64_t reads_max);

/*
 * Gets a page of records, from the pages that the run has read or from flash. The view points into
 * the run's memory and holds until the next call. Errors of the flash; -EBADMSG: not a page of
 * records.
 */
int merge_run_read_page(struct merge_run *run, uint64_t page, struct page_view *view);

/* Notes that a page will be needed, too; that the data of one of the segment will be. */
void merge_run_note(struct merge_run *run, uint64_t page);
void merge_run_note_data(struct merge_run *run, uint64_t page);

/* The same for a look-up. -EBUSY: the run may read no more. */
int merge_run_read_more(struct merge_run *run, uint64_t page, struct page_view *view);

/*
 * Whether a page of which no more is remembered holds one record alone, as what is looked at does
 * (`is_large`), and the host has its spare area in memory. The view has no data then, only the
 * record's header.
 */
bool merge_run_read_header(struct merge_run *run, uint64_t page, struct page_view *view);

/* Called for each record of a page, in order. The value may not be there: NULL. */
typedef int record_visitor(struct merge_run *run, const struct page_record *record, uint64_t serial,
			   void *context);

/*
 * Whether what is looked at lacks a page; what is looked at next begins with merge_run_look. What
 * goes on tells that it got ahead.
 */
static inline bool merge_run_misses(const struct merge_run *run)
{
	return run->misses;
}

static inline void merge_run_look(struct merge_run *run)
{
	run->misses = false;
}

/* Whether anything is to be read before the run can go on. */
static inline bool merge_run_lacks(const struct merge_run *run)
{
	return run->missing_count || run->missing_segment != NO_SEGMENT;
}

/* In pieces: whether this one has done enough. */
bool merge_run_has_done_enough(const struct merge_run *run);
void merge_run_got_ahead(struct merge_run *run);

/* At the beginning of a piece, in turn, or when what was missing has been read. */
void merge_run_begin_piece(struct merge_run *run);

/* Reads what is missing: in pieces without the turn. */
void merge_run_fetch(struct merge_run *run);

/* Whether the pages of a segment are there. False: they are missing. */
bool merge_run_has_segment(struct merge_run *run, uint32_t segment);

/* Whether the command has put nothing else of the key behind a record of the segment visited. */
bool merge_run_is_last_put(const struct merge_run *run, const struct record_key *key,
			   uint64_t sequence);

int merge_run_visit_page(struct merge_run *run, uint32_t segment, uint32_t page,
			 record_visitor *visit, void *context);

/* Whether the run, or the one before, has moved a segment already. */
static inline bool merge_run_has_chosen(const struct merge_run *run, uint32_t segment)
{
	const struct emptied *emptied = &run->emptied;

	for (uint32_t n = 0; emptied->stage != EMPTIED_NONE && n < emptied->count; n++)
		if (emptied->segments[n].segment == segment)
			return true;
	for (uint32_t n = 0; n < run->count; n++)
		if (run->batch[n].segment == segment)
			return true;
	return false;
}

/* Whether the pages that the merge may read to find out what is needed have been read. */
static inline bool merge_run_has_read_enough(const struct merge_run *run)
{
	return run->reads >= run->reads_max;
}

#endif
