/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Every attribute of the standard's pages: how long it is, whether clients may set it, and that it is
 * refused when read-only, of the wrong length or of a value that can't be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/faults.h"
#include "tests/osd/unit.h"

#define ANY     UINT32_MAX /* any length */
#define COLLECT (O + 50)   /* a collection */

enum access { READ_ONLY, SETTABLE };

struct row {
	uint32_t page, number;
	uint32_t length; /* when it is defined */
	enum access access;
	bool defined;    /* on a fresh object */
	const char *bad; /* a value of the right length that can't be; NULL: there is none */
};

/* The tables of the standard; security and collections have their own tests. */
static const struct row rows[] = {
	{ OSD_ROOT_INFORMATION, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x3, 20, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x4, 8, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x5, 16, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x6, 32, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x7, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x8, ANY, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x9, ANY, SETTABLE, false, NULL },
	{ OSD_ROOT_INFORMATION, 0xA, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x80, 8, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x81, 8, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0xC0, 8, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x100, 6, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x110, 1, SETTABLE, true, "\0" },
	{ OSD_ROOT_INFORMATION, 0x110, 1, SETTABLE, true, "\3" },
	{ OSD_ROOT_INFORMATION, 0x111, 32, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x120, 8, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x121, 8, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x122, 8, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x123, 1, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x200, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x201, 4, READ_ONLY, false, NULL },
	{ OSD_ROOT_INFORMATION, 0x241, 4, READ_ONLY, false, NULL },
	{ OSD_ROOT_INFORMATION, 0x281, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x2FD, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x2FE, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x2FF, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x300, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x310, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x7000001, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x7000002, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x7000100, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x7000101, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x700FFEE, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_QUOTAS, 0x1, 8, SETTABLE, false, NULL },
	{ OSD_ROOT_QUOTAS, 0x10001, 8, SETTABLE, false, NULL },
	{ OSD_ROOT_QUOTAS, 0x10002, 8, SETTABLE, false, NULL },
	{ OSD_ROOT_QUOTAS, 0x10081, 4, SETTABLE, false, NULL },
	{ OSD_ROOT_QUOTAS, 0x20002, 8, SETTABLE, false, NULL },
	{ OSD_ROOT_TIMESTAMPS, 0x1, 6, READ_ONLY, false, NULL },
	{ OSD_ROOT_TIMESTAMPS, 0x2, 6, SETTABLE, true, NULL },
	{ OSD_ROOT_TIMESTAMPS, 0x3, 6, SETTABLE, true, NULL },
	{ OSD_ROOT_TIMESTAMPS, 0xFFFFFFFE, 1, SETTABLE, false, "\1" },
	{ OSD_ROOT_ERROR_RECOVERY, 0x1, 8, READ_ONLY, true, NULL },
	{ OSD_ROOT_ERROR_RECOVERY, 0x2, 8, READ_ONLY, false, NULL },
	{ OSD_ROOT_ERROR_RECOVERY, 0x3, 8, READ_ONLY, false, NULL },

	{ OSD_PARTITION_INFORMATION, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_PARTITION_INFORMATION, 0x1, 8, READ_ONLY, true, NULL },
	{ OSD_PARTITION_INFORMATION, 0x9, ANY, SETTABLE, false, NULL },
	{ OSD_PARTITION_INFORMATION, 0x81, 8, READ_ONLY, true, NULL },
	{ OSD_PARTITION_INFORMATION, 0x84, 8, READ_ONLY, true, NULL },
	{ OSD_PARTITION_INFORMATION, 0xC1, 8, READ_ONLY, true, NULL },
	{ OSD_PARTITION_INFORMATION, 0xD1, 8, READ_ONLY, true, NULL },
	{ OSD_PARTITION_INFORMATION, 0xD2, 8, READ_ONLY, false, NULL },
	{ OSD_PARTITION_QUOTAS, 0x1, 8, SETTABLE, false, NULL },
	{ OSD_PARTITION_QUOTAS, 0x10001, 8, SETTABLE, false, NULL },
	{ OSD_PARTITION_QUOTAS, 0x10002, 8, SETTABLE, false, NULL },
	{ OSD_PARTITION_QUOTAS, 0x10081, 4, SETTABLE, false, NULL },
	{ OSD_PARTITION_TIMESTAMPS, 0x1, 6, READ_ONLY, true, NULL },
	{ OSD_PARTITION_TIMESTAMPS, 0x2, 6, SETTABLE, true, NULL },
	{ OSD_PARTITION_TIMESTAMPS, 0x3, 6, SETTABLE, true, NULL },
	{ OSD_PARTITION_TIMESTAMPS, 0x4, 6, SETTABLE, true, NULL },
	{ OSD_PARTITION_TIMESTAMPS, 0x5, 6, SETTABLE, true, NULL },
	{ OSD_PARTITION_TIMESTAMPS, 0xFFFFFFFE, 1, SETTABLE, false, "\1" },

	{ OSD_COLLECTION_INFORMATION, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_INFORMATION, 0x1, 8, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_INFORMATION, 0x2, 8, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_INFORMATION, 0x9, ANY, SETTABLE, false, NULL },
	{ OSD_COLLECTION_INFORMATION, 0xA, 1, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_INFORMATION, 0x81, 8, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_TIMESTAMPS, 0x1, 6, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_TIMESTAMPS, 0x2, 6, SETTABLE, true, NULL },
	{ OSD_COLLECTION_TIMESTAMPS, 0x3, 6, SETTABLE, true, NULL },
	{ OSD_COLLECTION_TIMESTAMPS, 0x4, 6, SETTABLE, true, NULL },
	{ OSD_COLLECTION_TIMESTAMPS, 0x5, 6, SETTABLE, true, NULL },
	{ OSD_COLLECTION_TIMESTAMPS, 0xFFFFFFFE, 1, READ_ONLY, false, NULL },

	{ OSD_USER_OBJECT_INFORMATION, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_INFORMATION, 0x1, 8, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_INFORMATION, 0x2, 8, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_INFORMATION, 0x9, ANY, SETTABLE, false, NULL },
	{ OSD_USER_OBJECT_INFORMATION, 0x81, 8, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_INFORMATION, 0x82, 8, SETTABLE, true,
	  "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF" },
	{ OSD_USER_OBJECT_INFORMATION, 0xD1, 8, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_INFORMATION, 0xD2, 8, READ_ONLY, false, NULL },
	{ OSD_USER_OBJECT_QUOTAS, 0x1, 8, SETTABLE, false, NULL },
	{ OSD_USER_OBJECT_TIMESTAMPS, 0x1, 6, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_TIMESTAMPS, 0x2, 6, SETTABLE, true, NULL },
	{ OSD_USER_OBJECT_TIMESTAMPS, 0x3, 6, SETTABLE, true, NULL },
	{ OSD_USER_OBJECT_TIMESTAMPS, 0x4, 6, SETTABLE, true, NULL },
	{ OSD_USER_OBJECT_TIMESTAMPS, 0x5, 6, SETTABLE, true, NULL },
	{ OSD_USER_OBJECT_TIMESTAMPS, 0xFFFFFFFE, 1, READ_ONLY, false, NULL },
	{ OSD_USER_OBJECT_ATOMICS, 0x1, 8, SETTABLE, false, NULL },
	{ OSD_USER_OBJECT_ATOMICS, 0x2, 8, SETTABLE, false, NULL },

	{ OSD_PAGE_CURRENT_COMMAND, 0x1, 32, READ_ONLY, true, NULL },
	{ OSD_PAGE_CURRENT_COMMAND, 0x2, 1, READ_ONLY, true, NULL },
	{ OSD_PAGE_CURRENT_COMMAND, 0x3, 8, READ_ONLY, true, NULL },
	{ OSD_PAGE_CURRENT_COMMAND, 0x4, 8, READ_ONLY, true, NULL },
	{ OSD_PAGE_CURRENT_COMMAND, 0x5, 8, READ_ONLY, true, NULL },
	{ OSD_PAGE_CURRENT_COMMAND, 0x6, 8, READ_ONLY, true, NULL },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* The object that has a page. */
static void find(uint32_t page, uint64_t *partition, uint64_t *object)
{
	*partition = page < OSD_PAGES_ROOT || page >= OSD_PAGES_RESERVED ? P : 0;
	*object = page < OSD_PAGES_PARTITION || page >= OSD_PAGES_RESERVED ? O : 0;
	if (page >= OSD_PAGES_COLLECTION && page < OSD_PAGES_ROOT)
		*object = COLLECT;
}

static int set_up(void **state)
{
	struct call call;

	unit_set_up_with_object(state);
	call = call_of(OSD_CREATE_COLLECTION, P, COLLECT);
	call_run(*state, &call);
	expect_good((struct unit *)*state);
	return 0;
}

/* Status of a SET ATTRIBUTES; on an error it must name the attribute. */
static bool can_set(struct unit *unit, const struct row *row, const void *value, uint32_t length)
{
	struct call call;
	uint64_t partition, object;
	struct osd_sense sense;

	find(row->page, &partition, &object);
	call = call_of(OSD_SET_ATTRIBUTES, partition, object);
	call_set(&call, row->page, row->number, value, length);
	call_run(unit, &call);
	if (unit->command.status == SCSI_STATUS_GOOD)
		return true;
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	sense = unit_sense(unit);
	assert_int_equal(sense.attributes, 1);
	assert_int_equal(sense.attribute[0].page, row->page);
	assert_int_equal(sense.attribute[0].number, row->number);
	return false;
}

static uint32_t get(struct unit *unit, const struct row *row, uint8_t value[64])
{
	uint64_t partition, object;

	find(row->page, &partition, &object);
	return unit_get(unit, partition, object, row->page, row->number, value, 64);
}

static void test_each_attribute_is_there_with_its_length_or_undefined(void **state)
{
	struct unit *unit = *state;
	uint8_t value[64];

	for (size_t i = 0; i < ROWS; i++) {
		uint32_t length = get(unit, &rows[i], value);

		if (!rows[i].defined)
			assert_int_equal(length, 0);
		else if (rows[i].length == ANY)
			assert_int_not_equal(length, 0);
		else
			assert_int_equal(length, rows[i].length);
	}
}

static void test_read_only_attributes_can_t_be_set(void **state)
{
	struct unit *unit = *state;
	uint8_t value[64] = { 0 };

	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].access == READ_ONLY)
			assert_false(can_set(unit, &rows[i], value,
					     rows[i].length == ANY ? 5 : rows[i].length));
}

