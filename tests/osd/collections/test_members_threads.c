/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Commands on tracking collections side by side with others: their progress is seen, and nothing
 * gets lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/collection_calls.h"

enum { WORKERS = 3, EACH = 400 };
#define FIRST(worker)    (O + 0x10000 * (uint64_t)((worker) + 1))
#define TRACKING(worker) (O + 0x1000 + (uint64_t)(worker))

struct work {
	struct unit *unit;
	int number;
	bool failed;
};

/* Encodes and executes without the unit's buffers, which belong to the main thread. */
static uint8_t execute(struct unit *unit, struct osd_cdb *cdb, const struct osd_list_writer *list,
		       uint8_t *answer, size_t room)
{
	uint8_t bytes[OSD_CDB_BYTES_MAX];
	struct osd_command command = { .cdb = bytes, .data_in = answer, .data_in_capacity = room };

	cdb->version = OSD_2;
	cdb->format = OSD_ATTRIBUTES_LIST;
	if (list && list->role == OSD_LIST_TO_SET)
		cdb->set_data.length = (uint32_t)list->length;
	else if (list)
		cdb->get_list.length = (uint32_t)list->length;
	cdb->retrieved.length = (uint32_t)room;
	if (osd_cdb_encode(cdb, bytes, &command.cdb_length) != 0)
		return 0xFF;
	command.data_out = list ? list->data : NULL;
	command.data_out_length = list ? list->length : 0;
	osd_execute(unit->device, &command);
	return command.status;
}

static void *set_members(void *context)
{
	struct work *work = context;
	uint8_t bytes[64];
	struct osd_list_writer list;
	struct osd_cdb cdb = { .action = OSD_SET_MEMBER_ATTRIBUTES,
			       .partition = P,
			       .object = TRACKING(work->number),
			       .immediate_tracking = true };

	osd_list_begin(&list, OSD_2, OSD_LIST_TO_SET, bytes, sizeof(bytes));
	osd_list_add_value(&list, TEST_PAGE, TEST_NUMBER, "done", 4);
	work->failed = execute(work->unit, &cdb, &list, NULL, 0) != SCSI_STATUS_GOOD;
	return NULL;
}

/* Percent complete never goes back, and only known commands are at work. */
static void *watch(void *context)
{
	struct work *work = context;
	unsigned percent = 0;

	for (int i = 0; i < 200 && percent < 100; i++) {
		uint8_t bytes[64], answer[256] = { 0 };
		struct osd_list_writer list;
		struct osd_cdb cdb = { .action = OSD_GET_ATTRIBUTES,
				       .partition = P,
				       .object = TRACKING(work->number) };
		struct osd_list_reader reader;
		struct osd_attribute attribute;

		osd_list_begin(&list, OSD_2, OSD_LIST_TO_GET, bytes, sizeof(bytes));
		osd_list_add_request(&list, OSD_COLLECTION_TRACKING, OSD_TRACKING_PERCENT_COMPLETE);
		osd_list_add_request(&list, OSD_COLLECTION_TRACKING, OSD_TRACKING_ACTIVE_COMMAND);
		if (execute(work->unit, &cdb, &list, answer, sizeof(answer)) != SCSI_STATUS_GOOD ||
		    osd_list_read(&reader, OSD_2, OSD_LIST_RETRIEVED, answer, sizeof(answer)) != 0)
			work->failed = true;
		osd_list_next(&reader, &attribute);
		if (attribute.length == 1 && attribute.value[0] < percent)
			work->failed = true;
		percent = attribute.length == 1 ? attribute.value[0] : percent;
		osd_list_next(&reader, &attribute);
		if (attribute.length != 2 ||
		    (get_be16(attribute.value) != 0 &&
		     get_be16(attribute.value) != OSD_SET_MEMBER_ATTRIBUTES))
			work->failed = true;
	}
	return NULL;
}

static void make_collection(struct unit *unit, int worker)
{
	struct call create = call_of(OSD_CREATE_USER_TRACKING_COLLECTION, P, TRACKING(worker));
	struct engine_address collection = { .partition = P, .object = TRACKING(worker) };
	struct engine_txn *txn;

	call_run(unit, &create);
	expect_good(unit);
	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	for (uint64_t i = 0; i < EACH; i++) {
		assert_int_equal(
			engine_create(txn, P, ENGINE_USER_OBJECT, FIRST(worker) + i, 1, NULL), 0);
		assert_int_equal(engine_member_insert(txn, collection, FIRST(worker) + i), 0);
	}
	assert_int_equal(engine_commit(txn, false), 0);
}

static void test_tracked_commands_run_side_by_side(void **state)
{
	struct unit *unit = *state;
	struct work works[2 * WORKERS];
	pthread_t threads[2 * WORKERS];
	uint8_t value[8];

	for (int i = 0; i < WORKERS; i++)
		make_collection(unit, i);
	for (int i = 0; i < 2 * WORKERS; i++) {
		works[i] = (struct work){ .unit = unit, .number = i % WORKERS };
		assert_int_equal(pthread_create(&threads[i], NULL,
						i < WORKERS ? set_members : watch, &works[i]),
				 0);
	}
	for (int i = 0; i < 2 * WORKERS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_false(works[i].failed);
	}
	for (int i = 0; i < WORKERS; i++) {
		struct tracked tracked;

		unit_wait_ended(unit, TRACKING(i));
		tracked = unit_tracked(unit, TRACKING(i));
		assert_int_equal(tracked.processed, EACH);
		assert_int_equal(tracked.percent, 100);
		assert_int_equal(tracked.active, 0);
		for (uint64_t n = 0; n < EACH; n++)
			assert_int_equal(
				unit_get(unit, P, FIRST(i) + n, TEST_PAGE, TEST_NUMBER, value, 8),
				4);
	}
}

static void test_one_of_two_commands_on_a_tracking_collection_is_refused_or_waits(void **state)
{
	struct unit *unit = *state;
	struct work works[2] = { { .unit = unit }, { .unit = unit } };
	pthread_t threads[2];
	uint8_t value[8];

	make_collection(unit, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, set_members, &works[i]), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_false(works[0].failed && works[1].failed);
	unit_wait_ended(unit, TRACKING(0));
	for (uint64_t n = 0; n < EACH; n++)
		assert_int_equal(unit_get(unit, P, FIRST(0) + n, TEST_PAGE, TEST_NUMBER, value, 8),
				 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_tracked_commands_run_side_by_side),
		with_object(test_one_of_two_commands_on_a_tracking_collection_is_refused_or_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
