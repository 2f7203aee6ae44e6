/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Look-ups. `run`: the merge that one is made for, which counts its reads; NULL: none. */
#ifndef MUNINN_ENGINE_MUNINN_LOOKUP_H
#define MUNINN_ENGINE_MUNINN_LOOKUP_H

#include "engine/muninn/merge_run.h"

/* record_store_operations.get, with what counts. -EBUSY: the merge may read no more. */
int lookup_get(struct muninn_store *store, const struct record_key *key,
	       const struct visibility *visibility, struct merge_run *run, void *value,
	       uint32_t capacity, struct record_info *info);

/*
 * What is found, for a merge that wants only sequence numbers from `since` on: it may find an older
 * record, or none, where there are only older ones. `any`: of what is newer than that, not the
 * newest is wanted, but any. *crc: of the record, which its header has.
 */
int lookup_find_since(struct muninn_store *store, const struct record_key *key,
		      const struct visibility *visibility, uint64_t since, bool any,
		      struct merge_run *run, struct record_info *info, uint32_t *crc);

/*
 * Whether a tombstone ends anything: whether its key has another record as old as it or older, of
 * its own command too, hidden or not. 1, 0, or the error of the search.
 */
int lookup_has_older(struct muninn_store *store, const struct record_key *key, uint64_t sequence,
		     struct merge_run *run);

/*
 * The `max` newest records of a key that count, newest first. Returns how many there are, or the
 * error of the search.
 */
int lookup_list(struct muninn_store *store, const struct record_key *key,
		const struct visibility *visibility, struct record_info *infos, uint32_t max);

/*
 * record_store_operations.get_run, for values of at least a page each. Looks for all pieces in
 * memory first. Then it reads pages of flash for all that are left, in one request, until each
 * piece is found or nowhere.
 */
void lookup_get_run(struct muninn_store *store, const struct record_key *key, uint32_t count,
		    const struct visibility *visibility, uint8_t *values, uint32_t capacity,
		    struct record_found *found);

/* record_store_operations.has_between. */
int lookup_has_between(struct muninn_store *store, const struct record_key *key, uint64_t after,
		       uint64_t bound, struct merge_run *run);

#endif
