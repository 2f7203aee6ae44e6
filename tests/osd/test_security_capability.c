/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What genuine capabilities allow: this command on this object, for so long, with these bits; and no way around it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/function_call.h"
#include "tests/osd/secured.h"

#define M (&secured_manager)

static const uint8_t methods[] = { OSD_CAPKEY, OSD_CMDRSP, OSD_ALLDATA };

static const struct osd_security_layout *layout(void)
{
	return osd_security_layout(unit_version);
}

/* A WRITE of `text` to the object. */
static struct signed_call write_of(struct unit *unit, uint8_t method, const char *text)
{
	struct signed_call call = signed_call_of(unit, OSD_WRITE, P, O, method);

	call_data(&call.call, text, strlen(text));
	return call;
}

/* Secures the partition and returns what is on the unit. */
static uint64_t secure(struct unit *unit, uint8_t method)
{
	secured_set_method(unit, P, method);
	return contents_of(unit);
}

/* ---- what a genuine capability does not allow ---- */

static void change_format(struct osd_capability *capability)
{
	capability->format ^= 3;
}

static void change_algorithm(struct osd_capability *capability)
{
	capability->algorithm = 2;
}

static void change_key_version(struct osd_capability *capability)
{
	capability->key_version = 0;
}

static void let_expire(struct osd_capability *capability)
{
	capability->expires_ms = UNIT_CLOCK - 1;
}

static void change_created_time(struct osd_capability *capability)
{
	capability->created_ms = UNIT_CLOCK + 1;
}

static void change_type(struct osd_capability *capability)
{
	capability->object_type = OSD_TYPE_PARTITION;
}

static void change_descriptor(struct osd_capability *capability)
{
	capability->descriptor_type = OSD_DESCRIPTOR_PARTITION;
}

static void take_permission(struct osd_capability *capability)
{
	capability->permissions &= (uint16_t)~OSD_PERMISSION_WRITE;
}

static void change_tag(struct osd_capability *capability)
{
	capability->policy_tag = 77;
}

static void change_partition(struct osd_capability *capability)
{
	capability->partition = P + 1;
}

static void change_version(struct osd_capability *capability)
{
	capability->partition = P | UINT64_C(1) << 48;
}

static void change_object(struct osd_capability *capability)
{
	capability->object = O + 1;
}

static void restrict_attributes(struct osd_capability *capability)
{
	capability->attributes_access = 1;
}

static void change_epoch(struct osd_capability *capability)
{
	capability->boot_epoch = 999;
}

static void test_a_genuine_capability_for_something_else_is_refused(void **state)
{
	const struct {
		void (*change)(struct osd_capability *capability);
		uint16_t field;
	} cases[] = {
		{ change_format, 80 },
		{ change_algorithm, 81 },
		{ change_key_version, 81 },
		{ let_expire, 84 },
		{ change_created_time, 122 },
		{ change_type, 128 },
		{ take_permission, 129 },
		{ change_descriptor, 135 },
		{ change_tag, layout()->policy_tag },
		{ change_partition, layout()->partition },
		{ change_version, layout()->partition },
		{ change_object, layout()->object },
		{ restrict_attributes, layout()->attributes_access },
		{ change_epoch, layout()->boot_epoch },
	};
	struct unit *unit = *state;

	for (size_t i = 0; i < sizeof(methods); i++) {
		uint64_t before = secure(unit, methods[i]);
		uint8_t off = OSD_NOSEC;
		struct signed_call call;

		for (size_t j = 0; j < sizeof(cases) / sizeof(cases[0]); j++) {
			if (cases[j].field == 0)
				continue; /* OSD-1 does not have it */
			call = write_of(unit, methods[i], "refused");
			cases[j].change(&call.capability);
			signed_run(unit, &call);
			expect_field(unit, cases[j].field);
			assert_int_equal(contents_of(unit), before);
		}
		call = signed_call_of(unit, OSD_SET_ATTRIBUTES, P, 0, methods[i]);
		call_set(&call.call, OSD_PARTITION_SECURITY, OSD_SECURITY_DEFAULT_METHOD, &off, 1);
		signed_run(unit, &call);
		expect_good(unit);
	}
}

