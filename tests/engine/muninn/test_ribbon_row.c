/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A row of the ribbon index beside a list of what was sealed: growing, completing, replacing,
 * opening again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "engine/muninn/index/ribbon/growing_format.h"
#include "engine/muninn/index/ribbon/ribbon_hash.h"
#include "engine/muninn/index/ribbon/ribbon_search.h"
#include "engine/muninn/nvram.h"
#include "tests/engine/muninn/ribbon_random.h"

enum {
	ROW = 3,
	PAGES = 16,
	PAGE_BYTES = 4096,
	RECORD_BYTES = 256, /* expected: 256 entries a segment */
	KEYS = 3000,
	SEGMENT_KEYS = 200,
	SEALED_MAX = 400,
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
	uint32_t by_candidates, by_pages; /* groups whose ribbons have these */
	struct {
		uint32_t number;
		uint8_t *bytes; /* on flash; NULL: the group is gone */
		uint64_t length;
		uint8_t live[8], other_live[8];
	} images[GROUPS_MAX];
	uint32_t image_count;
};

static struct key_hash hash_of(uint32_t key)
{
	const struct record_key record = { .partition = 1,
					   .identifier = 0x10000 + key / 4,
					   .piece = key % 4 };

	return key_hash(&record, PAGES);
}

static void begin_scene(struct scene *scene, uint64_t seed)
{
	*scene = (struct scene){
		.random = seed,
		.shape = ribbon_shape_choose(PAGE_BYTES, PAGES, RECORD_BYTES),
		.sealed = calloc(SEALED_MAX, sizeof(struct sealed)),
		.next_segment = 1000,
		.hot = 3,
	};
	scene->nvram = calloc(1, growing_bytes(&scene->shape));
	scene->active = active_create(&scene->shape);
	assert_true(scene->sealed && scene->nvram && scene->active);
	assert_int_equal(
		ribbon_row_create(&scene->row, &scene->shape, ROW, scene->nvram, scene->sum), 0);
	ribbon_row_begin(&scene->row, 0);
}

static void end_scene(struct scene *scene)
{
	ribbon_row_destroy(&scene->row);
	for (uint32_t n = 0; n < scene->image_count; n++)
		free(scene->images[n].bytes);
	active_destroy(scene->active);
	free(scene->sealed);
	free(scene->nvram);
}

/* ---- sealing ---- */

/* Writes what the active segment has, by pages, or as `sealed` has it, by candidates. */
static void write_member(struct scene *scene, const struct sealed *sealed,
			 const struct group_member *member)
{
	struct tag_entry *entries = calloc(active_count(scene->active) + 1, sizeof(*entries));
	uint32_t at = 0;

	for (uint32_t n = 0; active_entry(scene->active, &at, &entries[n]); n++) {
		entries[n].location = location_word(entries[n].location, PLACEMENT_NONE);
		for (uint32_t record = 0; sealed && record < sealed->count; record++) {
			struct key_hash hash = hash_of(sealed->keys[record]);

			if (sealed->candidates[record] != PLACEMENT_NONE &&
			    tag_of(&hash) == entries[n].tag)
				entries[n].location = location_word(sealed->pages[record],
								    sealed->candidates[record]);
		}
	}
	assert_int_equal(
		ribbon_row_write(&scene->row, entries, active_count(scene->active), member), 0);
	free(entries);
}

