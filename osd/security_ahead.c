/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Bounds of requests that were dated ahead: a small table, which is stored as a whole. */
#include "osd/security_ahead.h"

#include <errno.h>
#include <string.h>

#include <openssl/sha.h>

#include "common/bytes.h"

static const uint8_t of_partition[OSD_AHEAD_MARK_BYTES];

/* What is stored must not open anything, so it is not the key. False: there is no memory. */
static bool mark_of(const uint8_t key[OSD_KEY_BYTES], uint8_t mark[OSD_AHEAD_MARK_BYTES])
{
	uint8_t digest[SHA256_DIGEST_LENGTH];

	if (!SHA256(key, OSD_KEY_BYTES, digest))
		return false;
	memcpy(mark, digest, OSD_AHEAD_MARK_BYTES);
	return true;
}

static bool is_of_partition(const struct osd_ahead_bound *bound)
{
	return memcmp(bound->mark, of_partition, sizeof(of_partition)) == 0;
}

/* The bound of the owner's partition, or else of his key. NULL: there is none. */
static struct osd_ahead_bound *find(struct osd_ahead *ahead, uint64_t partition,
				    const uint8_t mark[OSD_AHEAD_MARK_BYTES])
{
	struct osd_ahead_bound *found = NULL;

	for (unsigned i = 0; i < ahead->count; i++) {
		struct osd_ahead_bound *bound = &ahead->bounds[i];

		if (bound->partition != partition)
			continue;
		if (is_of_partition(bound))
			return bound;
		if (memcmp(bound->mark, mark, OSD_AHEAD_MARK_BYTES) == 0)
			found = bound;
	}
	return found;
}

uint64_t osd_ahead_of(const struct osd_ahead *ahead, const struct osd_nonce_owner *owner)
{
	uint8_t mark[OSD_AHEAD_MARK_BYTES];
	bool looked = false, is_known = false;
	uint64_t bound_ms = 0;

	for (unsigned i = 0; i < ahead->count; i++) {
		const struct osd_ahead_bound *bound = &ahead->bounds[i];

		if (bound->partition != owner->partition)
			continue;
		if (!looked)
			is_known = mark_of(owner->key, mark);
		looked = true;
		if (!is_known || is_of_partition(bound) ||
		    memcmp(bound->mark, mark, sizeof(mark)) == 0)
			bound_ms = max_u64(bound_ms, bound->bound_ms);
	}
	return bound_ms;
}

/* ---- changing it ---- */

static unsigned places_of(const struct osd_ahead *ahead, uint64_t partition)
{
	unsigned places = 0;

	for (unsigned i = 0; i < ahead->count; i++)
		places += ahead->bounds[i].partition == partition;
	return places;
}

static void take_out(struct osd_ahead *ahead, unsigned place)
{
	ahead->bounds[place] = ahead->bounds[--ahead->count];
}

/* One bound for the whole partition that has most places. False: none has two. */
static bool fold(struct osd_ahead *ahead)
{
	struct osd_ahead_bound folded = { .partition = 0 };
	unsigned most = 1;

	for (unsigned i = 0; i < ahead->count; i++) {
		unsigned places = places_of(ahead, ahead->bounds[i].partition);

		if (places > most) {
			most = places;
			folded.partition = ahead->bounds[i].partition;
		}
	}
	if (most == 1)
		return false;
	for (unsigned i = 0; i < ahead->count;) {
		const struct osd_ahead_bound *bound = &ahead->bounds[i];

		if (bound->partition == folded.partition) {
			folded.bound_ms = max_u64(folded.bound_ms, bound->bound_ms);
			take_out(ahead, i);
		} else {
			i++;
		}
	}
	ahead->bounds[ahead->count++] = folded;
	return true;
}

bool osd_ahead_raise(struct osd_ahead *ahead, const struct osd_nonce_owner *owner,
		     uint64_t bound_ms)
{
	struct osd_ahead_bound added = { .partition = owner->partition };
	struct osd_ahead_bound *bound;

	if (!mark_of(owner->key, added.mark))
		return false;
	bound = find(ahead, added.partition, added.mark);
	if (!bound && ahead->count == OSD_AHEAD_MAX) {
		if (!fold(ahead))
			return false;
		bound = find(ahead, added.partition, added.mark);
	}
	if (!bound) {
		bound = &ahead->bounds[ahead->count++];
		*bound = added;
	}
	bound->bound_ms = max_u64(bound->bound_ms, bound_ms);
	return true;
}

uint64_t osd_ahead_settle(struct osd_ahead *ahead, uint64_t until_ms)
{
	uint64_t highest_ms = 0;

	for (unsigned i = 0; i < ahead->count;) {
		uint64_t bound_ms = ahead->bounds[i].bound_ms;

		if (bound_ms <= until_ms) {
			highest_ms = max_u64(highest_ms, bound_ms);
			take_out(ahead, i);
		} else {
			i++;
		}
	}
	return highest_ms;
}

/* ---- its bytes ---- */

size_t osd_ahead_encode(const struct osd_ahead *ahead, uint8_t data[OSD_AHEAD_BYTES_MAX])
{
	for (unsigned i = 0; i < ahead->count; i++) {
		const struct osd_ahead_bound *bound = &ahead->bounds[i];
		uint8_t *entry = data + (size_t)i * OSD_AHEAD_ENTRY_BYTES;

		put_be64(entry, bound->partition);
		memcpy(entry + 8, bound->mark, OSD_AHEAD_MARK_BYTES);
		put_be64(entry + 24, bound->bound_ms);
	}
	return (size_t)ahead->count * OSD_AHEAD_ENTRY_BYTES;
}

int osd_ahead_decode(const uint8_t *data, size_t length, struct osd_ahead *ahead)
{
	*ahead = (struct osd_ahead){ .count = 0 };
	if (length % OSD_AHEAD_ENTRY_BYTES != 0 || length > OSD_AHEAD_BYTES_MAX)
		return -EBADMSG;
	for (; length > 0; length -= OSD_AHEAD_ENTRY_BYTES, data += OSD_AHEAD_ENTRY_BYTES) {
		struct osd_ahead_bound *bound = &ahead->bounds[ahead->count++];

		bound->partition = get_be64(data);
		memcpy(bound->mark, data + 8, OSD_AHEAD_MARK_BYTES);
		bound->bound_ms = get_be64(data + 24);
	}
	return 0;
}
