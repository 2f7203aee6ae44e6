/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What is checked before a command touches anything: buffers, continuation segment, addressed
 * object.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "osd/functions.h"

/* ---- buffers ---- */

/* CDB positions of lengths and offsets of sets and gets. */
struct segment_fields {
	uint16_t length, offset;
};

/*
 * Checks a part of Data-Out: it lies behind the command data and inside what came. Notes it as
 * used.
 */
static int check_out_segment(struct osd_request *request, const struct osd_segment *segment,
			     struct segment_fields fields)
{
	struct osd_command *command = request->command;
	uint64_t end;

	if (segment->length == 0)
		return 0;
	if (segment->offset < request->out_data + request->out_data_length)
		return osd_fail_field(request, fields.offset);
	if (segment->offset > command->data_out_length ||
	    segment->length > command->data_out_length - segment->offset)
		return osd_fail_field(request, fields.length);
	end = segment->offset + segment->length;
	command->data_out_used = max_u64(command->data_out_used, end);
	return 0;
}

static bool overlap(const struct osd_segment *a, const struct osd_segment *b)
{
	return a->length != 0 && b->length != 0 && a->offset < b->offset + b->length &&
	       b->offset < a->offset + a->length;
}

/* The attribute parameters against the buffers. */
static int check_attribute_segments(struct osd_request *request)
{
	static const struct segment_fields get_list = { 52, 56 }, set_list = { 68, 72 },
					   set_value = { 72, 76 };
	struct osd_cdb *cdb = &request->cdb;
	bool page = cdb->format == OSD_ATTRIBUTES_PAGE;
	struct segment_fields retrieved = page ? (struct segment_fields){ 56, 60 }
					       : (struct segment_fields){ 60, 64 };
	size_t space = request->command->data_in_capacity;

	if (check_out_segment(request, &cdb->set_data, page ? set_value : set_list) != 0 ||
	    check_out_segment(request, &cdb->get_list, get_list) != 0)
		return -EINVAL;
	if (overlap(&cdb->get_list, &cdb->set_data))
		return osd_fail_field(request, get_list.offset);
	if (cdb->retrieved.length == 0)
		return 0;
	if (cdb->list_attributes && request->entry->flags & OSD_LISTS)
		return 0; /* the attributes are in the command data */
	/* There is space in front of the data only if the data does not begin at 0. */
	if (cdb->retrieved.offset < request->in_data_length &&
	    cdb->retrieved.offset + (uint64_t)cdb->retrieved.length > request->in_data)
		return osd_fail_field(request, retrieved.offset);
	if (cdb->retrieved.offset > space || cdb->retrieved.length > space - cdb->retrieved.offset)
		return osd_fail_field(request, retrieved.length);
	return 0;
}

/* Do all pieces, counted from `address`, stay inside 64 bits? */
static bool pieces_fit(const struct osd_request *request, uint64_t address)
{
	for (size_t i = 0; i < request->pieces.length / 16; i++) {
		struct osd_piece piece;

		osd_piece_decode(&request->pieces, i, &piece);
		if (piece.offset > UINT64_MAX - address ||
		    piece.length > UINT64_MAX - address - piece.offset)
			return false;
	}
	return true;
}

/* Checks that the pieces make up LENGTH and stay inside 64 bits. */
static int check_pieces(struct osd_request *request)
{
	uint64_t total = 0;

	if (request->pieces.length % 16 != 0 || !pieces_fit(request, request->cdb.address))
		return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	for (size_t i = 0; i < request->pieces.length / 16; i++) {
		struct osd_piece piece;

		osd_piece_decode(&request->pieces, i, &piece);
		if (piece.length > UINT64_MAX - total)
			return osd_fail_field(request, OSD_FIELD_CONTINUATION);
		total += piece.length;
	}
	return total == request->cdb.length ? 0
					    : osd_fail_field(request, osd_length_field(request));
}

