/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What an image and its NVRAM file look like on the host's disk: docs/format.md, part "Image file",
 * in C. Nothing that is stored is defined elsewhere. All integers are little-endian.
 *
 * Pure functions on byte buffers: no files, no state.
 */
#ifndef MUNINN_NAND_FORMAT_H
#define MUNINN_NAND_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "nand/nand.h"

#define NAND_FORMAT_VERSION 3

/*
 * The version in superblocks of images that have grown. Releases that know nothing of growth leave
 * them alone for it.
 */
#define NAND_FORMAT_GROWN 4
#define NAND_UUID_BYTES   16

/*
 * A superblock or NVRAM header; its CRC-32C is in the last four bytes, in every version of the
 * format.
 */
#define NAND_HEADER_BYTES 4096

/* Largest NVRAM: more than any host's memory, small enough that no sum with it overflows. */
#define NAND_NVRAM_BYTES_MAX (UINT64_C(1) << 44)

/* Two copies of the superblock, far enough apart that one bad track does not take both. */
#define NAND_SUPERBLOCK_COPIES  2
#define NAND_SUPERBLOCK_SPACING 32768
#define NAND_SUPERBLOCKS_BYTES  (NAND_SUPERBLOCK_COPIES * NAND_SUPERBLOCK_SPACING)

/* Every region begins at a multiple of this: any page size and any host page size divides it. */
#define NAND_REGION_ALIGNMENT 65536

/* A block begins at a multiple of this, so that no two blocks share a sector of any drive. */
#define NAND_BLOCK_ALIGNMENT 4096

/* A page begins at a multiple of this: of a cache line, for fast copies. */
#define NAND_PAGE_ALIGNMENT 64

/* A grown image has space for the block table of so many times the blocks of its creation. */
#define NAND_GROWTH_MAX 64

/*
 * Where the regions of an image are, in bytes from its beginning; follows from the geometry. Blocks
 * never move. An image that has grown has its block table behind the blocks of its creation, and
 * the new blocks behind that.
 */
struct nand_layout {
	uint64_t pages;        /* in all blocks */
	uint32_t page_stride;  /* from a page to the next one of its block; includes spare area */
	uint32_t block_stride; /* from a block to the next one */
	uint64_t table_offset; /* block table: 8 bytes a block */
	uint64_t table_bytes;  /* of it that are written; a grown image has a hole behind them */
	uint64_t data_offset;  /* the first block */
	uint64_t gap_bytes;    /* before block `gap_at`, beside the blocks in front of it */
	uint32_t gap_at;       /* UINT32_MAX: there is no gap */
	uint64_t image_bytes;
};

/* `geometry` must have passed nand_geometry_check. */
struct nand_layout nand_layout_of(const struct nand_geometry *geometry);

static inline uint64_t nand_block_offset(const struct nand_layout *layout, uint64_t block)
{
	return layout->data_offset + block * layout->block_stride +
	       (block >= layout->gap_at ? layout->gap_bytes : 0);
}

/* Where a page begins: its data, and right behind them its spare area. */
static inline uint64_t nand_page_offset(const struct nand_layout *layout,
					const struct nand_geometry *geometry, uint64_t page)
{
	return nand_block_offset(layout, page / geometry->pages_per_block) +
	       page % geometry->pages_per_block * layout->page_stride;
}

/* How many of `count` blocks from `first` on are one behind the other. */
static inline uint32_t nand_blocks_together(const struct nand_layout *layout, uint32_t first,
					    uint32_t count)
{
	bool is_split = first < layout->gap_at && layout->gap_at - first < count;

	return is_split ? layout->gap_at - first : count;
}

/* Blocks that an image may grow to, which was created with so many. */
uint64_t nand_growth_limit(uint32_t blocks);

/* 0, or -EINVAL with the field, its value and its limits in `error`. */
int nand_geometry_check(const struct nand_geometry *geometry, struct error_text *error);

enum nand_image_state {
	NAND_IMAGE_CREATING, /* what a crash in the middle of nand_create leaves */
	NAND_IMAGE_COMPLETE,
};

