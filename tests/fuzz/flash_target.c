/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What is read from flash and from an image file: the first byte of an input says which decoder
 * takes the rest. Where a checksum stands before a decoder, the input gets the right one: what is
 * behind it must stand by itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/crc32c.h"
#include "engine/muninn/index/bloom.h"
#include "engine/muninn/page.h"
#include "engine/options.h"
#include "nand/format.h"
#include "tests/fuzz/flash_records.h"

/* ---- headers of an image ---- */

/* The input as a header, zeros behind it; with a right checksum if it asks for it. */
static void make_header(struct fuzz_reader *input, uint8_t header[NAND_HEADER_BYTES])
{
	static const uint8_t uuid[NAND_UUID_BYTES] = { 1 };
	const struct nand_superblock superblock = {
		.state = NAND_IMAGE_COMPLETE,
		.geometry = nand_geometry_default(1 << 20),
		.nvram_bytes = 65536,
	};
	struct nand_nvram_header nvram = { .nvram_bytes = 65536 };
	uint8_t how = fuzz_take8(input);

	/* As it should be, then bytes of the input at places of the input. */
	memcpy(nvram.uuid, uuid, sizeof(uuid));
	memset(header, 0, NAND_HEADER_BYTES);
	if (how & 1)
		nand_superblock_encode(&superblock, header);
	else
		nand_nvram_header_encode(&nvram, header);
	while (input->left > 0) {
		uint8_t at = fuzz_take8(input);

		header[at] = fuzz_take8(input);
	}
	if (how & 2)
		put_le32(header + NAND_HEADER_BYTES - 4, crc32c(0, header, NAND_HEADER_BYTES - 4));
}

static void run_image_header(struct fuzz_reader *input)
{
	uint8_t *header = fuzz_exact(NAND_HEADER_BYTES, 0),
		*again = fuzz_exact(NAND_HEADER_BYTES, 0);
	struct nand_superblock superblock, decoded;
	struct nand_nvram_header nvram;
	uint32_t version;

	make_header(input, header);
	if (nand_superblock_decode(header, &superblock, &version) == NAND_HEADER_VALID) {
		fuzz_check(nand_geometry_check(&superblock.geometry, NULL) == 0);
		fuzz_check(superblock.nvram_bytes <= NAND_NVRAM_BYTES_MAX);
		nand_superblock_encode(&superblock, again);
		fuzz_check(nand_superblock_decode(again, &decoded, &version) == NAND_HEADER_VALID);
		fuzz_check(decoded.geometry.blocks == superblock.geometry.blocks &&
			   decoded.nvram_bytes == superblock.nvram_bytes);
	}
	if (nand_nvram_header_decode(header, &nvram, &version) == NAND_HEADER_VALID)
		nand_nvram_header_encode(&nvram, again);
	free(header);
	free(again);
}

static void run_block_word(struct fuzz_reader *input)
{
	uint64_t stored = (uint64_t)fuzz_take32(input) << 32 | fuzz_take32(input);
	struct nand_block_word word = { .erase_count = fuzz_take32(input),
					.next_page = fuzz_take16(input) & 0x7FF,
					.bad = fuzz_take8(input) & 1 },
			       decoded;

	if (nand_block_word_decode(stored, 64, &decoded))
		fuzz_check(decoded.next_page <= 64 && nand_block_word_encode(&decoded) == stored);
	fuzz_check(nand_block_word_decode(nand_block_word_encode(&word), 1024, &decoded) ==
		   (word.next_page <= 1024));
}

static void run_spare(struct fuzz_reader *input)
{
	uint64_t page = fuzz_take32(input);
	struct nand_page_check check = { fuzz_take32(input), fuzz_take32(input) }, opened;
	uint32_t bytes = 64;
	uint8_t *spare = fuzz_exact(bytes, 0);
	size_t taken;
	const uint8_t *from = fuzz_take(input, bytes, &taken);

	if (taken > 0)
		memcpy(spare, from, taken);
	(void)nand_spare_open(spare, bytes, page, &opened);
	nand_spare_seal(spare, bytes, page, &check);
	fuzz_check(nand_spare_open(spare, bytes, page, &opened));
	fuzz_check(opened.data_crc == check.data_crc && opened.erase_count == check.erase_count);
	fuzz_check(!nand_spare_open(spare, bytes, page + 1, &opened));
	free(spare);
}

/* ---- pages of records ---- */

static void walk_page(const struct page_view *page, size_t size)
{
	struct page_record record;
	struct visibility all = { .bound = RECORD_NEWEST, .below = RECORD_NEWEST + 1 };
	uint32_t offset = 0, count = 0;

	while (page_next(page, &offset, &record)) {
		struct record_header header;
		struct page_record found;

		fuzz_check(++count <= page->used / RECORD_HEADER_BYTES + 1);
		record_header_decode(record.header, &header);
		fuzz_check(record.value >= page->data &&
			   header.length - record.cut <=
				   size - (size_t)(record.value - page->data));
		fuzz_touch(record.value, header.length - record.cut);
		if (!record.cut)
			(void)record_is_intact(record.header, page->serial, record.value);
		(void)page_find(page, &header.key, &all, &found);
	}
	fuzz_check(offset <= page_end(page));
}

