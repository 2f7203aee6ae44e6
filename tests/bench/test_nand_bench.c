/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench nand` on a small scale: that it measures, checks what it reads, and says what is
 * wrong. Not how fast.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/nand_bench.h"
#include "tests/bench/part.h"

static int run(const char *line, char **json, char **text)
{
	return run_part(nand_bench_main, "nand", line, json, text);
}

static json_t *field(const char *json, const char *name)
{
	json_t *object = json_loads(json, JSON_DISABLE_EOF_CHECK, NULL);
	json_t *value = json_incref(json_object_get(object, name));

	json_decref(object);
	assert_non_null(value);
	return value;
}

static double number(const char *json, const char *name)
{
	json_t *value = field(json, name);
	double result = json_number_value(value);

	json_decref(value);
	return result;
}

static void test_a_huge_device_is_filled_inspected_and_read_back(void **state)
{
	char *json, *text;

	(void)state;
	assert_int_equal(run("--backend headers --device 512G --records 100001", &json, &text), 0);
	assert_int_equal(number(json, "pages"), 25001);
	assert_int_equal(number(json, "pages_packed"), 25001);
	assert_int_equal(number(json, "pages_whole"), 0);
	/* Four records of random keys. */
	assert_true(number(json, "bytes_per_page") < 100);
	free(json);
	free(text);
}

static void test_memory_is_measured_beside_memcpy(void **state)
{
	char *json, *text;

	(void)state;
	/* Missing the goal is no failure of this test: sanitizers are slow. */
	assert_true(run("--backend mmap --memory 16M --runs 1", &json, &text) <= 1);
	assert_non_null(strstr(json, "\"bench\": \"mmap_program\""));
	assert_non_null(strstr(json, "\"bench\": \"mmap_program_and_read\""));
	assert_non_null(strstr(json, "\"ratio\": "));
	assert_null(strstr(text, "failed"));
	free(json);
	free(text);
}

/* A directory with a program "fio" that does as `script` says, first in PATH. */
static void install_fio(char *directory, const char *script)
{
	char path[256];
	FILE *file;

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/fio", directory);
	file = fopen(path, "we");
	assert_non_null(file);
	fprintf(file, "#!/bin/sh\n%s\n", script);
	fclose(file);
	assert_int_equal(chmod(path, 0755), 0);
	snprintf(path, sizeof(path), "%s:/usr/bin:/bin", directory);
	assert_int_equal(setenv("PATH", path, 1), 0);
}

/* The file part beside that program; as short as can be. Its image must be gone afterwards. */
static int run_file_part(const char *script, char **json, char **text, struct error_text *error)
{
	char directory[] = "/tmp/muninn-nand-bench-XXXXXX", path[64], fio[64];
	struct nand_bench_options options = nand_bench_defaults();
	struct bench_output output;
	size_t json_bytes, text_bytes;
	int result;

	install_fio(directory, script);
	snprintf(path, sizeof(path), "%s/image", directory);
	snprintf(fio, sizeof(fio), "%s/fio", directory);
	options.path = path;
	options.file_bytes = 64 << 20;
	options.runs = 3;
	options.seconds = 0;
	output.json = open_memstream(json, &json_bytes);
	output.text = open_memstream(text, &text_bytes);
	result = nand_bench_file(&options, &output, error);
	fclose(output.json);
	fclose(output.text);
	unlink(fio);
	assert_int_equal(rmdir(directory), 0);
	return result;
}

/* The last goal is missed when other programs read from the drive, too. */
static bool others_read(const struct error_text *error)
{
	return strstr(error->text, "file_drive_reads_a_page") != NULL;
}

static void test_files_are_measured_beside_fio(void **state)
{
	static const char script[] =
		"case \"$*\" in\n"
		"*--ioengine=io_uring*--direct=1*) ;;\n"
		"*) exit 1 ;;\n"
		"esac\n"
		"echo '{\"jobs\": [{\"error\": 0, \"read\": {\"iops\": 1.0, \"bw_bytes\": 4096},"
		" \"write\": {\"iops\": 2.0, \"bw_bytes\": 2000000}}]}'";
	struct error_text error = { "" };
	char *json, *text;

	(void)state;
	assert_true(run_file_part(script, &json, &text, &error) == 0 || others_read(&error));
	assert_non_null(strstr(json, "\"bench\": \"file_program_fresh_image\""));
	assert_non_null(strstr(json, "\"bench\": \"file_program_1MiB\""));
	assert_non_null(strstr(json, "\"reference_measured\": 2.0"));
	assert_non_null(strstr(json, "\"bench\": \"file_read_call\""));
	assert_non_null(strstr(json, "\"bench\": \"file_read_depth_1\""));
	assert_non_null(strstr(json, "\"bench\": \"file_read_depth_32\""));
	assert_non_null(strstr(json, "\"bench\": \"file_read_1MiB\""));
	/* Where the host counts them. */
	assert_true(strstr(json, "\"bench\": \"file_drive_reads_a_page\"") ||
		    strstr(text, "file_drive_reads_a_page"));
	assert_null(strstr(text, "MISSED"));
	free(json);
	free(text);
}

static void test_a_missed_goal_is_told(void **state)
{
	struct error_text error = { "" };
	char *json, *text;

	(void)state;
	assert_int_equal(run_file_part("echo '{\"jobs\": [{\"error\": 0, "
				       "\"read\": {\"iops\": 1e12, \"bw_bytes\": 1}, "
				       "\"write\": {\"iops\": 2.0, \"bw_bytes\": 1}}]}'",
				       &json, &text, &error),
			 -ERANGE);
	assert_non_null(strstr(text, "MISSED"));
	assert_non_null(strstr(text, "goal 0.85 MISSED"));
	assert_true(strstr(error.text, "of fio, the goal is 0.85") || others_read(&error));
	free(json);
	free(text);
}

static void test_a_fio_that_fails_ends_the_run(void **state)
{
	static const char *const scripts[] = { "exit 1", "echo nonsense", "echo '{\"jobs\": []}'",
					       "exit 127" };

	(void)state;
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		struct error_text error = { "" };
		char *json, *text;

		assert_true(run_file_part(scripts[i], &json, &text, &error) < 0);
		assert_non_null(
			strstr(error.text, i == 3 ? "fio is not installed" : "fio failed on"));
		free(json);
		free(text);
	}
}

static void test_wrong_use_is_explained(void **state)
{
	static const struct {
		const char *line, *text;
	} wrong[] = {
		{ "--backend tape", "--backend tape: there are mmap, file and headers" },
		{ "--runs 0", "--runs 0: must be a number, 1 to 99" },
		{ "--runs 100", "must be a number" },
		{ "--seconds 0", "--seconds 0: must be a number, 0.1 to 3600" },
		{ "--seconds nan", "must be a number" },
		{ "--seconds 1s", "must be a number" },
		{ "--runs", "--runs needs a value" },
		{ "--size 1", "--size 1: must be a number" },
		{ "--size 5Q", "must be a number" },
		{ "--size -1", "must be a number" },
		{ "--size 99999999999999999999T", "must be a number" },
		{ "--colour", "--colour: no such option" },
		{ "more", "more: not an option" },
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
	assert_int_equal(run("--backend headers --device 64M --records 1000000", &json, &text), 1);
	assert_non_null(strstr(text, "do not fit on a device of 67108864 bytes"));
	free(json);
	free(text);
}

static void test_help_is_an_answer(void **state)
{
	char *json, *text;

	(void)state;
	assert_int_equal(run("--help", &json, &text), 0);
	assert_non_null(strstr(json, "--full"));
	free(json);
	free(text);
}

static void test_the_median_is_the_middle(void **state)
{
	(void)state;
	assert_true(bench_median((double[]){ 3 }, 1) == 3);
	assert_true(bench_median((double[]){ 9, 1, 5 }, 3) == 5);
	assert_true(bench_median((double[]){ 4, 1, 9, 2 }, 4) == 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_huge_device_is_filled_inspected_and_read_back),
		cmocka_unit_test(test_memory_is_measured_beside_memcpy),
		cmocka_unit_test(test_files_are_measured_beside_fio),
		cmocka_unit_test(test_a_missed_goal_is_told),
		cmocka_unit_test(test_a_fio_that_fails_ends_the_run),
		cmocka_unit_test(test_wrong_use_is_explained),
		cmocka_unit_test(test_help_is_an_answer),
		cmocka_unit_test(test_the_median_is_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
