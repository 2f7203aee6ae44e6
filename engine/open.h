/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which kinds of record stores there are, and how a device is opened by its own kind. */
#ifndef MUNINN_ENGINE_OPEN_H
#define MUNINN_ENGINE_OPEN_H

#include "engine/options.h"
#include "engine/records/records.h"

/*
 * Adds a kind of store to those that are known, before the first device is opened; it gets no
 * options of its own. For tests.
 */
void engine_add_store(const struct record_store_type *type);

/*
 * Opens the record store of a device that engine_format has formatted, without objects on it.
 * Errors as those of engine_open.
 */
int engine_open_records(struct nand *nand, const struct engine_options *options,
			struct record_store **store, struct error_text *error);

#endif
