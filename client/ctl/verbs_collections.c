/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* coll …: collections, their members, queries. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/collections.h"
#include "client/ctl/ctl.h"
#include "common/bytes.h"

/* Criteria of one query: as many as the target takes. */
#define CRITERIA_MAX 64

/* ---- making and removing ---- */

static int print_address(const struct ctl *ctl, struct osd_client_address address)
{
	char text[OSD_CLIENT_ADDRESS_TEXT];

	ctl_format_address(ctl, address, text);
	if (ctl->options->json)
		return ctl_print_json(stdout, json_pack("{s:s,s:o}", "address", text, "id",
							ctl_json_id(address.object)));
	puts(text);
	return ctl_end_output(ctl);
}

/* Argument `index`: PID or PID/OID. */
static int new_address(struct ctl *ctl, int index, struct osd_client_address *address)
{
	int code = ctl_address(ctl, index, address);

	if (code == CTL_OK && !address->partition)
		return ctl_fail(ctl, CTL_USAGE,
				"%s needs a partition, PID, or the address of the new collection, "
				"PID/OID",
				ctl->verb);
	return ctl_present(ctl, code, *address);
}

int verb_coll_create(struct ctl *ctl)
{
	struct osd_client_address address;
	struct osd_client_error error;
	int code = new_address(ctl, 0, &address);

	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (osd_client_create_collection(ctl->client, address.partition, address.object,
					 &address.object, &error) < 0)
		return ctl_fail_command(ctl, &error);
	return print_address(ctl, address);
}

int verb_coll_track(struct ctl *ctl)
{
	struct osd_client_address address, source = { 0 };
	struct osd_client_error error;
	int code = new_address(ctl, 0, &address);

	if (code == CTL_OK && ctl->argument_count > 1)
		code = ctl_object_address(ctl, 1, &source);
	code = ctl_present(ctl, code, source);
	if (code == CTL_OK && source.object && source.partition != address.partition)
		return ctl_fail(ctl, CTL_USAGE,
				"coll track: the members come from a collection of the same "
				"partition");
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (osd_client_create_tracking_collection(ctl->client, address.partition, address.object,
						  source.object, &address.object, &error) < 0)
		return ctl_fail_command(ctl, &error);
	return print_address(ctl, address);
}

int verb_coll_rm(struct ctl *ctl)
{
	struct osd_client_address address;
	struct osd_client_error error;
	int code = ctl_object_address(ctl, 0, &address);

	code = ctl_present(ctl, code, address);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (osd_client_remove_collection(ctl->client, address, ctl->options->force, &error) < 0)
		return ctl_fail_command(ctl, &error);
	return ctl->options->json ? ctl_print_json(stdout, json_pack("{s:i}", "removed", 1))
				  : CTL_OK;
}

int verb_coll_purge(struct ctl *ctl)
{
	struct osd_client_address address;
	struct osd_client_error error;
	char text[OSD_CLIENT_ADDRESS_TEXT];
	int code = ctl_object_address(ctl, 0, &address);

	code = ctl_present(ctl, code, address);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (osd_client_remove_members(ctl->client, address, &error) < 0) {
		if (error.result == -EINVAL && error.has_sense)
			return ctl_fail(ctl, CTL_USAGE, "coll purge: %s is no collection",
					ctl->arguments[0]);
		return ctl_fail_command(ctl, &error);
	}
	if (!ctl->options->json)
		return CTL_OK;
	return ctl_print_json(
		stdout, json_pack("{s:s}", "changed", ctl_format_address(ctl, address, text)));
}

/* ---- lists ---- */

struct printing {
	const struct ctl *ctl;
	struct osd_client_address parent;
	struct ctl_list list;
};

static int print_id(void *context, uint64_t id)
{
	struct printing *printing = context;
	struct osd_client_address address = printing->parent;
	char text[OSD_CLIENT_ADDRESS_TEXT];

	address.object = id;
	ctl_format_address(printing->ctl, address, text);
	if (!printing->list.is_json) {
		puts(text);
		return 0;
	}
	return ctl_list_add(&printing->list,
			    json_pack("{s:s,s:o}", "address", text, "id", ctl_json_id(id)));
}

