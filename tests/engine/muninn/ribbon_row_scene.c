/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A row of the ribbon index, and the list of what was sealed into it. */
#include "tests/engine/muninn/ribbon_row_scene.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/muninn/index/ribbon/group_join.h"
#include "engine/muninn/index/ribbon/ribbon_hash.h"
#include "engine/muninn/index/ribbon/ribbon_search.h"
#include "engine/muninn/nvram.h"
#include "tests/engine/muninn/ribbon_random.h"

enum {
	ROW = 3,
	PAGE_BYTES = 4096,
	RECORD_BYTES = 256, /* expected: 256 entries a segment */
	SEALED_MAX = 400,
};

struct key_hash scene_hash(uint32_t key)
{
	const struct record_key record = { .partition = 1,
					   .identifier = 0x10000 + key / 4,
					   .piece = key % 4 };

	return key_hash(&record, PAGES);
}

void scene_begin(struct scene *scene, uint64_t seed)
{
	*scene = (struct scene){
		.random = seed,
		.shape = ribbon_shape_choose(PAGE_BYTES, PAGES, RECORD_BYTES),
		.sealed = calloc(SEALED_MAX, sizeof(struct sealed)),
		.next_segment = 1000,
		.hot = 3,
		.lost = 16,
	};
	scene->nvram = calloc(1, growing_bytes(&scene->shape));
	scene->active = active_create(&scene->shape);
	assert_true(scene->sealed && scene->nvram && scene->active);
	assert_int_equal(
		ribbon_row_create(&scene->row, &scene->shape, ROW, scene->nvram, scene->sum), 0);
	ribbon_row_begin(&scene->row, 0);
}

void scene_end(struct scene *scene)
{
	ribbon_row_destroy(&scene->row);
	for (uint32_t n = 0; n < scene->image_count; n++)
		free(scene->images[n].bytes);
	active_destroy(scene->active);
	free(scene->sealed);
	free(scene->nvram);
}

/* ---- what happens to the row ---- */

/* Whether no later record of a segment has the key of this one. */
static bool is_newest(const struct sealed *sealed, uint32_t record)
{
	for (uint32_t other = record + 1; other < sealed->count; other++)
		if (sealed->keys[other] == sealed->keys[record])
			return false;
	return true;
}

/* Whether any other record of a segment has the key of this one. */
static bool is_alone(const struct sealed *sealed, uint32_t record)
{
	for (uint32_t other = 0; other < record; other++)
		if (sealed->keys[other] == sealed->keys[record])
			return false;
	return is_newest(sealed, record);
}

/* An entry for each key, and for each page of runs. */
static uint32_t list_with_runs(const struct sealed *sealed, struct tag_entry *entries)
{
	uint32_t keys = 0;

	for (uint32_t n = 0; n < sealed->count; n++) {
		struct key_hash hash = scene_hash(sealed->keys[n]);

		if (is_newest(sealed, n))
			entries[keys++] = (struct tag_entry){
				.tag = tag_of(&hash),
				.location = location_word(sealed->pages[n], sealed->candidates[n]),
			};
	}
	for (uint32_t page = 0; page < sealed->run_pages; page++)
		entries[keys + page] =
			(struct tag_entry){ .tag = sealed->run_tags[page],
					    .location = location_word(page, PLACEMENT_NONE) };
	return keys;
}

/* An entry for each page of a key. */
static uint32_t list_pages(const struct scene *scene, const struct sealed *sealed,
			   struct tag_entry *entries)
{
	uint32_t at = 0;

	for (uint32_t n = 0; active_entry(scene->active, &at, &entries[n]); n++) {
		entries[n].location = location_word(entries[n].location, PLACEMENT_NONE);
		for (uint32_t record = 0; sealed && record < sealed->count; record++) {
			struct key_hash hash = scene_hash(sealed->keys[record]);

			if (sealed->candidates[record] != PLACEMENT_NONE &&
			    tag_of(&hash) == entries[n].tag)
				entries[n].location = location_word(sealed->pages[record],
								    sealed->candidates[record]);
		}
	}
	return active_count(scene->active);
}

