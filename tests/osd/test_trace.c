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
#include "tests/osd/hex.h"
#include "tests/osd/shadow.h"
#include "tests/osd/unit.h"

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

/* Attributes whose values are the device's own. */
static bool is_of_the_device(const struct osd_attribute *attribute)
{
	if (attribute->page == OSD_ROOT_INFORMATION)
		return attribute->number !=
		       OSD_ROOT_OSD_NAME; /* the recorded target counts no partitions */
	return attribute->page == OSD_PARTITION_QUOTAS ||
	       attribute->page == OSD_USER_OBJECT_TIMESTAMPS ||
	       attribute->number == OSD_INFORMATION_USED_CAPACITY;
}

/* Attributes retrieved: the same ones in the same order, with the same values. */
static void check_attributes(struct unit *unit, const struct command *command)
{
	struct osd_list_reader expected, got;
	struct osd_attribute want, have;

	assert_int_equal(osd_list_read(&expected, OSD_2, OSD_LIST_RETRIEVED, command->attributes,
				       command->attributes_length),
			 0);
	assert_int_equal(
		osd_list_read(&got, OSD_2, OSD_LIST_RETRIEVED,
			      unit->data_in + command->cdb.retrieved.offset,
			      unit->command.data_in_length - command->cdb.retrieved.offset),
		0);
	while (osd_list_next(&expected, &want) == 1) {
		assert_int_equal(osd_list_next(&got, &have), 1);
		assert_int_equal(have.page, want.page);
		assert_int_equal(have.number, want.number);
		assert_int_equal(have.present, have.length);
		if (is_of_the_device(&want))
			continue;
		assert_int_equal(have.length, want.length);
		if (want.length > 0)
			assert_memory_equal(have.value, want.value, want.length);
	}
	assert_int_equal(osd_list_next(&got, &have), 0);
}

/* Errors: the recorded key and code, and the pointer that the client acts on. */
static void check_error(struct unit *unit, const struct command *command)
{
	struct osd_sense sense = unit_sense(unit);

	assert_int_equal(sense.key, command->sense.key);
	assert_int_equal(sense.code, command->sense.code);
	assert_int_equal(sense.partition, command->cdb.partition);
	assert_int_equal(sense.object, command->cdb.object);
	if (sense.key == SENSE_RECOVERED_ERROR) {
		assert_int_equal(sense.command_information, command->sense.command_information);
		assert_int_equal(unit->command.data_in_length, command->cdb.length);
		return;
	}
	assert_true(sense.has_field);
	assert_int_equal(unit->command.data_in_length, 0);
}

static void replay(struct unit *unit, struct shadow *shadow, const struct command *command)
{
	unit_execute(unit, command->cdb_bytes, OSD2_CDB_BYTES, command->out, command->out_length,
		     command->in_capacity);
	if (command->good) {
		expect_good(unit);
		assert_int_equal(unit->command.data_out_used, command->out_length);
		update_shadow(shadow, command);
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
