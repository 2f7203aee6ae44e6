/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* For how many buffers who may not seal waits before he tries again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "engine/objects/objects.h"
#include "engine/records/waiting.h"

enum {
	FULL = 30,
	LIMIT_SECONDS = 60, /* only a hang gets there */
	WOKEN_FOR_NOTHING = 2
};

/* ---- a store with full buffers, of which one is sealed each time that somebody waits ---- */

static struct engine engine;
static uint32_t sealed, allowed; /* atomic */

static uint32_t load(const uint32_t *from)
{
	return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	if (cond == &engine.sealer.spare)
		__atomic_add_fetch(&allowed, 1, __ATOMIC_RELEASE);
	return __real_pthread_cond_wait(cond, mutex);
}

static int seal_take(struct record_store *store)
{
	(void)store;
	return load(&sealed) < FULL ? 0 : -EAGAIN;
}

static void seal_run(struct record_store *store, int number)
{
	(void)store;
	(void)number;
	while (load(&sealed) >= load(&allowed))
		sched_yield();
}

static int seal_step(struct record_store *store, int number)
{
	(void)store;
	(void)number;
	__atomic_add_fetch(&sealed, 1, __ATOMIC_RELEASE);
	return 0;
}

static void seal_state(struct record_store *store, struct record_sealing *state)
{
	(void)store;
	*state = (struct record_sealing){ .waiting = FULL - load(&sealed) };
}

static const struct record_store_operations operations = {
	.seal_take = seal_take,
	.seal_run = seal_run,
	.seal_step = seal_step,
	.seal_state = seal_state,
};
static struct record_store full_store = { .operations = &operations };

/* How many have been sealed when it goes on. */
static uint32_t await(uint32_t tries)
{
	uint32_t before = load(&sealed);

	assert_true(engine_seals_put_off(&engine));
	assert_int_equal(would_seal(), -EINPROGRESS);
	assert_true(engine_seals_awaited(&engine, tries));
	return load(&sealed) - before;
}

static void test_it_is_one_and_then_twice_as_many_each_time(void **state)
{
	uint32_t n;

	(void)state;
	engine.store = &full_store;
	engine.options.sealing_threads = 1;
	turn_init(&engine.turn);
	alarm(LIMIT_SECONDS);
	assert_int_equal(sealer_start(&engine), 0);
	for (n = 0; n < 4; n++)
		assert_in_range(await(n), 1U << n, (1U << n) + WOKEN_FOR_NOTHING);
	/* There are no more. */
	n = FULL - load(&sealed);
	assert_true(n > 0);
	assert_in_range(await(40), n - WOKEN_FOR_NOTHING, n);
	assert_int_equal(load(&sealed), FULL);
	/* Who missed none does not wait. */
	assert_true(engine_seals_put_off(&engine));
	assert_false(engine_seals_awaited(&engine, 0));
	sealer_stop(&engine);
	alarm(0);
	turn_destroy(&engine.turn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_is_one_and_then_twice_as_many_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
