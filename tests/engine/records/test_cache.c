/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What is kept in memory: the cache of decoded records and the table of access times. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "engine/objects/access_times.h"
#include "engine/records/cache.h"

static int destroyed;

static void destroy(struct cache_entry *entry)
{
	destroyed++;
	free(entry);
}

/* An entry number `n` of 10 bytes, added and given back. */
static void add(struct cache *cache, uint32_t n)
{
	struct cache_entry *entry = calloc(1, sizeof(*entry));

	entry->key = (struct cache_key){ .identifier = n, .partition = (uint16_t)(n % 2) };
	cache_unpin(cache, cache_add(cache, entry, 10));
}

static struct cache_entry *get(struct cache *cache, uint32_t n)
{
	return cache_get(cache,
			 (struct cache_key){ .identifier = n, .partition = (uint16_t)(n % 2) });
}

static bool has(struct cache *cache, uint32_t n)
{
	struct cache_entry *entry = get(cache, n);

	if (entry)
		cache_unpin(cache, entry);
	return entry;
}

static void make_dirty(struct cache *cache, uint32_t n)
{
	struct cache_entry *entry = get(cache, n);

	cache_mark_dirty(cache, entry);
	cache_unpin(cache, entry);
}

static void test_the_entry_used_longest_ago_goes_first(void **state)
{
	struct cache cache;

	(void)state;
	cache_init(&cache, 3, 1000, destroy);
	for (uint32_t n = 0; n < 3; n++)
		add(&cache, n);
	assert_true(has(&cache, 0));
	add(&cache, 3);
	assert_true(has(&cache, 0));
	assert_false(has(&cache, 1));
	assert_true(has(&cache, 2));
	cache_destroy(&cache);
}

static bool is_even(void *context, const struct cache_entry *entry)
{
	++*(uint32_t *)context;
	return entry->key.identifier % 2 == 0;
}

static void test_asking_about_an_entry_is_no_use_of_it(void **state)
{
	struct cache cache;
	uint32_t asked = 0;

	(void)state;
	cache_init(&cache, 3, 1000, destroy);
	for (uint32_t n = 0; n < 3; n++)
		add(&cache, n);
	assert_true(cache_ask(&cache, (struct cache_key){ .identifier = 0 }, is_even, &asked));
	assert_false(cache_ask(&cache, (struct cache_key){ .identifier = 1, .partition = 1 },
			       is_even, &asked));
	assert_false(cache_ask(&cache, (struct cache_key){ .identifier = 4 }, is_even, &asked));
	assert_int_equal(asked, 2);
	add(&cache, 3);
	assert_false(has(&cache, 0));
	assert_true(has(&cache, 1));
	cache_destroy(&cache);
}

static void test_bytes_are_bounded_too(void **state)
{
	struct cache_entry *entry;
	struct cache cache;

	(void)state;
	cache_init(&cache, 100, 35, destroy);
	for (uint32_t n = 0; n < 10; n++)
		add(&cache, n);
	assert_int_equal(cache.entries, 3);
	cache_begin(&cache);
	entry = get(&cache, 9);
	cache_mark_dirty(&cache, entry);
	cache_mark_clean(&cache, entry, 25);
	/* At once, not when somebody gives one back. */
	assert_int_equal(cache.bytes, 35);
	cache_unpin(&cache, entry);
	assert_int_equal(cache.bytes, 35);
	assert_int_equal(cache.entries, 2);
	cache_commit(&cache);
	cache_destroy(&cache);
}

static void test_pinned_and_dirty_entries_stay(void **state)
{
	struct cache_entry *pinned;
	struct cache cache;

	(void)state;
	cache_init(&cache, 2, 1000, destroy);
	add(&cache, 0);
	add(&cache, 1);
	pinned = get(&cache, 0);
	cache_begin(&cache);
	make_dirty(&cache, 1);
	for (uint32_t n = 2; n < 10; n++)
		add(&cache, n);
	assert_int_equal(cache.entries, 2);
	assert_true(has(&cache, 0));
	assert_true(has(&cache, 1));
	cache_unpin(&cache, pinned);
	cache_abort(&cache);
	cache_destroy(&cache);
}

static void test_an_abort_drops_what_the_transaction_added_or_changed(void **state)
{
	struct cache cache;

	(void)state;
	cache_init(&cache, 10, 1000, destroy);
	add(&cache, 0);
	add(&cache, 1);
	cache_begin(&cache);
	add(&cache, 2);
	make_dirty(&cache, 1);
	cache_abort(&cache);
	assert_true(has(&cache, 0));
	assert_false(has(&cache, 1));
	assert_false(has(&cache, 2));
	cache_destroy(&cache);
}

/* `context`: the cache. Entry 1 is the only one that is put. */
static int put_first(void *context, struct cache_entry *entry)
{
	assert_int_equal(entry->key.identifier, 1);
	cache_mark_clean(context, entry, 10);
	return 0;
}

