/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What others may put while the thread merges. The thread's pieces are done here, between
 * transactions.
 */
#include "engine/history/merge.h"
#include "engine/history/past.h"
#include "tests/engine/fixture.h"

enum { BLOCKS = 900, OBJECTS = 200, OBJECT_BYTES = 2000, PIECES_SAVED = 4, OWN_BYTES = 1000 };

/* How often each happened. */
static struct {
	uint32_t first, more, most, any;
} seen;

static struct merge_job job; /* of what would be the thread */
static struct history_calls calls;

/* Of the grant before a piece and behind it. */
static void check_grant(const struct merger *merger, int64_t before)
{
	int64_t more = (int64_t)(merger->gain / 100 * merger->share);
	int64_t most = PIECES_SAVED * more;

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

/* The thread gets so far: it takes what is wanted, or does its next piece. */
static void go_on(struct engine *engine)
{
	struct merger *merger = &engine->past->merger;
	int64_t before = merger->grant;

	if (!merger->busy) {
		merger_take_work(merger, &job.stores);
		return;
	}
	if (merger_do_piece(engine, &job) != 0)
		merger_end_work(merger);
	else if (job.under_way)
		engine->store->operations->merge_run(engine->store);
	check_grant(merger, before);
}

/* Whoever finds nothing left of the grant waits for the thread. */
static void await_space(struct engine *engine, enum engine_mode mode)
{
	const struct merger *merger = &engine->past->merger;

	if (mode != ENGINE_WRITE)
		return;
	while (!merger_lets_on(engine) && (merger->wanted || merger->busy))
		go_on(engine);
}

static int setup(void **state)
{
	struct fixture *f = make_merging(BLOCKS);
	struct merger *merger = &f->engine->past->merger;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, OBJECTS, NULL), 0);
	commit(f);
	merger->gain = f->engine->store->limits.segment_bytes / 8;
	merger->is_on = true;
	calls = *f->engine->history;
	calls.await_space = await_space;
	f->engine->history = &calls;
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

static void test_each_piece_lets_others_put_its_part_and_four_of_them_add_up(void **state)
{
	struct fixture *f = *state;
	struct merger *merger = &f->engine->past->merger;

	for (uint32_t n = 0; n < 4000; n++) {
		overwrite(f, n * 7 % OBJECTS);
		for (uint32_t acts = n % 9; acts > 0; acts--)
			go_on(f->engine);
	}
	while (job.under_way)
		go_on(f->engine);
	print_message("%u first pieces, %u more, %u at most, %u as much as others like\n",
		      seen.first, seen.more, seen.most, seen.any);
	assert_true(seen.first > 0 && seen.more > 0 && seen.most > 0 && seen.any > 0);
	/* There is no thread to be waited for. */
	merger->is_on = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_each_piece_lets_others_put_its_part_and_four_of_them_add_up, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
