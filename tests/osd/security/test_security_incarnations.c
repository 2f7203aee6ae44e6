/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Protection belongs to a partition, not to its number: what versions and views show of a partition
 * that is gone is as protected as it was, whoever has the number now.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/command_rows.h"
#include "tests/osd/function_call.h"
#include "tests/osd/secured.h"

#define M (&secured_manager)

/* The other partitions that command_rows_prepare makes. */
#define ANOTHER (P + 2)

static const char secret[] = "the secret of who had the number before";

/* What stands beside the unit. */
static struct {
	uint64_t without,
		with; /* versions of the device, before P was made and when it was there */
	uint64_t of_root, of_own;       /* views of then, of the root and of P */
	struct key_pair former, latter; /* working keys of P: of who had it, and of who has it */
} scene;

static uint64_t open_view(struct unit *unit, uint64_t partition, uint64_t ms)
{
	function_run_with(unit, OSD_FUNCTION_VIEW, partition, 0, OSD_ITEM_TIME, ms);
	expect_good(unit);
	return function_number(unit, OSD_ITEM_VERSION);
}

/* P with the secret in O, and versions and views that show it; the root has no method. */
static int set_up(void **state)
{
	struct unit *unit;

	unit_version = OSD_2;
	unit_set_up(state);
	unit = *state;
	memset(&scene, 0, sizeof(scene));
	secured_open(unit, M);
	function_subscribe(unit);
	scene.without = function_snapshot(unit, 0, NULL);
	unit_create_partition(unit, P);
	unit_create(unit, P, O);
	command_rows_prepare(unit);
	unit_write(unit, O, 0, secret, sizeof(secret));
	secured_set_keys(unit, M);
	scene.former = M->working[KEY_VERSION];
	scene.with = function_snapshot(unit, 0, NULL);
	scene.of_own = open_view(unit, P, unit->now_ms - FUNCTION_STEP_MS);
	scene.of_root = open_view(unit, 0, unit->now_ms - FUNCTION_STEP_MS);
	secured_set_method(unit, P, OSD_CMDRSP);
	return 0;
}

/* ---- how P goes, and who has its number then ---- */

/* The root has no method: whoever can log in rolls the device back. */
static void vanish(struct unit *unit)
{
	function_run_with(unit, OSD_FUNCTION_ROLLBACK, 0, 0, OSD_ITEM_VERSION, scene.without);
	expect_good(unit);
}

static void remove_in_good_order(struct unit *unit)
{
	struct signed_call call = signed_call_of(unit, OSD_REMOVE_PARTITION, P, 0, OSD_CMDRSP);

	call.call.cdb.command_options = OSD_REMOVE_CONTENTS;
	signed_run(unit, &call);
	expect_good(unit);
}

static void nobody(struct unit *unit)
{
	(void)unit;
}

static void anybody(struct unit *unit)
{
	unit_create_partition(unit, P);
	unit_create(unit, P, O);
	unit_write(unit, O, 0, "mine", 4);
}

static void another_tenant(struct unit *unit)
{
	anybody(unit);
	secured_set_keys_of(unit, P, 0x71, &scene.latter);
	secured_set_method(unit, P, OSD_CMDRSP);
}

/* A snapshot has the keys of its source. */
static void a_snapshot(struct unit *unit)
{
	struct call call = call_of(OSD_CREATE_SNAPSHOT, P, 0);

	unit_create_partition(unit, P + 7);
	secured_set_keys_of(unit, P + 7, 0x71, &scene.latter);
	call.cdb.address = P + 7;
	call_run(unit, &call);
	expect_good(unit);
}

static const struct story {
	void (*go)(struct unit *unit);
	void (*come)(struct unit *unit);
	bool keys; /* the former owner's are still there */
} stories[] = {
	{ vanish, nobody, true },
	{ vanish, anybody, true },
	{ vanish, another_tenant, true },
	{ vanish, a_snapshot, true },
	{ remove_in_good_order, nobody, false },
	{ remove_in_good_order, anybody, false },
	{ remove_in_good_order, another_tenant, false },
	{ remove_in_good_order, a_snapshot, false },
};

#define STORIES (sizeof(stories) / sizeof(stories[0]))

/* ---- what is tried ---- */

static void expect_refused(struct unit *unit)
{
	uint8_t code = unit->command.status;

	assert_int_equal(code, SCSI_STATUS_CHECK_CONDITION);
	assert_null(memmem(unit->data_in, unit->command.data_in_length, secret, 8));
}

