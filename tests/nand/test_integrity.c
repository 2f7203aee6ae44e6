/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What is damaged, misplaced or left over is found and never returned as data. */
#include <errno.h>
#include <string.h>

#include "tests/nand/fixture.h"

static int setup(void **state)
{
	*state = open_small();
	return 0;
}

static int teardown(void **state)
{
	return nand_close(*state);
}

static int read_parts(struct nand *nand, uint64_t page, bool want_data, bool want_spare)
{
	uint8_t data[4096], spare[112];
	struct nand_page_io io = { page, want_data ? data : NULL, want_spare ? spare : NULL };

	return nand_read(nand, NAND_CAUSE_USER, &io, 1);
}

/* Only in memory is there time for every byte. Odd, to meet every bit. */
static uint32_t step(void)
{
	return test_device == TEST_DEVICE_MMAP ? 1 : 17;
}

static void test_any_damaged_byte_of_the_data_is_found_when_data_is_read(void **state)
{
	struct nand *nand = *state;

	assert_int_equal(program_filled(nand, 0, 1), 0);
	assert_int_equal(program_filled(nand, 1, 1), 0);
	for (uint32_t i = 0; i < 4096; i += step()) {
		raw_flip_data(nand, 1, i, (uint8_t)(1 << i % 8));
		assert_int_equal(read_parts(nand, 1, true, true), -EBADMSG);
		assert_int_equal(read_parts(nand, 1, true, false), -EBADMSG);
		raw_flip_data(nand, 1, i, (uint8_t)(1 << i % 8));
	}
	assert_int_equal(read_filled(nand, 0, 1), 0);
	assert_int_equal(read_filled(nand, 1, 1), 0);
}

static void test_damaged_data_does_not_hide_the_spare_area(void **state)
{
	struct nand *nand = *state;

	assert_int_equal(program_filled(nand, 0, 1), 0);
	raw_flip_data(nand, 0, 5, 1);
	assert_int_equal(read_parts(nand, 0, false, true), 0);
}

static void test_any_damaged_byte_of_the_spare_area_is_found_by_every_read(void **state)
{
	struct nand *nand = *state;

	assert_int_equal(program_filled(nand, 0, 1), 0);
	for (uint32_t i = 0; i < 128; i += step()) {
		for (int bit = 0; bit < 8; bit++) {
			raw_flip_spare(nand, 0, i, (uint8_t)(1 << bit));
			assert_int_equal(read_parts(nand, 0, true, true), -EBADMSG);
			assert_int_equal(read_parts(nand, 0, false, true), -EBADMSG);
			assert_int_equal(read_parts(nand, 0, true, false), -EBADMSG);
			assert_int_equal(read_parts(nand, 0, false, false), -EBADMSG);
			raw_flip_spare(nand, 0, i, (uint8_t)(1 << bit));
		}
	}
	assert_int_equal(read_filled(nand, 0, 1), 0);
}

static void test_uncorrectable_reads_are_counted(void **state)
{
	struct nand *nand = *state;
	struct nand_counters counters;

	assert_int_equal(program_filled(nand, 0, 1), 0);
	raw_flip_data(nand, 0, 0, 1);
	assert_int_equal(read_parts(nand, 0, true, true), -EBADMSG);
	assert_int_equal(read_parts(nand, 0, true, true), -EBADMSG);
	assert_int_equal(read_parts(nand, 1, true, true), -ENODATA);
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.uncorrectable_reads, 2);
}

static void test_a_page_of_zeroes_is_not_a_programmed_page(void **state)
{
	struct nand *nand = *state;
	const uint8_t data[4096] = { 0 }, spare[128] = { 0 };

	assert_int_equal(program_filled(nand, 0, 1), 0);
	raw_write(nand, 0, data, spare);
	assert_int_equal(read_parts(nand, 0, true, true), -EBADMSG);
	assert_int_equal(read_parts(nand, 0, false, true), -EBADMSG);
}

static void test_a_page_in_the_place_of_another_is_found(void **state)
{
	struct nand *nand = *state;
	uint8_t data[4096], spare[128];

	assert_int_equal(program_filled(nand, 0, 1), 0);
	assert_int_equal(program_filled(nand, 1, 1), 0);
	raw_read(nand, 0, data, spare);
	raw_write(nand, 1, data, spare);
	assert_int_equal(read_parts(nand, 1, true, true), -EBADMSG);
	assert_int_equal(read_parts(nand, 1, false, true), -EBADMSG);
}

