/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * muninnctl nand dump on a small image whose records are known: every page is decoded, and each
 * field compared with what was put, with the page itself, or with another page that says the same.
 * Then on pages that are damaged, torn, or not the engine's.
 *
 * Runs for each index.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "client/ctl/ctl.h"
#include "common/crc32c.h"
#include "engine/muninn/format.h"
#include "engine/objects/keys.h"
#include "engine/open.h"
#include "nand/private.h"
#include "tests/client/muninnctl_path.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/small_flash.h"

enum {
	RECORDS = 3000,
	AGAIN = 2500,  /* from here on keys come again */
	MERGED = 2700, /* when so many have been put */
	KEPT = 500,    /* the first ones, which are on flash */
	PAGE = 512,
	SPARE = 160,
	SEGMENT_PAGES = 8,
	BLOCKS = 400,
	PAGES = BLOCKS * 8,
	PARTITION = 3,
};

static char program[4096], folder[64], made[128], device[128];
static char output[1 << 20];

/* ---- a device with known records ---- */

struct put {
	struct record_key key;
	uint64_t sequence;
	uint32_t length;
	unsigned flags;
};

static struct put puts_made[RECORDS];

static struct record_key key_number(uint32_t n)
{
	switch (n % 4) {
	case 0:
		return key_of_onode(PARTITION, 0x10000 + n);
	case 1:
		return key_of_node(PARTITION, RECORD_ID_USER_OBJECTS, n);
	case 2:
		return key_of_version(PARTITION, n);
	default:
		return key_of_data(PARTITION, 0x10004, n);
	}
}

/* A few kinds of keys, lengths up to a page that is full of one record, tombstones. */
static struct put put_of(uint32_t n)
{
	struct put put = {
		.key = key_number(n % AGAIN),
		.length = n % 11 == 10 ? PAGE : 20 + n * 37 % 300,
		.flags = n % 4 == 1 ? RECORD_ABSORB : 0,
	};

	if (n % 50 == 3) {
		put.flags = RECORD_TOMBSTONE;
		put.length = 0;
	}
	return put;
}

static uint32_t keep_it(void *context, const struct record_key *key, const struct record_info *info,
			uint64_t *bounds, uint32_t max)
{
	(void)context;
	(void)key;
	(void)max;
	bounds[0] = info->sequence;
	return 1;
}

/* Moves all records of some segments, old ones as well. */
static void merge_some(struct record_store *store)
{
	const struct record_keep keep = { .bounds = keep_it };
	struct record_merge merge = { .segments_wanted = 4, .live_permille_max = 1000 };

	for (int n = 0; n < 4; n++)
		store->operations->merge(store, &keep, &merge);
	assert_true(merge.segments_taken > 0);
}

static void put_records(struct record_store *store)
{
	uint8_t value[PAGE];

	for (uint32_t n = 0; n < RECORDS; n++) {
		struct put *put = &puts_made[n];

		*put = put_of(n);
		memset(value, (int)n, sizeof(value));
		put->sequence = store->operations->begin(store, 0);
		assert_int_equal(store->operations->put(store, &put->key, put->sequence, put->flags,
							value, put->length, RECORD_ROOM_WRITE),
				 0);
		store->operations->commit(store);
		if (n == MERGED)
			merge_some(store);
	}
}

static void make_image(void)
{
	const struct nand_geometry geometry = SMALL_FLASH_WITH_SPARE(BLOCKS, SPARE);
	const struct engine_options options = {
		.muninn = { .index = index_under_test(),
			    .rows = 1,
			    .segment_pages = SEGMENT_PAGES,
			    .record_bytes = 128,
			    .parity = 1 },
	};
	struct error_text error = { "" };
	struct record_store *store = NULL;
	struct nand *nand = NULL;
	uint64_t bytes;

	if (engine_nvram_bytes(&geometry, &options, &bytes, &error) ||
	    nand_create(made, &geometry, bytes, &error) || nand_open(made, &nand, &error) ||
	    engine_format(nand, &options, &error) ||
	    engine_open_records(nand, &options, &store, &error))
		fail_msg("%s", error.text);
	put_records(store);
	assert_int_equal(store->operations->close(store, true), 0);
	assert_int_equal(nand_close(nand), 0);
}

