/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Recovers a device whose NVRAM is lost. The newest root tells what NVRAM said when it was written.
 * Segments that were sealed since tell their row and serial in every page. This reads one page of
 * every segment that has been written, and all pages of those that are in no complete group. What
 * was in the row buffers is gone.
 */
#include "engine/muninn/rebuild.h"

#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "engine/muninn/aborted.h"
#include "engine/muninn/directory.h"
#include "engine/muninn/flush.h"
#include "engine/muninn/header.h"
#include "engine/muninn/mend.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/outage.h"
#include "engine/muninn/regroup.h"
#include "engine/muninn/root_find.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "engine/muninn/store.h"
#include "engine/muninn/sums.h"
#include "nand/salvage.h"

/* A segment that was sealed later than what the root and its list say. */
struct sealed {
	uint32_t segment;
	uint32_t row;
	uint64_t serial;
};

struct rebuild {
	struct muninn_store *store;
	struct found_root found;
	const uint8_t **rows; /* their entries in the root, or in ... */
	uint8_t *since_rows;  /* ... what stands for these where a group became complete since */
	struct sealed *since; /* by row and serial */
	uint32_t since_count;
	uint64_t serial_most;   /* highest of any segment */
	struct regroup regroup; /* of the growing groups */
	/* Only of a device that is salvaged: */
	struct lost *lost;
	bool keeps_state; /* the state words and the aborted numbers are those that NVRAM has */
	uint64_t buffered_most; /* highest sequence number in a buffer that is kept */
};

/* ---- what the root says ---- */

static uint32_t kill_count(const struct rebuild *rebuild)
{
	return rebuild->found.list ? rebuild->found.list_header.count : 0;
}

static struct root_kill kill_at(const struct rebuild *rebuild, uint32_t n)
{
	struct root_kill kill;

	root_read_kill(rebuild->found.list, n, &kill);
	return kill;
}

/* The segments among `live` of a group that have not been merged away since the root. */
static uint64_t still_live(const struct rebuild *rebuild, uint32_t row, uint32_t group,
			   uint64_t live)
{
	for (uint32_t n = 0; n < kill_count(rebuild); n++) {
		struct root_kill kill = kill_at(rebuild, n);

		if (kill.row == row && kill.group == group)
			live &= ~(UINT64_C(1) << (kill.member % GROUP_SEGMENTS));
	}
	return live;
}

static bool is_killed(const struct rebuild *rebuild, uint32_t segment, uint64_t serial)
{
	for (uint32_t n = 0; n < kill_count(rebuild); n++) {
		struct root_kill kill = kill_at(rebuild, n);

		if (kill.segment == segment && kill.serial == serial)
			return true;
	}
	return false;
}

/* The newer of what the root and the list of changes say. */
static const struct root_header *newest_header(const struct rebuild *rebuild)
{
	return rebuild->found.list ? &rebuild->found.list_header : &rebuild->found.header;
}

static int step_state(struct rebuild *rebuild, struct error_text *error)
{
	struct muninn_store *store = rebuild->store;
	const struct root_header *header = &rebuild->found.header;
	const uint8_t *aborted = rebuild->found.bytes + root_aborted_at();

	(void)error;
	rebuild->serial_most = newest_header(rebuild)->next_serial;
	rebuild->regroup.sequence_most = newest_header(rebuild)->committed;
	if (rebuild->keeps_state)
		return 0;
	nvram_store64(store->nvram + NVRAM_MAGIC_AT, 0);
	memset(store->nvram + 8, 0, NVRAM_DIRECTORY_AT - 8);
	memcpy(store->nvram + NVRAM_ABORTED_AT, aborted,
	       header->aborted_count * ABORTED_RANGE_BYTES);
	put_le64(store->nvram + STATE_ABORTED_COUNT_AT, header->aborted_count);
	put_le64(store->nvram + STATE_VOID_AT, newest_header(rebuild)->void_before);
	put_le64(store->nvram + STATE_ROOT_SERIAL_AT, rebuild->found.serial_most + 1);
	put_le64(store->nvram + STATE_ROOT_SEGMENT_AT, rebuild->found.segment);
	return 0;
}

