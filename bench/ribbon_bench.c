/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Measures the parts of the ribbon index. Groups are like those of a store of pairs of 1 KiB: each
 * segment has 1,024 keys, and fingerprints have as many bits as there.
 */
#include "bench/ribbon_bench.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "bench/random.h"
#include "bench/ribbon_rows.h"
#include "engine/muninn/index/ribbon/group.h"
#include "engine/muninn/index/ribbon/ribbon_shape.h"
#include "engine/muninn/index/ribbon_arrange.h"

enum {
	PAGES = 256,
	PAGE_BYTES = 4096,
	KEYS = 1024,        /* of a segment */
	RECORD_BYTES = 256, /* expected: so many more fit */
	STREAM_RECORDS = 1,
	STREAM_KEYS,
	STREAM_ABSENT,
};

double ribbon_bench_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void ribbon_bench_print(json_t *object, FILE *json, FILE *text)
{
	const char *name;
	json_t *value;

	json_dumpf(object, json, JSON_COMPACT | JSON_REAL_PRECISION(6));
	fputc('\n', json);
	fprintf(text, "%-22s", json_string_value(json_object_get(object, "part")));
	json_object_foreach(object, name, value) if (json_is_number(value))
		fprintf(text, "  %s %.4g", name, json_number_value(value));
	fputc('\n', text);
	json_decref(object);
}

/* ---- arranging segments ---- */

struct kind {
	const char *name;
	uint32_t (*bytes)(struct random_state *random);
	uint32_t hot; /* every second record is of one of so many keys; 0: each has its own */
};

static uint32_t kibibyte(struct random_state *random)
{
	(void)random;
	return 1024;
}

static uint32_t log_normal(struct random_state *random)
{
	double normal = sqrt(-2 * log(random_unit(random))) * cos(2 * M_PI * random_unit(random));
	double bytes = 500 * exp(normal - 0.5);

	return bytes < 64 ? 64 : bytes > 4000 ? 4000 : (uint32_t)bytes;
}

/* A full buffer: records on the first page with space, as a store puts them. */
struct buffered {
	uint8_t *bytes;
	struct page_view pages[PAGES];
	uint64_t used, number;
	uint32_t count;
};

/* False: it has no space. */
static bool put(struct buffered *buffered, uint64_t identifier, uint32_t bytes)
{
	static const uint8_t value[PAGE_BYTES];
	struct record_header header = {
		.key = { .partition = 1, .identifier = identifier },
		.sequence = ++buffered->number,
		.epoch = RECORD_EPOCH_ENDLESS,
		.length = (uint16_t)(bytes - RECORD_HEADER_BYTES),
	};

	for (uint32_t page = 0; page < PAGES; page++) {
		struct page_view *view = &buffered->pages[page];
		uint8_t *at = buffered->bytes + (uint64_t)page * PAGE_BYTES + view->used;

		if (view->used + bytes > PAGE_BYTES)
			continue;
		record_header_encode(&header, view->serial, value, at);
		memset(at + RECORD_HEADER_BYTES, 0, header.length);
		view->used += bytes;
		buffered->used += bytes;
		buffered->count++;
		return true;
	}
	return false;
}

static void fill(struct buffered *buffered, uint64_t serial, const struct kind *kind,
		 struct random_state *random)
{
	uint64_t identifier;

	buffered->used = buffered->count = 0;
	for (uint32_t page = 0; page < PAGES; page++)
		buffered->pages[page] =
			(struct page_view){ .serial = serial,
					    .data = buffered->bytes + (uint64_t)page * PAGE_BYTES };
	do {
		identifier = buffered->number + 1;
		if (kind->hot && random_below(random, 2))
			identifier = UINT64_MAX - random_below(random, kind->hot);
	} while (put(buffered, identifier, kind->bytes(random)));
}

struct arranged {
	uint64_t segments, records, keys, with_candidate;
	double time;
};

