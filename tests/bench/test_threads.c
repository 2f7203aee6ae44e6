/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Several threads on one store. A program of its own because, the workers being started by
 * pthread_create, it also runs under ThreadSanitizer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_do_all_operations_and_check_what_they_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
