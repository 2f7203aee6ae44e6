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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_read_credential_locks_out_nobody, set_up,
						unit_tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_working_key_locks_out_nobody_in_another_partition, set_up,
			unit_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
