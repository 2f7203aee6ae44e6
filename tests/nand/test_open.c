/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Opening: what is refused, with which words; that a refused file is as it was; the lock;
 * read-only.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/crc32c.h"
#include "tests/nand/fixture.h"

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Makes an image with a programmed page and closes it. */
static struct test_directory *closed_image(void **state)
{
	struct test_directory *directory = *state;
	struct nand *nand = create_image(directory);

	assert_int_equal(program_filled(nand, 0, 1), 0);
	memset(nand_nvram(nand, NULL), 0x5A, TEST_NVRAM_BYTES);
	assert_int_equal(nand_close(nand), 0);
	return directory;
}

/* As assert_open_fails, read-only too, and both files stay as they are. */
static void assert_refused(const struct test_directory *directory, const char *const *fragments)
{
	bool has_nvram = file_exists(directory->nvram);
	uint32_t image_crc = file_crc(directory->image);
	uint32_t nvram_crc = has_nvram ? file_crc(directory->nvram) : 0;
	uint64_t image_bytes = file_bytes(directory->image);
	struct error_text error;
	struct nand *nand;

	assert_open_fails(directory, -EINVAL, fragments);
	assert_int_equal(nand_open_read_only(directory->image, &nand, &error), -EINVAL);
	assert_int_equal(file_bytes(directory->image), image_bytes);
	assert_int_equal(file_crc(directory->image), image_crc);
	assert_int_equal(file_exists(directory->nvram), has_nvram);
	if (has_nvram)
		assert_int_equal(file_crc(directory->nvram), nvram_crc);
}

static void make_file(const char *path, const char *contents, uint64_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, contents, strlen(contents)), strlen(contents));
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	close(fd);
}

/* Changes a 32-bit field of a stored header and makes its CRC right again. */
static void patch_header(const char *path, uint64_t at, size_t field, uint32_t value)
{
	uint8_t bytes[NAND_HEADER_BYTES];

	file_read(path, at, bytes, sizeof(bytes));
	put_le32(bytes + field, value);
	put_le32(bytes + NAND_HEADER_BYTES - 4, crc32c(0, bytes, NAND_HEADER_BYTES - 4));
	file_write(path, at, bytes, sizeof(bytes));
}

static void test_a_closed_image_opens_with_all_that_was_in_it(void **state)
{
	struct test_directory *directory = closed_image(state);
	uint8_t expected[TEST_NVRAM_BYTES];
	struct nand_block_info info;
	uint64_t nvram_bytes;
	struct nand *nand;

	nand = open_image_ok(directory);
	memset(expected, 0x5A, sizeof(expected));
	assert_memory_equal(nand_geometry(nand), &small_geometry, sizeof(small_geometry));
	assert_int_equal(read_filled(nand, 0, 1), 0);
	assert_int_equal(program_filled(nand, 0, 1), -EPERM);
	assert_int_equal(program_filled(nand, 1, 1), 0);
	assert_int_equal(nand_block_info(nand, 0, &info), 0);
	assert_int_equal(info.next_page, 2);
	assert_memory_equal(nand_nvram(nand, &nvram_bytes), expected, sizeof(expected));
	assert_int_equal(nvram_bytes, TEST_NVRAM_BYTES);
	assert_int_equal(nand_close(nand), 0);
}

static void test_no_image(void **state)
{
	assert_open_fails(*state, -ENOENT, WORDS("there is no image", "/image"));
}

static void test_a_foreign_file(void **state)
{
	struct test_directory *directory = *state;

	make_file(directory->image, "#!/bin/sh\necho not flash\n", 200000);
	assert_refused(directory, WORDS(directory->image, "is not a Muninn image"));
	make_file(directory->image, "short", 5);
	assert_refused(directory, WORDS("is not a Muninn image"));
	make_file(directory->image, "", 0);
	assert_refused(directory, WORDS("is empty", "create it again"));
}