/* Arranges a full buffer, if it can be. */
static void arrange(const struct buffered *buffered, struct arranged *arranged)
{
	const struct muninn_geometry geometry = { .segment_pages = PAGES,
						  .page_bytes = PAGE_BYTES };
	const struct ribbon_shape shape = ribbon_shape_choose(PAGE_BYTES, PAGES, RECORD_BYTES);
	double begin = ribbon_bench_seconds();
	struct arrangement *arrangement =
		ribbon_arrange(&geometry, &shape, buffered->pages[0].serial, buffered->pages, 0);
	const struct tag_entry *entries;
	uint32_t keys, run_pages;

	arranged->time += ribbon_bench_seconds() - begin;
	if (!arrangement)
		return;
	entries = arrangement_entries(arrangement, &keys, &run_pages);
	arranged->segments++;
	arranged->records += buffered->count;
	arranged->keys += keys;
	for (uint32_t n = 0; n < keys; n++)
		arranged->with_candidate += word_location(entries[n].location) <
					    PLACEMENT_CANDIDATES;
	arrangement_destroy(arrangement);
}

static void measure_kind(const struct ribbon_bench_options *options, const struct kind *kind,
			 struct buffered *buffered, FILE *json, FILE *text)
{
	struct random_state random = random_stream(options->seed, STREAM_RECORDS);
	struct arranged arranged = { 0 };
	uint64_t bytes = 0;

	buffered->number = 0;
	for (uint32_t n = 0; n < options->segments; n++) {
		fill(buffered, 8 * n + UINT64_C(8), kind, &random);
		bytes += buffered->used;
		arrange(buffered, &arranged);
	}
	ribbon_bench_print(
		json_pack("{s:s, s:f, s:f, s:f, s:f, s:f}", "part", kind->name, "filled_percent",
			  100.0 * (double)bytes / ((double)options->segments * PAGES * PAGE_BYTES),
			  "arranged_percent", 100.0 * (double)arranged.segments / options->segments,
			  "candidates_percent",
			  100.0 * (double)arranged.with_candidate /
				  (double)(arranged.keys ? arranged.keys : 1),
			  "entries_record",
			  (double)arranged.keys / (double)(arranged.records ? arranged.records : 1),
			  "us_segment", 1e6 * arranged.time / options->segments),
		json, text);
}

static int measure_arrangements(const struct ribbon_bench_options *options, FILE *json, FILE *text)
{
	static const struct kind kinds[] = {
		{ "segment, 1 KiB", kibibyte, 0 },
		{ "segment, 1 KiB, hot", kibibyte, 64 },
		{ "segment, log-normal", log_normal, 0 },
	};
	struct buffered buffered = { .bytes = calloc(PAGES, PAGE_BYTES) };

	if (!buffered.bytes)
		return -ENOMEM;
	for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++)
		measure_kind(options, &kinds[n], &buffered, json, text);
	free(buffered.bytes);
	return 0;
}

/* ---- groups ---- */

struct groups {
	uint32_t count; /* rows x groups, row by row */
	struct group *groups;
	uint8_t **images;
	struct exact *exact; /* of the failed entries of a row; one table stands for all rows */
	struct tag_entry *entries;
	uint64_t kept_bytes, failed;
};

/* The tag of a key, from 0, of group `number`. */
static struct tag_entry entry_of(const struct ribbon_bench_options *options, uint32_t number,
				 uint32_t key)
{
	struct random_state random =
		random_stream(options->seed + STREAM_KEYS, (uint64_t)number << 32 | key);
	uint64_t word = random_next(&random);

	return (struct tag_entry){ .tag = (uint32_t)(word >> 32),
				   .segment = key / KEYS,
				   .location = (uint32_t)word % PLACEMENT_CANDIDATES };
}

static int build_group(const struct ribbon_bench_options *options, struct group_builder *builder,
		       struct groups *groups, uint32_t number, double *time)
{
	static struct group_member members[GROUP_SEGMENTS];
	struct group_plan plan = {
		.number = number,
		.fingerprint_bits = ribbon_fingerprint_bits(number),
		.locations = PLACEMENT_CANDIDATES,
		.members = members,
		.member_count = options->members,
		.entries = groups->entries,
		.entry_count = options->members * KEYS,
	};
	struct group *group = &groups->groups[number];
	uint8_t *aligned;
	uint64_t length;
	double begin;
	int result;

