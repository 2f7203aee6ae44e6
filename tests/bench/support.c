/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Runs muninn-bench inside the test program and reads its results. */
#include "tests/bench/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { ARGUMENTS_MAX = 64 };

/* Splits at spaces and parses as the command line does. */
int parse(struct bench_options *options, const char *line, struct error_text *error)
{
	static char copy[1024];
	char *arguments[ARGUMENTS_MAX], *rest = copy;
	int count = 0;

	arguments[count++] = (char *)(uintptr_t) "run";
	assert_true(strlen(line) < sizeof(copy));
	strcpy(copy, line);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(count + 1 < ARGUMENTS_MAX);
		arguments[count++] = word;
	}
	arguments[count] = NULL;
	return bench_options_parse(options, count, arguments, error);
}

void parse_well(struct bench_options *options, const char *line)
{
	struct error_text error;

	if (parse(options, line, &error))
		fail_msg("%s: %s", line, error.text);
}

/* What a run of the line writes to stdout; to be freed. */
char *run(const char *line)
{
	struct bench_options options;
	struct error_text error;
	size_t json_bytes, table_bytes;
	char *json_text, *table_text;
	FILE *json = open_memstream(&json_text, &json_bytes);
	FILE *table = open_memstream(&table_text, &table_bytes);

	parse_well(&options, line);
	if (bench_run(&options, json, table, &error))
		fail_msg("%s: %s", line, error.text);
	fclose(json);
	fclose(table);
	assert_true(table_bytes > 0);
	free(table_text);
	return json_text;
}

/* Runs and reads the JSON objects, one a line; returns how many. */
size_t run_phases(const char *line, json_t *phases[PHASES])
{
	char *text = run(line), *rest = NULL;
	size_t count = 0;

	for (char *row = strtok_r(text, "\n", &rest); row; row = strtok_r(NULL, "\n", &rest)) {
		assert_true(count < PHASES);
		phases[count] = json_loads(row, 0, NULL);
		assert_non_null(phases[count++]);
	}
	free(text);
	return count;
}

void release(json_t **phases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		json_decref(phases[i]);
}

double number(const json_t *phase, const char *name)
{
	const json_t *value = json_object_get(phase, name);

	if (!json_is_number(value))
		fail_msg("%s is not a number", name);
	return json_number_value(value);
}

const char *text(const json_t *phase, const char *name)
{
	const char *value = json_string_value(json_object_get(phase, name));

	if (!value)
		fail_msg("%s is not a text", name);
	return value;
}

void assert_close(double a, double b)
{
	if (fabs(a - b) > 1e-7 * fmax(1, fabs(b)))
		fail_msg("%.12g is not %.12g", a, b);
}
