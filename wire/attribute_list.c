/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Attribute lists, CDB continuation segments and LIST data. */
#include <assert.h>
#include <errno.h>

#include "common/bytes.h"
#include "wire/wire.h"

size_t osd_list_head_bytes(enum osd_version version)
{
	return version == OSD_1 ? 4 : 8;
}

/* Bytes of an entry before its value. */
static size_t entry_head_bytes(enum osd_version version)
{
	return version == OSD_1 ? 10 : 16;
}

size_t osd_list_entry_bytes(enum osd_version version, uint32_t length)
{
	size_t bytes = entry_head_bytes(version) + length;

	return version == OSD_1 ? bytes : align_up(bytes, 8);
}

/* ---- writing ---- */

/* OSD-1's LIST LENGTH has 16 bits. */
static size_t list_bytes_max(enum osd_version version)
{
	return version == OSD_1 ? 4 + 0xFFFF : (size_t)8 + 0xFFFFFFFF;
}

void osd_list_begin_bare(struct osd_list_writer *writer, enum osd_version version, uint8_t *data,
			 size_t capacity)
{
	*writer = (struct osd_list_writer){
		.version = version,
		.role = OSD_LIST_BARE,
		.data = data,
		.capacity = capacity,
	};
}

void osd_list_begin(struct osd_list_writer *writer, enum osd_version version,
		    enum osd_list_role role, uint8_t *data, size_t capacity)
{
	size_t head = osd_list_head_bytes(version);

	osd_list_begin_bare(writer, version, data, min_u64(capacity, list_bytes_max(version)));
	writer->role = role;
	if (capacity < head) {
		writer->truncated = true;
		return;
	}
	memset(data, 0, head);
	if (role == OSD_LIST_TO_GET)
		data[0] = OSD_LIST_TYPE_GET;
	else if (role == OSD_LIST_OF_OBJECTS)
		data[0] = version == OSD_1 ? OSD_LIST_TYPE_OBJECTS_OSD1 : OSD_LIST_TYPE_OBJECTS;
	else
		data[0] = OSD_LIST_TYPE_VALUES;
	writer->length = head;
}

/* Space for `bytes` that are only useful whole, zeroed. NULL: there is none, and the list ends. */
static uint8_t *take_whole(struct osd_list_writer *writer, size_t bytes)
{
	uint8_t *place = writer->data + writer->length;

	if (writer->truncated || writer->capacity - writer->length < bytes) {
		writer->truncated = true;
		return NULL;
	}
	memset(place, 0, bytes);
	writer->length += bytes;
	return place;
}

bool osd_list_add_request(struct osd_list_writer *writer, uint32_t page, uint32_t number)
{
	uint8_t *place = take_whole(writer, OSD_GET_DESCRIPTOR_BYTES);

	if (!place)
		return false;
	put_be32(place, page);
	put_be32(place + 4, number);
	return true;
}

bool osd_list_add_value(struct osd_list_writer *writer, uint32_t page, uint32_t number,
			const void *value, uint32_t length)
{
	size_t head = entry_head_bytes(writer->version);
	size_t rest = osd_list_entry_bytes(writer->version, length) - head;
	uint8_t *place = take_whole(writer, head);
	size_t space, copied;

	assert(length <= OSD_ATTRIBUTE_BYTES_MAX);
	if (!place)
		return false;
	put_be32(place, page);
	put_be32(place + 4, number);
	put_be16(place + head - 2, (uint16_t)length);
	space = min_u64(rest, writer->capacity - writer->length);
	copied = min_u64(length, space);
	if (copied > 0)
		memcpy(place + head, value, copied);
	memset(place + head + copied, 0, space - copied);
	writer->length += space;
	writer->truncated = space < rest;
	return !writer->truncated;
}

bool osd_list_object_begin(struct osd_list_writer *writer, uint64_t object,
			   enum osd_object_type type)
{
	size_t start = writer->length;
	uint8_t *place = take_whole(writer, OSD_LIST_OBJECT_HEAD_BYTES);

	if (!place)
		return false;
	put_be64(place, object);
	place[8] = (uint8_t)type;
	writer->object_head = start;
	writer->capacity_behind_object = writer->capacity;
	/* The length of its entries has 16 bits. */
	writer->capacity = min_u64(writer->capacity, writer->length + 0xFFF8);
	return true;
}

bool osd_list_object_is_too_long(const struct osd_list_writer *writer)
{
	return writer->truncated && writer->capacity < writer->capacity_behind_object;
}

void osd_list_object_end(struct osd_list_writer *writer)
{
	size_t bytes = writer->length - writer->object_head - OSD_LIST_OBJECT_HEAD_BYTES;

	put_be16(writer->data + writer->object_head + 14, (uint16_t)bytes);
	if (osd_list_object_is_too_long(writer))
		writer->truncated = false;
	writer->capacity = writer->capacity_behind_object;
}

