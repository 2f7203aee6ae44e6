/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "bench/history_bench.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "bench/random.h"
#include "common/bytes.h"
#include "engine/engine.h"
#include "nand/nand.h"

#define PARTITION    UINT64_C(0x10000)
#define FIRST_OBJECT UINT64_C(0x10000)
#define OBJECT_BYTES 400
/* Objects of one transaction while the device is filled. */
#define FILL_AT_ONCE 500
/* The device is opened so often; the fastest counts. */
#define OPENINGS 7

/* Exit codes, as of all commands. */
enum { DONE = 0, FAILED = 1, WRONG_USE = 2 };

struct bench {
	const struct history_bench_options *options;
	struct nand *nand;
	struct engine *engine;
	struct random_state random;
	uint64_t now_ms;
	struct error_text *error;
};

struct history_bench_options history_bench_defaults(void)
{
	return (struct history_bench_options){
		.objects = 1000000,
		.snapshots = 10000,
		.lookups = 20000,
		.rollbacks = 200,
		.size_bytes = UINT64_C(4) << 30,
		.seed = 1,
	};
}

static uint64_t clock_of(void *context)
{
	return ((struct bench *)context)->now_ms;
}

static int complain(struct bench *bench, int result, const char *what)
{
	return result ? error_set(bench->error, result, "%s: error %d", what, -result) : 0;
}

/* ---- the device ---- */

/* Without caches to speak of, so that what is looked up is read. */
static int open_engine(struct bench *bench, uint64_t *microseconds)
{
	const struct engine_options options = { .onode_cache_entries = 1,
						.directory_cache_nodes = 1024,
						.clock_ms = clock_of,
						.clock_context = bench };
	struct engine_statistics statistics;
	int result = engine_open(bench->nand, &options, &bench->engine, bench->error);

	if (result)
		return result;
	engine_read_statistics(bench->engine, &statistics);
	*microseconds = statistics.open_microseconds;
	return 0;
}

static int bench_open(struct bench *bench)
{
	struct nand_geometry geometry = nand_geometry_default(bench->options->size_bytes);
	const struct engine_options options = { 0 };
	uint64_t nvram_bytes, ignored;
	int result = engine_nvram_bytes(&geometry, &options, &nvram_bytes, bench->error);

	if (!result)
		result = nand_open_memory(&geometry, nvram_bytes, &bench->nand, bench->error);
	if (!result)
		result = engine_format(bench->nand, &options, bench->error);
	return result ? result : open_engine(bench, &ignored);
}

static void bench_close(struct bench *bench)
{
	if (bench->engine)
		engine_close(bench->engine);
	if (bench->nand)
		nand_close(bench->nand);
}

/* Opens the device several times; the least time counts, since everything else is other load on the machine. */
static int measure_opening(struct bench *bench, uint64_t *microseconds)
{
	*microseconds = UINT64_MAX;
	for (int n = 0; n < OPENINGS; n++) {
		uint64_t took;
		int result = engine_close(bench->engine);

		bench->engine = NULL;
		if (!result)
			result = open_engine(bench, &took);
		if (result)
			return result;
		*microseconds = min_u64(*microseconds, took);
	}
	return 0;
}

struct pages {
	uint64_t reads, programs;
};

static struct pages count_pages(const struct bench *bench)
{
	struct nand_counters counters;
	struct pages pages = { 0 };

	nand_read_counters(bench->nand, &counters);
	for (int cause = 0; cause < NAND_CAUSES; cause++) {
		pages.reads += counters.by_cause[cause].pages_read;
		pages.programs += counters.by_cause[cause].pages_programmed;
	}
	return pages;
}

/* ---- contents ---- */

static void fill_value(uint8_t *value, uint64_t object, uint32_t round)
{
	for (uint32_t at = 0; at < OBJECT_BYTES; at++)
		value[at] = (uint8_t)(object * 7 + round * 13 + at);
}

static int write_object(struct engine_txn *txn, uint64_t object, uint32_t round)
{
	struct engine_address address = { .partition = PARTITION, .object = object };
	uint8_t value[OBJECT_BYTES];

	fill_value(value, object, round);
	return engine_write(txn, address, 0, value, sizeof(value));
}

static int fill_some(struct bench *bench, uint64_t first, uint32_t count)
{
	struct engine_txn *txn;
	int result = engine_begin(bench->engine, ENGINE_WRITE, &txn);

	if (result)
		return result;
	if (first == FIRST_OBJECT)
		result = engine_partition_create(txn, PARTITION, NULL);
	if (!result)
		result = engine_create(txn, PARTITION, ENGINE_USER_OBJECT, 0, count, NULL);
	for (uint32_t n = 0; !result && n < count; n++)
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
		result = fill_some(bench, FIRST_OBJECT + made,
				   (uint32_t)min_u64(objects - made, FILL_AT_ONCE));
	}
	return complain(bench, result, "filling the device");
}

