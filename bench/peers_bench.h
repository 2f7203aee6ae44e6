/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench peers`: Muninn's record store beside RocksDB, LevelDB and LMDB, on one workload,
 * in turns.
 *
 * In a turn each store does all phases on fresh files. Each phase is a process of its own, so that
 * a store begins it with nothing in memory. The value of a pair follows from its key and from how
 * often it was put, so that every look-up is checked to the last byte.
 */
#ifndef MUNINN_BENCH_PEERS_BENCH_H
#define MUNINN_BENCH_PEERS_BENCH_H

#include <stdio.h>

#include "bench/drive.h"
#include "bench/peers/peer.h"
#include "bench/turns.h"
#include "engine/muninn/index/index_options.h"

extern const struct peer_type peer_muninn;

/* Runs the command: exit code 0; 1: something failed, or a goal was missed; 2: wrong options. */
int peers_bench_main(int argc, char **argv, FILE *json, FILE *text);

/* What pairs there are. Keys are 8 bytes; a value has value_min to value_max bytes. */
struct peers_workload {
	const char *name;
	uint32_t value_min, value_max;
	bool goals_of_load; /* its load and its look-ups have a goal */
	bool goal_of_bytes; /* and what it writes to the drive */
};

enum { PEERS_VALUE_MAX = 4096, PEERS_THREADS_MAX = 64 };

enum peers_phase {
	PEERS_LOAD,
	PEERS_PRESENT,
	PEERS_ABSENT,
	PEERS_PRESENT_DEEP,
	PEERS_UPDATE,
	PEERS_PRESENT_AGAIN,
	PEERS_PHASES
};

/* What a phase took. */
struct peers_result {
	double seconds;        /* of puts until they are settled; of look-ups */
	double seconds_to_put; /* until the last put was acknowledged */
	uint64_t operations;
	uint64_t bytes; /* keys and values of the operations */
	uint64_t page_reads;
	uint64_t memory_bytes; /* of the process, at the end, beyond what it began with */
	bool has_index;        /* the store tells at the end what its index takes: */
	uint64_t index_bytes;
	bool has_drive; /* the kernel counts the drive's requests */
	struct bench_drive drive;
};

/* What all turns on a workload share. */
struct peers_run {
	const struct peers_workload *workload;
	uint64_t pairs, lookups, updates;
	uint32_t threads; /* of PEERS_PRESENT_DEEP */
	uint64_t cache_bytes, buffer_bytes, seed;
	enum index_kind index; /* Muninn's */
	/* That a process may have, with the host's page cache for its files; 0: any. */
	uint64_t memory_bytes;
	uint32_t *puts; /* of each pair, how often it was put; shared with the phases' processes */
};

/* 0, or -ENOMEM with a sentence. Ended by peers_run_end. */
int peers_run_begin(struct peers_run *run, struct error_text *error);
void peers_run_end(struct peers_run *run);

/* Keys and values of all pairs, each once. */
uint64_t peers_data_bytes(const struct peers_run *run);

/*
 * A turn of a store in `folder`, which is empty, and keeps what the last phase leaves. `results`:
 * of all phases; `space`: what the files take after the load. An error of a store, or a look-up
 * that does not find what was put (-EILSEQ), ends it, with a sentence.
 */
int peers_turn(const struct peers_run *run, const struct peer_type *type, const char *folder,
	       struct peers_result results[PEERS_PHASES], uint64_t *space,
	       struct error_text *error);

/* The results of all stores, turn by turn. */
enum { PEERS_STORES_MAX = 8, PEERS_RUNS_MAX = 9 };
struct peers_sheet {
	const struct peers_run *run;
	uint64_t data_bytes;
	uint32_t stores, runs;
	const char *names[PEERS_STORES_MAX]; /* the first one is Muninn's */
	struct peers_result results[PEERS_STORES_MAX][PEERS_RUNS_MAX][PEERS_PHASES];
	uint64_t space[PEERS_STORES_MAX][PEERS_RUNS_MAX];
};

/* Writes the JSON objects and the table of a workload, and adds its goals; peers_report.c. */
void peers_report(const struct bench_output *output, const struct peers_sheet *sheet,
		  struct bench_goals *goals);

#endif
