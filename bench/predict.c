/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Computes what a store should cost, as expected values of its hash functions and filters. */
#include "bench/predict.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/bytes.h"
#include "engine/muninn/index/bloom_format.h"
#include "engine/muninn/index/ribbon/ribbon_shape.h"
#include "nand/nand.h"

enum { PER_PAGE_MAX = 64, HASHES_MAX = 20, BITS_MIN = 64, TABLE_SEGMENTS = 64 };

/* ---- a segment ---- */

/*
 * Pages by how many records they have, as shares. A record goes to any page with space alike: which
 * function led there says nothing about the page.
 */
struct occupancy {
	double share[PER_PAGE_MAX + 1];
};

static void add_record(struct occupancy *occupancy, const struct predict_shape *shape)
{
	double open = 1 - occupancy->share[shape->per_page], move = 0;

	for (uint32_t n = 0; n < shape->per_page; n++) {
		double from = occupancy->share[n] / open / shape->pages;

		occupancy->share[n] += move - from;
		move = from;
	}
	occupancy->share[shape->per_page] += move;
}

/* How likely the next record goes to each filter; returns how likely it finds no place. */
static double place_next(const struct predict_shape *shape, const double *taken, double full,
			 double *goes)
{
	uint32_t functions = shape->paged == shape->filters ? shape->filters : PREDICT_FUNCTIONS;
	double reaches = 1;

	memset(goes, 0, PREDICT_FILTERS_MAX * sizeof(*goes));
	for (uint32_t function = 0; function < functions; function++) {
		uint32_t filter = function < shape->paged ? function : shape->paged;

		if (taken[filter] >= shape->keys_limit)
			continue;
		goes[filter] += reaches * (1 - full);
		reaches *= full;
	}
	return reaches;
}

void predict_segment(const struct predict_shape *shape, struct predict_segment *segment)
{
	struct occupancy occupancy = { .share = { [0] = 1 } };
	double taken[PREDICT_FILTERS_MAX] = { 0 }, goes[PREDICT_FILTERS_MAX];
	double fits = 1; /* that all records so far have found a place */

	assert(shape->per_page <= PER_PAGE_MAX && shape->filters <= PREDICT_FILTERS_MAX);
	*segment = (struct predict_segment){ 0 };
	for (uint32_t n = 0; n < shape->pages * shape->per_page; n++) {
		double lost = place_next(shape, taken, occupancy.share[shape->per_page], goes);

		if (lost >= 1)
			break;
		fits *= 1 - lost;
		segment->records += fits;
		for (uint32_t filter = 0; filter < shape->filters; filter++) {
			taken[filter] += goes[filter] / (1 - lost);
			segment->keys[filter] += fits * goes[filter] / (1 - lost);
		}
		add_record(&occupancy, shape);
	}
}

/* ---- a filter ---- */

double predict_bits_per_key(double rate)
{
	return -log(rate) / (M_LN2 * M_LN2);
}

/*
 * A key sets each bit with chance 1 - x, and h bits have to be set: the mean of (1 - x^k)^h over
 * the number k of keys, term by term of the binomial.
 */
double predict_rate(double keys, double bits, uint32_t hashes)
{
	double unset = pow(1 - 1 / bits, hashes), binomial = 1, rate = 0;

	for (uint32_t n = 0; n <= hashes; n++) {
		rate += (n % 2 ? -1 : 1) * binomial * exp(-keys * (1 - pow(unset, n)));
		binomial *= (double)(hashes - n) / (n + 1);
	}
	return fmax(rate, 0);
}

/* ---- the Bloom index: a segment in table `table` of its row ---- */

struct column {
	double bytes;       /* of the segment's filters, map and facts */
	double false_reads; /* of a look-up that passes the segment */
};

/* Keys that each filter is made for, and by how much rarer it is wrong than the configured rate. */
struct design {
	double keys[PREDICT_FILTERS_MAX], weights[PREDICT_FILTERS_MAX];
};