/* What a root would say of the row of a group that became complete: its next one has nothing. */
static void begin_next_group(struct rebuild *rebuild, const uint8_t *group, uint8_t *row)
{
	const uint8_t *entry = group + ROOT_GROUP_ENTRY_AT;

	put_le32(row + ROOT_ROW_GROUP_AT, get_le32(entry + DIRECTORY_GROUP_AT) + 1);
	put_le32(row + ROOT_ROW_MEMBERS_AT, 0);
	put_le64(row + ROOT_ROW_LIVE_AT, 0);
	put_le64(row + ROOT_ROW_SERIAL_AT, get_le64(group + ROOT_GROUP_SERIAL_AT));
	rebuild->rows[get_le32(entry + DIRECTORY_ROW_AT)] = row;
}

static int step_rows(struct rebuild *rebuild, struct error_text *error)
{
	const struct found_root *found = &rebuild->found;
	const struct muninn_geometry *geometry = &rebuild->store->geometry;
	const uint8_t *row = found->bytes + root_rows_at(geometry, &found->header);
	uint32_t groups = found->list ? found->list_header.groups : 0;

	for (uint32_t number = 0; number < geometry->rows; number++) {
		rebuild->rows[number] = row;
		row += root_row_bytes(row);
	}
	if (!groups)
		return 0;
	rebuild->since_rows = calloc(groups, ROOT_ROW_BYTES);
	if (!rebuild->since_rows)
		return error_set(error, -ENOMEM, "out of memory");
	for (uint32_t n = 0; n < groups; n++)
		begin_next_group(
			rebuild,
			root_list_group(geometry, found->list, found->list_header.count, n),
			rebuild->since_rows + (uint64_t)ROOT_ROW_BYTES * n);
	return 0;
}

static int step_directory(struct rebuild *rebuild, struct error_text *error)
{
	struct muninn_store *store = rebuild->store;
	uint32_t bytes = store->geometry.root_entry_bytes, left = 0;
	uint8_t *entries = rebuild->found.entries;

	for (uint32_t n = 0; n < rebuild->found.entry_count; n++) {
		uint8_t *entry = entries + (uint64_t)n * bytes;
		uint64_t live = still_live(rebuild, get_le32(entry + DIRECTORY_ROW_AT),
					   get_le32(entry + DIRECTORY_GROUP_AT),
					   get_le64(entry + DIRECTORY_LIVE_AT));

		/* Nothing of the group is left, perhaps not even its image. */
		if (!live)
			continue;
		put_le64(entry + DIRECTORY_LIVE_AT, live);
		memmove(entries + (uint64_t)left++ * bytes, entry, bytes);
	}
	if (left > store->geometry.directory_entries)
		return error_set(error, -EINVAL,
				 "root %llu and its list of changes name %u groups, but the index "
				 "has space for %u: the flash is not what this program wrote",
				 (unsigned long long)rebuild->found.header.serial, left,
				 store->geometry.directory_entries);
	directory_restore(store, entries, left);
	return 0;
}

/* ---- what was sealed since ---- */

static int by_row_and_serial(const void *a, const void *b)
{
	const struct sealed *first = a, *second = b;

	if (first->row != second->row)
		return first->row < second->row ? -1 : 1;
	return first->serial < second->serial ? -1 : first->serial > second->serial;
}

/*
 * Whether a buffer still has all that is in the segment: it has been emptied when a segment that
 * was programmed whole counts. So it tells of a device that is salvaged which segment is torn.
 */
static bool is_buffered(const struct rebuild *rebuild, const struct sealed *sealed)
{
	const struct muninn_store *store = rebuild->store;

	for (uint32_t n = 0; n < store->free_buffer_count; n++) {
		const struct buffer *buffer = &store->free_buffers[n];

		if (buffer_row(buffer) == sealed->row &&
		    buffer_stored_serial(buffer) == sealed->serial)
			return true;
	}
	return false;
}

/*
 * The newest segment of a row may have been in the middle of its last page. Then it is not whole
 * either, although its block looks so: the page can't be read. With a buffer that is kept only what
 * is damaged in that, and noted, is lost by leaving it out. Without one all but that page stays,
 * and the page is noted.
 */
