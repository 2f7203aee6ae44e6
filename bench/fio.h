/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What fio(1) measures on a part of a file: what the drive can do without us. */
#ifndef MUNINN_BENCH_FIO_H
#define MUNINN_BENCH_FIO_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct bench_fio {
	const char *path;
	uint64_t offset, bytes; /* of the file; made, and written over once, if it is shorter */
	bool write;             /* sequential, once over; else random reads for `seconds` */
	uint32_t block_bytes, depth;
	double seconds;
};

/*
 * Runs fio(1), engine io_uring, direct, registered buffers and files. Fills operations and bytes a
 * second.
 */
int bench_run_fio(const struct bench_fio *fio, double *operations, double *bytes,
		  struct error_text *error);

#endif
