/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Every byte that the Muninn engine keeps on flash and in NVRAM. Nothing about the medium is
 * defined elsewhere, but for what the index keeps (index/bloom_format.h). Described for readers in
 * docs/format.md; little-endian throughout.
 *
 *   record       28-byte header, value
 *   page         records one behind the other, or one large record whose header is in the spare
 * area group image  what the index says of up to 64 sealed segments; its bytes are the index's own
 *   root         what NVRAM says of the flash, kept on flash for the case that NVRAM is lost
 *   NVRAM        static header, state words, aborted sequence numbers, directory of group images,
 *                sums of all of these, buffer areas, growing groups
 */
#ifndef MUNINN_ENGINE_MUNINN_FORMAT_H
#define MUNINN_ENGINE_MUNINN_FORMAT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "engine/records/records.h"
#include "nand/nand.h"

#define MUNINN_FORMAT_VERSION 9

/* Sealed segments of a row that its index puts together: a bit each of a 64-bit word. */
#define GROUP_SEGMENTS 64

#define MUNINN_PAGE_BYTES_MAX    4096
#define MUNINN_SEGMENT_PAGES_MAX 4096
#define MUNINN_ABORTED_MAX       2048 /* ranges of aborted commands with sealed records */
#define MUNINN_ABORTED_KEPT      64   /* of them for what must work on a full device */

/* ---- record ---- */

/*
 * partition 2, identifier 8, class and reach 2, piece 4, sequence 6, length and flags 2, CRC-32C 4
 */
#define RECORD_HEADER_BYTES 28
#define RECORD_LENGTH_MASK  0x1FFFU /* 13 bits; the 3 above are enum record_flag */
#define RECORD_FLAGS_SHIFT  13

/*
 * Class in 3 bits. How far a record reaches back to its epoch's beginning in 13: the steps of
 * sequence numbers from the beginning, rounded up, to the record's own step. Since it says a
 * distance and not which epoch, no two epochs are ever taken for the same.
 */
#define RECORD_CLASS_SHIFT 13
#define RECORD_REACH_STEP  8
#define RECORD_REACH_MAX   0x1FFD
#define RECORD_REACH_NONE  0x1FFE /* the epoch begins with the record */
#define RECORD_REACH_ALL   0x1FFF /* RECORD_EPOCH_ENDLESS */

/*
 * Beside enum record_flag: merge moved the record when newer ones of its key existed, so its place
 * says nothing of its age. A record that was the newest when it was moved needs no mark: whatever
 * is newer has been put since, and is found before it.
 */
#define RECORD_MOVED (1 << 2)

struct record_header {
	struct record_key key;
	uint64_t sequence;
	/*
	 * It may absorb records with numbers from here on; none if this is above its own number.
	 * The stored number may be later than the one that the caller gave. Both are equal if the
	 * caller's was a multiple of RECORD_REACH_STEP and not too far back.
	 */
	uint64_t epoch;
	uint16_t length;
	uint8_t flags;
	uint32_t crc; /* of the segment's serial (8 bytes), the 24 bytes before it and the value */
};

/* `serial` = of the segment that the record is put into. */
void record_header_encode(const struct record_header *header, uint64_t serial, const void *value,
			  uint8_t bytes[RECORD_HEADER_BYTES]);
void record_header_decode(const uint8_t bytes[RECORD_HEADER_BYTES], struct record_header *header);

/*
 * Whether the header's CRC fits segment, header and value. Because of the serial, records that an
 * earlier segment left in the same memory never fit, whatever of it a power loss of the host brings
 * back.
 */
bool record_is_intact(const uint8_t bytes[RECORD_HEADER_BYTES], uint64_t serial, const void *value);

/* Whether an encoded header is of `key`, compared without decoding. */
static inline bool record_has_key(const uint8_t bytes[RECORD_HEADER_BYTES],
				  const struct record_key *key)
{
	return get_le64(bytes + 2) == key->identifier && get_le32(bytes + 12) == key->piece &&
	       get_le16(bytes) == key->partition &&
	       get_le16(bytes + 10) >> RECORD_CLASS_SHIFT == key->class;
}

