/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The store under measurement: a fresh device, a freshly formatted engine, and what must be found
 * in it.
 *
 * The value of pair n follows from its key and the sequence number of its newest record. So a
 * lookup is checked byte by byte without a copy of the values; 4 bytes are kept for each pair.
 */
#ifndef MUNINN_BENCH_STORE_H
#define MUNINN_BENCH_STORE_H

#include <pthread.h>

#include "bench/options.h"
#include "engine/records/records.h"

struct bench_store {
	struct bench_options options;
	struct nand *nand;
	struct nand_geometry geometry;
	struct record_store *records;
	pthread_rwlock_t lock; /* a put excludes all else; lookups run side by side */
	bool random_keys;      /* key n is the n-th of a permutation; otherwise keys ascend */
	struct permutation keys;
	uint32_t *expected;         /* of each pair: sequence number of its newest record, 0 = none,
				       EXPECTED_DELETED */
	uint64_t inserted;          /* pairs 0..inserted - 1 may exist */
	uint64_t live;              /* pairs that exist */
	struct record_keep keep;    /* what merging keeps; zeros: the present is all */
	struct record_merge merged; /* what merging has done so far */
	uint64_t clock_ns;          /* what asking for the thread's processor time takes of it */
	uint64_t allocated_before;  /* by the process, before the engine was opened; 0: not known */
	uint64_t oldest_window, newest_window; /* the pairs that the distributions mean; phase.h */
};

#define EXPECTED_DELETED (UINT32_C(1) << 31)
#define SEQUENCE_MAX     (EXPECTED_DELETED - 1)

/*
 * Creates device and engine. -EINVAL, -ENOMEM, -errno with a sentence. Ended by bench_store_close.
 */
int bench_store_open(struct bench_store **store, const struct bench_options *options,
		     struct error_text *error);

/*
 * As if the process had died: the engine forgets what it had in memory, and opens the device again.
 * -errno with a sentence.
 */
int bench_store_crash(struct bench_store *store, struct error_text *error);

/* NULL is allowed. */
void bench_store_close(struct bench_store *store);

/* The key of a pair. */
struct record_key bench_store_key(const struct bench_store *store, uint64_t pair);

/* Bytes of a value, or space for it. */
#define VALUE_BYTES_MAX 4096

/*
 * Puts a pair once more; `deleted`: a tombstone. -ENOSPC, -EFBIG (more than SEQUENCE_MAX puts),
 * -EIO.
 */
int bench_store_put(struct bench_store *store, uint64_t pair, bool deleted);

/*
 * Looks a pair up and checks what it finds. `found`: the pair exists. -EILSEQ: a wrong record or
 * other bytes than were put, or it is missing, or it should be.
 */
int bench_store_get(struct bench_store *store, uint64_t pair, bool *found);

/*
 * Around what the store or the flash does, not around checks: with --time virtual+processor, the
 * device's clock goes on by what this thread has taken of a processor meanwhile. The functions of
 * this file do so by themselves.
 */
uint64_t bench_store_charge_begin(const struct bench_store *store);
void bench_store_charge_end(struct bench_store *store, uint64_t begun);

/* Looks up a key that no pair has; `number` says which. -EILSEQ: found. */
int bench_store_get_absent(struct bench_store *store, uint64_t number);

/* Engine and device by name: the sentence for an error of the three functions above. */
int bench_store_explain(const struct bench_store *store, int result, const char *operation,
			uint64_t pair, struct error_text *error);

#endif
