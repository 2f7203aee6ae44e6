/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* REMOVE MEMBER OBJECTS; commands on members that are under way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "tests/osd/collections/many_members.h"

/* ---- REMOVE MEMBER OBJECTS ---- */

static void test_remove_member_objects_of_a_linear_collection(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE_MEMBER_OBJECTS, P, C);

	call_get(&call, OSD_COLLECTION_INFORMATION, OSD_INFORMATION_OBJECT_ID);
	call_run(unit, &call);
	shows_good(unit, REMOVE_MEMBER_OBJECTS, "linear: all in one");
	assert_int_equal(get_be64(unit_retrieved(unit, &call, 0).value), C);
	assert_members(unit, C, 0);
	for (uint64_t i = 0; i < MEMBERS; i++)
		assert_false(exists(unit, M + i));
	assert_true(exists(unit, O));
}

static void test_remove_member_objects_of_a_tracking_collection(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE_MEMBER_OBJECTS, P, U);
	uint64_t ids[MANY];
	struct tracked tracked;

	make_many(unit);
	call.cdb.immediate_tracking = true;
	call_set(&call, OSD_COLLECTION_INFORMATION, OSD_INFORMATION_USERNAME, "done", 4);
	call_run(unit, &call);
	shows_good(unit, REMOVE_MEMBER_OBJECTS,
		   "tracking, IMMED_TR: answered after the first batch, the others follow");
	unit_wait_ended(unit, U);
	tracked = unit_tracked(unit, U);
	assert_int_equal(tracked.percent, 100);
	assert_int_equal(tracked.active, 0);
	assert_int_equal(tracked.ended, SCSI_STATUS_GOOD);
	assert_int_equal(tracked.members, MANY);
	assert_int_equal(tracked.processed, MANY);
	assert_int_equal(tracked.newer + tracked.missing, 0);
	assert_int_equal(unit_members(unit, P, U, ids, MANY), 0);
	assert_false(exists(unit, W));
	assert_false(exists(unit, W + MANY - 1));
	/* The collection's sets and gets happen once, at the end. */
	assert_int_equal(
		unit_get(unit, P, U, OSD_COLLECTION_INFORMATION, OSD_INFORMATION_USERNAME, ids, 8),
		4);
}

static void test_remove_member_objects_waits_for_its_end_without_immed_tr(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE_MEMBER_OBJECTS, P, U);
	uint64_t ids[MANY];

	make_many(unit);
	call_run(unit, &call);
	shows_good(unit, REMOVE_MEMBER_OBJECTS, "tracking: in batches");
	assert_int_equal(unit_members(unit, P, U, ids, MANY), 0);
	/* So does one with IMMED_TR that asks for attributes: they come with the answer. */
	make_many_again(unit);
	call.cdb.immediate_tracking = true;
	call_get(&call, OSD_COLLECTION_TRACKING, OSD_TRACKING_PERCENT_COMPLETE);
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit_retrieved(unit, &call, 0).value[0], 100);
	assert_int_equal(unit_members(unit, P, U, ids, MANY), 0);
}

/* A unit that is closed stops between two batches; what remains to be done is in the collection. */
static void test_a_command_in_the_background_ends_with_the_unit(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE_MEMBER_OBJECTS, P, U);
	static const uint8_t uuid[16] = { 1 };
	uint64_t ids[MANY];
	size_t left;

	make_many(unit);
	call.cdb.immediate_tracking = true;
	call_run(unit, &call);
	expect_good(unit);
	osd_device_destroy(unit->device);
	assert_int_equal(osd_device_create(unit->engine, uuid, NULL, &unit->device), 0);
	left = unit_members(unit, P, U, ids, MANY);
	assert_true(left <= MANY - BATCH);
	for (uint64_t i = 0; i < MANY; i++)
		assert_int_equal(exists(unit, W + i), i >= MANY - left);
	assert_int_equal(unit_tracked(unit, U).ended,
			 left > 0 ? OSD_TRACKING_NOT_ENDED : SCSI_STATUS_GOOD);
	assert_int_equal(unit_tracked(unit, U).active, 0);
	call_run(unit, &call);
	expect_good(unit);
	unit_wait_ended(unit, U);
	assert_int_equal(unit_members(unit, P, U, ids, MANY), 0);
}

