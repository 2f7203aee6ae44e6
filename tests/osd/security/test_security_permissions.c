/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which permissions each command and each function of EXECUTE needs, by a table of this test's own:
 * without any one of them it is refused and does nothing, with exactly those it does its work.
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
#include "wire/keys_exchange.h"

#define M (&secured_manager)

#define READ     OSD_PERMISSION_READ
#define WRITE    OSD_PERMISSION_WRITE
#define GET_ATTR OSD_PERMISSION_GET_ATTR
#define SET_ATTR OSD_PERMISSION_SET_ATTR
#define CREATE   OSD_PERMISSION_CREATE
#define REMOVE   OSD_PERMISSION_REMOVE
#define OBJ_MGMT OSD_PERMISSION_OBJ_MGMT
#define APPEND   OSD_PERMISSION_APPEND
#define DEV_MGMT OSD_PERMISSION_DEV_MGMT
#define GLOBAL   OSD_PERMISSION_GLOBAL
#define POL_SEC  OSD_PERMISSION_POL_SEC
#define M_OBJECT OSD_PERMISSION_M_OBJECT
#define QUERY    OSD_PERMISSION_QUERY
#define GBL_REM  OSD_PERMISSION_GBL_REM

#define CLONE (P + 3) /* of command_rows.c */
/* The root at the first version of the device. */
#define ROOT_OF_THEN ((uint64_t)ENGINE_DEVICE_VERSION_FIRST << 48)

static struct key_pair clone_working;

/* What is being tried, for who reads of a failure; NULL when all is well. */
static const char *trying;

static int say_what(void **state)
{
	(void)state;
	if (trying)
		print_error("with %s\n", trying);
	trying = NULL;
	unit_version = OSD_2;
	return 0;
}

/* ---- the scene: everything secured with CMDRSP ---- */

static void open_unit(void **state)
{
	struct unit *unit;

	if (unit_version == OSD_1)
		secured_set_up_osd1(state);
	else
		secured_set_up(state);
	unit = *state;
	command_rows_prepare(unit);
	unit_set(unit, P, O, 0x10000, 1, "value", 5);
	function_subscribe(unit);
	secured_set_keys_of(unit, CLONE, 0x61, &clone_working);
	secured_set_method(unit, CLONE, OSD_CMDRSP);
	secured_set_method(unit, P, OSD_CMDRSP);
	secured_set_method(unit, 0, OSD_CMDRSP);
}

/* Sequence number of the last command that has left anything on the unit. */
static uint64_t last_change(const struct unit *unit)
{
	struct engine_statistics statistics;

	engine_read_statistics(unit->engine, &statistics);
	return statistics.committed_sequence;
}

/*
 * The call with all bits of `needed` but one, for each of them: refused, signed, nothing done. Then
 * with exactly those.
 */
static void expect_needed(struct unit *unit, const struct signed_call *prepared, uint16_t needed)
{
	struct signed_call call;

	for (unsigned bit = 0; bit < 16; bit++) {
		uint64_t before = contents_of(unit), change = last_change(unit);

		if (!(needed >> bit & 1))
			continue;
		call = *prepared;
		call.capability.permissions = (uint16_t) ~(1u << bit);
		fresh_nonce(unit, call.nonce);
		signed_run(unit, &call);
		expect_field(unit, 129);
		assert_true(answer_is_signed(unit));
		assert_int_equal(last_change(unit), change);
		assert_int_equal(contents_of(unit), before);
	}
	call = *prepared;
	call.capability.permissions = needed;
	fresh_nonce(unit, call.nonce);
	signed_run(unit, &call);
	expect_good(unit);
}

/* ---- commands ---- */

