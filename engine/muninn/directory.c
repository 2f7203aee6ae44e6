/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The directory in NVRAM, which says where the images of complete groups are. Loads groups; takes
 * segments and groups out.
 *
 * Images are written one behind the other, through segments that hold nothing else. Which segments
 * these are, and where the last image ends, follows from the directory and the flash itself.
 */
#include "engine/muninn/directory.h"

#include <errno.h>
#include <stdlib.h>

#include "common/crc32c.h"
#include "common/log.h"
#include "engine/muninn/merge_run.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/repair.h"
#include "engine/muninn/row.h"
#include "engine/records/waiting.h"

static uint8_t *entry_at(const struct muninn_store *store, uint64_t entry)
{
	return store->nvram + NVRAM_DIRECTORY_AT + entry * store->geometry.directory_entry_bytes;
}

uint64_t directory_image_page(const struct muninn_store *store, const uint8_t *entry, uint32_t page)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint32_t position = get_le32(entry + DIRECTORY_FIRST_PAGE_AT) + page;
	uint32_t segment =
		get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * (position / geometry->segment_pages));

	return segment_page(geometry, segment) + position % geometry->segment_pages;
}

uint32_t directory_entry_segments(const struct muninn_store *store, const uint8_t *entry)
{
	uint64_t pages =
		divide_up(get_le32(entry + DIRECTORY_BYTES_AT), store->geometry.page_bytes);

	return (uint32_t)divide_up(get_le32(entry + DIRECTORY_FIRST_PAGE_AT) + pages,
				   store->geometry.segment_pages);
}

uint32_t directory_used(const struct muninn_store *store)
{
	uint32_t used = 0;

	for (uint32_t number = 0; number < store->geometry.rows; number++)
		used += row_index_groups(store->rows[number].index);
	return used;
}

static bool entry_in_use(const uint8_t *entry)
{
	return get_le64(entry + DIRECTORY_LIVE_AT) != 0;
}

/* ---- the sum ---- */

/* What an entry adds: nothing when it is not in use. */
static uint64_t sum_entry(const struct muninn_store *store, const uint8_t *entry, uint64_t live)
{
	uint64_t place = (uint64_t)(entry - store->nvram);
	uint32_t rest = store->geometry.directory_entry_bytes - DIRECTORY_SEGMENTS_AT;
	uint64_t crc = crc32c(0, entry, DIRECTORY_LIVE_AT);

	crc = crc << 32 | crc32c(0, entry + DIRECTORY_SEGMENTS_AT, rest);
	return live ? sum_word(place, live) ^ sum_word(place + DIRECTORY_LIVE_AT, crc) : 0;
}

uint64_t directory_sum(const struct muninn_store *store)
{
	uint64_t sum = 0;

	for (uint32_t n = 0; n < store->geometry.directory_entries; n++)
		sum ^= sum_entry(store, entry_at(store, n),
				 get_le64(entry_at(store, n) + DIRECTORY_LIVE_AT));
	return sum;
}

static void begin_live(struct muninn_store *store, const uint8_t *entry, uint64_t live)
{
	sum_begin(store_sum(store, SUM_DIRECTORY),
		  sum_entry(store, entry, get_le64(entry + DIRECTORY_LIVE_AT)) ^
			  sum_entry(store, entry, live));
}

void directory_set_live(struct muninn_store *store, uint8_t *entry, uint64_t live)
{
	begin_live(store, entry, live);
	nvram_store64(entry + DIRECTORY_LIVE_AT, live);
	sum_end(store_sum(store, SUM_DIRECTORY));
}

uint8_t *directory_free_entry(const struct muninn_store *store)
{
	for (uint32_t entry = 0; entry < store->geometry.directory_entries; entry++)
		if (!entry_in_use(entry_at(store, entry)))
			return entry_at(store, entry);
	return NULL;
}

