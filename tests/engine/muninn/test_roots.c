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
#include "engine/muninn/index/bloom.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "engine/open.h"
#include "nand/power.h"
#include "nand/private.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/small_flash.h"

enum { KEYS = 200, VALUE_MAX = 300, BOUNDS = 4, PUTS_MAX = 20, FREE_MIN = 120 };

static const struct nand_geometry shape = SMALL_FLASH(500);

/* What a look-up gives. */
struct answer {
	int result;
	struct record_info info;
	uint8_t value[VALUE_MAX];
};

struct device {
	struct engine_options options;
	struct nand *nand;
	struct record_store *store;
	uint64_t random;
	struct answer before[KEYS][BOUNDS];
	uint64_t segments_sealed;
	uint64_t last; /* the last committed command that had records sealed, or one before it */
	struct answer without_last[KEYS]; /* the newest before that */
	uint64_t bounds[BOUNDS];
};

static uint32_t below(struct device *device, uint32_t limit)
{
	return (uint32_t)(hash_mix(device->random++) % limit);
}

static struct muninn_store *inside(struct device *device)
{
	return (struct muninn_store *)(void *)device->store;
}

static int open_device(struct device *device, bool recover, struct error_text *error)
{
	struct engine_options options = device->options;

	options.records.recover_without_nvram = recover;
	*error = (struct error_text){ "" };
	return engine_open_records(device->nand, &options, &device->store, error);
}

static void discard_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static struct device *new_device(enum bloom_hot_rows hot_rows, uint64_t seed)
{
	struct device *device = calloc(1, sizeof(*device));
	struct error_text error = { "" };
	uint64_t nvram_bytes;

	assert_non_null(device);
	log_configure(discard_line, LOG_LEVEL_ERROR);
	device->random = seed << 32;
	device->options = (struct engine_options){ .muninn.index = index_under_test(),
						   .muninn.rows = 2,
						   .muninn.segment_pages = 8,
						   .muninn.record_bytes = 128,
						   .muninn.bloom.hot_rows = hot_rows };
	/* More pages than hash functions give most keys. */
	if (hot_rows == BLOOM_HOT_ROWS_SPREAD)
		device->options.muninn.segment_pages = 16;
	if (engine_nvram_bytes(&shape, &device->options, &nvram_bytes, &error) ||
	    nand_open_memory(&shape, nvram_bytes, &device->nand, &error) ||
	    engine_format(device->nand, &device->options, &error) ||
	    open_device(device, false, &error))
		fail_msg("%s", error.text);
	return device;
}

static void free_device(struct device *device)
{
	if (device->store)
		device->store->operations->close(device->store, false);
	assert_int_equal(nand_close(device->nand), 0);
	log_configure(NULL, LOG_LEVEL_WARNING);
	free(device);
}

static enum record_class class_of_keys = RECORD_CLASS_DATA;

static struct record_key key_of(uint32_t number)
{
	return (struct record_key){ .class = class_of_keys,
				    .partition = 1,
				    .identifier = 0x10000 + number };
}

static int put_some(struct device *device, uint32_t count)
{
	uint8_t value[VALUE_MAX];
	int result = 0;

	for (uint32_t n = 0; n < count && !result; n++) {
		struct record_key key = key_of(below(device, KEYS));
		bool ends = below(device, 20) == 0;

		memset(value, (int)below(device, 256), sizeof(value));
		result = device->store->operations->put(
			device->store, &key, 1, ends ? RECORD_TOMBSTONE : 0, value,
			ends ? 0 : 20 + below(device, VALUE_MAX - 20), false);
	}
	return result;
}

