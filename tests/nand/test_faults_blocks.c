/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Faults of blocks: programs and erases that fail, wear, blocks that are bad from the start. */
#include "tests/nand/fault_scene.h"

/* ---- programs and erases ---- */

static void test_a_failed_program_turns_its_block_bad_and_keeps_the_pages_before(void **state)
{
	struct nand *nand = open_small();

	(void)state;
	set_faults(nand, faults_of("program-at=4"));
	for (uint64_t page = 0; page < 3; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	assert_int_equal(program_filled(nand, 3, 1), -EIO);
	assert_true(is_bad(nand, 0));
	assert_int_equal(read_filled(nand, 2, 1), 0);
	assert_int_equal(read_filled(nand, 3, 1), -ENODATA);
	assert_int_equal(program_filled(nand, 3, 1), -EPERM);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), -EPERM);
	assert_int_equal(program_filled(nand, 8, 1), 0);
	assert_int_equal(counters_of(nand).program_failures, 1);
	assert_non_null(strstr(log_captured(), "page 3 could not be programmed, block 0 is bad"));
	assert_int_equal(nand_close(nand), 0);
}

static void test_a_failed_erase_turns_its_block_bad_and_loses_its_pages(void **state)
{
	struct nand *nand = open_small();
	struct nand_counters counters;

	(void)state;
	set_faults(nand, faults_of("erase-at=2"));
	assert_int_equal(program_filled(nand, 0, 1), 0);
	assert_int_equal(program_filled(nand, 8, 1), 0);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), 0);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 1), -EIO);
	assert_true(!is_bad(nand, 0) && is_bad(nand, 1));
	assert_int_equal(read_filled(nand, 8, 1), -ENODATA);
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].blocks_erased, 1);
	assert_int_equal(counters_of(nand).erase_failures, 1);
	assert_int_equal(nand_close(nand), 0);
}

static void test_setting_faults_again_counts_from_the_beginning(void **state)
{
	struct nand *nand = open_small();

	(void)state;
	for (uint32_t block = 0; block < 4; block += 2) {
		set_faults(nand, faults_of("program-at=2,erase-at=2"));
		assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, block), 0);
		assert_int_equal(program_filled(nand, 8 * block, 1), 0);
		assert_int_equal(program_filled(nand, 8 * block + 1, 1), -EIO);
		assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, block + 1), -EIO);
	}
	assert_int_equal(nand_close(nand), 0);
}

static void test_programs_and_erases_fail_as_often_as_they_were_told_to(void **state)
{
	struct nand *nand = open_large();
	double programs = 0, failed = 0, erases = 0, failed_erases = 0;

	(void)state;
	set_faults(nand, faults_of("program=0.002,erase=0.01,seed=12"));
	for (int round = 0; round < 40; round++) {
		for (uint32_t block = 0; block < BLOCKS; block++) {
			int result = 0;

			if (is_bad(nand, block))
				continue;
			for (uint64_t page = 0; result == 0 && page < 64; page++, programs++)
				result = program_filled(nand, block * 64 + page, 1);
			failed += result == -EIO;
			if (result < 0)
				continue;
			result = nand_erase(nand, NAND_CAUSE_USER, block);
			failed_erases += result == -EIO;
			erases++;
		}
	}
	assert_within_3_sigma(failed, programs, 0.002);
	assert_within_3_sigma(failed_erases, erases, 0.01);
	assert_int_equal(nand_close(nand), 0);
}

/* By themselves, as programs leave too few blocks for a rate of erases. */
static void test_erases_alone_fail_as_often_as_they_were_told_to(void **state)
{
	struct nand *nand = open_large();
	double erases = 0, failed = 0;

	(void)state;
	set_faults(nand, faults_of("erase=0.02,seed=9"));
	for (uint32_t block = 0; block < BLOCKS; block++) {
		int result = 0;

		for (int turn = 0; turn < 100 && result == 0; turn++, erases++)
			result = nand_erase(nand, NAND_CAUSE_USER, block);
		failed += result == -EIO;
	}
	assert_true(erases > 2000);
	assert_within_3_sigma(failed, erases, 0.02);
	assert_int_equal(nand_close(nand), 0);
}

