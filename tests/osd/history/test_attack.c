/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * An intruder with all rights against a locked history, on a small device: thousands of random
 * commands, each meant to take the way back, while the clock jumps and the service crashes. Then
 * the owner, who is alone again, gets back every moment that he has kept. Others do their work in
 * between, which counts as soon as it is acknowledged. MUNINN_SEED and MUNINN_OPERATIONS choose
 * another run; the seed is printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "common/log.h"
#include "tests/osd/function_call.h"
#include "tests/repetition.h"

#define OTHER UINT64_C(0x20000)
#define DAY   UINT64_C(86400000)
#define YEARS (4000 * DAY)

enum {
	OBJECTS =
		6, /* of the owner, from O on; the intruder has others of the same partition too */
	MOMENTS = 40,
	PAGES_MAX = 3,
	PAGE = 4096,
	/* Between two acknowledged states of the owner. */
	COMMANDS_EACH = 400,
	COMMANDS = 4000,
};

/* What the owner has in an object: pages of one byte; 0: it is not there. */
struct kept_object {
	uint8_t byte, pages;
};

struct moment {
	uint64_t sequence; /* as LOG, ROLLBACK and VERSIONS tell it */
	struct kept_object objects[OBJECTS];
};

struct attack {
	struct unit *unit;
	uint64_t random;
	uint64_t locked; /* P, or 0: the device */
	struct kept_object now[OBJECTS];
	bool now_known; /* nobody else has changed anything since */
	struct moment moments[MOMENTS];
	uint32_t count;
	uint64_t first_ms; /* before the first one */
	uint64_t commands, good, refused, rollbacks, clones, slow, crashes, jumps;
};

static uint64_t below(struct attack *attack, uint64_t limit)
{
	uint64_t z = attack->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % limit;
}

static bool one_in(struct attack *attack, uint64_t limit)
{
	return below(attack, limit) == 0;
}

static bool is_good(const struct unit *unit)
{
	return unit->command.status == SCSI_STATUS_GOOD;
}

static bool is_too_fast(const struct unit *unit)
{
	return unit->command.status == SCSI_STATUS_CHECK_CONDITION &&
	       unit_sense(unit).code == SENSE_INSUFFICIENT_RESOURCES;
}

/* ---- the owner ---- */

static bool try_write(struct unit *unit, uint64_t object, const struct kept_object *wanted)
{
	static uint8_t data[PAGES_MAX * PAGE];
	struct call call = call_of(OSD_REMOVE, P, object);

	call_run(unit, &call);
	if (!wanted->byte)
		return is_good(unit) || unit_sense(unit).code == SENSE_INVALID_FIELD_IN_CDB;
	call = call_of(OSD_CREATE_AND_WRITE, P, object);
	call_data(&call, data, (size_t)wanted->pages * PAGE);
	memset(data, wanted->byte, sizeof(data));
	call_run(unit, &call);
	return is_good(unit);
}

/* The number of the present moment, which is a kept one from then on. */
static uint64_t number_of_now(struct unit *unit)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };
	struct engine_txn *txn;
	uint64_t sequence;

	assert_int_equal(engine_begin(unit->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_moment_resolve(txn, P, now, &sequence), 0);
	engine_abort(txn);
	return sequence;
}

/* Changes some objects, and keeps the moment if the device took all of it. */
static void work(struct attack *attack)
{
	struct unit *unit = attack->unit;

	unit->now_ms += 3000;
	for (uint32_t n = 0; n < OBJECTS; n++) {
		struct kept_object *object = &attack->now[n];

		if (attack->now_known && one_in(attack, 3))
			continue;
		object->byte = one_in(attack, 5) ? 0 : (uint8_t)(1 + below(attack, 255));
		object->pages = (uint8_t)(1 + below(attack, PAGES_MAX));
		if (!try_write(unit, O + n, object)) {
			attack->now_known = false;
			return;
		}
	}
	attack->now_known = true;
	unit->now_ms += 3000;
	if (attack->count == MOMENTS)
		return;
	attack->moments[attack->count].sequence = number_of_now(unit);
	memcpy(attack->moments[attack->count++].objects, attack->now, sizeof(attack->now));
	unit->now_ms += 1;
}

