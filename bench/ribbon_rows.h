/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Whole rows of the ribbon index, as long as those of a full device: memory, and pages named. */
#ifndef MUNINN_BENCH_RIBBON_ROWS_H
#define MUNINN_BENCH_RIBBON_ROWS_H

#include <jansson.h>

#include "bench/ribbon_bench.h"

/* Prints an object of pairs of a name and a number, and takes it over. */
void ribbon_bench_print(json_t *object, FILE *json, FILE *text);

/* CPU seconds of this thread. */
double ribbon_bench_seconds(void);

/*
 * Seals segments of 1,024 keys in each row, with locations below `locations`, and looks for all
 * keys, for the oldest ones, and for absent ones. 0, -ENOMEM, -EBADMSG with a sentence.
 */
int ribbon_bench_rows(const struct ribbon_bench_options *options, uint32_t locations,
		      const char *name, FILE *json, FILE *text, struct error_text *error);

#endif
