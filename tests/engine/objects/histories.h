/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Histories of commands that overlapped, and whether some order explains them: each command takes
 * effect at one moment between its call and its return, and answers what the state then tells
 * (Herlihy and Wing's linearizability; the search is Wing and Gong's, with Lowe's memory of what
 * was tried).
 */
#ifndef MUNINN_TESTS_ENGINE_OBJECTS_HISTORIES_H
#define MUNINN_TESTS_ENGINE_OBJECTS_HISTORIES_H

#include <stdbool.h>
#include <stdint.h>

enum { HISTORY_OBJECTS = 3, HISTORY_VERSIONS = 4, HISTORY_CALLS_MAX = 40 };

/* What an object holds. */
struct history_object {
	uint32_t exists, value; /* value: what was written last */
	uint32_t appended;      /* pieces behind that ... */
	uint32_t hash;          /* ... and of what they are */
};

struct history_objects {
	struct history_object at[HISTORY_OBJECTS];
};

struct history_state {
	struct history_objects now;
	struct {
		uint32_t number; /* of the version; 0: none */
		struct history_objects objects;
	} versions[HISTORY_VERSIONS];
};

enum history_kind {
	HISTORY_READ, /* all objects; with `version` as they were then */
	HISTORY_CREATE,
	HISTORY_WRITE,
	HISTORY_APPEND,
	HISTORY_REMOVE,
	HISTORY_SNAPSHOT,
	HISTORY_ROLLBACK, /* to `version` */
	HISTORY_FLUSH,
	HISTORY_KINDS
};

struct history_call {
	enum history_kind kind;
	uint32_t object, value, version;
	uint64_t called, returned; /* moments */
	int result;
	struct history_objects found; /* by a READ */
};

uint32_t history_hash(uint32_t hash, uint32_t value);

/*
 * Whether an order explains the calls from *state on, which then becomes the state behind them.
 * At most HISTORY_CALLS_MAX calls.
 */
bool history_is_explained(const struct history_call *calls, uint32_t count,
			  struct history_state *state);

void history_print(const struct history_call *calls, uint32_t count);

#endif
