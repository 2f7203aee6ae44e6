/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The layout of object IDs (wire/layout.h) that a partition has, and what follows from it. Private
 * to osd/. In both layouts, PARTITION_ID bits 63..48 select a version of the partition in bits
 * 47..0.
 */
#ifndef MUNINN_OSD_LAYOUT_H
#define MUNINN_OSD_LAYOUT_H

#include <stdint.h>

#include "engine/engine.h"
#include "engine/history.h"
#include "wire/layout.h"

struct osd_request;

/*
 * Finds the layout of a partition, or of the version that PARTITION_ID selects, and stores it in
 * request->layout. Flat when there is no such partition; the command finds that out by itself.
 */
int osd_find_layout(struct osd_request *request, uint64_t partition);

/*
 * Creates `count` objects, with the CDB's ID or, if that is 0, with IDs that fit the layout of the
 * addressed partition. As engine_create.
 */
int osd_layout_create(struct osd_request *request, enum engine_type type, uint32_t count,
		      uint64_t *first);

/* A new partition gets the device's default, unless the command sets it. */
int osd_layout_inherit(struct osd_request *request);

/* After the command's work: is no object longer, and no ID higher, than the layout can name? */
int osd_layout_check(struct osd_request *request);

#endif
