/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * muninnctl nand dump on a small image whose records are known: every page is decoded, and each
 * field compared with what was put, with the page itself, or with another page that says the same.
 *
 * Runs for each index.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "client/ctl/ctl.h"
#include "engine/muninn/format.h"
#include "engine/objects/keys.h"
#include "tests/client/nand_dump_scene.h"
#include "tests/engine/index_under_test.h"

enum {
	KEPT = 500, /* the first records, which are on flash */
};

/* ---- records ---- */

static const struct dump_put *find_put(uint64_t sequence)
{
	for (uint32_t n = 0; n < RECORDS; n++)
		if (dump_puts[n].sequence == sequence)
			return &dump_puts[n];
	return NULL;
}

static bool has_newer(const struct dump_put *put)
{
	for (const struct dump_put *other = put + 1; other < dump_puts + RECORDS; other++)
		if (other->key.identifier == put->key.identifier &&
		    other->key.piece == put->key.piece && other->key.class == put->key.class)
			return true;
	return false;
}

static void compare_record(const json_t *record, const struct dump_put *put)
{
	char what[KEY_TEXT];

	if (dump_flag(record, "moved"))
		assert_true(has_newer(put));
	assert_int_equal(dump_number(record, "length"), put->length);
	assert_int_equal(dump_number(record, "partition_index"), put->key.partition);
	assert_int_equal(dump_hex(record, "identifier"), put->key.identifier);
	assert_int_equal(dump_hex(record, "piece"), put->key.piece);
	assert_int_equal(dump_number(record, "class"), put->key.class);
	assert_int_equal(dump_flag(record, "tombstone"), (put->flags & RECORD_TOMBSTONE) != 0);
	assert_int_equal(dump_flag(record, "absorb"), (put->flags & RECORD_ABSORB) != 0);
	assert_int_equal(dump_number(record, "epoch"),
			 align_up(put->sequence, RECORD_REACH_STEP) > put->sequence
				 ? put->sequence + 1 + RECORD_REACH_NONE
				 : put->sequence);
	assert_true(dump_flag(record, "intact"));
	assert_string_equal(dump_text(record, "record"), key_describe(&put->key, what));
}

/* Where each record begins follows from those before it. */
static void compare_records(const json_t *page, bool found[RECORDS])
{
	const json_t *records = json_object_get(page, "records");
	json_int_t at = dump_number(page, "bytes_of_record_before");
	json_t *record;
	size_t n;

	assert_true(json_is_array(records));
	json_array_foreach(records, n, record)
	{
		const struct dump_put *put = find_put((uint64_t)dump_number(record, "sequence"));

		assert_non_null(put);
		compare_record(record, put);
		found[put - dump_puts] = true;
		assert_int_equal(dump_number(record, "at"), at);
		at += dump_number(record, "length") +
		      (dump_flag(page, "large") ? 0 : RECORD_HEADER_BYTES);
	}
	assert_int_equal(
		dump_number(page, "used_bytes") + dump_number(page, "bytes_in_page_behind"), at);
	assert_int_equal(dump_number(page, "bytes_without_record"), 0);
	assert_int_equal(dump_flag(page, "large"),
			 at > PAGE - RECORD_HEADER_BYTES && n == 1 && at == PAGE &&
				 dump_number(json_array_get(records, 0), "length") == PAGE);
	assert_int_equal(dump_number(page, "segment"), dump_number(page, "page") / SEGMENT_PAGES);
	assert_int_equal(dump_number(page, "segment_page"),
			 dump_number(page, "page") % SEGMENT_PAGES);
	assert_true(dump_number(page, "parity_share_bytes") > 0);
	assert_false(dump_flag(page, "unfinished"));
}

static size_t count_moved(const json_t *page)
{
	size_t count = 0, n;
	json_t *record;

	json_array_foreach(json_object_get(page, "records"), n, record)
	{
		count += dump_flag(record, "moved");
	}
	return count;
}

