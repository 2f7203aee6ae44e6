/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Where the records of a segment go when it is sealed: candidates, runs of old versions, what is
 * carried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "engine/muninn/index/ribbon/layout.h"
#include "engine/muninn/index/ribbon/ribbon_hash.h"
#include "tests/engine/muninn/ribbon_random.h"

enum { PAGES = 256, PAGE_BYTES = 4096, RECORDS_MAX = 40000 };

/* ---- what is put ---- */

static uint32_t quarter_of_a_page(uint64_t *random)
{
	(void)random;
	return 1024;
}

static uint32_t log_normal(uint64_t *random)
{
	double a = ((double)(next_random(random) >> 11) + 1) * 0x1p-53;
	double b = ((double)(next_random(random) >> 11) + 1) * 0x1p-53;
	double bytes = 500 * exp(sqrt(-2 * log(a)) * cos(2 * M_PI * b) - 0.5);

	return bytes < 64 ? 64 : bytes > 4000 ? 4000 : (uint32_t)bytes;
}

static uint32_t any_size(uint64_t *random)
{
	return RECORD_HEADER_BYTES + below(random, PAGE_BYTES - RECORD_HEADER_BYTES + 1);
}

static uint32_t tiny(uint64_t *random)
{
	return RECORD_HEADER_BYTES + below(random, 8);
}

/* With its header in the spare area, now and then. */
static uint32_t page_or_small(uint64_t *random)
{
	return below(random, 2) ? PAGE_BYTES + RECORD_HEADER_BYTES : 100;
}

/* Which key comes next; a key's number. */
static uint64_t others(uint64_t *random)
{
	return next_random(random);
}

static uint64_t one_key(uint64_t *random)
{
	(void)random;
	return 1;
}

static uint64_t a_hundred(uint64_t *random)
{
	return below(random, 100);
}

static uint64_t half_of_them_one(uint64_t *random)
{
	return below(random, 2) ? 1 : next_random(random);
}

static uint64_t twice_each(uint64_t *random)
{
	static uint64_t last;
	static bool again;

	again = !again;
	return last = again ? next_random(random) : last;
}

struct workload {
	const char *name;
	uint32_t (*size)(uint64_t *random);
	uint64_t (*key)(uint64_t *random);
	uint32_t filled_permille;  /* of all bytes of the segments, at least */
	uint32_t carried_permille; /* of the records, at most */
};

static const struct workload workloads[] = {
	{ "quarters of a page", quarter_of_a_page, others, 998, 2 },
	{ "log-normal sizes", log_normal, others, 989, 60 },
	{ "any sizes", any_size, others, 850, 220 },
	{ "quarters, one key", quarter_of_a_page, one_key, 980, 20 },
	{ "quarters, half of them of one key", quarter_of_a_page, half_of_them_one, 990, 10 },
	{ "quarters, a hundred keys", quarter_of_a_page, a_hundred, 980, 20 },
	{ "quarters, each key twice", quarter_of_a_page, twice_each, 970, 30 },
	{ "log-normal sizes, a hundred keys", log_normal, a_hundred, 970, 30 },
	{ "tiny records, a hundred keys", tiny, a_hundred, 980, 20 },
	/* Three candidates are few for whole pages: such segments are for locations by page. */
	{ "pages and small records", page_or_small, others, 750, 400 },
	{ "pages and small records, a hundred keys", page_or_small, a_hundred, 550, 750 },
};

enum { WORKLOADS = sizeof(workloads) / sizeof(workloads[0]) };

/* ---- a row that seals one segment after the other ---- */

struct put {
	struct record_header header;
	uint8_t bytes[RECORD_HEADER_BYTES];
	uint32_t carried; /* how often */
};

struct row {
	const struct workload *workload;
	uint64_t random, sequence, serial;
	struct put *puts; /* what the buffer holds */
	struct layout_record *records;
	uint32_t count;
	struct layout *layout;
	struct layout_shape shape;
	struct layout_result result;
	uint64_t used, carried, all; /* bytes in segments; records carried, and put */
	uint32_t carried_most;
};

