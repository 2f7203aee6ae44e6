/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Runs the experiments of the Muninn paper, one store each. */
#include "bench/experiments.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/experiments_history.h"
#include "bench/experiments_merge.h"

const struct experiment_scale experiment_scale_full = {
	.name = "full",
	.description = "50 million pairs of 1 KiB on 64 GiB",
	.pairs = 50000000,
	.bytes = 128 * EXPERIMENT_ROW_BYTES,
	.rows = 128,
	.steps = 10,
	.lookups = 1000000,
	.filter_rows = 2,
	.filter_segments = 402,
	.rate_rows = 2,
	.rate_pairs = 390625,
	.rate_count = 5,
	.factor_count = 4,
	.update_pairs = 10000000,
	.updates = 10000000,
	.update_rows = 128,
	.merge_rows = 2,
	.overlap_pairs = 250000,
	.merge_pairs = 175000,
	.merge_updates = 400000,
	.history_pairs = 200000,
	.history_keys = 64,
};

const struct experiment_scale experiment_scale_quick = {
	.name = "quick",
	.description = "at most 2 million pairs of 1 KiB",
	.pairs = 2000000,
	.bytes = 5 * EXPERIMENT_ROW_BYTES,
	.rows = 4,
	.steps = 4,
	.lookups = 200000,
	.filter_rows = 1,
	.filter_segments = 173, /* as large a part of the last table is in use as with 402 */
	.rate_rows = 1,
	.rate_pairs = 390625,
	.rate_count = 3,
	.factor_count = 3,
	.update_pairs = 250000,
	.updates = 500000,
	.update_rows = 128,
	.merge_rows = 1,
	.overlap_pairs = 250000,
	.merge_pairs = 175000,
	.merge_updates = 60000,
	.history_pairs = 50000,
	.history_keys = 16,
	.note = "fewer pairs and rows, more tables a row",
};

/* ---- findings ---- */

struct paper_figure *experiment_find(struct experiment *experiment, const char *metric,
				     const char *unit, double ours)
{
	struct paper_figure *finding = &experiment->findings[experiment->finding_count++];

	assert(experiment->finding_count <= FINDINGS_MAX);
	*finding = (struct paper_figure){
		.section = experiment->section,
		.metric = metric,
		.unit = unit,
		.paper = NAN,
		.ours = ours,
		.note = experiment->note,
	};
	memcpy(finding->name, experiment->name, sizeof(finding->name));
	return finding;
}

static double per_operation(const struct phase_report *report, uint64_t count)
{
	return (double)count / (double)report->operations;
}

/* For each record in a segment: bytes of the filters. */
static double index_bytes_per_record(const struct phase_report *report)
{
	return (double)report->statistics.index_bytes / (double)report->statistics.sealed_records;
}

/* Runs a phase whose latencies are not wanted. */
static int run_phase(struct bench_store *store, const struct bench_phase *phase, uint32_t number,
		     struct phase_report *report, struct error_text *error)
{
	int result = bench_phase_run(store, phase, number, report, error);

	if (!result)
		phase_report_free(report);
	return result;
}

/* ---- Figure 7: filters of a segment ---- */

/*
 * Inserts until so many segments are sealed. Pairs that are drawn again are absorbed in the
 * buffers.
 */
static int run_filters(struct experiment *experiment, struct bench_store *store,
		       struct error_text *error)
{
	const struct bench_phase phase = { .operation = OPERATION_INSERT,
					   .distribution = experiment->distribution,
					   .operations = experiment->segments * 16 };
	struct phase_report report = { 0 };
	int result = 0;

	for (uint32_t n = 0; !result && report.statistics.segments_sealed < experiment->segments;
	     n++)
		result = run_phase(store, &phase, n, &report, error);
	if (result)
		return result;
	experiment_find(experiment, "segment_utilization", "share",
			phase_utilization(&report, store));
	experiment_find(experiment, "index_bytes_per_key", "bytes",
			index_bytes_per_record(&report));
	return 0;
}

/* ---- Figure 8: initial false-positive rate and its growth ---- */

