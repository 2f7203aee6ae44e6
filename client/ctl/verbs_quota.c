/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* quota: how much a partition may hold; the attributes of the quotas pages. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/ctl.h"
#include "client/ctl/facts.h"
#include "common/bytes.h"

/* As people write them. The pages of objects, partitions and the root have the first 1, 3 and 4. */
static const struct limit {
	const char *name;
	uint32_t number;
} limits[] = {
	{ "length", OSD_QUOTA_MAXIMUM_LENGTH },
	{ "capacity", OSD_QUOTA_CAPACITY },
	{ "objects", OSD_QUOTA_OBJECT_COUNT },
	{ "partitions", OSD_QUOTA_PARTITION_COUNT },
};

enum { LIMITS_MAX = sizeof(limits) / sizeof(limits[0]) };

static size_t limits_of(struct osd_client_address address, uint32_t *pages)
{
	*pages = address.object      ? OSD_PAGES_USER_OBJECT
		 : address.partition ? OSD_PAGES_PARTITION
				     : OSD_PAGES_ROOT;
	return address.object ? 1 : address.partition ? 3 : 4;
}

/* ---- showing ---- */

struct shown {
	uint32_t pages;
	uint64_t limits[LIMITS_MAX]; /* 0: none */
	uint64_t bytes, objects;     /* used */
};

static int take_value(void *context, const struct osd_attribute *attribute)
{
	struct shown *shown = context;
	uint64_t value = attribute->present == 8 ? get_be64(attribute->value) : 0;

	if (attribute->page == shown->pages + OSD_PAGE_INFORMATION) {
		if (attribute->number == OSD_INFORMATION_MEMBERS)
			shown->objects = value;
		else
			shown->bytes = value;
		return 0;
	}
	for (size_t i = 0; i < LIMITS_MAX; i++)
		if (limits[i].number == attribute->number)
			shown->limits[i] = value;
	return 0;
}

static void print_limit(const struct shown *shown, size_t i)
{
	bool is_size = limits[i].number == OSD_QUOTA_MAXIMUM_LENGTH ||
		       limits[i].number == OSD_QUOTA_CAPACITY;
	char size[CTL_SIZE_TEXT];

	if (shown->limits[i] == 0)
		printf("%-20s none\n", limits[i].name);
	else if (is_size)
		printf("%-20s %" PRIu64 " (%s)\n", limits[i].name, shown->limits[i],
		       ctl_format_size(shown->limits[i], size));
	else
		printf("%-20s %" PRIu64 "\n", limits[i].name, shown->limits[i]);
}

static int print_shown(struct ctl *ctl, struct osd_client_address address,
		       const struct shown *shown, size_t count)
{
	json_t *object = ctl->options->json ? json_object() : NULL;
	char size[CTL_SIZE_TEXT];

	for (size_t i = 0; i < count; i++)
		if (object)
			json_object_set_new(object, limits[i].name,
					    shown->limits[i]
						    ? json_integer((json_int_t)shown->limits[i])
						    : json_null());
		else
			print_limit(shown, i);
	if (object && address.partition)
		json_object_set_new(object, "used", json_integer((json_int_t)shown->bytes));
	if (object && address.partition && !address.object)
		json_object_set_new(object, "members", json_integer((json_int_t)shown->objects));
	if (object)
		return ctl_print_json(stdout, object);
	if (address.partition)
		printf("%-20s %" PRIu64 " (%s)\n", "used", shown->bytes,
		       ctl_format_size(shown->bytes, size));
	if (address.partition && !address.object)
		printf("%-20s %" PRIu64 "\n", "members", shown->objects);
	return ctl_end_output(ctl);
}

static int show(struct ctl *ctl, struct osd_client_address address)
{
	struct osd_client_value gets[LIMITS_MAX + 2] = { 0 };
	struct shown shown = { 0 };
	struct osd_client_error error;
	size_t limit_count = limits_of(address, &shown.pages), count = 0;

	for (; count < limit_count; count++)
		gets[count] = (struct osd_client_value){ shown.pages + OSD_PAGE_QUOTAS,
							 limits[count].number, NULL, 8 };
	if (address.partition)
		gets[count++] = (struct osd_client_value){ shown.pages + OSD_PAGE_INFORMATION,
							   OSD_INFORMATION_USED_CAPACITY, NULL, 8 };
	if (address.partition && !address.object)
		gets[count++] = (struct osd_client_value){ shown.pages + OSD_PAGE_INFORMATION,
							   OSD_INFORMATION_MEMBERS, NULL, 8 };
	if (osd_client_get_attributes(ctl->client, address, gets, count, take_value, &shown,
				      &error) < 0)
		return ctl_fail_command(ctl, &error);
	return print_shown(ctl, address, &shown, limit_count);
}

/* ---- setting ---- */

/* "capacity=10G" */
static int parse_limit(const struct ctl *ctl, const char *text, size_t count, uint32_t *number,
		       uint64_t *value)
{
	const char *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : 0;

	for (size_t i = 0; i < count && equals; i++) {
		if (strlen(limits[i].name) != length || memcmp(limits[i].name, text, length) != 0)
			continue;
		*number = limits[i].number;
		*value = 0;
		if (strcmp(equals + 1, "none") == 0)
			return CTL_OK;
		if (ctl_parse_size(equals + 1, value) == 0 && *value > 0)
			return CTL_OK;
		return ctl_fail(ctl, CTL_USAGE,
				"quota: '%s': a number above 0 is wanted, as 1000, 64K, 10G, or "
				"none",
				text);
	}
	return ctl_fail(ctl, CTL_USAGE,
			"quota: '%s' is no limit here; %s, each with = and a number or none", text,
			count == 1   ? "an object has length"
			: count == 3 ? "a partition has length, capacity and objects"
				     : "the device has length, capacity, objects and partitions");
}

int verb_quota(struct ctl *ctl)
{
	struct osd_client_value sets[LIMITS_MAX];
	uint8_t values[LIMITS_MAX][8];
	struct osd_client_address address;
	struct osd_client_error error;
	size_t set_count = 0;
	uint32_t pages;
	int code = ctl_address(ctl, 0, &address);

	if (ctl->argument_count > 1)
		code = ctl_present(ctl, code, address);
	for (int i = 1; i < ctl->argument_count && code == CTL_OK; i++) {
		struct osd_client_value *set = &sets[set_count];
		uint64_t value = 0;

		*set = (struct osd_client_value){ .value = values[set_count], .length = 8 };
		code = parse_limit(ctl, ctl->arguments[i], limits_of(address, &pages), &set->number,
				   &value);
		set->page = pages + OSD_PAGE_QUOTAS;
		put_be64(values[set_count++], value);
	}
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (set_count > 0 &&
	    osd_client_set_attributes(ctl->client, address, sets, set_count, &error) < 0)
		return ctl_fail_command(ctl, &error);
	return show(ctl, address);
}
