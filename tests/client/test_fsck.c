/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * muninn-fsck on image files: what it says of each kind of damage, its exit codes, what its copies
 * hold, and that the examined files stay as they are.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/history.h"
#include "engine/muninn/format.h"
#include "engine/muninn/geometry.h"
#include "engine/options.h"
#include "nand/private.h"
#include "tests/client/muninnctl_path.h"
#include "tests/engine/by_address.h"

enum {
	PARTITION = 0x10000,
	SMALL = 0x10000,
	LARGE,
	COLLECTION,
	PAGE = 4096,
	LARGE_BYTES = 3 << 20,
	DAMAGED_AT = 65 * PAGE, /* in LARGE: on flash since its row was sealed */
};

static char program[4096];
static char output[1 << 18];
static char folder[64], image[128], copy[128];

static const struct engine_options options = { .muninn.rows = 2, .muninn.segment_pages = 64 };

/* ---- a device ---- */

static uint8_t byte_at(uint64_t offset)
{
	if (offset % PAGE < 4)
		return (uint8_t)(offset / PAGE >> 8 * (offset % PAGE));
	return (uint8_t)(offset / PAGE * 7 + offset % 251 + 1);
}

static void put_objects(struct engine_txn *txn)
{
	const struct engine_address partition = { .partition = PARTITION };
	const struct engine_address small = { PARTITION, SMALL, 0, 0 };
	const struct engine_address large = { PARTITION, LARGE, 0, 0 };
	uint8_t *bytes = malloc(LARGE_BYTES);
	struct engine_object *object;

	assert_non_null(bytes);
	for (uint64_t at = 0; at < LARGE_BYTES; at++)
		bytes[at] = byte_at(at);
	assert_int_equal(engine_partition_create(txn, PARTITION, NULL), 0);
	assert_int_equal(engine_attribute_set(txn, partition, 0x20000, 1, "part", 4), 0);
	assert_int_equal(engine_create(txn, PARTITION, ENGINE_USER_OBJECT, SMALL, 1, NULL), 0);
	assert_int_equal(engine_create(txn, PARTITION, ENGINE_USER_OBJECT, LARGE, 1, NULL), 0);
	assert_int_equal(engine_create(txn, PARTITION, ENGINE_COLLECTION, COLLECTION, 1, NULL), 0);
	assert_int_equal(engine_write(txn, small, 0, "thought and memory", 18), 0);
	assert_int_equal(engine_attribute_set(txn, small, 0x10000, 1, "a raven", 7), 0);
	assert_int_equal(engine_write(txn, large, 0, bytes, LARGE_BYTES), 0);
	assert_int_equal(engine_open_object(txn, small, &object), 0);
	assert_int_equal(engine_object_membership_set(object, 5, COLLECTION), 0);
	engine_close_object(object);
	free(bytes);
}

static void make_image(const struct engine_options *as)
{
	const struct nand_geometry geometry = nand_geometry_default(32 << 20);
	struct error_text error = { "" };
	struct engine *engine = NULL;
	struct engine_txn *txn;
	struct nand *nand = NULL;
	uint64_t bytes;
	uint32_t version;

	if (engine_nvram_bytes(&geometry, as, &bytes, &error) ||
	    nand_create(image, &geometry, bytes, &error) || nand_open(image, &nand, &error) ||
	    engine_format(nand, as, &error) || engine_open(nand, as, &engine, &error))
		fail_msg("%s", error.text);
	assert_int_equal(engine_begin(engine, ENGINE_WRITE, &txn), 0);
	put_objects(txn);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_int_equal(engine_begin(engine, ENGINE_HISTORY, &txn), 0);
	assert_int_equal(engine_snapshot(txn, PARTITION, "before", &version), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_int_equal(engine_close(engine), 0);
	assert_int_equal(nand_close(nand), 0);
}

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/muninn-fsck-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(image, sizeof(image), "%s/lun1.img", folder);
	snprintf(copy, sizeof(copy), "%s/new.img", folder);
	make_image(&options);
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "lun1.img", "lun1.img.nvram", "new.img",
					     "new.img.nvram" };
	char path[256];

	(void)state;
	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[n]);
		unlink(path);
	}
	/* Nothing half made is left. */
	return rmdir(folder);
}

/* ---- damage ---- */