/* Both files. */
static void copy_image(const char *from, const char *to)
{
	char command[1024];

	snprintf(command, sizeof(command), "cp --sparse=always %s %s && cp %s.nvram %s.nvram", from,
		 to, from, to);
	assert_int_equal(system(command), 0);
}

static void remove_image(const char *path)
{
	char nvram[160];

	snprintf(nvram, sizeof(nvram), "%s.nvram", path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(nvram), 0);
}

/* Each test has a copy of one image. */
static int make_all(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/muninn-dump-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(device, sizeof(device), "%s/lun1.img", folder);
	snprintf(made, sizeof(made), "%s/made.img", folder);
	make_image();
	return 0;
}

static int remove_all(void **state)
{
	(void)state;
	remove_image(made);
	return rmdir(folder);
}

static int setup(void **state)
{
	(void)state;
	copy_image(made, device);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	remove_image(device);
	return 0;
}

/* ---- the command ---- */

/* Runs it on PAGE, with options; `output` gets both outputs. Returns the exit code. */
static int run(const char *page, const char *options)
{
	char command[8192];
	size_t length;
	FILE *pipe;
	int status;

	snprintf(command, sizeof(command), "%s nand dump %s %s %s 2>&1 </dev/null", program, page,
		 device, options);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	length = fread(output, 1, sizeof(output) - 1, pipe);
	output[length] = '\0';
	status = pclose(pipe);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void expect(const char *page, const char *options, int code, const char *word)
{
	int result = run(page, options);

	if (result != code || !strstr(output, word))
		fail_msg("nand dump %s %s: exit code %d instead of %d, or '%s' is not in: %s", page,
			 options, result, code, word, output);
}

static json_t *dump_json(const char *page)
{
	char command[8192];
	json_error_t error;
	json_t *value;
	FILE *pipe;

	snprintf(command, sizeof(command), "%s nand dump %s %s --json", program, page, device);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	value = json_loadf(pipe, 0, &error);
	if (!value)
		fail_msg("nand dump %s --json: %s", page, error.text);
	assert_int_equal(pclose(pipe), 0);
	return value;
}

static json_t *dump_page(uint64_t page)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRIu64, page);
	return dump_json(number);
}

static json_int_t number(const json_t *object, const char *name)
{
	if (!json_is_integer(json_object_get(object, name)))
		fail_msg("no number '%s' in %s", name, json_dumps(object, 0));
	return json_integer_value(json_object_get(object, name));
}

static bool flag(const json_t *object, const char *name)
{
	assert_true(json_is_boolean(json_object_get(object, name)));
	return json_is_true(json_object_get(object, name));
}

static const char *text(const json_t *object, const char *name)
{
	const char *value = json_string_value(json_object_get(object, name));

	if (!value)
		fail_msg("no text '%s' in %s", name, json_dumps(object, 0));
	return value;
}

static uint64_t hex(const json_t *object, const char *name)
{
	return strtoull(text(object, name), NULL, 16);
}

static bool is_kind(const json_t *page, const char *kind)
{
	return strcmp(text(page, "kind"), kind) == 0;
}

/* The first page of a kind, of all pages; it must exist. */
static const json_t *first_of(const json_t *pages, const char *kind)
{
	json_t *page;
	size_t n;

	json_array_foreach(pages, n, page)
	{
		if (is_kind(page, kind))
			return page;
	}
	fail_msg("there is no page of kind %s", kind);
	return NULL;
}

static json_t *dump_all(void)
{
	char range[32];
	json_t *pages;

	snprintf(range, sizeof(range), "0-%d", PAGES - 1);
	pages = dump_json(range);
	assert_int_equal(json_array_size(pages), PAGES);
	return pages;
}

/* ---- records ---- */

static const struct put *find_put(uint64_t sequence)
{
	for (uint32_t n = 0; n < RECORDS; n++)
		if (puts_made[n].sequence == sequence)
			return &puts_made[n];
	return NULL;
}

