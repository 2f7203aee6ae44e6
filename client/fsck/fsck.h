/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the parts of muninn-fsck share. */
#ifndef MUNINN_CLIENT_FSCK_FSCK_H
#define MUNINN_CLIENT_FSCK_FSCK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/finding.h"

/* Those of fsck(8). */
enum fsck_exit {
	FSCK_CLEAN = 0,
	FSCK_REPAIRED = 1, /* what was wrong is not wrong with the copy, and nothing was lost */
	FSCK_LEFT = 4,     /* something is wrong, or was lost in the copy */
	FSCK_CANNOT = 8,   /* not examined to the end, not copied, or not reported */
	FSCK_USAGE = 16,
	FSCK_INTERRUPTED = 32,
};

struct fsck_options {
	const char *image;
	const char *to; /* with --repair: where the copy goes; NULL: nothing is copied */
	bool versions, json, quiet, all;
};

/* What is there, and what was copied of it. */
struct fsck_counts {
	uint64_t partitions, objects, collections, versions, data_bytes;
};

/* ---- report.c ---- */

struct fsck_report {
	const struct fsck_options *options;
	struct findings findings;
	uint64_t by_kind[FINDING_KINDS];
	const char *index;   /* of the device, by its name */
	json_t *list;        /* with --json */
	uint64_t losses;     /* findings that mean that something of users' is lost */
	bool shows_progress; /* standard error is a terminal */
	bool drawn;          /* a line of progress stands there */
	uint64_t drawn_ms;
};

void report_begin(struct fsck_report *report, const struct fsck_options *options);

/* As of engine_check; the context is the report. */
void report_progress(void *report, const char *step, uint64_t done, uint64_t total);

/* A line that is no finding, on standard error. */
void report_note(struct fsck_report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The end: what was looked at and copied (NULL: nothing), and the exit code in words. */
void report_end(struct fsck_report *report, const struct fsck_counts *found,
		const struct fsck_counts *copied, enum fsck_exit code);

/* The same where there is no result. Returns `code`. */
enum fsck_exit report_failure(struct fsck_report *report, enum fsck_exit code, const char *text);

/* ---- examine.c ---- */

/* Examines the image, and copies what is whole if that is asked for. */
enum fsck_exit fsck_run(struct fsck_report *report);

/* Ends what is half made. Safe in a signal handler. */
void fsck_clean_up(void);

#endif
