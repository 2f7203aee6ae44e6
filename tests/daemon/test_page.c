/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the status page draws, and what it is made of: maps of devices, and the last minutes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "daemon/facts.h"
#include "daemon/flash_map.h"
#include "daemon/page.h"
#include "daemon/server.h"
#include "daemon/tgt_control.h"
#include "daemon/trend.h"

/* ---- maps ---- */

static const char answer[] = "looked_at 12\nlive_bytes 3072\nkept_bytes 1024\nhistory_bytes 512\n"
			     "reclaimable_bytes 512\nstretch 4 4 0 0 0\nstretch 4 0 4 1000 990\n"
			     "stretch 4 1 3 1000 10\nstretch 4 1 3 0 0\nstretch 4 0 0 0 0\n"
			     "version 0x10002 7 1700000000000 4096 8192 <b> two words\n"
			     "version 0x0 32768 1700000001000 5 0 \nmore_partitions 1\n";

static size_t count_of(const char *text, const char *what)
{
	size_t count = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		count++;
	return count;
}

static void test_an_answer_is_read_line_by_line_and_a_torn_line_is_none(void **state)
{
	json_t *map = flash_map_read(answer), *version;

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(map, "live_bytes")), 3072);
	assert_int_equal(json_array_size(json_object_get(map, "stretches")), 5);
	version = json_array_get(json_object_get(map, "versions"), 0);
	assert_int_equal(json_array_size(json_object_get(map, "versions")), 2);
	assert_int_equal(json_integer_value(json_object_get(version, "partition")), 0x10002);
	assert_string_equal(json_string_value(json_object_get(version, "name")), "<b> two words");
	json_decref(map);
	map = flash_map_read("stretch 4 4 0\nversion 0x1 7\nlive_bytes");
	assert_int_equal(json_array_size(json_object_get(map, "stretches")), 0);
	assert_int_equal(json_array_size(json_object_get(map, "versions")), 0);
	assert_null(json_object_get(map, "live_bytes"));
	json_decref(map);
}

static void test_a_device_is_drawn_by_use_and_life(void **state)
{
	json_t *status = json_pack("{s:[{s:i,s:s,s:s,s:i,s:i,s:o}]}", "units", "lun", 1, "type",
				   "osd", "image", "/i", "used_bytes", 8192, "capacity_bytes",
				   16384, "map", flash_map_read(answer));
	char *page = page_text(status, NULL);

	(void)state;
	assert_non_null(page);
	assert_int_equal(count_of(page, "<rect class=\"fr\""), 1);
	assert_int_equal(count_of(page, "<rect class=\"l4\""), 1);
	assert_int_equal(count_of(page, "<rect class=\"l0\""), 1);
	assert_int_equal(count_of(page, "<rect class=\"un\""), 1);
	/* A stretch of metadata, and a version of the device. */
	assert_int_equal(count_of(page, "<rect class=\"me\""), 2);
	assert_int_equal(count_of(page, "<rect class=\"l3\""), 1);
	assert_non_null(strstr(page, "segments 8 to 11: 1 free, 3 sealed, 1 % live"));
	/* What the colours mean: two lines, which no width makes one. */
	assert_int_equal(count_of(page, "<p class=\"key\">"), 2);
	assert_non_null(strstr(page, "</i>metadata</span></p>\n<p class=\"key\">What lives of "
				     "sealed segments: <span>"));
	assert_non_null(strstr(page, "<td>&lt;b&gt; two words</td><td>4.0 KiB</td>"));
	assert_non_null(strstr(page, "There are more partitions"));
	/* A quarter is needed; as much is history. */
	assert_non_null(strstr(page, "<i style=\"width:25.0%\"></i><u style=\"width:25.0%\">"));
	free(page);
	json_decref(status);
}

static unsigned int asked; /* so often */
static int refuses;        /* what is asked; 0: nothing */

int __wrap_tgt_lun_ask(struct tgtd *tgtd, unsigned int number, const char *question, char **text,
		       int *refusal, struct error_text *error);

int __wrap_tgt_lun_ask(struct tgtd *tgtd, unsigned int number, const char *question, char **text,
		       int *refusal, struct error_text *error)
{
	(void)tgtd;
	(void)error;
	assert_int_equal(number, 1);
	assert_string_equal(question, "map");
	asked++;
	*refusal = 0;
	*text = refuses ? NULL : strdup(answer);
	return refuses;
}