static bool has_newer(const struct put *put)
{
	for (const struct put *other = put + 1; other < puts_made + RECORDS; other++)
		if (other->key.identifier == put->key.identifier &&
		    other->key.piece == put->key.piece && other->key.class == put->key.class)
			return true;
	return false;
}

static void compare_record(const json_t *record, const struct put *put)
{
	char what[KEY_TEXT];

	if (flag(record, "moved"))
		assert_true(has_newer(put));
	assert_int_equal(number(record, "length"), put->length);
	assert_int_equal(number(record, "partition_index"), put->key.partition);
	assert_int_equal(hex(record, "identifier"), put->key.identifier);
	assert_int_equal(hex(record, "piece"), put->key.piece);
	assert_int_equal(number(record, "class"), put->key.class);
	assert_int_equal(flag(record, "tombstone"), (put->flags & RECORD_TOMBSTONE) != 0);
	assert_int_equal(flag(record, "absorb"), (put->flags & RECORD_ABSORB) != 0);
	assert_int_equal(number(record, "epoch"),
			 align_up(put->sequence, RECORD_REACH_STEP) > put->sequence
				 ? put->sequence + 1 + RECORD_REACH_NONE
				 : put->sequence);
	assert_true(flag(record, "intact"));
	assert_string_equal(text(record, "record"), key_describe(&put->key, what));
}

/* Where each record begins follows from those before it. */
static void compare_records(const json_t *page, bool found[RECORDS])
{
	const json_t *records = json_object_get(page, "records");
	json_int_t at = 0;
	json_t *record;
	size_t n;

	assert_true(json_is_array(records));
	json_array_foreach(records, n, record)
	{
		const struct put *put = find_put((uint64_t)number(record, "sequence"));

		assert_non_null(put);
		compare_record(record, put);
		found[put - puts_made] = true;
		assert_int_equal(number(record, "at"), at);
		at += number(record, "length") + (flag(page, "large") ? 0 : RECORD_HEADER_BYTES);
	}
	assert_int_equal(number(page, "used_bytes"), at);
	assert_int_equal(number(page, "bytes_without_record"), 0);
	assert_int_equal(flag(page, "large"),
			 at > PAGE - RECORD_HEADER_BYTES && n == 1 && at == PAGE &&
				 number(json_array_get(records, 0), "length") == PAGE);
	assert_int_equal(number(page, "segment"), number(page, "page") / SEGMENT_PAGES);
	assert_int_equal(number(page, "segment_page"), number(page, "page") % SEGMENT_PAGES);
	assert_true(number(page, "parity_share_bytes") > 0);
	assert_false(flag(page, "unfinished"));
}

static size_t count_moved(const json_t *page)
{
	size_t count = 0, n;
	json_t *record;

	json_array_foreach(json_object_get(page, "records"), n, record)
	{
		count += flag(record, "moved");
	}
	return count;
}