static void overwrite(const char *suffix, uint64_t offset, uint64_t length, int byte)
{
	char path[256];
	uint8_t *bytes = malloc(length);
	int fd;

	snprintf(path, sizeof(path), "%s%s", image, suffix);
	fd = open(path, O_WRONLY);
	assert_true(fd >= 0 && bytes);
	memset(bytes, byte, length);
	assert_int_equal(pwrite(fd, bytes, length, (off_t)offset), length);
	close(fd);
	free(bytes);
}

/* The flash pages that hold a page of LARGE, by its first bytes; at least one. */
static void damage_data(uint64_t offset)
{
	struct error_text error = { "" };
	uint8_t *data = malloc(PAGE);
	struct nand *nand = NULL;
	int damaged = 0;

	assert_int_equal(nand_open_read_only(image, &nand, &error), 0);
	for (uint64_t page = 0; page < nand->layout.pages; page++) {
		struct nand_page_io io = { .page = page, .data = data };
		uint64_t place = nand_page_offset(&nand->layout, &nand->geometry, page);

		if (nand_read(nand, NAND_CAUSE_USER, &io, 1) || data[0] != byte_at(offset) ||
		    data[1] != byte_at(offset + 1) || data[PAGE - 1] != byte_at(offset + PAGE - 1))
			continue;
		overwrite("", place + 100, 8, 0xee);
		damaged++;
	}
	nand_abandon(nand);
	free(data);
	assert_int_equal(damaged, 1);
}

static struct muninn_geometry sizes(void)
{
	const struct nand_geometry geometry = nand_geometry_default(32 << 20);
	struct muninn_geometry sizes;

	assert_int_equal(
		muninn_geometry_choose(&geometry, &options.records, &options.muninn, &sizes, NULL),
		0);
	return sizes;
}

/* ---- the command ---- */

