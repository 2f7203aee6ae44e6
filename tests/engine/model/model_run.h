/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Random operations on an engine and on the model of it side by side: both give the same results,
 * and the engine shows what the model shows, at any moment, in any version, after aborts, crashes
 * and failures for lack of room.
 */
#ifndef MUNINN_TESTS_ENGINE_MODEL_MODEL_RUN_H
#define MUNINN_TESTS_ENGINE_MODEL_MODEL_RUN_H

#include "engine/objects/objects.h"
#include "tests/engine/object_model.h"

struct model_run;
struct nand;

/* The store that a run is on. */
struct model_store {
	/* Opens the engine on what the store holds. Fails only for want of power: NULL. */
	struct engine *(*open)(struct model_run *run);
	/*
	 * The store begins to fail for lack of room now and then, at random, or is asked to. May be
	 * NULL.
	 */
	void (*disturb)(struct model_run *run);
	void (*calm)(struct model_run *run);
	/* A further kind of turn, for `others` of the weights. */
	void (*other)(struct model_run *run);
	/* Between two turns, outside of transactions. May be NULL, as the next one. */
	void (*between)(struct model_run *run);
	/* The engine is about to be ended, in whatever way. */
	void (*leave)(struct model_run *run);
	void *context;
};

/* How often what happens in a run. 0: never. */
struct model_weights {
	/* Of a hundred turns; the rest write. */
	uint32_t reading, history, others;
	/* One turn in so many. */
	uint32_t jumps;     /* of the clock */
	uint32_t upheavals; /* restarts, crashes, flushes, formats */
	uint32_t looks;     /* at everything */
	uint32_t cuts;      /* of the power */
	uint32_t failures;  /* of the host with it */
	/* Of so many looks behind a crash one is at all of the past; 0: each of them. */
	uint32_t wholes;
	/* One writing transaction in so many. */
	uint32_t disturbed, crashes, aborts;
	/* Partitions go to come back as clones, one clone in so many. */
	uint32_t comebacks;
};

/* What the tests of this folder use: mostly objects, much of history, nothing but history. */
extern const struct model_weights model_usual, model_historic, model_restless;

/* Objects are small: what goes back with more pages does so by hiding what came since. */
#define MODEL_PIECES_PUT_AGAIN 2

/* What a run is doing when the power fails. */
enum model_doing {
	MODEL_READING,
	MODEL_WRITING,
	MODEL_FLUSHING,
	MODEL_CLOSING,
	MODEL_OPENING,
	MODEL_SNAPSHOT,
	MODEL_REMOVE,
	MODEL_DEVICE_SNAPSHOT,
	MODEL_DROP,
	MODEL_ROLLBACK,
	MODEL_DEVICE_ROLLBACK,
	MODEL_OBJECT_ROLLBACK,
	MODEL_UNDO,
	MODEL_CLONE,
	MODEL_REFRESH,
	MODEL_DETACH,
	MODEL_RETENTION,
	MODEL_MERGE,
	MODEL_EPOCH,
	MODEL_DOINGS
};

struct model_run {
	struct model_store store;
	struct engine_options options;
	struct engine *engine;
	struct engine_txn *txn;
	struct object_model model;
	const struct model_weights *weights;
	uint64_t seed, step; /* the turn that is made, from 0; all of it is drawn from both */
	uint64_t random, now_ms;
	uint64_t running_ms;    /* a clock that nobody sets ... */
	uint64_t closed_for_ms; /* ... is so much ahead of device time */
	uint64_t closed_ms;     /* when the engine was there last; see MODEL_OPENING */
	uint64_t operations;
	enum model_doing doing;
	struct model_power *power; /* model_power.h; NULL: it never fails */
	uint64_t commits, aborts, crashes, failures, formats; /* what happened */
	uint64_t moments, undone, rollbacks, clones; /* what was compared or done of history */
	uint64_t diffs;                              /* that were compared */
	uint64_t overwritten;     /* writes of unlogged partitions that put data alone */
	uint64_t left_out;        /* partitions, of moments of the device */
	uint64_t locks, refusals; /* that were set; of commands, for locks */
	uint64_t jumps, epochs, times, refused_times; /* of the clock; that were looked up */
	bool restless;     /* partitions and their clones come and go all the time */
	bool times_free;   /* access times are not compared */
	uint32_t pages;    /* 0, or of partitions' attributes those from this page on are not */
	uint64_t compared; /* calls whose answer was compared with the model's */
	uint64_t full_failures, full_commits; /* since when there is no room */
	bool policies;                        /* some change the policies of retention */
	bool checked;                         /* see struct model_flash */
	void (*closed)(struct model_run *run, struct nand *nand); /* the same */
	bool lossy;      /* history is given up: by policies, or for room */
	bool crashed;    /* accessed times may be older than in the model */
	bool unsure;     /* after going back, accessed times are any */
	uint8_t *buffer; /* as long as the longest object */
};

