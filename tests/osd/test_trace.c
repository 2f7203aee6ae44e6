/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Replays what a real exofs client sent (Linux 4.14: login, mkfs, mount, file operations, umount,
 * mount again, osd_test): data/exofs-trace.jsonl, one command a line. The recording keeps only the
 * first 96 bytes of long Data-Out; the replay fills the rest with its own pattern and expects it
 * back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/shadow.h"
#include "tests/osd/unit.h"
#include "tests/wire/hex.h"

#define TRACE    "tests/osd/data/exofs-trace.jsonl"
#define COMMANDS 288
/* FORMAT OSD asks for 512 MiB. */
#define DEVICE_BYTES (UINT64_C(640) << 20)

struct command {
	long number;
	struct osd_cdb cdb;
	uint8_t cdb_bytes[OSD2_CDB_BYTES];
	uint8_t *out;
	size_t out_length, recorded; /* of `out` */
	size_t in_capacity;
	bool good;
	struct osd_sense sense;
	size_t returned_length;
	uint8_t attributes[512], data_in[128];
	size_t attributes_length, data_in_length;
};

/* The command in work, for who reads of a failure; 0 when all is well. */
static long replaying;

static int say_where(void **state)
{
	(void)state;
	if (replaying != 0)
		print_error("command %ld of " TRACE "\n", replaying);
	return 0;
}

/* ---- reading the recording ---- */

static size_t hex_member(const json_t *line, const char *name, uint8_t *bytes, size_t capacity)
{
	return hex_pairs(json_string_value(json_object_get(line, name)), bytes, capacity);
}

static size_t number_member(const json_t *line, const char *name)
{
	return (size_t)json_integer_value(json_object_get(line, name));
}

/* Data-Out: what was recorded, the lists at their offsets, the pattern elsewhere. */
static void rebuild_data_out(const json_t *line, struct command *command)
{
	const struct osd_cdb *cdb = &command->cdb;

	command->out_length = number_member(line, "data_out_len");
	command->out = malloc(command->out_length + 1);
	for (size_t i = 0; i < command->out_length; i++)
		command->out[i] = (uint8_t)(command->number * 7 + i * 3 + i / 251);
	command->recorded = hex_member(line, "data_out", command->out, command->out_length);
	if (cdb->set_data.length > 0)
		hex_member(line, "set_list", command->out + cdb->set_data.offset,
			   cdb->set_data.length);
	if (cdb->get_list.length > 0)
		hex_member(line, "get_list", command->out + cdb->get_list.offset,
			   cdb->get_list.length);
	if (cdb->continuation_length == 112) {
		/* Four pieces of 1 KiB in descending order; the last was not kept. */
		put_be64(command->out + 96, 0);
		put_be64(command->out + 104, 1024);
		command->recorded = 112;
	}
}

static void parse(const json_t *line, struct command *command)
{
	uint8_t sense[252];
	size_t sense_length;
	uint16_t bad_field;

	memset(command, 0, sizeof(*command));
	command->number = (long)number_member(line, "n");
	assert_int_equal(hex_member(line, "cdb", command->cdb_bytes, sizeof(command->cdb_bytes)),
			 OSD2_CDB_BYTES);
	assert_int_equal(
		osd_cdb_decode(command->cdb_bytes, OSD2_CDB_BYTES, &command->cdb, &bad_field), 0);
	rebuild_data_out(line, command);
	command->in_capacity = number_member(line, "data_in_len");
	command->good = strcmp(json_string_value(json_object_get(line, "status")), "GOOD") == 0;
	sense_length = hex_member(line, "sense", sense, sizeof(sense));
	if (!command->good)
		assert_int_equal(osd_sense_decode(sense, sense_length, &command->sense), 0);
	command->returned_length = number_member(line, "returned_len");
	command->attributes_length = hex_member(line, "returned_attributes", command->attributes,
						sizeof(command->attributes));
	command->data_in_length =
		hex_member(line, "data_in", command->data_in, sizeof(command->data_in));
}

/* ---- what the objects should hold ---- */

