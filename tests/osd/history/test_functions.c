/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* EXECUTE: what all functions share, features, statistics, merge, checksum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/evp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "engine/muninn/directory.h"
#include "engine/objects/objects.h"
#include "nand/faults.h"
#include "osd/functions.h"
#include "tests/engine/lost_page.h"
#include "tests/osd/function_call.h"

/* ---- what all functions share ---- */

static void test_features_lists_every_function_and_a_host_subscribes_to_what_it_uses(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	struct osd_item entry;
	size_t functions = 0;
	bool has_search = false;

	function_of(&call, OSD_FUNCTION_FEATURES, 0, 0);
	function_run(unit, &call);
	expect_good(unit);
	assert_int_equal(function_number(unit, OSD_ITEM_FEATURES), OSD_FEATURES_ALL);
	for (; function_entry(unit, functions, &entry); functions++)
		has_search |= entry_number(&entry, OSD_ITEM_FUNCTION) == OSD_FUNCTION_SEARCH;
	assert_int_equal(functions, 17);
	assert_true(has_search);

	/* Without subscription, and with one to something else. */
	for (int i = 0; i < 2; i++) {
		function_of(&call, OSD_FUNCTION_STATISTICS, 0, 0);
		function_run(unit, &call);
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_COMMAND_SEQUENCE_ERROR);
		function_of(&call, OSD_FUNCTION_SUBSCRIBE, 0, 0);
		osd_item_add_number(&call.writer, OSD_ITEM_FEATURES, OSD_FEATURE_SEARCH);
		function_run(unit, &call);
		expect_good(unit);
		assert_int_equal(function_number(unit, OSD_ITEM_FEATURES), OSD_FEATURE_SEARCH);
	}
	function_subscribe(unit);
	function_of(&call, OSD_FUNCTION_STATISTICS, 0, 0);
	function_run(unit, &call);
	expect_good(unit);
}

static void test_a_subscription_is_of_one_host(void **state)
{
	struct unit *unit = *state;
	struct function_call call;

	function_subscribe(unit);
	unit->nexus = 77;
	function_of(&call, OSD_FUNCTION_STATISTICS, 0, 0);
	function_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_COMMAND_SEQUENCE_ERROR);
	unit->nexus = 0;
	function_run(unit, &call);
	expect_good(unit);
}

static void test_unknown_features_and_functions_and_damaged_parameters_are_refused(void **state)
{
	struct unit *unit = *state;
	struct function_call call;

	function_of(&call, OSD_FUNCTION_SUBSCRIBE, 0, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_FEATURES, UINT64_C(1) << 40);
	function_run(unit, &call);
	expect_parameter(unit, 0);

	function_of(&call, 0x0FFF, 0, 0);
	function_run(unit, &call);
	expect_field(unit, 40);

	function_of(&call, OSD_FUNCTION_FEATURES, 0, 0);
	osd_item_add(&call.writer, OSD_ITEM_NAME, "x", 1);
	call.parameters[2] = 1; /* reserved */
	function_run(unit, &call);
	expect_parameter(unit, 0);

	/* More parameters than Data-Out has, reserved bytes of the address. */
	function_of(&call, OSD_FUNCTION_FEATURES, 0, 0);
	call_data(&call.call, call.parameters, 0);
	call.call.cdb.length = 1024;
	call.call.cdb.address = osd_execute_address(OSD_FUNCTION_FEATURES, 8);
	call_run(unit, &call.call);
	expect_field(unit, 44);
	call.call.cdb.address = osd_execute_address(OSD_FUNCTION_FEATURES, 0) | UINT64_C(1) << 32;
	call_run(unit, &call.call);
	expect_field(unit, 42);
}

/* The target drops versions of such names by itself, so nobody else can have made them. */
static void test_a_name_of_versions_by_time_is_refused(void **state)
{
	struct unit *unit = *state;
	struct function_call call;

	function_subscribe(unit);
	function_of(&call, OSD_FUNCTION_SNAPSHOT, P, 0);
	osd_item_add_text(&call.writer, OSD_ITEM_NAME, "daily-2026-11-27T00:00Z");
	function_run(unit, &call);
	expect_parameter(unit, 0);
	function_of(&call, OSD_FUNCTION_SNAPSHOT, P, 0);
	osd_item_add_text(&call.writer, OSD_ITEM_NAME, "daily-2026-11-27");
	function_run(unit, &call);
	expect_good(unit);
}

