/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which attributes there are: the standard's in one table (page_table.c), all others plain storage
 * of the engine. A number that the table of a standard page lacks is undefined and can't be set.
 */
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "osd/page_table.h"

/* ---- page numbers ---- */

uint32_t osd_first_page(enum engine_type type)
{
	switch (type) {
	case ENGINE_ROOT:
		return OSD_PAGES_ROOT;
	case ENGINE_PARTITION:
		return OSD_PAGES_PARTITION;
	case ENGINE_COLLECTION:
		return OSD_PAGES_COLLECTION;
	case ENGINE_USER_OBJECT:
		break;
	}
	return OSD_PAGES_USER_OBJECT;
}

enum osd_object_type osd_wire_type(enum engine_type type)
{
	switch (type) {
	case ENGINE_ROOT:
		return OSD_TYPE_ROOT;
	case ENGINE_PARTITION:
		return OSD_TYPE_PARTITION;
	case ENGINE_COLLECTION:
		return OSD_TYPE_COLLECTION;
	case ENGINE_USER_OBJECT:
		break;
	}
	return OSD_TYPE_USER_OBJECT;
}

bool osd_page_type(uint32_t page, enum engine_type *type)
{
	if (page < OSD_PAGES_PARTITION)
		*type = ENGINE_USER_OBJECT;
	else if (page < OSD_PAGES_COLLECTION)
		*type = ENGINE_PARTITION;
	else if (page < OSD_PAGES_ROOT)
		*type = ENGINE_COLLECTION;
	else if (page < OSD_PAGES_RESERVED)
		*type = ENGINE_ROOT;
	else
		return false;
	return true;
}

static bool fits_type(uint32_t page, enum engine_type type)
{
	enum engine_type page_type;

	return page >= OSD_PAGES_ANY_OBJECT ||
	       (osd_page_type(page, &page_type) && page_type == type);
}

/* ---- setting ---- */

/* The first 64 Ki vendor pages of a type, and the last one, belong to the target. */
static bool is_target_page(uint32_t relative)
{
	return relative == OSD_PAGES_TYPE_LAST ||
	       (relative >= OSD_PAGES_VENDOR && relative < OSD_PAGES_VENDOR_FREE);
}

/* Can clients fill the page as they like? It fits the object's type. */
static bool is_free_page(uint32_t page, enum engine_type type)
{
	uint32_t relative = page - osd_first_page(type);

	if (page >= OSD_PAGES_ANY_OBJECT)
		return page < OSD_PAGE_CURRENT_COMMAND;
	return relative >= OSD_PAGES_APPLICATION && !is_target_page(relative);
}

/* Memberships are numbers that the table does not list. */
static bool is_membership(uint32_t page, uint32_t number)
{
	return page == OSD_USER_OBJECT_COLLECTIONS && number != OSD_ATTRIBUTE_IDENTIFICATION &&
	       number <= OSD_COLLECTIONS_LAST_NUMBER;
}

int osd_page_check_set(const struct osd_request *request, enum engine_type type,
		       const struct osd_attribute *attribute)
{
	const struct osd_page_attribute *entry;
	uint32_t length = attribute->length;

	if (attribute->page == OSD_PAGE_ALL || attribute->number == OSD_ATTRIBUTE_ALL ||
	    length > OSD_ATTRIBUTE_BYTES_MAX || !fits_type(attribute->page, type))
		return -EINVAL;
	if (is_free_page(attribute->page, type)) {
		/* Number 0 names the page: a string. */
		if (attribute->number == OSD_ATTRIBUTE_IDENTIFICATION && length != 0 &&
		    (length > OSD_IDENTIFICATION_BYTES || !memchr(attribute->value, 0, length)))
			return -EINVAL;
		return 0;
	}
	if (is_membership(attribute->page, attribute->number))
		return osd_has(request->device, ENGINE_HAS_COLLECTIONS) &&
				       (length == 0 || length == 8)
			       ? 0
			       : -EINVAL;
	entry = osd_page_table_find(attribute->page, attribute->number);
	if (!entry || !entry->settable)
		return -EINVAL;
	if (length == 0 && !entry->get && !entry->set)
		return 0; /* a stored attribute becomes undefined */
	if (entry->length != 0 && length != entry->length)
		return -EINVAL;
	if (attribute->page == OSD_PARTITION_ATTRIBUTES_ACCESS &&
	    (length % OSD_ACCESS_DESCRIPTOR_BYTES != 0 ||
	     length > OSD_ACCESS_DESCRIPTORS_MAX * OSD_ACCESS_DESCRIPTOR_BYTES))
		return -EINVAL;
	return !entry->allows || entry->allows(request, attribute->value) ? 0 : -EINVAL;
}

