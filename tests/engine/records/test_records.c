/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What every record store must do (engine/records/records.h), for each one of stores.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "tests/engine/records/stores.h"

struct fixture {
	const struct tested_store *tested;
	void *device;
	struct record_store *store;
	const struct record_store_operations *operations;
	uint64_t sequence; /* of the running transaction, or the last one */
	uint64_t epoch;    /* of puts; 0: each transaction begins one */
};

static void open_store(struct fixture *f)
{
	f->store = f->tested->open(f->device);
	f->operations = f->store->operations;
}

static int setup_with(void **state, bool small)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->tested = *state;
	f->device = f->tested->create(small);
	open_store(f);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, false);
}

static int setup_small(void **state)
{
	return setup_with(state, true);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int result = f->operations->close(f->store, false);

	f->tested->destroy(f->device);
	free(f);
	return result;
}

static void crash(struct fixture *f)
{
	f->operations->close(f->store, false);
	open_store(f);
}

/* ---- short forms ---- */

static struct record_key key(uint32_t number)
{
	return (struct record_key){ .partition = 1, .identifier = 0x10000 + number };
}

static void begin(struct fixture *f)
{
	f->sequence = f->operations->begin(f->store, 0);
}

static void commit(struct fixture *f)
{
	f->operations->commit(f->store);
}

static int try_put(struct fixture *f, struct record_key at, uint64_t value, unsigned flags,
		   uint32_t length, enum record_room room)
{
	uint8_t bytes[STORES_VALUE_BYTES] = { 0 };

	put_le64(bytes, value);
	return f->operations->put(f->store, &at, f->epoch ? f->epoch : f->sequence, flags, bytes,
				  length, room);
}

static void put(struct fixture *f, struct record_key at, uint64_t value)
{
	assert_int_equal(try_put(f, at, value, 0, 40, RECORD_ROOM_WRITE), 0);
}

static void put_alone(struct fixture *f, struct record_key at, uint64_t value)
{
	begin(f);
	put(f, at, value);
	commit(f);
}

/* The value at a bound; UINT64_MAX: there is none. */
static uint64_t get(struct fixture *f, struct record_key at, uint64_t bound)
{
	uint8_t bytes[STORES_VALUE_BYTES] = { 0 };
	struct record_info info;
	int result = f->operations->get(f->store, &at, bound, bytes, sizeof(bytes), &info);

	if (result == -ENOENT)
		return UINT64_MAX;
	assert_int_equal(result, 0);
	assert_true(info.sequence <= bound);
	return get_le64(bytes);
}

static uint64_t get_newest(struct fixture *f, struct record_key at)
{
	return get(f, at, RECORD_NEWEST);
}

/* ---- transactions ---- */

