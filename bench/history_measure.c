/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Measures two equal devices, of which one gets snapshots, for `muninn-bench history`. */
#include "bench/history_measure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/counts.h"
#include "bench/random.h"
#include "common/bytes.h"
#include "engine/history.h"
#include "engine/options.h"
#include "nand/nand.h"

#define PARTITION    UINT64_C(0x10000)
#define FIRST_OBJECT UINT64_C(0x10000)
#define OBJECT_BYTES 400
/* Objects of one transaction while the device is filled. */
#define FILL_AT_ONCE 500
/* The time between two changes, snapshots or rollbacks, so that each is a moment of its own. */
#define STEP_MS 10000
/* How often a device is opened; the median counts. */
#define OPENINGS 31
/* Snapshots with nothing between them, at the end. */
#define SNAPSHOTS_ALONE 2500
/* An object that takes this part of the device is overwritten and undone, so often. */
#define LARGE_OBJECT_PART 64
#define UNDOS             1000
#define LARGE_OBJECT      (UINT64_C(1) << 40)
#define WRITE_BYTES       (UINT32_C(1) << 20)

struct bench {
	const struct history_bench_options *options;
	struct nand *nand;
	struct engine *engine;
	struct random_state random;
	uint64_t now_ms;
	struct error_text *error;
};

static uint64_t clock_of(void *context)
{
	return ((struct bench *)context)->now_ms;
}

static int complain(struct bench *bench, int result, const char *what)
{
	return result ? error_set(bench->error, result, "%s: error %d", what, -result) : 0;
}

/* ---- the device ---- */

/* Opens the engine with hardly any cache of objects, so that look-ups read. */
static int open_engine(struct bench *bench)
{
	const struct engine_options options = { .onode_cache_entries = 1,
						.clock_ms = clock_of,
						.clock_context = bench };

	return engine_open(bench->nand, &options, &bench->engine, bench->error);
}

static int bench_open(struct bench *bench)
{
	struct nand_geometry geometry = nand_geometry_default(bench->options->size_bytes);
	const struct engine_options options = { 0 };
	uint64_t nvram_bytes;
	int result = engine_nvram_bytes(&geometry, &options, &nvram_bytes, bench->error);

	if (!result)
		result = nand_open_memory(&geometry, nvram_bytes, &bench->nand, bench->error);
	if (!result)
		result = engine_format(bench->nand, &options, bench->error);
	return result ? result : open_engine(bench);
}

static void bench_close(struct bench *bench)
{
	if (bench->engine)
		engine_close(bench->engine);
	if (bench->nand)
		nand_close(bench->nand);
}

static struct counts count(const struct bench *bench)
{
	return counts_read(bench->engine, bench->nand);
}

/* ---- opening ---- */

static double microseconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

static double median(double *values)
{
	qsort(values, OPENINGS, sizeof(*values), compare_doubles);
	return values[OPENINGS / 2];
}

/* The whole of engine_open, again and again. */
static int measure_opening(struct bench *bench, struct opening_cost *cost)
{
	double wall[OPENINGS], cpu[OPENINGS];

	for (int n = 0; n < OPENINGS; n++) {
		int result = engine_close(bench->engine);
		uint64_t reads;

		bench->engine = NULL;
		if (result)
			return complain(bench, result, "closing");
		reads = count(bench).reads;
		wall[n] = microseconds(CLOCK_MONOTONIC);
		cpu[n] = microseconds(CLOCK_THREAD_CPUTIME_ID);
		result = open_engine(bench);
		cpu[n] = microseconds(CLOCK_THREAD_CPUTIME_ID) - cpu[n];
		wall[n] = microseconds(CLOCK_MONOTONIC) - wall[n];
		if (result)
			return result;
		cost->page_reads = count(bench).reads - reads;
	}
	cost->wall_us = median(wall);
	cost->cpu_us = median(cpu);
	return 0;
}

/* ---- contents ---- */

uint64_t history_changed_objects(const struct history_bench_options *options)
{
	return min_u64(options->snapshots, options->objects / 2);
}

/*
 * How often an object was changed as of version `version`, or, with the number of all versions,
 * until now.
 */
