/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Commands that make sense, or nearly so: where the mutations of the osd target begin. */
#include <string.h>

#include "common/bytes.h"
#include "tests/fuzz/osd_generate.h"
#include "wire/keys_exchange.h"
#include "wire/security.h"
#include "wire/vendor.h"

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
	OSD_EXECUTE,
	OSD_EXECUTE,
	OSD_EXECUTE,
	OSD_EXECUTE,
	OSD_EXECUTE + 1,
	OSD_COMPARE_AND_SWAP,
	OSD_FETCH_AND_ADD,
	OSD_CONDITIONAL_SET_ATTRIBUTES,
	OSD_GENERAL_COMPARE_AND_SWAP,
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

uint64_t osd_generate_partition(struct fuzz_random *random)
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

uint64_t osd_generate_object(struct fuzz_random *random)
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
	case 6:
		/* Of a version and a first page, where IDs are packed. */
		return OSD_SCENE_OBJECT + fuzz_below(random, 4) +
		       ((uint64_t)fuzz_below(random, 16) << 20) +
		       ((uint64_t)fuzz_below(random, 8) / 6 << 24);
	default:
		return OSD_SCENE_OBJECT + fuzz_below(random, 4);
	}
}

/* ---- commands ---- */

/* Mostly one that the command can be about. */
static void choose_address(struct fuzz_random *random, struct osd_cdb *cdb)
{
	if (fuzz_below(random, 16) == 0)
		return;
	switch (cdb->action) {
	case OSD_CREATE_PARTITION:
		cdb->partition = fuzz_below(random, 2) ? 0 : osd_input_number(random);
		break;
	case OSD_CREATE:
	case OSD_CREATE_COLLECTION:
	case OSD_CREATE_USER_TRACKING_COLLECTION:
	case OSD_CREATE_AND_WRITE:
	case OSD_COPY_USER_OBJECTS:
		cdb->object = fuzz_below(random, 3) ? 0 : osd_input_number(random);
		break;
	case OSD_CREATE_CLONE:
	case OSD_CREATE_SNAPSHOT:
		cdb->partition = fuzz_below(random, 2) ? 0 : OSD_SCENE_CLONE;
		cdb->address = osd_generate_partition(random);
		break;
	case OSD_DETACH_CLONE:
	case OSD_REFRESH_SNAPSHOT_OR_CLONE:
		cdb->partition = OSD_SCENE_CLONE + fuzz_below(random, 2);
		break;
	case OSD_RESTORE_PARTITION_FROM_SNAPSHOT:
		cdb->partition = OSD_SCENE_PARTITION;
		cdb->address = OSD_SCENE_CLONE + fuzz_below(random, 2);
		break;
	case OSD_SET_KEY:
		cdb->command_options = (uint8_t)(1 + fuzz_below(random, 3));
		cdb->partition = cdb->command_options == 1 ? 0 : OSD_SCENE_PARTITION;
		break;
	case OSD_GET_ATTRIBUTES:
	case OSD_SET_ATTRIBUTES:
	case OSD_LIST:
	case OSD_EXECUTE:
	case OSD_OBJECT_STRUCTURE_CHECK:
		break;
	default:
		if (osd_generate_is_of_collection(cdb->action))
			cdb->object = OSD_SCENE_COLLECTION + fuzz_below(random, 4) / 3;
		else
			cdb->object = fuzz_below(random, 6)
					      ? OSD_SCENE_OBJECT + fuzz_below(random, 4)
					      : osd_generate_object(random);
		break;
	}
	if (cdb->action == OSD_CREATE_USER_TRACKING_COLLECTION && fuzz_below(random, 4))
		cdb->address = OSD_SCENE_COLLECTION;
	/* The matches are returned or collected. */
	if (cdb->action == OSD_QUERY && fuzz_below(random, 4))
		cdb->address = 0;
	if (cdb->action == OSD_QUERY && fuzz_below(random, 4) == 0) {
		cdb->address = OSD_SCENE_COLLECTION + 1;
		cdb->length = 0;
	}
	/* A command that several object types can have gets something of each. */
	if (cdb->action == OSD_CREATE && cdb->objects > 1)
		cdb->object = 0;
}

