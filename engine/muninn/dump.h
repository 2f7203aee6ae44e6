/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a page of flash says, whether or not anything refers to it, and though it may be damaged.
 * For looking at a device that is not open. Changes nothing.
 */
#ifndef MUNINN_ENGINE_MUNINN_DUMP_H
#define MUNINN_ENGINE_MUNINN_DUMP_H

#include "common/error.h"
#include "common/fields.h"
#include "engine/records/records.h"
#include "nand/inspect.h"

struct muninn_dump;

/* How much of it. */
enum dump_depth {
	DUMP_BRIEF, /* what kind of page it is, and how much it holds */
	DUMP_LONG,  /* all of it; with the first page of a root or an image all of that, too */
	DUMP_WHOLE, /* that with any of its pages */
};

/* Tells what a key means to the layers above. */
typedef void dump_key_teller(const struct fields *to, const struct record_key *key);

/*
 * Finds the device's geometry and the directory of its index: in NVRAM, or, where that is lost or
 * damaged, in the last root. Without either pages are decoded all the same; only what they are part
 * of is not known then. -EPROTO with a sentence: another version of the format has written them.
 * -ENOMEM.
 */
int muninn_dump_begin(struct nand *nand, dump_key_teller *tell_key, struct muninn_dump **dump,
		      struct error_text *error);
void muninn_dump_end(struct muninn_dump *dump);

/* What of that was not found, as a sentence; NULL: nothing is missing. */
const char *muninn_dump_trouble(const struct muninn_dump *dump);

/*
 * Tells `kind` and what else there is to tell. Kinds: erased, records, index, index parity, root,
 * root parity, list; foreign: no page of this engine; unreadable: damaged so that it can't be
 * told.
 */
void muninn_dump_page(struct muninn_dump *dump, const struct nand_page_dump *page,
		      enum dump_depth depth, const struct fields *to);

#endif
