/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench history`: what it prints, what it refuses, and the goals on a device that is small
 * enough for a test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "bench/history_measure.h"
#include "tests/bench/part.h"

static int run(const char *line, char **json, char **text)
{
	return run_part(history_bench_main, "history", line, json, text);
}

static double number(const json_t *object, const char *part, const char *name)
{
	const json_t *value = json_object_get(json_object_get(object, part), name);

	assert_true(json_is_number(value));
	return json_number_value(value);
}

static void test_snapshots_and_rollbacks_cost_what_they_may(void **state)
{
	char *json, *text;
	json_t *found;

	(void)state;
	assert_int_equal(run("--size 1 --objects 60000 --snapshots 1500 --lookups 2000 "
			     "--rollbacks 800",
			     &json, &text),
			 0);
	assert_null(strstr(text, "MISSED"));
	found = json_loads(json, 0, NULL);
	assert_non_null(found);
	assert_int_equal((int)number(found, "snapshot", "count"), 1500);
	assert_int_equal((int)number(found, "rollback", "count"), 800);
	assert_true(number(found, "snapshot", "record_bytes") > 100);
	assert_true(number(found, "snapshot", "page_programs_most") <= 2);
	assert_true(number(found, "snapshot_alone", "page_programs_most") <= 2);
	assert_true(number(found, "rollback", "page_programs_most") <= 4);
	/* A change of all of an object; the version before is that of the change before. */
	assert_int_equal((int)number(found, "differences_of_neighbours", "found"), 1);
	assert_true(number(found, "differences_of_neighbours", "page_reads") < 60000.0 / 10);
	assert_int_equal((int)number(found, "differences_of_first_and_last", "found"), 1499);
	/* Of 16 MiB. */
	assert_true(number(found, "undo_of_a_large_object", "record_bytes") < 4096);
	json_decref(found);
	free(json);
	free(text);
}

/* Nothing is read beside the object itself, once it is known which moment the version is. */
static void test_objects_at_random_versions_are_read_as_current_ones_are(void **state)
{
	const struct history_bench_options options = { .objects = 60000,
						       .snapshots = 1500,
						       .lookups = 4000,
						       .rollbacks = 1,
						       .size_bytes = UINT64_C(1) << 30,
						       .seed = 3 };
	struct history_figures figures;
	struct error_text error;

	(void)state;
	assert_int_equal(history_measure(&options, &figures, &error), 0);
	for (int kind = LOOKUP_SETTLED; kind <= LOOKUP_UNCHANGED; kind++) {
		double current = figures.reads[LOOKUP_CURRENT][kind];

		assert_true(current > 0.5);
		assert_true(figures.reads[LOOKUP_FIRST][kind] < current * 1.01);
		assert_true(figures.reads[LOOKUP_RANDOM_AGAIN][kind] < current * 1.01);
		/* 1500 versions, each asked for the first time: one more look-up. */
		assert_true(figures.reads[LOOKUP_RANDOM][kind] < current + 1.5 * 1500 / 4000);
	}
}

static void test_more_snapshots_than_objects_change_them_again(void **state)
{
	char *json, *text;
	int code;

	(void)state;
	code = run("--size 1 --objects 300 --snapshots 1000 --lookups 300 --rollbacks 5", &json,
		   &text);
	/* Everything is in the row buffers, where nothing is to be compared. */
	assert_true(code == 0 || strstr(text, "MISSED"));
	assert_null(strstr(text, "error"));
	free(json);
	free(text);
}

static void test_numbers_outside_of_their_limits_are_refused(void **state)
{
	static const char *const lines[] = { "--objects 1",  "--snapshots 0", "--rollbacks 4097",
					     "--lookups -1", "--size x",      "--seed",
					     "--something",  "more" };
	char *json, *text;

	(void)state;
	for (size_t n = 0; n < sizeof(lines) / sizeof(lines[0]); n++) {
		assert_int_equal(run(lines[n], &json, &text), 2);
		assert_non_null(strstr(text, "muninn-bench history: "));
		free(json);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_snapshots_and_rollbacks_cost_what_they_may),
		cmocka_unit_test(test_objects_at_random_versions_are_read_as_current_ones_are),
		cmocka_unit_test(test_more_snapshots_than_objects_change_them_again),
		cmocka_unit_test(test_numbers_outside_of_their_limits_are_refused),
	};

	return cmocka_run_group_tests_name("history benchmark", tests, NULL, NULL);
}