static void test_times_tags_and_epochs_that_are_right_are_accepted(void **state)
{
	struct unit *unit = *state;
	uint8_t tag[4] = { 0, 0, 0, 77 }, epoch[2];
	struct signed_call call;

	unit_set(unit, P, O, OSD_USER_OBJECT_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG, tag, 4);
	unit_get(unit, 0, 0, OSD_ROOT_SECURITY, OSD_SECURITY_BOOT_EPOCH, epoch, 2);
	secure(unit, OSD_CMDRSP);
	call = write_of(unit, OSD_CMDRSP, "allowed");
	call.capability.policy_tag = 77;
	call.capability.created_ms = UNIT_CLOCK;
	call.capability.expires_ms = UNIT_CLOCK;
	call.capability.boot_epoch = unit_version == OSD_1 ? 0 : get_be16(epoch);
	signed_run(unit, &call);
	expect_good(unit);
	call = write_of(unit, OSD_CMDRSP, "forever");
	call.capability.expires_ms = 0;
	signed_run(unit, &call);
	expect_good(unit);
	/* A new tag withdraws the capabilities with the old one. */
	call = signed_call_of(unit, OSD_SET_ATTRIBUTES, P, O, OSD_CMDRSP);
	call_set(&call.call, OSD_USER_OBJECT_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG, "\0\0\0\x4E",
		 4);
	signed_run(unit, &call);
	expect_good(unit);
	call = write_of(unit, OSD_CMDRSP, "withdrawn");
	call.capability.policy_tag = 77;
	signed_run(unit, &call);
	expect_field(unit, layout()->policy_tag);
}

static void test_new_objects_and_partitions_inherit_their_policy(void **state)
{
	struct unit *unit = *state;
	uint8_t tag[4] = { 0, 0, 0, 5 }, value[4], method = OSD_CAPKEY;
	struct signed_call call;

	unit_set(unit, P, 0, OSD_PARTITION_SECURITY, OSD_SECURITY_USER_OBJECT_POLICY_ACCESS_TAG,
		 tag, 4);
	unit_create(unit, P, O + 1);
	assert_int_equal(unit_get(unit, P, O + 1, OSD_USER_OBJECT_SECURITY,
				  OSD_SECURITY_POLICY_ACCESS_TAG, value, 4),
			 4);
	assert_memory_equal(value, tag, 4);
	unit_set(unit, 0, 0, OSD_ROOT_SECURITY, OSD_SECURITY_PARTITION_DEFAULT_METHOD, &method, 1);
	unit_create_partition(unit, P + 1);
	struct call read = call_of(OSD_LIST, P + 1, 0);

	call_run(unit, &read);
	expect_field(unit, 80);
	/* The tag of objects to come is what a capability to create them has. */
	secure(unit, OSD_CMDRSP);
	call = signed_call_of(unit, OSD_CREATE, P, 0, OSD_CMDRSP);
	call.capability.policy_tag = 6;
	signed_run(unit, &call);
	expect_field(unit, layout()->policy_tag);
	call = signed_call_of(unit, OSD_CREATE, P, 0, OSD_CMDRSP);
	call.capability.policy_tag = 5;
	signed_run(unit, &call);
	expect_good(unit);
}

/* ---- permissions ---- */

static void fill_nothing(struct call *call)
{
	(void)call;
}

static void fill_data(struct call *call)
{
	call_data(call, "data", 4);
}

static void fill_room(struct call *call)
{
	call->data_in_capacity = call->cdb.length = 64;
}

static void fill_get(struct call *call)
{
	call_get(call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH);
}

static void fill_current_command(struct call *call)
{
	call_get(call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_RESPONSE_CHECK_VALUE);
}

static void fill_set(struct call *call)
{
	call_set(call, 0x10000, 1, "value", 5);
}

