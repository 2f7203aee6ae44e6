/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Signed requests count once and in time, also after a restart; frozen keys and audit values open
 * nothing.
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
#include "osd/keys.h"
#include "osd/security_start.h"
#include "tests/osd/secured.h"

#define M (&secured_manager)

/* ---- nonces, and what is frozen ---- */

static void test_a_request_is_not_accepted_twice(void **state)
{
	struct unit *unit = *state;

	secured_close(unit, OSD_CMDRSP);
	for (size_t i = 0; i < 2; i++) {
		struct signed_call call =
			signed_write(unit, i == 0 ? OSD_CMDRSP : OSD_ALLDATA, "once");
		uint64_t after;

		signed_run(unit, &call);
		expect_good(unit);
		after = contents_of(unit);
		signed_run(unit, &call);
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_NOT_UNIQUE);
		assert_true(answer_is_signed(unit));
		assert_int_equal(contents_of(unit), after);
	}
}

static void test_a_refused_request_uses_its_nonce_up_only_if_it_is_genuine(void **state)
{
	struct unit *unit = *state;
	struct encoded_call encoded;
	struct signed_call call;

	secured_close(unit, OSD_CMDRSP);
	call = signed_write(unit, OSD_CMDRSP, "forged");
	signed_encode(unit, &call, &encoded);
	encoded.cdb[unit_layout()->check_value] ^= 1;
	signed_execute(unit, &call, &encoded);
	expect_field(unit, unit_layout()->check_value);
	call.capability.permissions = 0;
	signed_run(unit, &call);
	expect_field(unit, 129);
	call.call.data = "other";
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_NOT_UNIQUE);
	/* With another credential it is another request. */
	call.capability.permissions = 0xFFFC;
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_timestamps_of_nonces_have_to_be_in_time(void **state)
{
	static const struct {
		int64_t offset_ms;
		bool in_time;
	} cases[] = { { -60001, false }, { -60000, true }, { 60000, true }, { 60001, false } };
	struct unit *unit = *state;
	uint64_t before;

	secured_close(unit, OSD_CMDRSP);
	/* So that the unit has been running for longer than the window. */
	unit->now_ms += 100000;
	for (size_t i = 0; i < 4; i++) {
		struct signed_call call = signed_write(unit, OSD_CMDRSP, "timely");

		before = contents_of(unit);
		put_be48(call.nonce, unit->now_ms + (uint64_t)cases[i].offset_ms);
		signed_run(unit, &call);
		if (cases[i].in_time) {
			expect_good(unit);
			continue;
		}
		expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE);
		assert_int_equal(contents_of(unit), before);
	}
}

static void test_the_window_of_a_partition_can_be_set(void **state)
{
	struct unit *unit = *state;
	uint8_t window[6], too_long[6];
	struct call set = call_of(OSD_SET_ATTRIBUTES, P, 0);
	struct signed_call call;

	put_be48(window, 1000);
	put_be48(too_long, 600001);
	unit_set(unit, P, 0, OSD_PARTITION_SECURITY, OSD_SECURITY_OLDEST_NONCE, window, 6);
	call_set(&set, OSD_PARTITION_SECURITY, OSD_SECURITY_NEWEST_NONCE, too_long, 6);
	call_run(unit, &set);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	secured_close(unit, OSD_CMDRSP);
	unit->now_ms += 100000;
	call = signed_write(unit, OSD_CMDRSP, "late");
	put_be48(call.nonce, unit->now_ms - 1001);
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE);
	call = signed_write(unit, OSD_CMDRSP, "timely");
	put_be48(call.nonce, unit->now_ms - 1000);
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_requests_from_before_a_restart_are_not_accepted(void **state)
{
	struct unit *unit = *state;
	struct encoded_call encoded;
	struct signed_call call;

	secured_close(unit, OSD_CMDRSP);
	call = signed_write(unit, OSD_CMDRSP, "old");
	signed_encode(unit, &call, &encoded);
	unit->now_ms += 10;
	secured_restart(unit, M->device_key);
	signed_execute(unit, &call, &encoded);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE);
	call = signed_write(unit, OSD_CMDRSP, "new");
	signed_run(unit, &call);
	expect_good(unit);
}

