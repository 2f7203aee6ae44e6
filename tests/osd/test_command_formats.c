/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Errors in the page and CDB formats of attributes, and a device without room, tried on each
 * command of command_rows.c that can have them, in both versions; nothing happens.
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

#define PAGE   0xF0000010u
#define NUMBER 1u

static uint64_t commits(struct unit *unit)
{
	struct engine_statistics statistics;

	engine_read_statistics(unit->engine, &statistics);
	return statistics.committed_sequence;
}

static bool exists_in(uint16_t action, enum osd_version version)
{
	struct osd_cdb cdb = { .version = version,
			       .action = action,
			       .format = OSD_ATTRIBUTES_LIST };
	uint8_t bytes[OSD_CDB_BYTES_MAX];

	return osd_cdb_encode(&cdb, bytes, NULL) == 0;
}

static bool has_formats(const struct command_row *row)
{
	return !(row->flags & (ROW_NO_ATTRIBUTES | ROW_OWN_LISTS));
}

static int set_up(void **state)
{
	struct unit *unit = malloc(sizeof(*unit));

	unit_open(unit, 64 << 20);
	unit_create_partition(unit, P);
	unit_create(unit, P, O);
	command_rows_prepare(unit);
	*state = unit;
	return 0;
}

/* ---- page format ---- */

/* Gets the current command page, and sets a value of 5 bytes behind everything else of Data-Out. */
static struct encoded_call page_call(const struct command_row *row, enum osd_version version)
{
	struct call call = command_row_call(row, version);
	struct encoded_call encoded;
	size_t at;

	call.cdb.format = OSD_ATTRIBUTES_PAGE;
	call.cdb.get_page = OSD_PAGE_CURRENT_COMMAND;
	call.cdb.retrieved.length = 76;
	call.cdb.retrieved.offset = osd_offset_encode(version, call.data_in_capacity, NULL);
	call.cdb.set_page = PAGE;
	call.cdb.set_number = NUMBER;
	call_encode(&call, &encoded);
	at = osd_offset_encode(version, encoded.out_length, NULL);
	call.cdb.set_data = (struct osd_segment){ at, 5 };
	assert_int_equal(osd_cdb_encode(&call.cdb, encoded.cdb, NULL), 0);
	memcpy(encoded.out + at, "value", 5);
	encoded.out_length = at + 5;
	encoded.in_capacity = call.cdb.retrieved.offset + 76;
	return encoded;
}

static const struct {
	const char *name;
	uint16_t at;    /* what is changed in the CDB: 4 bytes */
	uint32_t value; /* to this */
	int field;      /* that is told; -1: 26/00 */
} page_errors[] = {
	{ "a page without structure", 52, OSD_ROOT_INFORMATION, 52 },
	{ "a reserved page", 52, OSD_PAGES_RESERVED, 52 },
	{ "an application page", 52, 0xF0000011, 52 },
	{ "more room than Data-In has", 56, 0x10000000, 56 },
	{ "a page without a place", 60, OSD_OFFSET_UNUSED, 60 },
	{ "a page that can't be set", 64, OSD_PAGE_CURRENT_COMMAND, -1 },
	{ "a reserved page to set", 64, OSD_PAGES_RESERVED, -1 },
	{ "all pages to set", 64, OSD_PAGE_ALL, -1 },
	{ "all numbers to set", 68, OSD_ATTRIBUTE_ALL, -1 },
	{ "a value beyond Data-Out", 72, 0x10000000, 72 },
	{ "a value without a place", 76, OSD_OFFSET_UNUSED, 76 },
};