/* Pieces of a READ or WRITE, from the start of the object. */
static size_t pieces_of(const struct command *command, struct osd_piece pieces[4])
{
	struct osd_continuation continuation;
	struct osd_descriptor descriptor;

	pieces[0] = (struct osd_piece){ command->cdb.address, command->cdb.length };
	if (command->cdb.continuation_length == 0)
		return 1;
	assert_int_equal(osd_continuation_read(&continuation, command->cdb.action, command->out,
					       command->cdb.continuation_length),
			 0);
	assert_int_equal(osd_continuation_next(&continuation, &descriptor), 1);
	for (size_t i = 0; i < 4; i++)
		osd_piece_decode(&descriptor, i, &pieces[i]);
	return 4;
}

static void write_shadow(const struct command *command, struct shadow_object *object)
{
	struct osd_piece pieces[4];
	size_t count = pieces_of(command, pieces), at = command->cdb.continuation_length;

	for (size_t i = 0; i < count; i++) {
		size_t recorded = command->recorded > at ? command->recorded - at : 0;

		shadow_write(object, pieces[i].offset, command->out + at, pieces[i].length,
			     recorded);
		at += pieces[i].length;
	}
}

/* The logical length is the one set attribute that changes data. */
static void set_shadow(const struct command *command, struct shadow_object *object)
{
	struct osd_list_reader reader;
	struct osd_attribute attribute;

	if (command->cdb.set_data.length == 0 || !object)
		return;
	assert_int_equal(osd_list_read(&reader, OSD_2, OSD_LIST_TO_SET,
				       command->out + command->cdb.set_data.offset,
				       command->cdb.set_data.length),
			 0);
	while (osd_list_next(&reader, &attribute) == 1)
		if (attribute.page == 1 && attribute.number == OSD_INFORMATION_LOGICAL_LENGTH)
			shadow_resize(object, get_be64(attribute.value));
}

static void update_shadow(struct shadow *shadow, const struct command *command)
{
	uint64_t partition = command->cdb.partition, id = command->cdb.object;
	struct shadow_object *object = id ? shadow_find(shadow, partition, id) : NULL;

	if (command->cdb.action == OSD_FORMAT_OSD)
		shadow_clear(shadow);
	else if (command->cdb.action == OSD_CREATE)
		shadow_create(shadow, partition, id);
	else if (command->cdb.action == OSD_REMOVE)
		shadow_remove(shadow, partition, id);
	else if (command->cdb.action == OSD_WRITE)
		write_shadow(command, object);
	set_shadow(command, object);
}

/* ---- checking answers ---- */

/*
 * Data read: the shadow's, zeros behind its end; and where the recording knows the bytes, the
 * recording's.
 */
static void check_data(struct unit *unit, struct shadow *shadow, const struct command *command)
{
	struct shadow_object *object =
		shadow_find(shadow, command->cdb.partition, command->cdb.object);
	struct osd_piece pieces[4];
	size_t count = pieces_of(command, pieces), at = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < pieces[i].length; j++, at++) {
			size_t offset = pieces[i].offset + j;
			uint8_t expected = offset < object->length ? object->data[offset] : 0;

			if (unit->data_in[at] != expected)
				fail_msg("command %ld: byte %zu is %02x, not %02x", command->number,
					 offset, unit->data_in[at], expected);
			if (at < command->data_in_length && offset < object->length &&
			    object->recorded[offset])
				assert_int_equal(unit->data_in[at], command->data_in[at]);
		}
	}
}

/* Partitions that there are. */
#define PARTITIONS_MAX 8
static uint64_t partitions[PARTITIONS_MAX];

static size_t find_partition(uint64_t id)
{
	for (size_t i = 0; i < PARTITIONS_MAX; i++)
		if (partitions[i] == id)
			return i;
	return PARTITIONS_MAX;
}

static uint64_t count_partitions(void)
{
	uint64_t count = 0;

	for (size_t i = 0; i < PARTITIONS_MAX; i++)
		count += partitions[i] != 0;
	return count;
}

static void update_partitions(const struct command *command)
{
	if (command->cdb.action == OSD_FORMAT_OSD)
		memset(partitions, 0, sizeof(partitions));
	else if (command->cdb.action == OSD_CREATE_PARTITION)
		partitions[find_partition(0)] = command->cdb.partition;
	else if (command->cdb.action == OSD_REMOVE_PARTITION)
		partitions[find_partition(command->cdb.partition)] = 0;
}

