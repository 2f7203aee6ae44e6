/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Going back in time never weakens what protects a partition, and never brings back a key that was
 * replaced.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "osd/security.h"
#include "tests/osd/function_call.h"
#include "tests/osd/secured.h"

#define M (&secured_manager)

#define SNAPSHOT (P + 1)
#define OTHER    (P + 2)

/* Executes a function with the working key, of the root with the root key. */
static void run_function(struct unit *unit, enum osd_function function, uint64_t partition,
			 uint64_t version)
{
	struct signed_call call = signed_call_of(unit, OSD_EXECUTE, partition, 0, OSD_CMDRSP);
	struct function_call made;

	function_of(&made, function, partition, 0);
	if (version)
		osd_item_add_number(&made.writer, OSD_ITEM_VERSION, version);
	call_data(&made.call, made.parameters, made.writer.length);
	made.call.cdb.address = osd_execute_address(function, (uint32_t)made.writer.length);
	made.call.cdb.length = made.call.data_in_capacity;
	call.call = made.call;
	signed_run(unit, &call);
	expect_good(unit);
}

static uint64_t take_snapshot(struct unit *unit, uint64_t partition)
{
	run_function(unit, OSD_FUNCTION_SNAPSHOT, partition, 0);
	return function_number(unit, OSD_ITEM_VERSION);
}

static void set_working_key(struct unit *unit, uint8_t fill)
{
	struct signed_call call = signed_set_key(unit, OSD_SET_WORKING_KEY, P, KEY_VERSION, fill,
						 &M->working[KEY_VERSION]);

	signed_run(unit, &call);
	expect_good(unit);
}

/* Reads O with a key; `field` 0: it works. */
static void read_with(struct unit *unit, uint64_t partition, const struct key_pair *key, int field)
{
	struct signed_call call = signed_call_of(unit, OSD_READ, partition, O, OSD_CMDRSP);

	call.secret = key->authentication;
	call.call.cdb.length = 1;
	call.call.data_in_capacity = 1;
	signed_run(unit, &call);
	if (field == 0)
		expect_good(unit);
	else
		expect_field(unit, field);
}

static void expect_closed(struct unit *unit, uint64_t partition)
{
	struct call plain = call_of(OSD_READ, partition, O);

	plain.cdb.length = 1;
	plain.data_in_capacity = 1;
	call_run(unit, &plain);
	expect_field(unit, 80);
}

static void expect_open(struct unit *unit, uint64_t partition)
{
	struct call plain = call_of(OSD_READ, partition, O);

	plain.cdb.length = 1;
	plain.data_in_capacity = 1;
	call_run(unit, &plain);
	expect_good(unit);
}

static void remove_partition(struct unit *unit)
{
	struct signed_call call = signed_call_of(unit, OSD_REMOVE_PARTITION, P, 0, OSD_CMDRSP);

	call.call.cdb.command_options = OSD_REMOVE_CONTENTS;
	signed_run(unit, &call);
	expect_good(unit);
}

static int set_up(void **state)
{
	secured_set_up(state);
	function_subscribe(*state);
	return 0;
}

static void test_a_rollback_leaves_keys_and_method_as_they_are(void **state)
{
	const uint64_t scopes[] = { P, 0 };
	struct unit *unit = *state;

	for (int n = 0; n < 2; n++) {
		const struct key_pair old = M->working[KEY_VERSION];
		uint64_t version = take_snapshot(unit, scopes[n]);

		set_working_key(unit, (uint8_t)(0x81 + n));
		secured_set_method(unit, P, OSD_CMDRSP);
		run_function(unit, OSD_FUNCTION_ROLLBACK, scopes[n], version);
		expect_closed(unit, P);
		read_with(unit, P, &old, unit_layout()->check_value);
		read_with(unit, P, &M->working[KEY_VERSION], 0);
		/* Nor does a look at the past need less than one at the present. */
		expect_closed(unit, version << 48 | P);
		secured_reopen(unit, OSD_CMDRSP);
	}
}

