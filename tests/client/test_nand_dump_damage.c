/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * muninnctl nand dump on pages that are damaged or torn, without the NVRAM or a root, and on images
 * that are another version's, or in use.
 *
 * Runs for each index.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "client/ctl/ctl.h"
#include "common/crc32c.h"
#include "engine/muninn/format.h"
#include "nand/private.h"
#include "tests/client/nand_dump_scene.h"

/* ---- damage ---- */

static void overwrite(const char *path, uint64_t offset, const void *bytes, size_t length)
{
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, length, (off_t)offset), length);
	assert_int_equal(close(fd), 0);
}

static uint64_t offset_of(json_int_t page, uint32_t byte)
{
	const struct nand_layout layout = nand_layout_of(&dump_geometry);

	return nand_page_offset(&layout, &dump_geometry, (uint64_t)page) + byte;
}

static void fill_page(json_int_t page, uint32_t byte, size_t length, int with)
{
	uint8_t bytes[PAGE + SPARE];

	memset(bytes, with, sizeof(bytes));
	overwrite(dump_device, offset_of(page, byte), bytes, length);
}

static void damage_nvram(void)
{
	static const uint8_t zeros[64];
	char path[160];

	snprintf(path, sizeof(path), "%s.nvram", dump_device);
	overwrite(path, NAND_NVRAM_FILE_AT, zeros, sizeof(zeros));
}

/* A page of records that has more than one. */
static const json_t *page_of_some(const json_t *pages)
{
	json_t *page;
	size_t n;

	json_array_foreach(pages, n, page)
	{
		if (dump_is_kind(page, "records") &&
		    json_array_size(json_object_get(page, "records")) > 1 &&
		    dump_number(json_array_get(json_object_get(page, "records"), 1), "length") > 0)
			return page;
	}
	fail();
	return NULL;
}

static void test_a_damaged_record_is_told_from_the_others_of_its_page(void **state)
{
	json_t *pages = dump_all(), *damaged;
	const json_t *page = page_of_some(pages), *records;
	json_int_t number_of = dump_number(page, "page");
	char range[32];

	(void)state;
	records = json_object_get(page, "records");
	fill_page(number_of,
		  (uint32_t)dump_number(json_array_get(records, 1), "at") + RECORD_HEADER_BYTES, 1,
		  0xA5);
	damaged = dump_page((uint64_t)number_of);
	assert_string_equal(dump_text(damaged, "verdict"), "damaged");
	assert_string_equal(dump_text(damaged, "kind"), "records");
	assert_true(dump_flag(damaged, "spare_intact"));
	assert_int_equal(dump_number(damaged, "serial"), dump_number(page, "serial"));
	records = json_object_get(damaged, "records");
	for (size_t n = 0; n < json_array_size(records); n++)
		assert_int_equal(dump_flag(json_array_get(records, n), "intact"), n != 1);
	snprintf(range, sizeof(range), "%d-%d", (int)number_of, (int)number_of + 1);
	dump_expect(range, "", CTL_OK, "records, 1 damaged\n");
	json_decref(damaged);
	json_decref(pages);
}

static void test_a_length_that_is_damaged_hides_what_follows(void **state)
{
	json_t *pages = dump_all(), *damaged;
	const json_t *page = page_of_some(pages);
	json_int_t number_of = dump_number(page, "page");
	uint32_t at =
		(uint32_t)dump_number(json_array_get(json_object_get(page, "records"), 1), "at");

	(void)state;
	fill_page(number_of, at + 22, 2, 0x1F);
	damaged = dump_page((uint64_t)number_of);
	assert_int_equal(json_array_size(json_object_get(damaged, "records")), 1);
	assert_int_equal(dump_number(damaged, "bytes_without_record"),
			 dump_number(page, "used_bytes") - at);
	json_decref(damaged);
	json_decref(pages);
}