static int run_rates(struct experiment *experiment, struct bench_store *store,
		     struct error_text *error)
{
	const struct bench_phase insert = { .operation = OPERATION_INSERT,
					    .distribution = DISTRIBUTION_SEQUENTIAL };
	const struct bench_phase lookup = { .operation = OPERATION_LOOKUP,
					    .distribution = DISTRIBUTION_OLDEST,
					    .operations = experiment->operations };
	struct phase_report report;
	int result = run_phase(store, &insert, 0, &report, error);

	if (!result)
		result = run_phase(store, &lookup, 1, &report, error);
	if (result)
		return result;
	experiment_find(experiment, "page_reads_per_lookup", "pages",
			per_operation(&report, report.page_reads));
	experiment_find(experiment, "index_bytes_per_key", "bytes",
			(double)report.statistics.index_bytes / (double)report.live);
	return 0;
}

/* ---- Figure 9 and section 6.3: 50 million pairs ---- */

static int lookup_by_age(struct experiment *experiment, struct bench_store *store,
			 enum distribution distribution, const char *name, double paper_per_second,
			 double paper_reads, struct error_text *error)
{
	const struct bench_phase phase = { .operation = OPERATION_LOOKUP,
					   .distribution = distribution,
					   .operations = experiment->operations };
	struct phase_report report;
	struct paper_figure *finding;
	int result = run_phase(store, &phase, 100 + distribution, &report, error);

	if (result)
		return result;
	finding = experiment_find(experiment, "page_reads_per_lookup", "pages",
				  per_operation(&report, report.page_reads));
	snprintf(finding->name, sizeof(finding->name), "lookup %s", name);
	finding->paper = paper_reads;
	finding = experiment_find(experiment, "false_positive_reads_per_lookup", "pages",
				  per_operation(&report, report.false_positive_reads));
	snprintf(finding->name, sizeof(finding->name), "lookup %s", name);
	finding = experiment_find(experiment, "ops_per_s", "1/s",
				  (double)report.operations / report.seconds);
	snprintf(finding->name, sizeof(finding->name), "lookup %s", name);
	finding->paper = paper_per_second;
	return 0;
}

/* Inserts a part of the pairs, then looks up some of all. */
static int grow(struct experiment *experiment, struct bench_store *store, uint32_t step,
		uint64_t *page_writes, struct phase_report *report, struct error_text *error)
{
	uint64_t pairs = experiment->options.pairs;
	const struct bench_phase insert = { .operation = OPERATION_INSERT,
					    .distribution = DISTRIBUTION_SEQUENTIAL,
					    .operations = pairs * (step + 1) / experiment->steps -
							  pairs * step / experiment->steps };
	const struct bench_phase lookup = { .operation = OPERATION_LOOKUP,
					    .distribution = DISTRIBUTION_RANDOM,
					    .operations = experiment->operations / 4 };
	struct paper_figure *writes, *reads;
	int result = run_phase(store, &insert, 2 * step, report, error);

	if (result)
		return result;
	*page_writes += report->page_writes;
	writes = experiment_find(experiment, "page_writes_per_insert", "pages",
				 per_operation(report, report->page_writes));
	result = run_phase(store, &lookup, 2 * step + 1, report, error);
	if (result)
		return result;
	reads = experiment_find(experiment, "page_reads_per_lookup", "pages",
				per_operation(report, report->page_reads));
	writes->section = reads->section = "Figure 9";
	snprintf(writes->name, sizeof(writes->name), "%llu pairs",
		 (unsigned long long)report->pairs);
	snprintf(reads->name, sizeof(reads->name), "%llu pairs", (unsigned long long)report->pairs);
	return 0;
}

/* The paper has one die, and looks up one pair at a time. */
static int lookup_on_dies(struct experiment *experiment, struct bench_store *store,
			  struct error_text *error)
{
	const struct bench_phase phase = { .operation = OPERATION_LOOKUP,
					   .distribution = DISTRIBUTION_RANDOM,
					   .operations = experiment->operations };
	const struct nand_timing before = store->options.timing;
	struct phase_report report = { 0 };
	struct paper_figure *finding;
	int result;

