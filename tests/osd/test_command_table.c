/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The table of commands in docs/protocol.md is what the tests show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

static void test_the_documented_table_of_commands_is_what_the_tests_show(void **state)
{
	(void)state;
	if (system("scripts/command-table --check") != 0)
		fail_msg("run `scripts/command-table --write` from the top of the sources and "
			 "commit docs/protocol.md");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_documented_table_of_commands_is_what_the_tests_show),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
