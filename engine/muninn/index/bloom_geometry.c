/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Sizes of the Bloom index: its options, and how large filters and overflow maps are, by simulating
 * how a segment is filled.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "engine/muninn/index/bloom.h"

enum {
	RECORDS_PER_PAGE_MAX = 64,
	FILTER_BITS_MIN = 64,
	FILTER_HASHES_MAX = 20,
	PLACEMENT_RUNS = 16,
};

/*
 * Fills a segment with records of equal size as the engine would, until one finds no place, and
 * counts how many each filter took. The averages are what the skewed filters are made for (the
 * paper sizes them the same way). `limits`: keys that a filter takes at most.
 */
static int simulate_placement(const struct muninn_geometry *geometry, uint32_t per_page,
			      const double limits[BLOOM_FILTERS_MAX],
			      double keys[BLOOM_FILTERS_MAX])
{
	uint32_t pages = geometry->segment_pages, paged = geometry->bloom.paged_filters;
	uint32_t functions = (uint32_t)min_u64(geometry->bloom.places, BLOOM_FUNCTIONS);
	uint64_t random = UINT64_C(0x6d756e696e6e);
	uint32_t *used = malloc(pages * sizeof(*used));
	double taken[BLOOM_FILTERS_MAX];

	assert(pages > 0);
	if (!used)
		return -ENOMEM;
	memset(keys, 0, BLOOM_FILTERS_MAX * sizeof(*keys));
	for (uint32_t run = 0; run < PLACEMENT_RUNS; run++) {
		uint32_t place;

		memset(used, 0, pages * sizeof(*used));
		memset(taken, 0, sizeof(taken));
		do {
			struct key_hash hash = { .group = hash_mix(++random) };

			for (place = 0; place < functions; place++) {
				uint32_t page = hash_page(&hash, place, pages, 1);
				uint32_t filter = place < paged ? place : paged;

				if (used[page] < per_page && taken[filter] < limits[filter]) {
					used[page]++;
					taken[filter]++;
					break;
				}
			}
		} while (place < functions);
		for (uint32_t filter = 0; filter < geometry->bloom.filters; filter++)
			keys[filter] += taken[filter] / PLACEMENT_RUNS;
	}
	free(used);
	return 0;
}

static int size_filters(struct muninn_geometry *geometry)
{
	uint32_t per_page = geometry->page_bytes / geometry->record_bytes;
	double limits[BLOOM_FILTERS_MAX], keys[BLOOM_FILTERS_MAX];
	int result;

	per_page = per_page < 1                      ? 1
		   : per_page > RECORDS_PER_PAGE_MAX ? RECORDS_PER_PAGE_MAX
						     : per_page;
	for (uint32_t filter = 0; filter < geometry->bloom.filters; filter++)
		limits[filter] = geometry->bloom.even_filters
					 ? ceil((double)geometry->segment_pages * per_page /
						geometry->bloom.filters)
					 : INFINITY;
	result = simulate_placement(geometry, per_page, limits, keys);
	if (result)
		return result;
	for (uint32_t filter = 0; filter < geometry->bloom.filters; filter++) {
		if (geometry->bloom.even_filters) {
			geometry->bloom.keys_nominal[filter] = geometry->bloom.keys_limit[filter] =
				(uint32_t)limits[filter];
			continue;
		}
		geometry->bloom.keys_nominal[filter] = (uint32_t)ceil(keys[filter]) + 1;
		/*
		 * A quarter more costs a false-positive rate of 0.0025 instead of 0.0005, a quarter
		 * less space.
		 */
		geometry->bloom.keys_limit[filter] =
			geometry->bloom.keys_nominal[filter] * 5 / 4 + 2;
	}
	if (geometry->bloom.paged_filters < geometry->bloom.filters) {
		geometry->bloom.overflow_entries =
			geometry->bloom.keys_nominal[geometry->bloom.paged_filters] * 5 / 4 + 4;
		geometry->bloom.keys_limit[geometry->bloom.paged_filters] =
			geometry->bloom.overflow_entries;
	}
	return 0;
}

/*
 * How much rarer false positives should be in a filter than the configured rate. A wasted page read
 * costs the same whichever filter caused it, while lowering a rate costs bits for each key of the
 * filter; the sum of the rates is lowest for a given memory when each rate is proportional to its
 * filter's keys (Lagrange). The factor below keeps the memory that equal rates would take: rate_f =
 * rate * share_f * exp(entropy of the shares).
 */
static void filter_weights(const struct muninn_geometry *geometry,
			   double weights[BLOOM_FILTERS_MAX])
{
	double total = 0, entropy = 0;

	for (uint32_t filter = 0; filter < geometry->bloom.filters; filter++)
		total += geometry->bloom.keys_nominal[filter];
	for (uint32_t filter = 0; filter < geometry->bloom.filters; filter++) {
		weights[filter] = geometry->bloom.keys_nominal[filter] / total;
		entropy -= weights[filter] * log(weights[filter]);
	}
	for (uint32_t filter = 0; filter < geometry->bloom.filters; filter++)
		weights[filter] *= exp(entropy);
}

void bloom_filter_geometry(const struct muninn_geometry *geometry, uint32_t index,
			   struct filter_geometry *filters)
{
	uint32_t newer = index + 1 < geometry->bloom.tables_expected
				 ? geometry->bloom.tables_expected - 1 - index
				 : 0;
	double rate = geometry->bloom.fpr_millionths / 1e6 *
		      pow(geometry->bloom.fpr_factor_permille / 1e3, newer);
	double weights[BLOOM_FILTERS_MAX];

