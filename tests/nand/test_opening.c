/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * An image and its NVRAM file are of the same time, or opening says which is older and when each
 * was last opened. What a process or a host can leave by itself is never refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "nand/opening.h"
#include "tests/nand/fixture.h"

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

#define WHOLE_BYTES_MAX (4u << 20)

/* ---- files as they are at some time ---- */

struct copy {
	uint8_t bytes[WHOLE_BYTES_MAX];
	size_t length;
};

static struct copy image, nvram, header;

static void keep(const char *path, struct copy *copy)
{
	copy->length = (size_t)file_bytes(path);
	assert_true(copy->length <= WHOLE_BYTES_MAX);
	file_read(path, 0, copy->bytes, copy->length);
}

static void put_back(const char *path, const struct copy *copy)
{
	file_write(path, 0, copy->bytes, copy->length);
}

/* Opens as an engine does, changes something, and ends in good order or as if killed. */
static void use(const struct test_directory *directory, uint32_t page, bool killed)
{
	struct nand *nand = open_image_ok(directory);

	nand_note_opening(nand);
	assert_int_equal(program_filled(nand, page, 1), 0);
	memset(nand_nvram(nand, NULL), (int)page, TEST_NVRAM_BYTES);
	if (killed)
		nand_abandon(nand);
	else
		assert_int_equal(nand_close(nand), 0);
}

static struct test_directory *used_image(void **state)
{
	struct test_directory *directory = *state;

	assert_int_equal(nand_close(create_image(directory)), 0);
	use(directory, 0, false);
	keep(directory->image, &image);
	keep(directory->nvram, &nvram);
	return directory;
}

static void assert_refused(const struct test_directory *directory, const char *const *fragments)
{
	uint32_t of_image = file_crc(directory->image), of_nvram = file_crc(directory->nvram);

	assert_open_fails(directory, -EINVAL, fragments);
	assert_int_equal(file_crc(directory->image), of_image);
	assert_int_equal(file_crc(directory->nvram), of_nvram);
}

static void assert_opens(const struct test_directory *directory)
{
	assert_int_equal(nand_close(open_image_ok(directory)), 0);
}

/* ---- what somebody has put back ---- */

static void test_an_older_nvram_file_is_refused(void **state)
{
	struct test_directory *directory = used_image(state);

	for (int killed = 0; killed < 2; killed++) {
		use(directory, 1 + (uint32_t)killed, killed);
		keep(directory->nvram, &header);
		put_back(directory->nvram, &nvram);
		assert_refused(directory, WORDS(directory->nvram, " is older than ",
						directory->image, "last opened 20"));
		put_back(directory->nvram, &header);
		assert_opens(directory);
	}
}

static void test_an_older_image_is_refused(void **state)
{
	struct test_directory *directory = used_image(state);

	for (int killed = 0; killed < 2; killed++) {
		use(directory, 1 + (uint32_t)killed, killed);
		keep(directory->image, &header);
		put_back(directory->image, &image);
		assert_refused(directory,
			       WORDS(directory->nvram, " is newer than ", directory->image));
		put_back(directory->image, &header);
		assert_opens(directory);
	}
}

static void test_both_of_one_time_open(void **state)
{
	struct test_directory *directory = used_image(state);
	struct nand *nand;

	use(directory, 1, false);
	put_back(directory->image, &image);
	put_back(directory->nvram, &nvram);
	nand = open_image_ok(directory);
	assert_int_equal(read_filled(nand, 0, 1), 0);
	assert_int_equal(((uint8_t *)nand_nvram(nand, NULL))[0], 0);
	assert_int_equal(nand_close(nand), 0);
}

/* Two lives that began with the same backup, and the files of which were mixed. */
static void test_files_of_two_lives_with_one_number_are_refused(void **state)
{
	struct test_directory *directory = used_image(state);

	use(directory, 1, false);
	keep(directory->nvram, &header);
	put_back(directory->image, &image);
	put_back(directory->nvram, &nvram);
	use(directory, 1, false);
	put_back(directory->nvram, &header);
	assert_refused(directory, WORDS(" is older than "));
}

/* ---- what a process or a host can leave ---- */

static void set_opening(const char *path, uint64_t at, const struct nand_opening *opening)
{
	uint8_t bytes[NAND_OPENING_BYTES];

	nand_opening_encode(opening, bytes);
	file_write(path, at + NAND_OPENING_AT, bytes, sizeof(bytes));
}

static void test_an_opening_that_ended_between_the_two_files_is_no_error(void **state)
{
	struct test_directory *directory = used_image(state);
	const struct nand_opening begun = { .number = 2, .time_us = 1, .is_under_way = true };

	assert_int_equal(get_le64(image.bytes + NAND_OPENING_AT), 1);
	set_opening(directory->nvram, 0, &begun);
	assert_opens(directory);
	/* It is as good as any. */
	use(directory, 1, true);
	put_back(directory->nvram, &nvram);
	assert_refused(directory, WORDS(" is older than "));
}

/* Nothing has changed: a damaged file of such an image may be replaced by a copy. */
static void test_an_opening_that_was_not_noted_leaves_the_files_as_they_are(void **state)
{
	struct test_directory *directory = used_image(state);
	uint32_t of_image = file_crc(directory->image), of_nvram = file_crc(directory->nvram);

	assert_opens(directory);
	assert_int_equal(file_crc(directory->image), of_image);
	assert_int_equal(file_crc(directory->nvram), of_nvram);
}

static void test_one_superblock_may_be_an_opening_behind(void **state)
{
	struct test_directory *directory = used_image(state);

	use(directory, 1, true);
	for (uint64_t at = 0; at <= NAND_SUPERBLOCK_SPACING; at += NAND_SUPERBLOCK_SPACING) {
		file_write(directory->image, at, image.bytes + at, NAND_HEADER_BYTES);
		assert_opens(directory);
		keep(directory->image, &image);
		use(directory, 2 + (at != 0), true);
	}
}

