/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* check: looks for damage, and has repaired what parity can. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/check.h"
#include "client/ctl/ctl.h"
#include "client/ctl/merging.h"

struct check {
	struct ctl *ctl;
	struct osd_client_checked checked;
	uint64_t damaged;
	json_t *list;        /* with --json */
	json_t *ranges;      /* of the entry that is being made */
	struct items repair; /* how that ended; empty: there was none */
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

static int print_range(void *context, uint64_t offset, uint64_t length)
{
	struct check *check = context;

	if (!check->ctl->options->json)
		return printf(" %" PRIu64 "+%" PRIu64, offset, length) < 0 ? -EIO : 0;
	return json_array_append_new(check->ranges,
				     json_pack("{s:I,s:I}", "offset", (json_int_t)offset, "length",
					       (json_int_t)length)) != 0
		       ? -ENOMEM
		       : 0;
}

/* Behind the kind of damage; that its ranges can't be told is no reason to stop. */
static void print_ranges(struct check *check, struct osd_client_address address, uint16_t type)
{
	struct osd_client_error error;

	if (type == OSD_MAP_DAMAGED_DATA)
		osd_client_check_ranges(check->ctl->client, address, print_range, check, &error);
}

static int print_damage(void *context, struct osd_client_address address, uint16_t type)
{
	struct check *check = context;
	char text[OSD_CLIENT_ADDRESS_TEXT];

	check->damaged++;
	ctl_format_address(check->ctl, address, text);
	if (!check->ctl->options->json) {
		if (printf("%s %s", text, what(type)) < 0)
			return -EIO;
		print_ranges(check, address, type);
		return putchar('\n') < 0 ? -EIO : 0;
	}
	check->ranges = json_array();
	print_ranges(check, address, type);
	return json_array_append_new(check->list,
				     json_pack("{s:s,s:s,s:o}", "address", text, "damaged",
					       what(type), "ranges", check->ranges)) != 0
		       ? -ENOMEM
		       : 0;
}

/* ---- repair ---- */

/* Waits while the target repairs. An exit code. */
static int repair(struct check *check)
{
	int code = merging_step(check->ctl, OSD_MERGE_REPAIR, &check->repair);

	if (code == CTL_OK)
		code = merging_wait(check->ctl, "check", &check->repair);
	return code == CTL_OK ? merging_outcome(check->ctl, "check", &check->repair) : code;
}

static void print_repair(const struct check *check)
{
	const struct items *found = &check->repair;

	if (found->length)
		fprintf(stderr,
			"%" PRIu64 " pages of flash read: %" PRIu64
			" were lost and made again, %" PRIu64 " are lost; %" PRIu64
			" segments moved\n",
			items_number(found, OSD_ITEM_READ), items_number(found, OSD_ITEM_REPAIRED),
			items_number(found, OSD_ITEM_LOST), items_number(found, OSD_ITEM_FREED));
}

static json_t *repair_json(const struct check *check)
{
	const struct items *found = &check->repair;

	if (!found->length)
		return json_null();
	return json_pack("{s:I,s:I,s:I,s:I}", "read",
			 (json_int_t)items_number(found, OSD_ITEM_READ), "repaired",
			 (json_int_t)items_number(found, OSD_ITEM_REPAIRED), "lost",
			 (json_int_t)items_number(found, OSD_ITEM_LOST), "moved",
			 (json_int_t)items_number(found, OSD_ITEM_FREED));
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
		output = ctl_print_json(stdout,
					json_pack("{s:I,s:I,s:o,s:o}", "objects",
						  (json_int_t)check->checked.objects, "pages",
						  (json_int_t)check->checked.pages, "damaged",
						  check->list, "repair", repair_json(check)));
		return output != CTL_OK ? output : code;
	}
	output = ctl_end_output(check->ctl);
	if (!check->ctl->options->quiet)
		print_repair(check);
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
	if (code == CTL_OK && ctl->options->repair)
		code = repair(&check);
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
