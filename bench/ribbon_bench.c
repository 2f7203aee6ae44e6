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
#include "engine/muninn/index/ribbon/layout.h"
#include "engine/muninn/index/ribbon/ribbon_shape.h"

enum {
	PAGES = 256,
	PAGE_BYTES = 4096,
	KEYS = 1024, /* of a segment */
	RECORDS_MAX = 40000,
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

/* ---- laying out segments ---- */

struct kind {
	const char *name;
	uint32_t (*bytes)(struct random_state *random);
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

/* The buffer of a row: what is left of the last segment, then new records. */
struct buffered {
	struct layout_record *records;
	uint8_t (*headers)[RECORD_HEADER_BYTES];
	uint32_t count;
	uint64_t bytes, number;
};

static uint32_t bytes_of(const struct layout_record *record)
{
	return RECORD_HEADER_BYTES + record_length(record->header);
}

static void fill(struct buffered *buffered, const struct kind *kind, struct random_state *random)
{
	static const uint8_t value[PAGE_BYTES];

	for (;;) {
		struct record_header header = {
			.key = { .partition = 1, .identifier = ++buffered->number },
			.sequence = buffered->number,
			.epoch = RECORD_EPOCH_ENDLESS,
			.length = (uint16_t)(kind->bytes(random) - RECORD_HEADER_BYTES),
		};
		uint32_t n = buffered->count;

		buffered->bytes += RECORD_HEADER_BYTES + header.length;
		if (buffered->bytes > (uint64_t)PAGES * PAGE_BYTES)
			return;
		record_header_encode(&header, 1, value, buffered->headers[n]);
		buffered->records[n] =
			(struct layout_record){ .header = buffered->headers[n],
						.hash = key_hash(&header.key, PAGES) };
		buffered->count++;
	}
}

/* Keeps what was carried. Returns the bytes that are in the segment. */
static uint64_t carry(struct buffered *buffered)
{
	uint32_t left = 0;
	uint64_t bytes = 0;

	buffered->bytes = 0;
	for (uint32_t n = 0; n < buffered->count; n++) {
		struct layout_record *record = &buffered->records[n];

		if (record->page != LAYOUT_CARRIED) {
			bytes += bytes_of(record);
			continue;
		}
		buffered->bytes += bytes_of(record);
		memmove(buffered->headers[left], buffered->headers[n], RECORD_HEADER_BYTES);
		record->header = buffered->headers[left];
		record->was_carried = true;
		buffered->records[left++] = *record;
	}
	buffered->count = left;
	return bytes;
}

static void lay_out(const struct ribbon_bench_options *options, const struct kind *kind,
		    struct buffered *buffered, struct layout *layout, FILE *json, FILE *text)
{
	struct random_state random = random_stream(options->seed, STREAM_RECORDS);
	uint64_t bytes = 0, records = 0, carried = 0;
	double time = 0;

	buffered->count = 0;
	buffered->bytes = buffered->number = 0;
	for (uint32_t n = 0; n < options->segments; n++) {
		struct layout_shape shape = { .serial = 8 * n + 8,
					      .pages = PAGES,
					      .page_bytes = PAGE_BYTES };
		struct layout_result result;
		double begin;

		fill(buffered, kind, &random);
		begin = ribbon_bench_seconds();
		layout_solve(layout, &shape, buffered->records, buffered->count, &result);
		time += ribbon_bench_seconds() - begin;
		records += buffered->count;
		carried += result.carried;
		bytes += carry(buffered);
	}
	ribbon_bench_print(
		json_pack("{s:s, s:f, s:f, s:f}", "part", kind->name, "filled_percent",
			  100.0 * (double)bytes / ((double)options->segments * PAGES * PAGE_BYTES),
			  "carried_percent", 100.0 * (double)carried / (double)records,
			  "us_segment", 1e6 * time / options->segments),
		json, text);
}

static int measure_layouts(const struct ribbon_bench_options *options, FILE *json, FILE *text)
{
	static const struct kind kinds[] = { { "layout, 1 KiB", kibibyte },
					     { "layout, log-normal", log_normal } };
	struct layout *layout = layout_create(PAGES, RECORDS_MAX);
	struct buffered buffered = {
		.records = malloc(RECORDS_MAX * sizeof(*buffered.records)),
		.headers = malloc(RECORDS_MAX * sizeof(*buffered.headers)),
	};
	int result = layout && buffered.records && buffered.headers ? 0 : -ENOMEM;

	for (size_t n = 0; !result && n < sizeof(kinds) / sizeof(kinds[0]); n++)
		lay_out(options, &kinds[n], &buffered, layout, json, text);
	layout_destroy(layout);
	free(buffered.records);
	free(buffered.headers);
	return result;
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
		result = measure_layouts(options, json, text);
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
