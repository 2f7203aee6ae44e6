/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The last page of a row's newest segment can't be read, and what NVRAM says of the flash is made
 * again. If the power failed in that page, the row's buffer still has all of the segment: nothing
 * is lost. If the page was lost later, exactly what was on it is, and a salvage names that.
 *
 * Runs for each index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "common/finding.h"
#include "common/log.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/row.h"
#include "engine/open.h"
#include "nand/power.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/lost_page.h"
#include "tests/engine/small_flash.h"

enum { KEYS_MAX = 2000, VALUE_BYTES = 150, PUTS = 3 };

/* Without room for parity: a lost page stays lost. */
static const struct nand_geometry shape = SMALL_FLASH(300);

struct device {
	struct engine_options options;
	struct nand *nand;
	struct record_store *store;
	struct findings findings;
	uint32_t keys; /* that were committed: each once */
	bool is_lost[KEYS_MAX];
	uint32_t lost;
};

static struct muninn_store *inside(const struct device *device)
{
	return (struct muninn_store *)(void *)device->store;
}

static void discard_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void discard_finding(void *context, const struct finding *finding)
{
	(void)context;
	(void)finding;
}

/* Returns what opening does. */
static int open_device(struct device *device)
{
	struct error_text error = { "" };

	return engine_open_records(device->nand, &device->options, &device->store, &error);
}

static void new_device(struct device *device)
{
	struct error_text error = { "" };
	uint64_t nvram_bytes;

	*device = (struct device){ .options.muninn = { .index = index_under_test(),
						       .rows = 2,
						       .segment_pages = 16,
						       .record_bytes = 128 },
				   .findings.take = discard_finding };
	log_configure(discard_line, LOG_LEVEL_ERROR);
	if (engine_nvram_bytes(&shape, &device->options, &nvram_bytes, &error) ||
	    nand_open_memory(&shape, nvram_bytes, &device->nand, &error) ||
	    engine_format(device->nand, &device->options, &error) || open_device(device))
		fail_msg("%s", error.text);
}

static void free_device(struct device *device)
{
	device->store->operations->close(device->store, false);
	assert_int_equal(nand_close(device->nand), 0);
	log_configure(NULL, LOG_LEVEL_WARNING);
}

static struct record_key key_of(uint32_t number)
{
	return (struct record_key){ .class = RECORD_CLASS_DATA,
				    .partition = 1,
				    .identifier = 0x10000 + number };
}

/* Puts new keys in a transaction. 0, or the error of a put: then it is aborted. */
static int put_some(struct device *device)
{
	const struct record_store_operations *operations = device->store->operations;
	int result = 0;

	operations->begin(device->store, 0);
	for (uint32_t n = 0; n < PUTS && !result; n++) {
		const struct record_key key = key_of(device->keys + n);
		uint8_t value[VALUE_BYTES];

		memset(value, (int)(device->keys + n), sizeof(value));
		result = operations->put(device->store, &key, 1, 0, value, sizeof(value), false);
	}
	if (result) {
		operations->abort(device->store);
		return result;
	}
	operations->commit(device->store);
	device->keys += PUTS;
	assert_true(device->keys + PUTS < KEYS_MAX);
	return 0;
}

static uint32_t sealed_of(const struct device *device, uint32_t row)
{
	return row_index_members(inside(device)->rows[row].index);
}

/* Until a row has so many segments more. No group gets complete meanwhile, so no root is written.
 */
static void seal_more(struct device *device, uint32_t row, uint32_t more)
{
	uint32_t wanted = sealed_of(device, row) + more;

	while (sealed_of(device, row) < wanted)
		assert_int_equal(put_some(device), 0);
	assert_int_equal(row_index_groups(inside(device)->rows[row].index), 0);
}

/* The last page of the segment that a row sealed as its n-th last one. */
static uint64_t last_page(const struct device *device, uint32_t row, uint32_t back)
{
	struct sealed_segment facts;

	row_index_read_member(inside(device)->rows[row].index, sealed_of(device, row) - 1 - back,
			      &facts);
	return segment_page(&inside(device)->geometry, facts.segment + 1) - 1;
}

static void note_lost(struct device *device, const struct page_record *record)
{
	struct record_header header;

	record_header_decode(record->header, &header);
	device->is_lost[header.key.identifier - 0x10000] = true;
	device->lost++;
}

