/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Error recovery pages: what root, partition and object tell of damage that was met, and when they
 * forget it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/options.h"
#include "nand/faults.h"
#include "osd/background.h"
#include "osd/damage.h"
#include "osd/execute.h"
#include "tests/osd/collection_calls.h"
#include "tests/osd/unit.h"

#define PAGES_EACH 2048u
#define PAGE       4096u
/*
 * How many objects there are, O, O + 1...: the row buffers hold the last ones, which can be read.
 */
#define OBJECTS 3u
#define MIB     (1u << 20)

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* Every page of flash is unreadable from now on, or is not. */
static void set_unreadable(struct unit *unit, bool unreadable)
{
	struct nand_faults faults = nand_faults_default();
	struct error_text error = { "" };

	log_configure(no_log, LOG_LEVEL_ERROR);
	faults.on = unreadable ? 1 << NAND_FAULT_UNREADABLE : 0;
	faults.unreadable = unreadable;
	assert_int_equal(nand_set_faults(unit->nand, &faults, &error), 0);
}

/* 8 MiB in each object: more than stays in memory. */
static void make_objects(struct unit *unit)
{
	uint8_t *data = malloc(MIB);

	/* One command checks all. */
	unit->device->portions.pages = unit->device->portions.records = 1 << 16;
	memset(data, 'x', MIB);
	for (uint64_t i = 0; i < OBJECTS; i++) {
		if (i > 0)
			unit_create(unit, P, O + i);
		for (uint64_t at = 0; at < PAGES_EACH * PAGE; at += MIB)
			unit_write(unit, O + i, at, data, MIB);
	}
	free(data);
}

static void read_damaged(struct unit *unit, uint64_t object)
{
	struct call call = call_of(OSD_READ, P, object);

	call.cdb.length = call.data_in_capacity = PAGES_EACH * PAGE;
	call_run(unit, &call);
	expect_sense(unit, SENSE_MEDIUM_ERROR, SENSE_UNRECOVERED_READ_ERROR);
}

/* An attribute of any length; 0 if it is not defined. */
static uint64_t number_of(struct unit *unit, uint64_t partition, uint64_t object, uint32_t page,
			  uint32_t number)
{
	uint8_t value[8];
	uint32_t length = unit_get(unit, partition, object, page, number, value, sizeof(value));
	uint64_t found = 0;

	for (uint32_t i = 0; i < length; i++)
		found = found << 8 | value[i];
	return found;
}

static uint64_t of_root(struct unit *unit, uint32_t number)
{
	return number_of(unit, 0, 0, OSD_ROOT_ERROR_RECOVERY, number);
}

static uint64_t of_partition(struct unit *unit, uint32_t number)
{
	return number_of(unit, P, 0, OSD_PARTITION_ERROR_RECOVERY, number);
}

static uint64_t of_object(struct unit *unit, uint64_t object, uint32_t number)
{
	return number_of(unit, P, object, OSD_USER_OBJECT_ERROR_RECOVERY, number);
}

static void expect_nothing(struct unit *unit)
{
	uint8_t value[8];

	for (uint32_t number = 1; number <= 2; number++) {
		assert_int_equal(of_root(unit, number), 0);
		assert_int_equal(of_partition(unit, number), 0);
	}
	assert_int_equal(of_root(unit, OSD_RECOVERY_NUMBER_DAMAGED), 0);
	assert_int_equal(of_partition(unit, OSD_RECOVERY_NUMBER_DAMAGED), 0);
	assert_int_equal(unit_get(unit, P, 0, OSD_PARTITION_ERROR_RECOVERY,
				  OSD_RECOVERY_LAST_CONTAINED_TIME, value, 8),
			 0);
}

