/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Runs a scenario over and over, each time on a new device in memory and with the power failing one
 * operation later, until the scenario comes to its end: for tests of everything that keeps its
 * state on flash. (The idea is that of littlefs's tests, which run again under a power loss at each
 * operation.)
 *
 * For each way in which a cut may end, and each operation n: prepare, arm the cut after n
 * operations, run, power on, check. The run that no cut hits is checked too, and ends the series.
 */
#ifndef MUNINN_NAND_REHEARSAL_H
#define MUNINN_NAND_REHEARSAL_H

#include <stddef.h>
#include <stdint.h>

#include "nand/nand.h"
#include "nand/power.h"

struct nand_rehearsal {
	const struct nand_geometry *geometry;
	uint64_t nvram_bytes;
	void *context; /* for the functions */

	/* Before the cut is armed; NULL: nothing to do. */
	void (*prepare)(struct nand *nand, void *context);

	/* Operations; must return soon after one has failed with -EIO. */
	void (*run)(struct nand *nand, void *context);

	/* Is what the power cut left right? `cut` is NULL after the run that was not hit. */
	void (*check)(struct nand *nand, void *context, const struct nand_power_cut *cut);

	const struct nand_power_cut
		*ends; /* how a cut ends; `after` does not matter, `seed` is where seeds begin */
	size_t ends_count;
	uint64_t stride;     /* every how many operations; 0: 1 */
	uint64_t points_max; /* cuts of one series at most; 0: no limit but the scenario's end */
};

/*
 * Adds the number of runs to `*runs`. 0, or -errno of making a device or a cut, with `error`. What
 * a check finds is its own business: nand_power_cut_format names the cut so that it can be made
 * again.
 */
int nand_rehearse(const struct nand_rehearsal *rehearsal, uint64_t *runs, struct error_text *error);

/*
 * Fills `ends` with the ways in which a program in flight can end, on a page of this geometry:
 * absent, garbage, torn after nothing, one byte, half of the data, all data, all but a byte, and
 * whole; every erase mode is among them.
 */
#define NAND_REHEARSAL_ENDS 8
void nand_rehearsal_ends(const struct nand_geometry *geometry, enum nand_cut_nvram nvram,
			 struct nand_power_cut ends[NAND_REHEARSAL_ENDS]);

#endif