/* What is told of a device, whose maps are these. */
static json_t *told_of(struct server *server, struct flash_maps *maps, bool may_ask)
{
	json_t *status = json_pack("{s:[{s:i,s:s,s:s,s:i,s:i}]}", "units", "lun", 1, "type", "osd",
				   "image", "/i", "used_bytes", 8192, "capacity_bytes", 16384);

	flash_maps_add(maps, server, status, may_ask);
	return status;
}

static void test_history_gives_way_unless_only_the_administrator_merges(void **state)
{
	static struct config config = { .lun_count = 1 };
	struct server server = { .config = &config };
	struct flash_maps maps = { NULL };

	(void)state;
	server.tgtd.pid = 1;
	server.targets_exist = true;
	config.luns[0].number = 1;
	for (int manual = 0; manual < 2; manual++) {
		json_t *status, *unit;
		char *page;

		config.luns[0].options.engine.merge_manual = manual;
		status = told_of(&server, &maps, true);
		unit = json_array_get(json_object_get(status, "units"), 0);
		assert_int_equal(facts_number(unit, "available_bytes"), manual ? 8192 : 9216);
		page = page_text(status, NULL);
		assert_int_equal(count_of(page, "history that goes when needed"), !manual);
		assert_int_equal(count_of(page, "history that stays until somebody merges"),
				 manual);
		free(page);
		json_decref(status);
	}
	flash_maps_end(&maps);
}

/* As if so much time had passed since then. */
static void age(struct flash_maps *maps, const char *since, int64_t ms)
{
	json_object_set_new(json_object_get(maps->known, "/i"), since,
			    json_integer((json_int_t)(clock_ms() - ms)));
}

static void assert_map(struct server *server, struct flash_maps *maps, bool may_ask, bool is_told)
{
	json_t *status = told_of(server, maps, may_ask);
	json_t *unit = json_array_get(json_object_get(status, "units"), 0);

	assert_int_equal(json_object_get(unit, "map") != NULL, is_told);
	assert_int_equal(json_object_get(unit, "available_bytes") != NULL, is_told);
	json_decref(status);
}

static void test_a_map_is_told_without_asking_and_goes_when_none_follows(void **state)
{
	static struct config config;
	struct server server = { .config = &config, .targets_exist = true };
	struct flash_maps maps = { NULL };

	(void)state;
	server.tgtd.pid = 1;
	asked = 0;
	assert_map(&server, &maps, false, false);
	assert_int_equal(asked, 0);
	assert_map(&server, &maps, true, true);
	assert_map(&server, &maps, true, true);
	assert_int_equal(asked, 1);
	/* Another unit does not answer: nothing is asked, what is known is told. */
	age(&maps, "asked_ms", FLASH_MAP_LASTS_MS);
	assert_map(&server, &maps, false, true);
	assert_int_equal(asked, 1);
	/* It can't be renewed. */
	refuses = -EBUSY;
	assert_map(&server, &maps, true, true);
	assert_int_equal(asked, 2);
	age(&maps, "asked_ms", FLASH_MAP_LASTS_MS);
	age(&maps, "answered_ms", FLASH_MAP_LASTS_MS);
	assert_map(&server, &maps, true, false);
	assert_int_equal(asked, 3);
	refuses = 0;
	assert_map(&server, &maps, true, false);
	age(&maps, "asked_ms", FLASH_MAP_LASTS_MS);
	assert_map(&server, &maps, true, true);
	assert_int_equal(asked, 4);
	flash_maps_end(&maps);
}

static void test_of_many_sessions_the_first_are_shown(void **state)
{
	json_t *status = json_pack("{s:[]}", "logins");
	char *page;

	(void)state;
	for (int i = 0; i < 4000; i++)
		json_array_append_new(json_object_get(status, "logins"),
				      json_pack("{s:s,s:s,s:[i]}", "initiator", "iqn.x:<a>",
						"address", "10.0.0.1", "units", 1));
	page = page_text(status, NULL);
	assert_non_null(page);
	assert_int_equal(count_of(page, "<td>iqn.x:&lt;a&gt;</td>"), 50);
	assert_non_null(strstr(page, "and 3950 more"));
	free(page);
	json_decref(status);
}

/* ---- the last minutes ---- */

