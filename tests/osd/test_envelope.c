/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Commands in envelopes do what they do by themselves, and letters belong to who sent them, for a
 * while. (With UNIT_ENVELOPES=1 in the environment, all tests of this folder send theirs so.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "tests/osd/function_call.h"
#include "tests/osd/secured.h"
#include "wire/envelope.h"

enum { ALICE = 1, BOB = 2 };

static int set_up(void **state)
{
	int result = unit_set_up_with_object(state);
	struct unit *unit = *state;

	unit->nexus = ALICE;
	return result;
}

static int tear_down(void **state)
{
	unit_in_envelopes = false;
	return unit_tear_down(state);
}

/* ---- SEND and FETCH by hand ---- */

/* The letter of a call, and how long it is. The caller frees it. */
static uint8_t *letter_of(struct call *call, size_t *length, size_t *in_capacity)
{
	struct encoded_call encoded;
	struct envelope_letter letter;
	uint8_t *bytes;

	call_encode(call, &encoded);
	letter = (struct envelope_letter){ encoded.cdb, encoded.cdb_length, encoded.out_length };
	*length = ENVELOPE_HEAD_BYTES + encoded.out_length;
	*in_capacity = encoded.in_capacity;
	bytes = malloc(*length);
	envelope_letter_encode(&letter, bytes);
	memcpy(bytes + ENVELOPE_HEAD_BYTES, encoded.out, encoded.out_length);
	free(encoded.out);
	return bytes;
}

static void send_letter(struct unit *unit, uint64_t tag, const uint8_t *letter, size_t length,
			uint32_t said)
{
	const struct envelope_cdb send = { ENVELOPE_SEND, tag, said };
	uint8_t cdb[ENVELOPE_CDB_BYTES];

	envelope_cdb_encode(&send, cdb);
	unit_execute(unit, cdb, sizeof(cdb), letter, length, 0);
}

static void send(struct unit *unit, uint64_t tag, struct call *call)
{
	size_t length, in_capacity;
	uint8_t *letter = letter_of(call, &length, &in_capacity);

	send_letter(unit, tag, letter, length, (uint32_t)length);
	free(letter);
}

static void fetch(struct unit *unit, uint64_t tag, uint32_t space, size_t in_capacity)
{
	const struct envelope_cdb fetch_cdb = { ENVELOPE_FETCH, tag, space };
	uint8_t cdb[ENVELOPE_CDB_BYTES];

	envelope_cdb_encode(&fetch_cdb, cdb);
	unit_execute(unit, cdb, sizeof(cdb), NULL, 0, in_capacity);
}

static struct envelope_answer fetch_answer(struct unit *unit, uint64_t tag, size_t in_capacity)
{
	struct envelope_answer answer;

	fetch(unit, tag, (uint32_t)(ENVELOPE_HEAD_BYTES + in_capacity),
	      ENVELOPE_HEAD_BYTES + in_capacity);
	expect_good(unit);
	assert_int_equal(
		envelope_answer_decode(unit->data_in, unit->command.data_in_length, &answer), 0);
	return answer;
}

/* What SEND and FETCH themselves are refused for. Not about an object, so none is named. */
static void expect_refused(struct unit *unit, uint16_t code, int field)
{
	struct osd_sense sense = unit_sense(unit);

	assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
	assert_int_equal(sense.key, SENSE_ILLEGAL_REQUEST);
	assert_int_equal(sense.code, code);
	assert_int_equal(sense.has_field, field >= 0);
	assert_int_equal(field >= 0 ? sense.field : -1, field);
	assert_int_equal(sense.field_in_cdb, code == SENSE_INVALID_FIELD_IN_CDB);
	assert_int_equal(unit->command.data_in_length, 0);
}

static struct call write_call(const char *text)
{
	struct call call = call_of(OSD_WRITE, P, O);

	call_data(&call, text, strlen(text));
	return call;
}

static struct call read_call(size_t length)
{
	struct call call = call_of(OSD_READ, P, O);

	call.cdb.length = call.data_in_capacity = length;
	return call;
}

static void expect_content(struct unit *unit, const char *text)
{
	struct call call = read_call(strlen(text));

	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, text, strlen(text));
}

