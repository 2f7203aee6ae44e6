/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench iscsi`: a served OSD unit or disk beside stock tgtd's disks `null` and `rdwr`, and
 * beside fio on the drive, in alternating turns.
 */
#ifndef MUNINN_BENCH_ISCSI_BENCH_H
#define MUNINN_BENCH_ISCSI_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/load.h"
#include "bench/servers.h"
#include "bench/turns.h"
#include "common/error.h"

#define ISCSI_SETTINGS_BYTES 1024

struct iscsi_options {
	const char *memory, *drive;          /* folders for images: a memory file system, a drive */
	const char *backend;                 /* of the units; NULL: the service's default */
	const char *muninnd;                 /* the program */
	char settings[ISCSI_SETTINGS_BYTES]; /* further lines of a unit's configuration */
	uint64_t memory_size, drive_size;    /* of units */
	uint64_t bytes;                      /* that the case with 1 MiB WRITEs writes */
	double seconds;                      /* of each measurement */
	double sustained;                    /* the same of those that go on for long */
	uint32_t turns;
	uint32_t cases; /* bits, by the place in the table of cases */
	bool quick;
	uint64_t seed;
};

/* Runs the command line; argv[0] is not looked at. Returns the exit code of the program. */
int iscsi_bench_main(int argc, char **argv, FILE *json, FILE *text);

struct iscsi_options iscsi_bench_defaults(void);

/* ---- places: servers in a folder ---- */

/* Units of both servers with images in one folder of their own, which goes at the end. */
struct iscsi_place {
	const struct iscsi_options *options;
	bool on_drive, disks; /* disks: Muninn's units are no OSDs */
	const char *backend;
	char folder[SERVER_PATH_BYTES];
	struct bench_server ours, stock;
	char urls[4][SERVER_URL_BYTES];
	struct load_unit muninn, idle, null, rdwr;
	uint64_t size;
};

/* What a place is to be. */
struct iscsi_wish {
	bool on_drive, disks;
	const char *backend; /* NULL: as the command line says */
};

/* Starts both servers. `span`: the bytes of each unit that commands use; made, but not written. */
int iscsi_place_open(struct iscsi_place *place, const struct iscsi_options *options,
		     const struct iscsi_wish *wish, uint64_t span, struct error_text *error);
void iscsi_place_close(struct iscsi_place *place);

/* Writes all of a unit's span. */
int iscsi_place_fill(struct iscsi_place *place, const struct load_unit *unit,
		     struct error_text *error);

/* Stops Muninn, makes the host forget its images, and starts it again. */
int iscsi_place_chill(struct iscsi_place *place, struct error_text *error);

/* Stops Muninn and starts it with new images. */
int iscsi_place_renew(struct iscsi_place *place, struct error_text *error);

/* ---- measurements ---- */

enum iscsi_side {
	SIDE_MUNINN,
	SIDE_NULL,
	SIDE_RDWR,
	SIDE_FIO,
	SIDE_FIO_PAGE, /* moves what a page and its spare area take of a drive */
	ISCSI_SIDES,
};

/* What one side did in one turn. */
struct iscsi_turn {
	double rate; /* commands a second */
	double p50_us, p99_us, p999_us, max_us;
	double server_us, client_us;          /* of processors, a command of any stream */
	double fairness;                      /* least : most of the sessions */
	double drive_reads, drive_writes;     /* bytes of the drive for each byte of commands */
	double read_requests;                 /* of the drive, a command */
	double process_reads, process_writes; /* bytes of tgtd for each byte of commands */
};

struct iscsi_turns {
	const char *side;
	bool rates_only; /* somebody else has measured */
	struct iscsi_turn turns[BENCH_RUNS_MAX];
	uint32_t count;
	bool drive_known; /* the kernel counts for the folder's drive */
};

/* Runs the load and fills the next turn by its first stream. */
int iscsi_measure(struct iscsi_place *place, struct load *load, struct iscsi_turns *turns,
		  struct error_text *error);

/* A field of all turns; ISCSI_FIELD(p50_us). */
#define ISCSI_FIELD(field) offsetof(struct iscsi_turn, field)
double iscsi_median(const struct iscsi_turns *turns, size_t field);

/* Prints the medians of a side's turns. `stream`: what it did. */
void iscsi_report(const struct bench_output *output, const char *name,
		  const struct load_stream *stream, const struct iscsi_turns *turns);

/* ---- cases ---- */

struct iscsi_context {
	const struct iscsi_options *options;
	const struct bench_output *output;
	struct bench_goals *goals;
	struct iscsi_place place; /* open when `place_open` */
	bool place_open, filled;
};

/* A place as it is wanted, with filled units: the one that is open, or a new one. */
int iscsi_want_place(struct iscsi_context *context, const struct iscsi_wish *wish,
		     struct error_text *error);
void iscsi_leave_place(struct iscsi_context *context);

struct iscsi_case {
	const char *name, *what;
	int (*run)(struct iscsi_context *context, struct error_text *error);
};
extern const struct iscsi_case iscsi_cases[];
extern const unsigned iscsi_case_count;

/* iscsi_special.c */
int iscsi_case_tail(struct iscsi_context *context, struct error_text *error);
int iscsi_case_flush(struct iscsi_context *context, struct error_text *error);
int iscsi_case_sessions(struct iscsi_context *context, struct error_text *error);

#endif
