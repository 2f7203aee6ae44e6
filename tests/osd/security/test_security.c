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
#include "osd/execute.h"
#include "osd/keys.h"
#include "tests/osd/secured.h"

#define M (&secured_manager)

/* ---- methods ---- */

static void test_without_credential_nothing_is_done(void **state)
{
	static const uint16_t actions[] = { OSD_READ,   OSD_WRITE,           OSD_APPEND,
					    OSD_CREATE, OSD_REMOVE,          OSD_GET_ATTRIBUTES,
					    OSD_FLUSH,  OSD_CREATE_AND_WRITE };
	struct unit *unit = *state;

	for (size_t i = 0; i < SECURED_METHODS; i++) {
		uint64_t before = secured_close(unit, secured_methods[i]);

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

		secured_reopen(unit, secured_methods[i]);
	}
}

static void test_with_a_credential_commands_do_their_work(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < SECURED_METHODS; i++) {
		struct signed_call call;

		secured_set_method(unit, P, OSD_NOSEC);
		secured_set_method(unit, P, OSD_NOSEC);
		secured_close(unit, secured_methods[i]);
		call = signed_write(unit, secured_methods[i], "hello");
		call_set(&call.call, 0x10000, 1, "attribute", 9);
		call_get(&call.call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH);
		signed_run(unit, &call);
		expect_good(unit);
		assert_int_equal(get_be64(unit_retrieved(unit, &call.call, 0).value), 4096);

		call = signed_call_of(unit, OSD_READ, P, O, secured_methods[i]);
		call.call.cdb.length = 8;
		call.call.data_in_capacity = 8;
		call_get(&call.call, 0x10000, 1);
		signed_run(unit, &call);
		expect_good(unit);
		assert_memory_equal(unit->data_in, "helloxxx", 8);
		assert_memory_equal(unit_retrieved(unit, &call.call, 0).value, "attribute", 9);

		call = signed_call_of(unit, OSD_LIST, P, 0, secured_methods[i]);
		call.call.cdb.length = 256;
		call.call.data_in_capacity = 256;
		signed_run(unit, &call);
		expect_good(unit);
		assert_int_equal(get_be64(unit->data_in + OSD_LIST_HEAD_BYTES), O);

		call = signed_call_of(unit, OSD_CREATE, P, 0, secured_methods[i]);
		call_get(&call.call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_ID);
		signed_run(unit, &call);
		expect_good(unit);
		call = signed_call_of(unit, OSD_REMOVE, P,
				      get_be64(unit_retrieved(unit, &call.call, 0).value),
				      secured_methods[i]);
		signed_run(unit, &call);
		expect_good(unit);

		secured_reopen(unit, secured_methods[i]);
	}
}

/* How many attributes a list of the root has of P, and of P + 1. */
static void count_listed(struct unit *unit, unsigned counts[2])
{
	struct osd_list_head head;
	struct osd_listed_object listed;
	struct osd_attribute attribute;
	size_t position = OSD_LIST_HEAD_BYTES;

	expect_good(unit);
	counts[0] = counts[1] = 0;
	assert_int_equal(
		osd_list_head_decode(OSD_2, unit->data_in, unit->command.data_in_length, &head), 0);
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(osd_listed_next(&head, unit->data_in, unit->command.data_in_length,
						 &position, &listed),
				 1);
		assert_int_equal(listed.id, P + i);
		while (osd_list_next(&listed.attributes, &attribute) == 1)
			counts[i]++;
	}
}

static void list_root(struct unit *unit, uint8_t method, unsigned counts[2])
{
	struct signed_call list = signed_call_of(unit, OSD_LIST, 0, 0, method);

	list.call.cdb.list_attributes = true;
	list.call.cdb.length = list.call.data_in_capacity = 4096;
	call_get(&list.call, OSD_PARTITION_INFORMATION, OSD_INFORMATION_USERNAME);
	if (method == OSD_NOSEC)
		call_run(unit, &list.call);
	else
		signed_run(unit, &list);
	count_listed(unit, counts);
}

