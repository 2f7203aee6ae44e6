/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Versions by time, with a clock of the test's own: what is made when, and what is dropped. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/log.h"
#include "daemon/module/schedule.h"
#include "engine/engine.h"
#include "engine/history.h"
#include "engine/options.h"
#include "nand/nand.h"
#include "tests/engine/by_address.h"

#define P      ENGINE_FIRST_ID
#define MINUTE UINT64_C(60000)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

/* 2026-11-25 14:20, a Wednesday. */
#define BEGIN_MS (UINT64_C(1795616400000))

enum { MIB = 1 << 20, VERSIONS_MAX = 64, LISTING_BYTES = 4096, DROPS_AT_ONCE = 64 };

struct scene {
	struct nand *nand;
	struct engine *engine;
	struct schedule schedule;
	uint64_t now_ms;
	char listing[LISTING_BYTES];
};

static char last_line[1024];
static unsigned int lines;

static void keep_line(enum log_level level, const char *line)
{
	(void)level;
	snprintf(last_line, sizeof(last_line), "%s", line);
	lines++;
}

static void assert_told(const char *what)
{
	if (!strstr(last_line, what))
		fail_msg("'%s' does not say '%s'", last_line, what);
	assert_int_equal(lines, 1);
	lines = 0;
}

/* ---- the device ---- */

static uint64_t clock_of(void *context)
{
	return ((struct scene *)context)->now_ms;
}

static void open_engine(struct scene *scene, bool format)
{
	const struct engine_options options = { .muninn.rows = 2,
						.clock_ms = clock_of,
						.clock_context = scene };
	struct error_text error = { "" };

	if ((format && engine_format(scene->nand, &options, &error)) ||
	    engine_open(scene->nand, &options, &scene->engine, &error))
		fail_msg("%s", error.text);
}

static struct engine_txn *begin(struct scene *scene, enum engine_mode mode)
{
	struct engine_txn *txn = NULL;

	assert_int_equal(engine_begin(scene->engine, mode, &txn), 0);
	return txn;
}

