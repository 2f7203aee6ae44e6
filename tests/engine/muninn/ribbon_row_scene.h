/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What tests of a row of the ribbon index stand on: a row, and beside it a list of what was sealed
 * into it. All depends on the seed alone.
 */
#ifndef MUNINN_TESTS_ENGINE_MUNINN_RIBBON_ROW_SCENE_H
#define MUNINN_TESTS_ENGINE_MUNINN_RIBBON_ROW_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/muninn/index/ribbon/ribbon_row.h"

enum {
	PAGES = 16, /* of a segment */
	KEYS = 3000,
	SEGMENT_KEYS = 200,
	GROUPS_MAX = 40,
};

/* A segment as the list has it. */
struct sealed {
	uint32_t segment, group, member;
	uint64_t first_sequence, last_sequence;
	bool live;
	uint32_t count;
	uint16_t keys[2 * SEGMENT_KEYS], pages[2 * SEGMENT_KEYS];
	uint8_t candidates[2 * SEGMENT_KEYS];
	uint32_t run_pages; /* the first ones: all but the newest record of each key */
	uint32_t run_tags[PAGES];
};

struct scene {
	uint64_t random, sequence;
	struct ribbon_shape shape;
	struct ribbon_row row;
	uint8_t *nvram;
	uint8_t sum[16];
	struct active *active;
	struct sealed *sealed; /* in the order of age */
	uint32_t count, next_segment;
	bool drops;        /* groups, after a member has been written, before it counts */
	bool renews;       /* images of groups, at that time */
	bool arranges;     /* records of a segment, when it is sealed */
	bool lacks_memory; /* for a section, now and then */
	uint32_t hot;      /* one put of so many is of one of a few keys */
	uint32_t lost;     /* one of so many that are arranged finds no candidate */
	uint32_t joined;   /* groups that have given their place to one */
	uint32_t by_candidates, by_pages; /* groups whose ribbons have these */
	struct {
		uint32_t number;
		uint8_t *bytes; /* on flash; NULL: the group is gone */
		uint64_t length;
		uint8_t live[8], other_live[8];
	} images[GROUPS_MAX];
	uint32_t image_count;
};

/* A row without a segment; scene_end frees what the scene has. */
void scene_begin(struct scene *scene, uint64_t seed);
void scene_end(struct scene *scene);

struct key_hash scene_hash(uint32_t key);

/* ---- what happens to the row ---- */

/* Seals a segment of some keys into the growing group, which must not be full. */
void scene_seal(struct scene *scene);
/* Seals `count` segments, completing groups as they are full. */
void scene_seal_many(struct scene *scene, uint32_t count);
/* Completes the growing group: its image goes to flash, and to the row. */
void scene_complete(struct scene *scene);
/*
 * Writes what the active segment has, by candidates and with runs where `sealed` has any; NULL: by
 * pages. The member does not count yet.
 */
void scene_write_member(struct scene *scene, const struct sealed *sealed,
			const struct group_member *member);
/* Some group goes, if there is one, with all its segments. */
void scene_drop_group(struct scene *scene);
/* Some groups that follow each other give their place to one, if what is left of them fits. */
void scene_join(struct scene *scene);
/* Takes some segment out, if it is not out already. */
void scene_take_out(struct scene *scene);
/* Opens the row again from NVRAM and the images that are there, in any order. */
void scene_reopen(struct scene *scene);

/* ---- what must hold ---- */

bool scene_sum_is_right(const struct scene *scene);

/* Where a complete group is in the row, or would be. */
uint32_t scene_group_place(const struct scene *scene, uint32_t number);

/*
 * A search names all pages that have the key, from the newest segment on, and in a segment the one
 * of the newest record first. Returns how many segments it names in vain.
 */
uint32_t scene_check_search(const struct scene *scene, uint32_t key, uint64_t bound,
			    uint64_t after);
/* Checks searches for `count` keys, within some bounds. */
void scene_check_searches(struct scene *scene, uint32_t count);

#endif
