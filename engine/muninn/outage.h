/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* When the host itself has failed. */
#ifndef MUNINN_ENGINE_MUNINN_OUTAGE_H
#define MUNINN_ENGINE_MUNINN_OUTAGE_H

#include "engine/muninn/store.h"

/*
 * Whether the host has failed since the store was last open, `host_failed`: this boot of it is
 * another one than then, and the store was not closed.
 */
void outage_look(struct muninn_store *store, const struct record_options *records);

/* Notes this boot in NVRAM. */
void outage_note_boot(struct muninn_store *store);

/*
 * From now on the store is not closed any more, if the host has not failed. Before anything in
 * NVRAM changes; behind a crash of the store all of it is made stable. Errors of that. The
 * opposite: everything is stable, and nothing follows.
 */
int outage_begin(struct muninn_store *store, struct error_text *error);
void outage_note_clean(struct muninn_store *store);

/* Sets `committed` back to the last flush. Between loading the index and recovering the buffers. */
void outage_fall_back(struct muninn_store *store);

/* Aborts what came after the last flush, and makes what remains stable. */
int outage_finish(struct muninn_store *store, struct error_text *error);

#endif
