/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Commands, their errors and lists, against a target whose answers the test chooses. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "tests/client/memory_osd.h"

#define PARTITION 0x10000
#define OBJECT    0x10005

static const struct osd_client_address ADDRESS = { PARTITION, OBJECT, 0 };

/* ---- errors ---- */

/* Answers every command with the sense or status that the test wants, `times` times; then GOOD. */
struct refusal {
	struct osd_sense sense;
	uint8_t status; /* instead of sense, if not 0 */
	unsigned times;
	unsigned commands;
};

static void refuse(void *context, struct loopback_command *command)
{
	struct refusal *refusal = context;

	if (refusal->commands++ >= refusal->times)
		return;
	if (refusal->status)
		command->status = refusal->status;
	else
		loopback_fail(command, &refusal->sense);
}

static void expect_error(uint16_t action, uint8_t key, uint16_t code, int field, int expected)
{
	struct refusal refusal = { .times = UINT32_MAX };
	struct osd_client_error error;
	struct osd_client *client;
	struct loopback *loopback;
	struct osd_request request = { .cdb = { .action = action } };

	refusal.sense = (struct osd_sense){
		.key = key,
		.code = code,
		.has_field = field >= 0,
		.field_in_cdb = true,
		.field = (uint16_t)(field >= 0 ? field : 0),
	};
	osd_request_address(&request, ADDRESS);
	loopback = loopback_start(refuse, &refusal, OSD_2, &client);
	if (osd_client_run(client, &request) != expected)
		fail_msg("action 0x%x, sense %x/%04x field %d: %d instead of %d", action, key, code,
			 field, request.error.result, expected);
	error = request.error;
	if (expected < 0) {
		assert_true(error.has_sense);
		assert_int_equal(error.sense.code, code);
		assert_non_null(strstr(error.sentence.text, osd_action_name(action)));
		assert_non_null(strstr(error.sentence.text, "0x10000/0x10005"));
		assert_false(error.local);
	}
	loopback_stop(loopback, client);
}

static void test_every_sense_has_its_errno(void **state)
{
	(void)state;
	expect_error(OSD_WRITE, 5, 0x2400, 24, -ENOENT);
	expect_error(OSD_WRITE, 5, 0x2400, 16, -ENOENT);
	expect_error(OSD_CREATE, 5, 0x2400, 24, -EEXIST);
	expect_error(OSD_CREATE_AND_WRITE, 5, 0x2400, 24, -EEXIST);
	expect_error(OSD_CREATE, 5, 0x2400, 16, -ENOENT);
	expect_error(OSD_CREATE_PARTITION, 5, 0x2400, 16, -EEXIST);
	expect_error(OSD_WRITE, 5, 0x2400, 129, -EACCES);
	expect_error(OSD_WRITE, 5, 0x2400, 11, -EINVAL);
	expect_error(OSD_PUNCH, 5, 0x2400, 40, -EINVAL);
	expect_error(OSD_WRITE, 5, 0x2400, -1, -EINVAL);
	expect_error(OSD_WRITE, 5, 0x2000, -1, -EOPNOTSUPP);
	expect_error(OSD_SET_ATTRIBUTES, 5, 0x2600, -1, -EINVAL);
	expect_error(OSD_SET_ATTRIBUTES, 5, 0x1A00, -1, -EINVAL);
	expect_error(OSD_REMOVE_PARTITION, 5, 0x2C0A, -1, -ENOTEMPTY);
	expect_error(OSD_WRITE, 7, 0x5507, -1, -ENOSPC);
	expect_error(OSD_WRITE, 5, 0x5500, -1, -ENOSPC);
	expect_error(OSD_WRITE, 7, 0x2700, -1, -EROFS);
	expect_error(OSD_READ, 3, 0x1100, -1, -EIO);
	expect_error(OSD_READ, 4, 0x4400, -1, -EIO);
	expect_error(OSD_READ, 2, 0x0404, -1, -EBUSY);
	expect_error(OSD_READ, 0xB, 0x0000, -1, -EIO);
	expect_error(OSD_FORMAT_OSD, 0xB, 0x5503, -1, -EBUSY);
	expect_error(OSD_WRITE, 1, 0x1100, -1, 0);
	expect_error(OSD_WRITE, 0, 0, -1, 0);
}

