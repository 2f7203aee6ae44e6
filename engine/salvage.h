/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Copying what is whole on a damaged device to a new one. */
#ifndef MUNINN_ENGINE_SALVAGE_H
#define MUNINN_ENGINE_SALVAGE_H

#include "engine/check.h"

struct engine_salvage {
	struct engine_check check; /* `findings` and `progress` are the caller's */
	/* Results: what has been copied. */
	uint64_t partitions, objects, collections, data_bytes;
};

/*
 * The options that a device was formatted with, for one that is to hold the same; and those of run
 * time as in `options`.
 */
void engine_formatted_options(const struct engine *engine, struct engine_options *options);

/*
 * Checks `from` as engine_check does, and copies the present of all that can be read to `to`, which
 * is new and empty: partitions, objects, collections, attributes, keys, times, policies. Versions
 * and the rest of history are not copied; clones become partitions of their own. Where data can't
 * be read there is a hole. Everything that is not copied in whole is a finding. -ENOMEM, -EBADMSG
 * as engine_check; errors of `to`: it is of no use.
 */
int engine_salvage(struct engine *from, struct engine *to, struct engine_salvage *salvage);

#endif
