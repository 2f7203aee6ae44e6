/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Measures two equal volumes, of which one gets snapshots, for `muninn-bench disk-history`. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/counts.h"
#include "bench/disk_history.h"
#include "bench/latencies.h"
#include "bench/random.h"
#include "common/bytes.h"
#include "disk/disk.h"
#include "engine/history.h"
#include "engine/options.h"
#include "nand/nand.h"

#define PARTITION ENGINE_FIRST_ID
#define PAGE      4096
/* Between two snapshots, so that each is a moment of its own. */
#define STEP_MS 10000

static const uint8_t uuid[16] = { 1 };

struct bench {
	const struct disk_history_options *options;
	struct nand *nand;
	struct engine *engine;
	struct disk *disk;
	struct permutation places; /* of the pages, on the volume */
	/* By page: how often it was overwritten. */
	uint32_t *changes;
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

static int open_disk(struct bench *bench, const char *version, struct disk **disk)
{
	struct disk_options options = { .partition = PARTITION };

	if (version)
		snprintf(options.version, sizeof(options.version), "%s", version);
	else
		options.bytes = bench->options->volume_bytes;
	return disk_open(bench->engine, uuid, &options, disk, bench->error);
}

/* With hardly any cache of objects, so that reads read. */
static int open_engine(struct bench *bench)
{
	const struct engine_options options = { .onode_cache_entries = 1,
						.clock_ms = clock_of,
						.clock_context = bench };
	int result = engine_open(bench->nand, &options, &bench->engine, bench->error);

	return result ? result : open_disk(bench, NULL, &bench->disk);
}

static int close_engine(struct bench *bench)
{
	struct engine *engine = bench->engine;

	disk_close(bench->disk);
	bench->disk = NULL;
	bench->engine = NULL;
	return engine ? engine_close(engine) : 0;
}

static int bench_open(struct bench *bench)
{
	struct nand_geometry geometry = nand_geometry_default(bench->options->size_bytes);
	const struct engine_options options = { 0 };
	uint64_t nvram_bytes;
	int result = engine_nvram_bytes(&geometry, &options, &nvram_bytes, bench->error);

	bench->changes = calloc(bench->options->pages, sizeof(*bench->changes));
	if (!bench->changes)
		return error_set(bench->error, -ENOMEM, "out of memory");
	bench->places = permutation_make(bench->options->volume_bytes / PAGE, bench->options->seed);
	if (!result)
		result = nand_open_memory(&geometry, nvram_bytes, &bench->nand, bench->error);
	if (!result)
		result = engine_format(bench->nand, &options, bench->error);
	return result ? result : open_engine(bench);
}

static void bench_close(struct bench *bench)
{
	close_engine(bench);
	if (bench->nand)
		nand_close(bench->nand);
	free(bench->changes);
}

static struct counts count(const struct bench *bench)
{
	return counts_read(bench->engine, bench->nand);
}

/* ---- pages ---- */

static int run_command(struct disk *disk, uint8_t operation, uint64_t page, uint8_t data[PAGE])
{
	uint8_t cdb[16] = { operation };
	struct disk_command command = { .cdb = cdb };
	uint32_t blocks = PAGE / disk_block_bytes(disk);

	put_be64(cdb + 2, page * blocks);
	put_be32(cdb + 10, blocks);
	if (operation == SBC_WRITE_16) {
		command.data_out = data;
		command.data_out_length = PAGE;
	} else {
		command.data_in = data;
		command.data_in_capacity = PAGE;
	}
	disk_execute(disk, &command);
	return command.status == SCSI_STATUS_GOOD ? 0 : -EIO;
}

static void fill_page(uint8_t data[PAGE], uint64_t number, uint32_t changes)
{
	for (uint32_t at = 0; at < PAGE; at += 8)
		put_be64(data + at, random_mix(number * 8191 + changes) + at);
}

static int write_page(struct bench *bench, uint64_t number)
{
	uint8_t data[PAGE];

	fill_page(data, number, bench->changes[number]);
	return run_command(bench->disk, SBC_WRITE_16, permutation_at(&bench->places, number), data);
}

/* `changes`: what it must show; NULL: any state that it had. */
static int read_page(struct bench *bench, struct disk *disk, uint64_t number,
		     const uint32_t *changes)
{
	uint8_t data[PAGE], wanted[PAGE];
	int result = run_command(disk, SBC_READ_16, permutation_at(&bench->places, number), data);
	uint32_t change = changes ? *changes : bench->changes[number] + 1;

	if (result)
		return result;
	do {
		if (!changes)
			change--;
		fill_page(wanted, number, change);
		if (memcmp(data, wanted, PAGE) == 0)
			return 0;
	} while (!changes && change);
	return -EBADMSG;
}

static int fill(struct bench *bench)
{
	int result = 0;

	for (uint64_t number = 0; !result && number < bench->options->pages; number++) {
		bench->now_ms += 10;
		result = write_page(bench, number);
	}
	return complain(bench, result, "filling the volume");
}

/* Page reads of a READ of the present, with the engine opened anew. */
static int measure_reads(struct bench *bench, double *found)
{
	struct random_state random = random_stream(bench->options->seed, 1);
	int result = close_engine(bench);
	uint64_t before;

	if (!result)
		result = open_engine(bench);
	if (result)
		return result;
	before = count(bench).reads;
	for (uint32_t n = 0; !result && n < bench->options->reads; n++) {
		uint64_t number = random_below(&random, bench->options->pages);

		result = read_page(bench, bench->disk, number, &bench->changes[number]);
	}
	*found = (double)(count(bench).reads - before) / bench->options->reads;
	return complain(bench, result, "reading the present");
}

/* ---- times ---- */

struct stopwatch {
	struct latencies *times;
	double begun;
};

static int stopwatch_make(struct stopwatch *watch)
{
	*watch = (struct stopwatch){ .times = latencies_create() };
	return watch->times ? 0 : -ENOMEM;
}

static void stopwatch_begin(struct stopwatch *watch)
{
	watch->begun = bench_seconds();
}

static void stopwatch_end(struct stopwatch *watch)
{
	latencies_add(watch->times, (uint64_t)((bench_seconds() - watch->begun) * 1e9));
}

/* Frees the watch. */
static struct disk_history_times stopwatch_read(struct stopwatch *watch)
{
	struct disk_history_times times = { 0 };

