/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A small image with known records, and the command that dumps its pages. */
#include "tests/client/nand_dump_scene.h"

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

#include "engine/objects/keys.h"
#include "engine/open.h"
#include "nand/nand.h"
#include "tests/client/muninnctl_path.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/small_flash.h"

enum {
	AGAIN = 2500,  /* from here on keys come again */
	MERGED = 2700, /* when so many have been put */
	PARTITION = 3,
};

const struct nand_geometry dump_geometry = SMALL_FLASH_WITH_SPARE(BLOCKS, SPARE);
struct dump_put dump_puts[RECORDS];
char dump_device[128], dump_output[1 << 20];

static char program[4096], folder[64], made[128];

/* ---- the image ---- */

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

/*
 * A few kinds of keys, lengths up to a page that is full of one record, tombstones. Then most have
 * one length, of which a page has two; with a ribbon index they span pages.
 */
static struct dump_put put_of(uint32_t n)
{
	struct dump_put put = {
		.key = key_number(n % AGAIN),
		.length = n >= SPANNED   ? 160
			  : n % 11 == 10 ? PAGE
					 : 20 + n * 37 % 300,
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

	for (int n = 0; n < 8; n++)
		store->operations->merge(store, &keep, &merge);
	assert_true(merge.segments_taken > 0);
}

static void put_records(struct record_store *store)
{
	uint8_t value[PAGE];

	for (uint32_t n = 0; n < RECORDS; n++) {
		struct dump_put *put = &dump_puts[n];

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

	if (engine_nvram_bytes(&dump_geometry, &options, &bytes, &error) ||
	    nand_create(made, &dump_geometry, bytes, &error) || nand_open(made, &nand, &error) ||
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

int dump_make_image(void **state)
{
	(void)state;
	muninnctl_path(program);
	strcpy(folder, "/tmp/muninn-dump-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(dump_device, sizeof(dump_device), "%s/lun1.img", folder);
	snprintf(made, sizeof(made), "%s/made.img", folder);
	make_image();
	return 0;
}

int dump_remove_image(void **state)
{
	(void)state;
	remove_image(made);
	return rmdir(folder);
}

int dump_copy_image(void **state)
{
	(void)state;
	copy_image(made, dump_device);
	return 0;
}

int dump_remove_copy(void **state)
{
	(void)state;
	remove_image(dump_device);
	return 0;
}

/* ---- the command ---- */

int dump_run(const char *pages, const char *options)
{
	char command[8192];
	size_t length;
	FILE *pipe;
	int status;

	snprintf(command, sizeof(command), "%s nand dump %s %s %s 2>&1 </dev/null", program, pages,
		 dump_device, options);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	length = fread(dump_output, 1, sizeof(dump_output) - 1, pipe);
	dump_output[length] = '\0';
	status = pclose(pipe);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

void dump_expect(const char *pages, const char *options, int code, const char *word)
{
	int result = dump_run(pages, options);

	if (result != code || !strstr(dump_output, word))
		fail_msg("nand dump %s %s: exit code %d instead of %d, or '%s' is not in: %s",
			 pages, options, result, code, word, dump_output);
}

void dump_expect_narrow(const char *page, const char *options)
{
	assert_int_equal(dump_run(page, options), 0);
	for (const char *line = dump_output; *line; line += strcspn(line, "\n") + 1)
		if (strcspn(line, "\n") > 100)
			fail_msg("too long: %.*s", (int)strcspn(line, "\n"), line);
}

static json_t *dump_json(const char *pages)
{
	char command[8192];
	json_error_t error;
	json_t *value;
	FILE *pipe;

	snprintf(command, sizeof(command), "%s nand dump %s %s --json", program, pages,
		 dump_device);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	value = json_loadf(pipe, 0, &error);
	if (!value)
		fail_msg("nand dump %s --json: %s", pages, error.text);
	assert_int_equal(pclose(pipe), 0);
	return value;
}

json_t *dump_page(uint64_t page)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRIu64, page);
	return dump_json(number);
}

json_t *dump_all(void)
{
	char range[32];
	json_t *pages;

	snprintf(range, sizeof(range), "0-%d", PAGES - 1);
	pages = dump_json(range);
	assert_int_equal(json_array_size(pages), PAGES);
	return pages;
}

/* ---- what it says ---- */

json_int_t dump_number(const json_t *object, const char *name)
{
	if (!json_is_integer(json_object_get(object, name)))
		fail_msg("no number '%s' in %s", name, json_dumps(object, 0));
	return json_integer_value(json_object_get(object, name));
}

bool dump_flag(const json_t *object, const char *name)
{
	assert_true(json_is_boolean(json_object_get(object, name)));
	return json_is_true(json_object_get(object, name));
}

const char *dump_text(const json_t *object, const char *name)
{
	const char *value = json_string_value(json_object_get(object, name));

	if (!value)
		fail_msg("no text '%s' in %s", name, json_dumps(object, 0));
	return value;
}

uint64_t dump_hex(const json_t *object, const char *name)
{
	return strtoull(dump_text(object, name), NULL, 16);
}

bool dump_is_kind(const json_t *page, const char *kind)
{
	return strcmp(dump_text(page, "kind"), kind) == 0;
}

const json_t *dump_first_of(const json_t *pages, const char *kind)
{
	json_t *page;
	size_t n;

	json_array_foreach(pages, n, page)
	{
		if (dump_is_kind(page, kind))
			return page;
	}
	fail_msg("there is no page of kind %s", kind);
	return NULL;
}

const json_t *dump_last_root(const json_t *pages)
{
	const json_t *last = NULL;
	json_t *page;
	size_t n;

	json_array_foreach(pages, n, page)
	{
		if (dump_is_kind(page, "root") && dump_number(page, "part") == 0 &&
		    (!last || dump_number(page, "serial") > dump_number(last, "serial")))
			last = page;
	}
	assert_non_null(last);
	return last;
}