static void test_each_record_on_flash_is_told_as_it_was_put(void **state)
{
	static bool found[RECORDS];
	json_t *pages = dump_all(), *page;
	size_t n, moved = 0;

	(void)state;
	json_array_foreach(pages, n, page)
	{
		assert_int_equal(number(page, "page"), n);
		if (is_kind(page, "records"))
			compare_records(page, found);
		moved += count_moved(page);
	}
	assert_true(moved > 0);
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

		assert_string_equal(text(page, "kind"), "records");
		assert_int_equal(number(page, "row"), row);
		if (serial)
			assert_int_equal(number(page, "serial"), serial);
		json_array_foreach(records, at, record)
		{
			json_int_t sequence = number(record, "sequence");

			tally.records++;
			tally.moved |= flag(record, "moved");
			tally.bytes += number(record, "length") + RECORD_HEADER_BYTES;
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

	assert_int_equal(json_array_size(members), number(image, "member_count"));
	json_array_foreach(members, n, member)
	{
		struct tally tally;

		assert_int_equal(number(member, "member"), n);
		/* The segment may be another one's by now. */
		if (!flag(member, "live"))
			continue;
		tally = tally_segment(pages, number(member, "segment"), number(image, "row"),
				      number(member, "serial"));
		assert_int_equal(number(member, "records"), tally.records);
		assert_int_equal(number(member, "bytes"), tally.bytes);
		assert_int_equal(number(member, "first"), tally.first);
		assert_int_equal(number(member, "last"), tally.last);
		assert_int_equal(flag(member, "moved"), tally.moved);
	}
}

static json_int_t count_live(const json_t *image)
{
	json_int_t count = 0;
	json_t *member;
	size_t n;

	json_array_foreach(json_object_get(image, "members"), n, member)
	{
		count += flag(member, "live");
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
		count += is_kind(page, kind) && number(page, "row") == number(of, "row") &&
			 number(page, "group") == number(of, "group");
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
		if (!is_kind(page, "index") || number(page, "image_part") > 0)
			continue;
		images++;
		assert_string_equal(text(page, "named_by"), "NVRAM");
		assert_string_equal(text(page, "index_kind"), index_kind_name(index_under_test()));
		assert_int_equal(number(page, "image_first_page"), n);
		assert_int_equal(number(page, "image_pages_lost"), 0);
		assert_true(flag(page, "image_intact"));
		assert_int_equal(number(page, "image_pages"), count_pages(pages, "index", page));
		assert_int_equal(number(page, "image_parity_pages"),
				 count_pages(pages, "index parity", page));
		assert_int_equal((number(page, "image_bytes") + PAGE - 1) / PAGE,
				 number(page, "image_pages"));
		compare_members(pages, page);
	}
	assert_true(images > 0);
	json_decref(pages);
}

static const json_t *last_root(const json_t *pages)
{
	const json_t *last = NULL;
	json_t *page;
	size_t n;

	json_array_foreach(pages, n, page)
	{
		if (is_kind(page, "root") && number(page, "part") == 0 &&
		    (!last || number(page, "serial") > number(last, "serial")))
			last = page;
	}
	assert_non_null(last);
	return last;
}

static void test_the_last_root_says_what_is_on_the_flash(void **state)
{
	json_t *pages = dump_all(), *entry;
	const json_t *root = last_root(pages), *directory, *growing, *rows;
	size_t n;

	(void)state;
	assert_true(flag(root, "whole"));
	assert_int_equal(number(root, "committed"), puts_made[RECORDS - 1].sequence);
	assert_int_equal(number(root, "hashed_rows"), 1);
	assert_int_equal(number(root, "segment_pages"), SEGMENT_PAGES);
	assert_int_equal(number(root, "record_bytes"), 128);
	assert_int_equal(number(root, "parity"), 1);
	assert_string_equal(text(root, "index_kind"), index_kind_name(index_under_test()));
	assert_int_equal(number(root, "aborted_ranges"), 0);
	assert_int_equal(json_array_size(json_object_get(root, "aborted")), 0);
	directory = json_object_get(root, "directory");
	assert_true(json_array_size(directory) > 0);
	json_array_foreach(directory, n, entry)
	{
		const json_t *image = json_array_get(pages, (size_t)number(entry, "first_page"));

		assert_string_equal(text(image, "kind"), "index");
		assert_int_equal(number(image, "image_part"), 0);
		assert_int_equal(number(image, "row"), number(entry, "row"));
		assert_int_equal(number(image, "group"), number(entry, "group"));
		assert_int_equal(number(image, "image_bytes"), number(entry, "image_bytes"));
		assert_int_equal(__builtin_popcountll(hex(entry, "live")), count_live(image));
	}
	growing = json_object_get(root, "growing");
	assert_true(json_array_size(growing) > 0);
	json_array_foreach(growing, n, entry)
	{
		if (flag(entry, "live"))
			tally_segment(pages, number(entry, "segment"), number(entry, "row"), 0);
	}
	/* History has a row of its own. */
	rows = json_object_get(root, "rows");
	assert_int_equal(json_array_size(rows), 2);
	assert_true(number(json_array_get(rows, 0), "members") +
			    number(json_array_get(rows, 1), "members") ==
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
		if (is_kind(page, "index") && json_object_get(page, "members") &&
		    number(page, "row") == number(entry, "row") &&
		    number(page, "group") == number(entry, "group"))
			return page;
	}
	return NULL;
}

static void test_a_list_of_kills_names_segments_that_are_out(void **state)
{
	json_t *pages = dump_all(), *kill;
	const json_t *kills = first_of(pages, "kills");
	size_t n, compared = 0;

	(void)state;
	assert_true(flag(kills, "whole"));
	assert_true(number(kills, "base") < number(kills, "serial"));
	assert_true(json_array_size(json_object_get(kills, "kills")) > 0);
	json_array_foreach(json_object_get(kills, "kills"), n, kill)
	{
		const json_t *image = image_of(pages, kill);
		const json_t *member;

		if (!image)
			continue;
		member = json_array_get(json_object_get(image, "members"),
					(size_t)number(kill, "member"));
		assert_int_equal(number(member, "segment"), number(kill, "segment"));
		assert_int_equal(number(member, "serial"), number(kill, "serial"));
		assert_false(flag(member, "live"));
		compared++;
	}
	assert_true(compared > 0);
	json_decref(pages);
}

static void test_one_page_of_several_tells_all_of_them_when_it_is_asked_alone(void **state)
{
	json_t *pages = dump_all(), *alone;
	const json_t *root = last_root(pages), *image = first_of(pages, "index");
	json_int_t page = number(root, "page");

	(void)state;
	alone = dump_page((uint64_t)page + 1);
	assert_int_equal(number(alone, "serial"), number(root, "serial"));
	assert_int_equal(number(alone, "part"), 1);
	assert_true(json_equal(json_object_get(alone, "directory"),
			       json_object_get(root, "directory")));
	json_decref(alone);
	page = number(image, "image_first_page");
	assert_null(json_object_get(json_array_get(pages, (size_t)page + 1), "members"));
	alone = dump_page((uint64_t)page + 1);
	assert_int_equal(number(alone, "image_part"), 1);
	assert_true(
		json_equal(json_object_get(alone, "members"), json_object_get(image, "members")));
	json_decref(alone);
	json_decref(pages);
}

/* ---- for people ---- */

static void expect_narrow(const char *page, const char *options)
{
	assert_int_equal(run(page, options), CTL_OK);
	for (const char *line = output; *line; line += strcspn(line, "\n") + 1)
		if (strcspn(line, "\n") > 100)
			fail_msg("too long: %.*s", (int)strcspn(line, "\n"), line);
}

static void test_lines_are_made_for_people(void **state)
{
	char what[KEY_TEXT], page[32];
	json_t *pages = dump_all();
	const json_t *records = first_of(pages, "records");
	const json_t *first = json_array_get(json_object_get(records, "records"), 0);
	const struct put *put = find_put((uint64_t)number(first, "sequence"));

	(void)state;
	snprintf(page, sizeof(page), "%" JSON_INTEGER_FORMAT, number(records, "page"));
	expect_narrow(page, "");
	assert_non_null(strstr(output, "kind                     records\n"));
	assert_non_null(strstr(output, key_describe(&put->key, what)));
	assert_non_null(strstr(output, "   at  length  sequence  intact  flags  record\n"));
	assert_null(strstr(output, "data area"));
	expect_narrow(page, "--raw");
	assert_non_null(strstr(output, "\ndata area\n00000000  "));
	assert_non_null(strstr(output, "\nspare area\n00000000  "));
	snprintf(page, sizeof(page), "%" JSON_INTEGER_FORMAT, number(last_root(pages), "page"));
	expect_narrow(page, "");
	assert_non_null(strstr(output, "\naborted: none\ndirectory:\n  row  group"));
	json_decref(pages);
}

static void test_several_pages_are_a_line_each(void **state)
{
	json_t *pages = dump_all();
	const json_t *root = last_root(pages);
	json_int_t page = number(root, "page");
	char range[48], line[160];

	(void)state;
	snprintf(range, sizeof(range), "%d-%d", (int)page, (int)page + 1);
	snprintf(line, sizeof(line), "%12d  intact          root                   512  %s\n",
		 (int)page, text(root, "holds"));
	expect_narrow(range, "");
	assert_non_null(strstr(output, line));
	assert_null(strstr(output, "committed"));
	expect_narrow(range, "--long");
	snprintf(line, sizeof(line), "\npage                     %d: page %d of block %d, die 0\n",
		 (int)page + 1, ((int)page + 1) % 8, ((int)page + 1) / 8);
	assert_non_null(strstr(output, line));
	assert_non_null(strstr(output, "\ncommitted                3"));
	/* Nothing was ever there. */
	expect("3190-3199", "", CTL_OK, "3190  not programmed, up to page 3199\n");
	expect_narrow("block:399", "");
	assert_non_null(strstr(output, "3192  not programmed, up to page 3199\n"));
	expect("3199-3199", "", CTL_OK, "kind                     erased\n");
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
		assert_int_equal(run(wrong[n], ""), CTL_USAGE);
	expect("x", "", CTL_USAGE, "'x' is no page number, and neither N-M nor block:N");
	expect("3200", "", CTL_NOT_FOUND, "there is no page 3200: the last one is 3199");
	expect("0-3200", "", CTL_NOT_FOUND, "there is no page 3200");
	expect("block:400", "", CTL_NOT_FOUND, "there is no block 400: the last one is 399");
	expect("3200", "--json", CTL_NOT_FOUND, "\"name\":\"not found\"");
}

/* ---- damage ---- */

static void overwrite(const char *path, uint64_t offset, const void *bytes, size_t length)
{
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, length, (off_t)offset), length);
	assert_int_equal(close(fd), 0);
}