static int run(const char *arguments)
{
	char command[8192];
	FILE *pipe;
	int status;

	snprintf(command, sizeof(command), "I=%s; N=%s; %s %s 2>&1 </dev/null", image, copy,
		 program, arguments);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	output[fread(output, 1, sizeof(output) - 1, pipe)] = '\0';
	status = pclose(pipe);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void expect(const char *arguments, int code, const char *word)
{
	int result = run(arguments);

	if (result != code || !strstr(output, word))
		fail_msg("muninn-fsck %s: exit code %d instead of %d, or '%s' is not in: %s",
			 arguments, result, code, word, output);
}

/* Pages of LARGE in the copy that are not what they were; all else is right. */
static uint32_t pages_lost(void)
{
	struct engine_options taken = { 0 };
	struct error_text error = { "" };
	uint8_t *bytes = malloc(LARGE_BYTES), value[16];
	const struct engine_address partition = { .partition = PARTITION };
	const struct engine_address small = { PARTITION, SMALL, 0, 0 };
	const struct engine_address large = { PARTITION, LARGE, 0, 0 };
	struct engine_txn *txn;
	struct engine *engine = NULL;
	struct nand *nand = NULL;
	uint64_t got, id = 0, next;
	uint32_t length, lost = 0;
	size_t count;

	if (nand_open(copy, &nand, &error) || engine_open(nand, &taken, &engine, &error))
		fail_msg("%s", error.text);
	assert_int_equal(engine_begin(engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_attribute_get(txn, partition, 0x20000, 1, value, 16, &length), 0);
	assert_int_equal(length, 4);
	assert_int_equal(engine_read(txn, small, 0, bytes, 100, &got), 0);
	assert_int_equal(got, 18);
	assert_memory_equal(bytes, "thought and memory", 18);
	assert_int_equal(engine_attribute_get(txn, small, 0x10000, 1, value, 16, &length), 0);
	assert_memory_equal(value, "a raven", 7);
	assert_int_equal(engine_list(txn, (struct engine_address){ PARTITION, COLLECTION, 0, 0 },
				     ENGINE_LIST_MEMBERS, 1, &id, 1, &count, &next),
			 0);
	assert_int_equal(id, SMALL);
	assert_int_equal(engine_read(txn, large, 0, bytes, LARGE_BYTES, &got), 0);
	assert_int_equal(got, LARGE_BYTES);
	for (uint64_t page = 0; page < LARGE_BYTES / PAGE; page++) {
		bool right = true, zero = true;

		for (uint64_t at = page * PAGE; at < (page + 1) * PAGE; at++) {
			right &= bytes[at] == byte_at(at);
			zero &= bytes[at] == 0;
		}
		assert_true(right || zero);
		lost += !right;
	}
	engine_abort(txn);
	engine_abandon(engine);
	nand_abandon(nand);
	free(bytes);
	return lost;
}

/* Repairs to the copy, which is clean then. */
static uint32_t repair(int code, const char *word)
{
	expect("--repair --to $N $I", code, word);
	expect("$N", 0, "nothing is wrong");
	return pages_lost();
}

/* ---- tests ---- */

static void test_a_whole_image_is_clean_and_stays_as_it_is(void **state)
{
	char before[256], *sums;

	(void)state;
	snprintf(before, sizeof(before), "--help >/dev/null; sha256sum $I $I.nvram");
	assert_int_equal(run(before), 0);
	sums = strdup(output);
	expect("$I", 0, "nothing is wrong");
	expect("--versions $I", 0, "1 partitions, 2 objects, 1 collections");
	assert_non_null(strstr(output, "1 versions"));
	expect("--quiet $I", 0, "");
	assert_string_equal(output, "");
	assert_int_equal(repair(0, "nothing of the present is missing"), 0);
	assert_int_equal(run(before), 0);
	assert_string_equal(output, sums);
	free(sums);
}

/* Also where the tables of a larger device take more: the newest have the smallest filters. */
static void test_a_device_that_has_grown_is_copied_as_one_that_has_not(void **state)
{
	struct engine_options shrinking = options;
	struct error_text error = { "" };
	struct nand *nand;
	char nvram[160];

	(void)state;
	snprintf(nvram, sizeof(nvram), "%s.nvram", image);
	assert_int_equal(unlink(image) || unlink(nvram), 0);
	shrinking.muninn.index = INDEX_BLOOM;
	shrinking.muninn.bloom.fpr_factor_permille = 900;
	make_image(&shrinking);
	if (nand_open(image, &nand, &error) || engine_grow(nand, UINT64_C(1) << 30, &error))
		fail_msg("%s", error.text);
	nand_abandon(nand);
	expect("$I", 0, "nothing is wrong");
	assert_int_equal(repair(0, "nothing of the present is missing"), 0);
}

static void test_wrong_usage_and_what_is_no_image_have_their_exit_codes(void **state)
{
	(void)state;
	expect("", 16, "one IMAGE");
	expect("--repair $I", 16, "--to NEW is missing");
	expect("--to $N $I", 16, "--to goes with --repair");
	expect("$N", 8, "there is no image");
	expect("/dev/null", 8, "not a regular file");
	expect("--repair --to $I $I", 8, "exists already");
	expect("$I.nvram", 8, "not a Muninn image");
}

#define NOBODY 65534

/* The copy's folder belongs to a user, who has made a link that leads to `outside`. */
static void plant(const char *suffix, const char *outside)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s", copy, suffix);
	assert_int_equal(symlink(outside, path), 0);
	assert_int_equal(lchown(path, NOBODY, NOBODY), 0);
}

static void unplant(const char *suffix)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s", copy, suffix);
	assert_int_equal(unlink(path), 0);
}

static void test_a_report_that_is_cut_off_is_no_report(void **state)
{
	(void)state;
	/* What `run` adds is a comment then: its own 2>&1 would send the message away. */
	expect("$I 2>&1 >/dev/full; exit $? #", 8,
	       "muninn-fsck: the report can't be written: No space left on device");
	expect("--json $I 2>&1 >/dev/full; exit $? #", 8, "the report can't be written");
	expect("--quiet $I 2>&1 >/dev/full; exit $? #", 0, "");
	expect("--help 2>&1 >/dev/full; exit $? #", 8, "the help can't be written");
	expect("--version 2>&1 >/dev/full; exit $? #", 8, "the version can't be written");
}

