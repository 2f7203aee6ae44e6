/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Lost pages of roots and of lists of kills: any one page may be lost together with the NVRAM, and
 * with NVRAM all of them may.
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

#include "common/log.h"
#include "engine/muninn/header.h"
#include "engine/muninn/root_find.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "tests/engine/lost_page.h"
#include "tests/engine/muninn/losses.h"
#include "tests/engine/small_flash.h"

enum { PARITY = 2, PAGES_MAX = 64 };

/* As the model's, with room for parity in the spare areas. */
static const struct nand_geometry nand = SMALL_FLASH_WITH_SPARE(1200, 512);

static const struct engine_options options = {
	.muninn = { .rows = 2, .segment_pages = 16, .record_bytes = 128, .parity = PARITY },
};

static uint32_t came_back;

static void count_lines(enum log_level level, const char *line)
{
	(void)level;
	came_back += strstr(line, "comes back") != NULL;
}

static void merge_some(struct model *model, uint32_t wanted)
{
	const struct record_keep keep = { .bounds = NULL };
	struct record_merge merge = { .segments_wanted = 2, .live_permille_max = 1000 };

	for (uint32_t n = 0; merge.segments_freed < wanted; n++) {
		int result = model->store->operations->merge(model->store, &keep, &merge);

		assert_true(n < 1000 && (result == 0 || result == -EAGAIN));
	}
}

/*
 * A device whose last root has a list of changes, and on which segments were sealed since. Every
 * time the same.
 */
static struct model *make_with(const struct engine_options *own)
{
	struct model *model = calloc(1, sizeof(*model));

	assert_non_null(model);
	log_configure(count_lines, LOG_LEVEL_WARNING);
	came_back = 0;
	model->random = 1;
	model_open(model, &nand, own);
	for (uint32_t n = 0; n < 500; n++)
		assert_true(model_transaction(model, true, false));
	assert_int_equal(roots_write(inside(model)), 0);
	merge_some(model, 6);
	for (uint32_t n = 0; n < 60; n++)
		assert_true(model_transaction(model, true, false));
	merge_some(model, 2);
	return model;
}

static struct model *make(void)
{
	return make_with(&options);
}

static void end(struct model *model)
{
	model_close(model);
	log_configure(NULL, LOG_LEVEL_INFO);
}

/* ---- where roots are ---- */

/* All pages of the ring that have been programmed; those of one root or list, `serial` not 0. */
static uint32_t ring_pages(struct model *model, uint64_t serial, uint64_t pages[PAGES_MAX])
{
	const struct muninn_geometry *geometry = &inside(model)->geometry;
	uint32_t count = 0;

	for (uint64_t page = 0; page < segment_page(geometry, geometry->root_segments); page++) {
		uint8_t spare_bytes[512];
		const struct nand_page_io io = { .page = page, .spare = spare_bytes };
		struct page_spare spare;

		if (nand_read(model->nand, NAND_CAUSE_USER, &io, 1) ||
		    !page_spare_decode(spare_bytes, 512, &spare) || spare.kind != PAGE_KIND_ROOT)
			continue;
		if (serial && spare.serial != serial)
			continue;
		assert_true(count < PAGES_MAX);
		pages[count++] = page;
	}
	return count;
}

/* All of one root or list. */
static void lose_pages_of(struct model *model, uint64_t serial)
{
	uint64_t pages[PAGES_MAX];
	uint32_t count = ring_pages(model, serial, pages);

	for (uint32_t n = 0; n < count; n++)
		lose_page(model->nand, pages[n]);
}

/* The serials of the last root, and of the last list of changes. */
static void last_serials(struct model *model, uint64_t *root, uint64_t *kills)
{
	struct found_root found;

	assert_int_equal(root_find(model->nand, &found), 0);
	assert_non_null(found.list);
	*root = found.header.serial;
	*kills = found.list_header.serial;
	root_found_free(&found);
}

/* ---- without NVRAM ---- */

/* What is not sealed is lost with the NVRAM; so many segments and records are sealed. */
static void recover(struct model *model, const struct record_statistics *sealed)
{
	model->store->operations->close(model->store, false);
	open_without_nvram(model);
	if (!sealed)
		return;
	assert_int_equal(figures(model).segments_sealed, sealed->segments_sealed);
	assert_int_equal(figures(model).sealed_records, sealed->sealed_records);
	assert_int_equal(came_back, 0);
}

static void test_any_page_of_the_ring_may_be_lost_together_with_the_nvram(void **state)
{
	uint64_t pages[PAGES_MAX];
	uint32_t count = 1;

	(void)state;
	for (uint32_t n = 0; n < count; n++) {
		struct model *model = make();
		struct record_statistics sealed = figures(model);

		count = ring_pages(model, 0, pages);
		lose_page(model->nand, pages[n]);
		recover(model, &sealed);
		end(model);
	}
	print_message("%u pages\n", count);
	assert_true(count > 10);
}

