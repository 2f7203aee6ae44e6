/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Reads the images of complete groups.
 *
 * They are written one behind the other, through segments that hold nothing else. Which segments
 * these are, and where the last image ends, follows from the directory and the flash itself.
 *
 * An image says nothing that its segments do not say. So a lost page is no reason to refuse a
 * device: parity behind the image has it, and if too many are lost, all of the image is made again.
 * Either way the image is then to be written anew (image_renew).
 */
#include "engine/muninn/image_load.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "engine/muninn/directory.h"
#include "engine/muninn/regroup.h"
#include "engine/muninn/repair.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "engine/records/waiting.h"

/* ---- a page ---- */

struct image_source {
	struct muninn_store *store;
	enum nand_cause cause;
	const uint8_t *entry;
};

/* What was read is a page of this image. */
static bool is_page_of(const struct image_source *source, const uint8_t *spare_bytes)
{
	const uint8_t *entry = source->entry;
	uint64_t serial = (uint64_t)get_le32(entry + DIRECTORY_ROW_AT) << 32 |
			  get_le32(entry + DIRECTORY_GROUP_AT);
	struct page_spare spare;

	return page_spare_decode(spare_bytes, source->store->geometry.page_bytes, &spare) &&
	       spare.kind == PAGE_KIND_GROUP && spare.serial == serial;
}

/* -EBADMSG, -ENODATA: lost. In an attempt -EINPROGRESS when it is not at hand. */
static int read_stored(const struct image_source *source, uint32_t page, uint8_t *data)
{
	uint8_t spare[4096];
	const struct nand_page_io io = {
		.page = directory_image_page(&source->store->geometry, source->entry, page),
		.data = data,
		.spare = spare,
	};
	int result = may_wait() ? nand_read(source->store->nand, source->cause, &io, 1)
				: nand_read_at_hand(source->store->nand, waiting_stage,
						    source->cause, &io, 1);

	return result == 0 && !is_page_of(source, spare) ? -EBADMSG : result;
}

static int read_for_repair(void *context, uint32_t page, uint8_t *data)
{
	return read_stored(context, page, data);
}

/* Makes a lost page again, and notes that the image is to be written anew. */
static int restore_page(struct image_source *source, uint32_t page, uint8_t *data)
{
	struct muninn_store *store = source->store;
	uint32_t row = get_le32(source->entry + DIRECTORY_ROW_AT);
	uint32_t group = get_le32(source->entry + DIRECTORY_GROUP_AT);
	uint32_t pages =
		run_pages_own(&store->geometry, get_le32(source->entry + DIRECTORY_BYTES_AT));
	int result = repair_run_page(store, pages, page, read_for_repair, source, data);

	if (!result)
		repair_note_image(store, row, group,
				  directory_image_page(&store->geometry, source->entry, page));
	return result;
}

/* A page of the image itself, not of its parity. */
static int read_page(struct image_source *source, uint32_t page, uint8_t *data)
{
	int result = read_stored(source, page, data);

	if (result == -EINPROGRESS || (repair_is_for(result) && !may_wait()))
		return would_wait();
	if (repair_is_for(result))
		result = restore_page(source, page, data);
	if (result)
		log_line(LOG_LEVEL_ERROR,
			 "%s: index: group %u of row %u: flash page %llu can't be read (error %d)",
			 nand_path(source->store->nand),
			 get_le32(source->entry + DIRECTORY_GROUP_AT),
			 get_le32(source->entry + DIRECTORY_ROW_AT),
			 (unsigned long long)directory_image_page(&source->store->geometry,
								  source->entry, page),
			 -result);
	return result;
}

int image_read_page(void *context, uint32_t row, uint32_t group, const uint8_t *live, uint32_t page,
		    uint8_t *data)
{
	struct image_source source = {
		.store = context,
		.cause = NAND_CAUSE_INDEX,
		.entry = live - DIRECTORY_LIVE_AT,
	};

	assert(get_le32(source.entry + DIRECTORY_ROW_AT) == row &&
	       get_le32(source.entry + DIRECTORY_GROUP_AT) == group);
	return read_page(&source, page, data);
}

int image_read(struct muninn_store *store, const uint8_t *entry, struct index_image *image)
{
	const struct image_source source = { store, NAND_CAUSE_INDEX, entry };
	uint64_t page_bytes = store->geometry.page_bytes;
	uint64_t length = get_le32(entry + DIRECTORY_BYTES_AT);
	int result = 0;

	*image = (struct index_image){
		.bytes = malloc(align_up(length, page_bytes)),
		.length = length,
		.group = get_le32(entry + DIRECTORY_GROUP_AT),
	};
	if (!image->bytes)
		return -ENOMEM;
	for (uint32_t page = 0; !result && page * page_bytes < length; page++)
		result = read_stored(&source, page, image->bytes + page * page_bytes);
	return result;
}

int image_examine_page(struct muninn_store *store, enum nand_cause cause, const uint8_t *entry,
		       uint32_t page, uint8_t *data)
{
	struct image_source source = { .store = store, .cause = cause, .entry = entry };
	int result = read_stored(&source, page, data);

	if (!repair_is_for(result))
		return result;
	return restore_page(&source, page, data) ? -EIO : -EBADMSG;
}

