/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The device and its partitions: info, discover, format, mkpart, name, rmpart, flush. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/ctl.h"
#include "client/ctl/facts.h"
#include "client/ctl/places.h"
#include "client/manifest.h"

/* ---- info ---- */

struct live {
	struct ctl *ctl;
	uint64_t bytes;
	struct osd_client_error error; /* why it can't be told */
};

static int add_partition(void *context, uint64_t id)
{
	const struct osd_client_address address = { .partition = id };
	struct live *live = context;
	struct osd_client_error error;
	uint64_t bytes = 0;
	int result = osd_client_get_number(live->ctl->client, address,
					   OSD_PAGES_PARTITION + OSD_PAGE_INFORMATION,
					   OSD_INFORMATION_USED_CAPACITY, &bytes, &error);

	live->bytes += bytes;
	/* It may be gone meanwhile, or closed to this initiator. */
	if (result == 0 || (!error.local && osd_client_failed(live->ctl->client, NULL) == 0))
		return 0;
	live->error = error;
	return result;
}

/*
 * How much of what is used the present of all partitions holds. The rest is history and metadata.
 * Clones count what they share with others, too. Left out where this initiator may not list them.
 */
static int show_live(struct ctl *ctl, json_t *object)
{
	const struct osd_client_address root = { .partition = 0 };
	struct live live = { .ctl = ctl };
	struct osd_client_error error;
	char size[CTL_SIZE_TEXT];

	if (osd_client_list(ctl->client, root, 0, add_partition, &live, &error) < 0) {
		if (live.error.result < 0)
			error = live.error;
		return ctl_exit_of(&error) == CTL_DENIED ? CTL_OK : ctl_fail_command(ctl, &error);
	}
	if (object)
		json_object_set_new(object, "live", json_integer((json_int_t)live.bytes));
	else
		printf("%-20s %" PRIu64 " (%s)\n", "live", live.bytes,
		       ctl_format_size(live.bytes, size));
	return CTL_OK;
}

int verb_info(struct ctl *ctl)
{
	static const struct fact facts[] = {
		{ OSD_ROOT_VENDOR, "vendor", FACT_TEXT },
		{ OSD_ROOT_PRODUCT, "product", FACT_TEXT },
		{ OSD_ROOT_MODEL, "model", FACT_TEXT },
		{ OSD_ROOT_REVISION, "revision", FACT_TEXT },
		{ OSD_ROOT_SERIAL_NUMBER, "serial", FACT_TEXT },
		{ OSD_ROOT_SYSTEM_ID, "system_id", FACT_HEX },
		{ OSD_ROOT_OSD_NAME, "name", FACT_TEXT },
		{ OSD_ROOT_TOTAL_CAPACITY, "capacity", FACT_SIZE },
		{ OSD_ROOT_USED_CAPACITY, "used", FACT_SIZE },
		{ OSD_ROOT_PARTITIONS, "partitions", FACT_NUMBER },
		{ OSD_ROOT_CLOCK, "clock", FACT_TIME },
	};
	int code = ctl->client ? CTL_OK : ctl_connect(ctl);
	json_t *object;

	object = code == CTL_OK && ctl->options->json ? json_object() : NULL;
	if (code == CTL_OK)
		code = facts_print(ctl, (struct osd_client_address){ 0 }, OSD_ROOT_INFORMATION,
				   facts, sizeof(facts) / sizeof(facts[0]), object);
	if (code == CTL_OK)
		code = show_live(ctl, object);
	if (code == CTL_OK)
		return object ? ctl_print_json(stdout, object) : ctl_end_output(ctl);
	json_decref(object);
	return code;
}

/* ---- discover ---- */

static int found_text(void *context, const char *target_name, const char *portal_address)
{
	(void)context;
	return printf("%s %s\n", target_name, portal_address) < 0 ? -EIO : 0;
}

static int found_json(void *context, const char *target_name, const char *portal_address)
{
	json_t *target = ctl_json_with_text(json_object(), "target", target_name);

	ctl_json_with_text(target, "portal", portal_address);
	return json_array_append_new(context, target) < 0 ? -ENOMEM : 0;
}