/* The page that begins with the end of a record: so that is lost, too. */
static void note_page(struct device *device, uint64_t page, bool only_last)
{
	uint8_t data[512], spare_bytes[64];
	const struct nand_page_io io = { .page = page, .data = data, .spare = spare_bytes };
	struct page_spare spare;
	struct page_record record;
	uint32_t offset = 0;

	assert_int_equal(nand_read(device->nand, NAND_CAUSE_USER, &io, 1), 0);
	assert_true(page_spare_decode(spare_bytes, sizeof(data), &spare));
	const struct page_view view = page_view_of(&spare, page, data);

	while (page_next(&view, &offset, &record))
		if (!only_last || record.cut)
			note_lost(device, &record);
	if (!only_last && view.begin)
		note_page(device, page - 1, true);
}

/* Loses a page, and notes whose records are on it. */
static void lose(struct device *device, uint64_t page)
{
	note_page(device, page, false);
	assert_true(device->lost > 0);
	lose_page(device->nand, page);
}

static void stop(struct device *device, bool orderly)
{
	device->store->operations->close(device->store, orderly);
	device->store = NULL;
}

/* The process ends, and something else gets to `at` in NVRAM. */
static void stop_and_damage(struct device *device, bool orderly, uint64_t at)
{
	uint64_t bytes;
	uint8_t *nvram = nand_nvram(device->nand, &bytes);

	stop(device, orderly);
	for (uint32_t i = 0; i < 16; i++)
		nvram[at + i] ^= 0xA5;
}

/* The sum of the directory of the index. */
static uint64_t directory_sum_at(const struct device *device)
{
	return (uint64_t)(store_sum(inside(device), SUM_DIRECTORY) - inside(device)->nvram);
}

static void salvage(struct device *device)
{
	device->options.records.salvage = &device->findings;
	assert_int_equal(open_device(device), 0);
	assert_true(device->findings.count > 0);
}

static void lose_nvram(struct device *device)
{
	uint64_t bytes;
	uint8_t *nvram = nand_nvram(device->nand, &bytes);

	stop(device, false);
	memset(nvram, 0, bytes);
	device->options.records.recover_without_nvram = true;
	assert_int_equal(open_device(device), 0);
}

static bool is_found(const struct device *device, uint32_t number)
{
	const struct record_key key = key_of(number);
	uint8_t value[VALUE_BYTES] = { 0 }, wanted[VALUE_BYTES];
	struct record_info info;
	int result = device->store->operations->get(device->store, &key, RECORD_NEWEST, value,
						    sizeof(value), &info);

	if (result == -ENOENT)
		return false;
	assert_int_equal(result, 0);
	assert_int_equal(info.length, VALUE_BYTES);
	memset(wanted, (int)number, sizeof(wanted));
	assert_memory_equal(value, wanted, sizeof(wanted));
	return true;
}

static enum record_certainty certainty(const struct device *device, uint32_t number)
{
	const struct record_key key = key_of(number);

	return device->store->operations->is_uncertain(device->store, &key);
}

static uint32_t row_of(const struct device *device, uint32_t number)
{
	const struct record_key key = key_of(number);
	const struct key_hash hash = key_hash(&key, inside(device)->geometry.segment_pages);

	return row_of_key(inside(device), &key, &hash);
}

/*
 * All keys are there but those that are lost, and these are named. Of others of that row they may
 * be named; of other rows none is.
 */
static void check_all(const struct device *device, uint32_t lossy_row)
{
	for (uint32_t number = 0; number < device->keys; number++) {
		assert_int_equal(is_found(device, number), !device->is_lost[number]);
		if (device->is_lost[number])
			assert_int_equal(certainty(device, number), RECORD_UNCERTAIN);
		else if (row_of(device, number) != lossy_row)
			assert_int_equal(certainty(device, number), RECORD_CERTAIN);
	}
}

/* ---- a page that was lost ---- */

static void test_a_salvage_names_what_was_on_the_lost_last_page_of_a_newest_segment(void **state)
{
	struct device device;

	(void)state;
	new_device(&device);
	seal_more(&device, 0, 2);
	lose(&device, last_page(&device, 0, 0));
	stop_and_damage(&device, false, directory_sum_at(&device));
	salvage(&device);
	check_all(&device, 0);
	free_device(&device);
}

static void test_a_salvage_names_what_was_on_the_lost_last_page_of_an_older_segment(void **state)
{
	struct device device;

	(void)state;
	new_device(&device);
	seal_more(&device, 0, 3);
	lose(&device, last_page(&device, 0, 1));
	stop_and_damage(&device, false, directory_sum_at(&device));
	salvage(&device);
	check_all(&device, 0);
	free_device(&device);
}