static uint32_t bytes_of(uint8_t *value, const void *bytes, uint32_t length)
{
	memcpy(value, bytes, length);
	return length;
}

static uint32_t number64(uint8_t *value, uint64_t number)
{
	put_be64(value, number);
	return 8;
}

/* What this target is, where the recording shows what that one is. */
static uint32_t expected_of_root(const struct osd_attribute *want, const struct osd_attribute *have,
				 uint8_t *value)
{
	static const uint8_t system_id[20] = { 1, 0, 0, 16, 0x10, 1,  2,  3,  4,  5,
					       6, 7, 8, 9,  10,   11, 12, 13, 14, 15 };

	switch (want->number) {
	case OSD_ROOT_SYSTEM_ID:
		return bytes_of(value, system_id, sizeof(system_id));
	case OSD_ROOT_VENDOR:
		return bytes_of(value, "MUNINN  ", 8);
	case OSD_ROOT_PRODUCT:
		return bytes_of(value, "OBJECT STORE    ", 16);
	case OSD_ROOT_MODEL:
		return bytes_of(value, "Versioning object store on flash", 32);
	case OSD_ROOT_REVISION:
		return bytes_of(value, "0001", 4);
	case OSD_ROOT_SERIAL_NUMBER:
		return bytes_of(value, "10010203-0405-0607-0809-0a0b0c0d0e0f", 36);
	case OSD_ROOT_PARTITIONS:
		return number64(value, count_partitions());
	case OSD_ROOT_CLOCK:
		put_be48(value, UNIT_CLOCK);
		return 6;
	case OSD_ROOT_TOTAL_CAPACITY:
	case OSD_ROOT_USED_CAPACITY:
		/* Capacities are the device's; they have 8 bytes. */
		assert_int_equal(have->length, 8);
		return bytes_of(value, have->value, 8);
	default: /* the name, which the client has set */
		return bytes_of(value, want->value, want->length);
	}
}

/* The value that must come: the recording's, but for what is the device's own. */
static uint32_t expected_value(const struct osd_attribute *want, const struct osd_attribute *have,
			       uint8_t *value)
{
	if (want->page == OSD_ROOT_INFORMATION)
		return expected_of_root(want, have, value);
	if (want->page == OSD_PARTITION_QUOTAS)
		return 0; /* none was set */
	if (want->page == OSD_USER_OBJECT_TIMESTAMPS) {
		put_be48(value, UNIT_CLOCK);
		return 6;
	}
	if (want->number == OSD_INFORMATION_USED_CAPACITY && want->page < OSD_PAGES_RESERVED &&
	    want->page % OSD_PAGES_PARTITION == OSD_PAGE_INFORMATION) {
		assert_int_equal(have->length, 8);
		assert_int_equal(get_be64(have->value) % 4096, 0);
		return bytes_of(value, have->value, 8);
	}
	return want->length > 0 ? bytes_of(value, want->value, want->length) : 0;
}

/*
 * Attributes retrieved: byte by byte the list of what was asked for, in the order of the recording;
 * before it zeros up to the data.
 */
static void check_attributes(struct unit *unit, const struct command *command)
{
	size_t offset = command->cdb.retrieved.offset;
	size_t data = command->cdb.action == OSD_READ ? command->cdb.length : 0;
	struct osd_list_reader expected, got;
	struct osd_list_writer writer;
	struct osd_attribute want, have;
	uint8_t list[1024], value[256];
	size_t length;

	assert_int_equal(osd_list_read(&expected, OSD_2, OSD_LIST_RETRIEVED, command->attributes,
				       command->attributes_length),
			 0);
	assert_int_equal(osd_list_read(&got, OSD_2, OSD_LIST_RETRIEVED, unit->data_in + offset,
				       unit->command.data_in_length - offset),
			 0);
	osd_list_begin(&writer, OSD_2, OSD_LIST_RETRIEVED, list, sizeof(list));
	while (osd_list_next(&expected, &want) == 1) {
		uint32_t bytes;

		assert_int_equal(osd_list_next(&got, &have), 1);
		bytes = expected_value(&want, &have, value);
		assert_true(osd_list_add_value(&writer, want.page, want.number, value, bytes));
	}
	length = osd_list_end(&writer);
	assert_int_equal(unit->command.data_in_length, offset + length);
	assert_memory_equal(unit->data_in + offset, list, length);
	for (size_t at = data; at < offset; at++)
		assert_int_equal(unit->data_in[at], 0);
}

