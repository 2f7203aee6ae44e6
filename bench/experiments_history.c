/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Look-ups of old versions. Some pairs, spread over all that are in the store, are put again and
 * again: each by itself in a burst, or all of them in turn, among puts of others. Then each of
 * their versions is looked up by the bound at which it was the newest. On a device that is merged
 * all the time, merging keeps all versions of these pairs, and of others the present.
 */
#include "bench/experiments_history.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/latencies.h"
#include "bench/random.h"
#include "bench/record_codec.h"

enum {
	WATCHED_MAX = 64,
	VERSIONS = 2001,   /* of each: so the middle one is behind 1,000 newer ones */
	LIVE_PERCENT = 20, /* where it is merged: of the device, in the end ... */
	MERGED_PART = 4,   /* ... and of pairs and watched ones, one in so many */
};

struct watched {
	uint64_t pair;
	struct record_key key;
	uint64_t numbers[VERSIONS]; /* of its versions, the oldest first */
};

struct history {
	struct bench_store *store;
	uint64_t share; /* of all pairs, for each that is watched: its first one is */
	uint32_t count; /* of watched pairs */
	struct random_state random;
	struct watched watched[WATCHED_MAX];
};

/* ---- putting ---- */

/* Merging keeps every version of a watched pair, whatever bound finds it. */
static uint32_t keep_watched(void *context, const struct record_key *key,
			     const struct record_info *info, uint64_t *bounds, uint32_t max)
{
	const struct history *history = context;

	(void)info;
	(void)bounds;
	for (uint32_t number = 0; number < history->count; number++)
		if (history->watched[number].key.identifier == key->identifier)
			return max + 1;
	return 0;
}

static int put(const struct history *history, uint64_t pair, struct error_text *error)
{
	int result = bench_store_put(history->store, pair, false);

	return result ? bench_store_explain(history->store, result, "update", pair, error) : 0;
}

static int put_watched(struct history *history, uint32_t number, uint32_t version,
		       struct error_text *error)
{
	struct watched *watched = &history->watched[number];
	int result = put(history, watched->pair, error);

	watched->numbers[version] = history->store->expected[watched->pair];
	return result;
}

/* A pair that is not watched. */
static int put_other(struct history *history, struct error_text *error)
{
	uint64_t pair = random_below(&history->random, history->count) * history->share + 1 +
			random_below(&history->random, history->share - 1);

	return put(history, pair, error);
}

/* One after the other, all versions of each. */
static int put_in_bursts(struct history *history, uint64_t others, struct error_text *error)
{
	int result = 0;

	(void)others;
	for (uint32_t number = 0; number < history->count; number++)
		for (uint32_t version = 0; !result && version < VERSIONS; version++)
			result = put_watched(history, number, version, error);
	return result;
}

/* In turn, so many others behind each put. */
static int put_in_turn(struct history *history, uint64_t others, struct error_text *error)
{
	int result = 0;

	for (uint32_t version = 0; version < VERSIONS; version++)
		for (uint32_t number = 0; !result && number < history->count; number++) {
			result = put_watched(history, number, version, error);
			for (uint64_t n = 0; !result && n < others; n++)
				result = put_other(history, error);
		}
	return result;
}

/* ---- looking up ---- */

static int look_up(const struct history *history, uint32_t number, uint32_t version,
		   struct error_text *error)
{
	const struct watched *watched = &history->watched[number];
	uint64_t bound = watched->numbers[version];
	uint8_t value[VALUE_BYTES_MAX], wanted[VALUE_BYTES_MAX];
	struct record_store *records = history->store->records;
	struct record_info info;
	int result;

	result = records->operations->get(records, &watched->key, bound, value, sizeof(value),
					  &info);
	if (!result) {
		record_value_make(&watched->key, bound, wanted, info.length);
		if (info.sequence != bound || memcmp(value, wanted, info.length) != 0)
			result = -EILSEQ;
	}
	return result ? bench_store_explain(history->store, result, "look-up of an old version",
					    watched->pair, error)
		      : 0;
}

static uint64_t pages_read(const struct bench_store *store)
{
	struct record_statistics statistics = { 0 };

	store->records->operations->statistics(store->records, &statistics);
	return statistics.user_page_reads;
}

/* Versions that are looked up: every `step`-th of each pair from `first` on. */
struct measured {
	const char *mean, *p99, *most; /* metrics: page reads of a look-up; NULL: not wanted */
	uint32_t first, step;
};

/* Counts what each look-up reads. */
static int count_reads(const struct history *history, const struct measured *measured,
		       struct latencies *reads, struct error_text *error)
{
	uint64_t before = pages_read(history->store), after;
	int result = 0;

	for (uint32_t number = 0; number < history->count; number++)
		for (uint32_t version = measured->first; !result && version < VERSIONS;
		     version += measured->step) {
			result = look_up(history, number, version, error);
			after = pages_read(history->store);
			latencies_add(reads, after - before);
			before = after;
		}
	return result;
}