static void test_a_rollback_of_the_device_leaves_the_root_key_as_it_is(void **state)
{
	struct unit *unit = *state;
	uint64_t version = take_snapshot(unit, 0);
	const struct key_pair old = M->root;
	struct signed_call call = signed_set_key(unit, OSD_SET_ROOT_KEY, 0, 0, 0x91, &M->root);

	signed_run(unit, &call);
	expect_good(unit);
	run_function(unit, OSD_FUNCTION_ROLLBACK, 0, version);
	call = signed_set_key(unit, OSD_SET_PARTITION_KEY, P, 0, 0x92, &M->partition);
	call.secret = old.authentication;
	signed_run(unit, &call);
	expect_field(unit, unit_layout()->check_value);
	call.secret = M->root.authentication;
	fresh_nonce(unit, call.nonce);
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_a_partition_that_comes_back_is_closed_until_it_has_new_keys(void **state)
{
	struct unit *unit = *state;
	/* From when it was open. */
	uint64_t version = take_snapshot(unit, 0);

	secured_set_method(unit, P, OSD_CMDRSP);
	remove_partition(unit);
	/* So is what versions of the device still show of it. */
	expect_closed(unit, version << 48 | P);
	read_with(unit, version << 48 | P, &M->working[KEY_VERSION], 81);
	run_function(unit, OSD_FUNCTION_ROLLBACK, 0, version);
	expect_closed(unit, P);
	read_with(unit, P, &M->working[KEY_VERSION], 81);
	secured_set_keys(unit, M);
	read_with(unit, P, &M->working[KEY_VERSION], 0);
	expect_closed(unit, P);
}

static void test_a_partition_that_was_open_comes_back_open(void **state)
{
	struct unit *unit = *state;
	uint64_t version = take_snapshot(unit, 0);

	remove_partition(unit);
	expect_open(unit, version << 48 | P);
	run_function(unit, OSD_FUNCTION_ROLLBACK, 0, version);
	expect_open(unit, P);
}

/* Records that a rollback of the device puts. */
static uint64_t rollback_records(struct unit *unit, uint64_t version)
{
	struct engine_statistics before, after;

	engine_read_statistics(unit->engine, &before);
	run_function(unit, OSD_FUNCTION_ROLLBACK, 0, version);
	engine_read_statistics(unit->engine, &after);
	return after.records_put - before.records_put;
}

static void test_a_rollback_costs_the_same_however_many_partitions_are_secured(void **state)
{
	enum { PARTITIONS = 300 };
	struct unit *unit = *state;
	uint64_t version = take_snapshot(unit, 0);
	uint64_t one = rollback_records(unit, version), many;

	for (uint64_t partition = P + 1; partition < P + PARTITIONS; partition++) {
		unit_create_partition(unit, partition);
		secured_set_method(unit, partition, OSD_CAPKEY);
	}
	version = take_snapshot(unit, 0);
	for (uint64_t partition = P + 1; partition < P + PARTITIONS; partition++) {
		struct signed_call call = signed_set_key(unit, OSD_SET_PARTITION_KEY, partition, 0,
							 0x41, &M->partition);

		signed_run(unit, &call);
		expect_good(unit);
	}
	many = rollback_records(unit, version);
	assert_int_equal(many, one);
	assert_true(many <= 4);
	for (uint64_t partition = P + 1; partition < P + PARTITIONS; partition++)
		expect_closed(unit, partition);
}

static void test_a_detached_snapshot_keeps_the_method_of_its_source(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	struct call plain = call_of(OSD_CREATE_SNAPSHOT, SNAPSHOT, 0);

	plain.cdb.address = P;
	call_run(unit, &plain);
	expect_good(unit);
	secured_set_method(unit, P, OSD_CMDRSP);
	call = signed_call_of(unit, OSD_DETACH_CLONE, SNAPSHOT, 0, OSD_CMDRSP);
	signed_run(unit, &call);
	expect_good(unit);
	expect_closed(unit, SNAPSHOT);
	read_with(unit, SNAPSHOT, &M->working[KEY_VERSION], 81);
}

static void test_a_refreshed_clone_is_no_less_protected_than_its_source(void **state)
{
	struct unit *unit = *state;
	struct call plain = call_of(OSD_CREATE_CLONE, SNAPSHOT, 0);
	struct key_pair working;
	struct signed_call call;

	plain.cdb.address = P;
	call_run(unit, &plain);
	expect_good(unit);
	secured_set_keys_of(unit, SNAPSHOT, 0x61, &working);
	expect_open(unit, SNAPSHOT);
	secured_set_method(unit, P, OSD_CMDRSP);
	expect_open(unit, SNAPSHOT);
	call = signed_call_of(unit, OSD_REFRESH_SNAPSHOT_OR_CLONE, SNAPSHOT, 0, OSD_CMDRSP);
	call.secret = working.authentication;
	signed_extend(&call, P, 0, OSD_TYPE_PARTITION, OSD_PERMISSION_READ);
	signed_run(unit, &call);
	expect_good(unit);
	expect_closed(unit, SNAPSHOT);
	read_with(unit, SNAPSHOT, &working, 0);
}

static void test_a_clone_has_the_policy_of_its_source(void **state)
{
	static const uint8_t audit[20] = { 7 }, pair[8] = { 0, 1, 0, 0, 0, 0, 0, 2 };
	struct unit *unit = *state;
	struct call plain = call_of(OSD_CREATE_CLONE, SNAPSHOT, 0);
	uint8_t value[20];

	unit_set(unit, P, 0, OSD_PARTITION_FROZEN_AUDITS, 3, audit, sizeof(audit));
	unit_set(unit, P, 0, OSD_PARTITION_SECURITY, OSD_SECURITY_FROZEN_KEYS, "\0\7", 2);
	unit_set(unit, P, 0, OSD_PARTITION_ATTRIBUTES_ACCESS, 0x10, pair, sizeof(pair));
	plain.cdb.address = P;
	call_run(unit, &plain);
	expect_good(unit);
	assert_int_equal(unit_get(unit, SNAPSHOT, 0, OSD_PARTITION_FROZEN_AUDITS, 3, value, 20),
			 20);
	assert_memory_equal(value, audit, 20);
	assert_int_equal(unit_get(unit, SNAPSHOT, 0, OSD_PARTITION_SECURITY,
				  OSD_SECURITY_FROZEN_KEYS, value, 20),
			 2);
	assert_int_equal(value[1], 7);
	assert_int_equal(
		unit_get(unit, SNAPSHOT, 0, OSD_PARTITION_ATTRIBUTES_ACCESS, 0x10, value, 20),
		sizeof(pair));
	assert_memory_equal(value, pair, sizeof(pair));
	assert_int_equal(unit_get(unit, SNAPSHOT, 0, OSD_PARTITION_SECURITY,
				  OSD_SECURITY_WORKING_KEY_IDENTIFIERS + KEY_VERSION, value, 20),
			 0);
}

#define with_history(test) cmocka_unit_test_setup_teardown(test, set_up, unit_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_history(test_a_rollback_leaves_keys_and_method_as_they_are),
		with_history(test_a_rollback_of_the_device_leaves_the_root_key_as_it_is),
		with_history(test_a_partition_that_comes_back_is_closed_until_it_has_new_keys),
		with_history(test_a_partition_that_was_open_comes_back_open),
		with_history(test_a_rollback_costs_the_same_however_many_partitions_are_secured),
		with_history(test_a_detached_snapshot_keeps_the_method_of_its_source),
		with_history(test_a_refreshed_clone_is_no_less_protected_than_its_source),
		with_history(test_a_clone_has_the_policy_of_its_source),
	};

	return cmocka_run_group_tests_name("security and history", tests, NULL, NULL);
}
