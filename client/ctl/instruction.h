/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Instructions for the daemon that has an image of this host open. They are files beside the
 * image, and the daemon answers there.
 */
#ifndef MUNINN_CLIENT_CTL_INSTRUCTION_H
#define MUNINN_CLIENT_CTL_INSTRUCTION_H

#include "client/ctl/ctl.h"

/*
 * The process that has the image open whose path stands in the URL's place. 0: none has. If the
 * path is no image, *code is not CTL_OK.
 */
long instruction_holder(struct ctl *ctl, int *code);

/*
 * Leaves IMAGE.NAME with `text` in it. If process `holder` has the image open, waits for its
 * answer: CTL_OK when it has carried it out, `refused` with "NAME: SUBJECT: reason" when not,
 * CTL_TARGET when it does not answer. `holder` 0: the file stays for the next daemon, and another
 * one that already does is left alone, CTL_EXISTS.
 */
int instruction_leave(struct ctl *ctl, const char *name, const char *text, long holder,
		      enum ctl_exit refused, const char *subject);

#endif