static inline uint8_t record_class(const uint8_t bytes[RECORD_HEADER_BYTES])
{
	return (uint8_t)(get_le16(bytes + 10) >> RECORD_CLASS_SHIFT);
}

static inline uint64_t record_sequence(const uint8_t bytes[RECORD_HEADER_BYTES])
{
	return get_le48(bytes + 16);
}

static inline uint32_t record_length(const uint8_t bytes[RECORD_HEADER_BYTES])
{
	return get_le16(bytes + 22) & RECORD_LENGTH_MASK;
}

static inline uint32_t record_crc_of(const uint8_t bytes[RECORD_HEADER_BYTES])
{
	return get_le32(bytes + RECORD_HEADER_BYTES - 4);
}

static inline bool record_is_moved(const uint8_t bytes[RECORD_HEADER_BYTES])
{
	return get_le16(bytes + 22) >> RECORD_FLAGS_SHIFT & RECORD_MOVED;
}

static inline bool record_is_tombstone(const uint8_t bytes[RECORD_HEADER_BYTES])
{
	return get_le16(bytes + 22) >> RECORD_FLAGS_SHIFT & RECORD_TOMBSTONE;
}

/* ---- page: what its spare area says ---- */

#define PAGE_SPARE_BYTES 44

enum page_kind {
	PAGE_KIND_RECORDS = 1,
	PAGE_KIND_GROUP = 2,
	PAGE_KIND_ROOT = 3,
};

struct page_spare {
	uint8_t kind;
	bool large;      /* one record fills the data area, its header is here */
	bool unfinished; /* the segment holds records of a command that was not committed when it
			    was sealed */
	uint16_t row;    /* of the segment */
	uint32_t used;   /* bytes of the data area that hold records, or a part of a group's
			    image or of a root */
	/* A record that begins in one page may end in the one behind it, in the same segment: */
	uint16_t begin;  /* so many bytes are of a record of the page before */
	uint16_t beyond; /* so many bytes of the last record are in the page behind */
	uint64_t serial; /* of the segment; of a group image its row << 32 | number; of the root */
	union {
		uint8_t large_header[RECORD_HEADER_BYTES];
		struct {
			uint32_t part;  /* of a root: which page; those of parity come last */
			uint32_t parts; /* how many there are without parity */
		};
	};
};

void page_spare_encode(const struct page_spare *spare, uint8_t bytes[PAGE_SPARE_BYTES]);

/*
 * False when the bytes are not those of a page of this engine, or its records can't be where they
 * say.
 */
bool page_spare_decode(const uint8_t bytes[PAGE_SPARE_BYTES], uint32_t page_bytes,
		       struct page_spare *spare);

/* ---- roots: what NVRAM says of the flash, in a ring of segments of their own ---- */

#define ROOT_MAGIC UINT64_C(0x31544f4f524e554d) /* "MUNROOT1" */
#define LIST_MAGIC UINT64_C(0x314c4c494b4e554d) /* "MUNKILL1" */

/*
 * A root is a header, the static header of the NVRAM, the aborted sequence numbers, the directory
 * entries in use, and for each row an entry and the segments of its growing group. A list of
 * changes, in one page, is a header and what came about since the root: segments that have been
 * merged away (kills), then groups that became complete.
 */
struct root_header {
	uint64_t magic;
	uint32_t bytes;  /* of all of it */
	uint32_t count;  /* root: directory entries; list: kills */
	uint32_t groups; /* list: groups that became complete; root: 0 */
	uint64_t serial; /* of this page or these pages */
	uint64_t base;   /* list: serial of the root that it goes with; root: 0 */
	uint64_t committed, sealed, next_serial, aborted_count; /* the state words */
	uint64_t void_before;                                   /* what is older does not count */
};

#define ROOT_HEADER_BYTES 88
#define ROOT_COUNT_AT     16 /* of `count` in a header */
#define ROOT_STATIC_BYTES 96 /* space for the static header of the NVRAM */

