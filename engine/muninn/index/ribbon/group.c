/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A built group: what its image says, and asking its ribbon. */
#include "engine/muninn/index/ribbon/group.h"

#include <assert.h>
#include <stdlib.h>

#include "common/crc32c.h"
#include "engine/muninn/index/ribbon/group_format.h"
#include "engine/muninn/index/ribbon/ribbon_hash.h"

/* ---- the image ---- */

static bool head_makes_sense(const uint8_t *image, uint64_t length)
{
	uint32_t members, columns, starts, locations;

	if (length < GROUP_HEADER_BYTES || get_le32(image + GROUP_MAGIC_AT) != GROUP_MAGIC ||
	    get_le32(image + GROUP_VERSION_AT) < RIBBON_VERSION_OLDEST ||
	    get_le32(image + GROUP_VERSION_AT) > RIBBON_VERSION)
		return false;
	members = get_le32(image + GROUP_MEMBERS_AT);
	columns = image[GROUP_COLUMNS_AT];
	starts = get_le32(image + GROUP_STARTS_AT);
	locations = get_le16(image + GROUP_LOCATIONS_AT);
	return members >= 1 && members <= GROUP_SEGMENTS && columns >= BAND_NEAR_COLUMNS &&
	       columns <= BAND_COLUMNS_MAX && starts && starts % BAND_WIDTH == 0 &&
	       image[GROUP_FINGERPRINT_AT] >= 1 &&
	       image[GROUP_FINGERPRINT_AT] <= BAND_FINGERPRINT_MAX && locations >= 2 &&
	       locations <= MUNINN_SEGMENT_PAGES_MAX &&
	       image[GROUP_FINGERPRINT_AT] + bits_for(locations) + bits_for(members) <= columns &&
	       get_le32(image + GROUP_FAILED_AT) <= get_le32(image + GROUP_ENTRIES_AT);
}

static uint64_t run_tags_at(const struct group *group)
{
	return GROUP_HEADER_BYTES + (uint64_t)group->members * MEMBER_BYTES;
}

/* Pages of runs that members have which are older than `member`. */
static uint32_t count_run_pages(const struct group *group, uint32_t member)
{
	uint32_t pages = 0;

	for (uint32_t n = 0; n < member; n++) {
		struct group_member facts;

		group_read_member(group, n, &facts);
		pages += group_member_runs(&facts);
	}
	return pages;
}

uint64_t group_whole_bytes(const struct group *group)
{
	return group_bytes_before_tags(group) + group->tag_bytes;
}

uint64_t group_bytes_before_tags(const struct group *group)
{
	return group->kept + (uint64_t)group->failed * FAILED_BYTES + group->appended;
}

bool group_attach(struct group *group, const uint8_t *image, uint64_t length)
{
	uint64_t near_at;

	if (!head_makes_sense(image, length))
		return false;
	*group = (struct group){
		.image = image,
		.row = get_le32(image + GROUP_ROW_AT),
		.number = get_le32(image + GROUP_NUMBER_AT),
		.joins = get_le32(image + GROUP_JOINS_AT),
		.members = get_le32(image + GROUP_MEMBERS_AT),
		.entries = get_le32(image + GROUP_ENTRIES_AT),
		.failed = get_le32(image + GROUP_FAILED_AT),
		.tag_bytes = get_le32(image + GROUP_TAGS_AT),
		.appended = get_le32(image + GROUP_APPENDED_AT),
		.locations = get_le16(image + GROUP_LOCATIONS_AT),
		.location_bits = bits_for(get_le16(image + GROUP_LOCATIONS_AT)),
		.band.shape = { .starts = get_le32(image + GROUP_STARTS_AT),
				.columns = image[GROUP_COLUMNS_AT],
				.fingerprint_bits = image[GROUP_FINGERPRINT_AT] },
	};
	if (length < run_tags_at(group))
		return false;
	near_at = run_tags_at(group) +
		  (uint64_t)count_run_pages(group, group->members) * RUN_TAG_BYTES;
	near_at = align_up(near_at, 64);
	group->band.near = image + near_at;
	group->band.far = group->band.near + band_near_bytes(&group->band.shape);
	group->kept =
		near_at + band_near_bytes(&group->band.shape) + band_far_bytes(&group->band.shape);
	return length == group->kept || length == group_bytes_before_tags(group) ||
	       length == group_whole_bytes(group);
}

