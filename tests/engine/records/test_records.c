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

enum { ROLLBACKS_MAX = 40 };

/* From `at` on a reader sees what one at `to` saw, and what was put since `at`. */
struct rollbacks {
	struct rollback {
		uint64_t at, to;
	} list[ROLLBACKS_MAX];
	uint32_t count;
};

static bool is_hidden(void *context, const struct record_key *at, uint64_t sequence, uint64_t bound)
{
	const struct rollbacks *rollbacks = context;

	if (at->class == RECORD_CLASS_HISTORY)
		return false;
	/* The newest one that the reader stands behind says what is seen; others only before it. */
	for (uint32_t n = rollbacks->count; n-- > 0;) {
		const struct rollback *rollback = &rollbacks->list[n];

		if (rollback->at > bound)
			continue;
		if (sequence >= rollback->at)
			return false;
		if (sequence > rollback->to)
			return true;
		bound = rollback->to;
	}
	return false;
}

/* Goes back to a moment. What is put from now on has higher numbers than the rollback. */
static void roll_back(struct fixture *f, struct rollbacks *rollbacks, uint64_t to)
{
	assert_true(rollbacks->count < ROLLBACKS_MAX);
	begin(f);
	f->operations->abort(f->store);
	rollbacks->list[rollbacks->count++] = (struct rollback){ .at = f->sequence, .to = to };
	/* The number of an aborted transaction may be used again. */
	f->sequence = f->operations->begin(f->store, f->sequence + 1);
	put(f, key(999999), 0);
	commit(f);
}

static void test_what_the_timeline_hides_is_not_found(void **state)
{
	struct rollbacks rollbacks = { .count = 0 };
	const struct record_timeline timeline = { .context = &rollbacks, .is_hidden = is_hidden };
	struct record_key at = key(1), of_history = key(2);
	struct record_info infos[10];
	struct fixture *f = *state;
	uint64_t to, before;

	of_history.class = RECORD_CLASS_HISTORY;
	put_alone(f, at, 1);
	to = f->sequence;
	begin(f);
	put(f, at, 2);
	put(f, of_history, 2);
	commit(f);
	before = f->sequence;
	roll_back(f, &rollbacks, to);
	f->operations->set_timeline(f->store, &timeline);
	assert_int_equal(get_newest(f, at), 1);
	assert_int_equal(get_newest(f, of_history), 2);
	assert_int_equal(get(f, at, before), 2);
	assert_int_equal(
		f->operations->list(f->store, &at, RECORD_NEWEST, RECORD_NEWEST + 1, infos, 10), 1);
	if (f->operations->has_between)
		assert_int_equal(f->operations->has_between(f->store, &at, to, before), 1);
	put_alone(f, at, 3);
	assert_int_equal(get_newest(f, at), 3);
	f->operations->set_timeline(f->store, NULL);
	assert_int_equal(get(f, at, f->sequence - 1), 2);
	assert_int_equal(get_newest(f, at), 3);
}

static void test_after_opening_nothing_is_hidden_until_the_timeline_is_set(void **state)
{
	struct rollbacks rollbacks = { .count = 0 };
	const struct record_timeline timeline = { .context = &rollbacks, .is_hidden = is_hidden };
	struct fixture *f = *state;
	uint64_t to;

	put_alone(f, key(1), 1);
	to = f->sequence;
	put_alone(f, key(1), 2);
	roll_back(f, &rollbacks, to);
	f->operations->set_timeline(f->store, &timeline);
	assert_int_equal(get_newest(f, key(1)), 1);
	crash(f);
	assert_int_equal(get_newest(f, key(1)), 2);
	f->operations->set_timeline(f->store, &timeline);
	assert_int_equal(get_newest(f, key(1)), 1);
}

