/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Encodes and decodes what an image and its NVRAM file hold on the host's disk. */
#include "nand/format.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"
#include "common/crc32c.h"

#define MAGIC_BYTES 8

static const char image_magic[MAGIC_BYTES + 1] = "MUNINNFD";
static const char nvram_magic[MAGIC_BYTES + 1] = "MUNINNNV";

/* Offsets in both kinds of header. */
enum {
	AT_MAGIC = 0,
	AT_VERSION = 8,
	AT_STATE = 12, /* superblock only */
	AT_UUID = 16,
	AT_CRC = NAND_HEADER_BYTES - 4,
};

/* Offsets in the superblock. */
enum {
	AT_PAGE_BYTES = 32,
	AT_SPARE_BYTES = 36,
	AT_PAGES_PER_BLOCK = 40,
	AT_BLOCKS = 44,
	AT_CHANNELS = 48,
	AT_DIES_PER_CHANNEL = 52,
	AT_NVRAM_BYTES = 56,
	AT_IMAGE_BYTES = 64,
	AT_TABLE_OFFSET = 72,
	AT_DATA_OFFSET = 80,
	AT_PAGE_STRIDE = 88,
	AT_BLOCK_STRIDE = 92,
	AT_CONTENTS = 96,
	AT_GROWN_FROM = 112,
};

/* Offsets in the NVRAM header. */
enum { AT_NVRAM_HEADER_BYTES = 32, AT_NVRAM_BLOCKS = 40, AT_NVRAM_GROWN_FROM = 44 };

/* Offsets in the reserved part of a spare area; bytes 8..11 are zero. */
enum {
	AT_DATA_CRC = 0,
	AT_ERASE_COUNT = 4,
	AT_ZERO = 8,
	AT_SPARE_CRC = 12,
};

/* Bits of a block word: erase count 0..31, next page 32..42, zero 43..46, bad 47, check 48..63. */
#define WORD_NEXT_PAGE_SHIFT 32
#define WORD_BAD_BIT         (UINT64_C(1) << 47)
#define WORD_CHECK_SHIFT     48
#define WORD_STATE_BYTES     6

static void header_begin(uint8_t *to, const char *magic, const uint8_t *uuid)
{
	memset(to, 0, NAND_HEADER_BYTES);
	memcpy(to + AT_MAGIC, magic, MAGIC_BYTES);
	put_le32(to + AT_VERSION, NAND_FORMAT_VERSION);
	memcpy(to + AT_UUID, uuid, NAND_UUID_BYTES);
}

static void header_seal(uint8_t *to)
{
	put_le32(to + AT_CRC, crc32c(0, to, AT_CRC));
}

static enum nand_header_verdict header_check(const uint8_t *from, const char *magic,
					     uint32_t known_too, uint32_t *version)
{
	if (memcmp(from + AT_MAGIC, magic, MAGIC_BYTES) != 0)
		return NAND_HEADER_FOREIGN;
	if (get_le32(from + AT_CRC) != crc32c(0, from, AT_CRC))
		return NAND_HEADER_CORRUPT;
	*version = get_le32(from + AT_VERSION);
	return *version == NAND_FORMAT_VERSION || *version == known_too ? NAND_HEADER_VALID
									: NAND_HEADER_OTHER_VERSION;
}

/* Offsets in the opening. */
enum { AT_OPENING_NUMBER = 0, AT_OPENING_TIME = 8, AT_OPENING_FLAGS = 16, AT_OPENING_CHECK = 20 };
enum { OPENING_UNDER_WAY = 1 };

/*
 * The CRC-32C register after these bytes, begun at 0. Four bytes that equal the register take it
 * back to 0, so the rest of the header is summed up as if all of them were zero.
 */
static uint32_t opening_check(const uint8_t *bytes)
{
	return ~crc32c(UINT32_MAX, bytes, AT_OPENING_CHECK);
}

void nand_opening_encode(const struct nand_opening *opening, uint8_t *to)
{
	put_le64(to + AT_OPENING_NUMBER, opening->number);
	put_le64(to + AT_OPENING_TIME, opening->time_us);
	put_le32(to + AT_OPENING_FLAGS, opening->is_under_way ? OPENING_UNDER_WAY : 0);
	put_le32(to + AT_OPENING_CHECK, opening_check(to));
}

