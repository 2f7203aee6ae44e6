/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Withdraws what a command under way is allowed by, from another session. */
#include "tests/osd/withdrawals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "wire/vendor.h"

void withdraw_key(struct unit *unit, uint8_t version)
{
	struct key_pair ignored;
	struct signed_call call =
		signed_set_key(unit, OSD_SET_WORKING_KEY, P, version, 0x66, &ignored);

	signed_run(unit, &call);
	expect_good(unit);
}

static void change_key(struct unit *unit)
{
	withdraw_key(unit, KEY_VERSION);
}

void members_set_signed(struct unit *unit, uint64_t object, uint8_t type, uint32_t page,
			uint32_t number, const void *value, uint32_t length)
{
	struct signed_call call = signed_call_of(unit, OSD_SET_ATTRIBUTES, P, object, OSD_CMDRSP);

	call.capability.object_type = type;
	call.capability.descriptor_type = osd_descriptor_type(OSD_2, type);
	call_set(&call.call, page, number, value, length);
	signed_run(unit, &call);
	expect_good(unit);
}

static void freeze_key(struct unit *unit)
{
	static const uint8_t versions[2] = { 0, 1 << KEY_VERSION };

	members_set_signed(unit, 0, OSD_TYPE_PARTITION, OSD_PARTITION_SECURITY,
			   OSD_SECURITY_FROZEN_KEYS, versions, sizeof(versions));
}

/* That of the commands below. */
static const uint8_t audit[20] = "somebody's";

static void freeze_audit(struct unit *unit)
{
	members_set_signed(unit, 0, OSD_TYPE_PARTITION, OSD_PARTITION_FROZEN_AUDITS, 1, audit,
			   sizeof(audit));
}

void withdraw_object_tag(struct unit *unit)
{
	static const uint8_t tag[4] = { 0, 0, 0, TAG + 1 };

	members_set_signed(unit, O, OSD_TYPE_USER_OBJECT, OSD_USER_OBJECT_SECURITY,
			   OSD_SECURITY_POLICY_ACCESS_TAG, tag, sizeof(tag));
}

void withdraw_collection_tags(struct unit *unit)
{
	static const uint8_t tag[4] = { 0, 0, 0, TAG + 1 };

	members_set_signed(unit, TRACKING, OSD_TYPE_COLLECTION, OSD_COLLECTION_SECURITY,
			   OSD_SECURITY_POLICY_ACCESS_TAG, tag, sizeof(tag));
	members_set_signed(unit, LINEAR, OSD_TYPE_COLLECTION, OSD_COLLECTION_SECURITY,
			   OSD_SECURITY_POLICY_ACCESS_TAG, tag, sizeof(tag));
}

void withdraw_openness(struct unit *unit)
{
	secured_set_method(unit, P, OSD_CMDRSP);
}

/* ---- commands ---- */

void expect_withdrawn(struct unit *unit, const struct withdrawal *withdrawal)
{
	uint16_t field = withdrawal->code;

	if (!withdrawal->is_field) {
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, withdrawal->code);
		return;
	}
	expect_field(unit, field);
}

void withdrawals_of(changing *tag_change, struct withdrawal list[WITHDRAWALS])
{
	list[0] = (struct withdrawal){ change_key, true, unit_layout()->check_value };
	list[1] = (struct withdrawal){ freeze_key, false, SENSE_SECURITY_WORKING_KEY_FROZEN };
	list[2] = (struct withdrawal){ freeze_audit, false, SENSE_SECURITY_AUDIT_VALUE_FROZEN };
	list[3] = (struct withdrawal){ tag_change, true, unit_layout()->policy_tag };
}

static void create_collection(struct unit *unit, uint64_t partition, uint16_t action,
			      uint64_t collection, uint64_t source)
{
	struct call call = call_of(action, partition, collection);

	call.cdb.address = source;
	call_run(unit, &call);
	expect_good(unit);
}

