/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Commands that make sense, or nearly so: where the mutations of the osd target begin. */
#include <string.h>

#include "common/bytes.h"
#include "osd/wire.h"
#include "tests/fuzz/osd_input.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What comes more often stands here more often. */
static const uint16_t actions[] = {
	OSD_OBJECT_STRUCTURE_CHECK,
	OSD_FORMAT_OSD,
	OSD_CREATE,
	OSD_CREATE,
	OSD_LIST,
	OSD_LIST,
	OSD_PUNCH,
	OSD_READ,
	OSD_READ,
	OSD_WRITE,
	OSD_WRITE,
	OSD_WRITE,
	OSD_APPEND,
	OSD_FLUSH,
	OSD_CLEAR,
	OSD_REMOVE,
	OSD_CREATE_PARTITION,
	OSD_REMOVE_PARTITION,
	OSD_GET_ATTRIBUTES,
	OSD_GET_ATTRIBUTES,
	OSD_SET_ATTRIBUTES,
	OSD_SET_ATTRIBUTES,
	OSD_SET_ATTRIBUTES,
	OSD_CREATE_AND_WRITE,
	OSD_COPY_USER_OBJECTS,
	OSD_COPY_USER_OBJECTS,
	OSD_CREATE_USER_TRACKING_COLLECTION,
	OSD_CREATE_COLLECTION,
	OSD_CREATE_COLLECTION,
	OSD_REMOVE_COLLECTION,
	OSD_LIST_COLLECTION,
	OSD_LIST_COLLECTION,
	OSD_SET_KEY,
	OSD_SET_MASTER_KEY,
	OSD_FLUSH_COLLECTION,
	OSD_FLUSH_PARTITION,
	OSD_FLUSH_OSD,
	OSD_QUERY,
	OSD_QUERY,
	OSD_REMOVE_MEMBER_OBJECTS,
	OSD_GET_MEMBER_ATTRIBUTES,
	OSD_SET_MEMBER_ATTRIBUTES,
	OSD_CREATE_CLONE,
	OSD_CREATE_SNAPSHOT,
	OSD_DETACH_CLONE,
	OSD_REFRESH_SNAPSHOT_OR_CLONE,
	OSD_RESTORE_PARTITION_FROM_SNAPSHOT,
	OSD_READ_MAP,
	OSD_READ_MAPS_AND_COMPARE,
	OSD_PERFORM_SCSI_COMMAND,
	OSD_PERFORM_TASK_MANAGEMENT_FUNCTION,
	OSD_VENDOR_FIRST,
	OSD_VENDOR_FIRST + 1,
	OSD_VENDOR_FIRST + 2,
};

static const uint64_t numbers[] = {
	0,
	1,
	4,
	7,
	8,
	16,
	511,
	512,
	513,
	1500,
	4096,
	4097,
	0xFFFF,
	0x10000,
	OSD_SCENE_PARTITION + 1,
	OSD_SCENE_OBJECT + 1,
	OSD_SCENE_OBJECT + 2,
	OSD_SCENE_COLLECTION,
	OSD_SCENE_COLLECTION + 1,
	0x7FFFFFFF,
	0x80000000,
	0xFFFFFFFE,
	0xFFFFFFFF,
	UINT64_C(1) << 39,
	UINT64_C(1) << 43,
	INT64_MAX,
	UINT64_MAX - 1,
	UINT64_MAX,
	OSD_SCENE_PARTITION | UINT64_C(1) << 48,
	OSD_SCENE_PARTITION | UINT64_C(2) << 48,
};

uint64_t osd_input_number(struct fuzz_random *random)
{
	return fuzz_below(random, 3) ? fuzz_below(random, 2048)
				     : numbers[fuzz_below(random, COUNT(numbers))];
}

/* ---- addresses and attributes ---- */

static uint64_t any_partition(struct fuzz_random *random)
{
	switch (fuzz_below(random, 16)) {
	case 0:
		return osd_input_number(random);
	case 1:
		return OSD_SCENE_PARTITION + 1;
	case 2:
		return OSD_SCENE_PARTITION | UINT64_C(1) << 48;
	case 3:
		return 0;
	default:
		return OSD_SCENE_PARTITION;
	}
}

