/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Formatting, opening and closing. Opening is a list of named steps; each leaves the store as
 * recovered as it is so far.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/allocator.h"
#include "common/clock.h"
#include "common/log.h"
#include "engine/muninn/aborted.h"
#include "engine/muninn/check.h"
#include "engine/muninn/directory.h"
#include "engine/muninn/flush.h"
#include "engine/muninn/grow.h"
#include "engine/muninn/header.h"
#include "engine/muninn/image.h"
#include "engine/muninn/image_load.h"
#include "engine/muninn/mend.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/operations.h"
#include "engine/muninn/outage.h"
#include "engine/muninn/rebuild.h"
#include "engine/muninn/root_find.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "engine/muninn/settle.h"
#include "engine/muninn/sums.h"
#include "engine/muninn/void.h"

static const struct muninn_options defaults;

static int nvram_bytes(const struct nand_geometry *nand, const struct record_options *records,
		       const void *own, uint64_t *bytes, struct error_text *error)
{
	struct muninn_geometry geometry;
	int result = muninn_geometry_choose(nand, records, own ? own : &defaults, &geometry, error);

	if (!result)
		*bytes = geometry.nvram_bytes;
	return result;
}

/* ---- formatting ---- */

static void begin_rows(struct muninn_store *store)
{
	directory_clear(store);
	rows_release_buffers(store);
	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		row_index_begin(store->rows[number].index, 0);
		row_start_buffer(store, number);
	}
}

/*
 * Begins with numbers that no earlier format of this device has used. So what an earlier one left
 * on flash is known to be old.
 */
static void begin_numbers(struct muninn_store *store)
{
	uint64_t serial = SERIAL_FORMAT_STEP, root_serial = 1;
	struct found_root found;

	if (root_find(store->nand, &found) == 0) {
		serial = (found.header.next_serial / SERIAL_FORMAT_STEP + 1) * SERIAL_FORMAT_STEP;
		root_serial = found.serial_most + 1;
	}
	root_found_free(&found);
	state_write(store, STATE_NEXT_SERIAL_AT, serial);
	roots_format(store, root_serial);
}

static int format(struct nand *nand, const struct record_options *records, const void *own,
		  struct error_text *error)
{
	struct muninn_store *store = calloc(1, sizeof(*store));
	int result;

	if (!store)
		return error_set(error, -ENOMEM, "out of memory");
	store->nand = nand;
	result = muninn_geometry_choose(nand_geometry(nand), records, own ? own : &defaults,
					&store->geometry, error);
	if (!result)
		result = store_allocate(store, error);
	if (!result) {
		/* Not a device of this engine until the very end. */
		nvram_store64(store->nvram + NVRAM_MAGIC_AT, 0);
		memset(store->nvram + 8, 0, NVRAM_DIRECTORY_AT - 8);
		result = nand_nvram_sync(nand, 0, NVRAM_PAGE);
		begin_numbers(store);
		begin_rows(store);
		sums_set(store);
		if (!result)
			result = flush_all(store);
		header_write(store->nvram, &store->geometry, nand_uuid(nand));
		outage_look(store, records);
		outage_note_boot(store);
		if (!result)
			result = flush_all(store);
		/* Two, so that one is found by itself if a page is lost: see root_find.c. */
		for (int n = 0; !result && n < 2; n++)
			result = roots_write(store);
		if (result)
			error_set(error, result,
				  "the formatted device can't be made stable (error %d)", -result);
	}
	store_free(store);
	return result;
}

/* ---- opening ---- */

static int step_header(struct muninn_store *store, struct error_text *error)
{
	uint64_t bytes;

	store->nvram = nand_nvram(store->nand, &bytes);
	if (bytes < NVRAM_PAGE)
		return error_set(error, -ENODEV, "the device has no NVRAM for the muninn engine");
	return header_read(store->nvram, store->nand, &store->geometry, error);
}

static int step_index(struct muninn_store *store, struct error_text *error)
{
	return index_prepare(store->index, store->options, image_read_page, store, error);
}

static int step_outage(struct muninn_store *store, struct error_text *error)
{
	(void)error;
	outage_look(store, store->records);
	store->committed = state_read(store, STATE_COMMITTED_AT);
	return 0;
}

