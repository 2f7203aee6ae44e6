/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Extension capabilities: a command works on further objects only with a capability for each that
 * allows it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "tests/osd/extended.h"

#define M (&secured_manager)

static void test_the_capability_of_the_cdb_is_for_no_other_object(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < SECURED_METHODS; i++) {
		uint64_t before = secured_close(unit, secured_methods[i]);

		for (size_t j = 0; j < use_count; j++) {
			struct signed_call call = call_of_use(unit, &uses[j], secured_methods[i]);

			/* It has GLOBAL and M_OBJECT, too. */
			signed_run(unit, &call);
			expect_field(unit, 129);
			assert_int_equal(contents_of(unit), before);
		}
		secured_reopen(unit, secured_methods[i]);
	}
}

static void test_each_further_object_needs_exactly_its_permissions(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_CMDRSP);

	for (size_t i = 0; i < use_count; i++) {
		const struct use *use = &uses[i];
		struct signed_call call;

		for (unsigned bit = 0; bit < 16; bit++) {
			if (!(use->further_permissions >> bit & 1))
				continue;
			call = call_of_use(unit, use, OSD_CMDRSP);
			extend(&call, use)->capability.permissions = (uint16_t) ~(1u << bit);
			signed_run(unit, &call);
			expect_extension_field(unit, &call, 129);
			assert_int_equal(contents_of(unit), before);
		}
		for (unsigned bit = 0; bit < 16; bit++) {
			if (!(use->present >> bit & 1))
				continue;
			call = call_of_use(unit, use, OSD_CMDRSP);
			call.capability.permissions = (uint16_t) ~(1u << bit);
			extend(&call, use)->capability.permissions = 0xFFFC;
			signed_run(unit, &call);
			expect_field(unit, 129);
			assert_int_equal(contents_of(unit), before);
		}
		call = call_of_use(unit, use, OSD_CMDRSP);
		call.capability.permissions = use->present;
		extend(&call, use);
		signed_run(unit, &call);
		expect_good(unit);
		before = contents_of(unit);
	}
}

static void test_every_method_takes_them(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < SECURED_METHODS; i++) {
		secured_close(unit, secured_methods[i]);
		for (size_t j = 0; j < USES_WITHIN_P; j++) {
			struct signed_call call = call_of_use(unit, &uses[j], secured_methods[i]);

			extend(&call, &uses[j]);
			signed_run(unit, &call);
			expect_good(unit);
		}
		secured_reopen(unit, secured_methods[i]);
	}
}

/* ---- what a genuine one does not allow ---- */

static void change_format(struct osd_capability *capability)
{
	capability->format = OSD_CAPABILITY_OSD1;
}

static void weaken(struct osd_capability *capability)
{
	capability->method = OSD_CAPKEY;
}

static void strengthen(struct osd_capability *capability)
{
	capability->method = OSD_ALLDATA;
}

static void change_type(struct osd_capability *capability)
{
	capability->object_type = OSD_TYPE_COLLECTION;
	capability->descriptor_type = OSD_DESCRIPTOR_COLLECTION;
}

static void restrict_range(struct osd_capability *capability)
{
	capability->range_length = 1 << 20;
}

static void test_each_field_of_a_genuine_one_counts(void **state)
{
	static const struct {
		void (*change)(struct osd_capability *capability);
		uint16_t field;
	} cases[] = {
		{ change_format, 80 },        { change_algorithm, 81 },
		{ change_key_version, 81 },   { weaken, 82 },
		{ strengthen, 82 },           { let_expire, 84 },
		{ change_created_time, 122 }, { change_type, 128 },
		{ change_descriptor, 135 },   { restrict_attributes, 136 },
		{ change_tag, 140 },          { change_epoch, 144 },
		{ restrict_range, 168 },
	};
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_CMDRSP);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct signed_call call = call_of_use(unit, &uses[USE_COPY], OSD_CMDRSP);

		cases[i].change(&extend(&call, &uses[USE_COPY])->capability);
		signed_run(unit, &call);
		expect_extension_field(unit, &call, cases[i].field);
		assert_true(answer_is_signed(unit));
		assert_int_equal(contents_of(unit), before);
	}
}

static void test_one_for_another_object_is_none(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_CMDRSP);

	for (size_t i = 0; i < 3; i++) {
		struct signed_call call = call_of_use(unit, &uses[USE_COPY], OSD_CMDRSP);
		struct granted *granted = extend(&call, &uses[USE_COPY]);

		if (i == 0)
			granted->capability.object = O;
		else if (i == 1)
			granted->capability.partition = P | UINT64_C(1) << 48;
		else
			granted->capability.partition = SNAPSHOT;
		signed_run(unit, &call);
		expect_field(unit, 129);
		assert_int_equal(contents_of(unit), before);
	}
}

