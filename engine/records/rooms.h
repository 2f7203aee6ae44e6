/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How a store that keeps its records in segments shares out what users don't get of a full device
 * to the kinds of transactions (enum record_room): what each of them leaves free for those behind
 * it.
 */
#ifndef MUNINN_ENGINE_RECORDS_ROOMS_H
#define MUNINN_ENGINE_RECORDS_ROOMS_H

#include "engine/records/records.h"

/*
 * Fills in how many free segments the puts of each room leave. `metadata`: those that no put may
 * take at all, since the store itself needs them. `hidden`: those that are to be hidden from users;
 * there are more when that is too few for all rooms. `removal_least`: so many removing must find,
 * as many as it may have to seal before it has removed anything.
 */
void rooms_share(uint32_t kept[RECORD_ROOMS], uint32_t metadata, uint32_t hidden,
		 uint32_t removal_least);

/* Whether puts of a room may take one more of `free_segments`. */
static inline bool room_has_segment(const uint32_t kept[RECORD_ROOMS], enum record_room room,
				    uint32_t free_segments)
{
	return free_segments > kept[room];
}

/*
 * Whether more than a room leaves has been taken already, by one behind it. What was sealed then
 * was sealed for that one: a put of this room that fills it would make it seal once more, until
 * nothing is left.
 */
static inline bool room_is_overdrawn(const uint32_t kept[RECORD_ROOMS], enum record_room room,
				     uint32_t free_segments)
{
	return room != RECORD_ROOM_UPKEEP && free_segments < kept[room];
}

#endif
