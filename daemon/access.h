/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Who may log in, and with which account: handed to tgtd at the start, and when it changes. */
#ifndef MUNINN_DAEMON_ACCESS_H
#define MUNINN_DAEMON_ACCESS_H

#include <stdbool.h>

#include "daemon/config.h"
#include "daemon/tgtd.h"

/* Whether an initiator may log in: its name, or its numeric address, is in a list. */
bool access_allows(const struct config *config, const char *name, const char *address);

/*
 * Changes the lists from those of `old` to those of `new`. As the requests of tgt_control.h.
 * Sessions that are logged in stay.
 */
int access_change(struct tgtd *tgtd, const struct config *old, const struct config *new,
		  struct error_text *error);

/* The same of the account. At no moment anybody gets in without one, if both have one. */
int access_change_account(struct tgtd *tgtd, const struct config *old, const struct config *new,
			  struct error_text *error);

#endif
