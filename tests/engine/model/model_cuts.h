/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How often the power failed in a run, in what, and what was found. */
#ifndef MUNINN_TESTS_ENGINE_MODEL_MODEL_CUTS_H
#define MUNINN_TESTS_ENGINE_MODEL_MODEL_CUTS_H

#include "nand/power.h"
#include "tests/engine/model/model_run.h"

enum outcome {
	OUTCOME_BEFORE, /* NVRAM kept: without the command in flight, if there was one */
	OUTCOME_AFTER,  /* NVRAM kept: with it */
	OUTCOME_FLUSH,  /* the host failed: as of the last flush */
	OUTCOME_LATER,  /* the host failed: with commands behind it, whole ones */
	OUTCOMES
};

struct model_cuts {
	uint64_t found[MODEL_DOINGS][OUTCOMES];
	struct {
		uint64_t programs, erases, syncs, reads, points;
	} in_flight;
	uint64_t fates[NAND_CUT_NVRAMS];
};

/* The power is off, after so many operations of the run. */
void model_cuts_note(struct model_cuts *cuts, struct nand *nand, enum nand_cut_nvram nvram,
		     enum model_doing doing, uint64_t operations);

/* It failed again, in opening. */
void model_cuts_note_again(struct model_cuts *cuts, enum nand_cut_nvram nvram,
			   enum outcome outcome);

void model_cuts_report(const struct model_cuts *counted);

#endif
