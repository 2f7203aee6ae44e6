/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Versions by time. Nothing is remembered but the versions themselves: that of an hour that is
 * there already can't be made a second time, because its name is taken.
 */
#include "daemon/module/schedule.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "daemon/module/options.h"
#include "engine/engine.h"
#include "engine/history.h"

#define MINUTE_MS UINT64_C(60000)

/* ---- the text ---- */

static int parse_partition(const char *word, struct schedule_rules *rules, struct error_text *error)
{
	uint64_t partition;
	int result = lun_option_partition(word, &partition, error);

	if (result)
		return result;
	for (unsigned int i = 0; i < rules->count; i++)
		if (rules->rule[i].partition == partition)
			return error_set(error, -EINVAL, "partition %s is there twice", word);
	if (rules->count == SCHEDULE_RULES_MAX)
		return error_set(error, -EINVAL, "at most %d partitions have a schedule in one key",
				 SCHEDULE_RULES_MAX);
	rules->rule[rules->count++] = (struct schedule_rule){ .partition = partition };
	return 0;
}

static int find_kind(const char *word, size_t length, unsigned int *kind)
{
	for (*kind = 0; *kind < OSD_SCHEDULE_KINDS; ++*kind)
		if (strlen(osd_schedule_words[*kind]) == length &&
		    !strncmp(osd_schedule_words[*kind], word, length))
			return 0;
	return -ENOENT;
}

static int parse_kind(const char *word, struct schedule_rules *rules, struct error_text *error)
{
	const char *colon = strchr(word, ':');
	unsigned long number = 0;
	struct schedule_rule *rule;
	unsigned int kind;
	char *end = NULL;

	if (!colon || find_kind(word, (size_t)(colon - word), &kind))
		return error_set(error, -EINVAL,
				 "'%s' is not KIND:NUMBER, with the kinds minutely, hourly, daily, "
				 "weekly and monthly",
				 word);
	errno = 0;
	if (isdigit((unsigned char)colon[1]))
		number = strtoul(colon + 1, &end, 10);
	if (!end || *end || errno || number < 1 || number > SCHEDULE_KEEP_MAX)
		return error_set(error, -EINVAL,
				 "'%s': a number from 1 to %d belongs behind the :", word,
				 SCHEDULE_KEEP_MAX);
	if (!rules->count)
		rules->rule[rules->count++] = (struct schedule_rule){ .partition = 0 };
	rule = &rules->rule[rules->count - 1];
	if (rule->keep[kind])
		return error_set(error, -EINVAL, "%s is there twice", osd_schedule_words[kind]);
	rule->keep[kind] = (uint16_t)number;
	return 0;
}

static bool is_empty(const struct schedule_rule *rule)
{
	for (unsigned int kind = 0; kind < OSD_SCHEDULE_KINDS; kind++)
		if (rule->keep[kind])
			return false;
	return true;
}

int schedule_parse(const char *text, struct schedule_rules *rules, struct error_text *error)
{
	char copy[SCHEDULE_TEXT_BYTES], *rest = copy, *word;
	int result = 0;

	*rules = (struct schedule_rules){ .count = 0 };
	if (strlen(text) >= sizeof(copy))
		return error_set(error, -EINVAL, "a schedule has at most %d characters",
				 SCHEDULE_TEXT_BYTES - 1);
	strcpy(copy, text);
	while (!result && (word = strsep(&rest, " \t"))) {
		if (!*word)
			continue;
		result = isdigit((unsigned char)*word) ? parse_partition(word, rules, error)
						       : parse_kind(word, rules, error);
	}
	for (unsigned int i = 0; !result && i < rules->count; i++)
		if (is_empty(&rules->rule[i]))
			result = error_set(error, -EINVAL,
					   "partition 0x%" PRIx64 " has no KIND:NUMBER behind it",
					   rules->rule[i].partition);
	if (!result && !rules->count)
		result = error_set(error, -EINVAL, "a schedule has at least one KIND:NUMBER");
	return result;
}

/* ---- hours, days and the like: all of them by UTC ---- */