/* Keys that have one record go to one of their candidates, but for some. */
static void arrange(struct scene *scene, struct sealed *sealed, struct group_member *member)
{
	member->by_candidates = true;
	/* Members of older devices may have no page before their tail. */
	member->tail_pages = scene->count % 16 == 5 ? PAGES : below(&scene->random, 4);
	for (uint32_t n = 0; n < sealed->count; n++) {
		struct key_hash hash = hash_of(sealed->keys[n]);
		uint32_t candidate = below(&scene->random, 16), same = 0;

		for (uint32_t other = 0; other < sealed->count; other++)
			same += sealed->keys[other] == sealed->keys[n];
		sealed->candidates[n] = PLACEMENT_NONE;
		if (same > 1 || candidate == 15 || member->tail_pages == PAGES)
			continue;
		sealed->candidates[n] = (uint8_t)(candidate % PLACEMENT_CANDIDATES);
		sealed->pages[n] = (uint16_t)candidate_page(
			&hash, member->serial, sealed->candidates[n], PAGES - member->tail_pages);
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
		struct key_hash hash = hash_of(key);
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

static bool sum_is_right(const struct scene *scene)
{
	return sum_is_settled(scene->sum) && sum_fits(scene->sum, growing_sum(&scene->row.growing));
}

/* Where a complete group is in the row, or would be. */
static uint32_t group_place(const struct scene *scene, uint32_t number)
{
	uint32_t place = 0;

	while (place < scene->row.count && scene->row.complete[place].group.number < number)
		place++;
	return place;
}

/* Replaces one group, if it is there. */
static void replace(struct scene *scene, uint32_t number, const struct ribbon_image *by)
{
	assert_int_equal(ribbon_row_replace(&scene->row, group_place(scene, number),
					    group_place(scene, number + 1), by),
			 0);
}

/* A group goes, with all its segments. */
static void drop_group(struct scene *scene)
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
	uint32_t number = scene->images[n].number, place = group_place(scene, number);
	struct ribbon_image copy = { .live = scene->images[n].other_live };
	const uint8_t *live = row->complete[place].live;

	assert_int_equal(ribbon_row_copy_image(row, place, &copy.bytes, &copy.length), 0);
	if (live == copy.live)
		copy.live = scene->images[n].live;
	memcpy(copy.live, live, 8);
	replace(scene, number, &copy);
	assert_ptr_equal(row->complete[place].live, copy.live);
}

static void seal(struct scene *scene)
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
	write_member(scene, scene->arranges ? sealed : NULL, &member);
	/* As long as it does not count nothing has changed. */
	assert_true(sum_is_right(scene));
	if (scene->drops && below(&scene->random, 16) == 0)
		drop_group(scene);
	for (uint32_t n = 0; scene->renews && n < scene->image_count; n++)
		renew_group(scene, n);
	ribbon_row_commit(&scene->row);
	assert_true(sum_is_right(scene));
	scene->count++;
}

/* Completes the growing group: its image goes to flash, and to the row. */
static void complete(struct scene *scene)
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
	if (scene->row.complete[group_place(scene, number)].group.locations == PLACEMENT_CANDIDATES)
		scene->by_candidates++;
	else
		scene->by_pages++;
	ribbon_row_begin(&scene->row, number + 1);
	assert_true(sum_is_right(scene));
}

static void take_out(struct scene *scene)
{
	struct sealed *sealed = &scene->sealed[below(&scene->random, scene->count)];

	if (!sealed->live)
		return;
	sealed->live = false;
	if (sealed->group == growing_number(&scene->row.growing)) {
		growing_take_out(&scene->row.growing, sealed->member);
		assert_true(sum_is_right(scene));
		return;
	}
	uint8_t *live = scene->row.complete[group_place(scene, sealed->group)].live;

	put_le64(live, get_le64(live) & ~(UINT64_C(1) << sealed->member));
}

/* ---- what must hold ---- */

static bool is_wanted(const struct sealed *sealed, uint64_t bound, uint64_t after)
{
	return sealed->live && sealed->first_sequence <= bound && sealed->last_sequence > after;
}

/* Whether a segment that is wanted has a key on a page. */
static bool has_key(const struct sealed *sealed, uint32_t key, bool *pages)
{
	bool any = false;

	memset(pages, false, PAGES * sizeof(*pages));
	for (uint32_t n = 0; n < sealed->count; n++)
		if (sealed->keys[n] == key) {
			pages[sealed->pages[n]] = true;
			any = true;
		}
	return any;
}

static uint32_t place_of(const struct scene *scene, uint32_t segment)
{
	for (uint32_t n = 0; n < scene->count; n++)
		if (scene->sealed[n].segment == segment)
			return n;
	fail_msg("segment %u is none", segment);
	return 0;
}

/*
 * A search names all pages that have the key, from the newest segment on. Returns how many segments
 * it names in vain.
 */
static uint32_t check_search(const struct scene *scene, uint32_t key, uint64_t bound,
			     uint64_t after)
{
	struct key_hash hash = hash_of(key);
	uint32_t segment, next = scene->count, vain = 0;
	struct ribbon_search search;
	bool pages[PAGES];

	ribbon_search_begin(&search, &scene->row, &hash, bound);
	while (ribbon_search_segment(&search, after, &segment)) {
		uint32_t at = place_of(scene, segment), page, last = PAGES;

		assert_true(at < next && is_wanted(&scene->sealed[at], bound, after));
		while (--next > at)
			assert_false(is_wanted(&scene->sealed[next], bound, after) &&
				     has_key(&scene->sealed[next], key, pages));
		vain += !has_key(&scene->sealed[at], key, pages);
		while (ribbon_search_page(&search, &page)) {
			/* A false hit may name any candidate. */
			assert_true(page < last || scene->arranges);
			last = page;
			pages[page] = false;
		}
		for (page = 0; page < PAGES; page++)
			assert_false(pages[page]);
	}
	while (next-- > 0)
		assert_false(is_wanted(&scene->sealed[next], bound, after) &&
			     has_key(&scene->sealed[next], key, pages));
	return vain;
}