/* Ends the output of print_id after `result`. */
static int end_printing(struct ctl *ctl, struct printing *printing, int result,
			const struct osd_client_error *error)
{
	return result < 0 ? ctl_fail_command(ctl, error) : ctl_list_end(&printing->list, ctl);
}

int verb_coll_ls(struct ctl *ctl)
{
	struct printing printing = { .ctl = ctl };
	struct osd_client_error error = { 0 };
	int code = ctl_address(ctl, 0, &printing.parent), result;

	if (code == CTL_OK && !printing.parent.partition)
		return ctl_fail(ctl, CTL_USAGE,
				"coll ls needs a partition, PID, or a collection, PID/OID");
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	printing.list = ctl_list_of(ctl);
	result = osd_client_list_collection(ctl->client, printing.parent, 0, print_id, &printing,
					    &error);
	return end_printing(ctl, &printing, result, &error);
}

/* ---- members ---- */

typedef int change_membership(struct osd_client *client, struct osd_client_address object,
			      uint64_t collection, struct osd_client_error *error);

static int fail_membership(struct ctl *ctl, int index, const struct osd_client_error *error)
{
	if (error->result != -EINVAL || !error->has_sense)
		return ctl_fail_command(ctl, error);
	return ctl_fail(ctl, CTL_USAGE, "%s: %s is no collection, or %s is one", ctl->verb,
			ctl->arguments[0], ctl->arguments[index]);
}

struct membership {
	struct osd_client_address collection;
	change_membership *change;
};

static int check_member(struct ctl *ctl, int index, struct osd_client_address object, void *context)
{
	const struct membership *membership = context;

	if (object.partition != membership->collection.partition)
		return ctl_fail(ctl, CTL_USAGE,
				"%s: %s is in another partition than the collection", ctl->verb,
				ctl->arguments[index]);
	return ctl_present(ctl, CTL_OK, object);
}

static int change_member(struct ctl *ctl, int index, struct osd_client_address object,
			 void *context)
{
	const struct membership *membership = context;
	struct osd_client_error error;

	return membership->change(ctl->client, object, membership->collection.object, &error) < 0
		       ? fail_membership(ctl, index, &error)
		       : CTL_OK;
}

/* Arguments: the collection, then objects of its partition. */
static int change_members(struct ctl *ctl, change_membership *change)
{
	struct membership membership = { .change = change };
	int code = ctl_object_address(ctl, 0, &membership.collection), changed = 0;

	code = ctl_present(ctl, code, membership.collection);
	if (code == CTL_OK)
		code = ctl_for_each_object(ctl, 1, check_member, change_member, &membership,
					   &changed);
	if ((code == CTL_OK || changed > 0) && ctl->options->json &&
	    ctl_print_json(stdout, json_pack("{s:i}", "members", changed)) != CTL_OK)
		return CTL_LOCAL;
	return code;
}

int verb_coll_add(struct ctl *ctl)
{
	return change_members(ctl, osd_client_join_collection);
}

int verb_coll_drop(struct ctl *ctl)
{
	return change_members(ctl, osd_client_leave_collection);
}

/* ---- queries ---- */

/* Criteria, and the memory of their bounds. A decoded bound is not longer than its argument. */
struct criteria {
	struct osd_client_criterion items[CRITERIA_MAX];
	size_t count;
	uint8_t *values;
	size_t used, capacity;
};

/* Takes `length` characters as a bound. */
static int take_bound(const struct ctl *ctl, struct criteria *criteria, const char *text,
		      size_t length, const void **bound, uint16_t *bytes)
{
	char plain[OSD_ATTRIBUTE_BYTES_MAX + 1];
	uint8_t *place = criteria->values + criteria->used;
	size_t decoded = length;
	uint64_t number;

	if (length == 0)
		return CTL_OK;
	if (length > OSD_ATTRIBUTE_BYTES_MAX)
		return ctl_fail(ctl, CTL_USAGE, "coll query: a bound is longer than %u characters",
				OSD_ATTRIBUTE_BYTES_MAX);
	memcpy(plain, text, length);
	plain[length] = '\0';
	if (ctl->options->number) {
		if (ctl_parse_size(plain, &number) < 0)
			return ctl_fail(ctl, CTL_USAGE, "--number: '%.80s' is no number", plain);
		put_be64(place, number);
		decoded = 8;
	} else if (ctl->options->hexadecimal) {
		if (ctl_parse_hex(plain, place, &decoded) < 0)
			return ctl_fail(
				ctl, CTL_USAGE,
				"--hex: '%.32s' is not an even number of hexadecimal digits",
				plain);
	} else {
		memcpy(place, plain, length);
	}
	*bound = place;
	*bytes = (uint16_t)decoded;
	criteria->used += decoded;
	return CTL_OK;
}