static void test_a_torn_page_says_how_far_it_came(void **state)
{
	json_t *pages = dump_all(), *torn;
	json_int_t page = dump_number(page_of_some(pages), "page");

	(void)state;
	json_decref(pages);
	/* In the spare area, behind what says what the page is; in it; in the data. */
	fill_page(page, PAGE + 59, 1, 0);
	fill_page(page, PAGE + 60, SPARE - 60, 0xFF);
	torn = dump_page((uint64_t)page);
	assert_string_equal(dump_text(torn, "verdict"), "torn");
	assert_int_equal(dump_number(torn, "torn_bytes"), PAGE + 60);
	assert_string_equal(dump_text(torn, "kind"), "records");
	json_decref(torn);
	fill_page(page, PAGE, SPARE, 0xFF);
	fill_page(page, 100, PAGE - 100, 0xFF);
	fill_page(page, 99, 1, 0);
	torn = dump_page((uint64_t)page);
	assert_int_equal(dump_number(torn, "torn_bytes"), 100);
	assert_string_equal(dump_text(torn, "kind"), "unreadable");
	assert_null(json_object_get(torn, "records"));
	json_decref(torn);
	fill_page(page, 0, PAGE, 0xFF);
	torn = dump_page((uint64_t)page);
	assert_string_equal(dump_text(torn, "verdict"), "torn");
	assert_int_equal(dump_number(torn, "torn_bytes"), 0);
	json_decref(torn);
	fill_page(page, PAGE, SPARE, 0x77);
	torn = dump_page((uint64_t)page);
	assert_string_equal(dump_text(torn, "verdict"), "damaged");
	assert_string_equal(dump_text(torn, "kind"), "unreadable");
	json_decref(torn);
}

static void test_a_lost_page_of_an_image_or_root_is_told(void **state)
{
	json_t *pages = dump_all(), *page;
	json_int_t image_page = dump_number(dump_first_of(pages, "index"), "image_first_page");
	json_int_t root_page = dump_number(dump_last_root(pages), "page");

	(void)state;
	fill_page(image_page + 1, 0, PAGE, 0xA5);
	page = dump_page((uint64_t)image_page);
	assert_int_equal(dump_number(page, "image_pages_lost"), 1);
	json_decref(page);
	fill_page(image_page, 0, PAGE, 0xA5);
	page = dump_page((uint64_t)image_page + 1);
	assert_int_equal(dump_number(page, "image_pages_lost"), 2);
	assert_string_equal(dump_text(page, "image"), "its header is lost or damaged");
	json_decref(page);
	/* Parity has it. */
	fill_page(root_page, 8, PAGE - 8, 0xA5);
	page = dump_page((uint64_t)root_page + 1);
	assert_true(dump_flag(page, "whole"));
	assert_int_equal(dump_number(page, "pages_lost"), 1);
	assert_int_equal(dump_number(page, "committed"), dump_puts[RECORDS - 1].sequence);
	json_decref(page);
	/* Nothing has it. */
	fill_page(root_page + 1, 8, PAGE - 8, 0xA5);
	page = dump_page((uint64_t)root_page);
	assert_string_equal(dump_text(page, "verdict"), "damaged");
	assert_false(dump_flag(page, "whole"));
	assert_null(json_object_get(page, "committed"));
	json_decref(page);
	json_decref(pages);
}

static void test_without_nvram_the_last_root_names_the_images(void **state)
{
	json_t *pages = dump_all(), *page;
	json_int_t records = dump_number(page_of_some(pages), "page");
	json_int_t image_page = dump_number(dump_first_of(pages, "index"), "image_first_page");
	char text_of_page[32];

	(void)state;
	damage_nvram();
	page = dump_page((uint64_t)image_page);
	assert_string_equal(dump_text(page, "named_by"), "root");
	assert_non_null(strstr(dump_text(page, "trouble"), "is told by root"));
	assert_true(dump_flag(page, "image_intact"));
	assert_true(
		json_equal(json_object_get(page, "members"),
			   json_object_get(json_array_get(pages, (size_t)image_page), "members")));
	json_decref(page);
	/* Nor a root: a page of records still says all by itself. */
	for (json_int_t lost = 0; lost < 32; lost++)
		fill_page(lost, 8, PAGE - 8, 0xA5);
	page = dump_page((uint64_t)records);
	assert_non_null(strstr(dump_text(page, "trouble"), "there is no whole root"));
	assert_null(json_object_get(page, "segment"));
	assert_true(json_equal(json_object_get(page, "records"),
			       json_object_get(json_array_get(pages, (size_t)records), "records")));
	json_decref(page);
	snprintf(text_of_page, sizeof(text_of_page), "%d", (int)image_page);
	dump_expect(text_of_page, "", CTL_OK, "of an image that nothing names");
	assert_non_null(strstr(dump_output, "muninnctl: the device is not formatted"));
	json_decref(pages);
}

