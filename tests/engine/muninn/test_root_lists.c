/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Lists of changes behind a root: groups that became complete since and segments that were merged
 * away are known when NVRAM is lost, wherever the power failed, and no root is written for them.
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
#include "engine/muninn/directory.h"
#include "engine/muninn/renew.h"
#include "engine/muninn/repair.h"
#include "engine/muninn/root_find.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "nand/faults.h"
#include "nand/power.h"
#include "nand/private.h"
#include "tests/engine/muninn/lost_nvram.h"
#include "tests/engine/small_flash.h"

/* For a list full of groups. */
static const struct nand_geometry large = SMALL_FLASH(2000);

/* Takes the last segment of a row's growing group out as a merge does. */
static void kill_last_segment(struct muninn_store *store, uint16_t row)
{
	struct row_index *index = store->rows[row].index;
	struct sealed_segment facts;

	row_index_read_member(index, row_index_members(index) - 1, &facts);
	const struct root_kill kill = {
		.segment = facts.segment,
		.row = row,
		.member = (uint16_t)facts.member,
		.group = facts.group,
		.serial = facts.serial,
	};

	row_index_take_out(index, &facts);
	store->segment_rows[facts.segment] = NO_ROW;
	assert_int_equal(roots_write_kills(store, &kill, 1), 0);
	space_release(&store->space, facts.segment);
}

static uint32_t complete_groups(const struct muninn_store *store)
{
	uint32_t groups = 0;

	for (uint32_t row = 0; row < store->geometry.rows; row++)
		groups += row_index_groups(store->rows[row].index);
	return groups;
}

/* Puts until so many more groups are complete than before. */
static void complete_some(struct device *device, uint32_t more)
{
	uint32_t wanted = complete_groups(device_store(device)) + more;

	while (complete_groups(device_store(device)) < wanted)
		device_commit(device, 1);
	roots_finish(device_store(device));
}

/* Writes roots until one is the first of a segment, so that lists have space behind it. */
static uint64_t begin_ring_segment(struct device *device)
{
	struct muninn_store *store = device_store(device);
	uint64_t segment = state_read(store, STATE_ROOT_SEGMENT_AT);

	while (state_read(store, STATE_ROOT_SEGMENT_AT) == segment)
		assert_int_equal(roots_write(store), 0);
	return store->root_serial;
}

/* On a device with many rows a root takes hundreds of pages, and a list one. */
static void test_complete_groups_are_told_by_a_list_until_that_is_full(void **state)
{
	struct device *device = device_new_of(&large, 2, BLOOM_HOT_ROWS_FINALISE, 19);
	struct muninn_store *store = device_store(device);
	struct found_root found;
	uint64_t root;

	(void)state;
	root = begin_ring_segment(device);
	complete_some(device, 3);
	assert_int_equal(store->root_serial, root);
	assert_int_equal(root_find(device->nand, &found), 0);
	assert_int_equal(found.header.serial, root);
	assert_non_null(found.list);
	assert_int_equal(found.list_header.groups, 3);
	assert_int_equal(found.entry_count, found.header.count + 3);
	root_found_free(&found);

	while (store->root_serial == root)
		complete_some(device, 1);
	assert_int_equal(root_find(device->nand, &found), 0);
	assert_int_equal(found.header.serial, store->root_serial);
	assert_int_equal(found.entry_count, complete_groups(store));
	assert_null(found.list);
	root_found_free(&found);
	device_free(device);
}

static void test_groups_that_are_complete_since_the_root_are_found(void **state)
{
	struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 20);
	struct muninn_store *store = device_store(device);
	uint32_t groups;
	struct error_text error;

	(void)state;
	/* The root names segments that are complete later; the growing groups get new ones. */
	device_commit(device, 20);
	begin_ring_segment(device);
	complete_some(device, 3);
	device_commit(device, 5);
	assert_true(store->list_groups >= 3);
	for (uint16_t row = 0; row < 2; row++)
		if (row_index_members(store->rows[row].index))
			kill_last_segment(store, row);
	groups = complete_groups(store);
	device_note_answers(device);
	device_lose_nvram(device);
	assert_int_equal(device_open(device, true, &error), 0);
	device_check_answers(device);
	assert_int_equal(complete_groups(device_store(device)), groups);
	device_free(device);
}