static void test_what_is_no_regular_file(void **state)
{
	struct test_directory *directory = *state;

	assert_int_equal(mkdir(directory->image, 0700), 0);
	assert_open_fails(directory, -EINVAL, WORDS("is not a regular file"));
	assert_int_equal(rmdir(directory->image), 0);
	assert_int_equal(mkfifo(directory->image, 0600), 0);
	assert_open_fails(directory, -EINVAL, WORDS("is not a regular file"));
}

static void test_another_version(void **state)
{
	struct test_directory *directory = closed_image(state);

	patch_header(directory->image, 0, 8, 2);
	patch_header(directory->image, NAND_SUPERBLOCK_SPACING, 8, 2);
	assert_refused(directory,
		       WORDS("image format version 2", "knows versions 3 and 4 only",
			     "use the Muninn release that wrote it, or copy its objects"));
	patch_header(directory->image, 0, 8, 5);
	patch_header(directory->image, NAND_SUPERBLOCK_SPACING, 8, 5);
	assert_refused(directory,
		       WORDS("image format version 5", "use the Muninn release that wrote it"));
}

static void test_both_superblocks_damaged(void **state)
{
	struct test_directory *directory = closed_image(state);

	file_flip(directory->image, 40, 1);
	file_flip(directory->image, NAND_SUPERBLOCK_SPACING + 4095, 1);
	assert_refused(directory,
		       WORDS("both copies of its superblock (at bytes 0 and 32768) are damaged"));
}

static void test_either_superblock_alone_is_enough_and_repairs_the_other(void **state)
{
	struct test_directory *directory = closed_image(state);
	uint8_t intact[NAND_HEADER_BYTES], repaired[NAND_HEADER_BYTES];

	file_read(directory->image, 0, intact, sizeof(intact));
	for (uint64_t at = 0; at <= NAND_SUPERBLOCK_SPACING; at += NAND_SUPERBLOCK_SPACING) {
		uint8_t zeroes[NAND_HEADER_BYTES] = { 0 };
		struct nand *nand;

		file_write(directory->image, at, zeroes, sizeof(zeroes));
		log_capture();
		nand = open_image_ok(directory);
		assert_non_null(strstr(log_captured(), "was damaged and has been repaired"));
		assert_int_equal(read_filled(nand, 0, 1), 0);
		assert_int_equal(nand_close(nand), 0);
		file_read(directory->image, at, repaired, sizeof(repaired));
		assert_memory_equal(repaired, intact, sizeof(intact));
	}
	log_capture();
	assert_int_equal(nand_close(open_image_ok(directory)), 0);
	assert_string_equal(log_captured(), "");
}

static void test_what_is_on_a_device_is_kept_in_both_superblocks(void **state)
{
	struct test_directory *directory = closed_image(state);
	uint8_t first[NAND_HEADER_BYTES], second[NAND_HEADER_BYTES], before[NAND_HEADER_BYTES];
	struct error_text error = { "" };
	struct nand *nand = open_image_ok(directory);

	file_read(directory->image, 0, before, sizeof(before));
	assert_string_equal(nand_contents(nand), "");
	assert_int_equal(nand_set_contents(nand, "123456789012345", &error), 0);
	assert_string_equal(nand_contents(nand), "123456789012345");
	assert_int_equal(nand_set_contents(nand, "1234567890123456", &error), -EINVAL);
	assert_non_null(strstr(error.text, "longer than 15 bytes"));
	assert_int_equal(nand_set_contents(nand, "muninn", &error), 0);
	nand_abandon(nand);
	file_read(directory->image, 0, first, sizeof(first));
	file_read(directory->image, NAND_SUPERBLOCK_SPACING, second, sizeof(second));
	assert_memory_equal(first, second, sizeof(first));

	assert_int_equal(nand_open_read_only(directory->image, &nand, &error), 0);
	assert_string_equal(nand_contents(nand), "muninn");
	assert_int_equal(nand_set_contents(nand, "other", &error), -EROFS);
	nand_abandon(nand);

	/* The process ended between the two copies: the first one holds, the other follows. */
	file_write(directory->image, NAND_SUPERBLOCK_SPACING, before, sizeof(before));
	nand = open_image_ok(directory);
	assert_string_equal(nand_contents(nand), "muninn");
	assert_int_equal(nand_close(nand), 0);
	file_read(directory->image, NAND_SUPERBLOCK_SPACING, second, sizeof(second));
	assert_memory_equal(first, second, sizeof(first));
}