void scene_write_member(struct scene *scene, const struct sealed *sealed,
			const struct group_member *member)
{
	struct tag_entry *entries =
		calloc(active_count(scene->active) + PAGES + 1, sizeof(*entries));
	uint32_t count = member->has_runs ? list_with_runs(sealed, entries)
					  : list_pages(scene, sealed, entries);

	assert_int_equal(ribbon_row_write(&scene->row, entries, count, member), 0);
	free(entries);
}

/* All but the newest record of each key, by tag, fill the first pages evenly. */
static void make_runs(struct scene *scene, struct sealed *sealed)
{
	uint64_t words[2 * SEGMENT_KEYS];
	uint32_t count = 0;

	for (uint32_t n = 0; n < sealed->count; n++) {
		struct key_hash hash = scene_hash(sealed->keys[n]);
		uint64_t word = (uint64_t)tag_of(&hash) << 32 | n;
		uint32_t at = count;

		if (is_newest(sealed, n))
			continue;
		for (; at > 0 && words[at - 1] > word; at--)
			words[at] = words[at - 1];
		words[at] = word;
		count++;
	}
	sealed->run_pages = (uint32_t)min_u64(1 + below(&scene->random, PAGES - 2), count);
	for (uint32_t n = count; n-- > 0;) {
		uint32_t page = n * sealed->run_pages / count;

		sealed->pages[(uint32_t)words[n]] = (uint16_t)page;
		sealed->run_tags[page] = (uint32_t)(words[n] >> 32);
	}
}

/*
 * Newest records go to one of their candidates, but for some. Without runs only those do that are
 * the only ones of their key.
 */
static void arrange(struct scene *scene, struct sealed *sealed, struct group_member *member)
{
	uint32_t first = 0;

	if (scene->count % 3)
		make_runs(scene, sealed);
	member->by_candidates = true;
	member->has_runs = sealed->run_pages > 0;
	member->run_pages = sealed->run_pages;
	/* Members of older devices may have no page before their tail. */
	if (!member->has_runs)
		member->run_pages = scene->count % 16 == 5 ? PAGES : below(&scene->random, 4);
	else
		first = member->run_pages;
	for (uint32_t n = 0; n < sealed->count; n++) {
		struct key_hash hash = scene_hash(sealed->keys[n]);
		bool is_lost = below(&scene->random, scene->lost) == 0;

		sealed->candidates[n] = PLACEMENT_NONE;
		if (member->has_runs ? !is_newest(sealed, n)
				     : !is_alone(sealed, n) || member->run_pages == PAGES)
			continue;
		if (is_lost) {
			if (member->has_runs)
				sealed->pages[n] = PAGES - 1;
			continue;
		}
		sealed->candidates[n] = (uint8_t)below(&scene->random, PLACEMENT_CANDIDATES);
		sealed->pages[n] = (uint16_t)(first + candidate_page(&hash, member->serial,
								     sealed->candidates[n],
								     PAGES - member->run_pages));
	}
}

/* Fills the active segment as a buffer does whose pages have space for a few records. */
static void put_keys(struct scene *scene, struct sealed *sealed)
{
	uint32_t space[PAGES];

	for (uint32_t page = 0; page < PAGES; page++)
		space[page] = 2 * SEGMENT_KEYS / PAGES + below(&scene->random, 5);
	active_begin(scene->active);
	sealed->count = 0;
	for (uint32_t n = 0; n < SEGMENT_KEYS; n++) {
		/* Some keys again and again. */
		uint32_t key = below(&scene->random, below(&scene->random, scene->hot) ? KEYS : 5);
		struct key_hash hash = scene_hash(key);
		uint32_t page = active_first(scene->active, &hash), lowest = page;
		uint32_t size = 1 + below(&scene->random, 3);

		while (active_next(scene->active, &hash, &page) && space[page] < size)
			page++;
		if (page >= PAGES)
			continue;
		assert_true(page >= lowest);
		/* Places of a key are in the order of its records. */
		for (uint32_t before = 0; before < sealed->count; before++)
			assert_true(sealed->keys[before] != key || sealed->pages[before] <= page);
		space[page] -= size;
		active_note(scene->active, &hash, page);
		sealed->keys[sealed->count] = (uint16_t)key;
		sealed->pages[sealed->count++] = (uint16_t)page;
	}
}