/* What a power loss of the host can leave: the block's word reached the drive, the page did not. */
static void test_a_page_of_an_earlier_life_of_its_block_is_found(void **state)
{
	struct nand *nand = *state;
	uint8_t old_data[4096], old_spare[128];

	assert_int_equal(program_filled(nand, 0, 1), 0);
	raw_read(nand, 0, old_data, old_spare);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), 0);
	assert_int_equal(program_filled(nand, 0, 2), 0);
	raw_write(nand, 0, old_data, old_spare);
	assert_int_equal(read_parts(nand, 0, true, true), -EBADMSG);
	assert_int_equal(read_parts(nand, 0, false, true), -EBADMSG);
}

static void test_a_damaged_block_state_refuses_all_but_erase(void **state)
{
	struct nand *nand = *state;
	struct nand_block_info info;

	assert_int_equal(program_filled(nand, 8, 1), 0);
	nand->table.at[8 + 4] ^= 2; /* next page 1 → 3 */
	assert_int_equal(nand_block_info(nand, 1, &info), -EBADMSG);
	assert_int_equal(read_filled(nand, 8, 1), -EBADMSG);
	assert_int_equal(read_filled(nand, 10, 1), -EBADMSG);
	assert_int_equal(program_filled(nand, 9, 1), -EIO);
	assert_non_null(strstr(log_captured(), "state of block 1 is damaged"));
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 1), 0);
	assert_int_equal(program_filled(nand, 8, 2), 0);
	assert_int_equal(read_filled(nand, 8, 2), 0);
	assert_int_equal(nand_block_info(nand, 1, &info), 0);
	assert_int_equal(info.next_page, 1);
}

static const struct nand_backend *intact;

/*
 * Another thread's erase and program, exactly between the look at the block's state and the read.
 */
static int overtaken_read(struct nand *nand, uint64_t page, void *data, void *spare)
{
	assert_int_equal(nand_erase(nand, NAND_CAUSE_MERGE, 0), 0);
	assert_int_equal(program_filled(nand, 0, 2), 0);
	return intact->read(nand, page, data, spare);
}

static void test_a_read_that_an_erase_overtakes_has_no_data_and_is_no_damage(void **state)
{
	struct nand *nand = *state;
	struct nand_backend overtaken = *nand->backend;
	struct nand_counters counters;

	intact = nand->backend;
	overtaken.read = overtaken_read;
	overtaken.async = NULL;
	assert_int_equal(program_filled(nand, 0, 1), 0);
	nand->backend = &overtaken;
	assert_int_equal(read_parts(nand, 0, true, true), -ENODATA);
	nand->backend = intact;
	assert_int_equal(read_filled(nand, 0, 2), 0);
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.uncorrectable_reads, 0);
}

static void test_every_geometry_keeps_its_pages_apart(void **state)
{
	static const struct nand_geometry geometries[] = {
		{ 512, 64, 8, 5, 1, 1, 0 },
		{ 512, 65, 9, 7, 3, 2, 0 },
		{ 65536, 4096, 8, 2, 1, 1, 0 },
		{ 16384, 1000, 11, 3, 64, 64, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(geometries) / sizeof(geometries[0]); i++) {
		uint64_t pages = (uint64_t)geometries[i].blocks * geometries[i].pages_per_block;
		struct nand *nand = open_device(&geometries[i]);

		for (uint64_t page = 0; page < pages; page++)
			assert_int_equal(program_filled(nand, page, 3), 0);
		for (uint64_t page = 0; page < pages; page++)
			assert_int_equal(read_filled(nand, page, 3), 0);
		assert_int_equal(nand_close(nand), 0);
	}
}

#define WITH_DEVICE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DEVICE(test_any_damaged_byte_of_the_data_is_found_when_data_is_read),
		WITH_DEVICE(test_damaged_data_does_not_hide_the_spare_area),
		WITH_DEVICE(test_any_damaged_byte_of_the_spare_area_is_found_by_every_read),
		WITH_DEVICE(test_uncorrectable_reads_are_counted),
		WITH_DEVICE(test_a_page_of_zeroes_is_not_a_programmed_page),
		WITH_DEVICE(test_a_page_in_the_place_of_another_is_found),
		WITH_DEVICE(test_a_page_of_an_earlier_life_of_its_block_is_found),
		WITH_DEVICE(test_a_damaged_block_state_refuses_all_but_erase),
		WITH_DEVICE(test_a_read_that_an_erase_overtakes_has_no_data_and_is_no_damage),
		cmocka_unit_test(test_every_geometry_keeps_its_pages_apart),
	};

	return RUN_ON_ALL_DEVICES(tests, NULL, NULL);
}
