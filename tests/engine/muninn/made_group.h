/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A group of the ribbon index with what it was made from. */
#ifndef MUNINN_TESTS_ENGINE_MUNINN_MADE_GROUP_H
#define MUNINN_TESTS_ENGINE_MUNINN_MADE_GROUP_H

#include "engine/muninn/index/ribbon/group.h"

struct made {
	struct group_member members[GROUP_SEGMENTS];
	struct tag_entry *entries;
	struct group_plan plan;
	uint8_t *image;
	uint64_t length;
	struct group group;
	bool with_runs; /* some members have them */
};

/* The tag of the first page of runs; each other page has the next one. */
enum { FIRST_RUN_TAG = 0x61626364 };

/* What member `n` is. */
struct group_member made_member(uint32_t n);

/* Makes the group of the plan and the entries that are there already. */
void made_build(struct made *made);

/*
 * The same of `count` entries at random. Each is of one of `tags` tags. A key has one head in a
 * segment, so each tag comes up to once in a member, unless two keys share it.
 */
void made_at_random(struct made *made, uint32_t members, uint32_t count, uint32_t tags,
		    uint32_t locations, uint64_t seed);

/* Frees entries and image. */
void made_end(struct made *made);

#endif