static void check_searches(struct scene *scene, uint32_t count)
{
	for (uint32_t n = 0; n < count; n++) {
		uint32_t key = below(&scene->random, n % 4 ? KEYS : 8);
		uint64_t bound = n % 3 ? UINT64_MAX
				       : below(&scene->random, (uint32_t)scene->sequence + 1);
		uint64_t after = n % 5 ? 0 : below(&scene->random, (uint32_t)scene->sequence + 1);

		check_search(scene, key, bound, after);
	}
}

/* Opens the row again from NVRAM and the images that are there, in any order. */
static void reopen(struct scene *scene)
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

static int compare_failed(const void *a, const void *b)
{
	return memcmp(a, b, FAILED_BYTES);
}

/* The image of each group can be had again: the same, but for the order of its failed entries. */
static void check_copies(const struct scene *scene)
{
	for (uint32_t n = 0; n < scene->image_count; n++) {
		struct ribbon_image copy = { .live = NULL };
		uint32_t number = scene->images[n].number;
		uint8_t *image = scene->images[n].bytes;
		struct group group;

		if (!image)
			continue;
		assert_int_equal(ribbon_row_copy_image(&scene->row, group_place(scene, number),
						       &copy.bytes, &copy.length),
				 0);
		assert_int_equal(copy.length, scene->images[n].length);
		assert_int_equal(ribbon_row_check(&scene->row, &copy, number), 0);
		assert_true(group_attach(&group, image, copy.length));
		qsort(image + group.kept, group.failed, FAILED_BYTES, compare_failed);
		qsort(copy.bytes + group.kept, group.failed, FAILED_BYTES, compare_failed);
		memcpy(image + GROUP_CRC_AT, copy.bytes + GROUP_CRC_AT, 4);
		assert_memory_equal(copy.bytes, image, copy.length);
		free(copy.bytes);
		group_put_crc(image, copy.length);
	}
}

static void test_a_search_names_all_segments_of_a_key_from_the_newest_on(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct scene scene;

		begin_scene(&scene, seed);
		scene.drops = true;
		scene.arranges = seed > 2;
		scene.lacks_memory = seed % 2;
		scene.hot = seed == 4 ? 20 : 3;
		for (uint32_t n = 0; n < 220; n++) {
			if (growing_is_full(&scene.row.growing))
				complete(&scene);
			seal(&scene);
			if (below(&scene.random, 4) == 0)
				take_out(&scene);
			if (below(&scene.random, 60) == 0)
				drop_group(&scene);
			if (below(&scene.random, 20) == 0)
				reopen(&scene);
			check_searches(&scene, 40);
		}
		assert_true(scene.image_count >= 6);
		/* Where most keys have a candidate, ribbons have these. */
		assert_int_equal(seed == 4 ? scene.by_pages : scene.by_candidates, 0);
		check_copies(&scene);
		check_searches(&scene, 3000);
		end_scene(&scene);
	}
}

/* Seals `count` segments, completing groups as they are full. */
static void seal_many(struct scene *scene, uint32_t count)
{
	for (uint32_t n = 0; n < count; n++) {
		if (growing_is_full(&scene->row.growing))
			complete(scene);
		seal(scene);
	}
}

static void test_few_segments_are_named_in_vain(void **state)
{
	uint32_t vain = 0, questions = 20000;
	struct scene scene;

	(void)state;
	begin_scene(&scene, 9);
	seal_many(&scene, 200);
	for (uint32_t n = 0; n < questions; n++)
		vain += check_search(&scene, KEYS + n, UINT64_MAX, 0);
	/* Groups have fingerprints of 8 and 7 bits; what waits for its group is exact. */
	assert_in_range(vain, questions * 3 / 256, questions * scene.row.count * 2 / 256);
	end_scene(&scene);
}

