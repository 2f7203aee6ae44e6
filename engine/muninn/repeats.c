/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which keys a command has put more than once in a segment: two bits for each put. */
#include "engine/muninn/repeats.h"

#include <string.h>

#include "engine/muninn/hash.h"

void repeats_begin(struct repeats *repeats)
{
	memset(repeats, 0, sizeof(*repeats));
}

static uint64_t hash_of(const struct record_key *key, uint64_t sequence)
{
	uint64_t rest = (uint64_t)key->piece << 32 | (uint32_t)key->partition << 8 | key->class;

	return hash_mix(hash_mix(key->identifier) ^ hash_mix(rest) ^ sequence);
}

static bool has(const uint64_t *bits, uint64_t hash)
{
	uint32_t one = (uint32_t)hash % REPEATS_BITS, other = (uint32_t)(hash >> 32) % REPEATS_BITS;

	return bits[one / 64] >> one % 64 & bits[other / 64] >> other % 64 & 1;
}

static void set(uint64_t *bits, uint64_t hash)
{
	uint32_t one = (uint32_t)hash % REPEATS_BITS, other = (uint32_t)(hash >> 32) % REPEATS_BITS;

	bits[one / 64] |= UINT64_C(1) << one % 64;
	bits[other / 64] |= UINT64_C(1) << other % 64;
}

void repeats_note(struct repeats *repeats, const struct page_view *page)
{
	struct record_header header;
	struct page_record record;
	uint32_t offset = 0;

	while (page_next(page, &offset, &record)) {
		uint64_t hash;

		record_header_decode(record.header, &header);
		hash = hash_of(&header.key, header.sequence);
		set(has(repeats->seen, hash) ? repeats->repeated : repeats->seen, hash);
	}
}

void repeats_note_lost(struct repeats *repeats)
{
	memset(repeats->repeated, 0xff, sizeof(repeats->repeated));
}

bool repeats_may_have(const struct repeats *repeats, const struct record_key *key,
		      uint64_t sequence)
{
	return has(repeats->repeated, hash_of(key, sequence));
}