/* Reads random objects that are never changed. */
static int measure_lookups(struct bench *bench, uint32_t version, double *reads)
{
	uint32_t changed = bench->options->snapshots < bench->options->objects / 2
				   ? bench->options->snapshots
				   : 0;
	uint64_t unchanged = bench->options->objects - changed;
	struct pages before = count_pages(bench);
	struct random_state random = bench->random;
	int result = 0;

	for (uint32_t n = 0; !result && n < bench->options->lookups; n++) {
		uint64_t object = FIRST_OBJECT + changed + random_below(&random, unchanged), got;
		struct engine_address address = { .partition = PARTITION,
						  .object = object,
						  .version = version };
		uint8_t value[OBJECT_BYTES], wanted[OBJECT_BYTES];
		struct engine_txn *txn;

		result = engine_begin(bench->engine, ENGINE_READ, &txn);
		if (result)
			break;
		result = engine_read(txn, address, 0, value, sizeof(value), &got);
		engine_abort(txn);
		fill_value(wanted, object, 0);
		if (!result && (got != sizeof(value) || memcmp(value, wanted, sizeof(value)) != 0))
			result = -EBADMSG;
	}
	*reads = (double)(count_pages(bench).reads - before.reads) / bench->options->lookups;
	return complain(bench, result, "looking objects up");
}

/* ---- snapshots and rollbacks ---- */

/* Changes one object, in a transaction that is not measured. */
static int change_one(struct bench *bench, uint32_t round)
{
	struct engine_txn *txn;
	int result = engine_begin(bench->engine, ENGINE_WRITE, &txn);

	if (result)
		return result;
	result = write_object(txn, FIRST_OBJECT + round % bench->options->objects, round + 1);
	if (!result)
		return engine_commit(txn, false);
	engine_abort(txn);
	return result;
}

/* A snapshot, or with `to` a rollback to that version; counts the pages that it programs. */
static int measure_one(struct bench *bench, uint32_t to, uint64_t *programs)
{
	const struct engine_moment moment = { .kind = ENGINE_AT_VERSION, .value = to };
	uint64_t before;
	struct engine_txn *txn;
	int result = engine_begin(bench->engine, ENGINE_WRITE, &txn);

	if (result)
		return result;
	before = count_pages(bench).programs;
	result = to ? engine_rollback(txn, PARTITION, moment)
		    : engine_snapshot(txn, PARTITION, NULL, NULL);
	if (result) {
		engine_abort(txn);
		return result;
	}
	result = engine_commit(txn, false);
	*programs += count_pages(bench).programs - before;
	return result;
}

static int measure_snapshots(struct bench *bench, double *programs)
{
	uint64_t sum = 0;
	int result = 0;

	for (uint32_t n = 0; !result && n < bench->options->snapshots; n++) {
		bench->now_ms += 10000;
		result = change_one(bench, n);
		if (!result)
			result = measure_one(bench, 0, &sum);
	}
	*programs = (double)sum / bench->options->snapshots;
	return complain(bench, result, "taking snapshots");
}

static int measure_rollbacks(struct bench *bench, double *programs)
{
	uint64_t sum = 0;
	int result = 0;

	for (uint32_t n = 0; !result && n < bench->options->rollbacks; n++) {
		uint32_t to = 1 + (uint32_t)random_below(&bench->random, bench->options->snapshots);

		bench->now_ms += 10000;
		result = measure_one(bench, to, &sum);
	}
	*programs = (double)sum / bench->options->rollbacks;
	return complain(bench, result, "rolling back");
}

/* ---- the run ---- */

struct figures {
	uint64_t open_before, open_after;
	double reads_filled, reads_before, reads_after;
	double reads_middle, reads_oldest; /* at the version in the middle, and at the first */
	double programs_snapshot, programs_rollback;
};

static int measure(struct bench *bench, struct figures *figures)
{
	uint32_t middle = (bench->options->snapshots + 1) / 2;
	int result = fill(bench);

	if (!result)
		result = measure_opening(bench, &figures->open_before);
	if (!result)
		result = measure_lookups(bench, 0, &figures->reads_filled);
	/* As many changes as there will be snapshots: what they cost by themselves. */
	for (uint32_t n = 0; !result && n < bench->options->snapshots; n++)
		result = change_one(bench, n);
	if (!result)
		result = measure_lookups(bench, 0, &figures->reads_before);
	if (!result)
		result = measure_snapshots(bench, &figures->programs_snapshot);
	if (!result)
		result = measure_opening(bench, &figures->open_after);
	if (!result)
		result = measure_lookups(bench, 0, &figures->reads_after);
	if (!result)
		result = measure_lookups(bench, middle, &figures->reads_middle);
	if (!result)
		result = measure_lookups(bench, 1, &figures->reads_oldest);
	if (!result)
		result = measure_rollbacks(bench, &figures->programs_rollback);
	return result;
}

