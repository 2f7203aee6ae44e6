/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Writes the image of a row's full group to flash. Then it is a complete group. seal.c drives that
 * from stage to stage.
 */
#include "engine/muninn/image.h"

#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "engine/muninn/directory.h"
#include "engine/muninn/image_load.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "engine/records/rooms.h"

enum { IMAGE_ATTEMPTS = 4 };

/* Takes the segments of an entry from number `first` on. Errors: none has been taken. */
static int take_segments(struct muninn_store *store, uint8_t *entry, uint32_t first)
{
	uint32_t segments = directory_entry_segments(&store->geometry, entry), n, segment;
	int result = 0;

	assert(segments <= store->geometry.image_segments_max);
	for (n = first; !result && n < segments; n++) {
		result = space_take(&store->space, &segment);
		if (!result)
			put_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n, segment);
	}
	if (!result)
		return 0;
	for (n--; n-- > first;)
		space_release(&store->space, get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n));
	return result;
}

/* Chooses the pages for an image of `bytes` and describes them in `entry`. */
static int allocate_image(struct muninn_store *store, uint32_t bytes, uint8_t *entry)
{
	uint32_t first = 0, segments;
	int result;

	if (store->metadata_segment == NO_SEGMENT ||
	    store->metadata_page == store->geometry.segment_pages) {
		store->metadata_segment = NO_SEGMENT;
		store->metadata_page = 0;
	}
	put_le32(entry + DIRECTORY_BYTES_AT, bytes);
	put_le32(entry + DIRECTORY_FIRST_PAGE_AT, store->metadata_page);
	if (store->metadata_segment != NO_SEGMENT)
		put_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * first++, store->metadata_segment);
	result = take_segments(store, entry, first);
	segments = directory_entry_segments(&store->geometry, entry);
	if (!result)
		store->metadata_segment =
			get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * (segments - 1));
	return result;
}

/* ---- ranges of old records ---- */

static void add_ranges(struct image_writing *writing, uint32_t member,
		       const struct older_pages *older)
{
	uint32_t bytes = older_stored(older);
	uint8_t *grown = bytes ? realloc(writing->ranges, writing->ranges_bytes + bytes) : NULL;

	if (!grown)
		return;
	older_put(older, member, grown + writing->ranges_bytes);
	writing->ranges = grown;
	writing->ranges_bytes += bytes;
}

/*
 * In turn: copies what is known of the old records of a group's segments, which may be merged away
 * while the image is made. That is nothing where no segment has versions that a merge moved.
 */
static bool gather_ranges_of(struct muninn_store *store, uint32_t group, uint32_t *member)
{
	struct image_writing *writing = &store->image_writing;
	struct index_walk walk = { 0 };
	struct sealed_segment segment;
	bool has_ranges = false;

	while (row_index_next(store->rows[writing->row].index, &walk, &segment)) {
		const struct older_pages *older = &store->older[segment.segment];

		if (segment.group != group)
			continue;
		add_ranges(writing, member ? (*member)++ : segment.member, older);
		has_ranges |= older->ranges != NULL;
	}
	return has_ranges;
}

static void gather_ranges(struct muninn_store *store, uint32_t group)
{
	if (!gather_ranges_of(store, group, NULL))
		store->image_writing.ranges_bytes = 0;
}

/* Of a group that takes the place of others, whose members have new numbers. */
static void gather_joined_ranges(struct muninn_store *store)
{
	struct image_writing *writing = &store->image_writing;
	bool has_ranges = false;
	uint32_t member = 0;

	for (uint32_t n = 0; n < writing->join.count; n++)
		has_ranges |= gather_ranges_of(store, writing->join.numbers[n], &member);
	if (!has_ranges)
		writing->ranges_bytes = 0;
}

/* Those of the first segments, if an image has no room for more. */
static void append_ranges(struct muninn_store *store)
{
	struct image_writing *writing = &store->image_writing;
	uint64_t room = store->geometry.image_bytes_max - writing->image.length;
	uint32_t bytes = 0, next;

	assert(writing->image.length <= store->geometry.image_bytes_max);
	while ((next = older_stored_at(writing->ranges + bytes, writing->ranges_bytes - bytes)) &&
	       bytes + next <= room)
		bytes += next;
	index_image_append(store->index, &writing->image, writing->ranges, bytes);
	free(writing->ranges);
	writing->ranges = NULL;
}

