/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The list of devices that were there: whole lines, whatever an earlier one has left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/log.h"
#include "daemon/known.h"

#define FIRST  "/var/lib/muninn/lun1.img"
#define SECOND "/srv/a longer path/of another device/pool.img"
#define THIRD  "/srv/c.img"

static char folder[] = "/tmp/muninn-known-XXXXXX";
static char list[sizeof(folder) + 16];
static unsigned warnings;

static void count_line(enum log_level level, const char *line)
{
	(void)line;
	warnings += level == LOG_LEVEL_WARNING;
}

static int begin(void **state)
{
	(void)state;
	warnings = 0;
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(list, sizeof(list), "%s/devices", folder);
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(list);
	return rmdir(folder);
}

static void expect_list(const char *expected)
{
	char text[512] = "";
	FILE *file = fopen(list, "r");

	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	assert_string_equal(text, expected);
}

static void write_list(const char *text)
{
	FILE *file = fopen(list, "w");

	assert_non_null(file);
	assert_int_equal(fputs(text, file) < 0, 0);
	fclose(file);
}

/* As a full file system: the file takes so many bytes, and no more. */
static void allow_bytes(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_each_device_is_one_line(void **state)
{
	(void)state;
	assert_false(known_has(folder, FIRST));
	known_add(folder, FIRST);
	known_add(folder, SECOND);
	known_add(folder, FIRST);
	assert_true(known_has(folder, FIRST));
	assert_true(known_has(folder, SECOND));
	assert_false(known_has(folder, THIRD));
	expect_list(FIRST "\n" SECOND "\n");
	assert_int_equal(warnings, 0);
}

static void test_a_line_that_finds_no_space_leaves_nothing(void **state)
{
	(void)state;
	known_add(folder, FIRST);
	for (rlim_t more = 0; more <= strlen(SECOND); more++) {
		allow_bytes(strlen(FIRST "\n") + more);
		known_add(folder, SECOND);
		allow_bytes(RLIM_INFINITY);
		expect_list(FIRST "\n");
		assert_int_equal(warnings, more + 1);
	}
	known_add(folder, THIRD);
	assert_true(known_has(folder, THIRD));
	expect_list(FIRST "\n" THIRD "\n");
}

/* A power loss cuts a line, an editor leaves out the last end of a line. */
static void test_a_torn_line_does_not_spoil_the_next(void **state)
{
	(void)state;
	write_list(FIRST "\n/srv/a lon");
	known_add(folder, SECOND);
	known_add(folder, THIRD);
	assert_true(known_has(folder, FIRST));
	assert_true(known_has(folder, SECOND));
	assert_true(known_has(folder, THIRD));
	expect_list(FIRST "\n/srv/a lon\n" SECOND "\n" THIRD "\n");

	write_list(FIRST);
	assert_true(known_has(folder, FIRST));
	known_add(folder, SECOND);
	expect_list(FIRST "\n" SECOND "\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_device_is_one_line, begin, end),
		cmocka_unit_test_setup_teardown(test_a_line_that_finds_no_space_leaves_nothing,
						begin, end),
		cmocka_unit_test_setup_teardown(test_a_torn_line_does_not_spoil_the_next, begin,
						end),
	};

	signal(SIGXFSZ, SIG_IGN); /* write(2) says it instead */
	log_configure(count_line, LOG_LEVEL_WARNING);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
