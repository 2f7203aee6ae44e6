/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Versions and going back: snapshot, versions, rollback, undo, log. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/ctl.h"
#include "client/ctl/items.h"
#include "client/ctl/space.h"

/* A name and a group of partitions. */
#define PARAMETERS_BYTES 1024

/* ---- snapshot ---- */

/* What --name may not be. */
static int check_name(struct ctl *ctl, const char *name)
{
	if (!name || (!osd_client_is_day(name) &&
		      osd_version_name_is_valid((const uint8_t *)name, strlen(name))))
		return CTL_OK;
	return ctl_fail(ctl, CTL_USAGE,
			"--name '%.80s': a name is 1 to %d bytes of UTF-8, begins with an "
			"ASCII letter, has no control characters, and is not \"now\", "
			"\"today\" or \"yesterday\"; other names could not be written as @NAME. "
			"Names as hourly-2026-11-27T03:00Z are those of a snapshot_schedule",
			name, OSD_VERSION_NAME_MAX);
}

/* Several partitions: PARTITIONs in a SNAPSHOT of the root, which is its address then. */
static int add_group(struct ctl *ctl, struct osd_client_address *address,
		     struct osd_item_writer *writer)
{
	uint64_t added[OSD_GROUP_MAX];

	for (int i = 0; i < ctl->argument_count; i++) {
		struct osd_client_address partition;
		int code = ctl_scope_address(ctl, i, &partition);

		if (code != CTL_OK)
			return code;
		if (partition.partition == 0)
			return ctl_fail(ctl, CTL_USAGE,
					"%s: 0 is the whole device, all partitions with it; "
					"name it alone",
					ctl->verb);
		for (int other = 0; other < i; other++)
			if (added[other] == partition.partition)
				return ctl_fail(ctl, CTL_USAGE,
						"%s: %s and %s are one partition; name it once",
						ctl->verb, ctl->arguments[other],
						ctl->arguments[i]);
		added[i] = partition.partition;
		osd_item_add_number(writer, OSD_ITEM_PARTITION, partition.partition);
	}
	*address = (struct osd_client_address){ 0 };
	return CTL_OK;
}

/* The target says the same of a name that is taken and of a partition that is not there. */
static int fail_group(struct ctl *ctl, const struct osd_client_error *error)
{
	struct osd_client_address partition;
	struct osd_client_ids ids;

	for (int i = 0; error->result == -EEXIST && i < ctl->argument_count; i++)
		if (ctl_scope_address(ctl, i, &partition) == CTL_OK &&
		    osd_client_find_ids(ctl->client, partition, &ids, NULL) == -ENOENT)
			return ctl_fail(ctl, CTL_NOT_FOUND,
					"%s: there is no partition 0x%" PRIx64
					"; no version of the others is made",
					ctl->verb, partition.partition);
	return ctl_fail_command(ctl, error);
}

/* PID@VERSION of each, as an address is written. */
static int print_group(struct ctl *ctl, const struct items *found)
{
	json_t *list = json_array();
	struct osd_item_reader reader;
	struct osd_item item;

	osd_items_read(&reader, found->data, found->length);
	while (osd_item_next(&reader, &item) == 1) {
		uint64_t partition, version;

		if (item.tag != OSD_ITEM_ENTRY)
			continue;
		partition = entry_number(&item, OSD_ITEM_PARTITION);
		version = entry_number(&item, OSD_ITEM_VERSION);
		if (!ctl->options->json)
			printf("0x%" PRIx64 "@%" PRIu64 "\n", partition, version);
		json_array_append_new(list,
				      json_pack("{s:o, s:I}", "partition", ctl_json_id(partition),
						"version", (json_int_t)version));
	}
	if (ctl->options->json)
		return ctl_print_json(stdout, list);
	json_decref(list);
	return ctl_end_output(ctl);
}