static void fill_tag(struct call *call)
{
	call_set(call, OSD_USER_OBJECT_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG, "\0\0\0\0", 4);
}

static void fill_length(struct call *call)
{
	call_set_number(call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, 10);
}

static void fill_set_and_get(struct call *call)
{
	call_data(call, "data", 4);
	fill_set(call);
	fill_get(call);
}

static void test_each_permission_is_needed_and_enough(void **state)
{
	static const struct {
		uint16_t action;
		uint64_t partition, object;
		void (*fill)(struct call *call);
		uint16_t permissions;
	} cases[] = {
		{ OSD_READ, P, O, fill_room, OSD_PERMISSION_READ },
		{ OSD_WRITE, P, O, fill_data, OSD_PERMISSION_WRITE },
		{ OSD_APPEND, P, O, fill_data, OSD_PERMISSION_APPEND },
		{ OSD_FLUSH, P, O, fill_nothing, OSD_PERMISSION_OBJ_MGMT },
		{ OSD_CREATE, P, 0, fill_nothing, OSD_PERMISSION_CREATE },
		{ OSD_LIST, P, 0, fill_room, OSD_PERMISSION_READ },
		{ OSD_LIST, 0, 0, fill_room, OSD_PERMISSION_READ | OSD_PERMISSION_GLOBAL },
		{ OSD_FLUSH_PARTITION, P, 0, fill_nothing, OSD_PERMISSION_OBJ_MGMT },
		{ OSD_FLUSH_OSD, 0, 0, fill_nothing, OSD_PERMISSION_OBJ_MGMT },
		{ OSD_GET_ATTRIBUTES, P, O, fill_get, OSD_PERMISSION_GET_ATTR },
		{ OSD_SET_ATTRIBUTES, P, O, fill_set, OSD_PERMISSION_SET_ATTR },
		{ OSD_SET_ATTRIBUTES, P, O, fill_tag,
		  OSD_PERMISSION_SET_ATTR | OSD_PERMISSION_POL_SEC },
		{ OSD_SET_ATTRIBUTES, P, O, fill_length,
		  OSD_PERMISSION_SET_ATTR | OSD_PERMISSION_WRITE },
		{ OSD_WRITE, P, O, fill_set_and_get,
		  OSD_PERMISSION_WRITE | OSD_PERMISSION_SET_ATTR | OSD_PERMISSION_GET_ATTR },
		{ OSD_FLUSH, P, O, fill_current_command, OSD_PERMISSION_OBJ_MGMT },
		{ OSD_CREATE_PARTITION, P + 9, 0, fill_nothing,
		  OSD_PERMISSION_CREATE | OSD_PERMISSION_GLOBAL },
		{ OSD_REMOVE_PARTITION, P + 9, 0, fill_nothing,
		  OSD_PERMISSION_REMOVE | OSD_PERMISSION_GLOBAL },
		{ OSD_REMOVE, P, O, fill_nothing, OSD_PERMISSION_REMOVE },
		{ OSD_FORMAT_OSD, 0, 0, fill_nothing,
		  OSD_PERMISSION_OBJ_MGMT | OSD_PERMISSION_GLOBAL },
	};
	struct unit *unit = *state;

	secured_set_method(unit, 0, OSD_CMDRSP);
	struct signed_call set = signed_call_of(unit, OSD_SET_ATTRIBUTES, P, 0, OSD_CMDRSP);
	uint8_t method = OSD_CMDRSP;

	call_set(&set.call, OSD_PARTITION_SECURITY, OSD_SECURITY_DEFAULT_METHOD, &method, 1);
	signed_run(unit, &set);
	expect_good(unit);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t before = contents_of(unit);
		struct signed_call call;

		for (unsigned bit = 0; bit < 16; bit++) {
			if (!(cases[i].permissions >> bit & 1))
				continue;
			call = signed_call_of(unit, cases[i].action, cases[i].partition,
					      cases[i].object, OSD_CMDRSP);
			cases[i].fill(&call.call);
			call.capability.permissions = (uint16_t) ~(1u << bit);
			signed_run(unit, &call);
			expect_field(unit, 129);
			assert_int_equal(contents_of(unit), before);
		}
		call = signed_call_of(unit, cases[i].action, cases[i].partition, cases[i].object,
				      OSD_CMDRSP);
		cases[i].fill(&call.call);
		call.capability.permissions = cases[i].permissions;
		signed_run(unit, &call);
		expect_good(unit);
	}
}