/* The field pointer that the client acts on; the recorded target sent none. */
static uint16_t expected_field(const struct command *command)
{
	if (command->cdb.action == OSD_CREATE_PARTITION ||
	    find_partition(command->cdb.partition) == PARTITIONS_MAX)
		return 16;
	return 24;
}

/* Errors: the recorded key and code, and the pointer that the client acts on. */
static void check_error(struct unit *unit, const struct command *command)
{
	struct osd_sense sense = unit_sense(unit), expected = command->sense;
	uint8_t bytes[OSD_SENSE_BYTES_MAX];
	size_t length;

	/* Byte by byte: the recording's, with the functions in the right order and a pointer. */
	expected.not_initiated = sense.key == SENSE_RECOVERED_ERROR ? 0 : OSD_FUNCTIONS_ALL;
	expected.completed = sense.key == SENSE_RECOVERED_ERROR ? OSD_FUNCTIONS_ALL : 0;
	expected.partition = command->cdb.partition;
	expected.object = command->cdb.object;
	if (sense.key == SENSE_RECOVERED_ERROR) {
		expected.has_information = true;
		expected.information = expected.command_information;
		assert_int_equal(unit->command.data_in_length, command->cdb.length);
	} else {
		expected.has_field = expected.field_in_cdb = true;
		expected.field = expected_field(command);
		assert_int_equal(unit->command.data_in_length, 0);
	}
	/* That an ID is taken is found when the command is carried out. */
	if (expected.field == 16 && command->cdb.action == OSD_CREATE_PARTITION) {
		expected.not_initiated &=
			~(uint32_t)(OSD_FUNCTION_COMMAND | OSD_FUNCTION_VALIDATION);
		expected.completed = OSD_FUNCTION_VALIDATION;
	}
	length = osd_sense_encode(&expected, bytes, sizeof(bytes));
	assert_int_equal(unit->command.sense_length, length);
	assert_memory_equal(unit->command.sense, bytes, length);
}

static void replay(struct unit *unit, struct shadow *shadow, const struct command *command)
{
	unit_execute(unit, command->cdb_bytes, OSD2_CDB_BYTES, command->out, command->out_length,
		     command->in_capacity);
	if (command->good) {
		expect_good(unit);
		assert_int_equal(unit->command.data_out_used, command->out_length);
		update_shadow(shadow, command);
		update_partitions(command);
	} else {
		check_error(unit, command);
	}
	if (command->cdb.action == OSD_READ && unit->command.data_in_length > 0)
		check_data(unit, shadow, command);
	if (command->attributes_length > 0)
		check_attributes(unit, command);
	else if (command->good)
		assert_int_equal(unit->command.data_in_length, command->returned_length);
}

static void test_the_whole_recording_replays(void **state)
{
	FILE *file = fopen(TRACE, "r");
	struct shadow shadow = { 0 };
	struct unit unit;
	char *text = NULL;
	size_t size = 0;
	int count = 0;

	(void)state;
	if (!file)
		fail_msg("%s: run the tests from the top of the sources", TRACE);
	memset(partitions, 0, sizeof(partitions));
	unit_open(&unit, DEVICE_BYTES);
	while (getline(&text, &size, file) > 0) {
		json_t *line = json_loads(text, 0, NULL);
		struct command command;

		assert_non_null(line);
		replaying = ++count;
		parse(line, &command);
		assert_int_equal(command.number, count);
		replay(&unit, &shadow, &command);
		free(command.out);
		json_decref(line);
	}
	replaying = 0;
	assert_int_equal(count, COMMANDS);
	shadow_clear(&shadow);
	unit_close(&unit);
	free(text);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_the_whole_recording_replays, say_where),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
