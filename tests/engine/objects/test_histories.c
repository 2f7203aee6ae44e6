/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Threads run commands on a few objects of a small device whose sealing and merging threads are
 * always at work. Of each round some order must explain all answers: see histories.h. MUNINN_SEED
 * chooses another run; the seed is printed, though the threads' order is their own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "engine/muninn/merge_run.h"
#include "engine/objects/objects.h"
#include "tests/engine/by_address.h"
#include "tests/engine/objects/histories.h"
#include "tests/engine/small_flash.h"

enum {
	THREADS = HISTORY_VERSIONS,
	CALLS = 6, /* of a thread in a round */
	ROUNDS = 300,
	ROUNDS_PLANTED = 5000, /* at most; the first that is not explained ends it */
	WORDS = 256,           /* of what a WRITE stores */
	PIECE = 16,            /* of what an APPEND stores */
	APPENDED_MAX = 64,
};

static const struct nand_geometry geometry = SMALL_FLASH(800);
static const uint64_t pid = ENGINE_FIRST_ID;

struct scene {
	struct nand *nand;
	struct engine *engine;
	uint64_t moment;       /* atomic: counts calls and returns */
	uint64_t clock_ms;     /* atomic */
	uint32_t last_version; /* atomic: that a SNAPSHOT of this round returned */
	uint32_t values;       /* atomic */
	uint32_t refused;      /* calls, for want of room */
	pthread_barrier_t begin, end;
	bool stop;
	struct history_state state;
};

struct worker {
	struct scene *scene;
	pthread_t thread;
	uint64_t random;
	struct history_call calls[CALLS];
};

static uint32_t below(uint64_t *random, uint32_t limit)
{
	uint64_t mixed = *random += UINT64_C(0x9e3779b97f4a7c15);

	mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((mixed ^ mixed >> 31) % limit);
}

/* Each look is another second, so that neither moments nor rollbacks are too fast. */
static uint64_t clock_ms(void *context)
{
	struct scene *scene = context;

	return __atomic_add_fetch(&scene->clock_ms, 1000, __ATOMIC_RELAXED);
}

/* ---- commands ---- */

static struct engine_address address_of(uint32_t object, uint32_t version)
{
	return (struct engine_address){ .partition = pid,
					.object = ENGINE_FIRST_ID + object,
					.version = version };
}

/* What is there of an object. All words of a WRITE are the same, as are those of an APPEND. */
static int find(struct engine_txn *txn, struct engine_address address, struct history_object *found)
{
	uint32_t words[WORDS + APPENDED_MAX * PIECE];
	uint64_t got;
	int result = engine_read(txn, address, 0, words, sizeof(words), &got);

	*found = (struct history_object){ 0 };
	if (result)
		return result == -ENOENT ? 0 : result;
	if (got < WORDS * 4 || got % 4 || (got / 4 - WORDS) % PIECE)
		return -EBADE;
	found->exists = 1;
	found->value = words[0];
	for (uint64_t n = 0; n < WORDS; n++)
		if (words[n] != words[0])
			return -EBADE;
	for (uint64_t at = WORDS; at < got / 4; at += PIECE) {
		for (uint64_t n = 0; n < PIECE; n++)
			if (words[at + n] != words[at])
				return -EBADE;
		found->appended++;
		found->hash = history_hash(found->hash, words[at]);
	}
	return 0;
}

static int store(struct engine_txn *txn, const struct history_call *call)
{
	struct engine_address address = address_of(call->object, 0);
	uint32_t words[WORDS];
	int result = 0;

	for (uint32_t n = 0; n < WORDS; n++)
		words[n] = call->value;
	if (call->kind == HISTORY_APPEND)
		return engine_append(txn, address, words, PIECE * 4, NULL);
	if (call->kind == HISTORY_CREATE)
		result = engine_create(txn, pid, ENGINE_USER_OBJECT, address.object, 1, NULL);
	if (!result)
		result = engine_write(txn, address, 0, words, sizeof(words));
	return result ? result : engine_truncate(txn, address, sizeof(words));
}