static void expect_no_key(struct unit *unit)
{
	struct osd_sense sense = unit_sense(unit);

	expect_refused(unit);
	assert_int_equal(sense.key, SENSE_ILLEGAL_REQUEST);
	assert_true(sense.field == 81 || sense.field == unit_layout()->check_value);
}

/* The row's call with the version in all partition IDs. */
static bool aim(const struct command_row *row, uint64_t version, struct call *call)
{
	*call = command_row_call(row, unit_version);
	if (call->cdb.partition != P || row->action == OSD_REMOVE_PARTITION)
		return false;
	call->cdb.partition |= version << 48;
	return true;
}

static struct signed_call sign(struct unit *unit, const struct call *call, uint8_t type,
			       const struct key_pair *key)
{
	struct signed_call made = signed_call_of(unit, call->cdb.action, call->cdb.partition,
						 call->cdb.object, OSD_CMDRSP);

	made.call = *call;
	made.secret = key->authentication;
	made.capability.object_type = type;
	made.capability.descriptor_type = osd_descriptor_type(unit_version, type);
	return made;
}

static uint8_t type_of(const struct command_row *row)
{
	if (row->target == ROW_PARTITION)
		return OSD_TYPE_PARTITION;
	return row->target == ROW_COLLECTION ? OSD_TYPE_COLLECTION : OSD_TYPE_USER_OBJECT;
}

/* Names objects that need capabilities of their own: see below. */
static bool names_further(const struct command_row *row)
{
	return row->action == OSD_READ_MAPS_AND_COMPARE || row->action == OSD_COPY_USER_OBJECTS;
}

static void try_commands(struct unit *unit, const struct story *story, uint64_t version)
{
	for (size_t i = 0; i < command_row_count; i++) {
		const struct command_row *row = &command_rows[i];
		struct signed_call with_key;
		struct call call;

		if (!aim(row, version, &call))
			continue;
		call_run(unit, &call);
		expect_refused(unit);
		assert_int_equal(unit_sense(unit).field, 80);
		with_key = sign(unit, &call, type_of(row), &scene.latter);
		signed_run(unit, &with_key);
		expect_no_key(unit);
		with_key = sign(unit, &call, type_of(row), &scene.former);
		signed_run(unit, &with_key);
		if (!story->keys)
			expect_no_key(unit);
		else if (!(row->flags & ROW_CHANGES) && !names_further(row))
			expect_good(unit);
	}
}

static void expect_nothing(struct unit *unit, uint64_t version)
{
	for (size_t i = 0; i < command_row_count; i++) {
		struct call call;

		if (!aim(&command_rows[i], version, &call))
			continue;
		call_run(unit, &call);
		expect_refused(unit);
	}
}