bool group_is_intact(const struct group *group, uint64_t length)
{
	uint64_t counted = group_bytes_before_tags(group);
	const uint8_t zero[4] = { 0 };
	uint32_t crc = crc32c(0, group->image, GROUP_CRC_AT);

	if (length < counted)
		return false;
	crc = crc32c(crc, zero, sizeof(zero));
	crc = crc32c(crc, group->image + GROUP_CRC_AT + 4, counted - GROUP_CRC_AT - 4);
	return crc == get_le32(group->image + GROUP_CRC_AT);
}

bool group_has_intact_tags(const struct group *group, uint64_t length)
{
	const uint8_t *at = group->image + group_bytes_before_tags(group);

	return group->tag_bytes > TAGS_CRC_BYTES && length == group_whole_bytes(group) &&
	       get_le32(at) == crc32c(0, at + TAGS_CRC_BYTES, group->tag_bytes - TAGS_CRC_BYTES);
}

uint8_t *group_keep(const struct group *group, struct group *kept)
{
	uint8_t *image = aligned_alloc(64, align_up(group->kept, 64));
	bool attached;

	if (!image)
		return NULL;
	memcpy(image, group->image, group->kept);
	attached = group_attach(kept, image, group->kept);
	assert(attached);
	return image;
}

void group_move(struct group *group, const uint8_t *image)
{
	uint64_t near_at = (uint64_t)(group->band.near - group->image);

	group->image = image;
	group->band.near = image + near_at;
	group->band.far = group->band.near + band_near_bytes(&group->band.shape);
}

void group_get_member(const uint8_t *at, struct group_member *facts)
{
	uint32_t records = get_le32(at + MEMBER_RECORDS_AT), size = get_le32(at + MEMBER_SIZE_AT);

	*facts = (struct group_member){
		.segment = get_le32(at + MEMBER_SEGMENT_AT),
		.records = records & ((1U << MEMBER_RECORDS_BITS) - 1),
		.run_pages = records >> MEMBER_RECORDS_BITS,
		.serial = get_le64(at + MEMBER_SERIAL_AT),
		.first_sequence = get_le48(at + MEMBER_FIRST_SEQUENCE_AT),
		.last_sequence = get_le48(at + MEMBER_LAST_SEQUENCE_AT),
		.record_bytes = size & ((1U << MEMBER_SIZE_BITS) - 1),
		.has_runs = size >> MEMBER_RUNS_BIT & 1,
		.by_candidates = size >> MEMBER_CANDIDATES_BIT & 1,
		.is_ordered = size >> MEMBER_ORDERED_BIT & 1,
	};
}

void group_read_member(const struct group *group, uint32_t member, struct group_member *facts)
{
	assert(member < group->members);
	group_get_member(group->image + GROUP_HEADER_BYTES + (uint64_t)member * MEMBER_BYTES,
			 facts);
}

const uint8_t *group_run_tags(const struct group *group, uint32_t member)
{
	return group->image + run_tags_at(group) +
	       (uint64_t)count_run_pages(group, member) * RUN_TAG_BYTES;
}

struct tag_entry group_failed_entry(const struct group *group, uint32_t n)
{
	const uint8_t *at = group->image + group->kept + (uint64_t)n * FAILED_BYTES;

	assert(n < group->failed);
	return (struct tag_entry){
		.tag = get_le32(at + FAILED_TAG_AT),
		.segment = at[FAILED_MEMBER_AT],
		.location = get_le16(at + FAILED_LOCATION_AT),
	};
}

bool group_entries_make_sense(const struct group *group, uint32_t locations)
{
	for (uint32_t n = 0; n < group->failed; n++) {
		struct tag_entry entry = group_failed_entry(group, n);

		if (entry.segment >= group->members || entry.location >= locations)
			return false;
	}
	return true;
}

/* ---- asking ---- */

bool group_find(const struct group *group, uint32_t tag, uint32_t number, struct tag_entry *entry)
{
	uint32_t value;

	if (!band_find(&group->band, tag_hash(tag, number), &value))
		return false;
	*entry = (struct tag_entry){
		.tag = tag,
		.segment = value >> group->location_bits,
		.location = value & ((1U << group->location_bits) - 1),
	};
	/* There is no such place: a false hit that gives itself away. */
	return entry->segment < group->members && entry->location < group->locations;
}

bool group_next(const struct group *group, struct group_walk *walk, struct tag_entry *entry)
{
	for (;;) {
		bool found = group_find(group, walk->tag, walk->number, entry);
		bool ends = walk->missed || (walk->number == 0 && !walk->has_failed);

		if (!found && ends)
			return false;
		walk->missed = !found;
		walk->number++;
		if (found)
			return true;
	}
}

void group_prefetch(const struct group *group, uint32_t tag)
{
	band_prefetch(&group->band, tag_hash(tag, 0));
}
