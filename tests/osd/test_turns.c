/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Commands that take several turns, and what another session does between two of them: the answer
 * is that of one moment, and what fails leaves nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "engine/history/past.h"
#include "osd/execute.h"
#include "tests/osd/collection_calls.h"
#include "tests/osd/function_call.h"
#include "tests/osd/stepped.h"
#include "wire/vendor.h"

/* A turn of the tests, and an object of several; it ends inside a page. */
enum { TURN_PAGES = 4, PAGE = 4096, OBJECT_BYTES = 10 * PAGE + 100 };
#define COPY (O + 7)

static int set_up(void **state)
{
	struct unit *unit;

	if (unit_set_up_with_object(state) != 0)
		return -1;
	unit = *state;
	unit->device->portions.pages = TURN_PAGES;
	return 0;
}

/* With room for what is put again and again. */
static int set_up_large(void **state)
{
	struct unit *unit = malloc(sizeof(*unit));

	unit_open(unit, 512 << 20);
	unit_create_partition(unit, P);
	unit_create(unit, P, O);
	*state = unit;
	return 0;
}

#define with_turns(test) cmocka_unit_test_setup_teardown(test, set_up, unit_tear_down)

static void fill(struct unit *unit, uint64_t object, char byte)
{
	uint8_t data[OBJECT_BYTES];

	memset(data, byte, sizeof(data));
	unit_write(unit, object, 0, data, sizeof(data));
}

static void keep_no_history(struct unit *unit)
{
	const struct engine_retention none = { .kind = ENGINE_RETAIN_NONE };
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_retention_set(txn, P, &none, false), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static unsigned views_in_use(const struct unit *unit)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < ENGINE_VIEWS; i++)
		count += unit->engine->past->views[i].bound != 0;
	return count;
}

/* ---- what others do ---- */

static void write_b(struct unit *unit)
{
	unit->now_ms += FUNCTION_STEP_MS;
	fill(unit, O, 'b');
}

static void write_another(struct unit *unit)
{
	unit_create(unit, P, O + 1);
	fill(unit, O + 1, 'z');
}

static void remove_the_object(struct unit *unit)
{
	struct call call = call_of(OSD_REMOVE, P, O);

	call_run(unit, &call);
	expect_good(unit);
}

static void remove_the_copy(struct unit *unit)
{
	struct call call = call_of(OSD_REMOVE, P, COPY);

	call_run(unit, &call);
	expect_good(unit);
}

/* ---- READ ---- */

static struct call read_call(uint64_t object, uint64_t length)
{
	struct call call = call_of(OSD_READ, P, object);

	call.cdb.length = call.data_in_capacity = length;
	return call;
}

/* All of it is this byte. */
static void assert_bytes(const struct unit *unit, char byte, size_t length)
{
	assert_int_equal(unit->command.data_in_length, length);
	for (size_t i = 0; i < length; i++)
		assert_int_equal(unit->data_in[i], byte);
}

static void test_a_read_in_turns_reads_all(void **state)
{
	struct unit *unit = *state;
	struct call call = read_call(O, OBJECT_BYTES);

	fill(unit, O, 'a');
	stepped_run(unit, &call, 3, write_another);
	expect_good(unit);
	assert_bytes(unit, 'a', OBJECT_BYTES);
	/* Past the end: zeros, and how much was there. */
	call = read_call(O, OBJECT_BYTES + 3 * PAGE);
	call_run(unit, &call);
	expect_sense(unit, SENSE_RECOVERED_ERROR, SENSE_READ_PAST_END_OF_USER_OBJECT);
	assert_int_equal(unit_sense(unit).information, OBJECT_BYTES);
	assert_int_equal(unit->data_in[OBJECT_BYTES - 1], 'a');
	assert_int_equal(unit->data_in[OBJECT_BYTES], 0);
	assert_int_equal(unit->data_in[OBJECT_BYTES + 3 * PAGE - 1], 0);
}

static void test_scattered_pieces_take_turns_too(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_READ, P, O);

	fill(unit, O, 'a');
	unit_write(unit, O, 9 * PAGE, "last", 4);
	call_piece(&call, 9 * PAGE, 4);
	call_piece(&call, 0, 0);
	call_piece(&call, 0, 6 * PAGE);
	call_piece(&call, 9 * PAGE + 1, 3);
	call.cdb.length = call.data_in_capacity = 4 + 6 * PAGE + 3;
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, "lastaaaa", 8);
	assert_memory_equal(unit->data_in + 4 + 6 * PAGE, "ast", 3);
}