static void test_errors_of_page_format(void **state)
{
	struct unit *unit = *state;
	uint64_t before = commits(unit);

	for (size_t i = 0; i < command_row_count; i++) {
		for (int version = OSD_1; version <= OSD_2; version++) {
			const struct command_row *row = &command_rows[i];

			if (!exists_in(row->action, (enum osd_version)version) || !has_formats(row))
				continue;
			for (size_t j = 0; j < sizeof(page_errors) / sizeof(page_errors[0]); j++) {
				struct encoded_call call =
					page_call(row, (enum osd_version)version);

				put_be32(call.cdb + page_errors[j].at, page_errors[j].value);
				unit_execute(unit, call.cdb, call.cdb_length, call.out,
					     call.out_length, call.in_capacity);
				free(call.out);
				if (unit->command.status == SCSI_STATUS_GOOD)
					fail_msg("%s (OSD-%d) with %s succeeds",
						 osd_action_name(row->action), version,
						 page_errors[j].name);
				if (page_errors[j].field >= 0)
					expect_field(unit, page_errors[j].field);
				else
					expect_sense(unit, SENSE_ILLEGAL_REQUEST,
						     SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
				assert_int_equal(commits(unit), before);
			}
		}
	}
}

/* ---- CDB format ---- */

static const struct {
	const char *name;
	uint32_t page, number;
	uint16_t length;
	int field;
} cdb_errors[] = {
	{ "a page that can't be set", OSD_PAGE_CURRENT_COMMAND, 2, 1, 52 },
	{ "a reserved page", OSD_PAGES_RESERVED, 1, 5, 52 },
	{ "all pages", OSD_PAGE_ALL, 1, 5, 52 },
	{ "all numbers", PAGE, OSD_ATTRIBUTE_ALL, 5, 56 },
	{ "a number of page 0", 0, 7, 5, 52 },
	{ "more than the CDB holds", PAGE, 1, 19, 60 },
};

static void test_errors_of_cdb_format(void **state)
{
	struct unit *unit = *state;
	uint64_t before = commits(unit);

	for (size_t i = 0; i < command_row_count; i++) {
		const struct command_row *row = &command_rows[i];

		if (!has_formats(row))
			continue;
		for (size_t j = 0; j < sizeof(cdb_errors) / sizeof(cdb_errors[0]); j++) {
			struct call call = command_row_call(row, OSD_2);
			struct encoded_call encoded;

			call_encode(&call, &encoded);
			encoded.cdb[11] = (uint8_t)((encoded.cdb[11] & ~0x30) | OSD_ATTRIBUTES_CDB);
			memset(encoded.cdb + 52, 0, 28);
			put_be32(encoded.cdb + 52, cdb_errors[j].page);
			put_be32(encoded.cdb + 56, cdb_errors[j].number);
			put_be16(encoded.cdb + 60, cdb_errors[j].length);
			unit_execute(unit, encoded.cdb, encoded.cdb_length, encoded.out,
				     encoded.out_length, encoded.in_capacity);
			free(encoded.out);
			if (unit->command.status == SCSI_STATUS_GOOD)
				fail_msg("%s with %s succeeds", osd_action_name(row->action),
					 cdb_errors[j].name);
			expect_field(unit, cdb_errors[j].field);
			assert_int_equal(commits(unit), before);
		}
	}
}

/* ---- a device without room ---- */

/*
 * Makes objects from `object` on, or where that is there already sets an attribute of it, until
 * that was refused so many times in a row. Returns how often it was not.
 */
static uint64_t find_room(struct unit *unit, uint64_t object, uint64_t refusals)
{
	static uint64_t serial;
	uint8_t value[200] = { 0 };
	uint64_t found = 0;

	for (uint64_t refused = 0; refused < refusals; serial++) {
		bool create = object >= O + 1000;
		struct call call = call_of(create ? OSD_CREATE : OSD_SET_ATTRIBUTES, P,
					   create ? object + serial : object);

		assert_true(serial < 1000000);
		put_le64(value, serial);
		call_set(&call, PAGE + 1, 1, value, create ? sizeof(value) : 1);
		call_run(unit, &call);
		if (unit->command.status == SCSI_STATUS_GOOD) {
			refused = 0;
			found++;
			continue;
		}
		expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
		refused++;
	}
	return found;
}

/*
 * Writes until nothing more fits, first much at once, then little. History is kept, so that nothing
 * gets free.
 */
static void fill_up(struct unit *unit)
{
	const struct engine_retention keep_all = { .kind = ENGINE_RETAIN_ALL };
	static uint8_t data[1 << 20];
	size_t part = sizeof(data);
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_retention_set(txn, 0, &keep_all, false), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	unit_create(unit, P, O + 99);
	for (uint64_t tries = 0; part > 0; tries++) {
		struct call call = call_of(OSD_APPEND, P, O + 99);

		assert_true(tries < 100000);
		call_data(&call, data, part);
		call_run(unit, &call);
		if (unit->command.status == SCSI_STATUS_GOOD)
			continue;
		expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
		part /= 2;
	}
	/*
	 * What is smaller than a page goes where its ID sends it: until nothing finds room any
	 * more, as small as it is.
	 */
	while (find_room(unit, O + 1000, 256) + find_room(unit, O, 1) +
		       find_room(unit, ROW_COLLECTION_ID, 1) + find_room(unit, 0, 1) >
	       0)
		;
}

/* Commands that give room free, or change nothing, work on a full device. */
static bool works_when_full(uint16_t action)
{
	switch (action) {
	case OSD_REMOVE:
	case OSD_REMOVE_PARTITION:
	case OSD_REMOVE_COLLECTION:
	case OSD_REMOVE_MEMBER_OBJECTS:
	case OSD_RESTORE_PARTITION_FROM_SNAPSHOT:
	case OSD_FORMAT_OSD:
		return true;
	default:
		return false;
	}
}

static void test_a_full_device_refuses_what_needs_room(void **state)
{
	struct unit *unit = *state;
	uint64_t before;

	fill_up(unit);
	before = commits(unit);
	for (size_t i = 0; i < command_row_count; i++) {
		const struct command_row *row = &command_rows[i];

		for (int version = OSD_1; version <= OSD_2; version++) {
			struct call call;

			if (!exists_in(row->action, (enum osd_version)version) ||
			    works_when_full(row->action))
				continue;
			call = command_row_call(row, (enum osd_version)version);
			if (!(row->flags & ROW_CHANGES)) {
				/* It changes something by a set only. */
				call_run(unit, &call);
				expect_good(unit);
				if (row->flags & ROW_OWN_LISTS)
					continue;
				call_set(&call, PAGE, NUMBER, "value", 5);
			}
			call_run(unit, &call);
			if (unit->command.status == SCSI_STATUS_GOOD)
				fail_msg("%s (OSD-%d) finds room", osd_action_name(row->action),
					 version);
			expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
			assert_int_equal(commits(unit), before);
		}
	}
}

static void test_a_full_device_does_what_gives_room_free(void **state)
{
	static const uint16_t actions[] = { OSD_REMOVE_MEMBER_OBJECTS,
					    OSD_REMOVE_COLLECTION,
					    OSD_RESTORE_PARTITION_FROM_SNAPSHOT,
					    OSD_REMOVE,
					    OSD_REMOVE_PARTITION,
					    OSD_FORMAT_OSD };
	struct unit *unit = *state;

	fill_up(unit);
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		for (size_t j = 0; j < command_row_count; j++) {
			struct call call;

			if (command_rows[j].action != actions[i])
				continue;
			call = command_row_call(&command_rows[j], OSD_2);
			call_run(unit, &call);
			if (unit->command.status != SCSI_STATUS_GOOD)
				fail_msg("%s fails", osd_action_name(actions[i]));
		}
	}
}

#define with_rows(test) cmocka_unit_test_setup_teardown(test, set_up, unit_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_rows(test_errors_of_page_format),
		with_rows(test_errors_of_cdb_format),
		with_rows(test_a_full_device_refuses_what_needs_room),
		with_rows(test_a_full_device_does_what_gives_room_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
