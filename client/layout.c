/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The object IDs of a partition's layout, as numbers to count with: docs/protocol.md, "Layouts of
 * object IDs".
 */
#include <errno.h>

#include "client/client_private.h"
#include "common/bytes.h"
#include "wire/layout.h"

struct facts {
	unsigned layout;
	uint64_t page_bytes; /* 0: not told */
};

static int take_fact(void *context, const struct osd_attribute *attribute)
{
	struct facts *facts = context;

	if (attribute->page == OSD_MUNINN_PARTITION && attribute->number == OSD_MUNINN_LAYOUT &&
	    attribute->length == 1 && attribute->present == 1)
		facts->layout = attribute->value[0];
	if (attribute->page == OSD_PARTITION_INFORMATION &&
	    attribute->number == OSD_INFORMATION_USED_CAPACITY_INCREMENT &&
	    attribute->length == 8 && attribute->present == 8)
		facts->page_bytes = get_be64(attribute->value);
	return 0;
}

int osd_client_find_ids(struct osd_client *client, struct osd_client_address partition,
			struct osd_client_ids *ids, struct osd_client_error *error)
{
	const struct osd_client_value gets[] = {
		{ OSD_MUNINN_PARTITION, OSD_MUNINN_LAYOUT, NULL, 1 },
		{ OSD_PARTITION_INFORMATION, OSD_INFORMATION_USED_CAPACITY_INCREMENT, NULL, 8 },
	};
	struct facts facts = { 0 };
	int result = osd_client_get_attributes(
		client, partition, gets, sizeof(gets) / sizeof(gets[0]), take_fact, &facts, error);

	*ids = (struct osd_client_ids){
		.first = OSD_FIRST_ID, .step = 1, .last = UINT64_MAX, .bytes_max = UINT64_MAX
	};
	if (result < 0 || facts.layout != OSD_LAYOUT_PACKED)
		return result;
	/* The identifier is in the upper half. */
	ids->first = osd_object_id_encode(OSD_LAYOUT_PACKED, OSD_FIRST_ID);
	ids->step = ids->first;
	ids->last = osd_object_id_encode(OSD_LAYOUT_PACKED, OSD_PACKED_OBJECT_MAX);
	if (facts.page_bytes && facts.page_bytes <= UINT64_MAX / OSD_PACKED_PAGES_MAX)
		ids->bytes_max = OSD_PACKED_PAGES_MAX * facts.page_bytes;
	return 0;
}