/* Without the CRC, which is of everything and set by root_seal. */
void root_header_encode(const struct root_header *header, uint8_t bytes[ROOT_HEADER_BYTES]);

/* Puts the CRC into the header of a root or list that is complete in `bytes`. */
void root_seal(uint8_t *bytes, uint32_t length);

/* False: not a root or list of at most `length` bytes, or the CRC does not match. */
bool root_header_decode(const uint8_t *bytes, uint32_t length, struct root_header *header);

/* A row in a root; the segments of its growing group follow, 4 bytes each. */
enum {
	ROOT_ROW_GROUP_AT = 0,   /* 4: number of the growing group */
	ROOT_ROW_MEMBERS_AT = 4, /* 4: segments that have been added to it */
	ROOT_ROW_LIVE_AT = 8,    /* 8: a bit for each of them that has not been merged */
	ROOT_ROW_SERIAL_AT = 16, /* 8: of the older buffer; segments that are sealed later have this
				    serial or a higher one */
	ROOT_ROW_BYTES = 24,
};

/* A segment that has been merged away. */
struct root_kill {
	uint32_t segment;
	uint16_t row, member; /* its number in its group */
	uint32_t group;       /* number in its row */
	uint64_t serial;      /* of the segment's buffer */
};

#define ROOT_KILL_BYTES 24

void root_kill_encode(const struct root_kill *kill, uint8_t bytes[ROOT_KILL_BYTES]);
void root_kill_decode(const uint8_t bytes[ROOT_KILL_BYTES], struct root_kill *kill);

/* A group that became complete: its directory entry, as in a root, follows. */
enum {
	ROOT_GROUP_SERIAL_AT = 0, /* 8: of the row's older buffer then, as in a row of a root */
	ROOT_GROUP_ENTRY_AT = 8,
};

/* ---- ranges of old records ---- */

/*
 * What older.h knows of a segment. The image of a group may have that of each of its members, one
 * behind the other, the oldest member first. Of a member that it leaves out nothing is known.
 */
enum {
	RANGES_MEMBER_AT = 0, /* 1: number in the group; the next byte is zero */
	RANGES_LEVELS_AT = 2, /* 2: how many there are; 0: old records may have any numbers */
	RANGES_BELOW_AT = 4,  /* 6: what is new of the segment has this number or a higher one */
	RANGES_FIRST_AT = 10, /* 6: its lowest number; without levels zero */
	RANGES_MAP_AT = 16,   /* 32: a bit for each page, or for 2, 4, ... of a larger segment */
	RANGES_WIDE_AT = 48,  /* 32: bits of the map that have four levels; others have one */
	RANGES_BYTES = 80,    /* behind them 2 bytes for each level, in the order of the bits */
};

/* ---- NVRAM ---- */

#define NVRAM_MAGIC UINT64_C(0x314e4e494e554d) /* "MUNINN1" */
#define NVRAM_PAGE  4096

/* Static header, written at format, with CRC. */
enum {
	NVRAM_MAGIC_AT = 0,           /* 8 */
	NVRAM_VERSION_AT = 8,         /* 4 */
	NVRAM_ROWS_AT = 12,           /* 4 */
	NVRAM_SEGMENT_PAGES_AT = 16,  /* 4 */
	NVRAM_RECORD_BYTES_AT = 20,   /* 4 */
	NVRAM_OVER_PROVISION_AT = 24, /* 4: permille */
	NVRAM_PAGE_BYTES_AT = 28,     /* 4: of the flash */
	NVRAM_BLOCK_PAGES_AT = 32,    /* 4 */
	NVRAM_BLOCKS_AT = 36,         /* 4 */
	NVRAM_INDEX_AT = 40,          /* 2: enum index_kind, index/index_options.h */
	NVRAM_PARITY_AT = 42,         /* 2: lost pages of a group that can be made again; 0: none */
	NVRAM_INDEX_PART_AT = 44,     /* INDEX_PART_BYTES: what that index keeps here, see index/ */
	NVRAM_UUID_AT = 64,           /* 16: of the NAND image */
	NVRAM_HEADER_CRC_AT = 80,     /* 4: of bytes 0..79 */
	NVRAM_BOOT_AT =
		96, /* 16: boot ID of the host when the store was last opened; outside the CRC */
};

