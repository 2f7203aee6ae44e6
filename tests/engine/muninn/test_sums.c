/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The sums of an NVRAM at work are those of docs/format.md, computed here by its words alone: a
 * program that counts them otherwise would refuse the devices of this one.
 *
 * Runs for each index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/muninn/format.h"
#include "tests/engine/muninn/losses.h"

/* What a word adds at a place: the finaliser of splitmix64. */
static uint64_t adds(uint64_t place, uint64_t value)
{
	uint64_t x = value + (place + 1) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Pairs of the state words, the memo, the aborted numbers and the directory. */
enum { PAIRS_AT = 64, PAIR_BYTES = 16, MEMO = 1, ABORTED = 2 };

enum { RANGES = 5, PUTS = 300 };

static void expect_sum(const struct model *model, uint32_t pair, uint64_t sum)
{
	const struct muninn_store *store = inside(model);
	const uint8_t *at = store->nvram + store->geometry.sums_at + PAIRS_AT + pair * PAIR_BYTES;

	assert_true(get_le64(at) == sum);
	assert_true(get_le64(at + 8) == sum);
}

static uint64_t word_at(const struct model *model, uint32_t at)
{
	return get_le64(inside(model)->nvram + at);
}

static void check(const struct model *model)
{
	uint64_t ranges = word_at(model, STATE_ABORTED_COUNT_AT), sum = 0;

	for (uint64_t n = 0; n < 2 * ranges; n++)
		sum ^= adds(n, word_at(model, (uint32_t)(NVRAM_ABORTED_AT + 8 * n)));
	expect_sum(model, ABORTED, sum);
	expect_sum(model, MEMO, adds(0, word_at(model, NVRAM_MEMO_AT)));
}

/* So that segments are sealed in the middle, and the number is noted. */
static void put_much(struct model *model, bool commit)
{
	const struct record_store_operations *operations = model->store->operations;
	uint8_t value[100] = { 0 };

	operations->begin(model->store, 0);
	for (uint32_t n = 0; n < PUTS; n++) {
		struct record_key key = { .partition = 1, .identifier = 0x20000 + n };

		assert_int_equal(
			operations->put(model->store, &key, 1, 0, value, sizeof(value), false), 0);
	}
	if (commit)
		operations->commit(model->store);
	else
		operations->abort(model->store);
}

static void test_sums_of_aborted_numbers_and_of_the_memo_are_as_documented(void **state)
{
	struct model *model = calloc(1, sizeof(*model));
	(void)state;
	assert_non_null(model);
	model->random = 1;
	model_open(model, &model_nand, &model_options);
	for (uint32_t n = 1; n <= RANGES; n++) {
		put_much(model, true);
		check(model);
		put_much(model, false);
		model->store->operations->set_memo(model->store, n * 77);
		check(model);
		assert_int_equal(word_at(model, STATE_ABORTED_COUNT_AT), n);
		assert_int_equal(word_at(model, NVRAM_MEMO_AT), n * 77);
	}
	model_crash(model);
	check(model);
	model_close(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums_of_aborted_numbers_and_of_the_memo_are_as_documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
