/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* From the host's caches to its storage. */
#ifndef MUNINN_ENGINE_MUNINN_FLUSH_H
#define MUNINN_ENGINE_MUNINN_FLUSH_H

#include "engine/muninn/store.h"

/* record_store_operations.flush_begin, flush. */
uint64_t flush_begin(struct muninn_store *store);
int flush_end(struct muninn_store *store, uint64_t number);

/* The two halves of flush_end: all of the NVRAM but its first page, and the number on that. */
int flush_sync(struct muninn_store *store);
int flush_publish(struct muninn_store *store, uint64_t number);

/* Makes all that is committed stable on the host at once, in turn. */
int flush_all(struct muninn_store *store);

/* record_store_operations.copy_nvram. */
void flush_copy(struct muninn_store *store, uint8_t *to);

#endif