	for (uint32_t key = 0; key < plan.entry_count; key++)
		groups->entries[key] = entry_of(options, number, key);
	begin = ribbon_bench_seconds();
	result = group_build(builder, &plan, &groups->images[number], &length);
	*time += ribbon_bench_seconds() - begin;
	if (result)
		return result;
	group_attach(group, groups->images[number], length);
	for (uint32_t n = 0; n < group->failed; n++)
		groups->entries[n] = group_failed_entry(group, n);
	groups->failed += group->failed;
	groups->kept_bytes += group->kept;
	/* As a store would keep it: planes at cache lines, without the failed entries. */
	aligned = aligned_alloc(64, align_up(group->kept, 64));
	if (!aligned)
		return -ENOMEM;
	memcpy(aligned, groups->images[number], group->kept);
	free(groups->images[number]);
	groups->images[number] = aligned;
	group_attach(group, aligned, group->kept);
	struct exact *next = exact_rewrite(groups->exact, exact_shape_of(groups->exact),
					   groups->entries, group->failed, NULL, NULL);

	if (!next)
		return -ENOMEM;
	exact_destroy(groups->exact);
	groups->exact = next;
	return 0;
}

/* Whether an entry is found as a look-up finds the newest one: in its group, else exactly. */
static bool finds(const struct groups *groups, uint32_t number, const struct tag_entry *wanted)
{
	struct group_walk walk = { .tag = wanted->tag, .has_failed = true };
	struct tag_entry entry;
	uint32_t at = 0;

	while (group_next(&groups->groups[number], &walk, &entry))
		if (entry.segment == wanted->segment && entry.location == wanted->location)
			return true;
	while (exact_find(groups->exact, wanted->tag, 0, UINT64_MAX, &at, &entry))
		if (entry.segment == wanted->segment && entry.location == wanted->location)
			return true;
	return false;
}

static int check_all(const struct ribbon_bench_options *options, const struct groups *groups,
		     struct error_text *error)
{
	for (uint32_t number = 0; number < groups->count; number++)
		for (uint32_t key = 0; key < options->members * KEYS; key++) {
			struct tag_entry entry = entry_of(options, number, key);

			if (!finds(groups, number, &entry))
				return error_set(error, -EBADMSG,
						 "key %u of group %u was not found", key, number);
		}
	return 0;
}

static int build_all(const struct ribbon_bench_options *options, struct groups *groups, FILE *json,
		     FILE *text)
{
	uint32_t keys = options->members * KEYS;
	struct group_builder *builder = group_builder_create(keys);
	double time = 0, all = (double)keys * groups->count;
	int result = builder ? 0 : -ENOMEM;

	for (uint32_t number = 0; !result && number < groups->count; number++)
		result = build_group(options, builder, groups, number, &time);
	group_builder_destroy(builder);
	if (result)
		return result;
	ribbon_bench_print(json_pack("{s:s, s:f, s:f, s:f, s:f, s:f}", "part", "groups", "keys",
				     all, "build_ns_key", 1e9 * time / all, "bytes_key",
				     (double)groups->kept_bytes / all, "failed_percent",
				     100.0 * (double)groups->failed / all, "builder_bytes",
				     (double)group_builder_bytes(keys)),
			   json, text);
	return 0;
}

/* ---- asking ---- */

/* Looks through all groups of a row for a tag, from the newest on. Returns how many pages it names.
 */
static uint32_t ask_row(const struct groups *groups, uint32_t first, uint32_t count, uint32_t tag)
{
	struct tag_entry entry;
	uint32_t found = 0;

	for (uint32_t n = count; n-- > 0;)
		group_prefetch(&groups->groups[first + n], tag);
	for (uint32_t n = count; n-- > 0;) {
		struct group_walk walk = { .tag = tag };

		found += group_next(&groups->groups[first + n], &walk, &entry);
	}
	return found;
}

