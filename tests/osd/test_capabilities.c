/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What a unit offers, and refuses, by what its object store can do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "osd/execute.h"
#include "tests/osd/function_call.h"

static void take_away(struct unit *unit, uint32_t capabilities)
{
	unit->device->capabilities &= ~capabilities;
}

static void run(struct unit *unit, uint16_t action, uint64_t partition, uint64_t object)
{
	struct call call = call_of(action, partition, object);

	call_run(unit, &call);
}

/* Is the function in the answer of FEATURES? */
static bool is_offered(struct unit *unit, enum osd_function function)
{
	struct osd_item entry;

	function_run_with(unit, OSD_FUNCTION_FEATURES, 0, 0, 0, 0);
	for (size_t n = 0; function_entry(unit, n, &entry); n++)
		if (entry_number(&entry, OSD_ITEM_FUNCTION) == function)
			return true;
	return false;
}

static void the_engine_has_them_all(void **state)
{
	struct unit *unit = *state;

	assert_int_equal(unit->device->capabilities,
			 ENGINE_HAS_COLLECTIONS | ENGINE_HAS_MERGE | ENGINE_HAS_VERSIONS |
				 ENGINE_HAS_ROLLBACK | ENGINE_HAS_DIFFERENCES |
				 ENGINE_HAS_RETENTION | ENGINE_HAS_CLONES);
	function_run_with(unit, OSD_FUNCTION_FEATURES, 0, 0, 0, 0);
	assert_int_equal(function_number(unit, OSD_ITEM_FEATURES), OSD_FEATURES_ALL);
}

static void functions_that_the_engine_cannot_serve_are_not_there(void **state)
{
	static const struct {
		uint32_t capability;
		enum osd_function function;
	} cases[] = {
		{ ENGINE_HAS_VERSIONS, OSD_FUNCTION_VERSIONS },
		{ ENGINE_HAS_ROLLBACK, OSD_FUNCTION_LOG },
		/* Its moments are those of versions. */
		{ ENGINE_HAS_VERSIONS, OSD_FUNCTION_LOG },
		{ ENGINE_HAS_VERSIONS, OSD_FUNCTION_ROLLBACK },
		{ ENGINE_HAS_DIFFERENCES, OSD_FUNCTION_DIFF },
		{ ENGINE_HAS_VERSIONS, OSD_FUNCTION_DIFF },
		{ ENGINE_HAS_RETENTION, OSD_FUNCTION_RETENTION },
		{ ENGINE_HAS_VERSIONS, OSD_FUNCTION_RETENTION },
		{ ENGINE_HAS_MERGE, OSD_FUNCTION_MERGE },
		{ ENGINE_HAS_MERGE, OSD_FUNCTION_SPACE },
		{ ENGINE_HAS_VERSIONS, OSD_FUNCTION_SPACE },
	};
	struct unit *unit = *state;

	function_subscribe(unit);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unit->device->capabilities = engine_capabilities(unit->engine);
		assert_true(is_offered(unit, cases[i].function));
		take_away(unit, cases[i].capability);
		assert_false(is_offered(unit, cases[i].function));
		function_run_with(unit, cases[i].function, 0, 0, 0, 0);
		expect_field(unit, 40);
	}
}

static void only_features_with_a_function_can_be_subscribed_to(void **state)
{
	struct unit *unit = *state;

	take_away(unit, ENGINE_HAS_VERSIONS | ENGINE_HAS_RETENTION);
	function_run_with(unit, OSD_FUNCTION_FEATURES, 0, 0, 0, 0);
	/* RETENTION still has MERGE. */
	assert_int_equal(function_number(unit, OSD_ITEM_FEATURES),
			 OSD_FEATURES_ALL & ~OSD_FEATURE_VERSIONS);
	function_run_with(unit, OSD_FUNCTION_SUBSCRIBE, 0, 0, OSD_ITEM_FEATURES,
			  OSD_FEATURE_VERSIONS);
	expect_parameter(unit, 0);
	function_run_with(unit, OSD_FUNCTION_SUBSCRIBE, 0, 0, OSD_ITEM_FEATURES,
			  OSD_FEATURE_RETENTION);
	expect_good(unit);
}

static void commands_that_the_engine_cannot_serve_are_not_there(void **state)
{
	static const struct {
		uint32_t capability;
		uint16_t action;
	} cases[] = {
		{ ENGINE_HAS_COLLECTIONS, OSD_CREATE_COLLECTION },
		{ ENGINE_HAS_COLLECTIONS, OSD_QUERY },
		{ ENGINE_HAS_COLLECTIONS, OSD_LIST_COLLECTION },
		{ ENGINE_HAS_CLONES, OSD_CREATE_SNAPSHOT },
		{ ENGINE_HAS_CLONES, OSD_DETACH_CLONE },
		{ ENGINE_HAS_ROLLBACK, OSD_RESTORE_PARTITION_FROM_SNAPSHOT },
	};
	struct unit *unit = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unit->device->capabilities = engine_capabilities(unit->engine);
		take_away(unit, cases[i].capability);
		run(unit, cases[i].action, P, 0);
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_COMMAND_OPERATION_CODE);
	}
	/* What is no part of them goes on. */
	unit->device->capabilities = 0;
	unit_write(unit, O, 0, "data", 4);
	assert_int_equal(unit_get_number(unit, P, O, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 4);
}

static void without_versions_addresses_with_one_name_nothing(void **state)
{
	struct unit *unit = *state;
	uint64_t version;

	function_subscribe(unit);
	version = function_snapshot(unit, P, NULL);
	run(unit, OSD_GET_ATTRIBUTES, version << 48 | P, O);
	expect_good(unit);
	take_away(unit, ENGINE_HAS_VERSIONS);
	run(unit, OSD_GET_ATTRIBUTES, version << 48 | P, O);
	expect_field(unit, OSD_FIELD_PARTITION);
}

static void without_clones_the_root_says_that_there_can_be_none(void **state)
{
	struct unit *unit = *state;
	uint8_t value[4];

	take_away(unit, ENGINE_HAS_CLONES);
	assert_int_equal(unit_get(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_CLONES_MAX, value, 4),
			 4);
	assert_int_equal(get_be32(value), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_unit(the_engine_has_them_all),
		with_unit(functions_that_the_engine_cannot_serve_are_not_there),
		with_unit(only_features_with_a_function_can_be_subscribed_to),
		with_object(commands_that_the_engine_cannot_serve_are_not_there),
		with_object(without_versions_addresses_with_one_name_nothing),
		with_unit(without_clones_the_root_says_that_there_can_be_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
