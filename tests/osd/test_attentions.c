/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Unit attentions: what one initiator did that the others are told, each once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "osd/conditions.h"
#include "tests/osd/command_rows.h"
#include "tests/osd/function_call.h"
#include "tests/osd/secured.h"

enum { ALICE = 1, BOB = 2, CAROL = 3 };

static void run_as(struct unit *unit, uint64_t nexus, uint16_t action, uint64_t partition,
		   uint64_t object)
{
	struct call call = call_of(action, partition, object);

	unit->nexus = nexus;
	call_run(unit, &call);
}

/* Makes a nexus known. */
static void greet(struct unit *unit, uint64_t nexus)
{
	run_as(unit, nexus, OSD_GET_ATTRIBUTES, 0, 0);
	expect_good(unit);
}

static void test_others_are_told_once_that_the_unit_was_formatted(void **state)
{
	struct unit *unit = *state;
	struct osd_sense sense;

	greet(unit, ALICE);
	greet(unit, BOB);
	greet(unit, CAROL);
	run_as(unit, ALICE, OSD_FORMAT_OSD, 0, 0);
	expect_good(unit);
	run_as(unit, ALICE, OSD_CREATE_PARTITION, P, 0);
	expect_good(unit);
	for (uint64_t nexus = BOB; nexus <= CAROL; nexus++) {
		run_as(unit, nexus, OSD_REMOVE_PARTITION, P, 0);
		expect_sense(unit, SENSE_UNIT_ATTENTION, SENSE_MEDIUM_MAY_HAVE_CHANGED);
		sense = unit_sense(unit);
		assert_int_equal(sense.not_initiated, OSD_FUNCTIONS_ALL);
		/* Nothing was done, and the next command goes through. */
		run_as(unit, nexus, OSD_GET_ATTRIBUTES, P, 0);
		expect_good(unit);
	}
}

static void test_others_are_told_of_what_was_restored_or_refreshed(void **state)
{
	static const uint16_t actions[] = { OSD_REFRESH_SNAPSHOT_OR_CLONE,
					    OSD_RESTORE_PARTITION_FROM_SNAPSHOT };
	struct unit *unit = *state;

	command_rows_prepare(unit);
	greet(unit, CAROL);
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		struct call call = command_row_call(command_row_of(actions[i]), OSD_2);

		run_as(unit, BOB, OSD_GET_ATTRIBUTES, call.cdb.partition, 0);
		expect_good(unit);
		unit->nexus = ALICE;
		call.cdb.command_options = OSD_FORCE_USERS;
		call_run(unit, &call);
		expect_good(unit);
		run_as(unit, BOB, OSD_GET_ATTRIBUTES, 0, 0);
		expect_sense(unit, SENSE_UNIT_ATTENTION, SENSE_MEDIUM_MAY_HAVE_CHANGED);
		greet(unit, BOB);
		/* It concerns one partition, which she does not use. */
		greet(unit, CAROL);
	}
}

static void roll_back(struct unit *unit, uint64_t partition, uint64_t object, uint64_t version)
{
	struct function_call call;

	function_of(&call, OSD_FUNCTION_ROLLBACK, partition, object);
	osd_item_add_number(&call.writer, OSD_ITEM_VERSION, version);
	osd_item_add_number(&call.writer, OSD_ITEM_FORCE, 1);
	function_run(unit, &call);
	expect_good(unit);
}

static void test_others_are_told_of_what_was_rolled_back(void **state)
{
	struct unit *unit = *state;
	const uint64_t partitions[] = { P, 0 };
	struct function_call call;

	greet(unit, CAROL);
	run_as(unit, BOB, OSD_GET_ATTRIBUTES, P, 0);
	for (size_t i = 0; i < 2; i++) {
		uint64_t version;

		unit->nexus = ALICE;
		function_subscribe(unit);
		function_of(&call, OSD_FUNCTION_SNAPSHOT, partitions[i], 0);
		function_run(unit, &call);
		expect_good(unit);
		version = function_number(unit, OSD_ITEM_VERSION);
		unit_write(unit, O, 0, "later", 5);
		/* One object is changed, as by a WRITE; nobody is told of that. */
		if (i == 0) {
			roll_back(unit, P, O, version);
			greet(unit, BOB);
			unit->nexus = ALICE;
		}
		roll_back(unit, partitions[i], 0, version);
		run_as(unit, BOB, OSD_GET_ATTRIBUTES, 0, 0);
		expect_sense(unit, SENSE_UNIT_ATTENTION, SENSE_MEDIUM_MAY_HAVE_CHANGED);
		greet(unit, BOB);
		/* She does not use the partition, but everybody uses the device. */
		run_as(unit, CAROL, OSD_GET_ATTRIBUTES, 0, 0);
		if (partitions[i] == P)
			expect_good(unit);
		else
			expect_sense(unit, SENSE_UNIT_ATTENTION, SENSE_MEDIUM_MAY_HAVE_CHANGED);
	}
}

static void test_others_are_told_that_keys_have_changed(void **state)
{
	struct unit *unit = *state;

	greet(unit, BOB);
	unit->nexus = ALICE;
	secured_set_keys(unit, &secured_manager);
	run_as(unit, BOB, OSD_GET_ATTRIBUTES, 0, 0);
	expect_sense(unit, SENSE_UNIT_ATTENTION, SENSE_PARAMETERS_CHANGED);
	greet(unit, BOB);
}

static void test_a_format_that_failed_is_no_news(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_FORMAT_OSD, 0, 0);

	greet(unit, BOB);
	unit->nexus = ALICE;
	call.cdb.length = UINT64_MAX;
	call_run(unit, &call);
	expect_field(unit, 32);
	greet(unit, BOB);
}