static void merge_when_low(struct device *device)
{
	const struct record_keep keep = { 0 }; /* the present is all */
	struct record_merge merge = { .segments_wanted = 1 + below(device, 4),
				      .live_permille_max = 950 };
	struct record_statistics statistics = { 0 };

	for (int i = 0; i < 1000; i++) {
		device->store->operations->statistics(device->store, &statistics);
		if (statistics.segments_free >= FREE_MIN)
			return;
		int result = device->store->operations->merge(device->store, &keep, &merge);

		assert_true(result == 0 || result == -EAGAIN);
	}
	fail_msg("a thousand merges free nothing");
}

static void run_transactions(struct device *device, uint32_t count)
{
	for (uint32_t n = 0; n < count; n++) {
		device->store->operations->begin(device->store, 0);
		assert_int_equal(put_some(device, 1 + below(device, PUTS_MAX)), 0);
		if (below(device, 20))
			device->store->operations->commit(device->store);
		else
			device->store->operations->abort(device->store);
		merge_when_low(device);
	}
}

static struct answer ask(struct device *device, uint32_t number, uint64_t bound)
{
	struct record_key key = key_of(number);
	struct answer answer = { .result = 0 };

	answer.result = device->store->operations->get(device->store, &key, bound, answer.value,
						       sizeof(answer.value), &answer.info);
	return answer;
}

static void expect_answer(uint32_t number, uint64_t bound, const struct answer *found,
			  const struct answer *expected)
{
	if (found->result != expected->result || found->info.sequence != expected->info.sequence)
		fail_msg("key %u up to %llu: result %d, sequence %llu; not %d, %llu", number,
			 (unsigned long long)bound, found->result,
			 (unsigned long long)found->info.sequence, expected->result,
			 (unsigned long long)expected->info.sequence);
	assert_int_equal(found->info.length, expected->info.length);
	assert_memory_equal(found->value, expected->value, found->info.length);
}

static uint64_t segments_sealed(struct device *device)
{
	struct record_statistics statistics = { 0 };

	device->store->operations->statistics(device->store, &statistics);
	return statistics.segments_sealed;
}

/* Notes what can be found without the buffers. Of a command that is under way nothing counts. */
static void note_answers(struct device *device)
{
	struct muninn_store *store = inside(device);

	for (uint32_t row = 0; row < store->geometry.rows; row++)
		row_cut(store, row, 0);
	device->segments_sealed = segments_sealed(device);
	device->last = min_u64(state_read(store, STATE_SEALED_AT), store->committed);
	for (int n = 0; n < BOUNDS; n++)
		device->bounds[n] = n ? 1 + below(device, (uint32_t)store->committed)
				      : store->committed;
	for (uint32_t number = 0; number < KEYS; number++) {
		for (int n = 0; n < BOUNDS; n++)
			device->before[number][n] = ask(device, number, device->bounds[n]);
		device->without_last[number] = ask(device, number, device->last - 1);
	}
}

static void lose_nvram(struct device *device)
{
	uint64_t bytes;
	uint8_t *nvram = nand_nvram(device->nand, &bytes);

	device->store->operations->close(device->store, false);
	device->store = NULL;
	memset(nvram, 0, bytes);
}

static bool is_aborted(struct device *device, uint64_t sequence)
{
	struct visibility visibility = store_visibility(inside(device), RECORD_NEWEST);

	return !sequence_is_visible(&visibility, sequence);
}

/* Returns whether the last command on flash was taken for an interrupted one. */
static bool check_answers(struct device *device)
{
	bool last_left_out = is_aborted(device, device->last);

	/* None that was merged away has come back. */
	assert_int_equal(segments_sealed(device), device->segments_sealed);

	for (uint32_t number = 0; number < KEYS; number++) {
		struct answer newest = ask(device, number, RECORD_NEWEST);

		expect_answer(number, RECORD_NEWEST, &newest,
			      last_left_out ? &device->without_last[number]
					    : &device->before[number][0]);
		for (int n = 1; n < BOUNDS; n++) {
			struct answer found = ask(device, number, device->bounds[n]);

			if (device->bounds[n] < device->last || !last_left_out)
				expect_answer(number, device->bounds[n], &found,
					      &device->before[number][n]);
		}
	}
	return last_left_out;
}

