/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * No signed request is accepted twice, whatever happens to the unit in between: also not on one
 * that takes no writes any more, which can be started and read all the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "engine/objects/objects.h"
#include "nand/power.h"
#include "osd/execute.h"
#include "osd/security_start.h"
#include "tests/osd/secured.h"

/* How far ahead the initiator's clock is: longer than a start takes. */
#define AHEAD_MS 50000
/* An object beside O. */
#define FILLER UINT64_C(0x10006)

/* ---- units that take no writes ---- */

/* As if transactions had had all numbers. */
static void use_numbers_up(struct unit *unit)
{
	struct engine_txn *txn;

	unit->engine->numbered = RECORD_NEWEST;
	assert_int_equal(engine_begin(unit->engine, ENGINE_FREE, &txn), -EOVERFLOW);
}

/*
 * Writes pieces of `bytes` to FILLER until there is no room for another one, the reserve included.
 */
static void fill_with(struct unit *unit, size_t bytes)
{
	struct engine_address filler = { .partition = P, .object = FILLER };
	uint8_t *data = malloc(bytes);
	int result = 0;

	memset(data, 'f', bytes);
	while (result == 0) {
		struct engine_txn *txn;

		assert_int_equal(engine_begin(unit->engine, ENGINE_FREE, &txn), 0);
		result = engine_append(txn, filler, data, bytes, NULL);
		if (result == 0)
			result = engine_commit(txn, false);
		else
			engine_abort(txn);
	}
	assert_int_equal(result, -ENOSPC);
	free(data);
}

/*
 * Creates objects with small attributes until none finds room any more, wherever it would have its
 * place.
 */
static void fill_gaps(struct unit *unit)
{
	static const uint8_t value[120] = { 1 };
	int failed = 0;

	for (uint64_t object = FILLER + 1; failed < 500; object++) {
		struct engine_address address = { .partition = P, .object = object };
		struct engine_txn *txn;
		int result;

		assert_int_equal(engine_begin(unit->engine, ENGINE_FREE, &txn), 0);
		result = engine_create(txn, P, ENGINE_USER_OBJECT, object, 1, NULL);
		if (result == 0)
			result = engine_attribute_set(txn, address, 0x10000, 1, value,
						      sizeof(value));
		if (result == 0)
			result = engine_commit(txn, false);
		else
			engine_abort(txn);
		assert_true(result == 0 || result == -ENOSPC);
		failed = result == 0 ? 0 : failed + 1;
	}
}

