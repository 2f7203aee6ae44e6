/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A logical unit in memory, and calls of its commands. */
#include "tests/osd/unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "wire/envelope.h"

enum osd_version unit_version = OSD_2;

/* ---- the unit ---- */

static uint64_t read_clock(void *context)
{
	const struct unit *unit = context;

	return unit->now_ms;
}

static uint64_t read_running_clock(void *context)
{
	const struct unit *unit = context;

	return unit->now_ms - unit->jumped_ms;
}

static void must(int result, const struct error_text *error, const char *what)
{
	if (result != 0)
		fail_msg("%s: %d, %s", what, result, error->text);
}

void unit_open(struct unit *unit, uint64_t bytes)
{
	struct nand_geometry geometry = nand_geometry_default(bytes);

	unit_open_on(unit, &geometry);
}

static struct engine_options options_of(struct unit *unit)
{
	struct engine_options options = unit->options;

	options.clock_ms = read_clock;
	options.running_ms = read_running_clock;
	options.clock_context = unit;
	return options;
}

static void start(struct unit *unit)
{
	static const uint8_t uuid[16] = { 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
	const struct engine_options options = options_of(unit);
	struct error_text error = { "" };

	must(engine_open(unit->nand, &options, &unit->engine, &error), &error, "engine_open");
	must(osd_device_create(unit->engine, uuid, NULL, &unit->device), &error,
	     "osd_device_create");
}

void unit_open_on(struct unit *unit, const struct nand_geometry *geometry)
{
	unit_open_with(unit, geometry, &(struct engine_options){ 0 });
}

void unit_open_with(struct unit *unit, const struct nand_geometry *geometry,
		    const struct engine_options *wanted)
{
	struct engine_options options;
	struct error_text error = { "" };
	uint64_t nvram_bytes;

	memset(unit, 0, sizeof(*unit));
	unit->now_ms = UNIT_CLOCK;
	unit->options = *wanted;
	options = options_of(unit);
	must(engine_nvram_bytes(geometry, &options, &nvram_bytes, &error), &error,
	     "engine_nvram_bytes");
	must(nand_open_memory(geometry, nvram_bytes, &unit->nand, &error), &error,
	     "nand_open_memory");
	must(engine_format(unit->nand, &options, &error), &error, "engine_format");
	start(unit);
}

void unit_crash(struct unit *unit)
{
	osd_device_destroy(unit->device);
	engine_abandon(unit->engine);
	start(unit);
}

void unit_close(struct unit *unit)
{
	osd_device_destroy(unit->device);
	assert_int_equal(engine_close(unit->engine), 0);
	assert_int_equal(nand_close(unit->nand), 0);
	free(unit->data_in);
}

static int set_up(void **state, enum osd_version version)
{
	struct unit *unit = malloc(sizeof(*unit));

	unit_open(unit, 64 << 20);
	unit_version = version;
	*state = unit;
	return 0;
}

static int set_up_with_object(void **state, enum osd_version version)
{
	set_up(state, version);
	unit_create_partition(*state, P);
	unit_create(*state, P, O);
	return 0;
}

int unit_set_up(void **state)
{
	return set_up(state, OSD_2);
}

int unit_set_up_osd1(void **state)
{
	return set_up(state, OSD_1);
}

int unit_set_up_with_object(void **state)
{
	return set_up_with_object(state, OSD_2);
}

int unit_set_up_with_object_osd1(void **state)
{
	return set_up_with_object(state, OSD_1);
}

int unit_tear_down(void **state)
{
	unit_version = OSD_2;
	unit_close(*state);
	free(*state);
	return 0;
}

/* An allocation of exactly `length` bytes. */
static uint8_t *exact_copy(const void *data, size_t length)
{
	uint8_t *copy = malloc(length);

	if (length > 0)
		memcpy(copy, data, length);
	return copy;
}

bool unit_in_envelopes;

/* As the service does. */
static void execute(struct unit *unit, struct osd_command *command)
{
	memset(command->sense, 0xEE, sizeof(command->sense));
	if (!osd_execute_at_once(unit->device, command, NULL))
		osd_execute(unit->device, command);
}

/* SEND and FETCH of the command, whose results are as if it had come by itself. */
static void execute_in_envelope(struct unit *unit, struct osd_command *command)
{
	static uint64_t tag;
	const struct envelope_letter letter = { command->cdb, command->cdb_length,
						command->data_out_length };
	size_t out_bytes = ENVELOPE_HEAD_BYTES + command->data_out_length;
	size_t in_bytes = ENVELOPE_HEAD_BYTES + command->data_in_capacity;
	uint8_t *out = malloc(out_bytes), *in = malloc(in_bytes);
	uint8_t cdb[ENVELOPE_CDB_BYTES];
	struct osd_command sent = *command, fetched = *command;
	struct envelope_answer answer;

	envelope_cdb_encode(&(struct envelope_cdb){ ENVELOPE_SEND, ++tag, (uint32_t)out_bytes },
			    cdb);
	envelope_letter_encode(&letter, out);
	if (command->data_out_length > 0)
		memcpy(out + ENVELOPE_HEAD_BYTES, command->data_out, command->data_out_length);
	sent.cdb = fetched.cdb = cdb;
	sent.cdb_length = fetched.cdb_length = sizeof(cdb);
	sent.data_out = out;
	sent.data_out_length = out_bytes;
	sent.data_in = NULL;
	sent.data_in_capacity = 0;
	execute(unit, &sent);
	assert_int_equal(sent.status, SCSI_STATUS_GOOD);
	free(out);
	envelope_cdb_encode(&(struct envelope_cdb){ ENVELOPE_FETCH, tag, (uint32_t)in_bytes }, cdb);
	fetched.data_out = NULL;
	fetched.data_out_length = 0;
	memset(in, unit->garbage ? unit->garbage : 0x5A, in_bytes);
	fetched.data_in = in;
	fetched.data_in_capacity = in_bytes;
	execute(unit, &fetched);
	assert_int_equal(fetched.status, SCSI_STATUS_GOOD);
	assert_int_equal(envelope_answer_decode(in, fetched.data_in_length, &answer), 0);
	command->status = answer.status;
	command->sense_length = answer.sense_length;
	memcpy(command->sense, answer.sense, answer.sense_length);
	command->data_in_length = answer.data_length;
	command->data_out_used = answer.data_out_used;
	if (command->data_in_capacity > 0)
		memcpy(command->data_in, in + ENVELOPE_HEAD_BYTES, command->data_in_capacity);
	free(in);
}

void unit_execute(struct unit *unit, const uint8_t *cdb, size_t cdb_length, const void *data_out,
		  size_t data_out_length, size_t data_in_capacity)
{
	uint8_t *cdb_copy = exact_copy(cdb, cdb_length),
		*out_copy = exact_copy(data_out, data_out_length);
	struct osd_cdb decoded;
	uint16_t bad_field;

	osd_cdb_decode(cdb, cdb_length, &decoded, &bad_field);
	unit->action = decoded.action;
	unit->version = decoded.version;
	free(unit->data_in);
	unit->data_in = malloc(data_in_capacity);
	if (data_in_capacity > 0)
		memset(unit->data_in, unit->garbage ? unit->garbage : 0x5A, data_in_capacity);
	unit->command = (struct osd_command){
		.cdb = cdb_copy,
		.cdb_length = cdb_length,
		.data_out = data_out_length > 0 ? out_copy : NULL,
		.data_out_length = data_out_length,
		.data_in = data_in_capacity > 0 ? unit->data_in : NULL,
		.data_in_capacity = data_in_capacity,
		.nexus = unit->nexus,
		.initiator = unit->initiator,
	};
	if ((unit_in_envelopes || getenv("UNIT_ENVELOPES")) && cdb_length >= 1 &&
	    cdb_length <= ENVELOPE_PLACE_BYTES && data_out_length <= ENVELOPE_DATA_OUT_MAX)
		execute_in_envelope(unit, &unit->command);
	else
		execute(unit, &unit->command);
	free(cdb_copy);
	free(out_copy);
	assert_true(unit->command.data_in_length <= data_in_capacity);
	assert_true(unit->command.data_out_used <= data_out_length);
	assert_true(unit->command.sense_length <= OSD_SENSE_BYTES_MAX);
	assert_int_equal(unit->command.sense_length != 0,
			 unit->command.status == SCSI_STATUS_CHECK_CONDITION);
}

/* ---- calls ---- */

struct call call_of_version(enum osd_version version, uint16_t action, uint64_t partition,
			    uint64_t object)
{
	return (struct call){
		.cdb = { .version = version,
			 .action = action,
			 .format = OSD_ATTRIBUTES_LIST,
			 .partition = partition,
			 .object = object },
		.retrieved_capacity = 4096,
	};
}

struct call call_of(uint16_t action, uint64_t partition, uint64_t object)
{
	return call_of_version(unit_version, action, partition, object);
}

void call_set(struct call *call, uint32_t page, uint32_t number, const void *value, uint32_t length)
{
	if (!call->has_sets)
		osd_list_begin(&call->set_writer, call->cdb.version, OSD_LIST_TO_SET, call->sets,
			       sizeof(call->sets));
	call->has_sets = true;
	call->set_writer.data = call->sets;
	assert_true(osd_list_add_value(&call->set_writer, page, number, value, length));
}

void call_set_number(struct call *call, uint32_t page, uint32_t number, uint64_t value)
{
	uint8_t bytes[8];

	put_be64(bytes, value);
	call_set(call, page, number, bytes, sizeof(bytes));
}

void call_get(struct call *call, uint32_t page, uint32_t number)
{
	if (!call->has_gets)
		osd_list_begin(&call->get_writer, call->cdb.version, OSD_LIST_TO_GET, call->gets,
			       sizeof(call->gets));
	call->has_gets = true;
	call->get_writer.data = call->gets;
	assert_true(osd_list_add_request(&call->get_writer, page, number));
}

void call_piece(struct call *call, uint64_t offset, uint64_t length)
{
	assert_true(call->piece_count < 8);
	call->pieces[call->piece_count++] = (struct osd_piece){ offset, length };
	call->cdb.length += length;
}

void call_descriptor(struct call *call, uint16_t type, const void *content, uint32_t length)
{
	call->continuation_length = osd_continuation_add(
		call->continuation, call->continuation_length, sizeof(call->continuation),
		call->cdb.action, type, content, length);
	assert_true(call->continuation_length > 0);
}

void call_data(struct call *call, const void *data, size_t length)
{
	call->data = data;
	call->data_length = length;
	call->cdb.length = length;
}

/* Puts `length` bytes at the next place of Data-Out that an offset can name. */
static struct osd_segment place(const struct call *call, uint8_t *out, size_t *end,
				const void *data, size_t length)
{
	struct osd_segment segment = { osd_offset_encode(call->cdb.version, *end, NULL),
				       (uint32_t)length };

	memcpy(out + segment.offset, data, length);
	*end = segment.offset + length;
	return segment;
}

void call_encode(struct call *call, struct encoded_call *encoded)
{
	size_t size = call->data_length + 16384, end = 0, in = call->data_in_capacity;
	uint8_t *out = calloc(1, size);

	if (call->piece_count > 0) {
		end = osd_continuation_encode(call->cdb.action, call->pieces, call->piece_count,
					      out, size);
		call->cdb.continuation_length = (uint32_t)end;
	}
	if (call->continuation_length > 0) {
		end = call->continuation_length;
		memcpy(out, call->continuation, end);
		call->cdb.continuation_length = (uint32_t)end;
	}
	if (call->data_length > 0)
		memcpy(out + end, call->data, call->data_length);
	end += call->data_length;
	if (call->has_sets)
		call->cdb.set_data = place(call, out, &end, call->sets, call->set_writer.length);
	if (call->has_gets) {
		call->cdb.get_list = place(call, out, &end, call->gets, call->get_writer.length);
		call->cdb.retrieved.offset = osd_offset_encode(call->cdb.version, in, NULL);
		call->cdb.retrieved.length = (uint32_t)call->retrieved_capacity;
		in = call->cdb.retrieved.offset + call->retrieved_capacity;
	}
	assert_int_equal(osd_cdb_encode(&call->cdb, encoded->cdb, &encoded->cdb_length), 0);
	encoded->out = out;
	encoded->out_length = end - call->cut_data_out;
	encoded->in_capacity = in;
}

void call_run(struct unit *unit, struct call *call)
{
	struct encoded_call encoded;

	call_encode(call, &encoded);
	unit_execute(unit, encoded.cdb, encoded.cdb_length, encoded.out, encoded.out_length,
		     encoded.in_capacity);
	free(encoded.out);
}

void unit_create_partition(struct unit *unit, uint64_t partition)
{
	struct call call = call_of(OSD_CREATE_PARTITION, partition, 0);

	call_run(unit, &call);
	expect_good(unit);
}

void unit_create(struct unit *unit, uint64_t partition, uint64_t object)
{
	struct call call = call_of(OSD_CREATE, partition, object);

	call_run(unit, &call);
	expect_good(unit);
}

void unit_write(struct unit *unit, uint64_t object, uint64_t address, const void *data,
		size_t length)
{
	struct call call = call_of(OSD_WRITE, P, object);

	call_data(&call, data, length);
	call.cdb.address = address;
	call_run(unit, &call);
	expect_good(unit);
}

void unit_set(struct unit *unit, uint64_t partition, uint64_t object, uint32_t page,
	      uint32_t number, const void *value, uint32_t length)
{
	struct call call = call_of(OSD_SET_ATTRIBUTES, partition, object);

	call_set(&call, page, number, value, length);
	call_run(unit, &call);
	expect_good(unit);
}

void unit_set_number(struct unit *unit, uint64_t partition, uint64_t object, uint32_t page,
		     uint32_t number, uint64_t value)
{
	uint8_t bytes[8];

	put_be64(bytes, value);
	unit_set(unit, partition, object, page, number, bytes, sizeof(bytes));
}

void unit_try_set_long(struct unit *unit, uint64_t partition, uint64_t object, uint32_t page,
		       uint32_t number, uint32_t length)
{
	struct osd_cdb cdb = { .version = unit_version,
			       .action = OSD_SET_ATTRIBUTES,
			       .format = OSD_ATTRIBUTES_PAGE,
			       .partition = partition,
			       .object = object,
			       .set_page = page,
			       .set_number = number,
			       .set_data = { 0, length } };
	uint8_t bytes[OSD_CDB_BYTES_MAX], *value = calloc(1, length);
	size_t cdb_length;

	assert_non_null(value);
	assert_int_equal(osd_cdb_encode(&cdb, bytes, &cdb_length), 0);
	unit_execute(unit, bytes, cdb_length, value, length, 0);
	free(value);
}

void unit_set_long(struct unit *unit, uint64_t partition, uint64_t object, uint32_t page,
		   uint32_t number, uint32_t length)
{
	unit_try_set_long(unit, partition, object, page, number, length);
	expect_good(unit);
}

uint32_t unit_get(struct unit *unit, uint64_t partition, uint64_t object, uint32_t page,
		  uint32_t number, void *value, size_t capacity)
{
	struct call call = call_of(OSD_GET_ATTRIBUTES, partition, object);
	struct osd_attribute attribute;

	call_get(&call, page, number);
	call_run(unit, &call);
	expect_good(unit);
	attribute = unit_retrieved(unit, &call, 0);
	assert_int_equal(attribute.page, page);
	assert_int_equal(attribute.number, number);
	if (attribute.length > 0)
		memcpy(value, attribute.value, min_u64(attribute.present, capacity));
	return attribute.length;
}

uint64_t unit_get_number(struct unit *unit, uint64_t partition, uint64_t object, uint32_t page,
			 uint32_t number)
{
	uint8_t value[8];

	assert_int_equal(unit_get(unit, partition, object, page, number, value, sizeof(value)), 8);
	return get_be64(value);
}

/* ---- answers ---- */

struct osd_sense unit_sense(const struct unit *unit)
{
	struct osd_sense sense;

	assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
	assert_int_equal(osd_sense_decode(unit->command.sense, unit->command.sense_length, &sense),
			 0);
	return sense;
}

void unit_expect_good(struct unit *unit, const char *file, int line)
{
	struct osd_sense sense;

	if (unit->command.status == SCSI_STATUS_GOOD)
		return;
	osd_sense_decode(unit->command.sense, unit->command.sense_length, &sense);
	print_error("status %02x, %s, %s, field %u\n", unit->command.status,
		    osd_sense_key_name(sense.key), osd_sense_code_name(sense.code), sense.field);
	_fail(file, line);
}

void unit_expect_sense(struct unit *unit, uint8_t key, uint16_t code, int field, const char *file,
		       int line)
{
	struct osd_sense sense = { 0 };

	if (unit->command.status == SCSI_STATUS_CHECK_CONDITION)
		osd_sense_decode(unit->command.sense, unit->command.sense_length, &sense);
	if (unit->command.status == SCSI_STATUS_CHECK_CONDITION && sense.key == key &&
	    sense.code == code && sense.has_object && sense.has_field == (field >= 0) &&
	    (field < 0 || sense.field == field) &&
	    (key == SENSE_RECOVERED_ERROR || unit->command.data_in_length == 0))
		return;
	print_error("status %02x, %s, %s (%04x), field %u, %zu bytes of data\n",
		    unit->command.status, osd_sense_key_name(sense.key),
		    osd_sense_code_name(sense.code), sense.code, sense.field,
		    unit->command.data_in_length);
	_fail(file, line);
}

void unit_expect_action(const struct unit *unit, uint16_t action, const char *condition)
{
	if (unit->action != action || unit->version != unit_version)
		fail_msg("'%s' is said of %s in OSD-%d, but the last command was %s in OSD-%d",
			 condition, osd_action_name(action), unit_version,
			 osd_action_name(unit->action), unit->version);
}

static struct osd_list_reader retrieved_list(struct unit *unit, const struct call *call)
{
	struct osd_list_reader reader;
	size_t offset = call->cdb.retrieved.offset;

	assert_true(unit->command.data_in_length > offset);
	assert_int_equal(osd_list_read(&reader, call->cdb.version, OSD_LIST_RETRIEVED,
				       unit->data_in + offset,
				       unit->command.data_in_length - offset),
			 0);
	return reader;
}

struct osd_attribute unit_retrieved(struct unit *unit, const struct call *call, size_t index)
{
	struct osd_list_reader reader = retrieved_list(unit, call);
	struct osd_attribute attribute;

	for (size_t i = 0; i <= index; i++)
		assert_int_equal(osd_list_next(&reader, &attribute), 1);
	return attribute;
}

size_t unit_retrieved_count(struct unit *unit, const struct call *call)
{
	struct osd_list_reader reader = retrieved_list(unit, call);
	struct osd_attribute attribute;
	size_t count = 0;

	while (osd_list_next(&reader, &attribute) == 1)
		count++;
	return count;
}