static void test_a_copy_never_follows_the_links_of_a_user(void **state)
{
	char outside[128];
	struct stat status;

	(void)state;
	if (geteuid() != 0)
		skip();
	snprintf(outside, sizeof(outside), "%s.outside", folder);
	assert_int_equal(chown(folder, NOBODY, NOBODY), 0);
	plant(".nvram", outside);
	expect("--repair --to $N $I", 8, "new.img.nvram exists already; nothing was copied");
	unplant(".nvram");
	plant("", outside);
	expect("--repair --to $N $I", 8, "new.img exists already; nothing was copied");
	unplant("");
	plant(".unfinished.nvram", outside);
	expect("--repair --to $N $I", 8, "unfinished.nvram is a link of the user 65534");
	unplant(".unfinished.nvram");
	assert_int_equal(lstat(outside, &status), -1);
	/* Without links the copy is made, and is the user's. */
	assert_int_equal(repair(0, "nothing of the present is missing"), 0);
	assert_int_equal(stat(copy, &status), 0);
	assert_int_equal(status.st_uid, NOBODY);
}

static void test_an_image_in_use_is_left_alone(void **state)
{
	struct error_text error = { "" };
	struct nand *nand;

	(void)state;
	assert_int_equal(nand_open(image, &nand, &error), 0);
	expect("$I", 8, "in use by");
	assert_int_equal(nand_close(nand), 0);
}

static void test_one_superblock_is_enough(void **state)
{
	(void)state;
	overwrite("", 0, 512, 0);
	expect("$I", 4, "superblock: the superblock at byte 0 is damaged");
	assert_int_equal(repair(1, "nothing of the present is missing"), 0);
}

static void test_without_any_superblock_the_nvram_tells_the_geometry(void **state)
{
	(void)state;
	overwrite("", 0, 512, 0);
	overwrite("", NAND_SUPERBLOCK_SPACING, 512, 0xff);
	/* That is said once, and nothing is said of an older NVRAM. */
	expect("$I", 4, "superblock: both copies of the superblock (at bytes 0 and 32768)");
	expect("$I", 4, "; 1 findings");
	assert_int_equal(repair(1, "superblock"), 0);
	overwrite(".nvram", NAND_NVRAM_FILE_AT, 64, 0);
	expect("$I", 8, "both copies of the superblock");
}

static void test_a_block_table_follows_from_the_pages(void **state)
{
	(void)state;
	overwrite("", NAND_REGION_ALIGNMENT, 128 * 8, 0xee);
	expect("$I", 4, "block: the state of block 0");
	assert_int_equal(repair(1, "follows from its pages"), 0);
}

static void test_a_truncated_image_gives_what_is_left(void **state)
{
	(void)state;
	assert_int_equal(truncate(image, 1 << 20), 0);
	expect("$I", 4, "image: ");
	assert_non_null(strstr(output, "is truncated"));
	expect("--repair --to $N $I", 4, "named above");
}

static void test_a_damaged_page_costs_nothing_where_parity_has_it(void **state)
{
	(void)state;
	damage_data(DAMAGED_AT);
	expect("$I", 4, "and parity has it");
	assert_int_equal(repair(1, "nothing of the present is missing"), 0);
}

/* Two of a group, of which parity has one. */
static void test_damaged_pages_cost_their_bytes_alone(void **state)
{
	(void)state;
	damage_data(DAMAGED_AT);
	damage_data(DAMAGED_AT + PAGE);
	expect("$I", 4, "data: object 0x10000/0x10001: bytes 266240 to 274431 are damaged");
	assert_non_null(strstr(output, "page: flash page"));
	assert_int_equal(repair(4, "named above"), 2);
}

static void test_a_lost_nvram_is_named_and_the_flash_copied(void **state)
{
	char path[256];

	(void)state;
	snprintf(path, sizeof(path), "%s.nvram", image);
	assert_int_equal(unlink(path), 0);
	expect("$I", 4, "nvram-file: ");
	assert_non_null(strstr(output, "older: "));
	expect("--repair --to $N $I", 4, "may be older");
}

/* Somebody has put it back without the image. */
static void test_an_nvram_of_another_time_is_named(void **state)
{
	struct error_text error = { "" };
	struct engine *engine = NULL;
	struct nand *nand = NULL;

	(void)state;
	assert_int_equal(run("--help >/dev/null; cp $I.nvram $N.nvram"), 0);
	if (nand_open(image, &nand, &error) || engine_open(nand, &options, &engine, &error))
		fail_msg("%s", error.text);
	assert_int_equal(engine_close(engine), 0);
	assert_int_equal(nand_close(nand), 0);
	expect("$I", 0, "nothing is wrong");
	assert_int_equal(run("--help >/dev/null; mv $N.nvram $I.nvram"), 0);
	expect("$I", 4, "nvram-file: ");
	assert_non_null(strstr(output, "lun1.img.nvram (last opened "));
	assert_non_null(strstr(output, ") is older than "));
}

