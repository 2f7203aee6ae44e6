/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* An OSD in memory that knows the commands which the client sends. */
#include "tests/client/memory_osd.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

/* ---- objects ---- */

/* Where (partition, id) is or would be. */
static size_t position_of(const struct memory_osd *osd, uint64_t partition, uint64_t id)
{
	size_t low = 0, high = osd->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct memory_object *object = osd->objects[middle];

		if (object->partition < partition ||
		    (object->partition == partition && object->id < id))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct memory_object *memory_osd_find(struct memory_osd *osd, uint64_t partition, uint64_t id)
{
	size_t at = position_of(osd, partition, id);

	if (at == osd->count || osd->objects[at]->partition != partition ||
	    osd->objects[at]->id != id)
		return NULL;
	return osd->objects[at];
}

size_t memory_osd_count(const struct memory_osd *osd, uint64_t partition)
{
	return position_of(osd, partition, UINT64_MAX) - position_of(osd, partition, 1);
}

static struct memory_object *insert(struct memory_osd *osd, uint64_t partition, uint64_t id)
{
	size_t at = position_of(osd, partition, id);
	struct memory_object *object = calloc(1, sizeof(*object));

	if (osd->count == osd->capacity) {
		osd->capacity = osd->capacity ? 2 * osd->capacity : 64;
		osd->objects =
			reallocarray(osd->objects, osd->capacity, sizeof(struct memory_object *));
	}
	memmove(osd->objects + at + 1, osd->objects + at,
		(osd->count - at) * sizeof(struct memory_object *));
	osd->objects[at] = object;
	osd->count++;
	object->partition = partition;
	object->id = id;
	return object;
}

static void discard(struct memory_osd *osd, size_t at)
{
	struct memory_object *object = osd->objects[at];

	for (size_t i = 0; i < object->attribute_count; i++)
		free(object->attributes[i].value);
	free(object->data);
	free(object);
	osd->count--;
	memmove(osd->objects + at, osd->objects + at + 1,
		(osd->count - at) * sizeof(struct memory_object *));
}

void memory_osd_free(struct memory_osd *osd)
{
	while (osd->count > 0)
		discard(osd, osd->count - 1);
	free(osd->objects);
	*osd = (struct memory_osd){ 0 };
}

const struct memory_attribute *memory_osd_attribute(const struct memory_object *object,
						    uint32_t page, uint32_t number)
{
	for (size_t i = 0; i < object->attribute_count; i++)
		if (object->attributes[i].page == page && object->attributes[i].number == number)
			return &object->attributes[i];
	return NULL;
}

static void resize(struct memory_object *object, uint64_t length)
{
	object->data = realloc(object->data, length + 1);
	if (length > object->length)
		memset(object->data + object->length, 0, length - object->length);
	object->length = length;
}

static void store(struct memory_object *object, uint64_t offset, const uint8_t *data,
		  uint64_t length)
{
	if (offset + length > object->length)
		resize(object, offset + length);
	memcpy(object->data + offset, data, length);
}

/* ---- attributes ---- */

static void set_attribute(struct memory_object *object, const struct osd_attribute *from)
{
	struct memory_attribute *attribute =
		(struct memory_attribute *)memory_osd_attribute(object, from->page, from->number);
	uint8_t *copy;

	if (from->page == OSD_USER_OBJECT_INFORMATION &&
	    from->number == OSD_INFORMATION_LOGICAL_LENGTH) {
		resize(object, get_be64(from->value));
		return;
	}
	if (from->length == 0) {
		if (attribute) {
			free(attribute->value);
			*attribute = object->attributes[--object->attribute_count];
			object->attributes[object->attribute_count].value = NULL;
		}
		return;
	}
	if (!attribute)
		attribute = &object->attributes[object->attribute_count++];
	copy = malloc(from->length + 1);
	memcpy(copy, from->value, from->length);
	free(attribute->value);
	attribute->page = from->page;
	attribute->number = from->number;
	attribute->value = copy;
	attribute->length = from->length;
}

static void set_attributes(struct memory_object *object, const struct osd_cdb *cdb,
			   const struct loopback_command *command)
{
	struct osd_list_reader reader;
	struct osd_attribute attribute;

	if (!cdb->set_data.length ||
	    osd_list_read(&reader, OSD_2, OSD_LIST_TO_SET, command->out + cdb->set_data.offset,
			  cdb->set_data.length) < 0)
		return;
	while (osd_list_next(&reader, &attribute) == 1)
		set_attribute(object, &attribute);
}

static void get_attribute(struct osd_list_writer *writer, const struct memory_object *object,
			  uint32_t page, uint32_t number)
{
	const struct memory_attribute *found = memory_osd_attribute(object, page, number);
	uint8_t value[8];

	if (page == OSD_USER_OBJECT_INFORMATION && number == OSD_INFORMATION_LOGICAL_LENGTH) {
		put_be64(value, object->length);
		osd_list_add_value(writer, page, number, value, 8);
	} else if (page == OSD_PAGE_CURRENT_COMMAND) {
		put_be64(value,
			 number == OSD_CURRENT_PARTITION_ID ? object->partition : object->id);
		osd_list_add_value(writer, page, number, value, 8);
	} else {
		osd_list_add_value(writer, page, number, found ? found->value : NULL,
				   found ? found->length : 0);
	}
}

static void add_attributes(struct osd_list_writer *writer, const struct memory_object *object,
			   const struct osd_cdb *cdb, const struct loopback_command *command)
{
	struct osd_list_reader reader;
	struct osd_attribute attribute;

	if (osd_list_read(&reader, OSD_2, OSD_LIST_TO_GET, command->out + cdb->get_list.offset,
			  cdb->get_list.length) < 0)
		return;
	while (osd_list_next(&reader, &attribute) == 1) {
		bool all = attribute.page == OSD_PAGE_ALL && attribute.number == OSD_ATTRIBUTE_ALL;

		if (!all)
			get_attribute(writer, object, attribute.page, attribute.number);
		for (size_t i = 0; all && i < object->attribute_count; i++)
			get_attribute(writer, object, object->attributes[i].page,
				      object->attributes[i].number);
	}
}

static void get_attributes(const struct memory_object *object, const struct osd_cdb *cdb,
			   struct loopback_command *command)
{
	struct osd_list_writer writer;

	if (!cdb->get_list.length || cdb->list_attributes)
		return;
	osd_list_begin(&writer, OSD_2, OSD_LIST_RETRIEVED, command->in + cdb->retrieved.offset,
		       cdb->retrieved.length);
	add_attributes(&writer, object, cdb, command);
	command->in_length = cdb->retrieved.offset + osd_list_end(&writer);
}

/* ---- commands ---- */

static void refuse(struct loopback_command *command, uint16_t code, uint16_t field)
{
	const struct osd_sense sense = {
		.key = SENSE_ILLEGAL_REQUEST,
		.code = code,
		.has_field = field != 0,
		.field_in_cdb = true,
		.field = field,
	};

	loopback_fail(command, &sense);
}

/* LIST with attributes: as many objects as there is space for. */
static void list_with_attributes(struct memory_osd *osd, const struct osd_cdb *cdb,
				 struct loopback_command *command)
{
	size_t at = position_of(osd, cdb->partition, cdb->address > 1 ? cdb->address : 1),
	       end = position_of(osd, cdb->partition, UINT64_MAX), count = 0;
	struct osd_list_head head = { .additional_length = UINT64_MAX,
				      .format = OSD_LISTED_USER_OBJECTS + 1 };
	struct osd_list_writer writer, before;

	osd_list_begin_bare(&writer, OSD_2, command->in + OSD_LIST_HEAD_BYTES,
			    cdb->length - OSD_LIST_HEAD_BYTES);
	for (; at < end && (!osd->list_ids_max || count < osd->list_ids_max); at++, count++) {
		before = writer;
		if (osd_list_object_begin(&writer, osd->objects[at]->id, OSD_TYPE_USER_OBJECT)) {
			if (!osd->lists_no_values)
				add_attributes(&writer, osd->objects[at], cdb, command);
			osd_list_object_end(&writer);
		}
		if (writer.truncated) {
			writer = before;
			break;
		}
	}
	if (at < end) {
		head.continuation_id = osd->objects[at]->id;
		head.identifier = 1;
	} else {
		head.additional_length = OSD_LIST_HEAD_BYTES - 8 + writer.length;
	}
	osd_list_head_encode(OSD_2, &head, command->in);
	command->in_length = OSD_LIST_HEAD_BYTES + writer.length;
}

static void list(struct memory_osd *osd, const struct osd_cdb *cdb,
		 struct loopback_command *command)
{
	uint64_t first = cdb->address > 1 ? cdb->address : 1;
	size_t at = position_of(osd, cdb->partition, first),
	       end = position_of(osd, cdb->partition, UINT64_MAX);
	size_t fits = cdb->length < OSD_LIST_HEAD_BYTES ? 0
							: (cdb->length - OSD_LIST_HEAD_BYTES) / 8;
	struct osd_list_head head = { .additional_length = 16 + 8 * (end - at),
				      .format = OSD_LISTED_USER_OBJECTS };
	size_t count = end - at < fits ? end - at : fits;

	if (osd->list_ids_max && count > osd->list_ids_max)
		count = osd->list_ids_max;
	if (count < end - at) {
		head.continuation_id = osd->objects[at + count]->id;
		head.identifier = 1;
	}
	osd_list_head_encode(OSD_2, &head, command->in);
	for (size_t i = 0; i < count; i++)
		put_be64(command->in + OSD_LIST_HEAD_BYTES + 8 * i, osd->objects[at + i]->id);
	command->in_length = OSD_LIST_HEAD_BYTES + 8 * count;
}

static void read_data(const struct memory_object *object, const struct osd_cdb *cdb,
		      struct loopback_command *command)
{
	struct osd_sense sense = { .key = SENSE_RECOVERED_ERROR,
				   .code = SENSE_READ_PAST_END_OF_USER_OBJECT,
				   .has_information = true };

	command->in_length = cdb->length;
	if (cdb->address >= object->length && cdb->length > 0) {
		command->in_length = 0;
		refuse(command, SENSE_INVALID_FIELD_IN_CDB, 40);
		return;
	}
	sense.information = min_u64(cdb->length, object->length - cdb->address);
	memcpy(command->in, object->data + cdb->address, sense.information);
	if (sense.information < cdb->length)
		loopback_fail(command, &sense);
}

static struct memory_object *create(struct memory_osd *osd, const struct osd_cdb *cdb,
				    struct loopback_command *command)
{
	const struct osd_sense full = { .key = SENSE_DATA_PROTECT, .code = SENSE_QUOTA_ERROR };
	bool partition = cdb->action == OSD_CREATE_PARTITION;
	uint64_t id = partition ? 0 : cdb->object;

	if (!partition && !memory_osd_find(osd, cdb->partition, 0)) {
		refuse(command, SENSE_INVALID_FIELD_IN_CDB, 16);
		return NULL;
	}
	if (!partition && !id) {
		size_t end = position_of(osd, cdb->partition, UINT64_MAX);

		id = osd->objects[end - 1]->id ? osd->objects[end - 1]->id + 1 : OSD_FIRST_ID;
	}
	if (memory_osd_find(osd, cdb->partition, id)) {
		refuse(command, SENSE_INVALID_FIELD_IN_CDB, partition ? 16 : 24);
		return NULL;
	}
	if (osd->objects_max && osd->count >= osd->objects_max) {
		loopback_fail(command, &full);
		return NULL;
	}
	if (!partition && osd->thief_every && osd->commands % osd->thief_every == 0 &&
	    !memory_osd_find(osd, cdb->partition, id + 1))
		insert(osd, cdb->partition, id + 1);
	return insert(osd, cdb->partition, id);
}

static struct memory_object *addressed(struct memory_osd *osd, const struct osd_cdb *cdb,
				       struct loopback_command *command)
{
	struct memory_object *object = memory_osd_find(osd, cdb->partition, cdb->object);

	if (!object)
		refuse(command, SENSE_INVALID_FIELD_IN_CDB,
		       memory_osd_find(osd, cdb->partition, 0) ? 24 : 16);
	return object;
}

static void execute(struct memory_osd *osd, const struct osd_cdb *cdb,
		    struct loopback_command *command)
{
	static const struct osd_sense damage = { .key = SENSE_MEDIUM_ERROR,
						 .code = SENSE_UNRECOVERED_READ_ERROR };
	bool creates = cdb->action == OSD_CREATE || cdb->action == OSD_CREATE_AND_WRITE ||
		       cdb->action == OSD_CREATE_PARTITION;
	struct memory_object *object = creates ? create(osd, cdb, command)
					       : addressed(osd, cdb, command);

	if (!object)
		return;
	switch (cdb->action) {
	case OSD_WRITE:
	case OSD_CREATE_AND_WRITE:
		store(object, cdb->address, command->out, cdb->length);
		break;
	case OSD_READ:
		if (osd->unreadable_from && cdb->address >= osd->unreadable_from) {
			refuse(command, SENSE_INVALID_FIELD_IN_CDB, 0);
			return;
		}
		if (osd->damaged_id && cdb->object == osd->damaged_id) {
			loopback_fail(command, &damage);
			return;
		}
		read_data(object, cdb, command);
		break;
	case OSD_LIST:
		if (cdb->list_attributes && !osd->lists_ids_alone)
			list_with_attributes(osd, cdb, command);
		else
			list(osd, cdb, command);
		break;
	case OSD_REMOVE:
		discard(osd, position_of(osd, cdb->partition, cdb->object));
		return;
	case OSD_CREATE:
	case OSD_CREATE_PARTITION:
	case OSD_GET_ATTRIBUTES:
	case OSD_SET_ATTRIBUTES:
		break;
	default:
		refuse(command, SENSE_INVALID_COMMAND_OPERATION_CODE, 0);
		return;
	}
	set_attributes(object, cdb, command);
	get_attributes(object, cdb, command);
}

void memory_osd_execute(void *context, struct loopback_command *command)
{
	struct memory_osd *osd = context;
	struct osd_cdb cdb;
	uint16_t field = 0;

	command->hang_up = ++osd->commands == osd->dies_at;
	if (command->hang_up && !osd->executes_the_last)
		return;
	if (osd_cdb_decode(command->cdb, command->cdb_length, &cdb, &field) < 0)
		refuse(command, SENSE_INVALID_FIELD_IN_CDB, field);
	else
		execute(osd, &cdb, command);
}
