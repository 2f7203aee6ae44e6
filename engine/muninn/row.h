/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which buffers a row has. */
#ifndef MUNINN_ENGINE_MUNINN_ROW_H
#define MUNINN_ENGINE_MUNINN_ROW_H

#include "engine/muninn/store.h"

/*
 * After a failure of the host the next serial may be as it was before others, which a recovery has
 * raised by less than this.
 */
#define SERIALS_AHEAD_MAX (UINT64_C(1) << 40)

static inline bool row_has_newer(const struct row *row)
{
	return row->newer.area != NULL;
}

/* Where a key's records are. RECORD_CLASS_HISTORY has a row of its own. */
static inline uint32_t row_of_key(const struct muninn_store *store, const struct record_key *key,
				  const struct key_hash *hash)
{
	return key->class == RECORD_CLASS_HISTORY ? history_row(&store->geometry)
						  : hash_row(hash, store->geometry.hashed_rows);
}

/* Begins an empty active segment for a row without one. There must be a free buffer. */
void row_start_buffer(struct muninn_store *store, uint32_t row);

/*
 * Begins a second, newer one beside it. There must be a free buffer. row_has_spare: whether there
 * is one that the row may take; the last one is history's.
 */
void row_take_newer(struct muninn_store *store, uint32_t row);
bool row_has_spare(const struct muninn_store *store, uint32_t row);

/*
 * Whether the next row that is full may find no spare buffer, though some are about to become free.
 */
bool rows_are_pressed(const struct muninn_store *store);

/* Ends the row's (older) buffer, whose segment has been sealed. */
void row_end_buffer(struct muninn_store *store, uint32_t row);

/* All buffers become no row's, and empty. */
void rows_release_buffers(struct muninn_store *store);

/*
 * After a failure of the host, when sums do not tell: whether the headers of all buffers can be
 * some. -EINVAL with a sentence.
 */
int rows_check_headers(const struct muninn_store *store, struct error_text *error);

/*
 * Gives each row the buffers in NVRAM that are its own and not sealed, cuts them to what is
 * committed and builds their indices again. -EINVAL with a sentence.
 */
int rows_recover_buffers(struct muninn_store *store, struct error_text *error);

/* At the end of a transaction: what its rows hold is to be promised, and none is touched any more.
 */
void rows_end_touched(struct muninn_store *store);

/*
 * Removes from a row's buffers what is newer than `last`. A newer buffer that is empty then is
 * given back, but where the older one keeps so much that a transaction that may not seal would find
 * it full again (waiting.h).
 */
void row_cut(struct muninn_store *store, uint32_t row, uint64_t last);

/* Bytes of headers and values in all buffers; memory of the buffers' indices. */
uint64_t rows_buffered_bytes(const struct muninn_store *store);
uint64_t rows_index_bytes(const struct muninn_store *store);

/* Drops everything older than `before` from all buffers. */
void rows_drop_void(struct muninn_store *store, uint64_t before);

#endif
