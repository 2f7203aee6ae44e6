/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a session changes of keys and policy while another one's command is under way: no
 * transaction of that executes anything that is not allowed as things are then. The command is
 * stopped before one of its transactions, and something else is done there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "engine/history/past.h"
#include "engine/objects/objects.h"
#include "osd/execute.h"
#include "tests/osd/withdrawals.h"

/* ---- commands of one transaction ---- */

static void test_a_reading_command_is_checked_by_what_is_there_when_it_reads(void **state)
{
	struct withdrawal list[WITHDRAWALS];

	withdrawals_of(withdraw_object_tag, list);
	for (size_t i = 0; i < WITHDRAWALS; i++) {
		struct unit *unit;
		struct signed_call read;

		members_begin(state, 1);
		unit = *state;
		read = members_call(unit, OSD_READ, O, OSD_TYPE_USER_OBJECT);
		read.call.cdb.length = read.call.data_in_capacity = 16;
		stepped_run_signed(unit, &read, 1, list[i].change);
		expect_withdrawn(unit, &list[i]);
		unit_tear_down(state);
	}
}

/* Its Data-Out was summed up before that, with a key that was right then. */
static void test_a_writing_command_is_checked_by_what_is_there_when_it_writes(void **state)
{
	struct withdrawal list[WITHDRAWALS];

	withdrawals_of(withdraw_object_tag, list);
	for (size_t i = 0; i < WITHDRAWALS; i++) {
		struct unit *unit;
		struct signed_call write;
		uint8_t data[64];
		uint64_t got;
		struct engine_address address = { .partition = P, .object = O };
		struct engine_txn *txn;

		members_begin(state, 1);
		unit = *state;
		write = members_call(unit, OSD_WRITE, O, OSD_TYPE_USER_OBJECT);
		write.capability.method = OSD_ALLDATA;
		memset(data, 'y', sizeof(data));
		call_data(&write.call, data, sizeof(data));
		stepped_run_signed(unit, &write, 1, list[i].change);
		expect_withdrawn(unit, &list[i]);
		assert_int_equal(engine_begin(unit->engine, ENGINE_READ, &txn), 0);
		assert_int_equal(engine_read(txn, address, 0, data, 1, &got), 0);
		engine_abort(txn);
		assert_int_equal(data[0], 'x');
		unit_tear_down(state);
	}
}

/* ---- nobody writes between the check of a command and its work ---- */

static const struct record_store_operations *true_operations;
static struct engine *watched;
static unsigned looks, writers_let_in, readers_let_in;

static int get_watched(struct record_store *store, const struct record_key *key, uint64_t bound,
		       void *value, uint32_t capacity, struct record_info *info)
{
	uint64_t since;

	looks++;
	if (turn_try_take(&watched->turn)) {
		writers_let_in++;
		turn_give(&watched->turn);
	}
	if (turn_try_share(&watched->turn, &since)) {
		readers_let_in++;
		turn_unshare(&watched->turn, since);
	}
	return true_operations->get(store, key, bound, value, capacity, info);
}

static void watch(struct unit *unit)
{
	static struct record_store_operations operations;

	watched = unit->engine;
	if (watched->store->operations != &operations)
		true_operations = watched->store->operations;
	operations = *true_operations;
	operations.get = get_watched;
	watched->store->operations = &operations;
	/* So that everything is looked up in the store. */
	stale_say(&watched->memories, STALE_RECORDS | STALE_INDICES | STALE_NOTES);
	looks = writers_let_in = readers_let_in = 0;
}

