/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Commands with random damage, from a fixed seed: whatever comes, the answer is well-formed, no
 * buffer is left and the device goes on working. HOSTILE_SEED and HOSTILE_COMMANDS in the
 * environment choose another run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/unit.h"
#include "wire/envelope.h"

#define COMMANDS 200000
#define OUT_MAX  4096
#define IN_MAX   4096
/* The device is emptied this often, so that it never fills up. */
#define COMMANDS_PER_DEVICE 2000

struct raw {
	uint8_t cdb[260];
	size_t cdb_length;
	uint8_t out[OUT_MAX];
	size_t out_length;
	size_t in_capacity;
};

static uint64_t random_state;

static uint64_t random_number(void)
{
	/* xorshift64* */
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * UINT64_C(2685821657736338717);
}

static uint64_t below(uint64_t bound)
{
	return random_number() % bound;
}

/* ---- valid commands ---- */

static const uint16_t actions[] = {
	OSD_FORMAT_OSD,
	OSD_CREATE,
	OSD_LIST,
	OSD_PUNCH,
	OSD_READ,
	OSD_WRITE,
	OSD_APPEND,
	OSD_FLUSH,
	OSD_CLEAR,
	OSD_REMOVE,
	OSD_CREATE_PARTITION,
	OSD_REMOVE_PARTITION,
	OSD_GET_ATTRIBUTES,
	OSD_SET_ATTRIBUTES,
	OSD_CREATE_AND_WRITE,
	OSD_WRITE,
	OSD_READ,
	OSD_FLUSH_COLLECTION,
	OSD_FLUSH_PARTITION,
	OSD_FLUSH_OSD,
	OSD_QUERY,
	OSD_SET_KEY,
	OSD_READ_MAP,
	OSD_READ_MAPS_AND_COMPARE,
	OSD_OBJECT_STRUCTURE_CHECK,
	OSD_COPY_USER_OBJECTS,
	OSD_COMPARE_AND_SWAP,
	OSD_FETCH_AND_ADD,
	OSD_CONDITIONAL_SET_ATTRIBUTES,
	OSD_GENERAL_COMPARE_AND_SWAP,
	OSD_PERFORM_SCSI_COMMAND,
	OSD_PERFORM_TASK_MANAGEMENT_FUNCTION,
};

static const uint32_t pages[] = {
	0,          1,          2,          3,          4,          0x10000,    0x10003,
	0x30000000, 0x30000001, 0x30000002, 0x30000003, 0x30010000, 0x60000001, 0x90000000,
	0x90000001, 0x90000002, 0x90000003, 0xC0000000, 0xF0000003, 0xFFFFFFFE, 0xFFFFFFFF,
};

static const uint32_t numbers[] = { 0,    1,    2,       3,       4,          5,         9,
				    0x81, 0x82, 0x10001, 0x10002, 0xFFFFFFFE, 0xFFFFFFFF };

/* Mostly small numbers, sometimes the edges of everything. */
static uint64_t edge(void)
{
	static const uint64_t edges[] = { 0,
					  1,
					  7,
					  8,
					  4095,
					  4096,
					  4097,
					  0xFFFF,
					  0x10000,
					  0x7FFFFFFF,
					  0x80000000,
					  0xFFFFFFFF,
					  UINT64_C(1) << 43,
					  INT64_MAX,
					  UINT64_MAX - 1,
					  UINT64_MAX };

	return below(4) ? below(9000) : edges[below(sizeof(edges) / sizeof(edges[0]))];
}