/* ---- parity ---- */

/* Puts parity behind an image, up to the end of pages. */
static int add_parity(struct muninn_store *store, struct index_image *image)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint64_t page_bytes = geometry->page_bytes;
	uint32_t own = run_pages_own(geometry, image->length);
	uint8_t *bytes = realloc(image->bytes, run_pages(geometry, image->length) * page_bytes);

	if (!bytes) {
		free(image->bytes);
		image->bytes = NULL;
		return -ENOMEM;
	}
	image->bytes = bytes;
	memset(bytes + image->length, 0, own * page_bytes - image->length);
	parity_run_encode(&store->parity, bytes, own);
	return 0;
}

/* In memory nobody needs it. */
static void drop_parity(struct index_image *image)
{
	uint8_t *bytes = realloc(image->bytes, image->length);

	if (bytes)
		image->bytes = bytes;
}

/* ---- stages ---- */

static int program_image_page(struct muninn_store *store, const struct image_writing *writing)
{
	const struct muninn_geometry *geometry = &store->geometry;
	const struct index_image *image = &writing->image;
	uint64_t offset = (uint64_t)writing->pages * geometry->page_bytes;
	uint8_t spare_bytes[4096] = { 0 };
	struct page_spare spare = {
		.kind = PAGE_KIND_GROUP,
		.used = geometry->page_bytes,
		.serial = (uint64_t)writing->row << 32 | image->group,
	};
	struct nand_page_io io = {
		.page = directory_image_page(&store->geometry, writing->entry, writing->pages),
		.data = image->bytes + offset,
		.spare = spare_bytes,
	};

	/* Of a page of parity all. */
	if (offset < image->length)
		spare.used = (uint32_t)min_u64(spare.used, image->length - offset);
	page_spare_encode(&spare, spare_bytes);
	int result = nand_program(store->nand, NAND_CAUSE_INDEX, &io, 1);

	if (!result)
		store->metadata_page = (uint32_t)(io.page % geometry->segment_pages) + 1;
	return result;
}

/* There is none under way any more. */
static void forget(struct muninn_store *store)
{
	free(store->image_writing.image.bytes);
	free(store->image_writing.ranges);
	free(store->image_writing.parts);
	store->image_writing = (struct image_writing){ 0 };
}

void image_give_up(struct muninn_store *store)
{
	if (store->image_writing.is_placed)
		directory_end_image(store, store->image_writing.entry, false);
	forget(store);
}

/*
 * Finds a place for the image, and counts its segments as used. A place that failed stays out of
 * use.
 */
static int place_image(struct muninn_store *store)
{
	struct image_writing *writing = &store->image_writing;
	int result = -EIO;

	if (writing->attempts++ < IMAGE_ATTEMPTS)
		result = allocate_image(store, (uint32_t)writing->image.length, writing->entry);
	writing->pages = 0;
	writing->is_placed = !result;
	if (!result)
		directory_count_image(store, writing->entry);
	else
		forget(store);
	return result;
}

int image_begin(struct muninn_store *store, uint32_t number)
{
	uint8_t *entry = directory_free_entry(store);

	assert(!store->image_writing.entry);
	assert(row_index_is_full(store->rows[number].index));
	if (!entry)
		return -ENOSPC;
	store->image_writing = (struct image_writing){ .entry = entry, .row = number };
	gather_ranges(store, row_index_growing(store->rows[number].index));
	return 0;
}

static uint8_t *entry_of(const struct muninn_store *store, uint32_t row, uint32_t group)
{
	return row_index_group_live_word(store->rows[row].index, group) - DIRECTORY_LIVE_AT;
}

/*
 * A join, or writing an image anew, can wait for space: what it is about is there. So it takes none
 * that is kept for what leads out of a full device.
 */
static bool has_room(const struct muninn_store *store)
{
	return room_has_segment(store->geometry.room_kept, RECORD_ROOM_UPKEEP, store->space.count);
}

