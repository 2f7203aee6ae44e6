/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A secured unit whose sequence numbers have been used up can't note anything, but it can be started and read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "engine/objects.h"
#include "osd/security.h"
#include "osd/standard.h"
#include "tests/osd/secured.h"

static void expect_read(struct unit *unit, uint8_t method)
{
	struct signed_call read = signed_call_of(unit, OSD_READ, P, O, method);
	struct encoded_call encoded;

	read.call.cdb.length = read.call.data_in_capacity = 1;
	signed_encode(unit, &read, &encoded);
	signed_execute(unit, &read, &encoded);
	expect_good(unit);
	assert_int_equal(unit->data_in[0], 'x');
}

/* As if transactions had had all numbers. */
static void use_numbers_up(struct unit *unit)
{
	struct engine_txn *txn;

	unit->engine->numbered = RECORD_NEWEST;
	assert_int_equal(engine_begin(unit->engine, ENGINE_FREE, &txn), -EOVERFLOW);
}

static void test_what_is_secured_can_be_read_when_nothing_can_be_written(void **state)
{
	struct unit *unit = *state;

	secured_set_method(unit, P, OSD_CMDRSP);
	expect_read(unit, OSD_CMDRSP);
	use_numbers_up(unit);
	for (int start = 0; start < 2; start++) {
		struct signed_call write = signed_write(unit, OSD_CMDRSP, "y");

		/* Farther than what was noted before. */
		unit->now_ms += 5000;
		expect_read(unit, OSD_CMDRSP);
		expect_read(unit, OSD_ALLDATA);
		fresh_nonce(unit, write.nonce);
		signed_run(unit, &write);
		expect_sense(unit, SENSE_DATA_PROTECT, SENSE_SYSTEM_RESOURCE_FAILURE);
		secured_restart(unit, secured_manager.device_key);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_keys(test_what_is_secured_can_be_read_when_nothing_can_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