static void test_a_read_is_of_one_moment_when_the_object_changes(void **state)
{
	struct unit *unit = *state;

	for (unsigned turn = 2; turn <= 3; turn++) {
		struct call call = read_call(O, OBJECT_BYTES);

		fill(unit, O, 'a');
		stepped_run(unit, &call, turn, write_b);
		expect_good(unit);
		assert_bytes(unit, 'b', OBJECT_BYTES);
		assert_int_equal(views_in_use(unit), 0);
	}
}

/* As if nothing told when an object of the partition was written to. */
static void unlog(struct unit *unit)
{
	struct partition *partition;
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(partition_get(unit->engine, P, &partition), 0);
	partition->is_unlogged = true;
	partition_mark(txn, partition);
	partition_release(unit->engine, partition);
	assert_int_equal(engine_commit(txn, false), 0);
}

static void test_a_read_of_an_unlogged_object_is_of_one_moment(void **state)
{
	struct unit *unit = *state;

	fill(unit, O, 'a');
	unlog(unit);
	for (unsigned turn = 2; turn <= 3; turn++) {
		struct call call = read_call(O, OBJECT_BYTES);

		fill(unit, O, 'a');
		stepped_run(unit, &call, turn, write_b);
		expect_good(unit);
		/* The second turn holds a moment, as if the object had changed. */
		assert_bytes(unit, turn == 2 ? 'b' : 'a', OBJECT_BYTES);
		assert_int_equal(views_in_use(unit), 0);
	}
}

static void count_turn(void *context)
{
	++*(unsigned *)context;
}

static unsigned turns_of(struct unit *unit, struct call *call)
{
	unsigned turns = 0;

	unit->device->step = count_turn;
	unit->device->step_context = &turns;
	call_run(unit, call);
	unit->device->step = NULL;
	expect_good(unit);
	return turns;
}

/* Nobody writes there, so no turn is in vain. */
static void test_a_read_of_the_past_of_an_unlogged_object_does_not_begin_again(void **state)
{
	struct unit *unit = *state;
	struct call call = read_call(O, OBJECT_BYTES);
	uint64_t version;

	function_subscribe(unit);
	fill(unit, O, 'a');
	version = function_snapshot(unit, P, NULL);
	fill(unit, O, 'b');
	unlog(unit);
	for (unsigned past = 0; past <= 1; past++) {
		call.cdb.partition = past ? function_at_version(version) : P;
		assert_int_equal(turns_of(unit, &call), past ? 3 : 4);
		assert_bytes(unit, past ? 'a' : 'b', OBJECT_BYTES);
	}
}

static unsigned writes;

/* Before each turn from the second on. */
static void write_again(void *context)
{
	struct unit *unit = context, session = *unit;

	if (writes++ == 0)
		return;
	session.device->step = NULL;
	session.data_in = NULL;
	session.now_ms += FUNCTION_STEP_MS;
	fill(&session, O, (char)('a' + writes % 20));
	free(session.data_in);
	unit->device->step = write_again;
}

static void run_beside_writes(struct unit *unit, struct call *call)
{
	writes = 0;
	unit->device->step = write_again;
	unit->device->step_context = unit;
	call_run(unit, call);
	unit->device->step = NULL;
	expect_good(unit);
	assert_true(writes >= 4);
}

static void read_beside_writes(struct unit *unit)
{
	struct call call = read_call(O, OBJECT_BYTES);

	fill(unit, O, 'a');
	run_beside_writes(unit, &call);
}

static void test_a_read_is_of_one_moment_however_often_the_object_changes(void **state)
{
	struct unit *unit = *state;

	read_beside_writes(unit);
	/* It began again behind the first write, and held that moment. */
	assert_bytes(unit, 'a' + 2, OBJECT_BYTES);
	assert_int_equal(views_in_use(unit), 0);
}

static void test_where_no_history_is_kept_each_turn_is_of_one_moment(void **state)
{
	struct unit *unit = *state;

	keep_no_history(unit);
	read_beside_writes(unit);
	assert_int_equal(unit->command.data_in_length, OBJECT_BYTES);
	for (size_t i = 0; i < OBJECT_BYTES; i++)
		assert_int_equal(unit->data_in[i],
				 unit->data_in[i / (TURN_PAGES * PAGE) * (TURN_PAGES * PAGE)]);
	assert_int_equal(views_in_use(unit), 0);
}