static void leave_out_torn(struct rebuild *rebuild)
{
	const struct muninn_geometry *geometry = &rebuild->store->geometry;
	uint32_t left = 0;

	for (uint32_t n = 0; n < rebuild->since_count; n++) {
		struct sealed *sealed = &rebuild->since[n];
		bool newest = n + 1 == rebuild->since_count || sealed[1].row != sealed->row;
		bool may_be_torn = newest && (!rebuild->lost || is_buffered(rebuild, sealed));
		uint64_t last = segment_page(geometry, sealed->segment + 1) - 1;
		struct page_spare spare;

		if (!may_be_torn || regroup_read_page(rebuild->store, last, NULL, &spare))
			rebuild->since[left++] = *sealed;
	}
	rebuild->since_count = left;
}

static int step_sealed_since(struct rebuild *rebuild, struct error_text *error)
{
	const struct muninn_geometry *geometry = &rebuild->store->geometry;

	(void)error;
	/* One of them may have held a segment that only its block's word told of, or one less. */
	if (rebuild->lost && nand_blocks_were_damaged(rebuild->store->nand))
		rebuild->lost->all = true;
	for (uint32_t segment = geometry->root_segments; segment < geometry->segments; segment++) {
		struct page_spare spare;
		uint32_t end;

		/* Not whole: it was being programmed. */
		if (segment_end(rebuild->store->nand, geometry->segment_blocks, segment, &end) ||
		    end < geometry->segment_pages ||
		    !regroup_ask_segment(rebuild->store, segment, &spare))
			continue;
		rebuild->serial_most = max_u64(rebuild->serial_most, spare.serial);
		if (spare.serial < get_le64(rebuild->rows[spare.row] + ROOT_ROW_SERIAL_AT) ||
		    is_killed(rebuild, segment, spare.serial))
			continue;
		rebuild->since[rebuild->since_count++] = (struct sealed){ .segment = segment,
									  .row = spare.row,
									  .serial = spare.serial };
	}
	if (rebuild->since_count)
		qsort(rebuild->since, rebuild->since_count, sizeof(*rebuild->since),
		      by_row_and_serial);
	leave_out_torn(rebuild);
	return 0;
}

/* ---- growing groups ---- */

static int rebuild_row(struct rebuild *rebuild, uint32_t number, uint32_t *since)
{
	struct row_index *index = rebuild->store->rows[number].index;
	const uint8_t *entry = rebuild->rows[number];
	uint32_t group = get_le32(entry + ROOT_ROW_GROUP_AT);
	uint64_t live = still_live(rebuild, number, group, get_le64(entry + ROOT_ROW_LIVE_AT));
	int result = 0;

	row_index_begin(index, group);
	/* Those that are dead have no place: a group of which nothing was left has ended without
	 * one. */
	for (uint32_t member = 0; !result && member < get_le32(entry + ROOT_ROW_MEMBERS_AT);
	     member++) {
		uint32_t segment = get_le32(entry + ROOT_ROW_BYTES + 4 * member);

		if (!(live >> member & 1))
			continue;
		if (row_index_is_full(index))
			regroup_leave_out(&rebuild->regroup, number);
		else
			result = regroup_add_segment(&rebuild->regroup, index, number, segment,
						     true);
	}
	for (; *since < rebuild->since_count && rebuild->since[*since].row == number; ++*since) {
		/* The root was written when it counted already, and its buffer was still there. */
		if (rebuild->since[*since].serial <= row_index_last_serial(index))
			continue;
		/* A root or list is written with every complete group; here that failed. */
		if (row_index_is_full(index))
			regroup_leave_out(&rebuild->regroup, number);
		else if (!result)
			result = regroup_add_segment(&rebuild->regroup, index, number,
						     rebuild->since[*since].segment, true);
	}
	return result;
}

static int step_growing_groups(struct rebuild *rebuild, struct error_text *error)
{
	uint32_t since = 0;
	int result = 0;

	for (uint32_t number = 0; !result && number < rebuild->store->geometry.rows; number++)
		result = rebuild_row(rebuild, number, &since);
	return result ? error_set(error, result, "out of memory") : 0;
}

