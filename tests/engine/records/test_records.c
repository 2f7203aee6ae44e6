/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What every record store must do: transactions, keys, versions, absorption, formats. */
#include "tests/engine/flush_now.h"
#include "tests/engine/records/suite.h"

/* ---- transactions ---- */

static void test_a_transaction_sees_its_own_puts_and_commits_all_of_them(void **state)
{
	struct store_fixture *f = *state;

	begin(f);
	for (uint32_t n = 0; n < 50; n++)
		put(f, key(n), n);
	for (uint32_t n = 0; n < 50; n++)
		assert_int_equal(get_newest(f, key(n)), n);
	commit(f);
	crash(f);
	for (uint32_t n = 0; n < 50; n++)
		assert_int_equal(get_newest(f, key(n)), n);
	assert_int_equal(get_newest(f, key(50)), UINT64_MAX);
}

static void test_an_aborted_transaction_and_one_cut_by_a_crash_leave_nothing(void **state)
{
	struct store_fixture *f = *state;

	put_alone(f, key(1), 10);
	begin(f);
	for (uint32_t n = 0; n < 2000; n++)
		put(f, key(n), 20);
	f->operations->abort(f->store);
	assert_int_equal(get_newest(f, key(1)), 10);
	assert_int_equal(get_newest(f, key(2)), UINT64_MAX);
	begin(f);
	for (uint32_t n = 0; n < 2000; n++)
		put(f, key(n), 30);
	crash(f);
	assert_int_equal(get_newest(f, key(1)), 10);
	assert_int_equal(get_newest(f, key(2)), UINT64_MAX);
	put_alone(f, key(2), 40);
	assert_int_equal(get_newest(f, key(2)), 40);
}

static void test_the_later_of_two_puts_of_a_transaction_counts(void **state)
{
	struct store_fixture *f = *state;
	struct record_key at = key(1);
	struct record_info infos[4];

	begin(f);
	put(f, at, 1);
	put(f, at, 2);
	commit(f);
	assert_int_equal(get_newest(f, at), 2);
	assert_int_equal(
		f->operations->list(f->store, &at, RECORD_NEWEST, RECORD_NEWEST + 1, infos, 4), 1);
}

static void test_numbers_grow_by_what_is_asked_for(void **state)
{
	struct store_fixture *f = *state;
	uint64_t last;

	put_alone(f, key(1), 1);
	last = f->sequence;
	assert_true(last >= 1);
	f->sequence = f->operations->begin(f->store, last + 100000);
	assert_int_equal(f->sequence, last + 100000);
	put(f, key(1), 2);
	commit(f);
	crash(f);
	begin(f);
	assert_true(f->sequence > last + 100000);
	f->operations->abort(f->store);
	assert_int_equal(get(f, key(1), last + 99999), 1);
	assert_int_equal(get(f, key(1), last + 100000), 2);
}

/* ---- keys, values, versions ---- */

static void test_keys_that_differ_in_any_field_are_different(void **state)
{
	struct store_fixture *f = *state;
	struct record_key keys[5];

	for (int n = 0; n < 5; n++)
		keys[n] = key(1);
	keys[1].identifier ^= UINT64_C(1) << 63;
	keys[2].piece = UINT32_MAX;
	keys[3].partition = UINT16_MAX;
	keys[4].class = RECORD_CLASS_METADATA;
	begin(f);
	for (int n = 0; n < 5; n++)
		put(f, keys[n], (uint64_t)n);
	commit(f);
	for (int n = 0; n < 5; n++)
		assert_int_equal(get_newest(f, keys[n]), n);
	keys[4].class = RECORD_CLASS_HISTORY;
	assert_int_equal(get_newest(f, keys[4]), UINT64_MAX);
}

static void test_values_of_all_lengths_come_back(void **state)
{
	struct store_fixture *f = *state;
	uint8_t value[STORES_VALUE_BYTES], found[STORES_VALUE_BYTES];
	struct record_info info;

	assert_true(f->store->limits.value_bytes >= STORES_VALUE_BYTES);
	assert_true(f->store->limits.capacity_bytes >= 100000);
	for (uint32_t n = 0; n < sizeof(value); n++)
		value[n] = (uint8_t)(n * 7 + 1);
	begin(f);
	for (uint32_t length = 0; length <= sizeof(value); length++) {
		struct record_key at = key(length);

		assert_int_equal(f->operations->put(f->store, &at, f->sequence, 0, value, length,
						    RECORD_ROOM_WRITE),
				 0);
	}
	commit(f);
	for (uint32_t length = 0; length <= sizeof(value); length++) {
		struct record_key at = key(length);

		memset(found, 0, sizeof(found));
		assert_int_equal(f->operations->get(f->store, &at, RECORD_NEWEST, found,
						    sizeof(found), &info),
				 0);
		assert_int_equal(info.length, length);
		assert_memory_equal(found, value, length);
		assert_int_equal(f->operations->get(f->store, &at, RECORD_NEWEST, NULL, 0, &info),
				 0);
	}
}