/* Both would go to one directory. */
/* Seals as a thread does, until a row's image is on flash and its next group has not begun. */
static uint32_t seal_until_image_counts(struct device *device)
{
	const struct record_store_operations *operations = device->store->operations;
	struct muninn_store *store = device_store(device);

	for (;;) {
		int number = operations->seal_take(device->store), more = number >= 0;

		if (!more)
			device_commit(device, 1);
		while (more == 1 && store->rows[number].sealing.stage != SEAL_GROUP) {
			operations->seal_run(device->store, number);
			more = operations->seal_step(device->store, number);
		}
		if (more == 1)
			return (uint32_t)number;
	}
}

/* Otherwise the list would name an entry that has ended. */
static void test_an_image_is_not_written_anew_before_a_list_names_it(void **state)
{
	struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 26);
	struct muninn_store *store = device_store(device);
	struct found_root found;
	struct sealing *sealing;
	const uint8_t *entry;
	uint32_t row;

	(void)state;
	begin_ring_segment(device);
	row = seal_until_image_counts(device);
	sealing = &store->rows[row].sealing;
	entry = sealing->entry;
	assert_non_null(entry);
	repair_note_image(store, row, get_le32(entry + DIRECTORY_GROUP_AT),
			  directory_image_page(&store->geometry, entry, 0));
	assert_int_equal(renew_next(store), 0);
	assert_int_not_equal(sealing->stage, SEAL_GROUP);
	while (device->store->operations->seal_step(device->store, (int)row) == 1)
		device->store->operations->seal_run(device->store, (int)row);
	assert_int_equal(roots_finish(store), 0);
	assert_int_equal(root_find(device->nand, &found), 0);
	for (uint32_t n = 0; n < found.entry_count; n++)
		assert_int_not_equal(get_le64(found.entries +
					      (uint64_t)n * store->geometry.root_entry_bytes +
					      DIRECTORY_LIVE_AT),
				     0);
	root_found_free(&found);
	device_free(device);
}

static void test_a_root_follows_before_the_directory_has_no_space_for_root_and_list(void **state)
{
	struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 21);
	struct muninn_store *store = device_store(device);
	uint32_t listed = 0;
	uint64_t root;

	(void)state;
	root = begin_ring_segment(device);
	store->root_entries = store->geometry.directory_entries - 2;
	while (store->root_serial == root) {
		listed = store->list_groups;
		complete_some(device, 1);
	}
	assert_in_range(listed, 1, 2);
	device_free(device);
}

static void expect_root(struct device *device, uint64_t earlier)
{
	struct muninn_store *store = device_store(device);
	struct found_root found;

	assert_true(store->root_serial > earlier);
	assert_int_equal(root_find(device->nand, &found), 0);
	assert_int_equal(found.header.serial, store->root_serial);
	assert_null(found.list);
	root_found_free(&found);
}

static void set_program_failure(struct device *device, double probability)
{
	struct nand_faults faults = nand_faults_default();
	struct error_text error;

	faults.on = 1U << NAND_FAULT_PROGRAM;
	faults.program_failure = probability;
	assert_int_equal(nand_set_faults(device->nand, &faults, &error), 0);
}

