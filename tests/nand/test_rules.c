/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The rules of flash, each with what happens when it is broken. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

static uint64_t violations(struct nand *nand)
{
	struct nand_counters counters;

	nand_read_counters(nand, &counters);
	return counters.rule_violations;
}

static void test_a_programmed_page_reads_back(void **state)
{
	struct nand *nand = *state;

	for (uint64_t page = 0; page < 24; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	for (uint64_t page = 0; page < 24; page++)
		assert_int_equal(read_filled(nand, page, 1), 0);
	assert_int_equal(violations(nand), 0);
}

static void test_a_page_cannot_be_programmed_twice(void **state)
{
	struct nand *nand = *state;

	assert_int_equal(program_filled(nand, 0, 1), 0);
	assert_int_equal(program_filled(nand, 1, 1), 0);
	assert_int_equal(program_filled(nand, 0, 2), -EPERM);
	assert_int_equal(program_filled(nand, 1, 2), -EPERM);
	assert_int_equal(violations(nand), 2);
	assert_non_null(strstr(log_captured(), "page 1 (page 1 of block 0) programmed twice"));
	assert_int_equal(read_filled(nand, 0, 1), 0);
	assert_int_equal(read_filled(nand, 1, 1), 0);
}

static void test_pages_of_a_block_are_programmed_in_order(void **state)
{
	struct nand *nand = *state;

	assert_int_equal(program_filled(nand, 9, 1), -EPERM);
	assert_int_equal(program_filled(nand, 8, 1), 0);
	assert_int_equal(program_filled(nand, 10, 1), -EPERM);
	assert_int_equal(violations(nand), 2);
	assert_non_null(
		strstr(log_captured(), "page 10 (page 2 of block 1) programmed out of order"));
	assert_int_equal(read_filled(nand, 10, 1), -ENODATA);
}

static void test_erase_is_by_block_and_frees_its_pages_only(void **state)
{
	struct nand *nand = *state;

	for (uint64_t page = 0; page < 24; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_MERGE, 1), 0);
	for (uint64_t page = 0; page < 24; page++)
		assert_int_equal(read_filled(nand, page, 1), page / 8 == 1 ? -ENODATA : 0);
	assert_int_equal(program_filled(nand, 8, 2), 0);
	assert_int_equal(read_filled(nand, 8, 2), 0);
	assert_int_equal(read_filled(nand, 9, 1), -ENODATA);
}

static void test_a_bad_block_refuses_program_and_erase_but_reads(void **state)
{
	struct nand *nand = *state;
	struct nand_block_info info;

	assert_int_equal(program_filled(nand, 16, 1), 0);
	assert_int_equal(nand_mark_bad(nand, 2), 0);
	assert_int_equal(nand_block_info(nand, 2, &info), 0);
	assert_int_equal(info.state, NAND_BLOCK_BAD);
	assert_int_equal(program_filled(nand, 17, 1), -EPERM);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 2), -EPERM);
	assert_int_equal(violations(nand), 2);
	assert_int_equal(read_filled(nand, 16, 1), 0);
	assert_int_equal(nand_mark_bad(nand, 16), -ERANGE);
}

static void test_a_program_needs_data(void **state)
{
	struct nand *nand = *state;
	struct nand_page_io io = { .page = 0 };

	assert_int_equal(nand_program(nand, NAND_CAUSE_USER, &io, 1), -EPERM);
	assert_int_equal(read_filled(nand, 0, 1), -ENODATA);
}

static void test_a_page_that_was_not_programmed_has_no_data(void **state)
{
	assert_int_equal(read_filled(*state, 0, 0), -ENODATA);
	assert_int_equal(read_filled(*state, 127, 0), -ENODATA);
}

static void test_numbers_beyond_the_device_are_out_of_range(void **state)
{
	struct nand *nand = *state;
	struct nand_block_info info;

	assert_int_equal(read_filled(nand, 128, 0), -ERANGE);
	assert_int_equal(read_filled(nand, UINT64_MAX, 0), -ERANGE);
	assert_int_equal(program_filled(nand, 128, 0), -ERANGE);
	assert_int_equal(program_filled(nand, UINT64_MAX, 0), -ERANGE);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 16), -ERANGE);
	assert_int_equal(nand_block_info(nand, 16, &info), -ERANGE);
	assert_int_equal(nand_sync(nand, 15, 2), -ERANGE);
	assert_int_equal(nand_sync(nand, UINT32_MAX, UINT32_MAX), -ERANGE);
	assert_int_equal(nand_sync(nand, 0, 16), 0);
	assert_int_equal(violations(nand), 0);
}

