/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The growing group of a row in NVRAM. */
#include "engine/muninn/index/ribbon/growing.h"

#include <assert.h>

#include "common/crc32c.h"
#include "engine/muninn/index/ribbon/growing_format.h"
#include "engine/muninn/nvram.h"

/* ---- places ---- */

uint64_t growing_bytes(const struct ribbon_shape *shape)
{
	return GROWING_ENTRIES_AT + (uint64_t)shape->group_entries * GROWING_ENTRY_BYTES;
}

static uint8_t *member_at(const struct growing *growing, uint32_t member)
{
	return growing->nvram + GROWING_HEADER_BYTES + (uint64_t)member * GROWING_MEMBER_BYTES;
}

static uint8_t *entry_at(const struct growing *growing, uint32_t n)
{
	return growing->nvram + GROWING_ENTRIES_AT + (uint64_t)n * GROWING_ENTRY_BYTES;
}

uint32_t growing_number(const struct growing *growing)
{
	return get_le32(growing->nvram + GROWING_NUMBER_AT);
}

uint32_t growing_members(const struct growing *growing)
{
	return get_le32(growing->nvram + GROWING_MEMBERS_AT);
}

static uint8_t *live_word(const struct growing *growing)
{
	return growing->nvram + GROWING_LIVE_AT;
}

uint64_t growing_live(const struct growing *growing)
{
	uint32_t count = growing_members(growing);

	return get_le64(live_word(growing)) &
	       (count == GROUP_SEGMENTS ? UINT64_MAX : (UINT64_C(1) << count) - 1);
}

uint32_t growing_entries(const struct growing *growing, uint32_t members)
{
	return members ? get_le32(member_at(growing, members - 1) + GROWING_END_AT) : 0;
}

/* Bytes up to the end of the space that are kept with so many members. */
static uint32_t appended_bytes(const struct growing *growing, uint32_t members)
{
	return members ? get_le32(member_at(growing, members - 1) + GROWING_APPENDED_AT) : 0;
}

/* Where the entries of a member's keys end, and those of its runs begin. */
static uint32_t keys_end(const struct growing *growing, uint32_t member)
{
	struct group_member facts;

	growing_read_member(growing, member, &facts);
	return growing_entries(growing, member + 1) - group_member_runs(&facts);
}

static uint32_t entry_word(const struct growing *growing, uint32_t n)
{
	return get_le16(entry_at(growing, n) + 4);
}

/* ---- the sum ---- */

/* Places of its words; those of member m are behind SUM_MEMBERS. */
enum { SUM_HEADER, SUM_LIVE, SUM_MEMBERS };

static uint64_t sum_header(uint32_t number, uint32_t members, uint64_t live)
{
	uint64_t sum = sum_word(SUM_HEADER, (uint64_t)number << 32 | members);

	return members ? sum ^ sum_word(SUM_LIVE, live) : sum;
}

static uint64_t sum_member(const struct growing *growing, uint32_t member)
{
	uint32_t begin = growing_entries(growing, member);
	uint32_t end = growing_entries(growing, member + 1);
	uint64_t facts = crc32c(0, member_at(growing, member), GROWING_MEMBER_BYTES);
	uint32_t entries =
		crc32c(0, entry_at(growing, begin), (uint64_t)(end - begin) * GROWING_ENTRY_BYTES);

	return sum_word(SUM_MEMBERS + (uint64_t)member, facts << 32 | entries);
}

uint64_t growing_sum(const struct growing *growing)
{
	uint32_t members = growing_members(growing);
	uint64_t sum = sum_header(growing_number(growing), members, growing_live(growing));

	for (uint32_t member = 0; member < members; member++)
		sum ^= sum_member(growing, member);
	return sum;
}

/* Stores a word of the header; then the sum is another one. */
static void store_header(struct growing *growing, uint32_t at, uint32_t value, uint64_t sum)
{
	sum_begin_whole(growing->sum, sum);
	nvram_store32(growing->nvram + at, value);
	sum_end(growing->sum);
}