static void expect_status(uint8_t status, int expected)
{
	struct refusal refusal = { .status = status, .times = 1 };
	struct osd_client_error error;
	struct osd_client *client;
	struct loopback *loopback = loopback_start(refuse, &refusal, OSD_2, &client);

	assert_int_equal(osd_client_remove(client, ADDRESS, &error), expected);
	assert_int_equal(error.status, status);
	assert_false(error.has_sense);
	loopback_stop(loopback, client);
}

static void test_a_status_without_sense_has_its_errno_too(void **state)
{
	(void)state;
	expect_status(0x08, -EBUSY);
	expect_status(0x28, -EBUSY);
	expect_status(0x18, -EACCES);
	expect_status(0x02, -EIO);
	expect_status(0x40, -EIO);
}

static void test_unit_attentions_are_taken_and_the_command_repeated(void **state)
{
	struct refusal refusal = {
		.sense = { .key = SENSE_UNIT_ATTENTION, .code = SENSE_POWER_ON_RESET }, .times = 3
	};
	struct osd_client *client;
	struct loopback *loopback = loopback_start(refuse, &refusal, OSD_2, &client);

	(void)state;
	assert_int_equal(osd_client_remove(client, ADDRESS, NULL), 0);
	assert_int_equal(refusal.commands, 4);
	/* But not for ever. */
	refusal.times = UINT32_MAX;
	assert_int_equal(osd_client_remove(client, ADDRESS, NULL), -EBUSY);
	assert_int_equal(refusal.commands, 4 + 5);
	loopback_stop(loopback, client);
}

static void hang_up(void *context, struct loopback_command *command)
{
	(void)context;
	command->hang_up = true;
}

static void test_a_target_that_dies_gives_an_error_and_no_wait(void **state)
{
	struct osd_client_error error;
	struct osd_client *client;
	struct loopback *loopback = loopback_start(hang_up, NULL, OSD_2, &client);

	(void)state;
	assert_int_equal(osd_client_remove(client, ADDRESS, &error), -ECONNRESET);
	assert_non_null(strstr(error.sentence.text, "closed the connection"));
	assert_int_equal(osd_client_remove(client, ADDRESS, &error), -ECONNRESET);
	assert_true(error.sentence.text[0] != '\0');
	assert_true(osd_client_failed(client, NULL) < 0);
	loopback_stop(loopback, client);
}

/* ---- what is sent ---- */

struct seen {
	struct osd_cdb cdb;
	size_t cdb_length;
	uint8_t out[4096];
	size_t out_length, in_capacity;
};

static void look(void *context, struct loopback_command *command)
{
	struct seen *seen = context;
	uint16_t field;

	assert_int_equal(osd_cdb_decode(command->cdb, command->cdb_length, &seen->cdb, &field), 0);
	seen->cdb_length = command->cdb_length;
	seen->out_length = command->out_length;
	seen->in_capacity = command->in_capacity;
	memcpy(seen->out, command->out, command->out_length);
	/* An answer that is long enough: what came is judged elsewhere. */
	command->in_length = command->in_capacity;
}

/*
 * 9.7: five bytes, a set list of 56 bytes at 8, a get list of 16 at 64; the answer, 32 bytes at 0.
 */
static void test_lists_lie_where_the_worked_example_has_them(void **state)
{
	const uint8_t length[8] = { 0, 0, 0, 0, 0x80, 0, 0, 0 };
	const struct osd_client_value sets[] = { { 2, 1, length, 8 }, { 1, 9, "ktest", 5 } };
	const struct osd_client_value gets[] = { { 1, 0x82, NULL, 8 } };
	static const uint8_t expected[80] = {
		0x68, 0x65, 0x6c, 0x6c, 0x6f, 0, 0, 0, 0x09, 0,    0,    0,    0,    0, 0, 0,
		0,    0,    0,    2,    0,    0, 0, 1, 0,    0,    0,    0,    0,    0, 0, 8,
		0,    0,    0,    0,    0x80, 0, 0, 0, 0,    0,    0,    1,    0,    0, 0, 9,
		0,    0,    0,    0,    0,    0, 0, 5, 0x6b, 0x74, 0x65, 0x73, 0x74, 0, 0, 0,
		0x01, 0,    0,    0,    0,    0, 0, 0, 0,    0,    0,    1,    0,    0, 0, 0x82,
	};
	struct osd_request request = {
		.cdb = { .action = OSD_WRITE },
		.data = "hello",
		.data_length = 5,
		.sets = sets,
		.set_count = 2,
		.gets = gets,
		.get_count = 1,
	};
	struct seen seen;
	struct osd_client *client;
	struct loopback *loopback = loopback_start(look, &seen, OSD_2, &client);

	(void)state;
	osd_request_address(&request, ADDRESS);
	assert_int_equal(osd_client_run(client, &request), 0);
	assert_int_equal(seen.cdb_length, 236);
	assert_int_equal(seen.cdb.action, OSD_WRITE);
	assert_true(seen.cdb.partition == PARTITION && seen.cdb.object == OBJECT);
	assert_int_equal(seen.cdb.length, 5);
	assert_int_equal(seen.out_length, 80);
	assert_memory_equal(seen.out, expected, 80);
	assert_int_equal(seen.cdb.set_data.offset, 8);
	assert_int_equal(seen.cdb.set_data.length, 56);
	assert_int_equal(seen.cdb.get_list.offset, 64);
	assert_int_equal(seen.cdb.get_list.length, 16);
	assert_int_equal(seen.cdb.retrieved.offset, 0);
	assert_int_equal(seen.cdb.retrieved.length, 32);
	assert_int_equal(seen.in_capacity, 32);
	loopback_stop(loopback, client);
}