static void group_of(struct function_call *call, uint64_t address, uint64_t first, size_t count)
{
	function_of(call, OSD_FUNCTION_SNAPSHOT, address, 0);
	for (size_t i = 0; i < count; i++)
		osd_item_add_number(&call->writer, OSD_ITEM_PARTITION, first + i);
}

static void test_a_group_of_partitions_is_kept_or_refused_as_a_whole(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	struct call made = call_of(OSD_CREATE_PARTITION, P + 1, 0);

	function_subscribe(unit);
	call_run(unit, &made);
	expect_good(unit);
	group_of(&call, P, P, 1); /* in a SNAPSHOT of a partition */
	function_run(unit, &call);
	expect_parameter(unit, 0);
	group_of(&call, 0, P, 3); /* the third is not there */
	function_run(unit, &call);
	expect_parameter(unit, 0);
	group_of(&call, 0, P, OSD_GROUP_MAX + 1);
	function_run(unit, &call);
	expect_parameter(unit, 0);
	group_of(&call, 0, P, 1);
	osd_item_add_number(&call.writer, OSD_ITEM_PARTITION, P);
	function_run(unit, &call);
	expect_parameter(unit, 0);
	group_of(&call, 0, P, 2);
	osd_item_add_text(&call.writer, OSD_ITEM_NAME, "group");
	function_run(unit, &call);
	expect_good(unit);
	/* Neither of them by those that were refused. */
	for (uint64_t id = P; id <= P + 1; id++) {
		struct engine_version version;
		struct engine_txn *txn;

		assert_int_equal(engine_begin(unit->engine, ENGINE_READ, &txn), 0);
		assert_int_equal(engine_version_next(txn, id, 0, &version), 0);
		assert_string_equal(version.name, "group");
		assert_int_equal(engine_version_next(txn, id, version.position + 1, &version),
				 -ENOENT);
		engine_abort(txn);
	}
}

/*
 * Runs it with so much room. The result has whole items, and says how many bytes all of them have.
 */
static size_t run_with_room(struct unit *unit, enum osd_function function, size_t room,
			    size_t *stated)
{
	struct osd_item_reader reader;
	struct function_call call;
	struct osd_item item;
	size_t length;
	int result;

	function_of(&call, function, function == OSD_FUNCTION_RETENTION ? P : 0, 0);
	call.call.data_in_capacity = room;
	function_run(unit, &call);
	expect_good(unit);
	assert_true(unit->command.data_in_length <= room);
	length = unit->command.data_in_length - OSD_RESULT_HEAD_BYTES;
	*stated = get_be32(unit->data_in);
	osd_items_read(&reader, unit->data_in + OSD_RESULT_HEAD_BYTES, length);
	while ((result = osd_item_next(&reader, &item)) == 1)
		;
	assert_int_equal(result, 0);
	return length;
}

static void test_a_result_that_has_no_room_says_how_much_it_wants(void **state)
{
	static const enum osd_function functions[] = { OSD_FUNCTION_FEATURES,
						       OSD_FUNCTION_STATISTICS,
						       OSD_FUNCTION_RETENTION };
	struct unit *unit = *state;

	function_subscribe(unit);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		size_t whole, stated, before = 0;

		whole = run_with_room(unit, functions[i], 16384, &stated);
		assert_int_equal(stated, whole);
		assert_true(whole >= 8 * 16);
		for (size_t room = OSD_RESULT_HEAD_BYTES; room <= whole + 16; room += 8) {
			size_t length = run_with_room(unit, functions[i], room, &stated);

			assert_int_equal(stated, whole);
			assert_true(length >= before && length <= whole);
			/* All that fits is there. */
			assert_int_equal(length == whole, room >= OSD_RESULT_HEAD_BYTES + whole);
			before = length;
		}
	}
}

