/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What a format makes void. */
#ifndef MUNINN_ENGINE_MUNINN_VOID_H
#define MUNINN_ENGINE_MUNINN_VOID_H

#include "engine/muninn/store.h"

/* The running transaction sees only what it puts, and its commit makes all else void. */
void void_begin(struct muninn_store *store, uint64_t sequence);

/* The running transaction is aborted. */
void void_take_back(struct muninn_store *store);

/* Whether a format is committed, but not settled yet. */
bool void_is_unsettled(const struct muninn_store *store);

/* What is older does not count, by the last format that was committed. */
uint64_t void_in_effect(const struct muninn_store *store);

/* When opening: whether the last format was committed. `committed` is final. */
void void_recover(struct muninn_store *store);

#endif
