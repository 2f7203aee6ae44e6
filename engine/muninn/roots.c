/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Writes roots: copies on flash of what NVRAM says of the flash, for the case that NVRAM is lost.
 *
 * Roots are appended to a ring, the first segments of the device. docs/format.md says when one is
 * written. A root is as large as the device has rows, so what comes about often is told by a page
 * that follows it: a list of all groups that became complete since the root, and of all segments
 * that were merged away. Segments that were sealed since are found by what their own pages say.
 *
 * A root that does not fit the rest of a segment begins in the next one. The ring has space for two
 * of the largest, so the last root is not erased before the next one is complete.
 */
#include "engine/muninn/roots.h"

#include <errno.h>

#include "common/log.h"
#include "engine/muninn/aborted.h"
#include "engine/muninn/directory.h"
#include "engine/muninn/flush.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/root_find.h"
#include "engine/muninn/sealing.h"
#include "engine/muninn/void.h"

/* ---- the ring ---- */

static uint32_t ring_segment(const struct muninn_store *store)
{
	return (uint32_t)state_read(store, STATE_ROOT_SEGMENT_AT);
}

/*
 * NVRAM may be behind the flash by a list of changes, not by more: a root that it does not know of
 * shows that it is an older one.
 */
static int set_state(struct muninn_store *store, uint32_t at, uint64_t value)
{
	nvram_store64(store->nvram + at, value);
	return nand_nvram_sync(store->nand, 0, NVRAM_PAGE);
}

/* Goes on to the next segment of the ring that can be erased. */
static int next_segment(struct muninn_store *store)
{
	uint32_t count = store->geometry.root_segments;
	uint32_t segment = ring_segment(store), erasures;

	for (uint32_t tried = 0; tried < count; tried++) {
		segment = (segment + 1) % count;
		int result = set_state(store, STATE_ROOT_SEGMENT_AT, segment);

		if (result)
			return result;
		if (segment_erase(store->nand, store->geometry.segment_blocks, NAND_CAUSE_METADATA,
				  segment, &erasures) == 0)
			return 0;
	}
	return -EIO;
}

static int program_part(struct muninn_store *store, const uint8_t *bytes, uint32_t part,
			uint64_t page)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint32_t length = get_le32(bytes + 12), offset = part * geometry->page_bytes;
	uint8_t data[MUNINN_PAGE_BYTES_MAX] = { 0 }, spare_bytes[4096] = { 0 };
	struct page_spare spare = {
		.kind = PAGE_KIND_ROOT,
		.used = geometry->page_bytes,
		.serial = get_le64(bytes + 24),
	};
	struct nand_page_io io = { .page = page, .data = data, .spare = spare_bytes };

	spare.part = part;
	spare.parts = run_pages_own(geometry, length);
	if (part < spare.parts)
		spare.used = (uint32_t)min_u64(length - offset, geometry->page_bytes);
	memcpy(data, bytes + offset, spare.used);
	page_spare_encode(&spare, spare_bytes);
	return nand_program(store->nand, NAND_CAUSE_METADATA, &io, 1);
}

/* A block whose program or erase failed takes no more pages, though it may not be full. */
static bool has_bad_block(const struct muninn_store *store, uint32_t segment)
{
	const struct muninn_geometry *geometry = &store->geometry;

	for (uint32_t i = 0; i < geometry->segment_blocks; i++) {
		struct nand_block_info info;

		if (nand_block_info(store->nand, segment * geometry->segment_blocks + i, &info) ==
			    0 &&
		    info.state == NAND_BLOCK_BAD)
			return true;
	}
	return false;
}

/* Finds where a root or list goes. -ENOSPC: only a `whole` one, a root, may begin a segment. */
static int begin_append(struct muninn_store *store, const uint8_t *bytes, bool whole,
			struct root_writing *writing)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint32_t end;
	int result = segment_end(store->nand, geometry->segment_blocks, ring_segment(store), &end);

	*writing = (struct root_writing){
		.bytes = bytes,
		.pages = run_pages(geometry, get_le32(bytes + 12)),
		.serial = get_le64(bytes + 24),
	};
	/*
	 * The next segment is tried, too, when the blocks of this one can't be read or programmed.
	 */
	if (result || has_bad_block(store, ring_segment(store)) ||
	    writing->pages > geometry->segment_pages - end)
		end = geometry->segment_pages;
	writing->end = end;
	return end == geometry->segment_pages && !whole ? -ENOSPC : 0;
}