/* ---- the group of an entry ---- */

/* As much of the image as the index needs, on the heap. */
static int read_image(struct image_source *source, struct index_image *image)
{
	uint64_t page_bytes = source->store->geometry.page_bytes, kept;
	uint8_t data[MUNINN_PAGE_BYTES_MAX];
	int result = read_page(source, 0, data);

	if (result)
		return result;
	kept = index_image_kept(source->store->index, data, &image->length);
	image->bytes = malloc(kept);
	if (!image->bytes)
		return -ENOMEM;
	memcpy(image->bytes, data, min_u64(page_bytes, kept));
	for (uint64_t page = 1; !result && page * page_bytes < kept; page++) {
		uint64_t offset = page * page_bytes;

		result = read_page(source, (uint32_t)page, data);
		if (!result)
			memcpy(image->bytes + offset, data, min_u64(page_bytes, kept - offset));
	}
	return result;
}

/*
 * The segments of a group, as the directory says, or, if that does not know, as much of the image
 * as can be read. False: nothing says any.
 */
static bool find_members(struct image_source *source, uint32_t members[GROUP_SEGMENTS])
{
	uint32_t page_bytes = source->store->geometry.page_bytes, last = UINT32_MAX;
	uint8_t data[MUNINN_PAGE_BYTES_MAX];
	bool has_page = false, any = false;

	if (directory_members(source->store, source->entry, members))
		return true;
	for (uint32_t member = 0; member < GROUP_SEGMENTS; member++) {
		uint32_t at = index_image_member_at(&source->store->geometry, member);
		uint32_t page = at / page_bytes;

		members[member] = NO_SEGMENT;
		if (!(get_le64(source->entry + DIRECTORY_LIVE_AT) >> member & 1))
			continue;
		if (page != last)
			has_page = read_page(source, page, data) == 0;
		last = page;
		if (has_page)
			members[member] = get_le32(data + at % page_bytes);
		any |= has_page;
	}
	return any;
}

/* Makes an image again. 1: nothing is left of it. */
static int load_again(struct image_source *source, struct index_image *image,
		      struct error_text *error)
{
	struct muninn_store *store = source->store;
	uint32_t row = get_le32(source->entry + DIRECTORY_ROW_AT), members[GROUP_SEGMENTS];
	uint64_t live = get_le64(image->live);
	uint8_t *live_word = image->live, *entry = live_word - DIRECTORY_LIVE_AT;
	int result;

	if (store->salvaged)
		findings_add(store->records->salvage, FINDING_INDEX,
			     "group %u of row %u in the index on flash is damaged", image->group,
			     row);
	free(image->bytes);
	image->bytes = NULL;
	if (!find_members(source, members)) {
		if (!store->salvaged)
			return error_set(
				error, -EBADMSG,
				"index: group %u of row %u: its image on flash is damaged, "
				"and nothing says which segments it is of; the device is "
				"damaged",
				image->group, row);
		lost_note(store->salvaged, row, LOST_ALL_PAGES, 0);
		return 1;
	}
	result = regroup_image(store, row, members, &live, image, error);
	if (result)
		return result;
	image->live = live_word;
	image->stays = true;
	if (live != get_le64(live_word))
		directory_set_live(store, entry, live);
	repair_note_image(store, row, image->group,
			  directory_image_page(&store->geometry, entry, 0));
	return 0;
}

/* Reads the image of an entry, or makes it again. 1: nothing is left of it. */
static int load_image(struct muninn_store *store, uint8_t *entry, struct index_image *image,
		      struct error_text *error)
{
	struct image_source source = {
		.store = store,
		.cause = NAND_CAUSE_RECOVERY,
		.entry = entry,
	};
	const struct row_index *index = store->rows[get_le32(entry + DIRECTORY_ROW_AT)].index;
	uint32_t members[GROUP_SEGMENTS];
	struct error_text why;
	int result;

	result = read_image(&source, image);
	if (result == -ENOMEM)
		return error_set(error, result, "out of memory while loading the index");
	if (result && !repair_is_for(result))
		return error_set(error, result,
				 "index: group %u of row %u can't be read from flash (error %d)",
				 image->group, get_le32(entry + DIRECTORY_ROW_AT), -result);
	if (result || row_index_check_image(index, image, &why))
		result = load_again(&source, image, error);
	/* After a loss of NVRAM the directory knows them no more. */
	if (!result && !directory_members(store, entry, members))
		directory_put_members(store, entry, image->bytes,
				      get_le64(entry + DIRECTORY_LIVE_AT));
	return result;
}

