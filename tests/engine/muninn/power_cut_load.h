/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The load whose every operation the power fails in, for test_power_cut.c: transactions, flushes,
 * seals and merges on a device that has been written before, and what is left of them.
 */
#ifndef MUNINN_TESTS_ENGINE_MUNINN_POWER_CUT_LOAD_H
#define MUNINN_TESTS_ENGINE_MUNINN_POWER_CUT_LOAD_H

#include "engine/open.h"
#include "nand/rehearsal.h"
#include "tests/engine/muninn/flusher.h"
#include "tests/engine/sealers.h"

/* With room for parity. */
enum { SPARE_BYTES_PARITY = 160 };

enum { KEYS = 64, TRANSACTIONS = 40 };

/* Of each value. With 28 bytes of header two records nearly fill a page; 160 span pages. */
enum { VALUE_BYTES = 200, SPANNED_BYTES = 160 };
extern uint32_t load_value_bytes;

/* Whether some keys mostly have values that are larger: of a page, or of three quarters of it. */
extern bool load_has_larger;
enum { LARGER_BYTES = 512, LARGER_KEYS = 23 };

/* The load finds space for so few segments in a growing table. */
extern uint32_t load_stage_space;

/* Of half of the keys. */
extern enum record_class load_class_of_keys;

extern struct nand_geometry load_geometry;
extern struct engine_options load_options;

struct load {
	struct nand *stage; /* the device that every run begins with, closed after `first` - 1
			       transactions */
	uint64_t nvram_bytes;
	uint64_t first;
	uint64_t completed;     /* groups of rows, before the runs */
	uint32_t spanned;       /* pages */
	bool points;            /* let the power fail between stores to NVRAM, too */
	bool seals_beside;      /* full buffers are sealed behind the transactions ... */
	struct sealers sealers; /* ... by these */
	uint64_t most_at_once;  /* buffers, over all runs */
	bool flushes_beside;    /* flushes go on beside the transactions ... */
	struct flusher flusher; /* ... by this */
	uint64_t flushes;       /* that ended, over all runs */
	uint64_t runs;
	/* A merge in pieces beside the transactions then; over all runs those that freed. */
	enum { NOT_MERGING, MERGING_STEPPED, MERGING_RAN } merging;
	struct record_merge merge;
	uint64_t merges;

	uint64_t committed, flushed; /* last transactions of this run */
	uint64_t expected[TRANSACTIONS + 2]
			 [KEYS]; /* after transaction first - 1 + n: the last that put the key */

	struct {
		uint64_t programs, erases, syncs, points;
	} in_flight; /* what the power failed in, over all runs */
	struct {
		uint64_t present;  /* opened: all that was committed */
		uint64_t older;    /* opened: all that some earlier transaction left, not older than
				      the last flush */
		uint64_t refused;  /* did not open */
		uint64_t detected; /* opened; what is missing is answered by an error */
		uint64_t lost;     /* opened; silently without something that was flushed */
		uint64_t torn;     /* opened; no transaction ever left this */
		uint64_t wrong;    /* opened; data that were never put under the key */
	} outcomes;
	char refusal[512];
};

/* Makes the device that every run begins with. */
void load_set_stage(struct load *load);

/* As struct nand_rehearsal wants them, with a load as their context. */
void load_prepare(struct nand *nand, void *context);
void load_run(struct nand *nand, void *context);
void load_check(struct nand *nand, void *context, const struct nand_power_cut *cut);

#endif