static void test_a_read_of_what_goes_ends(void **state)
{
	struct unit *unit = *state;
	struct call call = read_call(O, OBJECT_BYTES);

	fill(unit, O, 'a');
	stepped_run(unit, &call, 2, remove_the_object);
	expect_field(unit, 24);
	assert_int_equal(views_in_use(unit), 0);
}

static void test_sets_of_a_read_come_with_its_last_turn(void **state)
{
	struct unit *unit = *state;
	struct call call = read_call(O, OBJECT_BYTES);

	fill(unit, O, 'a');
	call_set_number(&call, 0x10000, 1, 5);
	stepped_run(unit, &call, 2, write_b);
	expect_good(unit);
	assert_bytes(unit, 'b', OBJECT_BYTES);
	assert_int_equal(unit_get_number(unit, P, O, 0x10000, 1), 5);
}

static void test_the_page_of_a_packed_id_counts_once(void **state)
{
	struct unit *unit = *state;
	const uint8_t packed = OSD_LAYOUT_PACKED;
	struct call call = call_of(OSD_CREATE_PARTITION, P + 1, 0);
	uint64_t object = UINT64_C(0x10005) << 32;

	call_set(&call, OSD_MUNINN_PARTITION, OSD_MUNINN_LAYOUT, &packed, 1);
	call_run(unit, &call);
	expect_good(unit);
	call = call_of(OSD_CREATE, P + 1, object);
	call_run(unit, &call);
	expect_good(unit);
	for (uint8_t page = 0; page < 12; page++) {
		uint8_t data[PAGE];

		memset(data, page, sizeof(data));
		call = call_of(OSD_WRITE, P + 1, object);
		call.cdb.address = (uint64_t)page * PAGE;
		call_data(&call, data, sizeof(data));
		call_run(unit, &call);
		expect_good(unit);
	}
	call = call_of(OSD_READ, P + 1, object | 2);
	call.cdb.length = call.data_in_capacity = 10 * PAGE;
	call_run(unit, &call);
	expect_good(unit);
	for (unsigned page = 0; page < 10; page++)
		assert_int_equal(unit->data_in[page * PAGE], page + 2);
}

/* ---- COPY USER OBJECTS ---- */

static struct call copy_call_of(uint64_t partition, unsigned sources)
{
	struct osd_copy_source source = { partition, O, true, false, 0 };
	struct call call = call_of(OSD_COPY_USER_OBJECTS, P, sources == 1 ? COPY : 0);
	uint8_t content[OSD_COPY_SOURCE_BYTES];

	osd_copy_source_encode(&source, content);
	while (sources-- > 0)
		call_descriptor(&call, OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
	return call;
}

static struct call copy_call(unsigned sources)
{
	return copy_call_of(P, sources);
}

static void expect_copy(struct unit *unit, uint64_t object, char byte)
{
	struct call call = read_call(object, OBJECT_BYTES);

	call_run(unit, &call);
	expect_good(unit);
	assert_bytes(unit, byte, OBJECT_BYTES);
	assert_int_equal(unit_get_number(unit, P, object, 0x10000, 1), 5);
	assert_int_equal(unit_get_number(unit, P, object, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 OBJECT_BYTES);
}

static void test_a_copy_in_turns_is_of_one_moment(void **state)
{
	struct unit *unit = *state;

	unit_set_number(unit, P, O, 0x10000, 1, 5);
	for (unsigned turn = 2; turn <= 3; turn++) {
		struct call call = copy_call(1);

		fill(unit, O, 'a');
		call_set_number(&call, 0x10000, 2, 6);
		stepped_run(unit, &call, turn, write_b);
		expect_good(unit);
		expect_copy(unit, COPY, 'b');
		assert_int_equal(unit_get_number(unit, P, COPY, 0x10000, 2), 6);
		assert_int_equal(views_in_use(unit), 0);
		remove_the_copy(unit);
	}
}

static void test_a_copy_is_of_one_moment_however_often_the_object_changes(void **state)
{
	struct unit *unit = *state;
	struct call call = copy_call(1);

	unit_set_number(unit, P, O, 0x10000, 1, 5);
	fill(unit, O, 'a');
	run_beside_writes(unit, &call);
	/* It began again behind the first write, and held that moment. */
	expect_copy(unit, COPY, 'a' + 2);
	assert_int_equal(views_in_use(unit), 0);
}

static void test_a_copy_of_the_past_of_an_unlogged_object_does_not_begin_again(void **state)
{
	struct unit *unit = *state;
	unsigned turns[2];
	uint64_t version;

	function_subscribe(unit);
	unit_set_number(unit, P, O, 0x10000, 1, 5);
	fill(unit, O, 'a');
	version = function_snapshot(unit, P, NULL);
	fill(unit, O, 'b');
	unlog(unit);
	for (unsigned past = 0; past <= 1; past++) {
		struct call call = copy_call_of(past ? function_at_version(version) : P, 1);

		turns[past] = turns_of(unit, &call);
		expect_copy(unit, COPY, past ? 'a' : 'b');
		remove_the_copy(unit);
	}
	assert_true(turns[1] < turns[0]);
}

static void test_several_copies_take_turns(void **state)
{
	struct unit *unit = *state;
	struct call call = copy_call(3);

	unit_set_number(unit, P, O, 0x10000, 1, 5);
	fill(unit, O, 'a');
	call_run(unit, &call);
	expect_good(unit);
	for (uint64_t copy = O + 1; copy <= O + 3; copy++)
		expect_copy(unit, copy, 'a');
}

static uint64_t objects_in(struct unit *unit)
{
	struct engine_address address = { .partition = P };
	struct engine_stat stat;
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_stat(txn, address, &stat), 0);
	engine_abort(txn);
	return stat.members;
}

static void test_a_copy_that_fails_leaves_nothing(void **state)
{
	struct unit *unit = *state;
	struct call call = copy_call(2);

	fill(unit, O, 'a');
	stepped_run(unit, &call, 3, remove_the_object);
	expect_field(unit, 48);
	assert_int_equal(objects_in(unit), 0);
	/* A quota is met in the turn that exceeds it. */
	unit_create(unit, P, O);
	fill(unit, O, 'a');
	unit_set_number(unit, P, 0, OSD_PARTITION_QUOTAS, OSD_QUOTA_CAPACITY,
			(uint64_t)(11 + 6) * PAGE);
	call = copy_call(1);
	call_run(unit, &call);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_QUOTA_ERROR);
	assert_int_equal(objects_in(unit), 1);
}

