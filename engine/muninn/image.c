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
	uint8_t data[MUNINN_PAGE_BYTES_MAX], spare_bytes[4096] = { 0 };
	struct page_spare spare = {
		.kind = PAGE_KIND_GROUP,
		.used = (uint32_t)min_u64(geometry->page_bytes, image->length - offset),
		.serial = (uint64_t)writing->row << 32 | image->group,
	};
	struct nand_page_io io = {
		.page = directory_image_page(store, writing->entry, writing->pages),
		.data = data,
		.spare = spare_bytes,
	};

	memset(data, 0, geometry->page_bytes);
	memcpy(data, image->bytes + offset, spare.used);
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
	store->image_writing = (struct image_writing){ 0 };
}

void image_give_up(struct muninn_store *store)
{
	if (store->image_writing.is_placed)
		directory_refer_to_segments(store, store->image_writing.entry, -1);
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
		directory_refer_to_segments(store, writing->entry, 1);
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
	return 0;
}

int image_make(struct muninn_store *store)
{
	struct image_writing *writing = &store->image_writing;

	return row_index_make_image(store->rows[writing->row].index, &writing->image);
}

int image_place(struct muninn_store *store, int result)
{
	struct image_writing *writing = &store->image_writing;

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

	for (uint32_t n = 0; !result && n < directory_entry_segments(store, entry); n++)
		result = nand_sync(store->nand,
				   get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n) *
					   store->geometry.segment_blocks,
				   store->geometry.segment_blocks);
	return result;
}

int image_run(struct muninn_store *store, uint32_t *pages, bool *complete)
{
	struct image_writing *writing = &store->image_writing;
	uint32_t wanted = image_pages(store, &writing->image);
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
	for (uint32_t n = 0; n < directory_entry_segments(store, writing->entry); n++)
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

void image_sync_entry(struct muninn_store *store)
{
	tell_unstable(store, nand_nvram_sync(store->nand,
					     (uint64_t)(store->image_writing.entry - store->nvram),
					     store->geometry.directory_entry_bytes));
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

void image_list(struct muninn_store *store)
{
	struct image_writing *writing = &store->image_writing;

	put_le32(writing->entry + DIRECTORY_ROW_AT, writing->row);
	put_le32(writing->entry + DIRECTORY_GROUP_AT, writing->image.group);
}

bool image_count(struct muninn_store *store)
{
	struct image_writing *writing = &store->image_writing;
	uint64_t live = row_index_live(store->rows[writing->row].index);

	if (live) {
		directory_set_live(store, writing->entry, live);
		return true;
	}
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

int image_replace(struct muninn_store *store)
{
	struct image_writing *writing = &store->image_writing;
	int result = row_index_replace(store->rows[writing->row].index, writing->image.group,
				       writing->image.group, &writing->image);

	if (result) {
		directory_set_live(store, writing->entry, 0);
		image_sync_entry(store);
		image_give_up(store);
		return result;
	}
	image_skip(store, writing->row);
	*writing = (struct image_writing){ 0 };
	return 0;
}