static void test_every_version_is_found_at_its_bound_and_listed(void **state)
{
	struct store_fixture *f = *state;
	struct record_info infos[100];
	struct record_key at = key(7);
	uint64_t numbers[60];

	for (uint32_t n = 0; n < 60; n++) {
		put_alone(f, at, n);
		numbers[n] = f->sequence;
		for (uint32_t other = 100; other < 140; other++)
			put_alone(f, key(other), n);
	}
	for (int round = 0; round < 2; round++, crash(f)) {
		assert_int_equal(get(f, at, numbers[0] - 1), UINT64_MAX);
		for (uint32_t n = 0; n < 60; n++)
			assert_int_equal(get(f, at, numbers[n] + 1), n);
		assert_int_equal(f->operations->list(f->store, &at, RECORD_NEWEST,
						     RECORD_NEWEST + 1, infos, 100),
				 60);
		for (uint32_t n = 0; n < 60; n++)
			assert_int_equal(infos[n].sequence, numbers[59 - n]);
		assert_int_equal(
			f->operations->list(f->store, &at, numbers[40], numbers[30], infos, 10),
			10);
		assert_int_equal(infos[0].sequence, numbers[29]);
	}
}

static void test_a_tombstone_is_found_like_a_record(void **state)
{
	struct record_key at = key(3);
	struct store_fixture *f = *state;
	struct record_info info;

	put_alone(f, at, 5);
	begin(f);
	assert_int_equal(try_put(f, at, 0, RECORD_TOMBSTONE, 0, RECORD_ROOM_FREE), 0);
	commit(f);
	assert_int_equal(f->operations->get(f->store, &at, RECORD_NEWEST, NULL, 0, &info), 0);
	assert_int_equal(info.flags & RECORD_TOMBSTONE, RECORD_TOMBSTONE);
	assert_int_equal(info.length, 0);
	assert_int_equal(get(f, at, f->sequence - 1), 5);
}

static void test_a_run_is_what_its_keys_are(void **state)
{
	struct store_fixture *f = *state;
	uint8_t values[RECORD_RUN_MAX * STORES_VALUE_BYTES];
	struct record_found found[RECORD_RUN_MAX];
	struct record_key at = key(1);
	uint64_t bound;

	begin(f);
	for (at.piece = 0; at.piece < 20 + RECORD_RUN_MAX; at.piece++)
		if (at.piece % 5)
			put(f, at, at.piece);
	commit(f);
	bound = f->sequence;
	begin(f);
	for (at.piece = 0; at.piece < 20 + RECORD_RUN_MAX; at.piece += 2)
		put(f, at, 1000);
	commit(f);
	at.piece = 20;
	f->operations->get_run(f->store, &at, RECORD_RUN_MAX, bound, values, STORES_VALUE_BYTES,
			       found);
	for (uint32_t n = 0; n < RECORD_RUN_MAX; n++) {
		assert_int_equal(found[n].result, (20 + n) % 5 ? 0 : -ENOENT);
		if (found[n].result)
			continue;
		assert_int_equal(found[n].info.sequence, bound);
		assert_int_equal(get_le64(values + (size_t)n * STORES_VALUE_BYTES), 20 + n);
	}
}

static void test_next_goes_through_the_keys_in_order(void **state)
{
	struct record_key at = { 0 }, before;
	struct store_fixture *f = *state;
	uint64_t bound;
	uint32_t seen = 0;

	if (!f->operations->next)
		skip();
	begin(f);
	for (uint32_t n = 0; n < 50; n++)
		put(f, key(n * 37 % 50), n);
	commit(f);
	bound = f->sequence;
	put_alone(f, key(1000), 1);
	while (f->operations->next(f->store, &at, bound) == 0) {
		assert_true(seen == 0 || at.identifier > before.identifier);
		before = at;
		at.piece++;
		seen++;
	}
	assert_int_equal(seen, 50);
}

