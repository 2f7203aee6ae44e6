/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Commands on secured partitions: who has the right credential gets what it allows; whatever is
 * wrong is refused with the field at fault, and nothing was done.
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

/* ---- methods ---- */

static void test_without_credential_nothing_is_done(void **state)
{
	static const uint16_t actions[] = { OSD_READ,   OSD_WRITE,           OSD_APPEND,
					    OSD_CREATE, OSD_REMOVE,          OSD_GET_ATTRIBUTES,
					    OSD_FLUSH,  OSD_CREATE_AND_WRITE };
	struct unit *unit = *state;

	for (size_t i = 0; i < sizeof(methods); i++) {
		uint64_t before = secure(unit, methods[i]);

		for (size_t j = 0; j < sizeof(actions) / sizeof(actions[0]); j++) {
			bool creates = actions[j] == OSD_CREATE ||
				       actions[j] == OSD_CREATE_AND_WRITE;
			struct call call = call_of(actions[j], P, creates ? 0 : O);

			osd_capability_nosec(&call.cdb, OSD_TYPE_USER_OBJECT);
			call_run(unit, &call);
			assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
			assert_false(answer_is_signed(unit));
			assert_int_equal(contents_of(unit), before);
		}
		/* To switch security off there is no way but with a credential. */
		struct call off = call_of(OSD_SET_ATTRIBUTES, P, 0);
		uint8_t method = OSD_NOSEC;

		call_set(&off, OSD_PARTITION_SECURITY, OSD_SECURITY_DEFAULT_METHOD, &method, 1);
		call_run(unit, &off);
		expect_field(unit, 80);
		assert_int_equal(contents_of(unit), before);

		struct signed_call signed_off =
			signed_call_of(unit, OSD_SET_ATTRIBUTES, P, 0, methods[i]);

		call_set(&signed_off.call, OSD_PARTITION_SECURITY, OSD_SECURITY_DEFAULT_METHOD,
			 &method, 1);
		signed_run(unit, &signed_off);
		expect_good(unit);
	}
}

static void test_with_a_credential_commands_do_their_work(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < sizeof(methods); i++) {
		struct signed_call call;

		secured_set_method(unit, P, OSD_NOSEC);
		secured_set_method(unit, P, OSD_NOSEC);
		secure(unit, methods[i]);
		call = write_of(unit, methods[i], "hello");
		call_set(&call.call, 0x10000, 1, "attribute", 9);
		call_get(&call.call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH);
		signed_run(unit, &call);
		expect_good(unit);
		assert_int_equal(get_be64(unit_retrieved(unit, &call.call, 0).value), 4096);

		call = signed_call_of(unit, OSD_READ, P, O, methods[i]);
		call.call.cdb.length = 8;
		call.call.data_in_capacity = 8;
		call_get(&call.call, 0x10000, 1);
		signed_run(unit, &call);
		expect_good(unit);
		assert_memory_equal(unit->data_in, "helloxxx", 8);
		assert_memory_equal(unit_retrieved(unit, &call.call, 0).value, "attribute", 9);

		call = signed_call_of(unit, OSD_LIST, P, 0, methods[i]);
		call.call.cdb.length = 256;
		call.call.data_in_capacity = 256;
		signed_run(unit, &call);
		expect_good(unit);
		assert_int_equal(get_be64(unit->data_in + OSD_LIST_HEAD_BYTES), O);

		call = signed_call_of(unit, OSD_CREATE, P, 0, methods[i]);
		call_get(&call.call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_ID);
		signed_run(unit, &call);
		expect_good(unit);
		call = signed_call_of(unit, OSD_REMOVE, P,
				      get_be64(unit_retrieved(unit, &call.call, 0).value),
				      methods[i]);
		signed_run(unit, &call);
		expect_good(unit);

		uint8_t off = OSD_NOSEC;

		call = signed_call_of(unit, OSD_SET_ATTRIBUTES, P, 0, methods[i]);
		call_set(&call.call, OSD_PARTITION_SECURITY, OSD_SECURITY_DEFAULT_METHOD, &off, 1);
		signed_run(unit, &call);
		expect_good(unit);
	}
}

