/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which commands are executed at once, and that nothing has happened when one is not. (The other
 * tests of this folder try all their commands so first, as the service does.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/objects/objects.h"
#include "osd/execute.h"
#include "tests/osd/unit.h"

/* Tries a call, and nothing else. */
static bool try_call(struct unit *unit, struct call *call)
{
	struct encoded_call encoded;
	bool done;

	call_encode(call, &encoded);
	free(unit->data_in);
	unit->data_in = calloc(1, encoded.in_capacity + 1);
	unit->command = (struct osd_command){
		.cdb = encoded.cdb,
		.cdb_length = encoded.cdb_length,
		.data_out = encoded.out,
		.data_out_length = encoded.out_length,
		.data_in = unit->data_in,
		.data_in_capacity = encoded.in_capacity,
		.nexus = unit->nexus,
	};
	done = osd_execute_at_once(unit->device, &unit->command, NULL);
	free(encoded.out);
	return done;
}

static struct call write_call(const void *data, size_t length)
{
	struct call call = call_of(OSD_WRITE, P, O);

	call_data(&call, data, length);
	return call;
}

static struct call read_call(size_t length)
{
	struct call call = call_of(OSD_READ, P, O);

	call.cdb.length = length;
	call.data_in_capacity = length;
	return call;
}

static void test_short_commands_are_executed_at_once(void **state)
{
	struct unit *unit = *state;
	struct call write = write_call("written", 8), read = read_call(8);
	struct call create = call_of(OSD_CREATE, P, 0), get = call_of(OSD_GET_ATTRIBUTES, P, O);
	struct call set = call_of(OSD_SET_ATTRIBUTES, P, O);

	assert_true(try_call(unit, &write));
	assert_int_equal(unit->command.status, SCSI_STATUS_GOOD);
	assert_true(try_call(unit, &read));
	assert_string_equal((char *)unit->data_in, "written");
	assert_true(try_call(unit, &create));
	call_set_number(&set, 0x10000, 1, 42);
	assert_true(try_call(unit, &set));
	call_get(&get, 0x10000, 1);
	assert_true(try_call(unit, &get));
	assert_int_equal(unit_get_number(unit, P, O, 0x10000, 1), 42);
}

static void test_what_takes_long_is_not_tried(void **state)
{
	static const uint8_t much[1 << 17];
	struct unit *unit = *state;
	struct call large = write_call(much, sizeof(much)), stable = write_call("written", 8);
	struct call flush = call_of(OSD_FLUSH, P, O), root = call_of(OSD_GET_ATTRIBUTES, 0, 0);
	struct call many = call_of(OSD_CREATE, P, 0), list = call_of(OSD_LIST, P, 0);

	stable.cdb.fua = true;
	many.cdb.objects = 1000;
	list.cdb.length = list.data_in_capacity = 1024;
	call_get(&root, OSD_PAGES_ROOT + 1, 1);
	assert_false(try_call(unit, &large));
	assert_false(try_call(unit, &stable));
	assert_false(try_call(unit, &flush));
	assert_false(try_call(unit, &many));
	assert_false(try_call(unit, &list));
	assert_false(try_call(unit, &root));
}

static void test_when_it_would_wait_nothing_has_happened(void **state)
{
	struct unit *unit = *state;
	struct call write = write_call("written", 8), read = read_call(8);
	uint64_t since;

	unit_write(unit, O, 0, "nothing", 8);
	since = turn_share(&unit->engine->turn);
	assert_false(try_call(unit, &write));
	assert_true(try_call(unit, &read));
	turn_unshare(&unit->engine->turn, since);
	assert_string_equal((char *)unit->data_in, "nothing");
	turn_take(&unit->engine->turn);
	assert_false(try_call(unit, &read));
	turn_give(&unit->engine->turn);
}

static void test_what_fails_is_left_to_whoever_may_wait(void **state)
{
	struct unit *unit = *state;
	struct call absent = call_of(OSD_READ, P, O + 77);
	struct osd_damage_summary damage;

	absent.cdb.length = absent.data_in_capacity = 8;
	assert_false(try_call(unit, &absent));
	damage = osd_damage_read(&unit->device->damage, P, O + 77);
	assert_int_equal(damage.kinds, 0);
	call_run(unit, &absent);
	assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
}

static void test_a_unit_attention_is_told_at_once_and_once(void **state)
{
	struct unit *unit = *state;
	struct call read = read_call(8);

	unit_write(unit, O, 0, "nothing", 8);
	unit->nexus = 7;
	assert_true(try_call(unit, &read));
	osd_attention_raise_for(unit->device->conditions, 7, OSD_ATTENTION_RESET);
	assert_true(try_call(unit, &read));
	assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
	assert_true(try_call(unit, &read));
	assert_int_equal(unit->command.status, SCSI_STATUS_GOOD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_short_commands_are_executed_at_once),
		with_object(test_what_takes_long_is_not_tried),
		with_object(test_when_it_would_wait_nothing_has_happened),
		with_object(test_what_fails_is_left_to_whoever_may_wait),
		with_object(test_a_unit_attention_is_told_at_once_and_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