/* It would leave out what the next list has no space for: so the root says all of it. */
static void test_a_root_stands_in_for_a_list_that_can_t_be_written(void **state)
{
	struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 23);
	struct muninn_store *store = device_store(device);
	uint32_t blocks = store->geometry.segment_blocks, at = 0, none = 0, all = UINT32_MAX;
	uint64_t root = begin_ring_segment(device);
	const uint8_t *entry;
	bool complete;

	(void)state;
	complete_some(device, 1);
	entry = directory_next(store, &at);
	/* It fails, and somebody else ends it before who met that; ... */
	assert_int_equal(roots_begin_group(store, get_le32(entry + DIRECTORY_ROW_AT), entry), 0);
	set_program_failure(device, 1);
	assert_int_equal(roots_run(store, &all, &complete), -EIO);
	set_program_failure(device, 0);
	assert_int_equal(roots_finish(store), 0);
	expect_root(device, root);
	root = begin_ring_segment(device);
	/* ... it fails on its way ... */
	assert_int_equal(roots_begin_group(store, get_le32(entry + DIRECTORY_ROW_AT), entry), 0);
	assert_int_equal(roots_run(store, &none, &complete), 0);
	assert_int_equal(roots_end(store, -EIO), 0);
	expect_root(device, root);
	root = begin_ring_segment(device);
	/* ... or has no place to begin with. */
	assert_int_equal(nand_mark_bad(device->nand,
				       (uint32_t)state_read(store, STATE_ROOT_SEGMENT_AT) * blocks),
			 0);
	assert_int_equal(roots_begin_group(store, get_le32(entry + DIRECTORY_ROW_AT), entry), 0);
	assert_int_equal(roots_finish(store), 0);
	expect_root(device, root);
	device_free(device);
}

static uint32_t lost_segments_logged;

static void note_lost_segments(enum log_level level, const char *line)
{
	(void)level;
	lost_segments_logged += strstr(line, "are lost, too") != NULL;
}

/* The power fails at operation number `after`, and takes the NVRAM along. False: got through. */
static bool cut_completion(struct device *device, uint64_t after)
{
	const struct nand_power_cut cut = { .after = after, .nvram = NAND_CUT_NVRAM_KEPT };
	struct muninn_store *store = device_store(device);
	uint32_t wanted = complete_groups(store) + 2;
	struct nand_power_status status;
	struct error_text error;
	uint64_t sealed;

	assert_int_equal(nand_arm_power_cut(device->nand, &cut, &error), 0);
	do {
		device->store->operations->begin(device->store, 0);
		if (device_put(device, 10))
			break;
		device->store->operations->commit(device->store);
	} while (complete_groups(store) < wanted);
	nand_power_status(device->nand, &status);
	nand_disarm_power_cut(device->nand);
	sealed = device_segments_sealed(device);
	lost_segments_logged = 0;
	log_configure(note_lost_segments, LOG_LEVEL_ERROR);
	device_lose_nvram(device);
	assert_int_equal(nand_power_on(device->nand), 0);
	assert_int_equal(device_open(device, true, &error), 0);
	/* One that was programmed to its end may not have counted yet. */
	assert_in_range(device_segments_sealed(device), sealed, sealed + 1);
	assert_int_equal(lost_segments_logged, 0);
	device_say_nothing();
	return status.off;
}

static void test_a_completion_cut_at_any_point_leaves_a_root_that_can_be_recovered_from(
	void **state)
{
	uint64_t after = 0;
	bool was_cut = true;

	(void)state;
	for (; was_cut; after++) {
		struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 22);

		begin_ring_segment(device);
		complete_some(device, 1);
		assert_int_equal(device_store(device)->list_groups, 1);
		was_cut = cut_completion(device, after);
		device_free(device);
	}
	print_message("%llu operations\n", (unsigned long long)after - 1);
	assert_true(after > 20);
}

static void test_what_was_sealed_and_merged_away_since_the_root_stays_away(void **state)
{
	struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 16);
	struct error_text error;

	(void)state;
	device_commit(device, 10);
	device->store->operations->close(device->store, true);
	assert_int_equal(device_open(device, false, &error), 0);
	roots_write(device_store(device));
	device_commit(device, 10);
	for (uint16_t row = 0; row < 2; row++)
		kill_last_segment(device_store(device), row);
	device_note_answers(device);
	device_lose_nvram(device);
	assert_int_equal(device_open(device, true, &error), 0);
	device_check_answers(device);
	device_free(device);
}

