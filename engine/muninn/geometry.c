/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Chooses the sizes that follow from the NAND geometry and the options. */
#include "engine/muninn/geometry.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "engine/muninn/hash.h"

enum {
	ROWS_MAX = 1024,
	SEGMENT_PAGES_DEFAULT = 256,
	SEGMENTS_PER_ROW = 128, /* default: 128 rows from 16 GiB on */
	ROWS_DEFAULT_MAX = 128,
	RECORDS_PER_PAGE_MAX = 64,
	FILTER_BITS_MIN = 64,
	FILTER_HASHES_MAX = 20,
	PLACEMENT_RUNS = 16,
	SEGMENTS_PER_ROOT_SEGMENT = 512,
	UPKEEP_SEGMENTS =
		2, /* for history's row, and to move a segment, all of which is of one row */
};

/*
 * Fills a segment with records of equal size as the engine would, until one finds no place, and
 * counts how many each filter took. The averages are what the skewed filters are made for (the
 * paper sizes them the same way). `limits`: keys that a filter takes at most.
 */
static void simulate_placement(const struct muninn_geometry *geometry, uint32_t per_page,
			       const double limits[MUNINN_FILTERS_MAX],
			       double keys[MUNINN_FILTERS_MAX])
{
	uint32_t pages = geometry->segment_pages, paged = geometry->paged_filters;
	uint32_t functions = (uint32_t)min_u64(geometry->places, HASH_FUNCTIONS);
	uint64_t random = UINT64_C(0x6d756e696e6e);
	uint32_t *used = malloc(pages * sizeof(*used));
	double taken[MUNINN_FILTERS_MAX];

	assert(pages > 0 && used);
	memset(keys, 0, MUNINN_FILTERS_MAX * sizeof(*keys));
	for (uint32_t run = 0; run < PLACEMENT_RUNS; run++) {
		uint32_t place;

		memset(used, 0, pages * sizeof(*used));
		memset(taken, 0, sizeof(taken));
		do {
			struct key_hash hash = { .group = hash_mix(++random) };

			for (place = 0; place < functions; place++) {
				uint32_t page = hash_page(&hash, place, pages);
				uint32_t filter = place < paged ? place : paged;

				if (used[page] < per_page && taken[filter] < limits[filter]) {
					used[page]++;
					taken[filter]++;
					break;
				}
			}
		} while (place < functions);
		for (uint32_t filter = 0; filter < geometry->filters; filter++)
			keys[filter] += taken[filter] / PLACEMENT_RUNS;
	}
	free(used);
}

static void size_filters(struct muninn_geometry *geometry)
{
	uint32_t per_page = geometry->page_bytes / geometry->record_bytes;
	double limits[MUNINN_FILTERS_MAX], keys[MUNINN_FILTERS_MAX];

	per_page = per_page < 1                      ? 1
		   : per_page > RECORDS_PER_PAGE_MAX ? RECORDS_PER_PAGE_MAX
						     : per_page;
	for (uint32_t filter = 0; filter < geometry->filters; filter++)
		limits[filter] = geometry->even_filters ? ceil((double)geometry->segment_pages *
							       per_page / geometry->filters)
							: INFINITY;
	simulate_placement(geometry, per_page, limits, keys);
	for (uint32_t filter = 0; filter < geometry->filters; filter++) {
		if (geometry->even_filters) {
			geometry->keys_nominal[filter] = geometry->keys_limit[filter] =
				(uint32_t)limits[filter];
			continue;
		}
		geometry->keys_nominal[filter] = (uint32_t)ceil(keys[filter]) + 1;
		/*
		 * A quarter more costs a false-positive rate of 0.0025 instead of 0.0005, a quarter
		 * less space.
		 */
		geometry->keys_limit[filter] = geometry->keys_nominal[filter] * 5 / 4 + 2;
	}
	if (geometry->paged_filters < geometry->filters) {
		geometry->overflow_entries =
			geometry->keys_nominal[geometry->paged_filters] * 5 / 4 + 4;
		geometry->keys_limit[geometry->paged_filters] = geometry->overflow_entries;
	}
}

/*
 * How much rarer false positives should be in a filter than the configured rate. A wasted page read
 * costs the same whichever filter caused it, while lowering a rate costs bits for each key of the
 * filter; the sum of the rates is lowest for a given memory when each rate is proportional to its
 * filter's keys (Lagrange). The factor below keeps the memory that equal rates would take: rate_f =
 * rate * share_f * exp(entropy of the shares).
 */
static void filter_weights(const struct muninn_geometry *geometry,
			   double weights[MUNINN_FILTERS_MAX])
{
	double total = 0, entropy = 0;

	for (uint32_t filter = 0; filter < geometry->filters; filter++)
		total += geometry->keys_nominal[filter];
	for (uint32_t filter = 0; filter < geometry->filters; filter++) {
		weights[filter] = geometry->keys_nominal[filter] / total;
		entropy -= weights[filter] * log(weights[filter]);
	}
	for (uint32_t filter = 0; filter < geometry->filters; filter++)
		weights[filter] *= exp(entropy);
}