/* A number for the one that a time is in, which is not 0, and when it began. */
static uint64_t period_of(enum osd_schedule_kind kind, uint64_t now_ms, uint64_t *began_ms)
{
	*began_ms = osd_schedule_period(kind, now_ms);
	return *began_ms + 1;
}

/* The name says what the version is, and of when. */
static void name_version(enum osd_schedule_kind kind, uint64_t began_ms,
			 char name[ENGINE_VERSION_NAME_MAX + 1])
{
	time_t seconds = (time_t)(began_ms / 1000);
	struct tm parts = { 0 };
	char when[32];

	gmtime_r(&seconds, &parts);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%MZ", &parts);
	snprintf(name, ENGINE_VERSION_NAME_MAX + 1, "%s-%s", osd_schedule_words[kind], when);
}

static bool is_of_kind(const struct engine_version *version, enum osd_schedule_kind kind)
{
	size_t length = strlen(osd_schedule_words[kind]);

	return !strncmp(version->name, osd_schedule_words[kind], length) &&
	       version->name[length] == '-' &&
	       osd_version_name_is_scheduled((const uint8_t *)version->name, strlen(version->name));
}

/* ---- making ---- */

static int end(struct engine_txn *txn, int result)
{
	if (!result)
		return engine_commit(txn, true);
	engine_abort(txn);
	return result;
}

/* -EEXIST: it is there already. *done = of when it is. */
static int make_version(const struct schedule *schedule, uint64_t partition,
			enum osd_schedule_kind kind, struct engine *engine, uint64_t *done)
{
	char name[ENGINE_VERSION_NAME_MAX + 1];
	struct engine_txn *txn;
	uint32_t version = 0;
	uint64_t began_ms;
	int result = engine_begin(engine, ENGINE_HISTORY, &txn);

	if (result)
		return result;
	*done = period_of(kind, engine_txn_time(txn), &began_ms);
	name_version(kind, began_ms, name);
	result = end(txn, engine_snapshot(txn, partition, name, &version));
	if (!result)
		log_line(LOG_LEVEL_DEBUG,
			 "%s: snapshot_schedule: version %" PRIu32 " of partition 0x%" PRIx64
			 ", '%s'",
			 schedule->image, version, partition, name);
	return result;
}

/* ---- dropping ---- */

/* The first version of a kind whose position is >= `from`. Takes the turn once for each version. */
static int next_of_kind(struct engine *engine, uint64_t partition, enum osd_schedule_kind kind,
			uint64_t from, struct engine_version *version)
{
	struct engine_txn *txn;
	int result;

	do {
		result = engine_begin(engine, ENGINE_READ, &txn);
		if (result)
			return result;
		result = engine_version_next(txn, partition, from, version);
		engine_abort(txn);
		if (result)
			return result;
		from = version->position + 1;
	} while (!is_of_kind(version, kind) ||
		 (partition && version->version >= ENGINE_DEVICE_VERSION_FIRST));
	return 0;
}

static int drop_version(struct engine *engine, uint64_t partition, uint32_t version)
{
	struct engine_txn *txn;
	int result = engine_begin(engine, ENGINE_RESCUE, &txn);

	if (result)
		return result;
	return end(txn, engine_version_drop(txn, partition, version));
}

/*
 * Those that a clone stands on stay, until another time. A lock ends it with -EPERM: it keeps them
 * all.
 */
static int drop_old_ones(struct engine *engine, const struct schedule_rule *rule,
			 enum osd_schedule_kind kind)
{
	struct engine_version version;
	uint64_t count = 0, from;
	int result;

	for (from = 0; !(result = next_of_kind(engine, rule->partition, kind, from, &version));
	     from = version.position + 1)
		count++;
	for (from = 0; result == -ENOENT && count > rule->keep[kind]; count--) {
		result = next_of_kind(engine, rule->partition, kind, from, &version);
		if (result)
			break;
		from = version.position + 1;
		result = drop_version(engine, rule->partition, version.version);
		if (!result || result == -EBUSY || result == -ENOENT)
			result = -ENOENT;
	}
	return result == -ENOENT ? 0 : result;
}

/* ---- messages ---- */

