/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Builds the image of a group from the tags of its segments. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/crc32c.h"
#include "engine/muninn/index/ribbon/group.h"
#include "engine/muninn/index/ribbon/group_format.h"
#include "engine/muninn/index/ribbon/ribbon_hash.h"

enum { RADIX_BITS = 8, RADIX = 1 << RADIX_BITS, LOCATION_BITS_MAX = 12 };

struct group_builder {
	uint32_t entries_max;
	struct band_builder *band;
	struct band_key *keys;
	uint64_t *words, *sorted; /* see word_of */
};

/* ---- memory ---- */

struct group_builder *group_builder_create(uint32_t entries_max)
{
	struct group_builder *builder = calloc(1, sizeof(*builder));
	size_t entries = entries_max ? entries_max : 1;

	if (!builder)
		return NULL;
	builder->entries_max = entries_max;
	builder->band = band_builder_create(entries_max);
	builder->keys = malloc(entries * sizeof(*builder->keys));
	builder->words = malloc(2 * entries * sizeof(*builder->words));
	builder->sorted = builder->words ? builder->words + entries : NULL;
	if (builder->band && builder->keys && builder->words)
		return builder;
	group_builder_destroy(builder);
	return NULL;
}

void group_builder_destroy(struct group_builder *builder)
{
	if (!builder)
		return;
	band_builder_destroy(builder->band);
	free(builder->keys);
	free(builder->words < builder->sorted ? builder->words : builder->sorted);
	free(builder);
}

uint64_t group_builder_bytes(uint32_t entries_max)
{
	return sizeof(struct group_builder) + band_builder_bytes(entries_max) +
	       entries_max * (sizeof(struct band_key) + 2 * sizeof(uint64_t));
}

/* ---- sizes ---- */

static uint64_t run_tags_at(uint32_t members)
{
	return GROUP_HEADER_BYTES + (uint64_t)members * MEMBER_BYTES;
}

static uint64_t planes_at(uint32_t members, uint32_t run_pages)
{
	return align_up(run_tags_at(members) + (uint64_t)run_pages * RUN_TAG_BYTES, 64);
}

static uint32_t count_run_pages(const struct group_plan *plan)
{
	uint32_t pages = 0;

	for (uint32_t n = 0; n < plan->member_count; n++)
		pages += group_member_runs(&plan->members[n]);
	return pages;
}

static struct band_shape shape_of(const struct group_plan *plan)
{
	uint32_t columns =
		plan->fingerprint_bits + bits_for(plan->locations) + bits_for(plan->member_count);

	return (struct band_shape){
		.starts = band_starts(plan->entry_count),
		.columns = columns > BAND_NEAR_COLUMNS ? columns : BAND_NEAR_COLUMNS,
		.fingerprint_bits = plan->fingerprint_bits,
	};
}

uint64_t group_image_bytes_max(uint32_t members, uint32_t entries, uint32_t columns)
{
	struct band_shape shape = { .starts = band_starts(entries), .columns = columns };

	return planes_at(members, 0) + band_near_bytes(&shape) + band_far_bytes(&shape) +
	       (uint64_t)entries * FAILED_BYTES;
}

/* ---- the order of the entries ---- */

/* Ascending words are entries by tag, those of a tag from the newest to the oldest. */
static uint64_t word_of(const struct tag_entry *entry)
{
	return (uint64_t)entry->tag << 32 |
	       (UINT32_MAX - (entry->segment << LOCATION_BITS_MAX | entry->location));
}

static struct tag_entry entry_of(uint64_t word)
{
	uint32_t rank = UINT32_MAX - (uint32_t)word;

	return (struct tag_entry){
		.tag = (uint32_t)(word >> 32),
		.segment = rank >> LOCATION_BITS_MAX,
		.location = rank & ((1U << LOCATION_BITS_MAX) - 1),
	};
}

static void sort_by_byte(struct group_builder *builder, uint32_t count, uint32_t shift)
{
	uint32_t begins[RADIX + 1] = { 0 };
	uint64_t *words = builder->words;

	for (uint32_t n = 0; n < count; n++)
		begins[(words[n] >> shift & (RADIX - 1)) + 1]++;
	for (uint32_t n = 0; n < RADIX; n++)
		begins[n + 1] += begins[n];
	for (uint32_t n = 0; n < count; n++)
		builder->sorted[begins[words[n] >> shift & (RADIX - 1)]++] = words[n];
	builder->words = builder->sorted;
	builder->sorted = words;
}

