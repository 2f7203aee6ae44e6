/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What genuine capabilities allow: this command on this object, for so long, with these bits; and
 * no way around it.
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
#include "wire/keys_exchange.h"

#define M (&secured_manager)

/* ---- what a genuine capability does not allow ---- */

static void change_format(struct osd_capability *capability)
{
	capability->format ^= 3;
}

static void change_type(struct osd_capability *capability)
{
	capability->object_type = OSD_TYPE_PARTITION;
}

static void take_permission(struct osd_capability *capability)
{
	capability->permissions &= (uint16_t)~OSD_PERMISSION_WRITE;
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
		{ change_tag, unit_layout()->policy_tag },
		{ change_partition, unit_layout()->partition },
		{ change_version, unit_layout()->partition },
		{ change_object, unit_layout()->object },
		{ restrict_attributes, unit_layout()->attributes_access },
		{ change_epoch, unit_layout()->boot_epoch },
	};
	struct unit *unit = *state;

	for (size_t i = 0; i < SECURED_METHODS; i++) {
		uint64_t before = secured_close(unit, secured_methods[i]);
		struct signed_call call;

		for (size_t j = 0; j < sizeof(cases) / sizeof(cases[0]); j++) {
			if (cases[j].field == 0)
				continue; /* OSD-1 does not have it */
			call = signed_write(unit, secured_methods[i], "refused");
			cases[j].change(&call.capability);
			signed_run(unit, &call);
			expect_field(unit, cases[j].field);
			assert_int_equal(contents_of(unit), before);
		}
		secured_reopen(unit, secured_methods[i]);
	}
}

static void test_times_tags_and_epochs_that_are_right_are_accepted(void **state)
{
	struct unit *unit = *state;
	uint8_t tag[4] = { 0, 0, 0, 77 }, epoch[2];
	struct signed_call call;

	unit_set(unit, P, O, OSD_USER_OBJECT_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG, tag, 4);
	unit_get(unit, 0, 0, OSD_ROOT_SECURITY, OSD_SECURITY_BOOT_EPOCH, epoch, 2);
	secured_close(unit, OSD_CMDRSP);
	call = signed_write(unit, OSD_CMDRSP, "allowed");
	call.capability.policy_tag = 77;
	call.capability.created_ms = UNIT_CLOCK;
	call.capability.expires_ms = UNIT_CLOCK;
	call.capability.boot_epoch = unit_version == OSD_1 ? 0 : get_be16(epoch);
	signed_run(unit, &call);
	expect_good(unit);
	call = signed_write(unit, OSD_CMDRSP, "forever");
	call.capability.expires_ms = 0;
	signed_run(unit, &call);
	expect_good(unit);
	/* A new tag withdraws the capabilities with the old one. */
	call = signed_call_of(unit, OSD_SET_ATTRIBUTES, P, O, OSD_CMDRSP);
	call_set(&call.call, OSD_USER_OBJECT_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG, "\0\0\0\x4E",
		 4);
	signed_run(unit, &call);
	expect_good(unit);
	call = signed_write(unit, OSD_CMDRSP, "withdrawn");
	call.capability.policy_tag = 77;
	signed_run(unit, &call);
	expect_field(unit, unit_layout()->policy_tag);
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
	secured_close(unit, OSD_CMDRSP);
	call = signed_call_of(unit, OSD_CREATE, P, 0, OSD_CMDRSP);
	call.capability.policy_tag = 6;
	signed_run(unit, &call);
	expect_field(unit, unit_layout()->policy_tag);
	call = signed_call_of(unit, OSD_CREATE, P, 0, OSD_CMDRSP);
	call.capability.policy_tag = 5;
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_the_root_shows_its_own_method(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;

	secured_set_method(unit, 0, OSD_CMDRSP);
	call = signed_call_of(unit, OSD_GET_ATTRIBUTES, 0, 0, OSD_CMDRSP);
	call_get(&call.call, OSD_ROOT_SECURITY, OSD_SECURITY_DEFAULT_METHOD);
	signed_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit_retrieved(unit, &call.call, 0).length, 1);
	assert_int_equal(unit_retrieved(unit, &call.call, 0).value[0], OSD_CMDRSP);
}

static void expect_policy(struct unit *unit, uint64_t partition, uint32_t page, uint32_t number,
			  const char *bytes, uint32_t length)
{
	uint8_t value[16] = { 0 };

	assert_int_equal(unit_get(unit, partition, 0, page, number, value, sizeof(value)), length);
	assert_memory_equal(value, bytes, length);
}

