/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The items of EXECUTE's parameters and results. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "wire/vendor.h"

/* The example of docs/protocol.md: an entry with a version number and a name. */
static const uint8_t example[] = {
	0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, /* ENTRY, 32 bytes */
	0x00, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08,
	0,    0,    0,    0,    0,    0,    0,    3, /* VERSION 3 */
	0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05,
	'd',  'a',  'i',  'l',  'y',  0,    0,    0, /* NAME */
};

static void test_the_documented_items_encode_and_decode(void **state)
{
	uint8_t data[64];
	struct osd_item_writer writer;
	struct osd_item_reader reader;
	struct osd_item entry, item;
	uint64_t number;

	(void)state;
	osd_items_begin(&writer, data, sizeof(data));
	assert_true(osd_item_open(&writer, OSD_ITEM_ENTRY));
	assert_true(osd_item_add_number(&writer, OSD_ITEM_VERSION, 3));
	assert_true(osd_item_add_text(&writer, OSD_ITEM_NAME, "daily"));
	assert_true(osd_item_end(&writer));
	assert_int_equal(writer.length, sizeof(example));
	assert_memory_equal(data, example, sizeof(example));

	osd_items_read(&reader, example, sizeof(example));
	assert_int_equal(osd_item_next(&reader, &entry), 1);
	assert_int_equal(entry.tag, OSD_ITEM_ENTRY);
	assert_int_equal(entry.length, 32);
	assert_int_equal(osd_item_next(&reader, &item), 0);
	assert_int_equal(osd_item_find_number(entry.value, entry.length, OSD_ITEM_VERSION, &number),
			 0);
	assert_int_equal(number, 3);
	assert_int_equal(osd_item_find(entry.value, entry.length, OSD_ITEM_NAME, &item), 0);
	assert_int_equal(item.length, 5);
	assert_memory_equal(item.value, "daily", 5);
	assert_int_equal(osd_item_find(entry.value, entry.length, OSD_ITEM_TIME, &item), -ENOENT);
	assert_int_equal(osd_item_find_number(entry.value, entry.length, OSD_ITEM_NAME, &number),
			 -EINVAL);
}

static void test_an_entry_that_does_not_fit_is_left_out_as_a_whole(void **state)
{
	uint8_t data[40 + 39];
	struct osd_item_writer writer;

	(void)state;
	osd_items_begin(&writer, data, sizeof(data));
	for (int i = 0; i < 2; i++) {
		osd_item_open(&writer, OSD_ITEM_ENTRY);
		osd_item_add_number(&writer, OSD_ITEM_VERSION, 3);
		osd_item_add_text(&writer, OSD_ITEM_NAME, "daily");
		assert_int_equal(osd_item_end(&writer), i == 0);
		assert_int_equal(writer.length, sizeof(example));
	}
	assert_true(writer.full);
	assert_false(osd_item_add(&writer, OSD_ITEM_NAME, NULL, 0));
	assert_int_equal(writer.length, sizeof(example));
	assert_memory_equal(data, example, sizeof(example));
}

static void test_malformed_items_are_told_and_nothing_behind_them_is_read(void **state)
{
	uint8_t data[sizeof(example)];
	struct osd_item_reader reader;
	struct osd_item item;

	(void)state;
	/* Cut anywhere: there is no whole item. */
	for (size_t length = 1; length < sizeof(example); length++) {
		osd_items_read(&reader, example, length);
		assert_int_equal(osd_item_next(&reader, &item), -EINVAL);
		assert_int_equal(reader.position, 0);
	}
	memcpy(data, example, sizeof(data));
	data[2] = 1; /* reserved */
	osd_items_read(&reader, data, sizeof(data));
	assert_int_equal(osd_item_next(&reader, &item), -EINVAL);
	memcpy(data, example, sizeof(data));
	memset(data + 4, 0xFF, 4); /* a length near 2^32 */
	osd_items_read(&reader, data, sizeof(data));
	assert_int_equal(osd_item_next(&reader, &item), -EINVAL);
}

