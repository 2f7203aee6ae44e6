/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The onode's record: its bytes, what spills out of it, and that damaged ones are refused. */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/objects/onode.h"
#include "engine/objects/partition.h"
#include "tests/engine/memory_store.h"

enum { PAGE = 512, PARTITION = 7, IDENTIFIER = 0x10203 };

struct fixture {
	struct memory_store *memory;
	struct record_store *store;
	struct record_writer writer;
	struct onode *onode;
	uint8_t page[PAGE];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->memory = memory_store_create(PAGE);
	f->store = memory_store_open(f->memory);
	f->writer = (struct record_writer){ .store = f->store, .page = f->page };
	f->onode = onode_new(PARTITION, IDENTIFIER);
	f->onode->head.type = ENGINE_USER_OBJECT;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	onode_free(f->onode);
	f->store->operations->close(f->store, false);
	memory_store_destroy(f->memory);
	free(f);
	return 0;
}

static struct record_key key_of(uint32_t piece)
{
	return key_of_onode_chunk(PARTITION, IDENTIFIER, piece);
}

/* Puts the onode in a transaction of its own; how many records that took. */
static uint64_t put(struct fixture *f)
{
	uint64_t before = memory_store_counters(f->memory).puts;

	f->writer.sequence = f->store->operations->begin(f->store, 0);
	assert_int_equal(onode_put(&f->writer, f->onode), 0);
	f->store->operations->commit(f->store);
	return memory_store_counters(f->memory).puts - before;
}

static uint32_t get(struct fixture *f, uint32_t piece, uint8_t *record)
{
	struct record_key key = key_of(piece);
	struct record_info info;

	assert_int_equal(
		f->store->operations->get(f->store, &key, RECORD_NEWEST, record, PAGE, &info), 0);
	return info.length;
}

static int load(struct fixture *f, struct onode **onode)
{
	return onode_load(f->store, PARTITION, IDENTIFIER, RECORD_NEWEST, 0, 0, onode);
}

static void set_attribute(struct fixture *f, uint32_t number, uint8_t fill, uint32_t length)
{
	uint8_t value[4096];

	memset(value, fill, sizeof(value));
	assert_int_equal(attribute_set_change(&f->onode->attributes, 1, number, value, length), 0);
}

static void add_piece(struct fixture *f, uint32_t piece)
{
	assert_int_equal(extents_reserve(&f->onode->extents, 1), 0);
	extents_add(&f->onode->extents, piece, 0);
}

/* What is loaded is what was put. */
static void assert_stored(struct fixture *f)
{
	const struct attribute_set *wanted = &f->onode->attributes;
	struct onode *onode;

	assert_int_equal(load(f, &onode), 0);
	assert_int_equal(onode->head.length, f->onode->head.length);
	assert_int_equal(onode->extents.count, f->onode->extents.count);
	assert_int_equal(onode->extents.pieces, f->onode->extents.pieces);
	for (uint32_t index = 0; index < onode->extents.count; index++)
		assert_int_equal(onode->extents.list[index].first,
				 f->onode->extents.list[index].first);
	assert_int_equal(onode->attributes.count, wanted->count);
	assert_int_equal(onode->attributes.length, wanted->length);
	if (wanted->length)
		assert_memory_equal(onode->attributes.bytes, wanted->bytes, wanted->length);
	assert_int_equal(onode->data.here, f->onode->data.here);
	assert_int_equal(onode->data.length, f->onode->data.length);
	if (onode->data.length)
		assert_memory_equal(onode->data.bytes, f->onode->data.bytes, onode->data.length);
	onode_free(onode);
}

/* Head and attributes of the examples of docs/objects.md. */
static void describe_example(struct fixture *f, uint64_t length)
{
	struct onode_head *head = &f->onode->head;

	head->length = length;
	head->created_sequence = 16;
	head->modified_sequence = 18;
	head->void_sequence = 15;
	for (uint64_t which = 0; which < ENGINE_TIMES; which++)
		head->times_ms[which] = 1000 + which;
	assert_int_equal(attribute_set_change(&f->onode->attributes, 0x30000000, 7, "abc", 3), 0);
}

