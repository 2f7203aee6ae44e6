/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How fast a device is scrubbed, by a clock of the test's own, and that lost pages are moved away.
 */
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
#include "daemon/module/scrubber.h"
#include "engine/options.h"
#include "tests/engine/by_address.h"
#include "tests/engine/lost_page.h"

#define SECOND_US UINT64_C(1000000)
#define DAY_US    (86400 * SECOND_US)

enum {
	PARTITION = ENGINE_FIRST_ID,
	OBJECT = ENGINE_FIRST_ID,
	MIB = 1 << 20,
	DATA_BYTES = 24 * MIB
};

struct scene {
	struct nand *nand;
	struct engine *engine;
	struct scrubber scrubber;
	uint64_t now_us;
	uint64_t pages; /* of the device */
};

static char last_line[1024];

static void keep_line(enum log_level level, const char *line)
{
	(void)level;
	snprintf(last_line, sizeof(last_line), "%s", line);
}

static const struct engine_address object = { .partition = PARTITION, .object = OBJECT };

static void write_data(struct engine *engine)
{
	uint8_t *data = malloc(MIB);
	struct engine_txn *txn;

	assert_non_null(data);
	for (uint64_t at = 0; at < DATA_BYTES; at += MIB) {
		memset(data, (int)(at / MIB) + 1, MIB);
		assert_int_equal(engine_begin(engine, ENGINE_WRITE, &txn), 0);
		if (at == 0) {
			assert_int_equal(engine_partition_create(txn, PARTITION, NULL), 0);
			assert_int_equal(
				engine_create(txn, PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL),
				0);
		}
		assert_int_equal(engine_write(txn, object, at, data, MIB), 0);
		assert_int_equal(engine_commit(txn, false), 0);
	}
	free(data);
}

static void check_data(struct engine *engine)
{
	uint8_t *data = malloc(MIB);
	struct engine_txn *txn;
	uint64_t got;

	assert_non_null(data);
	assert_int_equal(engine_begin(engine, ENGINE_READ, &txn), 0);
	for (uint64_t at = 0; at < DATA_BYTES; at += MIB) {
		assert_int_equal(engine_read(txn, object, at, data, MIB, &got), 0);
		assert_int_equal(got, MIB);
		for (uint32_t i = 0; i < MIB; i++)
			assert_int_equal(data[i], at / MIB + 1);
	}
	engine_abort(txn);
	free(data);
}

