/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a session changes of keys and policy while another one's command is under way: no transaction of that executes anything that
 * is not allowed as things are then. The command is stopped before one of its transactions, and something else is done there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "engine/objects.h"
#include "osd/execute.h"
#include "tests/osd/stepped.h"

/* Collections in P and OTHER: of all OBJECTS objects from LINEAR + 1 on; more than a batch, or a turn of QUERY. */
#define OTHER    (P + 1)
#define LINEAR   UINT64_C(0x20000)
#define TRACKING UINT64_C(0x10001)
#define MATCHES  UINT64_C(0x10002)
enum { OBJECTS = 5000, BATCH = 64 };
#define PAGE 0x10000u
#define TAG  7

/* ---- what the other session does ---- */

static void change_key_of(struct unit *unit, uint8_t version)
{
	struct key_pair ignored;
	struct signed_call call =
		signed_set_key(unit, OSD_SET_WORKING_KEY, P, version, 0x66, &ignored);

	signed_run(unit, &call);
	expect_good(unit);
}

static void change_key(struct unit *unit)
{
	change_key_of(unit, KEY_VERSION);
}

static void set_signed(struct unit *unit, uint64_t object, uint8_t type, uint32_t page,
		       uint32_t number, const void *value, uint32_t length)
{
	struct signed_call call = signed_call_of(unit, OSD_SET_ATTRIBUTES, P, object, OSD_CMDRSP);

	call.capability.object_type = type;
	call.capability.descriptor_type = osd_descriptor_type(OSD_2, type);
	call_set(&call.call, page, number, value, length);
	signed_run(unit, &call);
	expect_good(unit);
}

static void freeze_key(struct unit *unit)
{
	static const uint8_t versions[2] = { 0, 1 << KEY_VERSION };

	set_signed(unit, 0, OSD_TYPE_PARTITION, OSD_PARTITION_SECURITY, OSD_SECURITY_FROZEN_KEYS,
		   versions, sizeof(versions));
}

/* That of the commands below. */
static const uint8_t audit[20] = "somebody's";

static void freeze_audit(struct unit *unit)
{
	set_signed(unit, 0, OSD_TYPE_PARTITION, OSD_PARTITION_FROZEN_AUDITS, 1, audit,
		   sizeof(audit));
}

static void change_object_tag(struct unit *unit)
{
	static const uint8_t tag[4] = { 0, 0, 0, TAG + 1 };

	set_signed(unit, O, OSD_TYPE_USER_OBJECT, OSD_USER_OBJECT_SECURITY,
		   OSD_SECURITY_POLICY_ACCESS_TAG, tag, sizeof(tag));
}

static void change_collection_tags(struct unit *unit)
{
	static const uint8_t tag[4] = { 0, 0, 0, TAG + 1 };

	set_signed(unit, TRACKING, OSD_TYPE_COLLECTION, OSD_COLLECTION_SECURITY,
		   OSD_SECURITY_POLICY_ACCESS_TAG, tag, sizeof(tag));
	set_signed(unit, LINEAR, OSD_TYPE_COLLECTION, OSD_COLLECTION_SECURITY,
		   OSD_SECURITY_POLICY_ACCESS_TAG, tag, sizeof(tag));
}

static void close_partition(struct unit *unit)
{
	secured_set_method(unit, P, OSD_CMDRSP);
}

/* ---- commands ---- */

/* What may be changed while a command is under way, and how the rest of it is refused: with a code, or a field of the CDB. */
struct withdrawal {
	changing *change;
	bool is_field;
	uint16_t code;
};

static void expect_withdrawn(struct unit *unit, const struct withdrawal *withdrawal)
{
	uint16_t field = withdrawal->code;

	if (!withdrawal->is_field) {
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, withdrawal->code);
		return;
	}
	expect_field(unit, field);
}

enum { WITHDRAWALS = 4 };

