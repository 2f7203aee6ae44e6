/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Chooses the sizes that follow from the NAND geometry and the options. */
#include "engine/muninn/geometry.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/muninn/index/index.h"
#include "engine/records/rooms.h"

static_assert(MUNINN_PARITY_MAX <= PARITY_LOSSES_MAX, "the code can do what may be asked of it");

enum {
	ROWS_MAX = 4096,
	SEGMENT_PAGES_DEFAULT = 256,
	/*
	 * By default: 128 rows from 16 GiB on. Behind 64 GiB rows grow with the device, because
	 * look-ups read in vain by as many segments as a row has.
	 */
	SEGMENTS_PER_ROW = 128,
	ROWS_FEW = 128,
	SEGMENTS_PER_ROW_OF_MANY = 512,
	SEGMENTS_PER_ROOT_SEGMENT = 512,
	/* Merging has so many segments on its way; on small devices they are a part of all. */
	SLACK_MERGING_MAX = 16,
	SEGMENTS_PER_SLACK = 64,
};

static int check_options(const struct nand_geometry *nand, const struct muninn_geometry *geometry,
			 struct error_text *error)
{
	if (nand->page_bytes > MUNINN_PAGE_BYTES_MAX || nand->page_bytes < 512)
		return error_set(
			error, -EINVAL,
			"flash pages of %u bytes: the engine takes 512 to %d; create the image"
			" with another page size",
			nand->page_bytes, MUNINN_PAGE_BYTES_MAX);
	if (nand_spare_usable(nand) < PAGE_SPARE_BYTES)
		return error_set(error, -EINVAL,
				 "spare areas of %u bytes are too small: the engine needs %d",
				 nand->spare_bytes, PAGE_SPARE_BYTES + NAND_SPARE_RESERVED);
	if (!is_power_of_two(geometry->segment_pages) || geometry->segment_pages < 8 ||
	    geometry->segment_pages > MUNINN_SEGMENT_PAGES_MAX ||
	    geometry->segment_pages % nand->pages_per_block)
		return error_set(
			error, -EINVAL,
			"segments of %u pages: must be a power of two from 8 to %d and a multiple"
			" of the erase block (%u pages)",
			geometry->segment_pages, MUNINN_SEGMENT_PAGES_MAX, nand->pages_per_block);
	if (!is_power_of_two(geometry->hashed_rows) || geometry->hashed_rows > ROWS_MAX)
		return error_set(error, -EINVAL, "%u rows: must be a power of two from 1 to %d",
				 geometry->hashed_rows, ROWS_MAX);
	if (geometry->record_bytes < 64 || geometry->record_bytes > geometry->page_bytes)
		return error_set(error, -EINVAL,
				 "record_bytes of %u: must be 64 to the page size (%u)",
				 geometry->record_bytes, geometry->page_bytes);
	if (geometry->over_provision_permille > 900)
		return error_set(error, -EINVAL,
				 "over-provisioning of %u permille: must be at most 900",
				 geometry->over_provision_permille);
	return 0;
}

/* Whether the spare areas have room for the shares of a parity. */
static bool has_room(const struct nand_geometry *nand, const struct parity_shape *shape)
{
	return shape->head_bytes + shape->share_bytes <= nand_spare_usable(nand);
}

static int choose_parity(const struct nand_geometry *nand, const struct muninn_options *options,
			 struct muninn_geometry *geometry, struct error_text *error)
{
	uint32_t group_pages = (uint32_t)min_u64(geometry->segment_pages, PARITY_GROUP_PAGES_MAX);
	uint32_t most = (uint32_t)min_u64(group_pages / 2, PARITY_LOSSES_MAX);
	uint32_t losses = options->parity ? options->parity : 1;

	if (losses == MUNINN_PARITY_NONE)
		losses = 0;
	if (losses > most)
		return error_set(error, -EINVAL,
				 "parity of %u pages: must be at most %u for segments of %u pages",
				 losses, most, geometry->segment_pages);
	geometry->parity = parity_shape(geometry->page_bytes, PAGE_SPARE_BYTES,
					geometry->segment_pages, losses);
	if (has_room(nand, &geometry->parity))
		return 0;
	if (options->parity)
		return error_set(
			error, -EINVAL,
			"parity of %u pages takes %u bytes of each spare area behind the %d that "
			"the engine needs, but %u can be used; choose less parity, or create the "
			"image with spare areas of at least %u bytes",
			losses, geometry->parity.share_bytes, PAGE_SPARE_BYTES,
			nand_spare_usable(nand),
			PAGE_SPARE_BYTES + geometry->parity.share_bytes + NAND_SPARE_RESERVED);
	geometry->parity =
		parity_shape(geometry->page_bytes, PAGE_SPARE_BYTES, geometry->segment_pages, 0);
	return 0;
}

