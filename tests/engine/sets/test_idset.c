/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Ordered ID sets: against a sorted array by random operations, and what they cost. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/objects/keys.h"
#include "engine/sets/idset.h"
#include "engine/sets/idset_node.h"
#include "tests/engine/memory_store.h"

enum { PAGE = 512, IDS_MAX = 6000, PARTITION = 3, IDENTIFIER = 0x1234 };

/* A set and what should be in it. */
struct fixture {
	struct memory_store *memory;
	struct record_store *store;
	struct cache nodes;
	struct idset_header header, committed;
	struct idset set;
	struct record_writer writer;
	uint8_t page[4096];
	uint64_t random;
	uint64_t ids[IDS_MAX], before[IDS_MAX];
	uint32_t count, count_before;
};

static void open_set(struct fixture *f, uint32_t cached)
{
	f->store = memory_store_open(f->memory);
	assert_int_equal(cache_init(&f->nodes, cached, SIZE_MAX, idset_node_destroy), 0);
	f->set = (struct idset){ .store = f->store,
				 .nodes = &f->nodes,
				 .header = &f->header,
				 .first = key_of_node(PARTITION, IDENTIFIER, 0),
				 .bound = RECORD_NEWEST };
	f->writer = (struct record_writer){ .store = f->store, .page = f->page };
}

static int setup_pages(void **state, uint32_t page_bytes)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->memory = memory_store_create(page_bytes);
	open_set(f, 8);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return setup_pages(state, PAGE);
}

static int setup_4096(void **state)
{
	return setup_pages(state, 4096);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	cache_destroy(&f->nodes);
	f->store->operations->close(f->store, false);
	memory_store_destroy(f->memory);
	free(f);
	return 0;
}

static void begin(struct fixture *f)
{
	f->writer.sequence = f->store->operations->begin(f->store, 0);
	cache_begin(&f->nodes);
	f->committed = f->header;
}

static void commit(struct fixture *f)
{
	assert_int_equal(idset_put_dirty(&f->nodes, &f->writer), 0);
	f->store->operations->commit(f->store);
	cache_commit(&f->nodes);
}

static void abort_changes(struct fixture *f)
{
	f->store->operations->abort(f->store);
	cache_abort(&f->nodes);
	f->header = f->committed;
}

static void insert(struct fixture *f, uint64_t id)
{
	assert_int_equal(idset_insert(&f->set, &f->writer, id), 0);
}

static void insert_run(struct fixture *f, uint64_t first, uint32_t count)
{
	for (uint32_t index = 0; index < count; index++)
		insert(f, first + index);
}

static uint64_t below(struct fixture *f, uint64_t limit)
{
	f->random = f->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (f->random >> 33) % limit;
}

/* ---- against an array ---- */