/* ---- beginning ---- */

void growing_begin(struct growing *growing, uint32_t number)
{
	uint8_t *nvram = growing->nvram;

	store_header(growing, GROWING_MEMBERS_AT, 0, sum_header(growing_number(growing), 0, 0));
	put_le32(nvram + GROWING_MAGIC_AT, GROWING_MAGIC);
	put_le32(nvram + GROWING_VERSION_AT, RIBBON_VERSION);
	put_le32(nvram + GROWING_ROW_AT, growing->row);
	memset(nvram + GROWING_MEMBERS_AT + 4, 0, GROWING_HEADER_BYTES - GROWING_MEMBERS_AT - 4);
	store_header(growing, GROWING_NUMBER_AT, number, sum_header(number, 0, 0));
}

/* Ends of entries go up, and are within the space for them; so do those of keys. */
static bool ends_make_sense(const struct growing *growing)
{
	uint32_t members = growing_members(growing), before = 0;

	for (uint32_t member = 0; member < members; member++) {
		uint32_t end = growing_entries(growing, member + 1);
		struct group_member facts;

		growing_read_member(growing, member, &facts);
		if (end < before || end - before > growing->shape->segment_entries ||
		    end > growing->shape->group_entries || end - before < group_member_runs(&facts))
			return false;
		before = end;
	}
	return true;
}

/* As far as a search rests on it. */
static bool entries_make_sense(const struct growing *growing)
{
	uint32_t count = growing_entries(growing, growing_members(growing));

	for (uint32_t n = 0; n < count; n++)
		if (word_location(entry_word(growing, n)) >= growing->shape->locations ||
		    word_page(entry_word(growing, n)) >= growing->shape->segment_pages)
			return false;
	return true;
}

bool growing_is_sound(const struct growing *growing)
{
	return get_le32(growing->nvram + GROWING_MAGIC_AT) == GROWING_MAGIC &&
	       get_le32(growing->nvram + GROWING_VERSION_AT) >= RIBBON_VERSION_OLDEST &&
	       get_le32(growing->nvram + GROWING_VERSION_AT) <= RIBBON_VERSION &&
	       get_le32(growing->nvram + GROWING_ROW_AT) == growing->row &&
	       growing_members(growing) <= RIBBON_MEMBERS && ends_make_sense(growing) &&
	       entries_make_sense(growing);
}

/* ---- growing ---- */

bool growing_is_full(const struct growing *growing)
{
	uint32_t members = growing_members(growing);

	return members >= ribbon_members(growing->row, growing_number(growing)) ||
	       growing_entries(growing, members) + growing->shape->segment_entries >
		       growing->shape->group_entries;
}

void growing_write(struct growing *growing, const struct tag_entry *entries, uint32_t count,
		   const struct group_member *member)
{
	uint32_t number = growing_members(growing), first = growing_entries(growing, number);
	uint8_t *facts = member_at(growing, number);

	assert(!growing_is_full(growing));
	/* It may have begun with an older program. */
	put_le32(growing->nvram + GROWING_VERSION_AT, RIBBON_VERSION);
	count += group_member_runs(member);
	memset(facts, 0, GROWING_MEMBER_BYTES);
	group_put_member(facts, member);
	put_le32(facts + GROWING_END_AT, first + count);
	put_le32(facts + GROWING_APPENDED_AT, appended_bytes(growing, number));
	for (uint32_t n = 0; n < count; n++) {
		put_le32(entry_at(growing, first + n), entries[n].tag);
		put_le16(entry_at(growing, first + n) + 4, (uint16_t)entries[n].location);
	}
	growing->written = sum_member(growing, number);
}

void growing_commit(struct growing *growing)
{
	uint32_t members = growing_members(growing), number = growing_number(growing);
	uint64_t live = growing_live(growing);
	uint64_t change = growing->written ^ sum_header(number, members, live);

	live |= UINT64_C(1) << members;
	/* The bit counts only when the member does. */
	nvram_store64(live_word(growing), live);
	change ^= sum_header(number, members + 1, live);
	store_header(growing, GROWING_MEMBERS_AT, members + 1, get_le64(growing->sum) ^ change);
}