static uint64_t any_object(struct fuzz_random *random)
{
	switch (fuzz_below(random, 12)) {
	case 0:
		return osd_input_number(random);
	case 1:
	case 2:
		return 0;
	case 3:
	case 4:
		return OSD_SCENE_COLLECTION + fuzz_below(random, 3);
	case 5:
		return OSD_SCENE_OBJECT + 5 + fuzz_below(random, 4);
	default:
		return OSD_SCENE_OBJECT + fuzz_below(random, 4);
	}
}

static bool is_of_collection(uint16_t action)
{
	return action == OSD_CREATE_COLLECTION || action == OSD_REMOVE_COLLECTION ||
	       action == OSD_LIST_COLLECTION || action == OSD_FLUSH_COLLECTION ||
	       action == OSD_CREATE_USER_TRACKING_COLLECTION ||
	       (action >= OSD_QUERY && action <= OSD_SET_MEMBER_ATTRIBUTES);
}

/* First page of the type of what a CDB addresses, more or less. */
static uint32_t first_page(const struct osd_cdb *cdb)
{
	if (cdb->action == OSD_FORMAT_OSD || cdb->action == OSD_FLUSH_OSD || cdb->partition == 0)
		return OSD_PAGES_ROOT;
	if (cdb->action == OSD_CREATE_PARTITION || cdb->action == OSD_REMOVE_PARTITION ||
	    cdb->action == OSD_FLUSH_PARTITION || cdb->action == OSD_LIST ||
	    (cdb->action >= OSD_CREATE_CLONE && cdb->action <= OSD_RESTORE_PARTITION_FROM_SNAPSHOT))
		return OSD_PAGES_PARTITION;
	if (is_of_collection(cdb->action))
		return OSD_PAGES_COLLECTION;
	if (cdb->action != OSD_GET_ATTRIBUTES && cdb->action != OSD_SET_ATTRIBUTES)
		return OSD_PAGES_USER_OBJECT;
	if (cdb->object == 0)
		return OSD_PAGES_PARTITION;
	return cdb->object == OSD_SCENE_COLLECTION ? OSD_PAGES_COLLECTION : OSD_PAGES_USER_OBJECT;
}

static uint32_t any_page(struct fuzz_random *random, const struct osd_cdb *cdb)
{
	static const uint32_t odd[] = { 0xC0000000, 0xF0000000, 0xF0000001, 0xF0000003,
					0xFFFFFFFE, 0xFFFFFFFF, 0x10000,    0x20000000 };

	switch (fuzz_below(random, 12)) {
	case 0:
		return odd[fuzz_below(random, COUNT(odd))];
	case 1:
		return fuzz_below(random, 5) * 0x30000000U + fuzz_below(random, 8);
	case 2:
	case 3:
		return OSD_PAGE_CURRENT_COMMAND;
	case 4:
	case 5:
	case 6:
		return first_page(cdb) + OSD_PAGES_APPLICATION + fuzz_below(random, 2);
	default:
		return first_page(cdb) + fuzz_below(random, 7);
	}
}

static uint32_t any_attribute(struct fuzz_random *random)
{
	static const uint32_t some[] = {
		0x9,     0xA,     0xB,     0x10,    0x80,    0x81,       0x82,       0x84,
		0xC0,    0xC1,    0xD1,    0xD2,    0x100,   0x110,      0x111,      0x120,
		0x121,   0x122,   0x123,   0x10001, 0x10002, 0x10081,    0x20002,    0x7000000,
		0x40000, 0x40001, 0x4FFFF, 0x50000, 0x80000, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF,
	};

	return fuzz_below(random, 2) ? fuzz_below(random, 8)
				     : some[fuzz_below(random, COUNT(some))];
}

/* ---- Data-Out ---- */

/* A place in Data-Out that an offset can name; 0: there is none left. */
static size_t next_place(const struct osd_input_command *command, const struct osd_cdb *cdb)
{
	uint64_t place = osd_offset_encode(cdb->version, command->out_length, NULL);

	return place + 512 <= OSD_INPUT_OUT_KEPT_MAX ? place : 0;
}

static void ends_at(struct osd_input_command *command, size_t end)
{
	command->out_length = (uint16_t)end;
	command->out_kept = (uint16_t)end;
}