int osd_page_set(struct osd_request *request, const struct osd_subject *subject,
		 const struct osd_attribute *attribute)
{
	const struct osd_page_attribute *entry =
		osd_page_table_find(attribute->page, attribute->number);

	if (is_membership(attribute->page, attribute->number))
		return osd_set_membership(request, subject, attribute);
	if (entry && entry->set)
		return entry->set(request, subject, entry, attribute->value);
	return engine_object_attribute_set(subject->object, attribute->page, attribute->number,
					   attribute->value, attribute->length);
}

int osd_page_copy_stored(struct osd_request *request, const struct osd_subject *from,
			 struct engine_object *to)
{
	uint8_t value[OSD_VALUE_BYTES_MAX];
	struct osd_attribute attribute = { .value = value };
	int result;

	while ((result = engine_object_attribute_next(from->object, &attribute.page,
						      &attribute.number, value, sizeof(value),
						      &attribute.length)) == 0) {
		const struct osd_page_attribute *entry =
			osd_page_table_find(attribute.page, attribute.number);

		/*
		 * Copies no attribute that can't be set, that does something when set, or that
		 * protects the object.
		 */
		if (!(entry && (entry->get || entry->set)) &&
		    !osd_page_is_security(attribute.page) &&
		    !is_membership(attribute.page, attribute.number) &&
		    osd_page_check_set(request, from->stat.type, &attribute) == 0)
			result = engine_object_attribute_set(to, attribute.page, attribute.number,
							     value, attribute.length);
		if (result != 0)
			return osd_result(request, result, 0);
		if (attribute.number++ == UINT32_MAX && attribute.page++ == UINT32_MAX)
			break;
	}
	return result == -ENOENT ? 0 : osd_result(request, result, 0);
}

/* ---- getting ---- */

/* Memberships are stored with the engine's ID of the collection. */
static void id_to_wire(const struct osd_request *request, uint32_t page, uint8_t *value,
		       uint32_t length)
{
	if (page == OSD_USER_OBJECT_COLLECTIONS && length == 8)
		put_be64(value, osd_wire_object(request, get_be64(value)));
}

static int get_stored(struct osd_request *request, const struct osd_subject *subject, uint32_t page,
		      uint32_t number, uint8_t *value, uint32_t *length)
{
	int result = engine_object_attribute_get(subject->object, page, number, value,
						 OSD_VALUE_BYTES_MAX, length);

	if (result == 0)
		id_to_wire(request, page, value, *length);
	if (result != -ENOENT)
		return result;
	*length = 0;
	return 0;
}

/* The first computed attribute at or behind (*page, *number) that is defined. */
static bool next_computed(struct osd_request *request, const struct osd_subject *subject,
			  uint32_t *page, uint32_t *number, uint8_t value[OSD_COMPUTED_BYTES_MAX],
			  uint32_t *length)
{
	uint32_t first = osd_first_page(subject->stat.type);

	for (size_t i = *page < first ? osd_page_table_position(first, 0)
				      : osd_page_table_position(*page, *number);
	     i < osd_page_table_length; i++) {
		const struct osd_page_attribute *entry = &osd_page_table[i];

		if (!fits_type(entry->page, subject->stat.type))
			return false;
		if (!entry->get)
			continue;
		*length = entry->get(request, subject, entry, value);
		if (*length != 0) {
			*page = entry->page;
			*number = entry->number;
			return true;
		}
	}
	return false;
}

/*
 * A page that the standard does not name, if the object has it. `value`: its name; 40 zeros if it
 * has none.
 */
