/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A power cut comes at the operation it was armed for, leaves what it says, and nothing works until
 * the power is back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/nand/fixture.h"

#include "nand/inspect.h"
#include "nand/power.h"

/* Pages of 512 + 64 bytes, so that a page can be torn at each of its bytes. */
enum { PAGE_BYTES = 512, SPARE_BYTES = 64, ALL_BYTES = PAGE_BYTES + SPARE_BYTES };

static struct nand *open_tiny(void)
{
	struct nand_geometry geometry = small_geometry;
	struct nand *nand;

	geometry.page_bytes = PAGE_BYTES;
	geometry.spare_bytes = SPARE_BYTES;
	assert_int_equal(nand_open_memory(&geometry, TEST_NVRAM_BYTES, &nand, NULL), 0);
	nand_set_violation_policy(nand, NAND_VIOLATION_FAILS);
	log_capture();
	return nand;
}

static void arm(struct nand *nand, const char *text)
{
	struct error_text error = { "" };
	struct nand_power_cut cut;

	if (nand_power_cut_parse(text, &cut, &error) < 0 ||
	    nand_arm_power_cut(nand, &cut, &error) < 0)
		fail_msg("%s", error.text);
}

static bool is_off(struct nand *nand)
{
	struct nand_power_status status;

	nand_power_status(nand, &status);
	return status.off;
}

static struct nand_block_info info_of(struct nand *nand, uint32_t block)
{
	struct nand_block_info info;

	assert_int_equal(nand_block_info(nand, block, &info), 0);
	return info;
}

/* ---- when ---- */

static void test_the_operation_after_the_nth_is_in_flight(void **state)
{
	struct nand *nand = open_tiny();
	struct nand_power_status status;

	(void)state;
	arm(nand, "after=5");
	assert_int_equal(program_filled(nand, 0, 1), 0);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 3), 0);
	assert_int_equal(nand_sync(nand, 0, 1), 0);
	assert_int_equal(nand_nvram_sync(nand, 0, 1), 0);
	assert_int_equal(nand_power_point(nand), 0);
	nand_power_status(nand, &status);
	assert_true(status.armed && !status.off);
	assert_int_equal(status.operations, 5);
	assert_string_equal(status.in_flight, "");
	assert_int_equal(program_filled(nand, 1, 1), -EIO);
	nand_power_status(nand, &status);
	assert_true(status.off);
	assert_string_equal(status.in_flight, "program of page 1");
	assert_non_null(strstr(log_captured(), "power cut after 5 operations, in the program of "
					       "page 1"));
	nand_abandon(nand);
}

static void test_any_kind_of_operation_can_be_the_one_in_flight(void **state)
{
	struct nand_power_status status;
	static const char *const in_flight[] = { "program of page 1", "erase of block 3",
						 "sync of the image", "sync of the NVRAM",
						 "scenario",          "read of page 0" };

	(void)state;
	for (int kind = 0; kind < 6; kind++) {
		struct nand *nand = open_tiny();
		int result = 0;

		assert_int_equal(program_filled(nand, 0, 1), 0);
		arm(nand, "after=0,reads");
		switch (kind) {
		case 0:
			result = program_filled(nand, 1, 1);
			break;
		case 1:
			result = nand_erase(nand, NAND_CAUSE_USER, 3);
			break;
		case 2:
			result = nand_sync(nand, 0, 1);
			break;
		case 3:
			result = nand_nvram_sync(nand, 0, 1);
			break;
		case 4:
			result = nand_power_point(nand);
			break;
		default:
			result = read_filled(nand, 0, 1);
			break;
		}
		assert_int_equal(result, -EIO);
		nand_power_status(nand, &status);
		assert_string_equal(status.in_flight, in_flight[kind]);
		nand_abandon(nand);
	}
}

static void test_reads_count_only_when_they_are_asked_to(void **state)
{
	struct nand *nand = open_tiny();

	(void)state;
	assert_int_equal(program_filled(nand, 0, 1), 0);
	arm(nand, "after=1");
	for (int i = 0; i < 5; i++)
		assert_int_equal(read_filled(nand, 0, 1), 0);
	arm(nand, "after=1,reads");
	assert_int_equal(read_filled(nand, 0, 1), 0);
	assert_int_equal(read_filled(nand, 0, 1), -EIO);
	nand_abandon(nand);
}