/* Programs at most *budget pages, and takes them off. Makes all stable behind the last one. */
static int append_some(struct muninn_store *store, struct root_writing *writing, uint32_t *budget)
{
	const struct muninn_geometry *geometry = &store->geometry;
	int result = 0;

	for (; !result && writing->part < writing->pages && *budget; --*budget) {
		if (writing->end == geometry->segment_pages) {
			result = next_segment(store);
			writing->end = 0;
		}
		if (!result)
			result = program_part(store, writing->bytes, writing->part,
					      segment_page(geometry, ring_segment(store)) +
						      writing->end);
		writing->part++;
		writing->end++;
	}
	if (result || writing->part < writing->pages)
		return result;
	/* A root within one segment is stable with it; one through several with the whole ring. */
	if (writing->pages <= geometry->segment_pages)
		return nand_sync(store->nand, ring_segment(store) * geometry->segment_blocks,
				 geometry->segment_blocks);
	return nand_sync(store->nand, 0, geometry->root_segments * geometry->segment_blocks);
}

/* Where a page can't be programmed, tries all of it again in the next segment. */
static int append_somewhere(struct muninn_store *store, struct root_writing *writing,
			    uint32_t *budget)
{
	int result = append_some(store, writing, budget);

	for (uint32_t tried = 0; result == -EIO && tried < store->geometry.root_segments; tried++) {
		result = next_segment(store);
		if (!result)
			result = begin_append(store, writing->bytes, true, writing);
		if (!result)
			result = append_some(store, writing, budget);
	}
	return result;
}

/* ---- contents ---- */

static struct root_header state_header(const struct muninn_store *store, uint64_t magic,
				       uint64_t serial)
{
	return (struct root_header){
		.magic = magic,
		.serial = serial,
		.committed = store->committed,
		.sealed = state_read(store, STATE_SEALED_AT),
		.next_serial = state_read(store, STATE_NEXT_SERIAL_AT),
		.aborted_count = state_read(store, STATE_ABORTED_COUNT_AT),
		.void_before = void_in_effect(store),
	};
}

/* What is complete but for its CRC gets that, and parity behind it. */
static void seal_run(const struct muninn_store *store, uint8_t *bytes, uint32_t length)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint32_t pages = run_pages_own(geometry, length);

	root_seal(bytes, length);
	memset(bytes + length, 0, (size_t)pages * geometry->page_bytes - length);
	parity_run_encode(&store->parity, bytes, pages);
}

static uint8_t *put_row(const struct row *row, uint8_t *to)
{
	uint32_t members = row_index_members(row->index);

	put_le32(to + ROOT_ROW_GROUP_AT, row_index_growing(row->index));
	put_le32(to + ROOT_ROW_MEMBERS_AT, members);
	put_le64(to + ROOT_ROW_LIVE_AT, row_index_live(row->index));
	put_le64(to + ROOT_ROW_SERIAL_AT, row->buffer.serial);
	to += ROOT_ROW_BYTES;
	for (uint32_t member = 0; member < members; member++, to += 4) {
		struct sealed_segment segment;

		row_index_read_member(row->index, member, &segment);
		put_le32(to, segment.segment);
	}
	return to;
}

/* Whether the list of aborted numbers leaves space for the rest. */
static bool root_fits(const struct muninn_store *store)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint64_t bytes = ROOT_HEADER_BYTES + ROOT_STATIC_BYTES;

	bytes += state_read(store, STATE_ABORTED_COUNT_AT) * ABORTED_RANGE_BYTES;
	bytes += (uint64_t)geometry->directory_entries * geometry->root_entry_bytes;
	bytes += (uint64_t)geometry->rows * (ROOT_ROW_BYTES + 4 * GROUP_SEGMENTS);
	return bytes <= geometry->root_bytes_max;
}

