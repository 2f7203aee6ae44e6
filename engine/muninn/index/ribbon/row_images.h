/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What look-ups need of the images of a row's complete groups and sections: one behind the other in
 * one mapping, in no order, each at a cache line. Where one goes, those behind it move up. So a row
 * has part of one page too much, and not part of a page for each image.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_ROW_IMAGES_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_ROW_IMAGES_H

#include "engine/muninn/index/ribbon/ribbon_row.h"

/* Makes room for the image of one more group; groups' images may move. -ENOMEM. */
int row_images_make_room(struct ribbon_row *row, const struct group *group);

/* Copies what look-ups need of a group there, and takes that up. There is room for it. */
void row_images_add(struct ribbon_row *row, const struct group *group, struct group *kept);

/* Takes out that of a complete group or a section, which then has none. */
void row_images_take_out(struct ribbon_row *row, struct group *group);

/* Gives back what is neither used nor meant for the section that counts next. */
void row_images_fit(struct ribbon_row *row);

#endif
