/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * QUERY: criteria, their combination, the answer, collections of matches, and each way to be
 * refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "tests/osd/collection_calls.h"

#define HEAD 12

/* A query list as it is made. */
struct list {
	uint8_t bytes[8192];
	uint32_t length;
};

static struct list list_of(unsigned type)
{
	struct list list = { .bytes = { (uint8_t)type }, .length = 4 };

	return list;
}

static void add(struct list *list, uint32_t page, uint32_t number, const void *minimum,
		uint16_t minimum_length, const void *maximum, uint16_t maximum_length)
{
	uint8_t *at = list->bytes + list->length;

	put_be16(at + 2, (uint16_t)(12 + minimum_length + maximum_length));
	put_be32(at + 4, page);
	put_be32(at + 8, number);
	put_be16(at + 12, minimum_length);
	if (minimum_length > 0)
		memcpy(at + 14, minimum, minimum_length);
	at += 14 + minimum_length;
	put_be16(at, maximum_length);
	if (maximum_length > 0)
		memcpy(at + 2, maximum, maximum_length);
	list->length += 16U + minimum_length + maximum_length;
}

/* TEST_NUMBER is between two numbers. */
static void add_range(struct list *list, uint64_t minimum, uint64_t maximum)
{
	uint8_t low[8], high[8];

	put_be64(low, minimum);
	put_be64(high, maximum);
	add(list, TEST_PAGE, TEST_NUMBER, low, 8, high, 8);
}

static struct call query_of(uint64_t collection, const struct list *list, size_t matches)
{
	struct call call = call_of(OSD_QUERY, P, collection);

	call_descriptor(&call, OSD_CONTINUATION_QUERY_LIST, list->bytes, list->length);
	call.cdb.length = call.data_in_capacity = HEAD + 8 * matches;
	return call;
}

/* The answer has exactly the members M + n of the mask. */
static void assert_matches(struct unit *unit, unsigned mask)
{
	size_t bytes = unit->command.data_in_length;
	unsigned found = 0;

	expect_good(unit);
	assert_true(bytes >= HEAD);
	assert_int_equal(get_be64(unit->data_in), bytes - 8);
	assert_int_equal(unit->data_in[8] | unit->data_in[9] | unit->data_in[10], 0);
	assert_int_equal(unit->data_in[11], 0x84);
	for (size_t at = HEAD; at < bytes; at += 8)
		found |= 1U << (get_be64(unit->data_in + at) - M);
	assert_int_equal(found, mask);
}

static void run(struct unit *unit, uint64_t collection, const struct list *list)
{
	struct call call = query_of(collection, list, MEMBERS);

	call_run(unit, &call);
}

/* ---- criteria ---- */

static void test_query_finds_members_in_a_range(void **state)
{
	struct unit *unit = *state;
	struct list list = list_of(OSD_QUERY_ALL);

	add_range(&list, 3, 5);
	run(unit, C, &list);
	shows_good(unit, QUERY, "members with a value inside inclusive bounds");
	assert_matches(unit, 1 << 3 | 1 << 4 | 1 << 5);
	run(unit, T, &list);
	assert_matches(unit, 1 << 3 | 1 << 4 | 1 << 5);
	/* It searches the collection only, and leaves it alone. */
	unit_join(unit, M + 4, 1, 0);
	run(unit, C, &list);
	assert_matches(unit, 1 << 3 | 1 << 5);
	assert_members(unit, T, (1 << MEMBERS) - 1);
}

static void test_query_types_are_union_and_intersection(void **state)
{
	struct unit *unit = *state;
	struct list any = list_of(OSD_QUERY_ANY), all = list_of(OSD_QUERY_ALL);

	add_range(&any, 0, 2);
	add_range(&any, 2, 3);
	add_range(&any, 9, 9);
	run(unit, C, &any);
	shows_good(unit, QUERY, "any criterion matches (type 0)");
	assert_matches(unit, 0xF | 1 << 9);
	add_range(&all, 0, 6);
	add_range(&all, 4, 9);
	add(&all, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, "", 0, "", 0);
	run(unit, C, &all);
	shows_good(unit, QUERY, "all criteria match (type 1)");
	assert_matches(unit, 1 << 4 | 1 << 5 | 1 << 6);
}

