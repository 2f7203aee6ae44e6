/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What is stored: the examples of docs/format.md, and that damage never passes. Run from the top of
 * the source.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/crc32c.h"
#include "tests/nand/fixture.h"

static const struct nand_superblock example = {
	.state = NAND_IMAGE_COMPLETE,
	.uuid = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
	.geometry = { 4096, 256, 64, 64, 4, 2, 0 },
	.nvram_bytes = 1 << 20,
	.contents = "muninn",
};

/*
 * The example of this name in docs/format.md: `bytes` from offset `from`; what it does not show is
 * zero.
 */
static void documented(const char *name, size_t from, uint8_t *to, size_t bytes)
{
	FILE *file = fopen("docs/format.md", "r");
	char fence[64], line[512];
	bool inside = false;
	size_t shown = 0;

	if (!file)
		fail_msg("no docs/format.md: run this from the top of the source");
	snprintf(fence, sizeof(fence), "```hex %s\n", name);
	memset(to, 0, bytes);
	while (fgets(line, sizeof(line), file)) {
		char *next;
		size_t offset;

		if (!inside || line[0] == '`') {
			inside = strcmp(line, fence) == 0;
			continue;
		}
		offset = strtoul(line, &next, 16) - from;
		for (char *end; *next != '\n'; next = end, shown++) {
			unsigned long byte = strtoul(next, &end, 16);

			assert_true(end > next && offset < bytes && byte < 256);
			to[offset++] = (uint8_t)byte;
		}
	}
	fclose(file);
	assert_true(shown > 0);
}

static void test_the_documented_superblock_is_what_is_written_and_read(void **state)
{
	uint8_t expected[NAND_HEADER_BYTES], bytes[NAND_HEADER_BYTES];
	struct nand_superblock decoded = { 0 };
	uint32_t version = 0;

	(void)state;
	documented("superblock", 0, expected, sizeof(expected));
	nand_superblock_encode(&example, bytes);
	assert_memory_equal(bytes, expected, sizeof(bytes));
	assert_int_equal(nand_superblock_decode(expected, &decoded, &version), NAND_HEADER_VALID);
	assert_int_equal(version, 3);
	assert_string_equal(decoded.contents, "muninn");
	assert_int_equal(decoded.state, NAND_IMAGE_COMPLETE);
	assert_memory_equal(decoded.uuid, example.uuid, sizeof(example.uuid));
	assert_memory_equal(&decoded.geometry, &example.geometry, sizeof(example.geometry));
	assert_int_equal(decoded.nvram_bytes, example.nvram_bytes);
}

static void test_the_documented_superblock_of_a_grown_image(void **state)
{
	struct nand_superblock grown = example, decoded = { 0 };
	uint8_t expected[NAND_HEADER_BYTES], bytes[NAND_HEADER_BYTES];
	uint32_t version = 0;

	(void)state;
	grown.geometry.blocks = 128;
	grown.geometry.grown_from = 64;
	grown.nvram_bytes = 2 << 20;
	documented("grown superblock", 0, expected, sizeof(expected));
	nand_superblock_encode(&grown, bytes);
	assert_memory_equal(bytes, expected, NAND_HEADER_BYTES);
	assert_int_equal(nand_superblock_decode(expected, &decoded, &version), NAND_HEADER_VALID);
	assert_int_equal(version, NAND_FORMAT_GROWN);
	assert_int_equal(decoded.geometry.blocks, 128);
	assert_int_equal(decoded.geometry.grown_from, 64);
}

/* Whatever it has grown from and to: no two regions share a byte, and blocks stay where they are.
 */
static void test_regions_of_grown_images_lie_apart(void **state)
{
	(void)state;
	for (uint32_t first = 1; first < 40000; first = first * 3 + 1) {
		struct nand_geometry geometry = example.geometry;
		struct nand_layout old, now;

		geometry.blocks = first;
		old = nand_layout_of(&geometry);
		geometry.grown_from = first;
		geometry.blocks = first + 1 + first / 2;
		now = nand_layout_of(&geometry);
		for (uint32_t block = 0; block < first; block += 1 + first / 7)
			assert_int_equal(nand_block_offset(&now, block),
					 nand_block_offset(&old, block));
		assert_int_equal(now.table_offset, old.image_bytes);
		assert_true(now.table_bytes >= geometry.blocks * 8);
		assert_true(nand_block_offset(&now, first) >=
			    now.table_offset + nand_growth_limit(first) * 8);
		assert_int_equal(nand_block_offset(&now, first) % NAND_REGION_ALIGNMENT, 0);
		assert_true(now.image_bytes >=
			    nand_block_offset(&now, geometry.blocks - 1) + now.block_stride);
	}
}