/* The descriptors of a continuation segment, and how many of each a command may have. */
static const struct {
	uint16_t type;
	unsigned flag; /* enum osd_command_flag */
	uint32_t most;
} descriptor_types[] = {
	{ OSD_CONTINUATION_SCATTER_GATHER, OSD_SCATTERS, 1 },
	{ OSD_CONTINUATION_QUERY_LIST, OSD_QUERIES, 1 },
	{ OSD_CONTINUATION_USER_OBJECT, OSD_NAMES_OBJECT, 1 },
	{ OSD_CONTINUATION_COPY_SOURCE, OSD_COPIES, UINT16_MAX },
	{ OSD_CONTINUATION_EXTENSION_CAPABILITIES, OSD_EXTENDS, 1 },
};

#define DESCRIPTOR_TYPES (sizeof(descriptor_types) / sizeof(descriptor_types[0]))

static bool takes_descriptors(const struct osd_request *request)
{
	for (size_t i = 0; i < DESCRIPTOR_TYPES; i++)
		if (request->entry->flags & descriptor_types[i].flag)
			return true;
	return false;
}

/* May the command have this descriptor? Counts it in `seen`. */
static bool takes_descriptor(const struct osd_request *request, uint16_t type,
			     uint32_t seen[DESCRIPTOR_TYPES])
{
	for (size_t i = 0; i < DESCRIPTOR_TYPES; i++)
		if (descriptor_types[i].type == type)
			return request->entry->flags & descriptor_types[i].flag &&
			       seen[i]++ < descriptor_types[i].most;
	return false;
}

/* Checks the continuation segment, which only commands with descriptors have. */
static int check_continuation(struct osd_request *request)
{
	struct osd_command *command = request->command;
	size_t length = request->cdb.continuation_length;
	uint32_t seen[DESCRIPTOR_TYPES] = { 0 };
	struct osd_continuation continuation;
	struct osd_descriptor descriptor;
	int result;

	if (length == 0)
		return 0;
	if (!takes_descriptors(request) || length > OSD_CONTINUATION_BYTES_MAX ||
	    length > command->data_out_length)
		return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	if (osd_continuation_read(&continuation, request->cdb.action, command->data_out, length) !=
	    0)
		return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	request->descriptors = continuation;
	while ((result = osd_continuation_next(&continuation, &descriptor)) == 1) {
		if (!takes_descriptor(request, descriptor.type, seen))
			return osd_fail_field(request, OSD_FIELD_CONTINUATION);
		if (descriptor.type == OSD_CONTINUATION_SCATTER_GATHER)
			request->pieces = descriptor;
		if (descriptor.type == OSD_CONTINUATION_QUERY_LIST)
			request->query = descriptor;
		if (descriptor.type == OSD_CONTINUATION_USER_OBJECT)
			request->other = descriptor;
		if (descriptor.type == OSD_CONTINUATION_EXTENSION_CAPABILITIES)
			request->extensions = descriptor;
	}
	if (result != 0)
		return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	request->out_data = length;
	command->data_out_used = length;
	return request->pieces.content ? check_pieces(request) : 0;
}

/* Checks the parameter data of SET MASTER KEY, whose lengths stand in other places. */
static int check_key_parameters(struct osd_request *request)
{
	struct osd_command *command = request->command;
	struct osd_key_fields fields;

	osd_key_fields_decode(OSD_SET_MASTER_KEY, request->cdb.key_bytes, &fields);
	if (fields.parameter_length > command->data_out_length)
		return osd_fail_field(request, OSD_FIELD_PARAMETER_LIST_LENGTH);
	request->out_data_length = fields.parameter_length;
	command->data_out_used = fields.parameter_length;
	request->in_data_length = min_u64(fields.allocation_length, command->data_in_capacity);
	return 0;
}

/* COMPARE AND SWAP and FETCH AND ADD: checks the operands, and the place for the old number. */
static int check_swap_data(struct osd_request *request)
{
	struct osd_command *command = request->command;
	const struct osd_cdb *cdb = &request->cdb;

	request->out_data_length = cdb->action == OSD_COMPARE_AND_SWAP ? 16 : 8;
	if (request->out_data_length > command->data_out_length - request->out_data)
		return osd_fail_field(request, osd_length_field(request));
	command->data_out_used = request->out_data + request->out_data_length;
	if (command->data_in_capacity < 8 || cdb->address > command->data_in_capacity - 8)
		return osd_fail_field(request, osd_address_field(request));
	request->in_data = cdb->address;
	request->in_data_length = cdb->address + 8;
	return 0;
}