static void test_query_bounds_may_be_left_out(void **state)
{
	struct unit *unit = *state;
	struct list list = list_of(OSD_QUERY_ALL);
	uint8_t seven[8];

	put_be64(seven, 7);
	add(&list, TEST_PAGE, TEST_NUMBER, seven, 8, NULL, 0);
	run(unit, C, &list);
	assert_matches(unit, 7 << 7);
	list = list_of(OSD_QUERY_ALL);
	add(&list, TEST_PAGE, TEST_NUMBER, NULL, 0, seven, 8);
	run(unit, C, &list);
	assert_matches(unit, 0xFF);
	/* Without bounds: what has the attribute at all. */
	unit_set(unit, P, M + 6, TEST_PAGE, 99, "x", 1);
	list = list_of(OSD_QUERY_ANY);
	add(&list, TEST_PAGE, 99, NULL, 0, NULL, 0);
	run(unit, C, &list);
	assert_matches(unit, 1 << 6);
}

static void test_query_compares_byte_strings(void **state)
{
	static const char *const names[] = { "a", "ab", "abc", "b", "\xff" };
	struct unit *unit = *state;
	struct list list = list_of(OSD_QUERY_ALL);

	for (uint64_t i = 0; i < 5; i++)
		unit_set(unit, P, M + i, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME,
			 names[i], (uint32_t)strlen(names[i]));
	add(&list, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME, "ab", 2, "b", 1);
	run(unit, C, &list);
	assert_matches(unit, 1 << 1 | 1 << 2 | 1 << 3);
	list = list_of(OSD_QUERY_ALL);
	add(&list, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME, "abb", 3, "\xfe", 1);
	run(unit, C, &list);
	assert_matches(unit, 1 << 2 | 1 << 3);
}

static void test_query_skips_ids_without_an_object(void **state)
{
	struct unit *unit = *state;
	struct call removal = call_of(OSD_REMOVE, P, M + 4);
	struct list list = list_of(OSD_QUERY_ALL);

	call_run(unit, &removal);
	expect_good(unit);
	add_range(&list, 3, 5);
	run(unit, T, &list);
	assert_matches(unit, 1 << 3 | 1 << 5);
}

static void test_query_tolerates_padding_and_extension_capabilities(void **state)
{
	static const uint8_t capabilities[16] = { 0 };
	struct unit *unit = *state;
	struct list list = list_of(OSD_QUERY_ALL);
	struct call call;

	add_range(&list, 8, 9);
	list.length += 4; /* as osc-osd's initiator does */
	call = query_of(C, &list, 10);
	call_descriptor(&call, OSD_CONTINUATION_EXTENSION_CAPABILITIES, capabilities, 16);
	call_run(unit, &call);
	assert_matches(unit, 3 << 8);
}

/* ---- the answer ---- */

static void test_query_counts_what_has_no_room(void **state)
{
	struct unit *unit = *state;
	struct list list = list_of(OSD_QUERY_ALL);
	struct call call;

	add_range(&list, 0, 9);
	call = query_of(C, &list, 3);
	call_run(unit, &call);
	shows_good(unit, QUERY, "ADDITIONAL LENGTH counts matches without space");
	assert_int_equal(unit->command.data_in_length, HEAD + 24);
	assert_int_equal(get_be64(unit->data_in), 4 + 80);
	assert_int_equal(get_be64(unit->data_in + HEAD + 16), M + 2);
	call = query_of(C, &list, 0);
	call.cdb.length = call.data_in_capacity = 9;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 9);
	assert_int_equal(get_be64(unit->data_in), 4 + 80);
}