static void test_times_and_tags_that_are_right_are_accepted(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	struct granted *granted;

	unit_set(unit, P, SECOND, OSD_USER_OBJECT_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG,
		 "\0\0\0\x4D", 4);
	secured_close(unit, OSD_CMDRSP);
	call = call_of_use(unit, &uses[USE_COPY], OSD_CMDRSP);
	granted = extend(&call, &uses[USE_COPY]);
	granted->capability.policy_tag = 77;
	granted->capability.created_ms = UNIT_CLOCK;
	granted->capability.expires_ms = 0;
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_what_the_partition_has_frozen_opens_nothing(void **state)
{
	struct unit *unit = *state;
	uint8_t mask[2] = { 0, 1 << KEY_VERSION }, audit[20] = "withdrawn account";
	struct signed_call call;
	uint64_t before;

	unit_set(unit, OTHER, 0, OSD_PAGES_PARTITION + OSD_PAGES_VENDOR, 1, audit, sizeof(audit));
	secured_set_method(unit, OTHER, OSD_CMDRSP);
	before = secured_close(unit, OSD_CMDRSP);
	call = copy_of_other(unit, OSD_CMDRSP);
	extend_by_other(&call);
	memcpy(call.extensions[0].capability.audit, audit, sizeof(audit));
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_SECURITY_AUDIT_VALUE_FROZEN);
	assert_int_equal(contents_of(unit), before);

	call = signed_call_of(unit, OSD_SET_ATTRIBUTES, OTHER, 0, OSD_CMDRSP);
	call.secret = other_working.authentication;
	call_set(&call.call, OSD_PARTITION_SECURITY, OSD_SECURITY_FROZEN_KEYS, mask, 2);
	signed_run(unit, &call);
	expect_good(unit);
	before = contents_of(unit);
	call = copy_of_other(unit, OSD_CMDRSP);
	extend_by_other(&call);
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_SECURITY_WORKING_KEY_FROZEN);
	assert_int_equal(contents_of(unit), before);
}

/* ---- several partitions ---- */

static void test_objects_of_another_secured_partition_can_be_read_with_its_key(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	char data[5];

	secured_set_method(unit, OTHER, OSD_CMDRSP);
	secured_close(unit, OSD_CMDRSP);
	call = copy_of_other(unit, OSD_CMDRSP);
	extend_by_other(&call);
	call_get(&call.call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_ID);
	signed_run(unit, &call);
	expect_good(unit);
	call = signed_call_of(unit, OSD_READ, P,
			      get_be64(unit_retrieved(unit, &call.call, 0).value), OSD_CMDRSP);
	call.call.data_in_capacity = call.call.cdb.length = sizeof(data);
	signed_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, "other", sizeof(data));
}

static void test_a_request_is_as_strong_as_all_its_partitions_ask_for(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	uint64_t before;

	secured_set_method(unit, OTHER, OSD_ALLDATA);
	before = secured_close(unit, OSD_CAPKEY);
	for (unsigned method = OSD_NOSEC; method < OSD_ALLDATA; method++) {
		call = copy_of_other(unit, (uint8_t)method);
		extend_by_other(&call);
		signed_run(unit, &call);
		expect_field(unit, 82);
		assert_int_equal(contents_of(unit), before);
	}
	call = copy_of_other(unit, OSD_ALLDATA);
	extend_by_other(&call);
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_nothing_leaves_a_secured_partition_for_an_open_one_unsigned(void **state)
{
	struct unit *unit = *state;
	uint64_t before = contents_of(unit);
	struct signed_call call;
	struct call plain;

	secured_set_method(unit, OTHER, OSD_CMDRSP);
	/*
	 * Without capability; with one that nobody has signed; with one whose request nobody has
	 * signed.
	 */
	plain = copy_of_other(unit, OSD_NOSEC).call;
	call_run(unit, &plain);
	expect_field(unit, 129);
	call = copy_of_other(unit, OSD_CMDRSP);
	extend_by_other(&call);
	call.extensions[0].secret = M->root.authentication;
	signed_run(unit, &call);
	expect_extension_field(unit, &call, unit_layout()->check_value);
	call = copy_of_other(unit, OSD_NOSEC);
	extend_by_other(&call);
	call.extensions[0].capability.method = OSD_CMDRSP;
	signed_run(unit, &call);
	expect_field(unit, 82);
	assert_int_equal(contents_of(unit), before);
	/* It can be done by who has keys of both. */
	call = copy_of_other(unit, OSD_CMDRSP);
	extend_by_other(&call);
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_what_is_open_needs_none(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;

	secured_close(unit, OSD_CMDRSP);
	call = copy_of_other(unit, OSD_CMDRSP);
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_several_objects_need_one_each(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	uint64_t before;

	secured_set_method(unit, OTHER, OSD_CMDRSP);
	before = secured_close(unit, OSD_CMDRSP);
	call = copy_of_other(unit, OSD_CMDRSP);
	add_source(&call.call, P, SECOND, false);
	extend_by_other(&call);
	signed_run(unit, &call);
	expect_field(unit, 129);
	assert_int_equal(contents_of(unit), before);
	/* In any order; one that is not needed does no harm, but has to be genuine. */
	call = copy_of_other(unit, OSD_CMDRSP);
	add_source(&call.call, P, SECOND, false);
	extend(&call, &uses[USE_COPY]);
	signed_extend(&call, P, O, OSD_TYPE_USER_OBJECT, 0);
	extend_by_other(&call);
	call.extensions[1].secret = M->root.authentication;
	signed_run(unit, &call);
	assert_int_equal(unit_sense(unit).code, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(contents_of(unit), before);
	fresh_nonce(unit, call.nonce);
	call.extensions[1].secret = M->working[KEY_VERSION].authentication;
	signed_run(unit, &call);
	expect_good(unit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_scene(test_the_capability_of_the_cdb_is_for_no_other_object),
		with_scene(test_each_further_object_needs_exactly_its_permissions),
		with_scene(test_every_method_takes_them),
		with_scene(test_each_field_of_a_genuine_one_counts),
		with_scene(test_one_for_another_object_is_none),
		with_scene(test_times_and_tags_that_are_right_are_accepted),
		with_scene(test_what_the_partition_has_frozen_opens_nothing),
		with_scene(test_objects_of_another_secured_partition_can_be_read_with_its_key),
		with_scene(test_a_request_is_as_strong_as_all_its_partitions_ask_for),
		with_scene(test_nothing_leaves_a_secured_partition_for_an_open_one_unsigned),
		with_scene(test_what_is_open_needs_none),
		with_scene(test_several_objects_need_one_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