static void add_sets(struct fuzz_random *random, struct osd_input_command *command,
		     struct osd_cdb *cdb)
{
	size_t place = next_place(command, cdb);
	struct osd_list_writer writer;
	uint8_t value[64];

	if (place == 0 && command->out_length != 0)
		return;
	osd_list_begin(&writer, cdb->version, OSD_LIST_TO_SET, command->out + place, 512);
	for (uint32_t i = fuzz_below(random, 4); i > 0; i--) {
		static const uint32_t lengths[] = { 0, 1, 2, 4, 6, 8, 8, 8, 20, 64 };

		put_be64(value, osd_input_number(random));
		memset(value + 8, (int)fuzz_below(random, 256), sizeof(value) - 8);
		osd_list_add_value(&writer, any_page(random, cdb), any_attribute(random), value,
				   lengths[fuzz_below(random, COUNT(lengths))]);
	}
	cdb->set_data = (struct osd_segment){ place, (uint32_t)osd_list_end(&writer) };
	ends_at(command, place + cdb->set_data.length);
}

static void add_gets(struct fuzz_random *random, struct osd_input_command *command,
		     struct osd_cdb *cdb)
{
	size_t place = next_place(command, cdb);
	struct osd_list_writer writer;

	if (place == 0 && command->out_length != 0)
		return;
	osd_list_begin(&writer, cdb->version, OSD_LIST_TO_GET, command->out + place, 512);
	for (uint32_t i = fuzz_below(random, 6); i > 0; i--)
		osd_list_add_request(&writer, any_page(random, cdb), any_attribute(random));
	cdb->get_list = (struct osd_segment){ place, (uint32_t)osd_list_end(&writer) };
	cdb->retrieved =
		(struct osd_segment){ fuzz_below(random, 2) * 2048, fuzz_below(random, 2048) };
	ends_at(command, place + cdb->get_list.length);
}

static void add_page_format(struct fuzz_random *random, struct osd_input_command *command,
			    struct osd_cdb *cdb)
{
	size_t place = next_place(command, cdb);

	cdb->format = OSD_ATTRIBUTES_PAGE;
	cdb->get_page = any_page(random, cdb);
	cdb->retrieved =
		(struct osd_segment){ fuzz_below(random, 2) * 2048, fuzz_below(random, 512) };
	cdb->set_page = fuzz_below(random, 2) ? any_page(random, cdb) : 0;
	cdb->set_number = any_attribute(random);
	if (place == 0 && command->out_length != 0)
		return;
	cdb->set_data = (struct osd_segment){ place, fuzz_below(random, 40) };
	put_be64(command->out + place, osd_input_number(random));
	ends_at(command, place + cdb->set_data.length);
}

static void add_attributes(struct fuzz_random *random, struct osd_input_command *command,
			   struct osd_cdb *cdb)
{
	switch (fuzz_below(random, 6)) {
	case 0:
		add_page_format(random, command, cdb);
		break;
	case 1:
		if (cdb->version == OSD_1)
			break;
		cdb->format = OSD_ATTRIBUTES_CDB;
		cdb->set_page = any_page(random, cdb);
		cdb->set_number = any_attribute(random);
		cdb->set_length = (uint16_t)fuzz_below(random, OSD_CDB_VALUE_BYTES_MAX + 1);
		put_be64(cdb->set_value, osd_input_number(random));
		break;
	default:
		if (fuzz_below(random, 2))
			add_sets(random, command, cdb);
		if (fuzz_below(random, 2))
			add_gets(random, command, cdb);
		break;
	}
}