static void test_query_of_an_old_version(void **state)
{
	struct unit *unit = *state;
	struct list list = list_of(OSD_QUERY_ALL);
	struct engine_txn *txn;
	struct call call;

	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_snapshot(txn, P, NULL, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	unit_join(unit, M + 8, 1, 0);
	unit_set(unit, P, M + 9, TEST_PAGE, TEST_NUMBER, "", 0);
	add_range(&list, 7, 9);
	run(unit, C, &list);
	assert_matches(unit, 1 << 7);
	call = query_of(C, &list, 10);
	call.cdb.partition |= UINT64_C(1) << 48;
	call_run(unit, &call);
	shows_good(unit, QUERY, "of an old version: members and values of its time");
	assert_matches(unit, 7 << 7);
}

static void test_query_sets_and_gets_attributes_of_the_collection(void **state)
{
	struct unit *unit = *state;
	struct list list = list_of(OSD_QUERY_ALL);
	struct call call;

	add_range(&list, 1, 1);
	call = query_of(C, &list, 1);
	call_set(&call, OSD_COLLECTION_INFORMATION, OSD_INFORMATION_USERNAME, "asked", 5);
	call_get(&call, OSD_COLLECTION_INFORMATION, OSD_INFORMATION_USERNAME);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(get_be64(unit->data_in + HEAD), M + 1);
	assert_memory_equal(unit_retrieved(unit, &call, 0).value, "asked", 5);
}

/* ---- collections of matches ---- */

static struct call collecting(uint64_t collection, const struct list *list, uint64_t matches)
{
	struct call call = query_of(collection, list, 0);

	call.cdb.length = call.data_in_capacity = 0;
	call.cdb.address = matches;
	return call;
}

static void test_query_collects_its_matches(void **state)
{
	struct unit *unit = *state;
	struct list list = list_of(OSD_QUERY_ALL);
	struct tracked tracked;
	struct call call;

	add_range(&list, 2, 4);
	call = collecting(C, &list, T);
	call.cdb.immediate_tracking = true;
	call_run(unit, &call);
	shows_good(unit, QUERY, "into a matches collection, which is emptied before");
	assert_members(unit, T, 7 << 2);
	assert_members(unit, C, (1 << MEMBERS) - 1);
	tracked = unit_tracked(unit, T);
	assert_int_equal(tracked.percent, 100);
	assert_int_equal(tracked.ended, SCSI_STATUS_GOOD);
	assert_int_equal(tracked.members, MEMBERS);
	assert_int_equal(tracked.processed, MEMBERS);
	assert_int_equal(tracked.active, 0);
}

/* More members than one transaction looks at: W + i has the length i. */
enum { MANY = 600 };
#define W (O + 0x2000)

static void make_many(struct unit *unit)
{
	struct engine_address collection = { .partition = P, .object = C };
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_members_clear(txn, collection), 0);
	for (uint64_t i = 0; i < MANY; i++) {
		struct engine_address object = { .partition = P, .object = W + i };

		assert_int_equal(engine_create(txn, P, ENGINE_USER_OBJECT, W + i, 1, NULL), 0);
		assert_int_equal(engine_truncate(txn, object, i), 0);
		assert_int_equal(engine_member_insert(txn, collection, W + i), 0);
	}
	assert_int_equal(engine_commit(txn, false), 0);
}

static void test_query_collects_from_many_members_in_batches(void **state)
{
	struct unit *unit = *state;
	struct list list = list_of(OSD_QUERY_ALL);
	struct call call;
	uint64_t ids[MANY];
	uint8_t least[8];

	make_many(unit);
	put_be64(least, 100);
	add(&list, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, least, 8, NULL, 0);
	for (int immediately = 0; immediately <= 1; immediately++) {
		struct tracked tracked;

		call = collecting(C, &list, T);
		call.cdb.immediate_tracking = immediately;
		call_set(&call, OSD_COLLECTION_INFORMATION, OSD_INFORMATION_USERNAME, "asked", 5);
		call_run(unit, &call);
		shows_good(unit, QUERY,
			   "into a matches collection, of many members: in batches, with IMMED_TR "
			   "in the "
			   "background");
		unit_wait_ended(unit, T);
		tracked = unit_tracked(unit, T);
		assert_int_equal(tracked.members, MANY);
		assert_int_equal(tracked.processed, MANY);
		assert_int_equal(tracked.percent, 100);
		assert_int_equal(tracked.ended, SCSI_STATUS_GOOD);
		assert_int_equal(unit_members(unit, P, T, ids, MANY), MANY - 100);
		assert_int_equal(ids[0], W + 100);
	}
	/* The sets came once, and last. */
	assert_int_equal(
		unit_get(unit, P, C, OSD_COLLECTION_INFORMATION, OSD_INFORMATION_USERNAME, ids, 8),
		5);
}

