/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What judging the records of a segment costs: in searches, of a key that has many of which a
 * rollback hides some, and in pages and rounds of reads. How much of that a piece does. Which of a
 * command's puts of a key are kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "common/log.h"
#include "engine/muninn/merge_run.h"
#include "engine/open.h"
#include "engine/options.h"
#include "tests/engine/lost_page.h"

enum {
	SEGMENT_PAGES = 64,
	SPARE_BYTES = 64,
	VERSIONS = 800, /* of the key, nearly a segment */
	GONE_BACK_TO = 400,
	GONE_BACK_AT = 700,
	ASKED_MAX = 16, /* for each version: whether something is hidden */
	PIECE_MAX = 256,
	AWAITED_MAX = 8,
	/* A piece ends with a candidate, or with a page, whose records it may have begun. */
	BEGUN_MAX = 4 * 512 / (28 + 8),
};

static const struct record_key hot = { .partition = 1, .identifier = 0x10000 };

struct scene {
	uint64_t first; /* number of the first version */
	uint64_t asked;
};

/* Versions GONE_BACK_TO to GONE_BACK_AT are hidden from those who look from there on. */
static bool is_hidden(void *context, const struct record_key *key, uint64_t sequence,
		      uint64_t bound)
{
	struct scene *scene = context;

	(void)key;
	scene->asked++;
	return bound >= scene->first + GONE_BACK_AT && sequence >= scene->first + GONE_BACK_TO &&
	       sequence <= scene->first + GONE_BACK_AT;
}

/* What is kept: the state right after going back, and the present. */
static uint32_t boundaries(void *context, const struct record_key *key,
			   const struct record_info *info, uint64_t *bounds, uint32_t max)
{
	const struct scene *scene = context;

	(void)key;
	(void)max;
	bounds[0] = scene->first + GONE_BACK_AT;
	return info->sequence <= bounds[0];
}

static uint64_t put(struct record_store *store, const struct record_key *key, unsigned flags)
{
	uint64_t value = 0, sequence = store->operations->begin(store, 0);

	assert_int_equal(store->operations->put(store, key, sequence, flags, &value, sizeof(value),
						RECORD_ROOM_WRITE),
			 0);
	store->operations->commit(store);
	return sequence;
}

static struct record_statistics statistics_of(struct record_store *store)
{
	struct record_statistics statistics = { 0 };

	store->operations->statistics(store, &statistics);
	return statistics;
}

/* An empty store of one row on a device in memory. */
static struct record_store *open_store(struct nand **nand)
{
	const struct nand_geometry shape = {
		.page_bytes = 512,
		.spare_bytes = SPARE_BYTES,
		.pages_per_block = 16,
		.blocks = 400,
		.channels = 1,
		.dies_per_channel = 1,
	};
	const struct engine_options options = {
		.muninn.rows = 1,
		.muninn.segment_pages = SEGMENT_PAGES,
		.muninn.record_bytes = 64,
		.muninn.bloom.hot_rows = BLOOM_HOT_ROWS_SPREAD,
	};
	struct error_text error = { "" };
	struct record_store *store;
	uint64_t nvram;

	assert_int_equal(engine_nvram_bytes(&shape, &options, &nvram, &error), 0);
	assert_int_equal(nand_open_memory(&shape, nvram, nand, &error), 0);
	assert_int_equal(engine_format(*nand, &options, &error), 0);
	assert_int_equal(engine_open_records(*nand, &options, &store, &error), 0);
	return store;
}

static void close_store(struct record_store *store, struct nand *nand)
{
	assert_int_equal(store->operations->close(store, false), 0);
	assert_int_equal(nand_close(nand), 0);
}

