/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench list`: what an entry of LIST and LIST COLLECTION costs, by its place in the list.
 * OSD commands on an engine on flash in memory, without iSCSI.
 */
#ifndef MUNINN_BENCH_LIST_BENCH_H
#define MUNINN_BENCH_LIST_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

struct list_bench_options {
	uint64_t objects;      /* in the partition, all of them members of one collection */
	uint32_t answer_bytes; /* allocation length of each command */
	uint32_t steps;        /* parts of the list, each of which is a point of the curve */
	uint64_t size_bytes;   /* page data of the device */
	uint32_t nodes;        /* nodes of directories kept in memory, 0 = the engine's default */
	bool ids_only;         /* not the lists with an attribute of each entry */
};

struct list_bench_options list_bench_defaults(void);

/*
 * Fills a device and lists it six times, continued from command to command: objects and members,
 * their IDs, their IDs while the list changes between commands, and with an attribute each. A JSON
 * object for each step to `json`, a table to `text`. Checks every ID. 0; negative with a sentence.
 */
int list_bench_run(const struct list_bench_options *options, FILE *json, FILE *text,
		   struct error_text *error);

/* Runs the command line; argv[0] is not looked at. Returns the exit code of the program. */
int list_bench_main(int argc, char **argv, FILE *json, FILE *text);

#endif