/* The PERFORM commands have fields of their own. */
static void choose_performed(struct fuzz_random *random, struct osd_cdb *cdb)
{
	static const uint8_t operations[] = { OSD_SCSI_INQUIRY, OSD_SCSI_TEST_UNIT_READY,
					      OSD_SCSI_REQUEST_SENSE, OSD_SCSI_MAINTENANCE_IN };
	static const uint8_t functions[] = { 0x01, 0x02, 0x04, 0x08, 0x10, 0x40, 0x80, 0x81, 0x82 };

	for (size_t i = 0; i < sizeof(cdb->embedded_cdb); i++)
		cdb->embedded_cdb[i] =
			(uint8_t)(fuzz_below(random, 2) ? 0 : fuzz_below(random, 256));
	if (fuzz_below(random, 8))
		cdb->embedded_cdb[0] = operations[fuzz_below(random, COUNT(operations))];
	cdb->task_function = (uint8_t)(fuzz_below(random, 8)
					       ? functions[fuzz_below(random, COUNT(functions))]
					       : fuzz_below(random, 256));
	cdb->task_tag = fuzz_below(random, 4);
	if (cdb->action == OSD_PERFORM_TASK_MANAGEMENT_FUNCTION)
		cdb->length = fuzz_below(random, 16);
}

/* A step of SET MASTER KEY. */
static void choose_exchange(struct fuzz_random *random, struct osd_cdb *cdb)
{
	struct osd_key_fields fields = {
		.dh_group = fuzz_below(random, 8) ? OSD_DH_GROUP_2048
						  : (uint8_t)(13 + fuzz_below(random, 4)),
		.parameter_length = 260,
		.allocation_length = fuzz_below(random, 8) ? 512 : fuzz_below(random, 512),
	};

	cdb->partition = 0;
	cdb->command_options = (uint8_t)fuzz_below(random, 2);
	osd_key_fields_encode(OSD_SET_MASTER_KEY, &fields, cdb->key_bytes);
}

static void choose_fields(struct fuzz_random *random, struct osd_cdb *cdb)
{
	*cdb = (struct osd_cdb){
		.version = fuzz_below(random, 4) ? OSD_2 : OSD_1,
		.action = actions[fuzz_below(random, COUNT(actions))],
		.format = OSD_ATTRIBUTES_LIST,
		.partition = osd_generate_partition(random),
		.object = osd_generate_object(random),
		.length = fuzz_below(random, 1024),
		.address = fuzz_below(random, 4) ? fuzz_below(random, 3) * 512
						 : osd_input_number(random),
		.list_identifier = fuzz_below(random, 8) ? 0 : (uint32_t)osd_input_number(random),
		.objects = (uint16_t)fuzz_below(random, 4),
		.fua = fuzz_below(random, 8) == 0,
		.list_attributes = fuzz_below(random, 16) == 0,
		.immediate_tracking = fuzz_below(random, 16) == 0,
		.command_options = (uint8_t)(fuzz_below(random, 6) ? fuzz_below(random, 4) / 3
								   : fuzz_below(random, 16)),
		.flush_scope = (uint8_t)(fuzz_below(random, 8) ? fuzz_below(random, 3) : 3),
		.isolation = (uint8_t)(fuzz_below(random, 16) ? 0 : fuzz_below(random, 8)),
		.map_type = (uint16_t)(fuzz_below(random, 8) ? fuzz_below(random, 4)
							     : osd_input_number(random)),
		.duplication_method =
			(uint8_t)(fuzz_below(random, 8) ? 0 : osd_input_number(random)),
		.timestamps_control = fuzz_below(random, 6) ? 0 : OSD_TIMESTAMPS_BYPASS,
	};
	choose_address(random, cdb);
	if (cdb->action == OSD_PERFORM_SCSI_COMMAND ||
	    cdb->action == OSD_PERFORM_TASK_MANAGEMENT_FUNCTION)
		choose_performed(random, cdb);
	/* Emptying the device is done often enough. */
	if (cdb->action == OSD_FORMAT_OSD && fuzz_below(random, 4))
		cdb->action = OSD_SET_ATTRIBUTES;
	for (size_t i = 0; i < sizeof(cdb->key_bytes); i++)
		cdb->key_bytes[i] = (uint8_t)fuzz_below(random, 256);
	if (cdb->action == OSD_SET_MASTER_KEY)
		choose_exchange(random, cdb);
	if (fuzz_below(random, 4))
		osd_capability_nosec(cdb, OSD_TYPE_USER_OBJECT);
}