static void test_osd1_has_its_own_cdb_and_places(void **state)
{
	const struct osd_client_value sets[] = { { 1, 9, "ktest", 5 } };
	struct osd_request request = {
		.cdb = { .action = OSD_WRITE },
		.data = "hello",
		.data_length = 5,
		.sets = sets,
		.set_count = 1,
	};
	struct seen seen;
	struct osd_client *client;
	struct loopback *loopback = loopback_start(look, &seen, OSD_1, &client);

	(void)state;
	osd_request_address(&request, ADDRESS);
	assert_int_equal(osd_client_run(client, &request), 0);
	assert_int_equal(seen.cdb_length, 200);
	assert_int_equal(seen.cdb.version, OSD_1);
	assert_int_equal(seen.cdb.set_data.offset, 256);
	assert_int_equal(seen.cdb.set_data.length, 4 + 10 + 5);
	assert_int_equal(seen.out_length, 256 + 19);
	assert_memory_equal(seen.out + 256 + 14, "ktest", 5);
	loopback_stop(loopback, client);
}

static void test_flush_chooses_its_command_by_the_address(void **state)
{
	struct seen seen;
	struct osd_client *client;
	struct loopback *loopback = loopback_start(look, &seen, OSD_2, &client);

	(void)state;
	assert_int_equal(osd_client_flush(client, (struct osd_client_address){ 0, 0, 0 }, NULL), 0);
	assert_int_equal(seen.cdb.action, OSD_FLUSH_OSD);
	assert_int_equal(seen.cdb.flush_scope, OSD_FLUSH_RECURSIVE);
	assert_int_equal(
		osd_client_flush(client, (struct osd_client_address){ PARTITION, 0, 0 }, NULL), 0);
	assert_int_equal(seen.cdb.action, OSD_FLUSH_PARTITION);
	assert_int_equal(osd_client_flush(client, ADDRESS, NULL), 0);
	assert_int_equal(seen.cdb.action, OSD_FLUSH);
	assert_int_equal(seen.cdb.flush_scope, OSD_FLUSH_ALL);
	loopback_stop(loopback, client);
}

/* ---- reads ---- */

struct read_answer {
	size_t length;
	struct osd_sense sense; /* key 0: GOOD */
};

static void answer_read(void *context, struct loopback_command *command)
{
	const struct read_answer *answer = context;

	memset(command->in, 'x', answer->length);
	command->in_length = answer->length;
	if (answer->sense.key)
		loopback_fail(command, &answer->sense);
}

static void expect_read(struct read_answer answer, int expected, size_t expected_length)
{
	struct osd_client *client;
	struct loopback *loopback = loopback_start(answer_read, &answer, OSD_2, &client);
	char buffer[100];
	size_t got = 999;

	assert_int_equal(osd_client_read(client, ADDRESS, 0, buffer, sizeof(buffer), &got, NULL),
			 expected);
	assert_int_equal(got, expected_length);
	loopback_stop(loopback, client);
}

