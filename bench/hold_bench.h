/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench hold`: how long each command of the target, at its largest, holds up the others.
 * OSD commands on an engine on flash in memory, without iSCSI. A second thread reads 4 KiB all the
 * time, a third one writes 4 KiB 2,000 times a second at most.
 */
#ifndef MUNINN_BENCH_HOLD_BENCH_H
#define MUNINN_BENCH_HOLD_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"
#include "engine/engine.h"
#include "osd/osd.h"
#include "wire/wire.h"

struct hold_options {
	uint32_t mib;           /* of the large objects */
	uint32_t members;       /* of the large collection, and objects of a CREATE: up to 65535 */
	uint32_t modifications; /* of the object that UNDO takes back */
	uint32_t records_max;   /* a command that holds others up for more misses the goal */
	const char *only;       /* part of the names of the commands to run; NULL: all */
};

/* What the target promises of each command (osd/portions.h): some hundredths of a second. */
#define HOLD_RECORDS_MAX 8448u

struct hold_options hold_defaults(void);

/*
 * Runs every command, a JSON object for each to `json`, a table to `text`. 0; negative with a
 * sentence: it could not run, a command ended with an error, or some missed the goal.
 */
int hold_bench_run(const struct hold_options *options, FILE *json, FILE *text,
		   struct error_text *error);

/* Runs the command line; argv[0] is not looked at. Returns the exit code of the program. */
int hold_bench_main(int argc, char **argv, FILE *json, FILE *text);

/* ---- the scene, for hold_commands.c ---- */

#define HOLD_PARTITION UINT64_C(0x10000)
/* Objects of it. */
#define HOLD_READ       UINT64_C(0x10000) /* what the other thread reads */
#define HOLD_LARGE      UINT64_C(0x10001)
#define HOLD_MODIFIED   UINT64_C(0x10002) /* changed `modifications` times */
#define HOLD_OLD        UINT64_C(0x10003) /* as large; all of it written once more since */
#define HOLD_APPENDED   UINT64_C(0x10004)
#define HOLD_WRITTEN    UINT64_C(0x10005) /* what a third thread writes */
#define HOLD_COLLECTION UINT64_C(0x10010) /* of all members */
#define HOLD_PART       UINT64_C(0x10012) /* of as many as one transaction may be about */
#define HOLD_TRACKED    UINT64_C(0x10013) /* made of HOLD_COLLECTION */
#define HOLD_TRACKING   UINT64_C(0x10011)
#define HOLD_FREE       UINT64_C(0x10100) /* there is none of this ID */
#define HOLD_MEMBER     UINT64_C(0x20000) /* the first member */

struct hold_scene {
	const struct hold_options *options;
	struct nand *nand;
	struct engine *engine;
	struct osd_device *device;
	uint64_t object_bytes;
	uint8_t *data; /* of that size, to be written */
	uint8_t *answer;
	size_t answer_bytes;
	uint64_t now_ms;   /* by its clock */
	uint64_t sequence; /* when HOLD_OLD had its first content */
};

/* A command: its Data-Out is made of parts. */
struct hold_call {
	struct osd_cdb cdb;
	uint8_t *out; /* the caller frees it */
	size_t out_length, out_capacity;
	uint64_t in_length;  /* of command data */
	const uint8_t *data; /* in place of `out`: the command data alone */
};

struct hold_command {
	const char *name;
	/*
	 * Makes the command, as large as it can be; the scene is as it was before all commands but
	 * for those before it.
	 */
	void (*fill)(struct hold_scene *scene, struct hold_call *call);
};

extern const struct hold_command hold_commands[];
extern const size_t hold_command_count;

/* What the commands have in common; each begins with hold_call_begin. */
void hold_call_begin(struct hold_call *call, uint16_t action, uint64_t object);
/* Executes without measuring. -EIO with a sentence. */
int hold_execute(struct hold_scene *scene, struct hold_call *call, struct error_text *error);

#endif