static uint64_t changes_of(const struct bench *bench, uint64_t object, uint32_t version)
{
	uint64_t changed = history_changed_objects(bench->options);

	if (object >= changed || object >= version)
		return 0;
	return (version - 1 - object) / changed + 1;
}

static void fill_value(uint8_t *value, uint64_t object, uint64_t changes)
{
	for (uint32_t at = 0; at < OBJECT_BYTES; at++)
		value[at] = (uint8_t)(object * 7 + changes * 13 + at);
}

static int write_at(struct engine_txn *txn, struct engine_address address, uint64_t offset,
		    const void *data, uint64_t length)
{
	struct engine_object *object;
	int result = engine_open_object(txn, address, &object);

	if (result == 0)
		result = engine_object_write(object, offset, data, length);
	engine_close_object(object);
	return result;
}

static int read_at(struct engine_txn *txn, struct engine_address address, uint64_t offset,
		   void *data, uint64_t length, uint64_t *got)
{
	struct engine_object *object;
	int result = engine_open_object(txn, address, &object);

	if (result == 0)
		result = engine_object_read(object, offset, data, length, got);
	engine_close_object(object);
	return result;
}

static int write_object(struct engine_txn *txn, uint64_t object, uint64_t changes)
{
	struct engine_address address = { .partition = PARTITION, .object = FIRST_OBJECT + object };
	uint8_t value[OBJECT_BYTES];

	fill_value(value, object, changes);
	return write_at(txn, address, 0, value, sizeof(value));
}

static int fill_some(struct bench *bench, uint64_t first, uint32_t number)
{
	struct engine_txn *txn;
	int result = engine_begin(bench->engine, ENGINE_WRITE, &txn);

	if (result)
		return result;
	if (first == 0)
		result = engine_partition_create(txn, PARTITION, NULL);
	if (!result)
		result = engine_create(txn, PARTITION, ENGINE_USER_OBJECT, 0, number, NULL);
	for (uint32_t n = 0; !result && n < number; n++)
		result = write_object(txn, first + n, 0);
	if (!result)
		return engine_commit(txn, false);
	engine_abort(txn);
	return result;
}

static int fill(struct bench *bench)
{
	uint64_t objects = bench->options->objects;
	int result = 0;

	for (uint64_t made = 0; !result && made < objects; made += FILL_AT_ONCE) {
		bench->now_ms += 100;
		result = fill_some(bench, made, (uint32_t)min_u64(objects - made, FILL_AT_ONCE));
	}
	return complain(bench, result, "filling the device");
}

/* ---- look-ups ---- */

struct lookup {
	uint64_t object;
	uint32_t version; /* 0: current */
	uint64_t changes; /* what it must show */
	bool unchecked;   /* it may show anything */
};

static int look_up(struct bench *bench, const struct lookup *lookup)
{
	struct engine_address address = { .partition = PARTITION,
					  .object = FIRST_OBJECT + lookup->object,
					  .version = lookup->version };
	uint8_t value[OBJECT_BYTES], wanted[OBJECT_BYTES];
	struct engine_txn *txn;
	uint64_t got;
	int result = engine_begin(bench->engine, ENGINE_READ, &txn);

	if (result)
		return result;
	result = read_at(txn, address, 0, value, sizeof(value), &got);
	engine_abort(txn);
	fill_value(wanted, lookup->object, lookup->changes);
	if (!result && (got != sizeof(value) ||
			(!lookup->unchecked && memcmp(value, wanted, sizeof(value)) != 0)))
		result = -EBADMSG;
	return result;
}

static uint64_t choose_object(const struct bench *bench, struct random_state *random,
			      enum lookup_of kind)
{
	uint64_t changed = history_changed_objects(bench->options);
	uint64_t unchanged = bench->options->objects - changed;

	switch (kind) {
	case LOOKUP_CHANGED:
		return random_below(random, changed);
	case LOOKUP_SETTLED:
		return changed + random_below(random, (unchanged + 1) / 2);
	default:
		return changed + random_below(random, unchanged);
	}
}

static struct lookup choose(const struct bench *bench, struct random_state *objects,
			    struct random_state *versions, enum lookup_at at, enum lookup_of kind)
{
	uint32_t snapshots = bench->options->snapshots;
	struct lookup lookup = { .object = choose_object(bench, objects, kind) };