/* ---- the command inside ---- */

static void test_a_write_happens_when_it_is_fetched(void **state)
{
	struct unit *unit = *state;
	struct call call = write_call("before");
	struct envelope_answer answer;

	call_run(unit, &call);
	expect_good(unit);
	call = write_call("behind");
	send(unit, 7, &call);
	expect_good(unit);
	assert_int_equal(unit->command.data_out_used, ENVELOPE_HEAD_BYTES + 6);
	expect_content(unit, "before");
	answer = fetch_answer(unit, 7, 0);
	assert_int_equal(answer.status, SCSI_STATUS_GOOD);
	assert_int_equal(answer.sense_length, 0);
	assert_int_equal(answer.data_length, 0);
	assert_int_equal(answer.data_out_used, 6);
	expect_content(unit, "behind");
}

static void test_commands_answer_as_they_do_by_themselves(void **state)
{
	struct unit *unit = *state;
	struct call call;
	char value[5];

	unit_in_envelopes = true;
	unit_write(unit, O, 0, "thought and memory", 18);
	expect_content(unit, "thought and memory");
	unit_set(unit, P, O, OSD_PAGES_APPLICATION, 1, "raven", 5);
	assert_int_equal(unit_get(unit, P, O, OSD_PAGES_APPLICATION, 1, value, 5), 5);
	assert_memory_equal(value, "raven", 5);
	/* Sense data with its fields; and a short READ, which has data, too. */
	call = call_of(OSD_CREATE, P, O);
	call_run(unit, &call);
	expect_field(unit, 24);
	call = read_call(100);
	call_run(unit, &call);
	assert_int_equal(unit->command.data_in_length, 100);
	assert_memory_equal(unit->data_in, "thought and memory\0", 19);
	expect_sense(unit, SENSE_RECOVERED_ERROR, SENSE_READ_PAST_END_OF_USER_OBJECT);
	unit_write(unit, O, 1 << 20, "far", 3);
}

static void test_the_longest_letter_is_written(void **state)
{
	struct unit *unit = *state;
	size_t length = ENVELOPE_DATA_OUT_MAX - 65536;
	uint8_t *data = calloc(1, length);
	struct call call = call_of(OSD_WRITE, P, O), read = call_of(OSD_READ, P, O);

	memset(data, 'm', length);
	call_data(&call, data, length);
	unit_in_envelopes = true;
	call_run(unit, &call);
	expect_good(unit);
	read.cdb.address = length - 1;
	read.cdb.length = read.data_in_capacity = 1;
	call_run(unit, &read);
	expect_good(unit);
	assert_int_equal(unit->data_in[0], 'm');
	free(data);
}

static void test_only_osd_commands_are_inside(void **state)
{
	static const uint8_t inside[ENVELOPE_CDB_BYTES] = { ENVELOPE_FETCH };
	struct unit *unit = *state;

	unit_in_envelopes = true;
	unit_execute(unit, inside, sizeof(inside), NULL, 0, 512);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_COMMAND_OPERATION_CODE);
}

static void test_a_unit_attention_is_that_of_the_command_inside(void **state)
{
	struct unit *unit = *state;
	struct call read = read_call(1);

	unit_write(unit, O, 0, "x", 1);
	osd_attention_raise_for(unit->device->conditions, ALICE, OSD_ATTENTION_RESET);
	unit_in_envelopes = true;
	call_run(unit, &read);
	expect_sense(unit, SENSE_UNIT_ATTENTION, SENSE_BUS_DEVICE_RESET_FUNCTION_OCCURRED);
	call_run(unit, &read);
	expect_good(unit);
}

static void test_security_is_that_of_the_command_inside(void **state)
{
	struct unit *unit = *state;
	struct call unsigned_write = write_call("forged");
	uint64_t contents;

	for (size_t i = 0; i < SECURED_METHODS; i++) {
		struct signed_call call;

		contents = secured_close(unit, secured_methods[i]);
		unit_in_envelopes = true;
		call_run(unit, &unsigned_write);
		assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
		assert_true(contents == contents_of(unit));
		call = signed_write(unit, secured_methods[i], "signed");
		signed_run(unit, &call);
		expect_good(unit);
		unit_in_envelopes = false;
		secured_reopen(unit, secured_methods[i]);
		expect_content(unit, "signed");
	}
}

