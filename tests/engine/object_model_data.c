/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The model's single objects: times, data, attributes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/engine/object_model.h"

/* ---- times ---- */

void object_model_settled(struct model_object *object)
{
	memcpy(object->stable_ms, object->times_ms, sizeof(object->stable_ms));
	object->stable_unknown = false;
	object->note_count = 0;
}

void object_model_accessed(struct model_object *object, enum engine_time which, uint64_t ms)
{
	object->times_ms[which] = ms;
	if (object->note_count < MODEL_NOTES)
		object->notes[object->note_count++] = (struct model_note){ which, ms };
	else
		object->stable_unknown = true;
}

bool object_model_may_be_left(const struct model_object *object, enum engine_time which,
			      uint64_t ms)
{
	if (object->stable_unknown || ms == object->stable_ms[which])
		return true;
	for (uint32_t at = 0; at < object->note_count; at++)
		if (object->notes[at].which == which && object->notes[at].ms == ms)
			return true;
	return false;
}

static void modified(struct object_model *model, struct model_object *object,
		     enum engine_time which)
{
	object->modified_sequence = model->sequence;
	if (!model->bypass)
		object->times_ms[which] = model->time_ms;
	object_model_settled(object);
}

static uint8_t *data_of(struct object_model *model, struct model_object *object)
{
	if (!object->data) {
		object->data = calloc(MODEL_PIECES, model->page_bytes);
		assert(object->data);
	}
	return object->data;
}

void object_model_write(struct object_model *model, struct model_object *object, uint64_t offset,
			const void *data, uint64_t length)
{
	if (length == 0)
		return;
	memcpy(data_of(model, object) + offset, data, length);
	for (uint64_t piece = offset / model->page_bytes;
	     piece * model->page_bytes < offset + length; piece++)
		object->live[piece] = true;
	object->length = max_u64(object->length, offset + length);
	modified(model, object, ENGINE_TIME_DATA_MODIFIED);
}

bool object_model_may_overwrite(const struct object_model *model, const struct model_object *object,
				uint64_t offset, uint64_t length)
{
	bool may = offset + length <= object->length;

	for (uint64_t piece = offset / model->page_bytes;
	     may && piece * model->page_bytes < offset + length; piece++)
		may = object->live[piece];
	return may;
}

void object_model_overwrite(struct object_model *model, struct model_object *object,
			    uint64_t offset, const void *data, uint64_t length)
{
	memcpy(data_of(model, object) + offset, data, length);
}

/* Zeros behind the end and nothing live there. */
static void set_length(struct object_model *model, struct model_object *object, uint64_t length)
{
	uint64_t all = (uint64_t)MODEL_PIECES * model->page_bytes;

	object->length = length;
	if (object->data)
		memset(object->data + length, 0, all - length);
	for (uint64_t piece = divide_up(length, model->page_bytes); piece < MODEL_PIECES; piece++)
		object->live[piece] = false;
}

void object_model_truncate(struct object_model *model, struct model_object *object, uint64_t length)
{
	if (length < object->length)
		set_length(model, object, length);
	object->length = length;
	modified(model, object, ENGINE_TIME_DATA_MODIFIED);
}

void object_model_clear_range(struct object_model *model, struct model_object *object,
			      uint64_t offset, uint64_t length)
{
	uint64_t page_bytes = model->page_bytes, end = min_u64(offset + length, object->length);

	if (length == 0)
		return;
	if (offset < end && object->data)
		memset(object->data + offset, 0, end - offset);
	for (uint64_t piece = offset / page_bytes; piece * page_bytes < end; piece++)
		if (offset <= piece * page_bytes &&
		    end >= min_u64((piece + 1) * page_bytes, object->length))
			object->live[piece] = false;
	object->length = max_u64(object->length, offset + length);
	modified(model, object, ENGINE_TIME_DATA_MODIFIED);
}

void object_model_punch(struct object_model *model, struct model_object *object, uint64_t offset,
			uint64_t length)
{
	uint64_t page_bytes = model->page_bytes, size = object->length;
	bool before[MODEL_PIECES];

	length = min_u64(length, size - offset);
	if (length == 0)
		return;
	memcpy(before, object->live, sizeof(before));
	for (uint64_t piece = offset / page_bytes; piece * page_bytes < size - length; piece++) {
		uint64_t begin = max_u64(piece * page_bytes, offset);
		uint64_t end = min_u64((piece + 1) * page_bytes, size - length);

		object->live[piece] = before[piece] && piece * page_bytes < offset;
		for (uint64_t at = begin + length; at < end + length;
		     at = (at / page_bytes + 1) * page_bytes)
			object->live[piece] |= before[at / page_bytes];
	}
	if (object->data)
		memmove(object->data + offset, object->data + offset + length,
			size - offset - length);
	set_length(model, object, size - length);
	modified(model, object, ENGINE_TIME_DATA_MODIFIED);
}

/* ---- attributes ---- */

uint32_t object_model_attribute(const struct model_object *object, uint32_t page, uint32_t number)
{
	uint32_t index = 0;

	while (index < object->attribute_count && (object->attributes[index].page < page ||
						   (object->attributes[index].page == page &&
						    object->attributes[index].number < number)))
		index++;
	return index;
}

bool object_model_set_attribute(struct object_model *model, struct model_object *object,
				struct model_attribute attribute)
{
	uint32_t index = object_model_attribute(object, attribute.page, attribute.number);
	struct model_attribute *at = &object->attributes[index];
	bool found = index < object->attribute_count && at->page == attribute.page &&
		     at->number == attribute.number;

	if (!found && attribute.length) {
		if (object->attribute_count == MODEL_ATTRIBUTES)
			return false;
		memmove(at + 1, at, (object->attribute_count++ - index) * sizeof(*at));
	}
	if (found && !attribute.length)
		memmove(at, at + 1, (--object->attribute_count - index) * sizeof(*at));
	if (attribute.length)
		*at = attribute;
	modified(model, object, ENGINE_TIME_ATTRIBUTES_MODIFIED);
	return true;
}

/* ---- both ---- */

void object_model_copy_content(struct object_model *model, struct model_object *object,
			       const struct model_object *then)
{
	object->length = then->length;
	object->attribute_count = then->attribute_count;
	memcpy(object->attributes, then->attributes, sizeof(object->attributes));
	memcpy(object->live, then->live, sizeof(object->live));
	if (then->data)
		memcpy(data_of(model, object), then->data,
		       (size_t)MODEL_PIECES * model->page_bytes);
	else if (object->data)
		memset(object->data, 0, (size_t)MODEL_PIECES * model->page_bytes);
	modified(model, object, ENGINE_TIME_DATA_MODIFIED);
	modified(model, object, ENGINE_TIME_ATTRIBUTES_MODIFIED);
}
