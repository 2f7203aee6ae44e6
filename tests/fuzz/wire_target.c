/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The decoders of wire/wire.h, each alone: the first byte of an input says which. Whatever they
 * take must stay inside the bytes that came, and what can be encoded again must come back the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/fuzz/wire_parts.h"
#include "wire/wire.h"

/* Is [inner, inner + length) inside the input? */
static bool is_inside(const struct fuzz_reader *outer, const uint8_t *inner, size_t length)
{
	return inner >= outer->data && length <= outer->left &&
	       (size_t)(inner - outer->data) <= outer->left - length;
}

static enum osd_version version_of(uint8_t byte)
{
	return byte & 1 ? OSD_1 : OSD_2;
}

/* ---- CDBs ---- */

static void run_cdb(struct fuzz_reader *input)
{
	uint8_t first[OSD_CDB_BYTES_MAX], second[OSD_CDB_BYTES_MAX];
	struct osd_cdb decoded, again;
	uint16_t bad_field;
	size_t length;
	int result = osd_cdb_decode(input->data, input->left, &decoded, &bad_field);

	if (result != 0) {
		fuzz_check(result == -EOPNOTSUPP || result == -EINVAL);
		fuzz_check(bad_field < OSD_CDB_BYTES_MAX);
		return;
	}
	fuzz_check(osd_action_is_known(decoded.action));
	fuzz_check(decoded.set_length <= OSD_CDB_VALUE_BYTES_MAX);
	fuzz_check(osd_cdb_encode(&decoded, first, &length) == 0);
	fuzz_check(length <= input->left);
	fuzz_check(osd_cdb_decode(first, length, &again, &bad_field) == 0);
	fuzz_check(osd_cdb_encode(&again, second, NULL) == 0);
	fuzz_check(memcmp(first, second, length) == 0);
}

/* Encodes a CDB of arbitrary fields; what is accepted must be readable. */
static void run_cdb_fields(struct fuzz_reader *input)
{
	uint8_t bytes[OSD_CDB_BYTES_MAX];
	struct osd_cdb cdb = { 0 }, again;
	uint8_t flags = fuzz_take8(input);
	uint16_t bad_field;
	size_t length;
	int result;

	cdb.version = version_of(flags);
	cdb.format = flags & 0x30;
	cdb.fua = flags & 2;
	cdb.list_attributes = flags & 4;
	cdb.action = fuzz_take16(input);
	cdb.partition = (uint64_t)fuzz_take32(input) << 32 | fuzz_take32(input);
	cdb.object = fuzz_take32(input);
	cdb.length = fuzz_take32(input);
	cdb.address = (uint64_t)fuzz_take32(input) << 32 | fuzz_take32(input);
	cdb.get_page = fuzz_take32(input);
	cdb.set_page = fuzz_take32(input);
	cdb.set_number = fuzz_take32(input);
	cdb.set_length = fuzz_take16(input);
	cdb.get_list.length = fuzz_take16(input);
	cdb.get_list.offset = osd_offset_encode(cdb.version, fuzz_take32(input), NULL);
	cdb.retrieved.length = fuzz_take16(input);
	cdb.retrieved.offset =
		osd_offset_encode(cdb.version, (uint64_t)fuzz_take32(input) << 12, NULL);
	cdb.set_data.length = fuzz_take16(input);
	cdb.set_data.offset = fuzz_take32(input);
	result = osd_cdb_encode(&cdb, bytes, &length);
	if (result != 0) {
		fuzz_check(result == -EINVAL);
		return;
	}
	result = osd_cdb_decode(bytes, length, &again, &bad_field);
	fuzz_check(result == 0 || result == -EINVAL);
	fuzz_check(again.action == cdb.action && again.partition == cdb.partition);
	if (result != 0 || cdb.format != OSD_ATTRIBUTES_LIST)
		return;
	if (cdb.get_list.length != 0)
		fuzz_check(again.get_list.offset == cdb.get_list.offset);
	if (cdb.get_list.length != 0 && cdb.retrieved.length != 0)
		fuzz_check(again.retrieved.offset == cdb.retrieved.offset);
}