/* ---- letters ---- */

static void expect_unknown(struct unit *unit, uint64_t tag)
{
	fetch(unit, tag, 1024, 1024);
	expect_refused(unit, SENSE_INVALID_FIELD_IN_CDB, ENVELOPE_CDB_TAG);
}

static void test_a_letter_is_fetched_once_by_who_sent_it(void **state)
{
	struct unit *unit = *state;
	struct call call = write_call("alice");

	send(unit, 7, &call);
	expect_good(unit);
	expect_unknown(unit, 8);
	unit->nexus = BOB;
	expect_unknown(unit, 7);
	unit->nexus = ALICE;
	assert_int_equal(fetch_answer(unit, 7, 0).status, SCSI_STATUS_GOOD);
	expect_unknown(unit, 7);
	expect_content(unit, "alice");
}

static void test_sessions_may_have_the_same_tag(void **state)
{
	struct unit *unit = *state;
	struct call of_alice = write_call("alice"), of_bob = write_call("bobby");

	send(unit, 7, &of_alice);
	unit->nexus = BOB;
	send(unit, 7, &of_bob);
	assert_int_equal(fetch_answer(unit, 7, 0).status, SCSI_STATUS_GOOD);
	expect_content(unit, "bobby");
	unit->nexus = ALICE;
	assert_int_equal(fetch_answer(unit, 7, 0).status, SCSI_STATUS_GOOD);
	expect_content(unit, "alice");
}

static void test_a_letter_that_is_sent_again_replaces_the_first(void **state)
{
	struct unit *unit = *state;
	struct call first = write_call("first!"), second = write_call("second");

	send(unit, 7, &first);
	send(unit, 7, &second);
	expect_good(unit);
	assert_int_equal(fetch_answer(unit, 7, 0).status, SCSI_STATUS_GOOD);
	expect_content(unit, "second");
	expect_unknown(unit, 7);
}

static void expect_busy(struct unit *unit)
{
	assert_int_equal(unit->command.status, SCSI_STATUS_BUSY);
}

static void test_one_session_leaves_letters_to_others(void **state)
{
	struct unit *unit = *state;
	struct call call = write_call("x");

	for (uint64_t tag = 1; tag <= OSD_LETTERS_OF_SESSION_MAX; tag++) {
		send(unit, tag, &call);
		expect_good(unit);
	}
	send(unit, 100, &call);
	expect_busy(unit);
	unit->nexus = BOB;
	for (uint64_t tag = OSD_LETTERS_OF_SESSION_MAX; tag < OSD_LETTERS_MAX; tag++) {
		send(unit, tag, &call);
		expect_good(unit);
	}
	send(unit, 100, &call);
	expect_busy(unit);
	/* One that is fetched makes room for one. */
	fetch_answer(unit, OSD_LETTERS_OF_SESSION_MAX, 0);
	send(unit, 100, &call);
	expect_good(unit);
}

static uint64_t read_clock(void *context)
{
	return *(const uint64_t *)context;
}

static void test_nobody_keeps_a_letter_for_long(void **state)
{
	struct unit *unit = *state;
	struct call call = write_call("x");
	uint64_t now = 1000;

	unit->device->letters.clock_ms = read_clock;
	unit->device->letters.clock_context = &now;
	send(unit, 1, &call);
	now += OSD_LETTER_MS - 1;
	send(unit, 2, &call);
	assert_int_equal(fetch_answer(unit, 1, 0).status, SCSI_STATUS_GOOD);
	for (uint64_t tag = 3; tag <= OSD_LETTERS_OF_SESSION_MAX + 1; tag++)
		send(unit, tag, &call);
	expect_good(unit);
	send(unit, 100, &call);
	expect_busy(unit);
	now += OSD_LETTER_MS;
	expect_unknown(unit, 2);
	send(unit, 100, &call);
	expect_good(unit);
}

