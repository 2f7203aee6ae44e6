/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The power of a run's device fails: at a random operation of the flash or between two records that
 * a command puts, with the page in flight in any of its ways, and the NVRAM kept, or as of the last
 * flush, or a mixture of that and newer pages. The store is opened again, during which the power
 * may fail too, and shows exactly one state of the model: with the NVRAM kept that before or after
 * the command in flight, otherwise that of the last flush or of a whole command behind it.
 */
#ifndef MUNINN_TESTS_ENGINE_MODEL_MODEL_POWER_H
#define MUNINN_TESTS_ENGINE_MODEL_MODEL_POWER_H

#include "tests/engine/model/model_run.h"

struct model_cuts;

/* For the runs on a device that outlives it. */
struct model_power *model_power_create(struct nand *nand);
void model_power_destroy(struct model_power *power);

/*
 * The store, just opened, on the device; what it is told to put counts as operations of the device
 * from now on.
 */
void model_power_attach(struct model_power *power, struct record_store *store);

/* Which boot of the host the store is opened in: 16 bytes for engine_options. */
const uint8_t *model_power_boot(const struct model_power *power);

/* Whether the power is off just now. */
bool model_power_is_off(const struct model_power *power);

/* Whether a commit from now on may be taken back, or be cut: the states before it are kept. */
bool model_power_is_watched(const struct model_run *run);

/* How often it failed so far, and in what. */
const struct model_cuts *model_power_cuts(const struct model_power *power);

/* Runs one turn, during which the power may fail; if it does, the run goes on with what is left. */
void model_power_turn(struct model_run *run, void (*turn)(struct model_run *run));

/*
 * A command begins: often the power fails among its next few operations, of which there are about
 * `operations`.
 */
void model_power_threaten(struct model_run *run, uint64_t operations);

/* The open transaction is about to be committed. */
void model_power_committing(struct model_run *run);

/*
 * The same of a transaction that is still to begin: what the engine commits for itself between
 * these two is not of it.
 */
void model_power_beginning(struct model_run *run);
void model_power_begun(struct model_run *run);

/* That had `result`; `stable`: it was asked to flush. Whether the power failed meanwhile. */
bool model_power_committed(struct model_run *run, int result, bool stable);

/* Whether the host is about to fail, which takes back what is not flushed. */
bool model_power_may_take_back(const struct model_run *run);

/* Everything is stable. */
void model_power_flushed(struct model_run *run);

/* The power does not fail until the next turn. */
void model_power_spare(struct model_run *run);

/* Prints how often it failed, in what, and what was found. */
void model_power_report(const struct model_power *power);

#endif
