/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The ribbon index by the interface of an index: segments whose records were arranged, some of them
 * those of one key alone, in a growing and in a complete group.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/muninn/index/index.h"
#include "engine/muninn/index/ribbon/growing_format.h"
#include "engine/muninn/index/ribbon/ribbon_hash.h"
#include "engine/muninn/nvram.h"
#include "tests/engine/muninn/ribbon_random.h"

enum {
	PAGE_RECORDS = 4,
	HOT = 1,       /* the key that fills a segment now and then */
	HOT_EVERY = 6, /* so many segments */
	FIRST_KEY = 1000,
	ABSENT = 1U << 30,
};

/* Of the group: the first ones of a row have fewer segments. */
enum { NUMBER = 2 };

struct scene {
	struct muninn_geometry geometry;
	uint8_t *nvram;
	struct index *index;
	struct row_index *row;
	struct segment_index *active;
	uint8_t *bytes;
	struct page_view *pages;
	uint64_t sequence;
	bool *is_moved; /* by number, records that a merge moved; NULL: none was */
	uint32_t next_key;
	uint8_t live[8]; /* of the complete group */
};

static void begin(struct scene *scene, uint32_t segment_pages, uint32_t page_bytes)
{
	const struct nand_geometry nand = { .page_bytes = page_bytes,
					    .spare_bytes = 64,
					    .pages_per_block = 8,
					    .blocks = 64 * segment_pages / 8,
					    .channels = 1,
					    .dies_per_channel = 1 };
	const struct record_options records = { 0 };
	const struct muninn_options options = { .rows = 1,
						.segment_pages = segment_pages,
						.record_bytes = page_bytes / PAGE_RECORDS,
						.index = INDEX_RIBBON };

	*scene = (struct scene){ .next_key = FIRST_KEY };
	assert_int_equal(muninn_geometry_choose(&nand, &records, &options, &scene->geometry, NULL),
			 0);
	scene->nvram = calloc(1, scene->geometry.nvram_bytes);
	assert_non_null(scene->nvram);
	scene->index = index_create(&scene->geometry, scene->nvram);
	scene->active = segment_index_create(&scene->geometry);
	scene->bytes = calloc(segment_pages, page_bytes);
	scene->pages = calloc(segment_pages, sizeof(*scene->pages));
	assert_true(scene->index && scene->active && scene->bytes && scene->pages);
	scene->row = index_row(scene->index, 0);
	row_index_begin(scene->row, NUMBER);
}

static void end(struct scene *scene)
{
	index_destroy(scene->index);
	segment_index_destroy(scene->active);
	free(scene->pages);
	free(scene->bytes);
	free(scene->nvram);
}

static struct record_key key_of(uint32_t number)
{
	return (struct record_key){ .partition = 1, .identifier = number };
}

static bool is_hot(uint32_t segment)
{
	return segment % HOT_EVERY == 2;
}

/* ---- sealing ---- */

/* Fills a page to the last byte with records of the hot key, or of a new one each. */
static void fill_page(struct scene *scene, uint32_t page, uint64_t serial, bool hot)
{
	uint32_t page_bytes = scene->geometry.page_bytes, bytes = page_bytes / PAGE_RECORDS;
	uint8_t *data = scene->bytes + (uint64_t)page * page_bytes;

	scene->pages[page] =
		(struct page_view){ .serial = serial, .data = data, .used = page_bytes };
	for (uint32_t n = 0; n < PAGE_RECORDS; n++) {
		uint8_t *at = data + (uint64_t)n * bytes;
		struct record_header header = {
			.key = key_of(hot ? HOT : scene->next_key++),
			.sequence = ++scene->sequence,
			.length = (uint16_t)(bytes - RECORD_HEADER_BYTES),
		};

		record_header_encode(&header, serial, at + RECORD_HEADER_BYTES, at);
	}
}

/* What the growing group in NVRAM says of a segment. */
static struct group_member member_of(const struct scene *scene, uint32_t member)
{
	uint64_t bytes;
	const uint8_t *nvram = row_index_nvram(scene->row, &bytes);
	struct group_member facts;

	group_get_member(nvram + GROWING_HEADER_BYTES + (uint64_t)member * GROWING_MEMBER_BYTES,
			 &facts);
	return facts;
}