/*
 * The sum of the filters' rates is least for a given memory when each is proportional to its
 * filter's keys.
 */
static struct design design_of(const struct prediction *prediction)
{
	const struct predict_shape *shape = &prediction->shape;
	struct design design = { 0 };
	double total = 0, entropy = 0;

	for (uint32_t filter = 0; filter < shape->filters; filter++) {
		design.keys[filter] = isfinite(shape->keys_limit)
					      ? shape->keys_limit
					      : ceil(prediction->segment.keys[filter]) + 1;
		total += design.keys[filter];
	}
	for (uint32_t filter = 0; filter < shape->filters; filter++) {
		design.weights[filter] = design.keys[filter] / total;
		entropy -= design.weights[filter] * log(design.weights[filter]);
	}
	for (uint32_t filter = 0; filter < shape->filters; filter++)
		design.weights[filter] *= exp(entropy);
	return design;
}

static struct column column_of(const struct prediction *prediction, uint32_t table)
{
	const struct predict_shape *shape = &prediction->shape;
	struct design design = design_of(prediction);
	uint32_t newer = prediction->tables_expected > table + 1
				 ? prediction->tables_expected - 1 - table
				 : 0;
	double rate = prediction->rate * pow(prediction->factor, newer);
	struct column column = { .bytes = COLUMN_BYTES };

	for (uint32_t filter = 0; filter < shape->filters; filter++) {
		double per_key = predict_bits_per_key(fmin(rate * design.weights[filter], 0.5));
		double bits = fmax(ceil(design.keys[filter] * per_key), BITS_MIN);
		uint32_t hashes = (uint32_t)fmin(round(per_key * M_LN2), HASHES_MAX);

		column.bytes += bits / 8;
		/* What the last one finds is checked in the map, which is hardly ever wrong. */
		if (filter < shape->paged)
			column.false_reads +=
				predict_rate(prediction->segment.keys[filter], bits, hashes);
	}
	if (shape->paged < shape->filters)
		column.bytes +=
			(floor(design.keys[shape->paged] * 5 / 4) + 4) * OVERFLOW_ENTRY_BYTES;
	return column;
}

/* ---- the ribbon index ---- */

/*
 * Segments of a row that wait for their group. Here they cost nothing: their sections are wrong
 * far more seldom than a group.
 */
#define RIBBON_WAITING ((RIBBON_MEMBERS - 1) / 2.0)

/*
 * A group answers each key: by chance with the right fingerprint, a candidate and a segment that
 * there are.
 */
static double group_false_reads(void)
{
	double fingerprint = (1 + 0.5) / 2 / (1 << RIBBON_FINGERPRINT_BITS);
	double candidate = PLACEMENT_CANDIDATES / (PLACEMENT_CANDIDATES + 1.0);

	return fingerprint * candidate * RIBBON_MEMBERS / (1 << bits_for(RIBBON_MEMBERS));
}

/* Bits of a key: fingerprint, candidate, segment. */
static double group_bytes_per_key(void)
{
	return (RIBBON_FINGERPRINT_BITS + 1 / 2.0 + bits_for(PLACEMENT_CANDIDATES) +
		bits_for(RIBBON_MEMBERS)) /
	       8;
}

/* ---- both ---- */

void predict_begin(struct prediction *prediction, const struct bench_options *options)
{
	uint32_t page_bytes = nand_geometry_default(options->size).page_bytes;
	uint64_t segments = options->size / options->segment_bytes;

	*prediction = (struct prediction){
		.index = options->index,
		.rows = options->rows,
		.tables_expected =
			(uint32_t)(segments / ((uint64_t)options->rows * TABLE_SEGMENTS)) + 1,
		.page_bytes = page_bytes,
		.page_ns = options->timing.page_read_ns,
		.rate = options->fpr_millionths ? options->fpr_millionths / 1e6 : 500 / 1e6,
		.factor = options->fpr_factor_permille ? options->fpr_factor_permille / 1e3 : 1.01,
		.shape = {
			.pages = options->segment_bytes / page_bytes,
			.per_page = page_bytes / options->pair_bytes,
			.filters = options->filters ? options->filters : 8,
			.paged = options->paged_filters ? options->paged_filters : 7,
			.keys_limit = INFINITY,
		},
	};
	if (options->even_filters)
		prediction->shape.keys_limit =
			ceil((double)prediction->shape.pages * prediction->shape.per_page /
			     prediction->shape.filters);
	if (options->index == INDEX_RIBBON)
		/* A record whose candidates are full goes to any page with space. */
		prediction->segment.records =
			(double)prediction->shape.pages * prediction->shape.per_page;
	else
		predict_segment(&prediction->shape, &prediction->segment);
}