int verb_discover(struct ctl *ctl)
{
	json_t *targets = json_array();
	struct error_text error;
	int result = osd_client_discover(ctl->url, &ctl->options->client,
					 ctl->options->json ? found_json : found_text, targets,
					 &error);

	if (result == 0 && ctl->options->json)
		return ctl_print_json(stdout, targets);
	json_decref(targets);
	return result < 0 ? ctl_fail_connect(ctl, result, &error) : ctl_end_output(ctl);
}

/* ---- format and partitions ---- */

int verb_format(struct ctl *ctl)
{
	struct osd_client_error error;
	uint64_t capacity = 0;
	int code = ctl->argument_count > 0 ? ctl_size(ctl, 0, "capacity", &capacity) : CTL_OK;

	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	code = ctl_confirm(ctl, "everything on %s goes for good, and its history", ctl->url);
	if (code != CTL_OK)
		return code;
	if (osd_client_format(ctl->client, capacity, &error) < 0)
		return ctl_fail_command(ctl, &error);
	return ctl->options->json ? ctl_print_json(stdout, json_pack("{s:b}", "formatted", 1))
				  : CTL_OK;
}

int verb_mkpart(struct ctl *ctl)
{
	struct osd_client_error error;
	char name[OSD_VERSION_NAME_MAX + 1];
	uint64_t requested, chosen;
	int layout = -1, code;

	if (ctl->options->layout && strcmp(ctl->options->layout, "flat") == 0)
		layout = 0;
	else if (ctl->options->layout && strcmp(ctl->options->layout, "packed") == 0)
		layout = 1;
	else if (ctl->options->layout)
		return ctl_fail(ctl, CTL_USAGE, "--layout '%s': flat or packed is wanted",
				ctl->options->layout);
	code = ctl_partition_to_make(ctl, 0, &requested, name);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (osd_client_create_named(ctl->client, requested, layout, name[0] ? name : NULL, &chosen,
				    &error) < 0)
		return ctl_fail_command(ctl, &error);
	return ctl_print_id(ctl, "partition", chosen);
}

/* NAME, or with --remove none. */
int verb_name(struct ctl *ctl)
{
	const char *name = ctl->options->remove ? "" : ctl->arguments[1];
	struct osd_client_address address;
	struct osd_client_error error;
	char text[OSD_CLIENT_ADDRESS_TEXT];
	int code;

	if ((ctl->argument_count > 1) == ctl->options->remove)
		return ctl_fail(ctl, CTL_USAGE, "name needs the new name, or --remove");
	code = ctl_partition_to_change(ctl, &address);
	if (code == CTL_OK && !ctl->options->remove)
		code = ctl_check_new_name(ctl, name);
	if (code != CTL_OK)
		return code;
	if (osd_client_set_name(ctl->client, address.partition, name, &error) < 0)
		return ctl_fail_command(ctl, &error);
	if (!ctl->options->json)
		return CTL_OK;
	return ctl_print_json(
		stdout, json_pack("{s:s}", "changed", osd_client_format_address(address, text)));
}

int verb_rmpart(struct ctl *ctl)
{
	struct osd_client_address address;
	struct osd_client_error error;
	int code = ctl_partition_to_change(ctl, &address);

	if (code == CTL_OK && ctl->options->contents)
		code = ctl_confirm(ctl, "partition 0x%" PRIx64 " goes with all that it holds",
				   address.partition);
	if (code != CTL_OK)
		return code;
	if (osd_client_remove_partition(ctl->client, address.partition, ctl->options->contents,
					&error) < 0)
		return ctl_fail_command(ctl, &error);
	return ctl->options->json ? ctl_print_id(ctl, "removed", address.partition) : CTL_OK;
}

int verb_flush(struct ctl *ctl)
{
	struct osd_client_address address;
	struct osd_client_error error;
	char text[OSD_CLIENT_ADDRESS_TEXT];
	int code = ctl_address(ctl, 0, &address);

	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (osd_client_flush(ctl->client, address, &error) < 0)
		return ctl_fail_command(ctl, &error);
	if (!ctl->options->json)
		return CTL_OK;
	return ctl_print_json(
		stdout, json_pack("{s:s}", "flushed", osd_client_format_address(address, text)));
}
