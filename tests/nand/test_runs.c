/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Programs of many pages in one call: on images that are written by calls, neighbours go to the
 * host at once. What a caller sees is the same everywhere.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "nand/faults.h"
#include "nand/power.h"
#include "nand/space.h"
#include "tests/nand/fixture.h"

enum { PAGES_MAX = 40, BLOCK_PAGES = 8, CALLS_MAX = 16 };

/* Programs `count` pages from `first` on in one call, with contents of fill_page. */
static int program_run(struct nand *nand, uint64_t first, uint32_t count, uint32_t generation)
{
	static uint8_t data[PAGES_MAX][4096], spares[PAGES_MAX][NAND_SPARE_BYTES_MAX];
	struct nand_page_io ios[PAGES_MAX];

	assert_true(count <= PAGES_MAX);
	for (uint32_t i = 0; i < count; i++) {
		fill_page(nand, first + i, generation, data[i], spares[i]);
		ios[i] = (struct nand_page_io){ first + i, data[i], spares[i] };
	}
	return nand_program(nand, NAND_CAUSE_USER, ios, count);
}

/* Pages from `first` to before `end` are as programmed; those behind are not. */
static void assert_programmed(struct nand *nand, uint64_t first, uint64_t end, uint32_t generation)
{
	struct nand_block_info info;

	for (uint64_t page = first; page < end; page++)
		assert_int_equal(read_filled(nand, page, generation), 0);
	if (end % BLOCK_PAGES == 0)
		return;
	assert_int_equal(read_filled(nand, end, generation), -ENODATA);
	assert_int_equal(nand_block_info(nand, (uint32_t)(end / BLOCK_PAGES), &info), 0);
	assert_int_equal(info.next_page, end % BLOCK_PAGES);
}

/* ---- a back end that notes its calls, or dies in them ---- */

static struct nand_backend wrapped;
static const struct nand_backend *inner;
static uint32_t calls, pages_of_call[CALLS_MAX];

static int noting_write_run(struct nand *nand, const struct nand_page_io *pages, uint8_t *spares,
			    uint32_t count, uint32_t *done)
{
	if (calls < CALLS_MAX)
		pages_of_call[calls] = count;
	calls++;
	return inner->write_run(nand, pages, spares, count, done);
}

static int dying_write_run(struct nand *nand, const struct nand_page_io *pages, uint8_t *spares,
			   uint32_t count, uint32_t *done)
{
	inner->write_run(nand, pages, spares, count / 2, done);
	kill(getpid(), SIGKILL);
	abort();
}

static void wrap(struct nand *nand,
		 int (*write_run)(struct nand *nand, const struct nand_page_io *pages,
				  uint8_t *spares, uint32_t count, uint32_t *done))
{
	inner = nand->backend;
	wrapped = *inner;
	wrapped.write_run = write_run;
	nand->backend = &wrapped;
	calls = 0;
}

/* Images on a drive are always written by calls, those in memory only at first. */
static struct nand *create_on_drive(const struct test_directory *directory)
{
	struct nand *nand;

	test_device = TEST_DEVICE_MMAP;
	nand = create_image(directory);
	if (nand_space_is_memory(nand->image_fd)) {
		nand_close(nand);
		skip();
	}
	return nand;
}

static void test_neighbours_of_a_block_are_written_in_one_call(void **state)
{
	static const uint32_t expected[] = { 5, 8, 8, 7 };
	struct nand *nand;

	test_device = TEST_DEVICE_MMAP;
	nand = create_image(*state);
	wrap(nand, noting_write_run);
	assert_int_equal(program_run(nand, 0, 3, 1), 0);
	calls = 0;
	assert_int_equal(program_run(nand, 3, 28, 1), 0);
	assert_int_equal(calls, 4);
	assert_memory_equal(pages_of_call, expected, sizeof(expected));
	assert_programmed(nand, 0, 31, 1);
	assert_int_equal(nand_close(nand), 0);
}