/*
 * Runs `operations` operations from `seed` on an empty engine; fails the test on the first
 * difference.
 */
void model_run(struct model_run *run, uint64_t seed, uint64_t operations);

/* The parts of that: an empty engine; turn number `step`, all of it drawn from seed and number; the
 * end. A run of some of the turns is a run, too. */
void model_run_open(struct model_run *run, uint64_t seed);
void model_run_step(struct model_run *run, uint64_t step);
void model_run_close(struct model_run *run);

/*
 * The same with the seed and number of operations that MUNINN_SEED and MUNINN_OPERATIONS ask for,
 * or these. Says how to repeat the run before it begins.
 */
void model_start(struct model_run *run, const char *name, uint64_t otherwise_seed,
		 uint64_t operations);

/* A small device in memory. */
struct model_flash {
	uint32_t blocks;
	uint32_t segment_pages; /* 0: 8, so that each key has a place on all of them */
	uint32_t spare_bytes;   /* 0: 64, too few for parity */
	bool merge_manual;
	bool power_fails;
	bool restless;
	bool checked; /* whenever it is opened, engine_check finds nothing wrong */
	/* Called before it is opened again, with the model of what is on the device. */
	void (*closed)(struct model_run *run, struct nand *nand);
};

/* Device time, as the model counts it. */
static inline uint64_t model_run_device_ms(const struct model_run *run)
{
	return run->running_ms - run->closed_for_ms;
}

/* A run on the store on flash, as model_start. */
void model_run_on_flash(const char *name, const struct model_flash *flash, uint64_t seed,
			uint64_t operations);

/*
 * For runs on other stores on flash: a formatted device of the smallest kind; its engine, as
 * model_store.open. `attach` may put functions of its own in front of the record store's.
 */
struct nand *model_flash_make(const struct model_flash *flash,
			      const struct engine_options *options);
struct engine *model_flash_open(struct model_run *run,
				void (*attach)(struct model_run *run, struct record_store *store));
extern const struct engine_options model_flash_options;

/* 0..limit - 1 */
uint64_t model_run_below(struct model_run *run, uint64_t limit);

static inline bool one_in(struct model_run *run, uint64_t limit)
{
	return model_run_below(run, limit) == 0;
}

/* The same, never for 0. */
static inline bool now_and_then(struct model_run *run, uint32_t one_of)
{
	return one_of && one_in(run, one_of);
}

static inline struct engine_address address_of(const struct model_partition *partition,
					       uint64_t object, uint32_t version)
{
	return (struct engine_address){ .partition = partition->id,
					.object = object,
					.version = version };
}

/* The length of the longest object. */
static inline uint64_t all_bytes(const struct model_run *run)
{
	return (uint64_t)MODEL_PIECES * run->model.page_bytes;
}

/* ---- model_power.c ---- */

/* Does not return if the power has failed. */
void model_power_notice(struct model_run *run);

/* What a call to the engine returned, which is compared with the model; otherwise the same. */
int answer(struct model_run *run, int result);

/* ---- model_diff.c ---- */

/*
 * DIFF in the open transaction between two moments, at which the partition is `from` and `to`, says
 * exactly what is different. False: one of the moments can't be reached.
 */
bool model_check_differences(struct model_run *run, const struct model_partition *partition,
			     const struct engine_moment moments[2], const struct model_state *from,
			     const struct model_state *to);

/* ---- model_check.c: the open transaction shows what the model shows ---- */

/* The value in run->buffer, of which at most `copied` bytes are there. */
void object_check_attribute(struct model_run *run, const struct model_attribute *wanted,
			    uint32_t length, uint32_t copied);
void object_check_read(struct model_run *run, struct engine_address address,
		       const struct model_object *object, uint64_t offset, uint64_t length);
void object_check_stat(struct model_run *run, struct engine_address address,
		       const struct model_state *state, struct model_object *object);

/* All of an object; of everything that is there now; of all versions of old, or of one. */
void object_check(struct model_run *run, struct engine_address address,
		  const struct model_state *state, struct model_object *object);
void object_check_present(struct model_run *run);
void object_check_versions(struct model_run *run);
void object_check_some_version(struct model_run *run);

/* A partition at a version, 0 = now. */
void object_check_state(struct model_run *run, const struct model_partition *partition,
			uint32_t version, const struct model_state *state);

/* ---- model_history.c ---- */

/* One random operation, in a transaction of its own. */
void history_operate(struct model_run *run);