static void test_a_failure_in_the_background_is_told_by_the_tracking_page(void **state)
{
	struct unit *unit = *state;
	struct call call;
	struct tracked tracked;
	uint8_t sense[256];
	struct osd_sense decoded;

	make_many(unit);
	call = failing_call(unit, U, W + 80);
	call.cdb.immediate_tracking = true;
	call_run(unit, &call);
	shows_good(unit, SET_MEMBER_ATTRIBUTES,
		   "tracking, IMMED_TR: a later failure is told by the tracking page");
	unit_wait_ended(unit, U);
	tracked = unit_tracked(unit, U);
	assert_int_equal(tracked.ended, SCSI_STATUS_CHECK_CONDITION);
	assert_int_equal(tracked.processed, BATCH);
	assert_int_equal(unit_get(unit, P, U, OSD_COLLECTION_TRACKING, OSD_TRACKING_SENSE_DATA,
				  sense, sizeof(sense)),
			 tracked.sense_length);
	assert_int_equal(osd_sense_decode(sense, tracked.sense_length, &decoded), 0);
	assert_int_equal(decoded.code, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(decoded.attribute[0].page, OSD_USER_OBJECT_COLLECTIONS);
}

static void test_remove_member_objects_skips_what_is_missing_or_newer(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE_MEMBER_OBJECTS, P, T);
	struct call removal = call_of(OSD_REMOVE, P, M + 2);
	struct tracked tracked;

	call_run(unit, &removal);
	expect_good(unit);
	removal.cdb.object = M + 5;
	call_run(unit, &removal);
	expect_good(unit);
	unit_create(unit, P, M + 5);
	call_run(unit, &call);
	shows_good(unit, REMOVE_MEMBER_OBJECTS,
		   "tracking: missing and newer objects are skipped, counted, and leave");
	tracked = unit_tracked(unit, T);
	assert_int_equal(tracked.members, MEMBERS);
	assert_int_equal(tracked.processed, MEMBERS - 2);
	assert_int_equal(tracked.missing, 1);
	assert_int_equal(tracked.newer, 1);
	assert_int_equal(tracked.percent, 100);
	assert_members(unit, T, 0);
	assert_true(exists(unit, M + 5));
	assert_false(exists(unit, M + 4));
}

static void test_remove_member_objects_tracks_tracking_collections_only(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE_MEMBER_OBJECTS, P, C);

	call.cdb.immediate_tracking = true;
	call_run(unit, &call);
	shows_field(unit, REMOVE_MEMBER_OBJECTS, "IMMED_TR with a linear collection", 11);
	assert_members(unit, C, ALL);
}

static void test_remove_member_objects_waits_for_nobody(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE_MEMBER_OBJECTS, P, T);
	uint8_t active[2];

	pretend_at_work(unit, T);
	call_run(unit, &call);
	shows_field(unit, REMOVE_MEMBER_OBJECTS, "another command works on the tracking collection",
		    24);
	assert_members(unit, T, ALL);
	assert_int_equal(unit_get(unit, P, T, OSD_COLLECTION_TRACKING, OSD_TRACKING_ACTIVE_COMMAND,
				  active, 2),
			 2);
	assert_int_equal(get_be16(active), OSD_SET_MEMBER_ATTRIBUTES);
}

static void test_too_many_tracked_commands_are_refused(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_REMOVE_MEMBER_OBJECTS, P, T);

	for (uint64_t i = 0; i < OSD_TRACKERS_MAX; i++)
		unit->device->trackers.entries[i] =
			(struct osd_tracker){ P, W + i, OSD_QUERY, false };
	call_run(unit, &call);
	shows_sense(unit, REMOVE_MEMBER_OBJECTS,
		    "32 other commands on tracking collections are at work", ILLEGAL_REQUEST,
		    SYSTEM_RESOURCE_FAILURE);
}

static void test_a_collection_in_work_is_neither_removed_nor_copied(void **state)
{
	struct unit *unit = *state;
	struct call removal = call_of(OSD_REMOVE_COLLECTION, P, T);
	struct call copy = call_of(OSD_CREATE_USER_TRACKING_COLLECTION, P, T + 1);

	pretend_at_work(unit, T);
	removal.cdb.command_options = OSD_FORCE_COLLECTION_REMOVAL;
	call_run(unit, &removal);
	shows_field(unit, REMOVE_COLLECTION, "a command works on the tracking collection", 24);
	copy.cdb.address = T;
	call_run(unit, &copy);
	shows_field(unit, CREATE_USER_TRACKING_COLLECTION,
		    "a command works on the source, a tracking collection", 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_members(test_remove_member_objects_of_a_linear_collection),
		with_members(test_remove_member_objects_of_a_tracking_collection),
		with_members(test_remove_member_objects_waits_for_its_end_without_immed_tr),
		with_members(test_a_command_in_the_background_ends_with_the_unit),
		with_members(test_a_failure_in_the_background_is_told_by_the_tracking_page),
		with_members(test_remove_member_objects_skips_what_is_missing_or_newer),
		with_members(test_remove_member_objects_tracks_tracking_collections_only),
		with_members(test_remove_member_objects_waits_for_nobody),
		with_members(test_too_many_tracked_commands_are_refused),
		with_members(test_a_collection_in_work_is_neither_removed_nor_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
