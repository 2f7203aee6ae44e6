/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * FORMAT OSD is checked in a transaction before the one that does it, and what others change in
 * between of the root's keys and policy counts in that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/osd/stepped.h"

static void change_root_key(struct unit *unit)
{
	struct key_pair ignored;
	struct signed_call call = signed_set_key(unit, OSD_SET_ROOT_KEY, 0, 0, 0x66, &ignored);

	signed_run(unit, &call);
	expect_good(unit);
}

static void close_root(struct unit *unit)
{
	secured_set_method(unit, 0, OSD_CMDRSP);
}

static uint64_t partitions_of(struct unit *unit)
{
	struct engine_address root = { 0 };
	struct engine_stat stat;
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_stat(txn, root, &stat), 0);
	engine_abort(txn);
	return stat.members;
}

static void test_a_format_is_checked_by_what_is_there_when_it_formats(void **state)
{
	for (unsigned before = 1; before <= 2; before++) {
		struct unit *unit;
		struct signed_call format;

		secured_set_up(state);
		unit = *state;
		secured_set_method(unit, 0, OSD_CMDRSP);
		format = signed_call_of(unit, OSD_FORMAT_OSD, 0, 0, OSD_CMDRSP);
		stepped_run_signed(unit, &format, before, change_root_key);
		expect_field(unit, unit_layout()->check_value);
		assert_int_equal(partitions_of(unit), 1);
		unit_tear_down(state);
	}
}

static void test_a_format_of_anybody_is_refused_when_the_root_is_closed(void **state)
{
	for (unsigned before = 1; before <= 2; before++) {
		struct unit *unit;
		struct call format;

		secured_set_up(state);
		unit = *state;
		format = call_of(OSD_FORMAT_OSD, 0, 0);
		stepped_run(unit, &format, before, close_root);
		expect_field(unit,
			     before == 1 ? OSD_FIELD_CAPABILITY_FORMAT : OSD_FIELD_SECURITY_METHOD);
		assert_int_equal(partitions_of(unit), 1);
		unit_tear_down(state);
	}
}

/* Keys that a format which fails has looked up are not taken for those of the next command. */
static void test_a_format_that_fails_leaves_no_key_at_hand(void **state)
{
	struct unit *unit;
	struct signed_call format, list;

	secured_set_up(state);
	unit = *state;
	secured_set_method(unit, 0, OSD_CMDRSP);
	format = signed_call_of(unit, OSD_FORMAT_OSD, 0, 0, OSD_CMDRSP);
	format.capability.created_ms = 1;
	signed_run(unit, &format);
	expect_field(unit, OSD_FIELD_CREATED_TIME);
	assert_int_equal(partitions_of(unit), 1);
	/* The next transaction has the number that the format would have had. */
	unit->now_ms += 5000;
	list = signed_call_of(unit, OSD_LIST, 0, 0, OSD_CMDRSP);
	list.call.cdb.length = list.call.data_in_capacity = 64;
	change_root_key(unit);
	signed_run(unit, &list);
	expect_field(unit, unit_layout()->check_value);
	unit_tear_down(state);
}

/* What it leaves of the root is enough to check it by, and it is done once. */
static void test_a_format_that_is_allowed_formats(void **state)
{
	struct unit *unit = *state;
	struct signed_call format;

	secured_set_method(unit, 0, OSD_CMDRSP);
	format = signed_call_of(unit, OSD_FORMAT_OSD, 0, 0, OSD_CMDRSP);
	signed_run(unit, &format);
	expect_good(unit);
	assert_int_equal(partitions_of(unit), 0);
	signed_run(unit, &format);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_NOT_UNIQUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_format_is_checked_by_what_is_there_when_it_formats),
		cmocka_unit_test(test_a_format_of_anybody_is_refused_when_the_root_is_closed),
		cmocka_unit_test(test_a_format_that_fails_leaves_no_key_at_hand),
		with_keys(test_a_format_that_is_allowed_formats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
