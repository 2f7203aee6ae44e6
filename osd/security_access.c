/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * ALLOWED ATTRIBUTES ACCESS: a capability may name an attribute of the partition's attributes
 * access page. It then allows gets and sets of the attributes in that list only. Each item is a
 * page and a number, either of which may be FFFFFFFF for all. A get of all pages or numbers needs
 * such an item.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "osd/keys.h"

struct access_list {
	uint8_t items[OSD_ACCESS_DESCRIPTORS_MAX * OSD_ACCESS_DESCRIPTOR_BYTES];
	uint32_t length;
};

static bool allows(const struct access_list *list, uint32_t page, uint32_t number)
{
	/* This page tells the initiator only of its own command. */
	if (page == OSD_PAGE_CURRENT_COMMAND)
		return true;
	for (uint32_t at = 0; at + OSD_ACCESS_DESCRIPTOR_BYTES <= list->length;
	     at += OSD_ACCESS_DESCRIPTOR_BYTES) {
		uint32_t listed_page = get_be32(list->items + at);
		uint32_t listed_number = get_be32(list->items + at + 4);

		if ((listed_page == OSD_PAGE_ALL || listed_page == page) &&
		    (listed_number == OSD_ATTRIBUTE_ALL || listed_number == number))
			return true;
	}
	return false;
}

/* A visitor. Non-zero: the attribute is not allowed. */
static int look_at(void *context, const struct osd_attribute *attribute)
{
	return !allows(context, attribute->page, attribute->number);
}

/* A malformed list is refused before anything of it is set or got. */
static bool allows_gets(const struct osd_request *request, struct access_list *list)
{
	const struct osd_cdb *cdb = &request->cdb;
	struct osd_list_reader reader;
	struct osd_attribute asked;

	if (cdb->format == OSD_ATTRIBUTES_PAGE)
		return cdb->get_page == 0 || allows(list, cdb->get_page, OSD_ATTRIBUTE_ALL);
	if (cdb->format != OSD_ATTRIBUTES_LIST || cdb->get_list.length == 0 ||
	    osd_list_read(&reader, cdb->version, OSD_LIST_TO_GET,
			  request->command->data_out + cdb->get_list.offset,
			  cdb->get_list.length) != 0)
		return true;
	while (osd_list_next(&reader, &asked) == 1)
		if (!allows(list, asked.page, asked.number))
			return false;
	return true;
}

/* A copy with its source's attributes takes all of them. */
static bool allows_copies(const struct osd_request *request, const struct access_list *list)
{
	struct osd_continuation descriptors = request->descriptors;
	struct osd_descriptor descriptor;
	struct osd_copy_source source;

	if (!(request->entry->flags & OSD_COPIES))
		return true;
	while (osd_continuation_next(&descriptors, &descriptor) == 1)
		if (osd_copy_source_decode(&descriptor, &source) == 0 && source.attributes &&
		    !allows(list, OSD_PAGE_ALL, OSD_ATTRIBUTE_ALL))
			return false;
	return true;
}

/* The attributes that the command itself works on. */
static bool allows_work(struct osd_request *request, struct access_list *list)
{
	switch (request->cdb.action) {
	case OSD_COMPARE_AND_SWAP:
		return allows(list, OSD_USER_OBJECT_ATOMICS, OSD_ATOMICS_COMPARE_AND_SWAP);
	case OSD_FETCH_AND_ADD:
		return allows(list, OSD_USER_OBJECT_ATOMICS, OSD_ATOMICS_FETCH_AND_ADD);
	case OSD_QUERY:
		return osd_query_each(request, look_at, list) == 0;
	default:
		return allows_copies(request, list);
	}
}

int osd_capability_check_attributes(struct osd_request *request)
{
	const struct osd_security_layout *layout = osd_security_layout(request->cdb.version);
	uint32_t number = request->security.capability.attributes_access;
	struct engine_address partition = request->security.policy.address;
	struct access_list list;
	int result;

	if (number == 0)
		return 0;
	result = partition.partition == 0 || number > OSD_ACCESS_LISTS_MAX
			 ? -ENOENT
			 : osd_attribute_at(request->txn, partition,
					    OSD_PARTITION_ATTRIBUTES_ACCESS, number, list.items,
					    sizeof(list.items), &list.length);
	if (result != 0 && result != -ENOENT)
		return osd_result(request, result, 0);
	if (result == -ENOENT || osd_each_set(request, look_at, &list) > 0 ||
	    !allows_gets(request, &list) || !allows_work(request, &list))
		return osd_fail_field(request, layout->attributes_access);
	return 0;
}