void muninn_filter_geometry(const struct muninn_geometry *geometry, uint32_t index,
			    struct filter_geometry *filters)
{
	uint32_t newer =
		index + 1 < geometry->tables_expected ? geometry->tables_expected - 1 - index : 0;
	double rate =
		geometry->fpr_millionths / 1e6 * pow(geometry->fpr_factor_permille / 1e3, newer);
	double weights[MUNINN_FILTERS_MAX];

	filter_weights(geometry, weights);
	filters->filters = geometry->filters;
	filters->bits_total = 0;
	for (uint32_t filter = 0; filter < geometry->filters; filter++) {
		double bits_per_key = -log(fmin(rate * weights[filter], 0.5)) / (M_LN2 * M_LN2);
		uint32_t bits = (uint32_t)ceil(geometry->keys_nominal[filter] * bits_per_key);
		long hashes = lround(bits_per_key * M_LN2);

		filters->hashes[filter] = hashes > FILTER_HASHES_MAX ? FILTER_HASHES_MAX
								     : (uint32_t)hashes;
		filters->bits[filter] = bits < FILTER_BITS_MIN ? FILTER_BITS_MIN : bits;
		filters->offset[filter] = filters->bits_total;
		filters->bits_total += filters->bits[filter];
	}
}

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
		return error_set(
			error, -EINVAL,
			"expected record size of %u bytes: must be 64 to the page size (%u)",
			geometry->record_bytes, geometry->page_bytes);
	if (geometry->fpr_millionths < 1 || geometry->fpr_millionths > 500000)
		return error_set(error, -EINVAL,
				 "false-positive rate of %u millionths: must be 1 to 500000",
				 geometry->fpr_millionths);
	if (geometry->fpr_factor_permille < 1000 || geometry->fpr_factor_permille > 4000)
		return error_set(error, -EINVAL,
				 "false-positive factor of %u permille: must be 1000 to 4000",
				 geometry->fpr_factor_permille);
	if (geometry->filters < 8 || geometry->filters > MUNINN_FILTERS_MAX ||
	    (geometry->paged_filters != geometry->filters &&
	     geometry->paged_filters + 1 != geometry->filters))
		return error_set(error, -EINVAL,
				 "%u filters, %u of them with pages: must be 8 to %d, and all of "
				 "them or all but"
				 " one",
				 geometry->filters, geometry->paged_filters, MUNINN_FILTERS_MAX);
	if (geometry->hot_rows > MUNINN_HOT_ROWS_SPREAD)
		return error_set(
			error, -EINVAL,
			"policy %u for rows with hot keys: must be 0 (finalise) or 1 (spread)",
			(unsigned int)geometry->hot_rows);
	if (geometry->over_provision_permille > 900)
		return error_set(error, -EINVAL,
				 "over-provisioning of %u permille: must be at most 900",
				 geometry->over_provision_permille);
	return 0;
}

/*
 * The ring of roots. Two roots fit, so that there is one while the next is written. Roots are a
 * small part of what is written, and the ring is as large a part of the device, or it would wear
 * out first.
 */
static void size_roots(struct muninn_geometry *geometry)
{
	uint64_t segment_bytes = (uint64_t)geometry->segment_pages * geometry->page_bytes;
	uint64_t aborted = min_u64(MUNINN_ABORTED_MAX * ABORTED_RANGE_BYTES, segment_bytes / 2);

	geometry->root_bytes_max =
		(uint32_t)(ROOT_HEADER_BYTES + ROOT_STATIC_BYTES + aborted +
			   (uint64_t)geometry->directory_entries * geometry->directory_entry_bytes +
			   (uint64_t)geometry->rows * (ROOT_ROW_BYTES + 4 * MUNINN_COLUMNS));
	geometry->root_segments =
		(uint32_t)max_u64(2 * divide_up(geometry->root_bytes_max, segment_bytes),
				  geometry->segments / SEGMENTS_PER_ROOT_SEGMENT);
	geometry->root_kills_max = (geometry->page_bytes - ROOT_HEADER_BYTES) / ROOT_KILL_BYTES;
}

static uint32_t default_rows(uint32_t segments)
{
	uint32_t rows = 1;

	while (rows < ROWS_DEFAULT_MAX && rows * 2 * SEGMENTS_PER_ROW <= segments)
		rows *= 2;
	return rows;
}

static void place_in_nvram(struct muninn_geometry *geometry)
{
	uint64_t directory_bytes;

	directory_bytes = (uint64_t)geometry->directory_entry_bytes * geometry->directory_entries;
	geometry->buffers_at = align_up(NVRAM_DIRECTORY_AT + directory_bytes, NVRAM_PAGE);
	geometry->slot_headers_at =
		align_up(BUFFER_MAP_AT + 2 * geometry->segment_pages, NVRAM_PAGE);
	geometry->slots_at = align_up(
		geometry->slot_headers_at + buffer_slots(geometry) * SLOT_HEADER_BYTES, NVRAM_PAGE);
	geometry->buffer_bytes = align_up(geometry->slots_at + (uint64_t)buffer_slots(geometry) *
								       geometry->page_bytes,
					  NVRAM_PAGE);
	geometry->tables_at = geometry->buffers_at + geometry->buffers * geometry->buffer_bytes;
	geometry->table_bytes = align_up(geometry->image_bytes_max, NVRAM_PAGE);
	geometry->nvram_bytes = geometry->tables_at + geometry->rows * geometry->table_bytes;
}

