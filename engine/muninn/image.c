/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Writes the image of a row's full group to flash, at once or a few pages at a time. Then it is a
 * complete group.
 */
#include "engine/muninn/image.h"

#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "engine/muninn/directory.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/row.h"

enum { IMAGE_ATTEMPTS = 4 };

/* Chooses the pages for an image of `bytes` and describes them in `entry`. */
static int allocate_image(struct muninn_store *store, uint32_t bytes, uint8_t *entry)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint32_t segments, n = 0;

	if (store->metadata_segment == NO_SEGMENT ||
	    store->metadata_page == geometry->segment_pages) {
		store->metadata_segment = NO_SEGMENT;
		store->metadata_page = 0;
	}
	put_le32(entry + DIRECTORY_BYTES_AT, bytes);
	put_le32(entry + DIRECTORY_FIRST_PAGE_AT, store->metadata_page);
	segments = directory_entry_segments(store, entry);
	assert(segments <= geometry->image_segments_max);
	if (store->metadata_segment != NO_SEGMENT)
		put_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n++, store->metadata_segment);
	for (; n < segments; n++) {
		int result = space_take(&store->space, &store->metadata_segment);

		if (result) {
			store->metadata_segment = NO_SEGMENT;
			return result;
		}
		put_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n, store->metadata_segment);
	}
	return 0;
}

static uint32_t image_pages(const struct muninn_store *store, const struct index_image *image)
{
	return (uint32_t)divide_up(image->length, store->geometry.page_bytes);
}

static int program_image_page(struct muninn_store *store, const struct image_writing *writing)
{
	const struct muninn_geometry *geometry = &store->geometry;
	const struct index_image *image = &writing->image;
	uint64_t offset = (uint64_t)writing->pages * geometry->page_bytes;
	uint8_t data[MUNINN_PAGE_BYTES_MAX];
	struct page_spare spare = {
		.kind = PAGE_KIND_GROUP,
		.used = (uint32_t)min_u64(geometry->page_bytes, image->length - offset),
		.serial = (uint64_t)writing->row << 32 | image->group,
	};
	struct nand_page_io io = {
		.page = directory_image_page(store, writing->entry, writing->pages),
		.data = data,
		.spare = store->spares,
	};

	memset(data, 0, geometry->page_bytes);
	memcpy(data, image->bytes + offset, spare.used);
	page_spare_encode(&spare, store->spares);
	int result = nand_program(store->nand, NAND_CAUSE_INDEX, &io, 1);

	if (!result)
		store->metadata_page = (uint32_t)(io.page % geometry->segment_pages) + 1;
	return result;
}

/*
 * Finds a place for the image, and counts its segments as used. A place that failed stays out of
 * use.
 */
static int place_image(struct muninn_store *store, struct image_writing *writing)
{
	int result = -EIO;

	if (writing->attempts++ < IMAGE_ATTEMPTS)
		result = allocate_image(store, (uint32_t)writing->image.length, writing->entry);
	writing->pages = 0;
	if (!result) {
		directory_refer_to_segments(store, writing->entry, 1);
		return 0;
	}
	free(writing->image.bytes);
	*writing = (struct image_writing){ 0 };
	return result;
}

/* Begins to write a row's growing group. On an error there is none on its way. */
static int begin_image(struct muninn_store *store, uint32_t number, struct image_writing *writing)
{
	uint8_t *entry = directory_free_entry(store);
	struct index_image image;
	int result;

	if (!entry)
		return -ENOSPC;
	result = row_index_make_image(store->rows[number].index, &image);
	if (result)
		return result;
	image.live = entry + DIRECTORY_LIVE_AT;
	*writing = (struct image_writing){ .image = image, .entry = entry, .row = number };
	return place_image(store, writing);
}

static int sync_image(struct muninn_store *store, const uint8_t *entry)
{
	int result = 0;

	for (uint32_t n = 0; !result && n < directory_entry_segments(store, entry); n++)
		result = nand_sync(store->nand,
				   get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n) *
					   store->geometry.segment_blocks,
				   store->geometry.segment_blocks);
	return result;
}

/*
 * Programs at most *budget pages of the image; on a failing block tries elsewhere. On an error
 * there is none on its way.
 */
