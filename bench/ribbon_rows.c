/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Rows of the ribbon index. Each question is answered as a look-up would have it: the pages that
 * the search names until the one that has the key are those that would be read.
 */
#include "bench/ribbon_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "bench/random.h"
#include "engine/muninn/index/ribbon/ribbon_hash.h"
#include "engine/muninn/index/ribbon/ribbon_search.h"

enum {
	PAGES = 256,
	PAGE_BYTES = 4096,
	KEYS = 1024, /* of a segment */
	RECORD_BYTES = PAGES * PAGE_BYTES / KEYS,
	OLDEST_PERCENT = 5,
	STREAM_KEYS = 11,
	STREAM_QUESTIONS,
};

struct rows {
	const struct ribbon_bench_options *options;
	uint32_t locations;
	uint32_t count;    /* of segments in each row */
	uint32_t measured; /* of them, the last ones: memory is their mean */
	struct ribbon_shape shape;
	struct ribbon_row *rows;
	uint8_t **nvram;
	uint8_t sum[16];
	uint8_t all_live[8]; /* nothing is merged away */
	struct tag_entry sealed[KEYS];
	double bytes, keys; /* of the index, and in it, in sum */
	double seal_time;
};

/* A key of a segment, and where it is: its page, and which candidate, if that is known. */
static struct key_hash key_of(const struct rows *rows, uint32_t row, uint32_t segment, uint32_t key,
			      uint32_t *page, uint32_t *candidate)
{
	uint64_t number = ((uint64_t)row * rows->count + segment) * KEYS + key;
	struct random_state random = random_stream(rows->options->seed + STREAM_KEYS, number);
	struct key_hash hash = { .key = random_next(&random), .group = random_next(&random) };

	*page = (uint32_t)random_below(&random, rows->locations);
	*candidate = PLACEMENT_NONE;
	if (rows->locations > PLACEMENT_CANDIDATES)
		return hash;
	*candidate = *page;
	*page = candidate_page(&hash, segment + UINT64_C(1), *candidate, PAGES);
	return hash;
}

/* ---- filling ---- */

static int complete(struct rows *rows, struct ribbon_row *row)
{
	uint32_t number = growing_number(&row->growing);
	struct ribbon_image image = { .live = rows->all_live };
	int result = ribbon_row_make_image(row, &image.bytes, &image.length);

	if (!result)
		result = ribbon_row_replace(row, row->count, row->count, &image);
	if (!result)
		ribbon_row_begin(row, number + 1);
	return result;
}

static int seal(struct rows *rows, uint32_t number, uint32_t segment)
{
	struct ribbon_row *row = &rows->rows[number];
	struct group_member member = { .segment = segment,
				       .serial = segment + UINT64_C(1),
				       .by_candidates = rows->locations == PLACEMENT_CANDIDATES,
				       .first_sequence = segment * KEYS,
				       .last_sequence = segment * KEYS + KEYS - 1 };
	double begin;
	int result = 0;

	for (uint32_t key = 0; key < KEYS; key++) {
		uint32_t page, candidate;
		struct key_hash hash = key_of(rows, number, segment, key, &page, &candidate);

		rows->sealed[key] =
			(struct tag_entry){ .tag = tag_of(&hash),
					    .location = location_word(page, candidate) };
	}
	begin = ribbon_bench_seconds();
	if (growing_is_full(&row->growing))
		result = complete(rows, row);
	ribbon_row_condense(row);
	if (!result)
		result = ribbon_row_write(row, rows->sealed, KEYS, &member);
	if (!result)
		ribbon_row_commit(row);
	rows->seal_time += ribbon_bench_seconds() - begin;
	return result;
}

static int fill(struct rows *rows)
{
	int result = 0;

	for (uint32_t segment = 0; !result && segment < rows->count; segment++)
		for (uint32_t number = 0; !result && number < rows->options->rows; number++) {
			result = seal(rows, number, segment);
			if (segment + rows->measured < rows->count)
				continue;
			rows->bytes += (double)ribbon_row_bytes(&rows->rows[number]);
			rows->keys += (double)(segment + 1) * KEYS;
		}
	return result;
}

/* ---- asking ---- */

/*
 * Pages that a look-up reads. `segment` UINT32_MAX: of an absent key. -EBADMSG: the key was not
 * found.
 */