/* Directory entries of a device with so many segments. */
static uint32_t entries_of(const struct muninn_geometry *geometry, uint32_t segments)
{
	return segments / index_sparse(geometry) + geometry->rows + 1;
}

/* The largest root with so many directory entries, and segments for two. */
static uint64_t root_bytes_of(const struct muninn_geometry *geometry, uint32_t entries)
{
	uint64_t segment_bytes = (uint64_t)geometry->segment_pages * geometry->page_bytes;
	uint64_t aborted = min_u64(MUNINN_ABORTED_MAX * ABORTED_RANGE_BYTES, segment_bytes / 2);

	return ROOT_HEADER_BYTES + ROOT_STATIC_BYTES + aborted +
	       (uint64_t)entries * geometry->root_entry_bytes +
	       (uint64_t)geometry->rows * (ROOT_ROW_BYTES + 4 * GROUP_SEGMENTS);
}

static uint64_t root_space(const struct muninn_geometry *geometry, uint64_t bytes)
{
	return 2 * divide_up(run_pages(geometry, bytes), geometry->segment_pages);
}

/*
 * The ring of roots has space for two, so that there is always one while the next is written. It is
 * as large a part of the device as roots are of what is written, or it would wear out first. Where
 * it ends does not change when the device grows.
 */
static void size_roots(struct muninn_geometry *geometry)
{
	uint32_t first_entries = entries_of(geometry, geometry->first_segments);

	geometry->root_bytes_max = (uint32_t)root_bytes_of(geometry, geometry->directory_entries);
	geometry->root_segments =
		(uint32_t)max_u64(root_space(geometry, root_bytes_of(geometry, first_entries)),
				  geometry->first_segments / SEGMENTS_PER_ROOT_SEGMENT);
}

static uint32_t default_rows(uint32_t segments)
{
	uint32_t rows = 1;

	while (rows < ROWS_FEW && rows * 2 * SEGMENTS_PER_ROW <= segments)
		rows *= 2;
	while (rows >= ROWS_FEW && rows < ROWS_MAX &&
	       rows * 2 * SEGMENTS_PER_ROW_OF_MANY <= segments)
		rows *= 2;
	return rows;
}

static void place_in_nvram(struct muninn_geometry *geometry)
{
	uint64_t directory_bytes;

	directory_bytes = (uint64_t)geometry->directory_entry_bytes * geometry->directory_entries;
	geometry->sums_at = align_up(NVRAM_DIRECTORY_AT + directory_bytes, NVRAM_PAGE);
	geometry->buffers_at =
		align_up(buffer_sum_pair_at(geometry, geometry->buffers), NVRAM_PAGE);
	geometry->slot_headers_at =
		align_up(BUFFER_MAP_AT + 2 * geometry->segment_pages, NVRAM_PAGE);
	geometry->slots_at = align_up(
		geometry->slot_headers_at + buffer_slots(geometry) * SLOT_HEADER_BYTES, NVRAM_PAGE);
	geometry->buffer_bytes = align_up(geometry->slots_at + (uint64_t)buffer_slots(geometry) *
								       geometry->page_bytes,
					  NVRAM_PAGE);
	geometry->groups_at = geometry->buffers_at + geometry->buffers * geometry->buffer_bytes;
	geometry->group_bytes = align_up(index_group_bytes(geometry), NVRAM_PAGE);
	geometry->nvram_bytes = geometry->groups_at + geometry->rows * geometry->group_bytes;
}

/*
 * Removing may put to any row, and all rows may be full. So its room has at least a segment for
 * each row; from then on nobody above it fills what was sealed for it (place.c). The rooms below it
 * put to history's row alone.
 */
static void size_rooms(struct muninn_geometry *geometry)
{
	uint32_t hidden =
		(uint32_t)((uint64_t)geometry->segments * geometry->over_provision_permille / 1000);

	rooms_share(geometry->room_kept, geometry->reserve_metadata, geometry->image_segments_max,
		    hidden, geometry->rows);
}