static const struct {
	uint16_t action;
	uint16_t needed;
	uint8_t type; /* of what is addressed, if its IDs do not tell */
	/* What the command reads besides; partition 0: nothing. */
	uint64_t further_partition, further_object;
} commands[] = {
	{ OSD_OBJECT_STRUCTURE_CHECK, OBJ_MGMT, 0, 0, 0 },
	{ OSD_FORMAT_OSD, OBJ_MGMT | GLOBAL, 0, 0, 0 },
	{ OSD_CREATE, CREATE, 0, 0, 0 },
	{ OSD_LIST, READ, 0, 0, 0 },
	{ OSD_PUNCH, WRITE, 0, 0, 0 },
	{ OSD_READ, READ, 0, 0, 0 },
	{ OSD_WRITE, WRITE, 0, 0, 0 },
	{ OSD_APPEND, APPEND, 0, 0, 0 },
	{ OSD_FLUSH, OBJ_MGMT, 0, 0, 0 },
	{ OSD_CLEAR, WRITE, 0, 0, 0 },
	{ OSD_REMOVE, REMOVE, 0, 0, 0 },
	{ OSD_CREATE_PARTITION, CREATE | GLOBAL, 0, 0, 0 },
	/* With its contents; in OSD-1, which can't, GBL_REM is not needed. */
	{ OSD_REMOVE_PARTITION, REMOVE | GLOBAL | GBL_REM, 0, 0, 0 },
	{ OSD_COMPARE_AND_SWAP, GET_ATTR | SET_ATTR, 0, 0, 0 },
	{ OSD_GET_ATTRIBUTES, GET_ATTR, 0, 0, 0 },
	{ OSD_SET_ATTRIBUTES, SET_ATTR, 0, 0, 0 },
	{ OSD_FETCH_AND_ADD, GET_ATTR | SET_ATTR, 0, 0, 0 },
	{ OSD_CONDITIONAL_SET_ATTRIBUTES, GET_ATTR | SET_ATTR, 0, 0, 0 },
	{ OSD_CREATE_AND_WRITE, CREATE | WRITE, 0, 0, 0 },
	{ OSD_COPY_USER_OBJECTS, CREATE | WRITE | M_OBJECT, 0, P, O },
	{ OSD_CREATE_COLLECTION, CREATE, OSD_TYPE_COLLECTION, 0, 0 },
	{ OSD_CREATE_USER_TRACKING_COLLECTION, CREATE, OSD_TYPE_COLLECTION, 0, 0 },
	{ OSD_REMOVE_COLLECTION, REMOVE, OSD_TYPE_COLLECTION, 0, 0 },
	{ OSD_LIST_COLLECTION, READ, OSD_TYPE_COLLECTION, 0, 0 },
	{ OSD_QUERY, QUERY, OSD_TYPE_COLLECTION, 0, 0 },
	{ OSD_REMOVE_MEMBER_OBJECTS, M_OBJECT | REMOVE, OSD_TYPE_COLLECTION, 0, 0 },
	{ OSD_GET_MEMBER_ATTRIBUTES, M_OBJECT | GET_ATTR, OSD_TYPE_COLLECTION, 0, 0 },
	{ OSD_SET_MEMBER_ATTRIBUTES, M_OBJECT | SET_ATTR, OSD_TYPE_COLLECTION, 0, 0 },
	{ OSD_FLUSH_COLLECTION, OBJ_MGMT, OSD_TYPE_COLLECTION, 0, 0 },
	{ OSD_FLUSH_PARTITION, OBJ_MGMT, 0, 0, 0 },
	{ OSD_FLUSH_OSD, OBJ_MGMT, 0, 0, 0 },
	{ OSD_GENERAL_COMPARE_AND_SWAP, GET_ATTR | SET_ATTR, 0, 0, 0 },
	{ OSD_CREATE_CLONE, CREATE | GLOBAL, 0, P, 0 },
	{ OSD_CREATE_SNAPSHOT, CREATE | GLOBAL, 0, P, 0 },
	{ OSD_DETACH_CLONE, WRITE, 0, 0, 0 },
	{ OSD_REFRESH_SNAPSHOT_OR_CLONE, OBJ_MGMT | WRITE | REMOVE, 0, P, 0 },
	{ OSD_RESTORE_PARTITION_FROM_SNAPSHOT, OBJ_MGMT | WRITE | REMOVE, 0, P + 4, 0 },
	{ OSD_READ_MAP, READ, 0, 0, 0 },
	{ OSD_READ_MAPS_AND_COMPARE, READ | M_OBJECT, 0, P, O },
	{ OSD_PERFORM_SCSI_COMMAND, DEV_MGMT, 0, 0, 0 },
	{ OSD_PERFORM_TASK_MANAGEMENT_FUNCTION, DEV_MGMT, 0, 0, 0 },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* Their calls are no rows of command_rows.c; tested below. */
static const uint16_t other_commands[] = { OSD_SET_KEY, OSD_SET_MASTER_KEY, OSD_EXECUTE };

static size_t find_command(uint16_t action)
{
	size_t at = 0;

	while (at < COMMANDS && commands[at].action != action)
		at++;
	return at;
}

/* The row's call, signed with the right key and with the right to what it reads besides. */
static struct signed_call command_call(struct unit *unit, const struct command_row *row, size_t at)
{
	struct call call = command_row_call(row, unit_version);
	struct signed_call made =
		signed_call_of(unit, row->action, call.cdb.partition, call.cdb.object, OSD_CMDRSP);
	uint64_t partition = commands[at].further_partition, object = commands[at].further_object;

	made.call = call;
	if (commands[at].type) {
		made.capability.object_type = commands[at].type;
		made.capability.descriptor_type =
			osd_descriptor_type(unit_version, commands[at].type);
	}
	if (row->action == OSD_CREATE_CLONE || row->action == OSD_CREATE_SNAPSHOT)
		made.secret = M->root.authentication;
	if (call.cdb.partition == CLONE)
		made.secret = clone_working.authentication;
	if (partition != 0)
		signed_extend(&made, partition, object,
			      object ? OSD_TYPE_USER_OBJECT : OSD_TYPE_PARTITION, READ);
	return made;
}

static bool is_of_osd1(uint16_t action)
{
	uint8_t cdb[OSD_CDB_BYTES_MAX];
	struct osd_cdb found = { .version = OSD_1,
				 .action = action,
				 .format = OSD_ATTRIBUTES_LIST };

	return osd_cdb_encode(&found, cdb, NULL) == 0;
}

static void test_each_command_needs_exactly_its_permissions(void **state)
{
	for (size_t i = 0; i < command_row_count; i++) {
		const struct command_row *row = &command_rows[i];
		size_t at = find_command(row->action);
		struct signed_call call;
		uint16_t needed;

		trying = osd_action_name(row->action);
		assert_true(at < COMMANDS);
		if (unit_version == OSD_1 && !is_of_osd1(row->action))
			continue;
		open_unit(state);
		needed = commands[at].needed;
		if (unit_version == OSD_1 && row->action == OSD_REMOVE_PARTITION)
			needed &= (uint16_t)~GBL_REM;
		call = command_call(*state, row, at);
		expect_needed(*state, &call, needed);
		unit_tear_down(state);
	}
	trying = NULL;
}

static void test_the_table_has_every_command(void **state)
{
	struct unit *unit;

	open_unit(state);
	unit = *state;
	for (uint32_t action = 0x8800; action <= 0x8FFF; action++) {
		struct call call = call_of(OSD_READ, P, O);
		struct encoded_call encoded;
		bool known = find_command((uint16_t)action) < COMMANDS;

		for (size_t i = 0; i < sizeof(other_commands) / sizeof(other_commands[0]); i++)
			known = known || other_commands[i] == action;
		/* Those of OSD-1 are the same commands. */
		if (action < 0x8880 || action == 0x8F7E || action == 0x8F7F)
			continue;
		call_encode(&call, &encoded);
		put_be16(encoded.cdb + 8, (uint16_t)action);
		unit_execute(unit, encoded.cdb, encoded.cdb_length, NULL, 0, 0);
		free(encoded.out);
		assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
		if (!known)
			assert_int_equal(unit_sense(unit).code,
					 SENSE_INVALID_COMMAND_OPERATION_CODE);
		else
			assert_int_not_equal(unit_sense(unit).code,
					     SENSE_INVALID_COMMAND_OPERATION_CODE);
	}
	unit_tear_down(state);
}

/* ---- commands with more than their own permissions ---- */

static void get_length(struct call *call)
{
	call_get(call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH);
}

static void get_response(struct call *call)
{
	call_get(call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_RESPONSE_CHECK_VALUE);
}

static void set_value(struct call *call)
{
	call_set(call, 0x10000, 1, "value", 5);
}

static void set_and_get(struct call *call)
{
	set_value(call);
	get_length(call);
}

static void set_tag(struct call *call)
{
	call_set(call, OSD_USER_OBJECT_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG, "\0\0\0\0", 4);
}

static void set_partition_tag(struct call *call)
{
	call_set(call, OSD_PARTITION_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG, "\0\0\0\0", 4);
}

static void set_length(struct call *call)
{
	call_set_number(call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, 10);
}

/* Neither the number alone is the length, nor the page. */
static void set_length_of_another_page(struct call *call)
{
	call_set_number(call, 0x10000, OSD_INFORMATION_LOGICAL_LENGTH, 10);
}

static void set_username(struct call *call)
{
	call_set(call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME, "name", 4);
}

static void query_tasks(struct call *call)
{
	call->cdb.task_function = OSD_QUERY_TASK_SET;
	call->cdb.length = call->data_in_capacity = 16;
}

static void clear_tasks(struct call *call)
{
	query_tasks(call);
	call->cdb.task_function = OSD_CLEAR_TASK_SET;
}

static void reset(struct call *call)
{
	query_tasks(call);
	call->cdb.task_function = OSD_LOGICAL_UNIT_RESET;
}

static void room(struct call *call)
{
	call->data_in_capacity = call->cdb.length = 64;
}

static void nothing(struct call *call)
{
	(void)call;
}

static void test_attributes_and_larger_reach_need_more(void **state)
{
	static const struct {
		uint16_t action;
		uint64_t partition, object;
		void (*fill)(struct call *call);
		uint16_t needed;
	} cases[] = {
		{ OSD_FLUSH, P, O, get_length, OBJ_MGMT | GET_ATTR },
		{ OSD_FLUSH, P, O, get_response, OBJ_MGMT },
		{ OSD_FLUSH, P, O, set_value, OBJ_MGMT | SET_ATTR },
		{ OSD_FLUSH, P, O, set_and_get, OBJ_MGMT | SET_ATTR | GET_ATTR },
		{ OSD_SET_ATTRIBUTES, P, O, set_tag, SET_ATTR | POL_SEC },
		{ OSD_SET_ATTRIBUTES, P, 0, set_partition_tag, SET_ATTR | POL_SEC },
		{ OSD_SET_ATTRIBUTES, P, O, set_length, SET_ATTR | WRITE },
		{ OSD_SET_ATTRIBUTES, P, O, set_length_of_another_page, SET_ATTR },
		{ OSD_SET_ATTRIBUTES, P, O, set_username, SET_ATTR },
		{ OSD_GET_ATTRIBUTES, P, O, set_value, GET_ATTR | SET_ATTR },
		{ OSD_SET_ATTRIBUTES, P, O, get_length, GET_ATTR | SET_ATTR },
		{ OSD_LIST, 0, 0, room, READ | GLOBAL },
		{ OSD_LIST, ROOT_OF_THEN, 0, room, READ | GLOBAL },
		{ OSD_LIST_COLLECTION, P, 0, room, READ },
		{ OSD_PERFORM_TASK_MANAGEMENT_FUNCTION, P, O, query_tasks, DEV_MGMT },
		{ OSD_PERFORM_TASK_MANAGEMENT_FUNCTION, P, O, clear_tasks, DEV_MGMT | GLOBAL },
		{ OSD_PERFORM_TASK_MANAGEMENT_FUNCTION, 0, 0, reset, DEV_MGMT | GLOBAL },
		{ OSD_CREATE_PARTITION, P + 9, 0, nothing, CREATE | GLOBAL },
		{ OSD_REMOVE_PARTITION, P + 9, 0, nothing, REMOVE | GLOBAL },
	};
	struct engine_txn *txn;
	uint32_t version;
	struct unit *unit;

	open_unit(state);
	unit = *state;
	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_snapshot(txn, 0, NULL, &version), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct signed_call call = signed_call_of(unit, cases[i].action, cases[i].partition,
							 cases[i].object, OSD_CMDRSP);

		cases[i].fill(&call.call);
		expect_needed(unit, &call, cases[i].needed);
	}
	unit_tear_down(state);
}