/* A small device may have given up moments before anybody has locked them. */
static void forget_those_given_up(struct attack *attack)
{
	struct engine_history history;
	struct engine_txn *txn;
	uint32_t kept = 0;

	assert_int_equal(engine_begin(attack->unit->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_history(txn, P, &history), 0);
	engine_abort(txn);
	for (uint32_t n = 0; n < attack->count; n++)
		if (attack->moments[n].sequence >= history.horizon_sequence)
			attack->moments[kept++] = attack->moments[n];
	attack->count = kept;
	assert_true(kept > 0);
}

static void lock(struct attack *attack)
{
	forget_those_given_up(attack);
	function_run_with(attack->unit, OSD_FUNCTION_SET_RETENTION, attack->locked, 0,
			  OSD_ITEM_LOCK_UNTIL, attack->unit->now_ms + YEARS);
	expect_good(attack->unit);
}

static void check_object(struct unit *unit, uint64_t partition, uint64_t object,
			 const struct kept_object *wanted)
{
	struct call call = call_of(OSD_READ, partition, object);
	size_t length = wanted->byte ? (size_t)wanted->pages * PAGE : 1;

	call.cdb.length = call.data_in_capacity = length;
	call_run(unit, &call);
	if (!wanted->byte) {
		expect_field(unit, 24);
		return;
	}
	expect_good(unit);
	for (size_t at = 0; at < length; at++)
		assert_int_equal(unit->data_in[at], wanted->byte);
	assert_int_equal(unit_get_number(unit, partition, object, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 length);
}

static void check_all(struct unit *unit, uint64_t partition, const struct moment *moment)
{
	for (uint32_t n = 0; n < OBJECTS; n++)
		check_object(unit, partition, O + n, &moment->objects[n]);
}

static void run_at(struct unit *unit, enum osd_function function, uint64_t sequence)
{
	struct function_call call;

	function_of(&call, function, P, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_SEQUENCE, sequence);
	if (function == OSD_FUNCTION_ROLLBACK)
		osd_item_add_number(&call.writer, OSD_ITEM_FORCE, 1);
	function_run(unit, &call);
}

/* The owner is alone. He may have to wait a minute, and not twice. */
static void go_back(struct attack *attack, const struct moment *moment)
{
	struct unit *unit = attack->unit;

	run_at(unit, OSD_FUNCTION_ROLLBACK, moment->sequence);
	if (is_too_fast(unit)) {
		attack->slow++;
		unit->now_ms += 60000;
		run_at(unit, OSD_FUNCTION_ROLLBACK, moment->sequence);
	}
	expect_good(unit);
	check_all(unit, P, moment);
}

static void get_back_every_moment(struct attack *attack)
{
	struct unit *unit = attack->unit;

	unit->now_ms += 1000;
	for (uint32_t n = 0; n < attack->count; n++) {
		const struct moment *moment = &attack->moments[n];

		run_at(unit, OSD_FUNCTION_VIEW, moment->sequence);
		expect_good(unit);
		check_all(unit, function_at_version(function_number(unit, OSD_ITEM_VERSION)),
			  moment);
	}
	for (uint32_t n = 0; n < attack->count; n++)
		go_back(attack, &attack->moments[below(attack, attack->count)]);
	for (uint32_t n = attack->count; n--;)
		go_back(attack, &attack->moments[n]);
}

/* ---- the intruder ---- */

static uint64_t some_partition(struct attack *attack)
{
	static const uint64_t partitions[] = { P, P, P, OTHER, 0, OTHER + 1, OTHER + 2, P + 1 };

	return partitions[below(attack, sizeof(partitions) / sizeof(partitions[0]))];
}

static uint64_t some_object(struct attack *attack)
{
	return O + below(attack, OBJECTS + 10);
}

/* Any moment there may be, those of the owner more often than others. */
static void add_some_moment(struct attack *attack, struct function_call *call)
{
	const struct unit *unit = attack->unit;

	switch (below(attack, 6)) {
	case 0:
		osd_item_add_number(&call->writer, OSD_ITEM_VERSION, 1 + below(attack, 300));
		break;
	case 1:
		osd_item_add_number(&call->writer, OSD_ITEM_VERSION, 0x8000 + below(attack, 100));
		break;
	case 2:
		osd_item_add_number(&call->writer, OSD_ITEM_TIME,
				    unit->now_ms - below(attack, 20000));
		break;
	case 3:
		osd_item_add_number(&call->writer, OSD_ITEM_TIME,
				    attack->first_ms + below(attack, max_u64(unit->now_ms,
									     attack->first_ms + 1) -
									     attack->first_ms));
		break;
	default:
		osd_item_add_number(&call->writer, OSD_ITEM_SEQUENCE,
				    attack->moments[below(attack, attack->count)].sequence);
		break;
	}
}

static void travel(struct attack *attack, enum osd_function function)
{
	uint64_t partition = some_partition(attack), object = 0;
	struct function_call call;

	if (function == OSD_FUNCTION_UNDO ||
	    (function == OSD_FUNCTION_ROLLBACK && one_in(attack, 3))) {
		partition = partition ? partition : P;
		object = some_object(attack);
	}
	function_of(&call, function, partition, object);
	if (function == OSD_FUNCTION_UNDO)
		osd_item_add_number(&call.writer, OSD_ITEM_MODIFICATIONS, 1 + below(attack, 3));
	else if (function == OSD_FUNCTION_DROP)
		osd_item_add_number(&call.writer, OSD_ITEM_VERSION,
				    (partition ? 1 : 0x8000) + below(attack, 300));
	else if (function != OSD_FUNCTION_SNAPSHOT &&
		 !(function == OSD_FUNCTION_VIEW && one_in(attack, 2)))
		add_some_moment(attack, &call);
	if (function == OSD_FUNCTION_ROLLBACK)
		osd_item_add_number(&call.writer, OSD_ITEM_FORCE, 1);
	function_run(attack->unit, &call);
	attack->rollbacks += function == OSD_FUNCTION_ROLLBACK && is_good(attack->unit);
}

static void set_retention(struct attack *attack)
{
	struct function_call call;

	function_of(&call, OSD_FUNCTION_SET_RETENTION, some_partition(attack), 0);
	if (one_in(attack, 2))
		osd_item_add_number(&call.writer, OSD_ITEM_KIND, below(attack, 3));
	if (one_in(attack, 2))
		osd_item_add_number(&call.writer, OSD_ITEM_KEEP_ALL, below(attack, 100000));
	if (one_in(attack, 3)) {
		osd_item_add_number(&call.writer, OSD_ITEM_KEEP_INTERVAL, 1 + below(attack, 10000));
		osd_item_add_number(&call.writer, OSD_ITEM_KEEP_INTERVAL_FOR,
				    1 + below(attack, 100000));
	}
	if (one_in(attack, 3))
		osd_item_add_number(
			&call.writer, OSD_ITEM_LOCK_UNTIL,
			one_in(attack, 2) ? 0 : attack->unit->now_ms + below(attack, 2 * YEARS));
	function_run(attack->unit, &call);
}

static void store(struct attack *attack, uint16_t action)
{
	static const uint8_t garbage[16 * PAGE] = { 0xaa, 0x55 };
	uint64_t partition = some_partition(attack);
	struct call call = call_of(action, partition ? partition : P,
				   action == OSD_CREATE_PARTITION || action == OSD_REMOVE_PARTITION
					   ? 0
					   : some_object(attack));

	call.cdb.address = below(attack, 3 * PAGE);
	call.cdb.length = below(attack, 3 * PAGE);
	if (action == OSD_WRITE || action == OSD_CREATE_AND_WRITE)
		call_data(&call, garbage, 1 + below(attack, PAGES_MAX * PAGE));
	if (action == OSD_APPEND) {
		call.cdb.address = 0;
		call_data(&call, garbage, 1 + below(attack, sizeof(garbage)));
	}
	if (action == OSD_CREATE_PARTITION || action == OSD_REMOVE_PARTITION) {
		call.cdb.address = call.cdb.length = 0;
		if (action == OSD_REMOVE_PARTITION)
			call.cdb.command_options = OSD_REMOVE_CONTENTS;
	}
	call_run(attack->unit, &call);
}

static void duplicate(struct attack *attack, uint16_t action)
{
	struct call call = call_of(action, OTHER + 1 + below(attack, 2), 0);

	call.cdb.address = one_in(attack, 2) ? P : OTHER;
	call_run(attack->unit, &call);
	attack->clones += is_good(attack->unit);
}

static void set_limits(struct attack *attack)
{
	struct call call = call_of(OSD_SET_ATTRIBUTES, P, 0);
	uint32_t number = one_in(attack, 2) ? OSD_QUOTA_CAPACITY : OSD_QUOTA_OBJECT_COUNT;

	call_set_number(&call, OSD_PARTITION_QUOTAS, number, below(attack, 3));
	call_run(attack->unit, &call);
	/* The next acknowledged work of others needs more. */
	if (is_good(attack->unit) && one_in(attack, 2)) {
		call = call_of(OSD_SET_ATTRIBUTES, P, 0);
		call_set_number(&call, OSD_PARTITION_QUOTAS, number, UINT64_MAX);
		call_run(attack->unit, &call);
	}
}

/* Some attribute that means something to the target, of a partition, the root or an object. */
static void set_anything(struct attack *attack)
{
	static const uint32_t pages[] = { 0x00000000, 0x30000000, 0x50000000,
					  0x60000000, 0x90000000, 0xB0000000 };
	static const uint32_t numbers[] = { 0x1, 0x9, 0x82, 0x10001, 0x10002, 0x10081, 0x20002 };
	const uint32_t page = pages[below(attack, 6)] + (uint32_t)below(attack, 0x12);
	const uint32_t number = one_in(attack, 2) ? numbers[below(attack, 7)]
						  : (uint32_t)below(attack, 0x100);
	uint64_t partition = some_partition(attack);
	struct call call = call_of(OSD_SET_ATTRIBUTES, partition,
				   partition && one_in(attack, 2) ? some_object(attack) : 0);
	bool is_short = one_in(attack, 2);
	uint8_t value[8];

	put_be64(value, below(attack, 2) ? below(attack, 10) : UINT64_MAX - below(attack, 3));
	call_set(&call, page, number, value + (is_short ? 7 : 0), is_short ? 1 : 8);
	call_run(attack->unit, &call);
}

/* The same command many times: it fills whatever it fills. */
static void flood(struct attack *attack)
{
	const enum osd_function functions[] = { OSD_FUNCTION_ROLLBACK, OSD_FUNCTION_SNAPSHOT,
						OSD_FUNCTION_VIEW, OSD_FUNCTION_UNDO };
	const enum osd_function function = functions[below(attack, 4)];

	for (int n = 0; n < 200; n++) {
		travel(attack, function);
		if (one_in(attack, 3))
			store(attack, OSD_WRITE);
	}
}

static void merge(struct attack *attack)
{
	struct engine_merge_result total = { 0 };

	for (int steps = 0; steps < 20; steps++)
		engine_merge(attack->unit->engine, &total);
}

/* What somebody may do to the target's host from the net, or wait for. */
static void disturb(struct attack *attack)
{
	struct unit *unit = attack->unit;
	uint64_t jump;

	switch (below(attack, 8)) {
	case 0:
		unit_crash(unit);
		function_subscribe(unit);
		attack->crashes++;
		break;
	case 1:
		jump = one_in(attack, 2) ? 5000 * DAY : below(attack, 100000);
		unit->now_ms += jump;
		unit->jumped_ms += jump;
		attack->jumps++;
		break;
	case 2:
		/* Back to what it was, or further. */
		jump = min_u64(unit->jumped_ms, below(attack, 2) ? UINT64_MAX : 10000);
		unit->now_ms -= jump;
		unit->jumped_ms -= jump;
		attack->jumps++;
		break;
	default:
		unit->now_ms += below(attack, 30000);
		break;
	}
}

static void attack_once(struct attack *attack)
{
	static const enum osd_function functions[] = {
		OSD_FUNCTION_ROLLBACK, OSD_FUNCTION_ROLLBACK, OSD_FUNCTION_ROLLBACK,
		OSD_FUNCTION_SNAPSHOT, OSD_FUNCTION_DROP,     OSD_FUNCTION_VIEW,
		OSD_FUNCTION_UNDO,
	};
	static const uint16_t stores[] = {
		OSD_WRITE,  OSD_APPEND, OSD_APPEND,           OSD_CREATE_AND_WRITE, OSD_REMOVE,
		OSD_REMOVE, OSD_PUNCH,  OSD_CREATE_PARTITION, OSD_REMOVE_PARTITION, OSD_CLEAR,
	};
	static const uint16_t duplicates[] = { OSD_CREATE_CLONE, OSD_CREATE_SNAPSHOT,
					       OSD_REFRESH_SNAPSHOT_OR_CLONE, OSD_DETACH_CLONE };
	struct call format = call_of(OSD_FORMAT_OSD, 0, 0);
	uint64_t kind = below(attack, 100);

	attack->unit->now_ms += below(attack, 20);
	if (kind < 45)
		travel(attack, functions[below(attack, sizeof(functions) / sizeof(functions[0]))]);
	else if (kind < 80)
		store(attack, stores[below(attack, sizeof(stores) / sizeof(stores[0]))]);
	else if (kind < 86)
		set_retention(attack);
	else if (kind < 92)
		duplicate(attack, duplicates[below(attack, 4)]);
	else if (kind < 93)
		set_limits(attack);
	else if (kind < 95)
		set_anything(attack);
	else if (kind < 96)
		call_run(attack->unit, &format);
	else if (kind < 97)
		merge(attack);
	else if (kind < 98 && one_in(attack, 5))
		flood(attack);
	else
		disturb(attack);
	attack->now_known = false;
	attack->commands++;
	attack->good += is_good(attack->unit);
	attack->refused += !is_good(attack->unit);
}

/* ---- runs ---- */

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static void run(const char *name, uint64_t locked, uint64_t bytes, uint64_t otherwise_seed)
{
	uint64_t commands = setting("MUNINN_OPERATIONS", rounds(COMMANDS));
	struct unit unit;
	struct attack *attack = calloc(1, sizeof(*attack));

	assert_non_null(attack);
	log_configure(NULL, LOG_LEVEL_ERROR);
	attack->unit = &unit;
	attack->locked = locked;
	attack->random = setting("MUNINN_SEED", otherwise_seed);
	printf("%s: MUNINN_SEED=%llu MUNINN_OPERATIONS=%llu\n", name,
	       (unsigned long long)attack->random, (unsigned long long)commands);
	unit_open(&unit, bytes);
	function_subscribe(&unit);
	unit_create_partition(&unit, P);
	unit_create_partition(&unit, OTHER);
	attack->first_ms = unit.now_ms;
	for (int n = 0; n < 4; n++)
		work(attack);
	lock(attack);
	while (attack->commands < commands) {
		for (int n = 0; n < COMMANDS_EACH; n++)
			attack_once(attack);
		work(attack);
	}
	/* He is cut off. */
	get_back_every_moment(attack);
	printf("%llu operations: %llu good, %llu refusals, %llu crashes, %llu jumps of the clock, "
	       "%llu rollbacks, %llu clones; %u moments compared, %llu waits of a minute\n",
	       (unsigned long long)attack->commands, (unsigned long long)attack->good,
	       (unsigned long long)attack->refused, (unsigned long long)attack->crashes,
	       (unsigned long long)attack->jumps, (unsigned long long)attack->rollbacks,
	       (unsigned long long)attack->clones, attack->count, (unsigned long long)attack->slow);
	unit_close(&unit);
	free(attack);
}

static void test_a_locked_partition_gets_back_every_moment(void **state)
{
	(void)state;
	run("a partition", P, 64 << 20, 1);
	run("a partition on a device that runs full", P, 14 << 20, 2);
}

static void test_partitions_of_a_locked_device_get_back_every_moment(void **state)
{
	(void)state;
	run("the device", 0, 64 << 20, 3);
	run("a device that runs full", 0, 14 << 20, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_locked_partition_gets_back_every_moment),
		cmocka_unit_test(test_partitions_of_a_locked_device_get_back_every_moment),
	};

	return cmocka_run_group_tests_name("attack", tests, NULL, NULL);
}