/*
 * All rows may be sealed at about the same time. Meanwhile a step of merging is under way, and what
 * the one before has emptied is not free yet.
 */
static void size_slack(struct muninn_geometry *geometry)
{
	geometry->merging_slack =
		geometry->hashed_rows +
		(uint32_t)min_u64(geometry->segments / SEGMENTS_PER_SLACK, SLACK_MERGING_MAX);
}

/* What follows from the size of the index. */
static void derive_sizes(struct muninn_geometry *geometry)
{
	geometry->image_bytes_max = index_image_bytes_max(geometry);
	uint32_t image_pages = run_pages(geometry, geometry->image_bytes_max);

	geometry->image_segments_max =
		(uint32_t)divide_up(image_pages, geometry->segment_pages) + 1;
	geometry->root_entry_bytes =
		(uint32_t)align_up(DIRECTORY_SEGMENTS_AT + 4 * geometry->image_segments_max, 16);
	geometry->directory_entry_bytes = geometry->root_entry_bytes + DIRECTORY_MEMBERS_BYTES;
	geometry->directory_entries = entries_of(geometry, geometry->segments);
	size_roots(geometry);
	/* All rows' groups may become complete at the same time. */
	geometry->reserve_metadata = (uint32_t)divide_up((uint64_t)geometry->rows * image_pages,
							 geometry->segment_pages) +
				     1;
	size_rooms(geometry);
	size_slack(geometry);
	geometry->buffers =
		geometry->rows + 1 + (uint32_t)min_u64(geometry->hashed_rows, BUFFERS_SPARE_MAX);
}

int muninn_geometry_choose(const struct nand_geometry *nand, const struct record_options *records,
			   const struct muninn_options *options, struct muninn_geometry *geometry,
			   struct error_text *error)
{
	uint32_t segment_pages = options->segment_pages ? options->segment_pages
							: SEGMENT_PAGES_DEFAULT;
	int result;

	if (nand->pages_per_block == 0 || segment_pages < nand->pages_per_block)
		return error_set(
			error, -EINVAL,
			"segments of %u pages: must be a multiple of the erase block (%u pages)",
			segment_pages, nand->pages_per_block);
	*geometry = (struct muninn_geometry){
		.page_bytes = nand->page_bytes,
		.segment_pages = segment_pages,
		.record_bytes = options->record_bytes ? options->record_bytes : 1024,
		.over_provision_permille =
			records->over_provision_permille ? records->over_provision_permille : 100,
		.block_pages = nand->pages_per_block,
		.segment_blocks = segment_pages / nand->pages_per_block,
		.blocks = nand->blocks,
		.segments = nand->blocks / (segment_pages / nand->pages_per_block),
		.first_segments = (nand->grown_from ? nand->grown_from : nand->blocks) /
				  (segment_pages / nand->pages_per_block),
	};
	geometry->hashed_rows = options->rows ? options->rows
					      : default_rows(geometry->first_segments);
	geometry->rows = geometry->hashed_rows + 1;
	result = check_options(nand, geometry, error);
	if (!result)
		result = choose_parity(nand, options, geometry, error);
	if (!result)
		result = index_choose(options, geometry, error);
	if (result)
		return result;
	derive_sizes(geometry);
	uint32_t least = geometry->root_segments + geometry->room_kept[RECORD_ROOM_WRITE] +
			 geometry->hashed_rows;

	if (geometry->segments < least)
		return error_set(
			error, -EINVAL,
			"%u segments of %u pages are too few for %u rows: at least %u (%llu KiB); "
			"make"
			" the device larger or the rows fewer",
			geometry->segments, geometry->segment_pages, geometry->hashed_rows, least,
			(unsigned long long)least * segment_pages * geometry->page_bytes / 1024);
	if (root_space(geometry, geometry->root_bytes_max) > geometry->root_segments)
		return error_set(
			error, -EINVAL,
			"a device that was created with %u segments of %u pages can't have %u: the "
			"%u segments for roots, which say what is where, do not suffice",
			geometry->first_segments, geometry->segment_pages, geometry->segments,
			geometry->root_segments);
	place_in_nvram(geometry);
	return 0;
}
