/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Heap memory by what it holds. */
#ifndef MUNINN_ENGINE_MUNINN_MEMORY_H
#define MUNINN_ENGINE_MUNINN_MEMORY_H

#include "engine/muninn/store.h"

/* Fills the first of RECORD_MEMORY_KINDS_MAX. */
void memory_count(const struct muninn_store *store, struct record_memory *memory);

#endif
