/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * No false alarms: whatever has happened to a device, crashes and failures of the power among it,
 * engine_check finds nothing wrong each time that it is opened again. MUNINN_SEED and
 * MUNINN_OPERATIONS choose another run.
 *
 * Runs for each index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/engine/model/model_run.h"

static void test_nothing_is_found_wrong_with_a_roomy_device(void **state)
{
	(void)state;
	model_run_on_flash("checked flash",
			   &(struct model_flash){ .blocks = 6000, .checked = true }, 4, 20000);
}

static void test_nothing_is_found_wrong_with_one_that_is_merged_all_the_time(void **state)
{
	(void)state;
	model_run_on_flash("checked flash that is merged",
			   &(struct model_flash){ .blocks = 500, .checked = true }, 5, 10000);
}

static void test_nothing_is_found_wrong_with_one_that_runs_full(void **state)
{
	(void)state;
	model_run_on_flash(
		"checked flash that runs full",
		&(struct model_flash){ .blocks = 900, .merge_manual = true, .checked = true }, 6,
		20000);
}

static void test_nothing_is_found_wrong_where_partitions_and_clones_come_and_go(void **state)
{
	(void)state;
	model_run_on_flash(
		"checked, restless",
		&(struct model_flash){ .blocks = 500, .restless = true, .checked = true }, 21,
		10000);
}

static void test_nothing_is_found_wrong_behind_failures_of_the_power(void **state)
{
	(void)state;
	model_run_on_flash(
		"checked, power fails",
		&(struct model_flash){ .blocks = 900, .power_fails = true, .checked = true }, 31,
		10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_found_wrong_with_a_roomy_device),
		cmocka_unit_test(test_nothing_is_found_wrong_with_one_that_is_merged_all_the_time),
		cmocka_unit_test(test_nothing_is_found_wrong_with_one_that_runs_full),
		cmocka_unit_test(
			test_nothing_is_found_wrong_where_partitions_and_clones_come_and_go),
		cmocka_unit_test(test_nothing_is_found_wrong_behind_failures_of_the_power),
	};

	return cmocka_run_group_tests_name("model, checked", tests, NULL, NULL);
}