	store->options.timing.dies_per_channel = 8;
	store->options.depth = 64;
	result = nand_set_timing(store->nand, &store->options.timing, error);
	if (!result)
		result = run_phase(store, &phase, 200, &report, error);
	if (!result) {
		/* Not beside those of one die: a figure shows all of `ops_per_s`. */
		finding = experiment_find(experiment, "ops_per_s_at_once", "1/s",
					  (double)report.operations / report.seconds);
		snprintf(finding->name, sizeof(finding->name), "lookup of 64 at once, 8 dies");
		result = nand_set_timing(store->nand, &before, error);
	}
	store->options.timing = before;
	store->options.depth = 1;
	return result;
}

static int run_operations(struct experiment *experiment, struct bench_store *store,
			  struct error_text *error)
{
	struct phase_report report = { 0 };
	uint64_t page_writes = 0;
	struct paper_figure *finding;
	int result = 0;

	for (uint32_t step = 0; !result && step < experiment->steps; step++)
		result = grow(experiment, store, step, &page_writes, &report, error);
	if (result)
		return result;
	finding = experiment_find(experiment, "page_writes_per_insert", "pages",
				  (double)page_writes / (double)report.live);
	snprintf(finding->name, sizeof(finding->name), "insert");
	finding->paper = 0.26;
	finding = experiment_find(experiment, "segment_utilization", "share",
				  phase_utilization(&report, store));
	snprintf(finding->name, sizeof(finding->name), "insert");
	finding->paper = 0.92;
	finding->note = "paper: 0.92 to 0.941";
	finding = experiment_find(experiment, "index_bytes_per_key", "bytes",
				  (double)report.statistics.index_bytes / (double)report.live);
	snprintf(finding->name, sizeof(finding->name), "insert");
	finding->paper = 2.5;
	finding->note = "paper: 2.14 to 2.5";
	result = lookup_by_age(experiment, store, DISTRIBUTION_NEWEST, "best (newest table)", 69000,
			       NAN, error);
	if (!result)
		result = lookup_by_age(experiment, store, DISTRIBUTION_RANDOM, "average (uniform)",
				       34000, 1.5, error);
	if (!result)
		result = lookup_by_age(experiment, store, DISTRIBUTION_OLDEST,
				       "worst (oldest table)", 20000, NAN, error);
	if (!result)
		result = lookup_on_dies(experiment, store, error);
	return result;
}

/* ---- section 6.4: updates ---- */

static int run_updates(struct experiment *experiment, struct bench_store *store,
		       struct error_text *error)
{
	const struct bench_phase insert = { .operation = OPERATION_INSERT,
					    .distribution = DISTRIBUTION_SEQUENTIAL };
	const struct bench_phase update = { .operation = OPERATION_UPDATE,
					    .distribution = experiment->distribution,
					    .operations = experiment->operations };
	bool history = experiment->options.history;
	struct phase_report report;
	struct paper_figure *finding;
	int result = run_phase(store, &insert, 0, &report, error);

	if (!result)
		result = run_phase(store, &update, 1, &report, error);
	if (result)
		return result;
	finding = experiment_find(experiment, "segment_utilization", "share",
				  phase_utilization_of_phase(&report, store));
	if (experiment->distribution == DISTRIBUTION_PARETO)
		finding->paper = history ? 0.652 : 0.941;
	else
		finding->paper = 0.92;
	experiment_find(experiment, "page_writes_per_update", "pages",
			per_operation(&report, report.page_writes));
	return 0;
}

/* As many puts as there are keys, every one of them kept. */
static int run_basho(struct experiment *experiment, struct bench_store *store,
		     struct error_text *error)
{
	const struct bench_phase put = { .operation = OPERATION_INSERT,
					 .distribution = experiment->distribution };
	struct phase_report report;
	int result = run_phase(store, &put, 0, &report, error);