static void withdrawals_of(changing *tag_change, struct withdrawal list[WITHDRAWALS])
{
	list[0] = (struct withdrawal){ change_key, true, unit_layout()->check_value };
	list[1] = (struct withdrawal){ freeze_key, false, SENSE_SECURITY_WORKING_KEY_FROZEN };
	list[2] = (struct withdrawal){ freeze_audit, false, SENSE_SECURITY_AUDIT_VALUE_FROZEN };
	list[3] = (struct withdrawal){ tag_change, true, unit_layout()->policy_tag };
}

static void create_collection(struct unit *unit, uint64_t partition, uint16_t action,
			      uint64_t collection, uint64_t source)
{
	struct call call = call_of(action, partition, collection);

	call.cdb.address = source;
	call_run(unit, &call);
	expect_good(unit);
}

/* A partition with `count` objects, all of them members of LINEAR and of TRACKING. */
static void fill(struct unit *unit, uint64_t partition, uint16_t count)
{
	struct call create = call_of(OSD_CREATE, partition, 0);

	create_collection(unit, partition, OSD_CREATE_COLLECTION, LINEAR, 0);
	create.cdb.objects = count;
	call_set_number(&create, OSD_USER_OBJECT_COLLECTIONS, 1, LINEAR);
	call_run(unit, &create);
	expect_good(unit);
	create_collection(unit, partition, OSD_CREATE_USER_TRACKING_COLLECTION, TRACKING, LINEAR);
	create_collection(unit, partition, OSD_CREATE_USER_TRACKING_COLLECTION, MATCHES, 0);
}

static void set_tag(struct unit *unit, uint64_t object, uint32_t page)
{
	static const uint8_t tag[4] = { 0, 0, 0, TAG };

	unit_set(unit, P, object, page, OSD_SECURITY_POLICY_ACCESS_TAG, tag, sizeof(tag));
}

static uint64_t members_of(struct unit *unit, uint64_t partition, uint64_t collection)
{
	struct engine_address address = { .partition = partition, .object = collection };
	struct engine_stat stat;
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_stat(txn, address, &stat), 0);
	engine_abort(txn);
	return stat.members;
}

/* A secured unit with `count` members in collections; tags are set, and P is closed. */
static void begin_with_members(void **state, uint16_t count)
{
	secured_set_up(state);
	fill(*state, P, count);
	set_tag(*state, O, OSD_USER_OBJECT_SECURITY);
	set_tag(*state, LINEAR, OSD_COLLECTION_SECURITY);
	set_tag(*state, TRACKING, OSD_COLLECTION_SECURITY);
	secured_set_method(*state, P, OSD_CMDRSP);
}

static struct signed_call call_on(struct unit *unit, uint16_t action, uint64_t object, uint8_t type)
{
	struct signed_call call = signed_call_of(unit, action, P, object, OSD_CMDRSP);

	call.capability.object_type = type;
	call.capability.descriptor_type = osd_descriptor_type(OSD_2, type);
	call.capability.policy_tag = TAG;
	memcpy(call.capability.audit, audit, sizeof(audit));
	return call;
}

/* A QUERY of all members of LINEAR, more than one turn of it. */
static struct signed_call query_of(struct unit *unit, uint64_t matches)
{
	struct signed_call call = call_on(unit, OSD_QUERY, LINEAR, OSD_TYPE_COLLECTION);
	uint8_t list[20] = { 0x01, 0, 0, 0, 0, 0, 0, 12 };

	put_be32(list + 8, OSD_USER_OBJECT_INFORMATION);
	put_be32(list + 12, OSD_INFORMATION_LOGICAL_LENGTH);
	call_descriptor(&call.call, OSD_CONTINUATION_QUERY_LIST, list, sizeof(list));
	call.call.cdb.address = matches;
	if (matches == 0)
		call.call.cdb.length = call.call.data_in_capacity = 64;
	return call;
}

/* ---- commands of one transaction ---- */

