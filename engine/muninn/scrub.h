/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads what is on flash, to find what it has lost while that can still be made again. */
#ifndef MUNINN_ENGINE_MUNINN_SCRUB_H
#define MUNINN_ENGINE_MUNINN_SCRUB_H

#include "engine/muninn/store.h"

/* record_store_operations.scrub. */
void scrub_some(struct muninn_store *store, struct record_scrub *scrub);

#endif
