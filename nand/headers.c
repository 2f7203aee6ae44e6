/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The headers back end: devices of terabytes in a few gigabytes of memory, for studies of
 * amplification and memory.
 *
 * Of a page it keeps what the caller's codec cannot regenerate. Every page is regenerated once when
 * it is written and compared; one that differs in any bit is kept whole, as is one that the codec
 * declines. So what is read is what was programmed, always; only the memory depends on the codec.
 *
 * The pages of a block stand one behind the other in one piece of memory, which grows while the
 * block is programmed, is cut to size with its last page, and freed by the erase. Spare areas lose
 * their zeroes and what can be computed again.
 *
 *   entry   flags 1; spare area; data
 *   spare   whole, or: CRC of the data 4, length without trailing zeroes 2, a bit a byte: is not
 * zero, those bytes data    whole, or what the codec made of it
 */
#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/private.h"

#define LOCKS              256  /* block b under lock b mod this */
#define PACKED_MAX         2048 /* a page that the codec needs more for is kept whole */
#define FIRST_SPACE_BYTES  256
#define SPARE_PACKED_FIXED 6

enum { ENTRY_DATA_WHOLE = 1 << 0, ENTRY_SPARE_WHOLE = 1 << 1 };

struct packed_block {
	uint32_t space;         /* bytes allocated behind the ends */
	uint32_t erase_count;   /* of the pages whose spare area is packed */
	uint32_t packed, whole; /* pages */
	uint32_t ends[];        /* of each page's entry; then the entries */
};

struct nand_headers {
	struct nand_payload_codec codec;
	struct nand_mapping
		directory; /* of struct packed_block *, one a block; NULL: nothing programmed */
	_Atomic uint64_t packed_pages, whole_pages, bytes;
	pthread_mutex_t locks[LOCKS];
};

static struct packed_block **block_at(const struct nand *nand, uint32_t block)
{
	return (struct packed_block **)(void *)nand->headers->directory.at + block;
}

static uint8_t *entries_of(const struct nand *nand, struct packed_block *packed)
{
	return (uint8_t *)&packed->ends[nand->geometry.pages_per_block];
}

static uint32_t entry_begin(const struct packed_block *packed, uint32_t index)
{
	return index > 0 ? packed->ends[index - 1] : 0;
}

static pthread_mutex_t *lock_of(const struct nand *nand, uint32_t block)
{
	return &nand->headers->locks[block % LOCKS];
}

/* ---- a spare area without what it need not say ---- */

/* Packs the usable part. Returns the length, at most 2 + usable * 9 / 8 + 1. */
static uint32_t pack_usable(const uint8_t *spare, uint32_t usable, uint8_t *to)
{
	uint32_t length = usable, at;

	while (length > 0 && spare[length - 1] == 0)
		length--;
	put_le16(to, (uint16_t)length);
	at = 2 + (uint32_t)divide_up(length, 8);
	memset(to + 2, 0, at - 2);
	for (uint32_t i = 0; i < length; i++) {
		if (spare[i] == 0)
			continue;
		to[2 + i / 8] |= (uint8_t)(1 << i % 8);
		to[at++] = spare[i];
	}
	return at;
}

/* Returns how many bytes of `from` that was. */
static uint32_t unpack_usable(const uint8_t *from, uint8_t *spare, uint32_t usable)
{
	uint32_t length = get_le16(from);
	uint32_t at = 2 + (uint32_t)divide_up(length, 8);

	memset(spare, 0, usable);
	for (uint32_t i = 0; i < length; i++)
		if (from[2 + i / 8] & 1 << i % 8)
			spare[i] = from[at++];
	return at;
}

/* ---- entries ---- */

/* What an entry is made of, before it has a place. */
struct entry {
	uint8_t flags;
	uint32_t spare_bytes, data_bytes;
	const uint8_t *spare, *data;
	uint8_t packed_spare[SPARE_PACKED_FIXED + NAND_SPARE_BYTES_MAX * 9 / 8 + 1];
	uint8_t packed_data[PACKED_MAX];
};

/*
 * Packs the spare area if its seal is the one that belongs there: a torn or damaged one is kept
 * whole.
 */