/* Mostly a page that the addressed object can have, and that can be set. */
static uint32_t any_page(const struct osd_cdb *cdb)
{
	uint32_t first = OSD_PAGES_USER_OBJECT;

	if (below(16) == 0)
		return pages[below(sizeof(pages) / sizeof(pages[0]))];
	if (below(4) == 0)
		return 0xF0000003;
	if (cdb->action == OSD_FORMAT_OSD || cdb->action == OSD_FLUSH_OSD || cdb->partition == 0)
		first = OSD_PAGES_ROOT;
	else if (cdb->action == OSD_CREATE_PARTITION || cdb->action == OSD_REMOVE_PARTITION ||
		 cdb->action == OSD_FLUSH_PARTITION ||
		 (cdb->object == 0 &&
		  (cdb->action == OSD_GET_ATTRIBUTES || cdb->action == OSD_SET_ATTRIBUTES)) ||
		 (cdb->action == OSD_LIST && !cdb->list_attributes))
		first = OSD_PAGES_PARTITION;
	return first + (below(3) ? OSD_PAGES_APPLICATION : (uint32_t)below(4));
}

static uint32_t any_number(void)
{
	return numbers[below(sizeof(numbers) / sizeof(numbers[0]))];
}

static struct osd_segment any_room(const struct osd_cdb *cdb)
{
	bool data = cdb->action == OSD_READ || cdb->action == OSD_LIST ||
		    cdb->action == OSD_READ_MAP || cdb->action == OSD_READ_MAPS_AND_COMPARE ||
		    cdb->action == OSD_OBJECT_STRUCTURE_CHECK ||
		    cdb->action == OSD_COMPARE_AND_SWAP || cdb->action == OSD_FETCH_AND_ADD ||
		    cdb->action == OSD_PERFORM_SCSI_COMMAND;

	return (struct osd_segment){ data ? 2048 : 0, (uint32_t)below(2048) };
}

static void add_lists(struct raw *raw, struct osd_cdb *cdb)
{
	struct osd_list_writer writer;
	uint8_t value[64];
	uint64_t offset;

	memset(value, (int)below(256), sizeof(value));
	value[below(64)] = 0;
	if (below(2)) {
		offset = osd_offset_encode(cdb->version, raw->out_length, NULL);
		osd_list_begin(&writer, cdb->version, OSD_LIST_TO_SET, raw->out + offset, 512);
		for (uint64_t i = below(3); i > 0; i--)
			osd_list_add_value(&writer, any_page(cdb), any_number(), value,
					   (uint32_t)(below(3) ? 8 : below(64)));
		cdb->set_data = (struct osd_segment){ offset, (uint32_t)osd_list_end(&writer) };
		raw->out_length = offset + cdb->set_data.length;
	}
	if (below(2)) {
		offset = osd_offset_encode(cdb->version, raw->out_length, NULL);
		osd_list_begin(&writer, cdb->version, OSD_LIST_TO_GET, raw->out + offset, 512);
		for (uint64_t i = below(6); i > 0; i--)
			osd_list_add_request(&writer, any_page(cdb), any_number());
		cdb->get_list = (struct osd_segment){ offset, (uint32_t)osd_list_end(&writer) };
		raw->out_length = offset + cdb->get_list.length;
		cdb->retrieved = any_room(cdb);
	}
}

static void add_other_formats(struct raw *raw, struct osd_cdb *cdb)
{
	cdb->set_page = any_page(cdb);
	cdb->set_number = any_number();
	if (cdb->version == OSD_2 && below(2)) {
		cdb->format = OSD_ATTRIBUTES_CDB;
		cdb->set_length = (uint16_t)below(OSD_CDB_VALUE_BYTES_MAX + 1);
		return;
	}
	cdb->format = OSD_ATTRIBUTES_PAGE;
	cdb->get_page = any_page(cdb);
	cdb->retrieved = any_room(cdb);
	cdb->set_data =
		(struct osd_segment){ osd_offset_encode(cdb->version, raw->out_length, NULL),
				      (uint32_t)below(64) };
	raw->out_length = cdb->set_data.offset + cdb->set_data.length;
}

static void add_pieces(struct raw *raw, struct osd_cdb *cdb)
{
	struct osd_piece pieces[4];
	size_t count = below(5);

	cdb->length = 0;
	for (size_t i = 0; i < count; i++) {
		pieces[i] = (struct osd_piece){ edge(), below(300) };
		cdb->length += pieces[i].length;
	}
	raw->out_length =
		osd_continuation_encode(cdb->action, pieces, count, raw->out, sizeof(raw->out));
	cdb->continuation_length = (uint32_t)raw->out_length;
}