	if (result)
		return result;
	experiment_find(experiment, "segment_utilization", "share",
			phase_utilization(&report, store))
		->paper = 0.652;
	experiment_find(experiment, "index_bytes_per_version", "bytes",
			index_bytes_per_record(&report))
		->paper = 3.1;
	experiment_find(experiment, "page_writes_per_put", "pages",
			per_operation(&report, report.page_writes));
	return 0;
}

/* ---- the list ---- */

struct experiment *experiment_add(struct experiment_list *list, const char *section, uint64_t seed)
{
	struct experiment *experiment = &list->experiments[list->count++];

	assert(list->count <= EXPERIMENTS_MAX);
	*experiment = (struct experiment){ .section = section, .options = bench_options_default() };
	experiment->options.index = INDEX_BLOOM; /* the paper's */
	experiment->options.seed = seed;
	experiment->options.nand = BENCH_NAND_HEADERS;
	return experiment;
}

static void list_filters(struct experiment_list *list, const struct experiment_scale *scale,
			 uint64_t seed)
{
	static const char *const filters[] = { "S8/8", "S8/7", "S16/16", "S16/15",
					       "N8/8", "N8/7", "N16/16", "N16/15" };
	static const enum distribution distributions[] = { DISTRIBUTION_SEQUENTIAL,
							   DISTRIBUTION_RANDOM,
							   DISTRIBUTION_PARETO };

	for (size_t f = 0; f < sizeof(filters) / sizeof(filters[0]); f++) {
		for (size_t d = 0; d < sizeof(distributions) / sizeof(distributions[0]); d++) {
			struct experiment *experiment = experiment_add(list, "Figure 7", seed);

			experiment->run = run_filters;
			experiment->distribution = distributions[d];
			experiment->segments = scale->filter_rows * scale->filter_segments;
			experiment->options.rows = scale->filter_rows;
			experiment->options.size = scale->filter_rows * EXPERIMENT_ROW_BYTES;
			/* Each row has two more segments in its buffers. */
			experiment->options.pairs =
				scale->filter_rows * (scale->filter_segments + 2) * 1100;
			experiment->options.history = false;
			if (bench_filters_parse(&experiment->options, filters[f], NULL))
				assert(!"filters that exist");
			experiment->note = "fewer rows; per stored record";
			snprintf(experiment->name, sizeof(experiment->name), "%s %s", filters[f],
				 distribution_name(distributions[d]));
		}
	}
}

static void list_rates(struct experiment_list *list, const struct experiment_scale *scale,
		       uint64_t seed)
{
	/* In order of importance: a scale takes the first ones. */
	static const uint32_t rates[] = { 100, 500, 2000, 200, 1000 };
	static const uint32_t factors[] = { 1000, 1010, 1100, 1050 };

	for (uint32_t r = 0; r < scale->rate_count; r++) {
		for (uint32_t f = 0; f < scale->factor_count; f++) {
			struct experiment *experiment = experiment_add(list, "Figure 8", seed);

			experiment->run = run_rates;
			experiment->operations = scale->lookups / 4;
			experiment->options.rows = scale->rate_rows;
			experiment->options.size = scale->rate_rows * EXPERIMENT_ROW_BYTES;
			experiment->options.pairs = scale->rate_rows * scale->rate_pairs;
			experiment->options.fpr_millionths = rates[r];
			experiment->options.fpr_factor_permille = factors[f];
			experiment->note = "fewer rows, as many tables a row";
			snprintf(experiment->name, sizeof(experiment->name), "%g x %g",
				 rates[r] / 1e6, factors[f] / 1e3);
		}
	}
}