static void assert_key(const struct record_key *found, const struct record_key *wanted)
{
	assert_int_equal(found->partition, wanted->partition);
	assert_int_equal(found->identifier, wanted->identifier);
	assert_int_equal(found->piece, wanted->piece);
	assert_int_equal(found->class, wanted->class);
}

static void test_next_orders_keys_by_all_their_fields(void **state)
{
	/* In order; piece and class count behind the identifier, and partition before it. */
	const struct record_key keys[] = {
		{ .partition = 1, .identifier = 0x10000, .piece = 0, .class = RECORD_CLASS_DATA },
		{ .partition = 1,
		  .identifier = 0x10000,
		  .piece = 0,
		  .class = RECORD_CLASS_METADATA },
		{ .partition = 1, .identifier = 0x10000, .piece = 7, .class = RECORD_CLASS_DATA },
		{ .partition = 1, .identifier = UINT64_MAX, .class = RECORD_CLASS_NODE },
		{ .partition = 2, .identifier = 0, .piece = 9, .class = RECORD_CLASS_HISTORY },
		{ .partition = 2, .identifier = 0x10000, .piece = UINT32_MAX },
	};
	enum { KEYS = sizeof(keys) / sizeof(keys[0]) };
	const struct record_key none = { .partition = 3 };
	struct store_fixture *f = *state;
	struct record_key at = { 0 };
	uint64_t before;

	if (!f->operations->next)
		skip();
	for (uint32_t n = 0; n < KEYS; n++)
		put_alone(f, keys[n * 5 % KEYS], n);
	before = f->sequence;
	/* A tombstone is found like any record; what is put later, only at later bounds. */
	begin(f);
	assert_int_equal(try_put(f, keys[3], 0, RECORD_TOMBSTONE, 0, RECORD_ROOM_FREE), 0);
	put(f, none, 0);
	commit(f);
	for (uint32_t n = 0; n < KEYS; n++) {
		assert_int_equal(f->operations->next(f->store, &at, before), 0);
		assert_key(&at, &keys[n]);
		at.class ++;
	}
	assert_int_equal(f->operations->next(f->store, &at, before), -ENOENT);
	at = keys[3];
	assert_int_equal(f->operations->next(f->store, &at, RECORD_NEWEST), 0);
	assert_key(&at, &keys[3]);
	at = keys[KEYS - 1];
	at.class ++;
	assert_int_equal(f->operations->next(f->store, &at, RECORD_NEWEST), 0);
	assert_key(&at, &none);
}

static void test_has_between_tells_what_was_put_hidden_or_not(void **state)
{
	struct record_key at = key(1);
	struct store_fixture *f = *state;
	uint64_t first;

	if (!f->operations->has_between)
		skip();
	put_alone(f, at, 1);
	first = f->sequence;
	for (uint32_t n = 0; n < 300; n++)
		put_alone(f, key(100 + n), n);
	put_alone(f, at, 2);
	assert_int_equal(f->operations->has_between(f->store, &at, first, f->sequence), 1);
	assert_int_equal(f->operations->has_between(f->store, &at, first - 1, first), 1);
	assert_int_equal(f->operations->has_between(f->store, &at, first, f->sequence - 1), 0);
}

/* ---- absorption ---- */

/*
 * Puts one key again and again, in epochs of lengths that are no round numbers. What was there at
 * the end of each epoch is found for ever; all of what may not be absorbed is found at any bound.
 */
static void test_only_an_epoch_absorbs(void **state)
{
	struct store_fixture *f = *state;
	uint64_t ends[60], last[60], numbers[60][30];
	uint32_t count = 0;

	for (uint32_t epoch = 0; epoch < 60; epoch++) {
		begin(f);
		f->epoch = f->sequence;
		for (uint32_t n = 0; n < 7 + epoch % 13; n++, count++) {
			if (n)
				begin(f);
			assert_int_equal(
				try_put(f, key(1), count, RECORD_ABSORB, 100, RECORD_ROOM_WRITE),
				0);
			put(f, key(2), count);
			commit(f);
			numbers[epoch][n] = f->sequence;
			last[epoch] = count;
			ends[epoch] = f->sequence;
		}
	}
	for (int round = 0; round < 2; round++, crash(f)) {
		uint32_t value = 0;

		for (uint32_t epoch = 0; epoch < 60; epoch++) {
			assert_int_equal(get(f, key(1), ends[epoch]), last[epoch]);
			for (uint32_t n = 0; n < 7 + epoch % 13; n++, value++)
				assert_int_equal(get(f, key(2), numbers[epoch][n]), value);
		}
	}
}