/* The objects that COPY USER OBJECTS and READ MAPS AND COMPARE name, mostly ones that are there. */
static void add_named_objects(struct raw *raw, struct osd_cdb *cdb)
{
	bool copy = cdb->action == OSD_COPY_USER_OBJECTS;
	uint8_t content[OSD_COPY_SOURCE_BYTES] = { 0 };
	size_t length = 0;

	for (uint64_t i = copy ? 1 + below(8) / 6 : 1; i > 0; i--) {
		put_be64(content, below(16) ? P : edge());
		put_be64(content + 8, below(16) ? O : edge());
		content[16] = (uint8_t)(below(4) << 6);
		length = osd_continuation_add(
			raw->out, length, sizeof(raw->out), cdb->action,
			copy ? OSD_CONTINUATION_COPY_SOURCE : OSD_CONTINUATION_USER_OBJECT, content,
			copy ? OSD_COPY_SOURCE_BYTES : OSD_USER_OBJECT_BYTES);
	}
	if (copy)
		cdb->object = below(4) ? 0 : cdb->object;
	raw->out_length = length;
	cdb->continuation_length = (uint32_t)length;
}

/* What commands beside READ and WRITE need of their own. */
static void complete_command(struct raw *raw, struct osd_cdb *cdb)
{
	switch (cdb->action) {
	case OSD_COPY_USER_OBJECTS:
	case OSD_READ_MAPS_AND_COMPARE:
		add_named_objects(raw, cdb);
		break;
	case OSD_READ_MAP:
		cdb->map_type = (uint16_t)(below(8) ? below(4) : edge());
		break;
	case OSD_COMPARE_AND_SWAP:
	case OSD_FETCH_AND_ADD:
		raw->out_length = 16;
		cdb->length = 8;
		break;
	case OSD_PERFORM_SCSI_COMMAND:
		cdb->embedded_cdb[0] =
			(uint8_t)(below(2) ? OSD_SCSI_INQUIRY : OSD_SCSI_REQUEST_SENSE);
		cdb->embedded_cdb[1] = 1;
		cdb->embedded_cdb[4] = (uint8_t)below(256);
		break;
	default:
		break;
	}
}

/* Two operands of one attribute, and sometimes further entries. */
static void add_operands(struct raw *raw, struct osd_cdb *cdb)
{
	uint64_t offset = osd_offset_encode(cdb->version, raw->out_length, NULL);
	struct osd_list_writer writer;

	osd_list_begin(&writer, cdb->version, OSD_LIST_TO_SET, raw->out + offset, 512);
	for (uint64_t i = 0, count = 2 + below(3); i < count; i++)
		osd_list_add_value(&writer, 0xF0000003, i < 2 ? 1 : any_number(),
				   &(uint8_t){ (uint8_t)below(3) }, (uint32_t)below(2));
	cdb->set_data = (struct osd_segment){ offset, (uint32_t)osd_list_end(&writer) };
	raw->out_length = offset + cdb->set_data.length;
	cdb->retrieved = any_room(cdb);
}

