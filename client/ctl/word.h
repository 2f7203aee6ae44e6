/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Words that are left beside an image of this host for the daemon that has it open, which answers
 * there.
 */
#ifndef MUNINN_CLIENT_CTL_WORD_H
#define MUNINN_CLIENT_CTL_WORD_H

#include "client/ctl/ctl.h"

/*
 * Which process has the image of the URL's place open; 0: none, or it is no image, and then *code
 * says so.
 */
long word_holder(struct ctl *ctl, int *code);

/*
 * Leaves IMAGE.NAME with `text` in it. With a `holder` waits until that has taken it up: CTL_OK
 * when it has carried it out, or `refused` with "NAME: SUBJECT: reason". Without one it stays for
 * the next. CTL_TARGET: the holder does not answer.
 */
int word_leave(struct ctl *ctl, const char *name, const char *text, long holder,
	       enum ctl_exit refused, const char *subject);

#endif