/* A thread is about to append a root. A merge that ends then lets it end first. */
static void test_a_list_of_kills_goes_behind_a_root_that_is_under_way(void **state)
{
	struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 17);
	struct error_text error;
	uint32_t pages = 0;
	bool complete;

	(void)state;
	device_run(device, 500);
	assert_int_equal(roots_write(device_store(device)), 0);
	assert_int_equal(roots_begin(device_store(device)), 0);
	assert_int_equal(roots_run(device_store(device), &pages, &complete), 0);
	assert_false(complete);
	assert_true(roots_are_under_way(device_store(device)));
	for (uint16_t row = 0; row < 2; row++)
		kill_last_segment(device_store(device), row);
	assert_false(roots_are_under_way(device_store(device)));
	assert_true(roots_last_is_whole(device_store(device)));
	device_note_answers(device);
	device_lose_nvram(device);
	assert_int_equal(device_open(device, true, &error), 0);
	device_check_answers(device);
	device_free(device);
}

/*
 * A merge of all it can, at whose operation number `after` the process ends. False: it got through.
 */
static bool cut_merge(struct device *device, uint64_t after)
{
	const struct nand_power_cut cut = { .after = after, .nvram = NAND_CUT_NVRAM_KEPT };
	const struct record_keep keep = { 0 };
	struct record_merge merge = { .segments_wanted = 4, .live_permille_max = 1000 };
	struct nand_power_status status;
	struct error_text error;

	assert_int_equal(nand_arm_power_cut(device->nand, &cut, &error), 0);
	device->store->operations->merge(device->store, &keep, &merge);
	nand_power_status(device->nand, &status);
	if (!status.off) {
		nand_disarm_power_cut(device->nand);
		return false;
	}
	device->store->operations->close(device->store, false);
	assert_int_equal(nand_power_on(device->nand), 0);
	if (device_open(device, false, &error))
		fail_msg("cut after %llu: %s", (unsigned long long)after, error.text);
	return true;
}

/* What it freed is written again before the NVRAM is lost. */
static void test_a_merge_cut_at_any_point_leaves_a_root_that_can_be_recovered_from(void **state)
{
	struct error_text error;
	uint64_t after = 0;
	bool cut = true;

	(void)state;
	for (; cut; after++) {
		struct device *device = device_new(BLOOM_HOT_ROWS_FINALISE, 51);

		device_commit(device, 120);
		assert_int_equal(roots_write(device_store(device)), 0);
		cut = cut_merge(device, after);
		device_commit(device, 20);
		device_note_answers(device);
		device_lose_nvram(device);
		if (device_open(device, true, &error))
			fail_msg("cut after %llu: %s", (unsigned long long)after, error.text);
		device_check_answers(device);
		device_free(device);
	}
	print_message("a merge of %llu operations\n", (unsigned long long)after - 1);
	assert_true(after > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_complete_groups_are_told_by_a_list_until_that_is_full),
		cmocka_unit_test(test_a_root_stands_in_for_a_list_that_can_t_be_written),
		cmocka_unit_test(test_groups_that_are_complete_since_the_root_are_found),
		cmocka_unit_test(test_an_image_is_not_written_anew_before_a_list_names_it),
		cmocka_unit_test(
			test_a_root_follows_before_the_directory_has_no_space_for_root_and_list),
		cmocka_unit_test(
			test_a_completion_cut_at_any_point_leaves_a_root_that_can_be_recovered_from),
		cmocka_unit_test(test_what_was_sealed_and_merged_away_since_the_root_stays_away),
		cmocka_unit_test(test_a_list_of_kills_goes_behind_a_root_that_is_under_way),
		cmocka_unit_test(
			test_a_merge_cut_at_any_point_leaves_a_root_that_can_be_recovered_from),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