int verb_snapshot(struct ctl *ctl)
{
	bool group = ctl->argument_count > 1;
	struct osd_client_address address;
	struct osd_client_error error;
	uint8_t parameters[PARAMETERS_BYTES];
	struct osd_item_writer writer;
	struct items found = { 0 };
	int code = check_name(ctl, ctl->options->name);

	osd_items_begin(&writer, parameters, sizeof(parameters));
	if (code == CTL_OK && ctl->options->name)
		osd_item_add_text(&writer, OSD_ITEM_NAME, ctl->options->name);
	if (code == CTL_OK)
		code = group ? add_group(ctl, &address, &writer)
			     : ctl_scope_address(ctl, 0, &address);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (osd_client_execute(ctl->client, OSD_FUNCTION_SNAPSHOT, address, parameters,
			       writer.length, items_take, &found, &error) < 0)
		return group ? fail_group(ctl, &error) : ctl_fail_command(ctl, &error);
	if (group)
		return print_group(ctl, &found);
	if (ctl->options->json)
		return ctl_print_json(
			stdout, json_pack("{s:I}", "version",
					  (json_int_t)items_number(&found, OSD_ITEM_VERSION)));
	printf("%" PRIu64 "\n", items_number(&found, OSD_ITEM_VERSION));
	return ctl_end_output(ctl);
}

/* ---- lists ---- */

/* A stream whose entries are printed, one a line or as JSON. */
struct listing {
	struct ctl *ctl;
	struct ctl_list list;
	json_t *(*to_json)(const struct osd_item *entry);
	void (*print)(const struct osd_item *entry);
	uint64_t count;
	struct progress progress;
	const uint64_t *alone; /* by number: what a version alone keeps; NULL: nobody asked */
};

static uint64_t alone_of(const struct listing *listing, const struct osd_item *entry)
{
	return listing->alone[entry_number(entry, OSD_ITEM_VERSION) % SPACE_VERSIONS];
}

static void print_entry(const struct listing *listing, const struct osd_item *entry)
{
	char size[CTL_SIZE_TEXT];

	if (listing->alone)
		printf("%10s alone  ", ctl_format_size(alone_of(listing, entry), size));
	listing->print(entry);
}

static json_t *entry_json(const struct listing *listing, const struct osd_item *entry)
{
	json_t *object = listing->to_json(entry);

	if (object && listing->alone)
		json_object_set_new(object, "alone",
				    json_integer((json_int_t)alone_of(listing, entry)));
	return object;
}

static int list_entries(void *context, const uint8_t *data, size_t length)
{
	struct listing *listing = context;
	struct osd_item_reader reader;
	struct osd_item entry;

	progress_clear(&listing->progress);
	osd_items_read(&reader, data, length);
	while (osd_item_next(&reader, &entry) == 1) {
		if (entry.tag != OSD_ITEM_ENTRY)
			continue;
		listing->count++;
		if (!listing->list.is_json)
			print_entry(listing, &entry);
		else if (ctl_list_add(&listing->list, entry_json(listing, &entry)) < 0)
			return -ENOMEM;
	}
	return progress_items(&listing->progress, data, length);
}

static int run_listing(struct listing *listing, enum osd_function function,
		       struct osd_client_address address, const struct osd_item_writer *writer)
{
	struct ctl *ctl = listing->ctl;
	struct osd_client_error error;
	int result;

	listing->list = ctl_list_of(ctl);
	progress_watch(&listing->progress, ctl, ctl->verb);
	result = osd_client_execute(ctl->client, function, address, writer ? writer->data : NULL,
				    writer ? writer->length : 0, list_entries, listing, &error);
	progress_end(&listing->progress);
	return result < 0 ? ctl_fail_command(ctl, &error) : ctl_list_end(&listing->list, ctl);
}