/* Ends the unit without a word, as a crash does. */
static void crash(struct unit *unit)
{
	struct osd_security *security = unit->device->security;

	osd_nonces_destroy(security->nonces);
	security->nonces = NULL;
	secured_restart(unit, M->device_key);
}

static void end(struct unit *unit)
{
	secured_restart(unit, M->device_key);
}

/* The request of a clock that is ahead is genuine behind the start, and its timestamp as well. */
static void check_ahead_of_a_restart(struct unit *unit, void (*restart)(struct unit *unit),
				     int64_t clock_ms)
{
	struct signed_call call = signed_write(unit, OSD_CMDRSP, "ahead");
	uint64_t before;

	put_be48(call.nonce, unit->now_ms + 50000);
	signed_run(unit, &call);
	expect_good(unit);
	unit->now_ms += (uint64_t)clock_ms;
	restart(unit);
	before = contents_of(unit);
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE);
	assert_int_equal(contents_of(unit), before);
	/* When the clock has passed what was noted for it, the credential is good again. */
	unit->now_ms += 50000 - (uint64_t)clock_ms + OSD_NONCES_OWN_AHEAD_MS + 1;
	call = signed_write(unit, OSD_CMDRSP, "later");
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_requests_from_the_future_are_not_accepted_again_after_a_restart(void **state)
{
	secured_close(*state, OSD_CMDRSP);
	check_ahead_of_a_restart(*state, end, 10000);
	check_ahead_of_a_restart(*state, crash, 10000);
}

static void test_requests_are_not_accepted_again_when_the_clock_was_set_back(void **state)
{
	secured_close(*state, OSD_CMDRSP);
	check_ahead_of_a_restart(*state, end, -20000);
	check_ahead_of_a_restart(*state, crash, -5000);
}

static void test_a_restart_keeps_nobody_out_that_is_in_time(void **state)
{
	struct unit *unit = *state;

	secured_close(unit, OSD_CMDRSP);
	for (int round = 0; round < 20; round++) {
		struct signed_call call = signed_write(unit, OSD_CMDRSP, "again");

		signed_run(unit, &call);
		expect_good(unit);
		end(unit);
	}
}

/* ---- whatever comes in which order ---- */

#define CAPTURED_MAX 300

struct captured {
	struct signed_call call;
	struct encoded_call bytes;
};

static struct encoded_call copy_of(const struct encoded_call *encoded)
{
	struct encoded_call copy = *encoded;

	copy.out = malloc(encoded->out_length + 1);
	memcpy(copy.out, encoded->out, encoded->out_length);
	return copy;
}

/* A request of one of some credentials, by a clock that is behind, right, or ahead. */
static void make_request(struct unit *unit, struct captured *captured)
{
	static const int64_t skews[] = { -59000, -2000, 0,    0,    0,    0,
					 300,    900,   1100, 2500, 5000, 59000 };
	struct signed_call *call = &captured->call;

	*call = signed_call_of(unit, OSD_READ, P, O, OSD_CMDRSP);
	call->call.cdb.length = call->call.data_in_capacity = 1;
	call->capability.expires_ms -= (uint64_t)(rand() % 8);
	put_be48(call->nonce, unit->now_ms + (uint64_t)skews[rand() % 12]);
	put_be32(call->nonce + 6, (uint32_t)rand());
	signed_encode(unit, call, &captured->bytes);
}

static bool is_accepted(struct unit *unit, struct captured *captured)
{
	struct encoded_call sent = copy_of(&captured->bytes);

	signed_execute(unit, &captured->call, &sent);
	return unit->command.status == SCSI_STATUS_GOOD;
}

