/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Faults: each does what its name says, can be replayed from its seed, and hits as often as it was
 * told to.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/nand/fixture.h"

#include "nand/faults.h"

/* 64 blocks of 64 pages of 4096 + 128 bytes: 1.38 * 10^8 bits. */
enum { BLOCKS = 64, PAGES = BLOCKS * 64, PAGE_BITS = (4096 + 128) * 8 };

static struct nand *open_large(void)
{
	struct nand_geometry geometry = small_geometry;
	struct nand *nand;

	geometry.pages_per_block = 64;
	geometry.blocks = BLOCKS;
	assert_int_equal(nand_open_memory(&geometry, 0, &nand, NULL), 0);
	nand_set_violation_policy(nand, NAND_VIOLATION_FAILS);
	log_capture();
	return nand;
}

static void set_faults(struct nand *nand, struct nand_faults faults)
{
	struct error_text error = { "" };

	if (nand_set_faults(nand, &faults, &error) < 0)
		fail_msg("%s", error.text);
}

static struct nand_faults faults_of(const char *text)
{
	struct error_text error = { "" };
	struct nand_faults faults;

	if (nand_faults_parse(text, &faults, &error) < 0)
		fail_msg("%s", error.text);
	return faults;
}

static struct nand_fault_counters counters_of(struct nand *nand)
{
	struct nand_fault_counters counters;

	nand_read_fault_counters(nand, &counters);
	return counters;
}

static void program_all(struct nand *nand)
{
	for (uint64_t page = 0; page < nand->layout.pages; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
}

static bool is_bad(struct nand *nand, uint32_t block)
{
	struct nand_block_info info;

	assert_int_equal(nand_block_info(nand, block, &info), 0);
	return info.state == NAND_BLOCK_BAD;
}

static void assert_within_3_sigma(double found, double bits, double rate)
{
	double expected = bits * rate, sigma = sqrt(bits * rate * (1 - rate));

	if (fabs(found - expected) > 3 * sigma)
		fail_msg("%.0f of %.0f are wrong, expected are %.1f +- 3 * %.1f", found, bits,
			 expected, sigma);
}

/* ---- bit errors ---- */

static uint32_t wrong_bits(const uint8_t *a, const uint8_t *b, size_t bytes)
{
	uint32_t count = 0;

	for (size_t i = 0; i < bytes; i++)
		count += (uint32_t)__builtin_popcount(a[i] ^ b[i]);
	return count;
}

static void test_the_raw_bit_error_rate_is_what_was_set(void **state)
{
	static const double rates[] = { 1e-6, 1e-4, 1e-2 };
	struct nand *nand = open_large();
	struct nand_faults faults = faults_of("rber=0,seed=77");
	uint64_t before = 0;

	(void)state;
	program_all(nand);
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		uint64_t errors;

		faults.base = rates[i];
		faults.ecc_bits = 1000;
		set_faults(nand, faults);
		for (uint64_t page = 0; page < PAGES; page++)
			assert_int_equal(read_filled(nand, page, 1), 0);
		errors = counters_of(nand).raw_bit_errors - before;
		assert_within_3_sigma((double)errors, (double)PAGES * PAGE_BITS, rates[i]);
		before += errors;
	}
	assert_int_equal(counters_of(nand).corrected_bits, before);
	assert_int_equal(nand_close(nand), 0);
}