static void seal(struct scene *scene, uint32_t segment)
{
	struct sealed_segment facts = sealed_segment_begin(segment, segment + UINT64_C(1));
	struct arrangement *arrangement;
	struct group_member member;

	for (uint32_t page = 0; page < scene->geometry.segment_pages; page++) {
		fill_page(scene, page, facts.serial, is_hot(segment));
		sealed_segment_add(&facts, &scene->pages[page]);
	}
	segment_index_begin(scene->active, scene->row, 0, facts.serial);
	arrangement = index_arrange(&scene->geometry, facts.serial, scene->pages, 0);
	assert_non_null(arrangement);
	assert_int_equal(row_index_write(scene->row, scene->active, arrangement, &facts), 0);
	row_index_commit(scene->row);
	arrangement_destroy(arrangement);
	member = member_of(scene, segment);
	assert_int_equal(member.by_candidates, !is_hot(segment));
	/* Others have some only where two keys share a tag. */
	if (is_hot(segment))
		assert_int_equal(group_member_runs(&member), scene->geometry.segment_pages);
	else
		assert_true(group_member_runs(&member) <= 2);
}

/* Seals a full group. Returns how many segments that are. */
static uint32_t seal_group(struct scene *scene)
{
	uint32_t segments = 0;

	while (!row_index_is_full(scene->row))
		seal(scene, segments++);
	assert_true(segments > 2 * HOT_EVERY);
	return segments;
}

/* Its image has candidates for locations. */
static void complete(struct scene *scene)
{
	struct index_image image;
	struct group group;

	assert_int_equal(row_index_make_image(scene->row, &image), 0);
	image.live = scene->live;
	assert_true(group_attach(&group, image.bytes, image.length));
	assert_int_equal(group.locations, PLACEMENT_CANDIDATES);
	assert_int_equal(row_index_replace(scene->row, NUMBER, NUMBER, &image), 0);
	nvram_store64(scene->live, UINT64_MAX);
	row_index_begin(scene->row, NUMBER + 1);
	assert_int_equal(row_index_refresh(scene->row), 0);
}

/* ---- searching ---- */

/*
 * All pages that a search for a key names, the last one of a segment first, if the first one of a
 * segment of the hot key alone has it. Returns how many of these segments it names; `pages`: how
 * many pages of these.
 */
static uint32_t search(const struct scene *scene, uint32_t number, uint32_t *pages)
{
	const struct record_key key = key_of(number);
	struct key_hash hash = key_hash(&key, scene->geometry.segment_pages);
	uint32_t segment, page, found = 0;
	struct index_search search;

	index_search_begin(&search, scene->row, &hash, RECORD_NEWEST);
	while (index_search_segment(&search, 0, &segment)) {
		found += is_hot(segment);
		while (index_search_page(&search, &page)) {
			assert_true(page < scene->geometry.segment_pages);
			*pages += is_hot(segment);
			if (number == HOT && index_search_has_run(&search))
				index_search_run(&search);
		}
	}
	return found;
}

/* A segment of one key has runs on all of its pages, and so none for candidates. */
static void check_segments_of_one_key(uint32_t segment_pages, uint32_t page_bytes)
{
	struct scene scene;
	uint32_t segments, hot = 0, vain = 0, pages;

	begin(&scene, segment_pages, page_bytes);
	segments = seal_group(&scene);
	for (uint32_t segment = 0; segment < segments; segment++)
		hot += is_hot(segment);
	for (uint32_t turn = 0; turn < 2; turn++) {
		pages = 0;
		assert_int_equal(search(&scene, HOT, &pages), hot);
		assert_int_equal(pages, hot * segment_pages);
		if (turn == 0)
			complete(&scene);
	}
	/* A false hit names no page of it. */
	pages = 0;
	for (uint32_t n = 0; n < 40000; n++)
		vain += search(&scene, ABSENT + n, &pages);
	print_message("%u segments, %u of one key, which %u of 40000 absent keys hit\n", segments,
		      hot, vain);
	assert_true(vain > 0);
	assert_int_equal(pages, 0);
	end(&scene);
}

static void test_a_segment_of_one_key_has_no_candidates_for_any_other(void **state)
{
	(void)state;
	check_segments_of_one_key(256, 4096);
}

static void test_nor_has_one_of_many_pages(void **state)
{
	(void)state;
	check_segments_of_one_key(MUNINN_SEGMENT_PAGES_MAX / 2, 512);
}

/* There is no number for so many pages of runs. */
static void test_a_segment_with_too_many_pages_of_runs_is_not_arranged(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene, MUNINN_SEGMENT_PAGES_MAX, 512);
	for (uint32_t page = 0; page < scene.geometry.segment_pages; page++)
		fill_page(&scene, page, 1, true);
	assert_null(index_arrange(&scene.geometry, 1, scene.pages, 0));
	end(&scene);
}