static void test_hidden_versions_are_passed_over_once_for_each_bound(void **state)
{
	struct scene scene = { 0 };
	const struct record_hidden asked = { .context = &scene, .is_hidden = is_hidden };
	const struct record_keep keep = { .context = &scene, .bounds = boundaries };
	struct record_merge merge = { .live_permille_max = 1000, .segments_wanted = 1 };
	struct record_store *store;
	struct record_info info;
	struct nand *nand;

	(void)state;
	store = open_store(&nand);
	scene.first = put(store, &hot, 0);
	for (uint32_t n = 1; n < VERSIONS; n++)
		put(store, &hot, 0);
	store->operations->set_hidden(store, &asked);
	/* Others fill the segment. */
	for (uint32_t n = 1; statistics_of(store).segments_sealed == 0; n++)
		put(store, &(struct record_key){ .partition = 1, .identifier = 0x10000 + n }, 0);
	scene.asked = 0;
	assert_int_equal(store->operations->merge(store, &keep, &merge), 0);
	assert_int_equal(merge.segments_freed, 1);
	/* The last before the rollback is kept, for its bound, and the newest of each key. */
	assert_true(merge.records_dropped >= VERSIONS - 3);
	assert_in_range(scene.asked, 1, ASKED_MAX * (merge.records_dropped + merge.records_moved));
	assert_int_equal(
		store->operations->get(store, &hot, scene.first + GONE_BACK_AT, NULL, 0, &info), 0);
	assert_int_equal(info.sequence, scene.first + GONE_BACK_TO - 1);
	close_store(store, nand);
}

/* As if the host had no page of the flash in memory. Returns the merge's memory. */
static struct merge_run *fetch_all(struct record_store *store)
{
	struct merge_run *run = ((struct muninn_store *)(void *)store)->merge_run;

	run->fetches_all = true;
	return run;
}

static void put_many(struct record_store *store, uint32_t count)
{
	for (uint32_t n = 0; n < count; n++)
		put(store, &(struct record_key){ .partition = 1, .identifier = 0x10000 + n }, 0);
}

/* Puts different keys until so many segments are sealed. Returns how many keys. */
static uint32_t put_segments(struct record_store *store, uint32_t segments)
{
	uint32_t count = 0;

	while (statistics_of(store).segments_sealed < segments)
		put(store, &(struct record_key){ .partition = 1, .identifier = 0x10000 + count++ },
		    0);
	return count;
}

static void test_a_segment_is_read_at_once_and_not_again_to_be_moved(void **state)
{
	const struct record_keep keep = { 0 };
	struct record_merge merge = { .live_permille_max = 1000, .segments_wanted = 1 };
	struct record_store *store;
	struct nand *nand;

	(void)state;
	store = open_store(&nand);
	put_segments(store, 3);
	fetch_all(store);
	assert_int_equal(store->operations->merge(store, &keep, &merge), 0);
	assert_int_equal(merge.segments_freed, 1);
	assert_int_equal(merge.records_dropped, 0);
	/* Four pages of each candidate come first, and a filter is wrong now and then. */
	assert_in_range(merge.pages_read, SEGMENT_PAGES,
			SEGMENT_PAGES + 4 * MERGE_CANDIDATES + SEGMENT_PAGES / 2);
	close_store(store, nand);
}

static void test_a_candidate_is_sampled_until_it_is_known_to_be_dear(void **state)
{
	const struct record_keep keep = { 0 };
	struct record_merge merge = { .live_permille_max = 200, .segments_wanted = 1 };
	struct record_store *store;
	struct nand *nand;

	(void)state;
	store = open_store(&nand);
	put_segments(store, 2 * MERGE_CANDIDATES);
	/* Nothing is put again. The first of four pages tells that a quarter is needed at least. */
	assert_int_equal(store->operations->merge(store, &keep, &merge), -EAGAIN);
	assert_in_range(merge.pages_read, MERGE_CANDIDATES / 2, 2 * MERGE_CANDIDATES);
	close_store(store, nand);
}