static void test_what_the_rules_refuse_does_not_count(void **state)
{
	struct nand *nand = open_tiny();
	struct nand_power_status status;

	(void)state;
	arm(nand, "after=0,reads");
	assert_int_equal(program_filled(nand, 5, 1), -EPERM);
	assert_int_equal(program_filled(nand, 5000, 1), -ERANGE);
	assert_int_equal(read_filled(nand, 0, 1), -ENODATA);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 16), -ERANGE);
	assert_int_equal(nand_nvram_sync(nand, 1, TEST_NVRAM_BYTES), -ERANGE);
	nand_power_status(nand, &status);
	assert_true(status.armed && !status.off);
	nand_abandon(nand);
}

static void test_without_power_everything_fails_and_nothing_changes(void **state)
{
	struct nand *nand = open_tiny();
	struct nand_block_info info;
	struct nand_counters before, after;

	(void)state;
	assert_int_equal(program_filled(nand, 0, 1), 0);
	arm(nand, "after=0");
	assert_int_equal(nand_power_point(nand), -EIO);
	nand_read_counters(nand, &before);
	assert_int_equal(program_filled(nand, 1, 1), -EIO);
	assert_int_equal(read_filled(nand, 0, 1), -EIO);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), -EIO);
	assert_int_equal(nand_sync(nand, 0, 1), -EIO);
	assert_int_equal(nand_nvram_sync(nand, 0, 1), -EIO);
	assert_int_equal(nand_power_point(nand), -EIO);
	assert_int_equal(nand_block_info(nand, 0, &info), -EIO);
	assert_int_equal(nand_mark_bad(nand, 1), -EIO);
	assert_int_equal(nand_arm_power_cut(nand, &(struct nand_power_cut){ 0 }, NULL), -EIO);
	nand_disarm_power_cut(nand);
	assert_true(is_off(nand));
	nand_read_counters(nand, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(nand_power_on(nand), 0);
	assert_int_equal(read_filled(nand, 0, 1), 0);
	assert_int_equal(info_of(nand, 0).next_page, 1);
	assert_int_equal(info_of(nand, 1).state, NAND_BLOCK_GOOD);
	assert_int_equal(program_filled(nand, 1, 1), 0);
	assert_int_equal(nand_close(nand), 0);
}

static void test_a_cut_can_be_taken_back_and_armed_again(void **state)
{
	struct nand *nand = open_tiny();

	(void)state;
	arm(nand, "after=1");
	assert_int_equal(program_filled(nand, 0, 1), 0);
	nand_disarm_power_cut(nand);
	assert_int_equal(program_filled(nand, 1, 1), 0);
	arm(nand, "after=2");
	assert_int_equal(program_filled(nand, 2, 1), 0);
	assert_int_equal(program_filled(nand, 3, 1), 0);
	assert_int_equal(program_filled(nand, 4, 1), -EIO);
	assert_int_equal(nand_close(nand), -EIO);
}

/* ---- what is left of the page ---- */

static void test_an_absent_page_can_be_programmed_after(void **state)
{
	struct nand *nand = open_tiny();

	(void)state;
	arm(nand, "after=0,page=absent");
	assert_int_equal(program_filled(nand, 0, 1), -EIO);
	assert_int_equal(nand_power_on(nand), 0);
	assert_int_equal(read_filled(nand, 0, 1), -ENODATA);
	assert_int_equal(program_filled(nand, 0, 2), 0);
	assert_int_equal(read_filled(nand, 0, 2), 0);
	nand_abandon(nand);
}

/* A dump tells where, unless the tear is in the seal. */
static void expect_dump_of_torn(struct nand *nand, uint32_t torn, const uint8_t *expected)
{
	struct nand_page_dump dump;

	assert_int_equal(nand_dump_page(nand, 1, &dump), 0);
	if (torn <= ALL_BYTES - NAND_SPARE_RESERVED) {
		/* What was programmed and looks as if it was not does not count. */
		while (torn && expected[torn - 1] == 0xFF)
			torn--;
		assert_true(dump.is_torn);
		assert_int_equal(dump.torn_bytes, torn);
	} else if (torn == ALL_BYTES) {
		assert_false(dump.is_torn);
	}
	nand_page_dump_free(&dump);
}