/* One continuation descriptor at `at`; where the next one begins. */
static size_t add_descriptor(struct fuzz_random *random, struct osd_input_command *command,
			     size_t at, uint16_t type)
{
	uint8_t *content = command->out + at + 8;
	uint32_t length = 0;

	memset(command->out + at, 0, 8);
	switch (type) {
	case OSD_CONTINUATION_SCATTER_GATHER:
		for (uint32_t i = fuzz_below(random, 4); i > 0; i--, length += 16) {
			put_be64(content + length, osd_input_number(random));
			put_be64(content + length + 8, fuzz_below(random, 200));
		}
		break;
	case OSD_CONTINUATION_QUERY_LIST:
		/* Type of the set operation, then entries: length, page, number, least, most. */
		put_be64(content, fuzz_below(random, 3));
		for (length = 8; length < 120 && fuzz_below(random, 2); length += 32) {
			put_be16(content + length, 0);
			put_be16(content + length + 2, 28);
			put_be32(content + length + 4, fuzz_below(random, 2));
			put_be32(content + length + 8, any_attribute(random));
			put_be16(content + length + 12, 8);
			put_be64(content + length + 14, osd_input_number(random));
			put_be16(content + length + 22, 8);
			put_be64(content + length + 24, osd_input_number(random));
		}
		break;
	default:
		for (length = 0; length < 64; length += 8)
			put_be64(content + length, fuzz_below(random, 2) ? any_object(random)
									 : any_partition(random));
		break;
	}
	put_be16(command->out + at, type);
	put_be32(command->out + at + 4, length);
	return at + 8 + length;
}

static void add_continuation(struct fuzz_random *random, struct osd_input_command *command,
			     struct osd_cdb *cdb)
{
	static const uint16_t types[] = {
		OSD_CONTINUATION_SCATTER_GATHER, OSD_CONTINUATION_QUERY_LIST,
		OSD_CONTINUATION_USER_OBJECT,    OSD_CONTINUATION_COPY_SOURCE,
		OSD_CONTINUATION_COPY_SOURCE,    OSD_CONTINUATION_EXTENSION_CAPABILITIES,
	};
	uint16_t type = types[fuzz_below(random, COUNT(types))];
	size_t end;

	if (cdb->action == OSD_READ || cdb->action == OSD_WRITE ||
	    cdb->action == OSD_CREATE_AND_WRITE)
		type = OSD_CONTINUATION_SCATTER_GATHER;
	else if (cdb->action == OSD_QUERY)
		type = OSD_CONTINUATION_QUERY_LIST;
	memset(command->out, 0, OSD_CONTINUATION_HEAD_BYTES);
	command->out[0] = OSD_CONTINUATION_FORMAT;
	put_be16(command->out + 2, cdb->action);
	end = add_descriptor(random, command, OSD_CONTINUATION_HEAD_BYTES, type);
	if (fuzz_below(random, 8) == 0)
		end = add_descriptor(random, command, end, types[fuzz_below(random, COUNT(types))]);
	cdb->continuation_length = (uint32_t)end;
	if (type == OSD_CONTINUATION_SCATTER_GATHER) {
		cdb->length = 0;
		for (size_t at = OSD_CONTINUATION_BYTES_MIN; at + 16 <= end; at += 16)
			cdb->length += get_be64(command->out + at + 8);
	}
	ends_at(command, end);
}

/* Does the command scatter, or take a list of what it is about? */
static bool may_continue(uint16_t action)
{
	return action == OSD_READ || action == OSD_WRITE || action == OSD_CREATE_AND_WRITE ||
	       action == OSD_QUERY || action == OSD_COPY_USER_OBJECTS ||
	       action == OSD_READ_MAPS_AND_COMPARE ||
	       action == OSD_CREATE_USER_TRACKING_COLLECTION || action == OSD_CREATE_CLONE;
}

/* ---- commands ---- */