bool image_begin_join(struct muninn_store *store, uint32_t number)
{
	uint32_t bytes = store->geometry.directory_entry_bytes;
	uint8_t *entry = directory_free_entry(store);
	struct index_join join;
	uint8_t *parts;

	if (store->image_writing.entry || store->rows[number].keeps_groups || !entry ||
	    !has_room(store) || !row_index_find_join(store->rows[number].index, &join))
		return false;
	parts = malloc((size_t)join.count * bytes);
	if (!parts)
		return false;
	for (uint32_t n = 0; n < join.count; n++)
		memcpy(parts + (size_t)n * bytes, entry_of(store, number, join.numbers[n]), bytes);
	store->image_writing = (struct image_writing){
		.entry = entry, .row = number, .join = join, .parts = parts
	};
	gather_joined_ranges(store);
	return true;
}

static int sync_entry(struct muninn_store *store, const uint8_t *entry)
{
	return nand_nvram_sync(store->nand, (uint64_t)(entry - store->nvram),
			       store->geometry.directory_entry_bytes);
}

/* Reads the images of all parts. Of one that has been lost in part none is made. */
static int join_parts(struct muninn_store *store)
{
	struct image_writing *writing = &store->image_writing;
	const struct index_join *join = &writing->join;
	struct index_image parts[INDEX_JOIN_MAX] = { 0 };
	int result = 0;

	for (uint32_t n = 0; !result && n < join->count; n++)
		result = image_read(
			store, writing->parts + (size_t)n * store->geometry.directory_entry_bytes,
			&parts[n]);
	if (!result)
		result = row_index_join(store->rows[writing->row].index, join, parts,
					&writing->image);
	for (uint32_t n = 0; n < join->count; n++)
		free(parts[n].bytes);
	return result;
}

/*
 * That the entry's last image has ended may be in memory alone, and an entry may lie in two pages:
 * so that is stable before another image is noted there.
 */
int image_make(struct muninn_store *store)
{
	struct image_writing *writing = &store->image_writing;
	int result = sync_entry(store, writing->entry);

	if (!result && writing->join.count)
		result = join_parts(store);
	else if (!result)
		result = row_index_make_image(store->rows[writing->row].index, &writing->image);
	if (result)
		return result;
	append_ranges(store);
	return add_parity(store, &writing->image);
}

int image_place(struct muninn_store *store, int result)
{
	struct image_writing *writing = &store->image_writing;

	if (!result && writing->join.count && !has_room(store))
		result = -ENOSPC;
	if (result) {
		forget(store);
		return result;
	}
	writing->image.live = writing->entry + DIRECTORY_LIVE_AT;
	return place_image(store);
}

static int sync_image(struct muninn_store *store, const uint8_t *entry)
{
	int result = 0;

	for (uint32_t n = 0; !result && n < directory_entry_segments(&store->geometry, entry); n++)
		result = nand_sync(store->nand,
				   get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n) *
					   store->geometry.segment_blocks,
				   store->geometry.segment_blocks);
	return result;
}

int image_run(struct muninn_store *store, uint32_t *pages, bool *complete)
{
	struct image_writing *writing = &store->image_writing;
	uint32_t wanted = run_pages(&store->geometry, writing->image.length);
	int result = 0;

	for (; !result && writing->pages < wanted && *pages; --*pages) {
		result = program_image_page(store, writing);
		writing->pages++;
		writing->page_failed = result != 0;
	}
	if (result || writing->pages < wanted)
		return result;
	*complete = true;
	return sync_image(store, writing->entry);
}

int image_failed(struct muninn_store *store, int result)
{
	struct image_writing *writing = &store->image_writing;

	/* The host is full, or has failed; the flash is not broken. */
	if (result == -ENOSPC || !writing->page_failed) {
		image_give_up(store);
		return result;
	}
	log_line(LOG_LEVEL_WARNING,
		 "%s: index: segment %u is retired: programming failed (error %d)",
		 nand_path(store->nand), store->metadata_segment, -result);
	for (uint32_t n = 0; n < directory_entry_segments(&store->geometry, writing->entry); n++)
		store->images[get_le32(writing->entry + DIRECTORY_SEGMENTS_AT + 4 * n)]--;
	store->metadata_segment = NO_SEGMENT;
	writing->page_failed = false;
	return place_image(store);
}

