/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Writing full groups of the rows' indices to flash. */
#ifndef MUNINN_ENGINE_MUNINN_IMAGE_H
#define MUNINN_ENGINE_MUNINN_IMAGE_H

#include "engine/muninn/store.h"

/*
 * A full group becomes a complete one in stages: image_begin chooses the directory's entry and
 * copies what is known of old records (older.h), image_make makes the image, image_place
 * chooses the pages, image_run programs them and makes them stable, image_list writes the
 * directory's entry, image_count makes the entry count, image_replace gives the index the complete
 * group and begins the next one. What changed in NVRAM is made stable behind each by
 * image_sync_entry and image_sync_group. image_make, image_run, and these run beside everything,
 * the others only in turn. One image at a time is under way.
 */

/* Begins store->image_writing. -ENOSPC. */
int image_begin(struct muninn_store *store, uint32_t row);

/*
 * The same for a group that takes the place of others, if the row has some that are worth it, and
 * if there is room: without image_skip, and its group in NVRAM stays as it is. In the stage between
 * image_count and image_replace both it and they are in the directory: image_load.c ends these
 * after a crash. What image_replace has held back may go when a root has followed, which is
 * expected, and image_sync_parts. False: nothing has begun.
 */
bool image_begin_join(struct muninn_store *store, uint32_t row);
int image_sync_parts(struct muninn_store *store);

/* -ENOMEM; errors of the host. Of a join also errors of flash, -EINVAL and -EFBIG. */
int image_make(struct muninn_store *store);

/* With the result of image_make. Errors leave none under way: its own, -ENOSPC. */
int image_place(struct muninn_store *store, int result);

/*
 * Programs at most *pages pages, and takes them off. *complete: all of them are stable. -ENOSPC,
 * -EIO.
 */
int image_run(struct muninn_store *store, uint32_t *pages, bool *complete);

/*
 * image_run has failed. 0: there is another place, begin again with image_run. Otherwise none is
 * under way any more.
 */
int image_failed(struct muninn_store *store, int result);

void image_list(struct muninn_store *store);

/* False: all segments of the group have been merged away, and nothing is under way any more. */
bool image_count(struct muninn_store *store);

/* -ENOMEM: nothing is under way any more. */
int image_replace(struct muninn_store *store);

/*
 * Writes the image of a complete group anew, at another place, and ends the one before: all in
 * turn, while none is under way. -EBADMSG: there is no whole one. -ENOSPC, -EIO, -ENOMEM.
 */
int image_renew(struct muninn_store *store, uint32_t row, uint32_t group);

/* Begins a row's next group, where the last one has no segments left. */
void image_skip(struct muninn_store *store, uint32_t row);

/* Forgets an image that does not count yet. */
void image_give_up(struct muninn_store *store);

/* What fails is logged: NVRAM says it all. */
int image_sync_entry(struct muninn_store *store);
void image_sync_group(struct muninn_store *store, uint32_t row);

#endif