/* INQUIRY, or TEST UNIT READY. */
static void generate_inquiry(struct fuzz_random *random, struct osd_input_command *command)
{
	static const uint8_t pages[] = { 0x00, 0x80, 0x83, 0xB0, 0xB1, 0xB2 };

	command->flags &= OSD_INPUT_OTHER_NEXUS;
	command->flags |= OSD_INPUT_INQUIRY;
	command->in_capacity = (uint16_t)fuzz_below(random, 300);
	if (fuzz_below(random, 4) == 0)
		return;
	command->cdb_length = 6;
	command->cdb[0] = 0x12;
	command->cdb[1] = fuzz_below(random, 4) != 0;
	command->cdb[2] = command->cdb[1] ? pages[fuzz_below(random, sizeof(pages))] : 0;
	put_be16(command->cdb + 3, command->in_capacity);
}

void osd_input_generate(struct fuzz_random *random, struct osd_input_command *command)
{
	struct osd_cdb cdb;
	size_t length;

	memset(command, 0, sizeof(*command));
	command->fill = (uint8_t)fuzz_below(random, 256);
	command->milliseconds = (uint16_t)fuzz_below(random, 3);
	command->flags = (uint16_t)(fuzz_below(random, 4) ? 0 : fuzz_below(random, 256));
	command->flags &= (uint16_t)~OSD_INPUT_INQUIRY;
	if (fuzz_below(random, 40) == 0) {
		generate_inquiry(random, command);
		return;
	}
	if (fuzz_below(random, 3) == 0)
		command->flags |= OSD_INPUT_COMPARE;
	if (fuzz_below(random, 3) == 0)
		command->flags |= OSD_INPUT_STEP;
	if (fuzz_below(random, 16) == 0) {
		command->flags |= OSD_INPUT_DAMAGE;
		command->fill |= (uint8_t)(fuzz_below(random, 4) << 6);
	}
	if (fuzz_below(random, 8))
		command->flags |= OSD_INPUT_COMPLETE;
	if (fuzz_below(random, 8) == 0)
		command->flags |= OSD_INPUT_ENVELOPE;
	command->flags &= (uint16_t)~OSD_INPUT_FORGE;
	if (fuzz_below(random, 2))
		command->flags |= OSD_INPUT_SIGN;
	if (fuzz_below(random, 16) == 0)
		command->flags |= OSD_INPUT_FORGE;
	choose_fields(random, &cdb);
	osd_generate_continuation(random, command, &cdb);
	if (cdb.action == OSD_EXECUTE)
		osd_generate_parameters(random, command, &cdb);
	if (cdb.action == OSD_COMPARE_AND_SWAP || cdb.action == OSD_FETCH_AND_ADD) {
		put_be64(command->out + 8, osd_input_number(random));
		osd_generate_ends_at(command, 16);
	}
	if (cdb.action == OSD_WRITE || cdb.action == OSD_APPEND ||
	    cdb.action == OSD_CREATE_AND_WRITE)
		osd_generate_ends_at(
			command, min_u64(command->out_length + cdb.length, OSD_INPUT_OUT_KEPT_MAX));
	if (fuzz_below(random, 4))
		osd_generate_attributes(random, command, &cdb);
	command->in_capacity = 4096;
	if (osd_cdb_encode(&cdb, command->cdb, &length) != 0) {
		cdb.version = OSD_2;
		if (osd_cdb_encode(&cdb, command->cdb, &length) != 0)
			length = OSD2_CDB_BYTES;
	}
	command->cdb_length = (uint16_t)length;
	/* The method to sign with. */
	if (command->flags & OSD_INPUT_SIGN)
		command->cdb[82] = (uint8_t)(cdb.action == OSD_SET_MASTER_KEY
						     ? OSD_ALLDATA
						     : fuzz_below(random, 4));
	/* The capability lacks a permission. */
	if (command->flags & OSD_INPUT_SIGN && fuzz_below(random, 8) == 0)
		command->cdb[133] = (uint8_t)(1 + fuzz_below(random, 255));
	/* It is bound to a list of allowed attributes. */
	if (command->flags & OSD_INPUT_SIGN && fuzz_below(random, 6) == 0)
		command->cdb[132] = (uint8_t)(1 + fuzz_below(random, 3));
	/* It is for a range of bytes. */
	if (command->flags & OSD_INPUT_SIGN && fuzz_below(random, 8) == 0)
		command->cdb[131] = (uint8_t)fuzz_below(random, 256);
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