static void make_spare(const struct nand *nand, uint64_t page, uint32_t erase_count,
		       const uint8_t *spare, struct entry *entry)
{
	uint32_t spare_bytes = nand->geometry.spare_bytes;
	uint32_t usable = nand_spare_usable(&nand->geometry);
	uint8_t sealed[NAND_SPARE_BYTES_MAX];
	struct nand_page_check check;

	memcpy(sealed, spare, usable);
	nand_spare_open(spare, spare_bytes, page, &check);
	nand_spare_seal(sealed, spare_bytes, page, &check);
	entry->spare = spare;
	entry->spare_bytes = spare_bytes;
	if (check.erase_count == erase_count && memcmp(sealed, spare, spare_bytes) == 0) {
		uint32_t packed_bytes;

		put_le32(entry->packed_spare, check.data_crc);
		packed_bytes = 4 + pack_usable(spare, usable, entry->packed_spare + 4);
		if (packed_bytes < spare_bytes) {
			entry->spare = entry->packed_spare;
			entry->spare_bytes = packed_bytes;
			return;
		}
	}
	entry->flags |= ENTRY_SPARE_WHOLE;
}

static void make_data(const struct nand *nand, uint64_t page, const uint8_t *data,
		      const uint8_t *spare, struct entry *entry)
{
	const struct nand_payload_codec *codec = &nand->headers->codec;
	uint32_t page_bytes = nand->geometry.page_bytes;
	uint8_t regenerated[65536];
	size_t packed = 0;

	if (codec->pack && codec->pack(codec->context, page, data, spare, entry->packed_data,
				       min_u64(PACKED_MAX, page_bytes / 2), &packed)) {
		assert(packed >= 1 && packed <= PACKED_MAX);
		if (codec->unpack(codec->context, page, entry->packed_data, packed, spare,
				  regenerated) &&
		    memcmp(regenerated, data, page_bytes) == 0) {
			entry->data = entry->packed_data;
			entry->data_bytes = (uint32_t)packed;
			return;
		}
	}
	entry->flags |= ENTRY_DATA_WHOLE;
	entry->data = data;
	entry->data_bytes = page_bytes;
}

/* ---- blocks ---- */

static uint64_t held_bytes(struct packed_block *packed)
{
	return packed ? malloc_usable_size(packed) : 0;
}

/* Makes the block's memory `space` bytes for entries. Under its lock. 0 or -ENOMEM. */
static int set_space(struct nand *nand, uint32_t block, uint32_t space)
{
	struct packed_block **at = block_at(nand, block);
	size_t head = sizeof(struct packed_block) +
		      nand->geometry.pages_per_block * sizeof((*at)->ends[0]);
	uint64_t before = held_bytes(*at);
	struct packed_block *resized = realloc(*at, head + space);

	if (!resized)
		return -ENOMEM;
	if (!*at)
		memset(resized, 0, head);
	resized->space = space;
	*at = resized;
	atomic_fetch_add_explicit(&nand->headers->bytes, held_bytes(resized) - before,
				  memory_order_relaxed);
	return 0;
}

static void forget_entry(struct nand *nand, struct packed_block *packed, uint8_t flags)
{
	bool whole = flags & ENTRY_DATA_WHOLE;

	packed->whole -= whole;
	packed->packed -= !whole;
	atomic_fetch_sub_explicit(whole ? &nand->headers->whole_pages
					: &nand->headers->packed_pages,
				  1, memory_order_relaxed);
}

/*
 * Puts the entry in its place; usually that is behind all others, but a page may also be written
 * again.
 */
