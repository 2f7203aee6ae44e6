/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Nobody takes a partition back while other sessions use it, unless he says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "osd/conditions.h"
#include "tests/osd/command_rows.h"
#include "tests/osd/function_call.h"

enum { ALICE = 1, BOB = 2, CAROL = 3 };

#define Q (P + 1)

static void be(struct unit *unit, uint64_t nexus)
{
	static const char *const names[] = { NULL, "iqn.alice", "iqn.bob alias: bob",
					     "iqn.carol\n" };

	unit->nexus = nexus;
	unit->initiator = names[nexus];
}

/* A session looks at something, and so uses it. */
static void look_as(struct unit *unit, uint64_t nexus, uint64_t partition, uint64_t object)
{
	struct call call = call_of(OSD_GET_ATTRIBUTES, partition, object);

	be(unit, nexus);
	call_run(unit, &call);
	expect_good(unit);
}

static void try_rollback(struct unit *unit, uint64_t partition, uint64_t object, uint64_t version,
			 uint64_t force)
{
	struct function_call call;

	be(unit, ALICE);
	function_of(&call, OSD_FUNCTION_ROLLBACK, partition, object);
	osd_item_add_number(&call.writer, OSD_ITEM_VERSION, version);
	if (force != 0)
		osd_item_add_number(&call.writer, OSD_ITEM_FORCE, force);
	function_run(unit, &call);
}

static void expect_users(struct unit *unit, unsigned users, const char *names)
{
	struct osd_sense sense = unit_sense(unit);

	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_MEDIUM_REMOVAL_PREVENTED);
	assert_int_equal(sense.users, users);
	assert_string_equal(sense.user_names, names);
}

/* Alice has a version of P (or, 0, of the device) and has written since. */
static uint64_t prepare(struct unit *unit, uint64_t partition)
{
	uint64_t version;

	be(unit, ALICE);
	function_subscribe(unit);
	function_write_text(unit, O, "before");
	version = function_snapshot(unit, partition, NULL);
	function_write_text(unit, O, "after");
	return version;
}

static bool only_alice(void *context, uint64_t nexus)
{
	(void)context;
	return nexus == ALICE;
}

static void test_a_rollback_is_refused_while_others_use_the_partition(void **state)
{
	struct unit *unit = *state;
	uint64_t version = prepare(unit, P);

	look_as(unit, BOB, P, O);
	try_rollback(unit, P, 0, version, 0);
	expect_users(unit, 1, "iqn.bob");
	look_as(unit, CAROL, P, 0);
	look_as(unit, BOB, P, O);
	try_rollback(unit, P, 0, version, 0);
	expect_users(unit, 2, "iqn.bob iqn.carol");
	function_expect_text(unit, P, O, "after");

	/* They log out. */
	osd_forget_sessions(unit->device, only_alice, NULL);
	try_rollback(unit, P, 0, version, 0);
	expect_good(unit);
	function_expect_text(unit, P, O, "before");
}

static void test_force_takes_the_partition_back_and_tells_who_uses_it(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_GET_ATTRIBUTES, P, O);
	uint64_t version = prepare(unit, P);

	look_as(unit, BOB, P, O);
	try_rollback(unit, P, 0, version, 1);
	expect_good(unit);
	function_expect_text(unit, P, O, "before");
	be(unit, BOB);
	call_run(unit, &call);
	expect_sense(unit, SENSE_UNIT_ATTENTION, SENSE_MEDIUM_MAY_HAVE_CHANGED);
	call_run(unit, &call);
	expect_good(unit);
}

/* No iSCSI name has blanks, but some initiators call themselves so. */
static void test_names_with_blanks_are_told_whole(void **state)
{
	struct unit *unit = *state;
	struct osd_units *units = osd_units_create();
	struct osd_neighbour *disk = osd_neighbour_create(units, P);
	uint64_t version = prepare(unit, P);

	osd_device_join(unit->device, units);
	assert_int_equal(osd_neighbour_hear(disk, BOB, "Bob's old box alias: Bob\n"), 0);
	assert_int_equal(osd_neighbour_hear(disk, CAROL, "Bob's new box\n"), 0);
	try_rollback(unit, P, 0, version, 0);
	expect_users(unit, 2, "Bob's%20old%20box Bob's%20new%20box");
	osd_neighbour_destroy(disk);
	unit_crash(unit);
	osd_units_destroy(units);
}

/* ---- disks on the same device ---- */

