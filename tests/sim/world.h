/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What a run of the simulator consists of. */
#ifndef MUNINN_TESTS_SIM_WORLD_H
#define MUNINN_TESTS_SIM_WORLD_H

#include "osd/osd.h"
#include "tests/engine/memory_store.h"
#include "tests/engine/merging.h"
#include "tests/engine/model/model_power.h"
#include "tests/engine/sealers.h"
#include "tests/sim/security.h"
#include "tests/sim/sim.h"

enum { SIM_SESSIONS = 3 };

/* A connection of an initiator. */
struct sim_session {
	uint64_t nexus;
	bool subscribed; /* to what EXECUTE has */
	bool to_be_told; /* a unit attention may come */
};

struct sim_world {
	struct model_run run; /* first */
	const struct sim_profile *profile;
	struct sim_report *report;
	struct memory_store *memory; /* or */
	struct nand *nand;
	struct osd_device *device;
	struct sim_session sessions[SIM_SESSIONS];
	uint64_t last_nexus;
	struct sim_security security;
	struct sealers sealers;
	struct merging merging;
	/* The record store's functions, with our own in front. */
	struct record_store_operations operations;
	const struct record_store_operations *original;
	uint64_t committed; /* first number since it was set to 0 */
	bool unreadable;    /* some pages of flash, just now */
	bool host_full;     /* just now */
	bool verbose;
};

static inline struct sim_world *sim_world_of(struct model_run *run)
{
	return (struct sim_world *)(void *)run;
}

/* What is being done, for whoever looks at a run that failed. */
void sim_say(struct sim_world *world, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- clients.c ---- */

/* Sessions are new: the target has just been opened. */
void sim_clients_begin(struct sim_world *world);

/* Commands of several sessions, from the first one's arrival to the last one's end. */
void sim_clients_turn(struct model_run *run);

/* ---- merging.c: what the merging thread does, at moments that the seed chooses ---- */

/* The engine has just been opened. */
void sim_merging_begin(struct sim_world *world);
/* A moment at which it may do something. `in_transaction`: only what needs no turn. */
void sim_merging_act(struct sim_world *world, bool in_transaction);

/* ---- troubles.c ---- */

/* Faults that are there all the time. */
void sim_troubles_begin(struct sim_world *world, uint64_t seed);
/* Before a step: what goes wrong in it. */
void sim_troubles_turn(struct sim_world *world);
void sim_troubles_count(struct sim_world *world);

/* ---- nvram.c ---- */

/* A start with another NVRAM file, of which nothing stays; or a copy for a later one. */
void sim_nvram_turn(struct sim_world *world);

#endif
