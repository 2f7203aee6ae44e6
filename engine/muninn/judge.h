/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What a merge must keep of what it finds. */
#ifndef MUNINN_ENGINE_MUNINN_JUDGE_H
#define MUNINN_ENGINE_MUNINN_JUDGE_H

#include "engine/muninn/merge_run.h"

/*
 * Whether a record must be kept, and whether nothing newer of its key has been put, hidden or not:
 * enum record_need. Negative errno when that can't be read; -EBUSY: not with as many page reads as
 * there may be. `roughly`: what is kept for the moment at which it was put is not looked for, which
 * takes the most of all reads, and seldom finds that its command put another one.
 */
int judge_record(struct merge_run *run, const struct record_header *header, const uint8_t *value,
		 bool roughly);

#endif