/* Where the NVRAM file has the entry of an image that a page says it is of. */
static uint64_t entry_of(const json_t *page, const char *nvram_path)
{
	static uint8_t nvram[1 << 20];
	uint8_t entry[DIRECTORY_FIRST_PAGE_AT];
	int fd = open(nvram_path, O_RDONLY);
	ssize_t length = pread(fd, nvram, sizeof(nvram), NAND_NVRAM_FILE_AT);

	assert_int_equal(close(fd), 0);
	put_le32(entry + DIRECTORY_ROW_AT, (uint32_t)dump_number(page, "row"));
	put_le32(entry + DIRECTORY_GROUP_AT, (uint32_t)dump_number(page, "group"));
	put_le32(entry + DIRECTORY_BYTES_AT, (uint32_t)dump_number(page, "image_bytes"));
	for (ssize_t at = NVRAM_DIRECTORY_AT; at + (ssize_t)sizeof(entry) <= length; at += 4)
		if (memcmp(nvram + at, entry, sizeof(entry)) == 0)
			return NAND_NVRAM_FILE_AT + (uint64_t)at;
	fail();
	return 0;
}

static void test_an_entry_that_is_damaged_or_dead_names_no_image(void **state)
{
	static const uint8_t dead[8], damaged[4] = { 0, 0, 0, 1 };
	json_t *pages = dump_all();
	const json_t *page = dump_first_of(pages, "index");
	char path[160], text_of_page[32];
	uint8_t bytes[4];
	uint64_t entry;

	(void)state;
	snprintf(path, sizeof(path), "%s.nvram", dump_device);
	snprintf(text_of_page, sizeof(text_of_page), "%d",
		 (int)dump_number(page, "image_first_page"));
	entry = entry_of(page, path);
	put_le32(bytes, (uint32_t)dump_number(page, "image_bytes"));
	dump_expect(text_of_page, "", CTL_OK, ", page 1 of ");
	/* A length that no image has. */
	overwrite(path, entry + DIRECTORY_BYTES_AT, damaged, sizeof(damaged));
	dump_expect(text_of_page, "", CTL_OK, "of an image that nothing names");
	overwrite(path, entry + DIRECTORY_BYTES_AT, bytes, sizeof(bytes));
	dump_expect(text_of_page, "", CTL_OK, ", page 1 of ");
	/* All its segments have been merged. */
	overwrite(path, entry + DIRECTORY_LIVE_AT, dead, sizeof(dead));
	dump_expect(text_of_page, "", CTL_OK, "of an image that nothing names");
	json_decref(pages);
}

/* ---- images that are not decoded ---- */

static void test_another_version_of_the_format_is_not_decoded(void **state)
{
	const uint8_t version[4] = { MUNINN_FORMAT_VERSION + 1 };
	uint8_t header[NVRAM_HEADER_CRC_AT], crc[4];
	char path[160];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s.nvram", dump_device);
	overwrite(path, NAND_NVRAM_FILE_AT + NVRAM_VERSION_AT, version, sizeof(version));
	fd = open(path, O_RDONLY);
	assert_int_equal(pread(fd, header, sizeof(header), NAND_NVRAM_FILE_AT), sizeof(header));
	assert_int_equal(close(fd), 0);
	put_le32(crc, crc32c(0, header, sizeof(header)));
	overwrite(path, NAND_NVRAM_FILE_AT + NVRAM_HEADER_CRC_AT, crc, sizeof(crc));
	dump_expect_narrow("0", "");
	assert_non_null(strstr(dump_output, "kind                     not decoded\n"));
	assert_non_null(strstr(dump_output, "the device has engine format 10"));
}

static void test_an_image_in_use_is_said_to_be(void **state)
{
	struct error_text error;
	struct nand *nand;
	json_t *page;

	(void)state;
	assert_int_equal(nand_open(dump_device, &nand, &error), 0);
	page = dump_page(0);
	assert_string_equal(dump_text(page, "kind"), "root");
	/* Not every host tells. */
	if (dump_number(page, "in_use_by_process"))
		assert_int_equal(dump_number(page, "in_use_by_process"), getpid());
	json_decref(page);
	assert_int_equal(nand_close(nand), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUMP_TEST(test_a_damaged_record_is_told_from_the_others_of_its_page),
		DUMP_TEST(test_a_length_that_is_damaged_hides_what_follows),
		DUMP_TEST(test_a_torn_page_says_how_far_it_came),
		DUMP_TEST(test_a_lost_page_of_an_image_or_root_is_told),
		DUMP_TEST(test_without_nvram_the_last_root_names_the_images),
		DUMP_TEST(test_an_entry_that_is_damaged_or_dead_names_no_image),
		DUMP_TEST(test_another_version_of_the_format_is_not_decoded),
		DUMP_TEST(test_an_image_in_use_is_said_to_be),
	};

	return cmocka_run_group_tests(tests, dump_make_image, dump_remove_image);
}