static int step_growing_groups(struct muninn_store *store, struct error_text *error)
{
	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		int result = row_index_attach(store->rows[number].index);

		if (result == -ENOMEM)
			return error_set(error, result, "out of memory");
		if (result)
			return error_set(error, result,
					 "the growing group of row %u in NVRAM is corrupt", number);
	}
	return 0;
}

/* Whoever is refused by that finds the device as it was. So nothing is stored before it. */
static int step_sums(struct muninn_store *store, struct error_text *error)
{
	int result = store->host_failed ? 0 : sums_check(store, error);

	if (result)
		return result;
	if (!store->host_failed)
		sums_settle(store);
	result = outage_begin(store, error);
	/* Those may have been about to begin. */
	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		struct row_index *index = store->rows[number].index;

		if (!row_index_members(index))
			row_index_begin(index, row_index_growing(index));
	}
	return result;
}

/* The growing group of a row is newer than its complete ones. */
static int check_growing_group(struct muninn_store *store, uint32_t number,
			       struct error_text *error)
{
	struct row_index *index = store->rows[number].index;
	uint32_t growing = row_index_growing(index), newest;

	if (!row_index_newest(index, &newest) || growing > newest)
		return 0;
	if (growing < newest)
		return error_set(error, -EINVAL,
				 "row %u grows group %u, but group %u is complete; the NVRAM is "
				 "corrupt",
				 number, growing, newest);
	/* Listed as complete, but the next one had not begun when the process ended. */
	row_index_begin(index, growing + 1);
	image_sync_group(store, number);
	return 0;
}

/* Of a complete group its image has said it. */
static void load_ranges(struct muninn_store *store, const struct row_index *index,
			const struct sealed_segment *segment)
{
	struct older_pages older;
	uint32_t bytes;
	const uint8_t *at;

	if (segment->group != row_index_growing(index))
		return;
	at = row_index_appended(index, segment->member, &bytes);
	if (!older_stored_at(at, bytes))
		return;
	older_get(&older, at);
	store_note_older(store, segment->segment, &older);
}

/* Notes which segments a row has. */
static int note_segments(struct muninn_store *store, uint32_t number, bool *in_use,
			 struct error_text *error)
{
	struct index_walk walk = { 0 };
	struct sealed_segment segment;

	while (row_index_next(store->rows[number].index, &walk, &segment)) {
		if (segment.segment >= store->geometry.segments || in_use[segment.segment])
			return error_set(
				error, -EINVAL,
				"row %u, group %u, member %u: segment %u does not exist or "
				"is in use twice; the device is damaged",
				number, segment.group, segment.member, segment.segment);
		in_use[segment.segment] = true;
		store->segment_rows[segment.segment] = (uint16_t)number;
		store->counters.sealed_records += segment.records;
		store->counters.sealed_record_bytes += segment.record_bytes;
		load_ranges(store, store->rows[number].index, &segment);
	}
	return 0;
}

/*
 * Reads the complete groups of all rows from flash, and learns from them which segments are in use.
 * All others are free: the list of free segments is made anew from that.
 */
static int step_complete_groups(struct muninn_store *store, struct error_text *error)
{
	const struct muninn_geometry *geometry = &store->geometry;
	const struct space_shape shape = {
		.segment_blocks = geometry->segment_blocks,
		.first = geometry->root_segments,
		.segments = geometry->segments,
	};
	bool *in_use = calloc(geometry->segments, sizeof(*in_use));
	int result;

	if (!in_use)
		return error_set(error, -ENOMEM, "out of memory");
	result = image_load_all(store, in_use, error);
	for (uint32_t number = 0; !result && number < geometry->rows; number++) {
		result = check_growing_group(store, number, error);
		if (!result)
			result = note_segments(store, number, in_use, error);
		if (!result && row_index_refresh(store->rows[number].index))
			result = error_set(error, -ENOMEM, "out of memory");
	}
	space_destroy(&store->space);
	if (!result && space_create(&store->space, store->nand, &shape, in_use))
		result = error_set(error, -ENOMEM, "out of memory");
	free(in_use);
	return result;
}