static void test_a_page_can_be_torn_at_any_byte_and_is_never_returned(void **state)
{
	(void)state;
	for (uint32_t torn = 0; torn <= ALL_BYTES; torn++) {
		struct nand *nand = open_tiny();
		uint8_t expected[ALL_BYTES], found[ALL_BYTES];
		char text[64];

		snprintf(text, sizeof(text), "after=1,page=torn,torn=%u", torn);
		arm(nand, text);
		assert_int_equal(program_filled(nand, 0, 1), 0);
		assert_int_equal(program_filled(nand, 1, 1), -EIO);
		assert_int_equal(nand_power_on(nand), 0);
		assert_int_equal(read_filled(nand, 0, 1), 0);
		assert_int_equal(info_of(nand, 0).next_page, 2);
		assert_int_equal(read_filled(nand, 1, 1), torn == ALL_BYTES ? 0 : -EBADMSG);
		assert_int_equal(program_filled(nand, 1, 1), -EPERM);

		nand->backend->read(nand, 1, found, found + PAGE_BYTES);
		fill_page(nand, 1, 1, expected, expected + PAGE_BYTES);
		for (uint32_t i = 0; i < ALL_BYTES - NAND_SPARE_RESERVED; i++)
			assert_int_equal(found[i], i < torn ? expected[i] : 0xFF);
		expect_dump_of_torn(nand, torn, expected);
		nand_abandon(nand);
	}
}

static void test_garbage_is_never_returned_and_comes_from_the_seed(void **state)
{
	uint8_t found[3][ALL_BYTES];
	static const char *const texts[] = { "after=0,page=garbage,seed=5",
					     "after=0,page=garbage,seed=5",
					     "after=0,page=garbage,seed=6" };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct nand *nand = open_tiny();

		arm(nand, texts[i]);
		assert_int_equal(program_filled(nand, 0, 1), -EIO);
		assert_int_equal(nand_power_on(nand), 0);
		assert_int_equal(read_filled(nand, 0, 1), -EBADMSG);
		nand->backend->read(nand, 0, found[i], found[i] + PAGE_BYTES);
		nand_abandon(nand);
	}
	assert_memory_equal(found[0], found[1], ALL_BYTES);
	assert_memory_not_equal(found[0], found[2], ALL_BYTES);
}

/* ---- what is left of the block ---- */

static struct nand *cut_in_erase(const char *text)
{
	struct nand *nand = open_tiny();

	for (uint64_t page = 0; page < 6; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	arm(nand, text);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), -EIO);
	assert_int_equal(nand_power_on(nand), 0);
	return nand;
}

static void test_an_absent_erase_leaves_the_block_as_it_was(void **state)
{
	struct nand *nand = cut_in_erase("after=0,erase=absent");

	(void)state;
	for (uint64_t page = 0; page < 6; page++)
		assert_int_equal(read_filled(nand, page, 1), 0);
	assert_int_equal(info_of(nand, 0).erase_count, 0);
	nand_abandon(nand);
}

static void test_an_erase_half_done_leaves_some_pages_and_needs_another_erase(void **state)
{
	struct nand *nand = cut_in_erase("after=0,erase=half");
	int lost = 0;

	(void)state;
	for (uint64_t page = 0; page < 6; page++) {
		int result = read_filled(nand, page, 1);

		assert_true(result == 0 || result == -EBADMSG);
		lost += result == -EBADMSG;
	}
	assert_in_range(lost, 1, 5);
	assert_int_equal(info_of(nand, 0).next_page, 6);
	assert_int_equal(program_filled(nand, 0, 2), -EPERM);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), 0);
	assert_int_equal(program_filled(nand, 0, 2), 0);
	assert_int_equal(read_filled(nand, 0, 2), 0);
	nand_abandon(nand);
}

static void test_an_erase_done_leaves_the_block_erased(void **state)
{
	struct nand *nand = cut_in_erase("after=0,erase=done");

	(void)state;
	assert_int_equal(info_of(nand, 0).next_page, 0);
	assert_int_equal(info_of(nand, 0).erase_count, 1);
	assert_int_equal(read_filled(nand, 0, 1), -ENODATA);
	assert_int_equal(program_filled(nand, 0, 2), 0);
	nand_abandon(nand);
}

/* ---- what is left of the NVRAM ---- */