static void test_a_commit_keeps_it(void **state)
{
	struct cache cache;

	(void)state;
	cache_init(&cache, 10, 1000, destroy);
	add(&cache, 1);
	cache_begin(&cache);
	add(&cache, 2);
	make_dirty(&cache, 1);
	assert_int_equal(cache_put_dirty(&cache, 1, put_first, &cache), 0);
	assert_int_equal(cache.dirty_entries, 1);
	assert_int_equal(cache_put_dirty(&cache, 0, put_first, &cache), 0);
	assert_int_equal(cache.dirty_entries, 0);
	cache_commit(&cache);
	cache_begin(&cache);
	cache_abort(&cache);
	assert_true(has(&cache, 1));
	assert_true(has(&cache, 2));
	cache_destroy(&cache);
}

static void test_of_two_who_add_one_entry_the_first_wins(void **state)
{
	struct cache_entry *first = calloc(1, sizeof(*first)), *second = calloc(1, sizeof(*second));
	struct cache cache;

	(void)state;
	cache_init(&cache, 10, 1000, destroy);
	destroyed = 0;
	assert_ptr_equal(cache_add(&cache, first, 10), first);
	assert_ptr_equal(cache_add(&cache, second, 10), first);
	assert_int_equal(destroyed, 1);
	cache_unpin(&cache, first);
	cache_unpin(&cache, first);
	cache_destroy(&cache);
	assert_int_equal(destroyed, 2);
}

static void test_a_dropped_entry_lives_until_its_last_pin_goes(void **state)
{
	struct cache_entry *pinned;
	struct cache cache;

	(void)state;
	cache_init(&cache, 10, 1000, destroy);
	for (uint32_t n = 0; n < 6; n++)
		add(&cache, n);
	pinned = get(&cache, 1);
	destroyed = 0;
	cache_drop_partition(&cache, 1);
	assert_int_equal(destroyed, 2);
	assert_false(has(&cache, 1));
	assert_true(has(&cache, 2));
	cache_unpin(&cache, pinned);
	assert_int_equal(destroyed, 3);
	cache_destroy(&cache);
}

/* ---- access times ---- */

static struct access_key key_of(uint64_t object)
{
	return (struct access_key){ .partition = 5, .object = object, .created_sequence = 9 };
}

static void test_noted_accesses_show_until_they_are_taken(void **state)
{
	uint64_t times_ms[ENGINE_TIMES] = { 1, 1, 1, 1, 1 };
	struct access_times times;
	struct access_key later = key_of(1), key;

	(void)state;
	access_times_init(&times, 4);
	access_times_note(&times, key_of(1), true, false, 100);
	access_times_note(&times, key_of(1), true, true, 0);
	access_times_apply(&times, key_of(1), times_ms);
	assert_int_equal(times_ms[ENGINE_TIME_DATA_ACCESSED], 0);
	assert_int_equal(times_ms[ENGINE_TIME_ATTRIBUTES_ACCESSED], 0);
	assert_int_equal(times_ms[ENGINE_TIME_DATA_MODIFIED], 1);
	later.created_sequence = 10;
	assert_false(access_times_take(&times, later, times_ms));
	assert_true(access_times_take(&times, key_of(1), times_ms));
	assert_false(access_times_take(&times, key_of(1), times_ms));
	assert_int_equal(access_times_count(&times), 0);
	access_times_abort(&times);
	assert_int_equal(access_times_count(&times), 1);
	assert_true(access_times_take(&times, key_of(1), times_ms));
	access_times_commit(&times);
	assert_false(access_times_oldest(&times, &key));
	access_times_destroy(&times);
}

static void test_a_full_table_loses_the_oldest_note(void **state)
{
	struct access_times times;
	struct access_key key;

	(void)state;
	access_times_init(&times, 4);
	for (uint64_t object = 0; object < 6; object++)
		access_times_note(&times, key_of(object), true, true, object);
	assert_int_equal(access_times_count(&times), 4);
	assert_true(access_times_oldest(&times, &key));
	assert_int_equal(key.object, 2);
	access_times_forget(&times, key_of(2));
	access_times_forget(&times, key_of(2));
	assert_true(access_times_oldest(&times, &key));
	assert_int_equal(key.object, 3);
	access_times_clear(&times);
	assert_int_equal(access_times_count(&times), 0);
	access_times_destroy(&times);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_entry_used_longest_ago_goes_first),
		cmocka_unit_test(test_asking_about_an_entry_is_no_use_of_it),
		cmocka_unit_test(test_bytes_are_bounded_too),
		cmocka_unit_test(test_pinned_and_dirty_entries_stay),
		cmocka_unit_test(test_an_abort_drops_what_the_transaction_added_or_changed),
		cmocka_unit_test(test_a_commit_keeps_it),
		cmocka_unit_test(test_of_two_who_add_one_entry_the_first_wins),
		cmocka_unit_test(test_a_dropped_entry_lives_until_its_last_pin_goes),
		cmocka_unit_test(test_noted_accesses_show_until_they_are_taken),
		cmocka_unit_test(test_a_full_table_loses_the_oldest_note),
	};

	return cmocka_run_group_tests_name("object caches", tests, NULL, NULL);
}
