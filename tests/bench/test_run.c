/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench run`: its arguments, its fields, its arithmetic, and that virtual time repeats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "engine/muninn/format.h"
#include "tests/bench/support.h"

static void test_a_pair_is_its_header_and_its_value(void **state)
{
	(void)state;
	assert_int_equal(PAIR_HEADER_BYTES, RECORD_HEADER_BYTES);
}

static void test_arguments_are_understood(void **state)
{
	struct bench_options options;

	(void)state;
	parse_well(&options,
		   "--engine muninn --index bloom --nand mmap --size 64G --pairs 50000000"
		   " --pair-size 512 --op insert,mixed:0.25,absent --dist sequential,latest,"
		   "zipfian --ops 7 --threads 2 --timing none --time real --history off --rows"
		   " 16 --segment-size 2M --filters N16/15 --fpr 0.001 --fpr-factor 1.1 --seed 9"
		   " --hot-rows spread --tables demand:64M");
	assert_true(options.size == UINT64_C(64) << 30);
	assert_true(options.pairs == 50000000 && options.pair_bytes == 512);
	assert_int_equal(options.phase_count, 3);
	assert_int_equal(options.phases[0].operation, OPERATION_INSERT);
	assert_int_equal(options.phases[0].distribution, DISTRIBUTION_SEQUENTIAL);
	assert_true(options.phases[0].operations == 0);
	assert_int_equal(options.phases[1].operation, OPERATION_MIXED);
	assert_int_equal(options.phases[1].distribution, DISTRIBUTION_LATEST);
	assert_true(options.phases[1].lookup_share == 0.25);
	assert_int_equal(options.phases[2].operation, OPERATION_ABSENT);
	assert_int_equal(options.phases[2].distribution, DISTRIBUTION_ZIPFIAN);
	assert_true(options.phases[2].operations == 7);
	assert_true(options.threads == 2 && !options.history);
	assert_int_equal(options.timing.mode, NAND_TIMING_OFF);
	assert_true(options.rows == 16 && options.segment_bytes == 2 << 20);
	assert_true(options.filters == 16 && options.paged_filters == 15 && options.even_filters);
	assert_true(options.fpr_millionths == 1000 && options.fpr_factor_permille == 1100);
	assert_true(options.seed == 9 && options.hot_rows == BLOOM_HOT_ROWS_SPREAD);
	assert_true(options.table_cache_bytes == 64 << 20);
}

static void test_the_share_of_lookups_may_be_a_percentage(void **state)
{
	struct bench_options options;

	(void)state;
	parse_well(&options, "--op mixed:95");
	assert_true(options.phases[0].lookup_share == 0.95);
}

static void test_wrong_arguments_are_named(void **state)
{
	static const struct {
		const char *line, *said;
	} cases[] = {
		{ "--pairs", "--pairs" },
		{ "--pairs x", "--pairs x" },
		{ "--pairs 0", "--pairs 0" },
		{ "--pairs -5", "--pairs -5" },
		{ "--pairs 99999999999999999999", "--pairs 99999999999999999999" },
		{ "--size 64X", "--size 64X" },
		{ "--size 64GB", "--size 64GB" },
		{ "--size 99999999999T", "--size 99999999999T" },
		{ "--pair-size 20", "--pair-size 20" },
		{ "--pair-size 4125", "--pair-size 4125" },
		{ "--engine other", "--engine other" },
		{ "--index trie", "--index trie: must be bloom or ribbon" },
		{ "--index ribbon --filters S8/7", "--filters: only the Bloom index" },
		{ "--hot-rows spread --index ribbon", "--hot-rows: only the Bloom index" },
		{ "--index ribbon --fpr 0.001", "--fpr: only the Bloom index" },
		{ "--index ribbon --fpr-factor 1.1", "--fpr-factor: only the Bloom index" },
		{ "--index ribbon --tables ram", "--tables: only the Bloom index" },
		{ "--index ribbon --internal-version-tables 2", "--internal-version-tables: only" },
		{ "--index ribbon --merge filters", "the ribbon index has none" },
		{ "--nand tape", "--nand tape" },
		{ "--nand mmap:", "--nand mmap:" },
		{ "--nand file", "--nand file" },
		{ "--op fly", "--op fly" },
		{ "--op insert,,lookup", "--op" },
		{ "--op mixed", "--op mixed" },
		{ "--op mixed:101", "--op mixed 101" },
		{ "--op lookup,insert", "first phase" },
		{ "--dist normal", "--dist normal" },
		{ "--op insert,lookup --dist random,random,random",
		  "3 distributions for 2 phases" },
		{ "--op insert --dist newest", "--dist newest" },
		{ "--op insert,delete --pairs 10 --ops 11", "--ops 11" },
		{ "--op insert,lookup --pairs 10 --window 11", "--window 11" },
		{ "--threads 0", "--threads 0" },
		{ "--threads 2", "one thread" },
		{ "--depth 0", "--depth 0" },
		{ "--depth 1025", "--depth 1025" },
		{ "--depth 2 --threads 2 --time real --timing none", "--depth 2" },
		{ "--time virtual+", "--time virtual+" },
		{ "--timing fast", "--timing fast" },
		{ "--timing none", "--timing none" },
		{ "--timing tlc,read=x", "--timing tlc,read=x" },
		{ "--time sometimes", "--time sometimes" },
		{ "--history maybe", "--history maybe" },
		{ "--hot-rows cool", "--hot-rows cool" },
		{ "--hot-rows keep", "finalise or spread" },
		{ "--merge often", "--merge often" },
		{ "--internal-version-tables 0", "--internal-version-tables 0" },
		{ "--tables disk", "--tables disk" },
		{ "--tables demand:1", "demand 1" },
		{ "--filters S8/6", "--filters S8/6" },
		{ "--filters 8/7", "--filters 8/7" },
		{ "--fpr 0", "--fpr 0" },
		{ "--fpr nan", "--fpr nan" },
		{ "--fpr-factor 0.89", "--fpr-factor 0.89" },
		{ "--pareto-shape 1", "--pareto-shape 1" },
		{ "--frobnicate", "--frobnicate" },
		{ "insert", "insert" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench_options options;
		struct error_text error = { "" };

		if (parse(&options, cases[i].line, &error) != -EINVAL)
			fail_msg("%s is accepted", cases[i].line);
		if (!strstr(error.text, cases[i].said))
			fail_msg("%s: '%s' does not name %s", cases[i].line, error.text,
				 cases[i].said);
	}
}

static void test_help_is_asked_for(void **state)
{
	struct bench_options options;
	struct error_text error;

	(void)state;
	assert_int_equal(parse(&options, "--help", &error), 1);
}

static void test_a_store_that_cannot_be_is_refused_with_the_reason(void **state)
{
	static const char *const lines[] = {
		"--rows 3 --size 1G --pairs 1000",   /* no power of two */
		"--rows 1024 --size 64M --pairs 10", /* too few segments */
		"--segment-size 96K --pairs 1000",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct bench_options options;
		struct error_text error = { "" };

		parse_well(&options, lines[i]);
		assert_int_equal(bench_run(&options, stdout, stderr, &error), -EINVAL);
		assert_true(strlen(error.text) > 10);
	}
}

/* Three times the device is written in updates; every lookup of the phase checks what it finds. */
static void test_operations_go_on_while_a_full_device_is_merged(void **state)
{
	static const char *const choices[] = { "sampled", "filters" };

	(void)state;
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		struct bench_options options;
		struct error_text error = { "" };
		char line[200], json[8192] = "";
		FILE *nowhere = fopen("/dev/null", "w");
		FILE *to = fmemopen(json, sizeof(json), "w");

		snprintf(line, sizeof(line),
			 "--size 64M --rows 1 --pairs 20000 --op mixed:0.5 --ops 300000"
			 " --index bloom --merge %s",
			 choices[i]);
		parse_well(&options, line);
		assert_int_equal(bench_run(&options, to, nowhere, &error), 0);
		fclose(to);
		fclose(nowhere);
		const char *freed = strstr(json, "\"merge_segments_freed\":");

		assert_non_null(freed);
		assert_true(strtoul(strchr(freed, ':') + 1, NULL, 10) > 100);
		assert_non_null(strstr(json, "\"p99_us\":"));
	}
}

static void test_a_full_device_says_what_to_do(void **state)
{
	struct bench_options options;
	struct error_text error = { "" };
	FILE *nowhere = fopen("/dev/null", "w");

	(void)state;
	parse_well(&options, "--size 16M --rows 1 --pairs 30000 --op insert");
	assert_int_equal(bench_run(&options, nowhere, nowhere, &error), -ENOSPC);
	assert_non_null(strstr(error.text, "--size"));
	fclose(nowhere);
}

/* So many that they are nearly all that there is; with sanitizers, nobody says what there is. */
#ifdef __SANITIZE_ADDRESS__
#define MOST "--size 1G --rows 4 --pairs 30000 --op insert,lookup --ops 1000 "
#else
#define MOST "--size 1G --rows 4 --pairs 600000 --op insert,lookup --ops 1000 "
#endif

/*
 * By structure, at least 95 % of what the allocator has given out since the engine was opened; and
 * no more than all of it.
 */
static void test_memory_by_structure_explains_what_the_allocator_says(void **state)
{
	static const char *const runs[] = {
		MOST "--nand mmap",
		MOST "--nand headers",
		MOST "--index bloom --nand mmap --tables demand:1M --hot-rows spread --parity 1",
	};

	(void)state;
	for (size_t n = 0; n < sizeof(runs) / sizeof(runs[0]); n++) {
		json_t *phases[PHASES];
		size_t count = run_phases(runs[n], phases);

		for (size_t i = 0; i < count; i++) {
			json_t *memory = json_object_get(phases[i], "memory");
			double sum = number(memory, "sum"), parts = 0;
			json_t *allocated = json_object_get(memory, "allocated"), *bytes;
			const char *kind;

			json_object_foreach(memory, kind, bytes) if (strcmp(kind, "sum") &&
								     strcmp(kind, "allocated"))
				parts += json_number_value(bytes);
			assert_true(parts == sum);
			print_message("%zu.%zu: %.0f bytes by structure, %.0f allocated\n", n, i,
				      sum, json_number_value(allocated));
			if (!json_is_number(allocated)) /* sanitizers */
				continue;
			assert_true(sum >= json_number_value(allocated) * 0.95);
			assert_true(sum <= json_number_value(allocated) * 1.01);
		}
		release(phases, count);
	}
}

static void test_a_phase_has_every_field(void **state)
{
	static const char *const texts[] = { "engine", "index", "nand",    "timing",  "time",
					     "op",     "dist",  "history", "filters", "hot_rows" };
	static const char *const numbers[] = {
		"pairs",
		"parity",
		"ops",
		"seconds",
		"ops_per_s",
		"p50_us",
		"p99_us",
		"p999_us",
		"max_us",
		"processor_us_per_op",
		"page_reads_per_op",
		"page_writes_per_op",
		"segment_utilization",
		"false_positive_reads_per_op",
		"index_bytes_per_key",
		"table_cache_bytes",
		"table_page_reads_per_op",
		"buffer_bytes",
		"erases",
		"size",
		"pair_size",
		"threads",
		"rows",
		"segment_size",
		"fpr",
		"fpr_factor",
		"seed",
	};
	json_t *phases[PHASES];
	size_t count = run_phases(
		SMALL "--index bloom --ops 20000 --op insert,lookup,absent,update,delete,mixed:0.5",
		phases);

	(void)state;
	assert_int_equal(count, 6);
	for (size_t i = 0; i < count; i++) {
		for (size_t n = 0; n < sizeof(texts) / sizeof(texts[0]); n++)
			text(phases[i], texts[n]);
		for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++)
			number(phases[i], numbers[n]);
		assert_true(number(phases[i], "processor_us_per_op") > 0);
	}
	assert_string_equal(text(phases[5], "op"), "mixed");
	assert_string_equal(text(phases[0], "dist"), "random");
	assert_string_equal(text(phases[0], "filters"), "S8/7");
	release(phases, count);
}

/* Options that an index does not have are not reported as if they had been used. */
static void test_only_phases_of_the_bloom_index_name_its_options(void **state)
{
	static const char *const of_bloom[] = { "filters", "hot_rows", "internal_version_tables",
						"fpr", "fpr_factor" };
	static const char *const lines[] = { SMALL "--op insert --index bloom",
					     SMALL "--op insert --index ribbon" };

	(void)state;
	for (size_t line = 0; line < 2; line++) {
		json_t *phases[PHASES];
		size_t count = run_phases(lines[line], phases);

		assert_int_equal(count, 1);
		assert_string_equal(text(phases[0], "index"), line ? "ribbon" : "bloom");
		for (size_t n = 0; n < sizeof(of_bloom) / sizeof(of_bloom[0]); n++)
			assert_int_equal(json_object_get(phases[0], of_bloom[n]) == NULL, line);
		release(phases, count);
	}
}

static void test_the_numbers_of_a_phase_fit_together(void **state)
{
	json_t *phases[PHASES];
	size_t count = run_phases(SMALL "--op insert,lookup,absent,update --history on", phases);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		double ops = number(phases[i], "ops"), seconds = number(phases[i], "seconds");
		double accesses =
			number(phases[i], "page_reads") + number(phases[i], "page_writes");

		assert_close(seconds, accesses * 15e-6);
		assert_close(number(phases[i], "ops_per_s"), ops / seconds);
		assert_close(number(phases[i], "page_reads_per_op"),
			     number(phases[i], "page_reads") / ops);
		assert_close(number(phases[i], "page_writes_per_op"),
			     number(phases[i], "page_writes") / ops);
		assert_close(number(phases[i], "segment_utilization"),
			     number(phases[i], "sealed_record_bytes") /
				     (number(phases[i], "segments_sealed") *
				      number(phases[i], "segment_size")));
		assert_close(number(phases[i], "index_bytes_per_key"),
			     number(phases[i], "index_bytes") / number(phases[i], "keys"));
		assert_true(number(phases[i], "p50_us") <= number(phases[i], "p99_us"));
		assert_true(number(phases[i], "p99_us") <= number(phases[i], "p999_us"));
		assert_true(number(phases[i], "p999_us") <= number(phases[i], "max_us"));
		assert_close(number(phases[i], "keys"), 40000);
	}
	release(phases, count);
}

/* A sealed segment is 16 page programs, and holds whole pairs; a complete table adds its image. */
static void test_inserts_program_the_segments_that_they_fill(void **state)
{
	json_t *phases[PHASES];
	size_t count = run_phases(SMALL "--op insert --dist sequential", phases);
	double segments = number(phases[0], "segments_sealed");
	double programs = number(phases[0], "page_writes");
	double records = number(phases[0], "sealed_records");

	(void)state;
	assert_int_equal(count, 1);
	assert_true(number(phases[0], "tables") > 0);
	assert_true(programs > segments * 16);
	assert_true(programs < segments * 16 * 1.02);
	assert_close(number(phases[0], "sealed_record_bytes"), records * 1024);
	/* What is not sealed is in the four rows' buffers of 64 KiB, or waits in as many more. */
	assert_true(records <= 40000 && records >= 40000 - 8 * 64);
	assert_true(number(phases[0], "page_reads") == 0);
	/* Programs a pair: a quarter page, divided by how full segments are. */
	assert_true(fabs(segments * 16 / records -
			 0.25 / number(phases[0], "segment_utilization")) < 1e-9);
	release(phases, count);
}

static void test_lookups_read_a_page_and_the_wasted_ones(void **state)
{
	json_t *phases[PHASES];
	size_t count = run_phases(SMALL "--op insert,lookup,lookup,lookup,absent"
					" --dist random,random,oldest,newest,random",
				  phases);
	double reads = number(phases[1], "page_reads_per_op");
	double wasted = number(phases[1], "false_positive_reads_per_op");

	(void)state;
	assert_int_equal(count, 5);
	/* All but the buffered pairs, at most 512 of 40000, need one useful read. */
	assert_true(reads - wasted > 1 - 512.0 / 40000 - 0.001 && reads - wasted <= 1);
	assert_true(wasted > 0);
	/* The further back, the more tables are searched in vain. */
	assert_true(number(phases[2], "page_reads_per_op") > reads);
	assert_true(number(phases[3], "page_reads_per_op") < reads);
	assert_true(number(phases[2], "ops_per_s") < number(phases[3], "ops_per_s"));
	assert_true(number(phases[4], "absent") == number(phases[4], "ops"));
	assert_close(number(phases[4], "page_reads_per_op"),
		     number(phases[4], "false_positive_reads_per_op"));
	release(phases, count);
}

/*
 * The first table of each row: 64 segments of as many records as segments hold on average, less 2
 * %.
 */
static void test_oldest_means_the_first_tables(void **state)
{
	json_t *phases[PHASES];
	size_t count = run_phases(SMALL "--op insert,lookup --dist sequential,oldest", phases);
	double per_segment =
		floor(number(phases[0], "sealed_records") / number(phases[0], "segments_sealed"));

	(void)state;
	assert_true(number(phases[0], "tables") >= 4);
	assert_true(fabs(number(phases[1], "window") - 4 * 64 * per_segment * 0.98) < 100);
	release(phases, count);
}

static void test_phases_and_seeds_draw_other_pairs(void **state)
{
	json_t *phases[PHASES], *other[PHASES];
	size_t count = run_phases(SMALL "--op insert,lookup,lookup --dist sequential,random,random",
				  phases);

	(void)state;
	run_phases(SMALL "--op insert,lookup,lookup --dist sequential,random,random --seed 2",
		   other);
	assert_true(number(phases[0], "page_writes") == number(other[0], "page_writes"));
	assert_true(number(phases[1], "page_reads") != number(other[1], "page_reads"));
	assert_true(number(phases[1], "page_reads") != number(phases[2], "page_reads"));
	release(phases, count);
	release(other, count);
}

static void test_deleted_pairs_are_rightly_absent(void **state)
{
	json_t *phases[PHASES];
	size_t count = run_phases(SMALL
				  "--op insert,delete,lookup,update,lookup --ops 20000"
				  " --dist random,sequential,sequential,sequential,sequential",
				  phases);

	(void)state;
	assert_true(number(phases[1], "keys") == 20000);
	assert_true(number(phases[2], "absent") == 20000);
	assert_true(number(phases[3], "keys") == 40000);
	assert_true(number(phases[4], "absent") == 0);
	release(phases, count);
}

static void test_opening_behind_a_crash_finds_all_pairs_and_reads_few_pages(void **state)
{
	json_t *phases[PHASES];
	size_t count = run_phases(SMALL "--op insert,open,lookup --ops 20000", phases);

	(void)state;
	assert_true(number(phases[0], "page_writes") > 1000);
	assert_true(number(phases[1], "ops") == 1);
	assert_true(number(phases[1], "page_writes") == 0);
	assert_in_range((uint64_t)number(phases[1], "page_reads"), 1,
			(uint64_t)number(phases[0], "page_writes") / 4);
	assert_true(number(phases[1], "keys") == number(phases[0], "keys"));
	assert_true(number(phases[2], "ops") == 20000);
	assert_true(number(phases[2], "absent") == 0);
	release(phases, count);
}

static void test_repeated_inserts_leave_the_pairs_that_were_not_drawn_absent(void **state)
{
	json_t *phases[PHASES];
	size_t count = run_phases(SMALL "--op insert,lookup --dist pareto,sequential", phases);

	(void)state;
	assert_true(number(phases[0], "keys") < 30000);
	assert_true(number(phases[1], "ops") - number(phases[1], "absent") ==
		    number(phases[0], "keys"));
	release(phases, count);
}

/* Which fill segments better with the Bloom index; the ribbon index fills them in any case. */
static void test_absorbing_overwrites_saves_programs(void **state)
{
	static const char *const lines[][2] = {
		{ SMALL "--index bloom --op insert,update,lookup --dist pareto --history on",
		  SMALL "--index bloom --op insert,update,lookup --dist pareto --history off" },
		{ SMALL "--index ribbon --op insert,update,lookup --dist pareto --history on",
		  SMALL "--index ribbon --op insert,update,lookup --dist pareto --history off" },
	};

	(void)state;
	for (size_t n = 0; n < sizeof(lines) / sizeof(lines[0]); n++) {
		json_t *kept[PHASES], *absorbed[PHASES];
		size_t count = run_phases(lines[n][0], kept);

		run_phases(lines[n][1], absorbed);
		assert_true(number(absorbed[1], "page_writes") < number(kept[1], "page_writes"));
		if (n == 0)
			assert_true(number(absorbed[1], "segment_utilization") >
				    number(kept[1], "segment_utilization"));
		else
			assert_true(number(absorbed[1], "segment_utilization") > 0.98);
		release(kept, count);
		release(absorbed, count);
	}
}

/* Takes out the numbers that depend on what the process did before, and on the machine. */
static void forget_machine(char *text)
{
	static const char *const names[] = { "\"allocated\":", "\"processor_us_per_op\":" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (char *at = text; (at = strstr(at, names[i])) != NULL;) {
			at += strlen(names[i]);
			memmove(at, at + strcspn(at, ",}"), strlen(at + strcspn(at, ",}")) + 1);
		}
}

static void test_two_runs_with_one_seed_are_the_same(void **state)
{
	static const char line[] = SMALL
		"--op insert,lookup,mixed:0.5,update,absent --dist random,latest,"
		"zipfian,pareto,random --seed ";
	char with_seed[256];

	(void)state;
	snprintf(with_seed, sizeof(with_seed), "%s%d", line, 6);
	char *one = run(with_seed), *two = run(with_seed);

	snprintf(with_seed, sizeof(with_seed), "%s%d", line, 7);
	char *other = run(with_seed);

	forget_machine(one);
	forget_machine(two);
	assert_string_equal(one, two);
	assert_string_not_equal(one, other);
	free(one);
	free(two);
	free(other);
}

/* Each look-up reads what it reads one at a time, and compares every byte. */
static void test_lookups_at_once_share_the_dies(void **state)
{
	static const char *const lines[] = {
		SMALL "--index ribbon --op insert,lookup,absent --timing muninn,dies=8 ",
		SMALL "--index bloom --op insert,lookup,absent --timing muninn,dies=8 ",
	};
	json_t *one[PHASES], *many[PHASES];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char line[256];
		size_t count = run_phases(lines[i], one);

		snprintf(line, sizeof(line), "%s--depth 64", lines[i]);
		assert_int_equal(run_phases(line, many), count);
		assert_true(number(many[1], "depth") == 64);
		for (size_t n = 0; n < count; n++) {
			assert_true(number(many[n], "ops") == number(one[n], "ops"));
			assert_true(number(many[n], "page_reads") == number(one[n], "page_reads"));
			assert_true(number(many[n], "absent") == number(one[n], "absent"));
		}
		/* Eight dies, which wait for pages now and then. */
		assert_true(number(many[1], "seconds") >= number(one[1], "seconds") / 8);
		assert_true(number(many[1], "seconds") < number(one[1], "seconds") / 6);
		assert_true(number(many[1], "p50_us") > number(one[1], "p50_us"));
		release(one, count);
		release(many, count);
	}
}

static void test_processor_time_is_added_to_that_of_the_flash(void **state)
{
	static const char *const depths[] = { "1", "16" };
	json_t *flash[PHASES], *both[PHASES];

	(void)state;
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		char line[256];
		size_t count;

		snprintf(line, sizeof(line),
			 SMALL "--op insert,lookup,absent,update --timing muninn,dies=8 "
			       "--depth %s --time virtual",
			 depths[i]);
		count = run_phases(line, flash);
		strcat(line, "+processor");
		assert_int_equal(run_phases(line, both), count);
		assert_string_equal(text(both[0], "time"), "virtual+processor");
		for (size_t n = 0; n < count; n++) {
			assert_true(number(both[n], "page_reads") ==
				    number(flash[n], "page_reads"));
			assert_true(number(both[n], "seconds") > number(flash[n], "seconds"));
			/* Of several at once one may wait for the same page as without. */
			if (i == 0)
				assert_true(number(both[n], "p50_us") > number(flash[n], "p50_us"));
		}
		release(flash, count);
		release(both, count);
	}
}

static void test_lookups_alone_have_pairs_to_find(void **state)
{
	json_t *phases[PHASES];
	size_t count = run_phases(SMALL "--op lookup", phases);

	(void)state;
	assert_int_equal(count, 1);
	assert_true(number(phases[0], "absent") == 0);
	release(phases, count);
}

/* The flash is the same, whatever keeps it. */
static void test_numbers_do_not_depend_on_the_back_end(void **state)
{
	static const char line[] = SMALL
		"--op insert,update,delete,lookup,absent --ops 20000 --nand";
	static const char *const fields[] = { "page_reads", "page_writes", "segments_sealed",
					      "keys",       "p50_us",      "max_us",
					      "index_bytes" };
	char with_nand[256];
	json_t *whole[PHASES], *headers[PHASES];

	(void)state;
	snprintf(with_nand, sizeof(with_nand), "%s mmap", line);
	size_t count = run_phases(with_nand, whole);

	snprintf(with_nand, sizeof(with_nand), "%s headers", line);
	run_phases(with_nand, headers);
	assert_string_equal(text(headers[0], "nand"), "headers");
	for (size_t i = 0; i < count; i++)
		for (size_t n = 0; n < sizeof(fields) / sizeof(fields[0]); n++)
			assert_true(number(whole[i], fields[n]) == number(headers[i], fields[n]));
	release(whole, count);
	release(headers, count);
}

static void test_files_are_used_and_removed(void **state)
{
	static const char *const kinds[] = { "mmap", "file" };
	char line[512], path[] = "/tmp/muninn-bench-XXXXXX";
	json_t *phases[PHASES];

	(void)state;
	assert_non_null(mkdtemp(path));
	for (size_t i = 0; i < 2; i++) {
		snprintf(line, sizeof(line), "%s --nand %s:%s/image", SMALL "--op insert,lookup",
			 kinds[i], path);
		release(phases, run_phases(line, phases));
	}
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_pair_is_its_header_and_its_value),
		cmocka_unit_test(test_arguments_are_understood),
		cmocka_unit_test(test_the_share_of_lookups_may_be_a_percentage),
		cmocka_unit_test(test_wrong_arguments_are_named),
		cmocka_unit_test(test_help_is_asked_for),
		cmocka_unit_test(test_a_store_that_cannot_be_is_refused_with_the_reason),
		cmocka_unit_test(test_operations_go_on_while_a_full_device_is_merged),
		cmocka_unit_test(test_a_full_device_says_what_to_do),
		cmocka_unit_test(test_memory_by_structure_explains_what_the_allocator_says),
		cmocka_unit_test(test_a_phase_has_every_field),
		cmocka_unit_test(test_only_phases_of_the_bloom_index_name_its_options),
		cmocka_unit_test(test_the_numbers_of_a_phase_fit_together),
		cmocka_unit_test(test_inserts_program_the_segments_that_they_fill),
		cmocka_unit_test(test_lookups_read_a_page_and_the_wasted_ones),
		cmocka_unit_test(test_oldest_means_the_first_tables),
		cmocka_unit_test(test_phases_and_seeds_draw_other_pairs),
		cmocka_unit_test(test_deleted_pairs_are_rightly_absent),
		cmocka_unit_test(test_opening_behind_a_crash_finds_all_pairs_and_reads_few_pages),
		cmocka_unit_test(test_repeated_inserts_leave_the_pairs_that_were_not_drawn_absent),
		cmocka_unit_test(test_absorbing_overwrites_saves_programs),
		cmocka_unit_test(test_two_runs_with_one_seed_are_the_same),
		cmocka_unit_test(test_lookups_at_once_share_the_dies),
		cmocka_unit_test(test_processor_time_is_added_to_that_of_the_flash),
		cmocka_unit_test(test_lookups_alone_have_pairs_to_find),
		cmocka_unit_test(test_numbers_do_not_depend_on_the_back_end),
		cmocka_unit_test(test_files_are_used_and_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
