/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Object IDs on the wire and in the engine. Private to osd/. A partition has one of two layouts,
 * chosen when it is created:
 *
 * flat    User_Object_ID is the engine's.
 * packed  identifier 32 · version 16 · first page 16. Identifier i is the engine object 0xFFFF+i.
 * Version 0 is the present; v > 0 as of user version v of the partition; negative, -n, as before
 * the newest n modifications: read-only. The first page is added to the byte address of commands
 * that have one.
 *
 * In both, PARTITION_ID bits 63..48 select a version of the partition in bits 47..0.
 */
#ifndef MUNINN_OSD_LAYOUT_H
#define MUNINN_OSD_LAYOUT_H

#include <stdint.h>

#include "engine/engine.h"

struct osd_request;

/* Partition attribute (muninn page, number 1), 1 byte; undefined: flat. */
enum osd_layout { OSD_LAYOUT_FLAT = 0, OSD_LAYOUT_PACKED = 1 };

#define OSD_PACKED_IDENTIFIER_MAX UINT32_MAX
#define OSD_PACKED_PAGES_MAX      65536

/* An object ID of the wire, taken apart. */
struct osd_object_id {
	uint64_t object;  /* the engine's; 0: none */
	uint32_t version; /* of the partition; 0: the present */
	uint32_t ago;
	uint32_t page; /* first one */
};

/* -EINVAL: no ID of this layout: identifier 0 with a version or a page. */
int osd_object_id_decode(enum osd_layout layout, uint64_t wire, struct osd_object_id *id);

/* The engine's ID on the wire, without version. */
uint64_t osd_object_id_encode(enum osd_layout layout, uint64_t object);

/*
 * The layout of a partition, or of the version of it that PARTITION_ID selects, into
 * request->layout; flat when there is no such partition (the command finds that out by itself).
 */
int osd_find_layout(struct osd_request *request, uint64_t partition);

/*
 * Creates `count` objects with the CDB's ID, or with 0 there with IDs that the addressed
 * partition's layout has. As engine_create.
 */
int osd_layout_create(struct osd_request *request, enum engine_type type, uint32_t count,
		      uint64_t *first);

/* A new partition gets the device's default, unless the command sets it. */
int osd_layout_inherit(struct osd_request *request);

/* After the command's work: an object is not longer, an ID not higher, than the layout can name. */
int osd_layout_check(struct osd_request *request);

#endif