/*
 * Divides what users do not get among those that need it when they get no more. Removing may put to
 * any row, so it has at least a segment for each, since all may be full; from then on nobody before
 * it fills what was sealed for it (row.c). The others put to history's row alone.
 */
static void size_rooms(struct muninn_geometry *geometry)
{
	uint32_t rows = geometry->rows, *kept = geometry->room_kept;
	uint32_t hidden =
		(uint32_t)((uint64_t)geometry->segments * geometry->over_provision_permille / 1000);
	uint32_t rescue = (uint32_t)max_u64(1, hidden / 8);
	uint32_t back = (uint32_t)max_u64(1, hidden / 4);
	uint32_t others = UPKEEP_SEGMENTS + rescue + back;
	uint32_t removal = (uint32_t)max_u64(rows, hidden > others ? hidden - others : 0);

	kept[RECORD_ROOM_UPKEEP] = geometry->reserve_metadata;
	kept[RECORD_ROOM_RESCUE] = kept[RECORD_ROOM_UPKEEP] + UPKEEP_SEGMENTS;
	kept[RECORD_ROOM_RETURN] = kept[RECORD_ROOM_RESCUE] + rescue;
	kept[RECORD_ROOM_FREE] = kept[RECORD_ROOM_RETURN] + back;
	kept[RECORD_ROOM_WRITE] = kept[RECORD_ROOM_FREE] + removal;
}

/* What follows from the filters. */
static void derive_sizes(struct muninn_geometry *geometry)
{
	struct filter_geometry newest;

	geometry->tables_expected =
		geometry->segments / (geometry->hashed_rows * MUNINN_COLUMNS) + 1;
	muninn_filter_geometry(geometry, geometry->tables_expected, &newest);
	geometry->image_bytes_max =
		table_image_bytes(newest.bits_total, geometry->overflow_entries);
	uint32_t image_pages = (uint32_t)divide_up(geometry->image_bytes_max, geometry->page_bytes);
	geometry->image_segments_max =
		(uint32_t)divide_up(image_pages, geometry->segment_pages) + 1;
	geometry->directory_entry_bytes =
		(uint32_t)align_up(DIRECTORY_SEGMENTS_AT + 4 * geometry->image_segments_max, 16);
	geometry->directory_entries =
		geometry->segments / TABLE_SPARSE_COLUMNS + geometry->rows + 1;
	size_roots(geometry);
	/* Every row's table may become complete before anything else does. */
	geometry->reserve_metadata = (uint32_t)divide_up((uint64_t)geometry->rows * image_pages,
							 geometry->segment_pages) +
				     1;
	size_rooms(geometry);
	geometry->buffers = geometry->rows + 1;
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
		.fpr_millionths = options->fpr_millionths ? options->fpr_millionths : 500,
		.fpr_factor_permille = options->fpr_factor_permille ? options->fpr_factor_permille
								    : 1010,
		.over_provision_permille =
			records->over_provision_permille ? records->over_provision_permille : 100,
		.filters = options->filters ? options->filters : 8,
		.paged_filters = options->paged_filters ? options->paged_filters : 7,
		.even_filters = options->even_filters,
		.hot_rows = options->hot_rows,
		.block_pages = nand->pages_per_block,
		.segment_blocks = segment_pages / nand->pages_per_block,
		.blocks = nand->blocks,
		.segments = nand->blocks / (segment_pages / nand->pages_per_block),
	};
	geometry->hashed_rows = options->rows ? options->rows : default_rows(geometry->segments);
	geometry->rows = geometry->hashed_rows + 1;
	result = check_options(nand, geometry, error);
	if (result)
		return result;
	geometry->places = geometry->paged_filters == geometry->filters ? geometry->filters
									: MUNINN_PLACES_MAX;
	/* Without an overflow map there is nothing to remember them by. */
	if (geometry->hot_rows == MUNINN_HOT_ROWS_SPREAD && geometry->places == MUNINN_PLACES_MAX)
		geometry->places += segment_pages;

	size_filters(geometry);
	derive_sizes(geometry);
	uint32_t least = geometry->root_segments + geometry->room_kept[RECORD_ROOM_WRITE] +
			 geometry->hashed_rows;

	if (geometry->segments < least)
		return error_set(
			error, -EINVAL,
			"%u segments of %u pages are too few for %u rows: at least %u; make the"
			" device larger or the rows fewer",
			geometry->segments, geometry->segment_pages, geometry->hashed_rows, least);
	place_in_nvram(geometry);
	return 0;
}