static int step_buffers(struct muninn_store *store, struct error_text *error)
{
	int result = store->host_failed ? rows_check_headers(store, error) : 0;

	if (result)
		return result;
	if (store->host_failed)
		outage_fall_back(store);
	return rows_recover_buffers(store, error);
}

/* Before numbers that were not committed are taken for used up. */
static int step_format(struct muninn_store *store, struct error_text *error)
{
	(void)error;
	void_recover(store);
	return 0;
}

/* A command that had sealed a segment but not committed: its sequence number never counts. */
static int step_interrupted(struct muninn_store *store, struct error_text *error)
{
	if (store->host_failed)
		return outage_finish(store, error);
	uint64_t sealed = state_read(store, STATE_SEALED_AT);
	uint64_t count = state_read(store, STATE_ABORTED_COUNT_AT);

	if (sealed > store->committed + RECORD_GAP_MAX)
		return error_set(error, -EINVAL,
				 "sealed segments are far ahead of the committed sequence (%llu, "
				 "%llu); the NVRAM is corrupt",
				 (unsigned long long)sealed, (unsigned long long)store->committed);
	if (count > MUNINN_ABORTED_MAX)
		return error_set(
			error, -EINVAL,
			"%llu interrupted commands on record, more than fit; the NVRAM is corrupt",
			(unsigned long long)count);
	if (count > MUNINN_ABORTED_MAX / 2 && aborted_prune(store))
		return error_set(error, -EIO, "NVRAM can't be made stable");
	if (sealed > store->committed) {
		if (!aborted_has_room(store, RECORD_ROOM_UPKEEP))
			return aborted_refuse(error);
		aborted_skip_to(store, sealed);
	}
	return 0;
}

static int step_void(struct muninn_store *store, struct error_text *error)
{
	(void)error;
	settle_format(store); /* what fails is logged, and tried again */
	return 0;
}

/*
 * The flash alone does not tell which numbers were aborted, nor which segments a merge that was cut
 * short had freed.
 */
static int step_root(struct muninn_store *store, struct error_text *error)
{
	(void)error;
	if (store->root_outdated || roots_are_expected(store))
		roots_supersede(store);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct muninn_store *store, struct error_text *error);
} open_steps[] = {
	{ "read the header", step_header },
	{ "allocate memory", store_allocate },
	{ "prepare the index", step_index },
	{ "look for a failure of the host", step_outage },
	{ "attach growing groups", step_growing_groups },
	{ "compare NVRAM with its sums", step_sums },
	{ "look at the last root", roots_check },
	{ "load complete groups", step_complete_groups },
	{ "recover row buffers", step_buffers },
	{ "look for a format", step_format },
	{ "discard what was interrupted", step_interrupted },
	{ "free what is void", step_void },
	{ "note on flash what was discarded", step_root },
};

static void set_limits(struct muninn_store *store)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint64_t segments = geometry->segments - geometry->root_segments -
			    geometry->room_kept[RECORD_ROOM_WRITE];
	uint64_t capacity = segments * geometry->segment_pages * geometry->page_bytes;

	store->base.limits = (struct record_limits){
		.value_bytes = geometry->page_bytes,
		.capacity_bytes = capacity,
		.segment_bytes = capacity / geometry->segments,
		.segments_open = geometry->hashed_rows,
		.segments_slack = geometry->merging_slack,
	};
}

/* `lost`: where to note what is lost, of a damaged device; NULL: damage is refused. */
static int open_once(struct nand *nand, const struct record_options *records,
		     const struct muninn_options *options, struct lost *lost,
		     struct record_store **out, struct error_text *error)
{
	struct muninn_store *store = calloc(1, sizeof(*store));
	uint64_t begin = clock_microseconds();

