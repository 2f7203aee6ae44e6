/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench disk-history`: what the history of a disk costs, in space and in time. A thin
 * volume on flash in memory, without iSCSI.
 */
#ifndef MUNINN_BENCH_DISK_HISTORY_H
#define MUNINN_BENCH_DISK_HISTORY_H

#include <stdint.h>
#include <stdio.h>

#include "bench/turns.h"
#include "common/error.h"

struct disk_history_options {
	uint64_t volume_bytes; /* that the initiator sees */
	uint64_t pages;        /* of 4 KiB that are written first, all over the volume */
	uint32_t snapshots;
	uint32_t overwrites; /* of random ones of these pages, before each snapshot */
	uint32_t reads;      /* of random pages, for each figure */
	uint32_t rollbacks, exposures;
	uint64_t size_bytes; /* page data of the device */
	uint64_t seed;
};

/* Times of one kind of operation, in milliseconds. */
struct disk_history_times {
	uint32_t count;
	double median, most;
};

struct disk_history_figures {
	/* Page reads of a READ of 4 KiB: when filled; after the overwrites, without snapshots
	 * between them and with; at random versions. */
	double reads_filled, reads_control, reads_current, reads_versions;
	double snapshot_bytes, snapshot_programs; /* mean of one, which are its own records */
	double snapshot_programs_most;
	double version_bytes; /* mean of what was put since the version before */
	double rollback_bytes;
	struct disk_history_times snapshot, rollback, exposure, clone;
};

struct disk_history_options disk_history_defaults(void);

/* Every byte read is checked. A negative error with a sentence. */
int disk_history_measure(const struct disk_history_options *options,
			 struct disk_history_figures *figures, struct error_text *error);

/* Runs the command line; argv[0] is not looked at. Returns the exit code of the program. */
int disk_history_main(int argc, char **argv, FILE *json, FILE *text);

#endif