bool scene_sum_is_right(const struct scene *scene)
{
	return sum_is_settled(scene->sum) && sum_fits(scene->sum, growing_sum(&scene->row.growing));
}

uint32_t scene_group_place(const struct scene *scene, uint32_t number)
{
	uint32_t place = 0;

	while (place < scene->row.count && scene->row.complete[place].group.number < number)
		place++;
	return place;
}

/* Replaces one group, if it is there. */
static void replace(struct scene *scene, uint32_t number, const struct ribbon_image *by)
{
	assert_int_equal(ribbon_row_replace(&scene->row, scene_group_place(scene, number),
					    scene_group_place(scene, number + 1), by),
			 0);
}

void scene_drop_group(struct scene *scene)
{
	uint32_t n = scene->image_count ? below(&scene->random, scene->image_count) : 0;

	if (!scene->image_count || !scene->images[n].bytes)
		return;
	for (uint32_t s = 0; s < scene->count; s++)
		if (scene->sealed[s].group == scene->images[n].number)
			scene->sealed[s].live = false;
	free(scene->images[n].bytes);
	scene->images[n].bytes = NULL;
	replace(scene, scene->images[n].number, NULL);
}

/* A group takes its own image again, as one that has been written anew, with another live word. */
static void renew_group(struct scene *scene, uint32_t n)
{
	struct ribbon_row *row = &scene->row;
	uint32_t number = scene->images[n].number, place = scene_group_place(scene, number);
	struct ribbon_image copy = { .live = scene->images[n].other_live };
	const uint8_t *live = row->complete[place].live;

	assert_int_equal(ribbon_row_copy_image(row, place, &copy.bytes, &copy.length), 0);
	if (live == copy.live)
		copy.live = scene->images[n].live;
	memcpy(copy.live, live, 8);
	replace(scene, number, &copy);
	assert_ptr_equal(row->complete[place].live, copy.live);
}

void scene_seal(struct scene *scene)
{
	struct sealed *sealed = &scene->sealed[scene->count];
	struct group_member member;

	*sealed = (struct sealed){
		.segment = scene->next_segment++,
		.group = growing_number(&scene->row.growing),
		.member = growing_members(&scene->row.growing),
		.first_sequence = scene->sequence + 1,
		.last_sequence = scene->sequence + 100,
		.live = true,
	};
	scene->sequence += 100;
	put_keys(scene, sealed);
	member = (struct group_member){
		.segment = sealed->segment,
		.records = sealed->count,
		.serial = sealed->segment,
		.first_sequence = sealed->first_sequence,
		.last_sequence = sealed->last_sequence,
		.is_ordered = true,
	};
	if (scene->arranges)
		arrange(scene, sealed, &member);
	if (!scene->lacks_memory || below(&scene->random, 3))
		ribbon_row_condense(&scene->row);
	scene_write_member(scene, scene->arranges ? sealed : NULL, &member);
	/* As long as it does not count nothing has changed. */
	assert_true(scene_sum_is_right(scene));
	if (scene->drops && below(&scene->random, 16) == 0)
		scene_drop_group(scene);
	for (uint32_t n = 0; scene->renews && n < scene->image_count; n++)
		renew_group(scene, n);
	ribbon_row_commit(&scene->row);
	assert_true(scene_sum_is_right(scene));
	scene->count++;
}