/* ---- runs ---- */

enum { RUN_PAGES = 64, RUN_SEGMENTS = 12, RUN_KEYS = 300 };

/* What was sealed: the pages as they were programmed. */
struct programmed {
	uint8_t bytes[RUN_PAGES][4096];
	struct page_view pages[RUN_PAGES];
};

/* Two identifiers whose keys share a tag. */
static void find_equal_tags(uint32_t found[2])
{
	enum { TRIES = 1 << 18, SLOTS = 1 << 20 };
	uint32_t *slots = calloc(SLOTS, sizeof(*slots)); /* by tag: an identifier */

	assert_non_null(slots);
	found[0] = 0;
	for (uint32_t number = 1; !found[0] && number < TRIES; number++) {
		const struct record_key key = key_of(number);
		struct key_hash hash = key_hash(&key, RUN_PAGES);
		uint32_t slot = tag_of(&hash) % SLOTS;

		for (; !found[0] && slots[slot]; slot = (slot + 1) % SLOTS) {
			const struct record_key other_key = key_of(slots[slot]);
			struct key_hash other = key_hash(&other_key, RUN_PAGES);

			if (tag_of(&other) == tag_of(&hash)) {
				found[0] = slots[slot];
				found[1] = number;
			}
		}
		slots[slot] = number;
	}
	free(slots);
	assert_true(found[0]);
}

/* A number below those of the segment, which no record has had. */
static uint64_t old_number(struct scene *scene, uint64_t *random)
{
	uint64_t number;

	do
		number = 1 + 2 * (uint64_t)below(random, (uint32_t)scene->sequence / 2);
	while (scene->is_moved[number]);
	scene->is_moved[number] = true;
	return number;
}

/*
 * Records of a few keys again and again, of others once; two keys with one tag are of the former.
 * Others' numbers are even where some were moved.
 */
static void fill_with_runs(struct scene *scene, const uint32_t *equal, uint64_t serial,
			   uint64_t *random)
{
	uint32_t bytes = 4096 / PAGE_RECORDS;

	for (uint32_t n = 0; n < RUN_PAGES * PAGE_RECORDS; n++) {
		struct page_view *view = &scene->pages[n / PAGE_RECORDS];
		uint8_t *at = scene->bytes + (uint64_t)n * bytes;
		uint32_t draw = below(random, 100), number = below(random, RUN_KEYS) + FIRST_KEY;
		struct record_header header;

		if (draw < 20)
			number = FIRST_KEY + draw % 3;
		else if (draw < 30)
			number = equal[draw % 2];
		header =
			(struct record_header){ .key = key_of(number),
						.length = (uint16_t)(bytes - RECORD_HEADER_BYTES) };
		if (scene->is_moved && serial > 1 && below(random, 3) == 0) {
			header.sequence = old_number(scene, random);
			header.flags = RECORD_MOVED;
		} else {
			scene->sequence += scene->is_moved ? 2 : 1;
			header.sequence = scene->sequence;
		}
		if (n % PAGE_RECORDS == 0)
			*view = (struct page_view){ .serial = serial, .data = at, .used = 4096 };
		record_header_encode(&header, serial, at + RECORD_HEADER_BYTES, at);
	}
}

static void seal_with_runs(struct scene *scene, const uint32_t *equal, uint64_t *random,
			   uint32_t segment, struct programmed *programmed)
{
	struct sealed_segment facts = sealed_segment_begin(segment, segment + UINT64_C(1));
	struct arrangement *arrangement;

	fill_with_runs(scene, equal, facts.serial, random);
	for (uint32_t page = 0; page < RUN_PAGES; page++)
		sealed_segment_add(&facts, &scene->pages[page]);
	segment_index_begin(scene->active, scene->row, 0, facts.serial);
	arrangement = index_arrange(&scene->geometry, facts.serial, scene->pages, 0);
	assert_non_null(arrangement);
	for (uint32_t page = 0; page < RUN_PAGES; page++)
		programmed->pages[page] =
			arrangement_page(arrangement, page, programmed->bytes[page]);
	assert_int_equal(row_index_write(scene->row, scene->active, arrangement, &facts), 0);
	row_index_commit(scene->row);
	arrangement_destroy(arrangement);
}