static uint64_t offset_of(json_int_t page, uint32_t byte)
{
	const struct nand_geometry geometry = SMALL_FLASH_WITH_SPARE(BLOCKS, SPARE);
	const struct nand_layout layout = nand_layout_of(&geometry);

	return nand_page_offset(&layout, &geometry, (uint64_t)page) + byte;
}

static void fill_page(json_int_t page, uint32_t byte, size_t length, int with)
{
	uint8_t bytes[PAGE + SPARE];

	memset(bytes, with, sizeof(bytes));
	overwrite(device, offset_of(page, byte), bytes, length);
}

static void damage_nvram(void)
{
	static const uint8_t zeros[64];
	char path[160];

	snprintf(path, sizeof(path), "%s.nvram", device);
	overwrite(path, NAND_NVRAM_FILE_AT, zeros, sizeof(zeros));
}

/* A page of records that has more than one. */
static const json_t *page_of_some(const json_t *pages)
{
	json_t *page;
	size_t n;

	json_array_foreach(pages, n, page)
	{
		if (is_kind(page, "records") &&
		    json_array_size(json_object_get(page, "records")) > 1 &&
		    number(json_array_get(json_object_get(page, "records"), 1), "length") > 0)
			return page;
	}
	fail();
	return NULL;
}

static void test_a_damaged_record_is_told_from_the_others_of_its_page(void **state)
{
	json_t *pages = dump_all(), *damaged;
	const json_t *page = page_of_some(pages), *records;
	json_int_t number_of = number(page, "page");
	char range[32];

	(void)state;
	records = json_object_get(page, "records");
	fill_page(number_of,
		  (uint32_t)number(json_array_get(records, 1), "at") + RECORD_HEADER_BYTES, 1,
		  0xA5);
	damaged = dump_page((uint64_t)number_of);
	assert_string_equal(text(damaged, "verdict"), "damaged");
	assert_string_equal(text(damaged, "kind"), "records");
	assert_true(flag(damaged, "spare_intact"));
	assert_int_equal(number(damaged, "serial"), number(page, "serial"));
	records = json_object_get(damaged, "records");
	for (size_t n = 0; n < json_array_size(records); n++)
		assert_int_equal(flag(json_array_get(records, n), "intact"), n != 1);
	snprintf(range, sizeof(range), "%d-%d", (int)number_of, (int)number_of + 1);
	expect(range, "", CTL_OK, "records, 1 damaged\n");
	json_decref(damaged);
	json_decref(pages);
}

