/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "engine/muninn/judge.h"

#include <errno.h>

#include "common/crc32c.h"

enum { BOUNDS_MAX = 64 /* at which a record is looked for */ };

/* A record that is judged, and what is found for its key. */
struct judged {
	struct muninn_store *store;
	const struct record_header *header;
	uint32_t crc;      /* of its value */
	uint64_t sequence; /* of the record that was found last; 0: none */
	bool roughly; /* what looking for would cost much, and mostly be found, counts as found */
};

/* ---- pages ---- */

bool store_has_merged(const struct muninn_store *store, uint64_t page)
{
	return store->merge_pages[page % MERGE_PAGES].number == page;
}

static int read_page(struct muninn_store *store, uint64_t number, struct merge_page *page,
		     uint8_t *data)
{
	uint8_t spare[4096];
	struct nand_page_io io = { .page = number, .data = data, .spare = spare };
	int result = nand_read(store->nand, NAND_CAUSE_MERGE, &io, 1);

	store->merge_reads++;
	page->number = NO_PAGE;
	if (result == -ENODATA) /* sealed segments are programmed whole: the flash lost a page */
		return -EBADMSG;
	if (result)
		return result;
	if (!page_spare_decode(spare, store->geometry.page_bytes, &page->spare) ||
	    page->spare.kind != PAGE_KIND_RECORDS)
		return -EBADMSG;
	page->number = number;
	return 0;
}

int store_read_merged(struct muninn_store *store, uint64_t number, struct page_view *view)
{
	struct merge_page *page = &store->merge_pages[number % MERGE_PAGES];
	uint8_t *data =
		store->merge_data + number % MERGE_PAGES * (uint64_t)store->geometry.page_bytes;
	int result = page->number == number ? 0 : read_page(store, number, page, data);

	if (result)
		return result;
	*view = (struct page_view){
		.serial = page->spare.serial,
		.data = data,
		.used = page->spare.used,
		.large_header = page->spare.large ? page->spare.large_header : NULL,
	};
	return 0;
}

/* ---- what has been found ---- */

void judge_begin(struct muninn_store *store, uint64_t reads_max)
{
	memset(store->merge_finds, 0, sizeof(store->merge_finds));
	for (uint32_t n = 0; n < MERGE_PAGES; n++)
		store->merge_pages[n].number = NO_PAGE;
	store->merge_reads = 0;
	store->merge_reads_max = reads_max;
}

static struct merge_find *find_at(struct muninn_store *store, const struct record_key *key,
				  const struct visibility *visibility)
{
	uint64_t hash = hash_mix(key->identifier ^ (uint64_t)key->piece << 32 ^
				 (uint64_t)key->partition << 16);

	hash = hash_mix(hash ^ visibility->bound ^ (visibility->timeline ? UINT64_C(1) << 63 : 0));
	return &store->merge_finds[hash % MERGE_FINDS];
}

static bool is_of(const struct merge_find *find, const struct record_key *key,
		  const struct visibility *visibility)
{
	return find->sequence && find->bound == visibility->bound &&
	       find->timeline == (visibility->timeline != NULL) &&
	       find->key.identifier == key->identifier && find->key.piece == key->piece &&
	       find->key.partition == key->partition;
}

/* Finds what a reader finds, as far as it is not older than the record. -ENOENT: nothing. */
static int search(struct judged *judged, const struct visibility *visibility,
		  struct merge_find *find)
{
	uint8_t value[MUNINN_PAGE_BYTES_MAX];
	struct record_info info;
	int result = store_get_since(judged->store, &judged->header->key, visibility,
				     judged->header->sequence, NAND_CAUSE_MERGE, value,
				     sizeof(value), &info);

	if (result)
		return result;
	/* Of what is older not all was looked at. */
	if (info.sequence < judged->header->sequence)
		return -ENOENT;
	*find = (struct merge_find){
		.key = judged->header->key,
		.bound = visibility->bound,
		.timeline = visibility->timeline != NULL,
		.sequence = info.sequence,
		.length = info.length,
		.crc = crc32c(0, value, info.length),
	};
	return 0;
}

