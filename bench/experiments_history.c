/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Look-ups of old versions. Some pairs, spread over all that are in the store, are put again and
 * again: each by itself in a burst, or all of them in turn, among puts of others. Then each of
 * their versions is looked up by the bound at which it was the newest.
 */
#include "bench/experiments_history.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/random.h"
#include "bench/record_codec.h"

enum {
	WATCHED_MAX = 64,
	VERSIONS = 2001, /* of each: so the middle one is behind 1,000 newer ones */
};

struct watched {
	uint64_t pair;
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
	struct record_key key = bench_store_key(history->store, watched->pair);
	uint64_t bound = watched->numbers[version];
	uint8_t value[VALUE_BYTES_MAX], wanted[VALUE_BYTES_MAX];
	struct record_store *records = history->store->records;
	struct record_info info;
	int result;

	result = records->operations->get(records, &key, bound, value, sizeof(value), &info);
	if (!result) {
		record_value_make(&key, bound, wanted, info.length);
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

/* Looks up every `step`-th version of each pair from `first` on, and counts what that reads. */
static int measure(struct experiment *experiment, const struct history *history, const char *metric,
		   uint32_t first, uint32_t step, struct error_text *error)
{
	uint64_t before = pages_read(history->store), count = 0;
	int result = 0;

	for (uint32_t number = 0; number < history->count; number++)
		for (uint32_t version = first; !result && version < VERSIONS; version += step) {
			result = look_up(history, number, version, error);
			count++;
		}
	if (!result)
		experiment_find(experiment, metric, "pages",
				(double)(pages_read(history->store) - before) / (double)count);
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
	for (uint32_t number = 0; number < history->count; number++)
		history->watched[number].pair = number * history->share;
	result = bench_phase_run(store, &insert, 0, &report, error);
	if (!result) {
		phase_report_free(&report);
		result = (experiment->operations ? put_in_turn : put_in_bursts)(
			history, experiment->operations, error);
	}
	if (!result)
		result = measure(experiment, history, "page_reads_of_newest", VERSIONS - 1,
				 VERSIONS, error);
	if (!result)
		result = measure(experiment, history, "page_reads_behind_1000_newer", VERSIONS / 2,
				 VERSIONS, error);
	if (!result)
		result = measure(experiment, history, "page_reads_of_any_version", 0, 10, error);
	free(history);
	return result;
}

void experiments_list_history(struct experiment_list *list, const struct experiment_scale *scale,
			      uint64_t seed)
{
	static const struct {
		const char *name;
		uint64_t others;
		uint32_t pair_bytes;
	} cases[] = { { "versions in a burst", 0, 1024 },
		      { "versions in turn", 1, 1024 },
		      { "versions among 15 others", 15, 1024 },
		      { "versions of 100 bytes in a burst", 0, 128 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct experiment *experiment = experiment_add(list, "as of", seed);

		assert(scale->history_keys > 0 && scale->history_keys <= WATCHED_MAX);
		experiment->run = run_history;
		experiment->has_second = true;
		experiment->operations = cases[i].others;
		experiment->keys = scale->history_keys;
		experiment->options.rows = 4;
		experiment->options.size = 8 * EXPERIMENT_ROW_BYTES;
		experiment->options.pairs = scale->history_pairs;
		experiment->options.pair_bytes = cases[i].pair_bytes;
		experiment->note = "fewer pairs";
		snprintf(experiment->name, sizeof(experiment->name), "%s", cases[i].name);
	}
}