static void test_reads_at_the_end_are_short(void **state)
{
	struct osd_sense past_end = { .key = 1, .code = SENSE_READ_PAST_END_OF_USER_OBJECT };
	struct osd_sense behind = {
		.key = 5, .code = 0x2400, .has_field = true, .field_in_cdb = true, .field = 40
	};

	(void)state;
	expect_read((struct read_answer){ .length = 100 }, 0, 100);
	expect_read((struct read_answer){ .length = 30 }, 0, 30);
	expect_read((struct read_answer){ .length = 30, .sense = past_end }, 0, 30);
	/* Zeros behind the end, as Linux likes it: the descriptor tells how much is data. */
	past_end.has_information = true;
	past_end.information = 30;
	expect_read((struct read_answer){ .length = 100, .sense = past_end }, 0, 30);
	past_end.information = 1000;
	expect_read((struct read_answer){ .length = 40, .sense = past_end }, 0, 40);
	expect_read((struct read_answer){ .sense = behind }, 0, 0);
	behind.field = 24;
	expect_read((struct read_answer){ .sense = behind }, -ENOENT, 0);
}

/* ---- lists ---- */

struct ids {
	uint64_t ids[1000];
	size_t count;
	size_t stop_at;
};

static int note_id(void *context, uint64_t id)
{
	struct ids *ids = context;

	ids->ids[ids->count++] = id;
	return ids->count == ids->stop_at ? -EINTR : 0;
}

static void test_a_list_goes_on_until_it_is_complete(void **state)
{
	struct memory_osd osd = { .list_ids_max = 7 };
	struct osd_client *client;
	struct loopback *loopback = loopback_start(memory_osd_execute, &osd, OSD_2, &client);
	const struct osd_client_address partition = { PARTITION, 0, 0 };
	struct ids ids = { 0 };
	uint64_t commands;

	(void)state;
	assert_int_equal(osd_client_create_partition(client, PARTITION, -1, NULL, NULL), 0);
	assert_int_equal(osd_client_list(client, partition, 0, note_id, &ids, NULL), 0);
	assert_int_equal(ids.count, 0);
	for (uint64_t i = 0; i < 50; i++)
		assert_int_equal(osd_client_create(client, PARTITION, OSD_FIRST_ID + 3 * i, 1, NULL,
						   NULL, NULL),
				 0);
	commands = osd.commands;
	assert_int_equal(osd_client_list(client, partition, 0, note_id, &ids, NULL), 0);
	assert_int_equal(osd.commands - commands, 8);
	assert_int_equal(ids.count, 50);
	for (uint64_t i = 0; i < 50; i++)
		assert_true(ids.ids[i] == OSD_FIRST_ID + 3 * i);
	ids.count = 0;
	assert_int_equal(
		osd_client_list(client, partition, OSD_FIRST_ID + 100, note_id, &ids, NULL), 0);
	assert_int_equal(ids.count, 16);
	ids.count = 0;
	ids.stop_at = 10;
	assert_int_equal(osd_client_list(client, partition, 0, note_id, &ids, NULL), -EINTR);
	assert_int_equal(ids.count, 10);
	loopback_stop(loopback, client);
	memory_osd_free(&osd);
}

struct listed_lengths {
	uint64_t next;
	size_t count, stop_at;
};

/* Objects 3 apart, each as long as its number, and with a text. */
static int note_length(void *context, uint64_t id, struct osd_list_reader *attributes)
{
	struct listed_lengths *listed = context;
	struct osd_attribute attribute;

	assert_true(id == listed->next);
	assert_int_equal(osd_list_next(attributes, &attribute), 1);
	assert_int_equal(attribute.number, OSD_INFORMATION_LOGICAL_LENGTH);
	assert_true(get_be64(attribute.value) == (id - OSD_FIRST_ID) / 3);
	assert_int_equal(osd_list_next(attributes, &attribute), 1);
	assert_int_equal(attribute.length, 4);
	assert_memory_equal(attribute.value, "text", 4);
	assert_int_equal(osd_list_next(attributes, &attribute), 0);
	listed->next += 3;
	return ++listed->count == listed->stop_at;
}

