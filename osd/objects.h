/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The engine's objects that a command names, opened once with their facts, and single attributes of
 * others. Private to osd/. Results are the engine's.
 */
#ifndef MUNINN_OSD_OBJECTS_H
#define MUNINN_OSD_OBJECTS_H

#include "engine/engine.h"

struct osd_request;

/* What a command, a set or a get is about. */
struct osd_subject {
	struct engine_object *object; /* opened; ends with its transaction, or with osd_close */
	struct engine_address address;
	struct engine_stat stat;
};

/* Opens what `address` names and finds its facts. After an error nothing is open. */
int osd_open(const struct osd_request *request, struct engine_address address,
	     struct osd_subject *subject);
void osd_close(struct osd_subject *subject);

/*
 * The command has created `count` objects of a type, the first one under the subject's address.
 * They are its subject from now on. Returns -EINVAL with sense if the first can't be opened.
 */
int osd_created(struct osd_request *request, enum engine_type type, uint32_t count);

/*
 * Opens object `index` of those that the command created, or the command's subject itself, as it is
 * now. The caller closes it.
 */
int osd_open_created(const struct osd_request *request, uint64_t index,
		     struct osd_subject *subject);

/* Sets an attribute of that object. */
int osd_set_created(const struct osd_request *request, uint64_t index, uint32_t page,
		    uint32_t number, const void *value, uint32_t length);

/* Facts of an object that the command looks at just once. */
int osd_stat_at(const struct osd_request *request, struct engine_address address,
		struct engine_stat *stat);
int osd_attribute_at(struct engine_txn *txn, struct engine_address address, uint32_t page,
		     uint32_t number, void *value, uint32_t capacity, uint32_t *length);
int osd_attribute_next_at(struct engine_txn *txn, struct engine_address address, uint32_t *page,
			  uint32_t *number, void *value, uint32_t capacity, uint32_t *length);
int osd_attribute_set_at(struct engine_txn *txn, struct engine_address address, uint32_t page,
			 uint32_t number, const void *value, uint32_t length);

#endif