static void test_each_record_on_flash_is_told_as_it_was_put(void **state)
{
	static bool found[RECORDS];
	json_t *pages = dump_all(), *page;
	size_t n, moved = 0, spanned = 0;
	json_int_t behind = 0;

	(void)state;
	json_array_foreach(pages, n, page)
	{
		assert_int_equal(dump_number(page, "page"), n);
		if (!dump_is_kind(page, "records"))
			continue;
		compare_records(page, found);
		moved += count_moved(page);
		assert_int_equal(dump_number(page, "bytes_of_record_before"),
				 n % SEGMENT_PAGES ? behind : 0);
		behind = dump_number(page, "bytes_in_page_behind");
		spanned += behind > 0;
	}
	assert_true(moved > 0);
	assert_int_equal(spanned > 40, index_under_test() == INDEX_RIBBON);
	for (n = 0; n < KEPT; n++)
		if (!found[n])
			fail_msg("record %zu is nowhere", n);
	json_decref(pages);
}

/* ---- what pages say of others ---- */

struct tally {
	json_int_t records, bytes, first, last;
	bool moved;
};

/* Counts the records of a segment, whose pages must be of one row and serial. */
static struct tally tally_segment(const json_t *pages, json_int_t segment, json_int_t row,
				  json_int_t serial)
{
	struct tally tally = { .first = INT64_MAX };

	for (json_int_t n = 0; n < SEGMENT_PAGES; n++) {
		const json_t *page = json_array_get(pages, (size_t)(segment * SEGMENT_PAGES + n));
		const json_t *records = json_object_get(page, "records");
		json_t *record;
		size_t at;

		assert_string_equal(dump_text(page, "kind"), "records");
		assert_int_equal(dump_number(page, "row"), row);
		if (serial)
			assert_int_equal(dump_number(page, "serial"), serial);
		json_array_foreach(records, at, record)
		{
			json_int_t sequence = dump_number(record, "sequence");

			tally.records++;
			tally.moved |= dump_flag(record, "moved");
			tally.bytes += dump_number(record, "length") + RECORD_HEADER_BYTES;
			tally.first = sequence < tally.first ? sequence : tally.first;
			tally.last = sequence > tally.last ? sequence : tally.last;
		}
	}
	return tally;
}

static void compare_members(const json_t *pages, const json_t *image)
{
	const json_t *members = json_object_get(image, "members");
	json_t *member;
	size_t n;

	assert_int_equal(json_array_size(members), dump_number(image, "member_count"));
	json_array_foreach(members, n, member)
	{
		struct tally tally;

		assert_int_equal(dump_number(member, "member"), n);
		/* The segment may be another one's by now. */
		if (!dump_flag(member, "live"))
			continue;
		tally = tally_segment(pages, dump_number(member, "segment"),
				      dump_number(image, "row"), dump_number(member, "serial"));
		assert_int_equal(dump_number(member, "records"), tally.records);
		assert_int_equal(dump_number(member, "bytes"), tally.bytes);
		assert_int_equal(dump_number(member, "first"), tally.first);
		assert_int_equal(dump_number(member, "last"), tally.last);
		assert_int_equal(dump_flag(member, "moved"), tally.moved);
	}
}

static json_int_t count_live(const json_t *image)
{
	json_int_t count = 0;
	json_t *member;
	size_t n;

	json_array_foreach(json_object_get(image, "members"), n, member)
	{
		count += dump_flag(member, "live");
	}
	return count;
}

/* Pages of a kind with this row and group. */
static json_int_t count_pages(const json_t *pages, const char *kind, const json_t *of)
{
	json_int_t count = 0;
	json_t *page;
	size_t n;

	json_array_foreach(pages, n, page)
	{
		count += dump_is_kind(page, kind) &&
			 dump_number(page, "row") == dump_number(of, "row") &&
			 dump_number(page, "group") == dump_number(of, "group");
	}
	return count;
}