static bool only_bob(void *context, uint64_t nexus)
{
	(void)context;
	return nexus == BOB;
}

static void test_letters_end_with_their_session(void **state)
{
	struct unit *unit = *state;
	struct call call = write_call("x");

	send(unit, 1, &call);
	unit->nexus = BOB;
	send(unit, 2, &call);
	osd_forget_sessions(unit->device, only_bob, NULL);
	assert_int_equal(fetch_answer(unit, 2, 0).status, SCSI_STATUS_GOOD);
	unit->nexus = ALICE;
	expect_unknown(unit, 1);
}

/* ---- while a letter is executed ---- */

static struct unit session;

/* Inside the command of the letter with the tag 7. */
static void meddle(void *context)
{
	struct unit *unit = context;
	struct call call = write_call("other");

	session = *unit;
	session.data_in = NULL;
	unit->device->step = NULL;
	expect_unknown(&session, 7);
	send(&session, 7, &call);
	expect_refused(&session, SENSE_COMMAND_SEQUENCE_ERROR, -1);
	send(&session, 8, &call);
	expect_good(&session);
	free(session.data_in);
	session.nexus = BOB;
}

static void test_nobody_touches_a_letter_that_is_executed(void **state)
{
	struct unit *unit = *state;
	struct call call = write_call("alice");

	session.nexus = 0;
	send(unit, 7, &call);
	unit->device->step = meddle;
	unit->device->step_context = unit;
	assert_int_equal(fetch_answer(unit, 7, 0).status, SCSI_STATUS_GOOD);
	assert_int_equal(session.nexus, BOB);
	expect_content(unit, "alice");
	assert_int_equal(fetch_answer(unit, 8, 0).status, SCSI_STATUS_GOOD);
	expect_content(unit, "other");
}

static bool always(void *context)
{
	*(unsigned *)context += 1;
	return true;
}

/* A long READ, which comes to the question whether it is aborted. */
static void test_an_abort_of_fetch_is_one_of_the_command(void **state)
{
	enum { BYTES = 4 << 20 };
	struct unit *unit = *state;
	struct call call = read_call(BYTES);
	const struct envelope_cdb fetch_cdb = { ENVELOPE_FETCH, 7, ENVELOPE_HEAD_BYTES + BYTES };
	uint8_t cdb[ENVELOPE_CDB_BYTES], *in = malloc(ENVELOPE_HEAD_BYTES + BYTES);
	unsigned asked = 0;
	struct osd_command command = { .cdb = cdb,
				       .cdb_length = sizeof(cdb),
				       .data_in = in,
				       .data_in_capacity = ENVELOPE_HEAD_BYTES + BYTES,
				       .nexus = ALICE,
				       .is_aborted = always,
				       .abort_context = &asked };

	unit_write(unit, O, BYTES - 1, "x", 1);
	unit->device->portions.pages = 16;
	unit->device->portions.turn = 1;
	send(unit, 7, &call);
	envelope_cdb_encode(&fetch_cdb, cdb);
	osd_execute(unit->device, &command);
	assert_int_equal(asked, 1);
	assert_int_equal(command.status, SCSI_STATUS_TASK_ABORTED);
	assert_int_equal(command.data_in_length, 0);
	assert_int_equal(command.sense_length, 0);
	expect_unknown(unit, 7);
	free(in);
}

/* ---- what is refused ---- */

static void test_a_wrong_send_leaves_no_letter(void **state)
{
	struct unit *unit = *state;
	struct call call = write_call("x");
	size_t length, in_capacity;
	uint8_t *letter = letter_of(&call, &length, &in_capacity);
	uint8_t *longer = calloc(1, ENVELOPE_HEAD_BYTES + ENVELOPE_DATA_OUT_MAX + 1);

	/* Less came than it says. */
	send_letter(unit, 7, letter, length - 1, (uint32_t)length);
	expect_refused(unit, SENSE_INVALID_FIELD_IN_CDB, ENVELOPE_CDB_LENGTH);
	/* A letter whose own lengths are others. */
	send_letter(unit, 7, letter, length, (uint32_t)length - 1);
	expect_refused(unit, SENSE_INVALID_FIELD_IN_PARAMETER_LIST, ENVELOPE_LETTER_DATA_LENGTH);
	letter[0] = 9;
	send_letter(unit, 7, letter, length, (uint32_t)length);
	expect_refused(unit, SENSE_INVALID_FIELD_IN_PARAMETER_LIST, 0);
	send_letter(unit, 7, longer, ENVELOPE_HEAD_BYTES + ENVELOPE_DATA_OUT_MAX + 1,
		    ENVELOPE_HEAD_BYTES + ENVELOPE_DATA_OUT_MAX + 1);
	expect_refused(unit, SENSE_INVALID_FIELD_IN_CDB, ENVELOPE_CDB_LENGTH);
	expect_unknown(unit, 7);
	free(letter);
	free(longer);
}

