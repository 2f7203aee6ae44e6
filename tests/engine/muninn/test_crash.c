/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * kill -9 at arbitrary instructions: a child process runs transactions on an image file and is
 * killed; the parent opens the image and finds every committed transaction whole and the one in
 * flight whole or absent.
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
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/bytes.h"
#include "engine/muninn/store.h"
#include "engine/open.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/small_flash.h"

enum {
	KEYS = 64,
	PUTS = 6,
	VALUE_BYTES = 200,
	ROUNDS = 20,
	TRANSACTIONS_PER_ROUND_MAX = 400,
	US_TO_LIVE_MAX = 3000, /* some transactions */
	FREE_MIN = 420
};

static const struct nand_geometry geometry = SMALL_FLASH(500);
static struct engine_options options = { .muninn.rows = 2,
					 .muninn.segment_pages = 8,
					 .muninn.record_bytes = 256 };

/* Transaction n puts these keys; all values say n. */
static uint32_t key_number(uint64_t transaction, uint32_t put)
{
	return (uint32_t)(hash_mix(transaction * PUTS + put) % KEYS);
}

/* Of half of the keys. */
static enum record_class class_of_keys = RECORD_CLASS_DATA;

static struct record_key key_of(uint32_t number)
{
	return (struct record_key){ .class = number / 8 % 2 ? class_of_keys : RECORD_CLASS_DATA,
				    .partition = 1,
				    .identifier = 0x10000 + number / 8,
				    .piece = number % 8 };
}

static int run_transaction(struct record_store *store, uint64_t transaction)
{
	uint8_t value[VALUE_BYTES];

	store->operations->begin(store, 0);
	for (uint32_t put = 0; put < PUTS; put++) {
		struct record_key key = key_of(key_number(transaction, put));

		memset(value, (int)(transaction + put), sizeof(value));
		put_le64(value, transaction);
		int result = store->operations->put(store, &key, 1, put % 2 ? RECORD_ABSORB : 0,
						    value, sizeof(value), false);

		if (result)
			return result;
	}
	store->operations->commit(store);
	return 0;
}

/* The device is written many times over: half of the time goes into merging. */
static void merge_when_low(struct record_store *store)
{
	const struct record_keep keep = { 0 }; /* the present is all */
	struct record_merge merge = { .live_permille_max = 1000 };
	struct record_statistics statistics;
	int result = 0;

	store->operations->statistics(store, &statistics);
	for (uint64_t free_segments = statistics.segments_free;
	     result == 0 && free_segments < FREE_MIN; free_segments++)
		result = store->operations->merge(store, &keep, &merge);
}

/* Kills this process in so many microseconds, wherever it is then. */
static void be_killed_in(uint32_t us)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	const struct itimerspec time = { .it_value.tv_nsec = us * 1000L };
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &time, NULL))
		_exit(3);
}

/* Commits until it is killed, a while after transaction `target`. */
static _Noreturn void child(const char *path, uint64_t next, volatile uint64_t *committed,
			    uint64_t target)
{
	struct error_text error;
	struct record_store *store = NULL;
	struct nand *nand = NULL;

	if (nand_open(path, &nand, &error) || engine_open_records(nand, &options, &store, &error))
		_exit(1);
	for (;; next++) {
		if (run_transaction(store, next))
			_exit(2);
		merge_when_low(store);
		__atomic_store_n(committed, next, __ATOMIC_SEQ_CST);
		if (next == target)
			be_killed_in(1 + (uint32_t)(hash_mix(target) % US_TO_LIVE_MAX));
	}
}

/* The transaction that the key was last put by, 0 when it is absent. */
static uint64_t found_transaction(struct record_store *store, uint32_t number)
{
	struct record_key key = key_of(number);
	struct record_info info;
	uint8_t value[VALUE_BYTES];
	int result =
		store->operations->get(store, &key, RECORD_NEWEST, value, sizeof(value), &info);

	if (result == -ENOENT)
		return 0;
	assert_int_equal(result, 0);
	assert_int_equal(info.length, VALUE_BYTES);
	return get_le64(value);
}