static void test_a_read_that_met_damage_is_told_by_object_partition_and_root(void **state)
{
	struct unit *unit = *state;
	uint8_t value[8];

	make_objects(unit);
	expect_nothing(unit);
	set_unreadable(unit, true);
	unit->now_ms += 1000;
	read_damaged(unit, O);
	set_unreadable(unit, false);
	unit->now_ms += 1000;

	assert_int_equal(of_object(unit, O, OSD_RECOVERY_DAMAGE_SUMMARY), OSD_DAMAGE_CONTENT);
	assert_int_equal(of_object(unit, O, OSD_RECOVERY_LAST_DATA_TIME), UNIT_CLOCK + 1000);
	assert_int_equal(unit_get(unit, P, O, OSD_USER_OBJECT_ERROR_RECOVERY,
				  OSD_RECOVERY_LAST_ATTRIBUTES_TIME, value, 8),
			 0);
	assert_int_equal(of_object(unit, O + 1, OSD_RECOVERY_DAMAGE_SUMMARY), 0);

	assert_int_equal(of_partition(unit, OSD_RECOVERY_DAMAGE_SUMMARY),
			 OSD_DAMAGE_PARTITION_CHECK_RECOMMENDED);
	assert_int_equal(of_partition(unit, OSD_RECOVERY_CONTAINED_DAMAGE_SUMMARY),
			 OSD_DAMAGE_CONTENT);
	assert_int_equal(of_partition(unit, OSD_RECOVERY_LAST_CONTAINED_TIME), UNIT_CLOCK + 1000);
	assert_int_equal(of_partition(unit, OSD_RECOVERY_NUMBER_DAMAGED), 1);

	assert_int_equal(of_root(unit, OSD_RECOVERY_DAMAGE_SUMMARY),
			 OSD_DAMAGE_PARTITION_CHECK_RECOMMENDED);
	assert_int_equal(of_root(unit, OSD_RECOVERY_CONTAINED_DAMAGE_SUMMARY), OSD_DAMAGE_CONTENT);
	assert_int_equal(of_root(unit, OSD_RECOVERY_NUMBER_DAMAGED), 1);
	assert_int_equal(unit_get_number(unit, 0, 0, OSD_MUNINN_ROOT, OSD_MUNINN_DAMAGED_COMMANDS),
			 1);
	assert_int_equal(unit_get_number(unit, 0, 0, OSD_MUNINN_ROOT, OSD_MUNINN_DAMAGED_PARTITION),
			 P);
	assert_int_equal(unit_get_number(unit, 0, 0, OSD_MUNINN_ROOT, OSD_MUNINN_DAMAGED_OBJECT),
			 O);
}

static void run_check(struct unit *unit, uint64_t object)
{
	struct call call = call_of(OSD_OBJECT_STRUCTURE_CHECK, P, object);

	call.cdb.length = call.data_in_capacity = 1024;
	call_run(unit, &call);
	expect_good(unit);
}

static void test_a_structure_check_finds_damage_and_its_end(void **state)
{
	struct unit *unit = *state;

	make_objects(unit);
	set_unreadable(unit, true);
	read_damaged(unit, O);
	run_check(unit, 0);
	/* It recommends no further check of what it has checked. */
	assert_int_equal(of_partition(unit, OSD_RECOVERY_DAMAGE_SUMMARY), 0);
	assert_int_equal(of_partition(unit, OSD_RECOVERY_CONTAINED_DAMAGE_SUMMARY),
			 OSD_DAMAGE_CONTENT);
	assert_in_range(of_partition(unit, OSD_RECOVERY_NUMBER_DAMAGED), 2, OBJECTS);
	set_unreadable(unit, false);
	run_check(unit, O);
	assert_int_equal(of_object(unit, O, OSD_RECOVERY_DAMAGE_SUMMARY), 0);
	assert_int_equal(of_object(unit, O + 1, OSD_RECOVERY_DAMAGE_SUMMARY), OSD_DAMAGE_CONTENT);
	run_check(unit, 0);
	expect_nothing(unit);
}

static void test_a_map_finds_damage(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_READ_MAP, P, O);

	make_objects(unit);
	set_unreadable(unit, true);
	call.cdb.map_type = OSD_MAP_DAMAGED_DATA;
	call.cdb.length = call.data_in_capacity = 64;
	call_run(unit, &call);
	expect_good(unit);
	set_unreadable(unit, false);
	assert_int_equal(of_object(unit, O, OSD_RECOVERY_DAMAGE_SUMMARY), OSD_DAMAGE_CONTENT);
}

static void test_damage_goes_with_what_had_it(void **state)
{
	static const uint16_t actions[] = { OSD_REMOVE, OSD_REMOVE_PARTITION, OSD_FORMAT_OSD };
	struct unit *unit = *state;

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		bool format = actions[i] == OSD_FORMAT_OSD;
		struct call call =
			call_of(actions[i], format ? 0 : P, actions[i] == OSD_REMOVE ? O : 0);

		make_objects(unit);
		set_unreadable(unit, true);
		read_damaged(unit, O);
		set_unreadable(unit, false);
		call.cdb.command_options = actions[i] == OSD_REMOVE_PARTITION ? OSD_REMOVE_CONTENTS
									      : 0;
		call_run(unit, &call);
		expect_good(unit);
		assert_int_equal(of_root(unit, OSD_RECOVERY_NUMBER_DAMAGED), 0);
		if (actions[i] == OSD_REMOVE) {
			call = call_of(OSD_REMOVE_PARTITION, P, 0);
			call.cdb.command_options = OSD_REMOVE_CONTENTS;
			call_run(unit, &call);
			expect_good(unit);
		}
		unit_create_partition(unit, P);
		unit_create(unit, P, O);
		expect_nothing(unit);
	}
}