/* What an image says of the old records of those of its segments that are there. */
static void load_ranges(struct muninn_store *store, const struct index_image *image)
{
	uint64_t live = get_le64(image->live);
	uint32_t length, used;
	const uint8_t *at = index_image_appended(store->index, image, &length);

	for (; (used = older_stored_at(at, length)) != 0; at += used, length -= used) {
		struct older_pages older;
		uint32_t member = older_get(&older, at), segment = NO_SEGMENT;

		if (member < GROUP_SEGMENTS && live >> member & 1)
			segment = get_le32(image->bytes +
					   index_image_member_at(&store->geometry, member));
		if (segment < store->geometry.segments)
			store_note_older(store, segment, &older);
		else
			older_forget(&older);
	}
}

/* Counts the image of an entry in its segments, or, without `counts`, not any more. */
static void mark_image(struct muninn_store *store, const uint8_t *entry, bool *in_use, bool counts)
{
	for (uint32_t n = 0; n < directory_entry_segments(&store->geometry, entry); n++) {
		uint32_t segment = get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n);

		if (counts)
			store->images[segment]++;
		else
			store->images[segment]--;
		in_use[segment] = store->images[segment] > 0;
	}
}

/* The last root may name the image. */
static void end_entry(struct muninn_store *store, uint8_t *entry, bool *in_use)
{
	roots_expect(store);
	directory_set_live(store, entry, 0);
	mark_image(store, entry, in_use, false);
}

/*
 * The process ended while an image took the place of others: they are of the same segments. Of two
 * copies, what has been taken out of either has been taken out. False: the image of this entry is
 * the one that ends.
 */
static bool end_doubles(struct muninn_store *store, uint8_t *entry, const struct index_image *image,
			bool *in_use)
{
	struct row_index *index = store->rows[get_le32(entry + DIRECTORY_ROW_AT)].index;
	enum index_double kind;
	uint32_t number;

	while ((kind = row_index_find_double(index, image, &number)) != DOUBLE_NONE) {
		uint8_t *other = row_index_group_live_word(index, number) - DIRECTORY_LIVE_AT;

		if (kind == DOUBLE_COPY)
			directory_set_live(store, other,
					   get_le64(other + DIRECTORY_LIVE_AT) &
						   get_le64(entry + DIRECTORY_LIVE_AT));
		if (kind != DOUBLE_NEWER) {
			end_entry(store, entry, in_use);
			return false;
		}
		/* Without a group in its place that can't fail. */
		(void)row_index_replace(index, number, number, NULL);
		end_entry(store, other, in_use);
	}
	return true;
}

/* Loads the group of one directory entry and marks the segments of its image. */
static int load_group(struct muninn_store *store, uint8_t *entry, bool *in_use,
		      struct error_text *error)
{
	struct index_image image = {
		.length = get_le32(entry + DIRECTORY_BYTES_AT),
		.group = get_le32(entry + DIRECTORY_GROUP_AT),
		.live = entry + DIRECTORY_LIVE_AT,
	};
	int result = directory_check_entry(&store->geometry, entry, error);
	struct row_index *index;

	if (result)
		return result;
	index = store->rows[get_le32(entry + DIRECTORY_ROW_AT)].index;
	mark_image(store, entry, in_use, true);
	result = load_image(store, entry, &image, error);
	if (result == 1) {
		directory_set_live(store, entry, 0);
		return 0;
	}
	if (!result && !end_doubles(store, entry, &image, in_use)) {
		free(image.bytes);
		return 0;
	}
	if (!result)
		load_ranges(store, &image);
	if (!result && row_index_replace(index, image.group, image.group, &image))
		result = error_set(error, -ENOMEM, "out of memory while loading the index");
	if (result)
		free(image.bytes);
	return result;
}

/* ---- all of them ---- */

/* Whether programming has failed there: behind the images that it has no other can go. */
static bool has_bad_block(const struct muninn_store *store, uint32_t segment)
{
	uint32_t blocks = store->geometry.segment_blocks;
	struct nand_block_info info;

	for (uint32_t n = 0; n < blocks; n++)
		if (nand_block_info(store->nand, segment * blocks + n, &info) ||
		    info.state == NAND_BLOCK_BAD)
			return true;
	return false;
}

/*
 * Images go on where an image segment has most space. Pages that a crash left there without an
 * entry are skipped.
 */
static int find_metadata_end(struct muninn_store *store)
{
	store->metadata_segment = NO_SEGMENT;
	store->metadata_page = store->geometry.segment_pages;
	for (uint32_t segment = 0; segment < store->geometry.segments; segment++) {
		uint32_t end;
		int result;

		if (!store->images[segment] || has_bad_block(store, segment))
			continue;
		result = segment_end(store->nand, store->geometry.segment_blocks, segment, &end);
		if (result)
			return result;
		if (end < store->metadata_page) {
			store->metadata_segment = segment;
			store->metadata_page = end;
		}
	}
	return 0;
}

int image_load_all(struct muninn_store *store, bool *in_use, struct error_text *error)
{
	uint32_t n = 0;
	uint8_t *entry;

	while ((entry = directory_next(store, &n)) != NULL) {
		int result = load_group(store, entry, in_use, error);

		if (result)
			return result;
	}
	return find_metadata_end(store)
		       ? error_set(error, -EIO, "the flash's block table can't be read")
		       : 0;
}