static void test_block_info_follows_programs_and_erases(void **state)
{
	struct nand *nand = *state;
	struct nand_block_info info;

	for (uint32_t erased = 0; erased < 3; erased++) {
		for (uint32_t programmed = 0; programmed <= 8; programmed++) {
			assert_int_equal(nand_block_info(nand, 15, &info), 0);
			assert_int_equal(info.state, NAND_BLOCK_GOOD);
			assert_int_equal(info.next_page, programmed);
			assert_int_equal(info.erase_count, erased);
			if (programmed < 8)
				assert_int_equal(program_filled(nand, 120 + programmed, erased), 0);
		}
		assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 15), 0);
	}
}

static void test_a_vector_stops_at_the_first_failure(void **state)
{
	struct nand *nand = *state;
	uint8_t data[3][4096], read_back[4096];
	struct nand_page_io programs[] = { { 0, data[0], NULL },
					   { 1, data[1], NULL },
					   { 3, data[2], NULL } };
	struct nand_page_io reads[] = { { 0, read_back, NULL },
					{ 2, read_back, NULL },
					{ 999, read_back, NULL } };

	memset(data[0], 0xA0, sizeof(data[0]));
	memset(data[1], 0xA1, sizeof(data[1]));
	memset(data[2], 0xA2, sizeof(data[2]));
	assert_int_equal(nand_program(nand, NAND_CAUSE_USER, programs, 3), -EPERM);
	assert_int_equal(nand_read(nand, NAND_CAUSE_USER, reads, 1), 0);
	assert_memory_equal(read_back, data[0], sizeof(read_back));
	reads[0].page = 1;
	assert_int_equal(nand_read(nand, NAND_CAUSE_USER, reads, 1), 0);
	assert_memory_equal(read_back, data[1], sizeof(read_back));
	assert_int_equal(nand_read(nand, NAND_CAUSE_USER, reads, 3), -ENODATA);
}

static void test_a_spare_area_that_is_not_given_is_zeroes(void **state)
{
	struct nand *nand = *state;
	uint8_t data[4096] = { 1, 2, 3 }, spare[128 - NAND_SPARE_RESERVED],
		zeroes[sizeof(spare)] = { 0 };
	struct nand_page_io io = { 0, data, NULL };

	assert_int_equal(nand_program(nand, NAND_CAUSE_USER, &io, 1), 0);
	memset(spare, 0xFF, sizeof(spare));
	io = (struct nand_page_io){ 0, NULL, spare };
	assert_int_equal(nand_read(nand, NAND_CAUSE_USER, &io, 1), 0);
	assert_memory_equal(spare, zeroes, sizeof(spare));
}

static void test_data_and_spare_area_can_be_read_alone(void **state)
{
	struct nand *nand = *state;
	uint8_t data[4096], spare[112], expected_data[4096], expected_spare[112];
	struct nand_page_io io = { 0, data, NULL };

	assert_int_equal(program_filled(nand, 0, 7), 0);
	fill_page(nand, 0, 7, expected_data, expected_spare);
	assert_int_equal(nand_read(nand, NAND_CAUSE_USER, &io, 1), 0);
	assert_memory_equal(data, expected_data, sizeof(data));
	io = (struct nand_page_io){ 0, NULL, spare };
	assert_int_equal(nand_read(nand, NAND_CAUSE_USER, &io, 1), 0);
	assert_memory_equal(spare, expected_spare, sizeof(spare));
}

static void test_a_broken_rule_can_abort_the_process(void **state)
{
	struct nand *nand = *state;
	int status;
	pid_t child = fork();

	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		nand_set_violation_policy(nand, NAND_VIOLATION_ABORTS);
		program_filled(nand, 1, 0);
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void test_debug_builds_abort_and_others_do_not_by_default(void **state)
{
	struct nand *nand;

	(void)state;
	assert_int_equal(nand_open_memory(&small_geometry, 0, &nand, NULL), 0);
#ifdef MUNINN_DEBUG
	assert_int_equal(nand->violation_policy, NAND_VIOLATION_ABORTS);
#else
	assert_int_equal(nand->violation_policy, NAND_VIOLATION_FAILS);
#endif
	assert_int_equal(nand_close(nand), 0);
}

#define RULE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(test_a_programmed_page_reads_back),
		RULE(test_a_page_cannot_be_programmed_twice),
		RULE(test_pages_of_a_block_are_programmed_in_order),
		RULE(test_erase_is_by_block_and_frees_its_pages_only),
		RULE(test_a_bad_block_refuses_program_and_erase_but_reads),
		RULE(test_a_program_needs_data),
		RULE(test_a_page_that_was_not_programmed_has_no_data),
		RULE(test_numbers_beyond_the_device_are_out_of_range),
		RULE(test_block_info_follows_programs_and_erases),
		RULE(test_a_vector_stops_at_the_first_failure),
		RULE(test_a_spare_area_that_is_not_given_is_zeroes),
		RULE(test_data_and_spare_area_can_be_read_alone),
		RULE(test_a_broken_rule_can_abort_the_process),
		cmocka_unit_test(test_debug_builds_abort_and_others_do_not_by_default),
	};

	return RUN_ON_ALL_DEVICES(tests, NULL, NULL);
}