static void test_a_capability_may_be_stronger_but_not_weaker(void **state)
{
	struct unit *unit = *state;

	uint64_t before = secure(unit, OSD_CMDRSP);
	struct signed_call call = write_of(unit, OSD_CAPKEY, "weak");

	signed_run(unit, &call);
	expect_field(unit, 82);
	call = write_of(unit, OSD_NOSEC, "weak");
	signed_run(unit, &call);
	expect_field(unit, 82);
	call = write_of(unit, OSD_CMDRSP, "weak");
	call.capability.method = 4;
	signed_run(unit, &call);
	expect_field(unit, 82);
	assert_int_equal(contents_of(unit), before);
	call = write_of(unit, OSD_ALLDATA, "strong");
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_capkey_is_bound_to_its_nexus(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secure(unit, OSD_CAPKEY);
	struct encoded_call encoded;
	struct signed_call call = write_of(unit, OSD_CAPKEY, "mine");

	unit->nexus = 7;
	signed_encode(unit, &call, &encoded);
	unit->nexus = 8;
	signed_execute(unit, &call, &encoded);
	expect_field(unit, layout()->check_value);
	assert_int_equal(contents_of(unit), before);
	unit->nexus = 7;
	signed_run(unit, &call);
	expect_good(unit);
	/* And to this start of the unit. */
	signed_encode(unit, &call, &encoded);
	secured_restart(unit, M->device_key);
	signed_execute(unit, &call, &encoded);
	expect_field(unit, layout()->check_value);
}

/* ---- what is damaged on the way ---- */

static void test_every_bit_of_a_capability_is_protected(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < sizeof(methods); i++) {
		uint64_t before;
		uint8_t off = OSD_NOSEC;
		struct signed_call call;

		before = secure(unit, methods[i]);
		for (size_t bit = 0; bit < 8 * (size_t)layout()->capability_bytes; bit++) {
			struct encoded_call encoded;

			call = write_of(unit, methods[i], "tampered");
			signed_encode(unit, &call, &encoded);
			encoded.cdb[80 + bit / 8] ^= (uint8_t)(1 << bit % 8);
			signed_execute(unit, &call, &encoded);
			if (bit / 8 > 2)
				expect_field(unit, layout()->check_value);
			else
				assert_int_equal(unit_sense(unit).code, SENSE_INVALID_FIELD_IN_CDB);
			assert_false(answer_is_signed(unit));
			assert_int_equal(contents_of(unit), before);
		}
		call = signed_call_of(unit, OSD_SET_ATTRIBUTES, P, 0, methods[i]);
		call_set(&call.call, OSD_PARTITION_SECURITY, OSD_SECURITY_DEFAULT_METHOD, &off, 1);
		signed_run(unit, &call);
		expect_good(unit);
	}
}

static void test_every_byte_of_a_signed_cdb_is_protected(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secure(unit, OSD_CMDRSP);
	size_t length = unit_version == OSD_1 ? OSD1_CDB_BYTES : OSD2_CDB_BYTES;

	for (size_t byte = 1; byte < length; byte++) {
		struct signed_call call = write_of(unit, OSD_CMDRSP, "tampered");
		struct encoded_call encoded;

		/* Version and service action: another command, or none. */
		if (byte == 7 || byte == 8)
			continue;
		call.call.data_in_capacity = 4096;
		signed_encode(unit, &call, &encoded);
		encoded.cdb[byte] ^= 1;
		signed_execute(unit, &call, &encoded);
		assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
		assert_int_equal(unit_sense(unit).key, SENSE_ILLEGAL_REQUEST);
		assert_int_equal(contents_of(unit), before);
	}
}

static void test_every_byte_of_data_out_is_protected(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secure(unit, OSD_ALLDATA);
	size_t bytes = osd_data_out_integrity_bytes(unit_version), end = 8 + 1;

	for (size_t byte = 0; byte < end; byte++) {
		struct signed_call call = write_of(unit, OSD_ALLDATA, "tampered");
		struct encoded_call encoded;
		size_t sets, gets, information;

		call_set(&call.call, 0x10000, 1, "attribute", 9);
		call_get(&call.call, 0x10000, 1);
		signed_encode(unit, &call, &encoded);
		end = encoded.out_length;
		sets = call.call.cdb.set_data.offset;
		gets = call.call.cdb.get_list.offset;
		information = end - bytes;
		encoded.out[byte] ^= 1;
		signed_execute(unit, &call, &encoded);
		if (byte < 8 || (byte >= sets && byte < sets + call.call.cdb.set_data.length) ||
		    (byte >= gets && byte < gets + call.call.cdb.get_list.length) ||
		    byte >= information) {
			expect_sense(unit, SENSE_ILLEGAL_REQUEST,
				     SENSE_INVALID_DATA_OUT_BUFFER_INTEGRITY_CHECK_VALUE);
			assert_true(answer_is_signed(unit));
			assert_int_equal(contents_of(unit), before);
		} else {
			/* Padding between the parts is nothing. */
			expect_good(unit);
			before = contents_of(unit);
		}
	}
}

