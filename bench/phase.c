/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Runs the operations of a phase on its threads, and notes what they cost. */
#include "bench/phase.h"

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "bench/async.h"
#include "common/allocator.h"
#include "common/bytes.h"

/* Columns of a read-only table: segments of one row. */
enum { TABLE_SEGMENTS = 64 };

struct phase_run {
	struct bench_store *store;
	const struct bench_phase *phase;
	struct sampler sampler;
	uint64_t first_insert; /* of an insert in order of age: pair of operation 0 */
	uint64_t operations;
	uint64_t seed;
	_Atomic uint64_t next;
	_Atomic bool stop;
};

struct worker {
	struct phase_run *run;
	struct latencies *latencies;
	uint64_t done, absent;
	/* Of the operation that failed. */
	int result;
	const char *operation;
	uint64_t pair;
};

/* ---- time and counters ---- */

struct flash_counts {
	uint64_t reads, programs, erases;
};

/* All causes together. */
static struct flash_counts count_flash(struct nand *nand)
{
	struct flash_counts counts = { 0 };
	struct nand_counters counters;

	nand_read_counters(nand, &counters);
	for (int cause = 0; cause < NAND_CAUSES; cause++) {
		counts.reads += counters.by_cause[cause].pages_read;
		counts.programs += counters.by_cause[cause].pages_programmed;
		counts.erases += counters.by_cause[cause].blocks_erased;
	}
	return counts;
}

