/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Writes the results of phases as JSON and as a table. */
#include "bench/report.h"

#include <errno.h>
#include <math.h>

/* JSON has no NaN and no infinity. */
static json_t *number_or_null(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static double per_operation(const struct phase_report *report, uint64_t count)
{
	return (double)count / (double)report->operations;
}

static double microseconds(const struct phase_report *report, double portion)
{
	return latencies_percentile(report->latencies, portion) / 1e3;
}

/* Options that only the Bloom index has. */
static json_t *bloom_json(const struct bench_options *options)
{
	char filters[FILTERS_NAME_BYTES];

	filters_name(options, filters);
	return json_pack(
		"{s:s, s:s, s:i, s:f, s:f}", "filters", filters, "hot_rows",
		bloom_hot_rows_name(options->hot_rows), "internal_version_tables",
		options->internal_version_tables ? (int)options->internal_version_tables : 1, "fpr",
		options->fpr_millionths ? options->fpr_millionths / 1e6 : 0.0005, "fpr_factor",
		options->fpr_factor_permille ? options->fpr_factor_permille / 1e3 : 1.01);
}

static json_t *parameters_json(const struct phase_report *report, const struct bench_store *store)
{
	const struct bench_options *options = &store->options;
	json_t *parameters = json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:s, s:I, s:I,"
		" s:i, s:i, s:s, s:f, s:f, s:I}",
		"engine", "muninn", "index", index_kind_name(options->index), "nand",
		nand_name(options->nand), "timing", options->timing_name, "time",
		time_name(options), "op", operation_name(report->phase.operation), "dist",
		distribution_name(report->phase.distribution), "size", (json_int_t)options->size,
		"pairs", (json_int_t)report->pairs, "pair_size", (int)options->pair_bytes,
		"threads", (int)options->threads, "depth", (int)options->depth, "history",
		options->history ? "on" : "off", "window", (json_int_t)report->window, "rows",
		(json_int_t)report->statistics.rows, "segment_size", (int)options->segment_bytes,
		"parity", (int)options->parity, "merge", merge_name(options->merge), "pareto_shape",
		options->pareto_shape, "zipfian_theta", options->zipfian_theta, "seed",
		(json_int_t)options->seed);

	if (parameters && options->index != INDEX_RIBBON &&
	    json_object_update_new(parameters, bloom_json(options))) {
		json_decref(parameters);
		return NULL;
	}
	return parameters;
}

/* Heap memory by what it holds, its sum, and what the allocator says of it. */
static json_t *memory_json(const struct phase_report *report)
{
	json_t *memory = json_object();
	uint64_t sum = 0;
	int failed = memory == NULL;

	for (int kind = 0; report->statistics.memory[kind].name; kind++) {
		uint64_t bytes = report->statistics.memory[kind].bytes;

		sum += bytes;
		failed |= json_object_set_new(memory, report->statistics.memory[kind].name,
					      json_integer((json_int_t)bytes));
	}
	failed |= json_object_set_new(memory, "sum", json_integer((json_int_t)sum));
	failed |= json_object_set_new(memory, "allocated",
				      report->engine_allocated
					      ? json_integer((json_int_t)report->engine_allocated)
					      : json_null());
	if (!failed)
		return memory;
	json_decref(memory);
	return NULL;
}

