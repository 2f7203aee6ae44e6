/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A model of the record store that keeps every version, for the tests of engine/muninn: keys of all
 * kinds, random transactions, rollbacks, crashes. The device is so small that segments are sealed,
 * tables completed and places overflowed all the time.
 */
#ifndef MUNINN_TESTS_ENGINE_MUNINN_MUNINN_MODEL_H
#define MUNINN_TESTS_ENGINE_MUNINN_MUNINN_MODEL_H

#include "engine/muninn/store.h"
#include "engine/open.h"
#include "tests/engine/sealers.h"

enum {
	MODEL_KEYS = 300,
	MODEL_VALUE_MAX = 512,
	MODEL_PUTS_MAX = 12,
	MODEL_ROLLBACKS_MAX = 512,
	MODEL_VERSIONS_MAX = 200
};

/* One version of a key as it should be found. */
struct model_version {
	uint64_t sequence;
	uint64_t fill;
	uint16_t length;
	uint64_t epoch;
	uint8_t flags;
};

struct model_history {
	struct model_version *versions;
	size_t count, capacity;
};

/* From sequence number `at` on, what is of (to, at) is hidden. */
struct model_rollback {
	uint64_t at, to;
	uint16_t partition; /* 0: of all */
};

struct model {
	struct nand *nand;
	struct record_store *store;
	struct engine_options options; /* it is opened with */
	uint64_t random;
	struct model_history keys[MODEL_KEYS];
	uint64_t sequence;
	uint64_t next; /* number that the next transaction has at least */
	struct model_rollback rollbacks[MODEL_ROLLBACKS_MAX]; /* ascending by `at` */
	size_t rollback_count;
	struct record_hidden hidden;
	struct sealers *sealers; /* that seal beside the transactions; NULL: nobody does */
	uint16_t length;         /* that most values have; 0: they differ */
	uint64_t puts;           /* so far, aborted ones too */
	uint64_t lookups;        /* compared with the model so far */
};

extern const struct nand_geometry model_nand;
extern const struct engine_options model_options;

/*
 * An empty store on a device in memory, or on one that is given; a crash and recovery of the store;
 * the end.
 */
void model_open(struct model *model, const struct nand_geometry *nand,
		const struct engine_options *options);
void model_open_on(struct model *model, struct nand *nand, const struct engine_options *options);
void model_crash(struct model *model);
void model_close(struct model *model);

/* A number from the environment, or `otherwise`. */
uint64_t model_setting(const char *name, uint64_t otherwise);

uint64_t model_random(struct model *model);
uint32_t model_below(struct model *model, uint32_t limit);

/*
 * Key number 0..MODEL_KEYS - 1: onode-like pieces, consecutive pieces of one object, single keys.
 */
struct record_key model_key(uint32_t number);
bool model_is_absorbed(uint32_t number);

struct model_version model_new_version(struct model *model, uint32_t number, uint64_t sequence);
void model_fill(uint8_t *value, uint16_t length, uint64_t fill);

/* The newest version noted that a reader at a bound sees. */
const struct model_version *model_find(const struct model *model, uint32_t number, uint64_t bound);

/*
 * The store has of this key, or of every key at the present, what the model says. A lone tombstone
 * may be gone.
 */
void model_check_key(struct model *model, uint32_t number, uint64_t bound);
void model_check_all(struct model *model);

/* What get_run finds is what get finds for each piece; returns how many can't be read. */
uint32_t model_check_run(struct model *model, struct record_key key, uint32_t count,
			 uint64_t bound);

/*
 * The store lists all versions of the key that a reader at `bound` sees, and finds each by its
 * number. None may be absorbed.
 */
void model_check_versions(struct model *model, uint32_t number, uint64_t bound);

/*
 * The same after merging: all versions from `horizon` on are there, but for tombstones that end
 * nothing; older ones may be gone; none is there that should not be.
 */
void model_check_versions_since(struct model *model, uint32_t number, uint64_t bound,
				uint64_t horizon);

/*
 * One transaction of some puts; committed, aborted or cut off by a crash. Returns false when the
 * device is full.
 */
bool model_transaction(struct model *model, bool commit, bool crash);

/*
 * The present is the end of a slot: the next transaction begins another one. Returns its sequence
 * number.
 */
uint64_t model_end_slot(struct model *model);

/* Rolls a partition, or all of them (0), back to the end of a slot. */
void model_roll_back(struct model *model, uint16_t partition, uint64_t to);

#endif
