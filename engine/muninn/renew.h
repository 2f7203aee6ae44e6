/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Writing anew what says where records are, where the flash has lost pages of it. */
#ifndef MUNINN_ENGINE_MUNINN_RENEW_H
#define MUNINN_ENGINE_MUNINN_RENEW_H

#include "engine/muninn/store.h"

/*
 * Writes the next image of a group of the index anew that lost a page, or else the root. In turn.
 * 0. 1: there was nothing to do. -EBADMSG: it was given up, because nobody has all of it. Other
 * errors: what there is waits.
 */
int renew_next(struct muninn_store *store);

#endif