static void begin_row(struct row *row, const struct workload *workload, uint64_t seed)
{
	*row = (struct row){
		.workload = workload,
		.random = seed,
		.puts = calloc(RECORDS_MAX, sizeof(struct put)),
		.records = calloc(RECORDS_MAX, sizeof(struct layout_record)),
		.layout = layout_create(PAGES, RECORDS_MAX),
		.shape = { .pages = PAGES, .page_bytes = PAGE_BYTES },
	};
	assert_true(row->puts && row->records && row->layout);
}

static void end_row(struct row *row)
{
	free(row->puts);
	free(row->records);
	layout_destroy(row->layout);
}

static uint32_t bytes_of(const struct row *row, uint32_t n)
{
	uint32_t bytes = RECORD_HEADER_BYTES + row->puts[n].header.length;

	return bytes < row->shape.page_bytes ? bytes : row->shape.page_bytes;
}

/* Puts until a segment's bytes are there. */
static void fill(struct row *row)
{
	uint64_t bytes = 0;

	for (uint32_t n = 0; n < row->count; n++)
		bytes += bytes_of(row, n);
	for (;;) {
		struct put *put = &row->puts[row->count];
		uint64_t key = row->workload->key(&row->random);

		*put = (struct put){
			.header = { .key = { .partition = 1,
					     .identifier = hash_mix(key + 1),
					     .piece = (uint32_t)(key % 1000) },
				    .sequence = ++row->sequence,
				    .epoch = RECORD_EPOCH_ENDLESS,
				    .length = (uint16_t)(row->workload->size(&row->random) -
							 RECORD_HEADER_BYTES) },
		};
		bytes += bytes_of(row, row->count);
		if (bytes > (uint64_t)row->shape.pages * row->shape.page_bytes)
			return;
		row->all++;
		row->count++;
	}
}

static void solve(struct row *row)
{
	row->serial += 8;
	row->shape.serial = row->serial;
	for (uint32_t n = 0; n < row->count; n++) {
		struct put *put = &row->puts[n];
		static const uint8_t value[PAGE_BYTES];

		record_header_encode(&put->header, row->serial, value, put->bytes);
		row->records[n] = (struct layout_record){
			.header = put->bytes,
			.hash = key_hash(&put->header.key, row->shape.pages),
			.was_carried = put->carried != 0,
		};
	}
	layout_solve(row->layout, &row->shape, row->records, row->count, &row->result);
}

/* What found no place is what the next segment begins with. */
static void carry(struct row *row)
{
	uint32_t left = 0;

	for (uint32_t n = 0; n < row->count; n++) {
		if (row->records[n].page != LAYOUT_CARRIED) {
			row->used += bytes_of(row, n);
			continue;
		}
		row->puts[n].carried++;
		if (row->puts[n].carried > row->carried_most)
			row->carried_most = row->puts[n].carried;
		row->puts[left++] = row->puts[n];
	}
	row->carried += left;
	row->count = left;
}

/* ---- what must hold of a segment ---- */

/* Pages hold what they can, and each record is in one of them or carried. */
static void check_pages(const struct row *row)
{
	uint32_t first_run =
		row->shape.pages - row->result.tail_pages + row->result.directory_pages;
	uint32_t seen = 0, carried = 0;

	for (uint32_t page = 0; page < row->shape.pages; page++) {
		const uint32_t *numbers;
		uint32_t count = layout_page_records(row->layout, page, &numbers), bytes = 0;

		for (uint32_t n = 0; n < count; n++, seen++) {
			assert_int_equal(row->records[numbers[n]].page, page);
			assert_true(n == 0 || numbers[n - 1] < numbers[n]);
			assert_int_equal(row->records[numbers[n]].is_head,
					 page < row->shape.pages - row->result.tail_pages);
			bytes += bytes_of(row, numbers[n]);
		}
		assert_true(bytes <= row->shape.page_bytes);
		/* The directory has its pages to itself. */
		if (page >= row->shape.pages - row->result.tail_pages && page < first_run)
			assert_int_equal(count, 0);
	}
	for (uint32_t n = 0; n < row->count; n++)
		carried += row->records[n].page == LAYOUT_CARRIED;
	assert_int_equal(seen + carried, row->count);
	assert_int_equal(carried, row->result.carried);
}

