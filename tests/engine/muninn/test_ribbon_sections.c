/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Members of the growing group of a row: they wait in the exact table until a section takes them,
 * and how many they may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sys/resource.h>

#include "engine/muninn/index/ribbon/growing_format.h"
#include "tests/engine/muninn/ribbon_row_scene.h"
#include "tests/repetition.h"

/* ---- the exact table ---- */

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
	scene_begin(&scene, 4);
	for (uint32_t n = 0; n < 60; n++) {
		if (growing_is_full(&scene.row.growing)) {
			scene_complete(&scene);
			assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
		}
		scene_seal(&scene);
		assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
	}
	/* A group whose segments have all been merged away gets no image. */
	ribbon_row_begin(&scene.row, growing_number(&scene.row.growing) + 1);
	scene_seal(&scene);
	assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
	scene_drop_group(&scene);
	assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
	scene_end(&scene);
}

/* As when a segment waits for the end of an NVRAM sync while an image is written anew. */
static void test_a_group_takes_its_own_copy_while_a_member_does_not_count_yet(void **state)
{
	struct scene scene;

	(void)state;
	scene_begin(&scene, 6);
	scene.renews = true;
	for (uint32_t n = 0; n < 90; n++) {
		if (growing_is_full(&scene.row.growing))
			scene_complete(&scene);
		scene_seal(&scene);
		scene_take_out(&scene);
		assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
		scene_check_searches(&scene, 40);
	}
	assert_true(scene.image_count >= 3);
	scene_end(&scene);
}

/* ---- images ---- */

static uint64_t image_space(const struct scene *scene, const struct group *group)
{
	const uint8_t *begin = scene->row.images.at;

	assert_in_range(group->image - begin, 0, scene->row.images_used - group->kept);
	assert_int_equal((uintptr_t)group->band.near % 64, 0);
	return align_up(group->kept, 64);
}

/* Nothing is between the images of a row, and behind them less than a page. */
static void check_images(const struct scene *scene)
{
	const struct ribbon_row *row = &scene->row;
	uint64_t space = 0;

	for (uint32_t n = 0; n < row->count; n++)
		space += image_space(scene, &row->complete[n].group);
	for (uint32_t n = 0; n < row->section_count; n++)
		space += image_space(scene, &row->sections[n].group);
	assert_int_equal(row->images_used, space);
	assert_int_equal(row->images.mapped, mapped_pages(space));
	assert_in_range(ribbon_row_images_memory(row), space, mapped_pages(space));
}

static void test_images_take_no_more_pages_than_they_fill(void **state)
{
	uint32_t dropped = 0;
	struct scene scene;

	(void)state;
	scene_begin(&scene, 9);
	scene.drops = true;
	for (uint32_t n = 0; n < 120; n++) {
		if (growing_is_full(&scene.row.growing))
			scene_complete(&scene);
		scene_seal(&scene);
		check_images(&scene);
		if (n % 40 == 39) {
			scene_drop_group(&scene);
			check_images(&scene);
			dropped++;
		}
		scene_check_searches(&scene, 40);
	}
	assert_true(dropped == 3 && scene.image_count >= 4);
	scene_reopen(&scene);
	check_images(&scene);
	scene_check_searches(&scene, 400);
	scene_end(&scene);
}

/* ---- sections ---- */

/* Before a member counts, the exact table has as many members as a section takes, at most. */
static void test_members_wait_in_sections(void **state)
{
	struct scene scene;

	(void)state;
	scene_begin(&scene, 5);
	for (uint32_t n = 0; n < 3 * RIBBON_MEMBERS; n++) {
		uint32_t members;

		if (growing_is_full(&scene.row.growing))
			scene_complete(&scene);
		scene_seal(&scene);
		members = growing_members(&scene.row.growing);
		assert_int_equal(scene.row.section_count, (members - 1) / RIBBON_SECTION_MEMBERS);
		assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
		scene_check_searches(&scene, 100);
		scene_reopen(&scene);
		assert_int_equal(scene.row.section_count, members / RIBBON_SECTION_MEMBERS);
		assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
		scene_check_searches(&scene, 100);
	}
	scene_end(&scene);
}

/* Two bytes a key in place of four or five, and the little that a row has besides. */
static void test_a_section_takes_less_than_the_exact_table(void **state)
{
	struct scene scene;
	uint64_t exact;

	(void)state;
	scene_begin(&scene, 7);
	scene.arranges = true;
	scene.hot = 20;
	scene_seal_many(&scene, RIBBON_SECTION_MEMBERS);
	exact = ribbon_row_bytes(&scene.row);
	scene_reopen(&scene);
	assert_int_equal(scene.row.section_count, 1);
	assert_in_range(ribbon_row_bytes(&scene.row), 1, exact * 7 / 10);
	scene_end(&scene);
}

enum { HEAP_BYTES = 64 << 20 };

/* The heap has something, and the kernel gives no more; or it does again. */
static void limit_memory(bool is_limited)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit most = none;

	if (is_limited) {
		free(malloc(HEAP_BYTES));
		most.rlim_cur = 1;
	}
	assert_int_equal(setrlimit(RLIMIT_AS, &most), 0);
}