static void choose_fields(struct fuzz_random *random, struct osd_cdb *cdb)
{
	*cdb = (struct osd_cdb){
		.version = fuzz_below(random, 4) ? OSD_2 : OSD_1,
		.action = actions[fuzz_below(random, COUNT(actions))],
		.format = OSD_ATTRIBUTES_LIST,
		.partition = any_partition(random),
		.object = any_object(random),
		.length = fuzz_below(random, 1024),
		.address = fuzz_below(random, 2) ? 0 : osd_input_number(random),
		.list_identifier = fuzz_below(random, 4) ? 0 : (uint32_t)osd_input_number(random),
		.objects = (uint16_t)fuzz_below(random, 4),
		.fua = fuzz_below(random, 8) == 0,
		.list_attributes = fuzz_below(random, 4) == 0,
		.immediate_tracking = fuzz_below(random, 8) == 0,
		.command_options = (uint8_t)(fuzz_below(random, 3) ? 0 : fuzz_below(random, 16)),
		.flush_scope = (uint8_t)fuzz_below(random, 4),
		.isolation = (uint8_t)(fuzz_below(random, 8) ? 0 : fuzz_below(random, 8)),
		.map_type = (uint16_t)fuzz_below(random, 6),
		.duplication_method = (uint8_t)(fuzz_below(random, 2) ? 0 : fuzz_below(random, 3)),
		.timestamps_control = fuzz_below(random, 6) ? 0 : OSD_TIMESTAMPS_BYPASS,
	};
	if (cdb->action == OSD_CREATE || cdb->action == OSD_CREATE_PARTITION ||
	    cdb->action == OSD_CREATE_COLLECTION || cdb->action == OSD_CREATE_AND_WRITE) {
		/* Mostly something new. */
		cdb->object = fuzz_below(random, 3) ? 0 : any_object(random);
		if (cdb->action == OSD_CREATE_PARTITION)
			cdb->partition = fuzz_below(random, 2) ? 0 : any_partition(random);
	} else if (is_of_collection(cdb->action) && fuzz_below(random, 6)) {
		cdb->object = OSD_SCENE_COLLECTION + fuzz_below(random, 2);
	}
	/* Emptying the device is done often enough. */
	if (cdb->action == OSD_FORMAT_OSD && fuzz_below(random, 4))
		cdb->action = OSD_SET_ATTRIBUTES;
	for (size_t i = 0; i < sizeof(cdb->key_bytes); i++)
		cdb->key_bytes[i] = (uint8_t)fuzz_below(random, 256);
	if (fuzz_below(random, 4))
		osd_capability_nosec(cdb, OSD_TYPE_USER_OBJECT);
}

void osd_input_generate(struct fuzz_random *random, struct osd_input_command *command)
{
	struct osd_cdb cdb;
	size_t length;

	memset(command, 0, sizeof(*command));
	command->fill = (uint8_t)fuzz_below(random, 256);
	command->milliseconds = (uint16_t)fuzz_below(random, 3);
	command->flags = (uint8_t)(fuzz_below(random, 4) ? 0 : fuzz_below(random, 256));
	command->flags &= (uint8_t)~OSD_INPUT_INQUIRY;
	if (fuzz_below(random, 3) == 0)
		command->flags |= OSD_INPUT_COMPARE;
	choose_fields(random, &cdb);
	if (cdb.version == OSD_2 && may_continue(cdb.action) && fuzz_below(random, 2))
		add_continuation(random, command, &cdb);
	if (cdb.action == OSD_WRITE || cdb.action == OSD_APPEND ||
	    cdb.action == OSD_CREATE_AND_WRITE)
		ends_at(command, min_u64(command->out_length + cdb.length, OSD_INPUT_OUT_KEPT_MAX));
	if (fuzz_below(random, 4))
		add_attributes(random, command, &cdb);
	command->in_capacity = 4096;
	if (osd_cdb_encode(&cdb, command->cdb, &length) != 0) {
		cdb.version = OSD_2;
		if (osd_cdb_encode(&cdb, command->cdb, &length) != 0)
			length = OSD2_CDB_BYTES;
	}
	command->cdb_length = (uint16_t)length;
}

/* ---- refitting ---- */

static uint64_t end_of(const struct osd_segment *segment)
{
	return segment->length == 0 ? 0 : segment->offset + segment->length;
}

void osd_input_refit(struct osd_input_command *command)
{
	uint64_t out, in;
	struct osd_cdb cdb;
	uint16_t bad_field;

	if (osd_cdb_decode(command->cdb, command->cdb_length, &cdb, &bad_field) != 0)
		return;
	out = max_u64(end_of(&cdb.get_list), end_of(&cdb.set_data));
	out = max_u64(out, cdb.continuation_length);
	if (cdb.action == OSD_WRITE || cdb.action == OSD_APPEND ||
	    cdb.action == OSD_CREATE_AND_WRITE)
		out = max_u64(out, cdb.continuation_length + cdb.length);
	in = max_u64(end_of(&cdb.retrieved), cdb.action == OSD_READ ? cdb.length : 512);
	if (out <= OSD_INPUT_OUT_MAX)
		command->out_length = (uint16_t)out;
	if (in <= OSD_INPUT_IN_MAX)
		command->in_capacity = (uint16_t)in;
	if (command->out_kept > command->out_length)
		command->out_kept = command->out_length;
}
