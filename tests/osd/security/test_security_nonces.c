/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The lists of nonces: none is taken twice, however little they can remember, and nobody fills
 * another's.
 */
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

/* The sender is a capability key of a partition. */
static int take_of(struct osd_nonces *nonces, uint64_t partition, uint32_t sender, uint64_t time_ms,
		   uint32_t random)
{
	uint8_t nonce[OSD_NONCE_BYTES] = { 0 }, key[OSD_KEY_BYTES] = { 0 };
	const struct osd_nonce_owner owner = { .partition = partition, .key = key };

	put_be32(key, sender);
	put_be48(nonce, time_ms);
	put_be32(nonce + 8, random);
	return osd_nonces_take(nonces, &owner, nonce, NOW - 1000, NOW + 1000);
}

static int take(struct osd_nonces *nonces, uint64_t time_ms, uint32_t random)
{
	return take_of(nonces, 1, 1, time_ms, random);
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

/* ---- one sender's requests and another's ---- */

static void test_the_same_nonce_of_two_senders_is_two_requests(void **state)
{
	struct osd_nonces *nonces = open_list(16, 0);

	(void)state;
	assert_int_equal(take_of(nonces, 1, 1, NOW, 1), 0);
	assert_int_equal(take_of(nonces, 1, 2, NOW, 1), 0);
	assert_int_equal(take_of(nonces, 2, 1, NOW, 1), 0);
	assert_int_equal(take_of(nonces, 1, 1, NOW, 1), -EEXIST);
	assert_int_equal(take_of(nonces, 1, 2, NOW, 1), -EEXIST);
	assert_int_equal(take_of(nonces, 2, 1, NOW, 1), -EEXIST);
	osd_nonces_destroy(nonces);
}

/* Dates its requests as far ahead as it may, until all memory is full of them. */
static void flood(struct osd_nonces *nonces, uint64_t partition, uint32_t senders, uint32_t count)
{
	static uint32_t random;

	for (uint32_t i = 0; i < count; i++)
		take_of(nonces, partition, 100 + i % senders, NOW + 900 + i % 100, ++random);
}

static void test_who_dates_requests_ahead_locks_out_nobody_else(void **state)
{
	const uint32_t senders[] = { 1, 10, 30 };

	(void)state;
	for (size_t i = 0; i < sizeof(senders) / sizeof(senders[0]); i++) {
		struct osd_nonces *nonces = open_list(64, 0);

		for (uint32_t round = 0; round < 500; round++) {
			/* In the same partition and in another, with a clock that is slow. */
			flood(nonces, 1, senders[i], 1000);
			assert_int_equal(take_of(nonces, 1, 7, NOW - 1000 + round, round), 0);
			assert_int_equal(take_of(nonces, 2, 7, NOW - 1000 + round, round), 0);
			assert_int_equal(take_of(nonces, 1, 7, NOW - 1000 + round, round), -EEXIST);
			assert_int_equal(take_of(nonces, 2, 7, NOW - 1000 + round, round), -EEXIST);
		}
		osd_nonces_destroy(nonces);
	}
}

/* Whoever has a working key makes as many capabilities as he likes. */
static void test_any_number_of_senders_of_a_partition_locks_out_none_of_another(void **state)
{
	struct osd_nonces *nonces = open_list(64, 0);

	(void)state;
	for (uint32_t round = 0; round < 500; round++) {
		flood(nonces, 1, 1000, 1000);
		for (uint32_t sender = 0; sender < 8; sender++) {
			assert_int_equal(take_of(nonces, 2, sender, NOW - 1000 + round, 0), 0);
			assert_int_equal(take_of(nonces, 2, sender, NOW - 1000 + round, 0),
					 -EEXIST);
		}
	}
	osd_nonces_destroy(nonces);
}

/* Each has what belongs to it, 64 / 2 partitions / 4 senders, whatever the others do. */
static void test_a_sender_keeps_its_share(void **state)
{
	enum { SHARE = 64 / 2 / 4 };
	struct osd_nonces *nonces = open_list(64, 0);

	(void)state;
	flood(nonces, 1, 3, 1000);
	for (uint32_t sender = 1; sender <= 4; sender++)
		for (uint32_t i = 0; i < SHARE; i++)
			assert_int_equal(take_of(nonces, 2, sender, NOW - 500 + i, 0), 0);
	flood(nonces, 1, 1000, 1000);
	flood(nonces, 1, 20, 1000);
	for (uint32_t sender = 1; sender <= 4; sender++)
		for (uint32_t i = 0; i < SHARE; i++)
			assert_int_equal(take_of(nonces, 2, sender, NOW - 500 + i, 0), -EEXIST);
	/* Newer than what is forgotten for it, and not as old. */
	assert_int_equal(take_of(nonces, 2, 1, NOW - 500 + SHARE, 0), 0);
	assert_int_equal(take_of(nonces, 2, 1, NOW - 500, 0), -ERANGE);
	assert_int_equal(take_of(nonces, 2, 1, NOW - 500, 9), -ERANGE);
	assert_int_equal(take_of(nonces, 2, 2, NOW - 500 + SHARE, 0), 0);
	assert_int_equal(take_of(nonces, 2, 3, NOW - 500, 0), -EEXIST);
	osd_nonces_destroy(nonces);
}

static void test_what_a_forgotten_list_had_is_too_old(void **state)
{
	struct osd_nonces *nonces = open_list(8, 0);

	(void)state;
	/* Four lists are all there are. */
	for (uint32_t sender = 1; sender <= 4; sender++)
		assert_int_equal(take_of(nonces, 1, sender, NOW + sender, 0), 0);
	assert_int_equal(take_of(nonces, 1, 1, NOW + 9, 0), 0);
	assert_int_equal(take_of(nonces, 1, 5, NOW + 2, 0), -ERANGE);
	/* Takes the place of sender 2, who has sent nothing newer. */
	assert_int_equal(take_of(nonces, 1, 5, NOW + 5, 0), 0);
	assert_int_equal(take_of(nonces, 1, 2, NOW + 2, 0), -ERANGE);
	assert_int_equal(take_of(nonces, 1, 1, NOW + 1, 0), -EEXIST);
	assert_int_equal(take_of(nonces, 1, 1, NOW + 1, 1), 0);
	osd_nonces_destroy(nonces);
}

/* A list that was given up takes nobody of its next partition into the ring of the first. */
static void test_a_partition_that_gave_a_list_up_forgets_its_own_requests_only(void **state)
{
	struct osd_nonces *nonces = open_list(8, 0);

	(void)state;
	/* All four lists there are, the second of them the oldest. */
	for (uint32_t sender = 1; sender <= 4; sender++)
		assert_int_equal(take_of(nonces, 1, sender, NOW + (sender == 2 ? 0 : sender), 0),
				 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(take_of(nonces, 2, 9, NOW + i, 0), 0);
	/* Both have half of what there is now. */
	for (uint32_t i = 0; i < 20; i++)
		for (uint32_t sender = 1; sender <= 4; sender++)
			if (sender != 2)
				assert_int_equal(take_of(nonces, 1, sender, NOW + 10 + i, 0), 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(take_of(nonces, 2, 9, NOW + i, 0), -EEXIST);
	osd_nonces_destroy(nonces);
}

static void test_what_a_forgotten_partition_had_is_too_old(void **state)
{
	struct osd_nonces *nonces = open_list(2 * OSD_NONCE_PARTITIONS_MAX, 0);

	(void)state;
	for (uint32_t partition = 1; partition <= OSD_NONCE_PARTITIONS_MAX; partition++)
		assert_int_equal(take_of(nonces, partition, 1, NOW - 1000 + partition / 2, 0), 0);
	assert_int_equal(take_of(nonces, 5000, 1, NOW - 1000, 0), -ERANGE);
	assert_int_equal(take_of(nonces, 5000, 1, NOW, 0), 0);
	assert_int_equal(take_of(nonces, 1, 1, NOW - 1000, 0), -ERANGE);
	assert_int_equal(take_of(nonces, 1, 1, NOW, 0), 0);
	for (uint32_t partition = 3; partition <= OSD_NONCE_PARTITIONS_MAX; partition++)
		assert_int_equal(take_of(nonces, partition, 1, NOW - 1000 + partition / 2, 0),
				 -EEXIST);
	osd_nonces_destroy(nonces);
}

/* Four partitions at a time, however many have come and gone. */
static void test_forgotten_partitions_have_no_share(void **state)
{
	enum { PARTITIONS = 20 };
	struct osd_nonces *nonces = open_list(8, 0);

	(void)state;
	for (uint32_t partition = 1; partition <= PARTITIONS; partition++)
		assert_int_equal(take_of(nonces, partition, 1, NOW - 500 + partition, 0), 0);
	/* All there is, and more than one of four may have. */
	for (uint32_t i = 1; i <= 4; i++)
		assert_int_equal(take_of(nonces, PARTITIONS, 1, NOW + i, 0), 0);
	assert_int_equal(take_of(nonces, PARTITIONS - 3, 1, NOW + 10, 0), 0);
	for (uint32_t partition = PARTITIONS - 3; partition < PARTITIONS; partition++)
		assert_int_equal(take_of(nonces, partition, 1, NOW - 500 + partition, 0), -EEXIST);
	assert_int_equal(take_of(nonces, PARTITIONS, 1, NOW - 500 + PARTITIONS, 0), -ERANGE);
	osd_nonces_destroy(nonces);
}

/* Against all that were ever taken, with partitions, senders and times at random. */
static void test_no_request_of_many_senders_is_taken_twice(void **state)
{
	enum { TIMES = 128, SENDERS = 12, PARTITIONS = 5, ROUNDS = 300000 };
	static bool taken[PARTITIONS][SENDERS][TIMES][4];
	const size_t capacities[] = { 2, 3, 4, 9, 40, 200 };
	uint32_t seed = 1, count = 0;

	(void)state;
	for (size_t c = 0; c < sizeof(capacities) / sizeof(capacities[0]); c++) {
		struct osd_nonces *nonces = open_list(capacities[c], 0);

		memset(taken, 0, sizeof(taken));
		for (uint32_t i = 0; i < ROUNDS; i++) {
			uint32_t partition, sender, time, random;
			bool *known;

			seed = seed * 1664525 + 1013904223;
			partition = (seed >> 8) % PARTITIONS;
			sender = (seed >> 12) % (1 + partition * 2);
			random = seed >> 16 & 3;
			time = (uint32_t)((uint64_t)i * (TIMES - 64) / ROUNDS) + (seed >> 20) % 64;
			known = &taken[partition][sender][time][random];
			if (take_of(nonces, partition, sender, NOW + time, random) != 0)
				continue;
			assert_false(*known);
			*known = true;
			count++;
		}
		osd_nonces_destroy(nonces);
	}
	assert_true(count > 1000);
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
		cmocka_unit_test(test_the_same_nonce_of_two_senders_is_two_requests),
		cmocka_unit_test(test_who_dates_requests_ahead_locks_out_nobody_else),
		cmocka_unit_test(
			test_any_number_of_senders_of_a_partition_locks_out_none_of_another),
		cmocka_unit_test(test_a_sender_keeps_its_share),
		cmocka_unit_test(test_what_a_forgotten_list_had_is_too_old),
		cmocka_unit_test(
			test_a_partition_that_gave_a_list_up_forgets_its_own_requests_only),
		cmocka_unit_test(test_what_a_forgotten_partition_had_is_too_old),
		cmocka_unit_test(test_forgotten_partitions_have_no_share),
		cmocka_unit_test(test_no_request_of_many_senders_is_taken_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