static uint64_t statistic(const struct unit *unit, const char *name)
{
	struct osd_item entry, item;

	for (size_t n = 0; function_entry(unit, n, &entry); n++)
		if (osd_item_find(entry.value, entry.length, OSD_ITEM_NAME, &item) == 0 &&
		    item.length == strlen(name) && memcmp(item.value, name, item.length) == 0)
			return entry_number(&entry, OSD_ITEM_VALUE);
	fail_msg("no statistic %s", name);
	return 0;
}

static void test_statistics_are_those_of_the_engine(void **state)
{
	struct unit *unit = *state;
	struct engine_statistics wanted;
	struct function_call call;

	function_subscribe(unit);
	engine_read_statistics(unit->engine, &wanted);
	function_of(&call, OSD_FUNCTION_STATISTICS, 0, 0);
	function_run(unit, &call);
	expect_good(unit);
	assert_int_equal(statistic(unit, "segments"), wanted.segments);
	assert_int_equal(statistic(unit, "capacity_bytes"), wanted.capacity_bytes);
	assert_int_equal(statistic(unit, "records_put"), wanted.records_put);
	assert_true(wanted.records_put > 0);
}

/* ---- MERGE ---- */

static void merge(struct unit *unit, enum osd_merge_action action)
{
	struct function_call call;

	function_of(&call, OSD_FUNCTION_MERGE, 0, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_ACTION, action);
	function_run(unit, &call);
}

static void test_a_merge_runs_by_itself_tells_how_far_it_is_and_is_cancelled(void **state)
{
	struct unit *unit = *state;

	function_subscribe(unit);
	merge(unit, OSD_MERGE_PROGRESS);
	expect_good(unit);
	assert_int_equal(function_number(unit, OSD_ITEM_STATE), 0);
	assert_int_equal(function_number(unit, OSD_ITEM_COUNT), 0);
	merge(unit, OSD_MERGE_START);
	expect_good(unit);
	do {
		merge(unit, OSD_MERGE_PROGRESS);
		expect_good(unit);
		sched_yield();
	} while (function_number(unit, OSD_ITEM_STATE) == 1);
	assert_in_range(function_number(unit, OSD_ITEM_COUNT), 1, 19999);
	merge(unit, OSD_MERGE_START);
	expect_good(unit);
	merge(unit, OSD_MERGE_CANCEL);
	expect_good(unit);
	do
		merge(unit, OSD_MERGE_PROGRESS);
	while (function_number(unit, OSD_ITEM_STATE) == 1);
	merge(unit, 9);
	expect_parameter(unit, 0);
}

static void test_a_repair_reads_all_and_moves_what_is_beside_lost_pages(void **state)
{
	static const uint8_t data[65536] = { 1 };
	struct unit *unit = *state;
	struct nand_faults faults = nand_faults_default();
	struct error_text error = { "" };
	uint64_t repaired;

	function_subscribe(unit);
	osd_merge_job_by_hand(unit->device->merge_job);
	for (uint64_t at = 0; at < 200; at++)
		unit_write(unit, O, at * sizeof(data), data, sizeof(data));
	/* So few that no group loses two, whatever the seed; many places are never read. */
	faults.on = 1 << NAND_FAULT_UNREADABLE;
	faults.unreadable = 0.0005;
	faults.seed = 4;
	assert_int_equal(nand_set_faults(unit->nand, &faults, &error), 0);
	for (int round = 0; round < 2; round++) {
		merge(unit, OSD_MERGE_REPAIR);
		expect_good(unit);
		for (int step = 0; step < 20000 && osd_merge_job_step(unit->device->merge_job);
		     step++)
			;
		merge(unit, OSD_MERGE_PROGRESS);
		expect_good(unit);
		assert_int_equal(function_number(unit, OSD_ITEM_STATE), OSD_MERGE_IDLE);
		assert_int_equal(function_number(unit, OSD_ITEM_PROGRESS), 1000);
		assert_int_equal(function_number(unit, OSD_ITEM_LOST), 0);
		assert_in_range(function_number(unit, OSD_ITEM_READ), 200 * 16 / 2, 200 * 16 * 3);
		repaired = function_number(unit, OSD_ITEM_REPAIRED);
		if (round == 0)
			assert_true(repaired > 0 && function_number(unit, OSD_ITEM_FREED) > 0);
	}
	/* A merge of the other kind says nothing of pages. */
	merge(unit, OSD_MERGE_START);
	expect_good(unit);
	assert_false(function_has(unit, OSD_ITEM_READ, &(struct osd_item){ 0 }));
}

