/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * When all slots, and then all sequence numbers, have been used up, writing is refused; reading
 * goes on, and nothing wraps.
 */
#include "engine/history/times.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

/* Device time after which all slots may have been begun. */
#define LIFE_MS (70 * 366 * UINT64_C(86400000))

/* The last slot whose end is not "newest". */
#define LAST_SLOT (slot_begin(RECORD_NEWEST) - RECORD_SLOT)

/* Lets the numbers go on behind this one, as if those before had been used, with a write. */
static void go_on_behind(struct fixture *f, uint64_t sequence, const char *text)
{
	f->engine->committed = sequence;
	f->now += 2000;
	put_text(f, object(OBJECT), text);
	assert_true(f->engine->committed > sequence);
}

static void try_to_write(struct fixture *f, enum engine_mode mode)
{
	struct engine_txn *txn = (struct engine_txn *)f;

	assert_int_equal(engine_begin(f->engine, mode, &txn), -EOVERFLOW);
	assert_null(txn);
}

static void test_slots_are_used_up(void **state)
{
	struct fixture *f = *state;
	uint32_t version, of_device;
	uint64_t chosen;

	f->now += LIFE_MS;
	create(f, PARTITION);
	put_text(f, object(OBJECT), "one");
	go_on_behind(f, LAST_SLOT - 2 * RECORD_SLOT, "two");
	version = take_snapshot(f, PARTITION, NULL);
	put_text(f, object(OBJECT), "three");
	assert_int_equal(slot_begin(f->engine->committed), LAST_SLOT);
	/* What needs a slot of its own has none; what does not goes on. */
	f->now += 2000;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(f->txn, PARTITION, NULL, &of_device), -EOVERFLOW);
	assert_int_equal(engine_snapshot(f->txn, 0, NULL, &of_device), -EOVERFLOW);
	assert_int_equal(engine_rollback(f->txn, PARTITION, at_number(version)), -EOVERFLOW);
	assert_int_equal(engine_clone(f->txn, PARTITION,
				      (struct engine_moment){ .kind = ENGINE_NOW }, 0, true,
				      &chosen),
			 -EOVERFLOW);
	abort_all(f);
	assert_int_equal(engine_reformat(f->engine), -EOVERFLOW);
	for (int n = 0; n < 10; n++) {
		f->now += 2000;
		put_text(f, object(OBJECT), n % 2 ? "odd" : "even");
	}
	crash(f);
	assert_int_equal(slot_begin(f->engine->committed), LAST_SLOT);
	check_text(f, object(OBJECT), "odd");
	check_text(f, at_version(object(OBJECT), version), "two");
	f->now += 2000;
	put_text(f, object(OBJECT), "last");
	check_text(f, object(OBJECT), "last");
}

static void test_numbers_are_used_up(void **state)
{
	struct fixture *f = *state;

	f->now += LIFE_MS;
	create(f, PARTITION);
	go_on_behind(f, LAST_SLOT - 1, "one");
	go_on_behind(f, LAST_SLOT + RECORD_SLOT - 3, "two");
	assert_int_equal(f->engine->committed, LAST_SLOT + RECORD_SLOT - 2);
	put_text(f, object(OBJECT), "three");
	assert_int_equal(f->engine->committed + 1, slot_begin(RECORD_NEWEST));
	for (int round = 0; round < 2; round++) {
		try_to_write(f, ENGINE_WRITE);
		try_to_write(f, ENGINE_FREE);
		check_text(f, object(OBJECT), "three");
		/* Access times stay in memory. */
		begin(f, ENGINE_READ);
		assert_int_equal(engine_accessed(f->txn, object(OBJECT), true, false), 0);
		commit(f);
		assert_int_equal(engine_flush(f->engine), 0);
		assert_int_equal(engine_reformat(f->engine), -EOVERFLOW);
		crash(f);
	}
}

/* Numbers of transactions that are aborted do not lead past the end either. */
static void test_aborted_transactions_do_not_lead_past_the_end(void **state)
{
	struct fixture *f = *state;

	create(f, PARTITION);
	go_on_behind(f, LAST_SLOT + RECORD_SLOT - 6, "one");
	for (int n = 0; n < 10; n++) {
		struct engine_txn *txn;

		if (engine_begin(f->engine, ENGINE_WRITE, &txn) == -EOVERFLOW)
			break;
		assert_true(txn->sequence < slot_begin(RECORD_NEWEST));
		engine_abort(txn);
	}
	check_text(f, object(OBJECT), "one");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_slots_are_used_up),
		TEST(test_numbers_are_used_up),
		TEST(test_aborted_transactions_do_not_lead_past_the_end),
	};

	return cmocka_run_group_tests_name("history_numbers_end", tests, NULL, NULL);
}