/*
 * Which opening for writing was the last one (opening.h). It is in a sector of its own of either
 * header, and ends with bytes that leave the header's CRC as if it were zero: a write that is torn
 * between two sectors leaves a valid header.
 */
#define NAND_OPENING_AT    512
#define NAND_OPENING_BYTES 24

struct nand_opening {
	uint64_t number;   /* 0: never opened */
	uint64_t time_us;  /* since 1970; tells openings of one number apart */
	bool is_under_way; /* NVRAM only: the image may not have it yet */
	bool is_unknown;   /* what is stored does not decode */
};

struct nand_superblock {
	enum nand_image_state state;
	uint8_t uuid[NAND_UUID_BYTES];
	struct nand_geometry geometry;
	uint64_t nvram_bytes;
	char contents[NAND_CONTENTS_BYTES]; /* see nand_contents; padded with zeros */
	struct nand_opening opening;
};

struct nand_nvram_header {
	uint8_t uuid[NAND_UUID_BYTES]; /* of the image that it belongs to */
	uint64_t nvram_bytes;
	struct nand_opening opening;
	/*
	 * Of an image that has grown, its geometry's: so the file of another size is told apart,
	 * and says what a damaged superblock does not. Otherwise 0.
	 */
	uint32_t blocks, grown_from;
};

/* What a stored header turned out to be. */
enum nand_header_verdict {
	NAND_HEADER_VALID,
	NAND_HEADER_FOREIGN,       /* does not begin with the magic */
	NAND_HEADER_CORRUPT,       /* the magic is there, the CRC does not match or the content
				      contradicts itself */
	NAND_HEADER_OTHER_VERSION, /* intact, of a version that this program does not know;
				      `version` is set */
};

/*
 * `to` and `from` are NAND_HEADER_BYTES long. Decoding fills `version` unless the verdict is
 * FOREIGN or CORRUPT.
 */
void nand_superblock_encode(const struct nand_superblock *superblock, uint8_t *to);
enum nand_header_verdict nand_superblock_decode(const uint8_t *from,
						struct nand_superblock *superblock,
						uint32_t *version);
/* Sets what an NVRAM header says of its image's growth. */
static inline void nand_nvram_note_growth(struct nand_nvram_header *header,
					  const struct nand_geometry *geometry)
{
	header->blocks = geometry->grown_from ? geometry->blocks : 0;
	header->grown_from = geometry->grown_from;
}

void nand_nvram_header_encode(const struct nand_nvram_header *header, uint8_t *to);
enum nand_header_verdict nand_nvram_header_decode(const uint8_t *from,
						  struct nand_nvram_header *header,
						  uint32_t *version);

/* `to` and `from` are NAND_OPENING_BYTES long. */
void nand_opening_encode(const struct nand_opening *opening, uint8_t *to);
void nand_opening_decode(const uint8_t *from, struct nand_opening *opening);

/*
 * A word of the block table: the whole state of a block in 64 bits, so that one aligned store
 * changes it and the end of the process at any instruction leaves either the old or the new state.
 * The value is in host order; it is stored little-endian.
 */
struct nand_block_word {
	uint32_t erase_count;
	uint32_t next_page;
	bool bad;
};

uint64_t nand_block_word_encode(const struct nand_block_word *word);

/* False: the word is damaged. */
bool nand_block_word_decode(uint64_t stored, uint32_t pages_per_block,
			    struct nand_block_word *word);

/*
 * The last NAND_SPARE_RESERVED bytes of a spare area. `erase_count` is the block's when the page
 * was programmed. It gives away a page from an earlier life of its block, which a lost write-back
 * can leave.
 */
struct nand_page_check {
	uint32_t data_crc; /* CRC-32C of the data area */
	uint32_t erase_count;
};

/*
 * Fills the reserved bytes of `spare` (spare_bytes long, its usable part already in place), last of
 * all its own CRC.
 */
void nand_spare_seal(uint8_t *spare, uint32_t spare_bytes, uint64_t page,
		     const struct nand_page_check *check);

/* False: the spare area is damaged or belongs to another page. */
bool nand_spare_open(const uint8_t *spare, uint32_t spare_bytes, uint64_t page,
		     struct nand_page_check *check);

#endif