/* ---- buffers, where the rest of the NVRAM is used ---- */

static uint64_t highest_in(const struct buffer *buffer)
{
	uint64_t most = 0;

	for (uint32_t page = 0; page < buffer->geometry->segment_pages; page++) {
		struct page_view view = buffer_page(buffer, page);
		struct page_record record;
		uint32_t offset = 0;

		while (page_next(&view, &offset, &record))
			most = max_u64(most, record_sequence(record.header));
	}
	return most;
}

/*
 * Keeps the buffers that rows have, which have been mended, and empties the others. Opening gives
 * them to their rows.
 */
static void keep_buffers(struct rebuild *rebuild)
{
	struct muninn_store *store = rebuild->store;

	for (uint32_t n = 0; n < store->free_buffer_count; n++) {
		struct buffer *buffer = &store->free_buffers[n];
		uint32_t row = buffer_row(buffer);
		bool keep = row < store->geometry.rows &&
			    buffer_stored_serial(buffer) >
				    row_index_last_serial(store->rows[row].index);

		if (keep) {
			*buffer = buffer_stored(buffer);
			rebuild->serial_most = max_u64(rebuild->serial_most, buffer->serial);
			rebuild->buffered_most =
				max_u64(rebuild->buffered_most, highest_in(buffer));
		} else {
			mend_empty(buffer);
		}
	}
}

/* ---- the end ---- */

static bool was_closed(const struct muninn_store *store)
{
	return get_le64(store->nvram + store->geometry.sums_at + SUMS_CLEAN_AT) == NVRAM_CLEAN;
}

/*
 * The last command counts as interrupted if it was under way at the last seal. Commands that are
 * lost had higher numbers.
 */
static int step_sequence(struct rebuild *rebuild, struct error_text *error)
{
	struct muninn_store *store = rebuild->store;
	uint64_t most = rebuild->regroup.sequence_most, end;
	bool unfinished = rebuild->regroup.sequence_unfinished &&
			  most > newest_header(rebuild)->committed;

	if (rebuild->keeps_state) {
		store->committed = state_read(store, STATE_COMMITTED_AT);
		put_le64(store->nvram + STATE_SEALED_AT,
			 max_u64(most, state_read(store, STATE_SEALED_AT)));
		put_le64(
			store->nvram + STATE_NEXT_SERIAL_AT,
			max_u64(rebuild->serial_most + 1, state_read(store, STATE_NEXT_SERIAL_AT)));
		return 0;
	}
	/* Only the last command of all may not have been committed, unless the store was closed. */
	if (rebuild->buffered_most > most) {
		most = rebuild->buffered_most;
		unfinished = !was_closed(store);
		rebuild->lost->all |= unfinished;
	}
	end = most | (RECORD_SLOT - 1);
	store->committed = most - unfinished;
	put_le64(store->nvram + STATE_COMMITTED_AT, store->committed);
	put_le64(store->nvram + STATE_SEALED_AT, most);
	put_le64(store->nvram + STATE_NEXT_SERIAL_AT, rebuild->serial_most + 1);
	if (store->committed == end)
		return 0;
	if (!aborted_has_room(store, RECORD_ROOM_UPKEEP))
		return aborted_refuse(error);
	/* The numbers of lost commands are not used again, as after a failure of the host. */
	aborted_skip_to(store, end);
	return 0;
}

static int step_begin(struct rebuild *rebuild, struct error_text *error)
{
	struct muninn_store *store = rebuild->store;

	if (!rebuild->lost) {
		rows_release_buffers(store);
		for (uint32_t number = 0; number < store->geometry.rows; number++)
			row_start_buffer(store, number);
	}
	sums_set(store);
	header_write(store->nvram, &store->geometry, nand_uuid(store->nand));
	outage_look(store, store->records);
	outage_note_boot(store);
	int result = flush_all(store);

	if (result)
		return error_set(error, result, "the NVRAM can't be made stable (error %d)",
				 -result);
	/* Of a private copy nothing is to be recovered. */
	if (!rebuild->lost)
		roots_write(store);
	return 0;
}

