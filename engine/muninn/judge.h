/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What merging must keep of what it finds. Private to this folder. */
#ifndef MUNINN_ENGINE_MUNINN_JUDGE_H
#define MUNINN_ENGINE_MUNINN_JUDGE_H

#include "engine/muninn/store.h"

enum need { NEED_NONE, NEED_NEWEST, NEED_OLD };

/*
 * Before the first record of a merge: nothing is known of what is found, and `reads_max` pages may
 * be read.
 */
void judge_begin(struct muninn_store *store, uint64_t reads_max);

/*
 * Whether a record must be kept, and whether nothing newer of its key has been put, hidden or not:
 * enum need. Negative errno when that can't be read; -EBUSY: not with as many page reads as there
 * may be. `roughly`: what is kept for the moment at which it was put is not looked for, which takes
 * the most of all reads, and seldom finds that its command put another one.
 */
int judge_record(struct muninn_store *store, const struct record_keep *keep,
		 const struct record_header *header, const uint8_t *value, bool roughly);

#endif
