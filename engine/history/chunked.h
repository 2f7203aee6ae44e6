/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Tables of the root whose entries have a fixed size, by number, so many in a record. Only ever
 * read as a whole, and as of now.
 */
#ifndef MUNINN_ENGINE_HISTORY_CHUNKED_H
#define MUNINN_ENGINE_HISTORY_CHUNKED_H

#include "engine/objects/keys.h"
#include "engine/records/access.h"

/* Of a record: pages of 512 bytes have room for no more. */
#define CHUNKED_BYTES_MAX 448

struct chunked {
	uint64_t identifier;           /* of the root; timeless */
	uint32_t entries, entry_bytes; /* of a record */
};

/*
 * Calls `take` for entries 0..count - 1, in order. Its errors, and -EBADMSG (one is missing), -EIO.
 */
int chunked_load(struct record_store *store, const struct chunked *table, uint32_t count,
		 int (*take)(void *context, uint32_t number, const uint8_t *entry), void *context);

/*
 * Puts entry `number`: the next one behind the last, or, with `replaces`, in the place of one.
 * -ENOSPC, -EIO, -EBADMSG.
 */
int chunked_put(const struct record_writer *writer, const struct chunked *table, uint32_t number,
		bool replaces, const uint8_t *entry);

#endif