static struct muninn_store *store_of(struct unit *unit)
{
	return (struct muninn_store *)(void *)unit->engine->store;
}

/* Loses a page of an image of the index, and one of a segment behind it. */
static void lose_two_pages(struct unit *unit)
{
	static const uint8_t data[65536] = { 1 };
	struct muninn_store *store = store_of(unit);
	uint32_t n = 0, segment = store->geometry.segments;
	uint64_t page;

	for (uint64_t at = 0; directory_used(store) == 0; at++)
		unit_write(unit, O, at % 100 * sizeof(data), data, sizeof(data));
	for (uint64_t at = 0; at < 100; at++)
		unit_write(unit, O, at * sizeof(data), data, sizeof(data));
	page = directory_image_page(&store->geometry, directory_next(store, &n), 0);
	lose_page(unit->nand, page);
	do
		segment--;
	while (store->segment_rows[segment] == NO_ROW);
	assert_true(segment_page(&store->geometry, segment) > page);
	lose_page(unit->nand, segment_page(&store->geometry, segment));
}

/* With pages so small that groups of the index are soon complete. */
static int set_up_with_small_pages(void **state)
{
	struct nand_geometry geometry = nand_geometry_default(64 << 20);
	struct unit *unit = malloc(sizeof(*unit));

	geometry.page_bytes /= 4;
	geometry.blocks *= 4;
	unit_open_on(unit, &geometry);
	*state = unit;
	return 0;
}

/* As on a full device: an image that is written anew has no segment to go to. */
static void test_a_repair_reads_all_although_something_finds_no_space(void **state)
{
	struct unit *unit = *state;
	struct muninn_store *store = store_of(unit);
	uint32_t kept = store->geometry.room_kept[RECORD_ROOM_UPKEEP];
	struct engine_statistics statistics;

	unit_create_partition(unit, P);
	unit_create(unit, P, O);
	function_subscribe(unit);
	osd_merge_job_by_hand(unit->device->merge_job);
	lose_two_pages(unit);
	engine_read_statistics(unit->engine, &statistics);
	for (int round = 0; round < 2; round++) {
		store->geometry.room_kept[RECORD_ROOM_UPKEEP] = round ? kept : UINT32_MAX / 2;
		merge(unit, OSD_MERGE_REPAIR);
		expect_good(unit);
		for (int step = 0; step < 20000 && osd_merge_job_step(unit->device->merge_job);
		     step++)
			;
		merge(unit, OSD_MERGE_PROGRESS);
		expect_good(unit);
		assert_int_equal(function_number(unit, OSD_ITEM_STATE),
				 round ? OSD_MERGE_IDLE : OSD_MERGE_FAILED);
		assert_true(function_number(unit, OSD_ITEM_READ) >=
			    (statistics.segments_sealed - 1) * store->geometry.segment_pages);
		assert_int_equal(function_number(unit, OSD_ITEM_REPAIRED), round ? 0 : 2);
		assert_int_equal(function_number(unit, OSD_ITEM_FREED), round ? 0 : 1);
	}
	assert_int_equal(engine_damaged(unit->engine), 0);
}

/* Leaves segments with a part that is still needed, and that can be moved nowhere. */
static void make_merging_fail(struct unit *unit)
{
	static const uint8_t data[65536] = { 1 };
	struct nand_faults faults = nand_faults_default();
	struct error_text error = { "" };
	struct function_call call;

	function_of(&call, OSD_FUNCTION_SET_RETENTION, 0, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_KIND, OSD_RETAIN_NONE);
	function_run(unit, &call);
	expect_good(unit);
	for (uint64_t at = 0; at < 200; at++)
		unit_write(unit, O, at * sizeof(data), data, sizeof(data));
	for (uint64_t at = 0; at < 200; at++)
		unit_write(unit, O, at * sizeof(data), data, sizeof(data) / 4 * 3);
	faults.on = 1 << NAND_FAULT_PROGRAM;
	faults.program_failure = 1;
	assert_int_equal(nand_set_faults(unit->nand, &faults, &error), 0);
}

