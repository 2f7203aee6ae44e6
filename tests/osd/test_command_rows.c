/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What all commands have in common, tried on each of command_rows.c in both versions: attributes in
 * every format, and every error that is not the command's own, after which nothing has happened.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/command_rows.h"

/* A page that every object may have. */
#define PAGE   0xF0000010u
#define NUMBER 1u

/* One test: a row in a version. */
struct subject {
	const struct command_row *row;
	enum osd_version version;
};

/* The error in work, for who reads of a failure; NULL when all is well. */
static const char *trying;

static int say_what(void **state)
{
	(void)state;
	if (trying)
		print_error("with %s\n", trying);
	trying = NULL;
	return 0;
}

static void open_unit(struct unit *unit, enum osd_version version)
{
	unit_open(unit, 64 << 20);
	unit_create_partition(unit, P);
	unit_create(unit, P, O);
	command_rows_prepare(unit);
	unit_version = version;
}

static void close_unit(struct unit *unit)
{
	unit_version = OSD_2;
	unit_close(unit);
}

/* A call that succeeds, with a set and a get where the command has them. */
static struct call full_call(const struct subject *subject)
{
	struct call call = command_row_call(subject->row, subject->version);

	call.retrieved_capacity = 256;
	if (subject->row->flags & ROW_NO_ATTRIBUTES)
		return call;
	if (!(subject->row->flags & ROW_OWN_LISTS))
		call_set(&call, PAGE, NUMBER, "value", 5);
	call_get(&call, PAGE, NUMBER);
	call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_PARTITION_ID);
	return call;
}

/* ---- success, and attributes in every format ---- */

static void expect_attribute(struct unit *unit, const struct subject *subject)
{
	struct call call = command_row_call(subject->row, OSD_2);
	uint8_t value[8];

	if (subject->row->flags & ROW_REMOVES)
		return;
	assert_int_equal(unit_get(unit, call.cdb.partition, call.cdb.object, PAGE, NUMBER, value,
				  sizeof(value)),
			 5);
	assert_memory_equal(value, "value", 5);
}

static void test_lists(void **state)
{
	const struct subject *subject = *state;
	struct call call = full_call(subject);
	struct osd_attribute attribute;
	struct unit unit;

	open_unit(&unit, subject->version);
	call_run(&unit, &call);
	expect_good(&unit);
	if (call.has_gets && !(subject->row->flags & ROW_OWN_LISTS)) {
		attribute = unit_retrieved(&unit, &call, 0);
		assert_int_equal(attribute.page, PAGE);
		/* The one command that gets before it sets. */
		assert_int_equal(attribute.length,
				 subject->row->action == OSD_GET_ATTRIBUTES ? 0 : 5);
		attribute = unit_retrieved(&unit, &call, 1);
		assert_int_equal(get_be64(attribute.value), call.cdb.partition);
		expect_attribute(&unit, subject);
	}
	close_unit(&unit);
}

static void test_page_format(void **state)
{
	const struct subject *subject = *state;
	struct call call = command_row_call(subject->row, subject->version);
	struct encoded_call encoded;
	size_t at;
	struct unit unit;

	if (subject->row->flags & (ROW_NO_ATTRIBUTES | ROW_OWN_LISTS))
		return;
	open_unit(&unit, subject->version);
	call.cdb.format = OSD_ATTRIBUTES_PAGE;
	call.cdb.get_page = OSD_PAGE_CURRENT_COMMAND;
	call.cdb.retrieved.length = 76;
	call.cdb.retrieved.offset =
		osd_offset_encode(subject->version, call.data_in_capacity, NULL);
	call.cdb.set_page = PAGE;
	call.cdb.set_number = NUMBER;
	call_encode(&call, &encoded);
	at = osd_offset_encode(subject->version, encoded.out_length, NULL);
	call.cdb.set_data = (struct osd_segment){ at, 5 };
	assert_int_equal(osd_cdb_encode(&call.cdb, encoded.cdb, NULL), 0);
	memcpy(encoded.out + at, "value", 5);
	unit_execute(&unit, encoded.cdb, encoded.cdb_length, encoded.out, at + 5,
		     call.cdb.retrieved.offset + 76);
	free(encoded.out);
	expect_good(&unit);
	assert_int_equal(get_be32(unit.data_in + call.cdb.retrieved.offset),
			 OSD_PAGE_CURRENT_COMMAND);
	expect_attribute(&unit, subject);
	close_unit(&unit);
}

