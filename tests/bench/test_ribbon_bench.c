/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench ribbon`: what it prints and refuses, and the figures that do not depend on speed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "bench/ribbon_bench.h"
#include "tests/bench/part.h"

static double number(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	assert_true(json_is_number(value));
	return json_number_value(value);
}

/* The object of a part, among the lines. */
static json_t *find_part(const char *json, const char *part)
{
	char *copy = strdup(json), *rest = copy, *line;
	json_t *found = NULL;

	while (!found && (line = strsep(&rest, "\n")) && *line) {
		json_t *object = json_loads(line, 0, NULL);

		assert_non_null(object);
		if (strcmp(json_string_value(json_object_get(object, "part")), part) == 0)
			found = object;
		else
			json_decref(object);
	}
	free(copy);
	assert_non_null(found);
	return found;
}

#define HITS (0.75 * 0.75 * 4.5 / 256)

static void test_the_figures_of_a_small_run_are_those_of_a_large_one(void **state)
{
	json_t *once, *hot, *groups, *present, *absent, *rows;
	char *json, *text;

	(void)state;
	assert_int_equal(run_part(ribbon_bench_main, "ribbon",
				  "--rows 2 --groups 3 --segments 4 --questions 100000", &json,
				  &text),
			 0);
	once = find_part(json, "segment, 1 KiB");
	hot = find_part(json, "segment, 1 KiB, hot");
	groups = find_part(json, "groups");
	present = find_part(json, "present, all rows");
	absent = find_part(json, "absent, all rows");
	rows = find_part(json, "rows, candidates");
	assert_true(number(once, "filled_percent") == 100);
	assert_true(number(once, "arranged_percent") == 100);
	assert_true(number(once, "candidates_percent") > 99.5);
	assert_true(number(once, "entries_record") == 1);
	assert_true(number(once, "us_segment") > 0);
	/* Half of the records are of 64 keys, which have an entry each. */
	assert_true(number(hot, "arranged_percent") == 100);
	assert_true(number(hot, "candidates_percent") > 95);
	assert_true(number(hot, "entries_record") > 0.5);
	assert_true(number(hot, "entries_record") < 0.62);
	assert_true(number(groups, "keys") == 2 * 3 * 24 * 1024);
	/* 14 bits and a half, and what the ends of planes and the members take. */
	assert_true(number(groups, "bytes_key") > 14.5 / 8);
	assert_true(number(groups, "bytes_key") < 1.89);
	assert_true(number(groups, "failed_percent") < 1.1);
	/*
	 * Three of six groups have 8 bits, the others have 7, and each row has three. Of their
	 * false hits three quarters name a candidate, and of these three quarters a member.
	 */
	assert_true(number(absent, "hits_question") > HITS * 0.85);
	assert_true(number(absent, "hits_question") < HITS * 1.15);
	/* A failed key is not in its group. */
	assert_true(number(present, "hits_question") > 0.99);
	assert_true(number(present, "hits_question") < 1.02);
	/* Three groups' worth of segments: of the last one a part is in the exact table. */
	assert_true(number(rows, "bytes_key") > 1.8);
	assert_true(number(rows, "bytes_key") < 3);
	assert_true(number(rows, "reads_uniform") >= 1);
	assert_true(number(rows, "reads_oldest") < 1.03);
	assert_true(number(rows, "reads_absent") < HITS * 1.15);
	json_decref(rows);
	json_decref(once);
	json_decref(hot);
	json_decref(groups);
	json_decref(present);
	json_decref(absent);
	free(json);
	free(text);
}

static void test_wrong_options_are_refused(void **state)
{
	static const char *const lines[] = { "--rows 0", "--members 65", "--groups", "--what 1",
					     "more" };
	char *json, *text;

	(void)state;
	for (size_t n = 0; n < sizeof(lines) / sizeof(lines[0]); n++) {
		assert_int_equal(run_part(ribbon_bench_main, "ribbon", lines[n], &json, &text), 2);
		assert_string_equal(json, "");
		free(json);
		free(text);
	}
	assert_int_equal(run_part(ribbon_bench_main, "ribbon", "--help", &json, &text), 0);
	assert_non_null(strstr(json, "--questions"));
	free(json);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_figures_of_a_small_run_are_those_of_a_large_one),
		cmocka_unit_test(test_wrong_options_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