static void try_functions(struct unit *unit, uint64_t version)
{
	static const enum osd_function functions[] = {
		OSD_FUNCTION_SNAPSHOT, OSD_FUNCTION_VERSIONS,      OSD_FUNCTION_DROP,
		OSD_FUNCTION_VIEW,     OSD_FUNCTION_ROLLBACK,      OSD_FUNCTION_UNDO,
		OSD_FUNCTION_LOG,      OSD_FUNCTION_DIFF,          OSD_FUNCTION_RETENTION,
		OSD_FUNCTION_SEARCH,   OSD_FUNCTION_SET_RETENTION, OSD_FUNCTION_CHECKSUM,
		OSD_FUNCTION_MERGE,    OSD_FUNCTION_SPACE,
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		for (uint64_t object = 0; object <= O; object += O) {
			struct function_call call;

			function_of(&call, functions[i], version << 48 | P, object);
			osd_item_add_text(&call.writer, OSD_ITEM_PATTERN, "secret");
			osd_item_add_number(&call.writer, OSD_ITEM_VERSION, scene.with);
			function_run(unit, &call);
			expect_refused(unit);
		}
}

/* Further objects: of NOSEC partitions there is no capability that one would be missing beside. */
static void try_further(struct unit *unit, uint64_t version)
{
	static const uint16_t actions[] = { OSD_CREATE_CLONE, OSD_CREATE_SNAPSHOT };
	struct osd_copy_source source = { .partition = version << 48 | P, .object = O };
	struct call copy = call_of(OSD_COPY_USER_OBJECTS, ANOTHER, 0);
	struct call compare = call_of(OSD_READ_MAPS_AND_COMPARE, ANOTHER, O);
	uint8_t content[OSD_COPY_SOURCE_BYTES];

	osd_copy_source_encode(&source, content);
	call_descriptor(&copy, OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
	call_run(unit, &copy);
	expect_refused(unit);
	put_be64(content, source.partition);
	put_be64(content + 8, O);
	call_descriptor(&compare, OSD_CONTINUATION_USER_OBJECT, content, OSD_USER_OBJECT_BYTES);
	compare.cdb.length = compare.data_in_capacity = 256;
	call_run(unit, &compare);
	expect_refused(unit);
	for (size_t i = 0; i < 2; i++) {
		struct call clone = call_of(actions[i], P + 20, 0);

		clone.cdb.address = source.partition;
		call_run(unit, &clone);
		expect_refused(unit);
	}
}

static void tell(struct unit *unit, const struct story *story)
{
	story->go(unit);
	unit->now_ms += FUNCTION_STEP_MS;
	story->come(unit);
	unit->now_ms += FUNCTION_STEP_MS;
	if (!story->keys)
		unit_create_partition(unit, P + 30);
	else
		unit_create_partition(unit, ANOTHER);
	unit_create(unit, story->keys ? ANOTHER : P + 30, O);
}

static void test_no_command_shows_what_another_had_under_the_number(void **state)
{
	for (size_t i = 0; i < STORIES; i++) {
		struct unit *unit;

		set_up(state);
		unit = *state;
		tell(unit, &stories[i]);
		const uint64_t versions[] = { scene.with, scene.of_root, scene.of_own };

		for (size_t v = 0; v < 3; v++) {
			/* A view of one partition ends with it. */
			if (versions[v] != scene.of_own)
				try_commands(unit, &stories[i], versions[v]);
			else
				expect_nothing(unit, versions[v]);
			try_functions(unit, versions[v]);
			try_further(unit, versions[v]);
		}
		unit_tear_down(state);
	}
}

/* What happened under the number before is no past of who has it now. */
static void test_nobody_goes_back_to_what_another_had_under_the_number(void **state)
{
	for (size_t i = 0; i < STORIES; i++) {
		struct unit *unit;

		if (stories[i].come != anybody)
			continue;
		set_up(state);
		unit = *state;
		tell(unit, &stories[i]);
		function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, 0, OSD_ITEM_VERSION, scene.with);
		expect_refused(unit);
		function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, O, OSD_ITEM_VERSION, scene.with);
		expect_refused(unit);
		function_run_with(unit, OSD_FUNCTION_ROLLBACK, P, O, OSD_ITEM_VERSION,
				  scene.of_root);
		expect_refused(unit);
		function_run_with(unit, OSD_FUNCTION_LOG, P, O, OSD_ITEM_VERSION, scene.with);
		expect_refused(unit);
		function_run_with(unit, OSD_FUNCTION_VIEW, P, 0, OSD_ITEM_VERSION, scene.with);
		expect_refused(unit);
		function_run_with(unit, OSD_FUNCTION_UNDO, P, O, OSD_ITEM_MODIFICATIONS, 3);
		expect_refused(unit);
		unit_tear_down(state);
	}
}

/* ---- snapshots ---- */

#define SNAPSHOT (P + 40)

static void expect_unsigned_refused(struct unit *unit, uint64_t partition)
{
	struct call call = call_of(OSD_READ, partition, O);

	call.cdb.length = call.data_in_capacity = sizeof(secret);
	call_run(unit, &call);
	expect_refused(unit);
	assert_int_equal(unit_sense(unit).field, 80);
}

/* Made of P when that had no method; a view of then. */
static uint64_t snapshot_open_partition(struct unit *unit)
{
	struct call call = call_of(OSD_CREATE_SNAPSHOT, SNAPSHOT, 0);
	uint64_t version;

	secured_reopen(unit, OSD_CMDRSP);
	call.cdb.address = P;
	call_run(unit, &call);
	expect_good(unit);
	version = function_snapshot(unit, 0, NULL);
	secured_set_method(unit, P, OSD_CMDRSP);
	expect_unsigned_refused(unit, SNAPSHOT);
	return version;
}

/* What protects its source protects a snapshot, also when one of them, or both, are gone. */
static void test_a_snapshot_is_protected_as_its_source_was(void **state)
{
	struct unit *unit = *state;
	uint64_t version = snapshot_open_partition(unit);
	struct signed_call removal;

	expect_unsigned_refused(unit, version << 48 | SNAPSHOT);
	remove_in_good_order(unit);
	expect_unsigned_refused(unit, SNAPSHOT);
	expect_unsigned_refused(unit, version << 48 | SNAPSHOT);
	anybody(unit);
	expect_unsigned_refused(unit, SNAPSHOT);
	expect_unsigned_refused(unit, version << 48 | SNAPSHOT);
	removal = signed_call_of(unit, OSD_REMOVE_PARTITION, SNAPSHOT, 0, OSD_CMDRSP);
	removal.call.cdb.command_options = OSD_REMOVE_CONTENTS;
	signed_run(unit, &removal);
	expect_good(unit);
	expect_unsigned_refused(unit, version << 48 | SNAPSHOT);
	unit_create_partition(unit, SNAPSHOT);
	expect_unsigned_refused(unit, version << 48 | SNAPSHOT);
}

