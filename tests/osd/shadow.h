/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What user objects should hold: a copy of every byte that was written, and whether it is one that
 * the client's recording shows (the others are filled in by the replay).
 */
#ifndef MUNINN_TESTS_OSD_SHADOW_H
#define MUNINN_TESTS_OSD_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHADOW_OBJECTS 64

struct shadow_object {
	uint64_t partition, object;
	uint8_t *data;
	bool *recorded;
	size_t length;
};

struct shadow {
	struct shadow_object
		objects[SHADOW_OBJECTS]; /* data NULL and length 0: empty; object 0: free */
};

struct shadow_object *shadow_find(struct shadow *shadow, uint64_t partition, uint64_t object);
void shadow_create(struct shadow *shadow, uint64_t partition, uint64_t object);
void shadow_remove(struct shadow *shadow, uint64_t partition, uint64_t object);
void shadow_clear(struct shadow *shadow);
void shadow_resize(struct shadow_object *object, size_t length);
/* The first `recorded` bytes are the recording's. */
void shadow_write(struct shadow_object *object, size_t offset, const uint8_t *data, size_t length,
		  size_t recorded);

#endif
