/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Frees what a format made void. */
#ifndef MUNINN_ENGINE_MUNINN_SETTLE_H
#define MUNINN_ENGINE_MUNINN_SETTLE_H

#include "engine/muninn/store.h"

/*
 * After the commit of a format: makes it stable and frees what is void, unless that has been done.
 * An error is logged; it leaves all as it is, to be tried again. -EIO, -ENOMEM.
 */
int settle_format(struct muninn_store *store);

#endif