static void test_an_onode_is_stored_as_documented(void **state)
{
	/* The example of docs/objects.md. */
	static const uint8_t wanted[] = {
		0x02, 0x03, 0x00, 0x00, 0x01, 0x00,
		0x01, 0x00,             /* format, type, flags; 1 extent, 1 attribute */
		0x0d, 0x00, 0x00, 0x00, /* 13 bytes of attributes */
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, /* nothing spilled */
		0x05, 0x04, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00,                         /* length 1029 */
		0x10, 0x00, 0x00, 0x00, 0x00, 0x00, /* created by 16 */
		0x12, 0x00, 0x00, 0x00, 0x00, 0x00, /* modified by 18 */
		0x0f, 0x00, 0x00, 0x00, 0x00, 0x00, /* voided up to 15 */
		0xe8, 0x03, 0x00, 0x00, 0x00, 0x00, /* created at 1000 ms */
		0xe9, 0x03, 0x00, 0x00, 0x00, 0x00, /* attributes accessed */
		0xea, 0x03, 0x00, 0x00, 0x00, 0x00, /* attributes modified */
		0xeb, 0x03, 0x00, 0x00, 0x00, 0x00, /* data accessed */
		0xec, 0x03, 0x00, 0x00, 0x00, 0x00, /* data modified */
		0x00, 0x00, 0x00, 0x00, 0x02, 0x00,
		0x00, 0x00, /* pieces 0..2 */
		0x10, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, /* ... since 16 */
		0x00, 0x00, 0x00, 0x30, 0x07, 0x00,
		0x00, 0x00,                   /* page 0x30000000, number 7 */
		0x03, 0x00, 0x61, 0x62, 0x63, /* "abc" */
	};
	struct fixture *f = *state;
	uint8_t record[PAGE];

	describe_example(f, 1029);
	for (uint32_t piece = 0; piece < 3; piece++) {
		assert_int_equal(extents_reserve(&f->onode->extents, 1), 0);
		extents_add(&f->onode->extents, piece, f->onode->head.void_sequence);
	}
	assert_int_equal(put(f), 1);
	assert_int_equal(get(f, RECORD_ONODE_PIECE, record), sizeof(wanted));
	assert_memory_equal(record, wanted, sizeof(wanted));
	assert_stored(f);
}

static void make_small(struct fixture *f, const void *data, uint32_t length)
{
	if (!f->onode->data.here)
		add_piece(f, 0);
	assert_int_equal(onode_inline_set(f->onode, data, length), 0);
}

static void test_a_small_object_is_stored_as_documented(void **state)
{
	static const uint8_t wanted[] = {
		0x02, 0x03, 0x04, 0x00, 0x00, 0x00, 0x01, 0x00, 0x0d, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x12, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0f, 0x00,
		0x00, 0x00, 0x00, 0x00, 0xe8, 0x03, 0x00, 0x00, 0x00, 0x00, 0xe9, 0x03, 0x00, 0x00,
		0x00, 0x00, 0xea, 0x03, 0x00, 0x00, 0x00, 0x00, 0xeb, 0x03, 0x00, 0x00, 0x00, 0x00,
		0xec, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x30, 0x07, 0x00, 0x00, 0x00,
		0x03, 0x00, 0x61, 0x62, 0x63, 0x72, 0x61, 0x76, 0x65, 0x6e,
	};
	struct fixture *f = *state;
	uint8_t record[PAGE];

	describe_example(f, 5);
	make_small(f, "raven", 5);
	assert_int_equal(put(f), 1);
	assert_int_equal(get(f, RECORD_ONODE_PIECE, record), sizeof(wanted));
	assert_memory_equal(record, wanted, sizeof(wanted));
	assert_stored(f);
}

