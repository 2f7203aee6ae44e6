/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Looks for damage in a unit with OBJECT STRUCTURE CHECK, in as many commands as it takes. */
#include "client/check.h"

#include <errno.h>

#include "client/client_private.h"
#include "common/bytes.h"

/* Space for the report of one command: 170 damaged objects; then the next command goes on. */
#define REPORT_BYTES (OSD_CHECK_HEAD_BYTES + 170 * OSD_CHECK_ENTRY_BYTES)

struct checking {
	struct osd_client *client;
	osd_client_damaged *each;
	void *context;
	struct osd_client_checked *checked;
	struct osd_client_error *error;
};

/* One command: checks from *initial on, and sets that to the place to go on at, 0 = the end. */
static int check_part(const struct checking *checking, struct osd_client_address address,
		      uint64_t *initial, uint8_t report[REPORT_BYTES], size_t *length)
{
	struct osd_request request = { .cdb = { .action = OSD_OBJECT_STRUCTURE_CHECK,
						.address = *initial },
				       .buffer = report,
				       .buffer_length = REPORT_BYTES };
	struct osd_check_head head;
	int result;

	osd_request_address(&request, address);
	osd_client_run(checking->client, &request);
	result = outcome_give(&request.error, checking->error);
	if (result != 0)
		return result;
	*length = request.received;
	if (osd_check_head_decode(report, *length, &head) != 0 ||
	    (head.continuation != 0 && head.continuation <= *initial))
		return outcome_set(checking->error, -EPROTO,
				   "OBJECT STRUCTURE CHECK: the target's report makes no sense");
	/* What goes on counts the addressed object again. */
	checking->checked->objects += head.objects - (*initial != 0);
	checking->checked->pages += head.pages;
	*initial = head.continuation;
	return 0;
}

static struct osd_client_address address_of(const struct osd_check_entry *entry)
{
	return (struct osd_client_address){
		.partition = entry->partition & UINT64_C(0xFFFFFFFFFFFF),
		.object = entry->object,
		.version = (uint16_t)(entry->partition >> 48),
	};
}

/*
 * Checks an object that was too large to be checked with its partition, and reports its damage
 * once.
 */
static int check_large(const struct checking *checking, struct osd_client_address address)
{
	uint8_t report[REPORT_BYTES];
	uint64_t initial = 0;
	bool shown = false;
	size_t length;
	int result;

	do {
		size_t position = OSD_CHECK_HEAD_BYTES;
		struct osd_check_entry entry;

		result = check_part(checking, address, &initial, report, &length);
		if (result == 0 && !shown &&
		    osd_check_next(report, length, &position, &entry) == 1) {
			shown = true;
			result = checking->each(checking->context, address, entry.type);
		}
	} while (result == 0 && initial != 0);
	return result;
}

int osd_client_check(struct osd_client *client, struct osd_client_address address,
		     osd_client_damaged *each, void *context, struct osd_client_checked *checked,
		     struct osd_client_error *error)
{
	struct checking checking = { client, each, context, checked, error };
	uint8_t report[REPORT_BYTES];
	uint64_t initial = 0;
	size_t length;
	int result;

	if (address.object != 0)
		return check_large(&checking, address);
	do {
		size_t position = OSD_CHECK_HEAD_BYTES;
		struct osd_check_entry entry;

		result = check_part(&checking, address, &initial, report, &length);
		while (result == 0 && osd_check_next(report, length, &position, &entry) == 1) {
			uint64_t objects = checked->objects;

			result = entry.type == OSD_MAP_ALL
					 ? check_large(&checking, address_of(&entry))
					 : each(context, address_of(&entry), entry.type);
			/* The report that names it has counted it. */
			checked->objects = objects;
		}
	} while (result == 0 && initial != 0);
	return result;
}

/* ---- damaged ranges ---- */

enum { MAP_ENTRIES = 256, MAP_BYTES = OSD_MAP_HEAD_BYTES + MAP_ENTRIES * OSD_MAP_ENTRY_BYTES };

struct ranges {
	uint64_t at;             /* everything before is known */
	uint64_t offset, length; /* of the one that may go on; 0: none */
	osd_client_damaged_range *each;
	void *context;
};

static int end_range(struct ranges *ranges)
{
	int result = ranges->length ? ranges->each(ranges->context, ranges->offset, ranges->length)
				    : 0;

	ranges->length = 0;
	return result;
}

static int take_range(struct ranges *ranges, const struct osd_map_entry *entry)
{
	int result = 0;

	if (!ranges->length || entry->address > ranges->offset + ranges->length) {
		result = end_range(ranges);
		ranges->offset = entry->address;
	}
	ranges->length = entry->address + entry->length - ranges->offset;
	ranges->at = entry->address + entry->length;
	return result;
}

/* One answer. *whole: nothing is left. */
static int take_ranges(struct ranges *ranges, const uint8_t *map, size_t length, bool *whole)
{
	size_t position = OSD_MAP_HEAD_BYTES;
	uint64_t before = ranges->at;
	struct osd_map_entry entry;
	int result = 0;

	*whole = get_be64(map) <= length - OSD_MAP_HEAD_BYTES;
	while (result == 0 && osd_map_next(map, length, &position, &entry) == 1) {
		if (entry.type == OSD_MAP_ALL) {
			/* It was not looked at. */
			ranges->at = entry.address;
			*whole = false;
			break;
		}
		result = take_range(ranges, &entry);
	}
	return result == 0 && !*whole && ranges->at <= before ? -EPROTO : result;
}

int osd_client_check_ranges(struct osd_client *client, struct osd_client_address address,
			    osd_client_damaged_range *each, void *context,
			    struct osd_client_error *error)
{
	struct ranges ranges = { .each = each, .context = context };
	uint8_t map[MAP_BYTES];
	bool whole = false;
	int result = 0;

	while (result == 0 && !whole) {
		struct osd_request request = { .cdb = { .action = OSD_READ_MAP,
							.address = ranges.at,
							.map_type = OSD_MAP_DAMAGED_DATA },
					       .buffer = map,
					       .buffer_length = sizeof(map) };

		osd_request_address(&request, address);
		osd_client_run(client, &request);
		result = outcome_give(&request.error, error);
		if (result == 0 && request.received < OSD_MAP_HEAD_BYTES)
			result = outcome_set(error, -EPROTO,
					     "READ MAP: the target's answer makes no sense");
		if (result == 0)
			result = take_ranges(&ranges, map, request.received, &whole);
	}
	return result ? result : end_range(&ranges);
}