/* The failed entries of complete groups and sections, and those of members that are in none. */
static uint32_t exact_expected(const struct scene *scene)
{
	const struct ribbon_row *row = &scene->row;
	const struct growing *growing = &row->growing;
	uint32_t count = growing_entries(growing, growing_members(growing)) -
			 growing_entries(growing, row->section_count * RIBBON_SECTION_MEMBERS);

	for (uint32_t n = 0; n < row->count; n++)
		count += row->complete[n].group.failed;
	for (uint32_t n = 0; n < row->section_count; n++)
		count += row->sections[n].group.failed;
	return count;
}

static void test_the_exact_table_has_nothing_that_a_ribbon_has(void **state)
{
	struct scene scene;

	(void)state;
	begin_scene(&scene, 4);
	for (uint32_t n = 0; n < 60; n++) {
		if (growing_is_full(&scene.row.growing)) {
			complete(&scene);
			assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
		}
		seal(&scene);
		assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
	}
	/* A group whose segments have all been merged away gets no image. */
	ribbon_row_begin(&scene.row, growing_number(&scene.row.growing) + 1);
	seal(&scene);
	assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
	drop_group(&scene);
	assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
	end_scene(&scene);
}

/* Before a member counts, the exact table has as many members as a section takes, at most. */
static void test_members_wait_in_sections(void **state)
{
	struct scene scene;

	(void)state;
	begin_scene(&scene, 5);
	for (uint32_t n = 0; n < 3 * RIBBON_MEMBERS; n++) {
		uint32_t members;

		if (growing_is_full(&scene.row.growing))
			complete(&scene);
		seal(&scene);
		members = growing_members(&scene.row.growing);
		assert_int_equal(scene.row.section_count, (members - 1) / RIBBON_SECTION_MEMBERS);
		assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
		check_searches(&scene, 100);
		reopen(&scene);
		assert_int_equal(scene.row.section_count, members / RIBBON_SECTION_MEMBERS);
		assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
		check_searches(&scene, 100);
	}
	end_scene(&scene);
}

/* Two bytes a key in place of four or five, and the little that a row has besides. */
static void test_a_section_takes_less_than_the_exact_table(void **state)
{
	struct scene scene;
	uint64_t exact;

	(void)state;
	begin_scene(&scene, 7);
	scene.arranges = true;
	scene.hot = 20;
	seal_many(&scene, RIBBON_SECTION_MEMBERS);
	exact = ribbon_row_bytes(&scene.row);
	reopen(&scene);
	assert_int_equal(scene.row.section_count, 1);
	assert_in_range(ribbon_row_bytes(&scene.row), 1, exact * 6 / 10);
	end_scene(&scene);
}

/* A section counts with the member that was written after it had been made. */
static void test_a_section_counts_with_the_next_member(void **state)
{
	struct group_member member = { .segment = 7 };
	struct scene scene;

	(void)state;
	begin_scene(&scene, 8);
	seal_many(&scene, RIBBON_SECTION_MEMBERS);
	ribbon_row_condense(&scene.row);
	assert_non_null(scene.row.made.image);
	for (int turn = 0; turn < 2; turn++) {
		active_begin(scene.active);
		write_member(&scene, NULL, &member);
		assert_int_equal(scene.row.section_count, 0);
		assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
		check_searches(&scene, 500);
	}
	seal(&scene);
	assert_int_equal(scene.row.section_count, 1);
	assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
	check_searches(&scene, 500);
	/* One that was made for a group is none of the group behind it. */
	seal_many(&scene, RIBBON_SECTION_MEMBERS - 1);
	ribbon_row_condense(&scene.row);
	assert_non_null(scene.row.made.image);
	ribbon_row_begin(&scene.row, growing_number(&scene.row.growing) + 1);
	for (uint32_t n = 0; n < scene.count; n++)
		scene.sealed[n].live = false;
	seal_many(&scene, RIBBON_SECTION_MEMBERS + 1);
	assert_int_equal(scene.row.section_count, 1);
	assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
	check_searches(&scene, 500);
	end_scene(&scene);
}

/* As when a segment waits for the end of an NVRAM sync while an image is written anew. */
static void test_a_group_takes_its_own_copy_while_a_member_does_not_count_yet(void **state)
{
	struct scene scene;

	(void)state;
	begin_scene(&scene, 6);
	scene.renews = true;
	for (uint32_t n = 0; n < 90; n++) {
		if (growing_is_full(&scene.row.growing))
			complete(&scene);
		seal(&scene);
		take_out(&scene);
		assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
		check_searches(&scene, 40);
	}
	assert_true(scene.image_count >= 3);
	end_scene(&scene);
}