static void test_the_documented_nvram_header_is_what_is_written_and_read(void **state)
{
	struct nand_nvram_header header = { .nvram_bytes = example.nvram_bytes }, decoded = { 0 };
	uint8_t expected[NAND_HEADER_BYTES], bytes[NAND_HEADER_BYTES];
	uint32_t version = 0;

	(void)state;
	memcpy(header.uuid, example.uuid, sizeof(header.uuid));
	documented("nvram", 0, expected, sizeof(expected));
	nand_nvram_header_encode(&header, bytes);
	assert_memory_equal(bytes, expected, sizeof(bytes));
	assert_int_equal(nand_nvram_header_decode(expected, &decoded, &version), NAND_HEADER_VALID);
	assert_memory_equal(decoded.uuid, header.uuid, sizeof(header.uuid));
	assert_int_equal(decoded.nvram_bytes, header.nvram_bytes);
}

static void test_the_documented_block_words_are_what_is_written_and_read(void **state)
{
	static const struct nand_block_word words[] = {
		{ 0, 0, false },
		{ 3, 17, false },
		{ 0x01020304, 64, true },
	};
	uint8_t expected[24];

	(void)state;
	documented("words", 0, expected, sizeof(expected));
	for (size_t i = 0; i < 3; i++) {
		struct nand_block_word decoded;

		assert_int_equal(nand_block_word_encode(&words[i]), get_le64(expected + 8 * i));
		assert_true(nand_block_word_decode(get_le64(expected + 8 * i), 64, &decoded));
		assert_int_equal(decoded.erase_count, words[i].erase_count);
		assert_int_equal(decoded.next_page, words[i].next_page);
		assert_int_equal(decoded.bad, words[i].bad);
	}
}

static void test_the_documented_spare_area_is_what_is_written_and_read(void **state)
{
	static const uint8_t data[4096];
	struct nand_page_check check = { crc32c(0, data, sizeof(data)), 3 }, opened;
	uint8_t expected[16], spare[256];

	(void)state;
	documented("seal", 0xF0, expected, sizeof(expected));
	for (size_t i = 0; i < 240; i++)
		spare[i] = (uint8_t)i;
	memset(spare + 240, 0xEE, 16);
	nand_spare_seal(spare, sizeof(spare), 0x1234, &check);
	assert_memory_equal(spare + 240, expected, sizeof(expected));
	assert_true(nand_spare_open(spare, sizeof(spare), 0x1234, &opened));
	assert_int_equal(opened.data_crc, check.data_crc);
	assert_int_equal(opened.erase_count, 3);
	assert_false(nand_spare_open(spare, sizeof(spare), 0x1235, &opened));
}

static void test_any_damaged_byte_of_a_header_is_found(void **state)
{
	uint8_t bytes[NAND_HEADER_BYTES];
	struct nand_superblock decoded;
	uint32_t version;

	(void)state;
	nand_superblock_encode(&example, bytes);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] ^= 0x40;
		assert_int_equal(nand_superblock_decode(bytes, &decoded, &version),
				 i < 8 ? NAND_HEADER_FOREIGN : NAND_HEADER_CORRUPT);
		bytes[i] ^= 0x40;
	}
}

/* Makes the CRC right again, as a program with a bug or an ill will would. */
static void reseal(uint8_t *bytes)
{
	put_le32(bytes + NAND_HEADER_BYTES - 4, crc32c(0, bytes, NAND_HEADER_BYTES - 4));
}

