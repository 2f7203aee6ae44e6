/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A phase: a number of operations of one kind over a store, and what they cost.
 *
 * Time is virtual or real. Virtual time is the device's own clock, which passes only with what the
 * flash does. So it depends on the engine and the seed and on nothing else. The latency of an
 * operation is what it makes the flash do: a put that seals a segment pays for all pages of it.
 */
#ifndef MUNINN_BENCH_PHASE_H
#define MUNINN_BENCH_PHASE_H

#include "bench/latencies.h"
#include "bench/merging.h"
#include "bench/store.h"
#include "engine/engine.h"

struct phase_report {
	struct bench_phase phase;
	uint64_t pairs;      /* inserted so far */
	uint64_t operations; /* done */
	uint64_t absent;     /* lookups that rightly found nothing */
	uint64_t window;     /* of oldest and newest, else 0 */
	double seconds;
	double processor_seconds;    /* of all threads of the process */
	struct latencies *latencies; /* nanoseconds */
	/* During the phase, whatever the cause. */
	uint64_t page_reads, page_writes, erases, false_positive_reads;
	uint64_t table_page_reads; /* of the reads, those of tables that are not in memory */
	uint64_t segments_sealed, sealed_record_bytes;
	struct merge_costs merge;
	/* At its end. */
	uint64_t live;
	uint64_t engine_allocated; /* heap memory of the process since before the engine was opened;
				      0: not known */
	struct record_statistics statistics;
};

/*
 * Runs a phase. Inserts go on behind the pairs that are there; an insert by a
 * distribution that repeats draws from all pairs and counts them all as inserted. Everything else
 * uses the pairs inserted so far. If the phase says no window, `oldest` means the pairs of the
 * first read-only table of each row (or the older half if none is complete), and `newest` those in
 * no complete table. Both are as of the last insert, estimated from the engine's statistics.
 *
 * `number` makes the random numbers of this phase its own. On success the caller ends the report
 * with phase_report_free. -ENOSPC, -EILSEQ, -EINVAL, -ENOMEM, -EIO with a sentence.
 */
int bench_phase_run(struct bench_store *store, const struct bench_phase *phase, uint32_t number,
		    struct phase_report *report, struct error_text *error);

void phase_report_free(struct phase_report *report);

/*
 * Share of the sealed segments' bytes that records take: of the whole store, and of what the phase
 * sealed. NAN: none.
 */
double phase_utilization(const struct phase_report *report, const struct bench_store *store);
double phase_utilization_of_phase(const struct phase_report *report,
				  const struct bench_store *store);

#endif