static void test_superblocks_of_two_images(void **state)
{
	struct test_directory *directory = closed_image(state);

	patch_header(directory->image, NAND_SUPERBLOCK_SPACING, 16, 0x12345678);
	assert_refused(directory, WORDS("of different images", "partly overwritten"));
}

static void test_a_truncated_image(void **state)
{
	struct test_directory *directory = closed_image(state);
	uint64_t bytes = file_bytes(directory->image);
	char expected[64];

	assert_int_equal(truncate(directory->image, (off_t)bytes - 1), 0);
	snprintf(expected, sizeof(expected), "it has %llu bytes and needs %llu",
		 (unsigned long long)bytes - 1, (unsigned long long)bytes);
	assert_refused(directory, WORDS("is truncated", expected));
	assert_int_equal(truncate(directory->image, NAND_HEADER_BYTES), 0);
	assert_refused(directory, WORDS("is truncated", "it has 4096 bytes"));
	assert_int_equal(truncate(directory->image, 100), 0);
	assert_refused(directory, WORDS("superblock"));
}

static void test_an_interrupted_creation(void **state)
{
	struct test_directory *directory = closed_image(state);

	patch_header(directory->image, 0, 12, NAND_IMAGE_CREATING);
	patch_header(directory->image, NAND_SUPERBLOCK_SPACING, 12, NAND_IMAGE_CREATING);
	assert_refused(directory, WORDS("its creation was interrupted", "delete it and",
					directory->nvram, "create it again"));
	assert_int_equal(truncate(directory->image, NAND_HEADER_BYTES), 0);
	assert_int_equal(unlink(directory->nvram), 0);
	assert_refused(directory, WORDS("its creation was interrupted"));
}

static void test_a_creation_cut_off_between_the_superblocks_is_complete(void **state)
{
	struct test_directory *directory = closed_image(state);
	struct nand *nand;

	patch_header(directory->image, NAND_SUPERBLOCK_SPACING, 12, NAND_IMAGE_CREATING);
	nand = open_image_ok(directory);
	assert_int_equal(read_filled(nand, 0, 1), 0);
	assert_int_equal(nand_close(nand), 0);
}

static void test_nvram_missing(void **state)
{
	struct test_directory *directory = closed_image(state);

	assert_int_equal(unlink(directory->nvram), 0);
	assert_refused(directory,
		       WORDS(directory->nvram, "is missing", "cannot be opened without it"));
}

static void test_nvram_foreign_damaged_or_of_another_version(void **state)
{
	struct test_directory *directory = closed_image(state);
	uint8_t intact[NAND_HEADER_BYTES];

	file_read(directory->nvram, 0, intact, sizeof(intact));
	file_write(directory->nvram, 0, "whatever", 8);
	assert_refused(directory, WORDS(directory->nvram, "is not a Muninn NVRAM file"));
	file_write(directory->nvram, 0, intact, sizeof(intact));
	file_flip(directory->nvram, 2000, 1);
	assert_refused(directory, WORDS(directory->nvram, "its header", "is damaged"));
	file_write(directory->nvram, 0, intact, sizeof(intact));
	patch_header(directory->nvram, 0, 8, 2);
	assert_refused(directory,
		       WORDS(directory->nvram, "NVRAM format version 2", "version 3 only"));
	file_write(directory->nvram, 0, intact, sizeof(intact));
	assert_int_equal(nand_close(open_image_ok(directory)), 0);
}

static void test_nvram_of_another_image(void **state)
{
	struct test_directory *directory = closed_image(state);

	patch_header(directory->nvram, 0, 16, 0xABCDEF01);
	assert_refused(directory, WORDS(directory->nvram, "belongs to another image"));
}

