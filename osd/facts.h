/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The attributes of the root and of partitions that almost every command looks at: method, layout,
 * bypass of timestamps, quotas. The engine keeps them decoded with the partition. Private to osd/.
 */
#ifndef MUNINN_OSD_FACTS_H
#define MUNINN_OSD_FACTS_H

#include "engine/engine.h"

/* Makes the facts of an object, for the engine. */
int osd_facts_make(struct engine_object *object, struct engine_facts *facts);

/*
 * Looks among the facts for an attribute of the present root or of a partition. True: it is a fact,
 * and *result is that of engine_object_attribute_get. False: ask the object itself.
 */
bool osd_facts_find(struct engine_txn *txn, struct engine_address address, uint32_t page,
		    uint32_t number, void *value, uint32_t capacity, uint32_t *length, int *result);

#endif