static void test_a_list_of_the_root_shows_no_attributes_of_what_is_better_protected(void **state)
{
	struct unit *unit = *state;
	unsigned counts[2];

	unit_create_partition(unit, P + 1);
	unit_set(unit, P, 0, OSD_PARTITION_INFORMATION, OSD_INFORMATION_USERNAME, "secret", 6);
	unit_set(unit, P + 1, 0, OSD_PARTITION_INFORMATION, OSD_INFORMATION_USERNAME, "open", 4);
	list_root(unit, OSD_NOSEC, counts);
	assert_int_equal(counts[0], 1);
	assert_int_equal(counts[1], 1);
	secured_close(unit, OSD_CMDRSP);
	list_root(unit, OSD_NOSEC, counts);
	assert_int_equal(counts[0], 0);
	assert_int_equal(counts[1], 1);
	list_root(unit, OSD_CAPKEY, counts);
	assert_int_equal(counts[0], 0);
	assert_int_equal(counts[1], 1);
	list_root(unit, OSD_CMDRSP, counts);
	assert_int_equal(counts[0], 1);
	assert_int_equal(counts[1], 1);
}

static void test_a_capability_may_be_stronger_but_not_weaker(void **state)
{
	struct unit *unit = *state;

	uint64_t before = secured_close(unit, OSD_CMDRSP);
	struct signed_call call = signed_write(unit, OSD_CAPKEY, "weak");

	signed_run(unit, &call);
	expect_field(unit, 82);
	call = signed_write(unit, OSD_NOSEC, "weak");
	signed_run(unit, &call);
	expect_field(unit, 82);
	call = signed_write(unit, OSD_CMDRSP, "weak");
	call.capability.method = 4;
	signed_run(unit, &call);
	expect_field(unit, 82);
	assert_int_equal(contents_of(unit), before);
	call = signed_write(unit, OSD_ALLDATA, "strong");
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_capkey_is_bound_to_its_nexus(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_CAPKEY);
	struct encoded_call encoded;
	struct signed_call call = signed_write(unit, OSD_CAPKEY, "mine");

	unit->nexus = 7;
	signed_encode(unit, &call, &encoded);
	unit->nexus = 8;
	signed_execute(unit, &call, &encoded);
	expect_field(unit, unit_layout()->check_value);
	assert_int_equal(contents_of(unit), before);
	unit->nexus = 7;
	signed_run(unit, &call);
	expect_good(unit);
	/* And to this start of the unit. */
	signed_encode(unit, &call, &encoded);
	secured_restart(unit, M->device_key);
	signed_execute(unit, &call, &encoded);
	expect_field(unit, unit_layout()->check_value);
}

/* ---- what is damaged on the way ---- */

static void test_every_bit_of_a_capability_is_protected(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < SECURED_METHODS; i++) {
		uint64_t before;
		struct signed_call call;

		before = secured_close(unit, secured_methods[i]);
		for (size_t bit = 0; bit < 8 * (size_t)unit_layout()->capability_bytes; bit++) {
			struct encoded_call encoded;

			call = signed_write(unit, secured_methods[i], "tampered");
			signed_encode(unit, &call, &encoded);
			encoded.cdb[80 + bit / 8] ^= (uint8_t)(1 << bit % 8);
			signed_execute(unit, &call, &encoded);
			if (bit / 8 > 2)
				expect_field(unit, unit_layout()->check_value);
			else
				assert_int_equal(unit_sense(unit).code, SENSE_INVALID_FIELD_IN_CDB);
			assert_false(answer_is_signed(unit));
			assert_int_equal(contents_of(unit), before);
		}
		secured_reopen(unit, secured_methods[i]);
	}
}