/*
 * 0x11 in all of it when the cut is armed; 0x22 in all of it, its first half flushed; 0x33 in all
 * of it, not flushed; the cut; 0x44 in all of it, by a program that has not noticed.
 */
static void store_and_cut(struct nand *nand, const char *text)
{
	uint8_t *nvram = nand_nvram(nand, NULL);

	memset(nvram, 0x11, TEST_NVRAM_BYTES);
	arm(nand, text);
	memset(nvram, 0x22, TEST_NVRAM_BYTES);
	assert_int_equal(nand_nvram_sync(nand, 0, TEST_NVRAM_BYTES / 2), 0);
	memset(nvram, 0x33, TEST_NVRAM_BYTES);
	assert_int_equal(nand_power_point(nand), -EIO);
	assert_int_equal(nvram[0], 0x33);
	memset(nvram, 0x44, TEST_NVRAM_BYTES);
}

static void check_nvram(const uint8_t *nvram, enum nand_cut_nvram mode)
{
	uint32_t new_bytes = 0;

	for (uint32_t i = 0; i < TEST_NVRAM_BYTES; i++) {
		uint8_t flushed = i < TEST_NVRAM_BYTES / 2 ? 0x22 : 0x11;

		switch (mode) {
		case NAND_CUT_NVRAM_KEPT:
			assert_int_equal(nvram[i], 0x33);
			break;
		case NAND_CUT_NVRAM_LOST:
			assert_int_equal(nvram[i], 0);
			break;
		case NAND_CUT_NVRAM_FLUSHED:
			assert_int_equal(nvram[i], flushed);
			break;
		default:
			assert_true(nvram[i] == 0x33 || nvram[i] == flushed);
			assert_int_equal(nvram[i] == 0x33, nvram[i / 4096 * 4096] == 0x33);
			new_bytes += nvram[i] == 0x33;
			break;
		}
	}
	if (mode == NAND_CUT_NVRAM_MIXED)
		assert_in_range(new_bytes, 1, TEST_NVRAM_BYTES - 1);
}

static const char *const nvram_cuts[NAND_CUT_NVRAMS] = {
	"after=1,nvram=kept",
	"after=1,nvram=lost",
	"after=1,nvram=flushed",
	"after=1,nvram=mixed,seed=3",
};

static void test_nvram_in_memory_is_left_as_the_cut_says(void **state)
{
	(void)state;
	for (int mode = 0; mode < NAND_CUT_NVRAMS; mode++) {
		struct nand *nand = open_tiny();
		uint8_t *nvram = nand_nvram(nand, NULL);

		store_and_cut(nand, nvram_cuts[mode]);
		assert_int_equal(nand_power_on(nand), 0);
		assert_ptr_equal(nand_nvram(nand, NULL), nvram);
		check_nvram(nvram, mode);
		nand_abandon(nand);
	}
}

static void test_nvram_of_an_image_is_left_as_the_cut_says_however_the_process_ends(void **state)
{
	const struct test_directory *directory = *state;

	assert_int_equal(nand_close(create_image(directory)), 0);
	for (int mode = 0; mode < NAND_CUT_NVRAMS; mode++) {
		for (int ending = 0; ending < 3; ending++) {
			struct nand *nand = open_image_ok(directory);

			store_and_cut(nand, nvram_cuts[mode]);
			if (ending == 0) {
				assert_int_equal(nand_power_on(nand), 0);
				check_nvram(nand_nvram(nand, NULL), mode);
			}
			if (ending == 1)
				assert_int_equal(nand_close(nand), -EIO);
			else
				nand_abandon(nand);
			nand = open_image_ok(directory);
			check_nvram(nand_nvram(nand, NULL), mode);
			assert_int_equal(nand_close(nand), 0);
		}
	}
}

static void test_nvram_is_stored_to_the_image_again_when_the_power_is_back(void **state)
{
	const struct test_directory *directory = *state;
	struct nand *nand = create_image(directory);
	uint8_t *nvram = nand_nvram(nand, NULL);

	store_and_cut(nand, nvram_cuts[NAND_CUT_NVRAM_LOST]);
	assert_int_equal(nand_power_on(nand), 0);
	nvram[7] = 0x77;
	nand_abandon(nand);
	nand = open_image_ok(directory);
	nvram = nand_nvram(nand, NULL);
	assert_int_equal(nvram[7], 0x77);
	assert_int_equal(nand_close(nand), 0);
}

