/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Fuzzes maps, capabilities, keys and the vendor's own layouts for the wire target. */
#include "tests/fuzz/wire_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "wire/security.h"
#include "wire/vendor.h"

/* ---- items of EXECUTE ---- */

void fuzz_wire_items(struct fuzz_reader *input)
{
	struct osd_item_reader reader;
	struct osd_item item;
	uint64_t number;
	size_t count = 0;
	int result;

	osd_items_read(&reader, input->data, input->left);
	while ((result = osd_item_next(&reader, &item)) == 1) {
		fuzz_check(++count <= input->left / OSD_ITEM_HEAD_BYTES);
		fuzz_check(item.value >= input->data &&
			   item.length <= input->left - (size_t)(item.value - input->data));
		fuzz_touch(item.value, item.length);
		result = osd_item_number(&item, &number);
		fuzz_check(result == 0 || result == -EINVAL);
		(void)osd_item_find_number(item.value, item.length, OSD_ITEM_VERSION, &number);
	}
	fuzz_check(result == 0 || result == -EINVAL);
}

/* Writes items into room that may be too small, and reads them. */
void fuzz_wire_item_writer(struct fuzz_reader *input)
{
	static const uint8_t value[256];
	size_t capacity = fuzz_take16(input) & 0x3FF;
	uint8_t *room = fuzz_exact(capacity, 0xA5);
	struct osd_item_writer writer;
	struct osd_item_reader reader;
	struct osd_item item;
	bool open = false;

	osd_items_begin(&writer, room, capacity);
	while (input->left > 0) {
		uint8_t what = fuzz_take8(input);

		if (what == 0xFF && !open)
			open = osd_item_open(&writer, OSD_ITEM_ENTRY);
		else if (what == 0xFE && open)
			open = osd_item_end(&writer) && false;
		else
			osd_item_add(&writer, what, value, what);
		fuzz_check(writer.length <= capacity);
	}
	if (open)
		osd_item_end(&writer);
	fuzz_touch(room, writer.length);
	osd_items_read(&reader, room, writer.length);
	while (osd_item_next(&reader, &item) == 1)
		fuzz_touch(item.value, item.length);
	fuzz_check(reader.position == writer.length);
	free(room);
}

/* ---- security ---- */

void fuzz_wire_capability(struct fuzz_reader *input)
{
	enum osd_version version = fuzz_take8(input) & 1 ? OSD_1 : OSD_2;
	uint8_t bytes[OSD2_CAPABILITY_BYTES] = { 0 }, again[OSD2_CAPABILITY_BYTES] = { 0 };
	struct osd_capability capability, second;
	size_t taken;
	const uint8_t *from = fuzz_take(input, sizeof(bytes), &taken);

	if (taken > 0)
		memcpy(bytes, from, taken);
	osd_capability_decode(version, bytes, &capability);
	osd_capability_encode(version, &capability, again);
	osd_capability_decode(version, again, &second);
	memset(bytes, 0, sizeof(bytes));
	osd_capability_encode(version, &second, bytes);
	fuzz_check(memcmp(bytes, again, sizeof(bytes)) == 0);
}

void fuzz_wire_key_fields(struct fuzz_reader *input)
{
	uint16_t action = fuzz_take8(input) & 1 ? OSD_SET_KEY : OSD_SET_MASTER_KEY;
	uint8_t bytes[28] = { 0 }, again[28] = { 0 };
	struct osd_key_fields fields, second;
	size_t taken;
	const uint8_t *from = fuzz_take(input, sizeof(bytes), &taken);

	if (taken > 0)
		memcpy(bytes, from, taken);
	osd_key_fields_decode(action, bytes, &fields);
	osd_key_fields_encode(action, &fields, again);
	osd_key_fields_decode(action, again, &second);
	fuzz_check(fields.key_version == second.key_version &&
		   fields.parameter_length == second.parameter_length &&
		   fields.allocation_length == second.allocation_length);
	fuzz_check(memcmp(fields.identifier, second.identifier, sizeof(fields.identifier)) == 0);
}

void fuzz_wire_check_value_place(struct fuzz_reader *input)
{
	uint8_t *sense = fuzz_exact(input->left, 0);
	uint8_t *place;
	size_t bytes;

	if (input->left > 0)
		memcpy(sense, input->data, input->left);
	place = osd_sense_check_value_place(sense, input->left, &bytes);
	if (place) {
		fuzz_check(place >= sense && bytes <= input->left - (size_t)(place - sense));
		memset(place, 0, bytes);
	}
	free(sense);
}

/* ---- maps, checks, what names objects ---- */

void fuzz_wire_maps(struct fuzz_reader *input)
{
	struct osd_descriptor descriptor = { .type = OSD_CONTINUATION_COPY_SOURCE,
					     .length = (uint32_t)input->left,
					     .content = input->data };
	size_t map_at = OSD_MAP_HEAD_BYTES, check_at = OSD_CHECK_HEAD_BYTES;
	struct osd_copy_source source;
	struct osd_map_entry mapped;
	struct osd_check_head head;
	struct osd_check_entry checked;
	uint64_t partition, object;

	(void)osd_copy_source_decode(&descriptor, &source);
	(void)osd_user_object_decode(&descriptor, &partition, &object);
	while (osd_map_next(input->data, input->left, &map_at, &mapped) == 1)
		fuzz_check(map_at <= input->left);
	if (osd_check_head_decode(input->data, input->left, &head) != 0)
		return;
	while (osd_check_next(input->data, input->left, &check_at, &checked) == 1)
		fuzz_check(check_at <= input->left);
}