static void go_through_losses(enum bloom_hot_rows hot_rows, int rounds)
{
	struct device *device = new_device(hot_rows, 1 + hot_rows);
	struct record_statistics statistics = { 0 };
	struct error_text error;
	int under_way = 0, left_out = 0;

	for (int round = 0; round < rounds; round++) {
		bool interrupt = round % 3 == 0;

		run_transactions(device, 1 + below(device, 200));
		if (interrupt) {
			device->store->operations->begin(device->store, 0);
			assert_int_equal(put_some(device, 120), 0);
			under_way += inside(device)->sealed_running;
		}
		note_answers(device);
		lose_nvram(device);
		if (open_device(device, true, &error))
			fail_msg("round %d: %s", round, error.text);
		left_out += check_answers(device);
		/* Once more, without anything in between. */
		lose_nvram(device);
		assert_int_equal(open_device(device, true, &error), 0);
		check_answers(device);
	}
	device->store->operations->statistics(device->store, &statistics);
	print_message("%d losses, %d with sealed records of a command under way; %d last commands "
		      "taken for interrupted; %llu tables\n",
		      rounds, under_way, left_out, (unsigned long long)statistics.tables);
	assert_true(under_way > 3 && left_out < rounds && statistics.tables > 0);
	free_device(device);
}

static void test_what_was_sealed_is_found_without_nvram_and_nothing_else(void **state)
{
	(void)state;
	go_through_losses(BLOOM_HOT_ROWS_FINALISE, 60);
}

static void test_the_same_holds_of_history_s_row_which_has_two_buffers(void **state)
{
	(void)state;
	class_of_keys = RECORD_CLASS_HISTORY;
	go_through_losses(BLOOM_HOT_ROWS_FINALISE, 30);
	class_of_keys = RECORD_CLASS_DATA;
}

static void test_the_same_holds_where_hot_keys_are_spread(void **state)
{
	(void)state;
	go_through_losses(BLOOM_HOT_ROWS_SPREAD, 40);
}

static void test_lost_nvram_is_refused_and_the_message_names_the_option(void **state)
{
	struct device *device = new_device(BLOOM_HOT_ROWS_FINALISE, 9);
	struct error_text error;

	(void)state;
	run_transactions(device, 500);
	device->store->operations->set_memo(device->store, 1);
	lose_nvram(device);
	assert_int_equal(open_device(device, false, &error), -EINVAL);
	assert_non_null(strstr(error.text, "recover_without_nvram"));
	assert_int_equal(open_device(device, true, &error), 0);
	/* Who keeps one can tell by that. */
	assert_int_equal(device->store->operations->memo(device->store), 0);
	free_device(device);
}

static void test_an_older_nvram_is_refused(void **state)
{
	struct device *device = new_device(BLOOM_HOT_ROWS_FINALISE, 10);
	struct error_text error;
	uint64_t bytes;
	uint8_t *nvram = nand_nvram(device->nand, &bytes), *older = malloc(bytes);

	(void)state;
	assert_non_null(older);
	run_transactions(device, 500);
	memcpy(older, nvram, bytes);
	run_transactions(device, 500);
	note_answers(device);
	device->store->operations->close(device->store, false);
	device->store = NULL;
	memcpy(nvram, older, bytes);
	assert_int_equal(open_device(device, false, &error), -EINVAL);
	assert_non_null(strstr(error.text, "older than the flash"));
	assert_int_equal(open_device(device, true, &error), 0);
	check_answers(device);
	free(older);
	free_device(device);
}

