/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Partitions whose object IDs are packed: how a client counts them, and what it says of what they
 * can't hold.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/osd_client.h"
#include "tests/client/local_target.h"

#define FLAT   0x10000
#define PACKED 0x20000
#define OBJECT (UINT64_C(1) << 32)

static void execute(void *context, struct loopback_command *command)
{
	local_target_execute(context, 1, command);
}

static void serve(struct local_target *target, enum osd_version version)
{
	local_target_open(target, 64 << 20, (const uint8_t[16]){ 1 }, NULL);
	local_target_start(target, version, execute, target);
	assert_int_equal(osd_client_create_partition(target->client, FLAT, 0, NULL, NULL), 0);
	assert_int_equal(osd_client_create_partition(target->client, PACKED, 1, NULL, NULL), 0);
}

static void test_several_new_objects_are_a_step_of_the_layout_apart(void **state)
{
	(void)state;
	for (int version = OSD_1; version <= OSD_2; version++) {
		struct local_target target;
		uint64_t first, step;

		serve(&target, (enum osd_version)version);
		assert_int_equal(
			osd_client_create(target.client, FLAT, 0, 300, &first, &step, NULL), 0);
		assert_true(first == OSD_FIRST_ID);
		assert_true(step == 1);
		assert_int_equal(
			osd_client_create(target.client, PACKED, 0, 300, &first, &step, NULL), 0);
		assert_true(first == OBJECT);
		assert_true(step == OBJECT);
		assert_int_equal(
			osd_client_create(target.client, PACKED, 0, 2, &first, &step, NULL), 0);
		assert_true(first == 301 * OBJECT);
		assert_true(step == OBJECT);
		local_target_close(&target);
	}
}

static void test_a_partition_tells_how_its_ids_count_and_how_long_objects_may_be(void **state)
{
	struct osd_client_ids ids;
	struct local_target target;
	uint64_t page_bytes;

	(void)state;
	serve(&target, OSD_2);
	assert_int_equal(osd_client_find_ids(target.client,
					     (struct osd_client_address){ FLAT, 0, 0 }, &ids, NULL),
			 0);
	assert_true(ids.first == OSD_FIRST_ID && ids.step == 1 && ids.last == UINT64_MAX);
	assert_true(ids.bytes_max == UINT64_MAX);
	assert_int_equal(osd_client_find_ids(target.client,
					     (struct osd_client_address){ PACKED, 0, 0 }, &ids,
					     NULL),
			 0);
	assert_true(ids.first == OBJECT && ids.step == OBJECT);
	assert_true(ids.last == UINT64_C(0xFFFFFFFF00000000));
	page_bytes = engine_page_bytes(target.engine);
	assert_true(ids.bytes_max == 65536 * page_bytes);
	assert_int_equal(osd_client_find_ids(target.client,
					     (struct osd_client_address){ 0x30000, 0, 0 }, &ids,
					     NULL),
			 -ENOENT);
	local_target_close(&target);
}

static void expect(int result, const struct osd_client_error *error, int expected,
		   const char *words)
{
	if (result != expected || !strstr(error->sentence.text, words))
		fail_msg("%d instead of %d, or '%s' is not in: %s", result, expected, words,
			 error->sentence.text);
}

static void test_what_a_packed_id_cannot_name_is_told_as_what_it_is(void **state)
{
	const struct osd_client_address object = { PACKED, OBJECT, 0 };
	const struct osd_client_address version = { PACKED, OBJECT | 2 << 16, 0 };
	const struct osd_client_address ago = { PACKED, OBJECT | 0xFF000000, 0 };
	struct osd_client_error error = { 0 };
	struct local_target target;
	uint64_t end;
	char data[8];
	size_t got;

	(void)state;
	serve(&target, OSD_2);
	assert_int_equal(osd_client_create(target.client, PACKED, OBJECT, 1, NULL, NULL, NULL), 0);
	end = (uint64_t)65536 * engine_page_bytes(target.engine);
	expect(osd_client_write(target.client, object, end, "x", 1, &error), &error, -EFBIG,
	       "longer than it can be");
	expect(osd_client_clear(target.client, object, end, 1, &error), &error, -EFBIG,
	       "longer than it can be");
	expect(osd_client_truncate(target.client, object, end + 1, &error), &error, -EINVAL,
	       "65536 pages");
	assert_int_equal(osd_client_truncate(target.client, object, end, &error), 0);
	expect(osd_client_append(target.client, object, "x", 1, NULL, &error), &error, -EFBIG,
	       "longer than it can be");
	expect(osd_client_read(target.client, version, 0, data, sizeof(data), &got, &error), &error,
	       -ENOENT, "name a version that is not there");
	expect(osd_client_read(target.client, ago, 0, data, sizeof(data), &got, &error), &error,
	       -ENOENT, "more modifications than the kept history");
	local_target_close(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several_new_objects_are_a_step_of_the_layout_apart),
		cmocka_unit_test(
			test_a_partition_tells_how_its_ids_count_and_how_long_objects_may_be),
		cmocka_unit_test(test_what_a_packed_id_cannot_name_is_told_as_what_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
