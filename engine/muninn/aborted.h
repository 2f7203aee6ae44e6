/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Sequence numbers that never count. */
#ifndef MUNINN_ENGINE_MUNINN_ABORTED_H
#define MUNINN_ENGINE_MUNINN_ABORTED_H

#include "engine/muninn/store.h"

/* Whether one more range can be noted. */
bool aborted_has_room(const struct muninn_store *store, enum record_room room);

/* Why a device without that can't be opened. Returns -EINVAL. */
int aborted_refuse(struct error_text *error);

/*
 * Skips the numbers above the committed one, up to `last`: notes that they never count, so no
 * reader finds their records on flash, and makes `last` the committed number. There must be space
 * for one more range.
 */
void aborted_skip_to(struct muninn_store *store, uint64_t last);

/* Ends the list with what was in it at the commit of `last`. */
void aborted_take_back(struct muninn_store *store, uint64_t last);

/* The sum of the ranges that count. */
uint64_t aborted_sum(const struct muninn_store *store);

/* Takes ranges off the list that no sealed segment needs any more. */
int aborted_prune(struct muninn_store *store);

#endif