/* The command data. */
static int check_data(struct osd_request *request)
{
	struct osd_command *command = request->command;
	const struct osd_cdb *cdb = &request->cdb;
	unsigned flags = request->entry->flags;

	if (flags & OSD_KEY_PARAMETERS)
		return check_key_parameters(request);
	if (flags & OSD_HAS_RANGE && !request->pieces.content &&
	    cdb->length > UINT64_MAX - cdb->address)
		return osd_fail_field(request, osd_address_field(request));
	if (flags & OSD_DATA_OUT) {
		if (cdb->length > command->data_out_length - request->out_data)
			return osd_fail_field(request, osd_length_field(request));
		request->out_data_length = cdb->length;
		command->data_out_used = request->out_data + cdb->length;
	}
	if (flags & OSD_PARAMETERS) {
		uint32_t length = osd_parameter_bytes(cdb);

		if (length > OSD_PARAMETER_BYTES_MAX ||
		    length > command->data_out_length - request->out_data)
			return osd_fail_field(request, osd_address_field(request) + 4);
		request->out_data_length = length;
		command->data_out_used = request->out_data + length;
	}
	if (flags & OSD_DATA_IN) {
		if (cdb->length > command->data_in_capacity)
			return osd_fail_field(request, osd_length_field(request));
		request->in_data_length = cdb->length;
	}
	if (flags & OSD_SWAPS && check_swap_data(request) != 0)
		return -EINVAL;
	if (flags & OSD_ALLOCATION)
		request->in_data_length = min_u64(cdb->length, command->data_in_capacity);
	return 0;
}

bool osd_isolation_is_known(uint8_t isolation)
{
	/* Commands run as if one after the other, which is more than any method asks for. */
	return isolation == OSD_ISOLATION_DEFAULT || isolation == OSD_ISOLATION_NONE ||
	       isolation == OSD_ISOLATION_STRICT || isolation == OSD_ISOLATION_RANGE ||
	       isolation == OSD_ISOLATION_FUNCTIONAL;
}

int osd_validate_buffers(struct osd_request *request)
{
	if (!osd_isolation_is_known(request->cdb.isolation))
		return osd_fail_field(request, OSD_FIELD_OPTIONS);
	if (check_continuation(request) != 0 || check_data(request) != 0)
		return -EINVAL;
	return check_attribute_segments(request);
}

/* ---- the addressed object ---- */

/* Wire partition: version 63..48, partition 47..0. */
#define PARTITION_BITS 48

struct engine_address osd_address(uint64_t partition, uint64_t object)
{
	return (struct engine_address){
		.partition = partition & ENGINE_LAST_PARTITION_ID,
		.object = object,
		.version = (uint32_t)(partition >> PARTITION_BITS),
	};
}

uint64_t osd_wire_partition(struct engine_address address)
{
	return (uint64_t)address.version << PARTITION_BITS | address.partition;
}

uint64_t osd_wire_object(const struct osd_request *request, uint64_t object)
{
	return osd_object_id_encode(request->layout, object);
}

/* Finds an object, and tells a missing partition from a missing object. */
static int find_object(struct osd_request *request, struct engine_address address)
{
	struct osd_subject *subject = &request->subject;
	int result;

	if (address.partition == 0 && address.object != 0)
		return osd_fail_field(request, OSD_FIELD_PARTITION);
	result = osd_open(request, address, subject);
	if (result == -ENOENT && address.object != 0) {
		struct engine_stat ignored;
		struct engine_address partition = address;

		partition.object = 0;
		if (osd_stat_at(request, partition, &ignored) == 0)
			return osd_fail_field(request, OSD_FIELD_OBJECT);
	}
	return osd_result(request, result, OSD_FIELD_PARTITION);
}

/* As find_object, for a command on one type of object. */
static int find_typed(struct osd_request *request, struct engine_address address,
		      enum engine_type type)
{
	if (address.object == 0)
		return osd_fail_field(request, OSD_FIELD_OBJECT);
	if (find_object(request, address) != 0)
		return -EINVAL;
	return request->subject.stat.type == type ? 0 : osd_fail_field(request, OSD_FIELD_OBJECT);
}