static void place_entry(struct nand *nand, struct packed_block *packed, uint32_t index,
			const struct entry *entry)
{
	uint32_t pages = nand->geometry.pages_per_block;
	uint32_t bytes = 1 + entry->spare_bytes + entry->data_bytes;
	uint32_t begin = entry_begin(packed, index), end = packed->ends[index];
	bool whole = entry->flags & ENTRY_DATA_WHOLE;
	uint8_t *at = entries_of(nand, packed) + begin;

	if (end > begin)
		forget_entry(nand, packed, *at);
	memmove(at + bytes, at + (end - begin), packed->ends[pages - 1] - end);
	for (uint32_t i = index; i < pages; i++)
		packed->ends[i] += bytes - (end - begin);
	at[0] = entry->flags;
	memcpy(at + 1, entry->spare, entry->spare_bytes);
	memcpy(at + 1 + entry->spare_bytes, entry->data, entry->data_bytes);
	packed->whole += whole;
	packed->packed += !whole;
	atomic_fetch_add_explicit(whole ? &nand->headers->whole_pages
					: &nand->headers->packed_pages,
				  1, memory_order_relaxed);
}

/* Under the block's lock. */
static int store_entry(struct nand *nand, uint32_t block, uint32_t index, const struct entry *entry)
{
	uint32_t pages = nand->geometry.pages_per_block;
	struct packed_block *packed = *block_at(nand, block);
	uint32_t bytes = 1 + entry->spare_bytes + entry->data_bytes;
	uint32_t used = packed->ends[pages - 1];
	int result = 0;

	if (used + bytes > packed->space)
		result = set_space(nand, block, (uint32_t)max_u64(used + bytes, used + used / 2));
	if (result < 0)
		return result;
	packed = *block_at(nand, block);
	place_entry(nand, packed, index, entry);
	/* The last page: nothing more is to come. Not being able to shrink is no harm. */
	if (index == pages - 1)
		(void)set_space(nand, block, packed->ends[pages - 1]);
	return 0;
}

static int headers_write(struct nand *nand, uint64_t page, const void *data, const void *spare)
{
	uint32_t block = (uint32_t)(page / nand->geometry.pages_per_block);
	uint32_t index = (uint32_t)(page % nand->geometry.pages_per_block);
	struct nand_page_check check;
	struct packed_block *packed;
	struct entry entry;
	int result = 0;

	entry.flags = 0;
	make_data(nand, page, data, spare, &entry);
	pthread_mutex_lock(lock_of(nand, block));
	if (!*block_at(nand, block)) {
		result = set_space(nand, block, FIRST_SPACE_BYTES);
		nand_spare_open(spare, nand->geometry.spare_bytes, page, &check);
		if (result == 0)
			(*block_at(nand, block))->erase_count = check.erase_count;
	}
	if (result == 0) {
		packed = *block_at(nand, block);
		make_spare(nand, page, packed->erase_count, spare, &entry);
		result = store_entry(nand, block, index, &entry);
	}
	pthread_mutex_unlock(lock_of(nand, block));
	if (result == 0)
		return 0;
	log_line(LOG_LEVEL_ERROR, "%s: no memory to keep page %llu", nand->path,
		 (unsigned long long)page);
	return -EIO;
}

/* An entry taken out of its block: the spare area is done, packed data are left in `packed`. */
static bool take_entry(struct nand *nand, uint64_t page, uint8_t *data, uint8_t *spare,
		       uint8_t *packed_data, uint32_t *packed_bytes)
{
	uint32_t index = (uint32_t)(page % nand->geometry.pages_per_block);
	uint32_t usable = nand_spare_usable(&nand->geometry);
	struct packed_block *packed =
		*block_at(nand, (uint32_t)(page / nand->geometry.pages_per_block));
	const uint8_t *from, *end;
	uint8_t flags;

	if (!packed || packed->ends[index] == entry_begin(packed, index))
		return false;
	from = entries_of(nand, packed) + entry_begin(packed, index);
	end = entries_of(nand, packed) + packed->ends[index];
	flags = *from++;
	if (flags & ENTRY_SPARE_WHOLE) {
		memcpy(spare, from, nand->geometry.spare_bytes);
		from += nand->geometry.spare_bytes;
	} else {
		const struct nand_page_check check = { .data_crc = get_le32(from),
						       .erase_count = packed->erase_count };

		from += 4;
		from += unpack_usable(from, spare, usable);
		nand_spare_seal(spare, nand->geometry.spare_bytes, page, &check);
	}
	*packed_bytes = 0;
	if (!data)
		return true;
	if (flags & ENTRY_DATA_WHOLE) {
		memcpy(data, from, nand->geometry.page_bytes);
		return true;
	}
	*packed_bytes = (uint32_t)(end - from);
	memcpy(packed_data, from, *packed_bytes);
	return true;
}