/*
 * Makes a root in store->root. -EFBIG: the list of aborted numbers is longer than the ring was made
 * for.
 */
static int make_root(struct muninn_store *store, uint64_t serial)
{
	const struct muninn_geometry *geometry = &store->geometry;
	struct root_header header;
	uint8_t *at = store->root + ROOT_HEADER_BYTES;

	if (!root_fits(store)) {
		/* A segment that is out may come back until that is stable: aborted numbers too. */
		int result = flush_all(store);

		if (!result)
			result = aborted_prune(store);
		if (result || !root_fits(store))
			return result ? result : -EFBIG;
	}
	header = state_header(store, ROOT_MAGIC, serial);
	memset(at, 0, ROOT_STATIC_BYTES);
	memcpy(at, store->nvram, NVRAM_HEADER_CRC_AT + 4);
	at += ROOT_STATIC_BYTES;
	memcpy(at, store->nvram + NVRAM_ABORTED_AT, header.aborted_count * ABORTED_RANGE_BYTES);
	at += header.aborted_count * ABORTED_RANGE_BYTES;
	header.count = directory_copy(store, at);
	at += (uint64_t)header.count * geometry->root_entry_bytes;
	for (uint32_t number = 0; number < geometry->rows; number++)
		at = put_row(&store->rows[number], at);
	header.bytes = (uint32_t)(at - store->root);
	assert(header.bytes <= geometry->root_bytes_max);
	root_header_encode(&header, store->root);
	seal_run(store, store->root, header.bytes);
	return 0;
}

/*
 * It is tried again and again. No list can stand in for a root that failed: so what comes next is a
 * root, too.
 */
static int tell(struct muninn_store *store, int result)
{
	if (result)
		store->root_serial = 0;
	if (result && result != store->root_error_logged)
		log_line(LOG_LEVEL_ERROR,
			 "%s: the root of the device can't be written to flash (error %d); "
			 "nothing is lost, but should NVRAM be, less can be recovered",
			 nand_path(store->nand), -result);
	store->root_error_logged = result;
	store->root_outdated |= result != 0;
	return result;
}

static uint64_t next_serial(struct muninn_store *store)
{
	uint64_t serial = state_read(store, STATE_ROOT_SERIAL_AT);

	state_write(store, STATE_ROOT_SERIAL_AT, serial + 1);
	return serial;
}

int roots_begin(struct muninn_store *store)
{
	int result;

	/* Ends the root before this one first: the ring has space for two. */
	roots_finish(store);
	result = make_root(store, next_serial(store));
	if (!result)
		result = begin_append(store, store->root, true, &store->root_writing);
	if (result) {
		store->root_writing = (struct root_writing){ 0 };
		return tell(store, result);
	}
	store->root_outdated = false;
	return 0;
}

/* ---- the list of changes ---- */

/*
 * Whether the list takes so many more. The directory of the root and the groups of the list go into
 * one directory when NVRAM is lost.
 */
static bool list_takes(const struct muninn_store *store, uint32_t kills, uint32_t groups)
{
	const struct muninn_geometry *geometry = &store->geometry;

	kills += store->list_kills;
	groups += store->list_groups;
	return store->root_serial &&
	       root_list_bytes(geometry, kills, groups) <= geometry->page_bytes &&
	       store->root_entries + groups <= geometry->directory_entries;
}

static uint64_t list_bytes(const struct muninn_store *store)
{
	return root_list_bytes(&store->geometry, store->list_kills, store->list_groups);
}

/* Behind the kills that there are, before the groups. */
static void add_kills(struct muninn_store *store, const struct root_kill *kills, uint32_t count)
{
	uint8_t *to = store->list + root_list_bytes(&store->geometry, store->list_kills, 0);

	memmove(to + (uint64_t)ROOT_KILL_BYTES * count, to,
		(size_t)(store->list + list_bytes(store) - to));
	for (uint32_t n = 0; n < count; n++)
		root_kill_encode(&kills[n], to + (uint64_t)ROOT_KILL_BYTES * n);
	store->list_kills += count;
}

