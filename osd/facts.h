/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The attributes of the root and of partitions that commands look at to find their way: method,
 * layout, bypass of timestamps, quotas. The engine keeps them decoded with the partition. Private
 * to osd/.
 */
#ifndef MUNINN_OSD_FACTS_H
#define MUNINN_OSD_FACTS_H

#include "engine/engine.h"

/* The engine's maker of facts. */
int osd_facts_make(struct engine_object *object, struct engine_facts *facts);

/*
 * Looks at an attribute of the root or of a partition, as it is now, among the facts. True: it is
 * one of them, and *result is that of engine_object_attribute_get. False: the object itself has to
 * be asked.
 */
bool osd_facts_find(struct engine_txn *txn, struct engine_address address, uint32_t page,
		    uint32_t number, void *value, uint32_t capacity, uint32_t *length, int *result);

#endif