static void test_errors_are_spread_evenly_and_independently(void **state)
{
	enum { BINS = 32 };
	struct nand *nand = open_large();
	double in_bin[BINS] = { 0 }, squares = 0, rate = 1e-3, bits = 4096 * 8;

	(void)state;
	program_all(nand);
	set_faults(nand, faults_of("rber=1e-3,ecc=0/1024,seed=5"));
	for (uint64_t page = 0; page < PAGES; page++) {
		uint8_t data[4096], expected[4096], spare[128];
		struct nand_page_io io = { page, data, NULL };
		double errors = 0;

		fill_page(nand, page, 1, expected, spare);
		assert_int_equal(nand_read(nand, NAND_CAUSE_USER, &io, 1), -EBADMSG);
		for (size_t bin = 0; bin < BINS; bin++) {
			size_t at = bin * 4096 / BINS;
			uint32_t wrong = wrong_bits(data + at, expected + at, 4096 / BINS);

			in_bin[bin] += wrong;
			errors += wrong;
		}
		squares += (errors - bits * rate) * (errors - bits * rate);
	}
	for (size_t bin = 0; bin < BINS; bin++)
		assert_within_3_sigma(in_bin[bin], PAGES * bits / BINS, rate);
	/*
	 * The variance of the errors of a page is that of independent bits: bits * rate * (1 -
	 * rate), within 3 sigma.
	 */
	assert_true(fabs(squares / PAGES / (bits * rate * (1 - rate)) - 1) < 3 * sqrt(2.0 / PAGES));
	assert_int_equal(nand_close(nand), 0);
}

static void test_the_rate_grows_with_wear_and_age_by_the_formula(void **state)
{
	struct nand *nand = open_large();
	uint64_t before;
	double pages = 0;

	(void)state;
	for (int erase = 0; erase < 2000; erase++)
		for (uint32_t block = 0; block < BLOCKS / 2; block++)
			assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, block), 0);
	set_faults(nand, faults_of("rber=1e-5,wear=1e-4,exponent=2,retention=2e-4,ecc=1000/1024"));
	program_all(nand);
	assert_int_equal(nand_age(nand, 500), 0);
	for (uint64_t page = 0; page < PAGES / 2; page++, pages++)
		assert_int_equal(read_filled(nand, page, 1), 0);
	before = counters_of(nand).raw_bit_errors;
	assert_within_3_sigma((double)before, pages * PAGE_BITS,
			      1e-5 + 1e-4 * 4 + 2e-4 * 0.5 * (1 + 2));
	for (uint64_t page = PAGES / 2; page < PAGES; page++)
		assert_int_equal(read_filled(nand, page, 1), 0);
	assert_within_3_sigma((double)(counters_of(nand).raw_bit_errors - before),
			      pages * PAGE_BITS, 1e-5 + 2e-4 * 0.5);
	assert_int_equal(nand_close(nand), 0);
}

static void test_age_counts_from_the_first_program_of_the_block(void **state)
{
	struct nand *nand = open_small();

	(void)state;
	assert_int_equal(nand_age(nand, 1), -EINVAL);
	set_faults(nand, faults_of("retention=0.01,ecc=0/1024"));
	assert_int_equal(program_filled(nand, 0, 1), 0);
	assert_int_equal(nand_age(nand, 1000), 0);
	assert_int_equal(program_filled(nand, 8, 1), 0);
	assert_int_equal(read_filled(nand, 0, 1), -EBADMSG);
	assert_int_equal(read_filled(nand, 8, 1), 0);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), 0);
	assert_int_equal(program_filled(nand, 0, 2), 0);
	assert_int_equal(read_filled(nand, 0, 2), 0);
	assert_int_equal(nand_close(nand), 0);
}

static void test_a_page_has_the_same_errors_whenever_and_however_it_is_read(void **state)
{
	uint8_t data[2][4096], other[4096], spare[128];
	struct nand_page_io io[] = { { 3, data[0], NULL }, { 3, data[1], NULL } };

	(void)state;
	for (int run = 0; run < 2; run++) {
		struct nand *nand = open_small();

		set_faults(nand, faults_of("rber=1e-3,ecc=0/1024,seed=9"));
		for (uint64_t page = 0; page < 8; page++)
			assert_int_equal(program_filled(nand, page, 1), 0);
		for (uint64_t page = 0; run && page < 8; page++)
			read_filled(nand, page, 1);
		assert_int_equal(nand_read(nand, NAND_CAUSE_USER, &io[run], 1), -EBADMSG);
		fill_page(nand, 3, 1, other, spare);
		assert_memory_not_equal(data[run], other, sizeof(other));
		if (run == 0) {
			io[1].data = data[1];
			assert_int_equal(nand_read(nand, NAND_CAUSE_USER, &io[1], 1), -EBADMSG);
			assert_memory_equal(data[0], data[1], sizeof(data[0]));
			set_faults(nand, faults_of("rber=1e-3,ecc=0/1024,seed=10"));
			nand_read(nand, NAND_CAUSE_USER, &io[1], 1);
			assert_memory_not_equal(data[0], data[1], sizeof(data[0]));
		}
		assert_int_equal(nand_close(nand), 0);
	}
	assert_memory_equal(data[0], data[1], sizeof(data[0]));
}