/*
 * Of a partition that has come back a full device may have given up, all together, what only that
 * one kept while it was gone.
 */
void history_learn_given_up(struct model_run *run);

/*
 * Numbers of versions of a partition that a rollback of the device made another one are as the
 * engine says: the model learns them.
 */
void history_learn_numbers(struct model_run *run);

/* ---- model_past.c: in the open reading transaction ---- */

/* All moments that the model remembers; some of them, and some times. */
void history_check(struct model_run *run);
void history_check_some(struct model_run *run);

/*
 * Whether the engine leaves a partition out of a moment of the device, at which it was there: only
 * where its policy allows that.
 */
bool history_is_left_out(struct model_run *run, const struct model_moment *moment, uint32_t index);

/* What the engine said to a moment of the device that is no version. */
void history_check_answer_of_device(struct model_run *run, const struct model_moment *moment,
				    int result);

/* From when on all moments of a partition can be reached, as the engine says. */
uint64_t history_horizon_of(struct model_run *run, const struct model_partition *partition);

/* ---- model_locks.c ---- */

/* The policy that holds for a partition's state; NULL: of the device. */
const struct engine_retention *locks_policy(const struct object_model *model,
					    const struct model_state *state);

/*
 * Whether the retention of a partition (NULL: the device) is locked; whether that of anything is,
 * and until when.
 */
bool locks_hold_for(const struct model_run *run, const struct model_state *state);
bool locks_hold_anything(const struct model_run *run);

/*
 * The same by any lock that ever was: one that was over counts again when a crash has taken back
 * some of the time, also that of a partition which was removed meanwhile.
 */
bool locks_may_hold_anything(const struct model_run *run);

/* Where the history begins that locks keep is to be learned anew. */
void locks_forget_kept(struct model_run *run);

/* Of a partition (0: of the device), in device time, as the engine has it on record. */
uint64_t locks_stored(struct model_run *run, uint64_t id);

/* Time has passed. */
void locks_follow_clock(struct model_run *run);
uint64_t locks_latest(const struct object_model *model);

/* A policy for a partition or the device, for which `now` holds. */
struct engine_retention locks_some_policy(struct model_run *run,
					  const struct engine_retention *now);

/* Whether nobody but the administrator may set it: of a partition, or NULL: of the device. */
bool locks_refuse_policy(const struct model_run *run, const struct model_state *state,
			 const struct engine_retention *wanted);

/* Whether the locks refuse a rollback of the device. */
bool locks_refuse_going_back(const struct model_run *run, const struct model_moment *moment);

/* It is set: of a partition, or NULL: of the device. */
void locks_set_policy(struct model_run *run, struct model_partition *partition,
		      const struct engine_retention *policy, bool administrator);

/*
 * In the open reading transaction: policies are as set, and the history that a lock keeps is as
 * long as it was.
 */
void locks_check(struct model_run *run);

/* ---- model_operate.c ---- */

/* Makes a version of some partition in the open writing transaction. */
void operate_snapshot(struct model_run *run);

/* One random operation in the open writing transaction, which ends when there is no room for it. */
void operate(struct model_run *run);

/* One that only reads, in a reading transaction. */
void operate_reading(struct model_run *run);

/* ---- model_run.c ---- */

/* Compares everything; after a crash also learns which access times are left. */
void model_run_look(struct model_run *run);

/*
 * The same behind a crash, which comes often: everything that is there now, but of the past mostly
 * only some. What it has passed over, the next whole look finds.
 */
void model_run_look_again(struct model_run *run);

/* Everything that was committed until now was by the clock as it is. */
void model_run_see(struct model_run *run);

/* Makes everything stable. */
void model_run_flush(struct model_run *run);

/* The clock is set. */
void model_run_set_clock(struct model_run *run, uint64_t ms);

/* So much time passes. */
void model_run_pass(struct model_run *run, uint64_t ms);

/* The engine was opened again: a crash may have taken back what was not on record. */
void model_run_learn_device_time(struct model_run *run);

/* Sets it, one time in `one_of`, to some other time. */
void model_run_jump(struct model_run *run, uint64_t one_of);

/* Begins a writing transaction. */
void model_run_begin(struct model_run *run, enum engine_mode mode);

/*
 * Ends the open writing transaction in a commit; whether the model follows. When the power fails
 * meanwhile it does, and what became of it shows when the store is open again.
 */
bool model_run_commit(struct model_run *run);

/* The engine is about to be ended. */
void model_run_leave(struct model_run *run);

/* Outside of transactions: ends and opens again. */
void model_run_restart(struct model_run *run, bool killed);

/* Closes as a crash does and opens again. */
void model_run_abandon(struct model_run *run);

#endif