static void test_who_comes_later_or_is_nobody_is_told_nothing(void **state)
{
	struct unit *unit = *state;

	greet(unit, ALICE);
	run_as(unit, ALICE, OSD_FORMAT_OSD, 0, 0);
	expect_good(unit);
	greet(unit, BOB);
	greet(unit, 0);
	/* Of what nobody did everybody is told. */
	run_as(unit, 0, OSD_FORMAT_OSD, 0, 0);
	expect_good(unit);
	run_as(unit, ALICE, OSD_GET_ATTRIBUTES, 0, 0);
	expect_sense(unit, SENSE_UNIT_ATTENTION, SENSE_MEDIUM_MAY_HAVE_CHANGED);
}

static void test_a_command_that_can_t_be_read_keeps_the_attention(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_ATTRIBUTES, 0, 0);

	greet(unit, BOB);
	run_as(unit, ALICE, OSD_FORMAT_OSD, 0, 0);
	expect_good(unit);
	unit->nexus = BOB;
	call.cdb.timestamps_control = 5;
	call_run(unit, &call);
	expect_field(unit, 12);
	call.cdb.timestamps_control = 0;
	call_run(unit, &call);
	expect_sense(unit, SENSE_UNIT_ATTENTION, SENSE_MEDIUM_MAY_HAVE_CHANGED);
}

static void test_several_attentions_are_told_one_by_one(void **state)
{
	struct osd_conditions *conditions = osd_conditions_create();
	enum osd_attention attention;

	(void)state;
	assert_false(osd_attention_take(conditions, BOB, &attention));
	osd_attention_raise(conditions, ALICE, 0, OSD_ATTENTION_KEYS_CHANGED);
	osd_attention_raise(conditions, ALICE, 0, OSD_ATTENTION_FORMATTED);
	osd_attention_raise(conditions, ALICE, 0, OSD_ATTENTION_FORMATTED);
	osd_attention_raise(conditions, ALICE, 0, OSD_ATTENTION_RESTORED);
	assert_true(osd_attention_take(conditions, BOB, &attention));
	assert_int_equal(attention, OSD_ATTENTION_FORMATTED);
	assert_true(osd_attention_take(conditions, BOB, &attention));
	assert_int_equal(attention, OSD_ATTENTION_RESTORED);
	assert_true(osd_attention_take(conditions, BOB, &attention));
	assert_int_equal(attention, OSD_ATTENTION_KEYS_CHANGED);
	assert_false(osd_attention_take(conditions, BOB, &attention));
	assert_int_equal(osd_attention_code(OSD_ATTENTION_KEYS_CHANGED), SENSE_PARAMETERS_CHANGED);
	assert_int_equal(osd_attention_code(OSD_ATTENTION_RESTORED), SENSE_MEDIUM_MAY_HAVE_CHANGED);
	osd_conditions_destroy(conditions);
}

static void test_of_too_many_sessions_the_longest_silent_is_forgotten(void **state)
{
	struct osd_conditions *conditions = osd_conditions_create();
	enum osd_attention attention;

	(void)state;
	for (uint64_t nexus = 1; nexus <= OSD_NEXUSES_MAX; nexus++)
		assert_false(osd_attention_take(conditions, nexus, &attention));
	assert_false(osd_attention_take(conditions, 1, &attention));
	osd_attention_raise(conditions, 7, 0, OSD_ATTENTION_FORMATTED);
	/* 2 is the one that was silent for longest. */
	assert_false(osd_attention_take(conditions, OSD_NEXUSES_MAX + 1, &attention));
	assert_false(osd_attention_take(conditions, 7, &attention));
	for (uint64_t nexus = 1; nexus <= OSD_NEXUSES_MAX; nexus++)
		if (nexus != 2 && nexus != 7)
			assert_true(osd_attention_take(conditions, nexus, &attention));
	assert_false(osd_attention_take(conditions, 2, &attention));
	osd_conditions_destroy(conditions);
}

static void test_other_commands_of_the_unit_tell_it_too(void **state)
{
	struct unit *unit = *state;
	uint8_t data[OSD_SENSE_BYTES_MAX];
	struct osd_sense sense;
	size_t length;

	assert_false(osd_unit_attention(unit->device, BOB, data, &length));
	run_as(unit, ALICE, OSD_FORMAT_OSD, 0, 0);
	expect_good(unit);
	assert_true(osd_unit_attention(unit->device, BOB, data, &length));
	assert_int_equal(osd_sense_decode(data, length, &sense), 0);
	assert_int_equal(sense.key, SENSE_UNIT_ATTENTION);
	assert_int_equal(sense.code, SENSE_MEDIUM_MAY_HAVE_CHANGED);
	greet(unit, BOB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_unit(test_others_are_told_once_that_the_unit_was_formatted),
		with_object(test_others_are_told_of_what_was_restored_or_refreshed),
		with_object(test_others_are_told_of_what_was_rolled_back),
		with_keys(test_others_are_told_that_keys_have_changed),
		with_unit(test_a_format_that_failed_is_no_news),
		with_unit(test_who_comes_later_or_is_nobody_is_told_nothing),
		with_unit(test_a_command_that_can_t_be_read_keeps_the_attention),
		cmocka_unit_test(test_several_attentions_are_told_one_by_one),
		cmocka_unit_test(test_of_too_many_sessions_the_longest_silent_is_forgotten),
		with_unit(test_other_commands_of_the_unit_tell_it_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