/* All are as likely as can be, and one is switched on. */
static void test_each_fault_has_a_switch_of_its_own(void **state)
{
	struct nand_faults faults = faults_of("factory-bad=1,program=1,erase=1,endurance=1,"
					      "spread=0,unreadable=1,rber=0.01,ecc=1/1024,seed=3");

	(void)state;
	for (int on = 0; on <= NAND_FAULTS; on++) {
		struct nand *nand = open_small();
		bool fails_first;

		for (uint32_t block = 0; block < 3; block++)
			assert_int_equal(program_filled(nand, (uint64_t)block * 8, 1), 0);
		log_capture();
		faults.on = on < NAND_FAULTS ? 1U << on : 0;
		set_faults(nand, faults);
		assert_int_equal(is_bad(nand, 5), on == NAND_FAULT_FACTORY_BAD);
		assert_int_equal(program_filled(nand, 1, 1), on == NAND_FAULT_PROGRAM ? -EIO : 0);
		assert_int_equal(
			read_filled(nand, 8, 1),
			on == NAND_FAULT_BIT_ERRORS || on == NAND_FAULT_UNREADABLE ? -EBADMSG : 0);
		fails_first = nand_erase(nand, NAND_CAUSE_USER, 2) == -EIO;
		assert_int_equal(fails_first, on == NAND_FAULT_ERASE);
		if (!fails_first)
			assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 2),
					 on == NAND_FAULT_ENDURANCE ? -EIO : 0);
		assert_int_equal(nand_close(nand), 0);
	}
}

/* One seed for all kinds of faults, yet whom one hits says nothing about another. */
static void test_kinds_of_faults_are_independent_of_one_another(void **state)
{
	bool unreadable[BLOCKS];
	struct nand *nand = open_large();
	double failed = 0, both = 0;

	(void)state;
	set_faults(nand, faults_of("unreadable=0.5,ecc=1/1024,seed=21"));
	for (uint32_t block = 0; block < BLOCKS; block++) {
		assert_int_equal(program_filled(nand, (uint64_t)block * 64, 1), 0);
		unreadable[block] = read_filled(nand, (uint64_t)block * 64, 1) == -EBADMSG;
	}
	assert_int_equal(nand_close(nand), 0);
	nand = open_large();
	set_faults(nand, faults_of("program=0.5,seed=21"));
	for (uint32_t block = 0; block < BLOCKS; block++) {
		if (program_filled(nand, (uint64_t)block * 64, 1) == 0)
			continue;
		failed++;
		both += unreadable[block];
	}
	assert_true(failed > 10);
	assert_within_3_sigma(both, failed, 0.5);
	assert_int_equal(nand_close(nand), 0);
}

static void test_blocks_wear_out_within_the_spread_of_their_endurance(void **state)
{
	struct nand *nand = open_small();
	uint32_t least = UINT32_MAX, most = 0;

	(void)state;
	set_faults(nand, faults_of("endurance=1000,spread=0.1"));
	for (uint32_t block = 0; block < 16; block++) {
		struct nand_block_info info;
		int result = 0;

		for (int erase = 0; erase <= 1100 && result == 0; erase++)
			result = nand_erase(nand, NAND_CAUSE_USER, block);
		assert_int_equal(nand_block_info(nand, block, &info), 0);
		assert_int_equal(info.state, NAND_BLOCK_BAD);
		assert_in_range(info.erase_count, 899, 1100);
		least = info.erase_count < least ? info.erase_count : least;
		most = info.erase_count > most ? info.erase_count : most;
	}
	assert_true(most - least > 100);
	assert_non_null(strstr(log_captured(), "worn out"));
	assert_int_equal(nand_close(nand), 0);

	nand = open_small();
	set_faults(nand, faults_of("endurance=7,spread=0"));
	for (int erase = 0; erase < 7; erase++)
		assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 5), 0);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 5), -EIO);
	assert_int_equal(nand_close(nand), 0);
}