static void run_offset(struct fuzz_reader *input)
{
	enum osd_version version = version_of(fuzz_take8(input));
	uint32_t encoded = fuzz_take32(input), again;
	uint64_t at_least = (uint64_t)fuzz_take32(input) << 32 | fuzz_take32(input), offset, next;

	if (osd_offset_decode(version, encoded, &offset) == 0) {
		fuzz_check(osd_offset_encode(version, offset, &again) == offset);
		fuzz_check(osd_offset_decode(version, again, &next) == 0 && next == offset);
	}
	offset = osd_offset_encode(version, at_least, &again);
	if (offset == UINT64_MAX)
		return;
	fuzz_check(offset >= at_least && offset - at_least < UINT64_C(1) << 23);
	fuzz_check(osd_offset_decode(version, again, &next) == 0 && next == offset);
}

/* ---- attribute lists ---- */

static void run_list(struct fuzz_reader *input)
{
	uint8_t how = fuzz_take8(input);
	struct osd_list_reader reader;
	struct osd_attribute attribute;
	size_t entries = 0, most = input->left / OSD_GET_DESCRIPTOR_BYTES + 1;
	int result =
		osd_list_read(&reader, version_of(how), (how >> 1) % 4, input->data, input->left);

	if (result != 0) {
		fuzz_check(result == -EMSGSIZE || result == -EINVAL);
		return;
	}
	while ((result = osd_list_next(&reader, &attribute)) == 1) {
		fuzz_check(++entries <= most);
		fuzz_check(attribute.present <= attribute.length);
		fuzz_check(is_inside(input, attribute.value, attribute.present));
		fuzz_touch(attribute.value, attribute.present);
	}
	fuzz_check(result == 0 || result == -EMSGSIZE);
	fuzz_check(reader.position <= reader.length && reader.length <= input->left);
}

/* One entry of a list that is being written: from the input. Returns whether it was whole. */
static bool add_entry(struct fuzz_reader *input, struct osd_list_writer *writer, uint32_t length,
		      uint32_t number)
{
	static const uint8_t value[OSD_ATTRIBUTE_BYTES_MAX];
	bool whole;

	if (writer->role == OSD_LIST_TO_GET)
		return osd_list_add_request(writer, number & 0xF, number);
	if (writer->role == OSD_LIST_OF_OBJECTS && writer->version == OSD_1)
		return osd_list_add_object_value(writer, number, 1, number, value, length);
	if (writer->role != OSD_LIST_OF_OBJECTS && writer->role != OSD_LIST_BARE)
		return osd_list_add_value(writer, 1, number, value, length);
	if (!osd_list_object_begin(writer, number, OSD_TYPE_USER_OBJECT))
		return false;
	for (unsigned i = fuzz_take8(input) % 4; i > 0; i--)
		osd_list_add_value(writer, 1, number + i, value, length);
	whole = !writer->truncated;
	osd_list_object_end(writer);
	return whole;
}

/* Writes a list into room that may be too small, and reads it. */
static void run_list_writer(struct fuzz_reader *input)
{
	uint8_t how = fuzz_take8(input);
	size_t capacity = fuzz_take16(input) & 0x1FFF, entries = 0, read = 0, length;
	uint8_t *room = fuzz_exact(capacity, 0xA5);
	struct osd_list_writer writer;
	struct osd_list_reader reader;
	struct osd_attribute attribute;
	enum osd_list_role role = (how >> 1) % 5;

	if (role == OSD_LIST_BARE)
		osd_list_begin_bare(&writer, version_of(how), room, capacity);
	else
		osd_list_begin(&writer, version_of(how), role, room, capacity);
	while (input->left > 0) {
		uint16_t head = fuzz_take16(input);
		uint32_t bytes = head & 0x8000 ? min_u64((uint32_t)(head & 0x7FFF) * 2,
							 OSD_ATTRIBUTE_BYTES_MAX)
					       : head & 0x3F;

		if (!add_entry(input, &writer, bytes, head + 1U))
			break;
		entries++;
	}
	length = osd_list_end(&writer);
	fuzz_check(length <= capacity);
	fuzz_touch(room, length);
	/* The others are checked by what reads them: LIST data and lists of objects. */
	if (role <= OSD_LIST_RETRIEVED && length > 0) {
		fuzz_check(osd_list_read(&reader, version_of(how), role, room, length) == 0);
		while (osd_list_next(&reader, &attribute) == 1)
			read++;
		fuzz_check(read >= entries && read <= entries + 1);
	}
	free(room);
}

