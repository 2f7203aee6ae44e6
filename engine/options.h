/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How the object store on flash is made and opened, with the options of each kind of record store
 * that it can stand on. Of the headers that other parts of the house include this one alone knows
 * which kinds there are; for all that is done with a store once it is open engine.h is enough.
 */
#ifndef MUNINN_ENGINE_OPTIONS_H
#define MUNINN_ENGINE_OPTIONS_H

#include "common/error.h"
#include "engine/engine.h"
#include "engine/muninn/options.h"
#include "engine/records/options.h"
#include "nand/nand.h"

/* A history_interval_ms. */
#define ENGINE_EVERY_COMMAND UINT32_MAX

/* An inline_bytes. */
#define ENGINE_INLINE_NONE UINT32_MAX

struct engine_options {
	/*
	 * The kind of record store: "muninn". NULL: that one at format, and at opening whatever the
	 * device was formatted for.
	 */
	const char *store;
	struct record_options records; /* what every kind of store takes */
	struct muninn_options muninn;  /* what one kind takes; the others leave it alone */
	bool stable_commits; /* every commit is as with `stable`; otherwise they survive a crash of
				the process only */
	bool merge_manual;   /* space is reclaimed by engine_merge only; otherwise also when it gets
				low */
	/*
	 * Threads that write full buffers to flash behind the writers, at most 2; 0: writers do it,
	 * and each run of a single-threaded caller is like the last one.
	 */
	uint32_t sealing_threads;
	/*
	 * A thread merges behind the writers when the device gets low, in pieces; with sealing
	 * threads only. Otherwise writers do it before their transactions.
	 */
	bool merging_thread;
	/*
	 * An object of at most so many bytes is one record: its data is in its onode. Default 1024,
	 * at most half of what a page has beside the onode's head. ENGINE_INLINE_NONE: no object
	 * is. Such objects stay as they are when another number is given, until they are written
	 * to.
	 */
	uint32_t inline_bytes;
	uint32_t onode_cache_entries;   /* decoded objects kept in memory; default 4096 */
	uint32_t directory_cache_nodes; /* decoded directory nodes kept in memory; default 1024 */
	/*
	 * Versions whose bound is kept in memory once it was asked for, 24 bytes each; default
	 * 16384. Reading an object as of another one costs one more look-up, of the version's
	 * record.
	 */
	uint32_t version_cache_entries;
	/*
	 * Moments of the past that can be told apart are so far apart; default 1000.
	 * ENGINE_EVERY_COMMAND: each command is one, which keeps every state of every directory.
	 */
	uint32_t history_interval_ms;
	uint64_t (*clock_ms)(void *); /* milliseconds since 1970 UTC; NULL = the system's clock */
	/*
	 * A clock that nobody can set, from wherever, in milliseconds. Device time goes on by it
	 * while the engine is open: locks count in it. NULL: `clock_ms` if that is given, of which
	 * only what goes forward counts; otherwise the system's monotonic clock.
	 */
	uint64_t (*running_ms)(void *);
	void *clock_context; /* of both */
};

/*
 * The names of the kinds of record stores that there are, the default first; NULL behind the last.
 */
const char *engine_store_name(size_t i);

/*
 * Zeroed NVRAM bytes that nand_create must provide for an engine formatted with these options.
 * -EINVAL in `error`.
 */
int engine_nvram_bytes(const struct nand_geometry *geometry, const struct engine_options *options,
		       uint64_t *bytes, struct error_text *error);

/*
 * The name of the kind that formatted a device, without opening it. Errors as those of engine_open:
 * -ENODEV; -EINVAL: `options` name another one, or this program does not have it.
 */
int engine_stored_kind(const struct nand *nand, const struct engine_options *options,
		       const char **name, struct error_text *error);

/*
 * The name of the index of records that a device was formatted with, without opening it. NULL: its
 * NVRAM does not say.
 */
const char *engine_stored_index(struct nand *nand);

/* Makes an empty store on a new or used device. Everything that it held is gone. */
int engine_format(struct nand *nand, const struct engine_options *options,
		  struct error_text *error);

/*
 * Makes a formatted device larger, to as many whole erase blocks as `bytes` of page data have. All
 * that is on it stays, and its history. Nobody uses `nand`; afterwards it can only be closed, as by
 * nand_grow. -EINVAL: it has as much already, or can't grow so far; `error` says why. Other errors
 * as those of engine_open and nand_grow.
 */
int engine_grow(struct nand *nand, uint64_t bytes, struct error_text *error);

/* Whether that could be done, as far as the device decides. Changes nothing; it may be in use. */
int engine_grow_check(struct nand *nand, uint64_t bytes, struct error_text *error);

/*
 * Opens a formatted device, completing or discarding whatever a crash left. Options that are fixed
 * at format are ignored. The engine uses `nand` until engine_close but does not own it. -ENODEV:
 * not formatted. -EINVAL: other version, corrupt. `error` says what and where.
 */
int engine_open(struct nand *nand, const struct engine_options *options, struct engine **engine,
		struct error_text *error);

#endif