static bool is_key(const struct row *row, uint32_t a, uint32_t b)
{
	return row->puts[a].header.key.identifier == row->puts[b].header.key.identifier;
}

/*
 * The page of the runs that has the newest record of a key up to a bound, by the directory as it is
 * on flash. It is the one that was given.
 */
static void check_run(const struct row *row, uint32_t wanted)
{
	uint32_t most = run_entries_of_page(row->shape.page_bytes);
	uint32_t tag = tag_of(&row->records[wanted].hash);
	uint64_t bound = row->puts[wanted].header.sequence;
	static uint8_t bytes[PAGE_BYTES];

	for (uint32_t page = 0; page < row->result.directory_pages; page++) {
		uint32_t count = layout_put_directory(row->layout, page, bytes) / RUN_ENTRY_BYTES;
		uint32_t n = run_directory_find(bytes, count, tag, bound);

		assert_true(count <= most);
		if (n == count)
			continue;
		assert_int_equal(run_entry_at(bytes, n).tag, tag);
		assert_int_equal(run_entry_at(bytes, n).page, row->records[wanted].page);
		return;
	}
	fail_msg("%s: the directory lacks a record", row->workload->name);
}

/* Every record is found as a look-up would: by a candidate of its key, or through the directory. */
static void check_finding(const struct row *row, uint32_t step)
{
	uint32_t head_pages = row->shape.pages - row->result.tail_pages;

	for (uint32_t n = 0; n < row->count; n++) {
		const struct layout_record *record = &row->records[n];

		if (record->page == LAYOUT_CARRIED)
			continue;
		if (record->is_head)
			assert_int_equal(record->page,
					 candidate_page(&record->hash, row->serial,
							record->candidate, head_pages));
		else if (n % step == 0)
			check_run(row, n);
	}
}

/* Of a key one record is the head, and what is carried is newer than what is in the segment. */
static void check_order(const struct row *row)
{
	for (uint32_t n = 0; n < row->count; n++) {
		const struct layout_record *record = &row->records[n];
		uint32_t next = record->older;

		if (record->is_head)
			assert_int_equal(record->has_older, next != UINT32_MAX);
		if (next == UINT32_MAX)
			continue;
		assert_true(is_key(row, n, next));
		assert_true(row->puts[n].header.sequence > row->puts[next].header.sequence);
		/* What is in the segment has only older ones behind it, all of them there. */
		if (record->page != LAYOUT_CARRIED) {
			assert_true(row->records[next].page != LAYOUT_CARRIED);
			assert_false(row->records[next].is_head);
		} else {
			assert_true(row->records[next].page == LAYOUT_CARRIED ||
				    row->records[next].is_head);
		}
	}
}

static void run_workload(const struct workload *workload, uint64_t seed, uint32_t segments)
{
	struct row row;
	uint64_t bytes = 0;

	begin_row(&row, workload, seed);
	for (uint32_t n = 0; n < segments; n++) {
		fill(&row);
		solve(&row);
		check_pages(&row);
		check_order(&row);
		check_finding(&row, 1 + row.count / 500);
		carry(&row);
		bytes += (uint64_t)PAGES * PAGE_BYTES;
		assert_true(row.count < RECORDS_MAX / 2);
	}
	if (row.used * 1000 < bytes * workload->filled_permille ||
	    row.carried * 1000 > row.all * workload->carried_permille)
		fail_msg("%s, seed %u: %.2f %% filled, %.2f %% carried, one of them %u times",
			 workload->name, (unsigned)seed, 100.0 * (double)row.used / (double)bytes,
			 100.0 * (double)row.carried / (double)row.all, row.carried_most);
	end_row(&row);
}

