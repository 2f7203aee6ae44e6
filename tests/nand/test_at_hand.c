/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads that must not wait: the same as others where the host has the pages, and none elsewhere. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nand/space.h"
#include "nand/timing.h"
#include "tests/nand/fixture.h"

static uint8_t data[4096], expected[4096], spare[4096];

static int read_at_hand(struct nand *nand, uint64_t page)
{
	struct nand_page_io io = { .page = page, .data = data };

	memset(data, 0, sizeof(data));
	return nand_read_at_hand(nand, NULL, NAND_CAUSE_USER, &io, 1);
}

static bool has_direct_reads(void)
{
	return test_device == TEST_DEVICE_FILE || test_device == TEST_DEVICE_FILE_THREADS;
}

static void test_pages_in_memory_are_at_hand(void **state)
{
	struct nand *nand = open_small();
	uint64_t before;
	struct nand_counters counters;

	(void)state;
	assert_int_equal(program_filled(nand, 0, 1), 0);
	fill_page(nand, 0, 1, expected, spare);
	nand_read_counters(nand, &counters);
	before = counters.by_cause[NAND_CAUSE_USER].pages_read;
	if (has_direct_reads()) {
		assert_int_equal(read_at_hand(nand, 0), -EINPROGRESS);
	} else {
		assert_int_equal(read_at_hand(nand, 0), 0);
		assert_memory_equal(data, expected, sizeof(data));
	}
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].pages_read - before,
			 !has_direct_reads());
	assert_int_equal(nand_close(nand), 0);
}

static void test_what_is_wrong_is_found_as_by_any_read(void **state)
{
	struct nand *nand = open_small();

	(void)state;
	assert_int_equal(program_filled(nand, 0, 1), 0);
	if (!has_direct_reads()) {
		assert_int_equal(read_at_hand(nand, 1), -ENODATA);
		assert_int_equal(read_at_hand(nand, UINT64_MAX / 8192), -ERANGE);
		raw_flip_data(nand, 0, 100, 1);
		assert_int_equal(read_at_hand(nand, 0), -EBADMSG);
	}
	assert_int_equal(nand_close(nand), 0);
}

static void test_flash_that_takes_its_time_is_not_at_hand(void **state)
{
	struct nand *nand = open_small();
	struct nand_timing timing = { .mode = NAND_TIMING_REAL, .page_read_ns = 1000 };
	struct error_text error;

	(void)state;
	assert_int_equal(program_filled(nand, 0, 1), 0);
	assert_int_equal(nand_set_timing(nand, &timing, &error), 0);
	assert_int_equal(read_at_hand(nand, 0), -EINPROGRESS);
	assert_int_equal(nand_close(nand), 0);
}

/* Does the host still have the page of the image in its cache? Without looking at it. */
static bool is_cached(const struct nand *nand, uint64_t page)
{
	uint64_t offset =
		nand_page_offset(&nand->layout, &nand->geometry, page) - nand->layout.data_offset;
	uint8_t *at = nand->pages.at + offset / 4096 * 4096;
	unsigned char there[3] = { 0 };

	assert_int_equal(mincore(at, 8192, there), 0);
	return there[0] & there[1] & 1;
}

static void test_an_image_is_at_hand_as_far_as_the_host_has_it_in_its_cache(void **state)
{
	struct test_directory *directory = *state;
	struct nand *nand;
	int fd;

	test_device = TEST_DEVICE_MMAP;
	nand = create_image(directory);
	for (uint64_t page = 0; page < 8; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	assert_int_equal(nand_close(nand), 0);
	fd = open(directory->image, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
	nand = open_image_ok(directory);
	fill_page(nand, 5, 1, expected, spare);
	/* A host that keeps it all the same, such as one that has the file in memory, has it. */
	if (nand_space_is_memory(nand->image_fd) || is_cached(nand, 5))
		assert_int_equal(read_at_hand(nand, 5), 0);
	else
		assert_int_equal(read_at_hand(nand, 5), -EINPROGRESS);
	assert_int_equal(read_filled(nand, 5, 1), 0);
	assert_int_equal(read_at_hand(nand, 5), 0);
	assert_memory_equal(data, expected, sizeof(data));
	assert_int_equal(nand_close(nand), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages_in_memory_are_at_hand),
		cmocka_unit_test(test_what_is_wrong_is_found_as_by_any_read),
		cmocka_unit_test(test_flash_that_takes_its_time_is_not_at_hand),
	};
	const struct CMUnitTest of_images[] = {
		cmocka_unit_test_setup_teardown(
			test_an_image_is_at_hand_as_far_as_the_host_has_it_in_its_cache,
			directory_setup, directory_teardown),
	};

	return RUN_ON_ALL_DEVICES(tests, NULL, NULL) +
	       cmocka_run_group_tests(of_images, NULL, NULL);
}