static void test_keys_need_one_of_two_permissions(void **state)
{
	static const uint16_t enough[] = { DEV_MGMT, POL_SEC };
	struct key_pair made;
	struct unit *unit;

	open_unit(state);
	unit = *state;
	for (unsigned key = OSD_SET_ROOT_KEY; key <= OSD_SET_WORKING_KEY; key++) {
		uint64_t partition = key == OSD_SET_ROOT_KEY ? 0 : P, change = last_change(unit);
		struct signed_call call = signed_set_key(unit, key, partition, KEY_VERSION,
							 (uint8_t)(0x70 + key), &made);

		call.capability.permissions = (uint16_t) ~(DEV_MGMT | POL_SEC);
		signed_run(unit, &call);
		expect_field(unit, 129);
		assert_int_equal(last_change(unit), change);
		for (size_t i = 0; i < 2; i++) {
			call.capability.permissions = enough[i];
			fresh_nonce(unit, call.nonce);
			signed_run(unit, &call);
			expect_good(unit);
		}
		if (key == OSD_SET_ROOT_KEY)
			M->root = made;
		else
			M->partition = made;
	}
	unit_tear_down(state);
}

static void test_the_master_key_needs_one_of_two_permissions(void **state)
{
	static const uint16_t permissions[] = { (uint16_t) ~(DEV_MGMT | POL_SEC), DEV_MGMT,
						POL_SEC };
	uint8_t list[OSD_CHANGE_MASTER_BYTES_MAX];
	struct osd_key_fields fields = { .dh_group = OSD_DH_GROUP_2048, .allocation_length = 512 };
	struct osd_dh_pair pair;
	struct unit *unit;

	open_unit(state);
	unit = *state;
	assert_int_equal(osd_dh_begin(OSD_DH_GROUP_2048, &pair), 0);
	fields.parameter_length = (uint32_t)osd_seed_encode(OSD_DH_GROUP_2048, pair.own, list);
	for (size_t i = 0; i < 3; i++) {
		struct signed_call call =
			signed_call_of(unit, OSD_SET_MASTER_KEY, 0, 0, OSD_ALLDATA);

		osd_key_fields_encode(OSD_SET_MASTER_KEY, &fields, call.call.cdb.key_bytes);
		call.call.data = list;
		call.call.data_length = fields.parameter_length;
		call.call.data_in_capacity = 512;
		call.secret = M->master.authentication;
		call.capability.permissions = permissions[i];
		signed_run(unit, &call);
		if (i == 0)
			expect_field(unit, 129);
		else
			expect_good(unit);
	}
	unit_tear_down(state);
}