static void test_a_merge_that_fails_says_so_until_another_begins(void **state)
{
	struct unit *unit = *state;
	uint64_t sense;

	function_subscribe(unit);
	osd_merge_job_by_hand(unit->device->merge_job);
	make_merging_fail(unit);
	merge(unit, OSD_MERGE_START);
	expect_good(unit);
	assert_int_equal(function_number(unit, OSD_ITEM_STATE), OSD_MERGE_RUNNING);
	for (int step = 0; step < 20000 && osd_merge_job_step(unit->device->merge_job); step++)
		;
	merge(unit, OSD_MERGE_PROGRESS);
	expect_good(unit);
	assert_int_equal(function_number(unit, OSD_ITEM_STATE), OSD_MERGE_FAILED);
	assert_in_range(function_number(unit, OSD_ITEM_PROGRESS), 0, 999);
	sense = function_number(unit, OSD_ITEM_SENSE);
	assert_in_range(sense >> 16, SENSE_MEDIUM_ERROR, SENSE_DATA_PROTECT);
	assert_int_not_equal((uint16_t)sense, 0);
	assert_int_equal(nand_set_faults(unit->nand, NULL, &(struct error_text){ "" }), 0);
	merge(unit, OSD_MERGE_START);
	expect_good(unit);
	assert_int_equal(function_number(unit, OSD_ITEM_STATE), OSD_MERGE_RUNNING);
	assert_false(function_has(unit, OSD_ITEM_SENSE, &(struct osd_item){ 0 }));
}

/* ---- CHECKSUM ---- */

static void expect_digest(struct unit *unit, const uint8_t *data, size_t length)
{
	uint8_t wanted[32];
	struct osd_item item;

	assert_int_equal(EVP_Digest(data, length, wanted, NULL, EVP_sha256(), NULL), 1);
	assert_true(function_has(unit, OSD_ITEM_DIGEST, &item));
	assert_int_equal(item.length, 32);
	assert_memory_equal(item.value, wanted, 32);
	assert_int_equal(function_number(unit, OSD_ITEM_LENGTH), length);
}

static void test_checksum_is_the_sha_256_of_a_range(void **state)
{
	struct unit *unit = *state;
	struct function_call call;
	uint8_t *data = malloc(300000);

	function_subscribe(unit);
	for (size_t i = 0; i < 300000; i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	unit_write(unit, O, 0, data, 300000);
	function_of(&call, OSD_FUNCTION_CHECKSUM, P, O);
	function_run(unit, &call);
	expect_good(unit);
	expect_digest(unit, data, 300000);
	assert_int_equal(function_number(unit, OSD_ITEM_PROGRESS), 1000);

	osd_item_add_number(&call.writer, OSD_ITEM_OFFSET, 12345);
	osd_item_add_number(&call.writer, OSD_ITEM_LENGTH, 100001);
	function_run(unit, &call);
	expect_good(unit);
	expect_digest(unit, data + 12345, 100001);

	function_of(&call, OSD_FUNCTION_CHECKSUM, P, O);
	osd_item_add_number(&call.writer, OSD_ITEM_OFFSET, 300000);
	function_run(unit, &call);
	expect_good(unit);
	expect_digest(unit, data, 0);

	function_of(&call, OSD_FUNCTION_CHECKSUM, P, O);
	osd_item_add_number(&call.writer, OSD_ITEM_OFFSET, 1);
	osd_item_add_number(&call.writer, OSD_ITEM_LENGTH, 300000);
	function_run(unit, &call);
	expect_parameter(unit, 16);
	free(data);
}

/* A hole of 150 MiB costs no room. */
static void test_checksum_of_a_long_object_takes_several_commands(void **state)
{
	struct unit *unit = *state;
	const size_t length = (150 << 20) + 4;
	struct function_call call;
	uint8_t *data = calloc(1, length);
	unsigned commands = 1;

	function_subscribe(unit);
	unit_write(unit, O, length - 4, "last", 4);
	memcpy(data + length - 4, "last", 4);
	function_of(&call, OSD_FUNCTION_CHECKSUM, P, O);
	function_run(unit, &call);
	for (; function_continue(unit, &call); commands++) {
		expect_good(unit);
		function_run(unit, &call);
	}
	expect_good(unit);
	assert_int_equal(commands, 19);
	expect_digest(unit, data, length);
	free(data);

	/* A continuation that no command gave. */
	function_of(&call, OSD_FUNCTION_CHECKSUM, P, O);
	osd_item_add(&call.writer, OSD_ITEM_CONTINUATION, "0123456", 7);
	function_run(unit, &call);
	expect_parameter(unit, 0);
}

static void run_on(struct unit *unit, enum osd_function function, uint64_t partition,
		   uint64_t object)
{
	struct function_call call;

	function_of(&call, function, partition, object);
	if (function == OSD_FUNCTION_ROLLBACK)
		osd_item_add_number(&call.writer, OSD_ITEM_TIME, unit->now_ms);
	if (function == OSD_FUNCTION_SEARCH)
		osd_item_add(&call.writer, OSD_ITEM_PATTERN, "x", 1);
	function_run(unit, &call);
}

static void test_functions_point_at_an_object_that_they_can_t_be_about(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_CREATE_COLLECTION, P, O + 1);

	call_run(unit, &call);
	function_subscribe(unit);
	unit->now_ms += 5000;
	run_on(unit, OSD_FUNCTION_UNDO, P, 0);
	expect_field(unit, 24);
	run_on(unit, OSD_FUNCTION_LOG, P, 0);
	expect_field(unit, 24);
	/* One that there never was. */
	run_on(unit, OSD_FUNCTION_LOG, P, O + 7);
	expect_field(unit, 24);
	/* The device goes back as a whole. */
	run_on(unit, OSD_FUNCTION_ROLLBACK, 0, O);
	expect_field(unit, 24);
	run_on(unit, OSD_FUNCTION_SEARCH, P, O + 1);
	expect_field(unit, 24);
}

