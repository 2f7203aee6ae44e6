/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Figure 10 and section 6.5: what the filters of internal versions tell of the live data in them,
 * and what merging costs when filters or samples find the segments.
 */
#include "bench/experiments_merge.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/random.h"
#include "engine/muninn/index/bloom.h"
#include "engine/muninn/store.h"

enum { VERSIONS_MAX = 12 };

/* Of an internal version, over all rows. */
struct version_facts {
	uint64_t set, common; /* bits of its filters, for each newer table; those that are set there
				 too */
	uint64_t records, live;  /* records in it; those that are the newest of their pair */
	double live_by_estimate; /* sum over its segments' records */
};

/* ---- Figure 10 ---- */

/*
 * Inserts all pairs, then puts them again in random order, all of the oldest and none of the
 * newest. So internal versions hold anything between nothing and only live data.
 */
static int fill(struct experiment *experiment, struct bench_store *store, struct error_text *error)
{
	const struct bench_phase insert = { .operation = OPERATION_INSERT,
					    .distribution = DISTRIBUTION_SEQUENTIAL };
	uint64_t pairs = experiment->options.pairs, seed = experiment->options.seed;
	struct permutation order = permutation_make(pairs, random_mix(seed + 10));
	struct phase_report report;
	int result = bench_phase_run(store, &insert, 0, &report, error);

	if (result)
		return result;
	phase_report_free(&report);
	for (uint64_t n = 0; !result && n < pairs; n++) {
		struct random_state random = random_stream(seed, n);
		uint64_t pair = permutation_at(&order, n);

		if (random_unit(&random) * (double)pairs > (double)pair)
			result = bench_store_put(store, pair, false);
		if (result)
			bench_store_explain(store, result, "update", pair, error);
	}
	return result;
}

/* Adds a row's bits and records to the internal versions. */
static void look_at_row(const struct muninn_store *store, const struct bloom_row *row,
			uint32_t tables, struct version_facts versions[VERSIONS_MAX])
{
	for (uint32_t n = 0; n < row->complete_count && n / tables < VERSIONS_MAX; n++) {
		struct version_facts *facts = &versions[n / tables];
		uint32_t newer = (n / tables + 1) * tables;
		uint32_t live_permille[GROUP_SEGMENTS];

		for (; newer < row->complete_count; newer++)
			overlap_count_bits(&row->complete[n], &row->complete[newer], &facts->set,
					   &facts->common);
		overlap_count_bits(&row->complete[n], &row->growing, &facts->set, &facts->common);
		overlap_estimate(&store->geometry, &row->complete[n], row->complete_count - n,
				 &row->growing, live_permille);
		for (uint32_t column = 0; column < GROUP_SEGMENTS; column++) {
			struct sealed_segment segment;

			table_read_column(&row->complete[n], column, &segment);
			facts->records += segment.records;
			facts->live_by_estimate += live_permille[column] / 1e3 * segment.records;
		}
	}
}

/*
 * The internal version that a record is in, by its number: a row's segments follow each other.
 * VERSIONS_MAX: in none.
 */
static uint32_t version_of(const struct bloom_row *row, uint32_t tables, uint64_t sequence)
{
	for (uint32_t n = 0; n < row->complete_count; n++) {
		struct sealed_segment last;

		table_read_column(&row->complete[n], GROUP_SEGMENTS - 1, &last);
		if (sequence <= last.last_sequence)
			return n / tables < VERSIONS_MAX ? n / tables : VERSIONS_MAX;
	}
	return VERSIONS_MAX;
}

static void count_live(const struct bench_store *bench, uint32_t tables,
		       struct version_facts versions[VERSIONS_MAX])
{
	const struct muninn_store *store = (const void *)bench->records;

	for (uint64_t pair = 0; pair < bench->inserted; pair++) {
		struct record_key key = bench_store_key(bench, pair);
		struct key_hash hash = key_hash(&key, store->geometry.segment_pages);
		uint32_t number = hash_row(&hash, store->geometry.hashed_rows);
		uint32_t version = version_of(bloom_row_in(store->rows[number].index), tables,
					      bench->expected[pair]);

		if (version < VERSIONS_MAX)
			versions[version].live++;
	}
}

static void report_version(struct experiment *experiment, uint32_t number,
			   const struct version_facts *facts)
{
	const struct {
		const char *metric;
		double ours;
	} findings[] = {
		{ "common_bits_share", (double)facts->common / (double)facts->set },
		{ "live_share", (double)facts->live / (double)facts->records },
		{ "live_share_estimated", facts->live_by_estimate / (double)facts->records },
	};

	for (size_t i = 0; i < sizeof(findings) / sizeof(findings[0]); i++) {
		struct paper_figure *finding =
			experiment_find(experiment, findings[i].metric, "share", findings[i].ours);

		snprintf(finding->name, sizeof(finding->name), "%.20s, version %u",
			 experiment->name, number);
	}
}

