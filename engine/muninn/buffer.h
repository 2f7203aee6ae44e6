/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The active segment of a row: its pages live in NVRAM until it is sealed, its index in memory.
 *
 * Crash rules (the process may die between any two instructions):
 *   - A record counts once the slot's state word says so, and that store comes last.
 *   - A slot counts only for the serial in its header, so one store of the row's serial empties the
 * buffer.
 *   - A page is compacted into the spare slot, or a large record copied there for another page; one
 * store of the page map makes it the page.
 *   - The sum of the buffer is changed around each of these stores (nvram.h).
 * Records of the running command are always at the ends of their pages, so undoing them is cutting
 * pages shorter.
 */
#ifndef MUNINN_ENGINE_MUNINN_BUFFER_H
#define MUNINN_ENGINE_MUNINN_BUFFER_H

#include "engine/muninn/index/index.h"
#include "engine/muninn/span.h"

struct buffer {
	const struct muninn_geometry *geometry;
	struct nand *nand;
	uint8_t *area;    /* buffer area in NVRAM; NULL: there is no such buffer */
	uint64_t area_at; /* its offset there */
	uint8_t *sum;     /* its pair of sums in NVRAM */
	struct segment_index *index;
	uint64_t serial;
	uint64_t promised;   /* its records up to this number a flush made stable, or is about to */
	uint64_t put_bytes;  /* of records, since it was begun or gathered (gather.h) */
	uint64_t used_bytes; /* of all its pages: kept, so that nobody has to go through them */
	bool has_again;      /* some were put again, so that older ones may be dropped */
	bool has_metadata;   /* some were of metadata (all classes but data) */
	struct span span;    /* how long its pages are, and how many there are */
	bool is_mixed;       /* it may have records that are larger than a cell */
	uint16_t spare_slot;
	bool *absorbable; /* a page: holds records that compaction may drop */
	bool *unstamped;  /* a page: a flush promises more of it than its slot says; behind them */
	uint64_t *lowest; /* a page: no record in it has a number below this */
};

/* A record to put. `large`: it gets a page of its own, header in the spare area. */
struct new_record {
	struct record_header header;
	const void *value;
};

/* Number 0..buffers - 1 of the device. -ENOMEM. */
int buffer_create(struct buffer *buffer, const struct muninn_geometry *geometry, struct nand *nand,
		  uint32_t number);
void buffer_destroy(struct buffer *buffer);

/* First use of a buffer area: an identity page map. */
void buffer_format(struct buffer *buffer);

/* The row that has the buffer. No row has it: the number of rows or more. */
uint32_t buffer_row(const struct buffer *buffer);

/* Makes a started buffer the row's; no row's. One store each. */
void buffer_give(struct buffer *buffer, uint32_t row);
void buffer_take_back(struct buffer *buffer);

/* The serial that NVRAM says. */
uint64_t buffer_stored_serial(const struct buffer *buffer);

/* The buffer as NVRAM has it: its serial, and the lengths of its pages. The index stays. */
struct buffer buffer_stored(const struct buffer *buffer);

/* Takes up a buffer in NVRAM that no row has; its contents do not count. -ENOMEM. */
int buffer_rest(struct buffer *buffer);

/*
 * Empties the buffer and begins segment `serial`, with such cells (span.h). The row seals that next
 * or, with `ahead` 1, after the next one; all calls with a row and `ahead` mean this.
 */
void buffer_start(struct buffer *buffer, uint64_t serial, uint32_t cell_bytes,
		  const struct row_index *row, uint32_t ahead);

/* The cells that records such as those of a full buffer should have; 0: none. */
uint32_t buffer_best_cell(const struct buffer *buffer);

/*
 * Takes up what is in NVRAM: cuts records with sequence numbers above `committed` and builds
 * the index again. Returns how many records were cut because they were damaged (0 unless the NVRAM
 * lost bytes), or -EINVAL when the area makes no sense at all.
 */
int buffer_recover(struct buffer *buffer, const struct row_index *row, uint32_t ahead,
		   uint64_t committed);

/*
 * Clears what of the area holds no record. A failure of the host may have left bytes of old records
 * there whose slot headers are gone. After another failure the header of later records could be
 * there without their bytes, and the old ones would be taken for them.
 */
void buffer_clear_rest(struct buffer *buffer);

/*
 * Build the index of segment `serial`, which is on flash, in the buffer's memory; its area stays as
 * it is. buffer_index_begin empties the index. buffer_index_page notes the records of a page. It
 * stops at a record whose key can't be on that page, and returns the bytes of those before it: all
 * that are used, if all is well.
 */
void buffer_index_begin(struct buffer *buffer, const struct row_index *row, uint64_t serial);
uint32_t buffer_index_page(struct buffer *buffer, uint32_t page, const struct page_view *view);

/*
 * Places a record in write order. `committed`: records up to it may be dropped when a newer one
 * supersedes them. -ENOSPC: none of the key's places has space; the segment is to be sealed.
 */
int buffer_put(struct buffer *buffer, const struct key_hash *hash, const struct new_record *record,
	       uint64_t committed);

/* Bytes that its pages use: of records, but for the headers of large ones. */
uint64_t buffer_used_bytes(const struct buffer *buffer);
bool buffer_is_half_full(const struct buffer *buffer);

/* Has every other page something? Then a record of a whole page hardly finds an empty one. */
bool buffer_is_half_used(const struct buffer *buffer);

/* Of them, those of metadata: all classes but data. Goes through all records, if it has some. */
uint64_t buffer_metadata_bytes(const struct buffer *buffer);

/*
 * Goes on to the last of the key's places below *place, which begins with UINT32_MAX. `page`, which
 * points into NVRAM, may hold records of the key with numbers up to `bound`. False: there is no
 * such place.
 */
bool buffer_next_page(const struct buffer *buffer, const struct key_hash *hash, uint64_t bound,
		      uint32_t *place, struct page_view *page);

/*
 * Removes all records with a sequence number above `last`. True: which pages may be used has
 * changed by that, and buffer_index_again should follow if more is to be put.
 */
bool buffer_cut(struct buffer *buffer, uint64_t last);

/* Removes all records with a sequence number below `before`. buffer_index_again has to follow. */
void buffer_drop_void(struct buffer *buffer, uint64_t before);

/* Builds the index again, of what is in the buffer. */
void buffer_index_again(struct buffer *buffer, const struct row_index *row, uint32_t ahead);

/* The records of a page (used 0: empty). */
struct page_view buffer_page(const struct buffer *buffer, uint32_t page);

#endif