/* Its data stays in the record; attributes go into chunks when they leave it no space. */
static void test_attributes_make_room_for_the_data_of_a_small_object(void **state)
{
	struct fixture *f = *state;
	uint32_t most = onode_inline_max(PAGE);
	uint8_t data[PAGE], record[PAGE];

	memset(data, 'd', sizeof(data));
	f->onode->head.length = most;
	set_attribute(f, 1, 'a', PAGE - ONODE_HEAD_BYTES - most - ATTRIBUTE_HEAD_BYTES);
	make_small(f, data, most);
	assert_int_equal(put(f), 1);
	assert_int_equal(get(f, RECORD_ONODE_PIECE, record), PAGE);
	assert_stored(f);
	set_attribute(f, 2, 'b', 1);
	assert_int_equal(put(f), 2);
	assert_int_equal(get(f, RECORD_ONODE_PIECE, record), ONODE_HEAD_BYTES + most);
	assert_stored(f);
	onode_inline_end(f->onode);
	assert_int_equal(put(f), 1);
	assert_stored(f);
	make_small(f, data, 0);
	assert_int_equal(put(f), 1);
	assert_stored(f);
}

static void test_what_does_not_fit_spills_into_chunks(void **state)
{
	struct fixture *f = *state;
	uint8_t record[PAGE];

	set_attribute(f, 1, 'a', 100);
	assert_int_equal(put(f), 1);
	set_attribute(f, 2, 'b', 400); /* longer than what is left */
	assert_int_equal(put(f), 3);
	assert_int_equal(get(f, RECORD_ONODE_PIECE, record), ONODE_HEAD_BYTES);
	assert_int_equal(record[2], ONODE_ATTRIBUTES_SPILLED);
	assert_int_equal(get(f, RECORD_ATTRIBUTES_PIECE, record), PAGE);
	assert_int_equal(get(f, RECORD_ATTRIBUTES_PIECE + 1, record),
			 2 * ATTRIBUTE_HEAD_BYTES + 500 - PAGE);
	assert_stored(f);
	for (uint32_t piece = 0; piece < 100; piece += 2)
		add_piece(f, piece);
	assert_int_equal(put(f), 3); /* two chunks of extents */
	assert_int_equal(get(f, RECORD_ONODE_PIECE, record), ONODE_HEAD_BYTES);
	assert_int_equal(record[2], ONODE_EXTENTS_SPILLED | ONODE_ATTRIBUTES_SPILLED);
	assert_stored(f);
	set_attribute(f, 2, 0, 0);
	assert_int_equal(put(f), 1); /* attributes fit again */
	assert_int_equal(get(f, RECORD_ONODE_PIECE, record),
			 ONODE_HEAD_BYTES + ATTRIBUTE_HEAD_BYTES + 100);
	assert_stored(f);
}

static void test_only_chunks_that_changed_are_put_again(void **state)
{
	struct fixture *f = *state;

	for (uint32_t number = 0; number < 40; number++)
		set_attribute(f, number, 'a', 246); /* two a chunk */
	assert_int_equal(put(f), 21);
	f->onode->head.length = 5;
	assert_int_equal(put(f), 1);
	set_attribute(f, 20, 'b', 246);
	assert_int_equal(put(f), 2);
	set_attribute(f, 36, 'c', 100); /* those behind it move */
	assert_int_equal(put(f), 3);
	set_attribute(f, 39, 0, 0);
	assert_true(put(f) <= 2);
	assert_stored(f);
	for (uint32_t piece = 0; piece < 2000; piece += 2)
		add_piece(f, piece);
	assert_int_equal(put(f), 1 + 1000 / (PAGE / EXTENT_BYTES) + 1);
	add_piece(f, 2000);
	assert_int_equal(put(f), 2);
	extents_remove(&f->onode->extents, 1998, 1999);
	assert_int_equal(put(f), 2);
	assert_stored(f);
}