static void test_wrong_bits_stay_wrong_when_the_rate_grows(void **state)
{
	struct nand *nand = open_small();
	uint8_t few[4096], many[4096], right[4096], spare[128];
	struct nand_page_io io = { 0, few, NULL };

	(void)state;
	assert_int_equal(program_filled(nand, 0, 1), 0);
	fill_page(nand, 0, 1, right, spare);
	set_faults(nand, faults_of("rber=1e-3,ecc=0/1024"));
	assert_int_equal(nand_read(nand, NAND_CAUSE_USER, &io, 1), -EBADMSG);
	set_faults(nand, faults_of("rber=4e-3,ecc=0/1024"));
	io.data = many;
	assert_int_equal(nand_read(nand, NAND_CAUSE_USER, &io, 1), -EBADMSG);
	for (size_t i = 0; i < sizeof(few); i++)
		assert_int_equal((few[i] ^ right[i]) & ~(many[i] ^ right[i]), 0);
	assert_true(wrong_bits(many, right, 4096) > wrong_bits(few, right, 4096));
	assert_int_equal(nand_close(nand), 0);
}

/* Fewest errors of a codeword of the page that would have to be corrected for it to be read. */
static uint32_t worst_codeword(const uint8_t *data, const uint8_t *right)
{
	uint32_t most = 0;

	for (size_t at = 0; at < 4096; at += 512) {
		uint32_t wrong = wrong_bits(data + at, right + at, 512);

		most = wrong > most ? wrong : most;
	}
	return most;
}

static void test_ecc_corrects_up_to_its_power_and_not_a_bit_more(void **state)
{
	struct nand *nand = open_small();
	uint8_t data[4096], right[4096], spare[128];
	struct nand_page_io io = { 0, data, NULL };
	struct nand_faults faults = faults_of("rber=2e-3,ecc=0/512,seed=4");
	struct nand_counters counters;
	struct nand_fault_counters found;
	uint32_t worst;

	(void)state;
	assert_int_equal(program_filled(nand, 0, 1), 0);
	fill_page(nand, 0, 1, right, spare);
	set_faults(nand, faults);
	assert_int_equal(nand_read(nand, NAND_CAUSE_USER, &io, 1), -EBADMSG);
	worst = worst_codeword(data, right);
	assert_true(worst > 5);

	faults.ecc_bits = worst - 1;
	set_faults(nand, faults);
	assert_int_equal(nand_read(nand, NAND_CAUSE_USER, &io, 1), -EBADMSG);
	assert_int_equal(worst_codeword(data, right), worst);

	faults.ecc_bits = worst;
	set_faults(nand, faults);
	found = counters_of(nand);
	assert_int_equal(read_filled(nand, 0, 1), 0);
	assert_true(counters_of(nand).corrected_bits >= found.corrected_bits + worst);
	assert_int_equal(counters_of(nand).uncorrectable_codewords, found.uncorrectable_codewords);
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.uncorrectable_reads, 2);
	assert_int_equal(nand_close(nand), 0);
}

/*
 * The model never answers for the data: with its power at nothing, whatever is wrong is found by
 * the page's checksums.
 */
static void test_no_wrong_bit_ever_gets_past_the_checksum(void **state)
{
	struct nand *nand = open_large();
	uint64_t failed = 0;

	(void)state;
	program_all(nand);
	set_faults(nand, faults_of("rber=2e-5,ecc=0/1024,seed=3"));
	for (uint64_t page = 0; page < PAGES; page++)
		failed += read_filled(nand, page, 1) == -EBADMSG;
	/* Of the pages, 1 - exp(-bits * rate) have an error. */
	assert_within_3_sigma((double)failed, PAGES, 1 - exp(-2e-5 * PAGE_BITS));
	assert_int_equal(nand_close(nand), 0);
}

