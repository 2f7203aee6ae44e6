/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What every record store must do on a full device, and in merges. */
#include "tests/engine/records/suite.h"

/* ---- room ---- */

static void test_a_full_device_keeps_everything_and_takes_what_has_room_of_its_own(void **state)
{
	struct store_fixture *f = *state;
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
static uint32_t fill(struct store_fixture *f, uint8_t class, uint32_t first, enum record_room room)
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
static void check_refused(struct store_fixture *f, enum record_room room)
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
	struct store_fixture *f = *state;

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
	struct store_fixture *f = *state;
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

static void test_merging_what_was_removed_makes_room_again(void **state)
{
	const struct record_keep present = { 0 };
	struct store_fixture *f = *state;
	uint32_t puts;

	if (!f->operations->merge)
		skip();
	puts = fill(f, RECORD_CLASS_DATA, 0, RECORD_ROOM_WRITE);
	assert_true(f->operations->shortage(f->store, RECORD_ROOM_WRITE) > 0);
	for (uint32_t n = 0; n < puts; n++)
		if (n % 4) {
			begin(f);
			assert_int_equal(
				try_put(f, key(n), 0, RECORD_TOMBSTONE, 0, RECORD_ROOM_FREE), 0);
			commit(f);
			if (n % 8 == 1)
				suite_merge(f, &present);
		}
	assert_true(suite_merge(f, &present) > 0 ||
		    f->operations->shortage(f->store, RECORD_ROOM_WRITE) == 0);
	assert_true(fill(f, RECORD_CLASS_DATA, 1000000, RECORD_ROOM_WRITE) > puts / 4);
	for (uint32_t n = 0; n < puts; n += 4)
		assert_int_equal(get_newest(f, key(n)), n);
}

static void test_merging_keeps_keys_of_every_class_apart(void **state)
{
	const struct record_keep present = { 0 };
	struct record_key at = key(0);
	struct store_fixture *f = *state;

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
	assert_true(suite_merge(f, &present) > 0);
	crash(f);
	for (uint32_t n = 0; n < 40; n++)
		for (at.class = 0; at.class < RECORD_CLASS_HISTORY; at.class ++) {
			uint32_t round = n % RECORD_CLASS_HISTORY == at.class ? 19 : 18;

			at.identifier = key(n).identifier;
			assert_int_equal(get_newest(f, at), round * 1000U + n * 10 + at.class);
		}
}

int main(void)
{
	struct CMUnitTest tests[] = {
		TEST_SMALL(test_a_full_device_keeps_everything_and_takes_what_has_room_of_its_own),
		TEST_SMALL(test_each_room_leaves_some_to_those_behind_it_and_they_leave_it_none),
		TEST_SMALL(test_a_transaction_that_finds_no_room_can_go_on_with_what_it_has),
		TEST_SMALL(test_merging_what_was_removed_makes_room_again),
		TEST(test_merging_keeps_keys_of_every_class_apart),
	};

	return suite_run(tests, sizeof(tests) / sizeof(tests[0]));
}