static void test_query_collects_into_tracking_collections_only(void **state)
{
	static const uint64_t wrong[] = { C + 77, O, 5, C };
	struct unit *unit = *state;
	struct call create = call_of(OSD_CREATE_COLLECTION, P, C + 9);
	struct list list = list_of(OSD_QUERY_ALL);
	struct call call;

	add_range(&list, 2, 4);
	call_run(unit, &create);
	call = collecting(C, &list, C + 9);
	call_run(unit, &call);
	shows_field(unit, QUERY, "the matches collection is no tracking collection", 40);
	for (size_t i = 0; i < 4; i++) {
		call = collecting(C, &list, wrong[i]);
		call_run(unit, &call);
		shows_field(unit, QUERY,
			    "the matches collection is missing, no collection, or the searched one",
			    40);
	}
}

static void test_query_does_not_disturb_a_collection_at_work(void **state)
{
	struct unit *unit = *state;
	struct list list = list_of(OSD_QUERY_ALL);
	struct call call;

	add_range(&list, 2, 4);
	unit->device->trackers.entries[0] =
		(struct osd_tracker){ P, T, OSD_REMOVE_MEMBER_OBJECTS, false };
	call = collecting(C, &list, T);
	call_run(unit, &call);
	shows_field(unit, QUERY, "a command works on the matches collection", 40);
	assert_members(unit, T, (1 << MEMBERS) - 1);
}

/* ---- refusals ---- */

static void test_query_wants_one_place_for_its_matches(void **state)
{
	struct unit *unit = *state;
	struct list list = list_of(OSD_QUERY_ALL);
	struct call call;

	add_range(&list, 2, 4);
	call = query_of(C, &list, 10);
	call.cdb.address = T;
	call_run(unit, &call);
	shows_field(unit, QUERY, "allocation length and matches collection", 40);
	call = collecting(C, &list, 0);
	call_run(unit, &call);
	shows_field(unit, QUERY, "neither allocation length nor matches collection", 32);
	call = query_of(C, &list, 10);
	call.cdb.immediate_tracking = true;
	call_run(unit, &call);
	shows_field(unit, QUERY, "IMMED_TR without a matches collection", 11);
}

static void test_query_wants_a_query_list(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_QUERY, P, C);
	struct list list = list_of(OSD_QUERY_ALL);

	call.cdb.length = call.data_in_capacity = 100;
	call_run(unit, &call);
	shows_field(unit, QUERY, "no query list", 48);
	add_range(&list, 1, 2);
	call = query_of(C, &list, 10);
	call_descriptor(&call, OSD_CONTINUATION_QUERY_LIST, list.bytes, list.length);
	call_run(unit, &call);
	shows_field(unit, QUERY, "two query lists", 48);
}

static void test_query_refuses_malformed_lists(void **state)
{
	struct unit *unit = *state;
	struct list good = list_of(OSD_QUERY_ALL), list;

	add_range(&good, 1, 2);
	list = list_of(OSD_QUERY_ALL);
	run(unit, C, &list);
	shows_field(unit, QUERY, "no criterion", 48);
	list = good;
	list.bytes[0] = 2;
	run(unit, C, &list);
	shows_field(unit, QUERY, "unknown query type", 48);
	list = good;
	list.bytes[7]++;
	run(unit, C, &list);
	shows_field(unit, QUERY, "bounds that do not make up the criterion", 48);
	list = good;
	put_be16(list.bytes + 4 + 2, 11);
	run(unit, C, &list);
	expect_field(unit, 48);
	list = good;
	put_be16(list.bytes + 4 + 12, 0xFFFF);
	run(unit, C, &list);
	expect_field(unit, 48);
	list = good;
	list.length -= 8;
	run(unit, C, &list);
	shows_field(unit, QUERY, "a criterion beyond the list", 48);
	list = good;
	list.bytes[list.length + 3] = 1;
	list.length += 4;
	run(unit, C, &list);
	shows_field(unit, QUERY, "something behind the last criterion", 48);
}

