/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Lists kept versions into an array. */
#include "client/ctl/versions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/items.h"

static int take_versions(void *context, const uint8_t *data, size_t length)
{
	struct ctl_versions *versions = context;
	struct osd_item_reader reader;
	struct osd_item entry;

	osd_items_read(&reader, data, length);
	while (osd_item_next(&reader, &entry) == 1) {
		struct ctl_version *version;

		if (entry.tag != OSD_ITEM_ENTRY)
			continue;
		if (versions->count == versions->capacity) {
			size_t capacity = versions->capacity ? 2 * versions->capacity : 64;
			struct ctl_version *grown =
				reallocarray(versions->list, capacity, sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			versions->list = grown;
			versions->capacity = capacity;
		}
		version = &versions->list[versions->count++];
		*version = (struct ctl_version){
			.number = entry_number(&entry, OSD_ITEM_VERSION),
			.sequence = entry_number(&entry, OSD_ITEM_SEQUENCE),
			.ms = entry_number(&entry, OSD_ITEM_TIME),
		};
		entry_text(&entry, OSD_ITEM_NAME, version->name, sizeof(version->name));
	}
	return 0;
}

int ctl_load_versions(struct ctl *ctl, struct osd_client_address address,
		      struct ctl_versions *versions)
{
	struct osd_client_error error;
	int code = ctl_connect(ctl);

	if (code != CTL_OK)
		return code;
	return osd_client_execute(ctl->client, OSD_FUNCTION_VERSIONS, address, NULL, 0,
				  take_versions, versions, &error) < 0
		       ? ctl_fail_command(ctl, &error)
		       : CTL_OK;
}

void ctl_free_versions(struct ctl_versions *versions)
{
	free(versions->list);
	*versions = (struct ctl_versions){ .list = NULL };
}

struct ctl_version *ctl_find_version(const struct ctl_versions *versions, uint64_t number,
				     const char *name)
{
	for (size_t i = 0; i < versions->count; i++) {
		struct ctl_version *version = &versions->list[i];

		if (number ? version->number == number
			   : name[0] && strcmp(version->name, name) == 0)
			return version;
	}
	return NULL;
}
