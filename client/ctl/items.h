/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Results of EXECUTE in verbs: a short one kept whole, entries of streams. */
#ifndef MUNINN_CLIENT_CTL_ITEMS_H
#define MUNINN_CLIENT_CTL_ITEMS_H

#include "wire/vendor.h"

/* A short result. Zeroed at the beginning. */
struct items {
	uint8_t data[2048];
	size_t length;
};

/*
 * As osd_client_items; `context` is a struct items. Keeps the last result of a stream. -EPROTO: it
 * is not short.
 */
int items_take(void *context, const uint8_t *data, size_t length);

/* A number; 0 if it is missing. */
uint64_t items_number(const struct items *items, uint16_t tag);
bool items_find(const struct items *items, uint16_t tag, struct osd_item *item);

/* From an entry: a number, 0 if it is missing; a text with NUL, "" if it is missing. */
uint64_t entry_number(const struct osd_item *entry, uint16_t tag);
const char *entry_text(const struct osd_item *entry, uint16_t tag, char *text, size_t capacity);

#endif