/* Then nothing tells it from one in which the power failed, and that one may never have counted. */
static void test_without_nvram_only_a_newest_segment_is_left_out_for_its_last_page(void **state)
{
	struct device device;
	uint32_t sealed[2], found = 0, before = 0;

	(void)state;
	for (uint32_t back = 0; back < 2; back++) {
		new_device(&device);
		seal_more(&device, 0, 3);
		for (uint32_t row = 0; row < 2; row++)
			sealed[row] = sealed_of(&device, row);
		lose(&device, last_page(&device, 0, back));
		lose_nvram(&device);
		assert_int_equal(sealed_of(&device, 0), sealed[0] - (back == 0));
		assert_int_equal(sealed_of(&device, 1), sealed[1]);
		for (uint32_t number = 0; number < device.keys; number++)
			found += is_found(&device, number);
		before = back ? before : found;
		free_device(&device);
	}
	/* Of the older one only the page is lost. */
	assert_true(found - before > before);
}

/* ---- a page in which the power failed ---- */

/* Puts until the power fails, at operation `after` from now on. True: that programs a last page. */
static bool fails_in_a_last_page(struct device *device, uint64_t after)
{
	static const char program[] = "program of page ";
	const struct nand_power_cut cut = { .after = after,
					    .page = NAND_CUT_PAGE_TORN,
					    .torn_bytes = 100 };
	struct nand_power_status status;
	struct error_text error;

	assert_int_equal(nand_arm_power_cut(device->nand, &cut, &error), 0);
	do {
		put_some(device);
		nand_power_status(device->nand, &status);
	} while (!status.off);
	return strncmp(status.in_flight, program, strlen(program)) == 0 &&
	       (strtoul(status.in_flight + strlen(program), NULL, 10) + 1) %
			       inside(device)->geometry.segment_pages ==
		       0;
}

/* A device after that, opened again. The segments that its rows know of are noted in `sealed`. */
static void make_torn(struct device *device, uint32_t sealed[2])
{
	bool is_torn = false;

	for (uint64_t after = 0; !is_torn; after++) {
		if (after)
			free_device(device);
		new_device(device);
		seal_more(device, 0, 1);
		is_torn = fails_in_a_last_page(device, after);
		for (uint32_t row = 0; row < 2; row++)
			sealed[row] = sealed_of(device, row);
		stop(device, false);
		assert_int_equal(nand_power_on(device->nand), 0);
		assert_int_equal(open_device(device), 0);
	}
}

static void expect_torn_left_out(const struct device *device, const uint32_t sealed[2])
{
	for (uint32_t row = 0; row < 2; row++)
		assert_int_equal(sealed_of(device, row), sealed[row]);
	check_all(device, NO_ROW);
}

static void test_a_salvage_loses_nothing_with_a_segment_that_a_buffer_still_has(void **state)
{
	struct device device = { .nand = NULL };
	uint32_t sealed[2];

	(void)state;
	make_torn(&device, sealed);
	stop_and_damage(&device, false, directory_sum_at(&device));
	salvage(&device);
	expect_torn_left_out(&device, sealed);
	/* The buffer goes on: it is sealed, and what it had is found on flash. */
	seal_more(&device, 0, 2);
	check_all(&device, NO_ROW);
	free_device(&device);
}

/* ---- what NVRAM says of numbers is damaged, too ---- */

static void test_after_an_orderly_end_a_salvage_finds_the_newest_number_in_the_buffers(void **state)
{
	struct device device;

	(void)state;
	new_device(&device);
	seal_more(&device, 0, 2);
	assert_int_equal(put_some(&device), 0);
	stop_and_damage(&device, true, STATE_COMMITTED_AT);
	salvage(&device);
	check_all(&device, NO_ROW);
	free_device(&device);
}

/* The last command may not have been committed. */
static void test_after_a_crash_a_salvage_leaves_out_the_last_command_and_is_sure_of_nothing(
	void **state)
{
	struct device device;

	(void)state;
	new_device(&device);
	seal_more(&device, 0, 2);
	assert_int_equal(put_some(&device), 0);
	stop_and_damage(&device, false, STATE_COMMITTED_AT);
	salvage(&device);
	for (uint32_t number = 0; number < device.keys; number++) {
		assert_int_equal(is_found(&device, number), number < device.keys - PUTS);
		assert_int_equal(certainty(&device, number), RECORD_ALL_UNCERTAIN);
	}
	free_device(&device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_salvage_names_what_was_on_the_lost_last_page_of_a_newest_segment),
		cmocka_unit_test(
			test_a_salvage_names_what_was_on_the_lost_last_page_of_an_older_segment),
		cmocka_unit_test(
			test_without_nvram_only_a_newest_segment_is_left_out_for_its_last_page),
		cmocka_unit_test(
			test_a_salvage_loses_nothing_with_a_segment_that_a_buffer_still_has),
		cmocka_unit_test(
			test_after_an_orderly_end_a_salvage_finds_the_newest_number_in_the_buffers),
		cmocka_unit_test(
			test_after_a_crash_a_salvage_leaves_out_the_last_command_and_is_sure_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
