/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Sealing threads on a host that has failed: writers meet the error, nobody waits for ever, and
 * what can't succeed is not tried again and again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "engine/objects/objects.h"

#define WRITERS       20
#define LIMIT_SECONDS 60 /* only a hang gets there */

/* ---- a store that always has a full buffer, and can't store it ---- */

static struct engine engine;
static uint32_t taken, stepped;

static int seal_take(struct record_store *store)
{
	(void)store;
	return (int)(taken++ % 2);
}

static void seal_run(struct record_store *store, int number)
{
	(void)store;
	(void)number;
}

/* The first stage of each succeeds. */
static int seal_step(struct record_store *store, int number)
{
	static bool begun[2];

	(void)store;
	stepped++;
	begun[number] = !begun[number];
	return begun[number] ? 1 : -EIO;
}

static void seal_state(struct record_store *store, struct record_sealing *state)
{
	(void)store;
	*state = (struct record_sealing){ .waiting = 2, .pressed = true };
}

static const struct record_store_operations operations = {
	.seal_take = seal_take,
	.seal_run = seal_run,
	.seal_step = seal_step,
	.seal_state = seal_state,
};
static struct record_store full_store = { .operations = &operations };

static void test_writers_do_not_wait_for_what_fails_again_and_again(void **state)
{
	uint32_t before;

	(void)state;
	memset(&engine, 0, sizeof(engine));
	engine.store = &full_store;
	engine.options.sealing_threads = 2;
	turn_init(&engine.turn);
	alarm(LIMIT_SECONDS);
	assert_int_equal(sealer_start(&engine), 0);
	for (unsigned n = 0; n < WRITERS; n++) {
		turn_take(&engine.turn);
		sealer_look(&engine);
		turn_give(&engine.turn);
		sealer_wait(&engine);
	}
	alarm(0);
	/* Each writer, and the start, have it tried by one thread or two. */
	sealer_stop(&engine);
	before = taken;
	assert_in_range(before, 1, 2 * (WRITERS + 1));
	assert_true(stepped <= 2 * before);
	turn_destroy(&engine.turn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writers_do_not_wait_for_what_fails_again_and_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
