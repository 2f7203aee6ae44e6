/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench peers`: its options, the stores that there are, and the turns. */
#include "bench/peers_bench.h"

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "bench/command_line.h"
#include "bench/folder.h"
#include "bench/memory_limit.h"
#include "bench/process.h"
#include "common/bytes.h"

static const char help[] =
	"muninn-bench peers [OPTION...]: Muninn's record store beside other stores, in turns\n"
	"\n"
	"  --store NAME      a peer: rocksdb, leveldb or lmdb; may be given again; muninn: no "
	"peer; "
	"default:\n"
	"                    all that there are\n"
	"  --workload NAME   1k, mixed or 4k: pairs of 1 KiB, values of 100 bytes to 4 KiB, values "
	"of a\n"
	"                    page; may be given again; default: all\n"
	"  --index NAME      Muninn's: ribbon (default) or bloom\n"
	"  --folder DIR      where the files are, while it runs (default: the working directory)\n"
	"  --data SIZE       keys and values of a workload (default 2G)\n"
	"  --lookups N       in each phase of look-ups (default 20000)\n"
	"  --threads N       of the phase that looks up on threads (default 32, at most 64)\n"
	"  --cache SIZE      memory for filters, indexes and blocks (default: 32 bytes a pair, at "
	"least 32M)\n"
	"  --buffer SIZE     memory for what is not in tables yet (default 128M)\n"
	"  --runs N          turns (default 3, at most 9)\n"
	"  --quick           --data 256M --lookups 5000 --buffer 32M --runs 1\n"
	"  --libraries DIR   where peer_NAME.so are (default: ../lib beside this program)\n"
	"  --seed N\n"
	"\n"
	"JSON objects go to stdout, lines for people to stderr. Exit code 1: something failed, or "
	"a goal was missed.\n"
	"Nobody else should use the drive meanwhile: its counters are of all.\n";

static const struct peers_workload workloads[] = {
	{ "1k", 996, 996, true, true },
	{ "mixed", 100, 4096, false, false },
	{ "4k", 4096, 4096, false, true },
};

static const char *const peer_names[] = { "rocksdb", "leveldb", "lmdb" };

#define WORKLOADS (sizeof(workloads) / sizeof(workloads[0]))
#define PEERS     (sizeof(peer_names) / sizeof(peer_names[0]))

struct peers_options {
	/* A bit each; 0: all. The last store is Muninn, which is there anyway. */
	unsigned stores, workloads;
	const char *folder, *libraries;
	uint64_t data_bytes, lookups, threads, cache_bytes, buffer_bytes, runs, seed;
	enum index_kind index;
	bool limits; /* memory is limited */
};

enum { FOLDER_BYTES = 448 };

/* What a process may have beside cache and buffers. */
#define PROGRAM_BYTES (UINT64_C(128) << 20)

/* ---- the command line ---- */

enum {
	OPTION_STORE = 256,
	OPTION_WORKLOAD,
	OPTION_INDEX,
	OPTION_FOLDER,
	OPTION_LIBRARIES,
	OPTION_QUICK,
	OPTION_HELP,
	/* From here on numbers. */
	OPTION_DATA,
	OPTION_LOOKUPS,
	OPTION_THREADS,
	OPTION_CACHE,
	OPTION_BUFFER,
	OPTION_RUNS,
	OPTION_SEED,
};

static const struct option long_options[] = {
	{ "store", required_argument, NULL, OPTION_STORE },
	{ "workload", required_argument, NULL, OPTION_WORKLOAD },
	{ "index", required_argument, NULL, OPTION_INDEX },
	{ "folder", required_argument, NULL, OPTION_FOLDER },
	{ "libraries", required_argument, NULL, OPTION_LIBRARIES },
	{ "quick", no_argument, NULL, OPTION_QUICK },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "data", required_argument, NULL, OPTION_DATA },
	{ "lookups", required_argument, NULL, OPTION_LOOKUPS },
	{ "threads", required_argument, NULL, OPTION_THREADS },
	{ "cache", required_argument, NULL, OPTION_CACHE },
	{ "buffer", required_argument, NULL, OPTION_BUFFER },
	{ "runs", required_argument, NULL, OPTION_RUNS },
	{ "seed", required_argument, NULL, OPTION_SEED },
	{ 0 },
};

static int set_number(struct peers_options *options, int option, const char *text,
		      struct error_text *error)
{
	static const struct bench_number numbers[] = {
		{ "data", true, UINT64_C(1) << 20, UINT64_C(1) << 40 },
		{ "lookups", false, 1, UINT64_C(1) << 32 },
		{ "threads", false, 1, PEERS_THREADS_MAX },
		{ "cache", true, UINT64_C(1) << 20, UINT64_C(1) << 40 },
		{ "buffer", true, UINT64_C(1) << 20, UINT64_C(1) << 32 },
		{ "runs", false, 1, PEERS_RUNS_MAX },
		{ "seed", false, 0, UINT64_MAX },
	};
	uint64_t *const values[] = {
		&options->data_bytes,   &options->lookups, &options->threads, &options->cache_bytes,
		&options->buffer_bytes, &options->runs,    &options->seed,
	};

	return bench_take_number(&numbers[option - OPTION_DATA], text, values[option - OPTION_DATA],
				 error);
}

static int add_store(struct peers_options *options, const char *name, struct error_text *error)
{
	for (size_t i = 0; i <= PEERS; i++)
		if (strcmp(i < PEERS ? peer_names[i] : peer_muninn.name, name) == 0) {
			options->stores |= 1U << i;
			return 0;
		}
	return error_set(error, -EINVAL, "--store %s: there are rocksdb, leveldb, lmdb and muninn",
			 name);
}

static int add_workload(struct peers_options *options, const char *name, struct error_text *error)
{
	for (size_t i = 0; i < WORKLOADS; i++)
		if (strcmp(workloads[i].name, name) == 0) {
			options->workloads |= 1U << i;
			return 0;
		}
	return error_set(error, -EINVAL, "--workload %s: there are 1k, mixed and 4k", name);
}

static int take(struct peers_options *options, int option, struct error_text *error)
{
	switch (option) {
	case OPTION_STORE:
		return add_store(options, optarg, error);
	case OPTION_WORKLOAD:
		return add_workload(options, optarg, error);
	case OPTION_INDEX:
		if (index_kind_parse(optarg, &options->index))
			return error_set(error, -EINVAL, "--index %s: must be bloom or ribbon",
					 optarg);
		return 0;
	case OPTION_FOLDER:
		options->folder = optarg;
		return 0;
	case OPTION_LIBRARIES:
		options->libraries = optarg;
		return 0;
	case OPTION_QUICK:
		options->data_bytes = UINT64_C(256) << 20;
		options->lookups = 5000;
		options->buffer_bytes = UINT64_C(32) << 20;
		options->runs = 1;
		return 0;
	default:
		return set_number(options, option, optarg, error);
	}
}

/* 1: --help was asked for. */
static int parse(struct peers_options *options, int argc, char **argv, struct error_text *error)
{
	int option, result = 0;

	*options = (struct peers_options){
		.index = INDEX_DEFAULT,
		.folder = ".",
		.data_bytes = UINT64_C(2) << 30,
		.lookups = 20000,
		.threads = 32,
		.buffer_bytes = UINT64_C(128) << 20,
		.runs = 3,
		.seed = 1,
	};
	optind = 0;
	while (result == 0 && (option = bench_next_option(argc, argv, long_options, error)) != -1) {
		if (option == -EINVAL)
			return -EINVAL;
		if (option == OPTION_HELP)
			return 1;
		result = take(options, option, error);
	}
	return result;
}

/* ---- the stores ---- */

struct stores {
	const struct peer_type *types[PEERS_STORES_MAX];
	uint32_t count;
};

static int libraries_folder(const struct peers_options *options, char folder[PATH_MAX],
			    struct error_text *error)
{
	int result;

	if (options->libraries) {
		snprintf(folder, PATH_MAX, "%s", options->libraries);
		return 0;
	}
	result = bench_process_folder(folder, PATH_MAX - sizeof("/../lib"), error);
	if (result == 0)
		strcat(folder, "/../lib");
	return result;
}

static const struct peer_type *load(const char *folder, const char *name)
{
	char path[PATH_MAX + 64];
	void *library;

	snprintf(path, sizeof(path), "%s/peer_%s.so", folder, name);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	return library ? dlsym(library, PEER_SYMBOL) : NULL;
}

/* Muninn's first, then those of the peers that are wanted. Libraries stay loaded. */
static int find_stores(const struct peers_options *options, struct stores *stores, FILE *text,
		       struct error_text *error)
{
	char folder[PATH_MAX];
	int result = libraries_folder(options, folder, error);

	*stores = (struct stores){ .types = { &peer_muninn }, .count = 1 };
	for (size_t i = 0; !result && i < PEERS; i++) {
		const struct peer_type *type;

		if (options->stores && !(options->stores & 1U << i))
			continue;
		type = load(folder, peer_names[i]);
		if (type)
			stores->types[stores->count++] = type;
		else if (options->stores)
			result = error_set(error, -ENOENT, "--store %s: %s", peer_names[i],
					   dlerror());
		else
			fprintf(text, "without %s: %s\n", peer_names[i], dlerror());
	}
	if (!result && stores->count == 1 && !options->stores)
		result = error_set(error, -ENOENT,
				   "there is no store to compare with: run scripts/bootstrap "
				   "bench, then make all");
	return result;
}

/* Whether the host lets us limit memory; says why not. */
static bool can_limit(FILE *text)
{
	struct bench_memory_limit limit;
	struct error_text error;

	if (bench_memory_limit_begin(&limit, PROGRAM_BYTES, &error)) {
		fprintf(text, "stores may use all of the host's page cache: %s\n", error.text);
		return false;
	}
	bench_memory_limit_end(&limit);
	return true;
}

/* ---- turns ---- */

static int turn_in_a_folder(const struct peers_options *options, struct peers_sheet *sheet,
			    const struct peer_type *type, uint32_t store, uint32_t run,
			    struct error_text *error)
{
	char folder[FOLDER_BYTES];
	int result = bench_folder_make(options->folder, folder, sizeof(folder), error);

	if (result)
		return result;
	result = peers_turn(sheet->run, type, folder, sheet->results[store][run],
			    &sheet->space[store][run], error);
	bench_folder_remove(folder);
	return result;
}

/* The stores take turns to be first. */
static int turns(const struct peers_options *options, const struct stores *stores,
		 struct peers_sheet *sheet, FILE *text, struct error_text *error)
{
	int result = 0;

	for (uint32_t run = 0; !result && run < sheet->runs; run++)
		for (uint32_t i = 0; !result && i < stores->count; i++) {
			uint32_t store = (run + i) % stores->count;

			result = turn_in_a_folder(options, sheet, stores->types[store], store, run,
						  error);
			if (!result)
				fprintf(text, "%s, turn %u of %u: %s\n", sheet->run->workload->name,
					run + 1, sheet->runs, sheet->names[store]);
		}
	return result;
}

static int run_workload(const struct peers_options *options, const struct stores *stores,
			const struct peers_workload *workload, const struct bench_output *output,
			struct bench_goals *goals, struct error_text *error)
{
	uint32_t mean = PEER_KEY_BYTES + (workload->value_min + workload->value_max) / 2;
	struct peers_run run = {
		.workload = workload,
		.pairs = max_u64(options->data_bytes / mean, 1),
		.lookups = options->lookups,
		.threads = (uint32_t)options->threads,
		.buffer_bytes = options->buffer_bytes,
		.index = options->index,
		.seed = options->seed,
	};
	struct peers_sheet *sheet = calloc(1, sizeof(*sheet));
	int result = sheet ? peers_run_begin(&run, error)
			   : error_set(error, -ENOMEM, "out of memory");

	run.updates = run.pairs / 2;
	run.cache_bytes = options->cache_bytes ? options->cache_bytes
					       : max_u64(run.pairs * 32, UINT64_C(32) << 20);
	if (options->limits)
		run.memory_bytes = run.cache_bytes + run.buffer_bytes + PROGRAM_BYTES;
	if (!result) {
		sheet->run = &run;
		sheet->data_bytes = peers_data_bytes(&run);
		sheet->stores = stores->count;
		sheet->runs = (uint32_t)options->runs;
		for (uint32_t i = 0; i < stores->count; i++)
			sheet->names[i] = stores->types[i]->name;
		result = turns(options, stores, sheet, output->text, error);
	}
	if (!result)
		peers_report(output, sheet, goals);
	peers_run_end(&run);
	free(sheet);
	return result;
}

int peers_bench_main(int argc, char **argv, FILE *json, FILE *text)
{
	const struct bench_output output = { json, text };
	struct bench_goals goals = { .count = 0 };
	struct error_text error = { "" };
	struct peers_options options;
	struct stores stores;
	int result = parse(&options, argc, argv, &error);

	if (result != 0)
		return bench_do_without("peers", help, result, &error, json, text);
	result = find_stores(&options, &stores, text, &error);
	options.limits = !result && can_limit(text);
	for (size_t i = 0; !result && i < WORKLOADS; i++)
		if (!options.workloads || options.workloads & 1U << i)
			result = run_workload(&options, &stores, &workloads[i], &output, &goals,
					      &error);
	if (result) {
		fprintf(text, "muninn-bench peers: %s\n", error.text);
		return FAILED;
	}
	return bench_goals_report(&output, &goals) ? FAILED : DONE;
}
