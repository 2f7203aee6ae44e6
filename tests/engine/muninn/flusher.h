/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A thread's flushes beside transactions, done at moments that a seed chooses: a run repeats. The
 * NVRAM gets to the host's storage in parts, each as it is at its own moment; in between
 * transactions, seals and merges go on.
 */
#ifndef MUNINN_TESTS_ENGINE_MUNINN_FLUSHER_H
#define MUNINN_TESTS_ENGINE_MUNINN_FLUSHER_H

#include "engine/muninn/store.h"

enum { FLUSHER_PARTS = 6 };

struct flusher {
	uint64_t random;
	bool under_way;
	uint64_t number;    /* that flush_begin gave */
	uint64_t committed; /* the caller's transaction at that moment */
	uint32_t left;      /* parts that are not synced yet, a bit each */
	uint64_t finished;  /* flushes */
};

/*
 * A moment at which it may do something. `committed`: the caller's last transaction. *flushed rises
 * to what a flush that ends has promised. -EIO: there is no power.
 */
int flusher_act(struct flusher *flusher, struct muninn_store *store, uint64_t committed,
		uint64_t *flushed);

#endif
