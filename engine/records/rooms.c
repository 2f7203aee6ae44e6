/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Shares out what users don't get of a device to the kinds of transactions. */
#include "engine/records/rooms.h"

#include "common/bytes.h"

enum {
	/* For history's records. */
	UPKEEP_SEGMENTS = 1,
	/* To move a segment whose records all go to one new segment. */
	MERGE_SEGMENTS = 1,
};

void rooms_share(uint32_t kept[RECORD_ROOMS], uint32_t metadata, uint32_t image, uint32_t hidden,
		 uint32_t removal_least)
{
	uint32_t rescue = (uint32_t)max_u64(1, hidden / 8);
	uint32_t back = (uint32_t)max_u64(1, hidden / 4);
	uint32_t others = MERGE_SEGMENTS + UPKEEP_SEGMENTS + rescue + back;
	uint32_t removal = (uint32_t)max_u64(removal_least, hidden > others ? hidden - others : 0);

	kept[RECORD_ROOM_MERGE] = metadata - (uint32_t)min_u64(metadata, image);
	kept[RECORD_ROOM_UPKEEP] = metadata + MERGE_SEGMENTS;
	kept[RECORD_ROOM_RESCUE] = kept[RECORD_ROOM_UPKEEP] + UPKEEP_SEGMENTS;
	kept[RECORD_ROOM_RETURN] = kept[RECORD_ROOM_RESCUE] + rescue;
	kept[RECORD_ROOM_FREE] = kept[RECORD_ROOM_RETURN] + back;
	kept[RECORD_ROOM_WRITE] = kept[RECORD_ROOM_FREE] + removal;
}