void scene_complete(struct scene *scene)
{
	uint32_t number = growing_number(&scene->row.growing), n = scene->image_count++;
	struct ribbon_image image = { .live = scene->images[n].live };

	assert_int_equal(ribbon_row_make_image(&scene->row, &image.bytes, &image.length), 0);
	put_le64(image.live, growing_live(&scene->row.growing));
	assert_int_equal(ribbon_row_check(&scene->row, &image, number), 0);
	assert_int_equal(ribbon_row_check(&scene->row, &image, number + 1), -EINVAL);
	scene->images[n].number = number;
	scene->images[n].length = image.length;
	scene->images[n].bytes = malloc(image.length);
	memcpy(scene->images[n].bytes, image.bytes, image.length);
	replace(scene, number, &image);
	if (scene->row.complete[scene_group_place(scene, number)].group.locations ==
	    PLACEMENT_CANDIDATES)
		scene->by_candidates++;
	else
		scene->by_pages++;
	ribbon_row_begin(&scene->row, number + 1);
	assert_true(scene_sum_is_right(scene));
}

/* Which image is that of a complete group. */
static uint32_t image_of(const struct scene *scene, uint32_t number)
{
	uint32_t n = 0;

	while (scene->images[n].number != number)
		n++;
	assert_non_null(scene->images[n].bytes);
	return n;
}

/* Segments that are left of a group are the next members of another one. */
static void renumber(struct scene *scene, uint32_t from, uint32_t to, uint32_t *member)
{
	for (uint32_t n = 0; n < scene->count; n++) {
		if (scene->sealed[n].group != from)
			continue;
		scene->sealed[n].group = scene->sealed[n].live ? to : UINT32_MAX;
		if (scene->sealed[n].live)
			scene->sealed[n].member = (*member)++;
	}
}

void scene_join(struct scene *scene)
{
	struct ribbon_row *row = &scene->row;
	uint32_t from = row->count ? below(&scene->random, row->count) : 0, count = 0, left = 0;
	struct group_part parts[GROUP_PARTS_MAX];
	uint32_t images[GROUP_PARTS_MAX], most = 1 + below(&scene->random, 4);
	struct ribbon_image joined;

	for (; count < most && from + count < row->count; count++) {
		const struct complete *complete = &row->complete[from + count];
		uint64_t live = get_le64(complete->live);

		left += (uint32_t)__builtin_popcountll(live);
		if (left > RIBBON_MEMBERS ||
		    complete->group.locations != row->complete[from].group.locations)
			break;
		images[count] = image_of(scene, complete->group.number);
		parts[count] = (struct group_part){ .image = scene->images[images[count]].bytes,
						    .length = scene->images[images[count]].length,
						    .live = live };
	}
	left = 0;
	for (uint32_t n = 0; n < count; n++)
		left += (uint32_t)__builtin_popcountll(parts[n].live);
	if (!left)
		return;
	assert_int_equal(group_join(&scene->shape, parts, count, &joined.bytes, &joined.length), 0);
	left = 0;
	for (uint32_t n = 0; n < count; n++) {
		renumber(scene, scene->images[images[n]].number, scene->images[images[0]].number,
			 &left);
		free(scene->images[images[n]].bytes);
		scene->images[images[n]].bytes = NULL;
	}
	scene->images[images[0]].bytes = malloc(joined.length);
	scene->images[images[0]].length = joined.length;
	memcpy(scene->images[images[0]].bytes, joined.bytes, joined.length);
	joined.live = scene->images[images[0]].live;
	put_le64(joined.live, (UINT64_C(1) << left) - 1);
	assert_int_equal(ribbon_row_check(row, &joined, scene->images[images[0]].number), 0);
	assert_int_equal(ribbon_row_replace(row, from, from + count, &joined), 0);
	scene->joined += count;
}

void scene_take_out(struct scene *scene)
{
	struct sealed *sealed = &scene->sealed[below(&scene->random, scene->count)];

	if (!sealed->live)
		return;
	sealed->live = false;
	if (sealed->group == growing_number(&scene->row.growing)) {
		growing_take_out(&scene->row.growing, sealed->member);
		assert_true(scene_sum_is_right(scene));
		return;
	}
	uint8_t *live = scene->row.complete[scene_group_place(scene, sealed->group)].live;

	put_le64(live, get_le64(live) & ~(UINT64_C(1) << sealed->member));
}