/* ---- functions of EXECUTE ---- */

struct function_case {
	uint16_t code;
	uint64_t partition, object;
	uint16_t needed;
	void (*fill)(struct osd_item_writer *parameters);
};

static void no_parameters(struct osd_item_writer *parameters)
{
	(void)parameters;
}

static void features(struct osd_item_writer *parameters)
{
	osd_item_add_number(parameters, OSD_ITEM_FEATURES, OSD_FEATURES_ALL);
}

static void new_name(struct osd_item_writer *parameters)
{
	osd_item_add_text(parameters, OSD_ITEM_NAME, "new");
}

/* Versions that open_functions makes. */
static void version(struct osd_item_writer *parameters)
{
	osd_item_add_text(parameters, OSD_ITEM_NAME, "old");
}

static void history(struct osd_item_writer *parameters)
{
	osd_item_open(parameters, OSD_ITEM_FROM);
	osd_item_add_text(parameters, OSD_ITEM_NAME, "old");
	osd_item_end(parameters);
}

static void policy(struct osd_item_writer *parameters)
{
	osd_item_add_number(parameters, OSD_ITEM_KIND, 1);
}

static void pattern(struct osd_item_writer *parameters)
{
	osd_item_add_text(parameters, OSD_ITEM_PATTERN, "xx");
}

