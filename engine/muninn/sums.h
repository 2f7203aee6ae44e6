/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Whether NVRAM holds what was stored there. Each structure has a sum in another page, which
 * changes with it (nvram.h). So whatever becomes of one page of the file while nobody has it open,
 * be it zeroed, changed, exchanged, or an older one, it contradicts another page.
 *
 * After a failure of the host pages need not fit together. Then the sums tell nothing, and opening
 * makes them again of what it has found to count.
 */
#ifndef MUNINN_ENGINE_MUNINN_SUMS_H
#define MUNINN_ENGINE_MUNINN_SUMS_H

#include "engine/muninn/store.h"

/*
 * Compares everything with its sum, and records with what their slots say; changes nothing. Growing
 * groups have been attached. -EINVAL with a sentence.
 */
int sums_check(const struct muninn_store *store, struct error_text *error);

/* The same without the buffers. */
int sums_check_others(const struct muninn_store *store, struct error_text *error);

/* Whether the state words and the aborted numbers are what they should be. */
bool sums_check_numbers(const struct muninn_store *store);

/* Of what fits: ends the change that was under way when the process ended. */
void sums_settle(struct muninn_store *store);

/* Whether the store was closed: NVRAM_CLEAN, or 0. */
void sums_set_clean(struct muninn_store *store, uint64_t clean);

/* Makes all of them again. The store is not closed then. */
void sums_set(struct muninn_store *store);

#endif