static void test_nothing_of_an_earlier_format_comes_back(void **state)
{
	struct device *device = new_device(BLOOM_HOT_ROWS_FINALISE, 11);
	struct error_text error;
	uint64_t sequence;

	(void)state;
	for (int again = 0; again < 3; again++) {
		run_transactions(device, 400);
		if (again == 2) {
			assert_int_equal(device->store->operations->begin_format(device->store, 0,
										 &sequence),
					 0);
			device->store->operations->commit(device->store);
		} else {
			device->store->operations->close(device->store, true);
			assert_int_equal(engine_format(device->nand, &device->options, &error), 0);
			assert_int_equal(open_device(device, false, &error), 0);
		}
		lose_nvram(device);
		assert_int_equal(open_device(device, true, &error), 0);
		for (uint32_t number = 0; number < KEYS; number++)
			assert_int_equal(ask(device, number, RECORD_NEWEST).result, -ENOENT);
	}
	free_device(device);
}

static void commit_some(struct device *device, uint32_t count)
{
	for (uint32_t n = 0; n < count; n++) {
		device->store->operations->begin(device->store, 0);
		assert_int_equal(put_some(device, 10), 0);
		device->store->operations->commit(device->store);
	}
}

/*
 * Without merges and aborts an older root leads to the same, since what was sealed later says so
 * itself.
 */
static void test_without_the_newest_root_the_one_before_it_is_found(void **state)
{
	struct device *device = new_device(BLOOM_HOT_ROWS_FINALISE, 14);
	uint32_t segment, earlier;
	struct error_text error;

	(void)state;
	commit_some(device, 100);
	earlier = (uint32_t)state_read(inside(device), STATE_ROOT_SEGMENT_AT);
	/* Every clean close writes a root. */
	for (int n = 0; n < 50; n++) {
		commit_some(device, 4);
		device->store->operations->close(device->store, true);
		assert_int_equal(open_device(device, false, &error), 0);
		segment = (uint32_t)state_read(inside(device), STATE_ROOT_SEGMENT_AT);
		if (segment != earlier)
			break;
	}
	assert_int_not_equal(segment, earlier);
	commit_some(device, 3);
	note_answers(device);
	lose_nvram(device);
	assert_int_equal(nand_erase(device->nand, NAND_CAUSE_USER, segment), 0);
	assert_int_equal(open_device(device, true, &error), 0);
	check_answers(device);
	free_device(device);
}

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

static void test_what_was_sealed_and_merged_away_since_the_root_stays_away(void **state)
{
	struct device *device = new_device(BLOOM_HOT_ROWS_FINALISE, 16);
	struct error_text error;

	(void)state;
	commit_some(device, 10);
	device->store->operations->close(device->store, true);
	assert_int_equal(open_device(device, false, &error), 0);
	roots_write(inside(device));
	commit_some(device, 10);
	for (uint16_t row = 0; row < 2; row++)
		kill_last_segment(inside(device), row);
	note_answers(device);
	lose_nvram(device);
	assert_int_equal(open_device(device, true, &error), 0);
	check_answers(device);
	free_device(device);
}

/* A thread is about to append a root. A merge that ends then lets it end first. */
static void test_a_list_of_kills_goes_behind_a_root_that_is_under_way(void **state)
{
	struct device *device = new_device(BLOOM_HOT_ROWS_FINALISE, 17);
	struct error_text error;
	uint32_t pages = 0;
	bool complete;

	(void)state;
	run_transactions(device, 500);
	assert_int_equal(roots_write(inside(device)), 0);
	assert_int_equal(roots_begin(inside(device)), 0);
	assert_int_equal(roots_run(inside(device), &pages, &complete), 0);
	assert_false(complete);
	assert_true(roots_are_under_way(inside(device)));
	for (uint16_t row = 0; row < 2; row++)
		kill_last_segment(inside(device), row);
	assert_false(roots_are_under_way(inside(device)));
	assert_true(roots_last_is_whole(inside(device)));
	note_answers(device);
	lose_nvram(device);
	assert_int_equal(open_device(device, true, &error), 0);
	check_answers(device);
	free_device(device);
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
	if (open_device(device, false, &error))
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
		struct device *device = new_device(BLOOM_HOT_ROWS_FINALISE, 51);

		commit_some(device, 120);
		assert_int_equal(roots_write(inside(device)), 0);
		cut = cut_merge(device, after);
		commit_some(device, 20);
		note_answers(device);
		lose_nvram(device);
		if (open_device(device, true, &error))
			fail_msg("cut after %llu: %s", (unsigned long long)after, error.text);
		check_answers(device);
		free_device(device);
	}
	print_message("a merge of %llu operations\n", (unsigned long long)after - 1);
	assert_true(after > 5);
}