static const char *reason_of(int result)
{
	return result == -ENOSPC      ? "the device is full"
	       : result == -ENOENT    ? "there is no such partition"
	       : result == -EROFS     ? "it can only be read"
	       : result == -EFBIG     ? "kept versions have all numbers"
	       : result == -EOVERFLOW ? "the device has no more moments"
				      : strerror(-result);
}

static void tell_error(const struct schedule *schedule, uint64_t partition,
		       struct schedule_state *state, int result)
{
	if (result == state->error)
		return;
	if (result)
		log_line(LOG_LEVEL_WARNING,
			 "%s: snapshot_schedule: no version of partition 0x%" PRIx64
			 " can be kept: %s",
			 schedule->image, partition, reason_of(result));
	else
		log_line(LOG_LEVEL_INFO,
			 "%s: snapshot_schedule: versions of partition 0x%" PRIx64
			 " can be kept again",
			 schedule->image, partition);
	state->error = result;
}

/* What can't be dropped for another reason than a lock is tried again with the next version. */
static void tell_drop(const struct schedule *schedule, uint64_t partition,
		      struct schedule_state *state, int result)
{
	if (result == -EPERM && !state->is_locked)
		log_line(LOG_LEVEL_INFO,
			 "%s: snapshot_schedule: a lock keeps versions of partition 0x%" PRIx64
			 " beyond their number",
			 schedule->image, partition);
	else if (result && result != -EPERM)
		log_line(LOG_LEVEL_WARNING,
			 "%s: snapshot_schedule: an old version of partition 0x%" PRIx64
			 " can't be dropped: %s",
			 schedule->image, partition, strerror(-result));
	state->is_locked = result == -EPERM;
}

/* ---- looking ---- */

void schedule_begin(struct schedule *schedule, const struct schedule_rules *rules,
		    uint64_t partition, const char *image)
{
	*schedule = (struct schedule){ .image = image, .rules = *rules };
	for (unsigned int i = 0; i < rules->count; i++)
		if (!rules->rule[i].partition)
			schedule->rules.rule[i].partition = partition;
}

/* 0, or why none can be made now. */
static int look_at_kind(struct schedule *schedule, unsigned int number, enum osd_schedule_kind kind,
			struct engine *engine)
{
	const struct schedule_rule *rule = &schedule->rules.rule[number];
	struct schedule_state *state = &schedule->state[number];
	uint64_t done = 0;
	int result = make_version(schedule, rule->partition, kind, engine, &done);

	if (result && result != -EEXIST)
		return result;
	state->done[kind] = done;
	tell_drop(schedule, rule->partition, state, drop_old_ones(engine, rule, kind));
	return 0;
}

static void look_at_rule(struct schedule *schedule, unsigned int number, uint64_t now_ms,
			 struct engine *engine)
{
	const struct schedule_rule *rule = &schedule->rules.rule[number];
	struct schedule_state *state = &schedule->state[number];
	bool is_due = false;
	uint64_t began_ms;
	int result = 0;

	/* Not for long, should the clock have been set back. */
	if (now_ms < state->retry_ms && state->retry_ms - now_ms <= MINUTE_MS)
		return;
	for (enum osd_schedule_kind kind = OSD_MINUTELY; !result && kind <= OSD_MONTHLY; kind++) {
		if (!rule->keep[kind] || state->done[kind] == period_of(kind, now_ms, &began_ms))
			continue;
		is_due = true;
		result = look_at_kind(schedule, number, kind, engine);
	}
	/* Snapshots come faster than the device's life allows, for a second: see engine/history.h.
	 */
	state->retry_ms = result == -ETIME ? now_ms + 1000 : result ? now_ms + MINUTE_MS : 0;
	if (is_due && result != -ETIME)
		tell_error(schedule, rule->partition, state, result);
}

void schedule_look(struct schedule *schedule, struct engine *engine)
{
	struct engine_txn *txn;
	uint64_t now_ms;

	if (!schedule->rules.count || engine_begin(engine, ENGINE_READ, &txn))
		return;
	now_ms = engine_txn_time(txn);
	engine_abort(txn);
	for (unsigned int i = 0; i < schedule->rules.count; i++)
		look_at_rule(schedule, i, now_ms, engine);
}
