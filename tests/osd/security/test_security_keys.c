/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* SET KEY, and how keys are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/secured.h"

#define M (&secured_manager)

static int set_up_with_device_key(void **state)
{
	unit_set_up_with_object(state);
	secured_open(*state, M);
	return 0;
}

#define with_device_key(test) \
	cmocka_unit_test_setup_teardown(test, set_up_with_device_key, unit_tear_down)

static uint32_t identifier(struct unit *unit, uint64_t partition, uint32_t number, uint8_t value[7])
{
	return unit_get(unit, partition, 0, partition ? OSD_PARTITION_SECURITY : OSD_ROOT_SECURITY,
			number, value, 7);
}

static bool has_identifier(struct unit *unit, uint64_t partition, uint32_t number, uint8_t fill)
{
	uint8_t value[7], expected[7];

	memset(expected, fill, sizeof(expected));
	return identifier(unit, partition, number, value) == 7 &&
	       memcmp(value, expected, sizeof(value)) == 0;
}

/* ---- SET KEY ---- */

static void test_keys_are_set_from_the_top_down(void **state)
{
	struct unit *unit = *state;
	uint8_t value[7];

	assert_int_equal(identifier(unit, 0, OSD_SECURITY_ROOT_KEY_IDENTIFIER, value), 0);
	assert_int_equal(identifier(unit, P, OSD_SECURITY_PARTITION_KEY_IDENTIFIER, value), 0);
	secured_set_keys(unit, M);
	assert_true(has_identifier(unit, 0, OSD_SECURITY_MASTER_KEY_IDENTIFIER, 0));
	assert_true(has_identifier(unit, 0, OSD_SECURITY_ROOT_KEY_IDENTIFIER, 0x11));
	assert_true(has_identifier(unit, P, OSD_SECURITY_PARTITION_KEY_IDENTIFIER, 0x22));
	assert_true(
		has_identifier(unit, P, OSD_SECURITY_WORKING_KEY_IDENTIFIERS + KEY_VERSION, 0x33));
	for (uint32_t version = 0; version < OSD_WORKING_KEYS; version++)
		if (version != KEY_VERSION)
			assert_int_equal(identifier(unit, P,
						    OSD_SECURITY_WORKING_KEY_IDENTIFIERS + version,
						    value),
					 0);
}

static void test_a_key_can_only_be_set_with_the_one_above_it(void **state)
{
	static const struct {
		unsigned key_to_set;
		uint64_t partition;
	} cases[] = { { OSD_SET_ROOT_KEY, 0 },
		      { OSD_SET_PARTITION_KEY, P },
		      { OSD_SET_WORKING_KEY, P } };
	const uint8_t *const secrets[] = {
		M->master.authentication,    M->root.authentication,
		M->partition.authentication, M->working[KEY_VERSION].authentication,
		M->master.generation,
	};
	struct unit *unit = *state;
	uint64_t before = contents_of(unit);

	for (size_t i = 0; i < 3; i++) {
		for (size_t j = 0; j < sizeof(secrets) / sizeof(secrets[0]); j++) {
			struct key_pair ignored;
			struct signed_call call = signed_set_key(
				unit, cases[i].key_to_set, cases[i].partition, 1, 0x77, &ignored);

			call.secret = secrets[j];
			if (j == i)
				continue;
			signed_run(unit, &call);
			shows_fields(unit, SET_KEY, "signed with another key than the one above it",
				     160, 184);
			assert_int_equal(contents_of(unit), before);
		}
	}
}