static void test_cdb_format(void **state)
{
	const struct subject *subject = *state;
	struct call call = command_row_call(subject->row, subject->version);
	struct unit unit;

	if (subject->version == OSD_1 || subject->row->flags & (ROW_NO_ATTRIBUTES | ROW_OWN_LISTS))
		return;
	open_unit(&unit, subject->version);
	call.cdb.format = OSD_ATTRIBUTES_CDB;
	call.cdb.set_page = PAGE;
	call.cdb.set_number = NUMBER;
	call.cdb.set_length = 5;
	memcpy(call.cdb.set_value, "value", 5);
	call_run(&unit, &call);
	expect_good(&unit);
	expect_attribute(&unit, subject);
	close_unit(&unit);
}

/* ---- errors ---- */

static void cut_cdb(struct encoded_call *call)
{
	call->cdb_length--;
}

static void lie_about_cdb_length(struct encoded_call *call)
{
	call->cdb[7] = 0x10;
}

static void ask_for_reserved_isolation(struct encoded_call *call)
{
	call->cdb[10] |= 3;
}

static void leave_out_format(struct encoded_call *call)
{
	call->cdb[11] &= (uint8_t)~0x30;
}

static void use_cdb_format(struct encoded_call *call)
{
	call->cdb[11] = (uint8_t)((call->cdb[11] & ~0x30) | OSD_ATTRIBUTES_CDB);
}

static void use_reserved_timestamps_control(struct encoded_call *call)
{
	call->cdb[12] = 0x55;
}

static void miss_partition(struct encoded_call *call)
{
	put_be64(call->cdb + 16, P + 0x999);
}

static void address_old_version(struct encoded_call *call)
{
	put_be64(call->cdb + 16, UINT64_C(1) << 48 | P);
}

static void miss_object(struct encoded_call *call)
{
	put_be64(call->cdb + 24, O + 0x999);
}

static void shorten_continuation(struct encoded_call *call)
{
	put_be32(call->cdb + 48, 44);
}

static void lengthen_continuation(struct encoded_call *call)
{
	put_be32(call->cdb + 48, 0x00FFFFF8);
}

static void lengthen_get_list(struct encoded_call *call)
{
	put_be32(call->cdb + 52, 0x10000000);
}

static void misplace_get_list(struct encoded_call *call)
{
	put_be32(call->cdb + 56, OSD_OFFSET_UNUSED);
}

static void lengthen_answer(struct encoded_call *call)
{
	put_be32(call->cdb + 60, 0x10000000);
}

static void misplace_answer(struct encoded_call *call)
{
	put_be32(call->cdb + 64, OSD_OFFSET_UNUSED);
}

static void lengthen_set_list(struct encoded_call *call)
{
	put_be32(call->cdb + 68, 0x10000000);
}

static void misplace_set_list(struct encoded_call *call)
{
	put_be32(call->cdb + 72, OSD_OFFSET_UNUSED);
}

static uint8_t *segment_at(struct encoded_call *call, size_t field)
{
	enum osd_version version = call->cdb_length == OSD1_CDB_BYTES ? OSD_1 : OSD_2;
	uint64_t offset = 0;

	assert_int_equal(osd_offset_decode(version, get_be32(call->cdb + field), &offset), 0);
	return call->out + offset;
}

static void mistype_get_list(struct encoded_call *call)
{
	segment_at(call, 56)[0] = OSD_LIST_TYPE_VALUES;
}