static void test_a_superblock_that_contradicts_itself_is_damaged(void **state)
{
	static const size_t fields[] = { 12, 32, 36, 40, 44, 48, 52, 60, 64, 72, 80, 88, 92 };
	struct nand_superblock decoded;
	uint32_t version;

	(void)state;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint8_t bytes[NAND_HEADER_BYTES];

		nand_superblock_encode(&example, bytes);
		put_le32(bytes + fields[i], get_le32(bytes + fields[i]) + 70000);
		reseal(bytes);
		assert_int_equal(nand_superblock_decode(bytes, &decoded, &version),
				 NAND_HEADER_CORRUPT);
	}
}

static void test_another_version_is_told_from_damage(void **state)
{
	uint8_t bytes[NAND_HEADER_BYTES];
	struct nand_superblock decoded;
	uint32_t version = 0;

	(void)state;
	nand_superblock_encode(&example, bytes);
	put_le32(bytes + 8, 7);
	assert_int_equal(nand_superblock_decode(bytes, &decoded, &version), NAND_HEADER_CORRUPT);
	reseal(bytes);
	assert_int_equal(nand_superblock_decode(bytes, &decoded, &version),
			 NAND_HEADER_OTHER_VERSION);
	assert_int_equal(version, 7);
}

static void test_any_damaged_byte_of_a_block_word_is_found(void **state)
{
	static const struct nand_block_word words[] = { { 0, 0, false },
							{ 1, 64, false },
							{ 99999, 5, true } };
	struct nand_block_word decoded;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (int byte = 0; byte < 8; byte++)
			for (uint64_t bits = 1; bits < 256; bits++)
				assert_false(nand_block_word_decode(
					nand_block_word_encode(&words[i]) ^ bits << (8 * byte),
					1024, &decoded));
}

static void test_zeroes_ones_and_impossible_states_are_no_block_words(void **state)
{
	struct nand_block_word word = { 0, 65, false }, decoded;

	(void)state;
	assert_false(nand_block_word_decode(0, 64, &decoded));
	assert_false(nand_block_word_decode(UINT64_MAX, 64, &decoded));
	assert_false(nand_block_word_decode(nand_block_word_encode(&word), 64, &decoded));
	assert_true(nand_block_word_decode(nand_block_word_encode(&word), 65, &decoded));
}