static void test_every_record_is_found_and_segments_are_full(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < WORKLOADS; n++)
		run_workload(&workloads[n], n + 1, 8);
}

static uint64_t few_keys(uint64_t *random)
{
	return *random % 7 < 3 ? 1 : below(random, 20);
}

static uint32_t small(uint64_t *random)
{
	return RECORD_HEADER_BYTES + below(random, below(random, 2) ? 30 : 600);
}

/* Segments of few pages, where everything that is rare happens often. */
static void test_small_segments_of_few_keys_lose_nothing(void **state)
{
	static const struct workload workload = { "few keys", small, few_keys, 0, 1000 };

	(void)state;
	for (uint64_t seed = 1; seed <= 600; seed++) {
		struct row row;

		begin_row(&row, &workload, seed);
		row.shape.pages = 8U << seed % 3;
		row.shape.page_bytes = 512;
		for (uint32_t n = 0; n < 6; n++) {
			fill(&row);
			solve(&row);
			check_pages(&row);
			check_order(&row);
			check_finding(&row, 1);
			carry(&row);
		}
		end_row(&row);
	}
}

/* A record that was carried is placed before others, so it does not make its next segment wide. */
static void test_hardly_anything_is_carried_twice(void **state)
{
	struct row row;
	uint64_t again = 0;

	(void)state;
	begin_row(&row, &workloads[1], 7);
	for (uint32_t n = 0; n < 12; n++) {
		fill(&row);
		solve(&row);
		carry(&row);
		for (uint32_t r = 0; r < row.count; r++)
			again += row.puts[r].carried > 1;
	}
	assert_true(row.carried > 100);
	assert_true(again * 100 <= row.carried);
	assert_true(row.carried_most <= 2);
	end_row(&row);
}

/* Recovery solves again what a crash left of the buffer. */
static void test_the_same_records_are_placed_in_the_same_way(void **state)
{
	struct row row;
	struct layout_record *before = malloc(RECORDS_MAX * sizeof(*before));

	(void)state;
	for (uint32_t n = 0; n < WORKLOADS; n++) {
		begin_row(&row, &workloads[n], n + 1);
		fill(&row);
		solve(&row);
		memcpy(before, row.records, row.count * sizeof(*before));
		solve(&row); /* as another segment */
		row.serial = 0;
		solve(&row);
		for (uint32_t r = 0; r < row.count; r++) {
			assert_int_equal(row.records[r].page, before[r].page);
			assert_int_equal(row.records[r].candidate, before[r].candidate);
		}
		end_row(&row);
	}
	free(before);
}

/* Both ends of a command's puts have one number; the later one counts. */
static void test_of_equal_numbers_the_later_one_is_the_head(void **state)
{
	struct row row;

	(void)state;
	begin_row(&row, &workloads[0], 1);
	for (uint32_t n = 0; n < 3; n++)
		row.puts[row.count++] = (struct put){
			.header = { .key = { .partition = 1, .identifier = 9 },
				    .sequence = 5,
				    .length = 10 },
		};
	solve(&row);
	assert_false(row.records[0].is_head || row.records[1].is_head);
	assert_true(row.records[2].is_head);
	assert_int_equal(row.records[2].older, 1);
	assert_int_equal(row.records[1].older, 0);
	assert_int_equal(row.result.heads, 1);
	end_row(&row);
}

