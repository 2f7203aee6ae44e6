/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * For stores that keep their records in segments: shares out what users don't get of a full device
 * to the kinds of transactions (enum record_room). Each room leaves some free segments to those
 * below it.
 */
#ifndef MUNINN_ENGINE_RECORDS_ROOMS_H
#define MUNINN_ENGINE_RECORDS_ROOMS_H

#include "engine/records/records.h"

/*
 * Fills in how many free segments the puts of each room leave. `metadata`: segments that no put may
 * take, because the store itself needs them. `image`: of these, as many as it may need behind a
 * single put. Merging may go on when they are gone, or nothing would bring them back. `hidden`:
 * segments that users don't get; more are hidden if that is too few for all rooms. `removal_least`:
 * segments that removing must find, as many as it may have to seal before it has removed anything.
 */
void rooms_share(uint32_t kept[RECORD_ROOMS], uint32_t metadata, uint32_t image, uint32_t hidden,
		 uint32_t removal_least);

/* Whether puts of a room may take one more of `free_segments`. */
static inline bool room_has_segment(const uint32_t kept[RECORD_ROOMS], enum record_room room,
				    uint32_t free_segments)
{
	return free_segments > kept[room];
}

/*
 * Whether a room below has taken segments that this one would leave. Those were sealed for the
 * other room. A put of this room that filled them would make the other one seal again, until
 * nothing is left.
 */
static inline bool room_is_overdrawn(const uint32_t kept[RECORD_ROOMS], enum record_room room,
				     uint32_t free_segments)
{
	return room != RECORD_ROOM_MERGE && free_segments < kept[room];
}

#endif
