/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Collections from the client's side: against the target itself, behind a loopback session. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/collections.h"
#include "common/bytes.h"
#include "tests/client/local_target.h"

#define PARTITION UINT64_C(0x10000)
/* Made by several commands. */
enum { OBJECTS = 6000, PARTS = 3 };

struct fixture {
	struct local_target target;
	struct osd_client *client; /* the target's */
	uint64_t first;            /* of OBJECTS objects */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	local_target_serve(&f->target, 64 << 20);
	f->client = f->target.client;
	assert_int_equal(osd_client_create_partition(f->client, PARTITION, -1, NULL, NULL), 0);
	for (unsigned part = 0; part < PARTS; part++) {
		uint64_t first;

		assert_int_equal(osd_client_create(f->client, PARTITION, 0, OBJECTS / PARTS, &first,
						   NULL, NULL),
				 0);
		if (part == 0)
			f->first = first;
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	local_target_close(&f->target);
	free(f);
	return 0;
}

static struct osd_client_address at(uint64_t object)
{
	return (struct osd_client_address){ .partition = PARTITION, .object = object };
}

/* IDs that were listed: how many, the first, the last. */
struct listed {
	uint64_t count, first, last;
};

static int take(void *context, uint64_t id)
{
	struct listed *listed = context;

	if (listed->count++ == 0)
		listed->first = id;
	listed->last = id;
	return 0;
}

static struct listed list(struct fixture *f, uint64_t collection)
{
	struct listed listed = { 0 };