json_t *report_json(const struct phase_report *report, const struct bench_store *store)
{
	const struct record_statistics *statistics = &report->statistics;
	json_t *object = parameters_json(report, store);
	json_t *results = json_pack(
		"{s:I, s:f, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:I, s:I, "
		"s:I,"
		" s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, "
		"s:o}",
		"ops", (json_int_t)report->operations, "seconds", report->seconds, "ops_per_s",
		number_or_null((double)report->operations / report->seconds), "p50_us",
		microseconds(report, 0.5), "p99_us", microseconds(report, 0.99), "p999_us",
		microseconds(report, 0.999), "max_us", (double)report->latencies->max / 1e3,
		"processor_us_per_op", report->processor_seconds * 1e6 / (double)report->operations,
		"page_reads_per_op", per_operation(report, report->page_reads),
		"page_writes_per_op", per_operation(report, report->page_writes),
		"false_positive_reads_per_op", per_operation(report, report->false_positive_reads),
		"segment_utilization", number_or_null(phase_utilization(report, store)),
		"segment_utilization_of_phase",
		number_or_null(phase_utilization_of_phase(report, store)), "index_bytes_per_key",
		number_or_null((double)statistics->index_bytes / (double)report->live),
		"index_bytes", (json_int_t)statistics->index_bytes, "buffer_bytes",
		(json_int_t)statistics->buffer_bytes, "erases", (json_int_t)report->erases,
		"page_reads", (json_int_t)report->page_reads, "page_writes",
		(json_int_t)report->page_writes, "absent", (json_int_t)report->absent, "keys",
		(json_int_t)report->live, "segments_sealed",
		(json_int_t)statistics->segments_sealed, "sealed_records",
		(json_int_t)statistics->sealed_records, "sealed_record_bytes",
		(json_int_t)statistics->sealed_record_bytes, "tables",
		(json_int_t)statistics->tables, "internal_versions",
		(json_int_t)statistics->internal_versions, "segments_free",
		(json_int_t)statistics->segments_free, "merge_segments_freed",
		(json_int_t)report->merge.segments_freed, "merge_page_reads",
		(json_int_t)report->merge.page_reads, "merge_records_moved",
		(json_int_t)report->merge.records_moved, "merge_bytes_moved",
		(json_int_t)report->merge.bytes_moved, "table_cache_bytes",
		(json_int_t)statistics->table_cache_bytes, "table_page_reads_per_op",
		per_operation(report, report->table_page_reads), "memory", memory_json(report));

	if (!object || !results || json_object_update(object, results) != 0) {
		json_decref(object);
		object = NULL;
	}
	json_decref(results);
	return object;
}

void report_table_head(FILE *to)
{
	fprintf(to, "%-7s %-10s %10s %11s %9s %9s %9s %9s %8s %8s %8s %6s %6s\n", "op", "dist",
		"ops", "ops/s", "p50 us", "p99 us", "p99.9 us", "max us", "reads/op", "writes/op",
		"wasted/op", "util", "B/key");
}

void report_table_line(FILE *to, const struct phase_report *report, const struct bench_store *store)
{
	fprintf(to,
		"%-7s %-10s %10llu %11.0f %9.1f %9.1f %9.1f %9.1f %8.4f %9.4f %9.4f %6.4f %6.3f\n",
		operation_name(report->phase.operation),
		distribution_name(report->phase.distribution),
		(unsigned long long)report->operations,
		(double)report->operations / report->seconds, microseconds(report, 0.5),
		microseconds(report, 0.99), microseconds(report, 0.999),
		(double)report->latencies->max / 1e3, per_operation(report, report->page_reads),
		per_operation(report, report->page_writes),
		per_operation(report, report->false_positive_reads),
		phase_utilization(report, store),
		(double)report->statistics.index_bytes / (double)report->live);
	fflush(to);
}

static int write_phase(const struct phase_report *report, const struct bench_store *store,
		       FILE *json, FILE *table, struct error_text *error)
{
	json_t *object = report_json(report, store);
	int result = 0;

	if (!object || json_dumpf(object, json, JSON_COMPACT | JSON_REAL_PRECISION(9)) != 0 ||
	    fputc('\n', json) == EOF || fflush(json) != 0)
		result = error_set(error, -EIO, "the results can't be written");
	json_decref(object);
	report_table_line(table, report, store);
	return result;
}

/* Puts the pairs in, unmeasured. */
static int load(struct bench_store *store, FILE *table, struct error_text *error)
{
	const struct bench_phase phase = { .operation = OPERATION_INSERT,
					   .distribution = DISTRIBUTION_RANDOM };
	struct phase_report report;
	int result;

	fprintf(table, "putting %llu pairs in first\n", (unsigned long long)store->options.pairs);
	result = bench_phase_run(store, &phase, PHASES_MAX, &report, error);
	if (!result)
		phase_report_free(&report);
	return result;
}

int bench_run(const struct bench_options *options, FILE *json, FILE *table,
	      struct error_text *error)
{
	struct bench_store *store;
	struct phase_report report;
	int result = bench_store_open(&store, options, error);

	if (result)
		return result;
	if (options->phases[0].operation != OPERATION_INSERT)
		result = load(store, table, error);
	report_table_head(table);
	for (uint32_t i = 0; !result && i < options->phase_count; i++) {
		result = bench_phase_run(store, &options->phases[i], i, &report, error);
		if (result)
			break;
		result = write_phase(&report, store, json, table, error);
		phase_report_free(&report);
	}
	bench_store_close(store);
	return result;
}