static const struct function_case functions[] = {
	{ OSD_FUNCTION_FEATURES, 0, 0, GET_ATTR, no_parameters },
	{ OSD_FUNCTION_FEATURES, P, 0, GET_ATTR, no_parameters },
	{ OSD_FUNCTION_SUBSCRIBE, 0, 0, GET_ATTR, features },
	{ OSD_FUNCTION_SUBSCRIBE, P, 0, GET_ATTR, features },
	{ OSD_FUNCTION_STATISTICS, 0, 0, GET_ATTR, no_parameters },
	{ OSD_FUNCTION_SNAPSHOT, 0, 0, OBJ_MGMT, new_name },
	{ OSD_FUNCTION_SNAPSHOT, P, 0, OBJ_MGMT, new_name },
	{ OSD_FUNCTION_VERSIONS, 0, 0, GET_ATTR, no_parameters },
	{ OSD_FUNCTION_VERSIONS, P, 0, GET_ATTR, no_parameters },
	{ OSD_FUNCTION_DROP, 0, 0, OBJ_MGMT | REMOVE, version },
	{ OSD_FUNCTION_DROP, P, 0, OBJ_MGMT | REMOVE, version },
	{ OSD_FUNCTION_VIEW, 0, 0, READ, version },
	{ OSD_FUNCTION_VIEW, P, 0, READ, version },
	{ OSD_FUNCTION_ROLLBACK, 0, 0, OBJ_MGMT | WRITE | REMOVE, version },
	{ OSD_FUNCTION_ROLLBACK, P, 0, OBJ_MGMT | WRITE | REMOVE, version },
	{ OSD_FUNCTION_ROLLBACK, P, O, OBJ_MGMT | WRITE | REMOVE, version },
	{ OSD_FUNCTION_UNDO, P, O, WRITE, no_parameters },
	{ OSD_FUNCTION_LOG, P, O, GET_ATTR, no_parameters },
	{ OSD_FUNCTION_DIFF, P, 0, READ, history },
	{ OSD_FUNCTION_RETENTION, 0, 0, GET_ATTR, no_parameters },
	{ OSD_FUNCTION_RETENTION, P, 0, GET_ATTR, no_parameters },
	{ OSD_FUNCTION_SET_RETENTION, 0, 0, POL_SEC, policy },
	{ OSD_FUNCTION_SET_RETENTION, P, 0, POL_SEC, policy },
	{ OSD_FUNCTION_MERGE, 0, 0, DEV_MGMT, no_parameters },
	{ OSD_FUNCTION_SPACE, 0, 0, GET_ATTR, no_parameters },
	{ OSD_FUNCTION_SPACE, P, 0, GET_ATTR, no_parameters },
	{ OSD_FUNCTION_SEARCH, P, 0, READ | GLOBAL, pattern },
	{ OSD_FUNCTION_SEARCH, P, O, READ, pattern },
	{ OSD_FUNCTION_CHECKSUM, P, O, READ, no_parameters },
};

