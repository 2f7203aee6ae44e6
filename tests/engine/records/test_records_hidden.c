/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What every record store must do with what rollbacks hide. */
#include "tests/engine/records/suite.h"

static void test_what_is_hidden_is_not_found(void **state)
{
	struct rollbacks rollbacks = { .count = 0 };
	const struct record_hidden hidden = { .context = &rollbacks, .is_hidden = is_hidden };
	struct record_key at = key(1), of_history = key(2);
	struct record_info infos[10];
	struct store_fixture *f = *state;
	uint64_t to, before;

	of_history.class = RECORD_CLASS_HISTORY;
	put_alone(f, at, 1);
	to = f->sequence;
	begin(f);
	put(f, at, 2);
	put(f, of_history, 2);
	commit(f);
	before = f->sequence;
	go_back(f, &rollbacks, to);
	f->operations->set_hidden(f->store, &hidden);
	assert_int_equal(get_newest(f, at), 1);
	assert_int_equal(get_newest(f, of_history), 2);
	assert_int_equal(get(f, at, before), 2);
	assert_int_equal(
		f->operations->list(f->store, &at, RECORD_NEWEST, RECORD_NEWEST + 1, infos, 10), 1);
	if (f->operations->has_between)
		assert_int_equal(f->operations->has_between(f->store, &at, to, before), 1);
	put_alone(f, at, 3);
	assert_int_equal(get_newest(f, at), 3);
	f->operations->set_hidden(f->store, NULL);
	assert_int_equal(get(f, at, f->sequence - 1), 2);
	assert_int_equal(get_newest(f, at), 3);
}

static void test_after_opening_nothing_is_hidden_until_it_is_set_again(void **state)
{
	struct rollbacks rollbacks = { .count = 0 };
	const struct record_hidden hidden = { .context = &rollbacks, .is_hidden = is_hidden };
	struct store_fixture *f = *state;
	uint64_t to;

	put_alone(f, key(1), 1);
	to = f->sequence;
	put_alone(f, key(1), 2);
	go_back(f, &rollbacks, to);
	f->operations->set_hidden(f->store, &hidden);
	assert_int_equal(get_newest(f, key(1)), 1);
	crash(f);
	assert_int_equal(get_newest(f, key(1)), 2);
	f->operations->set_hidden(f->store, &hidden);
	assert_int_equal(get_newest(f, key(1)), 1);
}

static void test_a_rollback_brings_back_what_was_removed_and_takes_what_was_new(void **state)
{
	struct rollbacks rollbacks = { .count = 0 };
	const struct record_hidden hidden = { .context = &rollbacks, .is_hidden = is_hidden };
	uint8_t values[4 * STORES_VALUE_BYTES];
	struct record_found found[4];
	struct record_key at = key(1);
	struct store_fixture *f = *state;
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
	go_back(f, &rollbacks, to);
	f->operations->set_hidden(f->store, &hidden);
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
	const struct record_hidden hidden = { .context = &rollbacks, .is_hidden = is_hidden };
	struct store_fixture *f = *state;
	uint64_t moments[5];

	f->operations->set_hidden(f->store, &hidden);
	for (uint32_t n = 0; n < 3; n++) {
		put_alone(f, key(1), n);
		moments[n] = f->sequence;
		for (uint32_t other = 0; other < 100; other++)
			put_alone(f, key(10 + other), n);
	}
	go_back(f, &rollbacks, moments[0]);
	assert_int_equal(get_newest(f, key(1)), 0);
	put_alone(f, key(1), 3);
	moments[3] = f->sequence;
	/* To what the first one hid. */
	go_back(f, &rollbacks, moments[1]);
	assert_int_equal(get_newest(f, key(1)), 1);
	/* To behind the first one. */
	go_back(f, &rollbacks, moments[3]);
	assert_int_equal(get_newest(f, key(1)), 3);
	moments[4] = f->sequence;
	for (uint32_t n = 0; n < 5; n++)
		assert_int_equal(get(f, key(1), moments[n]), n < 4 ? n : 3);
	assert_int_equal(get_newest(f, key(10)), UINT64_MAX);
	assert_int_equal(get(f, key(10), moments[2]), 1);
}

int main(void)
{
	struct CMUnitTest tests[] = {
		TEST(test_what_is_hidden_is_not_found),
		TEST(test_after_opening_nothing_is_hidden_until_it_is_set_again),
		TEST(test_a_rollback_brings_back_what_was_removed_and_takes_what_was_new),
		TEST(test_rollbacks_of_rollbacks_show_what_was_seen_at_their_moments),
	};

	return suite_run(tests, sizeof(tests) / sizeof(tests[0]));
}