static void test_an_image_says_what_its_segments_hold(void **state)
{
	json_t *pages = dump_all(), *page;
	size_t n, images = 0;

	(void)state;
	json_array_foreach(pages, n, page)
	{
		if (!dump_is_kind(page, "index") || dump_number(page, "image_part") > 0)
			continue;
		images++;
		assert_string_equal(dump_text(page, "named_by"), "NVRAM");
		assert_string_equal(dump_text(page, "index_kind"),
				    index_kind_name(index_under_test()));
		assert_int_equal(dump_number(page, "image_first_page"), n);
		assert_int_equal(dump_number(page, "image_pages_lost"), 0);
		assert_true(dump_flag(page, "image_intact"));
		assert_int_equal(dump_number(page, "image_pages"),
				 count_pages(pages, "index", page));
		assert_int_equal(dump_number(page, "image_parity_pages"),
				 count_pages(pages, "index parity", page));
		assert_int_equal((dump_number(page, "image_bytes") + PAGE - 1) / PAGE,
				 dump_number(page, "image_pages"));
		compare_members(pages, page);
	}
	assert_true(images > 0);
	json_decref(pages);
}

static void test_the_last_root_says_what_is_on_the_flash(void **state)
{
	json_t *pages = dump_all(), *entry;
	const json_t *root = dump_last_root(pages), *directory, *growing, *rows;
	size_t n;

	(void)state;
	assert_true(dump_flag(root, "whole"));
	assert_int_equal(dump_number(root, "committed"), dump_puts[RECORDS - 1].sequence);
	assert_int_equal(dump_number(root, "hashed_rows"), 1);
	assert_int_equal(dump_number(root, "segment_pages"), SEGMENT_PAGES);
	assert_int_equal(dump_number(root, "record_bytes"), 128);
	assert_int_equal(dump_number(root, "parity"), 1);
	assert_string_equal(dump_text(root, "index_kind"), index_kind_name(index_under_test()));
	assert_int_equal(dump_number(root, "aborted_ranges"), 0);
	assert_int_equal(json_array_size(json_object_get(root, "aborted")), 0);
	directory = json_object_get(root, "directory");
	assert_true(json_array_size(directory) > 0);
	json_array_foreach(directory, n, entry)
	{
		const json_t *image =
			json_array_get(pages, (size_t)dump_number(entry, "first_page"));

		assert_string_equal(dump_text(image, "kind"), "index");
		assert_int_equal(dump_number(image, "image_part"), 0);
		assert_int_equal(dump_number(image, "row"), dump_number(entry, "row"));
		assert_int_equal(dump_number(image, "group"), dump_number(entry, "group"));
		assert_int_equal(dump_number(image, "image_bytes"),
				 dump_number(entry, "image_bytes"));
		assert_int_equal(__builtin_popcountll(dump_hex(entry, "live")), count_live(image));
	}
	growing = json_object_get(root, "growing");
	assert_true(json_array_size(growing) > 0);
	json_array_foreach(growing, n, entry)
	{
		if (dump_flag(entry, "live"))
			tally_segment(pages, dump_number(entry, "segment"),
				      dump_number(entry, "row"), 0);
	}
	/* History has a row of its own. */
	rows = json_object_get(root, "rows");
	assert_int_equal(json_array_size(rows), 2);
	assert_true(dump_number(json_array_get(rows, 0), "members") +
			    dump_number(json_array_get(rows, 1), "members") ==
		    (json_int_t)json_array_size(growing));
	json_decref(pages);
}

/* The first page of a group's image; NULL: it has none. */
static const json_t *image_of(const json_t *pages, const json_t *entry)
{
	json_t *page;
	size_t n;

	json_array_foreach(pages, n, page)
	{
		if (dump_is_kind(page, "index") && json_object_get(page, "members") &&
		    dump_number(page, "row") == dump_number(entry, "row") &&
		    dump_number(page, "group") == dump_number(entry, "group"))
			return page;
	}
	return NULL;
}