static void test_a_list_with_attributes_goes_on_until_it_is_complete_or_stopped(void **state)
{
	const struct osd_client_value gets[] = {
		{ OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, NULL, 8 },
		{ 0x10000, 1, NULL, 100 },
	};
	const struct osd_client_value text = { 0x10000, 1, "text", 4 };
	struct memory_osd osd = { .list_ids_max = 7 };
	struct osd_client *client;
	struct loopback *loopback = loopback_start(memory_osd_execute, &osd, OSD_2, &client);
	struct osd_client_address address = { PARTITION, 0, 0 };
	struct listed_lengths listed = { .next = OSD_FIRST_ID };
	uint64_t commands;

	(void)state;
	assert_int_equal(osd_client_create_partition(client, PARTITION, -1, NULL, NULL), 0);
	for (uint64_t i = 0; i < 50; i++) {
		address.object = OSD_FIRST_ID + 3 * i;
		assert_int_equal(
			osd_client_create(client, PARTITION, address.object, 1, NULL, NULL, NULL),
			0);
		assert_int_equal(osd_client_truncate(client, address, i, NULL), 0);
		assert_int_equal(osd_client_set_attributes(client, address, &text, 1, NULL), 0);
	}
	commands = osd.commands;
	assert_int_equal(
		osd_client_list_attributes(client, address, 0, gets, 2, note_length, &listed, NULL),
		0);
	assert_int_equal(listed.count, 50);
	assert_int_equal(osd.commands - commands, 8);
	listed = (struct listed_lengths){ .next = OSD_FIRST_ID + 30, .stop_at = 9 };
	assert_int_equal(osd_client_list_attributes(client, address, listed.next, gets, 2,
						    note_length, &listed, NULL),
			 1);
	assert_int_equal(listed.count, 9);
	loopback_stop(loopback, client);
	memory_osd_free(&osd);
}

/* A LIST answer whose words the test chooses. */
struct bad_list {
	uint64_t words[6]; /* additional length, continuation, identifier << 32 | format, ids */
	size_t length;
	unsigned commands;
};

static void answer_list(void *context, struct loopback_command *command)
{
	struct bad_list *bad = context;

	for (size_t i = 0; i < 6; i++)
		put_be64(command->in + 8 * i, bad->words[i]);
	command->in_length = bad->length;
	bad->commands++;
}

static void expect_bad_list(struct bad_list bad)
{
	struct osd_client_error error;
	struct osd_client *client;
	struct loopback *loopback = loopback_start(answer_list, &bad, OSD_2, &client);
	struct ids ids = { 0 };

	assert_int_equal(osd_client_list(client, (struct osd_client_address){ PARTITION, 0, 0 }, 0,
					 note_id, &ids, &error),
			 -EPROTO);
	assert_non_null(strstr(error.sentence.text, "LIST"));
	assert_true(bad.commands <= 3);
	loopback_stop(loopback, client);
}

static void test_lists_that_would_never_end_are_refused(void **state)
{
	const uint64_t format = UINT64_C(0x100000084);

	(void)state;
	/* IDs that go down, or stand still. */
	expect_bad_list((struct bad_list){ { 40, 0, format, 20, 10, 30 }, 48, 0 });
	expect_bad_list((struct bad_list){ { 40, 0, format, 20, 20, 30 }, 48, 0 });
	expect_bad_list((struct bad_list){ { 40, 0, format, UINT64_MAX, 0, 1 }, 48, 0 });
	/* The same part again and again. */
	expect_bad_list((struct bad_list){ { 400, 10, format, 10, 20, 30 }, 48, 0 });
	expect_bad_list((struct bad_list){ { 400, 31, format, 10, 20, 30 }, 48, 0 });
	/* More to come, but nothing came. */
	expect_bad_list((struct bad_list){ { 400, 31, format, 0, 0, 0 }, 24, 0 });
	/* No head. */
	expect_bad_list((struct bad_list){ { 400, 31, format, 0, 0, 0 }, 23, 0 });
	expect_bad_list((struct bad_list){ { 400, 31, format, 0, 0, 0 }, 0, 0 });
}

/* ---- attributes ---- */

