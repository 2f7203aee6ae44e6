/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What others may put while the thread merges, and whom it sees that may not wait. The thread's
 * pieces are done here, between transactions.
 */
#include "engine/history/past.h"
#include "tests/engine/fixture.h"
#include "tests/engine/merging.h"

enum { BLOCKS = 900, OBJECTS = 200, OBJECT_BYTES = 1500, RECORDS_SAVED = 256, OWN_BYTES = 1000 };

/* How often each happened. */
static struct {
	uint32_t first, more, most, any;
} seen;

static struct merging merging;

/* A piece has been done. */
static void check_grant(const struct merger *merger, int64_t before)
{
	int64_t of_100 = (int64_t)(merger->gained * merger->share / merger->looked_at);
	int64_t more = of_100 * (int64_t)merging.job.looked_at / 100;
	int64_t most = of_100 * RECORDS_SAVED / 100;

	if (merger->share == MERGER_ANY) {
		assert_int_equal(merger->grant, 0);
		seen.any++;
		return;
	}
	if (before + more < most)
		most = before + more;
	/* The piece itself may have put a little. */
	assert_true(merger->grant <= most && merger->grant >= most - OWN_BYTES);
	seen.first += more > 0 && before <= 0;
	seen.more += more > 0 && before > 0 && most == before + more;
	seen.most += more > 0 && most < before + more;
}

static int setup(void **state)
{
	struct fixture *f = make_merging(BLOCKS);

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, OBJECTS, NULL), 0);
	commit(f);
	merging.looks = check_grant;
	merging_begin(&merging, f->engine);
	*state = f;
	return 0;
}

static void overwrite(struct fixture *f, uint32_t object)
{
	static const uint8_t bytes[OBJECT_BYTES];
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT + object };

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, address, 0, bytes, OBJECT_BYTES), 0);
	commit(f);
}

static void test_each_piece_lets_others_put_its_part_and_some_add_up(void **state)
{
	struct fixture *f = *state;

	for (uint32_t n = 0; n < 10000; n++) {
		overwrite(f, n * 7 % OBJECTS);
		/* For a while it does not keep up, and then it does. */
		for (uint32_t acts = n % 512 < 384 ? n % 2 : n % 9; acts > 0; acts--)
			merging_go_on(&merging);
	}
	merging_end_step(&merging);
	print_message("%u first pieces, %u more, %u at most, %u as much as others like\n",
		      seen.first, seen.more, seen.most, seen.any);
	assert_true(seen.first > 0 && seen.more > 0 && seen.most > 0 && seen.any > 0);
	merging_end(&merging);
}

/* From the command on that leaves too little room they wait, though no piece has been done yet. */
static void test_others_are_held_as_soon_as_merging_is_wanted(void **state)
{
	struct fixture *f = *state;
	struct merger *merger = &f->engine->past->merger;
	uint64_t merged = merging.merged;
	uint32_t n = 0;

	for (; !merge_is_wanted(f->engine); n++) {
		assert_int_equal(merger->share, MERGER_ANY);
		assert_true(merger_lets_on(f->engine));
		overwrite(f, n * 7 % OBJECTS);
		merger_look(f->engine, true);
		assert_true(n < 100000);
	}
	while (merger->share == MERGER_ANY) {
		overwrite(f, n++ * 7 % OBJECTS);
		merger_look(f->engine, true);
		assert_true(n < 100000);
	}
	assert_true(merger->wanted);
	assert_false(merger_lets_on(f->engine));
	assert_int_equal(merging.merged, merged);
	merging_end(&merging);
}

/* The thread was woken for somebody who may not give up history, and is busy when another comes. */
static void test_history_goes_for_who_stores_while_the_thread_is_busy(void **state)
{
	struct fixture *f = *state;
	struct merger *merger = &f->engine->past->merger;
	const struct record_merge *merge = &merging.job.merge;
	uint32_t most, n = 0;

	for (; !merge_is_wanted(f->engine); n++) {
		overwrite(f, n * 7 % OBJECTS);
		assert_true(n < 100000);
	}
	merger_look(f->engine, false);
	merging_go_on(&merging);
	assert_true(merger->busy && !merging.job.stores);
	most = merge->live_permille_max;
	merger_look(f->engine, true);
	while (merging.job.under_way)
		merging_go_on(&merging);
	assert_true(merger->busy);
	assert_int_equal(merge->live_permille_max, most);
	overwrite(f, n * 7 % OBJECTS);
	merging_go_on(&merging);
	assert_true(merge->live_permille_max < most);
	merging_end_step(&merging);
	merging_end(&merging);
}

/* ---- those who may not wait ---- */

/* While room is short an attempt leaves the turn to those who make some. */
static void test_an_attempt_does_not_take_the_turn_for_want_of_room(void **state)
{
	struct fixture *f = *state;
	struct turn *turn = &f->engine->turn;
	struct engine_txn *txn;
	uint64_t taken;

	for (uint32_t n = 0; merger_lets_on(f->engine); n++) {
		overwrite(f, n * 7 % OBJECTS);
		merger_look(f->engine, true);
		assert_true(n < 100000);
	}
	taken = turn->times.taken;
	engine_attempt_begin(NULL);
	assert_int_equal(engine_begin(f->engine, ENGINE_WRITE, &txn), -EINPROGRESS);
	engine_attempt_end();
	assert_int_equal(turn->times.taken, taken);
	merging_end(&merging);
}

static const struct record_store_operations *original;
static const uint32_t *seen_by_piece; /* what the last piece looks at */

static int look_at_piece(struct record_store *store, const struct record_keep *keep,
			 struct record_merge *merge)
{
	seen_by_piece = merge->awaited;
	return original->merge_step(store, keep, merge);
}

static void test_each_piece_sees_who_wants_the_turn(void **state)
{
	struct fixture *f = *state;
	static struct record_store_operations operations;
	struct merge_job mending = { .under_way = false };

	original = f->engine->store->operations;
	operations = *original;
	operations.merge_step = look_at_piece;
	f->engine->store->operations = &operations;
	for (uint32_t n = 0; !seen_by_piece && n < 100000; n++) {
		overwrite(f, n * 7 % OBJECTS);
		merging_go_on(&merging);
	}
	assert_ptr_equal(seen_by_piece, &f->engine->turn.wanted);
	merging_end_step(&merging);
	seen_by_piece = NULL;
	/* Nothing is damaged. */
	assert_int_equal(merge_mend_piece(f->engine, &mending), -EAGAIN);
	assert_ptr_equal(seen_by_piece, &f->engine->turn.wanted);
	f->engine->store->operations = original;
	merging_end(&merging);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_each_piece_lets_others_put_its_part_and_some_add_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others_are_held_as_soon_as_merging_is_wanted,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_history_goes_for_who_stores_while_the_thread_is_busy, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_an_attempt_does_not_take_the_turn_for_want_of_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_each_piece_sees_who_wants_the_turn, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
