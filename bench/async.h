/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Look-ups of one thread that are under way at once: while the flash reads the page of one, the
 * thread begins others, as a served unit does.
 */
#ifndef MUNINN_BENCH_ASYNC_H
#define MUNINN_BENCH_ASYNC_H

#include <stdint.h>

#include "bench/store.h"

struct async_lookups {
	uint32_t depth;      /* under way at once, 1..ASYNC_DEPTH_MAX */
	uint64_t operations; /* 0.. */
	void *context;       /* of the functions below */
	/*
	 * Looks up what operation `number` means, or goes on with that: bench_store_get or its
	 * like. -EINPROGRESS: pages are missing.
	 */
	int (*lookup)(void *context, uint64_t number);
	/* It has ended well, `latency_ns` after it began. */
	void (*done)(void *context, uint64_t latency_ns);
	uint64_t (*now_ns)(struct bench_store *store);
};

/* 0, or the result of the first one that failed; -ENOMEM, -errno: there are no stages. */
int async_run(struct bench_store *store, const struct async_lookups *lookups);

#endif