static void add_group(struct muninn_store *store, uint32_t number, const uint8_t *entry)
{
	uint8_t *to = store->list + list_bytes(store);

	assert(get_le32(entry + DIRECTORY_ROW_AT) == number);
	put_le64(to + ROOT_GROUP_SERIAL_AT, store->rows[number].buffer.serial);
	memcpy(to + ROOT_GROUP_ENTRY_AT, entry, store->geometry.root_entry_bytes);
	store->list_groups++;
}

/* -ENOSPC: it has no place behind the root. */
static int begin_list(struct muninn_store *store)
{
	uint64_t serial = next_serial(store);
	struct root_header header = state_header(store, LIST_MAGIC, serial);
	int result;

	header.base = store->root_serial;
	header.count = store->list_kills;
	header.groups = store->list_groups;
	header.bytes = (uint32_t)list_bytes(store);
	root_header_encode(&header, store->list);
	seal_run(store, store->list, header.bytes);
	result = begin_append(store, store->list, false, &store->root_writing);
	if (result)
		store->root_writing = (struct root_writing){ 0 };
	return result;
}

int roots_begin_group(struct muninn_store *store, uint32_t number, const uint8_t *entry)
{
	roots_finish(store);
	if (list_takes(store, 0, 1)) {
		add_group(store, number, entry);
		if (begin_list(store) == 0)
			return 0;
	}
	return roots_begin(store);
}

/* ---- on its way ---- */

static bool is_list(const struct muninn_store *store)
{
	return store->root_writing.bytes == store->list;
}

int roots_run(struct muninn_store *store, uint32_t *pages, bool *complete)
{
	struct root_writing *writing = &store->root_writing;
	int result = writing->failed;

	/* Who ends it may be another one than who met the error. */
	if (!result && writing->pages && !writing->part)
		result = nand_nvram_sync(store->nand, 0, NVRAM_PAGE);
	if (!result && writing->pages)
		result = is_list(store) ? append_some(store, writing, pages)
					: append_somewhere(store, writing, pages);
	writing->failed = result;
	*complete = !result && writing->part == writing->pages;
	return result;
}

int roots_end(struct muninn_store *store, int result)
{
	struct root_writing *writing = &store->root_writing;
	uint64_t serial = writing->serial;
	bool written = writing->pages && !result;
	bool of_list = is_list(store);

	*writing = (struct root_writing){ 0 };
	if (of_list)
		return written ? 0 : roots_write(store);
	if (written) {
		store->root_serial = serial;
		store->root_entries = get_le32(store->root + ROOT_COUNT_AT);
		store->list_kills = store->list_groups = 0;
	}
	return tell(store, result);
}

bool roots_are_under_way(const struct muninn_store *store)
{
	return store->root_writing.pages != 0;
}

int roots_finish(struct muninn_store *store)
{
	uint32_t all = UINT32_MAX;
	bool complete;

	if (!roots_are_under_way(store))
		return 0;
	/* A thread may be about it. */
	sealing_pause_all(store);
	return roots_are_under_way(store) ? roots_end(store, roots_run(store, &all, &complete)) : 0;
}

int roots_write(struct muninn_store *store)
{
	int result = roots_begin(store);

	return result ? result : roots_finish(store);
}

int roots_supersede(struct muninn_store *store)
{
	int result = roots_write(store);

	if (!result)
		state_write(store, STATE_KILLS_AHEAD_AT, 0);
	return result;
}

void roots_expect(struct muninn_store *store)
{
	state_write(store, STATE_KILLS_AHEAD_AT, 1);
}

bool roots_are_expected(const struct muninn_store *store)
{
	return state_read(store, STATE_KILLS_AHEAD_AT) != 0;
}

int roots_write_kills(struct muninn_store *store, const struct root_kill *kills, uint32_t count)
{
	struct root_writing *writing = &store->root_writing;
	uint32_t all = UINT32_MAX;
	int result;

	roots_finish(store);
	if (!list_takes(store, count, 0))
		return roots_supersede(store);
	add_kills(store, kills, count);
	result = begin_list(store);
	/* Merging syncs NVRAM before and after: no need to wait for that here. */
	if (!result)
		result = append_some(store, writing, &all);
	*writing = (struct root_writing){ 0 };
	if (result)
		return roots_supersede(store);
	state_write(store, STATE_KILLS_AHEAD_AT, 0);
	return 0;
}