static void test_what_the_unit_supports_is_shown(void **state)
{
	struct unit *unit = *state;

	/* Ten minutes; a minute, unless somebody says otherwise. */
	expect_policy(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_OLDEST_NONCE, "\0\0\0\x09\x27\xC0",
		      6);
	expect_policy(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_NEWEST_NONCE, "\0\0\0\x09\x27\xC0",
		      6);
	expect_policy(unit, P, OSD_PARTITION_SECURITY, OSD_SECURITY_OLDEST_NONCE,
		      "\0\0\0\0\xEA\x60", 6);
	expect_policy(unit, P, OSD_PARTITION_SECURITY, OSD_SECURITY_NEWEST_NONCE,
		      "\0\0\0\0\xEA\x60", 6);
	unit_set(unit, P, 0, OSD_PARTITION_SECURITY, OSD_SECURITY_OLDEST_NONCE, "\0\0\0\0\0\1", 6);
	expect_policy(unit, P, OSD_PARTITION_SECURITY, OSD_SECURITY_OLDEST_NONCE, "\0\0\0\0\0\1",
		      6);
	expect_policy(unit, P, OSD_PARTITION_SECURITY, OSD_SECURITY_NEWEST_NONCE,
		      "\0\0\0\0\xEA\x60", 6);
	expect_policy(unit, P, OSD_PARTITION_SECURITY, OSD_SECURITY_NONCE_LIST_DEPTH, "\xFF\xFF",
		      2);
	expect_policy(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_SUPPORTED_METHODS, "\0\x0F", 2);
	expect_policy(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_ALGORITHMS, "\1", 1);
	/* RFC 3526's groups of 2048 and of 3072 bits. */
	expect_policy(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_DH_GROUPS,
		      (const char[]){ OSD_DH_GROUP_2048 }, 1);
	expect_policy(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_DH_GROUPS + 1,
		      (const char[]){ OSD_DH_GROUP_3072 }, 1);
	expect_policy(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_PARTITION_DEFAULT_METHOD, "\0", 1);
	unit_set(unit, 0, 0, OSD_ROOT_SECURITY, OSD_SECURITY_PARTITION_DEFAULT_METHOD, "\2", 1);
	expect_policy(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_PARTITION_DEFAULT_METHOD, "\2", 1);
}

/* ---- ranges ---- */

static void fill_length(struct call *call)
{
	call_set_number(call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, 10);
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
	uint64_t before = secured_close(unit, OSD_CMDRSP);

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
	/* Neither another attribute of that page nor one of that number is the length. */
	call = signed_call_of(unit, OSD_SET_ATTRIBUTES, P, O, OSD_CMDRSP);
	call.capability.range_length = 5000;
	call_set(&call.call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME, "raven", 5);
	call_set_number(&call.call, 0x10000, OSD_INFORMATION_LOGICAL_LENGTH, 10);
	signed_run(unit, &call);
	expect_good(unit);
	call = signed_call_of(unit, OSD_APPEND, P, O, OSD_CMDRSP);
	call.capability.range_length = 5000;
	call_data(&call.call, "x", 1);
	signed_run(unit, &call);
	expect_field(unit, 168);
}

/* Pieces: one outside is enough. */
static void test_no_piece_leaves_a_range(void **state)
{
	static const struct {
		uint64_t address, first, second;
		bool allowed;
	} cases[] = {
		{ 0, 110, 147, false }, { 0, 147, 110, false }, { 0, 99, 110, false },
		{ 0, 110, 99, false },  { 0, 100, 146, true },  { 0, 146, 100, true },
		{ 50, 50, 96, true },   { 50, 96, 49, false },
	};
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_CMDRSP);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct signed_call call = signed_write(unit, OSD_CMDRSP, "12345678");

		call.call.cdb.address = cases[i].address;
		call.call.cdb.length = 0;
		call.capability.range_start = 100;
		call.capability.range_length = 50;
		call_piece(&call.call, cases[i].first, 4);
		call_piece(&call.call, cases[i].second, 4);
		signed_run(unit, &call);
		if (cases[i].allowed) {
			expect_good(unit);
			before = contents_of(unit);
		} else {
			expect_field(unit, 168);
			assert_int_equal(contents_of(unit), before);
		}
	}
}

/* ---- what withdraws the past ---- */

/* Is the version of O from before its tag became another one shown with a tag? */
static bool finds_old(struct unit *unit, uint32_t tag)
{
	struct signed_call call =
		signed_call_of(unit, OSD_READ, P | UINT64_C(1) << 48, O, OSD_CMDRSP);

	call.call.cdb.length = call.call.data_in_capacity = 5;
	call.capability.policy_tag = tag;
	signed_run(unit, &call);
	if (unit->command.status == SCSI_STATUS_GOOD)
		return true;
	expect_field(unit, unit_layout()->policy_tag);
	return false;
}

