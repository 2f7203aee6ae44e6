/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the parts of engine_check share. */
#ifndef MUNINN_ENGINE_CHECK_PRIVATE_H
#define MUNINN_ENGINE_CHECK_PRIVATE_H

#include "engine/check.h"
#include "engine/objects/objects.h"

struct checking {
	struct engine *engine;
	struct engine_txn *txn; /* a reading one */
	struct engine_check *check;
	uint64_t *owners;   /* by partition index: the ID of the present partition, or 0 */
	bool all_uncertain; /* the store lacks records, nobody knows which */
	/* Indices that the partition reads its records under: its own, then those of its sources.
	 */
	uint16_t lineage[ENGINE_CLONE_DEPTH_MAX + 1];
	uint32_t lineage_count;
	uint8_t *value; /* space for the longest attribute */
};

/*
 * What may be older than it was, where the store lacks records (check_certain.c): the device, a
 * partition (0: the root), an object.
 */
void check_lineage(struct checking *checking, const struct partition *partition); /* first */
void check_device_certain(struct checking *checking);
void check_partition_certain(struct checking *checking, uint64_t partition);
void check_object_certain(struct checking *checking, struct engine_address address,
			  const struct onode *onode);

/* What an error of the engine is called in a finding. */
const char *check_trouble(int result);

/* How many members a list has that could not be read to its end. */
#define CHECK_UNKNOWN UINT64_MAX

typedef void check_visitor(struct checking *checking, struct engine_address member, void *context);

/*
 * Calls `visit` for all IDs of a list. Returns how many there are; what ends the list before its
 * end is a finding of `kind`.
 */
uint64_t check_list(struct checking *checking, struct engine_address address, enum engine_list what,
		    enum finding_kind kind, check_visitor *visit, void *context);

/* What is asked for: progress; what there is. */
void check_tell(struct checking *checking, const char *step, uint64_t done, uint64_t total);
void check_member(struct checking *checking, struct engine_address address, enum engine_type type);

/* A check_visitor: a partition and all that is in it, perhaps at a version. */
void check_partition(struct checking *checking, struct engine_address address, void *context);

/* A user object, its data and attributes; *used grows by what it holds. (check_objects.c) */
void check_object(struct checking *checking, struct engine_address address, uint64_t *used);
void check_collection(struct checking *checking, struct engine_address address);
void check_attributes(struct checking *checking, struct engine_address address);

/* A record of the store: an object's that no directory has. (check_objects.c) */
void check_orphan(struct checking *checking, const struct record_key *key,
		  const struct record_info *info);

/* Versions of a partition, 0: of the device; what a clone stands on. (check_history.c) */
void check_versions(struct checking *checking, uint64_t partition);
void check_clone(struct checking *checking, uint64_t partition);

#endif