	if (watch->times)
		times = (struct disk_history_times){
			.count = (uint32_t)watch->times->count,
			.median = latencies_percentile(watch->times, 0.5) / 1e6,
			.most = (double)watch->times->max / 1e6,
		};
	free(watch->times);
	watch->times = NULL;
	return times;
}

/* ---- snapshots ---- */

static int overwrite_some(struct bench *bench, struct random_state *random)
{
	int result = 0;

	for (uint32_t n = 0; !result && n < bench->options->overwrites; n++) {
		uint64_t number = random_below(random, bench->options->pages);

		bench->changes[number]++;
		result = write_page(bench, number);
	}
	return result;
}

static int keep_version(struct bench *bench)
{
	struct engine_txn *txn;
	int result = engine_begin(bench->engine, ENGINE_HISTORY, &txn);

	if (result)
		return result;
	result = engine_snapshot(txn, PARTITION, NULL, NULL);
	if (!result)
		return engine_commit(txn, false);
	engine_abort(txn);
	return result;
}

static int measure_snapshot(struct bench *bench, struct stopwatch *watch,
			    struct disk_history_figures *figures)
{
	struct counts before = count(bench), after;
	double programs;
	int result;

	stopwatch_begin(watch);
	result = keep_version(bench);
	stopwatch_end(watch);
	after = count(bench);
	programs = (double)(after.programs - before.programs);
	figures->snapshot_bytes += (double)(after.record_bytes - before.record_bytes);
	figures->snapshot_programs += programs;
	if (programs > figures->snapshot_programs_most)
		figures->snapshot_programs_most = programs;
	return result;
}

/* The same overwrites at the same times, with a snapshot behind each group of them or without. */
static int make_changes(struct bench *bench, struct stopwatch *watch,
			struct disk_history_figures *figures)
{
	struct random_state random = random_stream(bench->options->seed, 2);
	uint32_t snapshots = bench->options->snapshots;
	int result = 0;

