/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Finds the objects with which an import goes on that was interrupted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/tree_store.h"
#include "common/bytes.h"

enum { PATH_BYTES_MAX = 255 }; /* of USERNAME */

struct finder {
	struct importer *importer;
	struct manifest *found;
	/* The object that is looked at. */
	bool is_import, has_complete;
	struct manifest_entry entry;
	char path[PATH_BYTES_MAX + 1];
};

static void note_information(struct finder *finder, const struct osd_attribute *attribute)
{
	if (attribute->number == OSD_INFORMATION_LOGICAL_LENGTH && attribute->present == 8 &&
	    !finder->has_complete)
		finder->entry.length = get_be64(attribute->value);
	if (attribute->number == OSD_INFORMATION_USERNAME && attribute->present <= PATH_BYTES_MAX) {
		memcpy(finder->path, attribute->value, attribute->present);
		finder->path[attribute->present] = '\0';
	}
}

static void note_mark(struct finder *finder, const struct osd_attribute *attribute)
{
	struct manifest_entry *entry = &finder->entry;
	const uint8_t *value = attribute->value;

	if (attribute->number == TREE_OBJECT_IMPORT) {
		finder->is_import = attribute->present == TREE_IMPORT_BYTES;
	} else if (attribute->number == TREE_OBJECT_COMPLETE &&
		   attribute->present == TREE_COMPLETE_BYTES) {
		finder->has_complete = true;
		entry->length = get_be64(value);
		memcpy(entry->sha256, value + 8, sizeof(entry->sha256));
	} else if (attribute->number == TREE_OBJECT_STATUS &&
		   attribute->present == TREE_STATUS_BYTES) {
		entry->mode = get_be32(value);
		entry->seconds = (int64_t)get_be64(value + 4);
		entry->nanoseconds = get_be32(value + 12);
	}
}

static int note(void *context, const struct osd_attribute *attribute)
{
	struct finder *finder = context;

	if (attribute->page == OSD_USER_OBJECT_INFORMATION)
		note_information(finder, attribute);
	else if (attribute->page == TREE_OBJECT_PAGE)
		note_mark(finder, attribute);
	return 0;
}

static void begin_object(struct finder *finder, uint64_t id)
{
	finder->is_import = finder->has_complete = false;
	finder->path[0] = '\0';
	finder->entry = (struct manifest_entry){
		.type = MANIFEST_FILE,
		.user = MANIFEST_NO_OWNER,
		.group = MANIFEST_NO_OWNER,
		.object = id,
	};
}

static int end_object(struct finder *finder)
{
	struct manifest_entry *entry;

	if (!finder->is_import)
		return 0;
	entry = manifest_add(finder->found);
	if (entry) {
		*entry = finder->entry;
		entry->path = strdup(finder->path);
	}
	return entry && entry->path ? 0 : importer_fail_local(finder->importer, -ENOMEM, "import");
}

static int take_listed(void *context, uint64_t id, struct osd_list_reader *attributes)
{
	struct finder *finder = context;
	struct osd_attribute attribute;

	begin_object(finder, id);
	while (osd_list_next(attributes, &attribute) == 1)
		note(finder, &attribute);
	return end_object(finder);
}

static const struct osd_client_value gets[] = {
	{ TREE_OBJECT_PAGE, TREE_OBJECT_IMPORT, NULL, TREE_IMPORT_BYTES },
	{ TREE_OBJECT_PAGE, TREE_OBJECT_COMPLETE, NULL, TREE_COMPLETE_BYTES },
	{ TREE_OBJECT_PAGE, TREE_OBJECT_STATUS, NULL, TREE_STATUS_BYTES },
	{ OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, NULL, 8 },
	{ OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME, NULL, PATH_BYTES_MAX + 1 },
};
enum { GETS = sizeof(gets) / sizeof(gets[0]) };

/* Of a target that lists IDs alone. */
static int ask_for(void *context, uint64_t id)
{
	struct finder *finder = context;
	struct importer *importer = finder->importer;
	const struct osd_client_address address = { .partition = importer->partition,
						    .object = id };
	struct osd_client_error error;
	int result;

	begin_object(finder, id);
	result = osd_client_get_attributes(importer->client, address, gets, GETS, note, finder,
					   &error);
	/* Somebody else may remove objects meanwhile. */
	if (result == -ENOENT)
		return 0;
	return result < 0 ? importer_fail(importer, &error) : end_object(finder);
}

int tree_find_leftovers(struct importer *importer, uint64_t first, struct manifest *found)
{
	const struct osd_client_address partition = { .partition = importer->partition };
	struct finder finder = { .importer = importer, .found = found };
	struct osd_client_error error;
	int result = osd_client_list_attributes(importer->client, partition, first, gets, GETS,
						take_listed, &finder, &error);

	if (result == -EOPNOTSUPP)
		result = osd_client_list(importer->client, partition, first, ask_for, &finder,
					 &error);
	return result < 0 && importer->result == 0 ? importer_fail(importer, &error)
						   : importer->result;
}