static void test_a_rollback_brings_back_what_was_removed_and_takes_what_was_new(void **state)
{
	struct rollbacks rollbacks = { .count = 0 };
	const struct record_timeline timeline = { .context = &rollbacks, .is_hidden = is_hidden };
	uint8_t values[4 * STORES_VALUE_BYTES];
	struct record_found found[4];
	struct record_key at = key(1);
	struct fixture *f = *state;
	uint64_t to, before;

	begin(f);
	for (at.piece = 0; at.piece < 2; at.piece++)
		put(f, at, at.piece);
	commit(f);
	to = f->sequence;
	begin(f);
	for (at.piece = 0; at.piece < 4; at.piece++)
		if (at.piece == 0)
			assert_int_equal(try_put(f, at, 0, RECORD_TOMBSTONE, 0, RECORD_ROOM_FREE),
					 0);
		else
			put(f, at, 10 + at.piece);
	commit(f);
	before = f->sequence;
	roll_back(f, &rollbacks, to);
	f->operations->set_timeline(f->store, &timeline);
	at.piece = 0;
	f->operations->get_run(f->store, &at, 4, RECORD_NEWEST, values, STORES_VALUE_BYTES, found);
	for (uint32_t n = 0; n < 4; n++) {
		assert_int_equal(found[n].result, n < 2 ? 0 : -ENOENT);
		if (n < 2)
			assert_int_equal(get_le64(values + (size_t)n * STORES_VALUE_BYTES), n);
	}
	f->operations->get_run(f->store, &at, 4, before, values, STORES_VALUE_BYTES, found);
	assert_int_equal(found[0].info.flags & RECORD_TOMBSTONE, RECORD_TOMBSTONE);
	assert_int_equal(get_le64(values + (size_t)3 * STORES_VALUE_BYTES), 13);
	/* The order of keys leaves out what is hidden, too. */
	at.piece = 2;
	if (f->operations->next) {
		assert_int_equal(f->operations->next(f->store, &at, RECORD_NEWEST), 0);
		assert_true(at.identifier != key(1).identifier);
	}
}

