/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Counts the power cuts of a run by what they hit and what was found. */
#include "tests/engine/model/model_cuts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const doing_names[MODEL_DOINGS] = {
	"reading",
	"writing",
	"a flush",
	"closing",
	"opening again",
	"a snapshot with changes",
	"removing a partition",
	"a snapshot of the device",
	"dropping a version",
	"a rollback of a partition",
	"a rollback of the device",
	"a rollback of an object",
	"an undo",
	"making a clone",
	"refreshing a clone",
	"detaching a clone",
	"setting a policy",
	"merging",
	"beginning an epoch",
};

void model_cuts_note(struct model_cuts *cuts, struct nand *nand, enum nand_cut_nvram nvram,
		     enum model_doing doing, uint64_t operations)
{
	struct nand_power_status status;

	nand_power_status(nand, &status);
	cuts->in_flight.programs += strncmp(status.in_flight, "program", 7) == 0;
	cuts->in_flight.erases += strncmp(status.in_flight, "erase", 5) == 0;
	cuts->in_flight.syncs += strncmp(status.in_flight, "sync of", 7) == 0;
	cuts->in_flight.reads += strncmp(status.in_flight, "read", 4) == 0;
	cuts->in_flight.points += strncmp(status.in_flight, "scenario", 8) == 0;
	cuts->fates[nvram]++;
	if (getenv("MUNINN_VERBOSE"))
		printf("cut %d at %llu: %s, in the %s\n", nvram, (unsigned long long)operations,
		       doing_names[doing], status.in_flight);
}

void model_cuts_note_again(struct model_cuts *cuts, enum nand_cut_nvram nvram, enum outcome outcome)
{
	cuts->found[MODEL_OPENING][outcome]++;
	cuts->fates[nvram]++;
}

void model_cuts_report(const struct model_cuts *counted)
{
	uint64_t sums[OUTCOMES] = { 0 }, all;

	for (int doing = 0; doing < MODEL_DOINGS; doing++) {
		const uint64_t *cuts = counted->found[doing];

		if (cuts[0] + cuts[1] + cuts[2] + cuts[3])
			printf("power failed in %s: %llu before, %llu after; with the host: %llu "
			       "as "
			       "flushed, %llu later\n",
			       doing_names[doing], (unsigned long long)cuts[OUTCOME_BEFORE],
			       (unsigned long long)cuts[OUTCOME_AFTER],
			       (unsigned long long)cuts[OUTCOME_FLUSH],
			       (unsigned long long)cuts[OUTCOME_LATER]);
		for (int outcome = 0; outcome < OUTCOMES; outcome++)
			sums[outcome] += cuts[outcome];
	}
	all = sums[0] + sums[1] + sums[2] + sums[3];
	printf("%llu power cuts: %llu before, %llu after; with the host: %llu as flushed, %llu "
	       "later\n",
	       (unsigned long long)all, (unsigned long long)sums[OUTCOME_BEFORE],
	       (unsigned long long)sums[OUTCOME_AFTER], (unsigned long long)sums[OUTCOME_FLUSH],
	       (unsigned long long)sums[OUTCOME_LATER]);
	printf("in flight: %llu programs, %llu erases, %llu syncs, %llu reads, %llu between "
	       "records; "
	       "NVRAM %llu kept, %llu as flushed, %llu mixed\n",
	       (unsigned long long)counted->in_flight.programs,
	       (unsigned long long)counted->in_flight.erases,
	       (unsigned long long)counted->in_flight.syncs,
	       (unsigned long long)counted->in_flight.reads,
	       (unsigned long long)counted->in_flight.points,
	       (unsigned long long)counted->fates[NAND_CUT_NVRAM_KEPT],
	       (unsigned long long)counted->fates[NAND_CUT_NVRAM_FLUSHED],
	       (unsigned long long)counted->fates[NAND_CUT_NVRAM_MIXED]);
}
