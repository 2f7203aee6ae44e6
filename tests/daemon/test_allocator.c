/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which allocator tgtd gets, on hosts that have jemalloc and on hosts that have not: the test says
 * which files are there.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/log.h"
#include "daemon/allocator.h"

static const char *present; /* the part that the names of files which are there have; NULL: none */
static unsigned looks;
static char warned[512];

int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
	(void)mode;
	looks++;
	if (present && strstr(path, present))
		return 0;
	errno = ENOENT;
	return -1;
}

static void keep_line(enum log_level level, const char *line)
{
	if (level == LOG_LEVEL_WARNING)
		snprintf(warned, sizeof(warned), "%s", line);
}

static int setup(void **state)
{
	(void)state;
	present = NULL;
	looks = 0;
	warned[0] = '\0';
	log_configure(keep_line, LOG_LEVEL_DEBUG);
	return 0;
}

/* ---- with sanitizers ---- */

#ifdef __SANITIZE_ADDRESS__

static void test_sanitizers_bring_their_own(void **state)
{
	static const char *const values[] = { ALLOCATOR_JEMALLOC, ALLOCATOR_SYSTEM, "/own.so" };
	struct error_text error;
	char library[PATH_MAX];

	(void)state;
	present = ".so";
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		assert_int_equal(allocator_find(values[i], library, &error), 0);
		assert_string_equal(library, "");
	}
	assert_string_equal(warned, "");
}

#define TESTS cmocka_unit_test_setup(test_sanitizers_bring_their_own, setup)

#else

/* ---- without ---- */

static void test_jemalloc_is_found_beside_the_c_library(void **state)
{
	struct error_text error;
	char library[PATH_MAX];

	(void)state;
	present = "/libjemalloc.so.2";
	assert_int_equal(allocator_find(ALLOCATOR_JEMALLOC, library, &error), 0);
	assert_non_null(strstr(library, "/lib"));
	assert_string_equal(strrchr(library, '/'), "/libjemalloc.so.2");
	assert_int_equal(looks, 1);
	assert_string_equal(warned, "");
	/* Where /lib is not /usr/lib. */
	present = "/usr/";
	assert_int_equal(allocator_find(ALLOCATOR_JEMALLOC, library, &error), 0);
	assert_ptr_equal(strstr(library, "/usr/"), library);
}

static void test_a_missing_jemalloc_is_warned_of_and_done_without(void **state)
{
	struct error_text error;
	char library[PATH_MAX];

	(void)state;
	assert_int_equal(allocator_find(ALLOCATOR_JEMALLOC, library, &error), 0);
	assert_string_equal(library, "");
	assert_true(looks > 0);
	assert_non_null(strstr(warned, "jemalloc is not installed"));
	assert_non_null(strstr(warned, "libjemalloc2"));
}

static void test_that_of_the_c_library_is_not_looked_for(void **state)
{
	struct error_text error;
	char library[PATH_MAX];

	(void)state;
	assert_int_equal(allocator_find(ALLOCATOR_SYSTEM, library, &error), 0);
	assert_string_equal(library, "");
	assert_int_equal(looks, 0);
	assert_string_equal(warned, "");
}

static void test_one_of_ones_own_must_be_there(void **state)
{
	struct error_text error = { "" };
	char library[PATH_MAX];

	(void)state;
	assert_int_equal(allocator_find("/own.so", library, &error), -ENOENT);
	assert_string_equal(error.text, "allocator /own.so: No such file or directory");
	present = "/own.so";
	assert_int_equal(allocator_find("/own.so", library, &error), 0);
	assert_string_equal(library, "/own.so");
}

#define TESTS                                                                                 \
	cmocka_unit_test_setup(test_jemalloc_is_found_beside_the_c_library, setup),           \
		cmocka_unit_test_setup(test_a_missing_jemalloc_is_warned_of_and_done_without, \
				       setup),                                                \
		cmocka_unit_test_setup(test_that_of_the_c_library_is_not_looked_for, setup),  \
		cmocka_unit_test_setup(test_one_of_ones_own_must_be_there, setup)

#endif

int main(void)
{
	const struct CMUnitTest tests[] = { TESTS };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
