/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Complete groups of the rows' indices on flash. */
#ifndef MUNINN_ENGINE_MUNINN_DIRECTORY_H
#define MUNINN_ENGINE_MUNINN_DIRECTORY_H

#include "engine/muninn/store.h"

/* An entry that is not in use; NULL: there is none. */
uint8_t *directory_free_entry(const struct muninn_store *store);

/* Segments that an entry's image touches; the flash page of the image's n-th page. */
uint32_t directory_entry_segments(const struct muninn_geometry *geometry, const uint8_t *entry);
uint64_t directory_image_page(const struct muninn_geometry *geometry, const uint8_t *entry,
			      uint32_t page);

/* Whether an entry can be one of this geometry. -EINVAL with a sentence. */
int directory_check_entry(const struct muninn_geometry *geometry, const uint8_t *entry,
			  struct error_text *error);

/*
 * Counts an image in the segments that it touches, or counts it no longer. Those that no image
 * touches any more are free then, or, if the entry `counted`, held back (space_hold).
 */
void directory_count_image(struct muninn_store *store, const uint8_t *entry);
void directory_end_image(struct muninn_store *store, const uint8_t *entry, bool counted);

/* The next entry in use; *entry begins with 0. NULL: there are no more. */
uint8_t *directory_next(const struct muninn_store *store, uint32_t *entry);

/*
 * Notes those segments of a group that are `live`, as the beginning of its image says, in an entry
 * with row and number. directory_members gives them back, NO_SEGMENT for the others. False: nobody
 * has noted them, or they are damaged.
 */
void directory_put_members(const struct muninn_store *store, uint8_t *entry, const uint8_t *image,
			   uint64_t live);
bool directory_members(const struct muninn_store *store, const uint8_t *entry,
		       uint32_t members[GROUP_SEGMENTS]);

/* Takes a segment out of a row's index, so that nothing is looked for in it any more. */
void directory_take_out(struct muninn_store *store, uint32_t row,
			const struct sealed_segment *segment);

/* Ends the complete groups of a row that have no segment left. Their images are held back. */
void directory_drop_empty(struct muninn_store *store, uint32_t row);

/* Makes an entry count, or ends it: stores its live word. */
void directory_set_live(struct muninn_store *store, uint8_t *entry, uint64_t live);

/* The sum of the entries in use. */
uint64_t directory_sum(const struct muninn_store *store);

/* Entries of the directory that are in use. */
uint32_t directory_used(const struct muninn_store *store);

/*
 * directory_copy copies the entries in use one behind the other and returns their number.
 * directory_restore makes such a copy the directory.
 */
uint32_t directory_copy(const struct muninn_store *store, uint8_t *to);
void directory_restore(struct muninn_store *store, const uint8_t *from, uint32_t count);

/* Ends all entries of the directory in NVRAM. */
void directory_clear(struct muninn_store *store);

#endif