static void replace_the_copy(struct unit *unit)
{
	remove_the_copy(unit);
	unit_create(unit, P, COPY);
	unit_write(unit, COPY, 0, "mine", 4);
}

static void test_a_copy_touches_nothing_that_took_its_place(void **state)
{
	struct unit *unit = *state;
	struct call call = copy_call(1);

	fill(unit, O, 'a');
	stepped_run(unit, &call, 2, replace_the_copy);
	expect_field(unit, 24);
	call = read_call(COPY, 4);
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, "mine", 4);
}

/* An object with nearly as many bytes of attributes as there can be. */
static void fill_attributes(struct unit *unit, uint64_t object)
{
	for (uint32_t number = 1; number <= 15; number++)
		unit_set_long(unit, P, object, 0x10000, number, 65000);
}

static uint64_t longest_turn(struct unit *unit, struct call *call)
{
	uint64_t most;

	engine_take_longest_turn(unit->engine);
	call_run(unit, call);
	expect_good(unit);
	most = engine_take_longest_turn(unit->engine);
	return most;
}

/* What belongs to one object may be hundreds of records, which count as such. */
static void test_objects_with_long_attributes_end_a_turn_sooner(void **state)
{
	enum { OBJECTS = 24, COPIES = 18 };
	struct unit *unit = *state;
	struct call call = call_of(OSD_LIST, P, 0);
	struct osd_list_head head;

	for (uint64_t object = O; object < O + OBJECTS; object++) {
		if (object > O)
			unit_create(unit, P, object);
		fill_attributes(unit, object);
	}
	call.cdb.list_attributes = true;
	call.cdb.length = call.data_in_capacity = 1 << 20;
	call_get(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH);
	assert_in_range(longest_turn(unit, &call), OSD_RECORDS_PORTION, OSD_TURN_RECORDS_MAX);
	assert_int_equal(
		osd_list_head_decode(OSD_2, unit->data_in, unit->command.data_in_length, &head), 0);
	assert_in_range(head.continuation_id, O + 10, O + OBJECTS - 1);
	call = call_of(OSD_OBJECT_STRUCTURE_CHECK, P, 0);
	call.cdb.length = call.data_in_capacity = 4096;
	assert_in_range(longest_turn(unit, &call), OSD_RECORDS_PORTION, OSD_TURN_RECORDS_MAX);
	call = copy_call(COPIES);
	assert_in_range(longest_turn(unit, &call), OSD_RECORDS_PORTION, OSD_TURN_RECORDS_MAX);
	assert_int_equal(objects_in(unit), OBJECTS + COPIES);
}

