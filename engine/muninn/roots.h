/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What NVRAM says of the flash, kept on flash too. */
#ifndef MUNINN_ENGINE_MUNINN_ROOTS_H
#define MUNINN_ENGINE_MUNINN_ROOTS_H

#include "engine/muninn/store.h"

/*
 * Appends a root to the ring: what NVRAM says of the flash. What fails is logged: the store works
 * without. -EIO, -EFBIG (interrupted commands without end).
 */
int roots_write(struct muninn_store *store);

/*
 * The same in parts: makes the root; appends at most *pages pages of it, which are taken off.
 * Without one on its way: 0.
 */
int roots_begin(struct muninn_store *store);
int roots_go_on(struct muninn_store *store, uint32_t *pages);

/*
 * Before segments are taken out in NVRAM, and the flush that comes before that: should
 * roots_write_kills not be reached, opening writes a root. Otherwise these segments, free in NVRAM,
 * could be written again while the flash still says that they are in use.
 */
void roots_expect_kills(struct muninn_store *store);

/* Whether an earlier process, or a root that failed, left it at that. */
bool roots_lack_kills(const struct muninn_store *store);

/*
 * Notes in the ring that segments have been merged away. Before they may be written again. Errors
 * as above.
 */
int roots_write_kills(struct muninn_store *store, const struct root_kill *kills, uint32_t count);

/*
 * Erases the ring, which begins anew with roots from `serial` on. What can't be erased is left out.
 */
void roots_format(struct muninn_store *store, uint64_t serial);

/*
 * Whether the flash has a newer root than NVRAM knows: one page is looked at. -EINVAL with a
 * sentence.
 */
int roots_check(struct muninn_store *store, struct error_text *error);

#endif
