/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Random operations on an engine and on the model of it side by side: both give the same results, and the engine shows
 * what the model shows, at any moment, in any version, after aborts, crashes and failures for lack of room.
 */
#ifndef MUNINN_TESTS_ENGINE_MODEL_RUN_H
#define MUNINN_TESTS_ENGINE_MODEL_RUN_H

#include "engine/objects.h"
#include "tests/engine/object_model.h"

struct model_run;

/* The store that a run is on. */
struct model_store {
	/* Opens the engine on what the store holds; cannot fail. */
	struct engine *(*open)(struct model_run *run);
	/* The store begins to fail for lack of room now and then, at random, or is asked to. May be NULL. */
	void (*disturb)(struct model_run *run);
	void (*calm)(struct model_run *run);
	void *context;
};

struct model_run {
	struct model_store store;
	struct engine_options options;
	struct engine *engine;
	struct engine_txn *txn;
	struct object_model model;
	uint64_t random, now_ms;
	uint64_t operations;
	uint64_t commits, aborts, crashes, failures, formats; /* what happened */
	bool crashed;            /* accessed times may be older than in the model */
	uint8_t *buffer, *other; /* as long as the longest object */
};

/* Runs `operations` operations from `seed` on an empty engine; fails the test on the first difference. */
void model_run(struct model_run *run, uint64_t seed, uint64_t operations);

/* 0..limit - 1 */
uint64_t model_run_below(struct model_run *run, uint64_t limit);

#endif