static void test_a_reading_command_is_checked_by_what_is_there_when_it_reads(void **state)
{
	struct withdrawal list[WITHDRAWALS];

	withdrawals_of(change_object_tag, list);
	for (size_t i = 0; i < WITHDRAWALS; i++) {
		struct unit *unit;
		struct signed_call read;

		begin_with_members(state, 1);
		unit = *state;
		read = call_on(unit, OSD_READ, O, OSD_TYPE_USER_OBJECT);
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

	withdrawals_of(change_object_tag, list);
	for (size_t i = 0; i < WITHDRAWALS; i++) {
		struct unit *unit;
		struct signed_call write;
		uint8_t data[64];
		uint64_t got;
		struct engine_address address = { .partition = P, .object = O };
		struct engine_txn *txn;

		begin_with_members(state, 1);
		unit = *state;
		write = call_on(unit, OSD_WRITE, O, OSD_TYPE_USER_OBJECT);
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
	looks++;
	if (pthread_rwlock_trywrlock(&watched->turn) == 0) {
		writers_let_in++;
		pthread_rwlock_unlock(&watched->turn);
	}
	if (pthread_rwlock_tryrdlock(&watched->turn) == 0) {
		readers_let_in++;
		pthread_rwlock_unlock(&watched->turn);
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
	engine_forget(watched);
	looks = writers_let_in = readers_let_in = 0;
}

static void test_a_command_s_turn_lasts_from_its_check_to_its_end(void **state)
{
	struct unit *unit;
	struct signed_call call;

	begin_with_members(state, 1);
	unit = *state;
	watch(unit);
	call = call_on(unit, OSD_READ, O, OSD_TYPE_USER_OBJECT);
	call.call.cdb.length = call.call.data_in_capacity = 16;
	signed_run(unit, &call);
	expect_good(unit);
	assert_true(looks > 3);
	assert_int_equal(writers_let_in, 0);
	/* Other readers change nothing. */
	assert_int_equal(readers_let_in, looks);
	call = call_on(unit, OSD_CLEAR, O, OSD_TYPE_USER_OBJECT);
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

	withdrawals_of(change_collection_tags, list);
	for (size_t n = 0; n < 3 * WITHDRAWALS * 3; n++) {
		const struct withdrawal *withdrawal = &list[n / 3 % WITHDRAWALS];
		uint16_t action = actions[n / 3 / WITHDRAWALS];
		unsigned batches = n % 3, first = action == OSD_GET_MEMBER_ATTRIBUTES ? 2 : 1;
		struct unit *unit;
		struct signed_call call;

		begin_with_members(state, 4 * BATCH);
		unit = *state;
		call = call_on(unit, action, TRACKING, OSD_TYPE_COLLECTION);
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
	set_signed(unit, 0, OSD_TYPE_PARTITION, OSD_PARTITION_ATTRIBUTES_ACCESS, 1, item,
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

	begin_with_members(state, 4 * BATCH);
	unit = *state;
	set_access_list(unit, PAGE);
	call = call_on(unit, OSD_SET_MEMBER_ATTRIBUTES, TRACKING, OSD_TYPE_COLLECTION);
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

	begin_with_members(state, 4 * BATCH);
	unit = *state;
	secured_reopen(unit, OSD_CMDRSP);
	call = call_of(OSD_REMOVE_MEMBER_OBJECTS, P, TRACKING);
	stepped_run(unit, &call, 3, close_partition);
	expect_field(unit, OSD_FIELD_SECURITY_METHOD);
	assert_int_equal(members_of(unit, P, TRACKING), 2 * BATCH);
	unit_tear_down(state);
}

/* Lets the thread begin, and waits until it has ended all commands that are waiting, and then one more. */
static void let_go(struct unit *unit)
{
	struct call call = call_of(OSD_REMOVE_MEMBER_OBJECTS, OTHER, TRACKING);

	unit->device->background.started = false;
	call.cdb.immediate_tracking = true;
	call_run(unit, &call);
	expect_good(unit);
	for (int i = 0; i < 10000000 && members_of(unit, OTHER, TRACKING) != 0; i++)
		sched_yield();
	assert_int_equal(members_of(unit, OTHER, TRACKING), 0);
}

static uint16_t ended_status(struct unit *unit, uint64_t collection)
{
	struct engine_address address = { .partition = P, .object = collection };
	uint8_t value[2];
	uint32_t length;
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_attribute_get(txn, address, OSD_COLLECTION_TRACKING,
					      OSD_TRACKING_ENDED_STATUS, value, sizeof(value),
					      &length),
			 0);
	engine_abort(txn);
	return get_be16(value);
}

/* The command was answered; the tracking page tells what has become of it. */
static void test_a_command_in_the_background_ends_before_the_batch_that_is_not_allowed(void **state)
{
	struct withdrawal list[WITHDRAWALS];

	withdrawals_of(change_collection_tags, list);
	for (size_t i = 0; i < WITHDRAWALS; i++) {
		struct unit *unit;
		struct signed_call call;

		begin_with_members(state, 4 * BATCH);
		unit = *state;
		unit_create_partition(unit, OTHER);
		fill(unit, OTHER, 2 * BATCH);
		unit->device->background.started = true;
		call = call_on(unit, OSD_REMOVE_MEMBER_OBJECTS, TRACKING, OSD_TYPE_COLLECTION);
		call.call.cdb.immediate_tracking = true;
		signed_run(unit, &call);
		expect_good(unit);
		list[i].change(unit);
		let_go(unit);
		assert_int_equal(members_of(unit, P, TRACKING), 3 * BATCH);
		assert_int_equal(ended_status(unit, TRACKING), SCSI_STATUS_CHECK_CONDITION);
		unit_tear_down(state);
	}
}

static unsigned views_in_use(const struct unit *unit)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < ENGINE_VIEWS; i++)
		count += unit->engine->views[i].bound != 0;
	return count;
}

/* Nothing is answered, and the moment that it looked at takes no number any more. */
static void test_a_query_ends_before_the_turn_that_is_not_allowed(void **state)
{
	struct withdrawal list[WITHDRAWALS];

	withdrawals_of(change_collection_tags, list);
	for (size_t i = 0; i < WITHDRAWALS; i++) {
		struct unit *unit;
		struct signed_call query;

		begin_with_members(state, OBJECTS);
		unit = *state;
		query = query_of(unit, 0);
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

	begin_with_members(state, OBJECTS);
	unit = *state;
	query = query_of(unit, 0);
	stepped_run_signed(unit, &query, 2, remove_searched);
	expect_field(unit, OSD_FIELD_OBJECT);
	assert_int_equal(views_in_use(unit), 0);
	unit_tear_down(state);
}

/* ---- extension capabilities ---- */

#define VERSION_OF_MATCHES 9
static struct key_pair matches_key;

static void change_key_of_matches(struct unit *unit)
{
	change_key_of(unit, VERSION_OF_MATCHES);
}

static void change_tag_of_matches(struct unit *unit)
{
	static const uint8_t tag[4] = { 0, 0, 0, TAG };

	set_signed(unit, MATCHES, OSD_TYPE_COLLECTION, OSD_COLLECTION_SECURITY,
		   OSD_SECURITY_POLICY_ACCESS_TAG, tag, sizeof(tag));
}

static struct signed_call query_with_extension(struct unit *unit)
{
	struct signed_call call = signed_set_key(unit, OSD_SET_WORKING_KEY, P, VERSION_OF_MATCHES,
						 0x44, &matches_key);
	struct granted *granted;

	signed_run(unit, &call);
	expect_good(unit);
	call = query_of(unit, MATCHES);
	granted = signed_extend(&call, P, MATCHES, OSD_TYPE_COLLECTION, OSD_PERMISSION_WRITE);
	granted->secret = matches_key.authentication;
	granted->capability.key_version = VERSION_OF_MATCHES;
	granted->capability.policy_tag = TAG + 1;
	return call;
}

/* Before the first transaction, whose values have been summed up, or a later one. */
static void test_an_extension_capability_counts_as_long_as_the_command_runs(void **state)
{
	static changing *const changes[] = { change_key_of_matches, change_tag_of_matches };

	for (size_t n = 0; n < 6; n++) {
		static const uint8_t tag[4] = { 0, 0, 0, TAG + 1 };
		unsigned batches = n / 2;
		struct unit *unit;
		struct signed_call query;

		begin_with_members(state, 1000);
		unit = *state;
		set_signed(unit, MATCHES, OSD_TYPE_COLLECTION, OSD_COLLECTION_SECURITY,
			   OSD_SECURITY_POLICY_ACCESS_TAG, tag, sizeof(tag));
		query = query_with_extension(unit);
		stepped_run_signed(unit, &query, 1 + batches, changes[n % 2]);
		assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
		assert_int_equal(unit_sense(unit).code, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
		assert_int_equal(members_of(unit, P, MATCHES), batches * 256);
		/* Where nobody withdraws anything it goes to its end. */
		query = query_of(unit, MATCHES);
		signed_extend(&query, P, MATCHES, OSD_TYPE_COLLECTION, OSD_PERMISSION_WRITE);
		signed_run(unit, &query);
		expect_good(unit);
		assert_int_equal(members_of(unit, P, MATCHES), 1000);
		unit_tear_down(state);
	}
}

static void test_so_it_does_in_the_background(void **state)
{
	static const uint8_t tag[4] = { 0, 0, 0, TAG + 1 };
	static changing *const changes[] = { NULL, change_key_of_matches, change_tag_of_matches };

	for (size_t i = 0; i < 3; i++) {
		struct unit *unit;
		struct signed_call query;

		begin_with_members(state, 1000);
		unit = *state;
		unit_create_partition(unit, OTHER);
		fill(unit, OTHER, 2 * BATCH);
		set_signed(unit, MATCHES, OSD_TYPE_COLLECTION, OSD_COLLECTION_SECURITY,
			   OSD_SECURITY_POLICY_ACCESS_TAG, tag, sizeof(tag));
		query = query_with_extension(unit);
		query.call.cdb.immediate_tracking = true;
		unit->device->background.started = true;
		signed_run(unit, &query);
		expect_good(unit);
		if (changes[i])
			changes[i](unit);
		let_go(unit);
		assert_int_equal(members_of(unit, P, MATCHES), changes[i] ? 256 : 1000);
		assert_int_equal(ended_status(unit, MATCHES),
				 changes[i] ? SCSI_STATUS_CHECK_CONDITION : SCSI_STATUS_GOOD);
		unit_tear_down(state);
	}
}

static void change_bound(struct unit *unit)
{
	struct osd_command *command = stepped_command();

	(void)unit;
	for (size_t i = 0; i + 4 < command->data_out_length; i++)
		if (memcmp(command->data_out + i, "bound", 5) == 0)
			((uint8_t *)command->data_out)[i] = 'B';
}

/*
 * Others wait while a command has its turn, so what it has sent has been summed up before: changed then, it is not noticed.
 * Here by a tool that initiators do not have.
 */
static void test_nothing_long_is_summed_up_in_a_command_s_turn(void **state)
{
	static const uint8_t tag[4] = { 0, 0, 0, TAG + 1 };
	struct unit *unit;
	struct signed_call query;
	uint8_t list[25] = { 0x01, 0, 0, 0, 0, 0, 0, 17 };

	begin_with_members(state, 10);
	unit = *state;
	set_signed(unit, MATCHES, OSD_TYPE_COLLECTION, OSD_COLLECTION_SECURITY,
		   OSD_SECURITY_POLICY_ACCESS_TAG, tag, sizeof(tag));
	query = query_with_extension(unit);
	query.call.continuation_length = 0;
	put_be32(list + 8, PAGE);
	put_be32(list + 12, 1);
	put_be16(list + 16, 5);
	memcpy(list + 18, "bound", 5);
	call_descriptor(&query.call, OSD_CONTINUATION_QUERY_LIST, list, sizeof(list));
	stepped_run_signed(unit, &query, 1, change_bound);
	expect_good(unit);
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
		cmocka_unit_test(test_an_extension_capability_counts_as_long_as_the_command_runs),
		cmocka_unit_test(test_so_it_does_in_the_background),
		cmocka_unit_test(test_nothing_long_is_summed_up_in_a_command_s_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