/* The first list of changes that names segments which are out. */
static const json_t *list_of_kills(const json_t *pages)
{
	json_t *page;
	size_t n;

	json_array_foreach(pages, n, page)
	{
		if (dump_is_kind(page, "list") && json_array_size(json_object_get(page, "kills")))
			return page;
	}
	fail_msg("no list of changes names a segment that is out");
	return NULL;
}

static void test_a_list_of_changes_names_segments_that_are_out(void **state)
{
	json_t *pages = dump_all(), *kill;
	const json_t *kills = list_of_kills(pages);
	size_t n, compared = 0;

	(void)state;
	assert_true(dump_flag(kills, "whole"));
	assert_true(dump_number(kills, "base") < dump_number(kills, "serial"));
	json_array_foreach(json_object_get(kills, "kills"), n, kill)
	{
		const json_t *image = image_of(pages, kill);
		const json_t *member;

		if (!image)
			continue;
		member = json_array_get(json_object_get(image, "members"),
					(size_t)dump_number(kill, "member"));
		assert_int_equal(dump_number(member, "segment"), dump_number(kill, "segment"));
		assert_int_equal(dump_number(member, "serial"), dump_number(kill, "serial"));
		assert_false(dump_flag(member, "live"));
		compared++;
	}
	assert_true(compared > 0);
	json_decref(pages);
}

static void test_a_list_of_changes_names_groups_that_are_complete(void **state)
{
	json_t *pages = dump_all(), *page, *group;
	size_t n, of_list, compared = 0;

	(void)state;
	json_array_foreach(pages, n, page)
	{
		if (!dump_is_kind(page, "list"))
			continue;
		json_array_foreach(json_object_get(page, "groups"), of_list, group)
		{
			const json_t *image = image_of(pages, group);

			assert_non_null(image);
			assert_int_equal(dump_number(group, "first_page"),
					 dump_number(image, "page"));
			assert_true(dump_number(group, "buffer_serial") > 0);
			compared++;
		}
	}
	assert_true(compared > 0);
	json_decref(pages);
}

static void test_one_page_of_several_tells_all_of_them_when_it_is_asked_alone(void **state)
{
	json_t *pages = dump_all(), *alone;
	const json_t *root = dump_last_root(pages), *image = dump_first_of(pages, "index");
	json_int_t page = dump_number(root, "page");

	(void)state;
	alone = dump_page((uint64_t)page + 1);
	assert_int_equal(dump_number(alone, "serial"), dump_number(root, "serial"));
	assert_int_equal(dump_number(alone, "part"), 1);
	assert_true(json_equal(json_object_get(alone, "directory"),
			       json_object_get(root, "directory")));
	json_decref(alone);
	page = dump_number(image, "image_first_page");
	assert_null(json_object_get(json_array_get(pages, (size_t)page + 1), "members"));
	alone = dump_page((uint64_t)page + 1);
	assert_int_equal(dump_number(alone, "image_part"), 1);
	assert_true(
		json_equal(json_object_get(alone, "members"), json_object_get(image, "members")));
	json_decref(alone);
	json_decref(pages);
}

/* ---- for people ---- */

static void test_lines_are_made_for_people(void **state)
{
	char what[KEY_TEXT], page[32];
	json_t *pages = dump_all();
	const json_t *records = dump_first_of(pages, "records");
	const json_t *first = json_array_get(json_object_get(records, "records"), 0);
	const struct dump_put *put = find_put((uint64_t)dump_number(first, "sequence"));

	(void)state;
	snprintf(page, sizeof(page), "%" JSON_INTEGER_FORMAT, dump_number(records, "page"));
	dump_expect_narrow(page, "");
	assert_non_null(strstr(dump_output, "kind                     records\n"));
	assert_non_null(strstr(dump_output, key_describe(&put->key, what)));
	assert_non_null(strstr(dump_output, "   at  length  sequence  intact  flags  record\n"));
	assert_null(strstr(dump_output, "data area"));
	dump_expect_narrow(page, "--raw");
	assert_non_null(strstr(dump_output, "\ndata area\n00000000  "));
	assert_non_null(strstr(dump_output, "\nspare area\n00000000  "));
	/* Equal lines are left out up to the last one, which says how long the area is. */
	dump_expect("3199", "--raw", CTL_OK,
		    "\ndata area\n00000000  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
		    "  |................|\n*\n000001f0  00 ");
	snprintf(page, sizeof(page), "%" JSON_INTEGER_FORMAT,
		 dump_number(dump_last_root(pages), "page"));
	dump_expect_narrow(page, "");
	assert_non_null(strstr(dump_output, "\naborted: none\ndirectory:\n  row  group"));
	json_decref(pages);
}