static int get_own_page(struct osd_request *request, const struct osd_subject *subject,
			uint32_t page, uint8_t *value, bool *found)
{
	uint8_t computed[OSD_COMPUTED_BYTES_MAX];
	uint32_t at = page, number = 0, length, named = 0;
	int result = engine_object_attribute_next(subject->object, &at, &number, value,
						  OSD_VALUE_BYTES_MAX, &length);

	if (result != 0 && result != -ENOENT)
		return result;
	*found = result == 0 && at == page;
	if (*found && number == OSD_ATTRIBUTE_IDENTIFICATION)
		named = (uint32_t)min_u64(length, OSD_IDENTIFICATION_BYTES);
	memset(value + named, 0, OSD_IDENTIFICATION_BYTES - named);
	if (*found)
		return 0;
	at = page;
	number = 0;
	*found = next_computed(request, subject, &at, &number, computed, &length) && at == page;
	return 0;
}

/* The directory page: `page` is a number in it. */
static int get_directory(struct osd_request *request, const struct osd_subject *subject,
			 uint32_t page, uint8_t *value, uint32_t *length)
{
	bool found;
	int result;

	*length = 0;
	/*
	 * The directory's own identification. In user objects that is also its entry in the
	 * directory.
	 */
	if (page == OSD_ATTRIBUTE_IDENTIFICATION)
		page = osd_first_page(subject->stat.type) + OSD_PAGE_DIRECTORY;
	if (page >= OSD_PAGE_CURRENT_COMMAND || !fits_type(page, subject->stat.type) ||
	    osd_page_is_private(page))
		return 0;
	*length = osd_page_identify(page, value);
	if (*length != 0)
		return 0;
	result = get_own_page(request, subject, page, value, &found);
	if (result == 0 && found)
		*length = OSD_IDENTIFICATION_BYTES;
	return result;
}

int osd_page_get(struct osd_request *request, const struct osd_subject *subject, uint32_t page,
		 uint32_t number, uint8_t value[OSD_VALUE_BYTES_MAX], uint32_t *length)
{
	const struct osd_page_attribute *entry;

	if (page == OSD_PAGE_CURRENT_COMMAND)
		return osd_current_command_get(request, number, value, length);
	if (!fits_type(page, subject->stat.type))
		return -EINVAL;
	if (page == osd_first_page(subject->stat.type) + OSD_PAGE_DIRECTORY)
		return get_directory(request, subject, number, value, length);
	if (osd_page_is_private(page)) {
		*length = 0;
		return 0;
	}
	entry = osd_page_table_find(page, number);
	if (entry && entry->get) {
		*length = entry->get(request, subject, entry, value);
		return 0;
	}
	return get_stored(request, subject, page, number, value, length);
}

/* The first stored attribute at or behind (*page, *number) that initiators may see. */
static int next_stored(const struct osd_subject *subject, uint32_t *page, uint32_t *number,
		       uint8_t *value, uint32_t *length)
{
	int result = engine_object_attribute_next(subject->object, page, number, value,
						  OSD_VALUE_BYTES_MAX, length);

	if (result != 0 || !osd_page_is_private(*page))
		return result;
	/* This was the last page of its type. */
	(*page)++;
	*number = 0;
	return engine_object_attribute_next(subject->object, page, number, value,
					    OSD_VALUE_BYTES_MAX, length);
}

int osd_page_next(struct osd_request *request, const struct osd_subject *subject, uint32_t *page,
		  uint32_t *number, uint8_t value[OSD_VALUE_BYTES_MAX], uint32_t *length)
{
	uint8_t computed[OSD_COMPUTED_BYTES_MAX];
	uint32_t computed_page = *page, computed_number = *number, computed_length;
	bool has_computed = next_computed(request, subject, &computed_page, &computed_number,
					  computed, &computed_length);
	int result = next_stored(subject, page, number, value, length);

	if (result != 0 && result != -ENOENT)
		return result;
	if (result == 0)
		id_to_wire(request, *page, value, *length);
	if (!has_computed ||
	    (result == 0 &&
	     (*page < computed_page || (*page == computed_page && *number < computed_number))))
		return result;
	*page = computed_page;
	*number = computed_number;
	*length = computed_length;
	memcpy(value, computed, computed_length);
	return 0;
}
