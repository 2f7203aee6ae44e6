/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Several threads on one store, and on one engine (`muninn-bench threads`). A program of its own
 * because, the workers being started by pthread_create, it also runs under ThreadSanitizer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/threads_bench.h"
#include "tests/bench/part.h"
#include "tests/bench/support.h"

static void test_threads_do_all_operations_and_check_what_they_read(void **state)
{
	json_t *phases[PHASES];
	size_t count = run_phases(SMALL
				  "--op insert,lookup,mixed:0.5,lookup --threads 4 --time real"
				  " --timing none",
				  phases);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		assert_true(number(phases[i], "ops") == 40000);
		assert_true(number(phases[i], "seconds") > 0);
		assert_true(number(phases[i], "keys") == 40000);
	}
	release(phases, count);
}

static int run_bench(const char *line, char **json, char **text)
{
	return run_part(threads_bench_main, "threads", line, json, text);
}

static void test_threads_of_an_engine_read_what_they_wrote(void **state)
{
	char *json, *text;

	(void)state;
	assert_int_equal(run_bench("--threads 4 --operations 400 --turns 1", &json, &text), 0);
	assert_non_null(strstr(json, "\"overwrite, 1 thread\""));
	assert_non_null(strstr(json, "\"overwrite, 4 threads\""));
	assert_non_null(strstr(json, "\"read, 2 threads\""));
	assert_non_null(strstr(json, "\"read beside a writer, 4 threads\""));
	assert_null(strstr(json, "8 threads"));
	free(json);
	free(text);
}

static void test_wrong_options_are_told(void **state)
{
	static const char *const lines[] = { "--threads 0", "--threads 17", "--operations 1",
					     "--turns x", "--what" };
	char *json, *text;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(run_bench(lines[i], &json, &text), 2);
		assert_non_null(strstr(text, "muninn-bench threads: "));
		free(json);
		free(text);
	}
	assert_int_equal(run_bench("--help", &json, &text), 0);
	assert_non_null(strstr(json, "--operations"));
	free(json);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_do_all_operations_and_check_what_they_read),
		cmocka_unit_test(test_threads_of_an_engine_read_what_they_wrote),
		cmocka_unit_test(test_wrong_options_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