	for (uint32_t n = 0; !result && n < snapshots; n++) {
		bench->now_ms += STEP_MS;
		result = overwrite_some(bench, &random);
		if (!result && watch)
			result = measure_snapshot(bench, watch, figures);
	}
	figures->snapshot_bytes /= snapshots;
	figures->snapshot_programs /= snapshots;
	return complain(bench, result, "overwriting and keeping versions");
}

/* What `muninnctl versions` says was put since the version before, of all but the first. */
static int measure_versions(struct bench *bench, struct disk_history_figures *figures)
{
	struct engine_version version;
	struct engine_txn *txn;
	uint64_t bytes = 0, versions = 0, from = 0;
	int result = engine_begin(bench->engine, ENGINE_READ, &txn);

	if (result)
		return result;
	while (!(result = engine_version_next(txn, PARTITION, from, &version))) {
		bytes += from ? version.written_bytes : 0;
		from = version.position + 1;
		versions++;
	}
	engine_abort(txn);
	figures->version_bytes = versions > 1 ? (double)bytes / (double)(versions - 1) : 0;
	return result == -ENOENT ? 0 : complain(bench, result, "listing versions");
}

/* ---- exposing and going back ---- */

static void name_version(struct bench *bench, struct random_state *random, char name[16])
{
	snprintf(name, 16, "%u", 1 + (uint32_t)random_below(random, bench->options->snapshots));
}

/* A version becomes a disk, and its first page is read. */
static int expose_one(struct bench *bench, struct random_state *random, struct stopwatch *watch)
{
	uint64_t number = random_below(random, bench->options->pages);
	struct disk *disk = NULL;
	char name[16];
	int result;

	name_version(bench, random, name);
	stopwatch_begin(watch);
	result = open_disk(bench, name, &disk);
	if (!result)
		result = read_page(bench, disk, number, NULL);
	stopwatch_end(watch);
	disk_close(disk);
	return result;
}

/* Page reads of a READ at random versions, which are open already. */
static int measure_version_reads(struct bench *bench, struct disk_history_figures *figures)
{
	struct random_state random = random_stream(bench->options->seed, 4);
	uint64_t reads = 0, done = 0;
	int result = 0;

	while (!result && done < bench->options->reads) {
		struct disk *disk = NULL;
		uint64_t before;
		char name[16];

		name_version(bench, &random, name);
		result = open_disk(bench, name, &disk);
		if (result)
			break;
		/* So that what is read of the version itself does not count. */
		result = read_page(bench, disk, 0, NULL);
		before = count(bench).reads;
		for (int n = 0; !result && n < 20; n++, done++)
			result = read_page(bench, disk,
					   random_below(&random, bench->options->pages), NULL);
		reads += count(bench).reads - before;
		disk_close(disk);
	}
	figures->reads_versions = done ? (double)reads / (double)done : 0;
	return complain(bench, result, "reading versions");
}

static int measure_exposures(struct bench *bench, struct disk_history_figures *figures)
{
	struct random_state random = random_stream(bench->options->seed, 3);
	struct stopwatch watch;
	int result = stopwatch_make(&watch);

	for (uint32_t n = 0; !result && n < bench->options->exposures; n++)
		result = expose_one(bench, &random, &watch);
	figures->exposure = stopwatch_read(&watch);
	return complain(bench, result, "opening a version as a disk");
}

/* A clone of a moment by its time, as a disk of its own, of which a page is read. */
static int clone_one(struct bench *bench, uint64_t time_ms, uint64_t number,
		     struct stopwatch *watch)
{
	const struct engine_moment moment = { .kind = ENGINE_AT_TIME, .value = time_ms };
	struct disk_options options = { .partition = 0 };
	struct disk *disk = NULL;
	struct engine_txn *txn;
	int result;