static void test_set_key_refuses_what_makes_no_sense(void **state)
{
	struct unit *unit = *state;
	struct key_pair ignored;
	struct signed_call call = signed_set_key(unit, OSD_SET_ROOT_KEY, P, 0, 1, &ignored);

	signed_run(unit, &call);
	shows_field(unit, SET_KEY, "the root key, with a partition", 16);
	call = signed_set_key(unit, OSD_SET_PARTITION_KEY, 0, 0, 1, &ignored);
	signed_run(unit, &call);
	shows_field(unit, SET_KEY, "a partition or working key, without a partition", 16);
	call = signed_set_key(unit, OSD_SET_WORKING_KEY, P, 0, 1, &ignored);
	call.call.cdb.command_options = 0;
	signed_run(unit, &call);
	shows_field(unit, SET_KEY, "KEY TO SET 0", 11);
	/* No such partition: there is no key above. */
	call = signed_set_key(unit, OSD_SET_WORKING_KEY, P + 1, 0, 1, &ignored);
	signed_run(unit, &call);
	shows_field(unit, SET_KEY, "the key above was never set, or is invalid", 81);
	call = signed_set_key(unit, OSD_SET_PARTITION_KEY, P + 1, 0, 1, &ignored);
	signed_run(unit, &call);
	shows_field(unit, SET_KEY, "no such partition", 16);
}

static void test_keys_are_never_set_without_signature(void **state)
{
	struct unit *unit = *state;
	struct key_pair ignored;
	struct signed_call call = signed_set_key(unit, OSD_SET_ROOT_KEY, 0, 0, 1, &ignored);
	uint64_t before = contents_of(unit);

	/* Even where everything else is NOSEC. */
	call_run(unit, &call.call);
	shows_field(unit, SET_KEY, "no capability, whatever the default method", 80);
	call.capability.method = OSD_NOSEC;
	signed_run(unit, &call);
	shows_field(unit, SET_KEY, "a method below CMDRSP", 82);
	call.capability.method = OSD_CAPKEY;
	signed_run(unit, &call);
	expect_field(unit, 82);
	assert_int_equal(contents_of(unit), before);
}

static void test_a_working_key_opens_its_partition(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;

	secured_set_method(unit, P, OSD_CMDRSP);
	call = signed_call_of(unit, OSD_WRITE, P, O, OSD_CMDRSP);
	call_data(&call.call, "hello", 5);
	signed_run(unit, &call);
	expect_good(unit);
	/* Another version of it, which was never set. */
	call = signed_call_of(unit, OSD_WRITE, P, O, OSD_CMDRSP);
	call.capability.key_version = KEY_VERSION + 1;
	call_data(&call.call, "hello", 5);
	signed_run(unit, &call);
	expect_field(unit, 81);
	/* One that was set with the same secret is another key. */
	call = signed_set_key(unit, OSD_SET_WORKING_KEY, P, KEY_VERSION + 1, 0x44,
			      &M->working[KEY_VERSION + 1]);
	signed_run(unit, &call);
	expect_good(unit);
	call = signed_call_of(unit, OSD_WRITE, P, O, OSD_CMDRSP);
	call.capability.key_version = KEY_VERSION + 1;
	call_data(&call.call, "hello", 5);
	signed_run(unit, &call);
	expect_field(unit, osd_security_layout(unit_version)->check_value);
	call.secret = M->working[KEY_VERSION + 1].authentication;
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_a_new_key_invalidates_those_below(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	struct key_pair ignored;

	secured_set_method(unit, P, OSD_CMDRSP);
	call = signed_set_key(unit, OSD_SET_ROOT_KEY, 0, 0, 0x55, &M->root);
	signed_run(unit, &call);
	shows_good(unit, SET_KEY, "the root key; those below it become invalid");
	call = signed_call_of(unit, OSD_READ, P, O, OSD_CMDRSP);
	signed_run(unit, &call);
	expect_field(unit, 81);
	call = signed_set_key(unit, OSD_SET_WORKING_KEY, P, 2, 1, &ignored);
	signed_run(unit, &call);
	expect_field(unit, 81);
	/* Once they are set again, all is well, but for the other working keys. */
	call = signed_set_key(unit, OSD_SET_PARTITION_KEY, P, 0, 0x66, &M->partition);
	signed_run(unit, &call);
	shows_good(unit, SET_KEY, "a partition key; the working keys become invalid");
	call = signed_call_of(unit, OSD_READ, P, O, OSD_CMDRSP);
	signed_run(unit, &call);
	expect_field(unit, 81);
	call = signed_set_key(unit, OSD_SET_WORKING_KEY, P, 2, 0x67, &M->working[2]);
	signed_run(unit, &call);
	shows_good(unit, SET_KEY, "a working key");
	call = signed_call_of(unit, OSD_GET_ATTRIBUTES, P, 0, OSD_CMDRSP);
	call.capability.key_version = 2;
	call.secret = M->working[2].authentication;
	call_get(&call.call, OSD_PARTITION_SECURITY,
		 OSD_SECURITY_WORKING_KEY_IDENTIFIERS + KEY_VERSION);
	call_get(&call.call, OSD_PARTITION_SECURITY, OSD_SECURITY_WORKING_KEY_IDENTIFIERS + 2);
	signed_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit_retrieved(unit, &call.call, 0).length, 0);
	assert_int_equal(unit_retrieved(unit, &call.call, 1).length, 7);
}