static void test_regions_are_aligned_and_hold_what_they_must(void **state)
{
	static const struct nand_geometry geometries[] = {
		{ 512, 64, 8, 1, 1, 1, 0 },
		{ 512, 65, 9, 12345, 1, 1, 0 },
		{ 4096, 256, 64, 262144, 4, 2, 0 },
		{ 65536, 4096, 1024, 3, 1, 1, 0 },
		{ 65536, 4096, 1024, 1U << 28, 64, 64, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(geometries) / sizeof(geometries[0]); i++) {
		const struct nand_geometry *geometry = &geometries[i];
		struct nand_layout layout = nand_layout_of(geometry);
		uint64_t pages = (uint64_t)geometry->blocks * geometry->pages_per_block;

		assert_int_equal(nand_geometry_check(geometry, NULL), 0);
		assert_int_equal(layout.pages, pages);
		assert_int_equal(layout.data_offset % 65536, 0);
		assert_int_equal(layout.image_bytes % 65536, 0);
		assert_true(layout.table_offset >= NAND_SUPERBLOCK_SPACING + NAND_HEADER_BYTES);
		assert_true(layout.data_offset - layout.table_offset >=
			    8 * (uint64_t)geometry->blocks);
		assert_int_equal(layout.page_stride % 64, 0);
		assert_in_range(layout.page_stride, geometry->page_bytes + geometry->spare_bytes,
				geometry->page_bytes + geometry->spare_bytes + 63);
		assert_int_equal(layout.block_stride % 4096, 0);
		assert_in_range(layout.block_stride,
				(uint64_t)layout.page_stride * geometry->pages_per_block,
				(uint64_t)layout.page_stride * geometry->pages_per_block + 4095);
		assert_true(layout.image_bytes - layout.data_offset >=
			    (uint64_t)geometry->blocks * layout.block_stride);
		assert_int_equal(nand_page_offset(&layout, geometry, 0), layout.data_offset);
		assert_int_equal(nand_page_offset(&layout, geometry, pages - 1),
				 layout.data_offset +
					 (uint64_t)(geometry->blocks - 1) * layout.block_stride +
					 (uint64_t)(geometry->pages_per_block - 1) *
						 layout.page_stride);
		assert_true(layout.image_bytes < UINT64_C(1) << 62);
	}
}

static void test_a_bad_geometry_is_refused_by_field_and_limits(void **state)
{
	static const struct {
		struct nand_geometry geometry;
		const char *message;
	} bad[] = {
		{ { 511, 64, 8, 1, 1, 1, 0 }, "page_bytes is 511, must be 512 to 65536" },
		{ { 1000, 64, 8, 1, 1, 1, 0 }, "page_bytes is 1000, must be a power of two" },
		{ { 131072, 64, 8, 1, 1, 1, 0 }, "page_bytes is 131072" },
		{ { 512, 63, 8, 1, 1, 1, 0 }, "spare_bytes is 63, must be 64 to 4096" },
		{ { 512, 4097, 8, 1, 1, 1, 0 }, "spare_bytes is 4097" },
		{ { 512, 64, 7, 1, 1, 1, 0 }, "pages_per_block is 7, must be 8 to 1024" },
		{ { 512, 64, 1025, 1, 1, 1, 0 }, "pages_per_block is 1025" },
		{ { 512, 64, 8, 0, 1, 1, 0 }, "blocks is 0, must be 1 to 268435456" },
		{ { 512, 64, 8, (1U << 28) + 1, 1, 1, 0 }, "blocks is 268435457" },
		{ { 512, 64, 8, 1, 0, 1, 0 }, "channels is 0, must be 1 to 64" },
		{ { 512, 64, 8, 1, 65, 1, 0 }, "channels is 65" },
		{ { 512, 64, 8, 1, 1, 0, 0 }, "dies_per_channel is 0, must be 1 to 64" },
		{ { 512, 64, 8, 1, 1, 65, 0 }, "dies_per_channel is 65" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct error_text error = { "" };
		struct nand *nand;

		assert_int_equal(nand_open_memory(&bad[i].geometry, 0, &nand, &error), -EINVAL);
		assert_null(nand);
		assert_non_null(strstr(error.text, bad[i].message));
	}
}

static void test_the_default_geometry_has_as_many_whole_blocks_as_fit(void **state)
{
	struct nand_geometry geometry = nand_geometry_default((UINT64_C(64) << 30) + 262143);

	(void)state;
	assert_int_equal(geometry.page_bytes, 4096);
	assert_int_equal(geometry.spare_bytes, 256);
	assert_int_equal(geometry.pages_per_block, 64);
	assert_int_equal(geometry.blocks, 262144);
	assert_int_equal(geometry.channels, 4);
	assert_int_equal(geometry.dies_per_channel, 2);
	assert_int_equal(nand_geometry_check(&geometry, NULL), 0);
	geometry = nand_geometry_default(262143);
	assert_int_equal(nand_geometry_check(&geometry, NULL), -EINVAL);
	geometry = nand_geometry_default(UINT64_MAX);
	assert_int_equal(nand_geometry_check(&geometry, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_documented_superblock_is_what_is_written_and_read),
		cmocka_unit_test(test_the_documented_superblock_of_a_grown_image),
		cmocka_unit_test(test_regions_of_grown_images_lie_apart),
		cmocka_unit_test(test_the_documented_nvram_header_is_what_is_written_and_read),
		cmocka_unit_test(test_the_documented_block_words_are_what_is_written_and_read),
		cmocka_unit_test(test_the_documented_spare_area_is_what_is_written_and_read),
		cmocka_unit_test(test_any_damaged_byte_of_a_header_is_found),
		cmocka_unit_test(test_a_superblock_that_contradicts_itself_is_damaged),
		cmocka_unit_test(test_another_version_is_told_from_damage),
		cmocka_unit_test(test_any_damaged_byte_of_a_block_word_is_found),
		cmocka_unit_test(test_zeroes_ones_and_impossible_states_are_no_block_words),
		cmocka_unit_test(test_regions_are_aligned_and_hold_what_they_must),
		cmocka_unit_test(test_a_bad_geometry_is_refused_by_field_and_limits),
		cmocka_unit_test(test_the_default_geometry_has_as_many_whole_blocks_as_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