/* Any two of the last root, and any two of its list. */
static void test_as_many_pages_of_a_root_may_be_lost_as_there_are_parities(void **state)
{
	(void)state;
	for (int of_kills = 0; of_kills <= 1; of_kills++) {
		uint32_t count = PARITY;

		for (uint32_t n = 0; n + 1 < count; n++) {
			struct model *model = make();
			struct record_statistics sealed = figures(model);
			uint64_t root, kills, pages[PAGES_MAX];

			last_serials(model, &root, &kills);
			count = ring_pages(model, of_kills ? kills : root, pages);
			assert_true(count >= 1 + PARITY);
			lose_page(model->nand, pages[n]);
			lose_page(model->nand, pages[count - 1]);
			recover(model, &sealed);
			end(model);
		}
	}
}

/* Then the root before it leads further back, as the log says. */
static void test_with_more_of_them_the_root_before_is_found_and_the_log_says_so(void **state)
{
	struct model *model = make();
	uint64_t root, kills, pages[PAGES_MAX];

	(void)state;
	last_serials(model, &root, &kills);
	uint32_t count = ring_pages(model, root, pages);

	for (uint32_t n = 0; n < PARITY + 1; n++)
		lose_page(model->nand, pages[n * (count - 1) / PARITY]);
	recover(model, NULL);
	assert_int_equal(came_back, 1);
	end(model);
}

static void test_with_a_lost_root_the_one_before_is_found_with_its_own_list(void **state)
{
	struct model *model = make();
	uint64_t root, list, lost, list_of_lost;
	struct found_root found;

	(void)state;
	last_serials(model, &root, &list);
	assert_int_equal(roots_write(inside(model)), 0);
	merge_some(model, 2);
	last_serials(model, &lost, &list_of_lost);
	assert_true(lost > list);
	lose_pages_of(model, lost);
	assert_int_equal(root_find(model->nand, &found), 0);
	assert_int_equal(found.lost, lost);
	assert_int_equal(found.header.serial, root);
	assert_non_null(found.list);
	assert_int_equal(found.list_header.serial, list);
	root_found_free(&found);
	end(model);
}

static void test_a_new_device_has_two_roots(void **state)
{
	(void)state;
	for (uint32_t first = 0; first < 4; first++) {
		struct model *model = calloc(1, sizeof(*model));

		assert_non_null(model);
		model_open(model, &nand, &options);
		lose_page(model->nand, first);
		recover(model, NULL);
		end(model);
	}
}

static struct sealed_segment newest_of(const struct model *model, uint32_t row)
{
	struct sealed_segment newest = { .segment = NO_SEGMENT };

	row_index_read_last(inside(model)->rows[row].index, &newest, 1);
	return newest;
}

static void seal_in_row(struct model *model, uint32_t row)
{
	uint32_t before = newest_of(model, row).segment;

	while (newest_of(model, row).segment == before)
		assert_true(model_transaction(model, true, false));
}

static void lose_last_page(struct model *model, uint32_t segment)
{
	lose_page(model->nand, segment_page(&inside(model)->geometry, segment + 1) - 1);
}

/*
 * A row's newest segment was still being programmed when the power failed, and no parity gives its
 * last page back.
 */
static void test_of_each_row_the_segment_is_left_out_whose_last_page_was_cut_off(void **state)
{
	struct engine_options own = options;

	(void)state;
	own.muninn.parity = MUNINN_PARITY_NONE;
	for (uint32_t row = 0; row < options.muninn.rows; row++) {
		struct model *model = make_with(&own);
		struct record_statistics sealed;

		assert_int_equal(roots_write(inside(model)), 0);
		for (uint32_t n = 0; n < options.muninn.rows; n++)
			seal_in_row(model, n);
		sealed = figures(model);
		lose_last_page(model, newest_of(model, row).segment);
		recover(model, NULL);
		assert_int_equal(figures(model).segments_sealed, sealed.segments_sealed - 1);
		end(model);
	}
}

/* The page of an earlier one is lost, and nothing else of it. */
static void test_only_the_newest_segment_is_taken_for_one_that_was_cut_off(void **state)
{
	struct engine_options own = options;

	(void)state;
	own.muninn.parity = MUNINN_PARITY_NONE;
	own.muninn.rows = 1;
	for (uint32_t is_newest = 0; is_newest <= 1; is_newest++) {
		struct model *model = make_with(&own);
		struct record_statistics sealed;
		uint32_t segments[2];

		assert_int_equal(roots_write(inside(model)), 0);
		for (uint32_t n = 0; n < 2; n++) {
			seal_in_row(model, 0);
			segments[n] = newest_of(model, 0).segment;
		}
		sealed = figures(model);
		lose_last_page(model, segments[is_newest]);
		recover(model, NULL);
		assert_int_equal(figures(model).segments_sealed,
				 sealed.segments_sealed - is_newest);
		end(model);
	}
}

static void program(struct model *model, uint64_t page, const struct page_spare *spare,
		    const uint8_t data[512])
{
	uint8_t spare_bytes[512] = { 0 };
	const struct nand_page_io io = { .page = page,
					 .data = (uint8_t *)data,
					 .spare = spare_bytes };

	page_spare_encode(spare, spare_bytes);
	assert_int_equal(nand_program(model->nand, NAND_CAUSE_USER, &io, 1), 0);
}

