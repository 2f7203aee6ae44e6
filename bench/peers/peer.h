/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A key-value store that `muninn-bench peers` measures. Muninn's record store is one
 * (bench/peers_muninn.c); each other one is a library of its own, build/lib/peer_NAME.so, so that
 * muninn-bench needs none of their libraries.
 *
 * A process opens a store, does one kind of work and closes it. Puts come from one thread, and no
 * look-up runs beside them. Look-ups come from many.
 */
#ifndef MUNINN_BENCH_PEERS_PEER_H
#define MUNINN_BENCH_PEERS_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* The name of a library's `struct peer_type`. */
#define PEER_SYMBOL "peer"

struct peer_options {
	const char *folder; /* there, and empty before the first opening; without a line's end */
	bool create;
	uint64_t cache_bytes;  /* memory for filters, indexes and blocks */
	uint64_t buffer_bytes; /* memory for what is not in tables yet */
	uint64_t data_bytes;   /* keys and values of all pairs */
	uint64_t spare_bytes;  /* of them that are put once more */
	uint32_t value_bytes;  /* of a value, on average */
	bool mixed;            /* not all values are as long */
	int index;             /* Muninn's, engine/muninn/index/index_options.h; 0: the default */
};

struct peer_type {
	const char *name;

	/* Errors of all: -errno, with a sentence in `error`. */
	int (*open)(const struct peer_options *options, void **peer, struct error_text *error);

	/* Puts a pair, in place of one with its key. It survives the end of the process. */
	int (*put)(void *peer, uint64_t key, const void *value, uint32_t bytes,
		   struct error_text *error);

	/* Copies at most `capacity` bytes of the value. -ENOENT, without a sentence: none. */
	int (*get)(void *peer, uint64_t key, void *value, uint32_t capacity, uint32_t *bytes,
		   struct error_text *error);

	/*
	 * Waits until everything that was put is stable on the host's storage, and until the store
	 * has nothing left to do.
	 */
	int (*settle)(void *peer, struct error_text *error);

	/* Pages that look-ups have read from flash since the opening. NULL: it has no pages. */
	uint64_t (*page_reads)(void *peer);

	/*
	 * Bytes of memory of its filters and indexes, by its own count. NULL: it does not tell;
	 * false: it can't now.
	 */
	bool (*index_bytes)(void *peer, uint64_t *bytes);

	/* The store is settled, or nothing was put. */
	int (*close)(void *peer, struct error_text *error);
};

/* Big-endian, so that the order of bytes is that of numbers. */
#define PEER_KEY_BYTES 8
static inline void peer_key(uint64_t key, char bytes[PEER_KEY_BYTES])
{
	for (int i = 0; i < PEER_KEY_BYTES; i++)
		bytes[i] = (char)(key >> (8 * (PEER_KEY_BYTES - 1 - i)));
}

#endif
