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
#include "bench/experiments_places.h"
#include "bench/predict.h"

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
		.predicted = NAN,
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

/* The same, as it should be. */
static double predicted_bytes_per_record(const struct prediction *predicted, double sealed)
{
	return predict_index_bytes(predicted, sealed) /
	       (sealed * predicted->rows * predicted->segment.records);
}

/* Page reads of a look-up of the `from`-th to the `to`-th of so many pairs. */
static double predicted_reads(const struct prediction *predicted, uint64_t pairs, uint64_t from,
			      uint64_t to)
{
	return predict_reads(predicted, predict_sealed(predicted, (double)pairs),
			     predict_segments(predicted, (double)from),
			     predict_segments(predicted, (double)to));
}

/* Page writes of putting so many pairs behind those that are there. */
static double predicted_writes(const struct prediction *predicted, uint64_t pairs, uint64_t more)
{
	double before = predict_sealed(predicted, (double)pairs);
	double after = predict_sealed(predicted, (double)(pairs + more));

	return (predict_page_writes(predicted, after) - predict_page_writes(predicted, before)) /
	       (double)more;
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
	struct prediction predicted;
	struct paper_figure *finding;
	int result = 0;

	for (uint32_t n = 0; !result && report.statistics.segments_sealed < experiment->segments;
	     n++)
		result = run_phase(store, &phase, n, &report, error);
	if (result)
		return result;
	finding = experiment_find(experiment, "segment_utilization", "share",
				  phase_utilization(&report, store));
	predict_begin(&predicted, &experiment->options);
	finding->predicted = predict_utilization(&predicted);
	finding = experiment_find(experiment, "index_bytes_per_key", "bytes",
				  index_bytes_per_record(&report));
	finding->predicted = predicted_bytes_per_record(&predicted, (double)experiment->segments /
									    predicted.rows);
	return 0;
}

static struct paper_figure *find_index_bytes(struct experiment *experiment,
					     const struct phase_report *report,
					     const struct prediction *predicted)
{
	double pairs = (double)report->live;
	struct paper_figure *finding =
		experiment_find(experiment, "index_bytes_per_key", "bytes",
				(double)report->statistics.index_bytes / pairs);

	finding->predicted =
		predict_index_bytes(predicted, predict_sealed(predicted, pairs)) / pairs;
	return finding;
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
	struct prediction predicted;
	int result = run_phase(store, &insert, 0, &report, error);

	if (!result)
		result = run_phase(store, &lookup, 1, &report, error);
	if (result)
		return result;
	predict_begin(&predicted, &experiment->options);
	experiment_find(experiment, "page_reads_per_lookup", "pages",
			per_operation(&report, report.page_reads))
		->predicted = predicted_reads(&predicted, report.pairs, 0, report.window);
	find_index_bytes(experiment, &report, &predicted);
	return 0;
}

/* ---- Figure 9 and section 6.3: 50 million pairs ---- */

/* Look-ups of pairs of one age, and what the paper has. */
struct lookup_case {
	enum distribution distribution;
	const char *name;
	double paper_reads, paper_per_second;
};

/*
 * If it is wanted: how many operations of a phase are done in a second when what the store takes of
 * a processor counts, too. Unlike everything else that is measured, so it is not the same in two
 * runs.
 */
static int find_with_processor(struct experiment *experiment, struct bench_store *store,
			       const struct bench_phase *phase, uint32_t number, const char *metric,
			       struct error_text *error)
{
	struct phase_report report = { 0 };
	int result;

	if (!experiment->adds_processor)
		return 0;
	store->options.adds_processor = true;
	result = run_phase(store, phase, number, &report, error);
	store->options.adds_processor = false;
	if (!result)
		experiment_find(experiment, metric, "1/s",
				(double)report.operations / report.seconds);
	return result;
}

static int lookup_by_age(struct experiment *experiment, struct bench_store *store,
			 const struct prediction *predicted, const struct lookup_case *lookup,
			 struct error_text *error)
{
	const struct bench_phase phase = { .operation = OPERATION_LOOKUP,
					   .distribution = lookup->distribution,
					   .operations = experiment->operations };
	uint32_t first = experiment->finding_count;
	double reads;
	struct phase_report report;
	struct paper_figure *finding;
	int result = run_phase(store, &phase, 100 + lookup->distribution, &report, error);