static void test_nvram_of_the_wrong_size(void **state)
{
	struct test_directory *directory = closed_image(state);
	char expected[64];

	snprintf(expected, sizeof(expected), "it has %d bytes and must have %d", 4096 + 10,
		 4096 + 10000);
	assert_int_equal(truncate(directory->nvram, 4096 + 10), 0);
	assert_refused(directory, WORDS(directory->nvram, "wrong size", expected));
	assert_int_equal(truncate(directory->nvram, 4096 + TEST_NVRAM_BYTES), 0);
	patch_header(directory->nvram, 0, 32, TEST_NVRAM_BYTES + 1);
	assert_refused(directory, WORDS(directory->nvram, "wrong size"));
}

static void test_damaged_block_states_are_reported_and_cost_only_their_blocks(void **state)
{
	struct test_directory *directory = *state;
	struct nand *nand = create_image(directory);

	for (uint64_t page = 0; page < 128; page += 8)
		assert_int_equal(program_filled(nand, page, 1), 0);
	assert_int_equal(nand_close(nand), 0);
	file_flip(directory->image, 65536 + 8 * 5 + 2, 0x10);
	file_flip(directory->image, 65536 + 8 * 9 + 7, 0x80);
	log_capture();
	nand = open_image_ok(directory);
	assert_non_null(
		strstr(log_captured(), "state of 2 blocks is damaged, the first is block 5"));
	for (uint64_t page = 0; page < 128; page += 8)
		assert_int_equal(read_filled(nand, page, 1),
				 page / 8 == 5 || page / 8 == 9 ? -EBADMSG : 0);
	assert_int_equal(nand_close(nand), 0);
}

/* Whoever serves the image reports it. */
static void test_who_only_looks_at_an_image_reports_no_damaged_block_states(void **state)
{
	const struct nand_options look = { .read_only = true, .only_looks = true };
	struct test_directory *directory = *state;
	struct nand *nand = create_image(directory);

	assert_int_equal(nand_close(nand), 0);
	file_flip(directory->image, 65536 + 8 * 5 + 2, 0x10);
	log_capture();
	assert_int_equal(nand_open_with(directory->image, &look, &nand, NULL), 0);
	assert_string_equal(log_captured(), "");
	nand_abandon(nand);
}

/* ---- lock ---- */

static void test_an_open_image_cannot_be_opened_again(void **state)
{
	struct test_directory *directory = *state;
	struct nand *nand = create_image(directory);
	char holder[64];

	snprintf(holder, sizeof(holder), "is in use by process %ld", (long)getpid());
	assert_open_fails(directory, -EBUSY, WORDS(directory->image, holder));
	assert_int_equal(program_filled(nand, 0, 1), 0);
	assert_int_equal(nand_close(nand), 0);
	assert_int_equal(nand_close(open_image_ok(directory)), 0);
}

static void test_the_lock_ends_with_its_holder(void **state)
{
	struct test_directory *directory = closed_image(state);
	int ready[2];
	char byte, holder[64];
	int status;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		struct nand *nand;

		byte = nand_open(directory->image, &nand, NULL) == 0;
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	assert_true(child > 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, 1);
	snprintf(holder, sizeof(holder), "is in use by process %ld", (long)child);
	assert_open_fails(directory, -EBUSY, WORDS(holder));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(nand_close(open_image_ok(directory)), 0);
}

static void test_a_refused_or_abandoned_open_leaves_no_lock(void **state)
{
	struct test_directory *directory = closed_image(state);

	file_flip(directory->nvram, 100, 1);
	assert_open_fails(directory, -EINVAL, WORDS("is damaged"));
	file_flip(directory->nvram, 100, 1);
	nand_abandon(open_image_ok(directory));
	assert_int_equal(nand_close(open_image_ok(directory)), 0);
}

/* ---- read-only ---- */