static void test_a_damaged_header_of_the_nvram_costs_nothing(void **state)
{
	(void)state;
	overwrite(".nvram", 0, 64, 0);
	assert_int_equal(repair(1, "the header of"), 0);
}

static void test_damaged_state_words_cost_nothing_where_the_store_was_closed(void **state)
{
	(void)state;
	overwrite(".nvram", NAND_NVRAM_FILE_AT + STATE_AT, 8, 0x11);
	assert_int_equal(repair(1, "nvram: "), 0);
}

static void test_a_damaged_directory_and_sums_cost_nothing_that_the_flash_tells(void **state)
{
	struct muninn_geometry geometry = sizes();

	(void)state;
	overwrite(".nvram", NAND_NVRAM_FILE_AT + geometry.groups_at, 512, 0x11);
	assert_int_equal(repair(1, "growing group"), 0);
}

/* Records of row 0 in its buffer: what they may be newer than is named. */
static void test_a_damaged_buffer_page_names_what_may_be_older(void **state)
{
	struct muninn_geometry geometry = sizes();
	uint64_t slots = NAND_NVRAM_FILE_AT + geometry.buffers_at + geometry.slots_at;

	(void)state;
	overwrite(".nvram", slots, 64 * PAGE, 0xee);
	expect("$I", 4, "buffer: page ");
	assert_non_null(strstr(output, "older: "));
	expect("--repair --to $N $I", 4, "named above");
	expect("$N", 0, "nothing is wrong");
}

static void test_json_has_all_findings(void **state)
{
	json_t *value, *findings;

	(void)state;
	damage_data(DAMAGED_AT);
	damage_data(DAMAGED_AT + PAGE);
	assert_int_equal(run("--json $I"), 4);
	value = json_loads(output, 0, NULL);
	assert_non_null(value);
	assert_int_equal(json_integer_value(json_object_get(value, "exit")), 4);
	assert_string_equal(json_string_value(json_object_get(value, "index")), "ribbon");
	findings = json_object_get(value, "findings");
	assert_int_equal(json_array_size(findings), 3);
	assert_string_equal(json_string_value(json_object_get(json_array_get(findings, 2), "kind")),
			    "data");
	assert_int_equal(json_integer_value(json_object_get(json_array_get(findings, 2), "object")),
			 LARGE);
	json_decref(value);
}

static int find_program(void **state)
{
	(void)state;
	muninnctl_path(program);
	strcpy(strrchr(program, '/'), "/muninn-fsck");
	return 0;
}

#define IMAGE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IMAGE_TEST(test_a_whole_image_is_clean_and_stays_as_it_is),
		IMAGE_TEST(test_a_device_that_has_grown_is_copied_as_one_that_has_not),
		IMAGE_TEST(test_wrong_usage_and_what_is_no_image_have_their_exit_codes),
		IMAGE_TEST(test_a_report_that_is_cut_off_is_no_report),
		IMAGE_TEST(test_a_copy_never_follows_the_links_of_a_user),
		IMAGE_TEST(test_an_image_in_use_is_left_alone),
		IMAGE_TEST(test_one_superblock_is_enough),
		IMAGE_TEST(test_without_any_superblock_the_nvram_tells_the_geometry),
		IMAGE_TEST(test_a_block_table_follows_from_the_pages),
		IMAGE_TEST(test_a_truncated_image_gives_what_is_left),
		IMAGE_TEST(test_a_damaged_page_costs_nothing_where_parity_has_it),
		IMAGE_TEST(test_damaged_pages_cost_their_bytes_alone),
		IMAGE_TEST(test_a_lost_nvram_is_named_and_the_flash_copied),
		IMAGE_TEST(test_an_nvram_of_another_time_is_named),
		IMAGE_TEST(test_a_damaged_header_of_the_nvram_costs_nothing),
		IMAGE_TEST(test_damaged_state_words_cost_nothing_where_the_store_was_closed),
		IMAGE_TEST(test_a_damaged_directory_and_sums_cost_nothing_that_the_flash_tells),
		IMAGE_TEST(test_a_damaged_buffer_page_names_what_may_be_older),
		IMAGE_TEST(test_json_has_all_findings),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