static json_t *version_json(const struct osd_item *entry)
{
	char time[CTL_TIME_TEXT], name[OSD_VERSION_NAME_MAX + 1];

	return ctl_json_with_text(
		json_pack("{s:I,s:s,s:I,s:I,s:I,s:I}", "version",
			  (json_int_t)entry_number(entry, OSD_ITEM_VERSION), "time",
			  ctl_format_time(entry_number(entry, OSD_ITEM_TIME), time), "sequence",
			  (json_int_t)entry_number(entry, OSD_ITEM_SEQUENCE), "objects",
			  (json_int_t)entry_number(entry, OSD_ITEM_OBJECTS), "used",
			  (json_int_t)entry_number(entry, OSD_ITEM_USED), "written",
			  (json_int_t)entry_number(entry, OSD_ITEM_WRITTEN)),
		"name", entry_text(entry, OSD_ITEM_NAME, name, sizeof(name)));
}

/* The target counts neither objects nor what is used of the device as a whole. */
static json_t *device_version_json(const struct osd_item *entry)
{
	json_t *object = version_json(entry);

	if (object) {
		json_object_set_new(object, "objects", json_null());
		json_object_set_new(object, "used", json_null());
	}
	return object;
}

static void print_version(const struct osd_item *entry, const char *objects, const char *used)
{
	char time[CTL_TIME_TEXT], written[CTL_SIZE_TEXT], name[OSD_VERSION_NAME_MAX + 1];

	printf("%5" PRIu64 "  %s  %9s objects  %10s used  %10s written  ",
	       entry_number(entry, OSD_ITEM_VERSION),
	       ctl_format_time(entry_number(entry, OSD_ITEM_TIME), time), objects, used,
	       ctl_format_size(entry_number(entry, OSD_ITEM_WRITTEN), written));
	ctl_print_text(entry_text(entry, OSD_ITEM_NAME, name, sizeof(name)));
	putchar('\n');
}

static void version_print(const struct osd_item *entry)
{
	char objects[24], used[CTL_SIZE_TEXT];

	snprintf(objects, sizeof(objects), "%" PRIu64, entry_number(entry, OSD_ITEM_OBJECTS));
	print_version(entry, objects, ctl_format_size(entry_number(entry, OSD_ITEM_USED), used));
}

static void device_version_print(const struct osd_item *entry)
{
	print_version(entry, "-", "-");
}

int verb_versions(struct ctl *ctl)
{
	struct listing listing = { .ctl = ctl, .to_json = version_json, .print = version_print };
	struct osd_client_address address;
	struct space space = { .parts = NULL };
	int code = ctl_scope_address(ctl, 0, &address);

	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code == CTL_OK && !address.partition) {
		listing.to_json = device_version_json;
		listing.print = device_version_print;
	}
	if (code == CTL_OK && ctl->options->long_list) {
		code = space_gather(&space, ctl, address, NULL, NULL);
		listing.alone = space.own;
	}
	if (code == CTL_OK)
		code = run_listing(&listing, OSD_FUNCTION_VERSIONS, address, NULL);
	space_free(&space);
	return code;
}

static uint64_t logged_kind(const struct osd_item *entry)
{
	return entry_number(entry, OSD_ITEM_KIND);
}

static const char *logged_name(const struct osd_item *entry)
{
	if (logged_kind(entry) & OSD_LOGGED_REMOVED)
		return "removed";
	return logged_kind(entry) & OSD_LOGGED_CREATED ? "created" : "changed";
}

static json_t *modification_json(const struct osd_item *entry)
{
	char time[CTL_TIME_TEXT];

	return json_pack(
		"{s:I,s:s,s:I,s:s}", "sequence", (json_int_t)entry_number(entry, OSD_ITEM_SEQUENCE),
		"time", ctl_format_time(entry_number(entry, OSD_ITEM_TIME), time), "length",
		(json_int_t)entry_number(entry, OSD_ITEM_LENGTH), "change", logged_name(entry));
}

static void modification_print(const struct osd_item *entry)
{
	char time[CTL_TIME_TEXT];

	printf("#%-14" PRIu64 "  %s  %-7s  %" PRIu64 "\n", entry_number(entry, OSD_ITEM_SEQUENCE),
	       ctl_format_time(entry_number(entry, OSD_ITEM_TIME), time), logged_name(entry),
	       entry_number(entry, OSD_ITEM_LENGTH));
}

