/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Threads that seal compose one segment for each processor at once, and leave memory for a turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "engine/muninn/sealing.h"
#include "tests/engine/muninn/lost_nvram.h"
#include "tests/engine/small_flash.h"

enum { LOOKS_AWAY = 1000 };

static const struct nand_geometry flash = SMALL_FLASH(2000);

static uint32_t processors(void)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	return (uint32_t)CPU_COUNT(&set);
}

struct asker {
	struct muninn_store *store;
	const struct sealing *sealing;
	struct seal_scratch *got;
	atomic_bool asks;
};

static void *ask(void *context)
{
	struct asker *asker = context;

	atomic_store(&asker->asks, true);
	asker->got = sealing_take_scratch(asker->store, asker->sealing);
	return NULL;
}

/* One more thread gets what is given back, and nothing else, however long that takes. */
static void check_that_it_waits(struct muninn_store *store, const struct sealing *thread,
				struct seal_scratch **taken)
{
	struct asker asker = { .store = store, .sealing = thread };
	pthread_t waiting;

	assert_int_equal(pthread_create(&waiting, NULL, ask, &asker), 0);
	for (uint32_t n = 0; n < LOOKS_AWAY || !atomic_load(&asker.asks); n++)
		sched_yield();
	sealing_give_scratch(store, *taken);
	pthread_join(waiting, NULL);
	assert_ptr_equal(asker.got, *taken);
}

static void test_threads_leave_memory_for_who_has_the_turn(void **state)
{
	struct device *device = device_new_of(&flash, 8, BLOOM_HOT_ROWS_FINALISE, 31);
	struct muninn_store *store = device_store(device);
	const struct sealing thread = { .running = SEAL_RUNNING }, turn = { .running = SEAL_IDLE };
	struct seal_scratch *taken[SEAL_SCRATCH_MAX], *left;
	uint32_t most = processors() < SEAL_SCRATCH_MAX ? processors() : SEAL_SCRATCH_MAX - 1;

	(void)state;
	for (uint32_t n = 0; n < most; n++)
		taken[n] = sealing_take_scratch(store, &thread);
	assert_non_null(store->free_scratch);
	assert_null(store->free_scratch->next);
	left = sealing_take_scratch(store, &turn);
	for (uint32_t n = 0; n < most; n++)
		assert_ptr_not_equal(left, taken[n]);
	sealing_give_scratch(store, left);
	check_that_it_waits(store, &thread, &taken[0]);
	assert_ptr_equal(store->free_scratch, left);
	for (uint32_t n = 0; n < most; n++)
		sealing_give_scratch(store, taken[n]);
	device_free(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_leave_memory_for_who_has_the_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
