/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The directory in NVRAM, which says where the images of complete groups are. Takes segments and
 * groups out.
 */
#include "engine/muninn/directory.h"

#include <errno.h>
#include <stdlib.h>

#include "common/crc32c.h"
#include "engine/muninn/merge_run.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/repair.h"
#include "engine/muninn/row.h"

static uint8_t *entry_at(const struct muninn_store *store, uint64_t entry)
{
	return store->nvram + NVRAM_DIRECTORY_AT + entry * store->geometry.directory_entry_bytes;
}

uint64_t directory_image_page(const struct muninn_geometry *geometry, const uint8_t *entry,
			      uint32_t page)
{
	uint32_t position = get_le32(entry + DIRECTORY_FIRST_PAGE_AT) + page;
	uint32_t segment =
		get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * (position / geometry->segment_pages));

	return segment_page(geometry, segment) + position % geometry->segment_pages;
}

uint32_t directory_entry_segments(const struct muninn_geometry *geometry, const uint8_t *entry)
{
	uint64_t pages = run_pages(geometry, get_le32(entry + DIRECTORY_BYTES_AT));

	return (uint32_t)divide_up(get_le32(entry + DIRECTORY_FIRST_PAGE_AT) + pages,
				   geometry->segment_pages);
}

int directory_check_entry(const struct muninn_geometry *geometry, const uint8_t *entry,
			  struct error_text *error)
{
	uint32_t bytes = get_le32(entry + DIRECTORY_BYTES_AT);

	if (get_le32(entry + DIRECTORY_ROW_AT) >= geometry->rows || bytes == 0 ||
	    bytes > geometry->image_bytes_max ||
	    get_le32(entry + DIRECTORY_FIRST_PAGE_AT) >= geometry->segment_pages)
		return error_set(error, -EINVAL, "the directory of the index in NVRAM is corrupt");
	for (uint32_t n = 0; n < directory_entry_segments(geometry, entry); n++) {
		uint32_t segment = get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n);

		if (segment >= geometry->segments)
			return error_set(
				error, -EINVAL,
				"the directory of the index in NVRAM names segment %u of %u",
				segment, geometry->segments);
	}
	return 0;
}

uint32_t directory_used(const struct muninn_store *store)
{
	uint32_t used = 0;

	for (uint32_t number = 0; number < store->geometry.rows; number++)
		used += row_index_groups(store->rows[number].index);
	return used;
}

static bool entry_in_use(const uint8_t *entry)
{
	return get_le64(entry + DIRECTORY_LIVE_AT) != 0;
}

/* ---- the sum ---- */

/* What an entry adds: nothing when it is not in use. */
static uint64_t sum_entry(const struct muninn_store *store, const uint8_t *entry, uint64_t live)
{
	uint64_t place = (uint64_t)(entry - store->nvram);
	uint32_t rest = store->geometry.root_entry_bytes - DIRECTORY_SEGMENTS_AT;
	uint64_t crc = crc32c(0, entry, DIRECTORY_LIVE_AT);

	crc = crc << 32 | crc32c(0, entry + DIRECTORY_SEGMENTS_AT, rest);
	return live ? sum_word(place, live) ^ sum_word(place + DIRECTORY_LIVE_AT, crc) : 0;
}

uint64_t directory_sum(const struct muninn_store *store)
{
	uint64_t sum = 0;

	for (uint32_t n = 0; n < store->geometry.directory_entries; n++)
		sum ^= sum_entry(store, entry_at(store, n),
				 get_le64(entry_at(store, n) + DIRECTORY_LIVE_AT));
	return sum;
}

static void begin_live(struct muninn_store *store, const uint8_t *entry, uint64_t live)
{
	sum_begin(store_sum(store, SUM_DIRECTORY),
		  sum_entry(store, entry, get_le64(entry + DIRECTORY_LIVE_AT)) ^
			  sum_entry(store, entry, live));
}

void directory_set_live(struct muninn_store *store, uint8_t *entry, uint64_t live)
{
	begin_live(store, entry, live);
	nvram_store64(entry + DIRECTORY_LIVE_AT, live);
	sum_end(store_sum(store, SUM_DIRECTORY));
}

uint8_t *directory_free_entry(const struct muninn_store *store)
{
	for (uint32_t entry = 0; entry < store->geometry.directory_entries; entry++)
		if (!entry_in_use(entry_at(store, entry)))
			return entry_at(store, entry);
	return NULL;
}

void directory_count_image(struct muninn_store *store, const uint8_t *entry)
{
	for (uint32_t n = 0; n < directory_entry_segments(&store->geometry, entry); n++)
		store->images[get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n)]++;
}