static int do_in(struct engine_txn *txn, struct history_call *call)
{
	int result = 0;

	switch (call->kind) {
	case HISTORY_READ:
		for (uint32_t n = 0; !result && n < HISTORY_OBJECTS; n++)
			result = find(txn, address_of(n, call->version), &call->found.at[n]);
		return result;
	case HISTORY_REMOVE:
		return engine_remove(txn, address_of(call->object, 0));
	case HISTORY_SNAPSHOT:
		return engine_snapshot(txn, pid, NULL, &call->version);
	case HISTORY_ROLLBACK:
		return engine_rollback(txn, pid,
				       (struct engine_moment){ ENGINE_AT_VERSION, call->version });
	default:
		return store(txn, call);
	}
}

static enum engine_mode mode_of(enum history_kind kind)
{
	return kind == HISTORY_READ                                   ? ENGINE_READ
	       : kind == HISTORY_SNAPSHOT || kind == HISTORY_ROLLBACK ? ENGINE_HISTORY
	       : kind == HISTORY_REMOVE                               ? ENGINE_FREE
								      : ENGINE_WRITE;
}

static void execute(struct scene *scene, struct history_call *call)
{
	struct engine_txn *txn;

	call->called = __atomic_add_fetch(&scene->moment, 1, __ATOMIC_SEQ_CST);
	sched_yield();
	if (call->kind == HISTORY_FLUSH) {
		call->result = engine_flush(scene->engine);
	} else {
		call->result = engine_begin(scene->engine, mode_of(call->kind), &txn);
		if (!call->result) {
			sched_yield(); /* so that calls overlap */
			call->result = do_in(txn, call);
			sched_yield();
			if (call->result)
				engine_abort(txn);
			else
				call->result = engine_commit(txn, call->value % 16 == 1);
		}
	}
	call->returned = __atomic_add_fetch(&scene->moment, 1, __ATOMIC_SEQ_CST);
	if (call->kind == HISTORY_SNAPSHOT && !call->result)
		__atomic_store_n(&scene->last_version, call->version, __ATOMIC_SEQ_CST);
}

/* ---- threads ---- */

/* Each thread takes at most one snapshot in a round: HISTORY_VERSIONS are enough for all. */
static enum history_kind choose_kind(struct worker *worker, uint32_t n)
{
	static const enum history_kind kinds[] = {
		HISTORY_READ,   HISTORY_READ,  HISTORY_READ,     HISTORY_CREATE, HISTORY_CREATE,
		HISTORY_WRITE,  HISTORY_WRITE, HISTORY_WRITE,    HISTORY_APPEND, HISTORY_APPEND,
		HISTORY_REMOVE, HISTORY_FLUSH, HISTORY_ROLLBACK,
	};

	if (n == 2 && below(&worker->random, 3) == 0)
		return HISTORY_SNAPSHOT;
	return kinds[below(&worker->random, sizeof(kinds) / sizeof(kinds[0]))];
}

static void run_calls(struct worker *worker)
{
	struct scene *scene = worker->scene;

	for (uint32_t n = 0; n < CALLS; n++) {
		struct history_call *call = &worker->calls[n];

		*call = (struct history_call){ .kind = choose_kind(worker, n) };
		call->object = below(&worker->random, HISTORY_OBJECTS);
		call->value = __atomic_add_fetch(&scene->values, 1, __ATOMIC_RELAXED);
		if (call->kind == HISTORY_ROLLBACK) {
			call->version = __atomic_load_n(&scene->last_version, __ATOMIC_SEQ_CST);
			call->kind = call->version ? HISTORY_ROLLBACK : HISTORY_READ;
		}
		execute(scene, call);
	}
}

static void *work(void *context)
{
	struct worker *worker = context;

	for (;;) {
		pthread_barrier_wait(&worker->scene->begin);
		if (worker->scene->stop)
			return NULL;
		run_calls(worker);
		pthread_barrier_wait(&worker->scene->end);
	}
}

/* ---- rounds ---- */