	filter_weights(geometry, weights);
	filters->filters = geometry->bloom.filters;
	filters->bits_total = 0;
	for (uint32_t filter = 0; filter < geometry->bloom.filters; filter++) {
		double bits_per_key = -log(fmin(rate * weights[filter], 0.5)) / (M_LN2 * M_LN2);
		uint32_t bits = (uint32_t)ceil(geometry->bloom.keys_nominal[filter] * bits_per_key);
		long hashes = lround(bits_per_key * M_LN2);

		filters->hashes[filter] = hashes > FILTER_HASHES_MAX ? FILTER_HASHES_MAX
								     : (uint32_t)hashes;
		filters->bits[filter] = bits < FILTER_BITS_MIN ? FILTER_BITS_MIN : bits;
		filters->offset[filter] = filters->bits_total;
		filters->bits_total += filters->bits[filter];
	}
}

void bloom_largest_filters(const struct muninn_geometry *geometry, struct filter_geometry *filters)
{
	bool is_first = geometry->bloom.fpr_factor_permille < 1000;

	bloom_filter_geometry(geometry, is_first ? 0 : geometry->bloom.tables_expected, filters);
}

static int check(const struct bloom_geometry *bloom, struct error_text *error)
{
	if (bloom->fpr_millionths < 1 || bloom->fpr_millionths > 500000)
		return error_set(error, -EINVAL,
				 "false-positive rate of %u millionths: must be 1 to 500000",
				 bloom->fpr_millionths);
	if (bloom->fpr_factor_permille < BLOOM_FACTOR_MIN || bloom->fpr_factor_permille > 4000)
		return error_set(error, -EINVAL,
				 "false-positive factor of %u permille: must be %d to 4000",
				 bloom->fpr_factor_permille, BLOOM_FACTOR_MIN);
	if (bloom->filters < 8 || bloom->filters > BLOOM_FILTERS_MAX ||
	    (bloom->paged_filters != bloom->filters && bloom->paged_filters + 1 != bloom->filters))
		return error_set(error, -EINVAL,
				 "%u filters, %u of them with pages: must be 8 to %d, and all of "
				 "them or all but one",
				 bloom->filters, bloom->paged_filters, BLOOM_FILTERS_MAX);
	if (bloom->hot_rows > BLOOM_HOT_ROWS_SPREAD)
		return error_set(
			error, -EINVAL,
			"policy %u for rows with hot keys: must be 0 (finalise) or 1 (spread)",
			(unsigned int)bloom->hot_rows);
	return 0;
}

int bloom_choose(const struct muninn_options *options, struct muninn_geometry *geometry,
		 struct error_text *error)
{
	const struct bloom_options *wanted = &options->bloom;
	struct bloom_geometry *bloom = &geometry->bloom;
	int result;

	*bloom = (struct bloom_geometry){
		.fpr_millionths = wanted->fpr_millionths ? wanted->fpr_millionths : 500,
		.fpr_factor_permille = wanted->fpr_factor_permille ? wanted->fpr_factor_permille
								   : 1010,
		.filters = wanted->filters ? wanted->filters : 8,
		.paged_filters = wanted->paged_filters ? wanted->paged_filters : 7,
		.even_filters = wanted->even_filters,
		.hot_rows = wanted->hot_rows,
		.tables_expected =
			geometry->first_segments / (geometry->hashed_rows * GROUP_SEGMENTS) + 1,
	};
	result = check(bloom, error);
	if (result)
		return result;
	bloom->places = bloom->paged_filters == bloom->filters ? bloom->filters : BLOOM_FUNCTIONS;
	/* Without an overflow map there is nothing to remember them by. */
	if (bloom->hot_rows == BLOOM_HOT_ROWS_SPREAD && bloom->places == BLOOM_FUNCTIONS)
		bloom->places += geometry->segment_pages;
	result = size_filters(geometry);
	return result ? error_set(error, result, "out of memory for the geometry of the index") : 0;
}

/* ---- in the static header ---- */

void bloom_put_part(const struct muninn_geometry *geometry, uint8_t part[INDEX_PART_BYTES])
{
	const struct bloom_geometry *bloom = &geometry->bloom;

	memset(part, 0, INDEX_PART_BYTES);
	put_le32(part + BLOOM_FPR_AT, bloom->fpr_millionths);
	put_le32(part + BLOOM_FACTOR_AT, bloom->fpr_factor_permille);
	part[BLOOM_FILTERS_AT] = (uint8_t)bloom->filters;
	part[BLOOM_PAGED_FILTERS_AT] = (uint8_t)bloom->paged_filters;
	part[BLOOM_EVEN_AT] = bloom->even_filters;
	part[BLOOM_HOT_ROWS_AT] = (uint8_t)bloom->hot_rows;
}

int bloom_get_part(const uint8_t part[INDEX_PART_BYTES], struct muninn_options *options,
		   struct error_text *error)
{
	(void)error;
	options->bloom = (struct bloom_options){
		.fpr_millionths = get_le32(part + BLOOM_FPR_AT),
		.fpr_factor_permille = get_le32(part + BLOOM_FACTOR_AT),
		.filters = part[BLOOM_FILTERS_AT],
		.paged_filters = part[BLOOM_PAGED_FILTERS_AT],
		.even_filters = part[BLOOM_EVEN_AT],
		.hot_rows = (enum bloom_hot_rows)part[BLOOM_HOT_ROWS_AT],
	};
	return 0;
}

/* ---- what the store asks ---- */

uint64_t bloom_image_bytes_max(const struct muninn_geometry *geometry)
{
	struct filter_geometry largest;

	bloom_largest_filters(geometry, &largest);
	return table_image_bytes(largest.bits_total, geometry->bloom.overflow_entries);
}

uint32_t bloom_key_pages_max(const struct muninn_geometry *geometry)
{
	return geometry->bloom.places;
}