void directory_end_image(struct muninn_store *store, const uint8_t *entry, bool counted)
{
	for (uint32_t n = 0; n < directory_entry_segments(&store->geometry, entry); n++) {
		uint32_t segment = get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n);

		if (--store->images[segment])
			continue;
		if (segment == store->metadata_segment)
			store->metadata_segment = NO_SEGMENT;
		if (counted)
			space_hold(&store->space, segment);
		else
			space_release(&store->space, segment);
	}
}

/* ---- taking away ---- */

void directory_take_out(struct muninn_store *store, uint32_t number,
			const struct sealed_segment *segment)
{
	struct row_index *index = store->rows[number].index;
	uint8_t *live = row_index_live_word(index, segment);

	if (live)
		begin_live(store, live - DIRECTORY_LIVE_AT,
			   get_le64(live) & ~(UINT64_C(1) << segment->member));
	row_index_take_out(index, segment);
	if (live)
		sum_end(store_sum(store, SUM_DIRECTORY));
	store->segment_rows[segment->segment] = NO_ROW;
	store_forget_older(store, segment->segment);
	merge_run_forget(store, segment->segment);
	repair_forget(store, segment->segment);
	store->counters.sealed_records -= segment->records;
	store->counters.sealed_record_bytes -= segment->record_bytes;
}

void directory_drop_empty(struct muninn_store *store, uint32_t number)
{
	struct row_index *index = store->rows[number].index;
	uint32_t group;
	uint8_t *live;

	while ((live = row_index_empty_group(index, &group)) != NULL) {
		int result = row_index_replace(index, group, group, NULL);

		assert(!result);
		(void)result;
		directory_end_image(store, live - DIRECTORY_LIVE_AT, true);
	}
	row_index_refresh(index);
}

/* ---- the members of a group ---- */

static uint32_t members_crc(const uint8_t *entry, const uint8_t *members)
{
	return crc32c(crc32c(0, entry, DIRECTORY_BYTES_AT), members, DIRECTORY_MEMBERS_CRC);
}

void directory_put_members(const struct muninn_store *store, uint8_t *entry, const uint8_t *image,
			   uint64_t live)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint8_t *to = entry + geometry->root_entry_bytes;

	for (uint32_t member = 0; member < GROUP_SEGMENTS; member++)
		put_le32(to + 4 * member,
			 live >> member & 1
				 ? get_le32(image + index_image_member_at(geometry, member))
				 : NO_SEGMENT);
	put_le32(to + DIRECTORY_MEMBERS_CRC, members_crc(entry, to));
}

/* What is there may be of another device of this NVRAM, with a group of that number. */
static void forget_members(const struct muninn_store *store, uint8_t *entry)
{
	uint8_t *members = entry + store->geometry.root_entry_bytes;

	put_le32(members + DIRECTORY_MEMBERS_CRC, ~members_crc(entry, members));
}

bool directory_members(const struct muninn_store *store, const uint8_t *entry,
		       uint32_t members[GROUP_SEGMENTS])
{
	const uint8_t *from = entry + store->geometry.root_entry_bytes;

	for (uint32_t member = 0; member < GROUP_SEGMENTS; member++)
		members[member] = get_le32(from + 4 * member);
	return get_le32(from + DIRECTORY_MEMBERS_CRC) == members_crc(entry, from);
}

/* ---- all entries ---- */

uint8_t *directory_next(const struct muninn_store *store, uint32_t *entry)
{
	while (*entry < store->geometry.directory_entries) {
		uint8_t *at = entry_at(store, (*entry)++);

		if (entry_in_use(at))
			return at;
	}
	return NULL;
}

uint32_t directory_copy(const struct muninn_store *store, uint8_t *to)
{
	const uint8_t *entry;
	uint32_t count = 0;

	for (uint32_t n = 0; (entry = directory_next(store, &n)) != NULL; count++)
		memcpy(to + (uint64_t)count * store->geometry.root_entry_bytes, entry,
		       store->geometry.root_entry_bytes);
	return count;
}

void directory_restore(struct muninn_store *store, const uint8_t *from, uint32_t count)
{
	uint32_t bytes = store->geometry.root_entry_bytes;

	assert(count <= store->geometry.directory_entries);
	for (uint32_t n = 0; n < count; n++) {
		memcpy(entry_at(store, n), from + (uint64_t)n * bytes, bytes);
		forget_members(store, entry_at(store, n));
	}
	for (uint32_t n = count; n < store->geometry.directory_entries; n++)
		nvram_store64(entry_at(store, n) + DIRECTORY_LIVE_AT, 0);
	sum_set(store_sum(store, SUM_DIRECTORY), directory_sum(store));
}

void directory_clear(struct muninn_store *store)
{
	for (uint32_t entry = 0; entry < store->geometry.directory_entries; entry++)
		nvram_store64(entry_at(store, entry) + DIRECTORY_LIVE_AT, 0);
	sum_set(store_sum(store, SUM_DIRECTORY), 0);
}