static void test_integrity_information_needs_its_place(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secure(unit, OSD_ALLDATA);
	struct encoded_call encoded;
	struct signed_call call = write_of(unit, OSD_ALLDATA, "misplaced");
	uint8_t key[OSD_KEY_BYTES], capability[OSD2_CAPABILITY_BYTES], value[OSD_CHECK_VALUE_BYTES];
	const uint32_t places[] = { OSD_OFFSET_UNUSED, 0, 0x70000001 };

	for (size_t i = 0; i < 6; i++) {
		uint16_t field = i < 3 ? layout()->data_out_offset : layout()->data_in_offset;

		call = i < 3 ? write_of(unit, OSD_ALLDATA, "misplaced")
			     : signed_call_of(unit, OSD_READ, P, O, OSD_ALLDATA);
		if (i >= 3)
			call.call.data_in_capacity = call.call.cdb.length = 100;
		signed_encode(unit, &call, &encoded);
		put_be32(encoded.cdb + field, places[i % 3]);
		osd_capability_encode(unit_version, &call.capability, capability);
		assert_int_equal(osd_capability_key(unit_version, call.secret, capability,
						    M->system_id, key),
				 0);
		assert_int_equal(osd_request_check_value(unit_version, key, encoded.cdb, value), 0);
		memcpy(encoded.cdb + layout()->check_value, value, sizeof(value));
		signed_execute(unit, &call, &encoded);
		expect_field(unit, field);
		assert_int_equal(contents_of(unit), before);
	}
	/* One byte too little room for the target's. */
	call = signed_call_of(unit, OSD_READ, P, O, OSD_ALLDATA);
	call.call.data_in_capacity = call.call.cdb.length = 100;
	signed_encode(unit, &call, &encoded);
	encoded.in_capacity--;
	signed_execute(unit, &call, &encoded);
	expect_field(unit, layout()->data_in_offset);
}

static void test_a_continuation_segment_is_protected(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secure(unit, OSD_CMDRSP);

	for (size_t byte = 0; byte <= OSD_SCATTER_GATHER_BYTES(2); byte++) {
		struct signed_call call = write_of(unit, OSD_CMDRSP, "12345678");
		struct encoded_call encoded;

		call.call.cdb.length = 0;
		call_piece(&call.call, 0, 4);
		call_piece(&call.call, 100, 4);
		signed_encode(unit, &call, &encoded);
		if (byte < OSD_SCATTER_GATHER_BYTES(2)) {
			encoded.out[byte] ^= 1;
			signed_execute(unit, &call, &encoded);
			assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
			assert_int_equal(contents_of(unit), before);
		} else {
			signed_execute(unit, &call, &encoded);
			expect_good(unit);
		}
	}
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

/* ---- nonces, and what is frozen ---- */

static void test_a_request_is_not_accepted_twice(void **state)
{
	struct unit *unit = *state;

	secure(unit, OSD_CMDRSP);
	for (size_t i = 0; i < 2; i++) {
		struct signed_call call = write_of(unit, i == 0 ? OSD_CMDRSP : OSD_ALLDATA, "once");
		uint64_t after;

		signed_run(unit, &call);
		expect_good(unit);
		after = contents_of(unit);
		signed_run(unit, &call);
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_NOT_UNIQUE);
		assert_true(answer_is_signed(unit));
		assert_int_equal(contents_of(unit), after);
	}
}

static void test_a_refused_request_uses_its_nonce_up_only_if_it_is_genuine(void **state)
{
	struct unit *unit = *state;
	struct encoded_call encoded;
	struct signed_call call;

	secure(unit, OSD_CMDRSP);
	call = write_of(unit, OSD_CMDRSP, "forged");
	signed_encode(unit, &call, &encoded);
	encoded.cdb[layout()->check_value] ^= 1;
	signed_execute(unit, &call, &encoded);
	expect_field(unit, layout()->check_value);
	call.capability.permissions = 0;
	signed_run(unit, &call);
	expect_field(unit, 129);
	call.capability.permissions = 0xFFFC;
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_NOT_UNIQUE);
}

static void test_timestamps_of_nonces_have_to_be_in_time(void **state)
{
	static const struct {
		int64_t offset_ms;
		bool in_time;
	} cases[] = { { -60001, false }, { -60000, true }, { 60000, true }, { 60001, false } };
	struct unit *unit = *state;
	uint64_t before;

	secure(unit, OSD_CMDRSP);
	/* So that the unit has been running for longer than the window. */
	unit->now_ms += 100000;
	for (size_t i = 0; i < 4; i++) {
		struct signed_call call = write_of(unit, OSD_CMDRSP, "timely");

		before = contents_of(unit);
		put_be48(call.nonce, unit->now_ms + (uint64_t)cases[i].offset_ms);
		signed_run(unit, &call);
		if (cases[i].in_time) {
			expect_good(unit);
			continue;
		}
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE);
		assert_int_equal(contents_of(unit), before);
	}
}

