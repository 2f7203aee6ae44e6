/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes lists of allowed attributes, and knows by itself what they allow. */
#include "tests/fuzz/osd_access.h"

#include "common/bytes.h"
#include "wire/wire.h"

struct item {
	uint32_t page, number;
};

static const struct item lists[OSD_ACCESS_LISTS][2] = {
	/* All of the application's page of user objects, and their length. */
	{ { 0x10000, OSD_ATTRIBUTE_ALL }, { OSD_USER_OBJECT_INFORMATION, 0x82 } },
	/* The first of any page; the second of one. */
	{ { OSD_PAGE_ALL, 1 }, { 0x10000, 2 } },
};

void osd_access_list(unsigned number, uint8_t list[OSD_ACCESS_LIST_BYTES])
{
	for (unsigned i = 0; i < 2; i++) {
		put_be32(list + 8 * i, lists[number - 1][i].page);
		put_be32(list + 8 * i + 4, lists[number - 1][i].number);
	}
}

static bool allows(unsigned number, uint32_t page, uint32_t attribute)
{
	if (page == OSD_PAGE_CURRENT_COMMAND)
		return true;
	if (number == 0 || number > OSD_ACCESS_LISTS)
		return false;
	for (unsigned i = 0; i < 2; i++) {
		const struct item *item = &lists[number - 1][i];

		if ((item->page == OSD_PAGE_ALL || item->page == page) &&
		    (item->number == OSD_ATTRIBUTE_ALL || item->number == attribute))
			return true;
	}
	return false;
}

/* A list in Data-Out; one that is not there or cannot be read says nothing. */
static bool allows_list(unsigned number, const struct osd_input_command *input,
			const struct osd_cdb *cdb, uint8_t type, const struct osd_segment *segment)
{
	struct osd_list_reader reader;
	struct osd_attribute attribute;

	if (segment->length == 0 || segment->offset > input->out_kept ||
	    segment->length > input->out_kept - segment->offset ||
	    osd_list_read(&reader, cdb->version, type, input->out + segment->offset,
			  segment->length) != 0)
		return true;
	while (osd_list_next(&reader, &attribute) == 1)
		if (!allows(number, attribute.page, attribute.number))
			return false;
	return true;
}

bool osd_access_allows(unsigned number, const struct osd_input_command *input)
{
	struct osd_cdb cdb;
	uint16_t bad_field;

	if (osd_cdb_decode(input->cdb, input->cdb_length, &cdb, &bad_field) != 0)
		return true;
	/* Without a list nothing is allowed, whatever the attributes are. */
	if (number > OSD_ACCESS_LISTS)
		return false;
	switch (cdb.format) {
	case OSD_ATTRIBUTES_LIST:
		return allows_list(number, input, &cdb, OSD_LIST_TO_SET, &cdb.set_data) &&
		       allows_list(number, input, &cdb, OSD_LIST_TO_GET, &cdb.get_list);
	case OSD_ATTRIBUTES_PAGE:
		if (cdb.get_page != 0 && !allows(number, cdb.get_page, OSD_ATTRIBUTE_ALL))
			return false;
		break;
	default:
		break;
	}
	return cdb.set_page == 0 || allows(number, cdb.set_page, cdb.set_number);
}