static void test_a_transaction_sees_its_own_puts_and_commits_all_of_them(void **state)
{
	struct fixture *f = *state;

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
	struct fixture *f = *state;

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
	struct fixture *f = *state;
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
	struct fixture *f = *state;
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
	struct fixture *f = *state;
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
	struct fixture *f = *state;
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
	struct fixture *f = *state;
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
	struct fixture *f = *state;
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
	struct fixture *f = *state;
	uint8_t values[RECORD_RUN_MAX * STORES_VALUE_BYTES];
	struct record_found found[RECORD_RUN_MAX];
	struct record_key at = key(1);
	uint64_t bound;

	begin(f);
	for (at.piece = 0; at.piece < 100; at.piece++)
		if (at.piece % 5)
			put(f, at, at.piece);
	commit(f);
	bound = f->sequence;
	begin(f);
	for (at.piece = 0; at.piece < 100; at.piece += 2)
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
	struct fixture *f = *state;
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

static void test_has_between_tells_what_was_put_hidden_or_not(void **state)
{
	struct record_key at = key(1);
	struct fixture *f = *state;
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
	struct fixture *f = *state;
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
	struct fixture *f = *state;
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

/* ---- rollbacks ---- */

struct rollback {
	uint64_t at, to; /* from `at` on, what is of (to, at) is hidden, but for history */
};

static bool is_hidden(void *context, const struct record_key *at, uint64_t sequence, uint64_t bound)
{
	const struct rollback *rollback = context;

	return at->class != RECORD_CLASS_HISTORY && bound >= rollback->at &&
	       sequence > rollback->to && sequence < rollback->at;
}

static void test_what_the_timeline_hides_is_not_found(void **state)
{
	struct fixture *f = *state;
	struct rollback rollback;
	const struct record_timeline timeline = { .context = &rollback, .is_hidden = is_hidden };
	struct record_key at = key(1), of_history = key(2);
	struct record_info infos[10];

	of_history.class = RECORD_CLASS_HISTORY;
	put_alone(f, at, 1);
	rollback.to = f->sequence;
	begin(f);
	put(f, at, 2);
	put(f, of_history, 2);
	commit(f);
	rollback.at = f->sequence + 1;
	f->operations->set_timeline(f->store, &timeline);
	assert_int_equal(get_newest(f, at), 1);
	assert_int_equal(get_newest(f, of_history), 2);
	assert_int_equal(get(f, at, rollback.at - 1), 2);
	assert_int_equal(
		f->operations->list(f->store, &at, RECORD_NEWEST, RECORD_NEWEST + 1, infos, 10), 1);
	if (f->operations->has_between)
		assert_int_equal(
			f->operations->has_between(f->store, &at, rollback.to, rollback.at - 1), 1);
	put_alone(f, at, 3);
	assert_int_equal(get_newest(f, at), 3);
	f->operations->set_timeline(f->store, NULL);
	assert_int_equal(get(f, at, rollback.at), 3);
	assert_int_equal(get(f, at, rollback.at - 1), 2);
}

/* ---- room ---- */

static void test_a_full_device_keeps_everything_and_takes_what_has_room_of_its_own(void **state)
{
	struct fixture *f = *state;
	uint32_t puts = 0;
	int result = 0;

	while (!result) {
		begin(f);
		result = try_put(f, key(puts), puts, 0, 400, RECORD_ROOM_WRITE);
		if (result)
			f->operations->abort(f->store);
		else
			commit(f);
		puts += !result;
		assert_true(puts < 100000);
	}
	assert_int_equal(result, -ENOSPC);
	begin(f);
	assert_int_equal(try_put(f, key(0), 0, RECORD_TOMBSTONE, 0, RECORD_ROOM_FREE), 0);
	assert_int_equal(try_put(f, key(1), 1, 0, 400, RECORD_ROOM_UPKEEP), 0);
	commit(f);
	crash(f);
	for (uint32_t n = 1; n < puts; n++)
		assert_int_equal(get_newest(f, key(n)), n);
}

/* ---- formats, memo, closing ---- */

static void test_a_format_leaves_what_it_has_put_or_has_not_been(void **state)
{
	struct fixture *f = *state;
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
	struct fixture *f = *state;

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
	struct fixture *f = *state;

	for (uint32_t n = 0; n < 100; n++)
		put_alone(f, key(n), n);
	assert_int_equal(f->operations->flush(f->store), 0);
	f->operations->statistics(f->store, &statistics);
	assert_true(statistics.records_put >= 100);
	assert_int_equal(statistics.committed_sequence, f->sequence);
	assert_int_equal(f->operations->close(f->store, true), 0);
	open_store(f);
	for (uint32_t n = 0; n < 100; n++)
		assert_int_equal(get_newest(f, key(n)), n);
}

/* ---- random ---- */

enum { KEYS = 60, MOMENTS = 3000 };

/* What each key was after each committed transaction. */
struct model {
	uint64_t numbers[MOMENTS];
	uint64_t values[MOMENTS][KEYS];
	uint32_t moments;
	uint64_t random;
};

static uint32_t below(struct model *model, uint32_t limit)
{
	model->random = model->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(model->random >> 33) % limit;
}

static void check_moment(struct fixture *f, const struct model *model, uint32_t moment)
{
	for (uint32_t n = 0; n < KEYS; n++)
		assert_int_equal(get(f, key(n), model->numbers[moment]), model->values[moment][n]);
}

static void step(struct fixture *f, struct model *model)
{
	uint64_t values[KEYS];
	uint32_t puts = 1 + below(model, 8);

	if (model->moments)
		memcpy(values, model->values[model->moments - 1], sizeof(values));
	else
		memset(values, 0xff, sizeof(values));
	f->sequence = f->operations->begin(f->store, f->sequence + 1 + below(model, 50));
	for (uint32_t n = 0; n < puts; n++) {
		uint32_t number = below(model, KEYS);

		values[number] = model->random;
		assert_int_equal(try_put(f, key(number), values[number], 0,
					 8 + below(model, below(model, 4) ? 60 : 500),
					 RECORD_ROOM_WRITE),
				 0);
	}
	if (below(model, 10) == 0) {
		f->operations->abort(f->store);
		return;
	}
	commit(f);
	model->numbers[model->moments] = f->sequence;
	memcpy(model->values[model->moments++], values, sizeof(values));
}

static void test_random_transactions_aborts_and_crashes_agree_with_a_model(void **state)
{
	struct model *model = calloc(1, sizeof(*model));
	struct fixture *f = *state;

	assert_non_null(model);
	model->random = 7;
	while (model->moments < MOMENTS) {
		step(f, model);
		if (below(model, 100) == 0) {
			crash(f);
			check_moment(f, model, model->moments - 1);
		}
		if (model->moments && below(model, 20) == 0)
			check_moment(f, model, below(model, model->moments));
	}
	for (uint32_t moment = 0; moment < MOMENTS; moment += 17)
		check_moment(f, model, moment);
	free(model);
}

#define TEST(name)       cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_SMALL(name) cmocka_unit_test_setup_teardown(name, setup_small, teardown)

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
		TEST(test_has_between_tells_what_was_put_hidden_or_not),
		TEST(test_only_an_epoch_absorbs),
		TEST(test_what_is_of_now_alone_is_absorbed_for_ever),
		TEST(test_what_the_timeline_hides_is_not_found),
		TEST_SMALL(test_a_full_device_keeps_everything_and_takes_what_has_room_of_its_own),
		TEST(test_a_format_leaves_what_it_has_put_or_has_not_been),
		TEST(test_the_memo_outlives_a_crash_and_a_format),
		TEST(test_a_clean_close_keeps_everything),
		TEST(test_random_transactions_aborts_and_crashes_agree_with_a_model),
	};
	int failed = 0;

	for (int n = 0; n < tested_store_count; n++) {
		for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
			tests[i].initial_state = (void *)(uintptr_t)&tested_stores[n];
		print_message("-- %s\n", tested_stores[n].name);
		failed += cmocka_run_group_tests_name(tested_stores[n].name, tests, NULL, NULL);
	}
	return failed;
}