static void mistype_set_list(struct encoded_call *call)
{
	segment_at(call, 72)[0] = OSD_LIST_TYPE_GET;
}

static void cut_get_list(struct encoded_call *call)
{
	put_be32(call->cdb + 52, 3);
}

static void cut_set_list(struct encoded_call *call)
{
	put_be32(call->cdb + 68, get_be32(call->cdb + 68) - 8);
}

/* The current command page can't be set by anybody. */
static void set_read_only_page(struct encoded_call *call)
{
	size_t head = call->cdb_length == OSD1_CDB_BYTES ? 4 : 8;

	put_be32(segment_at(call, 72) + head, OSD_PAGE_CURRENT_COMMAND);
}

static void get_reserved_page(struct encoded_call *call)
{
	size_t head = call->cdb_length == OSD1_CDB_BYTES ? 4 : 8;

	put_be32(segment_at(call, 56) + head, OSD_PAGES_RESERVED);
}

static void ask_for_missing_version(struct encoded_call *call)
{
	put_be64(call->cdb + 16, UINT64_C(0x77) << 48 | P);
}

/* The collection for the object, and the other way round. */
static void mistake_type(struct encoded_call *call)
{
	uint64_t object = get_be64(call->cdb + 24);

	put_be64(call->cdb + 24, object == O ? ROW_COLLECTION_ID : O);
}

static void change_continuation_format(struct encoded_call *call)
{
	call->out[0] = 2;
}

static void continue_other_action(struct encoded_call *call)
{
	call->out[3] ^= 1;
}

static void lay_get_list_over_set_list(struct encoded_call *call)
{
	memcpy(call->cdb + 56, call->cdb + 72, 4);
}

static void lay_set_list_over_data(struct encoded_call *call)
{
	put_be32(call->cdb + 72, 0);
}

static void lay_answer_over_data(struct encoded_call *call)
{
	put_be32(call->cdb + 64, 0);
}

static void nothing(struct encoded_call *call)
{
	(void)call;
}

/* ---- errors that are in the call before it is encoded ---- */

/* Type of the object whose attributes the command sets and gets. */
static uint32_t first_page_of(const struct command_row *row)
{
	switch (row->target) {
	case ROW_ROOT:
		return OSD_PAGES_ROOT;
	case ROW_PARTITION:
	case ROW_NEW_PARTITION:
		return OSD_PAGES_PARTITION;
	case ROW_COLLECTION:
		return OSD_PAGES_COLLECTION;
	case ROW_OBJECT:
	case ROW_NEW_OBJECT:
		break;
	}
	return row->action == OSD_CREATE_COLLECTION ||
			       row->action == OSD_CREATE_USER_TRACKING_COLLECTION
		       ? OSD_PAGES_COLLECTION
		       : OSD_PAGES_USER_OBJECT;
}

static void add_unknown_descriptor(const struct command_row *row, struct call *call)
{
	(void)row;
	call_descriptor(call, 0x0055, "eight by", 8);
}

static uint32_t page_of_others(const struct command_row *row)
{
	return first_page_of(row) == OSD_PAGES_ROOT ? OSD_PARTITION_INFORMATION
						    : OSD_ROOT_INFORMATION;
}

static void set_page_of_others(const struct command_row *row, struct call *call)
{
	call_set(call, page_of_others(row), OSD_INFORMATION_USERNAME, "name", 4);
}

static void get_page_of_others(const struct command_row *row, struct call *call)
{
	call_get(call, page_of_others(row), OSD_INFORMATION_USERNAME);
}

static void set_wrong_length(const struct command_row *row, struct call *call)
{
	call_set(call, first_page_of(row) + OSD_PAGE_TIMESTAMPS, OSD_TIME_ATTRIBUTES_MODIFIED,
		 "seven b", 7);
}

static void set_reserved_page(const struct command_row *row, struct call *call)
{
	call_set(call, first_page_of(row) + 0x80, 1, "value", 5);
}

