/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What is kept of each record: what is found at the present, at the end of every kept version, and
 * at every moment that can be reached, of objects that exist there. For those who judge records:
 * merges, and who asks what takes space.
 */
#ifndef MUNINN_ENGINE_HISTORY_KEEP_H
#define MUNINN_ENGINE_HISTORY_KEEP_H

#include "engine/history/past.h"
#include "engine/history/standing.h"

/* What is not to count, to see what would be kept then. */
struct keep_without {
	bool spare;             /* history that goes when writes need its space */
	uint16_t index;         /* of a partition, 0 the device: the rest is about its moments */
	uint64_t horizon;       /* moments before it that are no versions */
	const uint64_t *bounds; /* its versions with these bounds */
	uint32_t count;
};

/* Owners that are remembered, one of each index that has the same rest. A power of two. */
#define KEEP_OWNERS 16

/* Who has an index, there or gone. */
struct keep_owner {
	bool known, failed;
	uint16_t index;
	struct source source;
	uint64_t horizon; /* of the owner by itself */
	/* What was kept between two numbers, when somebody asked last. */
	struct {
		bool known, of_owner;
		uint64_t from, bound;
	} kept;
};

/*
 * What was looked up last. Records of one object tend to lie together; those of partitions are
 * mixed, by the hashes of their keys.
 */
struct keep_context {
	struct engine *engine;
	const struct keep_without *without; /* NULL: all is as it is */
	bool shares;                        /* the turn, with other readers */
	struct partition *root;             /* pinned */
	struct history device;              /* the root's, or what it would be */
	uint64_t device_horizon;
	bool failed; /* to learn about the device: everything is kept */
	struct keep_owner owners[KEEP_OWNERS], *owner; /* the one that was asked for last */
	struct {
		bool known, exists;
		uint16_t index;
		uint64_t bound;
		struct partition state;
	} state;
	struct {
		bool known;
		uint16_t index;
		uint64_t identifier;
		uint64_t bound;
		struct onode *onode; /* NULL: does not exist there */
	} object;
};

/*
 * The caller has the turn, and no transaction that writes is open. It may share the turn with
 * readers: `shares`.
 */
void keep_begin(struct keep_context *context, struct engine *engine,
		const struct keep_without *without, bool shares);
void keep_end(struct keep_context *context);

/* For the store; it holds until keep_end. */
struct record_keep keep_of(struct keep_context *context);

/* Who has the index of a key, there or gone; until the next call. NULL: that can't be read. */
const struct source *keep_source(struct keep_context *context, const struct record_key *key);

/* The lowest bound >= `bound` at which records of a key's partition are kept. */
int keep_next(struct keep_context *context, const struct record_key *key, uint64_t bound,
	      uint64_t *next);

#endif