static int find_partition(struct osd_request *request)
{
	if (osd_names_root(request->cdb.partition))
		return osd_fail_field(request, OSD_FIELD_PARTITION);
	return find_object(request, osd_address(request->cdb.partition, 0));
}

/* Finds the root, also that of a version of the device. */
static int find_root_or_partition(struct osd_request *request)
{
	return find_object(request, osd_address(request->cdb.partition, 0));
}

/* Checks a requested ID: 0 (the target chooses), or not reserved. */
static int check_requested(struct osd_request *request, uint64_t id, uint64_t last, uint16_t field)
{
	return id == 0 || (id >= OSD_FIRST_ID && id <= last) ? 0 : osd_fail_field(request, field);
}

/* Reads the object ID in the CDB, in the layout of its partition. */
static int read_object_id(struct osd_request *request, struct engine_address *address)
{
	struct osd_cdb *cdb = &request->cdb;
	bool creates = request->entry->target == OSD_TARGET_NEW_USER_OBJECT ||
		       request->entry->target == OSD_TARGET_NEW_COLLECTION;
	struct osd_object_id id;
	uint64_t first;

	if (osd_find_layout(request, cdb->partition) != 0)
		return -EINVAL;
	if (osd_object_id_decode(request->layout, cdb->object, &id) != 0)
		return osd_fail_field(request, OSD_FIELD_OBJECT);
	request->object = id.object;
	*address = osd_address(cdb->partition, id.object);
	/* Nobody creates anything in the past. An address has one version at most. */
	/* Modifications are counted one by one. */
	if (request->attempt && id.ago)
		return osd_result(request, -EINPROGRESS, 0);
	if (id.version || id.ago) {
		if (creates ||
		    (request->entry->action == OSD_EXECUTE && request->entry->mode != ENGINE_READ))
			return osd_result(request, -EROFS, 0);
		/* Functions take their moments from their parameters. */
		if (request->entry->action == OSD_EXECUTE &&
		    request->entry->target != OSD_TARGET_USER_OBJECT &&
		    request->entry->target != OSD_TARGET_ANY)
			return osd_fail_field(request, OSD_FIELD_OBJECT_VERSION);
		if (address->version)
			return osd_fail_field(request, OSD_FIELD_OBJECT_VERSION);
		address->version = id.version;
		address->ago = id.ago;
	}
	/* An earlier transaction of the command may have done what follows. */
	if (id.page == 0 || request->has_page)
		return 0;
	/* A first page is part of an address, so only commands that have one take it. */
	first = (uint64_t)id.page * engine_page_bytes(request->device->engine);
	if (!(request->entry->flags & (OSD_HAS_RANGE | OSD_HAS_ADDRESS)) || creates)
		return osd_fail_field(request, OSD_FIELD_OBJECT_PAGE);
	if (cdb->address > UINT64_MAX - first ||
	    (request->entry->flags & OSD_HAS_RANGE && !request->pieces.content &&
	     cdb->length > UINT64_MAX - first - cdb->address) ||
	    !pieces_fit(request, cdb->address + first))
		return osd_fail_field(request, osd_address_field(request));
	cdb->address += first;
	request->has_page = true;
	return 0;
}

int osd_check_version(struct osd_request *request, struct engine_address address, uint16_t field)
{
	if (osd_has(request->device, ENGINE_HAS_VERSIONS) || (!address.version && !address.ago))
		return 0;
	return osd_result(request, -ENOENT, field);
}