	if (at == LOOKUP_FIRST)
		lookup.version = 1;
	else if (at == LOOKUP_MIDDLE)
		lookup.version = (snapshots + 1) / 2;
	else if (at == LOOKUP_RANDOM || at == LOOKUP_RANDOM_AGAIN)
		lookup.version = 1 + (uint32_t)random_below(versions, snapshots);
	if (at != LOOKUP_FILLED)
		lookup.changes = changes_of(bench, lookup.object,
					    lookup.version ? lookup.version : snapshots);
	lookup.unchecked = at == LOOKUP_ROLLED_BACK;
	return lookup;
}

/* Opens again, so that nothing counts that memory keeps of earlier look-ups. */
static int open_again(struct bench *bench)
{
	int result = engine_close(bench->engine);

	bench->engine = NULL;
	return result ? result : open_engine(bench);
}

/* Every moment is asked for the same objects in the same order. */
static int measure_kind(struct bench *bench, enum lookup_at at, enum lookup_of kind,
			struct history_figures *figures)
{
	struct random_state objects = random_stream(bench->options->seed, 1 + (uint64_t)kind);
	struct random_state versions = random_stream(bench->options->seed, 100);
	uint64_t before = count(bench).reads;
	int result = 0;

	for (uint32_t n = 0; !result && n < bench->options->lookups; n++) {
		struct lookup lookup = choose(bench, &objects, &versions, at, kind);

		result = look_up(bench, &lookup);
	}
	figures->reads[at][kind] = (double)(count(bench).reads - before) / bench->options->lookups;
	return complain(bench, result, "looking objects up");
}

static int measure_lookups(struct bench *bench, enum lookup_at at, struct history_figures *figures)
{
	int result = 0;

	for (int kind = 0; !result && kind < LOOKUP_KINDS; kind++) {
		result = open_again(bench);
		if (!result)
			result = measure_kind(bench, at, (enum lookup_of)kind, figures);
		if (!result && at == LOOKUP_RANDOM)
			result = measure_kind(bench, LOOKUP_RANDOM_AGAIN, (enum lookup_of)kind,
					      figures);
	}
	return result;
}

/* ---- changes, snapshots, rollbacks ---- */

/* The n-th change. */
static int change_one(struct bench *bench, uint32_t n)
{
	uint64_t changed = history_changed_objects(bench->options);
	struct engine_txn *txn;
	int result = engine_begin(bench->engine, ENGINE_WRITE, &txn);

	if (result)
		return result;
	result = write_object(txn, n % changed, n / changed + 1);
	if (!result)
		return engine_commit(txn, false);
	engine_abort(txn);
	return result;
}

static void add_cost(struct operation_cost *cost, const struct counts *before,
		     const struct counts *after)
{
	uint64_t programs = after->programs - before->programs;

	cost->count++;
	cost->programs += programs;
	cost->most = max_u64(cost->most, programs);
	cost->record_bytes += after->record_bytes - before->record_bytes;
}

/* A snapshot, or with `to` a rollback to that version, from its beginning to its end. */
static int measure_one(struct bench *bench, uint32_t to, struct operation_cost *cost)
{
	const struct engine_moment moment = { .kind = ENGINE_AT_VERSION, .value = to };
	struct counts before = count(bench), after;
	struct engine_txn *txn;
	int result = engine_begin(bench->engine, ENGINE_HISTORY, &txn);

	if (result)
		return result;
	result = to ? engine_rollback(txn, PARTITION, moment)
		    : engine_snapshot(txn, PARTITION, NULL, NULL);
	if (result) {
		engine_abort(txn);
		return result;
	}
	result = engine_commit(txn, false);
	after = count(bench);
	add_cost(cost, &before, &after);
	return result;
}

static int make_changes(struct bench *bench, bool snapshots, struct history_figures *figures)
{
	uint64_t before = count(bench).programs;
	int result = 0;

	for (uint32_t n = 0; !result && n < bench->options->snapshots; n++) {
		bench->now_ms += STEP_MS;
		result = complain(bench, change_one(bench, n), "changing objects");
		if (!result && snapshots)
			result = complain(bench, measure_one(bench, 0, &figures->snapshot),
					  "taking snapshots");
	}
	*(snapshots ? &figures->programs_snapshots : &figures->programs_control) =
		count(bench).programs - before;
	return result;
}

