/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench list`: what it prints, what it refuses, and that lists do not get dearer towards
 * their end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "bench/list_bench.h"
#include "tests/bench/part.h"

static int run(const char *line, char **json, char **text)
{
	return run_part(list_bench_main, "list", line, json, text);
}

static double number(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	assert_true(json_is_number(value));
	return json_number_value(value);
}

/* The sanitizers keep what was freed for a while. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GROWTH_MAX (16 << 20)
#else
#define GROWTH_MAX (3 << 20)
#endif

/* More IDs than the cached nodes of the directory hold, so that pages are read all the way. */
static void test_ids_cost_as_many_page_reads_at_the_end_as_at_the_start(void **state)
{
	char *json, *text, *line, *rest;
	double entries = 0, objects = 0;
	int points = 0;

	(void)state;
	assert_int_equal(
		run("--objects 100000 --nodes 128 --steps 4 --answer 40000 --ids", &json, &text),
		0);
	for (rest = json; (line = strsep(&rest, "\n")) && *line;) {
		json_t *object = json_loads(line, 0, NULL);

		assert_non_null(object);
		points++;
		entries += number(object, "entries");
		if (strcmp(json_string_value(json_object_get(object, "list")), "objects") == 0)
			objects += number(object, "entries");
		/* A leaf has 511 IDs and is read once; some pages read hold something else. */
		assert_true(number(object, "page_reads_per_entry") < 0.006);
		/*
		 * Not with the list: the answer, and caches with a limit, most of which is filled
		 * before.
		 */
		assert_true(number(object, "resident_growth_bytes") < GROWTH_MAX);
		assert_true(number(object, "cpu_ns_per_entry") > 0);
		json_decref(object);
	}
	/* Both lists as they are, and while they change. */
	assert_int_equal(points, 16);
	assert_true(objects == 100000);
	assert_true(entries == 4 * 100000);
	free(json);
	free(text);
}

static void test_attributes_are_listed_too(void **state)
{
	char *json, *text;

	(void)state;
	assert_int_equal(run("--objects 3000 --steps 2", &json, &text), 0);
	assert_non_null(strstr(json, "members with attribute"));
	assert_non_null(strstr(text, "reads/entry"));
	free(json);
	free(text);
}

static void test_wrong_options_are_told(void **state)
{
	static const char *const lines[] = { "--objects 0", "--answer 8", "--steps x",
					     "--what",      "--size",     "more" };
	char *json, *text;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(run(lines[i], &json, &text), 2);
		assert_non_null(strstr(text, "muninn-bench list: "));
		free(json);
		free(text);
	}
	assert_int_equal(run("--help", &json, &text), 0);
	assert_non_null(strstr(json, "--objects"));
	free(json);
	free(text);
}

static void test_too_little_room_for_an_entry_is_told(void **state)
{
	char *json, *text;

	(void)state;
	assert_int_equal(run("--objects 10 --answer 40", &json, &text), 1);
	assert_non_null(strstr(text, "--answer is too little"));
	free(json);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids_cost_as_many_page_reads_at_the_end_as_at_the_start),
		cmocka_unit_test(test_attributes_are_listed_too),
		cmocka_unit_test(test_wrong_options_are_told),
		cmocka_unit_test(test_too_little_room_for_an_entry_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
