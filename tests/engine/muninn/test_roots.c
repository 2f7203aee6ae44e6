/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * NVRAM lost: refused by default; with consent everything that was sealed is found, and nothing
 * that was merged away, aborted or of an earlier format. A device is taken through many losses,
 * with writing, aborting and merging between them.
 *
 * Runs for each index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/muninn/image_load.h"
#include "engine/muninn/root_find.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "nand/power.h"
#include "nand/private.h"
#include "tests/engine/muninn/lost_nvram.h"
#include "tests/engine/small_flash.h"

enum { ROWS_MANY = 128 };

static const struct nand_geometry large = SMALL_FLASH(1200); /* for ROWS_MANY rows */

static void go_through_losses(enum record_class class, enum bloom_hot_rows hot_rows, int rounds)
{
	struct device *device = device_new(hot_rows, 1 + hot_rows);
	struct record_statistics statistics = { 0 };
	struct error_text error;
	int under_way = 0, left_out = 0;

	device->class = class;
	for (int round = 0; round < rounds; round++) {
		bool interrupt = round % 3 == 0;

		device_run(device, 1 + device_below(device, 200));
		if (interrupt) {
			device->store->operations->begin(device->store, 0);
			assert_int_equal(device_put(device, 120), 0);
			under_way += device_store(device)->sealed_running;
		}
		device_note_answers(device);
		device_lose_nvram(device);
		if (device_open(device, true, &error))
			fail_msg("round %d: %s", round, error.text);
		left_out += device_check_answers(device);
		/* Once more, without anything in between. */
		device_lose_nvram(device);
		assert_int_equal(device_open(device, true, &error), 0);
		device_check_answers(device);
	}
	device->store->operations->statistics(device->store, &statistics);
	print_message("%d losses, %d with sealed records of a command under way; %d last commands "
		      "taken for interrupted; %llu tables\n",
		      rounds, under_way, left_out, (unsigned long long)statistics.tables);
	assert_true(under_way > 3 && left_out < rounds && statistics.tables > 0);
	device_free(device);
}

static void test_what_was_sealed_is_found_without_nvram_and_nothing_else(void **state)
{
	(void)state;
	go_through_losses(RECORD_CLASS_DATA, BLOOM_HOT_ROWS_FINALISE, 60);
}

static void test_the_same_holds_of_history_s_row_which_has_two_buffers(void **state)
{
	(void)state;
	go_through_losses(RECORD_CLASS_HISTORY, BLOOM_HOT_ROWS_FINALISE, 30);
}

static void test_the_same_holds_where_hot_keys_are_spread(void **state)
{
	(void)state;
	go_through_losses(RECORD_CLASS_DATA, BLOOM_HOT_ROWS_SPREAD, 40);
}

static void test_lost_nvram_is_refused_and_the_message_names_the_option(void **state)
{
	struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 9);
	struct error_text error;

	(void)state;
	device_run(device, 500);
	device->store->operations->set_memo(device->store, 1);
	device_lose_nvram(device);
	assert_int_equal(device_open(device, false, &error), -EINVAL);
	assert_non_null(strstr(error.text, "recover_without_nvram"));
	assert_int_equal(device_open(device, true, &error), 0);
	/* Who keeps one can tell by that. */
	assert_int_equal(device->store->operations->memo(device->store), 0);
	device_free(device);
}

static void test_an_older_nvram_is_refused(void **state)
{
	struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 10);
	struct error_text error;
	uint64_t bytes;
	uint8_t *nvram = nand_nvram(device->nand, &bytes), *older = malloc(bytes);

	(void)state;
	assert_non_null(older);
	device_run(device, 500);
	memcpy(older, nvram, bytes);
	device_run(device, 500);
	device_note_answers(device);
	device->store->operations->close(device->store, false);
	device->store = NULL;
	memcpy(nvram, older, bytes);
	assert_int_equal(device_open(device, false, &error), -EINVAL);
	assert_non_null(strstr(error.text, "older than the flash"));
	assert_int_equal(device_open(device, true, &error), 0);
	device_check_answers(device);
	free(older);
	device_free(device);
}