static void set_wildcard(const struct command_row *row, struct call *call)
{
	(void)row;
	call_set(call, PAGE, OSD_ATTRIBUTE_ALL, "value", 5);
}

static void name_without_end(const struct command_row *row, struct call *call)
{
	(void)row;
	call_set(call, PAGE, OSD_ATTRIBUTE_IDENTIFICATION, "no NUL", 6);
}

static void join_what_is_no_collection(const struct command_row *row, struct call *call)
{
	(void)row;
	call_set_number(call, OSD_USER_OBJECT_COLLECTIONS, 1, O);
}

enum applies {
	ALWAYS,
	NOT_TO_FLUSHES_AND_KEYS, /* they have no isolation */
	TO_OSD1,
	TO_ADDRESSED_PARTITIONS,
	TO_CHANGED_PARTITIONS,
	TO_ADDRESSED_OBJECTS,
	TO_CONTINUATIONS,
	TO_GETS,
	TO_SETS,
	TO_SETS_OF_USER_OBJECTS,
	TO_GETS_WITH_SETS,
	TO_ONE_TYPE, /* commands on a user object alone, or a collection */
	TO_DATA_OUT_WITH_SETS,
	TO_DATA_IN_WITH_GETS,
};

static const struct damage {
	const char *name;
	enum applies applies;
	void (*apply)(struct encoded_call *call);
	uint8_t key;
	uint16_t code;
	int field;
	void (*alter)(const struct command_row *row, struct call *call); /* before; NULL: nothing */
} damages[] = {
#define FIELD(field) SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_CDB, field, NULL
#define LIST(code)   SENSE_ILLEGAL_REQUEST, SENSE_##code, -1, NULL
#define ALTERED(alter) \
	nothing, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST, -1, alter
	{ "a byte too few", ALWAYS, cut_cdb, FIELD(7) },
	{ "wrong ADDITIONAL CDB LENGTH", ALWAYS, lie_about_cdb_length, FIELD(7) },
	{ "reserved isolation", NOT_TO_FLUSHES_AND_KEYS, ask_for_reserved_isolation, FIELD(10) },
	{ "no attributes format", ALWAYS, leave_out_format, FIELD(11) },
	{ "CDB format in OSD-1", TO_OSD1, use_cdb_format, FIELD(11) },
	{ "reserved timestamps control", ALWAYS, use_reserved_timestamps_control, FIELD(12) },
	{ "no such partition", TO_ADDRESSED_PARTITIONS, miss_partition, FIELD(16) },
	{ "an old version", TO_CHANGED_PARTITIONS, address_old_version, SENSE_DATA_PROTECT,
	  SENSE_WRITE_PROTECTED, -1, NULL },
	{ "no such object", TO_ADDRESSED_OBJECTS, miss_object, FIELD(24) },
	{ "short continuation segment", TO_CONTINUATIONS, shorten_continuation, FIELD(48) },
	{ "continuation segment beyond Data-Out", TO_CONTINUATIONS, lengthen_continuation,
	  FIELD(48) },
	{ "get list beyond Data-Out", TO_GETS, lengthen_get_list, FIELD(52) },
	{ "get list without an offset", TO_GETS, misplace_get_list, FIELD(56) },
	{ "answer beyond Data-In", TO_GETS, lengthen_answer, FIELD(60) },
	{ "answer without an offset", TO_GETS, misplace_answer, FIELD(64) },
	{ "set list beyond Data-Out", TO_SETS, lengthen_set_list, FIELD(68) },
	{ "set list without an offset", TO_SETS, misplace_set_list, FIELD(72) },
	{ "get list of another type", TO_GETS, mistype_get_list,
	  LIST(INVALID_FIELD_IN_PARAMETER_LIST) },
	{ "set list of another type", TO_SETS, mistype_set_list,
	  LIST(INVALID_FIELD_IN_PARAMETER_LIST) },
	{ "get list shorter than its head", TO_GETS, cut_get_list,
	  LIST(PARAMETER_LIST_LENGTH_ERROR) },
	{ "entry beyond the set list", TO_SETS, cut_set_list, LIST(PARAMETER_LIST_LENGTH_ERROR) },
	{ "an attribute that can't be set", TO_SETS, set_read_only_page,
	  LIST(INVALID_FIELD_IN_PARAMETER_LIST) },
	{ "a reserved page", TO_GETS, get_reserved_page, LIST(INVALID_FIELD_IN_PARAMETER_LIST) },
	{ "no such version", TO_ADDRESSED_PARTITIONS, ask_for_missing_version, FIELD(16) },
	{ "an object of another type", TO_ONE_TYPE, mistake_type, FIELD(24) },
	{ "a descriptor that no command has", TO_CONTINUATIONS, nothing, SENSE_ILLEGAL_REQUEST,
	  SENSE_INVALID_FIELD_IN_CDB, 48, add_unknown_descriptor },
	{ "another continuation format", TO_CONTINUATIONS, change_continuation_format,
	  SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_CDB, 48, add_unknown_descriptor },
	{ "a continuation of another action", TO_CONTINUATIONS, continue_other_action,
	  SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_CDB, 48, add_unknown_descriptor },
	{ "get list over the set list", TO_GETS_WITH_SETS, lay_get_list_over_set_list, FIELD(56) },
	{ "set list over the data", TO_DATA_OUT_WITH_SETS, lay_set_list_over_data, FIELD(72) },
	{ "answer over the data", TO_DATA_IN_WITH_GETS, lay_answer_over_data, FIELD(64) },
	{ "a set of a page of another object type", TO_SETS, ALTERED(set_page_of_others) },
	{ "a get of a page of another object type", TO_GETS, ALTERED(get_page_of_others) },
	{ "a value of another length", TO_SETS, ALTERED(set_wrong_length) },
	{ "a set of a reserved page", TO_SETS, ALTERED(set_reserved_page) },
	{ "a set of all numbers", TO_SETS, ALTERED(set_wildcard) },
	{ "a membership in what is no collection", TO_SETS_OF_USER_OBJECTS,
	  ALTERED(join_what_is_no_collection) },
	{ "a page's name without NUL", TO_SETS, ALTERED(name_without_end) },
};

