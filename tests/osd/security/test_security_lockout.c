/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Nobody is locked out by another's credential: who dates requests ahead, as far as initiators'
 * clocks may be, hinders only himself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "osd/security_start.h"
#include "tests/osd/secured.h"

/* So few nonces that the attacker is quick. */
#define REMEMBERED 256
#define AHEAD_MS   58000
#define OTHER      (P + 1)

static struct key_pair others_key;

static int set_up(void **state)
{
	uint8_t method = OSD_CMDRSP;
	struct unit *unit;

	secured_set_up(state);
	unit = *state;
	osd_nonces_destroy(unit->device->security->nonces);
	unit->device->security->nonces = NULL;
	unit->device->security->nonces_max = REMEMBERED;
	unit->now_ms += 2 * OSD_NONCES_AHEAD_MS;
	unit_create_partition(unit, OTHER);
	unit_create(unit, OTHER, O);
	secured_set_keys_of(unit, OTHER, 0x55, &others_key);
	secured_set_method(unit, OTHER, method);
	secured_set_method(unit, P, method);
	secured_set_method(unit, 0, method);
	return 0;
}

/* READs by `credentials` different credentials, dated ahead. */
static void flood(struct unit *unit, uint32_t credentials)
{
	for (uint32_t i = 0; i < 4 * REMEMBERED; i++) {
		struct signed_call read = signed_call_of(unit, OSD_READ, P, O, OSD_CMDRSP);

		read.call.cdb.length = read.call.data_in_capacity = 1;
		read.capability.permissions = OSD_PERMISSION_READ;
		read.capability.expires_ms -= i % credentials;
		put_be48(read.nonce, unit->now_ms + AHEAD_MS + i);
		signed_run(unit, &read);
	}
	expect_good(unit);
}

static void read_from(struct unit *unit, uint64_t partition, const struct key_pair *key,
		      uint64_t slow_ms)
{
	struct signed_call read = signed_call_of(unit, OSD_READ, partition, O, OSD_CMDRSP);

	read.secret = key->authentication;
	put_be48(read.nonce, unit->now_ms - slow_ms);
	signed_run(unit, &read);
	expect_good(unit);
}

static void test_a_read_credential_locks_out_nobody(void **state)
{
	struct unit *unit = *state;

	unit->now_ms += 60000;
	for (uint32_t credentials = 1; credentials <= 16; credentials *= 2) {
		struct signed_call root = signed_call_of(unit, OSD_FLUSH_OSD, 0, 0, OSD_CMDRSP);

		flood(unit, credentials);
		/* By the same working key, by another partition's, and by the root key. */
		read_from(unit, P, &secured_manager.working[KEY_VERSION], 0);
		read_from(unit, P, &secured_manager.working[KEY_VERSION], 50000);
		read_from(unit, OTHER, &others_key, 50000);
		signed_run(unit, &root);
		expect_good(unit);
		unit->now_ms += 10000;
	}
}

/* With a working key any number of credentials can be made, but for one partition only. */
static void test_a_working_key_locks_out_nobody_in_another_partition(void **state)
{
	struct unit *unit = *state;

	unit->now_ms += 60000;
	for (uint32_t round = 0; round < 4; round++) {
		flood(unit, 4 * REMEMBERED);
		read_from(unit, OTHER, &others_key, 50000);
		unit->now_ms += 10000;
	}
}

/* ---- behind a start ---- */

/* Ends the unit without a word, as a crash does, and starts it again. */
static void crash(struct unit *unit)
{
	struct osd_security *security = unit->device->security;

	osd_nonces_destroy(security->nonces);
	security->nonces = NULL;
	secured_restart(unit, secured_manager.device_key);
	unit->device->security->nonces_max = REMEMBERED;
}

static void end(struct unit *unit)
{
	secured_restart(unit, secured_manager.device_key);
	unit->device->security->nonces_max = REMEMBERED;
}

static struct signed_call ahead(struct unit *unit, uint32_t credential, uint64_t ahead_ms)
{
	struct signed_call read = signed_call_of(unit, OSD_READ, P, O, OSD_CMDRSP);

	read.call.cdb.length = read.call.data_in_capacity = 1;
	read.capability.permissions = OSD_PERMISSION_READ;
	read.capability.expires_ms -= credential;
	put_be48(read.nonce, unit->now_ms + ahead_ms);
	return read;
}

static void expect_too_old(struct unit *unit, struct signed_call *call)
{
	signed_run(unit, call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE);
}