static void test_the_window_of_a_partition_can_be_set(void **state)
{
	struct unit *unit = *state;
	uint8_t window[6], too_long[6];
	struct call set = call_of(OSD_SET_ATTRIBUTES, P, 0);
	struct signed_call call;

	put_be48(window, 1000);
	put_be48(too_long, 600001);
	unit_set(unit, P, 0, OSD_PARTITION_SECURITY, OSD_SECURITY_OLDEST_NONCE, window, 6);
	call_set(&set, OSD_PARTITION_SECURITY, OSD_SECURITY_NEWEST_NONCE, too_long, 6);
	call_run(unit, &set);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	secure(unit, OSD_CMDRSP);
	unit->now_ms += 100000;
	call = write_of(unit, OSD_CMDRSP, "late");
	put_be48(call.nonce, unit->now_ms - 1001);
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE);
	call = write_of(unit, OSD_CMDRSP, "timely");
	put_be48(call.nonce, unit->now_ms - 1000);
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_requests_from_before_a_restart_are_not_accepted(void **state)
{
	struct unit *unit = *state;
	struct encoded_call encoded;
	struct signed_call call;

	secure(unit, OSD_CMDRSP);
	call = write_of(unit, OSD_CMDRSP, "old");
	signed_encode(unit, &call, &encoded);
	unit->now_ms += 10;
	secured_restart(unit, M->device_key);
	signed_execute(unit, &call, &encoded);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE);
	call = write_of(unit, OSD_CMDRSP, "new");
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_frozen_keys_and_audit_values_open_nothing(void **state)
{
	struct unit *unit = *state;
	uint8_t mask[2] = { 0, 1 << KEY_VERSION }, audit[20] = "withdrawn account";
	struct signed_call call;
	uint64_t before;

	unit_set(unit, P, 0, OSD_PARTITION_SECURITY, OSD_SECURITY_FROZEN_KEYS, mask, 2);
	unit_set(unit, P, 0, OSD_PAGES_PARTITION + OSD_PAGES_VENDOR, 3, audit, sizeof(audit));
	before = secure(unit, OSD_CMDRSP);
	call = write_of(unit, OSD_CMDRSP, "frozen");
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_SECURITY_WORKING_KEY_FROZEN);
	assert_int_equal(contents_of(unit), before);
	/* A new key of this version thaws it. */
	call = signed_set_key(unit, OSD_SET_WORKING_KEY, P, KEY_VERSION, 0x34,
			      &M->working[KEY_VERSION]);
	signed_run(unit, &call);
	expect_good(unit);
	before = contents_of(unit);
	call = write_of(unit, OSD_CMDRSP, "frozen");
	memcpy(call.capability.audit, audit, sizeof(audit));
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_SECURITY_AUDIT_VALUE_FROZEN);
	assert_int_equal(contents_of(unit), before);
	call = write_of(unit, OSD_CMDRSP, "warm");
	signed_run(unit, &call);
	expect_good(unit);
}

/* ---- answers ---- */

static void test_answers_to_genuine_requests_are_signed(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	uint8_t zero[32] = { 0 };
	struct osd_attribute attribute;

	secure(unit, OSD_CAPKEY);
	for (uint8_t method = OSD_CAPKEY; method <= OSD_ALLDATA; method++) {
		call = signed_call_of(unit, OSD_READ, P, O + 77, method);
		signed_run(unit, &call);
		expect_field(unit, 24);
		assert_int_equal(answer_is_signed(unit), method != OSD_CAPKEY);
		/* The value of a good answer is in the current command page. */
		call = write_of(unit, method, "signed");
		fill_current_command(&call.call);
		signed_run(unit, &call);
		expect_good(unit);
		attribute = unit_retrieved(unit, &call.call, 0);
		assert_int_equal(attribute.length, layout()->check_value_bytes);
		if (method == OSD_CAPKEY)
			assert_memory_equal(attribute.value, zero, attribute.length);
		else
			assert_memory_not_equal(attribute.value, zero, 20);
	}
	/* A READ past the end: data, sense, and both are sealed. */
	call = signed_call_of(unit, OSD_READ, P, O, OSD_ALLDATA);
	call.call.cdb.address = 4000;
	call.call.data_in_capacity = call.call.cdb.length = 200;
	signed_run(unit, &call);
	expect_sense(unit, SENSE_RECOVERED_ERROR, SENSE_READ_PAST_END_OF_USER_OBJECT);
	assert_true(answer_is_signed(unit));
}

