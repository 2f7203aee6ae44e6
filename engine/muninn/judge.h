/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What a merge must keep of what it finds. */
#ifndef MUNINN_ENGINE_MUNINN_JUDGE_H
#define MUNINN_ENGINE_MUNINN_JUDGE_H

#include "engine/muninn/merge_run.h"

/*
 * Whether a record must be kept, and whether it is the newest of its key, hidden ones counted: enum
 * record_need. Or a negative errno when that can't be read; -EBUSY: it would take more page reads
 * than are left; -EBADMSG: the record must not be moved, because pages are lost that may have a
 * later put of its command. `roughly`: see struct record_judged.
 */
int judge_record(struct merge_run *run, const struct record_header *header, bool roughly);

#endif
