/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Methods, and names of keys: key method, show. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/ctl.h"
#include "client/ctl/keyring.h"
#include "client/manifest.h"
#include "common/bytes.h"

/* ---- key method ---- */

int verb_key_method(struct ctl *ctl)
{
	bool of_new = strcmp(ctl->arguments[0], "new") == 0;
	struct osd_client_address address = { 0 };
	struct osd_client_error error;
	uint8_t method;
	struct osd_client_value set = { .value = &method, .length = 1 };
	int code = of_new ? CTL_OK : ctl_address(ctl, 0, &address);

	if (code == CTL_OK && address.object)
		code = ctl_fail(ctl, CTL_USAGE,
				"%s: partitions and the root (0) have a method, objects have not",
				ctl->verb);
	if (code == CTL_OK && method_parse(ctl->arguments[1], true, &method) < 0)
		code = ctl_fail(ctl, CTL_USAGE,
				"'%s' is no security method; they are nosec, capkey, cmdrsp and "
				"alldata",
				ctl->arguments[1]);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	set.page = address.partition ? OSD_PARTITION_SECURITY : OSD_ROOT_SECURITY;
	set.number = of_new ? OSD_SECURITY_PARTITION_DEFAULT_METHOD : OSD_SECURITY_DEFAULT_METHOD;
	if (osd_client_set_attributes(ctl->client, address, &set, 1, &error) < 0)
		return ctl_fail_command(ctl, &error);
	return CTL_OK;
}

/* ---- key show ---- */

struct shown {
	json_t *facts;
	bool json;
};

/* Prints an identifier as text if it is one, otherwise in hexadecimal. */
static void identifier_text(const uint8_t *value, uint32_t length, char text[32])
{
	uint32_t used = length;

	while (used > 0 && value[used - 1] == 0)
		used--;
	for (uint32_t i = 0; i < used; i++) {
		if (value[i] <= 0x20 || value[i] > 0x7e) {
			manifest_hex(value, length, text);
			return;
		}
	}
	memcpy(text, value, used);
	text[used] = '\0';
	if (used == 0)
		strcpy(text, "initial");
}

static int show_one(void *context, const struct osd_attribute *attribute)
{
	struct shown *shown = context;
	char name[32] = "", value[32] = "";

	if (attribute->length == 0 || attribute->length > 8 ||
	    attribute->present < attribute->length)
		return 0;
	switch (attribute->number) {
	case OSD_SECURITY_DEFAULT_METHOD:
		strcpy(name, "method");
		break;
	case OSD_SECURITY_PARTITION_DEFAULT_METHOD:
		strcpy(name, "method_new");
		break;
	case OSD_SECURITY_FROZEN_KEYS:
		strcpy(name, "frozen_keys");
		snprintf(value, sizeof(value), "0x%04x", get_be16(attribute->value));
		break;
	case OSD_SECURITY_BOOT_EPOCH:
		strcpy(name, "boot_epoch");
		snprintf(value, sizeof(value), "%u", get_be16(attribute->value));
		break;
	case OSD_SECURITY_MASTER_KEY_IDENTIFIER:
		strcpy(name, "master");
		break;
	case OSD_SECURITY_ROOT_KEY_IDENTIFIER:
		strcpy(name, "root");
		break;
	case OSD_SECURITY_PARTITION_KEY_IDENTIFIER:
		strcpy(name, "partition");
		break;
	default:
		if (attribute->number - OSD_SECURITY_WORKING_KEY_IDENTIFIERS >= OSD_WORKING_KEYS)
			return 0;
		snprintf(name, sizeof(name), "working_%u",
			 attribute->number - OSD_SECURITY_WORKING_KEY_IDENTIFIERS);
		break;
	}
	if (attribute->length == 1)
		snprintf(value, sizeof(value), "%s", method_name(attribute->value[0]));
	else if (attribute->length == OSD_KEY_IDENTIFIER_BYTES)
		identifier_text(attribute->value, attribute->length, value);
	if (shown->json)
		return json_object_set_new(shown->facts, name, json_string(value)) < 0 ? -ENOMEM
										       : 0;
	printf("%-12s %s\n", name, value);
	return 0;
}

int verb_key_show(struct ctl *ctl)
{
	struct osd_client_address address;
	struct osd_client_error error;
	struct shown shown = { .json = ctl->options->json };
	struct osd_client_value get = { .number = OSD_ATTRIBUTE_ALL, .length = 4096 };
	int code = ctl_address(ctl, 0, &address);

	address.object = 0;
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	get.page = address.partition ? OSD_PARTITION_SECURITY : OSD_ROOT_SECURITY;
	shown.facts = json_object();
	if (osd_client_get_attributes(ctl->client, address, &get, 1, show_one, &shown, &error) <
	    0) {
		json_decref(shown.facts);
		return ctl_fail_command(ctl, &error);
	}
	if (shown.json)
		return ctl_print_json(stdout, shown.facts);
	json_decref(shown.facts);
	return ctl_end_output(ctl);
}