static void test_nothing_of_an_earlier_format_comes_back(void **state)
{
	struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 11);
	struct error_text error;
	uint64_t sequence;

	(void)state;
	for (int again = 0; again < 3; again++) {
		device_run(device, 400);
		if (again == 2) {
			assert_int_equal(device->store->operations->begin_format(device->store, 0,
										 &sequence),
					 0);
			device->store->operations->commit(device->store);
		} else {
			device->store->operations->close(device->store, true);
			assert_int_equal(engine_format(device->nand, &device->options, &error), 0);
			assert_int_equal(device_open(device, false, &error), 0);
		}
		device_lose_nvram(device);
		assert_int_equal(device_open(device, true, &error), 0);
		for (uint32_t number = 0; number < DEVICE_KEYS; number++)
			assert_int_equal(device_ask(device, number, RECORD_NEWEST).result, -ENOENT);
	}
	device_free(device);
}

/*
 * Without merges and aborts an older root leads to the same, since what was sealed later says so
 * itself.
 */
static void test_without_the_newest_root_the_one_before_it_is_found(void **state)
{
	struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 14);
	uint32_t segment, earlier;
	struct error_text error;

	(void)state;
	device_commit(device, 100);
	earlier = (uint32_t)state_read(device_store(device), STATE_ROOT_SEGMENT_AT);
	/* Every clean close writes a root. */
	for (int n = 0; n < 50; n++) {
		device_commit(device, 4);
		device->store->operations->close(device->store, true);
		assert_int_equal(device_open(device, false, &error), 0);
		segment = (uint32_t)state_read(device_store(device), STATE_ROOT_SEGMENT_AT);
		if (segment != earlier)
			break;
	}
	assert_int_not_equal(segment, earlier);
	device_commit(device, 3);
	device_note_answers(device);
	device_lose_nvram(device);
	assert_int_equal(nand_erase(device->nand, NAND_CAUSE_USER, segment), 0);
	assert_int_equal(device_open(device, true, &error), 0);
	device_check_answers(device);
	device_free(device);
}

/* What was not closed in good order is made stable before anything else is done. */
static void test_a_device_whose_nvram_can_t_be_made_stable_is_not_opened(void **state)
{
	const struct nand_power_cut cut = { .after = 0, .nvram = NAND_CUT_NVRAM_KEPT };
	struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 18);
	struct error_text error = { "" };

	(void)state;
	device_commit(device, 100);
	device_note_answers(device);
	device->store->operations->close(device->store, false);
	device->store = NULL;
	assert_int_equal(nand_arm_power_cut(device->nand, &cut, &error), 0);
	assert_int_equal(device_open(device, false, &error), -EIO);
	assert_non_null(strstr(error.text, "NVRAM can't be made stable"));
	assert_int_equal(nand_power_on(device->nand), 0);
	assert_int_equal(device_open(device, false, &error), 0);
	for (uint32_t number = 0; number < DEVICE_KEYS; number++) {
		struct answer newest = device_ask(device, number, RECORD_NEWEST);

		device_expect(number, RECORD_NEWEST, &newest, &device->before[number][0]);
	}
	device_free(device);
}

static void test_without_any_root_nothing_is_made_up(void **state)
{
	struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 15);
	uint32_t ring = device_store(device)->geometry.root_segments;
	struct error_text error;

	(void)state;
	device_commit(device, 300);
	device_lose_nvram(device);
	for (uint32_t segment = 0; segment < ring; segment++)
		assert_int_equal(nand_erase(device->nand, NAND_CAUSE_USER, segment), 0);
	assert_int_equal(device_open(device, true, &error), -ENODEV);
	assert_non_null(strstr(error.text, "not formatted"));
	assert_int_equal(device_open(device, false, &error), -ENODEV);
	device_free(device);
}