void scene_reopen(struct scene *scene)
{
	uint32_t turn = scene->image_count ? below(&scene->random, scene->image_count) : 0;

	ribbon_row_destroy(&scene->row);
	assert_int_equal(
		ribbon_row_create(&scene->row, &scene->shape, ROW, scene->nvram, scene->sum), 0);
	assert_int_equal(ribbon_row_attach(&scene->row), 0);
	for (uint32_t i = 0; i < scene->image_count; i++) {
		uint32_t n = (i + turn) % scene->image_count;
		struct ribbon_image image = { .length = scene->images[n].length,
					      .live = scene->images[n].live };

		if (!scene->images[n].bytes)
			continue;
		image.bytes = malloc(image.length);
		memcpy(image.bytes, scene->images[n].bytes, image.length);
		assert_int_equal(ribbon_row_check(&scene->row, &image, scene->images[n].number), 0);
		replace(scene, scene->images[n].number, &image);
	}
	assert_int_equal(ribbon_row_finish(&scene->row), 0);
}

void scene_seal_many(struct scene *scene, uint32_t count)
{
	for (uint32_t n = 0; n < count; n++) {
		if (growing_is_full(&scene->row.growing))
			scene_complete(scene);
		scene_seal(scene);
	}
}

/* ---- what must hold ---- */

static bool is_wanted(const struct sealed *sealed, uint64_t bound, uint64_t after)
{
	return sealed->live && sealed->first_sequence <= bound && sealed->last_sequence > after;
}

/* Which pages of a segment have a key. Returns that of its newest record; PAGES: there is none. */
static uint32_t has_key(const struct sealed *sealed, uint32_t key, bool *pages)
{
	uint32_t newest = PAGES;

	memset(pages, false, PAGES * sizeof(*pages));
	for (uint32_t n = 0; n < sealed->count; n++)
		if (sealed->keys[n] == key)
			pages[newest = sealed->pages[n]] = true;
	return newest;
}

static uint32_t place_of(const struct scene *scene, uint32_t segment)
{
	for (uint32_t n = 0; n < scene->count; n++)
		if (scene->sealed[n].segment == segment)
			return n;
	fail_msg("segment %u is none", segment);
	return 0;
}

uint32_t scene_check_search(const struct scene *scene, uint32_t key, uint64_t bound, uint64_t after)
{
	struct key_hash hash = scene_hash(key);
	uint32_t segment, next = scene->count, vain = 0;
	struct ribbon_search search;
	bool pages[PAGES];

	ribbon_search_begin(&search, &scene->row, &hash, bound);
	while (ribbon_search_segment(&search, after, &segment)) {
		uint32_t at = place_of(scene, segment), page, last = PAGES, newest;

		assert_true(at < next && is_wanted(&scene->sealed[at], bound, after));
		while (--next > at)
			assert_false(is_wanted(&scene->sealed[next], bound, after) &&
				     has_key(&scene->sealed[next], key, pages) != PAGES);
		newest = has_key(&scene->sealed[at], key, pages);
		vain += newest == PAGES;
		while (ribbon_search_page(&search, &page)) {
			/* A false hit may name any candidate. */
			assert_true(page < last || scene->arranges);
			assert_true(!pages[page] || newest == PAGES || page == newest);
			if (pages[page]) {
				newest = PAGES;
				if (ribbon_search_has_run(&search))
					ribbon_search_run(&search);
			}
			last = page;
			pages[page] = false;
		}
		for (page = 0; page < PAGES; page++)
			assert_false(pages[page]);
	}
	while (next-- > 0)
		assert_false(is_wanted(&scene->sealed[next], bound, after) &&
			     has_key(&scene->sealed[next], key, pages) != PAGES);
	return vain;
}

void scene_check_searches(struct scene *scene, uint32_t count)
{
	for (uint32_t n = 0; n < count; n++) {
		uint32_t key = below(&scene->random, n % 4 ? KEYS : 8);
		uint64_t bound = n % 3 ? UINT64_MAX
				       : below(&scene->random, (uint32_t)scene->sequence + 1);
		uint64_t after = n % 5 ? 0 : below(&scene->random, (uint32_t)scene->sequence + 1);

		scene_check_search(scene, key, bound, after);
	}
}