static int reads_of(const struct ribbon_row *row, const struct key_hash *hash, uint32_t segment,
		    uint32_t expected)
{
	struct ribbon_search search;
	uint32_t found, page;
	int reads = 0;

	ribbon_search_begin(&search, row, hash, UINT64_MAX);
	while (ribbon_search_segment(&search, 0, &found))
		while (ribbon_search_page(&search, &page)) {
			reads++;
			if (found == segment && page == expected)
				return reads;
		}
	return segment == UINT32_MAX ? reads : -EBADMSG;
}

/* Mean reads of keys in the first `segments` of each row; 0: of absent ones. */
static int ask(const struct rows *rows, uint32_t segments, double *mean, double *time)
{
	uint64_t questions = rows->options->questions / 4 + 1, all = 0;
	struct random_state random = random_stream(rows->options->seed, STREAM_QUESTIONS);
	double begin = ribbon_bench_seconds();

	for (uint64_t n = 0; n < questions; n++) {
		uint32_t row = (uint32_t)random_below(&random, rows->options->rows);
		uint32_t segment = UINT32_MAX, page = 0, candidate;
		struct key_hash hash = { .key = random_next(&random) };
		int reads;

		if (segments) {
			segment = (uint32_t)random_below(&random, segments);
			hash = key_of(rows, row, segment, (uint32_t)random_below(&random, KEYS),
				      &page, &candidate);
		}
		reads = reads_of(&rows->rows[row], &hash, segment, page);
		if (reads < 0)
			return reads;
		all += (uint64_t)reads;
	}
	*time = 1e9 * (ribbon_bench_seconds() - begin) / (double)questions;
	*mean = (double)all / (double)questions;
	return 0;
}

static int ask_all(const struct rows *rows, const char *name, FILE *json, FILE *text)
{
	double uniform, oldest, absent, present_ns, oldest_ns, absent_ns;
	uint32_t old = rows->count * OLDEST_PERCENT / 100 + 1;
	int result = ask(rows, rows->count, &uniform, &present_ns);

	if (!result)
		result = ask(rows, old, &oldest, &oldest_ns);
	if (!result)
		result = ask(rows, 0, &absent, &absent_ns);
	if (result)
		return result;
	ribbon_bench_print(json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "part", name,
				     "bytes_key", rows->bytes / rows->keys, "reads_uniform",
				     uniform, "reads_oldest", oldest, "reads_absent", absent,
				     "present_ns", present_ns, "absent_ns", absent_ns,
				     "seal_ns_key",
				     1e9 * rows->seal_time /
					     ((double)rows->options->rows * rows->count * KEYS)),
			   json, text);
	return 0;
}

/* ---- all of it ---- */

static int create(struct rows *rows)
{
	uint32_t count = rows->options->rows;

	rows->shape = ribbon_shape_choose(PAGE_BYTES, PAGES, RECORD_BYTES);
	rows->rows = calloc(count, sizeof(*rows->rows));
	rows->nvram = calloc(count, sizeof(*rows->nvram));
	if (!rows->rows || !rows->nvram)
		return -ENOMEM;
	put_le64(rows->all_live, UINT64_MAX);
	for (uint32_t n = 0; n < count; n++) {
		rows->nvram[n] = calloc(1, growing_bytes(&rows->shape));
		if (!rows->nvram[n] ||
		    ribbon_row_create(&rows->rows[n], &rows->shape, n, rows->nvram[n], rows->sum))
			return -ENOMEM;
		ribbon_row_begin(&rows->rows[n], 0);
	}
	return 0;
}

static void destroy(struct rows *rows)
{
	for (uint32_t n = 0; rows->rows && n < rows->options->rows; n++)
		ribbon_row_destroy(&rows->rows[n]);
	for (uint32_t n = 0; rows->nvram && n < rows->options->rows; n++)
		free(rows->nvram[n]);
	free(rows->rows);
	free(rows->nvram);
}

int ribbon_bench_rows(const struct ribbon_bench_options *options, uint32_t locations,
		      const char *name, FILE *json, FILE *text, struct error_text *error)
{
	struct rows rows = {
		.options = options,
		.locations = locations,
		.count = options->groups * options->members,
		.measured = options->members,
	};
	int result = create(&rows);

	if (!result)
		result = fill(&rows);
	if (!result)
		result = ask_all(&rows, name, json, text);
	destroy(&rows);
	return result == -EBADMSG ? error_set(error, result, "%s: a key was not found", name)
				  : result;
}