/*
 * Whether the record is the one found for its key: not superseded, not even by a later put of the same command. 1, 0, or
 * the error of the search. What is found for a key at a bound stays so during a merge: moving changes nothing of it, and what is
 * put meanwhile is what is moved. So of a key with many records in a segment the search is made once for each bound.
 */
static int is_found(struct judged *judged, const struct visibility *visibility)
{
	const struct record_header *header = judged->header;
	struct merge_find *find = find_at(judged->store, &header->key, visibility);

	judged->sequence = 0;
	if (!is_of(find, &header->key, visibility)) {
		struct merge_find found;
		int result = search(judged, visibility, &found);

		if (result)
			return result == -ENOENT ? 0 : result;
		*find = found;
	}
	judged->sequence = find->sequence;
	return find->sequence == header->sequence && find->length == header->length &&
	       find->crc == judged->crc;
}

/* ---- what is needed ---- */

/* Whether the record is found and reached at one of the bounds. 1, 0, or the error of a search. */
static int is_needed_at(struct judged *judged, const struct record_keep *keep,
			const struct record_info *info, bool newest, const uint64_t *bounds,
			uint32_t count)
{
	const struct record_header *header = judged->header;
	uint64_t newest_sequence = judged->sequence;

	for (uint32_t i = 0; i < count; i++) {
		struct visibility visibility = store_visibility(judged->store, bounds[i]);
		int found;

		/* What is known already saves most searches. */
		if (bounds[i] < header->sequence ||
		    record_is_hidden(&visibility, &header->key, header->sequence))
			continue;
		if (newest || (judged->roughly && bounds[i] == header->sequence))
			found = 1;
		else if (bounds[i] == RECORD_NEWEST &&
			 !record_is_hidden(&visibility, &header->key, newest_sequence))
			found = 0;
		else
			found = is_found(judged, &visibility);
		if (found < 0)
			return found;
		if (found && (header->flags & RECORD_TOMBSTONE || !keep->is_reachable ||
			      keep->is_reachable(keep->context, &header->key, info, bounds[i])))
			return 1;
	}
	return 0;
}

int judge_record(struct muninn_store *store, const struct record_keep *keep,
		 const struct record_header *header, const uint8_t *value, bool roughly)
{
	struct visibility everything = store_visibility(store, RECORD_NEWEST);
	struct judged judged = { .store = store,
				 .header = header,
				 .crc = crc32c(0, value, header->length),
				 .roughly = roughly };
	const struct record_info info = {
		.sequence = header->sequence,
		.length = header->length,
		.version = header->version,
		.flags = header->flags & (RECORD_TOMBSTONE | RECORD_ABSORB),
	};
	uint64_t bounds[BOUNDS_MAX + 1];
	uint32_t count = 0;
	int newest, needed = 1;

	if (!sequence_is_visible(&everything, header->sequence))
		return NEED_NONE;
	if (store->merge_reads > store->merge_reads_max)
		return -EBUSY;
	everything.timeline = NULL;
	newest = is_found(&judged, &everything);
	if (newest < 0)
		return newest;
	if (keep->boundaries)
		count = keep->boundaries(keep->context, &header->key, &info, bounds, BOUNDS_MAX);
	if (count <= BOUNDS_MAX) {
		bounds[count++] = RECORD_NEWEST;
		needed = is_needed_at(&judged, keep, &info, newest, bounds, count);
	}
	/* Without older records a tombstone says nothing. */
	if (needed > 0 && header->flags & RECORD_TOMBSTONE &&
	    !(keep->keeps_lone_tombstone &&
	      keep->keeps_lone_tombstone(keep->context, &header->key, &info)))
		needed = store_has_older(store, &header->key, header->sequence);
	if (needed <= 0)
		return needed ? needed : NEED_NONE;
	return newest ? NEED_NEWEST : NEED_OLD;
}
