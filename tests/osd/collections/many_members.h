/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A tracking collection of many members, and what commands on them do not expect. */
#ifndef MUNINN_TESTS_OSD_COLLECTIONS_MANY_MEMBERS_H
#define MUNINN_TESTS_OSD_COLLECTIONS_MANY_MEMBERS_H

#include "tests/osd/collection_calls.h"

#define ALL ((1U << MEMBERS) - 1)

/*
 * A tracking collection of so many members that they take several transactions: W .. W + MANY - 1.
 */
enum { MANY = 150, BATCH = 64 };

#define W (O + 0x2000)
#define U (O + 0x3000)

static inline void make_many_again(struct unit *unit)
{
	struct engine_address collection = { .partition = P, .object = U };
	struct engine_txn *txn;

	for (uint64_t i = 0; i < MANY; i++)
		unit_create(unit, P, W + i);
	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	for (uint64_t i = 0; i < MANY; i++)
		assert_int_equal(engine_member_insert(txn, collection, W + i), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static inline void make_many(struct unit *unit)
{
	struct call create = call_of(OSD_CREATE_USER_TRACKING_COLLECTION, P, U);

	call_run(unit, &create);
	expect_good(unit);
	make_many_again(unit);
}

static inline bool exists(struct unit *unit, uint64_t object)
{
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, object);

	call_run(unit, &call);
	return unit->command.status == SCSI_STATUS_GOOD;
}

/* W + 80 can't get the attribute: it is in collection C under another number. */
static inline struct call failing_call(struct unit *unit, uint64_t collection, uint64_t obstacle)
{
	struct call call = call_of(OSD_SET_MEMBER_ATTRIBUTES, P, collection);
	struct call create = call_of(OSD_CREATE_COLLECTION, P, C + 100);

	call_run(unit, &create);
	expect_good(unit);
	unit_join(unit, obstacle, 9, C + 100);
	call_set_number(&call, OSD_USER_OBJECT_COLLECTIONS, 2, C + 100);
	return call;
}

/* A command of another session at work on the collection. */
static inline void pretend_at_work(struct unit *unit, uint64_t collection)
{
	unit->device->trackers.entries[3] =
		(struct osd_tracker){ P, collection, OSD_SET_MEMBER_ATTRIBUTES, false };
}

#endif