/* Changes something before each rollback, so that something goes back. */
static int measure_rollbacks(struct bench *bench, struct history_figures *figures)
{
	int result = 0;

	for (uint32_t n = 0; !result && n < bench->options->rollbacks; n++) {
		uint32_t to = 1 + (uint32_t)random_below(&bench->random, bench->options->snapshots);

		bench->now_ms += STEP_MS;
		result = change_one(bench, n);
		if (!result)
			result = measure_one(bench, to, &figures->rollback);
	}
	return complain(bench, result, "rolling back");
}

/* Nothing else comes, so what snapshots put is programmed in their own time. */
static int measure_snapshots_alone(struct bench *bench, struct history_figures *figures)
{
	int result = 0;

	for (uint32_t n = 0; !result && n < SNAPSHOTS_ALONE; n++) {
		bench->now_ms += STEP_MS;
		result = measure_one(bench, 0, &figures->alone);
	}
	return complain(bench, result, "taking snapshots one after the other");
}

/* ---- differences ---- */

/* All that differs between two versions of the partition, in as many calls as it takes. */
static int measure_differences(struct bench *bench, uint32_t from, uint32_t to,
			       struct difference_cost *cost)
{
	const struct engine_moment moments[2] = { { .kind = ENGINE_AT_VERSION, .value = from },
						  { .kind = ENGINE_AT_VERSION, .value = to } };
	struct engine_diff_cursor cursor = { 0 };
	double begin = microseconds(CLOCK_THREAD_CPUTIME_ID);
	uint64_t reads = count(bench).reads;
	int result = 0;

	while (!result && cursor.state != ENGINE_DIFF_DONE) {
		struct engine_difference found;
		struct engine_txn *txn;

		result = engine_begin(bench->engine, ENGINE_READ, &txn);
		if (result)
			break;
		result = engine_diff_next(txn, PARTITION, moments[0], moments[1], &cursor, &found);
		cost->found += result == 0;
		if (result == -EAGAIN || (result == -ENOENT && cursor.state == ENGINE_DIFF_DONE))
			result = 0;
		engine_abort(txn);
	}
	cost->cpu_us = microseconds(CLOCK_THREAD_CPUTIME_ID) - begin;
	cost->page_reads = count(bench).reads - reads;
	return complain(bench, result, "comparing versions");
}

/* Of two neighbours, between which one object was changed, and of the first and the last one. */
static int measure_all_differences(struct bench *bench, struct history_figures *figures)
{
	uint32_t last = bench->options->snapshots;
	int result = measure_differences(bench, last > 1 ? last - 1 : 1, last,
					 &figures->differences_few);

	return result ? result : measure_differences(bench, 1, last, &figures->differences_all);
}

/* ---- single objects ---- */

/* Writes the whole large object, one command after the other. *modifications: how many. */
static int write_large(struct bench *bench, uint8_t contents, uint32_t *modifications)
{
	const struct engine_address address = { .partition = PARTITION, .object = LARGE_OBJECT };
	uint64_t bytes = bench->options->size_bytes / LARGE_OBJECT_PART;
	uint8_t *data = malloc(WRITE_BYTES);
	int result = data ? 0 : -ENOMEM;

	if (data)
		memset(data, contents, WRITE_BYTES);
	*modifications = 0;
	for (uint64_t at = 0; !result && at < bytes; at += WRITE_BYTES) {
		struct engine_txn *txn;

		result = engine_begin(bench->engine, ENGINE_WRITE, &txn);
		if (result)
			break;
		result = write_at(txn, address, at, data, WRITE_BYTES);
		if (result)
			engine_abort(txn);
		else
			result = engine_commit(txn, false);
		++*modifications;
	}
	free(data);
	return result;
}

static int create_large(struct bench *bench)
{
	struct engine_txn *txn;
	int result = engine_begin(bench->engine, ENGINE_WRITE, &txn);

	if (result)
		return result;
	result = engine_create(txn, PARTITION, ENGINE_USER_OBJECT, LARGE_OBJECT, 1, NULL);
	if (!result)
		return engine_commit(txn, false);
	engine_abort(txn);
	return result;
}

