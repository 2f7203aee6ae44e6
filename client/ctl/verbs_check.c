/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* check: looks for damage. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/check.h"
#include "client/ctl/ctl.h"

struct check {
	const struct ctl *ctl;
	struct osd_client_checked checked;
	uint64_t damaged;
	json_t *list; /* with --json */
};

static const char *what(uint16_t type)
{
	switch (type) {
	case OSD_MAP_DAMAGED_DATA:
		return "data";
	case OSD_MAP_DAMAGED_ATTRIBUTES:
		return "attributes";
	case OSD_MAP_DAMAGED_DIRECTORY:
		return "directory";
	default:
		return "something";
	}
}

static int print_damage(void *context, struct osd_client_address address, uint16_t type)
{
	struct check *check = context;
	char text[OSD_CLIENT_ADDRESS_TEXT];

	check->damaged++;
	ctl_format_address(check->ctl, address, text);
	if (!check->ctl->options->json)
		return printf("%s %s\n", text, what(type)) < 0 ? -EIO : 0;
	return json_array_append_new(check->list, json_pack("{s:s,s:s}", "address", text, "damaged",
							    what(type))) != 0
		       ? -ENOMEM
		       : 0;
}

/* ---- everything: the root, then each partition ---- */

struct partitions {
	uint64_t *ids;
	size_t count, capacity;
};

static int keep_id(void *context, uint64_t id)
{
	struct partitions *partitions = context;

	if (partitions->count == partitions->capacity) {
		size_t capacity = partitions->capacity ? 2 * partitions->capacity : 64;
		uint64_t *ids = realloc(partitions->ids, capacity * sizeof(*ids));

		if (!ids)
			return -ENOMEM;
		partitions->ids = ids;
		partitions->capacity = capacity;
	}
	partitions->ids[partitions->count++] = id;
	return 0;
}

static int check_partitions(struct check *check, struct osd_client_address root,
			    struct osd_client_error *error)
{
	struct osd_client *client = check->ctl->client;
	struct partitions partitions = { 0 };
	int result = osd_client_list(client, root, 0, keep_id, &partitions, error);

	for (size_t i = 0; result == 0 && i < partitions.count; i++) {
		struct osd_client_address address = { .partition = partitions.ids[i],
						      .version = root.version };

		result = osd_client_check(client, address, print_damage, check, &check->checked,
					  error);
	}
	free(partitions.ids);
	return result;
}

/* ---- the verb ---- */

static int print_summary(struct check *check)
{
	int code = check->damaged ? CTL_BAD_DATA : CTL_OK, output;

	if (check->ctl->options->json) {
		output = ctl_print_json(stdout, json_pack("{s:I,s:I,s:o}", "objects",
							  (json_int_t)check->checked.objects,
							  "pages", (json_int_t)check->checked.pages,
							  "damaged", check->list));
		return output != CTL_OK ? output : code;
	}
	output = ctl_end_output(check->ctl);
	if (!check->ctl->options->quiet)
		fprintf(stderr,
			"%" PRIu64 " objects and %" PRIu64 " pages checked, %" PRIu64 " damaged\n",
			check->checked.objects, check->checked.pages, check->damaged);
	return output != CTL_OK ? output : code;
}

int verb_check(struct ctl *ctl)
{
	struct check check = { .ctl = ctl };
	struct osd_client_address address;
	struct osd_client_error error = { 0 };
	int result, code = ctl_address(ctl, 0, &address);

	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	check.list = json_array();
	result = osd_client_check(ctl->client, address, print_damage, &check, &check.checked,
				  &error);
	if (result == 0 && address.partition == 0)
		result = check_partitions(&check, address, &error);
	if (result != 0) {
		json_decref(check.list);
		return ctl_fail_command(ctl, &error);
	}
	code = print_summary(&check);
	if (!ctl->options->json)
		json_decref(check.list);
	return code;
}