static int run_overlap(struct experiment *experiment, struct bench_store *bench,
		       struct error_text *error)
{
	const struct muninn_store *store = (const void *)bench->records;
	uint32_t tables = experiment->options.internal_version_tables;
	struct version_facts versions[VERSIONS_MAX] = { 0 };
	int result = fill(experiment, bench, error);

	if (result)
		return result;
	for (uint32_t row = 0; row < store->geometry.rows; row++)
		look_at_row(store, bloom_row_in(store->rows[row].index), tables, versions);
	count_live(bench, tables, versions);
	for (uint32_t number = 0; number < VERSIONS_MAX && versions[number].records; number++)
		report_version(experiment, number, &versions[number]);
	return 0;
}

/* ---- section 6.5 ---- */

static int run_merging(struct experiment *experiment, struct bench_store *store,
		       struct error_text *error)
{
	const struct bench_phase insert = { .operation = OPERATION_INSERT,
					    .distribution = DISTRIBUTION_SEQUENTIAL };
	const struct bench_phase update = { .operation = OPERATION_UPDATE,
					    .distribution = experiment->distribution,
					    .operations = experiment->operations };
	struct phase_report report;
	int result = bench_phase_run(store, &insert, 0, &report, error);

	if (result)
		return result;
	phase_report_free(&report);
	result = bench_phase_run(store, &update, 1, &report, error);
	if (result)
		return result;
	double freed = fmax(1, (double)report.merge.segments_freed);

	experiment_find(experiment, "page_reads_per_freed_segment", "pages",
			(double)report.merge.page_reads / freed);
	experiment_find(experiment, "live_share_moved", "share",
			(double)report.merge.bytes_moved / freed / store->options.segment_bytes);
	experiment_find(experiment, "page_writes_per_update", "pages",
			(double)report.page_writes / (double)report.operations);
	experiment_find(experiment, "p999_update", "us",
			latencies_percentile(report.latencies, 0.999) / 1e3);
	phase_report_free(&report);
	return 0;
}

/* ---- the list ---- */

static void list_overlaps(struct experiment_list *list, const struct experiment_scale *scale,
			  uint64_t seed)
{
	static const uint32_t tables[] = { 1, 2 };

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		struct experiment *experiment = experiment_add(list, "Figure 10", seed);

		experiment->run = run_overlap;
		experiment->options.rows = scale->merge_rows;
		experiment->options.size = scale->merge_rows * EXPERIMENT_ROW_BYTES;
		experiment->options.pairs = scale->merge_rows * scale->overlap_pairs;
		experiment->options.internal_version_tables = tables[i];
		experiment->note = "fewer rows; bits of each newer table";
		snprintf(experiment->name, sizeof(experiment->name), "%u table%s", tables[i],
			 tables[i] == 1 ? "" : "s");
	}
}

static void list_merging(struct experiment_list *list, const struct experiment_scale *scale,
			 uint64_t seed)
{
	static const enum distribution distributions[] = { DISTRIBUTION_RANDOM,
							   DISTRIBUTION_PARETO };
	static const enum bench_merge choices[] = { BENCH_MERGE_SAMPLED, BENCH_MERGE_FILTERS };

	for (size_t d = 0;
	     scale->merge_pairs && d < sizeof(distributions) / sizeof(distributions[0]); d++) {
		for (size_t c = 0; c < sizeof(choices) / sizeof(choices[0]); c++) {
			struct experiment *experiment = experiment_add(list, "6.5", seed);

			experiment->run = run_merging;
			experiment->distribution = distributions[d];
			experiment->operations = scale->merge_rows * scale->merge_updates;
			experiment->options.rows = scale->merge_rows;
			/* Of pairs of a KiB. */
			experiment->options.size =
				scale->merge_rows * scale->merge_pairs * 1024 / 57 * 100;
			experiment->options.pairs = scale->merge_rows * scale->merge_pairs;
			experiment->options.merge = choices[c];
			experiment->note = "a device that is 57 % live; fewer rows";
			snprintf(experiment->name, sizeof(experiment->name), "%s updates, by %s",
				 distribution_name(distributions[d]),
				 choices[c] == BENCH_MERGE_FILTERS ? "filters" : "samples");
		}
	}
}

void experiments_list_merge(struct experiment_list *list, const struct experiment_scale *scale,
			    uint64_t seed)
{
	list_overlaps(list, scale, seed);
	list_merging(list, scale, seed);
}