	assert_int_equal(
		osd_client_list_collection(f->client, at(collection), 0, take, &listed, NULL), 0);
	return listed;
}

static void test_members_join_and_leave(void **state)
{
	struct fixture *f = *state;
	struct osd_client_error error;
	uint64_t films, books;
	struct listed listed;

	assert_int_equal(osd_client_create_collection(f->client, PARTITION, 0, &films, NULL), 0);
	assert_int_equal(
		osd_client_create_collection(f->client, PARTITION, films + 100, &books, NULL), 0);
	assert_int_equal(books, films + 100);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(
			osd_client_join_collection(f->client, at(f->first + i), films, NULL), 0);
	assert_int_equal(osd_client_join_collection(f->client, at(f->first), books, NULL), 0);
	assert_int_equal(osd_client_join_collection(f->client, at(f->first), films, NULL), 0);
	listed = list(f, films);
	assert_int_equal(listed.count, 3);
	assert_int_equal(listed.first, f->first);
	assert_int_equal(osd_client_leave_collection(f->client, at(f->first + 1), films, NULL), 0);
	assert_int_equal(osd_client_leave_collection(f->client, at(f->first + 1), films, &error),
			 -ENODATA);
	assert_non_null(strstr(error.sentence.text, "not a member"));
	assert_int_equal(list(f, films).count, 2);
	listed = list(f, 0);
	assert_int_equal(listed.count, 2);
	assert_int_equal(listed.last, books);
	assert_int_equal(osd_client_join_collection(f->client, at(f->first), 0x999999, &error),
			 -EINVAL);
	assert_int_equal(osd_client_create_collection(f->client, PARTITION, films, NULL, &error),
			 -EEXIST);
}

static void test_collections_are_removed_when_empty_or_by_force(void **state)
{
	struct fixture *f = *state;
	uint64_t collection;

	assert_int_equal(osd_client_create_collection(f->client, PARTITION, 0, &collection, NULL),
			 0);
	assert_int_equal(osd_client_join_collection(f->client, at(f->first), collection, NULL), 0);
	assert_int_equal(osd_client_remove_collection(f->client, at(collection), false, NULL),
			 -ENOTEMPTY);
	assert_int_equal(osd_client_remove_collection(f->client, at(collection), true, NULL), 0);
	assert_int_equal(osd_client_remove_collection(f->client, at(collection), true, NULL),
			 -ENOENT);
	assert_int_equal(list(f, 0).count, 0);
}

/*
 * A collection with all objects, by their creation's attribute: made through a tracking collection
 * of a copy.
 */
static uint64_t collect_all(struct fixture *f)
{
	uint64_t collection, first;
	uint8_t value[8];
	struct osd_client_value set = { OSD_USER_OBJECT_COLLECTIONS, 1, value, 8 };
	struct osd_request request = {
		.cdb = { .action = OSD_CREATE, .partition = PARTITION, .objects = OBJECTS / PARTS },
		.sets = &set,
		.set_count = 1
	};

	assert_int_equal(osd_client_create_collection(f->client, PARTITION, 0, &collection, NULL),
			 0);
	put_be64(value, collection);
	for (unsigned part = 0; part < PARTS; part++)
		assert_int_equal(osd_client_run(f->client, &request), 0);
	first = collection + 1;
	assert_int_equal(list(f, collection).first, first);
	return collection;
}

static void test_queries_return_more_matches_than_they_have_room_for(void **state)
{
	struct fixture *f = *state;
	struct osd_client_criterion length = { .page = OSD_USER_OBJECT_INFORMATION,
					       .number = OSD_INFORMATION_LOGICAL_LENGTH };
	uint64_t collection = collect_all(f);
	struct listed listed = { 0 };
	uint8_t ten[8];

	assert_int_equal(
		osd_client_query(f->client, at(collection), true, &length, 1, take, &listed, NULL),
		0);
	assert_int_equal(listed.count, OBJECTS);
	put_be64(ten, 10);
	length.minimum = ten;
	length.minimum_length = 8;
	assert_int_equal(osd_client_truncate(f->client, at(collection + 5), 10, NULL), 0);
	assert_int_equal(osd_client_truncate(f->client, at(collection + 6), 9, NULL), 0);
	listed = (struct listed){ 0 };
	assert_int_equal(
		osd_client_query(f->client, at(collection), true, &length, 1, take, &listed, NULL),
		0);
	assert_int_equal(listed.count, 1);
	assert_int_equal(listed.first, collection + 5);
}

static void test_members_are_removed_through_a_tracking_collection(void **state)
{
	struct fixture *f = *state;
	uint64_t collection = collect_all(f), tracking;

	assert_int_equal(osd_client_create_tracking_collection(f->client, PARTITION, 0, collection,
							       &tracking, NULL),
			 0);
	assert_int_equal(list(f, tracking).count, OBJECTS);
	assert_int_equal(osd_client_remove_members(f->client, at(f->first), NULL), -EINVAL);
	assert_int_equal(osd_client_remove_members(f->client, at(tracking), NULL), 0);
	assert_int_equal(list(f, tracking).count, 0);
	assert_int_equal(list(f, collection).count, 0);
}

/* More than the target removes with one command. */
static void test_members_of_a_large_collection_are_removed(void **state)
{
	struct fixture *f = *state;
	uint64_t collection = collect_all(f);

	assert_int_equal(osd_client_remove_members(f->client, at(collection), NULL), 0);
	assert_int_equal(list(f, collection).count, 0);
	assert_int_equal(list(f, 0).count, 1);
}

static void test_criteria_that_do_not_fit_are_told(void **state)
{
	struct fixture *f = *state;
	static uint8_t long_value[60000];
	struct osd_client_criterion criteria[2] = {
		{ .page = 1, .number = 9, .minimum = long_value, .minimum_length = 60000 },
		{ .page = 1, .number = 9, .minimum = long_value, .minimum_length = 60000 },
	};
	struct osd_client_error error;
	struct listed listed = { 0 };
	uint64_t collection = collect_all(f);

	criteria[0].maximum = long_value;
	criteria[0].maximum_length = 60000;
	assert_int_equal(osd_client_query(f->client, at(collection), true, criteria, 1, take,
					  &listed, &error),
			 -EMSGSIZE);
	/* More than the target takes in a continuation segment. */
	assert_int_equal(osd_client_query(f->client, at(collection), true, criteria + 1, 1, take,
					  &listed, &error),
			 0);
	criteria[0].maximum_length = 0;
	assert_int_equal(osd_client_query(f->client, at(collection), true, criteria, 2, take,
					  &listed, &error),
			 -EINVAL);
	assert_int_equal(listed.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_members_join_and_leave, setup, teardown),
		cmocka_unit_test_setup_teardown(test_collections_are_removed_when_empty_or_by_force,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_queries_return_more_matches_than_they_have_room_for, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_members_are_removed_through_a_tracking_collection, setup, teardown),
		cmocka_unit_test_setup_teardown(test_members_of_a_large_collection_are_removed,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_criteria_that_do_not_fit_are_told, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
