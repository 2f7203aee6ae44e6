/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Answers muninnd's question about a device's map: what takes its space and where, by a look at a
 * few pages, and its newest versions. Who asks waits for it, so there are limits on everything.
 */
#include "daemon/module/questions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "engine/history.h"

#define LOOK_US        200000 /* what is not looked at by then is left out */
#define LOOK_PAGES     2048
#define RECORDS_A_PART 64
#define STRETCHES      ENGINE_SURVEY_STRETCHES
#define PARTITIONS_MAX 16U
#define VERSIONS_MAX   16 /* of each of them, and of the device */

/* ---- what takes the space ---- */

struct look {
	struct engine_survey survey;
	struct engine_stretch stretches[STRETCHES];
	uint64_t live, kept, history, reclaimable; /* of the records that were seen */
};

static int look_on(struct engine *engine, struct look *look)
{
	struct engine_txn *txn;
	int result = engine_begin(engine, ENGINE_READ, &txn);

	if (result)
		return result;
	result = engine_survey(txn, &look->survey);
	engine_abort(txn);
	for (uint32_t n = 0; !result && n < look->survey.part_count; n++) {
		const struct engine_survey_part *part = &look->survey.parts[n];

		look->live += part->live;
		look->kept += part->kept;
		look->history += part->history;
		look->reclaimable += part->reclaimable;
	}
	return result;
}

/* What was seen of all records tells of all of them. */
static uint64_t scaled(const struct look *look, uint64_t part)
{
	uint64_t seen = look->live + look->kept + look->history + look->reclaimable;

	return seen ? (uint64_t)((unsigned __int128)look->survey.record_bytes * part / seen) : 0;
}

static void tell_look(const struct look *look, FILE *to)
{
	fprintf(to,
		"looked_at %" PRIu64 "\nlive_bytes %" PRIu64 "\nkept_bytes %" PRIu64
		"\nhistory_bytes %" PRIu64 "\nreclaimable_bytes %" PRIu64 "\n",
		look->survey.position, scaled(look, look->live), scaled(look, look->kept),
		scaled(look, look->history), scaled(look, look->reclaimable));
	for (uint32_t n = 0; n < look->survey.stretch_count; n++) {
		const struct engine_stretch *stretch = &look->stretches[n];

		fprintf(to, "stretch %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 "\n",
			stretch->segments, stretch->free, stretch->sealed, stretch->looked_bytes,
			stretch->live_bytes);
	}
}

static int tell_space(struct engine *engine, FILE *to)
{
	uint64_t until_us = clock_microseconds() + LOOK_US;
	struct look *look = calloc(1, sizeof(*look));
	int result = look ? 0 : -ENOMEM;

	if (!result)
		look->survey = (struct engine_survey){
			.wanted = LOOK_PAGES,
			.work = RECORDS_A_PART,
			.stretches = look->stretches,
			.stretch_count = STRETCHES,
		};
	while (!result && !look->survey.done && clock_microseconds() < until_us)
		result = look_on(engine, look);
	if (!result)
		tell_look(look, to);
	free(look);
	return result;
}

/* ---- versions ---- */

/*
 * The newest version of a partition's own, or of the device, before position `before`. Versions are
 * found from the oldest on, so it is looked for by halves. -ENOENT: there is none.
 */
static int version_before(struct engine_txn *txn, uint64_t partition, uint64_t before,
			  struct engine_version *version)
{
	uint64_t low = 0, high = before;
	int result = 0, found = -ENOENT;

	while (!result && low < high) {
		uint64_t middle = low + (high - low) / 2;
		struct engine_version each;

		result = engine_version_next_own(txn, partition, middle, &each);
		if (result == -ENOENT || (!result && each.position >= before)) {
			high = middle;
			result = 0;
		} else if (!result) {
			*version = each;
			low = each.position + 1;
			found = 0;
		}
	}
	return result ? result : found;
}

/* Names come last in a line: they may have any character that is no control. */
static void tell_version(uint64_t partition, const struct engine_version *version, FILE *to)
{
	fprintf(to, "version 0x%" PRIx64 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ",
		partition, version->version, version->time_ms, version->written_bytes,
		version->used_bytes);
	for (const char *at = version->name; *at; at++)
		fputc((unsigned char)*at < ' ' ? '?' : *at, to);
	fputc('\n', to);
}

static int tell_versions(struct engine *engine, uint64_t partition, FILE *to)
{
	struct engine_version version = { .position = UINT64_MAX };
	struct engine_txn *txn;
	int result = engine_begin(engine, ENGINE_READ, &txn);

	if (result)
		return result;
	for (int n = 0; !result && n < VERSIONS_MAX; n++) {
		result = version_before(txn, partition, version.position, &version);
		if (!result)
			tell_version(partition, &version, to);
	}
	engine_abort(txn);
	return result == -ENOENT ? 0 : result;
}

/* How many versions the device itself has. */
static int tell_count(struct engine *engine, FILE *to)
{
	struct engine_history history;
	struct engine_txn *txn;
	int result = engine_begin(engine, ENGINE_READ, &txn);

	if (result)
		return result;
	result = engine_history(txn, 0, &history);
	engine_abort(txn);
	if (!result)
		fprintf(to, "device_versions %" PRIu32 "\n", history.versions);
	return result;
}

/* The first partitions of the device, and how many more there are. */
static int list_partitions(struct engine *engine, uint64_t *ids, size_t *count, bool *more)
{
	struct engine_object *root;
	struct engine_txn *txn;
	uint64_t next = 0;
	int result = engine_begin(engine, ENGINE_READ, &txn);

	if (result)
		return result;
	result = engine_open_object(txn, (struct engine_address){ .partition = 0 }, &root);
	if (!result) {
		result = engine_object_list(root, ENGINE_LIST_PARTITIONS, 0, ids, PARTITIONS_MAX,
					    count, &next);
		engine_close_object(root);
	}
	engine_abort(txn);
	*more = next != 0;
	return result;
}

/* ---- all of it ---- */

int question_map(struct engine *engine, FILE *to)
{
	uint64_t ids[PARTITIONS_MAX];
	size_t count = 0;
	bool more = false;
	int result = tell_space(engine, to);

	/* A store that cannot be sampled has versions all the same. */
	if (result == -EOPNOTSUPP)
		result = 0;
	if (!result)
		result = list_partitions(engine, ids, &count, &more);
	if (!result)
		result = tell_count(engine, to);
	if (!result)
		result = tell_versions(engine, 0, to);
	for (size_t n = 0; !result && n < count; n++) {
		result = tell_versions(engine, ids[n], to);
		/* It has been removed meanwhile. */
		result = result == -ENOENT ? 0 : result;
	}
	if (!result)
		fprintf(to, "more_partitions %d\n", more);
	return result;
}