static void test_the_largest_set_of_attributes_and_extents_survives(void **state)
{
	struct fixture *f = *state;
	uint32_t number = 0;

	while (attribute_set_change(&f->onode->attributes, 1, number, "x", 1) == 0)
		number++;
	assert_int_equal(number, ENGINE_ATTRIBUTE_SET_BYTES_MAX / (ATTRIBUTE_OVERHEAD + 1));
	assert_true(f->onode->attributes.length <= ENGINE_ATTRIBUTE_SET_BYTES_MAX);
	for (uint32_t piece = 0; piece < 2 * EXTENTS_MAX; piece += 2)
		add_piece(f, piece);
	put(f);
	assert_stored(f);
}

/* Loads the onode with each bit of its record changed; returns how many are refused. */
static uint32_t flip_each_bit(struct fixture *f, const uint8_t *record, uint32_t length)
{
	struct record_key key = key_of(RECORD_ONODE_PIECE);
	uint8_t damaged[PAGE];
	uint32_t refused = 0;

	for (uint32_t bit = 0; bit < length * 8; bit++) {
		struct onode *onode;
		int result;

		memcpy(damaged, record, length);
		damaged[bit / 8] ^= (uint8_t)(1 << bit % 8);
		memory_store_overwrite(f->memory, &key, damaged, length);
		result = load(f, &onode);
		assert_true(result == 0 || result == -EBADMSG);
		refused += result != 0;
		onode_free(onode);
	}
	return refused;
}

static void test_damaged_records_are_refused_or_harmless(void **state)
{
	struct record_key key = key_of(RECORD_ONODE_PIECE);
	struct fixture *f = *state;
	uint8_t record[PAGE];
	uint32_t length, refused;
	struct onode *onode;

	set_attribute(f, 1, 'a', 20);
	set_attribute(f, 2, 'b', 30);
	add_piece(f, 1);
	add_piece(f, 3);
	put(f);
	length = get(f, RECORD_ONODE_PIECE, record);
	refused = flip_each_bit(f, record, length);
	assert_true(refused > 100);
	for (uint32_t cut = 0; cut < length; cut++) {
		memory_store_overwrite(f->memory, &key, record, cut);
		assert_int_equal(load(f, &onode), -EBADMSG);
		assert_null(onode);
	}
}

/* A record with other data than it had is its own checksum's affair. */
static void test_a_damaged_head_of_a_small_object_is_refused_or_harmless(void **state)
{
	struct record_key key = key_of(RECORD_ONODE_PIECE);
	struct fixture *f = *state;
	uint8_t record[PAGE], damaged[PAGE];
	struct onode *onode;
	uint32_t length;

	f->onode->head.length = 40;
	set_attribute(f, 1, 'a', 20);
	make_small(f, "forty bytes, some of them are not there", 40);
	put(f);
	length = get(f, RECORD_ONODE_PIECE, record);
	flip_each_bit(f, record, length);
	for (uint32_t type = 0; type < ENGINE_USER_OBJECT; type++) {
		memcpy(damaged, record, length);
		damaged[1] = (uint8_t)type;
		memory_store_overwrite(f->memory, &key, damaged, length);
		assert_int_equal(load(f, &onode), -EBADMSG);
	}
	/* More data than the object is long. */
	memcpy(damaged, record, length);
	damaged[20] = 39;
	memory_store_overwrite(f->memory, &key, damaged, length);
	assert_int_equal(load(f, &onode), -EBADMSG);
}

static void test_damaged_and_missing_chunks_are_refused(void **state)
{
	struct fixture *f = *state;
	uint8_t record[PAGE];
	struct record_key key;
	struct onode *onode;
	uint32_t length;

	set_attribute(f, 1, 'a', 2000);
	for (uint32_t piece = 0; piece < 200; piece += 2)
		add_piece(f, piece);
	put(f);
	for (uint32_t part = 0; part < 2; part++) {
		key = key_of(part ? RECORD_ATTRIBUTES_PIECE + 1 : RECORD_EXTENTS_PIECE + 1);
		length = get(f, key.piece, record);
		record[100] ^= 1;
		memory_store_overwrite(f->memory, &key, record, length);
		assert_int_equal(load(f, &onode), -EBADMSG);
		record[100] ^= 1;
		memory_store_overwrite(f->memory, &key, record, length - 1);
		assert_int_equal(load(f, &onode), -EBADMSG);
		memory_store_overwrite(f->memory, &key, record, length);
		assert_int_equal(load(f, &onode), 0);
		onode_free(onode);
	}
	memory_store_lose(f->memory, &key);
	assert_int_equal(load(f, &onode), -EBADMSG);
}