static void ask(const struct ribbon_bench_options *options, const struct groups *groups,
		uint32_t rows, bool present, const char *name, FILE *json, FILE *text)
{
	struct random_state random = random_stream(options->seed, STREAM_ABSENT);
	uint32_t keys = options->members * KEYS;
	uint64_t found = 0;
	double begin, none, time;

	assert(keys); /* at least one member: the options say so */
	/* The questions by themselves are taken off. */
	begin = ribbon_bench_seconds();
	for (uint64_t n = 0; n < options->questions; n++)
		found += random_next(&random) & 1;
	none = ribbon_bench_seconds() - begin;
	found &= 1; /* so that it is not left out */
	begin = ribbon_bench_seconds();
	for (uint64_t n = 0; n < options->questions; n++) {
		uint64_t word = random_next(&random);
		uint32_t row = (uint32_t)(word % rows);
		uint32_t group = row * options->groups + (uint32_t)(word >> 8) % options->groups;
		uint32_t key = (uint32_t)(word >> 40) % keys;
		uint32_t tag = present ? entry_of(options, group, key).tag
				       : (uint32_t)random_mix(word);

		found += ask_row(groups, row * options->groups, options->groups, tag);
	}
	time = ribbon_bench_seconds() - begin - none;
	ribbon_bench_print(json_pack("{s:s, s:f, s:f, s:i}", "part", name, "ns_question",
				     1e9 * time / (double)options->questions, "hits_question",
				     (double)found / (double)options->questions, "rows", (int)rows),
			   json, text);
}

/* What a seal costs: the row's table written anew with the keys of a segment, from 0 segments on.
 */
static int measure_exact(const struct ribbon_bench_options *options, struct groups *groups,
			 FILE *json, FILE *text)
{
	static const struct exact_shape shape = { .bucket_bits = 11,
						  .segment_bits = 9,
						  .location_bits = 2 };
	struct exact *exact = exact_create(&shape);
	uint32_t keys = options->members * KEYS;
	double begin = ribbon_bench_seconds();

	for (uint32_t member = 0; exact && member < options->members; member++) {
		struct exact *next;

		for (uint32_t key = 0; key < KEYS; key++)
			groups->entries[key] = entry_of(options, 0, member * KEYS + key);
		next = exact_rewrite(exact, &shape, groups->entries, KEYS, NULL, NULL);
		exact_destroy(exact);
		exact = next;
	}
	if (!exact)
		return -ENOMEM;
	ribbon_bench_print(json_pack("{s:s, s:f, s:f}", "part", "exact table", "write_ns_key",
				     1e9 * (ribbon_bench_seconds() - begin) / keys, "bytes_entry",
				     (double)exact_bytes(exact) / keys),
			   json, text);
	exact_destroy(exact);
	return 0;
}

static void ask_all(const struct ribbon_bench_options *options, const struct groups *groups,
		    FILE *json, FILE *text)
{
	ask(options, groups, 1, true, "present, one row", json, text);
	ask(options, groups, 1, false, "absent, one row", json, text);
	ask(options, groups, options->rows, true, "present, all rows", json, text);
	ask(options, groups, options->rows, false, "absent, all rows", json, text);
}

static int create_groups(const struct ribbon_bench_options *options, struct groups *groups)
{
	static const struct exact_shape shape = { .bucket_bits = 11,
						  .segment_bits = 9,
						  .location_bits = 2 };

	*groups = (struct groups){ .count = options->rows * options->groups };
	groups->groups = calloc(groups->count, sizeof(*groups->groups));
	groups->images = calloc(groups->count, sizeof(*groups->images));
	groups->entries = calloc((size_t)options->members * KEYS, sizeof(*groups->entries));
	groups->exact = exact_create(&shape);
	return groups->groups && groups->images && groups->entries && groups->exact ? 0 : -ENOMEM;
}

static void destroy_groups(struct groups *groups)
{
	for (uint32_t number = 0; groups->images && number < groups->count; number++)
		free(groups->images[number]);
	free(groups->groups);
	free(groups->images);
	free(groups->entries);
	exact_destroy(groups->exact);
}

int ribbon_bench_run(const struct ribbon_bench_options *options, FILE *json, FILE *text,
		     struct error_text *error)
{
	struct groups groups;
	int result = create_groups(options, &groups);

	if (!result)
		result = measure_arrangements(options, json, text);
	if (!result)
		result = build_all(options, &groups, json, text);
	if (!result)
		result = check_all(options, &groups, error);
	if (!result)
		result = measure_exact(options, &groups, json, text);
	if (!result)
		ask_all(options, &groups, json, text);
	destroy_groups(&groups);
	if (!result)
		result = ribbon_bench_rows(options, PLACEMENT_CANDIDATES, "rows, candidates", json,
					   text, error);
	if (!result)
		result = ribbon_bench_rows(options, PAGES, "rows, pages", json, text, error);
	return result == -ENOMEM ? error_set(error, result, "out of memory") : result;
}
