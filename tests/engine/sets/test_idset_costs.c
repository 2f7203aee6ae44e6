/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Ordered ID sets: what operations cost, damaged ones, and a set without room. */
#include "tests/engine/sets/set_fixture.h"

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
	insert_run(f, 0, 250);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ascending_ids_leave_full_leaves, setup_4096,
						teardown),
		cmocka_unit_test_setup_teardown(test_an_insertion_is_one_small_record, setup_4096,
						teardown),
		TEST(test_counting_anywhere_reads_each_leaf_once_whatever_changes_between),
		TEST(test_a_list_in_parts_is_counted_without_looking_ahead),
		cmocka_unit_test_setup_teardown(test_many_changes_of_one_transaction_are_put_once,
						setup_4096, teardown),
		TEST(test_an_emptied_set_can_be_filled_for_ever),
		TEST(test_damaged_nodes_are_refused),
		TEST(test_damaged_operations_are_refused),
		TEST(test_a_base_record_is_as_documented),
		cmocka_unit_test(test_a_header_survives_encoding_and_damaged_ones_are_refused),
		TEST(test_without_room_a_set_is_as_before_once_aborted),
	};

	return cmocka_run_group_tests_name("idset", tests, NULL, NULL);
}
