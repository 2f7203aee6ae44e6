/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What growth in some time means for a day, and when there is no space left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* muninnctl is no library: the test has its parts in itself. */
#include "client/ctl/growth.c" /* NOLINT(bugprone-suspicious-include) */
#include "client/ctl/items.c"  /* NOLINT(bugprone-suspicious-include) */

uint64_t ctl_now_ms(void)
{
	return 0;
}

enum { HOUR_MS = 3600000, MIB = 1 << 20 };

static void test_growth_of_some_hours_is_told_of_a_day(void **state)
{
	const struct growth growth = { true, 3 * MIB, 3 * HOUR_MS };

	(void)state;
	assert_int_equal(growth_of_a_day(&growth), 24 * MIB);
	assert_true(growth_days_until_full(&growth, 240 * MIB) == 10);
	assert_true(growth_days_until_full(&growth, 12 * MIB) == 0.5);
	assert_true(growth_days_until_full(&growth, 0) == 0);
}

static void test_what_shrinks_is_never_full(void **state)
{
	const struct growth shrinks = { true, -3 * MIB, 24 * HOUR_MS };
	const struct growth stays = { true, 0, 24 * HOUR_MS };

	(void)state;
	assert_int_equal(growth_of_a_day(&shrinks), -3 * MIB);
	assert_true(growth_days_until_full(&shrinks, MIB) < 0);
	assert_true(growth_days_until_full(&stays, MIB) < 0);
}

static void test_a_few_minutes_tell_nothing_of_a_day(void **state)
{
	const struct growth minutes = { true, 3 * MIB, GROWTH_SPAN_MS_MIN - 1 };
	const struct growth unknown = { false, 3 * MIB, 24 * HOUR_MS };

	(void)state;
	assert_int_equal(growth_of_a_day(&minutes), 0);
	assert_true(growth_days_until_full(&minutes, MIB) < 0);
	assert_true(growth_days_until_full(&unknown, MIB) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth_of_some_hours_is_told_of_a_day),
		cmocka_unit_test(test_what_shrinks_is_never_full),
		cmocka_unit_test(test_a_few_minutes_tell_nothing_of_a_day),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