void growing_take_out(struct growing *growing, uint32_t member)
{
	uint64_t live = growing_live(growing), left = live & ~(UINT64_C(1) << member);

	assert(left != live);
	sum_begin(growing->sum, sum_word(SUM_LIVE, live) ^ sum_word(SUM_LIVE, left));
	nvram_store64(live_word(growing), left);
	sum_end(growing->sum);
}

/* ---- what is kept with members ---- */

/* Bytes behind the entries of so many members. */
static uint64_t room_behind(const struct growing *growing, uint32_t members)
{
	return ((uint64_t)growing->shape->group_entries - growing_entries(growing, members)) *
	       GROWING_ENTRY_BYTES;
}

static uint8_t *appended_at(const struct growing *growing, uint32_t member)
{
	return growing->nvram + growing_bytes(growing->shape) - appended_bytes(growing, member + 1);
}

/* A power loss of the host may bring back bytes of another member, or of this one as it was. */
static uint32_t appended_crc(const struct growing *growing, uint32_t member, const uint8_t *bytes,
			     uint32_t count)
{
	uint8_t sum[sizeof(uint64_t)];

	put_le64(sum, sum_member(growing, member));
	return crc32c(crc32c(0, sum, sizeof(sum)), bytes, count);
}

void growing_append(struct growing *growing, const uint8_t *bytes, uint32_t count)
{
	uint32_t member = growing_members(growing);
	uint64_t all = (uint64_t)appended_bytes(growing, member) + APPENDED_CRC_BYTES + count;
	uint8_t *at;

	if (all > room_behind(growing, member + 1))
		return;
	put_le32(member_at(growing, member) + GROWING_APPENDED_AT, (uint32_t)all);
	at = appended_at(growing, member);
	memcpy(at + APPENDED_CRC_BYTES, bytes, count);
	put_le32(at, appended_crc(growing, member, bytes, count));
	growing->written = sum_member(growing, member);
}

const uint8_t *growing_appended(const struct growing *growing, uint32_t member, uint32_t *count)
{
	uint32_t before = appended_bytes(growing, member);
	uint32_t all = appended_bytes(growing, member + 1);
	const uint8_t *at, *bytes;
	uint32_t length;

	*count = 0;
	if (all < before || all - before < APPENDED_CRC_BYTES ||
	    all > room_behind(growing, growing_members(growing)))
		return NULL;
	at = appended_at(growing, member);
	bytes = at + APPENDED_CRC_BYTES;
	length = all - before - APPENDED_CRC_BYTES;
	if (get_le32(at) != appended_crc(growing, member, bytes, length))
		return NULL;
	*count = length;
	return bytes;
}

/* ---- reading ---- */

void growing_read_member(const struct growing *growing, uint32_t member, struct group_member *facts)
{
	group_get_member(member_at(growing, member), facts);
}

uint32_t growing_list(const struct growing *growing, uint32_t from, uint32_t to, uint32_t segment,
		      enum growing_locations locations, struct tag_entry *entries)
{
	struct tag_entry *entry = entries;

	for (uint32_t member = from; member < to; member++) {
		uint32_t end = keys_end(growing, member);

		for (uint32_t n = growing_entries(growing, member); n < end; n++) {
			uint32_t word = entry_word(growing, n);

			*entry++ = (struct tag_entry){
				.tag = get_le32(entry_at(growing, n)),
				.segment = segment + member - from,
				.location = locations == GROWING_PAGES ? word_page(word)
								       : word_location(word),
			};
		}
	}
	return (uint32_t)(entry - entries);
}

const uint8_t *growing_run_tags(const struct growing *growing, uint32_t member)
{
	return entry_at(growing, keys_end(growing, member));
}