int verb_log(struct ctl *ctl)
{
	struct listing listing = { .ctl = ctl,
				   .to_json = modification_json,
				   .print = modification_print };
	struct osd_client_address address;
	uint8_t parameters[PARAMETERS_BYTES];
	struct osd_item_writer writer;
	int code = ctl_object_address(ctl, 0, &address);

	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	/* The history is that of the object. A moment says where LOG begins to go back. */
	osd_items_begin(&writer, parameters, sizeof(parameters));
	if (address.version)
		osd_item_add_number(&writer, OSD_ITEM_VERSION, address.version);
	address.version = 0;
	return run_listing(&listing, OSD_FUNCTION_LOG, address, &writer);
}

/* ---- going back ---- */

static int report_change(struct ctl *ctl, struct osd_client_address address)
{
	char text[OSD_CLIENT_ADDRESS_TEXT];

	if (!ctl->options->json)
		return CTL_OK;
	return ctl_print_json(
		stdout, json_pack("{s:s}", "changed", osd_client_format_address(address, text)));
}

static int roll_back(struct ctl *ctl, struct osd_client_address address,
		     const struct osd_item_writer *writer, const struct osd_client_moment *to)
{
	struct osd_client_error error;

	if (osd_client_execute(ctl->client, OSD_FUNCTION_ROLLBACK, address, writer->data,
			       writer->length, NULL, NULL, &error) < 0)
		return ctl_fail_moment(ctl, address, to, &error);
	return report_change(ctl, address);
}

static int undo(struct ctl *ctl, struct osd_client_address address, uint64_t modifications)
{
	struct osd_client_error error;
	int code = ctl_connect(ctl);

	if (code != CTL_OK)
		return code;
	if (osd_client_undo(ctl->client, address, modifications, &error) < 0)
		return ctl_fail_command(ctl, &error);
	return report_change(ctl, address);
}

int verb_rollback(struct ctl *ctl)
{
	struct osd_client_address address;
	struct osd_client_moment moment;
	uint8_t parameters[PARAMETERS_BYTES];
	struct osd_item_writer writer;
	int code = ctl_address(ctl, 0, &address);

	osd_items_begin(&writer, parameters, sizeof(parameters));
	if (code == CTL_OK && address.version)
		return ctl_fail(ctl, CTL_USAGE,
				"rollback: the moment is an argument of its own: rollback URL %s",
				"PID[/OID] MOMENT");
	if (code == CTL_OK)
		code = ctl_moment(ctl, 1, &moment);
	if (code == CTL_OK && moment.kind == OSD_CLIENT_NOW)
		return ctl_fail(ctl, CTL_USAGE,
				"rollback: now is the present already; give a moment of the past");
	/* UNDO takes an object back before its last N modifications. */
	if (code == CTL_OK && moment.kind == OSD_CLIENT_AGO && address.object)
		return undo(ctl, address, moment.value);
	if (code == CTL_OK)
		code = ctl_add_moment(ctl, &writer, 0, &moment);
	if (ctl->options->force)
		osd_item_add_number(&writer, OSD_ITEM_FORCE, 1);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	return code == CTL_OK ? roll_back(ctl, address, &writer, &moment) : code;
}

int verb_undo(struct ctl *ctl)
{
	struct osd_client_address address;
	uint64_t modifications = 1;
	int code = ctl_object_address(ctl, 0, &address);

	code = ctl_present(ctl, code, address);
	if (code == CTL_OK && ctl->argument_count > 1 &&
	    (ctl_parse_number(ctl->arguments[1], UINT32_MAX, &modifications) < 0 ||
	     modifications == 0))
		return ctl_fail(ctl, CTL_USAGE, "undo: '%s' is no number of modifications",
				ctl->arguments[1]);
	return code == CTL_OK ? undo(ctl, address, modifications) : code;
}
