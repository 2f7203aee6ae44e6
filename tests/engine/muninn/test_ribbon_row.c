/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A row of the ribbon index beside a list of what was sealed: growing, completing, replacing,
 * opening again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/muninn/index/ribbon/growing_format.h"
#include "engine/muninn/index/ribbon/ribbon_hash.h"
#include "tests/engine/muninn/ribbon_random.h"
#include "tests/engine/muninn/ribbon_row_scene.h"

/* ---- searches ---- */

static int compare_failed(const void *a, const void *b)
{
	return memcmp(a, b, FAILED_BYTES);
}

/*
 * The image of each group can be had again: the same, but for its tags and the order of its failed
 * entries.
 */
static void check_copies(const struct scene *scene)
{
	for (uint32_t n = 0; n < scene->image_count; n++) {
		struct ribbon_image copy = { .live = NULL };
		uint32_t number = scene->images[n].number;
		uint8_t *image = scene->images[n].bytes;
		struct group group;

		if (!image)
			continue;
		assert_int_equal(ribbon_row_copy_image(&scene->row,
						       scene_group_place(scene, number),
						       &copy.bytes, &copy.length),
				 0);
		assert_int_equal(ribbon_row_check(&scene->row, &copy, number), 0);
		assert_true(group_attach(&group, image, scene->images[n].length));
		assert_true(group.tag_bytes > 0);
		assert_int_equal(copy.length + group.tag_bytes, scene->images[n].length);
		put_le32(image + GROUP_TAGS_AT, 0);
		qsort(image + group.kept, group.failed, FAILED_BYTES, compare_failed);
		qsort(copy.bytes + group.kept, group.failed, FAILED_BYTES, compare_failed);
		memcpy(image + GROUP_CRC_AT, copy.bytes + GROUP_CRC_AT, 4);
		assert_memory_equal(copy.bytes, image, copy.length);
		free(copy.bytes);
	}
}

static void test_a_search_names_all_segments_of_a_key_from_the_newest_on(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct scene scene;

		scene_begin(&scene, seed);
		scene.drops = true;
		scene.arranges = seed > 2;
		scene.lacks_memory = seed % 2;
		scene.hot = seed == 4 ? 20 : 3;
		scene.lost = seed == 4 ? 16 : 2;
		for (uint32_t n = 0; n < 220; n++) {
			if (growing_is_full(&scene.row.growing))
				scene_complete(&scene);
			scene_seal(&scene);
			if (below(&scene.random, 4) == 0)
				scene_take_out(&scene);
			if (below(&scene.random, 60) == 0)
				scene_drop_group(&scene);
			if (below(&scene.random, 10) == 0)
				scene_join(&scene);
			if (below(&scene.random, 20) == 0)
				scene_reopen(&scene);
			scene_check_searches(&scene, 40);
		}
		assert_true(scene.image_count >= 6);
		assert_true(scene.joined >= 10);
		/* Where most keys have a candidate, ribbons have these. */
		assert_int_equal(seed == 4 ? scene.by_pages : scene.by_candidates, 0);
		check_copies(&scene);
		scene_check_searches(&scene, 3000);
		scene_end(&scene);
	}
}

static void test_few_segments_are_named_in_vain(void **state)
{
	uint32_t vain = 0, questions = 20000;
	struct scene scene;

	(void)state;
	scene_begin(&scene, 9);
	scene_seal_many(&scene, 200);
	for (uint32_t n = 0; n < questions; n++)
		vain += scene_check_search(&scene, KEYS + n, UINT64_MAX, 0);
	/* Groups have fingerprints of 8 and 7 bits; what waits for its group is exact. */
	assert_in_range(vain, questions * 3 / 256, questions * scene.row.count * 2 / 256);
	scene_end(&scene);
}

/* ---- the end of the process at any store ---- */

/* A member that was written does not count, and another one may be written in its place. */
static void test_a_member_that_was_not_committed_is_none(void **state)
{
	struct group_member member = { .segment = 7 };
	struct scene scene;

	(void)state;
	scene_begin(&scene, 2);
	scene_seal_many(&scene, 5);
	active_begin(scene.active);
	for (uint32_t key = 0; key < 100; key++) {
		struct key_hash hash = scene_hash(key);

		assert_true(active_note_page(scene.active, &hash, 0));
	}
	scene_write_member(&scene, NULL, &member);
	scene_check_searches(&scene, 500);
	scene_reopen(&scene);
	assert_int_equal(growing_members(&scene.row.growing), 5);
	assert_true(scene_sum_is_right(&scene));
	scene_check_searches(&scene, 500);
	scene_seal(&scene);
	scene_check_searches(&scene, 500);
	scene_end(&scene);
}