static void test_a_length_that_is_damaged_hides_what_follows(void **state)
{
	json_t *pages = dump_all(), *damaged;
	const json_t *page = page_of_some(pages);
	json_int_t number_of = number(page, "page");
	uint32_t at = (uint32_t)number(json_array_get(json_object_get(page, "records"), 1), "at");

	(void)state;
	fill_page(number_of, at + 22, 2, 0x1F);
	damaged = dump_page((uint64_t)number_of);
	assert_int_equal(json_array_size(json_object_get(damaged, "records")), 1);
	assert_int_equal(number(damaged, "bytes_without_record"), number(page, "used_bytes") - at);
	json_decref(damaged);
	json_decref(pages);
}

static void test_a_torn_page_says_how_far_it_came(void **state)
{
	json_t *pages = dump_all(), *torn;
	json_int_t page = number(page_of_some(pages), "page");

	(void)state;
	json_decref(pages);
	/* In the spare area, behind what says what the page is; in it; in the data. */
	fill_page(page, PAGE + 59, 1, 0);
	fill_page(page, PAGE + 60, SPARE - 60, 0xFF);
	torn = dump_page((uint64_t)page);
	assert_string_equal(text(torn, "verdict"), "torn");
	assert_int_equal(number(torn, "torn_bytes"), PAGE + 60);
	assert_string_equal(text(torn, "kind"), "records");
	json_decref(torn);
	fill_page(page, PAGE, SPARE, 0xFF);
	fill_page(page, 100, PAGE - 100, 0xFF);
	fill_page(page, 99, 1, 0);
	torn = dump_page((uint64_t)page);
	assert_int_equal(number(torn, "torn_bytes"), 100);
	assert_string_equal(text(torn, "kind"), "unreadable");
	assert_null(json_object_get(torn, "records"));
	json_decref(torn);
	fill_page(page, 0, PAGE, 0xFF);
	torn = dump_page((uint64_t)page);
	assert_string_equal(text(torn, "verdict"), "torn");
	assert_int_equal(number(torn, "torn_bytes"), 0);
	json_decref(torn);
	fill_page(page, PAGE, SPARE, 0x77);
	torn = dump_page((uint64_t)page);
	assert_string_equal(text(torn, "verdict"), "damaged");
	assert_string_equal(text(torn, "kind"), "unreadable");
	json_decref(torn);
}