/* So many READs of a kibibyte, each of which took a millisecond. */
static void note(struct trend *trend, int reads, int64_t now_ms)
{
	char took[128];
	json_t *status;

	snprintf(took, sizeof(took), "%d 0 0 0 0 %d 0 0 0 0 0 0 0 0 0 0 0 0", reads * 1000, reads);
	status = json_pack("{s:[{s:i,s:I,s:s}]}", "units", "reads", reads, "read_bytes",
			   (json_int_t)reads * 1024, "latency_reads", took);
	trend_note(trend, status, now_ms);
	json_decref(status);
}

static void test_points_are_what_was_done_a_second(void **state)
{
	struct trend trend = { 0 };

	(void)state;
	note(&trend, 100, 1000);
	assert_int_equal(trend.count, 0);
	note(&trend, 600, 11000);
	assert_int_equal(trend.count, 1);
	assert_true(trend_at(&trend, 0)->commands == 50);
	assert_true(trend_at(&trend, 0)->bytes == 50 * 1024);
	assert_true(trend_at(&trend, 0)->latency_us == 1000);
	/* Too soon to tell. */
	note(&trend, 700, 11001);
	assert_int_equal(trend.count, 1);
	/* tgtd was started again, and counts from 0. */
	note(&trend, 3, 21000);
	assert_int_equal(trend.count, 1);
	note(&trend, 3, 31000);
	assert_int_equal(trend.count, 2);
	assert_true(trend_at(&trend, 1)->commands == 0 && trend_at(&trend, 1)->latency_us == 0);
}

static void test_old_points_go_and_there_are_never_too_many(void **state)
{
	struct trend trend = { 0 };
	int64_t now_ms = 1000;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		note(&trend, i, now_ms);
		now_ms += TREND_SPACING_MS;
		assert_true(trend.count <= TREND_POINTS_MAX);
	}
	assert_int_equal(trend.count, TREND_POINTS_MAX);
	assert_true(trend_at(&trend, 0)->at_ms < trend_at(&trend, trend.count - 1)->at_ms);
	note(&trend, 1000, now_ms + 2 * TREND_SPAN_MS);
	assert_int_equal(trend.count, 1);
}

/* Each of the three lines has so many points, all of them in its frame. */
static void assert_drawn(const struct trend *trend, size_t points)
{
	static const char start[] = "viewBox=\"0 0 600 60\"><polyline points=\"";
	char *page = page_text(NULL, trend);
	const char *at = page;

	assert_non_null(page);
	assert_int_equal(count_of(page, "<polyline"), 3);
	for (int line = 0; line < 3; line++) {
		at = strstr(at, start);
		assert_non_null(at);
		at += strlen(start);
		for (size_t n = 0; n < points; n++) {
			double x, y;
			int length = 0;

			assert_int_equal(sscanf(at, "%lf,%lf %n", &x, &y, &length), 2);
			/* No number is in no frame. */
			assert_true(x >= 0 && x <= 600 && y >= 0 && y <= 60);
			at += length;
		}
		assert_int_equal(*at, '"');
	}
	free(page);
}

static void test_the_trend_is_drawn_within_its_frame(void **state)
{
	struct trend busy = { 0 }, idle = { 0 }, alone = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++) {
		note(&busy, i * i, 1000 + (int64_t)i * TREND_SPACING_MS);
		note(&idle, 7, 1000 + (int64_t)i * TREND_SPACING_MS);
	}
	note(&alone, 1, 1000);
	note(&alone, 2, 1000 + TREND_SPACING_MS);
	assert_drawn(&busy, TREND_POINTS_MAX);
	assert_drawn(&idle, TREND_POINTS_MAX);
	assert_drawn(&alone, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_answer_is_read_line_by_line_and_a_torn_line_is_none),
		cmocka_unit_test(test_a_device_is_drawn_by_use_and_life),
		cmocka_unit_test(test_history_gives_way_unless_only_the_administrator_merges),
		cmocka_unit_test(test_a_map_is_told_without_asking_and_goes_when_none_follows),
		cmocka_unit_test(test_of_many_sessions_the_first_are_shown),
		cmocka_unit_test(test_points_are_what_was_done_a_second),
		cmocka_unit_test(test_old_points_go_and_there_are_never_too_many),
		cmocka_unit_test(test_the_trend_is_drawn_within_its_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