/* What was not closed in good order is made stable before anything else is done. */
static void test_a_device_whose_nvram_can_t_be_made_stable_is_not_opened(void **state)
{
	const struct nand_power_cut cut = { .after = 0, .nvram = NAND_CUT_NVRAM_KEPT };
	struct device *device = new_device(BLOOM_HOT_ROWS_FINALISE, 18);
	struct error_text error = { "" };

	(void)state;
	commit_some(device, 100);
	note_answers(device);
	device->store->operations->close(device->store, false);
	device->store = NULL;
	assert_int_equal(nand_arm_power_cut(device->nand, &cut, &error), 0);
	assert_int_equal(open_device(device, false, &error), -EIO);
	assert_non_null(strstr(error.text, "NVRAM can't be made stable"));
	assert_int_equal(nand_power_on(device->nand), 0);
	assert_int_equal(open_device(device, false, &error), 0);
	for (uint32_t number = 0; number < KEYS; number++) {
		struct answer newest = ask(device, number, RECORD_NEWEST);

		expect_answer(number, RECORD_NEWEST, &newest, &device->before[number][0]);
	}
	free_device(device);
}

static void test_without_any_root_nothing_is_made_up(void **state)
{
	struct device *device = new_device(BLOOM_HOT_ROWS_FINALISE, 15);
	uint32_t ring = inside(device)->geometry.root_segments;
	struct error_text error;

	(void)state;
	commit_some(device, 300);
	lose_nvram(device);
	for (uint32_t segment = 0; segment < ring; segment++)
		assert_int_equal(nand_erase(device->nand, NAND_CAUSE_USER, segment), 0);
	assert_int_equal(open_device(device, true, &error), -ENODEV);
	assert_non_null(strstr(error.text, "not formatted"));
	assert_int_equal(open_device(device, false, &error), -ENODEV);
	free_device(device);
}

static void test_no_root_is_appended_to_a_segment_of_which_a_block_failed(void **state)
{
	struct device *device = new_device(BLOOM_HOT_ROWS_FINALISE, 41);
	struct muninn_store *store = inside(device);
	uint32_t blocks = store->geometry.segment_blocks;
	uint32_t segment;

	(void)state;
	commit_some(device, 40);
	assert_int_equal(roots_write(store), 0);
	segment = (uint32_t)state_read(store, STATE_ROOT_SEGMENT_AT);
	assert_int_equal(nand_mark_bad(device->nand, segment * blocks), 0);
	assert_int_equal(roots_write(store), 0);
	assert_int_not_equal(state_read(store, STATE_ROOT_SEGMENT_AT), segment);
	free_device(device);
}

