/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What single pages of a device's flash say, for looking at a device that is not open, or damaged.
 * docs/format.md has the structures, docs/nand.md the fields.
 */
#ifndef MUNINN_ENGINE_DUMP_H
#define MUNINN_ENGINE_DUMP_H

#include "engine/muninn/dump.h"

struct engine_dump;

/*
 * Changes nothing. -ENODEV with a sentence: no engine that this program has formatted the device.
 * Otherwise as muninn_dump_begin.
 */
int engine_dump_begin(struct nand *nand, struct engine_dump **dump, struct error_text *error);
void engine_dump_end(struct engine_dump *dump);

/* As muninn_dump_trouble and muninn_dump_page; a record's key is told as `record`. */
const char *engine_dump_trouble(const struct engine_dump *dump);
void engine_dump_page(struct engine_dump *dump, const struct nand_page_dump *page,
		      enum dump_depth depth, const struct fields *to);

#endif