bool osd_list_add_object_value(struct osd_list_writer *writer, uint64_t object, uint32_t page,
			       uint32_t number, const void *value, uint32_t length)
{
	uint8_t *place;

	/* An ID without its entry is useless. */
	if (writer->capacity - writer->length < 8 + entry_head_bytes(writer->version))
		writer->truncated = true;
	place = take_whole(writer, 8);
	if (!place)
		return false;
	put_be64(place, object);
	return osd_list_add_value(writer, page, number, value, length);
}

size_t osd_list_end(struct osd_list_writer *writer)
{
	size_t head = osd_list_head_bytes(writer->version);

	if (writer->length < head ||
	    (writer->role != OSD_LIST_RETRIEVED && writer->role != OSD_LIST_OF_OBJECTS))
		return writer->length;
	if (writer->version == OSD_1)
		put_be16(writer->data + 2, (uint16_t)(writer->length - head));
	else
		put_be32(writer->data + 4, (uint32_t)(writer->length - head));
	return writer->length;
}

/* ---- reading ---- */

static bool sent_by_initiator(enum osd_list_role role)
{
	return role == OSD_LIST_TO_GET || role == OSD_LIST_TO_SET;
}

int osd_list_read(struct osd_list_reader *reader, enum osd_version version, enum osd_list_role role,
		  const uint8_t *data, size_t length)
{
	size_t head = osd_list_head_bytes(version);
	unsigned type = OSD_LIST_TYPE_VALUES;

	*reader = (struct osd_list_reader){ .version = version, .role = role, .data = data };
	if (length < head)
		return -EMSGSIZE;
	if (role == OSD_LIST_TO_GET)
		type = OSD_LIST_TYPE_GET;
	else if (role == OSD_LIST_OF_OBJECTS)
		type = version == OSD_1 ? OSD_LIST_TYPE_OBJECTS_OSD1 : OSD_LIST_TYPE_OBJECTS;
	if ((data[0] & 0x0F) != type)
		return -EINVAL;
	reader->position = head;
	reader->length = length;
	if (!sent_by_initiator(role)) {
		size_t stated = version == OSD_1 ? get_be16(data + 2) : get_be32(data + 4);

		reader->length = head + min_u64(stated, length - head);
	}
	return 0;
}

int osd_list_next(struct osd_list_reader *reader, struct osd_attribute *attribute)
{
	bool request = reader->role == OSD_LIST_TO_GET;
	size_t head = request ? OSD_GET_DESCRIPTOR_BYTES : entry_head_bytes(reader->version);
	size_t left = reader->length - reader->position;
	const uint8_t *entry = reader->data + reader->position;

	if (left < head)
		return left > 0 && sent_by_initiator(reader->role) ? -EMSGSIZE : 0;
	attribute->page = get_be32(entry);
	attribute->number = get_be32(entry + 4);
	attribute->length = request ? 0 : get_be16(entry + head - 2);
	attribute->value = entry + head;
	attribute->present = (uint32_t)min_u64(attribute->length, left - head);
	if (attribute->present < attribute->length && sent_by_initiator(reader->role))
		return -EMSGSIZE;
	/* The padding of the last entry may be missing. */
	reader->position +=
		request ? head
			: min_u64(osd_list_entry_bytes(reader->version, attribute->length), left);
	return 1;
}

/* ---- CDB continuation segments ---- */

size_t osd_continuation_encode(uint16_t action, const struct osd_piece *pieces, size_t count,
			       uint8_t *segment, size_t capacity)
{
	size_t bytes = OSD_SCATTER_GATHER_BYTES(count);
	uint8_t *piece = segment + OSD_CONTINUATION_BYTES_MIN;

	if (count > UINT32_MAX / 16 || capacity < bytes)
		return 0;
	memset(segment, 0, OSD_CONTINUATION_BYTES_MIN);
	segment[0] = OSD_CONTINUATION_FORMAT;
	put_be16(segment + 2, action);
	put_be16(segment + 40, OSD_CONTINUATION_SCATTER_GATHER);
	put_be32(segment + 44, (uint32_t)(16 * count));
	for (size_t i = 0; i < count; i++, piece += 16) {
		put_be64(piece, pieces[i].offset);
		put_be64(piece + 8, pieces[i].length);
	}
	return bytes;
}