static void test_a_command_s_turn_lasts_from_its_check_to_its_end(void **state)
{
	struct unit *unit;
	struct signed_call call;

	members_begin(state, 1);
	unit = *state;
	watch(unit);
	call = members_call(unit, OSD_READ, O, OSD_TYPE_USER_OBJECT);
	call.call.cdb.length = call.call.data_in_capacity = 16;
	signed_run(unit, &call);
	expect_good(unit);
	assert_true(looks > 3);
	assert_int_equal(writers_let_in, 0);
	/* Other readers change nothing. */
	assert_int_equal(readers_let_in, looks);
	call = members_call(unit, OSD_CLEAR, O, OSD_TYPE_USER_OBJECT);
	call.call.cdb.length = 16;
	/* It is summed up in a reading transaction, whose findings are looked up again. */
	stepped_run_signed(unit, &call, 1, watch);
	expect_good(unit);
	assert_true(looks > 3);
	assert_int_equal(readers_let_in + writers_let_in, 0);
	watched->store->operations = true_operations;
	unit_tear_down(state);
}

/* ---- commands of several transactions ---- */

/* Each batch is a transaction; GET MEMBER ATTRIBUTES has one that reads before them. */
static void test_commands_on_members_end_before_the_batch_that_is_not_allowed(void **state)
{
	static const uint16_t actions[] = { OSD_REMOVE_MEMBER_OBJECTS, OSD_SET_MEMBER_ATTRIBUTES,
					    OSD_GET_MEMBER_ATTRIBUTES };
	struct withdrawal list[WITHDRAWALS];

	withdrawals_of(withdraw_collection_tags, list);
	for (size_t n = 0; n < 3 * WITHDRAWALS * 3; n++) {
		const struct withdrawal *withdrawal = &list[n / 3 % WITHDRAWALS];
		uint16_t action = actions[n / 3 / WITHDRAWALS];
		unsigned batches = n % 3, first = action == OSD_GET_MEMBER_ATTRIBUTES ? 2 : 1;
		struct unit *unit;
		struct signed_call call;

		members_begin(state, 4 * BATCH);
		unit = *state;
		call = members_call(unit, action, TRACKING, OSD_TYPE_COLLECTION);
		if (action == OSD_SET_MEMBER_ATTRIBUTES)
			call_set(&call.call, PAGE, 1, "set", 3);
		stepped_run_signed(unit, &call, first + batches, withdrawal->change);
		expect_withdrawn(unit, withdrawal);
		/* What was done was allowed, and the answer says that something was. */
		assert_int_equal(members_of(unit, P, TRACKING), (4 - batches) * BATCH);
		assert_int_equal(unit_sense(unit).not_initiated & OSD_FUNCTION_COMMAND,
				 batches ? 0 : OSD_FUNCTION_COMMAND);
		unit_tear_down(state);
	}
}

static void set_access_list(struct unit *unit, uint32_t page)
{
	uint8_t item[8];

	put_be32(item, page);
	put_be32(item + 4, OSD_ATTRIBUTE_ALL);
	members_set_signed(unit, 0, OSD_TYPE_PARTITION, OSD_PARTITION_ATTRIBUTES_ACCESS, 1, item,
			   sizeof(item));
}

static void change_access_list(struct unit *unit)
{
	set_access_list(unit, PAGE + 1);
}

static void test_a_command_ends_when_its_attributes_are_allowed_no_longer(void **state)
{
	struct unit *unit;
	struct signed_call call;

	members_begin(state, 4 * BATCH);
	unit = *state;
	set_access_list(unit, PAGE);
	call = members_call(unit, OSD_SET_MEMBER_ATTRIBUTES, TRACKING, OSD_TYPE_COLLECTION);
	call.capability.attributes_access = 1;
	call_set(&call.call, PAGE, 1, "set", 3);
	stepped_run_signed(unit, &call, 3, change_access_list);
	expect_field(unit, unit_layout()->attributes_access);
	assert_int_equal(members_of(unit, P, TRACKING), 2 * BATCH);
	unit_tear_down(state);
}

static void test_a_command_ends_when_its_partition_is_closed(void **state)
{
	struct unit *unit;
	struct call call;

	members_begin(state, 4 * BATCH);
	unit = *state;
	secured_reopen(unit, OSD_CMDRSP);
	call = call_of(OSD_REMOVE_MEMBER_OBJECTS, P, TRACKING);
	stepped_run(unit, &call, 3, withdraw_openness);
	expect_field(unit, OSD_FIELD_SECURITY_METHOD);
	assert_int_equal(members_of(unit, P, TRACKING), 2 * BATCH);
	unit_tear_down(state);
}