static void list_updates(struct experiment_list *list, const struct experiment_scale *scale,
			 uint64_t seed)
{
	static const enum distribution distributions[] = { DISTRIBUTION_PARETO,
							   DISTRIBUTION_RANDOM };

	for (size_t d = 0; d < sizeof(distributions) / sizeof(distributions[0]); d++) {
		for (int history = 0; history < 2; history++) {
			struct experiment *experiment = experiment_add(list, "6.4", seed);

			experiment->run = run_updates;
			experiment->has_second = true;
			experiment->distribution = distributions[d];
			experiment->operations = scale->updates;
			experiment->options.rows = scale->update_rows;
			experiment->options.size = scale->update_rows * EXPERIMENT_ROW_BYTES;
			experiment->options.pairs = scale->update_pairs;
			experiment->options.history = history;
			experiment->note =
				distributions[d] == DISTRIBUTION_PARETO
					? "fewer pairs; the paper's pareto shape is unknown"
					: "fewer pairs";
			snprintf(experiment->name, sizeof(experiment->name), "%s updates, %s",
				 distribution_name(distributions[d]),
				 history ? "all kept" : "overwrites absorbed");
		}
	}
}

/*
 * The load of section 6.4 as basho_bench generates it. A device of twice the size, because the key
 * that a truncated generator writes most often fills its row's segments badly.
 */
static void list_basho(struct experiment_list *list, const struct experiment_scale *scale,
		       uint64_t seed)
{
	static const struct {
		enum distribution distribution;
		enum bloom_hot_rows hot_rows;
		const char *hot;
	} cases[] = { { DISTRIBUTION_BASHO, BLOOM_HOT_ROWS_FINALISE, "" },
		      { DISTRIBUTION_BASHO_TRUNCATED, BLOOM_HOT_ROWS_FINALISE, "" },
		      { DISTRIBUTION_BASHO_TRUNCATED, BLOOM_HOT_ROWS_SPREAD, ", spread" } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct experiment *experiment = experiment_add(list, "6.4", seed);

		experiment->run = run_basho;
		/* There is only one way to treat hot keys. */
		experiment->has_second = cases[i].hot_rows == BLOOM_HOT_ROWS_FINALISE;
		experiment->distribution = cases[i].distribution;
		experiment->options.rows = scale->update_rows;
		experiment->options.size = 2 * scale->update_rows * EXPERIMENT_ROW_BYTES;
		experiment->options.pairs = scale->pairs;
		experiment->options.hot_rows = cases[i].hot_rows;
		experiment->note = scale->note ? "fewer puts" : NULL;
		snprintf(experiment->name, sizeof(experiment->name), "%s puts, all kept%s",
			 distribution_name(cases[i].distribution), cases[i].hot);
	}
}

void experiments_list(struct experiment_list *list, const struct experiment_scale *scale,
		      uint64_t seed)
{
	struct experiment *operations;

	list->count = 0;
	list_filters(list, scale, seed);
	list_rates(list, scale, seed);
	operations = experiment_add(list, "6.3", seed);
	operations->run = run_operations;
	operations->has_second = true;
	operations->operations = scale->lookups;
	operations->steps = scale->steps;
	operations->options.pairs = scale->pairs;
	operations->options.size = scale->bytes;
	operations->options.rows = scale->rows;
	operations->note = scale->note;
	snprintf(operations->name, sizeof(operations->name), "%llu pairs",
		 (unsigned long long)scale->pairs);
	list_updates(list, scale, seed);
	list_basho(list, scale, seed);
	experiments_list_merge(list, scale, seed);
	experiments_list_history(list, scale, seed);
}

void experiments_add_ribbon(struct experiment_list *list)
{
	uint32_t count = list->count;

	for (uint32_t n = 0; n < count; n++) {
		struct experiment *first = &list->experiments[n];
		struct experiment *second = &list->experiments[list->count];

		if (!first->has_second)
			continue;
		assert(list->count < EXPERIMENTS_MAX);
		*second = *first;
		second->options.index = INDEX_RIBBON;
		second->has_second = false;
		first->second = second;
		list->count++;
	}
}

void experiment_run(struct experiment *experiment)
{
	struct timespec begun, ended;
	struct bench_store *store = NULL;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	experiment->result = bench_store_open(&store, &experiment->options, &experiment->error);
	if (!experiment->result)
		experiment->result = experiment->run(experiment, store, &experiment->error);
	bench_store_close(store);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	experiment->seconds = (double)(ended.tv_sec - begun.tv_sec) +
			      (double)(ended.tv_nsec - begun.tv_nsec) / 1e9;
}
