/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The memory that a store tells of, by what it holds, is what the allocator gave: when it is opened
 * and while it works. Whoever sizes a machine goes by these figures.
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
#include <malloc.h>

#include "common/log.h"
#include "common/mapped_memory.h"
#include "engine/muninn/directory.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/muninn/losses.h"
#include "tests/engine/small_flash.h"

enum { CACHE_BYTES = 65536 };

static const struct nand_geometry nand = SMALL_FLASH_WITH_SPARE(1200, 256);

static const struct engine_options options = {
	.muninn = { .rows = 2, .segment_pages = 16, .record_bytes = 128, .parity = 1 },
};

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* Of its active segments the ribbon index tells what it has touched, which may be less. */
enum { UNTOUCHED_BYTES = 16384 };

/* Sanitizers have allocators of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
#define COUNTS 0
#else
#define COUNTS 1
#endif

/* Bytes that the allocator has given, and not got back. */
static volatile uint64_t allocated;

#if COUNTS
/* glibc's, under the names by which it calls them itself. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

static void *given(void *memory)
{
	allocated = allocated + malloc_usable_size(memory);
	return memory;
}

void *malloc(size_t bytes)
{
	return given(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
	return given(__libc_calloc(count, bytes));
}

void *realloc(void *memory, size_t bytes)
{
	uint64_t before = malloc_usable_size(memory);
	void *again = __libc_realloc(memory, bytes);

	if (again)
		allocated = allocated - before;
	return given(again);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	return given(__libc_memalign(alignment, bytes));
}

void free(void *memory)
{
	allocated = allocated - malloc_usable_size(memory);
	__libc_free(memory);
}
#endif

static uint64_t told(const struct model *model, const char *name)
{
	struct record_statistics statistics = { 0 };
	uint64_t bytes = 0;

	model->store->operations->statistics(model->store, &statistics);
	for (int kind = 0; statistics.memory[kind].name; kind++)
		if (!name || strcmp(statistics.memory[kind].name, name) == 0)
			bytes += statistics.memory[kind].bytes;
	return bytes;
}

/* What the store has is found by closing it, and opening it again. */
static void check(struct model *model)
{
	uint64_t before = allocated + mapped_all(), counted = told(model, NULL), had;
	struct error_text error;

	model->store->operations->close(model->store, true);
	had = before - allocated - mapped_all();
	if (engine_open_records(model->nand, &model->options, &model->store, &error))
		fail_msg("%s", error.text);
	if (COUNTS && index_under_test() == INDEX_RIBBON)
		assert_in_range(had, counted, counted + UNTOUCHED_BYTES);
	else if (COUNTS)
		assert_int_equal(had, counted);
}

static struct model *make(const struct engine_options *own)
{
	struct model *model = calloc(1, sizeof(*model));

	assert_non_null(model);
	log_configure(no_log, LOG_LEVEL_ERROR);
	model->random = 1;
	model_open(model, &nand, own);
	return model;
}

static void end(struct model *model)
{
	model_close(model);
	log_configure(NULL, LOG_LEVEL_INFO);
}

static void merge_once(struct model *model)
{
	const struct record_keep keep = { .bounds = NULL };
	struct record_merge merge = { .segments_wanted = 1, .live_permille_max = 1000 };
	int result = model->store->operations->merge(model->store, &keep, &merge);

	assert_true(result == 0 || result == -EAGAIN);
}

static void test_what_is_told_is_what_was_allocated(void **state)
{
	const char *const kinds[] = { "filters", "rows", "segments", "scratch" };
	struct model *model = make(&options);
	uint64_t before;

	(void)state;
	check(model);
	for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++)
		assert_true(told(model, kinds[n]) > 0);
	assert_int_equal(told(model, "tables"), 0);
	before = told(model, NULL);
	for (uint32_t n = 0; directory_used(inside(model)) < 3; n++)
		assert_true(model_transaction(model, n % 20, n % 300 == 299));
	merge_once(model);
	assert_true(told(model, NULL) > before);
	assert_true(told(model, "tables") > 0);
	check(model);
	assert_true(told(model, "tables") > 0);
	check(model);
	end(model);
}

/* Groups on flash take less of memory, and a cache of their pages what it may. */
static void test_a_cache_of_tables_is_told_apart(void **state)
{
	struct engine_options cached = options;
	struct model *model;

	(void)state;
	if (index_under_test() != INDEX_BLOOM)
		skip();
	cached.muninn.bloom.table_cache_bytes = CACHE_BYTES;
	model = make(&cached);
	for (uint32_t n = 0; directory_used(inside(model)) < 3; n++)
		assert_true(model_transaction(model, n % 20, n % 300 == 299));
	check(model);
	assert_in_range(told(model, "table_cache"), CACHE_BYTES, 2 * CACHE_BYTES);
	assert_true(told(model, "tables") < inside(model)->geometry.image_bytes_max);
	end(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_told_is_what_was_allocated),
		cmocka_unit_test(test_a_cache_of_tables_is_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
