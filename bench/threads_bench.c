/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench threads`: threads that call one engine. */
#include "bench/threads_bench.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <string.h>

#include "bench/command_line.h"
#include "bench/turns.h"
#include "common/bytes.h"
#include "engine/engine.h"
#include "engine/history.h"
#include "engine/options.h"
#include "nand/nand.h"

enum {
	BLOCK_BYTES = 4096,
	BLOCKS = 16, /* of an object */
	/* So many, however many threads: each thread has as many as the others. */
	OBJECTS = THREADS_BENCH_MAX,
	WRITER_OBJECT = OBJECTS, /* of the writer beside readers */
	COUNTS_MAX = 5,          /* 1, 2, 4, 8 and 16 threads */
};

#define DEVICE_BYTES   (UINT64_C(256) << 20)
#define OPERATIONS_MAX 100000000

struct threads_bench_options threads_bench_defaults(void)
{
	return (struct threads_bench_options){ .threads = 4, .operations = 200000, .turns = 7 };
}

/* ---- the cases ---- */

struct threads_case {
	const char *name;
	bool writes;
	bool beside_writer; /* one more thread writes as long as the others read */
};

static const struct threads_case cases[] = {
	{ .name = "overwrite", .writes = true },
	{ .name = "read" },
	{ .name = "read beside a writer", .beside_writer = true },
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

/* ---- the engine ---- */

struct scene {
	const struct threads_bench_options *options;
	struct nand *nand;
	struct engine *engine;
	bool stop; /* atomic: the writer beside readers */
};

/* A thread, with objects of its own. */
struct caller {
	struct scene *scene;
	pthread_t thread;
	uint32_t object, objects; /* the first one, behind ENGINE_FIRST_ID, and how many */
	uint32_t operations;      /* 0: until it is stopped */
	bool writes;
	int result;
};

/* The object and the block of it that a thread's operation is about. */
struct place {
	struct engine_address address;
	uint64_t offset;
};

static struct place place_of(const struct caller *caller, uint32_t number)
{
	uint32_t object = caller->object + number % caller->objects;

	return (struct place){
		.address = { .partition = ENGINE_FIRST_ID, .object = ENGINE_FIRST_ID + object },
		.offset = (uint64_t)(number / caller->objects % BLOCKS) * BLOCK_BYTES
	};
}

/* What a block holds, whichever WRITE of it was the last. */
static void stamp(uint8_t *block, const struct place *place)
{
	uint64_t word = place->address.object << 32 | place->offset;

	put_le64(block, word);
	put_le64(block + BLOCK_BYTES - 8, ~word);
}

static bool has_stamp(const uint8_t *block, const struct place *place)
{
	uint64_t word = place->address.object << 32 | place->offset;

	return get_le64(block) == word && get_le64(block + BLOCK_BYTES - 8) == ~word;
}

static int write_block(struct caller *caller, uint32_t number, uint8_t *block)
{
	struct place place = place_of(caller, number);
	struct engine_object *object;
	struct engine_txn *txn;
	int result = engine_begin(caller->scene->engine, ENGINE_WRITE, &txn);

	if (result)
		return result;
	stamp(block, &place);
	result = engine_open_object(txn, place.address, &object);
	if (!result)
		result = engine_object_write(object, place.offset, block, BLOCK_BYTES);
	if (!result)
		return engine_commit(txn, false);
	engine_abort(txn);
	return result;
}

/* -EILSEQ: it holds something else. */
static int read_block(struct caller *caller, uint32_t number, uint8_t *block)
{
	struct place place = place_of(caller, number);
	struct engine_object *object;
	struct engine_txn *txn;
	uint64_t got = 0;
	int result = engine_begin(caller->scene->engine, ENGINE_READ, &txn);

	if (result)
		return result;
	result = engine_open_object(txn, place.address, &object);
	if (!result)
		result = engine_object_read(object, place.offset, block, BLOCK_BYTES, &got);
	engine_abort(txn);
	if (!result && (got != BLOCK_BYTES || !has_stamp(block, &place)))
		return -EILSEQ;
	return result;
}

static void *call(void *context)
{
	struct caller *caller = context;
	uint8_t block[BLOCK_BYTES] = { 0 };

	for (uint32_t n = 0; !caller->result; n++) {
		if (caller->operations ? n == caller->operations
				       : __atomic_load_n(&caller->scene->stop, __ATOMIC_RELAXED))
			break;
		caller->result = caller->writes ? write_block(caller, n, block)
						: read_block(caller, n, block);
	}
	return NULL;
}

/*
 * Empties the device, and makes the objects. Without history what is written stays in the buffers,
 * so nothing but the threads is at work.
 */
static int make_objects(struct scene *scene)
{
	const struct engine_retention retention = { .kind = ENGINE_RETAIN_NONE };
	struct caller filler = { .scene = scene,
				 .objects = OBJECTS + 1,
				 .operations = (OBJECTS + 1) * BLOCKS,
				 .writes = true };
	struct engine_txn *txn;
	int result = engine_reformat(scene->engine);

	if (!result)
		result = engine_begin(scene->engine, ENGINE_WRITE, &txn);
	if (result)
		return result;
	result = engine_partition_create(txn, ENGINE_FIRST_ID, NULL);
	if (!result)
		result = engine_create(txn, ENGINE_FIRST_ID, ENGINE_USER_OBJECT, 0, OBJECTS + 1,
				       NULL);
	if (result)
		engine_abort(txn);
	else
		result = engine_commit(txn, false);
	if (!result)
		result = engine_begin(scene->engine, ENGINE_RESCUE, &txn);
	if (result)
		return result;
	result = engine_retention_set(txn, ENGINE_FIRST_ID, &retention, false);
	if (result)
		engine_abort(txn);
	else
		result = engine_commit(txn, false);
	if (!result)
		call(&filler);
	return result ? result : filler.result;
}

static int open_scene(struct scene *scene, struct error_text *error)
{
	struct engine_options options = { 0 };
	struct nand_geometry geometry = nand_geometry_default(DEVICE_BYTES);
	uint64_t nvram_bytes;
	int result = engine_nvram_bytes(&geometry, &options, &nvram_bytes, error);

	if (!result)
		result = nand_open_memory(&geometry, nvram_bytes, &scene->nand, error);
	if (!result)
		result = engine_format(scene->nand, &options, error);
	if (!result)
		result = engine_open(scene->nand, &options, &scene->engine, error);
	return result;
}

static void close_scene(struct scene *scene)
{
	if (scene->engine)
		engine_close(scene->engine);
	if (scene->nand)
		nand_close(scene->nand);
}

/* ---- measuring ---- */

/* Starts threads. Returns how many there are: fewer, and *result says why. */
static uint32_t start(struct caller *callers, uint32_t count, int *result)
{
	uint32_t started = 0;

	while (started < count) {
		*result = -pthread_create(&callers[started].thread, NULL, call, &callers[started]);
		if (*result)
			break;
		started++;
	}
	return started;
}

static void join(struct caller *callers, uint32_t count, int *result)
{
	for (uint32_t n = 0; n < count; n++) {
		pthread_join(callers[n].thread, NULL);
		if (!*result)
			*result = callers[n].result;
	}
}

/* *rate: operations a second, of all threads together but for a writer beside readers. */
static int measure(struct scene *scene, const struct threads_case *kind, uint32_t threads,
		   double *rate)
{
	struct caller callers[THREADS_BENCH_MAX];
	struct caller writer = {
		.scene = scene, .object = WRITER_OBJECT, .objects = 1, .writes = true
	};
	uint32_t each = scene->options->operations / threads, started;
	bool has_writer = false;
	double begun;
	int result = make_objects(scene);

	if (result)
		return result;
	for (uint32_t n = 0; n < threads; n++)
		callers[n] = (struct caller){ .scene = scene,
					      .object = OBJECTS / threads * n,
					      .objects = OBJECTS / threads,
					      .operations = each,
					      .writes = kind->writes };
	__atomic_store_n(&scene->stop, false, __ATOMIC_RELAXED);
	if (kind->beside_writer)
		has_writer = start(&writer, 1, &result) == 1;
	begun = bench_seconds();
	started = result ? 0 : start(callers, threads, &result);
	join(callers, started, &result);
	*rate = (double)each * threads / (bench_seconds() - begun);
	__atomic_store_n(&scene->stop, true, __ATOMIC_RELAXED);
	if (has_writer)
		join(&writer, 1, &result);
	return result;
}

/* All numbers of threads, in turns. */
static int run_case(struct scene *scene, const struct threads_case *kind,
		    const struct bench_output *output, struct error_text *error)
{
	struct bench_pair pairs[COUNTS_MAX];
	char names[COUNTS_MAX][64];
	uint32_t count = 0;

	for (uint32_t threads = 1; threads <= scene->options->threads; threads *= 2, count++) {
		snprintf(names[count], sizeof(names[0]), "%s, %u thread%s", kind->name, threads,
			 threads == 1 ? "" : "s");
		pairs[count] = (struct bench_pair){ .name = names[count],
						    .reference_name = "1 thread",
						    .unit = "1/s",
						    .runs = scene->options->turns };
	}
	for (uint32_t turn = 0; turn < scene->options->turns; turn++) {
		for (uint32_t n = 0; n < count; n++) {
			int result = measure(scene, kind, 1U << n, &pairs[n].measured[turn]);

			if (result)
				return error_set(error, result, "%s: error %d", names[n], -result);
			pairs[n].reference[turn] = pairs[0].measured[turn];
		}
	}
	for (uint32_t n = 0; n < count; n++)
		bench_pair_report(output, &pairs[n]);
	return 0;
}

int threads_bench_run(const struct threads_bench_options *options, FILE *json, FILE *text,
		      struct error_text *error)
{
	const struct bench_output output = { .json = json, .text = text };
	struct scene scene = { .options = options };
	int result = open_scene(&scene, error);

	for (uint32_t n = 0; !result && n < CASES; n++)
		result = run_case(&scene, &cases[n], &output, error);
	close_scene(&scene);
	return result;
}

/* ---- the command line ---- */

static const char help[] =
	"muninn-bench threads [OPTION...]: what the engine does for threads that call it at once\n"
	"\n"
	"  --threads N     the most; each case runs with 1, 2, 4 and so on (default 4)\n"
	"  --operations N  of a measurement, of all threads together (default 200000)\n"
	"  --turns N       measurements of each case and number of threads (default 7)\n"
	"\n"
	"JSON objects go to stdout, a table to stderr.\n";

enum option_code { OPTION_HELP = 256, OPTION_THREADS, OPTION_OPERATIONS, OPTION_TURNS };

static const struct option long_options[] = {
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "threads", required_argument, NULL, OPTION_THREADS },
	{ "operations", required_argument, NULL, OPTION_OPERATIONS },
	{ "turns", required_argument, NULL, OPTION_TURNS },
	{ 0 },
};

/* 1: --help was asked for. */
static int parse(struct threads_bench_options *options, int argc, char **argv,
		 struct error_text *error)
{
	static const struct bench_number numbers[] = {
		{ "threads", false, 1, THREADS_BENCH_MAX },
		{ "operations", false, THREADS_BENCH_MAX, OPERATIONS_MAX },
		{ "turns", false, 1, BENCH_RUNS_MAX },
	};
	uint32_t *const values[] = { &options->threads, &options->operations, &options->turns };
	int option, result = 0;

	optind = 0;
	while (result == 0 && (option = bench_next_option(argc, argv, long_options, error)) != -1) {
		uint64_t value = 0;

		if (option == -EINVAL)
			return -EINVAL;
		if (option == OPTION_HELP)
			return 1;
		result =
			bench_take_number(&numbers[option - OPTION_THREADS], optarg, &value, error);
		if (result == 0)
			*values[option - OPTION_THREADS] = (uint32_t)value;
	}
	return result;
}

int threads_bench_main(int argc, char **argv, FILE *json, FILE *text)
{
	struct threads_bench_options options = threads_bench_defaults();
	struct error_text error = { "" };
	int result = parse(&options, argc, argv, &error);

	if (result != 0)
		return bench_do_without("threads", help, result, &error, json, text);
	if (threads_bench_run(&options, json, text, &error) == 0)
		return DONE;
	fprintf(text, "muninn-bench threads: %s\n", error.text);
	return FAILED;
}