size_t osd_continuation_add(uint8_t *segment, size_t length, size_t capacity, uint16_t action,
			    uint16_t type, const void *content, uint32_t content_length)
{
	size_t at = length == 0 ? OSD_CONTINUATION_HEAD_BYTES : length;
	uint64_t padded = align_up(content_length, 8);

	if (capacity < at || capacity - at < 8 || padded > capacity - at - 8)
		return 0;
	if (length == 0) {
		memset(segment, 0, OSD_CONTINUATION_HEAD_BYTES);
		segment[0] = OSD_CONTINUATION_FORMAT;
		put_be16(segment + 2, action);
	}
	memset(segment + at, 0, 8 + padded);
	put_be16(segment + at, type);
	segment[at + 3] = (uint8_t)(padded - content_length);
	put_be32(segment + at + 4, content_length);
	if (content_length > 0)
		memcpy(segment + at + 8, content, content_length);
	return at + 8 + padded;
}

int osd_continuation_read(struct osd_continuation *continuation, uint16_t action,
			  const uint8_t *segment, size_t length)
{
	if (length < OSD_CONTINUATION_BYTES_MIN || segment[0] != OSD_CONTINUATION_FORMAT ||
	    get_be16(segment + 2) != action)
		return -EINVAL;
	*continuation = (struct osd_continuation){ segment, length, OSD_CONTINUATION_HEAD_BYTES };
	return 0;
}

int osd_continuation_next(struct osd_continuation *continuation, struct osd_descriptor *descriptor)
{
	const uint8_t *head = continuation->data + continuation->position;
	size_t left = continuation->length - continuation->position;
	uint64_t bytes;

	if (left == 0)
		return 0;
	if (left < 8)
		return -EINVAL;
	descriptor->type = get_be16(head);
	if (descriptor->type == OSD_CONTINUATION_END)
		return 0;
	descriptor->length = get_be32(head + 4);
	descriptor->content = head + 8;
	bytes = (uint64_t)descriptor->length + (head[3] & 7);
	if (bytes % 8 != 0 || bytes > left - 8)
		return -EINVAL;
	continuation->position += 8 + bytes;
	return 1;
}

void osd_piece_decode(const struct osd_descriptor *descriptor, size_t index,
		      struct osd_piece *piece)
{
	assert((index + 1) * 16 <= descriptor->length);
	piece->offset = get_be64(descriptor->content + index * 16);
	piece->length = get_be64(descriptor->content + index * 16 + 8);
}

/* ---- LIST data ---- */

void osd_list_head_encode(enum osd_version version, const struct osd_list_head *head,
			  uint8_t data[OSD_LIST_HEAD_BYTES])
{
	memset(data, 0, OSD_LIST_HEAD_BYTES);
	put_be64(data, head->additional_length);
	put_be64(data + 8, head->continuation_id);
	put_be32(data + 16, head->identifier);
	data[23] = (uint8_t)(head->changed << 1);
	if (version == OSD_1)
		data[23] |= head->containers;
	else
		data[23] |= (uint8_t)(head->format << 2);
}

int osd_list_head_decode(enum osd_version version, const uint8_t *data, size_t length,
			 struct osd_list_head *head)
{
	*head = (struct osd_list_head){ 0 };
	if (length < OSD_LIST_HEAD_BYTES)
		return -EMSGSIZE;
	head->additional_length = get_be64(data);
	head->continuation_id = get_be64(data + 8);
	head->identifier = get_be32(data + 16);
	head->changed = data[23] & 2;
	if (version == OSD_1)
		head->containers = data[23] & 1;
	else
		head->format = data[23] >> 2;
	return 0;
}

bool osd_list_has_attributes(const struct osd_list_head *head)
{
	/* Formats with attributes are 0x02, 0x12 and 0x22. */
	return (head->format & 0x0F) == 0x02;
}

int osd_listed_next(const struct osd_list_head *head, const uint8_t *data, size_t length,
		    size_t *position, struct osd_listed_object *object)
{
	bool with_attributes = osd_list_has_attributes(head);
	size_t head_bytes = with_attributes ? OSD_LIST_OBJECT_HEAD_BYTES : 8;
	size_t entries;

	*object = (struct osd_listed_object){ 0 };
	length = min_u64(length, head->additional_length > UINT64_MAX - 8
					 ? UINT64_MAX
					 : head->additional_length + 8);
	if (*position > length || length - *position < head_bytes)
		return 0;
	object->id = get_be64(data + *position);
	if (with_attributes) {
		object->type = data[*position + 8];
		entries = get_be16(data + *position + 14);
		if (length - *position - head_bytes < entries)
			return 0;
		object->attributes = (struct osd_list_reader){
			.version = OSD_2,
			.role = OSD_LIST_RETRIEVED,
			.data = data + *position + head_bytes,
			.length = entries,
		};
		head_bytes += entries;
	}
	*position += head_bytes;
	return 1;
}
