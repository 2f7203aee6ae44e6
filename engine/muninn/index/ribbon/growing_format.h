/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Every byte of a row's growing group in NVRAM, little-endian:
 *
 *   header, 64 bytes
 *   GROUP_SEGMENTS members, 40 bytes each: as in an image, then where its entries end
 *   from 4096 on: entries, 6 bytes each: tag (4), page and candidate (2: location_word); those of a
 *   member follow each other, behind those of the members before it; the last ones of a member with
 *   runs are no keys: tags and pages of its runs
 *   at the end, those of a member in front of those of the members before it: ranges of old records
 *   (format.h), behind their CRC (4), which is of the member and its entries, too
 *
 * The store of the count of members makes a member count. Header and members are in one page.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_GROWING_FORMAT_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_GROWING_FORMAT_H

#include "engine/muninn/index/ribbon/group_format.h"

#define GROWING_MAGIC UINT32_C(0x4752424d) /* "MBRG" */

enum {
	GROWING_MAGIC_AT = 0,    /* 4 */
	GROWING_VERSION_AT = 4,  /* 4: RIBBON_VERSION, or an older one */
	GROWING_ROW_AT = 8,      /* 4 */
	GROWING_NUMBER_AT = 12,  /* 4: of the group in its row */
	GROWING_MEMBERS_AT = 16, /* 4 */
	GROWING_LIVE_AT = 32,    /* 8: a bit for each member that has not been merged away */
	GROWING_HEADER_BYTES = 64,
};

enum {
	GROWING_END_AT = MEMBER_BYTES, /* 4: entries of it and of the members before it */
	GROWING_APPENDED_AT = 36, /* 4: bytes of its ranges and those of the members before it */
	GROWING_MEMBER_BYTES = 40,
};

enum { APPENDED_CRC_BYTES = 4 };

enum {
	GROWING_ENTRIES_AT = 4096,
	GROWING_ENTRY_BYTES = 6,
};

static_assert(GROWING_HEADER_BYTES + GROUP_SEGMENTS * GROWING_MEMBER_BYTES <= GROWING_ENTRIES_AT,
	      "members and the count that makes them count reach storage together");

#endif