static void test_what_is_of_now_alone_is_absorbed_for_ever(void **state)
{
	struct store_fixture *f = *state;
	struct record_key at = key(1);

	at.class = RECORD_CLASS_HISTORY;
	for (uint32_t n = 0; n < 500; n++) {
		uint8_t value[100] = { 0 };

		put_le64(value, n);
		f->sequence = f->operations->begin(f->store, f->sequence + 3 * RECORD_SLOT);
		assert_int_equal(f->operations->put(f->store, &at, RECORD_EPOCH_ENDLESS,
						    RECORD_ABSORB, value, sizeof(value),
						    RECORD_ROOM_WRITE),
				 0);
		commit(f);
		assert_int_equal(get_newest(f, at), n);
	}
	crash(f);
	assert_int_equal(get_newest(f, at), 499);
}

/* ---- formats, memo, closing ---- */

static void test_a_format_leaves_what_it_has_put_or_has_not_been(void **state)
{
	struct store_fixture *f = *state;
	uint64_t before;

	for (uint32_t n = 0; n < 500; n++)
		put_alone(f, key(n), n);
	before = f->sequence;
	for (int aborted = 1; aborted >= 0; aborted--) {
		assert_int_equal(f->operations->begin_format(f->store, 0, &f->sequence), 0);
		assert_true(f->sequence > before);
		assert_int_equal(get_newest(f, key(1)), UINT64_MAX);
		put(f, key(1), 9);
		assert_int_equal(get_newest(f, key(1)), 9);
		if (aborted)
			f->operations->abort(f->store);
		else
			commit(f);
		crash(f);
		for (uint32_t n = 0; aborted && n < 500; n++)
			assert_int_equal(get_newest(f, key(n)), n);
	}
	assert_int_equal(get_newest(f, key(1)), 9);
	assert_int_equal(get_newest(f, key(2)), UINT64_MAX);
	put_alone(f, key(2), 3);
	assert_int_equal(get_newest(f, key(2)), 3);
}

static void test_the_memo_outlives_a_crash_and_a_format(void **state)
{
	struct store_fixture *f = *state;

	assert_int_equal(f->operations->memo(f->store), 0);
	f->operations->set_memo(f->store, UINT64_C(0x123456789abcdef0));
	assert_int_equal(f->operations->sync_memo(f->store), 0);
	crash(f);
	assert_int_equal(f->operations->begin_format(f->store, 0, &f->sequence), 0);
	put(f, key(1), 1);
	commit(f);
	assert_int_equal(f->operations->memo(f->store), UINT64_C(0x123456789abcdef0));
}

static void test_a_clean_close_keeps_everything(void **state)
{
	struct record_statistics statistics = { 0 };
	struct store_fixture *f = *state;

	for (uint32_t n = 0; n < 100; n++)
		put_alone(f, key(n), n);
	assert_int_equal(flush_now(f->store), 0);
	f->operations->statistics(f->store, &statistics);
	assert_true(statistics.records_put >= 100);
	assert_int_equal(statistics.committed_sequence, f->sequence);
	assert_int_equal(f->operations->close(f->store, true), 0);
	suite_open(f);
	for (uint32_t n = 0; n < 100; n++)
		assert_int_equal(get_newest(f, key(n)), n);
}

int main(void)
{
	struct CMUnitTest tests[] = {
		TEST(test_a_transaction_sees_its_own_puts_and_commits_all_of_them),
		TEST(test_an_aborted_transaction_and_one_cut_by_a_crash_leave_nothing),
		TEST(test_the_later_of_two_puts_of_a_transaction_counts),
		TEST(test_numbers_grow_by_what_is_asked_for),
		TEST(test_keys_that_differ_in_any_field_are_different),
		TEST(test_values_of_all_lengths_come_back),
		TEST(test_every_version_is_found_at_its_bound_and_listed),
		TEST(test_a_tombstone_is_found_like_a_record),
		TEST(test_a_run_is_what_its_keys_are),
		TEST(test_next_goes_through_the_keys_in_order),
		TEST(test_next_orders_keys_by_all_their_fields),
		TEST(test_has_between_tells_what_was_put_hidden_or_not),
		TEST(test_only_an_epoch_absorbs),
		TEST(test_what_is_of_now_alone_is_absorbed_for_ever),
		TEST(test_a_format_leaves_what_it_has_put_or_has_not_been),
		TEST(test_the_memo_outlives_a_crash_and_a_format),
		TEST(test_a_clean_close_keeps_everything),
	};

	return suite_run(tests, sizeof(tests) / sizeof(tests[0]));
}