/* The spare area first, then the data area, which is as long as the input. */
static void run_page(struct fuzz_reader *input)
{
	uint8_t bytes[PAGE_SPARE_BYTES] = { 0 };
	struct page_spare spare;
	size_t taken;
	const uint8_t *from = fuzz_take(input, sizeof(bytes), &taken);
	struct page_view page;

	if (taken > 0)
		memcpy(bytes, from, taken);
	if (input->left == 0 || !page_spare_decode(bytes, (uint32_t)input->left, &spare))
		return;
	fuzz_check(spare.used <= input->left);
	page = page_view_of(&spare, 0, input->data);
	walk_page(&page, input->left);
}

static void run_record(struct fuzz_reader *input)
{
	uint8_t bytes[RECORD_HEADER_BYTES] = { 0 }, again[RECORD_HEADER_BYTES];
	struct record_header header, found;
	size_t taken;
	const uint8_t *from = fuzz_take(input, sizeof(bytes), &taken);

	if (taken > 0)
		memcpy(bytes, from, taken);
	record_header_decode(bytes, &header);
	if (header.length > input->left)
		return;
	record_header_encode(&header, 7, input->data, again);
	/* A reach to before the first number is none: it becomes one that says so. */
	record_header_decode(again, &found);
	fuzz_check(found.epoch == header.epoch && found.key.class == header.key.class);
	fuzz_check(memcmp(again, bytes, 10) == 0);
	fuzz_check(memcmp(again + 12, bytes + 12, RECORD_HEADER_BYTES - 16) == 0);
	fuzz_check(record_is_intact(again, 7, input->data));
	fuzz_check(record_has_key(again, &header.key));
}

/* ---- table images ---- */

static const struct muninn_geometry *table_geometry(void)
{
	static struct muninn_geometry geometry;
	struct nand_geometry nand = { .page_bytes = 512,
				      .spare_bytes = 64,
				      .pages_per_block = 8,
				      .blocks = 512,
				      .channels = 1,
				      .dies_per_channel = 1 };
	struct engine_options options = { .muninn.rows = 2,
					  .muninn.segment_pages = 8,
					  .muninn.record_bytes = 128 };

	if (geometry.segments == 0)
		fuzz_check(muninn_geometry_choose(&nand, &options.records, &options.muninn,
						  &geometry, NULL) == 0);
	return &geometry;
}

static void search_table(const struct table *table, const struct muninn_geometry *geometry,
			 struct fuzz_reader *input)
{
	struct record_key key = { .identifier = fuzz_take32(input),
				  .piece = fuzz_take16(input),
				  .partition = fuzz_take8(input) };
	struct key_hash hash = key_hash(&key, geometry->segment_pages);
	struct table_search search;
	uint32_t segment, place, found = 0;

	table_search_begin(&search, table, &hash, fuzz_take8(input) & 1 ? RECORD_NEWEST : 100);
	while (table_search_segment(&search, &segment))
		while ((place = table_search_place(&search)) != UINT32_MAX) {
			table_search_leave(&search, place);
			fuzz_check(place < geometry->bloom.places);
			fuzz_check(++found <= GROUP_SEGMENTS * geometry->bloom.places);
		}
}

/* An empty image with bytes of the input at places of the input. */
static void run_table(struct fuzz_reader *input)
{
	const struct muninn_geometry *geometry = table_geometry();
	uint8_t *image = fuzz_exact(geometry->image_bytes_max, 0);
	struct table table = { 0 };
	uint8_t changes = fuzz_take8(input);

	table_begin(&table, geometry, image, 1, fuzz_take8(input));
	for (; changes > 0; changes--) {
		uint32_t at = fuzz_take16(input) % geometry->image_bytes_max;

		image[at] = fuzz_take8(input);
	}
	if (table_attach(&table, geometry, image, 1)) {
		fuzz_check(table.image_bytes <= geometry->image_bytes_max);
		fuzz_check(table_columns(&table) <= GROUP_SEGMENTS);
		for (uint32_t i = 0; i < table_columns(&table); i++) {
			uint8_t *count = image + TABLE_HEADER_BYTES + i * COLUMN_BYTES +
					 COLUMN_OVERFLOW_COUNT_AT;

			/* The engine asserts this of an image whose checksum is right. */
			put_le32(count, get_le32(count) % (table.overflow_entries + 1));
		}
		search_table(&table, geometry, input);
	}
	free(image);
}

/* ---- the target ---- */

static void run_flash(const uint8_t *data, size_t size)
{
	static void (*const decoders[])(struct fuzz_reader *) = {
		run_page,           run_record,           run_table,
		run_image_header,   run_block_word,       run_spare,
		fuzz_flash_onode,   fuzz_flash_idset,     fuzz_flash_attributes,
		fuzz_flash_extents, fuzz_flash_partition,
	};
	struct fuzz_reader input = { data, size };

	decoders[fuzz_take8(&input) % (sizeof(decoders) / sizeof(decoders[0]))](&input);
}

const struct fuzz_target fuzz_flash = { .name = "flash", .run = run_flash };