static void test_killed_in_the_middle_of_a_run_no_page_of_it_is_programmed(void **state)
{
	struct nand *nand;
	pid_t child;
	int status;

	test_device = TEST_DEVICE_MMAP;
	nand = create_image(*state);
	assert_int_equal(program_run(nand, 0, 2, 1), 0);
	assert_int_equal(nand_close(nand), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		nand = open_image_ok(*state);
		wrap(nand, dying_write_run);
		program_run(nand, 2, 6, 1);
		_exit(2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	nand = open_image_ok(*state);
	assert_programmed(nand, 0, 2, 1);
	assert_int_equal(program_run(nand, 2, 6, 1), 0);
	assert_programmed(nand, 0, 8, 1);
	assert_int_equal(nand_close(nand), 0);
}

/* A write that the host cuts short: what it took counts, and no more. */
static void test_pages_before_the_end_of_the_hosts_patience_are_programmed(void **state)
{
	struct nand *nand = create_on_drive(*state);
	struct rlimit old, limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = nand_page_offset(&nand->layout, &nand->geometry, 12) + 100;
	assert_int_equal(program_run(nand, 0, 8, 1), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(program_run(nand, 8, 8, 1), -EIO);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_programmed(nand, 0, 12, 1);
	assert_int_equal(program_run(nand, 12, 4, 1), 0);
	assert_programmed(nand, 0, 16, 1);
	assert_int_equal(nand_close(nand), 0);
}

/* Calls meet the limit, stores don't. */
static void test_in_memory_only_fresh_space_is_written_by_calls(void **state)
{
	const struct rlimit none = { 0, RLIM_INFINITY };
	struct rlimit old;
	struct nand *nand;

	test_device = TEST_DEVICE_MMAP;
	nand = create_image(*state);
	assert_true(nand_space_is_memory(nand->image_fd));
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(program_run(nand, 0, 4, 1), 0);
	log_capture();
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(program_run(nand, 4, 4, 1), -EIO);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), 0);
	assert_int_equal(program_run(nand, 0, 8, 2), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_programmed(nand, 0, 8, 2);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- on every kind of image ---- */

static void test_pages_before_a_broken_rule_are_programmed(void **state)
{
	struct nand *nand = create_image(*state);
	struct nand_counters counters;
	uint8_t data[4096] = { 1 };
	struct nand_page_io ios[] = { { 0, data, NULL }, { 1, data, NULL }, { 3, data, NULL } };
	struct nand_page_io twice[] = { { 2, data, NULL }, { 2, data, NULL } };
	struct nand_page_io read = { 1, data, NULL };

	log_capture();
	assert_int_equal(nand_program(nand, NAND_CAUSE_USER, ios, 3), -EPERM);
	assert_non_null(strstr(log_captured(), "programmed out of order, page 2 is next"));
	assert_int_equal(nand_program(nand, NAND_CAUSE_USER, twice, 2), -EPERM);
	assert_int_equal(nand_read(nand, NAND_CAUSE_USER, &read, 1), 0);
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].pages_programmed, 3);
	assert_int_equal(counters.rule_violations, 2);
	assert_int_equal(nand_close(nand), 0);
}

static void test_pages_before_one_that_the_flash_fails_are_programmed(void **state)
{
	struct nand *nand = create_image(*state);
	struct error_text error = { "" };
	struct nand_block_info info;
	struct nand_faults faults;

	assert_int_equal(nand_faults_parse("program-at=13", &faults, &error), 0);
	assert_int_equal(nand_set_faults(nand, &faults, &error), 0);
	assert_int_equal(program_run(nand, 0, 20, 1), -EIO);
	assert_int_equal(nand_block_info(nand, 1, &info), 0);
	assert_int_equal(info.state, NAND_BLOCK_BAD);
	assert_programmed(nand, 0, 12, 1);
	assert_int_equal(program_run(nand, 16, 8, 1), 0);
	assert_int_equal(nand_close(nand), 0);
}

static void test_pages_before_a_power_cut_are_programmed(void **state)
{
	const struct nand_power_cut cut = { .after = 11, .page = NAND_CUT_PAGE_ABSENT };
	struct nand *nand = create_image(*state);
	struct error_text error = { "" };

	assert_int_equal(nand_arm_power_cut(nand, &cut, &error), 0);
	assert_int_equal(program_run(nand, 0, 20, 1), -EIO);
	nand_abandon(nand);
	nand = open_image_ok(*state);
	assert_programmed(nand, 0, 11, 1);
	assert_int_equal(program_run(nand, 11, 9, 1), 0);
	assert_programmed(nand, 0, 20, 1);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- pages that lie in memory as on the device ---- */

enum { WHOLE_PAGES = 64 }; /* a block of them takes whole units of the host's storage */

/* Fills as many pages of `memory`. */
static void fill_whole(struct nand *nand, uint64_t first, uint32_t count, uint8_t *memory,
		       struct nand_page_io *ios)
{
	const struct nand_geometry *geometry = nand_geometry(nand);

	for (uint32_t n = 0; n < count; n++) {
		uint8_t *data = memory + (size_t)n * nand_page_stride(nand);
		uint8_t *spare = data + geometry->page_bytes;

		memset(spare, 0xEE, geometry->spare_bytes);
		fill_page(nand, first + n, 1, data, spare);
		ios[n] = (struct nand_page_io){ .page = first + n, .data = data, .spare = spare };
	}
}

/* Whether what the device keeps of the page is what is in memory, reserved bytes included. */
static bool is_as_in_memory(struct nand *nand, const struct nand_page_io *io)
{
	uint8_t data[4096], spare[NAND_SPARE_BYTES_MAX];

	raw_read(nand, io->page, data, spare);
	return memcmp(data, io->data, sizeof(data)) == 0 &&
	       memcmp(spare, io->spare, nand->geometry.spare_bytes) == 0;
}

static struct nand *create_for_whole(const struct test_directory *directory, uint8_t **memory)
{
	struct nand_geometry geometry = small_geometry;
	struct error_text error = { "" };
	struct nand *nand;

	geometry.pages_per_block = WHOLE_PAGES;
	assert_int_equal(nand_create(directory->image, &geometry, TEST_NVRAM_BYTES, &error), 0);
	nand = open_image_ok(directory);
	*memory = aligned_alloc(
		NAND_MOVE_ALIGNMENT,
		align_up((size_t)WHOLE_PAGES * nand_page_stride(nand), NAND_MOVE_ALIGNMENT));
	assert_non_null(*memory);
	return nand;
}

static void test_whole_blocks_are_moved_from_where_they_are(void **state)
{
	struct nand_page_io ios[WHOLE_PAGES];
	uint8_t *memory;
	struct nand *nand = create_for_whole(*state, &memory);

	fill_whole(nand, 0, WHOLE_PAGES, memory, ios);
	assert_int_equal(nand_program_whole(nand, NAND_CAUSE_USER, ios, WHOLE_PAGES), 0);
	for (uint32_t n = 0; n < WHOLE_PAGES; n++) {
		assert_int_equal(read_filled(nand, n, 1), 0);
		assert_int_equal(is_as_in_memory(nand, &ios[n]), test_device != TEST_DEVICE_MMAP);
	}
	assert_int_equal(nand_close(nand), 0);
	free(memory);
}

static void test_parts_of_blocks_that_are_whole_in_memory_are_programmed_too(void **state)
{
	const uint32_t parts[] = { 3, 32, 1, 28 };
	struct nand_page_io ios[WHOLE_PAGES];
	uint8_t *memory;
	struct nand *nand = create_for_whole(*state, &memory);

	fill_whole(nand, 0, WHOLE_PAGES, memory, ios);
	for (uint32_t part = 0, done = 0; part < 4; done += parts[part++])
		assert_int_equal(nand_program_whole(nand, NAND_CAUSE_USER, ios + done, parts[part]),
				 0);
	for (uint32_t n = 0; n < WHOLE_PAGES; n++)
		assert_int_equal(read_filled(nand, n, 1), 0);
	assert_int_equal(nand_close(nand), 0);
	free(memory);
}

static void test_whole_pages_before_one_that_fails_are_programmed(void **state)
{
	struct nand_page_io ios[WHOLE_PAGES];
	struct error_text error = { "" };
	struct nand_faults faults;
	struct nand_block_info info;
	uint8_t *memory;
	struct nand *nand = create_for_whole(*state, &memory);

	assert_int_equal(nand_faults_parse("program-at=13", &faults, &error), 0);
	assert_int_equal(nand_set_faults(nand, &faults, &error), 0);
	fill_whole(nand, 0, WHOLE_PAGES, memory, ios);
	assert_int_equal(nand_program_whole(nand, NAND_CAUSE_USER, ios, WHOLE_PAGES), -EIO);
	for (uint32_t n = 0; n < 12; n++)
		assert_int_equal(read_filled(nand, n, 1), 0);
	assert_int_equal(nand_block_info(nand, 0, &info), 0);
	assert_int_equal(info.next_page, 12);
	assert_int_equal(info.state, NAND_BLOCK_BAD);
	assert_int_equal(nand_close(nand), 0);
	free(memory);
}

static void test_a_power_cut_leaves_whole_pages_one_by_one(void **state)
{
	const struct nand_power_cut cut = { .after = 11, .page = NAND_CUT_PAGE_ABSENT };
	struct nand_page_io ios[WHOLE_PAGES];
	struct error_text error = { "" };
	uint8_t *memory;
	struct nand *nand = create_for_whole(*state, &memory);

	assert_int_equal(nand_arm_power_cut(nand, &cut, &error), 0);
	fill_whole(nand, 0, WHOLE_PAGES, memory, ios);
	assert_int_equal(nand_program_whole(nand, NAND_CAUSE_USER, ios, WHOLE_PAGES), -EIO);
	nand_abandon(nand);
	nand = open_image_ok(*state);
	for (uint32_t n = 0; n < 11; n++)
		assert_int_equal(read_filled(nand, n, 1), 0);
	assert_int_equal(read_filled(nand, 11, 1), -ENODATA);
	assert_int_equal(nand_program_whole(nand, NAND_CAUSE_USER, ios + 11, WHOLE_PAGES - 11), 0);
	for (uint32_t n = 11; n < WHOLE_PAGES; n++)
		assert_int_equal(read_filled(nand, n, 1), 0);
	assert_int_equal(nand_close(nand), 0);
	free(memory);
}

#define IMAGE(test) cmocka_unit_test_setup_teardown(test, directory_setup, directory_teardown)

int main(void)
{
	const struct CMUnitTest in_memory[] = {
		IMAGE(test_neighbours_of_a_block_are_written_in_one_call),
		IMAGE(test_killed_in_the_middle_of_a_run_no_page_of_it_is_programmed),
		IMAGE(test_in_memory_only_fresh_space_is_written_by_calls),
	};
	const struct CMUnitTest of_drives[] = {
		IMAGE(test_neighbours_of_a_block_are_written_in_one_call),
		IMAGE(test_killed_in_the_middle_of_a_run_no_page_of_it_is_programmed),
		IMAGE(test_pages_before_the_end_of_the_hosts_patience_are_programmed),
	};
	const struct CMUnitTest tests[] = {
		IMAGE(test_pages_before_a_broken_rule_are_programmed),
		IMAGE(test_pages_before_one_that_the_flash_fails_are_programmed),
		IMAGE(test_pages_before_a_power_cut_are_programmed),
		IMAGE(test_whole_blocks_are_moved_from_where_they_are),
		IMAGE(test_parts_of_blocks_that_are_whole_in_memory_are_programmed_too),
		IMAGE(test_whole_pages_before_one_that_fails_are_programmed),
		IMAGE(test_a_power_cut_leaves_whole_pages_one_by_one),
	};

	int failed =
		cmocka_run_group_tests(of_drives, NULL, NULL) + RUN_ON_IMAGES(tests, NULL, NULL);

	setenv("TMPDIR", "/dev/shm", 1);
	return failed + cmocka_run_group_tests(in_memory, NULL, NULL);
}
