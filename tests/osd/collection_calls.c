/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Calls that the tests of collections make again and again. */
#include "tests/osd/collection_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>

#include "common/bytes.h"

void unit_join(struct unit *unit, uint64_t object, uint32_t number, uint64_t collection)
{
	uint8_t value[8];

	put_be64(value, collection);
	unit_set(unit, P, object, OSD_USER_OBJECT_COLLECTIONS, number, value, collection ? 8 : 0);
}

int unit_set_up_with_members(void **state)
{
	struct unit *unit;
	struct call linear, tracking;

	unit_set_up_with_object(state);
	unit = *state;
	linear = call_of(OSD_CREATE_COLLECTION, P, C);
	call_run(unit, &linear);
	expect_good(unit);
	for (uint64_t i = 0; i < MEMBERS; i++) {
		unit_create(unit, P, M + i);
		unit_join(unit, M + i, 1, C);
		unit_set_number(unit, P, M + i, TEST_PAGE, TEST_NUMBER, i);
	}
	tracking = call_of(OSD_CREATE_USER_TRACKING_COLLECTION, P, T);
	tracking.cdb.address = C;
	call_run(unit, &tracking);
	expect_good(unit);
	return 0;
}

size_t unit_members(struct unit *unit, uint64_t partition, uint64_t collection, uint64_t *ids,
		    size_t capacity)
{
	struct call call = call_of(OSD_LIST_COLLECTION, partition, collection);
	struct osd_listed_object object;
	struct osd_list_head head;
	size_t count = 0, position = OSD_LIST_HEAD_BYTES;

	call.cdb.length = call.data_in_capacity = OSD_LIST_HEAD_BYTES + 8 * capacity;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(osd_list_head_decode(call.cdb.version, unit->data_in,
					      unit->command.data_in_length, &head),
			 0);
	assert_int_equal(head.continuation_id, 0);
	while (osd_listed_next(&head, unit->data_in, unit->command.data_in_length, &position,
			       &object))
		ids[count++] = object.id;
	return count;
}

void assert_members(struct unit *unit, uint64_t collection, unsigned mask)
{
	uint64_t ids[64];
	size_t count = unit_members(unit, P, collection, ids, 64);
	unsigned found = 0;

	for (size_t i = 0; i < count; i++)
		found |= 1U << (ids[i] - M);
	assert_int_equal(found, mask);
}

static uint64_t get(struct unit *unit, uint64_t collection, uint32_t number, uint32_t wanted)
{
	uint8_t value[8] = { 0 };
	uint64_t sum = 0;

	assert_int_equal(unit_get(unit, P, collection, OSD_COLLECTION_TRACKING, number, value, 8),
			 wanted);
	for (uint32_t i = 0; i < wanted; i++)
		sum = sum << 8 | value[i];
	return sum;
}

void unit_wait_ended(struct unit *unit, uint64_t collection)
{
	/* Only a hang gets to the end of this. */
	for (int i = 0; i < 10000000; i++) {
		if (get(unit, collection, OSD_TRACKING_ACTIVE_COMMAND, 2) == 0)
			return;
		sched_yield();
	}
	fail_msg("a command on collection %llx does not end", (unsigned long long)collection);
}

struct tracked unit_tracked(struct unit *unit, uint64_t collection)
{
	uint8_t sense[256];

	return (struct tracked){
		.percent = (unsigned)get(unit, collection, OSD_TRACKING_PERCENT_COMPLETE, 1),
		.active = (unsigned)get(unit, collection, OSD_TRACKING_ACTIVE_COMMAND, 2),
		.ended = (unsigned)get(unit, collection, OSD_TRACKING_ENDED_STATUS, 2),
		.members = get(unit, collection, OSD_TRACKING_MEMBERS, 8),
		.processed = get(unit, collection, OSD_TRACKING_PROCESSED, 8),
		.newer = get(unit, collection, OSD_TRACKING_NEWER_SKIPPED, 8),
		.missing = get(unit, collection, OSD_TRACKING_MISSING_SKIPPED, 8),
		.sense_length = unit_get(unit, P, collection, OSD_COLLECTION_TRACKING,
					 OSD_TRACKING_SENSE_DATA, sense, sizeof(sense)),
	};
}
