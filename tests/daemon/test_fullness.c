/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A device that fills up says so once at each level, and again only after it fell well below. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/module/fullness.h"

static void test_each_level_is_said_once(void **state)
{
	struct fullness fullness = { 0 };

	(void)state;
	assert_int_equal(fullness_reached(&fullness, 799, 1000), 0);
	assert_int_equal(fullness_reached(&fullness, 800, 1000), 80);
	assert_int_equal(fullness_reached(&fullness, 949, 1000), 0);
	assert_int_equal(fullness_reached(&fullness, 950, 1000), 95);
	assert_int_equal(fullness_reached(&fullness, 999, 1000), 0);
	assert_int_equal(fullness_reached(&fullness, 1000, 1000), 100);
	assert_int_equal(fullness_reached(&fullness, 1000, 1000), 0);
}

static void test_a_level_is_said_again_after_it_fell_below(void **state)
{
	struct fullness fullness = { 0 };

	(void)state;
	assert_int_equal(fullness_reached(&fullness, 960, 1000), 95);
	/* Merging moves it a little: that is no news. */
	assert_int_equal(fullness_reached(&fullness, 910, 1000), 0);
	assert_int_equal(fullness_reached(&fullness, 960, 1000), 0);
	assert_int_equal(fullness_reached(&fullness, 890, 1000), 0);
	assert_int_equal(fullness_reached(&fullness, 960, 1000), 95);
	/* From far below the lower one is said, too. */
	assert_int_equal(fullness_reached(&fullness, 100, 1000), 0);
	assert_int_equal(fullness_reached(&fullness, 810, 1000), 80);
	assert_int_equal(fullness_reached(&fullness, 1000, 1000), 100);
}

static void test_a_jump_says_the_highest_level_only(void **state)
{
	struct fullness fullness = { 0 };

	(void)state;
	assert_int_equal(fullness_reached(&fullness, 970, 1000), 95);
	assert_int_equal(fullness_reached(&fullness, 900, 1000), 0);
	assert_int_equal(fullness_reached(&fullness, 0, 0), 0);
}

/* Initiators are told of the two thresholds; a full device tells them by its sense. */
static void test_a_full_device_is_no_threshold(void **state)
{
	struct fullness fullness = { 0 }, jumping = { 0 };

	(void)state;
	fullness_reached(&fullness, 800, 1000);
	assert_int_equal(fullness.crossings, 1);
	fullness_reached(&fullness, 950, 1000);
	assert_int_equal(fullness.crossings, 2);
	assert_int_equal(fullness_reached(&fullness, 1000, 1000), 100);
	assert_int_equal(fullness.crossings, 2);
	/* From there it falls below one of them, and reaches it anew. */
	fullness_reached(&fullness, 890, 1000);
	fullness_reached(&fullness, 950, 1000);
	assert_int_equal(fullness.crossings, 3);
	/* One look may find both thresholds passed, and the device full. */
	assert_int_equal(fullness_reached(&jumping, 1000, 1000), 100);
	assert_int_equal(jumping.crossings, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_level_is_said_once),
		cmocka_unit_test(test_a_level_is_said_again_after_it_fell_below),
		cmocka_unit_test(test_a_jump_says_the_highest_level_only),
		cmocka_unit_test(test_a_full_device_is_no_threshold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
