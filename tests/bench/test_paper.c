/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench paper` at a scale of seconds: what is written, and that it repeats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/paper.h"

/* What a run lists before it begins anything. */
static void test_all_experiments_of_each_scale_can_be_listed(void **state)
{
	static const struct experiment_scale *const scales[] = { &experiment_scale_full,
								 &experiment_scale_quick };

	(void)state;
	for (size_t n = 0; n < sizeof(scales) / sizeof(scales[0]); n++) {
		struct experiment_list *list = calloc(1, sizeof(*list));
		uint32_t bloom, second = 0;

		assert_non_null(list);
		experiments_list(list, scales[n], 1);
		bloom = list->count;
		for (uint32_t i = 0; i < bloom; i++)
			second += list->experiments[i].has_second;
		experiments_add_ribbon(list);
		assert_int_equal(list->count, bloom + second);
		print_message("%s: %u experiments\n", scales[n]->name, list->count);
		free(list);
	}
}

static const struct experiment_scale tiny = {
	.name = "tiny",
	.description = "for tests",
	.pairs = 20000,
	.bytes = 256 << 20,
	.rows = 1,
	.steps = 2,
	.lookups = 2000,
	.filter_rows = 1,
	.filter_segments = 2,
	.rate_rows = 1,
	.rate_pairs = 5000,
	.rate_count = 2,
	.factor_count = 2,
	.update_pairs = 5000,
	.updates = 5000,
	.update_rows = 2,
	.merge_rows = 1,
	.overlap_pairs = 70000,
	.history_pairs = 5000,
	.history_keys = 2,
};

static char folder[] = "/tmp/muninn-paper-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* Runs the experiments and gives back the table, to be freed. */
static char *run(const char *output, uint32_t jobs, uint64_t seed, const char *only)
{
	const struct paper_options options = { .scale = &tiny,
					       .output = output,
					       .only = only,
					       .commit = "c0ffee",
					       .seed = seed,
					       .jobs = jobs };
	FILE *nowhere = fopen("/dev/null", "w");
	struct error_text error;
	size_t bytes;
	char *text;
	FILE *table = open_memstream(&text, &bytes);

	if (paper_run(&options, table, nowhere, &error))
		fail_msg("%s", error.text);
	fclose(nowhere);
	fclose(table);
	return text;
}

/* Of one run for all tests. */
static json_t *run_json(void)
{
	static json_t *results;

	if (results)
		return json_incref(results);
	free(run(path_of("results"), 2, 1, NULL));
	results = json_load_file(path_of("results"), 0, NULL);
	assert_true(json_is_array(results));
	unlink(path_of("results"));
	return json_incref(results);
}

static char *read_and_remove(const char *path)
{
	char *text = calloc(1, 1 << 20);
	FILE *file = fopen(path, "r");

	assert_non_null(text);
	assert_non_null(file);
	assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
	fclose(file);
	unlink(path);
	return text;
}

static const json_t *entry(const json_t *results, const char *section, const char *name,
			   const char *metric)
{
	size_t index;
	json_t *each;

	json_array_foreach(results, index, each)
	{
		if (strcmp(json_string_value(json_object_get(each, "section")), section) == 0 &&
		    strcmp(json_string_value(json_object_get(each, "case")), name) == 0 &&
		    strcmp(json_string_value(json_object_get(each, "metric")), metric) == 0)
			return each;
	}
	fail_msg("there is no %s, %s, %s", section, name, metric);
	return NULL;
}

/*
 * Those about placement and look-ups, but not those about an option of the Bloom index. On so small
 * a device look-ups may read no page, and take no time.
 */
static bool is_with_ribbon(const json_t *each)
{
	const char *metric = json_string_value(json_object_get(each, "metric"));
	const char *section = json_string_value(json_object_get(each, "section"));
	const char *name = json_string_value(json_object_get(each, "case"));

	return (strcmp(section, "6.3") == 0 && strncmp(metric, "ops_per_s", 9) != 0) ||
	       strcmp(section, "Figure 9") == 0 || strcmp(section, "as of") == 0 ||
	       (strcmp(section, "6.4") == 0 && !strstr(name, "spread"));
}

static void test_every_entry_says_what_was_measured(void **state)
{
	static const char *const texts[] = { "section", "case", "metric", "unit", "commit" };
	json_t *results = run_json();
	size_t index;
	json_t *each;

	(void)state;
	json_array_foreach(results, index, each)
	{
		const json_t *paper = json_object_get(each, "paper");
		const json_t *parameters = json_object_get(each, "parameters");
		const json_t *ribbon = json_object_get(each, "ribbon");
		const json_t *predicted[] = { json_object_get(each, "predicted"),
					      json_object_get(each, "ribbon_predicted") };

		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
			assert_non_null(json_string_value(json_object_get(each, texts[i])));
		assert_true(json_is_null(paper) || json_is_number(paper));
		assert_true(json_is_number(json_object_get(each, "ours")));
		for (size_t i = 0; i < 2; i++)
			assert_true(json_is_null(predicted[i]) || json_is_number(predicted[i]));
		assert_true(json_is_number(ribbon) ||
			    (json_is_null(ribbon) && !is_with_ribbon(each)));
		assert_int_equal(json_integer_value(json_object_get(each, "seed")), 1);
		assert_true(json_integer_value(json_object_get(parameters, "pairs")) > 0);
		assert_string_equal(json_string_value(json_object_get(parameters, "scale")),
				    "tiny");
		assert_non_null(json_object_get(parameters, "fpr"));
	}
	json_decref(results);
}

static void test_all_sections_are_there(void **state)
{
	static const char *const filters[] = { "S8/8", "S8/7", "S16/16", "S16/15",
					       "N8/8", "N8/7", "N16/16", "N16/15" };
	static const char *const distributions[] = { "sequential", "random", "pareto" };
	static const char *const updates[] = { "pareto updates, overwrites absorbed",
					       "pareto updates, all kept",
					       "random updates, overwrites absorbed",
					       "random updates, all kept",
					       "basho puts, all kept",
					       "basho-truncated puts, all kept",
					       "basho-truncated puts, all kept, spread" };
	json_t *results = run_json();
	char name[64];

	(void)state;
	for (size_t f = 0; f < 8; f++) {
		for (size_t d = 0; d < 3; d++) {
			snprintf(name, sizeof(name), "%s %s", filters[f], distributions[d]);
			entry(results, "Figure 7", name, "segment_utilization");
			entry(results, "Figure 7", name, "index_bytes_per_key");
		}
	}
	entry(results, "Figure 8", "0.0001 x 1", "page_reads_per_lookup");
	entry(results, "Figure 8", "0.0005 x 1.01", "index_bytes_per_key");
	entry(results, "Figure 9", "10000 pairs", "page_writes_per_insert");
	entry(results, "Figure 9", "20000 pairs", "page_reads_per_lookup");
	entry(results, "6.3", "insert", "page_writes_per_insert");
	entry(results, "6.3", "lookup best (newest table)", "ops_per_s");
	entry(results, "6.3", "lookup of 64 at once, 8 dies", "ops_per_s_at_once");
	entry(results, "6.4, places", "24 places of 1", "segment_utilization_with_load");
	for (size_t i = 0; i < sizeof(updates) / sizeof(updates[0]); i++)
		entry(results, "6.4", updates[i], "segment_utilization");
	entry(results, "6.4", "basho puts, all kept", "index_bytes_per_version");
	json_decref(results);
}

static double number_of(const json_t *each, const char *column)
{
	const json_t *number = json_object_get(each, column);

	if (!json_is_number(number))
		fail_msg("%s of %s, %s is no number", column,
			 json_string_value(json_object_get(each, "case")),
			 json_string_value(json_object_get(each, "metric")));
	return json_number_value(number);
}

static void assert_close(const json_t *each, const char *predicted, const char *measured,
			 double within)
{
	double ratio = number_of(each, measured) / number_of(each, predicted);

	if (!(ratio > 1 - within && ratio < 1 + within))
		fail_msg("%s, %s: %s %g, %s %g", json_string_value(json_object_get(each, "case")),
			 json_string_value(json_object_get(each, "metric")), measured,
			 number_of(each, measured), predicted, number_of(each, predicted));
}

/* Of few segments, that is: most of the equations are of averages. */
static void test_equations_predict_what_is_measured(void **state)
{
	static const struct {
		const char *section, *name, *metric;
		double within;
	} close[] = {
		{ "Figure 7", "S8/8 random", "segment_utilization", 0.05 },
		{ "Figure 7", "S8/7 sequential", "segment_utilization", 0.03 },
		{ "Figure 7", "N8/8 sequential", "segment_utilization", 0.05 },
		{ "Figure 7", "S8/7 sequential", "index_bytes_per_key", 0.1 },
		{ "Figure 8", "0.0005 x 1", "index_bytes_per_key", 0.15 },
		{ "6.3", "insert", "page_writes_per_insert", 0.1 },
		{ "6.3", "lookup average (uniform)", "page_reads_per_lookup", 0.1 },
		{ "6.3", "lookup worst (oldest table)", "ops_per_s", 0.05 },
	};
	json_t *results = run_json();

	(void)state;
	for (size_t i = 0; i < sizeof(close) / sizeof(close[0]); i++)
		assert_close(entry(results, close[i].section, close[i].name, close[i].metric),
			     "predicted", "ours", close[i].within);
	assert_close(entry(results, "6.3", "insert", "page_writes_per_insert"), "ribbon_predicted",
		     "ribbon", 0.1);
	assert_close(entry(results, "6.3", "lookup average (uniform)", "page_reads_per_lookup"),
		     "ribbon_predicted", "ribbon", 0.1);
	json_decref(results);
}

/* Whatever a processor takes is added to what the flash takes. */
static void test_processor_time_is_added_when_it_is_asked_for(void **state)
{
	static const char *const lookups[] = { "lookup average (uniform)",
					       "lookup worst (oldest table)",
					       "lookup of 64 at once, 8 dies" };
	const struct paper_options options = { .scale = &tiny,
					       .output = path_of("processor"),
					       .only = "6.3",
					       .commit = "c0ffee",
					       .seed = 1,
					       .jobs = 1,
					       .adds_processor = true };
	FILE *nowhere = fopen("/dev/null", "w");
	struct error_text error;
	json_t *results;

	(void)state;
	assert_int_equal(paper_run(&options, nowhere, nowhere, &error), 0);
	fclose(nowhere);
	results = json_load_file(path_of("processor"), 0, NULL);
	unlink(path_of("processor"));
	for (size_t i = 0; i < 3; i++) {
		const char *metric = i == 2 ? "ops_per_s_at_once" : "ops_per_s";
		char with[64];

		snprintf(with, sizeof(with), "%s_with_processor", metric);
		assert_true(number_of(entry(results, "6.3", lookups[i], with), "ours") <
			    number_of(entry(results, "6.3", lookups[i], metric), "ours"));
		assert_true(number_of(entry(results, "6.3", lookups[i], with), "ribbon") > 0);
	}
	json_decref(results);
}

/* Segments are full there, whatever keys are put again and again. */
static void test_the_numbers_of_the_ribbon_index_stand_beside_those_of_the_other_one(void **state)
{
	json_t *results = run_json();
	const json_t *hot =
		entry(results, "6.4", "pareto updates, all kept", "segment_utilization");
	const json_t *insert = entry(results, "6.3", "insert", "page_writes_per_insert");

	(void)state;
	assert_true(json_number_value(json_object_get(hot, "ribbon")) > 0.99);
	assert_true(json_number_value(json_object_get(hot, "ours")) < 0.95);
	assert_true(json_number_value(json_object_get(insert, "ribbon")) <
		    json_number_value(json_object_get(insert, "ours")));
	json_decref(results);
}

/* Whether it is put in a burst or between others, and with either index. */
static void test_an_old_version_is_found_behind_a_thousand_newer_ones_in_few_reads(void **state)
{
	static const char *const names[] = { "versions in a burst", "versions in turn",
					     "versions among 15 others",
					     "versions of 100 bytes in a burst" };
	static const char *const metrics[] = { "page_reads_behind_1000_newer",
					       "page_reads_of_any_version" };
	json_t *results = run_json();

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (size_t m = 0; m < 2; m++) {
			const json_t *found = entry(results, "as of", names[i], metrics[m]);

			assert_true(json_number_value(json_object_get(found, "ours")) <= 4);
			assert_true(json_number_value(json_object_get(found, "ribbon")) <= 4);
		}
	json_decref(results);
}

/* The published figures that are known, and null elsewhere. */
static void test_the_papers_numbers_stand_beside_ours(void **state)
{
	static const struct {
		const char *section, *name, *metric;
		double paper;
	} known[] = {
		{ "6.3", "insert", "page_writes_per_insert", 0.26 },
		{ "6.3", "lookup average (uniform)", "page_reads_per_lookup", 1.5 },
		{ "6.3", "lookup best (newest table)", "ops_per_s", 69000 },
		{ "6.3", "lookup average (uniform)", "ops_per_s", 34000 },
		{ "6.3", "lookup worst (oldest table)", "ops_per_s", 20000 },
		{ "6.4", "pareto updates, all kept", "segment_utilization", 0.652 },
		{ "6.4", "pareto updates, overwrites absorbed", "segment_utilization", 0.941 },
		{ "6.4", "basho-truncated puts, all kept", "segment_utilization", 0.652 },
		{ "6.4", "basho puts, all kept", "index_bytes_per_version", 3.1 },
	};
	json_t *results = run_json();

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const json_t *found =
			entry(results, known[i].section, known[i].name, known[i].metric);

		assert_true(json_number_value(json_object_get(found, "paper")) == known[i].paper);
	}
	assert_true(json_is_null(json_object_get(
		entry(results, "Figure 7", "N8/8 random", "segment_utilization"), "paper")));
	json_decref(results);
}

static void test_lower_rates_cost_memory_and_save_reads(void **state)
{
	json_t *results = run_json();
	const json_t *low = entry(results, "Figure 8", "0.0001 x 1", "index_bytes_per_key");
	const json_t *high = entry(results, "Figure 8", "0.0005 x 1", "index_bytes_per_key");

	(void)state;
	assert_true(json_number_value(json_object_get(low, "ours")) >
		    json_number_value(json_object_get(high, "ours")));
	json_decref(results);
}

static void test_results_do_not_depend_on_the_jobs(void **state)
{
	(void)state;
	free(run(path_of("one"), 1, 3, NULL));
	char *one = read_and_remove(path_of("one"));

	free(run(path_of("two"), 2, 3, NULL));
	char *two = read_and_remove(path_of("two"));

	assert_string_equal(one, two);
	free(one);
	free(two);
}

static void test_the_table_shows_the_sections_that_were_run(void **state)
{
	char *table = run(path_of("results"), 1, 1, "6.4");

	(void)state;
	unlink(path_of("results"));
	assert_non_null(strstr(table, "0.652"));
	assert_non_null(strstr(table, "predicted"));
	assert_null(strstr(table, "Figure 7"));
	free(table);
}

static void expect_failure(const struct paper_options *options, int result, const char *said)
{
	FILE *nowhere = fopen("/dev/null", "w");
	struct error_text error = { "" };

	assert_int_equal(paper_run(options, nowhere, nowhere, &error), result);
	if (!strstr(error.text, said))
		fail_msg("'%s' does not name %s", error.text, said);
	fclose(nowhere);
}

static void test_what_goes_wrong_is_named(void **state)
{
	struct experiment_scale too_large = tiny;
	struct paper_options options = {
		.scale = &tiny, .output = "/nonexistent/x", .only = "6.4", .seed = 1, .jobs = 1
	};

	(void)state;
	expect_failure(&options, -ENOENT, "/nonexistent/x");
	options.only = "6.9";
	expect_failure(&options, -EINVAL, "6.9");
	too_large.pairs = 1000000;
	options.scale = &too_large;
	options.only = "6.3";
	options.output = path_of("results");
	expect_failure(&options, -ENOSPC, "6.3");
	assert_int_equal(access(options.output, F_OK), -1);
}

static void test_arguments_are_understood_or_named(void **state)
{
	char *good[] = { "paper",    "--quick", "--output",    "x",      "--only",
			 "Figure 7", "--jobs",  "1",           "--seed", "5",
			 "--commit", "abc",     "--processor", NULL };
	char *wrong[][4] = { { "paper", "--jobs", "0", NULL },
			     { "paper", "--seed", "x", NULL },
			     { "paper", "--output", NULL },
			     { "paper", "--fast", NULL },
			     { "paper", "quick", NULL } };
	struct paper_options options;
	struct error_text error;

	(void)state;
	assert_int_equal(paper_options_parse(&options, 13, good, &error), 0);
	assert_true(options.adds_processor);
	assert_ptr_equal(options.scale, &experiment_scale_quick);
	assert_string_equal(options.output, "x");
	assert_string_equal(options.only, "Figure 7");
	assert_string_equal(options.commit, "abc");
	assert_true(options.jobs == 1 && options.seed == 5);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int count = wrong[i][2] ? 3 : 2;

		assert_int_equal(paper_options_parse(&options, count, wrong[i], &error), -EINVAL);
		assert_non_null(strstr(error.text, wrong[i][1]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_experiments_of_each_scale_can_be_listed),
		cmocka_unit_test(test_every_entry_says_what_was_measured),
		cmocka_unit_test(test_all_sections_are_there),
		cmocka_unit_test(
			test_an_old_version_is_found_behind_a_thousand_newer_ones_in_few_reads),
		cmocka_unit_test(test_the_papers_numbers_stand_beside_ours),
		cmocka_unit_test(
			test_the_numbers_of_the_ribbon_index_stand_beside_those_of_the_other_one),
		cmocka_unit_test(test_equations_predict_what_is_measured),
		cmocka_unit_test(test_processor_time_is_added_when_it_is_asked_for),
		cmocka_unit_test(test_lower_rates_cost_memory_and_save_reads),
		cmocka_unit_test(test_results_do_not_depend_on_the_jobs),
		cmocka_unit_test(test_the_table_shows_the_sections_that_were_run),
		cmocka_unit_test(test_what_goes_wrong_is_named),
		cmocka_unit_test(test_arguments_are_understood_or_named),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