/* The segment of the ring with the last page of the last root. */
static uint32_t last_ring_segment(struct device *device)
{
	const struct muninn_geometry *geometry = &device_store(device)->geometry;
	uint8_t bytes[4096];
	struct page_spare spare, last = { 0 };
	uint32_t segment = 0;

	for (uint64_t page = 0; page < segment_page(geometry, geometry->root_segments); page++) {
		struct nand_page_io io = { .page = page, .spare = bytes };

		if (nand_read(device->nand, NAND_CAUSE_USER, &io, 1) ||
		    !page_spare_decode(bytes, device_shape.page_bytes, &spare) ||
		    !root_page_is_behind(&spare, &last))
			continue;
		last = spare;
		segment = (uint32_t)(page / geometry->segment_pages);
	}
	return segment;
}

/* Otherwise the next root would be written over the end of the last one. */
static void test_the_ring_goes_on_where_a_root_through_several_segments_ends(void **state)
{
	struct device *device = device_new_of(&large, ROWS_MANY, BLOOM_HOT_ROWS_FINALISE, 42);
	uint32_t count = device_store(device)->geometry.root_segments, ends;
	struct error_text error;

	(void)state;
	device_commit(device, 600);
	assert_int_equal(roots_write(device_store(device)), 0);
	assert_true(get_le32(device_store(device)->root + 12) >
		    device_store(device)->geometry.segment_pages * device_shape.page_bytes);
	ends = last_ring_segment(device);
	/* It begins in the one before. */
	for (uint32_t wrong = 0; wrong <= count; wrong++) {
		nvram_store64(device_store(device)->nvram + STATE_ROOT_SEGMENT_AT, wrong);
		device->store->operations->close(device->store, false);
		assert_int_equal(device_open(device, false, &error), 0);
		assert_int_equal(state_read(device_store(device), STATE_ROOT_SEGMENT_AT), ends);
	}
	struct found_root found;

	assert_int_equal(root_find(device->nand, &found), 0);
	assert_int_equal(found.segment, ends);
	root_found_free(&found);
	device_free(device);
}

static void test_no_root_is_appended_to_a_segment_of_which_a_block_failed(void **state)
{
	struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 41);
	struct muninn_store *store = device_store(device);
	uint32_t blocks = store->geometry.segment_blocks;
	uint32_t segment;

	(void)state;
	device_commit(device, 40);
	assert_int_equal(roots_write(store), 0);
	segment = (uint32_t)state_read(store, STATE_ROOT_SEGMENT_AT);
	assert_int_equal(nand_mark_bad(device->nand, segment * blocks), 0);
	assert_int_equal(roots_write(store), 0);
	assert_int_not_equal(state_read(store, STATE_ROOT_SEGMENT_AT), segment);
	device_free(device);
}

/* What a page does not need is zero: nothing of the host's memory gets to the flash. */
static void test_spare_areas_hold_nothing_but_what_the_format_says(void **state)
{
	struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 43);
	uint32_t usable = nand_spare_usable(&device_shape);
	uint32_t seen[PAGE_KIND_ROOT + 1] = { 0 };
	uint8_t spare[4096];

	(void)state;
	assert_true(usable > PAGE_SPARE_BYTES);
	device_run(device, 1500);
	for (uint64_t page = 0; page < (uint64_t)device_shape.blocks * device_shape.pages_per_block;
	     page++) {
		struct nand_page_io io = { page, NULL, spare };

		if (nand_read(device->nand, NAND_CAUSE_USER, &io, 1) != 0)
			continue;
		assert_in_range(spare[0], PAGE_KIND_RECORDS, PAGE_KIND_ROOT);
		seen[spare[0]]++;
		for (uint32_t at = PAGE_SPARE_BYTES; at < usable; at++)
			assert_int_equal(spare[at], 0);
	}
	for (uint32_t kind = PAGE_KIND_RECORDS; kind <= PAGE_KIND_ROOT; kind++)
		assert_true(seen[kind] > 0);
	device_free(device);
}