/* Its members stay in the exact table, and the segment counts. */
static void test_a_member_counts_where_there_is_no_memory_for_a_section(void **state)
{
	struct scene scene;

	(void)state;
	/* Sanitizers have memory of their own. */
	if (SANITIZED_PART > 1)
		skip();
	scene_begin(&scene, 5);
	scene_seal_many(&scene, RIBBON_SECTION_MEMBERS);
	limit_memory(true);
	scene_seal(&scene);
	limit_memory(false);
	assert_int_equal(growing_members(&scene.row.growing), RIBBON_SECTION_MEMBERS + 1);
	assert_int_equal(scene.row.section_count, 0);
	scene_check_searches(&scene, 400);
	scene_seal(&scene);
	assert_int_equal(scene.row.section_count, 1);
	assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
	scene_check_searches(&scene, 400);
	scene_end(&scene);
}

/* A section counts with the member that was written after it had been made. */
static void test_a_section_counts_with_the_next_member(void **state)
{
	struct group_member member = { .segment = 7 };
	struct scene scene;

	(void)state;
	scene_begin(&scene, 8);
	scene_seal_many(&scene, RIBBON_SECTION_MEMBERS);
	ribbon_row_condense(&scene.row);
	assert_non_null(scene.row.made.image);
	for (int turn = 0; turn < 2; turn++) {
		active_begin(scene.active);
		scene_write_member(&scene, NULL, &member);
		assert_int_equal(scene.row.section_count, 0);
		assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
		scene_check_searches(&scene, 500);
	}
	scene_seal(&scene);
	assert_int_equal(scene.row.section_count, 1);
	assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
	scene_check_searches(&scene, 500);
	/* One that was made for a group is none of the group behind it. */
	scene_seal_many(&scene, RIBBON_SECTION_MEMBERS - 1);
	ribbon_row_condense(&scene.row);
	assert_non_null(scene.row.made.image);
	ribbon_row_begin(&scene.row, growing_number(&scene.row.growing) + 1);
	for (uint32_t n = 0; n < scene.count; n++)
		scene.sealed[n].live = false;
	scene_seal_many(&scene, RIBBON_SECTION_MEMBERS + 1);
	assert_int_equal(scene.row.section_count, 1);
	assert_int_equal(exact_count(scene.row.exact), exact_expected(&scene));
	scene_check_searches(&scene, 500);
	scene_end(&scene);
}

/* Ribbons of so few entries leave none out, so one is put where they are. */
static void test_what_a_section_of_pages_leaves_out_is_an_entry_of_a_page(void **state)
{
	struct tag_entry left_out = { .segment = 2, .location = 3 }, found;
	uint32_t at = 0;
	struct scene scene;
	struct group *group;

	(void)state;
	scene_begin(&scene, 8);
	scene_seal_many(&scene, RIBBON_SECTION_MEMBERS);
	ribbon_row_condense(&scene.row);
	group = &scene.row.made.group;
	assert_int_not_equal(group->locations, PLACEMENT_CANDIDATES);
	assert_int_equal(group->failed, 0);
	/* Tag 0: no key of the scene has it. */
	assert_false(exact_find(scene.row.exact, left_out.tag, 0, UINT64_MAX, &at, &found));
	scene.row.made.failed[0] = left_out;
	group->failed = 1;
	scene_seal(&scene);
	at = 0;
	assert_true(exact_find(scene.row.exact, left_out.tag, 0, UINT64_MAX, &at, &found));
	assert_int_equal(found.segment, left_out.segment);
	assert_int_equal(found.location, location_of_page(left_out.location));
	scene_end(&scene);
}

/* ---- limits ---- */

static void test_a_group_is_full_before_its_entries_may_not_fit(void **state)
{
	struct group_member member = { .segment = 7 };
	struct scene scene;
	uint32_t members = 0;

	(void)state;
	scene_begin(&scene, 2);
	for (; !growing_is_full(&scene.row.growing); members++) {
		struct key_hash hash;
		uint32_t key = 0, page = 0;

		active_begin(scene.active);
		do
			hash = scene_hash(members * 100000 + key++);
		while (active_note_page(scene.active, &hash, 0));
		/* There is no space for any key that is not noted there already. */
		assert_int_equal(active_count(scene.active), scene.shape.segment_entries);
		assert_false(active_next(scene.active, &hash, &page));
		scene_write_member(&scene, NULL, &member);
		ribbon_row_commit(&scene.row);
	}
	assert_int_equal(members, RIBBON_SPARSE + 1);
	assert_true(scene_sum_is_right(&scene));
	scene_end(&scene);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_exact_table_has_nothing_that_a_ribbon_has),
		cmocka_unit_test(test_a_group_takes_its_own_copy_while_a_member_does_not_count_yet),
		cmocka_unit_test(test_images_take_no_more_pages_than_they_fill),
		cmocka_unit_test(test_members_wait_in_sections),
		cmocka_unit_test(test_a_section_takes_less_than_the_exact_table),
		cmocka_unit_test(test_a_member_counts_where_there_is_no_memory_for_a_section),
		cmocka_unit_test(test_a_section_counts_with_the_next_member),
		cmocka_unit_test(test_what_a_section_of_pages_leaves_out_is_an_entry_of_a_page),
		cmocka_unit_test(test_a_group_is_full_before_its_entries_may_not_fit),
		cmocka_unit_test(test_first_groups_of_rows_are_full_at_different_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