/* A command that could come from an initiator in its right mind, or nearly so. */
static void make_command(struct raw *raw)
{
	struct osd_cdb cdb = {
		.version = below(4) ? OSD_2 : OSD_1,
		.action = actions[below(sizeof(actions) / sizeof(actions[0]))],
		.format = OSD_ATTRIBUTES_LIST,
		.partition = below(16) ? P : edge(),
		.object = below(16) ? O + below(3) / 2 : edge(),
		.length = below(1024),
		.address = below(2) ? 0 : edge(),
		.list_identifier = (uint32_t)edge(),
		.objects = (uint16_t)below(4),
		.fua = below(8) == 0,
		.list_attributes = below(4) == 0,
		.timestamps_control = below(4) ? 0 : OSD_TIMESTAMPS_BYPASS,
	};

	if (cdb.action == OSD_QUERY || cdb.action == OSD_SET_KEY || cdb.action == OSD_REMOVE)
		cdb.action = below(8) ? OSD_WRITE : cdb.action;
	if ((cdb.action == OSD_CREATE || cdb.action == OSD_CREATE_AND_WRITE) && below(4))
		cdb.object = 0;
	if (cdb.action == OSD_CREATE_PARTITION)
		cdb.partition = below(2) ? 0 : edge();
	if ((cdb.action == OSD_GET_ATTRIBUTES || cdb.action == OSD_SET_ATTRIBUTES) && below(3) == 0)
		cdb.object = 0;
	/* Emptying the device, or waiting for the host's storage, is done often enough. */
	if (cdb.action == OSD_FORMAT_OSD && below(50) != 0)
		cdb.action = OSD_WRITE;
	memset(raw, 0, sizeof(*raw));
	for (size_t i = 0; i < sizeof(raw->out); i += 8)
		put_be64(raw->out + i, random_number());
	if (cdb.version == OSD_2 && (cdb.action == OSD_READ || cdb.action == OSD_WRITE) &&
	    below(3) == 0)
		add_pieces(raw, &cdb);
	if (cdb.action == OSD_WRITE || cdb.action == OSD_APPEND ||
	    cdb.action == OSD_CREATE_AND_WRITE)
		raw->out_length += cdb.length;
	complete_command(raw, &cdb);
	if (cdb.action == OSD_CONDITIONAL_SET_ATTRIBUTES ||
	    cdb.action == OSD_GENERAL_COMPARE_AND_SWAP)
		add_operands(raw, &cdb);
	else if (below(4))
		add_lists(raw, &cdb);
	else
		add_other_formats(raw, &cdb);
	raw->in_capacity = IN_MAX;
	if (osd_cdb_encode(&cdb, raw->cdb, &raw->cdb_length) != 0) {
		cdb.version = OSD_2;
		assert_int_equal(osd_cdb_encode(&cdb, raw->cdb, &raw->cdb_length), 0);
	}
}

/* ---- damage ---- */

static void damage_bytes(uint8_t *bytes, size_t length)
{
	size_t at;

	if (length < 8)
		return;
	at = below(length - 7);
	switch (below(4)) {
	case 0:
		bytes[at] ^= (uint8_t)(1u << below(8));
		break;
	case 1:
		bytes[at] = (uint8_t)random_number();
		break;
	case 2:
		put_be32(bytes + (at & ~(size_t)3), (uint32_t)edge());
		break;
	default:
		put_be64(bytes + at, edge());
		break;
	}
}

static void damage(struct raw *raw)
{
	for (uint64_t i = below(5) / 2; i > 0; i--) {
		switch (below(8)) {
		case 0:
			raw->cdb_length = below(sizeof(raw->cdb) + 1);
			break;
		case 1:
			raw->out_length = below(raw->out_length + 1);
			break;
		case 2:
			raw->in_capacity = below(3) ? below(IN_MAX) : 0;
			break;
		case 3:
		case 4:
			damage_bytes(raw->out, raw->out_length);
			break;
		default:
			/*
			 * Behind byte 8: another action would only be refused; and capabilities are
			 * not looked at.
			 */
			damage_bytes(raw->cdb + (below(8) ? 10 : 0), 70);
			break;
		}
	}
	/* Thousands of objects at once are possible, but not the point. */
	if (get_be16(raw->cdb + 8) == OSD_CREATE)
		raw->cdb[32] = 0;
	if (get_be16(raw->cdb + 8) == OSD_CREATE - OSD2_ACTION_OFFSET)
		raw->cdb[36] = 0;
}

/* ---- the run ---- */

