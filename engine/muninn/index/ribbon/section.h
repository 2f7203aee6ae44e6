/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A section of a growing group: a ribbon of RIBBON_SECTION_MEMBERS members that follow each other.
 *
 * NVRAM has their tags until the group is complete, and the image of that is made from them. So a
 * section is in memory alone, and opening makes it again. It takes two bytes a key, while the exact
 * table takes five.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_SECTION_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_SECTION_H

#include "engine/muninn/index/ribbon/growing.h"

struct section {
	struct group group; /* of an image in memory, at a cache line, without its failed entries */
	uint8_t *image;     /* on the heap; NULL: there is no section, or the row has its image */
	struct tag_entry *failed; /* group.failed of them; their segments are members of it */
};

/*
 * Makes section `number`, from 0, of a growing group whose members it takes are there. Only bits of
 * live members may change meanwhile. -ENOMEM: there is none.
 */
int section_make(struct section *section, const struct growing *growing, uint32_t number);

/* The exact table has its failed entries now. */
void section_forget_failed(struct section *section);

void section_destroy(struct section *section);

#endif