/* ---- continuation segments, LIST data ---- */

static void run_continuation(struct fuzz_reader *input)
{
	uint16_t action = fuzz_take16(input);
	struct osd_continuation continuation;
	struct osd_descriptor descriptor;
	size_t count = 0;
	int result;

	result = osd_continuation_read(&continuation, action, input->data, input->left);
	if (result != 0) {
		fuzz_check(result == -EINVAL);
		return;
	}
	while ((result = osd_continuation_next(&continuation, &descriptor)) == 1) {
		fuzz_check(++count <= input->left / 8);
		fuzz_check(is_inside(input, descriptor.content, descriptor.length));
		fuzz_touch(descriptor.content, descriptor.length);
		for (size_t i = 0; i < descriptor.length / 16; i++) {
			struct osd_piece piece;

			osd_piece_decode(&descriptor, i, &piece);
		}
	}
	fuzz_check(result == 0 || result == -EINVAL);
}

/* The attributes of one listed object. */
static void read_listed(const struct fuzz_reader *input, struct osd_listed_object *object)
{
	struct osd_attribute attribute;
	size_t entries = 0;

	if (!object->attributes.data)
		return;
	while (osd_list_next(&object->attributes, &attribute) == 1) {
		fuzz_check(++entries <= input->left);
		fuzz_check(is_inside(input, attribute.value, attribute.present));
		fuzz_touch(attribute.value, attribute.present);
	}
}

static void run_listed(struct fuzz_reader *input)
{
	enum osd_version version = version_of(fuzz_take8(input));
	struct osd_list_head head;
	struct osd_listed_object object;
	size_t position = OSD_LIST_HEAD_BYTES, count = 0;

	if (osd_list_head_decode(version, input->data, input->left, &head) != 0)
		return;
	while (osd_listed_next(&head, input->data, input->left, &position, &object) == 1) {
		fuzz_check(++count <= input->left / 8 && position <= input->left);
		read_listed(input, &object);
	}
}

/* ---- sense and INQUIRY data ---- */

static void run_sense(struct fuzz_reader *input)
{
	uint8_t bytes[OSD_SENSE_ENCODED_MAX], more[OSD_SENSE_ENCODED_MAX];
	struct osd_sense sense, again;
	size_t room = fuzz_take8(input), length;

	if (osd_sense_decode(input->data, input->left, &sense) != 0)
		return;
	fuzz_check(sense.attributes <= OSD_SENSE_ATTRIBUTES_MAX);
	fuzz_check(osd_sense_key_name(sense.key) && osd_sense_code_name(sense.code));
	length = osd_sense_encode(&sense, bytes, sizeof(bytes));
	fuzz_check(length <= sizeof(bytes) && length == 8 + (size_t)bytes[7]);
	fuzz_check(osd_sense_decode(bytes, length, &again) == 0);
	fuzz_check(osd_sense_encode(&again, more, sizeof(more)) == length);
	fuzz_check(memcmp(bytes, more, length) == 0);
	if (room >= 8) {
		uint8_t *small = fuzz_exact(room, 0xA5);

		fuzz_check(osd_sense_encode(&sense, small, room) <= room);
		free(small);
	}
}

static void run_inquiry(struct fuzz_reader *input)
{
	struct osd_inquiry_data inquiry;

	if (osd_inquiry_decode(input->data, input->left, &inquiry) != 0)
		return;
	fuzz_check(strlen(inquiry.vendor) <= 8 && strlen(inquiry.product) <= 16);
	fuzz_check(strlen(inquiry.revision) <= 4);
}

/* ---- the target ---- */

static void run_wire(const uint8_t *data, size_t size)
{
	static void (*const decoders[])(struct fuzz_reader *) = {
		run_cdb,
		run_list,
		run_sense,
		run_continuation,
		run_listed,
		run_cdb_fields,
		run_list_writer,
		run_offset,
		run_inquiry,
		fuzz_wire_items,
		fuzz_wire_item_writer,
		fuzz_wire_capability,
		fuzz_wire_key_fields,
		fuzz_wire_maps,
		fuzz_wire_check_value_place,
	};
	struct fuzz_reader input = { data, size };

	decoders[fuzz_take8(&input) % (sizeof(decoders) / sizeof(decoders[0]))](&input);
}

const struct fuzz_target fuzz_wire = { .name = "wire", .run = run_wire };
