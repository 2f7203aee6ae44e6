/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How large filters and overflow maps are, by simulating how a segment is filled. */
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

int index_check(const struct muninn_geometry *geometry, struct error_text *error)
{
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
	return 0;
}

void index_size(struct muninn_geometry *geometry)
{
	geometry->places = geometry->paged_filters == geometry->filters ? geometry->filters
									: MUNINN_PLACES_MAX;
	/* Without an overflow map there is nothing to remember them by. */
	if (geometry->hot_rows == MUNINN_HOT_ROWS_SPREAD && geometry->places == MUNINN_PLACES_MAX)
		geometry->places += geometry->segment_pages;

	size_filters(geometry);
}

uint64_t index_table_bytes_max(const struct muninn_geometry *geometry)
{
	struct filter_geometry newest;

	muninn_filter_geometry(geometry, geometry->tables_expected, &newest);
	return table_image_bytes(newest.bits_total, geometry->overflow_entries);
}

uint32_t index_key_pages_max(const struct muninn_geometry *geometry)
{
	return geometry->places;
}