/* Reads with the working key, so that the unit has it at hand. */
static void read_with(struct unit *unit, const uint8_t *secret, int field)
{
	struct signed_call call = signed_call_of(unit, OSD_READ, P, O, OSD_CMDRSP);

	call.secret = secret;
	signed_run(unit, &call);
	if (field == 0)
		expect_good(unit);
	else
		expect_field(unit, field);
}

static void test_no_key_at_hand_outlives_its_change(void **state)
{
	static const uint8_t controls[] = { OSD_TIMESTAMPS_UPDATE, OSD_TIMESTAMPS_BYPASS };
	struct unit *unit = *state;
	int check_value = osd_security_layout(unit_version)->check_value;

	secured_set_method(unit, P, OSD_CMDRSP);
	for (size_t i = 0; i < 2; i++) {
		struct key_pair old = M->working[KEY_VERSION];
		struct signed_call call;

		read_with(unit, old.authentication, 0);
		read_with(unit, old.authentication, 0);
		call = signed_set_key(unit, OSD_SET_WORKING_KEY, P, KEY_VERSION,
				      (uint8_t)(0x40 + i), &M->working[KEY_VERSION]);
		call.call.cdb.timestamps_control = controls[i];
		signed_run(unit, &call);
		expect_good(unit);
		read_with(unit, old.authentication, check_value);
		read_with(unit, M->working[KEY_VERSION].authentication, 0);
		/* One that fails behind its work has changed nothing. */
		old = M->working[KEY_VERSION];
		call = signed_set_key(unit, OSD_SET_WORKING_KEY, P, KEY_VERSION, 0x50,
				      &M->working[KEY_VERSION]);
		call_get(&call.call, OSD_PARTITION_SECURITY,
			 OSD_SECURITY_WORKING_KEY_IDENTIFIERS + KEY_VERSION);
		call_get(&call.call, OSD_ROOT_INFORMATION, OSD_ROOT_SYSTEM_ID);
		signed_run(unit, &call);
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
		read_with(unit, M->working[KEY_VERSION].authentication, check_value);
		read_with(unit, old.authentication, 0);
		M->working[KEY_VERSION] = old;
	}
	struct signed_call call = signed_set_key(unit, OSD_SET_ROOT_KEY, 0, 0, 0x60, &M->root);

	call.call.cdb.timestamps_control = OSD_TIMESTAMPS_BYPASS;
	signed_run(unit, &call);
	expect_good(unit);
	read_with(unit, M->working[KEY_VERSION].authentication, 81);
}

/* ---- how keys are kept ---- */