	if (result)
		return result;
	reads = lookup->distribution == DISTRIBUTION_NEWEST
			? predicted_reads(predicted, report.pairs, report.pairs - report.window,
					  report.pairs)
			: predicted_reads(predicted, report.pairs, 0,
					  report.window ? report.window : report.pairs);
	finding = experiment_find(experiment, "page_reads_per_lookup", "pages",
				  per_operation(&report, report.page_reads));
	finding->paper = lookup->paper_reads;
	finding->predicted = reads;
	experiment_find(experiment, "false_positive_reads_per_lookup", "pages",
			per_operation(&report, report.false_positive_reads));
	finding = experiment_find(experiment, "ops_per_s", "1/s",
				  (double)report.operations / report.seconds);
	finding->paper = lookup->paper_per_second;
	finding->predicted = predict_per_second(predicted, reads);
	result = find_with_processor(experiment, store, &phase, 100 + lookup->distribution,
				     "ops_per_s_with_processor", error);
	for (uint32_t n = first; n < experiment->finding_count; n++)
		snprintf(experiment->findings[n].name, sizeof(experiment->findings[n].name),
			 "lookup %s", lookup->name);
	return result;
}

/* Inserts a part of the pairs, then looks up some of all. */
static int grow(struct experiment *experiment, struct bench_store *store,
		const struct prediction *predicted, uint32_t step, uint64_t *page_writes,
		struct phase_report *report, struct error_text *error)
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
	writes->predicted =
		predicted_writes(predicted, report->pairs - report->operations, report->operations);
	result = run_phase(store, &lookup, 2 * step + 1, report, error);
	if (result)
		return result;
	reads = experiment_find(experiment, "page_reads_per_lookup", "pages",
				per_operation(report, report->page_reads));
	reads->predicted = predicted_reads(predicted, report->pairs, 0, report->pairs);
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
	uint32_t first = experiment->finding_count;
	struct phase_report report = { 0 };
	int result;

	store->options.timing.dies_per_channel = 8;
	store->options.depth = 64;
	result = nand_set_timing(store->nand, &store->options.timing, error);
	if (!result)
		result = run_phase(store, &phase, 200, &report, error);
	if (!result) {
		/* Not beside those of one die: a figure shows all of `ops_per_s`. */
		experiment_find(experiment, "ops_per_s_at_once", "1/s",
				(double)report.operations / report.seconds);
		result = find_with_processor(experiment, store, &phase, 200,
					     "ops_per_s_at_once_with_processor", error);
	}
	for (uint32_t n = first; n < experiment->finding_count; n++)
		snprintf(experiment->findings[n].name, sizeof(experiment->findings[n].name),
			 "lookup of 64 at once, 8 dies");
	if (!result)
		result = nand_set_timing(store->nand, &before, error);
	store->options.timing = before;
	store->options.depth = 1;
	return result;
}

static void find_inserts(struct experiment *experiment, const struct bench_store *store,
			 const struct prediction *predicted, const struct phase_report *report,
			 uint64_t page_writes)
{
	uint32_t first = experiment->finding_count;
	struct paper_figure *finding = experiment_find(experiment, "page_writes_per_insert",
						       "pages",
						       (double)page_writes / (double)report->live);

	finding->paper = 0.26;
	finding->predicted = predicted_writes(predicted, 0, report->live);
	finding = experiment_find(experiment, "segment_utilization", "share",
				  phase_utilization(report, store));
	finding->paper = 0.92;
	finding->predicted = predict_utilization(predicted);
	finding->note = "paper: 0.92 to 0.941";
	finding = find_index_bytes(experiment, report, predicted);
	finding->paper = 2.5;
	finding->note = "paper: 2.14 to 2.5";
	for (uint32_t n = first; n < experiment->finding_count; n++)
		snprintf(experiment->findings[n].name, sizeof(experiment->findings[n].name),
			 "insert");
}