static void test_numbers_have_1_2_4_or_8_bytes(void **state)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	static const uint64_t wanted[] = {
		[1] = 1, [2] = 0x102, [4] = 0x1020304, [8] = 0x102030405060708
	};

	(void)state;
	for (uint32_t length = 0; length <= 8; length++) {
		struct osd_item item = { .length = length, .value = bytes };
		uint64_t number = 0;
		bool right = length == 1 || length == 2 || length == 4 || length == 8;

		assert_int_equal(osd_item_number(&item, &number), right ? 0 : -EINVAL);
		if (right)
			assert_true(number == wanted[length]);
	}
}

static bool is_name(const char *name)
{
	return osd_version_name_is_valid((const uint8_t *)name, strlen(name));
}

static void test_a_version_has_a_name_that_is_nothing_else_behind_an_at_sign(void **state)
{
	static const char *const names[] = { "a",
					     "Daily-3",
					     "nowadays",
					     "n",
					     "x y@/",
					     "M\xc3\xbcnchen",
					     "hourly",
					     "hourly-2026-11-27",
					     "hourly-2026-11-27T03:00",
					     "hourly 2026-11-27T03:00Z",
					     "hourly-2026-11-27T03:0aZ",
					     "yearly-2026-11-27T03:00Z",
					     "a\xe2\x82\xac\xf0\x9f\x90\xa6" };
	static const char *const none[] = { "",
					    "now",
					    "#3",
					    "~2",
					    "-10min",
					    "minutely-2026-11-27T03:00Z",
					    "hourly-2026-11-27T03:00Z",
					    "daily-2026-11-27T00:00Z",
					    "weekly-2026-11-23T00:00Z",
					    "monthly-2026-11-01T00:00Z",
					    "1abc",
					    "2026-11-21",
					    "\xc3\xa4-\xc3\xb6",
					    "a\nb",
					    "a\x7f",
					    "a\xc2\x85",
					    "a\xff",
					    "a\xc3",
					    "a\xc0\xaf",
					    "a\xed\xa0\x80",
					    "a\xf4\x90\x80\x80" };
	char long_name[OSD_VERSION_NAME_MAX + 2] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(is_name(names[i]));
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(is_name(none[i]));
	memset(long_name, 'a', OSD_VERSION_NAME_MAX);
	assert_true(is_name(long_name));
	long_name[OSD_VERSION_NAME_MAX] = 'a';
	assert_false(is_name(long_name));
	assert_false(osd_version_name_is_valid((const uint8_t *)"a\0b", 3));
}

/* Times in ms; a week begins on Monday, also before the first one of 1970. */
static void test_periods_begin_by_utc(void **state)
{
	static const struct {
		uint64_t at;
		uint64_t began[OSD_SCHEDULE_KINDS]; /* in s */
	} cases[] = {
		/* Friday 2026-11-27T09:02:13.500Z */
		{ UINT64_C(1795770133500),
		  { 1795770120, 1795770000, 1795737600, 1795392000, 1793491200 } },
		/* Monday 2024-01-01T00:00:00.000Z: of all the first moment */
		{ UINT64_C(1704067200000),
		  { 1704067200, 1704067200, 1704067200, 1704067200, 1704067200 } },
		/* a millisecond before: Sunday, of December */
		{ UINT64_C(1704067199999),
		  { 1704067140, 1704063600, 1703980800, 1703462400, 1701388800 } },
		/* Thursday 2024-02-29T23:59:59Z */
		{ UINT64_C(1709251199000),
		  { 1709251140, 1709247600, 1709164800, 1708905600, 1706745600 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int kind = 0; kind < OSD_SCHEDULE_KINDS; kind++)
			assert_true(
				osd_schedule_period((enum osd_schedule_kind)kind, cases[i].at) ==
				cases[i].began[kind] * 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_periods_begin_by_utc),
		cmocka_unit_test(test_the_documented_items_encode_and_decode),
		cmocka_unit_test(test_an_entry_that_does_not_fit_is_left_out_as_a_whole),
		cmocka_unit_test(test_malformed_items_are_told_and_nothing_behind_them_is_read),
		cmocka_unit_test(test_numbers_have_1_2_4_or_8_bytes),
		cmocka_unit_test(test_a_version_has_a_name_that_is_nothing_else_behind_an_at_sign),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