/* How many records of a key a page has; the highest and the lowest number of these. */
static uint32_t look(const struct page_view *page, uint32_t number, uint64_t *highest,
		     uint64_t *lowest)
{
	const struct record_key key = key_of(number);
	struct page_record record;
	uint32_t offset = 0, count = 0;

	*highest = 0;
	*lowest = UINT64_MAX;
	while (page_next(page, &offset, &record))
		if (record_has_key(record.header, &key)) {
			*highest = max_u64(*highest, record_sequence(record.header));
			*lowest = min_u64(*lowest, record_sequence(record.header));
			count++;
		}
	return count;
}

struct probing {
	const struct programmed *segment;
	uint32_t number, *reads;
	uint64_t bound;
};

/* Whether a page has anything as old as a bound, of any key. */
static bool has_as_old(const struct page_view *page, uint64_t bound)
{
	struct page_record record;

	for (uint32_t offset = 0; page_next(page, &offset, &record);)
		if (record_sequence(record.header) <= bound)
			return true;
	return false;
}

static int probe(void *context, uint32_t page, struct page_numbers *numbers)
{
	const struct probing *probing = context;

	if (!has_as_old(&probing->segment->pages[page], probing->bound))
		return 0;
	if (!numbers)
		return 1;
	++*probing->reads;
	numbers->records = look(&probing->segment->pages[page], probing->number, &numbers->highest,
				&numbers->lowest);
	return numbers->records > 0;
}

/* What a page has of a key: the newest up to a bound, and whether that was moved; 0: nothing. */
static uint64_t look_up_to(const struct page_view *page, uint32_t number, uint64_t bound,
			   bool *is_moved)
{
	const struct record_key key = key_of(number);
	struct page_record record;
	uint64_t found = 0;
	uint32_t offset = 0;

	while (page_next(page, &offset, &record)) {
		uint64_t sequence = record_sequence(record.header);

		if (!record_has_key(record.header, &key) || sequence > bound || sequence < found)
			continue;
		found = sequence;
		*is_moved = record_is_moved(record.header);
	}
	return found;
}

/*
 * The newest record of a key up to a bound, as a look-up goes: the first one that a search meets,
 * unless it was moved, then there may be newer ones in older segments, but not in this one, if
 * numbers rise in it. 0: none.
 */
static uint64_t find_up_to(const struct scene *scene, const struct programmed *programmed,
			   uint32_t number, uint64_t bound, enum narrow_way way, uint32_t *reads)
{
	const struct record_key key = key_of(number);
	struct key_hash hash = key_hash(&key, RUN_PAGES);
	struct index_search search;
	uint32_t segment, page;
	uint64_t newest = 0;

	index_search_begin(&search, scene->row, &hash, bound);
	while (index_search_segment(&search, newest, &segment)) {
		struct probing probing = { &programmed[segment], number, reads, bound };
		bool passed = false;

		assert_int_equal(index_search_narrow(&search, way, probe, &probing), 0);
		while (!passed && index_search_page(&search, &page)) {
			const struct page_view *view = &programmed[segment].pages[page];
			uint64_t highest, lowest, found;
			bool is_moved = false;

			++*reads;
			look(view, number, &highest, &lowest);
			found = look_up_to(view, number, bound, &is_moved);
			newest = max_u64(newest, found);
			if (found && !is_moved)
				return newest;
			/* What was found is the newest of the segment. */
			passed = highest && lowest <= newest && index_search_rises(&search);
			if (highest > newest && index_search_has_run(&search))
				index_search_run(&search);
		}
	}
	return newest;
}

/*
 * All records of a key, each once, from the newest of a segment on. Returns how many pages had
 * none.
 */
static uint32_t check_all(const struct scene *scene, const struct programmed *programmed,
			  uint32_t number, uint32_t records)
{
	const struct record_key key = key_of(number);
	struct key_hash hash = key_hash(&key, RUN_PAGES);
	uint64_t before = UINT64_MAX;
	uint32_t segment, page, vain = 0;
	struct index_search search;

	index_search_begin(&search, scene->row, &hash, RECORD_NEWEST);
	while (index_search_segment(&search, 0, &segment)) {
		/* Of what was moved there may be newer ones in older segments. */
		before = scene->is_moved ? UINT64_MAX : before;
		while (index_search_page(&search, &page)) {
			uint64_t highest, lowest;
			uint32_t count =
				look(&programmed[segment].pages[page], number, &highest, &lowest);

			vain += !count;
			if (!count)
				continue;
			assert_true(highest < before);
			before = lowest;
			records -= count;
			if (index_search_has_run(&search))
				index_search_run(&search);
		}
	}
	assert_int_equal(records, 0);
	return vain;
}