void members_fill(struct unit *unit, uint64_t partition, uint16_t count)
{
	struct call create = call_of(OSD_CREATE, partition, 0);

	create_collection(unit, partition, OSD_CREATE_COLLECTION, LINEAR, 0);
	call_set_number(&create, OSD_USER_OBJECT_COLLECTIONS, 1, LINEAR);
	while (count > 0) {
		create.cdb.objects = count < OSD_CREATE_OBJECTS_MAX ? count
								    : OSD_CREATE_OBJECTS_MAX;
		count -= create.cdb.objects;
		call_run(unit, &create);
		expect_good(unit);
	}
	create_collection(unit, partition, OSD_CREATE_USER_TRACKING_COLLECTION, TRACKING, LINEAR);
	create_collection(unit, partition, OSD_CREATE_USER_TRACKING_COLLECTION, MATCHES, 0);
}

static void set_tag(struct unit *unit, uint64_t object, uint32_t page)
{
	static const uint8_t tag[4] = { 0, 0, 0, TAG };

	unit_set(unit, P, object, page, OSD_SECURITY_POLICY_ACCESS_TAG, tag, sizeof(tag));
}

uint64_t members_of(struct unit *unit, uint64_t partition, uint64_t collection)
{
	struct engine_address address = { .partition = partition, .object = collection };
	struct engine_stat stat;
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_stat(txn, address, &stat), 0);
	engine_abort(txn);
	return stat.members;
}

void members_begin(void **state, uint16_t count)
{
	secured_set_up(state);
	members_fill(*state, P, count);
	set_tag(*state, O, OSD_USER_OBJECT_SECURITY);
	set_tag(*state, LINEAR, OSD_COLLECTION_SECURITY);
	set_tag(*state, TRACKING, OSD_COLLECTION_SECURITY);
	secured_set_method(*state, P, OSD_CMDRSP);
}

struct signed_call members_call(struct unit *unit, uint16_t action, uint64_t object, uint8_t type)
{
	struct signed_call call = signed_call_of(unit, action, P, object, OSD_CMDRSP);

	call.capability.object_type = type;
	call.capability.descriptor_type = osd_descriptor_type(OSD_2, type);
	call.capability.policy_tag = TAG;
	memcpy(call.capability.audit, audit, sizeof(audit));
	return call;
}

struct signed_call members_query(struct unit *unit, uint64_t matches)
{
	struct signed_call call = members_call(unit, OSD_QUERY, LINEAR, OSD_TYPE_COLLECTION);
	uint8_t list[20] = { 0x01, 0, 0, 0, 0, 0, 0, 12 };

	put_be32(list + 8, OSD_USER_OBJECT_INFORMATION);
	put_be32(list + 12, OSD_INFORMATION_LOGICAL_LENGTH);
	call_descriptor(&call.call, OSD_CONTINUATION_QUERY_LIST, list, sizeof(list));
	call.call.cdb.address = matches;
	if (matches == 0)
		call.call.cdb.length = call.call.data_in_capacity = 64;
	return call;
}

/* ---- commands in the background ---- */

void members_let_go(struct unit *unit)
{
	struct call call = call_of(OSD_REMOVE_MEMBER_OBJECTS, OTHER, TRACKING);

	unit->device->background.started = false;
	call.cdb.immediate_tracking = true;
	call_run(unit, &call);
	expect_good(unit);
	for (int i = 0; i < 10000000 && members_of(unit, OTHER, TRACKING) != 0; i++)
		sched_yield();
	assert_int_equal(members_of(unit, OTHER, TRACKING), 0);
}

uint16_t members_ended_status(struct unit *unit, uint64_t collection)
{
	struct engine_address address = { .partition = P, .object = collection };
	uint8_t value[2];
	uint32_t length;
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_attribute_get(txn, address, OSD_COLLECTION_TRACKING,
					      OSD_TRACKING_ENDED_STATUS, value, sizeof(value),
					      &length),
			 0);
	engine_abort(txn);
	return get_be16(value);
}