static void test_a_range_is_not_left(void **state)
{
	static const struct {
		uint16_t action;
		uint64_t address, length;
		bool allowed;
	} cases[] = {
		{ OSD_READ, 100, 50, true },   { OSD_READ, 120, 10, true },
		{ OSD_READ, 99, 50, false },   { OSD_READ, 100, 51, false },
		{ OSD_READ, 150, 0, true },    { OSD_READ, 151, 0, false },
		{ OSD_CLEAR, 100, 50, true },  { OSD_CLEAR, 0, 200, false },
		{ OSD_PUNCH, 100, 10, false }, { OSD_READ, 0, UINT32_MAX, false },
	};
	struct unit *unit = *state;
	uint64_t before = secure(unit, OSD_CMDRSP);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct signed_call call = signed_call_of(unit, cases[i].action, P, O, OSD_CMDRSP);

		call.call.cdb.address = cases[i].address;
		call.call.cdb.length = cases[i].length;
		call.call.data_in_capacity = cases[i].action == OSD_READ ? cases[i].length : 0;
		if (call.call.data_in_capacity > 4096)
			call.call.data_in_capacity = call.call.cdb.length = 4096;
		call.capability.range_start = 100;
		call.capability.range_length = 50;
		signed_run(unit, &call);
		if (cases[i].allowed) {
			expect_good(unit);
			before = contents_of(unit);
		} else {
			expect_field(unit, 168);
			assert_int_equal(contents_of(unit), before);
		}
	}
	struct signed_call call = signed_call_of(unit, OSD_SET_ATTRIBUTES, P, O, OSD_CMDRSP);

	call.capability.range_length = 5000;
	fill_length(&call.call);
	signed_run(unit, &call);
	expect_field(unit, 168);
	call = signed_call_of(unit, OSD_APPEND, P, O, OSD_CMDRSP);
	call.capability.range_length = 5000;
	call_data(&call.call, "x", 1);
	signed_run(unit, &call);
	expect_field(unit, 168);
	/* Pieces: one outside is enough. */
	call = write_of(unit, OSD_CMDRSP, "12345678");
	call.call.cdb.length = 0;
	call.capability.range_length = 50;
	call_piece(&call.call, 10, 4);
	call_piece(&call.call, 47, 4);
	signed_run(unit, &call);
	expect_field(unit, 168);
}

/* ---- other ways to an object ---- */