/* "PAGE:NUMBER", "PAGE:NUMBER=VALUE" or "PAGE:NUMBER=MIN..MAX", where MIN or MAX may be missing. */
static int take_criterion(const struct ctl *ctl, struct criteria *criteria, const char *text)
{
	struct osd_client_criterion *item = &criteria->items[criteria->count++];
	const char *values = strchr(text, '='), *dots = values ? strstr(values, "..") : NULL;
	size_t head = values ? (size_t)(values - text) : strlen(text);
	uint64_t page, number;
	char plain[64], *colon;
	int code;

	snprintf(plain, sizeof(plain), "%.*s", (int)min_u64(head, sizeof(plain) - 1), text);
	colon = strchr(plain, ':');
	if (colon)
		*colon++ = '\0';
	if (!colon || ctl_parse_number(plain, UINT32_MAX, &page) < 0 ||
	    ctl_parse_number(colon, UINT32_MAX, &number) < 0)
		return ctl_fail(ctl, CTL_USAGE,
				"coll query: '%.80s': a criterion is PAGE:NUMBER[=VALUE | "
				"=MIN..MAX]",
				text);
	*item = (struct osd_client_criterion){ .page = (uint32_t)page, .number = (uint32_t)number };
	if (!values)
		return CTL_OK;
	values++;
	if (!dots) {
		code = take_bound(ctl, criteria, values, strlen(values), &item->minimum,
				  &item->minimum_length);
		item->maximum = item->minimum;
		item->maximum_length = item->minimum_length;
		return code;
	}
	code = take_bound(ctl, criteria, values, (size_t)(dots - values), &item->minimum,
			  &item->minimum_length);
	if (code != CTL_OK)
		return code;
	return take_bound(ctl, criteria, dots + 2, strlen(dots + 2), &item->maximum,
			  &item->maximum_length);
}

static int take_criteria(const struct ctl *ctl, struct criteria *criteria)
{
	int code = CTL_OK;

	if (ctl->argument_count - 1 > CRITERIA_MAX)
		return ctl_fail(ctl, CTL_USAGE, "coll query: at most %d criteria", CRITERIA_MAX);
	/* A number takes 8 bytes, however short it is written, and a criterion has two. */
	for (int i = 1; i < ctl->argument_count; i++)
		criteria->capacity += strlen(ctl->arguments[i]) + 16;
	criteria->values = malloc(criteria->capacity);
	if (!criteria->values)
		return ctl_fail(ctl, CTL_LOCAL, "coll query: out of memory");
	for (int i = 1; i < ctl->argument_count && code == CTL_OK; i++)
		code = take_criterion(ctl, criteria, ctl->arguments[i]);
	return code;
}

static int run_query(struct ctl *ctl, const struct criteria *criteria,
		     struct osd_client_address collection)
{
	struct printing printing = { .ctl = ctl, .parent = collection };
	struct osd_client_error error = { 0 };
	int code = ctl_connect(ctl), result;

	if (code != CTL_OK)
		return code;
	printing.list = ctl_list_of(ctl);
	result = osd_client_query(ctl->client, collection, !ctl->options->any, criteria->items,
				  criteria->count, print_id, &printing, &error);
	return end_printing(ctl, &printing, result, &error);
}

int verb_coll_query(struct ctl *ctl)
{
	struct criteria *criteria = calloc(1, sizeof(*criteria));
	struct osd_client_address collection;
	int code;

	if (!criteria)
		return ctl_fail(ctl, CTL_LOCAL, "coll query: out of memory");
	code = ctl_object_address(ctl, 0, &collection);
	if (code == CTL_OK)
		code = take_criteria(ctl, criteria);
	if (code == CTL_OK)
		code = run_query(ctl, criteria, collection);
	free(criteria->values);
	free(criteria);
	return code;
}