/* A disk that is a partition, and sessions of it. */
static void test_sessions_of_a_disk_use_its_partition(void **state)
{
	struct unit *unit = *state;
	struct osd_units *units = osd_units_create();
	struct osd_neighbour *disk = osd_neighbour_create(units, P);
	struct osd_neighbour *other = osd_neighbour_create(units, Q);
	uint64_t version = prepare(unit, P);

	osd_device_join(unit->device, units);
	assert_int_equal(osd_neighbour_hear(disk, BOB, "iqn.bob alias: bob"), 0);
	assert_int_equal(osd_neighbour_hear(other, CAROL, "iqn.carol"), 0);
	try_rollback(unit, P, 0, version, 0);
	expect_users(unit, 1, "iqn.bob");
	look_as(unit, CAROL, P, 0);
	try_rollback(unit, P, 0, version, 0);
	expect_users(unit, 2, "iqn.carol iqn.bob");

	/* With force they are told, once; and those of other disks are not. */
	try_rollback(unit, P, 0, version, 1);
	expect_good(unit);
	assert_int_equal(osd_neighbour_hear(disk, BOB, "iqn.bob"), SENSE_MEDIUM_MAY_HAVE_CHANGED);
	assert_int_equal(osd_neighbour_hear(disk, BOB, "iqn.bob"), 0);
	assert_int_equal(osd_neighbour_hear(other, CAROL, "iqn.carol"), 0);

	/* They log out. */
	osd_forget_sessions(unit->device, only_alice, NULL);
	function_write_text(unit, O, "again");
	try_rollback(unit, P, 0, version, 0);
	expect_good(unit);
	function_expect_text(unit, P, O, "before");
	osd_neighbour_destroy(disk);
	osd_neighbour_destroy(other);
	unit_crash(unit);
	osd_units_destroy(units);
}

static void test_the_device_goes_back_only_when_nobody_uses_a_disk(void **state)
{
	struct unit *unit = *state;
	struct osd_units *units = osd_units_create();
	struct osd_neighbour *disk = osd_neighbour_create(units, Q);
	uint64_t version = prepare(unit, 0);

	osd_device_join(unit->device, units);
	/* Whoever has the disk is not asked by which session somebody else goes back. */
	assert_int_equal(osd_neighbour_hear(disk, BOB, NULL), 0);
	try_rollback(unit, 0, 0, version, 0);
	expect_users(unit, 1, "");
	osd_neighbour_forget_sessions(disk, only_alice, NULL);
	try_rollback(unit, 0, 0, version, 0);
	expect_good(unit);
	/* The session that goes back has the disk, too: its file system is no less in use. */
	assert_int_equal(osd_neighbour_hear(disk, ALICE, "iqn.alice"), 0);
	try_rollback(unit, 0, 0, version, 0);
	expect_users(unit, 1, "iqn.alice");
	try_rollback(unit, 0, 0, version, 1);
	expect_good(unit);
	assert_int_equal(osd_neighbour_hear(disk, ALICE, "iqn.alice"),
			 SENSE_MEDIUM_MAY_HAVE_CHANGED);
	osd_neighbour_destroy(disk);
	unit_crash(unit);
	osd_units_destroy(units);
}

static void test_who_did_not_touch_the_present_of_the_partition_does_not_use_it(void **state)
{
	struct unit *unit = *state;
	struct call refused = call_of(OSD_GET_ATTRIBUTES, P, O + 77);
	uint64_t version = prepare(unit, P);

	unit_create_partition(unit, Q);
	look_as(unit, BOB, 0, 0);
	look_as(unit, BOB, Q, 0);
	look_as(unit, BOB, function_at_version(version), O);
	call_run(unit, &refused);
	expect_field(unit, 24);
	try_rollback(unit, P, 0, version, 0);
	expect_good(unit);
	function_expect_text(unit, P, O, "before");
}

static void test_the_device_goes_back_only_when_nobody_uses_any_partition(void **state)
{
	struct unit *unit = *state;
	uint64_t version;

	be(unit, ALICE);
	unit_create_partition(unit, Q);
	version = prepare(unit, 0);
	look_as(unit, BOB, 0, 0);
	look_as(unit, CAROL, Q, 0);
	try_rollback(unit, 0, 0, version, 0);
	expect_users(unit, 1, "iqn.carol");
	osd_forget_sessions(unit->device, only_alice, NULL);
	look_as(unit, BOB, 0, 0);
	try_rollback(unit, 0, 0, version, 0);
	expect_good(unit);
	function_expect_text(unit, P, O, "before");
}