static void test_query_limits_its_criteria(void **state)
{
	struct unit *unit = *state;
	struct list list = list_of(OSD_QUERY_ANY);
	uint8_t segment[48 + 4 + 8 + 65 * 16] = { OSD_CONTINUATION_FORMAT };
	struct call call = call_of(OSD_QUERY, P, C);
	struct encoded_call encoded;

	for (int i = 0; i < 65; i++)
		add(&list, TEST_PAGE, TEST_NUMBER, NULL, 0, NULL, 0);
	list.length += 4; /* a multiple of 8 */
	put_be16(segment + 2, OSD_QUERY);
	put_be16(segment + 40, OSD_CONTINUATION_QUERY_LIST);
	for (int count = 64; count <= 65; count++) {
		uint32_t bytes = 8 + 16 * (uint32_t)count;

		put_be32(segment + 44, bytes);
		memcpy(segment + 48, list.bytes, bytes);
		if (count == 64)
			memset(segment + 48 + bytes - 4, 0, 4);
		call.cdb.length = call.data_in_capacity = HEAD + 80;
		call.cdb.continuation_length = 48 + bytes;
		call_encode(&call, &encoded);
		unit_execute(unit, encoded.cdb, encoded.cdb_length, segment, 48 + bytes,
			     encoded.in_capacity);
		free(encoded.out);
		if (count == 64)
			assert_matches(unit, (1 << MEMBERS) - 1);
	}
	expect_field(unit, 48);
}

static void test_query_asks_for_attributes_of_user_objects(void **state)
{
	static const struct {
		uint32_t page, number;
	} wrong[] = {
		{ OSD_COLLECTION_INFORMATION, 1 },
		{ TEST_PAGE, OSD_ATTRIBUTE_ALL },
		{ OSD_PAGE_ALL, 1 },
		{ OSD_PAGE_CURRENT_COMMAND, 1 },
		{ OSD_PAGES_RESERVED, 1 },
	};
	struct unit *unit = *state;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct list list = list_of(OSD_QUERY_ANY);

		add(&list, wrong[i].page, wrong[i].number, NULL, 0, NULL, 0);
		run(unit, C, &list);
		shows_sense(unit, QUERY, "an attribute that user objects can't have, or a wildcard",
			    ILLEGAL_REQUEST, INVALID_FIELD_IN_PARAMETER_LIST);
		assert_int_equal(unit_sense(unit).attribute[0].page, wrong[i].page);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_members(test_query_finds_members_in_a_range),
		with_members(test_query_types_are_union_and_intersection),
		with_members(test_query_bounds_may_be_left_out),
		with_members(test_query_compares_byte_strings),
		with_members(test_query_skips_ids_without_an_object),
		with_members(test_query_tolerates_padding_and_extension_capabilities),
		with_members(test_query_counts_what_has_no_room),
		with_members(test_query_of_an_old_version),
		with_members(test_query_sets_and_gets_attributes_of_the_collection),
		with_members(test_query_collects_its_matches),
		with_members(test_query_collects_from_many_members_in_batches),
		with_members(test_query_collects_into_tracking_collections_only),
		with_members(test_query_does_not_disturb_a_collection_at_work),
		with_members(test_query_wants_one_place_for_its_matches),
		with_members(test_query_wants_a_query_list),
		with_members(test_query_refuses_malformed_lists),
		with_members(test_query_limits_its_criteria),
		with_members(test_query_asks_for_attributes_of_user_objects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
