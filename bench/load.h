/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * An initiator that keeps logical units busy: OSD READ, WRITE and FLUSH, or the same of a disk, on
 * several sessions with several commands in flight each, from one thread. Both kinds of unit are
 * reached by one library (client/osd_client.h) and one loop, so they cost the initiator the same
 * but for the CDB.
 *
 * Every 4 KiB that are written begin with a number that follows from their place; `verify` compares
 * it in what is read.
 */
#ifndef MUNINN_BENCH_LOAD_H
#define MUNINN_BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench/latencies.h"
#include "common/error.h"

enum { LOAD_SESSIONS_MAX = 64, LOAD_DEPTH_MAX = 1024, LOAD_PAGE_BYTES = 4096 };

enum load_operation {
	LOAD_READ,
	LOAD_WRITE,
	LOAD_MIXED, /* one or the other by chance, half of each */
	LOAD_FLUSH, /* of the whole unit */
};

/* A unit, and where on it. An OSD has objects of `object_bytes`, one behind the other. */
struct load_unit {
	const char *url;
	bool osd; /* else a disk with blocks of 512 bytes */
	uint64_t span_bytes, object_bytes;
};

/* Commands of one kind to one unit. */
struct load_stream {
	struct load_unit unit;
	enum load_operation operation;
	uint32_t block_bytes; /* of a command; a multiple of LOAD_PAGE_BYTES that divides
				 `object_bytes`, of disks of 512 */
	uint32_t shift_bytes; /* by which all places of a disk are behind multiples of that; of 512
				 a multiple, too */
	uint32_t depth;       /* commands in flight of each session */
	uint32_t sessions;
	bool random;    /* where; else one block behind the other, sessions in parts of their own */
	bool verify;    /* what was read */
	double rate;    /* commands a second of all sessions together; 0: as many as there can be.
			   With a rate, latencies count from when a command was due */
	uint64_t bytes; /* to move in all; 0: until the time is over */

	/* Results, of the time behind the warming up. */
	struct latencies *latencies; /* the caller frees it, by free() */
	uint64_t commands, session_commands[LOAD_SESSIONS_MAX];
};

struct load {
	struct load_stream *streams;
	uint32_t stream_count;
	/*
	 * Ignored when the streams have a number of bytes. Each lasts longer, until as many
	 * commands of the first stream have ended as are under way at once.
	 */
	double warm_up, seconds;
	bool flush;   /* at the end, within the time: FLUSH of the first stream's unit */
	pid_t server; /* whose processor time counts; 0: none */
	uint64_t seed;

	/* Results. */
	double elapsed;                        /* behind the warming up */
	double server_seconds, client_seconds; /* of processors, then */
};

/* Runs the streams side by side. Negative with a sentence: nothing of the results is valid. */
int load_run(struct load *load, struct error_text *error);
/* Frees the latencies. */
void load_free(struct load *load);

/* Makes partition and objects for a fresh OSD. */
int load_make_objects(const struct load_unit *unit, struct error_text *error);

/* For a signal's handler: loads that run, and later ones, end with -EINTR. */
void load_interrupt(void);

/* What the page at a place of a unit begins with. */
uint64_t load_stamp(uint64_t place);

#endif