double predict_utilization(const struct prediction *prediction)
{
	return prediction->segment.records /
	       ((double)prediction->shape.pages * prediction->shape.per_page);
}

double predict_segments(const struct prediction *prediction, double pairs)
{
	return pairs / prediction->rows / prediction->segment.records;
}

double predict_sealed(const struct prediction *prediction, double pairs)
{
	/* A buffer is half full. */
	return fmax(predict_segments(prediction, pairs) - 0.5, 0);
}

double predict_index_bytes(const struct prediction *prediction, double sealed)
{
	double bytes = 0;

	if (prediction->index == INDEX_RIBBON)
		return NAN;
	/* A table has space for all its segments from the first one on. */
	for (uint32_t table = 0; table * TABLE_SEGMENTS < sealed; table++)
		bytes += column_of(prediction, table).bytes * TABLE_SEGMENTS;
	return bytes * prediction->rows;
}

double predict_page_writes(const struct prediction *prediction, double sealed)
{
	double pages = sealed * prediction->shape.pages;

	if (prediction->index == INDEX_RIBBON)
		pages += fmax(sealed - RIBBON_WAITING, 0) * prediction->segment.records *
			 group_bytes_per_key() / prediction->page_bytes;
	else
		for (uint32_t table = 0; (table + 1) * TABLE_SEGMENTS <= sealed; table++)
			pages += column_of(prediction, table).bytes * TABLE_SEGMENTS /
				 prediction->page_bytes;
	return pages * prediction->rows;
}

/* Of a look-up that passes a segment, the n-th of `sealed` ones of its row. */
static double false_reads(const struct prediction *prediction, double sealed, uint32_t n)
{
	if (prediction->index != INDEX_RIBBON)
		return column_of(prediction, n / TABLE_SEGMENTS).false_reads;
	return n < sealed - RIBBON_WAITING ? group_false_reads() / RIBBON_MEMBERS : 0;
}

/* What is common to `from` .. `to` and `n` .. `end`. */
static double common(double from, double to, double n, double end)
{
	return fmax(fmin(to, end) - fmax(from, n), 0);
}

double predict_reads(const struct prediction *prediction, double sealed, double from, double to)
{
	double newer = 0, reads = 0;

	for (uint32_t n = (uint32_t)ceil(sealed); n-- > 0;) {
		double end = fmin(n + 1, sealed);

		reads += common(from, to, n, end) * (1 + newer);
		newer += (end - n) * false_reads(prediction, sealed, n);
	}
	return reads / (to - from);
}

double predict_absent_reads(const struct prediction *prediction, double sealed)
{
	double reads = 0;

	for (uint32_t n = 0; n < sealed; n++)
		reads += fmin(1, sealed - n) * false_reads(prediction, sealed, n);
	return reads;
}

double predict_per_second(const struct prediction *prediction, double reads)
{
	return 1e9 / (reads * prediction->page_ns);
}

/* ---- a hot key ---- */

double predict_hot_utilization(const struct prediction *prediction, double puts, double share,
			       double versions)
{
	double row = predict_segments(prediction, puts * (1 - share));
	double hot =
		fmax(puts * share / versions, row + puts * share / prediction->segment.records);
	double segments = (prediction->rows - 1) * row + hot;

	return puts / (segments * prediction->shape.pages * prediction->shape.per_page);
}