/* The command was answered; the tracking page tells what has become of it. */
static void test_a_command_in_the_background_ends_before_the_batch_that_is_not_allowed(void **state)
{
	struct withdrawal list[WITHDRAWALS];

	withdrawals_of(withdraw_collection_tags, list);
	for (size_t i = 0; i < WITHDRAWALS; i++) {
		struct unit *unit;
		struct signed_call call;

		members_begin(state, 4 * BATCH);
		unit = *state;
		unit_create_partition(unit, OTHER);
		members_fill(unit, OTHER, 2 * BATCH);
		unit->device->background.started = true;
		call = members_call(unit, OSD_REMOVE_MEMBER_OBJECTS, TRACKING, OSD_TYPE_COLLECTION);
		call.call.cdb.immediate_tracking = true;
		signed_run(unit, &call);
		expect_good(unit);
		list[i].change(unit);
		members_let_go(unit);
		assert_int_equal(members_of(unit, P, TRACKING), 3 * BATCH);
		assert_int_equal(members_ended_status(unit, TRACKING), SCSI_STATUS_CHECK_CONDITION);
		unit_tear_down(state);
	}
}

static unsigned views_in_use(const struct unit *unit)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < ENGINE_VIEWS; i++)
		count += unit->engine->past->views[i].bound != 0;
	return count;
}

/* Nothing is answered, and the moment that it looked at takes no number any more. */
static void test_a_query_ends_before_the_turn_that_is_not_allowed(void **state)
{
	struct withdrawal list[WITHDRAWALS];

	withdrawals_of(withdraw_collection_tags, list);
	for (size_t i = 0; i < WITHDRAWALS; i++) {
		struct unit *unit;
		struct signed_call query;

		members_begin(state, OBJECTS);
		unit = *state;
		query = members_query(unit, 0);
		stepped_run_signed(unit, &query, 2, list[i].change);
		expect_withdrawn(unit, &list[i]);
		assert_int_equal(views_in_use(unit), 0);
		unit_tear_down(state);
	}
}

static void remove_searched(struct unit *unit)
{
	struct signed_call call =
		signed_call_of(unit, OSD_REMOVE_COLLECTION, P, LINEAR, OSD_CMDRSP);

	call.capability.object_type = OSD_TYPE_COLLECTION;
	call.capability.descriptor_type = osd_descriptor_type(OSD_2, OSD_TYPE_COLLECTION);
	call.call.cdb.command_options = OSD_FORCE_COLLECTION_REMOVAL;
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_a_query_whose_collection_goes_keeps_no_number(void **state)
{
	struct unit *unit;
	struct signed_call query;

	members_begin(state, OBJECTS);
	unit = *state;
	query = members_query(unit, 0);
	stepped_run_signed(unit, &query, 2, remove_searched);
	expect_field(unit, OSD_FIELD_OBJECT);
	assert_int_equal(views_in_use(unit), 0);
	unit_tear_down(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_reading_command_is_checked_by_what_is_there_when_it_reads),
		cmocka_unit_test(test_a_writing_command_is_checked_by_what_is_there_when_it_writes),
		cmocka_unit_test(test_a_command_s_turn_lasts_from_its_check_to_its_end),
		cmocka_unit_test(test_commands_on_members_end_before_the_batch_that_is_not_allowed),
		cmocka_unit_test(test_a_command_ends_when_its_attributes_are_allowed_no_longer),
		cmocka_unit_test(test_a_command_ends_when_its_partition_is_closed),
		cmocka_unit_test(
			test_a_command_in_the_background_ends_before_the_batch_that_is_not_allowed),
		cmocka_unit_test(test_a_query_ends_before_the_turn_that_is_not_allowed),
		cmocka_unit_test(test_a_query_whose_collection_goes_keeps_no_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