static void report(const struct history_bench_options *options, const struct figures *figures,
		   FILE *json, FILE *text)
{
	fprintf(json,
		"{\"objects\": %llu, \"snapshots\": %u, \"lookups\": %u, \"rollbacks\": %u, "
		"\"seed\": %llu, "
		"\"page_programs_per_snapshot\": %.4f, \"page_programs_per_rollback\": %.4f, "
		"\"page_reads_per_lookup_filled\": %.4f, "
		"\"page_reads_per_lookup_before\": %.4f, \"page_reads_per_lookup_after\": %.4f, "
		"\"page_reads_per_lookup_middle_version\": %.4f, "
		"\"page_reads_per_lookup_first_version\": %.4f, "
		"\"open_us_before\": %llu, \"open_us_after\": %llu}\n",
		(unsigned long long)options->objects, options->snapshots, options->lookups,
		options->rollbacks, (unsigned long long)options->seed, figures->programs_snapshot,
		figures->programs_rollback, figures->reads_filled, figures->reads_before,
		figures->reads_after, figures->reads_middle, figures->reads_oldest,
		(unsigned long long)figures->open_before, (unsigned long long)figures->open_after);
	fprintf(text,
		"%llu objects, %u snapshots\n"
		"  page programs: %.3f a snapshot, %.3f a rollback of the partition\n"
		"  page reads of a look-up: %.4f when filled, %.4f after as many changes without "
		"snapshots, %.4f after the snapshots (%+.2f %%); at the version in "
		"the middle %.4f, at the first %.4f\n"
		"  opening: %llu us before, %llu us after (%+.1f %%)\n",
		(unsigned long long)options->objects, options->snapshots,
		figures->programs_snapshot, figures->programs_rollback, figures->reads_filled,
		figures->reads_before, figures->reads_after,
		(figures->reads_after / figures->reads_before - 1) * 100, figures->reads_middle,
		figures->reads_oldest, (unsigned long long)figures->open_before,
		(unsigned long long)figures->open_after,
		((double)figures->open_after / (double)figures->open_before - 1) * 100);
}

int history_bench_run(const struct history_bench_options *options, FILE *json, FILE *text,
		      struct error_text *error)
{
	struct bench bench = { .options = options, .now_ms = 1000, .error = error };
	struct figures figures = { 0 };
	int result;

	bench.random = random_stream(options->seed, 0);
	result = bench_open(&bench);
	if (!result)
		result = measure(&bench, &figures);
	if (!result)
		report(options, &figures, json, text);
	bench_close(&bench);
	return result;
}

/* ---- the command line ---- */

static const char help[] =
	"muninn-bench history [OPTION...]: what snapshots, rollbacks and old versions cost\n"
	"\n"
	"  --objects N     of 400 bytes each (default 1000000)\n"
	"  --snapshots N   each behind a change of one object (default 10000, at most 30000)\n"
	"  --lookups N     of random objects, for each figure (default 20000)\n"
	"  --rollbacks N   to random versions (default 200, at most 4096)\n"
	"  --size N        GiB of the device, which is memory that is taken as it fills (default "
	"4)\n"
	"  --seed N        (default 1)\n"
	"\n"
	"A JSON object goes to stdout, lines to stderr.\n";

static const struct option long_options[] = {
	{ "objects", required_argument, NULL, 0 }, { "snapshots", required_argument, NULL, 1 },
	{ "lookups", required_argument, NULL, 2 }, { "rollbacks", required_argument, NULL, 3 },
	{ "size", required_argument, NULL, 4 },    { "seed", required_argument, NULL, 5 },
	{ "help", no_argument, NULL, 6 },          { 0 },
};

static int take_number(struct history_bench_options *options, int option, const char *text,
		       struct error_text *error)
{
	static const uint64_t most[] = { 100000000, 30000, 100000000, 4096, 4096, UINT32_MAX };
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < 1 || value > most[option])
		return error_set(error, -EINVAL, "--%s %s: must be a number, 1 to %llu",
				 long_options[option].name, text, (unsigned long long)most[option]);
	switch (option) {
	case 0:
		options->objects = value;
		break;
	case 1:
		options->snapshots = (uint32_t)value;
		break;
	case 2:
		options->lookups = (uint32_t)value;
		break;
	case 3:
		options->rollbacks = (uint32_t)value;
		break;
	case 4:
		options->size_bytes = value << 30;
		break;
	default:
		options->seed = value;
		break;
	}
	return 0;
}

int history_bench_main(int argc, char **argv, FILE *json, FILE *text)
{
	struct history_bench_options options = history_bench_defaults();
	struct error_text error = { "unknown option" };
	int option, result = 0;

	optind = 0;
	opterr = 0;
	while (!result && (option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == 6) {
			fputs(help, json);
			return DONE;
		}
		result = option == '?' ? -EINVAL : take_number(&options, option, optarg, &error);
	}
	if (result || optind < argc) {
		fprintf(text, "muninn-bench history: %s\n%s", error.text, help);
		return WRONG_USE;
	}
	result = history_bench_run(&options, json, text, &error);
	if (result)
		fprintf(text, "muninn-bench history: %s\n", error.text);
	return result ? FAILED : DONE;
}