/* An entry, or a group that has begun anew, could not be synced. */
static void tell_unstable(const struct muninn_store *store, int result)
{
	if (result)
		log_line(LOG_LEVEL_ERROR,
			 "%s: the index in NVRAM can't be made stable (error %d); flushed data may "
			 "not survive a power failure of this host",
			 nand_path(store->nand), -result);
}

int image_sync_entry(struct muninn_store *store)
{
	uint64_t at = (uint64_t)(store->image_writing.entry - store->nvram);
	const struct nand_nvram_range both[] = { { at, at + store->geometry.directory_entry_bytes },
						 { 0, NVRAM_PAGE } };
	/* What says that a root is expected, too. */
	uint32_t count = store->image_writing.join.count ? 2 : 1;
	int result = nand_nvram_sync_ranges(store->nand, both, count);

	tell_unstable(store, result);
	return result;
}

/*
 * Stable before anything follows. Otherwise a failure of the host could bring back the beginning of
 * the group before, although that is complete, has been merged away, or has been followed by
 * others.
 */
void image_sync_group(struct muninn_store *store, uint32_t number)
{
	uint64_t bytes;
	const uint8_t *group = row_index_nvram(store->rows[number].index, &bytes);

	tell_unstable(store,
		      nand_nvram_sync(store->nand, (uint64_t)(group - store->nvram), NVRAM_PAGE));
}

/* `live`: which of the group's segments are there. */
static void list(struct muninn_store *store, uint64_t live)
{
	struct image_writing *writing = &store->image_writing;

	put_le32(writing->entry + DIRECTORY_ROW_AT, writing->row);
	put_le32(writing->entry + DIRECTORY_GROUP_AT, writing->image.group);
	directory_put_members(store, writing->entry, writing->image.bytes, live);
}

/* The segments of the image's group that are there now. */
static uint64_t live_now(const struct muninn_store *store)
{
	const struct image_writing *writing = &store->image_writing;
	const struct row_index *index = store->rows[writing->row].index;

	return writing->join.count ? row_index_join_live(index, &writing->join)
				   : row_index_live(index);
}

void image_list(struct muninn_store *store)
{
	list(store, live_now(store));
}

bool image_count(struct muninn_store *store)
{
	struct image_writing *writing = &store->image_writing;
	uint64_t live = live_now(store);

	if (live) {
		if (writing->join.count)
			roots_expect(store);
		directory_set_live(store, writing->entry, live);
		return true;
	}
	if (!writing->join.count)
		image_skip(store, writing->row);
	image_give_up(store);
	return false;
}

void image_skip(struct muninn_store *store, uint32_t number)
{
	struct row_index *index = store->rows[number].index;

	row_index_begin(index, row_index_growing(index) + 1);
	row_index_refresh(index);
}

/* Those of a join that are still there. Returns how many. */
static uint32_t find_parts(const struct muninn_store *store, uint8_t *entries[INDEX_JOIN_MAX])
{
	const struct image_writing *writing = &store->image_writing;
	uint32_t count = 0;

	for (uint32_t n = 0; n < writing->join.count; n++)
		if (row_index_has(store->rows[writing->row].index, writing->join.numbers[n]))
			entries[count++] = entry_of(store, writing->row, writing->join.numbers[n]);
	return count;
}

/*
 * The parts of a join end. Until a root has followed, what the last one names is held back. Whoever
 * wrote one meanwhile has taken back that it is expected.
 */
static void end_parts(struct muninn_store *store, uint8_t *entries[INDEX_JOIN_MAX], uint32_t count)
{
	if (!roots_are_expected(store)) {
		roots_expect(store);
		tell_unstable(store, nand_nvram_sync(store->nand, 0, NVRAM_PAGE));
	}
	for (uint32_t n = 0; n < count; n++) {
		directory_set_live(store, entries[n], 0);
		directory_end_image(store, entries[n], true);
	}
}