/* ---- the end of the process at any store ---- */

/* A member that was written does not count, and another one may be written in its place. */
static void test_a_member_that_was_not_committed_is_none(void **state)
{
	struct group_member member = { .segment = 7 };
	struct scene scene;

	(void)state;
	begin_scene(&scene, 2);
	seal_many(&scene, 5);
	active_begin(scene.active);
	for (uint32_t key = 0; key < 100; key++) {
		struct key_hash hash = hash_of(key);

		assert_true(active_note_page(scene.active, &hash, 0));
	}
	write_member(&scene, NULL, &member);
	check_searches(&scene, 500);
	reopen(&scene);
	assert_int_equal(growing_members(&scene.row.growing), 5);
	assert_true(sum_is_right(&scene));
	check_searches(&scene, 500);
	seal(&scene);
	check_searches(&scene, 500);
	end_scene(&scene);
}

static void test_every_changed_byte_of_a_growing_group_is_noticed(void **state)
{
	struct scene scene;
	uint32_t end;

	(void)state;
	begin_scene(&scene, 2);
	seal_many(&scene, 3);
	growing_take_out(&scene.row.growing, 1);
	end = GROWING_ENTRIES_AT + growing_entries(&scene.row.growing, 3) * GROWING_ENTRY_BYTES;
	for (uint32_t at = 0; at < end; at++) {
		/* Behind the header's fields and the last member nothing counts, nor do their bits.
		 */
		if ((at >= GROWING_MEMBERS_AT + 4 && at < GROWING_LIVE_AT) ||
		    (at >= GROWING_LIVE_AT + 1 && at < GROWING_HEADER_BYTES) ||
		    (at >= GROWING_HEADER_BYTES + 3 * GROWING_MEMBER_BYTES &&
		     at < GROWING_ENTRIES_AT))
			continue;
		scene.nvram[at] ^= 1;
		assert_true(!growing_is_sound(&scene.row.growing) || !sum_is_right(&scene));
		scene.nvram[at] ^= 1;
	}
	end_scene(&scene);
}

/* ---- limits ---- */

static void test_a_group_is_full_before_its_entries_may_not_fit(void **state)
{
	struct group_member member = { .segment = 7 };
	struct scene scene;
	uint32_t members = 0;

	(void)state;
	begin_scene(&scene, 2);
	for (; !growing_is_full(&scene.row.growing); members++) {
		struct key_hash hash;
		uint32_t key = 0, page = 0;

		active_begin(scene.active);
		do
			hash = hash_of(members * 100000 + key++);
		while (active_note_page(scene.active, &hash, 0));
		/* There is no space for any key that is not noted there already. */
		assert_int_equal(active_count(scene.active), scene.shape.segment_entries);
		assert_false(active_next(scene.active, &hash, &page));
		write_member(&scene, NULL, &member);
		ribbon_row_commit(&scene.row);
	}
	assert_int_equal(members, RIBBON_SPARSE + 1);
	assert_true(sum_is_right(&scene));
	end_scene(&scene);
}

/* All of them are found, however many there are; that few are takes little memory. */
static void test_an_active_segment_grows_with_its_entries(void **state)
{
	struct scene scene;
	uint64_t bytes;

	(void)state;
	begin_scene(&scene, 4);
	for (uint32_t round = 0; round < 2; round++) {
		active_begin(scene.active);
		bytes = active_bytes(scene.active);
		for (uint32_t key = 0; key < scene.shape.segment_entries; key++) {
			struct key_hash hash = hash_of(key);
			uint32_t page = UINT32_MAX;

			assert_true(active_note_page(scene.active, &hash, key % PAGES));
			if (key < scene.shape.entries_expected)
				assert_int_equal(active_bytes(scene.active), bytes);
			assert_true(active_find(scene.active, &hash, &page));
			assert_int_equal(page, key % PAGES);
		}
		for (uint32_t key = 0; key < scene.shape.segment_entries; key++) {
			struct key_hash hash = hash_of(key);
			uint32_t page = UINT32_MAX;

			assert_true(active_find(scene.active, &hash, &page));
			assert_int_equal(page, key % PAGES);
			assert_false(active_find(scene.active, &hash, &page));
		}
		if (!round)
			assert_true(active_bytes(scene.active) > 3 * bytes);
	}
	end_scene(&scene);
}

