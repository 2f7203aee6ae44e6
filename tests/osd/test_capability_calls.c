/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * No command makes a call of the object store that its store cannot serve: every row of both
 * tables, commands and functions, runs on stores that lack something. The linker puts a function of
 * this file in front of each optional call (Makefile). It notices calls that osd/ makes; calls that
 * the store makes itself, inside others, are the store's own affair.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "osd/execute.h"
#include "osd/functions.h"
#include "tests/osd/command_rows.h"
#include "tests/osd/function_call.h"

#define ALL_CAPABILITIES                                                                         \
	(ENGINE_HAS_COLLECTIONS | ENGINE_HAS_MERGE | ENGINE_HAS_VERSIONS | ENGINE_HAS_ROLLBACK | \
	 ENGINE_HAS_DIFFERENCES | ENGINE_HAS_RETENTION | ENGINE_HAS_CLONES)

/* ---- in front of the store ---- */

static bool looking;                  /* while a command of the test runs */
static uint32_t have;                 /* what the store can do */
static _Thread_local unsigned inside; /* of calls of the store */
static const char *wrong;             /* the first call that the store cannot serve */

static void notice(uint32_t needs, const char *call)
{
	if (looking && !inside && (have & needs) != needs && !wrong)
		wrong = call;
}

#define IN_FRONT(needs, type, call, parameters, arguments) \
	type __real_##call parameters;                     \
	type __wrap_##call parameters;                     \
	type __wrap_##call parameters                      \
	{                                                  \
		type result;                               \
                                                           \
		notice(needs, #call);                      \
		inside++;                                  \
		result = __real_##call arguments;          \
		inside--;                                  \
		return result;                             \
	}

/* A moment of the past. */
static uint32_t at(struct engine_moment moment)
{
	return moment.kind == ENGINE_NOW ? 0 : ENGINE_HAS_VERSIONS;
}

static uint32_t of_type(enum engine_type type)
{
	return type == ENGINE_COLLECTION ? ENGINE_HAS_COLLECTIONS : 0;
}

static uint32_t of_list(enum engine_list list)
{
	return list == ENGINE_LIST_COLLECTIONS || list == ENGINE_LIST_MEMBERS
		       ? ENGINE_HAS_COLLECTIONS
		       : 0;
}

/* clang-format off */
/* The Makefile reads the names of the calls from these lines. */
IN_FRONT(address.version || address.ago ? ENGINE_HAS_VERSIONS : 0, int, engine_open_object,
	 (struct engine_txn *txn, struct engine_address address, struct engine_object **object),
	 (txn, address, object))
IN_FRONT(address.version ? ENGINE_HAS_VERSIONS : 0, int, engine_partition_shown,
	 (struct engine_txn *txn, struct engine_address address, bool *is_present),
	 (txn, address, is_present))
IN_FRONT(ENGINE_HAS_CLONES, int, engine_snapshot_attribute_get,
	 (struct engine_txn *txn, struct engine_address address, unsigned above, uint32_t page,
	  uint32_t number, void *value, uint32_t capacity, uint32_t *length),
	 (txn, address, above, page, number, value, capacity, length))
IN_FRONT(of_type(type), int, engine_create,
	 (struct engine_txn *txn, uint64_t partition, enum engine_type type, uint64_t requested,
	  uint32_t count, uint64_t *first),
	 (txn, partition, type, requested, count, first))
IN_FRONT(of_type(type), int, engine_create_up_to,
	 (struct engine_txn *txn, uint64_t partition, enum engine_type type, uint64_t last,
	  uint32_t count, uint64_t *first),
	 (txn, partition, type, last, count, first))
IN_FRONT(of_list(what), int, engine_object_list,
	 (struct engine_object *object, enum engine_list what, uint64_t first, uint64_t *ids,
	  size_t capacity, size_t *count, uint64_t *next),
	 (object, what, first, ids, capacity, count, next))
IN_FRONT(of_list(what), int, engine_object_list_count,
	 (struct engine_object *object, enum engine_list what, uint64_t first, uint64_t *count),
	 (object, what, first, count))
IN_FRONT(of_list(what), int, engine_object_list_sequence,
	 (struct engine_object *object, enum engine_list what, uint64_t *sequence),
	 (object, what, sequence))

IN_FRONT(ENGINE_HAS_COLLECTIONS, int, engine_object_membership_set,
	 (struct engine_object *object, uint32_t number, uint64_t collection),
	 (object, number, collection))
IN_FRONT(ENGINE_HAS_COLLECTIONS, int, engine_object_membership_count,
	 (struct engine_object *object, uint32_t *count), (object, count))
IN_FRONT(ENGINE_HAS_COLLECTIONS, int, engine_object_member_insert,
	 (struct engine_object *collection, uint64_t object), (collection, object))
IN_FRONT(ENGINE_HAS_COLLECTIONS, int, engine_object_member_remove,
	 (struct engine_object *collection, uint64_t object), (collection, object))
IN_FRONT(ENGINE_HAS_COLLECTIONS, int, engine_object_members_clear,
	 (struct engine_object *collection), (collection))
IN_FRONT(ENGINE_HAS_MERGE, int, engine_merge,
	 (struct engine *engine, struct engine_merge_result *step), (engine, step))

IN_FRONT(ENGINE_HAS_VERSIONS, int, engine_moment_resolve,
	 (struct engine_txn *txn, uint64_t partition, struct engine_moment moment,
	  uint64_t *sequence),
	 (txn, partition, moment, sequence))
IN_FRONT(ENGINE_HAS_VERSIONS, int, engine_object_moment_resolve,
	 (struct engine_txn *txn, uint64_t partition, struct engine_moment moment,
	  uint64_t *sequence),
	 (txn, partition, moment, sequence))
IN_FRONT(ENGINE_HAS_VERSIONS, int, engine_snapshot,
	 (struct engine_txn *txn, uint64_t partition, const char *name, uint32_t *version),
	 (txn, partition, name, version))
IN_FRONT(ENGINE_HAS_VERSIONS, int, engine_snapshot_group,
	 (struct engine_txn *txn, const uint64_t *partitions, size_t count, const char *name,
	  uint32_t *versions),
	 (txn, partitions, count, name, versions))
IN_FRONT(ENGINE_HAS_VERSIONS, int, engine_version_next,
	 (struct engine_txn *txn, uint64_t partition, uint64_t from,
	  struct engine_version *version),
	 (txn, partition, from, version))
IN_FRONT(ENGINE_HAS_VERSIONS, int, engine_version_next_own,
	 (struct engine_txn *txn, uint64_t partition, uint64_t from,
	  struct engine_version *version),
	 (txn, partition, from, version))
IN_FRONT(ENGINE_HAS_VERSIONS, int, engine_version_find,
	 (struct engine_txn *txn, uint64_t partition, const char *name, uint32_t *version),
	 (txn, partition, name, version))
IN_FRONT(ENGINE_HAS_VERSIONS, int, engine_version_drop,
	 (struct engine_txn *txn, uint64_t partition, uint32_t version),
	 (txn, partition, version))
IN_FRONT(ENGINE_HAS_VERSIONS, int, engine_view_open,
	 (struct engine_txn *txn, uint64_t partition, struct engine_moment moment,
	  uint32_t *version),
	 (txn, partition, moment, version))
IN_FRONT(ENGINE_HAS_VERSIONS, int, engine_view_hold,
	 (struct engine_txn *txn, uint64_t partition, uint32_t *version, uint64_t *bound),
	 (txn, partition, version, bound))
IN_FRONT(ENGINE_HAS_VERSIONS, int, engine_history,
	 (struct engine_txn *txn, uint64_t partition, struct engine_history *history),
	 (txn, partition, history))
void __real_engine_view_release(struct engine_txn *txn, uint64_t partition, uint32_t version,
				uint64_t bound);
void __wrap_engine_view_release(struct engine_txn *txn, uint64_t partition, uint32_t version,
				uint64_t bound);
void __wrap_engine_view_release(struct engine_txn *txn, uint64_t partition, uint32_t version,
				uint64_t bound)
{
	notice(ENGINE_HAS_VERSIONS, "engine_view_release");
	__real_engine_view_release(txn, partition, version, bound);
}

IN_FRONT(ENGINE_HAS_ROLLBACK | at(to), int, engine_rollback,
	 (struct engine_txn *txn, uint64_t partition, struct engine_moment to),
	 (txn, partition, to))
IN_FRONT(ENGINE_HAS_ROLLBACK | at(to), int, engine_rollback_object,
	 (struct engine_txn *txn, uint64_t partition, uint64_t object, struct engine_moment to),
	 (txn, partition, object, to))
IN_FRONT(ENGINE_HAS_ROLLBACK, int, engine_undo,
	 (struct engine_txn *txn, uint64_t partition, uint64_t object, uint32_t modifications),
	 (txn, partition, object, modifications))
IN_FRONT(ENGINE_HAS_ROLLBACK, int, engine_undo_on,
	 (struct engine_txn *txn, uint64_t partition, uint64_t object, uint32_t modifications,
	  struct engine_undo *undo),
	 (txn, partition, object, modifications, undo))
IN_FRONT(ENGINE_HAS_ROLLBACK, bool, engine_space_wanted,
	 (const struct engine_txn *txn, struct engine_space *wanted), (txn, wanted))
IN_FRONT(ENGINE_HAS_ROLLBACK, int, engine_make_space,
	 (struct engine *engine, const struct engine_space *wanted), (engine, wanted))
IN_FRONT(ENGINE_HAS_ROLLBACK, int, engine_log_next,
	 (struct engine_txn *txn, uint64_t partition, uint64_t object, uint64_t below,
	  struct engine_modification *modification),
	 (txn, partition, object, below, modification))

IN_FRONT(ENGINE_HAS_RETENTION, int, engine_keep_time, (struct engine *engine, uint64_t owed_ms),
	 (engine, owed_ms))

IN_FRONT(ENGINE_HAS_DIFFERENCES | at(from) | at(to), int, engine_diff_next,
	 (struct engine_txn *txn, uint64_t partition, struct engine_moment from,
	  struct engine_moment to, struct engine_diff_cursor *cursor,
	  struct engine_difference *difference),
	 (txn, partition, from, to, cursor, difference))
IN_FRONT(ENGINE_HAS_DIFFERENCES | at(from) | at(to), int, engine_diff_progress,
	 (struct engine_txn *txn, uint64_t partition, struct engine_moment from,
	  struct engine_moment to, const struct engine_diff_cursor *cursor, uint64_t *done,
	  uint64_t *total),
	 (txn, partition, from, to, cursor, done, total))

IN_FRONT(ENGINE_HAS_RETENTION, int, engine_retention_get,
	 (struct engine_txn *txn, uint64_t partition, struct engine_retention *retention),
	 (txn, partition, retention))
IN_FRONT(ENGINE_HAS_RETENTION, int, engine_retention_set,
	 (struct engine_txn *txn, uint64_t partition, const struct engine_retention *retention,
	  bool administrator),
	 (txn, partition, retention, administrator))
IN_FRONT(ENGINE_HAS_RETENTION | ENGINE_HAS_MERGE, int, engine_survey,
	 (struct engine_txn *txn, struct engine_survey *survey), (txn, survey))
IN_FRONT(ENGINE_HAS_RETENTION, int, engine_time_epoch, (struct engine_txn *txn), (txn))

IN_FRONT(ENGINE_HAS_CLONES | at(moment), int, engine_clone,
	 (struct engine_txn *txn, uint64_t source, struct engine_moment moment,
	  uint64_t requested, bool writable, uint64_t *chosen),
	 (txn, source, moment, requested, writable, chosen))
IN_FRONT(ENGINE_HAS_CLONES, int, engine_clone_refresh,
	 (struct engine_txn *txn, uint64_t clone), (txn, clone))
IN_FRONT(ENGINE_HAS_CLONES, int, engine_clone_detach,
	 (struct engine_txn *txn, uint64_t clone), (txn, clone))
IN_FRONT(ENGINE_HAS_CLONES, int, engine_clone_get,
	 (struct engine_txn *txn, uint64_t partition, struct engine_clone *clone),
	 (txn, partition, clone))
IN_FRONT(ENGINE_HAS_CLONES, int, engine_clone_depth,
	 (struct engine_txn *txn, uint64_t partition, uint32_t *depth), (txn, partition, depth))
/* clang-format on */

/* ---- stores that lack something ---- */

/* Nothing; one capability alone; all but one. */
#define STORES (1 + 7 + 7)

static uint32_t store_of(unsigned number)
{
	if (number == 0)
		return 0;
	return number <= 7 ? 1U << (number - 1) : ALL_CAPABILITIES & ~(1U << (number - 8));
}

static void look(struct unit *unit, uint32_t capabilities)
{
	unit->device->capabilities = have = capabilities;
	looking = true;
}

static void end_look(struct unit *unit, const char *of)
{
	looking = false;
	unit->device->capabilities = ALL_CAPABILITIES;
	if (wrong)
		fail_msg("%s calls %s of a store with capabilities 0x%x", of, wrong, have);
}

/* A unit with what every row needs, and a past. */
static void open_unit(struct unit *unit)
{
	unit_open(unit, 64 << 20);
	unit_create_partition(unit, P);
	unit_create(unit, P, O);
	command_rows_prepare(unit);
	unit_version = OSD_2;
	function_subscribe(unit);
	function_snapshot(unit, P, "then");
	unit_write(unit, O, 3, "change", 6);
}

static bool is_served(uint32_t needs)
{
	return (have & needs) == needs;
}

/* ---- commands ---- */

enum attributes { ALL_OF_THEM, MEMBERSHIP, WAYS };

/* True: the call sets a membership. */
static bool add_attributes(const struct command_row *row, enum attributes way, struct call *call)
{
	call->retrieved_capacity = 8192;
	if (row->flags & ROW_NO_ATTRIBUTES)
		return false;
	if (way == ALL_OF_THEM)
		call_get(call, OSD_PAGE_ALL, OSD_ATTRIBUTE_ALL);
	if (way != MEMBERSHIP || row->flags & ROW_OWN_LISTS || row->target != ROW_OBJECT)
		return false;
	call_set_number(call, OSD_USER_OBJECT_COLLECTIONS, 1, ROW_COLLECTION_ID);
	return true;
}

static void run_row(const struct command_row *row, uint32_t capabilities, enum attributes way)
{
	const struct osd_command_entry *entry = osd_command_find(row->action);
	struct call call = command_row_call(row, OSD_2);
	bool joins = add_attributes(row, way, &call);
	struct unit unit;

	open_unit(&unit);
	look(&unit, capabilities);
	call_run(&unit, &call);
	end_look(&unit, osd_action_name(row->action));
	if (!is_served(entry->needs))
		expect_sense(&unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_COMMAND_OPERATION_CODE);
	else if (joins && !is_served(ENGINE_HAS_COLLECTIONS))
		expect_sense(&unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	else if (row->target != ROW_COLLECTION || is_served(ENGINE_HAS_COLLECTIONS))
		expect_good(&unit);
	unit_close(&unit);
}

static void commands_make_no_call_that_the_store_cannot_serve(void **state)
{
	(void)state;
	for (size_t i = 0; i < command_row_count; i++)
		for (unsigned store = 0; store < STORES; store++)
			for (int way = 0; way < WAYS; way++)
				run_row(&command_rows[i], store_of(store), (enum attributes)way);
}

/* Addresses of the past, and the whole partition with a collection in it. */
static void further_addresses_make_none_either(void **state)
{
	static const struct {
		uint16_t action;
		uint64_t partition, object;
	} calls[] = {
		{ OSD_GET_ATTRIBUTES, UINT64_C(1) << 48 | P, O },
		{ OSD_OBJECT_STRUCTURE_CHECK, P, 0 },
		{ OSD_OBJECT_STRUCTURE_CHECK, 0, 0 },
		{ OSD_LIST, UINT64_C(1) << 48 | P, 0 },
		{ OSD_CREATE_CLONE, P + 9, 0 }, /* of a version */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		for (unsigned store = 0; store < STORES; store++) {
			struct call call =
				call_of(calls[i].action, calls[i].partition, calls[i].object);
			struct unit unit;

			open_unit(&unit);
			call.cdb.length = call.data_in_capacity = 4096;
			if (calls[i].action == OSD_CREATE_CLONE) {
				call.cdb.length = call.data_in_capacity = 0;
				call.cdb.address = UINT64_C(1) << 48 | P;
			}
			look(&unit, store_of(store));
			call_run(&unit, &call);
			end_look(&unit, osd_action_name(calls[i].action));
			unit_close(&unit);
		}
}

/* ---- functions ---- */

enum parameters { NOTHING, A_TIME, A_NAME, FROM_NAME, PARAMETERS };

static void run_function(struct unit *unit, uint16_t code, uint64_t object, uint32_t capabilities,
			 enum parameters given)
{
	const struct osd_cdb cdb = { .action = OSD_EXECUTE, .address = (uint64_t)code << 48 };
	const struct osd_command_entry *entry = osd_function_find(&cdb);
	bool of_root = entry->target == OSD_TARGET_ROOT;
	struct function_call call;

	function_of(&call, (enum osd_function)code, of_root ? 0 : P, of_root ? 0 : object);
	if (given == FROM_NAME)
		osd_item_open(&call.writer, OSD_ITEM_FROM);
	if (given == A_NAME || given == FROM_NAME)
		osd_item_add_text(&call.writer, OSD_ITEM_NAME, "then");
	if (given == A_TIME)
		osd_item_add_number(&call.writer, OSD_ITEM_TIME, unit->now_ms - FUNCTION_STEP_MS);
	if (given == FROM_NAME)
		osd_item_end(&call.writer);
	look(unit, capabilities);
	function_run(unit, &call);
	end_look(unit, osd_function_name(code));
	if (!is_served(entry->needs))
		expect_field(unit, 40);
}

static void run_everywhere(uint16_t code)
{
	for (unsigned store = 0; store < STORES; store++) {
		struct unit unit;

		open_unit(&unit);
		for (int given = 0; given < PARAMETERS; given++) {
			run_function(&unit, code, 0, store_of(store), (enum parameters)given);
			run_function(&unit, code, O, store_of(store), (enum parameters)given);
		}
		unit_close(&unit);
	}
}

static void functions_make_no_call_that_the_store_cannot_serve(void **state)
{
	unsigned functions = 0;

	(void)state;
	for (uint32_t code = 0; code <= UINT16_MAX; code++) {
		const struct osd_cdb cdb = { .action = OSD_EXECUTE,
					     .address = (uint64_t)code << 48 };

		if (!osd_function_find(&cdb))
			continue;
		functions++;
		run_everywhere((uint16_t)code);
	}
	assert_int_equal(functions, 17);
}

/* ---- the list above is whole ---- */

static bool is_in_front(const char *call)
{
	char line[256], wanted[96];
	FILE *file = fopen("tests/osd/test_capability_calls.c", "r");
	bool found = false;

	if (!file)
		fail_msg("run this from the top of the source");
	snprintf(wanted, sizeof(wanted), " %s,", call);
	while (!found && fgets(line, sizeof(line), file))
		found = (!strncmp(line, "IN_FRONT(", 9) && strstr(line, wanted)) ||
			(!strncmp(line, "void __wrap_", 12) &&
			 !strncmp(line + 12, call, strlen(call)));
	fclose(file);
	return found;
}

/* Every call of history.h belongs to a capability. */
static void every_call_of_history_is_watched(void **state)
{
	FILE *file = fopen("engine/history.h", "r");
	unsigned calls = 0;
	char line[256];

	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		char *call, *end;

		if (strncmp(line, "int ", 4) && strncmp(line, "void ", 5) &&
		    strncmp(line, "bool ", 5))
			continue;
		call = strchr(line, ' ') + 1;
		end = strchr(call, '(');
		if (!end)
			continue;
		*end = '\0';
		calls++;
		if (!is_in_front(call))
			fail_msg("%s is not watched", call);
	}
	fclose(file);
	assert_true(calls > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_make_no_call_that_the_store_cannot_serve),
		cmocka_unit_test(further_addresses_make_none_either),
		cmocka_unit_test(functions_make_no_call_that_the_store_cannot_serve),
		cmocka_unit_test(every_call_of_history_is_watched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