static void test_a_new_tag_withdraws_the_past_of_an_object_as_long_as_it_is_there(void **state)
{
	struct unit *unit = *state;
	struct call removal = call_of(OSD_REMOVE, P, O);

	unit_set(unit, P, O, OSD_USER_OBJECT_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG, "\0\0\0\x4D",
		 4);
	function_subscribe(unit);
	assert_int_equal(function_snapshot(unit, P, NULL), 1);
	secured_close(unit, OSD_CMDRSP);
	assert_true(finds_old(unit, 77));
	secured_reopen(unit, OSD_CMDRSP);
	unit_set(unit, P, O, OSD_USER_OBJECT_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG, "\0\0\0\x4E",
		 4);
	secured_close(unit, OSD_CMDRSP);
	assert_false(finds_old(unit, 77));
	assert_true(finds_old(unit, 78));
	secured_reopen(unit, OSD_CMDRSP);
	call_run(unit, &removal);
	expect_good(unit);
	secured_set_method(unit, P, OSD_CMDRSP);
	/* Nothing but the past is left to say it. */
	assert_true(finds_old(unit, 77));
	assert_false(finds_old(unit, 78));
}

/* ---- other ways to an object ---- */

/* A snapshot or clone of P, made with the root key and the right to read P. */
static struct signed_call duplicate_call(struct unit *unit, uint16_t action, uint64_t partition)
{
	struct signed_call call = signed_call_of(unit, action, partition, 0, OSD_CMDRSP);

	call.call.cdb.address = P;
	call.secret = M->root.authentication;
	signed_extend(&call, P, 0, OSD_TYPE_PARTITION, OSD_PERMISSION_READ);
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
	secured_close(unit, OSD_CMDRSP);
	expect_read(unit, P + 1, secret, 0);
	/* One of the secured partition: not without the root key, though the root is open. */
	plain.cdb.partition = P + 2;
	call_run(unit, &plain);
	expect_field(unit, 80);
	call = duplicate_call(unit, OSD_CREATE_SNAPSHOT, P + 2);
	call.secret = secret;
	signed_run(unit, &call);
	expect_field(unit, unit_layout()->check_value);
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
	struct key_pair working;
	struct unit *unit = *state;
	struct signed_call call;
	struct call plain;

	secured_close(unit, OSD_CMDRSP);
	plain = call_of(OSD_CREATE_CLONE, P + 1, 0);
	plain.cdb.address = P;
	call_set(&plain, OSD_PARTITION_SECURITY, OSD_SECURITY_DEFAULT_METHOD, "\0", 1);
	call_run(unit, &plain);
	expect_field(unit, 80);
	call = duplicate_call(unit, OSD_CREATE_CLONE, P + 1);
	signed_run(unit, &call);
	expect_good(unit);
	expect_read(unit, P + 1, M->working[KEY_VERSION].authentication, 81);
	secured_set_keys_of(unit, P + 1, 0x71, &working);
	expect_read(unit, P + 1, M->working[KEY_VERSION].authentication,
		    unit_layout()->check_value);
	expect_read(unit, P + 1, working.authentication, 0);
	expect_read(unit, P, working.authentication, unit_layout()->check_value);
}

static void test_restoring_a_partition_brings_no_old_policy_back(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	struct call plain = call_of(OSD_CREATE_SNAPSHOT, P + 1, 0);

	plain.cdb.address = P;
	call_run(unit, &plain);
	expect_good(unit);
	secured_close(unit, OSD_CMDRSP);
	call = signed_call_of(unit, OSD_RESTORE_PARTITION_FROM_SNAPSHOT, P, 0, OSD_CMDRSP);
	call.call.cdb.address = P + 1;
	signed_extend(&call, P + 1, 0, OSD_TYPE_PARTITION, OSD_PERMISSION_READ);
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
	secured_close(unit, OSD_CMDRSP);
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
	expect_field(unit, unit_layout()->check_value);
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
		with_keys(test_the_root_shows_its_own_method),
		with_keys(test_what_the_unit_supports_is_shown),
		with_keys(test_a_range_is_not_left),
		with_keys(test_no_piece_leaves_a_range),
		with_keys(test_a_new_tag_withdraws_the_past_of_an_object_as_long_as_it_is_there),
		with_keys(test_snapshots_are_as_secure_as_their_partition_is_now),
		with_keys(test_a_clone_is_closed_until_it_has_keys_of_its_own),
		with_keys(test_restoring_a_partition_brings_no_old_policy_back),
		with_keys(test_going_back_in_time_brings_no_old_policy_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
