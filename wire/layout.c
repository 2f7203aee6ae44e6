/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Splits object IDs of the wire, and makes them. */
#include "wire/layout.h"

#include <errno.h>

/* Numbers of objects begin with OSD_FIRST_ID, identifiers with 1. */
#define IDENTIFIER_OFFSET (OSD_FIRST_ID - 1)

int osd_object_id_decode(enum osd_layout layout, uint64_t wire, struct osd_object_id *id)
{
	uint32_t identifier = (uint32_t)(wire >> 32);
	int16_t version = (int16_t)(wire >> 16);

	*id = (struct osd_object_id){ .object = wire };
	if (layout == OSD_LAYOUT_FLAT || wire == 0)
		return 0;
	*id = (struct osd_object_id){ .object = identifier + IDENTIFIER_OFFSET,
				      .version = version > 0 ? (uint32_t)version : 0,
				      .ago = version < 0 ? (uint32_t)-version : 0,
				      .page = (uint16_t)wire };
	return identifier ? 0 : -EINVAL;
}

uint64_t osd_object_id_encode(enum osd_layout layout, uint64_t object)
{
	if (layout == OSD_LAYOUT_FLAT || object == 0)
		return object;
	return (object - IDENTIFIER_OFFSET) << 32;
}