static void test_a_sync_in_flight_has_stored_nothing(void **state)
{
	struct nand *nand = open_tiny();
	uint8_t *nvram = nand_nvram(nand, NULL);

	(void)state;
	arm(nand, "after=0,nvram=flushed");
	nvram[0] = 1;
	assert_int_equal(nand_nvram_sync(nand, 0, 1), -EIO);
	assert_int_equal(nand_power_on(nand), 0);
	assert_int_equal(nvram[0], 0);
	nand_abandon(nand);
}

/* ---- other back ends ---- */

static struct nand *open_by_file(const struct test_directory *directory)
{
	const struct nand_options options = { .backend = NAND_BACKEND_FILE, .io = NAND_IO_THREADS };
	struct error_text error = { "" };
	struct nand *nand;

	if (nand_open_with(directory->image, &options, &nand, &error) < 0)
		fail_msg("%s", error.text);
	nand_set_violation_policy(nand, NAND_VIOLATION_FAILS);
	return nand;
}

static void test_the_file_back_end_loses_its_power_too(void **state)
{
	const struct test_directory *directory = *state;
	struct nand *nand;

	assert_int_equal(nand_close(create_image(directory)), 0);
	nand = open_by_file(directory);
	arm(nand, "after=3,page=torn,torn=1000");
	for (uint64_t page = 0; page < 3; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	assert_int_equal(program_filled(nand, 3, 1), -EIO);
	assert_int_equal(read_filled(nand, 0, 1), -EIO);
	nand_abandon(nand);
	nand = open_image_ok(directory);
	for (uint64_t page = 0; page < 3; page++)
		assert_int_equal(read_filled(nand, page, 1), 0);
	assert_int_equal(read_filled(nand, 3, 1), -EBADMSG);
	assert_int_equal(nand_close(nand), 0);
}

/* Of a call of several pages, which share sectors of the drive. */
static void test_the_file_back_end_leaves_the_pages_before_the_one_in_flight(void **state)
{
	const struct test_directory *directory = *state;
	uint8_t data[8][4096], spares[8][128];
	struct nand_page_io pages[8];
	struct nand *nand;

	assert_int_equal(nand_close(create_image(directory)), 0);
	nand = open_by_file(directory);
	for (uint64_t page = 0; page < 8; page++) {
		fill_page(nand, page, 1, data[page], spares[page]);
		pages[page] = (struct nand_page_io){ page, data[page], spares[page] };
	}
	/* Programmed to its last byte: it can be read, too. */
	arm(nand, "after=5,page=torn,torn=4224");
	assert_int_equal(nand_program(nand, NAND_CAUSE_USER, pages, 8), -EIO);
	nand_abandon(nand);
	nand = open_image_ok(directory);
	assert_int_equal(info_of(nand, 0).next_page, 6);
	for (uint64_t page = 0; page < 6; page++)
		assert_int_equal(read_filled(nand, page, 1), 0);
	assert_int_equal(nand_close(nand), 0);
}

/* Which pages of a block can be read after half an erase; a bit each. */
static uint32_t kept_by_half_an_erase(struct nand *nand)
{
	uint32_t kept = 0;

	for (uint64_t page = 0; page < 8; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	arm(nand, "after=0,erase=half,seed=3");
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), -EIO);
	assert_int_equal(nand_power_on(nand), 0);
	for (uint64_t page = 0; page < 8; page++)
		kept |= read_filled(nand, page, 1) == 0 ? 1U << page : 0;
	nand_abandon(nand);
	return kept;
}

static void test_half_an_erase_leaves_the_same_pages_by_the_file_back_end(void **state)
{
	const struct test_directory *directory = *state;
	struct nand *memory;
	uint32_t kept;

	log_capture();
	assert_int_equal(nand_open_memory(&small_geometry, TEST_NVRAM_BYTES, &memory, NULL), 0);
	kept = kept_by_half_an_erase(memory);
	assert_true(kept != 0 && kept != 0xFF);
	assert_int_equal(nand_close(create_image(directory)), 0);
	assert_int_equal(kept_by_half_an_erase(open_by_file(directory)), kept);
}

