/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What NVRAM says of the flash, kept on flash too. */
#ifndef MUNINN_ENGINE_MUNINN_ROOTS_H
#define MUNINN_ENGINE_MUNINN_ROOTS_H

#include "engine/muninn/store.h"

/*
 * Appends a root to the ring. Errors are logged, and the store works without it. -EIO, -EFBIG (too
 * many interrupted commands).
 */
int roots_write(struct muninn_store *store);

/*
 * The same in parts. roots_begin makes the root. roots_run, which runs beside everything, appends
 * at most *pages pages of it, and takes them off; *complete: it is on flash. roots_end, in turn,
 * ends that with the result of roots_run.
 */
int roots_begin(struct muninn_store *store);
int roots_run(struct muninn_store *store, uint32_t *pages, bool *complete);
int roots_end(struct muninn_store *store, int result);

/*
 * The same for a group of row `number` that has just become complete; no segment is in its next
 * group yet. `entry` of the directory names it. Begins a list of changes, or a root where the list
 * is full.
 */
int roots_begin_group(struct muninn_store *store, uint32_t number, const uint8_t *entry);

/* Whether one is between begin and end; ends it at once. */
bool roots_are_under_way(const struct muninn_store *store);
int roots_finish(struct muninn_store *store);

/*
 * Call it before NVRAM leaves out segments that the last root names: before the flush or sync that
 * precedes that. If neither roots_supersede nor roots_write_kills is reached, opening writes a
 * root. Otherwise these segments, which are free in NVRAM, could be written again while the flash
 * says that they are in use. A root that others write meanwhile may still name them.
 */
void roots_expect(struct muninn_store *store);

/* Whether roots_expect was called and neither of the two below since. */
bool roots_are_expected(const struct muninn_store *store);

/*
 * Writes a root that leaves out what was expected to be left out. If it fails, no list of changes
 * goes with the last one any more: what comes next is a root. Errors as above.
 */
int roots_supersede(struct muninn_store *store);

/*
 * Notes in the ring that segments have been merged away. They may be written again only after that.
 * Errors as above.
 */
int roots_write_kills(struct muninn_store *store, const struct root_kill *kills, uint32_t count);

/*
 * Erases the ring, which begins anew with roots from `serial` on. What can't be erased is left out.
 */
void roots_format(struct muninn_store *store, uint64_t serial);

/*
 * Looks at one page, to see whether the flash has a root that NVRAM does not know. -EINVAL with a
 * sentence: it has, so the NVRAM is an older one.
 */
int roots_check(struct muninn_store *store, struct error_text *error);

/*
 * Whether no page is lost of the last root, or of the list of changes that goes with it. While no
 * root is under way.
 */
bool roots_last_is_whole(const struct muninn_store *store);

#endif
