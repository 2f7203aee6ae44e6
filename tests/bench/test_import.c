/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench import`: its tree, a tiny run with a muninnd and the programs that it is compared
 * with, and what it prints and refuses.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "bench/folder.h"
#include "bench/import_bench.h"
#include "bench/source_tree.h"
#include "tests/bench/part.h"

static int run(const char *line, char **json, char **text)
{
	return run_part(import_bench_main, "import", line, json, text);
}

static void make_folder(char folder[512])
{
	struct error_text error;

	assert_int_equal(bench_folder_make("/tmp", folder, 512, &error), 0);
}

/* ---- the tree ---- */

static const struct source_tree small_tree = { .files = 300, .bytes = 3000000, .seed = 7 };

static void test_a_tree_has_its_files_and_bytes(void **state)
{
	struct error_text error = { "" };
	char folder[512], path[600];
	uint64_t bytes, small = 0, sum = 0;

	(void)state;
	make_folder(folder);
	assert_int_equal(source_tree_make(&small_tree, folder, &bytes, &error), 0);
	assert_in_range(bytes, small_tree.bytes - small_tree.files, small_tree.bytes);
	/* 18 directories: file 299 is in number 0x12. */
	snprintf(path, sizeof(path), "%s/part-1/part-2/file-299.c", folder);
	assert_int_equal(access(path, F_OK), 0);
	for (uint64_t i = 0; i < 16; i++) {
		struct stat status;

		snprintf(path, sizeof(path), "%s/file-%u.c", folder, (unsigned)i);
		assert_int_equal(stat(path, &status), 0);
		small += status.st_size < 10000;
		sum += (uint64_t)status.st_size;
	}
	/* Most files are shorter than the mean. */
	assert_true(small > 8 && sum > 0);
	assert_int_equal(source_tree_check(&small_tree, folder, &error), 0);
	bench_folder_remove(folder);
}

static void test_a_tree_that_differs_is_found(void **state)
{
	struct error_text error = { "" };
	char folder[512], path[600];
	struct stat status;
	uint64_t bytes;
	uint8_t byte;
	int fd;

	(void)state;
	make_folder(folder);
	assert_int_equal(source_tree_make(&small_tree, folder, &bytes, &error), 0);
	snprintf(path, sizeof(path), "%s/part-3/file-50.c", folder);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(pread(fd, &byte, 1, status.st_size - 1), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, status.st_size - 1), 1);
	assert_int_equal(source_tree_check(&small_tree, folder, &error), -EBADMSG);
	assert_non_null(strstr(error.text, "part-3/file-50.c: it is not what was stored"));
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, status.st_size - 1), 1);
	assert_int_equal(source_tree_check(&small_tree, folder, &error), 0);
	/* Longer, and gone. */
	assert_int_equal(pwrite(fd, &byte, 1, status.st_size), 1);
	assert_int_equal(source_tree_check(&small_tree, folder, &error), -EBADMSG);
	close(fd);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(source_tree_check(&small_tree, folder, &error), -EBADMSG);
	bench_folder_remove(folder);
}

/* ---- tiny runs ---- */

/* Where the programs of this build are; see test_iscsi.c for why of the release build. */
static void programs_path(char path[2048])
{
	ssize_t length = readlink("/proc/self/exe", path, 2000);
	char *tests;

	assert_true(length > 0);
	path[length] = '\0';
	tests = strstr(path, "/tests/");
	assert_non_null(tests);
	strcpy(tests, "/bin");
}

static int run_tiny(const char *options, char **json, char **text)
{
	char folder[512], line[4096], programs[2048];
	int code;

	programs_path(programs);
	make_folder(folder);
	snprintf(line, sizeof(line),
		 "--programs %s --folder %s --files 200 --bytes 2M --size 256M --turns 2 %s",
		 programs, folder, options);
	code = run(line, json, text);
	/* It is empty again. */
	assert_int_equal(rmdir(folder), 0);
	return code;
}

/* Line number `n` of what a run has printed; the caller releases it. */
static json_t *line_of(const char *json, int n)
{
	json_t *object;

	while (n-- > 0) {
		json = strchr(json, '\n');
		assert_non_null(json);
		json++;
	}
	object = json_loads(json, JSON_DISABLE_EOF_CHECK, NULL);
	assert_non_null(object);
	return object;
}

static double number(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	if (!json_is_number(value))
		fail_msg("%s is not a number", name);
	return json_number_value(value);
}

static void test_a_tiny_run_has_all_figures(void **state)
{
	static const char *const names[] = { "import", "export", "update" };
	char *json, *text;
	json_t *object;

	(void)state;
	/* The programs are not expected to reach their goals with so little. */
	assert_true(run_tiny("--borg /nowhere/borg", &json, &text) <= 1);
	if (!strstr(text, "200 files"))
		fail_msg("%s", text);
	object = line_of(json, 0);
	/* muninnd's default. */
	assert_true(json_is_null(json_object_get(object, "index")));
	assert_true(number(object, "files") == 200);
	assert_in_range((uint64_t)number(object, "bytes"), (2 << 20) - 200, 2 << 20);
	assert_true(number(object, "used_bytes") >= number(object, "bytes"));
	assert_true(number(object, "room") >= 1);
	json_decref(object);
	for (int n = 0; n < 3; n++) {
		object = line_of(json, n + 1);
		assert_string_equal(json_string_value(json_object_get(object, "task")), names[n]);
		assert_true(number(object, "seconds") > 0);
		if (n < 2)
			assert_true(number(object, "reference_seconds") > 0 &&
				    number(object, "ratio") > 0);
		else
			assert_true(json_is_null(json_object_get(object, "reference_seconds")) &&
				    json_is_null(json_object_get(object, "ratio")));
		json_decref(object);
	}
	assert_non_null(strstr(text, "borg create: not installed"));
	assert_non_null(strstr(text, "bytes used, of those in files"));
	free(json);
	free(text);
}

static void test_a_run_says_of_which_index_it_is(void **state)
{
	char *json, *text;
	json_t *object;

	(void)state;
	assert_true(run_tiny("--index bloom --turns 1 --borg /nowhere/borg", &json, &text) <= 1);
	if (!strstr(text, "200 files"))
		fail_msg("%s", text);
	object = line_of(json, 0);
	assert_string_equal(json_string_value(json_object_get(object, "index")), "bloom");
	json_decref(object);
	free(json);
	free(text);
}

static void test_what_fails_is_told_and_leaves_nothing(void **state)
{
	char *json, *text;

	(void)state;
	/* More than the unit holds. */
	assert_int_equal(run_tiny("--bytes 400M --borg /nowhere/borg", &json, &text), 1);
	assert_non_null(strstr(text, "muninnctl failed: "));
	free(json);
	free(text);
	assert_int_equal(run_tiny("--programs /nowhere --borg /nowhere/borg", &json, &text), 1);
	assert_non_null(strstr(text, "/nowhere/muninnd: No such file"));
	free(json);
	free(text);
}

static void test_wrong_options_are_refused(void **state)
{
	static const char *const lines[] = { "--files 0", "--turns 0",   "--turns 100",
					     "--size 1M", "--bytes 0",   "--seed",
					     "--borg",    "--something", "more" };
	char *json, *text;

	(void)state;
	for (size_t n = 0; n < sizeof(lines) / sizeof(lines[0]); n++) {
		assert_int_equal(run(lines[n], &json, &text), 2);
		assert_non_null(strstr(text, "muninn-bench import: "));
		free(json);
		free(text);
	}
	assert_int_equal(run("--help", &json, &text), 0);
	assert_non_null(strstr(json, "--programs PATH"));
	free(json);
	free(text);
	assert_int_equal(run("--folder /nowhere", &json, &text), 1);
	assert_non_null(strstr(text, "/nowhere: No such file"));
	free(json);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_tree_has_its_files_and_bytes),
		cmocka_unit_test(test_a_tree_that_differs_is_found),
		cmocka_unit_test(test_a_tiny_run_has_all_figures),
		cmocka_unit_test(test_a_run_says_of_which_index_it_is),
		cmocka_unit_test(test_what_fails_is_told_and_leaves_nothing),
		cmocka_unit_test(test_wrong_options_are_refused),
	};

	return cmocka_run_group_tests_name("import benchmark", tests, NULL, NULL);
}