static void test_attributes_are_set_got_and_undefined(void **state)
{
	struct memory_osd osd = { 0 };
	struct osd_client *client;
	struct loopback *loopback = loopback_start(memory_osd_execute, &osd, OSD_2, &client);
	const struct osd_client_value sets[] = { { 0x10001, 1, "twelve bytes", 12 },
						 { 0x10001, 2, "\x12\x34", 2 } };
	struct osd_client_error error;
	char value[16];
	uint32_t length;
	uint64_t number;

	(void)state;
	assert_int_equal(osd_client_create_partition(client, PARTITION, -1, &number, NULL), 0);
	assert_true(number == PARTITION);
	assert_int_equal(osd_client_create(client, PARTITION, 0, 1, &number, NULL, NULL), 0);
	assert_true(number == OSD_FIRST_ID);
	assert_int_equal(osd_client_create(client, PARTITION, OBJECT, 1, NULL, NULL, NULL), 0);
	assert_int_equal(osd_client_set_attributes(client, ADDRESS, sets, 2, NULL), 0);
	assert_int_equal(osd_client_get_attribute(client, ADDRESS, 0x10001, 1, value, sizeof(value),
						  &length, NULL),
			 0);
	assert_int_equal(length, 12);
	assert_memory_equal(value, "twelve bytes", 12);
	assert_int_equal(
		osd_client_get_attribute(client, ADDRESS, 0x10001, 1, value, 8, &length, &error),
		-ENOBUFS);
	assert_int_equal(length, 12);
	assert_memory_equal(value, "twelve b", 8);
	assert_int_equal(
		osd_client_get_attribute(client, ADDRESS, 0x10001, 3, value, 8, &length, &error),
		-ENODATA);
	assert_int_equal(length, 0);
	assert_int_equal(osd_client_get_number(client, ADDRESS, 0x10001, 2, &number, NULL), 0);
	assert_int_equal(number, 0x1234);
	assert_int_equal(osd_client_truncate(client, ADDRESS, 12345, NULL), 0);
	assert_int_equal(osd_client_get_number(client, ADDRESS, 1, 0x82, &number, NULL), 0);
	assert_int_equal(number, 12345);
	loopback_stop(loopback, client);
	memory_osd_free(&osd);
}

static void send_rubbish(void *context, struct loopback_command *command)
{
	unsigned *seed = context;

	srand((*seed)++);
	command->in_length = command->in_capacity ? (size_t)rand() % (command->in_capacity + 1) : 0;
	for (size_t i = 0; i < command->in_length; i++)
		command->in[i] = (uint8_t)rand();
	/* Often the right list type, so that more than the first byte is looked at. */
	if (command->in_length > 0 && rand() % 4)
		command->in[0] = 0x09;
}

static int count_attribute(void *context, const struct osd_attribute *attribute)
{
	size_t *bytes = context;

	/* Each byte that is said to be there can be read. */
	for (uint32_t i = 0; i < attribute->present; i++)
		*bytes += attribute->value[i];
	return 0;
}

static void test_rubbish_in_answers_does_no_harm(void **state)
{
	const struct osd_client_value gets[] = { { 1, 1, NULL, 8 },
						 { 1, 2, NULL, 100 },
						 { 1, 3, NULL, 8 } };
	unsigned seed = 99;
	struct osd_client *client;
	struct loopback *loopback = loopback_start(send_rubbish, &seed, OSD_2, &client);
	size_t bytes = 0;

	(void)state;
	for (int i = 0; i < 500; i++) {
		char value[8];
		struct ids ids = { 0 };
		uint64_t id;

		osd_client_get_attributes(client, ADDRESS, gets, 3, count_attribute, &bytes, NULL);
		osd_client_get_attribute(client, ADDRESS, 1, 1, value, sizeof(value), NULL, NULL);
		osd_client_create(client, PARTITION, 0, 3, &id, NULL, NULL);
		ids.stop_at = 999;
		osd_client_list(client, (struct osd_client_address){ PARTITION, 0, 0 }, 0, note_id,
				&ids, NULL);
		assert_int_equal(osd_client_failed(client, NULL), 0);
	}
	loopback_stop(loopback, client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_sense_has_its_errno),
		cmocka_unit_test(test_a_status_without_sense_has_its_errno_too),
		cmocka_unit_test(test_unit_attentions_are_taken_and_the_command_repeated),
		cmocka_unit_test(test_a_target_that_dies_gives_an_error_and_no_wait),
		cmocka_unit_test(test_lists_lie_where_the_worked_example_has_them),
		cmocka_unit_test(test_osd1_has_its_own_cdb_and_places),
		cmocka_unit_test(test_flush_chooses_its_command_by_the_address),
		cmocka_unit_test(test_reads_at_the_end_are_short),
		cmocka_unit_test(test_a_list_goes_on_until_it_is_complete),
		cmocka_unit_test(
			test_a_list_with_attributes_goes_on_until_it_is_complete_or_stopped),
		cmocka_unit_test(test_lists_that_would_never_end_are_refused),
		cmocka_unit_test(test_attributes_are_set_got_and_undefined),
		cmocka_unit_test(test_rubbish_in_answers_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