static void check_state(struct record_store *store, const uint64_t expected[KEYS])
{
	for (uint32_t number = 0; number < KEYS; number++)
		assert_int_equal(found_transaction(store, number), expected[number]);
}

static void apply(uint64_t expected[KEYS], uint64_t transaction)
{
	for (uint32_t put = 0; put < PUTS; put++)
		expected[key_number(transaction, put)] = transaction;
}

/* Whether the transaction behind the last acknowledged one is there, judged by one key of it. */
static bool is_applied(struct record_store *store, uint64_t transaction)
{
	return found_transaction(store, key_number(transaction, 0)) == transaction;
}

static void run_child(const char *path, uint64_t next, volatile uint64_t *committed,
		      uint64_t target)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		child(path, next, committed, target);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		fail_msg("the child ended by itself: status %d", status);
}

static void kill_and_recover(int rounds)
{
	/* In memory where there is some: a process is killed, not the host. */
	const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	char directory[32], path[64], nvram_path[80];
	struct error_text error = { "" };
	uint64_t expected[KEYS] = { 0 };
	uint64_t nvram_bytes, last = 0, seed = 1, in_flight = 0;
	volatile uint64_t *committed =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct record_statistics statistics = { 0 };
	struct record_store *store = NULL;
	struct nand *nand = NULL;

	assert_ptr_not_equal(committed, MAP_FAILED);
	snprintf(directory, sizeof(directory), "%s/muninn-crash-XXXXXX", parent);
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/image", directory);
	snprintf(nvram_path, sizeof(nvram_path), "%s.nvram", path);
	assert_int_equal(engine_nvram_bytes(&geometry, &options, &nvram_bytes, &error), 0);
	if (nand_create(path, &geometry, nvram_bytes, &error) || nand_open(path, &nand, &error) ||
	    engine_format(nand, &options, &error))
		fail_msg("%s", error.text);
	assert_int_equal(nand_close(nand), 0);

	for (int round = 0; round < rounds; round++) {
		uint64_t target = last + 1 + hash_mix(seed++) % TRANSACTIONS_PER_ROUND_MAX;

		*committed = last;
		run_child(path, last + 1, committed, target);
		for (; last < *committed; last++)
			apply(expected, last + 1);
		if (nand_open(path, &nand, &error) ||
		    engine_open_records(nand, &options, &store, &error))
			fail_msg("round %d: %s", round, error.text);
		if (is_applied(store, last + 1)) {
			apply(expected, ++last);
			in_flight++;
		}
		check_state(store, expected);
		store->operations->statistics(store, &statistics);
		store->operations->close(store, false);
		nand_abandon(nand);
	}
	print_message("%llu transactions, %llu segments sealed, %llu tables; in flight and whole: "
		      "%llu of %d\n",
		      (unsigned long long)last, (unsigned long long)statistics.segments_sealed,
		      (unsigned long long)statistics.tables, (unsigned long long)in_flight, rounds);
	assert_true(last * PUTS * VALUE_BYTES > UINT64_C(1) * geometry.blocks * 8 * 512);
	unlink(path);
	unlink(nvram_path);
	rmdir(directory);
}

static void test_killed_at_any_moment_a_transaction_is_whole_or_absent_and_committed_ones_stay(
	void **state)
{
	(void)state;
	kill_and_recover(ROUNDS);
}

static void test_the_same_holds_of_history_s_row_which_has_two_buffers(void **state)
{
	(void)state;
	class_of_keys = RECORD_CLASS_HISTORY;
	kill_and_recover(ROUNDS / 2);
	class_of_keys = RECORD_CLASS_DATA;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_killed_at_any_moment_a_transaction_is_whole_or_absent_and_committed_ones_stay),
		cmocka_unit_test(test_the_same_holds_of_history_s_row_which_has_two_buffers),
	};

	options.muninn.index = index_under_test();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