static void drop(struct scene *scene, uint32_t version)
{
	struct engine_txn *txn;

	assert_int_equal(engine_begin(scene->engine, ENGINE_RESCUE, &txn), 0);
	assert_int_equal(engine_version_drop(txn, pid, version), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

/* The answers of a round, with the state that it left and its versions. */
static uint32_t gather(struct scene *scene, const struct worker *workers,
		       struct history_call *calls)
{
	uint32_t count = 0, all;

	for (uint32_t n = 0; n < THREADS; n++)
		for (uint32_t i = 0; i < CALLS; i++)
			calls[count++] = workers[n].calls[i];
	all = count;
	calls[count] = (struct history_call){ .kind = HISTORY_READ };
	execute(scene, &calls[count++]);
	for (uint32_t n = 0; n < all; n++) {
		if (calls[n].kind != HISTORY_SNAPSHOT || calls[n].result)
			continue;
		calls[count] = (struct history_call){ .version = calls[n].version };
		execute(scene, &calls[count++]);
	}
	return count;
}

/* Whether a call ended with what none of them may end with. */
static bool is_error(const struct history_call *call)
{
	return call->result && call->result != -ENOENT && call->result != -EEXIST &&
	       call->result != -ENOSPC;
}

static bool round_is_explained(struct scene *scene, struct worker *workers)
{
	struct history_call calls[HISTORY_CALLS_MAX];
	uint32_t count;
	bool result = true;

	scene->last_version = 0;
	pthread_barrier_wait(&scene->begin);
	pthread_barrier_wait(&scene->end);
	count = gather(scene, workers, calls);
	for (uint32_t n = 0; n < count; n++) {
		result = result && !is_error(&calls[n]);
		scene->refused += calls[n].result == -ENOSPC;
	}
	result = result && history_is_explained(calls, count, &scene->state);
	if (!result)
		history_print(calls, count);
	for (uint32_t n = 0; result && n < HISTORY_VERSIONS; n++) {
		if (scene->state.versions[n].number)
			drop(scene, scene->state.versions[n].number);
	}
	memset(scene->state.versions, 0, sizeof(scene->state.versions));
	return result;
}

/* Whether all rounds are explained; it ends with the first that is not. */
static bool run_rounds(struct scene *scene, uint64_t seed, uint32_t rounds)
{
	struct worker workers[THREADS];
	bool result = true;

	pthread_barrier_init(&scene->begin, NULL, THREADS + 1);
	pthread_barrier_init(&scene->end, NULL, THREADS + 1);
	for (uint32_t n = 0; n < THREADS; n++) {
		workers[n] = (struct worker){ .scene = scene, .random = seed * THREADS + n };
		assert_int_equal(pthread_create(&workers[n].thread, NULL, work, &workers[n]), 0);
	}
	for (uint32_t round = 0; result && round < rounds; round++)
		result = round_is_explained(scene, workers);
	scene->stop = true;
	pthread_barrier_wait(&scene->begin);
	for (uint32_t n = 0; n < THREADS; n++)
		pthread_join(workers[n].thread, NULL);
	pthread_barrier_destroy(&scene->begin);
	pthread_barrier_destroy(&scene->end);
	return result;
}

/* ---- the device ---- */

static struct scene *make_scene(uint32_t rows)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct engine_options options = {
		.sealing_threads = 2,
		.merging_thread = true,
		.clock_ms = clock_ms,
		.clock_context = scene,
		.muninn = { .rows = rows, .segment_pages = 8, .record_bytes = 256 }
	};
	struct error_text error;
	struct engine_txn *txn;
	uint64_t nvram;

	assert_non_null(scene);
	scene->clock_ms = UINT64_C(1700000000000);
	if (engine_nvram_bytes(&geometry, &options, &nvram, &error) ||
	    nand_open_memory(&geometry, nvram, &scene->nand, &error) ||
	    engine_format(scene->nand, &options, &error) ||
	    engine_open(scene->nand, &options, &scene->engine, &error))
		fail_msg("%s", error.text);
	assert_int_equal(engine_begin(scene->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_partition_create(txn, pid, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	return scene;
}

static void free_scene(struct scene *scene)
{
	assert_int_equal(engine_close(scene->engine), 0);
	assert_int_equal(nand_close(scene->nand), 0);
	free(scene);
}

static uint64_t seed_of_run(void)
{
	const char *text = getenv("MUNINN_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : 1;

	print_message("MUNINN_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

static void go_through(uint32_t rows, bool fetches_all)
{
	struct scene *scene = make_scene(rows);
	struct engine_statistics statistics;
	struct nand_counters counters;

	((struct muninn_store *)(void *)scene->engine->store)->merge_run->fetches_all = fetches_all;
	assert_true(run_rounds(scene, seed_of_run(), ROUNDS));
	engine_read_statistics(scene->engine, &statistics);
	nand_read_counters(scene->nand, &counters);
	print_message("%llu calls, %u refused; %llu pages read to merge, %llu blocks erased\n",
		      (unsigned long long)ROUNDS * THREADS * CALLS, scene->refused,
		      (unsigned long long)counters.by_cause[NAND_CAUSE_MERGE].pages_read,
		      (unsigned long long)counters.by_cause[NAND_CAUSE_USER].blocks_erased);
	/* Writers that come together may use up what merging has just freed of so small a device.
	 */
	assert_true(scene->refused < ROUNDS * THREADS * CALLS / 100);
	assert_true(counters.by_cause[NAND_CAUSE_MERGE].pages_read > 1000);
	assert_true(counters.by_cause[NAND_CAUSE_USER].blocks_erased > 100);
	free_scene(scene);
}

static void test_some_order_explains_what_threads_saw(void **state)
{
	(void)state;
	go_through(4, false);
}

static void test_also_where_one_row_takes_all_and_merging_waits_for_each_page(void **state)
{
	(void)state;
	go_through(1, true);
}

/* ---- what is wrong is found ---- */

static const struct record_store_operations *original;
static struct record_store_operations planted;
static uint32_t reads_planted; /* atomic */

/* Now and then what was committed last is not there yet. */
static void read_old(struct record_store *records, const struct record_key *key, uint32_t count,
		     uint64_t bound, uint8_t *values, uint32_t capacity, struct record_found *found)
{
	uint32_t reads = __atomic_add_fetch(&reads_planted, 1, __ATOMIC_RELAXED);
	struct record_statistics statistics = { 0 };

	records->operations->statistics(records, &statistics);
	if (reads % 50 == 0 && bound == RECORD_NEWEST)
		bound = statistics.committed_sequence - 1;
	original->get_run(records, key, count, bound, values, capacity, found);
}

static void test_a_store_that_answers_old_data_is_found_out(void **state)
{
	struct scene *scene = make_scene(4);

	(void)state;
	original = scene->engine->store->operations;
	planted = *original;
	planted.get_run = read_old;
	scene->engine->store->operations = &planted;
	assert_false(run_rounds(scene, seed_of_run(), ROUNDS_PLANTED));
	free_scene(scene);
}

static struct history_call call_at(enum history_kind kind, uint64_t called, uint64_t returned,
				   uint32_t value)
{
	struct history_call call = {
		.kind = kind, .called = called, .returned = returned, .value = value
	};

	if (kind == HISTORY_READ)
		call.found.at[0] = (struct history_object){ .exists = 1, .value = value };
	return call;
}

static bool explains(uint64_t second_read, uint32_t first, uint32_t second)
{
	struct history_state state = { 0 };
	const struct history_call calls[] = {
		call_at(HISTORY_CREATE, 1, 2, 1),
		call_at(HISTORY_WRITE, 3, 10, 2),
		call_at(HISTORY_READ, 4, 5, first),
		call_at(HISTORY_READ, second_read, 12, second),
	};

	return history_is_explained(calls, 4, &state);
}

static void test_the_checker_knows_what_may_be_seen_beside_a_write(void **state)
{
	(void)state;
	assert_true(explains(6, 1, 1));
	assert_true(explains(6, 1, 2));
	assert_true(explains(6, 2, 2));
	assert_false(explains(6, 2, 1));  /* back */
	assert_false(explains(11, 1, 1)); /* behind the end of the WRITE */
	assert_false(explains(6, 1, 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_checker_knows_what_may_be_seen_beside_a_write),
		cmocka_unit_test(test_some_order_explains_what_threads_saw),
		cmocka_unit_test(test_also_where_one_row_takes_all_and_merging_waits_for_each_page),
		cmocka_unit_test(test_a_store_that_answers_old_data_is_found_out),
	};

	return cmocka_run_group_tests_name("histories", tests, NULL, NULL);
}