static void test_a_host_that_did_not_keep_the_end_of_the_opening_is_no_error(void **state)
{
	struct test_directory *directory = used_image(state);
	struct nand_opening opening;

	keep(directory->nvram, &header);
	nand_opening_decode(header.bytes + NAND_OPENING_AT, &opening);
	assert_false(opening.is_under_way);
	opening.is_under_way = true;
	set_opening(directory->nvram, 0, &opening);
	assert_opens(directory);
}

/* Notes an opening instruction by instruction. False: this host does not let us. */
static bool note_by_steps(struct nand *nand, const char *nvram_path, unsigned *steps)
{
	int status, fd = open(nvram_path, O_RDONLY | O_CLOEXEC);
	uint8_t bytes[NAND_OPENING_BYTES];
	struct nand_opening opening;
	pid_t child = fork();

	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0)
			_exit(1);
		nand_note_opening(nand);
		_exit(0);
	}
	assert_true(fd >= 0 && child > 0);
	for (*steps = 0; waitpid(child, &status, 0) == child && WIFSTOPPED(status); ++*steps) {
		assert_int_equal(pread(fd, bytes, sizeof(bytes), NAND_OPENING_AT), sizeof(bytes));
		nand_opening_decode(bytes, &opening);
		if (opening.is_unknown)
			kill(child, SIGKILL);
		assert_false(opening.is_unknown);
		if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) < 0)
			kill(child, SIGKILL);
	}
	close(fd);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Wherever it is killed, the header of the NVRAM is that of before or that of behind. */
static void test_no_instruction_of_an_opening_leaves_half_a_header(void **state)
{
	struct test_directory *directory = used_image(state);
	struct nand *nand = open_image_ok(directory);
	struct nand_opening opening;
	unsigned steps;
	bool whole = note_by_steps(nand, directory->nvram, &steps);

	nand_abandon(nand);
	if (!whole)
		skip();
	assert_true(steps > 10);
	keep(directory->nvram, &header);
	nand_opening_decode(header.bytes + NAND_OPENING_AT, &opening);
	assert_int_equal(opening.number, 2);
	assert_false(opening.is_under_way);
	assert_opens(directory);
}

static void test_files_that_were_never_opened_fit(void **state)
{
	struct test_directory *directory = *state;
	struct nand *nand;
	struct error_text error;

	assert_int_equal(nand_close(create_image(directory)), 0);
	assert_int_equal(nand_open_read_only(directory->image, &nand, &error), 0);
	nand_abandon(nand);
	assert_opens(directory);
}

static void test_a_new_nvram_file_for_a_lost_one_fits(void **state)
{
	struct test_directory *directory = used_image(state);
	struct error_text error;

	assert_int_equal(unlink(directory->nvram), 0);
	assert_int_equal(nand_create_nvram(directory->image, &error), 0);
	assert_opens(directory);
}

/* ---- the bytes ---- */

/* Whichever sectors of a header a torn write leaves, its checksum holds. */
static void test_no_opening_changes_the_checksum_of_a_header(void **state)
{
	struct nand_nvram_header plain = { .nvram_bytes = 1 }, decoded;
	uint8_t bytes[NAND_HEADER_BYTES], without[NAND_HEADER_BYTES];
	uint32_t version;

	(void)state;
	nand_nvram_header_encode(&plain, without);
	for (uint64_t number = 1; number; number <<= 1) {
		struct nand_nvram_header header_of = {
			.nvram_bytes = 1,
			.opening = { .number = number,
				     .time_us = number * 77,
				     .is_under_way = number & 4 },
		};

		nand_nvram_header_encode(&header_of, bytes);
		assert_memory_equal(bytes + NAND_HEADER_BYTES - 4, without + NAND_HEADER_BYTES - 4,
				    4);
		assert_int_equal(nand_nvram_header_decode(bytes, &decoded, &version),
				 NAND_HEADER_VALID);
		assert_int_equal(decoded.opening.number, number);
		assert_int_equal(decoded.opening.time_us, number * 77);
		assert_int_equal(decoded.opening.is_under_way, (number & 4) != 0);
		bytes[NAND_OPENING_AT + number % NAND_OPENING_BYTES] ^= 1;
		nand_opening_decode(bytes + NAND_OPENING_AT, &decoded.opening);
		assert_true(decoded.opening.is_unknown);
		assert_int_equal(nand_nvram_header_decode(bytes, &decoded, &version),
				 NAND_HEADER_CORRUPT);
	}
}

#define with_directory(test) \
	cmocka_unit_test_setup_teardown(test, directory_setup, directory_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_directory(test_an_older_nvram_file_is_refused),
		with_directory(test_an_older_image_is_refused),
		with_directory(test_both_of_one_time_open),
		with_directory(test_files_of_two_lives_with_one_number_are_refused),
		with_directory(test_an_opening_that_ended_between_the_two_files_is_no_error),
		with_directory(test_an_opening_that_was_not_noted_leaves_the_files_as_they_are),
		with_directory(test_one_superblock_may_be_an_opening_behind),
		with_directory(test_a_host_that_did_not_keep_the_end_of_the_opening_is_no_error),
		with_directory(test_no_instruction_of_an_opening_leaves_half_a_header),
		with_directory(test_files_that_were_never_opened_fit),
		with_directory(test_a_new_nvram_file_for_a_lost_one_fits),
		cmocka_unit_test(test_no_opening_changes_the_checksum_of_a_header),
	};

	return RUN_ON_IMAGES(tests, NULL, NULL);
}
