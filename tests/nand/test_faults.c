/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Faults: each does what its name says, can be replayed from its seed, and hits as often as it was
 * told to.
 */
#include "tests/nand/fault_scene.h"

static void program_all(struct nand *nand)
{
	for (uint64_t page = 0; page < nand->layout.pages; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
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
		{ "ecc=/1024", "must be BITS/BYTES" },
		{ "ecc=40-1024", "must be BITS/BYTES" },
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

static void test_each_setting_has_a_limit(void **state)
{
	struct nand *nand = open_small();
	struct nand_faults faults = nand_faults_default();
	const struct {
		double *field, most;
	} cases[] = {
		{ &faults.factory_bad, 1 },     { &faults.program_failure, 1 },
		{ &faults.erase_failure, 1 },   { &faults.endurance_spread, 1 },
		{ &faults.base, 0.5 },          { &faults.per_kilocycle, 1e9 },
		{ &faults.cycle_exponent, 10 }, { &faults.per_kilohour, 1e9 },
		{ &faults.unreadable, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		faults = nand_faults_default();
		*cases[i].field = cases[i].most;
		assert_int_equal(nand_set_faults(nand, &faults, NULL), 0);
		*cases[i].field = nextafter(cases[i].most, INFINITY);
		assert_int_equal(nand_set_faults(nand, &faults, NULL), -EINVAL);
		*cases[i].field = -1e-9;
		assert_int_equal(nand_set_faults(nand, &faults, NULL), -EINVAL);
	}
	faults = nand_faults_default();
	faults.ecc_bits = 1001;
	assert_int_equal(nand_set_faults(nand, &faults, NULL), -EINVAL);
	assert_int_equal(nand_close(nand), 0);
}

/* What is at a limit is taken, what is behind it is not. */
static void test_each_setting_of_a_fault_has_its_limit(void **state)
{
	const struct {
		const char *key, *most, *more;
	} cases[] = {
		{ "factory-bad", "1", "1.01" },  { "program", "1", "1.01" },
		{ "erase", "1", "1.01" },        { "endurance", "4294967295", "4294967296" },
		{ "spread", "1", "1.01" },       { "rber", "0.5", "0.51" },
		{ "wear", "1e9", "1.1e9" },      { "exponent", "10", "10.1" },
		{ "retention", "1e9", "1.1e9" }, { "unreadable", "1", "1.01" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nand_faults faults;
		struct error_text error = { "" };
		char text[64];

		snprintf(text, sizeof(text), "%s=%s", cases[i].key, cases[i].most);
		assert_int_equal(nand_faults_parse(text, &faults, &error), 0);
		snprintf(text, sizeof(text), "%s=%s", cases[i].key, cases[i].more);
		assert_int_equal(nand_faults_parse(text, &faults, &error), -EINVAL);
		assert_non_null(strstr(error.text, cases[i].key));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_setting_of_a_fault_has_its_limit),
		cmocka_unit_test(test_the_raw_bit_error_rate_is_what_was_set),
		cmocka_unit_test(test_errors_are_spread_evenly_and_independently),
		cmocka_unit_test(test_the_rate_grows_with_wear_and_age_by_the_formula),
		cmocka_unit_test(test_age_counts_from_the_first_program_of_the_block),
		cmocka_unit_test(test_a_page_has_the_same_errors_whenever_and_however_it_is_read),
		cmocka_unit_test(test_wrong_bits_stay_wrong_when_the_rate_grows),
		cmocka_unit_test(test_ecc_corrects_up_to_its_power_and_not_a_bit_more),
		cmocka_unit_test(test_no_wrong_bit_ever_gets_past_the_checksum),
		cmocka_unit_test(test_unreadable_pages_stay_so_until_their_block_is_erased),
		cmocka_unit_test(test_all_faults_together_are_replayed_from_their_seed),
		cmocka_unit_test(test_faults_are_of_one_device_and_can_be_switched_while_it_runs),
		cmocka_unit_test(test_settings_that_make_no_sense_say_what_is_wrong),
		cmocka_unit_test(test_each_setting_has_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