static void test_commands_that_need_damaged_data_fail_and_change_nothing(void **state)
{
	struct osd_copy_source source = { .partition = P, .object = O };
	uint8_t content[OSD_COPY_SOURCE_BYTES];
	struct unit *unit = *state;
	struct call call;

	make_objects(unit);
	set_unreadable(unit, true);
	/* Part of a page: the rest of it is read. */
	call = call_of(OSD_WRITE, P, O);
	call_data(&call, "part", 4);
	call_run(unit, &call);
	shows_sense(unit, WRITE, "part of a page that is damaged", MEDIUM_ERROR,
		    UNRECOVERED_READ_ERROR);
	call = call_of(OSD_CLEAR, P, O);
	call.cdb.address = 10;
	call.cdb.length = 100;
	call_run(unit, &call);
	shows_sense(unit, CLEAR, "part of a page that is damaged", MEDIUM_ERROR,
		    UNRECOVERED_READ_ERROR);
	call = call_of(OSD_PUNCH, P, O);
	call.cdb.address = 10;
	call.cdb.length = 100;
	call_run(unit, &call);
	shows_sense(unit, PUNCH, "damaged data would have to move", MEDIUM_ERROR,
		    UNRECOVERED_READ_ERROR);
	osd_copy_source_encode(&source, content);
	call = call_of(OSD_COPY_USER_OBJECTS, P, O + 100);
	call_descriptor(&call, OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
	call_run(unit, &call);
	shows_sense(unit, COPY_USER_OBJECTS, "the source is damaged", MEDIUM_ERROR,
		    UNRECOVERED_READ_ERROR);
	set_unreadable(unit, false);
	call = call_of(OSD_READ, P, O);
	call.cdb.length = call.data_in_capacity = 200;
	call_run(unit, &call);
	expect_good(unit);
	for (size_t i = 0; i < 200; i++)
		assert_int_equal(unit->data_in[i], 'x');
}

/* ---- commands that IMMED_TR answered before they met damage ---- */

enum { MANY = 100, BATCH = 64 }; /* members, and how many the first transaction does */
#define W (O + 0x2000)
#define U (O + 0x3000)

/* Collection U tracks objects W, W + 1... */
static void make_tracked_objects(struct unit *unit)
{
	struct engine_address collection = { .partition = P, .object = U };
	struct call create = call_of(OSD_CREATE_USER_TRACKING_COLLECTION, P, U);
	struct engine_txn *txn;

	call_run(unit, &create);
	expect_good(unit);
	for (uint64_t i = 0; i < MANY; i++)
		unit_create(unit, P, W + i);
	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	for (uint64_t i = 0; i < MANY; i++)
		assert_int_equal(engine_member_insert(txn, collection, W + i), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static uint64_t clock_of_unit(void *context)
{
	const struct unit *unit = context;

	return unit->now_ms;
}

/* Nothing is in a cache, and commands in the background go on when they are told to. */
static void reopen_by_hand(struct unit *unit)
{
	static const uint8_t uuid[16] = { 1 };
	struct engine_options options = { .clock_ms = clock_of_unit, .clock_context = unit };
	struct error_text error = { "" };

	osd_device_destroy(unit->device);
	assert_int_equal(engine_close(unit->engine), 0);
	assert_int_equal(engine_open(unit->nand, &options, &unit->engine, &error), 0);
	assert_int_equal(osd_device_create(unit->engine, uuid, NULL, &unit->device), 0);
	osd_background_by_hand(&unit->device->background);
}

static void test_damage_that_a_command_met_in_the_background_is_told_too(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_SET_MEMBER_ATTRIBUTES, P, U);
	struct tracked tracked;

	make_tracked_objects(unit);
	make_objects(unit); /* so that the others are on flash */
	reopen_by_hand(unit);
	call.cdb.immediate_tracking = true;
	call_set(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME, "set", 3);
	call_run(unit, &call);
	expect_good(unit);
	expect_nothing(unit);
	assert_int_equal(unit_tracked(unit, U).active, OSD_SET_MEMBER_ATTRIBUTES);

	set_unreadable(unit, true);
	assert_true(osd_background_step(&unit->device->background));
	set_unreadable(unit, false);
	assert_false(osd_background_step(&unit->device->background));
	tracked = unit_tracked(unit, U);
	assert_int_equal(tracked.ended, SCSI_STATUS_CHECK_CONDITION);
	assert_int_equal(tracked.processed, BATCH);
	assert_int_equal(of_partition(unit, OSD_RECOVERY_NUMBER_DAMAGED), 1);
	assert_int_equal(of_root(unit, OSD_RECOVERY_NUMBER_DAMAGED), 1);
	assert_int_equal(unit_get_number(unit, 0, 0, OSD_MUNINN_ROOT, OSD_MUNINN_DAMAGED_COMMANDS),
			 1);
	assert_int_equal(unit_get_number(unit, 0, 0, OSD_MUNINN_ROOT, OSD_MUNINN_DAMAGED_PARTITION),
			 P);
	/* The member is not told of: the command addressed the collection. */
	assert_int_equal(unit_get_number(unit, 0, 0, OSD_MUNINN_ROOT, OSD_MUNINN_DAMAGED_OBJECT),
			 U);
}

/* ---- the log itself ---- */

static void test_versions_of_a_partition_count_as_one(void **state)
{
	struct osd_damage_log *log = malloc(sizeof(*log));
	struct osd_damage_summary summary;

	(void)state;
	assert_non_null(log);
	osd_damage_init(log);
	osd_damage_note(log, P, O, OSD_DAMAGE_CONTENT, 10, true);
	osd_damage_note(log, UINT64_C(3) << 48 | P, O, OSD_DAMAGE_ATTRIBUTES, 20, true);
	osd_damage_note(log, P + 1, 0, OSD_DAMAGE_CONTENT, 30, true);
	summary = osd_damage_read(log, 0, 0);
	assert_int_equal(summary.contained, 2);
	assert_int_equal(summary.contained_kinds, OSD_DAMAGE_CONTENT | OSD_DAMAGE_ATTRIBUTES);
	assert_int_equal(summary.contained_ms, 30);
	assert_false(summary.unchecked);
	summary = osd_damage_read(log, P, 0);
	assert_int_equal(summary.contained, 1);
	assert_int_equal(summary.contained_kinds, OSD_DAMAGE_CONTENT);
	/* A partition's own damage is not of something in it. */
	summary = osd_damage_read(log, P + 1, 0);
	assert_int_equal(summary.kinds, OSD_DAMAGE_CONTENT);
	assert_int_equal(summary.content_ms, 30);
	assert_int_equal(summary.contained, 0);
	osd_damage_clear_all(log, P);
	assert_int_equal(osd_damage_read(log, 0, 0).contained, 2);
	osd_damage_clear_all(log, 0);
	assert_int_equal(osd_damage_read(log, 0, 0).contained, 0);
	osd_damage_destroy(log);
	free(log);
}

static void test_of_too_many_damaged_objects_the_longest_known_is_forgotten(void **state)
{
	struct osd_damage_log *log = malloc(sizeof(*log));

	(void)state;
	assert_non_null(log);
	osd_damage_init(log);
	for (uint64_t i = 0; i <= OSD_DAMAGED_OBJECTS_MAX; i++)
		osd_damage_note(log, P, O + i, OSD_DAMAGE_CONTENT, 100 + i, true);
	assert_int_equal(osd_damage_read(log, P, 0).contained, OSD_DAMAGED_OBJECTS_MAX);
	assert_int_equal(osd_damage_read(log, P, O).kinds, 0);
	assert_int_equal(osd_damage_read(log, P, O + 1).kinds, OSD_DAMAGE_CONTENT);
	/* What is known again is not counted twice. */
	osd_damage_note(log, P, O + 1, OSD_DAMAGE_ATTRIBUTES, 1000, true);
	assert_int_equal(osd_damage_read(log, P, 0).contained, OSD_DAMAGED_OBJECTS_MAX);
	assert_int_equal(osd_damage_read(log, P, O + 1).content_ms, 101);
	assert_int_equal(osd_damage_read(log, P, O + 1).attributes_ms, 1000);
	osd_damage_destroy(log);
	free(log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_a_read_that_met_damage_is_told_by_object_partition_and_root),
		with_object(test_a_structure_check_finds_damage_and_its_end),
		with_object(test_a_map_finds_damage),
		with_object(test_damage_goes_with_what_had_it),
		with_object(test_commands_that_need_damaged_data_fail_and_change_nothing),
		with_object(test_damage_that_a_command_met_in_the_background_is_told_too),
		cmocka_unit_test(test_versions_of_a_partition_count_as_one),
		cmocka_unit_test(test_of_too_many_damaged_objects_the_longest_known_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
