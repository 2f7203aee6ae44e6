/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A complete group of the ribbon index: up to GROUP_SEGMENTS sealed segments of a row that follow
 * each other in age, and one ribbon that says in which of them the keys are, and where.
 *
 * A tag that has several entries has a number for each, from its newest on: the ribbon maps (tag,
 * number) to member and location. So the newest entry costs one question. Older ones are had by
 * counting up, never by halving: false hits and failed entries make the numbers no sorted list.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_GROUP_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_GROUP_H

#include "common/bytes.h"
#include "engine/muninn/format.h"
#include "engine/muninn/index/ribbon/band.h"
#include "engine/muninn/index/ribbon/exact.h"

/* A segment in a group. */
struct group_member {
	uint32_t segment;
	uint32_t records;
	/*
	 * No candidates: its first pages, in which the records of runs are. Of a segment without
	 * runs the last ones, whose keys have an entry for each page; older programs made these.
	 */
	uint32_t run_pages;
	uint64_t serial;
	uint64_t first_sequence, last_sequence;
	uint32_t record_bytes;
	bool has_runs;
	bool by_candidates; /* its records were arranged, and keys have candidates in it */
	bool is_ordered;    /* none of its records was moved */
};

/* How many pages have a tag in the image. */
static inline uint32_t group_member_runs(const struct group_member *member)
{
	return member->has_runs ? member->run_pages : 0;
}

/* Its bytes, MEMBER_BYTES of them. */
void group_put_member(uint8_t *at, const struct group_member *member);
void group_get_member(const uint8_t *at, struct group_member *facts);

/* ---- building ---- */

struct group_plan {
	uint32_t row, number;
	uint32_t joins;            /* numbers whose groups it takes the place of; 0: none */
	uint32_t fingerprint_bits; /* 1 .. BAND_FINGERPRINT_MAX */
	uint32_t locations;        /* 2 .. MUNINN_SEGMENT_PAGES_MAX: all locations are below that */
	const struct group_member *members; /* the oldest first */
	uint32_t member_count;              /* 1 .. GROUP_SEGMENTS */
	const struct tag_entry *entries;    /* in any order; `segment` is the member's number */
	uint32_t entry_count;
	/*
	 * Those that the ribbon shall not have, because their locations are no such numbers. They
	 * are among the failed ones.
	 */
	const struct tag_entry *apart;
	uint32_t apart_count;
	const uint32_t *run_tags; /* of all pages of runs, the oldest member first */
	uint64_t tagged_max;      /* no tags in an image that would be longer with them */
};

/* Memory to build from, for groups of up to `entries_max`. NULL: out of memory. */
struct group_builder;
struct group_builder *group_builder_create(uint32_t entries_max);
void group_builder_destroy(struct group_builder *builder);
uint64_t group_builder_bytes(uint32_t entries_max);

/* The image of a group, on the heap. Bytes of the largest image that so many entries can have. */
int group_build(struct group_builder *builder, const struct group_plan *plan, uint8_t **image,
		uint64_t *length);
uint64_t group_image_bytes_max(uint32_t members, uint32_t entries, uint32_t columns);

/* Bits that numbers below `values` have. */
static inline uint32_t bits_for(uint32_t values)
{
	uint32_t bits = 0;

	while (UINT64_C(1) << bits < values)
		bits++;
	return bits;
}

/* A failed entry's bytes, FAILED_BYTES of them; and the checksum of an image without its tags. */
void group_put_failed_entry(uint8_t *at, const struct tag_entry *entry);
void group_put_crc(uint8_t *image, uint64_t length);

/*
 * Puts `count` bytes behind what a whole image on the heap has in front of its tags, where it has
 * none yet, and covers them by the checksum. Without memory it stays as it was.
 */
void group_append(uint8_t **image, uint64_t *length, const uint8_t *bytes, uint32_t count);

/* ---- a built group ---- */

struct group {
	const uint8_t *image;
	uint32_t row, number, joins;
	uint32_t members;
	uint32_t entries;                  /* all of them */
	uint32_t failed;                   /* those that are in the image only, not in the ribbon */
	uint32_t locations, location_bits; /* numbers below the first have as many bits */
	uint32_t appended;                 /* bytes behind the failed entries */
	uint32_t tag_bytes;                /* of tags and their checksum, behind these */
	uint64_t kept; /* bytes of the image that look-ups need: up to the failed entries */
	struct band band;
};

/* Bytes of the whole image, and of it without its tags. */
uint64_t group_whole_bytes(const struct group *group);
uint64_t group_bytes_before_tags(const struct group *group);

/*
 * Takes up an image that outlives the group. False: it is none, or damaged. `length` may leave out
 * the tags, or be `kept` of an image that was found intact before. Whether it is intact is known
 * without its tags, which have a checksum of their own.
 */
bool group_attach(struct group *group, const uint8_t *image, uint64_t length);
bool group_is_intact(const struct group *group, uint64_t length);
bool group_has_intact_tags(const struct group *group, uint64_t length);

/*
 * Copies what look-ups need of a group to memory of its own at a cache line, which it returns, and
 * takes that up. NULL: out of memory.
 */
uint8_t *group_keep(const struct group *group, struct group *kept);

/* Its image is elsewhere now. */
void group_move(struct group *group, const uint8_t *image);

void group_read_member(const struct group *group, uint32_t member, struct group_member *facts);

/* The tags of a member's runs, as in the image, RUN_TAG_BYTES for each of its pages of these. */
const uint8_t *group_run_tags(const struct group *group, uint32_t member);

/* The n-th failed entry, from 0, while the whole image is there. `segment` is the member. */
struct tag_entry group_failed_entry(const struct group *group, uint32_t n);

/*
 * All entries of a whole image, group->entries of them: those that the ribbon could have taken, by
 * tag, then others. `segment` is the member, locations are numbers below group->locations, or
 * beyond them as failed ones are. -EINVAL: the image has no tags, or not those of its ribbon.
 * -ENOMEM.
 */
int group_list(const struct group *group, uint64_t length, struct tag_entry *entries);

/* Whether all failed entries, of a whole image, name members, and locations below a number. */
bool group_entries_make_sense(const struct group *group, uint32_t locations);

/* ---- asking ---- */

/* The n-th newest entry of a tag, from 0, or a false hit. False: there is none. */
bool group_find(const struct group *group, uint32_t tag, uint32_t number, struct tag_entry *entry);

/* Goes through the entries that the ribbon has of a tag, newest first. Begins with tag and zeros.
 */
struct group_walk {
	uint32_t tag;
	uint32_t number; /* to be asked for next */
	bool missed;     /* the one before it was not there */
	bool has_failed; /* the tag has failed entries in this group, so that more may follow */
};

/* The next entry. False: there are no more. Some that it finds are false. */
bool group_next(const struct group *group, struct group_walk *walk, struct tag_entry *entry);

void group_prefetch(const struct group *group, uint32_t tag);

#endif