static void test_behind_a_start_only_those_wait_who_had_dated_requests_ahead(void **state)
{
	static void (*const starts[])(struct unit *) = { crash, end };
	struct unit *unit = *state;

	for (size_t i = 0; i < 2; i++) {
		struct signed_call captured, root, mine;

		unit->now_ms += 100000;
		captured = ahead(unit, 1, AHEAD_MS);
		signed_run(unit, &captured);
		expect_good(unit);
		starts[i](unit);
		/* As long as starting takes. */
		unit->now_ms += 2 * OSD_NONCES_AHEAD_MS;
		/* By the same working key, by another partition's, and by the root key. */
		read_from(unit, P, &secured_manager.working[KEY_VERSION], 0);
		read_from(unit, OTHER, &others_key, 0);
		root = signed_call_of(unit, OSD_FLUSH_OSD, 0, 0, OSD_CMDRSP);
		signed_run(unit, &root);
		expect_good(unit);
		/* Also by somebody else whose clock is ahead. */
		mine = ahead(unit, 2, 5000);
		signed_run(unit, &mine);
		expect_good(unit);
		/* What was captured is refused, and so is anything as old by that credential. */
		expect_too_old(unit, &captured);
		mine = ahead(unit, 1, AHEAD_MS - 20000);
		expect_too_old(unit, &mine);
		unit->now_ms += AHEAD_MS - 2 * OSD_NONCES_AHEAD_MS;
		expect_too_old(unit, &captured);
		unit->now_ms += OSD_NONCES_OWN_AHEAD_MS + 1;
		mine = ahead(unit, 1, 0);
		signed_run(unit, &mine);
		expect_good(unit);
	}
}

static void test_behind_a_start_a_working_key_makes_its_own_partition_wait_at_most(void **state)
{
	struct unit *unit = *state;
	struct signed_call first;

	unit->now_ms += 100000;
	first = ahead(unit, 1000, AHEAD_MS);
	signed_run(unit, &first);
	expect_good(unit);
	for (uint32_t i = 0; i < 2 * OSD_AHEAD_MAX; i++) {
		struct signed_call read = ahead(unit, i, AHEAD_MS + 1 + i);

		signed_run(unit, &read);
		expect_good(unit);
	}
	crash(unit);
	unit->now_ms += 2 * OSD_NONCES_AHEAD_MS;
	read_from(unit, OTHER, &others_key, 0);
	expect_too_old(unit, &first);
	first = ahead(unit, 3000, 0);
	expect_too_old(unit, &first);
}

static uint32_t version_of_device(struct unit *unit)
{
	struct engine_txn *txn;
	uint32_t version;

	assert_int_equal(engine_begin(unit->engine, ENGINE_HISTORY, &txn), 0);
	assert_int_equal(engine_snapshot(txn, 0, NULL, &version), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	return version;
}

static void roll_device_back(struct unit *unit, uint32_t version)
{
	struct engine_moment moment = { ENGINE_AT_VERSION, version };
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_HISTORY, &txn), 0);
	assert_int_equal(engine_rollback(txn, 0, moment), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

/* Nothing that takes the device back, or empties it, makes a request good again. */
static void test_formatting_and_going_back_forget_no_request(void **state)
{
	struct unit *unit = *state;
	struct osd_ahead before;
	struct signed_call captured, format;
	uint32_t version;

	unit->now_ms += 100000;
	version = version_of_device(unit);
	unit->now_ms += 10000;
	captured = ahead(unit, 1, AHEAD_MS);
	signed_run(unit, &captured);
	expect_good(unit);
	before = unit->device->security->ahead;
	assert_int_equal(before.count, 1);
	unit->now_ms += 10000;
	roll_device_back(unit, version);
	crash(unit);
	assert_memory_equal(&unit->device->security->ahead_at_start, &before, sizeof(before));
	expect_too_old(unit, &captured);
	format = signed_call_of(unit, OSD_FORMAT_OSD, 0, 0, OSD_CMDRSP);
	signed_run(unit, &format);
	expect_good(unit);
	crash(unit);
	assert_memory_equal(&unit->device->security->ahead_at_start, &before, sizeof(before));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_read_credential_locks_out_nobody, set_up,
						unit_tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_working_key_locks_out_nobody_in_another_partition, set_up,
			unit_tear_down),
		cmocka_unit_test_setup_teardown(
			test_behind_a_start_only_those_wait_who_had_dated_requests_ahead, set_up,
			unit_tear_down),
		cmocka_unit_test_setup_teardown(
			test_behind_a_start_a_working_key_makes_its_own_partition_wait_at_most,
			set_up, unit_tear_down),
		cmocka_unit_test_setup_teardown(test_formatting_and_going_back_forget_no_request,
						set_up, unit_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
