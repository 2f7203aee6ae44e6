/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Clones: partitions that begin as another one was. How they read is in lineage.h. */
#ifndef MUNINN_ENGINE_HISTORY_CLONES_H
#define MUNINN_ENGINE_HISTORY_CLONES_H

#include "engine/objects/objects.h"

/*
 * A partition is about to be removed: keeps its index if clones stand on it; *kept = whether it
 * did.
 */
int clones_remove(struct engine_txn *txn, struct partition *root, struct partition *partition,
		  bool *kept);

#endif