/* No new record finds room, with the reserve. (The next version of a buffered one may.) */
static void fill_up(struct unit *unit)
{
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_FREE, &txn), 0);
	assert_int_equal(engine_create(txn, P, ENGINE_USER_OBJECT, FILLER, 1, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	fill_with(unit, 1 << 20);
	fill_with(unit, 4096);
	fill_gaps(unit);
}

static int put_nothing(struct record_store *store, const struct record_key *key, uint64_t epoch,
		       unsigned flags, const void *value, uint32_t length, enum record_room room)
{
	(void)store;
	(void)key;
	(void)epoch;
	(void)flags;
	(void)value;
	(void)length;
	(void)room;
	return -ENOSPC;
}

static bool puts_nothing;

/* And where not even that finds any. */
static void stop_puts(struct unit *unit)
{
	static struct record_store_operations operations;
	struct engine_txn *txn;

	operations = *unit->engine->store->operations;
	operations.put = put_nothing;
	unit->engine->store->operations = &operations;
	puts_nothing = true;
	assert_int_equal(engine_begin(unit->engine, ENGINE_FREE, &txn), 0);
	assert_int_equal(osd_boot_epoch_write(txn, 1), 0);
	assert_int_equal(engine_commit(txn, false), -ENOSPC);
}

/* ---- starts ---- */

static uint64_t clock_of(void *context)
{
	return ((const struct unit *)context)->now_ms;
}

/*
 * The process is killed, and started again with the same keys. `lose` (may be NULL) is done to the
 * device in between.
 */
static void kill_and_start(struct unit *unit, void (*lose)(struct unit *unit))
{
	const struct engine_options options = { .clock_ms = clock_of,
						.clock_context = unit,
						.records.recover_without_nvram = lose != NULL };
	static const uint8_t uuid[16] = { 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
	struct osd_options secured = { .has_device_key = true };
	struct osd_security *security = unit->device->security;
	struct error_text error;

	/* Nothing is left to say at the end. */
	osd_nonces_destroy(security->nonces);
	security->nonces = NULL;
	osd_device_destroy(unit->device);
	engine_abandon(unit->engine);
	if (lose)
		lose(unit);
	unit->now_ms += 1000;
	memcpy(secured.device_key, secured_manager.device_key, sizeof(secured.device_key));
	if (engine_open(unit->nand, &options, &unit->engine, &error) != 0)
		fail_msg("%s", error.text);
	if (puts_nothing)
		stop_puts(unit);
	assert_int_equal(osd_device_create(unit->engine, uuid, &secured, &unit->device), 0);
}

static void kill_only(struct unit *unit)
{
	kill_and_start(unit, NULL);
}

static void end_and_start(struct unit *unit)
{
	secured_restart(unit, secured_manager.device_key);
}

/* ---- requests that only read ---- */

static void encode_read(struct unit *unit, struct signed_call *read, struct encoded_call *encoded)
{
	*read = signed_call_of(unit, OSD_READ, P, O, OSD_ALLDATA);
	read->call.cdb.length = read->call.data_in_capacity = 1;
	put_be48(read->nonce, unit->now_ms + AHEAD_MS);
	signed_encode(unit, read, encoded);
}

static struct encoded_call copy_of(const struct encoded_call *encoded)
{
	struct encoded_call copy = *encoded;

	copy.out = malloc(encoded->out_length + 1);
	memcpy(copy.out, encoded->out, encoded->out_length);
	return copy;
}

/* Executes a copy: GOOD (code 0) or refused. */
static void execute(struct unit *unit, struct signed_call *call, const struct encoded_call *encoded,
		    uint16_t code)
{
	struct encoded_call sent = copy_of(encoded);

	signed_execute(unit, call, &sent);
	if (code == 0)
		expect_good(unit);
	else
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, code);
}

static unsigned aborts;

static uint32_t choose(void *context, const struct osd_task_choice *choice, bool abort,
		       osd_task_found *found, void *found_context)
{
	(void)context;
	(void)choice;
	(void)found;
	(void)found_context;
	aborts += abort;
	return 0;
}

static void give_tasks(struct unit *unit)
{
	static const struct osd_task_set set = { .choose = choose };

	osd_device_set_tasks(unit->device, &set);
	aborts = 0;
}

static void encode_abort(struct unit *unit, struct signed_call *abort, struct encoded_call *encoded)
{
	*abort = signed_call_of(unit, OSD_PERFORM_TASK_MANAGEMENT_FUNCTION, P, 0, OSD_CMDRSP);
	abort->call.cdb.task_function = OSD_ABORT_TASK_SET;
	abort->call.cdb.length = abort->call.data_in_capacity = OSD_TASK_ANSWER_BYTES;
	put_be48(abort->nonce, unit->now_ms + AHEAD_MS + 1);
	signed_encode(unit, abort, encoded);
}

/*
 * What reads is accepted once, by a unit that has to be started with it as it is, and no second
 * time: not at once, not behind a start, and not when the clock has been set back there.
 */
static void check_once(struct unit *unit, void (*start)(struct unit *unit), int64_t clock_ms)
{
	struct signed_call read, abort;
	struct encoded_call read_bytes, abort_bytes;

	give_tasks(unit);
	encode_read(unit, &read, &read_bytes);
	encode_abort(unit, &abort, &abort_bytes);
	execute(unit, &read, &read_bytes, 0);
	assert_int_equal(unit->data_in[0], 'x');
	execute(unit, &abort, &abort_bytes, 0);
	assert_int_equal(aborts, 1);
	execute(unit, &read, &read_bytes, SENSE_NONCE_NOT_UNIQUE);
	unit->now_ms += (uint64_t)clock_ms;
	start(unit);
	give_tasks(unit);
	execute(unit, &read, &read_bytes, SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE);
	execute(unit, &abort, &abort_bytes, SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE);
	assert_int_equal(aborts, 0);
	free(read_bytes.out);
	free(abort_bytes.out);
	/* As soon as the clock is where theirs was, reading goes on. */
	unit->now_ms += 2 * AHEAD_MS;
}

static void expect_no_writes(struct unit *unit, uint16_t code)
{
	static const uint8_t data[65536];
	struct signed_call write = signed_call_of(unit, OSD_WRITE, P, O, OSD_CMDRSP);

	call_data(&write.call, data, sizeof(data));
	signed_run(unit, &write);
	expect_sense(unit, SENSE_DATA_PROTECT, code);
}

/* The clock goes on, and back, and further back. `killed`: the unit dies in between, too. */
static void check_once_by_each_clock(struct unit *unit, bool killed, uint16_t no_writes)
{
	for (int64_t clock_ms = 10; clock_ms > -30000; clock_ms -= 10000) {
		if (killed)
			check_once(unit, kill_only, clock_ms);
		check_once(unit, end_and_start, clock_ms);
		expect_no_writes(unit, no_writes);
	}
}

static void test_requests_are_accepted_once_when_numbers_have_been_used_up(void **state)
{
	struct unit *unit = *state;

	secured_set_method(unit, P, OSD_CMDRSP);
	use_numbers_up(unit);
	check_once_by_each_clock(unit, false, SENSE_SYSTEM_RESOURCE_FAILURE);
}

static void test_requests_are_accepted_once_on_a_full_device(void **state)
{
	struct unit *unit = *state;

	secured_set_method(unit, P, OSD_CMDRSP);
	fill_up(unit);
	check_once_by_each_clock(unit, true, SENSE_QUOTA_ERROR);
}

static void test_requests_are_accepted_once_where_nothing_can_be_stored(void **state)
{
	struct unit *unit = *state;

	secured_set_method(unit, P, OSD_CMDRSP);
	stop_puts(unit);
	check_once_by_each_clock(unit, true, SENSE_QUOTA_ERROR);
	puts_nothing = false;
}

static uint64_t epoch_of(struct unit *unit)
{
	return unit->device->security->boot_epoch;
}

/* So a capability of an earlier start opens nothing, there, too. */
static void test_every_start_of_a_full_device_has_its_own_boot_epoch(void **state)
{
	struct unit *unit = *state;
	uint64_t before;

	secured_set_method(unit, P, OSD_CMDRSP);
	stop_puts(unit);
	for (int start = 0; start < 3; start++) {
		struct signed_call read = signed_call_of(unit, OSD_READ, P, O, OSD_CMDRSP);

		before = epoch_of(unit);
		read.capability.boot_epoch = (uint16_t)before;
		kill_only(unit);
		assert_int_equal(epoch_of(unit), before + 1);
		unit->now_ms += 2 * OSD_NONCES_AHEAD_MS;
		fresh_nonce(unit, read.nonce);
		signed_run(unit, &read);
		expect_field(unit, unit_layout()->boot_epoch);
	}
	puts_nothing = false;
}

/* ---- no memory ---- */

static int put_without_memory(struct record_store *store, const struct record_key *key,
			      uint64_t epoch, unsigned flags, const void *value, uint32_t length,
			      enum record_room room)
{
	(void)store;
	(void)key;
	(void)epoch;
	(void)flags;
	(void)value;
	(void)length;
	(void)room;
	return -ENOMEM;
}

/*
 * It has not happened, and does not happen later: who has listened can't send it once more behind
 * the one that the initiator signs in its place.
 */
static void test_a_request_that_was_answered_busy_is_dead(void **state)
{
	struct unit *unit = *state;
	const struct record_store_operations *true_operations = unit->engine->store->operations;
	struct record_store_operations operations = *true_operations;
	struct signed_call write, again;
	struct encoded_call bytes;
	uint64_t before;

	before = secured_close(unit, OSD_ALLDATA);
	operations.put = put_without_memory;
	unit->engine->store->operations = &operations;
	write = signed_write(unit, OSD_ALLDATA, "first");
	signed_encode(unit, &write, &bytes);
	struct encoded_call sent = copy_of(&bytes);

	signed_execute(unit, &write, &sent);
	assert_int_equal(unit->command.status, SCSI_STATUS_BUSY);
	assert_int_equal(unit->command.sense_length, 0);
	unit->engine->store->operations = true_operations;
	assert_int_equal(contents_of(unit), before);
	again = signed_write(unit, OSD_ALLDATA, "again");
	signed_run(unit, &again);
	expect_good(unit);
	before = contents_of(unit);
	execute(unit, &write, &bytes, SENSE_NONCE_NOT_UNIQUE);
	assert_int_equal(contents_of(unit), before);
	free(bytes.out);
}

/* ---- what the unit notes ---- */

static void test_epoch_and_bound_are_noted_as_documented(void **state)
{
	static const uint8_t example[8] = { 0x7b, 0x68, 0xe5, 0xcf, 0x8b, 0x01, 0x03, 0x00 };
	struct unit *unit = *state;

	/* docs/format.md: epoch 3, bound 1,700,000,000,123. */
	assert_int_equal(engine_set_memo(unit->engine, get_le64(example), false), 0);
	kill_only(unit);
	assert_int_equal(epoch_of(unit), 4);
	assert_int_equal(unit->device->security->nonces_bound_ms, 1700000000123);
	assert_int_equal(engine_memo(unit->engine) - get_le64(example), UINT64_C(1) << 48);
	/* 0 means any. */
	assert_int_equal(engine_set_memo(unit->engine, UINT64_MAX << 48, false), 0);
	kill_only(unit);
	assert_int_equal(epoch_of(unit), 1);
}

static void test_a_bound_is_noted_once_a_second_and_never_lowered(void **state)
{
	struct unit *unit = *state;
	struct nand_counters before, after;
	struct engine_statistics first, last;
	const uint8_t key[OSD_KEY_BYTES] = { 1 };
	const struct osd_nonce_owner owner = { .partition = P, .key = key };
	uint64_t noted = 0, bound;
	bool for_all;

	secured_close(unit, OSD_CMDRSP);
	engine_read_statistics(unit->engine, &first);
	nand_read_counters(unit->nand, &before);
	for (int round = 0; round < 500; round++) {
		struct signed_call read;

		unit->now_ms += 10;
		read = signed_call_of(unit, OSD_READ, P, O, OSD_CMDRSP);
		read.call.cdb.length = read.call.data_in_capacity = 16;
		signed_run(unit, &read);
		expect_good(unit);
		assert_true(engine_memo(unit->engine) >= noted);
		noted = engine_memo(unit->engine);
		assert_true((noted & 0xFFFFFFFFFFFF) >= unit->now_ms);
	}
	nand_read_counters(unit->nand, &after);
	engine_read_statistics(unit->engine, &last);
	assert_in_range(after.nvram_sync_requests - before.nvram_sync_requests, 4, 6);
	/* And no transaction at all. */
	assert_int_equal(last.committed_sequence, first.committed_sequence);
	/* Nor by those that came at the same time as one who has noted it. */
	assert_int_equal(osd_security_raise_bound(unit->device, &owner, unit->now_ms, unit->now_ms,
						  &bound, &for_all),
			 0);
	assert_true(for_all);
	assert_int_equal(bound, noted & 0xFFFFFFFFFFFF);
	assert_int_equal(engine_memo(unit->engine), noted);
	nand_read_counters(unit->nand, &before);
	assert_int_equal(before.nvram_sync_requests, after.nvram_sync_requests);
}

static uint64_t noted_for_all(struct unit *unit)
{
	return engine_memo(unit->engine) & 0xFFFFFFFFFFFF;
}

static uint64_t raise_ahead(struct unit *unit, const struct osd_nonce_owner *owner)
{
	uint64_t bound;
	bool for_all;

	assert_int_equal(osd_security_raise_bound(unit->device, owner, unit->now_ms,
						  unit->now_ms + AHEAD_MS, &bound, &for_all),
			 0);
	assert_false(for_all);
	assert_true(bound >= unit->now_ms + AHEAD_MS);
	return bound;
}

/* Its place is free again, and still nothing up to it is ever accepted again. */
static void test_the_bound_for_all_takes_in_bounds_that_the_clock_has_passed(void **state)
{
	const uint8_t keys[2][OSD_KEY_BYTES] = { { 1 }, { 2 } };
	const struct osd_nonce_owner first = { .partition = P, .key = keys[0] },
				     second = { .partition = P, .key = keys[1] };
	struct unit *unit = *state;
	struct nand_counters before, after;
	uint64_t bound = raise_ahead(unit, &first);

	assert_true(noted_for_all(unit) < bound);
	/* Within the bound nothing has to be stored. */
	nand_read_counters(unit->nand, &before);
	unit->now_ms += OSD_NONCES_OWN_AHEAD_MS;
	assert_int_equal(raise_ahead(unit, &first), bound);
	nand_read_counters(unit->nand, &after);
	assert_int_equal(after.nvram_sync_requests, before.nvram_sync_requests);

	unit->now_ms = bound;
	raise_ahead(unit, &second);
	assert_int_equal(unit->device->security->ahead.count, 1);
	assert_int_equal(noted_for_all(unit), bound);
	/* Also when nothing newer than this was accepted: the end does not lower it. */
	osd_security_stop(unit->device, bound - AHEAD_MS);
	assert_int_equal(noted_for_all(unit), bound);
}

/* ---- lost NVRAM ---- */

static void seal_everything(struct unit *unit)
{
	fill_with(unit, 1 << 20);
}

static void lose_nvram(struct unit *unit)
{
	uint64_t bytes;
	uint8_t *nvram = nand_nvram(unit->nand, &bytes);

	memset(nvram, 0, bytes);
}

/* With it the bound is lost: for as long as timestamps may be ahead at all, none is taken. */
static void test_requests_are_not_accepted_again_when_the_nvram_was_lost(void **state)
{
	struct unit *unit = *state;
	struct signed_call read;
	struct encoded_call bytes;
	uint64_t epoch;

	unit_create(unit, P, FILLER);
	secured_set_method(unit, P, OSD_CMDRSP);
	seal_everything(unit);
	encode_read(unit, &read, &bytes);
	execute(unit, &read, &bytes, 0);
	epoch = epoch_of(unit);
	kill_and_start(unit, lose_nvram);
	assert_int_equal(epoch_of(unit), epoch + 1);
	execute(unit, &read, &bytes, SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE);
	kill_only(unit);
	execute(unit, &read, &bytes, SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE);
	free(bytes.out);
	unit->now_ms += OSD_NONCE_WINDOW_MAX_MS;
	encode_read(unit, &read, &bytes);
	execute(unit, &read, &bytes, 0);
	free(bytes.out);
}

/* ---- failures of the host ---- */

static void fail_host(struct unit *unit)
{
	while (nand_power_point(unit->nand) == 0)
		;
	assert_int_equal(nand_power_on(unit->nand), 0);
}

/* It takes back what was not flushed, but not that a request was accepted. */
static void test_requests_are_accepted_once_across_a_failure_of_the_host(void **state)
{
	const struct nand_power_cut cut = { .after = 200, .nvram = NAND_CUT_NVRAM_FLUSHED };
	struct unit *unit = *state;
	struct signed_call read, write;
	struct encoded_call read_bytes, write_bytes, again;
	struct error_text error;
	uint64_t epoch = epoch_of(unit);

	secured_set_method(unit, P, OSD_CMDRSP);
	assert_int_equal(engine_flush(unit->engine), 0);
	assert_int_equal(nand_arm_power_cut(unit->nand, &cut, &error), 0);
	encode_read(unit, &read, &read_bytes);
	execute(unit, &read, &read_bytes, 0);
	write = signed_write(unit, OSD_CMDRSP, "taken back");
	put_be48(write.nonce, unit->now_ms + AHEAD_MS + 5000);
	signed_encode(unit, &write, &write_bytes);
	execute(unit, &write, &write_bytes, 0);
	kill_and_start(unit, fail_host);
	assert_int_equal(epoch_of(unit), epoch + 1);
	execute(unit, &read, &read_bytes, SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE);
	execute(unit, &write, &write_bytes, SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE);
	unit->now_ms += 2 * AHEAD_MS;
	encode_read(unit, &read, &again);
	execute(unit, &read, &again, 0);
	assert_int_equal(unit->data_in[0], 'x');
	free(again.out);
	free(read_bytes.out);
	free(write_bytes.out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_keys(test_requests_are_accepted_once_when_numbers_have_been_used_up),
		with_keys(test_requests_are_accepted_once_on_a_full_device),
		with_keys(test_requests_are_accepted_once_where_nothing_can_be_stored),
		with_keys(test_every_start_of_a_full_device_has_its_own_boot_epoch),
		with_keys_in_both(test_a_request_that_was_answered_busy_is_dead),
		with_keys(test_epoch_and_bound_are_noted_as_documented),
		with_keys(test_a_bound_is_noted_once_a_second_and_never_lowered),
		with_keys(test_the_bound_for_all_takes_in_bounds_that_the_clock_has_passed),
		with_keys(test_requests_are_not_accepted_again_when_the_nvram_was_lost),
		with_keys(test_requests_are_accepted_once_across_a_failure_of_the_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