/* All but a few of the segment's records are superseded by others, which are all over the flash. */
static void test_what_look_ups_of_a_segment_lack_is_read_in_few_rounds(void **state)
{
	const struct record_keep keep = { 0 };
	struct record_merge merge = { .live_permille_max = 1000, .segments_wanted = 1 };
	uint32_t rounds = 0, pages = 0;
	struct record_store *store;
	struct merge_run *run;
	struct nand *nand;
	int result;

	(void)state;
	store = open_store(&nand);
	for (uint32_t round = 0; round < 2; round++)
		put_many(store, 3000);
	run = fetch_all(store);
	while ((result = store->operations->merge_step(store, &keep, &merge)) == 1) {
		rounds += run->choice.counts && run->missing_count;
		pages += run->choice.counts ? run->missing_count : 0;
		store->operations->merge_run(store);
	}
	assert_int_equal(result, 0);
	assert_true(merge.records_dropped > 100);
	print_message("%u pages in %u rounds\n", pages, rounds);
	assert_true(pages > SEGMENT_PAGES / 2);
	assert_in_range(rounds, 1, pages / 8);
	close_store(store, nand);
}

/* ---- copies ---- */

static void check_many(struct record_store *store, uint32_t count)
{
	struct record_info info;

	for (uint32_t n = 0; n < count; n++)
		assert_int_equal(
			store->operations->get(
				store,
				&(struct record_key){ .partition = 1, .identifier = 0x10000 + n },
				RECORD_NEWEST, NULL, 0, &info),
			0);
}

/* The first merge ends in the middle of a segment, as one does that has an error. */
static void test_what_a_merge_moved_before_it_ended_is_not_moved_again(void **state)
{
	const struct record_keep keep = { 0 };
	const uint32_t awaited = 1;
	struct record_merge first = { .live_permille_max = 1000,
				      .segments_wanted = 1,
				      .awaited = &awaited };
	struct record_merge second = { .live_permille_max = 1000, .segments_wanted = 1 };
	struct record_store *store;
	struct nand *nand;
	uint32_t keys;

	(void)state;
	store = open_store(&nand);
	keys = put_segments(store, 3);
	while (first.records_moved < 100) {
		assert_int_equal(store->operations->merge_step(store, &keep, &first), 1);
		store->operations->merge_run(store);
	}
	assert_int_equal(first.segments_freed, 0);
	assert_int_equal(store->operations->merge(store, &keep, &second), 0);
	assert_int_equal(second.segments_freed, 1);
	assert_int_equal(second.records_dropped, first.records_moved);
	check_many(store, keys);
	close_store(store, nand);
}

/* There are so few segments that a merge also takes those that it has filled itself. */
static void test_what_a_merge_moves_twice_is_kept(void **state)
{
	const struct record_keep keep = { 0 };
	struct record_merge merge = { .live_permille_max = 1000, .segments_wanted = 8 };
	struct record_store *store;
	struct nand *nand;
	uint32_t keys;

	(void)state;
	store = open_store(&nand);
	keys = put_segments(store, 2);
	assert_int_equal(store->operations->merge(store, &keep, &merge), 0);
	assert_true(merge.segments_freed > 2 && merge.records_moved > keys);
	assert_int_equal(merge.records_dropped, 0);
	check_many(store, keys);
	close_store(store, nand);
}

/* ---- records with a page each ---- */

enum { LARGE_BYTES = 512, LARGE = 1500 };

static void put_large(struct record_store *store, uint32_t n, uint8_t byte)
{
	const struct record_key key = { .partition = 1, .identifier = 0x10000 + n };
	uint8_t value[LARGE_BYTES];
	uint64_t sequence = store->operations->begin(store, 0);

	memset(value, byte, sizeof(value));
	assert_int_equal(store->operations->put(store, &key, sequence, 0, value, sizeof(value),
						RECORD_ROOM_WRITE),
			 0);
	store->operations->commit(store);
}

static void check_large(struct record_store *store, uint32_t n, uint8_t byte)
{
	const struct record_key key = { .partition = 1, .identifier = 0x10000 + n };
	uint8_t value[LARGE_BYTES], expected[LARGE_BYTES];
	struct record_info info;

	memset(expected, byte, sizeof(expected));
	assert_int_equal(
		store->operations->get(store, &key, RECORD_NEWEST, value, sizeof(value), &info), 0);
	assert_memory_equal(value, expected, sizeof(value));
}