static void test_every_changed_byte_of_a_growing_group_is_noticed(void **state)
{
	struct scene scene;
	uint32_t end;

	(void)state;
	scene_begin(&scene, 2);
	scene_seal_many(&scene, 3);
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
		/* The versions before are read, too. */
		uint8_t bit = at == GROWING_VERSION_AT ? 8 : 1;

		scene.nvram[at] ^= bit;
		assert_true(!growing_is_sound(&scene.row.growing) || !scene_sum_is_right(&scene));
		scene.nvram[at] ^= bit;
	}
	scene_end(&scene);
}

/* ---- what is kept with members ---- */

static uint8_t *growing_end(const struct scene *scene)
{
	return scene->nvram + growing_bytes(&scene->shape);
}

/* Writes a member with one key, which counts. */
static void write_with(struct scene *scene, const uint8_t *bytes, uint32_t count)
{
	const struct tag_entry entry = { .tag = 7, .location = location_word(1, 0) };
	const struct group_member member = { .segment = scene->next_segment,
					     .serial = ++scene->next_segment };

	assert_int_equal(ribbon_row_write(&scene->row, &entry, 1, &member), 0);
	if (count)
		growing_append(&scene->row.growing, bytes, count);
	ribbon_row_commit(&scene->row);
	assert_true(scene_sum_is_right(scene));
}

static bool has(const struct scene *scene, uint32_t member, const uint8_t *bytes, uint32_t count)
{
	uint32_t length;
	const uint8_t *at = growing_appended(&scene->row.growing, member, &length);

	assert_int_equal(length, at ? count : 0);
	return at && memcmp(at, bytes, count) == 0;
}

static void test_bytes_are_kept_with_the_members_that_they_were_put_to(void **state)
{
	static const uint8_t first[] = { 1, 2, 3 }, third[] = { 4, 5, 6, 7, 8 };
	struct scene scene;

	(void)state;
	scene_begin(&scene, 1);
	write_with(&scene, first, sizeof(first));
	write_with(&scene, NULL, 0);
	write_with(&scene, third, sizeof(third));
	for (uint32_t turn = 0; turn < 2; turn++) {
		assert_true(has(&scene, 0, first, sizeof(first)));
		assert_false(has(&scene, 1, first, sizeof(first)));
		assert_true(has(&scene, 2, third, sizeof(third)));
		growing_take_out(&scene.row.growing, turn);
	}
	/* As docs/explanation/ribbon.md says. */
	assert_int_equal(get_le32(scene.nvram + 64 + 36), 7);
	assert_int_equal(get_le32(scene.nvram + 64 + 40 + 36), 7);
	assert_int_equal(get_le32(scene.nvram + 64 + 2 * 40 + 36), 16);
	assert_memory_equal(growing_end(&scene) - 3, first, 3);
	assert_memory_equal(growing_end(&scene) - 12, third, 5);
	ribbon_row_begin(&scene.row, growing_number(&scene.row.growing) + 1);
	write_with(&scene, NULL, 0);
	assert_false(has(&scene, 0, first, sizeof(first)));
	scene_end(&scene);
}

