/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench iscsi`: what it prints and refuses, and tiny runs with a muninnd and a stock tgtd,
 * which must leave nothing behind. No speed is expected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "bench/drive.h"
#include "bench/iscsi_bench.h"
#include "tests/bench/part.h"

static int run(const char *line, char **json, char **text)
{
	return run_part(iscsi_bench_main, "iscsi", line, json, text);
}

/* ---- tiny runs ---- */

/*
 * The muninnd of the release build: tgtd itself is not instrumented, so it could not load the
 * others' module as it is.
 */
static void muninnd_path(char path[4096])
{
	char self[2048];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *tests;

	assert_true(length > 0);
	self[length] = '\0';
	tests = strstr(self, "/tests/");
	assert_non_null(tests);
	*tests = '\0';
	snprintf(path, 4096, "%s/bin/muninnd", self);
	assert_int_equal(access(path, X_OK), 0);
}

/* Whether a folder has entries; it must be there. */
static bool is_empty(const char *folder)
{
	DIR *entries = opendir(folder);
	const struct dirent *entry;
	bool empty = true;

	assert_non_null(entries);
	while ((entry = readdir(entries)))
		empty = empty && entry->d_name[0] == '.';
	closedir(entries);
	return empty;
}

static int run_tiny(const char *cases, char **json, char **text)
{
	char folder[] = "/tmp/muninn-iscsi-bench-XXXXXX", line[8192], muninnd[4096];
	int code;

	muninnd_path(muninnd);
	assert_non_null(mkdtemp(folder));
	snprintf(line, sizeof(line),
		 "--muninnd %s --memory %s --drive %s --memory-size 64M --drive-size 64M --bytes "
		 "16M --turns 2 --seconds 0.05 --sustained 0.3 %s",
		 muninnd, folder, folder, cases);
	code = run(line, json, text);
	assert_true(is_empty(folder));
	assert_int_equal(rmdir(folder), 0);
	return code;
}

static double number(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	if (!json_is_number(value))
		fail_msg("%s is not a number", name);
	return json_number_value(value);
}

/* The line of a side of a case; the caller has one more reference to release. */
static json_t *line_of(const char *json, const char *name, const char *side)
{
	char *copy = strdup(json), *rest = copy, *line;
	json_t *found = NULL;

	assert_non_null(copy);
	while (!found && (line = strsep(&rest, "\n")) && *line) {
		json_t *object = json_loads(line, 0, NULL);
		const char *is = json_string_value(json_object_get(object, "case"));
		const char *of = json_string_value(json_object_get(object, "side"));

		assert_non_null(object);
		if (is && of && strcmp(is, name) == 0 && strcmp(of, side) == 0)
			found = json_incref(object);
		json_decref(object);
	}
	free(copy);
	if (!found)
		fail_msg("no line of %s, %s in:\n%s", name, side, json);
	return found;
}

static void expect_side(const char *json, const char *name, const char *side)
{
	json_t *line = line_of(json, name, side);

	assert_true(number(line, "commands_per_s") > 0);
	assert_true(number(line, "p50_us") > 0);
	assert_true(number(line, "p50_us") <= number(line, "p99_us"));
	assert_true(number(line, "p99_us") <= number(line, "p999_us"));
	assert_true(number(line, "server_us_per_command") > 0);
	assert_true(number(line, "client_us_per_command") > 0);
	assert_int_equal(number(line, "turns"), 2);
	json_decref(line);
}

static void test_rates_are_compared_in_turns(void **state)
{
	char *json, *text;

	(void)state;
	assert_in_range(run_tiny("--case read-4k --case write-4k-drive", &json, &text), 0, 1);
	if (!strstr(json, "goal_of"))
		fail_msg("%s", text);
	expect_side(json, "read-4k", "muninn");
	expect_side(json, "read-4k", "null");
	expect_side(json, "write-4k-drive", "muninn");
	expect_side(json, "write-4k-drive", "null");
	expect_side(json, "write-4k-drive", "rdwr");
	assert_non_null(strstr(json, "\"goal_of\": \"read-4k\", \"what\": \"rate : null\""));
	assert_non_null(strstr(json, "\"what\": \"rate : rdwr\""));
	free(json);
	free(text);
}

static void test_disks_are_measured_beside_disks(void **state)
{
	char *json, *text;

	(void)state;
	assert_in_range(run_tiny("--case disk-write-512 --case disk-write-unaligned "
				 "--case disk-read-4k",
				 &json, &text),
			0, 1);
	if (!strstr(json, "goal_of"))
		fail_msg("%s", text);
	expect_side(json, "disk-write-512", "muninn");
	expect_side(json, "disk-write-512", "rdwr");
	expect_side(json, "disk-write-unaligned", "muninn");
	expect_side(json, "disk-read-4k", "muninn");
	expect_side(json, "disk-read-4k", "null");
	assert_non_null(strstr(json, "\"goal_of\": \"disk-read-4k\", \"what\": \"rate : null\""));
	free(json);
	free(text);
}

static void test_paces_flushes_and_sessions_are_measured(void **state)
{
	char *json, *text;
	json_t *line;

	(void)state;
	assert_in_range(
		run_tiny("--case tail --case flush --case sessions --backend file", &json, &text),
		0, 1);
	if (!strstr(json, "goal_of"))
		fail_msg("%s", text);
	line = line_of(json, "tail", "paced");
	assert_true(number(line, "paced") > 0);
	assert_true(number(line, "commands_per_s") > 0);
	json_decref(line);
	expect_side(json, "tail", "highest");
	expect_side(json, "flush", "+FLUSH");
	expect_side(json, "sessions", "1");
	line = line_of(json, "sessions", "4");
	assert_int_equal(number(line, "sessions"), 4);
	assert_true(number(line, "least_to_most_session") <= 1);
	json_decref(line);
	free(json);
	free(text);
}

static void test_a_muninnd_that_does_not_start_is_told(void **state)
{
	char *json, *text;

	(void)state;
	assert_int_equal(
		run("--muninnd /nowhere/muninnd --memory /tmp --case read-4k", &json, &text), 1);
	assert_non_null(strstr(text, "/nowhere/muninnd: No such file"));
	free(json);
	free(text);
	assert_int_equal(run("--memory /nowhere --case read-4k", &json, &text), 1);
	assert_non_null(strstr(text, "/nowhere: No such file"));
	free(json);
	free(text);
	assert_int_equal(run_tiny("--case read-4k --set threads=0", &json, &text), 1);
	assert_non_null(strstr(text, "threads"));
	free(json);
	free(text);
}

/* ---- words ---- */

static void test_wrong_use_is_explained(void **state)
{
	static const struct {
		const char *line, *text;
	} wrong[] = {
		{ "--case read-5k", "--case read-5k: there is no such case" },
		{ "--backend tape", "--backend tape: there are mmap and file" },
		{ "--turns 0", "--turns 0: must be a number, 1 to 99" },
		{ "--seconds 0", "--seconds 0: must be a number, 0.05 to 3600" },
		{ "--sustained x", "--sustained x: must be a number" },
		{ "--set threads", "--set threads: must be KEY=VALUE" },
		{ "--drive-size 8G --bytes 7G", "at most three quarters of --drive-size" },
		{ "--memory", "--memory needs a value" },
		{ "--colour", "--colour: no such option" },
	};
	char *json, *text;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(run(wrong[i].line, &json, &text), 2);
		if (!strstr(text, wrong[i].text))
			fail_msg("\"%s\" is not in \"%s\"", wrong[i].text, text);
		free(json);
		free(text);
	}
	assert_int_equal(run("--help", &json, &text), 0);
	assert_non_null(strstr(json, "--sustained"));
	assert_non_null(strstr(json, "write-1m-drive"));
	free(json);
	free(text);
}

static void test_places_have_different_stamps(void **state)
{
	(void)state;
	assert_true(load_stamp(0) != load_stamp(4096));
	assert_true(load_stamp(0) != 0);
	assert_true(load_stamp(8192) == load_stamp(8192));
}

static void test_a_drive_is_counted_where_there_is_one(void **state)
{
	struct bench_drive before = { .reads = 3, .read_bytes = 512, .writes = 1 };
	struct bench_drive after = { .reads = 5, .read_bytes = 1536, .writes = 1 };
	struct bench_drive between = bench_drive_between(&before, &after), drive;

	(void)state;
	assert_int_equal(between.reads, 2);
	assert_int_equal(between.read_bytes, 1024);
	assert_int_equal(between.writes, 0);
	/* No drive is below /proc. */
	assert_int_equal(bench_drive_count("/proc/self", &drive), -ENODEV);
	assert_int_equal(bench_drive_count("/nowhere", &drive), -ENOENT);
	assert_int_equal(bench_drive_forget("/nowhere"), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates_are_compared_in_turns),
		cmocka_unit_test(test_disks_are_measured_beside_disks),
		cmocka_unit_test(test_paces_flushes_and_sessions_are_measured),
		cmocka_unit_test(test_a_muninnd_that_does_not_start_is_told),
		cmocka_unit_test(test_wrong_use_is_explained),
		cmocka_unit_test(test_places_have_different_stamps),
		cmocka_unit_test(test_a_drive_is_counted_where_there_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