static int find_target(struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->cdb;
	struct engine_address root = { 0 }, address;

	if (read_object_id(request, &address) != 0 ||
	    osd_check_version(request, address, OSD_FIELD_PARTITION) != 0)
		return -EINVAL;

	switch (request->entry->target) {
	case OSD_TARGET_ROOT:
		return find_object(request, root);
	case OSD_TARGET_PARTITION:
		return find_partition(request);
	case OSD_TARGET_ROOT_OR_PARTITION:
		return find_root_or_partition(request);
	case OSD_TARGET_USER_OBJECT:
		return find_typed(request, address, ENGINE_USER_OBJECT);
	case OSD_TARGET_COLLECTION:
		return find_typed(request, address, ENGINE_COLLECTION);
	case OSD_TARGET_ANY:
		return find_object(request, address);
	case OSD_TARGET_NEW_PARTITION:
		if (check_requested(request, cdb->partition, ENGINE_LAST_PARTITION_ID,
				    OSD_FIELD_PARTITION) != 0)
			return -EINVAL;
		return find_object(request, root);
	case OSD_TARGET_PARTITION_OR_COLLECTION:
		if (cdb->object == 0)
			return find_partition(request);
		return find_typed(request, address, ENGINE_COLLECTION);
	case OSD_TARGET_NEW_USER_OBJECT:
	case OSD_TARGET_NEW_COLLECTION:
		if (check_requested(request, request->object, UINT64_MAX, OSD_FIELD_OBJECT) != 0)
			return -EINVAL;
		return find_partition(request);
	}
	return osd_fail(request, SENSE_HARDWARE_ERROR, SENSE_INTERNAL_TARGET_FAILURE);
}

int osd_find_named_object(struct osd_request *request, uint64_t partition, uint64_t object,
			  uint16_t permissions, struct osd_subject *subject)
{
	enum osd_layout addressed = request->layout;
	struct osd_further further;
	struct engine_address address;
	struct osd_object_id id = { 0 };
	int result = osd_check_version(request, osd_address(partition, 0), OSD_FIELD_CONTINUATION);

	if (result == 0)
		result = osd_further_check(request, partition, object, permissions, &further);
	if (result == 0)
		result = osd_find_layout(request, partition);
	if (result == 0)
		result = osd_object_id_decode(request->layout, object, &id);
	request->layout = addressed;
	if (request->failed)
		return -EINVAL;
	address = osd_address(partition, id.object);
	if (result != 0 || id.object == 0 || id.page != 0 ||
	    ((id.version || id.ago) && address.version))
		return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	if (id.version || id.ago) {
		address.version = id.version;
		address.ago = id.ago;
	}
	if (osd_check_version(request, address, OSD_FIELD_CONTINUATION) != 0)
		return -EINVAL;
	result = osd_open(request, address, subject);
	if (result == -ENOENT || (result == 0 && subject->stat.type != ENGINE_USER_OBJECT))
		return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	if (result != 0)
		return osd_result(request, result, OSD_FIELD_CONTINUATION);
	return osd_further_check_found(request, &further, address, &subject->stat);
}

int osd_validate_target(struct osd_request *request)
{
	if (find_target(request) != 0)
		return -EINVAL;
	/* Old versions can only be read. */
	if ((request->subject.address.version != 0 || request->subject.address.ago != 0) &&
	    request->mode != ENGINE_READ)
		return osd_result(request, -EROFS, 0);
	return 0;
}

/* ---- the transaction ---- */

/*
 * Can a set only give space back? That is a removed attribute, or the logical length, whose growth
 * is a hole.
 */
static int is_growing_set(void *context, const struct osd_attribute *attribute)
{
	(void)context;
	return attribute->length != 0 && !(attribute->page == OSD_USER_OBJECT_INFORMATION &&
					   attribute->number == OSD_INFORMATION_LOGICAL_LENGTH);
}

/* Does the command put more than it is for, whatever its sets? */
static bool is_growing(const struct osd_request *request)
{
	const struct osd_command_entry *entry = request->entry;

	/* A QUERY fills its matches collection. A single object goes back by being put again. */
	return (entry->flags & OSD_QUERIES && request->cdb.address != 0) ||
	       (entry->execute == osd_function_rollback && request->cdb.object != 0) ||
	       (entry->execute == osd_function_snapshot && osd_has_sets(request));
}

enum engine_mode osd_transaction_mode(const struct osd_request *request)
{
	enum engine_mode mode = request->entry->mode;

	if (mode == ENGINE_WRITE || is_growing(request))
		return ENGINE_WRITE;
	if (!osd_has_sets(request))
		return mode;
	/* With sets anything could be put in the room that is kept for the command itself. */
	return osd_each_set(request, is_growing_set, NULL) == 0 ? ENGINE_FREE : ENGINE_WRITE;
}