/* One goes back before another one, one to between the moment of one and where that went. */
static void test_rollbacks_of_rollbacks_show_what_was_seen_at_their_moments(void **state)
{
	struct rollbacks rollbacks = { .count = 0 };
	const struct record_timeline timeline = { .context = &rollbacks, .is_hidden = is_hidden };
	struct fixture *f = *state;
	uint64_t moments[5];

	f->operations->set_timeline(f->store, &timeline);
	for (uint32_t n = 0; n < 3; n++) {
		put_alone(f, key(1), n);
		moments[n] = f->sequence;
		for (uint32_t other = 0; other < 100; other++)
			put_alone(f, key(10 + other), n);
	}
	roll_back(f, &rollbacks, moments[0]);
	assert_int_equal(get_newest(f, key(1)), 0);
	put_alone(f, key(1), 3);
	moments[3] = f->sequence;
	/* To what the first one hid. */
	roll_back(f, &rollbacks, moments[1]);
	assert_int_equal(get_newest(f, key(1)), 1);
	/* To behind the first one. */
	roll_back(f, &rollbacks, moments[3]);
	assert_int_equal(get_newest(f, key(1)), 3);
	moments[4] = f->sequence;
	for (uint32_t n = 0; n < 5; n++)
		assert_int_equal(get(f, key(1), moments[n]), n < 4 ? n : 3);
	assert_int_equal(get_newest(f, key(10)), UINT64_MAX);
	assert_int_equal(get(f, key(10), moments[2]), 1);
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

/* Puts ever more keys, each in a transaction, until there is no room. Returns how many. */
static uint32_t fill(struct fixture *f, uint8_t class, uint32_t first, enum record_room room)
{
	for (uint32_t puts = 0;; puts++) {
		struct record_key at = key(first + puts);
		int result;

		at.class = class;
		begin(f);
		result = try_put(f, at, puts, 0, 400, room);
		if (result) {
			assert_int_equal(result, -ENOSPC);
			f->operations->abort(f->store);
			return puts;
		}
		commit(f);
		assert_true(puts < 100000);
	}
}

/* Going back and giving up history put records of history alone. */
static uint8_t class_of_room(enum record_room room)
{
	return room <= RECORD_ROOM_FREE ? RECORD_CLASS_DATA : RECORD_CLASS_HISTORY;
}

/* Wherever a store would put them, puts of a room find none. */
static void check_refused(struct fixture *f, enum record_room room)
{
	for (uint32_t n = 0; n < 50; n++) {
		struct record_key at = key(9000000 + n);

		at.class = class_of_room(room);
		begin(f);
		assert_int_equal(try_put(f, at, n, 0, 40, room), -ENOSPC);
		f->operations->abort(f->store);
	}
}

static void test_each_room_leaves_some_to_those_behind_it_and_they_leave_it_none(void **state)
{
	uint32_t puts[RECORD_ROOM_UPKEEP];
	struct fixture *f = *state;

	for (enum record_room room = RECORD_ROOM_WRITE; room < RECORD_ROOM_UPKEEP; room++) {
		puts[room] = fill(f, class_of_room(room), room * 1000000U, room);
		assert_true(puts[room] > 0);
		/* What was kept for this room is not for those before it, nor after a crash. */
		for (enum record_room before = RECORD_ROOM_WRITE; before < room; before++)
			check_refused(f, before);
		if (room % 2)
			crash(f);
	}
	for (enum record_room room = RECORD_ROOM_WRITE; room < RECORD_ROOM_UPKEEP; room++)
		for (uint32_t n = 0; n < puts[room]; n++) {
			struct record_key at = key(room * 1000000U + n);

			at.class = class_of_room(room);
			assert_int_equal(get_newest(f, at), n);
		}
}

static void test_a_transaction_that_finds_no_room_can_go_on_with_what_it_has(void **state)
{
	struct fixture *f = *state;
	uint32_t puts = 0;

	begin(f);
	while (try_put(f, key(puts), puts, 0, 400, RECORD_ROOM_WRITE) == 0)
		assert_true(++puts < 100000);
	assert_int_equal(try_put(f, key(puts), puts, 0, 40, RECORD_ROOM_FREE), 0);
	commit(f);
	crash(f);
	for (uint32_t n = 0; n <= puts; n++)
		assert_int_equal(get_newest(f, key(n)), n);
}

/* ---- merging ---- */

/* Merges until it is not worth it; what is dropped counts. */
static uint64_t merge(struct fixture *f, const struct record_keep *keep)
{
	struct record_merge merge = { .segments_wanted = 4, .live_permille_max = 900 };
	uint32_t calls = f->operations->merge_calls_max(f->store) + 20;

	for (uint32_t fruitless = 0; calls > 0 && fruitless < 2; calls--) {
		int result = f->operations->merge(f->store, keep, &merge);

		assert_true(result == 0 || result == -EAGAIN);
		fruitless = result ? fruitless + 1 : 0;
	}
	return merge.records_dropped;
}

static void test_merging_what_was_removed_makes_room_again(void **state)
{
	const struct record_keep present = { 0 };
	struct fixture *f = *state;
	uint32_t puts;

	if (!f->operations->merge)
		skip();
	puts = fill(f, RECORD_CLASS_DATA, 0, RECORD_ROOM_WRITE);
	assert_true(f->operations->shortage(f->store, false) > 0);
	for (uint32_t n = 0; n < puts; n++)
		if (n % 4) {
			begin(f);
			assert_int_equal(
				try_put(f, key(n), 0, RECORD_TOMBSTONE, 0, RECORD_ROOM_FREE), 0);
			commit(f);
			if (n % 8 == 1)
				merge(f, &present);
		}
	assert_true(merge(f, &present) > 0 || f->operations->shortage(f->store, false) == 0);
	assert_true(fill(f, RECORD_CLASS_DATA, 1000000, RECORD_ROOM_WRITE) > puts / 4);
	for (uint32_t n = 0; n < puts; n += 4)
		assert_int_equal(get_newest(f, key(n)), n);
}

static void test_merging_keeps_keys_of_every_class_apart(void **state)
{
	const struct record_keep present = { 0 };
	struct record_key at = key(0);
	struct fixture *f = *state;

	if (!f->operations->merge)
		skip();
	for (uint32_t round = 0; round < 20; round++)
		for (uint32_t n = 0; n < 40; n++) {
			begin(f);
			for (at.class = 0; at.class < RECORD_CLASS_HISTORY; at.class ++) {
				at.identifier = key(n).identifier;
				/* The last of each class are of different commands. */
				if (round < 19 || n % RECORD_CLASS_HISTORY == at.class)
					put(f, at, round * 1000U + n * 10 + at.class);
			}
			commit(f);
		}
	assert_true(merge(f, &present) > 0);
	crash(f);
	for (uint32_t n = 0; n < 40; n++)
		for (at.class = 0; at.class < RECORD_CLASS_HISTORY; at.class ++) {
			uint32_t round = n % RECORD_CLASS_HISTORY == at.class ? 19 : 18;

			at.identifier = key(n).identifier;
			assert_int_equal(get_newest(f, at), round * 1000U + n * 10 + at.class);
		}
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

enum { KEYS = 60, MOMENTS = 3000, KEPT_EVERY = 150 };

/* What each key was after each committed transaction, and after each rollback. */
struct model {
	uint64_t numbers[MOMENTS];
	uint64_t values[MOMENTS][KEYS];
	uint32_t moments;
	struct rollbacks rollbacks;
	bool goes_back;
	bool merges; /* only each KEPT_EVERY-th moment is kept */
	uint64_t dropped;
	uint64_t random;
};

static uint32_t below(struct model *model, uint32_t limit)
{
	model->random = model->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(model->random >> 33) % limit;
}

/* Some keys differ by their class alone. */
static struct record_key model_key(uint32_t number)
{
	struct record_key at = key(number / RECORD_CLASS_HISTORY);

	at.class = number % RECORD_CLASS_HISTORY;
	return at;
}

static void check_moment(struct fixture *f, const struct model *model, uint32_t moment)
{
	for (uint32_t n = 0; n < KEYS; n++)
		assert_int_equal(get(f, model_key(n), model->numbers[moment]),
				 model->values[moment][n]);
}

static void check_present(struct fixture *f, const struct model *model)
{
	for (uint32_t n = 0; n < KEYS; n++)
		assert_int_equal(get_newest(f, model_key(n)), model->values[model->moments - 1][n]);
}

/* Some moment that is kept. */
static uint32_t some_moment(struct model *model)
{
	uint32_t moment = below(model, model->moments);

	return model->merges ? moment / KEPT_EVERY * KEPT_EVERY : moment;
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
		assert_int_equal(try_put(f, model_key(number), values[number], 0,
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

static void step_back(struct fixture *f, struct model *model)
{
	uint32_t moment = some_moment(model);

	roll_back(f, &model->rollbacks, model->numbers[moment]);
	model->numbers[model->moments] = f->sequence;
	memcpy(model->values[model->moments++], model->values[moment], sizeof(model->values[0]));
}

static uint32_t kept_moments(void *context, const struct record_key *at,
			     const struct record_info *info, uint64_t *bounds, uint32_t max)
{
	const struct model *model = context;
	uint32_t count = 0;

	(void)at;
	for (uint32_t moment = 0; moment < model->moments; moment += KEPT_EVERY)
		if (model->numbers[moment] >= info->sequence) {
			assert_true(count < max);
			bounds[count++] = model->numbers[moment];
		}
	return count;
}

static void run_model(struct fixture *f, bool goes_back, bool merges)
{
	struct model *model = calloc(1, sizeof(*model));
	struct record_timeline timeline = { .is_hidden = is_hidden };
	const struct record_keep keep = { .context = model, .boundaries = kept_moments };

	assert_non_null(model);
	*model = (struct model){ .random = 7, .goes_back = goes_back, .merges = merges };
	timeline.context = &model->rollbacks;
	f->operations->set_timeline(f->store, &timeline);
	while (model->moments < MOMENTS) {
		if (model->goes_back && model->moments && below(model, 100) == 0 &&
		    model->rollbacks.count < ROLLBACKS_MAX)
			step_back(f, model);
		else
			step(f, model);
		if (below(model, 100) == 0) {
			crash(f);
			f->operations->set_timeline(f->store, &timeline);
			if (model->moments)
				check_present(f, model);
		}
		if (model->merges && below(model, 50) == 0)
			model->dropped += merge(f, &keep);
		if (model->moments && below(model, 20) == 0)
			check_moment(f, model, some_moment(model));
	}
	check_present(f, model);
	for (uint32_t moment = 0; moment < MOMENTS; moment += merges ? KEPT_EVERY : 17)
		check_moment(f, model, moment);
	assert_true(!goes_back || model->rollbacks.count > 10);
	assert_true(!merges || model->dropped > 1000);
	free(model);
}

static void test_random_transactions_aborts_and_crashes_agree_with_a_model(void **state)
{
	run_model(*state, false, false);
}

static void test_random_rollbacks_agree_with_a_model(void **state)
{
	run_model(*state, true, false);
}

static void test_random_merges_agree_with_a_model(void **state)
{
	const struct fixture *f = *state;

	if (!f->operations->merge)
		skip();
	run_model(*state, false, true);
}

static void test_random_merges_of_what_was_rolled_back_agree_with_a_model(void **state)
{
	const struct fixture *f = *state;

	if (!f->operations->merge)
		skip();
	run_model(*state, true, true);
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
		TEST(test_after_opening_nothing_is_hidden_until_the_timeline_is_set),
		TEST(test_a_rollback_brings_back_what_was_removed_and_takes_what_was_new),
		TEST(test_rollbacks_of_rollbacks_show_what_was_seen_at_their_moments),
		TEST_SMALL(test_a_full_device_keeps_everything_and_takes_what_has_room_of_its_own),
		TEST_SMALL(test_each_room_leaves_some_to_those_behind_it_and_they_leave_it_none),
		TEST_SMALL(test_a_transaction_that_finds_no_room_can_go_on_with_what_it_has),
		TEST_SMALL(test_merging_what_was_removed_makes_room_again),
		TEST(test_merging_keeps_keys_of_every_class_apart),
		TEST(test_a_format_leaves_what_it_has_put_or_has_not_been),
		TEST(test_the_memo_outlives_a_crash_and_a_format),
		TEST(test_a_clean_close_keeps_everything),
		TEST(test_random_transactions_aborts_and_crashes_agree_with_a_model),
		TEST(test_random_rollbacks_agree_with_a_model),
		TEST(test_random_merges_agree_with_a_model),
		TEST(test_random_merges_of_what_was_rolled_back_agree_with_a_model),
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