static void test_a_snapshot_that_vanished_is_protected_as_its_source_is(void **state)
{
	struct unit *unit = *state;
	uint64_t version = snapshot_open_partition(unit);

	function_run_with(unit, OSD_FUNCTION_ROLLBACK, 0, 0, OSD_ITEM_VERSION, scene.with);
	expect_good(unit);
	expect_unsigned_refused(unit, version << 48 | SNAPSHOT);
	vanish(unit);
	expect_unsigned_refused(unit, version << 48 | SNAPSHOT);
	unit_create_partition(unit, SNAPSHOT);
	expect_unsigned_refused(unit, version << 48 | SNAPSHOT);
}

/* A clone of what a partition ID with a version shows. */
static void clone_with(struct unit *unit, uint64_t source, const struct key_pair *working)
{
	struct signed_call call = signed_call_of(unit, OSD_CREATE_CLONE, P + 20, 0, OSD_CMDRSP);

	call.call.cdb.address = source;
	call.secret = M->root.authentication;
	signed_extend(&call, source, 0, OSD_TYPE_PARTITION, OSD_PERMISSION_READ)->secret =
		working->authentication;
	signed_run(unit, &call);
}

/* P had no method at the version. */
static void test_a_clone_of_an_open_past_is_as_protected_as_the_partition_is_now(void **state)
{
	struct unit *unit = *state;

	clone_with(unit, scene.with << 48 | P, &scene.former);
	expect_good(unit);
	expect_unsigned_refused(unit, P + 20);
}

static void test_nobody_clones_a_partition_that_vanished(void **state)
{
	void (*const come[])(struct unit * unit) = { nobody, anybody, another_tenant };

	for (size_t i = 0; i < sizeof(come) / sizeof(come[0]); i++) {
		const struct story story = { vanish, come[i], true };

		set_up(state);
		tell(*state, &story);
		clone_with(*state, scene.with << 48 | P, &scene.former);
		expect_field((struct unit *)*state, 40);
		unit_tear_down(state);
	}
}

/* ---- attributes ---- */

static void test_a_version_shows_the_policy_of_what_it_shows(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	uint8_t tag[4] = { 0, 0, 0, 9 }, now[1];

	vanish(unit);
	unit->now_ms += FUNCTION_STEP_MS;
	anybody(unit);
	call = signed_call_of(unit, OSD_GET_ATTRIBUTES, scene.with << 48 | P, 0, OSD_CMDRSP);
	call_get(&call.call, OSD_PARTITION_SECURITY, OSD_SECURITY_DEFAULT_METHOD);
	call.secret = scene.former.authentication;
	signed_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit_retrieved(unit, &call.call, 0).value[0], OSD_CMDRSP);
	assert_int_equal(
		unit_get(unit, P, 0, OSD_PARTITION_SECURITY, OSD_SECURITY_DEFAULT_METHOD, now, 1),
		1);
	assert_int_equal(now[0], OSD_NOSEC);
	/* A tag of the object of now withdraws nothing of another's. */
	unit_set(unit, P, O, OSD_USER_OBJECT_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG, tag, 4);
	call = signed_call_of(unit, OSD_READ, scene.with << 48 | P, O, OSD_CMDRSP);
	call.call.cdb.length = call.call.data_in_capacity = sizeof(secret);
	call.secret = scene.former.authentication;
	call.capability.policy_tag = 9;
	signed_run(unit, &call);
	expect_field(unit, unit_layout()->policy_tag);
	call.capability.policy_tag = 0;
	fresh_nonce(unit, call.nonce);
	signed_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, secret, sizeof(secret));
}

#define with_secret(test) cmocka_unit_test_setup_teardown(test, set_up, unit_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_command_shows_what_another_had_under_the_number),
		cmocka_unit_test(test_nobody_goes_back_to_what_another_had_under_the_number),
		with_secret(test_a_snapshot_is_protected_as_its_source_was),
		with_secret(test_a_snapshot_that_vanished_is_protected_as_its_source_is),
		with_secret(test_a_clone_of_an_open_past_is_as_protected_as_the_partition_is_now),
		cmocka_unit_test(test_nobody_clones_a_partition_that_vanished),
		with_secret(test_a_version_shows_the_policy_of_what_it_shows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
