/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Where the paths of read, program and erase meet timing, faults and power cuts. Private to nand/.
 *
 * Everything is off until a nand_set_… or arm function was called; until then all that a path pays is one load of
 * nand->features. The state behind a feature is allocated when it is first wanted, and stays until the handle is freed.
 */
#ifndef MUNINN_NAND_LAB_H
#define MUNINN_NAND_LAB_H

#include <stdbool.h>
#include <stdint.h>

#include "nand/private.h"
#include "nand/timing.h"

enum nand_feature {
	NAND_FEATURE_TIMING = 1 << 0,
	NAND_FEATURE_FAULTS = 1 << 1,
	NAND_FEATURE_POWER = 1 << 2,
};

static inline bool nand_feature_is_on(const struct nand *nand, enum nand_feature feature)
{
	return atomic_load_explicit(&nand->features, memory_order_acquire) & feature;
}

void nand_feature_switch(struct nand *nand, enum nand_feature feature, bool on);

/* ---- timing ---- */

/*
 * One call of a user, with any number of pages; or one asynchronous request. `begin` when it is submitted; `page` for
 * each page or block in the order of submission (in virtual time: before anything whose order is the host's); `end`
 * waits until all of it is complete. An asynchronous request ends when `completion_ns` is not later than
 * nand_timed_now, and calls `end` then (in virtual time: take the request with the least completion_ns, then `end`).
 */
struct nand_timed {
	uint64_t arrival_ns;
	uint64_t
		completion_ns; /* of the page that is complete last; on the clock of nand_timed_now */
	uint32_t generation;   /* of the timing; 0: off */
};

void nand_timed_begin_slow(struct nand *nand, struct nand_timed *timed);
void nand_timed_page_slow(struct nand *nand, struct nand_timed *timed,
			  enum nand_operation operation, uint32_t block, uint64_t bytes);
void nand_timed_end_slow(struct nand *nand, const struct nand_timed *timed);
uint64_t nand_timed_now(struct nand *nand);

static inline void nand_timed_begin(struct nand *nand, struct nand_timed *timed)
{
	timed->generation = 0;
	if (nand_feature_is_on(nand, NAND_FEATURE_TIMING))
		nand_timed_begin_slow(nand, timed);
}

static inline void nand_timed_page(struct nand *nand, struct nand_timed *timed,
				   enum nand_operation operation, uint32_t block, uint64_t bytes)
{
	if (timed->generation)
		nand_timed_page_slow(nand, timed, operation, block, bytes);
}

static inline void nand_timed_end(struct nand *nand, const struct nand_timed *timed)
{
	if (timed->generation)
		nand_timed_end_slow(nand, timed);
}

/* Whether times are the host's, so that `page` is to be called when the page has been moved. */
bool nand_timed_measures(struct nand *nand);

void nand_timing_free(struct nand *nand);

/* ---- all of it ---- */

void nand_lab_free(struct nand *nand);

#endif