static uint32_t position(const uint64_t *ids, uint32_t count, uint64_t id)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (ids[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void check_from(const struct idset *set, const uint64_t *ids, uint32_t count, uint64_t first)
{
	struct idset_walk walk = idset_walk_from(set, first);
	uint64_t got[17], next = first, counted, walked;
	uint32_t at = position(ids, count, first);
	bool more = true;
	size_t number;

	assert_int_equal(idset_count(set, first, &counted), 0);
	assert_int_equal(counted, count - at);
	assert_int_equal(idset_next(set, first, &walked), at < count ? 0 : -ENOENT);
	assert_true(at == count || walked == ids[at]);
	while (more) {
		assert_int_equal(idset_list(set, next, got, 17, &number, &more, &next), 0);
		for (size_t index = 0; index < number; index++) {
			assert_int_equal(idset_walk(&walk, &walked), 1);
			assert_int_equal(walked, ids[at]);
			assert_int_equal(got[index], ids[at++]);
		}
		assert_true(!more || next == ids[at]);
	}
	assert_int_equal(at, count);
	assert_int_equal(idset_walk(&walk, &walked), 0);
}

static void check_before(struct fixture *f, uint64_t id)
{
	uint32_t at = position(f->ids, f->count, id);
	uint64_t before;

	assert_int_equal(idset_before(&f->set, id, &before), at ? 0 : -ENOENT);
	if (at)
		assert_int_equal(before, f->ids[at - 1]);
}

static void check(struct fixture *f)
{
	uint64_t last;

	assert_int_equal(f->header.count, f->count);
	check_from(&f->set, f->ids, f->count, 0);
	check_from(&f->set, f->ids, f->count,
		   f->count ? f->ids[below(f, f->count)] + below(f, 2) : 5);
	assert_int_equal(idset_last(&f->set, &last), f->count ? 0 : -ENOENT);
	if (f->count)
		assert_int_equal(last, f->ids[f->count - 1]);
	check_before(f, f->count ? f->ids[below(f, f->count)] + below(f, 2) : 5);
	check_before(f, f->count ? f->ids[0] : 0);
	check_before(f, UINT64_MAX);
}

static void change_one(struct fixture *f, uint64_t id, bool remove)
{
	uint32_t at = position(f->ids, f->count, id);
	bool there = at < f->count && f->ids[at] == id;

	assert_int_equal(idset_contains(&f->set, id), there);
	if (remove) {
		assert_int_equal(idset_remove(&f->set, &f->writer, id), there ? 0 : -ENOENT);
		if (there)
			memmove(&f->ids[at], &f->ids[at + 1], (--f->count - at) * sizeof(id));
	} else {
		assert_int_equal(idset_insert(&f->set, &f->writer, id), there ? -EEXIST : 0);
		if (!there) {
			memmove(&f->ids[at + 1], &f->ids[at], (f->count++ - at) * sizeof(id));
			f->ids[at] = id;
		}
	}
}

/* Some changes: single ones anywhere, ascending and descending runs, removal of ranges. */
static void change_some(struct fixture *f, bool growing)
{
	uint64_t id = below(f, 3 * IDS_MAX), kind = below(f, 8);
	uint32_t number = (uint32_t)below(f, kind < 4 ? 8 : 150);

	for (uint32_t index = 0; index < number && f->count < IDS_MAX; index++) {
		switch (kind) {
		case 0:
		case 1:
			change_one(f, below(f, 3 * IDS_MAX), !growing);
			break;
		case 2:
		case 3:
			change_one(f, f->count ? f->ids[below(f, f->count)] + below(f, 2) : 1,
				   below(f, 2));
			break;
		case 4:
			change_one(f, id + index, !growing);
			break;
		case 5:
			change_one(f, id > index ? id - index : 0, !growing);
			break;
		case 6:
			change_one(f, f->count ? f->ids[f->count - 1] + 1 : 0, false);
			break;
		default:
			change_one(f, f->count ? f->ids[0] : 0, true);
			break;
		}
	}
}

/* Once in `checks` rounds everything is looked at. */
static void play(struct fixture *f, int rounds, uint64_t checks)
{
	uint32_t largest = 0;

	memory_store_absorb(f->memory, true);
	for (int round = 0; round < rounds; round++) {
		begin(f);
		memcpy(f->before, f->ids, f->count * sizeof(f->ids[0]));
		f->count_before = f->count;
		for (uint64_t times = below(f, 4) + 1; times; times--) {
			change_some(f, round / 400 % 2 == 0);
			/* As when a transaction changes more nodes than may wait. */
			if (below(f, 4) == 0)
				assert_int_equal(idset_put_dirty(&f->nodes, &f->writer), 0);
			if (below(f, checks) == 0)
				check(f);
		}
		largest = f->count > largest ? f->count : largest;
		if (below(f, 10) == 0) {
			abort_changes(f);
			memcpy(f->ids, f->before, f->count_before * sizeof(f->ids[0]));
			f->count = f->count_before;
		} else {
			commit(f);
		}
		if (below(f, 20) == 0)
			cache_clear(&f->nodes);
		if (below(f, checks) == 0)
			check(f);
	}
	check(f);
	/* It was deep enough to mean something. */
	assert_true(largest > 3000);
}

static void test_it_holds_what_a_sorted_array_holds(void **state)
{
	struct fixture *f = *state;

	f->random = 11;
	play(f, 4000, 10);
}

/* All nodes stay in memory, and with them the numbers of IDs below each. */
static void test_what_is_counted_stays_right_under_changes_and_aborts(void **state)
{
	struct fixture *f = *state;

	cache_destroy(&f->nodes);
	assert_int_equal(cache_init(&f->nodes, 1000, SIZE_MAX, idset_node_destroy), 0);
	f->random = 12;
	play(f, 2000, 2);
}

static void test_a_header_of_old_shows_the_set_of_old(void **state)
{
	struct fixture *f = *state;
	struct idset_header headers[20];
	uint64_t *ids[20], bounds[20];
	uint32_t counts[20];

	f->random = 5;
	memory_store_absorb(f->memory, true);
	for (int version = 0; version < 20; version++) {
		f->writer.epoch = f->writer.sequence + 1;
		for (int round = 0; round < 30; round++) {
			begin(f);
			change_some(f, version < 12);
			change_some(f, version < 12);
			bounds[version] = f->writer.sequence;
			commit(f);
		}
		headers[version] = f->header;
		counts[version] = f->count;
		ids[version] = malloc((f->count + 1) * sizeof(uint64_t));
		memcpy(ids[version], f->ids, f->count * sizeof(uint64_t));
	}
	for (int version = 0; version < 20; version++) {
		struct idset old = f->set;

		old.header = &headers[version];
		old.bound = bounds[version];
		check_from(&old, ids[version], counts[version], 0);
		check_from(&old, ids[version], counts[version], 3 * IDS_MAX / 2);
		free(ids[version]);
	}
}

static void test_values_at_the_ends_of_the_range_are_like_any(void **state)
{
	struct fixture *f = *state;
	const uint64_t ends[] = { UINT64_MAX, 0, UINT64_MAX - 1, 1 };

	begin(f);
	for (int index = 0; index < 4; index++)
		change_one(f, ends[index], false);
	for (uint64_t id = 1000; id < 3000; id++)
		change_one(f, id, false);
	check(f);
	for (int index = 0; index < 4; index++)
		change_one(f, ends[index], true);
	check(f);
	commit(f);
}

/* ---- costs ---- */

static void test_ascending_ids_leave_full_leaves(void **state)
{
	struct fixture *f = *state;
	uint32_t capacity = idset_node_capacity(IDSET_LEAF, 4096);

	for (uint32_t index = 0; index < 20 * capacity; index++) {
		begin(f);
		insert(f, 0x10000 + index);
		commit(f);
	}
	/* 20 leaves and a root. */
	assert_int_equal(f->header.next_node, 21);
	assert_int_equal(f->header.height, 2);
}

static void test_an_insertion_is_one_small_record(void **state)
{
	struct fixture *f = *state;
	struct memory_store_counters before, after;
	uint32_t large = 0;

	begin(f);
	insert_run(f, 0, 100);
	commit(f);
	before = memory_store_counters(f->memory);
	for (uint32_t index = 0; index < 128; index++) {
		uint64_t bytes = memory_store_counters(f->memory).put_bytes;

		begin(f);
		insert(f, 100 + index);
		commit(f);
		large += memory_store_counters(f->memory).put_bytes - bytes > 80;
	}
	after = memory_store_counters(f->memory);
	assert_int_equal(after.puts - before.puts, 128);
	assert_true(large <= 2); /* the leaf is rewritten after IDSET_OPERATIONS_MAX */
	assert_int_equal(after.gets, before.gets);
}

/* Full leaves, of which the cache holds a few. */
static void fill_leaves(struct fixture *f)
{
	for (f->count = 0; f->count < IDS_MAX - 1000; f->count++)
		f->ids[f->count] = 2 * f->count;
	begin(f);
	for (uint32_t index = 0; index < f->count; index++)
		insert(f, f->ids[index]);
	commit(f);
	assert_int_equal(f->header.height, 3);
	cache_destroy(&f->nodes);
	assert_int_equal(cache_init(&f->nodes, 12, SIZE_MAX, idset_node_destroy), 0);
}

static void count_from(struct fixture *f, uint64_t first)
{
	uint64_t counted;

	assert_int_equal(idset_count(&f->set, first, &counted), 0);
	assert_int_equal(counted, f->count - position(f->ids, f->count, first));
}

/* A leaf is read by a get of its base and one for each part of operations: ten at most. */
static void test_counting_anywhere_reads_each_leaf_once_whatever_changes_between(void **state)
{
	struct fixture *f = *state;
	uint32_t leaves = (IDS_MAX - 1000) / idset_node_capacity(IDSET_LEAF, PAGE) + 1;
	uint64_t before;

	f->random = 3;
	fill_leaves(f);
	before = memory_store_counters(f->memory).gets;
	for (uint32_t round = 0; round < 200; round++) {
		begin(f);
		change_one(f, f->ids[below(f, f->count)], round % 2);
		change_one(f, 2 * below(f, IDS_MAX - 1000) + 1, false);
		commit(f);
		count_from(f, f->ids[below(f, f->count)]);
	}
	/*
	 * Three leaves a round are read to change two and look at one, and some again that split.
	 */
	assert_true(memory_store_counters(f->memory).gets - before < (3 * 200 + 2 * leaves) * 10);
}

static void test_a_list_in_parts_is_counted_without_looking_ahead(void **state)
{
	struct fixture *f = *state;
	uint64_t ids[40], next = f->ids[0], before;
	bool more = true;
	uint32_t parts = 0;
	size_t number;

	fill_leaves(f);
	before = memory_store_counters(f->memory).gets;
	for (; more; parts++) {
		begin(f);
		change_one(f, 2 * f->count + 1, false);
		commit(f);
		count_from(f, next);
		assert_int_equal(idset_list(&f->set, next, ids, 40, &number, &more, &next), 0);
	}
	assert_in_range(parts, f->count / 40, f->count / 40 + 1);
	assert_true(memory_store_counters(f->memory).gets - before < parts * 4 * 10);
}

static void test_many_changes_of_one_transaction_are_put_once(void **state)
{
	struct fixture *f = *state;
	uint64_t before;

	begin(f);
	insert_run(f, 0, 500);
	before = memory_store_counters(f->memory).puts;
	commit(f);
	assert_int_equal(before, 0);
	assert_int_equal(memory_store_counters(f->memory).puts, 1);
}

static void test_an_emptied_set_can_be_filled_for_ever(void **state)
{
	struct fixture *f = *state;

	for (uint64_t round = 0; round < 30; round++) {
		begin(f);
		insert_run(f, round * 1000, 1000);
		commit(f);
		assert_true(f->header.next_node < 40);
		begin(f);
		for (uint64_t id = 0; id < 1000; id++)
			assert_int_equal(idset_remove(&f->set, &f->writer, round * 1000 + id), 0);
		commit(f);
		assert_int_equal(f->header.height, 0);
	}
	/* A queue: it never is empty, and its nodes go round. */
	begin(f);
	insert_run(f, 100000, 200);
	for (uint64_t id = 100000; id < 120000; id++) {
		insert(f, id + 200);
		assert_int_equal(idset_remove(&f->set, &f->writer, id), 0);
	}
	commit(f);
	assert_true(f->header.next_node < 20);
	assert_true(f->header.height <= 2);
}

/* ---- what goes wrong ---- */

static void test_damaged_nodes_are_refused(void **state)
{
	struct fixture *f = *state;
	struct record_key base;
	uint8_t record[PAGE], damaged[PAGE];
	struct record_info info;
	uint32_t refused = 0;

	begin(f);
	insert_run(f, 1000, 30);
	commit(f);
	base = key_of_node(PARTITION, IDENTIFIER, f->header.root << IDSET_PART_BITS);
	assert_int_equal(
		f->store->operations->get(f->store, &base, RECORD_NEWEST, record, PAGE, &info), 0);
	for (uint32_t bit = 0; bit < info.length * 8; bit++) {
		uint64_t ids[100], next;
		size_t count;
		bool more;
		int result;

		memcpy(damaged, record, info.length);
		damaged[bit / 8] ^= (uint8_t)(1 << bit % 8);
		memory_store_overwrite(f->memory, &base, damaged, info.length);
		cache_clear(&f->nodes);
		result = idset_list(&f->set, 0, ids, 100, &count, &more, &next);
		assert_true(result == 0 || result == -EBADMSG);
		refused += result != 0;
	}
	assert_true(refused > 100);
	memory_store_overwrite(f->memory, &base, record, info.length);
	for (uint32_t length = 0; length < info.length; length++) {
		memory_store_overwrite(f->memory, &base, record, length);
		cache_clear(&f->nodes);
		assert_int_equal(idset_contains(&f->set, 1000), -EBADMSG);
	}
	memory_store_lose(f->memory, &base);
	assert_int_equal(idset_contains(&f->set, 1000), -EBADMSG);
}

static void test_damaged_operations_are_refused(void **state)
{
	struct fixture *f = *state;
	struct record_key part;
	uint8_t record[PAGE];
	struct record_info info;

	begin(f);
	insert_run(f, 1000, 3);
	commit(f);
	begin(f);
	insert_run(f, 2000, 2);
	commit(f);
	part = key_of_node(PARTITION, IDENTIFIER, f->header.root << IDSET_PART_BITS | 1);
	assert_int_equal(
		f->store->operations->get(f->store, &part, RECORD_NEWEST, record, PAGE, &info), 0);
	assert_int_equal(info.length, IDSET_PART_HEAD_BYTES + 2 * IDSET_OPERATION_BYTES);
	record[IDSET_PART_HEAD_BYTES] = IDSET_REMOVE; /* of what is not there */
	memory_store_overwrite(f->memory, &part, record, info.length);
	cache_clear(&f->nodes);
	assert_int_equal(idset_contains(&f->set, 1000), -EBADMSG);
	record[IDSET_PART_HEAD_BYTES] = 3; /* nothing known */
	memory_store_overwrite(f->memory, &part, record, info.length);
	assert_int_equal(idset_contains(&f->set, 1000), -EBADMSG);
	record[IDSET_PART_HEAD_BYTES] = IDSET_INSERT;
	memory_store_overwrite(f->memory, &part, record, info.length - 1);
	assert_int_equal(idset_contains(&f->set, 1000), -EBADMSG);
}

static void test_a_base_record_is_as_documented(void **state)
{
	static const uint8_t wanted[] = {
		1, 0, 2, 0, 1, 0, 0, 0, /* leaf, two IDs, generation 1 */
		0, 0, 1, 0, 0, 0, 0, 0, /* 0x10000 */
		5, 0, 1, 0, 0, 0, 0, 0, /* 0x10005 */
	};
	static const uint8_t wanted_part[] = {
		1, 0, 0, 0,                /* generation 1 */
		2, 5, 0, 1, 0, 0, 0, 0, 0, /* remove 0x10005 */
	};
	struct record_key key = key_of_node(PARTITION, IDENTIFIER, 0);
	struct fixture *f = *state;
	struct record_info info;
	uint8_t record[PAGE];

	begin(f);
	insert(f, 0x10005);
	insert(f, 0x10000);
	commit(f);
	begin(f);
	assert_int_equal(idset_remove(&f->set, &f->writer, 0x10005), 0);
	commit(f);
	assert_int_equal(
		f->store->operations->get(f->store, &key, RECORD_NEWEST, record, PAGE, &info), 0);
	assert_int_equal(info.length, sizeof(wanted));
	assert_int_equal(info.flags, RECORD_ABSORB);
	assert_memory_equal(record, wanted, sizeof(wanted));
	key.piece = 1;
	assert_int_equal(
		f->store->operations->get(f->store, &key, RECORD_NEWEST, record, PAGE, &info), 0);
	assert_int_equal(info.length, sizeof(wanted_part));
	assert_memory_equal(record, wanted_part, sizeof(wanted_part));
}

static void test_a_header_survives_encoding_and_damaged_ones_are_refused(void **state)
{
	struct idset_header header = { .count = 70000,
				       .root = 5,
				       .next_node = 900,
				       .generation = 12345,
				       .height = 2,
				       .free_count = 2,
				       .free_nodes = { 7, 8 } },
			    again;
	uint8_t bytes[IDSET_HEADER_BYTES];

	(void)state;
	idset_header_encode(&header, bytes);
	assert_int_equal(idset_header_decode(&again, bytes), 0);
	assert_int_equal(again.count, 70000);
	assert_int_equal(again.root, 5);
	assert_int_equal(again.next_node, 900);
	assert_int_equal(again.generation, 12345);
	assert_int_equal(again.height, 2);
	assert_int_equal(again.free_nodes[1], 8);
	bytes[20] = IDSET_HEIGHT_MAX + 1;
	assert_int_equal(idset_header_decode(&again, bytes), -EBADMSG);
	bytes[20] = 0; /* empty, with a count */
	assert_int_equal(idset_header_decode(&again, bytes), -EBADMSG);
}

static void test_without_room_a_set_is_as_before_once_aborted(void **state)
{
	struct fixture *f = *state;

	begin(f);
	for (uint64_t id = 0; id < 2000; id++)
		change_one(f, id * 3, false);
	commit(f);
	for (int puts = 0; puts < 40; puts++) {
		int result = 0;

		begin(f);
		memory_store_fail_put(f->memory, puts);
		for (uint64_t id = 0; !result && id < 2000; id++)
			result = idset_insert(&f->set, &f->writer, id * 3 + 1);
		if (!result)
			result = idset_put_dirty(&f->nodes, &f->writer);
		assert_int_equal(result, -ENOSPC);
		abort_changes(f);
		check(f);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_it_holds_what_a_sorted_array_holds),
		TEST(test_what_is_counted_stays_right_under_changes_and_aborts),
		TEST(test_a_header_of_old_shows_the_set_of_old),
		TEST(test_values_at_the_ends_of_the_range_are_like_any),
		cmocka_unit_test_setup_teardown(test_ascending_ids_leave_full_leaves, setup_4096,
						teardown),
		cmocka_unit_test_setup_teardown(test_an_insertion_is_one_small_record, setup_4096,
						teardown),
		cmocka_unit_test_setup_teardown(test_many_changes_of_one_transaction_are_put_once,
						setup_4096, teardown),
		TEST(test_counting_anywhere_reads_each_leaf_once_whatever_changes_between),
		TEST(test_a_list_in_parts_is_counted_without_looking_ahead),
		TEST(test_an_emptied_set_can_be_filled_for_ever),
		TEST(test_damaged_nodes_are_refused),
		TEST(test_damaged_operations_are_refused),
		TEST(test_a_base_record_is_as_documented),
		cmocka_unit_test(test_a_header_survives_encoding_and_damaged_ones_are_refused),
		TEST(test_without_room_a_set_is_as_before_once_aborted),
	};

	return cmocka_run_group_tests_name("idset", tests, NULL, NULL);
}