static void test_a_lost_page_of_an_image_or_root_is_told(void **state)
{
	json_t *pages = dump_all(), *page;
	json_int_t image_page = number(first_of(pages, "index"), "image_first_page");
	json_int_t root_page = number(last_root(pages), "page");

	(void)state;
	fill_page(image_page + 1, 0, PAGE, 0xA5);
	page = dump_page((uint64_t)image_page);
	assert_int_equal(number(page, "image_pages_lost"), 1);
	json_decref(page);
	fill_page(image_page, 0, PAGE, 0xA5);
	page = dump_page((uint64_t)image_page + 1);
	assert_int_equal(number(page, "image_pages_lost"), 2);
	assert_string_equal(text(page, "image"), "its header is lost or damaged");
	json_decref(page);
	/* Parity has it. */
	fill_page(root_page, 8, PAGE - 8, 0xA5);
	page = dump_page((uint64_t)root_page + 1);
	assert_true(flag(page, "whole"));
	assert_int_equal(number(page, "pages_lost"), 1);
	assert_int_equal(number(page, "committed"), puts_made[RECORDS - 1].sequence);
	json_decref(page);
	/* Nothing has it. */
	fill_page(root_page + 1, 8, PAGE - 8, 0xA5);
	page = dump_page((uint64_t)root_page);
	assert_string_equal(text(page, "verdict"), "damaged");
	assert_false(flag(page, "whole"));
	assert_null(json_object_get(page, "committed"));
	json_decref(page);
	json_decref(pages);
}