static void create_partition(struct scene *scene, uint64_t partition)
{
	struct engine_txn *txn = begin(scene, ENGINE_WRITE);

	assert_int_equal(engine_partition_create(txn, partition, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static int setup(void **state)
{
	const struct nand_geometry geometry = nand_geometry_default(32 * MIB);
	const struct engine_options options = { .muninn.rows = 2 };
	struct scene *scene = calloc(1, sizeof(*scene));
	struct error_text error = { "" };
	uint64_t nvram;

	assert_non_null(scene);
	lines = 0;
	log_configure(keep_line, LOG_LEVEL_INFO);
	scene->now_ms = BEGIN_MS;
	if (engine_nvram_bytes(&geometry, &options, &nvram, &error) ||
	    nand_open_memory(&geometry, nvram, &scene->nand, &error))
		fail_msg("%s", error.text);
	open_engine(scene, true);
	create_partition(scene, P);
	*state = scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(engine_close(scene->engine), 0);
	assert_int_equal(nand_close(scene->nand), 0);
	log_configure(NULL, LOG_LEVEL_INFO);
	free(scene);
	return 0;
}

/* ---- the schedule ---- */

static void schedule(struct scene *scene, const char *text, uint64_t about)
{
	struct schedule_rules rules;
	struct error_text error = { "" };

	if (schedule_parse(text, &rules, &error))
		fail_msg("%s", error.text);
	schedule_begin(&scene->schedule, &rules, about, "image");
}

static void look_at(struct scene *scene, uint64_t now_ms)
{
	scene->now_ms = now_ms;
	schedule_look(&scene->schedule, scene->engine);
}

/* The names of a partition's versions, from the oldest to the newest. */
static const char *names(struct scene *scene, uint64_t partition)
{
	struct engine_txn *txn = begin(scene, ENGINE_READ);
	struct engine_version version;
	size_t length = 0;

	scene->listing[0] = '\0';
	for (uint64_t from = 0; !engine_version_next(txn, partition, from, &version);
	     from = version.position + 1)
		length += (size_t)snprintf(scene->listing + length, LISTING_BYTES - length, "%s%s",
					   length ? " " : "", version.name);
	engine_abort(txn);
	return scene->listing;
}

static int try_snapshot(struct scene *scene, uint64_t partition, const char *name)
{
	struct engine_txn *txn = begin(scene, ENGINE_HISTORY);
	int result = engine_snapshot(txn, partition, name, NULL);

	if (!result)
		return engine_commit(txn, false);
	engine_abort(txn);
	return result;
}

static void snapshot(struct scene *scene, uint64_t partition, const char *name)
{
	assert_int_equal(try_snapshot(scene, partition, name), 0);
}

static void set_lock(struct scene *scene, uint64_t until_ms)
{
	struct engine_txn *txn = begin(scene, ENGINE_RESCUE);
	struct engine_retention retention;

	assert_int_equal(engine_retention_get(txn, P, &retention), 0);
	retention.locked_until_ms = until_ms;
	assert_int_equal(engine_retention_set(txn, P, &retention, true), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

/* ---- the text ---- */

static void test_a_schedule_names_kinds_and_partitions(void **state)
{
	struct schedule_rules rules;
	struct error_text error;

	(void)state;
	assert_int_equal(schedule_parse("  daily:30\tweekly:8 0x10000 minutely:1  hourly:1000 "
					"65538 monthly:12",
					&rules, &error),
			 0);
	assert_int_equal(rules.count, 3);
	assert_int_equal(rules.rule[0].partition, 0);
	assert_int_equal(rules.rule[0].keep[2], 30);
	assert_int_equal(rules.rule[0].keep[3], 8);
	assert_int_equal(rules.rule[0].keep[0], 0);
	assert_int_equal(rules.rule[1].partition, 0x10000);
	assert_int_equal(rules.rule[1].keep[0], 1);
	assert_int_equal(rules.rule[1].keep[1], 1000);
	assert_int_equal(rules.rule[2].partition, 0x10002);
	assert_int_equal(rules.rule[2].keep[4], 12);
}

static void assert_refused(const char *text, const char *reason)
{
	struct schedule_rules rules;
	struct error_text error = { "" };

	assert_int_equal(schedule_parse(text, &rules, &error), -EINVAL);
	if (!strstr(error.text, reason))
		fail_msg("'%s' refused with '%s', which does not say '%s'", text, error.text,
			 reason);
}

static void test_a_schedule_that_says_nothing_clear_is_refused(void **state)
{
	char many[SCHEDULE_TEXT_BYTES + 16];
	size_t length = 0;

	(void)state;
	assert_refused("", "at least one KIND:NUMBER");
	assert_refused("hourly", "'hourly' is not KIND:NUMBER");
	assert_refused("yearly:1", "with the kinds minutely, hourly, daily, weekly and monthly");
	assert_refused("hour:1", "is not KIND:NUMBER");
	assert_refused("hourly:0", "a number from 1 to 1000");
	assert_refused("hourly:1001", "a number from 1 to 1000");
	assert_refused("hourly:", "a number from 1 to 1000");
	assert_refused("hourly:2x", "a number from 1 to 1000");
	assert_refused("hourly:-2", "a number from 1 to 1000");
	assert_refused("hourly:24 daily:7 hourly:12", "hourly is there twice");
	assert_refused("0x10000", "partition 0x10000 has no KIND:NUMBER behind it");
	assert_refused("0x10000 0x10001 daily:1", "partition 0x10000 has no KIND:NUMBER");
	assert_refused("0x10000 daily:1 65536 daily:1", "partition 65536 is there twice");
	assert_refused("0xFFFF daily:1", "'0xFFFF' is no partition ID");
	for (unsigned int i = 0; i < SCHEDULE_RULES_MAX + 1; i++)
		length += (size_t)snprintf(many + length, sizeof(many) - length, "0x%x daily:1 ",
					   0x10000 + i);
	assert_refused(many, "at most 16 partitions");
	memset(many, ' ', SCHEDULE_TEXT_BYTES);
	strcpy(many + SCHEDULE_TEXT_BYTES, "daily:1");
	assert_refused(many, "at most 511 characters");
}

/* ---- making ---- */

static void test_each_hour_has_one_version_named_after_it(void **state)
{
	struct scene *scene = *state;

	schedule(scene, "hourly:24", P);
	look_at(scene, BEGIN_MS);
	assert_string_equal(names(scene, P), "hourly-2026-11-25T14:00Z");
	look_at(scene, BEGIN_MS + 39 * MINUTE);
	assert_string_equal(names(scene, P), "hourly-2026-11-25T14:00Z");
	look_at(scene, BEGIN_MS + 40 * MINUTE);
	look_at(scene, BEGIN_MS + 41 * MINUTE);
	assert_string_equal(names(scene, P), "hourly-2026-11-25T14:00Z hourly-2026-11-25T15:00Z");
	assert_int_equal(lines, 0);
}

static void test_days_weeks_and_months_begin_where_they_do_in_utc(void **state)
{
	struct scene *scene = *state;

	schedule(scene, "minutely:2 daily:4 weekly:4 monthly:4", P);
	look_at(scene, BEGIN_MS);
	assert_string_equal(names(scene, P), "minutely-2026-11-25T14:20Z daily-2026-11-25T00:00Z "
					     "weekly-2026-11-23T00:00Z monthly-2026-11-01T00:00Z");
	schedule(scene, "weekly:4", P);
	look_at(scene, BEGIN_MS - 14 * HOUR - 20 * MINUTE + 5 * DAY - 1);
	assert_null(strstr(names(scene, P), "weekly-2026-11-30"));
	look_at(scene, BEGIN_MS - 14 * HOUR - 20 * MINUTE + 5 * DAY);
	assert_non_null(strstr(names(scene, P), "weekly-2026-11-30T00:00Z"));
	schedule(scene, "monthly:4", P);
	look_at(scene, BEGIN_MS - 14 * HOUR - 20 * MINUTE + 6 * DAY - 1);
	assert_null(strstr(names(scene, P), "monthly-2026-12"));
	look_at(scene, BEGIN_MS - 14 * HOUR - 20 * MINUTE + 6 * DAY);
	assert_non_null(strstr(names(scene, P), "monthly-2026-12-01T00:00Z"));
}

static void restart(struct scene *scene, const char *text)
{
	assert_int_equal(engine_close(scene->engine), 0);
	open_engine(scene, false);
	schedule(scene, text, P);
}

static void test_hours_that_were_missed_are_made_up_for_once(void **state)
{
	struct scene *scene = *state;

	schedule(scene, "hourly:24", P);
	look_at(scene, BEGIN_MS);
	restart(scene, "hourly:24");
	look_at(scene, BEGIN_MS + 10 * MINUTE);
	assert_string_equal(names(scene, P), "hourly-2026-11-25T14:00Z");
	scene->now_ms += 7 * HOUR;
	restart(scene, "hourly:24");
	for (int n = 0; n < 5; n++)
		look_at(scene, scene->now_ms + 1000);
	assert_string_equal(names(scene, P), "hourly-2026-11-25T14:00Z hourly-2026-11-25T21:00Z");
}

static void test_a_clock_that_is_set_back_makes_nothing_twice(void **state)
{
	struct scene *scene = *state;

	schedule(scene, "hourly:24", P);
	look_at(scene, BEGIN_MS);
	look_at(scene, BEGIN_MS + HOUR);
	look_at(scene, BEGIN_MS);
	look_at(scene, BEGIN_MS + HOUR + MINUTE);
	assert_string_equal(names(scene, P), "hourly-2026-11-25T14:00Z hourly-2026-11-25T15:00Z");
	assert_int_equal(lines, 0);
}

/* ---- dropping ---- */

static void test_the_oldest_of_a_kind_are_dropped_and_nothing_else(void **state)
{
	struct scene *scene = *state;

	snapshot(scene, P, "hourly");
	schedule(scene, "hourly:2 daily:1", P);
	look_at(scene, BEGIN_MS);
	snapshot(scene, P, "mine");
	snapshot(scene, P, NULL);
	for (uint64_t hour = 1; hour <= 11; hour++)
		look_at(scene, BEGIN_MS + hour * HOUR);
	assert_string_equal(names(scene, P),
			    "hourly mine  hourly-2026-11-26T00:00Z daily-2026-11-26T00:00Z "
			    "hourly-2026-11-26T01:00Z");
	assert_int_equal(lines, 0);
}

static void test_a_smaller_number_drops_all_that_are_too_many(void **state)
{
	struct scene *scene = *state;

	schedule(scene, "minutely:50", P);
	for (uint64_t n = 0; n < 50; n++)
		look_at(scene, BEGIN_MS + n * MINUTE);
	schedule(scene, "minutely:3", P);
	look_at(scene, BEGIN_MS + 50 * MINUTE);
	assert_string_equal(names(scene, P), "minutely-2026-11-25T15:08Z "
					     "minutely-2026-11-25T15:09Z "
					     "minutely-2026-11-25T15:10Z");
}

static void test_a_kind_that_is_in_the_schedule_no_more_stays(void **state)
{
	struct scene *scene = *state;

	schedule(scene, "minutely:3", P);
	look_at(scene, BEGIN_MS);
	schedule(scene, "daily:1", P);
	look_at(scene, BEGIN_MS + DAY);
	assert_string_equal(names(scene, P), "minutely-2026-11-25T14:20Z daily-2026-11-26T00:00Z");
}

static void test_a_lock_keeps_all_of_them_until_it_ends(void **state)
{
	struct scene *scene = *state;

	schedule(scene, "hourly:1", P);
	set_lock(scene, BEGIN_MS + 100 * DAY);
	for (uint64_t hour = 0; hour < 4; hour++)
		look_at(scene, BEGIN_MS + hour * HOUR);
	assert_string_equal(names(scene, P), "hourly-2026-11-25T14:00Z hourly-2026-11-25T15:00Z "
					     "hourly-2026-11-25T16:00Z hourly-2026-11-25T17:00Z");
	assert_told("a lock keeps versions of partition 0x10000 beyond their number");
	set_lock(scene, 0);
	look_at(scene, BEGIN_MS + 4 * HOUR);
	assert_string_equal(names(scene, P), "hourly-2026-11-25T18:00Z");
	assert_int_equal(lines, 0);
}

static void test_what_a_clone_stands_on_stays_and_the_others_go(void **state)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };
	struct scene *scene = *state;
	struct engine_version version;
	struct engine_moment moment = now;
	struct engine_txn *txn;

	schedule(scene, "hourly:2", P);
	look_at(scene, BEGIN_MS);
	txn = begin(scene, ENGINE_WRITE);
	assert_int_equal(engine_version_next(txn, P, 0, &version), 0);
	moment.kind = ENGINE_AT_VERSION;
	moment.value = version.version;
	assert_int_equal(engine_clone(txn, P, moment, P + 1, true, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	for (uint64_t hour = 1; hour < 6; hour++)
		look_at(scene, BEGIN_MS + hour * HOUR);
	assert_string_equal(names(scene, P), "hourly-2026-11-25T14:00Z hourly-2026-11-25T18:00Z "
					     "hourly-2026-11-25T19:00Z");
	assert_int_equal(lines, 0);
}

/* ---- the device and its partitions ---- */

static void test_versions_of_the_device_and_of_partitions_are_apart(void **state)
{
	struct scene *scene = *state;

	schedule(scene, "hourly:2 0x10000 hourly:1", 0);
	for (uint64_t hour = 0; hour < 4; hour++)
		look_at(scene, BEGIN_MS + hour * HOUR);
	assert_string_equal(names(scene, 0), "hourly-2026-11-25T16:00Z hourly-2026-11-25T17:00Z");
	/* Those of the device are versions of each partition, too. */
	assert_string_equal(names(scene, P), "hourly-2026-11-25T16:00Z hourly-2026-11-25T17:00Z "
					     "hourly-2026-11-25T17:00Z");
}

static void test_a_partition_that_is_not_there_is_told_of_once(void **state)
{
	struct scene *scene = *state;

	schedule(scene, "hourly:2 0x10005 hourly:2", P);
	for (int n = 0; n < 5; n++)
		look_at(scene, BEGIN_MS + (uint64_t)n * MINUTE);
	assert_told("no version of partition 0x10005 can be kept: there is no such partition");
	assert_string_equal(names(scene, P), "hourly-2026-11-25T14:00Z");
	create_partition(scene, 0x10005);
	look_at(scene, BEGIN_MS + 6 * MINUTE);
	assert_told("versions of partition 0x10005 can be kept again");
	assert_string_equal(names(scene, 0x10005), "hourly-2026-11-25T14:00Z");
}

/* ---- a full device ---- */

static void fill(struct scene *scene)
{
	static uint8_t data[65536];
	struct engine_address object = { .partition = P, .object = ENGINE_FIRST_ID };
	struct engine_txn *txn = begin(scene, ENGINE_WRITE);
	int result = 0;

	memset(data, 1, sizeof(data));
	assert_int_equal(engine_create(txn, P, ENGINE_USER_OBJECT, object.object, 1, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	for (uint64_t n = 0; !result; n++) {
		txn = begin(scene, ENGINE_WRITE);
		result = engine_write(txn, object, n * sizeof(data), data, sizeof(data));
		if (result)
			engine_abort(txn);
		else
			result = engine_commit(txn, false);
		assert_true(n < 32 * MIB / sizeof(data));
	}
	assert_int_equal(result, -ENOSPC);
}

/* Many in each transaction: after one that dropped something the next looks for what that freed. */
static void drop_all(struct scene *scene)
{
	struct engine_version version;
	struct engine_txn *txn;
	int result = 0;

	while (!result) {
		txn = begin(scene, ENGINE_RESCUE);
		for (int n = 0; n < DROPS_AT_ONCE && !result; n++) {
			result = engine_version_next(txn, P, 0, &version);
			if (!result)
				assert_int_equal(engine_version_drop(txn, P, version.version), 0);
		}
		assert_int_equal(engine_commit(txn, false), 0);
	}
	assert_int_equal(result, -ENOENT);
}

static void test_a_full_device_is_told_of_once_and_tried_again(void **state)
{
	const struct engine_address object = { .partition = P, .object = ENGINE_FIRST_ID };
	struct scene *scene = *state;
	struct engine_txn *txn;

	fill(scene);
	/* Snapshots have room that WRITE has not. */
	while (!try_snapshot(scene, P, NULL))
		scene->now_ms += 1000;
	schedule(scene, "minutely:1000", P);
	look_at(scene, scene->now_ms);
	assert_told("no version of partition 0x10000 can be kept: the device is full");
	for (int n = 0; n < 5; n++)
		look_at(scene, scene->now_ms + MINUTE);
	assert_int_equal(lines, 0);
	drop_all(scene);
	txn = begin(scene, ENGINE_FREE);
	assert_int_equal(engine_truncate(txn, object, 0), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	for (struct engine_merge_result merged = { 0 }; !engine_merge(scene->engine, &merged);)
		;
	look_at(scene, scene->now_ms + MINUTE);
	assert_told("versions of partition 0x10000 can be kept again");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_schedule_names_kinds_and_partitions),
		cmocka_unit_test(test_a_schedule_that_says_nothing_clear_is_refused),
		TEST(test_each_hour_has_one_version_named_after_it),
		TEST(test_days_weeks_and_months_begin_where_they_do_in_utc),
		TEST(test_hours_that_were_missed_are_made_up_for_once),
		TEST(test_a_clock_that_is_set_back_makes_nothing_twice),
		TEST(test_the_oldest_of_a_kind_are_dropped_and_nothing_else),
		TEST(test_a_smaller_number_drops_all_that_are_too_many),
		TEST(test_a_kind_that_is_in_the_schedule_no_more_stays),
		TEST(test_a_lock_keeps_all_of_them_until_it_ends),
		TEST(test_what_a_clone_stands_on_stays_and_the_others_go),
		TEST(test_versions_of_the_device_and_of_partitions_are_apart),
		TEST(test_a_partition_that_is_not_there_is_told_of_once),
		TEST(test_a_full_device_is_told_of_once_and_tried_again),
	};

	return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
