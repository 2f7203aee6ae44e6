/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench disk-history`: what it prints, what it refuses, and the goals that counters decide,
 * on a device that is small enough for a test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/disk_history.h"
#include "tests/bench/part.h"

static int run(const char *line, char **json, char **text)
{
	return run_part(disk_history_main, "disk-history", line, json, text);
}

static void test_history_costs_a_disk_what_it_may(void **state)
{
	struct disk_history_options options = disk_history_defaults();
	struct disk_history_figures figures;
	struct error_text error;

	(void)state;
	options.pages = 20000;
	options.snapshots = 1000;
	options.reads = 4000;
	options.rollbacks = options.exposures = 200;
	options.size_bytes = UINT64_C(512) << 20;
	assert_int_equal(disk_history_measure(&options, &figures, &error), 0);
	assert_true(figures.reads_filled > 0.5);
	assert_true(figures.reads_current > figures.reads_control * 0.99);
	assert_true(figures.reads_current < figures.reads_control * 1.01);
	assert_true(figures.reads_versions < figures.reads_current + 2);
	assert_true(figures.snapshot_programs_most <= 2);
	assert_true(figures.snapshot_bytes > 100 && figures.snapshot_bytes < 4096);
	/* 8 pages, with what their records have beside them. */
	assert_true(figures.version_bytes > 8 * 4096.0 && figures.version_bytes < 8 * 4300.0);
	assert_true(figures.rollback_bytes > 100 && figures.rollback_bytes < 4096);
	assert_int_equal(figures.snapshot.count, 1000);
	assert_int_equal(figures.rollback.count, 200);
	assert_int_equal(figures.exposure.count, 200);
	assert_int_equal(figures.clone.count, 200);
	assert_true(figures.exposure.median > 0 &&
		    figures.exposure.most >= figures.exposure.median);
}

static void test_figures_are_printed_and_counters_repeat_themselves(void **state)
{
	const char *line = "--pages 300 --snapshots 50 --overwrites 3 --reads 100 --rollbacks 5 "
			   "--exposures 5 --size 256M --volume 1G --seed 7";
	char *json[2], *text[2];

	(void)state;
	for (int n = 0; n < 2; n++) {
		/* Everything is in the buffers, where there is nothing to compare. */
		assert_true(run(line, &json[n], &text[n]) <= 1);
		assert_non_null(strstr(text[n], "a volume of 1 GiB, 300 pages of 4 KiB"));
		assert_non_null(strstr(json[n], "\"volume_bytes\": 1073741824"));
		assert_non_null(strstr(json[n], "\"exposure\": {\"count\": 5, "));
		/* Behind this are times. */
		*strstr(json[n], "\"snapshot\": {") = '\0';
	}
	assert_string_equal(json[0], json[1]);
	for (int n = 0; n < 2; n++) {
		free(json[n]);
		free(text[n]);
	}
}

static void test_numbers_outside_of_their_limits_are_refused(void **state)
{
	static const char *const lines[] = {
		"--pages 0",        "--snapshots 1", "--snapshots 32768",
		"--rollbacks 4097", "--size 1M",     "--volume 1M --pages 257",
		"--seed",           "--something",   "more"
	};
	char *json, *text;

	(void)state;
	for (size_t n = 0; n < sizeof(lines) / sizeof(lines[0]); n++) {
		assert_int_equal(run(lines[n], &json, &text), 2);
		assert_non_null(strstr(text, "muninn-bench disk-history: "));
		free(json);
		free(text);
	}
	assert_int_equal(run("--help", &json, &text), 0);
	assert_non_null(strstr(json, "--overwrites N"));
	free(json);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_history_costs_a_disk_what_it_may),
		cmocka_unit_test(test_figures_are_printed_and_counters_repeat_themselves),
		cmocka_unit_test(test_numbers_outside_of_their_limits_are_refused),
	};

	return cmocka_run_group_tests_name("disk history benchmark", tests, NULL, NULL);
}
