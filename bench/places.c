/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Simulates how records are placed in the segments of each row, and when these are sealed. */
#include "bench/places.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

/* Twice as many as a segment has records. */
enum { SLOTS = 2 * PLACES_PAGES_MAX * PLACES_PER_PAGE_MAX };

/* A key that is in the segment, and the last place that has it. */
struct slot {
	uint64_t key;
	uint32_t segment; /* in which it counts */
	uint16_t place, versions;
};

struct row {
	uint32_t segment, records;
	uint8_t used[PLACES_PAGES_MAX]; /* records of each page */
	struct slot slots[SLOTS];
};

uint32_t places_versions(const struct places_options *options)
{
	return options->paged * options->paged_versions +
	       (options->places - options->paged) * options->further_versions;
}

static uint32_t page_at(const struct places_options *options, uint64_t key, uint32_t place)
{
	return (uint32_t)random_mix(key + (place + 1) * RANDOM_STEP) & (options->pages - 1);
}

/* Each page stands for one place of a key: the first one that gives it. */
static bool is_own_page(const struct places_options *options, uint64_t key, uint32_t place)
{
	for (uint32_t earlier = 0; earlier < place; earlier++)
		if (page_at(options, key, earlier) == page_at(options, key, place))
			return false;
	return true;
}

/* The slot of a key, which may be free: then it has no versions. */
static struct slot *slot_of(struct row *row, uint64_t key)
{
	for (uint32_t at = (uint32_t)(key >> 32);; at++) {
		struct slot *slot = &row->slots[at & (SLOTS - 1)];

		if (slot->segment != row->segment)
			*slot = (struct slot){ .key = key, .segment = row->segment };
		if (slot->key == key)
			return slot;
	}
}

/* False: the segment has no place left for the key. */
static bool put(const struct places_options *options, struct row *row, uint64_t key)
{
	struct slot *slot = slot_of(row, key);

	for (uint32_t place = slot->place; place < options->places; place++) {
		uint32_t page = page_at(options, key, place);
		uint32_t most = place < options->paged ? options->paged_versions
						       : options->further_versions;
		uint32_t versions = place == slot->place ? slot->versions : 0;

		if (row->used[page] == options->per_page || versions == most ||
		    !is_own_page(options, key, place))
			continue;
		slot->place = (uint16_t)place;
		slot->versions = (uint16_t)(versions + 1);
		row->used[page]++;
		row->records++;
		return true;
	}
	return false;
}

static void seal(struct row *row, struct places_report *report, uint64_t *records)
{
	*records += row->records;
	report->segments++;
	row->segment++;
	row->records = 0;
	memset(row->used, 0, sizeof(row->used));
}

int places_simulate(const struct places_options *options, struct places_report *report)
{
	const struct sampler_options drawn = { .pairs = options->pairs,
					       .seed = options->seed,
					       .pareto_shape = PARETO_SHAPE_DEFAULT,
					       .zipfian_theta = ZIPFIAN_THETA_DEFAULT };
	struct random_state random = random_stream(options->seed, 0);
	struct row *rows = calloc(options->rows, sizeof(*rows));
	struct sampler sampler;
	uint64_t records = 0;

	assert(options->pages <= PLACES_PAGES_MAX && options->per_page <= PLACES_PER_PAGE_MAX);
	*report = (struct places_report){ 0 };
	if (!rows)
		return -ENOMEM;
	for (uint32_t n = 0; n < options->rows; n++)
		rows[n].segment = 1;
	sampler_begin(&sampler, options->distribution, &drawn);
	for (uint64_t n = 0; n < options->puts; n++) {
		uint64_t pair = sampler_pair(&sampler, &random, n);
		uint64_t key = random_mix(pair + random_mix(options->seed + 2));
		struct row *row = &rows[key & (options->rows - 1)];

		if (put(options, row, key))
			continue;
		seal(row, report, &records);
		put(options, row, key);
	}
	free(rows);
	report->utilization = report->segments
				      ? (double)records / ((double)report->segments *
							   options->pages * options->per_page)
				      : NAN;
	return 0;
}
