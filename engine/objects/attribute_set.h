/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The attributes of one object in memory: encoded entries in order of (page, number), as they are
 * stored, and where each begins.
 *
 * An entry is page 4, number 4, length 2 and `length` bytes of value, little-endian. Values are 1
 * to ENGINE_ATTRIBUTE_BYTES_MAX bytes.
 */
#ifndef MUNINN_ENGINE_OBJECTS_ATTRIBUTE_SET_H
#define MUNINN_ENGINE_OBJECTS_ATTRIBUTE_SET_H

#include <stdbool.h>
#include <stdint.h>

#define ATTRIBUTE_HEAD_BYTES 10
/* What an attribute counts beside its value towards ENGINE_ATTRIBUTE_SET_BYTES_MAX. */
#define ATTRIBUTE_OVERHEAD 16

/* All zero = no attributes. The arrays are owned. */
struct attribute_set {
	uint8_t *bytes;
	uint32_t *offsets; /* of the entries in `bytes` */
	uint32_t length, bytes_capacity;
	uint32_t count, offsets_capacity;
	/*
	 * Bytes that differ from what attribute_set_mark_put left: changed_from..changed_end - 1.
	 */
	uint32_t changed_from, changed_end;
};

void attribute_set_free(struct attribute_set *set);

/* Index of the first attribute at or behind (page, number); set->count when there is none. */
uint32_t attribute_set_position(const struct attribute_set *set, uint32_t page, uint32_t number);

/* The attribute at `index`. The value stays the set's. */
void attribute_set_at(const struct attribute_set *set, uint32_t index, uint32_t *page,
		      uint32_t *number, const uint8_t **value, uint32_t *length);

/* Whether the attribute exists; `index` = its position. */
bool attribute_set_find(const struct attribute_set *set, uint32_t page, uint32_t number,
			uint32_t *index);

/*
 * Sets, or with length 0 removes, one attribute; removing what is not set changes nothing. On an
 * error the set is as it was: -EFBIG past the limits of engine.h, -ENOMEM.
 */
int attribute_set_change(struct attribute_set *set, uint32_t page, uint32_t number,
			 const void *value, uint32_t length);

/* Sets all attributes of another set, one after another. Errors as above. */
int attribute_set_add_all(struct attribute_set *set, const struct attribute_set *from);

/*
 * Replaces the set by `length` encoded bytes holding `count` attributes. -EBADMSG when they are not
 * that, -ENOMEM.
 */
int attribute_set_decode(struct attribute_set *set, const uint8_t *from, uint32_t length,
			 uint32_t count);

/* All bytes are stored now. */
void attribute_set_mark_put(struct attribute_set *set);

#endif