static int program_image(struct muninn_store *store, struct image_writing *writing,
			 uint32_t *budget)
{
	while (writing->pages < image_pages(store, &writing->image) && *budget) {
		int result = program_image_page(store, writing);

		--*budget;
		writing->pages++;
		if (!result)
			continue;
		/* The host is full, not the flash broken. */
		if (result == -ENOSPC) {
			directory_refer_to_segments(store, writing->entry, -1);
			free(writing->image.bytes);
			*writing = (struct image_writing){ 0 };
			return result;
		}
		log_line(LOG_LEVEL_WARNING,
			 "%s: index: segment %u is retired: programming failed (error %d)",
			 nand_path(store->nand), store->metadata_segment, -result);
		for (uint32_t n = 0; n < directory_entry_segments(store, writing->entry); n++)
			store->images[get_le32(writing->entry + DIRECTORY_SEGMENTS_AT + 4 * n)]--;
		store->metadata_segment = NO_SEGMENT;
		result = place_image(store, writing);
		if (result)
			return result;
	}
	return 0;
}

static int sync_entry(struct muninn_store *store, const uint8_t *entry)
{
	return nand_nvram_sync(store->nand, (uint64_t)(entry - store->nvram),
			       store->geometry.directory_entry_bytes);
}

/* An entry, or a group that has begun anew, could not be synced. */
static void tell_unstable(const struct muninn_store *store, int result)
{
	log_line(LOG_LEVEL_ERROR,
		 "%s: the index in NVRAM can't be made stable (error %d); flushed data may not "
		 "survive a power failure of this host",
		 nand_path(store->nand), -result);
}

/*
 * Begins the next group of a row, and makes that stable at once. Otherwise a failure of the host
 * could bring back the beginning of the group before, although that is complete, has been merged
 * away, or has been followed by others.
 */
static void begin_next_group(struct muninn_store *store, uint32_t number)
{
	struct row_index *index = store->rows[number].index;
	const uint8_t *group;
	uint64_t bytes;
	int result;

	row_index_begin(index, row_index_growing(index) + 1);
	group = row_index_nvram(index, &bytes);
	result = nand_nvram_sync(store->nand, (uint64_t)(group - store->nvram), NVRAM_PAGE);
	if (result)
		tell_unstable(store, result);
	row_index_refresh(index);
}

/* An image is on flash: it becomes a complete group of its row, which begins the next one. */
static int end_image(struct muninn_store *store, struct image_writing *writing)
{
	struct row_index *index = store->rows[writing->row].index;
	uint64_t live = row_index_live(index);
	uint8_t *entry = writing->entry;
	int result = sync_image(store, entry);

	if (!result && live)
		result = row_index_replace(index, writing->image.group, writing->image.group,
					   &writing->image);
	if (result)
		return result;
	if (!live) {
		/* All of it has been merged away meanwhile. */
		directory_refer_to_segments(store, entry, -1);
		free(writing->image.bytes);
	} else {
		put_le32(entry + DIRECTORY_ROW_AT, writing->row);
		put_le32(entry + DIRECTORY_GROUP_AT, writing->image.group);
		/* What the live word speaks of is stable before it. */
		result = sync_entry(store, entry);
		nvram_store64(entry + DIRECTORY_LIVE_AT, live);
		if (!result)
			result = sync_entry(store, entry);
		if (result)
			tell_unstable(store, result);
	}
	begin_next_group(store, writing->row);
	*writing = (struct image_writing){ 0 };
	return 0;
}

/* Begins or goes on to write a row's group. */
static int write_image(struct muninn_store *store, uint32_t number, struct image_writing *writing,
		       uint32_t *budget)
{
	int result = writing->image.bytes ? 0 : begin_image(store, number, writing);

	if (!result)
		result = program_image(store, writing, budget);
	if (!result && writing->pages == image_pages(store, &writing->image))
		result = end_image(store, writing);
	return result;
}

/* Of history's row, with at most *budget page programs. */
static int complete_history(struct muninn_store *store, uint32_t *budget, bool *completed)
{
	uint32_t number = history_row(&store->geometry);
	int result = write_image(store, number, &store->history_image, budget);

	*completed |= !result && !store->history_image.image.bytes;
	return result;
}

int image_complete_group(struct muninn_store *store, uint32_t number, uint32_t *budget,
			 bool *completed)
{
	const struct row_index *index = store->rows[number].index;
	struct image_writing writing = { 0 };
	int result = 0;

	assert(row_index_members(index) == GROUP_SEGMENTS);
	if (number == history_row(&store->geometry) &&
	    (store->history_image.image.bytes || row_index_live(index)))
		return complete_history(store, budget, completed);
	if (!row_index_live(index)) {
		begin_next_group(store, number);
		return 0;
	}
	/* Images lie one behind the other. */
	if (store->history_image.image.bytes)
		result = complete_history(store, budget, completed);
	if (!result)
		result = write_image(store, number, &writing, budget);
	if (result) {
		if (writing.image.bytes)
			directory_refer_to_segments(store, writing.entry, -1);
		free(writing.image.bytes);
		return result;
	}
	*completed = true;
	return 0;
}