static void sort_entries(struct group_builder *builder, const struct group_plan *plan)
{
	uint32_t rank_bits = LOCATION_BITS_MAX + bits_for(plan->member_count);

	for (uint32_t n = 0; n < plan->entry_count; n++) {
		assert(plan->entries[n].segment < plan->member_count &&
		       plan->entries[n].location < plan->locations);
		builder->words[n] = word_of(&plan->entries[n]);
	}
	for (uint32_t shift = 0; shift < 64; shift += RADIX_BITS)
		if (shift >= 32 || shift < rank_bits)
			sort_by_byte(builder, plan->entry_count, shift);
}

/* ---- the ribbon ---- */

static void make_keys(struct group_builder *builder, const struct group_plan *plan)
{
	uint32_t number = 0, location_bits = bits_for(plan->locations);

	for (uint32_t n = 0; n < plan->entry_count; n++) {
		struct tag_entry entry = entry_of(builder->words[n]);

		number = n && builder->words[n - 1] >> 32 == entry.tag ? number + 1 : 0;
		builder->keys[n] = (struct band_key){
			.hash = tag_hash(entry.tag, number),
			.value = entry.segment << location_bits | entry.location,
		};
	}
}

/*
 * Who counts up ends after two numbers in a row that are not there. So when two entries of a tag
 * that follow each other have failed, all older ones of it fail, too. Returns how many have.
 */
static uint32_t end_behind_gaps(struct group_builder *builder, uint32_t count)
{
	uint32_t failed = 0;
	bool ended = false;

	for (uint32_t n = 0; n < count; n++) {
		bool follows = n && builder->words[n - 1] >> 32 == builder->words[n] >> 32;

		if (!follows)
			ended = false;
		else if (builder->keys[n - 1].failed && builder->keys[n].failed)
			ended = true;
		builder->keys[n].failed |= ended;
		failed += builder->keys[n].failed;
	}
	return failed;
}

/* ---- the image ---- */

void group_put_member(uint8_t *at, const struct group_member *member)
{
	put_le32(at + MEMBER_SEGMENT_AT, member->segment);
	put_le32(at + MEMBER_RECORDS_AT,
		 member->records | member->run_pages << MEMBER_RECORDS_BITS);
	put_le64(at + MEMBER_SERIAL_AT, member->serial);
	put_le48(at + MEMBER_FIRST_SEQUENCE_AT, member->first_sequence);
	put_le48(at + MEMBER_LAST_SEQUENCE_AT, member->last_sequence);
	put_le32(at + MEMBER_SIZE_AT,
		 member->record_bytes | (uint32_t)member->has_runs << MEMBER_RUNS_BIT |
			 (uint32_t)member->by_candidates << MEMBER_CANDIDATES_BIT |
			 (uint32_t)member->is_ordered << MEMBER_ORDERED_BIT);
}

static void put_head(uint8_t *image, const struct group_plan *plan, const struct band_shape *shape,
		     uint32_t failed)
{
	put_le32(image + GROUP_MAGIC_AT, GROUP_MAGIC);
	put_le32(image + GROUP_VERSION_AT, RIBBON_VERSION);
	put_le32(image + GROUP_ROW_AT, plan->row);
	put_le32(image + GROUP_NUMBER_AT, plan->number);
	put_le32(image + GROUP_JOINS_AT, plan->joins);
	put_le32(image + GROUP_MEMBERS_AT, plan->member_count);
	put_le32(image + GROUP_STARTS_AT, shape->starts);
	put_le32(image + GROUP_FAILED_AT, failed);
	put_le32(image + GROUP_ENTRIES_AT, plan->entry_count + plan->apart_count);
	image[GROUP_COLUMNS_AT] = (uint8_t)shape->columns;
	image[GROUP_FINGERPRINT_AT] = (uint8_t)shape->fingerprint_bits;
	put_le16(image + GROUP_LOCATIONS_AT, (uint16_t)plan->locations);
	for (uint32_t n = 0; n < plan->member_count; n++)
		group_put_member(image + GROUP_HEADER_BYTES + (uint64_t)n * MEMBER_BYTES,
				 &plan->members[n]);
	for (uint32_t n = 0; n < count_run_pages(plan); n++)
		put_le32(image + run_tags_at(plan->member_count) + (uint64_t)n * RUN_TAG_BYTES,
			 plan->run_tags[n]);
}

void group_put_failed_entry(uint8_t *at, const struct tag_entry *entry)
{
	memset(at, 0, FAILED_BYTES);
	put_le32(at + FAILED_TAG_AT, entry->tag);
	put_le16(at + FAILED_LOCATION_AT, (uint16_t)entry->location);
	at[FAILED_MEMBER_AT] = (uint8_t)entry->segment;
}

