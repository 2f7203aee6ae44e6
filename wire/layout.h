/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The two layouts of object IDs, of which each partition has one, chosen when it is created:
 *
 * flat    User_Object_ID is the object's number.
 * packed  identifier 32 · version 16 · first page 16. Identifier i is the object 0xFFFF+i.
 * Version 0 is the present; v > 0 as of user version v of the partition; negative, -n, as before
 * the newest n modifications: read-only. The first page is added to the byte address of commands
 * that have one.
 */
#ifndef MUNINN_WIRE_LAYOUT_H
#define MUNINN_WIRE_LAYOUT_H

#include <stdint.h>

#include "wire/standard.h"

/* Partition attribute (muninn page, number 1), 1 byte; undefined: flat. */
enum osd_layout { OSD_LAYOUT_FLAT = 0, OSD_LAYOUT_PACKED = 1 };

#define OSD_PACKED_IDENTIFIER_MAX UINT32_MAX
#define OSD_PACKED_PAGES_MAX      65536U
/* The highest number of an object that a packed ID can hold. */
#define OSD_PACKED_OBJECT_MAX (OSD_FIRST_ID - 1 + OSD_PACKED_IDENTIFIER_MAX)

/* An object ID of the wire, taken apart. */
struct osd_object_id {
	uint64_t object;  /* its number; 0: none */
	uint32_t version; /* of the partition; 0: the present */
	uint32_t ago;
	uint32_t page; /* first one */
};

/* -EINVAL: no ID of this layout: identifier 0 with a version or a page. */
int osd_object_id_decode(enum osd_layout layout, uint64_t wire, struct osd_object_id *id);

/* An object's number as an ID on the wire, without version. */
uint64_t osd_object_id_encode(enum osd_layout layout, uint64_t object);

#endif