/* The newest record of a key up to a bound, by going through all pages; how many it has in all. */
static uint64_t newest_up_to(const struct programmed *programmed, uint32_t number, uint64_t bound,
			     uint32_t *records)
{
	const struct record_key key = key_of(number);
	uint64_t newest = 0;

	*records = 0;
	for (uint32_t n = 0; n < RUN_SEGMENTS * RUN_PAGES; n++) {
		const struct page_view *view = &programmed[n / RUN_PAGES].pages[n % RUN_PAGES];
		struct page_record record;
		uint32_t offset = 0;

		while (page_next(view, &offset, &record)) {
			if (!record_has_key(record.header, &key))
				continue;
			++*records;
			if (record_sequence(record.header) <= bound)
				newest = max_u64(newest, record_sequence(record.header));
		}
	}
	return newest;
}

/* Asks for a key as of a bound; how many times that was. */
static uint32_t check_bound(const struct scene *scene, const struct programmed *programmed,
			    uint32_t number, uint64_t bound, uint32_t *reads)
{
	uint32_t records;
	uint64_t newest = newest_up_to(programmed, number, bound, &records);

	assert_true(find_up_to(scene, programmed, number, bound, NARROW_GUESS, reads) == newest);
	assert_true(find_up_to(scene, programmed, number, bound, NARROW_HALVE, reads) == newest);
	return 2;
}

/* A key as of all of its versions, and before them. */
static uint32_t check_bounds(const struct scene *scene, const struct programmed *programmed,
			     uint32_t number, uint32_t *reads)
{
	const struct record_key key = key_of(number);
	uint32_t asked = 0;

	for (uint32_t n = 0; n < RUN_SEGMENTS * RUN_PAGES; n++) {
		const struct page_view *view = &programmed[n / RUN_PAGES].pages[n % RUN_PAGES];
		struct page_record record;

		for (uint32_t offset = 0; page_next(view, &offset, &record);)
			for (uint64_t before = 0; before < 2 && record_has_key(record.header, &key);
			     before++)
				asked += check_bound(scene, programmed, number,
						     record_sequence(record.header) - before,
						     reads);
	}
	return asked;
}

static void check_versions(bool some_were_moved)
{
	struct programmed *programmed = calloc(RUN_SEGMENTS, sizeof(*programmed));
	uint32_t equal[2], asked = 0, reads = 0, vain = 0;
	uint64_t random = 7;
	struct scene scene;

	assert_non_null(programmed);
	find_equal_tags(equal);
	begin(&scene, RUN_PAGES, 4096);
	if (some_were_moved) {
		scene.is_moved = calloc(2 * RUN_SEGMENTS * RUN_PAGES, PAGE_RECORDS);
		assert_non_null(scene.is_moved);
	}
	for (uint32_t segment = 0; segment < RUN_SEGMENTS; segment++) {
		row_index_condense(scene.row);
		seal_with_runs(&scene, equal, &random, segment, &programmed[segment]);
	}
	for (uint32_t turn = 0; turn < 2; turn++) {
		for (uint32_t n = 0; n < RUN_KEYS + 2; n++) {
			uint32_t number = n < 2 ? equal[n] : FIRST_KEY + n - 2, records;

			for (uint32_t bounds = 0; bounds < 20; bounds++)
				asked += check_bound(&scene, programmed, number,
						     1 + below(&random, (uint32_t)scene.sequence),
						     &reads);
			newest_up_to(programmed, number, RECORD_NEWEST, &records);
			vain += check_all(&scene, programmed, number, records);
		}
		for (uint32_t n = 0; n < 4; n++)
			asked += check_bounds(&scene, programmed, n < 2 ? equal[n] : FIRST_KEY + n,
					      &reads);
		if (turn == 0)
			complete(&scene);
	}
	print_message("%u pages for %u old versions; %u pages in vain\n", reads, asked, vain);
	free(scene.is_moved);
	end(&scene);
	free(programmed);
}

/* Every version of every key is found, in a growing group, with sections, and in a complete one. */
static void test_every_version_is_found_in_runs(void **state)
{
	(void)state;
	check_versions(false);
}

static void test_and_where_some_were_moved(void **state)
{
	(void)state;
	check_versions(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_segment_of_one_key_has_no_candidates_for_any_other),
		cmocka_unit_test(test_nor_has_one_of_many_pages),
		cmocka_unit_test(test_every_version_is_found_in_runs),
		cmocka_unit_test(test_and_where_some_were_moved),
		cmocka_unit_test(test_a_segment_with_too_many_pages_of_runs_is_not_arranged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