static void check_answer(const struct unit *unit, const struct raw *raw)
{
	bool is_envelope = raw->cdb_length > 0 &&
			   (raw->cdb[0] == ENVELOPE_SEND || raw->cdb[0] == ENVELOPE_FETCH);
	const struct osd_command *command = &unit->command;
	struct osd_sense sense;

	assert_true(command->status == SCSI_STATUS_GOOD ||
		    command->status == SCSI_STATUS_CHECK_CONDITION);
	if (command->status == SCSI_STATUS_GOOD)
		return;
	assert_int_equal(osd_sense_decode(command->sense, command->sense_length, &sense), 0);
	assert_int_equal(command->sense_length, 8 + command->sense[7]);
	/* Errors of an envelope itself are about no object. */
	assert_true(sense.key != SENSE_NO_SENSE);
	assert_true(sense.has_object || is_envelope);
	/* Nothing that an initiator sends is the target's own failure. */
	assert_true(sense.key != SENSE_HARDWARE_ERROR && sense.key != SENSE_MEDIUM_ERROR);
	assert_true(sense.key == SENSE_RECOVERED_ERROR || command->data_in_length == 0);
}

/*
 * Reading commands, executed again over other garbage, must give the same bytes: so every byte was
 * set.
 */
static void check_every_byte_is_set(struct unit *unit, const struct raw *raw)
{
	uint16_t action = get_be16(raw->cdb + 8) | OSD2_ACTION_OFFSET;
	uint8_t first[IN_MAX];
	size_t length = unit->command.data_in_length;

	if (raw->cdb_length < 10 || length == 0 ||
	    (action != OSD_READ && action != OSD_LIST && action != OSD_GET_ATTRIBUTES &&
	     action != OSD_READ_MAP && action != OSD_READ_MAPS_AND_COMPARE &&
	     action != OSD_OBJECT_STRUCTURE_CHECK && action != OSD_PERFORM_SCSI_COMMAND))
		return;
	/* With sets the second answer may differ: those of the first time have happened. */
	if (get_be32(raw->cdb + 68) != 0 || (raw->cdb[11] & 0x30) != OSD_ATTRIBUTES_LIST)
		return;
	/* Twice: the command itself may have moved the access times that it answers. */
	unit_execute(unit, raw->cdb, raw->cdb_length, raw->out, raw->out_length, raw->in_capacity);
	memcpy(first, unit->data_in, length);
	unit->garbage = 0xC3;
	unit_execute(unit, raw->cdb, raw->cdb_length, raw->out, raw->out_length, raw->in_capacity);
	unit->garbage = 0;
	assert_int_equal(unit->command.data_in_length, length);
	assert_memory_equal(unit->data_in, first, length);
}

static void start_over(struct unit *unit)
{
	struct call call = call_of(OSD_FORMAT_OSD, 0, 0);

	call_run(unit, &call);
	expect_good(unit);
	unit_create_partition(unit, P);
	unit_create(unit, P, O);
	unit_write(unit, O, 0, "something to read", 17);
}

static uint64_t environment_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static void test_no_damage_to_a_command_hurts_the_target(void **state)
{
	uint64_t seed = environment_number("HOSTILE_SEED", 20140610);
	uint64_t commands = environment_number("HOSTILE_COMMANDS", COMMANDS), good = 0;
	struct unit unit;

	(void)state;
	print_message("HOSTILE_SEED=%llu HOSTILE_COMMANDS=%llu\n", (unsigned long long)seed,
		      (unsigned long long)commands);
	random_state = seed ? seed : 1;
	unit_open(&unit, 64 << 20);
	for (uint64_t i = 0; i < commands; i++) {
		struct raw raw;

		if (i % COMMANDS_PER_DEVICE == 0)
			start_over(&unit);
		make_command(&raw);
		damage(&raw);
		unit_execute(&unit, raw.cdb, raw.cdb_length, raw.out, raw.out_length,
			     raw.in_capacity);
		check_answer(&unit, &raw);
		good += unit.command.status == SCSI_STATUS_GOOD;
		check_every_byte_is_set(&unit, &raw);
		unit.now_ms++;
	}
	print_message("%llu succeeded\n", (unsigned long long)good);
	/* Enough of them must get past the checks for the run to mean something. */
	assert_true(good > commands / 5);
	start_over(&unit);
	unit_close(&unit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_damage_to_a_command_hurts_the_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