/* The page that begins a root of this device, if it had been formatted with other options. */
static void make_root_page(const struct model *model, const struct engine_options *other,
			   uint8_t data[512])
{
	struct muninn_geometry geometry;

	assert_int_equal(
		muninn_geometry_choose(&nand, &other->records, &other->muninn, &geometry, NULL), 0);
	memset(data, 0, 512);
	put_le64(data, ROOT_MAGIC);
	header_write(data + ROOT_HEADER_BYTES, &geometry, nand_uuid(model->nand));
}

/* A large record may be the image of a root. It is looked at when all of the ring is lost. */
static void test_nothing_that_a_user_writes_is_taken_for_a_root(void **state)
{
	const struct page_spare of_record = { .kind = PAGE_KIND_RECORDS, .large = true };
	struct model *model = calloc(1, sizeof(*model));
	struct engine_options other = options;
	uint8_t data[512], spare[512];
	struct found_root found;
	uint64_t page = 0, ring;

	(void)state;
	assert_non_null(model);
	other.muninn.segment_pages *= 4;
	model_open(model, &nand, &options);
	make_root_page(model, &other, data);
	ring = segment_page(&inside(model)->geometry, inside(model)->geometry.root_segments);
	for (; page < ring; page++) {
		const struct nand_page_io io = { .page = page, .spare = spare };

		if (nand_read(model->nand, NAND_CAUSE_USER, &io, 1) == 0)
			lose_page(model->nand, page);
	}
	program(model, ring, &of_record, data);
	assert_int_equal(root_find(model->nand, &found), -ENOENT);
	/* Nor was its geometry taken. */
	assert_int_equal(found.geometry.segment_pages, 0);
	root_found_free(&found);
	model_close(model);
}

/* ---- with NVRAM ---- */

static void mend_all(struct model *model)
{
	const struct record_keep keep = { .bounds = NULL };
	struct record_merge merge = { .choice = RECORD_MERGE_MENDED };

	while (model->store->operations->damaged(model->store))
		assert_int_equal(model->store->operations->merge(model->store, &keep, &merge), 0);
}

static void test_the_last_root_is_written_anew_when_the_scrubber_finds_it_damaged(void **state)
{
	struct model *model = make();

	(void)state;
	assert_int_equal(scrub_all(model).repaired, 0);
	lose_pages_of(model, 0);
	model_crash(model);
	model_check_all(model);
	assert_true(scrub_all(model).repaired > 0);
	assert_false(roots_last_is_whole(inside(model)));
	mend_all(model);
	assert_true(roots_last_is_whole(inside(model)));
	/* Those that are left of older ones are nobody's loss. */
	assert_int_equal(scrub_all(model).repaired, 0);
	model_check_all(model);
	struct record_statistics sealed = figures(model);

	recover(model, &sealed);
	end(model);
}

/* Its list can be read. With NVRAM nothing comes back, and so the log does not say it. */
static void test_a_root_that_is_lost_alone_is_written_anew_too(void **state)
{
	struct model *model = make();
	uint64_t root, kills;

	(void)state;
	last_serials(model, &root, &kills);
	lose_pages_of(model, root);
	assert_true(scrub_all(model).repaired > 0);
	mend_all(model);
	assert_true(roots_last_is_whole(inside(model)));
	assert_int_equal(came_back, 0);
	end(model);
}

static void test_lost_pages_of_older_roots_are_no_loss(void **state)
{
	struct model *model = make();
	uint64_t before, kills;

	(void)state;
	last_serials(model, &before, &kills);
	assert_int_equal(roots_write(inside(model)), 0);
	lose_pages_of(model, before);
	assert_int_equal(scrub_all(model).repaired, 0);
	assert_int_equal(model->store->operations->damaged(model->store), 0);
	end(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_page_of_the_ring_may_be_lost_together_with_the_nvram),
		cmocka_unit_test(test_as_many_pages_of_a_root_may_be_lost_as_there_are_parities),
		cmocka_unit_test(
			test_with_more_of_them_the_root_before_is_found_and_the_log_says_so),
		cmocka_unit_test(test_with_a_lost_root_the_one_before_is_found_with_its_own_list),
		cmocka_unit_test(test_a_new_device_has_two_roots),
		cmocka_unit_test(
			test_of_each_row_the_segment_is_left_out_whose_last_page_was_cut_off),
		cmocka_unit_test(test_only_the_newest_segment_is_taken_for_one_that_was_cut_off),
		cmocka_unit_test(test_nothing_that_a_user_writes_is_taken_for_a_root),
		cmocka_unit_test(
			test_the_last_root_is_written_anew_when_the_scrubber_finds_it_damaged),
		cmocka_unit_test(test_a_root_that_is_lost_alone_is_written_anew_too),
		cmocka_unit_test(test_lost_pages_of_older_roots_are_no_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