/* The pages that opening reads of the image of the n-th complete group of a row. */
static uint64_t image_pages_of(struct muninn_store *store, uint32_t row, uint32_t n)
{
	const struct row_index *index = store->rows[row].index;
	struct index_walk walk = { .at = n };
	struct sealed_segment segment;
	struct index_image image;
	uint64_t kept;

	assert_true(row_index_next(index, &walk, &segment) && walk.at == n);
	assert_int_equal(
		image_read(store, row_index_live_word(index, &segment) - DIRECTORY_LIVE_AT, &image),
		0);
	kept = index_image_kept(store->index, image.bytes, &image.length);
	free(image.bytes);
	return divide_up(kept, device_shape.page_bytes);
}

static void test_opening_with_nvram_reads_one_page_of_the_ring(void **state)
{
	struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 12);
	struct nand_counters before, after;
	struct error_text error;
	uint64_t image_pages = 0;

	(void)state;
	device_run(device, 1500);
	for (uint32_t row = 0; row < 2; row++)
		for (uint32_t n = 0; n < row_index_groups(device_store(device)->rows[row].index);
		     n++)
			image_pages += image_pages_of(device_store(device), row, n);
	device->store->operations->close(device->store, true);
	nand_read_counters(device->nand, &before);
	assert_int_equal(device_open(device, false, &error), 0);
	nand_read_counters(device->nand, &after);
	assert_true(image_pages > 0);
	assert_int_equal(after.by_cause[NAND_CAUSE_RECOVERY].pages_read -
				 before.by_cause[NAND_CAUSE_RECOVERY].pages_read,
			 image_pages + 1);
	device_free(device);
}

/* The pages of growing tables, a page of each other segment, the ring, and the images. */
static void test_recovering_without_nvram_reads_a_bounded_number_of_pages(void **state)
{
	struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 13);
	struct nand_counters before, after;
	const struct muninn_geometry *geometry = &device_store(device)->geometry;
	struct error_text error;
	uint64_t most, images = 0;

	(void)state;
	device_run(device, 1500);
	for (uint32_t row = 0; row < 2; row++)
		images += row_index_groups(device_store(device)->rows[row].index);
	most = device_shape.blocks +
	       (uint64_t)geometry->rows * GROUP_SEGMENTS * (geometry->segment_pages + 1) +
	       2 * geometry->root_segments * geometry->segment_pages +
	       images * divide_up(geometry->image_bytes_max, geometry->page_bytes);
	device_lose_nvram(device);
	nand_read_counters(device->nand, &before);
	assert_int_equal(device_open(device, true, &error), 0);
	nand_read_counters(device->nand, &after);
	print_message("%llu pages read of at most %llu\n",
		      (unsigned long long)(after.by_cause[NAND_CAUSE_RECOVERY].pages_read -
					   before.by_cause[NAND_CAUSE_RECOVERY].pages_read),
		      (unsigned long long)most);
	assert_true(after.by_cause[NAND_CAUSE_RECOVERY].pages_read -
			    before.by_cause[NAND_CAUSE_RECOVERY].pages_read <=
		    most);
	device_free(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_sealed_is_found_without_nvram_and_nothing_else),
		cmocka_unit_test(test_the_same_holds_of_history_s_row_which_has_two_buffers),
		cmocka_unit_test(test_the_same_holds_where_hot_keys_are_spread),
		cmocka_unit_test(test_lost_nvram_is_refused_and_the_message_names_the_option),
		cmocka_unit_test(test_an_older_nvram_is_refused),
		cmocka_unit_test(test_nothing_of_an_earlier_format_comes_back),
		cmocka_unit_test(test_without_the_newest_root_the_one_before_it_is_found),
		cmocka_unit_test(test_the_ring_goes_on_where_a_root_through_several_segments_ends),
		cmocka_unit_test(test_a_device_whose_nvram_can_t_be_made_stable_is_not_opened),
		cmocka_unit_test(test_without_any_root_nothing_is_made_up),
		cmocka_unit_test(test_no_root_is_appended_to_a_segment_of_which_a_block_failed),
		cmocka_unit_test(test_spare_areas_hold_nothing_but_what_the_format_says),
		cmocka_unit_test(test_opening_with_nvram_reads_one_page_of_the_ring),
		cmocka_unit_test(test_recovering_without_nvram_reads_a_bounded_number_of_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