static void test_settable_attributes_take_values_of_their_length_only(void **state)
{
	struct unit *unit = *state;
	uint8_t sample[64] = { 0 }, value[64];

	for (size_t i = 0; i < ROWS; i++) {
		const struct row *row = &rows[i];
		uint32_t length = row->length == ANY ? 17 : row->length;

		if (row->access != SETTABLE)
			continue;
		memset(sample, 0, sizeof(sample));
		if (row->number == OSD_ROOT_DEFAULT_ISOLATION)
			sample[0] = OSD_ISOLATION_RANGE;
		else if (row->number != OSD_TIME_BYPASS)
			sample[length - 1] = 100;
		assert_true(can_set(unit, row, sample, length));
		assert_int_equal(get(unit, row, value), length);
		/* Later commands of this test go on with times. */
		if (row->page != OSD_ROOT_TIMESTAMPS)
			assert_memory_equal(value, sample, length);
		if (row->length == ANY)
			continue;
		assert_false(can_set(unit, row, sample, length - 1 ? length - 1 : 2));
		assert_false(can_set(unit, row, sample, length + 1));
	}
}

static void test_values_that_can_t_be_are_refused(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].bad)
			assert_false(can_set(unit, &rows[i], rows[i].bad, rows[i].length));
}

static void test_stored_attributes_become_undefined_by_length_0(void **state)
{
	static const struct row stored[] = {
		{ OSD_ROOT_INFORMATION, 0x9, ANY, SETTABLE, false, NULL },
		{ OSD_PARTITION_QUOTAS, 0x10001, 8, SETTABLE, false, NULL },
		{ OSD_USER_OBJECT_INFORMATION, 0x9, ANY, SETTABLE, false, NULL },
		{ OSD_ROOT_TIMESTAMPS, 0xFFFFFFFE, 1, SETTABLE, false, NULL },
	};
	static const uint8_t zeros[8];
	struct unit *unit = *state;
	uint8_t value[64];

	for (size_t i = 0; i < sizeof(stored) / sizeof(stored[0]); i++) {
		assert_true(can_set(unit, &stored[i], zeros,
				    stored[i].length == ANY ? 8 : stored[i].length));
		assert_true(can_set(unit, &stored[i], NULL, 0));
		assert_int_equal(get(unit, &stored[i], value), 0);
	}
}