static void test_without_nvram_the_last_root_names_the_images(void **state)
{
	json_t *pages = dump_all(), *page;
	json_int_t records = number(page_of_some(pages), "page");
	json_int_t image_page = number(first_of(pages, "index"), "image_first_page");
	char text_of_page[32];

	(void)state;
	damage_nvram();
	page = dump_page((uint64_t)image_page);
	assert_string_equal(text(page, "named_by"), "root");
	assert_non_null(strstr(text(page, "trouble"), "is told by root"));
	assert_true(flag(page, "image_intact"));
	assert_true(
		json_equal(json_object_get(page, "members"),
			   json_object_get(json_array_get(pages, (size_t)image_page), "members")));
	json_decref(page);
	/* Nor a root: a page of records still says all by itself. */
	for (json_int_t lost = 0; lost < 32; lost++)
		fill_page(lost, 8, PAGE - 8, 0xA5);
	page = dump_page((uint64_t)records);
	assert_non_null(strstr(text(page, "trouble"), "there is no whole root"));
	assert_null(json_object_get(page, "segment"));
	assert_true(json_equal(json_object_get(page, "records"),
			       json_object_get(json_array_get(pages, (size_t)records), "records")));
	json_decref(page);
	snprintf(text_of_page, sizeof(text_of_page), "%d", (int)image_page);
	expect(text_of_page, "", CTL_OK, "of an image that nothing names");
	assert_non_null(strstr(output, "muninnctl: the device is not formatted"));
	json_decref(pages);
}

/* ---- images that are not decoded ---- */

static void test_another_version_of_the_format_is_not_decoded(void **state)
{
	const uint8_t version[4] = { MUNINN_FORMAT_VERSION + 1 };
	uint8_t header[NVRAM_HEADER_CRC_AT], crc[4];
	char path[160];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s.nvram", device);
	overwrite(path, NAND_NVRAM_FILE_AT + NVRAM_VERSION_AT, version, sizeof(version));
	fd = open(path, O_RDONLY);
	assert_int_equal(pread(fd, header, sizeof(header), NAND_NVRAM_FILE_AT), sizeof(header));
	assert_int_equal(close(fd), 0);
	put_le32(crc, crc32c(0, header, sizeof(header)));
	overwrite(path, NAND_NVRAM_FILE_AT + NVRAM_HEADER_CRC_AT, crc, sizeof(crc));
	expect("0", "", CTL_OK, "kind                     not decoded\n");
	assert_non_null(strstr(output, "the device has engine format 10"));
}

static void test_an_image_in_use_is_said_to_be(void **state)
{
	struct error_text error;
	struct nand *nand;
	json_t *page;

	(void)state;
	assert_int_equal(nand_open(device, &nand, &error), 0);
	page = dump_page(0);
	assert_string_equal(text(page, "kind"), "root");
	/* Not every host tells. */
	if (number(page, "in_use_by_process"))
		assert_int_equal(number(page, "in_use_by_process"), getpid());
	json_decref(page);
	assert_int_equal(nand_close(nand), 0);
}

#define ON_IMAGE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_IMAGE(test_each_record_on_flash_is_told_as_it_was_put),
		ON_IMAGE(test_an_image_says_what_its_segments_hold),
		ON_IMAGE(test_the_last_root_says_what_is_on_the_flash),
		ON_IMAGE(test_a_list_of_kills_names_segments_that_are_out),
		ON_IMAGE(test_one_page_of_several_tells_all_of_them_when_it_is_asked_alone),
		ON_IMAGE(test_lines_are_made_for_people),
		ON_IMAGE(test_several_pages_are_a_line_each),
		ON_IMAGE(test_what_is_no_page_is_refused),
		ON_IMAGE(test_a_damaged_record_is_told_from_the_others_of_its_page),
		ON_IMAGE(test_a_length_that_is_damaged_hides_what_follows),
		ON_IMAGE(test_a_torn_page_says_how_far_it_came),
		ON_IMAGE(test_a_lost_page_of_an_image_or_root_is_told),
		ON_IMAGE(test_without_nvram_the_last_root_names_the_images),
		ON_IMAGE(test_another_version_of_the_format_is_not_decoded),
		ON_IMAGE(test_an_image_in_use_is_said_to_be),
	};

	muninnctl_path(program);
	return cmocka_run_group_tests(tests, make_all, remove_all);
}
