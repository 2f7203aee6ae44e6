/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench hold`: what it prints, what it refuses, and that it notices who is held up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "bench/hold_bench.h"
#include "tests/bench/part.h"

#define SMALL "--mib 1 --members 100 --modifications 100"

static int run(const char *line, char **json, char **text)
{
	return run_part(hold_bench_main, "hold", line, json, text);
}

static void test_every_command_has_a_line(void **state)
{
	char *json, *text, *line, *rest;
	size_t lines = 0;

	(void)state;
	assert_int_equal(run(SMALL, &json, &text), 0);
	for (rest = json; (line = strsep(&rest, "\n")) && *line; lines++) {
		json_t *object = json_loads(line, 0, NULL);

		assert_non_null(object);
		assert_string_equal(json_string_value(json_object_get(object, "command")),
				    hold_commands[lines].name);
		assert_true(json_is_real(json_object_get(object, "longest_read_ms")));
		assert_true(json_is_real(json_object_get(object, "longest_write_ms")));
		assert_true(json_is_integer(json_object_get(object, "records_held")));
		json_decref(object);
	}
	assert_int_equal(lines, hold_command_count);
	free(json);
	free(text);
}

/* As large as they must be for a command without limits to hold others up for too long. */
static void test_no_command_holds_others_up_for_long(void **state)
{
	char *json, *text;
	int code;

	(void)state;
	code = run("--mib 40 --members 9000 --modifications 9000", &json, &text);
	if (code != 0)
		fputs(text, stderr); /* print_error would cut it */
	assert_int_equal(code, 0);
	free(json);
	free(text);
}

static void test_a_command_that_holds_others_up_for_too_long_is_named(void **state)
{
	char *json, *text;

	(void)state;
	assert_int_equal(run(SMALL " --only COMPARE --records 1", &json, &text), 1);
	assert_non_null(strstr(text, "COMPARE holds others up for more than 1 records"));
	free(json);
	free(text);
}

static void test_wrong_options_are_refused(void **state)
{
	char *json, *text;

	(void)state;
	assert_int_equal(run("--members 65536", &json, &text), 2);
	assert_non_null(strstr(text, "members"));
	free(json);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_command_has_a_line),
		cmocka_unit_test(test_no_command_holds_others_up_for_long),
		cmocka_unit_test(test_a_command_that_holds_others_up_for_too_long_is_named),
		cmocka_unit_test(test_wrong_options_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