	if (!store)
		return error_set(error, -ENOMEM, "out of memory");
	store->base.operations = &muninn_operations;
	store->base.device = nand_path(nand);
	store->nand = nand;
	store->records = records;
	store->options = options; /* placement is fixed at format */
	store->salvaged = lost;
	for (size_t i = 0; i < sizeof(open_steps) / sizeof(open_steps[0]); i++) {
		uint64_t step_begin = clock_microseconds();
		int result = open_steps[i].run(store, error);

		if (result) {
			log_line(LOG_LEVEL_ERROR, "%s: opening stops: %s failed",
				 nand_path(store->nand), open_steps[i].name);
			store_free(store);
			return result;
		}
		log_line(LOG_LEVEL_DEBUG, "%s: open: %s: %llu us", nand_path(store->nand),
			 open_steps[i].name,
			 (unsigned long long)(clock_microseconds() - step_begin));
	}
	store->records = NULL;
	store->options = NULL;
	set_limits(store);
	/* What opening had for a moment: images as they are on flash, tables that have grown. */
	allocator_give_back();
	store->open_microseconds = clock_microseconds() - begin;
	*out = &store->base;
	return 0;
}

/* The NVRAM is not usable: says whether the device could be opened without it. */
static int refuse(struct nand *nand, int result, struct error_text *error)
{
	struct error_text reason = *error;
	struct found_root found;

	if (root_find(nand, &found) == 0)
		result = error_set(error, -EINVAL,
				   "%s; if the NVRAM is lost: the flash has root %llu, and opening "
				   "with recover_without_nvram gives what is on flash, but not "
				   "what was only in NVRAM",
				   reason.text, (unsigned long long)found.header.serial);
	root_found_free(&found);
	return result;
}

/* Opens without what NVRAM says of the flash. -ENOENT: the flash does not tell enough. */
static int open_rebuilt(struct nand *nand, const struct record_options *records,
			const struct muninn_options *options, struct lost *lost,
			struct record_store **out, struct error_text *error)
{
	int result = rebuild_nvram(nand, records, options, lost, error);

	return result ? result : open_once(nand, records, options, lost, out, error);
}

/*
 * Leaves out what is damaged, as little as possible: buffers, then everything else that NVRAM says
 * of the flash.
 */
static int open_salvaged(struct nand *nand, const struct record_options *records,
			 const struct muninn_options *options, struct record_store **out,
			 struct error_text *error)
{
	struct lost lost = { 0 };
	struct error_text why = *error;
	int result = mend_nvram(nand, records, options, &lost);

	/* What is wrong with the index on flash is said where it is mended. */
	if (result || strncmp(why.text, "index: ", 7) != 0)
		findings_add(records->salvage, FINDING_NVRAM, "%s", why.text);
	if (!result) {
		result = open_once(nand, records, options, &lost, out, error);
		/* What the sums say fits, and it is refused: it is of another time. */
		lost.all |= result != 0;
	}
	if (result)
		result = open_rebuilt(nand, records, options, &lost, out, error);
	if (result == -ENOENT)
		result = error_set(error, -EINVAL, "%s; and there is no root on flash", why.text);
	if (result)
		free(lost.places);
	else
		((struct muninn_store *)(void *)*out)->lost = lost;
	return result;
}

static int open_store(struct nand *nand, const struct record_options *records, const void *own,
		      struct record_store **out, struct error_text *error)
{
	const struct muninn_options *options = own ? own : &defaults;
	struct error_text why;
	int result = open_once(nand, records, options, NULL, out, error);

	if (result == -EPROTO || result == -ERANGE)
		return -EINVAL;
	if (result && result != -ENOMEM && records->salvage)
		return open_salvaged(nand, records, options, out, error);
	if (result != -ENODEV && result != -EINVAL)
		return result;
	if (!records->recover_without_nvram)
		return refuse(nand, result, error);
	log_line(LOG_LEVEL_WARNING, "%s: the NVRAM is not usable (%s); recovering without it",
		 nand_path(nand), error->text);
	int rebuilt = open_rebuilt(nand, records, options, NULL, out, &why);

	if (rebuilt == -ENOENT)
		return result;
	if (rebuilt)
		*error = why;
	return rebuilt;
}

const struct record_store_type muninn_store_type = {
	.name = "muninn",
	.nvram_bytes = nvram_bytes,
	.format = format,
	.examine = check_device,
	.open = open_store,
	.grow = grow_device,
};