#define NVRAM_BOOT_BYTES 16
#define INDEX_PART_BYTES 20

/*
 * State words: each is changed by one aligned 8-byte store, and each such store is a commit point.
 */
enum {
	STATE_AT = 128,
	STATE_COMMITTED_AT = STATE_AT,        /* highest sequence number that counts */
	STATE_SEALED_AT = STATE_AT + 8,       /* highest sequence number in any sealed segment */
	STATE_NEXT_SERIAL_AT = STATE_AT + 16, /* serial of the next segment buffer */
	STATE_VOID_AT = STATE_AT + 24, /* records with lower numbers do not count; see void.c */
	STATE_ABORTED_COUNT_AT = STATE_AT + 32,
	STATE_FLUSHED_AT = STATE_AT + 40,      /* what the last flush made stable on the host */
	STATE_ROOT_SERIAL_AT = STATE_AT + 48,  /* of the next root or list of changes */
	STATE_ROOT_SEGMENT_AT = STATE_AT + 56, /* of the ring, that the last one is in */
	/* Takes the place of STATE_VOID_AT once it is committed; 0: there is none. */
	STATE_VOID_NEXT_AT = STATE_AT + 64,
	/* 1: a merge takes out segments that the root on flash and its list of changes still name.
	 */
	STATE_KILLS_AHEAD_AT = STATE_AT + 72,
};

/*
 * 8: NVRAM_CLEAN: the store was closed, and all is stable. Nothing changes before it is taken away.
 * It is here and among the sums; one of both is enough.
 */
#define NVRAM_CLEAN_AT 208
#define NVRAM_CLEAN    UINT64_C(0x4e41454c434e554d) /* "MUNCLEAN" */

/*
 * 8: what the layers above keep beside the records. One aligned store changes it. Formats of the
 * store leave it as it is.
 */
#define NVRAM_MEMO_AT 256

static_assert(NVRAM_CLEAN_AT >= STATE_KILLS_AHEAD_AT + 8 && NVRAM_MEMO_AT + 8 <= NVRAM_PAGE,
	      "it reaches storage together with the state words");

/*
 * The high half of a buffer's serial counts the formats of a device, so that no format finds the
 * segments of another.
 */
#define SERIAL_FORMAT_STEP (UINT64_C(1) << 32)

/*
 * Three bits of a serial say in how many eighths of the segment's pages the first places of
 * metadata are, less one. Where there is little metadata, few pages are lost to it for pieces of a
 * page's size; where there is much, it may fill the segment.
 */
#define SERIAL_STEP        8
#define SERIAL_EIGHTHS_MAX 8

static inline uint32_t serial_eighths(uint64_t serial)
{
	return (serial & (SERIAL_STEP - 1)) + 1;
}

/* MUNINN_ABORTED_MAX ranges of sequence numbers, ascending: first (8), last (8). */
#define NVRAM_ABORTED_AT    NVRAM_PAGE
#define ABORTED_RANGE_BYTES 16
#define NVRAM_DIRECTORY_AT  (NVRAM_ABORTED_AT + MUNINN_ABORTED_MAX * ABORTED_RANGE_BYTES)

/*
 * Directory entry: where the image of a complete group is. In use while the live word is not 0; the
 * store of that word makes and ends it. Its size depends on how many segments an image may touch.
 */
enum {
	DIRECTORY_ROW_AT = 0,   /* 4 */
	DIRECTORY_GROUP_AT = 4, /* 4: number in the row */
	DIRECTORY_BYTES_AT = 8, /* 4: length of the image */
	DIRECTORY_FIRST_PAGE_AT =
		12,             /* 4: page within the first segment; later segments start at 0 */
	DIRECTORY_LIVE_AT = 16, /* 8: a bit for each segment that has not been merged */
	DIRECTORY_SEGMENTS_AT = 24, /* 4 each */
};