static void test_every_byte_of_a_signed_cdb_is_protected(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_CMDRSP);
	size_t length = unit_version == OSD_1 ? OSD1_CDB_BYTES : OSD2_CDB_BYTES;

	for (size_t byte = 1; byte < length; byte++) {
		struct signed_call call = signed_write(unit, OSD_CMDRSP, "tampered");
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
	uint64_t before = secured_close(unit, OSD_ALLDATA);
	size_t bytes = osd_data_out_integrity_bytes(unit_version), end = 8 + 1;

	for (size_t byte = 0; byte < end; byte++) {
		struct signed_call call = signed_write(unit, OSD_ALLDATA, "tampered");
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
	uint64_t before = secured_close(unit, OSD_ALLDATA);
	struct encoded_call encoded;
	struct signed_call call = signed_write(unit, OSD_ALLDATA, "misplaced");
	uint8_t key[OSD_KEY_BYTES], capability[OSD2_CAPABILITY_BYTES], value[OSD_CHECK_VALUE_BYTES];
	const uint32_t places[] = { OSD_OFFSET_UNUSED, 0, 0x70000001 };

	for (size_t i = 0; i < 6; i++) {
		uint16_t field = i < 3 ? unit_layout()->data_out_offset
				       : unit_layout()->data_in_offset;

		call = i < 3 ? signed_write(unit, OSD_ALLDATA, "misplaced")
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
		memcpy(encoded.cdb + unit_layout()->check_value, value, sizeof(value));
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
	expect_field(unit, unit_layout()->data_in_offset);
}

static void test_a_continuation_segment_is_protected(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_CMDRSP);

	for (size_t byte = 0; byte <= OSD_SCATTER_GATHER_BYTES(2); byte++) {
		struct signed_call call = signed_write(unit, OSD_CMDRSP, "12345678");
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

/* With ALLDATA the data behind it are, too: the sum begins where they begin. */
static void test_data_behind_a_continuation_segment_are_protected(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_ALLDATA);
	size_t segment = OSD_SCATTER_GATHER_BYTES(2);

	for (size_t byte = 0; byte <= 8; byte++) {
		struct signed_call call = signed_write(unit, OSD_ALLDATA, "12345678");
		struct encoded_call encoded;

		call.call.cdb.length = 0;
		call_piece(&call.call, 0, 4);
		call_piece(&call.call, 100, 4);
		signed_encode(unit, &call, &encoded);
		assert_int_equal(call.call.cdb.continuation_length, segment);
		if (byte < 8) {
			encoded.out[segment + byte] ^= 1;
			signed_execute(unit, &call, &encoded);
			expect_sense(unit, SENSE_ILLEGAL_REQUEST,
				     SENSE_INVALID_DATA_OUT_BUFFER_INTEGRITY_CHECK_VALUE);
			assert_int_equal(contents_of(unit), before);
		} else {
			signed_execute(unit, &call, &encoded);
			expect_good(unit);
		}
	}
}

/* ---- answers ---- */

static void test_answers_to_genuine_requests_are_signed(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	uint8_t zero[32] = { 0 };
	struct osd_attribute attribute;

	secured_close(unit, OSD_CAPKEY);
	for (size_t i = 0; i < SECURED_METHODS; i++) {
		uint8_t method = secured_methods[i];

		call = signed_call_of(unit, OSD_READ, P, O + 77, method);
		signed_run(unit, &call);
		expect_field(unit, 24);
		assert_int_equal(answer_is_signed(unit), method != OSD_CAPKEY);
		/* The value of a good answer is in the current command page. */
		call = signed_write(unit, method, "signed");
		call_get(&call.call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_RESPONSE_CHECK_VALUE);
		signed_run(unit, &call);
		expect_good(unit);
		attribute = unit_retrieved(unit, &call.call, 0);
		assert_int_equal(attribute.length, unit_layout()->check_value_bytes);
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
	expect_field(unit, unit_layout()->check_value);
	assert_int_equal(contents_of(unit), before);
	/* What is in a partition is the partition's business. */
	unit_write(unit, O, 0, "free", 4);
}

static void test_a_secured_partition_is_not_removed_without_the_root_key(void **state)
{
	struct unit *unit = *state;
	struct call plain = call_of(OSD_REMOVE_PARTITION, P, 0);
	uint64_t before = secured_close(unit, OSD_CAPKEY);
	struct signed_call call;

	call_run(unit, &plain);
	expect_field(unit, 80);
	call = signed_call_of(unit, OSD_REMOVE_PARTITION, P, 0, OSD_CAPKEY);
	call.secret = M->working[KEY_VERSION].authentication;
	signed_run(unit, &call);
	expect_field(unit, unit_layout()->check_value);
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

/* ---- who signs although nothing is demanded ---- */

/* Status GOOD, with the response check value that the call has asked for as its first attribute. */
static bool good_is_signed(struct unit *unit, const struct signed_call *call)
{
	static const uint8_t zeros[OSD_CHECK_VALUE_BYTES];
	struct osd_attribute attribute;

	expect_good(unit);
	attribute = unit_retrieved(unit, &call->call, 0);
	return memcmp(attribute.value, zeros, sizeof(zeros)) != 0;
}

static struct signed_call unasked(struct unit *unit, uint8_t method)
{
	struct signed_call call = signed_write(unit, method, "signed");

	call_get(&call.call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_RESPONSE_CHECK_VALUE);
	return call;
}

static void test_who_signs_by_himself_is_answered_so(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < SECURED_METHODS; i++) {
		uint8_t method = secured_methods[i];
		struct signed_call call = unasked(unit, method);
		struct encoded_call encoded;

		signed_run(unit, &call);
		assert_int_equal(good_is_signed(unit, &call), method >= OSD_CMDRSP);
		/* What the capability says holds, then. */
		call = unasked(unit, method);
		call.capability.permissions = 0;
		signed_run(unit, &call);
		expect_field(unit, 129);
		call = unasked(unit, method);
		call.capability.object++;
		signed_run(unit, &call);
		expect_field(unit, unit_layout()->object);
		if (method == OSD_CAPKEY)
			continue;
		call = unasked(unit, method);
		signed_run(unit, &call);
		expect_good(unit);
		signed_run(unit, &call);
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_NOT_UNIQUE);
		if (method == OSD_CMDRSP)
			continue;
		call = unasked(unit, method);
		signed_encode(unit, &call, &encoded);
		encoded.out[0] ^= 1;
		signed_execute(unit, &call, &encoded);
		expect_sense(unit, SENSE_ILLEGAL_REQUEST,
			     SENSE_INVALID_DATA_OUT_BUFFER_INTEGRITY_CHECK_VALUE);
	}
}

static void test_a_signature_that_nobody_demands_may_be_wrong(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < 4; i++) {
		struct signed_call call = unasked(unit, OSD_CMDRSP);

		if (i == 0)
			call.secret = M->root.authentication;
		else if (i == 1)
			call.capability.key_version = 0;
		else if (i == 2)
			call.capability.algorithm = 2;
		else
			call.capability.format ^= 3;
		signed_run(unit, &call);
		assert_false(good_is_signed(unit, &call));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_keys_in_both(test_without_credential_nothing_is_done),
		with_keys_in_both(test_with_a_credential_commands_do_their_work),
		with_keys(test_a_list_of_the_root_shows_no_attributes_of_what_is_better_protected),
		with_keys_in_both(test_a_capability_may_be_stronger_but_not_weaker),
		with_keys_in_both(test_capkey_is_bound_to_its_nexus),
		with_keys_in_both(test_every_bit_of_a_capability_is_protected),
		with_keys_in_both(test_every_byte_of_a_signed_cdb_is_protected),
		with_keys_in_both(test_every_byte_of_data_out_is_protected),
		with_keys_in_both(test_integrity_information_needs_its_place),
		with_keys(test_a_continuation_segment_is_protected),
		with_keys(test_data_behind_a_continuation_segment_are_protected),
		with_keys_in_both(test_answers_to_genuine_requests_are_signed),
		with_keys_in_both(test_the_root_has_its_own_method_and_key),
		with_keys_in_both(test_a_secured_partition_is_not_removed_without_the_root_key),
		with_keys_in_both(test_nosec_looks_at_nothing),
		with_keys_in_both(test_who_signs_by_himself_is_answered_so),
		with_keys_in_both(test_a_signature_that_nobody_demands_may_be_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
