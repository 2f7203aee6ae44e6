/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The simulator: the target, the engine and the flash in one process, on one thread and in virtual
 * time, with everything that can happen to them. One seed decides all of it, so a run can be
 * repeated; the model of full history (tests/engine/object_model.h) judges every answer.
 *
 * A run is a list of steps, numbered from 0. What a step does is drawn from the seed and its
 * number, so a list from which steps are left out is a run, too: that is how a failing one gets
 * shorter.
 */
#ifndef MUNINN_TESTS_SIM_SIM_H
#define MUNINN_TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/engine/model/model_cuts.h"
#include "tests/engine/model/model_run.h"

/* ---- profiles: tables of weights, no code ---- */

/* How often what goes wrong. One step in so many; 0: never. */
struct sim_troubles {
	uint32_t unreadable; /* pages of flash that no ECC corrects, while clients go on */
	uint32_t nvram;      /* a damaged, lost or older NVRAM file, at opening */
	uint32_t host_full;  /* the host has no space for more flash, while clients go on */
	const char *faults;  /* of the flash, all the time, as nand_faults_parse takes them */
};

struct sim_profile {
	const char *name, *what;
	struct model_flash flash; /* blocks 0: records in memory, without flash */
	bool sealers;             /* full buffers are sealed beside the transactions */
	bool secured;             /* clients sign what they send, and the target has keys */
	struct model_weights weights;
	struct sim_troubles troubles;
	uint64_t operations; /* of a seed, where nobody says how many */
};

extern const struct sim_profile sim_profiles[]; /* the last one has no name */

const struct sim_profile *sim_profile_find(const char *name); /* NULL: there is none */

/* ---- one run ---- */

/* A run. Of `kept`, NULL or ascending, only those steps are made. */
struct sim_plan {
	const struct sim_profile *profile;
	uint64_t seed;
	uint64_t operations; /* it ends behind so many; with `kept` behind the last of these */
	const uint64_t *kept;
	size_t kept_count;
	bool verbose; /* says what each step does */
	/* For tests that failures are found: from this step on the model says that an object is
	 * longer; at it the process crashes. 0: never. */
	uint64_t forges_at, crashes_at;
};

/* Causes of work, and what came of it; all of them count. */
struct sim_counts {
	uint64_t operations; /* commands, and calls of the engine, that the schedule chose */
	uint64_t compared;   /* answers that were compared with the model's, those included */
	uint64_t steps, commits, without_room, restarts, formats, jumps, rollbacks;
	uint64_t commands, held_back, aborted, task_functions, attentions; /* of clients */
	uint64_t let_in, kept_out; /* commands on closed partitions: done by their key, refused */
	uint64_t cuts, cuts_in_program, cuts_in_erase, cuts_in_sync, cuts_in_read, cuts_in_point;
	uint64_t cuts_kept, cuts_flushed, cuts_mixed; /* by what the NVRAM was */
	uint64_t sealed, merged;                      /* segments, beside transactions */
	uint64_t bits_corrected, program_failures, erase_failures;
	uint64_t unreadable, medium_errors; /* episodes; answers in them */
	/* Those that were lost, damaged or older; of the whole ones the older ones; those of an
	   older time that a flash which was written since does not contradict. */
	uint64_t nvram_refused, nvram_whole, nvram_older, nvram_unnoticed;
	/* Opened without: how often, and how often all was open then; objects by what came of them.
	 */
	uint64_t recovered, recovered_open, recovered_objects, recovered_named;
	uint64_t host_full, host_refusals; /* episodes; answers in them */
};

/* How many there are of struct sim_counts. */
#define SIM_COUNTS (sizeof(struct sim_counts) / sizeof(uint64_t))

/* What is known of a run, also while it goes on, and when it ended in a crash. */
struct sim_report {
	struct sim_counts counts;
	uint64_t digest; /* of what it did to the flash: the same for the same run */
	uint64_t step;   /* the one that is made */
	bool ended;
	char what[160]; /* is being done */
};

/*
 * Makes a run in a process of its own. True: it came to its end. Otherwise `text` (of `bytes`) says
 * what differs, or how the process ended.
 */
bool sim_run(const struct sim_plan *plan, struct sim_report *report, char *text, size_t bytes);

/* ---- making it shorter ---- */

/* Whether a run with these steps fails. */
typedef bool sim_fails(void *context, const uint64_t *kept, size_t count);

/*
 * Leaves steps out of a failing list as long as it fails (Zeller's ddmin): `kept` and `*count`
 * become the shortest list that was found. At most `tries` runs.
 */
void sim_minimise(uint64_t *kept, size_t *count, unsigned tries, sim_fails *fails, void *context);

/* ---- the command line ---- */

int sim_main(int argc, char **argv);

#endif