static void test_an_onode_older_than_its_partition_is_none(void **state)
{
	struct fixture *f = *state;
	struct onode *onode;

	f->onode->head.created_sequence = 10;
	put(f);
	assert_int_equal(onode_load(f->store, PARTITION, IDENTIFIER, RECORD_NEWEST, 11, 0, &onode),
			 -ENOENT);
	assert_int_equal(onode_load(f->store, PARTITION, IDENTIFIER, RECORD_NEWEST, 10, 0, &onode),
			 0);
	onode_free(onode);
}

static void test_without_room_nothing_is_taken_for_stored(void **state)
{
	struct fixture *f = *state;

	set_attribute(f, 1, 'a', 2000);
	put(f);
	for (int puts = 0; puts < 4; puts++) {
		set_attribute(f, 1, (uint8_t)('b' + puts), 2000);
		f->store->operations->begin(f->store, 0);
		memory_store_fail_put(f->memory, puts);
		assert_int_equal(onode_put(&f->writer, f->onode), -ENOSPC);
		f->store->operations->abort(f->store);
		put(f);
		assert_stored(f);
	}
}

/* ---- what it takes of a cache ---- */

/* What the allocator gave, beyond what was asked for. */
enum { GIVEN_MORE = 32 };

static uint64_t given(const struct onode *onode)
{
	return malloc_usable_size((void *)(uintptr_t)onode) +
	       malloc_usable_size(onode->extents.list) +
	       malloc_usable_size(onode->attributes.bytes) +
	       malloc_usable_size(onode->attributes.offsets) +
	       malloc_usable_size(onode->data.bytes);
}

static void expect_bytes(const struct onode *onode)
{
	assert_in_range(given(onode), onode_bytes(onode), onode_bytes(onode) + 5 * GIVEN_MORE);
}

static void test_an_onode_counts_all_memory_that_it_has(void **state)
{
	struct fixture *f = *state;
	uint8_t data[200] = { 0 };
	uint64_t before;

	expect_bytes(f->onode);
	before = onode_bytes(f->onode);
	set_attribute(f, 1, 'a', 1000);
	for (uint32_t number = 2; number < 200; number++)
		set_attribute(f, number, 'b', 1);
	expect_bytes(f->onode);
	assert_true(onode_bytes(f->onode) > before + 1000);
	before = onode_bytes(f->onode);
	for (uint32_t piece = 0; piece < 200; piece += 2)
		add_piece(f, piece);
	expect_bytes(f->onode);
	assert_true(onode_bytes(f->onode) >= before + 100 * sizeof(struct extent));
	before = onode_bytes(f->onode);
	assert_int_equal(onode_inline_set(f->onode, data, sizeof(data)), 0);
	expect_bytes(f->onode);
	assert_int_equal(onode_bytes(f->onode), before + sizeof(data));
}

/* ---- the partition's state ---- */