static void test_application_and_vendor_pages_take_anything(void **state)
{
	static const struct {
		uint32_t relative;
		bool free;
	} pages[] = {
		{ 0x7F, false },      { 0x80, false },       { 0x8000, false },
		{ 0xF000, false },    { 0xFFFF, false },     { 0x10000, true },
		{ 0x1FFFFFFF, true }, { 0x20000000, false }, { 0x2000FFFF, false },
		{ 0x20010000, true }, { 0x2FFFFFFE, true },
	};
	static const uint32_t types[] = { OSD_PAGES_USER_OBJECT, OSD_PAGES_PARTITION,
					  OSD_PAGES_COLLECTION, OSD_PAGES_ROOT };
	struct unit *unit = *state;
	uint8_t value[64];

	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		for (size_t j = 0; j < 4; j++) {
			struct row row = { .page = types[j] + pages[i].relative, .number = 0x1234 };

			assert_int_equal(can_set(unit, &row, "content", 7), pages[i].free);
			assert_int_equal(get(unit, &row, value), pages[i].free ? 7 : 0);
		}
	}
}

/* ---- error recovery ---- */

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void test_the_error_recovery_page_tells_of_damage_that_was_met(void **state)
{
	struct unit *unit = *state;
	struct nand_faults faults = nand_faults_default();
	struct error_text error = { "" };
	static uint8_t data[8 << 20];
	struct call call = call_of(OSD_READ, P, O);

	log_configure(no_log, LOG_LEVEL_ERROR);
	memset(data, 'x', sizeof(data));
	for (int i = 0; i < 3; i++)
		unit_write(unit, O, i * sizeof(data), data, sizeof(data));
	assert_int_equal(
		unit_get_number(unit, 0, 0, OSD_ROOT_ERROR_RECOVERY, OSD_RECOVERY_COMMANDS), 0);
	faults.on = 1 << NAND_FAULT_UNREADABLE;
	faults.unreadable = 1;
	assert_int_equal(nand_set_faults(unit->nand, &faults, &error), 0);
	call.cdb.length = call.data_in_capacity = sizeof(data);
	call_run(unit, &call);
	expect_sense(unit, SENSE_MEDIUM_ERROR, SENSE_UNRECOVERED_READ_ERROR);
	assert_int_equal(
		unit_get_number(unit, 0, 0, OSD_ROOT_ERROR_RECOVERY, OSD_RECOVERY_COMMANDS), 1);
	assert_int_equal(
		unit_get_number(unit, 0, 0, OSD_ROOT_ERROR_RECOVERY, OSD_RECOVERY_PARTITION_ID), P);
	assert_int_equal(
		unit_get_number(unit, 0, 0, OSD_ROOT_ERROR_RECOVERY, OSD_RECOVERY_OBJECT_ID), O);
}

#define ROW_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, unit_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW_TEST(test_each_attribute_is_there_with_its_length_or_undefined),
		ROW_TEST(test_read_only_attributes_can_t_be_set),
		ROW_TEST(test_settable_attributes_take_values_of_their_length_only),
		ROW_TEST(test_values_that_can_t_be_are_refused),
		ROW_TEST(test_stored_attributes_become_undefined_by_length_0),
		ROW_TEST(test_application_and_vendor_pages_take_anything),
		with_object(test_the_error_recovery_page_tells_of_damage_that_was_met),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