/* A power loss of the host may bring back pages of different times. */
static void test_bytes_that_do_not_belong_to_the_member_are_not_taken(void **state)
{
	static const uint8_t first[] = { 1, 2, 3 }, second[] = { 4, 5, 6, 7, 8 };
	struct scene scene;
	uint8_t *member, *end;

	(void)state;
	scene_begin(&scene, 1);
	write_with(&scene, first, sizeof(first));
	write_with(&scene, second, sizeof(second));
	end = growing_end(&scene);
	for (uint32_t back = 1; back <= 16; back++) {
		end[-(int)back] ^= 1;
		assert_int_equal(has(&scene, 0, first, sizeof(first)), back > 7);
		assert_int_equal(has(&scene, 1, second, sizeof(second)), back <= 7);
		/* What the index rests on is whole. */
		assert_true(scene_sum_is_right(&scene));
		end[-(int)back] ^= 1;
	}
	/* The same bytes behind another member at the same place, or behind other entries. */
	member = scene.nvram + 64 + 40;
	for (uint32_t at = 0; at < 32; at++) {
		member[at] ^= 1;
		assert_false(has(&scene, 1, second, sizeof(second)));
		member[at] ^= 1;
	}
	for (uint32_t at = 6; at < 12; at++) {
		scene.nvram[4096 + at] ^= 1;
		assert_false(has(&scene, 1, second, sizeof(second)));
		assert_true(has(&scene, 0, first, sizeof(first)));
		scene.nvram[4096 + at] ^= 1;
	}
	for (uint32_t bit = 0; bit < 32; bit++) {
		member[36 + bit / 8] ^= (uint8_t)(1 << bit % 8);
		growing_appended(&scene.row.growing, 1, &(uint32_t){ 0 });
		assert_false(has(&scene, 1, second, sizeof(second)));
		member[36 + bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_true(has(&scene, 1, second, sizeof(second)));
	scene_end(&scene);
}

/* Entries come first: those of each member that is written, and of later ones. */
static void test_what_is_kept_with_members_takes_no_room_that_entries_need(void **state)
{
	struct scene scene;
	uint8_t *bytes;
	uint32_t room, member;

	(void)state;
	scene_begin(&scene, 1);
	room = (scene.shape.group_entries - 1) * GROWING_ENTRY_BYTES - 4;
	bytes = malloc(room + 1);
	memset(bytes, 0xa5, room + 1);
	write_with(&scene, bytes, room + 1);
	assert_false(has(&scene, 0, bytes, room + 1));
	scene_end(&scene);

	scene_begin(&scene, 1);
	write_with(&scene, bytes, room);
	assert_true(has(&scene, 0, bytes, room));
	write_with(&scene, bytes, 1);
	assert_false(has(&scene, 0, bytes, room));
	assert_false(has(&scene, 1, bytes, 1));
	scene_seal(&scene);
	member = growing_members(&scene.row.growing) - 1;
	assert_false(has(&scene, member, bytes, 1));
	assert_true(scene_sum_is_right(&scene));
	assert_true(growing_is_sound(&scene.row.growing));
	free(bytes);
	scene_end(&scene);
}

/* ---- the active segment ---- */

/* All of them are found, however many there are; that few are takes little memory. */
static void test_an_active_segment_grows_with_its_entries(void **state)
{
	struct scene scene;
	uint64_t bytes;

	(void)state;
	scene_begin(&scene, 4);
	/* Before it begins it is empty, and has no memory for entries. */
	bytes = active_bytes(scene.active) + scene.shape.entries_expected;
	active_begin(scene.active);
	assert_true(active_bytes(scene.active) > bytes);
	for (uint32_t round = 0; round < 2; round++) {
		active_begin(scene.active);
		bytes = active_bytes(scene.active);
		for (uint32_t key = 0; key < scene.shape.segment_entries; key++) {
			struct key_hash hash = scene_hash(key);
			uint32_t page = UINT32_MAX;

			assert_true(active_note_page(scene.active, &hash, key % PAGES));
			if (key < scene.shape.entries_expected)
				assert_int_equal(active_bytes(scene.active), bytes);
			assert_true(active_find(scene.active, &hash, NULL, 0, &page));
			assert_int_equal(page, key % PAGES);
		}
		for (uint32_t key = 0; key < scene.shape.segment_entries; key++) {
			struct key_hash hash = scene_hash(key);
			uint32_t page = UINT32_MAX;

			assert_true(active_find(scene.active, &hash, NULL, 0, &page));
			assert_int_equal(page, key % PAGES);
			assert_false(active_find(scene.active, &hash, NULL, 0, &page));
		}
		if (!round)
			assert_true(active_bytes(scene.active) > 3 * bytes);
	}
	scene_end(&scene);
}

/* What had no space on a page says little of smaller records; only many of them make it full. */
static void test_a_page_is_full_when_many_have_passed_it_by(void **state)
{
	struct key_hash hash, metadata = scene_hash(999);
	struct scene scene;
	uint32_t key = 0;

	(void)state;
	scene_begin(&scene, 1);
	metadata.metadata = true;
	active_begin(scene.active);
	for (; key < 20; key++) {
		hash = scene_hash(key);
		assert_int_equal(active_first(scene.active, &hash), 0);
		active_note(scene.active, &hash, 1);
	}
	for (; key < 100; key++) {
		hash = scene_hash(key);
		active_note(scene.active, &hash, 1);
	}
	hash = scene_hash(key);
	assert_int_equal(active_first(scene.active, &hash), 1);
	/* Which are not of its kind. */
	assert_int_equal(active_first(scene.active, &metadata), 0);
	scene_end(&scene);
}

static void test_a_page_that_is_said_to_be_full_is_passed_over(void **state)
{
	struct key_hash hash = scene_hash(1), metadata = scene_hash(2);
	struct scene scene;

	(void)state;
	scene_begin(&scene, 1);
	metadata.metadata = true;
	active_begin(scene.active);
	active_note(scene.active, &hash, 1);
	active_fill(scene.active, 1);
	/* Not those in front of it, and none that has the key. */
	assert_int_equal(active_first(scene.active, &metadata), 0);
	assert_int_equal(active_first(scene.active, &hash), 1);
	active_fill(scene.active, 0);
	assert_int_equal(active_first(scene.active, &metadata), 2);
	hash = scene_hash(3);
	assert_int_equal(active_first(scene.active, &hash), 2);
	assert_int_equal(PAGES, scene.shape.segment_pages);
	for (uint32_t page = 2; page < PAGES; page++)
		active_fill(scene.active, page);
	assert_int_equal(active_first(scene.active, &hash), PAGES);
	scene_end(&scene);
}

/* ---- bytes ---- */

static void test_a_growing_group_has_the_documented_bytes(void **state)
{
	static const uint8_t documented[GROWING_HEADER_BYTES + GROWING_MEMBER_BYTES] = {
		0x4d,
		0x42,
		0x52,
		0x47,
		0x06,
		0,
		0,
		0,
		0x03,
		0,
		0,
		0,
		0x02,
		0x01,
		0,
		0,
		0x01,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0x01,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
		/* the member */
		0x04,
		0x03,
		0x02,
		0x01,
		0x0a,
		0x00,
		0x20,
		0x00,
		0x18,
		0x17,
		0x16,
		0x15,
		0x14,
		0x13,
		0x12,
		0x11,
		0x26,
		0x25,
		0x24,
		0x23,
		0x22,
		0x21,
		0x36,
		0x35,
		0x34,
		0x33,
		0x32,
		0x31,
		0x00,
		0x01,
		0x00,
		0xe0,
		0x03,
		0,
		0,
		0,
		0,
		0,
		0,
		0,
	};
	static const uint8_t documented_entries[] = {
		0x0d, 0x0c, 0x0b, 0x0a, 0x09, 0x20, /* a key: page 9, its candidate 1 */
		0x04, 0x03, 0x02, 0x01, 0x00, 0x00, /* runs: page 0 ... */
		0x08, 0x07, 0x06, 0x05, 0x01, 0x00, /* ... and page 1 */
	};
	const struct tag_entry entries[] = {
		{ .tag = 0x0a0b0c0d, .location = location_word(9, 1) },
		{ .tag = 0x01020304, .location = location_word(0, PLACEMENT_NONE) },
		{ .tag = 0x05060708, .location = location_word(1, PLACEMENT_NONE) },
	};
	const struct group_member member = {
		.segment = 0x01020304,
		.records = 10,
		.run_pages = 2,
		.has_runs = true,
		.serial = UINT64_C(0x1112131415161718),
		.first_sequence = UINT64_C(0x212223242526),
		.last_sequence = UINT64_C(0x313233343536),
		.record_bytes = 256,
		.by_candidates = true,
		.is_ordered = true,
	};
	struct scene scene;

	(void)state;
	scene_begin(&scene, 1);
	ribbon_row_begin(&scene.row, 0x0102);
	/* It may have been begun by an older program, which does not know of runs. */
	put_le32(scene.nvram + GROWING_VERSION_AT, RIBBON_VERSION_OLDEST);
	assert_true(growing_is_sound(&scene.row.growing));
	assert_int_equal(ribbon_row_write(&scene.row, entries, 1, &member), 0);
	ribbon_row_commit(&scene.row);
	assert_memory_equal(scene.nvram, documented, sizeof(documented));
	assert_memory_equal(scene.nvram + GROWING_ENTRIES_AT, documented_entries,
			    sizeof(documented_entries));
	scene_end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_search_names_all_segments_of_a_key_from_the_newest_on),
		cmocka_unit_test(test_few_segments_are_named_in_vain),
		cmocka_unit_test(test_a_member_that_was_not_committed_is_none),
		cmocka_unit_test(test_every_changed_byte_of_a_growing_group_is_noticed),
		cmocka_unit_test(test_bytes_are_kept_with_the_members_that_they_were_put_to),
		cmocka_unit_test(test_bytes_that_do_not_belong_to_the_member_are_not_taken),
		cmocka_unit_test(test_what_is_kept_with_members_takes_no_room_that_entries_need),
		cmocka_unit_test(test_an_active_segment_grows_with_its_entries),
		cmocka_unit_test(test_a_page_is_full_when_many_have_passed_it_by),
		cmocka_unit_test(test_a_page_that_is_said_to_be_full_is_passed_over),
		cmocka_unit_test(test_a_growing_group_has_the_documented_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