static void test_keys_outlive_restart_and_format(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	uint8_t method = OSD_ALLDATA;

	unit_set(unit, 0, 0, OSD_ROOT_SECURITY, OSD_SECURITY_PARTITION_DEFAULT_METHOD, &method, 1);
	secured_set_method(unit, 0, OSD_CMDRSP);
	secured_restart(unit, M->device_key);
	call = signed_call_of(unit, OSD_FORMAT_OSD, 0, 0, OSD_CMDRSP);
	signed_run(unit, &call);
	expect_good(unit);
	/* The root is as secure as before, and so are new partitions. */
	call = signed_call_of(unit, OSD_GET_ATTRIBUTES, 0, 0, OSD_NOSEC);
	call_get(&call.call, OSD_ROOT_INFORMATION, OSD_ROOT_PARTITIONS);
	signed_run(unit, &call);
	expect_field(unit, 82);
	call = signed_call_of(unit, OSD_CREATE_PARTITION, P, 0, OSD_CMDRSP);
	signed_run(unit, &call);
	expect_good(unit);
	call = signed_call_of(unit, OSD_CREATE, P, O, OSD_CMDRSP);
	signed_run(unit, &call);
	expect_field(unit, 82);
	call = signed_call_of(unit, OSD_CREATE, P, O, OSD_ALLDATA);
	signed_run(unit, &call);
	expect_field(unit, 81);
	call = signed_set_key(unit, OSD_SET_PARTITION_KEY, P, 0, 1, &M->partition);
	signed_run(unit, &call);
	expect_good(unit);
	call = signed_set_key(unit, OSD_SET_WORKING_KEY, P, KEY_VERSION, 2,
			      &M->working[KEY_VERSION]);
	call.capability.method = OSD_ALLDATA;
	signed_run(unit, &call);
	expect_good(unit);
	call = signed_call_of(unit, OSD_CREATE, P, O, OSD_ALLDATA);
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_without_the_right_device_key_everything_secured_is_closed(void **state)
{
	struct unit *unit = *state;
	uint8_t other[32] = { 1 };
	const uint8_t *const device_keys[] = { NULL, other };
	struct signed_call call;
	struct key_pair ignored;

	secured_set_method(unit, P, OSD_CAPKEY);
	for (size_t i = 0; i < 2; i++) {
		struct call unsigned_call = call_of(OSD_READ, P, O);

		secured_restart(unit, device_keys[i]);
		call = signed_call_of(unit, OSD_READ, P, O, OSD_CAPKEY);
		signed_run(unit, &call);
		expect_field(unit, 81);
		call_run(unit, &unsigned_call);
		expect_field(unit, 80);
	}
	secured_restart(unit, NULL);
	call = signed_set_key(unit, OSD_SET_ROOT_KEY, 0, 0, 1, &ignored);
	signed_run(unit, &call);
	shows_sense(unit, SET_KEY, "the unit has no device key", ILLEGAL_REQUEST,
		    INVALID_COMMAND_OPERATION_CODE);
	call = signed_call_of(unit, OSD_SET_MASTER_KEY, 0, 0, OSD_ALLDATA);
	signed_run(unit, &call);
	shows_sense(unit, SET_MASTER_KEY, "the unit has no device key", ILLEGAL_REQUEST,
		    INVALID_COMMAND_OPERATION_CODE);
	secured_restart(unit, M->device_key);
	call = signed_call_of(unit, OSD_READ, P, O, OSD_CAPKEY);
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_supported_methods_are_those_with_a_device_key(void **state)
{
	struct unit *unit = *state;
	uint8_t value[2];

	assert_int_equal(
		unit_get(unit, 0, 0, OSD_ROOT_SECURITY, OSD_SECURITY_SUPPORTED_METHODS, value, 2),
		2);
	assert_int_equal(get_be16(value), 0x000F);
	secured_restart(unit, NULL);
	unit_get(unit, 0, 0, OSD_ROOT_SECURITY, OSD_SECURITY_SUPPORTED_METHODS, value, 2);
	assert_int_equal(get_be16(value), 0x0001);
}

/* Sets a method, the last of the list of an otherwise empty command. */
static void set_method(struct unit *unit, uint16_t action, uint64_t partition, uint32_t number,
		       uint8_t method)
{
	struct call call = call_of(action, partition, 0);
	uint32_t page = partition ? OSD_PARTITION_SECURITY : OSD_ROOT_SECURITY;

	call_set(&call, page, number, &method, 1);
	call_run(unit, &call);
}

/* Nobody could ever use again what somebody had closed that way. */
static void test_a_method_that_the_unit_does_not_support_cannot_be_set(void **state)
{
	static const struct {
		uint16_t action;
		uint64_t partition;
		uint32_t number;
	} sets[] = {
		{ OSD_SET_ATTRIBUTES, P, OSD_SECURITY_DEFAULT_METHOD },
		{ OSD_SET_ATTRIBUTES, 0, OSD_SECURITY_DEFAULT_METHOD },
		{ OSD_SET_ATTRIBUTES, 0, OSD_SECURITY_PARTITION_DEFAULT_METHOD },
		{ OSD_CREATE_PARTITION, P + 1, OSD_SECURITY_DEFAULT_METHOD },
	};
	struct unit *unit = *state;

	for (int with_key = 0; with_key <= 1; with_key++) {
		secured_restart(unit, with_key ? M->device_key : NULL);
		for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
			for (unsigned method = with_key ? OSD_ALLDATA + 1 : OSD_CAPKEY;
			     method <= UINT8_MAX; method++) {
				uint64_t before = contents_of(unit);

				set_method(unit, sets[i].action, sets[i].partition, sets[i].number,
					   (uint8_t)method);
				expect_sense(unit, SENSE_ILLEGAL_REQUEST,
					     SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
				assert_int_equal(contents_of(unit), before);
			}
			set_method(unit, sets[i].action, sets[i].partition, sets[i].number,
				   OSD_NOSEC);
			expect_good(unit);
		}
		struct call removal = call_of(OSD_REMOVE_PARTITION, P + 1, 0);

		call_run(unit, &removal);
		expect_good(unit);
	}
}

/* Who takes the device key away does not open what it closed; NOSEC can't be set without it. */
static void test_without_the_device_key_a_method_cannot_be_taken_back(void **state)
{
	struct unit *unit = *state;

	secured_set_method(unit, P, OSD_CMDRSP);
	secured_restart(unit, NULL);
	set_method(unit, OSD_SET_ATTRIBUTES, P, OSD_SECURITY_DEFAULT_METHOD, OSD_NOSEC);
	expect_field(unit, 80);
}

static void test_every_start_has_its_own_boot_epoch(void **state)
{
	struct unit *unit = *state;
	uint8_t first[2], second[2];

	assert_int_equal(unit_get(unit, 0, 0, OSD_ROOT_SECURITY, OSD_SECURITY_BOOT_EPOCH, first, 2),
			 2);
	secured_restart(unit, M->device_key);
	unit_get(unit, 0, 0, OSD_ROOT_SECURITY, OSD_SECURITY_BOOT_EPOCH, second, 2);
	assert_int_equal(get_be16(second), get_be16(first) + 1);
}

static void test_a_start_does_not_look_like_a_modification(void **state)
{
	struct unit *unit = *state;
	uint8_t before[6], after[6];

	unit_get(unit, 0, 0, OSD_ROOT_TIMESTAMPS, OSD_TIME_ATTRIBUTES_MODIFIED, before, 6);
	unit->now_ms += 1000;
	secured_restart(unit, M->device_key);
	assert_int_equal(
		unit_get(unit, 0, 0, OSD_ROOT_TIMESTAMPS, OSD_TIME_ATTRIBUTES_MODIFIED, after, 6),
		6);
	assert_memory_equal(before, after, 6);
}

/* The pages where keys are. */
static const uint32_t private_pages[] = { 0xBFFFFFFF, 0x5FFFFFFF };

static void test_no_command_shows_or_sets_the_stored_keys(void **state)
{
	struct unit *unit = *state;
	uint8_t value[128];

	for (size_t i = 0; i < 2; i++) {
		uint64_t partition = i == 0 ? 0 : P;
		struct call call = call_of(OSD_GET_ATTRIBUTES, partition, 0);
		size_t count;

		for (uint32_t number = 0; number < 0x30; number++)
			assert_int_equal(unit_get(unit, partition, 0, private_pages[i], number,
						  value, sizeof(value)),
					 0);
		call_get(&call, OSD_PAGE_ALL, OSD_ATTRIBUTE_ALL);
		call_get(&call, private_pages[i], OSD_ATTRIBUTE_ALL);
		call_get(&call, OSD_PAGE_ALL, 2);
		call_run(unit, &call);
		expect_good(unit);
		count = unit_retrieved_count(unit, &call);
		for (size_t j = 0; j < count; j++) {
			struct osd_attribute attribute = unit_retrieved(unit, &call, j);

			assert_int_not_equal(attribute.page, private_pages[i]);
			assert_int_not_equal(attribute.number, private_pages[i]);
		}
		call = call_of(OSD_SET_ATTRIBUTES, partition, 0);
		call_set(&call, private_pages[i], 2, "key", 3);
		call_run(unit, &call);
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
		assert_int_equal(unit_get(unit, partition, 0, i == 0 ? 0x90000000 : 0x30000000,
					  private_pages[i], value, sizeof(value)),
				 0);
	}
}

/* Calls `use` with the stored attribute of a key, past the target. */
static void change_stored(struct unit *unit, uint64_t partition, uint32_t number,
			  uint32_t from_number, size_t damaged_byte)
{
	struct engine_address address = { .partition = partition };
	uint32_t page = private_pages[partition ? 1 : 0], length;
	uint8_t value[128];
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_attribute_get(txn, address, page, from_number, value, sizeof(value),
					      &length),
			 0);
	assert_int_equal(length, 80);
	if (damaged_byte < length)
		value[damaged_byte] ^= 1;
	assert_int_equal(engine_attribute_set(txn, address, page, number, value, length), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static void test_stored_keys_are_encrypted_and_bound_to_their_place(void **state)
{
	struct unit *unit = *state;
	struct engine_address address = { .partition = P };
	struct signed_call call;
	struct engine_txn *txn;
	uint8_t value[128];
	uint32_t length;

	assert_int_equal(engine_begin(unit->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_attribute_get(txn, address, private_pages[1], 0x10 + KEY_VERSION,
					      value, sizeof(value), &length),
			 0);
	engine_abort(txn);
	assert_null(memmem(value, length, M->working[KEY_VERSION].authentication, 8));
	assert_null(memmem(value, length, "\x33\x33\x33\x33", 4));

	secured_set_method(unit, P, OSD_CMDRSP);
	/* In the place of another version. */
	change_stored(unit, P, 0x11, 0x10 + KEY_VERSION, SIZE_MAX);
	call = signed_call_of(unit, OSD_READ, P, O, OSD_CMDRSP);
	call.capability.key_version = 1;
	signed_run(unit, &call);
	expect_field(unit, 81);
	/* Damaged anywhere. */
	for (size_t byte = 0; byte < 80; byte += 13) {
		change_stored(unit, P, 0x10 + KEY_VERSION, 0x10 + KEY_VERSION, byte);
		call = signed_call_of(unit, OSD_READ, P, O, OSD_CMDRSP);
		signed_run(unit, &call);
		expect_field(unit, 81);
		change_stored(unit, P, 0x10 + KEY_VERSION, 0x10 + KEY_VERSION, byte);
	}
	call = signed_call_of(unit, OSD_READ, P, O, OSD_CMDRSP);
	signed_run(unit, &call);
	expect_good(unit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_device_key(test_keys_are_set_from_the_top_down),
		with_keys_in_both(test_a_key_can_only_be_set_with_the_one_above_it),
		with_keys_in_both(test_set_key_refuses_what_makes_no_sense),
		with_keys_in_both(test_keys_are_never_set_without_signature),
		with_keys_in_both(test_a_working_key_opens_its_partition),
		with_keys_in_both(test_a_new_key_invalidates_those_below),
		with_keys_in_both(test_no_key_at_hand_outlives_its_change),
		with_keys_in_both(test_keys_outlive_restart_and_format),
		with_keys(test_without_the_right_device_key_everything_secured_is_closed),
		with_keys(test_supported_methods_are_those_with_a_device_key),
		with_keys(test_a_method_that_the_unit_does_not_support_cannot_be_set),
		with_keys(test_without_the_device_key_a_method_cannot_be_taken_back),
		with_keys(test_every_start_has_its_own_boot_epoch),
		with_keys(test_a_start_does_not_look_like_a_modification),
		with_keys(test_no_command_shows_or_sets_the_stored_keys),
		with_keys_in_both(test_stored_keys_are_encrypted_and_bound_to_their_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