/* Does the command work on one type of objects only, of those with IDs of their own? */
static bool has_one_type(const struct command_row *row)
{
	switch (row->action) {
	case OSD_OBJECT_STRUCTURE_CHECK:
	case OSD_GET_ATTRIBUTES:
	case OSD_SET_ATTRIBUTES:
	case OSD_PERFORM_SCSI_COMMAND:
	case OSD_PERFORM_TASK_MANAGEMENT_FUNCTION:
		return false;
	default:
		return row->target == ROW_OBJECT || row->target == ROW_COLLECTION;
	}
}

static bool does_apply(const struct damage *damage, const struct subject *subject)
{
	struct call call = command_row_call(subject->row, subject->version);
	const struct command_row *row = subject->row;
	bool partition = row->target != ROW_ROOT && row->target != ROW_NEW_PARTITION;
	bool attributes = !(row->flags & ROW_NO_ATTRIBUTES);

	switch (damage->applies) {
	case ALWAYS:
		return true;
	case NOT_TO_FLUSHES_AND_KEYS:
		return subject->version == OSD_2 && !(row->flags & ROW_NO_OPTIONS);
	case TO_OSD1:
		return subject->version == OSD_1;
	case TO_ADDRESSED_PARTITIONS:
		return partition;
	case TO_CHANGED_PARTITIONS:
		return partition && row->flags & ROW_CHANGES;
	case TO_ADDRESSED_OBJECTS:
		return row->target == ROW_OBJECT || row->target == ROW_COLLECTION;
	case TO_CONTINUATIONS:
		return subject->version == OSD_2 && !(row->flags & ROW_NO_CONTINUATION);
	case TO_GETS:
		return attributes;
	case TO_SETS_OF_USER_OBJECTS:
		return attributes && !(row->flags & ROW_OWN_LISTS) &&
		       first_page_of(row) == OSD_PAGES_USER_OBJECT;
	case TO_SETS:
	case TO_GETS_WITH_SETS:
		return attributes && !(row->flags & ROW_OWN_LISTS);
	case TO_ONE_TYPE:
		return has_one_type(row);
	case TO_DATA_OUT_WITH_SETS:
		return attributes && !(row->flags & ROW_OWN_LISTS) && call.data_length > 0 &&
		       call.continuation_length == 0;
	case TO_DATA_IN_WITH_GETS:
		return attributes && call.data_in_capacity > 0;
	}
	return false;
}

