/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * One group in the place of others that follow each other in age: without the members that are no
 * longer there, and without their entries. It is made of their images, which have tags.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_GROUP_JOIN_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_GROUP_JOIN_H

#include "engine/muninn/index/ribbon/ribbon_shape.h"

enum { GROUP_PARTS_MAX = 8 };

/* One of them: its whole image, and the members that go on, a bit each. */
struct group_part {
	const uint8_t *image;
	uint64_t length;
	uint64_t live;
};

/*
 * The image of a group of up to GROUP_PARTS_MAX parts, the oldest first, on the heap. It has the
 * number of the first one. -EINVAL: a part is not what it should be, or they differ in what their
 * ribbons have. -EFBIG: more entries than a group has. -ENOMEM.
 */
int group_join(const struct ribbon_shape *shape, const struct group_part *parts, uint32_t count,
	       uint8_t **image, uint64_t *length);

#endif