static void test_several_pages_are_a_line_each(void **state)
{
	json_t *pages = dump_all();
	const json_t *root = dump_last_root(pages);
	json_int_t page = dump_number(root, "page");
	char range[48], line[160];

	(void)state;
	snprintf(range, sizeof(range), "%d-%d", (int)page, (int)page + 1);
	snprintf(line, sizeof(line), "%12d  intact          root                   512  %s\n",
		 (int)page, dump_text(root, "holds"));
	dump_expect_narrow(range, "");
	assert_non_null(strstr(dump_output, line));
	assert_null(strstr(dump_output, "committed"));
	dump_expect_narrow(range, "--long");
	snprintf(line, sizeof(line), "\npage                     %d: page %d of block %d, die 0\n",
		 (int)page + 1, ((int)page + 1) % 8, ((int)page + 1) / 8);
	assert_non_null(strstr(dump_output, line));
	assert_non_null(strstr(dump_output, "\ncommitted                3"));
	/* Nothing was ever there. */
	dump_expect("3190-3199", "", CTL_OK, "3190  not programmed, up to page 3199\n");
	dump_expect_narrow("block:399", "");
	assert_non_null(strstr(dump_output, "3192  not programmed, up to page 3199\n"));
	dump_expect("3199-3199", "", CTL_OK, "kind                     erased\n");
	json_decref(pages);
}

static void test_what_is_no_page_is_refused(void **state)
{
	static const char *const wrong[] = { "x",         "5-3",    "1-2-3",
					     "''",        "block:", "5-",
					     "block:0-x", "block",  "99999999999999999999",
					     "-1" };

	(void)state;
	for (size_t n = 0; n < sizeof(wrong) / sizeof(wrong[0]); n++)
		assert_int_equal(dump_run(wrong[n], ""), CTL_USAGE);
	dump_expect("x", "", CTL_USAGE, "'x' is no page number, and neither N-M nor block:N");
	dump_expect("0000000000000000000000000000000000000003", "", CTL_USAGE, "is no page number");
	dump_expect("3200", "", CTL_NOT_FOUND, "there is no page 3200: the last one is 3199");
	dump_expect("0-3200", "", CTL_NOT_FOUND, "there is no page 3200");
	dump_expect("block:400", "", CTL_NOT_FOUND, "there is no block 400: the last one is 399");
	dump_expect("3200", "--json", CTL_NOT_FOUND, "\"name\":\"not found\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUMP_TEST(test_each_record_on_flash_is_told_as_it_was_put),
		DUMP_TEST(test_an_image_says_what_its_segments_hold),
		DUMP_TEST(test_the_last_root_says_what_is_on_the_flash),
		DUMP_TEST(test_a_list_of_changes_names_segments_that_are_out),
		DUMP_TEST(test_a_list_of_changes_names_groups_that_are_complete),
		DUMP_TEST(test_one_page_of_several_tells_all_of_them_when_it_is_asked_alone),
		DUMP_TEST(test_lines_are_made_for_people),
		DUMP_TEST(test_several_pages_are_a_line_each),
		DUMP_TEST(test_what_is_no_page_is_refused),
	};

	return cmocka_run_group_tests(tests, dump_make_image, dump_remove_image);
}