static void test_the_headers_back_end_loses_its_power_too(void **state)
{
	static const char *const cuts[] = { "after=6,page=torn,torn=1000", "after=6,page=garbage",
					    "after=6,page=absent" };
	static const char *const erases[] = { "after=0,erase=half", "after=0,erase=done" };
	struct nand *nand;

	(void)state;
	log_capture();
	for (size_t i = 0; i < 6; i++) {
		int lost = 0;

		assert_int_equal(nand_open_headers(&small_geometry, 0, NULL, &nand, NULL), 0);
		nand_set_violation_policy(nand, NAND_VIOLATION_FAILS);
		arm(nand, cuts[i / 2]);
		for (uint64_t page = 0; page < 6; page++)
			assert_int_equal(program_filled(nand, page, 1), 0);
		assert_int_equal(program_filled(nand, 6, 1), -EIO);
		assert_int_equal(nand_power_on(nand), 0);
		for (uint64_t page = 0; page < 6; page++)
			assert_int_equal(read_filled(nand, page, 1), 0);
		assert_int_equal(read_filled(nand, 6, 1), i / 2 == 2 ? -ENODATA : -EBADMSG);

		arm(nand, erases[i % 2]);
		assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), -EIO);
		assert_int_equal(nand_power_on(nand), 0);
		for (uint64_t page = 0; page < 6; page++)
			lost += read_filled(nand, page, 1) < 0;
		assert_in_range(lost, i % 2 ? 6 : 1, i % 2 ? 6 : 5);
		if (i % 2 == 0)
			assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), 0);
		for (uint64_t page = 0; page < 8; page++)
			assert_int_equal(program_filled(nand, page, 2), 0);
		for (uint64_t page = 0; page < 8; page++)
			assert_int_equal(read_filled(nand, page, 2), 0);
		nand_abandon(nand);
	}
}

/* ---- left for the next process ---- */

static char *cut_path(const struct test_directory *directory)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s.cut", directory->image);
	return path;
}

static void test_a_cut_left_beside_an_image_is_for_one_opening(void **state)
{
	const struct test_directory *directory = *state;
	struct error_text error = { "" };
	struct nand *nand = create_image(directory);

	assert_int_equal(nand_close(nand), 0);
	assert_int_equal(nand_leave_power_cut(directory->image, "after=1,page=garbage", &error), 0);
	assert_int_equal(nand_leave_power_cut(directory->image, "after=2,page=garbage", &error), 0);
	assert_true(file_exists(cut_path(directory)));

	assert_int_equal(nand_open_read_only(directory->image, &nand, &error), 0);
	assert_int_equal(nand_close(nand), 0);
	assert_true(file_exists(cut_path(directory)));

	nand = open_image_ok(directory);
	assert_false(file_exists(cut_path(directory)));
	assert_int_equal(program_filled(nand, 0, 1), 0);
	assert_int_equal(program_filled(nand, 1, 1), 0);
	assert_int_equal(program_filled(nand, 2, 1), -EIO);
	assert_int_equal(nand_close(nand), -EIO);

	nand = open_image_ok(directory);
	assert_int_equal(read_filled(nand, 1, 1), 0);
	assert_int_equal(read_filled(nand, 2, 1), -EBADMSG);
	for (uint64_t page = 3; page < 8; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	assert_int_equal(nand_close(nand), 0);
}

static void test_a_cut_left_can_be_taken_back(void **state)
{
	const struct test_directory *directory = *state;
	struct error_text error = { "" };
	struct nand *nand = create_image(directory);

	assert_int_equal(nand_close(nand), 0);
	assert_int_equal(nand_leave_power_cut(directory->image, NULL, &error), -ENOENT);
	assert_non_null(strstr(error.text, "no power cut was left"));
	assert_int_equal(nand_leave_power_cut(directory->image, "after=0", &error), 0);
	assert_int_equal(nand_leave_power_cut(directory->image, NULL, &error), 0);
	nand = open_image_ok(directory);
	assert_int_equal(program_filled(nand, 0, 1), 0);
	assert_int_equal(nand_close(nand), 0);
}

static void test_a_cut_that_makes_no_sense_is_neither_left_nor_opened(void **state)
{
	const struct test_directory *directory = *state;
	struct error_text error = { "" };
	struct nand *nand = create_image(directory);

	assert_int_equal(nand_close(nand), 0);
	assert_int_equal(nand_leave_power_cut(directory->image, "after=x", &error), -EINVAL);
	assert_false(file_exists(cut_path(directory)));
	assert_int_equal(nand_leave_power_cut("/nonexistent/image", "after=1", &error), -ENOENT);

	assert_int_equal(nand_leave_power_cut(directory->image, "after=1", &error), 0);
	file_write(cut_path(directory), 0, "AFTER", 5);
	assert_open_fails(directory, -EINVAL,
			  (const char *const[]){ "power cut", "'AFTER'", NULL });
	/* It was taken all the same: the next opening goes well. */
	assert_int_equal(nand_close(open_image_ok(directory)), 0);
}

static void test_cuts_as_text_say_what_is_wrong_with_them(void **state)
{
	static const struct {
		const char *text, *fragment;
	} cases[] = {
		{ "", "after=N is missing" },
		{ "page=torn", "after=N is missing" },
		{ "after=-1", "after is '-1'" },
		{ "after=1,page=half", "must be absent, torn or garbage" },
		{ "after=1,nvram=gone", "must be kept, lost, flushed or mixed" },
		{ "after=1,erase=", "must be absent, half or done" },
		{ "after=1,now", "there is no setting 'now'" },
	};
	struct nand_power_cut cut = { 0 }, again = { 0 };
	char text[NAND_POWER_CUT_TEXT];
	struct error_text error;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(nand_power_cut_parse(cases[i].text, &cut, &error), -EINVAL);
		if (!strstr(error.text, cases[i].fragment))
			fail_msg("\"%s\" is not in \"%s\"", cases[i].fragment, error.text);
	}
	assert_int_equal(nand_power_cut_parse("after=12,reads,page=torn,torn=7,erase=done,"
					      "nvram=mixed,seed=99",
					      &cut, NULL),
			 0);
	assert_int_equal(nand_power_cut_parse(nand_power_cut_format(&cut, text), &again, NULL), 0);
	assert_memory_equal(&cut, &again, sizeof(cut));
}