static void test_factory_bad_blocks_are_a_share_of_those_that_hold_nothing(void **state)
{
	struct nand_geometry geometry = small_geometry;
	struct nand *nand;
	double bad = 0;

	(void)state;
	geometry.blocks = 10000;
	assert_int_equal(nand_open_memory(&geometry, 0, &nand, NULL), 0);
	for (uint64_t block = 0; block < 1000; block++)
		assert_int_equal(program_filled(nand, block * 8, 1), 0);
	set_faults(nand, faults_of("factory-bad=0.02,seed=8"));
	for (uint32_t block = 0; block < 10000; block++) {
		bad += is_bad(nand, block);
		assert_true(block >= 1000 || !is_bad(nand, block));
	}
	assert_within_3_sigma(bad, 9000, 0.02);
	assert_int_equal(counters_of(nand).factory_bad, (uint64_t)bad);
	assert_int_equal(nand_close(nand), 0);
}

/* The engine of a formatted device may be about to use any block that was good so far. */
static void test_on_a_formatted_device_a_factory_bad_block_fails_when_it_is_first_used(void **state)
{
	struct nand_geometry geometry = small_geometry;
	struct nand *nand, *formatted;
	uint64_t failed = 0;

	(void)state;
	geometry.blocks = 2000;
	log_capture();
	assert_int_equal(nand_open_memory(&geometry, 0, &nand, NULL), 0);
	assert_int_equal(nand_open_memory(&geometry, 0, &formatted, NULL), 0);
	assert_int_equal(nand_set_contents(formatted, "muninn", NULL), 0);
	set_faults(nand, faults_of("factory-bad=0.1,seed=8"));
	set_faults(formatted, faults_of("factory-bad=0.1,seed=8"));
	assert_int_equal(counters_of(formatted).factory_bad, 0);
	for (uint32_t block = 0; block < geometry.blocks; block++) {
		int result;

		assert_false(is_bad(formatted, block));
		result = block % 2 ? nand_erase(formatted, NAND_CAUSE_USER, block)
				   : program_filled(formatted, (uint64_t)block * 8, 1);
		assert_int_equal(result, is_bad(nand, block) ? -EIO : 0);
		assert_int_equal(is_bad(formatted, block), is_bad(nand, block));
		failed += result != 0;
		if (result == 0 && block % 2)
			assert_int_equal(program_filled(formatted, (uint64_t)block * 8, 1), 0);
	}
	assert_int_equal(counters_of(formatted).factory_bad, failed);
	assert_int_equal(counters_of(nand).factory_bad, failed);
	assert_int_equal(nand_close(nand), 0);
	assert_int_equal(nand_close(formatted), 0);
}

/* Whoever publishes a seed means the same faults, also on another machine and years later. */
static void test_a_seed_means_the_same_in_every_version(void **state)
{
	static const uint32_t expected[] = { 6, 8, 18, 19, 55, 57 };
	struct nand *nand = open_large();
	size_t found = 0;

	(void)state;
	set_faults(nand, faults_of("factory-bad=0.1,seed=14"));
	for (uint32_t block = 0; block < BLOCKS; block++) {
		if (!is_bad(nand, block))
			continue;
		assert_true(found < sizeof(expected) / sizeof(expected[0]));
		assert_int_equal(block, expected[found++]);
	}
	assert_int_equal(found, sizeof(expected) / sizeof(expected[0]));
	assert_int_equal(nand_close(nand), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_failed_program_turns_its_block_bad_and_keeps_the_pages_before),
		cmocka_unit_test(test_a_failed_erase_turns_its_block_bad_and_loses_its_pages),
		cmocka_unit_test(test_setting_faults_again_counts_from_the_beginning),
		cmocka_unit_test(test_programs_and_erases_fail_as_often_as_they_were_told_to),
		cmocka_unit_test(test_erases_alone_fail_as_often_as_they_were_told_to),
		cmocka_unit_test(test_each_fault_has_a_switch_of_its_own),
		cmocka_unit_test(test_kinds_of_faults_are_independent_of_one_another),
		cmocka_unit_test(test_blocks_wear_out_within_the_spread_of_their_endurance),
		cmocka_unit_test(test_a_seed_means_the_same_in_every_version),
		cmocka_unit_test(test_factory_bad_blocks_are_a_share_of_those_that_hold_nothing),
		cmocka_unit_test(
			test_on_a_formatted_device_a_factory_bad_block_fails_when_it_is_first_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