static int headers_read(struct nand *nand, uint64_t page, void *data, void *spare)
{
	const struct nand_payload_codec *codec = &nand->headers->codec;
	uint32_t block = (uint32_t)(page / nand->geometry.pages_per_block);
	uint8_t packed[PACKED_MAX];
	uint32_t packed_bytes = 0;
	bool found;

	pthread_mutex_lock(lock_of(nand, block));
	found = take_entry(nand, page, data, spare, packed, &packed_bytes);
	pthread_mutex_unlock(lock_of(nand, block));
	/* Erased by another thread since the caller looked: like the bytes of an erased image. */
	if (!found) {
		memset(spare, 0, nand->geometry.spare_bytes);
		if (data)
			memset(data, 0, nand->geometry.page_bytes);
		return 0;
	}
	if (packed_bytes > 0 &&
	    !codec->unpack(codec->context, page, packed, packed_bytes, spare, data)) {
		log_line(LOG_LEVEL_ERROR, "%s: page %llu could be regenerated once, and cannot now",
			 nand->path, (unsigned long long)page);
		return -EIO;
	}
	return 0;
}

static int headers_prepare(struct nand *nand, uint32_t block)
{
	(void)nand;
	(void)block;
	return 0;
}

static void headers_discard(struct nand *nand, uint32_t block)
{
	struct nand_headers *headers = nand->headers;
	struct packed_block **at = block_at(nand, block), *packed;

	pthread_mutex_lock(lock_of(nand, block));
	packed = *at;
	*at = NULL;
	pthread_mutex_unlock(lock_of(nand, block));
	if (!packed)
		return;
	atomic_fetch_sub_explicit(&headers->bytes, held_bytes(packed), memory_order_relaxed);
	atomic_fetch_sub_explicit(&headers->packed_pages, packed->packed, memory_order_relaxed);
	atomic_fetch_sub_explicit(&headers->whole_pages, packed->whole, memory_order_relaxed);
	free(packed);
}

static int headers_sync(struct nand *nand)
{
	(void)nand;
	return 0;
}

static void headers_close(struct nand *nand)
{
	struct nand_headers *headers = nand->headers;

	if (!headers)
		return;
	for (uint32_t block = 0; headers->directory.at && block < nand->geometry.blocks; block++)
		free(*block_at(nand, block));
	nand_unmap(&headers->directory);
	for (int i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&headers->locks[i]);
	free(headers);
	nand->headers = NULL;
}

static const struct nand_backend headers_backend = {
	.name = "headers",
	.prepare = headers_prepare,
	.write = headers_write,
	.read = headers_read,
	.read_at_hand = headers_read,
	.discard = headers_discard,
	.sync = headers_sync,
	.close = headers_close,
};

void nand_headers_usage(const struct nand *nand, struct nand_headers_usage *usage)
{
	struct nand_headers *headers = nand->headers;

	*usage = (struct nand_headers_usage){ 0 };
	if (!headers)
		return;
	usage->packed_pages = atomic_load(&headers->packed_pages);
	usage->whole_pages = atomic_load(&headers->whole_pages);
	usage->bytes = atomic_load(&headers->bytes);
}

int nand_headers_open(struct nand *nand, const struct nand_payload_codec *codec,
		      struct error_text *error)
{
	nand->backend = &headers_backend;
	nand->headers = calloc(1, sizeof(*nand->headers));
	if (!nand->headers)
		return error_set(error, -ENOMEM, "cannot make a device: %s", strerror(ENOMEM));
	if (codec)
		nand->headers->codec = *codec;
	for (int i = 0; i < LOCKS; i++)
		pthread_mutex_init(&nand->headers->locks[i], NULL);
	return nand_map(&nand->headers->directory, NAND_MAP_PRIVATE, -1, 0,
			(uint64_t)nand->geometry.blocks * sizeof(struct packed_block *),
			"a directory of blocks", error);
}