void directory_refer_to_segments(struct muninn_store *store, const uint8_t *entry, int by)
{
	for (uint32_t n = 0; n < directory_entry_segments(store, entry); n++) {
		uint32_t segment = get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n);

		store->images[segment] = (uint16_t)(store->images[segment] + by);
		if (store->images[segment] == 0) {
			if (segment == store->metadata_segment)
				store->metadata_segment = NO_SEGMENT;
			space_release(&store->space, segment);
		}
	}
}

/* ---- taking away ---- */

void directory_take_out(struct muninn_store *store, uint32_t number,
			const struct sealed_segment *segment)
{
	struct row_index *index = store->rows[number].index;
	uint8_t *live = row_index_live_word(index, segment);

	if (live)
		begin_live(store, live - DIRECTORY_LIVE_AT,
			   get_le64(live) & ~(UINT64_C(1) << segment->member));
	row_index_take_out(index, segment);
	if (live)
		sum_end(store_sum(store, SUM_DIRECTORY));
	store->segment_rows[segment->segment] = NO_ROW;
	merge_run_forget(store, segment->segment);
	repair_forget(store, segment->segment);
	store->counters.sealed_records -= segment->records;
	store->counters.sealed_record_bytes -= segment->record_bytes;
}

void directory_drop_empty(struct muninn_store *store, uint32_t number)
{
	struct row_index *index = store->rows[number].index;
	uint32_t group;
	uint8_t *live;

	while ((live = row_index_empty_group(index, &group)) != NULL) {
		int result = row_index_replace(index, group, group, NULL);

		assert(!result);
		(void)result;
		directory_refer_to_segments(store, live - DIRECTORY_LIVE_AT, -1);
	}
	row_index_refresh(index);
}

/* ---- loading ---- */

int directory_read_page(void *context, uint32_t row, uint32_t group, const uint8_t *live,
			uint32_t page, uint8_t *data)
{
	const struct muninn_store *store = context;
	const uint8_t *entry = live - DIRECTORY_LIVE_AT;
	uint64_t serial = (uint64_t)row << 32 | group;
	uint8_t spare_bytes[4096];
	struct page_spare spare;
	struct nand_page_io io = { .page = directory_image_page(store, entry, page),
				   .data = data,
				   .spare = spare_bytes };
	int result = may_wait() ? nand_read(store->nand, NAND_CAUSE_INDEX, &io, 1)
				: nand_read_at_hand(store->nand, waiting_stage, NAND_CAUSE_INDEX,
						    &io, 1);

	if (result == -EINPROGRESS)
		return would_wait();
	if (!result && (!page_spare_decode(spare_bytes, store->geometry.page_bytes, &spare) ||
			spare.kind != PAGE_KIND_GROUP || spare.serial != serial))
		result = -EBADMSG;
	if (result)
		log_line(LOG_LEVEL_ERROR,
			 "%s: index: group %u of row %u: flash page %llu can't be read (error %d)",
			 nand_path(store->nand), group, row, (unsigned long long)io.page, -result);
	return result == -ENODATA ? -EBADMSG : result;
}

/* The first `bytes` of an image. */
static int read_image(struct muninn_store *store, const uint8_t *entry, uint8_t *image,
		      uint32_t bytes, struct error_text *error)
{
	uint32_t page_bytes = store->geometry.page_bytes;
	uint8_t data[MUNINN_PAGE_BYTES_MAX];

	for (uint32_t page = 0; (uint64_t)page * page_bytes < bytes; page++) {
		uint64_t offset = (uint64_t)page * page_bytes;
		struct nand_page_io io = { .page = directory_image_page(store, entry, page),
					   .data = data };
		int result = nand_read(store->nand, NAND_CAUSE_RECOVERY, &io, 1);

		if (result)
			return error_set(error, result,
					 "index: group %u of row %u: flash page %llu can't be read "
					 "(error %d); the"
					 " device is damaged",
					 get_le32(entry + DIRECTORY_GROUP_AT),
					 get_le32(entry + DIRECTORY_ROW_AT),
					 (unsigned long long)io.page, -result);
		memcpy(image + offset, data, min_u64(page_bytes, bytes - offset));
	}
	return 0;
}