static void test_an_object_goes_back_as_if_it_were_written(void **state)
{
	struct unit *unit = *state;
	uint64_t version = prepare(unit, P);

	look_as(unit, BOB, P, O);
	try_rollback(unit, P, O, version, 0);
	expect_good(unit);
	function_expect_text(unit, P, O, "before");
	function_run_with(unit, OSD_FUNCTION_UNDO, P, O, 0, 0);
	expect_good(unit);
	function_expect_text(unit, P, O, "after");
	look_as(unit, BOB, P, O);
}

/* Bob uses the partition that Alice's command is about. */
static struct call try_while_used(struct unit *unit, uint16_t action)
{
	struct call call;

	command_rows_prepare(unit);
	call = command_row_call(command_row_of(action), OSD_2);
	look_as(unit, BOB, call.cdb.partition, 0);
	be(unit, ALICE);
	call_run(unit, &call);
	return call;
}

static void test_restore_is_refused_while_others_use_the_partition(void **state)
{
	struct unit *unit = *state;
	struct call call = try_while_used(unit, OSD_RESTORE_PARTITION_FROM_SNAPSHOT);

	shows_sense(unit, RESTORE_PARTITION_FROM_SNAPSHOT, "other sessions use the partition",
		    ILLEGAL_REQUEST, MEDIUM_REMOVAL_PREVENTED);
	expect_users(unit, 1, "iqn.bob");
	call.cdb.command_options = OSD_FORCE_USERS;
	call_run(unit, &call);
	shows_good(unit, RESTORE_PARTITION_FROM_SNAPSHOT, "the same, with FORCE");
}

static void test_refresh_is_refused_while_others_use_the_clone(void **state)
{
	struct unit *unit = *state;
	struct call call = try_while_used(unit, OSD_REFRESH_SNAPSHOT_OR_CLONE);

	shows_sense(unit, REFRESH_SNAPSHOT_OR_CLONE, "other sessions use the partition",
		    ILLEGAL_REQUEST, MEDIUM_REMOVAL_PREVENTED);
	expect_users(unit, 1, "iqn.bob");
	call.cdb.command_options = OSD_FORCE_USERS;
	call_run(unit, &call);
	shows_good(unit, REFRESH_SNAPSHOT_OR_CLONE, "the same, with FORCE");
}

static bool asks_for_sessions(struct unit *unit, const struct osd_cdb *decoded)
{
	uint8_t cdb[OSD_CDB_BYTES_MAX];
	size_t length;

	assert_int_equal(osd_cdb_encode(decoded, cdb, &length), 0);
	for (size_t cut = 0; cut < 10; cut++)
		assert_false(osd_asks_for_sessions(unit->device, 1, cdb, cut));
	return osd_asks_for_sessions(unit->device, 1, cdb, length);
}

static void test_only_commands_that_take_things_back_ask_for_sessions(void **state)
{
	static const struct {
		uint16_t action;
		enum osd_function function;
		bool asks;
	} cases[] = {
		{ OSD_WRITE, 0, false },
		{ OSD_REFRESH_SNAPSHOT_OR_CLONE, 0, true },
		{ OSD_RESTORE_PARTITION_FROM_SNAPSHOT, 0, true },
		{ OSD_EXECUTE, OSD_FUNCTION_ROLLBACK, true },
		{ OSD_EXECUTE, OSD_FUNCTION_UNDO, false },
	};
	struct unit *unit = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct call call = call_of(cases[i].action, P, 0);

		if (cases[i].function)
			call.cdb.address = osd_execute_address(cases[i].function, 0);
		assert_int_equal(asks_for_sessions(unit, &call.cdb), cases[i].asks);
		call.cdb.version = OSD_1;
		if (cases[i].function)
			assert_int_equal(asks_for_sessions(unit, &call.cdb), cases[i].asks);
	}
}

/* ---- limits ---- */

static bool nobody(void *context, uint64_t nexus)
{
	*(unsigned *)context += 1;
	(void)nexus;
	return false;
}

