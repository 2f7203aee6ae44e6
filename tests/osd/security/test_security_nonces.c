/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The list of nonces: none is taken twice, however little it can remember. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/security_nonces.h"

#define NOW UINT64_C(1700000000000)

static int take(struct osd_nonces *nonces, uint64_t time_ms, uint32_t random)
{
	uint8_t nonce[OSD_NONCE_BYTES] = { 0 };

	put_be48(nonce, time_ms);
	put_be32(nonce + 8, random);
	return osd_nonces_take(nonces, nonce, NOW - 1000, NOW + 1000);
}

static struct osd_nonces *open_list(size_t capacity, uint64_t floor_ms)
{
	struct osd_nonces *nonces;

	assert_int_equal(osd_nonces_create(capacity, floor_ms, UINT64_MAX, &nonces), 0);
	return nonces;
}

static void test_a_nonce_is_taken_once(void **state)
{
	struct osd_nonces *nonces = open_list(16, 0);

	(void)state;
	assert_int_equal(take(nonces, NOW, 1), 0);
	assert_int_equal(take(nonces, NOW, 1), -EEXIST);
	assert_int_equal(take(nonces, NOW, 2), 0);
	assert_int_equal(take(nonces, NOW + 1, 1), 0);
	assert_int_equal(take(nonces, NOW, 2), -EEXIST);
	osd_nonces_destroy(nonces);
}

static void test_timestamps_have_to_be_in_the_window(void **state)
{
	struct osd_nonces *nonces = open_list(16, 0);

	(void)state;
	assert_int_equal(take(nonces, NOW - 1001, 1), -ERANGE);
	assert_int_equal(take(nonces, NOW - 1000, 1), 0);
	assert_int_equal(take(nonces, NOW + 1000, 1), 0);
	assert_int_equal(take(nonces, NOW + 1001, 1), -ERANGE);
	osd_nonces_destroy(nonces);
}

static void test_nothing_from_before_the_start_is_taken(void **state)
{
	struct osd_nonces *nonces = open_list(16, NOW);

	(void)state;
	assert_int_equal(take(nonces, NOW - 1, 1), -ERANGE);
	assert_int_equal(take(nonces, NOW, 1), 0);
	osd_nonces_destroy(nonces);
}

static void test_a_forgotten_nonce_is_too_old(void **state)
{
	struct osd_nonces *nonces = open_list(4, 0);

	(void)state;
	/* Out of order, so that the oldest is not the first. */
	assert_int_equal(take(nonces, NOW + 2, 0), 0);
	assert_int_equal(take(nonces, NOW, 0), 0);
	assert_int_equal(take(nonces, NOW + 3, 0), 0);
	assert_int_equal(take(nonces, NOW + 1, 0), 0);
	/* Full: what is not newer than the oldest would have to be forgotten at once. */
	assert_int_equal(take(nonces, NOW - 1, 0), -ERANGE);
	assert_int_equal(take(nonces, NOW, 9), -ERANGE);
	assert_int_equal(take(nonces, NOW + 4, 0), 0);
	assert_int_equal(take(nonces, NOW, 0), -ERANGE);
	for (uint64_t i = 1; i <= 4; i++)
		assert_int_equal(take(nonces, NOW + i, 0), -EEXIST);
	osd_nonces_destroy(nonces);
}

static void test_newer_nonces_than_the_bound_are_taken_when_that_is_noted(void **state)
{
	struct osd_nonces *nonces;

	(void)state;
	assert_int_equal(osd_nonces_create(16, 0, NOW, &nonces), 0);
	assert_int_equal(osd_nonces_newest(nonces), 0);
	assert_int_equal(take(nonces, NOW + 1, 1), -EAGAIN);
	assert_int_equal(take(nonces, NOW, 1), 0);
	osd_nonces_noted(nonces, NOW + 1);
	osd_nonces_noted(nonces, NOW); /* late */
	assert_int_equal(take(nonces, NOW + 1, 1), 0);
	assert_int_equal(take(nonces, NOW + 1, 1), -EEXIST);
	assert_int_equal(take(nonces, NOW + 2, 1), -EAGAIN);
	assert_int_equal(osd_nonces_newest(nonces), NOW + 1);
	osd_nonces_destroy(nonces);
}

static void test_no_nonce_of_many_is_taken_twice(void **state)
{
	enum { CAPACITY = 100, ROUNDS = 20000 };
	struct osd_nonces *nonces = open_list(CAPACITY, 0);
	uint32_t seed = 1, taken = 0;

	(void)state;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint64_t time_ms;

		seed = seed * 1664525 + 1013904223;
		/* Slowly moving on, with a jitter. */
		time_ms = NOW - 1000 + i / 20 + (seed >> 24) % 32;
		if (take(nonces, time_ms, i) != 0)
			continue;
		taken++;
		assert_int_not_equal(take(nonces, time_ms, i), 0);
		if (i > 500)
			assert_int_not_equal(take(nonces, NOW - 1000 + (i - 500) / 20, i - 500), 0);
	}
	/* The jitter is less than what the list remembers: some are too old, not most. */
	assert_true(taken > ROUNDS / 10);
	osd_nonces_destroy(nonces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_nonce_is_taken_once),
		cmocka_unit_test(test_timestamps_have_to_be_in_the_window),
		cmocka_unit_test(test_nothing_from_before_the_start_is_taken),
		cmocka_unit_test(test_a_forgotten_nonce_is_too_old),
		cmocka_unit_test(test_newer_nonces_than_the_bound_are_taken_when_that_is_noted),
		cmocka_unit_test(test_no_nonce_of_many_is_taken_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
