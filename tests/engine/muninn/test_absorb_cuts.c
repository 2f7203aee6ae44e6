/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The process ends before each single store to NVRAM, while pages that are overwritten absorb one
 * another: opening finds every committed page, and nothing else.
 *
 * The NVRAM is made read-only. A store faults; the handler copies the NVRAM as it is, lets the one
 * instruction run with the processor's trap flag set, and makes it read-only again.
 *
 * Runs for each index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "common/bytes.h"
#include "engine/muninn/format.h"
#include "engine/open.h"
#include "engine/options.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/small_flash.h"

#if defined(__x86_64__)

#define TRAP_FLAG 0x100

enum { PAGE = 512, KEYS = 8, PUTS = 80, CUTS_MAX = 20000 };

/* What is put: a page of its own, or less. */
static uint32_t value_bytes;

static const struct nand_geometry geometry = SMALL_FLASH(200);
static struct engine_options options = {
	.muninn = { .rows = 1, .segment_pages = 16, .record_bytes = 256 }
};

/* A moment at which the process may end. */
struct cut {
	uint8_t *nvram;     /* as it was then */
	uint64_t committed; /* puts that were */
};

static struct {
	uint8_t *nvram;
	uint64_t bytes;
	uint64_t committed;
	struct cut cuts[CUTS_MAX];
	uint32_t count;
} seen;

/* ---- watching stores ---- */

static void protect(int protection)
{
	if (mprotect(seen.nvram, seen.bytes, protection))
		abort();
}