void group_put_crc(uint8_t *image, uint64_t length)
{
	put_le32(image + GROUP_CRC_AT, 0);
	put_le32(image + GROUP_CRC_AT, crc32c(0, image, length));
}

void group_append(uint8_t **image, uint64_t *length, const uint8_t *bytes, uint32_t count)
{
	uint8_t *grown = realloc(*image, *length + count);
	uint64_t tags_at;

	if (!grown)
		return;
	assert(!get_le32(grown + GROUP_APPENDED_AT));
	tags_at = *length - get_le32(grown + GROUP_TAGS_AT);
	memmove(grown + tags_at + count, grown + tags_at, (size_t)(*length - tags_at));
	memcpy(grown + tags_at, bytes, count);
	put_le32(grown + GROUP_APPENDED_AT, count);
	*image = grown;
	*length += count;
	group_put_crc(grown, tags_at + count);
}

static void put_failed(uint8_t *at, const struct group_builder *builder,
		       const struct group_plan *plan)
{
	for (uint32_t n = 0; n < plan->apart_count; n++, at += FAILED_BYTES)
		group_put_failed_entry(at, &plan->apart[n]);
	for (uint32_t n = 0; n < plan->entry_count; n++) {
		struct tag_entry entry = entry_of(builder->words[n]);

		if (!builder->keys[n].failed)
			continue;
		group_put_failed_entry(at, &entry);
		at += FAILED_BYTES;
	}
}

/* ---- tags ---- */

/* Writes them, or only counts their bytes if `at` is NULL. */
static uint64_t put_tags(uint8_t *at, const struct group_builder *builder, uint32_t count)
{
	uint64_t bytes = 0;
	uint32_t before = 0;

	for (uint32_t n = 0; n < count; n++) {
		uint32_t tag = (uint32_t)(builder->words[n] >> 32);
		uint64_t left = (uint64_t)(tag - before) << 1 | builder->keys[n].failed;

		for (; left >> 7; left >>= 7, bytes++)
			if (at)
				at[bytes] = (uint8_t)(left | 0x80);
		if (at)
			at[bytes] = (uint8_t)left;
		bytes++;
		before = tag;
	}
	return bytes;
}

int group_build(struct group_builder *builder, const struct group_plan *plan, uint8_t **out,
		uint64_t *length)
{
	struct band_shape shape = shape_of(plan);
	uint64_t near_at = planes_at(plan->member_count, count_run_pages(plan));
	uint64_t far_at = near_at + band_near_bytes(&shape);
	uint64_t failed_at = far_at + band_far_bytes(&shape);
	uint64_t tag_bytes, tags_at;
	uint8_t *image, *grown;
	uint32_t failed;

	assert(plan->entry_count <= builder->entries_max && plan->member_count >= 1 &&
	       plan->member_count <= GROUP_SEGMENTS && plan->locations >= 2 &&
	       plan->locations <= MUNINN_SEGMENT_PAGES_MAX && plan->fingerprint_bits >= 1 &&
	       plan->fingerprint_bits <= BAND_FINGERPRINT_MAX);
	image = calloc(1, failed_at);
	if (!image)
		return -ENOMEM;
	sort_entries(builder, plan);
	make_keys(builder, plan);
	band_build(builder->band, &shape, builder->keys, plan->entry_count, image + near_at,
		   image + far_at);
	failed = end_behind_gaps(builder, plan->entry_count) + plan->apart_count;
	tags_at = failed_at + (uint64_t)failed * FAILED_BYTES;
	tag_bytes = TAGS_CRC_BYTES + put_tags(NULL, builder, plan->entry_count);
	if (tag_bytes == TAGS_CRC_BYTES || tags_at + tag_bytes > plan->tagged_max)
		tag_bytes = 0;
	*length = tags_at + tag_bytes;
	grown = realloc(image, *length);
	if (!grown) {
		free(image);
		return -ENOMEM;
	}
	image = grown;
	put_head(image, plan, &shape, failed);
	put_failed(image + failed_at, builder, plan);
	put_le32(image + GROUP_TAGS_AT, (uint32_t)tag_bytes);
	group_put_crc(image, tags_at);
	if (tag_bytes) {
		put_tags(image + tags_at + TAGS_CRC_BYTES, builder, plan->entry_count);
		put_le32(image + tags_at,
			 crc32c(0, image + tags_at + TAGS_CRC_BYTES, tag_bytes - TAGS_CRC_BYTES));
	}
	*out = image;
	return 0;
}