/* What merge moved comes behind newer records of its key. */
static void test_records_that_come_late_take_their_place_by_number(void **state)
{
	static const uint64_t sequences[] = { 50, 70, 10, 60, 20 };
	struct row row;
	uint64_t last = UINT64_MAX;
	uint32_t count = 0;

	(void)state;
	begin_row(&row, &workloads[0], 1);
	for (uint32_t n = 0; n < 5; n++)
		row.puts[row.count++] = (struct put){
			.header = { .key = { .partition = 1, .identifier = 9 },
				    .sequence = sequences[n],
				    .length = 10 },
		};
	solve(&row);
	assert_true(row.records[1].is_head);
	for (uint32_t n = 1; n != UINT32_MAX; n = row.records[n].older, count++) {
		assert_true(row.puts[n].header.sequence < last);
		last = row.puts[n].header.sequence;
	}
	assert_int_equal(count, 5);
	check_pages(&row);
	check_finding(&row, 1);
	end_row(&row);
}

static void test_an_empty_buffer_has_a_layout(void **state)
{
	struct row row;

	(void)state;
	begin_row(&row, &workloads[0], 1);
	solve(&row);
	check_pages(&row);
	assert_int_equal(row.result.tail_pages, 0);
	end_row(&row);
}

/* Pieces that are written together follow each other, as long as there is space. */
static void test_pieces_of_an_object_follow_each_other(void **state)
{
	struct row row;
	uint32_t followed = 0;

	(void)state;
	begin_row(&row, &workloads[0], 1);
	for (uint32_t n = 0; n < PAGES; n++)
		row.puts[row.count++] = (struct put){
			.header = { .key = { .partition = 1, .identifier = 77, .piece = n },
				    .sequence = 5,
				    .length = PAGE_BYTES },
		};
	solve(&row);
	assert_int_equal(row.result.carried, 0);
	for (uint32_t n = 1; n < PAGES; n++)
		followed += row.records[n].page == (row.records[n - 1].page + 1) % PAGES;
	assert_in_range(followed, PAGES - 1, PAGES - 1);
	end_row(&row);
}

/* ---- the directory's bytes ---- */

static void test_an_entry_of_the_directory_has_the_documented_bytes(void **state)
{
	static const uint8_t documented[3 * RUN_ENTRY_BYTES] = {
		0x04, 0x03, 0x02, 0x01, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0xfe, 0x00,
		0x04, 0x03, 0x02, 0x01, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0xfd, 0x00,
		0x05, 0x03, 0x02, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0xfd, 0x00,
	};
	struct run_entry entry = run_entry_at(documented, 1);

	(void)state;
	assert_int_equal(entry.tag, 0x01020304);
	assert_int_equal(entry.oldest, UINT64_C(0x010203040506));
	assert_int_equal(entry.page, 0xfd);
	assert_int_equal(run_directory_find(documented, 3, 0x01020304, UINT64_MAX), 0);
	assert_int_equal(run_directory_find(documented, 3, 0x01020304, UINT64_C(0x111213141516)),
			 0);
	assert_int_equal(run_directory_find(documented, 3, 0x01020304, UINT64_C(0x111213141515)),
			 1);
	assert_int_equal(run_directory_find(documented, 3, 0x01020304, 5), 3);
	assert_int_equal(run_directory_find(documented, 3, 0x01020305, 5), 2);
	assert_int_equal(run_directory_find(documented, 3, 0x01020306, UINT64_MAX), 3);
	assert_int_equal(run_directory_find(documented, 0, 0x01020304, UINT64_MAX), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_record_is_found_and_segments_are_full),
		cmocka_unit_test(test_small_segments_of_few_keys_lose_nothing),
		cmocka_unit_test(test_hardly_anything_is_carried_twice),
		cmocka_unit_test(test_the_same_records_are_placed_in_the_same_way),
		cmocka_unit_test(test_of_equal_numbers_the_later_one_is_the_head),
		cmocka_unit_test(test_records_that_come_late_take_their_place_by_number),
		cmocka_unit_test(test_an_empty_buffer_has_a_layout),
		cmocka_unit_test(test_pieces_of_an_object_follow_each_other),
		cmocka_unit_test(test_an_entry_of_the_directory_has_the_documented_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
