/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Hashes a key to its row and for its index. */
#include "engine/muninn/hash.h"

#include <xxhash.h>

#include "common/bytes.h"

struct key_hash key_hash(const struct record_key *key, uint32_t segment_pages)
{
	uint32_t offset = key->piece & (segment_pages - 1);
	uint8_t group[14];

	put_le16(group, key->partition);
	put_le64(group + 2, key->identifier);
	put_le32(group + 10, key->piece - offset);
	XXH128_hash_t hash = XXH3_128bits(group, sizeof(group));
	return (struct key_hash){
		.group = hash.low64,
		.key = hash_mix(hash.high64 + offset * UINT64_C(0xd1342543de82ef95)),
		.offset = offset,
		.metadata = key->class != RECORD_CLASS_DATA,
	};
}
