/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Shows what a page of all that is stored holds. */
#ifndef MUNINN_ENGINE_MUNINN_SAMPLE_H
#define MUNINN_ENGINE_MUNINN_SAMPLE_H

#include "engine/muninn/store.h"

/* record_store_operations.sample. Who samples shares the turn, so that nothing is sealed or freed.
 */
int sample_page(struct muninn_store *store, struct record_sample *sample);

/* record_store_operations.map, likewise. */
void sample_map(const struct muninn_store *store, struct record_stretch *stretches, uint32_t count);

#endif