#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

/* The scene with version "old" of P and of the unit, and a modification of O after them. */
static void open_functions(void **state)
{
	static const uint64_t partitions[] = { 0, P };
	struct signed_call call;
	struct unit *unit;

	open_unit(state);
	unit = *state;
	for (size_t i = 0; i < 2; i++) {
		struct function_call function;

		function_of(&function, OSD_FUNCTION_SNAPSHOT, partitions[i], 0);
		osd_item_add_text(&function.writer, OSD_ITEM_NAME, "old");
		call = signed_call_of(unit, OSD_EXECUTE, partitions[i], 0, OSD_CMDRSP);
		call.call = function.call;
		call_data(&call.call, function.parameters, function.writer.length);
		call.call.cdb.address = osd_execute_address(OSD_FUNCTION_SNAPSHOT,
							    (uint32_t)function.writer.length);
		call.call.cdb.length = call.call.data_in_capacity;
		signed_run(unit, &call);
		expect_good(unit);
	}
	call = signed_write(unit, OSD_CMDRSP, "changed");
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_each_function_needs_exactly_its_permissions(void **state)
{
	for (size_t i = 0; i < FUNCTIONS; i++) {
		const struct function_case *wanted = &functions[i];
		bool of_object = wanted->code == OSD_FUNCTION_SEARCH ||
				 wanted->code == OSD_FUNCTION_CHECKSUM;
		struct function_call function;
		struct signed_call call;

		trying = osd_function_name(wanted->code);
		open_functions(state);
		function_of(&function, wanted->code, wanted->partition, wanted->object);
		wanted->fill(&function.writer);
		/* The capability is about the partition, also of an object's history. */
		call = signed_call_of(*state, OSD_EXECUTE, wanted->partition,
				      of_object ? wanted->object : 0, OSD_CMDRSP);
		call.call = function.call;
		call_data(&call.call, function.parameters, function.writer.length);
		call.call.cdb.address =
			osd_execute_address(wanted->code, (uint32_t)function.writer.length);
		call.call.cdb.length = call.call.data_in_capacity;
		expect_needed(*state, &call, wanted->needed);
		unit_tear_down(state);
	}
	trying = NULL;
}

static void test_the_table_has_every_function(void **state)
{
	struct unit *unit;

	open_unit(state);
	unit = *state;
	for (uint32_t code = 0; code <= UINT16_MAX; code++) {
		struct call call = call_of(OSD_EXECUTE, P, O);
		size_t at = 0;

		while (at < FUNCTIONS && functions[at].code != code)
			at++;
		/* Addresses that a function never takes are refused before. */
		if (at < FUNCTIONS) {
			call.cdb.partition = functions[at].partition;
			call.cdb.object = functions[at].object;
		}
		call.cdb.address = osd_execute_address((uint16_t)code, 0);
		call.cdb.length = call.data_in_capacity = 4096;
		call_run(unit, &call);
		/* Unknown, or refused for want of a credential. */
		expect_field(unit, at == FUNCTIONS ? 40 : 80);
	}
	unit_tear_down(state);
}

static int in_osd1(void **state)
{
	(void)state;
	unit_version = OSD_1;
	return 0;
}

#define in_osd2(test) cmocka_unit_test_teardown(test, say_what)
#define in_both(test) { #test " (OSD-1)", test, in_osd1, say_what, NULL }, in_osd2(test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_both(test_each_command_needs_exactly_its_permissions),
		in_osd2(test_the_table_has_every_command),
		in_both(test_attributes_and_larger_reach_need_more),
		in_both(test_keys_need_one_of_two_permissions),
		in_both(test_the_master_key_needs_one_of_two_permissions),
		in_both(test_each_function_needs_exactly_its_permissions),
		in_osd2(test_the_table_has_every_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