static uint64_t commits(struct unit *unit)
{
	struct engine_statistics statistics;

	engine_read_statistics(unit->engine, &statistics);
	return statistics.committed_sequence;
}

/* So that version 1 of partition P is an old one. */
static void make_old_version(struct unit *unit)
{
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_snapshot(txn, P, NULL, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static void test_errors(void **state)
{
	const struct subject *subject = *state;
	struct call whole = full_call(subject);
	struct unit unit;
	uint64_t before;

	open_unit(&unit, subject->version);
	make_old_version(&unit);
	before = commits(&unit);
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		const struct damage *damage = &damages[i];
		struct call call = whole;
		struct encoded_call encoded;

		if (!does_apply(damage, subject))
			continue;
		if (damage->alter)
			damage->alter(subject->row, &call);
		call_encode(&call, &encoded);
		damage->apply(&encoded);
		trying = damage->name;
		unit_execute(&unit, encoded.cdb, encoded.cdb_length, encoded.out,
			     encoded.out_length, encoded.in_capacity);
		free(encoded.out);
		unit_expect_sense(&unit, damage->key, damage->code, damage->field, __FILE__,
				  __LINE__);
		assert_int_equal(commits(&unit), before);
	}
	trying = NULL;
	call_run(&unit, &whole);
	expect_good(&unit);
	close_unit(&unit);
}

/* ---- a test for each row, version and kind ---- */

static const struct {
	const char *name;
	void (*test)(void **state);
} kinds[] = {
	{ "succeeds with lists of attributes", test_lists },
	{ "sets and gets in page format", test_page_format },
	{ "sets in CDB format", test_cdb_format },
	{ "refuses each common error and does nothing", test_errors },
};

#define KINDS     (sizeof(kinds) / sizeof(kinds[0]))
#define TESTS_MAX 512

static size_t add_tests(const struct subject *subject, struct CMUnitTest *tests)
{
	for (size_t i = 0; i < KINDS; i++) {
		char *name = malloc(128);

		snprintf(name, 128, "%s (OSD-%d) %s", osd_action_name(subject->row->action),
			 subject->version, kinds[i].name);
		tests[i] = (struct CMUnitTest){ .name = name,
						.test_func = kinds[i].test,
						.teardown_func = say_what,
						.initial_state = (void *)subject };
	}
	return KINDS;
}

static bool exists_in(uint16_t action, enum osd_version version)
{
	struct osd_cdb cdb = { .version = version,
			       .action = action,
			       .format = OSD_ATTRIBUTES_LIST };
	uint8_t bytes[OSD_CDB_BYTES_MAX];

	return osd_cdb_encode(&cdb, bytes, NULL) == 0;
}

int main(void)
{
	static struct CMUnitTest tests[TESTS_MAX];
	static struct subject subjects[TESTS_MAX / KINDS];
	size_t count = 0, subject_count = 0;

	for (size_t i = 0; i < command_row_count; i++) {
		for (int version = OSD_1; version <= OSD_2; version++) {
			struct subject *subject = &subjects[subject_count];

			if (!exists_in(command_rows[i].action, (enum osd_version)version))
				continue;
			subject_count++;
			*subject = (struct subject){ &command_rows[i], (enum osd_version)version };
			count += add_tests(subject, tests + count);
		}
	}
	return _cmocka_run_group_tests("command rows", tests, count, NULL, NULL);
}