static void test_unreadable_pages_stay_so_until_their_block_is_erased(void **state)
{
	struct nand *nand = open_large();
	uint64_t failed = 0;

	(void)state;
	program_all(nand);
	set_faults(nand, faults_of("unreadable=0.05,ecc=1000/4096"));
	for (uint64_t page = 0; page < PAGES; page++) {
		int result = read_filled(nand, page, 1);

		failed += result == -EBADMSG;
		assert_int_equal(read_filled(nand, page, 1), result);
	}
	assert_within_3_sigma((double)failed, PAGES, 0.05);
	for (uint64_t page = 0; page < PAGES; page++) {
		if (read_filled(nand, page, 1) == 0)
			continue;
		assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, (uint32_t)(page / 64)), 0);
		for (uint64_t at = page / 64 * 64; at <= page; at++)
			assert_int_equal(program_filled(nand, at, 1), 0);
		assert_int_equal(read_filled(nand, page, 1), 0);
		break;
	}
	assert_int_equal(nand_set_faults(nand, NULL, NULL), 0);
	for (uint64_t page = 64; page < PAGES; page++)
		assert_true(read_filled(nand, page, 1) != -EBADMSG);
	assert_int_equal(nand_close(nand), 0);
}

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

/* ---- together, switched, replayed ---- */

/*
 * Everything on; a load that is answered as it comes. Returns a sum over all answers, counters and
 * states.
 */
static uint64_t run_everything(const char *text, bool backwards)
{
	struct nand *nand = open_small();
	struct nand_fault_counters counters;
	uint64_t sum = 0;

	set_faults(nand, faults_of(text));
	for (int round = 0; round < 60; round++) {
		for (uint32_t n = 0; n < 16; n++) {
			uint32_t block = backwards ? 15 - n : n;
			uint64_t answers = 0;

			for (uint64_t page = 0; page < 8; page++) {
				uint64_t number = block * 8 + page;

				answers = answers * 7 - (uint64_t)program_filled(nand, number, 1);
				answers = answers * 7 - (uint64_t)read_filled(nand, number, 1);
			}
			answers = answers * 7 - (uint64_t)nand_erase(nand, NAND_CAUSE_USER, block);
			sum += answers * (block + 1) *
			       2654435761U; /* the order of blocks is left out */
		}
		nand_age(nand, 100);
	}
	counters = counters_of(nand);
	sum = sum * 31 + counters.raw_bit_errors;
	sum = sum * 31 + counters.corrected_bits;
	sum = sum * 31 + counters.program_failures * 1000 + counters.erase_failures;
	for (uint32_t block = 0; block < 16; block++)
		sum = sum * 31 + is_bad(nand, block);
	assert_true(counters.program_failures > 0 && counters.erase_failures > 0);
	assert_true(counters.uncorrectable_codewords > 0 && counters.corrected_codewords > 0);
	assert_int_equal(nand_close(nand), 0);
	return sum;
}

static void test_all_faults_together_are_replayed_from_their_seed(void **state)
{
	static const char all[] =
		"factory-bad=0.1,program=0.002,erase=0.004,endurance=50,rber=1e-3,wear=5e-3,"
		"retention=1e-4,unreadable=0.01,ecc=12/1024,seed=";
	char text[256];
	uint64_t first;

	(void)state;
	snprintf(text, sizeof(text), "%s21", all);
	first = run_everything(text, false);
	assert_true(run_everything(text, false) == first);
	assert_true(run_everything(text, true) ==
		    first); /* the order of operations does not matter */
	snprintf(text, sizeof(text), "%s22", all);
	assert_true(run_everything(text, false) != first);
}