/* ---- the root ---- */

static void test_the_root_has_its_own_method_and_key(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	struct call plain;
	uint64_t before;

	secured_set_method(unit, 0, OSD_CMDRSP);
	before = contents_of(unit);
	plain = call_of(OSD_FORMAT_OSD, 0, 0);
	call_run(unit, &plain);
	expect_field(unit, 80);
	plain = call_of(OSD_REMOVE_PARTITION, P, 0);
	call_run(unit, &plain);
	expect_field(unit, 80);
	plain = call_of(OSD_CREATE_PARTITION, 0, 0);
	call_run(unit, &plain);
	expect_field(unit, 80);
	call = signed_call_of(unit, OSD_GET_ATTRIBUTES, 0, 0, OSD_CMDRSP);
	call.secret = M->working[KEY_VERSION].authentication;
	signed_run(unit, &call);
	expect_field(unit, layout()->check_value);
	assert_int_equal(contents_of(unit), before);
	/* What is in a partition is the partition's business. */
	unit_write(unit, O, 0, "free", 4);
}

static void test_a_secured_partition_is_not_removed_without_the_root_key(void **state)
{
	struct unit *unit = *state;
	struct call plain = call_of(OSD_REMOVE_PARTITION, P, 0);
	uint64_t before = secure(unit, OSD_CAPKEY);
	struct signed_call call;

	call_run(unit, &plain);
	expect_field(unit, 80);
	call = signed_call_of(unit, OSD_REMOVE_PARTITION, P, 0, OSD_CAPKEY);
	call.secret = M->working[KEY_VERSION].authentication;
	signed_run(unit, &call);
	expect_field(unit, layout()->check_value);
	call = signed_call_of(unit, OSD_REMOVE_PARTITION, P, 0, OSD_CAPKEY);
	signed_run(unit, &call);
	/* Allowed, but not empty. */
	expect_sense(unit, SENSE_ILLEGAL_REQUEST,
		     SENSE_PARTITION_OR_COLLECTION_CONTAINS_USER_OBJECTS);
	assert_int_equal(contents_of(unit), before);
}

static void test_nosec_looks_at_nothing(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_READ, P, O);

	call.data_in_capacity = call.cdb.length = 4;
	memset(call.cdb.capability, 0xA7, sizeof(call.cdb.capability));
	memset(call.cdb.security, 0x5C, sizeof(call.cdb.security));
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, "xxxx", 4);
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
		with_keys_in_both(test_without_credential_nothing_is_done),
		with_keys_in_both(test_with_a_credential_commands_do_their_work),
		with_keys_in_both(test_a_capability_may_be_stronger_but_not_weaker),
		with_keys_in_both(test_capkey_is_bound_to_its_nexus),
		with_keys_in_both(test_every_bit_of_a_capability_is_protected),
		with_keys_in_both(test_every_byte_of_a_signed_cdb_is_protected),
		with_keys_in_both(test_every_byte_of_data_out_is_protected),
		with_keys_in_both(test_integrity_information_needs_its_place),
		with_keys(test_a_continuation_segment_is_protected),
		with_keys_in_both(test_a_genuine_capability_for_something_else_is_refused),
		with_keys_in_both(test_times_tags_and_epochs_that_are_right_are_accepted),
		with_keys_in_both(test_new_objects_and_partitions_inherit_their_policy),
		with_keys_in_both(test_each_permission_is_needed_and_enough),
		with_keys(test_a_range_is_not_left),
		with_keys_in_both(test_a_request_is_not_accepted_twice),
		with_keys_in_both(test_a_refused_request_uses_its_nonce_up_only_if_it_is_genuine),
		with_keys_in_both(test_timestamps_of_nonces_have_to_be_in_time),
		with_keys(test_the_window_of_a_partition_can_be_set),
		with_keys(test_requests_from_before_a_restart_are_not_accepted),
		with_keys_in_both(test_frozen_keys_and_audit_values_open_nothing),
		with_keys_in_both(test_answers_to_genuine_requests_are_signed),
		with_keys_in_both(test_the_root_has_its_own_method_and_key),
		with_keys_in_both(test_a_secured_partition_is_not_removed_without_the_root_key),
		with_keys_in_both(test_nosec_looks_at_nothing),
		with_keys(test_no_copy_leaves_a_secured_partition),
		with_keys(test_going_back_in_time_brings_no_old_policy_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
