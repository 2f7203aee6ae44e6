/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Who may log in, and with which account: handed to tgtd at the start, and when it changes. */
#ifndef MUNINN_DAEMON_ACCESS_H
#define MUNINN_DAEMON_ACCESS_H

#include <stdbool.h>

#include "daemon/config.h"
#include "daemon/tgtd.h"

/* Whether an initiator may log in to a target: its name, or its numeric address, is in a list. */
bool access_allows(const struct target_config *target, const char *name, const char *address);

bool access_is_same_lists(const struct target_config *a, const struct target_config *b);

/*
 * Changes the lists of a target that tgtd has to those of `new`. As the requests of tgt_control.h;
 * `now` has what tgtd has, however far it came. Sessions that are logged in stay.
 */
int access_change_lists(struct tgtd *tgtd, struct target_config *now,
			const struct target_config *new, struct error_text *error);

/* Whether two configurations have the same accounts, of targets and of discovery. */
bool access_is_same_accounts(const struct config *a, const struct config *b);

/*
 * Whether the target of that label is served without an account while `wanted` requires one: a
 * change of accounts has failed.
 */
bool access_lacks_account(const struct config *served, const struct config *wanted,
			  const char *label);

/* Gives a tgtd that has no accounts those of a configuration, whose targets are there. */
int access_make_accounts(struct tgtd *tgtd, const struct config *config, struct error_text *error);

/*
 * Replaces all accounts that tgtd has by those of `new`. At no moment anybody gets in without one
 * where `now` requires one: if this fails midway, nobody may get in, until it is done again. `new`
 * says to which targets of `now` its accounts belong: by labels.
 */
int access_change_accounts(struct tgtd *tgtd, const struct config *now, const struct config *new,
			   struct error_text *error);

#endif