/* ---- ABORT TASK ---- */

static unsigned asked;

/* Behind the second turn. */
static bool is_aborted(void *context)
{
	(void)context;
	return ++asked == 2;
}

static void run_aborted(struct unit *unit, struct call *call)
{
	struct encoded_call encoded;
	struct osd_command command;
	uint8_t *in;

	call_encode(call, &encoded);
	in = malloc(encoded.in_capacity + 1);
	command = (struct osd_command){ .cdb = encoded.cdb,
					.cdb_length = encoded.cdb_length,
					.data_out = encoded.out,
					.data_out_length = encoded.out_length,
					.data_in = in,
					.data_in_capacity = encoded.in_capacity,
					.is_aborted = is_aborted };
	asked = 0;
	osd_execute(unit->device, &command);
	assert_int_equal(asked, 2);
	assert_int_equal(command.status, SCSI_STATUS_TASK_ABORTED);
	assert_int_equal(command.sense_length, 0);
	assert_int_equal(command.data_in_length, 0);
	free(encoded.out);
	free(in);
}

static void test_an_aborted_command_ends_between_two_turns(void **state)
{
	struct unit *unit = *state;
	struct call call = read_call(O, OBJECT_BYTES);

	fill(unit, O, 'a');
	run_aborted(unit, &call);
	call = copy_call(1);
	run_aborted(unit, &call);
	assert_int_equal(objects_in(unit), 1);
}

/* ---- UNDO ---- */

enum { MODIFICATIONS = ENGINE_AGO_AT_ONCE + 20 };

static unsigned undo_turns;

/* Before the second turn. */
static void modify(void *context)
{
	struct unit *unit = context, session = *unit;

	if (undo_turns++ != 1)
		return;
	session.device->step = NULL;
	session.data_in = NULL;
	unit_write(&session, O, 0, "x", 1);
	free(session.data_in);
	unit->device->step = modify;
}

static void undo(struct unit *unit, uint64_t modifications, bool is_modified)
{
	undo_turns = 0;
	unit->device->step = is_modified ? modify : NULL;
	unit->device->step_context = unit;
	function_run_with(unit, OSD_FUNCTION_UNDO, P, O, OSD_ITEM_MODIFICATIONS, modifications);
	unit->device->step = NULL;
	expect_good(unit);
}

static void test_an_undo_counts_in_turns(void **state)
{
	struct unit *unit = *state;
	uint8_t text[2];

	function_subscribe(unit);
	unit_write(unit, O, 0, "old", 3);
	for (unsigned i = 0; i < MODIFICATIONS; i++) {
		put_be16(text, (uint16_t)i);
		unit_write(unit, O, 0, text, 2);
	}
	undo(unit, MODIFICATIONS - 1, false);
	function_expect_text(unit, P, O, (const char[]){ 0, 0, 'd', 0 });
	/* The undo is a modification, too; so is what comes between: it counts anew. */
	undo(unit, MODIFICATIONS + 2, true);
	assert_true(undo_turns >= 3);
	function_expect_text(unit, P, O, "old");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_turns(test_a_read_in_turns_reads_all),
		with_turns(test_scattered_pieces_take_turns_too),
		with_turns(test_a_read_is_of_one_moment_when_the_object_changes),
		with_turns(test_a_read_of_an_unlogged_object_is_of_one_moment),
		with_turns(test_a_read_of_the_past_of_an_unlogged_object_does_not_begin_again),
		with_turns(test_a_copy_of_the_past_of_an_unlogged_object_does_not_begin_again),
		with_turns(test_a_read_is_of_one_moment_however_often_the_object_changes),
		with_turns(test_where_no_history_is_kept_each_turn_is_of_one_moment),
		with_turns(test_a_read_of_what_goes_ends),
		with_turns(test_sets_of_a_read_come_with_its_last_turn),
		with_turns(test_the_page_of_a_packed_id_counts_once),
		with_turns(test_a_copy_in_turns_is_of_one_moment),
		with_turns(test_a_copy_is_of_one_moment_however_often_the_object_changes),
		with_turns(test_several_copies_take_turns),
		with_turns(test_a_copy_that_fails_leaves_nothing),
		with_turns(test_a_copy_touches_nothing_that_took_its_place),
		cmocka_unit_test_setup_teardown(test_objects_with_long_attributes_end_a_turn_sooner,
						set_up_large, unit_tear_down),
		with_turns(test_an_aborted_command_ends_between_two_turns),
		with_object(test_an_undo_counts_in_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
