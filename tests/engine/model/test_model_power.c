/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Power cuts in random runs of the whole engine against a model of full history, on flash: see
 * model_power.h. MUNINN_SEED and MUNINN_OPERATIONS choose another run; the seed is printed.
 * MUNINN_VERBOSE prints every cut.
 *
 * Runs for each index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/engine/model/model_run.h"

static void test_the_power_fails_and_the_device_is_as_before_or_after(void **state)
{
	(void)state;
	model_run_on_flash("power fails",
			   &(struct model_flash){ .blocks = 1500, .power_fails = true }, 7, 20000);
}

/* With so little room that history is given up for it, where no lock forbids that. */
static void test_the_power_fails_while_segments_are_merged(void **state)
{
	(void)state;
	model_run_on_flash("power fails on flash that is merged",
			   &(struct model_flash){ .blocks = 300, .power_fails = true }, 8, 15000);
}

static void test_the_power_fails_while_partitions_come_and_go(void **state)
{
	(void)state;
	model_run_on_flash(
		"power fails, restless",
		&(struct model_flash){ .blocks = 500, .power_fails = true, .restless = true }, 9,
		10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_power_fails_and_the_device_is_as_before_or_after),
		cmocka_unit_test(test_the_power_fails_while_segments_are_merged),
		cmocka_unit_test(test_the_power_fails_while_partitions_come_and_go),
	};

	return cmocka_run_group_tests_name("model, power cuts", tests, NULL, NULL);
}