/*
 * Behind that, in NVRAM only: the segments of the group, 4 each, and the CRC-32C of the row, the
 * number of the group and these. It never changes, and is outside the sum. With it the image can be
 * made again when nothing of it is left.
 */
enum {
	DIRECTORY_MEMBERS_CRC = 4 * GROUP_SEGMENTS, /* 4 */
	DIRECTORY_MEMBERS_BYTES = DIRECTORY_MEMBERS_CRC + 16,
};

/*
 * Sums: in pages of their own, what every other structure should hold, so that a page that is
 * damaged, or is an older one, contradicts another page (sums.h). First a few words that are here
 * once more or only here, then a pair of sums for each structure.
 */
enum {
	SUMS_BOOT_AT = 0,   /* 16: the boot ID once more */
	SUMS_CLEAN_AT = 16, /* 8: and NVRAM_CLEAN_AT */
	SUMS_PAIRS_AT = 64,
	SUM_PAIR_BYTES = 16, /* the sum; what it becomes with the change that is under way */
};

/* Which pair. Those of the rows' growing groups come first, then those of the buffers. */
enum nvram_sum {
	SUM_STATE, /* the state words, but for the two that change without the turn */
	SUM_MEMO,
	SUM_ABORTED,   /* the ranges that count */
	SUM_DIRECTORY, /* the entries in use */
	SUM_ROWS,
};

/*
 * Buffer area: header, map of logical page to slot, slot headers, slots; each part NVRAM_PAGE
 * aligned. A row has one, history's up to two; which ones is in the areas themselves. The growing
 * groups of the rows follow.
 */
enum {
	BUFFER_SERIAL_AT = 0, /* 8: serial of the buffered segment; the store of this word empties
				 the buffer */
	BUFFER_ROW_AT = 8, /* 4: row + 1, or 0 = no row's, and its complement above it; the store of
			      this word gives or takes it */
	BUFFER_MAP_AT = 64, /* 2 a page: slot that holds the page */
};

/*
 * Slot header: a state word and the header of a large record. One store changes the state word: in
 * its low half the bytes used, and SLOT_LARGE; in its high half what slot_fold makes of the CRCs of
 * the records, one after the other.
 */
#define SLOT_HEADER_BYTES    64
#define SLOT_STATE_AT        0
#define SLOT_SERIAL_AT       8 /* 8: the slot's contents count only for this serial of the row */
#define SLOT_LARGE_HEADER_AT 16
#define SLOT_STAMP_AT        48 /* 8: the bytes a flush promises (16), up to which number (48) */
#define SLOT_CELL_AT         56 /* 2: cell bytes of the buffer's records (span.h); 0: none */
#define SLOT_SERIAL_NEVER    1  /* serials are higher; so a page of zeros is no slot headers */
#define SLOT_LARGE           UINT32_C(0x80000000)

/* What is at BUFFER_ROW_AT, of row + 1 or 0; so a page of zeros is no header of a buffer. */
static inline uint32_t buffer_row_word(uint32_t row)
{
	return row | ~row << 16;
}

/* What is at SLOT_STAMP_AT. */
static inline uint64_t slot_stamp(uint32_t bytes, uint64_t sequence)
{
	return sequence << 16 | bytes;
}

/* Begins with 0. The order of the records counts, too. */
static inline uint32_t slot_fold(uint32_t fold, uint32_t crc)
{
	return fold * UINT32_C(0x9e3779b1) + crc;
}

static_assert(SLOT_LARGE_HEADER_AT + RECORD_HEADER_BYTES <= SLOT_STAMP_AT &&
		      SLOT_STAMP_AT + 8 <= SLOT_CELL_AT && SLOT_CELL_AT + 2 <= SLOT_HEADER_BYTES,
	      "slot header too small");
static_assert(NVRAM_INDEX_PART_AT + INDEX_PART_BYTES <= NVRAM_UUID_AT, "the index's part fits");
static_assert(STATE_AT % 64 == 0, "state words share no cache line with the header");

#endif
