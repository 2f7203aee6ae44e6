/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the client does in many commands, because the target refuses to do it with one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/osd_client.h"
#include "common/bytes.h"
#include "tests/client/local_target.h"

#define PARTITION UINT64_C(0x10000)
#define OBJECT    UINT64_C(0x10000)

/* More data than one PUNCH moves, a hole, and an end inside a page. */
enum { PART = 1 << 20, DATA = 10 << 20, HOLE = 3 << 20, SIZE = DATA + HOLE + 12345 };

static const struct osd_client_address object = { PARTITION, OBJECT, 0 };

static int setup(void **state)
{
	struct local_target *target = calloc(1, sizeof(*target));

	local_target_serve(target, 128 << 20);
	assert_int_equal(osd_client_create_partition(target->client, PARTITION, -1, NULL, NULL), 0);
	assert_int_equal(osd_client_create(target->client, PARTITION, OBJECT, 1, NULL, NULL, NULL),
			 0);
	*state = target;
	return 0;
}

static int teardown(void **state)
{
	struct local_target *target = *state;

	local_target_close(target);
	free(target);
	return 0;
}

static uint8_t *make_content(void)
{
	uint8_t *content = calloc(1, SIZE);

	for (uint32_t at = 0; at < SIZE; at++)
		if (at < DATA || at >= DATA + HOLE)
			content[at] = (uint8_t)(at % 251 + at / 4096 % 5 + 1);
	return content;
}

static void write_range(struct osd_client *client, const uint8_t *content, uint64_t from,
			uint64_t end)
{
	for (uint64_t at = from; at < end; at += PART)
		assert_int_equal(osd_client_write(client, object, at, content + at,
						  min_u64(PART, end - at), NULL),
				 0);
}

static void expect_content(struct osd_client *client, const uint8_t *content, size_t length)
{
	uint8_t *found = malloc(length + 1);
	uint64_t size;
	size_t got;

	assert_int_equal(osd_client_get_number(client, object, OSD_USER_OBJECT_INFORMATION,
					       OSD_INFORMATION_LOGICAL_LENGTH, &size, NULL),
			 0);
	assert_int_equal(size, length);
	assert_int_equal(osd_client_read(client, object, 0, found, length, &got, NULL), 0);
	assert_int_equal(got, length);
	assert_memory_equal(found, content, length);
	free(found);
}

/* Ranges of any length at any place; the hole stays one. */
static void test_a_punch_in_front_of_much_data(void **state)
{
	static const struct {
		uint64_t offset, length;
	} ranges[] = { { 100, 4096 }, { 4096, 8192 }, { 0, 1 }, { 5000, PART + 77 } };
	struct local_target *target = *state;
	uint8_t *content = make_content();
	size_t length = SIZE;
	uint64_t used;

	write_range(target->client, content, 0, DATA);
	write_range(target->client, content, DATA + HOLE, SIZE);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		uint64_t behind = ranges[i].offset + ranges[i].length;

		assert_int_equal(osd_client_punch(target->client, object, ranges[i].offset,
						  ranges[i].length, NULL),
				 0);
		memmove(content + ranges[i].offset, content + behind, length - behind);
		length -= ranges[i].length;
		expect_content(target->client, content, length);
	}
	assert_int_equal(osd_client_get_number(target->client, object, OSD_USER_OBJECT_INFORMATION,
					       OSD_INFORMATION_USED_CAPACITY, &used, NULL),
			 0);
	assert_in_range(used, DATA - 2 * PART, DATA + PART);
	free(content);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_punch_in_front_of_much_data, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