/* What a page does not need is zero: nothing of the host's memory gets to the flash. */
static void test_spare_areas_hold_nothing_but_what_the_format_says(void **state)
{
	struct device *device = new_device(BLOOM_HOT_ROWS_FINALISE, 43);
	uint32_t usable = nand_spare_usable(&shape);
	uint32_t seen[PAGE_KIND_ROOT + 1] = { 0 };
	uint8_t spare[4096];

	(void)state;
	assert_true(usable > PAGE_SPARE_BYTES);
	run_transactions(device, 1500);
	for (uint64_t page = 0; page < (uint64_t)shape.blocks * shape.pages_per_block; page++) {
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
	free_device(device);
}

/* The pages of the image of the n-th complete group of a row. */
static uint64_t image_pages_of(const struct muninn_store *store, uint32_t row, uint32_t n)
{
	const struct row_index *index = store->rows[row].index;
	struct index_walk walk = { .at = n };
	struct sealed_segment segment;

	assert_true(row_index_next(index, &walk, &segment) && walk.at == n);
	return divide_up(get_le32(row_index_live_word(index, &segment) - DIRECTORY_LIVE_AT +
				  DIRECTORY_BYTES_AT),
			 shape.page_bytes);
}

static void test_opening_with_nvram_reads_one_page_of_the_ring(void **state)
{
	struct device *device = new_device(BLOOM_HOT_ROWS_FINALISE, 12);
	struct nand_counters before, after;
	struct error_text error;
	uint64_t image_pages = 0;

	(void)state;
	run_transactions(device, 1500);
	for (uint32_t row = 0; row < 2; row++)
		for (uint32_t n = 0; n < row_index_groups(inside(device)->rows[row].index); n++)
			image_pages += image_pages_of(inside(device), row, n);
	device->store->operations->close(device->store, true);
	nand_read_counters(device->nand, &before);
	assert_int_equal(open_device(device, false, &error), 0);
	nand_read_counters(device->nand, &after);
	assert_true(image_pages > 0);
	assert_int_equal(after.by_cause[NAND_CAUSE_RECOVERY].pages_read -
				 before.by_cause[NAND_CAUSE_RECOVERY].pages_read,
			 image_pages + 1);
	free_device(device);
}

/* The pages of growing tables, a page of each other segment, the ring, and the images. */
static void test_recovering_without_nvram_reads_a_bounded_number_of_pages(void **state)
{
	struct device *device = new_device(BLOOM_HOT_ROWS_FINALISE, 13);
	struct nand_counters before, after;
	const struct muninn_geometry *geometry = &inside(device)->geometry;
	struct error_text error;
	uint64_t most, images = 0;

	(void)state;
	run_transactions(device, 1500);
	for (uint32_t row = 0; row < 2; row++)
		images += row_index_groups(inside(device)->rows[row].index);
	most = shape.blocks +
	       (uint64_t)geometry->rows * GROUP_SEGMENTS * (geometry->segment_pages + 1) +
	       2 * geometry->root_segments * geometry->segment_pages +
	       images * divide_up(geometry->image_bytes_max, geometry->page_bytes);
	lose_nvram(device);
	nand_read_counters(device->nand, &before);
	assert_int_equal(open_device(device, true, &error), 0);
	nand_read_counters(device->nand, &after);
	print_message("%llu pages read of at most %llu\n",
		      (unsigned long long)(after.by_cause[NAND_CAUSE_RECOVERY].pages_read -
					   before.by_cause[NAND_CAUSE_RECOVERY].pages_read),
		      (unsigned long long)most);
	assert_true(after.by_cause[NAND_CAUSE_RECOVERY].pages_read -
			    before.by_cause[NAND_CAUSE_RECOVERY].pages_read <=
		    most);
	free_device(device);
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
		cmocka_unit_test(test_what_was_sealed_and_merged_away_since_the_root_stays_away),
		cmocka_unit_test(test_a_list_of_kills_goes_behind_a_root_that_is_under_way),
		cmocka_unit_test(
			test_a_merge_cut_at_any_point_leaves_a_root_that_can_be_recovered_from),
		cmocka_unit_test(test_a_device_whose_nvram_can_t_be_made_stable_is_not_opened),
		cmocka_unit_test(test_without_any_root_nothing_is_made_up),
		cmocka_unit_test(test_no_root_is_appended_to_a_segment_of_which_a_block_failed),
		cmocka_unit_test(test_spare_areas_hold_nothing_but_what_the_format_says),
		cmocka_unit_test(test_opening_with_nvram_reads_one_page_of_the_ring),
		cmocka_unit_test(test_recovering_without_nvram_reads_a_bounded_number_of_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