static int undo_one(struct bench *bench, uint32_t modifications, struct operation_cost *cost)
{
	struct counts before = count(bench), after;
	struct engine_txn *txn;
	int result = engine_begin(bench->engine, ENGINE_WRITE, &txn);

	if (result)
		return result;
	result = engine_undo(txn, PARTITION, LARGE_OBJECT, modifications);
	if (result) {
		engine_abort(txn);
		return result;
	}
	result = engine_commit(txn, false);
	after = count(bench);
	add_cost(cost, &before, &after);
	return result;
}

/* Does the object have these contents at its beginning, in its middle and at its end? */
static int check_large(struct bench *bench, uint8_t contents)
{
	const struct engine_address address = { .partition = PARTITION, .object = LARGE_OBJECT };
	uint64_t bytes = bench->options->size_bytes / LARGE_OBJECT_PART, got = 0;
	struct engine_txn *txn;
	int result = engine_begin(bench->engine, ENGINE_READ, &txn);

	if (result)
		return result;
	for (uint64_t part = 0; !result && part <= 2; part++) {
		uint8_t byte = (uint8_t)~contents;
		uint64_t at = part < 2 ? part * bytes / 2 : bytes - 1;

		result = read_at(txn, address, at, &byte, 1, &got);
		if (!result && byte != contents)
			result = -EILSEQ;
	}
	engine_abort(txn);
	return result;
}

static int measure_undos(struct bench *bench, struct history_figures *figures)
{
	uint32_t modifications;
	int result = create_large(bench);

	for (uint8_t contents = 0; !result && contents < 2; contents++)
		result = write_large(bench, contents, &modifications);
	/* From then on each undoes the one before it. */
	for (uint32_t n = 0; !result && n < UNDOS; n++) {
		bench->now_ms += STEP_MS;
		result = undo_one(bench, n ? 1 : modifications, &figures->undo);
		if (!result)
			result = check_large(bench, n % 2);
	}
	return complain(bench, result, "undoing what was written into a large object");
}

/* ---- the run ---- */

/* Only changes: what they cost by themselves. */
static int measure_control(struct bench *bench, struct history_figures *figures)
{
	int result = fill(bench);

	if (!result)
		result = make_changes(bench, false, figures);
	if (!result)
		result = measure_opening(bench, &figures->open_control);
	return result ? result : measure_lookups(bench, LOOKUP_CONTROL, figures);
}

static int measure_history(struct bench *bench, struct history_figures *figures)
{
	int result = fill(bench);

	if (!result)
		result = measure_opening(bench, &figures->open_filled);
	if (!result)
		result = measure_lookups(bench, LOOKUP_FILLED, figures);
	if (!result)
		result = make_changes(bench, true, figures);
	if (!result)
		result = measure_opening(bench, &figures->open_snapshots);
	for (int at = LOOKUP_CURRENT; !result && at <= LOOKUP_RANDOM; at++)
		result = measure_lookups(bench, (enum lookup_at)at, figures);
	if (!result)
		result = measure_all_differences(bench, figures);
	if (!result)
		result = measure_rollbacks(bench, figures);
	if (!result)
		result = measure_opening(bench, &figures->open_rolled_back);
	if (!result)
		result = measure_lookups(bench, LOOKUP_ROLLED_BACK, figures);
	if (!result)
		result = measure_snapshots_alone(bench, figures);
	return result ? result : measure_undos(bench, figures);
}

static int run_on_device(const struct history_bench_options *options,
			 int (*run)(struct bench *bench, struct history_figures *figures),
			 struct history_figures *figures, struct error_text *error)
{
	struct bench bench = { .options = options, .now_ms = 1000, .error = error };
	int result;

	bench.random = random_stream(options->seed, 0);
	result = bench_open(&bench);
	if (!result)
		result = run(&bench, figures);
	bench_close(&bench);
	return result;
}

int history_measure(const struct history_bench_options *options, struct history_figures *figures,
		    struct error_text *error)
{
	int result;

	*figures = (struct history_figures){
		.page_bytes = nand_geometry_default(options->size_bytes).page_bytes,
	};
	result = run_on_device(options, measure_control, figures, error);
	return result ? result : run_on_device(options, measure_history, figures, error);
}