/* Seconds pass, or the unit ends or dies; sometimes the clock was set back in between. */
static void let_something_happen(struct unit *unit)
{
	switch (rand() % 16) {
	case 0:
		crash(unit);
		break;
	case 1:
		end(unit);
		break;
	case 2:
		unit->now_ms -= (uint64_t)(rand() % 3000);
		crash(unit);
		break;
	case 3:
	case 4:
		unit->now_ms += (uint64_t)(rand() % 60000);
		break;
	default:
		unit->now_ms += (uint64_t)(rand() % 1500);
		break;
	}
}

static void test_whatever_happens_no_request_is_accepted_twice(void **state)
{
	static struct captured captured[CAPTURED_MAX];
	struct unit *unit = *state;
	const char *wanted = getenv("ONCE_SEED");
	unsigned seed = wanted ? (unsigned)atoi(wanted) : 20261123, made = 0;

	print_message("ONCE_SEED=%u\n", seed);
	srand(seed);
	unit->now_ms += 1000000;
	secured_close(unit, OSD_CMDRSP);
	while (made < CAPTURED_MAX) {
		make_request(unit, &captured[made]);
		/* What was refused may be accepted later: once. */
		if (!is_accepted(unit, &captured[made])) {
			free(captured[made].bytes.out);
			let_something_happen(unit);
			continue;
		}
		made++;
		let_something_happen(unit);
		for (unsigned i = 0; i < 20; i++) {
			unsigned back = (unsigned)rand() % (i < 10 ? 30 : CAPTURED_MAX);

			assert_false(back < made && is_accepted(unit, &captured[made - 1 - back]));
		}
	}
	while (made > 0)
		free(captured[--made].bytes.out);
}

static void test_frozen_keys_and_audit_values_open_nothing(void **state)
{
	struct unit *unit = *state;
	uint8_t mask[2] = { 0, 1 << KEY_VERSION }, audit[20] = "withdrawn account";
	struct signed_call call;
	uint64_t before;

	unit_set(unit, P, 0, OSD_PARTITION_SECURITY, OSD_SECURITY_FROZEN_KEYS, mask, 2);
	unit_set(unit, P, 0, OSD_PAGES_PARTITION + OSD_PAGES_VENDOR, 3, audit, sizeof(audit));
	before = secured_close(unit, OSD_CMDRSP);
	call = signed_write(unit, OSD_CMDRSP, "frozen");
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_SECURITY_WORKING_KEY_FROZEN);
	assert_int_equal(contents_of(unit), before);
	/* A new key of this version thaws it. */
	call = signed_set_key(unit, OSD_SET_WORKING_KEY, P, KEY_VERSION, 0x34,
			      &M->working[KEY_VERSION]);
	signed_run(unit, &call);
	expect_good(unit);
	before = contents_of(unit);
	call = signed_write(unit, OSD_CMDRSP, "frozen");
	memcpy(call.capability.audit, audit, sizeof(audit));
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_SECURITY_AUDIT_VALUE_FROZEN);
	assert_int_equal(contents_of(unit), before);
	call = signed_write(unit, OSD_CMDRSP, "warm");
	signed_run(unit, &call);
	expect_good(unit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_keys_in_both(test_a_request_is_not_accepted_twice),
		with_keys_in_both(test_a_refused_request_uses_its_nonce_up_only_if_it_is_genuine),
		with_keys_in_both(test_timestamps_of_nonces_have_to_be_in_time),
		with_keys(test_the_window_of_a_partition_can_be_set),
		with_keys(test_requests_from_before_a_restart_are_not_accepted),
		with_keys_in_both(
			test_requests_from_the_future_are_not_accepted_again_after_a_restart),
		with_keys(test_requests_are_not_accepted_again_when_the_clock_was_set_back),
		with_keys(test_a_restart_keeps_nobody_out_that_is_in_time),
		with_keys(test_whatever_happens_no_request_is_accepted_twice),
		with_keys_in_both(test_frozen_keys_and_audit_values_open_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