#define IN_DIRECTORY(test) \
	cmocka_unit_test_setup_teardown(test, directory_setup, directory_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_operation_after_the_nth_is_in_flight),
		cmocka_unit_test(test_any_kind_of_operation_can_be_the_one_in_flight),
		cmocka_unit_test(test_reads_count_only_when_they_are_asked_to),
		cmocka_unit_test(test_what_the_rules_refuse_does_not_count),
		cmocka_unit_test(test_without_power_everything_fails_and_nothing_changes),
		cmocka_unit_test(test_a_cut_can_be_taken_back_and_armed_again),
		cmocka_unit_test(test_an_absent_page_can_be_programmed_after),
		cmocka_unit_test(test_a_page_can_be_torn_at_any_byte_and_is_never_returned),
		cmocka_unit_test(test_garbage_is_never_returned_and_comes_from_the_seed),
		cmocka_unit_test(test_an_absent_erase_leaves_the_block_as_it_was),
		cmocka_unit_test(test_an_erase_half_done_leaves_some_pages_and_needs_another_erase),
		cmocka_unit_test(test_an_erase_done_leaves_the_block_erased),
		cmocka_unit_test(test_nvram_in_memory_is_left_as_the_cut_says),
		IN_DIRECTORY(
			test_nvram_of_an_image_is_left_as_the_cut_says_however_the_process_ends),
		IN_DIRECTORY(test_nvram_is_stored_to_the_image_again_when_the_power_is_back),
		cmocka_unit_test(test_a_sync_in_flight_has_stored_nothing),
		IN_DIRECTORY(test_the_file_back_end_loses_its_power_too),
		IN_DIRECTORY(test_the_file_back_end_leaves_the_pages_before_the_one_in_flight),
		IN_DIRECTORY(test_half_an_erase_leaves_the_same_pages_by_the_file_back_end),
		cmocka_unit_test(test_the_headers_back_end_loses_its_power_too),
		IN_DIRECTORY(test_a_cut_left_beside_an_image_is_for_one_opening),
		IN_DIRECTORY(test_a_cut_left_can_be_taken_back),
		IN_DIRECTORY(test_a_cut_that_makes_no_sense_is_neither_left_nor_opened),
		cmocka_unit_test(test_cuts_as_text_say_what_is_wrong_with_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
