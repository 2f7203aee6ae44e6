/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* SPACE: what the device and its partitions hold, as sums over a stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "osd/functions.h"
#include "tests/osd/function_call.h"

enum { TEXT_BYTES = 20000 };

struct sums {
	uint64_t kind_live[4], live, kept, history, reclaimable, freed; /* of P */
	uint64_t own[3];                                                /* by version */
	uint64_t looked_at, pages, bytes, used, capacity, device;
	uint32_t calls;
};

static void write_bytes(struct unit *unit, uint64_t object, char byte)
{
	static char text[TEXT_BYTES + 1];

	memset(text, byte, TEXT_BYTES);
	function_write_text(unit, object, text);
}

/* 0 if it is missing. */
static uint64_t number_in(const struct osd_item *entry, uint16_t tag)
{
	uint64_t number = 0;

	osd_item_find_number(entry->value, entry->length, tag, &number);
	return number;
}

static void take_entry(struct sums *sums, const struct osd_item *entry)
{
	uint64_t version = number_in(entry, OSD_ITEM_VERSION);

	if (version) {
		assert_in_range(version, 1, 2);
		sums->own[version] += number_in(entry, OSD_ITEM_LENGTH);
		return;
	}
	sums->kind_live[number_in(entry, OSD_ITEM_KIND)] += number_in(entry, OSD_ITEM_LIVE);
	if (number_in(entry, OSD_ITEM_PARTITION) != P)
		return;
	sums->live += number_in(entry, OSD_ITEM_LIVE);
	sums->kept += number_in(entry, OSD_ITEM_KEPT);
	sums->history += number_in(entry, OSD_ITEM_HISTORY);
	sums->reclaimable += number_in(entry, OSD_ITEM_RECLAIMABLE);
	sums->freed += number_in(entry, OSD_ITEM_FREED);
}

/* Runs a call, which has its parameters, to its end. */
static struct sums add_up(struct unit *unit, struct function_call *call)
{
	struct sums sums = { .calls = 0 };
	struct osd_item entry;

	do {
		function_run(unit, call);
		expect_good(unit);
		for (size_t n = 0; function_entry(unit, n, &entry); n++)
			take_entry(&sums, &entry);
		sums.looked_at += function_number(unit, OSD_ITEM_COUNT);
		sums.calls++;
	} while (function_continue(unit, call));
	sums.pages = function_number(unit, OSD_ITEM_PAGES);
	sums.bytes = function_number(unit, OSD_ITEM_LENGTH);
	sums.used = function_number(unit, OSD_ITEM_USED);
	sums.capacity = function_number(unit, OSD_ITEM_CAPACITY);
	sums.device = function_number(unit, OSD_ITEM_DEVICE);
	return sums;
}

static struct sums space_of(struct unit *unit, uint64_t partition, uint64_t dropped)
{
	struct function_call call;

	function_of(&call, OSD_FUNCTION_SPACE, partition, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_COUNT, UINT64_MAX);
	if (dropped)
		osd_item_add_number(&call.writer, OSD_ITEM_VERSION, dropped);
	return add_up(unit, &call);
}

static void test_it_tells_the_present_versions_and_history_apart(void **state)
{
	struct unit *unit = *state;
	struct sums of_device, of_partition;

	function_subscribe(unit);
	write_bytes(unit, O, 'a');
	assert_int_equal(function_snapshot(unit, P, "one"), 1);
	write_bytes(unit, O, 'b');
	write_bytes(unit, O, 'c');
	/* So that many commands are needed. */
	unit->device->portions.records = 1;
	of_device = space_of(unit, 0, 0);
	assert_int_equal(of_device.looked_at, of_device.pages);
	assert_true(of_device.calls > 3);
	assert_true(of_device.live >= TEXT_BYTES && of_device.live < 2 * TEXT_BYTES);
	assert_true(of_device.kept >= TEXT_BYTES && of_device.kept < 2 * TEXT_BYTES);
	assert_true(of_device.history >= TEXT_BYTES && of_device.history < 2 * TEXT_BYTES);
	assert_true(of_device.kind_live[OSD_SPACE_DEVICE] > 0);
	assert_int_equal(of_device.kind_live[OSD_SPACE_OTHERS], 0);
	assert_true(of_device.device > of_device.capacity && of_device.capacity > of_device.used);
	of_partition = space_of(unit, P, 1);
	assert_int_equal(of_partition.live, of_device.live);
	assert_int_equal(of_partition.own[1], of_partition.freed);
	assert_true(of_partition.freed >= TEXT_BYTES && of_partition.freed < 2 * TEXT_BYTES);
}

static void test_a_moment_tells_what_a_shorter_history_frees(void **state)
{
	struct unit *unit = *state;
	struct osd_item_writer *writer;
	struct function_call call;

	function_subscribe(unit);
	write_bytes(unit, O, 'a');
	write_bytes(unit, O, 'b');
	function_of(&call, OSD_FUNCTION_SPACE, P, 0);
	writer = &call.writer;
	osd_item_add_number(writer, OSD_ITEM_COUNT, UINT64_MAX);
	osd_item_open(writer, OSD_ITEM_FROM);
	osd_item_add_number(writer, OSD_ITEM_TIME, unit->now_ms);
	osd_item_end(writer);
	unit->now_ms += FUNCTION_STEP_MS;
	assert_true(add_up(unit, &call).freed >= TEXT_BYTES);
}

static void refuse(struct unit *unit, uint16_t tag, uint64_t value)
{
	struct function_call call;

	function_of(&call, OSD_FUNCTION_SPACE, P, 0);
	osd_item_add_number(&call.writer, tag, value);
	function_run(unit, &call);
	expect_parameter(unit, 0);
}

static void test_wrong_parameters_are_refused(void **state)
{
	struct unit *unit = *state;
	struct function_call call;

	function_subscribe(unit);
	refuse(unit, OSD_ITEM_COUNT, 0);
	refuse(unit, OSD_ITEM_VERSION, 0);
	refuse(unit, OSD_ITEM_VERSION, 5);
	refuse(unit, OSD_ITEM_VERSION, 0xF000);
	function_of(&call, OSD_FUNCTION_SPACE, P, 0);
	for (uint32_t n = 0; n <= OSD_SPACE_DROPS_MAX; n++)
		osd_item_add_number(&call.writer, OSD_ITEM_VERSION, 1);
	function_run(unit, &call);
	expect_parameter(unit, 0);
	/* Too little space for a result. */
	function_of(&call, OSD_FUNCTION_SPACE, P, 0);
	call.call.data_in_capacity = OSD_SPACE_BYTES_MIN - 1;
	function_run(unit, &call);
	expect_field(unit, 32);
	function_of(&call, OSD_FUNCTION_SPACE, P, O);
	function_run(unit, &call);
	expect_field(unit, 24);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(test_it_tells_the_present_versions_and_history_apart),
		with_object(test_a_moment_tells_what_a_shorter_history_frees),
		with_object(test_wrong_parameters_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