static void test_faults_are_of_one_device_and_can_be_switched_while_it_runs(void **state)
{
	struct nand *faulty = open_small(), *sound = open_small();
	struct nand_faults faults = faults_of("rber=0.01,ecc=0/1024"), found;

	(void)state;
	assert_int_equal(program_filled(faulty, 0, 1), 0);
	assert_int_equal(program_filled(sound, 0, 1), 0);
	set_faults(faulty, faults);
	assert_int_equal(read_filled(faulty, 0, 1), -EBADMSG);
	assert_int_equal(read_filled(sound, 0, 1), 0);
	faults.on = 0;
	set_faults(faulty, faults);
	assert_int_equal(read_filled(faulty, 0, 1), 0);
	faults.on = 1U << NAND_FAULT_BIT_ERRORS;
	set_faults(faulty, faults);
	assert_int_equal(read_filled(faulty, 0, 1), -EBADMSG);
	nand_get_faults(faulty, &found);
	assert_int_equal(found.on, faults.on);
	assert_int_equal(nand_set_faults(faulty, NULL, NULL), 0);
	assert_int_equal(read_filled(faulty, 0, 1), 0);
	assert_int_equal(nand_close(faulty), 0);
	assert_int_equal(nand_close(sound), 0);
}

static void test_settings_that_make_no_sense_say_what_is_wrong(void **state)
{
	static const struct {
		const char *text, *fragment;
	} cases[] = {
		{ "rber=2", "rber is '2', must be a number from 0 to 0.5" },
		{ "program=nan", "program is 'nan'" },
		{ "program=-1", "program is '-1'" },
		{ "bits=3", "there is no setting 'bits'" },
		{ "ecc=40", "must be BITS/BYTES" },
		{ "ecc=40/", "must be BITS/BYTES" },
		{ "seed=x", "seed is 'x'" },
		{ "endurance=5000000000", "from 0 to 4294967295" },
	};
	struct nand *nand = open_small();
	struct nand_faults faults = nand_faults_default();
	struct error_text error = { "" };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(nand_faults_parse(cases[i].text, &faults, &error), -EINVAL);
		if (!strstr(error.text, cases[i].fragment))
			fail_msg("\"%s\" is not in \"%s\"", cases[i].fragment, error.text);
	}
	faults.ecc_codeword_bytes = 1000;
	assert_int_equal(nand_set_faults(nand, &faults, &error), -EINVAL);
	assert_non_null(strstr(error.text, "ECC codewords of 1000 bytes"));
	faults = nand_faults_default();
	faults.on = 1U << NAND_FAULTS;
	assert_int_equal(nand_set_faults(nand, &faults, &error), -EINVAL);
	assert_int_equal(nand_close(nand), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_raw_bit_error_rate_is_what_was_set),
		cmocka_unit_test(test_errors_are_spread_evenly_and_independently),
		cmocka_unit_test(test_the_rate_grows_with_wear_and_age_by_the_formula),
		cmocka_unit_test(test_age_counts_from_the_first_program_of_the_block),
		cmocka_unit_test(test_a_page_has_the_same_errors_whenever_and_however_it_is_read),
		cmocka_unit_test(test_wrong_bits_stay_wrong_when_the_rate_grows),
		cmocka_unit_test(test_ecc_corrects_up_to_its_power_and_not_a_bit_more),
		cmocka_unit_test(test_no_wrong_bit_ever_gets_past_the_checksum),
		cmocka_unit_test(test_unreadable_pages_stay_so_until_their_block_is_erased),
		cmocka_unit_test(
			test_a_failed_program_turns_its_block_bad_and_keeps_the_pages_before),
		cmocka_unit_test(test_a_failed_erase_turns_its_block_bad_and_loses_its_pages),
		cmocka_unit_test(test_programs_and_erases_fail_as_often_as_they_were_told_to),
		cmocka_unit_test(test_erases_alone_fail_as_often_as_they_were_told_to),
		cmocka_unit_test(test_each_fault_has_a_switch_of_its_own),
		cmocka_unit_test(test_kinds_of_faults_are_independent_of_one_another),
		cmocka_unit_test(test_blocks_wear_out_within_the_spread_of_their_endurance),
		cmocka_unit_test(test_factory_bad_blocks_are_a_share_of_those_that_hold_nothing),
		cmocka_unit_test(test_all_faults_together_are_replayed_from_their_seed),
		cmocka_unit_test(test_faults_are_of_one_device_and_can_be_switched_while_it_runs),
		cmocka_unit_test(test_settings_that_make_no_sense_say_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