static void note_cut(void)
{
	const struct cut *last = seen.count ? &seen.cuts[seen.count - 1] : NULL;

	if (seen.count == CUTS_MAX)
		abort();
	if (!last || last->committed != seen.committed ||
	    memcmp(last->nvram, seen.nvram, seen.bytes) != 0) {
		struct cut *cut = &seen.cuts[seen.count++];

		/* Not malloc: the store may be within one. */
		cut->nvram = mmap(NULL, seen.bytes, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (cut->nvram == MAP_FAILED)
			abort();
		memcpy(cut->nvram, seen.nvram, seen.bytes);
		cut->committed = seen.committed;
	}
}

static void before_store(int signal, siginfo_t *info, void *context)
{
	const uint8_t *at = info->si_addr;
	ucontext_t *interrupted = context;

	(void)signal;
	if (at < seen.nvram || at >= seen.nvram + seen.bytes)
		abort();
	note_cut();
	protect(PROT_READ | PROT_WRITE);
	interrupted->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void behind_store(int signal, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;

	(void)signal;
	(void)info;
	interrupted->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	protect(PROT_READ);
}

static struct sigaction watch(struct sigaction *trap_before)
{
	const struct sigaction store = { .sa_sigaction = before_store, .sa_flags = SA_SIGINFO };
	const struct sigaction trap = { .sa_sigaction = behind_store, .sa_flags = SA_SIGINFO };
	struct sigaction before;

	assert_int_equal(sigaction(SIGSEGV, &store, &before), 0);
	assert_int_equal(sigaction(SIGTRAP, &trap, trap_before), 0);
	protect(PROT_READ);
	return before;
}

static void end_watch(const struct sigaction *store, const struct sigaction *trap)
{
	protect(PROT_READ | PROT_WRITE);
	assert_int_equal(sigaction(SIGSEGV, store, NULL), 0);
	assert_int_equal(sigaction(SIGTRAP, trap, NULL), 0);
}

/* ---- puts ---- */

/* Which page the n-th put is of: the first one more often than all others. */
static uint32_t number_of(uint64_t n)
{
	return n % 2 ? 0 : (uint32_t)(n / 2 % KEYS);
}

static struct record_key key_of(uint32_t number)
{
	return (struct record_key){ .partition = 1, .identifier = 0x10000 + number };
}

static void fill(uint8_t page[PAGE], uint64_t n)
{
	memset(page, (int)(n * 37), PAGE);
	put_le64(page, n);
}

static void put(struct record_store *store, uint64_t n)
{
	struct record_key key = key_of(number_of(n));
	uint8_t page[PAGE];

	fill(page, n);
	store->operations->begin(store, 0);
	assert_int_equal(store->operations->put(store, &key, 1, RECORD_ABSORB, page, value_bytes,
						RECORD_ROOM_WRITE),
			 0);
	store->operations->commit(store);
	__atomic_store_n(&seen.committed, n, __ATOMIC_SEQ_CST);
}

/* The last put of a page among the first `count`; 0: there is none. */
static uint64_t last_put(uint32_t number, uint64_t count)
{
	while (count && number_of(count) != number)
		count--;
	return count;
}

static void expect_no_finding(void *context, const struct finding *finding)
{
	(void)context;
	fail_msg("%s", finding->text);
}

/* All that is stored is where the index and the buffers say, and nothing else is stored. */
static void expect_sound(struct record_store *store)
{
	struct findings findings = { .take = expect_no_finding };
	struct record_check check = { .findings = &findings };

	assert_int_equal(store->operations->check(store, &check), 0);
	assert_true(check.records > 0 || !seen.committed);
}

/* Whether the store has exactly the first `count` puts. */
static bool has(struct record_store *store, uint64_t count)
{
	for (uint32_t number = 0; number < KEYS; number++) {
		uint64_t n = last_put(number, count);
		struct record_key key = key_of(number);
		uint8_t page[PAGE], wanted[PAGE];
		struct record_info info;
		int result = store->operations->get(store, &key, RECORD_NEWEST, page, PAGE, &info);

		fill(wanted, n);
		if (result != (n ? 0 : -ENOENT) ||
		    (n && (info.length != value_bytes || memcmp(page, wanted, value_bytes) != 0)))
			return false;
	}
	return true;
}

/* ---- the test ---- */

static struct record_store *open_store(struct nand *nand)
{
	struct record_store *store;
	struct error_text error = { "" };

	if (engine_open_records(nand, &options, &store, &error))
		fail_msg("%s", error.text);
	return store;
}

static uint64_t programs(struct nand *nand)
{
	struct nand_counters counters;

	nand_read_counters(nand, &counters);
	return counters.by_cause[NAND_CAUSE_USER].pages_programmed;
}

/* The one that the cut interrupted may be there, or not. Writing goes on from there. */
static void check_cut(struct nand *nand, const struct cut *cut)
{
	struct record_store *store;

	memcpy(seen.nvram, cut->nvram, seen.bytes);
	store = open_store(nand);
	if (!has(store, cut->committed)) {
		assert_true(has(store, cut->committed + 1));
		put(store, cut->committed + 2);
		assert_true(has(store, cut->committed + 2));
	} else {
		put(store, cut->committed + 1);
		assert_true(has(store, cut->committed + 1));
	}
	expect_sound(store);
	store->operations->close(store, false);
	munmap(cut->nvram, seen.bytes);
}

static void cut_before_any_store(uint32_t bytes)
{
	struct sigaction segv, trap;
	struct error_text error;
	struct record_store *store;
	struct nand *nand;
	uint64_t nvram_bytes;

	value_bytes = bytes;
	seen.count = 0;
	seen.committed = 0;
	assert_int_equal(engine_nvram_bytes(&geometry, &options, &nvram_bytes, &error), 0);
	assert_int_equal(nand_open_memory(&geometry, nvram_bytes, &nand, &error), 0);
	assert_int_equal(engine_format(nand, &options, &error), 0);
	seen.nvram = nand_nvram(nand, &seen.bytes);
	store = open_store(nand);
	segv = watch(&trap);
	for (uint64_t n = 1; n <= PUTS; n++)
		put(store, n);
	end_watch(&segv, &trap);
	/* The last moment is behind all stores. */
	note_cut();
	assert_int_equal(programs(nand), 0);
	assert_true(has(store, PUTS));
	store->operations->close(store, false);
	print_message("%u cuts in %d puts\n", seen.count, PUTS);
	assert_true(seen.count > PUTS * 5);
	for (uint32_t at = 0; at < seen.count; at++)
		check_cut(nand, &seen.cuts[at]);
	assert_int_equal(nand_close(nand), 0);
}

static void test_a_cut_before_any_store_finds_what_was_committed(void **state)
{
	(void)state;
	cut_before_any_store(PAGE);
}

/* Two a page, in a buffer that more than twice as many are put to as it takes. */
static void test_a_cut_finds_records_that_share_pages(void **state)
{
	(void)state;
	cut_before_any_store(PAGE / 2 - RECORD_HEADER_BYTES);
}

#else

static void test_a_cut_before_any_store_finds_what_was_committed(void **state)
{
	(void)state;
	skip(); /* it knows the trap flag of one processor */
}

static void test_a_cut_finds_records_that_share_pages(void **state)
{
	(void)state;
	skip();
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_cut_before_any_store_finds_what_was_committed),
		cmocka_unit_test(test_a_cut_finds_records_that_share_pages),
	};

	options.muninn.index = index_under_test();
	return cmocka_run_group_tests_name("cuts while pages absorb", tests, NULL, NULL);
}