static void copy_from(struct call *call, uint64_t partition, uint64_t object)
{
	struct osd_copy_source source = { .partition = partition, .object = object };
	uint8_t content[OSD_COPY_SOURCE_BYTES];

	osd_copy_source_encode(&source, content);
	call_descriptor(call, OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
}

static void test_no_copy_leaves_a_secured_partition(void **state)
{
	struct unit *unit = *state;
	struct call plain = call_of(OSD_COPY_USER_OBJECTS, P + 1, 0);
	struct signed_call call;

	unit_create_partition(unit, P + 1);
	copy_from(&plain, P, O);
	call_run(unit, &plain);
	expect_good(unit);
	secure(unit, OSD_CAPKEY);
	call_run(unit, &plain);
	expect_field(unit, 129);
	/* Inside of it, a copy reads another object than the capability names. */
	call = signed_call_of(unit, OSD_COPY_USER_OBJECTS, P, O + 1, OSD_CMDRSP);
	copy_from(&call.call, P, O);
	call.capability.permissions = (uint16_t)~OSD_PERMISSION_GLOBAL;
	call.capability.object_type = OSD_TYPE_USER_OBJECT;
	signed_run(unit, &call);
	expect_field(unit, 129);
	call = signed_call_of(unit, OSD_COPY_USER_OBJECTS, P, O + 1, OSD_CMDRSP);
	copy_from(&call.call, P, O);
	signed_run(unit, &call);
	expect_good(unit);
}

/* A snapshot or clone of P, made with the root key. */
static struct signed_call duplicate_call(struct unit *unit, uint16_t action, uint64_t partition)
{
	struct signed_call call = signed_call_of(unit, action, partition, 0, OSD_CMDRSP);

	call.call.cdb.address = P;
	call.secret = M->root.authentication;
	return call;
}

static void expect_read(struct unit *unit, uint64_t partition, const uint8_t *secret, int field)
{
	struct signed_call call = signed_call_of(unit, OSD_READ, partition, O, OSD_CMDRSP);
	struct call plain = call_of(OSD_READ, partition, O);

	call_run(unit, &plain);
	expect_field(unit, 80);
	call.secret = secret;
	signed_run(unit, &call);
	if (field == 0)
		expect_good(unit);
	else
		expect_field(unit, field);
}

static void test_snapshots_are_as_secure_as_their_partition_is_now(void **state)
{
	const uint8_t *secret = M->working[KEY_VERSION].authentication;
	struct unit *unit = *state;
	struct signed_call call;
	struct call plain;

	/* One from when the partition was open. */
	plain = call_of(OSD_CREATE_SNAPSHOT, P + 1, 0);
	plain.cdb.address = P;
	call_run(unit, &plain);
	expect_good(unit);
	secure(unit, OSD_CMDRSP);
	expect_read(unit, P + 1, secret, 0);
	/* One of the secured partition: not without the root key, though the root is open. */
	plain.cdb.partition = P + 2;
	call_run(unit, &plain);
	expect_field(unit, 80);
	call = duplicate_call(unit, OSD_CREATE_SNAPSHOT, P + 2);
	call.secret = secret;
	signed_run(unit, &call);
	expect_field(unit, layout()->check_value);
	call = duplicate_call(unit, OSD_CREATE_SNAPSHOT, P + 2);
	signed_run(unit, &call);
	expect_good(unit);
	expect_read(unit, P + 2, secret, 0);
	/* It shows what counts. */
	call = signed_call_of(unit, OSD_GET_ATTRIBUTES, P + 2, 0, OSD_CMDRSP);
	call_get(&call.call, OSD_PARTITION_SECURITY, OSD_SECURITY_DEFAULT_METHOD);
	call_get(&call.call, OSD_PARTITION_SECURITY,
		 OSD_SECURITY_WORKING_KEY_IDENTIFIERS + KEY_VERSION);
	signed_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit_retrieved(unit, &call.call, 0).value[0], OSD_CMDRSP);
	assert_int_equal(unit_retrieved(unit, &call.call, 1).length, 7);
}

static void test_a_clone_is_closed_until_it_has_keys_of_its_own(void **state)
{
	struct key_pair partition_key, working;
	struct unit *unit = *state;
	struct signed_call call;
	struct call plain;

	secure(unit, OSD_CMDRSP);
	plain = call_of(OSD_CREATE_CLONE, P + 1, 0);
	plain.cdb.address = P;
	call_set(&plain, OSD_PARTITION_SECURITY, OSD_SECURITY_DEFAULT_METHOD, "\0", 1);
	call_run(unit, &plain);
	expect_field(unit, 80);
	call = duplicate_call(unit, OSD_CREATE_CLONE, P + 1);
	signed_run(unit, &call);
	expect_good(unit);
	expect_read(unit, P + 1, M->working[KEY_VERSION].authentication, 81);
	call = signed_set_key(unit, OSD_SET_PARTITION_KEY, P + 1, 0, 0x71, &partition_key);
	signed_run(unit, &call);
	expect_good(unit);
	M->partition = partition_key;
	call = signed_set_key(unit, OSD_SET_WORKING_KEY, P + 1, KEY_VERSION, 0x72, &working);
	signed_run(unit, &call);
	expect_good(unit);
	expect_read(unit, P + 1, M->working[KEY_VERSION].authentication, layout()->check_value);
	expect_read(unit, P + 1, working.authentication, 0);
	expect_read(unit, P, working.authentication, layout()->check_value);
}