int image_replace(struct muninn_store *store)
{
	struct image_writing *writing = &store->image_writing;
	struct row_index *index = store->rows[writing->row].index;
	uint32_t last = writing->image.group, part_count;
	uint8_t *parts[INDEX_JOIN_MAX];
	int result;

	if (writing->join.count)
		last = writing->join.numbers[writing->join.count - 1];
	part_count = find_parts(store, parts);
	drop_parity(&writing->image);
	result = row_index_replace(index, writing->image.group, last, &writing->image);
	if (result) {
		roots_expect(store);
		directory_set_live(store, writing->entry, 0);
		directory_end_image(store, writing->entry, true);
		forget(store);
		return result;
	}
	if (writing->join.count) {
		row_index_refresh(index);
		end_parts(store, parts, part_count);
	} else {
		image_skip(store, writing->row);
	}
	free(writing->parts);
	*writing = (struct image_writing){ 0 };
	return 0;
}

int image_sync_parts(struct muninn_store *store)
{
	int result = nand_nvram_sync(store->nand, NVRAM_DIRECTORY_AT,
				     (uint64_t)store->geometry.directory_entries *
					     store->geometry.directory_entry_bytes);

	tell_unstable(store, result);
	return result;
}

/* ---- writing one anew ---- */

static int begin_again(struct muninn_store *store, uint32_t number, uint32_t group)
{
	uint8_t *entry = has_room(store) ? directory_free_entry(store) : NULL;
	struct index_image image;
	int result = entry ? sync_entry(store, entry) : -ENOSPC;

	if (!result)
		result = row_index_copy_image(store->rows[number].index, group, &image);
	if (result)
		return result;
	store->image_writing =
		(struct image_writing){ .image = image, .entry = entry, .row = number };
	gather_ranges(store, group);
	append_ranges(store);
	result = add_parity(store, &store->image_writing.image);
	if (!result)
		return place_image(store);
	forget(store);
	return result;
}

static int run_to_end(struct muninn_store *store)
{
	uint32_t all = UINT32_MAX;
	bool complete = false;
	int result = 0;

	while (!result && !complete) {
		result = image_run(store, &all, &complete);
		if (result)
			result = image_failed(store, result);
	}
	return result;
}

/*
 * The last root names the old image, so opening must write another one if this is not reached. No
 * entry ends before that is stable.
 */
static int expect_root(struct muninn_store *store)
{
	int result;

	roots_expect(store);
	result = nand_nvram_sync(store->nand, 0, NVRAM_PAGE);
	if (result)
		image_give_up(store);
	return result;
}

/*
 * Makes the new entry count, and ends the old image. Two entries are of the group for a moment:
 * image_load.c ends one of them after a crash. Errors: NVRAM is not stable.
 */
static int exchange(struct muninn_store *store)
{
	struct image_writing *writing = &store->image_writing;
	struct row_index *index = store->rows[writing->row].index;
	uint8_t *old = writing->image.live - DIRECTORY_LIVE_AT;
	uint64_t live = get_le64(writing->image.live);
	int result, unstable;

	list(store, live);
	unstable = image_sync_entry(store);
	directory_set_live(store, writing->entry, live);
	unstable |= image_sync_entry(store);
	writing->image.live = writing->entry + DIRECTORY_LIVE_AT;
	drop_parity(&writing->image);
	/* It takes the place of its own like, so that can't fail. */
	result = row_index_replace(index, writing->image.group, writing->image.group,
				   &writing->image);
	assert(!result);
	(void)result;
	row_index_refresh(index);
	directory_set_live(store, old, 0);
	writing->entry = old;
	unstable |= image_sync_entry(store);
	directory_end_image(store, old, true);
	*writing = (struct image_writing){ 0 };
	return unstable;
}

int image_renew(struct muninn_store *store, uint32_t number, uint32_t group)
{
	bool may_let_go = !space_held_back(&store->space);
	int result;

	assert(!store->image_writing.entry);
	result = begin_again(store, number, group);
	if (!result)
		result = run_to_end(store);
	if (!result)
		result = expect_root(store);
	if (result)
		return result;
	may_let_go &= !exchange(store);
	/* What fails is logged: NVRAM says it all. */
	roots_supersede(store);
	if (may_let_go)
		space_let_go(&store->space, store->space.held);
	log_line(LOG_LEVEL_INFO, "%s: index: the image of group %u of row %u is written anew",
		 nand_path(store->nand), group, number);
	return 0;
}