static int run_operations(struct experiment *experiment, struct bench_store *store,
			  struct error_text *error)
{
	static const struct lookup_case lookups[] = {
		{ DISTRIBUTION_NEWEST, "best (newest table)", NAN, 69000 },
		{ DISTRIBUTION_RANDOM, "average (uniform)", 1.5, 34000 },
		{ DISTRIBUTION_OLDEST, "worst (oldest table)", NAN, 20000 },
	};
	struct phase_report report = { 0 };
	struct prediction predicted;
	uint64_t page_writes = 0;
	int result = 0;

	predict_begin(&predicted, &experiment->options);
	for (uint32_t step = 0; !result && step < experiment->steps; step++)
		result = grow(experiment, store, &predicted, step, &page_writes, &report, error);
	if (result)
		return result;
	find_inserts(experiment, store, &predicted, &report, page_writes);
	for (size_t n = 0; !result && n < sizeof(lookups) / sizeof(lookups[0]); n++)
		result = lookup_by_age(experiment, store, &predicted, &lookups[n], error);
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
	bool random = experiment->distribution == DISTRIBUTION_RANDOM;
	struct phase_report report;
	struct prediction predicted;
	struct paper_figure *finding;
	int result = run_phase(store, &insert, 0, &report, error);

	if (!result)
		result = run_phase(store, &update, 1, &report, error);
	if (result)
		return result;
	predict_begin(&predicted, &experiment->options);
	finding = experiment_find(experiment, "segment_utilization", "share",
				  phase_utilization_of_phase(&report, store));
	finding->paper = random ? 0.92 : history ? 0.652 : 0.941;
	/* The equations know no hot keys but one, and no overwrites in a buffer. */
	if (random || predicted.index == INDEX_RIBBON)
		finding->predicted = predict_utilization(&predicted);
	finding = experiment_find(experiment, "page_writes_per_update", "pages",
				  per_operation(&report, report.page_writes));
	if (history && (random || predicted.index == INDEX_RIBBON))
		finding->predicted = predicted_writes(&predicted, report.pairs, report.operations);
	return 0;
}

/* Does one key end segments before they are full? */
static bool has_hot_key(const struct experiment *experiment)
{
	return experiment->distribution == DISTRIBUTION_BASHO_TRUNCATED &&
	       experiment->options.index == INDEX_BLOOM &&
	       experiment->options.hot_rows == BLOOM_HOT_ROWS_FINALISE;
}

/* As many puts as there are keys, every one of them kept. */
static int run_basho(struct experiment *experiment, struct bench_store *store,
		     struct error_text *error)
{
	const struct bench_phase put = { .operation = OPERATION_INSERT,
					 .distribution = experiment->distribution };
	struct phase_report report;
	struct prediction predicted;
	struct paper_figure *utilization, *bytes, *writes;
	int result = run_phase(store, &put, 0, &report, error);

	if (result)
		return result;
	utilization = experiment_find(experiment, "segment_utilization", "share",
				      phase_utilization(&report, store));
	utilization->paper = 0.652;
	bytes = experiment_find(experiment, "index_bytes_per_version", "bytes",
				index_bytes_per_record(&report));
	bytes->paper = 3.1;
	writes = experiment_find(experiment, "page_writes_per_put", "pages",
				 per_operation(&report, report.page_writes));
	predict_begin(&predicted, &experiment->options);
	if (has_hot_key(experiment)) {
		utilization->predicted = predict_hot_utilization(
			&predicted, (double)report.operations, basho_truncated_share(report.pairs),
			PREDICT_FUNCTIONS * predicted.shape.per_page);
		return 0;
	}
	utilization->predicted = predict_utilization(&predicted);
	bytes->predicted = predicted_bytes_per_record(
		&predicted, predict_sealed(&predicted, (double)report.operations));
	writes->predicted = predicted_writes(&predicted, 0, report.operations);
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
	experiments_list_places(list, scale, seed);
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
	if (!experiment->has_no_store)
		experiment->result =
			bench_store_open(&store, &experiment->options, &experiment->error);
	if (!experiment->result)
		experiment->result = experiment->run(experiment, store, &experiment->error);
	bench_store_close(store);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	experiment->seconds = (double)(ended.tv_sec - begun.tv_sec) +
			      (double)(ended.tv_nsec - begun.tv_nsec) / 1e9;
}