/* All are put again, so the first candidate whose pages are sampled is taken. */
static void test_the_data_of_a_newer_record_with_a_page_for_itself_are_not_read(void **state)
{
	const struct record_keep keep = { 0 };
	struct record_merge merge = { .live_permille_max = 1000, .segments_wanted = 1 };
	struct record_store *store;
	struct merge_run *run;
	struct nand *nand;
	uint32_t remembered = 0;

	(void)state;
	store = open_store(&nand);
	for (uint32_t round = 1; round <= 2; round++)
		for (uint32_t n = 0; n < LARGE; n++)
			put_large(store, n, (uint8_t)round);
	assert_int_equal(store->operations->merge(store, &keep, &merge), 0);
	assert_true(merge.records_dropped > SEGMENT_PAGES / 2);
	run = ((struct muninn_store *)(void *)store)->merge_run;
	for (uint32_t n = 0; n < MERGE_PAGES; n++)
		remembered += run->pages[n].number != NO_PAGE;
	/* Those of candidates are. */
	print_message("%u pages are remembered\n", remembered);
	assert_in_range(remembered, 4, 3 * 4);
	for (uint32_t n = 0; n < LARGE; n++)
		check_large(store, n, 2);
	close_store(store, nand);
}

/* A few records of the segment are needed; the data of these alone are read. */
static void test_of_a_segment_whose_records_have_a_page_each_what_is_needed_is_read(void **state)
{
	const struct record_keep keep = { 0 };
	struct record_merge merge = { .live_permille_max = 1000, .segments_wanted = 1 };
	struct nand_counters counters;
	struct record_store *store;
	uint64_t pages, bytes;
	struct nand *nand;

	(void)state;
	store = open_store(&nand);
	for (uint32_t n = 0; n < LARGE; n++)
		put_large(store, n, 1);
	for (uint32_t n = 0; n < LARGE; n++)
		if (n % 16 != 0)
			put_large(store, n, 2);
	assert_int_equal(store->operations->merge(store, &keep, &merge), 0);
	nand_read_counters(nand, &counters);
	pages = counters.by_cause[NAND_CAUSE_MERGE].pages_read;
	bytes = counters.by_cause[NAND_CAUSE_MERGE].bytes_read;
	print_message("%llu pages, %llu bytes are read, %llu records moved\n",
		      (unsigned long long)pages, (unsigned long long)bytes,
		      (unsigned long long)merge.records_moved);
	assert_in_range(merge.records_moved, 1, SEGMENT_PAGES / 4);
	assert_true(pages > SEGMENT_PAGES);
	assert_true(bytes <= pages * SPARE_BYTES + merge.records_moved * LARGE_BYTES);
	for (uint32_t n = 0; n < LARGE; n++)
		check_large(store, n, n % 16 ? 2 : 1);
	close_store(store, nand);
}

/* ---- several puts of one command ---- */

/* Each version is kept for the moment at which it was put. */
static uint32_t own_moment(void *context, const struct record_key *key,
			   const struct record_info *info, uint64_t *bounds, uint32_t max)
{
	(void)context;
	(void)key;
	(void)max;
	bounds[0] = info->sequence;
	return 1;
}

/* Each version is kept, since there are too many moments to look at. */
static uint32_t many_moments(void *context, const struct record_key *key,
			     const struct record_info *info, uint64_t *bounds, uint32_t max)
{
	(void)context;
	(void)key;
	(void)info;
	(void)bounds;
	return max + 1;
}

/*
 * A command puts a key twice, value 1 and 2, and between that so many others, and others until so
 * many segments are sealed. Returns its number.
 */
static uint64_t put_twice(struct record_store *store, const struct record_key *key,
			  uint32_t others_between, uint32_t segments_between)
{
	uint64_t sequence = store->operations->begin(store, 0);
	uint32_t others = 0;

	for (uint64_t value = 1; value <= 2; value++) {
		while (value == 2 && (others < others_between ||
				      statistics_of(store).segments_sealed < segments_between))
			assert_int_equal(
				store->operations->put(
					store,
					&(struct record_key){ .partition = 1,
							      .identifier = 0x20000 + others++ },
					sequence, 0, &value, sizeof(value), RECORD_ROOM_WRITE),
				0);
		assert_int_equal(store->operations->put(store, key, sequence, 0, &value,
							sizeof(value), RECORD_ROOM_WRITE),
				 0);
	}
	store->operations->commit(store);
	return sequence;
}