static void test_restoring_a_partition_brings_no_old_policy_back(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	struct call plain = call_of(OSD_CREATE_SNAPSHOT, P + 1, 0);

	plain.cdb.address = P;
	call_run(unit, &plain);
	expect_good(unit);
	secure(unit, OSD_CMDRSP);
	call = signed_call_of(unit, OSD_RESTORE_PARTITION_FROM_SNAPSHOT, P, 0, OSD_CMDRSP);
	call.call.cdb.address = P + 1;
	signed_run(unit, &call);
	expect_good(unit);
	expect_read(unit, P, M->working[KEY_VERSION].authentication, 0);
}

static struct signed_call rollback_to(struct unit *unit, struct function_call *function,
				      uint64_t version)
{
	struct signed_call call;

	function_of(function, OSD_FUNCTION_ROLLBACK, P, 0);
	osd_item_add_number(&function->writer, OSD_ITEM_VERSION, version);
	call = signed_call_of(unit, OSD_EXECUTE, P, 0, OSD_ALLDATA);
	call.call.data_in_capacity = 4096;
	call_data(&call.call, function->parameters, function->writer.length);
	call.call.cdb.length = 4096;
	call.call.cdb.address =
		osd_execute_address(OSD_FUNCTION_ROLLBACK, (uint32_t)function->writer.length);
	return call;
}

static void test_going_back_in_time_brings_no_old_policy_back(void **state)
{
	struct unit *unit = *state;
	struct function_call function;
	struct signed_call call;
	struct key_pair old = M->working[KEY_VERSION];
	uint64_t version;

	function_subscribe(unit);
	function_of(&function, OSD_FUNCTION_SNAPSHOT, P, 0);
	function_run(unit, &function);
	expect_good(unit);
	version = function_number(unit, OSD_ITEM_VERSION);
	unit_write(unit, O, 0, "later", 5);
	secure(unit, OSD_CMDRSP);
	call = signed_set_key(unit, OSD_SET_WORKING_KEY, P, KEY_VERSION, 0x44,
			      &M->working[KEY_VERSION]);
	signed_run(unit, &call);
	expect_good(unit);

	call = rollback_to(unit, &function, version);
	signed_run(unit, &call);
	expect_good(unit);
	struct call plain = call_of(OSD_READ, P, O);

	call_run(unit, &plain);
	expect_field(unit, 80);
	call = signed_call_of(unit, OSD_READ, P, O, OSD_CMDRSP);
	call.call.data_in_capacity = call.call.cdb.length = 5;
	call.secret = old.authentication;
	signed_run(unit, &call);
	expect_field(unit, layout()->check_value);
	call.secret = M->working[KEY_VERSION].authentication;
	signed_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, "xxxxx", 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_keys_in_both(test_a_genuine_capability_for_something_else_is_refused),
		with_keys_in_both(test_times_tags_and_epochs_that_are_right_are_accepted),
		with_keys_in_both(test_new_objects_and_partitions_inherit_their_policy),
		with_keys_in_both(test_each_permission_is_needed_and_enough),
		with_keys(test_a_range_is_not_left),
		with_keys(test_no_copy_leaves_a_secured_partition),
		with_keys(test_snapshots_are_as_secure_as_their_partition_is_now),
		with_keys(test_a_clone_is_closed_until_it_has_keys_of_its_own),
		with_keys(test_restoring_a_partition_brings_no_old_policy_back),
		with_keys(test_going_back_in_time_brings_no_old_policy_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
