/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Takes results of EXECUTE apart for the verbs. */
#include "client/ctl/items.h"

#include <errno.h>
#include <string.h>

int items_take(void *context, const uint8_t *data, size_t length)
{
	struct items *items = context;

	if (length > sizeof(items->data))
		return -EPROTO;
	memcpy(items->data, data, length);
	items->length = length;
	return 0;
}

uint64_t items_number(const struct items *items, uint16_t tag)
{
	uint64_t number;

	return osd_item_find_number(items->data, items->length, tag, &number) == 0 ? number : 0;
}

bool items_find(const struct items *items, uint16_t tag, struct osd_item *item)
{
	return osd_item_find(items->data, items->length, tag, item) == 0;
}

uint64_t entry_number(const struct osd_item *entry, uint16_t tag)
{
	uint64_t number;

	return osd_item_find_number(entry->value, entry->length, tag, &number) == 0 ? number : 0;
}

const char *entry_text(const struct osd_item *entry, uint16_t tag, char *text, size_t capacity)
{
	struct osd_item item;
	size_t length = 0;

	if (osd_item_find(entry->value, entry->length, tag, &item) == 0)
		length = item.length < capacity ? item.length : capacity - 1;
	if (length)
		memcpy(text, item.value, length);
	text[length] = '\0';
	return text;
}