static uint64_t now_ns(struct bench_store *store)
{
	struct timespec now;

	if (is_virtual(&store->options))
		return nand_now_ns(store->nand);
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static double processor_seconds(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* ---- one operation ---- */

static int lookup(struct worker *worker, uint64_t pair)
{
	bool found = false;
	int result;

	worker->operation = "lookup";
	result = bench_store_get(worker->run->store, pair, &found);
	worker->absent += !result && !found;
	return result;
}

static int lookup_absent(struct worker *worker)
{
	int result = bench_store_get_absent(worker->run->store, worker->pair);

	worker->absent += !result;
	return result;
}

static int run_operation(struct worker *worker, uint64_t number)
{
	struct phase_run *run = worker->run;
	struct bench_store *store = run->store;
	enum bench_operation operation = run->phase->operation;
	struct random_state random = random_stream(run->seed, number);

	if (operation == OPERATION_MIXED)
		operation = random_unit(&random) <= run->phase->lookup_share ? OPERATION_LOOKUP
									     : OPERATION_UPDATE;
	worker->operation = operation_name(operation);
	worker->pair = run->first_insert + sampler_pair(&run->sampler, &random, number);
	switch (operation) {
	case OPERATION_LOOKUP:
		return lookup(worker, worker->pair);
	case OPERATION_ABSENT:
		return lookup_absent(worker);
	case OPERATION_DELETE:
		return bench_store_put(store, worker->pair, true);
	default:
		return bench_store_put(store, worker->pair, false);
	}
}

static void *run_worker(void *context)
{
	struct worker *worker = context;
	struct phase_run *run = worker->run;
	uint64_t begun = now_ns(run->store), ended, number;

	while (!atomic_load_explicit(&run->stop, memory_order_relaxed)) {
		number = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);
		if (number >= run->operations)
			break;
		worker->result = run_operation(worker, number);
		if (worker->result) {
			atomic_store(&run->stop, true);
			break;
		}
		ended = now_ns(run->store);
		latencies_add(worker->latencies, ended - begun);
		begun = ended;
		worker->done++;
	}
	return NULL;
}

/* ---- look-ups that are under way at once ---- */

static int go_on(void *context, uint64_t number)
{
	return run_operation(context, number);
}

static void end(void *context, uint64_t latency_ns)
{
	struct worker *worker = context;

	latencies_add(worker->latencies, latency_ns);
	worker->done++;
}

static bool is_async(const struct phase_run *run)
{
	return run->store->options.depth > 1 && (run->phase->operation == OPERATION_LOOKUP ||
						 run->phase->operation == OPERATION_ABSENT);
}

static void run_async_worker(struct worker *worker)
{
	const struct phase_run *run = worker->run;
	const struct async_lookups lookups = {
		.depth = run->store->options.depth,
		.operations = run->operations,
		.context = worker,
		.lookup = go_on,
		.done = end,
		.now_ns = now_ns,
	};

	worker->operation = operation_name(run->phase->operation);
	worker->result = async_run(run->store, &lookups);
}

/* ---- all of them ---- */

static int run_workers(struct phase_run *run, struct worker *workers, struct error_text *error)
{
	uint32_t started = 0, threads = run->store->options.threads;
	pthread_t ids[THREADS_MAX];
	int result = 0;

	for (uint32_t i = 0; i < threads; i++) {
		workers[i] = (struct worker){ .run = run, .latencies = latencies_create() };
		if (!workers[i].latencies)
			return error_set(error, -ENOMEM, "out of memory for latencies");
	}
	if (is_async(run))
		run_async_worker(&workers[0]);
	else if (threads == 1)
		run_worker(&workers[0]);
	for (; threads > 1 && started < threads; started++) {
		result = -pthread_create(&ids[started], NULL, run_worker, &workers[started]);
		if (result) {
			atomic_store(&run->stop, true);
			error_set(error, result, "thread %u can't be started (error %d)", started,
				  -result);
			break;
		}
	}
	for (uint32_t i = 0; i < started; i++)
		pthread_join(ids[i], NULL);
	for (uint32_t i = 0; !result && i < threads; i++)
		if (workers[i].result)
			result = bench_store_explain(run->store, workers[i].result,
						     workers[i].operation, workers[i].pair, error);
	return result;
}

/* The first worker's histogram is handed to the report, the others are added to it. */
static void gather(struct worker *workers, uint32_t threads, struct phase_report *report)
{
	report->latencies = workers[0].latencies;
	for (uint32_t i = 0; i < threads; i++) {
		report->operations += workers[i].done;
		report->absent += workers[i].absent;
		if (i > 0) {
			latencies_add_all(report->latencies, workers[i].latencies);
			free(workers[i].latencies);
		}
		workers[i].latencies = NULL;
	}
}

/*
 * What the process has allocated since before the engine was opened, less the device's memory and
 * ours.
 */
static uint64_t engine_allocated(const struct bench_store *store, const struct phase_report *report)
{
	struct nand_headers_usage usage;
	struct allocator_figures figures;

	if (!store->allocated_before || !allocator_read(&figures))
		return 0;
	nand_headers_usage(store->nand, &usage);
	return figures.allocated_bytes - store->allocated_before - usage.bytes -
	       malloc_usable_size(report->latencies);
}

/* One at a time, and by this thread: nothing else can go on meanwhile. */
static int run_openings(struct phase_run *run, struct phase_report *report,
			struct error_text *error)
{
	struct bench_store *store = run->store;
	struct flash_counts before = count_flash(store->nand), after;
	double processor_before = processor_seconds();
	uint64_t begun, all = 0;
	int result = 0;

	report->latencies = calloc(1, sizeof(*report->latencies));
	if (!report->latencies)
		return error_set(error, -ENOMEM, "out of memory");
	for (; !result && report->operations < run->operations; report->operations++) {
		begun = now_ns(store);
		result = bench_store_crash(store, error);
		latencies_add(report->latencies, now_ns(store) - begun);
		all += now_ns(store) - begun;
	}
	after = count_flash(store->nand);
	report->seconds = (double)all / 1e9;
	report->processor_seconds = processor_seconds() - processor_before;
	report->page_reads = after.reads - before.reads;
	report->page_writes = after.programs - before.programs;
	report->live = store->live;
	if (result)
		phase_report_free(report);
	else
		store->records->operations->statistics(store->records, &report->statistics);
	return result;
}

static int run_measured(struct phase_run *run, struct phase_report *report,
			struct error_text *error)
{
	struct bench_store *store = run->store;
	struct record_statistics before = { 0 };
	struct worker workers[THREADS_MAX] = { 0 };
	struct flash_counts counts_before, counts;
	struct merge_costs merge_before = bench_merge_costs(store), merge;
	double processor_before;
	uint64_t begun;
	int result;

	store->records->operations->statistics(store->records, &before);
	counts_before = count_flash(store->nand);
	processor_before = processor_seconds();
	begun = now_ns(store);
	result = run_workers(run, workers, error);
	if (result) {
		for (uint32_t i = 0; i < THREADS_MAX; i++)
			free(workers[i].latencies);
		return result;
	}
	report->seconds = (double)(now_ns(store) - begun) / 1e9;
	report->processor_seconds = processor_seconds() - processor_before;
	gather(workers, store->options.threads, report);
	counts = count_flash(store->nand);
	report->page_reads = counts.reads - counts_before.reads;
	report->page_writes = counts.programs - counts_before.programs;
	report->erases = counts.erases - counts_before.erases;
	store->records->operations->statistics(store->records, &report->statistics);
	report->false_positive_reads =
		report->statistics.false_positive_reads - before.false_positive_reads;
	report->table_page_reads = report->statistics.table_page_reads - before.table_page_reads;
	report->engine_allocated = engine_allocated(store, report);
	report->segments_sealed = report->statistics.segments_sealed - before.segments_sealed;
	report->sealed_record_bytes =
		report->statistics.sealed_record_bytes - before.sealed_record_bytes;
	report->live = store->live;
	merge = bench_merge_costs(store);
	report->merge = (struct merge_costs){
		.page_reads = merge.page_reads - merge_before.page_reads,
		.segments_freed = merge.segments_freed - merge_before.segments_freed,
		.records_moved = merge.records_moved - merge_before.records_moved,
		.bytes_moved = merge.bytes_moved - merge_before.bytes_moved,
	};
	return 0;
}

/* ---- which pairs ---- */

/* Notes what oldest and newest mean from now on; see phase.h. */
static void note_ages(struct bench_store *store)
{
	struct record_statistics statistics = { 0 };
	uint64_t complete, per_segment, tables, oldest;

	store->records->operations->statistics(store->records, &statistics);
	per_segment = statistics.sealed_records / max_u64(1, statistics.segments_sealed);
	/* Whatever groups another index has: so the same pairs are looked up with each. */
	tables = store->options.index == INDEX_RIBBON
			 ? statistics.segments_sealed / statistics.rows / TABLE_SEGMENTS *
				   statistics.rows
			 : statistics.tables;
	complete = min_u64(store->inserted - 1, tables * TABLE_SEGMENTS * per_segment);
	/*
	 * Rows do not fill evenly: the last pairs of the slowest row's table are younger than those
	 * of the fastest row's.
	 */
	oldest = statistics.rows * TABLE_SEGMENTS * per_segment / 100 * 98;
	store->newest_window = store->inserted - complete;
	store->oldest_window = complete < oldest || oldest == 0 ? divide_up(store->inserted, 2)
								: oldest;
}

static uint64_t default_operations(const struct bench_store *store, const struct bench_phase *phase)
{
	uint64_t pairs = store->inserted;

	if (phase->operation == OPERATION_INSERT)
		return store->options.pairs - pairs;
	if (phase->operation == OPERATION_OPEN)
		return 1;
	return phase->operation == OPERATION_DELETE ? pairs : min_u64(pairs, OPERATIONS_DEFAULT);
}

/* Inserts in order of age get ascending numbers. The keys in the store decide what the order is. */
static int prepare_insert(struct phase_run *run, struct error_text *error)
{
	struct bench_store *store = run->store;
	bool random = run->phase->distribution == DISTRIBUTION_RANDOM;

	if (distribution_repeats(run->phase->distribution))
		return 0;
	if (run->operations > store->options.pairs - store->inserted)
		return error_set(error, -EINVAL,
				 "insert of %llu pairs: only %llu of %llu are left to insert",
				 (unsigned long long)run->operations,
				 (unsigned long long)(store->options.pairs - store->inserted),
				 (unsigned long long)store->options.pairs);
	if (store->inserted && store->random_keys != random)
		return error_set(error, -EINVAL,
				 "inserts of sequential and random keys into one store");
	store->random_keys = random;
	run->first_insert = store->inserted;
	return 0;
}

static int prepare(struct phase_run *run, struct phase_report *report, struct error_text *error)
{
	struct bench_store *store = run->store;
	const struct bench_phase *phase = run->phase;
	bool insert = phase->operation == OPERATION_INSERT;
	struct sampler_options options = {
		.pairs = insert ? store->options.pairs : store->inserted,
		.seed = store->options.seed,
		.pareto_shape = store->options.pareto_shape,
		.zipfian_theta = store->options.zipfian_theta,
		.each_once = phase->operation == OPERATION_DELETE,
	};
	enum distribution distribution = phase->distribution;

	if (options.pairs == 0)
		return error_set(error, -EINVAL, "%s: there are no pairs yet",
				 operation_name(phase->operation));
	if (distribution == DISTRIBUTION_OLDEST || distribution == DISTRIBUTION_NEWEST)
		options.window = phase->window ? min_u64(phase->window, store->inserted)
				 : distribution == DISTRIBUTION_OLDEST ? store->oldest_window
								       : store->newest_window;
	report->window = options.window;
	if (insert && !distribution_repeats(distribution))
		distribution = DISTRIBUTION_SEQUENTIAL;
	sampler_begin(&run->sampler, distribution, &options);
	return insert ? prepare_insert(run, error) : 0;
}

int bench_phase_run(struct bench_store *store, const struct bench_phase *phase, uint32_t number,
		    struct phase_report *report, struct error_text *error)
{
	struct phase_run run = {
		.store = store,
		.phase = phase,
		.operations = phase->operations ? phase->operations
						: default_operations(store, phase),
		.seed = random_mix(store->options.seed + (number + 1) * RANDOM_STEP),
	};
	int result;

	*report = (struct phase_report){ .phase = *phase };
	result = prepare(&run, report, error);
	if (!result)
		result = phase->operation == OPERATION_OPEN ? run_openings(&run, report, error)
							    : run_measured(&run, report, error);
	if (result)
		return result;
	if (phase->operation == OPERATION_INSERT) {
		store->inserted = distribution_repeats(phase->distribution)
					  ? store->options.pairs
					  : store->inserted + report->operations;
		note_ages(store);
	}
	report->pairs = store->inserted;
	return 0;
}

void phase_report_free(struct phase_report *report)
{
	free(report->latencies);
	report->latencies = NULL;
}

static double utilization(uint64_t bytes, uint64_t segments, const struct bench_store *store)
{
	return segments ? (double)bytes / ((double)segments * store->options.segment_bytes) : NAN;
}

double phase_utilization(const struct phase_report *report, const struct bench_store *store)
{
	return utilization(report->statistics.sealed_record_bytes,
			   report->statistics.segments_sealed, store);
}

double phase_utilization_of_phase(const struct phase_report *report,
				  const struct bench_store *store)
{
	return utilization(report->sealed_record_bytes, report->segments_sealed, store);
}