void nand_opening_decode(const uint8_t *from, struct nand_opening *opening)
{
	*opening = (struct nand_opening){
		.number = get_le64(from + AT_OPENING_NUMBER),
		.time_us = get_le64(from + AT_OPENING_TIME),
		.is_under_way = get_le32(from + AT_OPENING_FLAGS) & OPENING_UNDER_WAY,
	};
	if (get_le32(from + AT_OPENING_CHECK) != opening_check(from))
		*opening = (struct nand_opening){ .is_unknown = true };
}

void nand_superblock_encode(const struct nand_superblock *superblock, uint8_t *to)
{
	const struct nand_geometry *geometry = &superblock->geometry;
	struct nand_layout layout = nand_layout_of(geometry);

	header_begin(to, image_magic, superblock->uuid);
	put_le32(to + AT_STATE, superblock->state);
	put_le32(to + AT_PAGE_BYTES, geometry->page_bytes);
	put_le32(to + AT_SPARE_BYTES, geometry->spare_bytes);
	put_le32(to + AT_PAGES_PER_BLOCK, geometry->pages_per_block);
	put_le32(to + AT_BLOCKS, geometry->blocks);
	put_le32(to + AT_CHANNELS, geometry->channels);
	put_le32(to + AT_DIES_PER_CHANNEL, geometry->dies_per_channel);
	put_le64(to + AT_NVRAM_BYTES, superblock->nvram_bytes);
	put_le64(to + AT_IMAGE_BYTES, layout.image_bytes);
	put_le64(to + AT_TABLE_OFFSET, layout.table_offset);
	put_le64(to + AT_DATA_OFFSET, layout.data_offset);
	put_le32(to + AT_PAGE_STRIDE, layout.page_stride);
	put_le32(to + AT_BLOCK_STRIDE, layout.block_stride);
	memcpy(to + AT_CONTENTS, superblock->contents, NAND_CONTENTS_BYTES);
	if (geometry->grown_from) {
		put_le32(to + AT_VERSION, NAND_FORMAT_GROWN);
		put_le32(to + AT_GROWN_FROM, geometry->grown_from);
	}
	nand_opening_encode(&superblock->opening, to + NAND_OPENING_AT);
	header_seal(to);
}

enum nand_header_verdict nand_superblock_decode(const uint8_t *from,
						struct nand_superblock *superblock,
						uint32_t *version)
{
	enum nand_header_verdict verdict =
		header_check(from, image_magic, NAND_FORMAT_GROWN, version);
	struct nand_geometry *geometry = &superblock->geometry;
	struct nand_layout layout;
	uint32_t state;

	if (verdict != NAND_HEADER_VALID)
		return verdict;
	memcpy(superblock->uuid, from + AT_UUID, NAND_UUID_BYTES);
	*geometry = (struct nand_geometry){
		.page_bytes = get_le32(from + AT_PAGE_BYTES),
		.spare_bytes = get_le32(from + AT_SPARE_BYTES),
		.pages_per_block = get_le32(from + AT_PAGES_PER_BLOCK),
		.blocks = get_le32(from + AT_BLOCKS),
		.channels = get_le32(from + AT_CHANNELS),
		.dies_per_channel = get_le32(from + AT_DIES_PER_CHANNEL),
		.grown_from = get_le32(from + AT_GROWN_FROM),
	};
	superblock->nvram_bytes = get_le64(from + AT_NVRAM_BYTES);
	state = get_le32(from + AT_STATE);
	memcpy(superblock->contents, from + AT_CONTENTS, NAND_CONTENTS_BYTES);
	nand_opening_decode(from + NAND_OPENING_AT, &superblock->opening);
	if (state > NAND_IMAGE_COMPLETE || superblock->nvram_bytes > NAND_NVRAM_BYTES_MAX ||
	    superblock->contents[NAND_CONTENTS_BYTES - 1] ||
	    (geometry->grown_from != 0) != (*version == NAND_FORMAT_GROWN) ||
	    nand_geometry_check(geometry, NULL) < 0)
		return NAND_HEADER_CORRUPT;
	superblock->state = (enum nand_image_state)state;
	layout = nand_layout_of(geometry);
	if (get_le64(from + AT_IMAGE_BYTES) != layout.image_bytes ||
	    get_le64(from + AT_TABLE_OFFSET) != layout.table_offset ||
	    get_le64(from + AT_DATA_OFFSET) != layout.data_offset ||
	    get_le32(from + AT_PAGE_STRIDE) != layout.page_stride ||
	    get_le32(from + AT_BLOCK_STRIDE) != layout.block_stride)
		return NAND_HEADER_CORRUPT;
	return NAND_HEADER_VALID;
}