static int setup(void **state)
{
	const struct nand_geometry geometry = nand_geometry_default(128 * MIB);
	const struct engine_options options = { .muninn.rows = 2 };
	struct scene *scene = calloc(1, sizeof(*scene));
	struct error_text error = { "" };
	uint64_t nvram;

	assert_non_null(scene);
	log_configure(keep_line, LOG_LEVEL_INFO);
	if (engine_nvram_bytes(&geometry, &options, &nvram, &error) ||
	    nand_open_memory(&geometry, nvram, &scene->nand, &error) ||
	    engine_format(scene->nand, &options, &error) ||
	    engine_open(scene->nand, &options, &scene->engine, &error))
		fail_msg("%s", error.text);
	write_data(scene->engine);
	scene->pages = (uint64_t)geometry.blocks * geometry.pages_per_block;
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

static void begin(struct scene *scene, struct scrub_options options)
{
	scene->now_us = 5 * DAY_US;
	scrubber_begin(&scene->scrubber, &options, scene->engine, scene->nand, scene->now_us);
	scene->scrubber.scrub.position = 0;
}

static struct nand_counters counters_of(const struct scene *scene)
{
	struct nand_counters counters;

	nand_read_counters(scene->nand, &counters);
	return counters;
}

static uint64_t scrubbed(const struct scene *scene)
{
	return counters_of(scene).by_cause[NAND_CAUSE_SCRUB].pages_read;
}

/* Half a second later. */
static void look(struct scene *scene)
{
	scene->now_us += SECOND_US / 2;
	scrubber_look(&scene->scrubber, scene->now_us);
}

/* What is sealed, images of the index, and the roots. */
static uint64_t used_pages(const struct scene *scene)
{
	const struct nand_counters counters = counters_of(scene);
	struct engine_statistics statistics;

	engine_read_statistics(scene->engine, &statistics);
	return statistics.segments_sealed * scene->pages / statistics.segments +
	       counters.by_cause[NAND_CAUSE_INDEX].pages_programmed +
	       counters.by_cause[NAND_CAUSE_METADATA].pages_programmed;
}

static void test_a_device_is_read_once_in_the_period_and_no_faster_than_the_rate(void **state)
{
	struct scene *scene = *state;
	uint64_t most = 0, looks = 0;

	begin(scene, (struct scrub_options){ .days = 1, .rate = 1000000 });
	while (!strstr(last_line, "scrubbed to its end")) {
		uint64_t before = scrubbed(scene);

		look(scene);
		most = most > scrubbed(scene) - before ? most : scrubbed(scene) - before;
		assert_true(++looks <= 2 * 86400);
	}
	/* What is in use is a part of the device. */
	assert_int_equal(scrubbed(scene), used_pages(scene));
	assert_in_range(looks, 2 * 86400 * used_pages(scene) / scene->pages * 99 / 100, 2 * 86400);
	assert_in_range(most, 1, 2);
}

/* What is not in use takes its part of the period, too. */
static void test_a_device_that_holds_little_is_read_no_more_often(void **state)
{
	enum { PERIODS = 3 };
	struct scene *scene = *state;

	begin(scene, (struct scrub_options){ .days = 1, .rate = 1000000 });
	for (uint64_t looks = 0; looks < PERIODS * 2 * 86400; looks++)
		look(scene);
	assert_in_range(scrubbed(scene), (PERIODS - 1) * used_pages(scene),
			PERIODS * used_pages(scene) + 1);
}

/* Nor does it say that it has read nothing. */
static void test_a_pass_that_meets_nothing_is_not_told(void **state)
{
	struct scene *scene = *state;

	begin(scene, (struct scrub_options){ .days = 1, .rate = 1000000 });
	scene->scrubber.scrub.position = scene->pages - 1;
	last_line[0] = '\0';
	while (scene->scrubber.scrub.position)
		look(scene);
	assert_int_equal(scrubbed(scene), 0);
	assert_string_equal(last_line, "");
}

static void test_the_rate_is_a_limit(void **state)
{
	struct scene *scene = *state;

	begin(scene, (struct scrub_options){ .days = 1, .rate = 10 });
	/* As if the device had been off the clock for long. */
	scene->scrubber.due = (double)scene->pages;
	for (int n = 0; n < 20; n++)
		look(scene);
	assert_int_equal(scrubbed(scene), 100);
}

static void test_it_waits_while_users_are_at_work_but_not_for_ever(void **state)
{
	struct scene *scene = *state;

	begin(scene, (struct scrub_options){ .days = 1, .rate = 1000 });
	look(scene);
	scene->scrubber.due = (double)scene->pages / 31;
	check_data(scene->engine);
	look(scene);
	assert_int_equal(scrubbed(scene), 0);
	look(scene);
	assert_true(scrubbed(scene) > 0);
	uint64_t before = scrubbed(scene);

	scene->scrubber.due = (double)scene->pages / 29;
	check_data(scene->engine);
	look(scene);
	assert_true(scrubbed(scene) > before);
}

static void test_never_is_never(void **state)
{
	struct scene *scene = *state;

	begin(scene, (struct scrub_options){ .rate = 1000 });
	for (int n = 0; n < 100; n++)
		look(scene);
	assert_int_equal(scrubbed(scene), 0);
}

/* Loses a page of each segment of 256 pages that is not one of roots or of the index. */
static uint32_t lose_some(struct scene *scene)
{
	uint32_t lost = 0;

	for (uint64_t first = 256; first < scene->pages; first += 256) {
		uint8_t spare[4096];
		const struct nand_page_io io = { .page = first, .spare = spare };

		if (nand_read(scene->nand, NAND_CAUSE_USER, &io, 1) || spare[0] != 1)
			continue;
		lose_page(scene->nand, first + first / 256 * 7 % 256);
		lost++;
	}
	return lost;
}

static void test_lost_pages_are_found_and_moved_and_users_notice_nothing(void **state)
{
	struct scene *scene = *state;
	struct engine_statistics statistics;
	uint32_t lost = lose_some(scene);

	assert_true(lost >= 20);
	begin(scene, (struct scrub_options){ .days = 1, .rate = 1000000, .moves = true });
	for (last_line[0] = '\0'; !strstr(last_line, "scrubbed to its end");) {
		scene->scrubber.due = (double)scene->pages / 50;
		look(scene);
	}
	assert_non_null(strstr(last_line, "0 are lost for good"));
	for (int n = 0; n < 200 && engine_damaged(scene->engine); n++)
		look(scene);
	assert_int_equal(engine_damaged(scene->engine), 0);
	engine_read_statistics(scene->engine, &statistics);
	uint64_t repaired = statistics.pages_repaired;

	assert_true(repaired >= lost);
	assert_int_equal(statistics.pages_lost, 0);
	check_data(scene->engine);
	engine_read_statistics(scene->engine, &statistics);
	assert_int_equal(statistics.pages_repaired, repaired);
}

#define SCENE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_a_device_is_read_once_in_the_period_and_no_faster_than_the_rate),
		SCENE_TEST(test_a_device_that_holds_little_is_read_no_more_often),
		SCENE_TEST(test_a_pass_that_meets_nothing_is_not_told),
		SCENE_TEST(test_the_rate_is_a_limit),
		SCENE_TEST(test_it_waits_while_users_are_at_work_but_not_for_ever),
		SCENE_TEST(test_never_is_never),
		SCENE_TEST(test_lost_pages_are_found_and_moved_and_users_notice_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