/*
 * A command puts a key twice, with so many segments sealed between that the first one is not in the
 * last one's segment, or is. The last one alone is kept, also when newer commands have put the key.
 */
static void check_puts_of_a_command(uint32_t segments_between, const struct record_keep keep)
{
	const struct record_key key = { .partition = 1, .identifier = 7 };
	struct record_merge merge = { .live_permille_max = 1000,
				      .segments_wanted = segments_between + 1 };
	struct record_store *store;
	uint64_t sequence, value;
	struct record_info info;
	struct nand *nand;

	store = open_store(&nand);
	sequence = put_twice(store, &key, 0, segments_between);
	put(store, &key, 0);
	put_segments(store, segments_between + 1);
	assert_int_equal(store->operations->merge(store, &keep, &merge), 0);
	assert_int_equal(merge.segments_freed, segments_between + 1);
	assert_int_equal(merge.records_dropped, 1);
	assert_int_equal(
		store->operations->get(store, &key, sequence, &value, sizeof(value), &info), 0);
	assert_int_equal(info.sequence, sequence);
	assert_int_equal(value, 2);
	close_store(store, nand);
}

static void test_of_a_command_s_puts_of_a_key_the_last_one_is_kept(void **state)
{
	(void)state;
	for (uint32_t between = 0; between < 2; between++) {
		check_puts_of_a_command(between, (struct record_keep){ .bounds = own_moment });
		check_puts_of_a_command(between, (struct record_keep){ .bounds = many_moments });
	}
}

/* The flash page with a record of the key that has this value; in a sealed segment. */
static uint64_t page_of_value(struct record_store *base, const struct record_key *key,
			      uint64_t value)
{
	struct muninn_store *store = (struct muninn_store *)(void *)base;
	uint8_t data[MUNINN_PAGE_BYTES_MAX], spare_bytes[SPARE_BYTES];
	uint64_t pages = (uint64_t)store->geometry.segments * SEGMENT_PAGES;

	for (uint64_t page = 0; page < pages; page++) {
		struct nand_page_io io = { .page = page, .data = data, .spare = spare_bytes };
		struct page_record record;
		struct page_spare spare;
		struct page_view view;
		uint32_t offset = 0;

		if (store->segment_rows[page / SEGMENT_PAGES] == NO_ROW ||
		    nand_read(store->nand, NAND_CAUSE_USER, &io, 1) ||
		    !page_spare_decode(spare_bytes, store->geometry.page_bytes, &spare))
			continue;
		view = page_view_of(&spare, page, data);
		while (page_next(&view, &offset, &record))
			if (record_has_key(record.header, key) &&
			    memcmp(record.value, &value, sizeof(value)) == 0)
				return page;
	}
	fail_msg("no page has the value %llu", (unsigned long long)value);
	return 0;
}

/*
 * A command puts a key twice, to one segment or to two. While the later one can't be read, no merge
 * moves the earlier one in front of it. When it can be read again, it is what is found.
 */
static void check_later_put_lost(uint32_t segments_between, const struct record_keep keep)
{
	enum { OTHERS_BETWEEN = 200, LOST = 4, MERGES = 8 };
	const struct record_key key = { .partition = 1, .identifier = 7 };
	struct record_store *store;
	uint64_t sequence, value, page;
	struct record_info info;
	struct nand *nand;

	store = open_store(&nand);
	sequence = put_twice(store, &key, OTHERS_BETWEEN, segments_between);
	put_segments(store, 2 * segments_between + 1);
	page = page_of_value(store, &key, 2);
	assert_int_not_equal(page, page_of_value(store, &key, 1));
	lose_page(nand, page);
	for (int n = 0; n < MERGES; n++) {
		struct record_merge merge = { .live_permille_max = 1000, .segments_wanted = 1 };
		int result = store->operations->merge(store, &keep, &merge);
		int found;

		assert_true(result == 0 || result == -EAGAIN || result == -EBADMSG);
		found = store->operations->get(store, &key, RECORD_NEWEST, &value, sizeof(value),
					       &info);
		if (n < LOST) {
			assert_int_equal(found, -EBADMSG);
		} else {
			assert_int_equal(found, 0);
			assert_int_equal(info.sequence, sequence);
			assert_int_equal(value, 2);
		}
		if (n == LOST - 1)
			lose_page(nand, page);
	}
	close_store(store, nand);
}

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void test_an_earlier_put_is_not_moved_while_the_later_one_can_t_be_read(void **state)
{
	static const struct record_keep keeps[] = { { .bounds = NULL }, /* the present is all */
						    { .bounds = own_moment },
						    { .bounds = many_moments } };

	(void)state;
	log_configure(no_log, LOG_LEVEL_ERROR);
	for (uint32_t between = 0; between < 2; between++)
		for (uint32_t n = 0; n < 3; n++)
			check_later_put_lost(between, keeps[n]);
	log_configure(NULL, LOG_LEVEL_WARNING);
}

