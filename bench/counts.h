/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What a device and its engine have counted, for benchmarks that tell the cost of an operation. */
#ifndef MUNINN_BENCH_COUNTS_H
#define MUNINN_BENCH_COUNTS_H

#include "engine/engine.h"
#include "nand/nand.h"

struct counts {
	uint64_t reads, programs; /* pages, for whatever cause */
	uint64_t record_bytes;    /* put */
};

/* `engine` NULL: no records are counted. */
struct counts counts_read(struct engine *engine, struct nand *nand);

#endif
