/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Objects without moving their data: create, cp, rm, truncate, clear, punch. */
#include <errno.h>
#include <stdio.h>

#include "client/ctl/ctl.h"
#include "wire/vendor.h"

/* Creates `count` objects with one command, and prints them or adds them to `created`. */
static int create_some(struct ctl *ctl, struct osd_client_address address, uint32_t count,
		       json_t *created)
{
	struct osd_client_error error;
	char text[OSD_CLIENT_ADDRESS_TEXT];
	uint64_t first, step;

	if (osd_client_create(ctl->client, address.partition, address.object, (uint16_t)count,
			      &first, &step, &error) < 0)
		return ctl_fail_command(ctl, &error);
	for (uint32_t i = 0; i < count; i++) {
		address.object = first + i * step;
		osd_client_format_address(address, text);
		if (created)
			json_array_append_new(created, json_pack("{s:s,s:o}", "address", text, "id",
								 ctl_json_id(address.object)));
		else
			puts(text);
	}
	return CTL_OK;
}

int verb_create(struct ctl *ctl)
{
	struct osd_client_address address;
	json_t *created;
	int code = ctl_address(ctl, 0, &address);

	code = ctl_present(ctl, code, address);
	if (code != CTL_OK)
		return code;
	if (!address.partition)
		return ctl_fail(ctl, CTL_USAGE,
				"create needs the address of a partition, PID, or of the new "
				"object, PID/OID");
	if (address.object && ctl->options->count > 1)
		return ctl_fail(ctl, CTL_USAGE,
				"create: --count needs IDs that the target chooses; give the "
				"partition only");
	code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	created = ctl->options->json ? json_array() : NULL;
	for (uint32_t left = ctl->options->count, count; code == CTL_OK && left > 0;
	     left -= count) {
		count = left < OSD_CREATE_OBJECTS_MAX ? left : OSD_CREATE_OBJECTS_MAX;
		code = create_some(ctl, address, count, created);
	}
	if (code != CTL_OK) {
		json_decref(created);
		return code;
	}
	return created ? ctl_print_json(stdout, created) : ctl_end_output(ctl);
}

int verb_cp(struct ctl *ctl)
{
	struct osd_client_address source, to;
	struct osd_client_error error;
	char text[OSD_CLIENT_ADDRESS_TEXT];
	int code = ctl_object_address(ctl, 0, &source);

	if (code == CTL_OK)
		code = ctl_address(ctl, 1, &to);
	if (code == CTL_OK)
		code = ctl_present(ctl, code, to);
	if (code != CTL_OK)
		return code;
	if (!to.partition)
		return ctl_fail(ctl, CTL_USAGE,
				"cp needs the address of a partition, PID, or of the new object, "
				"PID/OID, behind that of the object to copy");
	/* The target refuses it too, and says only which field it is. */
	if (to.object == source.object && to.partition == source.partition && !source.version)
		return ctl_fail(ctl, CTL_USAGE,
				"cp: %s is the object to copy and the copy; `rollback` brings an "
				"older content of it back",
				ctl->arguments[0]);
	code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (osd_client_copy(ctl->client, source, to.partition, to.object, &to.object, &error) < 0)
		return ctl_fail_command(ctl, &error);
	osd_client_format_address(to, text);
	if (ctl->options->json)
		return ctl_print_json(stdout, json_pack("{s:s,s:o}", "address", text, "id",
							ctl_json_id(to.object)));
	puts(text);
	return ctl_end_output(ctl);
}

static int remove_one(struct ctl *ctl, int index, struct osd_client_address address, void *context)
{
	struct osd_client_error error;

	(void)index;
	(void)context;
	return osd_client_remove(ctl->client, address, &error) < 0 ? ctl_fail_command(ctl, &error)
								   : CTL_OK;
}

static int check_present(struct ctl *ctl, int index, struct osd_client_address address,
			 void *context)
{
	(void)index;
	(void)context;
	return ctl_present(ctl, CTL_OK, address);
}

int verb_rm(struct ctl *ctl)
{
	int removed, code = ctl_for_each_object(ctl, 0, check_present, remove_one, NULL, &removed);

	if ((code == CTL_OK || removed > 0) && ctl->options->json &&
	    ctl_print_json(stdout, json_pack("{s:i}", "removed", removed)) != CTL_OK)
		return CTL_LOCAL;
	return code;
}

static int print_changed(const struct ctl *ctl, struct osd_client_address address)
{
	char text[OSD_CLIENT_ADDRESS_TEXT];

	if (!ctl->options->json)
		return CTL_OK;
	return ctl_print_json(
		stdout, json_pack("{s:s}", "changed", osd_client_format_address(address, text)));
}

int verb_truncate(struct ctl *ctl)
{
	struct osd_client_address address;
	struct osd_client_error error;
	uint64_t length = 0;
	int code = ctl_object_address(ctl, 0, &address);

	code = ctl_present(ctl, code, address);
	if (code == CTL_OK)
		code = ctl_size(ctl, 1, "length", &length);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (osd_client_truncate(ctl->client, address, length, &error) < 0)
		return ctl_fail_command(ctl, &error);
	return print_changed(ctl, address);
}

typedef int change_range(struct osd_client *client, struct osd_client_address address,
			 uint64_t offset, uint64_t length, struct osd_client_error *error);

static int change(struct ctl *ctl, change_range *call)
{
	struct osd_client_address address;
	struct osd_client_error error;
	uint64_t offset = 0, length = 0;
	int code = ctl_object_address(ctl, 0, &address);

	code = ctl_present(ctl, code, address);
	if (code == CTL_OK)
		code = ctl_size(ctl, 1, "offset", &offset);
	if (code == CTL_OK)
		code = ctl_size(ctl, 2, "length", &length);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (call(ctl->client, address, offset, length, &error) < 0)
		return ctl_fail_command(ctl, &error);
	return print_changed(ctl, address);
}

int verb_clear(struct ctl *ctl)
{
	return change(ctl, osd_client_clear);
}

int verb_punch(struct ctl *ctl)
{
	return change(ctl, osd_client_punch);
}