/*
 * What is about a partition or the whole device is not carried out on it when an object of it was
 * named.
 */
static void test_functions_of_a_whole_refuse_a_part(void **state)
{
	static const enum osd_function whole[] = { OSD_FUNCTION_SNAPSHOT, OSD_FUNCTION_DROP,
						   OSD_FUNCTION_VIEW, OSD_FUNCTION_DIFF,
						   OSD_FUNCTION_SET_RETENTION };
	static const enum osd_function of_root[] = { OSD_FUNCTION_STATISTICS, OSD_FUNCTION_MERGE };
	struct unit *unit = *state;
	struct function_call call;

	function_subscribe(unit);
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		function_of(&call, whole[i], P, O);
		function_run(unit, &call);
		expect_field(unit, 24);
	}
	for (size_t i = 0; i < sizeof(of_root) / sizeof(of_root[0]); i++) {
		function_of(&call, of_root[i], P, 0);
		function_run(unit, &call);
		expect_field(unit, 16);
		function_of(&call, of_root[i], 0, O);
		function_run(unit, &call);
		expect_field(unit, 24);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_unit(test_features_lists_every_function_and_a_host_subscribes_to_what_it_uses),
		with_unit(test_a_subscription_is_of_one_host),
		with_unit(test_unknown_features_and_functions_and_damaged_parameters_are_refused),
		with_object(test_a_name_of_versions_by_time_is_refused),
		with_object(test_a_group_of_partitions_is_kept_or_refused_as_a_whole),
		with_object(test_a_result_that_has_no_room_says_how_much_it_wants),
		with_object(test_statistics_are_those_of_the_engine),
		with_object(test_a_merge_that_fails_says_so_until_another_begins),
		with_object(test_a_repair_reads_all_and_moves_what_is_beside_lost_pages),
		cmocka_unit_test_setup_teardown(
			test_a_repair_reads_all_although_something_finds_no_space,
			set_up_with_small_pages, unit_tear_down),
		with_object(test_functions_of_a_whole_refuse_a_part),
		with_object(test_a_merge_runs_by_itself_tells_how_far_it_is_and_is_cancelled),
		with_object(test_checksum_is_the_sha_256_of_a_range),
		with_object(test_checksum_of_a_long_object_takes_several_commands),
		with_object(test_functions_point_at_an_object_that_they_can_t_be_about),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