/* What had no space on a page says little of smaller records; only many of them make it full. */
static void test_a_page_is_full_when_many_have_passed_it_by(void **state)
{
	struct key_hash hash, metadata = hash_of(999);
	struct scene scene;
	uint32_t key = 0;

	(void)state;
	begin_scene(&scene, 1);
	metadata.metadata = true;
	active_begin(scene.active);
	for (; key < 20; key++) {
		hash = hash_of(key);
		assert_int_equal(active_first(scene.active, &hash), 0);
		active_note(scene.active, &hash, 1);
	}
	for (; key < 100; key++) {
		hash = hash_of(key);
		active_note(scene.active, &hash, 1);
	}
	hash = hash_of(key);
	assert_int_equal(active_first(scene.active, &hash), 1);
	/* Which are not of its kind. */
	assert_int_equal(active_first(scene.active, &metadata), 0);
	end_scene(&scene);
}

static void test_first_groups_of_rows_are_full_at_different_times(void **state)
{
	uint32_t waiting[RIBBON_MEMBERS] = { 0 };

	(void)state;
	for (uint32_t row = 0; row < 5 * RIBBON_MEMBERS; row++) {
		uint32_t first = ribbon_members(row, 0), second = ribbon_members(row, 1);

		assert_in_range(first, RIBBON_SPARSE + 1, RIBBON_MEMBERS);
		assert_in_range(second, RIBBON_SPARSE + 1, RIBBON_MEMBERS);
		assert_int_equal(ribbon_members(row, 2), RIBBON_MEMBERS);
		waiting[(first + second) % RIBBON_MEMBERS]++;
	}
	for (uint32_t members = 0; members < RIBBON_MEMBERS; members++)
		assert_int_equal(waiting[members], 5);
}

/* ---- bytes ---- */

static void test_a_growing_group_has_the_documented_bytes(void **state)
{
	static const uint8_t documented[GROWING_HEADER_BYTES + GROWING_MEMBER_BYTES] = {
		0x4d, 0x42, 0x52, 0x47, 0x03, 0, 0, 0, 0x03, 0, 0, 0, 0x02, 0x01, 0, 0, 0x01, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		/* the member */
		0x04, 0x03, 0x02, 0x01, 0x0a, 0x00, 0x50, 0x00, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13,
		0x12, 0x11, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31,
		0x00, 0x01, 0x00, 0xc0, 0x01, 0, 0, 0, 0, 0, 0, 0
	};
	const struct group_member member = {
		.segment = 0x01020304,
		.records = 10,
		.tail_pages = 5,
		.serial = UINT64_C(0x1112131415161718),
		.first_sequence = UINT64_C(0x212223242526),
		.last_sequence = UINT64_C(0x313233343536),
		.record_bytes = 256,
		.by_candidates = true,
		.is_ordered = true,
	};
	struct key_hash hash = hash_of(1);
	struct scene scene;

	(void)state;
	begin_scene(&scene, 1);
	ribbon_row_begin(&scene.row, 0x0102);
	active_begin(scene.active);
	assert_true(active_note_page(scene.active, &hash, 9));
	write_member(&scene, NULL, &member);
	ribbon_row_commit(&scene.row);
	assert_memory_equal(scene.nvram, documented, sizeof(documented));
	assert_int_equal(get_le32(scene.nvram + GROWING_ENTRIES_AT), tag_of(&hash));
	assert_int_equal(get_le16(scene.nvram + GROWING_ENTRIES_AT + 4), 9);
	end_scene(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_search_names_all_segments_of_a_key_from_the_newest_on),
		cmocka_unit_test(test_few_segments_are_named_in_vain),
		cmocka_unit_test(test_the_exact_table_has_nothing_that_a_ribbon_has),
		cmocka_unit_test(test_members_wait_in_sections),
		cmocka_unit_test(test_a_section_takes_less_than_the_exact_table),
		cmocka_unit_test(test_a_section_counts_with_the_next_member),
		cmocka_unit_test(test_a_group_takes_its_own_copy_while_a_member_does_not_count_yet),
		cmocka_unit_test(test_a_member_that_was_not_committed_is_none),
		cmocka_unit_test(test_every_changed_byte_of_a_growing_group_is_noticed),
		cmocka_unit_test(test_a_group_is_full_before_its_entries_may_not_fit),
		cmocka_unit_test(test_an_active_segment_grows_with_its_entries),
		cmocka_unit_test(test_a_page_is_full_when_many_have_passed_it_by),
		cmocka_unit_test(test_first_groups_of_rows_are_full_at_different_times),
		cmocka_unit_test(test_a_growing_group_has_the_documented_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
