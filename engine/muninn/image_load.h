/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reading the images of complete groups, also those that the flash has lost in part or in whole. */
#ifndef MUNINN_ENGINE_MUNINN_IMAGE_LOAD_H
#define MUNINN_ENGINE_MUNINN_IMAGE_LOAD_H

#include "engine/muninn/store.h"

/*
 * Loads all complete groups, marks the segments that their images occupy, and finds where the next
 * image goes. An image that is lost is made again from the segments of its group. -EINVAL, -EBADMSG
 * with a sentence.
 */
int image_load_all(struct muninn_store *store, bool *in_use, struct error_text *error);

/*
 * Reads the whole image of an entry, or of a copy of one, to the heap, beside everything. What
 * can't be read is not made again: errors of flash, -ENOMEM. It may be another image's by now.
 */
int image_read(struct muninn_store *store, const uint8_t *entry, struct index_image *image);

/* An index_page_reader with the store as its context. */
int image_read_page(void *context, uint32_t row, uint32_t group, const uint8_t *live, uint32_t page,
		    uint8_t *data);

/*
 * Looks at one page of an image, and of its parity, as it is on flash. `data`: space for a page.
 * -EBADMSG: it is lost, but parity has it; -EIO: it is lost, and parity does not have it.
 */
int image_examine_page(struct muninn_store *store, enum nand_cause cause, const uint8_t *entry,
		       uint32_t page, uint8_t *data);

#endif