static void test_an_answer_needs_space_for_its_head(void **state)
{
	struct unit *unit = *state;
	struct call call = write_call("later");

	send(unit, 7, &call);
	fetch(unit, 7, ENVELOPE_HEAD_BYTES - 1, 4096);
	expect_refused(unit, SENSE_INVALID_FIELD_IN_CDB, ENVELOPE_CDB_LENGTH);
	fetch(unit, 7, ENVELOPE_HEAD_BYTES, ENVELOPE_HEAD_BYTES - 1);
	expect_refused(unit, SENSE_INVALID_FIELD_IN_CDB, ENVELOPE_CDB_LENGTH);
	/* The letter is still there. */
	assert_int_equal(fetch_answer(unit, 7, 0).status, SCSI_STATUS_GOOD);
	expect_content(unit, "later");
}

/* ---- who is asked for sessions ---- */

static void test_a_rollback_in_an_envelope_asks_for_sessions(void **state)
{
	struct unit *unit = *state;
	struct call rollback = call_of(OSD_EXECUTE, P, 0), write = write_call("x");
	uint8_t cdb[ENVELOPE_CDB_BYTES];
	struct envelope_cdb fetch_cdb = { ENVELOPE_FETCH, 7, 1024 };

	rollback.cdb.address = osd_execute_address(OSD_FUNCTION_ROLLBACK, 0);
	send(unit, 7, &rollback);
	send(unit, 8, &write);
	envelope_cdb_encode(&fetch_cdb, cdb);
	assert_true(osd_asks_for_sessions(unit->device, ALICE, cdb, sizeof(cdb)));
	assert_false(osd_asks_for_sessions(unit->device, BOB, cdb, sizeof(cdb)));
	fetch_cdb.tag = 8;
	envelope_cdb_encode(&fetch_cdb, cdb);
	assert_false(osd_asks_for_sessions(unit->device, ALICE, cdb, sizeof(cdb)));
	assert_int_equal(fetch_answer(unit, 8, 0).status, SCSI_STATUS_GOOD);
}

#define in_envelopes(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_envelopes(test_a_write_happens_when_it_is_fetched),
		in_envelopes(test_commands_answer_as_they_do_by_themselves),
		in_envelopes(test_the_longest_letter_is_written),
		in_envelopes(test_only_osd_commands_are_inside),
		in_envelopes(test_a_unit_attention_is_that_of_the_command_inside),
		cmocka_unit_test_setup_teardown(test_security_is_that_of_the_command_inside,
						secured_set_up, tear_down),
		in_envelopes(test_a_letter_is_fetched_once_by_who_sent_it),
		in_envelopes(test_sessions_may_have_the_same_tag),
		in_envelopes(test_a_letter_that_is_sent_again_replaces_the_first),
		in_envelopes(test_one_session_leaves_letters_to_others),
		in_envelopes(test_nobody_keeps_a_letter_for_long),
		in_envelopes(test_letters_end_with_their_session),
		in_envelopes(test_nobody_touches_a_letter_that_is_executed),
		in_envelopes(test_an_abort_of_fetch_is_one_of_the_command),
		in_envelopes(test_a_wrong_send_leaves_no_letter),
		in_envelopes(test_an_answer_needs_space_for_its_head),
		in_envelopes(test_a_rollback_in_an_envelope_asks_for_sessions),
	};

	unsetenv("UNIT_ENVELOPES");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
