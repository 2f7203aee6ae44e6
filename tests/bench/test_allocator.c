/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What is freed goes back to the kernel, with jemalloc, as muninn-bench has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/allocator.h"

enum { BLOCKS = 256, BLOCK_BYTES = 64 << 10 };

static uint64_t resident(void)
{
	struct allocator_figures figures;

	/* Sanitizers have an allocator of their own. */
	if (!allocator_read(&figures))
		skip();
	return figures.resident_bytes;
}

static void test_what_was_freed_goes_back_at_once(void **state)
{
	uint64_t all = (uint64_t)BLOCKS * BLOCK_BYTES, before = resident();
	uint8_t *blocks[BLOCKS];

	(void)state;
	for (int n = 0; n < BLOCKS; n++) {
		blocks[n] = malloc(BLOCK_BYTES);
		assert_non_null(blocks[n]);
		memset(blocks[n], 1, BLOCK_BYTES);
	}
	assert_true(resident() >= before + all);
	for (int n = 0; n < BLOCKS; n++)
		free(blocks[n]);
	allocator_give_back();
	/* Tables of the allocator stay, which grow by 2 MiB at once. */
	assert_true(resident() < before + all / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_freed_goes_back_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