static void test_read_only_reads_beside_the_holder_and_changes_nothing(void **state)
{
	struct test_directory *directory = closed_image(state);
	struct nand *holder = open_image_ok(directory);
	uint32_t image_crc = file_crc(directory->image), nvram_crc = file_crc(directory->nvram);
	uint8_t data[4096] = { 0 };
	struct nand_page_io io = { 1, data, NULL };
	struct nand *nand;

	assert_int_equal(nand_open_read_only(directory->image, &nand, NULL), 0);
	assert_int_equal(read_filled(nand, 0, 1), 0);
	assert_int_equal(nand_program(nand, NAND_CAUSE_USER, &io, 1), -EROFS);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), -EROFS);
	assert_int_equal(nand_mark_bad(nand, 0), -EROFS);
	assert_int_equal(nand_sync(nand, 0, 16), 0);
	assert_int_equal(*(uint8_t *)nand_nvram(nand, NULL), 0x5A);
	memset(nand_nvram(nand, NULL), 1, TEST_NVRAM_BYTES);
	assert_int_equal(nand_nvram_sync(nand, 0, TEST_NVRAM_BYTES), 0);
	assert_int_equal(program_filled(holder, 1, 1), 0);
	assert_int_equal(read_filled(nand, 1, 1), 0);
	assert_int_equal(nand_erase(holder, NAND_CAUSE_USER, 0), 0);
	assert_int_equal(read_filled(nand, 1, 1), -ENODATA);
	assert_int_equal(nand_close(nand), 0);
	assert_int_equal(nand_close(holder), 0);
	assert_int_equal(file_crc(directory->nvram), nvram_crc);
	assert_true(file_crc(directory->image) != image_crc);
}

static void test_read_only_does_not_repair(void **state)
{
	struct test_directory *directory = closed_image(state);
	uint32_t crc;
	struct nand *nand;

	file_flip(directory->image, 50, 1);
	crc = file_crc(directory->image);
	assert_int_equal(nand_open_read_only(directory->image, &nand, NULL), 0);
	assert_int_equal(nand_close(nand), 0);
	assert_int_equal(file_crc(directory->image), crc);
}

#define IN_DIRECTORY(test) \
	cmocka_unit_test_setup_teardown(test, directory_setup, directory_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIRECTORY(test_a_closed_image_opens_with_all_that_was_in_it),
		IN_DIRECTORY(test_no_image),
		IN_DIRECTORY(test_a_foreign_file),
		IN_DIRECTORY(test_what_is_no_regular_file),
		IN_DIRECTORY(test_another_version),
		IN_DIRECTORY(test_what_is_on_a_device_is_kept_in_both_superblocks),
		IN_DIRECTORY(test_both_superblocks_damaged),
		IN_DIRECTORY(test_either_superblock_alone_is_enough_and_repairs_the_other),
		IN_DIRECTORY(test_superblocks_of_two_images),
		IN_DIRECTORY(test_a_truncated_image),
		IN_DIRECTORY(test_an_interrupted_creation),
		IN_DIRECTORY(test_a_creation_cut_off_between_the_superblocks_is_complete),
		IN_DIRECTORY(test_nvram_missing),
		IN_DIRECTORY(test_nvram_foreign_damaged_or_of_another_version),
		IN_DIRECTORY(test_nvram_of_another_image),
		IN_DIRECTORY(test_nvram_of_the_wrong_size),
		IN_DIRECTORY(test_damaged_block_states_are_reported_and_cost_only_their_blocks),
		IN_DIRECTORY(test_who_only_looks_at_an_image_reports_no_damaged_block_states),
		IN_DIRECTORY(test_an_open_image_cannot_be_opened_again),
		IN_DIRECTORY(test_the_lock_ends_with_its_holder),
		IN_DIRECTORY(test_a_refused_or_abandoned_open_leaves_no_lock),
		IN_DIRECTORY(test_read_only_reads_beside_the_holder_and_changes_nothing),
		IN_DIRECTORY(test_read_only_does_not_repair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
