/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* That a lookup notices an engine that lies: one whose answers are spoilt on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "bench/store.h"

static const struct record_store_operations *true_operations;
static struct record_store_operations false_operations;
static uint64_t older_than; /* the engine knows nothing from this sequence number on */
static int flipped_byte;    /* of a value, or -1 */
static bool forgetful, cut_short, undead;

static int spoilt_get(struct record_store *store, const struct record_key *key, uint64_t bound,
		      void *value, uint32_t capacity, struct record_info *info)
{
	int result = true_operations->get(store, key, older_than ? older_than - 1 : bound, value,
					  capacity, info);

	if (result == 0 && flipped_byte >= 0)
		((uint8_t *)value)[flipped_byte] ^= 1;
	if (result == 0 && cut_short)
		info->length--;
	if (result == 0 && undead)
		info->flags = 0;
	return forgetful ? -ENOENT : result;
}

static void behave_well(void)
{
	older_than = 0;
	flipped_byte = -1;
	forgetful = cut_short = undead = false;
}

static struct bench_store *open_store(void)
{
	struct bench_options options = bench_options_default();
	struct bench_store *store;
	struct error_text error;

	options.size = 16 << 20;
	options.rows = 1;
	options.pairs = 10;
	if (bench_store_open(&store, &options, &error))
		fail_msg("%s", error.text);
	true_operations = store->records->operations;
	false_operations = *true_operations;
	false_operations.get = spoilt_get;
	store->records->operations = &false_operations;
	behave_well();
	return store;
}

static void expect_good(struct bench_store *store, uint64_t pair, bool present)
{
	bool found;

	assert_int_equal(bench_store_get(store, pair, &found), 0);
	assert_int_equal(found, present);
}

static void expect_noticed(struct bench_store *store, uint64_t pair)
{
	bool found;

	assert_int_equal(bench_store_get(store, pair, &found), -EILSEQ);
	behave_well();
}

static void test_a_flipped_bit_is_noticed_wherever_it_is(void **state)
{
	struct bench_store *store = open_store();

	(void)state;
	assert_int_equal(bench_store_put(store, 3, false), 0);
	expect_good(store, 3, true);
	for (int byte = 0; byte < 1024 - PAIR_HEADER_BYTES; byte += 83) {
		flipped_byte = byte;
		expect_noticed(store, 3);
	}
	flipped_byte = 1024 - PAIR_HEADER_BYTES - 1;
	expect_noticed(store, 3);
	bench_store_close(store);
}

static void test_an_older_version_is_noticed(void **state)
{
	struct bench_store *store = open_store();

	(void)state;
	assert_int_equal(bench_store_put(store, 3, false), 0);
	assert_int_equal(bench_store_put(store, 3, false), 0);
	expect_good(store, 3, true);
	older_than = store->expected[3];
	expect_noticed(store, 3);
	bench_store_close(store);
}

static void test_a_lost_pair_and_a_short_value_are_noticed(void **state)
{
	struct bench_store *store = open_store();

	(void)state;
	assert_int_equal(bench_store_put(store, 3, false), 0);
	forgetful = true;
	expect_noticed(store, 3);
	cut_short = true;
	expect_noticed(store, 3);
	expect_good(store, 3, true);
	bench_store_close(store);
}

static void test_a_pair_that_should_be_gone_is_noticed(void **state)
{
	struct bench_store *store = open_store();

	(void)state;
	assert_int_equal(bench_store_put(store, 3, false), 0);
	assert_int_equal(bench_store_put(store, 3, true), 0);
	expect_good(store, 3, false);
	older_than = store->expected[3] & SEQUENCE_MAX;
	expect_noticed(store, 3);
	undead = true;
	expect_noticed(store, 3);
	/* A tombstone may not be lost either: what it ended may still be there. */
	forgetful = true;
	expect_noticed(store, 3);
	bench_store_close(store);
}

static void test_a_key_that_was_never_put_is_not_there(void **state)
{
	struct bench_store *store = open_store();

	(void)state;
	assert_int_equal(bench_store_put(store, 0, false), 0);
	expect_good(store, 1, false);
	assert_int_equal(bench_store_get_absent(store, 0), 0);
	/* Behind all pairs is the first absent key: as if it had been put. */
	store->options.pairs = 0;
	assert_int_equal(bench_store_get_absent(store, 0), -EILSEQ);
	bench_store_close(store);
}

static void test_live_pairs_are_counted(void **state)
{
	struct bench_store *store = open_store();

	(void)state;
	for (uint64_t pair = 0; pair < 10; pair++)
		assert_int_equal(bench_store_put(store, pair, false), 0);
	assert_int_equal(bench_store_put(store, 0, false), 0);
	assert_int_equal(bench_store_put(store, 1, true), 0);
	assert_int_equal(bench_store_put(store, 1, true), 0);
	assert_int_equal(store->live, 9);
	bench_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_flipped_bit_is_noticed_wherever_it_is),
		cmocka_unit_test(test_an_older_version_is_noticed),
		cmocka_unit_test(test_a_lost_pair_and_a_short_value_are_noticed),
		cmocka_unit_test(test_a_pair_that_should_be_gone_is_noticed),
		cmocka_unit_test(test_a_key_that_was_never_put_is_not_there),
		cmocka_unit_test(test_live_pairs_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
