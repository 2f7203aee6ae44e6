/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A merge or a repair that the target does by itself: beginning it, and waiting for its end. */
#ifndef MUNINN_CLIENT_CTL_MERGING_H
#define MUNINN_CLIENT_CTL_MERGING_H

#include "client/ctl/ctl.h"
#include "client/ctl/items.h"

/* Sends MERGE with an action; `found` is its result. An exit code. */
int merging_step(struct ctl *ctl, enum osd_merge_action action, struct items *found);

/* Waits until it has ended, or after ^C until it has stopped. `verb` names it. An exit code. */
int merging_wait(struct ctl *ctl, const char *verb, struct items *found);

/* If the last one ended early, says why. An exit code. */
int merging_outcome(struct ctl *ctl, const char *verb, const struct items *found);

#endif