void nand_nvram_header_encode(const struct nand_nvram_header *header, uint8_t *to)
{
	header_begin(to, nvram_magic, header->uuid);
	put_le64(to + AT_NVRAM_HEADER_BYTES, header->nvram_bytes);
	put_le32(to + AT_NVRAM_BLOCKS, header->blocks);
	put_le32(to + AT_NVRAM_GROWN_FROM, header->grown_from);
	nand_opening_encode(&header->opening, to + NAND_OPENING_AT);
	header_seal(to);
}

enum nand_header_verdict nand_nvram_header_decode(const uint8_t *from,
						  struct nand_nvram_header *header,
						  uint32_t *version)
{
	enum nand_header_verdict verdict =
		header_check(from, nvram_magic, NAND_FORMAT_VERSION, version);

	if (verdict != NAND_HEADER_VALID)
		return verdict;
	memcpy(header->uuid, from + AT_UUID, NAND_UUID_BYTES);
	header->nvram_bytes = get_le64(from + AT_NVRAM_HEADER_BYTES);
	header->blocks = get_le32(from + AT_NVRAM_BLOCKS);
	header->grown_from = get_le32(from + AT_NVRAM_GROWN_FROM);
	nand_opening_decode(from + NAND_OPENING_AT, &header->opening);
	return NAND_HEADER_VALID;
}

/*
 * CRC-32C of the low 48 bits, folded. Not zero for an all-zero state, so a lost table page does not
 * pass for erased.
 */
static uint64_t block_word_check(uint64_t state)
{
	uint8_t bytes[8];
	uint32_t crc;

	put_le64(bytes, state);
	crc = crc32c(0, bytes, WORD_STATE_BYTES);
	return (crc >> 16 ^ crc) & 0xFFFF;
}

uint64_t nand_block_word_encode(const struct nand_block_word *word)
{
	uint64_t state = word->erase_count | (uint64_t)word->next_page << WORD_NEXT_PAGE_SHIFT |
			 (word->bad ? WORD_BAD_BIT : 0);

	assert(word->next_page < 1U << 11);
	return state | block_word_check(state) << WORD_CHECK_SHIFT;
}

bool nand_block_word_decode(uint64_t stored, uint32_t pages_per_block, struct nand_block_word *word)
{
	uint64_t state = stored & ((UINT64_C(1) << WORD_CHECK_SHIFT) - 1);

	if (stored >> WORD_CHECK_SHIFT != block_word_check(state))
		return false;
	word->erase_count = (uint32_t)state;
	word->next_page = (uint32_t)((state & ~WORD_BAD_BIT) >> WORD_NEXT_PAGE_SHIFT);
	word->bad = (state & WORD_BAD_BIT) != 0;
	return word->next_page <= pages_per_block;
}

/* Begins with the page number, so that a spare area found in the place of another does not pass. */
static uint32_t spare_crc(const uint8_t *spare, uint32_t spare_bytes, uint64_t page)
{
	uint8_t number[8];

	put_le64(number, page);
	return crc32c(crc32c(0, number, sizeof(number)), spare, spare_bytes - 4);
}

void nand_spare_seal(uint8_t *spare, uint32_t spare_bytes, uint64_t page,
		     const struct nand_page_check *check)
{
	uint8_t *reserved = spare + spare_bytes - NAND_SPARE_RESERVED;

	/* Both at once, as the CRC loads them at once. */
	put_le64(reserved + AT_DATA_CRC, check->data_crc | (uint64_t)check->erase_count << 32);
	put_le32(reserved + AT_ZERO, 0);
	put_le32(reserved + AT_SPARE_CRC, spare_crc(spare, spare_bytes, page));
}

bool nand_spare_open(const uint8_t *spare, uint32_t spare_bytes, uint64_t page,
		     struct nand_page_check *check)
{
	const uint8_t *reserved = spare + spare_bytes - NAND_SPARE_RESERVED;

	check->data_crc = get_le32(reserved + AT_DATA_CRC);
	check->erase_count = get_le32(reserved + AT_ERASE_COUNT);
	return get_le32(reserved + AT_SPARE_CRC) == spare_crc(spare, spare_bytes, page);
}