static int measure(struct experiment *experiment, const struct history *history,
		   const struct measured *measured, struct error_text *error)
{
	struct latencies *reads = latencies_create();
	uint64_t total = pages_read(history->store);
	int result;

	if (!reads)
		return error_set(error, -ENOMEM, "out of memory");
	result = count_reads(history, measured, reads, error);
	total = pages_read(history->store) - total;
	if (!result)
		experiment_find(experiment, measured->mean, "pages",
				(double)total / (double)reads->count);
	if (!result && measured->p99)
		experiment_find(experiment, measured->p99, "pages",
				latencies_percentile(reads, 0.99));
	if (!result && measured->most)
		experiment_find(experiment, measured->most, "pages", (double)reads->max);
	free(reads);
	return result;
}

static int measure_all(struct experiment *experiment, const struct history *history,
		       struct error_text *error)
{
	static const struct measured all[] = {
		{ "page_reads_of_newest", NULL, NULL, VERSIONS - 1, VERSIONS },
		{ "page_reads_behind_1000_newer", NULL, "most_reads_behind_1000_newer",
		  VERSIONS / 2, VERSIONS },
		{ "page_reads_of_any_version", "p99_reads_of_any_version",
		  "most_reads_of_any_version", 0, 10 },
	};
	int result = 0;

	for (size_t i = 0; !result && i < sizeof(all) / sizeof(all[0]); i++)
		result = measure(experiment, history, &all[i], error);
	return result;
}

/* What the index knew of old records may be forgotten. */
static int measure_after_restart(struct experiment *experiment, const struct history *history,
				 struct error_text *error)
{
	static const struct measured all[] = {
		{ "page_reads_behind_1000_newer_after_restart", NULL, NULL, VERSIONS / 2,
		  VERSIONS },
		{ "page_reads_of_any_version_after_restart", NULL, NULL, 0, 10 },
	};
	int result = bench_store_crash(history->store, error);

	for (size_t i = 0; !result && i < sizeof(all) / sizeof(all[0]); i++)
		result = measure(experiment, history, &all[i], error);
	return result;
}

/* ---- all of it ---- */

static int run_history(struct experiment *experiment, struct bench_store *store,
		       struct error_text *error)
{
	const struct bench_phase insert = { .operation = OPERATION_INSERT,
					    .distribution = DISTRIBUTION_SEQUENTIAL };
	struct history *history = calloc(1, sizeof(*history));
	struct phase_report report;
	int result;

	if (!history)
		return error_set(error, -ENOMEM, "out of memory");
	history->store = store;
	history->count = experiment->keys;
	history->share = experiment->options.pairs / history->count;
	history->random = random_stream(experiment->options.seed, 0);
	for (uint32_t number = 0; number < history->count; number++) {
		history->watched[number].pair = number * history->share;
		history->watched[number].key = bench_store_key(store, number * history->share);
	}
	store->keep = (struct record_keep){ .context = history, .bounds = keep_watched };
	result = bench_phase_run(store, &insert, 0, &report, error);
	if (!result) {
		phase_report_free(&report);
		result = (experiment->operations ? put_in_turn : put_in_bursts)(
			history, experiment->operations, error);
	}
	if (!result)
		result = measure_all(experiment, history, error);
	if (!result && store->options.merge != BENCH_MERGE_OFF)
		result = measure_after_restart(experiment, history, error);
	store->keep = (struct record_keep){ 0 };
	free(history);
	return result;
}

/* A device that is merged all the time. Fewer pairs: merging takes long. */
static void let_merge(struct experiment *experiment)
{
	uint64_t records;

	experiment->keys /= MERGED_PART;
	experiment->options.pairs /= MERGED_PART;
	records = experiment->options.pairs + (uint64_t)experiment->keys * VERSIONS;
	experiment->options.rows = 1;
	experiment->options.merge = BENCH_MERGE_SAMPLED;
	experiment->options.size = records * experiment->options.pair_bytes * 100 / LIVE_PERCENT;
}

void experiments_list_history(struct experiment_list *list, const struct experiment_scale *scale,
			      uint64_t seed)
{
	static const struct {
		const char *name;
		uint64_t others;
		uint32_t pair_bytes;
		bool merges;
	} cases[] = { { "versions in a burst", 0, 1024, false },
		      { "versions in turn", 1, 1024, false },
		      { "versions among 15 others", 15, 1024, false },
		      { "versions of 100 bytes in a burst", 0, 128, false },
		      { "merged versions among 15 others", 15, 1024, true } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct experiment *experiment;

		/* Too small a device finds nothing to merge. */
		if (cases[i].merges && scale->history_keys < MERGED_PART)
			continue;
		experiment = experiment_add(list, "as of", seed);
		assert(scale->history_keys > 0 && scale->history_keys <= WATCHED_MAX);
		experiment->run = run_history;
		experiment->has_second = true;
		experiment->operations = cases[i].others;
		experiment->keys = scale->history_keys;
		experiment->options.rows = 4;
		experiment->options.size = 8 * EXPERIMENT_ROW_BYTES;
		experiment->options.pairs = scale->history_pairs;
		experiment->options.pair_bytes = cases[i].pair_bytes;
		if (cases[i].merges)
			let_merge(experiment);
		experiment->note = "fewer pairs";
		snprintf(experiment->name, sizeof(experiment->name), "%s", cases[i].name);
	}
}
