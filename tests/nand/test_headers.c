/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The headers back end: whatever the codec does, what is read is what was programmed; memory is
 * counted and comes back.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/nand/fixture.h"

static struct nand_headers_usage usage_of(const struct nand *nand)
{
	struct nand_headers_usage usage;

	nand_headers_usage(nand, &usage);
	return usage;
}

static struct nand *open_with(const struct nand_payload_codec *codec)
{
	struct error_text error = { "" };
	struct nand *nand;

	if (nand_open_headers(&small_geometry, 0, codec, &nand, &error) < 0)
		fail_msg("nand_open_headers: %s", error.text);
	nand_set_violation_policy(nand, NAND_VIOLATION_FAILS);
	return nand;
}

static int setup(void **state)
{
	test_device = TEST_DEVICE_HEADERS;
	*state = open_small();
	return 0;
}

static int teardown(void **state)
{
	return nand_close(*state);
}

/* Spare areas of the tests have no zeroes; 112 bytes of 128 can be used. */
static void test_pages_that_can_be_regenerated_take_no_space_for_data(void **state)
{
	struct nand *nand = *state;
	struct nand_headers_usage usage;

	for (uint64_t page = 0; page < 128; page++)
		assert_int_equal(program_filled(nand, page, (uint32_t)page % 50), 0);
	usage = usage_of(nand);
	assert_int_equal(usage.packed_pages, 128);
	assert_int_equal(usage.whole_pages, 0);
	assert_in_range(usage.bytes, 128 * 112, 128 * 200);
	for (uint64_t page = 0; page < 128; page++)
		assert_int_equal(read_filled(nand, page, (uint32_t)page % 50), 0);
}

static void program_one(struct nand *nand, uint64_t page, uint8_t *data, uint8_t *spare)
{
	const struct nand_page_io io = { page, data, spare };

	assert_int_equal(nand_program(nand, NAND_CAUSE_USER, &io, 1), 0);
}

static void assert_reads(struct nand *nand, uint64_t page, const uint8_t *data,
			 const uint8_t *spare)
{
	uint8_t read_data[4096], read_spare[112];
	struct nand_page_io io = { page, read_data, read_spare };

	assert_int_equal(nand_read(nand, NAND_CAUSE_USER, &io, 1), 0);
	assert_memory_equal(read_data, data, sizeof(read_data));
	assert_memory_equal(read_spare, spare, sizeof(read_spare));
	memset(read_spare, 0x77, sizeof(read_spare));
	io.data = NULL;
	assert_int_equal(nand_read(nand, NAND_CAUSE_USER, &io, 1), 0);
	assert_memory_equal(read_spare, spare, sizeof(read_spare));
}

/* One bit anywhere that the codec does not know of. */
static void test_a_page_that_comes_back_otherwise_is_kept_whole(void **state)
{
	struct nand *nand = *state;
	uint8_t data[8][4096], spare[8][112];

	for (uint64_t page = 0; page < 8; page++) {
		fill_page(nand, page, 1, data[page], spare[page]);
		if (page % 2)
			data[page][page == 7 ? 4095 : 64 + page * 100] ^= 1 << page;
		program_one(nand, page, data[page], spare[page]);
	}
	assert_int_equal(usage_of(nand).packed_pages, 4);
	assert_int_equal(usage_of(nand).whole_pages, 4);
	for (uint64_t page = 0; page < 8; page++)
		assert_reads(nand, page, data[page], spare[page]);
}

static void test_spare_areas_of_any_kind_come_back(void **state)
{
	struct nand *nand = *state;
	uint8_t data[4096];
	uint8_t spare[8][112] = { 0 };

	spare[1][0] = 1;
	spare[2][111] = 1;
	memset(spare[3], 0xFF, 112);
	for (int i = 0; i < 112; i += 2)
		spare[4][i] = (uint8_t)(i + 1);
	spare[5][55] = 9;
	memset(spare[6] + 7, 3, 9);
	memset(spare[7], 0xAA, 57);
	for (uint64_t page = 0; page < 8; page++) {
		fill_page(nand, page, 2, data, (uint8_t[112]){ 0 });
		program_one(nand, page, data, spare[page]);
	}
	for (uint64_t page = 0; page < 8; page++) {
		fill_page(nand, page, 2, data, (uint8_t[112]){ 0 });
		assert_reads(nand, page, data, spare[page]);
	}
}

static void test_an_erase_gives_the_memory_back(void **state)
{
	struct nand *nand = *state;
	uint8_t data[4096], spare[112] = { 0 };

	memset(data, 0x5A, sizeof(data));
	for (uint32_t life = 0; life < 3; life++) {
		for (uint64_t page = 0; page < 128; page++) {
			if (page % 3)
				assert_int_equal(program_filled(nand, page, life), 0);
			else
				program_one(nand, page, data, spare);
		}
		assert_int_equal(usage_of(nand).packed_pages, 85);
		assert_int_equal(usage_of(nand).whole_pages, 43);
		assert_true(usage_of(nand).bytes > 43 * 4096);
		for (uint32_t block = 0; block < 16; block++)
			assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, block), 0);
		assert_int_equal(usage_of(nand).packed_pages, 0);
		assert_int_equal(usage_of(nand).whole_pages, 0);
		assert_int_equal(usage_of(nand).bytes, 0);
	}
}

/*
 * What a fault or a power cut does: a page is written again, shorter or longer, before or behind
 * others.
 */