static int step_buffers(struct rebuild *rebuild, struct error_text *error)
{
	(void)error;
	if (rebuild->lost)
		keep_buffers(rebuild);
	return 0;
}

static int (*const steps[])(struct rebuild *rebuild, struct error_text *error) = {
	step_state,          step_rows,    step_directory, step_sealed_since,
	step_growing_groups, step_buffers, step_sequence,  step_begin,
};

static void say_what_is_lost(const struct rebuild *rebuild)
{
	struct nand_counters counters;

	nand_read_counters(rebuild->store->nand, &counters);
	log_line(
		LOG_LEVEL_WARNING,
		"%s: recovered without NVRAM: root %llu and %u segments sealed since, up to "
		"sequence number %llu, %llu pages read; everything that was only in NVRAM is lost: "
		"records since the last seal of their row, and what a merge had moved there",
		nand_path(rebuild->store->nand), (unsigned long long)rebuild->found.header.serial,
		rebuild->since_count, (unsigned long long)rebuild->store->committed,
		(unsigned long long)counters.by_cause[NAND_CAUSE_RECOVERY].pages_read);
	if (rebuild->found.lost)
		log_line(LOG_LEVEL_WARNING,
			 "%s: root %llu can't be read; what was merged away since root %llu comes "
			 "back",
			 nand_path(rebuild->store->nand), (unsigned long long)rebuild->found.lost,
			 (unsigned long long)rebuild->found.header.serial);
	if (rebuild->regroup.pages_damaged || rebuild->regroup.segments_left_out)
		log_line(LOG_LEVEL_ERROR,
			 "%s: recovered without NVRAM: %llu damaged pages and %llu "
			 "segments are lost, too",
			 nand_path(rebuild->store->nand),
			 (unsigned long long)rebuild->regroup.pages_damaged,
			 (unsigned long long)rebuild->regroup.segments_left_out);
}

/* Whether its numbers are what they were, as their sums say. */
static bool state_is_sound(struct muninn_store *store)
{
	struct muninn_geometry of_nvram;
	struct error_text error;

	outage_look(store, store->records);
	return !store->host_failed &&
	       header_read(store->nvram, store->nand, &of_nvram, &error) == 0 &&
	       sums_check_numbers(store) &&
	       state_read(store, STATE_ABORTED_COUNT_AT) <= MUNINN_ABORTED_MAX;
}

int rebuild_nvram(struct nand *nand, const struct record_options *records,
		  const struct muninn_options *options, struct lost *lost, struct error_text *error)
{
	struct rebuild rebuild = { .store = calloc(1, sizeof(*rebuild.store)), .lost = lost };
	int result;

	if (!rebuild.store)
		return error_set(error, -ENOMEM, "out of memory");
	rebuild.store->nand = nand;
	rebuild.store->records = records;
	rebuild.store->options = options;
	result = root_find(nand, &rebuild.found);
	if (result) {
		free(rebuild.store);
		root_found_free(&rebuild.found);
		return error_set(error, result,
				 result == -ENOENT ? "there is no root on flash to recover from"
						   : "out of memory");
	}
	rebuild.store->geometry = rebuild.found.geometry;
	rebuild.regroup = (struct regroup){ .store = rebuild.store, .lost = lost };
	result = store_allocate(rebuild.store, error);
	rebuild.rows = calloc(rebuild.found.geometry.rows, sizeof(*rebuild.rows));
	rebuild.since = calloc(rebuild.found.geometry.segments, sizeof(*rebuild.since));
	if (!result && (!rebuild.rows || !rebuild.since))
		result = error_set(error, -ENOMEM, "out of memory");
	if (!result && lost && !lost->all)
		rebuild.keeps_state = state_is_sound(rebuild.store);
	for (size_t n = 0; !result && n < sizeof(steps) / sizeof(steps[0]); n++)
		result = steps[n](&rebuild, error);
	if (!result)
		say_what_is_lost(&rebuild);
	free(rebuild.rows);
	free(rebuild.since_rows);
	free(rebuild.since);
	root_found_free(&rebuild.found);
	store_free(rebuild.store);
	return result;
}