void roots_format(struct muninn_store *store, uint64_t serial)
{
	uint32_t erasures;

	for (uint32_t segment = 0; segment < store->geometry.root_segments; segment++)
		segment_erase(store->nand, store->geometry.segment_blocks, NAND_CAUSE_METADATA,
			      segment, &erasures);
	state_write(store, STATE_ROOT_SERIAL_AT, serial);
	nvram_store64(store->nvram + STATE_ROOT_SEGMENT_AT, 0);
}

bool roots_last_is_whole(const struct muninn_store *store)
{
	struct found_root found;
	bool whole = root_find(store->nand, &found) == 0 && !found.pages_missing;
	uint64_t serial = found.list ? found.list_header.serial : found.header.serial;

	root_found_free(&found);
	return whole && serial + 1 == state_read(store, STATE_ROOT_SERIAL_AT);
}

/*
 * The spare area of the last page of a root or list in a segment of the ring. Its serial is 0 if
 * there is none.
 */
static struct page_spare last_page(struct muninn_store *store, uint32_t segment)
{
	struct page_spare spare;
	uint32_t end;

	if (segment_end(store->nand, store->geometry.segment_blocks, segment, &end))
		end = 0;
	/* What can't be read was torn when the power failed, or is damaged. */
	while (end--) {
		struct nand_page_io io = { .page = segment_page(&store->geometry, segment) + end,
					   .spare = store->spare };

		if (nand_read(store->nand, NAND_CAUSE_RECOVERY, &io, 1) == 0 &&
		    page_spare_decode(store->spare, store->geometry.page_bytes, &spare) &&
		    spare.kind == PAGE_KIND_ROOT)
			return spare;
	}
	return (struct page_spare){ 0 };
}

/* Whether it is the last page of all that has its serial. */
static bool ends_run(const struct muninn_store *store, const struct page_spare *spare)
{
	return spare->part + 1 ==
	       spare->parts + parity_run_more(&store->geometry.parity, spare->parts);
}

/*
 * The serial of the last root or list. Where it ends follows from the flash, too: without the end
 * of the one before `next` in the segment that NVRAM says, all of the ring is looked at. So a word
 * that is wrong never makes the ring go on elsewhere, over the last root.
 */
static uint64_t find_last(struct muninn_store *store, uint64_t next)
{
	uint32_t count = store->geometry.root_segments;
	uint32_t said = (uint32_t)min_u64(state_read(store, STATE_ROOT_SEGMENT_AT), count);
	struct page_spare last = { 0 };
	uint32_t best = said;
	bool is_known;

	if (said < count)
		last = last_page(store, said);
	is_known = last.serial + 1 == next && ends_run(store, &last);
	for (uint32_t n = 0; !is_known && n < count; n++) {
		struct page_spare spare = n == said ? last : last_page(store, n);

		if (root_page_is_behind(&spare, &last)) {
			last = spare;
			best = n;
		}
	}
	if (best != said || said == count)
		nvram_store64(store->nvram + STATE_ROOT_SEGMENT_AT, best < count ? best : 0);
	return last.serial;
}

int roots_check(struct muninn_store *store, struct error_text *error)
{
	uint64_t serial = state_read(store, STATE_ROOT_SERIAL_AT);
	uint64_t last = find_last(store, serial);

	if (last < serial)
		return 0;
	if (last == serial) { /* a list of changes that the host's storage has and NVRAM has not */
		state_write(store, STATE_ROOT_SERIAL_AT, serial + 1);
		return 0;
	}
	return error_set(error, -EINVAL,
			 "the NVRAM is older than the flash (root %llu is there, %llu would be "
			 "the next); give back the right NVRAM, or open with "
			 "recover_without_nvram to go on without what it held",
			 (unsigned long long)last, (unsigned long long)serial);
}
