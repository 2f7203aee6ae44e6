/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Adds up what SPACE tells of the pages that it looked at, and tells from that of all. */
#include "client/ctl/space.h"

#include <errno.h>
#include <stdlib.h>

#include "client/ctl/items.h"

static struct space_part *part_of(struct space *space, uint64_t kind, uint64_t partition)
{
	struct space_part *grown;

	for (size_t n = 0; n < space->part_count; n++)
		if (space->parts[n].kind == kind && space->parts[n].partition == partition)
			return &space->parts[n];
	if (space->part_count == space->part_capacity) {
		space->part_capacity = space->part_capacity * 2 + 16;
		grown = realloc(space->parts, space->part_capacity * sizeof(*grown));
		if (!grown)
			return NULL;
		space->parts = grown;
	}
	space->parts[space->part_count] =
		(struct space_part){ .kind = kind, .partition = partition };
	return &space->parts[space->part_count++];
}

static void add(struct space_part *to, const struct space_part *from)
{
	to->live += from->live;
	to->kept += from->kept;
	to->history += from->history;
	to->reclaimable += from->reclaimable;
	to->freed += from->freed;
}

static int take_entry(struct space *space, const struct osd_item *entry)
{
	const struct space_part part = {
		.live = entry_number(entry, OSD_ITEM_LIVE),
		.kept = entry_number(entry, OSD_ITEM_KEPT),
		.history = entry_number(entry, OSD_ITEM_HISTORY),
		.reclaimable = entry_number(entry, OSD_ITEM_RECLAIMABLE),
		.freed = entry_number(entry, OSD_ITEM_FREED),
	};
	uint64_t version = entry_number(entry, OSD_ITEM_VERSION);
	struct space_part *sum;

	if (version) {
		space->own[version % SPACE_VERSIONS] += entry_number(entry, OSD_ITEM_LENGTH);
		return 0;
	}
	sum = part_of(space, entry_number(entry, OSD_ITEM_KIND),
		      entry_number(entry, OSD_ITEM_PARTITION));
	if (!sum)
		return -ENOMEM;
	add(sum, &part);
	add(&space->all, &part);
	return 0;
}

/* A result: sums, and what is so of the whole device. */
static int take_items(void *context, const uint8_t *data, size_t length)
{
	struct space *space = context;
	struct osd_item_reader reader;
	struct osd_item item;
	uint64_t number;

	osd_items_read(&reader, data, length);
	while (osd_item_next(&reader, &item) == 1) {
		if (item.tag == OSD_ITEM_ENTRY && take_entry(space, &item) < 0)
			return -ENOMEM;
		if (item.tag == OSD_ITEM_ENTRY || osd_item_number(&item, &number) < 0)
			continue;
		if (item.tag == OSD_ITEM_COUNT)
			space->looked_at += number;
		else if (item.tag == OSD_ITEM_PAGES)
			space->pages = number;
		else if (item.tag == OSD_ITEM_LENGTH)
			space->records = number;
		else if (item.tag == OSD_ITEM_USED)
			space->used = number;
		else if (item.tag == OSD_ITEM_CAPACITY)
			space->capacity = number;
		else if (item.tag == OSD_ITEM_DEVICE)
			space->device = number;
	}
	return progress_items(&space->progress, data, length);
}

/* From bytes of `seen` records to bytes of all, with the space that is lost beside them. */
static uint64_t scaled(const struct space *space, uint64_t bytes, uint64_t seen)
{
	return seen ? (uint64_t)((unsigned __int128)bytes * space->records / seen) : 0;
}

static void scale(const struct space *space, struct space_part *part, uint64_t seen)
{
	part->live = scaled(space, part->live, seen);
	part->kept = scaled(space, part->kept, seen);
	part->history = scaled(space, part->history, seen);
	part->reclaimable = scaled(space, part->reclaimable, seen);
	part->freed = scaled(space, part->freed, seen);
}

static int by_partition(const void *a_, const void *b_)
{
	const struct space_part *a = a_, *b = b_;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return a->partition < b->partition ? -1 : a->partition > b->partition;
}

int space_gather(struct space *space, struct ctl *ctl, struct osd_client_address address,
		 const struct osd_item_writer *parameters, const struct osd_client_moment *since)
{
	struct osd_client_error error;
	uint64_t seen;
	int result;

	*space = (struct space){ .own = calloc(SPACE_VERSIONS, sizeof(*space->own)) };
	if (!space->own)
		return ctl_fail(ctl, CTL_LOCAL, "%s: no memory", ctl->verb);
	progress_watch(&space->progress, ctl, ctl->verb);
	result = osd_client_execute(ctl->client, OSD_FUNCTION_SPACE, address,
				    parameters ? parameters->data : NULL,
				    parameters ? parameters->length : 0, take_items, space, &error);
	progress_end(&space->progress);
	if (result < 0)
		return since ? ctl_fail_moment(ctl, address, since, &error)
			     : ctl_fail_command(ctl, &error);
	seen = space->all.live + space->all.kept + space->all.history + space->all.reclaimable;
	for (size_t n = 0; n < space->part_count; n++)
		scale(space, &space->parts[n], seen);
	for (uint32_t n = 0; n < SPACE_VERSIONS; n++)
		space->own[n] = scaled(space, space->own[n], seen);
	scale(space, &space->all, seen);
	if (space->part_count)
		qsort(space->parts, space->part_count, sizeof(*space->parts), by_partition);
	return CTL_OK;
}

void space_free(struct space *space)
{
	free(space->parts);
	free(space->own);
}