/* Loads the group of one directory entry and marks the segments of its image. */
static int load_group(struct muninn_store *store, uint8_t *entry, bool *in_use,
		      struct error_text *error)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint32_t number = get_le32(entry + DIRECTORY_ROW_AT);
	struct index_image image = {
		.length = get_le32(entry + DIRECTORY_BYTES_AT),
		.group = get_le32(entry + DIRECTORY_GROUP_AT),
		.live = entry + DIRECTORY_LIVE_AT,
	};
	int result;

	if (number >= geometry->rows || image.length == 0 ||
	    image.length > geometry->image_bytes_max ||
	    get_le32(entry + DIRECTORY_FIRST_PAGE_AT) >= geometry->segment_pages ||
	    row_index_has(store->rows[number].index, image.group))
		return error_set(error, -EINVAL, "the directory of the index in NVRAM is corrupt");
	for (uint32_t n = 0; n < directory_entry_segments(store, entry); n++) {
		uint32_t segment = get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n);

		if (segment >= geometry->segments)
			return error_set(
				error, -EINVAL,
				"the directory of the index in NVRAM names segment %u of %u",
				segment, geometry->segments);
		in_use[segment] = true;
		store->images[segment]++;
	}
	uint32_t kept = (uint32_t)index_image_kept(store->index, image.length);

	image.bytes = malloc(kept);
	if (!image.bytes)
		return error_set(error, -ENOMEM, "out of memory while loading the index");
	result = read_image(store, entry, image.bytes, kept, error);
	if (!result)
		result = row_index_check_image(store->rows[number].index, &image, error);
	if (result && store->mend_group)
		result = store->mend_group(store, entry, &image);
	if (result == 1) {
		free(image.bytes);
		directory_set_live(store, entry, 0);
		return 0;
	}
	if (!result &&
	    row_index_replace(store->rows[number].index, image.group, image.group, &image))
		result = error_set(error, -ENOMEM, "out of memory while loading the index");
	if (result)
		free(image.bytes);
	return result;
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
		int result = store->images[segment]
				     ? segment_end(store->nand, store->geometry.segment_blocks,
						   segment, &end)
				     : 0;

		if (result)
			return result;
		if (store->images[segment] && end < store->metadata_page) {
			store->metadata_segment = segment;
			store->metadata_page = end;
		}
	}
	return 0;
}

int directory_load(struct muninn_store *store, bool *in_use, struct error_text *error)
{
	for (uint32_t entry = 0; entry < store->geometry.directory_entries; entry++) {
		int result = entry_in_use(entry_at(store, entry))
				     ? load_group(store, entry_at(store, entry), in_use, error)
				     : 0;

		if (result)
			return result;
	}
	return find_metadata_end(store)
		       ? error_set(error, -EIO, "the flash's block table can't be read")
		       : 0;
}

uint32_t directory_copy(const struct muninn_store *store, uint8_t *to)
{
	uint32_t count = 0;

	for (uint32_t n = 0; n < store->geometry.directory_entries; n++) {
		if (!entry_in_use(entry_at(store, n)))
			continue;
		memcpy(to + (uint64_t)count++ * store->geometry.directory_entry_bytes,
		       entry_at(store, n), store->geometry.directory_entry_bytes);
	}
	return count;
}

void directory_restore(struct muninn_store *store, const uint8_t *from, uint32_t count)
{
	uint32_t bytes = store->geometry.directory_entry_bytes;

	assert(count <= store->geometry.directory_entries);
	memcpy(entry_at(store, 0), from, (uint64_t)count * bytes);
	for (uint32_t n = count; n < store->geometry.directory_entries; n++)
		nvram_store64(entry_at(store, n) + DIRECTORY_LIVE_AT, 0);
	sum_set(store_sum(store, SUM_DIRECTORY), directory_sum(store));
}

void directory_clear(struct muninn_store *store)
{
	for (uint32_t entry = 0; entry < store->geometry.directory_entries; entry++)
		nvram_store64(entry_at(store, entry) + DIRECTORY_LIVE_AT, 0);
	sum_set(store_sum(store, SUM_DIRECTORY), 0);
}