static void test_the_state_of_a_partition_is_stored_as_documented(void **state)
{
	static const uint8_t wanted[PARTITION_STATE_BYTES] = {
		0x01, 0x00, 0x02, 0x00,
		0x00, 0x00, 0x00, 0x00, /* format, user version 2 */
		0x05, 0x00, 0x01, 0x00,
		0x00, 0x00, 0x00, 0x00, /* partition 0x10005 */
		0x00, 0x30, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, /* 12288 bytes in use */
		0x09, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, /* created by 9 */
		0x03, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, /* three user objects ... */
		0x04, 0x00, 0x00, 0x00,
		0x06, 0x00, 0x00, 0x00, /* root node 4, nodes from 6 on unused */
		0x08, 0x00, 0x00, 0x00,
		0x01, 0x01, 0x00, 0x00, /* generation 8, height 1, one free node: */
		0x05, 0x00, 0x00, 0x00, /* 5 */
	};
	struct partition partition = {
		.id = 0x10005,
		.version = 2,
		.created_sequence = 9,
		.used_bytes = 12288,
		.sets[PARTITION_USER_OBJECTS] = { .count = 3,
						  .root = 4,
						  .next_node = 6,
						  .generation = 8,
						  .height = 1,
						  .free_count = 1,
						  .free_nodes = { 5 } },
	};
	uint8_t bytes[PARTITION_STATE_BYTES];
	struct partition again = { 0 };

	(void)state;
	assert_int_equal(partition_encode(&partition, bytes), sizeof(bytes));
	assert_memory_equal(bytes, wanted, sizeof(wanted));
	assert_int_equal(partition_decode(&again, bytes, sizeof(bytes)), 0);
	assert_int_equal(again.used_bytes, 12288);
	assert_int_equal(again.sets[PARTITION_USER_OBJECTS].free_nodes[0], 5);
	assert_int_equal(partition_decode(&again, bytes, sizeof(bytes) - 1), -EBADMSG);
	bytes[0] = 2;
	assert_int_equal(partition_decode(&again, bytes, sizeof(bytes)), -EBADMSG);
}

static void test_the_state_of_a_clone_says_where_and_when_it_began(void **state)
{
	static const uint8_t wanted[] = {
		0x07, 0x00, 0x03, 0x00,             /* source 7, associated, writable */
		0xff, 0xff, 0x04, 0x00, 0x00, 0x00, /* as of 0x4ffff */
		0x02, 0x00, 0x05, 0x00, 0x00, 0x00, /* its own since 0x50002 */
		0xd0, 0x07, 0x00, 0x00, 0x00, 0x00, /* two seconds after 1970 */
	};
	struct partition clone = {
		.id = 0x10005,
		.version = 1,
		.origin = { .index = 7,
			    .associated = true,
			    .writable = true,
			    .bound = 0x4ffff,
			    .since = 0x50002,
			    .ms = 2000 },
	};
	uint8_t bytes[PARTITION_CLONE_BYTES];
	struct partition again = { 0 };

	(void)state;
	assert_int_equal(partition_encode(&clone, bytes), PARTITION_CLONE_BYTES);
	assert_memory_equal(bytes + 128, wanted, sizeof(wanted));
	assert_int_equal(partition_decode(&again, bytes, PARTITION_CLONE_BYTES), 0);
	assert_int_equal(again.origin.since, 0x50002);
	assert_int_equal(again.origin.ms, 2000);
	/* Older programs put none, and only clones have one. */
	assert_int_equal(partition_decode(&again, bytes, PARTITION_STATE_BYTES), 0);
	assert_int_equal(again.origin.ms, 0);
	bytes[128] = 0;
	assert_int_equal(partition_decode(&again, bytes, PARTITION_CLONE_BYTES), -EBADMSG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_onode_is_stored_as_documented),
		TEST(test_a_small_object_is_stored_as_documented),
		TEST(test_attributes_make_room_for_the_data_of_a_small_object),
		TEST(test_what_does_not_fit_spills_into_chunks),
		TEST(test_only_chunks_that_changed_are_put_again),
		TEST(test_the_largest_set_of_attributes_and_extents_survives),
		TEST(test_damaged_records_are_refused_or_harmless),
		TEST(test_a_damaged_head_of_a_small_object_is_refused_or_harmless),
		TEST(test_damaged_and_missing_chunks_are_refused),
		TEST(test_an_onode_older_than_its_partition_is_none),
		TEST(test_without_room_nothing_is_taken_for_stored),
		TEST(test_an_onode_counts_all_memory_that_it_has),
		cmocka_unit_test(test_the_state_of_a_partition_is_stored_as_documented),
		cmocka_unit_test(test_the_state_of_a_clone_says_where_and_when_it_began),
	};

	return cmocka_run_group_tests_name("onode", tests, NULL, NULL);
}
