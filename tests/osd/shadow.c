/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A copy of every byte that user objects should hold. */
#include "tests/osd/shadow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct shadow_object *shadow_find(struct shadow *shadow, uint64_t partition, uint64_t object)
{
	for (size_t i = 0; i < SHADOW_OBJECTS; i++)
		if (shadow->objects[i].partition == partition &&
		    shadow->objects[i].object == object)
			return &shadow->objects[i];
	return NULL;
}

void shadow_create(struct shadow *shadow, uint64_t partition, uint64_t object)
{
	struct shadow_object *free_slot = shadow_find(shadow, 0, 0);

	assert(free_slot && !shadow_find(shadow, partition, object));
	free_slot->partition = partition;
	free_slot->object = object;
}

static void forget(struct shadow_object *object)
{
	free(object->data);
	free(object->recorded);
	memset(object, 0, sizeof(*object));
}

void shadow_remove(struct shadow *shadow, uint64_t partition, uint64_t object)
{
	forget(shadow_find(shadow, partition, object));
}

void shadow_clear(struct shadow *shadow)
{
	for (size_t i = 0; i < SHADOW_OBJECTS; i++)
		forget(&shadow->objects[i]);
}

void shadow_resize(struct shadow_object *object, size_t length)
{
	object->data = realloc(object->data, length + 1);
	object->recorded = realloc(object->recorded, (length + 1) * sizeof(bool));
	if (length > object->length) {
		memset(object->data + object->length, 0, length - object->length);
		/* What was never written is zero in the recording, too. */
		for (size_t i = object->length; i < length; i++)
			object->recorded[i] = true;
	}
	object->length = length;
}

void shadow_write(struct shadow_object *object, size_t offset, const uint8_t *data, size_t length,
		  size_t recorded)
{
	if (offset + length > object->length)
		shadow_resize(object, offset + length);
	memcpy(object->data + offset, data, length);
	for (size_t i = 0; i < length; i++)
		object->recorded[offset + i] = i < recorded;
}