static void test_a_page_written_again_does_not_disturb_its_neighbours(void **state)
{
	struct nand *nand = *state;
	uint8_t data[4096], spare[128], read_data[4096], read_spare[128];
	unsigned int seed = 7;

	for (uint64_t page = 0; page < 8; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	for (int round = 0; round < 200; round++) {
		uint64_t page = (uint64_t)rand_r(&seed) % 8;

		raw_read(nand, page, data, spare);
		if (rand_r(&seed) % 2)
			raw_flip_data(nand, page, (uint32_t)rand_r(&seed) % 4096, 4);
		else
			fill_page(nand, page, 1, data, read_spare);
		raw_write(nand, page, data, spare);
		raw_read(nand, page, read_data, read_spare);
		assert_memory_equal(read_data, data, sizeof(data));
		assert_memory_equal(read_spare, spare, sizeof(spare));
	}
	for (uint64_t page = 0; page < 8; page++) {
		fill_page(nand, page, 1, data, read_spare);
		raw_read(nand, page, read_data, spare);
		raw_write(nand, page, data, spare);
		assert_int_equal(read_filled(nand, page, 1), 0);
	}
	assert_int_equal(usage_of(nand).packed_pages, 8);
	assert_int_equal(usage_of(nand).whole_pages, 0);
}

static void test_without_a_codec_pages_are_kept_whole(void **state)
{
	struct nand *nand = open_with(NULL);

	(void)state;
	for (uint64_t page = 0; page < 16; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	for (uint64_t page = 0; page < 16; page++)
		assert_int_equal(read_filled(nand, page, 1), 0);
	assert_int_equal(usage_of(nand).whole_pages, 16);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- codecs that do not keep their word ---- */

static bool pack_nothing_of_use(void *context, uint64_t page, const uint8_t *data,
				const uint8_t *spare, uint8_t *to, size_t capacity, size_t *bytes)
{
	(void)context;
	(void)page;
	(void)data;
	(void)spare;
	memset(to, 1, capacity);
	*bytes = capacity;
	return true;
}

static bool unpack_something_else(void *context, uint64_t page, const uint8_t *from, size_t bytes,
				  const uint8_t *spare, uint8_t *data)
{
	(void)context;
	(void)page;
	(void)spare;
	memset(data, from[bytes - 1], 4096);
	return true;
}

static bool unpack_never(void *context, uint64_t page, const uint8_t *from, size_t bytes,
			 const uint8_t *spare, uint8_t *data)
{
	(void)context;
	(void)page;
	(void)from;
	(void)bytes;
	(void)spare;
	(void)data;
	return false;
}

static void test_a_codec_that_is_wrong_only_wastes_memory(void **state)
{
	const struct nand_payload_codec wrong[] = {
		{ .pack = pack_nothing_of_use, .unpack = unpack_something_else },
		{ .pack = pack_nothing_of_use, .unpack = unpack_never },
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct nand *nand = open_with(&wrong[i]);

		for (uint64_t page = 0; page < 16; page++)
			assert_int_equal(program_filled(nand, page, 1), 0);
		for (uint64_t page = 0; page < 16; page++)
			assert_int_equal(read_filled(nand, page, 1), 0);
		assert_int_equal(usage_of(nand).whole_pages, 16);
		assert_int_equal(nand_close(nand), 0);
	}
}

/* ---- size ---- */

static void test_a_device_of_a_terabyte_takes_memory_for_what_is_on_it(void **state)
{
	const struct nand_geometry geometry = nand_geometry_default(UINT64_C(1) << 40);
	const uint64_t last = (uint64_t)geometry.blocks * geometry.pages_per_block - 64;
	struct nand *nand;

	(void)state;
	test_device = TEST_DEVICE_HEADERS;
	nand = open_device(&geometry);
	for (uint64_t page = 0; page < 64; page++) {
		assert_int_equal(program_filled(nand, page, 1), 0);
		assert_int_equal(program_filled(nand, last + page, 1), 0);
	}
	for (uint64_t page = 0; page < 64; page++) {
		assert_int_equal(read_filled(nand, page, 1), 0);
		assert_int_equal(read_filled(nand, last + page, 1), 0);
	}
	assert_int_equal(read_filled(nand, last / 2, 1), -ENODATA);
	assert_in_range(usage_of(nand).bytes, 1, 128 * 400);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- threads ---- */

static void *read_on(void *argument)
{
	struct nand *nand = argument;
	uint8_t data[4096] = { 0 }, spare[112] = { 0 };

	for (int i = 0; i < 3000; i++) {
		const struct nand_page_io io = { (uint64_t)i % 8, data, spare };
		int result = nand_read(nand, NAND_CAUSE_USER, &io, 1);

		if (result != 0 && result != -ENODATA)
			return nand;
	}
	return NULL;
}

static void test_reads_beside_erases_find_a_page_or_none(void **state)
{
	struct nand *nand = *state;
	void *failed;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, read_on, nand), 0);
	for (uint32_t life = 0; life < 60; life++) {
		for (uint64_t page = 0; page < 8; page++)
			assert_int_equal(program_filled(nand, page, life), 0);
		assert_int_equal(nand_erase(nand, NAND_CAUSE_MERGE, 0), 0);
	}
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
}

#define WITH_DEVICE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DEVICE(test_pages_that_can_be_regenerated_take_no_space_for_data),
		WITH_DEVICE(test_a_page_that_comes_back_otherwise_is_kept_whole),
		WITH_DEVICE(test_spare_areas_of_any_kind_come_back),
		WITH_DEVICE(test_an_erase_gives_the_memory_back),
		WITH_DEVICE(test_a_page_written_again_does_not_disturb_its_neighbours),
		cmocka_unit_test(test_without_a_codec_pages_are_kept_whole),
		cmocka_unit_test(test_a_codec_that_is_wrong_only_wastes_memory),
		cmocka_unit_test(test_a_device_of_a_terabyte_takes_memory_for_what_is_on_it),
		WITH_DEVICE(test_reads_beside_erases_find_a_page_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