	bench->now_ms += STEP_MS;
	stopwatch_begin(watch);
	result = engine_begin(bench->engine, ENGINE_WRITE, &txn);
	if (result)
		return result;
	result = engine_clone(txn, PARTITION, moment, 0, true, &options.partition);
	if (result) {
		engine_abort(txn);
		return result;
	}
	result = engine_commit(txn, false);
	if (!result)
		result = disk_open(bench->engine, uuid, &options, &disk, bench->error);
	if (!result)
		result = read_page(bench, disk, number, NULL);
	stopwatch_end(watch);
	disk_close(disk);
	return result;
}

static int measure_clones(struct bench *bench, uint64_t begun_ms,
			  struct disk_history_figures *figures)
{
	struct random_state random = random_stream(bench->options->seed, 5);
	uint64_t span_ms = (uint64_t)bench->options->snapshots * STEP_MS;
	struct stopwatch watch;
	int result = stopwatch_make(&watch);

	for (uint32_t n = 0; !result && n < bench->options->exposures; n++) {
		uint64_t time_ms = begun_ms + random_below(&random, span_ms);

		result = clone_one(bench, time_ms, random_below(&random, bench->options->pages),
				   &watch);
	}
	figures->clone = stopwatch_read(&watch);
	return complain(bench, result, "cloning a moment");
}

static int go_back(struct bench *bench, uint32_t version)
{
	const struct engine_moment to = { .kind = ENGINE_AT_VERSION, .value = version };
	struct engine_txn *txn;
	int result = engine_begin(bench->engine, ENGINE_HISTORY, &txn);

	if (result)
		return result;
	result = engine_rollback(txn, PARTITION, to);
	if (!result)
		return engine_commit(txn, false);
	engine_abort(txn);
	return result;
}

/* Each to a random version, with a page read behind it. */
static int measure_rollbacks(struct bench *bench, struct disk_history_figures *figures)
{
	struct random_state random = random_stream(bench->options->seed, 6);
	uint64_t before = count(bench).record_bytes;
	struct stopwatch watch;
	int result = stopwatch_make(&watch);

	for (uint32_t n = 0; !result && n < bench->options->rollbacks; n++) {
		uint64_t version = 1 + random_below(&random, bench->options->snapshots);
		uint64_t number = random_below(&random, bench->options->pages);

		bench->now_ms += STEP_MS;
		stopwatch_begin(&watch);
		result = go_back(bench, (uint32_t)version);
		if (!result)
			result = read_page(bench, bench->disk, number, NULL);
		stopwatch_end(&watch);
	}
	figures->rollback_bytes =
		(double)(count(bench).record_bytes - before) / (double)bench->options->rollbacks;
	figures->rollback = stopwatch_read(&watch);
	return complain(bench, result, "rolling back");
}

/* ---- the run ---- */

static int measure_control(struct bench *bench, struct disk_history_figures *figures)
{
	int result = fill(bench);

	if (!result)
		result = measure_reads(bench, &figures->reads_filled);
	if (!result)
		result = make_changes(bench, NULL, figures);
	return result ? result : measure_reads(bench, &figures->reads_control);
}

static int measure_history(struct bench *bench, struct disk_history_figures *figures)
{
	struct stopwatch watch;
	uint64_t begun_ms;
	int result = fill(bench);

	if (!result)
		result = stopwatch_make(&watch);
	if (result)
		return result;
	begun_ms = bench->now_ms;
	result = make_changes(bench, &watch, figures);
	figures->snapshot = stopwatch_read(&watch);
	if (!result)
		result = measure_reads(bench, &figures->reads_current);
	if (!result)
		result = measure_versions(bench, figures);
	if (!result)
		result = measure_exposures(bench, figures);
	if (!result)
		result = measure_version_reads(bench, figures);
	if (!result)
		result = measure_clones(bench, begun_ms, figures);
	return result ? result : measure_rollbacks(bench, figures);
}

static int run_on_device(const struct disk_history_options *options,
			 int (*run)(struct bench *bench, struct disk_history_figures *figures),
			 struct disk_history_figures *figures, struct error_text *error)
{
	struct bench bench = { .options = options, .now_ms = 1000, .error = error };
	int result = bench_open(&bench);

	if (!result)
		result = run(&bench, figures);
	bench_close(&bench);
	return result;
}

int disk_history_measure(const struct disk_history_options *options,
			 struct disk_history_figures *figures, struct error_text *error)
{
	int result;

	*figures = (struct disk_history_figures){ 0 };
	result = run_on_device(options, measure_control, figures, error);
	return result ? result : run_on_device(options, measure_history, figures, error);
}