static void test_who_uses_many_partitions_counts_as_using_all(void **state)
{
	struct osd_conditions *conditions = osd_conditions_create();
	char names[OSD_SENSE_USERS_BYTES + 1];
	enum osd_attention attention;

	(void)state;
	osd_attention_take(conditions, BOB, &attention);
	for (uint64_t i = 0; i < OSD_USED_PARTITIONS_MAX; i++)
		osd_use_note(conditions, BOB, P + i, "iqn.bob");
	assert_int_equal(osd_users(conditions, ALICE, P, names), 1);
	assert_int_equal(osd_users(conditions, ALICE, P + OSD_USED_PARTITIONS_MAX, names), 0);
	osd_use_note(conditions, BOB, P + OSD_USED_PARTITIONS_MAX, "iqn.bob");
	assert_int_equal(osd_users(conditions, ALICE, P + OSD_USED_PARTITIONS_MAX, names), 1);
	assert_int_equal(osd_users(conditions, ALICE, P + 99, names), 1);
	assert_int_equal(osd_users(conditions, BOB, P, names), 0);
	osd_conditions_destroy(conditions);
}

static void test_sessions_that_have_ended_take_no_place_from_others(void **state)
{
	struct osd_conditions *conditions = osd_conditions_create();
	char names[OSD_SENSE_USERS_BYTES + 1];
	enum osd_attention attention;
	unsigned asked = 0;

	(void)state;
	for (uint64_t nexus = 1; nexus <= OSD_NEXUSES_MAX; nexus++) {
		osd_attention_take(conditions, nexus, &attention);
		osd_use_note(conditions, nexus, P, NULL);
	}
	assert_int_equal(osd_users(conditions, ALICE, P, names), OSD_NEXUSES_MAX - 1);
	assert_string_equal(names, "");
	osd_nexuses_forget(conditions, nobody, &asked);
	assert_int_equal(asked, OSD_NEXUSES_MAX);
	assert_int_equal(osd_users(conditions, ALICE, P, names), 0);
	/* A place that is used again has nothing of who had it before. */
	assert_false(osd_attention_take(conditions, 1000, &attention));
	assert_int_equal(osd_users(conditions, ALICE, P, names), 0);
	/* Nobody, and who is not known, uses nothing. */
	osd_use_note(conditions, 0, P, "iqn.nobody");
	osd_use_note(conditions, 1001, P, "iqn.late");
	assert_int_equal(osd_users(conditions, ALICE, P, names), 0);
	osd_conditions_destroy(conditions);
}

static void test_names_are_told_once_and_as_far_as_they_fit(void **state)
{
	struct osd_conditions *conditions = osd_conditions_create();
	char names[OSD_SENSE_USERS_BYTES + 1], name[256];
	enum osd_attention attention;

	(void)state;
	for (uint64_t nexus = 2; nexus <= 6; nexus++)
		osd_attention_take(conditions, nexus, &attention);
	osd_use_note(conditions, 2, P, "iqn.a");
	osd_use_note(conditions, 3, P, "iqn.ab");
	osd_use_note(conditions, 4, P, "iqn.a");
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	osd_use_note(conditions, 5, P, name);
	osd_use_note(conditions, 6, P, "iqn.b");
	assert_int_equal(osd_users(conditions, ALICE, P, names), 5);
	assert_string_equal(names, "iqn.a iqn.ab iqn.b");

	/* If there is nothing but a long one, its beginning is told. */
	osd_use_note(conditions, 5, Q, name);
	assert_int_equal(osd_users(conditions, ALICE, Q, names), 1);
	assert_int_equal(strlen(names), OSD_SENSE_USERS_BYTES);
	osd_conditions_destroy(conditions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object_in_both(test_a_rollback_is_refused_while_others_use_the_partition),
		with_object(test_force_takes_the_partition_back_and_tells_who_uses_it),
		with_object(test_names_with_blanks_are_told_whole),
		with_object(test_sessions_of_a_disk_use_its_partition),
		with_object(test_the_device_goes_back_only_when_nobody_uses_a_disk),
		with_object(test_who_did_not_touch_the_present_of_the_partition_does_not_use_it),
		with_object(test_the_device_goes_back_only_when_nobody_uses_any_partition),
		with_object(test_an_object_goes_back_as_if_it_were_written),
		with_object(test_restore_is_refused_while_others_use_the_partition),
		with_object(test_refresh_is_refused_while_others_use_the_clone),
		with_object(test_only_commands_that_take_things_back_ask_for_sessions),
		cmocka_unit_test(test_who_uses_many_partitions_counts_as_using_all),
		cmocka_unit_test(test_sessions_that_have_ended_take_no_place_from_others),
		cmocka_unit_test(test_names_are_told_once_and_as_far_as_they_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