/* ---- pieces ---- */

static uint32_t count_judged(void *context, const struct record_key *key,
			     const struct record_info *info, uint64_t *bounds, uint32_t max)
{
	(void)key;
	(void)info;
	(void)bounds;
	(void)max;
	++*(uint32_t *)context;
	return 0;
}

/* Merges pages that are at hand, in pieces. Returns the most records that a piece has judged. */
static uint32_t most_judged(struct record_store *store, struct record_merge *merge)
{
	uint32_t judged = 0, most = 0;
	const struct record_keep keep = { .context = &judged, .bounds = count_judged };
	int result = 1;

	while (result == 1) {
		judged = 0;
		result = store->operations->merge_step(store, &keep, merge);
		most = judged > most ? judged : most;
		if (result == 1)
			store->operations->merge_run(store);
	}
	assert_int_equal(result, 0);
	return most;
}

/* Others wait for its end; more urgently if `awaited` is not 0. */
static void check_pieces(uint32_t awaited, uint32_t least, uint32_t maximum)
{
	struct record_merge merge = { .live_permille_max = 1000,
				      .segments_wanted = 4,
				      .awaited = &awaited };
	struct record_store *store;
	struct nand *nand;
	uint32_t most;

	store = open_store(&nand);
	for (uint32_t round = 0; round < 2; round++)
		put_many(store, 3000);
	most = most_judged(store, &merge);
	print_message("%u records at most\n", most);
	assert_true(merge.records_dropped > PIECE_MAX);
	assert_in_range(most, least, maximum);
	close_store(store, nand);
}

static void test_a_piece_judges_so_many_records_at_most(void **state)
{
	(void)state;
	check_pieces(0, PIECE_MAX / 2, PIECE_MAX + BEGUN_MAX);
}

static void test_a_piece_judges_few_records_while_others_wait_for_its_end(void **state)
{
	(void)state;
	check_pieces(1, AWAITED_MAX, AWAITED_MAX + BEGUN_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_a_command_s_puts_of_a_key_the_last_one_is_kept),
		cmocka_unit_test(
			test_an_earlier_put_is_not_moved_while_the_later_one_can_t_be_read),
		cmocka_unit_test(test_hidden_versions_are_passed_over_once_for_each_bound),
		cmocka_unit_test(test_a_segment_is_read_at_once_and_not_again_to_be_moved),
		cmocka_unit_test(test_a_candidate_is_sampled_until_it_is_known_to_be_dear),
		cmocka_unit_test(test_what_look_ups_of_a_segment_lack_is_read_in_few_rounds),
		cmocka_unit_test(test_what_a_merge_moved_before_it_ended_is_not_moved_again),
		cmocka_unit_test(test_what_a_merge_moves_twice_is_kept),
		cmocka_unit_test(
			test_the_data_of_a_newer_record_with_a_page_for_itself_are_not_read),
		cmocka_unit_test(
			test_of_a_segment_whose_records_have_a_page_each_what_is_needed_is_read),
		cmocka_unit_test(test_a_piece_judges_so_many_records_at_most),
		cmocka_unit_test(test_a_piece_judges_few_records_while_others_wait_for_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
