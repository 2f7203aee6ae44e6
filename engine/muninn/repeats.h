/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which keys a command has put more than once in a segment, by bits of hashes: a few others seem to
 * have been, too.
 *
 * Commands put one after the other. So of a segment that has puts of a later command, the earlier
 * one's last put of a key in it is its last one of all. A merge need not look for another one then,
 * past all that is newer.
 */
#ifndef MUNINN_ENGINE_MUNINN_REPEATS_H
#define MUNINN_ENGINE_MUNINN_REPEATS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/muninn/page.h"

#define REPEATS_BITS 131072

struct repeats {
	uint64_t seen[REPEATS_BITS / 64], repeated[REPEATS_BITS / 64];
};

/* For a segment of which nothing is noted. */
void repeats_begin(struct repeats *repeats);

/* Notes the records of a page, whose data need not be there if its header is. */
void repeats_note(struct repeats *repeats, const struct page_view *page);

/* Notes a page that can't be read: it may repeat anything. */
void repeats_note_lost(struct repeats *repeats);

/* Whether the segment may have two records of the key and sequence number. */
bool repeats_may_have(const struct repeats *repeats, const struct record_key *key,
		      uint64_t sequence);

#endif
